"""Scores corrected to the nearest ones whose labels satisfy logical requirements."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.errors import InputError, UsageError
from roadaware.linking.enforcement_kernels import REPAIRED, SATISFIED, UNPROVEN, place_scores, repair
from roadaware.linking.postprocessing import add_step_note
from roadaware.scenes.composites import product_of_marginals
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.requirements import BoundRequirements, Requirements, bind_requirements, find_model
from roadaware.scenes.tables import Predictions

Method = Literal["nearest", "propagation", "maxsat"]
_MOST_DIRECTED, _SHOWN = 20_000, 5
_MOST_NODES = 20_000
"""Of the search in one box; boxes of ROAD's detectors need some tens."""
_PER_ONE = 1_000_000
"""Weights of MaxSAT are whole numbers: millionths of a score."""


@dataclass(frozen=True)
class EnforcementConfig:
    """How scores are corrected.

    Args:
        threshold: a label is predicted where its score is at least this.
        method: `nearest`, the least change, by branch and bound; `propagation`, one pass over the labels in the order
            of the requirements' labels, which changes more; `maxsat`, the least change by weighted partial MaxSAT of
            python-sat, which is slower by a factor of hundreds, and is what the others are held against.
        boxes: `predicted`, those whose own score (agentness) is at least the threshold, or `all`.
        margin: scores that change come to lie within so much of the threshold, in the order that they had.
    """

    threshold: float = 0.5
    method: Method = "nearest"
    boxes: Literal["predicted", "all"] = "predicted"
    margin: float = 1e-3

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a number is out of range or a choice unknown.
        """
        if not 0 < self.threshold <= 1:
            raise UsageError(f"a threshold lies above 0 and up to 1; got {self.threshold}")
        if self.method not in ("nearest", "propagation", "maxsat"):
            raise UsageError(
                f"requirements are enforced by nearest, propagation or maxsat, not {self.method!r}"
            )
        if self.boxes not in ("predicted", "all"):
            raise UsageError(f"requirements are enforced on predicted boxes or all, not {self.boxes!r}")
        if not 0 <= self.margin < 1:
            raise UsageError(f"margin lies from 0 to below 1; got {self.margin}")


@dataclass(frozen=True)
class EnforcementCounts:
    """What enforcement changed.

    Args:
        boxes: all.
        considered: those that count as predicted.
        violating: of them, those that violated a requirement before.
        raised, lowered: scores that were.
        distance: sum over boxes of |score - threshold| over the scores that changed sides.
        unproven: boxes whose result satisfies all requirements, and of which it was not proven to be the nearest.
    """

    boxes: int
    considered: int
    violating: int
    raised: int
    lowered: int
    distance: float
    unproven: int


@dataclass(frozen=True, eq=False)
class Enforcer:
    """Corrects rows of scores; what is made of the requirements once is kept.

    Args:
        bound: requirements, matched to labels; their clauses can hold together.
        config: how.

    Raises:
        InputError: if the requirements contradict each other, or there are too many for the method.
    """

    bound: BoundRequirements
    config: EnforcementConfig
    _directed: tuple[Ints, Ints, Ints, Ints] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Make the directional extension."""
        held = [self.bound.requirements.clauses[k] for k in self.bound.judged]
        # A label that nobody can have is absent: it satisfies what asks for its absence, and helps nothing else.
        absent = [(-k,) for k, column in enumerate(self.bound.columns, 1) if column is None]
        n_labels = len(self.bound.labels)
        # Only where labels are missing can clauses clash that hold together otherwise.
        if absent and find_model([*held, *absent]) is None:
            missing = ", ".join(self.bound.absent[:_SHOWN])
            raise InputError(
                f"no labels of this set satisfy all requirements: it lacks {missing}",
                where=self.bound.requirements.name or None,
                hint="Leave out the requirements that need them.",
            )
        object.__setattr__(self, "_directed", extend_directionally([*held, *absent], n_labels))

    def find_labels(self, scores: Floats32) -> tuple[Bools, Ints]:
        """(n, labels) labels that satisfy all requirements, and (n,) what became of each row; see `repair`.

        Args:
            scores: (n, labels), 0 for labels that nobody can have.
        """
        literals, ends = self._clauses()
        if self.config.method == "maxsat":
            # The nearest labels of each row by python-sat's RC2
            # The MaxSAT solver and its formula
            try:
                from pysat.examples.rc2 import RC2
                from pysat.formula import WCNF
            except ImportError as error:
                raise UsageError(
                    "the method maxsat needs python-sat: pip install 'roadaware[logic]'; the method nearest finds the same "
                    "without it"
                ) from error
            rc2, wcnf = RC2, WCNF

            limit = np.float32(self.config.threshold)
            clauses = [literals[a:b].tolist() for a, b in itertools.pairwise(ends)]
            labels = scores >= limit
            states = np.full(len(scores), SATISFIED, dtype=np.int64)
            weights = np.abs(scores.astype(np.float64) - np.float64(limit))
            for row in range(len(scores)):
                there = labels[row].copy()
                if all(any((k > 0) == there[abs(k) - 1] for k in clause) for clause in clauses):
                    continue
                formula = wcnf()
                formula.extend(clauses)
                for k in range(len(there)):
                    # A soft clause has a weight of 1 at least.
                    formula.append(
                        [k + 1 if there[k] else -k - 1], weight=max(1, round(weights[row, k] * _PER_ONE))
                    )
                with rc2(formula) as solver:
                    model = set(solver.compute())
                labels[row] = [k + 1 in model for k in range(len(there))]
                states[row] = REPAIRED
            return labels, states
        nodes = _MOST_NODES if self.config.method == "nearest" else 0
        labels, states = repair(
            np.ascontiguousarray(scores, dtype=np.float32),
            self.config.threshold,
            literals,
            ends,
            *self._directed,
            nodes,
        )
        return labels, states

    def _clauses(self) -> tuple[Ints, Ints]:
        """The judged clauses, and one for each label that nobody can have."""
        literals, ends = self.bound.literals()
        absent = np.array([-k for k, column in enumerate(self.bound.columns, 1) if column is None], np.int64)
        return np.concatenate([literals, absent]), np.concatenate(
            [ends, ends[-1] + np.arange(1, len(absent) + 1)]
        )


