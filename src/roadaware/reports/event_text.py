"""Results of road events as the tables that the commands print, in per cent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roadaware.analysis import event_results as events
from roadaware.analysis.event_results import select_headline
from roadaware.metrics.tracking import TOTALS, is_fraction
from roadaware.reports.event_pages import build_streaming_rows, describe_clock, format_violations
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_interval,
    format_number,
    format_table,
)

if TYPE_CHECKING:
    import polars as pl

    from roadaware.analysis.evaluation.runs import EventRun
    from roadaware.analysis.event_results import Column, Grid, Value

_MOST_CLASSES = 80


def format_event_run(run: EventRun) -> str:
    """One run: what was judged how, what was left out, every metric, and what stands beside them."""
    facts, truth, intervals = run.facts, run.facts["truth"], bool(run.resamples)
    where = f"split {facts['split']}" if facts["split"] else "all videos"
    heading = (
        f"{', '.join(facts['predictions'])} on {truth['dataset']}, {where}: {truth['videos']:,} videos, "
        f"{truth['boxes']:,} true boxes; config {facts['config_name']}"
    )
    parts = [
        format_cell(heading),
        format_dropped(facts["dropped"]),
        *map(format_cell, run.notes),
        format_event_result(run.summary, intervals=intervals),
        format_tracking(facts.get("tracking"), facts.get("tracked", ""), intervals=intervals),
        format_streaming(run.summary, facts.get("streaming")),
        format_violations(facts.get("requirements"), intervals=intervals),
        _describe_units(run),
    ]
    return "\n\n".join(part for part in parts if part)


def _describe_units(run: EventRun) -> str:
    """What intervals are over; empty where none were asked for."""
    return f"95 % intervals over {run.facts['truth']['videos']:,} videos" if run.resamples else ""


def format_event_result(summary: pl.DataFrame, *, intervals: bool, kinds: Sequence[str] = ()) -> str:
    """The means of each kind, then the classes of each kind at the headline thresholds.

    Args:
        summary: of a result of road events.
        intervals: whether they were asked for.
        kinds: whose classes are listed; all where empty.
    """
    overall = events.select_means(summary)
    action = events.select_means(summary, levels=(events.AV,))
    parts = [
        format_grid(events.select_means(summary, levels=(level,)), "mean AP, %", intervals=intervals)
        for level in (events.FRAME, events.VIDEO)
    ]
    parts.append(_action_text(action, intervals))
    for kind in kinds or events.list_kinds(summary):
        held = events.select_classes(summary, kind)
        if len(held.rows) > 1:
            parts.append(_classes_text(held, kind, intervals))
    parts.append(_groups_text(summary))
    reasons: dict[str, list[str]] = {}
    for (row, column), value in overall.cells.items():
        if value.value is None:
            reasons.setdefault(value.reason or "undefined", []).append(f"{row} ({column.words})")
    parts.append(
        "undefined:\n" + format_bullets(f"{', '.join(names)}: {why}" for why, names in reasons.items())
        if reasons
        else ""
    )
    return "\n\n".join(part for part in parts if part)


def format_grid(grid: Grid, name: str, *, intervals: bool, columns: Sequence[Column] = ()) -> str:
    """A table of values in per cent, with their intervals where there are some.

    Args:
        grid: what was found.
        name: heading of the first column.
        intervals: whether to show them.
        columns: some of the grid's; all where empty.
    """
    shown = columns or grid.columns
    if not grid.rows or not shown:
        return ""
    rows = [
        [row, *(_cell(grid.cells.get((row, column)), intervals) for column in shown)] for row in grid.rows
    ]
    return format_table([name, *(column.words for column in shown)], rows)


def format_event_runs(runs: Sequence[EventRun]) -> str:
    """Several runs beside each other: their means at the headline thresholds, one column each."""
    grids = [events.select_means(run.summary) for run in runs]
    rows = []
    for kind in dict.fromkeys(kind for grid in grids for kind in grid.rows):
        for column in events.select_headline(tuple(dict.fromkeys(c for grid in grids for c in grid.columns))):
            cells = [
                _cell(grid.cells.get((kind, column)), bool(run.resamples))
                for grid, run in zip(grids, runs, strict=True)
            ]
            rows.append([f"{kind}, {column.words}", *cells])
    units = dict.fromkeys(filter(None, map(_describe_units, runs)))
    return "\n".join([format_table(["mean AP, %", *(run.name for run in runs)], rows), *units])


def format_tracking(found: dict[str, Any] | None, tracked: str = "", *, intervals: bool) -> str:
    """Tracking metrics, fractions in per cent and counts as they are; nothing where there are none.

    Args:
        found: metric to its value and interval.
        tracked: which boxes were judged, in words.
        intervals: whether they were asked for.
    """
    if not found:
        return ""
    rows = []
    for name, row in found.items():
        counted = name in TOTALS
        held = [row[key] for key in ("value", "low", "high")]
        value, low, high = map(_times, held) if is_fraction(name) else held
        cells = [name, format_number(value, 0 if counted else 2)]
        ends = format_interval(low, high, 0 if counted else 1, row.get("caution"))
        rows.append([*cells, ends] if intervals else cells)
    header = ["paths as tracks, %", "value", "95 % by video"][: 3 if intervals else 2]
    return "\n".join([*([tracked] if tracked else []), format_table(header, rows)])


def format_streaming(summary: pl.DataFrame, found: Mapping[str, Any] | None) -> str:
    """The headline means, offline and on the simulated clock; nothing where nothing was timed."""
    if found is None:
        return ""

    names, rows = build_streaming_rows(summary, found)
    title = f"mean AP, %: {describe_clock(found)}"
    return format_table(
        [title, *names], [(kind, *(format_number(value, 2) for value in held)) for kind, held in rows]
    )


def format_dropped(dropped: dict[str, int]) -> str:
    """What was left out of the judgement, by reason; nothing where nothing was."""
    return "\n".join(f"{count:,} {format_cell(what)}" for what, count in dropped.items() if count)


def format_event_comparison(found: Any) -> str:
    """Two runs of road events: every mean, and the classes whose difference is more than chance."""
    first, second = found.names
    rows = [_format_row(row) for row in found.table.iter_rows(named=True) if row["label"] is None]
    differ = [
        _format_row(row)
        for row in found.table.iter_rows(named=True)
        if row["label"] is not None and row["verdict"] in ("better", "worse")
    ]
    header = ["metric", first, second, "difference", "95 % by video", "verdict on the first"]
    parts = [format_table(header, rows, colour=_tone)]
    if differ:
        parts.append(
            "classes that differ:\n"
            + format_table(["class", *header[1:]], differ[:_MOST_CLASSES], colour=_tone)
        )
    note = f"in per cent; difference = {format_cell(first)} - {format_cell(second)}; {found.resamples} resamples of videos, "
    return "\n\n".join([*parts, f"{note}seed {found.seed}"])


def _classes_text(grid: Grid, kind: str, intervals: bool) -> str:
    """The classes of one kind, at one threshold of each level."""
    columns = select_headline(grid.columns)
    rows, absent = [], []
    for row in grid.rows:
        held = [grid.cells.get((row, column)) for column in columns]
        counts = [value.n for value in held if value is not None and value.n is not None]
        if not any(counts):
            absent.append(row)
            continue
        rows.append([row, str(counts[0]), *(_cell(value, intervals) for value in held)])
    if not rows:
        return ""
    shown = format_table([kind, "true", *(column.words for column in columns)], rows[:_MOST_CLASSES])
    more = len(rows) - _MOST_CLASSES
    tail = [f"... and {more} more; --json lists all of them"] if more > 0 else []
    tail += [f"without truth: {format_cell(', '.join(absent))}"] if absent else []
    return "\n".join([shown, *tail])


def _action_text(grid: Grid, intervals: bool) -> str:
    """One line for what the vehicle does."""
    values = [value for row in grid.rows for value in grid.row(row)]
    if not values or values[0].value is None:
        return ""
    return f"{grid.columns[0].words}: mean AP {_cell(values[0], intervals)} %"


def _groups_text(summary: pl.DataFrame) -> str:
    """The headline means of each group."""
    names = summary["group"].drop_nulls().unique(maintain_order=True).to_list()
    if not names:
        return ""
    grids = {name: events.select_means(summary, name) for name in names}
    kinds = tuple(dict.fromkeys(kind for grid in grids.values() for kind in grid.rows))
    parts = []
    for column in events.select_headline(next(iter(grids.values())).columns):
        rows = [
            [name, *(_cell(grid.cells.get((kind, column)), False) for kind in kinds)]
            for name, grid in grids.items()
            if any((kind, column) in grid.cells for kind in kinds)
        ]
        parts.append(format_table([f"mean AP, %: {column.words}", *kinds], rows))
    return "\n\n".join(parts)


def _cell(value: Value | None, intervals: bool) -> str:
    if value is None or value.value is None:
        return "-"
    shown = format_number(100 * value.value, 2)
    if not intervals or value.low is None or value.high is None:
        return shown
    return f"{shown} {format_interval(100 * value.low, 100 * value.high, 1, value.caution)}"


def _format_row(row: dict[str, Any]) -> list[str]:
    return [
        row["metric"],
        _percent(row["a"]),
        _percent(row["b"]),
        _percent(row["difference"]),
        format_interval(_times(row["low_video"]), _times(row["high_video"]), 2, row.get("caution_video")),
        row["verdict"],
    ]


def _times(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _percent(value: float | None) -> str:
    return format_number(_times(value), 2)


def _tone(row: Sequence[str]) -> str | None:
    return {"better": "good", "worse": "bad"}.get(row[-1])
