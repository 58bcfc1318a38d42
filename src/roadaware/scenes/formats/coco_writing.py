"""COCO JSON written: claims as lists of results, truth as annotation files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.errors import UsageError
from roadaware.scenes.dense import Layout, layout, matrix
from roadaware.scenes.disk import atomic_write
from roadaware.scenes.formats.coco_index import CocoIndex, of_places
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes


def write_results(predictions: Predictions, path: Path, index: CocoIndex, *, min_score: float = 0.0) -> int:
    """Write claims as a list of COCO results: one for each box and label of the index's kind.

    Corners become left, top, width and height in the pixels that they are in: bring claims to those of the
    truth by `scenes.rescaling` before. Dense scores give a result for every label above `min_score`; without
    them scored `labels` do.

    Args:
        predictions: boxes with dense scores or scored labels of the kind.
        path: where to; replaced in one step.
        index: the images and categories to name; `index_of_scenes` makes one where there is none.
        min_score: results must be above this.

    Returns:
        The number of results.

    Raises:
        UsageError: if there are neither dense scores nor labels of the kind, or a frame is no image.
        DiskError: if the disk refuses.
    """
    scored = _scored(predictions, index).filter(pl.col("score") > min_score)
    ids = index.ids
    places = scored.select("video", "frame").unique(maintain_order=True).rows()
    lost = [place for place in places if place not in ids]
    if lost:
        raise UsageError(f"{len(lost)} frames with claims are no images of the index, first {lost[:3]}")
    category = {label: number for number, label in index.categories.items()}
    results = [
        {
            "image_id": ids[video, frame],
            "category_id": category[label],
            "bbox": _bbox(corners),
            "score": score,
        }
        for video, frame, label, score, *corners in scored.select(
            "video", "frame", "name", "score", *CORNERS
        ).iter_rows()
    ]
    atomic_write(Path(path), json.dumps(results, allow_nan=False).encode())
    return len(results)


def index_of_scenes(scenes: Scenes, kind: str = "agent") -> CocoIndex:
    """An index of the annotated frames of some scenes, numbered from 1, with the labels of a kind.

    Args:
        scenes: with frames, and the vocabulary of the kind.
        kind: of labels.

    Raises:
        UsageError: if there is no such vocabulary.
    """
    if kind not in scenes.meta.vocabularies:
        raise UsageError(f"no labels of kind '{kind}'; there are {', '.join(scenes.meta.vocabularies)}")
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    if "annotated" in frames.columns:
        frames = frames.filter(pl.col("annotated").fill_null(value=False))
    return of_places(frames.select("video", "frame").rows(), scenes.meta.vocabularies[kind], kind)


def write_annotations(scenes: Scenes, path: Path, index: CocoIndex | None = None) -> int:
    """Write true boxes as a COCO annotation file that `pycocotools` reads: one annotation per box and label.

    Boxes of frames that are no images, and boxes without a label of the kind, are left out; boxes to ignore
    are crowds. An image has the file name of the index, else `<video>/<frame from 1, five digits>.jpg`.

    Args:
        scenes: truth.
        path: where to; replaced in one step.
        index: images and categories; those of the scenes unless given.

    Returns:
        The number of annotations.

    Raises:
        DiskError: if the disk refuses.
    """
    index = index or index_of_scenes(scenes)
    ids, category = index.ids, {label: number for number, label in index.categories.items()}
    known = scenes.videos.with_columns(pl.col("video").cast(pl.String))
    sizes = {row["video"]: (row.get("width_px"), row.get("height_px")) for row in known.iter_rows(named=True)}
    images = []
    for image, (video, frame) in index.images.items():
        width, height = sizes.get(video, (None, None))
        name = index.files.get((video, frame), f"{video}/{frame + 1:05d}.jpg")
        images.append({"id": image, "file_name": name, "width": width, "height": height})
    rows = _named_labels(scenes, index.kind, scenes.meta.vocabularies.get(index.kind, ()))
    rows = rows.filter(pl.col("name").is_in(list(category)))
    annotations: list[dict[str, Any]] = []
    for video, frame, label, ignore, *corners in rows.select(
        "video", "frame", "name", "ignore", *CORNERS
    ).iter_rows():
        if (video, frame) in ids:
            left, top, width, height = _bbox(corners)
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": ids[video, frame],
                    "category_id": category[label],
                    "bbox": [left, top, width, height],
                    "area": width * height,
                    "iscrowd": int(bool(ignore)),
                }
            )
    categories = [{"id": number, "name": label} for number, label in index.categories.items()]
    content = {"images": images, "categories": categories, "annotations": annotations}
    atomic_write(Path(path), json.dumps(content, allow_nan=False).encode())
    return len(annotations)


def _bbox(corners: list[float]) -> list[float]:
    left, top, right, bottom = corners
    return [left, top, right - left, bottom - top]


def _scored(predictions: Predictions, index: CocoIndex) -> pl.DataFrame:
    """One row per box and label of the index: video, frame, corners, name and score."""
    boxes = predictions.boxes.with_columns(pl.col("video").cast(pl.String))
    columns = layout(predictions.meta, "boxes")
    if "scores" in boxes.columns and index.kind in columns.kinds:
        parts = list(_dense_rows(boxes, matrix(boxes["scores"], columns.width), columns, index))
        return pl.concat(parts).sort("row", maintain_order=True)
    if "score" not in predictions.labels.columns:
        raise UsageError(f"the claims have neither dense scores nor scored labels of '{index.kind}'")
    rows = _named_labels(predictions, index.kind, predictions.meta.vocabularies.get(index.kind, ()))
    return rows.filter(pl.col("name").is_in(list(index.labels)))


def _dense_rows(
    boxes: pl.DataFrame, scores: Any, columns: Layout, index: CocoIndex
) -> Iterator[pl.DataFrame]:
    """The rows of each label that both sides have."""
    place = boxes.select("video", "frame", *CORNERS).with_row_index("row")
    yield place.clear().with_columns(name=pl.lit(""), score=pl.lit(0.0))
    for number, label in enumerate(columns.kinds[index.kind]):
        if label in index.labels:
            values = np.asarray(scores[:, columns.columns(index.kind).start + number], dtype=np.float64)
            yield place.with_columns(name=pl.lit(label), score=pl.Series(values))


def _named_labels(tables: Scenes | Predictions, kind: str, words: tuple[str, ...]) -> pl.DataFrame:
    """One row per box and label of a kind, with the label's name."""
    boxes = tables.boxes.with_columns(pl.col("video").cast(pl.String)).drop("score", strict=False)
    if "ignore" not in boxes.columns:
        boxes = boxes.with_columns(ignore=pl.lit(value=False))
    labels = tables.labels.filter(pl.col("kind").cast(pl.String) == kind)
    named = labels.with_columns(
        name=pl.col("label").replace_strict(dict(enumerate(words)), default=None, return_dtype=pl.String)
    )
    return boxes.join(named, on="box", maintain_order="left_right")
