"""Tasks of Label Studio as annotations: regions with labels and texts, and relations between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

import numpy as np

from roadaware.arrays import Bools, Floats, Ints
from roadaware.datasets.issues import Findings
from roadaware.datasets.relation_tables import format_video_name, parse_frame
from roadaware.errors import InputError
from roadaware.io.json import describe_type, escape_surrogates, format_value, parse_int
from roadaware.io.sources import to_printable

# What a result of Label Studio draws: a box over time, a box on an image, a span of frames, a sound.

MOST_FRAMES = 200_000
MOST_PIXELS = 65_535
_LARGEST = 1e7
_FASTEST = 1e5
_EDGES = ("x", "y", "width", "height")
_DRAWS = ("rectanglelabels", "rectangle", "labels")
_NEEDED = {
    "videorectangle": ("tubes", ("sequence",)),
    "timelinelabels": ("tubes", ("ranges",)),
    "timeserieslabels": ("tubes", ("start", "end")),
    "audio": ("sounds", ("start", "end")),
    "audioplus": ("sounds", ("start", "end")),
    "rectanglelabels": ("boxes", _EDGES),
    "rectangle": ("boxes", _EDGES),
}
"""Types that draw one thing alone: the table that it goes to, and what its value must hold."""


@dataclass(frozen=True)
class Reading:
    """The place in an export, and where refused rows go."""

    file: str
    video: str
    findings: Findings

    def refuse(self, table: str, item: str, reason: str) -> None:
        """Count a refused row and say why."""
        self.findings.reject(table, self.file, f"{self.video}, {item}", reason)


@dataclass(frozen=True)
class Drawn:
    """Position and time of a region; fields of other kinds are None or empty.

    Args:
        kind: track (keyframes in a video), box (on an image), span (of frames), time (a span in seconds)
            or sound.
        size: width and height of the image, where the region says so.
        frames: (k,) of the keyframes, from 0, ascending.
        enabled: (k,) whether the box goes on behind them.
        values: (k, 5) left, top, width and height in hundredths of the image, rotation in degrees.
        n_frames: of the video, where said.
        rate: frames per second, where said.
        ranges: spans of frames, half open.
        seconds: start and end.
    """

    kind: str
    size: tuple[int, int] | None = None
    frames: Ints | None = None
    enabled: Bools | None = None
    values: Floats | None = None
    n_frames: int | None = None
    rate: float | None = None
    ranges: tuple[tuple[int, int], ...] = ()
    seconds: tuple[float, float] | None = None


def parse_shape(result: Mapping[str, Any], item: str, reading: Reading) -> Drawn | str | None:
    """The shape of a result, the reason why it is refused, or None where it has no shape that is read.

    What cannot be taken is refused here; the reason is given for the caller to know.
    """
    value = result.get("value")
    if not isinstance(value, dict):
        return None
    kind = result.get("type")
    if kind == "videorectangle":
        # A box over time
        sequence = value.get("sequence")
        if not isinstance(sequence, list) or not sequence:
            return _reject_item(
                reading,
                "tubes",
                item,
                f"'sequence' should be a list of keyframes and is {'empty' if sequence == [] else format_value(sequence)}",
            )
        count = parse_frame(value.get("framesCount"))
        count = count if count is not None and 1 <= count <= MOST_FRAMES else None
        if count is None and value.get("framesCount") is not None:
            what = f"numbers of frames that are none from 1 to {MOST_FRAMES}, left aside"
            reading.findings.warn(what, f"{reading.video}: {format_value(value['framesCount'])}")
        rows: dict[int, tuple[bool, list[float]]] = {}
        times: list[tuple[int, float]] = []
        for place, keyframe in enumerate(sequence):
            found = _keyframe(keyframe, count, rows)
            if isinstance(found, str):
                number = keyframe.get("frame") if isinstance(keyframe, dict) else None
                reading.refuse("boxes", f"{item}, keyframe {place}, frame {format_value(number)}", found)
                continue
            frame, row = found
            rows[frame] = row
            time = parse_number(keyframe.get("time"))
            if time is not None:
                times.append((frame, time))
        if not rows:
            return _reject_item(reading, "tubes", item, "has no keyframe that can be taken")
        frames = sorted(rows)
        if list(rows) != frames:
            reading.findings.warn("sequences that are not in the order of frames, put in it", reading.video)
        return Drawn(
            "track",
            _parse_original_size(result),
            np.array(frames, dtype=np.int64) - 1,
            np.array([rows[frame][0] for frame in frames]),
            np.array([rows[frame][1] for frame in frames]),
            count,
            _rate(times, count, parse_number(value.get("duration"))),
        )
    if "ranges" in value and kind == "timelinelabels":
        return _span(value, item, reading)
    if all(name in value for name in ("start", "end")) and "text" not in value and "startOffset" not in value:
        if kind == "timeserieslabels":
            return _parse_time_span(value, "time", "tubes", item, reading)
        if kind in ("labels", "audio", "audioplus"):
            return _parse_time_span(value, "sound", "sounds", item, reading)
    if kind in _DRAWS and all(name in value for name in _EDGES):
        # A box on an image
        numbers = _numbers(value)
        if isinstance(numbers, str):
            return _reject_item(reading, "boxes", f"{item}, frame 0", numbers)
        one = np.zeros(1, dtype=np.int64)
        return Drawn("box", _parse_original_size(result), one, one.astype(np.bool_), np.array([numbers]))
    return None


def is_shape(result: Mapping[str, Any]) -> bool:
    """Whether a result is of a type that draws, rather than says something of what is drawn."""
    kind = result.get("type")
    return isinstance(kind, str) and kind in (*_NEEDED, "labels")


def find_missing_fields(result: Mapping[str, Any]) -> tuple[str, str] | None:
    """The table that a result should fill and why it cannot; None where it need not draw anything.

    Labels alone can be of a text or a polygon: they are only known for a box by its height.

    Args:
        result: of which `parse_shape` gave None.
    """
    kind, value = result.get("type"), result.get("value")
    table: str
    needed: tuple[str, ...]
    if kind == "labels":
        table, needed = "boxes", _EDGES
        if isinstance(value, dict) and "height" not in value:
            return None
    elif isinstance(kind, str) and kind in _NEEDED:
        table, needed = _NEEDED[kind]
    else:
        return None
    if not isinstance(value, dict):
        return table, f"'value' should be an object and is {describe_type(value)}"
    lost = [f"'{name}'" for name in needed if name not in value]
    return (table, f"its value has no {', '.join(lost)}") if lost else None


def parse_number(value: Any) -> float | None:
    """The value as a float if it is a number of reasonable size."""
    known = type(value) in (int, float) and -_LARGEST < value < _LARGEST
    return float(value) if known else None


def convert_to_corners(values: Floats, size: tuple[int, int]) -> Floats:
    """(n, 4) corners in pixels; of a turned box those of the upright one around it.

    Args:
        values: (n, 5) left, top, width and height in hundredths, degrees clockwise about the corner.
        size: width and height of the image in pixels.
    """
    scale = np.array([*size, *size]) / 100
    left, top, width, height = (values[:, :4] * scale).T
    plain = np.stack([left, top, left + width, top + height], axis=1)
    turned = values[:, 4] % 360 != 0
    if turned.any():
        angle = np.radians(values[turned, 4])
        cosine, sine = np.cos(angle), np.sin(angle)
        across = np.stack([0 * sine, width[turned] * cosine, -height[turned] * sine])
        down = np.stack([0 * sine, width[turned] * sine, height[turned] * cosine])
        ends = [np.stack([*side, side[1] + side[2]]) for side in (across, down)]
        x, y = left[turned] + ends[0], top[turned] + ends[1]
        plain[turned] = np.stack([x.min(axis=0), y.min(axis=0), x.max(axis=0), y.max(axis=0)], axis=1)
    return plain


def _keyframe(
    value: Any, count: int | None, rows: Mapping[int, Any]
) -> tuple[int, tuple[bool, list[float]]] | str:
    """The frame of a keyframe with what it holds, or why it cannot be taken."""
    if not isinstance(value, dict):
        return f"should be an object and is {describe_type(value)}"
    frame = parse_frame(value.get("frame"))
    if frame is None or not 1 <= frame <= MOST_FRAMES:
        return f"'frame' should be a number from 1 to {MOST_FRAMES} and is {format_value(value.get('frame'))}"
    if frame in rows:
        return f"a second keyframe in frame {frame}"
    if count is not None and frame > count:
        return f"frame {frame} lies behind the end of the video, which has {count}"
    enabled = value.get("enabled", True)
    if not isinstance(enabled, bool):
        return f"'enabled' should be true or false and is {format_value(enabled)}"
    numbers = _numbers(value)
    return numbers if isinstance(numbers, str) else (frame, (enabled, numbers))


def _numbers(value: Mapping[str, Any]) -> list[float] | str:
    """Left, top, width, height and rotation, or what is wrong with them."""
    written = [*(value.get(name) for name in _EDGES), value.get("rotation", 0)]
    numbers = [parse_number(each) for each in written]
    found = [each for each in numbers if each is not None]
    if len(found) < len(written):
        return f"a corner is no finite number: {', '.join(format_value(each) for each in written)}"
    if found[2] < 0 or found[3] < 0:
        return f"the box is upside down: width {found[2]:g}, height {found[3]:g}"
    return found


def _span(value: Mapping[str, Any], item: str, reading: Reading) -> Drawn | str:
    """Spans of frames, which count from 1 and have their last frame inside."""
    listed = value["ranges"]
    ranges: list[tuple[int, int]] = []
    for each in listed if isinstance(listed, list) else []:
        held = each if isinstance(each, dict) else {}
        start, end = parse_frame(held.get("start")), parse_frame(held.get("end"))
        if start is None or end is None or not 1 <= start <= end <= MOST_FRAMES:
            text = f"{format_value(held.get('start'))} to {format_value(held.get('end'))}"
            return _reject_item(
                reading, "tubes", item, f"a range should run from frame 1 on, forward: {text}"
            )
        ranges.append((start - 1, end))
    if not ranges:
        return _reject_item(reading, "tubes", item, "has no range")
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return Drawn("span", ranges=tuple(joined))


def _parse_time_span(
    value: Mapping[str, Any], kind: str, table: str, item: str, reading: Reading
) -> Drawn | str:
    """A span in seconds."""
    start, end = parse_number(value["start"]), parse_number(value["end"])
    if start is None or end is None or not 0 <= start <= end:
        text = f"{format_value(value['start'])} to {format_value(value['end'])}"
        return _reject_item(reading, table, item, f"should run from second 0 on, forward: {text}")
    return Drawn(kind, seconds=(start, end))


def _reject_item(reading: Reading, table: str, item: str, reason: str) -> str:
    reading.refuse(table, item, reason)
    return reason


def _parse_original_size(result: Mapping[str, Any]) -> tuple[int, int] | None:
    width, height = (
        parse_int(result.get(f"original_{side}"), 1, MOST_PIXELS) for side in ("width", "height")
    )
    return None if width is None or height is None else (width, height)


def _rate(times: list[tuple[int, float]], count: int | None, duration: float | None) -> float | None:
    """Frames per second: what frames and times of keyframes agree on, else the length over the duration.

    Label Studio writes a frame's number over the rate as its time, later versions that of its beginning.
    """
    for shift in (0, 1):
        rates = [(frame - shift) / time for frame, time in times if time > 0 and frame > shift]
        if rates and max(rates) - min(rates) < 1e-3 * max(rates) and (len(rates) > 1 or shift == 0):
            return _within(float(np.round(np.median(rates), 6)))
    return _within(count / duration) if count and duration and duration > 0 else None


def _within(rate: float) -> float | None:
    return rate if 0 < rate < _FASTEST else None


Which = Literal["annotations", "predictions"]

EMBEDDED = "label"
"""The kind of labels that a video's rectangle carries itself, whose control the export does not name."""

