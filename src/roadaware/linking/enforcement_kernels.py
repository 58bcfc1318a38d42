"""Compiled repair of label sets that violate clauses: by propagation along an order of labels, and to the nearest set by
branch and bound.
"""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Bools, Floats32, Ints
from roadaware.geometry.compiled import inline_kernel, kernel

SATISFIED, REPAIRED, UNPROVEN = 0, 1, 2
"""What became of a row: nothing to do; the nearest one, or that of the propagation; the best found within the limit."""


@inline_kernel
def _is_satisfied(there: Bools, literals: Ints, first: int, last: int) -> bool:
    found = False
    for at in range(first, last):
        literal = literals[at]
        if (literal > 0) == there[abs(literal) - 1]:
            found = True
            break
    return found


@kernel
def propagate(there: Bools, literals: Ints, ends: Ints, order: Ints, buckets: Ints) -> None:
    """Decide one label after the other, in an order; each keeps its value unless a clause forces the other.

    Args:
        there: (labels,) changed in place.
        literals, ends: clauses of the directional extension, by bucket; see `linking.enforcement`.
        order: (labels,) from 0, which label is decided when.
        buckets: (labels + 1,) for each place in the order where its clauses begin.
    """
    for place in range(len(order)):
        label = order[place]
        for clause in range(buckets[place], buckets[place + 1]):
            # All other labels of the clause are decided: where none satisfies it, this one has to.
            if not _is_satisfied(there, literals, ends[clause], ends[clause + 1]):
                there[label] = not there[label]
                break


@kernel
def repair(
    scores: Floats32,
    threshold: float,
    literals: Ints,
    ends: Ints,
    directed: Ints,
    directed_ends: Ints,
    order: Ints,
    buckets: Ints,
    most_nodes: int,
) -> tuple[Bools, Ints]:
    """Rows of labels that satisfy all clauses, near those that reach the threshold.

    The distance of two sets is the sum of |score - threshold| over the labels in which they differ.

    Args:
        scores: (n, labels).
        threshold: a label is there where its score is at least this.
        literals, ends: the clauses.
        directed, directed_ends, order, buckets: see `propagate`.
        most_nodes: of the search in each row; 0 for what the propagation finds.

    Returns:
        (n, labels) labels, and (n,) what became of each row.
    """
    n, width = scores.shape
    found = np.empty((n, width), dtype=np.bool_)
    states = np.zeros(n, dtype=np.int64)
    n_clauses = len(ends) - 1
    there = np.empty(width, dtype=np.bool_)
    weight = np.empty(width, dtype=np.float64)
    fixed = np.empty(width, dtype=np.int64)
    clause_at = np.empty(width + 1, dtype=np.int64)
    flipped = np.empty(width + 1, dtype=np.int64)
    for row in range(n):
        for label in range(width):
            there[label] = scores[row, label] >= np.float32(threshold)
            weight[label] = abs(np.float64(scores[row, label]) - np.float64(np.float32(threshold)))
        found[row] = there
        broken = False
        for clause in range(n_clauses):
            if not _is_satisfied(there, literals, ends[clause], ends[clause + 1]):
                broken = True
                break
        if not broken:
            continue
        states[row] = REPAIRED
        propagate(found[row], directed, directed_ends, order, buckets)
        if most_nodes == 0:
            continue
        best = 0.0
        for label in range(width):
            if found[row, label] != there[label]:
                best += weight[label]
        # Depth first: a violated clause is repaired by flipping one of its labels, the cheapest first; those that were
        # tried stay as they are for the others, so that no set is met twice.
        for label in range(width):
            fixed[label] = -1
        depth, cost, nodes, descend = 0, 0.0, 0, True
        while depth >= 0:
            if descend:
                nodes += 1
                if nodes > most_nodes:
                    states[row] = UNPROVEN
                    break
                # The violated clause whose cheapest repair costs most: it cuts most.
                chosen, dearest = -1, -1.0
                for clause in range(n_clauses):
                    cheapest, holds = np.inf, False
                    for at in range(ends[clause], ends[clause + 1]):
                        label = abs(literals[at]) - 1
                        if (literals[at] > 0) == there[label]:
                            holds = True
                            break
                        if fixed[label] < 0 and weight[label] < cheapest:
                            cheapest = weight[label]
                    if not holds and cheapest > dearest:
                        chosen, dearest = clause, cheapest
                if chosen < 0:
                    best = cost
                    found[row] = there
                clause_at[depth] = chosen
                flipped[depth] = -1
                descend = False
            else:
                label = flipped[depth]
                if label >= 0:
                    there[label] = not there[label]
                    cost -= weight[label]
            # The next label of the clause at this depth.
            cheapest, pick = np.inf, -1
            if clause_at[depth] >= 0:
                for at in range(ends[clause_at[depth]], ends[clause_at[depth] + 1]):
                    label = abs(literals[at]) - 1
                    if fixed[label] < 0 and weight[label] < cheapest:
                        cheapest, pick = weight[label], label
            if pick >= 0 and cost + cheapest < best:
                fixed[pick] = depth
                flipped[depth] = pick
                there[pick] = not there[pick]
                cost += cheapest
                depth += 1
                descend = True
                continue
            for label in range(width):
                if fixed[label] == depth:
                    fixed[label] = -1
            depth -= 1
    return found, states


@kernel
def place_scores(scores: Floats32, there: Bools, threshold: float, margin: float) -> Floats32:
    """Scores that reach the threshold exactly where a label is there; the others keep theirs.

    A score that has to change becomes one within the margin of the threshold, in the order of the scores that change.

    Args:
        scores: (n, labels).
        there: (n, labels) which labels are to reach it.
        threshold, margin: see above.
    """
    found = scores.copy()
    limit = np.float32(threshold)
    for row in range(len(scores)):
        for label in range(scores.shape[1]):
            score = scores[row, label]
            if (score >= limit) == there[row, label]:
                continue
            if there[row, label]:
                # From 0 to the threshold, onto the margin above it.
                room = min(margin, 1.0 - threshold)
                found[row, label] = max(limit, np.float32(threshold + room * (score / threshold)))
            else:
                # From the threshold to 1, onto the margin below it.
                span = 1.0 - threshold
                share = (score - threshold) / span if span > 0 else 0.0
                lowered = np.float32(threshold - min(margin, threshold) * (1.0 - share))
                found[row, label] = min(lowered, np.nextafter(limit, np.float32(0)))
    return found
