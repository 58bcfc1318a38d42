"""A watch in words: how it goes while it runs, and what came of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.reports import terminal
from roadaware.reports.watch_page import NOTHING

if TYPE_CHECKING:
    from roadaware.online.watch import Progress

_CELLS = 16


def format_progress(
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
        f"{progress.begun:,} tubes ({progress.tubes} in the image)",
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


def format_watch(found: dict[str, Any], folder: Path) -> str:
    """What came of a watch.

    Args:
        found: its summary.
        folder: where it lies.
    """
    latency = found["latency_ms"]
    rows = [
        ("frames", f"{found['frames']:,}"),
        ("seconds of the stream", f"{found['stream_s']:.1f}"),
        ("frames per second", "–" if found["fps"] is None else f"{found['fps']:.1f}"),
        ("latency p50 and p99, ms", f"{latency['p50'] or 0:.0f}, {latency['p99'] or 0:.0f}"),
        ("tubes", f"{found['tubes']:,}"),
        ("events", f"{found['events']:,}"),
    ]
    if "crossing" in found:
        each = found["crossing"]["ms_per_pedestrian_frame"]
        rows += [
            ("pedestrians", f"{found['crossing']['pedestrians']:,}"),
            ("of those, answered for", f"{found['crossing']['answered']:,}"),
            ("ms for each pedestrian in a frame", "–" if each is None else f"{each:.2f}"),
        ]
    rows += [(each["meaning"], f"{each['count']:,}") for each in found["outcomes"].values()]
    lines = [
        f"watched {terminal.format_cell(found['source'])}",
        "",
        terminal.format_table(["", "found"], rows),
        "",
    ]
    if not found["tubes"] and found["frames"]:
        lines += [NOTHING, ""]
    if "crowd" in found:
        lines += ["crowd", *(f"  {terminal.format_cell(says)}" for says in found["crowd"]["says"]), ""]
    return "\n".join([*lines, f"wrote {terminal.format_cell(str(folder))}: {', '.join(found['files'])}"])
