"""Kernels of relations: which ground truth each prediction matches, of tubelets and of triplets in images."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import kernel
from roadaware.geometry.kernels import box_iou


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
def match_tubelets(predictions: Any, truth: Any, numbers: Any, taken: Any, near: Any, overlap: Any) -> None:
    """Give each prediction, best first, the free ground-truth relation of its triplet that it overlaps most.

    Args:
        predictions: (V + 1,) where the predictions of each video begin, by falling score in a video; (n,) triplet of
            each; (n, 2) boxes of the subject, first and after the last; (n, 2) those of the object; (m,)
            frame of each box; (m, 4) corners.
        truth: the same of the ground-truth relations.
        numbers: pixels added to widths and heights, least overlap of a hit.
        taken: (n,) filled with the relation that a prediction takes, -1 where none.
        near: (n,) filled with the relation of its triplet, free or not, that it overlaps most.
        overlap: (n, 2) filled with what subject and object overlap those of `taken`, or else of `near`.
    """
    prediction_starts, prediction_triplet, subjects, objects, frames, boxes = predictions
    truth_starts, truth_triplet, true_subjects, true_objects, true_frames, true_boxes = truth
    offset, threshold = numbers
    free = np.ones(len(truth_triplet), dtype=np.bool_)
    for video in range(len(prediction_starts) - 1):
        for c in range(prediction_starts[video], prediction_starts[video + 1]):
            best, best_near = 0.0, 0.0
            for t in range(truth_starts[video], truth_starts[video + 1]):
                if prediction_triplet[c] != truth_triplet[t]:
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
    prediction_starts: Any,
    prediction_triplet: Any,
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
        prediction_starts: (V + 1,) where the predictions of each video begin; by falling score in a video.
        prediction_triplet: (n,) who does what to whom.
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
    for video in range(len(prediction_starts) - 1):
        low, high = prediction_starts[video], prediction_starts[video + 1]
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
            if not _holds(seen, 0, n_seen, prediction_triplet[c]):
                seen[n_seen] = prediction_triplet[c]
                right[n_seen + 1] = right[n_seen] + _holds(truth_triplet, first, last, prediction_triplet[c])
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
    predictions: Any,
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
        predictions: (V + 1,) where the predictions of each video begin, by falling score in a video; and of the n
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
    starts, start, end, subject, object_, triplet, pair, same, score, _ = predictions
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
        _order_ties(predictions, tied, offsets, frames, starts[video], frame, walk, first)
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
        if n or _stands(predictions, offsets, frames, starts[video], starts[video + 1], frame):
            n_carried = n
        else:
            silent += 1
            if how[2]:
                for k in range(n_carried):
                    c, s, o = carried[k]
                    _take(truth, low, high, triplet[c], boxes[s], boxes[o], numbers, how, k + 1, rank)
    return silent


@kernel
def _stands(predictions: Any, offsets: Any, frames: Any, low: int, high: int, frame: int) -> Any:
    """Whether any prediction of a video stands in a frame with both boxes, whatever its score."""
    _, start, end, subject, object_, _, _, _, _, _ = predictions
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
    predictions: Any, tied: Any, offsets: Any, frames: Any, low: int, frame: int, walk: Any, first: Any
) -> None:
    """Bring predictions of equal scores to the order in which their pairs first stand in this frame.

    Args:
        predictions: as in `find_triplets`.
        tied: the predictions of pairs that tie with others, by falling score.
        offsets: (tubes + 1,) where the boxes of each predicted tube begin.
        frames: (m,) their frames.
        low: the first prediction of the video.
        frame: the frame.
        walk: (n,) the predictions in order; those that tie are ordered again.
        first: (pairs,) room for the first prediction of each pair in this frame.
    """
    _, start, end, subject, object_, _, pair, _, score, row = predictions
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
