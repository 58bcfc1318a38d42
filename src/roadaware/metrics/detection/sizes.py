"""The factors that bring boxes of ground truth and predictions to pixels of one image size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.frame_inputs import find_video_index
from roadaware.scenes.concatenation import get_image_sizes
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

T = TypeVar("T", Scenes, Predictions)


@dataclass(frozen=True, eq=False)
class Scales:
    """Factors that bring boxes to a common image size before they are compared.

    Args:
        truth: (V, 4) factors of x1, y1, x2, y2 of the ground truth's boxes in each video.
        claims: (V, 4) the same for the predictions.
    """

    truth: Floats
    claims: Floats


def compute_scales(
    predictions: Predictions, scenes: Scenes, videos: Sequence[str], config: DetectionConfig
) -> Scales:
    """Bring both to `config.frame_size_px`, or the predictions to the ground truth's own pixels where that is None.

    Args:
        predictions: whose `videos` say in which image size boxes are given; the ground truth's where they do not.
        scenes: whose `videos` say the same of the ground truth.
        videos: (V,) the videos asked for.
        config: with `frame_size_px`.

    Raises:
        InputError: if the size of a video is needed and not known.
    """
    truth, claims, target = _validate_sizes(predictions, scenes, videos, config)
    same = np.isnan(truth[:, :1])
    return Scales(*(np.tile(np.where(same, 1.0, target / size), 2) for size in (truth, claims)))


def scale_to_common_size(
    predictions: Predictions, scenes: Scenes, videos: Sequence[str], config: DetectionConfig
) -> tuple[Predictions, Scenes, Scales]:
    """Predictions and ground truth, and the factors still to be applied to their boxes.

    In single precision that is nothing: boxes are divided by the size of their image and multiplied by
    the other one, each rounded to 32 bits, as the published code does; those that are in pixels of it
    stay as they are. Arguments and errors as `compute_scales`.
    """
    if config.numbers == "double":
        return predictions, scenes, compute_scales(predictions, scenes, videos, config)
    truth, claims, target = _validate_sizes(predictions, scenes, videos, config)
    ones = np.ones((len(videos), 4))
    held = _in_single(predictions, claims, target, videos), _in_single(scenes, truth, target, videos)
    return *held, Scales(ones, ones)


def _in_single(tables: T, own: Floats, target: Floats, videos: Sequence[str]) -> T:
    """The tables with boxes brought to a size by 32-bit arithmetic."""
    boxes = tables.boxes
    at = find_video_index(boxes["video"], videos)
    target = np.broadcast_to(target, own.shape)
    # Boxes in unknown videos, at -1, find the last row: sizes of 1.
    sizes = [np.vstack([np.tile(size, 2), np.ones((1, 4))])[at].astype(np.float32) for size in (own, target)]
    corners = boxes.select(CORNERS).cast(pl.Float32).to_numpy()
    # Only where sizes differ: divided and multiplied by one number, 32 bits do not always give back the same.
    moved = np.where((sizes[0] == sizes[1]) | np.isnan(sizes[0]), corners, corners / sizes[0] * sizes[1])
    return tables.with_tables(
        boxes=boxes.with_columns(pl.Series(name, moved[:, k]) for k, name in enumerate(CORNERS))
    )


def _validate_sizes(
    predictions: Predictions, scenes: Scenes, videos: Sequence[str], config: DetectionConfig
) -> tuple[Floats, Floats, Floats]:
    """(V, 2) sizes of ground truth and predictions, NaN where they are the same and unknown; and what they become."""
    truth, claims = _sizes(scenes, videos), _sizes(predictions, videos)
    claims = np.where(np.isnan(claims), truth, claims)
    target = truth if config.frame_size_px is None else np.array([config.frame_size_px], dtype=np.float64)
    unknown = np.isnan(truth[:, 0])
    same = unknown & np.isnan(claims[:, 0])
    lost = unknown if config.frame_size_px is not None else unknown & ~same
    if lost.any():
        names = [videos[k] for k in np.flatnonzero(lost)[:5]]
        raise InputError(
            f"the image size of {int(lost.sum())} videos of the truth is not known, first {names}",
            hint="boxes are compared in pixels of one size: fill width_px and height_px in videos, or set "
            "frame_size_px to null where truth and predictions are in the same pixels",
        )
    return truth, claims, target


def _sizes(tables: TableSet, videos: Sequence[str]) -> Floats:
    """(V, 2) width and height, NaN where not known."""
    known = get_image_sizes(tables)
    sizes = [known.get(video, (np.nan, np.nan)) for video in videos]
    return np.array(sizes, dtype=np.float64).reshape(-1, 2)
