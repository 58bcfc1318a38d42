"""The tables of an ablation, one for each configuration and parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from roadaware.reports.terminal import format_interval, format_number, format_table

if TYPE_CHECKING:
    import polars as pl


_DOUBTFUL = "?"


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
