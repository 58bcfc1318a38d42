"""What one annotator says of a video in Label Studio, as rows: tubes, boxes, queries, relations, sounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError
from roadaware.scenes.readers.findings import Findings
from roadaware.scenes.readers.label_studio_shapes import Drawn, corners_of
from roadaware.scenes.readers.label_studio_tasks import Annotation, Link, Region, Task
from roadaware.scenes.readers.label_studio_tracks import filled
from roadaware.scenes.schema import CORNERS

MOST_BOXES = 20_000_000
"""More boxes than this are refused: a few bytes about the length of a video can stand for millions."""

SOUND = "sound"
_Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Clip:
    """One video or picture with all tasks about it.

    Args:
        name: of the video.
        tasks: in the files' order.
        size: width and height in pixels; 1 x 1 where nobody says it.
        fps: frames per second.
        n_frames: number of frames.
    """

    name: str
    tasks: tuple[Task, ...]
    size: tuple[int, int] | None
    fps: float | None
    n_frames: int | None


@dataclass
class Rows:
    """Rows as they grow."""

    kinds: Mapping[str, str]
    findings: Findings
    rows: dict[str, list[dict[str, Any]]]
    boxes: list[pl.DataFrame] = field(default_factory=list)
    count: int = 0


def enter(annotation: Annotation, clip: Clip, task: Task, held: Rows) -> None:
    """Add what one annotator says."""
    tubes: dict[str, tuple[int, _Spans]] = {}
    sounds: dict[str, int] = {}
    heard = _heard(annotation)
    for region in annotation.regions.values():
        if region.drawn.kind == "sound":
            sounds[region.name] = _sound(region, annotation, clip, held)
    for region in annotation.regions.values():
        if region.drawn.kind != "sound":
            place = _tube(region, annotation, clip, task, sounds.get(heard.get(region.name, "")), held)
            if place is not None:
                tubes[region.name] = place
    for region in annotation.regions.values():
        for text in region.texts:
            _query(text, region.name, tubes.get(region.name), annotation, clip, held)
    for name, text in annotation.texts:
        _query(text, name or None, None, annotation, clip, held)
    for link in annotation.links:
        if link.subject not in sounds and link.object not in sounds:
            _relation(link, tubes, annotation, clip, task, held)


def _heard(annotation: Annotation) -> dict[str, str]:
    """Region to the sound that an arrow joins it with."""
    sounds = {name for name, region in annotation.regions.items() if region.drawn.kind == SOUND}
    pairs = [(link.subject, link.object) for link in annotation.links]
    return {a: b for x, y in pairs for a, b in ((x, y), (y, x)) if b in sounds and a not in sounds}


def _sound(region: Region, annotation: Annotation, clip: Clip, held: Rows) -> int:
    """Add a sound, a row for each label; its first number."""
    first = len(held.rows["sounds"])
    start, end = region.drawn.seconds or (0.0, 0.0)
    frame = None if clip.fps is None else math.floor(start * clip.fps + 1e-6)
    words: list[str | None] = [word for words in region.kinds().values() for word in words]
    for word in words or [None]:
        held.rows["sounds"].append(
            {
                "sound": len(held.rows["sounds"]),
                "video": clip.name,
                "name": region.name,
                "frame": frame,
                "t_s": start,
                "end_s": end,
                "label": word,
                "annotator": annotation.author,
            }
        )
    return first


def _tube(
    region: Region, annotation: Annotation, clip: Clip, task: Task, sound: int | None, held: Rows
) -> tuple[int, _Spans] | None:
    """Add a tube with its boxes and labels; its number, and the frames it is in."""
    drawn, tube = region.drawn, len(held.rows["tubes"])
    spans = _spans(drawn, clip)
    if spans is None:
        reason = "a span in seconds, of a video whose frame rate is not known: give the option 'fps'"
        held.findings.reject("tubes", task.file, f"{clip.name}, region {region.name}", reason)
        return None
    count = 0
    if drawn.values is not None and drawn.frames is not None and drawn.enabled is not None:
        last = clip.n_frames - 1 if clip.n_frames is not None else int(drawn.frames[-1])
        frames, values = filled(drawn.frames, drawn.enabled, drawn.values, last)
        count = len(frames)
        if held.count + count > MOST_BOXES:
            message = f"more than {MOST_BOXES} boxes: region {region.name} of {clip.name} alone has {count}"
            raise InputError(
                message, where=task.file, hint="check 'framesCount', or read fewer tasks at once"
            )
        _check(values, region, clip, held)
        corners = corners_of(values, clip.size or (1, 1))
        held.boxes.append(boxes_of(clip.name, frames, corners, tube, annotation.author, held.count, sound))
        seen = tuple(_runs(frames))
    else:
        seen = spans
    kinds: dict[str, list[str]] = {}
    for name, words in region.kinds().items():
        kept = kinds.setdefault(held.kinds.get(name, name), [])
        kept += [word for word in words if word not in kept]
    held.rows["tubes"].append(
        {
            "tube": tube,
            "video": clip.name,
            "name": region.name,
            "start_frame": seen[0][0],
            "end_frame": seen[-1][1],
            "kind": next(iter(kinds), "span") if spans else None,
            "spans": [list(span) for span in spans] or None,
            "annotator": annotation.author,
            "score": region.score,
        }
    )
    on_box = drawn.kind == "box"
    owner = {"box": held.count} if on_box else {"tube": tube}
    for kind, words in kinds.items():
        rows = held.rows["labels" if on_box else "tube_labels"]
        rows += [{**owner, "kind": kind, "label": word} for word in words]
    held.count += count
    return tube, seen


def _runs(frames: Ints) -> Iterator[tuple[int, int]]:
    """Ascending frames as spans."""
    starts = np.flatnonzero(np.diff(frames, prepend=-2) != 1)
    ends = np.append(starts[1:], len(frames)) - 1
    yield from zip(frames[starts].tolist(), (frames[ends] + 1).tolist(), strict=True)


def _common(a: _Spans, b: _Spans) -> Iterator[tuple[int, int]]:
    """What two lists of ascending spans have in common."""
    i = j = 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start < end:
            yield start, end
        i, j = (i + 1, j) if a[i][1] <= b[j][1] else (i, j + 1)


def _spans(drawn: Drawn, clip: Clip) -> _Spans | None:
    """The frames of a span; None where seconds cannot be counted in frames."""
    if drawn.kind != "time" or drawn.seconds is None:
        return drawn.ranges
    if clip.fps is None:
        return None
    start, end = (round(second * clip.fps) for second in drawn.seconds)
    return ((start, max(end, start + 1)),)


def _check(values: Floats, region: Region, clip: Clip, held: Rows) -> None:
    """Warn of boxes that are turned or reach out of the picture."""
    item = f"{clip.name}, region {region.name}"
    what = "boxes that are turned, of which the upright box around each is taken"
    held.findings.warn(what, item, int((values[:, 4] % 360 != 0).sum()))
    ends = values[:, :2] + values[:, 2:4]
    out = (values[:, :2] < -1e-6).any(axis=1) | (ends > 100 + 1e-6).any(axis=1)
    held.findings.warn("boxes that reach out of the picture, kept as they are", item, int(out.sum()))


def _query(
    text: str,
    name: str | None,
    tube: tuple[int, _Spans] | None,
    annotation: Annotation,
    clip: Clip,
    held: Rows,
) -> None:
    """Add a description."""
    held.rows["queries"].append(
        {
            "query": len(held.rows["queries"]),
            "video": clip.name,
            "name": name,
            "text": text,
            "tube": None if tube is None else tube[0],
            "start_frame": None if tube is None else tube[1][0][0],
            "end_frame": None if tube is None else tube[1][-1][1],
            "annotator": annotation.author,
        }
    )


def _relation(
    link: Link,
    tubes: Mapping[str, tuple[int, _Spans]],
    annotation: Annotation,
    clip: Clip,
    task: Task,
    held: Rows,
) -> None:
    """Add a relation over the frames from the first to the last that both are in."""
    lost = [name for name in (link.subject, link.object) if name not in tubes]
    reason = ""
    common: _Spans = ()
    if lost:
        reason = f"'{lost[0]}' is none of the annotation's regions that can be taken"
    elif link.subject == link.object:
        reason = "the subject is its own object"
    else:
        common = tuple(_common(tubes[link.subject][1], tubes[link.object][1]))
        reason = "" if common else "the two are never seen together"
    if reason:
        held.findings.reject("relations", task.file, f"{clip.name}, {link.item}", reason)
        return
    held.rows["relations"].append(
        {
            "relation": len(held.rows["relations"]),
            "video": clip.name,
            "subject": tubes[link.subject][0],
            "object": tubes[link.object][0],
            "predicate": link.predicate,
            "start_frame": common[0][0],
            "end_frame": common[-1][1],
            "annotator": annotation.author,
        }
    )


def boxes_of(
    video: str,
    frames: Ints,
    corners: Floats,
    tube: int | None,
    author: str | None,
    first: int,
    sound: int | None = None,
) -> pl.DataFrame:
    """The boxes of one tube.

    Args:
        video: its name.
        frames: (n,) from 0.
        corners: (n, 4) in pixels.
        tube: that owns them.
        author: who drew them.
        first: number of the first box.
        sound: that they make.
    """
    return pl.DataFrame({"box": first + np.arange(len(frames)), "frame": frames}).select(
        "box",
        pl.lit(video).alias("video"),
        "frame",
        pl.lit(tube, pl.Int64).alias("tube"),
        *(pl.Series(name, corners[:, n]) for n, name in enumerate(CORNERS)),
        pl.lit(sound, pl.Int64).alias("sound"),
        pl.lit(author, pl.String).alias("annotator"),
    )
