"""Things and people on the road ahead of a film, as a network of single images sees them, joined over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from roadaware.arrays import Floats32
from roadaware.online.frames import SourceFrame
from roadaware.online.setup import OBSTACLES, WEIGHTS

_BATCH = 5
_GAP_S = 0.65
"""For so long a track may be without a box."""
_NEW, _GOES_ON = 0.3, 0.15
"""Scores from which on a box begins a track, and from which on it continues one."""
_EDGE = 0.98
"""Share of the height of the image below which a thing is cut."""
_COLUMNS = {
    "t_s": pl.Float64,
    "track": pl.Int64,
    "name": pl.String,
    "x1": pl.Float64,
    "y1": pl.Float64,
    "x2": pl.Float64,
    "y2": pl.Float64,
    "score": pl.Float64,
}


class ObstacleFinder:
    """Looks at the images of a film one after the other: `add` each, every 0.2 s or so, then `build_table`.

    A thing is what is no road user and lies or stands on the road; people are those on foot, wherever they are. What is told
    of an image rests on it and on earlier ones alone.

    Args:
        path: weights of an `ObstacleNetwork`; by default those that come along.

    Raises:
        InputError, DamagedError: if they cannot be read.
    """

    def __init__(self, path: Path = WEIGHTS / OBSTACLES) -> None:
        from roadaware.models.obstacles import open_obstacle_network

        self._network = open_obstacle_network(path)
        self._tracks = Tracks()
        self._waiting = list[SourceFrame]()
        self._rows = list[tuple[float, int, str, float, float, float, float, float]]()

    def add(self, frame: SourceFrame) -> None:
        """Look at an image; several at a time, which is faster."""
        if self._waiting and self._waiting[0].picture.shape != frame.picture.shape:
            self._look()
        self._waiting.append(frame)
        if len(self._waiting) == _BATCH:
            self._look()

    def build_table(self) -> pl.DataFrame:
        """`t_s`, `track`, `name` (`thing` or `person`), `x1`, `y1`, `x2`, `y2` in pixels and `score` in [0, 1]."""
        self._look()
        return pl.DataFrame(self._rows, schema=_COLUMNS, orient="row")

    def _look(self) -> None:
        from roadaware.models.obstacles import CLASSES, detect_obstacles

        frames, self._waiting = self._waiting, []
        found = detect_obstacles(self._network, [frame.picture for frame in frames]) if frames else []
        for frame, boxes in zip(frames, found, strict=True):
            # What the lower edge cuts does not show where it stands; markings that leave the image there look like things.
            cut = boxes[:, 3] >= _EDGE * frame.picture.shape[0]
            boxes = boxes[~(cut & (boxes[:, 5] == CLASSES.index("thing")))]
            for track, (x1, y1, x2, y2, score, kind) in self._tracks.add(frame.t_s, boxes):
                self._rows.append((frame.t_s, track, CLASSES[int(kind)], x1, y1, x2, y2, score))


@dataclass
class _Track:
    number: int
    t_s: float
    box: list[float]
    grows: float = field(default=0.0)


class Tracks:
    """Joins boxes of one class over time by where they are and how large; what is fixed to the road grows and sinks.

    Greedily: the surest box takes the track that it fits best, others begin one where they are sure enough.
    """

    def __init__(self) -> None:
        self._open: list[_Track] = []
        self._number = 0

    def add(self, t_s: float, boxes: Floats32) -> list[tuple[int, list[float]]]:
        """The boxes of an image that are of a track, with its number.

        Args:
            t_s: of the image, later than all before.
            boxes: (n, 6) as of `detect_obstacles`.
        """
        self._open = [each for each in self._open if t_s - each.t_s <= _GAP_S + 1e-6]
        found, taken = [], set[int]()
        for box in boxes.tolist():
            if box[4] < _GOES_ON:
                break
            fits = [
                (_misfit(each, box), each)
                for each in self._open
                if each.number not in taken and each.box[5] == box[5]
            ]
            misfit, best = min(fits, key=lambda each: each[0], default=(np.inf, None))
            if best is None or misfit > 1.0:
                if box[4] < _NEW:
                    continue
                best = _Track(self._number, t_s, box)
                self._number += 1
                self._open.append(best)
            best.t_s, best.box = t_s, box
            taken.add(best.number)
            found.append((best.number, box))
        return found


def _misfit(track: _Track, box: list[float]) -> float:
    """0 where a box is the last one of a track, 1 where it is as far off as what is passed at 15 m/s gets within 0.2 s."""
    a, b = track.box, box
    high, size = a[3] - a[1], b[3] - b[1]
    # By the middle of the foot, in sizes: what comes near moves outwards and down by its own growth.
    apart = abs((a[0] + a[2]) - (b[0] + b[2])) / 2, abs(a[3] - b[3])
    scale = max(high, size, 8.0)
    grown = abs(np.log(max(size, 1.0) / max(high, 1.0)))
    return float(max(max(apart) / scale, grown / 0.8))
