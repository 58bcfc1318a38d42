"""Steps on saved tables beside the linker: suppression, fusion of several detectors, gaps filled, short tubes dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.kernels import cluster_boxes, suppress, suppress_tubes
from roadaware.linking.paths import Detections, Paths, Segments
from roadaware.scenes.advice import get_advice, merge_advice, set_advice
from roadaware.scenes.concatenation import Sizes, compute_scale_factors, get_image_sizes, set_image_sizes
from roadaware.scenes.dense_scores import Layout, convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions

STEPS = "after_detector"


@dataclass(frozen=True)
class FrameBoxes:
    """All boxes of a set of detections, in the row order of the table.

    Args:
        group: (n,) the frame each box is in, numbered in the order in which frames first appear.
        corners: (n, 4) x1, y1, x2, y2 in pixels.
        score: (n,) agentness.
    """

    group: Ints
    corners: Floats
    score: Floats


def extract_frame_boxes(predictions: Predictions) -> FrameBoxes:
    """The detections of a set that is not linked yet.

    Raises:
        InputError: if there are tubes already, or a box has no score.
    """
    boxes = predictions.boxes
    linked = "tube" in boxes.columns and boxes["tube"].null_count() < len(boxes)
    if linked or not predictions.tubes.is_empty():
        raise InputError(
            "the detections are linked to tubes already, and taking boxes away would break them",
            hint="do this before linking",
        )
    if boxes.is_empty() and "score" not in boxes.columns:
        # A detector that found nothing leaves a table without columns that may lack.
        boxes = boxes.with_columns(pl.Series("score", [], pl.Float32))
    if "score" not in boxes.columns or boxes["score"].null_count():
        raise InputError("every box needs its agentness in boxes.score")
    corners = np.stack([boxes[side].to_numpy() for side in CORNERS], axis=1).astype(np.float64)
    group = assign_frame_numbers(boxes.select(pl.col("video").cast(pl.String), "frame"))
    return FrameBoxes(group, np.ascontiguousarray(corners), boxes["score"].to_numpy().astype(np.float64))


def assign_frame_numbers(rows: pl.DataFrame) -> Ints:
    """A number for each (video, frame), in the order of first appearance.

    Args:
        rows: (n) with video and frame.
    """
    first = rows.with_row_index("row").select(pl.col("row").min().over("video", "frame")).to_series()
    return np.unique(first.to_numpy(), return_inverse=True)[1].astype(np.int64)


def replace_boxes(predictions: Predictions, boxes: pl.DataFrame, meta: Meta) -> Predictions:
    """The predictions with other boxes; labels of boxes that are gone go with them."""
    labels = predictions.labels
    if not labels.is_empty():
        labels = labels.filter(pl.col("box").is_in(boxes["box"].implode()))
    return predictions.with_tables(boxes=boxes, labels=labels, meta=meta)


def add_step_note(meta: Meta, step: str, config: Any, **counts: int) -> Meta:
    """The meta with one more step recorded in `notes["after_detector"]`."""
    done = [*meta.notes.get(STEPS, []), {"step": step, "config": to_dict(config), **counts}]
    return replace(meta, notes={**meta.notes, STEPS: done})


def list_steps(tables: Predictions) -> list[dict[str, Any]]:
    """What was done to detections and paths, in order: each step with its settings and counts."""
    return list(tables.meta.notes.get(STEPS, []))


_SPANS = pl.List(pl.List(pl.Int64))


@dataclass(frozen=True)
class InterpolationConfig:
    """Which gaps are interpolated, and the minimum length of a tube.

    Args:
        max_gap: the longest run of missed frames that is filled; None for any.
        min_length: boxes that a path needs, filled ones included, and frames that a labelled tube needs.
    """

    max_gap: int | None = None
    min_length: int = 1

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a number is out of range.
        """
        if self.max_gap is not None and self.max_gap < 0:
            raise UsageError(f"max_gap is a number of frames from 0 on, or None; got {self.max_gap}")
        if self.min_length < 1:
            raise UsageError(f"min_length is a number of boxes from 1 on; got {self.min_length}")


