"""Features of tubes: what a frame's boxes and the own motion say of each tube, looking back only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.errors import UsageError
from roadaware.models.event_head import layout as at
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
            size_px: width and height of the picture.
            motion: of the camera since the frame before; None where it is not known.
            focal_px: focal length; of a usual camera where None.

        Returns:
            (n, features) of the tubes, and (columns,) of the own vehicle.
        """
        from roadaware.models.event_head.describe_kernels import advance
        from roadaware.models.event_head.feature_kernels import begin_scene

        if not self._begun:
            begin_scene(self._scene, self._maps, t_s)
            self._begun = True
        moved = motion or Motion(0.0, 0.0, 0.0)
        width, height = size_px
        # Before the call takes the tubes' rows, which new tubes may make more.
        slots = np.array([self._row(number) for number in numbers.tolist()], np.int64)
        told: tuple[Floats, Floats] = advance(
            self._scene,
            self._maps,
            self._tubes,
            slots,
            np.ascontiguousarray(boxes, np.float64),
            self._classes(scores),
            np.array([width, height, focal_px or FOCAL_SHARE * width, width / 2, height / 2]),
            np.array([t_s, motion is not None, moved.yaw_rps, moved.pitch_rps, moved.speed_mps], np.float64),
        )
        return told

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
