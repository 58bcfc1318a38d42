"""Annotations made with Label Studio: its JSON exports of video, image and audio tasks.

Tkachenko, Malyuk, Holmanyuk and Liubimov, "Label Studio: data labeling software", 2020 to 2022,
github.com/HumanSignal/label-studio, whose exports carry no licence of their own: it is the owner's.

Takes a JSON file, or all that lie in a folder or zip. Videos and images are not needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.datasets import READERS, Progress
from roadaware.datasets.issues import Findings, build_unreadable_error, read_each_file
from roadaware.datasets.label_studio_tasks import (
    MOST_PIXELS,
    Annotation,
    Link,
    Region,
    Task,
    Which,
    convert_to_corners,
    interpolate_keyframes,
    parse_tasks,
)
from roadaware.datasets.relation_tables import format_video_name
from roadaware.errors import InputError, UsageError
from roadaware.io.json import decode, parse, pause_garbage_collection
from roadaware.io.sources import Source, find_source
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

# What one annotator says of a video in Label Studio, as rows: tubes, boxes, queries, relations, sounds.

MOST_BOXES = 20_000_000
"""More boxes than this are refused: a few bytes about the length of a video can stand for millions."""

SOUND = "sound"
_Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Clip:
    """One video or image with all tasks about it.

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
    boxes: list[TubeBoxes] = field(default_factory=list)
    count: int = 0


def add_annotation(annotation: Annotation, clip: Clip, task: Task, held: Rows) -> None:
    """Add the annotations of one annotator."""
    tubes: dict[str, tuple[int, _Spans]] = {}
    sounds: dict[str, int] = {}
    heard = _heard(annotation)
    for region in annotation.regions.values():
        if region.drawn.kind == "sound":
            # Add a sound, a row for each label; its first number
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
            sounds[region.name] = first
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


def _tube(
    region: Region, annotation: Annotation, clip: Clip, task: Task, sound: int | None, held: Rows
) -> tuple[int, _Spans] | None:
    """Add a tube with its boxes and labels; its number, and the frames it is in."""
    drawn, tube = region.drawn, len(held.rows["tubes"])
    # The frames of a span; None where seconds cannot be counted in frames
    if drawn.kind != "time" or drawn.seconds is None:
        spans = drawn.ranges
    elif clip.fps is None:
        spans = None
    else:
        start, end = (round(second * clip.fps) for second in drawn.seconds)
        spans = ((start, max(end, start + 1)),)
    if spans is None:
        reason = "a span in seconds, of a video whose frame rate is not known: give the option 'fps'"
        held.findings.reject("tubes", task.file, f"{clip.name}, region {region.name}", reason)
        return None
    count = 0
    if drawn.values is not None and drawn.frames is not None and drawn.enabled is not None:
        last = clip.n_frames - 1 if clip.n_frames is not None else int(drawn.frames[-1])
        frames, values = interpolate_keyframes(drawn.frames, drawn.enabled, drawn.values, last)
        count = len(frames)
        if held.count + count > MOST_BOXES:
            message = f"more than {MOST_BOXES} boxes: region {region.name} of {clip.name} alone has {count}"
            raise InputError(
                message, where=task.file, hint="check 'framesCount', or read fewer tasks at once"
            )
        _check(values, region, clip, held)
        corners = convert_to_corners(values, clip.size or (1, 1))
        held.boxes.append(TubeBoxes(clip.name, frames, corners, tube, annotation.author, sound))
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
    """Intersection of two lists of ascending spans."""
    i = j = 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start < end:
            yield start, end
        i, j = (i + 1, j) if a[i][1] <= b[j][1] else (i, j + 1)


def _check(values: Floats, region: Region, clip: Clip, held: Rows) -> None:
    """Warn of boxes that are turned or reach out of the image."""
    item = f"{clip.name}, region {region.name}"
    what = "boxes that are turned, of which the upright box around each is taken"
    held.findings.warn(what, item, int((values[:, 4] % 360 != 0).sum()))
    ends = values[:, :2] + values[:, 2:4]
    out = (values[:, :2] < -1e-6).any(axis=1) | (ends > 100 + 1e-6).any(axis=1)
    held.findings.warn("boxes that reach out of the image, kept as they are", item, int(out.sum()))


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


class TubeBoxes(NamedTuple):
    """The boxes of one tube.

    Args:
        video: its name.
        frames: (n,) from 0.
        corners: (n, 4) in pixels.
        tube: that owns them.
        author: who drew them.
        sound: that they make.
    """

    video: str
    frames: Ints
    corners: Floats
    tube: int | None
    author: str | None
    sound: int | None


