"""CVAT: boxes of a task as "CVAT for video 1.1" or "CVAT for images 1.1" exports them.

Layout: an XML file for each task, anywhere in the folder's top. Of video, `<track id label>` holds a `<box frame>` for
each frame, and `outside="1"` where the track is not in view: such boxes are none. Of images, `<image id name width
height>` holds `<box label>`.
Frames count from 0; corners `xtl, ytl, xbr, ybr` are edges in pixels of the original image, the right one excluded, kept
as they are. A video is called as its task, an image set too: its frames are the images in the order of their ids.
`occluded` boxes are hidden in part, where a file says it of any. Holds: track (a number), class, size, length, occluded.
Does not: rate, ignored boxes; of video: boxes without track.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl
from lxml import etree

from roadaware.datasets import Progress
from roadaware.datasets.box_rows import ROWS, BoxSource, build_box_scenes
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.cvat import MOST_PIXELS, format_raw_text
from roadaware.datasets.facts import list_facts, read_facts
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file
from roadaware.datasets.relation_tables import format_video_name
from roadaware.errors import InputError
from roadaware.io.json import escape_surrogates
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.io.xml import find_elements, find_text, get_local_name, parse
from roadaware.scenes.tables import Scenes

VERSION = 2
_EDGES = ("xtl", "ytl", "xbr", "ybr")
_WANTED = (
    "CVAT needs its annotations, files '*.xml' as 'CVAT for video 1.1' or 'CVAT for images 1.1' exports them,"
)
_HINT = "Point at the XML file, or the folder or zip that holds it; such a file begins with <annotations><version>1.1."
_SHAPES = ("polygon", "polyline", "points", "cuboid", "ellipse", "mask", "skeleton", "tag")


def find(path: Path) -> Source:
    """The annotations at `path`: an XML file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(source.files("", ".xml")), _WANTED, _HINT, suffix=".xml")


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    return list_facts(source) + source.files("", ".xml")


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    fps: float | None = None,
) -> Scenes:
    """All tasks as Scenes; what was refused is in `rejected`.

    Args:
        fps: frames a second of every video: the files do not say it.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if no file can be read.
    """
    findings = Findings()
    found = BoxSource("cvat", findings)
    facts = read_facts(source, fps=fps)
    errors = read_each_file(
        source.files("", ".xml"), partial(_take, source, facts.fps, found), findings, progress
    )
    if not found.videos:
        raise build_unreadable_error(errors)
    return build_box_scenes(found, source.contents(inputs(source)))


def _take(source: Source, fps: float | None, found: BoxSource, name: str, part: Findings) -> None:
    """Add a task.

    Raises:
        InputError: if the file cannot be read, or is no task of its own name.
    """
    where = source.where(name)
    root = parse(source.read(name), where, root="annotations")
    job = next((each for each in ("task", "job", "project") if find_text(root, f"meta/{each}/name") or
                find_text(root, f"meta/{each}/size")), "task")  # fmt: skip
    stem = PurePosixPath(name).name.removesuffix(PurePosixPath(name).suffix)
    named = find_text(root, f"meta/{job}/name") or stem
    video = format_video_name(named)
    if len(escape_surrogates(named).encode()) > LONGEST_NAME:
        raise InputError(f"the task's name has more than {LONGEST_NAME} bytes", where=where)
    if video in {row["video"] for row in found.videos}:
        raise InputError(f"a second task called {to_printable(video)}", where=where)
    images = find_elements(root, "image")
    tracks = find_elements(root, "track")
    if not images and not tracks and find_text(root, "version") is None:
        raise InputError(
            "there is no <version>, <track> or <image>: no export of CVAT", where=where, hint=_HINT
        )
    shown: list[dict[str, Any]] = []
    row: dict[str, Any] = {"video": video, "fps": fps}
    if images:
        sizes = _list_images(images, video, name, shown, found, part)
        row |= dict(zip(("width_px", "height_px"), sizes, strict=True))
        row["n_frames"] = len(images)
    else:
        size = find_text(root, f"meta/{job}/size")
        count = _parse_count(size, MOST_FRAMES)
        if count is None:
            raise InputError(
                f"meta/{job}/size should be the number of frames and is {format_raw_text(size)}", where=where
            )
        for side in ("width", "height"):
            text = find_text(root, f"meta/{job}/original_size/{side}")
            row[f"{side}_px"] = _parse_count(text, MOST_PIXELS)
            if row[f"{side}_px"] is None:
                part.warn(
                    "image sizes that are no number of pixels, kept as null",
                    f"{where}: {format_raw_text(text)}",
                )
        row["n_frames"] = count
        _list_tracks(tracks, video, name, shown, part)
    for label in find_elements(root, "label"):
        text = find_text(label, "name")
        if text and find_elements(label, "name") and escape_surrogates(text) not in found.classes:
            found.classes.append(escape_surrogates(text))
    found.videos.append(row)
    found.rows.append(pl.DataFrame(shown, schema=ROWS))


