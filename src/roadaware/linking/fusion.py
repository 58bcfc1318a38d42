"""Weighted boxes fusion: the detections of several detectors as one, each box a mean of those that agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.linking.frame_boxes import (
    STEPS,
    add_step_note,
    assign_frame_numbers,
    extract_frame_boxes,
    list_steps,
)
from roadaware.scenes.advice import get_advice, merge_advice, set_advice
from roadaware.scenes.concatenation import Sizes, compute_scale_factors, get_image_sizes, set_image_sizes
from roadaware.scenes.dense_scores import Layout, convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions


@dataclass(frozen=True)
class FusionConfig:
    """How boxes are fused.

    Args:
        weights: what each detector's scores count (default: 1 each).
        iou: a box joins those whose mean it overlaps by more than this.
        min_score: boxes of less agentness are left out.
    """

    weights: tuple[float, ...] | None = None
    # The default of the authors' package, ensemble_boxes.
    iou: float = 0.55
    min_score: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a number is out of range.
        """
        if not (0 <= self.iou <= 1 and 0 <= self.min_score <= 1):
            raise UsageError(f"iou and min_score lie in [0, 1]; got {self.iou} and {self.min_score}")
        if self.weights is not None and not all(0 < weight < np.inf for weight in self.weights):
            raise UsageError(f"weights are positive numbers; got {self.weights}")


@dataclass(frozen=True)
class _Pool:
    """The boxes of all detectors, one detector after the other.

    Args:
        rows: (n) video and frame.
        model: (n,) which detector.
        corners: (n, 4) in pixels of the first detector's images.
        score: (n,) agentness.
        scores: (n, width) class scores in the first detector's order.
    """

    rows: pl.DataFrame
    model: Ints
    corners: Floats
    score: Floats
    scores: npt.NDArray[np.float32]


def fuse_detections(models: Sequence[Predictions], config: FusionConfig | None = None) -> Predictions:
    """One set of detections out of those of several detectors.

    In each frame boxes are taken by falling weighted agentness (of equals the earlier detector's, then the
    earlier row). A box joins the cluster whose mean so far overlaps it most; the mean weighs corners by
    weight times agentness. A fused score, of agentness as of each class, is

        sum of weight * score over the boxes / number of boxes * min(boxes, detectors) / sum of weights,

    so that what few detectors see counts less; above 1, which unequal weights can bring about, it is 1.
    Frame scores, of the kinds of the first, are the weighted mean over the detectors that score the frame.
    Fused boxes come out by videos in the order of the first set that has them, by frame, and by falling
    agentness.

    Args:
        models: detections with `score`, of the same kinds and labels (in any order); not linked. Boxes are
            scaled to the images of the first, as `videos` states their size.
        config: how.

    Raises:
        UsageError: if there are no models, or weights for another number of them.
        InputError: if kinds, labels or sizes cannot be brought together.

    Source: Solovyev, Wang, Gabruseva, "Weighted boxes fusion", Image and Vision Computing 2021, section 3.
    """
    config = config or FusionConfig()
    if not models:
        raise UsageError("fusion needs the detections of at least one detector")
    weights = np.array(config.weights or np.ones(len(models)), dtype=np.float64)
    if len(weights) != len(models):
        raise UsageError(f"{len(weights)} weights for {len(models)} detectors")
    columns = get_score_layout(models[0].meta, "boxes")
    names = list(dict.fromkeys(name for model in models for name in _list_videos(model)))
    sizes = {name: size for model in reversed(models) for name, size in get_image_sizes(model).items()}
    pool = _pool(models, columns, sizes, names, config)
    boxes = _boxes(pool, weights, config, columns.width)
    frames = _frames(models, weights, names)
    advice = merge_advice([get_advice(model.meta) for model in models])
    meta = set_advice(models[0].meta, advice)
    before = [step for model in models for step in list_steps(model)]
    meta = replace(meta, notes={**meta.notes, STEPS: before})
    meta = add_step_note(meta, "fused", config, models=len(models), boxes=len(pool.rows), fused=len(boxes))
    # The videos of all detectors, each as the first that lists it does, with the common size.
    listed = [model.videos.with_columns(pl.col("video").cast(pl.String)) for model in models]
    videos = pl.concat(listed, how="diagonal_relaxed").unique("video", keep="first", maintain_order=True)
    return Predictions(
        videos=set_image_sizes(videos, sizes) if sizes else videos, frames=frames, boxes=boxes, meta=meta
    )


def _boxes(pool: _Pool, weights: Floats, config: FusionConfig, width: int) -> pl.DataFrame:
    """The fused boxes in their order."""
    from roadaware.linking.kernels import cluster_boxes

    group = assign_frame_numbers(pool.rows)
    weighted = pool.score * weights[pool.model]
    order = np.lexsort((-weighted, group))
    cluster, corners = cluster_boxes(pool.corners, weighted, order, group, config.iou)
    members = order[np.argsort(cluster, kind="stable")]
    count = np.bincount(cluster, minlength=len(corners))
    first = np.cumsum(count) - count
    # As published: the mean score, lowered by the share of detectors that found nothing there; several boxes
    # of one detector do not make up for another.
    share = np.minimum(count, len(weights)) / (count * weights.sum())
    each = weights[pool.model[members]]
    # Several boxes of a detector with a large weight may add up to more than 1.
    score = np.minimum(_sums(pool.score[members] * each, first) * share, 1.0)
    dense = _sums(pool.scores[members] * each[:, None], first) * share[:, None]
    rows = pool.rows[members[first]]
    ranked = np.lexsort((-score, rows["frame"].to_numpy(), rows["video"].to_physical().to_numpy()))
    boxes: pl.DataFrame = rows[ranked].with_columns(pl.col("video").cast(pl.String))
    made = [pl.Series(side, corners[ranked, k]) for k, side in enumerate(CORNERS)]
    made.append(pl.Series("score", score[ranked]))
    if width:
        values = np.minimum(dense[ranked], 1.0).astype(np.float32)
        made.append(pl.Series("scores", values, dtype=pl.Array(pl.Float32, width)))
    return boxes.with_columns(pl.int_range(pl.len()).alias("box"), *made)


