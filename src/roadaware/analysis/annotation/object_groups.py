"""Object groups: boxes of several annotators in one image, with who saw the image and their classes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.annotation.proposal_outcomes import (
    LEAST_IOU,
    REFUSED_NOTE,
    group_annotations,
    match_annotators,
)
from roadaware.errors import InputError
from roadaware.formats.coda import KIND
from roadaware.geometry.boxes import iou
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

THING: dict[str, Any] = {
    "thing": pl.Int64,
    "picture": pl.Int64,
    "annotator": pl.String,
    "box": pl.Int64,
    "label": pl.Int64,
}
OVERLAP: dict[str, Any] = {"thing": pl.Int64, "n_pairs": pl.Int64, "iou_sum": pl.Float64}
PAIR: dict[str, Any] = {
    "picture": pl.Int64,
    "first": pl.String,
    "second": pl.String,
    "n_first": pl.Int64,
    "n_second": pl.Int64,
    "matched": pl.Int64,
    "iou_sum": pl.Float64,
    "named": pl.Int64,
    "same": pl.Int64,
}


@dataclass(frozen=True, eq=False)
class Things:
    """Objects and the boxes of each annotator.

    Args:
        pictures: video, frame, `annotators` who saw it, `proposals` that they were shown; those that two saw.
        alone: video, frame and annotator of the images that one alone saw.
        members: a row per box: the thing it is of, its image (a row of `pictures`), annotator, box, label.
        overlaps: of each thing that several drew: how many two of its boxes there are, the sum of overlaps.
        pairs: a row per image and two annotators who saw it: their boxes, how many are of one thing, the
            sum of overlaps, how many of those both have named, and how many alike.
        links: annotator and the proposals that his boxes name; None where boxes name none.
        unknown: annotator and the proposals of which nobody knows whether he left them.
        annotators: all of them, sorted.
        words: the classes.
    """

    pictures: pl.DataFrame
    alone: pl.DataFrame
    members: pl.DataFrame
    overlaps: pl.DataFrame
    pairs: pl.DataFrame
    links: pl.DataFrame | None
    unknown: pl.DataFrame
    annotators: tuple[str, ...]
    words: tuple[str, ...]


def group_objects(scenes: Scenes, *, kind: str = KIND, least: float = LEAST_IOU) -> Things:
    """Bring the boxes of all annotators together, image by image.

    Who saw an image stands in `frames.annotators`; where the tables do not have it, everybody who drew
    anything saw all annotated images.

    Args:
        scenes: with `boxes.annotator`.
        kind: of labels.
        least: boxes that overlap less are of different things.

    Raises:
        InputError: if there is one annotator alone, or no image that two of them saw.
    """
    seen = _seen(scenes)
    names = tuple(sorted({name for row in seen["annotators"] for name in row}))
    if len(names) < 2:
        told = f"only {names[0]}" if names else "nobody"
        raise InputError(
            f"agreement needs two annotators, and {told} looked at these images",
            hint="import what several people left of the same tasks",
        )
    several = seen.filter(pl.col("annotators").list.len() >= 2)
    if several.is_empty():
        raise InputError(
            f"none of {len(seen)} images was seen by two of {len(names)} annotators",
            hint="give the same images to several people",
        )
    alone = seen.filter(pl.col("annotators").list.len() == 1).select(
        "video", "frame", annotator=pl.col("annotators").list.first()
    )
    members, overlaps, pairs = _brought_together(scenes, several, kind, least)
    words = scenes.meta.vocabularies.get(kind, ())
    links, unknown = _links(scenes), _list_refused(scenes)
    return Things(several, alone, members, overlaps, pairs, links, unknown, names, words)


def _links(scenes: Scenes) -> pl.DataFrame | None:
    """annotator and proposals: which proposals are left of whom."""
    if "proposal" not in scenes.boxes.columns:
        return None
    return scenes.boxes.select(pl.col("annotator").cast(pl.String), proposals="proposal").drop_nulls()


def _list_refused(scenes: Scenes) -> pl.DataFrame:
    """annotator and proposals: what came back of them was refused."""
    held = scenes.meta.notes.get(REFUSED_NOTE, [])
    return pl.DataFrame(held, schema={"annotator": pl.String, "proposals": pl.Int64}, orient="row")


def _seen(scenes: Scenes) -> pl.DataFrame:
    """video, frame, annotators and proposals of the images that anybody saw."""
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    if "annotator" not in scenes.boxes.columns:
        raise InputError("the boxes do not say who drew them: there is no column 'annotator'")
    if "annotators" not in frames.columns:
        everybody = scenes.boxes["annotator"].drop_nulls().cast(pl.String).unique().sort().to_list()
        if "annotated" in frames.columns:
            frames = frames.filter(pl.col("annotated").fill_null(value=False))
        frames = frames.with_columns(annotators=pl.lit(everybody, dtype=pl.List(pl.String)))
    if "proposals" not in frames.columns:
        frames = frames.with_columns(proposals=pl.lit(None, dtype=pl.List(pl.Int64)))
    held = frames.select("video", "frame", "annotators", "proposals")
    return held.filter(pl.col("annotators").list.len() > 0)


def _labels(scenes: Scenes, kind: str) -> pl.DataFrame:
    """box and its first label of a kind."""
    held = scenes.labels.filter(pl.col("kind").cast(pl.String) == kind)
    return held.sort("label").unique("box", keep="first").select("box", "label")


def _brought_together(
    scenes: Scenes, pictures: pl.DataFrame, kind: str, least: float
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    boxes = scenes.boxes.select(
        "box", pl.col("video").cast(pl.String), "frame", pl.col("annotator").cast(pl.String), *CORNERS
    ).join(_labels(scenes, kind), on="box", how="left", maintain_order="left")
    drawn: dict[tuple[str, int, str], list[tuple[Any, ...]]] = {}
    for video, frame, who, *rest in boxes.select(
        "video", "frame", "annotator", "box", "label", *CORNERS
    ).iter_rows():
        drawn.setdefault((video, frame, who), []).append(tuple(rest))
    members: list[tuple[Any, ...]] = []
    overlaps: list[tuple[Any, ...]] = []
    pairs: list[tuple[Any, ...]] = []
    count = 0
    for picture, (video, frame, who) in enumerate(
        pictures.select("video", "frame", "annotators").iter_rows()
    ):
        own = [drawn.get((video, frame, name), []) for name in who]
        corners = [np.array([row[2:] for row in rows], dtype=np.float64).reshape(-1, 4) for rows in own]
        numbers, labels = ([[row[k] for row in rows] for rows in own] for k in (0, 1))
        for group in group_annotations(corners, least):
            members += [(count, picture, who[k], numbers[k][n], labels[k][n]) for k, n in group.items()]
            shares = iou(*[np.array([corners[k][n] for k, n in group.items()])] * 2)
            upper = shares[np.triu_indices(len(group), 1)]
            overlaps.append((count, len(upper), float(upper.sum())))
            count += 1
        for a, b in combinations(range(len(who)), 2):
            found = match_annotators(corners[a], corners[b], least)
            both = [(labels[a][i], labels[b][j]) for i, j, _ in found]
            named = [pair for pair in both if None not in pair]
            told = (len(found), sum(share for *_, share in found), len(named), sum(x == y for x, y in named))
            pairs.append((picture, who[a], who[b], len(corners[a]), len(corners[b]), *told))
    return (
        pl.DataFrame(members, schema=THING, orient="row"),
        pl.DataFrame(overlaps, schema=OVERLAP, orient="row").filter(pl.col("n_pairs") > 0),
        pl.DataFrame(pairs, schema=PAIR, orient="row"),
    )
