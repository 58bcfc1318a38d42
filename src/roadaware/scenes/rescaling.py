"""Claims in the pixels of the truth's images, where they were made in images of another size."""

from __future__ import annotations

import polars as pl

from roadaware.errors import InputError
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes, TableSet

_SIZE = ("width_px", "height_px")
_SIDES = {"x1_px": "x", "x2_px": "x", "y1_px": "y", "y2_px": "y"}


def rescaled(predictions: Predictions, scenes: Scenes) -> Predictions:
    """The predictions with their boxes in pixels of the scenes' images, and videos of that size.

    Boxes of videos whose size the predictions do not tell are in the scenes' pixels already.

    Args:
        predictions: boxes, and `videos` with the size of the images that they are pixels of.
        scenes: `videos` with the size of the original images.

    Raises:
        InputError: if the predictions tell a video's size and the scenes do not.
    """
    own, theirs = _sizes(predictions), _sizes(scenes)
    both = own.join(theirs, on="video", how="left", suffix="_new", maintain_order="left")
    silent = both.filter(pl.any_horizontal(pl.col(f"{side}_new").is_null() for side in _SIZE))
    if len(silent):
        raise InputError(
            f"the truth does not say how large the images of {silent['video'].head(5).to_list()} are",
            hint="give its table `videos` width_px and height_px",
        )
    factors = both.select(
        "video",
        x=pl.col("width_px_new") / pl.col("width_px"),
        y=pl.col("height_px_new") / pl.col("height_px"),
    )
    names = predictions.boxes.select(pl.col("video").cast(pl.String))
    found = names.join(factors, on="video", how="left", maintain_order="left").with_columns(
        pl.col("x", "y").fill_null(1.0)
    )
    boxes = predictions.boxes.with_columns(
        (predictions.boxes[side].cast(pl.Float64) * found[axis]).cast(predictions.boxes.schema[side])
        for side, axis in _SIDES.items()
    )
    if not set(_SIZE) <= set(predictions.videos.columns):
        return predictions
    listed = predictions.videos.select(pl.col("video").cast(pl.String))
    sizes = listed.join(theirs, on="video", how="left", maintain_order="left")
    return predictions.with_tables(
        boxes=boxes, videos=predictions.videos.with_columns(sizes.get_columns()[1:])
    )


def _sizes(tables: TableSet) -> pl.DataFrame:
    """video, width_px and height_px of the videos whose size is known."""
    if not set(_SIZE) <= set(tables.videos.columns):
        return pl.DataFrame(schema={"video": pl.String, "width_px": pl.Int64, "height_px": pl.Int64})
    return tables.videos.select(pl.col("video").cast(pl.String), *_SIZE).drop_nulls()
