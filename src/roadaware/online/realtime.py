"""A recording as if a camera filmed it now: frames come when their time has come, and wait for nobody."""

from __future__ import annotations

from dataclasses import replace

from roadaware.online.clock import Clock
from roadaware.online.frames import Source, SourceFrame
from roadaware.online.outcomes import Ending
from roadaware.online.waiting import Waiting


class Realtime:
    """A live source out of one that is not.

    Args:
        source: a file or folder.
        clock: goes on while frames are looked at.
    """

    live = True

    def __init__(self, source: Source, clock: Clock) -> None:
        self.name, self.fps, self.n_frames = source.name, source.fps, source.n_frames
        self.path, self.start_s, self.outcomes = source.path, source.start_s, source.outcomes
        self._source, self._clock = source, clock
        self._waiting = Waiting(clock, source.outcomes)
        self._ahead: SourceFrame | None = None
        self._begin_s: float | None = None

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        """The next frame to look at; None if none came in time, or none will come."""
        self._arrive()
        found = self._waiting.take(patience_s, 0.0)
        if found is not None or self._ahead is None:
            return found
        due_s = self._due_s(self._ahead) - self._clock.now_s()
        self._clock.sleep(min(due_s, wait_s))
        self._arrive()
        return self._waiting.take(patience_s, 0.0)

    @property
    def ending(self) -> Ending | None:
        """Why no more frames come; None while some may."""
        return self._waiting.ending

    def close(self) -> None:
        """Let go of the source."""
        self._source.close()

    def _arrive(self) -> None:
        """Let all frames come in whose time has come."""
        while (frame := self._ahead or self._more()) is not None:
            due_s = self._due_s(frame)
            self._ahead = frame
            if due_s > self._clock.now_s():
                return
            self._waiting.put(replace(frame, arrived_s=due_s))
            self._ahead = None

    def _more(self) -> SourceFrame | None:
        frame = self._source.next(0.0, 0.0)
        if frame is None:
            self._waiting.end(self._source.ending or Ending("end"))
        elif self._begin_s is None:
            self._begin_s = self._clock.now_s() - frame.t_s
        return frame

    def _due_s(self, frame: SourceFrame) -> float:
        return (self._begin_s or 0.0) + frame.t_s
