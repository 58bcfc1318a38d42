"""The tables of an ablation, one for each configuration and parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_interval,
    format_number,
    format_table,
)

if TYPE_CHECKING:
    import polars as pl

    from roadaware.protocols.copg_ablation import GridFound


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
    doubts = rows.drop_nulls("doubt").unique("doubt", maintain_order=True)
    found += [f"{_DOUBTFUL} {row['knob']} {row['value']}: {row['doubt']}" for row in doubts.to_dicts()]
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
        doubt = _DOUBTFUL if row["doubt"] else ""
        cells += [format_number(row["printed_ap"]), format_number(row["printed_ar"])]
        cells += [_count(row["printed_proposals"]) + doubt, _count(row["printed_scenes"])]
    return cells


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
