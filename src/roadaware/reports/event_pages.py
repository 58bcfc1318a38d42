"""Pages and JSON of road events out of what a run holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.analysis.evaluation.runs import EventRun
from roadaware.analysis.event_results import (
    CALIBRATED_AT,
    FRAME,
    Column,
    select_classes,
    select_headline,
    select_means,
)
from roadaware.config import to_dict
from roadaware.metrics.detection.matches import compute_pr_curve
from roadaware.protocols.tpami22 import SPLITS, match_printed
from roadaware.reports.curves import ClassCurve, Panel, plot_reliability
from roadaware.reports.event_runs import build_detection_result, build_event_run_facts
from roadaware.reports.event_tables import (
    build_calibration_block,
    build_printed_table,
    build_slice_calibration,
    build_streaming_table,
    build_tracking_table,
)
from roadaware.reports.page import Block, Pictures, report
from roadaware.reports.requirements import build_violation_blocks
from roadaware.reports.text import capitalize_text

if TYPE_CHECKING:
    from roadaware.metrics.detection.matches import Matches
    from roadaware.reports.page import Section

# What stands beside the average precision of road events: tracks, streaming, scores by slice.


def build_streaming_rows(
    summary: pl.DataFrame, found: Mapping[str, Any]
) -> tuple[list[str], list[tuple[str, list[float | None]]]]:
    """The headline means, offline and streaming beside each other.

    Args:
        summary: the offline metrics.
        found: what `evaluate_streaming` gave.

    Returns:
        what the columns hold, and for each kind its values in per cent.
    """
    grid = select_means(summary)
    columns = select_headline(grid.columns)
    rows = []
    for kind in grid.rows:
        values: list[float | None] = []
        for column in columns:
            offline = grid.cells.get((kind, column))
            level = found["frame"] if column.level == FRAME else found["video"].get(column.overlap, {})
            then = level.get(column.threshold, {}).get(kind, {}).get("mean")
            values += [None if offline is None or offline.value is None else 100 * offline.value, then]
        rows.append((kind, values))
    return [name for column in columns for name in (column.words, "streaming")], rows


def describe_clock(found: Mapping[str, Any]) -> str:
    """The clock in words."""
    clock = found["clock"]
    return f"offline, and streaming at {clock['latency_s']:g} s a frame ({clock['scheduler']})"


_CURVES = (("frame", "frame", 0.5), ("video:stiou", "video", 0.2))
_RELIABLE = ("agentness", "agent", "action")


def render_event_runs(runs: Sequence[EventRun], comparisons: Sequence[Any] = (), title: str = "") -> str:
    """One page for one or several runs, and how they compare.

    Args:
        runs: in reading order.
        comparisons: pairs of them.
        title: heading; the names of the runs where empty.
    """
    from roadaware.reports.events import build_event_comparison_section

    sections = [build_event_run_section(run) for run in runs]
    sections += [build_event_comparison_section(found) for found in comparisons]
    heading = title or ", ".join(run.name for run in runs)
    about = sorted({f"{run.dataset} {run.facts.get('split') or ''}".strip() for run in runs})
    return report(sections, title=heading, subtitle=", ".join(["road events", *about]))


def build_event_run_section(run: EventRun, curves: Sequence[str] | None = None) -> Section:
    """One run as a section.

    Args:
        run: what to show.
        curves: kinds of labels with a curve for each class; all of them where None.
    """
    from roadaware.reports.events import build_error_blocks, build_event_section

    facts, more = run.facts, list[Block]()
    printed = SPLITS if run.dataset == "road" else ("test",)
    if facts.get("split") in printed and facts.get("truth", {}).get("printed"):
        rows = match_printed(build_detection_result(run), str(facts["split"]), dataset=run.dataset)
        more += [build_printed_table(rows)] if len(rows) else []
    if facts.get("tracking"):
        more.append(build_tracking_table(facts["tracking"], str(facts.get("tracked", ""))))
    if streaming := facts.get("streaming"):
        names, values = build_streaming_rows(run.summary, streaming)
        more.append(build_streaming_table(names, values, describe_clock(streaming)))
    if violations := facts.get("requirements"):
        more += build_violation_blocks(violations)
    more += [] if run.faults is None else build_error_blocks(run.faults)

    named = facts.get("config_name")
    title = f"{run.name}: {run.dataset}" + (f", config {named}" if named else "")
    # The kinds with more than one class at any level, in their order.
    matches = run.matches
    found = [kind for level, *_ in _CURVES if level in matches for kind in matches[level].kinds]
    drawn = [kind for kind in tuple(dict.fromkeys(found)) if curves is None or kind in curves]
    return build_event_section(
        run.summary,
        title=capitalize_text(title),
        model=run.name,
        config=to_dict(run.config),
        about=_about(run),
        linker=facts.get("linker"),
        panels={kind: list(_panels(run.matches, run.summary, kind)) for kind in drawn},
        strips=run.strips,
        clips=run.clips,
        more=[*more, *_reliability(run)],
        notes=run.notes,
    )


def render_event_comparison(found: Any) -> str:
    """A page for two runs of road events."""
    from roadaware.reports.events import build_event_comparison_section

    return report([build_event_comparison_section(found)], title=" against ".join(found.names))


def _about(run: EventRun) -> dict[str, str]:
    facts, truth = run.facts, run.facts.get("truth", {})
    about = {
        "predictions": ", ".join(facts.get("claims", [])),
        "truth": f"{truth.get('dataset', run.dataset)}, split {facts.get('split') or 'all'}",
        "judged": f"{truth.get('videos', 0):,} videos, {truth.get('boxes', 0):,} true boxes",
        "data digest": build_event_run_facts(run)["data_digest"],
        "resamples": str(run.draws),
        "seed": str(run.seed),
    }
    dropped = facts.get("dropped") or {}
    return about | (
        {"left out": "; ".join(f"{n:,} {what}" for what, n in dropped.items())} if dropped else {}
    )


def _panels(matches: Mapping[str, Matches], summary: pl.DataFrame, kind: str) -> Iterator[Panel]:
    """The curves of each class of a kind, boxes and tubes together."""
    values = select_classes(summary, kind).cells
    levels = [(level, matches[name], at) for name, level, at in _CURVES if name in matches]
    labels = dict.fromkeys(label for _, held, _ in levels for of, label in held.classes if of == kind)
    for label in labels:
        drawn, n_truth = [], 0
        for level, held, threshold in levels:
            if (kind, label) in held.classes and threshold in held.thresholds:
                points = compute_pr_curve(held, kind, label, threshold)
                n_truth = n_truth or points.n_truth
                column = Column(level, "stiou" if level == "video" else "", f"{threshold:g}")
                value = values.get((label, column))
                drawn.append(
                    ClassCurve(column.words, points.precision, points.recall, value.value if value else None)
                )
        yield Panel(label, n_truth, tuple(drawn))


def _reliability(run: EventRun) -> list[Block]:
    """Whether the scores of boxes and tubes mean what they say, for the kinds that have one box each."""
    from roadaware.metrics.detection.calibration import build_calibration_table, score_reliability

    images, tables = [], []
    for name, words, threshold in CALIBRATED_AT:
        held = run.matches.get(name)
        if held is None or threshold not in held.thresholds or not len(held):
            continue
        tables.append((words, build_calibration_table(held, threshold)))
        for kind in (kind for kind in _RELIABLE if kind in held.kinds):
            found = score_reliability(held, threshold, kind)
            if found is not None:
                image = plot_reliability(found.confidence, found.accuracy, found.count)
                title = f"Reliability of scores: {kind}, {words}"
                images.append(type(image)(title, image.caption, image.figure))
    blocks: list[Block] = [build_calibration_block(words, table) for words, table in tables]
    for _, of, _ in CALIBRATED_AT:
        rows = [row for row in run.facts.get("calibration") or [] if row["of"] == of]
        blocks += [build_slice_calibration(of, rows)] if rows else []
    return [*blocks, Pictures(tuple(images), "Are the scores right?")] if images else blocks
