"""Predictions: proposals of many images as Predictions, one box each; beside them, what was dropped at which step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import polars as pl

from roadaware.corner_cases.copg import DROPS, FEW, KEPT, REASONS, Proposals, select_cluster_values
from roadaware.formats.cuboid_labels import CUBOID
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions

Stage = Literal["initial", "intermediate", "final"]
SCHEMA: dict[str, pl.DataType] = {
    "video": pl.String(),
    "frame": pl.Int64(),
    "x1_px": pl.Float32(),
    "y1_px": pl.Float32(),
    "x2_px": pl.Float32(),
    "y2_px": pl.Float32(),
    "score": pl.Float64(),
    "distance_m": pl.Float32(),
    "n_returns": pl.Int64(),
    "background_share": pl.Float32(),
    "common_iou": pl.Float32(),
    **{name: pl.Float32() for name in CUBOID},
}
"""Columns of `build_proposal_rows`; those in space are of the LiDAR's frame, as ONCE has them."""


UNSEEN = "not in the image"
_, BACKGROUND, COMMON, COPY, BEYOND = DROPS
"""Steps that drop a cluster after its limits, which are named in `copg.REASONS`."""
DROPPED_SCHEMA: dict[str, pl.DataType] = {
    "video": pl.String(),
    "frame": pl.Int64(),
    "cluster": pl.Int64(),
    "step": pl.String(),
    "n_returns": pl.Int64(),
    **{name: pl.Float32() for name in ("distance_m", "width_m", "height_m", *CORNERS)},
    "background_share": pl.Float32(),
    "common_iou": pl.Float32(),
    "hypothesis": pl.Int64(),
}
"""Columns of `build_dropped_rows`; tables of versions up to 0.9 have no `hypothesis`."""


def build_proposal_rows(proposals: Proposals, video: str, frame: int, stage: Stage = "final") -> pl.DataFrame:
    """Rows of the `boxes` table without their numbers, the highest score first.

    Besides the box: the distance to its nearest return, how many returns it is made of, which share of it is
    background and how much it overlaps a common object (null where that was not asked), and its cuboid in the LiDAR's
    frame, around what was seen.
    """
    places = np.flatnonzero(getattr(proposals, stage))
    # Stable: of equal scores the cluster that was found first.
    places = places[np.argsort(-proposals.scores[places], kind="stable")]
    geometry, boxes, cuboids = proposals.geometry, proposals.boxes, proposals.cuboids
    edges = boxes.edges[places]
    if cuboids is None:
        solid = np.full((len(places), len(CUBOID)), np.nan)
    else:
        solid = np.column_stack([cuboids.centres, cuboids.sizes, cuboids.yaw])[places]
    columns = {
        "video": [video] * len(places),
        "frame": np.full(len(places), frame, dtype=np.int64),
        **{name: edges[:, k] for k, name in enumerate(("x1_px", "y1_px", "x2_px", "y2_px"))},
        "score": proposals.scores[places],
        "distance_m": select_cluster_values(geometry, boxes, "nearest_m")[places],
        "n_returns": select_cluster_values(geometry, boxes, "counts")[places],
        "background_share": _or_null(proposals.background, places),
        "common_iou": _or_null(proposals.overlap, places),
        **dict(zip(CUBOID, solid.T, strict=True)),
    }
    found = pl.DataFrame(columns, strict=False, schema_overrides=SCHEMA).cast(pl.Schema(SCHEMA))
    return found.with_columns(pl.col(*CUBOID).fill_nan(None))


def build_dropped_rows(proposals: Proposals, video: str, frame: int) -> pl.DataFrame:
    """One row for each cluster that is no final proposal: the step that dropped it, and what that step looked at.

    Clusters of fewer returns than the least are left out: most are leaves and noise. Width and height are along and
    above the ground, null where it is not known; corners are null of what had no box yet. `hypothesis` is the way to
    cluster: 0 the angle, 1 the first reach and so on.
    """
    parts = [
        _build_dropped_rows(proposals, video, frame, n) for n in range(len(proposals.geometry.hypotheses))
    ]
    return pl.concat(parts)


def _build_dropped_rows(proposals: Proposals, video: str, frame: int, hypothesis: int) -> pl.DataFrame:
    """The rows of one way to cluster."""
    geometry, boxes = proposals.geometry.hypotheses[hypothesis], proposals.boxes
    clusters, limited = geometry.clusters, geometry.limited
    own = np.flatnonzero(boxes.hypothesis == hypothesis)
    place = np.full(len(clusters), -1, dtype=np.int64)
    place[boxes.cluster[own] - 1] = own
    seen, final = place >= 0, np.zeros(len(clusters), np.bool_)
    final[seen] = proposals.final[place[seen]]
    step = np.array(REASONS, dtype=object)[limited]
    step[(limited == KEPT) & ~seen] = UNSEEN
    if proposals.dropped is not None:
        step[seen] = np.array(DROPS, dtype=object)[proposals.dropped[place[seen]]]
    rows = np.flatnonzero((limited != FEW) & ~final)
    at = place[rows]
    edges = np.full((len(rows), 4), np.nan)
    edges[at >= 0] = boxes.edges[at[at >= 0]]
    shares = {
        name: np.full(len(rows), np.nan)
        if values is None
        else np.where(at >= 0, np.append(values, np.nan)[at], np.nan)
        for name, values in (("background_share", proposals.background), ("common_iou", proposals.overlap))
    }
    columns = {
        "video": [video] * len(rows),
        "frame": np.full(len(rows), frame, dtype=np.int64),
        "cluster": rows + 1,
        "step": step[rows].tolist(),
        "n_returns": clusters.counts[rows],
        "distance_m": clusters.nearest_m[rows],
        "width_m": clusters.width_m[rows],
        "height_m": clusters.head_m[rows],
        **{name: edges[:, k] for k, name in enumerate(CORNERS)},
        **shares,
        "hypothesis": np.full(len(rows), hypothesis, dtype=np.int64),
    }
    found = pl.DataFrame(columns, strict=False, schema_overrides=DROPPED_SCHEMA).cast(
        pl.Schema(DROPPED_SCHEMA)
    )
    return found.with_columns(pl.col(pl.Float32).fill_nan(None))


def merge_proposal_rows(rows: Iterable[pl.DataFrame], meta: Meta | None = None) -> Predictions:
    """Predictions of the rows of many images, numbered in their order; each predicts a corner case.

    Args:
        rows: what `build_proposal_rows` gave, image by image.
        meta: what holds for all of them.
    """
    held = [each for each in rows if len(each)]
    # Diagonally: parts of versions up to 0.9 have no cuboids.
    boxes = pl.concat(held, how="diagonal") if held else pl.DataFrame(schema=SCHEMA)
    boxes = boxes.with_columns(corner_case=pl.lit(value=True)).with_row_index("box")
    return Predictions(boxes=boxes.cast({"box": pl.Int64}), meta=meta or Meta())


def _or_null(values: np.ndarray | None, places: np.ndarray) -> list[float | None] | np.ndarray:
    return [None] * len(places) if values is None else values[places]
