"""Small sets of detections written out by hand, and random ones, for the steps after a detector."""

import numpy as np
import polars as pl
from hypothesis import strategies as st

from roadaware.scenes.dense_scores import set_score_layout
from roadaware.scenes.tables import Meta, Predictions

KINDS = {"agent": ("Ped", "Car"), "action": ("Stop",)}
SIDES = ("x1_px", "y1_px", "x2_px", "y2_px")


def predictions(rows, kinds=KINDS, size=None, tubes=None, frame_scores=None):
    """Detections: each row is (video, frame, (x1, y1, x2, y2), agentness, [class scores], tube or None)."""
    width = sum(map(len, kinds.values()))
    boxes = pl.DataFrame(
        [(i, r[0], r[1], *r[2], r[3], r[5] if len(r) > 5 else None) for i, r in enumerate(rows)],
        schema={
            "box": pl.Int64,
            "video": pl.String,
            "frame": pl.Int64,
            **dict.fromkeys(SIDES, pl.Float32),
            "score": pl.Float64,
            "tube": pl.Int64,
        },
        orient="row",
    )
    scores = np.array([r[4] for r in rows], dtype=np.float32).reshape(len(rows), width)
    boxes = boxes.with_columns(pl.Series("scores", scores, dtype=pl.Array(pl.Float32, width)))
    meta = set_score_layout(Meta("predictions", vocabularies=kinds), "boxes", list(kinds))
    tables = {"boxes": boxes}
    videos = list(dict.fromkeys(r[0] for r in rows))
    if size is not None:
        tables["videos"] = pl.DataFrame(
            {"video": videos, "width_px": [size[0]] * len(videos), "height_px": [size[1]] * len(videos)}
        )
    if frame_scores is not None:
        meta = set_score_layout(
            Meta("predictions", vocabularies={**kinds, "av_action": ("Go", "Halt")}, notes=meta.notes),
            "frames",
            ["av_action"],
        )
        tables["frames"] = pl.DataFrame(
            {
                "video": [v for v, _ in frame_scores],
                "frame": [f for _, f in frame_scores],
                "scores": pl.Series(list(frame_scores.values()), dtype=pl.Array(pl.Float32, 2)),
            }
        )
    if tubes is not None:
        tables["tubes"] = tubes
    return Predictions(**tables, meta=meta)


def rows_of(predictions):
    """(video, frame, corners, score) of every box, in order."""
    return [
        (r["video"], r["frame"], tuple(r[s] for s in SIDES), r["score"])
        for r in predictions.boxes.rows(named=True)
    ]


def plain_iou(a, b):
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


corners = st.tuples(*(st.integers(0, 6) for _ in range(4))).map(
    lambda c: (float(c[0]), float(c[1]), float(c[0] + c[2]), float(c[1] + c[3]))
)
share = st.integers(0, 8).map(lambda n: n / 8)
rows = st.lists(
    st.tuples(
        st.sampled_from(["v1", "v2"]),
        st.integers(0, 3),
        corners,
        share,
        st.lists(share, min_size=3, max_size=3),
    ),
    max_size=14,
)
