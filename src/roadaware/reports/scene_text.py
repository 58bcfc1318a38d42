"""Results of the tasks on scenes as the tables that the commands print, as fractions in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roadaware.metrics.metric_state import VARIANTS
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_number,
    format_row_interval,
    format_table,
)
from roadaware.reports.text import format_fact, format_name

if TYPE_CHECKING:
    from roadaware.analysis.evaluation.runs import SceneRun
    from roadaware.metrics.metric_state import SceneResult

_MOST_CLASSES = 80
_DIGITS = 4
_BESIDE = ("per_frame_capacity", "person_recall")
_IN_NOTES = ("tied_scores", "carried_frames")
"""Facts that the notes tell in words: a span for each class is for programs."""


def format_scene_run(run: SceneRun) -> str:
    """One run: what was judged how, every metric beside the baselines, slices and classes."""
    truth = run.facts.get("truth", {})
    heading = (
        f"{', '.join(run.facts.get('claims', [run.name]))} on {truth.get('dataset') or 'unnamed truth'}: "
        f"{_size(run)}; config {run.config_name}"
    )
    found = [f"{count:,} {what}" for what, count in run.facts.get("findings", {}).items()]
    notes = [
        format_cell(note)
        for note in (*truth.get("notes", []), *found, *run.facts.get("lacking", []), *run.result.notes)
    ]
    parts = [
        "\n".join([format_cell(heading), *format_facts(run.result.facts)]),
        "\n".join(notes),
        format_summary(run.result, intervals=bool(run.draws)),
        _slices(run.result, run.task.items, bool(run.draws)),
        _classes(run.result, run.task.labelled, bool(run.draws)),
        _format_undefined(run.result),
    ]
    return "\n\n".join(part for part in parts if part)


def format_facts(facts: dict[str, Any]) -> list[str]:
    """What belongs beside every number, one line for each."""
    return [
        format_cell(f"{format_name(name)}: {format_fact(value)}")
        for name, value in facts.items()
        if name not in _IN_NOTES
    ]


def format_summary(result: SceneResult, *, intervals: bool) -> str:
    """The metrics of the whole set, with intervals, and the trivial answers beside them."""
    rows = []
    for row in result.whole():
        cells = [row["metric"], format_number(row["value"], _DIGITS)]
        if intervals:
            cells.append(format_row_interval(row, "video", _DIGITS))
        cells += [format_number(values.get(row["metric"]), _DIGITS) for values in result.baselines.values()]
        rows.append([*cells, f"{row['n']:,}"])
    header = ["metric", "value", *(["95 % by video"] if intervals else []), *result.baselines, "n"]
    return format_table(header, rows)


def format_scene_runs(runs: Sequence[SceneRun]) -> str:
    """Several runs beside each other, one column each, with their capacities and trivial answers below."""
    values = [run.result.values() for run in runs]
    names = dict.fromkeys(row["metric"] for run in runs for row in run.result.whole())
    rows = [[name, *(format_number(held.get(name), _DIGITS) for held in values)] for name in names]
    for trivial in dict.fromkeys(name for run in runs for name in run.result.baselines):
        answers = [run.result.baselines.get(trivial, {}) for run in runs]
        rows += [
            [f"{name}, {trivial}", *(format_number(held.get(name), _DIGITS) for held in answers)]
            for name in names
        ]
    for fact in _BESIDE:
        if any(fact in run.result.facts for run in runs):
            rows.append([format_name(fact), *(format_fact(run.result.facts.get(fact)) for run in runs)])
    header = [f"{run.name} ({run.config_name})" for run in runs]
    return format_table(["metric", *header], rows)


def format_scene_comparison(found: Any) -> str:
    """Two runs: every metric, and the classes whose difference is more than chance."""
    first, second = found.names
    rows = list(found.table.iter_rows(named=True))
    trivial = list(found.baselines.values())
    whole = [_format_row(row, trivial) for row in rows if row["label"] is None]
    differ = [
        _format_row(row) for row in rows if row["label"] is not None and row["verdict"] in ("better", "worse")
    ]
    header = ["metric", first, second, "difference", "95 % by video", "verdict on the first"]
    parts = [format_table([*header[:3], *found.baselines, *header[3:]], whole, colour=_tone)]
    if differ:
        shown = format_table(["class", *header[1:]], differ[:_MOST_CLASSES], colour=_tone)
        parts.append(f"classes that differ:\n{shown}")
    note = f"difference = {format_cell(first)} - {format_cell(second)}; {found.draws} resamples of videos, seed {found.seed}"
    return "\n\n".join([*parts, "\n".join([*format_facts(found.beside), note])])


def _size(run: SceneRun) -> str:
    row = run.result.counts.row(0, named=True)
    return f"{row['videos']:,} videos, {row['items']:,} {run.task.items}"


def _slices(result: SceneResult, items: str, intervals: bool) -> str:
    """The metrics of each slice, with how much is in it."""
    if not result.groups:
        return ""
    names = [row["metric"] for row in result.whole() if not row["metric"].endswith(VARIANTS)]
    sizes = {row["group"]: row["items"] for row in result.counts.iter_rows(named=True)}
    rows = []
    for group in result.groups:
        held = {row["metric"]: row for row in result.of_group(group).iter_rows(named=True)}
        values = [_value(held.get(name), intervals) for name in names]
        rows.append([group, f"{sizes[group]:,}", *values])
    return format_table(["slice", items, *names], rows)


def _classes(result: SceneResult, labelled: str, intervals: bool) -> str:
    """The metrics of each class; those that nothing is true of are named below."""
    held = result.classes()
    if not held:
        return ""
    metrics = tuple(dict.fromkeys(metric for rows in held.values() for metric in rows))
    rows, absent = [], []
    for label, found in held.items():
        if not any(row["valid"] for row in found.values()):
            absent.append(label)
            continue
        counted = f"{next(iter(found.values()))['n']:,}"
        rows.append([label, counted, *(_value(found.get(metric), intervals) for metric in metrics)])
    shown = format_table([labelled, "n", *metrics], rows[:_MOST_CLASSES]) if rows else ""
    more = len(rows) - _MOST_CLASSES
    tail = [f"... and {more} more; --json lists all of them"] if more > 0 else []
    tail += [f"undefined: {format_cell(', '.join(absent))}"] if absent else []
    return "\n".join([*([shown] if shown else []), *tail])


def _format_undefined(result: SceneResult) -> str:
    """Why metrics of the whole have no value."""
    reasons: dict[str, list[str]] = {}
    for row in result.whole():
        if not row["valid"]:
            reasons.setdefault(row["reason"] or "undefined", []).append(row["metric"])
    if not reasons:
        return ""
    return "undefined:\n" + format_bullets(f"{', '.join(names)}: {why}" for why, names in reasons.items())


def _value(row: dict[str, Any] | None, intervals: bool) -> str:
    if row is None or row["value"] is None:
        return "-"
    shown = format_number(row["value"], _DIGITS)
    if not intervals or row["low_video"] is None:
        return shown
    return f"{shown} {format_row_interval(row, 'video')}"


def _format_row(row: dict[str, Any], trivial: Sequence[dict[str, float | None]] = ()) -> list[str]:
    return [
        row["metric"],
        format_number(row["a"], _DIGITS),
        format_number(row["b"], _DIGITS),
        *(format_number(values.get(row["metric"]), _DIGITS) for values in trivial),
        format_number(row["difference"], _DIGITS),
        format_row_interval(row, "video", _DIGITS),
        row["verdict"],
    ]


def _tone(row: Sequence[str]) -> str | None:
    return {"better": "good", "worse": "bad"}.get(row[-1])
