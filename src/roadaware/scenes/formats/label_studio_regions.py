"""The regions of one Label Studio task: tracks as keyframes, boxes, spans, sounds, texts and arrows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import UsageError
from roadaware.scenes.formats.label_studio_config import (
    BOX,
    DESCRIPTION,
    EVENT,
    PREDICATE,
    SOUND,
    Controls,
    categories_of,
)
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.readers.label_studio_tracks import thinned
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_ROUNDING_PX = 1e-9
_MAKES = "makes"
Results = list[dict[str, Any]]


@dataclass
class Held:
    """What is written, and the count of it."""

    tables: Scenes | Predictions
    controls: Controls
    tolerance_px: float
    left_out: dict[str, int] = field(default_factory=dict)
    regions: int = 0
    boxes: int = 0
    keyframes: int = 0

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count what the format cannot say."""
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
        return categories_of(self.tables)

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


def regions_of(held: Held, video: str, row: Mapping[str, Any], *, picture: bool) -> list[dict[str, Any]]:
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
        task.held.leave_out("sounds of pictures", len(sounds))
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
    """Tracks of a video, and boxes of a picture or without a track one by one."""
    if "tube" not in boxes.columns:
        boxes = boxes.with_columns(tube=pl.lit(None, pl.Int64))
    boxes = boxes.sort("tube", "frame", nulls_last=True, maintain_order=True)
    tubes = {row["tube"]: row for row in task.held.of("tubes", task.video).iter_rows(named=True)}
    for (tube,), own in boxes.partition_by("tube", as_dict=True, maintain_order=True).items():
        if tube is None:
            for place in range(len(own)):
                _region(task, own[place : place + 1], None)
        else:
            _region(task, own, tubes.get(tube))


def _region(task: _Task, own: pl.DataFrame, tube: Mapping[str, Any] | None) -> None:
    """One track, or one box, with its labels."""
    first = own.row(0, named=True)
    author = first.get("annotator") or (tube or {}).get("annotator")
    table, number = ("box", first["box"]) if tube is None else ("tube", tube["tube"])
    name = task.named(table, number, author, (tube or {}).get("name"))
    frames = own["frame"].to_numpy().astype(np.int64)
    if (np.diff(frames) <= 0).any():
        raise UsageError(f"tube {number} of {task.video} has two boxes in a frame, and cannot be one track")
    corners = own.select(*CORNERS).to_numpy().astype(np.float64)
    words = _words(task, own, tube)
    score = _score(own, tube)
    held = task.held
    held.regions, held.boxes = held.regions + 1, held.boxes + len(own)
    kind = "rectangle" if task.picture else "videorectangle"
    value = _picture(corners, task) if task.picture else _sequence(frames, corners, task)
    head = {"id": name, "from_name": BOX, "to_name": "image" if task.picture else "video"}
    sides = {"original_width": task.size[0], "original_height": task.size[1], "image_rotation": 0}
    if words and not task.picture:
        value["labels"] = next(iter(words.values()))
    task.add(author, {**head, "type": kind, **sides, "value": value} | score)
    for label, listed in words.items():
        said = {"labels": listed} | (_picture(corners, task) if task.picture else {})
        control = held.controls.regions[label]
        task.add(author, {**head, "from_name": control, "type": "labels", "value": said})
    sounds = set(own["sound"].to_list()) if "sound" in own.columns else set()
    target = task.names.get(("sound", next(iter(sounds)))) if len(sounds) == 1 else None
    if target is not None and target[0] == author:
        task.add(author, _arrow(name, target[1], _MAKES))
    elif sounds - {None}:
        held.leave_out("sounds that only some boxes of a track make")


def _words(task: _Task, own: pl.DataFrame, tube: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """The labels of a region: the tube's, and those that every box has."""
    held = task.held
    found = {
        kind: list(words) for kind, words in held.said["tubes"].get((tube or {}).get("tube", -1), {}).items()
    }
    each = [held.said["boxes"].get(box, {}) for box in own["box"].to_list()]
    pairs = [{(kind, word) for kind, words in one.items() for word in words} for one in each]
    common = set.intersection(*pairs) if pairs else set()
    held.leave_out("labels that only some boxes of a track have", sum(len(one - common) for one in pairs))
    for kind, word in sorted(common):
        if word not in found.setdefault(kind, []):
            found[kind].append(word)
    return found


def _score(own: pl.DataFrame, tube: Mapping[str, Any] | None) -> dict[str, float]:
    """The tube's score, else the best of its boxes."""
    score = (tube or {}).get("score")
    if score is None and "score" in own.columns:
        score = own["score"].max()
    return {} if score is None else {"score": float(score)}


def _sequence(frames: Ints, corners: Floats, task: _Task) -> dict[str, Any]:
    """A track as keyframes."""
    places, enabled = thinned(frames, corners, task.held.tolerance_px + _ROUNDING_PX)
    task.held.keyframes += len(places)
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
    """The box of a picture."""
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
