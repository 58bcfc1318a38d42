"""Bad JSON by its numbers, for every reader of JSON: a typed error, counted rows, or the same tables."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import damage
import pytest
from sets import SETS, NativeSet, copied, edit, rows_add_up, same_rows, unnumbered, without

from roadaware.errors import FindingsError, InputError
from roadaware.scenes.tables import Scenes

Change = Callable[[bytes], bytes]
JSON = [name for name, each in SETS.items() if each.maker.FORMAT == "json"]
pytestmark = pytest.mark.parametrize("native", JSON, indirect=True)
_NO_OBJECT = "should be an object|expected an object|should be a list"
_NUMBER = rb"(?<=[ \[])[0-9]+\.[0-9]+"


@dataclass(frozen=True)
class Case:
    """One bad input: what is done to the main file, and a pattern in the reason."""

    name: str
    change: Change
    reason: str = ""


def _swap(old: bytes, new: bytes) -> Change:
    return lambda data: damage.swap(data, old, new)


FILES = [
    Case("case_03_empty_file", lambda data: b"", "empty"),
    Case("case_03_blank_file", lambda data: b" \r\n\t", "empty"),
    Case("case_09_utf_32", lambda data: data.decode().encode("utf-32"), "UTF-8"),
    Case("case_10_invalid_utf_8", lambda data: data.replace(b'"', b'"\xff', 1), r"byte \d+"),
    Case("case_31_truncated", lambda data: data[: len(data) // 3], r"at byte \d+"),
    Case("case_31_truncated_by_one_byte", lambda data: data[:-1], r"at byte \d+"),
    Case("case_32_depth_100k", lambda d: damage.one_more(d, b"[" * 100_000 + b"]" * 100_000), "deep"),
    Case("case_32_depth_100k_of_objects", lambda d: b'{"a":' * 100_000 + d + b"}" * 100_000, "deep"),
    Case("case_33_duplicate_key_at_the_top", lambda d: damage.one_more(d, b'1, "d": 2'), "stands twice"),
    Case("case_33_duplicate_key_inside", lambda d: damage.one_more(d, b'{"x": 1, "x": 1}'), "stands twice"),
    Case("case_34_nan", _swap(_NUMBER, b"NaN"), r"NaN is no number.*at byte \d+"),
    Case("case_34_infinity", _swap(_NUMBER, b"-Infinity"), "-Infinity is no number"),
    Case("case_35_integer_of_5000_digits", _swap(_NUMBER, b"9" * 5000), "4300 digits"),
    Case(
        "case_35_integer_of_5000_digits_that_nobody_asks_for",
        lambda d: damage.one_more(d, b"9" * 5000),
    ),
    Case("case_36_trailing_garbage", lambda data: data + b"x", "behind the end"),
    Case("case_36_twice", lambda data: data + data, "behind the end"),
    Case("case_37_a_list", lambda data: b"[" + data + b"]", _NO_OBJECT),
    Case("case_37_a_text", lambda data: b'"x"', _NO_OBJECT),
    Case("case_37_null", lambda data: b"null", _NO_OBJECT),
    Case(
        "case_37_another_file", lambda data: b'{"images": [], "annotations": []}', "has neither|there is no"
    ),
    Case("case_37_html_page", lambda data: b"<html><body>404</body></html>", "not strict JSON"),
]
SAME = [
    Case("case_09_utf_8_mark", lambda data: b"\xef\xbb\xbf" + data),
    Case("case_09_utf_16_little", lambda data: b"\xff\xfe" + data.decode().encode("utf-16-le")),
    Case("case_09_utf_16_big", lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be")),
    Case("case_12_indented", lambda data: json.dumps(json.loads(data), indent=1).encode()),
    Case(
        "case_12_windows_lines", lambda d: json.dumps(json.loads(d), indent=1).replace("\n", "\r\n").encode()
    ),
    Case("case_12_old_mac_lines", lambda d: json.dumps(json.loads(d), indent=1).replace("\n", "\r").encode()),
    Case("case_12_no_blanks", lambda data: json.dumps(json.loads(data), separators=(",", ":")).encode()),
    Case("case_33_unknown_members", lambda data: damage.one_more(data, b'{"x": [1, {"y": null}]}')),
]


@pytest.mark.slow
@pytest.mark.spread(4)
@pytest.mark.parametrize("case", FILES, ids=lambda case: case.name)
def test_damaged_file(native: NativeSet, root: Path, clean: Scenes, case: Case) -> None:
    edit(root / native.main, case.change)
    started = time.process_time()
    found = native.refusal(root)
    assert re.search(case.reason, found, re.DOTALL), found
    rest = without(clean, native.maker.VIDEO)
    scenes = native.read(root)
    for name, frame in unnumbered(rest).items():
        assert frame.equals(unnumbered(scenes)[name]), name
    with pytest.raises(InputError, match=re.escape(native.main)) as caught:
        native.read(native.alone(root))
    assert re.search(case.reason, str(caught.value), re.DOTALL), caught.value
    assert len(str(caught.value)) < 1000
    assert time.process_time() - started < 5


@pytest.mark.spread(4)
@pytest.mark.parametrize("case", SAME, ids=lambda case: case.name)
def test_same_content(native: NativeSet, root: Path, clean: Scenes, case: Case) -> None:
    edit(root / native.main, case.change)
    scenes = native.read(root)
    same_rows(scenes, clean, but=())
    assert scenes.meta.notes == clean.meta.notes


def test_case_33_escaped_names(native: NativeSet, root: Path, clean: Scenes) -> None:
    """A member's name means the same with its first letter as a number."""
    name = native.member
    escaped = f'"\\u{ord(name[0]):04x}{name[1:]}"'
    edit(root / native.main, lambda data: data.replace(f'"{name}"'.encode(), escaped.encode()))
    assert native.read(root) == clean.with_tables(meta=native.read(root).meta)


