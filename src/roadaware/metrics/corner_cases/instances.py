"""The rows behind the metrics of corner cases: every object with the claim that met it, and every class."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.metrics.corner_cases.config import AREAS, CornerConfig, Group
from roadaware.metrics.corner_cases.inputs import NONE, Claims, Objects
from roadaware.metrics.corner_cases.matching import Met

_HALF, _FROM_HALF = 1, slice(1, None)
_CLASS_BLIND: tuple[Group, ...] = ("corner", "all")


def by_object(truth: Objects, claims: Claims, met: Mapping[Group, Met]) -> pl.DataFrame:
    """One row per object that is asked for, in each group: `best_iou` is the overlap of the nearest claim.

    `rank` is the place of the claim that met it at an overlap of 0.5, from 0 and null where none did;
    `met_share` the share of the ten thresholds at which one did.
    """
    frames = []
    for group, each in met.items():
        asked = each.asked[:, 0]
        rows, rank = each.rows[asked], each.rank[asked, 0]
        place = truth.items.select("video", "frame")[truth.item[rows]]
        size = np.argmax(each.asked[asked, 1:], axis=1)
        frames.append(
            place.with_columns(
                pl.Series("group", [group] * len(rows), dtype=pl.String),
                pl.Series("box", truth.box[rows]),
                pl.Series("label", _words(truth.label[rows], truth.labels), dtype=pl.String),
                pl.Series("super_class", _words(truth.above[rows], truth.supers), dtype=pl.String),
                pl.Series("corner_case", truth.corner[rows]),
                pl.Series("size", [AREAS[1 + n] for n in size], dtype=pl.String),
                pl.Series("best_iou", each.best[asked]),
                pl.Series("rank", rank[:, _HALF].astype(np.int64)),
                pl.Series("met_share", (rank[:, _FROM_HALF] >= 0).mean(axis=1)),
            )
        )
    table = pl.concat(frames)
    return table.with_columns(pl.when(pl.col("rank") >= 0).then(pl.col("rank")).alias("rank"))


def by_class(truth: Objects, claims: Claims, met: Mapping[Group, Met], config: CornerConfig) -> pl.DataFrame:
    """One row per class of the file: how many of its objects there are, and how many are met, whatever by.

    The groups `corner` and `all` match without classes: which claim meets an object does not depend on what
    it is called. A file in which no class is known gives no row.
    """
    frames = []
    for group, each in met.items():
        if group not in _CLASS_BLIND:
            continue
        asked = each.asked[:, 0] & (truth.label[each.rows] != NONE)
        rank = each.rank[asked, 0]
        table = pl.DataFrame(
            {
                "label": pl.Series(_words(truth.label[each.rows[asked]], truth.labels), dtype=pl.String),
                "ar": (rank[:, _FROM_HALF] >= 0).mean(axis=1),
                "ar50": (rank[:, _HALF] >= 0).astype(np.float64),
            }
        )
        counted = table.group_by("label", maintain_order=True).agg(
            pl.len().alias("objects"), pl.col("ar").mean(), pl.col("ar50").mean()
        )
        frames.append(
            counted.sort("objects", descending=True, maintain_order=True).with_columns(group=pl.lit(group))
        )
    empty = {
        "label": pl.String,
        "objects": pl.UInt32,
        "ar": pl.Float64,
        "ar50": pl.Float64,
        "group": pl.String,
    }
    return pl.concat([pl.DataFrame(schema=empty), *frames], how="diagonal_relaxed").select(
        "group", "label", "objects", "ar", "ar50"
    )


def _words(numbers: npt.NDArray[np.int64], words: tuple[str, ...]) -> list[str | None]:
    known = [*words, None]
    return [known[n] for n in numbers.tolist()]
