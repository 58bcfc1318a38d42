"""Mistakes that whole files of pedestrian scores and samples make, and the files without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from roadaware.analysis.doctor import Extraction, check_pedestrian_scores
from roadaware.analysis.doctor.diagnosis import Diagnosis
from roadaware.arrays import Floats, Ints
from roadaware.formats.score_tables import RawSamples
from roadaware.statistics.classification import Ranking

_INVERTED, _INVERTED_Z = 0.25, 3.0
"""An AUC over pedestrians that is lower than this, and so many standard errors below a half, is no weak model's."""
_RATE = 30.0
"""Frames a second of JAAD and PIE, in which times to event are counted."""


@dataclass(frozen=True, eq=False)
class ScoredSamples:
    """Scores and the samples that they are of, as two files hold them.

    Args:
        values: (n, k) scores.
        samples: (n) their samples.
    """

    values: Floats
    samples: RawSamples


def correct_samples(
    held: ScoredSamples,
    task: str,
    extraction: Extraction | None,
    judge: Callable[[ScoredSamples], float],
) -> tuple[list[Diagnosis], list[Diagnosis], ScoredSamples]:
    """The mistakes that were undone, what else is odd, and scores and samples without those.

    Args:
        held: as the files hold them.
        task: action, intention or risk.
        extraction: the dataset's own samples, if at hand.
        judge: the score of both, less than 0 where they cannot be judged.
    """

    def check(current: ScoredSamples) -> list[Diagnosis]:
        rows = current.samples
        return check_pedestrian_scores(
            current.values, rows.truth, rows.tte_frames, rows.pedestrian, task, extraction
        )

    undone: list[Diagnosis] = []
    score, tried = judge(held), set()
    while fixable := [each for each in check(held) if each.code in _CHANGES and each.code not in tried]:
        finding = fixable[0]
        tried.add(finding.code)
        changed = _CHANGES[finding.code](held, task)
        value = judge(changed) if changed is not None else -1.0
        if changed is not None and value >= score:
            undone.append(finding)
            held, score = changed, value
    return undone, check(held), held


def _divide(held: ScoredSamples, task: str) -> ScoredSamples:
    return replace(held, values=held.values / 100)


def _squash(held: ScoredSamples, task: str) -> ScoredSamples:
    """Probabilities of logits: a sigmoid of one score, a softmax of several."""
    from scipy.special import expit, softmax

    values = expit(held.values) if held.values.shape[1] == 1 else softmax(held.values, axis=1)
    return replace(held, values=values)


def _select_column(held: ScoredSamples, task: str) -> ScoredSamples | None:
    """The score of crossing alone, of the two that a softmax over both classes has."""
    if task != "action" or held.values.shape[1] != 2:
        return None
    low, high = held.values.min(), held.values.max()
    both = held if low >= 0 and high <= 100 else _squash(held, task)
    return replace(held, values=both.values[:, 1:])


def _subtract(held: ScoredSamples, task: str) -> ScoredSamples:
    return replace(held, samples=replace(held.samples, truth=held.samples.truth - 1))


def _clear_irrelevant(held: ScoredSamples, task: str) -> ScoredSamples:
    return replace(held, samples=replace(held.samples, truth=np.maximum(held.samples.truth, 0)))


def _turn(held: ScoredSamples, task: str) -> ScoredSamples | None:
    """Scores of crossing, where those of not crossing were written.

    Samples of one pedestrian are alike: what counts is the mean score of each, and how many there are.
    """
    people, place = np.unique(np.array(held.samples.pedestrian, dtype=np.str_), return_inverse=True)
    counts = np.bincount(place, minlength=len(people))
    score = np.bincount(place, held.values[:, 0], len(people)) / counts
    crosses = np.bincount(place, held.samples.truth == 1, len(people)) / counts > 0.5
    n, m = int(crosses.sum()), int((~crosses).sum())
    if min(n, m) == 0:
        return None
    once = np.ones((1, len(people)), dtype=np.int32)
    _, area = Ranking.of(crosses, score).areas(once, np.arange(len(people)))
    error = np.sqrt((n + m + 1) / (12 * n * m))  # of the Mann-Whitney statistic where scores say nothing
    return (
        replace(held, values=1 - held.values)
        if area[0] <= min(_INVERTED, 0.5 - _INVERTED_Z * error)
        else None
    )


def _reorder(held: ScoredSamples, task: str) -> ScoredSamples:
    """Columns in the order of the classes."""
    truth, k = held.samples.truth.astype(np.int64), held.values.shape[1]
    classes: Ints = np.arange(k, dtype=np.int64)
    orders: list[Ints] = [classes[::-1], np.roll(classes, -1), np.roll(classes, 1)]

    def measure(order: Ints) -> float:
        decided = held.values[:, order].argmax(axis=1)
        return float(np.mean([np.mean(decided[truth == c] == c) for c in np.unique(truth)]))

    return replace(held, values=held.values[:, max(orders, key=measure)])


def _count_frames(held: ScoredSamples, task: str) -> ScoredSamples:
    return replace(held, samples=replace(held.samples, tte_frames=np.round(held.samples.tte_frames * _RATE)))


_CHANGES: dict[str, Callable[[ScoredSamples, str], ScoredSamples | None]] = {
    "column_count": _select_column,
    "percent": _divide,
    "logits": _squash,
    "truth_base": _subtract,
    "truth_irrelevant": _clear_irrelevant,
    "tte_seconds": _count_frames,
    "class_order": _reorder,
    "reversed": _turn,
}
"""What undoes a finding, by its code, in the order in which causes hide each other."""
