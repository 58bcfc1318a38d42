"""Boxes in pixels of images of another size: claims in those of the truth, one detector's in another's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes, TableSet

Sizes = Mapping[str, tuple[int, int]]
"""Width and height in pixels of the images of each video."""


def rescaled(predictions: Predictions, scenes: Scenes) -> Predictions:
    """The predictions with their boxes in pixels of the scenes' images, and videos of that size.

    Boxes of videos whose size the predictions do not tell are in the scenes' pixels already.

    Args:
        predictions: boxes, and `videos` with the size of the images that they are pixels of.
        scenes: `videos` with the size of the original images.

    Raises:
        InputError: if the predictions tell a video's size and the scenes do not.
    """
    own, asked = image_sizes(predictions), image_sizes(scenes)
    silent = [video for video in own if video not in asked]
    if silent:
        raise InputError(
            f"the truth does not say how large the images of {silent[:5]} are",
            hint="give its table `videos` width_px and height_px",
        )
    if not {"width_px", "height_px"} <= set(predictions.videos.columns):
        return predictions
    boxes = predictions.boxes
    scale = factors(boxes["video"], own, asked)
    boxes = boxes.with_columns(
        (boxes[side].cast(pl.Float64) * pl.Series(scale[:, k])).cast(boxes.schema[side])
        for k, side in enumerate(CORNERS)
    )
    return predictions.with_tables(boxes=boxes, videos=with_sizes(predictions.videos, asked))


def image_sizes(tables: TableSet) -> dict[str, tuple[int, int]]:
    """Width and height in pixels of the images of each video, where both are known, as `videos` tells."""
    if not {"width_px", "height_px"} <= set(tables.videos.columns):
        return {}
    known = tables.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px").drop_nulls()
    return {video: (width, height) for video, width, height in known.iter_rows() if width > 0 and height > 0}


def with_sizes(videos: pl.DataFrame, sizes: Sizes) -> pl.DataFrame:
    """The table of videos with these sizes, null for videos that have none."""
    names = videos["video"].cast(pl.String).to_list()
    sides = [[sizes[name][k] if name in sizes else None for name in names] for k in range(2)]
    return videos.with_columns(
        pl.Series(side, values, dtype=pl.Int64)
        for side, values in zip(("width_px", "height_px"), sides, strict=True)
    )


def factors(videos: pl.Series, own: Sizes, asked: Sizes) -> npt.NDArray[np.float64]:
    """(n, 4) what x1, y1, x2, y2 are multiplied with to be pixels of images of the sizes asked for.

    Args:
        videos: (n,) the video of each box.
        own: the sizes that boxes are in.
        asked: the others; boxes of a video that either leaves out stay as they are.
    """
    names = videos.cast(pl.String)
    different = names.unique(maintain_order=True).to_list()
    scale = np.ones((len(different), 4))
    for k, name in enumerate(different):
        if name in own and name in asked:
            scale[k] = np.tile(np.divide(asked[name], own[name]), 2)
    rows: npt.NDArray[np.float64] = scale[names.cast(pl.Enum(different)).to_physical().to_numpy()]
    return rows
