"""Sequences of keyframes, as Label Studio draws boxes in videos: brought to boxes, and boxes to keyframes."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Bools, Floats, Ints


def filled(frames: Ints, enabled: Bools, values: Floats, last: int) -> tuple[Ints, Floats]:
    """Every frame in which a box is seen, with its values.

    A keyframe is seen in its own frame; behind one that is enabled the box goes on in straight lines to the
    next keyframe, and behind the last one it stays as it is until the end of the video.

    Args:
        frames: (k,) of the keyframes, ascending.
        enabled: (k,) whether the box goes on behind them.
        values: (k, n) what is drawn in each.
        last: the last frame of the video.

    Returns:
        (m,) frames, ascending, and (m, n) the values in them.

    Source: the key frames of Label Studio's SDK and of its video regions.
    """
    ends = np.append(frames[1:] - 1, last)
    stretches = [
        np.arange(start, max(start, end) + 1) if on else np.array([start])
        for start, end, on in zip(frames.tolist(), ends.tolist(), enabled.tolist(), strict=True)
    ]
    seen = np.concatenate([np.zeros(0, np.int64), *stretches])
    columns = [np.interp(seen, frames, values[:, n]) for n in range(values.shape[1])]
    return seen, np.stack(columns, axis=1)


def thinned(frames: Ints, values: Floats, tolerance: float) -> tuple[Ints, Bools]:
    """The keyframes from which `filled` makes the same frames, and values at most a tolerance away.

    Frames come in runs without a gap; the first and last of each are keyframes, and within one the frame
    that is farthest from the straight line between two keyframes is another, until none is too far.

    Args:
        frames: (m,) ascending.
        values: (m, n) what is seen in each.
        tolerance: how far a value may be away.

    Returns:
        (k,) places of the keyframes, ascending, and (k,) whether the box goes on behind them.

    Source: Ramer 1972; Douglas and Peucker 1973.
    """
    kept = np.zeros(len(frames), dtype=np.bool_)
    starts = np.flatnonzero(np.diff(frames, prepend=-2) != 1)
    ends = np.append(starts[1:] - 1, len(frames) - 1)
    kept[starts] = kept[ends] = True
    left = list(zip(starts.tolist(), ends.tolist(), strict=True))
    while left:
        first, end = left.pop()
        if end - first < 2:
            continue
        share = ((frames[first + 1 : end] - frames[first]) / (frames[end] - frames[first]))[:, None]
        line = values[first] + share * (values[end] - values[first])
        away = np.abs(values[first + 1 : end] - line).max(axis=1)
        farthest = int(away.argmax())
        if away[farthest] > tolerance:
            middle = first + 1 + farthest
            kept[middle] = True
            left += [(first, middle), (middle, end)]
    places = np.flatnonzero(kept)
    return places, ~np.isin(places, ends)