VIDEO_NAME = "video_name"
"""What a task's data may hold: the name of the video, where that is not the last part of its path."""

_MEDIA = ("video", "image", "audio")
_UPLOADED = re.compile(r"[0-9a-f]{8}-(?=.)")
_LOCAL = re.compile(r"[?&]d=([^&#]+)")
_ARROWS = {"right": ((0, 1),), "left": ((1, 0),), "bi": ((0, 1), (1, 0))}


@dataclass
class Region:
    """A region or span with its labels.

    Args:
        name: its identifier in the export.
        drawn: where and when it is.
        control: that it was drawn with.
        labels: control to its labels, in the file's order.
        texts: descriptions.
        score: of a prediction.
    """

    name: str
    drawn: Drawn
    control: str = ""
    labels: dict[str, list[str]] = field(default_factory=dict)
    embedded: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    score: float | None = None

    def kinds(self) -> dict[str, list[str]]:
        """Control to labels; those that the region carries itself count where no control gives them too."""
        given = {word for words in self.labels.values() for word in words}
        own = [word for word in self.embedded if word not in given]
        return {**self.labels, EMBEDDED: own} if own else self.labels


@dataclass(frozen=True)
class Link:
    """A relation between two regions, by their names."""

    item: str
    subject: str
    object: str
    predicate: str


