"""Compiled kernels: predicted boxes of live paths and the cost of each detection for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.geometry.compiled import inline_kernel, inner_kernel, kernel
from roadaware.geometry.kernels import block_sum, round_to_single

# The assignment of the greatest sum between rows and columns, compiled.


@inner_kernel
def _add_row(
    first: int,
    gain: Floats,
    rows: Ints,
    columns: Ints,
    n_columns: int,
    high: Floats,
    low: Floats,
    owner: Ints,
    before: Ints,
) -> None:
    # Shortest augmenting paths with potentials of rows (`high`) and columns (`low`): Kuhn and Munkres.
    """Give a row its column, along the shortest path of exchanges with the rows that have theirs."""
    total = low.shape[0]
    nearest, seen = np.full(total, np.inf), np.zeros(total, np.bool_)
    owner[0], at = first, 0
    while owner[at] != 0:
        seen[at] = True
        row, step, following = owner[at], np.inf, 0
        for j in range(1, total):
            if seen[j]:
                continue
            if j <= n_columns:
                # What is not above 0 may not be assigned, whatever it would bring to others.
                worth = gain[rows[row - 1], columns[j - 1]]
                cost = -worth if worth > 0.0 else np.inf
            # A row's own column of cost 0, in which it may stay free.
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
    # A row and a column that meet nobody else get each other at once: the search behind takes cubic time.
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
    for i in range(1, n_rows + 1):
        _add_row(i, gain, rows, columns, n_columns, high, low, owner, before)
    for j in range(1, n_columns + 1):
        if owner[j] > 0:
            given[rows[owner[j] - 1]] = columns[j - 1]
    return given


COSTS = ("score", "iou", "scoreiou", "ioul2", "affinity")
MOTIONS = ("none", "count", "time", "kalman")
ASSIGNMENTS = ("greedy", "hungarian", "cascade")
AFFINITY, KALMAN, GREEDY, CASCADE = 4, 3, 0, 2
# Columns of `Pool.found`, of `Live.paths`, and places in `counters`.
FRAME, BEFORE, OWNER = 0, 1, 2
NUMBER, LENGTH, LAST, FIRST_FRAME, LAST_STEP = 0, 1, 2, 3, 4
N_LIVE, NEXT_NUMBER, N_CLOSED, STEP = 0, 1, 2, 3
# Columns of `Live.motion`: a value (centre x, centre y, width or height), its speed, and their covariance.
VALUE, SPEED, VAR, COVAR, SPEED_VAR = 0, 1, 2, 3, 4

# Standard deviations in sizes of the box, and seconds: sides of detected boxes are off by some 4 to 8 %, so
# centres by less and sizes by more; the others lie in the middle of a wide plateau on real tracks.
CENTRE_NOISE, SIZE_NOISE = 0.05, 0.07
CENTRE_PUSH, SIZE_PUSH = 1.0, 0.5
# Of a path with one box, of which nobody has seen how fast it moves or grows.
FIRST_SPEED, FIRST_GROWTH = 2.0, 0.5
# A box without extent would have no noise, and a correction of 0 / 0.
TINY = 1e-6
# What an affinity loses as class scores turn from the path's, and for each miss of a path of one detection.
UNLIKE, MISSED = 0.2, 0.1
# The second turn: boxes widened by so many standard deviations, of areas that are at least so much alike.
WIDENED, ALIKE = 2.0, 0.5
# Stands for infinity: sums of infinite gains could not be told apart.
MOST = 1e9
# Of class scores and embeddings of a path, what the newest detection contributes.
NEWEST = 0.2


class Rules(NamedTuple):
    """The fields of a LinkerConfig that the kernels read; of `cost`, `motion` and `assignment` the place in COSTS,
    MOTIONS and ASSIGNMENTS.
    """

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
    begin_iou: float
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
    scores: Floats32
    looks: Floats32
    found: Ints


class Live(NamedTuple):
    """Live paths, one slot each: paths (s, 5) number, length, last detection, first frame, and the frame of
    the last one as counted over those looked at; total agentness (s,), best agentness (s, h) ascending, sums
    of class scores (s, c); motion (s, 4, 5), running means of the compared class scores (s, k) and of
    embeddings (s, e). The first slots of `order` are the live paths', best first; the others are free.
    """

    order: Ints
    paths: Ints
    total: Floats
    top: Floats
    sums: Floats
    motion: Floats
    kinds: Floats
    looks: Floats


@inline_kernel
def _expect(
    last: int, time: float, box: Floats, times: Floats, found: Ints, rules: Rules, at: Floats
) -> None:
    """Write where a path is expected at `time` into `at` (4,)."""
    past, steps, motion, single = last, 0, rules.motion, rules.single
    # Up to `jump_gap` detections back, as the published builder counts, whatever time they span.
    while motion > 0 and steps < rules.jump_gap and found[past, BEFORE] >= 0:
        past = found[past, BEFORE]
        steps += 1
    for side in range(4):
        here = box[last, side]
        if motion == 1:
            # As published: one mean step further, however long the gap.
            step = round_to_single(round_to_single(here - box[past, side], single) / max(1, steps), single)
            here = round_to_single(here + step, single)
        elif steps > 0:
            here += (here - box[past, side]) * (time - times[last]) / (times[last] - times[past])
        at[side] = here


@inline_kernel
def compute_overlap(at: Floats, box: Floats, place: int, clamped: bool, single: bool) -> float:
    """IoU of `at` (4,) and row `place` of `box`.

    Unclamped, boxes apart in both directions have the product of two negative sides as intersection, and
    an expected box that motion has turned inside out has a negative area; both may give any number.
    """
    width = round_to_single(min(at[2], box[place, 2]) - max(at[0], box[place, 0]), single)
    height = round_to_single(min(at[3], box[place, 3]) - max(at[1], box[place, 1]), single)
    if clamped and (width <= 0 or height <= 0):
        return 0.0
    inter = round_to_single(width * height, single)
    # The published code too asks for a positive product before it divides; without this, a box turned
    # inside out by motion would overlap what it does not touch.
    if inter <= 0:
        return 0.0
    area_a = round_to_single(
        round_to_single(at[2] - at[0], single) * round_to_single(at[3] - at[1], single), single
    )
    wide = round_to_single(box[place, 2] - box[place, 0], single)
    area_b = round_to_single(wide * round_to_single(box[place, 3] - box[place, 1], single), single)
    return float(inter / (round_to_single(area_a + area_b, single) - inter))


@inline_kernel
def _closeness(a: int, b: int, agentness: Floats, scores: Floats32, columns: int, single: bool) -> float:
    """1 / L2 distance of agentness and the first class scores of two detections."""
    squares = np.empty(columns + 1)
    for c in range(columns + 1):
        if c == 0:
            apart = round_to_single(agentness[a] - agentness[b], single)
        else:
            apart = round_to_single(np.float64(scores[a, c - 1]) - np.float64(scores[b, c - 1]), single)
        squares[c] = round_to_single(apart * apart, single)
    distance = round_to_single(np.sqrt(block_sum(squares, 0, columns + 1, single)), single)
    return round_to_single(1.0 / distance, single)


@inline_kernel
def _predict(slot: int, passed: float, motion: Floats, at: Floats) -> None:
    """Write the motion of a path `passed` seconds after its last detection into `at` (4, 5).

    Each value moves with constant speed and is pushed by white noise in proportion to the size of the box.
    """
    # The geometric mean of the sides, so that a tall and a wide box of one area are pushed alike.
    scale = np.sqrt(max(motion[slot, 2, VALUE], TINY) * max(motion[slot, 3, VALUE], TINY))
    for k in range(4):
        push = (CENTRE_PUSH if k < 2 else SIZE_PUSH) * scale
        noise = push * push
        speed, covar, speed_var = motion[slot, k, SPEED], motion[slot, k, COVAR], motion[slot, k, SPEED_VAR]
        spread = motion[slot, k, VAR] + 2.0 * passed * covar + passed * passed * speed_var
        at[k, VALUE] = motion[slot, k, VALUE] + speed * passed
        at[k, SPEED] = speed
        # White noise of acceleration, integrated over the time passed: t^3 / 3, t^2 / 2 and t.
        at[k, VAR] = spread + noise * passed * passed * passed / 3.0
        at[k, COVAR] = covar + passed * speed_var + noise * passed * passed / 2.0
        at[k, SPEED_VAR] = speed_var + noise * passed


@inline_kernel
def _correct(slot: int, box: Floats, place: int, first: bool, at: Floats, motion: Floats) -> None:
    """Correct the motion of a path, predicted in `at` (4, 5), by a detection, or begin it with its first."""
    width, height = box[place, 2] - box[place, 0], box[place, 3] - box[place, 1]
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
            motion[slot, k, VALUE], motion[slot, k, SPEED] = seen, 0.0
            motion[slot, k, VAR], motion[slot, k, COVAR] = error * error, 0.0
            motion[slot, k, SPEED_VAR] = fast * fast
            continue
        # Each value is measured by itself: its gain is a division, not the inverse of a matrix.
        total, off = at[k, VAR] + error * error, seen - at[k, VALUE]
        motion[slot, k, VALUE] = at[k, VALUE] + at[k, VAR] / total * off
        motion[slot, k, SPEED] = at[k, SPEED] + at[k, COVAR] / total * off
        motion[slot, k, VAR] = at[k, VAR] - at[k, VAR] * at[k, VAR] / total
        motion[slot, k, COVAR] = at[k, COVAR] - at[k, VAR] * at[k, COVAR] / total
        motion[slot, k, SPEED_VAR] = at[k, SPEED_VAR] - at[k, COVAR] * at[k, COVAR] / total


@inline_kernel
def _mix(means: Floats, slot: int, rows: Floats32, place: int, first: bool) -> None:
    """Bring a detection into a path's running mean of rows."""
    for c in range(means.shape[1]):
        now = np.float64(rows[place, c])
        means[slot, c] = now if first else (1.0 - NEWEST) * means[slot, c] + NEWEST * now


