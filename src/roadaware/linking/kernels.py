"""Compiled steps of the linker and around it: paths go on, are ordered, begin and close; checks of input,
tube suppression; imports numba.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.geometry.arithmetic import block_sum, round_to_single
from roadaware.geometry.compiled import inline_kernel, kernel
from roadaware.linking.candidates import (
    BEFORE,
    FIRST_FRAME,
    FRAME,
    LAST,
    LAST_STEP,
    LENGTH,
    N_CLOSED,
    N_LIVE,
    NEXT_NUMBER,
    NUMBER,
    OWNER,
    STEP,
    Live,
    Pool,
    Rules,
    assign_detections,
    compute_overlap,
    is_stale,
    move_on,
)

# What `link_frames` does with a frame.
WHOLE, LINK, SETTLE = 0, 1, 2


@kernel
def _extend(slot: int, place: int, step: int, pool: Pool, live: Live, rules: Rules) -> None:
    """Put a detection at the end of a path, and keep what motion, order and running labels need."""
    found, agentness, scores, filled = pool.found, pool.agentness, pool.scores, rules.filled
    paths, sums, top = live.paths, live.sums, live.top
    if rules.moves:
        move_on(slot, place, pool, live)
    last, length, score = paths[slot, LAST], paths[slot, LENGTH], agentness[place]
    missed = found[place, FRAME] - found[last, FRAME] - 1 if filled and length > 0 else 0
    found[place, BEFORE] = last if length > 0 else -1
    found[place, OWNER] = paths[slot, NUMBER]
    if length == 0:
        paths[slot, FIRST_FRAME] = found[place, FRAME]
        live.total[slot] = 0.0
    for c in range(sums.shape[1]):
        # Missed frames lie on the line that interpolation draws, whose sum is `missed` times the mean of its
        # ends: a live path has the labels that it would have if it were closed and filled now.
        between = missed * (np.float64(scores[last, c]) + np.float64(scores[place, c])) / 2 if missed else 0.0
        sums[slot, c] = (sums[slot, c] if length > 0 else 0.0) + between + np.float64(scores[place, c])
    paths[slot, LAST] = place
    paths[slot, LAST_STEP] = step
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
    """Sort key of a live path."""
    if top_key:
        n = min(live.paths[slot, LENGTH], live.top.shape[1])
        # Added as numpy adds: keys that differ in the last bit decide who chooses first.
        return round_to_single(block_sum(live.top[slot], 0, n, single) / n, single)
    return float(live.total[slot] / live.paths[slot, LENGTH])


@inline_kernel
def _link(
    slots: Ints,
    frame: int,
    time: float,
    pool: Pool,
    live: Live,
    counters: Ints,
    rules: Rules,
    taken: npt.NDArray[np.bool_],
    keys: Floats,
) -> None:
    """Continue live paths with the frame's detections and give each path its key; 0 for stale ones."""
    for d in range(slots.shape[0]):
        taken[d] = False
    given = assign_detections(slots, frame, time, counters[STEP], pool, live, counters[N_LIVE], rules)
    for place in range(counters[N_LIVE]):
        slot, chosen = live.order[place], given[place]
        keys[place] = 0.0
        if is_stale(live.paths[slot, LAST], frame, time, pool, rules):
            # As published: stale paths keep the key 0 and are ordered with the others before they close.
            continue
        if chosen >= 0:
            taken[chosen] = True
            _extend(slot, slots[chosen], counters[STEP], pool, live, rules)
        keys[place] = _key(slot, live, rules.top_key, rules.single)


@inline_kernel
def _is_double(d: int, slots: Ints, taken: npt.NDArray[np.bool_], pool: Pool, rules: Rules) -> bool:
    """Whether a detection lies on one that is on a path already: an agent that was found twice."""
    at = pool.box[slots[d]]
    # What began a path in this frame is taken too: of two detections of one agent the earlier row begins it.
    for e in range(slots.shape[0]):
        if taken[e] and compute_overlap(at, pool.box, slots[e], True, rules.single) > rules.begin_iou:
            return True
    return False


@inline_kernel
def _begin(
    slots: Ints,
    taken: npt.NDArray[np.bool_],
    pool: Pool,
    live: Live,
    counters: Ints,
    rules: Rules,
    keys: Floats,
) -> None:
    """Start a path from each strong detection that was not taken, behind the live ones."""
    for d in range(slots.shape[0]):
        if taken[d] or not pool.agentness[slots[d]] > rules.begin_score:
            continue
        if rules.begin_iou < 1.0 and _is_double(d, slots, taken, pool, rules):
            continue
        taken[d] = True
        slot = live.order[counters[N_LIVE]]
        live.paths[slot, NUMBER] = counters[NEXT_NUMBER]
        live.paths[slot, LENGTH] = 0
        _extend(slot, slots[d], counters[STEP], pool, live, rules)
        keys[counters[N_LIVE]] = _key(slot, live, rules.top_key, rules.single)
        counters[N_LIVE] += 1
        counters[NEXT_NUMBER] += 1