@dataclass
class Annotation:
    """The annotation of a task by one annotator or model.

    Args:
        author: who it is, None where the export does not say.
        regions: by name.
        links: in the file's order.
        texts: of the whole task, each with its identifier.
        choices: of the whole task, control to choices.
        seconds: that it took, where the export says so.
        refused: identifiers of what should be a region and could not be taken, None of what has none.
        foreign: identifiers of results that draw what is not read, such as outlines.
    """

    author: str | None
    regions: dict[str, Region] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    choices: dict[str, list[str]] = field(default_factory=dict)
    seconds: float | None = None
    refused: list[str | None] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Task:
    """A video, image or recording with everything that is said of it.

    Args:
        file: it stands in.
        name: of the task.
        video: name of the video or image.
        media: its kind: video, image, audio; empty where not said.
        path: of the media, as the export has it.
        size: width and height in pixels, where the task's data or a region says so.
        annotations: in the file's order.
        skipped: who cancelled an annotation of it, and the seconds that it took, each None where not said.
    """

    file: str
    name: str
    video: str
    media: str
    path: str
    size: tuple[int, int] | None
    annotations: tuple[Annotation, ...]
    skipped: tuple[tuple[str | None, float | None], ...] = ()


def parse_tasks(content: Any, where: str, file: str, which: Which, findings: Findings) -> Iterator[Task]:
    """The tasks of one export.

    Args:
        content: the whole document.
        where: names the file in errors.
        file: its name.
        which: whether annotations or predictions are taken.
        findings: takes what is refused.

    Raises:
        InputError: if it is no list of tasks.
    """
    hint = "export as JSON (not JSON-MIN, CSV or other forms): a list of tasks with 'annotations'"
    if not isinstance(content, list):
        message = f"the top should be a list of tasks and is {describe_type(content)}: there is no task in it"
        raise InputError(message, where=where, hint=hint)
    if not content:
        raise InputError("the list holds no task", where=where, hint=hint)
    if not any(map(_is_task, content)):
        first = content[0]
        text = "an object without 'data'" if isinstance(first, dict) else describe_type(first)
        raise InputError(f"a task should be an object with 'data' and is {text}", where=where, hint=hint)
    seen: set[tuple[Any, str]] = set()
    for place, value in enumerate(content):
        if not _is_task(value):
            reason = f"should be an object with 'data': {format_value(value)}"
            findings.reject("videos", file, f"task {place}", reason)
        elif (known := _identity(value)) in seen:
            reason = (
                f"a second task of the number {format_value(known[0])} about the same; the first one counts"
            )
            findings.reject("videos", file, f"task {place}", reason)
        else:
            if known[0] is not None:
                seen.add(known)
            yield _task(value, place, file, which, findings)


