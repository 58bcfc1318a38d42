"""Scenes and Predictions written as tasks of Label Studio, with the labelling config that shows them."""

from __future__ import annotations

import colorsys
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.datasets.issues import Findings
from roadaware.datasets.label_studio import (
    build_label_studio_tables,
    find,
    group_tasks_by_video,
    inputs,
    read_task_files,
)
from roadaware.datasets.label_studio_tasks import VIDEO_NAME, select_keyframes
from roadaware.errors import UsageError
from roadaware.io.files import write_atomically
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

# The labelling config of a Label Studio project: its controls and their labels, as XML.

BOX, DESCRIPTION, SOUND, PREDICATE, EVENT = "box", "description", "sound", "predicate", "event"
# What XML 1.0 cannot hold, not even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Controls:
    """Names of controls.

    Args:
        regions: kind of label to the control of boxes' labels.
        spans: kind of label to the control of spans on the timeline.
    """

    regions: dict[str, str]
    spans: dict[str, str]


def build_controls(tables: Scenes | Predictions) -> Controls:
    """The controls that the tables' labels need: each kind is one, and another where it labels spans too."""
    labels = tables.tube_labels.with_columns(pl.col("kind").cast(pl.String))
    if "spans" in tables.tubes.columns:
        marked = tables.tubes.filter(pl.col("spans").is_not_null()).select("tube")
        drawn = tables.boxes.select(pl.col("tube").cast(pl.Int64)).drop_nulls().unique()
        on_spans = labels.join(marked, on="tube", how="semi").join(drawn, on="tube", how="anti")
    else:
        on_spans = labels.clear()
    rest = labels.join(on_spans, on=["tube", "kind", "label"], how="anti")["kind"]
    boxes = tables.labels["kind"].cast(pl.String)
    regions = sorted({*rest.unique(), *boxes.unique()})
    spans = sorted(on_spans["kind"].unique())
    return Controls(
        {kind: f"{kind}_of_region" if kind in (BOX, DESCRIPTION, SOUND) else kind for kind in regions},
        {
            kind: f"{kind}_over_time" if kind in (*regions, BOX, DESCRIPTION, SOUND) else kind
            for kind in spans
        },
    )


def build_labelling_config(tables: Scenes | Predictions, controls: Controls, *, picture: bool) -> str:
    """The config for all that the tables hold.

    Args:
        tables: with vocabularies.
        controls: see `build_controls`.
        picture: whether the tasks are about images; about videos otherwise.
    """
    words = tables.meta.vocabularies
    over = "image" if picture else "video"
    known = "fps" in tables.videos.columns and tables.videos["fps"].is_not_null().any()
    lines = [
        format_empty_tag(
            "Image" if picture else "Video",
            name=over,
            value=f"${over}",
            **{"frameRate": "$fps"} if known and not picture else {},
        )
    ]
    lines.append(format_empty_tag("Rectangle" if picture else "VideoRectangle", name=BOX, toName=over))
    for kind, name in controls.regions.items():
        lines += format_control("Labels", name, over, words.get(kind, ()))
    for kind, name in controls.spans.items():
        lines += format_control("TimelineLabels", name, over, words.get(kind, ()))
    if not tables.queries.is_empty():
        lines.append(
            format_empty_tag("TextArea", name=DESCRIPTION, toName=over, perRegion="true", editable="true")
        )
    events = sorted(set(get_video_categories(tables).values()))
    if events:
        inner = [f"  {format_empty_tag('Choice', value=word)}" for word in events]
        lines += [_format_opening_tag("Choices", name=EVENT, toName=over), *inner, "</Choices>"]
    if not tables.sounds.is_empty() and not picture:
        lines.append(format_empty_tag("Audio", name="audio", value=f"${over}", sync=over))
        lines += format_control("Labels", SOUND, "audio", words.get(SOUND, ()))
    if not tables.relations.is_empty():
        inner = [f"  {format_empty_tag('Relation', value=word)}" for word in words.get(PREDICATE, ())]
        lines += ["<Relations>", *inner, "</Relations>"]
    return "\n".join(["<View>", *(f"  {line}" for line in lines), "</View>", ""])


def get_video_categories(tables: Scenes | Predictions) -> dict[str, str]:
    """Video to its category, where true videos have one."""
    if isinstance(tables, Predictions) or "category" not in tables.videos.columns:
        return {}
    rows = tables.videos.select(pl.col("video", "category").cast(pl.String)).drop_nulls()
    return dict(rows.iter_rows())


