"""Cameras and streams as a source: read in a thread of their own, connected anew when they go away."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from roadaware.errors import InputError
from roadaware.online.clock import Clock
from roadaware.online.frames import SourceFrame
from roadaware.online.network import Shot, Stream
from roadaware.online.outcomes import Ending, Outcomes
from roadaware.online.timeline import Thinning, Timeline
from roadaware.online.waiting import Waiting
from roadaware.scenes.decoders import BROKEN, reason
from roadaware.scenes.readers.source import shown

_STUCK_S = 120.0
"""Without a frame, a failure or an attempt for so long, the reader hangs in FFmpeg, which passes over packets
of streams that it does not show us without an end. Connections and reads are bounded by far less."""
_FORMATS = {"linux": "v4l2", "darwin": "avfoundation", "win32": "dshow"}


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
        self._beat_s = clock.now_s()
        self._thread = threading.Thread(target=self.run, name="camera", daemon=True) if threaded else None

    @property
    def fps(self) -> float | None:
        """Frames per second as their times show, before that as the camera states."""
        period_s = self._timeline.period_s
        return 1 / period_s if period_s else self._stated_fps

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        """The next frame to look at; None if none came in time, or none will come."""
        if self._thread and self._thread.ident is None:
            self._beat_s = self._clock.now_s()
            self._thread.start()
        if self._thread and self.ending is None and self._clock.now_s() - self._beat_s > _STUCK_S:
            self._closed.set()
            why = f"nothing that it sent for {_STUCK_S:g} s is of its pictures"
            self._waiting.end(Ending("gone", f"{self.name} is gone ({why})"))
        return self._waiting.take(patience_s, wait_s)

    @property
    def ending(self) -> Ending | None:
        """Why no more frames come; None while some may."""
        return self._waiting.ending

    def refresh(self) -> None:
        """Connect anew before the first frame is read: what nobody took since is stale, or it has hung up.

        A failure then is as any later one: there are more attempts.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            with suppress(*BROKEN):
                stream.close()

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
            self._beat_s = self._clock.now_s()
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
                why = error.message if isinstance(error, InputError) else reason(error)
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
        self._beat_s = self._clock.now_s()
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
        self._beat_s = self._clock.now_s()


def camera_device(index: int) -> tuple[str, str]:
    """What PyAV opens for the camera of a number on this system, and by which format.

    >>> camera_device(0) if sys.platform == "linux" else ("/dev/video0", "v4l2")
    ('/dev/video0', 'v4l2')
    """
    form = _FORMATS.get(sys.platform, "v4l2")
    return {"v4l2": f"/dev/video{index}", "dshow": f"video={index}"}.get(form, str(index)), form