@inline_kernel
def move_on(slot: int, place: int, pool: Pool, live: Live) -> None:
    """Bring a detection into a path's motion and running means; while `live` has the path without it."""
    # Taken out of their tuples here: in the loops that would cost more than all else.
    box, time, motion, last = pool.box, pool.time, live.motion, live.paths[slot, LAST]
    first, at = live.paths[slot, LENGTH] == 0, np.empty((4, 5))
    if not first:
        _predict(slot, time[place] - time[last], motion, at)
    _correct(slot, box, place, first, at, motion)
    _mix(live.kinds, slot, pool.scores, place, first)
    _mix(live.looks, slot, pool.looks, place, first)


@kernel
def move_camera(camera: Floats, live: Live, n_live: int) -> None:
    """Take the motion of live paths from the pixels of one frame to those of the next.

    Args:
        camera: (2, 3) affine map of pixels.
        live: the live paths.
        n_live: how many they are.
    """
    # Sizes scale by the root of the map's area factor; what a turn does to upright boxes is left out.
    wider = np.sqrt(abs(camera[0, 0] * camera[1, 1] - camera[0, 1] * camera[1, 0]))
    for place in range(n_live):
        motion = live.motion[live.order[place]]
        for column in range(2):
            x, y = motion[0, column], motion[1, column]
            for row in range(2):
                moved = camera[row, 0] * x + camera[row, 1] * y
                # Speeds turn and scale with the image, but are not shifted with it.
                motion[row, column] = moved + (camera[row, 2] if column == VALUE else 0.0)
            motion[2, column] *= wider
            motion[3, column] *= wider
        for k in range(4):
            for column in range(VAR, SPEED_VAR + 1):
                motion[k, column] *= wider * wider


