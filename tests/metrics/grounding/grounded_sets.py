"""Sentences told by hand or by chance, as plain data and as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from roadaware.scenes.tables import Meta, Predictions, Scenes

Box = tuple[float, float, float, float]


@dataclass
class Told:
    """One sentence; frames from 0, ends half open, boxes by frame; a prediction of None is none."""

    video: str
    span: tuple[int, int]
    boxes: dict[int, Box]
    prediction: tuple[int, int] | None
    predicted_boxes: dict[int, Box] = field(default_factory=dict)
    kind: str = "declarative"
    n_frames: int = 100
    fps: float | None = 25.0
    segment: tuple[int, int] | None = None
    category: str | None = None


def tables(told: Sequence[Told], first_frame: int = 0) -> tuple[Predictions, Scenes]:
    """Predictions and truth of sentences, numbered by their places."""
    videos = {each.video: each for each in told}
    scenes = Scenes(
        videos=pl.DataFrame(
            {
                "video": list(videos),
                "fps": pl.Series([each.fps for each in videos.values()], dtype=pl.Float64),
                "n_frames": [each.n_frames for each in videos.values()],
                "category": pl.Series([each.category for each in videos.values()], dtype=pl.String),
            }
        ),
        boxes=_boxes([(each.video, each.boxes) for each in told]),
        tubes=_tubes(told),
        queries=pl.DataFrame(
            {
                "query": range(len(told)),
                "video": [each.video for each in told],
                "name": [f"q{place}" for place in range(len(told))],
                "sentence_kind": [each.kind for each in told],
                "tube": range(len(told)),
                "start_frame": [each.span[0] for each in told],
                "end_frame": [each.span[1] for each in told],
                "segment_start_frame": pl.Series([_at(each.segment, 0) for each in told], dtype=pl.Int64),
                "segment_end_frame": pl.Series([_at(each.segment, 1) for each in told], dtype=pl.Int64),
            }
        ),
        meta=Meta(notes={"first_frame": first_frame}),
    )
    return predictions(told), scenes


def predictions(told: Sequence[Told]) -> Predictions:
    """What is predicted of sentences that are numbered by their places."""
    made = [
        (place, each.video, each.prediction) for place, each in enumerate(told) if each.prediction is not None
    ]
    return Predictions(
        boxes=_boxes([(each.video, each.predicted_boxes) for each in told]),
        tubes=_tubes(told),
        queries=pl.DataFrame(
            {
                "query": pl.Series([place for place, _, _ in made], dtype=pl.Int64),
                "video": pl.Series([video for _, video, _ in made], dtype=pl.String),
                "tube": pl.Series([place for place, _, _ in made], dtype=pl.Int64),
                "start_frame": pl.Series([span[0] for _, _, span in made], dtype=pl.Int64),
                "end_frame": pl.Series([span[1] for _, _, span in made], dtype=pl.Int64),
            }
        ),
    )


def same(told: Sequence[Told]) -> list[Told]:
    """The sentences with the truth as their predictions."""
    return [
        Told(**{**vars(each), "prediction": each.span, "predicted_boxes": dict(each.boxes)}) for each in told
    ]


def steady(span: tuple[int, int], box: Sequence[float]) -> dict[int, Box]:
    """One box in every frame of a span."""
    return dict.fromkeys(range(*span), (box[0], box[1], box[2], box[3]))


def random_told(seed: int, n: int = 30, *, short_clips: bool = False, shortest: int = 1) -> list[Told]:
    """Sentences with spans and boxes near and far of each other, on a coarse grid, so that much is equal.

    Args:
        seed: of it all.
        n: sentences; two in a video, but for short clips.
        short_clips: videos are clips of a few seconds each, searched whole, as in HC-STVG.
        shortest: frames that the shortest true span has.
    """
    rng = np.random.default_rng(seed)
    made = []
    for place in range(n):
        n_frames = int(rng.integers(100, 700))
        start = int(rng.integers(0, n_frames - 20))
        span = (start, int(rng.integers(start + shortest, min(n_frames + 1, start + 200))))
        move = int(rng.choice([0, 3, 20, 150]))
        prediction = (max(0, span[0] + move), max(0, span[0] + move) + int(rng.integers(0, 150)))
        if rng.random() < 0.2:
            prediction = span
        wide = (max(0, min(span[0], prediction[0]) - 2), max(span[1], prediction[1]) + 2)
        made.append(
            Told(
                video=f"v{place // 2}" if not short_clips else f"v{place}",
                span=span,
                boxes={frame: _box(rng) for frame in range(*span)},
                prediction=prediction if rng.random() < 0.9 else None,
                predicted_boxes={frame: _box(rng) for frame in range(*wide) if rng.random() < 0.9},
                kind=str(rng.choice(["declarative", "interrogative"])),
                n_frames=10_000 if not short_clips else n_frames,
                fps=float([24.0, 30000 / 1001, 30.0, 25.0][place // 2 % 4]),
                segment=None if short_clips else (max(0, span[0] - 37), span[1] + 41),
            )
        )
    return made


def _box(rng: np.random.Generator) -> Box:
    x, y, w, h = (int(number) for number in rng.integers([0, 0, 2, 2], [6, 6, 8, 8]))
    return (x + 0.5, y, x + w + 0.5, y + h)


def _at(pair: tuple[int, int] | None, place: int) -> int | None:
    return None if pair is None else pair[place]


def _tubes(told: Sequence[Told]) -> pl.DataFrame:
    return pl.DataFrame({"tube": range(len(told)), "video": [each.video for each in told]})


def _boxes(held: Sequence[tuple[str, Mapping[int, Box]]]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for tube, (video, boxes) in enumerate(held):
        for frame, box in boxes.items():
            corners = dict(zip(("x1_px", "y1_px", "x2_px", "y2_px"), map(float, box), strict=True))
            rows.append({"box": len(rows), "video": video, "frame": frame, "tube": tube, **corners})
    schema = {"box": pl.Int64, "video": pl.String, "frame": pl.Int64, "tube": pl.Int64}
    corner = dict.fromkeys(("x1_px", "y1_px", "x2_px", "y2_px"), pl.Float64)
    return pl.DataFrame(rows, schema={**schema, **corner})
