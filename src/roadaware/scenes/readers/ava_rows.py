"""Rows of AVA's csv files as numbers: video, moment, box and action, and what is wrong with the others."""

from __future__ import annotations

from typing import Any

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.readers.csvlines import cells_of, decode, lines_of
from roadaware.scenes.readers.findings import Findings, first_reason, told
from roadaware.scenes.readers.source import shown
from roadaware.scenes.schema import CORNERS

LONGEST_NAME = 255
MOST_FRAMES = 10_000_000
OUT_OF_PICTURE = "boxes that reach out of the picture (0 to 1), kept as they are"
_NEAR = (-1.0, 2.0)
_COLUMNS = "a row is video,timestamp,x1,y1,x2,y2,action[,person or score]"
_BOX = ("c2", "c3", "c4", "c5")
_RAW: dict[str, Any] = {"line": pl.Int64, "video": pl.String, "frame": pl.Int64}


def raw_rows(data: bytes, where: str) -> pl.DataFrame:
    """The rows of a file as text in the columns `line`, `cells`, `c0` to `c7`.

    Raises:
        InputError: if the file is no text, empty, has a line too long or a quote not closed, or most of its
            rows have neither 7 nor 8 cells.
    """
    table = cells_of(lines_of(decode(data, where), where), where, 8)
    counts = table["cells"].value_counts(sort=True)
    usual = int(counts["cells"][0])
    if usual not in (7, 8):
        row = table.filter(cells=usual).row(0, named=True)
        what = "missing" if usual < 7 else "too many"
        message = f"columns are {what}: expected 7 or 8 in a row, found {usual}"
        raise InputError(message, where=f"{where}:{row['line']}", hint=_COLUMNS)
    return table


def typed(table: pl.DataFrame, file: str, where: str, findings: Findings) -> pl.DataFrame:
    """The rows whose place, box and action can be taken, in the order of the file; others are refused.

    Args:
        table: (n) see `raw_rows`.
        file: its name, for what is refused.
        where: names it in errors.
        findings: takes what is refused (as rows of `boxes`) and counts it.

    Returns:
        (m) `line`, `video` (text), `frame`, the four corners (null for a moment without a box), `action`
        (null for a box without one), `last` (the eighth cell, null where there is none or it is empty).

    Raises:
        InputError: if most boxes are in pixels, or no row can be taken.
    """
    table = table.with_columns(pl.when(pl.nth(range(2, 10)) != "").then(pl.nth(range(2, 10))))
    bare = pl.all_horizontal(pl.col(*_BOX, "c6").is_null())
    corners = {c: pl.col(raw).cast(pl.Float64, strict=False) for c, raw in zip(CORNERS, _BOX, strict=True)}
    values = table.with_columns(
        frame=pl.col("c1").str.replace(r"\.0*$", "").cast(pl.Int64, strict=False),
        action=pl.col("c6").cast(pl.Int64, strict=False),
        bare=bare,
        **corners,
    )
    _refuse_pixels(values, where)
    values = values.with_columns(_reason())
    bad = values.filter(pl.col("reason").is_not_null())
    findings.read["boxes"] += len(bad)
    if len(bad):
        item = pl.format("{}, {}", pl.col("c0").fill_null("?"), pl.col("c1").fill_null("?"))
        findings.reject_rows("boxes", bad.select("line", "reason", item=item, file=pl.lit(file)))
    good = values.filter(pl.col("reason").is_null())
    if good.is_empty():
        first = bad.row(0, named=True)
        message = f"no row can be read; the first: {shown(first['reason'])}"
        raise InputError(message, where=f"{where}:{first['line']}", hint=_COLUMNS)
    out = pl.any_horizontal(~pl.col(*CORNERS).is_between(0, 1))
    count = int(good.select(out.sum()).item() or 0)
    if count:
        row = good.filter(out).row(0, named=True)
        findings.warn(OUT_OF_PICTURE, f"{file}:{row['line']}", count)
    held = good.select("line", pl.col("c0").alias("video"), "frame", *CORNERS, "action", last="c7")
    return held.with_columns(_printable(held["video"]))


def moments(data: bytes, file: str, where: str, findings: Findings) -> pl.DataFrame:
    """The moments that a file of exclusions names: `video` and `frame`, each once.

    Raises:
        InputError: if the file is no text, empty, or no row of it can be taken.
    """
    table = cells_of(lines_of(decode(data, where), where), where, 2)
    values = table.with_columns(
        frame=pl.col("c1").str.replace(r"\.0*$", "").cast(pl.Int64, strict=False),
        bare=pl.lit(True),
    ).with_columns(
        first_reason(
            (pl.col("cells") != 2, pl.format("{} cells where video,timestamp are due", "cells")), *_place()
        )
    )
    bad = values.filter(pl.col("reason").is_not_null())
    findings.read["frames"] += len(bad)
    if len(bad):
        item = pl.format("{}, {}", pl.col("c0").fill_null("?"), pl.col("c1").fill_null("?"))
        findings.reject_rows("frames", bad.select("line", "reason", item=item, file=pl.lit(file)))
    if len(bad) == len(values):
        message = f"no row can be read; the first: {shown(bad['reason'][0])}"
        raise InputError(message, where=f"{where}:{bad['line'][0]}", hint="a row is video,timestamp")
    held = values.filter(pl.col("reason").is_null()).select(pl.col("c0").alias("video"), "frame")
    return held.with_columns(_printable(held["video"])).unique(maintain_order=True)


def _refuse_pixels(values: pl.DataFrame, where: str) -> None:
    """Refuse a file most of whose boxes are in pixels."""
    boxed = values.filter(pl.col("x2_px").is_finite())
    far = boxed.filter(pl.max_horizontal(CORNERS) > _NEAR[1])
    if 2 * len(far) > len(boxed):
        row = far.row(0, named=True)
        box = ", ".join(row[c] or "" for c in _BOX)
        raise InputError(
            f"boxes in pixels where shares of the picture (0 to 1) are due: {shown(box)}",
            where=f"{where}:{row['line']}",
            hint="divide x by the width and y by the height of the picture",
        )


def _reason() -> pl.Expr:
    """Why a row of boxes is refused, null where it is not."""
    numbers = pl.all_horizontal(pl.col(*CORNERS).is_finite()).fill_null(value=False)
    header = (pl.col("line") == 1) & pl.all_horizontal(
        pl.col("c1", *_BOX).str.contains("^[A-Za-z_]", strict=False)
    ).fill_null(value=False)
    boxed, box = ~pl.col("bare"), pl.concat_str([pl.col(c).fill_null("") for c in _BOX], separator=", ")
    return first_reason(
        (~pl.col("cells").is_in([7, 8]), pl.format("{} cells where 7 or 8 are due", "cells")),
        (header, "a header where none is due"),
        *_place(),
        (boxed & ~numbers, pl.format("a corner is no finite number: '{}'", box.str.slice(0, 120))),
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
            pl.format("the timestamp should be a whole number of seconds from 0 and is {}", told("c1")),
        ),
    )


def _printable(names: pl.Series) -> pl.Series:
    """Names of videos fit for a message, as every table has them."""
    distinct = names.unique(maintain_order=True).to_list()
    plain = {name: shown(name, LONGEST_NAME) for name in distinct}
    changed = {name: text for name, text in plain.items() if name != text}
    return names.replace(changed) if changed else names
