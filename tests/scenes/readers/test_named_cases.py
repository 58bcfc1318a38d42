"""Bad inputs by their numbers, for every reader: a typed error, a counted rejection, or the same rows."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import damage
import polars as pl
import pytest
from sets import SETS, NativeSet, copied, edit, rows_add_up, same_rows, unnumbered, without

from roadaware.errors import DatasetNotFoundError, FindingsError, InputError
from roadaware.scenes.readers import source as source_module
from roadaware.scenes.tables import Scenes

Change = Callable[[bytes], bytes]
BOX = rb"<box\b[^>]*>.*?</box>"
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


def _costs_the_video(each: NativeSet, root: Path, clean: Scenes, reason: str) -> None:
    """Among many the damaged file is refused, named and counted; alone it is an error."""
    found = each.refusal(root)
    assert re.search(reason, found, re.DOTALL), found
    if each.sole:
        return
    scenes = each.read(root)
    rest = without(clean, each.maker.VIDEO)
    for name, frame in unnumbered(rest).items():
        assert frame.equals(unnumbered(scenes)[name]), name
    with pytest.raises(InputError, match=re.escape(each.main)) as caught:
        each.read(each.alone(root))
    assert re.search(reason, str(caught.value), re.DOTALL), caught.value


@pytest.fixture
def lone_copy(lone_roots: dict[str, Path], tmp_path: Path) -> Callable[[NativeSet], Path]:
    return lambda each: copied(lone_roots[each.name], tmp_path / "lone")


@pytest.mark.spread(2)
@_each(FILES)
def test_damaged_file(
    each: NativeSet, case: Case, copy: Callable[[NativeSet], Path], clean_scenes: dict[str, Scenes]
) -> None:
    root = copy(each)
    edit(root / each.main, case.change)
    started = time.process_time()
    _costs_the_video(each, root, clean_scenes[each.name], case.reason)
    assert time.process_time() - started < 10


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


def test_case_01_missing_path(native: NativeSet, root: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match=re.escape(root.name)) as caught:
        native.read(root / "absent")
    assert "nothing" in str(caught.value)


def test_case_01_missing_parts(native: NativeSet, tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    with pytest.raises(DatasetNotFoundError, match=r"annotations(.|\n)*clips/"):
        native.read(tmp_path)


def test_case_01_empty_folder(native: NativeSet, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DatasetNotFoundError, match="saw: nothing"):
        native.read(empty)


def test_case_02_folder_for_a_file(native: NativeSet, root: Path, clean: Scenes) -> None:
    damage.as_folder(root / native.main)
    assert "folder" in native.refusal(root)
    assert native.sole or len(native.read(root).videos) == len(clean.videos) - 1


@pytest.mark.parametrize("content", [b"", b"PK", b"<annotations/>", b"\0" * 100])
def test_case_02_file_for_a_folder(native: NativeSet, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "set"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"expected a folder|neither a folder"):
        native.read(path)


@pytest.fixture
def as_stranger() -> Iterator[Path]:
    """A folder open to all, while this process has lost its rights over files of others."""
    if os.geteuid() != 0:
        pytest.skip("only a privileged process can give rights up and take them back")
    folder = Path(tempfile.mkdtemp(prefix="stranger-"))
    folder.chmod(0o755)
    yield folder
    os.seteuid(0)
    shutil.rmtree(folder)


def test_case_04_no_permission(native: NativeSet, root: Path, as_stranger: Path) -> None:
    moved = copied(root, as_stranger / "set")
    (moved / native.main).chmod(0o000)
    native.read(root)
    os.seteuid(65534)
    assert "permission" in native.refusal(moved)


def test_case_05_pipe_for_a_file(native: NativeSet, root: Path, clean: Scenes) -> None:
    damage.as_pipe(root / native.main)
    _costs_the_video(native, root, clean, "not a regular file")


def test_case_05_device_for_the_set(native: NativeSet) -> None:
    with pytest.raises(InputError, match="not a regular file"):
        native.read(Path("/dev/zero"))


def test_case_06_link_in_a_circle(native: NativeSet, root: Path, clean: Scenes) -> None:
    damage.as_loop(root / native.main)
    _costs_the_video(native, root, clean, "circle")


def test_case_07_link_out_of_the_root(native: NativeSet, root: Path, tmp_path: Path, clean: Scenes) -> None:
    damage.as_link_out(root / native.main, tmp_path / "outside")
    _costs_the_video(native, root, clean, "leads out")


def test_case_07_link_inside_the_root(native: NativeSet, root: Path, clean: Scenes) -> None:
    damage.as_link_out(root / native.main, root / "kept")
    assert native.read(root) == clean


def test_case_08_file_shrinks_while_read(
    native: NativeSet, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fstat

    def shrinking(handle: int) -> os.stat_result:
        status = real(handle)
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        if path.startswith(str(root)) and path.endswith(native.main):
            os.truncate(path, status.st_size // 2)
        return status

    monkeypatch.setattr(source_module.os, "fstat", shrinking)
    assert "changed while" in native.refusal(root)


NAMES = {
    "newline": "video_\n9",
    "semicolon": "video_;rm -rf ~;9",
    "emoji": "video_😀",
    "escape": "video_\x1b[2J9",
    "right_to_left": "video_\u202egpj",
    "script": "video_<script>alert(1)</script>".replace("/", ""),
    "template": "video_{{7*7}}",
    "255_bytes": "v" * 300,
}


@pytest.mark.spread(4)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_case_11_hostile_name(native: NativeSet, root: Path, clean: Scenes, name: str) -> None:
    if hasattr(native.maker, "with_video"):
        native.maker.with_video(root, name)
    else:
        main = Path(native.main)
        stem = native.maker.VIDEO.rpartition("/")[2]
        suffix = main.name.removeprefix(stem)
        other = main.with_name(name.encode()[: 255 - len(suffix)].decode() + suffix)
        shutil.copy(root / main, root / other)
    count = len(native.read(root).videos)
    scenes = native.read(root)
    assert count == len(scenes.videos)
    assert any(
        shown.startswith(("video_", "set01/video_", "v", "set01/v")) for shown in scenes.videos["video"]
    )
    _is_printable(scenes.tables())
    rows_add_up(scenes)


def test_case_11_name_that_is_no_text(native: NativeSet, root: Path) -> None:
    main = root / native.main
    suffix = main.name.removeprefix(native.maker.VIDEO.rpartition("/")[2]).encode()
    shutil.copy(os.fsencode(main), os.fsencode(main.parent) + b"/video_\xff\xfe" + suffix)
    scenes = native.read(root)
    _is_printable(scenes.tables())
    rows_add_up(scenes)


def _is_printable(tables: dict[str, pl.DataFrame]) -> None:
    for name in ("videos", "rejected"):
        for column in tables[name].select(pl.col(pl.String)):
            for text in column.drop_nulls().to_list():
                assert not re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e]", text), text


ZIPS: dict[str, tuple[Callable[[Path, NativeSet], Any], str]] = {
    "case_69_climbing_name": (lambda z, n: damage.with_member(z, "../evil.xml", b"<a/>"), "leads out"),
    "case_69_absolute_name": (lambda z, n: damage.with_member(z, "/etc/evil.xml", b"<a/>"), "leads out"),
    "case_69_drive_name": (lambda z, n: damage.with_member(z, "C:\\evil.xml", b"<a/>"), "leads out"),
    "case_69_backslashes": (lambda z, n: damage.with_member(z, "a\\..\\..\\evil", b"<a/>"), "leads out"),
    "case_70_link": (lambda z, n: damage.with_link(z, "annotations/link.xml", "/etc/passwd"), "link"),
    "case_71_ratio": (lambda z, n: damage.with_bomb(z, "annotations/bomb.xml"), "unpack to"),
    "case_71_total": (lambda z, n: damage.with_false_size(z, n.main, (1 << 32) - 2), "unpack to"),
    "case_73_encrypted": (lambda z, n: damage.encrypted(z), "encrypted"),
    "case_74_no_directory": (lambda z, n: damage.without_directory(z), "whole zip archive"),
    "case_75_twice": (lambda z, n: damage.with_member(z, n.main, b"<annotations/>"), "twice"),
    "case_76_overlap": (lambda z, n: damage.overlapping(z, n.main, (*n.others, "other.bin")[0]), "overlaps"),
}


@pytest.mark.spread(4)
@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("case", ZIPS)
def test_bad_zip(native: NativeSet, root: Path, tmp_path: Path, case: str) -> None:
    (root / "other.bin").write_bytes(b"other")
    archive = damage.packed(root, tmp_path / "set.zip")
    change, reason = ZIPS[case]
    change(archive, native)
    with pytest.raises(InputError, match=reason) as caught:
        native.read(archive)
    assert str(archive) in str(caught.value)


def test_case_72_nested_zip_is_not_entered(native: NativeSet, root: Path, tmp_path: Path) -> None:
    inner = damage.packed(root, tmp_path / "inner.zip")
    outer = damage.with_member(
        damage.packed(tmp_path / "none", tmp_path / "o.zip"), "i.zip", inner.read_bytes()
    )
    with pytest.raises(DatasetNotFoundError, match="annotations"):
        native.read(outer)


def test_case_72_nested_zip_beside_the_data_is_left_alone(
    native: NativeSet, root: Path, tmp_path: Path, clean: Scenes
) -> None:
    inner = damage.packed(root, tmp_path / "inner.zip")
    archive = damage.with_member(damage.packed(root, tmp_path / "set.zip"), "inner.zip", inner.read_bytes())
    assert native.read(archive) == clean


def test_case_74_bad_checksum_costs_the_file(native: NativeSet, root: Path, tmp_path: Path) -> None:
    archive = damage.flipped_in_member(damage.packed(root, tmp_path / "set.zip"), native.main)
    assert "damaged" in native.refusal(archive)


@pytest.mark.parametrize("size", [1, 10_000_000])
def test_case_76_false_size_costs_the_file(native: NativeSet, root: Path, tmp_path: Path, size: int) -> None:
    archive = damage.with_false_size(damage.packed(root, tmp_path / "set.zip"), native.main, size)
    assert re.search("damaged|promises", native.refusal(archive))
