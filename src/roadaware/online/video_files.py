"""Video files as a source: every frame that can be decoded, with its number and its time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Pixels
from roadaware.io.decoders import BROKEN, MAX_PIXELS, WATCHED_FILMS, format_decoder_error
from roadaware.io.sources import to_printable
from roadaware.io.video import (
    CUT,
    EmptyMediaError,
    MediaError,
    get_time_base,
    open_container,
    open_video_stream,
    read_frame_times,
)
from roadaware.online.frame_stats import Ending, Outcomes
from roadaware.online.frames import Clock, SourceFrame
from roadaware.online.timeline import Thinning

# Time stamps are rounded, and rates differ a little; by a tenth and more they are others.
_LIE = 0.1


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
            times, count, broken = read_frame_times(file, stream, where)
        if not count:
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
        self._promised = int(self._stream.frames or 0)
        self._ending: Ending | None = None
        self._taken = 0
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
        if len(self._times) < 2:
            return None
        steps = np.diff(self._times.astype(np.float64))
        usual, mean = float(np.median(steps)), float(np.mean(steps))
        if not min(usual, mean) > 0:  # times so large that they do not differ as numbers of the machine
            return None
        # Times in coarse ticks step unevenly, and their mean is right; a gap spoils the mean.
        shows = 1 / ((mean if abs(mean - usual) < _LIE * usual else usual) * self._scale)
        states = float(self._stream.average_rate or 0)
        if states and abs(states - shows) > _LIE * shows:
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

    def _packets(self) -> Iterator[Any]:
        packets = self._file.demux(self._stream)
        while True:
            try:
                packet = next(packets)
            except StopIteration:
                return
            except BROKEN as error:
                self._broken = self._broken or format_decoder_error(error)
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
        if self._promised > self._last + 1 and self._promised > self._taken + missing:
            said = f"{self._where} ends early: {len(self._times):,} frames of {self._promised:,} are there"
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


def rotate_upright(frame: Any) -> Pixels:
    """(H, W, 3) uint8 of a decoded frame, turned as its display wants it.

    Raises:
        MediaError: if it is too large, or in no form that images can be made of.
    """
    if frame.width * frame.height > MAX_PIXELS:
        raise MediaError(f"an image of {frame.width}x{frame.height}; up to {MAX_PIXELS} pixels are read")
    try:
        image: Pixels = frame.to_ndarray(format="rgb24")
        turns = round(getattr(frame, "rotation", 0) / 90) % 4
    except BROKEN as error:
        raise MediaError(f"no image can be made of a frame: {format_decoder_error(error)}") from error
    return np.ascontiguousarray(np.rot90(image, turns)) if turns else image


def _open_stream(path: Path, where: str) -> tuple[Any, Any]:
    """The container and its video stream."""
    file = open_container(path, WATCHED_FILMS)
    try:
        return file, open_video_stream(file, where)
    except BaseException:
        file.close()
        raise
