"""Results on corner cases as the tables that the command prints, as fractions in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roadaware.analysis.corner_tables import (
    CLAIMS,
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
from roadaware.reports import terminal
from roadaware.reports.scene_text import format_facts
from roadaware.reports.terminal import (
    format_bullets,
    format_cell,
    format_number,
    format_row_interval,
    format_table,
)

if TYPE_CHECKING:
    from pathlib import Path

    from roadaware.analysis.evaluation.runs import SceneRun
    from roadaware.corner_cases.runner import Order, Tally
    from roadaware.corner_cases.scorer_file import Fitted
    from roadaware.metrics.metric_state import SceneResult


_DIGITS = 4


def format_corner_run(run: SceneRun) -> str:
    """One run: groups beside trivial answers, slices, classes, and what is printed."""
    truth = run.facts.get("truth", {})
    row = run.result.counts.row(0, named=True)
    heading = (
        f"{', '.join(run.facts.get('claims', [run.name]))} on {truth.get('dataset') or 'unnamed truth'}: "
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
        _groups(run.result, intervals=bool(run.draws)),
        _total(run.result),
        _slices(run.result, intervals=bool(run.draws)),
        _classes(run.result),
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
        group = line.group if line.answer == CLAIMS else ""
        rows.append([group, line.answer, *(_value(line.rows[heading]) for heading in columns)])
        if (
            intervals
            and line.answer == CLAIMS
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
        f"total of common AP, all AP, all AR and corner AR: {_value(row, intervals=True)}{beside}"
        for row in rows
    )


def _slices(result: SceneResult, *, intervals: bool) -> str:
    if not result.groups:
        return ""
    rows = [
        [name, f"{images:,}", *(_value(each, intervals=intervals) for each in cells)]
        for name, images, cells in build_slice_lines(result)
    ]
    return format_table(["slice", "pictures", *build_slice_header(result)], rows)


def _classes(result: SceneResult) -> str:
    """Classes and super-classes with their objects and recall in each group."""
    groups, metrics, lines = build_class_lines(result)
    if not lines:
        return ""
    rows = [
        [
            label,
            *("-" if n is None else f"{n:,}" for n in counts),
            *(_value(row, intervals=True) for row in found),
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


def _value(row: Mapping[str, Any] | None, *, intervals: bool = False) -> str:
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
        again = f"roadaware read {order.reader} {format_cell(order.root)}"
        lines.append(f"{tally.refused:,} rows or files of the set were refused; {again} says which and why")
    if tally.made and tally.seconds:
        lines.append(f"{tally.made / tally.seconds:,.1f} images per CPU second")
    lines += [f"{drawn} images drawn"] if drawn else []
    lines.append(
        f"next: roadaware evaluate corner-cases --truth TRUTH --predictions {format_cell(target)} --agnostic"
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
    from roadaware.corner_cases.energy import EnergyModel  # with SciPy, which a help need not wait for

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
        f"next: roadaware rescore apply PROPOSALS --fit {terminal.format_cell(str(out))} {more} --output OUT"
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
    shown = terminal.format_cell(str(out))
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