def format_control(control: str, name: str, over: str, labels: Sequence[str]) -> list[str]:
    """The lines of a control with its labels, each in a colour of its own."""
    colours = [colorsys.hls_to_rgb(n / max(len(labels), 1), 0.5, 0.7) for n in range(len(labels))]
    shades = ["#" + "".join(f"{round(255 * part):02x}" for part in colour) for colour in colours]
    inner = [
        f"  {format_empty_tag('Label', value=label, background=shade)}"
        for label, shade in zip(labels, shades, strict=True)
    ]
    return [_format_opening_tag(control, name=name, toName=over), *inner, f"</{control}>"]


def format_empty_tag(element: str, **attributes: str) -> str:
    """An element without content."""
    return f"{_format_opening_tag(element, **attributes)[:-1]}/>"


def _format_opening_tag(tag: str, **attributes: str) -> str:
    text = "".join(f" {name}={quoteattr(_NO_XML.sub('', value))}" for name, value in attributes.items())
    return f"<{tag}{text}>"


# The regions of one Label Studio task: tracks as keyframes, boxes, spans, sounds, texts and arrows.

_ROUNDING_PX = 1e-9
_SAME_PX = 1e-4
"""Less than single precision tells apart in an image of 4,000 pixels."""
_MAKES = "makes"
Results = list[dict[str, Any]]


@dataclass
class Held:
    """Rows to write, and their counts."""

    tables: Scenes | Predictions
    controls: Controls
    tolerance_px: float
    left_out: dict[str, int] = field(default_factory=dict)
    regions: int = 0
    boxes: int = 0
    keyframes: int = 0

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count items that the format cannot represent."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + count

    @cached_property
    def parts(self) -> dict[str, dict[str, pl.DataFrame]]:
        """Table to its rows by video."""
        names = ("boxes", "tubes", "relations", "queries", "sounds")
        return {name: _by_video(getattr(self.tables, name)) for name in names}

    @cached_property
    def said(self) -> dict[str, dict[int, dict[str, list[str]]]]:
        """Boxes and tubes by number, each kind with its words."""
        found = {"boxes": self.tables.labels, "tubes": self.tables.tube_labels}
        return {name: self._words(table) for name, table in found.items()}

    @cached_property
    def categories(self) -> dict[str, str]:
        """Video to its category."""
        return get_video_categories(self.tables)

    def _words(self, table: pl.DataFrame) -> dict[int, dict[str, list[str]]]:
        found: dict[int, dict[str, list[str]]] = {}
        for owner, kind, label in table.select(
            pl.first(), pl.col("kind").cast(pl.String), "label"
        ).iter_rows():
            word = self.tables.meta.vocabularies[kind][label]
            found.setdefault(owner, {}).setdefault(kind, []).append(word)
        return found

    def of(self, table: str, video: str) -> pl.DataFrame:
        """The rows of one video."""
        found = self.parts[table].get(video)
        empty: pl.DataFrame = getattr(self.tables, table).clear()
        return empty if found is None else found


@dataclass
class _Task:
    """One task as it grows: each author's results, and where each tube and sound is."""

    held: Held
    video: str
    row: Mapping[str, Any]
    size: tuple[int, int]
    picture: bool
    results: dict[str | None, Results] = field(default_factory=dict)
    names: dict[tuple[str, int], tuple[str | None, str]] = field(default_factory=dict)
    taken: set[tuple[str | None, str]] = field(default_factory=set)

    def named(self, table: str, number: int, author: str | None, name: str | None) -> str:
        """An identifier that the author's results do not have yet: the native name where that is free."""
        found = name if name and (author, name) not in self.taken else f"{table}-{number}"
        self.taken.add((author, found))
        self.names[table, number] = (author, found)
        return found

    def add(self, author: str | None, result: dict[str, Any]) -> None:
        """Add a result."""
        self.results.setdefault(author, []).append(result)


