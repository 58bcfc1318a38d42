"""Boxes drawn with the Visual Object Tagging Tool: exports of version 1 (one per video) and of version 2.

Microsoft, github.com/microsoft/VoTT, whose exports carry no licence of their own: it is the owner's.

Takes a JSON file, or all that lie in a folder or zip; exports of a whole project (`*-export.json`) stand for
the files of single assets beside them. Images and videos are not needed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from roadaware.datasets import READERS, Progress
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file
from roadaware.errors import InputError, UsageError
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_object,
    ensure_text_list,
    escape_surrogates,
    format_value,
    parse,
    parse_int,
)
from roadaware.io.sources import Source, find_source, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

# A file of the Visual Object Tagging Tool, version 1 or 2, as shots: one image each, with its regions.

MOST_FRAMES = 10_000_000
MOST_PIXELS = 65_535
_FOREIGN = "check that it is an export of VoTT"
_NUMBER = re.compile(r"[0-9]{1,8}", re.ASCII)
_LARGEST = 1e7
_ASTRAY = "its frame is refused"
# VoTT's states: 0 not visited, 1 visited, 2 tagged; its types: 1 image, 2 video, 3 frame of a video.
_VISITED, _VIDEO_FRAME = 1, 3


@dataclass(frozen=True)
class Region:
    """A box with its tags.

    Args:
        item: how it is called in messages.
        corners: x1, y1, x2, y2 in pixels of `size`.
        size: width and height of the image it was drawn on, None where not said.
        track: what the chosen field says.
        tags: in the file's order.
    """

    item: str
    corners: tuple[float, float, float, float]
    size: tuple[int, int] | None
    track: str | None
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Shot:
    """One image of a video or of an image set.

    Args:
        video: name of what it belongs to.
        number: of the frame from 0, None where only order or time tell it.
        t_s: when it is shown.
        image: its file name, None in a video.
        annotated: whether somebody annotated it.
        size: width and height, None where not said.
        regions: what was drawn on it.
    """

    video: str
    number: int | None
    t_s: float | None
    image: str | None
    annotated: bool | None
    size: tuple[int, int] | None
    regions: tuple[Region, ...] = ()


@dataclass
class Sheet:
    """Content of a file.

    Args:
        file: its name.
        shots: in the file's order.
        tags: that it offers, in its order.
        fps: frames per second by which its frames are counted.
    """

    file: str
    shots: list[Shot] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    fps: float | None = None


@dataclass(frozen=True)
class Reading:
    """How files are read: the place, the options, and where refused rows go."""

    file: str
    where: str
    first_frame: int
    track: str
    findings: Findings

    def refuse(self, table: str, item: str, reason: str) -> None:
        """Count a refused row and say why."""
        self.findings.reject(table, self.file, item, reason)

    def refuse_regions(self, regions: Any, item: str, reason: str) -> None:
        """Refuse each region of a frame that is not taken."""
        for place in range(1, len(regions) + 1 if isinstance(regions, list) else 1):
            self.refuse("boxes", f"{item}, region {place}", reason)


def read_sheet(value: Any, video: str, reading: Reading) -> Sheet:
    """The shots of one file.

    Args:
        value: the whole document.
        video: name of a video whose file does not name it.
        reading: how.

    Raises:
        InputError: if it is no export of VoTT, or its list of frames or assets is none.
    """
    where = reading.where
    top = ensure_object(value, where, "the top")
    if "frames" in top:
        return _version_1(top, video, reading)
    if "assets" in top:
        assets = ensure_object(top["assets"], where, "'assets'")
        listed = [(f"assets/{key}", asset) for key, asset in assets.items()]
        return _version_2(listed, top, video, reading)
    if "asset" in top and "regions" in top:
        return _version_2([("asset", top)], {}, video, reading)
    message = "has neither 'frames' nor 'assets' nor 'asset' with 'regions'"
    raise InputError(message, where=where, hint=_FOREIGN)


def _version_1(top: Mapping[str, Any], video: str, reading: Reading) -> Sheet:
    """Frames by number, or images by name; all that are listed were visited."""
    listed = ensure_object(top["frames"], reading.where, "'frames'")
    offered = top.get("inputTags", "")
    tags = (
        offered.split(",")
        if isinstance(offered, str)
        else ensure_text_list(offered, reading.where, "'inputTags'")
    )
    sheet = Sheet(
        reading.file, [], [escape_surrogates(tag.strip()) for tag in tags if tag.strip()], _rate(top, reading)
    )
    numbered = all(_NUMBER.fullmatch(key) for key in listed)
    for key, regions in listed.items():
        item = f"{video}, frame {key}"
        number = int(key) - reading.first_frame if numbered else None
        if number is not None and not 0 <= number < MOST_FRAMES:
            reason = f"the first frame is {reading.first_frame}: give another as 'first_frame'"
            reading.refuse("frames", item, reason)
            reading.refuse_regions(regions, item, _ASTRAY)
        elif not isinstance(regions, list):
            reading.refuse("frames", item, f"should be a list and is {describe_type(regions)}")
        else:
            held = tuple(_regions(regions, item, _corners_1, reading))
            sizes = [region.size for region in held if region.size is not None]
            image = None if numbered else to_printable(escape_surrogates(key), 255)
            sheet.shots.append(Shot(video, number, None, image, True, sizes[0] if sizes else None, held))
    reading.findings.read["frames"] += len(sheet.shots)
    return sheet


def _version_2(
    listed: Sequence[tuple[str, Any]], top: Mapping[str, Any], video: str, reading: Reading
) -> Sheet:
    """Assets with regions: images, or frames of a video by their time."""
    settings = top.get("videoSettings")
    rate = settings.get("frameExtractionRate") if isinstance(settings, dict) else None
    offered = top.get("tags") if isinstance(top.get("tags"), list) else []
    tags = [
        tag["name"] for tag in offered or () if isinstance(tag, dict) and isinstance(tag.get("name"), str)
    ]
    sheet = Sheet(reading.file, [], [escape_surrogates(tag) for tag in tags], _positive(rate))
    for item, entry in listed:
        shot = _shot(entry, sheet.fps, video, reading)
        if isinstance(shot, str):
            reading.refuse("frames", item, shot)
            reading.refuse_regions(entry.get("regions") if isinstance(entry, dict) else None, item, _ASTRAY)
        elif shot is not None:
            sheet.shots.append(shot)
    reading.findings.read["frames"] += len(sheet.shots)
    return sheet


def _shot(entry: Any, rate: float | None, video: str, reading: Reading) -> Shot | str | None:
    """An asset as a shot, why it is refused, or None for a video as a whole."""
    asset = entry.get("asset") if isinstance(entry, dict) else None
    if not isinstance(asset, dict):
        return f"should be an object with an 'asset' and is {describe_type(entry)}"
    name = asset.get("name")
    if not isinstance(name, str):
        return f"the asset's 'name' should be a text and is {format_value(name)}"
    regions = entry.get("regions", [])
    if not isinstance(regions, list):
        return f"'regions' should be a list and is {describe_type(regions)}"
    state = parse_int(asset.get("state"), 0, 9)
    annotated = None if state is None else state >= _VISITED
    parent, kind = asset.get("parent"), asset.get("type")
    size, text = _size(asset.get("size")), to_printable(name, 60)
    if kind != _VIDEO_FRAME and not isinstance(parent, dict):
        if kind == _VIDEO_FRAME - 1:
            reading.refuse_regions(regions, text, "it is drawn on a video as a whole")
            return None
        held = tuple(_regions(regions, text, _corners_2, reading))
        return Shot(video, None, None, to_printable(escape_surrogates(name), 255), annotated, size, held)
    time = _finite(asset.get("timestamp"))
    if time is None or not 0 <= time < MOST_FRAMES:
        return f"the frame's 'timestamp' should be seconds and is {format_value(asset.get('timestamp'))}"
    owner = parent.get("name") if isinstance(parent, dict) else None
    owner = owner if isinstance(owner, str) else name.partition("#")[0]
    number = None if rate is None else round(time * rate)
    held = tuple(_regions(regions, text, _corners_2, reading))
    return Shot(to_printable(escape_surrogates(owner), 255), number, time, None, annotated, size, held)


_Corners = Callable[[Mapping[str, Any]], tuple[Sequence[Any], tuple[int, int] | None]]


def _regions(regions: Sequence[Any], item: str, corners: _Corners, reading: Reading) -> Iterator[Region]:
    """The regions of one image that can be taken."""
    reading.findings.read["boxes"] += len(regions)
    for place, region in enumerate(regions, 1):
        name = f"{item}, region {place}"
        found = _region(region, name, corners, reading.track)
        if isinstance(found, str):
            reading.findings.reject("boxes", reading.file, name, found, rows=0)
        else:
            yield found


def _region(region: Any, item: str, corners: _Corners, track: str) -> Region | str:
    """A region, or why it cannot be taken."""
    if not isinstance(region, dict):
        return f"should be an object and is {describe_type(region)}"
    written, size = corners(region)
    numbers = [_finite(number) for number in written]
    if None in numbers:
        return f"a corner is no finite number: {', '.join(format_value(number) for number in written)}"
    x1, y1, x2, y2 = (float(number or 0) for number in numbers)
    if not (x1 < x2 and y1 < y2):
        return f"the box {[x1, y1, x2, y2]} is upside down or empty"
    tags = region.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return f"'tags' should be a list of texts and is {describe_type(tags)} of other things"
    named = region.get(track)
    name = str(named) if type(named) is int and abs(named) < 1 << 63 else named
    return Region(
        item,
        (x1, y1, x2, y2),
        size,
        escape_surrogates(name) if isinstance(name, str) else None,
        tuple(dict.fromkeys(escape_surrogates(tag) for tag in tags)),
    )


def _corners_1(region: Mapping[str, Any]) -> tuple[Sequence[Any], tuple[int, int] | None]:
    """Version 1: two corners, and the size of the image beside them."""
    return [region.get(name) for name in ("x1", "y1", "x2", "y2")], _size(region)


def _corners_2(region: Mapping[str, Any]) -> tuple[Sequence[Any], tuple[int, int] | None]:
    """Version 2: a bounding box, also of polygons."""
    box = region.get("boundingBox")
    if not isinstance(box, dict):
        return [None] * 4, None
    left, top, width, height = (_finite(box.get(name)) for name in ("left", "top", "width", "height"))
    if left is None or top is None or width is None or height is None:
        return [box.get(name) for name in ("left", "top", "width", "height")], None
    return [left, top, left + width, top + height], None


def _size(value: Any) -> tuple[int, int] | None:
    """Width and height where both are whole numbers of pixels."""
    if not isinstance(value, dict):
        return None
    sides = [_finite(value.get(name)) for name in ("width", "height")]
    width, height = (parse_int(int(side), 1, MOST_PIXELS) if side is not None else None for side in sides)
    return None if width is None or height is None else (width, height)


def _rate(top: Mapping[str, Any], reading: Reading) -> float | None:
    """The frame rate, which version 1 writes as a text; what is none is null."""
    given = top.get("framerate")
    text = given if isinstance(given, str) else ""
    rate = _positive(float(text) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", text, re.ASCII) else given)
    if rate is None and given is not None:
        reading.findings.warn(
            "frame rates that are no numbers, kept as null", f"{reading.file}: {format_value(given)}"
        )
    return rate


def _positive(value: Any) -> float | None:
    number = _finite(value)
    return number if number is not None and number > 0 else None


def _finite(value: Any) -> float | None:
    """The value as a float if it is a number of reasonable size."""
    known = type(value) in (int, float) and -_LARGEST < value < _LARGEST
    return float(value) if known else None


# From shots with regions to tables: frames get their numbers, boxes their tracks and labels.

TAG = "tag"
_SCHEMAS: dict[str, dict[str, Any]] = {
    "videos": {
        "video": pl.String,
        "scene": pl.String,
        "width_px": pl.Int64,
        "height_px": pl.Int64,
        "fps": pl.Float32,
        "n_frames": pl.Int64,
    },
    "frames": {
        "video": pl.String,
        "frame": pl.Int64,
        "t_s": pl.Float32,
        "annotated": pl.Boolean,
        "image": pl.String,
    },
    "boxes": {
        "box": pl.Int64,
        "video": pl.String,
        "frame": pl.Int64,
        "tube": pl.Int64,
        **dict.fromkeys(CORNERS, pl.Float32),
    },
    "labels": {"box": pl.Int64, "kind": pl.String, "label": pl.Int64},
    "tubes": {
        "tube": pl.Int64,
        "video": pl.String,
        "name": pl.String,
        "start_frame": pl.Int64,
        "end_frame": pl.Int64,
    },
}


@dataclass(frozen=True)
class _Video:
    """All shots of one video in the order of frames, with the frame rate they are counted by."""

    name: str
    file: str
    shots: list[tuple[int, Shot]]
    fps: float | None


def build_vott_tables(
    sheets: Sequence[Sheet], kinds: Mapping[str, list[str]], findings: Findings
) -> tuple[dict[str, pl.DataFrame], dict[str, tuple[str, ...]]]:
    """The tables of all files, and the vocabularies.

    Args:
        sheets: what the files hold.
        kinds: kind to its tags; the tags of none of them make the kind `tag`.
        findings: takes oddities and what is refused.
    """
    # The asked kinds, then `tag`: the tags that the files offer, then those only found on boxes
    offered = [tag for sheet in sheets for tag in sheet.tags]
    used = [tag for sheet in sheets for shot in sheet.shots for region in shot.regions for tag in region.tags]
    known = {tag for tags in kinds.values() for tag in tags}
    for tag in dict.fromkeys(used):
        if offered and tag not in offered:
            findings.warn("tags of boxes that their files do not offer", tag)
    left = [tag for tag in dict.fromkeys([*offered, *used]) if tag not in known]
    found = {kind: tuple(tags) for kind, tags in kinds.items()}
    vocabularies = found | {TAG: (*found.get(TAG, ()), *left)} if left or not found else found
    place = {tag: (kind, n) for kind, tags in vocabularies.items() for n, tag in enumerate(tags)}
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _SCHEMAS}
    for video in _videos(sheets, findings):
        _enter(video, place, rows, findings)
    for name in ("videos", "labels", "tubes"):
        findings.read[name] += len(rows[name])
    return {name: pl.DataFrame(rows[name], schema=schema) for name, schema in _SCHEMAS.items()}, vocabularies


def _videos(sheets: Sequence[Sheet], findings: Findings) -> list[_Video]:
    """The shots by video, each frame once; shots without a number are counted in their order."""
    held: dict[str, list[tuple[Sheet, Shot]]] = {}
    for sheet in sheets:
        for shot in sheet.shots:
            held.setdefault(shot.video, []).append((sheet, shot))
    videos = []
    for name, shots in held.items():
        if any(shot.number is None for _, shot in shots):
            times = sorted({shot.t_s for _, shot in shots if shot.t_s is not None})
            order = {time: n for n, time in enumerate(times)}
            findings.warn(
                "videos whose frames are counted in the order of their times, for want of a rate",
                name,
                int(bool(times)),
            )
            numbers = [n if shot.t_s is None else order[shot.t_s] for n, (_, shot) in enumerate(shots)]
        else:
            numbers = [shot.number or 0 for _, shot in shots]
        first: dict[int, tuple[int, Shot]] = {}
        for number, (sheet, shot) in zip(numbers, shots, strict=True):
            if number not in first:
                first[number] = (number, shot)
                continue
            reason = f"the frame stands in the set twice, with {len(shot.regions)} boxes left out"
            findings.reject("frames", sheet.file, f"{name}, frame {number}", reason, rows=0)
            findings.read["boxes"] -= len(shot.regions)
        rates = {sheet.fps for sheet, _ in shots}
        fps = rates.pop() if len(rates) == 1 else None
        videos.append(_Video(name, shots[0][0].file, [first[n] for n in sorted(first)], fps))
    return videos


def _enter(
    video: _Video,
    place: Mapping[str, tuple[str, int]],
    rows: dict[str, list[dict[str, Any]]],
    findings: Findings,
) -> None:
    """Add the rows of one video."""
    images = any(shot.image is not None for _, shot in video.shots)
    sizes = Counter(shot.size for _, shot in video.shots if shot.size is not None)
    size = sizes.most_common(1)[0][0] if sizes and (len(sizes) == 1 or not images) else None
    head = {"video": video.name, "scene": video.name, "fps": None if images else video.fps}
    rows["videos"].append(head | dict(zip(("width_px", "height_px"), size or (None, None), strict=True)))
    tubes = _tracks(video, len(rows["tubes"]), findings) if not images else {}
    for name, (tube, frames) in tubes.items():
        ends = {"start_frame": min(frames), "end_frame": max(frames) + 1}
        rows["tubes"].append({"tube": tube, "video": video.name, "name": name, **ends})
    for frame, shot in video.shots:
        said = {"t_s": shot.t_s, "annotated": shot.annotated, "image": shot.image}
        rows["frames"].append({"video": video.name, "frame": frame, **said})
        for region in shot.regions:
            box = len(rows["boxes"])
            track = tubes.get(region.track) if region.track is not None else None
            corners = _scale_corners(region.corners, region.size or shot.size, size)
            limit = size or shot.size
            if limit and not (min(corners) >= 0 and corners[2] <= limit[0] and corners[3] <= limit[1]):
                findings.warn("boxes that reach out of their image, kept as they are", region.item)
            named = dict(zip(CORNERS, corners, strict=True))
            rows["boxes"].append(
                {
                    "box": box,
                    "video": video.name,
                    "frame": frame,
                    "tube": None if track is None else track[0],
                    **named,
                }
            )
            for kind, label in sorted(place[tag] for tag in region.tags):
                rows["labels"].append({"box": box, "kind": kind, "label": label})


def _tracks(video: _Video, start: int, findings: Findings) -> dict[str, tuple[int, list[int]]]:
    """Names that several frames have, to their tube and frames; one that a frame has twice is none."""
    seen: dict[str, list[int]] = {}
    for frame, shot in video.shots:
        for region in shot.regions:
            if region.track is not None:
                seen.setdefault(region.track, []).append(frame)
    twice = [name for name, frames in seen.items() if len(set(frames)) < len(frames)]
    findings.warn(
        "names of tracks that a frame has twice, so that their boxes are in no track", video.name, len(twice)
    )
    found = [name for name, frames in seen.items() if len(frames) > 1 and name not in twice]
    return {name: (n, seen[name]) for n, name in enumerate(found, start)}


def _scale_corners(
    corners: tuple[float, float, float, float], drawn: tuple[int, int] | None, size: tuple[int, int] | None
) -> tuple[float, float, float, float]:
    """Corners in pixels of the video's own size."""
    if drawn is None or size is None or drawn == size:
        return corners
    across, down = size[0] / drawn[0], size[1] / drawn[1]
    return corners[0] * across, corners[1] * down, corners[2] * across, corners[3] * down


