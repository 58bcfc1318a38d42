"""What turning knobs of the proposals does, as one table: metrics, differences, counts, printed values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl

from roadaware.protocols.copg_ablation import GridFound
from roadaware.protocols.copg_grid import Cell
from roadaware.protocols.copg_scores import METRICS, Score
from roadaware.protocols.printed_copg import printed_knobs

ENDS = ("", "_low", "_high")
CAUTION = "_caution"
COLUMNS: dict[str, Any] = {
    "config": pl.String,
    "knob": pl.String,
    "value": pl.String,
    "unchanged": pl.Boolean,
    "proposals": pl.Int64,
    "pictures": pl.Int64,
    **{f"{metric}{end}": pl.Float64 for metric in METRICS for end in ENDS},
    **{f"{metric}_gain{end}": pl.Float64 for metric in METRICS for end in ENDS},
    **{f"{metric}{gain}{CAUTION}": pl.String for metric in METRICS for gain in ("", "_gain")},
    "printed_ap": pl.Float64,
    "printed_ar": pl.Float64,
    "printed_proposals": pl.Int64,
    "printed_scenes": pl.Int64,
    "doubt": pl.String,
}
"""`pictures` are those with a proposal; `_gain` is over the configuration as it is; printed in fractions."""


def knob_table(
    rows: Sequence[Cell], places: Sequence[int], found: GridFound, scores: Sequence[Score] | None
) -> pl.DataFrame:
    """One row for each cell, in the columns of `COLUMNS`.

    Args:
        rows: the cells.
        places: for each, its variant.
        found: the proposals of all variants.
        scores: of all variants; None where there is no truth.
    """
    unchanged = {row.base: place for row, place in zip(rows, places, strict=True) if row.unchanged}
    lines = []
    for row, place in zip(rows, places, strict=True):
        line: dict[str, Any] = dict.fromkeys(COLUMNS)
        line |= {"config": row.base, "knob": row.knob, "value": said(row.value), "unchanged": row.unchanged}
        line |= {"proposals": found.counts[place], "pictures": found.with_one[place]}
        if scores is not None:
            mine, own = scores[place], scores[unchanged[row.base]]
            gains = mine.over(own)
            for name in METRICS:
                line |= _ends(name, mine.values[name])
                line |= {} if row.unchanged else _ends(f"{name}_gain", gains[name])
        lines.append(line | _printed(row))
    return pl.DataFrame(lines, schema=COLUMNS)


def said(value: Any) -> str:
    """A knob's value as words.

    Args:
        value: of a field of `CopgConfig`.

    >>> said(8.0), said(None), said("box"), said(("road", "sky"))
    ('8', 'null', 'box', 'road,sky')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, int | float) else json.dumps(value)


def _ends(name: str, value: Any) -> dict[str, Any]:
    ends = dict(zip((f"{name}{end}" for end in ENDS), (value.value, value.low, value.high), strict=True))
    return {**ends, f"{name}{CAUTION}": value.caution}


def _printed(row: Cell) -> dict[str, Any]:
    """What the paper prints for a knob's value."""
    if isinstance(row.value, bool) or not isinstance(row.value, int | float):
        return {}
    rows = printed_knobs(row.knob, float(row.value)).to_dicts()
    if not rows:
        return {}
    printed = rows[0]
    return {
        "printed_ap": printed["ap"] / 100,
        "printed_ar": printed["ar"] / 100,
        "printed_proposals": printed["proposals"],
        "printed_scenes": printed["scenes"],
        "doubt": printed["doubt"],
    }
