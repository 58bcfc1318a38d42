"""Examples for the figures of a task on scenes: best and worst cases, JSON-ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.behaviours import build_behaviour_graph, compute_action_confusion
from roadaware.analysis.worst_tubes import Strip
from roadaware.arrays import Floats, Ints
from roadaware.config import from_dict
from roadaware.errors import InputError
from roadaware.metrics.metric_state import Judged, SceneResult
from roadaware.metrics.sound import SoundConfig
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

# Grounded sentences at a few of their frames: ground-truth and predicted boxes and spans, as data for an image.

Span = tuple[int, int]

# Images of a strip; where truth and prediction share fewer frames than the second, those of either count.
_FRAMES, _FEWEST_SHARED = 7, 4


def build_grounding_strips(
    predictions: Predictions, scenes: Scenes, queries: Sequence[int], says: Sequence[str]
) -> tuple[Strip, ...]:
    """A strip for each sentence that has a true or a predicted box.

    The frames that are shown lie evenly over those where both sides have a box in one of the spans, or,
    where these are few, over those where either has.

    Args:
        predictions: what is predicted.
        scenes: the ground truth.
        queries: numbers of sentences, in the order of the strips.
        says: what is said of each, in words.
    """
    strips = (_strip(predictions, scenes, query, words) for query, words in zip(queries, says, strict=True))
    return tuple(strip for strip in strips if strip is not None)


def _strip(predictions: Predictions, scenes: Scenes, query: int, says: str) -> Strip | None:
    true, predicted = _row(scenes, query), _row(predictions, query)
    spans = [_span(true), _span(predicted)]
    low, high = min((s[0] for s in spans if s), default=0), max((s[1] for s in spans if s), default=0)
    boxes = [_boxes(scenes, true, spans[0]), _boxes(predictions, predicted, (low, high))]
    frames = _select_frames(*(held for held, _ in boxes))
    if not len(frames):
        return None
    size = _size(scenes, str(true["video"]), [corners for _, corners in boxes])
    shown = [_at(frames, held, corners) for held, corners in boxes]
    true_spans, predicted_spans = ((span,) if span else () for span in spans)
    return Strip(says, size, frames, shown[0], shown[1], true_spans, predicted_spans)


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


def _select_frames(true: Ints, predicted: Ints) -> Ints:
    both = np.intersect1d(true, predicted)
    frames = both if len(both) >= _FEWEST_SHARED else np.union1d(true, predicted)
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
    """Width and height of the image; as far as boxes reach where that is unknown."""
    rows = scenes.videos.filter(pl.col("video").cast(pl.String) == video)
    if len(rows) and {"width_px", "height_px"} <= set(rows.columns):
        wide, high = rows["width_px"][0], rows["height_px"][0]
        if wide and high:
            return float(wide), float(high)
    reach = np.concatenate(boxes)[:, 2:].max(axis=0)
    return max(float(reach[0]), 1.0), max(float(reach[1]), 1.0)


# Localisation maps of sounds beside the ground-truth boxes, and the success curve, as data for images.

_MOST_CELLS = 32
_CURVES = {"predictions": "ciou", "whole image": "whole_image", "centre": "centre"}
_UNIT = 1.5
"""Images no larger than this have boxes that are shares; their shape is unknown."""


@dataclass(frozen=True, eq=False)
class HeardMap:
    """One sound.

    Args:
        says: what it is and how well it was found, in words.
        size: (width, height) of the image, in the unit of the boxes.
        map: (rows, columns) scaled to [0, 1]; no row where nothing was predicted.
        boxes: (n, 4) x1, y1, x2, y2 of where it comes from.
    """

    says: str
    size: tuple[float, float]
    map: Floats
    boxes: Floats

    @property
    def shaped(self) -> bool:
        """Whether the shape of the image is known."""
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


def build_sound_maps(
    predictions: Predictions, scenes: Scenes, sounds: Sequence[int], says: Sequence[str]
) -> tuple[HeardMap, ...]:
    """The maps of some sounds with their ground-truth boxes.

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


def compute_success_curves(rows: pl.DataFrame, config: SoundConfig) -> dict[str, list[float]]:
    """The share of sounds that reach each threshold, as predicted and by the trivial answers.

    Args:
        rows: instances of sounds: `ciou`, `whole_image`, `centre`, `predicted`, `true_cells`.
        config: how they were judged.

    Returns:
        `thresholds`, `predictions`, `whole image` and `centre`, (t,) each; empty where no sound is judged.
    """
    if config.empty_truth == "left_out":
        rows = rows.filter(pl.col("true_cells") > 0)
    if rows.is_empty():
        return {}
    steps = config.success_thresholds
    silent = ~rows["predicted"].to_numpy()
    held = {name: rows[column].fill_null(-1.0).to_numpy() for name, column in _CURVES.items()}
    held["predictions"] = np.where(silent, -1.0, held["predictions"])
    shares = {name: [float((values >= step).mean()) for step in steps] for name, values in held.items()}
    return {"thresholds": list(steps), **shares}


def _map(predictions: Predictions, sound: int) -> Floats:
    """(rows, columns) a predicted map, thinned, scaled to [0, 1]; a constant one is 0."""
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


