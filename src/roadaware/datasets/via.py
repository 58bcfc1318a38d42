"""VIA: boxes drawn with the VGG Image Annotator, versions 1 and 2 (projects, annotations in JSON, csv).

Dutta and Zisserman, "The VIA Annotation Software for Images, Audio and Video", ACM Multimedia 2019.

Layout: JSON files (a project with `_via_img_metadata`, or what stands there alone), or csv files where there is no JSON:
images with regions, each a shape and attributes.
Boxes: shapes `rect` with x, y, width, height in pixels from 0, the right edge excluded. Other shapes are counted.
Class: the only attribute of regions, or one called `class`, `label`, `category`, `type`, `object` or `name`; `attribute` says
which. Of choices with a text beside their key the text is the class. `track` names a track, `ignore` a box to ignore.
Frames: image `VIDEO_NUMBER` or `VIDEO/NUMBER`, as YOLO's; an image without a number is a video of one frame.
Holds: track (any name), class, boxes without either, ignored boxes. Does not: size and rate (`size`, `fps`, `dataset.toml`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from roadaware.datasets import Progress
from roadaware.datasets.box_rows import LONGEST_PATH, BoxSource, build_box_predictions, build_box_scenes
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.facts import Facts, list_facts, read_facts
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file
from roadaware.datasets.relation_tables import format_video_name
from roadaware.errors import InputError, UsageError
from roadaware.io import csv
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_object,
    escape_surrogates,
    format_value,
    iterate_members,
    parse,
    pause_garbage_collection,
)
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

VERSION = 1
PROJECT, ATTRIBUTES = "_via_img_metadata", "_via_attributes"
CLASS_NAMES = ("class", "label", "category", "type", "object", "name")
"""Attributes that say what a region is, the first that there is; compared in lower case."""
TRACK, IGNORE, SCORE = "track", "ignore", "score"
COLUMNS = ("filename", "file_size", "file_attributes", "region_count", "region_id", "region_shape_attributes",
           "region_attributes")  # fmt: skip
_SHAPES = ("circle", "ellipse", "polygon", "polyline", "point")
_SIDES = ("x", "y", "width", "height")
_NUMBERED = re.compile(r"(.+?)[_/](\d{1,9})", re.ASCII | re.DOTALL)
_WANTED = "VIA needs its annotations, files '*.json' or '*.csv' of images with regions,"
_HINT = "Point at the project or the exported annotations of VIA 2 (JSON or csv), or at their folder."
_FAR = 1e9


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON or csv file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    suffix = ".csv" if path.name.lower().endswith(".csv") else ".json"
    return find_source(path, lambda source: bool(_list_files(source)), _WANTED, _HINT, suffix=suffix)


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    return list_facts(source) + _list_files(source)


def _list_files(source: Source) -> list[str]:
    return source.files("", ".json") or source.files("", ".csv")


@dataclass
class _Regions:
    """The regions of a set, column by column, and the images they lie in.

    Args:
        images: file name of each.
        columns: of the regions that are boxes: image (its place), place in it, line, corners and reason.
        attributes: of each of these.
        offered: attribute to its choices, key to text.
        shapes: other shapes, to how often.
    """

    images: list[str] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {name: [] for name in ("image", "place", "line", *CORNERS, "reason")}
    )
    attributes: list[dict[str, Any]] = field(default_factory=list)
    offered: dict[str, dict[str, str]] = field(default_factory=dict)
    shapes: dict[str, int] = field(default_factory=dict)

    def add(self, regions: Iterable[tuple[int, Any, Any]], line: int | None = None) -> None:
        """Add the regions of the last image: place, shape and attributes of each."""
        image, held = len(self.images) - 1, self.columns
        take = [held[name].append for name in CORNERS]
        for place, shape, attributes in regions:
            kind = shape.get("name") if isinstance(shape, dict) else None
            if kind in _SHAPES:
                self.shapes[kind] = self.shapes.get(kind, 0) + 1
                continue
            sides: list[Any] = [shape.get(side) for side in _SIDES] if isinstance(shape, dict) else [shape]
            reason = None
            if kind != "rect":
                shown = format_value(kind if isinstance(shape, dict) else shape)
                reason = f"the region's shape should be a rect and is {shown}"
            elif not all(type(side) in (int, float) and abs(side) <= _FAR for side in sides):
                reason = f"the rect is no box of finite numbers: {', '.join(map(format_value, sides))}"
            elif not isinstance(attributes, dict):
                reason = f"attributes should be an object and are {describe_type(attributes)}"
            elif sides[2] < 0 or sides[3] < 0:
                reason = f"the box is upside down, width or height < 0: {', '.join(map(format_value, sides))}"
            if reason is None:
                x, y, width, height = sides
                corners: tuple[float | None, ...] = (x, y, round(x + width, 9), round(y + height, 9))
            else:
                corners = (None,) * 4
            for each, corner in zip(take, corners, strict=True):
                each(corner)
            held["image"].append(image)
            held["place"].append(place)
            held["line"].append(line)
            held["reason"].append(reason)
            self.attributes.append(attributes if isinstance(attributes, dict) else {})


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    attribute: str | None = None,
    fps: float | None = None,
    size: str | list[int] | None = None,
    first_frame: int | None = None,
    predicted: bool = False,
) -> Scenes | Predictions:
    """All files as Scenes; what was refused is in `rejected`.

    Args:
        attribute: of regions that is the class (default: the only one, or the first of `CLASS_NAMES`).
        fps: frames a second of every video.
        size: of every image, such as 1920x1080.
        first_frame: number of a video's first frame: 1, or 0.
        predicted: read predictions, whose regions have the attribute `score`.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if no file can be read, or it is unclear which attribute is the class.
    """
    if attribute is not None and not isinstance(attribute, str):
        raise UsageError(f"attribute is the name of an attribute of regions, not {format_value(attribute)}")
    findings = Findings()
    facts = read_facts(source, fps=fps, size=size, first_frame=first_frame)
    files: list[tuple[str, _Regions]] = []
    names = _list_files(source)

    def take(name: str, part: Findings) -> None:
        with pause_garbage_collection():
            files.append((name, _read_file(source, name)))

    errors = read_each_file(names, take, findings, progress)
    if not files:
        raise build_unreadable_error(errors)
    found = BoxSource("via", findings, predicted=predicted)
    places = place_images(found, [(name, image) for name, held in files for image in held.images], facts)
    chosen = _choose_attribute([held for _, held in files], attribute, source.where(names[0]))
    offered = [text for _, held in files for text in held.offered.get(chosen or "", {}).values()]
    found.classes = [escape_surrogates(text) for text in dict.fromkeys(offered)]
    start = 0
    for name, held in files:
        found.rows.append(_build_rows(name, held, places[start : start + len(held.images)], chosen))
        start += len(held.images)
        for shape, count in held.shapes.items():
            findings.left_out[f"shapes that are no box ({shape})"] += count
    digest = source.contents(inputs(source))
    return build_box_predictions(found, digest) if predicted else build_box_scenes(found, digest)


def _read_file(source: Source, name: str) -> _Regions:
    """The images and regions of a file.

    Raises:
        InputError: if it is no such file, or an image is none.
    """
    where, held = source.where(name), _Regions()
    if name.lower().endswith(".csv"):
        _read_csv(csv.decode(source.read(name), where), where, held)
        return held
    whole: dict[str, Any] = {}
    # Entry by entry, so that the whole document never lies in memory as objects.
    for _, path, value in iterate_members(
        decode(source.read(name), where), where, lambda path: path in ((), (PROJECT,))
    ):
        if not path:
            ensure_object(value, where, "the top")
        elif path[0] == PROJECT:
            _add_image(path[-1], value if len(path) > 1 else None, where, held)
        elif isinstance(value, dict) and "filename" in value and "regions" in value:
            _add_image(path[0], value, where, held)
        else:
            whole[path[0]] = value if path[0] == ATTRIBUTES else None
    if {"project", "metadata", "attribute"} <= set(whole):
        raise InputError("a project of VIA 3, whose regions are at times of a video", where=where,
                         hint="export it as COCO from VIA 3, or annotate images with VIA 2")  # fmt: skip
    if not held.images:
        raise InputError(f"there is no image in it: {PROJECT!r} is missing or empty", where=where, hint=_HINT)
    _add_offers(whole.get(ATTRIBUTES), held)
    return held


def _add_image(key: str | None, value: Any, where: str, held: _Regions) -> None:
    """Add an image with its regions.

    Raises:
        InputError: if it names no file, or its regions are none.
    """
    entry = ensure_object(value, where, f"image {format_value(key)}")
    file = entry.get("filename")
    if not isinstance(file, str) or not file:
        raise InputError(
            f"the filename of {format_value(key)} should be a text and is {format_value(file)}", where=where
        )
    regions = entry.get("regions", [])
    if isinstance(regions, dict):  # VIA 1 numbers them
        regions = list(regions.values())
    if not isinstance(regions, list):
        raise InputError(
            f"'regions' of {format_value(key)} should be a list and is {describe_type(regions)}", where=where
        )
    held.images.append(escape_surrogates(file))
    held.add((place, region.get("shape_attributes"), region.get("region_attributes", {})) if isinstance(region, dict)
             else (place, region, {}) for place, region in enumerate(regions, 1))  # fmt: skip


def _add_offers(attributes: Any, held: _Regions) -> None:
    """The choices of attributes as a project lists them: the text of each, or its key where it has none."""
    listed = attributes.get("region") if isinstance(attributes, dict) else None
    for name, about in listed.items() if isinstance(listed, dict) else ():
        options = about.get("options") if isinstance(about, dict) else None
        texts = options if isinstance(options, dict) else {}
        held.offered[name] = {
            key: text if isinstance(text, str) and text.strip() else key for key, text in texts.items()
        }


def _read_csv(text: str, where: str, held: _Regions) -> None:
    """Add the rows of a csv file; rows of one image stand together or apart.

    Raises:
        InputError: if columns are missing, or a cell is no JSON.
    """
    rows = csv.parse_quoted_rows(text, where)
    header = [name.lstrip("#").strip() for name in next(rows, (0, []))[1]]
    missing = [name for name in ("filename", *COLUMNS[-2:]) if name not in header]
    if missing:
        raise InputError(f"columns {', '.join(missing)} are missing", where=where, hint=_HINT)
    at = {name: header.index(name) for name in COLUMNS if name in header}
    places: dict[str, int] = {}
    for line, cells in rows:
        if len(cells) != len(header):
            raise InputError(f"{len(cells)} cells where {len(header)} are due", where=f"{where}:{line}")
        file, shape, attributes = (cells[at[name]] for name in ("filename", *COLUMNS[-2:]))
        file = re.sub(r"^'('*[=+@-])", r"\1", file)
        if not file:
            raise InputError("no file is named", where=f"{where}:{line}")
        if file not in places:
            places[file] = len(held.images)
            held.images.append(escape_surrogates(file))
        shown = _parse_cell(shape, where, line)
        if shown == {}:  # an image without regions has a row of its own
            continue
        before = len(held.columns["image"])
        held.add([(line, shown, _parse_cell(attributes, where, line))], line)
        if len(held.columns["image"]) > before:
            held.columns["image"][-1] = places[file]


def _parse_cell(cell: str, where: str, line: int) -> Any:
    return parse(cell, f"{where}:{line}") if cell.strip() else {}


def place_images(
    found: BoxSource, images: list[tuple[str, str]], facts: Facts
) -> list[tuple[str, int, str | None]]:
    """Add the videos and frames of images; video and frame of each image, and why it is refused, or None.

    Args:
        found: takes videos, frames and paths, and the images that are refused.
        images: file of annotations and file name of each.
        facts: rate, size and the number of the first frame.
    """
    stems = [image.removesuffix(PurePosixPath(image).suffix) or image for _, image in images]
    matches = [_NUMBERED.fullmatch(stem) for stem in stems]
    zero = any(match is not None and int(match[2]) == 0 for match in matches)
    base = facts.first_frame if facts.first_frame is not None else int(not zero)
    width, height = facts.size_px or (None, None)
    videos: dict[str, dict[str, Any]] = {}
    frames: dict[str, set[int]] = {}
    places: list[tuple[str, int, str | None]] = []
    for (file, image), stem, match in zip(images, stems, matches, strict=True):
        video, frame = (match[1], int(match[2]) - base) if match else (stem, 0)
        reason = None
        if not 0 <= frame <= MOST_FRAMES:
            reason = (
                f"the image's number is {frame + base}; frames count from {base} to {MOST_FRAMES + base:,}"
            )
        elif len(video.encode("utf-8", "replace")) > LONGEST_NAME:
            reason = f"the video's name has more than {LONGEST_NAME} bytes"
        video = format_video_name(video)
        if reason is None and frame in frames.get(video, ()):
            reason = f"frame {frame} of {to_printable(video, 60)} stands twice"
        places.append((video, frame, reason))
        if reason is not None:
            found.findings.reject("frames", file, to_printable(image, 120), reason)
            continue
        new = {"video": video, "width_px": width, "height_px": height, "fps": facts.fps, "n_frames": 0}
        row = videos.setdefault(video, new)
        row["n_frames"] = max(row["n_frames"], frame + 1)
        frames.setdefault(video, set()).add(frame)
        if len(image.encode("utf-8", "replace")) <= LONGEST_PATH:
            found.paths[video, frame] = image
    found.videos = list(videos.values())
    found.frames = {video: sorted(held) for video, held in frames.items()}
    found.findings.read["frames"] += sum(map(len, frames.values()))
    return places


def _choose_attribute(files: list[_Regions], asked: str | None, where: str) -> str | None:
    """The attribute that is the class; None where regions have none.

    Raises:
        InputError: if there is none of that name, or several may be it.
    """
    named = [
        name for held in files for name in (*held.offered, *(n for each in held.attributes for n in each))
    ]
    names = [name for name in dict.fromkeys(named) if name.lower() not in (TRACK, IGNORE, SCORE)]
    listed = to_printable(", ".join(names[:20]), 300)
    if asked is not None:
        if asked not in named:
            raise InputError(
                f"regions have no attribute {to_printable(asked, 60)!r}; they have {listed or 'none'}",
                where=where,
            )
        return asked
    if len(names) <= 1:
        return names[0] if names else None
    lower = {name.lower(): name for name in reversed(names)}
    if (known := next((lower[name] for name in CLASS_NAMES if name in lower), None)) is not None:
        return known
    raise InputError(
        f"regions have the attributes {listed}: it is unclear which is the class",
        where=where,
        hint=f"say which: --option attribute={to_printable(names[0], 40)}",
    )


def _build_rows(
    file: str, held: _Regions, places: list[tuple[str, int, str | None]], chosen: str | None
) -> pl.DataFrame:
    """The regions as `box_rows.ROWS`, with their score."""
    columns = held.columns
    choices = held.offered.get(chosen or "", {})
    labels, tracks, ignored, scores, reasons = [], [], [], [], []
    for attributes, image, reason in zip(held.attributes, columns["image"], columns["reason"], strict=True):
        label = attributes.get(chosen or "")
        if type(label) is not str:
            label, odd = _parse_class(label)
            reason = reason or odd
        label = choices.get(label, label) if label else None
        track, score = attributes.get(TRACK), attributes.get(SCORE)
        if track is not None and type(track) not in (str, int):
            reason = reason or f"the track should be a text or a whole number and is {format_value(track)}"
            track = None
        labels.append(label)
        tracks.append(None if track in (None, "") else str(track))
        ignored.append(attributes.get(IGNORE) in (True, 1, "1", "true"))
        scores.append(_parse_score(score))
        reasons.append(reason or places[image][2])
    shown = pl.DataFrame(
        {
            "image": pl.Series(columns["image"], dtype=pl.Int64),
            "place": pl.Series(columns["place"], dtype=pl.Int64),
            "line": pl.Series(columns["line"], dtype=pl.Int64),
            "label": pl.Series(list(map(_escape, labels)), dtype=pl.String),
            "track": pl.Series(list(map(_escape, tracks)), dtype=pl.String),
            **{name: pl.Series(columns[name], dtype=pl.Float64, strict=False) for name in CORNERS},
            "ignore": pl.Series(ignored, dtype=pl.Boolean),
            "score": pl.Series(scores, dtype=pl.Float64),
            "reason": pl.Series(reasons, dtype=pl.String),
        }
    )
    at = pl.DataFrame(
        [(n, video, frame) for n, (video, frame, _) in enumerate(places)],
        schema={"image": pl.Int64, "video": pl.String, "frame": pl.Int64},
        orient="row",
    )
    rows = shown.join(at, on="image", how="left", maintain_order="left")
    return rows.with_columns(
        file=pl.lit(escape_surrogates(file)),
        item=pl.format("{} frame {}, region {}", pl.col("video").str.slice(0, 90), "frame", "place"),
    )


def _parse_class(value: Any) -> tuple[str | None, str | None]:
    """The class that a value names, which is no text, and why it names none."""
    if value is None:
        return None, None
    if isinstance(value, dict):  # ticked boxes
        ticked = [name for name, tick in value.items() if tick is True]
        if len(ticked) > 1:
            return (
                None,
                f"{len(ticked)} classes are ticked, {to_printable(', '.join(ticked), 80)}; a box has one",
            )
        return (ticked[0] if ticked else None), None
    if type(value) is int:
        return str(value), None
    return None, f"the class should be a text and is {format_value(value)}"


def _parse_score(value: Any) -> float | None:
    """The score of an attribute, which VIA keeps as text; NaN where it is no number, None where there is none."""
    if value in (None, ""):
        return None
    try:
        return float(value) if type(value) in (str, int, float) and len(str(value)) < 40 else math.nan
    except ValueError:
        return math.nan


def _escape(text: str | None) -> str | None:
    return None if text is None else to_printable(escape_surrogates(text), LONGEST_NAME + 1)
