"""Rows of AVA's csv files as numbers: video, moment, box and action, and what is wrong with the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers.csvlines import cells_of, decode, is_blank, pieces_of
from roadaware.scenes.readers.findings import Findings, first_reason, told, usual_reason
from roadaware.scenes.readers.source import shown
from roadaware.scenes.schema import CORNERS

LONGEST_NAME = 255
MOST_FRAMES = 10_000_000
OUT_OF_PICTURE = "boxes that reach out of the picture (0 to 1), kept as they are"
_NEAR = (-1.0, 2.0)
_COLUMNS = "a row is video,timestamp,x1,y1,x2,y2,action[,person or score]"
_BOX = ("c2", "c3", "c4", "c5")
_FRAME = pl.col("c1").str.replace(r"\.0*$", "").cast(pl.Int64, strict=False).alias("frame")
_ITEM = pl.format("{}, {}", *[pl.col(c).fill_null("?").str.slice(0, 60) for c in ("c0", "c1")]).alias("item")


def read_rows(data: bytes, file: str, where: str, findings: Findings) -> pl.DataFrame:
    """The rows of a csv of AVA in the order of the file; those that cannot be taken are refused.

    Args:
        data: the file's bytes.
        file: its name, for what is refused.
        where: names it in errors.
        findings: takes what is refused (as rows of `boxes`) and counts it.

    Returns:
        See `taken`.

    Raises:
        InputError: if the file is no text, empty, has a line too long or a quote not closed, most of its rows
            have neither 7 nor 8 cells, or as `taken`.
    """
    pieces = (cells_of(lines, where, 8) for lines in pieces_of(decode(data, where), where))
    return taken(pieces, file, where, findings)


def taken(
    pieces: Iterable[pl.DataFrame],
    file: str,
    where: str,
    findings: Findings,
    *,
    due: tuple[int, ...] = (7, 8),
) -> pl.DataFrame:
    """The rows whose place, box and action can be taken, in their order; others are refused.

    Args:
        pieces: `line`, `cells` (how many there are), `c0` to `c7` (as text).
        file: its name, for what is refused.
        where: names it in errors.
        findings: takes what is refused (as rows of `boxes`) and counts it.
        due: how many cells a row may have.

    Returns:
        (n) `line`, `video` (text), `frame`, the four corners (null for a moment without a box), `action`
        (null for a box without one), `last` (the eighth cell, null where there is none or it is empty).

    Raises:
        InputError: if most rows have another number of cells, most boxes are in pixels, or no row can be
            taken.
    """
    held, refused, seen, known = [], [], _Seen(due), _Names()
    for piece in pieces:
        values = _values(piece, due)
        seen.add(values)
        bad = pl.col("reason").is_not_null()
        refused.append(values.filter(bad).select("line", "reason", "item"))
        good = values.filter(~bad)
        video = known.codes(good["c0"])
        held.append(good.select("line", video, "frame", *CORNERS, "action", last="c7"))
    seen.judge(where)
    bad_rows, rows = pl.concat(refused), pl.concat(held)
    findings.read["boxes"] += len(bad_rows)
    findings.reject_rows("boxes", bad_rows.with_columns(file=pl.lit(file)))
    if rows.is_empty() and len(bad_rows):
        reason, count = usual_reason(bad_rows["reason"])
        message = f"no row can be read; {count:,} of {len(bad_rows):,} because of this: {shown(reason)}"
        raise InputError(message, where=f"{where}:{bad_rows['line'][0]}", hint=_COLUMNS)
    rows = rows.with_columns(known.names().gather(rows["video"]).alias("video"))
    out = rows.select(out=pl.any_horizontal(~pl.col(*CORNERS).is_between(0, 1)))["out"]
    if count := int(out.sum()):
        findings.warn(OUT_OF_PICTURE, f"{file}:{rows['line'][int(out.arg_true()[0])]}", count)
    return rows


@dataclass
class _Seen:
    """What the rows of a file are like as a whole.

    Args:
        due: how many cells a row may have.
        cells: number of cells to the rows that have as many.
        first: number of cells to the first line that has as many.
        boxed: rows with a box.
        far: rows with a box in pixels.
        example: the line and corners of the first of them.
    """

    due: tuple[int, ...]
    cells: Counter[int] = field(default_factory=Counter)
    first: dict[int, int] = field(default_factory=dict)
    boxed: int = 0
    far: int = 0
    example: tuple[int, str] = (0, "")

    def add(self, values: pl.DataFrame) -> None:
        """Count some more rows."""
        for cells, count, line in values.group_by("cells").agg(pl.len(), pl.col("line").min()).iter_rows():
            self.cells[cells] += count
            self.first[cells] = min(line, self.first.get(cells, line))
        boxed = values.filter(pl.all_horizontal(pl.col(*CORNERS).is_finite()))
        far = boxed.filter(pl.max_horizontal(CORNERS) > _NEAR[1])
        if len(far) and not self.far:
            self.example = far.select("line", _box()).row(0)
        self.boxed += len(boxed)
        self.far += len(far)

    def judge(self, where: str) -> None:
        """Refuse a file most of whose rows have another number of cells, or are in pixels.

        Raises:
            InputError: saying which.
        """
        if not self.cells:
            return
        usual = min(self.cells, key=lambda cells: (-self.cells[cells], cells not in self.due, cells))
        if usual not in self.due:
            what = "missing" if usual < self.due[0] else "too many"
            message = f"columns are {what}: expected {_either(self.due)} in a row, found {usual}"
            hint = _COLUMNS if 8 in self.due else "a row has as many cells as the header names"
            raise InputError(message, where=f"{where}:{self.first[usual]}", hint=hint)
        if 2 * self.far > self.boxed:
            raise InputError(
                f"boxes in pixels where shares of the picture (0 to 1) are due: {shown(self.example[1])}",
                where=f"{where}:{self.example[0]}",
                hint="divide x by the width and y by the height of the picture",
            )


class _Names:
    """Names of videos as numbers: in the order in which they first appear."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def codes(self, names: pl.Series) -> pl.Series:
        """(n) the numbers of some names."""
        distinct = names.unique(maintain_order=True)
        for name in distinct:
            self._codes.setdefault(shown(name, LONGEST_NAME), len(self._codes))
        if distinct.is_empty():
            return pl.Series("video", [], dtype=pl.UInt32)
        numbers = [self._codes[shown(name, LONGEST_NAME)] for name in distinct]
        return names.replace_strict(distinct, numbers, return_dtype=pl.UInt32).alias("video")

    def names(self) -> pl.Series:
        """The names, fit for a message, in the order of their numbers."""
        return pl.Series("video", list(self._codes), dtype=pl.String)


