"""Items that did not pass a check of annotations, drawn: boxes over an empty picture, spans in time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from roadaware.reports.picture import (
    BLUE,
    FULL,
    GREEN,
    GREY,
    HALF,
    PALE,
    VERMILLION,
    Picture,
    canvas,
    styled,
)
from roadaware.reports.text import number, sentence, short, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]
VERSIONS = ("original", "round1", "round2")
_NAMES = {"original": "original", "round1": "round 1", "round2": "round 2"}
_TONES = {"original": GREEN, "round1": VERMILLION, "round2": BLUE}
_DASHES: dict[str, Any] = {"original": "-", "round1": (0, (4, 1.5)), "round2": (0, (1, 1.2))}
_EDGES = ("x1", "y1", "x2", "y2")
_MARGIN, _ROW_IN, _HEAD_IN = 0.28, 0.62, 0.75


def name_of(row: Row) -> str:
    """How an item is called in a heading.

    >>> name_of({"what": "box", "video": "A", "name": "P1", "object": None, "predicate": None, "frame": 25})
    'box of P1, frame 25, A'
    """
    if row["what"] == "relation":
        core = f"{row['name'] or 'somebody'} {row['predicate'] or 'and'} {row['object'] or 'somebody'}"
    elif row["name"] is None:
        core = row["what"]
    else:
        core = f"{row['what']}{' of' if 'box' in row['what'] else ''} {row['name']}"
    parts = [core, f"frame {row['frame']}" if row["frame"] is not None else "", row["video"] or ""]
    return ", ".join(part for part in parts if part)


def box_picture(row: Row) -> Picture:
    """The box of one item in every version, and by how much each edge moved.

    Args:
        row: of the items of a check.
    """
    boxes = {name: box for name in VERSIONS if (box := _box(row, name)) is not None}
    wide, high = row["width_px"] or 1280.0, row["height_px"] or 720.0
    with styled():
        figure, axes = canvas(HALF, 3.1)
        # There are many of them, and laying each out would take most of the time.
        figure.set_layout_engine("none")
        axes.set_position((0.1, 0.08, 0.86, 0.83))
        _paper(axes, wide, high)
        for name, box in boxes.items():
            _outline(axes, box, name)
        _frame(axes, list(boxes.values()), (wide, high))
        _moves(axes, boxes)
        _inset(axes, boxes, (wide, high))
    told = ". ".join(row["reasons"])
    return Picture(short(name_of(row), 60), f"{sentence(row['status'])}. {sentence(told)}.", figure)


def span_picture(rows: Sequence[Row]) -> Picture:
    """The spans of items in every version, one item below the other.

    Args:
        rows: of the items of a check, each with a start.
    """
    held = [name for name in VERSIONS if f"{name}_start" in rows[0]]
    with styled():
        figure, axes = canvas(FULL, _HEAD_IN + _ROW_IN * len(rows))
        for place, row in enumerate(rows):
            for line, name in enumerate(held):
                _span(axes, place + 0.22 * (line - (len(held) - 1) / 2), row, name)
        axes.set_yticks(range(len(rows)), [short(name_of(row), 44) for row in rows])
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel="frame of the file")
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=True, axis="x")
        for name in held:
            axes.plot([], [], color=_TONES[name], linewidth=4, label=_NAMES[name])
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(held), borderaxespad=0)
    caption = "Bars are what each round says; a cross is a start without an end, or a span of no length."
    return Picture("Spans that did not pass", caption, figure)


def _box(row: Row, name: str) -> tuple[float, ...] | None:
    edges = [row.get(f"{name}_{edge}") for edge in _EDGES]
    return (
        None
        if any(edge is None for edge in edges)
        else tuple(float(edge) for edge in edges if edge is not None)
    )


def _paper(axes: Axes, wide: float, high: float) -> None:
    """The picture as a white sheet on grey."""
    from matplotlib.patches import Rectangle

    axes.set_facecolor("#e4e7eb")
    axes.add_patch(Rectangle((0, 0), wide, high, facecolor="#fbfcfd", edgecolor=GREY, linewidth=0.8))


def _outline(axes: Axes, box: tuple[float, ...], name: str) -> None:
    from matplotlib.patches import Rectangle

    x1, y1, x2, y2 = box
    axes.add_patch(
        Rectangle(
            (x1, y1),
            x2 - x1,
            y2 - y1,
            fill=False,
            edgecolor=_TONES[name],
            linewidth=1.6,
            linestyle=_DASHES[name],
            label=_NAMES[name],
        )
    )


def _frame(axes: Axes, boxes: Sequence[tuple[float, ...]], size: tuple[float, float]) -> None:
    """Show the boxes with room around them."""
    corners = np.array(boxes)
    left, top = corners[:, :2].min(axis=0)
    right, low = corners[:, 2:].max(axis=0)
    pad = max(_MARGIN * max(right - left, low - top), 0.02 * max(size))
    axes.set(xlim=(left - 2.2 * pad, right + 2.2 * pad), ylim=(low + pad, top - pad), aspect="equal")
    axes.tick_params(labelsize=7)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_edgecolor(PALE)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, borderaxespad=0.2, fontsize=7.5)


def _moves(axes: Axes, boxes: dict[str, tuple[float, ...]]) -> None:
    """Beside each edge by how much it moved from one round to the next."""
    names = list(boxes)
    every = np.array(list(boxes.values()))
    (x1, y1), (x2, y2) = every[:, :2].min(axis=0), every[:, 2:].max(axis=0)
    middle_x, middle_y = (x1 + x2) / 2, (y1 + y2) / 2
    # Where the words of an edge begin, in points from it, and how they are aligned; one line is 9 points.
    places: tuple[tuple[tuple[float, float], tuple[float, float], str], ...] = (
        ((x1, middle_y), (-6, 5), "right"),
        ((middle_x, y1), (0, 17), "center"),
        ((x2, middle_y), (6, 5), "left"),
        ((middle_x, y2), (0, -9), "center"),
    )
    for k, (at, (aside, above), across) in enumerate(places):
        for line, (before, after) in enumerate(pairwise(names)):
            axes.annotate(
                f"{signed(boxes[after][k] - boxes[before][k], _digits(boxes))} px",
                at,
                (aside, above - 9 * line),
                textcoords="offset points",
                ha=across,
                va="center",
                fontsize=7,
                color=_TONES[after],
                bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.4},
            )


def _digits(boxes: dict[str, tuple[float, ...]]) -> int:
    """Decimals that tell: more where the picture is the unit."""
    return 4 if max(abs(edge) for box in boxes.values() for edge in box) <= 2 else 1


def _inset(axes: Axes, boxes: dict[str, tuple[float, ...]], size: tuple[float, float]) -> None:
    """The whole picture in small, with the place of the box."""
    from matplotlib.patches import Rectangle

    small = axes.inset_axes((0.02, 0.02, 0.2, 0.2 * 0.75))
    _paper(small, *size)
    for name, (x1, y1, x2, y2) in boxes.items():
        small.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, facecolor=_TONES[name], alpha=0.6))
    small.set(xlim=(0, size[0]), ylim=(size[1], 0), xticks=[], yticks=[], aspect="equal")
    for spine in small.spines.values():
        spine.set_visible(False)


def _span(axes: Axes, height: float, row: Row, name: str) -> None:
    start, end, tone = row[f"{name}_start"], row[f"{name}_end"], _TONES[name]
    if start is None:
        return
    if end is None or end <= start:
        axes.plot([start], [height], "x", color=tone, markersize=6, markeredgewidth=1.8)
    else:
        axes.plot([start, end], [height, height], color=tone, linewidth=4, solid_capstyle="butt")
    says = number(start, 0) if end is None else f"{number(start, 0)}–{number(end, 0)}"
    at = start if end is None else max(start, end)
    axes.annotate(
        says, (at, height), (4, 0), textcoords="offset points", va="center", fontsize=6.5, color=tone
    )
