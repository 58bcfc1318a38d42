"""COCO JSON: annotations as Scenes, lists of results as Predictions, read and written."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import NoneType
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.arrays import Ints
from roadaware.datasets.issues import Findings
from roadaware.errors import FindingsError, InputError, UsageError
from roadaware.formats.known_scenes import build_absent_error, refuse_findings
from roadaware.io.files import read_regular, write_atomically
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_list,
    ensure_object,
    escape_surrogates,
    format_value,
    parse,
    parse_int,
)
from roadaware.io.sources import is_outside, to_printable
from roadaware.scenes.dense_scores import Layout, convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

# Images and categories of a COCO file: which frame each image is, and which label each category.

By = Literal["images", "pictures", "folders", "video_ids", "auto"]

_LIMIT = 1 << 31
_LARGEST_SIDE = 1 << 20
_NUMBERED = re.compile(r"(?:.*?)(\d{1,15})\.[^./]*$")


_FOLDER_NAME = re.compile(r"(.*[^/])/(?:.*?)(?<!\d)(\d{1,9})\.[^./]+", re.DOTALL | re.ASCII)


def choose_by(content: Any, where: str) -> tuple[By, int]:
    """How the images of a COCO document are frames, and the number of the first one in file names (0 where one has it).

    They are those of its `videos`, else of folders where every file name ends in `<video>/<number>.<ending>`, with a
    number of at most nine digits that no other file of the folder has, else of one video.

    Args:
        content: what `read_json_document` gave.
        where: names the file in errors.

    Raises:
        InputError: if it has no list of images.
    """
    held = ensure_object(content, where, "a COCO file")
    images = ensure_list(held.get("images"), where, "'images'")
    files = [each.get("file_name") for each in images if isinstance(each, dict)]
    # On Windows tools write folders with a backslash.
    names = [file.replace("\\", "/") if isinstance(file, str) else "" for file in files]
    numbers = [_FOLDER_NAME.fullmatch(name) for name in names]
    places = {(match[1], int(match[2])) for match in numbers if match}
    # One file may be listed twice; two files are never one frame.
    in_folders = bool(files) and all(numbers) and len(places) == len(set(files))
    by: By = "video_ids" if "videos" in held else "folders" if in_folders else "images"
    return by, int(not any(frame == 0 for _, frame in places))


@dataclass(frozen=True)
class CocoIndex:
    """Images and categories of a COCO file.

    Args:
        images: image id to (video, frame).
        categories: category id to label, in the order of the file.
        sizes: video to (width, height) in pixels, where all of its images agree.
        files: (video, frame) to the image's file name, where it has one.
        kind: of the labels.
        where: the file, for messages.
    """

    images: Mapping[int, tuple[str, int]]
    categories: Mapping[int, str]
    sizes: Mapping[str, tuple[int, int] | None] = field(default_factory=dict)
    files: Mapping[tuple[str, int], str] = field(default_factory=dict)
    kind: str = "agent"
    where: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """The vocabulary: names of the categories in the order of the file."""
        return tuple(self.categories.values())

    @property
    def ids(self) -> dict[tuple[str, int], int]:
        """The image of each (video, frame)."""
        return {place: image for image, place in self.images.items()}

    def videos(self) -> pl.DataFrame:
        """The table of videos."""
        sizes = [self.sizes.get(video) or (None, None) for video in self._names()]
        return pl.DataFrame(
            {
                "video": self._names(),
                "width_px": [width for width, _ in sizes],
                "height_px": [height for _, height in sizes],
            },
            schema={"video": pl.String, "width_px": pl.Int64, "height_px": pl.Int64},
        )

    def frames(self, *, truth: bool) -> pl.DataFrame:
        """The table of frames, by video and frame; those of ground truth are annotated.

        Args:
            truth: whether it is for Scenes.
        """
        order = {video: place for place, video in enumerate(self._names())}
        places = sorted(self.images.values(), key=lambda place: (order[place[0]], place[1]))
        table = pl.DataFrame(places, schema={"video": pl.String, "frame": pl.Int64}, orient="row")
        if self.files:
            table = table.with_columns(pl.Series("file_name", [self.files.get(place) for place in places]))
        return table.with_columns(annotated=pl.lit(value=True)) if truth else table

    def _names(self) -> list[str]:
        return list(dict.fromkeys(video for video, _ in self.images.values()))


def read_json_document(path: Path) -> Any:
    """Parse a JSON file.

    Raises:
        DatasetNotFoundError: if there is no file.
        InputError: if it is not one strict JSON document.
    """
    where = to_printable(str(path))
    try:
        data = read_regular(path, limit=_LIMIT)
    except FileNotFoundError:
        raise build_absent_error(path, "a COCO file, found none") from None
    return parse(decode(data, where), where)


def build_coco_index(
    content: Any,
    where: str,
    *,
    kind: str = "agent",
    by: By | None = None,
    name: str = "",
    first_frame: int = 1,
    findings: Findings | None = None,
) -> CocoIndex:
    """The images and categories of a COCO document.

    Args:
        content: what `read_json_document` gave.
        where: names the file in errors.
        kind: of label that the categories are.
        by: how images are frames. `images`: the set is one video called `name`, its frames the images in
            their order. `pictures`: each image is a video of one frame, called as its file. `folders`: a
            file name ends in `<video>/<number>.<ending>`. `video_ids`: each image has `video_id` and
            `frame_id` (from 0), and `videos` the names. `auto`: as `choose_by` says, with its first frame. By
            default `video_ids` if there is a list `videos`, else `images`.
        name: of the video where the set is one.
        first_frame: number of the first frame in file names.
        findings: takes images that cannot be taken, one by one; without it the first of them is an error.

    Raises:
        InputError: if an id is no whole number, stands twice or names nothing, an image is no frame, or a
            file name leads out of its folder.
    """
    held = ensure_object(content, where, "a COCO file")
    categories = _categories(held, where)
    rows = ensure_list(held.get("images"), where, "'images'")
    if by == "auto":
        by, first_frame = choose_by(content, where)
    by = by or ("video_ids" if "videos" in held else "images")
    videos = _videos(held, where) if by == "video_ids" else {}
    images: dict[int, tuple[str, int]] = {}
    places: dict[tuple[str, int], int] = {}
    sizes: dict[str, set[tuple[int, int] | None]] = {}
    files: dict[tuple[str, int], str] = {}

    def take(row_number: int, given: Any) -> None:
        row = ensure_object(given, where, f"image {row_number}")
        image = _id(row, "id", where, f"image {row_number}")
        file = _file(row, where, image)
        if by == "images":
            place = (name or "images", row_number)
        elif by == "pictures":
            place = (file or f"image {image}", 0)
        elif by == "folders":
            place = _from_name(file, first_frame, where, image)
        else:
            place = _from_ids(row, videos, where, image)
        if image in images or place in places:
            spot = f"{'file' if by == 'pictures' else f'frame {place[1]} of'} {to_printable(place[0])}"
            what = f"image id {image}" if image in images else spot
            hint = "by='images' takes each for a frame of its own" if by == "folders" else None
            raise InputError(f"{what} stands twice among the images", where=where, hint=hint)
        size = _size(row, where, image)
        images[image], places[place] = place, image
        sizes.setdefault(place[0], set()).add(size)
        if file:
            files[place] = file

    for row_number, row in enumerate(rows):
        try:
            take(row_number, row)
        except InputError as error:
            if findings is None:
                raise
            findings.reject("frames", where, f"image {row_number}", error.message, rows=0)
    if findings is not None:
        findings.read["frames"] += len(rows)
    same = {video: next(iter(found)) if len(found) == 1 else None for video, found in sizes.items()}
    return CocoIndex(images, categories, same, files, kind, where)


def _categories(held: Mapping[str, Any], where: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for number, row in enumerate(ensure_list(held.get("categories"), where, "'categories'")):
        row = ensure_object(row, where, f"category {number}")
        category, label = _id(row, "id", where, f"category {number}"), row.get("name")
        if not isinstance(label, str):
            raise InputError(f"the name of category {category} is {describe_type(label)}", where=where)
        if category in found or escape_surrogates(label) in found.values():
            raise InputError(f"category {category}, {format_value(label)}, stands twice", where=where)
        found[category] = escape_surrogates(label)
    return found


def _videos(held: Mapping[str, Any], where: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for number, row in enumerate(ensure_list(held.get("videos"), where, "'videos'")):
        row = ensure_object(row, where, f"video {number}")
        video, name = _id(row, "id", where, f"video {number}"), row.get("name")
        if not isinstance(name, str) or video in found or escape_surrogates(name) in found.values():
            raise InputError(f"video {video} stands twice or has no name of its own", where=where)
        found[video] = escape_surrogates(name)
    return found


def _id(row: Mapping[str, Any], key: str, where: str, what: str) -> int:
    value = parse_int(row.get(key), 0, _LARGEST)
    if value is None:
        text = format_value(row[key]) if key in row else "missing"
        raise InputError(
            f"'{key}' of {what} should be a whole number from 0 on and is {text}",
            where=where,
            hint="ids are numbers, not texts",
        )
    return value


def _file(row: Mapping[str, Any], where: str, image: int) -> str:
    file = row.get("file_name", "")
    if not isinstance(file, str):
        raise InputError(f"the file name of image {image} is {describe_type(file)}", where=where)
    if is_outside(file):
        raise InputError(
            f"the file name of image {image}, {format_value(file)}, leads out of its folder",
            where=where,
            hint="file names are relative to the folder of the images",
        )
    return escape_surrogates(file)


def _size(row: Mapping[str, Any], where: str, image: int) -> tuple[int, int] | None:
    given = [row.get("width"), row.get("height")]
    if given == [None, None]:
        return None
    width, height = (parse_int(side, 1, _LARGEST_SIDE) for side in given)
    if width is None or height is None:
        raise InputError(
            f"image {image} is {format_value(given[0])} x {format_value(given[1])} pixels", where=where
        )
    return width, height


def _from_name(file: str, first_frame: int, where: str, image: int) -> tuple[str, int]:
    video, _, last = file.replace("\\", "/").rpartition("/")
    found = _NUMBERED.fullmatch(last)
    if not video or found is None or int(found[1]) < first_frame:
        raise InputError(
            f"the file name of image {image}, {format_value(file)}, is not <video>/<number>.<ending>, "
            f"numbered from {first_frame}",
            where=where,
            hint="say how images are frames: by='images' takes them as one set",
        )
    return video, int(found[1]) - first_frame


def _from_ids(row: Mapping[str, Any], videos: Mapping[int, str], where: str, image: int) -> tuple[str, int]:
    video = _id(row, "video_id", where, f"image {image}")
    if video not in videos:
        raise InputError(f"image {image} is of video {video}, which 'videos' does not list", where=where)
    return videos[video], _id(row, "frame_id", where, f"image {image}")


def build_frame_index(places: Sequence[tuple[str, int]], labels: Sequence[str], kind: str) -> CocoIndex:
    """An index of frames in their order: images and categories are numbered from 1.

    Args:
        places: (video, frame) of each image.
        labels: of the categories.
        kind: of the labels.
    """
    return CocoIndex(
        dict(enumerate(places, 1)), dict(enumerate(labels, 1)), kind=kind, where="the frames of the scenes"
    )


# The largest whole number that JSON keeps exact for readers that hold numbers as doubles.
_LARGEST = (1 << 53) - 1
_FAR = 1e9
_UNNAMED = -1
_PRODUCT = "sides_px2"
"""Width times height as the file has them, which those of the corners may miss in the last digit."""
_FLAGS = {
    "area_px2": pl.Float64,
    "ignore": pl.Boolean,
    "crowd": pl.Boolean,
    "corner_case": pl.Boolean,
    "track": pl.Int64,
}


@dataclass
class _Rows:
    """Rows read: a value per box in each list, and the refused rows.

    Args:
        image: ids.
        sides: left, top, width and height.
        label: places in the vocabulary.
        score: of results.
        flags: the columns `_FLAGS` of annotations.
        odd: what was passed over, to how often.
        refused: which entry, and why.
    """

    image: list[int] = field(default_factory=list)
    sides: list[list[float]] = field(default_factory=list)
    label: list[int] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    flags: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in _FLAGS})
    odd: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[str, str]] = field(default_factory=list)


def read_index(
    path: Path, *, kind: str = "agent", by: By | None = None, name: str = "", first_frame: int = 1
) -> CocoIndex:
    """The images and categories of a COCO annotation file.

    Args:
        path: the file; its annotations are not needed.
        kind: of label that the categories are.
        by: how images are frames, see `coco_index.build_coco_index`.
        name: of the video where the images are one (default: the file's name).
        first_frame: number of the first frame in file names.

    Raises:
        DatasetNotFoundError: if there is no such file.
        InputError: if it is damaged, or its images and categories contradict themselves.
    """
    path = Path(path)
    return build_coco_index(
        read_json_document(path),
        to_printable(str(path)),
        kind=kind,
        by=by,
        name=name or path.stem,
        first_frame=first_frame,
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
    reason: with an id that is none or stands twice, of an unknown image or category, or with a box that is not four finite
    numbers with a width and height from 0 on. Boxes that reach out of their image are kept and counted in
    `meta.notes["warnings"]`. Outlines (`segmentation`) are not read. Boxes have `sides_px2` (width times height) and
    `area_px2` as the file gives them, `ignore`, `crowd`, and `corner_case` where the file says it of any.

    Args:
        path: as `read_index`, like the next four.
        kind: of labels.
        by: how images are frames.
        name: of the video.
        first_frame: in file names.
        strict: anything rejected is an error.

    Raises:
        DatasetNotFoundError: if there is no such file.
        InputError: if it is damaged, or an id of an image or category stands twice or is no whole number.
        FindingsError: under `strict`, if anything was rejected.
    """
    path = Path(path)
    where, content = to_printable(str(path)), read_json_document(Path(path))
    index = build_coco_index(
        content, where, kind=kind, by=by, name=name or path.stem, first_frame=first_frame
    )
    scenes = build_coco_scenes(
        ensure_list(content.get("annotations"), where, "'annotations'"), index, path.name
    )
    if strict and len(scenes.rejected):
        reasons = "; ".join(scenes.rejected["reason"].head(5).to_list())
        raise FindingsError(f"{where}: {len(scenes.rejected)} annotations were rejected: {reasons}")
    return scenes


def build_coco_scenes(
    listed: list[Any] | Callable[[], Iterable[list[Any]]],
    index: CocoIndex,
    file: str,
    *,
    unnamed: bool = False,
) -> Scenes:
    """Annotations as Scenes, see `read_annotations`.

    Args:
        listed: the annotations, or what gives them in parts, each time from the first on.
        index: of their images and categories.
        file: where they stand, for what is rejected.
        unnamed: whether an annotation may name no category (null): a box without a label.

    Returns:
        the scenes; an annotation that is no object, whose id stands twice or is no whole number, or that cannot be taken
        otherwise is in `rejected`.
    """
    parts = listed if callable(listed) else lambda: (listed,)
    ids, places = _Ids(), _places(index) | ({None: _UNNAMED} if unnamed else {})
    if callable(listed):
        held, findings, odd = _take_parts(parts(), index, file, places, {}, ids)
        # Whether an id stands twice is known at the end: then, which is rare, what was read in parts is read again.
        if wrong := ids.find_wrong():
            held, findings, odd = _take_parts(parts(), index, file, places, wrong, None)
    else:
        ids.add(listed)
        held, findings, odd = _take_parts(parts(), index, file, places, ids.find_wrong(), None)
    boxes, labels = held
    # How many boxes reach out of their image, where its size is known
    sized = boxes.join(index.videos(), on="video", how="left").filter(pl.col("width_px").is_not_null())
    left = (pl.col("x1_px") < 0) | (pl.col("y1_px") < 0)
    findings.warn(
        "a box reaches out of its image",
        index.where,
        len(
            sized.filter(
                left | (pl.col("x2_px") > pl.col("width_px")) | (pl.col("y2_px") > pl.col("height_px"))
            )
        ),
    )
    for what, count in odd.items():
        findings.warn(what, index.where, count)
    if not boxes["corner_case"].count():
        boxes = boxes.drop("corner_case")
    boxes, tubes = _follow(boxes, index.where, findings)
    return Scenes(
        videos=index.videos(),
        frames=index.frames(truth=True),
        boxes=boxes,
        tubes=tubes,
        labels=labels,
        rejected=findings.table(),
        meta=_meta(index, findings),
    )


def _take_parts(
    parts: Iterable[list[Any]],
    index: CocoIndex,
    file: str,
    places: dict[Any, int],
    wrong: Mapping[int, str],
    ids: _Ids | None,
) -> tuple[tuple[pl.DataFrame, pl.DataFrame], Findings, Counter[str]]:
    """Boxes with their flags, and labels, of annotations part by part; what was found, and what was odd how often."""
    findings, odd, known = Findings(), Counter[str](), _ImagePlaces(index)
    boxes, labels, start, count = [], [], 0, 0
    for part in parts:
        if ids is not None:
            ids.add(part)
        rows = _taken(part, index, _annotation, file, findings, places, wrong, start)
        own, words = _tables(rows, known, count)
        boxes.append(pl.concat([own, pl.DataFrame(rows.flags, schema=_FLAGS)], how="horizontal"))
        labels.append(words)
        odd.update(rows.odd)
        start, count = start + len(part), count + len(own)
    if not boxes:
        return _take_parts([[]], index, file, places, wrong, None)
    return (pl.concat(boxes), pl.concat(labels)), findings, odd


def _follow(boxes: pl.DataFrame, where: str, findings: Findings) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Boxes whose `track` became the tube that it names, and these tubes; a track counts within its video."""
    nothing = pl.DataFrame(schema={"tube": pl.Int64, "video": pl.String, "name": pl.String})
    if not boxes["track"].count():
        return boxes.drop("track"), nothing
    again = pl.col("track").is_not_null() & ~pl.struct("video", "frame", "track").is_first_distinct()
    findings.warn(
        "a second box of a track in its frame, which is left without one",
        where,
        boxes.select(again.sum()).item(),
    )
    boxes = boxes.with_columns(track=pl.when(again).then(None).otherwise(pl.col("track")))
    tubes = boxes.filter(pl.col("track").is_not_null()).select("video", "track").unique(maintain_order=True)
    tubes = tubes.with_columns(tube=pl.int_range(pl.len(), dtype=pl.Int64))
    found = boxes.join(tubes, on=["video", "track"], how="left", maintain_order="left").drop("track")
    return found, tubes.select("tube", "video", name=pl.col("track").cast(pl.String))


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
    where = to_printable(str(path))
    listed = ensure_list(read_json_document(path), where, "a file of COCO results")
    findings = Findings()
    places = None if agnostic else _places(index)
    rows = _taken(listed, index, _result, path.name, findings, places)
    boxes, _ = _tables(rows, _ImagePlaces(index))
    score = pl.Series("score", rows.score, dtype=pl.Float64)
    videos = index.videos()
    order = pl.Enum(videos["video"].to_list())
    predicted = boxes.with_columns(score, label=pl.Series(rows.label, dtype=pl.Int64))
    predicted = predicted.sort(pl.col("video").cast(order), "frame", maintain_order=True)
    predicted = predicted.with_columns(box=pl.int_range(pl.len()))
    named = predicted.filter(pl.col("label") != _UNNAMED)
    predictions = Predictions(
        videos=videos,
        frames=index.frames(truth=False),
        boxes=predicted.drop("label"),
        labels=named.select("box", kind=pl.lit(index.kind), label="label", score="score"),
        rejected=findings.table(),
        meta=_meta(index, findings),
    )
    if strict:
        refuse_findings(where, predictions)
    return predictions


_CHUNK = 20_000


class _Ids:
    """Ids of annotations, kept as numbers, which says of millions whether one stands twice."""

    def __init__(self) -> None:
        self.count = 0
        self.plain: list[Ints] = []
        self.numbers: list[Ints] = []
        self.odd: dict[int, str] = {}

    def add(self, listed: list[Any]) -> None:
        """Take the ids of the next annotations; those that are no objects are refused for that."""
        ids: list[Any] = [each.get("id") if type(each) is dict else _NO_OBJECT for each in listed]
        numbers = np.arange(self.count, self.count + len(ids), dtype=np.int64)
        if not (set(map(type, ids)) <= {int} and (not ids or 0 <= min(ids) <= max(ids) <= _LARGEST)):
            good = [parse_int(mark, 0, _LARGEST) is not None for mark in ids]
            for number, mark, fits in zip(numbers.tolist(), ids, good, strict=True):
                if not fits and mark is not _NO_OBJECT:
                    text = f"id {format_value(mark)} of annotation {number} is no whole number from 0 on"
                    self.odd[number] = text
            numbers = numbers[np.array(good, dtype=np.bool_)]
            ids = [mark for mark, fits in zip(ids, good, strict=True) if fits]
        self.plain.append(np.array(ids, dtype=np.int64))
        self.numbers.append(numbers)
        self.count += len(listed)

    def find_wrong(self) -> dict[int, str]:
        """Why the id of an annotation is none, by its place in the list; the first of two that are the same is right."""
        plain = np.concatenate([np.zeros(0, np.int64), *self.plain])
        first = np.unique(plain, return_index=True)[1]
        if len(first) == len(plain):
            return self.odd
        again = np.ones(len(plain), dtype=np.bool_)
        again[first] = False
        numbers = np.concatenate(self.numbers)
        found = {
            number: f"id {mark} of annotation {number} stands twice"
            for number, mark in zip(numbers[again].tolist(), plain[again].tolist(), strict=True)
        }
        return dict(sorted({**self.odd, **found}.items()))


_NO_OBJECT = object()


def _taken(
    listed: list[Any],
    index: CocoIndex,
    take: Callable[[dict[str, Any], _Rows], str],
    file: str,
    findings: Findings,
    place_of: dict[Any, int] | None,
    wrong: Mapping[int, str] | None = None,
    first: int = 0,
) -> _Rows:
    """The rows whose image, category and box are right; the others are refused with the first reason.

    `first` is the number of the first of them among all.
    """
    rows = _Rows()
    for start in range(0, len(listed), _CHUNK):
        chunk = listed[start : start + _CHUNK]
        # Nearly all of them are plain, and those are taken together; one that is not takes its chunk one by one.
        if (
            not wrong
            and take is _annotation
            and place_of is not None
            and _take_plain(chunk, index, rows, place_of)
        ):
            continue
        for number, row in enumerate(chunk, first + start):
            reason = (wrong or {}).get(number) or _reason(row, index, rows, place_of, take)
            if reason:
                rows.refused.append((f"entry {number}", reason))
    findings.read["boxes"] += len(listed)
    refused = pl.DataFrame(rows.refused, schema=["item", "reason"], orient="row")
    findings.reject_rows(
        "boxes", refused.with_columns(file=pl.lit(to_printable(file)), line=pl.lit(None, pl.Int64))
    )
    return rows


def _take_plain(chunk: list[Any], index: CocoIndex, rows: _Rows, place_of: dict[Any, int]) -> bool:
    """Whether annotations are plain, each with a box of four numbers and nothing odd; then they are taken, else none is."""
    if set(map(type, chunk)) != {dict}:
        return False
    image = [row.get("image_id") for row in chunk]
    category = [row.get("category_id") for row in chunk]
    box = [row.get("bbox") for row in chunk]
    area = [row.get("area", -1) for row in chunk]
    crowd = [row.get("iscrowd", 0) for row in chunk]
    track = [row.get("track_id", row.get("instance_id")) for row in chunk]
    types = (set(map(type, values)) for values in (image, category, area, crowd, track))
    due: tuple[set[type], ...] = ({int}, {int}, {int, float}, {int}, {int, NoneType})
    if not all(found <= kinds for found, kinds in zip(types, due, strict=True)):
        return False
    if any("ignore" in row or "attributes" in row or "corner_case" in row for row in chunk):
        return False
    if set(map(type, box)) != {list} or set(map(len, box)) != {4}:
        return False
    sides = list(chain.from_iterable(box))
    if not set(map(type, sides)) <= {int, float} or not -_FAR <= min(sides) <= max(sides) <= _FAR:
        return False
    # An integer beyond a double would raise in numpy; within these bounds none is.
    numbers = np.array(sides, dtype=np.float64).reshape(-1, 4)
    if (
        numbers[:, 2:].min() < 0
        or not set(crowd) <= {0, 1}
        or not set(image) <= index.images.keys()
        or not set(category) <= place_of.keys()
        or max(area) > _FAR
        or not all(0 <= mark <= _LARGEST for mark in track if mark is not None)
    ):
        return False
    given = np.array(area, dtype=np.float64)
    said = [row.get("area") is not None for row in chunk] if (given < 0).any() else None
    if said is not None and (np.array(said) & (given < 0)).any():
        return False
    flags = [mark == 1 for mark in crowd]
    rows.image += image
    rows.sides += box
    rows.label += [place_of[each] for each in category]
    rows.flags["area_px2"] += np.where(given < 0, numbers[:, 2] * numbers[:, 3], given).tolist()
    rows.flags["ignore"] += flags
    rows.flags["crowd"] += flags
    rows.flags["corner_case"] += [None] * len(chunk)
    rows.flags["track"] += track
    return True


def _reason(
    row: Any,
    index: CocoIndex,
    rows: _Rows,
    place_of: dict[Any, int] | None,
    take: Callable[[dict[str, Any], _Rows], str],
) -> str:
    """Why a row is refused; where it is not, it stands in `rows` and the reason is empty."""
    if not isinstance(row, dict):
        return f"expected an object, found {describe_type(row)}"
    image, category, box = row.get("image_id"), row.get("category_id"), row.get("bbox")
    if type(image) is not int or image not in index.images:
        return f"image_id {format_value(image)} is none of the images"
    if place_of is not None and (type(category) not in (int, NoneType) or category not in place_of):
        return f"category_id {format_value(category)} is none of the categories"
    if not isinstance(box, list) or len(box) != 4 or not all(map(_finite, box)):
        return f"bbox {_format_box(box)} is not four finite numbers"
    if box[2] < 0 or box[3] < 0:
        return f"bbox {_format_box(box)} has a negative width or height"
    reason = take(row, rows)
    if not reason:
        rows.image.append(image)
        rows.sides.append(box)
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
    attributes: Any = row.get("attributes")
    tracks = (row, attributes if isinstance(attributes, dict) else {})
    # CVAT and Supervisely write it among the attributes, MMTracking as `instance_id`.
    named = [held.get(name) for name in ("track_id", "instance_id") for held in tracks]
    track: Any = next((each for each in named if each is not None), None)
    if track is not None and parse_int(track, 0, _LARGEST) is None:
        rows.odd["a track_id that is no whole number from 0 on; the box has none"] += 1
        track = None
    each_value = (float(area), ignored, crowd, None if corner is None else bool(corner), track)
    for values, value in zip(rows.flags.values(), each_value, strict=True):
        values.append(value)
    return ""


def _result(row: dict[str, Any], rows: _Rows) -> str:
    score: Any = row.get("score")
    if type(score) not in (int, float) or not 0 <= score <= 1:
        return f"score {format_value(score)} is no number in [0, 1]"
    rows.score.append(float(score))
    return ""


def _finite(value: Any) -> bool:
    """Whether a value is a number that a box can be made of."""
    return type(value) in (int, float) and abs(value) <= _FAR


def _format_box(box: Any) -> str:
    return (
        f"[{', '.join(format_value(value) for value in box[:6])}]"
        if isinstance(box, list)
        else format_value(box)
    )


class _ImagePlaces:
    """Video and frame of images by their ids, for rows in any number of parts."""

    def __init__(self, index: CocoIndex) -> None:
        self.kind = index.kind
        videos = list(dict.fromkeys(video for video, _ in index.images.values()))
        numbers = {video: number for number, video in enumerate(videos)}
        self.videos = pl.Series(videos, dtype=pl.String)
        self.at = {image: place for place, image in enumerate(index.images)}
        held = [(numbers[video], frame) for video, frame in index.images.values()]
        self.places = np.array(held, np.int64).reshape(-1, 2)


def _tables(rows: _Rows, known: _ImagePlaces, first: int = 0) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Boxes in the order of the file, numbered from `first`, and the label of each."""
    own = known.places[np.fromiter(map(known.at.__getitem__, rows.image), np.int64, len(rows.image))]
    sides = np.array(rows.sides, dtype=np.float64).reshape(-1, 4)
    left, top, width, height = sides.T
    boxes = pl.DataFrame(
        {
            "video": known.videos.gather(own[:, 0]),
            "frame": own[:, 1],
            # The product of the given sides is kept: differences of the corners may miss it in the last digit.
            **dict(
                zip(
                    (*CORNERS, _PRODUCT), (left, top, left + width, top + height, width * height), strict=True
                )
            ),
        }
    ).with_columns(box=pl.int_range(pl.len()) + first)
    labels = pl.DataFrame({"box": boxes["box"], "label": rows.label}, schema={"box": int, "label": int})
    return boxes, labels.filter(pl.col("label") != _UNNAMED).with_columns(kind=pl.lit(known.kind))


def _meta(index: CocoIndex, findings: Findings) -> Meta:
    return Meta(
        "COCO",
        vocabularies={index.kind: index.labels},
        rows_read=dict(findings.read),
        notes=findings.notes(),
    )


# COCO JSON written: predictions as lists of results, ground truth as annotation files.


def write_results(predictions: Predictions, path: Path, index: CocoIndex, *, min_score: float = 0.0) -> int:
    """Write predictions as a list of COCO results: one for each box and label of the index's kind.

    Corners become left, top, width and height in the pixels that they are in: bring predictions to those of the
    ground truth by `scenes.concatenation` before. Dense scores give a result for every label above `min_score`; without
    them scored `labels` do.

    Args:
        predictions: boxes with dense scores or scored labels of the kind.
        path: where to; replaced in one step.
        index: the images and categories to name; `build_scenes_index` makes one where there is none.
        min_score: results must be above this.

    Returns:
        The number of results.

    Raises:
        UsageError: if there are neither dense scores nor labels of the kind, or a frame is no image.
        DiskError: if the disk refuses.
    """
    scored = _collect_scored_boxes(predictions, index).filter(pl.col("score") > min_score)
    ids = index.ids
    places = scored.select("video", "frame").unique(maintain_order=True).rows()
    lost = [place for place in places if place not in ids]
    if lost:
        raise UsageError(f"{len(lost)} frames with predictions are no images of the index, first {lost[:3]}")
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
    write_atomically(Path(path), json.dumps(results, allow_nan=False).encode())
    return len(results)


def build_scenes_index(scenes: Scenes, kind: str = "agent") -> CocoIndex:
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
    return build_frame_index(frames.select("video", "frame").rows(), scenes.meta.vocabularies[kind], kind)


def write_annotations(
    scenes: Scenes, path: Path, index: CocoIndex | None = None, *, outlines: bool = False
) -> int:
    """Write ground-truth boxes as a COCO annotation file that `pycocotools` reads: one annotation per box and label.

    Boxes of frames that are no images, and boxes without a label of the kind, are left out; boxes to ignore
    are crowds. An image has the file name of the index, else `<video>/<frame from 1, five digits>.jpg`.

    Args:
        scenes: ground truth.
        path: where to; replaced in one step.
        index: images and categories (default: those of the scenes).
        outlines: whether the outline of each box is its `segmentation`, without which TIDE reads no annotation.

    Returns:
        The number of annotations.

    Raises:
        DiskError: if the disk refuses.
    """
    index = index or build_scenes_index(scenes)
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
                    **({"segmentation": [_outline(corners)]} if outlines else {}),
                }
            )
    categories = [{"id": number, "name": label} for number, label in index.categories.items()]
    content = {"images": images, "categories": categories, "annotations": annotations}
    write_atomically(Path(path), json.dumps(content, allow_nan=False).encode())
    return len(annotations)


def _bbox(corners: list[float]) -> list[float]:
    left, top, right, bottom = corners
    return [left, top, right - left, bottom - top]


def _outline(corners: list[float]) -> list[float]:
    left, top, right, bottom = corners
    return [left, top, right, top, right, bottom, left, bottom]


def _collect_scored_boxes(predictions: Predictions, index: CocoIndex) -> pl.DataFrame:
    """One row per box and label of the index: video, frame, corners, name and score."""
    boxes = predictions.boxes.with_columns(pl.col("video").cast(pl.String))
    columns = get_score_layout(predictions.meta, "boxes")
    if "scores" in boxes.columns and index.kind in columns.kinds:
        parts = list(_dense_rows(boxes, convert_to_matrix(boxes["scores"], columns.width), columns, index))
        return pl.concat(parts).sort("row", maintain_order=True)
    if "score" not in predictions.labels.columns:
        raise UsageError(f"the predictions have neither dense scores nor scored labels of '{index.kind}'")
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
