"""CVAT: boxes of a task as "CVAT for video 1.1" or "CVAT for images 1.1" exports them.

Layout: an XML file for each task, anywhere in the folder's top. Of video, `<track id label>` holds a `<box frame>` for
each frame, and `outside="1"` where the track is not in view: such boxes are none. Of images, `<image id name width
height>` holds `<box label>`.
Frames count from 0; corners `xtl, ytl, xbr, ybr` are edges in pixels of the original image, the right one excluded, kept
as they are. A video is called as its task, an image set too: its frames are the ids of the images where the task's head has
`start_frame` and `stop_frame` around them, else the images in their order. A job, and a task of every fifth frame, has the
frames that its head says. A project is read task by task.
`occluded` boxes are hidden in part, where a file says it of any. Holds: track (a number), class, size, length, occluded.
Does not: rate, ignored boxes; of video: boxes without track.
"""

from __future__ import annotations

from collections.abc import Callable
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

VERSION = 3
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
    """Add what a file holds: a task, a job of one, or all tasks of a project.

    Raises:
        InputError: if the file cannot be read, or is no task of its own name.
    """
    where = source.where(name)
    root = parse(source.read(name), where, root="annotations")
    drawn = [*find_elements(root, "image"), *find_elements(root, "track")]
    if not drawn and find_text(root, "version") is None:
        raise InputError(
            "there is no <version>, <track> or <image>: no export of CVAT", where=where, hint=_HINT
        )
    owned: dict[str | None, list[etree._Element]] = {}
    for element in drawn:
        owned.setdefault(element.get("task_id"), []).append(element)
    # A project's export holds all of its tasks, each of which counts its frames from 0.
    tasks = [each for each in find_elements(root, "task") if find_text(each, "id") in owned]
    if None in owned or not tasks:
        _take_task(_find_head(root), drawn, fps, found, name, where, part)
    for task in tasks if None not in owned else ():
        try:
            _take_task(task, owned[find_text(task, "id")], fps, found, name, where, part)
        except InputError as error:
            item = f"task {to_printable(find_text(task, 'id') or '', 60)}"
            part.reject("videos", escape_surrogates(name), item, error.message)
    for label in find_elements(root, "label"):
        text = find_text(label, "name")
        if text and find_elements(label, "name") and escape_surrogates(text) not in found.classes:
            found.classes.append(escape_surrogates(text))


def _find_head(root: etree._Element) -> etree._Element | None:
    """What the file says of its task or job; None where it says nothing."""
    heads = {get_local_name(each): each for meta in root if get_local_name(meta) == "meta" for each in meta}
    return next((heads[each] for each in ("task", "job", "project") if each in heads), None)


def _take_task(
    head: etree._Element | None,
    drawn: list[etree._Element],
    fps: float | None,
    found: BoxSource,
    name: str,
    where: str,
    part: Findings,
) -> None:
    """Add a task or job, of which `drawn` are the images or tracks.

    Raises:
        InputError: if its name or its length makes no sense.
    """

    def say(path: str) -> str | None:
        return find_text(head, path) if head is not None else None

    stem = PurePosixPath(name).name.removesuffix(PurePosixPath(name).suffix)
    named = say("name") or stem
    video = format_video_name(named)
    if len(escape_surrogates(named).encode()) > LONGEST_NAME:
        raise InputError(f"the task's name has more than {LONGEST_NAME} bytes", where=where)
    if video in {row["video"] for row in found.videos}:
        raise InputError(f"a second task called {to_printable(video)}", where=where)
    images = [each for each in drawn if get_local_name(each) == "image"]
    frames = _list_frames(say)
    shown: list[dict[str, Any]] = []
    row: dict[str, Any] = {"video": video, "fps": fps}
    if images:
        places = _number_images(images, frames)
        sizes = _list_images(images, places, video, name, shown, found, part)
        row |= dict(zip(("width_px", "height_px"), sizes, strict=True))
        row["n_frames"] = places[-1] + 1
        found.frames[video] = places
    else:
        size = say("size")
        count = _parse_count(size, MOST_FRAMES)
        if count is None:
            raise InputError(
                f"meta/{get_local_name(head) if head is not None else 'task'}/size should be the number of frames and is "
                f"{format_raw_text(size)}",
                where=where,
            )
        for side in ("width", "height"):
            text = say(f"original_size/{side}")
            row[f"{side}_px"] = _parse_count(text, MOST_PIXELS)
            if row[f"{side}_px"] is None:
                part.warn(
                    "image sizes that are no number of pixels, kept as null",
                    f"{where}: {format_raw_text(text)}",
                )
        frames = frames or range(count)
        row["n_frames"] = frames[-1] + 1
        found.frames[video] = frames
        _list_tracks(drawn, frames, video, name, shown, part)
    found.videos.append(row)
    found.rows.append(pl.DataFrame(shown, schema=ROWS))


