"""Doubtful: whatever can be evaluated several times, and the statistics of its passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from roadaware.arrays import Floats
from roadaware.models.crossing.inputs import InputSet
from roadaware.statistics import disagreement


@runtime_checkable
class Doubtful(Protocol):
    """A predictor whose output may differ from pass to pass."""

    def probabilities(self, given: InputSet) -> Floats:
        """(n, k) its one answer: k = 1 is that of label 1, else one of each label.

        Args:
            given: n samples.
        """

    def passes(self, given: InputSet, n: int, seed: int = 0) -> Floats:
        """(passes, n, k) answers of single passes; the same seed gives the same ones.

        Args:
            given: n samples.
            n: how many passes.
            seed: of what differs between them.
        """


@dataclass(frozen=True, eq=False)
class Doubt:
    """Mean and uncertainty of passes.

    Args:
        mean: (n, k) probabilities.
        spread: (n, k) their standard deviation between passes.
        entropy: (n) of the mean, in nats: the total uncertainty.
        mutual_information: (n) the part of it on which passes disagree; the rest all of them share.
    """

    mean: Floats
    spread: Floats
    entropy: Floats
    mutual_information: Floats


def estimate_uncertainty(model: Doubtful, given: InputSet, passes: int, seed: int = 0) -> Doubt:
    """Mean, spread, entropy and mutual information of a model's passes.

    Args:
        model: of any sort.
        given: n samples.
        passes: how many.
        seed: of what differs between them.
    """
    found = model.passes(given, passes, seed)
    mean = np.asarray(found.mean(axis=0))
    return Doubt(
        mean,
        disagreement.standard_deviation(found),
        disagreement.entropy(mean),
        disagreement.mutual_information(found),
    )
