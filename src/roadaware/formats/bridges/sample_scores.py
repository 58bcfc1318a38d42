"""Scores of pedestrians' samples in a data frame, found by who and when instead of by their order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.formats.bridges.box_arrays import parse_numbers
from roadaware.scenes.tables import Scenes

TIMES = ("start_frame", "end_frame", "tte_frames")
_NAMES = ("video", "pedestrian")
KEYS = ("sample", *_NAMES, *TIMES)


def list_score_columns(names: list[str]) -> list[str]:
    """The columns with scores: `score`, or `score_0`, `score_1`, ... of several classes.

    Raises:
        InputError: if there are none.
    """
    if "score" in names:
        return ["score"]
    numbered = [name for name in names if re.fullmatch("score_[0-9]+", name)]
    found = [f"score_{k}" for k in range(len(numbered))]
    if not found or {*found} != {*numbered}:
        raise InputError(
            f"expected a column score, or score_0, score_1, ... of several classes, found {', '.join(names)}",
            hint="rename them: table.rename(columns={'probability': 'score'})",
        )
    return found


def match_sample_scores(held: Mapping[str, list[Any]], scenes: Scenes, samples: pl.DataFrame) -> Floats:
    """(n, k) scores of samples, in their order.

    Args:
        held: columns of the data frame: scores, and what says of which sample they are.
        scenes: whose tubes name the pedestrians.
        samples: (n rows) that are asked for.

    Raises:
        InputError: if the columns do not tell samples apart, or there is not one row for each sample.
    """
    keys = ["sample"] if "sample" in held else [name for name in KEYS if name in held]
    if keys != ["sample"] and ("pedestrian" not in keys or not {*TIMES} & {*keys}):
        raise InputError(
            f"expected a column sample, or pedestrian and one of {', '.join(TIMES)}, found {', '.join(held)}",
            hint="they are those of the samples table: ra.sample(...).samples; pedestrian is the name of the track",
        )
    names = scenes.tubes.select("tube", pl.col("name").cast(pl.String).alias("pedestrian"))
    known = samples.join(names, on="tube", how="left", maintain_order="left").select(
        pl.col(key).cast(pl.String if key in _NAMES else pl.Int64) for key in keys
    )
    rows = pl.DataFrame({key: _read_key(key, held[key]) for key in keys}, schema=known.schema)
    for whose, table in (("samples", known), ("rows of scores", rows)):
        if (twice := table.filter(table.is_duplicated())).height:
            raise InputError(
                f"{len(twice)} {whose} have {', '.join(keys)} in common with another, first {twice.row(0, named=True)}",
                hint="give more columns of the samples table, or each sample once",
            )
    placed = rows.with_row_index("row")
    found = known.join(placed, on=keys, how="left", maintain_order="left")
    lacking = found.filter(pl.col("row").is_null()).select(keys)
    strangers = rows.join(known, on=keys, how="anti", maintain_order="left")
    if len(lacking) or len(strangers):
        first = {
            "without a score": lacking.head(1).to_dicts(),
            "of no sample": strangers.head(1).to_dicts(),
        }
        shown = "; ".join(f"first {what}: {row[0]}" for what, row in first.items() if row)
        raise InputError(
            f"{len(lacking)} of {len(known)} samples have no row of scores, {len(strangers)} rows are of no sample",
            hint=f"{shown}. Is it the right split, protocol and config?",
        )
    values = [parse_numbers(name, held[name], np.float64) for name in list_score_columns(list(held))]
    scores: Floats = np.column_stack(values)[found["row"].to_numpy()]
    return scores


def _read_key(name: str, given: list[Any]) -> list[str] | list[int]:
    """A column that says of which sample a row is: texts, or whole numbers.

    Raises:
        InputError: if one is missing or no whole number.
    """
    if name in _NAMES:
        if None in given:
            raise InputError(f"{name} is missing in row {given.index(None)}")
        return [str(one) for one in given]
    numbers = parse_numbers(name, given, np.float64)
    off = np.flatnonzero(~(np.abs(numbers) < 2**53) | (numbers != np.rint(numbers)))
    if len(off):
        raise InputError(f"{name} should hold whole numbers; row {off[0]} has {given[off[0]]}")
    return [int(one) for one in numbers]