def build_regions(held: Held, video: str, row: Mapping[str, Any], *, picture: bool) -> list[dict[str, Any]]:
    """The annotations, or predictions, of one video.

    Args:
        held: what is written; counts go there.
        video: its name.
        row: of the table of videos.
        picture: whether it is one.

    Raises:
        UsageError: if its size is not known, or a tube has two boxes in a frame.
    """
    width, height = row.get("width_px"), row.get("height_px")
    boxes = held.of("boxes", video)
    if len(boxes) and (not width or not height):
        raise UsageError(f"the size of {video} is not known: give it in `width_px` and `height_px`")
    task = _Task(held, video, row, (width or 1, height or 1), picture)
    _sounds(task)
    _boxes(task, boxes)
    _spans(task)
    _queries(task)
    _relations(task)
    category = held.categories.get(video)
    if category is not None:
        head = {
            "id": EVENT,
            "from_name": EVENT,
            "to_name": "image" if picture else "video",
            "type": "choices",
        }
        task.add(next(iter(task.results), None), {**head, "value": {"choices": [category]}})
    if isinstance(held.tables, Predictions):
        return [_prediction(author, results) for author, results in task.results.items()]
    authors = task.results or {None: []}
    return [_annotation(author, results) for author, results in authors.items()]


def _annotation(author: str | None, results: Results) -> dict[str, Any]:
    found: dict[str, Any] = {"was_cancelled": False, "ground_truth": False, "result": results}
    if author is not None:
        found["completed_by"] = int(author) if author.isascii() and author.isdigit() else author
    return found


def _prediction(author: str | None, results: Results) -> dict[str, Any]:
    scores = [result["score"] for result in results if "score" in result]
    found = {"model_version": author or "roadaware", "result": results}
    return found | ({"score": sum(scores) / len(scores)} if scores else {})


def _sounds(task: _Task) -> None:
    """Regions of the recording."""
    sounds = task.held.of("sounds", task.video)
    if task.picture:
        task.held.leave_out("sounds of images", len(sounds))
        return
    words = task.held.tables.meta.vocabularies.get(SOUND, ())
    for row in sounds.iter_rows(named=True):
        author, label, start = row.get("annotator"), row.get("label"), row.get("t_s")
        if start is None:
            task.held.leave_out("sounds without a time")
            continue
        end = row.get("end_s")
        name = task.named("sound", row["sound"], author, row.get("name"))
        value = {"start": start, "end": start if end is None else end, "channel": 0}
        value |= {"labels": [] if label is None else [words[label]]}
        task.add(
            author, {"id": name, "from_name": SOUND, "to_name": "audio", "type": "labels", "value": value}
        )
        task.held.regions += 1


def _boxes(task: _Task, boxes: pl.DataFrame) -> None:
    """Tracks of a video, and boxes of an image or without a track one by one."""
    if "tube" not in boxes.columns:
        boxes = boxes.with_columns(tube=pl.lit(None, pl.Int64))
    boxes = boxes.sort("tube", "frame", nulls_last=True, maintain_order=True)
    tubes = {row["tube"]: row for row in task.held.of("tubes", task.video).iter_rows(named=True)}
    # Columns once and not for each track, of which a set may have ten thousand.
    corners = boxes.select(*CORNERS).to_numpy().astype(np.float64)
    frames = boxes["frame"].to_numpy().astype(np.int64)
    told: dict[str, list[Any]] = {
        name: boxes[name].to_list() if name in boxes.columns else [None] * len(boxes)
        for name in ("box", "tube", "annotator", "score", "sound")
    }
    start = 0
    for end in range(1, len(boxes) + 1):
        tube = told["tube"][start]
        if tube is not None and end < len(boxes) and told["tube"][end] == tube:
            continue
        own = _Drawn(
            frames[start:end],
            corners[start:end],
            **{n: each[start:end] for n, each in told.items() if n != "tube"},
        )
        _region(task, own, None if tube is None else tubes.get(tube))
        start = end


@dataclass(frozen=True)
class _Drawn:
    """The boxes of one region, in the order of their frames: (n,) frames, (n, 4) corners, and what else is said of each."""

    frames: Ints
    corners: Floats
    box: list[int]
    annotator: list[str | None]
    score: list[float | None]
    sound: list[int | None]


