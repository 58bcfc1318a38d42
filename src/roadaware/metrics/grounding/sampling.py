"""Which frames of a video an evaluator of grounded sentences looks at."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from roadaware.arrays import Ints
from roadaware.metrics.grounding.config import GroundingConfig


def sampled_frames(start: int, end: int, fps: float, config: GroundingConfig) -> Ints:
    """(n,) the frames of [start, end) that are looked at, rising; `start` always is one of them.

    A frame is taken when the whole part of frame * (sample_fps / fps) is larger than that of the frame taken
    before it. A rate below `sample_fps` takes every frame.

    Args:
        start: first frame.
        end: the frame after the last that may be taken.
        fps: frames per second of the video.
        config: `sample_fps` and `most_frames`.

    Source: Yang et al., CVPR 2022, `hcstvg_eval.py`, `vidstg_eval.py`.

    >>> sampled_frames(0, 20, 25.0, GroundingConfig())
    array([ 0,  5, 10, 15])
    """
    frames = np.arange(start, max(end, start + 1), dtype=np.int64)
    ticks = (frames * (config.sample_fps / fps)).astype(np.int64)
    taken: Ints = frames[np.concatenate([[True], ticks[1:] > ticks[:-1]])]
    most = config.most_frames
    if most is not None and len(taken) > most:
        taken = taken[(np.arange(most) * len(taken)) // most]
    return taken


def exact_rate(fps: float) -> float:
    """The rate in double precision that a table's single precision stands for: 30000 / 1001, 25, 29.97, ...

    Frames are taken by whole parts of products with it, so that the last digits decide.

    >>> exact_rate(float(np.float32(30000 / 1001))) == 30000 / 1001
    True
    """
    single = np.float32(fps)
    ratio = Fraction(round(float(single) * 1001 / 1000) * 1000, 1001)
    if np.float32(float(ratio)) == single and ratio.denominator != 1:
        return float(ratio)
    return float(str(single))
