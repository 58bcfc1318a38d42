"""Corner cases: which objects count and how, ground truth and predictions as arrays, and their matches, group by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.config import check_words
from roadaware.errors import InputError, UsageError
from roadaware.metrics.corner_cases.kernels import MISSED, match_cells
from roadaware.metrics.metric_state import crowd_density
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet
from roadaware.statistics.average_precision import resample_average_precision

Group = Literal["corner", "common", "novel", "all", "classes"]

GROUPS: dict[str, str] = {
    "corner": "corner cases of every class, whatever the predictions call them",
    "common": "objects of common classes, class by class",
    "novel": "objects of all other classes as one class, met by predictions of novel objects",
    "all": "every object, whatever the predictions call them",
    "classes": "every object, class by class",
}
AREAS = ("all", "small", "medium", "large")
AREA_BOUNDS_PX2 = np.array([[0, 1e10], [0, 32**2], [32**2, 96**2], [96**2, 1e10]], dtype=np.float64)
"""Smallest and largest area of each size; both ends belong to it.

Source: Lin et al., ECCV 2014 (COCO), and its evaluator.
"""
LOOSE = 0.3
"""The overlap below COCO's at which proposals are judged too."""


@dataclass(frozen=True)
class CornerConfig:
    """How predictions about corner cases are judged; the defaults are what `default` gives.

    Args:
        groups: which objects are asked for, in the order of the result; see `GROUPS`.
        max_detections: predictions that are taken from each image and class, the best first: the third is the
            usual number, the first two give what one and ten predictions find.
        ignored: what is neither asked for nor counted as false: all that is marked so (`marked`), or crowds
            alone (`crowds`, as the published evaluator does, which writes over other marks).
        area: what says how large an object is: the area that its annotation gives (`annotated`, which may be
            that of its outline), or the area of its box (`box`).
        common_truth: `common` asks for all objects of common classes (`all`), or for corner cases alone
            (`corner`).
        precision: where average precision is given: where ground truth holds more than corner cases (`complete`),
            everywhere (`always`), or nowhere (`never`).
        risk: corner cases are asked for wherever they are (`any`), or only where they block a path of the
            vehicle (`blocking`, see `risk.with_blocking`); where that is not known they are asked for.
        total: whether the four numbers of the challenge of 2022 are added up.
    """

    groups: tuple[Group, ...] = ("corner", "common", "novel")
    max_detections: tuple[int, int, int] = (1, 10, 100)
    ignored: Literal["marked", "crowds"] = "marked"
    area: Literal["annotated", "box"] = "annotated"
    common_truth: Literal["all", "corner"] = "all"
    precision: Literal["complete", "always", "never"] = "complete"
    risk: Literal["any", "blocking"] = "any"
    total: bool = False

    def __post_init__(self) -> None:
        check_words(self)
        if not self.groups or len(set(self.groups)) != len(self.groups) or set(self.groups) - set(GROUPS):
            raise UsageError(f"groups are some of {', '.join(GROUPS)}, each once; got {self.groups!r}")
        most = self.max_detections
        if len(most) != 3 or not all(type(n) is int and 1 <= n <= 10_000 for n in most):
            raise UsageError(f"max_detections are three whole numbers from 1 to 10,000; got {most!r}")
        if list(most) != sorted(set(most)):
            raise UsageError(f"max_detections should rise; got {most!r}")

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Overlaps from which on a prediction meets an object: 0.3, then COCO's ten, as its evaluator has them."""
        return (LOOSE, *np.linspace(0.5, 0.95, 10).tolist())

    @classmethod
    def default(cls) -> CornerConfig:
        """The paper's three groups.

        Source: Li et al., ECCV 2022 (CODA), section 5.1.
        """
        return cls()

    @classmethod
    def reference(cls) -> CornerConfig:
        """The same with pycocotools' reading of marks: crowds alone are ignored.

        Source: pycocotools, the evaluator of Lin et al., ECCV 2014 (COCO).
        """
        return cls(ignored="crowds")

    @classmethod
    def coda2022(cls) -> CornerConfig:
        """The evaluator of the challenge: AP of common classes, AP and AR of everything, AR of corner cases.

        Source: ECCV 2022 workshop SSLAD, track 3, as CODA's site describes it.
        """
        return cls(groups=("common", "all", "corner"), ignored="crowds", precision="always", total=True)

    @classmethod
    def coco(cls) -> CornerConfig:
        """COCO's evaluator on all classes of the file.

        Source: pycocotools, the evaluator of Lin et al., ECCV 2014 (COCO).
        """
        return cls(groups=("classes",), ignored="crowds", precision="always")