@inline_kernel
def _compute_cosine_distance(a: Floats, b: Floats32, row_a: int, row_b: int) -> float:
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


@inline_kernel
def _fill_affinities(
    at: Floats,
    uncertainty: float,
    slot: int,
    slots: Ints,
    least: float,
    box: Floats,
    kinds: Floats,
    scores: Floats32,
    own_looks: Floats,
    looks: Floats32,
    edges: Floats,
) -> None:
    """Write overlaps, less what speaks against them, into `edges` (n,); -1 below `least`.

    `at` (6,) is where the path is expected: centre x and y, width, height, and by how much boxes are widened
    to the sides and up; where they are, their own areas are to be alike. `doubt` is what all of them lose.
    """
    x, y, width, height, more_x, more_y = at[0], at[1], at[2], at[3], at[4], at[5]
    for d in range(slots.shape[0]):
        place = slots[d]
        edges[d] = -1.0
        wide, high = box[place, 2] - box[place, 0], box[place, 3] - box[place, 1]
        across = (width + wide) / 2.0 + more_x - abs((box[place, 0] + box[place, 2]) / 2.0 - x)
        down = (height + high) / 2.0 + more_y - abs((box[place, 1] + box[place, 3]) / 2.0 - y)
        # Pairs that are apart are left before any overlap or cosine is computed.
        if not (across > 0.0 and down > 0.0):
            continue
        # Side by side, not area by area: a tall box and a wide one of the same area are not alike.
        alike = min(width, wide) * min(height, high)
        if more_x > 0.0 and not alike >= ALIKE * max(width, wide) * max(height, high):
            continue
        inter = min(min(width, wide) + more_x, across) * min(min(height, high) + more_y, down)
        both = (width + more_x) * (height + more_y) + (wide + more_x) * (high + more_y)
        worth = inter / (both - inter)
        # Twice: the overlap alone must reach `least`, and what is left of it too.
        if worth >= least:
            worth -= uncertainty + UNLIKE * _compute_cosine_distance(kinds, scores, slot, place)
            worth -= UNLIKE * _compute_cosine_distance(own_looks, looks, slot, place)
            if worth >= least:
                edges[d] = worth


