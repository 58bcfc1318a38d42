"""The line that a watch shows while it runs: a bar on a terminal, and elsewhere nothing but under -v."""

from __future__ import annotations

import contextlib
import logging
import math
import shutil
import sys
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Self

from roadaware.addresses import conceal
from roadaware.cli import console

if TYPE_CHECKING:
    from roadaware.online.frames import Source
    from roadaware.online.watch import Progress

_TERMINAL_S, _ELSEWHERE_S = 0.2, 5.0
_MARKS, _CELLS = 50, 16


class LiveLine:
    """Shows how a watch goes.

    Args:
        source: that is watched.
        seconds: of the stream, after which the watch ends; None for all of it.
    """

    def __init__(self, source: Source, seconds: float | None = None) -> None:
        self._source, self._shown, self._seconds = source, False, seconds
        self._terminal = console.on_terminal()
        self._last_s = time.monotonic()
        # Rate and time left are those of the newest marks: a first frame may be slow, and a scene may fill.
        self._marks: deque[tuple[float, int, int]] = deque([(self._last_s, 0, -1)], maxlen=_MARKS)

    def __enter__(self) -> Self:
        logging.getLogger("roadaware").addFilter(self._clear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger("roadaware").removeFilter(self._clear)
        self.close()

    def show(self, progress: Progress) -> None:
        """Say how far it is, if it is time to.

        Args:
            progress: of the watch.
        """
        now_s = time.monotonic()
        if not (self._terminal or console.verbosity()):
            return
        if console.is_quiet() or now_s - self._last_s < (_TERMINAL_S if self._terminal else _ELSEWHERE_S):
            return
        self._last_s = now_s
        self._marks.append((now_s, progress.frames, progress.last_number))
        since_s, frames, number = self._marks[0]
        past_s = max(1e-3, now_s - since_s)
        fps, pace = (progress.frames - frames) / past_s, (progress.last_number - number) / past_s
        dropped = self._source.outcomes.counts().get("dropped", 0)
        words = line_of(progress, fps, dropped, self._total(), pace)
        if not self._terminal:
            console.note(words)
            return
        width = max(20, shutil.get_terminal_size().columns - 1)
        self._write("\r\x1b[K" + words[:width])
        self._shown = True

    def _total(self) -> int | None:
        """Frames that will be gone through; None where nobody knows."""
        n_frames, fps = self._source.n_frames, self._source.fps
        if self._seconds is None or not fps:
            return n_frames
        asked = math.floor(self._seconds * fps) + 1
        return asked if n_frames is None else min(asked, n_frames)

    def close(self) -> None:
        """Take the line away."""
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _clear(self, record: logging.LogRecord) -> bool:
        """Make room for what is logged."""
        self.close()
        return True

    @staticmethod
    def _write(words: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(conceal(words))
            sys.stderr.flush()


def line_of(
    progress: Progress, fps: float, dropped: int, n_frames: int | None, pace: float | None = None
) -> str:
    """How a watch goes, in a line: how much of it is done, and the tubes that its summary will count.

    Args:
        progress: of the watch.
        fps: frames per second lately.
        dropped: frames passed over.
        n_frames: to go through; None where nobody knows.
        pace: numbers of frames per second, counting those that are not looked at; as `fps` where None.
    """
    minutes, seconds = divmod(progress.t_s, 60)
    of, done = (f" of {n_frames:,}" if n_frames else ""), progress.last_number + 1
    pace = fps if pace is None else pace
    parts = [
        *([_bar(done / n_frames)] if n_frames else []),
        f"frame {progress.last_number + 1:,}{of}",
        f"{minutes:02.0f}:{seconds:04.1f}",
        f"{fps:.1f} fps",
        *([f"{_clock((n_frames - done) / pace)} left"] if n_frames and pace > 0 else []),
        f"latency {1e3 * (progress.latency.percentile_s(50) or 0):.0f} ms "
        f"(p99 {1e3 * (progress.latency.percentile_s(99) or 0):.0f})",
        f"{progress.begun:,} tubes ({progress.tubes} in the picture)",
        *([f"{progress.probable} probably crossing"] if progress.probable else []),
    ]
    return "  ".join([*parts, *([f"{dropped:,} dropped"] if dropped else [])])


def _bar(share: float) -> str:
    """How much is done, as a bar and in per cent."""
    share = min(max(share, 0.0), 1.0)
    full = int(share * _CELLS)
    return f"[{'#' * full}{'.' * (_CELLS - full)}] {100 * share:3.0f} %"


def _clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    minutes, rest = divmod(math.ceil(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
