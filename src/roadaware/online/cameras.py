"""Cameras and streams as a source: read in a thread of their own, connected anew when they go away."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from roadaware.errors import InputError
from roadaware.online.clock import Clock
from roadaware.online.frames import Picture, SourceFrame
from roadaware.online.outcomes import Ending, Outcomes
from roadaware.online.timeline import Thinning, Timeline
from roadaware.online.video_files import upright
from roadaware.online.waiting import Waiting
from roadaware.scenes.containers import BROKEN
from roadaware.scenes.readers.source import shown

SCHEMES = ("rtsp", "rtsps", "http", "https", "rtmp", "udp", "tcp", "srt")
_NETWORK = "rtsp,rtsps,rtp,srtp,rtmp,http,https,httpproxy,udp,tcp,tls,srt,crypto"
_FORMATS = {"linux": "v4l2", "darwin": "avfoundation", "win32": "dshow"}


class Shot(NamedTuple):
    """A frame as a connection gives it: the time it states, its picture (None where it cannot be
    decoded), and whether its data was damaged.
    """

    stated_s: float | None
    picture: Picture | None
    doubtful: bool = False


class Stream(Protocol):
    """One connection: frames until it breaks or ends; `endless` says that an end is a break too."""

    fps: float | None
    endless: bool

    def __iter__(self) -> Iterator[Shot]:
        """Frames one after the other."""

    def close(self) -> None:
        """Disconnect."""


@dataclass(frozen=True)
class Backoff:
    """How long to wait before each new attempt to connect, and when to give up.

    Args:
        first_s: before the first one.
        factor: each wait is so many times as long as the one before.
        longest_s: but no longer than this.
        attempts: in a row without a frame, after which the camera is gone.
    """

    first_s: float = 0.5
    factor: float = 2.0
    longest_s: float = 10.0
    attempts: int = 10

    def wait_s(self, attempt: int) -> float:
        """Seconds before an attempt, counted from 1.

        >>> [Backoff().wait_s(n) for n in (1, 2, 3, 9)]
        [0.5, 1.0, 2.0, 10.0]
        """
        return min(self.longest_s, self.first_s * self.factor ** (attempt - 1))


class Camera:
    """A camera or a stream from the network.

    Args:
        name: for people.
        connect: makes a connection.
        clock: says when a frame came.
        fps: take at most so many frames a second; None for all.
        backoff: between connections.
        threaded: read in a thread, from the first `next` on; without, call `run`.

    Raises:
        InputError: if the first connection fails.
    """

    live = True
    n_frames = None
    path = None
    start_s = 0.0

    def __init__(
        self,
        name: str,
        connect: Callable[[], Stream],
        clock: Clock,
        *,
        fps: float | None = None,
        backoff: Backoff | None = None,
        threaded: bool = True,
    ) -> None:
        self.name, self.outcomes = name, Outcomes()
        self._connect, self._clock, self._backoff = connect, clock, backoff or Backoff()
        self._thinning, self._timeline = Thinning(fps), Timeline(self.outcomes)
        self._waiting = Waiting(clock, self.outcomes)
        self._closed = threading.Event()
        self._stream: Stream | None = connect()
        self._stated_fps = self._stream.fps
        self._thread = threading.Thread(target=self.run, name="camera", daemon=True) if threaded else None

    @property
    def fps(self) -> float | None:
        """Frames per second as their times show, before that as the camera states."""
        period_s = self._timeline.period_s
        return 1 / period_s if period_s else self._stated_fps

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        """The next frame to look at; None if none came in time, or none will come."""
        if self._thread and self._thread.ident is None:
            self._thread.start()
        return self._waiting.take(patience_s, wait_s)

    @property
    def ending(self) -> Ending | None:
        """Why no more frames come; None while some may."""
        return self._waiting.ending

    def close(self) -> None:
        """Let the thread end; it may take as long as a read waits."""
        self._closed.set()
        if self._thread and self._thread.ident is not None:
            self._thread.join(1.0)
        elif self._stream is not None:
            self._stream.close()

    def run(self) -> None:
        """Fill the queue until the camera is gone or closed."""
        try:
            self._waiting.end(self._run())
        except Exception as error:  # what is raised in a thread would be lost
            self._waiting.end(Ending("failed", f"reading {self.name} failed: {shown(str(error))}"))

    def _run(self) -> Ending:
        attempt, why = 0, "the stream ended"
        while not self._closed.is_set():
            stream, self._stream = self._stream, None
            try:
                stream = stream or self._connect()
                for shot in stream:
                    attempt = self._arrived(attempt, shot)
                    if self._closed.is_set():
                        return Ending("stopped")
                if not stream.endless:
                    return Ending("end")
                why = "the stream ended"
            except (*BROKEN, InputError) as error:
                why = _reason(error)
            finally:
                if stream is not None:
                    with suppress(*BROKEN):
                        stream.close()
            self._timeline.broke()
            attempt += 1
            if attempt > self._backoff.attempts:
                tried = self._backoff.attempts
                return Ending("gone", f"{self.name} is gone ({why}); {tried} attempts to reach it failed")
            self._pause(self._backoff.wait_s(attempt))
        return Ending("stopped")

    def _arrived(self, attempt: int, shot: Shot) -> int:
        """Put a frame into the queue; the number of attempts without one is 0 again."""
        if shot.picture is None:
            self.outcomes.count("undecodable")
            return attempt
        now_s = self._clock.now_s()
        if attempt:
            what = "attempt" if attempt == 1 else "attempts"
            self.outcomes.tell("reconnected", 1, f"connected anew after {attempt} {what}")
        placed = self._timeline.place(shot.stated_s, now_s)
        if placed is None:
            return 0
        if shot.doubtful:
            self.outcomes.count("doubtful")
        number, t_s = placed
        if self._thinning.takes(t_s):
            self._waiting.put(SourceFrame(number, t_s, shot.picture, now_s))
        else:
            self.outcomes.count("thinned")
        return 0

    def _pause(self, seconds: float) -> None:
        end_s = self._clock.now_s() + seconds
        while not self._closed.is_set() and (left_s := end_s - self._clock.now_s()) > 0:
            self._clock.sleep(min(left_s, 0.2))


class NetworkStream:
    """A connection through PyAV; a stream from the network reads no file of this machine.

    Args:
        url: of the stream, or the device.
        form: of a device, as PyAV calls it; None for the network.
        fps: asked of a device.
        wait_s: a connection or a read that takes longer has failed.

    Raises:
        InputError: if it cannot be reached or shows no video.
    """

    def __init__(
        self, url: str, form: str | None = None, fps: float | None = None, wait_s: float = 10.0
    ) -> None:
        import av

        options = {"rtsp_transport": "tcp", "protocol_whitelist": _NETWORK}
        if form is not None:
            options = {"framerate": f"{fps:g}"} if fps else {}
        self._where = without_password(url)
        try:
            self._file: Any = av.open(url, format=form, options=options, timeout=wait_s)
        except BROKEN as error:
            hint = "check that it is on and that the address is right"
            said = f"it cannot be reached: {_reason(error)}"
            raise InputError(said, where=self._where, hint=hint) from error
        if not self._file.streams.video:
            self._file.close()
            raise InputError("expected a video stream, found none", where=self._where)
        self._stream = self._file.streams.video[0]
        rate = self._stream.average_rate or self._stream.guessed_rate
        self.fps = float(rate) if rate else None
        self.endless = form is not None or not self._file.duration

    def __iter__(self) -> Iterator[Shot]:
        for packet in self._file.demux(self._stream):
            try:
                frames = packet.decode()
            except BROKEN:
                yield Shot(None, None)
                continue
            for frame in frames:
                stated_s = None if frame.time is None else float(frame.time)
                yield Shot(stated_s, upright(frame), bool(frame.is_corrupt))

    def close(self) -> None:
        """Disconnect."""
        self._file.close()


def _reason(error: Exception) -> str:
    """Why something failed; without the address, which may hold a password."""
    if isinstance(error, InputError):
        return error.message
    return str(getattr(error, "strerror", None) or type(error).__name__)


def camera_device(index: int) -> tuple[str, str]:
    """What PyAV opens for the camera of a number on this system, and by which format.

    >>> camera_device(0) if sys.platform == "linux" else ("/dev/video0", "v4l2")
    ('/dev/video0', 'v4l2')
    """
    form = _FORMATS.get(sys.platform, "v4l2")
    return {"v4l2": f"/dev/video{index}", "dshow": f"video={index}"}.get(form, str(index)), form


def without_password(url: str) -> str:
    """A URL as it may be shown and written: without what may be secret.

    >>> without_password("rtsp://me:secret@camera/1?token=secret")
    'rtsp://camera/1'
    """
    parts = urlsplit(url)
    if not parts.scheme:
        return shown(url)
    return shown(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl())
