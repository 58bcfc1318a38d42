"""Compiled steps of the linker and around it: paths go on, are ordered, begin and close; labelling of paths; checks of
input, suppression and clustering of boxes and tubes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.geometry.compiled import inline_kernel, inner_kernel, kernel
from roadaware.geometry.kernels import block_sum, box_iou, pairwise_mean, round_to_single
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


@inner_kernel
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


@inner_kernel
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


# Compiled steps around the linker: checks of input, walks along paths, tube suppression.


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


CLASS_SCORES = ("mean", "quarter_of_length", "quarter_of_classes")


@kernel
# Shell's sort with Knuth's gaps: in place, on the filled part of a buffer.
def sort_falling(values: Floats, n: int) -> None:
    """Sort the first `n` values, the greatest first, in place."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value, j = values[i], i
            while j >= gap and values[j - gap] < value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@inner_kernel
def top_mean(values: Floats, n: int, m: int, single: bool) -> float:
    """The mean of the `m` greatest of the first `n` values, added from the greatest down; sorts them."""
    # In 32 bits another order of adding would change the mean.
    sort_falling(values, n)
    return pairwise_mean(values, 0, min(n, m), single)


@kernel
def score_classes(
    scores: Floats32,
    rows: Ints,
    ends: Ints,
    first: int,
    rule: int,
    single: bool,
    values: Floats,
) -> None:
    """Each path's score of each class of a kind.

    Args:
        scores: (r, c) of all detections.
        rows: (n,) rows of `scores`, path after path.
        ends: (p + 1,) where each path starts and ends in `rows`.
        first: column of the kind's first label.
        rule: place in CLASS_SCORES.
        single: whether arithmetic is in 32 bits.
        values: (p, l) written.
    """
    n_labels, longest = values.shape[1], 0
    for p in range(values.shape[0]):
        longest = max(longest, ends[p + 1] - ends[p])
    column = np.empty(longest)
    for p in range(values.shape[0]):
        n = ends[p + 1] - ends[p]
        # As published, a quarter of the number of classes, whatever the length of the path (`class_score`).
        best = max(1, (n if rule == 1 else n_labels) // 4)
        for label in range(n_labels):
            for i in range(n):
                column[i] = scores[rows[ends[p] + i], first + label]
            if rule == 0:
                values[p, label] = pairwise_mean(column, 0, n, single)
            else:
                values[p, label] = top_mean(column, n, best, single)


@kernel
def viterbi(matrix: Floats, alpha: float, lag: bool) -> Ints:
    """The labels (t,) of greatest sum of scores less `alpha` per change, the lower label of equals.

    Args:
        matrix: (r, t) score of each label at each time.
        alpha: cost of a change.
        lag: each score counts one step late, the last not at all, and all labels start equal.
    """
    r, t = matrix.shape
    back = np.empty((r, t), np.int64)
    current, following = np.empty(r), np.empty(r)
    for i in range(r):
        # As published, the first column is 1 for all labels, and scores lag one frame behind (`viterbi_lag`).
        current[i] = 1.0 if lag else matrix[i, 0]
    for j in range(1, t):
        # The best label to come from, and the best but that one: the first of equals.
        best, second = 0, -1
        for i in range(1, r):
            # Compared after the cost is taken off, where rounding may make equals of what was not.
            if current[i] - alpha > current[best] - alpha:
                best = i
        for i in range(r):
            if i != best and (second < 0 or current[i] - alpha > current[second] - alpha):
                second = i
        for i in range(r):
            other = second if i == best else best
            source, gain = i, current[i]
            if other >= 0:
                moved = current[other] - alpha
                if moved > gain or (moved == gain and other < i):
                    source, gain = other, moved
            back[i, j] = source
            following[i] = matrix[i, j - 1 if lag else j] + gain
        for i in range(r):
            current[i] = following[i]
    labels = np.zeros(t, np.int64)
    for i in range(r):
        if current[i] > current[labels[t - 1]]:
            labels[t - 1] = i
    for j in range(t - 1, 0, -1):
        labels[j - 1] = back[labels[j], j]
    return labels


@kernel
def filtered_peak(values: Floats) -> float:
    """The greatest value after a median filter of five with zeros at the ends."""
    n, peak = values.shape[0], -np.inf
    window = np.empty(5)
    for i in range(n):
        for k in range(5):
            at = i + k - 2
            window[k] = values[at] if 0 <= at < n else 0.0  # as scipy's medfilt pads
        sort_falling(window, 5)
        peak = max(peak, window[2])
    return peak


@kernel
def score_presence(values: Floats, single: bool) -> Floats:
    """Scores of being there and of not being there (2, n), relative to the filtered peak.

    A score whose filtered peak is 0 counts as there all the time.
    """
    peak = filtered_peak(values)
    matrix = np.empty((2, values.shape[0]))
    for i in range(values.shape[0]):
        # As published only the peak is filtered: single scores may be above 1, and absence below 0.
        matrix[0, i] = round_to_single(values[i] / peak, single) if peak > 0 else 1.0
        matrix[1, i] = round_to_single(1.0 - matrix[0, i], single)
    return matrix


@inner_kernel
def _run_end(labels: Ints, start: int) -> int:
    """The last place of the run of equal labels that begins at `start`."""
    last = start
    while last + 1 < labels.shape[0] and labels[last + 1] == labels[start]:
        last += 1
    return last


@kernel
def trim_each(
    scores: Floats32,
    agentness: Floats,
    rows: Ints,
    ends: Ints,
    first: int,
    labels: Ints,
    alphas: Floats,
    by_agentness: bool,
    min_len: int,
    lag: bool,
    single: bool,
    segments: Ints,
    values: Floats,
) -> int:
    """Find the segments of each path in which each of its labels holds; returns their number.

    Args:
        scores: (r, c) of all detections.
        agentness: (r,) of all detections.
        rows: (n,) path after path.
        ends: (p + 1,) where each path starts and ends in `rows`.
        first: column of the kind's first label.
        labels: (p, k) of the paths, -1 for none.
        alphas: (l,) cost of a change, per label.
        by_agentness: whether agentness tells when a label holds, or its own score.
        min_len: last less first place of a segment is at least this.
        lag: see `viterbi`.
        single: whether scores are in 32 bits.
        segments: (s, 4) written: path, label, first and last place within the path.
        values: (s,) written: mean of the best half of the class scores.
    """
    n = 0
    for p in range(ends.shape[0] - 1):
        length = ends[p + 1] - ends[p]
        column, asked, held = np.empty(length), np.empty(length), np.empty(length)
        for rank in range(labels.shape[1]):
            label = labels[p, rank]
            if label < 0:
                continue
            for i in range(length):
                row = rows[ends[p] + i]
                column[i] = scores[row, first + label]
                asked[i] = agentness[row] if by_agentness else column[i]
            found = viterbi(score_presence(asked, single), alphas[label], lag)
            start = 0
            while start < length:
                last = _run_end(found, start)
                if found[start] == 0 and last - start >= min_len:
                    for i in range(start, last + 1):
                        held[i - start] = column[i]
                    # As published, the better half of the frames.
                    half = max(1, (last - start + 1) // 2)
                    segments[n, 0], segments[n, 1], segments[n, 2], segments[n, 3] = p, label, start, last
                    values[n] = top_mean(held, last - start + 1, half, single)
                    n += 1
                start = last + 1
    return n


@inline_kernel
def _take_segments(
    p: int,
    matrix: Floats,
    found: Ints,
    top_two: bool,
    min_len: int,
    single: bool,
    n: int,
    segments: Ints,
    values: Floats,
) -> int:
    """Write the segments of one round of `trim_all` behind the first `n` and clear their scores."""
    start, begun = 0, n
    while start < found.shape[0] and (not top_two or n < begun + 2):
        last, label = _run_end(found, start), found[start]
        long = last - start >= min_len
        if long or top_two:
            segments[n, 0], segments[n, 1], segments[n, 2], segments[n, 3] = p, label, start, last
            values[n] = pairwise_mean(matrix[label], start, last + 1, single) if long else 0.0
            n += 1
            for i in range(start, last + 1):
                matrix[label, i] = 0.0
        start = last + 1
    if n == begun + 2 and top_two and values[begun + 1] > values[begun]:
        for k in range(4):
            kept = segments[begun, k]
            segments[begun, k] = segments[begun + 1, k]
            segments[begun + 1, k] = kept
        values[begun], values[begun + 1] = values[begun + 1], values[begun]
    return n


@kernel
def trim_all(
    scores: Floats32,
    rows: Ints,
    ends: Ints,
    first: int,
    n_labels: int,
    rounds: int,
    alpha: float,
    top_two: bool,
    min_len: int,
    lag: bool,
    single: bool,
    segments: Ints,
    values: Floats,
) -> int:
    """Segments of each path found by all classes against each other; returns how many there are.

    Each round clears the scores of the segments it has taken.

    Args:
        scores: (r, c) of all detections.
        rows: (n,) path after path.
        ends: (p + 1,) where each path starts and ends in `rows`.
        first: column of the kind's first label.
        n_labels: of the kind.
        rounds: how often.
        alpha: cost of a change.
        top_two: take the first two segments, the better one first and a short one with score 0; or take
            every long one in order.
        min_len: paths of at most so many frames are left out; last less first place of a long segment is at
            least this.
        lag: see `viterbi`.
        single: whether arithmetic is in 32 bits.
        segments: (s, 4) written: path, label, first and last place within the path.
        values: (s,) written: mean class score.
    """
    n = 0
    for p in range(ends.shape[0] - 1):
        length = ends[p + 1] - ends[p]
        # A segment has more than `min_len` frames, which this path has not.
        if length <= min_len:
            continue
        matrix = np.empty((n_labels, length))
        for i in range(length):
            for label in range(n_labels):
                matrix[label, i] = scores[rows[ends[p] + i], first + label]
        for _ in range(rounds):
            found = viterbi(matrix, alpha, lag)
            n = _take_segments(p, matrix, found, top_two, min_len, single, n, segments, values)
    return n


@kernel
def suppress(corners: Floats, order: Ints, group: Ints, iou: float) -> npt.NDArray[np.bool_]:
    """Non-maximum suppression: whether each box is kept, that is overlaps no better kept box by more than `iou`.

    Args:
        corners: (n, 4) all boxes.
        order: (k,) rows of the boxes considered, frame by frame, the best of each frame first.
        group: (n,) the frame of each box.
        iou: the greatest overlap that is borne.

    Returns:
        (k,) in the order of `order`.
    """
    stays = np.zeros(len(order), dtype=np.bool_)
    chosen = np.empty(len(order), dtype=np.int64)
    count = 0
    frame = -1
    for i in range(len(order)):
        row = order[i]
        # `order` has the boxes of a frame side by side: a new frame ends the list of the last one.
        if group[row] != frame:
            frame = group[row]
            count = 0
        alone = True
        for j in range(count):
            if box_iou(corners[row], corners[chosen[j]], 0.0) > iou:
                alone = False
                break
        if alone:
            chosen[count] = row
            count += 1
            stays[i] = True
    return stays


@kernel
def cluster_boxes(
    corners: Floats, weight: Floats, order: Ints, group: Ints, iou: float
) -> tuple[Ints, Floats]:
    """The cluster of each box, and the weighted mean of the boxes of each cluster.

    A box joins the cluster of its frame whose mean so far overlaps it most, if by more than `iou` (the first
    of equals); otherwise it begins a new one. Boxes without weight leave a mean where it is.

    Args:
        corners: (n, 4) all boxes.
        weight: (n,) what each counts in the mean.
        order: (n,) rows, frame by frame, the best of each frame first.
        group: (n,) the frame of each box.
        iou: the overlap that a box must exceed.

    Returns:
        (n,) the clusters in the order of `order`, numbered as they begin, and (clusters, 4) the means.
    """
    cluster = np.empty(len(order), dtype=np.int64)
    means = np.empty((len(order), 4), dtype=np.float64)
    # Sums, not means that are updated from means, which would pile up rounding.
    sums = np.zeros((len(order), 5), dtype=np.float64)
    first = 0
    count = 0
    frame = -1
    for i in range(len(order)):
        row = order[i]
        if group[row] != frame:
            frame = group[row]
            first = count
        best = iou
        at = -1
        for j in range(first, count):
            found = box_iou(corners[row], means[j], 0.0)
            if found > best:
                best = found
                at = j
        begins = at < 0
        if begins:
            at = count
            means[at] = corners[row]
            count += 1
        cluster[i] = at
        sums[at, 4] += weight[row]
        for side in range(4):
            sums[at, side] += weight[row] * corners[row, side]
            if not begins and sums[at, 4] > 0.0:
                means[at, side] = sums[at, side] / sums[at, 4]
    return cluster, means[:count]
