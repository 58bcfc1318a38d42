"""Kernels of frames: the ground-truth triplets of each image, and the predictions that match them; imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import kernel
from roadaware.geometry.kernels import box_iou
from roadaware.metrics.relations.tubelet_kernels import find_first_from


@kernel
def _box_at(offsets: Any, frames: Any, tube: Any, frame: Any) -> Any:
    """Place of the box of a tube in a frame, -1 where it has none."""
    place = find_first_from(frames, offsets[tube], offsets[tube + 1], frame)
    return place if place < offsets[tube + 1] and frames[place] == frame else -1


@kernel
def _iou(a: Any, b: Any, offset: float, single: bool) -> Any:
    """Intersection over union of two boxes; in single precision each number is rounded, as published."""
    if not single:
        return box_iou(a, b, offset)
    one, zero = np.float32(offset), np.float32(0)
    ax1, ay1, ax2, ay2 = np.float32(a[0]), np.float32(a[1]), np.float32(a[2]), np.float32(a[3])
    bx1, by1, bx2, by2 = np.float32(b[0]), np.float32(b[1]), np.float32(b[2]), np.float32(b[3])
    iw, ih = min(ax2, bx2) - max(ax1, bx1) + one, min(ay2, by2) - max(ay1, by1) + one
    if iw <= zero or ih <= zero:
        return 0.0
    area = (ax2 - ax1 + one) * (ay2 - ay1 + one) + (bx2 - bx1 + one) * (by2 - by1 + one) - iw * ih
    return float(iw * ih / area)


@kernel
def collect_true_triplets(
    image_starts: Any,
    images: Any,
    starts: Any,
    start: Any,
    end: Any,
    subject: Any,
    object_: Any,
    offsets: Any,
    frames: Any,
    same: Any,
    once: bool,
) -> Any:
    """The ground-truth relations of each image that have both boxes: (n, 4) image, relation, box of both.

    Args:
        image_starts: (V + 1,) where the images of each video begin.
        images: (i,) the frame of each.
        starts: (V + 1,) where the ground-truth relations of each video begin.
        start: (t,) first frame.
        end: (t,) frame after the last.
        subject: (t,) place of the tube, like the next.
        object_: (t,).
        offsets: (tubes + 1,) where the boxes of each tube begin.
        frames: (k,) frame of each box.
        same: (t,) equal where relations say the same of the same tubes.
        once: whether such relations are taken once in an image.
    """
    out, n = np.empty((64, 4), dtype=np.int64), 0
    for video in range(len(image_starts) - 1):
        for image in range(image_starts[video], image_starts[video + 1]):
            frame, first = images[image], n
            for t in range(starts[video], starts[video + 1]):
                if not start[t] <= frame < end[t]:
                    continue
                s, o = (
                    _box_at(offsets, frames, subject[t], frame),
                    _box_at(offsets, frames, object_[t], frame),
                )
                if s < 0 or o < 0:
                    continue
                again = False
                if once:
                    for row in range(first, n):
                        again = again or same[out[row, 1]] == same[t]
                if not again:
                    if n == len(out):
                        out = np.concatenate((out, np.empty_like(out)))
                    out[n, 0], out[n, 1], out[n, 2], out[n, 3] = image, t, s, o
                    n += 1
    return out[:n]


@kernel
def find_triplets(
    claims: Any,
    ties: Any,
    tracks: Any,
    images: Any,
    truth: Any,
    limits: Any,
    numbers: Any,
    how: Any,
    rank: Any,
) -> Any:
    """Walk the predictions of each image from the best on, and note the rank that finds each ground-truth triplet.

    Returns how many of the images that were walked have no prediction.

    Args:
        claims: (V + 1,) where the predictions of each video begin, by falling score in a video; and of the n
            predictions the first frame, the frame after the last, places of subject and object, triplet, number
            of the pair, number of pair and predicate, score, and place in the table.
        ties: (V + 1,) where those of each video begin, and the predictions of pairs that tie with others.
        tracks: (tubes + 1,) where the boxes of each predicted tube begin; (m,) their frames; (m, 4) corners.
        images: (i,) video, (i,) frame, (i + 1,) where the ground-truth triplets of each image begin.
        truth: (e, 4) image, relation, box of the subject and of the object; (t,) triplet of each relation;
            (k, 4) corners.
        limits: predicates of a pair, and predictions of an image, that are judged.
        numbers: score that a prediction must pass, least overlap, pixels added to widths and heights.
        how: whether a prediction finds all that it overlaps enough; whether boxes and overlaps are rounded to
            single precision; whether an image in which no prediction stands is judged by the predictions and boxes of
            the last image before it that had some, of whatever video.
        rank: (e,) filled with the rank that finds each triplet, from 1; 0 where none does.
    """
    starts, start, end, subject, object_, triplet, pair, same, score, _ = claims
    offsets, frames, boxes = tracks
    n_numbers = same.max() + 1 if len(same) else 0
    # The image in which each pair and predicate was judged last; of each pair the predicates judged in an image, and
    # which image that is. Stamped so that nothing is cleared between images.
    seen, first = np.full((3, n_numbers), -1, dtype=np.int64), np.empty(n_numbers, dtype=np.int64)
    walk, silent = np.arange(len(same)), 0
    carried, n_carried = np.empty((min(limits[1], len(same)), 3), dtype=np.int64), 0
    for image in range(len(images[1])):
        video, frame, low, high = images[0][image], images[1][image], images[2][image], images[2][image + 1]
        if low == high and not how[2]:
            continue
        tied = ties[1][ties[0][video] : ties[0][video + 1]]
        _order_ties(claims, tied, offsets, frames, starts[video], frame, walk, first)
        n, missing = 0, high - low
        # Where silent frames are carried over, the walk goes on after all is found: they may need the rest.
        for c in walk[starts[video] : starts[video + 1]]:
            if (missing == 0 and not how[2]) or n == limits[1] or score[c] <= numbers[0]:
                break
            # Written out here: as a function that takes all columns this walk is three times slower.
            if not start[c] <= frame < end[c] or seen[0, same[c]] == image:
                continue
            s, o = _box_at(offsets, frames, subject[c], frame), _box_at(offsets, frames, object_[c], frame)
            if s < 0 or o < 0:
                continue
            seen[0, same[c]] = image
            seen[1, pair[c]] = 1 if seen[2, pair[c]] != image else seen[1, pair[c]] + 1
            seen[2, pair[c]] = image
            if seen[1, pair[c]] <= limits[0]:
                carried[n] = c, s, o
                n += 1
                missing -= _take(truth, low, high, triplet[c], boxes[s], boxes[o], numbers, how, n, rank)
        if n or _stands(claims, offsets, frames, starts[video], starts[video + 1], frame):
            n_carried = n
        else:
            silent += 1
            if how[2]:
                for k in range(n_carried):
                    c, s, o = carried[k]
                    _take(truth, low, high, triplet[c], boxes[s], boxes[o], numbers, how, k + 1, rank)
    return silent


@kernel
def _stands(claims: Any, offsets: Any, frames: Any, low: int, high: int, frame: int) -> Any:
    """Whether any prediction of a video stands in a frame with both boxes, whatever its score."""
    _, start, end, subject, object_, _, _, _, _, _ = claims
    for c in range(low, high):
        if (
            start[c] <= frame < end[c]
            and _box_at(offsets, frames, subject[c], frame) >= 0
            and _box_at(offsets, frames, object_[c], frame) >= 0
        ):
            return True
    return False


@kernel
def _take(
    truth: Any,
    low: int,
    high: int,
    triplet: int,
    subject: Any,
    object_: Any,
    numbers: Any,
    how: Any,
    n: int,
    rank: Any,
) -> Any:
    """Note the rank of a prediction with the ground-truth triplets that it finds; how many there are."""
    entries, truth_triplet, boxes = truth
    found, best, chosen = 0, 0.0, low
    for e in range(low, high):
        if rank[e] or truth_triplet[entries[e, 1]] != triplet:
            continue
        overlap = min(
            _iou(subject, boxes[entries[e, 2]], numbers[2], how[1]),
            _iou(object_, boxes[entries[e, 3]], numbers[2], how[1]),
        )
        if overlap >= numbers[1] and how[0]:
            rank[e] = n
            found += 1
        elif overlap >= numbers[1] and overlap > best:
            best, chosen = overlap, e
    if best > 0:
        rank[chosen] = n
        found += 1
    return found


@kernel
def _order_ties(
    claims: Any, tied: Any, offsets: Any, frames: Any, low: int, frame: int, walk: Any, first: Any
) -> None:
    """Bring predictions of equal scores to the order in which their pairs first stand in this frame.

    Args:
        claims: as in `find_triplets`.
        tied: the predictions of pairs that tie with others, by falling score.
        offsets: (tubes + 1,) where the boxes of each predicted tube begin.
        frames: (m,) their frames.
        low: the first prediction of the video.
        frame: the frame.
        walk: (n,) the predictions in order; those that tie are ordered again.
        first: (pairs,) room for the first prediction of each pair in this frame.
    """
    _, start, end, subject, object_, _, pair, _, score, row = claims
    late = np.int64(1) << 62
    for c in tied:
        walk[c] = c
        first[pair[c]] = late
    for c in tied:
        if start[c] <= frame < end[c] and row[c] < first[pair[c]]:
            s, o = _box_at(offsets, frames, subject[c], frame), _box_at(offsets, frames, object_[c], frame)
            if s >= 0 and o >= 0:
                first[pair[c]] = row[c]
    for c in tied:
        place = c
        while (
            place > low
            and score[walk[place - 1]] == score[c]
            and first[pair[walk[place - 1]]] > first[pair[c]]
        ):
            walk[place] = walk[place - 1]
            place -= 1
        walk[place] = c
