"""The linker's compiled steps: edges, assignment, order of paths, opening and closing; imports numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roadaware.geometry.arithmetic import block_sum, rounded
from roadaware.geometry.compiled import inlined, kernel

Floats = npt.NDArray[np.float64]
Narrow = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

COSTS = ("score", "iou", "scoreiou", "ioul2")
MOTIONS = ("none", "count", "time")
# Columns of `Pool.found`, of `Live.paths`, and places in `counters`.
FRAME, BEFORE, OWNER = 0, 1, 2
NUMBER, LENGTH, LAST, FIRST_FRAME = 0, 1, 2, 3
N_LIVE, NEXT_NUMBER, N_CLOSED = 0, 1, 2
# What `steps` does with a frame.
WHOLE, LINK, SETTLE = 0, 1, 2


class Rules(NamedTuple):
    """What of a LinkerConfig the kernels ask for; `cost` and `motion` are places in COSTS and MOTIONS."""

    single: bool
    clamped: bool
    motion: int
    cost: int
    min_iou: float
    min_edge: float
    sum_rule: bool
    jump_gap: int
    top_key: bool
    reversed_ties: bool
    sort_new: bool
    filled: bool
    l2_columns: int


class Pool(NamedTuple):
    """Detections, one place each: boxes (p, 4), agentness (p,), time (p,), class scores (p, c), and found
    (p, 3): the frame, the place of the one before in its path (-1 for none), the number of its path.
    """

    box: Floats
    agentness: Floats
    time: Floats
    scores: Narrow
    found: Ints


class Live(NamedTuple):
    """Live paths, one slot each: paths (s, 4) number, length, last detection and first frame; total
    agentness (s,), best agentness (s, h) ascending, sums of class scores (s, c). The first slots of
    `order` are those of the live paths, best first; the others are free.
    """

    order: Ints
    paths: Ints
    total: Floats
    top: Floats
    sums: Floats


@inlined
def _expect(
    last: int, time: float, box: Floats, times: Floats, found: Ints, rules: Rules, at: Floats
) -> None:
    """Write where a path is expected at `time` into `at` (4,)."""
    past, steps, motion, single = last, 0, rules.motion, rules.single
    while motion > 0 and steps < rules.jump_gap and found[past, BEFORE] >= 0:
        past = found[past, BEFORE]
        steps += 1
    for side in range(4):
        here = box[last, side]
        if motion == 1:
            step = rounded(rounded(here - box[past, side], single) / max(1, steps), single)
            here = rounded(here + step, single)
        elif steps > 0:
            here += (here - box[past, side]) * (time - times[last]) / (times[last] - times[past])
        at[side] = here


@inlined
def _overlap(at: Floats, box: Floats, place: int, clamped: bool, single: bool) -> float:
    """IoU of `at` (4,) and row `place` of `box`.

    Unclamped, boxes apart in both directions have the product of two negative sides as intersection, and
    an expected box that motion has turned inside out has a negative area; both may give any number.
    """
    width = rounded(min(at[2], box[place, 2]) - max(at[0], box[place, 0]), single)
    height = rounded(min(at[3], box[place, 3]) - max(at[1], box[place, 1]), single)
    if clamped and (width <= 0 or height <= 0):
        return 0.0
    inter = rounded(width * height, single)
    # The published code too asks for a positive product before it divides; without this, a box turned
    # inside out by motion would overlap what it does not touch.
    if inter <= 0:
        return 0.0
    area_a = rounded(rounded(at[2] - at[0], single) * rounded(at[3] - at[1], single), single)
    wide = rounded(box[place, 2] - box[place, 0], single)
    area_b = rounded(wide * rounded(box[place, 3] - box[place, 1], single), single)
    return float(inter / (rounded(area_a + area_b, single) - inter))


@inlined
def _closeness(a: int, b: int, agentness: Floats, scores: Narrow, columns: int, single: bool) -> float:
    """1 / L2 distance of agentness and the first class scores of two detections."""
    squares = np.empty(columns + 1)
    for c in range(columns + 1):
        if c == 0:
            apart = rounded(agentness[a] - agentness[b], single)
        else:
            apart = rounded(np.float64(scores[a, c - 1]) - np.float64(scores[b, c - 1]), single)
        squares[c] = rounded(apart * apart, single)
    distance = rounded(np.sqrt(block_sum(squares, 0, columns + 1, single)), single)
    return rounded(1.0 / distance, single)


@inlined
def _fill_edges(last: int, slots: Ints, time: float, pool: Pool, rules: Rules, edges: Floats) -> None:
    """Write what each detection is worth to a path into `edges` (n,); negative for no candidate."""
    box, agentness, scores = pool.box, pool.agentness, pool.scores
    clamped, single, least, cost = rules.clamped, rules.single, rules.min_iou, rules.cost
    at = np.empty(4)
    _expect(last, time, box, pool.time, pool.found, rules, at)
    for d in range(slots.shape[0]):
        iou = _overlap(at, box, slots[d], clamped, single)
        if not iou >= least:
            edges[d] = -1.0
        elif cost == 0:
            edges[d] = agentness[slots[d]]
        elif cost == 1:
            edges[d] = iou
        else:
            edges[d] = (agentness[slots[d]] + iou) / 2
            if cost == 3:
                edges[d] += _closeness(last, slots[d], agentness, scores, rules.l2_columns, single)


@inlined
def _choose(edges: Floats, taken: npt.NDArray[np.bool_], sum_rule: bool, min_edge: float) -> int:
    """The detection a path goes on with, of those not taken; -1 for none, the first of equals."""
    best, total = -1, 0.0
    for d in range(edges.shape[0]):
        if not taken[d] and edges[d] >= 0:
            total += edges[d]
            if best < 0 or edges[d] > edges[best]:
                best = d
    if best >= 0 and (total if sum_rule else edges[best]) > min_edge:
        return best
    return -1


@kernel
def _extend(
    slot: int, place: int, found: Ints, agentness: Floats, scores: Narrow, live: Live, filled: bool
) -> None:
    """Put a detection at the end of a path, and keep what order and running labels need."""
    paths, sums, top = live.paths, live.sums, live.top
    last, length, score = paths[slot, LAST], paths[slot, LENGTH], agentness[place]
    missed = found[place, FRAME] - found[last, FRAME] - 1 if filled and length > 0 else 0
    found[place, BEFORE] = last if length > 0 else -1
    found[place, OWNER] = paths[slot, NUMBER]
    if length == 0:
        paths[slot, FIRST_FRAME] = found[place, FRAME]
        live.total[slot] = 0.0
    for c in range(sums.shape[1]):
        between = missed * (np.float64(scores[last, c]) + np.float64(scores[place, c])) / 2 if missed else 0.0
        sums[slot, c] = (sums[slot, c] if length > 0 else 0.0) + between + np.float64(scores[place, c])
    paths[slot, LAST] = place
    paths[slot, LENGTH] = length + 1
    live.total[slot] += score
    # The best scores so far, ascending; once there is no room, the worst of them goes.
    i = min(length, top.shape[1])
    if i == top.shape[1]:
        if score <= top[slot, 0]:
            return
        for k in range(1, i):
            top[slot, k - 1] = top[slot, k]
        i -= 1
    while i > 0 and top[slot, i - 1] > score:
        top[slot, i] = top[slot, i - 1]
        i -= 1
    top[slot, i] = score


@kernel
def _key(slot: int, live: Live, top_key: bool, single: bool) -> float:
    """What a live path is ordered by."""
    if top_key:
        n = min(live.paths[slot, LENGTH], live.top.shape[1])
        return rounded(block_sum(live.top[slot], 0, n, single) / n, single)
    return float(live.total[slot] / live.paths[slot, LENGTH])


@inlined
def _link(
    slots: Ints,
    frame: int,
    time: float,
    pool: Pool,
    live: Live,
    n_live: int,
    rules: Rules,
    given: Ints,
    taken: npt.NDArray[np.bool_],
    keys: Floats,
) -> None:
    """Continue live paths with the frame's detections and give each path its key; 0 for stale ones."""
    n = slots.shape[0]
    edges = np.empty(n)
    for d in range(n):
        taken[d] = False
    for place in range(n_live):
        slot = live.order[place]
        last = live.paths[slot, LAST]
        keys[place] = 0.0
        if frame - pool.found[last, FRAME] > rules.jump_gap:
            continue
        if given.shape[0] > 0:
            chosen = given[place]
        else:
            _fill_edges(last, slots, time, pool, rules, edges)
            chosen = _choose(edges, taken, rules.sum_rule, rules.min_edge)
        if chosen >= 0:
            taken[chosen] = True
            _extend(slot, slots[chosen], pool.found, pool.agentness, pool.scores, live, rules.filled)
        keys[place] = _key(slot, live, rules.top_key, rules.single)


