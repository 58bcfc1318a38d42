"""Report of the annotation of corner cases: discovery curve, outcomes of proposals, agreement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.annotation.agreement import MEASURES, BoxAgreement
from roadaware.analysis.annotation.discovery_curve import Curve
from roadaware.analysis.annotation.matching import group_annotations
from roadaware.arrays import Pixels
from roadaware.reports.drawing import COLOURS, Marked, draw_marks
from roadaware.reports.page import Block, Note, Pictures, Section, Table, TableCell
from roadaware.reports.picture import (
    BLUE,
    DASHES,
    GREEN,
    GREY,
    HALF,
    INK,
    VERMILLION,
    Picture,
    create_canvas,
    set_style,
)
from roadaware.reports.text import format_count, format_number, format_percent, format_row_interval
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_COLOURS = {"list": BLUE, "random": GREY, "spread": VERMILLION, "oracle": GREEN}
_NAMES = {
    "list": "the list",
    "random": "by chance",
    "spread": "by chance, each video in turn",
    "oracle": "the best there is",
}
MOST_ROWS = 200


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
    told = [
        f"{format_percent(row['found'], 1)} of what there is takes {format_percent(row['looked_share'], 1)} of the images"
        for row in curve.table.filter(pl.col("order") == "list").iter_rows(named=True)
    ]
    return Picture("What has to be looked at", f"By the list: {'; '.join(told)}.", figure)


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
    told = "; ".join(f"{name.replace('_', ' ')}: {meaning}" for name, meaning in MEASURES.items())
    table = Table(header, tuple(rows), "llrrrr", "Agreement", f"{told}.")
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
    told: Sequence[str] = [format_percent(end, 1) if share else format_number(end, 2) for end in (low, high)]
    return f"{told[0]} to {told[1]}"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


# Disputed images with the boxes of every annotator, each in a colour of its own.

_SMALL = 400


def list_disputes(disputes: pl.DataFrame, most: int) -> list[tuple[str, int, str]]:
    """The first images with a dispute: video, frame, and the reasons.

    Args:
        disputes: of a consensus.
        most: how many.
    """
    found = disputes.group_by("video", "frame", maintain_order=True).agg(pl.col("reason").unique().sort())
    rows = found.head(most).select("video", "frame", pl.col("reason").list.join("; ")).iter_rows()
    return [(video, frame, reasons) for video, frame, reasons in rows]


def draw_dispute(labels: Scenes, picture: Pixels, video: str, frame: int, *, title: str = "") -> Pixels:
    """(H, W, 3) the image with all boxes of all annotators, named by annotator and class.

    Args:
        labels: of all annotators, with `boxes.annotator`.
        picture: (H, W, 3).
        video: of the figure.
        frame: of the figure.
        title: written in its corner.
    """
    scale = 2 if picture.shape[0] < _SMALL else 1
    return draw_marks(picture, list(_marks(labels, video, frame)), title=title, scale=scale)


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
        told = (f"{names[who]}: {said.get(own[who]['box'][row], '-')}" for who, row in group.items())
        shown = {min(group, key=lambda who: corners[who][group[who]][1]): "   ".join(told)}
        for who, row in group.items():
            left, top, right, bottom = corners[who][row].tolist()
            yield Marked((left, top, right, bottom), shown.get(who, ""), COLOURS[who % len(COLOURS)])