def _is_task(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("data"), dict)


def _identity(value: Mapping[str, Any]) -> tuple[Any, str]:
    """The number of a task, None where it has none, and the path that it is about."""
    number = value.get("id")
    return number if type(number) in (int, str) else None, _media(value["data"])[1]


def _task(value: Mapping[str, Any], place: int, file: str, which: Which, findings: Findings) -> Task:
    data: Mapping[str, Any] = value["data"]
    media, path = _media(data)
    name = str(value.get("id")) if type(value.get("id")) in (int, str) else f"{place + 1}"
    named = data.get(VIDEO_NAME)
    video = format_video_name(named) if isinstance(named, str) and named else _media_name(path)
    reading = Reading(file, video or f"task {to_printable(escape_surrogates(name), 60)}", findings)
    annotations: list[Annotation] = []
    skipped: list[tuple[str | None, float | None]] = []
    listed = value.get(which, [])
    if not isinstance(listed, list):
        reading.refuse("annotations", f"'{which}'", f"should be a list and is {describe_type(listed)}")
        listed = []
    for each in listed:
        if isinstance(each, dict) and each.get("was_cancelled") is True:
            findings.left_out["annotations that were cancelled"] += 1
            skipped.append((_author(each, which), _seconds(each)))
        elif isinstance(each, dict) and isinstance(each.get("result"), list):
            annotations.append(_annotation(each, which, reading))
        else:
            reading.refuse(
                "annotations", "annotation", f"should be an object with 'result': {format_value(each)}"
            )
    other = "predictions" if which == "annotations" else "annotations"
    if isinstance(value.get(other), list) and value[other]:
        findings.left_out[other] += len(value[other])
    return Task(
        file,
        to_printable(escape_surrogates(name), 60),
        reading.video,
        media,
        path,
        _size(data, annotations),
        tuple(annotations),
        tuple(skipped),
    )


