"""Precision over recall of many classes: one small panel each, boxes and tubes in the same one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from roadaware.reports.picture import BLUE, FULL, GREY, HALF, VERMILLION, Picture, canvas, styled
from roadaware.reports.text import count, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]
COLUMNS, MOST_PANELS, MOST_POINTS = 5, 20, 160
_PANEL_IN, _FOOT_IN = 1.5, 0.55
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
    columns = 1 if len(shown) < 2 else COLUMNS
    rows = max(1, math.ceil(len(shown) / columns))
    width, height = (HALF, 3.5) if columns == 1 else (FULL, _FOOT_IN + _PANEL_IN * rows)
    with styled():
        figure, axes = canvas(width, height)
        figure.delaxes(axes)
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for place, cell in enumerate(grid.flat):
            if place < len(shown):
                _panel(cell, shown[place])
                cell.tick_params(labelbottom=place + columns >= len(shown))
            else:
                cell.set_visible(False)
        figure.supxlabel("recall", fontsize=8.5)
        figure.supylabel("precision", fontsize=8.5)
        levels = list(dict.fromkeys(one.level for panel in shown for one in panel.curves))
        if levels:
            handles, names = _keys(levels)
            figure.legend(handles, names, loc="outside upper left", ncols=2, handlelength=2.6)
    left = f" Shown are the {len(shown)} of {len(held)} classes with the most truth."
    told = "; ".join(f"{panel.label} {_values(panel)}" for panel in shown)
    caption = (
        "Each curve runs from the most confident claim (left) to the last. Numbers are average precision in "
        f"per cent, n counts true boxes.{left if len(shown) < len(held) else ''} {told}."
    )
    return Picture(f"Precision over recall: {kind}", caption, figure)


def _panel(axes: Axes, panel: Panel) -> None:
    for one, (tone, style) in zip(panel.curves, _STYLES, strict=False):
        keep = _thinned(len(one.recall))
        if len(keep):
            recall = np.append(0.0, one.recall[keep])
            precision = np.append(one.precision[keep[0]], one.precision[keep])
            axes.plot(recall, precision, color=tone, linestyle=style, linewidth=1.3)
    axes.set(xlim=(0, 1), ylim=(0, 1.03), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axes.set_xticklabels(["0", "", "1"])
    axes.set_yticklabels(["0", "", "1"])
    axes.set_title(short(panel.label, 22), fontsize=8, loc="left", pad=3)
    says = f"{_values(panel)}\nn {count(panel.n_truth)}"
    behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1}
    axes.text(0.05, 0.07, says, transform=axes.transAxes, va="bottom", fontsize=7, color=GREY, bbox=behind)
    axes.grid(visible=True)


def _values(panel: Panel) -> str:
    values = (one.average_precision for one in panel.curves)
    return " / ".join("–" if value is None else f"{100 * value:.1f}" for value in values)


def _keys(levels: Sequence[str]) -> tuple[list[Any], list[str]]:
    from matplotlib.lines import Line2D

    pairs = list(zip(levels, _STYLES, strict=False))
    return [Line2D([], [], color=tone, linestyle=style) for _, (tone, style) in pairs], [
        level for level, _ in pairs
    ]


def _thinned(length: int) -> npt.NDArray[np.intp]:
    """Some of many points, the first and the last among them."""
    return np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).round().astype(np.intp))
