"""Coreset: a few points that cover many, and the distance of others to them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.errors import InputError

_BLOCK = 1 << 24
"""Distances that are held at once."""


def select_k_centers(points: npt.ArrayLike, size: int, *, seed: int = 0) -> Ints:
    """(min(size, n),) places of points so chosen that no other is far from all of them, in order of choice.

    The first is drawn, each next one is the farthest from those before, the first of equal ones. The farthest
    point is then at most twice as far away as with the best choice of as many. Points that equal a chosen
    one are not chosen.

    Args:
        points: (n, d) finite.
        size: how many, at least 1.
        seed: of the first.

    Raises:
        InputError: if there is no point, or a number is not finite.

    Source: Gonzalez, Theoretical Computer Science 1985; Roth et al., CVPR 2022 (PatchCore), section 3.2.
    """
    held = check_point_array(points)
    if size < 1:
        raise InputError(f"at least 1 point is chosen, not {size}")
    chosen = [int(np.random.default_rng(seed).integers(len(held)))]
    squares = np.einsum("nd,nd->n", held, held)
    left = _from_one(held, squares, chosen[0])
    while len(chosen) < min(size, len(held)):
        farthest = int(left.argmax())
        if left[farthest] <= 0:
            break
        chosen.append(farthest)
        np.minimum(left, _from_one(held, squares, farthest), out=left)
    return np.array(chosen, dtype=np.int64)


def compute_nearest_distances(points: npt.ArrayLike, others: npt.ArrayLike, *, neighbours: int = 1) -> Floats:
    """(n,) mean distance of each point to its nearest others.

    Args:
        points: (n, d) finite.
        others: (m, d) finite, m at least 1.
        neighbours: how many of the others; all where there are fewer.

    Raises:
        InputError: if there are no others, the lengths differ, or a number is not finite.
    """
    there = check_point_array(others)
    here = np.asarray(points, dtype=np.float32)
    if here.ndim != 2 or here.shape[1] != there.shape[1]:
        raise InputError(f"points are (n, {there.shape[1]}) like the others, not {here.shape}")
    if not np.isfinite(here).all():
        raise InputError("a point is not finite")
    k = max(1, min(neighbours, len(there)))
    squares = np.einsum("md,md->m", there, there)
    found = np.zeros(len(here))
    rows = max(1, _BLOCK // len(there))
    for start in range(0, len(here), rows):
        part = here[start : start + rows]
        far = np.einsum("nd,nd->n", part, part)[:, None] + squares - 2 * part @ there.T
        # |a|^2 + |b|^2 - 2 ab may fall below 0 by rounding, and its root would be NaN.
        near = np.partition(np.maximum(far, 0), k - 1, axis=1)[:, :k]
        found[start : start + rows] = np.sqrt(near.astype(np.float64)).mean(axis=1)
    return found


def check_point_array(points: npt.ArrayLike) -> Floats32:
    """(n, d) points in single precision.

    Args:
        points: (n, d).

    Raises:
        InputError: if there is none, or a number is not finite.
    """
    held = np.asarray(points, dtype=np.float32)
    if held.ndim != 2 or not held.size:
        raise InputError(f"points are (n, d) with n and d above 0, not {held.shape}")
    wrong = int((~np.isfinite(held)).any(axis=1).sum())
    if wrong:
        raise InputError(f"{wrong} of {len(held)} points are not finite")
    return held


def _from_one(points: Floats32, squares: Floats32, place: int) -> Floats32:
    """(n,) squared distances to one of the points; exactly 0 to itself and its equals."""
    far: Floats32 = np.maximum(squares + squares[place] - 2 * (points @ points[place]), 0)
    # Rounding leaves a little between equal points, which would then be chosen as if they differed.
    # 1e-6 is about eight units in the last place of single precision.
    far[far <= 1e-6 * (squares + squares[place])] = 0
    return far
