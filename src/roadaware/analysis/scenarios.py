"""Pedestrian metrics by scenario: one group of samples per value of a factor, or of a product of factors."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from roadaware.metrics.pedestrians import PedestrianConfig, evaluate_samples, state_of
from roadaware.metrics.result import MetricResult
from roadaware.scenes.factors import FACTORS, UNKNOWN, FactorConfig, Labels, scenario_labels
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes

__all__ = ["FACTORS", "UNKNOWN", "FactorConfig", "Labels", "by_scenario", "scenario_labels"]


def by_scenario(
    predictions: Predictions,
    scenes: Scenes,
    factors: Sequence[str],
    config: PedestrianConfig,
    factor_config: FactorConfig | None = None,
    *,
    split: str = "test",
    draws: int = 0,
    seed: int = 0,
) -> MetricResult:
    """The metrics of predictions as a whole and for each scenario.

    Args:
        predictions: scores joined to the samples by `sample`.
        scenes: with samples of the config's task, boxes, frames and tubes.
        factors: names of `FACTORS`; several make a product, such as `("state", "road")`.
        config: how scores are judged.
        factor_config: how samples are sorted; `FactorConfig.default()` unless told.
        split: whose samples.
        draws: bootstrap resamples; 0 gives no intervals.
        seed: of the resamples.

    Raises:
        UsageError: if a factor is unknown, or there are no samples of the task.
        InputError: if samples and predictions do not fit each other.

    Source: Rasouli and Kotseruba, IV 2024, section IV-C and Table IV.
    """
    state, _ = state_of(predictions, scenes, config.task, split=split)
    samples = scenes.samples.filter(pl.col("split").cast(pl.String) == split)
    groups = scenario_labels(scenes, factors, factor_config or FactorConfig.default(), samples)
    return evaluate_samples(state, config, draws=draws, seed=seed, groups=groups)
