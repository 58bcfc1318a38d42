"""Results as the tables that the commands print."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roadaware.analysis.evaluation.runs import Run
from roadaware.io.sources import to_printable
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_duration,
    format_number,
    format_row_interval,
    format_table,
)

if TYPE_CHECKING:
    from roadaware.analysis.compare import Comparison


def format_run(run: Run) -> str:
    """One run: what was judged, and every metric with its intervals."""
    name = run.facts.get("config_name")
    lines = [
        f"{format_cell(run.name)}: {run.config.task}, {len(run.state)} samples of "
        f"{len(set(run.state.pedestrian.tolist()))} pedestrians"
        + (f", {run.protocol}" if run.protocol else "")
        + (f", config {name}" if name else "")
    ]
    counts = [row for row in run.result.counts.iter_rows(named=True) if row["group"] is None]
    lines.append("true classes: " + ", ".join(f"{row['class']}: {row['samples']}" for row in counts))
    lines += [format_cell(text) for text in run.result.notes]
    return "\n".join(lines) + "\n\n" + _metrics(run) + _format_undefined(run) + _scenarios(run)


def format_runs(runs: Sequence[Run], names: Sequence[str] = ()) -> str:
    """Several runs of one task beside each other, one column each, with intervals by pedestrian.

    Args:
        runs: at least one.
        names: of the metrics; all where empty.
    """
    names = names or list(runs[0].result.of_group(None)["metric"])
    rows = []
    for name in names:
        found = [run.result.row(name) for run in runs]
        cells = [format_number(row["value"]) for row in found]
        if runs[0].draws:
            ends = [format_row_interval(row, "pedestrian") for row in found]
            cells = [f"{value} {end}" for value, end in zip(cells, ends, strict=True)]
        rows.append([name, *cells])
    text = format_table(["metric", *(run.name for run in runs)], rows)
    return text + ("\n95 % intervals by pedestrian" if runs[0].draws else "")


def format_comparison(comparison: Comparison) -> str:
    """Every metric of two models, their difference with both intervals, and the verdict in words."""
    rows = [
        [
            row["metric"],
            format_number(row["a"]),
            format_number(row["b"]),
            format_number(row["difference"]),
            format_row_interval(row, "pedestrian"),
            format_row_interval(row, "video"),
            _verdict(row["verdict"], row["lower_is_better"]),
        ]
        for row in comparison.table.iter_rows(named=True)
    ]
    first, second = comparison.names
    header = [
        "metric",
        first,
        second,
        "difference",
        "95 % by pedestrian",
        "95 % by video",
        "verdict on the first",
    ]
    note = f"difference = {format_cell(first)} - {format_cell(second)}; {comparison.draws} draws, seed {comparison.seed}"
    return format_table(header, rows, colour=lambda row: _COLOURS.get(row[-1].split(" (")[0])) + f"\n{note}"


_BY_SCENARIO = ("accuracy", "balanced_accuracy", "f1", "average_precision", "auc")
_COLOURS = {"better": "good", "worse": "bad"}


def _verdict(verdict: str, lower_is_better: bool) -> str:
    return f"{verdict} (lower)" if lower_is_better and verdict in ("better", "worse") else verdict


def _metrics(run: Run) -> str:
    rows = []
    for row in run.result.of_group(None).iter_rows(named=True):
        cells = [row["metric"], format_number(row["value"], 4)]
        if run.draws:
            cells.append(format_row_interval(row, "pedestrian"))
            cells.append(format_row_interval(row, "video"))
        rows.append(cells)
    return format_table(
        ["metric", "value", "95 % by pedestrian", "95 % by video"][: 4 if run.draws else 2], rows
    )


def _scenarios(run: Run) -> str:
    """The headline metrics of each scenario."""
    if run.groups is None:
        return ""
    held = run.result.counts.group_by("group", maintain_order=True).agg("samples")
    sizes = {group: sum(samples) for group, samples in held.iter_rows()}
    rows = [
        [group, sizes[group], *(format_number(run.result.value(name, group)) for name in _BY_SCENARIO)]
        for group in sorted(run.result.groups, key=get_sort_key)
    ]
    return "\n\n" + format_table(["scenario", "samples", *_BY_SCENARIO], rows)


def get_sort_key(name: str) -> list[tuple[int, str]]:
    """Sorts `scale=80-100` before `scale=100-150`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _format_undefined(run: Run) -> str:
    """Why metrics have no value: one line per reason."""
    reasons: dict[str, list[str]] = {}
    for row in run.result.of_group(None).iter_rows(named=True):
        if not row["valid"]:
            reasons.setdefault(row["reason"] or "undefined", []).append(row["metric"])
    if not reasons:
        return ""
    items = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return "\n\nundefined:\n" + format_bullets(items)


def format_headline(comparison: Comparison) -> str:
    """Two models in a sentence per headline metric."""
    wanted = ("average_precision", "balanced_accuracy", "auc")
    return "\n".join(line for line in comparison.lines() if line.split(":")[0] in wanted)


def format_run_state(data: Mapping[str, Any]) -> str:
    """How far a long run is, as text.

    Args:
        data: as `io.parallel.read_run_state` gives it.
    """
    name = format_cell(data["folder"])
    if data["state"] == "finished":
        return f"{name}: finished, every part is done ({data['kind'].removeprefix('roadaware-')})"
    who = f"process {data['process']} on {to_printable(data['host'], 60)}"
    state = {
        "at work": f"{who} is at work",
        "stopped": f"no process is at work (the last one was {who}); the same command goes on",
        "unknown": f"{who} was at work {format_duration(data['age_s'])} ago",
    }[data["state"]]
    lines = [
        f"{name}: {data['done']:,} of {data['total']:,} {to_printable(data['what'], 40)} done, "
        f"{data['failed']:,} failed, {data['left']:,} left",
        state,
    ]
    if data["parts_per_s"] is not None:
        left = "" if data["left_s"] is None else f"; {format_duration(data['left_s'])} left"
        lines.append(f"{data['parts_per_s'] * 60:,.4g} a minute{left}")
    lines += [
        f"  {each['parts']:,} x {to_printable(each['reason'])} (the first: {to_printable(each['first'], 80)})"
        for each in data["reasons"][:10]
    ]
    if len(data["reasons"]) > 10:
        lines.append(f"  and {len(data['reasons']) - 10:,} reasons more; --json names all")
    return "\n".join(lines)