def extend_directionally(clauses: Sequence[Sequence[int]], n_labels: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Clauses, with those that follow from them, such that labels can be decided in their order without going back.

    Labels are eliminated by resolution from the last to the first; the bucket of a label holds the clauses that it is
    the last label of. Whatever the labels before it are, if their buckets are satisfied, one of its two values
    satisfies its own.

    Args:
        clauses: over labels from 1.
        n_labels: how many labels there are.

    Returns:
        literals, (clauses + 1,) where each clause begins, (labels,) the order from 0, and (labels + 1,) where the clauses
        of each place in the order begin.

    Raises:
        InputError: if the clauses contradict each other, or more than 20,000 follow in both orders that are tried.

    Source: Dechter and Rish, "Directional resolution: the Davis-Putnam procedure, revisited", KR 1994; the same
    elimination orders requirements in Giunchiglia and Lukasiewicz, JAIR 2021.
    """
    order = list(range(1, n_labels + 1))
    buckets = _eliminate(clauses, order)
    if buckets is None:
        # Labels in few clauses are eliminated first.
        uses = {k: sum(k in clause or -k in clause for clause in clauses) for k in order}
        order.sort(key=lambda k: -uses[k])
        buckets = _eliminate(clauses, order)
    if buckets is None:
        raise InputError(
            f"more than {_MOST_DIRECTED:,} requirements follow from these: they are too entangled",
            hint="Leave some out, or split them.",
        )
    flat = [clause for label in order for clause in buckets[label]]
    literals = np.array([k for clause in flat for k in clause], dtype=np.int64)
    ends = np.cumsum([0, *map(len, flat)]).astype(np.int64)
    begins = np.cumsum([0, *(len(buckets[label]) for label in order)]).astype(np.int64)
    return literals, ends, np.array(order, dtype=np.int64) - 1, begins


def _eliminate(
    clauses: Sequence[Sequence[int]], order: Sequence[int]
) -> dict[int, list[tuple[int, ...]]] | None:
    """The clauses of each label's bucket; None where there are too many."""
    current = _remove_implied({frozenset(clause) for clause in clauses})
    buckets: dict[int, list[tuple[int, ...]]] = {}
    total = 0
    for label in reversed(order):
        with_it = [clause for clause in current if label in clause]
        without = [clause for clause in current if -label in clause]
        buckets[label] = [tuple(sorted(clause, key=abs)) for clause in (*with_it, *without)]
        total += len(buckets[label])
        if total + len(with_it) * len(without) > _MOST_DIRECTED:
            return None
        rest = {clause for clause in current if label not in clause and -label not in clause}
        rest |= {(one - {label}) | (other - {-label}) for one in with_it for other in without}
        if frozenset() in rest:
            raise InputError(
                "the requirements contradict each other", hint="`find_contradiction` names those that do"
            )
        current = _remove_implied(rest)
    return buckets


def _remove_implied(clauses: set[frozenset[int]]) -> list[frozenset[int]]:
    """The clauses without those that always hold, or that a shorter one implies."""
    kept: list[frozenset[int]] = []
    for clause in sorted(clauses, key=lambda each: (len(each), sorted(each))):
        if not any(-k in clause for k in clause) and not any(each <= clause for each in kept):
            kept.append(clause)
    return kept


def measure_distance(scores: Floats32, threshold: float, there: Bools) -> Floats:
    """(n,) sum of |score - threshold| over the labels that change sides."""
    limit = np.float32(threshold)
    moved = np.abs(scores.astype(np.float64) - np.float64(limit))
    distance: Floats = np.where((scores >= limit) != there, moved, 0.0).sum(axis=1)
    return distance


def enforce_requirements(
    predictions: Predictions, requirements: Requirements, config: EnforcementConfig | None = None
) -> tuple[Predictions, EnforcementCounts]:
    """Detections whose labels at a threshold satisfy requirements, and what was changed.

    Scores of labels that requirements do not name stay as they are; scores of duplexes and events that are products of
    marginals are made anew.

    Args:
        predictions: detections with dense scores, not linked.
        requirements: over labels by name.
        config: how (default: `EnforcementConfig()`).

    Raises:
        InputError: if the predictions have tubes or no scores, or the requirements contradict each other.
    """
    config = config or EnforcementConfig()
    if not predictions.tubes.is_empty():
        raise InputError(
            "expected detections, found tubes: their labels come from scores that would change under them",
            hint="enforce the requirements on the detections, and link them afterwards",
        )
    layout = get_score_layout(predictions.meta, "boxes")
    if "scores" not in predictions.boxes.columns or not layout.width:
        raise InputError("expected detections with scores of labels, found none")
    bound = bind_requirements(requirements, layout.kinds)
    enforcer = Enforcer(bound, config)
    dense = convert_to_matrix(predictions.boxes["scores"], layout.width).copy()
    columns = [None if each is None else layout.columns(each[0]).start + each[1] for each in bound.columns]
    rows = np.arange(len(dense))
    if config.boxes == "predicted" and "score" in predictions.boxes.columns:
        own = predictions.boxes["score"].fill_null(1.0).to_numpy().astype(np.float32)
        rows = np.flatnonzero(own >= np.float32(config.threshold))
    scores = np.zeros((len(rows), len(columns)), dtype=np.float32)
    for k, column in enumerate(columns):
        if column is not None:
            scores[:, k] = dense[rows, column]
    labels, states = enforcer.find_labels(scores)
    placed = place_scores(scores, labels, config.threshold, config.margin)
    before = scores >= np.float32(config.threshold)
    for k, column in enumerate(columns):
        if column is not None:
            dense[rows, column] = placed[:, k]
    counts = EnforcementCounts(
        len(dense),
        len(rows),
        int((states != SATISFIED).sum()),
        int((labels & ~before).sum()),
        int((before & ~labels).sum()),
        float(measure_distance(scores, config.threshold, labels).sum()),
        int((states == UNPROVEN).sum()),
    )
    meta = add_step_note(
        predictions.meta,
        "enforced",
        config,
        boxes=counts.considered,
        violating=counts.violating,
        raised=counts.raised,
        lowered=counts.lowered,
        requirements=len(bound.judged),
    )
    made = predictions.boxes.with_columns(
        pl.Series("scores", dense, dtype=pl.Array(pl.Float32, layout.width))
    )
    # Scores that also stand as rows of labels would be the old ones.
    kept = predictions.labels.filter(~pl.col("kind").cast(pl.String).is_in(list(layout.kinds)))
    result = predictions.with_tables(boxes=made, labels=kept, meta=meta)
    if predictions.meta.notes.get("products_of_marginals"):
        result = product_of_marginals(result)
    return result, counts
