"""The page of a watch: timeline, highlights, and what is uncertain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roadaware.analysis.watched import UNLABELLED, Moment, Span, Watched
from roadaware.reports.drawing import COLOURS
from roadaware.reports.picture import (
    FULL,
    GREY,
    HALF,
    INK,
    PALE,
    VERMILLION,
    Picture,
    create_canvas,
    set_style,
)
from roadaware.reports.text import sanitize_text

MOST_ROWS = 40
_ROW_IN = 0.16
_MARGIN_IN = 0.75


def plot_timeline(watched: Watched, end_s: float, agents: Sequence[str] = ()) -> Picture:
    """A row for each tube over time, where crossing was reported, and what the own vehicle did above them.

    Args:
        watched: what was reported.
        end_s: of the stream.
        agents: in the order of their colours.
    """
    shown = select_longest(watched.spans)
    names = list(dict.fromkeys([*agents, *sorted({span.agent for span in shown})]))
    used = [name for name in names if any(span.agent == name for span in shown)]
    colours = {name: "#{:02x}{:02x}{:02x}".format(*COLOURS[k % len(COLOURS)]) for k, name in enumerate(names)}
    end_s = max(end_s, 1e-3)
    colours[UNLABELLED] = GREY
    with set_style():
        figure, axes = create_canvas(FULL, _MARGIN_IN + _ROW_IN * (len(shown) + 1))
        for row, span in enumerate(shown):
            wide = max(span.end_s - span.begin_s, 0.004 * end_s)
            axes.broken_barh([(span.begin_s, wide)], (row - 0.4, 0.8), facecolors=colours[span.agent])
            for t_s, _ in span.probable:
                axes.plot(t_s, row, marker="v", color=VERMILLION, markeredgecolor=INK, markersize=6)
        for t_s, _ in watched.driving:
            axes.plot([t_s, t_s], [-1.5, -0.6], color=INK, linewidth=1.2)
        for t_s, _ in watched.source:
            axes.plot(t_s, -1.05, marker="x", color=VERMILLION)
        axes.set_yticks(
            [-1.05, *range(len(shown))],
            [
                "own vehicle" if watched.driving else "source" if watched.source else "",
                *(_format_span(span) for span in shown),
            ],
        )
        axes.tick_params(axis="y", labelsize=6.5, length=0)
        axes.set_ylim(len(shown) - 0.3, -1.7)
        axes.set_xlim(0.0, end_s)
        axes.set_xlabel("seconds of the stream")
        axes.grid(axis="x", color=PALE)
        for name in used:
            axes.plot(
                [],
                [],
                color=colours[name],
                linewidth=5,
                label="no label" if name == UNLABELLED else sanitize_text(name),
            )
        if used:
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.0 + 0.4 / figure.get_figheight()), ncols=8)
    more = len(watched.spans) - len(shown)
    left = f" The {len(shown)} longest of {len(watched.spans):,} tubes are shown." if more else ""
    caption = (
        "A row is a tube, coloured by the agent that was told best. Triangles: crossing was told. Strokes "
        f"above: what the own vehicle does changed; crosses: something happened to the source.{left}"
    )
    return Picture("What was there, and when", caption, figure)


def select_longest(spans: Sequence[Span], most: int = MOST_ROWS) -> list[Span]:
    """The longest spans, in the order in which they begin.

    Args:
        spans: of tubes.
        most: how many.
    """
    kept = sorted(spans, key=lambda span: (span.begin_s - span.end_s, span.tube))[:most]
    return sorted(kept, key=lambda span: (span.begin_s, span.tube))


def plot_thumbnail(moment: Moment, frame: npt.NDArray[np.uint8]) -> Picture:
    """A frame of the video, small.

    Args:
        moment: when it is, and why it is shown.
        frame: (H, W, 3) uint8.
    """
    height, width = frame.shape[:2]
    high = min(HALF * height / width, 1.4 * HALF)
    with set_style():
        figure, axes = create_canvas(HALF, high)
        axes.set_position((0, 0, 1, 1))
        axes.imshow(frame, interpolation="lanczos")
        axes.set_axis_off()
        figure.patch.set_facecolor(GREY if high * width < HALF * height else "white")
    return Picture(f"{format_clock(moment.t_s)}: {moment.why}", "", figure)


def format_clock(seconds: float) -> str:
    """Minutes and seconds of a stream.

    >>> format_clock(75.25)
    '1:15.2'
    """
    minutes, rest = divmod(max(0.0, seconds), 60)
    return f"{minutes:.0f}:{rest:04.1f}"


def _format_span(span: Span) -> str:
    return sanitize_text(f"#{span.tube} {span.agent}")
