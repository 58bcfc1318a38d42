"""Localisation maps of sounds beside the true boxes, and the success curve, as data for pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.metrics.sound.config import SoundConfig
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_MOST_CELLS = 32
_CURVES = {"claims": "ciou", "whole image": "whole_image", "centre": "centre"}
_UNIT = 1.5
"""Pictures no larger than this have boxes that are shares; their shape is unknown."""


@dataclass(frozen=True, eq=False)
class HeardMap:
    """One sound.

    Args:
        says: what it is and how well it was found, in words.
        size: (width, height) of the picture, in the unit of the boxes.
        map: (rows, columns) scaled to [0, 1]; no row where nothing was claimed.
        boxes: (n, 4) x1, y1, x2, y2 of where it comes from.
    """

    says: str
    size: tuple[float, float]
    map: Floats
    boxes: Floats

    @property
    def shaped(self) -> bool:
        """Whether the shape of the picture is known."""
        return max(self.size) > _UNIT

    def as_dict(self) -> dict[str, Any]:
        """The sound, JSON-ready."""
        return {
            "says": self.says,
            "size": list(self.size),
            "map": np.round(self.map, 3).tolist(),
            "boxes": np.round(self.boxes, 5).tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HeardMap:
        """The sound that `as_dict` gave.

        Raises:
            InputError: if something is missing or of a wrong kind.
        """
        try:
            wide, high = (float(side) for side in data["size"])
            held = np.array(data["map"], dtype=np.float64)
            rows = held.reshape(len(held), -1) if len(held) else np.zeros((0, 0))
            boxes = np.array(data["boxes"], dtype=np.float64).reshape(-1, 4)
            return cls(str(data["says"]), (wide, high), rows, boxes)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"a map of a sound is incomplete: {error}") from error


def heard_maps(
    predictions: Predictions, scenes: Scenes, sounds: Sequence[int], says: Sequence[str]
) -> tuple[HeardMap, ...]:
    """The maps of some sounds with their true boxes.

    Args:
        predictions: maps.
        scenes: boxes that point to sounds.
        sounds: their numbers, in the order of what is returned.
        says: what is said of each, in words.
    """
    columns = set(scenes.videos.columns)
    found = []
    for sound, words in zip(sounds, says, strict=True):
        video = str(scenes.sounds.filter(pl.col("sound") == sound)["video"][0])
        rows = scenes.videos.filter(pl.col("video").cast(pl.String) == video)
        known = len(rows) and {"width_px", "height_px"} <= columns and rows["width_px"][0] is not None
        size = (float(rows["width_px"][0]), float(rows["height_px"][0])) if known else (1.0, 1.0)
        boxes = scenes.boxes.filter(pl.col("sound") == sound).select(CORNERS).to_numpy().astype(np.float64)
        found.append(HeardMap(words, size, _map(predictions, sound), boxes))
    return tuple(found)


def success_curves(rows: pl.DataFrame, config: SoundConfig) -> dict[str, list[float]]:
    """The share of sounds that reach each threshold, as claimed and by the trivial answers.

    Args:
        rows: instances of sounds: `ciou`, `whole_image`, `centre`, `claimed`, `true_cells`.
        config: how they were judged.

    Returns:
        `thresholds`, `claims`, `whole image` and `centre`, (t,) each; empty where no sound is judged.
    """
    if config.empty_truth == "left_out":
        rows = rows.filter(pl.col("true_cells") > 0)
    if rows.is_empty():
        return {}
    steps = config.success_thresholds
    silent = ~rows["claimed"].to_numpy()
    held = {name: rows[column].fill_null(-1.0).to_numpy() for name, column in _CURVES.items()}
    held["claims"] = np.where(silent, -1.0, held["claims"])
    shares = {name: [float((values >= step).mean()) for step in steps] for name, values in held.items()}
    return {"thresholds": list(steps), **shares}


def _map(predictions: Predictions, sound: int) -> Floats:
    """(rows, columns) a claimed map, thinned, scaled to [0, 1]; a constant one is 0."""
    rows = predictions.sounds.filter(pl.col("sound") == sound)
    if rows.is_empty() or rows["map"][0] is None:
        return np.zeros((0, 0))
    values = rows["map"][0].to_numpy().astype(np.float64)
    width = rows["map_width"][0] if "map_width" in rows.columns else None
    wide = int(width) if width else max(1, round(float(np.sqrt(len(values)))))
    if not len(values) or len(values) % wide:
        return np.zeros((0, 0))
    held = values.reshape(-1, wide)
    for axis in (0, 1):
        n = held.shape[axis]
        kept = (np.arange(min(n, _MOST_CELLS)) + 0.5) * n / min(n, _MOST_CELLS)
        held = held.take(kept.astype(np.int64), axis=axis)
    low, reach = float(held.min()), float(np.ptp(held))
    scaled: Floats = (held - low) / reach if reach > 0 else np.zeros_like(held)
    return scaled
