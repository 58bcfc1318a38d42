"""Disputed pictures with the boxes of every annotator, each in a colour of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from roadaware.analysis.labelling.matching import groups_of
from roadaware.arrays import Pixels
from roadaware.reports.drawing import COLOURS, Marked, drawn
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_SMALL = 400


def disputed_places(disputes: pl.DataFrame, most: int) -> list[tuple[str, int, str]]:
    """The first pictures with a dispute: video, frame, and the reasons.

    Args:
        disputes: of a consensus.
        most: how many.
    """
    found = disputes.group_by("video", "frame", maintain_order=True).agg(pl.col("reason").unique().sort())
    rows = found.head(most).select("video", "frame", pl.col("reason").list.join("; ")).iter_rows()
    return [(video, frame, reasons) for video, frame, reasons in rows]


def draw_dispute(labels: Scenes, picture: Pixels, video: str, frame: int, *, title: str = "") -> Pixels:
    """(H, W, 3) the picture with all boxes of all annotators, named by annotator and class.

    Args:
        labels: of all annotators, with `boxes.annotator`.
        picture: (H, W, 3).
        video: of the picture.
        frame: of the picture.
        title: written in its corner.
    """
    scale = 2 if picture.shape[0] < _SMALL else 1
    return drawn(picture, list(_marks(labels, video, frame)), title=title, scale=scale)


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
    for group in groups_of(corners):
        told = (f"{names[who]}: {said.get(own[who]['box'][row], '-')}" for who, row in group.items())
        shown = {min(group, key=lambda who: corners[who][group[who]][1]): "   ".join(told)}
        for who, row in group.items():
            left, top, right, bottom = corners[who][row].tolist()
            yield Marked((left, top, right, bottom), shown.get(who, ""), COLOURS[who % len(COLOURS)])
