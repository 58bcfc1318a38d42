"""Kernels of frames: which true triplets stand in each image, and which claim finds them; imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import kernel
from roadaware.metrics.relations.tubelet_kernels import first_from


@kernel
def _box_at(offsets: Any, frames: Any, tube: Any, frame: Any) -> Any:
    """Place of the box of a tube in a frame, -1 where it has none."""
    place = first_from(frames, offsets[tube], offsets[tube + 1], frame)
    return place if place < offsets[tube + 1] and frames[place] == frame else -1


@kernel
def _iou(a: Any, b: Any, offset: float, single: bool) -> Any:
    """Intersection over union of two boxes; in single precision each number is rounded, as published."""
    if single:
        one, zero = np.float32(offset), np.float32(0)
        ax1, ay1, ax2, ay2 = np.float32(a[0]), np.float32(a[1]), np.float32(a[2]), np.float32(a[3])
        bx1, by1, bx2, by2 = np.float32(b[0]), np.float32(b[1]), np.float32(b[2]), np.float32(b[3])
        iw, ih = min(ax2, bx2) - max(ax1, bx1) + one, min(ay2, by2) - max(ay1, by1) + one
        if iw <= zero or ih <= zero:
            return 0.0
        area = (ax2 - ax1 + one) * (ay2 - ay1 + one) + (bx2 - bx1 + one) * (by2 - by1 + one) - iw * ih
        return float(iw * ih / area)
    width = min(a[2], b[2]) - max(a[0], b[0]) + offset
    height = min(a[3], b[3]) - max(a[1], b[1]) + offset
    if width <= 0 or height <= 0:
        return 0.0
    whole = (a[2] - a[0] + offset) * (a[3] - a[1] + offset)
    return width * height / (whole + (b[2] - b[0] + offset) * (b[3] - b[1] + offset) - width * height)


@kernel
def true_triplets(
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
    out: Any,
) -> int:
    """The true relations that stand in each image with both boxes; how many there are.

    Args:
        image_starts: (V + 1,) where the images of each video begin.
        images: (i,) the frame of each.
        starts: (V + 1,) where the true relations of each video begin.
        start: (t,) first frame.
        end: (t,) frame after the last.
        subject: (t,) place of the tube, like the next.
        object_: (t,).
        offsets: (tubes + 1,) where the boxes of each tube begin.
        frames: (k,) frame of each box.
        same: (t,) equal where relations say the same of the same tubes.
        once: whether such relations are taken once in an image.
        out: (any, 4) filled with image, relation, box of the subject and of the object.
    """
    n = 0
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
                    out[n, 0], out[n, 1], out[n, 2], out[n, 3] = image, t, s, o
                    n += 1
    return n


@kernel
def find_triplets(
    claim_starts: Any,
    start: Any,
    end: Any,
    subject: Any,
    object_: Any,
    triplet: Any,
    pair: Any,
    same: Any,
    score: Any,
    offsets: Any,
    frames: Any,
    boxes: Any,
    image_video: Any,
    images: Any,
    entry_starts: Any,
    entries: Any,
    truth_triplet: Any,
    truth_boxes: Any,
    limits: Any,
    numbers: Any,
    single: bool,
    several: bool,
    rank: Any,
    found_by: Any,
) -> None:
    """Walk the claims of each image from the best on, and note the rank that finds each true triplet.

    Args:
        claim_starts: (V + 1,) where the claims of each video begin; by falling score in a video.
        start: (n,) first frame of each claim.
        end: (n,) frame after the last.
        subject: (n,) place of the tube, like the next.
        object_: (n,).
        triplet: (n,) who does what to whom.
        pair: (n,) number of the two tubes.
        same: (n,) number of the two tubes and the predicate.
        score: (n,).
        offsets: (tubes + 1,) where the boxes of each claimed tube begin.
        frames: (m,) frame of each box.
        boxes: (m, 4) corners.
        image_video: (i,) video of each image.
        images: (i,) frame of each image.
        entry_starts: (i + 1,) where the true triplets of each image begin.
        entries: (e, 4) image, relation, box of the subject and of the object.
        truth_triplet: (t,) of each true relation.
        truth_boxes: (k, 4) corners.
        limits: predicates of a pair, and claims of an image, that are judged.
        numbers: score that a claim must pass, least overlap, pixels added to widths and heights.
        single: whether boxes and overlaps are rounded to single precision.
        several: whether a claim finds all that it overlaps enough.
        rank: (e,) filled with the rank that finds each triplet, from 1; 0 where none does.
        found_by: (e,) filled with that claim.
    """
    per_pair, top = limits
    least, threshold, offset = numbers
    n_pairs, n_same = 0, 0
    for c in range(len(pair)):
        n_pairs, n_same = max(n_pairs, pair[c] + 1), max(n_same, same[c] + 1)
    pair_image, pair_count = np.full(n_pairs, -1, dtype=np.int64), np.zeros(n_pairs, dtype=np.int64)
    same_image = np.full(n_same, -1, dtype=np.int64)
    for image in range(len(images)):
        low, high = entry_starts[image], entry_starts[image + 1]
        missing, n, frame, video = high - low, 0, images[image], image_video[image]
        for c in range(claim_starts[video], claim_starts[video + 1]):
            if missing == 0 or n == top or score[c] <= least:
                break
            if not start[c] <= frame < end[c] or same_image[same[c]] == image:
                continue
            s, o = _box_at(offsets, frames, subject[c], frame), _box_at(offsets, frames, object_[c], frame)
            if s < 0 or o < 0:
                continue
            same_image[same[c]] = image
            if pair_image[pair[c]] != image:
                pair_image[pair[c]], pair_count[pair[c]] = image, 0
            if pair_count[pair[c]] == per_pair:
                continue
            pair_count[pair[c]] += 1
            n += 1
            best, chosen = -1.0, -1
            for e in range(low, high):
                if rank[e] or truth_triplet[entries[e, 1]] != triplet[c]:
                    continue
                overlap = min(
                    _iou(boxes[s], truth_boxes[entries[e, 2]], offset, single),
                    _iou(boxes[o], truth_boxes[entries[e, 3]], offset, single),
                )
                if overlap >= threshold and several:
                    rank[e], found_by[e] = n, c
                    missing -= 1
                elif overlap >= threshold and overlap > best:
                    best, chosen = overlap, e
            if chosen >= 0:
                rank[chosen], found_by[chosen] = n, c
                missing -= 1
