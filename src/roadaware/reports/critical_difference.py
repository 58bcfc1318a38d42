"""The critical difference diagram: methods along their average ranks, bars over those that do not differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roadaware.reports.picture import BLUE, FULL, GREY, INK, Picture, canvas, styled
from roadaware.reports.text import short
from roadaware.statistics.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW, _BAR = 1.0, 0.62
_NAME = 34


def critical_difference(found: Comparison, measured: str) -> Picture:
    """Average ranks on a line, best to the left; thick bars join methods of which no two differ.

    Dots on a bar are its members, since a method that differs may have its rank between theirs.

    Args:
        found: what data sets say of methods.
        measured: by what methods were ranked, in words.

    Source: Demšar, JMLR 2006, Figure 1; with Wilcoxon-Holm groups: Gesnouin et al., IV 2022, Figure 4.
    """
    methods = list(found.ranks.items())
    levels = _levels(found)
    half = (len(methods) + 1) // 2
    top = 0.6 + _BAR * (max(levels, default=-1) + 1)
    with styled():
        figure, axes = canvas(FULL, 0.75 + 0.27 * (top + _ROW * half))
        _line(axes, len(methods))
        for clique, level in zip(found.cliques, levels, strict=True):
            _bar(axes, [found.ranks[name] for name in clique], 0.6 + _BAR * level)
        pad = 0.06 * max(1, len(methods) - 1)
        for place, (name, rank) in enumerate(methods):
            left = place < half
            row = place if left else len(methods) - 1 - place
            _name(axes, name, rank, top + _ROW * row, 1 - pad if left else len(methods) + pad)
        axes.set(xlim=(1 - pad, len(methods) + pad), ylim=(top + _ROW * (half - 0.4), -0.9))
        axes.set_axis_off()
        axes.set_title(f"average rank by {short(measured, 70)}; 1 is best", loc="left", color=GREY)
    return Picture(f"Average ranks by {measured}", _caption(found), figure)


def _levels(found: Comparison) -> list[int]:
    """How far down the bar of each clique stands, so that no two touch."""
    reach: list[float] = []
    levels = []
    for clique in found.cliques:
        ranks = [found.ranks[name] for name in clique]
        free = [level for level, end in enumerate(reach) if end + 0.1 < min(ranks)]
        level = free[0] if free else len(reach)
        reach[level : level + 1] = [max(ranks)]
        levels.append(level)
    return levels


def _line(axes: Axes, methods: int) -> None:
    axes.plot([1, methods], [0, 0], color=INK, linewidth=1.1)
    for rank in range(1, methods + 1):
        axes.plot([rank, rank], [-0.15, 0], color=INK, linewidth=1.1)
        axes.text(rank, -0.25, str(rank), ha="center", va="bottom", color=INK)


def _bar(axes: Axes, ranks: Sequence[float], y: float) -> None:
    axes.plot([min(ranks), max(ranks)], [y, y], color=BLUE, linewidth=4, solid_capstyle="butt", alpha=0.55)
    axes.plot(ranks, [y] * len(ranks), color=BLUE, marker="o", markersize=5, linestyle="none", clip_on=False)


def _name(axes: Axes, name: str, rank: float, y: float, end: float) -> None:
    """A method's name at the side, and the way from its rank to there."""
    axes.plot([rank, rank, end], [0, y, y], color=GREY, linewidth=0.8, zorder=0)
    align = "right" if end < rank else "left"
    says = f"{short(name, _NAME)}  {rank:.2f}" if end < rank else f"{rank:.2f}  {short(name, _NAME)}"
    offset = (-4 if end < rank else 4, 0)
    axes.annotate(says, (end, y), offset, textcoords="offset points", ha=align, va="center", color=INK)


def _caption(found: Comparison) -> str:
    listed = ", ".join(f"{name} {rank:.2f}" for name, rank in found.ranks.items())
    differing = sum(pair.differ for pair in found.pairs)
    test = f"Friedman's test over {found.sets} data sets: p = {found.p:.2g}"
    if not found.some_differ:
        return (
            f"{test}, so that at alpha = {found.alpha:g} no two methods are called different, and one bar "
            f"joins them all. Average ranks: {listed}."
        )
    return (
        f"{test}. Bars join methods (dots) of which no two differ by Wilcoxon's signed-rank test with Holm's "
        f"correction at alpha = {found.alpha:g}; {differing} of {len(found.pairs)} pairs do. Average ranks: "
        f"{listed}."
    )