def _list_frames(say: Callable[[str], str | None]) -> range:
    """The frames of the video that a task or job is about; none where its head does not say them, or contradicts itself.

    A task may begin behind the first frame of its video and take every fifth; its boxes have the numbers that frames
    have in the video, while `size` counts its own.
    """
    start, stop, size = (
        _parse_count(say(each), MOST_FRAMES, low=0) for each in ("start_frame", "stop_frame", "size")
    )
    step = _parse_count((say("frame_filter") or "step=1").replace(" ", "").removeprefix("step="), MOST_FRAMES)
    if start is None or stop is None or step is None:
        return range(0)
    frames = range(start, stop + 1, step)
    return frames if len(frames) == size else range(0)


def _number_images(images: list[etree._Element], frames: range) -> list[int]:
    """The frame of each image: its id where all lie in the frames of the task, else its place; deleted ones are missing."""
    ids = [_parse_count(image.get("id"), MOST_FRAMES, low=0) for image in images]
    known = [each for each in ids if each is not None and each in frames]
    return known if known == sorted(set(known)) and len(known) == len(images) else list(range(len(images)))


def _list_images(
    images: list[etree._Element],
    places: list[int],
    video: str,
    file: str,
    rows: list[dict[str, Any]],
    found: BoxSource,
    part: Findings,
) -> tuple[int | None, int | None]:
    """Rows of an image set; the size that all images have, else None."""
    sizes: set[tuple[int | None, int | None]] = set()
    for frame, image in zip(places, images, strict=True):
        sizes.add(
            (_parse_count(image.get("width"), MOST_PIXELS), _parse_count(image.get("height"), MOST_PIXELS))
        )
        path = image.get("name")
        if path and len(path.encode()) <= LONGEST_NAME:
            found.paths[video, frame] = escape_surrogates(path)
        for element in image:
            kind = get_local_name(element)
            if kind == "box":
                _count_attributes(element, part)
                rows.append(_build_row(element, video, str(frame), element.get("label"), None, file))
            elif kind in _SHAPES:
                part.left_out[f"shapes that are no box ({kind})"] += 1
    if len(sizes) > 1:
        part.warn("images of several sizes in one task, size kept as null", file)
    return next(iter(sizes)) if len(sizes) == 1 else (None, None)


def _list_tracks(
    tracks: list[etree._Element],
    frames: range,
    video: str,
    file: str,
    rows: list[dict[str, Any]],
    part: Findings,
) -> None:
    """Rows of the tracks of a video of which these frames are annotated."""
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
                if kind in _SHAPES:
                    part.left_out[f"shapes that are no box ({kind})"] += 1
                continue
            outside = element.get("outside") == "1"
            frame = _parse_count(element.get("frame"), MOST_FRAMES, low=0)
            if before is not None and frame is not None and frame > before + frames.step and not hidden:
                gaps += 1
            before, hidden = frame, outside
            if outside:
                # CVAT marks with it that a track is not in view.
                part.left_out["boxes outside the image (outside=1)"] += 1
                continue
            _count_attributes(element, part)
            row = _build_row(element, video, element.get("frame"), track.get("label"), mark or None, file)
            row["reason"] = reason or row["reason"]
            if frame is not None and frame not in frames and frame < frames.stop:
                row["reason"] = f"frame {frame} is none of those of its task, {frames.start} to {frames[-1]}"
            rows.append(row)
        part.warn(
            "tracks whose frames between key frames are missing: export all frames, nothing is made up",
            file,
            int(gaps > 0),
        )


def _count_attributes(box: etree._Element, part: Findings) -> None:
    """Count what a box says besides its class, which tables of boxes do not hold."""
    if found := sum(get_local_name(each) == "attribute" for each in box):
        part.left_out["attributes of boxes, which are not read"] += found


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