@inline_kernel
def _fill_edges(
    slot: int,
    slots: Ints,
    step: int,
    time: float,
    widened: float,
    pool: Pool,
    live: Live,
    rules: Rules,
    edges: Floats,
) -> None:
    """Write the score of each detection for a path into `edges` (n,); negative for no candidate.

    With `widened`, that is the affinity of boxes widened by so many standard deviations, whatever the cost.
    """
    box, agentness, scores, looks = pool.box, pool.agentness, pool.scores, pool.looks
    clamped, single, least, cost = rules.clamped, rules.single, rules.min_iou, rules.cost
    columns = rules.l2_columns
    last, corners, at = live.paths[slot, LAST], np.empty(4), np.zeros(6)
    if rules.motion == KALMAN:
        motion = np.empty((4, 5))
        _predict(slot, time - pool.time[last], live.motion, motion)
        for k in range(2):
            # A shrinking box may be predicted with a negative side.
            at[k], at[k + 2] = motion[k, VALUE], max(motion[k + 2, VALUE], 0.0)
            at[k + 4] = widened * np.sqrt(motion[k, VAR])
            corners[k], corners[k + 2] = at[k] - at[k + 2] / 2.0, at[k] + at[k + 2] / 2.0
    else:
        _expect(last, time, box, pool.time, pool.found, rules, corners)
        for k in range(2):
            at[k], at[k + 2] = (corners[k] + corners[k + 2]) / 2.0, max(corners[k + 2] - corners[k], 0.0)
    # A path of one detection that was missed once loses all of MISSED, one of ten detections a tenth.
    uncertainty = MISSED * (step - live.paths[slot, LAST_STEP] - 1) / live.paths[slot, LENGTH]
    if cost == AFFINITY or widened > 0.0:
        kinds, own_looks = live.kinds, live.looks
        _fill_affinities(at, uncertainty, slot, slots, least, box, kinds, scores, own_looks, looks, edges)
        return
    for d in range(slots.shape[0]):
        iou = compute_overlap(corners, box, slots[d], clamped, single)
        if not iou >= least:
            edges[d] = -1.0
        elif cost == 0:
            edges[d] = agentness[slots[d]]
        elif cost == 1:
            edges[d] = iou
        else:
            edges[d] = (agentness[slots[d]] + iou) / 2
            if cost == 3:
                edges[d] += _closeness(last, slots[d], agentness, scores, columns, single)


@inline_kernel
def _choose(edges: Floats, taken: npt.NDArray[np.bool_], sum_rule: bool, min_edge: float) -> int:
    """The detection a path goes on with, of those not taken; -1 for none, the first of equals."""
    best, total = -1, 0.0
    for d in range(edges.shape[0]):
        # Published: the sum over all candidates is held against `min_edge`, not the best one (`edge_rule`).
        if not taken[d] and edges[d] >= 0:
            total += edges[d]
            if best < 0 or edges[d] > edges[best]:
                best = d
    if best >= 0 and (total if sum_rule else edges[best]) > min_edge:
        return best
    return -1


@inline_kernel
def is_stale(last: int, frame: int, time: float, pool: Pool, rules: Rules) -> bool:
    """Whether a path was last found too long ago, both in frames and in seconds."""
    # Both must be over: at many frames a second the seconds decide, at few the frames.
    missed = frame - pool.found[last, FRAME] > rules.jump_gap
    return bool(missed and time - pool.time[last] > rules.jump_gap_s)


@inner_kernel
def assign_detections(
    slots: Ints, frame: int, time: float, step: int, pool: Pool, live: Live, n_live: int, rules: Rules
) -> Ints:
    """(n_live,) the detection, index in `slots`, with which each live path goes on; -1 for none."""
    n, greedy = slots.shape[0], rules.assignment == GREEDY
    given, edges, taken = np.full(n_live, -1, np.int64), np.empty(n), np.zeros(n, np.bool_)
    # Greedy paths read their own row of edges alone and need no matrix.
    gain = np.zeros((0 if greedy else n_live, n))
    # The second turn has the paths and detections that the first one left.
    for turn in range(2 if rules.assignment == CASCADE else 1):
        for place in range(n_live):
            slot = live.order[place]
            if given[place] >= 0 or is_stale(live.paths[slot, LAST], frame, time, pool, rules):
                continue
            _fill_edges(slot, slots, step, time, WIDENED * turn, pool, live, rules, edges)
            best = _choose(edges, taken, rules.sum_rule, rules.min_edge)
            if greedy and best >= 0:
                given[place], taken[best] = best, True
            elif best >= 0:
                for d in range(n):
                    # Detections as close as can be have infinite edges under `ioul2`.
                    if not taken[d] and edges[d] > (0.0 if rules.sum_rule else rules.min_edge):
                        gain[place, d] = min(edges[d], MOST)
        if greedy:
            break
        found = assign(gain)
        gain[:] = 0.0
        for place in range(n_live):
            if found[place] >= 0:
                given[place], taken[found[place]] = found[place], True
    return given
