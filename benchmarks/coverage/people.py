"""Worlds of pedestrians: several samples each, some to a video, and scores that are sure, rightly or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from benchmarks.coverage.world import (
    Floats,
    Ints,
    Pair,
    Told,
    Verdict,
    World,
    sigmoid,
    starts,
    taken,
    verdicts,
)
from roadaware.analysis.compare import compare
from roadaware.metrics.calibration import SCALES, CalibrationConfig, CalibrationCore
from roadaware.metrics.pedestrians import PedestrianConfig, PedestrianCore
from roadaware.metrics.scores import SampleScores
from roadaware.statistics.intervals import Scale

_RANKED = (
    "accuracy",
    "balanced_accuracy",
    "f1",
    "soft_f1",
    "average_precision",
    "auc",
    "confidence_delta_mean",
)
_SURE = ("ece", "mce", "uniform_ece", "uniform_mce", "nll", "brier", "overconfidence")


@dataclass(frozen=True, eq=False)
class Crowd:
    """All samples, by video: scores of one or two models, truth, who and where."""

    scores: tuple[Floats, ...]
    truth: Ints
    person: Ints
    video: Ints

    @classmethod
    def of(
        cls,
        seed: int,
        units: int,
        *,
        alone: bool,
        skill: float,
        sure: float,
        models: int = 1,
        better: float = 0.0,
    ) -> Self:
        """Pedestrians who cross or do not, and scores about them.

        Args:
            seed: of the world.
            units: videos.
            alone: one pedestrian to a video.
            skill: how far apart scores of the two classes lie.
            sure: by how much scores are too far from one half, or too close.
            models: how many.
            better: what the first has in skill over the others.
        """
        rng = np.random.default_rng(seed)
        people = np.ones(units, dtype=np.int64) if alone else 1 + rng.poisson(4 * rng.gamma(1, 1, units))
        video = np.repeat(np.arange(units), people)
        lean = rng.normal(0, 0.6, units)[video] - 0.8
        crosses = (rng.random(len(video)) < sigmoid(lean)).astype(np.int64)
        person = np.repeat(np.arange(len(video)), 1 + rng.integers(0, 6, len(video)))
        shared = 0.7 * rng.normal(0, 0.7, units)[video][person]
        scores = []
        for model in range(models):
            own = 0.7 * rng.normal(0, 0.9, len(video))[person] + rng.normal(0, 0.5, len(person))
            skilled = skill + (better if model == 0 else 0.0)
            scores.append(sigmoid(1.3 * sure * ((crosses[person] - 0.5) * skilled + shared + own - 0.8)))
        return cls(tuple(scores), crosses[person], person, video[person])

    def taken(self, chosen: Ints, units: int) -> list[SampleScores]:
        """The samples of some videos, of each model."""
        held, _ = taken(starts(self.video, units), chosen)
        who, where = (np.char.mod("%06d", column[held]) for column in (self.person, self.video))
        return [SampleScores(scores[held], self.truth[held], who, where) for scores in self.scores]


@dataclass(frozen=True, eq=False)
class People(World):
    """Ranking, deciding and calibration of one model."""

    crowd: Crowd
    unit: str

    @classmethod
    def of(cls, name: str, seed: int, unit: str = "video", skill: float = 1.5, sure: float = 1.0) -> Self:
        """A world of 6,000 videos, or of as many pedestrians."""
        alone = unit == "pedestrian"
        return cls(name, 6000, Crowd.of(seed, 6000, alone=alone, skill=skill, sure=sure), unit)

    def told(self, chosen: Ints, resamples: int) -> dict[str, Told]:
        """As `evaluate` and `calibrate` make it, over one kind of unit."""
        (state,) = self.crowd.taken(chosen, self.units)
        ranked = PedestrianCore.of(state, PedestrianConfig.default("action"))
        sure = CalibrationCore.of(state, CalibrationConfig.default())
        points = {name: float(values[0]) for name, values in ranked.values(ranked.once()).items()}
        scales: dict[str, Scale] = dict.fromkeys(_RANKED, "share")
        scales |= {name: SCALES[name] for name in _SURE}
        values = points | sure.once()
        units = ranked.units(self.unit, resamples, 0)
        if not resamples or units is None:
            return {name: Told(values[name], None, None) for name in scales}
        drawn = (ranked.drawn(self.unit, resamples, 0) or {}) | (sure.drawn(self.unit, resamples, 0) or {})
        ends = {name: units.interval(values[name], drawn[name], scales[name]) for name in scales}
        return {name: Told(values[name], one.low, one.high) for name, one in ends.items()}


@dataclass(frozen=True, eq=False)
class PeoplePair(Pair):
    """Two models of pedestrians."""

    crowd: Crowd

    @classmethod
    def of(cls, name: str, seed: int, better: float) -> Self:
        """A world of 6,000 videos."""
        crowd = Crowd.of(seed, 6000, alone=False, skill=1.5, sure=1.0, models=2, better=better)
        return cls(name, 6000, crowd)

    def compared(self, chosen: Ints, resamples: int) -> dict[str, Verdict]:
        """As `compare` says it: by pedestrian and by video together."""
        one, two = self.crowd.taken(chosen, self.units)
        found = compare(one, two, PedestrianConfig.default("action"), resamples=max(1, resamples))
        return verdicts(found.table, "video", ("auc", "average_precision", "f1", "accuracy"))


def worlds() -> list[World]:
    """Usual, sure and nearly perfect models, over videos and over pedestrians, and pairs."""
    return [
        People.of("pedestrians, too sure", 1, sure=2.5),
        People.of("pedestrians, not sure enough", 2, sure=0.55),
        People.of("pedestrians, calibrated", 3),
        People.of("pedestrians, nearly perfect", 4, skill=5.0),
        People.of("pedestrians, each a unit", 5, "pedestrian", sure=1.8),
        PeoplePair.of("pedestrians, two equal models", 6, 0.0),
        PeoplePair.of("pedestrians, the first better", 7, 1.0),
    ]
