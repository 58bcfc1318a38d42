"""Worlds of road events: twelve long-tailed classes whose predictions hit or miss, videos easy or hard."""

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
from roadaware.analysis.compare import compare_detections
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import FRAME, VIDEO, Asked, compute_metrics
from roadaware.metrics.detection.matches import Matches

_CLASSES = 12
_COLUMNS = {"0.5": (0,)}


@dataclass(frozen=True, eq=False)
class Predictions:
    """What one model predicts in all videos; rows by video."""

    cls: Ints
    score: Floats
    video: Ints
    hit: np.ndarray[tuple[int], np.dtype[np.bool_]]
    n_truth: Ints

    def matches(self, chosen: Ints) -> Matches:
        """Those of some videos."""
        rows, video = taken(starts(self.video, len(self.n_truth)), chosen)
        return Matches(
            (0.5,),
            tuple(("agent", f"{c:02d}") for c in range(_CLASSES)),
            tuple(f"{k:05d}" for k in chosen),
            self.cls[rows].astype(np.int32),
            self.score[rows],
            video.astype(np.int32),
            np.arange(len(rows)),
            self.hit[rows][:, None],
            self.n_truth[chosen],
        )


@dataclass(frozen=True)
class Ease:
    """How hard a world is.

    Args:
        level: of what is found; 0 gives a mean AP about one half.
        apart: how far scores of what is there lie above those of what is not.
        tail: the k-th class is in a share of k ** -tail of the videos.
        spread: how much videos differ.
        false: wrong predictions.
        burst: objects of a class in a video that has any, on average, less one.
    """

    level: float = 0.0
    apart: float = 1.5
    tail: float = 1.0
    spread: float = 1.0
    false: float = 1.0
    burst: float = 4.0


def predictions(ease: Ease, seed: int, units: int, models: int = 1, better: float = 0.0) -> list[Predictions]:
    """The predictions of some models about one truth; the first is better by so much in log odds."""
    rng = np.random.default_rng(seed)
    shares = 0.9 / np.arange(1, _CLASSES + 1) ** ease.tail
    skill = ease.level + rng.normal(0, 0.7, _CLASSES)
    video = rng.normal(0, ease.spread, units)
    n_truth = np.zeros((units, _CLASSES), dtype=np.int64)
    parts: list[list[tuple[Ints, Floats, Ints, Floats]]] = [[] for _ in range(models)]
    for c in range(_CLASSES):
        present = rng.random(units) < shares[c]
        n_truth[:, c] = present * (1 + rng.poisson(ease.burst * rng.gamma(1.0, 1.0, units)))
        who = np.repeat(np.arange(units), n_truth[:, c])
        shared = skill[c] + video[who] + rng.normal(0, 0.7, len(who))
        rate = ease.false * rng.gamma(0.7, 1 / 0.7, units) * (0.3 + 2.5 * shares[c]) * (1 + present)
        for model, part in enumerate(parts):
            sure = shared + rng.normal(0, 0.7, len(who)) + better * (model == 0)
            seen = rng.random(len(who)) < sigmoid(sure + 1)
            wrong = np.repeat(np.arange(units), rng.poisson(rate))
            low = skill[c] - ease.apart + 0.5 * video[wrong] + rng.normal(0, 1.2, len(wrong))
            scores = np.r_[sure[seen] + rng.normal(0, 1, seen.sum()), low]
            right = np.r_[np.ones(seen.sum()), np.zeros(len(wrong))]
            part.append((np.full(len(scores), c), sigmoid(scores), np.r_[who[seen], wrong], right))
    found = []
    for part in parts:
        cls, score, place, hit = (np.concatenate(column) for column in zip(*part, strict=True))
        order = np.argsort(place, kind="stable")
        found.append(Predictions(cls[order], score[order], place[order], hit[order] > 0, n_truth))
    return found


@dataclass(frozen=True, eq=False)
class Road(World):
    """Mean AP, and the AP of a frequent and of a rare class."""

    held: Predictions
    level: str

    @classmethod
    def of(cls, name: str, ease: Ease, seed: int, units: int = 20_000, level: str = FRAME) -> Self:
        """A world of videos."""
        return cls(name, units, predictions(ease, seed, units)[0], level)

    def told(self, chosen: Ints, resamples: int) -> dict[str, Told]:
        """As `evaluate` prints it."""
        found = {}
        asked = Asked(self.level, _COLUMNS, "stiou" if self.level == VIDEO else None)
        for each in compute_metrics(
            self.held.matches(chosen), asked, DetectionConfig.default(), resamples=resamples
        ):
            if each.label in (None, "00", "04"):
                name = {None: "mAP", "00": "AP, class in 90 %", "04": "AP, class in 18 %"}[each.label]
                ends = each.interval
                value = None if np.isnan(each.value) else each.value
                found[name] = Told(value, *((ends.low, ends.high) if ends else (None, None)))
        return found


@dataclass(frozen=True, eq=False)
class RoadPair(Pair):
    """Two models of road events."""

    held: list[Predictions]

    @classmethod
    def of(cls, name: str, ease: Ease, seed: int, better: float, units: int = 20_000) -> Self:
        """A world of videos about which both were asked."""
        return cls(name, units, predictions(ease, seed, units, 2, better))

    def compared(self, chosen: Ints, resamples: int) -> dict[str, Verdict]:
        """As `compare_detections` says it."""
        a, b = ({FRAME: each.matches(chosen)} for each in self.held)
        found = compare_detections(a, b, DetectionConfig.default(), resamples=max(1, resamples))
        names = {"frame_map@0.5:agent": "mAP", "frame_ap@0.5:agent:00": "AP, class in 90 %"}
        told = verdicts(found.table, "video", tuple(names))
        return {names[name]: each for name, each in told.items()}


def worlds() -> list[World]:
    """Easy, usual and hard videos, tubes, and pairs of equal and of unequal models."""
    return [
        Road.of("road events, usual", Ease(), 1),
        Road.of("road events, easy", Ease(level=2.0, apart=3.0), 2),
        Road.of("road events, hard", Ease(level=-1.0, apart=0.5, false=3.0), 3),
        Road.of("road events, unlike videos", Ease(spread=2.0), 4),
        Road.of("road events, steeper tail", Ease(tail=1.6), 5),
        Road.of("tubes", Ease(burst=0.8, false=0.5), 6, level=VIDEO),
        RoadPair.of("road events, two equal models", Ease(), 7, 0.0),
        RoadPair.of("road events, the first better", Ease(), 8, 1.0),
    ]
