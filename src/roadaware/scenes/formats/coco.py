"""COCO JSON read: annotations as Scenes, lists of results as Predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
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
_UNNAMED = -1
_PRODUCT = "sides_px2"
"""Width times height as the file has them, which those of the corners may miss in the last digit."""
_FLAGS = {"area_px2": pl.Float64, "ignore": pl.Boolean, "crowd": pl.Boolean, "corner_case": pl.Boolean}


@dataclass
class _Rows:
    """What was taken: one entry per box, and the rows that were refused."""

    place: list[tuple[str, int]] = field(default_factory=list)
    box: list[tuple[float, ...]] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    flags: list[tuple[float, bool, bool, bool | None]] = field(default_factory=list)
    odd: Counter[str] = field(default_factory=Counter)
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
    Outlines (`segmentation`) are not read. Boxes have `sides_px2` (width times height) and `area_px2` as the
    file gives them, `ignore`, `crowd`, and `corner_case` where the file says it of any.

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
    scenes = scenes_of(a_list(content.get("annotations"), where, "'annotations'"), index, path.name)
    if strict and len(scenes.rejected):
        reasons = "; ".join(scenes.rejected["reason"].head(5).to_list())
        raise FindingsError(f"{where}: {len(scenes.rejected)} annotations were rejected: {reasons}")
    return scenes


def scenes_of(listed: list[Any], index: CocoIndex, file: str, *, unnamed: bool = False) -> Scenes:
    """Annotations as Scenes, see `read_annotations`.

    Args:
        listed: the annotations.
        index: of their images and categories.
        file: where they stand, for what is rejected.
        unnamed: whether an annotation may name no category (null): a box without a label.

    Raises:
        InputError: if an annotation is no object, or an id stands twice or is no whole number.
    """
    seen: set[int] = set()
    for number, row in enumerate(listed):
        held = an_object(row, index.where, f"annotation {number}")
        mark = whole(held.get("id"), 0, _LARGEST)
        if mark is None or mark in seen:
            told = "stands twice" if mark is not None else "is no whole number from 0 on"
            raise InputError(f"id {quoted(held.get('id'))} of annotation {number} {told}", where=index.where)
        seen.add(mark)
    findings = Findings()
    places = _places(index) | ({None: _UNNAMED} if unnamed else {})
    rows = _taken(listed, index, _annotation, file, findings, places)
    boxes, labels = _tables(rows, index)
    findings.warn("a box reaches out of its image", index.where, _outside(boxes, index))
    for what, count in rows.odd.items():
        findings.warn(what, index.where, count)
    flags = pl.DataFrame(rows.flags, schema=_FLAGS, orient="row")
    if not flags["corner_case"].count():
        flags = flags.drop("corner_case")
    return Scenes(
        videos=index.videos(),
        frames=index.frames(truth=True),
        boxes=pl.concat([boxes, flags], how="horizontal"),
        labels=labels,
        rejected=findings.table(),
        meta=_meta(index, findings),
    )


def read_results(
    path: Path, index: CocoIndex, *, strict: bool = False, agnostic: bool = False
) -> Predictions:
    """A list of COCO results as Predictions: a box with a score, and one label with the same score, each.

    Boxes come by videos and frames, in the order of the file within a frame. Results that cannot be taken are
    in `rejected` with the reason: of an unknown image or category, with a box that is not four finite numbers
    with a width and height from 0 on, or a score that is no number in [0, 1].

    Args:
        path: a file with a list of objects with image_id, category_id, bbox (left, top, width, height in
            pixels) and score.
        index: what the ids stand for, see `read_index`.
        strict: anything rejected is an error.
        agnostic: what the results call their boxes does not matter: any category_id or none, and no labels.

    Raises:
        DatasetNotFoundError: if there is no such file.
        InputError: if it is damaged or holds no list.
        FindingsError: under `strict`, if anything was rejected.
    """
    path = Path(path)
    where = shown(str(path))
    listed = a_list(document(path), where, "a file of COCO results")
    findings = Findings()
    places = None if agnostic else _places(index)
    rows = _taken(listed, index, _result, path.name, findings, places)
    boxes, _ = _tables(rows, index)
    score = pl.Series("score", rows.score, dtype=pl.Float64)
    videos = index.videos()
    order = pl.Enum(videos["video"].to_list())
    claimed = boxes.with_columns(score, label=pl.Series(rows.label, dtype=pl.Int64))
    claimed = claimed.sort(pl.col("video").cast(order), "frame", maintain_order=True)
    claimed = claimed.with_columns(box=pl.int_range(pl.len()))
    named = claimed.filter(pl.col("label") != _UNNAMED)
    predictions = Predictions(
        videos=videos,
        frames=index.frames(truth=False),
        boxes=claimed.drop("label"),
        labels=named.select("box", kind=pl.lit(index.kind), label="label", score="score"),
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
    place_of: dict[Any, int] | None,
) -> _Rows:
    """The rows whose image, category and box are right; the others are refused with the first reason."""
    rows = _Rows()
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
    place_of: dict[Any, int] | None,
    take: Callable[[dict[str, Any], _Rows], str],
) -> str:
    """Why a row is refused; where it is not, it stands in `rows` and the reason is empty."""
    if not isinstance(row, dict):
        return f"expected an object, found {kind_of(row)}"
    image, category, box = row.get("image_id"), row.get("category_id"), row.get("bbox")
    if type(image) is not int or image not in index.images:
        return f"image_id {quoted(image)} is none of the images"
    if place_of is not None and (type(category) not in (int, NoneType) or category not in place_of):
        return f"category_id {quoted(category)} is none of the categories"
    if not isinstance(box, list) or len(box) != 4 or not all(map(_finite, box)):
        return f"bbox {_told(box)} is not four finite numbers"
    if box[2] < 0 or box[3] < 0:
        return f"bbox {_told(box)} has a negative width or height"
    reason = take(row, rows)
    if not reason:
        left, top, width, height = map(float, box)
        rows.place.append(index.images[image])
        rows.box.append((left, top, left + width, top + height, width * height))
        rows.label.append(_UNNAMED if place_of is None else place_of[category])
    return reason


def _places(index: CocoIndex) -> dict[Any, int]:
    """Category to its place in the vocabulary."""
    return {category: place for place, category in enumerate(index.categories)}


def _annotation(row: dict[str, Any], rows: _Rows) -> str:
    area: Any = row.get("area")
    corner: Any = row.get("corner_case")
    if not (_finite(area) and area >= 0):
        rows.odd["an area that is no number from 0 on; width times height instead"] += "area" in row
        area = float(row["bbox"][2]) * float(row["bbox"][3])
    if corner not in (None, 0, 1):
        rows.odd["a corner_case that is not true or false; left open"] += 1
        corner = None
    crowd = row.get("iscrowd") in (1, True)
    ignored = crowd or row.get("ignore") in (1, True)
    rows.flags.append((float(area), ignored, crowd, None if corner is None else bool(corner)))
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
    corners = pl.DataFrame(rows.box, schema=dict.fromkeys((*CORNERS, _PRODUCT), pl.Float64), orient="row")
    boxes = pl.concat([place, corners], how="horizontal").with_columns(box=pl.int_range(pl.len()))
    labels = pl.DataFrame({"box": boxes["box"], "label": rows.label}, schema={"box": int, "label": int})
    return boxes, labels.filter(pl.col("label") != _UNNAMED).with_columns(kind=pl.lit(index.kind))


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
