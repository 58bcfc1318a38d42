"""Tasks of Label Studio as annotations: regions with labels and texts, and relations between them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote

from roadaware.errors import InputError
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.json import clean, kind_of, quoted
from roadaware.scenes.readers.label_studio_shapes import (
    Drawn,
    Reading,
    drawn_of,
    draws,
    lacking_of,
    number_of,
)
from roadaware.scenes.readers.relation_instances import video_name
from roadaware.scenes.readers.source import shown

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
    """Something drawn or marked, with what is said of it.

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
    """Who does what to whom, by names of regions."""

    item: str
    subject: str
    object: str
    predicate: str


@dataclass
class Annotation:
    """What one annotator, or one model, says of a task.

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
    """A video, picture or recording with everything that is said of it.

    Args:
        file: it stands in.
        name: of the task.
        video: name of the video or picture.
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


def tasks_of(content: Any, where: str, file: str, which: Which, findings: Findings) -> Iterator[Task]:
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
        message = f"the top should be a list of tasks and is {kind_of(content)}: there is no task in it"
        raise InputError(message, where=where, hint=hint)
    if not content:
        raise InputError("the list holds no task", where=where, hint=hint)
    if not any(map(_is_task, content)):
        first = content[0]
        told = "an object without 'data'" if isinstance(first, dict) else kind_of(first)
        raise InputError(f"a task should be an object with 'data' and is {told}", where=where, hint=hint)
    seen: set[tuple[Any, str]] = set()
    for place, value in enumerate(content):
        if not _is_task(value):
            reason = f"should be an object with 'data': {quoted(value)}"
            findings.reject("videos", file, f"task {place}", reason)
        elif (known := _identity(value)) in seen:
            reason = f"a second task of the number {quoted(known[0])} about the same; the first one counts"
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
    video = video_name(named) if isinstance(named, str) and named else _media_name(path)
    reading = Reading(file, video or f"task {shown(clean(name), 60)}", findings)
    annotations: list[Annotation] = []
    skipped: list[tuple[str | None, float | None]] = []
    listed = value.get(which, [])
    if not isinstance(listed, list):
        reading.refuse("annotations", f"'{which}'", f"should be a list and is {kind_of(listed)}")
        listed = []
    for each in listed:
        if isinstance(each, dict) and each.get("was_cancelled") is True:
            findings.left_out["annotations that were cancelled"] += 1
            skipped.append((_author(each, which), _seconds(each)))
        elif isinstance(each, dict) and isinstance(each.get("result"), list):
            annotations.append(_annotation(each, which, reading))
        else:
            reading.refuse("annotations", "annotation", f"should be an object with 'result': {quoted(each)}")
    other = "predictions" if which == "annotations" else "annotations"
    if isinstance(value.get(other), list) and value[other]:
        findings.left_out[other] += len(value[other])
    return Task(
        file,
        shown(clean(name), 60),
        reading.video,
        media,
        path,
        _size(data, annotations),
        tuple(annotations),
        tuple(skipped),
    )


def _media_name(path: str) -> str:
    """The name of a video or picture: the last part of its path, without what an upload puts before it."""
    local = _LOCAL.search(path)
    plain = local[1] if local else re.split(r"[?#]", path, maxsplit=1)[0]
    last = unquote(plain.rstrip("/").rpartition("/")[2])
    return video_name(_UPLOADED.sub("", last, count=1) if "/data/upload/" in path else last)


def _media(data: Mapping[str, Any]) -> tuple[str, str]:
    """What kind of media a task is about, and its path."""
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
            reading.refuse("annotations", f"result {place}", f"should be an object and is {kind_of(result)}")
            found.refused.append(None)
            continue
        drawn = _drawn(result, found, reading)
        if drawn is None:
            rest.append(result)
    for result in rest:
        _said(result, found, reading)
    return found


def _drawn(result: Mapping[str, Any], found: Annotation, reading: Reading) -> Drawn | str | None:
    """Add the region that a result draws; None where it draws none that is not there yet."""
    name = result.get("id")
    if result.get("type") == "relation" or (isinstance(name, str) and clean(name) in found.regions):
        return None
    item = f"region {quoted(name)}"
    drawn = drawn_of(result, item, reading)
    if drawn is None:
        return None
    if isinstance(drawn, str):
        found.refused.append(clean(name) if isinstance(name, str) else None)
        return drawn
    name = clean(name) if isinstance(name, str) else f"{len(found.regions) + 1}"
    region = Region(name, drawn, _control(result))
    score = number_of(result.get("score"))
    region.score = score if score is not None and 0 <= score <= 1 else None
    _label(result, region, reading)
    found.regions[region.name] = region
    return drawn


