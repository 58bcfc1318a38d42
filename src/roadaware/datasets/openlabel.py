"""OpenLABEL: objects of videos in the JSON of ASAM OpenLABEL 1.0 (and of VCD, from which it comes).

Layout: JSON files in the folder, each a video: `openlabel` with `objects` (name and type of each), `frames` (the boxes of
its objects), `frame_intervals` and `streams`.
Boxes: `bbox` with `val` of the middle, width and height in pixels from 0. Of several cameras each is a video, `NAME/CAMERA`;
a box says its camera by `stream`, `coordinate_system` or a text of that name.
Frames: the keys of `frames`, from 0; `frame_end` of an interval is the last frame, which is inside. A frame that is listed
was looked at. Without `frames` the objects' own boxes are an image.
An object is a track, called by its `name` where all names differ, else by its key; a boolean `tracked` of an object that
is false makes its boxes such without a track. Attributes of a box that are read: `ignore`, `occluded` (boolean), `occlusion`
(text: none, part, full).
Holds: track, class, size (`intrinsics_pinhole`), length, ignored boxes, occlusion. Does not: rate (`fps`), other shapes,
actions and relations, which are counted.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from roadaware.datasets import Progress
from roadaware.datasets.box_rows import ROWS, BoxSource, build_box_scenes
from roadaware.datasets.csv_boxes import LONGEST_NAME, MOST_FRAMES
from roadaware.datasets.facts import LARGEST_SIDE, Facts, list_facts, read_facts
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file
from roadaware.errors import InputError
from roadaware.io.json import (
    decode,
    ensure_object,
    escape_surrogates,
    format_value,
    parse,
    parse_int,
    pause_garbage_collection,
)
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

VERSION = 1
_WANTED = "OpenLABEL needs its annotations, files '*.json' with 'openlabel',"
_HINT = "Point at the JSON file, or at the folder that holds it."
_OTHER = ("actions", "events", "relations", "contexts", "tags")
_OCCLUSION = ("none", "part", "full")
_FAR = 1e9


def find(path: Path) -> Source:
    """The annotations at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(source.files("", ".json")), _WANTED, _HINT, suffix=".json")


def inputs(source: Source, **options: Any) -> list[str]:
    """Names of the files that `read` would read."""
    return list_facts(source) + source.files("", ".json")


def read(
    source: Source,
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    fps: float | None = None,
    size: str | list[int] | None = None,
) -> Scenes:
    """All files as Scenes; what was refused is in `rejected`.

    Args:
        fps: frames a second of every video: the files do not say it.
        size: of images whose stream does not say it, such as 1920x1080.

    Raises:
        UsageError: if an option has no meaning.
        InputError: if no file can be read.
    """
    findings = Findings()
    found = BoxSource("openlabel", findings)
    facts = read_facts(source, fps=fps, size=size)
    names = source.files("", ".json")

    def take(name: str, part: Findings) -> None:
        with pause_garbage_collection():
            _take_file(source, name, facts, found, part)

    errors = read_each_file(names, take, findings, progress)
    if len(errors) == len(names):
        raise build_unreadable_error(errors)
    return build_box_scenes(found, source.contents(inputs(source)))