def _values(table: pl.DataFrame, due: tuple[int, ...]) -> pl.DataFrame:
    """The cells as numbers, with the `reason` to refuse a row and the `item` that it is called."""
    cells = [f"c{n}" for n in range(8)]
    table = table.with_columns(pl.when(pl.col(*cells) != "").then(pl.col(*cells)))
    corners = {c: pl.col(raw).cast(pl.Float64, strict=False) for c, raw in zip(CORNERS, _BOX, strict=True)}
    values = table.with_columns(
        _FRAME, action=pl.col("c6").cast(pl.Int64, strict=False), bare=_is_bare(), **corners
    )
    return values.with_columns(_reason(due), _ITEM)


def _is_bare() -> pl.Expr:
    """Whether a row names a moment and nothing else."""
    return pl.all_horizontal(pl.col(*_BOX, "c6").is_null())


def with_persons(rows: pl.DataFrame, file: str, where: str, findings: Findings) -> pl.DataFrame:
    """The rows with the number of their `person` as text; -1 is nobody.

    Raises:
        InputError: if the eighth cells are scores.
    """
    number = rows["last"].cast(pl.Float64, strict=False)
    broken = (number != number.floor()) | ~number.is_finite()
    scores = broken.fill_null(value=False)
    if 2 * int(scores.sum()) > len(rows) - rows["last"].null_count():
        first = int(scores.arg_true()[0])
        raise InputError(
            f"the eighth column holds scores such as {shown(rows['last'][first], 40)}, where the number of a "
            "person is due: these are detections, no truth",
            where=f"{where}:{rows['line'][first]}",
            hint="give them as predictions (`--predictions`), and the annotations as truth",
        )
    long = (rows["last"].str.len_bytes() > LONGEST_NAME).fill_null(value=False)
    bad = scores | long
    if bad.any():
        refused = rows.filter(bad)
        findings.read["boxes"] += len(refused)
        reason = pl.format(
            "a person's number should be a whole number and is '{}'", pl.col("last").str.slice(0, 60)
        )
        item = pl.format("{}, {}", "video", "frame")
        findings.reject_rows("boxes", refused.select("line", file=pl.lit(file), item=item, reason=reason))
    kept = rows.filter(~bad)
    return kept.with_columns(person=pl.when(pl.col("last") != "-1").then("last")).drop("last")


