"""Predictions: proposals of many images as Predictions, one box each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np
import polars as pl

from roadaware.corner_cases.copg import Proposals
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
}
"""Columns of `build_proposal_rows`."""


def build_proposal_rows(proposals: Proposals, video: str, frame: int, stage: Stage = "final") -> pl.DataFrame:
    """Rows of the `boxes` table without their numbers, the highest score first.

    Besides the box: the distance to its nearest return, how many returns it is made of, which share of it is
    background and how much it overlaps a common object (null where that was not asked).

    Args:
        proposals: of one image.
        video: the image's.
        frame: the image's.
        stage: after which step.
    """
    held = {"initial": np.ones(len(proposals.boxes), dtype=np.bool_)}.get(stage)
    kept = held if held is not None else getattr(proposals, stage)
    places = np.flatnonzero(kept)
    # Stable: of equal scores the cluster that was found first.
    places = places[np.argsort(-proposals.scores[places], kind="stable")]
    clusters, number = proposals.geometry.clusters, proposals.boxes.cluster[places] - 1
    edges = proposals.boxes.edges[places]
    columns = {
        "video": [video] * len(places),
        "frame": np.full(len(places), frame, dtype=np.int64),
        **{name: edges[:, k] for k, name in enumerate(("x1_px", "y1_px", "x2_px", "y2_px"))},
        "score": proposals.scores[places],
        "distance_m": clusters.nearest_m[number],
        "n_returns": clusters.counts[number],
        "background_share": _or_null(proposals.background, places),
        "common_iou": _or_null(proposals.overlap, places),
    }
    return pl.DataFrame(columns, strict=False, schema_overrides=SCHEMA).cast(pl.Schema(SCHEMA))


def merge_proposal_rows(rows: Iterable[pl.DataFrame], meta: Meta | None = None) -> Predictions:
    """Predictions of the rows of many images, numbered in their order; each predicts a corner case.

    Args:
        rows: what `build_proposal_rows` gave, image by image.
        meta: what holds for all of them.
    """
    held = [each for each in rows if len(each)]
    boxes = pl.concat(held) if held else pl.DataFrame(schema=SCHEMA)
    boxes = boxes.with_columns(corner_case=pl.lit(value=True)).with_row_index("box")
    return Predictions(boxes=boxes.cast({"box": pl.Int64}), meta=meta or Meta())


def _or_null(values: np.ndarray | None, places: np.ndarray) -> list[float | None] | np.ndarray:
    return [None] * len(places) if values is None else values[places]