def interpolate_tubes(predictions: Predictions, config: InterpolationConfig | None = None) -> Predictions:
    """The predictions with boxes put into the gaps of paths, and without short paths and tubes.

    Corners, agentness and class scores run linearly from the detection before a gap to the one after it.
    New boxes stand behind the others, by path and frame, with `interpolated` true. Spans of labelled tubes on
    both sides of a filled gap become one. Detections of a path that is taken away stay, without tube.

    Args:
        predictions: linked, with one box per path and frame.
        config: how.

    Raises:
        InputError: if tubes are assigned to consecutive frames whatever frames their boxes were found in,
            or a path has two boxes in a frame.

    Source: gap filling and minimum length of the released tube builder of 3D-RetinaNet, which throws its
    result away, and of the winners of the ROAD challenge.
    """
    config = config or InterpolationConfig()
    tubes = predictions.tubes
    if "consecutive" in tubes.columns and tubes["consecutive"].any():
        raise InputError(
            "the tubes are predicted for consecutive frames, so no frame of theirs is missing",
            hint="link with the gaps kept, as LinkerConfig.default does or with gaps='keep'",
        )
    filled, gaps = _fill_gaps(predictions.boxes, config)
    tubes = _merge_spans(tubes, gaps)
    # The numbers of tubes that are too short, and of those cut from them.
    lengths = filled.filter(pl.col("tube").is_not_null()).group_by("tube").len("length")
    table = tubes.join(lengths, on="tube", how="left", maintain_order="left")
    own = pl.col("length") < config.min_length
    if not {"parent", "spans"} <= set(tubes.columns):
        short = table.filter(own.fill_null(value=False))["tube"]
    else:
        covered = pl.col("spans").list.eval(pl.element().list.get(1) - pl.element().list.get(0)).list.sum()
        cut = pl.col("parent").is_not_null() & (covered < config.min_length)
        gone = table.filter(own)["tube"]
        orphaned = pl.col("parent").is_in(gone.implode())
        short = table.filter(pl.any_horizontal(own, cut, orphaned))["tube"]
    kept = tubes.filter(~pl.col("tube").is_in(short.implode()))
    boxes = _drop_short_tubes(filled, short)
    made = len(boxes) - len(predictions.boxes)
    meta = add_step_note(
        predictions.meta, "interpolated", config, boxes_made=made, tubes=len(tubes), tubes_kept=len(kept)
    )
    labels = predictions.tube_labels.filter(~pl.col("tube").is_in(short.implode()))
    bare = predictions.with_tables(boxes=boxes.with_columns(tube=pl.lit(None, pl.Int64)), tubes=tubes.clear())
    whole = replace_boxes(bare, boxes, meta)
    return whole.with_tables(tubes=kept, tube_labels=labels)