def _media_name(path: str) -> str:
    """The name of a video or image: the last part of its path, without what an upload puts before it."""
    local = _LOCAL.search(path)
    plain = local[1] if local else re.split(r"[?#]", path, maxsplit=1)[0]
    last = unquote(plain.rstrip("/").rpartition("/")[2])
    return format_video_name(_UPLOADED.sub("", last, count=1) if "/data/upload/" in path else last)


def _media(data: Mapping[str, Any]) -> tuple[str, str]:
    """Kind of media of a task, and its path."""
    for name in _MEDIA:
        if isinstance(data.get(name), str):
            return name, data[name]
    texts = [(name, text) for name, text in data.items() if isinstance(text, str) and "." in text]
    return ("", texts[0][1]) if texts else ("", "")


def _annotation(value: Mapping[str, Any], which: Which, reading: Reading) -> Annotation:
    """One annotation: first what is drawn, then what is said of it."""
    found = Annotation(_author(value, which), seconds=_seconds(value))
    rest: list[Mapping[str, Any]] = []
    for place, result in enumerate(value["result"]):
        if not isinstance(result, dict):
            reading.refuse(
                "annotations", f"result {place}", f"should be an object and is {describe_type(result)}"
            )
            found.refused.append(None)
            continue
        drawn = _add_region(result, found, reading)
        if drawn is None:
            rest.append(result)
    for result in rest:
        # Add what a result says of a region, of two, or of the whole task
        kind = result.get("type")
        name = result.get("id")
        name = escape_surrogates(name) if isinstance(name, str) else None
        region = None if name is None else found.regions.get(name)
        if kind == "relation":
            found.links += _links(result, reading)
        elif region is not None:
            if not _refused_again(result, region, reading):
                _label(result, region, reading)
                region.texts += _texts(result)
        elif (lacking := find_missing_fields(result)) is not None:
            reading.refuse(lacking[0], f"region {format_value(name)}", lacking[1])
            found.refused.append(name)
        elif name is not None and name in found.refused:
            pass  # It is said of something that was refused, and not of the whole task.
        elif kind == "textarea":
            found.texts += [(name or "", text) for text in _texts(result)]
        elif kind == "choices":
            found.choices.setdefault(_control(result), []).extend(_words(result, "choices"))
        else:
            reading.findings.left_out[
                f"results of the type {to_printable(escape_surrogates(str(kind)), 40)}"
            ] += 1
            found.foreign += [name] if name is not None else []
    return found


