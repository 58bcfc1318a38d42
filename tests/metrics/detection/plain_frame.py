"""The published frame evaluator and its kin as plain loops over rows: slow and short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roadaware.metrics.detection.config import DetectionConfig
from roadaware.scenes.tables import Predictions, Scenes

Box = tuple[float, float, float, float]
Prediction = tuple[tuple[str, int], float, Box]
Truth = dict[tuple[str, int], list[Box]]


def true_boxes(scenes: Scenes, kind: str, label: str, size: tuple[int, int] | None) -> Truth:
    """Boxes of a class by video and frame, in annotated frames alone."""
    annotated = {(r["video"], r["frame"]) for r in scenes.frames.iter_rows(named=True) if r["annotated"]}
    names = scenes.meta.vocabularies
    held = {r["box"] for r in scenes.labels.iter_rows(named=True) if _is(r, names, kind, label)}
    found: Truth = {}
    for row in scenes.boxes.iter_rows(named=True):
        key = (row["video"], row["frame"])
        if key in annotated and (kind == "agentness" or row["box"] in held):
            found.setdefault(key, []).append(_edges(row, scenes, scenes, size))
    return found


def _is(row: dict[str, Any], names: dict[str, tuple[str, ...]], kind: str, label: str) -> bool:
    return bool(row["kind"] == kind and names[kind][row["label"]] == label)


def _edges(row: dict[str, Any], tables: Any, scenes: Scenes, size: tuple[int, int] | None) -> Box:
    def of(which: Any) -> tuple[int, int]:
        for video in which.videos.iter_rows(named=True):
            if video["video"] == row["video"]:
                return video["width_px"], video["height_px"]
        return of(scenes)

    own, wanted = of(tables), size or of(scenes)
    x, y = wanted[0] / own[0], wanted[1] / own[1]
    return row["x1_px"] * x, row["y1_px"] * y, row["x2_px"] * x, row["y2_px"] * y


def detections(
    predictions: Predictions, scenes: Scenes, kind: str, label: str, config: DetectionConfig
) -> list[Prediction]:
    """The predictions of a class in annotated frames: videos in the truth's order, then frame, then row."""
    kinds = predictions.meta.notes["dense_scores"]["boxes"]
    column = 0
    for each in kinds:
        if each == kind:
            column += predictions.meta.vocabularies[kind].index(label)
            break
        column += len(predictions.meta.vocabularies[each])
    frames = sorted((r["frame"], r["video"]) for r in scenes.frames.iter_rows(named=True) if r["annotated"])
    by_frame: dict[tuple[str, int], list[tuple[float, Box]]] = {}
    for row in predictions.boxes.iter_rows(named=True):
        score = row["score"] if kind == "agentness" else row["scores"][column]
        edges = _edges(row, predictions, scenes, config.frame_size_px)
        by_frame.setdefault((row["video"], row["frame"]), []).append((score, edges))
    found: list[Prediction] = []
    for video in scenes.videos["video"].to_list():
        for frame in [f for f, v in frames if v == video]:
            rows = by_frame.get((video, frame), [])
            if config.max_per_class is not None and len(rows) > config.max_per_class:
                rows = sorted(rows, key=lambda r: -r[0])[: config.max_per_class]
            # Scores are float32, and numpy rounds the number they are compared with to the same.
            floor = np.float32(-1.0 if config.min_score is None else config.min_score)
            found += [((video, frame), score, edges) for score, edges in rows if np.float32(score) > floor]
    return found


def hits(found: Sequence[Prediction], truth: Truth, threshold: float) -> list[bool]:
    """Whether each prediction is right, by falling score, equal ones in their order."""
    left = {key: list(boxes) for key, boxes in truth.items()}
    marks = []
    for key, _, edges in sorted(found, key=lambda prediction: -prediction[1]):
        best, which = -1.0, -1
        for j, box in enumerate(left.get(key, [])):
            if iou(edges, box) > best:
                best, which = iou(edges, box), j
        marks.append(best >= threshold)
        if best >= threshold:
            del left[key][which]
    return marks


def iou(a: Box, b: Box) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if wide <= 0 or high <= 0:
        return 0.0
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - wide * high
    return wide * high / union


def average_precision(marks: Sequence[bool], n: int, rule: str) -> float:
    """Average precision of a ranking, by its definition."""
    if not marks:
        return 0.0
    precision, recall, right = [], [], 0
    for rank, mark in enumerate(marks, start=1):
        right += mark
        precision.append(right / rank)
        recall.append(right / max(1, n))
    steps = np.diff([0.0, *recall])
    if rule == "trapezoid":
        points = np.array([(1.0, 0.0), *zip(precision, recall, strict=True)], dtype=np.float32)
        return float(np.sum(np.diff(points[:, 1]) * (points[1:, 0] + points[:-1, 0]) * np.float32(0.5)))
    if rule == "raw":
        return float(sum(p * s for p, s in zip(precision, steps, strict=True)))
    beyond = [max(precision[k:]) for k in range(len(precision))]
    if rule == "envelope":
        return float(sum(p * s for p, s in zip(beyond, steps, strict=True)))
    at = [
        next((b for b, r in zip(beyond, recall, strict=True) if r >= k / 100 - 1e-12), 0.0)
        for k in range(101)
    ]
    return float(np.mean(at))


def frame_ap(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    kind: str,
    label: str,
    threshold: float,
) -> float:
    """AP of one class; NaN where it has no truth and such classes are left out."""
    truth = true_boxes(scenes, kind, label, config.frame_size_px)
    n = sum(len(boxes) for boxes in truth.values())
    if not n and config.empty_classes == "skip":
        return float("nan")
    found = detections(predictions, scenes, kind, label, config)
    return average_precision(hits(found, truth, threshold), n, config.ap)
