"""Pascal VOC: an XML file for each image with the boxes in it, as labelImg, CVAT, Roboflow and supervision write it.

Layout: `Annotations/NAME.xml` (or the files in one folder), `ImageSets/Main/SPLIT.txt` with the names of each
split; `labelmap.txt` with the order of the classes.
`<object>` has `<name>` and `<bndbox>` with `xmin, ymin, xmax, ymax`. Tools disagree about pixels: by default the numbers are
edges from 0 (labelImg, CVAT, Roboflow); `pixels=voc` takes them as the challenge wrote them, pixels from 1 with the last
one inside (Everingham et al., 2010): one is taken off xmin and ymin.
Frames: as for YOLO, `NAME` is `VIDEO_NUMBER`, numbered from 1 (from 0 where some is 0), else an image is a video of its own.
`difficult` boxes are to be ignored. Holds: class, box, size, difficult. Does not: tracks, rate, occlusion in words.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl
from lxml import etree

from roadaware.datasets import Progress
from roadaware.datasets.box_rows import (
    FACTS,
    LARGEST_SIDE,
    LONGEST_PATH,
    ROWS,
    BoxSource,
    build_box_scenes,
    check_classes,
    read_facts,
)
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file
from roadaware.datasets.relation_tables import format_video_name
from roadaware.errors import InputError, UsageError
from roadaware.io.json import escape_surrogates
from roadaware.io.sources import Source, decode_utf_text, find_source, to_printable
from roadaware.io.xml import find_elements, find_text, parse
from roadaware.scenes.tables import Scenes

VERSION = 1
_PLACES = ("Annotations", "")
_SETS = "ImageSets/Main"
LABEL_MAP = "labelmap.txt"
_EDGES = ("xmin", "ymin", "xmax", "ymax")
_NUMBERED = re.compile(r"(.+?)[_/](\d{1,9})", re.ASCII | re.DOTALL)
_WANTED = "Pascal VOC needs its annotations, files '*.xml' in 'Annotations/',"
_HINT = "Point at the folder that holds 'Annotations/', or at the XML files."


def find(path: Path) -> Source:
    """The annotations at `path`: an XML file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(_list_files(source)), _WANTED, _HINT, suffix=".xml")


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    beside = [name for name in (FACTS, LABEL_MAP) if source.holds(name)]
    return [*beside, *_list_files(source), *_list_sets(source)]


def _list_files(source: Source) -> list[str]:
    for place in _PLACES:
        if (not place or source.has_folder(place)) and (found := source.files(place, ".xml")):
            return found
    return []


def _list_sets(source: Source) -> list[str]:
    found = source.files(_SETS, ".txt") if source.has_folder(_SETS) else []
    return [name for name in found if PurePosixPath(name).stem in ("train", "val", "test")]


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    fps: float | None = None,
    first_frame: int | None = None,
    pixels: str = "edges",
) -> Scenes:
    """All images as Scenes; what was refused is in `rejected`.

    Args:
        source: see `find`.
        processes: not used: files are small.
        progress: called with the number of files read and the total.
        fps: frames a second of every video.
        first_frame: number of a video's first frame: 1, or 0.
        pixels: `edges`, or `voc` where pixels count from 1 and the last one is inside.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if no file can be read.
    """
    if pixels not in ("edges", "voc"):
        raise UsageError(f"pixels is edges or voc, not {pixels!r}")
    findings = Findings()
    found = BoxSource("voc", findings)
    facts = read_facts(source, fps=fps, first_frame=first_frame)
    found.classes = list(facts.classes or _read_label_map(source))
    images: dict[str, tuple[str, etree._Element]] = {}

    def take(name: str, part: Findings) -> None:
        stem = PurePosixPath(name).name.removesuffix(PurePosixPath(name).suffix)
        if len(stem.encode("utf-8", "surrogateescape")) > LONGEST_NAME:
            raise InputError(f"its name has more than {LONGEST_NAME} bytes", where=source.where(name))
        images[escape_surrogates(stem)] = (
            name,
            parse(source.read(name), source.where(name), root="annotation"),
        )

    errors = read_each_file(_list_files(source), take, findings, progress)
    if not images:
        raise build_unreadable_error(errors)
    splits = _read_splits(source, findings)
    numbers = {stem: _NUMBERED.fullmatch(stem) for stem in images}
    zero = any(match and int(match[2]) == 0 for match in numbers.values())
    base = facts.first_frame if facts.first_frame is not None else int(not zero)
    shown: list[dict[str, Any]] = []
    videos: dict[str, dict[str, Any]] = {}
    frames: dict[str, set[int]] = {}
    for stem, (name, root) in images.items():
        match = numbers[stem]
        video, frame = (match[1], int(match[2]) - base) if match else (stem, 0)
        video = format_video_name(video)
        size = tuple(_parse_side(find_text(root, f"size/{side}")) for side in ("width", "height"))
        if None in size:
            size = facts.size_px or (None, None)
            findings.warn(
                "images whose size is missing or no number of pixels, kept as null",
                name,
                int(size[0] is None),
            )
        split = splits.get(stem)
        row = videos.setdefault(video, {"video": video, "width_px": size[0], "height_px": size[1], "fps": facts.fps,
                                        "n_frames": 0, "splits": [f"default/{split}"] if split else None})  # fmt: skip
        if (row["width_px"], row["height_px"]) != size:
            findings.warn("videos with images of several sizes, size kept as null", name)
            row["width_px"] = row["height_px"] = None
        if 0 <= frame <= MOST_FRAMES:
            row["n_frames"] = max(row["n_frames"], frame + 1)
            frames.setdefault(video, set()).add(frame)
            if file := find_text(root, "filename"):
                found.paths[video, frame] = escape_surrogates(file)
        off = 1.0 if pixels == "voc" else 0.0
        shown += [_build_row(each, video, frame, name, off) for each in find_elements(root, "object")]
    found.frames = {video: sorted(held) for video, held in frames.items()}
    found.videos = list(videos.values())
    found.rows.append(pl.DataFrame(shown, schema=ROWS))
    return build_box_scenes(found, source.contents(inputs(source)))


