"""A csv of boxes written: `boxes.csv` with a row for each box, as `datasets.tracker_csv` reads it and pandas opens it.

Corners are pixels from 0, the right edge excluded, with as many decimals as they need; frames count from 0, which
`dataset.toml` says with the rate and size that all videos share. A frame in which there is nothing has a row without a box.
"""

from __future__ import annotations

import polars as pl

from roadaware.datasets.facts import FACTS
from roadaware.formats.boxes.flat import Files, FlatBoxes, format_corner, format_facts
from roadaware.io.csv import format_csv
from roadaware.scenes.schema import CORNERS

MAIN = "boxes.csv"


def write_csv(held: FlatBoxes) -> Files:
    """Names and contents of the files."""
    names = dict(enumerate(held.classes))
    label = (
        pl.col("label").replace_strict(names, return_dtype=pl.String) if names else pl.lit(None, pl.String)
    )
    corners = dict(zip(("x1", "y1", "x2", "y2"), (format_corner(pl.col(c)) for c in CORNERS), strict=True))
    rows = held.boxes.select(
        "v", "video", "frame", pl.col("name").alias("id"), label.alias("class"), "score", **corners,
        ignore=pl.when(pl.col("ignore").fill_null(value=False)).then(pl.lit("1")).otherwise(pl.lit("")),
    )  # fmt: skip
    empty = held.frames.join(rows, on=["v", "frame"], how="anti").select("v", "video", "frame")
    rows = pl.concat([rows, empty], how="diagonal").sort("v", "frame", maintain_order=True).drop("v")
    if held.scored:
        # Of a frame in which there is nothing no score is said.
        rows = rows.with_columns(pl.col("score").cast(pl.String).fill_null(""))
    else:
        rows = rows.drop("score")
    if not (rows["ignore"] == "1").any():
        rows = rows.drop("ignore")
    yield MAIN, format_csv(rows).encode()
    yield FACTS, b"first_frame = 0\n" + (format_facts(held, "fps", "size") or b"")