VERSION = 1
_FIELDS = ("id", "name", "UID")
_WANTED = "VoTT needs its annotations, a file '*.json',"
_HINT = "Point at the exported file, or at the folder or zip that holds it."


def find(path: Path) -> Source:
    """The exports at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(source.files("", ".json")), _WANTED, _HINT, suffix=".json")


def inputs(source: Source, **_: Any) -> list[str]:
    """Names of the files that `read` would read."""
    found = source.files("", ".json")
    return [name for name in found if name.endswith("-export.json")] or found


def read(
    source: Source,
    *,
    kinds: Mapping[str, Sequence[str]] | None = None,
    first_frame: int = 1,
    track: str = "id",
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All files as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Args:
        kinds: kind of label to its tags, in class order; tags of none of them are of the kind `tag`.
        first_frame: the number that version 1 gives a video's first frame.
        track: the field that names a track; a name counts if two frames have it and none has it twice.

    Raises:
        UsageError: if an option is none.
        InputError: if no file can be read.
    """
    asked = _kinds(kinds or {})
    if track not in _FIELDS or type(first_frame) is not int or not 0 <= first_frame <= 1:
        raise UsageError(f"'track' is one of {', '.join(_FIELDS)}, 'first_frame' is 0 or 1")
    findings = Findings()
    sheets: list[Sheet] = []
    names = inputs(source)

    def take(name: str, found: Findings) -> None:
        where = source.where(name)
        value = parse(decode(source.read(name), where), where)
        sheets.append(
            read_sheet(
                value,
                to_printable(escape_surrogates(PurePosixPath(name).name.removesuffix(".json")), 255),
                Reading(name, where, first_frame, track, found),
            )
        )

    errors = read_each_file(names, take, findings, progress)
    if not sheets:
        raise build_unreadable_error(errors)
    tables, vocabularies = build_vott_tables(sheets, asked, findings)
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=findings.build_meta(READERS["vott"], vocabularies, source.contents(names)),
    )


def _kinds(kinds: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The asked kinds, each tag in one of them.

    Raises:
        UsageError: if a tag stands twice.
    """
    twice = [
        tag for tag, count in Counter(tag for tags in kinds.values() for tag in tags).items() if count > 1
    ]
    if twice:
        raise UsageError(f"'kinds' names {', '.join(twice)} twice")
    return {kind: list(tags) for kind, tags in kinds.items()}
