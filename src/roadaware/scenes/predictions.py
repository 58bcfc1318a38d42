"""Predictions: what a model claims, under the same keys as the truth, plus scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.tables import Meta, Scenes, TableSet


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(TableSet):
    """What is claimed: the tables of Scenes with `score`, `scores` and `ready_s`."""

    claimed: ClassVar[bool] = True


def of_samples(
    samples: pl.DataFrame, scores: npt.NDArray[np.floating], meta: Meta | None = None
) -> Predictions:
    """Predictions for the rows of a `samples` table, in their order.

    Args:
        samples: (n rows) with the column `sample`.
        scores: (n, k) one row of scores per sample.
        meta: what holds for all of them.

    Raises:
        InputError: if the numbers of rows differ.
    """
    scores = np.atleast_2d(np.asarray(scores, dtype=np.float64))
    if len(scores) != len(samples):
        raise InputError(
            f"{len(scores)} rows of scores for {len(samples)} samples",
            hint="scores without keys are joined by row: one row per sample, in extraction order",
        )
    column = pl.Series("scores", scores, dtype=pl.Array(pl.Float64, scores.shape[1]))
    return Predictions(samples=samples.select("sample").with_columns(column), meta=meta or Meta())


def sample_scores(predictions: Predictions, scenes: Scenes) -> npt.NDArray[np.float64]:
    """The (n, k) scores in the row order of `scenes.samples`.

    Raises:
        InputError: if samples are missing from the predictions, or foreign to the scenes.
    """
    claimed = predictions.samples
    joined = scenes.samples.select("sample").join(claimed, on="sample", how="left", maintain_order="left")
    missing = joined.filter(pl.col("scores").is_null())
    foreign = len(claimed) - (len(joined) - len(missing))
    if len(missing) or foreign:
        raise InputError(
            f"predictions and samples differ: {len(missing)} samples without scores, "
            f"{foreign} scores of unknown samples",
            hint=f"first samples without scores: {missing['sample'].head(5).to_list()}",
        )
    return np.asarray(joined["scores"].to_numpy(), dtype=np.float64).reshape(len(joined), -1)
