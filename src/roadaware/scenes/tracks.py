"""Boxes of a tube by their position and of an observation as one dense array; tubes cut where a track's labels change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes


@dataclass(frozen=True)
class Positions:
    """Boxes grouped by tube and ordered by frame; a position counts the boxes of a tube, gaps ignored.

    Args:
        tube: (t,) the tubes that own boxes, ascending.
        first: (t + 1,) where each tube's boxes begin in `frame`, and the end of the last.
        frame: (m,) the frame of each box.
        row: (m,) its row in the boxes table.
    """

    tube: Ints
    first: Ints
    frame: Ints
    row: Ints

    def place(self, tube: Ints) -> Ints:
        """(n,) index of each tube in `tube`, -1 for a tube without boxes."""
        if not len(self.tube):
            return np.full(len(tube), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.tube, tube), len(self.tube) - 1)
        return np.where(self.tube[place] == tube, place, -1)

    def extent(self, tube: Ints) -> tuple[Ints, Ints]:
        """(n,) where each tube's boxes begin in `frame` and (n,) how many there are; 0, 0 without boxes."""
        place = self.place(tube)
        owns = place >= 0
        begin = np.where(owns, self.first[place], 0)
        return begin, np.where(owns, self.first[place + owns] - begin, 0)

    def from_frame(self, tube: Ints, frame: Ints) -> Ints:
        """(n,) index in `frame` of each tube's first box at or behind a frame; the end of its boxes if none.

        Args:
            tube: (n,) the tubes, each with boxes.
            frame: (n,) the frames, not negative.
        """
        # Tube and frame as one number: a single sorted array answers for all tubes at once.
        stride = int(self.frame.max(initial=0)) + 1
        key = np.repeat(np.arange(len(self.tube)), np.diff(self.first)) * stride + self.frame
        # Not beyond the stride, or a late frame would be looked for in the next tube.
        return np.searchsorted(key, self.place(tube) * stride + np.minimum(frame, stride))

    def locate(self, tube: Ints, frame: Ints) -> Ints:
        """(n,) index in `frame` of each tube's box at that frame, -1 where there is none.

        Args:
            tube: (n,) the tubes.
            frame: (n,) the frames; a negative one is never found.
        """
        if not len(self.frame):
            return np.full(len(tube), -1, dtype=np.int64)
        found = self.from_frame(tube, np.maximum(frame, 0))
        begin, length = self.extent(tube)
        inside = (frame >= 0) & (found >= begin) & (found < begin + length)
        return np.where(inside & (self.frame[np.where(inside, found, 0)] == frame), found, -1)


def build_position_index(boxes: pl.DataFrame) -> Positions:
    """The positions of all boxes that belong to a tube.

    Args:
        boxes: a boxes table, in any order.
    """
    if boxes.is_empty() or "tube" not in boxes.columns:
        return from_rows(*(np.empty(0, dtype=np.int64),) * 3)
    held = boxes.select("tube", "frame").with_row_index("row").drop_nulls("tube")
    tube, frame, row = (held[c].cast(pl.Int64).to_numpy() for c in ("tube", "frame", "row"))
    return from_rows(tube, frame, row)


def from_rows(tube: Ints, frame: Ints, row: Ints) -> Positions:
    """Positions of boxes given as arrays.

    Args:
        tube: (m,) owner of each box.
        frame: (m,) its frame.
        row: (m,) what to remember it by.
    """
    ordered = (tube[1:] > tube[:-1]) | ((tube[1:] == tube[:-1]) & (frame[1:] >= frame[:-1]))
    # Boxes mostly come in order, and then need not be sorted.
    if not ordered.all():
        order = np.lexsort((frame, tube))
        tube, frame, row = tube[order], frame[order], row[order]
    owners, first = np.unique(tube, return_index=True)
    return Positions(owners, np.append(first, len(tube)), frame, row)


# The boxes of each sample's observation as one dense array.


def extract_windows(
    scenes: Scenes,
    samples: pl.DataFrame,
    columns: Sequence[str] = CORNERS,
    *,
    before: int = 0,
    after: int = 0,
) -> npt.NDArray[np.float64]:
    """(n, before + T + after, c) columns of the boxes of each sample's observation, by position in the tube.

    A position counts the boxes of a tube, so a gap in its frames takes no place. T is the number of boxes
    that every sample observes; only where a tube ends are there fewer, and its last box is repeated. Where
    a tube begins, its first is. Nothing behind an observation is read but by `after`.

    Args:
        scenes: the boxes.
        samples: (n rows) with `tube`, `start_frame` and `end_frame`.
        columns: (c) columns of the boxes table; text comes as the codes of `encode_as_enum`, null as NaN.
        before: positions to add ahead of the observation.
        after: positions to add behind it.

    Raises:
        InputError: if a column is unknown, or a sample's tube has no box at its first frame.
        UsageError: if samples observe unequal numbers of boxes inside their tubes.
    """
    missing = [c for c in columns if c not in scenes.boxes.columns]
    if missing:
        raise InputError(f"the boxes have no column {missing}; they have {scenes.boxes.columns}")
    index = build_position_index(scenes.boxes)
    rows = find_observed_rows(index, samples, before=before, after=after)
    values = np.empty((*rows.shape, len(columns)))
    for place, column in enumerate(columns):
        values[..., place] = _numbers(scenes.boxes[column])[rows]
    return values


