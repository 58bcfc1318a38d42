"""The picture of a repeated publication: one square per printed cell, marked by what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from roadaware.reports.picture import BLUE, FULL, GREEN, GREY, ORANGE, VERMILLION, Picture, canvas, styled
from roadaware.reports.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP = "\u00a0" * 5
Line = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Status:
    """How a reproduced cell is marked: symbol, words, colours, and the symbol as strokes in a unit square."""

    symbol: str
    words: str
    colour: str
    paper: str
    strokes: tuple[Line, ...]


_TICK: tuple[Line, ...] = (((-0.8, 0.0), (-0.25, -0.7), (0.85, 0.8)),)
_WAVES: tuple[Line, ...] = tuple(
    ((-0.8, y - 0.15), (-0.4, y + 0.2), (0.4, y - 0.2), (0.8, y + 0.15)) for y in (0.35, -0.35)
)
_ARROWS: tuple[Line, ...] = (
    ((-0.9, 0.4), (0.9, 0.4), (0.4, 0.8)),
    ((0.9, -0.4), (-0.9, -0.4), (-0.4, -0.8)),
)
_UNEQUAL: tuple[Line, ...] = (
    ((-0.8, 0.3), (0.8, 0.3)),
    ((-0.8, -0.3), (0.8, -0.3)),
    ((-0.4, -0.9), (0.4, 0.9)),
)
_DASH: tuple[Line, ...] = (((-0.5, 0.0), (0.5, 0.0)),)

STATUSES: dict[str, Status] = {
    "match": Status("✓", "match", GREEN, "#d8efe6", _TICK),
    "match_under_assumption": Status("≈", "match under an assumption", BLUE, "#d7e9f5", _WAVES),
    "swapped_in_print": Status("⇄", "swapped in print", ORANGE, "#f8ebcd", _ARROWS),
    "differs": Status("≠", "differs", VERMILLION, "#fbe0d2", _UNEQUAL),
    "not_reproducible": Status("–", "not reproducible", GREY, "#eef0f3", _DASH),
}


def coverage(cells: Sequence[tuple[str, str, str]]) -> Picture:
    """Which cells of the published tables were repeated: one square per cell, marked by symbol and colour.

    Args:
        cells: (block, model, status) in print order; squares of one block and model stand in one row.
    """
    rows: dict[tuple[str, str], list[str]] = {}
    for block, model, status in cells:
        rows.setdefault((block, model), []).append(status)
    blocks = list(dict.fromkeys(block for block, _ in rows))
    heights = [row + 0.45 * blocks.index(block) for row, (block, _) in enumerate(rows)]
    told = Counter(status for _, _, status in cells)
    with styled():
        figure, axes = canvas(FULL, 0.8 + 0.235 * (max(heights, default=0) + 1))
        for status in told:
            places = [
                (column, height)
                for height, held in zip(heights, rows.values(), strict=True)
                for column, found in enumerate(held)
                if found == status
            ]
            _squares(axes, places, STATUSES[status])
        widest = max(map(len, rows.values()), default=1)
        axes.set(xlim=(-0.6, widest - 0.4), ylim=(max(heights, default=0) + 0.6, -0.6), xticks=[])
        axes.set_yticks(heights, _row_names(list(rows)))
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        _key(axes, told)
    spoken = ", ".join(f"{told[name]} {mark.words}" for name, mark in STATUSES.items() if told[name])
    caption = f"One square for each printed cell, in print order. Of {len(cells)} cells: {spoken}."
    return Picture("What of the published tables was repeated", caption, figure)


def _row_names(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Names of the rows of the cell grid; the block is named once, at its first row."""
    names, before = [], ""
    for block, model in rows:
        names.append(f"{short(block, 44)}{GAP}{short(model, 24)}" if block != before else short(model, 24))
        before = block
    return names


def _squares(axes: Axes, places: Sequence[tuple[float, float]], mark: Status) -> None:
    """All squares of one status as one path, and their symbols as one set of markers."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = np.array([(-0.46, -0.42), (0.46, -0.42), (0.46, 0.42), (-0.46, 0.42), (-0.46, -0.42)])
    whole = Path.make_compound_path(*(Path(corners + place, closed=True) for place in places))
    axes.add_patch(PathPatch(whole, facecolor=mark.paper, edgecolor=mark.colour, linewidth=0.7))
    strokes = Path.make_compound_path(*(Path(line) for line in mark.strokes))
    xs, ys = [x for x, _ in places], [y for _, y in places]
    axes.plot(xs, ys, linestyle="", marker=strokes, markersize=6.5, markerfacecolor="none", color=mark.colour)


def _key(axes: Axes, told: Mapping[str, int]) -> None:
    marks = [(mark, told[name]) for name, mark in STATUSES.items() if told.get(name)]
    says = GAP.join(f"{mark.symbol}\u00a0\u00a0{mark.words} ({amount})" for mark, amount in marks)
    axes.set_title(says, loc="left", fontsize=8.5, pad=8)