def _add_region(result: Mapping[str, Any], found: Annotation, reading: Reading) -> Drawn | str | None:
    """Add the region that a result draws; None where it draws none that is not there yet."""
    name = result.get("id")
    if result.get("type") == "relation" or (
        isinstance(name, str) and escape_surrogates(name) in found.regions
    ):
        return None
    item = f"region {format_value(name)}"
    drawn = parse_shape(result, item, reading)
    if drawn is None:
        return None
    if isinstance(drawn, str):
        found.refused.append(escape_surrogates(name) if isinstance(name, str) else None)
        return drawn
    name = escape_surrogates(name) if isinstance(name, str) else f"{len(found.regions) + 1}"
    region = Region(name, drawn, _control(result))
    score = parse_number(result.get("score"))
    region.score = score if score is not None and 0 <= score <= 1 else None
    _label(result, region, reading)
    found.regions[region.name] = region
    return drawn


def _refused_again(result: Mapping[str, Any], region: Region, reading: Reading) -> bool:
    """Refuse a second box or track under the identifier of another; whether it was.

    Every control of a region repeats its shape, so that what another shape or the same control comes with
    is something else.
    """
    value, known = result.get("value"), region.drawn.values
    shape = value if isinstance(value, dict) else {}
    edges = [parse_number(shape.get(name)) for name in ("x", "y", "width", "height")]
    first = known[0, :4].tolist() if region.drawn.kind == "box" and known is not None else edges
    other = None not in edges and edges != first
    if not other and not (is_shape(result) and _control(result) == region.control):
        return False
    table, what = ("boxes", "box") if region.drawn.kind == "box" else ("tubes", "region")
    reason = f"a second {what} under the identifier of another; the first one counts"
    reading.refuse(table, f"region {region.name}", reason)
    return True


def _label(result: Mapping[str, Any], region: Region, reading: Reading) -> None:
    """Add the labels and choices of a result to its region."""
    kind = result.get("type")
    value = result.get("value")
    names = [name for name in (value if isinstance(value, dict) else {}) if name.endswith("labels")]
    for name in (*names, "choices"):
        words = _words(result, name)
        if kind == "videorectangle":
            region.embedded += [word for word in words if word not in region.embedded]
        elif words:
            held = region.labels.setdefault(_control(result), [])
            held += [word for word in words if word not in held]
    if isinstance(value, dict) and any(not isinstance(value[name], list) for name in names):
        reading.findings.warn("labels that are no list, left aside", f"{reading.video}, region {region.name}")


def _links(result: Mapping[str, Any], reading: Reading) -> list[Link]:
    """The relations of one arrow: one for each label and direction."""
    ends = [result.get(name) for name in ("from_id", "to_id")]
    item = f"relation {format_value(ends[0])} to {format_value(ends[1])}"
    labels = result.get("labels")
    labels = (
        [escape_surrogates(label) for label in labels if isinstance(label, str)]
        if isinstance(labels, list)
        else []
    )
    arrows = _ARROWS.get(str(result.get("direction", "right")))
    if not all(isinstance(end, str) for end in ends):
        reading.refuse("relations", item, "'from_id' and 'to_id' should name two regions")
    elif not labels:
        reading.refuse("relations", item, "has no label")
    elif arrows is None:
        text = format_value(result.get("direction"))
        reading.refuse("relations", item, f"'direction' should be right, left or bi and is {text}")
    else:
        names = [escape_surrogates(str(end)) for end in ends]
        return [Link(item, names[a], names[b], label) for label in labels for a, b in arrows]
    return []


def _texts(result: Mapping[str, Any]) -> list[str]:
    """The texts of a description."""
    value = result.get("value")
    text = value.get("text") if isinstance(value, dict) and result.get("type") == "textarea" else None
    listed = text if isinstance(text, list) else [text]
    return [escape_surrogates(each) for each in listed if isinstance(each, str)]


def _words(result: Mapping[str, Any], name: str) -> list[str]:
    value = result.get("value")
    listed = value.get(name) if isinstance(value, dict) else None
    return (
        [escape_surrogates(word) for word in listed if isinstance(word, str)]
        if isinstance(listed, list)
        else []
    )


def _control(result: Mapping[str, Any]) -> str:
    """The control that a result was made with, else its type."""
    name = result.get("from_name")
    return escape_surrogates(name if isinstance(name, str) and name else str(result.get("type")))