def build_tube_boxes(parts: Sequence[TubeBoxes]) -> pl.DataFrame:
    """The table of the boxes of tubes, one tube after the other, numbered from 0."""
    frames = np.concatenate([np.zeros(0, np.int64), *(part.frames for part in parts)])
    corners = np.concatenate([np.zeros((0, 4)), *(part.corners for part in parts)])
    of = pl.Series(np.repeat(np.arange(len(parts)), [len(part.frames) for part in parts]).astype(np.int64))
    owners = {
        "video": pl.Series([part.video for part in parts], dtype=pl.String),
        "tube": pl.Series([part.tube for part in parts], dtype=pl.Int64),
        "sound": pl.Series([part.sound for part in parts], dtype=pl.Int64),
        "annotator": pl.Series([part.author for part in parts], dtype=pl.String),
    }
    told = {name: each.gather(of) for name, each in owners.items()}
    sides = {name: pl.Series(corners[:, n]) for n, name in enumerate(CORNERS)}
    frame = {"frame": pl.Series(frames.astype(np.int64))}
    return pl.DataFrame(
        {"box": pl.int_range(len(frames), eager=True), "video": told["video"], **frame, "tube": told["tube"], **sides,
         "sound": told["sound"], "annotator": told["annotator"]}
    )  # fmt: skip


# From tasks of Label Studio to tables, with their vocabularies.

PREDICATE = "predicate"
_TEXTS, _WHOLE = pl.List(pl.String), pl.Int64
_SCHEMAS: dict[str, dict[str, Any]] = {
    "videos": {
        **dict.fromkeys(("video", "scene"), pl.String),
        **dict.fromkeys(("width_px", "height_px"), _WHOLE),
        "fps": pl.Float32,
        "n_frames": _WHOLE,
        "path": pl.String,
        "category": pl.String,
        "task": pl.String,
        "media": pl.String,
        "choices": _TEXTS,
    },
    "labels": {"box": _WHOLE, "kind": pl.String, "label": pl.String},
    "tubes": {
        "tube": _WHOLE,
        **dict.fromkeys(("video", "name"), pl.String),
        **dict.fromkeys(("start_frame", "end_frame"), _WHOLE),
        "kind": pl.String,
        "spans": pl.List(pl.List(_WHOLE)),
        "annotator": pl.String,
        "score": pl.Float64,
    },
    "tube_labels": {"tube": _WHOLE, "kind": pl.String, "label": pl.String},
    "relations": {
        "relation": _WHOLE,
        "video": pl.String,
        **dict.fromkeys(("subject", "object"), _WHOLE),
        "predicate": pl.String,
        **dict.fromkeys(("start_frame", "end_frame"), _WHOLE),
        "annotator": pl.String,
    },
    "queries": {
        "query": _WHOLE,
        **dict.fromkeys(("video", "name", "text"), pl.String),
        **dict.fromkeys(("tube", "start_frame", "end_frame"), _WHOLE),
        "annotator": pl.String,
    },
    "sounds": {
        "sound": _WHOLE,
        **dict.fromkeys(("video", "name"), pl.String),
        "frame": _WHOLE,
        **dict.fromkeys(("t_s", "end_s"), pl.Float32),
        "label": pl.String,
        "annotator": pl.String,
    },
}


def group_tasks_by_video(
    tasks: Sequence[Task], size: tuple[int, int] | None, fps: float | None, findings: Findings
) -> list[Clip]:
    """The videos and images that the tasks are about: those of one path are one.

    Args:
        tasks: of all files.
        size: width and height of those of which no region and no task says it.
        fps: frames per second of all videos; what the exports say where it is None.
        findings: takes oddities.
    """
    held: dict[str, list[Task]] = {}
    for task in tasks:
        held.setdefault(task.path or f"\0{task.file}\0{task.name}", []).append(task)
    taken: set[str] = set()
    clips: list[Clip] = []
    for shared in held.values():
        name = shared[0].video
        if name in taken:
            name = format_video_name(f"(task {shared[0].name}, {shared[0].file}) {name}")
        while name in taken:
            name = format_video_name(f"({len(taken)}) {name}")
        taken.add(name)
        drawn = [r.drawn for task in shared for each in task.annotations for r in each.regions.values()]
        counts = {each.n_frames for each in drawn if each.n_frames is not None}
        behind = [
            int(each.frames[-1]) + 1 for each in drawn if each.kind == "track" and each.frames is not None
        ]
        if counts and max(behind, default=0) > max(counts):
            counts.add(max(behind))
        rates = [each.rate for each in drawn if each.rate is not None]
        findings.warn(
            "videos of which regions give several lengths; the longest counts", name, len(counts) > 1
        )
        image = any(each.kind == "box" for each in drawn) or shared[0].media == "image"
        clips.append(
            Clip(
                name,
                tuple(shared),
                next((task.size for task in shared if task.size is not None), size),
                None if image else fps or (rates[0] if rates else None),
                max(counts) if counts else (1 if image else None),
            )
        )
    return clips


