"""A made dataset in which every defect is put there by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from roadaware.scenes.tables import Meta, Scenes

CROSSING = pl.Enum(["not-crossing", "crossing", "irrelevant"])
CROSS = pl.Enum(["not-crossing", "crossing", "irrelevant"])


@dataclass(frozen=True)
class Person:
    """One track; `tagged` says from which frame on its boxes are tagged as crossing.

    A name that ends in b has tags and attributes, as in JAAD.
    """

    name: str
    video: str
    crossing: str | None = None
    event: int | None = None
    source: str = "none"
    tagged: int | None = None
    frames: Sequence[int] = tuple(range(130))
    left: float = 500.0
    width: float = 40.0


def people(video: str, number: int) -> list[Person]:
    """Two sound crossers, one sound refuser and three without behaviour annotation."""
    return [
        Person(f"0_{number}_1b", video, "crossing", 120, "annotated", 120),
        Person(f"0_{number}_2b", video, "crossing", 115, "annotated", 115),
        Person(f"0_{number}_3b", video, "not-crossing"),
        Person(f"0_{number}_4", video),
        Person(f"0_{number}_5", video),
        Person(f"0_{number}_6", video),
    ]


VIDEOS = {"video_0001": ("default/train",), "video_0002": ("default/val",), "video_0003": ("default/test",)}


def sound() -> list[Person]:
    """The people of three videos without a defect."""
    return [person for number, video in enumerate(VIDEOS, 1) for person in people(video, number)]


def dataset(
    persons: Sequence[Person],
    videos: dict[str, Sequence[str]] | None = None,
    *,
    name: str = "JAAD",
    actions: Sequence[str] = ("stopped", "moving_slow", "moving_fast"),
    rejected: Sequence[tuple[str, str, int | None, str | None, str]] = (),
) -> Scenes:
    """The tables a reader would give."""
    places = VIDEOS if videos is None else videos
    boxes = [row for tube, person in enumerate(persons) for row in _boxes(tube, person)]
    return Scenes(
        videos=pl.DataFrame(
            [(v, 1920, 1080, list(s)) for v, s in places.items()],
            schema={
                "video": pl.String,
                "width_px": pl.Int64,
                "height_px": pl.Int64,
                "splits": pl.List(pl.String),
            },
            orient="row",
        ),
        frames=pl.DataFrame(
            [(v, frame, actions[frame % len(actions)]) for v in places for frame in range(12)],
            schema={"video": pl.String, "frame": pl.Int64, "vehicle_action": pl.String},
            orient="row",
        ),
        tubes=pl.DataFrame([_tube(tube, p) for tube, p in enumerate(persons)], schema=_TUBES, orient="row"),
        boxes=pl.DataFrame(boxes, schema=_BOXES, orient="row").with_row_index("box"),
        rejected=pl.DataFrame(rejected, schema=_REJECTED, orient="row"),
        meta=Meta(dataset=name, rows_read={"boxes": len(boxes) + len(rejected)}),
    )


_TUBES = {
    "tube": pl.Int64, "video": pl.String, "name": pl.String, "start_frame": pl.Int64, "end_frame": pl.Int64,
    "track_label": pl.String, "age": pl.String, "crossing": CROSSING, "event_frame": pl.Int64,
    "event_source": pl.String,
}  # fmt: skip
_BOXES = {
    "video": pl.String, "tube": pl.Int64, "frame": pl.Int64, "x1_px": pl.Float64, "y1_px": pl.Float64,
    "x2_px": pl.Float64, "y2_px": pl.Float64, "cross": CROSS,
}  # fmt: skip
_REJECTED = {
    "table": pl.String, "file": pl.String, "line": pl.Int64, "item": pl.String, "reason": pl.String,
}  # fmt: skip


def _tube(tube: int, p: Person) -> tuple[object, ...]:
    behaviour = p.name.endswith("b")
    label = "people" if p.name.endswith("p") else "pedestrian" if behaviour else "ped"
    age = "adult" if behaviour else None
    return (
        tube,
        p.video,
        p.name,
        min(p.frames),
        max(p.frames) + 1,
        label,
        age,
        p.crossing,
        p.event,
        p.source,
    )


def _boxes(tube: int, p: Person) -> list[tuple[object, ...]]:
    def tag(frame: int) -> str | None:
        if not p.name.endswith("b"):
            return None
        return "crossing" if p.tagged is not None and frame >= p.tagged else "not-crossing"

    return [(p.video, tube, f, p.left, 400.0, p.left + p.width, 500.0, tag(f)) for f in p.frames]
