"""What answers without a detector would claim: the whole picture, and boxes drawn at random."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.metrics.corner_cases.inputs import NONE, Claims, Objects

WHOLE, RANDOM = "whole image", "random boxes"


def whole_pictures(truth: Objects) -> Claims:
    """One claim in each picture: all of it."""
    items = np.flatnonzero(~np.isnan(truth.sizes).any(axis=1))
    corners = np.column_stack([np.zeros((len(items), 2)), truth.sizes[items]])
    return _claims(items, corners, np.ones(len(items)))


def random_boxes(truth: Objects, number: int, seed: int = 0) -> Claims:
    """So many boxes in each picture, whose corners are two points drawn evenly.

    Args:
        truth: tells the pictures.
        number: of boxes in each.
        seed: of the boxes.
    """
    items = np.flatnonzero(~np.isnan(truth.sizes).any(axis=1))
    rng = np.random.default_rng(seed)
    points = np.sort(rng.random((len(items), number, 2, 2)), axis=2)
    corners = (points * truth.sizes[items][:, None, None]).reshape(-1, 4)
    score = np.tile(1 - np.arange(number) / number, len(items))
    return _claims(np.repeat(items, number), corners, score)


def _claims(items: npt.NDArray[np.int64], corners: Floats, score: Floats) -> Claims:
    nothing = np.full(len(items), NONE)
    sides = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    return Claims(items, corners, sides, nothing, np.ones(len(items), dtype=bool), nothing, score)