@inlined
def _begin(
    slots: Ints,
    taken: npt.NDArray[np.bool_],
    pool: Pool,
    live: Live,
    counters: Ints,
    rules: Rules,
    keys: Floats,
) -> None:
    """Start a path from each detection that was not taken, behind the live ones."""
    for d in range(slots.shape[0]):
        if not taken[d]:
            slot = live.order[counters[N_LIVE]]
            live.paths[slot, NUMBER] = counters[NEXT_NUMBER]
            live.paths[slot, LENGTH] = 0
            _extend(slot, slots[d], pool.found, pool.agentness, pool.scores, live, rules.filled)
            keys[counters[N_LIVE]] = _key(slot, live, rules.top_key, rules.single)
            counters[N_LIVE] += 1
            counters[NEXT_NUMBER] += 1


@inlined
def _order_by_key(keys: Floats, n: int, reversed_ties: bool, order: Ints) -> None:
    """Write the places of the first `n` keys by falling key; equals as they stand, or the other way round."""
    for i in range(n):
        j = i
        while j > 0 and (keys[order[j - 1]] < keys[i] or (reversed_ties and keys[order[j - 1]] == keys[i])):
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@inlined
def _settle(
    order: Ints, frame: int, found: Ints, live: Live, counters: Ints, jump_gap: int, closed: Ints
) -> None:
    """Bring the live paths into an order and close the stale ones, which are written to `closed`."""
    n_live, kept, n_closed = counters[N_LIVE], 0, 0
    before, gone = np.empty(n_live, np.int64), np.empty(n_live, np.int64)
    for place in range(n_live):
        before[place] = live.order[place]
    for i in range(n_live):
        slot = before[order[i]]
        last = live.paths[slot, LAST]
        if frame - found[last, FRAME] <= jump_gap:
            live.order[kept] = slot
            kept += 1
        else:
            closed[n_closed, 0], closed[n_closed, 1] = live.paths[slot, NUMBER], last
            gone[n_closed] = slot
            n_closed += 1
    for i in range(n_closed):
        live.order[kept + i] = gone[i]
    counters[N_LIVE], counters[N_CLOSED] = kept, n_closed


