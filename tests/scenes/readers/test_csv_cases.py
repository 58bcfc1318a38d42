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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutants import CSV_KINDS, Change, mutated
from plain_action_rows import NoFileError, Row, number, rows_of
from sets import SETS, NativeSet, copied, edit, rows_add_up, same_rows, unnumbered, without

from roadaware.datasets.ava import read_rows
from roadaware.datasets.issues import Findings
from roadaware.errors import FindingsError, InputError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

Edit = Callable[[bytes], bytes]
CSV = [name for name, each in SETS.items() if each.maker.FORMAT == "csv"]
EVERY = pytest.mark.parametrize("native", CSV, indirect=True)
_BOX = rb"(?<=,)(0[.][0-9]+),([0-9.]+),([0-9.]+),([0-9.]+),([0-9]+),([0-9]+)"
_UNIT = st.floats(0, 1, exclude_max=True, allow_nan=False)


@dataclass(frozen=True)
class Case:
    """One bad input: what is done to the main file, and a pattern in the reason."""

    name: str
    change: Edit
    reason: str = ""


def cell(place: int, text: bytes) -> Edit:
    """The first row with a box, another text in a cell: 0 to 3 the corners, 4 the action, 5 the person."""

    def change(data: bytes) -> bytes:
        found = re.search(_BOX, data)
        assert found is not None
        return data[: found.start(place + 1)] + text + data[found.end(place + 1) :]

    return change


def front(place: int, text: bytes) -> Edit:
    """The same row with another video (0) or moment (1)."""

    def change(data: bytes) -> bytes:
        found = re.search(rb"(?m)^([^,\n]+),([0-9]+)(?=,0)", data)
        assert found is not None
        return data[: found.start(place + 1)] + text + data[found.end(place + 1) :]

    return change


def each_line(change: Callable[[bytes], bytes]) -> Edit:
    return lambda data: b"".join(change(line) + b"\n" for line in data.splitlines())


def dropped(line: bytes) -> bytes:
    """Without the action and the person."""
    return b",".join([*line.split(b",")[:6], *line.split(b",")[8:]])


def in_pixels(line: bytes) -> bytes:
    cells = line.split(b",")
    boxed = [
        b"%.1f" % (float(text) * 320) if re.fullmatch(rb"[0-9.]+", text) else text for text in cells[2:6]
    ]
    return b",".join([*cells[:2], *boxed, *cells[6:]])


FILES = [
    Case("case_03_empty_file", lambda data: b"", "empty"),
    Case("case_03_blank_file", lambda data: b" \r\n\t", "empty"),
    Case("case_09_utf_32", lambda data: data.decode().encode("utf-32"), "UTF-8|UTF-16"),
    Case("case_10_invalid_utf_8", lambda data: data.replace(b",", b",\xff", 1), r"byte \d+"),
    Case("case_61_missing_columns", each_line(dropped), "(?s)missing"),
    Case("case_62_extra_columns", lambda d: each_line(lambda line: b"7,8,9," + line)(d[len(d) % 1 :]), ""),
    Case("case_64_quote_never_closed", lambda data: data.replace(b"0.", b'"0.', 1), "quote"),
    Case("case_65_a_line_of_8_mb", lambda data: data + b"9" * (8 << 20), "a line of"),
    Case("case_65_one_line", lambda data: data.replace(b"\n", b",") * 400, "a line of"),
    Case("case_66_nul", lambda data: data.replace(b"0.", b"0\x00.", 1), "NUL"),
    Case("case_pixels", each_line(in_pixels), "pixels"),
    Case("case_html_page", lambda data: b"<html><body>404</body></html>", ""),
]
SAME = [
    Case("case_09_utf_8_mark", lambda data: b"\xef\xbb\xbf" + data),
    Case("case_09_utf_16_little", lambda data: b"\xff\xfe" + data.decode().encode("utf-16-le")),
    Case("case_09_utf_16_big", lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be")),
    Case("case_12_windows_lines", lambda data: data.replace(b"\n", b"\r\n")),
    Case("case_12_old_mac_lines", lambda data: data.replace(b"\n", b"\r")),
    Case("case_12_no_line_end", lambda data: data[:-1]),
    Case("case_12_empty_lines", lambda data: data.replace(b"\n", b"\n \n") + b"\n\n"),
    Case("case_12_blanks", lambda data: data.replace(b",", b" , ")),
    Case("case_12_quotes", each_line(lambda line: b",".join(b'"' + c + b'"' for c in line.split(b",")))),
]
ROWS = [
    *(
        Case(f"case_24_{name}", cell(0, text), "no finite number|cells")
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
    Case("case_23_x2_before_x1", cell(2, b"-0.9"), "upside down, x2 < x1"),
    Case("case_23_y2_before_y1", cell(3, b"-0.9"), "upside down, y2 < y1"),
    Case("case_24_one_box_in_pixels", cell(2, b"310.5"), "pixels"),
    Case("case_25_moment_minus_1", front(1, b"-1"), "whole number from 0"),
    Case("case_25_moment_12_5", front(1, b"902.5"), "whole number from 0"),
    Case("case_26_moment_2_63", front(1, b"9223372036854775808"), "whole number from 0"),
    Case("case_63_person_0_5", cell(5, b"0.5"), "person"),
    Case("case_63_action_of_letters", cell(4, b"abc"), "action should be a whole number"),
    Case("case_63_action_12_0", cell(4, b"12.0"), "action should be a whole number"),
    Case("case_11_no_video", front(0, b" "), "no video"),
    Case("case_11_long_video", front(0, b"v" * 256), "255"),
    Case("case_62_an_extra_cell", cell(5, b"1," * 9 + b"2"), "cells where"),
]


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize("case", FILES, ids=lambda case: case.name)
@EVERY
def test_damaged_file(native: NativeSet, root: Path, clean: Scenes, case: Case) -> None:
    edit(root / native.main, case.change)
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
@pytest.mark.parametrize("case", SAME, ids=lambda case: case.name)
@EVERY
def test_same_content(native: NativeSet, root: Path, clean: Scenes, case: Case) -> None:
    edit(root / native.main, case.change)
    scenes = native.read(root)
    same_rows(scenes, clean, but=())
    assert scenes.meta.notes == clean.meta.notes


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize("case", ROWS, ids=lambda case: case.name)
@EVERY
def test_bad_row(native: NativeSet, root: Path, case: Case) -> None:
    native.alone(root)
    clean = native.read(root)
    edit(root / native.main, case.change)
    scenes = native.read(root)
    refused = scenes.rejected.filter(table="boxes")
    assert len(refused) == len(scenes.rejected) == 1
    assert refused["file"].to_list() == [native.main]
    assert refused["line"][0] >= 1
    assert re.search(case.reason, refused["reason"][0]), refused["reason"][0]
    assert len(scenes.labels) == len(clean.labels) - 1
    rows_add_up(scenes)
    with pytest.raises(FindingsError, match=f"boxes: {re.escape(native.main)}:"):
        native.read(root, strict=True)


@EVERY
def test_case_67_a_formula_is_kept_as_text(native: NativeSet, root: Path) -> None:
    formula = '=HYPERLINK("http://127.0.0.1","x")'
    edit(root / native.main, lambda data: native.maker.with_name(data, formula))
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
