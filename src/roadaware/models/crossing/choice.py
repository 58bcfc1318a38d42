"""How one candidate is chosen among several: the best score on validation, the first of equals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.statistics import rates

Criterion = Literal["balanced_accuracy", "log_loss"]


@dataclass(frozen=True)
class Trial:
    """One candidate: its settings and its score on validation, where more is better."""

    settings: dict[str, Any]
    score: float


def score(criterion: Criterion, probability: Floats, truth: npt.NDArray[np.int64]) -> float:
    """How well probabilities fit the truth; more is better, so the log loss comes with a minus.

    Args:
        criterion: balanced_accuracy (mean recall of the labels that occur) or log_loss.
        probability: (n, k) one column per label, or (n, 1) that of label 1.
        truth: (n,) labels.
    """
    full = np.hstack([1 - probability, probability]) if probability.shape[1] == 1 else probability
    if criterion == "log_loss":
        return float(np.log(np.maximum(full[np.arange(len(truth)), truth], 1e-15)).mean())
    counts = rates.confusion(truth, full.argmax(axis=1), full.shape[1])
    return float(np.max(rates.balanced_accuracy(counts)))


def best(trials: Sequence[Trial]) -> int:
    """The index of the best trial, the first of equals."""
    return int(np.argmax([trial.score for trial in trials]))