def _take_file(source: Source, name: str, facts: Facts, found: BoxSource, part: Findings) -> None:
    """Add the videos of a file.

    Raises:
        InputError: if it is no OpenLABEL, holds nothing, or a frame's key is no whole number.
    """
    where = source.where(name)
    content = ensure_object(parse(decode(source.read(name), where), where), where, "a file of OpenLABEL")
    held = ensure_object(content.get("openlabel", content.get("vcd")), where, "'openlabel'")
    objects = ensure_object(held.get("objects", {}), where, "'objects'")
    listed = held.get("frames")
    frames = ensure_object(listed, where, "'frames'") if listed else {}
    if not frames and not objects and not held.get("frame_intervals"):
        raise InputError(
            "there is neither a frame nor an object in it",
            where=where,
            hint="check that it is the whole file",
        )
    stem = PurePosixPath(name).name.removesuffix(PurePosixPath(name).suffix)
    video = _name_video(held.get("metadata"), stem, where)
    cameras = _list_cameras(held.get("streams"))
    videos = {camera: f"{video}/{camera}" for camera in cameras} if len(cameras) > 1 else {}
    own = list(videos.values()) or [video]
    known = {row["video"] for row in found.videos}
    if again := next((each for each in own if each in known), None):
        raise InputError(f"a second file with the video {to_printable(again, 60)}", where=where)
    numbers = [_parse_frame(key, where) for key in frames]
    if len(set(numbers)) < len(numbers):
        raise InputError("two keys of 'frames' are the same number", where=where)
    for kind in _OTHER:
        if isinstance(held.get(kind), dict) and held[kind]:
            part.left_out[f"{kind}, which are no boxes"] += len(held[kind])
    tracks = _name_tracks(objects)
    rows: list[dict[str, Any]] = []
    box_of = _BoxTaker(videos, video, tracks, objects, escape_surrogates(name), rows, part)
    for number, key in zip(numbers, frames, strict=True):
        shown = ensure_object(frames[key], where, f"frame {number}")
        of = shown.get("objects") or {}
        for mark, each in ensure_object(of, where, f"'objects' of frame {number}").items():
            box_of.take(mark, each, number)
    for mark, each in objects.items():
        if frames:
            data = each.get("object_data") if isinstance(each, dict) else None
            boxes = data.get("bbox") if isinstance(data, dict) else None
            if isinstance(boxes, list) and boxes:
                part.left_out["boxes of objects that name no frame"] += len(boxes)
        else:
            box_of.take(mark, each, 0)
    ends = [
        end + 1
        for each in held["frame_intervals"]
        if isinstance(each, dict) and (end := parse_int(each.get("frame_end"), 0, MOST_FRAMES)) is not None
    ] if isinstance(held.get("frame_intervals"), list) else []  # fmt: skip
    count = max([*ends, *(number + 1 for number in numbers), int(not frames)])
    for each in own:
        size = (
            cameras.get(each.rpartition("/")[2] if videos else next(iter(cameras), ""))
            or facts.size_px
            or (None, None)
        )
        row = {"video": each, "width_px": size[0], "height_px": size[1], "fps": facts.fps, "n_frames": count}
        found.videos.append(row)
        found.frames[each] = sorted(numbers) if frames else [0]
    found.rows.append(pl.DataFrame(rows, schema=ROWS))


def _name_video(metadata: Any, stem: str, where: str) -> str:
    given = metadata.get("name") if isinstance(metadata, dict) else None
    name = to_printable(
        escape_surrogates(given if isinstance(given, str) and given else stem), LONGEST_NAME + 1
    )
    if len(name.encode()) > LONGEST_NAME:
        raise InputError(f"the video's name has more than {LONGEST_NAME} bytes", where=where)
    return name


def _list_cameras(streams: Any) -> dict[str, tuple[int, int] | None]:
    """Names of the cameras, with the size of their images where it is known."""
    found: dict[str, tuple[int, int] | None] = {}
    for name, stream in streams.items() if isinstance(streams, dict) else ():
        if not isinstance(stream, dict) or stream.get("type", "camera") != "camera":
            continue
        properties = stream.get("stream_properties")
        lenses = properties if isinstance(properties, dict) else {}
        held = next(
            (lens for key, lens in lenses.items() if key.startswith("intrinsics") and isinstance(lens, dict)),
            {},
        )
        width, height = (parse_int(held.get(side), 1, LARGEST_SIDE) for side in ("width_px", "height_px"))
        found[to_printable(escape_surrogates(name), 100)] = (
            None if width is None or height is None else (width, height)
        )
    return found


def _parse_frame(key: str, where: str) -> int:
    plain = key.isascii() and key.isdigit() and len(key) <= 9
    if not plain or int(key) > MOST_FRAMES:
        raise InputError(
            f"a frame should be a whole number from 0 to {MOST_FRAMES:,}, not {format_value(key)}",
            where=where,
        )
    return int(key)