def _fill_gaps(boxes: pl.DataFrame, config: InterpolationConfig) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The boxes with those of the gaps behind them, and the gaps: tube, low and high (half open)."""
    if "tube" not in boxes.columns:
        boxes = boxes.with_columns(tube=pl.lit(None, pl.Int64))
    boxes = boxes.with_columns(
        pl.col("interpolated").fill_null(value=False)
        if "interpolated" in boxes.columns
        else pl.lit(value=False).alias("interpolated")
    )
    owned = boxes.with_row_index("row").filter(pl.col("tube").is_not_null()).sort("tube", "frame")
    tube, frame, row = (owned[c].to_numpy().astype(np.int64) for c in ("tube", "frame", "row"))
    same = tube[1:] == tube[:-1]
    missed = np.diff(frame) - 1
    if (same & (missed < 0)).any():
        at = int(np.flatnonzero(same & (missed < 0))[0])
        raise InputError(f"tube {tube[at]} has two boxes in frame {frame[at]}")
    longest = missed.max(initial=0) if config.max_gap is None else config.max_gap
    before = np.flatnonzero(same & (missed > 0) & (missed <= longest))
    count = missed[before]
    gaps = pl.DataFrame({"tube": tube[before], "low": frame[before] + 1, "high": frame[before + 1]})
    step = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + 1
    # A gap of m frames has m + 1 steps from the detection before it to the one behind.
    share = step / np.repeat(count + 1, count)
    left, right = np.repeat(row[before], count), np.repeat(row[before + 1], count)
    # New boxes on the way from one detection to another.
    old, new = boxes[left], boxes[right]
    largest: Any = boxes["box"].max()
    # Behind the largest number, so that no label points to a new box.
    first = 0 if largest is None else int(largest) + 1
    made = old.select("video", "tube").with_columns(
        pl.Series("box", np.arange(first, first + len(left))),
        pl.Series("frame", old["frame"].to_numpy() + step),
        interpolated=pl.lit(value=True),
    )
    numbers = [*CORNERS, *(["score"] if "score" in boxes.columns else [])]
    for name in numbers:
        a, b = old[name].to_numpy().astype(np.float64), new[name].to_numpy().astype(np.float64)
        made = made.with_columns(pl.Series(name, a + (b - a) * share, dtype=boxes.schema[name]))
    if "scores" in boxes.columns and len(left):
        made = made.with_columns(_dense(old["scores"], new["scores"], share))
    return pl.concat([boxes, made], how="diagonal_relaxed"), gaps


def _dense(old: pl.Series, new: pl.Series, share: Any) -> pl.Series:
    """Rows of class scores on the way from one to another."""
    width = len(old[0])
    a, b = (convert_to_matrix(each, width).astype(np.float64) for each in (old, new))
    values = (a + (b - a) * np.asarray(share)[:, None]).astype(np.float32)
    return pl.Series("scores", values, dtype=pl.Array(pl.Float32, width)).cast(old.dtype)


def _merge_spans(tubes: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """The tubes with spans joined over filled gaps."""
    if "spans" not in tubes.columns or gaps.is_empty() or not tubes["spans"].list.len().sum():
        return tubes
    owner = pl.coalesce("parent", "tube") if "parent" in tubes.columns else pl.col("tube")
    pieces = (
        tubes.filter(pl.col("spans").list.len() > 0)
        .select("tube", owner=owner, span="spans")
        .explode("span")
        .with_columns(low=pl.col("span").list.get(0), high=pl.col("span").list.get(1))
        .with_columns(before=pl.col("high").shift(1).over("tube"))
    )
    known = gaps.select(owner="tube", before="low", low="high", bridged=pl.lit(value=True))
    # Half open: the gap between two spans begins at the end of one and ends at the start of the next.
    pieces = pieces.join(known, on=["owner", "before", "low"], how="left", maintain_order="left")
    run = pl.col("bridged").is_null().cum_sum()
    joined = pieces.group_by("tube", run=run, maintain_order=True).agg(
        pl.col("low").first(), pl.col("high").last()
    )
    spans = joined.group_by("tube", maintain_order=True).agg(spans=pl.concat_list("low", "high"))
    fresh = tubes.select("tube").join(spans, on="tube", how="left", maintain_order="left")["spans"]
    return tubes.with_columns(fresh.cast(_SPANS).fill_null(tubes["spans"]))


def _drop_short_tubes(boxes: pl.DataFrame, short: pl.Series) -> pl.DataFrame:
    """The boxes without those interpolated for short tubes; their detections belong to none."""
    gone = pl.col("tube").is_in(short.implode()).fill_null(value=False)
    kept = boxes.filter(~(gone & pl.col("interpolated")))
    return kept.with_columns(tube=pl.when(~gone).then("tube"))


@dataclass(frozen=True)
class NmsConfig:
    """Options of non-maximum suppression; the defaults are those that the detections of the published detector are made with.

    Args:
        by: `agentness`, boxes that overlap a box of more agentness are taken away; `class`, a box stays and
            its score of a class becomes 0 where it overlaps a box with more of it.
        iou: the greatest overlap that is borne.
        min_score: scores must be above this: boxes of less agentness are taken away, class scores below
            it are left as they are and suppress nothing.
        top: boxes that a frame keeps, those of most agentness; None for all.
        kinds: whose classes are suppressed (default: all but agentness).
    """

    by: Literal["agentness", "class"] = "agentness"
    iou: float = 0.5
    min_score: float = 0.025
    top: int | None = 100
    kinds: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a choice is unknown or a number is out of range.
        """
        if self.by not in ("agentness", "class"):
            raise UsageError(f"suppression goes by agentness or by class, not by {self.by!r}")
        if not (0 <= self.iou <= 1 and 0 <= self.min_score <= 1):
            raise UsageError(f"iou and min_score lie in [0, 1]; got {self.iou} and {self.min_score}")
        if self.top is not None and self.top < 1:
            raise UsageError(f"top is a number of boxes from 1 on, or None; got {self.top}")


