"""Results of the tasks on scenes and on corner cases as tables of text, as fractions in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roadaware.analysis.corner_tables import (
    PREDICTIONS,
    build_class_lines,
    build_lines,
    build_printed_lines,
    build_slice_header,
    build_slice_lines,
    group_undefined,
    select_columns,
    select_plain_facts,
    select_printed_columns,
)
from roadaware.metrics.metric_state import VARIANTS
from roadaware.reports import terminal
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_number,
    format_row_interval,
    format_table,
    format_word,
)
from roadaware.reports.text import format_fact, format_name

if TYPE_CHECKING:
    from pathlib import Path

    from roadaware.analysis.evaluation.runs import SceneRun
    from roadaware.corner_cases.runner import Order, Tally
    from roadaware.corner_cases.scorers import Fitted
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
        f"{', '.join(run.facts.get('predictions', [run.name]))} on {truth.get('dataset') or 'unnamed truth'}: "
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
        format_summary(run.result, intervals=bool(run.resamples)),
        _slices(run.result, run.task.items, bool(run.resamples)),
        _classes(run.result, run.task.labelled, bool(run.resamples)),
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
    apart = f"{format_cell(first)} - {format_cell(second)}"
    note = f"difference = {apart}; {found.resamples} resamples of videos, seed {found.seed}"
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


def format_corner_run(run: SceneRun) -> str:
    """One run: groups beside trivial answers, slices, classes, and what is printed."""
    truth = run.facts.get("truth", {})
    row = run.result.counts.row(0, named=True)
    heading = (
        f"{', '.join(run.facts.get('predictions', [run.name]))} on {truth.get('dataset') or 'unnamed truth'}: "
        f"{row['items']:,} images; config {run.config_name}"
    )
    found = [f"{count:,} {what}" for what, count in run.facts.get("findings", {}).items()]
    routing = [f"{name}: {value}" for name, value in run.facts.get("routing", {}).items()]
    reasons = group_undefined(run.result)
    parts = [
        "\n".join(
            [format_cell(heading), *map(format_cell, routing), *format_facts(select_plain_facts(run.result))]
        ),
        "\n".join(format_cell(note) for note in (*truth.get("notes", []), *found, *run.result.notes)),
        _groups(run.result, intervals=bool(run.resamples)),
        _total(run.result),
        _format_corner_slices(run.result, intervals=bool(run.resamples)),
        _format_corner_classes(run.result),
        _format_printed(run.result, run.facts.get("printed", [])),
        "undefined:\n"
        + format_bullets(f"{', '.join(_short(names))}: {why}" for why, names in reasons.items())
        if reasons
        else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _groups(result: SceneResult, *, intervals: bool) -> str:
    """Each group with the predictions, their intervals, and the trivial answers."""
    columns = select_columns(result)
    rows = []
    for line in build_lines(result):
        group = line.group if line.answer == PREDICTIONS else ""
        rows.append([group, line.answer, *(_format_corner_value(line.rows[heading]) for heading in columns)])
        if (
            intervals
            and line.answer == PREDICTIONS
            and any((row or {}).get("valid") for row in line.rows.values())
        ):
            ends = (line.rows[heading] or {} for heading in columns)
            shown = (format_row_interval(row, "video") for row in ends)
            rows.append(["", "95 % by scene", *shown])
    return format_table(["group", "answer", *columns], rows, left=2)


def _total(result: SceneResult) -> str:
    """The sum of the challenge of 2022, where it is asked for."""
    rows = [row for row in result.whole() if row["metric"] == "total"]
    beside = "".join(
        f"; {name} {format_number(values.get('total'), _DIGITS)}" for name, values in result.baselines.items()
    )
    return "".join(
        f"total of common AP, all AP, all AR and corner AR: {_format_corner_value(row, intervals=True)}{beside}"
        for row in rows
    )


def _format_corner_slices(result: SceneResult, *, intervals: bool) -> str:
    if not result.groups:
        return ""
    rows = [
        [name, f"{images:,}", *(_format_corner_value(each, intervals=intervals) for each in cells)]
        for name, images, cells in build_slice_lines(result)
    ]
    return format_table(["slice", "pictures", *build_slice_header(result)], rows)


def _format_corner_classes(result: SceneResult) -> str:
    """Classes and super-classes with their objects and recall in each group."""
    groups, metrics, lines = build_class_lines(result)
    if not lines:
        return ""
    rows = [
        [
            label,
            *("-" if n is None else f"{n:,}" for n in counts),
            *(_format_corner_value(row, intervals=True) for row in found),
        ]
        for label, counts, found in lines
    ]
    return format_table(["class", *(f"{group} objects" for group in groups), *metrics], rows)


def _format_printed(result: SceneResult, printed: list[dict[str, Any]]) -> str:
    ends = select_printed_columns(result, printed)
    if not ends:
        return ""
    numbers = ", ".join(dict.fromkeys(row["table"] for row in printed))
    lines = [f"printed in tables {numbers} of the paper, of other detectors on CODA's images:"]
    for group in dict.fromkeys(heading.partition(" ")[0] for heading in ends):
        places = [n for n, heading in enumerate(ends) if heading.startswith(f"{group} ")]
        header = [f"{group}: detector", *(list(ends)[n].partition(" ")[2] for n in places)]
        rows = [
            [name, *(format_number(values[n], 3) for n in places)]
            for name, values in build_printed_lines(result, printed)
            if any(values[n] is not None for n in places)
        ]
        lines.append(format_table(header, rows))
    return "\n\n".join(lines)


def _format_corner_value(row: Mapping[str, Any] | None, *, intervals: bool = False) -> str:
    if row is None or row["value"] is None:
        return "-"
    shown = format_number(row["value"], _DIGITS)
    if not intervals or row.get("low_video") is None:
        return shown
    return f"{shown} {format_row_interval(row, 'video')}"


def _short(names: list[str], most: int = 4) -> list[str]:
    return [*names[:most], f"and {len(names) - most} more"] if len(names) > most + 1 else names


# Proposals of corner cases.

_REASONS = 10


def format_proposals(order: Order, target: Path, tally: Tally, drawn: int) -> str:
    """What was proposed, and what was not.

    Args:
        order: what was asked for.
        target: folder of the proposals.
        tally: what came of it.
        drawn: images whose steps were drawn.
    """
    left_out = [
        name
        for name, given in (("background removal", order.semantics), ("common classes", order.detections))
        if given is None
    ]
    rows = [(step, f"{count:,}") for step, count in tally.proposals.items()]
    lines = [
        f"{tally.pictures:,} images with a sweep, {tally.with_one:,} of them with a proposal",
        format_table(["proposals", "count"], rows),
    ]
    if left_out:
        lines.append(f"left out, since nothing was given for it: {' and '.join(left_out)}")
    if tally.skipped:
        total = sum(tally.skipped.values())
        lines += [f"{total:,} images without proposals because of this:", format_reasons(tally.skipped)]
    if tally.odd:
        lines += ["odd about images with proposals:", format_reasons(tally.odd)]
    if tally.wondered:
        lines += ["odd about the set itself:", format_reasons(tally.wondered)]
    if tally.refused:
        again = f"roadaware read {order.reader} {format_word(order.root)}"
        lines.append(f"{tally.refused:,} rows or files of the set were refused; {again} says which and why")
    if tally.made and tally.seconds:
        lines.append(f"{tally.made / tally.seconds:,.1f} images per CPU second")
    lines += [f"{drawn} images drawn"] if drawn else []
    lines.append(
        f"next: roadaware evaluate corner-cases --truth TRUTH --predictions {format_word(target)} --agnostic"
    )
    return "\n".join(lines)


def format_reasons(reasons: Mapping[str, int]) -> str:
    """The commonest reasons with their numbers, and how many more there are.

    Args:
        reasons: to how many images, the commonest first.
    """
    lines = [f"{count:,}: {format_cell(reason)}" for reason, count in list(reasons.items())[:_REASONS]]
    more = len(reasons) - _REASONS
    return format_bullets([*lines, f"and {more:,} further reasons (--json lists all)"] if more > 0 else lines)


def format_fitted(fitted: Fitted, out: Path) -> str:
    """A re-scorer, and what comes next.

    Args:
        fitted: the re-scorer.
        out: its file.
    """
    from roadaware.corner_cases.scorers import EnergyModel  # with SciPy, which a help need not wait for

    model, about = fitted.model, fitted.about
    sets = ", ".join(name or "an unnamed set" for name in about["datasets"])
    lines = [f"fitted on {about['pictures']:,} images of {sets} (fit {fitted.digest})"]
    if isinstance(model, EnergyModel):
        rows = [
            (name, f"{about[name]:,}", f"{each.shape:.3g}", f"{each.scale:.3g}", f"{each.location:.3g}")
            for name, each in (("known", model.known), ("unknown", model.unknown))
        ]
        lines.append(terminal.format_table(["objects", "boxes", "shape", "scale", "location"], rows))
        more = "--detections DETECTIONS"
    else:
        crops = ", ".join(f"{about[name]:,} {name}" for name in ("common", "background", "proposals"))
        lines.append(f"crops: {crops}; the bank keeps {len(model.features):,} of {fitted.asked['features']}")
        lines += [f"{about['refused']:,} images could not be opened"] if about["refused"] else []
        more = "--dataset DATASET"
    lines.append(
        f"next: roadaware rescore apply PROPOSALS --fit {terminal.format_word(out)} {more} --output OUT"
    )
    return "\n".join(lines)


def format_rescored(out: Path, groups: Sequence[Mapping[str, Any]], count: int) -> str:
    """What re-scoring came to.

    Args:
        out: folder of the proposals.
        groups: of each re-scorer, as the notes of the proposals have it, and more.
        count: of the proposals.
    """
    lines = []
    for each in groups:
        what = "a detection" if each["by"] == "energy" else "an image to look at"
        lines.append(f"{each['by']} (fit {each['fit']}): {each['met']:,} of {count:,} proposals have {what}")
        if each["neutral"]:
            lines.append(f"  the other {each['neutral']:,} keep the neutral 0.5")
        lines += [
            f"  {n:,} images could not be opened: {terminal.format_cell(why)}"
            for why, n in each["refused"].items()
        ]
        if each["leaked"]:
            lines.append(f"  LEAK: it was fitted on {each['leaked']:,} of these {each['pictures']:,} images")
        if each["shared_videos"]:
            lines.append(f"  LEAK: it was fitted on images of {each['shared_videos']:,} of these videos")
        elif each["shared_videos"] is None:
            lines.append("  whether it was fitted on other images of these videos is not known")
    shown = terminal.format_word(out)
    lines.append(f"next: roadaware evaluate corner-cases --truth TRUTH --predictions {shown} --agnostic")
    return "\n".join(lines)


def describe_lost(skipped: Mapping[str, int], refused: int) -> str | None:
    """What `--strict` turns into exit code 1, in words.

    Args:
        skipped: images that were left out, by reason.
        refused: rows and files of the set that its reader did not take.
    """
    lines = [f"{sum(skipped.values()):,} images were left out"] if skipped else []
    lines += [f"{refused:,} rows or files of the set were refused"] if refused else []
    return f"--strict: {' and '.join(lines)}" if lines else None
