"""Average precision of labels over boxes of linked tubes, with intervals over scenes, and calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.simulator.actors import AV_ACTIONS
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS
from roadaware.statistics.calibration import EqualMassBins, expected_calibration_error
from roadaware.statistics.intervals import Interval, Units
from roadaware.training.events.rows import Rows

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
LIGHTS = ("Red", "Amber", "Green", "Black")
RESAMPLES = 1000


@dataclass(frozen=True)
class Judged:
    """A mean of average precisions.

    Args:
        value: the mean.
        interval: 95 %, jackknife over scenes.
        labels: each label's own, its share of the boxes, and in how many boxes it is true.
        error: mean expected calibration error of the labels, 15 bins of equal mass.
    """

    value: float
    interval: Interval | None
    labels: dict[str, tuple[float, float, int]]
    error: float

    def __str__(self) -> str:
        ends = (
            ""
            if self.interval is None or self.interval.low is None
            else f" [{self.interval.low:.3f}, {self.interval.high:.3f}]"
        )
        return f"{self.value:.3f}{ends}"


def common_labels(rows: Rows) -> tuple[list[int], list[int]]:
    """The eight actions, lights aside, and the ten locations that most boxes of some rows have."""
    kept = ~rows.parked
    actions = rows.action[kept].sum(axis=0)
    actions[[ACTIONS.index(name) for name in LIGHTS]] = 0
    locations = rows.location[kept].sum(axis=0)
    return np.argsort(-actions, kind="stable")[:8].tolist(), np.argsort(-locations, kind="stable")[
        :10
    ].tolist()


def judge_tubes(rows: Rows, scores: Floats, kind: str, labels: Sequence[int]) -> Judged:
    """Mean average precision of some labels over all boxes, ghosts included; parked vehicles are passed over.

    Args:
        rows: with the truth.
        scores: (n, labels of the kind).
        kind: action or location.
        labels: which of them.
    """
    truth, names = (rows.action, ACTIONS) if kind == "action" else (rows.location, LOCATIONS)
    kept = ~rows.parked
    return judge(truth[kept], scores[kept], rows.scene[kept], {names[k]: k for k in labels})


def judge_drive(rows: Rows, scores: Floats, labels: Sequence[str]) -> Judged:
    """The same of the own vehicle's actions, over frames."""
    truth = np.eye(len(AV_ACTIONS), dtype=np.bool_)[rows.av]
    return judge(truth, scores, rows.drive_scene, {name: AV_ACTIONS.index(name) for name in labels})


def judge(truth: Bools, scores: Floats, scene: npt.NDArray[np.int64], labels: dict[str, int]) -> Judged:
    """Mean average precision of labels.

    Args:
        truth: (n, labels).
        scores: (n, labels) probabilities.
        scene: (n,) whose each row is.
        labels: name to column.
    """
    units = Units.of(scene, RESAMPLES, 0)
    each: dict[str, tuple[float, float, int]] = {}
    drawn, errors = [], []
    for name, column in labels.items():
        hit = truth[:, column]
        if not hit.any():
            continue
        order = np.argsort(-scores[:, column], kind="stable")
        value = float(precision(hit[order], np.ones((1, len(hit))))[0])
        each[name] = (value, float(hit.mean()), int(hit.sum()))
        errors.append(expected_calibration_error(np.clip(scores[:, column], 0, 1), hit, EqualMassBins(15)))
        if units is not None:
            drawn.append(np.concatenate([precision(hit[order], w[:, order]) for w in units.weights(8)]))
    value = float(np.mean([v for v, _, _ in each.values()]))
    interval = None if units is None else units.interval(value, np.mean(drawn, axis=0))
    return Judged(value, interval, each, float(np.mean(errors)))


def precision(hit: Bools, weights: npt.ArrayLike) -> Floats:
    """(k,) average precision of one ranking under k weightings: mean precision at the hits.

    Args:
        hit: (n,) by falling score.
        weights: (k, n) how often each counts.
    """
    counts = np.asarray(weights, np.float64)
    hits = counts * hit
    right, told = np.cumsum(hits, axis=1), np.cumsum(counts, axis=1)
    return np.asarray((hits * right / np.maximum(told, 1e-12)).sum(axis=1) / np.maximum(right[:, -1], 1e-12))
