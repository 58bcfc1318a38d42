"""Choosing: how well scores fit the truth, more being better, to tell one epoch or fit from another."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.models.crossing import choice
from roadaware.statistics import ranking
from roadaware.training.pedestrians.recipe import Criterion


def worth(criterion: Criterion, probability: Floats, truth: npt.NDArray[np.int64]) -> float:
    """How well probabilities fit; rankings of several labels are means over the labels that occur.

    Args:
        criterion: average_precision, auc, log_loss (with a minus) or balanced_accuracy.
        probability: (n, k); k = 1 is that of label 1.
        truth: (n) labels.

    Returns:
        NaN where a ranking means nothing, since one label alone occurs.
    """
    if criterion == "log_loss" or criterion == "balanced_accuracy":
        return choice.score(criterion, probability, truth)
    rule = ranking.average_precision if criterion == "average_precision" else ranking.roc_auc
    labels = [1] if probability.shape[1] == 1 else range(probability.shape[1])
    found = [rule(truth == label, probability[:, min(label, probability.shape[1] - 1)]) for label in labels]
    known = [value for value in found if value is not None]
    return float(np.mean(known)) if known else float("nan")