def _name_tracks(objects: dict[str, Any]) -> dict[str, str | None]:
    """What the track of each object is called; None where an object says that it is none."""
    found: dict[str, str | None] = dict.fromkeys(objects)
    tracked = {
        mark: each.get("name") if isinstance(each, dict) else None
        for mark, each in objects.items()
        if not isinstance(each, dict)
        or _find_attribute(each.get("object_data"), "boolean", "tracked") is not False
    }
    names = list(tracked.values())
    named = all(isinstance(name, str) and name for name in names) and len(set(map(str, names))) == len(names)
    found |= {mark: escape_surrogates(str(name) if named else mark) for mark, name in tracked.items()}
    return found


def _find_attribute(held: Any, kind: str, name: str) -> Any:
    """The value of an attribute of a box or an object; None where it has none."""
    listed = held.get(kind) if isinstance(held, dict) else None
    for each in listed if isinstance(listed, list) else []:
        if isinstance(each, dict) and each.get("name") == name:
            return each.get("val")
    return None


class _BoxTaker:
    """Adds rows of boxes of one file."""

    def __init__(
        self,
        videos: dict[str, str],
        video: str,
        tracks: dict[str, str | None],
        objects: dict[str, Any],
        file: str,
        rows: list[dict[str, Any]],
        part: Findings,
    ) -> None:
        self.videos, self.video, self.tracks = videos, video, tracks
        self.objects, self.file, self.rows, self.part = objects, file, rows, part

    def take(self, mark: str, given: Any, frame: int) -> None:
        """The boxes of an object in a frame."""
        held = given.get("object_data") if isinstance(given, dict) else None
        for kind, shapes in held.items() if isinstance(held, dict) else ():
            if not isinstance(shapes, list):
                continue
            if kind == "bbox":
                for n, each in enumerate(shapes):
                    self._take_box(mark, each, frame, again=n > 0)
            elif shapes and kind not in ("boolean", "text", "num", "vec"):
                self.part.left_out[f"shapes that are no box ({to_printable(kind, 40)})"] += len(shapes)

    def _take_box(self, mark: str, given: Any, frame: int, *, again: bool) -> None:
        box = given if isinstance(given, dict) else {}
        values = box.get("val")
        attributes = box.get("attributes")
        owner = self.objects.get(mark)
        label = owner.get("type") if isinstance(owner, dict) else None
        stream = box.get(
            "stream", box.get("coordinate_system", _find_attribute(attributes, "text", "stream"))
        )
        video = (
            self.videos.get(to_printable(escape_surrogates(stream), 100)) if isinstance(stream, str) else None
        )
        corners: list[float | None] = [None] * 4
        reason = None
        if mark not in self.objects:
            reason = "its object is none of 'objects'"
        elif not isinstance(label, str) or not label:
            reason = f"the type of its object should be a text and is {format_value(label)}"
        elif self.videos and video is None:
            reason = f"there are several cameras, and {format_value(stream)} is none of them"
        elif (
            not isinstance(values, list)
            or len(values) != 4
            or any(type(value) not in (int, float) or not abs(value) <= _FAR for value in values)
        ):
            shown = (
                ", ".join(map(format_value, values[:6])) if isinstance(values, list) else format_value(values)
            )
            reason = f"val is not four finite numbers: {shown}"
        elif values[2] < 0 or values[3] < 0:
            reason = f"the box is upside down, with sides of {values[2]} and {values[3]}"
        else:
            x, y, width, height = map(float, values)
            # What sums and halves lose.
            corners = [
                round(x - width / 2, 9),
                round(y - height / 2, 9),
                round(x + width / 2, 9),
                round(y + height / 2, 9),
            ]
        said = _find_attribute(attributes, "text", "occlusion")
        occluded = _find_attribute(attributes, "boolean", "occluded")
        part = {True: "part", False: "none"}.get(occluded) if isinstance(occluded, bool) else None
        self.rows.append(
            {
                "file": self.file,
                "line": None,
                "item": to_printable(
                    f"{self.video} frame {frame}, object {mark}" + (", again" if again else ""), 120
                ),
                "video": video or self.video,
                "frame": frame,
                "track": self.tracks.get(mark),
                "label": escape_surrogates(label) if isinstance(label, str) and not reason else None,
                **dict(zip(CORNERS, corners, strict=True)),
                "ignore": _find_attribute(attributes, "boolean", "ignore") is True,
                "occlusion": said if isinstance(said, str) and said in _OCCLUSION else part,
                "reason": reason,
            }
        )
