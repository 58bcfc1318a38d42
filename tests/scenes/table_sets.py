"""Sets of tables for tests: one made by hand, and a strategy for all kinds of them."""

import numpy as np
import polars as pl
from hypothesis import strategies as st

from roadaware.scenes.tables import Meta, Predictions, Scenes

LOOK = pl.Enum(["not-looking", "looking"])


def small_scenes(tag="a", n_boxes=6, **changes):
    """Two videos, two tubes, boxes in runs; `tag` makes the content differ and the keys stay."""
    n = np.arange(n_boxes)
    tables = {
        "videos": pl.DataFrame(
            {
                "video": ["v1", "v2"],
                "n_frames": [500_000, 500_000],
                "splits": [["s/train"], ["s/test", "s/x"]],
            }
        ),
        "tubes": pl.DataFrame({"tube": [0, 1], "video": ["v1", "v2"], "name": [f"{tag}-0", f"{tag}-1"]}),
        "boxes": pl.DataFrame(
            {
                "box": n,
                "video": np.where(n < n_boxes // 2, "v1", "v2"),
                "frame": n,
                "tube": (n >= n_boxes // 2).astype(int),
                "x1_px": n + 0.25,
                "y1_px": n * 0.5,
                "x2_px": n + 10.0 + len(tag),
                "y2_px": n + 20.0,
            }
        ).with_columns(look=pl.Series(["looking", None, "not-looking"] * n_boxes, dtype=LOOK).head(n_boxes)),
        "meta": Meta(dataset=f"small {tag}", vocabularies={"colour": ("red", "green")}),
    }
    return Scenes(**{**tables, **changes})


def small_predictions(tag="a", n=6):
    scores = np.linspace(0, 1, n * 2).reshape(n, 2)
    column = pl.Series("scores", scores, dtype=pl.Array(pl.Float32, 2))
    return Predictions(
        samples=pl.DataFrame({"sample": np.arange(n)}).with_columns(column), meta=Meta(dataset=f"small {tag}")
    )


@st.composite
def scenes_sets(draw, min_videos=0):
    """Scenes with every table that `only` and `concat` treat in their own way, ordered by video."""
    names = draw(st.lists(st.text(min_size=1, max_size=3), min_size=min_videos, max_size=4, unique=True))
    drives = [draw(st.sampled_from([None, "d1", "d2"])) for _ in names]
    tubes = [(video, draw(st.integers(0, 3))) for video in names for _ in range(draw(st.integers(0, 2)))]
    owners = [(t, video) for t, (video, n) in enumerate(tubes) for _ in range(n)]
    untracked = [(None, names[0])] * draw(st.integers(0, 2)) if names else []
    owners = sorted(owners + untracked, key=lambda owner: names.index(owner[1]))
    n = len(owners)
    text = draw(st.sampled_from([pl.String, pl.Categorical, LOOK]))
    values = st.sampled_from([None, "looking", "not-looking"])
    look = pl.Series("look", [draw(values) for _ in range(n)], dtype=text)
    video = pl.Series(
        "video", [video for _, video in owners], dtype=draw(st.sampled_from([pl.String, pl.Enum(names)]))
    )
    label = st.integers(0, 1)
    boxes = pl.DataFrame(
        {
            "box": pl.Series(range(n), dtype=pl.Int64),
            "video": video,
            "frame": pl.Series([draw(st.integers(0, 9)) for _ in owners], dtype=pl.Int64),
            "tube": pl.Series([t for t, _ in owners], dtype=pl.Int64),
            **{c: pl.Series([1.5] * n, dtype=pl.Float32) for c in ("x1_px", "y1_px", "x2_px", "y2_px")},
            "look": look,
        }
    )
    labels = [(b, "colour", draw(label)) for b in range(n) if draw(st.booleans())]
    samples = [(t, video, t, draw(label)) for t, (video, _) in enumerate(tubes)]
    drive = sorted({d for d in drives if d})
    whole = {
        "videos": pl.DataFrame(
            {"video": names, "scene": drives}, schema={"video": pl.String, "scene": pl.String}
        ),
        "frames": pl.DataFrame(
            [(video, f, draw(st.sampled_from([None, True, False]))) for video in names for f in range(2)],
            schema={"video": pl.String, "frame": pl.Int64, "annotated": pl.Boolean},
            orient="row",
        ),
        "boxes": boxes,
        "labels": pl.DataFrame(labels, {"box": pl.Int64, "kind": pl.String, "label": pl.Int64}, orient="row"),
        "tubes": pl.DataFrame(
            [(t, video) for t, (video, _) in enumerate(tubes)],
            {"tube": pl.Int64, "video": pl.String},
            orient="row",
        ),
        "samples": pl.DataFrame(
            [(*sample, "colour") for sample in samples],
            {"sample": pl.Int64, "video": pl.String, "tube": pl.Int64, "label": pl.Int64, "kind": pl.String},
            orient="row",
        ),
        "sensors": pl.DataFrame(
            [(d, "front", 0, [1.0, 2.0]) for d in drive],
            {
                "scene": pl.String,
                "sensor": pl.String,
                "from_frame": pl.Int64,
                "intrinsics": pl.List(pl.Float32),
            },
            orient="row",
        ),
        "rejected": pl.DataFrame(
            [("boxes", "f.xml", "no frame")] * draw(st.integers(0, 2)),
            {"table": pl.String, "file": pl.String, "reason": pl.String},
            orient="row",
        ),
        "meta": Meta(
            dataset=draw(st.text(max_size=3)),
            vocabularies={"colour": ("red", "green")},
            source_digest="d",
            rows_read={"boxes": n},
            notes={"protocol": draw(st.sampled_from([None, 1.5, ["a", {"b": True}]]))},
        ),
    }
    return Scenes(**whole)
