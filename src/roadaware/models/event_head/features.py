"""Features of tubes from boxes and own motion, from past frames only; own motion by sparse flow of static points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints, Pixels
from roadaware.errors import UsageError
from roadaware.models.event_head import head as at
from roadaware.models.event_head.kernels import (
    advance,
    detect_corners,
    downsample_grey,
    downscale_to_grey,
    reset_scene,
    track_points,
)
from roadaware.models.object_labels import ROAD_AGENTS

FOCAL_SHARE = 0.85
"""Of a camera of which nothing is known: focal length by width, which is a view of 61 degrees."""
CAMERA_M = 1.4
"""Height above the road of such a camera, where own speed and triage assume one."""


@dataclass(frozen=True)
class Motion:
    """How the camera moved since the frame before.

    Args:
        yaw_rps: turn to the left, radians a second.
        pitch_rps: turn upwards, radians a second.
        speed_mps: speed forwards.
    """

    yaw_rps: float
    pitch_rps: float
    speed_mps: float


class TubeFeatures:
    """The memories of one stream; a frame costs the same however long tubes and stream have lasted.

    Args:
        agents: labels of the class scores that `step` is given; those unknown to ROAD are passed over.

    Raises:
        UsageError: if ROAD knows none of the agents.
    """

    def __init__(self, agents: Sequence[str]) -> None:
        known = [name for name in agents if name in ROAD_AGENTS]
        if not known:
            raise UsageError(
                f"events are of agents ({', '.join(ROAD_AGENTS)}); this detector knows "
                f"{', '.join(list(agents)[:6]) or 'none'}"
            )
        self._from = np.array([list(agents).index(name) for name in known], np.int64)
        self._into = np.array([ROAD_AGENTS.index(name) for name in known], np.int64)
        self._scene, self._maps = np.zeros(at.SCENE_WIDTH), np.zeros((at.N_MAPS, at.BINS))
        self.reset()

    def reset(self) -> None:
        """Forget the stream."""
        # Rows for a usual frame; they double as needed.
        self._tubes = np.zeros((16, at.TUBE_WIDTH))
        self._rows: dict[int, int] = {}
        self._free = list(range(16))[::-1]
        self._begun = False

    @property
    def n_tubes(self) -> int:
        """Tubes that are remembered."""
        return len(self._rows)

    @property
    def horizon(self) -> tuple[float, float]:
        """How far below the middle the horizon lies, in focal lengths, and the camera's height in metres."""
        return float(self._scene[at.HORIZON]), float(self._scene[at.HEIGHT])

    def step(
        self,
        t_s: float,
        numbers: Ints,
        boxes: Floats,
        scores: Floats32,
        size_px: tuple[int, int],
        motion: Motion | None = None,
        focal_px: float | None = None,
    ) -> tuple[Floats, Floats]:
        """The features of a frame.

        Args:
            t_s: its time, later than that of the frame before.
            numbers: (n,) of the tubes, each once.
            boxes: (n, 4) x1, y1, x2, y2 in pixels.
            scores: (n, agents) of the labels.
            size_px: width and height of the image.
            motion: of the camera since the frame before; None where it is not known.
            focal_px: focal length; of a usual camera where None.

        Returns:
            (n, features) of the tubes, and (columns,) of the own vehicle.
        """
        if not self._begun:
            reset_scene(self._scene, self._maps, t_s)
            self._begun = True
        moved = motion or Motion(0.0, 0.0, 0.0)
        width, height = size_px
        # Before the call takes the tubes' rows, which new tubes may make more.
        slots = np.array([self._row(number) for number in numbers.tolist()], np.int64)
        state: tuple[Floats, Floats] = advance(
            self._scene,
            self._maps,
            self._tubes,
            slots,
            np.ascontiguousarray(boxes, np.float64),
            self._classes(scores),
            np.array([width, height, focal_px or FOCAL_SHARE * width, width / 2, height / 2]),
            np.array([t_s, motion is not None, moved.yaw_rps, moved.pitch_rps, moved.speed_mps], np.float64),
        )
        return state

    def end(self, numbers: Iterable[int]) -> None:
        """Forget tubes that are over."""
        for number in numbers:
            row = self._rows.pop(number, None)
            if row is not None:
                self._free.append(row)

    def _classes(self, scores: Floats32) -> Floats:
        """(n, 10) probabilities of ROAD's agents: the scores by their sum."""
        found = np.zeros((len(scores), len(ROAD_AGENTS)))
        found[:, self._into] = scores[:, self._from]
        found /= np.maximum(found.sum(axis=1, keepdims=True), 1e-6)
        return found

    def _row(self, number: int) -> int:
        row = self._rows.get(number)
        if row is None:
            if not self._free:
                room = len(self._tubes)
                self._tubes = np.concatenate([self._tubes, np.zeros_like(self._tubes)])
                self._free = list(range(room, 2 * room))[::-1]
            row = self._rows[number] = self._free.pop()
            self._tubes[row, at.COUNT] = 0.0
        return row


