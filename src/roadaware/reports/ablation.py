"""The ablation of the proposals: a small figure for each parameter and metric, and the tables that the command prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.analysis.corner_tables import CAUTION
from roadaware.reports.picture import DASHES, FULL, GREY, MARKERS, PALE, SERIES, Picture, set_style
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_interval,
    format_number,
    format_table,
)
from roadaware.reports.text import clip_label, describe_cautions, format_caution

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from roadaware.protocols.copg_ablation import GridFound


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
            colour = style["color"]
            ends = zip(
                at, mine[f"{metric}_low"], mine[f"{metric}_high"], mine[f"{metric}{CAUTION}"], strict=True
            )
            for x, low, high, caution in ends:
                if low is not None and high is not None:
                    axes.plot([x, x], [low, high], color=colour, linewidth=0.9)
                    axes.annotate(
                        format_caution(caution).strip(), (x, high), ha="center", va="bottom", fontsize=6
                    )
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


def _caption(rows: pl.DataFrame, knobs: Sequence[str], *, judged: bool) -> str:
    what = "AP, AR and number of proposals" if judged else "number of proposals"
    parts = [
        f"{what} when one parameter is changed and the others stay ({', '.join(knobs)}); shaded: as it is."
    ]
    if judged:
        for knob in knobs:
            best = rows.filter(pl.col("knob") == knob).drop_nulls("ar").sort("ar", descending=True).head(1)
            for row in best.iter_rows(named=True):
                text = f"{knob}: AR is greatest, {row['ar']:.3f}, at {row['value']} ({row['config']})."
                parts.append(text)
        held = (rows[f"{metric}{CAUTION}"].drop_nulls() for metric in ("ap", "ar"))
        text = describe_cautions("".join(format_caution(why) for column in held for why in column))
        parts += [f"{text}."] if text else []
    return " ".join(parts)


# The tables that the command prints, one for each configuration and parameter.

_DOUBTFUL = "?"


def format_ablation(
    table: pl.DataFrame, found: GridFound, left_out: Sequence[str], *, rows: int, judged: bool
) -> str:
    """All of an ablation: its tables, what was left out and why, and how fast it went.

    Args:
        table: of `analysis.corner_tables.build_ablation_table`.
        found: proposals of all variants.
        left_out: parameters that were not varied, in words.
        rows: of the grid.
        judged: whether something says which objects are corner cases.
    """
    lines = [f"{found.pictures:,} images with a sweep; AP, AR in fractions, * is the configuration as it is"]
    lines += format_ablation_tables(table)
    if not judged:
        lines.append("AP and AR are unknown: nothing says which objects are corner cases (see --truth)")
    lines += [f"left out: {format_cell(each)}" for each in left_out]
    if found.skipped:
        lines.append(f"{sum(found.skipped.values()):,} images without proposals because of this:")
        reasons = (f"{count:,}: {format_cell(reason)}" for reason, count in found.skipped.items())
        lines.append(format_bullets(reasons))
    if found.made and found.seconds:
        steps = ", ".join(f"{step} {count:,}" for step, count in found.runs.items())
        rate = found.made * rows / found.seconds
        lines.append(f"{rate:,.0f} rows of an image per CPU second; runs of steps: {steps}")
    return "\n\n".join(lines)


def format_ablation_tables(rows: pl.DataFrame) -> list[str]:
    """One table for each configuration and parameter, in their order; doubtful printed numbers are marked.

    Args:
        rows: of `analysis.corner_tables.build_ablation_table`.
    """
    judged = bool(rows["ar"].count())
    found = []
    for (config, knob), part in rows.group_by("config", "knob", maintain_order=True):
        printed = bool(part["printed_ar"].count())
        header = [f"{config}: {knob}"]
        header += ["AP", "95 %", "AR", "95 %", "AR over *", "95 %", "AR50", "AR30"] if judged else []
        header += ["proposals", "pictures"]
        header += ["printed AP", "AR", "proposals", "scenes"] if printed else []
        lines = [_line(row, judged=judged, printed=printed) for row in part.iter_rows(named=True)]
        found.append(format_table(header, lines))
    uncertainties = rows.drop_nulls("doubt").unique("doubt", maintain_order=True)
    found += [f"{_DOUBTFUL} {row['knob']} {row['value']}: {row['doubt']}" for row in uncertainties.to_dicts()]
    return found


def _line(row: Mapping[str, Any], *, judged: bool, printed: bool) -> list[str]:
    cells = [f"{row['value']}{' *' if row['unchanged'] else ''}"]
    if judged:
        for name in ("ap", "ar"):
            cells += [
                format_number(row[name]),
                format_interval(row[f"{name}_low"], row[f"{name}_high"], 3, row[f"{name}_caution"]),
            ]
        gain = row["ar_gain"]
        cells.append("-" if gain is None else f"{gain:+.3f}")
        cells.append(
            format_interval(row["ar_gain_low"], row["ar_gain_high"], 3, row["ar_gain_caution"], sign="+")
        )
        cells += [format_number(row["ar50"]), format_number(row["ar30"])]
    cells += [f"{row['proposals']:,}", f"{row['pictures']:,}"]
    if printed:
        uncertainty = _DOUBTFUL if row["doubt"] else ""
        cells += [format_number(row["printed_ap"]), format_number(row["printed_ar"])]
        cells += [_count(row["printed_proposals"]) + uncertainty, _count(row["printed_scenes"])]
    return cells


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
