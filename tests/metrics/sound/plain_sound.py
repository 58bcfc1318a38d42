"""Localised sounds judged cell by cell with plain arrays, as the published evaluator does."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from sound_sets import Box, Heard, Map

from roadaware.metrics.sound import SoundConfig

Floats = npt.NDArray[np.float64]


def truth_map(heard: Heard, config: SoundConfig) -> Floats:
    """What each cell is worth."""
    size = config.size
    owned = _owned(heard)
    if config.unnamed_boxes == "each":
        owned = [(who or str(place), box) for place, (who, box) in enumerate(owned)]
    drawn = [(who, _mask(box, heard.side, config)) for who, box in owned]
    if config.consensus == "mean":
        people = {who for who, _ in drawn}
        total = np.zeros((size, size))
        for person in people:
            total += np.any([mask for who, mask in drawn if who == person], axis=0)
        return total / max(1, len(people))
    total = np.sum([mask for _, mask in drawn], axis=0, dtype=np.float64) if drawn else np.zeros((size, size))
    if config.consensus == "union":
        return (total > 0).astype(np.float64)
    return np.minimum(total / config.consensus_count, 1.0)


def resized(values: Map, size: int) -> Map:
    """Bilinear between centres of cells, edges going on; each sum rounded once to single precision."""
    cells = np.asarray(values, dtype=np.float32)
    for axis in (1, 0):
        n = cells.shape[axis]
        lines = []
        for place in range(size):
            centre = (place + 0.5) * (n / size) - 0.5
            low = math.floor(centre)
            part = float(np.float32(centre - low))
            a = np.take(cells, min(max(low, 0), n - 1), axis=axis)
            b = np.take(cells, min(max(low + 1, 0), n - 1), axis=axis)
            lines.append((a.astype(np.float64) + (b - a).astype(np.float64) * part).astype(np.float32))
        cells = np.stack(lines, axis=axis)
    return cells


def predicted(values: Map, config: SoundConfig) -> npt.NDArray[np.bool_]:
    cells = resized(values, config.size)
    spread = np.ptp(cells)
    if spread == 0:
        return np.full(cells.shape, config.constant_map == "whole")
    cells = (cells - cells.min()) / spread
    threshold = np.sort(cells.ravel())[cells.size // 2] if config.threshold is None else config.threshold
    return cells > threshold if config.comparison == "greater" else cells >= threshold


def ciou(heard: Heard, config: SoundConfig) -> float:
    """NaN where truth and prediction are both empty; 0 without a prediction."""
    if heard.map is None:
        return 0.0
    return overlap(predicted(heard.map, config), truth_map(heard, config))


def overlap(mask: npt.NDArray[np.bool_], truth: Floats) -> float:
    either = truth.sum() + (mask & (truth == 0)).sum()
    return float((mask * truth).sum() / either) if either else math.nan


def means(heard: list[Heard], config: SoundConfig) -> dict[str, float]:
    """The three metrics over sounds that all have truth."""
    values = [(ciou(each, config), each.map is None) for each in heard]
    steps = [0.05 * i if config.success_steps == "rounded" else i / 20 for i in range(21)]
    curve = [
        sum(1 for value, silent in values if value >= step and not silent) / len(values) for step in steps
    ]
    area = sum((steps[i + 1] - steps[i]) * (curve[i] + curve[i + 1]) / 2 for i in range(len(steps) - 1))
    return {
        "ciou": sum(value for value, _ in values) / len(values),
        "success@0.5": sum(1 for value, _ in values if value >= 0.5) / len(values),
        "success_auc": area,
    }


def _owned(heard: Heard) -> list[tuple[str, Box]]:
    return list(zip(heard.annotators or [""] * len(heard.boxes), heard.boxes, strict=True))


def _mask(box: Box, side: int, config: SoundConfig) -> npt.NDArray[np.bool_]:
    mask = np.zeros((config.size, config.size), dtype=bool)
    numbers = [max(v, 0.0) if config.negative_corners == "clip" else v for v in box]
    x1, y1, x2, y2 = (int(config.size * v / side) for v in numbers)
    mask[y1:y2, x1:x2] = True
    return mask