CONFIGS: dict[str, Callable[[], CornerConfig]] = {
    "default": CornerConfig.default,
    "reference": CornerConfig.reference,
    "coda2022": CornerConfig.coda2022,
    "coco": CornerConfig.coco,
}


KIND, SUPER = "corner", "corner_super"
"""Kinds of label: what an object is, and its super-class."""
BLOCKS = "blocks_path"
"""The column of whether an object blocks a path."""
NONE = -1
_NAMES = ("scene", "path", "file_name")
"""Columns of text that distinguish images, and nothing else."""


@dataclass(frozen=True, eq=False)
class Marked:
    """Boxes of images, by image.

    Args:
        item: (n,) image of each.
        corners: (n, 4) in pixels.
        sides: (n,) width times height.
        common: (n,) which common class it is, or is predicted to be; NONE for no such class.
        novel: (n,) whether it is, or is predicted to be, of another class.
        label: (n,) which class of the file; NONE where it is none, or not known.
    """

    item: Ints
    corners: Floats
    sides: Floats
    common: Ints
    novel: Bools
    label: Ints


@dataclass(frozen=True, eq=False)
class Detections(Marked):
    """The predictions by image and falling score, equal scores in the order of the table.

    Args:
        score: (n,) of each.
    """

    score: Floats


@dataclass(frozen=True, eq=False)
class Objects(Marked):
    """The ground truth.

    Args:
        items: one row per image, by the image's number: `video`, `frame`, and what slices are made by.
        sizes: (images, 2) width and height in pixels; NaN where not known.
        area: (n,) from which the size class follows.
        marked: (n,) whether it is marked as not asked for.
        crowd: (n,) whether it is a crowd.
        corner: (n,) whether it is a corner case.
        above: (n,) its super-class; NONE where it has none.
        box: (n,) its number in the tables.
        commons: the common classes.
        labels: the classes of the file.
        supers: the super-classes.
        notes: what had to be assumed, in words.
    """

    items: pl.DataFrame
    sizes: Floats
    area: Floats
    marked: Bools
    crowd: Bools
    corner: Bools
    above: Ints
    box: Ints
    commons: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    supers: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())


