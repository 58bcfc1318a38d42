"""The linker in plain Python and numpy, one path and one box at a time: what the kernels must equal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from roadaware.linking.config import LinkerConfig

Array = np.ndarray[Any, Any]


@dataclass
class PlainPath:
    """Detections of one path in time."""

    number: int
    frames: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    boxes: list[Array] = field(default_factory=list)
    agentness: list[Any] = field(default_factory=list)
    scores: list[Array] = field(default_factory=list)


class PlainLinker:
    """The same method as `Linker`, without its arrays."""

    def __init__(self, config: LinkerConfig, l2_columns: int | None = None) -> None:
        self.config, self.l2_columns = config, l2_columns
        self.type = np.float32 if config.single_precision else np.float64
        self.live: list[PlainPath] = []
        self.closed: list[PlainPath] = []
        self.begun = 0

    def update(
        self, frame: int, boxes: Array, agentness: Array, scores: Array, t_s: float | None = None
    ) -> None:
        config = self.config
        boxes, agentness = np.asarray(boxes, self.type), np.asarray(agentness, self.type)
        top = len(agentness) if config.top_rows is None else config.top_rows
        rows = [i for i in range(min(top, len(agentness))) if agentness[i] > self.type(config.min_score)]
        if not rows and not config.age_empty_frames:
            return
        time = float(frame) if t_s is None else t_s
        taken: set[int] = set()
        keys = []
        chosen = self._assigned(frame, time, rows, boxes, agentness, scores)
        for place, path in enumerate(self.live):
            if frame - path.frames[-1] > config.jump_gap:
                keys.append(0.0)
                continue
            if chosen is None:
                edges = self._edges(path, time, rows, boxes, agentness, scores, taken)
                row = self._best(rows, edges)
            else:
                row = chosen[place]
            if row is not None:
                taken.add(row)
                self._extend(path, frame, time, row, boxes, agentness, scores)
            keys.append(self._key(path))
        if config.sort_new_paths:
            keys += self._begin(frame, time, rows, taken, boxes, agentness, scores)
        self._settle(frame, keys)
        if not config.sort_new_paths:
            self._begin(frame, time, rows, taken, boxes, agentness, scores)

    def finish(self) -> list[PlainPath]:
        self.closed += self.live
        self.live = []
        return self.closed

    def _extend(self, path, frame, time, row, boxes, agentness, scores) -> None:
        path.frames.append(frame)
        path.times.append(time)
        path.rows.append(row)
        path.boxes.append(boxes[row])
        path.agentness.append(agentness[row])
        path.scores.append(np.asarray(scores[row], np.float32))

    def _begin(self, frame, time, rows, taken, boxes, agentness, scores) -> list[float]:
        keys = []
        for row in rows:
            if row not in taken:
                path = PlainPath(self.begun)
                self.begun += 1
                self._extend(path, frame, time, row, boxes, agentness, scores)
                self.live.append(path)
                keys.append(self._key(path))
        return keys

    def _key(self, path: PlainPath) -> float:
        if self.config.order_key == "top":
            best = sorted(path.agentness)[-(self.config.jump_gap + 1) :]
            return float(np.mean(np.array(best, self.type)))
        return math.fsum(path.agentness) / len(path.agentness)

    def _settle(self, frame: int, keys: list[float]) -> None:
        order = list(np.argsort(np.array(keys), kind="stable")[::-1])
        if self.config.order_ties == "first":
            order = list(np.argsort(-np.array(keys), kind="stable"))
        if self.config.order_ties == "build":
            order = list(np.argsort(np.array(keys))[::-1])
        kept = []
        for place in order:
            path = self.live[place]
            stale = frame - path.frames[-1] > self.config.jump_gap
            (self.closed if stale else kept).append(path)
        self.live = kept

    def _expected(self, path: PlainPath, time: float) -> Array:
        last, back = path.boxes[-1], min(self.config.jump_gap + 1, len(path.boxes))
        if self.config.motion == "none":
            return last
        if self.config.motion == "count":
            return last + (last - path.boxes[-back]) / self.type(max(1, back - 1))
        if back == 1:
            return last
        # Multiplied before it is divided, as the linker does: just min_iou hangs on the last bit.
        ahead, between = time - path.times[-1], path.times[-1] - path.times[-back]
        return last + (last - path.boxes[-back]) * ahead / between

    def _iou(self, a: Array, b: Array) -> float:
        width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        if self.config.clamped_iou and (width <= 0 or height <= 0):
            return 0.0
        inter = width * height
        if inter <= 0:
            return 0.0
        areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
        with np.errstate(divide="ignore"):
            return float(np.float64(inter) / (np.float64(areas) - np.float64(inter)))

    def _edges(self, path, time, rows, boxes, agentness, scores, taken) -> dict[int, float]:
        expected, edges = self._expected(path, time), {}
        for row in rows:
            iou = self._iou(expected, boxes[row])
            if row in taken or not iou >= self.config.min_iou:
                continue
            score = float(agentness[row])
            if self.config.cost == "score":
                edges[row] = score
            elif self.config.cost == "iou":
                edges[row] = iou
            else:
                edges[row] = (score + iou) / 2
                if self.config.cost == "ioul2":
                    edges[row] += self._closeness(path, agentness[row], scores[row])
        return edges

    def _closeness(self, path: PlainPath, agentness: Any, scores: Array) -> float:
        one = np.array([path.agentness[-1], *path.scores[-1][: self.l2_columns]], self.type)
        two = np.array([agentness, *np.asarray(scores, np.float32)[: self.l2_columns]], self.type)
        with np.errstate(divide="ignore"):
            return float(self.type(1.0) / np.sqrt(np.sum((one - two) ** 2)))

    def _best(self, rows: list[int], edges: dict[int, float]) -> int | None:
        if not edges:
            return None
        best = max(edges, key=lambda row: (edges[row], -row))
        worth = sum(edges.values()) if self.config.edge_rule == "sum" else edges[best]
        return best if worth > self.config.min_edge else None

    def _assigned(self, frame, time, rows, boxes, agentness, scores) -> dict[int, int | None] | None:
        if self.config.assignment == "greedy":
            return None
        from scipy.optimize import linear_sum_assignment

        gain = np.zeros((len(self.live), len(rows)))
        for place, path in enumerate(self.live):
            if frame - path.frames[-1] > self.config.jump_gap:
                continue
            edges = self._edges(path, time, rows, boxes, agentness, scores, set())
            if self._best(rows, edges) is None:
                continue
            for i, row in enumerate(rows):
                worth = edges.get(row, 0.0)
                if self.config.edge_rule == "best" and worth <= self.config.min_edge:
                    worth = 0.0
                gain[place, i] = min(worth, 1e9)
        pairs = zip(*linear_sum_assignment(gain, maximize=True), strict=True)
        found = {int(p): rows[i] for p, i in pairs if gain[p, i] > 0}
        return {place: found.get(place) for place in range(len(self.live))}


def filled(path: PlainPath) -> PlainPath:
    """The path with a linear detection in every frame that it missed; row -1."""
    out = PlainPath(path.number)
    for i, frame in enumerate(path.frames):
        if i:
            before, gap = path.frames[i - 1], frame - path.frames[i - 1]
            for missed in range(before + 1, frame):
                w = (missed - before) / gap
                out.frames.append(missed)
                out.rows.append(-1)
                out.boxes.append(path.boxes[i - 1] + w * (path.boxes[i] - path.boxes[i - 1]))
                out.agentness.append(path.agentness[i - 1] + w * (path.agentness[i] - path.agentness[i - 1]))
                low, high = path.scores[i - 1], path.scores[i]
                out.scores.append(low + np.float32(w) * (high - low))
        out.frames.append(frame)
        out.rows.append(path.rows[i])
        out.boxes.append(path.boxes[i])
        out.agentness.append(path.agentness[i])
        out.scores.append(path.scores[i])
    return out


def finished(paths: Sequence[PlainPath], config: LinkerConfig) -> list[PlainPath]:
    """The paths that are kept, filled where the config says so."""
    kept = []
    for path in paths:
        n, mean = len(path.frames), math.fsum(path.agentness) / len(path.agentness)
        gappy = path.frames[-1] - path.frames[0] + 1 > n
        weak = (n < config.min_path_len and mean <= config.min_path_score) or (
            gappy and n <= config.min_path_len
        )
        if not (config.drop_weak and weak):
            kept.append(filled(path) if config.gaps == "interpolate" else path)
    return kept


Tube = tuple[int, int, int, float]


def tubes(path: PlainPath, columns: range, config: LinkerConfig) -> list[Tube]:
    """The labelled tubes of a path: label, first and last place, score."""
    scores = np.array(path.scores, np.float32)[:, columns.start : columns.stop]
    if not config.single_precision:
        scores = scores.astype(np.float64)
    if len(scores) <= config.min_tube_len:
        return []
    if config.trim in ("dpscores", "dpscorestopn"):
        return list(_together(scores, config))
    classes = class_scores(scores, config)
    kind = None if config.order_ties == "build" else "stable"
    order = np.argsort(-classes, kind=kind)[: config.max_labels]
    if config.trim == "none":
        return [(int(label), 0, len(scores) - 1, float(classes[label])) for label in order]
    agentness = np.array(path.agentness, scores.dtype)
    return [tube for label in order for tube in _alone(int(label), scores, agentness, config)]


def class_scores(scores: Array, config: LinkerConfig) -> Array:
    """(classes,) scores of a path."""
    if config.class_score == "mean":
        return np.array([np.mean(np.ascontiguousarray(column)) for column in scores.T])
    of = scores.shape[0] if config.class_score == "quarter_of_length" else scores.shape[1]
    return np.array([np.mean(np.sort(column)[::-1][: max(1, of // 4)].copy()) for column in scores.T])


def _alone(label: int, scores: Array, agentness: Array, config: LinkerConfig) -> Iterator[Tube]:
    n_labels = scores.shape[1]
    by_agentness = config.trim_by == "agentness" or (config.trim_by == "agentness_if_24" and n_labels == 24)
    asked = agentness if by_agentness else scores[:, label]
    padded = np.pad(asked, 2)
    peak = max(np.median(padded[i : i + 5]) for i in range(len(asked)))
    there = asked / peak if peak > 0 else np.ones_like(asked)
    alpha = config.trim_alpha
    if alpha == 0 and len(config.trim_alphas) == n_labels:
        alpha = config.trim_alphas[label]
    for found, first, last in runs(viterbi(np.stack([there, 1 - there]), alpha, config.viterbi_lag)):
        if found == 0 and last - first >= config.min_tube_len:
            held = np.sort(scores[first : last + 1, label])[::-1]
            yield label, first, last, float(np.mean(held[: max(1, len(held) // 2)].copy()))


def _together(scores: Array, config: LinkerConfig) -> Iterator[Tube]:
    matrix = scores.T.copy()
    for _ in range(config.max_labels):
        found = runs(viterbi(matrix, config.trim_alpha, config.viterbi_lag))
        if config.trim == "dpscores":
            for label, first, last in found:
                if last - first >= config.min_tube_len:
                    yield label, first, last, float(np.mean(matrix[label, first : last + 1].copy()))
                    matrix[label, first : last + 1] = 0
            continue
        means = np.zeros(len(found))
        for i, (label, first, last) in enumerate(found[:2]):
            if last - first >= config.min_tube_len:
                means[i] = np.mean(matrix[label, first : last + 1].copy())
            else:
                matrix[label, first : last + 1] = 0
        for i in np.argsort(-means, kind="stable")[:2]:
            label, first, last = found[i]
            yield label, first, last, float(means[i])
            matrix[label, first : last + 1] = 0


def viterbi(matrix: Array, alpha: float, lag: bool) -> list[int]:
    """Labels of greatest sum of scores less `alpha` per change, the lower label of equals."""
    r, t = matrix.shape
    matrix = matrix.astype(np.float64)
    best = np.ones(r) if lag else matrix[:, 0].copy()
    back = np.zeros((r, t), int)
    for j in range(1, t):
        following = np.zeros(r)
        for i in range(r):
            values = best - alpha
            values[i] = best[i]
            back[i, j] = np.argmax(values)
            following[i] = matrix[i, j - 1 if lag else j] + values[back[i, j]]
        best = following
    labels = [int(np.argmax(best))]
    for j in range(t - 1, 0, -1):
        labels.append(int(back[labels[-1], j]))
    return labels[::-1]


def runs(labels: Sequence[int]) -> list[tuple[int, int, int]]:
    """Runs of equal labels: label, first and last place."""
    found: list[tuple[int, int, int]] = []
    for i, label in enumerate(labels):
        if found and found[-1][0] == label:
            found[-1] = (label, found[-1][1], i)
        else:
            found.append((label, i, i))
    return found
