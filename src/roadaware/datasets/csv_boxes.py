"""What is wrong with a row of csv that holds a box, in the same words for every dataset."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from roadaware.datasets.issues import format_text_column
from roadaware.scenes.schema import CORNERS

LONGEST_NAME = 255
MOST_FRAMES = 10_000_000
Reasons = tuple[tuple[pl.Expr, str | pl.Expr], ...]
"""Conditions with what to tell where they hold, as `issues.select_first_reason` takes them."""


def list_width_faults(due: Sequence[int]) -> Reasons:
    """Rows with another number of cells than is due.

    Args:
        due: how many cells a row may have; the table has `cells`, as `io.csv.split_cells` gives it.
    """
    text = pl.format(f"{{}} cells where {format_either(due)} are due", "cells")
    return ((~pl.col("cells").is_in(due), text),)


def list_place_faults(video: str, frame: str, *, called: str = "frame") -> Reasons:
    """Rows that name no video, or no frame from 0.

    Args:
        video: the column of text with its name.
        frame: that of the frame's number; the number itself is the column `frame`.
        called: what the file calls a frame.
    """
    return (
        (pl.col(video).is_null() | (pl.col(video) == ""), "no video is named"),
        (
            pl.col(video).str.len_bytes() > LONGEST_NAME,
            f"the video's name has more than {LONGEST_NAME} bytes",
        ),
        (
            ~pl.col("frame").is_between(0, MOST_FRAMES).fill_null(value=False),
            pl.format(
                f"the {called} should be a whole number from 0 to {MOST_FRAMES:,} and is {{}}",
                format_text_column(frame),
            ),
        ),
    )


def list_corner_faults(raw: Sequence[str], boxed: pl.Expr | None = None) -> Reasons:
    """Rows whose corners are no finite numbers, or upside down.

    Args:
        raw: the columns of text with x1, y1, x2, y2, or x, y, w, h; the corners as numbers are `CORNERS`.
        boxed: which rows have a box (default: all).
    """
    box = format_corners(raw)
    numbers = pl.all_horizontal(pl.col(*CORNERS).is_finite()).fill_null(value=False)
    due = ~numbers if boxed is None else boxed & ~numbers
    return (
        (due, pl.format("a corner is no finite number: '{}'", box)),
        (pl.col("x2_px") < pl.col("x1_px"), pl.format("the box is upside down, x2 < x1: {}", box)),
        (pl.col("y2_px") < pl.col("y1_px"), pl.format("the box is upside down, y2 < y1: {}", box)),
    )


def format_corners(raw: Sequence[str]) -> pl.Expr:
    """The corners as they are written, for messages."""
    return pl.concat_str([pl.col(c).fill_null("").str.slice(0, 40) for c in raw], separator=", ")


def format_either(due: Sequence[int]) -> str:
    """Numbers of cells in words.

    >>> format_either((7, 8))
    '7 or 8'
    """
    return " or ".join(map(str, due))
