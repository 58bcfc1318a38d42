"""Scenes made by hand: a few pedestrians with boxes, events and tags of choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from roadaware.scenes.tables import Meta, Scenes

CROSSING = pl.Enum(["not-crossing", "crossing", "irrelevant"])


@dataclass(frozen=True)
class Pedestrian:
    """One track; `left` gives the left edge of each box, 40 px wide."""

    name: str
    frames: Sequence[int]
    crossing: str | None = None
    event: int | None = None
    video: str = "video_0001"
    cross: Sequence[str | None] = ()
    left: Sequence[float] = ()
    start: int | None = None
    critical: int | None = None
    probability: float | None = None


@dataclass(frozen=True)
class Place:
    """One video and its splits."""

    video: str = "video_0001"
    splits: Sequence[str] = ("default/train",)
    width: int = 1920


def scenes(
    pedestrians: Sequence[Pedestrian],
    places: Sequence[Place] = (Place(),),
    dataset: str = "JAAD",
    boxes: bool = True,
) -> Scenes:
    """The tables a reader would give for these pedestrians, tubes numbered in the given order."""
    rows = [_row(number, p) for number, p in enumerate(pedestrians)]
    held = [b for number, p in enumerate(pedestrians) for b in _boxes(number, p)] if boxes else []
    tables = {"boxes": pl.DataFrame(held, schema=_BOXES, orient="row").with_row_index("box")} if held else {}
    return Scenes(
        videos=pl.DataFrame(
            [(p.video, p.width, 1080, list(p.splits)) for p in places],
            schema={
                "video": pl.String,
                "width_px": pl.Int64,
                "height_px": pl.Int64,
                "splits": pl.List(pl.String),
            },
            orient="row",
        ),
        tubes=pl.DataFrame(rows, schema=_TUBES, orient="row"),
        meta=Meta(dataset=dataset),
        **tables,
    )


_TUBES = {
    "tube": pl.Int64,
    "video": pl.String,
    "name": pl.String,
    "crossing": CROSSING,
    "event_frame": pl.Int64,
    "event_source": pl.String,
    "exp_start_point": pl.Int64,
    "critical_point": pl.Int64,
    "intention_prob": pl.Float32,
}
_BOXES = {
    "video": pl.String,
    "tube": pl.Int64,
    "frame": pl.Int64,
    "x1_px": pl.Float32,
    "y1_px": pl.Float32,
    "x2_px": pl.Float32,
    "y2_px": pl.Float32,
    "cross": CROSSING,
}


def _row(number: int, p: Pedestrian) -> tuple[object, ...]:
    source = "annotated" if p.event is not None else "fallback" if p.crossing == "crossing" else "none"
    known = (p.start, p.critical, p.probability)
    return (number, p.video, p.name, p.crossing, p.event, source, *known)


def _boxes(number: int, p: Pedestrian) -> list[tuple[object, ...]]:
    lefts = p.left or [900.0] * len(p.frames)
    tags = p.cross or [None] * len(p.frames)
    return [
        (p.video, number, frame, left, 500.0, left + 40, 600.0, tag)
        for frame, left, tag in zip(p.frames, lefts, tags, strict=True)
    ]
