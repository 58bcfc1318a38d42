"""Video files as a source, and numbers and times for the frames of files and of live sources."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Pixels
from roadaware.io.decoders import BROKEN, WATCHED_FILMS, format_decoder_error
from roadaware.io.sources import to_printable
from roadaware.io.video import (
    CUT,
    LIE,
    EmptyMediaError,
    MediaError,
    count_promised_frames,
    get_time_base,
    iterate_packets,
    measure_rate,
    open_container,
    open_video_stream,
    read_frame_times,
    rotate_upright,
)
from roadaware.online.frames import Clock, Ending, Outcomes, SourceFrame

# Odd: the median is then one of the steps.
_SPAN = 31
_ENOUGH = 5
# Frames that overtake each other are taken to do so within a second; more is another clock.
_BACK_S = 1.0
_JUMP_S = 10.0
_USUAL_S = 1 / 25
# Steps of next to nothing would make every later step a loss of a thousand frames.
_LEAST_S = 1e-3


class Timeline:
    """Places frames one after the other; gaps become missing numbers.

    The rate is the median of the last steps, so that neither jitter nor a camera that states a wrong rate or
    changes it in the dark lets frames seem lost for long.

    Args:
        outcomes: counts what happened.
    """

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self._steps: deque[float] = deque(maxlen=_SPAN)
        self._number, self._t_s = -1, 0.0
        self._stated_s: float | None = None
        self._arrived_s = 0.0

    @property
    def period_s(self) -> float | None:
        """Seconds between frames; None until a few were seen."""
        return max(statistics.median(self._steps), _LEAST_S) if len(self._steps) >= _ENOUGH else None

    def broke(self) -> None:
        """Note a lost connection: time stamps of the next one are not comparable with those before."""
        self._stated_s = None

    def place(self, stated_s: float | None, arrived_s: float) -> tuple[int, float] | None:
        """Number and time of the next frame; None where it is to be left out.

        Args:
            stated_s: when it is shown, as the source says.
            arrived_s: when it came.
        """
        waited_s = arrived_s - self._arrived_s
        if stated_s is not None and not math.isfinite(stated_s):
            stated_s = None
        if stated_s is None:
            self._outcomes.count("untimed")
        if self._number < 0:
            return self._placed(0, 0.0, stated_s, arrived_s)
        if stated_s is None or self._stated_s is None:
            return self._later(max(waited_s, 1e-3), stated_s, arrived_s)
        step_s = stated_s - self._stated_s
        if step_s <= 0 and waited_s > _BACK_S:
            # No frame is late for so long: the clock stands still, or runs backwards.
            said = "the clock of the source does not go on; times go on as frames came"
            self._outcomes.tell("clock", 1, said)
            return self._later(waited_s, stated_s, arrived_s)
        if step_s == 0:
            self._outcomes.count("duplicate")
            return None
        if -_BACK_S < step_s < 0:
            self._outcomes.count("late")
            return None
        if step_s < 0 or abs(step_s - waited_s) > _JUMP_S:
            said = f"the clock of the source jumped by {step_s - waited_s:+.1f} s; times go on as frames came"
            self._outcomes.tell("clock", 1, said)
            return self._later(max(waited_s, self.period_s or _USUAL_S), stated_s, arrived_s)
        self._steps.append(step_s)
        return self._later(step_s, stated_s, arrived_s)

    def _later(self, step_s: float, stated_s: float | None, arrived_s: float) -> tuple[int, float]:
        missed = max(0, round(step_s / self.period_s) - 1) if self.period_s else 0
        if missed:
            what = "a frame" if missed == 1 else f"{missed:,} frames"
            self._outcomes.tell("lost", missed, f"{what} did not arrive")
        return self._placed(self._number + 1 + missed, self._t_s + step_s, stated_s, arrived_s)

    def _placed(self, number: int, t_s: float, stated_s: float | None, arrived_s: float) -> tuple[int, float]:
        self._number, self._t_s, self._stated_s, self._arrived_s = number, t_s, stated_s, arrived_s
        return number, t_s


# Of the step between frames: so much earlier than it is due a frame is taken.
_EARLY = 0.25


class Thinning:
    """Selects frames evenly in time, at most so many a second.

    Args:
        fps: at most so many; None for all.

    >>> thinning = Thinning(10.0)
    >>> [n for n in range(12) if thinning.takes(n / 30)]
    [0, 3, 6, 9]
    >>> [n for n in (30, 31, 32, 33, 36) if thinning.takes(n / 30)]
    [30, 33, 36]
    """

    def __init__(self, fps: float | None) -> None:
        self._period_s = 1 / fps if fps else 0.0
        self._due_s, self._last_s = 0.0, 0.0

    def takes(self, t_s: float) -> bool:
        """Whether a frame is taken; to be called frame after frame."""
        if not self._period_s:
            return True
        # Times of files are rounded, to milliseconds in many, and those of cameras jitter.
        early_s = 1e-6 + _EARLY * (t_s - self._last_s)
        self._last_s = t_s
        if t_s < self._due_s - early_s:
            return False
        # What a gap has cost is not made up for by a burst.
        late = t_s > self._due_s + self._period_s
        self._due_s = (t_s if late else self._due_s) + self._period_s
        return True


class VideoFile:
    """The frames of a file, numbered in the order of their times as `io.video.VideoReader` numbers them.

    Args:
        path: a regular file.
        clock: says when a frame came.
        fps: take at most so many frames a second, evenly; None for all.
        recorded_fps: frames a second at which it was recorded, where it plays at another rate: times are
            stretched so that they are those of the recording.

    Raises:
        EmptyMediaError: if it holds no frame.
        CutOffError: if it is so damaged that it cannot be opened.
        CodecError: if its codec is not known.
        MediaError: if it is no video, or its images are too large.
        InputError: if it cannot be read.
    """

    live = False

    def __init__(
        self, path: Path, clock: Clock, fps: float | None = None, recorded_fps: float | None = None
    ) -> None:
        self.outcomes = Outcomes()
        self.name, self.path = path.name, str(path)
        self._where, self._clock, self._thinning = to_printable(str(path)), clock, Thinning(fps)
        # Times of all frames, from the packets alone, and what broke the file before its end, if
        # anything
        where = self._where
        file, stream = _open_stream(path, where)
        with file:
            times, self._stored, broken = read_frame_times(file, stream, where)
            self._promised = count_promised_frames(file, stream, times)
        if not self._stored:
            hint = CUT if broken else None
            raise EmptyMediaError("the video stream has no frame", where=where, hint=hint)
        self._times, self._broken = times, broken
        self._file, self._stream = _open_stream(path, self._where)
        self._scale = get_time_base(self._stream, self._where)
        self.n_frames, self.start_s = len(self._times), float(self._times[0]) * self._scale
        self.fps = self._rate()
        if recorded_fps is not None and self.fps is not None:
            self._scale *= self.fps / recorded_fps
            self.fps = recorded_fps
        self._ending: Ending | None = None
        self._taken, self._grown = 0, False
        self._last = -1
        self._frames = self._decoded()

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        """The next frame; None if none is left."""
        for number, image in self._frames:
            t_s = float(self._times[number] - self._times[0]) * self._scale
            if not self._thinning.takes(t_s):
                self.outcomes.count("thinned")
                continue
            try:
                return SourceFrame(number, t_s, image(), self._clock.now_s())
            except MediaError:
                self._taken -= 1  # `_ended` tells how many are missing
        if self._ending is None:
            self._ending = self._ended()
        return None

    @property
    def ending(self) -> Ending | None:
        """Why the source ended; None while it is open."""
        return self._ending

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _rate(self) -> float | None:
        """Frames per second as their times show; warns where the file states another."""
        shows = measure_rate(self._times, self._scale)
        states = float(self._stream.average_rate or 0)
        if states and shows is not None and abs(states - shows) > LIE * shows:
            said = (
                f"the file states {states:.4g} frames per second, its times show {shows:.4g}; times are used"
            )
            self.outcomes.tell("rate", 1, said)
        return shows

    def _decoded(self) -> Iterator[tuple[int, Any]]:
        """Number of each decoded frame, and what makes its image."""
        doubtful = False
        for frame in self._raw():
            if frame is None:
                doubtful = True
                continue
            doubtful = (doubtful and not frame.key_frame) or frame.is_corrupt
            number = self._number(frame)
            if number is None:
                continue
            if doubtful:
                self.outcomes.count("doubtful")
            self._last, self._taken = number, self._taken + 1
            yield number, _Picture(frame)

    def _raw(self) -> Iterator[Any]:
        """Frames as they are decoded; None in the place of what cannot be."""
        packets = self._packets()
        for packet in packets:
            try:
                yield from packet.decode()
            except BROKEN:
                if packet.size:
                    yield None
        # Where the file broke, the decoder still holds frames; else it was emptied by an empty packet.
        with suppress(*BROKEN):
            yield from self._stream.codec_context.decode(None)

    def _packets(self) -> Iterator[Any]:
        packets = iterate_packets(self._file, self._stream)
        while True:
            try:
                packet = next(packets)
            except StopIteration:
                return
            except BROKEN as error:
                self._broken = self._broken or format_decoder_error(error)
                return
            if packet.size and (packet.pts or 0) > self._times[-1] and not packet.is_discard:
                self._grown = True
                return
            yield packet

    def _number(self, frame: Any) -> int | None:
        """The number of a frame; None where it is to be left out."""
        if frame.pts is None:
            self.outcomes.count("untimed")
            return self._last + 1 if self._last + 1 < len(self._times) else None
        number = int(np.searchsorted(self._times, frame.pts))
        if number == len(self._times) or self._times[number] != frame.pts:
            return None  # no packet has this time: invented by the decoder
        if number <= self._last:
            self.outcomes.count("duplicate" if number == self._last else "late")
            return None
        return number

    def _ended(self) -> Ending:
        missing = len(self._times) - self._taken
        if not self._taken:
            return Ending("empty", f"{self._where}: none of {len(self._times):,} frames could be decoded")
        if missing:
            said = f"{missing:,} of {len(self._times):,} frames could not be decoded"
            self.outcomes.tell("undecodable", missing, said)
        if self._broken:
            said = f"{self._where} is broken after frame {self._last}: {to_printable(self._broken)}"
            return Ending("broken", said)
        if self._grown:
            said = f"{self._where} has grown since it was opened: watch it again once it is whole"
            return Ending("short", said)
        if self._promised > self._stored:
            said = f"{self._where} ends early: {self._stored:,} frames of {self._promised:,} are there"
            return Ending("short", said)
        if missing and self._last < len(self._times) - 1:
            said = f"{self._where} ends early: after frame {self._last} of {len(self._times):,} none is whole"
            return Ending("short", said)
        return Ending("end")


class _Picture:
    """Makes the image of a decoded frame when it is wanted."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __call__(self) -> Pixels:
        return rotate_upright(self._frame)


def _open_stream(path: Path, where: str) -> tuple[Any, Any]:
    """The container and its video stream."""
    file = open_container(path, WATCHED_FILMS)
    try:
        return file, open_video_stream(file, where)
    except BaseException:
        file.close()
        raise