def _region(task: _Task, own: _Drawn, tube: Mapping[str, Any] | None) -> None:
    """One track, or one box, with its labels."""
    author = own.annotator[0] or (tube or {}).get("annotator")
    table, number = ("box", own.box[0]) if tube is None else ("tube", tube["tube"])
    name = task.named(table, number, author, (tube or {}).get("name"))
    if (np.diff(own.frames) <= 0).any():
        raise UsageError(f"tube {number} of {task.video} has two boxes in a frame, and cannot be one track")
    words = _words(task, own, tube)
    score = _score(own, tube)
    held = task.held
    held.regions, held.boxes = held.regions + 1, held.boxes + len(own.box)
    kind = "rectangle" if task.picture else "videorectangle"
    value = _picture(own.corners, task) if task.picture else _sequence(own.frames, own.corners, task)
    head = {"id": name, "from_name": BOX, "to_name": "image" if task.picture else "video"}
    sides = {"original_width": task.size[0], "original_height": task.size[1], "image_rotation": 0}
    if words and not task.picture:
        value["labels"] = next(iter(words.values()))
    task.add(author, {**head, "type": kind, **sides, "value": value} | score)
    for label, listed in words.items():
        said = {"labels": listed} | (_picture(own.corners, task) if task.picture else {})
        control = held.controls.regions[label]
        task.add(author, {**head, "from_name": control, "type": "labels", "value": said})
    sounds = set(own.sound)
    only = next(iter(sounds)) if len(sounds) == 1 else None
    target = None if only is None else task.names.get(("sound", only))
    if target is not None and target[0] == author:
        task.add(author, _arrow(name, target[1], _MAKES))
    elif sounds - {None}:
        held.leave_out("sounds that only some boxes of a track make")


