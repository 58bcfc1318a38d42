"""The factors that bring boxes of truth and claims to pixels of one image size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.errors import InputError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.rescaling import image_sizes
from roadaware.scenes.tables import Scenes, TableSet

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scales:
    """What boxes are multiplied with before they are compared.

    Args:
        truth: (V, 4) factors of x1, y1, x2, y2 of the truth's boxes in each video.
        claims: (V, 4) the same for the claims.
    """

    truth: Floats
    claims: Floats


def scales(
    predictions: Predictions, scenes: Scenes, videos: Sequence[str], config: DetectionConfig
) -> Scales:
    """Bring both to `config.frame_size_px`, or the claims to the truth's own pixels where that is None.

    Args:
        predictions: whose `videos` say in which image size boxes are given; the truth's where they do not.
        scenes: whose `videos` say the same of the truth.
        videos: (V,) the videos asked for.
        config: with `frame_size_px`.

    Raises:
        InputError: if the size of a video is needed and not known.
    """
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
            "frame_size_px to null where truth and claims are in the same pixels",
        )
    factors = [np.where(same[:, None], 1.0, target / size) for size in (truth, claims)]
    return Scales(*(np.tile(factor, 2) for factor in factors))


def _sizes(tables: TableSet, videos: Sequence[str]) -> Floats:
    """(V, 2) width and height, NaN where not known."""
    known = image_sizes(tables)
    sizes = [known.get(video, (np.nan, np.nan)) for video in videos]
    return np.array(sizes, dtype=np.float64).reshape(-1, 2)
