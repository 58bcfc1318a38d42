"""Bad csv by its numbers, for every reader of csv: a typed error, counted rows, or the same tables."""

from __future__ import annotations

import csv
import math
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import damage
import numpy as np
import polars as pl
import pytest
from csv_rows import columns, has_header, has_shares, place, row, with_cell, with_video, wrong_cells
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutants import CSV_KINDS, Change, mutated
from plain_action_rows import NoFileError, Row, number, rows_of
from sets import CSV, SETS, NativeSet, copied, edit, rows_add_up, same_rows, unnumbered, without

from roadaware.datasets.ava import read_rows
from roadaware.datasets.issues import Findings
from roadaware.errors import FindingsError, InputError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

Edit = Callable[[NativeSet, bytes], bytes]
EVERY = pytest.mark.parametrize("native", CSV, indirect=True)
_UNIT = st.floats(0, 1, exclude_max=True, allow_nan=False)


@dataclass(frozen=True)
class Case:
    """One bad input: what is done to the main file, and a pattern in the reason."""

    name: str
    change: Edit
    reason: str = ""


def each_line(change: Callable[[bytes], bytes]) -> Edit:
    return lambda native, data: b"".join(change(line) + b"\n" for line in data.splitlines())


def plain(change: Callable[[bytes], bytes]) -> Edit:
    """A change that needs to know nothing of the columns."""
    return lambda native, data: change(data)


def dropped(native: NativeSet, data: bytes) -> bytes:
    """Without the two columns behind the corners, or the last two where there are fewer."""
    start = min(place(native, "y2") + 1, len(columns(native)) - 2)
    lines = [line.split(b",") for line in data.splitlines()]
    return b"".join(b",".join([*cells[:start], *cells[start + 2 :]]) + b"\n" for cells in lines)


def in_pixels(native: NativeSet, data: bytes) -> bytes:
    """All corners in pixels of an image of 320."""
    places = [place(native, corner) for corner in ("x1", "y1", "x2", "y2")]
    lines = [line.split(b",") for line in data.splitlines()]
    for cells in lines[has_header(native) :]:
        for n in places:
            cells[n] = b"%.1f" % (float(cells[n]) * 320) if cells[n] else b""
    return b"".join(b",".join(cells) + b"\n" for cells in lines)