def _sums(values: Floats, first: Ints) -> Floats:
    """Sums of consecutive rows, each beginning at `first`."""
    sums: Floats = np.add.reduceat(values, first, axis=0) if len(first) else values[:0]
    return sums


def _pool(
    models: Sequence[Predictions], columns: Layout, sizes: Sizes, names: list[str], config: FusionConfig
) -> _Pool:
    """The boxes of all detectors that are strong enough."""
    rows, number, corners, score, scores = [], [], [], [], []
    for index, model in enumerate(models):
        flat = extract_frame_boxes(model)
        kept = np.flatnonzero(flat.score >= config.min_score)
        boxes = model.boxes[kept]
        table = boxes.select(pl.col("video").cast(pl.String), "frame")
        # (n, 4) what corners are multiplied with to be pixels of the common images.
        videos = table["video"]
        own = get_image_sizes(model)
        silent = [
            name for name in videos.unique(maintain_order=True).to_list() if name in sizes and name not in own
        ]
        if silent:
            raise InputError(
                f"one detector says how large its images of {silent[:5]} are and another does not",
                hint="give all sets of detections a table `videos` with width_px and height_px, or none",
            )
        scale = compute_scale_factors(videos, own, sizes)
        rows.append(table.with_columns(pl.col("video").cast(pl.Enum(names))))
        number.append(np.full(len(kept), index, dtype=np.int64))
        corners.append(flat.corners[kept] * scale)
        score.append(flat.score[kept])
        scores.append(_dense(boxes, model, columns, "boxes"))
    return _Pool(
        pl.concat(rows),
        np.concatenate(number),
        np.concatenate(corners),
        np.concatenate(score),
        np.concatenate(scores),
    )


def _list_videos(model: Predictions) -> list[str]:
    """The videos of a set, those of the table first."""
    listed = [model.videos, model.frames.select("video"), model.boxes.select("video")]
    return [name for table in listed for name in table["video"].cast(pl.String).unique(maintain_order=True)]


def _frames(models: Sequence[Predictions], weights: Floats, names: list[str]) -> pl.DataFrame:
    """The frames of all detectors, with the weighted mean of their dense scores."""
    columns = get_score_layout(models[0].meta, "frames")
    tables = [model.frames.with_columns(pl.col("video").cast(pl.Enum(names))) for model in models]
    bare = [table.drop("scores", strict=False) for table in tables]
    frames = pl.concat(bare, how="diagonal_relaxed").unique(["video", "frame"], keep="first")
    frames = frames.sort("video", "frame").with_columns(pl.col("video").cast(pl.String))
    scored = [
        (table, model, weight)
        for table, model, weight in zip(tables, models, weights, strict=True)
        if "scores" in table.columns and len(table)
    ]
    if not scored or not columns.width:
        return frames
    rows = pl.concat([table.select("video", "frame") for table, _, _ in scored])
    each = np.concatenate([np.full(len(table), weight) for table, _, weight in scored])
    values = np.concatenate([_dense(table, model, columns, "frames") for table, model, _ in scored])
    order = np.lexsort((rows["frame"].to_numpy(), rows["video"].to_physical().to_numpy()))
    group = assign_frame_numbers(rows)[order]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    mean = _sums(values[order] * each[order, None], first) / _sums(each[order], first)[:, None]
    scores = pl.Series("scores", mean.astype(np.float32), dtype=pl.Array(pl.Float32, columns.width))
    found = rows[order[first]].with_columns(scores, pl.col("video").cast(pl.String))
    return frames.join(found, on=["video", "frame"], how="left", maintain_order="left")


def _dense(rows: pl.DataFrame, model: Predictions, columns: Layout, table: str) -> npt.NDArray[np.float32]:
    """(n, width) dense scores of some rows, in the order of another layout."""
    own = get_score_layout(model.meta, table)
    if {kind: set(labels) for kind, labels in own.kinds.items()} != {
        kind: set(labels) for kind, labels in columns.kinds.items()
    }:
        raise InputError(
            f"the detectors do not score the same labels: {dict(columns.kinds)} and {dict(own.kinds)}"
        )
    if not columns.width:
        return np.zeros((len(rows), 0), dtype=np.float32)
    if "scores" not in rows.columns:
        raise InputError(f"the {table} have no dense scores, though meta names their kinds")
    place = {kind: own.columns(kind).start for kind in own.kinds}
    taken = [place[k] + own.kinds[k].index(label) for k, labels in columns.kinds.items() for label in labels]
    return convert_to_matrix(rows["scores"], own.width)[:, taken]
