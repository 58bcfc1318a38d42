"""Detections to link: agents that move, vanish and cross, with ties, gaps, empty frames and clutter."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Meta, Predictions

Array = np.ndarray[Any, Any]
Frame = tuple[int, Array, Array, Array]


def frames(
    seed: int, n_frames: int = 60, n_agents: int = 6, n_scores: int = 7, tied: bool = True
) -> list[Frame]:
    """Number, boxes (n, 4), agentness (n,) and scores (n, c) of each frame; some frames are left out."""
    r = np.random.default_rng(seed)
    place, speed = r.random((n_agents, 2)) * 120, r.normal(0, 2.5, (n_agents, 2))
    out = []
    for frame in range(n_frames):
        place += speed
        speed += r.normal(0, 0.4, speed.shape)
        turned = (place < 0) | (place > 200)
        speed[turned] *= -1
        seen = r.random(n_agents) < 0.75
        corner = place[seen] + r.normal(0, 0.8, (seen.sum(), 2))
        corner = np.concatenate([corner, r.random((r.poisson(0.7), 2)) * 200])
        if r.random() < 0.12:
            corner = corner[:0]
        if r.random() < 0.08:
            continue
        n = len(corner)
        size = r.choice([12.0, 24.0, 30.0], (n, 2), p=[0.1, 0.2, 0.7]) if tied else 20 + 10 * r.random((n, 2))
        boxes = np.concatenate([corner, corner + size], axis=1)
        agentness = r.random(n)
        scores = r.random((n, n_scores))
        if tied:
            boxes, agentness, scores = np.round(boxes), np.round(agentness, 1), np.round(scores, 1)
            if n > 1 and r.random() < 0.3:
                boxes[-1], scores[-1] = boxes[0], scores[0]
        order = np.argsort(-agentness, kind="stable")
        kept = (boxes[order].astype(np.float32), agentness[order].astype(np.float32))
        out.append((frame, *kept, scores[order].astype(np.float32)))
    return out


def predictions(
    videos: dict[str, list[Frame]], kinds: dict[str, int], *, with_frames: bool = True
) -> Predictions:
    """The same as a set; every frame that arrived is in `frames`."""
    parts, moments = [], []
    for name, video in videos.items():
        for frame, boxes, agentness, scores in video:
            moments.append((name, frame))
            parts += [
                (name, frame, *box.tolist(), float(agent), row.tolist())
                for box, agent, row in zip(boxes, agentness, scores, strict=True)
            ]
    meta = Meta(vocabularies={kind: tuple(f"{kind}-{i}" for i in range(n)) for kind, n in kinds.items()})
    width = sum(kinds.values())
    schema: dict[str, Any] = {"video": pl.String, "frame": pl.Int64}
    schema |= dict.fromkeys(("x1_px", "y1_px", "x2_px", "y2_px", "score"), pl.Float32)
    schema["scores"] = pl.Array(pl.Float32, width) if width else pl.List(pl.Float32)
    table = pl.DataFrame(parts, schema=schema, orient="row").with_row_index("box").cast({"box": pl.Int64})
    if not width:
        table = table.drop("scores")
    frame_table = pl.DataFrame(moments, schema={"video": pl.String, "frame": pl.Int64}, orient="row")
    extra = {"frames": frame_table} if with_frames else {}
    return Predictions(boxes=table, meta=set_score_layout(meta, "boxes", list(kinds)), **extra)
