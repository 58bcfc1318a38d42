"""BDD100K: boxes of driving videos, and any other set in the JSON of Scalabel.

Yu et al., "BDD100K: A Diverse Driving Dataset for Heterogeneous Multitask Learning", CVPR 2020; bdd-data.berkeley.edu.

Layout: JSON files in the folder, or in `train/`, `val/` and `test/` below it: one for each video (box tracking 2020, five
images a second) or one for all images (detection). A file is a list of frames, or an object with `frames` and `config`. A
frame has `name`, `labels`, and of a video `videoName` and `frameIndex`; a label has `category`, `box2d` and `id`, which
names a track in videos alone.
Boxes: `x1, y1, x2, y2` in pixels from 0; the makers' own tools count the last pixel as inside, so that one is added to x2
and y2 (`pixels=edges` leaves them as they are).
Frames: `frameIndex` from 0. An image without a video is a video of its own, called as its file.
Holds: track, class, boxes without either, `occluded` (hidden in part), `crowd` (to ignore), size. Does not: rate (`fps`),
weather and time of day, `truncated`, other shapes than boxes, which are counted.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from roadaware.datasets import Progress
from roadaware.datasets.box_rows import ROWS, BoxSource, build_box_predictions, build_box_scenes
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.facts import LARGEST_SIDE, Facts, list_facts, read_facts
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file
from roadaware.errors import InputError, UsageError
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_list,
    ensure_object,
    escape_surrogates,
    format_value,
    parse,
    parse_int,
    pause_garbage_collection,
)
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

VERSION = 1
SPLITS = ("train", "val", "test")
PIXELS = ("inside", "edges")
_WANTED = "BDD100K needs its annotations, files '*.json' of frames with 'labels',"
_HINT = "Point at the JSON file, or at the folder that holds such files or 'train/' and 'val/'."
_EDGES = ("x1", "y1", "x2", "y2")
_SPLIT_NAME = re.compile(r"(?:.*_)?(train|val|test)", re.DOTALL)
_SHAPES = ("poly2d", "box3d", "rle", "graph")
_FAR = 1e9


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(_list_files(source)), _WANTED, _HINT, suffix=".json")


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    return list_facts(source) + _list_files(source)


def _list_files(source: Source) -> list[str]:
    held = [name for split in SPLITS if source.has_folder(split) for name in source.files(split, ".json")]
    return source.files("", ".json") + held


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    fps: float | None = None,
    size: str | list[int] | None = None,
    pixels: str = "inside",
    predicted: bool = False,
) -> Scenes | Predictions:
    """All files as Scenes; what was refused is in `rejected`.

    Args:
        fps: frames a second of every video: 5 for box tracking 2020.
        size: of every image whose frame does not say it, such as 1280x720.
        pixels: `inside` where the last pixel of a box is inside, or `edges`.
        predicted: read predictions, whose labels have a `score`.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if no file can be read.
    """
    if pixels not in PIXELS:
        raise UsageError(f"pixels is {' or '.join(PIXELS)}, not {to_printable(str(pixels), 40)}")
    findings = Findings()
    found = BoxSource("bdd100k", findings, predicted=predicted)
    facts = read_facts(source, fps=fps, size=size)
    names = _list_files(source)

    def take(name: str, part: Findings) -> None:
        with pause_garbage_collection():
            _take_file(source, name, facts, 1.0 if pixels == "inside" else 0.0, found, part)

    errors = read_each_file(names, take, findings, progress)
    if len(errors) == len(names):
        raise build_unreadable_error(errors)
    digest = source.contents(inputs(source))
    return build_box_predictions(found, digest) if predicted else build_box_scenes(found, digest)


def _take_file(
    source: Source, name: str, facts: Facts, last: float, found: BoxSource, part: Findings
) -> None:
    """Add the frames of a file.

    Raises:
        InputError: if it is no list of frames, or a frame is none, or stands twice.
    """
    where = source.where(name)
    content = parse(decode(source.read(name), where), where)
    config: dict[str, Any] = {}
    if isinstance(content, dict):
        if not isinstance(content.get("frames"), list):
            raise InputError("there is no list 'frames' in it", where=where, hint=_HINT)
        held = content.get("config")
        config = held if isinstance(held, dict) else {}
        content = content["frames"]
    frames = ensure_list(content, where, "a file of BDD100K")
    stem = PurePosixPath(name).name.removesuffix(PurePosixPath(name).suffix)
    folder = name.partition("/")[0] if "/" in name else ""
    match = _SPLIT_NAME.fullmatch(stem)
    split = folder if folder in SPLITS else match[1] if match else None
    usual = _parse_size(config.get("imageSize"))
    videos: dict[str, dict[str, Any]] = {}
    seen: dict[str, set[int]] = {}
    rows: list[dict[str, Any]] = []
    shapes: dict[str, int] = {}
    known = {row["video"] for row in found.videos}
    own: set[bool] = set()
    for place, each in enumerate(frames):
        frame = ensure_object(each, where, f"frame {place}")
        video, number, alone = _place_frame(frame, place, where)
        if video in known:
            raise InputError(f"a second file with the video {to_printable(video, 60)}", where=where)
        if number in seen.setdefault(video, set()):
            raise InputError(f"frame {number} of {to_printable(video, 60)} stands twice", where=where)
        seen[video].add(number)
        own.add(alone)
        size = _parse_size(frame.get("size")) or usual or facts.size_px or (None, None)
        row = videos.setdefault(video, {"video": video, "width_px": size[0], "height_px": size[1], "fps": facts.fps,
                                        "n_frames": 0, "splits": [f"default/{split}"] if split else None})  # fmt: skip
        if (row["width_px"], row["height_px"]) != size:
            part.warn("videos with images of several sizes, size kept as null", where)
            row["width_px"] = row["height_px"] = None
        row["n_frames"] = max(row["n_frames"], number + 1)
        path = frame.get("name")
        if isinstance(path, str) and path and len(path.encode("utf-8", "replace")) <= LONGEST_NAME:
            found.paths[video, number] = escape_surrogates(path)
        labels = frame.get("labels")
        for n, label in enumerate(
            ensure_list(labels, where, f"'labels' of frame {place}") if labels is not None else []
        ):
            _take_label(label, n, (video, number, alone), escape_surrogates(name), last, rows, shapes)
    if len(own) > 1:
        part.warn(
            "files in which some frames name a video and others do not, which are images by themselves", where
        )
    if not videos:
        raise InputError("there is no frame in it", where=where, hint=_HINT)
    for shape, count in shapes.items():
        part.left_out[f"shapes that are no box ({shape})"] += count
    categories = config.get("categories")
    for category in categories if isinstance(categories, list) else []:
        called = category.get("name") if isinstance(category, dict) else None
        if isinstance(called, str) and escape_surrogates(called) not in found.classes:
            found.classes.append(escape_surrogates(called))
    found.videos += videos.values()
    found.frames |= {video: sorted(numbers) for video, numbers in seen.items()}
    found.rows.append(pl.DataFrame(rows, schema=ROWS))


def _place_frame(frame: dict[str, Any], place: int, where: str) -> tuple[str, int, bool]:
    """Video and frame of an entry, and whether it is an image by itself.

    Raises:
        InputError: if it names neither a video nor a file, or its frame is no whole number.
    """
    video = frame.get("videoName", frame.get("video_name"))
    alone = video is None
    if alone:
        file = frame.get("name")
        if not isinstance(file, str) or not file:
            raise InputError(f"frame {place} has neither 'videoName' nor 'name'", where=where)
        video = file.removesuffix(PurePosixPath(file).suffix) or file
    if not isinstance(video, str) or not 0 < len(escape_surrogates(video).encode()) <= LONGEST_NAME:
        raise InputError(
            f"the video of frame {place} should be a name of 1 to {LONGEST_NAME} bytes and is {format_value(video)}",
            where=where,
        )
    given = frame.get("frameIndex", frame.get("frame_index", frame.get("index")))
    number = 0 if alone else parse_int(given, 0, MOST_FRAMES)
    if number is None:
        raise InputError(
            f"the frameIndex of frame {place} should be a whole number from 0 to {MOST_FRAMES:,}, not {format_value(given)}",
            where=where,
        )
    return to_printable(escape_surrogates(video), LONGEST_NAME), number, alone


def _parse_size(given: Any) -> tuple[int, int] | None:
    if not isinstance(given, dict):
        return None
    width, height = (parse_int(given.get(side), 1, LARGEST_SIDE) for side in ("width", "height"))
    return None if width is None or height is None else (width, height)


def _take_label(
    label: Any,
    place: int,
    at: tuple[str, int, bool],
    file: str,
    last: float,
    rows: list[dict[str, Any]],
    shapes: dict[str, int],
) -> None:
    """Add the row of a label, refused with a reason where it is no box."""
    video, frame, alone = at
    held = label if isinstance(label, dict) else {}
    box, mark, category = held.get("box2d"), held.get("id"), held.get("category")
    reason = None if isinstance(label, dict) else f"a label should be an object and is {describe_type(label)}"
    if (
        reason is None
        and box is None
        and (shape := next((s for s in _SHAPES if held.get(s) is not None), None))
    ):
        shapes[shape] = shapes.get(shape, 0) + 1
        return
    corners: list[float | None] = [None] * 4
    if reason is None:
        corners = [_parse_corner(box.get(edge)) for edge in _EDGES] if isinstance(box, dict) else corners
        if None in corners:
            text = (
                ", ".join(format_value(box.get(e)) for e in _EDGES)
                if isinstance(box, dict)
                else format_value(box)
            )
            reason = f"box2d is no box of finite numbers: {text}"
        elif type(mark) not in (str, int, type(None)):
            reason = f"the id should be a text or a whole number and is {format_value(mark)}"
        elif not isinstance(category, str | None):
            reason = f"the category should be a text and is {format_value(category)}"
    given = held.get("attributes")
    attributes = given if isinstance(given, dict) else {}
    track = (
        None
        if alone or mark is None or reason
        else to_printable(escape_surrogates(str(mark)), LONGEST_NAME + 1)
    )
    named = escape_surrogates(category) if isinstance(category, str) and not reason else None
    rows.append(
        {
            "file": file,
            "line": None,
            "item": to_printable(f"{video} frame {frame}, label {place}", 120),
            "video": video,
            "frame": frame,
            "track": track or None,
            "label": named or None,
            **dict(
                zip(
                    CORNERS,
                    (c if c is None or n < 2 else c + last for n, c in enumerate(corners)),
                    strict=True,
                )
            ),
            "ignore": attributes.get("crowd") is True,
            "occlusion": "part" if attributes.get("occluded") is True else "none",
            "score": _parse_corner(held.get("score")),
            "reason": reason,
        }
    )


def _parse_corner(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and abs(value) <= _FAR else None
