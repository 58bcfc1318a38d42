"""EnsemblePredictor: several predictors as one, over seeds or over training sets; one predictor several times by
Monte Carlo dropout; and the statistics of whatever is evaluated several times; imports torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.errors import InputError, UsageError
from roadaware.models.crossing.hazard_trees import HazardTrees, is_hazard_trees
from roadaware.models.crossing.inputs import InputSet
from roadaware.models.crossing.predictor import Predictor, refuse_without_dropout
from roadaware.models.crossing.tabular import TabularPredictor
from roadaware.models.crossing.uncertainty_config import DoubtConfig
from roadaware.statistics import conformal
from roadaware.statistics.calibration import fit_temperature


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
        conformal.standard_deviation(found),
        conformal.entropy(mean),
        conformal.mutual_information(found),
    )


def apply_mc_dropout(predictor: Predictor, passes: int = 30) -> Predictor:
    """The same network with dropout active at inference; its output is the mean of passes.

    Args:
        predictor: trained with dropout.
        passes: how many.

    Raises:
        UsageError: if its network drops nothing, or its last layer holds distributions.

    Source: Gal and Ghahramani, ICML 2016, eq. 6.
    """
    before = predictor.doubt
    if before.kind == "last-flipout":
        raise UsageError("weights of the last layer are drawn already; ask its own passes")
    refuse_without_dropout(predictor.network)
    return replace(predictor, doubt=DoubtConfig("dropout", rate=before.rate, passes=passes))


_FILES = ("seed-*/model.safetensors", "seed-*/model.npz")


@dataclass(frozen=True, eq=False)
class EnsemblePredictor:
    """The mean of the probabilities of its members, each of which counts the same.

    Args:
        members: predictors, or ensembles of them, of one task.

    Raises:
        UsageError: if there are none, or they answer different questions.

    Source: Lakshminarayanan et al., NeurIPS 2017; over training sets: Gesnouin et al., IV 2022, section III.
    """

    members: tuple[Predictor | HazardTrees | TabularPredictor | EnsemblePredictor, ...]

    def __post_init__(self) -> None:
        """Refuse what has no mean."""
        if not self.members:
            raise UsageError("an ensemble has at least one member")
        for one in self.members[1:]:
            if (one.task, one.labels) != (self.task, self.labels):
                raise UsageError(
                    f"an ensemble answers one question; one member tells {self.task} "
                    f"({', '.join(self.labels)}), another {one.task} ({', '.join(one.labels)})"
                )

    @classmethod
    def open(cls, paths: Sequence[Path]) -> Self:
        """The ensemble of files of predictors and folders of runs; the seeds of a folder count as one member.

        Args:
            paths: files of predictors (.npz of trees of the time and of models on hand features), or folders that
                `roadaware train` wrote; the only folder's seeds are the members themselves.

        Raises:
            InputError: if a path holds no predictor.
            DamagedError: if a file is not whole.
        """
        held = [cls._opened(path) for path in paths]
        if len(held) == 1 and isinstance(held[0], cls):
            return held[0]
        return cls(tuple(held))

    @classmethod
    def _opened(cls, path: Path) -> Predictor | HazardTrees | TabularPredictor | EnsemblePredictor:
        if not path.is_dir():
            if path.suffix != ".npz":
                return Predictor.open(path)
            return HazardTrees.open(path) if is_hazard_trees(path) else TabularPredictor.open(path)
        # By length first: seed-10 comes after seed-9.
        held = (
            sorted(path.glob(kind), key=lambda file: (len(file.parent.name), file.parent.name))
            for kind in _FILES
        )
        found = next(filter(None, held), None)
        if not found:
            raise InputError(f"expected predictors ({' or '.join(_FILES)}) and found none", where=str(path))
        return cls(tuple(cls._opened(file) for file in found))

    @property
    def task(self) -> str:
        """Of all members."""
        return self.members[0].task

    @property
    def labels(self) -> tuple[str, ...]:
        """The words of its answers."""
        return self.members[0].labels

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of what its members read, each once."""
        return tuple(dict.fromkeys(name for one in self.members for name in one.inputs))

    @property
    def smallest(self) -> int:
        """The fewest passes in which all members have equal shares."""
        return len(self.members) * math.lcm(*(one.smallest for one in self.members))

    def of_members(self, given: InputSet) -> Floats:
        """(members, n, k) the answer of each, for how far they are apart.

        Args:
            given: n samples with all that members read.

        Raises:
            InputError: if an input is missing or has another shape.
        """
        return np.stack([one.probabilities(given) for one in self.members])

    def probabilities(self, given: InputSet) -> Floats:
        """(n, k) mean over members.

        Args:
            given: as `of_members` takes it.
        """
        return np.asarray(self.of_members(given).mean(axis=0))

    def passes(self, given: InputSet, n: int, seed: int = 0) -> Floats:
        """(passes, n, k) those of the first member, then those of the next.

        Args:
            given: as `of_members` takes it.
            n: how many, a multiple of `smallest`.
            seed: of what differs between the passes of a member.

        Raises:
            UsageError: if members would have unequal shares.
        """
        if n < 1 or n % self.smallest:
            raise UsageError(f"passes of this ensemble come in multiples of {self.smallest}, not {n}")
        each = n // len(self.members)
        return np.concatenate([one.passes(given, each, seed) for one in self.members])


# A predictor whose probabilities were made to mean what they say on validation; imports torch.


def calibrate_predictor(
    predictor: Predictor, given: InputSet, truth: npt.ArrayLike, seed: int = 0
) -> Predictor:
    """The same network, its logits over the temperature with the smallest log loss.

    Which label is likeliest stays as it is, and so does the order of samples where there are two labels and
    one pass.

    Args:
        predictor: trained; its passes are what is calibrated where they differ.
        given: n samples that were not learnt from.
        truth: (n) labels.
        seed: of the passes.

    Raises:
        InputError: if an input is missing or has another shape.
        ValueError: if labels do not fit.

    Source: Guo et al., ICML 2017, section 4.2.
    """
    plain = replace(predictor, temperature=1.0)
    logits = plain.pass_logits(given, predictor.doubt.passes if predictor.doubt.draws else 1, seed)
    return replace(predictor, temperature=fit_temperature(logits, np.asarray(truth)))
