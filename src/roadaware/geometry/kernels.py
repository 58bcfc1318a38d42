"""Compiled sums in the order in which numpy adds, overlaps of two boxes, and loops over pairs of tubes."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats, Ints
from roadaware.geometry.compiled import inner_kernel, kernel

# numpy adds blocks of at most 128 values: another size changes the last digits. Halving leaves two pieces a
# level on the stack, and a length of 64 bits has fewer than 64 levels.
_BLOCK, _DEPTH = 128, 200


@inner_kernel
def round_to_single(value: float, single: bool) -> float:
    """The value as 32 bits hold it: 64-bit arithmetic rounded after each step is 32-bit arithmetic."""
    if single:
        return float(np.float64(np.float32(value)))
    return value


@inner_kernel
def block_sum(values: Floats, start: int, stop: int, single: bool) -> float:
    """The sum of `values[start:stop]`, up to a block of values: in eight columns from eight values on."""
    whole, total = start, 0.0
    if stop - start >= 8:
        whole = stop - (stop - start) % 8
        part = np.empty(8)
        # Eight running sums, then added in pairs: numpy's order, so that means agree to the last bit.
        for i in range(start, whole):
            k = (i - start) % 8
            part[k] = round_to_single(part[k] + values[i], single) if i >= start + 8 else values[i]
        width = 8
        while width > 1:
            width //= 2
            # In place: entries 2 i and 2 i + 1 are read before either of them is written over.
            for i in range(width):
                part[i] = round_to_single(part[2 * i] + part[2 * i + 1], single)
        total = part[0]
    for i in range(whole, stop):
        total = round_to_single(total + values[i], single)
    return total


@kernel
def pairwise_sum(values: Floats, start: int, stop: int, single: bool) -> float:
    """The sum of `values[start:stop]`: longer pieces are halved at a multiple of eight, down to blocks."""
    if stop - start <= _BLOCK:
        return block_sum(values, start, stop, single)
    # Pieces still to be added, the next one last; a piece of length 0 adds the last two sums.
    pieces, sums = np.empty((_DEPTH, 2), np.int64), np.empty(_DEPTH)
    pieces[0, 0], pieces[0, 1] = start, stop
    n_pieces, n_sums = 1, 0
    while n_pieces > 0:
        n_pieces -= 1
        low, high = pieces[n_pieces, 0], pieces[n_pieces, 1]
        if low == high:
            sums[n_sums - 2] = round_to_single(sums[n_sums - 2] + sums[n_sums - 1], single)
            n_sums -= 1
        elif high - low <= _BLOCK:
            sums[n_sums] = block_sum(values, low, high, single)
            n_sums += 1
        else:
            half = (high - low) // 2
            middle = low + half - half % 8
            pieces[n_pieces, 0], pieces[n_pieces, 1] = low, low
            pieces[n_pieces + 1, 0], pieces[n_pieces + 1, 1] = middle, high
            pieces[n_pieces + 2, 0], pieces[n_pieces + 2, 1] = low, middle
            n_pieces += 3
    return float(sums[0])


@kernel
def pairwise_mean(values: Floats, start: int, stop: int, single: bool) -> float:
    """The mean of `values[start:stop]`, which is not empty, added as `pairwise_sum` does."""
    return round_to_single(pairwise_sum(values, start, stop, single) / (stop - start), single)


@kernel
def box_iou(a: Floats, b: Floats, extra: float) -> float:
    """Intersection over union of two boxes in double precision; 0 where they are apart or have no area.

    The union is the sum of both areas less the intersection, in this order, which published evaluators share:
    their numbers are repeated to the last digit. Loops that round between the steps as a published program
    did, that divide by something else, or that know the areas beforehand have an overlap of their own.

    Args:
        a: (4,) x1, y1, x2, y2 in pixels.
        b: (4,) the same.
        extra: added to widths and heights.
    """
    width = min(a[2], b[2]) - max(a[0], b[0]) + extra
    height = min(a[3], b[3]) - max(a[1], b[1]) + extra
    # Each side by itself: two negative ones, of boxes apart in both directions, have a positive product.
    if width <= 0 or height <= 0:
        return 0.0
    common = width * height
    union = (a[2] - a[0] + extra) * (a[3] - a[1] + extra) + (b[2] - b[0] + extra) * (b[3] - b[1] + extra)
    return float(common / (union - common))


@inner_kernel
def single_iou(a: Floats, b: Floats, extra: float) -> float:
    """The same in 32-bit arithmetic, with `extra` added to right and lower sides before they are compared.

    Args:
        a: (4,) x1, y1, x2, y2 in pixels, which 32 bits hold.
        b: (4,) the same.
        extra: added to widths and heights.
    """
    # Rounded after each step, and added before the minimum: another order may differ in the last bit.
    width = round_to_single(
        min(round_to_single(a[2] + extra, True), round_to_single(b[2] + extra, True)) - max(a[0], b[0]), True
    )
    height = round_to_single(
        min(round_to_single(a[3] + extra, True), round_to_single(b[3] + extra, True)) - max(a[1], b[1]), True
    )
    if width <= 0 or height <= 0:
        return 0.0
    common = round_to_single(width * height, True)
    both = round_to_single(single_area(a, extra) + single_area(b, extra), True)
    return round_to_single(common / round_to_single(both - common, True), True)


@inner_kernel
def single_area(box: Floats, extra: float) -> float:
    """Width times height in 32-bit arithmetic."""
    width = round_to_single(round_to_single(box[2] - box[0], True) + extra, True)
    height = round_to_single(round_to_single(box[3] - box[1], True) + extra, True)
    return round_to_single(width * height, True)


_ENDPOINTS = 1


@inner_kernel
def _mean_by_frame(
    boxes_a: Floats, rows_a: Ints, frames_a: Ints, boxes_b: Floats, rows_b: Ints, frames_b: Ints, extra: float
) -> tuple[int, float]:
    """Frames that two tubes share, and the mean overlap of their boxes there."""
    i = j = shared = 0
    total = 0.0
    while i < len(frames_a) and j < len(frames_b):
        if frames_a[i] < frames_b[j]:
            i += 1
        elif frames_a[i] > frames_b[j]:
            j += 1
        else:
            total += box_iou(boxes_a[rows_a[i]], boxes_b[rows_b[j]], extra)
            shared += 1
            i += 1
            j += 1
    return shared, total / shared if shared else 0.0


@inner_kernel
def _mean_by_place(
    boxes_a: Floats,
    rows_a: Ints,
    frames_a: Ints,
    boxes_b: Floats,
    rows_b: Ints,
    frames_b: Ints,
    extra: float,
    single: bool,
) -> float:
    """Mean overlap of the i-th boxes of two tubes within their common interval; -1 where they do not pair."""
    low, high = max(frames_a[0], frames_b[0]), min(frames_a[-1], frames_b[-1])
    i, j = _find_frame(frames_a, low), _find_frame(frames_b, low)
    i_last, j_last = _find_frame(frames_a, high), _find_frame(frames_b, high)
    # The published code pairs boxes by their place and assumes that no frame is missing in between.
    if frames_a[i] != low or frames_b[j] != low or frames_a[i_last] != high or frames_b[j_last] != high:
        return -1.0
    if i_last - i != j_last - j:
        return -1.0
    if single:
        values = np.empty(i_last - i + 1)
        for k in range(len(values)):
            values[k] = single_iou(boxes_a[rows_a[i + k]], boxes_b[rows_b[j + k]], extra)
        # numpy's mean of 32-bit numbers: pairwise, and rounded at each step.
        return float(pairwise_mean(values, 0, len(values), True))
    total = 0.0
    for k in range(i_last - i + 1):
        total += box_iou(boxes_a[rows_a[i + k]], boxes_b[rows_b[j + k]], extra)
    return float(total / (i_last - i + 1))


@inner_kernel
def _find_frame(frames: Ints, wanted: int) -> int:
    """The place of the first of rising frames that is not before the wanted one."""
    # numpy's own search also knows of complex numbers and NaN, which takes most of a second to compile.
    first, end = 0, len(frames)
    while first < end:
        middle = (first + end) // 2
        if frames[middle] < wanted:
            first = middle + 1
        else:
            end = middle
    return first


@kernel
def find_overlapping_intervals(
    first_a: Ints,
    last_a: Ints,
    video_a: Ints,
    first_b: Ints,
    last_b: Ints,
    order: Ints,
    begin: Ints,
    end: Ints,
) -> tuple[Ints, Ints]:
    """Pairs of intervals of one video that meet: where each first interval's begin, and the second ones.

    Args:
        first_a: (n,) first frame of each interval.
        last_a: (n,) last frame; one that ends before it begins meets nothing.
        video_a: (n,) its video.
        first_b: (m,) as above.
        last_b: (m,) as above.
        order: (h,) second intervals by video, then first frame.
        begin: (videos,) where each video begins in `order`.
        end: (videos,) where each video ends in `order`.
    """
    n = len(video_a)
    offsets = np.zeros(n + 1, dtype=np.int64)
    second = np.empty(0, dtype=np.int64)
    # Counted first, then written: how many pairs there are is not known, and arrays in kernels do not grow.
    for fill in (False, True):
        if fill:
            for a in range(n):
                offsets[a + 1] += offsets[a]
            second = np.empty(offsets[n], dtype=np.int64)
        for a in range(n):
            # The second set knows videos up to its own last one; in those beyond it nothing is met.
            if last_a[a] < first_a[a] or video_a[a] >= len(begin):
                continue
            met = 0
            for k in range(begin[video_a[a]], end[video_a[a]]):
                b = order[k]
                # Sorted by first frame: no later one can meet it either.
                if first_b[b] > last_a[a]:
                    break
                if last_b[b] < first_a[a]:
                    continue
                if fill:
                    second[offsets[a] + met] = b
                met += 1
            if not fill:
                offsets[a + 1] = met
    return offsets, second


@kernel
def compute_tube_pair_overlaps(
    boxes_a: Floats,
    rows_a: Ints,
    frames_a: Ints,
    offsets_a: Ints,
    boxes_b: Floats,
    rows_b: Ints,
    frames_b: Ints,
    offsets_b: Ints,
    pairs: Ints,
    second: Ints,
    time: int,
    extra: float,
    single: bool,
) -> tuple[Floats, Floats]:
    """Temporal and spatial overlap of pairs of tubes that meet; see `tubes.overlaps`.

    Args:
        boxes_a: (m, 4); this and the next three are fields of the first `Tubes`.
        rows_a: (k,).
        frames_a: (k,).
        offsets_a: (n + 1,).
        boxes_b: the same of the second `Tubes`.
        rows_b: as above.
        frames_b: as above.
        offsets_b: as above.
        pairs: (n + 1,) where the pairs of each first tube begin.
        second: (p,) the second tube of each pair.
        time: 0 sets of frames, 1 end points where the boxes pair, 2 end points always.
        extra: added to widths and heights.
        single: whether boxes that pair are compared in 32-bit arithmetic.
    """
    temporal, spatial = np.zeros(len(second)), np.zeros(len(second))
    for a in range(len(pairs) - 1):
        fa = frames_a[offsets_a[a] : offsets_a[a + 1]]
        ra = rows_a[offsets_a[a] : offsets_a[a + 1]]
        for p in range(pairs[a], pairs[a + 1]):
            b = second[p]
            fb = frames_b[offsets_b[b] : offsets_b[b + 1]]
            rb = rows_b[offsets_b[b] : offsets_b[b + 1]]
            placed = -1.0
            if time == _ENDPOINTS:
                placed = _mean_by_place(boxes_a, ra, fa, boxes_b, rb, fb, extra, single)
            if placed >= 0:
                spatial[p] = placed
            else:
                shared, spatial[p] = _mean_by_frame(boxes_a, ra, fa, boxes_b, rb, fb, extra)
                temporal[p] = shared / (len(fa) + len(fb) - shared)
            if placed >= 0 or time > _ENDPOINTS:
                # Both ends are frames of the tube, hence + 1.
                common = min(fa[-1], fb[-1]) - max(fa[0], fb[0]) + 1
                temporal[p] = common / (max(fa[-1], fb[-1]) - min(fa[0], fb[0]) + 1)
    return temporal, spatial