def extract_objects(scenes: Scenes, *, area: str, risk: str = "any") -> Objects:
    """The ground truth of a set, whose images are its annotated frames.

    Args:
        scenes: boxes with, as far as known, `corner_case`, `ignore`, `crowd`, `area_px2`, `sides_px2`,
            `common` (a common class, or null) and `novel`; labels of the kinds `corner` and `corner_super`.
        area: `annotated` takes `area_px2` where it is there.
        risk: `blocking` takes for corner cases only what does not stand clear of the vehicle's paths.

    Raises:
        InputError: if there is no annotated frame, no box in any, or nothing is known of what blocks a path.
    """
    items = _items(scenes)
    boxes = _join_items(scenes.boxes, items)
    if boxes.is_empty():
        raise InputError(
            f"none of {len(scenes.boxes)} true boxes lies in one of {len(items)} annotated images"
        )
    boxes = boxes.sort("item", maintain_order=True)
    named = {kind: _labels(scenes, kind, boxes["box"]) for kind in (KIND, SUPER)}
    commons = tuple(boxes["common"].drop_nulls().unique().sort()) if "common" in boxes.columns else ()
    ignore, crowd = (_flag(boxes, name, default=False) for name in ("ignore", "crowd"))
    held = _convert_boxes(boxes, commons, named[KIND])
    annotated = boxes["area_px2"] if area == "annotated" and "area_px2" in boxes.columns else None
    # (n,) which objects are corner cases, and what had to be assumed for it.
    if "corner_case" not in boxes.columns:
        corner = np.ones(len(boxes), dtype=bool)
        notes: tuple[str, ...] = (
            "no object says whether it is a corner case: all are taken for corner cases",
        )
    else:
        unsaid = boxes["corner_case"].null_count()
        corner = _flag(boxes, "corner_case", default=False)
        text = f"{unsaid:,} objects do not say whether they are corner cases, and count as none"
        notes = (text,) if unsaid else ()
    if risk == "blocking":
        clear, unasked = _clear(boxes, corner)
        corner, notes = corner & ~clear, (*notes, *unasked)
    return Objects(
        **vars(held),
        items=_add_density(items, boxes),
        sizes=items.select(pl.col("width_px", "height_px").cast(pl.Float64))
        .fill_null(float("nan"))
        .to_numpy(),
        area=held.sides if annotated is None else annotated.to_numpy().astype(np.float64),
        marked=ignore | crowd,
        crowd=crowd if "crowd" in boxes.columns else ignore,
        corner=corner,
        above=named[SUPER],
        box=boxes["box"].to_numpy(),
        commons=commons,
        labels=scenes.meta.vocabularies.get(KIND, ()),
        supers=scenes.meta.vocabularies.get(SUPER, ()),
        notes=notes,
    )


def extract_proposals(predictions: Predictions, truth: Objects) -> tuple[Detections, int]:
    """The predictions on images of the ground truth, and the number of those on other images.

    Args:
        predictions: boxes with `score`, and `common`, `novel` and labels of the kind `corner` where the
            predictions say what they are.
        truth: what they are about.

    Raises:
        InputError: if the boxes have no score, or none is about an image of the ground truth.
    """
    boxes = predictions.boxes
    if boxes.is_empty():
        boxes = boxes.with_columns(score=pl.lit(None, pl.Float64))  # nothing was proposed, which is an answer
    if "score" not in boxes.columns or boxes["score"].null_count():
        raise InputError("every predicted box needs a score", hint="give each proposal a `score` in [0, 1]")
    placed = _join_items(boxes, truth.items)
    if len(boxes) and placed.is_empty():
        raise InputError(
            f"none of {len(boxes)} predictions is about one of the {len(truth.items)} images of the truth",
            hint=f"images of predictions: {boxes['video'].head(3).to_list()}, of the truth: "
            f"{truth.items['video'].head(3).to_list()}",
        )
    placed = placed.sort("item", pl.col("score"), descending=[False, True], maintain_order=True)
    words = predictions.meta.vocabularies.get(KIND, ())
    label = _labels(predictions, KIND, placed["box"])
    known = np.array([truth.labels.index(word) if word in truth.labels else NONE for word in words] + [NONE])
    held = _convert_boxes(placed, truth.commons, known[label])
    found = Detections(**vars(held), score=placed["score"].to_numpy().astype(np.float64))
    return found, len(boxes) - len(placed)


def _items(scenes: Scenes) -> pl.DataFrame:
    """One row per annotated frame, by the number of the image where it has one, else by video and frame."""
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    if "annotated" in frames.columns:
        frames = frames.filter(pl.col("annotated").fill_null(value=False))
    if frames.is_empty():
        raise InputError("the truth has no annotated frame", hint="there is nothing to judge against")
    videos = scenes.videos.with_columns(pl.col("video").cast(pl.String))
    order = videos.select("video").with_row_index("place")
    items = _texts(videos)
    for side in ("width_px", "height_px"):
        if side not in videos.columns:
            videos = videos.with_columns(pl.lit(None, dtype=pl.Int64).alias(side))
    of_frame = [name for name in _texts(frames) if name not in items]
    ranks = ["image_id"] if "image_id" in frames.columns else ["place", "frame"]
    joined = frames.join(order, on="video", how="left").sort(ranks, maintain_order=True)
    joined = joined.select("video", "frame", *of_frame)
    return joined.join(
        videos.select("video", "width_px", "height_px", *items), on="video", how="left", maintain_order="left"
    )


