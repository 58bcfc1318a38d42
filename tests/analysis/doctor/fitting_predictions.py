"""Small truths of the four tasks and predictions that fit them, for planting one mistake at a time."""

import numpy as np
import polars as pl

from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

VIDEOS, FRAMES, SIZE = 4, 30, (640, 360)
WORDS = {
    "action": ("aiming", "arguing", "arresting", "burning", "carrying", "chasing"),
    "category": ("person", "dog"),
    "predicate": ("watching", "pushing", "hugging"),
    "sound": ("siren", "shouting"),
}


def walked(rng, n=VIDEOS * FRAMES):
    """Corners of boxes that move from frame to frame."""
    x, y = np.cumsum(rng.normal(0, 12, n)) % 400 + 30, np.cumsum(rng.normal(0, 8, n)) % 150 + 20
    return np.stack([x, y, x + rng.uniform(50, 90, n), y + rng.uniform(90, 130, n)], axis=1)


def boxes_of(corners, **more):
    columns = {c: corners[:, k] for k, c in enumerate(CORNERS)}
    n = len(corners)
    place = {
        "box": range(n),
        "video": [f"v{k // FRAMES}" for k in range(n)],
        "frame": [k % FRAMES for k in range(n)],
    }
    return pl.DataFrame({**place, **columns, **more})


def videos(size=SIZE):
    names = [f"v{k}" for k in range(VIDEOS)]
    return pl.DataFrame({"video": names, "width_px": [size[0]] * VIDEOS, "height_px": [size[1]] * VIDEOS})


def action_sets(seed=0):
    rng = np.random.default_rng(seed)
    corners = walked(rng)
    labels = rng.integers(1, 5, len(corners))
    rows = {"box": range(len(corners)), "kind": ["action"] * len(corners), "label": labels}
    meta = Meta(vocabularies={"action": WORDS["action"]}, notes={"label_ids": {"action": [1, 2, 3, 4, 5, 6]}})
    truth = Scenes(videos=videos(), boxes=boxes_of(corners), labels=pl.DataFrame(rows), meta=meta)
    predicted = pl.DataFrame({**rows, "score": rng.uniform(0.2, 0.9, len(corners))})
    return truth, Predictions(boxes=boxes_of(corners + 1.0), labels=predicted, meta=meta)


def relation_sets(seed=0):
    rng = np.random.default_rng(seed)
    corners = np.concatenate([walked(rng), walked(rng)])
    half = len(corners) // 2
    tube = [k // FRAMES for k in range(half)] + [VIDEOS + k // FRAMES for k in range(half)]
    boxes = pl.concat([boxes_of(corners[:half]), boxes_of(corners[half:])]).with_columns(
        box=pl.int_range(2 * half), tube=pl.Series(tube)
    )
    tubes = pl.DataFrame({"tube": range(2 * VIDEOS), "video": [f"v{k % VIDEOS}" for k in range(2 * VIDEOS)]})
    kinds = [0] * VIDEOS + [1] * VIDEOS
    words = pl.DataFrame({"tube": range(2 * VIDEOS), "kind": ["category"] * 2 * VIDEOS, "label": kinds})
    rows = [(v, v, VIDEOS + v, p, 5 * p, 5 * p + 12) for v in range(VIDEOS) for p in range(3)]
    names = ["video", "subject", "object", "predicate", "start_frame", "end_frame"]
    relations = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        pl.format("v{}", "video").alias("video")
    )
    relations = relations.with_row_index("relation").with_columns(pl.col("relation").cast(pl.Int64))
    meta = Meta(vocabularies={k: WORDS[k] for k in ("category", "predicate")})
    tables = {"boxes": boxes, "tubes": tubes, "tube_labels": words}
    truth = Scenes(videos=videos(), relations=relations, meta=meta, **tables)
    return truth, Predictions(relations=relations.with_columns(score=pl.lit(0.5)), meta=meta, **tables)


def query_sets(seed=0):
    rng = np.random.default_rng(seed)
    corners = walked(rng)
    boxes = boxes_of(corners, tube=[k // FRAMES for k in range(len(corners))])
    tubes = pl.DataFrame({"tube": range(VIDEOS), "video": [f"v{k}" for k in range(VIDEOS)]})
    n = 2 * VIDEOS
    queries = pl.DataFrame(
        {
            "query": range(n),
            "name": [f"q{k}" for k in range(n)],
            "video": [f"v{k % VIDEOS}" for k in range(n)],
            "tube": [k % VIDEOS for k in range(n)],
            "start_frame": 5 + rng.integers(0, 5, n),
            "end_frame": 20 + rng.integers(0, 8, n),
        }
    )
    truth = Scenes(videos=videos(), boxes=boxes, tubes=tubes, queries=queries)
    return truth, Predictions(boxes=boxes, tubes=tubes, queries=queries.drop("name"))


def sound_sets(seed=0, n=8):
    rng = np.random.default_rng(seed)
    names = [f"s{k}" for k in range(n)]
    x, y = rng.uniform(0.0, 0.25, n), rng.uniform(0.6, 0.75, n)
    boxes = pl.DataFrame(
        {
            "box": range(n), "video": names, "frame": [0] * n, "sound": range(n),
            "x1_px": x, "y1_px": y, "x2_px": x + 0.3, "y2_px": y + 0.2,
        }
    )  # fmt: skip
    sounds = pl.DataFrame(
        {"sound": range(n), "video": names, "name": names, "label": [k % 2 for k in range(n)]}
    )
    places = pl.DataFrame({"video": names, "width_px": [1] * n, "height_px": [1] * n})
    truth = Scenes(
        videos=places, boxes=boxes, sounds=sounds, meta=Meta(vocabularies={"sound": WORDS["sound"]})
    )
    rows, columns = np.mgrid[0:14, 0:14] / 14 + 0.5 / 14
    hills = [
        np.exp(-((columns - a - 0.15) ** 2 + (rows - b - 0.1) ** 2) / 0.02) for a, b in zip(x, y, strict=True)
    ]
    return truth, with_maps(truth, hills)


def with_maps(truth, maps):
    """Predictions of these maps."""
    table = truth.sounds.select("sound", "video").with_columns(
        pl.Series("map", [np.ascontiguousarray(m).ravel().tolist() for m in maps], dtype=pl.List(pl.Float32)),
        map_width=pl.Series([np.asarray(m).shape[1] for m in maps]),
    )
    return Predictions(sounds=table)
