"""Grounded sentences at a few of their frames: true and claimed boxes and spans, as data for a picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from roadaware.analysis.worst_tubes import Strip
from roadaware.arrays import Floats, Ints
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes, TableSet

Span = tuple[int, int]

_FRAMES, _FEWEST_SHARED = 7, 4


def grounded_strips(
    predictions: Predictions, scenes: Scenes, queries: Sequence[int], says: Sequence[str]
) -> tuple[Strip, ...]:
    """A strip for each sentence that has a true or a claimed box.

    The frames that are shown lie evenly over those where both sides have a box in one of the spans, or,
    where these are few, over those where either has.

    Args:
        predictions: what is claimed.
        scenes: what is true.
        queries: numbers of sentences, in the order of the strips.
        says: what is said of each, in words.
    """
    strips = (_strip(predictions, scenes, query, words) for query, words in zip(queries, says, strict=True))
    return tuple(strip for strip in strips if strip is not None)


def _strip(predictions: Predictions, scenes: Scenes, query: int, says: str) -> Strip | None:
    true, claimed = _row(scenes, query), _row(predictions, query)
    spans = [_span(true), _span(claimed)]
    low, high = min((s[0] for s in spans if s), default=0), max((s[1] for s in spans if s), default=0)
    boxes = [_boxes(scenes, true, spans[0]), _boxes(predictions, claimed, (low, high))]
    frames = _shown(*(held for held, _ in boxes))
    if not len(frames):
        return None
    size = _size(scenes, str(true["video"]), [corners for _, corners in boxes])
    shown = [_at(frames, held, corners) for held, corners in boxes]
    true_spans, claimed_spans = ((span,) if span else () for span in spans)
    return Strip(says, size, frames, shown[0], shown[1], true_spans, claimed_spans)


def _row(tables: TableSet, query: int) -> dict[str, object]:
    """The first row of a sentence; empty where there is none."""
    rows = tables.queries.filter(pl.col("query") == query)
    return rows.row(0, named=True) if len(rows) else {}


def _span(row: dict[str, object]) -> Span | None:
    start, end = row.get("start_frame"), row.get("end_frame")
    return (start, end) if isinstance(start, int) and isinstance(end, int) and end > start else None


def _boxes(tables: TableSet, row: dict[str, object], span: Span | None) -> tuple[Ints, Floats]:
    """(n,) frames of the sentence's boxes within a span, rising, and (n, 4) the boxes."""
    tube = row.get("tube")
    rows = tables.boxes
    if tube is None or span is None or "tube" not in rows.columns:
        return np.zeros(0, dtype=np.int64), np.zeros((0, 4))
    rows = rows.filter(pl.col("tube") == tube, pl.col("frame") >= span[0], pl.col("frame") < span[1])
    rows = rows.unique("frame", keep="first", maintain_order=True).sort("frame")
    return rows["frame"].to_numpy().astype(np.int64), rows.select(CORNERS).to_numpy().astype(np.float64)


def _shown(true: Ints, claimed: Ints) -> Ints:
    both = np.intersect1d(true, claimed)
    frames = both if len(both) >= _FEWEST_SHARED else np.union1d(true, claimed)
    if len(frames) > _FRAMES:
        frames = frames[np.linspace(0, len(frames) - 1, _FRAMES).round().astype(np.int64)]
    return frames


def _at(frames: Ints, held: Ints, corners: Floats) -> Floats:
    """(k, 4) the box in each frame, NaN where there is none."""
    found = np.full((len(frames), 4), np.nan)
    _, here, there = np.intersect1d(frames, held, return_indices=True)
    found[here] = corners[there]
    return found


def _size(scenes: Scenes, video: str, boxes: Sequence[Floats]) -> tuple[float, float]:
    """Width and height of the picture; as far as boxes reach where that is unknown."""
    rows = scenes.videos.filter(pl.col("video").cast(pl.String) == video)
    if len(rows) and {"width_px", "height_px"} <= set(rows.columns):
        wide, high = rows["width_px"][0], rows["height_px"][0]
        if wide and high:
            return float(wide), float(high)
    reach = np.concatenate(boxes)[:, 2:].max(axis=0)
    return max(float(reach[0]), 1.0), max(float(reach[1]), 1.0)
