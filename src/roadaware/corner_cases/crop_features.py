"""Features of crops without a network: where edges point, which colours there are, and where."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32
from roadaware.errors import InputError

SIDE_PX = 64
"""Height and width of the crops."""
_CELLS, _DIRECTIONS, _LEVELS = 4, 9, 4
WIDTH = _CELLS * _CELLS * _DIRECTIONS + _LEVELS**3 + _CELLS * _CELLS * 3
"""Numbers that describe a crop."""


def extract_plain_features(crops: npt.NDArray[np.uint8]) -> Floats32:
    """(n, 256) three blocks of unit length: edges, colours, and where colours are.

    Edges: in each of 4 x 4 cells, how much gradient points in each of 9 directions, without its sign.
    Colours: how often each of 4 x 4 x 4 occurs. Where: the mean colour of each cell. The first two are
    square roots, so that their distances are those of Hellinger.

    Args:
        crops: (n, 64, 64, 3) red first.

    Raises:
        InputError: if they are of another shape.

    Source: Dalal and Triggs, CVPR 2005, for the edges, without its overlapping blocks.
    """
    if crops.shape[1:] != (SIDE_PX, SIDE_PX, 3) or crops.dtype != np.uint8:
        raise InputError(f"crops are (n, {SIDE_PX}, {SIDE_PX}, 3) bytes, not {crops.dtype} {crops.shape}")
    parts = [np.concatenate([_edges(each), _colours(each), _places(each)]) for each in crops]
    return np.array(parts, dtype=np.float32).reshape(len(crops), WIDTH)


def _edges(crop: npt.NDArray[np.uint8]) -> Floats:
    """(144,) of a crop."""
    down, across = np.gradient(crop.mean(axis=2))
    # Modulo pi: an edge from dark to light and one from light to dark are the same edge.
    turn = np.arctan2(down, across) % np.pi
    # The modulo may round up to pi itself.
    direction = np.minimum((turn / np.pi * _DIRECTIONS).astype(np.int64), _DIRECTIONS - 1)
    place = np.arange(SIDE_PX) * _CELLS // SIDE_PX
    bins = (place[:, None] * _CELLS + place) * _DIRECTIONS + direction
    sums = np.bincount(bins.ravel(), np.hypot(down, across).ravel(), _CELLS * _CELLS * _DIRECTIONS)
    return _unit(np.sqrt(sums))


def _colours(crop: npt.NDArray[np.uint8]) -> Floats:
    """(64,) of a crop."""
    level = crop.astype(np.int64) * _LEVELS // 256
    bins = (level[..., 0] * _LEVELS + level[..., 1]) * _LEVELS + level[..., 2]
    return _unit(np.sqrt(np.bincount(bins.ravel(), minlength=_LEVELS**3)))


def _places(crop: npt.NDArray[np.uint8]) -> Floats:
    """(48,) of a crop."""
    step = SIDE_PX // _CELLS
    return _unit(crop.reshape(_CELLS, step, _CELLS, step, 3).mean(axis=(1, 3)).ravel())


def _unit(values: Floats) -> Floats:
    """At length 1; zeros stay."""
    length = float(np.linalg.norm(values))
    return values / length if length else values
