"""The linker in plain Python and numpy, one path and one box at a time: what the kernels must equal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from roadaware.linking.config import FRAME_S, LinkerConfig

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
    motion: list[PlainValue] = field(default_factory=list)
    kinds: list[float] = field(default_factory=list)
    step: int = 0


@dataclass
class PlainValue:
    """Centre x, centre y, width or height: a value with its speed and their covariance."""

    value: float
    speed: float
    var: float
    covar: float
    speed_var: float

    def after(self, passed: float, push: float) -> PlainValue:
        noise = push * push
        spread = self.var + 2.0 * passed * self.covar + passed * passed * self.speed_var
        return PlainValue(
            self.value + self.speed * passed,
            self.speed,
            spread + noise * passed * passed * passed / 3.0,
            self.covar + passed * self.speed_var + noise * passed * passed / 2.0,
            self.speed_var + noise * passed,
        )

    def corrected(self, seen: float, error: float) -> PlainValue:
        total, off = self.var + error * error, seen - self.value
        return PlainValue(
            self.value + self.var / total * off,
            self.speed + self.covar / total * off,
            self.var - self.var * self.var / total,
            self.covar - self.var * self.covar / total,
            self.speed_var - self.covar * self.covar / total,
        )


class PlainLinker:
    """The same method as `Linker`, without its arrays."""

    def __init__(self, config: LinkerConfig, l2_columns: int | None = None) -> None:
        self.config, self.l2_columns = config, l2_columns
        self.type = np.float32 if config.single_precision else np.float64
        self.live: list[PlainPath] = []
        self.closed: list[PlainPath] = []
        self.begun = self.step = 0

    def update(
        self, frame: int, boxes: Array, agentness: Array, scores: Array, t_s: float | None = None
    ) -> None:
        config = self.config
        boxes, agentness = np.asarray(boxes, self.type), np.asarray(agentness, self.type)
        top = len(agentness) if config.top_rows is None else config.top_rows
        rows = [i for i in range(min(top, len(agentness))) if agentness[i] > self.type(config.min_score)]
        if not rows and not config.age_empty_frames:
            return
        self.step += 1
        time = frame * FRAME_S if t_s is None else t_s
        taken: set[int] = set()
        keys = []
        chosen = self._assigned(frame, time, rows, boxes, agentness, scores)
        for place, path in enumerate(self.live):
            if self._stale(path, frame, time):
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
        self._settle(frame, time, keys)
        if not config.sort_new_paths:
            self._begin(frame, time, rows, taken, boxes, agentness, scores)

    def finish(self) -> list[PlainPath]:
        self.closed += self.live
        self.live = []
        return self.closed

    def _stale(self, path: PlainPath, frame: int, time: float) -> bool:
        late = time - path.times[-1] > self.config.jump_gap_s + 1e-6
        return frame - path.frames[-1] > self.config.jump_gap and late

    def _extend(self, path, frame, time, row, boxes, agentness, scores) -> None:
        self._move(path, time, boxes[row], scores[row])
        path.step = self.step
        path.frames.append(frame)
        path.times.append(time)
        path.rows.append(row)
        path.boxes.append(boxes[row])
        path.agentness.append(agentness[row])
        path.scores.append(np.asarray(scores[row], np.float32))

    def _begin(self, frame, time, rows, taken, boxes, agentness, scores) -> list[float]:
        keys, config = [], self.config
        for row in rows:
            strong = agentness[row] > config.begin_score
            if row not in taken and strong and not self._double(boxes, row, taken):
                taken.add(row)
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

    def _settle(self, frame: int, time: float, keys: list[float]) -> None:
        order = list(np.argsort(np.array(keys), kind="stable")[::-1])
        if self.config.order_ties == "first":
            order = list(np.argsort(-np.array(keys), kind="stable"))
        if self.config.order_ties == "build":
            order = list(np.argsort(np.array(keys))[::-1])
        kept = []
        for place in order:
            path = self.live[place]
            (self.closed if self._stale(path, frame, time) else kept).append(path)
        self.live = kept

    def _double(self, boxes: Array, row: int, taken: set[int]) -> bool:
        least = self.config.begin_iou
        return least < 1 and any(self._iou(boxes[row], boxes[other], clamped=True) > least for other in taken)

    def _move(self, path: PlainPath, time: float, box: Array, scores: Array) -> None:
        """Motion and running class scores, before the detection is put to the path."""
        x1, y1, x2, y2 = (float(side) for side in box)
        width, height = x2 - x1, y2 - y1
        seen = ((x1 + x2) / 2.0, (y1 + y2) / 2.0, width, height)
        errors = [share * max(side, 1e-6) for share in (0.05, 0.07) for side in (width, height)]
        scores = [float(score) for score in scores[: self.l2_columns]]
        if not path.motion:
            scale = math.sqrt(max(width, 1e-6) * max(height, 1e-6))
            fast = [2.0 * scale, 2.0 * scale, 0.5 * scale, 0.5 * scale]
            found = zip(seen, errors, fast, strict=True)
            path.motion = [PlainValue(v, 0.0, e * e, 0.0, s * s) for v, e, s in found]
            path.kinds = scores
            return
        ahead = zip(self._ahead(path, time), seen, errors, strict=True)
        path.motion = [value.corrected(at, error) for value, at, error in ahead]
        path.kinds = [(1.0 - 0.2) * a + 0.2 * b for a, b in zip(path.kinds, scores, strict=True)]

    def _ahead(self, path: PlainPath, time: float) -> list[PlainValue]:
        width, height = (max(value.value, 1e-6) for value in path.motion[2:])
        pushes = [share * math.sqrt(width * height) for share in (1.0, 1.0, 0.5, 0.5)]
        passed = time - path.times[-1]
        return [value.after(passed, push) for value, push in zip(path.motion, pushes, strict=True)]

    def _affinities(self, path, time, rows, boxes, scores, taken, widened) -> dict[int, float]:
        """Overlap less what speaks against it, boxes widened by so many standard deviations."""
        more = (0.0, 0.0)
        if self.config.motion == "kalman":
            ahead = self._ahead(path, time)
            (x, y), (width, height) = (v.value for v in ahead[:2]), (max(v.value, 0.0) for v in ahead[2:])
            more = tuple(widened * math.sqrt(v.var) for v in ahead[:2])
        else:
            x1, y1, x2, y2 = (float(side) for side in self._expected(path, time))
            x, y, width, height = (x1 + x2) / 2.0, (y1 + y2) / 2.0, max(x2 - x1, 0.0), max(y2 - y1, 0.0)
        found = {}
        for row in rows:
            x1, y1, x2, y2 = (float(side) for side in boxes[row])
            wide, high = x2 - x1, y2 - y1
            across = (width + wide) / 2.0 + more[0] - abs((x1 + x2) / 2.0 - x)
            down = (height + high) / 2.0 + more[1] - abs((y1 + y2) / 2.0 - y)
            if row in taken or across <= 0 or down <= 0:
                continue
            alike = min(width, wide) * min(height, high) >= 0.5 * max(width, wide) * max(height, high)
            if more[0] > 0 and not alike:
                continue
            inter = min(min(width, wide) + more[0], across) * min(min(height, high) + more[1], down)
            both = (width + more[0]) * (height + more[1]) + (wide + more[0]) * (high + more[1])
            worth = inter / (both - inter)
            if worth >= self.config.min_iou:
                worth -= 0.1 * (self.step - path.step - 1) / len(path.frames) + 0.2 * self._turned(
                    path, scores[row]
                )
                if worth >= self.config.min_iou:
                    found[row] = worth
        return found

    def _turned(self, path: PlainPath, scores: Array) -> float:
        dot = square_a = square_b = 0.0
        for a, b in zip(path.kinds, (float(score) for score in scores[: self.l2_columns]), strict=True):
            dot, square_a, square_b = dot + a * b, square_a + a * a, square_b + b * b
        return 1.0 - dot / math.sqrt(square_a * square_b) if square_a > 0 and square_b > 0 else 0.0

    def _expected(self, path: PlainPath, time: float) -> Array:
        last, back = path.boxes[-1], min(self.config.jump_gap + 1, len(path.boxes))
        if self.config.motion == "kalman":
            x, y, width, height = (value.value for value in self._ahead(path, time))
            w, h = max(width, 0.0), max(height, 0.0)
            return np.array([x - w / 2.0, y - h / 2.0, x + w / 2.0, y + h / 2.0])
        if self.config.motion == "none":
            return last
        if self.config.motion == "count":
            return last + (last - path.boxes[-back]) / self.type(max(1, back - 1))
        if back == 1:
            return last
        # Multiplied before it is divided, as the linker does: just min_iou hangs on the last bit.
        ahead, between = time - path.times[-1], path.times[-1] - path.times[-back]
        return last + (last - path.boxes[-back]) * ahead / between

    def _iou(self, a: Array, b: Array, *, clamped: bool = False) -> float:
        width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        if (clamped or self.config.clamped_iou) and (width <= 0 or height <= 0):
            return 0.0
        inter = width * height
        if inter <= 0:
            return 0.0
        areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
        with np.errstate(divide="ignore"):
            return float(np.float64(inter) / (np.float64(areas) - np.float64(inter)))

    def _edges(self, path, time, rows, boxes, agentness, scores, taken) -> dict[int, float]:
        if self.config.cost == "affinity":
            return self._affinities(path, time, rows, boxes, scores, taken, 0.0)
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
        config = self.config
        if config.assignment == "greedy":
            return None
        found: dict[int, int] = {}
        for turn in range(2 if config.assignment == "cascade" else 1):
            gain, taken = np.zeros((len(self.live), len(rows))), set(found.values())
            for place, path in enumerate(self.live):
                if place in found or self._stale(path, frame, time):
                    continue
                if turn:
                    edges = self._affinities(path, time, rows, boxes, scores, taken, 2.0)
                else:
                    edges = self._edges(path, time, rows, boxes, agentness, scores, taken)
                if self._best(rows, edges) is None:
                    continue
                for i, row in enumerate(rows):
                    worth = edges.get(row, 0.0)
                    if config.edge_rule == "best" and worth <= config.min_edge:
                        worth = 0.0
                    gain[place, i] = min(worth, 1e9)
            found |= {place: rows[i] for place, i in enumerate(assigned(gain)) if i >= 0}
        return {place: found.get(place) for place in range(len(self.live))}


def assigned(gain: Array) -> list[int]:
    """The column of each row in an assignment of the greatest sum, -1 for none: Hungarian method.

    Behind the columns stands one for each row, in which it is free.
    """
    rows, columns = gain.shape
    cost = np.where(gain > 0, -gain, math.inf)
    cost = np.concatenate([cost, np.where(np.eye(rows) > 0, 0.0, math.inf)], axis=1)
    high, low, owner = [0.0] * rows, [0.0] * (rows + columns), [-1] * (rows + columns)
    for first in range(rows):
        nearest, before, seen = [math.inf] * len(low), [-1] * len(low), set()
        row, at = first, -1
        while True:
            for j in range(len(low)):
                reached = cost[row, j] - high[row] - low[j]
                if j not in seen and reached < nearest[j]:
                    nearest[j], before[j] = reached, at
            following = min((j for j in range(len(low)) if j not in seen), key=lambda j: nearest[j])
            step = nearest[following]
            high[first] += step
            for j in range(len(low)):
                if j in seen:
                    high[owner[j]] += step
                    low[j] -= step
                else:
                    nearest[j] -= step
            at, row = following, owner[following]
            seen.add(at)
            if row < 0:
                break
        while at >= 0:
            owner[at] = first if before[at] < 0 else owner[before[at]]
            at = before[at]
    given = [-1] * rows
    for j in range(columns):
        if owner[j] >= 0:
            given[owner[j]] = j
    return given


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
