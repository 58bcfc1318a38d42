"""Derived tubes: the stretches of a track over which its boxes keep a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Ints
from roadaware.errors import InputError
from roadaware.scenes.tables import Scenes


def split_tubes_by_label(scenes: Scenes, kinds: Sequence[str], *, max_hole: int | None = None) -> Scenes:
    """The scenes with the derived tubes of some kinds cut anew where the labels of a track's boxes change.

    A tube begins with the first box of a track that has the label and ends with the last one before a box
    without it; with several labels at once each has its own tubes. Frames without a box of the track (a
    hole) do not end a tube unless they are more than `max_hole`; its spans leave them out. Derived tubes of
    other kinds, and tubes without boxes, stay as they are; the new ones follow them, by kind, track, label
    and time, numbered from the largest number on.

    Args:
        scenes: with `boxes` that name tubes, and `labels` of the kinds.
        kinds: of labels, such as ["duplex", "event"].
        max_hole: the longest run of frames without a box that a tube lasts over; None for any.

    Raises:
        InputError: if `max_hole` is negative.

    Source: the ROAD paper, section 3.3: "generate action tubes by looking for changes in the action label
    series associated with each agent tube".
    """
    if max_hole is not None and max_hole < 0:
        raise InputError(f"the longest hole of a tube is a number of frames from 0 on, not {max_hole}")
    tubes, tube_labels = _without(scenes, kinds)
    pieces = extract_segments(scenes.boxes, scenes.labels, kinds, max_hole=max_hole)
    largest: Any = scenes.tubes["tube"].max()
    first = 0 if largest is None else int(largest) + 1
    pieces = pieces.with_columns(tube=pl.int_range(first, first + pl.len()))
    videos = scenes.tubes.select(parent="tube", video="video")
    rows = pieces.drop("label").join(videos, on="parent", how="left", maintain_order="left")
    return scenes.with_tables(
        tubes=pl.concat([tubes, rows], how="diagonal_relaxed"),
        tube_labels=pl.concat([tube_labels, _labels_like(tube_labels, pieces)], how="diagonal_relaxed"),
    )


def extract_segments(
    boxes: pl.DataFrame, labels: pl.DataFrame, kinds: Sequence[str], *, max_hole: int | None = None
) -> pl.DataFrame:
    """The stretches alone: parent, kind, label, start_frame, end_frame and spans, in the order of tubes.

    Args:
        boxes: with box, tube (null if untracked) and frame.
        labels: with box, kind and label.
        kinds: the kinds to cut, in the order wanted.
        max_hole: as `split_tubes_by_label`.
    """
    if "tube" not in boxes.columns:
        boxes = boxes.with_columns(tube=pl.lit(None, pl.Int64))
    places = _places(boxes)
    parts = [_of_kind(places, labels, kind, max_hole) for kind in kinds]
    return pl.concat(parts or [_of_kind(places, labels.clear(), "", None)])


def _without(scenes: Scenes, kinds: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tubes and their labels without the derived ones of some kinds."""
    tubes = scenes.tubes
    if not {"parent", "kind"} <= set(tubes.columns):
        return tubes, scenes.tube_labels
    old = pl.col("parent").is_not_null() & pl.col("kind").cast(pl.String).is_in(list(kinds))
    gone = tubes.filter(old)["tube"]
    return (
        tubes.filter(~old.fill_null(value=False)),
        scenes.tube_labels.filter(~pl.col("tube").is_in(gone.implode())),
    )


def _labels_like(table: pl.DataFrame, pieces: pl.DataFrame) -> pl.DataFrame:
    return pieces.select("tube", "kind", "label").cast({"kind": table.schema.get("kind", pl.String())})


def _places(boxes: pl.DataFrame) -> pl.DataFrame:
    """Each tracked box with its track, frame and place: its frame's rank among the frames of the track."""
    owned = boxes.select("box", "tube", "frame").filter(pl.col("tube").is_not_null())
    owned = owned.sort("tube", "frame", maintain_order=True)
    new = pl.any_horizontal(pl.col("tube", "frame").ne_missing(pl.col("tube", "frame").shift(1)))
    return owned.with_columns(place=new.cum_sum().cast(pl.Int64))


def _of_kind(places: pl.DataFrame, labels: pl.DataFrame, kind: str, max_hole: int | None) -> pl.DataFrame:
    """The stretches of one kind, by track, label and time."""
    wanted = labels.lazy().filter(pl.col("kind").cast(pl.String) == kind).select("box", "label")
    items = (
        wanted.join(places.lazy(), on="box")
        .select("tube", "label", "place", "frame")
        .unique()
        .sort("tube", "label", "place")
        .collect()
    )
    tube, label, place, frame = (items[c].to_numpy() for c in ("tube", "label", "place", "frame"))
    step = np.diff(frame, prepend=0)
    begins = (_changes(tube) | _changes(label)) | (np.diff(place, prepend=-2) != 1)
    if max_hole is not None:
        begins |= step > max_hole + 1
    first = np.flatnonzero(begins)
    runs = run_spans(np.cumsum(begins) - 1, frame)
    return runs.select(
        pl.Series("parent", tube[first], dtype=pl.Int64),
        pl.Series("kind", [kind] * len(first), dtype=pl.String),
        pl.Series("label", label[first], dtype=pl.Int64),
        "start_frame",
        "end_frame",
        "spans",
    )


def run_spans(run: Ints, frame: Ints) -> pl.DataFrame:
    """For each run: run, start_frame, end_frame (after its last) and spans (its frames without the holes).

    Args:
        run: (n,) which run each frame belongs to, ascending.
        frame: (n,) frames, ascending within a run.

    >>> run_spans(np.array([7, 7, 7]), np.array([2, 3, 6])).row(0)
    (7, 2, 7, [[2, 4], [6, 7]])
    """
    breaks = _changes(run) | (np.diff(frame, prepend=-2) != 1)
    first = np.flatnonzero(breaks)
    last = np.append(first[1:], len(frame))[: len(first)] - 1
    pieces = pl.DataFrame(
        {"run": run[first], "low": frame[first], "high": frame[last] + 1},
        schema={"run": pl.Int64, "low": pl.Int64, "high": pl.Int64},
    )
    return pieces.group_by("run", maintain_order=True).agg(
        pl.col("low").first().alias("start_frame"),
        pl.col("high").last().alias("end_frame"),
        spans=pl.concat_list("low", "high"),
    )


def _changes(values: Ints) -> npt.NDArray[np.bool_]:
    """Where a value differs from the one before; the first does."""
    changed = np.ones(len(values), dtype=np.bool_)
    changed[1:] = values[1:] != values[:-1]
    return changed