FILES = [
    Case("case_03_empty_file", plain(lambda data: b""), "empty"),
    Case("case_03_blank_file", plain(lambda data: b" \r\n\t"), "empty"),
    Case("case_09_utf_32", plain(lambda data: data.decode().encode("utf-32")), "UTF-8|UTF-16"),
    Case("case_10_invalid_utf_8", plain(lambda data: data.replace(b",", b",\xff", 1)), r"byte \d+"),
    Case("case_61_missing_columns", dropped, "(?s)missing"),
    Case("case_62_extra_columns", each_line(lambda line: b"7,8,9," + line)),
    Case("case_64_quote_never_closed", with_cell("x1", b'"0.5'), "quote"),
    Case("case_65_a_line_of_8_mb", plain(lambda data: data + b"9" * (8 << 20)), "a line of"),
    Case("case_65_one_line", plain(lambda data: data.replace(b"\n", b",") * 400), "a line of"),
    Case("case_66_nul", with_cell("x1", b"0\x00.5"), "NUL"),
    Case("case_html_page", plain(lambda data: b"<html><body>404</body></html>")),
]
FILE_OF_SHARES = Case("case_pixels", in_pixels, "pixels")
SAME = [
    Case("case_09_utf_8_mark", plain(lambda data: b"\xef\xbb\xbf" + data)),
    Case("case_09_utf_16_little", plain(lambda data: b"\xff\xfe" + data.decode().encode("utf-16-le"))),
    Case("case_09_utf_16_big", plain(lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be"))),
    Case("case_12_windows_lines", plain(lambda data: data.replace(b"\n", b"\r\n"))),
    Case("case_12_old_mac_lines", plain(lambda data: data.replace(b"\n", b"\r"))),
    Case("case_12_no_line_end", plain(lambda data: data[:-1])),
    Case("case_12_empty_lines", plain(lambda data: data.replace(b"\n", b"\n \n") + b"\n\n")),
    Case("case_12_blanks", plain(lambda data: data.replace(b",", b" , "))),
    Case("case_12_quotes", each_line(lambda line: b",".join(b'"' + c + b'"' for c in line.split(b",")))),
]
ROWS = [
    *(
        Case(f"case_24_{name}", with_cell("x1", text), "no finite number|cells")
        for name, text in {
            "nan": b"nan",
            "inf": b"-inf",
            "1e400": b"1e400",
            "comma": b"0,5",
            "quoted_comma": b'"0,5"',
            "underscore": b"0_1",
            "hexadecimal": b"0x0",
            "foreign_digits": "０.５".encode(),
            "empty": b"",
            "words": b"left; DROP TABLE",
        }.items()
    ),
    Case("case_23_x2_before_x1", with_cell("x2", b"-0.9"), "upside down, x2 < x1"),
    Case("case_23_y2_before_y1", with_cell("y2", b"-0.9"), "upside down, y2 < y1"),
    Case("case_25_frame_minus_1", with_cell("frame", b"-1"), "whole number from 0"),
    Case("case_25_frame_12_5", with_cell("frame", b"902.5"), "whole number from 0"),
    Case("case_26_frame_2_63", with_cell("frame", b"9223372036854775808"), "whole number from 0"),
    Case("case_11_no_video", with_cell("video", b" "), "no video"),
    Case("case_11_long_video", with_cell("video", b"v" * 256), "255"),
    Case("case_62_an_extra_cell", with_cell("x1", b"1," * 9 + b"2"), "cells where"),
]
ROW_OF_SHARES = Case("case_24_one_box_in_pixels", with_cell("x2", b"310.5"), "pixels")


def files(native: NativeSet) -> list[Case]:
    """Bad files: those of every set, and those of one whose corners are shares."""
    return [*FILES, FILE_OF_SHARES] if has_shares(native) else FILES


def rows(native: NativeSet) -> list[Case]:
    """Bad rows: those of every set, of one whose corners are shares, and of columns that the set alone has."""
    own = [Case(name, with_cell(c, text), why) for name, (c, text, why) in wrong_cells(native).items()]
    return [*ROWS, *([ROW_OF_SHARES] if has_shares(native) else []), *own]


def _each(cases: Callable[[NativeSet], list[Case]]) -> pytest.MarkDecorator:
    """Every reader of csv with every case that it has; an excused one must fail."""
    listed = [
        pytest.param(
            name,
            case,
            id=f"{name}-{case.name}",
            marks=[pytest.mark.xfail(reason=SETS[name].excused[case.name], strict=True)]
            if case.name in SETS[name].excused
            else [],
        )
        for name in CSV
        for case in cases(SETS[name])
    ]
    return pytest.mark.parametrize(("native", "case"), listed, indirect=["native"])


def changed(native: NativeSet, root: Path, case: Case) -> None:
    edit(root / native.main, lambda data: case.change(native, data))


@pytest.mark.slow
@pytest.mark.spread(2)
@_each(files)
def test_damaged_file(native: NativeSet, root: Path, clean: Scenes, case: Case) -> None:
    changed(native, root, case)
    started = time.process_time()
    found = native.refusal(root)
    assert re.search(case.reason, found, re.DOTALL), found
    if not native.sole:
        rest = without(clean, native.maker.VIDEO)
        for name, frame in unnumbered(rest).items():
            assert frame.equals(unnumbered(native.read(root))[name]), name
    with pytest.raises(InputError, match=re.escape(native.main)) as caught:
        native.read(native.alone(root))
    assert re.search(case.reason, str(caught.value), re.DOTALL), caught.value
    if re.match("case_6[4-6]", case.name):
        assert re.search(r"\.csv:\d+: ", str(caught.value))
    assert len(str(caught.value)) < 1500
    assert time.process_time() - started < 5


@pytest.mark.slow
@_each(lambda native: SAME)
def test_same_content(native: NativeSet, root: Path, clean: Scenes, case: Case) -> None:
    changed(native, root, case)
    scenes = native.read(root)
    same_rows(scenes, clean, but=())
    assert scenes.meta.notes == clean.meta.notes


@pytest.mark.slow
@pytest.mark.spread(2)
@_each(rows)
def test_bad_row(native: NativeSet, root: Path, case: Case) -> None:
    native.alone(root)
    clean = native.read(root)
    changed(native, root, case)
    scenes = native.read(root)
    refused = scenes.rejected.filter(table="boxes")
    assert len(refused) == len(scenes.rejected) == 1
    assert refused["file"].to_list() == [native.main]
    assert refused["line"][0] >= 1
    assert re.search(case.reason, refused["reason"][0]), refused["reason"][0]
    # A row of AVA is a label: its box may have others.
    table = "labels" if len(clean.labels) else "boxes"
    assert len(scenes.tables()[table]) == len(clean.tables()[table]) - 1
    rows_add_up(scenes)
    with pytest.raises(FindingsError, match=f"boxes: {re.escape(native.main)}:"):
        native.read(root, strict=True)


@EVERY
def test_case_27_a_row_that_stands_twice_is_refused_or_told(native: NativeSet, root: Path) -> None:
    edit(root / native.main, lambda data: data + row(native, data))
    with pytest.raises(FindingsError, match=re.escape(native.main)):
        native.read(root, strict=True)


@pytest.mark.parametrize("native", [name for name in CSV if has_header(SETS[name])], indirect=True)
def test_a_header_without_rows_is_refused_or_told(native: NativeSet, root: Path) -> None:
    edit(root / native.main, lambda data: data.splitlines(keepends=True)[0])
    with pytest.raises((FindingsError, InputError), match=re.escape(native.main)):
        native.read(native.alone(root), strict=True)


@EVERY
def test_case_67_a_formula_is_kept_as_text(native: NativeSet, root: Path) -> None:
    formula = '=HYPERLINK("http://127.0.0.1","x")'
    edit(root / native.main, lambda data: with_video(native, data, formula))
    assert formula in native.read(root).videos["video"].to_list()


@EVERY
def test_the_file_itself_can_be_named(native: NativeSet, root: Path, tmp_path: Path) -> None:
    scenes = native.read(root / native.main)
    same_rows(scenes, native.read(native.alone(copied(root, tmp_path / "alone"))), but=("rejected",))
    renamed = root / "renamed.CSV"
    shutil.copy(root / native.main, renamed)
    link = tmp_path / "link.csv"
    link.symlink_to(renamed)
    for path in (renamed, link):
        same_rows(native.read(path), scenes, but=("rejected", "videos"))
    assert native.read(root / native.main, cache=True) == scenes
    assert native.read(root / native.main, cache=True) == scenes


@EVERY
def test_a_file_that_is_no_file(native: NativeSet, root: Path) -> None:
    damage.as_pipe(root / native.main)
    with pytest.raises(InputError, match="regular file"):
        native.read(root / native.main)
    damage.as_loop(root / native.main)
    with pytest.raises(InputError, match="circle"):
        native.read(root / native.main)
    with pytest.raises(InputError, match="nothing"):
        native.read(root / "absent.csv")


def test_numbers_are_those_of_python() -> None:
    """Every decimal gives the double that Python's own reading gives, to the last bit."""
    rng = np.random.default_rng(7)
    texts = [repr(float(value)) for value in rng.random(2000)]
    for _ in range(4000):
        digits = "".join(map(str, rng.integers(0, 10, rng.integers(1, 26))))
        sign, power = rng.choice(["", "-", "+"]), rng.choice(["", "e-7", "E0", "e-320"])
        texts.append(f"{sign}{rng.integers(0, 2)}.{digits}{power}")
    texts += ["1e-400", "-0", ".5", "1.", "4.9e-324", "0.1000000000000000055511151231257827", "1e0", "-0.0"]
    expected = [float(text) for text in texts]
    assert all(-2 < value < 2 for value in expected)
    found = pl.Series(texts).cast(pl.Float64, strict=False).to_list()
    assert [(v, math.copysign(1, v)) for v in found] == [(v, math.copysign(1, v)) for v in expected]
    refused = ["1_0", "0x1", "１", "", " ", "1e", "e5", "--1", "1,5", "0.1f", "infinit"]
    assert pl.Series(refused).cast(pl.Float64, strict=False).to_list() == [None] * len(refused)
    assert [number(text) for text in refused] == [None] * len(refused)


def fast(data: bytes) -> tuple[list[Row], list[int]]:
    """What the reader takes, as the plain reader gives it."""
    findings = Findings()
    rows = read_rows(data, "a.csv", "a.csv", findings)
    taken = [
        Row(
            r["line"],
            r["video"],
            r["frame"],
            None if r["x1_px"] is None else tuple(r[c] for c in CORNERS),
            *rest,
        )
        for r in rows.to_dicts()
        for rest in [(r["action"], r["last"])]
    ]
    lines = [row.get("line") for row in findings.table().to_dicts()]
    return taken, sorted(lines)


def mostly_other(text: str) -> bool:
    """Whether more rows have one wrong number of cells than any right one: then it is another file."""
    cells = Counter(len(row) for row in csv.reader(text.splitlines()) if row)
    usual = max(cells, key=lambda n: (cells[n], n in (7, 8)))
    return usual not in (7, 8)


@pytest.mark.slow
def test_the_fast_reader_agrees_with_a_plain_one_on_mutants(tmp_path: Path) -> None:
    root = SETS["ava"].make(tmp_path / "set", frames=4)
    original = (root / SETS["ava"].main).read_bytes()
    ended: Counter[str] = Counter()
    one = st.tuples(st.sampled_from(sorted(CSV_KINDS)), _UNIT, _UNIT)
    quiet = settings(
        deadline=None,
        database=None,
        derandomize=True,
        max_examples=250,
        suppress_health_check=list(HealthCheck),
    )

    @quiet
    @given(st.lists(one, min_size=1, max_size=4))
    def run(changes: list[Change]) -> None:
        data = mutated(original, changes)
        try:
            text = data.decode()
            taken, refused = rows_of(text)
        except (UnicodeDecodeError, NoFileError):
            with pytest.raises(InputError):
                read_rows(data, "a.csv", "a.csv", Findings())
            ended["refused"] += 1
            return
        if not taken or mostly_other(text):
            with pytest.raises(InputError):
                read_rows(data, "a.csv", "a.csv", Findings())
            return
        printable = [row for row in taken if row.video.isprintable()]
        found, lost = fast(data)
        assert [row for row in found if row.video in {each.video for each in printable}] == printable
        assert lost == refused
        ended["rows refused" if refused else "all taken"] += 1

    run()
    assert min(ended[name] for name in ("refused", "rows refused", "all taken")) >= 10, ended
