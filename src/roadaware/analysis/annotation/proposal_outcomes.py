"""Outcomes of proposals after annotation: boxes of annotators matched; kept, moved, renamed, deleted; and added boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.formats.coda import KIND
from roadaware.formats.corrections import Answers
from roadaware.formats.proposal_tasks import UNNAMED, add_class_names
from roadaware.geometry.boxes import iou
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

LEAST_IOU = 0.5
"""Boxes that overlap less are of different things."""


def match_annotators(a: Floats, b: Floats, least: float = LEAST_IOU) -> list[tuple[int, int, float]]:
    """Match boxes of two annotators one to one; returns the pairs and their overlap.

    The pairs are those with the greatest sum of overlaps, none of which is below `least`.

    Args:
        a: (n, 4) x1, y1, x2, y2 in pixels.
        b: (m, 4) the same.
        least: smallest overlap of a pair, above 0.

    Source: Kuhn, Naval Research Logistics 1955.

    >>> match_annotators(np.array([[0.0, 0, 4, 4]]), np.array([[9.0, 9, 11, 11], [0, 0, 4, 3]]))
    [(0, 1, 0.75)]
    """
    from scipy.optimize import linear_sum_assignment

    if not len(a) or not len(b):
        return []
    shares = iou(a, b)
    # Pairs below the bound gain nothing, and are dropped afterwards: the assignment always fills all it can.
    gains = np.where(shares >= least, shares, 0.0)
    rows, columns = linear_sum_assignment(gains, maximize=True)
    return [
        (int(row), int(column), float(shares[row, column]))
        for row, column in zip(rows, columns, strict=True)
        if gains[row, column] > 0
    ]


def group_annotations(boxes: Sequence[Floats], least: float = LEAST_IOU) -> list[dict[int, int]]:
    """Group boxes of several annotators into objects: annotator to the number of its box, at most one of each.

    Every two annotators' boxes are paired; pairs are joined from the greatest overlap down, where that puts
    no two boxes of one annotator into one group. Each box is in exactly one group.

    Args:
        boxes: (n, 4) of each annotator.
        least: smallest overlap of a pair.
    """
    group: dict[tuple[int, int], dict[int, int]] = {
        (who, number): {who: number} for who, held in enumerate(boxes) for number in range(len(held))
    }
    joins = [
        (-share, one, row, other, column)
        for one in range(len(boxes))
        for other in range(one + 1, len(boxes))
        for row, column, share in match_annotators(boxes[one], boxes[other], least)
    ]
    for _, one, row, other, column in sorted(joins):
        first, second = group[one, row], group[other, column]
        if first is not second and not first.keys() & second.keys():
            first |= second
            for member in second.items():
                group[member] = first
    found = {id(each): each for each in group.values()}
    return [dict(sorted(each.items())) for each in found.values()]


FATES = ("kept", "moved", "deleted", "refused", "added")
FATE: dict[str, Any] = {
    "video": pl.String,
    "frame": pl.Int64,
    "annotator": pl.String,
    "proposal": pl.Int64,
    "box": pl.Int64,
    "fate": pl.String,
    "relabelled": pl.Boolean,
    "was": pl.String,
    "became": pl.String,
    "score": pl.Float64,
    "iou": pl.Float64,
    "max_edge_px": pl.Float64,
}
"""Columns of `compute_outcomes`: `box` counts the rows of what was drawn; `was` and `became` are classes."""
REFUSED_NOTE = "refused"
STILL_PX = 0.5


def compute_outcomes(sent: Predictions, answers: Answers, *, still_px: float = STILL_PX) -> pl.DataFrame:
    """One row for each annotator and proposal of an image that he did, and for each box that he added.

    A proposal is kept where no edge moved by more than `still_px`, else moved; deleted where no box is left
    of it, refused where what came back of it, or may have, could not be taken. `relabelled` says whether its
    class is another one. Boxes belong to the proposal that they name; where none of a file names any, to that
    which they overlap most, by at least half, one to one.

    Args:
        sent: what was sent out.
        answers: what came back.
        still_px: how far an edge may be away, in pixels.
    """
    proposals = add_class_names(sent).partition_by("video", "frame", as_dict=True, include_key=False)
    drawn = answers.drawn.with_row_index("row").partition_by(
        "video", "frame", "annotator", as_dict=True, include_key=False
    )
    rows: list[dict[str, Any]] = []
    refused: dict[tuple[Any, ...], set[int | None]] = {}
    for *place, proposal in answers.refused.iter_rows():
        refused.setdefault(tuple(place), set()).add(proposal)
    done = answers.looked.filter(~pl.col("skipped"))
    for video, frame, who, linked in done.select("video", "frame", "annotator", "linked").iter_rows():
        held, left = proposals.get((video, frame)), drawn.get((video, frame, who))
        unknown = refused.get((video, frame, who), set())
        outcomes = _iterate_outcomes(_dicts(held), _dicts(left), unknown, linked=linked, still_px=still_px)
        rows += [{"video": video, "frame": frame, "annotator": who, **row} for row in outcomes]
    return pl.DataFrame(rows, schema=FATE)


def summarize_outcomes(table: pl.DataFrame) -> pl.DataFrame:
    """Counts by class, `all` last: of proposals by their original class, of added boxes by their class.

    Args:
        table: what `compute_outcomes` gave.

    Returns:
        class, proposals, kept, moved, deleted, refused, relabelled, added, `precision` (share of the
        proposals that are left, of those whose fate is known), `mean_iou` (of the moved).
    """
    proposed = pl.col("proposal").is_not_null()
    of = pl.when(proposed).then(pl.col("was")).otherwise(pl.col("became")).fill_null(UNNAMED)
    counted = [
        proposed.sum().alias("proposals"),
        *((pl.col("fate") == fate).sum().alias(fate) for fate in FATES),
        pl.col("relabelled").sum().alias("relabelled"),
        pl.col("iou").filter(pl.col("fate") == "moved").mean().alias("mean_iou"),
    ]
    parts = table.group_by(of.alias("class")).agg(counted).sort("class")
    whole = table.select(pl.lit("all").alias("class"), *counted)
    known = pl.col("proposals") - pl.col("refused")
    left = pl.when(known > 0).then((pl.col("kept") + pl.col("moved")) / known)
    fates = ("kept", "moved", "deleted", "refused")
    order = ("class", "proposals", *fates, "relabelled", "added", "precision", "mean_iou")
    return pl.concat([parts, whole]).with_columns(precision=left).select(order)


def summarize_annotators(table: pl.DataFrame, looked: pl.DataFrame) -> pl.DataFrame:
    """Statistics of each annotator: images, seconds where known, and outcomes of boxes.

    Args:
        table: what `compute_outcomes` gave.
        looked: who looked at what.

    Returns:
        annotator, images, skipped, kept, moved, deleted, refused, added, relabelled, seconds (sum),
        `median_s`.
    """
    done = looked.group_by("annotator").agg(
        pictures=(~pl.col("skipped")).sum(),
        skipped=pl.col("skipped").sum(),
        seconds=pl.when(pl.col("seconds").count() > 0).then(pl.col("seconds").sum()),
        median_s=pl.col("seconds").median(),
    )
    counted = table.group_by("annotator").agg(
        *((pl.col("fate") == fate).sum().alias(fate) for fate in FATES),
        pl.col("relabelled").sum().alias("relabelled"),
    )
    found = done.join(counted, on="annotator", how="left").with_columns(
        pl.col(*FATES, "relabelled").fill_null(0)
    )
    order = ["annotator", "pictures", "skipped", *FATES, "relabelled", "seconds", "median_s"]
    return found.select(order).sort("annotator")


def build_labelled_scenes(sent: Predictions, answers: Answers, table: pl.DataFrame) -> Scenes:
    """The corrected annotations as Scenes: corner cases with their annotator, side by side if there are several.

    Boxes have `corner_case`, `annotator`, `proposal` and `fate`; labels are of the kind `corner`; frames have
    `annotators`, who looked, and `proposals`, what they were shown. `meta.notes["refused"]` holds annotator
    and proposal wherever nobody knows what became of it.

    Args:
        sent: what was sent out.
        answers: what came back.
        table: what `compute_outcomes` gave for them.
    """
    drawn = answers.drawn.with_row_index("box").with_columns(pl.col("box").cast(pl.Int64))
    rows = table.drop_nulls("box").select("box", "fate", pl.col("proposal").alias("linked"))
    boxes = drawn.join(rows, on="box", how="left", maintain_order="left")
    words = tuple(
        dict.fromkeys([*sent.meta.vocabularies[KIND], *drawn["label"].drop_nulls().unique().sort().to_list()])
    )
    place = {word: number for number, word in enumerate(words)}
    unknown = table.filter(pl.col("fate") == "refused").select("annotator", "proposal")
    labels = boxes.drop_nulls("label").select(
        "box", kind=pl.lit(KIND), label=pl.col("label").replace_strict(place, return_dtype=pl.Int64)
    )
    # The images that were sent out, with who looked and what was shown.
    who = (
        answers.looked.filter(~pl.col("skipped"))
        .group_by("video", "frame")
        .agg(annotators=pl.col("annotator").sort())
    )
    shown = (
        sent.boxes.with_columns(pl.col("video").cast(pl.String))
        .group_by("video", "frame")
        .agg(proposals=pl.col("box").sort())
    )
    frames = sent.frames.drop("annotators", "proposals", strict=False)
    for part in (who, shown):
        frames = frames.join(part, on=["video", "frame"], how="left", maintain_order="left")
    frames = frames.with_columns(pl.col("annotators", "proposals").fill_null([]))
    return Scenes(
        videos=sent.videos,
        frames=frames.with_columns(annotated=pl.col("annotators").list.len() > 0),
        boxes=boxes.drop("label", "proposal")
        .rename({"linked": "proposal"})
        .with_columns(corner_case=pl.lit(value=True)),
        labels=labels,
        rejected=answers.findings.table(),
        meta=Meta(
            dataset=sent.meta.dataset,
            vocabularies={KIND: words},
            notes={**answers.findings.notes(), REFUSED_NOTE: [list(row) for row in unknown.iter_rows()]},
        ),
    )


def _dicts(table: pl.DataFrame | None) -> list[dict[str, Any]]:
    return [] if table is None else table.to_dicts()


def _corners(rows: Sequence[dict[str, Any]]) -> Floats:
    return np.array([[row[name] for name in CORNERS] for row in rows], dtype=np.float64).reshape(-1, 4)


def _iterate_outcomes(
    proposals: list[dict[str, Any]],
    left: list[dict[str, Any]],
    refused: set[int | None],
    *,
    linked: bool,
    still_px: float,
) -> Iterator[dict[str, Any]]:
    """The rows of one image and annotator; None in `refused` may stand for any proposal."""
    if linked:
        place = {row["proposal"]: number for number, row in enumerate(left) if row["proposal"] is not None}
        partner = {n: place[row["box"]] for n, row in enumerate(proposals) if row["box"] in place}
    else:
        partner = {a: b for a, b, _ in match_annotators(_corners(proposals), _corners(left), LEAST_IOU)}
    for number, row in enumerate(proposals):
        was = None if row["label"] == UNNAMED else row["label"]
        record = {"proposal": row["box"], "was": was, "score": row["score"], "relabelled": False}
        if number not in partner:
            yield {**record, "fate": "refused" if refused & {None, row["box"]} else "deleted"}
            continue
        box = left[partner[number]]
        before, after = _corners([row]), _corners([box])
        moved = float(np.abs(before - after).max())
        yield {
            **record,
            "box": box["row"],
            "fate": "kept" if moved <= still_px else "moved",
            "became": box["label"],
            "relabelled": box["label"] != was,
            "iou": float(iou(before, after)[0, 0]),
            "max_edge_px": moved,
        }
    for number in sorted(set(range(len(left))) - set(partner.values())):
        box = left[number]
        yield {"box": box["row"], "fate": "added", "became": box["label"], "relabelled": False}
