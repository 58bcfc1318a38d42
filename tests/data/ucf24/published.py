"""The published loader and evaluator of UCF101-24 as plain loops over what the pickle holds.

Nothing here is shared with the library: it says by itself what the numbers should be. Boxes lose 1 in all
four numbers in single precision, are divided by 320 and 240, cut to [0, 1], and multiplied by 682 and 512.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Box = npt.NDArray[np.float32]
Frame = tuple[str, int]
SIZE = (682, 512)


def loaded(box: Any) -> Box:
    """A box of the pickle (x, y, w, h) as corners in shares of the image."""
    x, y, w, h = (np.float32(number) - np.float32(1) for number in box)
    corners = [x, y, np.float32(w + x), np.float32(h + y)]
    shares = [
        np.float32(corner / np.float32(side)) for corner, side in zip(corners, (320, 240) * 2, strict=True)
    ]
    if any(not 0 <= share <= 1.01 for share in shares):
        raise AssertionError(f"the published loader stops at {shares}")
    return np.array([min(np.float32(1), max(np.float32(0), share)) for share in shares], dtype=np.float32)


def scaled(box: Any) -> Box:
    """The same in pixels of the network's image."""
    shares = loaded(box)
    return np.array([shares[k] * np.float32(SIZE[k % 2]) for k in range(4)], dtype=np.float32)


def true_frames(db: Mapping[str, Any], videos: Sequence[str]) -> dict[Frame, list[tuple[Box, int]]]:
    """(video, frame from 0) to its boxes with their action; every frame is there."""
    found: dict[Frame, list[tuple[Box, int]]] = {}
    for video in videos:
        for frame in range(int(db[video]["numf"])):
            found[video, frame] = []
        for tube in db[video]["annotations"]:
            for place, frame in enumerate(range(tube["sf"], tube["ef"])):
                found[video, frame].append((scaled(tube["boxes"][place]), int(db[video]["label"])))
    return found


def true_tubes(db: Mapping[str, Any], videos: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Video to its tubes: frames from 0, boxes, and action."""
    return {
        video: [
            {
                "frames": np.arange(tube["sf"], tube["ef"]),
                "boxes": np.array([scaled(box) for box in tube["boxes"]]),
                "label": int(tube["label"]),
            }
            for tube in db[video]["annotations"]
        ]
        for video in videos
    }


def box_overlap(a: Box, b: Box) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = wide * high if wide > 0 and high > 0 else np.float32(0)
    return float(common / ((b[2] - b[0]) * (b[3] - b[1]) + (a[2] - a[0]) * (a[3] - a[1]) - common))


def tube_overlap(a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
    """Mean overlap of boxes in the shared frames, with one more pixel, times that of the spans."""
    first, last = max(a["frames"][0], b["frames"][0]), min(a["frames"][-1], b["frames"][-1])
    if last < first:
        return 0.0
    spans = max(a["frames"][-1], b["frames"][-1]) - min(a["frames"][0], b["frames"][0]) + 1
    parts = []
    for frame in range(first, last + 1):
        p, q = a["boxes"][frame - a["frames"][0]], b["boxes"][frame - b["frames"][0]]
        wide = max(0, min(p[2] + 1, q[2] + 1) - max(p[0], q[0]))
        high = max(0, min(p[3] + 1, q[3] + 1) - max(p[1], q[1]))
        areas = [(c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (p, q)]
        parts.append(wide * high / (sum(areas) - wide * high))
    return float(np.mean(parts)) * ((last - first + 1) / spans)


def judged(scores: npt.NDArray[np.float32]) -> list[list[int]]:
    """For each class the boxes of a frame that are judged: (n, classes) scores, the 25 best above 0.025."""
    kept = []
    for column in scores.T:
        order = np.argsort(-column, kind="stable") if len(column) > 25 else np.arange(len(column))
        kept.append([int(row) for row in order[:25] if column[row] > np.float32(0.025)])
    return kept


def average_precision(
    found: list[tuple[float, Any, Any]], truth: dict[Any, list[Any]], overlap: Any, least: float
) -> float:
    """Trapezoids under the raw curve from precision 1 at recall 0; `found` is (score, where, thing)."""
    if not found:
        return 0.0
    left = {where: list(things) for where, things in truth.items()}
    total = max(1, sum(map(len, left.values())))
    curve, hits = [(1.0, 0.0)], 0
    for rank, (_, where, thing) in enumerate(sorted(found, key=lambda each: -each[0]), 1):
        values = [overlap(thing, other) for other in left.get(where, [])]
        if values and values[int(np.argmax(values))] >= least:
            del left[where][int(np.argmax(values))]
            hits += 1
        curve.append((hits / rank, hits / total))
    points = np.array(curve, dtype=np.float32)
    steps = (points[1:, 1] - points[:-1, 1]) * (points[1:, 0] + points[:-1, 0])
    return float(np.sum(steps * np.float32(0.5)))
