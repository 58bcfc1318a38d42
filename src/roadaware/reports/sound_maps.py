"""Pictures of localised sounds: maps over the outline of the picture, and the success curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from roadaware.analysis.heard_maps import HeardMap
from roadaware.reports.picture import (
    DASHES,
    FULL,
    GREEN,
    GREY,
    HALF,
    PALE,
    SERIES,
    VERMILLION,
    Picture,
    canvas,
    styled,
)
from roadaware.reports.text import number, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS, _HEAD_IN, _GAP_IN, _FOOT_IN = 4, 0.42, 0.1, 0.04
_CLAIMED = 0.5


def map_gallery(maps: Sequence[HeardMap], *, title: str, threshold: float | None = _CLAIMED) -> Picture:
    """A panel for each sound: the map in grey tones, the true boxes, and the edge of what is claimed.

    Args:
        maps: in drawing order, at least one.
        title: what they have in common.
        threshold: of the scaled map, from which on a cell is claimed; None draws no edge.
    """
    width = (FULL - _GAP_IN * (_COLUMNS - 1)) / _COLUMNS
    height = width * max(_shape(each) for each in maps)
    rows = math.ceil(len(maps) / _COLUMNS)
    total = rows * (height + _HEAD_IN) + _FOOT_IN
    with styled():
        figure, axes = canvas(FULL, total)
        figure.delaxes(axes)
        figure.set_layout_engine("none")
        for place, each in enumerate(maps):
            left = (place % _COLUMNS) * (width + _GAP_IN)
            bottom = total - (place // _COLUMNS + 1) * (height + _HEAD_IN)
            where = (left / FULL, bottom / total, width / FULL, height / total)
            _panel(figure.add_axes(where), each, threshold)
    told = " ".join(f"{each.says}." for each in maps)
    edge = "the dashed line the edge of what is claimed, " if threshold is not None else ""
    return Picture(
        title,
        f"The darker, the louder the map; {edge}green boxes where the sound comes from. {told}",
        figure,
    )


def success_curve(thresholds: Sequence[float], curves: Mapping[str, Sequence[float]], model: str) -> Picture:
    """The share of sounds found, over the consensus IoU that is asked for.

    Args:
        thresholds: (t,) of consensus IoU.
        curves: name to its (t,) shares; the model first, then trivial answers.
        model: its name.
    """
    with styled():
        figure, axes = canvas(HALF * 1.25, 3.2)
        for place, (name, shares) in enumerate(curves.items()):
            axes.plot(
                thresholds,
                shares,
                color=SERIES[place % len(SERIES)],
                linestyle=DASHES[place % len(DASHES)],
                label=short(name, 40),
            )
        axes.axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
        axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="consensus IoU that is asked for")
        axes.set_ylabel("share of sounds that reach it")
        axes.grid(visible=True)
        axes.legend(loc="upper right")
    half = min(range(len(thresholds)), key=lambda k: abs(thresholds[k] - 0.5))
    told = ", ".join(f"{name} {number(float(shares[half]))}" for name, shares in curves.items())
    caption = (
        f"How many sounds are found at each consensus IoU; the area below is success_auc. At 0.5: {told}."
    )
    return Picture(f"Success of {model} beside answers that hear nothing", caption, figure)


def _shape(each: HeardMap) -> float:
    """Height by width of a panel."""
    return min(1.4, max(0.5, each.size[1] / each.size[0])) if each.shaped else 0.75


def _panel(axes: Axes, each: HeardMap, threshold: float | None) -> None:
    from matplotlib.patches import Rectangle

    wide, high = each.size
    axes.set_facecolor("white")
    if each.map.size:
        extent = (0.0, wide, high, 0.0)
        axes.imshow(each.map, cmap="Greys", vmin=0, vmax=1.25, extent=extent, aspect="auto", alpha=1.0)
        if threshold is not None and min(each.map.shape) > 1 and np.ptp(each.map) > 0:
            rows, columns = each.map.shape
            x, y = (np.arange(columns) + 0.5) * wide / columns, (np.arange(rows) + 0.5) * high / rows
            axes.contour(
                x, y, each.map, levels=[threshold], colors=[VERMILLION], linewidths=1.1, linestyles="--"
            )
    else:
        axes.text(0.5, 0.5, "no map", transform=axes.transAxes, ha="center", va="center", color=GREY)
    for x1, y1, x2, y2 in each.boxes:
        axes.add_patch(Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=GREEN, linewidth=1.6))
    axes.set(xlim=(0, wide), ylim=(high, 0), xticks=[], yticks=[])
    first, _, rest = each.says.partition(": ")
    axes.set_title(f"{short(first, 34)}\n{short(rest, 34)}", loc="left", fontsize=7.5, pad=3)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_edgecolor(PALE)