def _texts(table: pl.DataFrame) -> list[str]:
    """The columns that slices can be made by."""
    kinds = (pl.String, pl.Categorical, pl.Enum)
    return [n for n, kind in table.schema.items() if kind in kinds and n not in ("video", *_NAMES)]


def _join_items(boxes: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """The boxes of the images, in their order, with `item`."""
    places = items.select("video", "frame").with_row_index("item")
    named = boxes.with_columns(pl.col("video").cast(pl.String))
    return named.join(places, on=["video", "frame"], how="inner", maintain_order="left").with_columns(
        pl.col("item").cast(pl.Int64)
    )


def _convert_boxes(boxes: pl.DataFrame, commons: Sequence[str], label: Ints) -> Marked:
    """Boxes by image as arrays."""
    corners = np.ascontiguousarray(boxes.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4))
    if "sides_px2" in boxes.columns:
        sides = boxes["sides_px2"].to_numpy().astype(np.float64)
    else:
        sides = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    common = np.full(len(boxes), NONE)
    if "common" in boxes.columns and commons:
        common = (
            boxes["common"]
            .cast(pl.String)
            .replace_strict(list(commons), list(range(len(commons))), default=NONE, return_dtype=pl.Int64)
            .to_numpy()
        )
    return Marked(
        item=boxes["item"].to_numpy(),
        corners=corners,
        sides=sides,
        common=common,
        novel=_flag(boxes, "novel", default=False),
        label=label,
    )


def _labels(tables: TableSet, kind: str, box: pl.Series) -> Ints:
    """(n,) the label of each box of a kind, the first where it has several."""
    labels = tables.labels.filter(pl.col("kind").cast(pl.String) == kind).unique("box", keep="first")
    held = pl.DataFrame({"box": box}).join(
        labels.select("box", "label"), on="box", how="left", maintain_order="left"
    )
    found: Ints = held["label"].cast(pl.Int64).fill_null(NONE).to_numpy()
    return found


def _flag(boxes: pl.DataFrame, name: str, *, default: bool) -> Bools:
    if name not in boxes.columns:
        return np.full(len(boxes), default)
    found: Bools = boxes[name].fill_null(default).to_numpy()
    return found


def _clear(boxes: pl.DataFrame, corner: Bools) -> tuple[Bools, tuple[str, ...]]:
    """(n,) which objects stand clear of the vehicle's paths, and how many corner cases that is."""
    if BLOCKS not in boxes.columns:
        raise InputError(
            f"nothing is known of what blocks a path: the boxes have no {BLOCKS}",
            hint="`metrics.corner_cases.evaluate.add_blocking` adds it where the geometry is known",
        )
    clear = ~_flag(boxes, BLOCKS, default=True)
    unknown = int((boxes[BLOCKS].is_null().to_numpy() & corner).sum())
    text = f"{int((clear & corner).sum()):,} corner cases block no path and are not asked for"
    return clear, (
        text,
        *((f"of {unknown:,} corner cases it is not known; they are asked for",) if unknown else ()),
    )


def _add_density(items: pl.DataFrame, boxes: pl.DataFrame) -> pl.DataFrame:
    """The images with how many objects each has."""
    counted = boxes.group_by("item").len("density")
    table = (
        items.drop("width_px", "height_px").with_row_index("item").with_columns(pl.col("item").cast(pl.Int64))
    )
    table = table.join(counted, on="item", how="left", maintain_order="left")
    return table.drop("item").with_columns(density=crowd_density(pl.col("density").fill_null(0)))


