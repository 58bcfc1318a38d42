"""Random sets of road events: ties, holes, classes without truth, boxes with several labels or none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Meta, Predictions, Scenes

KINDS = {"agentness": ("agent",), "agent": ("Ped", "Car", "Bus"), "action": ("Stop", "Mov", "Xing", "Never")}
AV = ("AV-Stop", "AV-Mov", "AV-Never")
META = Meta(dataset="made up", vocabularies={**KINDS, "av_action": AV})


def event_set(
    seed: int = 0,
    *,
    videos: int = 3,
    frames: int = 12,
    boxes: float = 3.0,
    extra: float = 1.0,
    tied: bool = False,
    size: tuple[int, int] = (640, 480),
    predicted_size: tuple[int, int] | None = None,
) -> tuple[Scenes, Predictions]:
    """A truth and predictions that meet some of it.

    Args:
        seed: of everything.
        videos: number of videos.
        frames: of each video.
        boxes: mean number of true boxes of a frame.
        extra: mean number of predictions on nothing of a frame.
        tied: whether scores are rounded so that many are equal.
        size: of the images.
        predicted_size: in which the predictions are given.
    """
    rng = np.random.default_rng(seed)
    names = [f"v{k}" for k in range(videos)]
    annotated, truth, labels, av, predictions, ego = [], [], [], [], [], []
    for video in names:
        for frame in range(frames):
            annotated.append((video, frame, bool(rng.random() < 0.85)))
            av += [
                (video, frame, "av_action", int(label)) for label in rng.permutation(2)[: rng.integers(0, 3)]
            ]
            ego.append((video, frame, _scores(rng, len(AV), tied)))
            for _ in range(rng.poisson(boxes)):
                edges = _box(rng, size)
                number = len(truth)
                truth.append((number, video, frame, *edges))
                held = [(kind, int(k)) for kind, k in _labels(rng)]
                labels += [(number, kind, label) for kind, label in held]
                n = int(rng.integers(0, 3))
                predictions += [
                    _prediction(rng, video, frame, _shaken(rng, edges), held, tied) for _ in range(n)
                ]
            n = int(rng.poisson(extra))
            predictions += [_prediction(rng, video, frame, _box(rng, size), [], tied) for _ in range(n)]
    shown = predicted_size or size
    factor = np.array([shown[0] / size[0], shown[1] / size[1]] * 2)
    return _scenes(names, annotated, truth, labels, av, size), _predictions(
        names, predictions, ego, shown, factor
    )


def _labels(rng: np.random.Generator) -> list[tuple[str, int]]:
    """None, one or several labels: agents one or none, actions up to two, never the last one."""
    agent = [("agent", int(rng.integers(3)))] if rng.random() < 0.9 else []
    return agent + [("action", int(k)) for k in rng.permutation(3)[: rng.integers(0, 3)]]


def _box(rng: np.random.Generator, size: tuple[int, int]) -> Sequence[float]:
    x, y = rng.uniform(0, 0.6, 2) * size
    w, h = rng.uniform(0.1, 0.4, 2) * size
    return np.array([x, y, x + w, y + h], dtype=np.float32).tolist()


def _shaken(rng: np.random.Generator, edges: Sequence[float]) -> Sequence[float]:
    side = np.array([edges[2] - edges[0], edges[3] - edges[1]] * 2)
    x1, y1, x2, y2 = np.array(edges) + rng.normal(0, 0.12, 4) * side
    return [min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)]


def _scores(rng: np.random.Generator, n: int, tied: bool) -> list[float]:
    values = rng.beta(1, 3, n)
    return (np.round(values, 1) if tied else values).astype(np.float32).tolist()


def _prediction(rng, video, frame, edges, held, tied):
    width = sum(len(labels) for kind, labels in KINDS.items() if kind != "agentness")
    values = np.array(_scores(rng, width, tied))
    for kind, label in held:
        at = label + (0 if kind == "agent" else len(KINDS["agent"]))
        values[at] = round(min(1.0, values[at] + 0.3), 1) if tied else min(1.0, values[at] + 0.3)
    return (video, frame, *edges, _scores(rng, 1, tied)[0], values.astype(np.float32).tolist())


def _scenes(names, annotated, truth, labels, av, size) -> Scenes:
    box = {"box": pl.Int64, "video": pl.String, "frame": pl.Int64}
    edges = dict.fromkeys(("x1_px", "y1_px", "x2_px", "y2_px"), pl.Float32)
    return Scenes(
        videos=pl.DataFrame({"video": names, "width_px": size[0], "height_px": size[1]}),
        frames=_table(annotated, {"video": pl.String, "frame": pl.Int64, "annotated": pl.Boolean}),
        boxes=_table(truth, {**box, **edges}),
        labels=_table(labels, {"box": pl.Int64, "kind": pl.String, "label": pl.Int64}),
        frame_labels=_table(
            av, {"video": pl.String, "frame": pl.Int64, "kind": pl.String, "label": pl.Int64}
        ),
        meta=META,
    )


def _predictions(names, predictions, ego, size, factor) -> Predictions:
    width = sum(len(labels) for kind, labels in KINDS.items() if kind != "agentness")
    schema = {"video": pl.String, "frame": pl.Int64}
    edges = ("x1_px", "y1_px", "x2_px", "y2_px")
    scaled = [(*c[:2], *(np.array(c[2:6]) * factor).tolist(), *c[6:]) for c in predictions]
    boxes = _table(
        scaled,
        {
            **schema,
            **dict.fromkeys(edges, pl.Float64),
            "score": pl.Float32,
            "scores": pl.Array(pl.Float32, width),
        },
    )
    meta = set_score_layout(set_score_layout(META, "boxes", ["agent", "action"]), "frames", ["av_action"])
    return Predictions(
        videos=pl.DataFrame({"video": names, "width_px": size[0], "height_px": size[1]}),
        boxes=boxes.with_row_index("box"),
        frames=_table(ego, {**schema, "scores": pl.Array(pl.Float32, len(AV))}),
        meta=meta,
    )


def _table(rows, schema) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=schema, orient="row")
