"""A file of the Visual Object Tagging Tool, version 1 or 2, as shots: one image each, with its regions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from roadaware.errors import InputError
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import an_object, clean, kind_of, names, quoted, whole
from roadaware.scenes.readers.source import shown

MOST_FRAMES = 10_000_000
MOST_PIXELS = 65_535
_FOREIGN = "check that it is an export of VoTT"
_NUMBER = re.compile(r"[0-9]{1,8}", re.ASCII)
_LARGEST = 1e7
_ASTRAY = "its frame is refused"
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
        annotated: whether somebody looked at it.
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
    """What a file holds.

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
    top = an_object(value, where, "the top")
    if "frames" in top:
        return _version_1(top, video, reading)
    if "assets" in top:
        assets = an_object(top["assets"], where, "'assets'")
        listed = [(f"assets/{key}", asset) for key, asset in assets.items()]
        return _version_2(listed, top, video, reading)
    if "asset" in top and "regions" in top:
        return _version_2([("asset", top)], {}, video, reading)
    message = "has neither 'frames' nor 'assets' nor 'asset' with 'regions'"
    raise InputError(message, where=where, hint=_FOREIGN)


def _version_1(top: Mapping[str, Any], video: str, reading: Reading) -> Sheet:
    """Frames by number, or images by name; all that are listed were visited."""
    listed = an_object(top["frames"], reading.where, "'frames'")
    offered = top.get("inputTags", "")
    tags = offered.split(",") if isinstance(offered, str) else names(offered, reading.where, "'inputTags'")
    sheet = Sheet(reading.file, [], [clean(tag.strip()) for tag in tags if tag.strip()], _rate(top, reading))
    numbered = all(_NUMBER.fullmatch(key) for key in listed)
    for key, regions in listed.items():
        item = f"{video}, frame {key}"
        number = int(key) - reading.first_frame if numbered else None
        if number is not None and not 0 <= number < MOST_FRAMES:
            reason = f"the first frame is {reading.first_frame}: give another as 'first_frame'"
            reading.refuse("frames", item, reason)
            reading.refuse_regions(regions, item, _ASTRAY)
        elif not isinstance(regions, list):
            reading.refuse("frames", item, f"should be a list and is {kind_of(regions)}")
        else:
            held = tuple(_regions(regions, item, _corners_1, reading))
            sizes = [region.size for region in held if region.size is not None]
            image = None if numbered else shown(clean(key), 255)
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
    sheet = Sheet(reading.file, [], [clean(tag) for tag in tags], _positive(rate))
    for item, entry in listed:
        shot = _shot(item, entry, sheet.fps, video, reading)
        if isinstance(shot, str):
            reading.refuse("frames", item, shot)
            reading.refuse_regions(entry.get("regions") if isinstance(entry, dict) else None, item, _ASTRAY)
        elif shot is not None:
            sheet.shots.append(shot)
    reading.findings.read["frames"] += len(sheet.shots)
    return sheet


def _shot(item: str, entry: Any, rate: float | None, video: str, reading: Reading) -> Shot | str | None:
    """An asset as a shot, why it is refused, or None for a video as a whole."""
    asset = entry.get("asset") if isinstance(entry, dict) else None
    if not isinstance(asset, dict):
        return f"should be an object with an 'asset' and is {kind_of(entry)}"
    name = asset.get("name")
    if not isinstance(name, str):
        return f"the asset's 'name' should be a text and is {quoted(name)}"
    regions = entry.get("regions", [])
    if not isinstance(regions, list):
        return f"'regions' should be a list and is {kind_of(regions)}"
    state = whole(asset.get("state"), 0, 9)
    annotated = None if state is None else state >= _VISITED
    parent, kind = asset.get("parent"), asset.get("type")
    size, told = _size(asset.get("size")), shown(name, 60)
    if kind != _VIDEO_FRAME and not isinstance(parent, dict):
        if kind == _VIDEO_FRAME - 1:
            reading.refuse_regions(regions, told, "it is drawn on a video as a whole")
            return None
        held = tuple(_regions(regions, told, _corners_2, reading))
        return Shot(video, None, None, shown(clean(name), 255), annotated, size, held)
    time = _finite(asset.get("timestamp"))
    if time is None or not 0 <= time < MOST_FRAMES:
        return f"the frame's 'timestamp' should be seconds and is {quoted(asset.get('timestamp'))}"
    owner = parent.get("name") if isinstance(parent, dict) else None
    owner = owner if isinstance(owner, str) else name.partition("#")[0]
    number = None if rate is None else round(time * rate)
    held = tuple(_regions(regions, told, _corners_2, reading))
    return Shot(shown(clean(owner), 255), number, time, None, annotated, size, held)


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
        return f"should be an object and is {kind_of(region)}"
    written, size = corners(region)
    numbers = [_finite(number) for number in written]
    if None in numbers:
        return f"a corner is no finite number: {', '.join(quoted(number) for number in written)}"
    x1, y1, x2, y2 = (float(number or 0) for number in numbers)
    if not (x1 < x2 and y1 < y2):
        return f"the box {[x1, y1, x2, y2]} is upside down or empty"
    tags = region.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        return f"'tags' should be a list of texts and is {kind_of(tags)} of other things"
    named = region.get(track)
    name = str(named) if type(named) is int and abs(named) < 1 << 63 else named
    return Region(
        item,
        (x1, y1, x2, y2),
        size,
        clean(name) if isinstance(name, str) else None,
        tuple(dict.fromkeys(clean(tag) for tag in tags)),
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
    width, height = (whole(int(side), 1, MOST_PIXELS) if side is not None else None for side in sides)
    return None if width is None or height is None else (width, height)


def _rate(top: Mapping[str, Any], reading: Reading) -> float | None:
    """The frame rate, which version 1 writes as a text; what is none is null."""
    given = top.get("framerate")
    text = given if isinstance(given, str) else ""
    rate = _positive(float(text) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,9})?", text, re.ASCII) else given)
    if rate is None and given is not None:
        reading.findings.warn(
            "frame rates that are no numbers, kept as null", f"{reading.file}: {quoted(given)}"
        )
    return rate


def _positive(value: Any) -> float | None:
    number = _finite(value)
    return number if number is not None and number > 0 else None


def _finite(value: Any) -> float | None:
    """The value as a float if it is a number of reasonable size."""
    known = type(value) in (int, float) and -_LARGEST < value < _LARGEST
    return float(value) if known else None
