"""The published AVA evaluators restated row by row, and sets of rows as tables."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from roadaware.scenes.tables import Meta, Predictions, Scenes

IDS = (3, 1, 7, 12)


class Row(NamedTuple):
    """A line of an AVA file; `score` is the person of a true row, None where the file has no such column."""

    video: str
    frame: int
    x1: float
    y1: float
    x2: float
    y2: float
    label: int
    score: float | None


def official(
    truth: Sequence[Row],
    predictions: Sequence[Row],
    excluded: Iterable[tuple[str, int]],
    *,
    cap: int = 50,
    ap="voc",
) -> dict[int, float]:
    """Native label id to its average precision, NaN without truth."""
    out = set(excluded)
    true_frames = {key: _through_heap(rows, 0) for key, rows in _frames(truth).items() if key not in out}
    pooled: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for key, rows in _frames(predictions).items():
        if key in out:
            continue
        kept = [row for row in _through_heap(rows, cap) if row[2] < row[4] and row[3] < row[5]]
        for label in IDS:
            mine = [row for row in kept if row[1] == label]
            theirs = [row[2:] for row in true_frames.get(key, []) if row[1] == label]
            pooled[label] += _argmax_hits(
                [row[2:] for row in mine], [row[0] for row in mine], theirs, np.float64
            )
    n_truth = Counter(row[1] for rows in true_frames.values() for row in rows)
    return {label: _ap(pooled[label], n_truth[label], ap) for label in IDS}


def mmaction2(
    truth: Sequence[Row], predictions: Sequence[Row], excluded: Iterable[tuple[str, int]]
) -> dict[int, float]:
    """Native label id to its average precision; absent without a prediction on a judged frame."""
    out = set(excluded)
    true_frames = {key: _sorted_rows(rows) for key, rows in _frames(truth).items()}
    predicted = {key: _sorted_rows(rows) for key, rows in _frames(predictions).items()}
    pooled: dict[int, list[tuple[float, bool]]] = {}
    for key, theirs in true_frames.items():
        if key in out:
            continue
        for label in {row[1] for row in predicted.get(key, [])}:
            mine = [row for row in predicted[key] if row[1] == label]
            boxes = [row[2:] for row in theirs if row[1] == label]
            hits = _argmax_hits([row[2:] for row in mine], [row[0] for row in mine], boxes, np.float32)
            pooled.setdefault(label, []).extend((np.float32(score), hit) for score, hit in hits)
    n_truth = Counter(row.label for row in truth)
    return {label: _ap(rows, n_truth[label], "voc") for label, rows in pooled.items()}


def recommended(
    truth: Sequence[Row],
    predictions: Sequence[Row],
    excluded: Iterable[tuple[str, int]],
    named: set[tuple[str, int]],
) -> dict[int, float]:
    """The default: greedy matching in the order of the file, on the frames that the truth names."""
    out = set(excluded)
    true_frames = {key: rows for key, rows in _frames(truth).items() if key not in out}
    predicted = _frames(predictions)
    pooled: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for key in sorted(named):
        for label in IDS:
            mine = sorted(
                (r for r in predicted.get(key, []) if r.label == label), key=lambda r: -_number(r.score)
            )
            free = [tuple(r[2:6]) for r in true_frames.get(key, []) if r.label == label]
            for row in mine if key not in out else []:
                shared = [_iou(row[2:6], box, np.float64) for box in free]
                best = int(np.argmax(shared)) if shared else -1
                hit = best >= 0 and shared[best] >= 0.5
                if hit:
                    del free[best]
                pooled[label].append((_number(row.score), hit))
    n_truth = Counter(row.label for rows in true_frames.values() for row in rows)
    # Ties are ranked in the order of the file here: turned round, since `_ap` turns them.
    return {label: _ap(pooled[label][::-1], n_truth[label], "voc") for label in IDS}


def _frames(rows: Iterable[Row]) -> dict[tuple[str, int], list[Row]]:
    found: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        found.setdefault((row.video, row.frame), []).append(row)
    return found


def _number(score: float | None) -> float:
    return 1.0 if score is None else float(score)


def _plain(row: Row) -> tuple[float, int, float, float, float, float]:
    return (_number(row.score), row.label, row.y1, row.x1, row.y2, row.x2)


def _through_heap(rows: Sequence[Row], capacity: int) -> list[tuple[float, int, float, float, float, float]]:
    heap: list[tuple[float, int, float, float, float, float]] = []
    for row in map(_plain, rows):
        if not capacity or len(heap) < capacity:
            heapq.heappush(heap, row)
        elif row[0] > heap[0][0]:
            heapq.heapreplace(heap, row)
    return sorted(heap, key=lambda row: -row[0])


def _sorted_rows(rows: Sequence[Row]) -> list[tuple[float, int, float, float, float, float]]:
    return sorted(map(_plain, rows), key=lambda row: -row[0])


def _argmax_hits(boxes, scores, truth, kind) -> list[tuple[float, bool]]:
    """Score and hit of the predictions of a label and frame, each with the true box it overlaps most."""
    taken: set[int] = set()
    found = []
    for box, score in zip(boxes, scores, strict=True):
        shared = [_iou(box, other, kind) for other in truth]
        best = int(np.argmax(shared)) if shared else -1
        hit = best >= 0 and shared[best] >= 0.5 and best not in taken
        if hit:
            taken.add(best)
        found.append((score, bool(hit)))
    return found


def _iou(a, b, kind) -> float:
    """IoU of two boxes as arrays of a kind of number give it."""
    a, b = np.array([a], dtype=kind), np.array([b], dtype=kind)
    sides = [
        np.maximum(np.zeros((1, 1)), np.minimum(a[:, [k + 2]], b[:, k + 2]) - np.maximum(a[:, [k]], b[:, k]))
        for k in (0, 1)
    ]
    shared = sides[0] * sides[1]
    area_a, area_b = ((c[:, 2] - c[:, 0]) * (c[:, 3] - c[:, 1]) for c in (a, b))
    with np.errstate(all="ignore"):
        return float((shared / (area_a[:, None] + area_b[None, :] - shared))[0, 0])


def _ap(pooled: Sequence[tuple[float, bool]], n_truth: int, rule: str) -> float:
    if not n_truth:
        return float("nan")
    if not pooled:
        return 0.0
    order = np.argsort([score for score, _ in pooled], kind="stable")[::-1]
    hits = np.array([hit for _, hit in pooled])[order]
    precision, recall = np.cumsum(hits) / np.arange(1, len(hits) + 1), np.cumsum(hits) / n_truth
    if rule == "raw":
        return float(precision[hits].sum() / n_truth)
    recall = np.concatenate([[0], recall, [1]])
    precision = np.maximum.accumulate(np.concatenate([[0], precision, [0]])[::-1])[::-1]
    at = np.flatnonzero(recall[1:] != recall[:-1]) + 1
    return float(((recall[at] - recall[at - 1]) * precision[at]).sum())


def scenes_of(
    truth: Sequence[Row], excluded: Iterable[tuple[str, int]] = (), bare: Iterable[tuple[str, int]] = ()
) -> Scenes:
    """The tables of true rows: a box per video, frame and corners, a second one for a label told twice.

    Args:
        truth: rows in the order of the file.
        excluded: frames that were not annotated.
        bare: frames that were annotated and have no row.
    """
    out = set(excluded)
    keys = dict.fromkeys([*((row.video, row.frame) for row in truth), *out, *bare])
    names = sorted({video for video, _ in keys})
    boxes, labels, person = _boxes_and_labels(truth, apart=True)
    tubes = dict.fromkeys(
        (video, p) for video, p in zip(boxes["video"], person, strict=True) if p is not None
    )
    number = {key: at for at, key in enumerate(tubes)}
    of_box = [number.get((video, p)) for video, p in zip(boxes["video"], person, strict=True)]
    return Scenes(
        videos=pl.DataFrame({"video": names, "width_px": 1, "height_px": 1}),
        frames=pl.DataFrame(
            [(video, frame, (video, frame) not in out) for video, frame in keys],
            schema={"video": pl.String, "frame": pl.Int64, "annotated": pl.Boolean},
            orient="row",
        ),
        boxes=boxes.with_columns(pl.Series("tube", of_box, dtype=pl.Int64)),
        labels=labels.drop("score"),
        tubes=pl.DataFrame(
            [(at, video, f"{person:g}") for (video, person), at in number.items()],
            schema={"tube": pl.Int64, "video": pl.String, "name": pl.String},
            orient="row",
        ),
        meta=_meta(),
    )


def predictions_of(predictions: Sequence[Row]) -> Predictions:
    """The tables of predicted rows."""
    boxes, labels, _ = _boxes_and_labels(predictions, apart=False)
    return Predictions(boxes=boxes, labels=labels, meta=_meta())


def _meta() -> Meta:
    names = tuple(f"action{native}" for native in IDS)
    return Meta(vocabularies={"action": names}, notes={"label_ids": {"action": list(IDS)}})


def _boxes_and_labels(
    rows: Sequence[Row], *, apart: bool
) -> tuple[pl.DataFrame, pl.DataFrame, list[float | None]]:
    """Boxes, their labels, and the score of the first row of each box; rows of other scores stand `apart`."""
    at: dict[tuple[object, ...], int] = {}
    told: Counter[tuple[object, ...]] = Counter()
    boxes, labels, person = [], [], []
    for row in rows:
        owner = (*row[:6], row.score if apart else None)
        told[owner, row.label] += 1
        key = (*owner, told[owner, row.label])
        if key not in at:
            at[key] = len(at)
            boxes.append((at[key], *row[:6]))
            person.append(row.score)
        labels.append((at[key], "action", IDS.index(row.label), row.score))
    corners = dict.fromkeys(("x1_px", "y1_px", "x2_px", "y2_px"), pl.Float64)
    schema = {"box": pl.Int64, "video": pl.String, "frame": pl.Int64, **corners}
    kinds = {"box": pl.Int64, "kind": pl.String, "label": pl.Int64, "score": pl.Float64}
    return (
        pl.DataFrame(boxes, schema=schema, orient="row"),
        pl.DataFrame(labels, schema=kinds, orient="row"),
        person,
    )
