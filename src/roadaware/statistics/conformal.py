"""How far several answers differ, split conformal prediction, and a few points that cover many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from roadaware.arrays import Bools, Floats


def expand_binary_probabilities(probability: npt.ArrayLike) -> Floats:
    """(..., labels) probabilities, those of label 0 put before where only label 1 is given.

    Args:
        probability: (..., k); k = 1 is that of label 1.
    """
    values = np.asarray(probability, dtype=np.float64)
    return np.concatenate([1 - values, values], axis=-1) if values.shape[-1] == 1 else values


def entropy(probability: npt.ArrayLike) -> Floats:
    """(...) -sum_k p_k ln p_k, in [0, ln labels] nats.

    Args:
        probability: (..., k); k = 1 is that of label 1.

    >>> float(entropy([[1.0]])[0])
    0.0
    """
    values = expand_binary_probabilities(probability)
    # + 0.0 makes 0 of -0, the entropy of a certain answer.
    return np.asarray(-xlogy(values, values).sum(axis=-1) + 0.0)


def standard_deviation(passes: npt.ArrayLike) -> Floats:
    """(n, k) standard deviation of probabilities between passes.

    Args:
        passes: (m, n, k).
    """
    return np.asarray(np.std(np.asarray(passes, dtype=np.float64), axis=0))


def mutual_information(passes: npt.ArrayLike) -> Floats:
    """(n) mutual information between the answer and the pass: H(mean) - mean H, in [0, ln labels] nats.

    It is 0 where all passes agree, however unsure each of them is.

    Args:
        passes: (m, n, k) probabilities.

    Source: Houlsby et al., 2011 (arXiv 1112.5745), eq. 2.
    """
    values = np.asarray(passes, dtype=np.float64)
    # Where all passes agree, rounding may leave the difference just below 0.
    return np.asarray(np.maximum(entropy(values.mean(axis=0)) - entropy(values).mean(axis=0), 0.0))


def compute_quantile_interval(
    passes: npt.ArrayLike, weight: npt.ArrayLike, within: float
) -> tuple[Floats, Floats]:
    """(n) the values that (1 - within) / 2 of the passes, and all but that, do not exceed.

    Each is a value of a pass: the smallest up to which so much weight lies.

    Args:
        passes: (m, n).
        weight: (m) what each pass counts, together 1.
        within: share of the passes between the two, in (0, 1).

    >>> low, high = compute_quantile_interval([[0.1], [0.5], [0.2]], [1 / 3] * 3, within=0.9)
    >>> float(low[0]), float(high[0])
    (0.1, 0.5)
    """
    values, share = np.asarray(passes, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    tail = (1 - within) / 2
    # Sums of weights may end a rounding short of what they should reach exactly.
    ends = np.array([tail, 1 - tail]) - 1e-9
    if (share == share[0]).all():
        # As much weight is reached whichever pass comes first; searching finds the first to reach an end.
        low, high = np.searchsorted(np.cumsum(share), ends)
        ranked = np.sort(values, axis=0)
        return ranked[low], ranked[high]
    order, columns = np.argsort(values, axis=0, kind="stable"), np.arange(values.shape[1])
    ranked, reached = values[order, columns], np.cumsum(share[order], axis=0)
    low, high = ((reached >= end).argmax(axis=0) for end in ends)
    return ranked[low, columns], ranked[high, columns]


Rule = Literal["lac", "aps"]


@dataclass(frozen=True)
class Conformal:
    """A rule with its threshold: a label is in the set where its score does not exceed it.

    Args:
        rule: `lac`, the score of a label is 1 - its probability (smallest sets on average, which may be
            empty); or `aps`, the probability of all labels that are likelier, and its own (sets adapt to how
            hard a sample is).
        alpha: share of samples whose true label may be missing.
        threshold: the largest score that is let in; infinite where calibration had too few samples.
        randomised: of `aps`, let a label's own probability count by a random share, which makes coverage
            exact; else sets are larger than promised and never empty.
    """

    rule: Rule
    alpha: float
    threshold: float
    randomised: bool = False

    def sets(self, probability: npt.ArrayLike, seed: int = 0) -> Bools:
        """(n, labels) which labels are in the set of each sample.

        Args:
            probability: (n, k); k = 1 is that of label 1.
            seed: of the random shares.
        """
        return np.asarray(
            compute_nonconformity(probability, self.rule, self.randomised, seed) <= self.threshold
        )


@dataclass(frozen=True)
class Coverage:
    """How sets did.

    Args:
        n: samples.
        coverage: share of sets that hold the true label.
        size: mean labels in a set.
        empty: share of sets without any.
        single: share of sets with one label: those that decide.
    """

    n: int
    coverage: float
    size: float
    empty: float
    single: float


def calibrate_conformal(
    probability: npt.ArrayLike,
    truth: npt.ArrayLike,
    alpha: float = 0.1,
    rule: Rule = "lac",
    *,
    randomised: bool = False,
    seed: int = 0,
) -> Conformal:
    """The rule with the threshold that reaches the target coverage on samples exchangeable with these.

    The threshold is the ceil((n + 1)(1 - alpha))-th smallest score of the true labels, so that a new sample's
    set holds its true label with probability 1 - alpha at least. Neighbouring samples of one pedestrian, and
    samples of another road, are not exchangeable; `compute_set_coverage` says what is left of the promise there.

    Args:
        probability: (n, k) on samples that were not learnt from; k = 1 is that of label 1.
        truth: (n) labels.
        alpha: share of samples whose true label may be missing, in (0, 1).
        rule: lac or aps.
        randomised: see `Conformal`.
        seed: of the random shares.

    Raises:
        ValueError: if shapes differ, n is 0, alpha leaves (0, 1) or a probability leaves [0, 1].

    Source: lac: Sadinle et al., JASA 2019; aps: Romano et al., NeurIPS 2020, section 2; the quantile:
    Papadopoulos et al., ECML 2002.

    >>> calibrate_conformal([[0.9], [0.8], [0.4]], [1, 1, 1], alpha=0.5).threshold
    0.19999999999999996
    """
    labels = np.asarray(truth, dtype=np.int64)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha should lie in (0, 1), not be {alpha}")
    found = compute_nonconformity(probability, rule, randomised, seed)
    if labels.shape != found.shape[:1] or not len(labels):
        raise ValueError(
            f"probability {found.shape} and truth {labels.shape} should be (n, k) and (n), n > 0"
        )
    own = np.sort(found[np.arange(len(labels)), labels])
    # (n + 1)(1 - alpha) may be a whole number that rounding left just above itself.
    place = math.ceil((len(own) + 1) * (1 - alpha) - 1e-9)
    # With too few samples the promise asks for a score beyond all that were seen: every label is let in.
    threshold = float(own[place - 1]) if place <= len(own) else math.inf
    return Conformal(rule, alpha, threshold, randomised)


def compute_nonconformity(
    probability: npt.ArrayLike, rule: Rule, randomised: bool = False, seed: int = 0
) -> Floats:
    """(n, labels) how odd each label would be.

    Args:
        probability: (n, k); k = 1 is that of label 1.
        rule: lac or aps.
        randomised: see `Conformal`.
        seed: of the random shares.

    Raises:
        ValueError: if a probability leaves [0, 1].
    """
    values = expand_binary_probabilities(probability)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("probabilities should lie in [0, 1]")
    if rule == "lac":
        return np.asarray(1 - values)
    # Stable: of equally likely labels the first one comes first on every machine.
    order = np.argsort(-values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    share = np.random.default_rng(seed).random((len(values), 1)) if randomised else 1.0
    likelier = np.cumsum(ranked, axis=1) - ranked
    found = np.empty_like(values)
    np.put_along_axis(found, order, likelier + share * ranked, axis=1)
    return found


def compute_set_coverage(sets: Bools, truth: npt.ArrayLike) -> Coverage:
    """How often sets hold the true label, and how large they are.

    Args:
        sets: (n, labels) which labels are in.
        truth: (n) labels.

    Raises:
        ValueError: if shapes differ or n is 0.
    """
    labels = np.asarray(truth, dtype=np.int64)
    if labels.shape != sets.shape[:1] or not len(labels):
        raise ValueError(f"sets {sets.shape} and truth {labels.shape} should be (n, k) and (n), n > 0")
    size = sets.sum(axis=1)
    return Coverage(
        len(labels),
        float(sets[np.arange(len(labels)), labels].mean()),
        float(size.mean()),
        float((size == 0).mean()),
        float((size == 1).mean()),
    )


def group_coverage(sets: Bools, truth: npt.ArrayLike, group: npt.ArrayLike) -> dict[str, Coverage]:
    """`compute_set_coverage` of each group, in the order of their names.

    Args:
        sets: (n, labels).
        truth: (n) labels.
        group: (n) what each sample belongs to: a label, a scenario, a domain.
    """
    labels, owners = np.asarray(truth, dtype=np.int64), np.asarray(group)
    return {
        str(one): compute_set_coverage(sets[owners == one], labels[owners == one])
        for one in np.unique(owners)
    }
