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
        scores: (n, k) or (n,) the scores of each sample.
        meta: what holds for all of them.

    Raises:
        InputError: if the numbers of rows differ, or a score is not finite.
    """
    scores = np.asarray(scores, dtype=np.float64)
    scores = scores[:, None] if scores.ndim == 1 else scores
    if scores.ndim != 2 or scores.shape[1] < 1:
        raise InputError(f"scores should be (n, k) with k at least 1, not {scores.shape}")
    if len(scores) != len(samples):
        raise InputError(
            f"{len(scores)} rows of scores for {len(samples)} samples",
            hint="scores without keys are joined by row: one row per sample, in extraction order",
        )
    column = pl.Series("scores", scores, dtype=pl.Array(pl.Float64, scores.shape[1]))
    return Predictions(samples=samples.select("sample").with_columns(column), meta=meta or Meta())


def sample_scores(
    predictions: Predictions, scenes: Scenes, asked: pl.DataFrame | None = None
) -> npt.NDArray[np.float64]:
    """The (n, k) scores in the row order of `scenes.samples`, or of some of them.

    Args:
        predictions: at least of the samples that are asked for, and of none but those of the scenes.
        scenes: with `samples`.
        asked: (n rows) some of the scenes' samples; all unless told.

    Raises:
        InputError: if samples that are asked for are missing from the predictions, others are foreign to
            the scenes, or rows of scores have different lengths or gaps.
    """
    asked = scenes.samples if asked is None else asked
    claimed = predictions.samples
    if "scores" not in claimed.columns:
        raise InputError(f"the predictions' samples have no scores; their columns are {claimed.columns}")
    joined = asked.select("sample").join(
        claimed.select("sample", "scores"), on="sample", how="left", maintain_order="left"
    )
    missing = joined.filter(pl.col("scores").is_null())
    foreign = claimed.join(scenes.samples, on="sample", how="anti")
    if len(missing) or len(foreign):
        raise InputError(
            f"predictions and samples differ: {len(missing)} samples without scores, "
            f"{len(foreign)} scores of unknown samples",
            hint=f"first samples without scores: {missing['sample'].head(5).to_list()}; "
            f"first unknown samples: {foreign['sample'].head(5).to_list()}",
        )
    return _matrix(joined["scores"])


def _matrix(scores: pl.Series) -> npt.NDArray[np.float64]:
    """A column of lists or arrays as (n, k) numbers."""
    scores = scores.arr.to_list() if isinstance(scores.dtype, pl.Array) else scores
    widths = scores.list.len().unique().sort().to_list()
    if len(widths) > 1:
        raise InputError(f"every sample needs the same number of scores; found {widths}")
    values = scores.explode()
    if widths and values.null_count():
        raise InputError(f"{values.null_count()} scores are null")
    return values.to_numpy().astype(np.float64).reshape(len(scores), widths[0] if widths else 0)
