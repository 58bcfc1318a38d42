"""Video files as a source: every frame that can be decoded, with its number and its time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.errors import InputError
from roadaware.online.clock import Clock
from roadaware.online.frames import Picture, SourceFrame
from roadaware.online.outcomes import Ending, Outcomes
from roadaware.online.timeline import Thinning
from roadaware.scenes.containers import BROKEN, CUT, CutOffError, EmptyMediaError, MediaError, NoVideoError
from roadaware.scenes.media import MAX_PIXELS
from roadaware.scenes.readers.source import shown, unreadable

# Only what holds its pictures itself: a playlist would name other files, or other machines.
_SAFE = {
    "protocol_whitelist": "file",
    "format_whitelist": "mov,matroska,webm,gif,avi,mpegts,mpeg,ogg,flv,asf",
}
_KINDS = "mp4, mov, mkv, webm, avi, ts, mpg, ogv, flv, wmv and gif are read"
_LIE = 0.1


class VideoFile:
    """The frames of a file, numbered in the order of their times as `scenes.media.VideoReader` numbers them.

    Args:
        path: a regular file.
        clock: says when a frame came.
        fps: take at most so many frames a second, evenly; None for all.

    Raises:
        EmptyMediaError: if it holds no frame.
        CutOffError: if it is so damaged that it cannot be opened.
        MediaError: if it is no video, or its pictures are too large.
        InputError: if it cannot be read.
    """

    live = False

    def __init__(self, path: Path, clock: Clock, fps: float | None = None) -> None:
        self.outcomes = Outcomes()
        self.name, self.path = path.name, str(path)
        self._where, self._clock, self._thinning = shown(str(path)), clock, Thinning(fps)
        self._times, self._broken = _index(path, self._where)
        self._file, self._stream = _opened(path, self._where)
        self._scale = float(self._stream.time_base)
        self.n_frames, self.start_s = len(self._times), float(self._times[0]) * self._scale
        self.fps = self._rate()
        self._promised = int(self._stream.frames or 0)
        self._ending: Ending | None = None
        self._taken = 0
        self._last = -1
        self._frames = self._decoded()

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        """The next frame; None if none is left."""
        for number, picture in self._frames:
            t_s = float(self._times[number] - self._times[0]) * self._scale
            if self._thinning.takes(t_s):
                return SourceFrame(number, t_s, picture(), self._clock.now_s())
            self.outcomes.count("thinned")
        if self._ending is None:
            self._ending = self._ended()
        return None

    @property
    def ending(self) -> Ending | None:
        """Why no more frames come; None while some may."""
        return self._ending

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _rate(self) -> float | None:
        """Frames per second as their times show; tells where the file states another."""
        if len(self._times) < 2:
            return None
        steps = np.diff(self._times)
        usual, mean = float(np.median(steps)), float(np.mean(steps))
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
        """Number of each decoded frame, and what makes its picture."""
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
                self._broken = self._broken or str(error)
                return
            yield packet

    def _number(self, frame: Any) -> int | None:
        """The number of a frame; None where it is to be left out."""
        if frame.pts is None:
            self.outcomes.count("untimed")
            return self._last + 1 if self._last + 1 < len(self._times) else None
        number = int(np.searchsorted(self._times, frame.pts))
        if number == len(self._times) or self._times[number] != frame.pts:
            return None  # no packet has this time: made up by the decoder
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
            said = f"{self._where} is broken after frame {self._last}: {shown(self._broken)}"
            return Ending("broken", said)
        if self._promised > self._last + 1 and self._promised > self._taken + missing:
            said = f"{self._where} ends early: {len(self._times):,} frames of {self._promised:,} are there"
            return Ending("short", said)
        if missing and self._last < len(self._times) - 1:
            said = f"{self._where} ends early: after frame {self._last} of {len(self._times):,} none is whole"
            return Ending("short", said)
        return Ending("end")


class _Picture:
    """Makes the picture of a decoded frame when it is wanted."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __call__(self) -> Picture:
        return upright(self._frame)


def upright(frame: Any) -> Picture:
    """(H, W, 3) uint8 of a decoded frame, turned as its display wants it.

    Raises:
        MediaError: if it is too large.
    """
    if frame.width * frame.height > MAX_PIXELS:
        raise MediaError(f"a picture of {frame.width}x{frame.height}; up to {MAX_PIXELS} pixels are read")
    picture: Picture = frame.to_ndarray(format="rgb24")
    turns = round(getattr(frame, "rotation", 0) / 90) % 4
    return np.ascontiguousarray(np.rot90(picture, turns)) if turns else picture


def _opened(path: Path, where: str) -> tuple[Any, Any]:
    """The container and its video stream."""
    import av

    try:
        if not path.is_file():
            path.stat()
            raise InputError("expected a file, found a pipe or device", where=where)
        if not path.stat().st_size:
            raise EmptyMediaError("the file is empty", where=where, hint=CUT)
    except (OSError, ValueError) as error:
        raise unreadable(error, where) from error
    try:
        file = av.open(f"file:{path}", options=_SAFE, metadata_errors="replace")
    except BROKEN as error:
        said = f"not a video that can be opened ({shown(str(error))}); {_KINDS}"
        raise CutOffError(said, where=where, hint=CUT) from error
    with suppress(IndexError):
        stream = file.streams.video[0]
        stream.thread_type = "NONE"
        if 0 < int(stream.width or 0) * int(stream.height or 0) <= MAX_PIXELS:
            return file, stream
        size = f"{stream.width}x{stream.height}"
        file.close()
        raise MediaError(f"pictures of {size}; up to {MAX_PIXELS} pixels are read", where=where)
    file.close()
    raise NoVideoError("expected a video stream, found none", where=where)


def _index(path: Path, where: str) -> tuple[npt.NDArray[np.int64], str]:
    """Times of all frames, from the packets alone, and what broke the file before its end, if anything."""
    file, stream = _opened(path, where)
    times: list[int] = []
    broken = ""
    with file:
        try:
            # `extend` keeps what it was given until the file breaks.
            times.extend(
                packet.pts
                for packet in file.demux(stream)
                if packet.size and packet.pts is not None and not packet.is_discard
            )
        except BROKEN as error:
            broken = str(error)
    if not times:
        hint = CUT if broken else None
        raise EmptyMediaError("the video stream has no frame", where=where, hint=hint)
    return np.unique(np.array(times, dtype=np.int64)), broken
