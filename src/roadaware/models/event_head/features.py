"""Features of tubes from boxes and own motion, from past frames only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints, Pixels
from roadaware.errors import UsageError
from roadaware.models.event_head import layout as at
from roadaware.models.event_head.kernels import advance, reset_scene
from roadaware.models.object_labels import ROAD_AGENTS

FOCAL_SHARE = 0.85
"""Of a camera of which nothing is known: focal length by width, which is a view of 61 degrees."""


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