def _words(task: _Task, own: _Drawn, tube: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """The labels of a region: the tube's, and those that every box has."""
    held = task.held
    found = {
        kind: list(words) for kind, words in held.said["tubes"].get((tube or {}).get("tube", -1), {}).items()
    }
    each = [held.said["boxes"].get(box, {}) for box in own.box]
    pairs = [{(kind, word) for kind, words in one.items() for word in words} for one in each]
    common = set.intersection(*pairs) if pairs else set()
    held.leave_out("labels that only some boxes of a track have", sum(len(one - common) for one in pairs))
    for kind, word in sorted(common):
        if word not in found.setdefault(kind, []):
            found[kind].append(word)
    return found


def _score(own: _Drawn, tube: Mapping[str, Any] | None) -> dict[str, float]:
    """The tube's score, else the best of its boxes."""
    score = (tube or {}).get("score")
    if score is None:
        score = max((each for each in own.score if each is not None), default=None)
    return {} if score is None else {"score": float(score)}


def _sequence(frames: Ints, corners: Floats, task: _Task) -> dict[str, Any]:
    """A track as keyframes."""
    places, enabled = select_keyframes(frames, corners, task.held.tolerance_px + _ROUNDING_PX)
    task.held.keyframes += len(places)
    # Both ends of each run of frames are keyframes, so that nothing is drawn between runs.
    drawn = np.stack(
        [np.interp(frames, frames[places], corners[places, n]) for n in range(corners.shape[1])], axis=1
    )
    moved = np.abs(drawn - corners).max(axis=1) > _SAME_PX
    task.held.leave_out(
        f"boxes between keyframes that are up to {task.held.tolerance_px:g} px from where they were",
        int(moved.sum()),
    )
    rate, length = task.row.get("fps"), task.row.get("n_frames")
    sequence = []
    for place, on in zip(places.tolist(), enabled.tolist(), strict=True):
        number = int(frames[place]) + 1
        time = {} if not rate else {"time": number / rate}
        keyframe = {"frame": number, "enabled": on, "rotation": 0, **_hundredths(corners[place], task.size)}
        sequence.append(keyframe | time)
    found: dict[str, Any] = {"sequence": sequence}
    if length:
        found |= {"framesCount": length} | ({"duration": length / rate} if rate else {})
    return found


def _picture(corners: Floats, task: _Task) -> dict[str, Any]:
    """The box of an image."""
    return {**_hundredths(corners[0], task.size), "rotation": 0}


def _hundredths(corners: Floats, size: tuple[int, int]) -> dict[str, float]:
    left, top, right, bottom = corners.tolist()
    across, down = size[0] / 100, size[1] / 100
    return {
        "x": left / across,
        "y": top / down,
        "width": (right - left) / across,
        "height": (bottom - top) / down,
    }


def _spans(task: _Task) -> None:
    """Tubes without boxes that cover spans of frames, on the timeline."""
    tubes = task.held.of("tubes", task.video)
    for row in tubes.iter_rows(named=True):
        if ("tube", row["tube"]) in task.names:
            continue
        spans = row.get("spans")
        if spans is None and None not in (row.get("start_frame"), row.get("end_frame")):
            spans = [[row["start_frame"], row["end_frame"]]]
        labels = task.held.said["tubes"].get(row["tube"], {})
        controls = {
            kind: task.held.controls.spans[kind] for kind in labels if kind in task.held.controls.spans
        }
        if not spans or not controls or task.picture or any(start >= end for start, end in spans):
            task.held.leave_out("tubes without boxes, or without spans and labels")
            continue
        task.held.leave_out("parents of spans", int(row.get("parent") is not None))
        author = row.get("annotator")
        name = task.named("tube", row["tube"], author, row.get("name"))
        ranges = [{"start": start + 1, "end": end} for start, end in spans]
        for kind, control in controls.items():
            value = {"ranges": ranges, "timelinelabels": labels[kind]}
            head = {"id": name, "from_name": control, "to_name": "video", "type": "timelinelabels"}
            task.add(author, {**head, "value": value})
        task.held.regions += 1


def _queries(task: _Task) -> None:
    """Descriptions of regions, and of the whole."""
    over = "image" if task.picture else "video"
    texts: dict[tuple[str | None, str], list[str]] = {}
    for row in task.held.of("queries", task.video).iter_rows(named=True):
        if row.get("text") is None:
            task.held.leave_out("queries without a text")
            continue
        place = task.names.get(("tube", row["tube"])) if row.get("tube") is not None else None
        if place is None:
            author = row.get("annotator")
            place = (author, task.named("query", row["query"], author, row.get("name")))
        elif not _same_span(row, task):
            task.held.leave_out("spans of queries that are not their tube's")
        texts.setdefault(place, []).append(row["text"])
    for (author, name), listed in texts.items():
        head = {"id": name, "from_name": DESCRIPTION, "to_name": over, "type": "textarea"}
        task.add(author, {**head, "value": {"text": listed}})


def _same_span(row: Mapping[str, Any], task: _Task) -> bool:
    """Whether a query, or a relation between two tubes, lasts as long as the boxes of its tubes do."""
    tubes = [row[name] for name in ("tube", "subject", "object") if row.get(name) is not None]
    frames = [set(part) for part in _frames(tubes, task)]
    common = set.intersection(*frames) if frames else set()
    return not common or (min(common), max(common) + 1) == (row.get("start_frame"), row.get("end_frame"))


def _frames(tubes: list[int], task: _Task) -> Iterator[list[int]]:
    boxes = task.held.of("boxes", task.video)
    for tube in tubes:
        yield boxes.filter(pl.col("tube") == tube)["frame"].to_list()


def _relations(task: _Task) -> None:
    """Arrows."""
    words = task.held.tables.meta.vocabularies.get(PREDICATE, ())
    for row in task.held.of("relations", task.video).iter_rows(named=True):
        ends = [task.names.get(("tube", row[role])) for role in ("subject", "object")]
        if ends[0] is None or ends[1] is None or ends[0][0] != ends[1][0]:
            task.held.leave_out("relations of regions that are not there, or of two annotators")
            continue
        if not _same_span(row, task):
            task.held.leave_out("spans of relations that are shorter than both tracks")
        task.add(ends[0][0], _arrow(ends[0][1], ends[1][1], words[row["predicate"]]))


def _arrow(subject: str, target: str, label: str) -> dict[str, Any]:
    return {"from_id": subject, "to_id": target, "type": "relation", "direction": "right", "labels": [label]}


def _by_video(table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    named = table.with_columns(pl.col("video").cast(pl.String))
    return {str(key[0]): part for key, part in named.partition_by("video", as_dict=True).items()}


LOCAL_FILES = "/data/local-files/?d={name}"


@dataclass
class Written:
    """Counts of what was written into a file of tasks.

    Args:
        tasks: how many.
        regions: tracks, boxes on images, spans and sounds.
        boxes: that the regions stand for.
        keyframes: that are written for them.
        left_out: what the format cannot say, by its description.
    """

    tasks: int = 0
    regions: int = 0
    boxes: int = 0
    keyframes: int = 0
    left_out: dict[str, int] = field(default_factory=dict)


def write_label_studio(
    tables: Scenes | Predictions,
    path: Path,
    *,
    config: Path | None = None,
    videos: pl.DataFrame | None = None,
    tolerance_px: float = 0.5,
    media: str = LOCAL_FILES,
) -> Written:
    """Write tasks for Label Studio: one per video or image, with its annotations or predictions.

    Scenes become annotations, one for each annotator; Predictions become predictions with scores, which
    annotators correct. Tracks are thinned to keyframes between which the boxes that Label Studio draws are
    nowhere further than the tolerance from those of the tables; frames are exact. Tubes with `spans` and no
    boxes become spans on the timeline, queries descriptions, relations arrows, and sounds regions of the
    recording. Read back by `datasets.read("label_studio", ...)`, or `read_predictions`.

    Args:
        tables: what to write; videos of one frame are images.
        path: where the tasks go; replaced in one step.
        config: where the labelling config goes, XML to be pasted into the project's settings.
        videos: a table of videos with their sizes, where `tables` has none.
        tolerance_px: how far an edge may be away, in pixels.
        media: where Label Studio finds a video or image; `{name}` is its path, else its name. Paths that
            are addresses themselves stay as they are.

    Raises:
        UsageError: if a video's size is not known, a tube has two boxes in a frame, videos and images are
            mixed, or `tolerance_px` is negative.
        DiskError: if the disk refuses.

    Source: the task format of Label Studio, and the video rectangles of its machine learning backend.
    """
    if not tolerance_px >= 0:
        raise UsageError(f"'tolerance_px' is a number of pixels from 0 on, not {tolerance_px}")
    table = (tables.videos if videos is None else videos).with_columns(pl.col("video").cast(pl.String))
    rows = {row["video"]: row for row in table.iter_rows(named=True)}
    images = {
        video
        for video, row in rows.items()
        if (row.get("media") == "image" or (row.get("media") is None and row.get("n_frames") == 1))
    }
    if images and len(images) < len(rows):
        message = f"{len(images)} images and {len(rows) - len(images)} videos cannot be one project"
        raise UsageError(f"{message}: write them apart (`--videos`, in Python `only`)")
    held = Held(tables, build_controls(tables), tolerance_px)
    found = Written(left_out=held.left_out)
    tasks = []
    for number, (video, row) in enumerate(rows.items(), 1):
        says = build_regions(held, video, row, picture=video in images)
        key = "predictions" if isinstance(tables, Predictions) else "annotations"
        tasks.append({"id": number, "data": _data(row, media, picture=video in images), key: says})
    lost = sorted(set(tables.boxes["video"].cast(pl.String).unique()) - set(rows))
    if lost:
        raise UsageError(f"boxes of {len(lost)} videos that the table of videos does not have: {lost[:3]}")
    write_atomically(Path(path), json.dumps(tasks, allow_nan=False).encode())
    if config is not None:
        write_atomically(
            Path(config), build_labelling_config(tables, held.controls, picture=bool(images)).encode()
        )
    found.tasks, found.regions = len(tasks), held.regions
    found.boxes, found.keyframes = held.boxes, held.keyframes
    return found


def read_predictions(
    path: Path,
    *,
    kinds: Mapping[str, str] | None = None,
    fps: float | None = None,
    size: tuple[int, int] | None = None,
) -> Predictions:
    """The predictions of tasks as Predictions: tubes with their regions' scores.

    Args:
        path: a file of tasks, or a folder or zip with some.
        kinds: control to kind of label, as `datasets.label_studio.read`, like the next two.
        fps: frames per second.
        size: width and height in pixels.

    Raises:
        DatasetNotFoundError: if there is no file.
        InputError: if no file can be read.
    """
    findings = Findings()
    with find(Path(path)) as source:
        tasks = read_task_files(source, inputs(source), "predictions", findings)
    tables, vocabularies = build_label_studio_tables(
        group_tasks_by_video(tasks, size, fps, findings), kinds or {}, findings
    )
    return Predictions(
        **(tables | {"frames": tables["frames"].clear()}),
        rejected=findings.table(),
        meta=Meta(
            dataset="Label Studio",
            vocabularies=vocabularies,
            rows_read=dict(sorted(findings.read.items())),
            notes=findings.notes(),
        ),
    )


def _data(row: Mapping[str, Any], media: str, *, picture: bool) -> dict[str, Any]:
    """Data of a task."""
    path = row.get("path") or row["video"]
    address = path if path.startswith(("/data/", "http://", "https://", "s3://", "gs://")) else None
    data = {
        "image" if picture else "video": address or media.format(name=quote(path)),
        VIDEO_NAME: row["video"],
        "width": row.get("width_px"),
        "height": row.get("height_px"),
        "fps": row.get("fps"),
    }
    return {name: value for name, value in data.items() if value is not None}