def _author(value: Mapping[str, Any], which: Which) -> str | None:
    """Author of an annotation: a number, an address where there is no number, or a model's version."""
    author = value.get("completed_by" if which == "annotations" else "model_version")
    if isinstance(author, dict):
        author = author.get("id", author.get("email"))
    if type(author) is int:
        return str(author) if abs(author) < 1 << 63 else None
    return escape_surrogates(author) if isinstance(author, str) else None


def _seconds(value: Mapping[str, Any]) -> float | None:
    """Seconds of an annotation."""
    found = parse_number(value.get("lead_time"))
    return found if found is not None and found >= 0 else None


def _size(data: Mapping[str, Any], annotations: Sequence[Annotation]) -> tuple[int, int] | None:
    """Width and height: what regions say, else what the task's data says."""
    drawn = [region.drawn.size for each in annotations for region in each.regions.values()]
    said = [size for size in drawn if size is not None]
    if said:
        return said[0]
    sides = [parse_number(data.get(name)) for name in ("width", "height")]
    if (
        sides[0] is None
        or sides[1] is None
        or not 1 <= min(sides[0], sides[1]) <= max(sides[0], sides[1]) < 65536
    ):
        return None
    return int(sides[0]), int(sides[1])


# Sequences of keyframes, as Label Studio draws boxes in videos: brought to boxes, and boxes to keyframes.


def interpolate_keyframes(frames: Ints, enabled: Bools, values: Floats, last: int) -> tuple[Ints, Floats]:
    """Every frame in which a box is seen, with its values.

    A keyframe is seen in its own frame; behind one that is enabled the box goes on in straight lines to the
    next keyframe, and behind the last one it stays as it is until the end of the video.

    Args:
        frames: (k,) of the keyframes, ascending.
        enabled: (k,) whether the box goes on behind them.
        values: (k, n) what is drawn in each.
        last: the last frame of the video.

    Returns:
        (m,) frames, ascending, and (m, n) the values in them.

    Source: the key frames of Label Studio's SDK and of its video regions.
    """
    ends = np.append(frames[1:] - 1, last)
    stretches = [
        np.arange(start, max(start, end) + 1) if on else np.array([start])
        for start, end, on in zip(frames.tolist(), ends.tolist(), enabled.tolist(), strict=True)
    ]
    seen = np.concatenate([np.zeros(0, np.int64), *stretches])
    columns = [np.interp(seen, frames, values[:, n]) for n in range(values.shape[1])]
    return seen, np.stack(columns, axis=1)


def select_keyframes(frames: Ints, values: Floats, tolerance: float) -> tuple[Ints, Bools]:
    """The keyframes from which `interpolate_keyframes` makes the same frames, and values at most a tolerance away.

    Frames come in runs without a gap; the first and last of each are keyframes, and within one the frame
    that is farthest from the straight line between two keyframes is another, until none is too far.

    Args:
        frames: (m,) ascending.
        values: (m, n) what is seen in each.
        tolerance: how far a value may be away.

    Returns:
        (k,) places of the keyframes, ascending, and (k,) whether the box goes on behind them.

    Source: Ramer 1972; Douglas and Peucker 1973.
    """
    kept = np.zeros(len(frames), dtype=np.bool_)
    starts = np.flatnonzero(np.diff(frames, prepend=-2) != 1)
    ends = np.append(starts[1:] - 1, len(frames) - 1)
    kept[starts] = kept[ends] = True
    left = list(zip(starts.tolist(), ends.tolist(), strict=True))
    while left:
        first, end = left.pop()
        if end - first < 2:
            continue
        # By frame number, as Label Studio interpolates, not by place.
        share = ((frames[first + 1 : end] - frames[first]) / (frames[end] - frames[first]))[:, None]
        line = values[first] + share * (values[end] - values[first])
        away = np.abs(values[first + 1 : end] - line).max(axis=1)
        farthest = int(away.argmax())
        if away[farthest] > tolerance:
            middle = first + 1 + farthest
            kept[middle] = True
            left += [(first, middle), (middle, end)]
    places = np.flatnonzero(kept)
    return places, ~np.isin(places, ends)
