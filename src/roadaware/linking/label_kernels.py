"""Compiled labelling of paths: class scores over frames, dynamic programming over labels; imports numba."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.geometry.arithmetic import pairwise_mean, round_to_single
from roadaware.geometry.compiled import inline_kernel, kernel

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


@kernel
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


@kernel
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
