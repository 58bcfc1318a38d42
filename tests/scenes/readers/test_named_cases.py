"""Bad inputs by their numbers, for every reader: a typed error, a counted rejection, or the same rows."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import damage
import pytest
from named_cases import costs_the_video
from sets import SETS, NativeSet, copied, edit, rows_add_up, same_rows, unnumbered

from roadaware.errors import FindingsError
from roadaware.scenes.tables import Scenes

Change = Callable[[bytes], bytes]
TAG_END = re.compile(rb">(?=<)")


@dataclass(frozen=True)
class Case:
    """One named bad input: what is done to the main file, and the reason a reader gives for it.

    Args:
        name: number and name.
        change: what is done to the file's bytes.
        reason: pattern in the reason.
        rows: how many boxes it costs (cases that cost rows).
    """

    name: str
    change: Change
    reason: str = ""
    rows: int = 1


def _replace(old: bytes, new: bytes) -> Change:
    return lambda data: damage.swap(data, old, new)


def _encoded(encoding: str, start: bytes = b"") -> Change:
    return lambda data: start + data.decode().encode(encoding)


FILES = [
    Case("case_03_empty_file", lambda data: b"", "empty"),
    Case("case_03_blank_file", lambda data: b" \r\n\t", "empty"),
    Case("case_09_unknown_encoding", lambda d: b'<?xml version="1.0" encoding="utf-7"?>' + d, "encoding"),
    Case("case_09_utf_32", _encoded("utf-32"), ""),
    Case("case_10_invalid_utf_8", _replace(rb"<version>", b"<version>\xff"), r"byte \d+"),
    Case("case_13_truncated_mid_tag", damage.cut_mid_tag, r"(?=.*not well-formed)(?=.*line \d+, column \d+)"),
    Case(
        "case_13_truncated_by_one_byte",
        lambda data: data[:-1],
        r"(?=.*not well-formed)(?=.*line \d+, column \d+)",
    ),
    Case("case_14_billion_laughs", damage.laughs, "DOCTYPE"),
    Case("case_15_quadratic_entity", damage.quadratic, "DOCTYPE"),
    Case("case_16_file_entity", partial(damage.external_entity, url="file:///etc/hostname"), "DOCTYPE"),
    Case("case_17_http_entity", partial(damage.external_entity, url="http://127.0.0.1:9/x"), "DOCTYPE"),
    Case("case_18_external_dtd", partial(damage.external_dtd, url="file:///etc/hostname"), "DOCTYPE"),
    Case("case_18_parameter_entity", partial(damage.parameter_entity, url="file:///etc/x"), "DOCTYPE"),
    Case("case_19_depth_100k", damage.deep, "not well-formed"),
    Case("case_20_12_mb_attribute", damage.long_attribute, "not well-formed"),
    Case("case_21_wrong_root", damage.other_root, "expected the root.*elsewhere"),
    Case("case_21_html_page", lambda data: b"<html><body>404</body></html>", "expected the root.*html"),
    Case("case_26_absurd_length", _replace(rb"<size>\d+", b"<size>9223372036854775808"), "number of frames"),
    Case("case_26_no_length", _replace(rb"<size>\d+</size>", b""), "number of frames"),
]
ROWS = [
    Case("case_22_no_frame", _replace(rb'(?<=<box) frame="\d+"', b""), "no frame number"),
    Case("case_23_upside_down", _replace(rb'xbr="[^"]*"', b'xbr="-1.0"'), "upside down"),
    *(
        Case(f"case_24_{name}", _replace(rb'xtl="[^"]*"', b'xtl="' + text + b'"'), "no finite number")
        for name, text in {
            "nan": b"NaN",
            "inf": b"-inf",
            "1e400": b"1e400",
            "too_large_for_storage": b"-1e39",
            "comma": b"1,5",
            "hexadecimal": b"0x10",
            "empty": b"",
            "words": b"left; DROP TABLE",
        }.items()
    ),
    Case("case_24_missing", _replace(rb' xtl="[^"]*"', b""), "missing"),
    Case("case_25_frame_minus_1", _replace(rb'(?<=<box frame=")\d+', b"-1"), "outside the video"),
    Case("case_25_frame_past_the_end", _replace(rb'(?<=<box frame=")\d+', b"99999"), "outside the video"),
    Case("case_26_frame_2_63", _replace(rb'(?<=<box frame=")\d+', b"9223372036854775808"), "no whole number"),
    Case("case_26_frame_2_63_less_1", _replace(rb'(?<=<box frame=")\d+', b"9223372036854775807"), "outside"),
    Case("case_26_frame_1_5", _replace(rb'(?<=<box frame=")\d+', b"1.5"), "no whole number"),
    Case("case_27_twin_box", damage.twin_box, "second box"),
]
ODD = [
    Case("case_28_unknown_label", _replace(rb'(?<=<track label=")[a-z]+', b"tram"), "track_label"),
    Case("case_28_unknown_tag", _replace(rb'(?<=name="occlusion">)[a-z]+', b"most"), "occlusion"),
    Case("case_28_unknown_width", _replace(rb"<width>\d+", b"<width>wide"), "image sizes"),
    Case("case_28_absurd_width", _replace(rb"<width>\d+", b"<width>0000000000019999999999"), "image sizes"),
    Case("case_28_no_height", _replace(rb"<height>\d+", b"<height>0"), "image sizes"),
]
SAME = [
    Case("case_09_utf_8_mark", lambda data: b"\xef\xbb\xbf" + data),
    Case("case_09_utf_16_little", _encoded("utf-16-le", b"\xff\xfe")),
    Case("case_09_utf_16_big", _encoded("utf-16-be", b"\xfe\xff")),
    Case("case_09_latin_1", lambda data: b"<?xml version='1.0' encoding='ISO-8859-1'?>" + data),
    Case("case_12_unix_lines", lambda data: TAG_END.sub(b">\n", data)),
    Case("case_12_windows_lines", lambda data: TAG_END.sub(b">\r\n", data)),
    Case("case_12_old_mac_lines", lambda data: TAG_END.sub(b">\r", data)),
    Case("case_30_instruction_comment_cdata_namespace", damage.decorated),
    Case("case_30_default_namespace", _replace(rb"(?<=<annotations)", b' xmlns="urn:x"')),
    Case(
        "case_30_other_quotes_and_order",
        _replace(rb'<box frame="(\d+)" keyframe="1"', b"<box keyframe='1' frame='@'"),
    ),
]
XML = pytest.mark.parametrize(
    "native", [n for n, each in SETS.items() if each.maker.FORMAT == "xml"], indirect=True
)


def _each(cases: list[Case]) -> pytest.MarkDecorator:
    """Every reader of XML with every case; an excused one must fail."""
    listed = [
        pytest.param(
            native,
            case,
            id=f"{case.name}-{native.name}",
            marks=[pytest.mark.xfail(reason=native.excused[case.name], strict=True)]
            if case.name in native.excused
            else [],
        )
        for case in cases
        for native in SETS.values()
        if native.maker.FORMAT == "xml"
    ]
    return pytest.mark.parametrize(("each", "case"), listed)


@pytest.fixture
def copy(clean_roots: dict[str, Path], tmp_path: Path) -> Callable[[NativeSet], Path]:
    return lambda each: copied(clean_roots[each.name], tmp_path / "set")


@pytest.fixture
def lone_copy(lone_roots: dict[str, Path], tmp_path: Path) -> Callable[[NativeSet], Path]:
    return lambda each: copied(lone_roots[each.name], tmp_path / "lone")


@pytest.mark.slow
@pytest.mark.spread(2)
@_each(FILES)
def test_damaged_file(
    each: NativeSet, case: Case, copy: Callable[[NativeSet], Path], clean_scenes: dict[str, Scenes]
) -> None:
    root = copy(each)
    edit(root / each.main, case.change)
    started = time.process_time()
    costs_the_video(each, root, clean_scenes[each.name], case.reason)
    assert time.process_time() - started < 10


@pytest.mark.slow
@pytest.mark.spread(2)
@_each(ROWS)
def test_bad_row(
    each: NativeSet, case: Case, lone_copy: Callable[[NativeSet], Path], lone_scenes: dict[str, Scenes]
) -> None:
    root = lone_copy(each)
    edit(root / each.main, case.change)
    clean, scenes = lone_scenes[each.name], each.read(root)
    refused = scenes.rejected.filter(table="boxes")
    assert len(refused) == case.rows
    assert set(refused["file"]) == {each.main}
    assert all(line is not None and line >= 1 for line in refused["line"])
    assert re.search(case.reason, refused["reason"][0])
    rows_add_up(scenes)
    extra = case.name == "case_27_twin_box"
    assert len(scenes.boxes) == len(clean.boxes) - (0 if extra else case.rows)
    held = unnumbered(scenes)["boxes"]
    assert len(held.join(unnumbered(clean)["boxes"], on=held.columns, nulls_equal=True)) == len(held)


@pytest.mark.slow
@pytest.mark.spread(2)
@_each(ODD)
def test_odd_value(
    each: NativeSet, case: Case, lone_copy: Callable[[NativeSet], Path], lone_scenes: dict[str, Scenes]
) -> None:
    root = lone_copy(each)
    edit(root / each.main, case.change)
    clean, scenes = lone_scenes[each.name], each.read(root)
    warnings = scenes.meta.notes["warnings"]
    assert any(case.reason in warning["what"] and warning["count"] >= 1 for warning in warnings)
    assert {name: len(t) for name, t in scenes.tables().items()} == {
        name: len(t) for name, t in clean.tables().items()
    }
    assert scenes != clean
    with pytest.raises(FindingsError, match=re.escape(case.reason)):
        each.read(root, strict=True)


@pytest.mark.slow
@pytest.mark.spread(2)
@_each(SAME)
def test_same_content(
    each: NativeSet, case: Case, lone_copy: Callable[[NativeSet], Path], lone_scenes: dict[str, Scenes]
) -> None:
    root = lone_copy(each)
    first = re.search(rb'<box frame="(\d+)"', (root / each.main).read_bytes())
    assert first is not None
    edit(root / each.main, lambda data: case.change(data).replace(b"'@'", b"'" + first[1] + b"'"))
    scenes = each.read(root)
    same_rows(scenes, lone_scenes[each.name], but=())
    assert scenes.meta.notes == lone_scenes[each.name].meta.notes


@XML
def test_case_29_two_tracks_with_one_id(native: NativeSet, root: Path, clean: Scenes) -> None:
    edit(root / native.main, damage.twin_track)
    scenes = native.read(root)
    same_rows(scenes, clean)
    assert scenes.rejected.filter(table="tubes")["reason"].str.contains("id").all()
    refused = scenes.rejected.group_by("table").len().rows()
    assert dict(refused)["tubes"] == 1
    assert dict(refused)["boxes"] >= 1
    rows_add_up(scenes)
