"""Csv that would exhaust the machine or mean something to a sheet: refused fast or kept as data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from csv_rows import columns, has_header, row, with_video
from sets import CSV, SETS, NativeSet, copied, edit, rows_add_up, tree
from test_hostile_text import PAYLOADS, UNPRINTABLE

from roadaware.datasets import read
from roadaware.errors import FindingsError, InputError
from roadaware.formats.actions import read_action_predictions
from roadaware.scenes.store import open_scenes, save

MEBIBYTE = 1 << 20


@pytest.fixture(params=CSV)
def native(request: pytest.FixtureRequest) -> NativeSet:
    """Each set of csv files."""
    return SETS[request.param]


def number(native: NativeSet) -> str:
    """A column of whole numbers: that of the action, where there is one."""
    return "action" if "action" in columns(native) else "frame"


BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "a_line_of_100_mb": lambda data: data + b"7" * (100 * MEBIBYTE),
    "a_line_of_8_mb_of_commas": lambda data: data + b"," * (8 * MEBIBYTE) + b"\n",
    "a_quote_never_closed_before_8_mb": lambda data: data + b'"' + b"1,2\n" * (2 * MEBIBYTE),
    "nul_behind_8_mb": lambda data: data + b" " * 60_000 + (b"\n" * 8 * MEBIBYTE) + b"\0",
    "a_header_of_60k_columns": lambda data: b"a," * 30_000 + b"b\n" + data,
}
HARMLESS: dict[str, Callable[[NativeSet, bytes], bytes]] = {
    "8_mb_of_empty_lines": lambda n, data: data + b"\n" * (8 * MEBIBYTE),
    "a_corner_of_60k_digits": lambda n, data: data + row(n, data, x1=b"0." + b"1" * 60_000),
    "a_number_of_60k_digits": lambda n, data: data + row(n, data, **{number(n): b"9" * 60_000}),
    "a_name_of_60k_letters": lambda n, data: data + row(n, data, video=b"v" * 60_000),
    "20k_bad_rows": lambda n, data: data + row(n, data, frame=b"x9") * 20_000,
}


def withstand(
    native: NativeSet, root: Path, watched: Callable[..., list[dict[str, Any]]], cases: list[str]
) -> None:
    """Read the set with each bomb in one process that watches itself."""
    native.alone(root)
    places = []
    for name in cases:
        place = copied(root, root.parent / name)
        if name in BOMBS:
            edit(place / native.main, BOMBS[name])
        else:
            edit(place / native.main, lambda data, name=name: HARMLESS[name](native, data))
        places.append(place)
    for name, place, answer in zip(cases, places, watched(native, places), strict=True):
        size = (place / native.main).stat().st_size / MEBIBYTE
        (place / native.main).unlink()
        assert answer["ended"] == ("InputError" if name in BOMBS else "read"), (name, answer["text"][:300])
        assert answer["cpu_s"] < 4, (name, answer["cpu_s"])
        assert answer["grown_mb"] < 96 + 8 * size, (name, answer["grown_mb"])
        assert answer["seen"] == [], name
        if name in BOMBS:
            assert len(answer["text"]) < 2000, name


@pytest.mark.slow
def test_bombs_are_refused_fast_and_in_little_memory(
    native: NativeSet, root: Path, watched: Callable[..., list[dict[str, Any]]]
) -> None:
    """Half of the bombs for each of the formats; that of the header for those that have a header."""
    withstand(native, root, watched, list(BOMBS | HARMLESS)[not has_header(native) :: 2])


@pytest.mark.slow
def test_all_bombs_are_refused_fast_and_in_little_memory(
    native: NativeSet, root: Path, watched: Callable[..., list[dict[str, Any]]]
) -> None:
    spared = () if has_header(native) else ("a_header_of_60k_columns",)
    withstand(native, root, watched, [name for name in BOMBS | HARMLESS if name not in spared])


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_name_is_data_and_messages_about_it_are_printable(
    native: NativeSet, root: Path, tmp_path: Path, payload: str
) -> None:
    native.alone(root)
    known = set(native.read(root).videos["video"])
    edit(root / native.main, lambda data: with_video(native, data, payload))
    before = tree(root)
    scenes = native.read(root)
    assert tree(root) == before
    rows_add_up(scenes)
    names = scenes.videos["video"].to_list()
    if len(payload) > 255:
        assert scenes.rejected["reason"].str.contains("255").all()
    else:
        assert len(set(names) - known) == 1
        assert payload in names or UNPRINTABLE.search(payload)
    told = [str(row) for row in scenes.rejected.rows()] + [str(scenes.meta.notes["warnings"]), *names]
    assert not any(UNPRINTABLE.search(text) for text in told)
    save(scenes, tmp_path / "saved")
    assert open_scenes(tmp_path / "saved") == scenes


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_cell_is_refused_in_printable_words(native: NativeSet, root: Path, payload: str) -> None:
    native.alone(root)
    cell = b'"' + payload.replace('"', '""').encode() + b'"'
    edit(
        root / native.main,
        lambda data: data + row(native, data, x1=cell) + row(native, data, **{number(native): cell}),
    )
    scenes = native.read(root)
    assert len(scenes.rejected) == 2
    for text in scenes.rejected["item"].to_list() + scenes.rejected["reason"].to_list():
        assert not UNPRINTABLE.search(text)
        assert len(text) < 500
    with pytest.raises(FindingsError) as caught:
        native.read(root, strict=True)
    assert not UNPRINTABLE.search(str(caught.value))


@pytest.mark.slow
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_names_in_predictions_are_data(tmp_path: Path, payload: str) -> None:
    native = SETS["ava"]
    truth = native.read(native.make(tmp_path / "set"))
    path = tmp_path / "predictions.csv"
    rows = native.maker.row_of(payload) + native.maker.row_of("video_0002").replace(",3\n", ",0.5\n")
    path.write_text(rows.replace(",3\n", ",0.25\n"), encoding="utf-8")
    found = read_action_predictions(path, truth)
    assert len(found.labels) + len(found.rejected) == 2
    assert not any(UNPRINTABLE.search(str(text)) for text in [*found.boxes["video"], found.meta.notes])


def test_a_file_named_as_an_option_may_lie_anywhere_and_nothing_else_is_opened(tmp_path: Path) -> None:
    """What lies elsewhere is read because the user names it; a label map that is none is refused by name."""
    native = SETS["ava"]
    root = native.make(tmp_path / "set")
    aside = tmp_path / "map\x1b[2J.pbtxt"
    aside.write_bytes(b"PK\x03\x04" + b"\xff" * 40)
    with pytest.raises(InputError, match="no text but a zip") as caught:
        read("ava", root, labels=aside, cache=False)
    assert not UNPRINTABLE.search(str(caught.value))
    with pytest.raises(InputError, match="regular file"):
        read("ava", root, labels="/dev/zero", cache=False)
