"""Kernels of tubelets: the ground-truth relation that each prediction matches, and the scores of a video; imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import kernel


@kernel
def find_first_from(frames: Any, low: Any, high: Any, frame: Any) -> Any:
    """The first place in [low, high) whose frame is not before `frame`, `high` where there is none."""
    if low == high or frames[low] >= frame:
        return low
    # Without gaps the place follows from the frame.
    if frames[high - 1] - frames[low] == high - 1 - low:
        return min(low + frame - frames[low], high)
    while low < high:
        middle = (low + high) // 2
        if frames[middle] < frame:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def cut(tube: Any, start: Any, end: Any, offsets: Any, frames: Any) -> Any:
    """The boxes that each relation has of a tube.

    Args:
        tube: (n,) place of the tube.
        start: (n,) first frame.
        end: (n,) frame after the last.
        offsets: (tubes + 1,) where the boxes of each tube begin.
        frames: (m,) frame of each box.

    Returns:
        (n, 2) first box and box after the last.
    """
    cuts = np.empty((len(tube), 2), dtype=np.int64)
    for i in range(len(tube)):
        low, high = offsets[tube[i]], offsets[tube[i] + 1]
        cuts[i, 0] = find_first_from(frames, low, high, start[i])
        cuts[i, 1] = find_first_from(frames, cuts[i, 0], high, end[i])
    return cuts


@kernel
def _volume(boxes: Any, low: int, high: int, offset: float) -> float:
    """Sum of the areas of boxes."""
    total = 0.0
    for i in range(low, high):
        total += (boxes[i, 2] - boxes[i, 0] + offset) * (boxes[i, 3] - boxes[i, 1] + offset)
    return total


@kernel
def _viou(boxes: Any, frames: Any, cut: Any, boxes_2: Any, frames_2: Any, cut_2: Any, offset: float) -> Any:
    """Intersection over union of two tubelets, summed over frames in their order."""
    i, j, common = cut[0], cut_2[0], 0.0
    while i < cut[1] and j < cut_2[1]:
        if frames[i] < frames_2[j]:
            i += 1
        elif frames[i] > frames_2[j]:
            j += 1
        else:
            width = min(boxes[i, 2], boxes_2[j, 2]) - max(boxes[i, 0], boxes_2[j, 0]) + offset
            height = min(boxes[i, 3], boxes_2[j, 3]) - max(boxes[i, 1], boxes_2[j, 1]) + offset
            common += max(0.0, width) * max(0.0, height)
            i += 1
            j += 1
    volumes = _volume(boxes, cut[0], cut[1], offset) + _volume(boxes_2, cut_2[0], cut_2[1], offset)
    union = volumes - common
    return common / union if union > 0 else 0.0


@kernel
def match_tubelets(claims: Any, truth: Any, numbers: Any, taken: Any, near: Any, overlap: Any) -> None:
    """Give each prediction, best first, the free ground-truth relation of its triplet that it overlaps most.

    Args:
        claims: (V + 1,) where the predictions of each video begin, by falling score in a video; (n,) triplet of
            each; (n, 2) boxes of the subject, first and after the last; (n, 2) those of the object; (m,)
            frame of each box; (m, 4) corners.
        truth: the same of the ground-truth relations.
        numbers: pixels added to widths and heights, least overlap of a hit.
        taken: (n,) filled with the relation that a prediction takes, -1 where none.
        near: (n,) filled with the relation of its triplet, free or not, that it overlaps most.
        overlap: (n, 2) filled with what subject and object overlap those of `taken`, or else of `near`.
    """
    claim_starts, claim_triplet, subjects, objects, frames, boxes = claims
    truth_starts, truth_triplet, true_subjects, true_objects, true_frames, true_boxes = truth
    offset, threshold = numbers
    free = np.ones(len(truth_triplet), dtype=np.bool_)
    for video in range(len(claim_starts) - 1):
        for c in range(claim_starts[video], claim_starts[video + 1]):
            best, best_near = 0.0, 0.0
            for t in range(truth_starts[video], truth_starts[video + 1]):
                if claim_triplet[c] != truth_triplet[t]:
                    continue
                subject, object_ = (
                    _viou(boxes, frames, subjects[c], true_boxes, true_frames, true_subjects[t], offset),
                    _viou(boxes, frames, objects[c], true_boxes, true_frames, true_objects[t], offset),
                )
                least = min(subject, object_)
                hit = free[t] and least >= threshold and least > best
                if hit:
                    best, taken[c] = least, t
                if near[c] < 0 or least > best_near:
                    best_near, near[c] = least, t
                    hit = hit or taken[c] < 0
                if hit:
                    overlap[c, 0], overlap[c, 1] = subject, object_
            if taken[c] >= 0:
                free[taken[c]] = False


@kernel
def score_tubelets(
    claim_starts: Any,
    claim_triplet: Any,
    taken: Any,
    truth_starts: Any,
    truth_triplet: Any,
    precision_at: Any,
    single: bool,
    ap: Any,
    tagged: Any,
) -> None:
    """Average precision of the predictions of each video, and precision of its best distinct triplets.

    Args:
        claim_starts: (V + 1,) where the predictions of each video begin; by falling score in a video.
        claim_triplet: (n,) who does what to whom.
        taken: (n,) the relation that each prediction found, -1 where none.
        truth_starts: (V + 1,) where the ground-truth relations of each video begin.
        truth_triplet: (t,).
        precision_at: (P,) how many triplets are considered.
        single: whether recall and precision are rounded to single precision.
        ap: (V,) filled with the area under the best precision at a recall or beyond; 0 without predictions.
        tagged: (V, P) filled with the share of right triplets; 0 without predictions.
    """
    most = precision_at.max()
    seen = np.empty(most, dtype=np.int64)
    right = np.zeros(most + 1, dtype=np.int64)
    for video in range(len(claim_starts) - 1):
        low, high = claim_starts[video], claim_starts[video + 1]
        first, last = truth_starts[video], truth_starts[video + 1]
        n_hits = 0
        for c in range(low, high):
            n_hits += taken[c] >= 0
        best = 0.0
        # From the last on, since the precision at a recall or beyond is then a running maximum.
        for back in range(high - low):
            c = high - 1 - back
            best = max(best, _ratio(n_hits, c - low + 1, single))
            if taken[c] >= 0:
                step = _ratio(n_hits, last - first, single) - _ratio(n_hits - 1, last - first, single)
                ap[video] += step * best
                n_hits -= 1
        n_seen = 0
        for c in range(low, high):
            if n_seen == most:
                break
            if not _holds(seen, 0, n_seen, claim_triplet[c]):
                seen[n_seen] = claim_triplet[c]
                right[n_seen + 1] = right[n_seen] + _holds(truth_triplet, first, last, claim_triplet[c])
                n_seen += 1
        for i in range(len(precision_at)):
            n = min(precision_at[i], n_seen)
            tagged[video, i] = _ratio(right[n], n, single) if n else 0.0


@kernel
def _ratio(part: int, whole: int, single: bool) -> float:
    """A share, rounded to single precision where asked."""
    return float(np.float32(part) / np.float32(whole)) if single else part / whole


@kernel
def _holds(values: Any, low: int, high: int, value: int) -> bool:
    """Whether a value stands in [low, high)."""
    found = False
    for i in range(low, high):
        found = found or values[i] == value
    return found
