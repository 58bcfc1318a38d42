"""Things and people on the road ahead of a film, as a network of single images sees them, joined over time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from roadaware.arrays import Floats32, Pixels
from roadaware.online.frames import SystemClock
from roadaware.online.setup import OBSTACLES, WEIGHTS
from roadaware.online.video_files import VideoFile

_APART_S = 0.2
"""Between images that are looked at."""
_BATCH = 10
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


def find_obstacles(film: Path) -> pl.DataFrame:
    """`t_s`, `track`, `name` (`thing` or `person`), `x1`, `y1`, `x2`, `y2` in pixels and `score` in [0, 1], every 0.2 s.

    A thing is what is no road user and lies or stands on the road; people are those on foot, wherever they are. A row rests
    on its image and earlier ones alone. A damaged film is told of up to there.

    Args:
        film: a video that a camera fixed to a vehicle took. Times are seconds after its first frame.

    Raises:
        InputError: if it cannot be opened.
    """
    from roadaware.models.obstacles import CLASSES, detect_obstacles, open_obstacle_network

    network = open_obstacle_network(WEIGHTS / OBSTACLES)
    tracks, rows = Tracks(), list[tuple[float, int, str, float, float, float, float, float]]()
    for times, pictures in _batches(film):
        edge = _EDGE * pictures[0].shape[0]
        for t_s, boxes in zip(times, detect_obstacles(network, pictures), strict=True):
            # What the lower edge cuts does not show where it stands; markings that leave the image there look like things.
            boxes = boxes[(boxes[:, 5] != CLASSES.index("thing")) | (boxes[:, 3] < edge)]
            for track, (x1, y1, x2, y2, score, kind) in tracks.add(t_s, boxes):
                rows.append((t_s, track, CLASSES[int(kind)], x1, y1, x2, y2, score))
    return pl.DataFrame(rows, schema=_COLUMNS, orient="row")


def _batches(film: Path) -> Iterator[tuple[list[float], list[Pixels]]]:
    """Times and images of one size, some at a time."""
    times, pictures = list[float](), list[Pixels]()
    with contextlib.closing(VideoFile(film, SystemClock(), fps=1 / _APART_S)) as video:
        while (frame := video.next(0.0, 0.0)) is not None:
            if pictures and (len(pictures) == _BATCH or pictures[0].shape != frame.picture.shape):
                yield times, pictures
                times, pictures = [], []
            times.append(frame.t_s)
            pictures.append(frame.picture)
    if pictures:
        yield times, pictures


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
