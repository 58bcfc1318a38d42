"""Constant-velocity baseline with a spread as its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from roadaware.arrays import Floats
from roadaware.geometry.boxes import compute_region_position
from roadaware.models.card import ModelCard
from roadaware.models.crossing import features
from roadaware.models.crossing.features import (
    Criterion,
    Labelled,
    Observed,
    Slope,
    Trial,
    extrapolate_centre_px,
)
from roadaware.models.crossing.tabular import Fitted, TabularModel


@dataclass(frozen=True)
class ConstantVelocityConfig:
    """Hyperparameters that are tried, and their selection.

    Args:
        labels: how many regions of equal width the image is divided into.
        horizon_frames: how far behind the last observed frame the region is asked for.
        slopes: candidates for how the velocity is taken from the observation.
        spreads: candidates for how fast the probability falls off, in widths of a region.
        criterion: what is best on validation.
    """

    labels: int = 12
    horizon_frames: int = 90
    slopes: tuple[Slope, ...] = ("least-squares", "ends")
    spreads: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
    criterion: Criterion = "log_loss"


class ConstantVelocity(TabularModel):
    """Extrapolates the centre of the box; the region it falls into is the answer."""

    card: ClassVar[ModelCard] = ModelCard(
        name="constant-velocity",
        paper="ours: the rule that every forecast has to beat",
        family="rule",
        tasks=("risk",),
        diagram="observed centres -> velocity -> centre 90 frames later, clipped to the image -> probability "
        "of each region falling off exponentially with its distance",
        parameters="none but two constants chosen on validation: how the velocity is taken, and the spread; "
        "p(k) is proportional to exp(-|k + 1/2 - x / width of a region| / spread)",
        inputs="the horizontal centres of the observed boxes and the width of the image, in pixels",
        weights="none",
        licence="none needed",
    )
    config_class = ConstantVelocityConfig

    def _fit(self, examples: Labelled, validation: Labelled) -> Fitted:
        trials = [
            Trial({"slope": slope, "spread": spread}, self._score(validation, slope, spread))
            for slope, spread in product(self.config.slopes, self.config.spreads)
        ]
        return Fitted({}, trials[features.select_best_trial(trials)].settings, tuple(trials))

    def _predict(self, fitted: Fitted, examples: Observed) -> Floats:
        return self._regions(examples, fitted.chosen["slope"], float(fitted.chosen["spread"]))

    def _score(self, validation: Labelled, slope: Slope, spread: float) -> float:
        return features.score(
            self.config.criterion, self._regions(validation, slope, spread), validation.truth
        )

    def _regions(self, examples: Observed, slope: Slope, spread: float) -> Floats:
        """(n, k) probabilities; the largest is that of the region the centre falls into."""
        labels = self.config.labels
        centre = extrapolate_centre_px(examples, self.config.horizon_frames, slope)
        # A region holds its left edge: without the nudge a centre exactly there ties with the region before.
        place = np.clip(compute_region_position(centre, examples.width_px, labels) + 1e-9, 0, labels)
        distance = np.abs(np.arange(labels) + 0.5 - place[:, None])
        weight = np.exp(-(distance - distance.min(axis=1, keepdims=True)) / spread)
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))
