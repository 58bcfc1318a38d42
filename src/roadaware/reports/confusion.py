"""The confusion of actions as a heat map: a row for what persons do, a column for what is claimed."""

from __future__ import annotations

import numpy as np

from roadaware.analysis.action_confusion import Confusion
from roadaware.reports.picture import FULL, GREY, INK, Picture, canvas, styled
from roadaware.reports.text import count, percent, short

_ROW_IN, _HEAD_IN, _FOOT_IN = 0.25, 0.35, 1.45
_WRITTEN = 0.045
_DARK = 0.55
_MOST_TOLD = 5


def confusion_picture(found: Confusion) -> Picture:
    """Shares of what is claimed of the persons of each action.

    Args:
        found: at least one action.
    """
    rows, columns = found.shares.shape
    with styled():
        figure, axes = canvas(FULL, _HEAD_IN + _FOOT_IN + _ROW_IN * rows)
        edges_x, edges_y = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
        axes.pcolormesh(
            edges_x, edges_y, found.shares, cmap="Blues", vmin=0, vmax=1, edgecolors="white", linewidth=0.6
        )
        for row, column in zip(*np.nonzero(found.shares >= _WRITTEN), strict=True):
            share = found.shares[row, column]
            tone = "white" if share > _DARK else INK
            axes.text(column, row, f"{100 * share:.0f}", ha="center", va="center", fontsize=6.5, color=tone)
        for line in (columns - 2.5, columns - 1.5):
            axes.axvline(line, color=GREY, linewidth=0.8)
        axes.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
        axes.set_yticks(
            range(rows),
            [f"{short(n, 24)} ({count(held)})" for n, held in zip(found.labels, found.n, strict=True)],
        )
        names = [short(name, 24) for name in found.columns]
        axes.set_xticks(range(columns), names, rotation=45, ha="right", rotation_mode="anchor")
        axes.set(xlabel="what is claimed", ylabel="what is true")
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
    return Picture("Confusion of actions", _caption(found), figure)


def _caption(found: Confusion) -> str:
    """How to read it, and the largest confusions in words."""
    off = [
        (share, found.labels[row], found.columns[column])
        for (row, column), share in np.ndenumerate(found.shares)
        if row != column and column < len(found.labels) and share > 0
    ]
    told = [
        f"{true} taken for {claimed} ({percent(share, 1)})"
        for share, true, claimed in sorted(off, reverse=True)[:_MOST_TOLD]
    ]
    return (
        "Each row shares out the true boxes of an action, in per cent: of a box with n true actions, the n "
        "best-scored claims on the box that overlaps it most, by at least one half. The diagonal is right; "
        "`nothing` is what no claim speaks of. Behind each name stands how many true boxes it has. "
        f"Largest: {'; '.join(told) or 'none'}."
    )
