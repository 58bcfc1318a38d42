"""Predicted localisation maps at the size of the ground truth, and the cells that they predict."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats32, Ints
from roadaware.errors import InputError
from roadaware.metrics.sound.config import SoundConfig

_CELLS_AT_ONCE = 1 << 22


def resize_weights(cells: int, size: int) -> tuple[Ints, Ints, Floats32]:
    """For each of `size` new cells: (size,) the old cell before its centre, the one after it, and how far on.

    Centres lie in the middle of cells; beyond the first and last centre the edge goes on.

    Source: bilinear interpolation as OpenCV's `INTER_LINEAR`.

    >>> resize_weights(2, 4)[2]
    array([0.75, 0.25, 0.75, 0.25], dtype=float32)
    """
    centres = (np.arange(size) + 0.5) * (cells / size) - 0.5
    before = np.floor(centres)
    part = (centres - before).astype(np.float32)
    place = before.astype(np.int64)
    return np.clip(place, 0, cells - 1), np.clip(place + 1, 0, cells - 1), part


def normalize_maps(maps: npt.ArrayLike, size: int) -> Floats32:
    """(n, size, size) maps resized to `size` and scaled to [0, 1], in single precision; NaN where constant.

    Args:
        maps: (n, h, w) of any size.
        size: cells in a row of what comes out.

    Source: Song et al., CVPR 2022, `test.py`, `utils.py`.
    """
    from roadaware.metrics.sound.map_kernels import resize_maps

    cells = np.ascontiguousarray(maps, dtype=np.float32)
    found: Floats32 = resize_maps(
        cells, *resize_weights(cells.shape[1], size), *resize_weights(cells.shape[2], size)
    )
    return found


def select_predicted_cells(maps: Floats32, config: SoundConfig) -> Bools:
    """(n, size, size) the cells that scaled maps predict.

    Args:
        maps: (n, size, size) in [0, 1], NaN where constant; see `normalize_maps`.
        config: `threshold`, `comparison` and `constant_map`.

    Source: Song et al., CVPR 2022, `test.py`.
    """
    n, cells = len(maps), maps.shape[1] * maps.shape[2]
    threshold: Floats32 = np.full((n, 1, 1), np.float32(config.threshold or 0.0))
    if config.threshold is None:
        middle = np.partition(maps.reshape(n, cells), cells // 2, axis=1)[:, cells // 2]
        threshold = middle.reshape(n, 1, 1)
    claimed: Bools = maps > threshold if config.comparison == "greater" else maps >= threshold
    if config.constant_map == "whole":
        claimed |= np.isnan(maps)
    return claimed


def map_chunks(claims: pl.DataFrame, matched: pl.DataFrame, size: int) -> Iterator[tuple[Ints, Floats32]]:
    """Rows of the ground truth and (n, h, w) their predicted maps, maps of one shape at a time, as many as fit.

    Args:
        claims: with `sound`, `map`, and `map_width` where maps are not square.
        matched: `claim` and `row`: which row of the predictions is about which of the ground truth.
        size: what maps are resized to, which tells how many fit.

    Raises:
        InputError: if a map has no cell, a gap, or a length that its width does not divide.
    """
    if "map" not in claims.columns:
        return
    width = pl.col("map_width") if "map_width" in claims.columns else pl.lit(None, dtype=pl.Int64)
    lengths = (
        claims["map"].arr.len() if isinstance(claims.schema["map"], pl.Array) else claims["map"].list.len()
    )
    known = (
        claims.select("sound", width.alias("width"))
        .with_columns(lengths.cast(pl.Int64).alias("cells"))
        .with_row_index("claim")
        .join(matched, on="claim", maintain_order="left")
        .filter(pl.col("cells").is_not_null())
        .with_columns(square=pl.col("width").is_null())
        .with_columns(pl.col("width").fill_null(pl.col("cells").sqrt().round().cast(pl.Int64)))
    )
    _check_shapes(known)
    for (cells, wide), part in known.group_by("cells", "width", maintain_order=True):
        high = int(cells) // int(wide)
        step = max(1, _CELLS_AT_ONCE // max(size * size, int(cells)))
        for start in range(0, len(part), step):
            some = part.slice(start, step)
            values = claims["map"].gather(some["claim"]).explode()
            if values.null_count():
                raise InputError(f"{values.null_count()} cells of maps are null", where="table sounds")
            yield some["row"].to_numpy().astype(np.int64), values.to_numpy().reshape(len(some), high, -1)


def _check_shapes(known: pl.DataFrame) -> None:
    wide, cells = pl.col("width"), pl.col("cells")
    even = (cells > 0) & (wide > 0) & (cells % wide == 0) & (~pl.col("square") | (wide * wide == cells))
    wrong = known.filter(~even.fill_null(False))
    if len(wrong):
        raise InputError(
            f"the maps of {len(wrong)} sounds have no rows of equal length, first "
            f"{wrong.select('sound', 'cells', 'width').head(3).rows(named=True)}",
            hint="a map holds height x width cells row by row; give `map_width` where it is not square",
        )