_GRAPHS = 2
_SOUNDS = 4
_WORST_SENTENCES, _BEST_SENTENCES = 4, 2
_AT_ONCE = 64
_OF_VIDEOS = ("map", "recall@50", "frame_recall@50")


def collect_figure_data(
    task: str, predictions: Predictions, scenes: Scenes, result: SceneResult
) -> dict[str, Any]:
    """What the images of a task show, JSON-ready, so that a page can be made again without the data.

    Args:
        task: its name; one without images gives nothing.
        predictions: that were judged.
        scenes: the truth.
        result: what `evaluate` gave.
    """
    makers = {
        "actions": collect_confusion,
        "relations": collect_graphs,
        "grounding": collect_sentences,
        "sound": collect_sounds,
    }
    return makers[task](predictions, scenes, result) if task in makers else {}


def collect_confusion(predictions: Predictions, scenes: Scenes, result: SceneResult) -> dict[str, Any]:
    """Confusion of predicted and ground-truth actions."""
    return {"confusion": compute_action_confusion(predictions, scenes).as_dict()}


def collect_graphs(predictions: Predictions, scenes: Scenes, result: SceneResult) -> dict[str, Any]:
    """The behaviour graphs of the worst and the best videos."""
    if result.state is None:
        return {}
    name, values = _of_each_video(result.state)
    held = {video: values[k] for k, video in enumerate(result.state.videos) if not np.isnan(values[k])}
    order = sorted(held, key=lambda video: held[video])
    worst = order[:_GRAPHS]
    best = [video for video in order[::-1][:_GRAPHS] if video not in worst]
    right, seen = _right(result, "prediction"), _right(result, "truth")
    shown = []
    for kind, videos in (("worst", worst), ("best", best)):
        for video in videos:
            says = f"{video}, among the {kind}: {name} {held[video]:.3f}"
            graph = build_behaviour_graph(predictions, scenes, video, says=says, right=right, seen=seen)
            shown.append(graph.as_dict())
    return {"graphs": shown}


def collect_sentences(predictions: Predictions, scenes: Scenes, result: SceneResult) -> dict[str, Any]:
    """The sentences that were grounded worst and best, at a few of their frames."""
    rows = result.instances("sentence").drop_nulls("viou")
    rows = rows.sort("viou", "true_frames", descending=[False, True], maintain_order=True)
    worst = rows.head(_WORST_SENTENCES)
    best = rows.join(worst, on="query", how="anti", maintain_order="left").tail(_BEST_SENTENCES).reverse()
    queries, says = [], []
    texts = dict(zip(scenes.queries["query"], _texts(scenes), strict=True))
    for row in pl.concat([worst, best]).iter_rows(named=True):
        queries.append(row["query"])
        values = ", ".join(
            f"{name} {row[column]:.2f}"
            for name, column in (("vIoU", "viou"), ("tIoU", "tiou"))
            if row[column] is not None
        )
        says.append(f"{row['name'] or row['query']}: {values}: {texts[row['query']].rstrip('. ')}")
    strips = build_grounding_strips(predictions, scenes, queries, says)
    return {"strips": [strip.as_dict() for strip in strips]}


def collect_sounds(predictions: Predictions, scenes: Scenes, result: SceneResult) -> dict[str, Any]:
    """The sounds that were localised worst and best, and how many were at each threshold."""
    every = result.instances("sound")
    rows = every.drop_nulls("ciou").sort("ciou", maintain_order=True)
    worst = rows.head(_SOUNDS)
    best = rows.join(worst, on="sound", how="anti", maintain_order="left").tail(_SOUNDS).reverse()
    curves = compute_success_curves(every, from_dict(SoundConfig, result.config))
    found: dict[str, Any] = {"threshold": result.config["threshold"], "success": curves}
    for kind, part in (("worst", worst), ("best", best)):
        says = [
            f"{row['sound_class'] or row['name'] or row['sound']}: cIoU {row['ciou']:.2f}, {row['name']}"
            for row in part.iter_rows(named=True)
        ]
        maps = build_sound_maps(predictions, scenes, part["sound"].to_list(), says)
        found[f"{kind}_maps"] = [each.as_dict() for each in maps]
    return found


def _texts(scenes: Scenes) -> list[str]:
    if "text" not in scenes.queries.columns:
        return [""] * len(scenes.queries)
    return scenes.queries["text"].fill_null("").to_list()


def _of_each_video(state: Judged) -> tuple[str, Floats]:
    """A metric that videos have by themselves, and its (V,) values, NaN where undefined."""
    n = len(state.videos)
    parts: dict[str, list[Floats]] = {}
    for start in range(0, n, _AT_ONCE):
        weights = np.eye(n, dtype=np.int32)[start : start + _AT_ONCE]
        for each in state.measured(weights):
            if each.label is None:
                parts.setdefault(each.metric, []).append(each.values)
    name = next((name for name in _OF_VIDEOS if name in parts), next(iter(parts)))
    return name, np.concatenate(parts[name])


def _right(result: SceneResult, level: str) -> Mapping[int, bool] | None:
    """Number of a relation to whether a prediction is right, or a ground-truth one found; None where not judged so."""
    if level not in result.levels:
        return None
    rows = result.instances(level)
    marks = rows["hit"] if level == "prediction" else rows["prediction"].is_not_null()
    return dict(zip(rows["relation"].to_list(), marks.cast(pl.Boolean).to_list(), strict=True))