@kernel
def steps(
    places: Ints,
    ends: Ints,
    frames: Ints,
    times: Floats,
    pool: Pool,
    live: Live,
    counters: Ints,
    rules: Rules,
    part: int,
    given: Ints,
    taken: npt.NDArray[np.bool_],
    keys: Floats,
    order: Ints,
    closed: Ints,
    emitted: Ints,
) -> int:
    """Go through frames: continue, order, close and begin paths; returns how many closed in all of them.

    Args:
        places: (n,) detections in the pool, frame after frame.
        ends: (f + 1,) where each frame's detections start and end in `places`.
        frames: (f,) ascending, later than all before.
        times: (f,) their times, in the unit of `pool.time`.
        pool: all detections.
        live: the live paths, with free slots for all detections of a frame.
        counters: (3,) live paths, number of the next path, paths closed in the last frame.
        rules: of the linker.
        part: WHOLE; or first LINK and then SETTLE, between which `order` is written from outside.
        given: (n_live,) which detection each live path goes on with, -1 for none; empty where they are to
            choose in their order.
        taken: (detections of a frame,) scratch: whether a path went on with it.
        keys: (slots,) scratch: what the live paths are ordered by.
        order: (slots,) scratch: their places in the new order.
        closed: (slots, 2) written: number and last detection of the paths closed in the last frame.
        emitted: (n,) written: numbers of all that closed, in order; may be shorter if one frame is given.
    """
    done = 0
    for f in range(frames.shape[0]):
        slots = places[ends[f] : ends[f + 1]]
        if part != SETTLE:
            _link(slots, frames[f], times[f], pool, live, counters[N_LIVE], rules, given, taken, keys)
            if rules.sort_new:
                _begin(slots, taken, pool, live, counters, rules, keys)
            _order_by_key(keys, counters[N_LIVE], rules.reversed_ties, order)
        if part != LINK:
            _settle(order, frames[f], pool.found, live, counters, rules.jump_gap, closed)
            if not rules.sort_new:
                _begin(slots, taken, pool, live, counters, rules, keys)
            for i in range(min(counters[N_CLOSED], emitted.shape[0] - done)):
                emitted[done + i] = closed[i, 0]
            done += counters[N_CLOSED]
    return done


@kernel
def edge_matrix(
    slots: Ints, frame: int, time: float, pool: Pool, live: Live, n_live: int, rules: Rules
) -> Floats:
    """What each detection of a frame is worth to each live path (n_live, n), 0 where it may not be taken."""
    n = slots.shape[0]
    gain, edges, free = np.zeros((n_live, n)), np.empty(n), np.zeros(n, np.bool_)
    for place in range(n_live):
        last = live.paths[live.order[place], LAST]
        if frame - pool.found[last, FRAME] > rules.jump_gap:
            continue
        _fill_edges(last, slots, time, pool, rules, edges)
        if _choose(edges, free, rules.sum_rule, rules.min_edge) < 0:
            continue
        for d in range(n):
            if edges[d] > (0.0 if rules.sum_rule else rules.min_edge):
                gain[place, d] = edges[d]
    return gain
