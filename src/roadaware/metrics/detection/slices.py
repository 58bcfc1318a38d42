"""Slices: the part of a set that is evaluated, by videos, by properties of ground-truth boxes, or by their size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools
from roadaware.errors import UsageError
from roadaware.metrics.detection.frame import JudgedFrames
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes


@dataclass(frozen=True, eq=False)
class Slice:
    """A part of a set.

    Ground-truth boxes outside are neither asked for nor held against a prediction that meets them.

    Args:
        videos: those that count (default: all).
        truth: what holds of the ground-truth boxes that count, over the columns of the scenes' `boxes`.
        size: what holds of ground-truth boxes and of predictions, over `x1_px`, `y1_px`, `x2_px`, `y2_px`, `width_px`
            and `height_px` in the pixels they are compared in. A prediction outside counts as wrong nowhere,
            but as right where it meets a ground-truth box inside.

    >>> Slice(size=pl.col("height_px") < 64).of_boxes
    True
    """

    videos: Sequence[str] | None = None
    truth: pl.Expr | None = None
    size: pl.Expr | None = None

    @property
    def of_boxes(self) -> bool:
        """Whether the slice selects boxes within a frame; it then has no values for tubes and frame labels."""
        return self.truth is not None or self.size is not None


def apply_slice(judged: JudgedFrames, wanted: Slice, scenes: Scenes) -> JudgedFrames:
    """The judged frames with only the boxes of the slice counted.

    Raises:
        UsageError: if a condition names columns that are not there, or is none.
    """
    inside = np.ones(len(judged.truth.box), dtype=np.bool_)
    claims = np.ones(len(judged.claims.row), dtype=np.bool_)
    if wanted.truth is not None:
        inside &= _holds(wanted.truth, scenes.boxes[judged.truth.row])
    if wanted.size is not None:
        inside &= _holds(wanted.size, _measure_boxes(judged.truth.edges))
        claims &= _holds(wanted.size, _measure_boxes(judged.claims.edges))
    return judged.within(inside, claims)


def _measure_boxes(edges: npt.NDArray[np.float64]) -> pl.DataFrame:
    sides = {"width_px": edges[:, 2] - edges[:, 0], "height_px": edges[:, 3] - edges[:, 1]}
    return pl.DataFrame({**{name: edges[:, k] for k, name in enumerate(CORNERS)}, **sides})


def _holds(condition: pl.Expr, rows: pl.DataFrame) -> Bools:
    """(n,) whether a condition holds; unknown as no."""
    try:
        values = rows.select(condition.alias("holds"))["holds"]
    except pl.exceptions.PolarsError as error:
        raise UsageError(f"the slice {condition} cannot be taken: {str(error).splitlines()[0]}") from error
    if values.dtype != pl.Boolean or len(values) != len(rows):
        raise UsageError(f"the slice {condition} should be true or false for each box; it is {values.dtype}")
    found: npt.NDArray[Any] = values.fill_null(value=False).to_numpy()
    return found.astype(np.bool_)
