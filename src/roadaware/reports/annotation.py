"""The annotation of corner cases: discovery curve, outcomes of proposals and agreement, as a page and in words."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from PIL import Image

from roadaware.analysis.annotation.agreement import MEASURES, BoxAgreement, Consensus
from roadaware.analysis.annotation.cost import Curve, group_annotations
from roadaware.formats.proposal_tasks import CONFIG, TASKS
from roadaware.io.csv import format_csv
from roadaware.io.folders import encode_json
from roadaware.reports import terminal
from roadaware.reports.drawing import COLOURS, Marked, draw_marks
from roadaware.reports.page import (
    BLUE,
    DASHES,
    GREEN,
    GREY,
    HALF,
    INK,
    VERMILLION,
    Block,
    Note,
    Picture,
    Pictures,
    Section,
    Table,
    TableCell,
    create_canvas,
    report,
    set_style,
)
from roadaware.reports.runs import encode_parquet
from roadaware.reports.text import format_count, format_number, format_percent, format_row_interval
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.sensors import open_frame
from roadaware.scenes.store import encode
from roadaware.scenes.tables import Scenes

if TYPE_CHECKING:
    from roadaware.analysis.annotation.agreement import BoxAgreement
    from roadaware.analysis.annotation.cost import Curve
    from roadaware.scenes.tables import Predictions


_COLOURS = {"list": BLUE, "random": GREY, "spread": VERMILLION, "oracle": GREEN}
_NAMES = {
    "list": "the list",
    "random": "by chance",
    "spread": "by chance, each video in turn",
    "oracle": "the best there is",
}
MOST_ROWS = 200
_PAGE = "report.html"


def plot_discovery(curve: Curve) -> Picture:
    """Share found over the share of images looked at, by each order, with bands over videos."""
    with set_style():
        figure, axes = create_canvas(1.25 * HALF, 0.95 * HALF)
        for place, (order, values) in enumerate(curve.found.items()):
            axes.plot(
                100 * curve.looked,
                100 * values,
                color=_COLOURS[order],
                linestyle=DASHES[place % len(DASHES)],
                label=_NAMES[order],
            )
            if order in curve.low:
                axes.fill_between(
                    100 * curve.looked,
                    100 * curve.low[order],
                    100 * curve.high[order],
                    color=_COLOURS[order],
                    alpha=0.15,
                    linewidth=0,
                )
        axes.set(xlim=(0, 100), ylim=(0, 102), xlabel="images looked at, %")
        axes.set_ylabel("objects found, %" if curve.unit == "objects" else "images with a case found, %")
        axes.grid(visible=True)
        axes.legend(loc="lower right", labelcolor=INK)
    lines = [
        f"{format_percent(row['found'], 1)} of what there is takes {format_percent(row['looked_share'], 1)} of the images"
        for row in curve.table.filter(pl.col("order") == "list").iter_rows(named=True)
    ]
    return Picture("What has to be looked at", f"By the list: {'; '.join(lines)}.", figure)


def build_selection_section(planned: dict[str, float], curve: Curve | None) -> Section:
    """Section on a list: expected cost, and the objects found where ground truth is known.

    Args:
        planned: what `labour.planned` gave.
        curve: what `finding.curve` gave; None without ground truth.
    """
    says = (
        f"{format_count(round(planned['listed']))} of {format_count(round(planned['pictures']))} images have a proposal; "
        f"looking at them takes {_hours(planned['seconds'])}, at all {_hours(planned['seconds_of_all'])}.",
    )
    if curve is None:
        note = Note("Nobody said what is true, so that nobody knows what the list misses.", "doubt")
        return Section("Images worth a look", says, (note,))
    rows = [_finding_row(row) for row in curve.table.iter_rows(named=True)]
    header = ("found", "order", "images looked at", "interval", "time", "saved", "interval")
    table = Table(
        header,
        tuple(rows),
        "rlrrrrr",
        "What has to be looked at until so much is found",
        "Time is of one person; saved is against looking at all images without proposals. Intervals over "
        "videos.",
    )
    blocks: list[Block] = [Pictures((plot_discovery(curve),)), table]
    return Section("Images worth a look", says, tuple(blocks))


def _finding_row(row: dict[str, Any]) -> tuple[TableCell, ...]:
    return (
        format_percent(row["found"], 1),
        _NAMES[row["order"]],
        format_percent(row["looked_share"], 1),
        _span(row["looked_low"], row["looked_high"]),
        _hours(row["seconds"]),
        format_percent(row["saved"], 1),
        _span(row["saved_low"], row["saved_high"]),
    )


def build_corrections_section(classes: pl.DataFrame, people: pl.DataFrame) -> Section:
    """Section on the outcomes of proposals.

    Args:
        classes: what `fates.summary` gave.
        people: what `fates.by_annotator` gave.
    """
    whole = classes.filter(pl.col("class") == "all").row(0, named=True)
    left = whole["kept"] + whole["moved"]
    says = (
        f"{format_count(left)} of {format_count(whole['proposals'])} judgements left the proposal; "
        f"{format_count(whole['added'])} boxes were added.",
    )
    return Section(
        "What became of proposals", says, (_table(classes, "By class"), _table(people, "By annotator"))
    )


def build_agreement_section(found: BoxAgreement, disputes: pl.DataFrame) -> Section:
    """Section on the agreement of annotators, and the open disputes.

    Args:
        found: what `agreement.box_agreement` gave.
        disputes: of the consensus.
    """
    rows: list[tuple[TableCell, ...]] = []
    for row in found.table.iter_rows(named=True):
        ends = [format_row_interval(row, unit, 2) for unit in ("picture", "video")]
        rows.append(
            (
                row["group"] or "all",
                row["measure"].replace("_", " "),
                format_number(row["value"], 3),
                *ends,
                format_count(row["n"]),
            )
        )
    header = ("of", "measure", "value", "over images", "over videos", "rests on")
    text = "; ".join(f"{name.replace('_', ' ')}: {meaning}" for name, meaning in MEASURES.items())
    table = Table(header, tuple(rows), "llrrrr", "Agreement", f"{text}.")
    blocks: list[Block] = [table, _table(found.counts, "Things by how many drew them")]
    if len(disputes):
        blocks.append(_table(disputes.head(MOST_ROWS), "For a further look"))
    value = found.value("existence")
    says = (
        f"Existence agrees to {format_number(value, 2)}; {format_count(len(disputes))} disputes are left.",
    )
    return Section("Agreement of annotators", says, tuple(blocks))


def _table(held: pl.DataFrame, title: str) -> Table:
    """A data frame as it is, numbers right."""
    align = "".join("r" if dtype.is_numeric() else "l" for dtype in held.schema.values())
    rows = tuple(tuple(_cell(value) for value in row) for row in held.iter_rows())
    return Table(tuple(name.replace("_", " ") for name in held.columns), rows, align, title)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return format_number(value, 2) if isinstance(value, float) else str(value)


def _span(low: float | None, high: float | None, *, share: bool = True) -> str:
    if low is None or high is None:
        return "-"
    lines: Sequence[str] = [format_percent(end, 1) if share else format_number(end, 2) for end in (low, high)]
    return f"{lines[0]} to {lines[1]}"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


# Disputed images with the boxes of every annotator, each in a colour of its own.

_SMALL = 400


def draw_disputes(
    labels: Scenes, disputes: pl.DataFrame, source: Scenes, root: Path, most: int
) -> dict[str, bytes]:
    """The first images with a dispute, with all boxes of all annotators, as PNG files by their path in a result.

    Args:
        labels: of all annotators, with `boxes.annotator`.
        disputes: of a consensus.
        source: the set that the images are of.
        root: the folder that its paths start at.
        most: how many.

    Raises:
        InputError: if an image cannot be read.
    """
    held = disputes.group_by("video", "frame", maintain_order=True).agg(pl.col("reason").unique().sort())
    rows = held.head(most).select("video", "frame", pl.col("reason").list.join("; ")).iter_rows()
    found: dict[str, bytes] = {}
    for number, (video, frame, reasons) in enumerate(rows):
        image = open_frame(source, root, video, frame)
        scale = 2 if image.shape[0] < _SMALL else 1
        marks = list(_marks(labels, video, frame))
        drawn = draw_marks(image, marks, title=f"{video}  {frame}  {reasons}", scale=scale)
        stream = io.BytesIO()
        Image.fromarray(drawn).save(stream, "PNG")
        found[f"{DISPUTES}/{number:04d}-{video.replace('/', '-')}-{frame:06d}.png"] = stream.getvalue()
    return found


def _marks(labels: Scenes, video: str, frame: int) -> Iterator[Marked]:
    """The boxes, with words above the highest of each thing: who drew it, and what each called it."""
    names = sorted(labels.boxes["annotator"].drop_nulls().cast(pl.String).unique().to_list())
    held = labels.boxes.filter((pl.col("video").cast(pl.String) == video) & (pl.col("frame") == frame))
    words = labels.labels.filter(pl.col("box").is_in(held["box"].implode()))
    said = {
        box: labels.meta.vocabularies[kind][label]
        for box, kind, label in words.select("box", pl.col("kind").cast(pl.String), "label").iter_rows()
    }
    own = [held.filter(pl.col("annotator").cast(pl.String) == name) for name in names]
    corners = [part.select(CORNERS).to_numpy().astype(np.float64) for part in own]
    for group in group_annotations(corners):
        lines = (f"{names[who]}: {said.get(own[who]['box'][row], '-')}" for who, row in group.items())
        shown = {min(group, key=lambda who: corners[who][group[who]][1]): "   ".join(lines)}
        for who, row in group.items():
            left, top, right, bottom = corners[who][row].tolist()
            yield Marked((left, top, right, bottom), shown.get(who, ""), COLOURS[who % len(COLOURS)])


# The folders of results: tables, the same as csv, and a page.

LABELS, CONSENSUS, DISPUTES = "labels", "consensus", "disputed"
"""Folders inside results: what came back, what most drew, and images that are disputed."""


def build_agreement_files(
    found: BoxAgreement, agreed: Consensus, drawn: Mapping[str, bytes]
) -> dict[str, bytes]:
    """The files of an agreement of annotators.

    Args:
        found: the agreement.
        agreed: the consensus.
        drawn: files of disputed images.
    """
    page = report([build_agreement_section(found, agreed.disputes)], title="Agreement of annotators")
    return {
        **_pack_tables(agreed.scenes, CONSENSUS),
        "agreement.csv": format_csv(found.table).encode(),
        "found_by.csv": format_csv(found.counts).encode(),
        "disputes.csv": format_csv(agreed.disputes).encode(),
        **drawn,
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }


def build_correction_files(
    scenes: Scenes, table: pl.DataFrame, classes: pl.DataFrame, people: pl.DataFrame
) -> dict[str, bytes]:
    """The files of corrected proposals.

    Args:
        scenes: what annotators left.
        table: what became of each proposal.
        classes, people: the same by class and by annotator.
    """
    page = report([build_corrections_section(classes, people)], title="Corrected proposals")
    return {
        **_pack_tables(scenes, LABELS),
        "fates.parquet": encode_parquet(table),
        "fates.csv": format_csv(table).encode(),
        "classes.csv": format_csv(classes).encode(),
        "annotators.csv": format_csv(people).encode(),
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }


def build_selection_files(
    table: pl.DataFrame, costs: dict[str, float], curve: Curve | None
) -> dict[str, bytes]:
    """The files of a list of images.

    Args:
        table: the list.
        costs: what looking at it costs.
        curve: what it finds; None without ground truth.
    """
    page = report([build_selection_section(costs, curve)], title="Images worth a look")
    files = {
        "list.csv": format_csv(table).encode(),
        "list.json": encode_json({"pictures": table.to_dicts()}).encode(),
        _PAGE: page.encode("utf-8", errors="backslashreplace"),
    }
    if curve is None:
        return files
    columns = {"looked": curve.looked, **curve.found}
    columns |= {f"{order}_low": values for order, values in curve.low.items()}
    columns |= {f"{order}_high": values for order, values in curve.high.items()}
    points = format_csv(pl.DataFrame(columns)).encode()
    return {**files, "curve.csv": points, "curve.png": plot_discovery(curve).png()}


def _pack_tables(scenes: Scenes, folder: str) -> dict[str, bytes]:
    """A saved set as files of a result folder."""
    files, meta = encode(scenes)
    return {f"{folder}/{name}": data for name, data in {**files, "meta.json": meta}.items()}


# The same in words: lists of images, exports, corrections and agreement.

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
    lines.append(f"next: roadaware label import {terminal.format_word(out)} CORRECTED.json -o LABELS")
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
    images = data["pictures"]
    lines = [
        f"{images['done']:,} of {images['sent']:,} images done, {n_boxes:,} boxes by "
        f"{len(people)} annotators",
        _format_measures(classes, digits=2),
        "",
        _format_measures(people, digits=1),
    ]
    labour = data["labour"]
    if labour is not None:
        names = ("look_s", "judge_s", "correct_s", "draw_s")
        text = f"--set {' '.join(f'{name}={labour[name]:.1f}' for name in names)}"
        lines += ["", f"fitted to the times of {labour['pictures']:,} images, for `label select`: {text}"]
    lines += [f"refused: {count:,} {terminal.format_cell(what)}" for what, count in data["refused"].items()]
    lines += [f"note: {terminal.format_cell(note)}" for note in data["notes"]]
    if folder is not None and len(people) > 1:
        lines.append(f"next: roadaware label agree {terminal.format_word(folder)} -o CONSENSUS")
    return "\n".join(lines)


def _format_measures(held: pl.DataFrame, digits: int) -> str:
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
