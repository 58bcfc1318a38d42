"""Clocks, detectors and sources that do as they are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from roadaware.io.video import VideoWriter
from roadaware.models.detector import FrameDetections
from roadaware.online.camera_motion import CameraMotion
from roadaware.online.cameras import Shot
from roadaware.online.config import WatchConfig
from roadaware.online.events import Event
from roadaware.online.frames import Ending, Outcomes, Source, SourceFrame
from roadaware.online.run_folder import RunFolder, prepare
from roadaware.online.watch import Progress, watch
from roadaware.online.watcher import Last, Seen

KINDS = {"agent": ("Ped", "Car"), "action": ("Stop", "Mov", "Turn")}
AV = ("AV-Stop", "AV-Mov")


class FakeClock:
    """Time goes on only where somebody sleeps or `now` is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def now_s(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds


class Scripted:
    """A detector that answers what a function says of each image, after a delay in images and in time."""

    def __init__(
        self,
        answer: Callable[[int], FrameDetections],
        *,
        clock: FakeClock | None = None,
        takes_s: float = 0.0,
        delay: int = 0,
    ) -> None:
        self.kinds, self.av_labels, self.delay = KINDS, AV, delay
        self._answer, self._clock, self._takes_s = answer, clock, takes_s
        self.pictures: list[npt.NDArray[np.uint8]] = []
        self._told = 0

    def reset(self) -> None:
        self.pictures, self._told = [], 0

    def step(self, picture: npt.NDArray[np.uint8]) -> list[FrameDetections]:
        self.pictures.append(picture)
        if self._clock is not None:
            self._clock.now += self._takes_s
        return self._answers(len(self.pictures) - self.delay)

    def finish(self) -> list[FrameDetections]:
        return self._answers(len(self.pictures))

    def _answers(self, end: int) -> list[FrameDetections]:
        first, self._told = self._told, max(self._told, end)
        return [self._answer(frame) for frame in range(first, self._told)]


def answer(
    frame: int,
    boxes: Sequence[Sequence[float]],
    scores: Sequence[Sequence[float]],
    av: Sequence[float] = (0, 0),
) -> FrameDetections:
    """Detections with an agentness of 0.9."""
    return FrameDetections(
        frame,
        np.array(boxes, np.float32).reshape(-1, 4),
        np.full(len(boxes), 0.9, np.float32),
        np.array(scores, np.float32).reshape(-1, 5),
        np.array(av, np.float32),
    )


def one_car(frame: int) -> FrameDetections:
    """A car that drives to the right."""
    return answer(frame, [[4 * frame, 10, 40 + 4 * frame, 30]], [[0.1, 0.8, 0.0, 0.6, 0.0]], [0.1, 0.9])


def crowd(seed: int) -> Callable[[int], FrameDetections]:
    """Many that come, go, cross and are overlooked now and then."""

    def found(frame: int) -> FrameDetections:
        boxes, scores = [], []
        for who in range(12):
            draw = np.random.default_rng([seed, who])
            begin, lives = draw.integers(0, 60), draw.integers(2, 50)
            at, by, odds = draw.uniform(0, 200, 2), draw.uniform(-3, 3, 2), draw.uniform(0.1, 1, 5)
            now = np.random.default_rng([seed, who, frame])
            if begin <= frame < begin + lives and now.random() < 0.8:
                corner = at + by * (frame - begin) + now.normal(0, 1, 2)
                boxes.append([*corner, *(corner + 40)])
                scores.append(np.clip(odds + now.normal(0, 0.1, 5), 0, 1))
        rows = np.random.default_rng([seed, 99, frame])
        held = answer(frame, boxes, scores, rows.random(2))
        agentness = np.sort(rows.uniform(0.03, 1, len(boxes)).astype(np.float32))[::-1]
        return FrameDetections(frame, held.boxes, np.ascontiguousarray(agentness), held.scores, held.av)

    return found


class Listed:
    """A source of frames with these numbers; not live."""

    live, path, start_s = False, None, 0.0

    def __init__(self, numbers: Sequence[int], clock: FakeClock, *, fps: float = 12.0) -> None:
        self.name, self.fps, self.n_frames, self.outcomes = "listed", fps, None, Outcomes()
        self._numbers, self._clock, self._at = numbers, clock, 0

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        if self._at == len(self._numbers):
            return None
        number, self._at = self._numbers[self._at], self._at + 1
        return SourceFrame(number, number / self.fps, picture(number), self._clock.now_s())

    @property
    def ending(self) -> Ending | None:
        return Ending("end") if self._at == len(self._numbers) else None

    def close(self) -> None:
        pass


class Kept:
    """An output that keeps everything."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.events: list[Event] = []
        self.last: Last | None = None

    def add(self, seen: Seen) -> None:
        self.seen.append(seen)
        self.events += seen.events

    def add_events(self, events: Sequence[Event]) -> None:
        self.events += events

    def end(self, last: Last) -> None:
        self.last = last
        self.events += last.events


class Connection:
    """A camera's stream: gives shots; an error or a function among them is raised or called."""

    endless, fps = True, 10.0

    def __init__(self, script: Sequence[object]) -> None:
        self._script, self.closed = script, False

    def __iter__(self) -> Iterator[Shot]:
        for item in self._script:
            if isinstance(item, Exception):
                raise item
            if isinstance(item, Shot):
                yield item
            elif callable(item):
                item()

    def close(self) -> None:
        self.closed = True


def picture(number: int, width: int = 64, height: int = 48) -> npt.NDArray[np.uint8]:
    """An image of its own for each number: a bright block that moves."""
    made = np.full((height, width, 3), 40, np.uint8)
    made[8:24, (3 * number) % (width - 16) : (3 * number) % (width - 16) + 16] = 220
    return made


def write_film(path: Path, frames: int = 24, fps: float = 12.0, sound_rate: int | None = None) -> Path:
    """A video, with a tone if asked for."""
    with VideoWriter(path, 64, 48, fps, sound_rate=sound_rate) as film:
        for number in range(frames):
            film.write(picture(number))
            if sound_rate:
                n = round((number + 1) / fps * sound_rate) - round(number / fps * sound_rate)
                at = (round(number / fps * sound_rate) + np.arange(n)) / sound_rate
                tone = 0.4 * np.sin(2 * np.pi * (300 + 200 * at) * at)
                film.write_sound(np.stack([tone, tone], axis=1).astype(np.float32))
    return path


def kept_run(
    folder: Path, source: Source, detector: Scripted, clock: FakeClock, config: WatchConfig | None = None
) -> tuple[RunFolder, Progress]:
    """A watch into a new folder, with the images themselves as its video."""
    config = config or WatchConfig()
    prepare(folder)
    kept = RunFolder(folder, source, detector, config, clock, draw=lambda seen: seen.frame.picture)
    return kept, watch(source, detector, config, kept, clock=clock)


class StillCamera:
    """Says that the camera never moved."""

    def step(self, picture: npt.NDArray[np.uint8], boxes: npt.NDArray[np.float64]) -> CameraMotion:
        return CameraMotion()