def first_cells(data: bytes, where: str) -> list[str]:
    """What stands in the first column below a header, each once.

    Raises:
        InputError: if the file is no text, empty, has a line too long or a quote not closed.
    """
    table = pl.concat([cells_of(lines, where, 1) for lines in pieces_of(decode(data, where), where)])
    return table["c0"][1:].drop_nulls().unique(maintain_order=True).to_list()


def moments(data: bytes, file: str, where: str, findings: Findings, *, header: bool = False) -> pl.DataFrame:
    """The moments that a file of exclusions names: `video` and `frame`, each once; an empty one names none.

    Args:
        data: the file's bytes.
        file: its name, for what is refused.
        where: names it in errors.
        findings: takes what is refused (as rows of `frames`) and counts it.
        header: a first row of words is no moment and not counted.

    Raises:
        InputError: if the file is no text, or no row of it can be taken.
    """
    if is_blank(data):
        return pl.DataFrame(schema={"video": pl.String, "frame": pl.Int64})
    table = pl.concat([cells_of(lines, where, 2) for lines in pieces_of(decode(data, where), where)])
    if header and table["c1"].head(1).str.contains("^[A-Za-z_]").any():
        table = table.slice(1)
    wide = (pl.col("cells") != 2, pl.format("{} cells where video,timestamp are due", "cells"))
    values = table.with_columns(_FRAME).with_columns(first_reason(wide, *_place()), _ITEM)
    bad = values.filter(pl.col("reason").is_not_null())
    findings.read["frames"] += len(bad)
    findings.reject_rows("frames", bad.select("line", "reason", "item", file=pl.lit(file)))
    if len(bad) and len(bad) == len(values):
        message = f"no row can be read; the first: {shown(bad['reason'][0])}"
        raise InputError(message, where=f"{where}:{bad['line'][0]}", hint="a row is video,timestamp")
    held, known = values.filter(pl.col("reason").is_null()), _Names()
    codes = known.codes(held["c0"])
    named = held.select(known.names().gather(codes).alias("video"), "frame")
    return named.unique(maintain_order=True)


def _reason(due: tuple[int, ...]) -> pl.Expr:
    """Why a row of boxes is refused, null where it is not."""
    numbers = pl.all_horizontal(pl.col(*CORNERS).is_finite()).fill_null(value=False)
    header = (pl.col("line") == 1) & pl.all_horizontal(
        pl.col("c1", *_BOX).str.contains("^[A-Za-z_]", strict=False)
    ).fill_null(value=False)
    boxed, box = ~pl.col("bare"), _box()
    return first_reason(
        (~pl.col("cells").is_in(due), pl.format(f"{{}} cells where {_either(due)} are due", "cells")),
        (header, "a header where none is due"),
        *_place(),
        (boxed & ~numbers, pl.format("a corner is no finite number: '{}'", box)),
        (pl.col("x2_px") < pl.col("x1_px"), pl.format("the box is upside down, x2 < x1: {}", box)),
        (pl.col("y2_px") < pl.col("y1_px"), pl.format("the box is upside down, y2 < y1: {}", box)),
        (
            boxed & ~pl.all_horizontal(pl.col(*CORNERS).is_between(*_NEAR)),
            pl.format("a box far outside the picture, in pixels where 0 to 1 is due? {}", box),
        ),
        (
            pl.col("c6").is_not_null() & pl.col("action").is_null(),
            pl.format("the action should be a whole number and is {}", told("c6")),
        ),
    )


def _either(due: tuple[int, ...]) -> str:
    return " or ".join(map(str, due))


def _box() -> pl.Expr:
    """The corners as they are written."""
    return pl.concat_str([pl.col(c).fill_null("").str.slice(0, 40) for c in _BOX], separator=", ")


def _place() -> tuple[tuple[pl.Expr, str | pl.Expr], ...]:
    """What is wrong with the video and the timestamp of a row."""
    return (
        (pl.col("c0").is_null() | (pl.col("c0") == ""), "no video is named"),
        (
            pl.col("c0").str.len_bytes() > LONGEST_NAME,
            f"the video's name has more than {LONGEST_NAME} bytes",
        ),
        (
            ~pl.col("frame").is_between(0, MOST_FRAMES).fill_null(value=False),
            pl.format("the timestamp should be a whole number from 0 and is {}", told("c1")),
        ),
    )
