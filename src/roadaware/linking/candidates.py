"""Compiled: where live paths are expected, and what each detection is worth to them; imports numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roadaware.geometry.arithmetic import block_sum, rounded
from roadaware.geometry.compiled import inlined, kernel

Floats = npt.NDArray[np.float64]
Narrow = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

COSTS = ("score", "iou", "scoreiou", "ioul2", "affinity")
MOTIONS = ("none", "count", "time", "kalman")
ASSIGNMENTS = ("greedy", "hungarian", "cascade")
AFFINITY, KALMAN, GREEDY, CASCADE = 4, 3, 0, 2
# Columns of `Pool.found`, of `Live.paths`, and places in `counters`.
FRAME, BEFORE, OWNER = 0, 1, 2
NUMBER, LENGTH, LAST, FIRST_FRAME = 0, 1, 2, 3
N_LIVE, NEXT_NUMBER, N_CLOSED = 0, 1, 2
# Columns of `Live.motion`: a value (centre x, centre y, width or height), its speed, and their covariance.
VALUE, SPEED, VAR, COVAR, SPEED_VAR = 0, 1, 2, 3, 4

# Standard deviations in sizes of the box, and seconds. Sides of detected boxes are off by some 4 to 8 %, so
# centres by less and sizes by more. The others lie in the middle of a wide plateau on real tracks.
CENTRE_NOISE, SIZE_NOISE = 0.05, 0.07
CENTRE_PUSH, SIZE_PUSH = 1.0, 0.5
FIRST_SPEED, FIRST_GROWTH = 2.0, 0.5
TINY = 1e-6
# What an affinity loses: as the class scores turn from those of the path, and for each frame missed by a path
# of one detection.
UNLIKE, MISSED = 0.2, 0.1
# The second turn: boxes widened by so many standard deviations, of areas that are at least so much alike.
WIDENED, ALIKE = 2.0, 0.5
# Of class scores and embeddings of a path, what the newest detection contributes.
NEWEST = 0.2


class Rules(NamedTuple):
    """What of a LinkerConfig the kernels ask for; `cost`, `motion` and `assignment` are places in the tuples."""

    single: bool
    clamped: bool
    motion: int
    cost: int
    moves: bool
    min_iou: float
    min_edge: float
    sum_rule: bool
    assignment: int
    jump_gap: int
    jump_gap_s: float
    begin_score: float
    top_key: bool
    reversed_ties: bool
    sort_new: bool
    filled: bool
    l2_columns: int


class Pool(NamedTuple):
    """Detections, one place each: boxes (p, 4), agentness (p,), time (p,), class scores (p, c), embeddings
    (p, e), and found (p, 3): the frame, the place of the one before in its path (-1 for none), the number of
    its path (-1 for none).
    """

    box: Floats
    agentness: Floats
    time: Floats
    scores: Narrow
    looks: Narrow
    found: Ints


class Live(NamedTuple):
    """Live paths, one slot each: paths (s, 4) number, length, last detection and first frame; total
    agentness (s,), best agentness (s, h) ascending, sums of class scores (s, c); motion (s, 4, 5), and running
    means of the compared class scores (s, k) and of embeddings (s, e). The first slots of `order` are those of
    the live paths, best first; the others are free.
    """

    order: Ints
    paths: Ints
    total: Floats
    top: Floats
    sums: Floats
    motion: Floats
    kinds: Floats
    looks: Floats


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
def _looks_ahead(slot: int, passed: float, live: Live, at: Floats) -> None:
    """Write the motion of a path `passed` seconds after its last detection into `at` (4, 5).

    Each value moves with constant speed and is pushed by white noise in proportion to the size of the box.
    """
    width, height = live.motion[slot, 2, VALUE], live.motion[slot, 3, VALUE]
    scale = np.sqrt(max(width, TINY) * max(height, TINY))
    for k in range(4):
        push = (CENTRE_PUSH if k < 2 else SIZE_PUSH) * scale
        noise = push * push
        speed, covar = live.motion[slot, k, SPEED], live.motion[slot, k, COVAR]
        speed_var = live.motion[slot, k, SPEED_VAR]
        at[k, VALUE] = live.motion[slot, k, VALUE] + speed * passed
        at[k, SPEED] = speed
        spread = live.motion[slot, k, VAR] + 2.0 * passed * covar + passed * passed * speed_var
        at[k, VAR] = spread + noise * passed * passed * passed / 3.0
        at[k, COVAR] = covar + passed * speed_var + noise * passed * passed / 2.0
        at[k, SPEED_VAR] = speed_var + noise * passed


@kernel
def move_on(slot: int, place: int, pool: Pool, live: Live) -> None:
    """Correct the motion of a path by a detection, or begin it with its first; call before `_extend`."""
    at, box = np.empty((4, 5)), pool.box
    first = live.paths[slot, LENGTH] == 0
    width, height = box[place, 2] - box[place, 0], box[place, 3] - box[place, 1]
    if not first:
        _looks_ahead(slot, pool.time[place] - pool.time[live.paths[slot, LAST]], live, at)
    scale = np.sqrt(max(width, TINY) * max(height, TINY))
    for k in range(4):
        side = max(width if k % 2 == 0 else height, TINY)
        error = (CENTRE_NOISE if k < 2 else SIZE_NOISE) * side
        if k < 2:
            seen = (box[place, k] + box[place, k + 2]) / 2.0
        else:
            seen = width if k == 2 else height
        if first:
            fast = (FIRST_SPEED if k < 2 else FIRST_GROWTH) * scale
            live.motion[slot, k, VALUE], live.motion[slot, k, SPEED] = seen, 0.0
            live.motion[slot, k, VAR], live.motion[slot, k, COVAR] = error * error, 0.0
            live.motion[slot, k, SPEED_VAR] = fast * fast
            continue
        total, off = at[k, VAR] + error * error, seen - at[k, VALUE]
        live.motion[slot, k, VALUE] = at[k, VALUE] + at[k, VAR] / total * off
        live.motion[slot, k, SPEED] = at[k, SPEED] + at[k, COVAR] / total * off
        live.motion[slot, k, VAR] = at[k, VAR] - at[k, VAR] * at[k, VAR] / total
        live.motion[slot, k, COVAR] = at[k, COVAR] - at[k, VAR] * at[k, COVAR] / total
        live.motion[slot, k, SPEED_VAR] = at[k, SPEED_VAR] - at[k, COVAR] * at[k, COVAR] / total
    for c in range(live.kinds.shape[1]):
        now = np.float64(pool.scores[place, c])
        live.kinds[slot, c] = now if first else (1.0 - NEWEST) * live.kinds[slot, c] + NEWEST * now
    for c in range(live.looks.shape[1]):
        now = np.float64(pool.looks[place, c])
        live.looks[slot, c] = now if first else (1.0 - NEWEST) * live.looks[slot, c] + NEWEST * now


@kernel
def move_camera(camera: Floats, live: Live, n_live: int) -> None:
    """Take the motion of live paths from the pixels of one frame to those of the next.

    Args:
        camera: (2, 3) affine map of pixels.
        live: the live paths.
        n_live: how many they are.
    """
    wider = np.sqrt(abs(camera[0, 0] * camera[1, 1] - camera[0, 1] * camera[1, 0]))
    for place in range(n_live):
        motion = live.motion[live.order[place]]
        for column in range(2):
            x, y = motion[0, column], motion[1, column]
            for row in range(2):
                moved = camera[row, 0] * x + camera[row, 1] * y
                motion[row, column] = moved + (camera[row, 2] if column == VALUE else 0.0)
            motion[2, column] *= wider
            motion[3, column] *= wider
        for k in range(4):
            for column in range(VAR, SPEED_VAR + 1):
                motion[k, column] *= wider * wider


@inlined
def _turned(a: Floats, b: Narrow, row_a: int, row_b: int) -> float:
    """1 - cosine between two rows; 0 where one of them says nothing."""
    dot, square_a, square_b = 0.0, 0.0, 0.0
    for c in range(a.shape[1]):
        value = np.float64(b[row_b, c])
        dot += a[row_a, c] * value
        square_a += a[row_a, c] * a[row_a, c]
        square_b += value * value
    if not (square_a > 0.0 and square_b > 0.0):
        return 0.0
    return float(1.0 - dot / np.sqrt(square_a * square_b))


@inlined
def _affinity(
    slot: int, place: int, at: Floats, missed: int, widened: float, pool: Pool, live: Live, least: float
) -> float:
    """Overlap of a detection with where a path is expected, less what speaks against it; -1 below `least`.

    With `widened`, both boxes are wider by so many standard deviations of the expected centre, and their own
    areas are to be alike.
    """
    box = pool.box
    width, height = max(at[2, VALUE], 0.0), max(at[3, VALUE], 0.0)
    wide, high = box[place, 2] - box[place, 0], box[place, 3] - box[place, 1]
    if widened > 0.0:
        alike = min(width, wide) * min(height, high)
        if not alike >= ALIKE * max(width, wide) * max(height, high):
            return -1.0
        more = widened * np.sqrt(at[0, VAR])
        width, wide = width + more, wide + more
        more = widened * np.sqrt(at[1, VAR])
        height, high = height + more, high + more
    apart = abs((box[place, 0] + box[place, 2]) / 2.0 - at[0, VALUE])
    across = min(min(width, wide), (width + wide) / 2.0 - apart)
    apart = abs((box[place, 1] + box[place, 3]) / 2.0 - at[1, VALUE])
    down = min(min(height, high), (height + high) / 2.0 - apart)
    if not (across > 0.0 and down > 0.0):
        return -1.0
    inter = across * down
    worth = inter / (width * height + wide * high - inter)
    if not worth >= least:
        return -1.0
    worth -= MISSED * missed / live.paths[slot, LENGTH]
    worth -= UNLIKE * _turned(live.kinds, pool.scores, slot, place)
    worth -= UNLIKE * _turned(live.looks, pool.looks, slot, place)
    return float(worth) if worth >= least else -1.0


@inlined
def fill_affinities(
    slot: int, slots: Ints, frame: int, time: float, widened: float, pool: Pool, live: Live, rules: Rules, edges: Floats
) -> None:
    """Write the affinity of each detection with a path into `edges` (n,); negative for no candidate."""
    last, at = live.paths[slot, LAST], np.empty((4, 5))
    if rules.motion == KALMAN:
        _looks_ahead(slot, time - pool.time[last], live, at)
    else:
        corners = np.empty(4)
        _expect(last, time, pool.box, pool.time, pool.found, rules, corners)
        for k in range(2):
            at[k, VALUE] = (corners[k] + corners[k + 2]) / 2.0
            at[k + 2, VALUE] = corners[k + 2] - corners[k]
            at[k, VAR] = 0.0
    missed = frame - pool.found[last, FRAME] - 1
    for d in range(slots.shape[0]):
        edges[d] = _affinity(slot, slots[d], at, missed, widened, pool, live, rules.min_iou)


@inlined
def fill_edges(
    slot: int, slots: Ints, frame: int, time: float, pool: Pool, live: Live, rules: Rules, edges: Floats
) -> None:
    """Write what each detection is worth to a path into `edges` (n,); negative for no candidate."""
    if rules.cost == AFFINITY:
        fill_affinities(slot, slots, frame, time, 0.0, pool, live, rules, edges)
        return
    box, agentness, scores = pool.box, pool.agentness, pool.scores
    clamped, single, least, cost = rules.clamped, rules.single, rules.min_iou, rules.cost
    last, at = live.paths[slot, LAST], np.empty(4)
    if rules.motion == KALMAN:
        motion = np.empty((4, 5))
        _looks_ahead(slot, time - pool.time[last], live, motion)
        for k in range(2):
            at[k] = motion[k, VALUE] - motion[k + 2, VALUE] / 2.0
            at[k + 2] = motion[k, VALUE] + motion[k + 2, VALUE] / 2.0
    else:
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
def choose(edges: Floats, taken: npt.NDArray[np.bool_], sum_rule: bool, min_edge: float) -> int:
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
def assign(gain: Floats) -> Ints:
    """(rows,) the column of each row in an assignment of the greatest sum, -1 for none.

    A row and a column may stay free; only what is above 0 is assigned.

    Args:
        gain: (rows, columns).

    Source: shortest augmenting paths with potentials (Jonker and Volgenant, Computing 1987).
    """
    n, m = gain.shape
    given = np.full(n, -1, np.int64)
    of_row, of_column = np.zeros(n, np.int64), np.zeros(m, np.int64)
    for i in range(n):
        for j in range(m):
            if gain[i, j] > 0.0:
                of_row[i] += 1
                of_column[j] += 1
    rows, columns = np.empty(n, np.int64), np.empty(m, np.int64)
    n_rows, n_columns = 0, 0
    for i in range(n):
        alone = of_row[i] == 1
        if alone:
            for j in range(m):
                if gain[i, j] > 0.0:
                    alone = of_column[j] == 1
                    if alone:
                        given[i], of_column[j] = j, 0
        if of_row[i] > 0 and not alone:
            rows[n_rows] = i
            n_rows += 1
    for j in range(m):
        if of_column[j] > 0:
            columns[n_columns] = j
            n_columns += 1
    # Column 0 is where a search begins; behind the real ones stands one for each row, in which it is free.
    total = n_columns + n_rows + 1
    high, low = np.zeros(n_rows + 1), np.zeros(total)
    owner, before = np.zeros(total, np.int64), np.zeros(total, np.int64)
    nearest, seen = np.empty(total), np.empty(total, np.bool_)
    for i in range(1, n_rows + 1):
        owner[0], at = i, 0
        nearest[:] = np.inf
        seen[:] = False
        while owner[at] != 0:
            seen[at] = True
            row, step, following = owner[at], np.inf, 0
            for j in range(1, total):
                if seen[j]:
                    continue
                if j <= n_columns:
                    worth = gain[rows[row - 1], columns[j - 1]]
                    cost = -worth if worth > 0.0 else np.inf
                else:
                    cost = 0.0 if j - n_columns == row else np.inf
                reached = cost - high[row] - low[j]
                if reached < nearest[j]:
                    nearest[j], before[j] = reached, at
                if nearest[j] < step:
                    step, following = nearest[j], j
            for j in range(total):
                if seen[j]:
                    high[owner[j]] += step
                    low[j] -= step
                else:
                    nearest[j] -= step
            at = following
        while at != 0:
            owner[at] = owner[before[at]]
            at = before[at]
    for j in range(1, n_columns + 1):
        if owner[j] > 0:
            given[rows[owner[j] - 1]] = columns[j - 1]
    return given
