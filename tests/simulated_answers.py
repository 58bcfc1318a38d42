"""Synthetic predictions on crowds as tables: actions, relations, sentences and sounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import UsageError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

_CELLS = 56
_MISSED, _MISTAKEN, _ASIDE, _LATE = 0.3, 0.4, 0.12, 0.3


def simulate_predictions(scenes: Scenes, task: str, *, seed: int = 0, blur: float = 0.5) -> Predictions:
    """Predictions on the ground truth of a task; the same arguments make the same predictions.

    Args:
        scenes: with boxes and the ground truth of the task; frames count from 0.
        task: actions, relations, grounding or sound.
        seed: where chance comes from.
        blur: 0 predicts the ground truth itself, 1 is badly mistaken.

    Raises:
        UsageError: if there is no such task, or the blur is not from 0 to 1.
    """
    if task not in _TASKS or not 0 <= blur <= 1:
        raise UsageError(f"tasks are {', '.join(_TASKS)} with a blur from 0 to 1, not {task!r} with {blur!r}")
    rng = np.random.default_rng([seed, list(_TASKS).index(task)])
    meta = replace(scenes.meta, rows_read={}, source_digest="", notes={})
    return _TASKS[task](scenes, meta, rng, blur)


def _actions(scenes: Scenes, meta: Meta, rng: np.random.Generator, blur: float) -> Predictions:
    boxes = _add_box_noise(scenes, rng, blur).drop("tube")
    boxes = boxes.filter(_sample_hits(rng, len(boxes), blur))
    labels = scenes.labels.filter(pl.col("kind").cast(pl.String) == "action")
    labels = labels.join(boxes.select("box"), on="box", how="semi", maintain_order="left")
    said, score = _said(labels["label"].to_numpy(), rng, blur)
    labels = labels.with_columns(label=said, score=score).unique(["box", "label"], maintain_order=True)
    return Predictions(boxes=boxes, labels=labels, meta=meta)


def _relations(scenes: Scenes, meta: Meta, rng: np.random.Generator, blur: float) -> Predictions:
    bonds = scenes.relations.filter(_sample_hits(rng, len(scenes.relations), blur))
    said, score = _said(bonds["predicate"].to_numpy(), rng, blur)
    bonds = _shift_spans(
        bonds.with_columns(predicate=said, score=score), scenes, ("subject", "object"), rng, blur
    )
    owners = pl.concat([bonds["subject"], bonds["object"]]).unique().sort().to_frame("tube")
    return Predictions(
        boxes=_add_box_noise(scenes, rng, blur).join(owners, on="tube", how="semi", maintain_order="left"),
        tubes=scenes.tubes.join(owners, on="tube", how="semi", maintain_order="left"),
        tube_labels=scenes.tube_labels.join(owners, on="tube", how="semi", maintain_order="left"),
        relations=bonds,
        meta=meta,
    )


def _grounding(scenes: Scenes, meta: Meta, rng: np.random.Generator, blur: float) -> Predictions:
    named = scenes.queries.select("query", "video", "tube", "start_frame", "end_frame")
    queries = _shift_spans(named, scenes, ("tube",), rng, blur)
    owners = queries.select("tube").unique(maintain_order=True)
    return Predictions(
        boxes=_add_box_noise(scenes, rng, blur).join(owners, on="tube", how="semi", maintain_order="left"),
        tubes=scenes.tubes.join(owners, on="tube", how="semi", maintain_order="left"),
        queries=queries,
        meta=meta,
    )


def _simulate_sound_maps(scenes: Scenes, meta: Meta, rng: np.random.Generator, blur: float) -> Predictions:
    """Hills as wide and high as those who are heard, in all of their frames, on rough ground."""
    sizes = scenes.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px")
    sources = scenes.boxes.select("sound", pl.col("video").cast(pl.String), *CORNERS).drop_nulls("sound")
    sources = sources.join(sizes, on="video", maintain_order="left")
    whole = sources.select("width_px", "height_px").to_numpy()
    boxes = sources.select(CORNERS).to_numpy() / np.tile(whole, 2) * _CELLS
    maps = []
    for sound in scenes.sounds["sound"].to_list():
        off = rng.normal(0, 0.4 * blur, 2)
        hills = [_hill(box, off) for box in boxes[(sources["sound"] == sound).to_numpy()]]
        level = np.max(hills, axis=0) if hills else np.zeros((_CELLS, _CELLS))
        level = level + 0.6 * blur * rng.random(level.shape)
        maps.append(level.astype(np.float32).ravel())
    named = scenes.sounds.select("sound", pl.col("video").cast(pl.String), "name")
    predicted = named.with_columns(
        map=pl.Series(maps, dtype=pl.List(pl.Float32)),
        map_width=pl.Series([_CELLS] * len(maps), dtype=pl.Int64),
    )
    return Predictions(sounds=predicted, meta=meta)


_TASKS: dict[str, Callable[[Scenes, Meta, np.random.Generator, float], Predictions]] = {
    "actions": _actions,
    "relations": _relations,
    "grounding": _grounding,
    "sound": _simulate_sound_maps,
}


def _hill(box: Floats, off: Floats) -> Floats:
    """(cells, cells) high about where a box lies, corners in cells; half as high where the box ends."""
    sides = np.maximum(box[2:] - box[:2], 1.0)
    x, y = (box[:2] + box[2:]) / 2 + off * sides
    rows, columns = np.mgrid[0:_CELLS, 0:_CELLS] + 0.5
    wide, high = sides / 2
    level: Floats = np.exp2(-(((columns - x) / wide) ** 8) - ((rows - y) / high) ** 8)
    return level


def _add_box_noise(scenes: Scenes, rng: np.random.Generator, blur: float) -> pl.DataFrame:
    """Boxes, each set aside by shares of its size, upright."""
    boxes = scenes.boxes.select("box", pl.col("video").cast(pl.String), "frame", "tube", *CORNERS)
    corners = boxes.select(CORNERS).to_numpy().astype(np.float64)
    sides = np.tile(corners[:, 2:] - corners[:, :2], 2)
    corners = corners + rng.normal(0, _ASIDE * blur, corners.shape) * sides
    upright = np.concatenate([corners[:, :2], np.maximum(corners[:, 2:], corners[:, :2] + 1)], axis=1)
    return boxes.with_columns(pl.Series(name, upright[:, k]) for k, name in enumerate(CORNERS))


def _sample_hits(rng: np.random.Generator, count: int, blur: float) -> pl.Series:
    return pl.Series(rng.random(count) >= _MISSED * blur)


def _said(label: npt.NDArray[np.int64], rng: np.random.Generator, blur: float) -> tuple[pl.Series, pl.Series]:
    """Labels, some mistaken for others of the ground truth, and scores that are mostly lower where they are."""
    wrong = rng.random(len(label)) < _MISTAKEN * blur
    other = rng.permutation(label)
    score = np.where(wrong, rng.beta(2, 4, len(label)), 1 - blur * (1 - rng.beta(5, 2, len(label))))
    return pl.Series(np.where(wrong, other, label)), pl.Series(score)


def _shift_spans(
    rows: pl.DataFrame, scenes: Scenes, owners: tuple[str, ...], rng: np.random.Generator, blur: float
) -> pl.DataFrame:
    """Spans that start and end early or late, where all of the owners' tracks still last."""
    spans = scenes.tubes.select("tube", low="start_frame", high="end_frame")
    low, high = np.zeros(len(rows)), np.full(len(rows), np.inf)
    for owner in owners:
        held = rows.select(tube=owner).join(spans, on="tube", how="left", maintain_order="left")
        low = np.maximum(low, held["low"].to_numpy())
        high = np.minimum(high, held["high"].to_numpy())
    start, end = rows["start_frame"].to_numpy(), rows["end_frame"].to_numpy()
    off = np.round(rng.normal(0, _LATE * blur, (2, len(rows))) * (end - start))
    start = np.clip(start + off[0], low, high - 1)
    end = np.clip(end + off[1], start + 1, high)
    return rows.with_columns(
        start_frame=pl.Series(start.astype(np.int64)), end_frame=pl.Series(end.astype(np.int64))
    )