@dataclass(frozen=True, eq=False)
class Met:
    """The matched and missed objects and predictions of a group.

    Args:
        rows: (m,) the objects, rows of the ground truth.
        kind: (m,) class of each within the group.
        asked: (m, A) whether it is asked for among objects of each size.
        rank: (m, A, T) which prediction of its image and class met it, from 0; -1 where none did.
        best: (m,) the greatest overlap with a prediction of its class.
        predictions: (n,) the predictions that count, rows of all predictions, by class, image and falling score.
        predicted: (n,) class of each within the group.
        hit: (n, A) bit t is set where it met an object that is asked for.
        passed: (n, A) bit t is set where it does not count.
        beyond: how many predictions were not taken, for they are too many in their image.
    """

    rows: Ints
    kind: Ints
    asked: Bools
    rank: npt.NDArray[np.int16]
    best: Floats
    predictions: Ints
    predicted: Ints
    hit: npt.NDArray[np.uint16]
    passed: npt.NDArray[np.uint16]
    beyond: int


def list_group_classes(group: Group, truth: Objects) -> tuple[str, ...]:
    """The classes of a group."""
    return {"common": truth.commons, "classes": truth.labels}.get(group, (group,))


def match_group(
    group: Group, truth: Objects, predictions: Detections, config: CornerConfig, *, every: bool = False
) -> Met:
    """The predictions of a group matched with its objects.

    Args:
        group: which.
        truth: all objects.
        predictions: all predictions.
        config: how.
        every: whether each prediction is predicted once as each class, as trivial answers are.

    Source: pycocotools, the evaluator of Lin et al., ECCV 2014 (COCO).
    """
    rows, kind = _objects(group, truth, config)
    taken, predicted = _predictions(group, predictions, len(list_group_classes(group, truth)), every=every)
    n_items = len(truth.items)
    cells = n_items * max(1, len(list_group_classes(group, truth)))
    rows, object_start = _by_cell(rows, kind * n_items + truth.item[rows], cells)
    taken, prediction_start = _by_cell(taken, predicted * n_items + predictions.item[taken], cells)
    kind = (np.repeat(np.arange(cells), np.diff(object_start)) // n_items).astype(np.int64)
    # The first rows of each cell, where they start now, and how many were left away.
    most = config.max_detections[-1]
    sizes = np.diff(prediction_start)
    if not len(sizes) or sizes.max(initial=0) <= most:
        taken, prediction_start, beyond = taken, prediction_start, 0
    else:
        place = np.arange(len(taken)) - np.repeat(prediction_start[:-1], sizes)
        kept = np.zeros_like(prediction_start)
        np.cumsum(np.minimum(sizes, most), out=kept[1:])
        taken, prediction_start, beyond = taken[place < most], kept, int((place >= most).sum())
    predicted = (np.repeat(np.arange(cells), np.diff(prediction_start)) // n_items).astype(np.int64)
    ignored = truth.marked[rows] if config.ignored == "marked" else truth.crowd[rows]
    rank = np.full((len(rows), len(AREA_BOUNDS_PX2), len(config.thresholds)), MISSED, dtype=np.int16)
    # A bit for each of the eleven thresholds.
    hit, passed = (np.zeros((len(taken), len(AREA_BOUNDS_PX2)), dtype=np.uint16) for _ in range(2))
    best = np.zeros(len(rows))
    match_cells(
        prediction_start,
        predictions.corners[taken],
        predictions.sides[taken],
        object_start,
        truth.corners[rows],
        truth.sides[rows],
        truth.area[rows],
        ignored.view(np.uint8),
        # A crowd that is asked for is matched once, like any other object.
        (truth.crowd[rows] & ignored).view(np.uint8),
        np.array(config.thresholds),
        AREA_BOUNDS_PX2,
        config.max_detections[-1],
        rank,
        hit,
        passed,
        best,
    )
    area = truth.area[rows][:, None]
    sized = (area >= AREA_BOUNDS_PX2[:, 0]) & (area <= AREA_BOUNDS_PX2[:, 1])
    asked = sized & ~ignored[:, None]
    return Met(rows, kind, asked, rank, best, taken, predicted, hit, passed, beyond)


def _objects(group: Group, truth: Objects, config: CornerConfig) -> tuple[Ints, Ints]:
    """The objects of a group with the class of each. Crowds and marked boxes are those of its classes."""
    everything = np.zeros(len(truth.item), dtype=np.int64)
    if group == "common":
        wanted = (truth.common != NONE) & (truth.corner | (config.common_truth == "all"))
        kind = truth.common
    elif group == "novel":
        wanted, kind = truth.novel & truth.corner, everything
    elif group == "corner":
        wanted, kind = truth.corner, everything
    elif group == "classes":
        wanted, kind = truth.label != NONE, truth.label
    else:
        wanted, kind = np.ones(len(truth.item), dtype=bool), everything
    rows = np.flatnonzero(wanted)
    return rows, kind[rows]


def _predictions(group: Group, predictions: Detections, n_classes: int, *, every: bool) -> tuple[Ints, Ints]:
    """The predictions of a group with the class of each, in their order."""
    if every:
        n = len(predictions.item)
        return np.tile(np.arange(n), n_classes), np.repeat(np.arange(n_classes), n)
    kind = {"common": predictions.common, "classes": predictions.label}.get(group)
    if kind is not None:
        rows = np.flatnonzero(kind != NONE)
        return rows, kind[rows]
    rows = np.flatnonzero(predictions.novel) if group == "novel" else np.arange(len(predictions.item))
    return rows, np.zeros(len(rows), dtype=np.int64)


def _by_cell(rows: Ints, cell: Ints, cells: int) -> tuple[Ints, Ints]:
    """Rows by cell in their order, and where those of each cell start."""
    start = np.zeros(cells + 1, dtype=np.int64)
    np.cumsum(np.bincount(cell, minlength=cells), out=start[1:])
    if (np.diff(cell) < 0).any():
        rows = rows[np.argsort(cell, kind="stable")]
    return rows, start


# Average precision as COCO's evaluator reads it, over thresholds, sizes and classes, for many resamples.

# Places among COCO's ten thresholds, of which 0.3 is none.
_HALF, _THREE_QUARTERS = 0, 5
_SIZES = ("ap_small", "ap_medium", "ap_large")


def compute_precisions(
    video: Ints,
    kind: Ints,
    score: Floats,
    hit: npt.NDArray[np.uint16],
    passed: npt.NDArray[np.uint16],
    n_kinds: int,
    object_video: Ints,
    object_kind: Ints,
    asked: Bools,
    weights: npt.NDArray[np.int32],
    n_steps: int,
) -> dict[str, Floats]:
    """`ap`, `ap50`, `ap75`, `ap_small`, `ap_medium`, `ap_large`, each (resamples,), NaN where there is no object.

    Args:
        video: (n,) of each prediction; predictions by image, by falling score within each class of an image.
        kind: (n,) class of each.
        score: (n,) of each.
        hit: (n, A) bit t is set where it met an object.
        passed: (n, A) bit t is set where it does not count.
        n_kinds: how many classes there are.
        object_video: (m,) of each object.
        object_kind: (m,) class of each.
        asked: (m, A) whether it is asked for among objects of each size.
        weights: (resamples, videos) how often each video counts.
        n_steps: bits of `hit`; the first is of the threshold below COCO's, and left away.

    Source: Lin et al., ECCV 2014 (COCO), and its evaluator.
    """
    order = np.lexsort((-score, kind))
    starts = np.searchsorted(kind[order], np.arange(n_kinds + 1))
    # From 1 on: bit 0 is the threshold 0.3, of which there is no average precision.
    bits = np.uint16(1) << np.arange(1, n_steps, dtype=np.uint16)
    by_area = []
    for a in range(hit.shape[1]):
        n_truth = _counts(object_video[asked[:, a]], object_kind[asked[:, a]], n_kinds, weights)
        marks = (hit[order, a, None] & bits) > 0
        away = (passed[order, a, None] & bits) > 0
        areas = resample_average_precision(
            *(starts, video[order].astype(np.int32), marks, n_truth, weights, "coco"), ignored=away
        )
        areas[n_truth == 0] = np.nan
        by_area.append(areas)
    found = {
        "ap": _mean(by_area[0].mean(axis=2)),
        "ap50": _mean(by_area[0][:, :, _HALF]),
        "ap75": _mean(by_area[0][:, :, _THREE_QUARTERS]),
    }
    return found | {name: _mean(areas.mean(axis=2)) for name, areas in zip(_SIZES, by_area[1:], strict=True)}


def _counts(video: Ints, kind: Ints, n_kinds: int, weights: npt.NDArray[np.int32]) -> Ints:
    """(resamples, classes) how many objects there are."""
    n_videos = weights.shape[1]
    held = np.bincount(kind * n_videos + video, minlength=n_kinds * n_videos).reshape(n_kinds, n_videos)
    found: Ints = weights.astype(np.int64) @ held.T
    return found


def _mean(values: Floats) -> Floats:
    """(resamples,) mean over the classes that have objects.

    Args:
        values: (resamples, classes) NaN where there is none.
    """
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0.0).sum(axis=1), known.sum(axis=1)
    found: Floats = np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0)
    return found


