"""Whether maps of sound are the right way up, and say anything."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from roadaware.analysis.doctor.diagnosis import Diagnosis, suspicious, wrong
from roadaware.arrays import Floats
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_MOST, _CLEARLY = 500, 0.1
_TURNS: dict[str, tuple[str, Callable[[Floats], Floats]]] = {
    "transposed": ("Write maps row by row: y first, then x.", lambda m: m.T),
    "upside down": ("Row 0 is the top of the picture.", lambda m: m[::-1]),
    "mirrored": ("Column 0 is the left of the picture.", lambda m: m[:, ::-1]),
    "inverted": ("High values are where the sound comes from.", lambda m: -m),
}


def maps(predictions: Predictions, scenes: Scenes) -> list[Diagnosis]:
    """Maps that hold one value everywhere, or lie another way than the pictures.

    Args:
        predictions: with `sounds` and their `map`.
        scenes: with `sounds`, `boxes` and `videos`.
    """
    if predictions.sounds.is_empty() or "map" not in predictions.sounds.columns:
        return []
    held = dict(_maps(predictions))
    constant = [sound for sound, values in held.items() if np.ptp(values) == 0]
    found: list[Diagnosis] = []
    if constant:
        says = f"{len(constant)} of {len(held)} maps hold one value everywhere: they score 0."
        kind = wrong if len(constant) == len(held) else suspicious
        evidence = f"sounds {constant[:3]}"
        found += kind("constant_map", says, evidence, "Write the model's map before it is thresholded.")
    truth = _boxes(scenes)
    pairs = [(values, truth[s]) for s, values in held.items() if s in truth and np.ptp(values) > 0]
    return found + _turned(pairs)


def _turned(pairs: list[tuple[Floats, Floats]]) -> list[Diagnosis]:
    if len(pairs) < 5:
        return []
    as_is = float(np.mean([_inside(values, box) for values, box in pairs]))
    turned = {
        name: float(np.mean([_inside(turn(v), box) for v, box in pairs]))
        for name, (_, turn) in _TURNS.items()
    }
    best = max(turned, key=lambda name: turned[name])
    if turned[best] - as_is < _CLEARLY:
        return []
    evidence = (
        f"true boxes are {as_is:+.2f} above the rest of the map as written, {turned[best]:+.2f} otherwise"
    )
    return wrong("map_turned", f"Maps seem to be {best}.", evidence, _TURNS[best][0])


def _inside(values: Floats, box: Floats) -> float:
    """How much the map is higher inside the box than outside, as a share of its range."""
    rows, columns = values.shape
    y, x = (np.arange(rows) + 0.5) / rows, (np.arange(columns) + 0.5) / columns
    inside = np.outer((y >= box[1]) & (y < box[3]), (x >= box[0]) & (x < box[2]))
    if inside.all() or not inside.any():
        return 0.0
    return float((values[inside].mean() - values[~inside].mean()) / np.ptp(values))


def _maps(predictions: Predictions) -> list[tuple[int, Floats]]:
    """Number of a sound and its map, of the first some hundreds."""
    table = predictions.sounds.filter(pl.col("map").is_not_null()).head(_MOST)
    widths = table["map_width"].to_list() if "map_width" in table.columns else [None] * len(table)
    found = []
    for sound, row, width in zip(table["sound"], table["map"], widths, strict=True):
        values = np.asarray(row, dtype=np.float64)
        columns = width or round(len(values) ** 0.5)
        if columns and len(values) and len(values) % columns == 0:
            found.append((int(sound), values.reshape(-1, columns)))
    return found


def _boxes(scenes: Scenes) -> dict[int, Floats]:
    """Number of a sound to its first box as shares of the picture."""
    if "sound" not in scenes.boxes.columns:
        return {}
    sizes = scenes.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px")
    boxes = scenes.boxes.with_columns(pl.col("video").cast(pl.String)).drop_nulls("sound")
    boxes = boxes.unique("sound", keep="first", maintain_order=True).join(sizes, on="video")
    corners = boxes.select(CORNERS).cast(pl.Float64).to_numpy()
    whole = np.tile(boxes.select("width_px", "height_px").cast(pl.Float64).to_numpy(), 2)
    shares = corners / whole if len(boxes) else corners
    return dict(zip(boxes["sound"].to_list(), shares, strict=True))
