"""Ego motion: turn and speed of the camera by sparse flow of static points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Pixels
from roadaware.models.event_head.features import FOCAL_SHARE, Motion
from roadaware.models.event_head.flow_kernels import (
    detect_corners,
    downsample_grey,
    downscale_to_grey,
    track_points,
)

_WIDTH_PX = 400
_CELL_PX = 20
_LEAST_POINTS = 15
_LEAST_SHARE = 0.35
"""Of the points that must agree with the motion; in a video that is cut or covered fewer do."""
_ROUNDS = 10
_CENTRE = 0.06
"""Around the point that the camera drives to, in focal lengths: there nothing moves but by rotation."""
_OUTSIDE = 0.08
"""From the point that is driven to, in focal lengths: nearer to it the flow is too small to tell a depth."""
_DEEP_M = 16.5
"""Median over ten rendered streets of how deep that point lay; from 10 to 22 m."""
_FINEST = 3e-4
_AGREES = 0.004
"""Focal lengths that the flow of a point may differ from the turn; a pixel or two."""
_FASTEST_MPS = 50.0


class EgoMotion:
    """The motion of the camera of one stream, from image to image.

    The flow of points that stand still is that of the turn, and away from the point that is driven to. Across
    that direction it depends on no distance; along it it tells the speed, to the scale of the street. Whoever
    moves is left out where boxes tell of them, and as an outlier elsewhere.

    Args:
        focal_px: focal length; of a usual camera where None.

    Source: Longuet-Higgins and Prazdny, Proc. R. Soc. B 1980 (motion field).
    """

    def __init__(self, focal_px: float | None = None) -> None:
        self.focal_px = focal_px
        self.reset()

    def reset(self) -> None:
        """Forget the stream."""
        self._levels: tuple[Floats32, Floats32, Floats32] | None = None
        self._boxes = np.zeros((0, 4))
        self._t_s = 0.0

    def step(self, image: Pixels, t_s: float, horizon: float = 0.0) -> Motion | None:
        """The motion since the image before; None of the first one, and where too little agrees.

        Args:
            image: (H, W, 3) uint8; all of a stream have the same size.
            t_s: later than that of the image before.
            horizon: how far below the middle it lies, in focal lengths, as `TubeFeatures.horizon` has it.
        """
        factor = max(1, round(image.shape[1] / _WIDTH_PX))
        grey = downscale_to_grey(np.ascontiguousarray(image), factor)
        half = downsample_grey(grey)
        levels, before, past_s = (grey, half, downsample_grey(half)), self._levels, t_s - self._t_s
        self._levels, self._t_s = levels, t_s
        taken, self._boxes = self._boxes / factor, np.zeros((0, 4))
        if before is None or before[0].shape != grey.shape or past_s <= 0:
            return None
        points = detect_corners(before[0], _CELL_PX, taken)
        flow, good = track_points(before[0], levels[0], before[1], levels[1], before[2], levels[2], points)
        focal = (self.focal_px or FOCAL_SHARE * image.shape[1]) / factor
        middle = np.array([grey.shape[1] / 2, grey.shape[0] / 2])
        # A pixel of the small image has its middle at a whole number, that of the large one at a half.
        place = (points[good] + 0.5 - middle) / focal
        return solve_motion(place, flow[good] / focal, horizon, past_s)

    def leave_out(self, boxes: npt.ArrayLike) -> None:
        """Boxes of agents in the newest image (pixels), from where no points are taken for the next one."""
        self._boxes = np.asarray(boxes, np.float64).reshape(-1, 4)


def solve_motion(place: Floats, flow: Floats, horizon: float, past_s: float) -> Motion | None:
    """The motion that most of the points agree with; None where too few do.

    Args:
        place: (n, 2) points in focal lengths from the middle, y downwards.
        flow: (n, 2) how they moved, in focal lengths.
        horizon: y of the point that is driven to.
        past_s: seconds between the images.

    >>> grid = np.stack(np.meshgrid(np.linspace(-.5, .5, 9), np.linspace(-.3, .3, 7)), axis=-1).reshape(-1, 2)
    >>> turned = np.stack([-(1 + grid[:, 0] ** 2), -grid.prod(axis=1)], axis=1) * 0.01
    >>> round(solve_motion(grid, turned, 0.0, 0.1).yaw_rps, 4)
    -0.1
    """
    if len(place) < _LEAST_POINTS:
        return None
    away = np.stack([place[:, 0], place[:, 1] - horizon], axis=1)
    # (3,) turn about the axes to the right, down and forwards, and (n,) which points agree with it
    far = np.hypot(away[:, 0], away[:, 1])
    unit = away / np.maximum(far, 1e-6)[:, None]
    across = np.stack([-unit[:, 1], unit[:, 0]], axis=1)
    central = np.flatnonzero(far < _CENTRE)
    who = np.concatenate([np.arange(len(place)), central])
    direction = np.concatenate([across, unit[central]])
    rows = np.einsum("nd,ndk->nk", direction, _turning(place)[who])
    wanted = (direction * flow[who]).sum(axis=1)
    weight, found, left = np.ones(len(who)), np.zeros(3), np.zeros(len(who))
    for _ in range(_ROUNDS):
        # A small ridge: rolls, which a car hardly makes, are held back the most.
        matrix = rows.T @ (weight[:, None] * rows) + np.diag([1e-8, 1e-8, 1e-6])
        found = np.linalg.solve(matrix, rows.T @ (weight * wanted))
        left = np.abs(rows @ found - wanted)
        # 1.4826 times the median is the standard deviation of normal errors; Tukey's weights end at three.
        spread = max(1.4826 * float(np.median(left)), _FINEST)
        weight = np.maximum(0.0, 1.0 - (left / (3.0 * spread)) ** 2) ** 2
    turn, agreed = found, left[: len(place)] < _AGREES
    if agreed.sum() < max(_LEAST_POINTS, _LEAST_SHARE * len(place)):
        return None
    driven = _solve_speed(place[agreed], flow[agreed], away[agreed], turn)
    speed = float(np.clip(driven / past_s, 0.0, _FASTEST_MPS))
    return Motion(float(-turn[1] / past_s), float(turn[0] / past_s), speed)


def _turning(place: Floats) -> Floats:
    """(n, 2, 3) flow of points by a small turn about the axes to the right, down and forwards."""
    x, y = place[:, 0], place[:, 1]
    return np.stack([np.stack([x * y, -(1 + x**2), y], 1), np.stack([1 + y**2, -x * y, -x], 1)], 1)


def _solve_speed(place: Floats, flow: Floats, away: Floats, turn: Floats) -> float:
    """Metres driven, by how fast the nearer ones of the points part from the point that is driven to.

    A point at depth z is driven apart by its share s / (z - s) of its distance. Without anything of known
    size there is no scale: of the quarter of the points that are nearest, the farthest is taken to be as deep
    as it was in simulated streets.
    """
    moved = flow - _turning(place) @ turn
    outside = np.hypot(away[:, 0], away[:, 1]) > _OUTSIDE
    if outside.sum() < _LEAST_POINTS / 2:
        return 0.0
    away, after = away[outside], away[outside] + moved[outside]
    share = (moved[outside] * away).sum(axis=1) / np.hypot(*away.T) / np.maximum(np.hypot(*after.T), 1e-6)
    return float(_DEEP_M * np.quantile(share, 0.75))
