"""The cells of the image that each sound comes from, and their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.metrics.sound.config import SoundConfig
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes


@dataclass(frozen=True, eq=False)
class SoundTruth:
    """The ground-truth boxes of n sounds, in cells.

    Args:
        table: one row per sound: video, sound, name, sound_class, category.
        first: (n + 1,) where each sound's boxes start.
        edges: (boxes, 4) x1, y1, x2, y2 in cells, half open, within the image.
        owner: (boxes,) whose vote a box is: boxes of one owner count once for a cell.
        annotators: (n,) how many drew boxes of the sound; at least 1.
    """

    table: pl.DataFrame
    first: Ints
    edges: Ints
    owner: Ints
    annotators: Ints

    @property
    def most(self) -> int:
        """The largest number of boxes of a sound."""
        return int(np.diff(self.first).max(initial=0))

    def part(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """`first`, `edges` and `owner` of some sounds.

        Args:
            rows: (m,) which ones.
        """
        counts = self.first[rows + 1] - self.first[rows]
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        boxes = np.repeat(self.first[rows] - first[:-1], counts) + np.arange(first[-1])
        return first, self.edges[boxes], self.owner[boxes]

    def worth(self, config: SoundConfig) -> Floats:
        """(n, most + 1) weight of a cell with 0, 1, ... votes."""
        votes = np.arange(self.most + 1, dtype=np.float64)
        if config.consensus == "mean":
            found: Floats = votes[None] / self.annotators[:, None]
            return found
        counted = (
            votes > 0 if config.consensus == "union" else np.minimum(votes / config.consensus_count, 1.0)
        )
        return np.broadcast_to(np.asarray(counted, dtype=np.float64), (len(self.annotators), len(votes)))


def build_sound_truth(scenes: Scenes, config: SoundConfig) -> SoundTruth:
    """The ground-truth boxes of every sound, in the order of the table of sounds.

    Raises:
        InputError: if there are no sounds, none of them has a box, or the size of an image is unknown.

    Source: Song et al., CVPR 2022, `utils.py`: a corner is the whole part of size * coordinate / side.
    """
    table = _build_sound_table(scenes)
    boxes = _boxes(scenes, table, each=config.unnamed_boxes == "each")
    if boxes.is_empty():
        raise InputError(
            f"none of the {len(table)} sounds of the truth has a box", hint="boxes name theirs in `sound`"
        )
    sides = np.tile(boxes.select("width_px", "height_px").to_numpy().astype(np.float64), 2)
    cells = np.trunc(config.size * boxes.select(CORNERS).to_numpy() / sides).astype(np.int64)
    lowest = 0 if config.negative_corners == "clip" else cells + config.size
    cells = np.clip(np.where(cells < 0, lowest, cells), 0, config.size)
    rows = boxes["row"].to_numpy()
    owners = boxes["annotator"].rle_id() if config.consensus == "mean" else boxes["place"]
    # An annotator who drew the last box of one sound and the first of the next has two numbers.
    new = np.concatenate([[False], (rows[1:] != rows[:-1]) | (np.diff(owners.to_numpy()) != 0)])
    voters = boxes.group_by("row").agg(pl.col("annotator").n_unique())
    annotators = np.ones(len(table), dtype=np.int64)
    annotators[voters["row"].to_numpy()] = voters["annotator"].to_numpy()
    first = np.searchsorted(rows, np.arange(len(table) + 1))
    return SoundTruth(table, first.astype(np.int64), cells, np.cumsum(new).astype(np.int64), annotators)


def _build_sound_table(scenes: Scenes) -> pl.DataFrame:
    sounds = scenes.sounds
    if sounds.is_empty():
        raise InputError("the truth has no sounds", hint="its table `sounds` is empty")
    names = dict(enumerate(scenes.meta.vocabularies.get("sound", ())))
    columns: dict[str, Any] = {"video": pl.String, "sound": pl.Int64, "name": pl.String, "label": pl.Int64}
    table = sounds.select(_get_column(sounds, c).cast(dtype) for c, dtype in columns.items())
    label = pl.col("label")
    named = label.replace_strict(names, default=label.cast(pl.String), return_dtype=pl.String)
    videos = scenes.videos.select(pl.col("video").cast(pl.String), _get_column(scenes.videos, "category"))
    return table.select("video", "sound", "name", named.alias("sound_class")).join(
        videos.with_columns(pl.col("category").cast(pl.String)),
        on="video",
        how="left",
        maintain_order="left",
    )


def _boxes(scenes: Scenes, table: pl.DataFrame, *, each: bool) -> pl.DataFrame:
    """The boxes of sounds by sound and annotator, each in its order, with the sides of their images.

    Args:
        scenes: the ground truth.
        table: of the sounds.
        each: whether boxes that name no annotator are each of one of their own.
    """
    if "sound" not in scenes.boxes.columns:
        return scenes.boxes.clear()
    sides = scenes.videos.select(
        pl.col("video").cast(pl.String),
        _get_column(scenes.videos, "width_px"),
        _get_column(scenes.videos, "height_px"),
    )
    nobody = pl.format("\0{}", pl.int_range(pl.len())) if each else pl.lit("")
    annotator = pl.coalesce(_get_column(scenes.boxes, "annotator").cast(pl.String), nobody).alias("annotator")
    boxes = (
        scenes.boxes.filter(pl.col("sound").is_not_null())
        .select("sound", pl.col("video").cast(pl.String), pl.col(CORNERS).cast(pl.Float64), annotator)
        .join(table.with_row_index("row").select("row", "sound"), on="sound", maintain_order="left")
        .join(sides, on="video", how="left", maintain_order="left")
        .sort("row", "annotator", maintain_order=True)
        .with_row_index("place")
    )
    unknown = boxes.filter(~((pl.col("width_px") > 0) & (pl.col("height_px") > 0)).fill_null(False))[
        "video"
    ].unique(maintain_order=True)
    if len(unknown):
        raise InputError(
            f"the images of {len(unknown)} videos have no size, first {unknown.head(5).to_list()}",
            hint="give videos.width_px and videos.height_px; images with boxes in shares are 1 x 1",
        )
    return boxes


def _get_column(frame: pl.DataFrame, column: str) -> pl.Expr:
    """The column, null where the table lacks it."""
    return pl.col(column) if column in frame.columns else pl.lit(None).alias(column)