def suppress_overlaps(predictions: Predictions, config: NmsConfig | None = None) -> Predictions:
    """The detections without those that a better one of the same frame overlaps.

    Of equal scores the earlier row is the better one. By agentness the boxes of a frame come out by falling
    agentness, as the linker and the published files have them, frames in the order in which they first
    appear; by class their order is kept.

    Args:
        predictions: detections with `score`, and for suppression by class dense `scores`; not linked.
        config: how.

    Raises:
        InputError: if the detections are linked already or have no scores.

    Source: the ROAD paper, section 4.1; the released detector keeps agentness above 0.025, suppresses at an
    IoU of 0.5, and writes the best 100.
    """
    config = config or NmsConfig()
    flat = extract_frame_boxes(predictions)
    before = len(predictions.boxes)
    if config.by == "class":
        # The boxes with suppressed class scores set to 0, and how many were.
        columns = get_score_layout(predictions.meta, "boxes")
        kinds = config.kinds or tuple(kind for kind in columns.kinds if kind != "agentness")
        boxes = predictions.boxes
        if "scores" not in boxes.columns or not columns.width:
            raise UsageError("suppression by class needs dense class scores; these detections have none")
        scores = convert_to_matrix(boxes["scores"], columns.width)
        result = scores.copy()
        for column in [index for kind in kinds for index in range(columns.width)[columns.columns(kind)]]:
            # On the original scores: what one class suppresses does not change another's order.
            values = scores[:, column].astype(np.float64)
            looked_at = values > config.min_score
            looked_at[_greedy(flat, values, config)] = False
            result[looked_at, column] = 0.0
        made = pl.Series("scores", result, dtype=pl.Array(pl.Float32, columns.width))
        boxes, zeroed = boxes.with_columns(made), int((result != scores).sum())
        meta = add_step_note(predictions.meta, "suppressed", config, boxes=before, scores_zeroed=zeroed)
        return predictions.with_tables(boxes=boxes, meta=meta)
    boxes = predictions.boxes[_by_agentness(flat, config)]
    meta = add_step_note(predictions.meta, "suppressed", config, boxes=before, kept=len(boxes))
    return replace_boxes(predictions, boxes, meta)


def _by_agentness(flat: FrameBoxes, config: NmsConfig) -> Ints:
    """Rows that stay, frame by frame, the best first."""
    kept = _greedy(flat, flat.score, config)
    if config.top is None:
        return kept
    group = flat.group[kept]
    # Frames lie side by side: the place of a number's first occurrence is where its frame begins.
    begins = np.searchsorted(group, group)
    return kept[np.arange(len(kept)) - begins < config.top]


def _greedy(flat: FrameBoxes, score: Floats, config: NmsConfig) -> Ints:
    """Rows that stay when `score` decides, frame by frame, the best first."""
    rows = np.flatnonzero(score > config.min_score)
    order = rows[np.lexsort((-score[rows], flat.group[rows]))]
    return order[suppress(flat.corners, order, flat.group, config.iou)]


# Tube suppression: of tubes with the same label, those that overlap a better one are dropped.


def suppress_overlapping_tubes(
    found: Segments, paths: Paths, detections: Detections, config: LinkerConfig
) -> Segments:
    """The tubes of one kind that stay, in their order; of equal scores the later tube is the better one.

    Overlap is the mean IoU over the shared frames times the temporal IoU.

    Args:
        found: labelled tubes.
        paths: theirs.
        detections: theirs.
        config: `tube_nms`, `tube_nms_pixel_offset`, `gaps`.

    Source: written in the released code of 3D-RetinaNet (with 0.6) and switched off there.
    """
    if config.tube_nms is None or not len(found):
        return found

    frames = detections.frame[paths.rows]
    if config.gaps == "squeeze":
        # Squeezed tubes meet in the frames that they are assigned to, not in those where they were found.
        frames = np.arange(len(frames)) + np.repeat(frames[paths.ends[:-1]] - paths.ends[:-1], paths.lengths)
    video = detections.video[paths.firsts[found.path]]
    group = video * (int(found.label.max()) + 1) + found.label
    kept = suppress_tubes(
        detections.boxes,
        paths.rows,
        frames,
        paths.ends[found.path] + found.first,
        paths.ends[found.path] + found.last + 1,
        # The last key counts first: group, then falling score, then the later tube.
        np.lexsort((-np.arange(len(found)), -found.score, group)),
        group,
        float(config.tube_nms),
        float(config.tube_nms_pixel_offset),
    )
    return found.only(kept)


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
        scores.append(_read_scores(boxes, model, columns, "boxes"))
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
    values = np.concatenate([_read_scores(table, model, columns, "frames") for table, model, _ in scored])
    order = np.lexsort((rows["frame"].to_numpy(), rows["video"].to_physical().to_numpy()))
    group = assign_frame_numbers(rows)[order]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    mean = _sums(values[order] * each[order, None], first) / _sums(each[order], first)[:, None]
    scores = pl.Series("scores", mean.astype(np.float32), dtype=pl.Array(pl.Float32, columns.width))
    found = rows[order[first]].with_columns(scores, pl.col("video").cast(pl.String))
    return frames.join(found, on=["video", "frame"], how="left", maintain_order="left")


def _read_scores(
    rows: pl.DataFrame, model: Predictions, columns: Layout, table: str
) -> npt.NDArray[np.float32]:
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
