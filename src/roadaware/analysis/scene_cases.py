"""What the pictures of a task on scenes show: cases out of truth and claims, JSON-ready, best and worst."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.action_confusion import action_confusion
from roadaware.analysis.behaviour_graphs import behaviour_graph
from roadaware.analysis.grounded_strips import grounded_strips
from roadaware.analysis.heard_maps import heard_maps, success_curves
from roadaware.arrays import Floats
from roadaware.config import from_dict
from roadaware.metrics.judged import Judged, SceneResult
from roadaware.metrics.sound.config import SoundConfig
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes

_GRAPHS = 2
_SOUNDS = 4
_WORST_SENTENCES, _BEST_SENTENCES = 4, 2
_AT_ONCE = 64
_OF_VIDEOS = ("map", "recall@50", "frame_recall@50")


def confused(predictions: Predictions, scenes: Scenes, result: SceneResult) -> dict[str, Any]:
    """Which actions are claimed of persons who do something else."""
    return {"confusion": action_confusion(predictions, scenes).as_dict()}


def graphs(predictions: Predictions, scenes: Scenes, result: SceneResult) -> dict[str, Any]:
    """The behaviour graphs of the worst and the best videos."""
    if result.state is None:
        return {}
    name, values = _of_each_video(result.state)
    held = {video: values[k] for k, video in enumerate(result.state.videos) if not np.isnan(values[k])}
    order = sorted(held, key=lambda video: held[video])
    worst = order[:_GRAPHS]
    best = [video for video in order[::-1][:_GRAPHS] if video not in worst]
    right, seen = _right(result, "claim"), _right(result, "truth")
    shown = []
    for kind, videos in (("worst", worst), ("best", best)):
        for video in videos:
            says = f"{video}, among the {kind}: {name} {held[video]:.3f}"
            graph = behaviour_graph(predictions, scenes, video, says=says, right=right, seen=seen)
            shown.append(graph.as_dict())
    return {"graphs": shown}


def sentences(predictions: Predictions, scenes: Scenes, result: SceneResult) -> dict[str, Any]:
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
    strips = grounded_strips(predictions, scenes, queries, says)
    return {"strips": [strip.as_dict() for strip in strips]}


def heard(predictions: Predictions, scenes: Scenes, result: SceneResult) -> dict[str, Any]:
    """The sounds that were localised worst and best, and how many were at each threshold."""
    every = result.instances("sound")
    rows = every.drop_nulls("ciou").sort("ciou", maintain_order=True)
    worst = rows.head(_SOUNDS)
    best = rows.join(worst, on="sound", how="anti", maintain_order="left").tail(_SOUNDS).reverse()
    curves = success_curves(every, from_dict(SoundConfig, result.config))
    found: dict[str, Any] = {"threshold": result.config["threshold"], "success": curves}
    for kind, part in (("worst", worst), ("best", best)):
        says = [
            f"{row['sound_class'] or row['name'] or row['sound']}: cIoU {row['ciou']:.2f}, {row['name']}"
            for row in part.iter_rows(named=True)
        ]
        maps = heard_maps(predictions, scenes, part["sound"].to_list(), says)
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
    """Number of a relation to whether a claim is right, or a true one found; None where not judged so."""
    if level not in result.levels:
        return None
    rows = result.instances(level)
    marks = rows["hit"] if level == "claim" else rows["claim"].is_not_null()
    return dict(zip(rows["relation"].to_list(), marks.cast(pl.Boolean).to_list(), strict=True))
