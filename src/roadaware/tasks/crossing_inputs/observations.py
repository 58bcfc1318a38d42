"""Observations: the rows of the tables that each sample observes, from which every modality starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError
from roadaware.scenes.factors import build_position_index, find_observed_rows
from roadaware.scenes.sampling import split_samples
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes


@dataclass(frozen=True, eq=False)
class Observations:
    """The samples of one split and the rows of boxes and frames that they observe; n samples of t frames.

    A tube that ends inside the observation has its last box repeated; `repeated` says where.

    Args:
        scenes: whole.
        samples: (n rows) of the split, in their order.
        box_row: (n, t) rows of the boxes table.
    """

    scenes: Scenes
    samples: pl.DataFrame
    box_row: Ints

    def __len__(self) -> int:
        return len(self.samples)

    @cached_property
    def frame(self) -> Ints:
        """(n, t) the frame of each box."""
        return self._of_boxes("frame", pl.Int64).astype(np.int64)

    @cached_property
    def corners_px(self) -> Floats:
        """(n, t, 4) x1, y1, x2, y2 in pixels."""
        return np.stack([self._of_boxes(c, pl.Float64) for c in CORNERS], axis=-1)

    @cached_property
    def repeated(self) -> Bools:
        """(n, t) whether a box is the one before it again, since its tube has ended."""
        again = np.zeros(self.box_row.shape, dtype=np.bool_)
        again[:, 1:] = self.box_row[:, 1:] == self.box_row[:, :-1]
        return again

    @cached_property
    def steps_frames(self) -> Floats:
        """(n, t) frames from the box before; NaN at the first, and where a box is repeated."""
        steps = np.full(self.frame.shape, np.nan)
        steps[:, 1:] = np.diff(self.frame, axis=1)
        return np.where(self.repeated, np.nan, steps)

    @cached_property
    def video_row(self) -> Ints:
        """(n,) rows of the videos table."""
        owners = self.scenes.tubes.select("tube", pl.col("video").cast(pl.String))
        found = self.samples.select("tube").join(owners, on="tube", how="left", maintain_order="left")
        return found.join(self._videos, on="video", how="left", maintain_order="left")["owner"].to_numpy()

    @cached_property
    def size_px(self) -> Floats:
        """(n, 2) width and height of each sample's image.

        Raises:
            InputError: if one is unknown.
        """
        sizes = self.scenes.videos.select(
            pl.col(c).cast(pl.Float64).fill_null(float("nan")) for c in ("width_px", "height_px")
        ).to_numpy()[self.video_row]
        lost = np.asarray(~(sizes > 0).all(axis=1), dtype=np.bool_)
        if lost.any():
            raise InputError(f"the image size of {self.video_names(lost)} is unknown")
        return np.asarray(sizes, dtype=np.float64)

    @cached_property
    def fps(self) -> Floats:
        """(n,) frames per second of each sample's video, NaN where unknown."""
        if "fps" not in self.scenes.videos.columns:
            return np.full(len(self), np.nan)
        rates = self.scenes.videos["fps"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return np.asarray(rates[self.video_row], dtype=np.float64)

    @cached_property
    def frame_row(self) -> Ints:
        """(n, t) rows of the frames table, -1 where it has none for a frame."""
        held = self.scenes.frames.select(pl.col("video").cast(pl.String), "frame").with_row_index("row")
        held = held.join(self._videos, on="video", how="left")
        if held.is_empty():
            return np.full(self.frame.shape, -1, dtype=np.int64)
        owner, frame, row = (held[c].cast(pl.Int64).to_numpy() for c in ("owner", "frame", "row"))
        stride = 1 + max(int(self.frame.max(initial=0)), int(frame.max()))
        # Video and frame as one number, so that one search in sorted order finds all.
        key = owner * stride + frame
        order = np.argsort(key, kind="stable")
        asked = self.video_row[:, None] * stride + self.frame
        place = order[np.minimum(np.searchsorted(key, asked, sorter=order), len(key) - 1)]
        return np.where(key[place] == asked, row[place], -1)

    @cached_property
    def _videos(self) -> pl.DataFrame:
        names = self.scenes.videos.select(pl.col("video").cast(pl.String))
        return names.with_columns(owner=pl.int_range(pl.len(), dtype=pl.Int64))

    def video_names(self, which: Bools) -> list[str]:
        """Names of the videos of some samples ((n,) bool), the first five."""
        rows = np.unique(self.video_row[which])[:5]
        return [str(self.scenes.videos["video"][int(row)]) for row in rows]

    def at_boxes(self, column: str, words: Sequence[str] | None = None) -> Floats:
        """(n, t) a column of the boxes table, NaN where null; a word is its place in `words`.

        Args:
            column: which.
            words: text by name; another word is unknown.
        """
        return convert_column(self.scenes.boxes[column], words)[self.box_row]

    def at_frames(self, column: str, words: Sequence[str] | None = None) -> Floats:
        """(n, t) a column of the frames table, NaN where null or without a row.

        Args:
            column: which; all is unknown where the table lacks it.
            words: text by name: a word is its place in `words`, another is unknown.
        """
        if column not in self.scenes.frames.columns:
            return np.full(self.frame.shape, np.nan)
        # One NaN behind the column: frames without a row have place -1, which reads it.
        values = np.append(convert_column(self.scenes.frames[column], words), np.nan)
        return values[self.frame_row]

    def at_videos(self, column: str, words: Sequence[str]) -> Floats:
        """(n,) a column of text of the videos table as places in `words`, NaN where unknown.

        Args:
            column: which; all is unknown where the table lacks it.
            words: by name.
        """
        if column not in self.scenes.videos.columns:
            return np.full(len(self), np.nan)
        return convert_column(self.scenes.videos[column], words)[self.video_row]

    def _of_boxes(self, column: str, kind: pl.DataType | type[pl.DataType]) -> Floats:
        values: Floats = self.scenes.boxes[column].cast(kind).to_numpy()[self.box_row]
        return values


def collect_observations(scenes: Scenes, split: str) -> Observations:
    """Collect the observations of the samples of one split.

    Args:
        scenes: with `samples` cut by a protocol, and boxes.
        split: train, val or test.

    Raises:
        UsageError: if the samples were not cut for such a split, or observe unequal numbers of boxes.
        InputError: if the split has no samples, or a sample's tube has no box at its first frame.
    """
    samples = split_samples(scenes, split).samples
    return Observations(scenes, samples, find_observed_rows(build_position_index(scenes.boxes), samples))


def convert_column(column: pl.Series, words: Sequence[str] | None = None) -> Floats:
    """(m,) a column as float64, NaN where null; text is its place in `words`, NaN for another word.

    Args:
        column: (m,) numbers, truth values or text.
        words: for text, and for text alone.
    """
    if words is not None:
        place = {word: float(k) for k, word in enumerate(words)}
        column = column.cast(pl.String).replace_strict(place, default=None, return_dtype=pl.Float64)
    values: Floats = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return values


def has_values(table: pl.DataFrame, column: str) -> bool:
    """Whether a table has a column with any value."""
    return column in table.columns and table[column].null_count() < len(table)


def one_hot(places: Floats, n: int) -> Floats:
    """(..., n) one in the given place, zeros alone where it is NaN.

    Args:
        places: (...) whole numbers from 0, NaN where unknown.
        n: how many places there are.
    """
    return np.asarray(places[..., None] == np.arange(n), dtype=np.float64)