@inline_kernel
def _order_by_key(keys: Floats, n: int, reversed_ties: bool, order: Ints) -> None:
    """Write the places of the first `n` keys by falling key; equals as they stand, or the other way round."""
    for i in range(n):
        # By insertion: live paths are nearly in order from the frame before.
        j = i
        while j > 0 and (keys[order[j - 1]] < keys[i] or (reversed_ties and keys[order[j - 1]] == keys[i])):
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@inline_kernel
def _settle(
    order: Ints, frame: int, time: float, pool: Pool, live: Live, counters: Ints, rules: Rules, closed: Ints
) -> None:
    """Bring the live paths into an order and close the stale ones, which are written to `closed`."""
    n_live, kept, n_closed = counters[N_LIVE], 0, 0
    before, gone = np.empty(n_live, np.int64), np.empty(n_live, np.int64)
    # A copy, since `live.order` is overwritten while it is read.
    for place in range(n_live):
        before[place] = live.order[place]
    for i in range(n_live):
        slot = before[order[i]]
        last = live.paths[slot, LAST]
        if not is_stale(last, frame, time, pool, rules):
            live.order[kept] = slot
            kept += 1
        else:
            closed[n_closed, 0], closed[n_closed, 1] = live.paths[slot, NUMBER], last
            gone[n_closed] = slot
            n_closed += 1
    # Slots of closed paths stand behind the live ones, where `_begin` looks for free ones.
    for i in range(n_closed):
        live.order[kept + i] = gone[i]
    counters[N_LIVE], counters[N_CLOSED] = kept, n_closed


@kernel
def link_frames(
    places: Ints,
    ends: Ints,
    frames: Ints,
    times: Floats,
    pool: Pool,
    live: Live,
    counters: Ints,
    rules: Rules,
    part: int,
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
        counters: (4,) live paths, number of the next path, paths closed in the last frame, frames so far.
        rules: of the linker.
        part: WHOLE; or first LINK and then SETTLE, between which `order` is written from outside.
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
            counters[STEP] += 1
            _link(slots, frames[f], times[f], pool, live, counters, rules, taken, keys)
            # As published, new paths stand behind all others for one frame (`sort_new_paths`).
            if rules.sort_new:
                _begin(slots, taken, pool, live, counters, rules, keys)
            _order_by_key(keys, counters[N_LIVE], rules.reversed_ties, order)
        if part != LINK:
            _settle(order, frames[f], times[f], pool, live, counters, rules, closed)
            if not rules.sort_new:
                _begin(slots, taken, pool, live, counters, rules, keys)
            for i in range(min(counters[N_CLOSED], emitted.shape[0] - done)):
                emitted[done + i] = closed[i, 0]
            done += counters[N_CLOSED]
    return done


# Compiled steps around the linker: checks of input, walks along paths, tube suppression; imports numba.


@kernel
def find_invalid_detection(boxes: Floats, agentness: Floats, scores: Floats32) -> tuple[int, int]:
    """Error code and row of the first invalid detection; (0, 0) if all are valid.

    1 stands for a box that is not finite, 2 for one with a negative side, 3 and 4 for an agentness and a
    class score outside [0, 1].
    """
    for i in range(boxes.shape[0]):
        for side in range(4):
            if not np.isfinite(boxes[i, side]):
                return 1, i
        if boxes[i, 0] > boxes[i, 2] or boxes[i, 1] > boxes[i, 3]:
            return 2, i
        # Not `< 0 or > 1`, which NaN would pass.
        if not (agentness[i] >= 0 and agentness[i] <= 1):
            return 3, i
        for c in range(scores.shape[1]):
            if not (scores[i, c] >= 0 and scores[i, c] <= 1):
                return 4, i
    return 0, 0


@kernel
def collect_path(last: int, found: Ints) -> Ints:
    """The places of a path's detections, first to last."""
    n, place = 0, last
    while place >= 0:
        n += 1
        place = found[place, BEFORE]
    places, place = np.empty(n, np.int64), last
    for i in range(n - 1, -1, -1):
        places[i] = place
        place = found[place, BEFORE]
    return places


@kernel
def suppress_tubes(
    boxes: Floats,
    rows: Ints,
    frames: Ints,
    starts: Ints,
    stops: Ints,
    order: Ints,
    group: Ints,
    overlap: float,
    offset: float,
) -> Bools:
    """(t,) whether each tube is kept: no better one of its group overlaps it by more than `overlap`.

    The overlap of two tubes is the mean IoU over the frames that both have, times their temporal IoU.

    Args:
        boxes: (r, 4) of all detections.
        rows: (n,) detections, path after path.
        frames: (n,) the frames they are assigned to.
        starts: (t,) where each tube starts in `rows`.
        stops: (t,) where it ends.
        order: (t,) tubes group by group, the best first.
        group: (t,) of each tube.
        overlap: see above.
        offset: what is added to the width and height of boxes.
    """
    kept = np.ones(order.shape[0], np.bool_)
    for i in range(order.shape[0]):
        better = order[i]
        for j in range(i + 1, order.shape[0]):
            # Sorted by group: another group is the end of this one.
            other = order[j]
            if group[other] != group[better] or not kept[better]:
                break
            if not kept[other]:
                continue
            a, b, shared, total = starts[better], starts[other], 0, 0.0
            while a < stops[better] and b < stops[other]:
                if frames[a] != frames[b]:
                    # Both are sorted by frame: a merge, linear in their lengths.
                    a, b = (a + 1, b) if frames[a] < frames[b] else (a, b + 1)
                    continue
                one, two = rows[a], rows[b]
                width = min(boxes[one, 2], boxes[two, 2]) - max(boxes[one, 0], boxes[two, 0]) + offset
                height = min(boxes[one, 3], boxes[two, 3]) - max(boxes[one, 1], boxes[two, 1]) + offset
                inter = max(0.0, width) * max(0.0, height)
                area = (boxes[one, 2] - boxes[one, 0] + offset) * (boxes[one, 3] - boxes[one, 1] + offset)
                area += (boxes[two, 2] - boxes[two, 0] + offset) * (boxes[two, 3] - boxes[two, 1] + offset)
                # Two boxes without area would be 0 / 0.
                total += inter / (area - inter) if area > inter else 0.0
                shared, a, b = shared + 1, a + 1, b + 1
            length = stops[better] - starts[better] + stops[other] - starts[other] - shared
            kept[other] = total / length <= overlap
    return kept
