"""What the frames table tells of the moments at which samples are observed, as one dense array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.scenes.tables import Scenes


def at_frames(
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