# Average recall: the share of objects that are met, averaged over thresholds and classes, for many resamples.

SIZES = ("", "_small", "_medium", "_large")
# Places among all eleven thresholds.
_LOOSE, _RECALL_HALF, _RECALL_THREE_QUARTERS, _FROM_HALF = 0, 1, 6, slice(1, None)
_AT: dict[str, int | slice] = {
    "ar": _FROM_HALF,
    "ar50": _RECALL_HALF,
    "ar75": _RECALL_THREE_QUARTERS,
    "ar30": _LOOSE,
}
SIZED = {"ar": SIZES, "ar50": SIZES, "ar75": SIZES[:1], "ar30": SIZES}
KINDS = ("ar", "ar50")
"""What is given of each class and super-class."""


@dataclass(frozen=True, eq=False)
class Values:
    """The metrics of a group under several weightings.

    Args:
        whole: metric to (resamples,) values.
        kinds: the same of each class.
        above: the same of each super-class.
    """

    whole: dict[str, Floats]
    kinds: list[dict[str, Floats]]
    above: list[dict[str, Floats]]


@dataclass(frozen=True, eq=False)
class Recall:
    """How many objects were met, by video.

    Args:
        met: (classes, videos, 2 + A, T) objects met by the first predictions, as many as the first and the second
            number of `CornerConfig.max_detections`, then by all predictions among objects of each size.
        asked: (classes, videos, A) objects that are asked for.
        above_met: (super-classes, videos, T) met by all predictions, of any size.
        above_asked: (super-classes, videos) objects that are asked for.
        most: the names of the first two numbers.
    """

    met: Floats
    asked: Floats
    above_met: Floats
    above_asked: Floats
    most: tuple[int, int]

    def values(self, weights: npt.NDArray[np.int32]) -> Values:
        """Every metric under some weightings of videos, NaN where there is no object.

        The recall of a class at a threshold is the share of its objects that are met; a metric is the mean
        over thresholds and over the classes that have objects.

        Args:
            weights: (resamples, videos) how often each counts.

        Source: Lin et al., ECCV 2014 (COCO), and its evaluator.
        """
        counted = weights.astype(np.float64)
        kinds = [
            self._metrics(_product(counted, met), counted @ asked)
            for met, asked in zip(self.met, self.asked, strict=True)
        ]
        whole = {name: _average_recalls([kind[name] for kind in kinds]) for name in kinds[0]}
        above = [
            self._plain(_product(counted, met), counted @ asked)
            for met, asked in zip(self.above_met, self.above_asked, strict=True)
        ]
        return Values(whole, [{name: kind[name] for name in KINDS} for kind in kinds], above)

    def counted(self, metric: str) -> int:
        """How many objects a metric of the whole is made from."""
        size = next((n for n, name in enumerate(SIZES) if name and metric.endswith(name)), 0)
        return int(self.asked[:, :, size].sum())

    def of_kind(self, kind: int) -> int:
        """How many objects a class has."""
        return int(self.asked[kind, :, 0].sum())

    def of_super(self, above: int) -> int:
        """How many objects a super-class has."""
        return int(self.above_asked[above].sum())

    def _metrics(self, met: Floats, asked: Floats) -> dict[str, Floats]:
        """Metrics of one class.

        Args:
            met: (resamples, 2 + A, T).
            asked: (resamples, A).
        """
        shares = np.full_like(met, np.nan)
        totals = asked[:, [0, 0, *range(asked.shape[1])]][:, :, None]
        np.divide(met, totals, out=shares, where=totals > 0)
        found = {
            f"{name}{size}": _level(shares[:, 2 + place], at)
            for name, at in _AT.items()
            for place, size in enumerate(SIZED[name])
        }
        few = {f"ar{n}": _level(shares[:, place], _FROM_HALF) for place, n in enumerate(self.most)}
        first = {name: found.pop(name) for name in ("ar", "ar50", "ar75")}
        return {**first, **few, **found}

    def _plain(self, met: Floats, asked: Floats) -> dict[str, Floats]:
        """Metrics of one super-class."""
        shares = np.full_like(met, np.nan)
        np.divide(met, asked[:, None], out=shares, where=asked[:, None] > 0)
        return {name: _level(shares, _AT[name]) for name in KINDS}