NUMBERS = {
    "case_24_1e400": b"1e400",
    "case_24_too_large_for_storage": b"-1e39",
    "case_24_text": b'"12.5"',
    "case_24_null": b"null",
    "case_24_true": b"true",
    "case_24_list": b"[1.5]",
    "case_35_integer_of_400_digits": b"9" * 400,
    "case_35_integer_of_20_digits": b"-18446744073709551616",
}


@pytest.mark.slow
@pytest.mark.spread(4)
@pytest.mark.parametrize("name", NUMBERS)
def test_bad_number(native: NativeSet, root: Path, name: str) -> None:
    """A coordinate that is none costs its box, in the set and in the count."""
    native.alone(root)
    clean = native.read(root)
    edit(root / native.main, lambda data: damage.swap(data, _NUMBER, NUMBERS[name]))
    scenes = native.read(root)
    refused = scenes.rejected.filter(table="boxes")
    assert len(refused) == 1
    assert refused["file"].to_list() == [native.main]
    assert native.maker.VIDEO in refused["item"][0]
    assert "frame" in refused["item"][0]
    assert re.search("finite number|outside the image", refused["reason"][0])
    assert len(scenes.boxes) == len(clean.boxes) - 1
    held = unnumbered(scenes)["boxes"]
    assert len(held.join(unnumbered(clean)["boxes"], on=held.columns, nulls_equal=True)) == len(held)
    rows_add_up(scenes)
    with pytest.raises(FindingsError, match=f"boxes: {re.escape(native.main)}"):
        native.read(root, strict=True)


def test_case_39_a_box_upside_down(native: NativeSet, root: Path) -> None:
    native.alone(root)
    count = len(native.read(root).boxes)
    edit(root / native.main, native.change("bad_row"))
    scenes = native.read(root)
    assert len(scenes.boxes) == count - 1
    assert "upside down" in scenes.rejected.filter(table="boxes")["reason"][0]


@pytest.mark.slow
def test_the_file_itself_can_be_named(native: NativeSet, root: Path, clean: Scenes, tmp_path: Path) -> None:
    scenes = native.read(root / native.main)
    assert scenes.videos["video"].to_list() == [native.maker.VIDEO]
    same_rows(scenes, native.read(native.alone(copied(root, tmp_path / "alone"))), but=())
    renamed = root / "renamed.JSON"
    shutil.copy(root / native.main, renamed)
    link = tmp_path / "link.json"
    link.symlink_to(renamed)
    for path in (renamed, link):
        assert (
            unnumbered(native.read(path))["boxes"]
            .drop("video")
            .equals(unnumbered(scenes)["boxes"].drop("video"))
        )
    assert native.read(root / native.main, cache=True) == scenes
    assert native.read(root / native.main, cache=True) == scenes


def test_a_file_that_is_no_file(native: NativeSet, root: Path) -> None:
    damage.as_pipe(root / native.main)
    with pytest.raises(InputError, match="regular file"):
        native.read(root / native.main)
    damage.as_loop(root / native.main)
    with pytest.raises(InputError, match="circle"):
        native.read(root / native.main)
    with pytest.raises(InputError, match="nothing"):
        native.read(root / "absent.json")