def find_observed_rows(index: Positions, samples: pl.DataFrame, *, before: int = 0, after: int = 0) -> Ints:
    """(n, before + T + after) rows of the boxes table that each sample's observation covers.

    Args:
        index: the positions of the boxes.
        samples: (n rows) with `tube`, `start_frame` and `end_frame`.
        before: positions to add ahead of the observation.
        after: positions to add behind it.

    Raises:
        InputError: if there are no boxes, or a sample's tube has none at its first frame.
        UsageError: if samples observe unequal numbers of boxes inside their tubes.
    """
    if samples.is_empty():
        return np.empty((0, before + after), dtype=np.int64)
    if not len(index.row):
        raise InputError(
            f"{len(samples)} samples look at boxes, and these scenes have none",
            hint="attributes alone carry intention only; read the box annotations too (of PIE, annotations/)",
        )
    tube, start, end = (samples[c].to_numpy() for c in ("tube", "start_frame", "end_frame"))
    first = index.locate(tube, start)
    if (first < 0).any():
        lost = samples.filter(pl.Series(first < 0)).select("sample", "tube", "start_frame")
        raise InputError(
            f"{len(lost)} samples begin where their tube has no box, first {lost.head(3).rows()}",
            hint="samples belong to the scenes they were cut from",
        )
    begin, length = index.extent(tube)
    last = begin + length - 1
    behind = index.from_frame(tube, end)
    observed = max(1, int((behind - first).max()))
    uneven = (behind - first < observed) & (behind <= last)
    if uneven.any():
        shown = samples.filter(pl.Series(uneven)).select("sample", "start_frame", "end_frame").head(3).rows()
        raise UsageError(
            f"{int(uneven.sum())} samples observe fewer than the {observed} boxes that others do, "
            f"first {shown}; one array would show them the future: ask for the samples of each length "
            "by themselves"
        )
    offsets = np.arange(-before, observed + after)
    # Clipped to the tube: its first and its last box are repeated, never another tube's.
    place = np.clip(first[:, None] + offsets, begin[:, None], last[:, None])
    return np.asarray(index.row[place], dtype=np.int64)


def encode_as_enum(column: pl.Series) -> pl.Series:
    """A column of text as an Enum: one that is an Enum keeps its codes, other text is numbered in its order.

    Args:
        column: (n,) text of any type.
    """
    if isinstance(column.dtype, pl.Enum):
        return column
    text = column.cast(pl.String)
    return text.cast(pl.Enum(text.drop_nulls().unique().sort()))


def _numbers(column: pl.Series) -> npt.NDArray[np.float64]:
    """The column as float64, null as NaN."""
    if column.dtype in (pl.Enum, pl.Categorical, pl.String):
        column = encode_as_enum(column).to_physical()
    return column.cast(pl.Float64).to_numpy()


# What the frames table tells of the moments at which samples are observed, as one dense array.


def get_frame_values(
    scenes: Scenes, column: str, video: pl.Series, frames: Floats, names: Sequence[str] | None = None
) -> Floats:
    """(n, t) a column of the frames table at the given frames, NaN where unknown.

    Args:
        scenes: with the frames table.
        column: of the frames table; all is unknown where the table lacks it.
        video: (n,) the video of each sample.
        frames: (n, t) whole numbers of frames.
        names: text by name: a value is its place in `names`, unknown where it is none of them, however the
            dataset orders its own dictionary. Needed for text, and for text alone.
    """
    if column not in scenes.frames.columns:
        return np.full(frames.shape, np.nan)
    value = pl.col(column)
    if names is not None:
        value = value.cast(pl.String).replace_strict(list(names), list(range(len(names))), default=None)
    known = scenes.frames.select(pl.col("video").cast(pl.String), "frame", value.cast(pl.Float64))
    asked = pl.DataFrame(
        {
            "video": np.repeat(video.cast(pl.String).to_numpy(), frames.shape[1]),
            "frame": frames.reshape(-1).astype(np.int64),
        }
    )
    found = asked.join(known, on=["video", "frame"], how="left", maintain_order="left")[column]
    return np.asarray(found.fill_null(float("nan")).to_numpy(), dtype=np.float64).reshape(frames.shape)


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
        tube_labels=pl.concat(
            [
                tube_labels,
                pieces.select("tube", "kind", "label").cast(
                    {"kind": tube_labels.schema.get("kind", pl.String())}
                ),
            ],
            how="diagonal_relaxed",
        ),
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
    # Each tracked box with its track, frame and place: its frame's rank among the frames of the track
    owned = boxes.select("box", "tube", "frame").filter(pl.col("tube").is_not_null())
    owned = owned.sort("tube", "frame", maintain_order=True)
    new = pl.any_horizontal(pl.col("tube", "frame").ne_missing(pl.col("tube", "frame").shift(1)))
    places = owned.with_columns(place=new.cum_sum().cast(pl.Int64))
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
