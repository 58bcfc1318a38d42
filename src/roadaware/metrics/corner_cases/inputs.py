"""Ground truth and predictions about corner cases as arrays: images, what objects are, and what predictions say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError
from roadaware.metrics.metric_state import crowd_density
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes, TableSet

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
class Claims(Marked):
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
        told = f"{unsaid:,} objects do not say whether they are corner cases, and count as none"
        notes = (told,) if unsaid else ()
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


def extract_proposals(predictions: Predictions, truth: Objects) -> tuple[Claims, int]:
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
    return Claims(**vars(held), score=placed["score"].to_numpy().astype(np.float64)), len(boxes) - len(placed)


def _items(scenes: Scenes) -> pl.DataFrame:
    """One row per annotated frame, by the number of the image where it has one, else by video and frame."""
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    if "annotated" in frames.columns:
        frames = frames.filter(pl.col("annotated").fill_null(value=False))
    if frames.is_empty():
        raise InputError("the truth has no annotated frame", hint="there is nothing to judge against")
    videos = scenes.videos.with_columns(pl.col("video").cast(pl.String))
    order = videos.select("video").with_row_index("place")
    told = _texts(videos)
    for side in ("width_px", "height_px"):
        if side not in videos.columns:
            videos = videos.with_columns(pl.lit(None, dtype=pl.Int64).alias(side))
    of_frame = [name for name in _texts(frames) if name not in told]
    ranks = ["image_id"] if "image_id" in frames.columns else ["place", "frame"]
    joined = frames.join(order, on="video", how="left").sort(ranks, maintain_order=True)
    joined = joined.select("video", "frame", *of_frame)
    return joined.join(
        videos.select("video", "width_px", "height_px", *told), on="video", how="left", maintain_order="left"
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
            hint="`metrics.corner_cases.risk.add_blocking` adds it where the geometry is known",
        )
    clear = ~_flag(boxes, BLOCKS, default=True)
    unknown = int((boxes[BLOCKS].is_null().to_numpy() & corner).sum())
    told = f"{int((clear & corner).sum()):,} corner cases block no path and are not asked for"
    return clear, (
        told,
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