def _list_images(
    images: list[etree._Element],
    video: str,
    file: str,
    rows: list[dict[str, Any]],
    found: BoxSource,
    part: Findings,
) -> tuple[int | None, int | None]:
    """Rows of an image set; the size that all images have, else None."""
    sizes: set[tuple[int | None, int | None]] = set()
    for frame, image in enumerate(images):
        sizes.add(
            (_parse_count(image.get("width"), MOST_PIXELS), _parse_count(image.get("height"), MOST_PIXELS))
        )
        path = image.get("name")
        if path and len(path.encode()) <= LONGEST_NAME:
            found.paths[video, frame] = escape_surrogates(path)
        for element in image:
            kind = get_local_name(element)
            if kind == "box":
                rows.append(_build_row(element, video, str(frame), element.get("label"), None, file))
            elif kind in _SHAPES:
                part.left_out[f"shapes that are no box ({kind})"] += 1
    if len(sizes) > 1:
        part.warn("images of several sizes in one task, size kept as null", file)
    return next(iter(sizes)) if len(sizes) == 1 else (None, None)


def _list_tracks(
    tracks: list[etree._Element], video: str, file: str, rows: list[dict[str, Any]], part: Findings
) -> None:
    """Rows of the tracks of a video."""
    names: set[str] = set()
    for place, track in enumerate(tracks):
        mark = escape_surrogates(track.get("id") or "")
        reason = None
        if not mark:
            reason = f"track {place} has no id"
        elif mark in names:
            reason = f"a second track with the id '{to_printable(mark, 60)}'"
        names.add(mark)
        gaps, before, hidden = 0, None, True
        for element in track:
            kind = get_local_name(element)
            if kind != "box":
                part.left_out[f"shapes that are no box ({kind})"] += kind in _SHAPES
                continue
            outside = element.get("outside") == "1"
            frame = _parse_count(element.get("frame"), MOST_FRAMES, low=0)
            if before is not None and frame is not None and frame > before + 1 and not hidden:
                gaps += 1
            before, hidden = frame, outside
            if outside:
                # CVAT marks with it that a track is not in view.
                part.left_out["boxes outside the image (outside=1)"] += 1
                continue
            row = _build_row(element, video, element.get("frame"), track.get("label"), mark or None, file)
            row["reason"] = reason or row["reason"]
            rows.append(row)
        part.warn(
            "tracks whose frames between key frames are missing: export all frames, nothing is made up",
            file,
            int(gaps > 0),
        )


def _build_row(
    element: etree._Element, video: str, frame: str | None, label: str | None, track: str | None, file: str
) -> dict[str, Any]:
    corners = [_parse_number(element.get(edge)) for edge in _EDGES]
    number = _parse_count(frame, MOST_FRAMES, low=0)
    reason = None
    if number is None:
        reason = f"frame {format_raw_text(frame)} is no whole number from 0"
    elif not label:
        reason = "no label says what it is"
    elif None in corners:
        reason = f"a coordinate is missing or no number: {', '.join(format_raw_text(element.get(e)) for e in _EDGES)}"
    elif element.get("rotation") not in (None, "0", "0.0", "0.00"):
        reason = "a rotated box, which tables do not hold"
    item = f"track '{track}', frame '{frame}'" if track is not None else f"frame '{frame}'"
    return {
        "file": escape_surrogates(file),
        "line": element.sourceline,
        "item": to_printable(item, 120),
        "video": video,
        "frame": number,
        "track": track,
        "label": escape_surrogates(label) if label else None,
        **dict(zip(("x1_px", "y1_px", "x2_px", "y2_px"), corners, strict=True)),
        "ignore": None,
        "occlusion": "part" if element.get("occluded") == "1" else "none",
        "reason": reason,
    }


def _parse_count(text: str | None, high: int, *, low: int = 1) -> int | None:
    plain = text is not None and text.isascii() and text.isdigit() and len(text) <= 9
    return int(text) if text is not None and plain and low <= int(text) <= high else None


def _parse_number(text: str | None) -> float | None:
    try:
        return (
            float(text)
            if text is not None and len(text) < 40 and text.isascii() and "_" not in text
            else None
        )
    except ValueError:
        return None
