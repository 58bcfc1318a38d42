"""The published tube evaluator, and its mended kin, as plain loops over tubes: slow and short."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.metrics.detection.config import DetectionConfig
from roadaware.scenes.tables import Predictions, Scenes

Box = tuple[float, float, float, float]
Tube = list[tuple[int, Box]]


def tubes_of(tables: Any, scenes: Scenes, size: tuple[int, int] | None, kind: str, label: str) -> list[Any]:
    """(video, tube number, score, [(frame, box), ...]) of a class: videos in the truth's order, then rows."""
    names = tables.meta.vocabularies
    found = []
    for video in scenes.videos["video"]:
        for row in tables.tubes.iter_rows(named=True):
            if row["video"] != video:
                continue
            if kind == "agentness":
                scores = [row.get("score")] if row["parent"] is None else []
            else:
                scores = [
                    each.get("score")
                    for each in tables.tube_labels.iter_rows(named=True)
                    if each["tube"] == row["tube"]
                    and each["kind"] == kind
                    and names[kind][each["label"]] == label
                ]
            tube = _tube(tables, scenes, size, row) if scores else []
            found += [(video, row["tube"], score, tube) for score in scores]
    return found


def _tube(tables: Any, scenes: Scenes, size: tuple[int, int] | None, row: dict[str, Any]) -> Tube:
    owner = row["tube"] if row["parent"] is None else row["parent"]
    own, wanted = _size(tables, row["video"]), size or _size(scenes, row["video"])
    x, y = wanted[0] / own[0], wanted[1] / own[1]
    tube = []
    for box in sorted(tables.boxes.iter_rows(named=True), key=lambda box: box["frame"]):
        inside = row["spans"] is None or any(first <= box["frame"] < last for first, last in row["spans"])
        if box["tube"] == owner and inside:
            edges = (box["x1_px"] * x, box["y1_px"] * y, box["x2_px"] * x, box["y2_px"] * y)
            frame = row["start_frame"] + len(tube) if row.get("consecutive") else box["frame"]
            tube.append((frame, edges))
    return tube


def _size(tables: Any, video: str) -> tuple[int, int]:
    row = next(row for row in tables.videos.iter_rows(named=True) if row["video"] == video)
    return row["width_px"], row["height_px"]


def _iou(a: Box, b: Box, extra: float) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0]) + extra
    height = min(a[3], b[3]) - max(a[1], b[1]) + extra
    common = max(0.0, width) * max(0.0, height)
    areas = [(box[2] - box[0] + extra) * (box[3] - box[1] + extra) for box in (a, b)]
    return common / (sum(areas) - common) if common else 0.0


def by_frame_sets(a: Tube, b: Tube, overlap: str, extra: float) -> float:
    """Overlap of the sets of frames, and of the boxes in the frames of both."""
    boxes_a, boxes_b = dict(a), dict(b)
    both = sorted(set(boxes_a) & set(boxes_b))
    if not both:
        return 0.0
    time = len(both) / len(set(boxes_a) | set(boxes_b))
    space = float(np.mean([_iou(boxes_a[frame], boxes_b[frame], extra) for frame in both]))
    return {"tiou": time, "siou": space, "stiou": space * time}[overlap]


def by_endpoints(a: Tube, b: Tube, overlap: str, extra: float) -> float:
    """What the published code gives; IndexError or AssertionError where it gives nothing."""
    frames_a, frames_b = [frame for frame, _ in a], [frame for frame, _ in b]
    first, last = max(frames_a[0], frames_b[0]), min(frames_a[-1], frames_b[-1])
    if last < first:
        return 0.0
    union = max(frames_a[-1], frames_b[-1]) - min(frames_a[0], frames_b[0]) + 1
    time = (last - first + 1) / union
    if overlap == "tiou":
        return time
    parts = []
    for tube, frames in ((a, frames_a), (b, frames_b)):
        if first not in frames or last not in frames:
            raise IndexError
        parts.append(tube[frames.index(first) : frames.index(last) + 1])
    assert len(parts[0]) == len(parts[1])
    space = float(np.mean([_iou(p[1], q[1], extra) for p, q in zip(*parts, strict=True)]))
    return space if overlap == "siou" else space * time


def tube_overlap(a: Tube, b: Tube, overlap: str, config: DetectionConfig) -> float:
    """The overlap under a config: the published one where it is defined."""
    if not a or not b:
        return 0.0
    extra = config.video_pixel_offset
    if config.tube_time == "endpoints":
        try:
            return by_endpoints(a, b, overlap, extra)
        except (IndexError, AssertionError):
            pass
    return by_frame_sets(a, b, overlap, extra)


def video_hits(
    predictions: Predictions,
    scenes: Scenes,
    config: DetectionConfig,
    threshold: float,
    overlap: str,
    kind: str,
    label: str,
) -> tuple[list[tuple[int, bool]], int]:
    """(tube, whether it is a hit) of the predictions of a class, best first, and the number of true tubes."""
    size = config.frame_size_px
    detections = tubes_of(predictions, scenes, size, kind, label)
    if config.min_tube_score is not None:
        detections = [prediction for prediction in detections if prediction[2] > config.min_tube_score]
    truth = [tube for tube in tubes_of(scenes, scenes, size, kind, label) if tube[3]]
    left: dict[str, list[Tube]] = {}
    for video, _, _, tube in truth:
        left.setdefault(video, []).append(tube)
    hits = []
    for video, number, _, tube in sorted(detections, key=lambda prediction: -prediction[2]):
        asked = left.get(video, [])
        values = [tube_overlap(tube, true, overlap, config) for true in asked]
        best = int(np.argmax(values)) if values else -1
        hit = best >= 0 and values[best] >= threshold
        if hit:
            del asked[best]
        hits.append((number, hit))
    return hits, len(truth)


def trapezoid(hits: list[bool], n_truth: int) -> float:
    """The published average precision: 32-bit points, straight lines between them."""
    if not hits:
        return 0.0
    points, right, left = [(1.0, 0.0)], 0, max(1, n_truth)
    for rank, hit in enumerate(hits):
        right += hit
        points.append((right / (rank + 1), right / left))
    curve = np.array(points, dtype=np.float32)
    steps = (curve[1:, 1] - curve[:-1, 1]) * (curve[1:, 0] + curve[:-1, 0]) * np.float32(0.5)
    return float(np.sum(steps))
