"""The line that a watch shows while it runs: always the same on a terminal, else a new one now and then."""

from __future__ import annotations

import contextlib
import logging
import shutil
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from roadaware.addresses import conceal
from roadaware.cli import console

if TYPE_CHECKING:
    from roadaware.online.frames import Source
    from roadaware.online.watch import Progress

_TERMINAL_S, _ELSEWHERE_S = 0.2, 5.0


class LiveLine:
    """Shows how a watch goes.

    Args:
        source: that is watched.
    """

    def __init__(self, source: Source) -> None:
        self._source, self._shown = source, False
        self._terminal = console.on_terminal()
        self._last_s = self._since_s = time.monotonic()
        self._frames = 0

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
        if console.is_quiet() or now_s - self._last_s < (_TERMINAL_S if self._terminal else _ELSEWHERE_S):
            return
        fps = (progress.frames - self._frames) / (now_s - self._since_s)
        self._last_s = now_s
        if now_s - self._since_s > 2.0:
            self._since_s, self._frames = now_s, progress.frames
        words = line_of(
            progress, fps, self._source.outcomes.counts().get("dropped", 0), self._source.n_frames
        )
        if not self._terminal:
            console.note(words)
            return
        width = max(20, shutil.get_terminal_size().columns - 1)
        self._write("\r\x1b[K" + words[:width])
        self._shown = True

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


def line_of(progress: Progress, fps: float, dropped: int, n_frames: int | None) -> str:
    """How a watch goes, in a line.

    Args:
        progress: of the watch.
        fps: frames per second lately.
        dropped: frames passed over.
        n_frames: of the source; None where nobody knows.
    """
    minutes, seconds = divmod(progress.t_s, 60)
    of = f" of {n_frames:,}" if n_frames else ""
    parts = [
        f"frame {progress.last_number + 1:,}{of}",
        f"{minutes:02.0f}:{seconds:04.1f}",
        f"{fps:.1f} fps",
        f"latency {1e3 * (progress.latency.percentile_s(50) or 0):.0f} ms "
        f"(p99 {1e3 * (progress.latency.percentile_s(99) or 0):.0f})",
        f"{progress.tubes} tubes",
        *([f"{progress.probable} probably crossing"] if progress.probable else []),
    ]
    return "  ".join([*parts, *([f"{dropped:,} dropped"] if dropped else [])])
