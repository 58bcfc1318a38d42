"""Why claims fail, drawn: what mending each kind of fault would gain, kind by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.reports.page import Block, Pictures, Points
from roadaware.reports.picture import FULL, GREY, INK, Picture, canvas, styled
from roadaware.reports.text import count, number, short, signed, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROW_IN, _HEAD_IN = 0.42, 0.6
_LEVELS = {"frame": "boxes", "video": "tubes"}
_STRONG = 0.25
"""The gain from which cells have the darkest colour."""


def fault_blocks(faults: pl.DataFrame) -> list[Block]:
    """One picture for boxes and one for tubes, and what the faults mean.

    Args:
        faults: what `roadaware.metrics.detection.evidence.error_table` gave for each level, with
            `threshold`.
    """
    levels = faults["level"].unique(maintain_order=True).to_list()
    pictures = tuple(fault_grid(faults.filter(pl.col("level") == level)) for level in levels)
    met = faults.filter(pl.col("claims") > 0).unique("fault", maintain_order=True)
    meanings = tuple(f"{words(row['fault'])}: {row['meaning']}" for row in met.iter_rows(named=True))
    return [Pictures(pictures, "Why claims fail"), Points(meanings, "What the faults are")]


def fault_grid(faults: pl.DataFrame) -> Picture:
    """Kinds by faults: the gain in mean average precision if each fault were mended, each alone.

    Args:
        faults: of one level.
    """
    level, threshold = str(faults["level"][0]), float(faults["threshold"][0])
    kinds = faults["kind"].unique(maintain_order=True).to_list()
    met = faults.group_by("fault", maintain_order=True).agg(pl.col("claims").sum())
    names = met.filter(pl.col("claims") > 0)["fault"].to_list()
    cells = {(row["kind"], row["fault"]): row for row in faults.iter_rows(named=True)}
    with styled():
        figure, axes = canvas(FULL, _HEAD_IN + _ROW_IN * max(1, len(kinds)))
        for y, kind in enumerate(kinds):
            for x, name in enumerate(names):
                _cell(axes, x, y, cells[kind, name])
        axes.set(xlim=(-0.5, max(1, len(names)) - 0.5), ylim=(len(kinds) - 0.5, -0.5))
        axes.set_xticks(range(len(names)), [short(words(name), 30).replace(" ", "\n", 1) for name in names])
        axes.set_yticks(range(len(kinds)), [short(kind, 30) for kind in kinds])
        axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
    where = f"{_LEVELS.get(level, level)} at {threshold:g}"
    caption = (
        f"Large numbers are points of mean average precision of {where} that would be gained if the fault "
        f"were mended alone; small ones count claims, or missed truth. {_told(faults, kinds)}"
    )
    return Picture(f"What mending would gain: {where}", caption, figure)


def _cell(axes: Axes, x: int, y: int, row: dict[str, Any]) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    gain = row["gain"]
    share = min(1.0, max(0.0, gain or 0.0) / _STRONG)
    face = colormaps["Blues"](0.04 + 0.86 * share)
    axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=face, edgecolor="none"))
    ink = "white" if share > 0.6 else INK
    says = "–" if gain is None else "0" if not row["claims"] else signed(100 * gain, 1)
    axes.text(x, y - 0.1, says, ha="center", va="center", color=ink, fontsize=8.5)
    tone = "white" if share > 0.6 else GREY
    axes.text(x, y + 0.27, count(row["claims"]), ha="center", va="center", color=tone, fontsize=6.5)


def _told(faults: pl.DataFrame, kinds: list[str]) -> str:
    """The largest gain of each kind."""
    told = []
    for kind in kinds:
        held = faults.filter(pl.col("kind") == kind).drop_nulls("gain").sort("gain", descending=True)
        if len(held) and held["gain"][0] > 0:
            told.append(f"{kind} {words(held['fault'][0])} ({number(100 * held['gain'][0], 1)})")
    return f"Most is lost by: {', '.join(told)}." if told else ""
