"""Large synthetic truths and predictions of the four tasks on scenes, as tables and as native files."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

Floats = np.ndarray


def ava(
    keyframes: int = 24_000, truths: int = 300_000, detections: int = 1_000_000, seed: int = 0
) -> tuple[Scenes, Predictions]:
    """Keyframes with persons of several labels each, and predictions around them: as large as the set of AVA."""
    rng = np.random.default_rng(seed)
    actions, per_video = 60, 900
    persons = truths // 2
    frame = np.sort(rng.integers(0, keyframes, persons))
    corners = _shares(persons, rng)
    meta = Meta(
        vocabularies={"action": tuple(f"action {k}" for k in range(1, actions + 1))},
        notes={"label_ids": {"action": list(range(1, actions + 1))}, "unit_pictures": True},
    )
    names = [f"v{k:03d}" for k in range((keyframes - 1) // per_video + 1)]
    first = rng.integers(0, actions, persons)
    label = np.stack([first, (first + 1 + rng.integers(0, actions - 1, persons)) % actions], axis=1).ravel()
    truth = Scenes(
        videos=pl.DataFrame({"video": names, "width_px": [1] * len(names), "height_px": [1] * len(names)}),
        frames=pl.DataFrame(
            {
                "video": [names[k // per_video] for k in range(keyframes)],
                "frame": 900 + np.arange(keyframes) % per_video,
                "annotated": np.ones(keyframes, dtype=bool),
            }
        ),
        boxes=_boxes(frame, corners, names, per_video),
        labels=_labels(np.repeat(np.arange(persons), 2), label),
        meta=meta,
    )
    found = detections // 4
    near = np.sort(rng.integers(0, persons, found))
    noisy = np.clip(corners[near] + rng.normal(0, 0.02, (found, 4)), 0, 1)
    noisy[:, 2:] = np.maximum(noisy[:, 2:], noisy[:, :2])
    guess = (
        label.reshape(-1, 2)[near, 0][:, None] + np.arange(4) * rng.integers(1, 14, (found, 1))
    ) % actions
    predictions = Predictions(
        boxes=_boxes(frame[near], noisy, names, per_video),
        labels=_labels(np.repeat(np.arange(found), 4), guess.ravel(), rng.beta(2, 4, 4 * found)),
        meta=meta,
    )
    return truth, predictions


def _shares(n: int, rng: np.random.Generator) -> Floats:
    low = rng.uniform(0, 0.6, (n, 2))
    return np.round(np.concatenate([low, low + rng.uniform(0.1, 0.4, (n, 2))], axis=1), 3)


def _boxes(frame: Floats, corners: Floats, names: list[str], per_video: int) -> pl.DataFrame:
    columns = {name: corners[:, k] for k, name in enumerate(CORNERS)}
    videos = pl.Series(names, dtype=pl.String).gather(frame // per_video)
    numbers = np.arange(len(frame))
    return pl.DataFrame({"box": numbers, "video": videos, "frame": 900 + frame % per_video, **columns})


def _labels(box: Floats, label: Floats, score: Floats | None = None) -> pl.DataFrame:
    rows = pl.DataFrame({"box": box, "kind": pl.repeat("action", len(box), eager=True), "label": label})
    rows = rows if score is None else rows.with_columns(score=pl.Series(score))
    return rows.unique(["box", "label"], keep="first", maintain_order=True)


def relations(
    videos: int = 1000, truths: int = 10, detections: int = 200, frames: int = 60, seed: int = 0
) -> tuple[Scenes, Predictions]:
    """Videos with a few persons who deal with each other, and many predictions about them."""
    rng = np.random.default_rng(seed)
    persons, words = 6, 12
    meta = Meta(vocabularies={"category": ("person",), "predicate": tuple(f"does {k}" for k in range(words))})
    names = [f"v{k:04d}" for k in range(videos)]
    true_boxes = np.cumsum(rng.normal(0, 2, (videos, persons, frames, 2)), axis=2) + rng.uniform(
        50, 400, (videos, persons, 1, 2)
    )
    tables = [
        _tracks(names, true_boxes),
        _tracks(names, true_boxes + rng.normal(0, 6, (videos, persons, 1, 2))),
    ]
    places = pl.DataFrame(
        {
            "video": names,
            "width_px": [640] * videos,
            "height_px": [480] * videos,
            "n_frames": [frames] * videos,
        }
    )
    truth = Scenes(
        videos=places,
        relations=_relations(names, truths, persons, frames, words, rng),
        meta=meta,
        **tables[0],
    )
    rows = _relations(names, detections, persons, frames, words, rng)
    rows = rows.with_columns(score=pl.Series(rng.random(len(rows))))
    return truth, Predictions(relations=rows, meta=meta, **tables[1])


def _tracks(names: list[str], low: Floats) -> dict[str, pl.DataFrame]:
    videos, persons, frames, _two = low.shape
    tubes = videos * persons
    corner = np.concatenate([low, low + 80.0], axis=3).reshape(-1, 4)
    video = pl.Series(names, dtype=pl.String).gather(np.arange(tubes) // persons)
    boxes = pl.DataFrame(
        {
            "box": np.arange(len(corner)),
            "video": video.gather(np.repeat(np.arange(tubes), frames)),
            "frame": np.tile(np.arange(frames), tubes),
            "tube": np.repeat(np.arange(tubes), frames),
            **{name: corner[:, k] for k, name in enumerate(CORNERS)},
        }
    )
    numbers = np.arange(tubes)
    named = (numbers % persons).astype(str)
    return {
        "boxes": boxes,
        "tubes": pl.DataFrame({"tube": numbers, "video": video, "name": named}),
        "tube_labels": pl.DataFrame(
            {"tube": numbers, "kind": pl.repeat("category", tubes, eager=True), "label": 0 * numbers}
        ),
    }


def _relations(
    names: list[str], each: int, persons: int, frames: int, words: int, rng: np.random.Generator
) -> pl.DataFrame:
    n = each * len(names)
    video = np.repeat(np.arange(len(names)), each)
    subject = rng.integers(0, persons, n)
    other = (subject + rng.integers(1, persons, n)) % persons
    start = rng.integers(0, frames // 2, n)
    end = start + rng.integers(5, frames // 2, n)
    return pl.DataFrame(
        {
            "relation": np.arange(n),
            "video": pl.Series(names, dtype=pl.String).gather(video),
            "subject": video * persons + subject,
            "object": video * persons + other,
            "predicate": rng.integers(0, words, n),
            "start_frame": start,
            "end_frame": end,
        }
    )


def sentences(n: int = 500, frames: int = 200, seed: int = 0) -> tuple[Scenes, Predictions]:
    """One sentence a video with a true and a predicted tube."""
    rng = np.random.default_rng(seed)
    names = [f"v{k:03d}" for k in range(n)]
    low = np.cumsum(rng.normal(0, 2, (n, 1, frames, 2)), axis=2) + rng.uniform(50, 300, (n, 1, 1, 2))
    start = rng.integers(0, frames // 3, n)
    end = start + rng.integers(frames // 3, frames // 2, n)
    columns = {"query": np.arange(n), "video": names, "tube": np.arange(n)}
    queries = pl.DataFrame({**columns, "name": names, "start_frame": start, "end_frame": end})
    drop = ["tube_labels"]
    one, two = _tracks(names, low), _tracks(names, low + rng.normal(0, 8, (n, 1, 1, 2)))
    for name in drop:
        del one[name], two[name]
    places = pl.DataFrame(
        {
            "video": names,
            "width_px": [640] * n,
            "height_px": [480] * n,
            "n_frames": [frames] * n,
            "fps": [frames / 20.0] * n,
        }
    )
    shifted = pl.DataFrame({**columns, "start_frame": np.maximum(start - 8, 0), "end_frame": end + 8})
    return Scenes(videos=places, queries=queries, **one), Predictions(queries=shifted, **two)


def sounds(n: int = 5000, size: int = 224, seed: int = 0) -> tuple[Scenes, Predictions]:
    """One true box each, and a map of the given size."""
    rng = np.random.default_rng(seed)
    names = [f"s{k:04d}" for k in range(n)]
    low = rng.uniform(0, 0.5, (n, 2))
    corners = np.concatenate([low, low + rng.uniform(0.2, 0.5, (n, 2))], axis=1)
    boxes = pl.DataFrame(
        {
            "box": np.arange(n),
            "video": names,
            "frame": np.zeros(n, dtype=np.int64),
            "sound": np.arange(n),
            **{name: corners[:, k] for k, name in enumerate(CORNERS)},
        }
    )
    table = pl.DataFrame({"sound": np.arange(n), "video": names, "name": names, "label": np.arange(n) % 20})
    meta = Meta(vocabularies={"sound": tuple(f"sound {k}" for k in range(20))}, notes={"unit_pictures": True})
    places = pl.DataFrame({"video": names, "width_px": [1] * n, "height_px": [1] * n})
    maps = rng.random((n, size * size), dtype=np.float32)
    predicted = table.select("sound", "video").with_columns(
        pl.Series("map", maps, dtype=pl.Array(pl.Float32, size * size)),
        map_width=pl.Series(np.full(n, size, dtype=np.int64)),
    )
    return Scenes(videos=places, boxes=boxes, sounds=table, meta=meta), Predictions(sounds=predicted)
