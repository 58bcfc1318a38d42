"""Precision over recall of many classes: one small panel each, boxes and tubes in the same one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.reports.picture import BLUE, FULL, GREY, HALF, PALE, VERMILLION, Picture, canvas, styled
from roadaware.reports.text import count, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS, MOST_PANELS, MOST_POINTS = 5, 20, 160
_ROW_IN, _HEAD_IN, _STEP_X, _STEP_Y = 1.62, 0.4, 1.18, 1.32
_STYLES: tuple[tuple[str, Any], ...] = ((BLUE, "-"), (VERMILLION, (0, (4, 1.5))))


@dataclass(frozen=True, eq=False)
class ClassCurve:
    """The curve of one class at one level.

    Args:
        level: such as `boxes at 0.5`.
        precision: (n,) by falling score.
        recall: (n,) rising.
        average_precision: in [0, 1], null where undefined.
    """

    level: str
    precision: Floats
    recall: Floats
    average_precision: float | None


@dataclass(frozen=True, eq=False)
class Panel:
    """One class.

    Args:
        label: its name.
        n_truth: how much truth there is, by which panels are chosen where there are too many.
        curves: at most two levels.
    """

    label: str
    n_truth: int
    curves: tuple[ClassCurve, ...]


def class_curves(panels: Sequence[Panel], *, kind: str) -> Picture:
    """A panel per class with truth, in the given order; of too many classes those with the most truth.

    Args:
        panels: the classes of one kind.
        kind: what they are classes of.
    """
    held = [panel for panel in panels if panel.n_truth]
    most = sorted(range(len(held)), key=lambda k: -held[k].n_truth)[:MOST_PANELS]
    shown = [held[k] for k in sorted(most)]
    columns = COLUMNS if len(shown) > 1 else 1
    rows = max(1, math.ceil(len(shown) / columns))
    with styled():
        size = (FULL, _HEAD_IN + _ROW_IN * rows) if columns > 1 else (HALF, 3.5)
        figure, axes = canvas(*size)
        # One pair of axes for all panels: matplotlib takes long for many.
        for place, panel in enumerate(shown):
            last = place + columns >= len(shown)
            _panel(axes, panel, (place % columns) * _STEP_X, -(place // columns) * _STEP_Y, last=last)
        axes.set(xlim=(-0.14, columns * _STEP_X - 0.16), ylim=(1.24 - rows * _STEP_Y, 1.2))
        axes.axis("off")
        levels = list(dict.fromkeys(one.level for panel in shown for one in panel.curves))
        if levels:
            handles, names = _keys(levels)
            figure.legend(handles, names, loc="outside upper left", ncols=2, handlelength=2.6)
    left = f" Shown are the {len(shown)} of {len(held)} classes with the most truth."
    told = "; ".join(f"{panel.label} {_values(panel)}" for panel in shown)
    caption = (
        "Precision (upwards) over recall (to the right), from the most confident claim to the last. Numbers "
        "are average precision in per cent, n counts true boxes."
        f"{left if len(shown) < len(held) else ''} {told}."
    )
    return Picture(f"Precision over recall: {kind}", caption, figure)


def _panel(axes: Axes, panel: Panel, x: float, y: float, *, last: bool) -> None:
    """One class, its origin at (x, y); the lowest panel of a column also says what lies to the right."""
    nan = np.nan
    xs = [x + 0.5, x + 0.5, nan, x + 1, x + 1, nan, x, x + 1, nan, x, x + 1]
    ys = [y, y + 1, nan, y, y + 1, nan, y + 0.5, y + 0.5, nan, y + 1, y + 1]
    axes.plot(xs, ys, color=PALE, linewidth=0.7)
    axes.plot([x, x, x + 1], [y + 1, y, y], color=GREY, linewidth=0.8)
    for one, (tone, style) in zip(panel.curves, _STYLES, strict=False):
        keep = _thinned(len(one.recall))
        if len(keep):
            recall = np.append(0.0, one.recall[keep])
            precision = np.append(one.precision[keep[0]], one.precision[keep])
            axes.plot(x + recall, y + precision, color=tone, linestyle=style, linewidth=1.3)
    axes.text(x, y + 1.05, short(panel.label, 24), fontsize=8)
    behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1}
    says = f"{_values(panel)}\nn {count(panel.n_truth)}"
    axes.text(x + 0.05, y + 0.07, says, va="bottom", fontsize=7, color=GREY, bbox=behind)
    small: dict[str, Any] = {"fontsize": 7, "color": GREY}
    axes.text(x - 0.03, y, "0", ha="right", va="center", **small)
    axes.text(x - 0.03, y + 1, "1", ha="right", va="center", **small)
    if last:
        axes.text(x + 0.5, y - 0.05, "recall", ha="center", va="top", **small)
        axes.text(x + 1, y - 0.05, "1", ha="center", va="top", **small)


def _values(panel: Panel) -> str:
    values = (one.average_precision for one in panel.curves)
    return " / ".join("–" if value is None else f"{100 * value:.1f}" for value in values)


def _keys(levels: Sequence[str]) -> tuple[list[Any], list[str]]:
    from matplotlib.lines import Line2D

    pairs = list(zip(levels, _STYLES, strict=False))
    return [Line2D([], [], color=tone, linestyle=style) for _, (tone, style) in pairs], [
        short(level, 60) for level, _ in pairs
    ]


def _thinned(length: int) -> npt.NDArray[np.intp]:
    """Some of many points, the first and the last among them."""
    return np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).round().astype(np.intp))