def compute_recalls(
    video: Ints,
    kind: Ints,
    above: Ints,
    asked: Bools,
    rank: npt.NDArray[np.int16],
    n_videos: int,
    n_kinds: int,
    n_above: int,
    most: tuple[int, int, int],
) -> Recall:
    """Counts of matched objects, summed by video.

    Args:
        video: (m,) of each object.
        kind: (m,) class of each.
        above: (m,) super-class of each, -1 for none.
        asked: (m, A) whether it is asked for among objects of each size.
        rank: (m, A, T) which prediction met it, -1 where none did.
        n_videos: how many videos there are.
        n_kinds: how many classes.
        n_above: how many super-classes; 0 leaves them away.
        most: predictions that are taken.
    """
    n_steps = rank.shape[2]
    every = rank[:, 0]
    columns = [(every >= 0) & (every < n) & asked[:, :1] for n in most[:2]]
    columns += [(rank[:, a] >= 0) & asked[:, a, None] for a in range(asked.shape[1])]
    met = np.stack(columns, axis=1).reshape(len(rank), len(columns) * n_steps)
    cell = kind * n_videos + video
    summed = _count_by_cell(cell, met, n_kinds * n_videos).reshape(n_kinds, n_videos, len(columns), n_steps)
    totals = _count_by_cell(cell, asked, n_kinds * n_videos).reshape(n_kinds, n_videos, asked.shape[1])
    known = above >= 0 if n_above else np.zeros(len(above), dtype=bool)
    cell = above[known] * n_videos + video[known]
    found = columns[2][known]
    return Recall(
        summed,
        totals,
        _count_by_cell(cell, found, n_above * n_videos).reshape(n_above, n_videos, n_steps),
        _count_by_cell(cell, asked[known, :1], n_above * n_videos).reshape(n_above, n_videos),
        most[:2],
    )


def _count_by_cell(cell: Ints, values: Bools, cells: int) -> Floats:
    """(cells, columns) how often each column is true in each cell."""
    order = np.argsort(cell, kind="stable")
    total = np.zeros((cells, values.shape[1]))
    if len(cell):
        named, first = np.unique(cell[order], return_index=True)
        total[named] = np.add.reduceat(values[order].astype(np.int32), first, axis=0)
    return total


def _product(weights: Floats, met: Floats) -> Floats:
    """(resamples, ...) sums over videos."""
    flat = met.reshape(len(met), int(np.prod(met.shape[1:])))
    found: Floats = (weights @ flat).reshape(len(weights), *met.shape[1:])
    return found


def _level(shares: Floats, at: int | slice) -> Floats:
    """(resamples,) recall at a threshold, or its mean over several."""
    found: Floats = shares[:, at] if isinstance(at, int) else shares[:, at].mean(axis=1)
    return found


def _average_recalls(values: list[Floats]) -> Floats:
    """(resamples,) mean over the classes that have objects."""
    stacked = np.stack(values)
    known = ~np.isnan(stacked)
    total = np.where(known, stacked, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    found: Floats = np.divide(total, count, out=np.full(stacked.shape[1], np.nan), where=count > 0)
    return found
