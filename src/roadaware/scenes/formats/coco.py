"""COCO JSON read: annotations as Scenes, lists of results as Predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.errors import FindingsError, InputError
from roadaware.scenes.formats.coco_index import By, CocoIndex, document, index_of
from roadaware.scenes.formats.knowledge import refuse_findings
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import a_list, an_object, kind_of, quoted, whole
from roadaware.scenes.readers.source import shown
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Scenes

_LARGEST = (1 << 53) - 1
_FAR = 1e9


@dataclass
class _Rows:
    """What was taken: one entry per box, and the rows that were refused."""

    place: list[tuple[str, int]] = field(default_factory=list)
    box: list[tuple[float, float, float, float]] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    crowd: list[bool] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def read_index(
    path: Path, *, kind: str = "agent", by: By | None = None, name: str = "", first_frame: int = 1
) -> CocoIndex:
    """The images and categories of a COCO annotation file.

    Args:
        path: the file; its annotations are not needed.
        kind: of label that the categories are.
        by: how images are frames, see `coco_index.index_of`.
        name: of the video where the images are one; the file's name unless given.
        first_frame: number of the first frame in file names.

    Raises:
        DatasetNotFoundError: if there is no such file.
        InputError: if it is damaged, or its images and categories contradict themselves.
    """
    path = Path(path)
    return index_of(
        document(path), shown(str(path)), kind=kind, by=by, name=name or path.stem, first_frame=first_frame
    )


def read_annotations(
    path: Path,
    *,
    kind: str = "agent",
    by: By | None = None,
    name: str = "",
    first_frame: int = 1,
    strict: bool = False,
) -> Scenes:
    """The annotations of a COCO file as Scenes: a box with one label each; crowds are boxes to ignore.

    Every listed image is an annotated frame. Annotations that cannot be taken are in `rejected` with the
    reason: of an unknown image or category, or with a box that is not four finite numbers with a width and
    height from 0 on. Boxes that reach out of their image are kept and counted in `meta.notes["warnings"]`.
    Outlines (`segmentation`) are not read.

    Args:
        path: as `read_index`, like the next four.
        kind: of labels.
        by: how images are frames.
        name: of the video.
        first_frame: in file names.
        strict: anything rejected is an error.

    Raises:
        DatasetNotFoundError: if there is no such file.
        InputError: if it is damaged, or an id stands twice or is no whole number.
        FindingsError: under `strict`, if anything was rejected.
    """
    path = Path(path)
    where, content = shown(str(path)), document(Path(path))
    index = index_of(content, where, kind=kind, by=by, name=name or path.stem, first_frame=first_frame)
    listed = a_list(content.get("annotations"), where, "'annotations'")
    seen: set[int] = set()
    for number, row in enumerate(listed):
        held = an_object(row, where, f"annotation {number}")
        mark = whole(held.get("id"), 0, _LARGEST)
        if mark is None or mark in seen:
            told = "stands twice" if mark is not None else "is no whole number from 0 on"
            raise InputError(f"id {quoted(held.get('id'))} of annotation {number} {told}", where=where)
        seen.add(mark)
    findings = Findings()
    rows = _taken(listed, index, _annotation, path.name, findings)
    boxes, labels = _tables(rows, index)
    outside = _outside(boxes, index)
    findings.warn("a box reaches out of its image", where, outside)
    scenes = Scenes(
        videos=index.videos(),
        frames=index.frames(truth=True),
        boxes=boxes.with_columns(ignore=pl.Series(rows.crowd, dtype=pl.Boolean)),
        labels=labels,
        rejected=findings.table(),
        meta=_meta(index, findings),
    )
    if strict and len(scenes.rejected):
        reasons = "; ".join(scenes.rejected["reason"].head(5).to_list())
        raise FindingsError(f"{where}: {len(scenes.rejected)} annotations were rejected: {reasons}")
    return scenes


def read_results(path: Path, index: CocoIndex, *, strict: bool = False) -> Predictions:
    """A list of COCO results as Predictions: a box with a score, and one label with the same score, each.

    Boxes come by videos and frames, in the order of the file within a frame. Results that cannot be taken are
    in `rejected` with the reason: of an unknown image or category, with a box that is not four finite numbers
    with a width and height from 0 on, or a score that is no number in [0, 1].

    Args:
        path: a file with a list of objects with image_id, category_id, bbox (left, top, width, height in
            pixels) and score.
        index: what the ids stand for, see `read_index`.
        strict: anything rejected is an error.

    Raises:
        DatasetNotFoundError: if there is no such file.
        InputError: if it is damaged or holds no list.
        FindingsError: under `strict`, if anything was rejected.
    """
    path = Path(path)
    where = shown(str(path))
    listed = a_list(document(path), where, "a file of COCO results")
    findings = Findings()
    rows = _taken(listed, index, _result, path.name, findings)
    boxes, _ = _tables(rows, index)
    score = pl.Series("score", rows.score, dtype=pl.Float64)
    videos = index.videos()
    order = pl.Enum(videos["video"].to_list())
    places = boxes.with_columns(score, label=pl.Series(rows.label, dtype=pl.Int64))
    places = places.sort(pl.col("video").cast(order), "frame", maintain_order=True)
    places = places.with_columns(box=pl.int_range(pl.len()))
    predictions = Predictions(
        videos=videos,
        frames=index.frames(truth=False),
        boxes=places.drop("label"),
        labels=places.select("box", kind=pl.lit(index.kind), label="label", score="score"),
        rejected=findings.table(),
        meta=_meta(index, findings),
    )
    if strict:
        refuse_findings(where, predictions)
    return predictions


def _taken(
    listed: list[Any],
    index: CocoIndex,
    take: Callable[[dict[str, Any], _Rows], str],
    file: str,
    findings: Findings,
) -> _Rows:
    """The rows whose image, category and box are right; the others are refused with the first reason."""
    rows = _Rows()
    place_of = {category: place for place, category in enumerate(index.categories)}
    for number, row in enumerate(listed):
        reason = _reason(row, index, rows, place_of, take)
        if reason:
            rows.refused.append((f"entry {number}", reason))
    findings.read["boxes"] += len(listed)
    refused = pl.DataFrame(rows.refused, schema=["item", "reason"], orient="row")
    findings.reject_rows("boxes", refused.with_columns(file=pl.lit(shown(file)), line=pl.lit(None, pl.Int64)))
    return rows


def _reason(
    row: Any,
    index: CocoIndex,
    rows: _Rows,
    place_of: dict[int, int],
    take: Callable[[dict[str, Any], _Rows], str],
) -> str:
    """Why a row is refused; where it is not, it stands in `rows` and the reason is empty."""
    if not isinstance(row, dict):
        return f"expected an object, found {kind_of(row)}"
    image, category, box = row.get("image_id"), row.get("category_id"), row.get("bbox")
    if type(image) is not int or image not in index.images:
        return f"image_id {quoted(image)} is none of the images"
    if type(category) is not int or category not in place_of:
        return f"category_id {quoted(category)} is none of the categories"
    if not isinstance(box, list) or len(box) != 4 or not all(map(_finite, box)):
        return f"bbox {_told(box)} is not four finite numbers"
    if box[2] < 0 or box[3] < 0:
        return f"bbox {_told(box)} has a negative width or height"
    reason = take(row, rows)
    if not reason:
        left, top, width, height = map(float, box)
        rows.place.append(index.images[image])
        rows.box.append((left, top, left + width, top + height))
        rows.label.append(place_of[category])
    return reason


def _annotation(row: dict[str, Any], rows: _Rows) -> str:
    rows.crowd.append(row.get("iscrowd") in (1, True))
    return ""


def _result(row: dict[str, Any], rows: _Rows) -> str:
    score: Any = row.get("score")
    if type(score) not in (int, float) or not 0 <= score <= 1:
        return f"score {quoted(score)} is no number in [0, 1]"
    rows.score.append(float(score))
    return ""


def _finite(value: Any) -> bool:
    """Whether a value is a number that a box can be made of."""
    return type(value) in (int, float) and abs(value) <= _FAR


def _told(box: Any) -> str:
    return f"[{', '.join(quoted(value) for value in box[:6])}]" if isinstance(box, list) else quoted(box)


def _tables(rows: _Rows, index: CocoIndex) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Boxes in the order of the file, and the label of each."""
    place = pl.DataFrame(rows.place, schema={"video": pl.String, "frame": pl.Int64}, orient="row")
    corners = pl.DataFrame(rows.box, schema=dict.fromkeys(CORNERS, pl.Float64), orient="row")
    boxes = pl.concat([place, corners], how="horizontal").with_columns(box=pl.int_range(pl.len()))
    labels = pl.DataFrame({"box": boxes["box"], "label": rows.label}, schema={"box": int, "label": int})
    return boxes, labels.with_columns(kind=pl.lit(index.kind))


def _outside(boxes: pl.DataFrame, index: CocoIndex) -> int:
    """How many boxes reach out of their image, where its size is known."""
    sized = boxes.join(index.videos(), on="video", how="left").filter(pl.col("width_px").is_not_null())
    left = (pl.col("x1_px") < 0) | (pl.col("y1_px") < 0)
    return len(
        sized.filter(left | (pl.col("x2_px") > pl.col("width_px")) | (pl.col("y2_px") > pl.col("height_px")))
    )


def _meta(index: CocoIndex, findings: Findings) -> Meta:
    return Meta(
        "COCO",
        vocabularies={index.kind: index.labels},
        rows_read=dict(findings.read),
        notes=findings.notes(),
    )