def _said(result: Mapping[str, Any], found: Annotation, reading: Reading) -> None:
    """Add what a result says of a region, of two, or of the whole task."""
    kind = result.get("type")
    name = result.get("id")
    name = clean(name) if isinstance(name, str) else None
    region = None if name is None else found.regions.get(name)
    if kind == "relation":
        found.links += _links(result, reading)
    elif region is not None:
        if not _refused_again(result, region, reading):
            _label(result, region, reading)
            region.texts += _texts(result)
    elif (lacking := lacking_of(result)) is not None:
        reading.refuse(lacking[0], f"region {quoted(name)}", lacking[1])
        found.refused.append(name)
    elif name is not None and name in found.refused:
        pass  # It is said of something that was refused, and not of the whole task.
    elif kind == "textarea":
        found.texts += [(name or "", text) for text in _texts(result)]
    elif kind == "choices":
        found.choices.setdefault(_control(result), []).extend(_words(result, "choices"))
    else:
        reading.findings.left_out[f"results of the type {shown(clean(str(kind)), 40)}"] += 1
        found.foreign += [name] if name is not None else []


def _refused_again(result: Mapping[str, Any], region: Region, reading: Reading) -> bool:
    """Refuse a second box or track under the identifier of another; whether it was.

    Every control of a region repeats its shape, so that what another shape or the same control comes with
    is something else.
    """
    value, known = result.get("value"), region.drawn.values
    shape = value if isinstance(value, dict) else {}
    edges = [number_of(shape.get(name)) for name in ("x", "y", "width", "height")]
    first = known[0, :4].tolist() if region.drawn.kind == "box" and known is not None else edges
    other = None not in edges and edges != first
    if not other and not (draws(result) and _control(result) == region.control):
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
    item = f"relation {quoted(ends[0])} to {quoted(ends[1])}"
    labels = result.get("labels")
    labels = [clean(label) for label in labels if isinstance(label, str)] if isinstance(labels, list) else []
    arrows = _ARROWS.get(str(result.get("direction", "right")))
    if not all(isinstance(end, str) for end in ends):
        reading.refuse("relations", item, "'from_id' and 'to_id' should name two regions")
    elif not labels:
        reading.refuse("relations", item, "has no label")
    elif arrows is None:
        told = quoted(result.get("direction"))
        reading.refuse("relations", item, f"'direction' should be right, left or bi and is {told}")
    else:
        names = [clean(str(end)) for end in ends]
        return [Link(item, names[a], names[b], label) for label in labels for a, b in arrows]
    return []


def _texts(result: Mapping[str, Any]) -> list[str]:
    """The texts of a description."""
    value = result.get("value")
    text = value.get("text") if isinstance(value, dict) and result.get("type") == "textarea" else None
    listed = text if isinstance(text, list) else [text]
    return [clean(each) for each in listed if isinstance(each, str)]


def _words(result: Mapping[str, Any], name: str) -> list[str]:
    value = result.get("value")
    listed = value.get(name) if isinstance(value, dict) else None
    return [clean(word) for word in listed if isinstance(word, str)] if isinstance(listed, list) else []


def _control(result: Mapping[str, Any]) -> str:
    """The control that a result was made with, else its type."""
    name = result.get("from_name")
    return clean(name if isinstance(name, str) and name else str(result.get("type")))


def _author(value: Mapping[str, Any], which: Which) -> str | None:
    """Who made an annotation: a number, an address where there is no number, or a model's version."""
    author = value.get("completed_by" if which == "annotations" else "model_version")
    if isinstance(author, dict):
        author = author.get("id", author.get("email"))
    if type(author) is int:
        return str(author) if abs(author) < 1 << 63 else None
    return clean(author) if isinstance(author, str) else None


def _seconds(value: Mapping[str, Any]) -> float | None:
    """What an annotation took."""
    found = number_of(value.get("lead_time"))
    return found if found is not None and found >= 0 else None


def _size(data: Mapping[str, Any], annotations: Sequence[Annotation]) -> tuple[int, int] | None:
    """Width and height: what regions say, else what the task's data says."""
    drawn = [region.drawn.size for each in annotations for region in each.regions.values()]
    said = [size for size in drawn if size is not None]
    if said:
        return said[0]
    sides = [number_of(data.get(name)) for name in ("width", "height")]
    if (
        sides[0] is None
        or sides[1] is None
        or not 1 <= min(sides[0], sides[1]) <= max(sides[0], sides[1]) < 65536
    ):
        return None
    return int(sides[0]), int(sides[1])
