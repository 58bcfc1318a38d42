"""Random sets of tubes: holes, ties, several labels, classes without truth, extents that many tubes share."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from roadaware.scenes.tables import Meta, Predictions, Scenes

KINDS = {"agentness": ("agent",), "agent": ("Ped", "Car", "Bus"), "action": ("Stop", "Mov", "Xing", "Never")}
OTHER_ORDER = {"agentness": ("agent",), "agent": ("Bus", "Ped", "Car"), "action": ("Xing", "Mov", "Stop")}
SIZE, PREDICTED_SIZE = (640, 480), (682, 512)
_EDGES = ("x1_px", "y1_px", "x2_px", "y2_px")


class _Rows:
    """Rows of boxes, tubes and labels as they come."""

    def __init__(self) -> None:
        self.boxes: list[dict[str, Any]] = []
        self.tubes: list[dict[str, Any]] = []
        self.labels: list[dict[str, Any]] = []

    def tube(self, **columns: Any) -> int:
        self.tubes.append({"tube": len(self.tubes) + 7, **columns})
        return len(self.tubes) + 6

    def path(self, video: str, frames: list[int], boxes: list[np.ndarray], **columns: Any) -> int:
        tube = self.tube(video=video, **columns)
        for frame, box in zip(frames, boxes, strict=True):
            edges = dict(zip(_EDGES, box.tolist(), strict=True))
            self.boxes.append({"video": video, "frame": frame, "tube": tube, **edges})
        return tube


def tube_set(
    seed: int = 0,
    *,
    videos: int = 3,
    frames: int = 14,
    tracks: float = 3.0,
    holes: float = 0.15,
    tied: bool = False,
    consecutive: bool = False,
) -> tuple[Scenes, Predictions]:
    """A truth and predictions that meet some of it; predictions have a vocabulary of another order.

    Args:
        seed: of everything.
        videos: number of videos; the predictions speak of one more.
        frames: of each video.
        tracks: mean number of true tracks of a video.
        holes: share of the frames of a track that are missing, in truth and predictions.
        tied: whether scores are rounded and boxes lie on a grid, so that many are equal.
        consecutive: whether some predictions are for consecutive frames.
    """
    rng = np.random.default_rng(seed)
    truth, predictions = _Rows(), _Rows()
    names = [f"v{k}" for k in range(videos)]
    for video in names:
        for _ in range(rng.poisson(tracks)):
            number, boxes = _track(rng, frames, holes, tied)
            track = truth.path(video, number, boxes)
            _derive(rng, truth, track, video, number, predicted=None)
            for _ in range(rng.integers(0, 3)):
                _prediction(rng, predictions, video, number, boxes, tied, consecutive, frames)
        number, boxes = _track(rng, frames, holes, tied)
        _prediction(rng, predictions, video, number, boxes, tied, consecutive, frames)
    number, boxes = _track(rng, frames, holes, tied)
    _prediction(rng, predictions, "unknown", number, boxes, tied, consecutive, frames)
    return _scenes(names, truth), _predictions(names, predictions)


def _track(
    rng: np.random.Generator, frames: int, holes: float, tied: bool
) -> tuple[list[int], list[np.ndarray]]:
    first = int(rng.integers(0, frames - 3))
    last = int(rng.integers(first + 1, frames))
    inner = [frame for frame in range(first + 1, last) if rng.random() >= holes]
    number = [first, *inner, last]
    low, side = rng.uniform(0, 300, 2), rng.uniform(40, 150, 2)
    if tied:
        low, side = np.round(low, -2), np.round(side / 50) * 50
    drift = np.zeros(2) if tied else rng.normal(0, 4, 2)
    starts = [low + drift * k for k in range(len(number))]
    return number, [np.maximum(np.concatenate([at, at + side]), 0).astype(np.float32) for at in starts]


def _prediction(rng, predictions, video, number, boxes, tied, consecutive, frames):
    keep = [k for k in range(len(number)) if rng.random() < 0.9] or [0]
    shift = 0.0 if tied else 5.0
    moved = [boxes[k] + rng.normal(0, shift, 4) if shift else boxes[k] for k in keep]
    shaken = [np.concatenate([np.minimum(b[:2], b[2:]), np.maximum(b[:2], b[2:])]) for b in moved]
    scaled = [
        box * np.array([PREDICTED_SIZE[0] / SIZE[0], PREDICTED_SIZE[1] / SIZE[1]] * 2) for box in shaken
    ]
    number = [number[k] for k in keep]
    path = predictions.path(video, number, scaled, score=_score(rng, tied))
    _derive(rng, predictions, path, video, number, predicted=(tied, consecutive))


def _derive(rng, rows, parent, video, number, predicted):
    """Labelled tubes of a track: whole, or cut into spans, some of them without a box."""
    for kind, n in (("agent", 3), ("action", 3)):
        for label in rng.permutation(n)[: rng.integers(0, 3)].tolist():
            if predicted is None and (kind, label) == ("agent", 2):
                continue
            ends = sorted(rng.integers(number[0], number[-1] + 3, 4).tolist())
            spans = [[number[0], number[-1] + 1]] if rng.random() < 0.6 else [ends[:2], ends[2:]]
            columns: dict[str, Any] = {"parent": parent, "kind": kind, "spans": spans, "video": video}
            if predicted is not None:
                _, consecutive = predicted
                columns["consecutive"] = bool(consecutive and rng.random() < 0.5)
                columns["start_frame"] = spans[0][0]
            tube = rows.tube(**columns)
            score = {} if predicted is None else {"score": _score(rng, predicted[0])}
            rows.labels.append({"tube": tube, "kind": kind, "label": label, **score})


def _score(rng: np.random.Generator, tied: bool) -> float:
    return float(round(rng.random(), 1) if tied else rng.random())


_BOX = {"video": pl.String, "frame": pl.Int64, "tube": pl.Int64, **dict.fromkeys(_EDGES, pl.Float64)}
_TUBE = {
    "tube": pl.Int64,
    "video": pl.String,
    "parent": pl.Int64,
    "kind": pl.String,
    "spans": pl.List(pl.List(pl.Int64)),
}
_LABEL = {"tube": pl.Int64, "kind": pl.String, "label": pl.Int64}


def _scenes(names: list[str], rows: _Rows) -> Scenes:
    return Scenes(
        videos=_videos(names, SIZE),
        boxes=pl.DataFrame(rows.boxes, schema=_BOX).with_row_index("box"),
        tubes=pl.DataFrame(rows.tubes, schema=_TUBE),
        tube_labels=pl.DataFrame(rows.labels, schema=_LABEL),
        meta=Meta(vocabularies=KINDS),
    )


def _predictions(names: list[str], rows: _Rows) -> Predictions:
    score = {"score": pl.Float64}
    predicted = {**_TUBE, "consecutive": pl.Boolean, "start_frame": pl.Int64, **score}
    return Predictions(
        videos=_videos([*names, "unknown"], PREDICTED_SIZE),
        boxes=pl.DataFrame(rows.boxes, schema=_BOX).with_row_index("box"),
        tubes=pl.DataFrame(rows.tubes, schema=predicted),
        tube_labels=pl.DataFrame(rows.labels, schema={**_LABEL, **score}),
        meta=Meta(vocabularies=OTHER_ORDER),
    )


def _videos(names: list[str], size: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame({"video": names, "width_px": size[0], "height_px": size[1]})