def build_label_studio_tables(
    clips: Sequence[Clip], kinds: Mapping[str, str], findings: Findings
) -> tuple[dict[str, pl.DataFrame], dict[str, tuple[str, ...]]]:
    """The tables of all clips, and the vocabularies, sorted.

    Args:
        clips: see `group_tasks_by_video`.
        kinds: control to the kind of its labels; a control that is not named is its own kind.
        findings: takes oddities and what is refused.
    """
    held = Rows(kinds, findings, {name: [] for name in _SCHEMAS})
    for clip in clips:
        _clip(clip, held)
    frames = {name: pl.DataFrame(rows, schema=_SCHEMAS[name]) for name, rows in held.rows.items()}
    frames["boxes"] = build_tube_boxes(held.boxes)
    # Every frame of the clips whose length is known; annotated where somebody has finished a task
    parts = [
        pl.DataFrame({"frame": np.arange(clip.n_frames or 0)}).select(
            pl.lit(clip.name).alias("video"),
            "frame",
            (pl.col("frame") / pl.lit(clip.fps, pl.Float64)).cast(pl.Float32).alias("t_s"),
            pl.lit(any(task.annotations for task in clip.tasks)).alias("annotated"),
        )
        for clip in clips
    ]
    frames["frames"] = pl.concat(parts)
    for name in ("videos", "boxes", "labels", "tubes", "tube_labels", "relations", "queries", "sounds"):
        findings.read[name] += len(frames[name])
    return frames, _encode_labels(frames)


def _clip(clip: Clip, held: Rows) -> None:
    """Add the rows of one clip."""
    first = clip.tasks[0]
    width, height = clip.size or (1, 1)
    choices = [each.choices for task in clip.tasks for each in task.annotations if each.choices]
    said = list(
        dict.fromkeys(f"{name}={w}" for each in choices for name, words in each.items() for w in words)
    )
    alone = {tuple(words) for each in choices for words in each.values()}
    held.rows["videos"].append(
        {
            "video": clip.name,
            "scene": clip.name,
            "width_px": width,
            "height_px": height,
            "fps": clip.fps,
            "n_frames": clip.n_frames,
            "path": format_video_name(first.path) or None,
            "category": next(iter(alone))[0] if len(alone) == 1 and len(next(iter(alone))) == 1 else None,
            "task": first.name,
            "media": first.media or None,
            "choices": said or None,
        }
    )
    for task in clip.tasks:
        for annotation in task.annotations:
            add_annotation(annotation, clip, task, held)


def _encode_labels(frames: dict[str, pl.DataFrame]) -> dict[str, tuple[str, ...]]:
    """Put indices for words, in place; the vocabularies, sorted."""
    both = pl.concat([frames[name].select("kind", "label") for name in ("labels", "tube_labels")])
    found = {
        kind: tuple(sorted(set(words))) for kind, words in both.group_by("kind").agg("label").iter_rows()
    }
    for name in ("labels", "tube_labels"):
        places = [found[kind].index(word) for kind, word in frames[name].select("kind", "label").iter_rows()]
        frames[name] = frames[name].with_columns(pl.Series("label", places, dtype=pl.Int64))
    for name, column, kind in (("relations", "predicate", PREDICATE), ("sounds", "label", SOUND)):
        words = tuple(sorted(set(frames[name][column].drop_nulls())))
        place = {word: n for n, word in enumerate(words)}
        number = pl.col(column).replace_strict(place, default=None, return_dtype=pl.Int64)
        frames[name] = frames[name].with_columns(number)
        found[kind] = words
    return {kind: words for kind, words in sorted(found.items()) if words}


VERSION = 2
_WANTED = "Label Studio needs its annotations, a JSON export '*.json',"
_HINT = "Point at the exported file, or at the folder or zip that holds it."
_SLOWEST, _FASTEST = 1e-6, 1e5


