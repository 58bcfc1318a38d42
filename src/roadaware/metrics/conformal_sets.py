"""Conformal sets of pedestrian scores: do they hold the true label as often as they promise?"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import get_args

import numpy as np

from roadaware.errors import InputError, UsageError
from roadaware.metrics.scores import SampleScores
from roadaware.statistics.conformal import Rule, calibrate_conformal, compute_set_coverage

HALVINGS = 100


@dataclass(frozen=True)
class Promise:
    """How sets of one rule did, the mean over halvings.

    Args:
        coverage: share of samples whose true label is in the set.
        low, high: of the coverage, the 2.5th and the 97.5th percentile over halvings.
        size: labels in a set.
        empty: share of sets without a label.
        single: share of sets with one label: those that decide.
    """

    coverage: float
    low: float
    high: float
    size: float
    empty: float
    single: float


def evaluate_coverage(
    state: SampleScores, level: float, *, halvings: int = HALVINGS, seed: int = 0
) -> dict[Rule, Promise]:
    """Empirical coverage of conformal sets against the target coverage, by rule.

    Pedestrians are halved at random, again and again; thresholds come from one half, and the sets are those
    of the other. Rule `aps` is randomised, since its sets of two labels nearly always hold both otherwise.

    Args:
        state: the samples.
        level: share of sets that are to hold the true label.
        halvings: how often.
        seed: of the halves.

    Raises:
        UsageError: if the level leaves (0, 1), or there is no halving.
        InputError: if there are fewer than two pedestrians.

    Source: Papadopoulos et al., ECML 2002; the rules are those of `statistics.conformal`.
    """
    if not 0 < level < 1:
        raise UsageError(f"conformal sets promise a share between 0 and 1, such as 0.9, not {level:g}")
    if halvings < 1:
        raise UsageError(f"pedestrians are halved once or more, not {halvings} times")
    people, owner = np.unique(state.pedestrian, return_inverse=True)
    if len(people) < 2:
        raise InputError(f"conformal sets need two pedestrians or more to be halved, found {len(people)}")
    rng, found = np.random.default_rng(seed), {rule: list[tuple[float, ...]]() for rule in get_args(Rule)}
    for place in range(halvings):
        first = np.isin(owner, rng.permutation(len(people))[: len(people) // 2])
        for rule, held in found.items():
            # Seeds of their own: random shares that calibrate must not be those of the sets.
            chance = {"randomised": rule == "aps", "seed": 2 * place}
            made = calibrate_conformal(state.scores[first], state.truth[first], 1 - level, rule, **chance)
            sets = made.sets(state.scores[~first], seed=2 * place + 1)
            held.append(astuple(compute_set_coverage(sets, state.truth[~first]))[1:])
    return {rule: _mean(np.array(held)) for rule, held in found.items()}


def _mean(rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Promise:
    """The mean of (halvings, 4) coverage, size, empty and single."""
    covered, size, empty, single = rows.mean(axis=0).tolist()
    low, high = np.percentile(rows[:, 0], [2.5, 97.5]).tolist()
    return Promise(covered, low, high, size, empty, single)