# Colour of a traffic light in its box: how much of what glows there is red, amber or green.

LIGHTS = ("Red", "Amber", "Green", "Black")
_LEAST_PX = 6
_GLOWS = 110.0
"""Grey levels that the brightest channel of a lamp reaches at least."""
_SATURATED = 0.35
_HUES_DEG = ((0.0, 24.0), (40.0, 20.0), (150.0, 55.0))
"""Middle and width of red, amber and green; lamps of signals are bluish green, at 130 to 190 degrees."""


def compute_light_colours(image: Pixels, boxes: npt.ArrayLike) -> Floats32:
    """(n, 4) shares of red, amber, green, and of nothing that glows; all 0 where a box is too small.

    Args:
        image: (H, W, 3) uint8, red first.
        boxes: (n, 4) x1, y1, x2, y2 in pixels.
    """
    sides = np.asarray(boxes, np.float64).reshape(-1, 4)
    found = np.zeros((len(sides), len(LIGHTS)), np.float32)
    height, width = image.shape[:2]
    for row, (x1, y1, x2, y2) in zip(found, sides, strict=True):
        left, right = max(int(x1), 0), min(int(np.ceil(x2)), width)
        top, bottom = max(int(y1), 0), min(int(np.ceil(y2)), height)
        if bottom - top >= _LEAST_PX and right - left >= 2:
            row[:] = _shares(image[top:bottom, left:right])
    return found


def _shares(crop: Pixels) -> Floats32:
    """(4,) of one crop, of whose width only the middle counts: sky stands beside the lamps."""
    wide = crop.shape[1]
    crop = crop[:, wide // 6 : wide - wide // 6] if wide > 5 else crop
    colours = crop.reshape(-1, 3).astype(np.float32)
    most, least = colours.max(axis=1), colours.min(axis=1)
    spread = most - least
    glows = (most >= _GLOWS) & (spread >= _SATURATED * most)
    if not glows.any():
        return np.array([0, 0, 0, 1], np.float32)
    red, green, blue = colours[glows].T
    top, range_ = most[glows], np.maximum(spread[glows], 1e-3)
    hue = np.where(
        top == red,
        ((green - blue) / range_) % 6,
        np.where(top == green, (blue - red) / range_ + 2, (red - green) / range_ + 4),
    )
    degrees, weight = 60.0 * hue, (range_ / 255.0) ** 2
    sums = []
    for middle, reach in _HUES_DEG:
        apart = np.abs((degrees - middle + 180.0) % 360.0 - 180.0)
        sums.append(float((weight * np.clip(1.5 - apart / reach, 0, 1)).sum()))
    total = sum(sums)
    dark = 0.02 * len(colours) ** 0.5
    return np.array([*sums, dark], np.float32) / np.float32(total + dark)


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
