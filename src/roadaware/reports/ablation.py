"""The ablation of the proposals as figures: a small one for each parameter and metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.analysis.corner_tables import CAUTION
from roadaware.reports.picture import DASHES, FULL, GREY, MARKERS, PALE, SERIES, Picture, set_style
from roadaware.reports.text import clip_label, describe_cautions, format_caution

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS = {"ap": "AP", "ar": "AR", "proposals": "proposals"}
_WORDS = {
    "theta_deg": "least angle, degrees",
    "min_points": "least returns",
    "max_distance_m": "farthest, m",
    "max_background": "most background",
    "max_common_iou": "most overlap",
    "inputs": "steps",
}
_PRINTED = "printed, CODA-ONCE"
_SHIFT = 0.09


def plot_ablation(table: pl.DataFrame) -> Picture:
    """AP, AR and proposals over the values of each parameter, with intervals, printed values in grey.

    Args:
        table: of `analysis.corner_tables.build_ablation_table`.
    """
    from matplotlib.figure import Figure

    held = table.filter(pl.col("knob") != "inputs")
    held = table if held.is_empty() else held
    knobs = held["knob"].unique(maintain_order=True).to_list()
    judged = bool(held["ar"].count())
    rows = list(ROWS) if judged else ["proposals"]
    with set_style():
        size = (max(FULL, 1.6 * len(knobs)), 0.7 + 1.45 * len(rows))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), len(knobs), sharey="row", squeeze=False)
        for line, metric in zip(grid, rows, strict=True):
            for axes, knob in zip(line, knobs, strict=True):
                _draw(axes, held.filter(pl.col("knob") == knob), metric)
            line[0].set_ylabel(ROWS[metric])
            line[0].set_ylim(bottom=0)
        for axes, knob in zip(grid[-1], knobs, strict=True):
            axes.set_xlabel(clip_label(_WORDS.get(knob, knob), 22))
        handles = {
            text: handle
            for axes in grid.flat
            for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside upper left", ncols=len(handles))
    return Picture("Parameters of the proposals", _caption(held, knobs, judged=judged), figure)


def _draw(axes: Axes, rows: pl.DataFrame, metric: str) -> None:
    """One parameter: a line for each configuration, and what is printed."""
    values = rows["value"].unique(maintain_order=True).to_list()
    configs = rows["config"].unique(maintain_order=True).to_list()
    for number, config in enumerate(configs):
        mine = rows.filter(pl.col("config") == config)
        at = [values.index(value) + _SHIFT * (number - (len(configs) - 1) / 2) for value in mine["value"]]
        style: dict[str, Any] = {
            "color": SERIES[number % len(SERIES)],
            "marker": MARKERS[number % len(MARKERS)],
            "linestyle": DASHES[number % len(DASHES)],
            "markersize": 4,
        }
        axes.plot(at, mine[metric].to_list(), label=config, **style)
        if metric != "proposals":
            _whiskers(axes, at, mine, metric, style["color"])
    if metric != "proposals":
        first = rows.filter(pl.col("config") == configs[0])
        printed = first[f"printed_{metric}"].to_list()
        if any(value is not None for value in printed):
            places = [values.index(value) for value in first["value"]]
            axes.plot(places, printed, label=_PRINTED, color=GREY, linestyle=":", marker="x", markersize=4)
    own = rows.filter("unchanged")["value"].unique(maintain_order=True).to_list()
    for value in own:
        axes.axvspan(values.index(value) - 0.3, values.index(value) + 0.3, color=PALE, alpha=0.5, lw=0)
    axes.set_xticks(range(len(values)), [clip_label(value, 10) for value in values])
    axes.set_xlim(-0.5, len(values) - 0.5)


def _whiskers(axes: Axes, at: Sequence[float], rows: pl.DataFrame, metric: str, colour: str) -> None:
    ends = zip(at, rows[f"{metric}_low"], rows[f"{metric}_high"], rows[f"{metric}{CAUTION}"], strict=True)
    for x, low, high, caution in ends:
        if low is not None and high is not None:
            axes.plot([x, x], [low, high], color=colour, linewidth=0.9)
            axes.annotate(format_caution(caution).strip(), (x, high), ha="center", va="bottom", fontsize=6)


def _caption(rows: pl.DataFrame, knobs: Sequence[str], *, judged: bool) -> str:
    what = "AP, AR and number of proposals" if judged else "number of proposals"
    parts = [
        f"{what} when one parameter is changed and the others stay ({', '.join(knobs)}); shaded: as it is."
    ]
    if judged:
        for knob in knobs:
            best = rows.filter(pl.col("knob") == knob).drop_nulls("ar").sort("ar", descending=True).head(1)
            for row in best.iter_rows(named=True):
                told = f"{knob}: AR is greatest, {row['ar']:.3f}, at {row['value']} ({row['config']})."
                parts.append(told)
        held = (rows[f"{metric}{CAUTION}"].drop_nulls() for metric in ("ap", "ar"))
        told = describe_cautions("".join(format_caution(why) for column in held for why in column))
        parts += [f"{told}."] if told else []
    return " ".join(parts)