def find(path: Path) -> Source:
    """The exports at `path`: a JSON file, or a folder or zip in which some lie.

    Raises:
        DatasetNotFoundError: if there is none.
        InputError: if the path cannot be read.
    """
    return find_source(path, lambda source: bool(source.files("", ".json")), _WANTED, _HINT, suffix=".json")


def inputs(source: Source, **_: Any) -> list[str]:
    """Names of the files that `read` would read."""
    return source.files("", ".json")


def read(
    source: Source,
    *,
    kinds: Mapping[str, str] | None = None,
    fps: float | None = None,
    size: str | Sequence[int] | None = None,
    processes: int | None = None,
    progress: Progress | None = None,
) -> Scenes:
    """All tasks as Scenes; what was refused is in `rejected`, oddities are in `meta.notes["warnings"]`.

    Rectangles in videos become tubes with a box in every frame between their keyframes, rectangles on
    images tubes of one box (each image is a video of one frame), spans on the timeline tubes with `spans`
    and no boxes, regions of a recording sounds, arrows relations, and descriptions queries. Several
    annotators' work on one task stands side by side, distinguished by `annotator`; cancelled annotations and
    predictions are left out and counted. Frames, which Label Studio counts from 1, count from 0.

    Corners are in pixels of the size that the export gives (`original_width`, or `width` and `height` of the
    task's data), else of `size`; exports of videos mostly give none, and without `size` the image is then
    1 x 1, so that corners are shares of it, which `meta.notes["unit_pictures"]` says.

    Args:
        kinds: control, or `label` for those that rectangles in videos carry themselves, to a kind of label;
            a control that is not named is a kind of its own.
        fps: frames per second of all videos (default: what the export says).
        size: width and height in pixels where the export does not say them, such as 1280x720.

    Raises:
        UsageError: if an option is none.
        InputError: if no file can be read.
    """
    findings = Findings()
    names = inputs(source)
    tasks = read_task_files(source, names, "annotations", findings, progress)
    clips = group_tasks_by_video(tasks, _sides(size), _rate(fps), findings)
    tables, vocabularies = build_label_studio_tables(clips, kinds or {}, findings)
    tables["tubes"] = tables["tubes"].drop("score")
    return Scenes(
        **tables,
        rejected=findings.table(),
        meta=findings.build_meta(
            READERS["label_studio"], vocabularies, source.contents(names), **_units(clips)
        ),
    )


def read_task_files(
    source: Source, names: Sequence[str], which: Which, findings: Findings, progress: Progress | None = None
) -> list[Task]:
    """The tasks of all files.

    Args:
        source: where they lie.
        names: of the files.
        which: whether annotations or predictions are taken.
        findings: takes what is refused.
        progress: called with the number of files read and the total.

    Raises:
        InputError: if no file can be read.
    """
    tasks: list[Task] = []

    def take(name: str, found: Findings) -> None:
        where = source.where(name)
        with pause_garbage_collection():
            content = parse(decode(source.read(name), where), where)
            tasks.extend(list(parse_tasks(content, where, name, which, found)))

    errors = read_each_file(names, take, findings, progress)
    if not tasks:
        raise build_unreadable_error(errors)
    return tasks


def _units(clips: Sequence[Clip]) -> dict[str, bool]:
    """Whether corners of some videos are shares of the image."""
    return {"unit_pictures": True} if any(clip.size is None for clip in clips) else {}


def _rate(fps: Any) -> float | None:
    if fps is None:
        return None
    if type(fps) not in (int, float) or not _SLOWEST <= fps < _FASTEST:
        raise UsageError(f"'fps' is a number of frames per second, {_SLOWEST:g} to {_FASTEST:g}, not {fps!r}")
    return float(fps)


def _sides(size: Any) -> tuple[int, int] | None:
    """Width and height that were asked for."""
    if size is None:
        return None
    # As the other readers of boxes have it: 1280x720.
    given = size.lower().split("x") if isinstance(size, str) else size
    sides = [int(side) if str(side).isascii() and str(side).isdigit() and len(str(side)) < 9 else 0
             for side in (given if isinstance(given, Sequence) else ())]  # fmt: skip
    if len(sides) != 2 or not all(1 <= side <= MOST_PIXELS for side in sides):
        raise UsageError(f"'size' is a width and a height in pixels, such as 1280x720, not {size!r}")
    return sides[0], sides[1]
