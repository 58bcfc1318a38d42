"""Random tracks and paths that follow them: switches, holes, crowds, empty frames, empty videos."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from roadaware.scenes.tables import Predictions, Scenes

EDGES = ("x1_px", "y1_px", "x2_px", "y2_px")
Row = tuple[str, int, int, Any]


def track_set(
    seed: int = 0,
    *,
    videos: int = 3,
    frames: int = 12,
    tracks: float = 3.0,
    crowd: float = 0.5,
    silent: float = 0.1,
) -> tuple[Scenes, Predictions]:
    """A truth and paths that follow it more or less.

    Args:
        seed: of everything.
        videos: number of videos.
        frames: of each.
        tracks: mean number of tracks of a video.
        crowd: 0 spreads tracks over the image, 1 puts all of them in one place.
        silent: share of frames in which nothing is predicted.
    """
    rng = np.random.default_rng(seed)
    truth: list[Row] = []
    predictions: list[Row] = []
    names = [f"v{k}" for k in range(videos)]
    number = 0
    for video in names:
        quiet = rng.random(frames) < silent
        first_path = number = number + 100
        n_paths = int(rng.integers(0, 2 * tracks + 2))
        for track in range(rng.poisson(tracks)):
            place, side = rng.uniform(0, 400, 2) * (1 - crowd), rng.uniform(30, 60, 2)
            path = first_path + int(rng.integers(0, max(1, n_paths)))
            for frame in range(int(rng.integers(0, frames)), frames):
                place = place + rng.normal(0, 3, 2)
                if rng.random() < 0.2:
                    continue
                box = np.concatenate([place, place + side])
                truth.append((video, frame, 1000 * number + track, box))
                path = first_path + int(rng.integers(0, n_paths)) if n_paths and rng.random() < 0.1 else path
                taken = any((v, f, p) == (video, frame, path) for v, f, p, _ in predictions)
                if n_paths and not quiet[frame] and not taken and rng.random() < 0.8:
                    moved = box + rng.normal(0, 15 if rng.random() < 0.2 else 4, 4)
                    predictions.append((video, frame, path, np.sort(moved.reshape(2, 2), axis=0).ravel()))
    return _scenes(names, frames, truth), _predictions(predictions)


def _scenes(names: list[str], frames: int, rows: list[Row]) -> Scenes:
    boxes, tubes = tables(rows)
    every = [(video, frame, True) for video in names for frame in range(frames)]
    schema = {"video": pl.String, "frame": pl.Int64, "annotated": pl.Boolean}
    return Scenes(
        videos=pl.DataFrame({"video": names}),
        frames=pl.DataFrame(every, schema=schema, orient="row"),
        boxes=boxes,
        tubes=tubes,
    )


def _predictions(rows: list[Row]) -> Predictions:
    boxes, tubes = tables(rows)
    return Predictions(boxes=boxes, tubes=tubes)


def tables(rows: list[Row]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Boxes and tubes of (video, frame, tube, box)."""
    schema = {"video": pl.String, "frame": pl.Int64, "tube": pl.Int64, **dict.fromkeys(EDGES, pl.Float64)}
    flat = [(video, frame, tube, *(float(edge) for edge in box)) for video, frame, tube, box in rows]
    boxes = pl.DataFrame(flat, schema=schema, orient="row").with_row_index("box")
    return boxes, boxes.select("tube", "video").unique(maintain_order=True).sort("tube")
