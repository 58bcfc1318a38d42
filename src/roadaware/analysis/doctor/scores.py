"""What can be wrong with a model's scores: their scale, their columns, their order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.analysis.doctor.diagnosis import Diagnosis, named_rows, suspicious, wrong
from roadaware.arrays import Floats, Ints
from roadaware.statistics.ranking import Ranking

COLUMNS = {"action": 1, "intention": 3, "risk": 12}
_ROUNDING = 1e-6
_STRANGERS = 0.8
_MIN_PAIRS = 20
_BULK = 0.5


def column_count(scores: Floats, task: str) -> list[Diagnosis]:
    """Whether the rows have as many numbers as the task has scores.

    Args:
        scores: (n, k) as read.
        task: action, intention or risk.
    """
    expected, found = COLUMNS[task], scores.shape[1]
    if found == expected:
        return []
    other = [name for name, count in COLUMNS.items() if count == found]
    remedy = f"Write {expected} per row."
    if task == "action" and found == 2:
        remedy = "Write the score of crossing alone: the second of the two, if they are a softmax."
    elif other:
        remedy = f"{found} numbers are those of task {other[0]}: say --task {other[0]}."
    says = f"The task {task} has {expected} score{'s' * (expected > 1)} per sample, the file has {found}."
    return wrong("column_count", says, f"{found} columns in {len(scores)} rows", remedy)


def score_scale(scores: Floats) -> list[Diagnosis]:
    """Whether the numbers are probabilities, rather than percent or logits.

    What most rows say is taken for the scale; a few rows outside [0, 1] are named instead.

    Args:
        scores: (n, k) as read.
    """
    low, high = float(scores.min()), float(scores.max())
    evidence = f"the numbers run from {low:g} to {high:g}"
    if low >= -_ROUNDING and high <= 1 + _ROUNDING:
        return _sums(scores)
    outside = np.asarray((scores < -_ROUNDING) | (scores > 1 + _ROUNDING))
    rows = np.asarray(outside.any(axis=1))
    if rows.mean() < _BULK:
        says = f"{int(outside.sum())} of {scores.size} scores lie outside [0, 1], in {int(rows.sum())} rows."
        first = scores[np.arange(len(scores)), outside.argmax(axis=1)]
        remedy = "Write probabilities; most rows hold them already, so look at what made these."
        return wrong("scores_outside", says, named_rows(rows, first), remedy)
    if low >= 0 and high <= 100:
        return wrong("percent", "The scores are percent, not probabilities.", evidence, "Divide by 100.")
    function = "sigmoid" if scores.shape[1] == 1 else "softmax"
    says = "The scores are logits or distances, not probabilities."
    return wrong("logits", says, evidence, f"Apply a {function} before writing them.")


def constant_scores(scores: Floats) -> list[Diagnosis]:
    """Whether the model says the same of every sample.

    Args:
        scores: (n, k) as read.
    """
    if len(scores) < 2 or np.ptp(scores, axis=0).max() > 0:
        return []
    says = "Every sample has the same scores: a ranking measure can only be chance."
    evidence = "all rows are " + ", ".join(f"{value:g}" for value in scores[0][:4])
    return wrong("constant", says, evidence, "Check that the model was loaded and saw its inputs.")


def class_order(scores: Floats, truth: Ints) -> list[Diagnosis]:
    """Whether the columns are in the order of the classes: reversed, or moved by one.

    Args:
        scores: (n, k) as read.
        truth: (n,) true classes 0..K-1.
    """
    if scores.shape[1] == 1:
        return _reversed_score(scores[:, 0], truth)
    k = scores.shape[1]
    if truth.min() < 0 or truth.max() >= k:
        return []
    readings = {
        "as written": scores,
        "reversed": scores[:, ::-1],
        "moved by one to the left": np.roll(scores, -1, axis=1),
        "moved by one to the right": np.roll(scores, 1, axis=1),
    }
    values = {name: _balanced_accuracy(read.argmax(axis=1), truth) for name, read in readings.items()}
    best = max(values, key=lambda name: values[name])
    if best == "as written" or values[best] < values["as written"] + 0.1:
        return []
    says = f"The columns fit the classes far better when they are {best}."
    evidence = f"balanced accuracy {values['as written']:.3f} as written, {values[best]:.3f} {best}"
    return suspicious(
        "class_order", says, evidence, "Write the columns in the order of the classes 0, 1, 2, ..."
    )


def row_alignment(scores: Floats, pedestrian: npt.NDArray[np.str_]) -> list[Diagnosis]:
    """Whether neighbouring samples of one pedestrian are more alike than samples of strangers.

    Observations of one pedestrian overlap, so a model says nearly the same of them. Where neighbours
    differ as much as strangers, rows of scores and samples are not in the same order.

    Args:
        scores: (n, k) as read.
        pedestrian: (n,) whose sample each row is.
    """
    neighbours = pedestrian[1:] == pedestrian[:-1]
    if neighbours.sum() < _MIN_PAIRS:
        return []
    strangers = _mean_difference(scores)
    near = float(np.abs(np.diff(scores, axis=0))[neighbours].mean())
    if strangers == 0 or near < _STRANGERS * strangers:
        return []
    says = "Scores of one pedestrian's neighbouring samples differ as much as those of strangers."
    evidence = f"mean difference {near:.3f} between neighbours, {strangers:.3f} between random rows"
    remedy = "Write the scores in the order of the samples: no shuffling in the data loader, no sorting."
    return suspicious("rows_shuffled", says, evidence, remedy)


def _mean_difference(scores: Floats) -> float:
    """Mean absolute difference of all pairs of rows, from one sort per column."""
    n = len(scores)
    ranks = 2 * np.arange(1, n + 1) - n - 1
    return float(2 * (ranks[:, None] * np.sort(scores, axis=0)).sum(axis=0).mean() / (n * (n - 1)))


def _sums(scores: Floats) -> list[Diagnosis]:
    sums = scores.sum(axis=1)
    if scores.shape[1] == 1 or np.allclose(sums, 1.0, atol=1e-3):
        return []
    off = int((np.abs(sums - 1.0) > 1e-3).sum())
    evidence = f"{off} of {len(sums)} rows do not add up to 1 (from {sums.min():.3f} to {sums.max():.3f})"
    says = "The scores of the classes do not add up to 1: they are not a softmax."
    return suspicious("sums", says, evidence, "Apply a softmax; the published AUC is undefined without.")


def _reversed_score(score: Floats, truth: Ints) -> list[Diagnosis]:
    auc = _auc(score, truth)
    if auc is None or auc >= 0.45:
        return []
    says = "The score is that of not crossing: it ranks crossing pedestrians below the others."
    evidence = f"AUC {auc:.3f}; 1 - score would give {1 - auc:.3f}"
    return suspicious("reversed", says, evidence, "Write 1 - score, or the other column of the softmax.")


def _auc(score: Floats, truth: Ints) -> float | None:
    """Area under the receiver operating characteristic; None for a single class."""
    once = np.ones((1, len(score)), dtype=np.int32)
    _, area = Ranking.of(truth == 1, score).areas(once, np.arange(len(score)))
    return None if np.isnan(area[0]) else float(area[0])


def _balanced_accuracy(decided: npt.NDArray[np.int64], truth: Ints) -> float:
    return float(np.mean([np.mean(decided[truth == k] == k) for k in np.unique(truth)]))
