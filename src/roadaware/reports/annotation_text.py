"""The annotation of corner cases in words: lists of images, exports, corrections and agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.formats.proposal_tasks import CONFIG, TASKS
from roadaware.reports import terminal

if TYPE_CHECKING:
    from roadaware.analysis.annotation.agreement import BoxAgreement
    from roadaware.analysis.annotation.cost import Curve
    from roadaware.scenes.tables import Predictions

_MOST_SHOWN = 10


def format_selection(
    table: pl.DataFrame, costs: Mapping[str, float], curve: Curve | None, *, all_known: bool
) -> str:
    """A list of images, what it costs, and what it finds.

    Args:
        table: the list.
        costs: what looking at it costs.
        curve: what it finds; None without ground truth.
        all_known: whether images without a proposal are in it.
    """
    rows = [
        (row["rank"], row["video"], row["frame"], f"{row['priority']:.3f}", row["reason"])
        for row in table.head(_MOST_SHOWN).iter_rows(named=True)
    ]
    saved = f", {100 * costs['saved']:.0f} % less" if all_known else ""
    lines = [
        terminal.format_table(["rank", "video", "frame", "priority", "why"], rows, left=2),
        "",
        f"{costs['listed']:,} of {costs['pictures']:,} images have a proposal: looking at them and judging "
        f"{costs['proposals']:,} proposals takes {terminal.format_duration(costs['seconds'])}, looking at all "
        f"{terminal.format_duration(costs['seconds_of_all'])}{saved}",
    ]
    if not all_known:
        lines.append("images without a proposal are not known: say --videos")
    if curve is None:
        return "\n".join([*lines, "what the list misses is not known without --truth"])
    return "\n".join([*lines, "", *_format_curve(curve)])


def _format_curve(curve: Curve) -> list[str]:
    rows = [
        (
            f"{100 * row['found']:.0f} %",
            row["order"],
            f"{100 * row['looked_share']:.1f} %",
            terminal.format_interval(row["looked_low"], row["looked_high"], 3, row["caution"]),
            terminal.format_duration(row["seconds"]),
            f"{100 * row['saved']:.0f} %",
            terminal.format_interval(row["saved_low"], row["saved_high"], 2, row["caution"]),
        )
        for row in curve.table.iter_rows(named=True)
    ]
    header = ["found", "order", "looked at", "interval", "time", "saved", "interval"]
    totals = curve.totals
    return [
        f"measured on {totals['objects']:,.0f} objects in {totals['with_a_case']:,.0f} of "
        f"{totals['pictures']:,.0f} images; {totals['hits']:,.0f} of {totals['proposals']:,.0f} proposals "
        "meet one",
        terminal.format_table(header, rows, left=2),
        "saved: against looking at all images without proposals and drawing every box; intervals are over "
        "videos",
    ]


def format_export(sent: Predictions, out: Path, written: Sequence[str], left_out: Mapping[str, int]) -> str:
    """What was sent to annotators, and what they do with it.

    Args:
        sent: images with proposals.
        out: the folder of the export.
        written: names of the tasks' files.
        left_out: what was not sent, by reason.
    """
    words = sent.meta.vocabularies["corner"]
    shown = terminal.format_cell(str(out))
    lines = [
        f"{len(sent.frames):,} images with {len(sent.boxes):,} proposals, {len(sent.labels):,} of them "
        f"with a class, {len(words)} classes to choose from",
        *(f"left out: {count:,} {terminal.format_cell(what)}" for what, count in left_out.items()),
        *(f"  {shown}/{name}" for name in written),
    ]
    if TASKS in written:
        lines += [
            f"Label Studio: paste {CONFIG} into the labelling interface, import {TASKS}, and serve the "
            "images with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true; export as JSON"
        ]
    lines.append(f"next: roadaware label import {shown} CORRECTED.json -o LABELS")
    return "\n".join(lines)


def format_corrections(
    n_boxes: int, classes: pl.DataFrame, people: pl.DataFrame, data: Mapping[str, Any], folder: Path | None
) -> str:
    """What became of proposals.

    Args:
        n_boxes: that annotators left.
        classes, people: by class and by annotator.
        data: the same as plain data.
        folder: where it was written to, if anywhere.
    """
    pictures = data["pictures"]
    lines = [
        f"{pictures['done']:,} of {pictures['sent']:,} images done, {n_boxes:,} boxes by "
        f"{len(people)} annotators",
        _table(classes, digits=2),
        "",
        _table(people, digits=1),
    ]
    labour = data["labour"]
    if labour is not None:
        names = {"look_s": "look", "judge_s": "judge", "correct_s": "correct", "draw_s": "draw"}
        told = " ".join(f"--{name}-s {labour[key]:.1f}" for key, name in names.items())
        lines += ["", f"fitted to the times of {labour['pictures']:,} images, for `label select`: {told}"]
    lines += [f"refused: {count:,} {terminal.format_cell(what)}" for what, count in data["refused"].items()]
    lines += [f"note: {terminal.format_cell(note)}" for note in data["notes"]]
    if folder is not None and len(people) > 1:
        lines.append(f"next: roadaware label agree {terminal.format_cell(str(folder))} -o CONSENSUS")
    return "\n".join(lines)


def _table(held: pl.DataFrame, digits: int) -> str:
    rows = [
        [
            terminal.format_number(value, digits) if isinstance(value, float) or value is None else value
            for value in row
        ]
        for row in held.iter_rows()
    ]
    return terminal.format_table([name.replace("_", " ") for name in held.columns], rows)


def format_agreement(found: BoxAgreement, disputes: pl.DataFrame, data: Mapping[str, Any]) -> str:
    """How far annotators agree, and what is disputed.

    Args:
        found: the agreement.
        disputes: of the consensus.
        data: the same as plain data.
    """
    rows = [
        (
            row["group"] or "all",
            row["measure"].replace("_", " "),
            terminal.format_number(row["value"]),
            terminal.format_row_interval(row, "picture", 2),
            terminal.format_row_interval(row, "video", 2),
            f"{row['n']:,}",
        )
        for row in found.table.iter_rows(named=True)
    ]
    counts = [f"{row['things']:,} by {row['n_found']} of {row['n_saw']}" for row in data["found_by"]]
    lines = [
        f"{data['pictures']:,} images that two or more of {len(data['annotators'])} annotators saw; "
        f"{data['pictures_one_alone_saw']:,} that one alone saw",
        f"things drawn: {'; '.join(counts) or 'none'}",
        terminal.format_table(
            ["of", "measure", "value", "over images", "over videos", "rests on"], rows, left=2
        ),
        "",
        f"{data['boxes_agreed']:,} boxes that most drew; {data['disputes']:,} disputes for a further look:",
    ]
    reasons = disputes["reason"].value_counts().sort("count", descending=True)
    lines += [f"  {count:,} {terminal.format_cell(reason)}" for reason, count in reasons.iter_rows()]
    return "\n".join(lines)