def _read_label_map(source: Source) -> tuple[str, ...]:
    """The classes in the order of `labelmap.txt`, as CVAT and Datumaro write it; none where it is not there.

    Raises:
        InputError: if it is no text, or names a class twice.
    """
    if not source.holds(LABEL_MAP):
        return ()
    where = source.where(LABEL_MAP)
    text = decode_utf_text(source.read(LABEL_MAP), where, expected="names of classes", hint=_HINT)
    lines = [line.strip() for line in text.splitlines()]
    names = [line.rsplit(":", 3)[0].strip() for line in lines if line and not line.startswith("#")]
    return check_classes([name for name in names if name != "background"], where)


def _read_splits(source: Source, findings: Findings) -> dict[str, str]:
    """Name of an image to its split."""
    found: dict[str, str] = {}
    for name in _list_sets(source):
        try:
            text = decode_utf_text(
                source.read(name), source.where(name), expected="names of images", hint=_HINT
            )
        except InputError as error:
            findings.reject_file(name, error)
        else:
            findings.read["files"] += 1
            found |= dict.fromkeys((line.strip() for line in text.splitlines()), PurePosixPath(name).stem)
    return found


def _build_row(element: etree._Element, video: str, frame: int, file: str, off: float) -> dict[str, Any]:
    texts = [find_text(element, f"bndbox/{edge}") for edge in _EDGES]
    label = find_text(element, "name")
    corners = [_parse_number(text) for text in texts]
    message = ", ".join(to_printable(text or "missing", 24) for text in texts)
    reason = None
    if not label:
        reason = "no <name> says what it is"
    elif None in corners:
        reason = f"a corner is missing or no number: {message}"
    elif off:
        corners = [
            corner - off if n < 2 and corner is not None else corner for n, corner in enumerate(corners)
        ]
    return {
        "file": to_printable(file, LONGEST_PATH),
        "line": element.sourceline,
        "item": f"{to_printable(label or '?', 60)} {message}"[:120],
        "video": video,
        "frame": frame,
        "track": None,
        "label": escape_surrogates(label) if label else None,
        **dict(zip(("x1_px", "y1_px", "x2_px", "y2_px"), corners, strict=True)),
        "ignore": find_text(element, "difficult") in ("1", "true", "True"),
        "reason": reason,
    }


def _parse_side(text: str | None) -> int | None:
    plain = text is not None and text.isascii() and text.isdigit() and len(text) <= 9
    return int(text) if text is not None and plain and 1 <= int(text) <= LARGEST_SIDE else None


def _parse_number(text: str | None) -> float | None:
    try:
        return (
            float(text)
            if text is not None and len(text) < 40 and text.isascii() and "_" not in text
            else None
        )
    except ValueError:
        return None
