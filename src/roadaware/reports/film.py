"""Film strips: the boxes of a true and of a claimed tube over time, drawn as outlines without images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from roadaware.analysis.worst_tubes import Strip
from roadaware.reports.picture import FULL, GREEN, GREY, INK, PALE, VERMILLION, Picture, canvas, styled
from roadaware.reports.text import sentence, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ASPECT = 4 / 3
_MARGIN = 0.15
_WHOLE = 0.6
_LEFT_IN, _GAP_IN, _TITLE_IN, _BAR_IN, _BELOW_IN = 0.55, 0.05, 0.30, 0.42, 0.22
_LONGEST = 110


def film(strips: Sequence[Strip], *, title: str = "Tubes that went wrong") -> Picture:
    """One strip below the other: time runs to the right, below each strip lies its time line.

    Args:
        strips: in drawing order, at least one.
        title: what they have in common.
    """
    most = max(len(strip.frames) for strip in strips)
    width = (FULL - _LEFT_IN) / most - _GAP_IN
    each = _TITLE_IN + width / _ASPECT + _BELOW_IN + _BAR_IN
    with styled():
        figure, axes = canvas(FULL, each * len(strips))
        figure.delaxes(axes)
        figure.set_layout_engine("none")
        for place, strip in enumerate(strips):
            _strip(figure, strip, each * (len(strips) - 1 - place), width)
    told = " ".join(f"{sentence(strip.says)}." for strip in strips)
    caption = (
        "Green and solid is the truth, red and dashed the claim, cut to where they are in the image. "
        f"The lines below are the frames of both tubes, dots the frames that are drawn. {told}"
    )
    return Picture(title, caption, figure)


def _strip(figure: Figure, strip: Strip, bottom: float, width: float) -> None:
    """Heading, panels and time line of one strip, from `bottom` (in inches) up."""
    height = width / _ASPECT
    total = figure.get_figheight()
    foot = bottom + _BAR_IN + _BELOW_IN
    says = short(sentence(strip.says), _LONGEST)
    figure.text(0.0, (foot + height + 0.08) / total, says, fontsize=8.5, weight="bold", color=INK)
    view = _view(strip)
    for place in range(len(strip.frames)):
        left = _LEFT_IN + place * (width + _GAP_IN)
        where = (left / FULL, foot / total, width / FULL, height / total)
        _panel(figure.add_axes(where), strip, place, view)
    span = FULL - _LEFT_IN - _GAP_IN
    bar = (_LEFT_IN / FULL, (bottom + 0.16) / total, span / FULL, (_BAR_IN - 0.14) / total)
    _time_line(figure.add_axes(bar), strip)


def _panel(axes: Axes, strip: Strip, place: int, view: tuple[float, float, float, float]) -> None:
    from matplotlib.patches import Rectangle

    wide, high = strip.size_px
    axes.set_facecolor("#eef0f3")
    axes.add_patch(Rectangle((0, 0), wide, high, facecolor="white", edgecolor=PALE, linewidth=0.8))
    for boxes, tone, style in ((strip.truth_px, GREEN, "-"), (strip.claim_px, VERMILLION, (0, (3, 1.5)))):
        x1, y1, x2, y2 = boxes[place]
        if np.isfinite(boxes[place]).all():
            axes.add_patch(
                Rectangle(
                    (x1, y1), x2 - x1, y2 - y1, fill=False, edgecolor=tone, linewidth=1.5, linestyle=style
                )
            )
    left, top, right, low = view
    axes.set(xlim=(left, right), ylim=(low, top), xticks=[], yticks=[])
    axes.set_xlabel(str(int(strip.frames[place])), fontsize=7.5, color=GREY, labelpad=2)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_edgecolor(PALE)


def _time_line(axes: Axes, strip: Strip) -> None:
    for place, (spans, tone) in enumerate(((strip.truth_spans, GREEN), (strip.claim_spans, VERMILLION))):
        for start, end in spans:
            axes.plot([start, end], [place, place], color=tone, linewidth=3, solid_capstyle="butt")
    axes.plot(strip.frames + 0.5, [0.5] * len(strip.frames), ".", color=GREY, markersize=3)
    ends = [end for spans in (strip.truth_spans, strip.claim_spans) for span in spans for end in span]
    low, high = min([*ends, int(strip.frames[0])]), max([*ends, int(strip.frames[-1]) + 1])
    axes.set(xlim=(low, high), ylim=(1.7, -0.7), yticks=[0, 1], yticklabels=["truth", "claim"], xticks=[])
    axes.tick_params(axis="y", length=0, labelsize=7.5)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _view(strip: Strip) -> tuple[float, float, float, float]:
    """The part of the image that is drawn (left, top, right, bottom): all of it where most is covered."""
    wide, high = strip.size_px
    boxes = np.concatenate([strip.truth_px, strip.claim_px])
    boxes = boxes[np.isfinite(boxes).all(axis=1)]
    left, top, right, low = 0.0, 0.0, float(wide), float(high)
    if len(boxes):
        x1, y1 = boxes[:, :2].min(axis=0)
        x2, y2 = boxes[:, 2:].max(axis=0)
        if max((x2 - x1) / wide, (y2 - y1) / high) < _WHOLE:
            pad = _MARGIN * max(x2 - x1, y2 - y1, 1.0)
            left, top, right, low = x1 - pad, y1 - pad, x2 + pad, y2 + pad
    across, down = right - left, low - top
    grow_x, grow_y = max(0.0, down * _ASPECT - across) / 2, max(0.0, across / _ASPECT - down) / 2
    return left - grow_x, top - grow_y, right + grow_x, low + grow_y
