"""Relations with their own trajectories, as VidVRD's claims have them, brought to tracks that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from roadaware.arrays import Bools, Floats, Ints
from roadaware.scenes.readers.json import clean, kind_of, quoted
from roadaware.scenes.readers.source import shown

LARGEST = 1e7
MOST_FRAMES = 10_000_000
_NUMBERS = {int, float}
_TIDS = ("subject_tid", "object_tid")


@dataclass(frozen=True)
class Instance:
    """One relation as it is written.

    Args:
        triplet: subject, predicate and object.
        start: first frame.
        end: frame after the last.
        subject: (end - start, 4) its boxes.
        object: (end - start, 4) its boxes.
        names: of the two tracks, None where the file gives none.
    """

    triplet: tuple[str, str, str]
    start: int
    end: int
    subject: Floats
    object: Floats
    names: tuple[str, str] | None


@dataclass(frozen=True)
class Track:
    """Somebody's boxes.

    Args:
        name: what the file calls it, None where it has no name.
        category: what it is.
        frames: (n,) ascending.
        boxes: (n, 4) corners in pixels.
        generated: (n,) which of them a tracker made, None where the file does not say.
    """

    name: str | None
    category: str
    frames: Ints
    boxes: Floats
    generated: Bools | None = None


@dataclass(frozen=True)
class Relation:
    """Who does what to whom, by places in a list of tracks."""

    subject: int
    predicate: str
    object: int
    start: int
    end: int


@dataclass
class Tracks:
    """The tracks of one video; equal trajectories of equal category, start and name are one track."""

    tracks: list[Track] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    _places: dict[tuple[str | None, str, int, bytes], int] = field(default_factory=dict, repr=False)

    def take(self, instance: Instance) -> None:
        """Add a relation, with those of its tracks that are new."""
        who, predicate, whom = instance.triplet
        names = instance.names or (None, None)
        subject = self._place(names[0], who, instance.start, instance.subject)
        target = self._place(names[1], whom, instance.start, instance.object)
        self.relations.append(Relation(subject, predicate, target, instance.start, instance.end))

    def _place(self, name: str | None, category: str, start: int, boxes: Floats) -> int:
        key = (name, category, start, boxes.tobytes())
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.tracks)
            frames = np.arange(start, start + len(boxes))
            self.tracks.append(Track(name, category, frames, boxes))
        return place


def instance_of(value: Any) -> Instance | str:
    """A relation, or why it cannot be taken.

    Args:
        value: an object with triplet, duration, sub_traj and obj_traj, as JSON gave it.
    """
    if not isinstance(value, dict):
        return f"should be an object and is {kind_of(value)}"
    triplet = value.get("triplet")
    if not isinstance(triplet, list) or [type(word) for word in triplet] != [str] * 3:
        return f"'triplet' should be three texts and is {_told(triplet)}"
    span = span_of(value.get("duration"))
    if isinstance(span, str):
        return span
    start, end = span
    held: list[Floats] = []
    for name in ("sub_traj", "obj_traj"):
        boxes = _trajectory(value.get(name), end - start)
        if isinstance(boxes, str):
            return f"'{name}' {boxes}"
        held.append(boxes)
    names = [name_of(value.get(name)) for name in _TIDS]
    who, predicate, whom = (clean(word) for word in triplet)
    both = None if names[0] is None or names[1] is None else (names[0], names[1])
    return Instance((who, predicate, whom), start, end, held[0], held[1], both)


def span_of(value: Any) -> tuple[int, int] | str:
    """First frame and the one after the last, or why they are none."""
    numbers = value if isinstance(value, list) and len(value) == 2 else [None, None]
    start, end = (frame_of(number) for number in numbers)
    if start is None or end is None:
        return f"the duration should be two frames from 0 on and is {_told(value)}"
    if end <= start:
        return f"the duration [{start}, {end}) ends before it has begun"
    return start, end


def frame_of(value: Any) -> int | None:
    """The value as a frame if it is a whole number from 0 on, also one written as 3.0."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MOST_FRAMES else None


def name_of(value: Any) -> str | None:
    """A track's number or text as a name."""
    if type(value) is int and abs(value) < 1 << 63:
        return str(value)
    return clean(value) if isinstance(value, str) else None


def video_name(text: str) -> str:
    """A video's name as the tables have it: fit for a message, in truth and claims alike."""
    return shown(clean(text), 255)


def merged(held: Tracks) -> Tracks | None:
    """The same relations on one track for each name; None where names are missing or contradict themselves.

    Files of truth that give relations their own trajectories cut them out of tracks: what is cut out of one
    has one name, one category and one box in each frame.
    """
    pieces: dict[str, list[Track]] = {}
    for track in held.tracks:
        if track.name is None:
            return None
        pieces.setdefault(track.name, []).append(track)
    whole = [_joined(parts) for parts in pieces.values()]
    place = {name: n for n, name in enumerate(pieces)}
    tracks = [track for track in whole if track is not None]
    if len(tracks) < len(whole):
        return None
    to = [place[track.name or ""] for track in held.tracks]
    relations = [
        Relation(to[each.subject], each.predicate, to[each.object], each.start, each.end)
        for each in held.relations
    ]
    return Tracks(tracks, relations)


def _joined(parts: Sequence[Track]) -> Track | None:
    """The track that all parts were cut out of."""
    frames = np.concatenate([part.frames for part in parts])
    boxes = np.concatenate([part.boxes for part in parts])
    order = np.argsort(frames, kind="stable")
    frames, boxes = frames[order], boxes[order]
    again = np.flatnonzero(frames[1:] == frames[:-1])
    if (boxes[again] != boxes[again + 1]).any() or len({part.category for part in parts}) > 1:
        return None
    kept = np.delete(np.arange(len(frames)), again + 1)
    return Track(parts[0].name, parts[0].category, frames[kept], boxes[kept])


def _trajectory(value: Any, length: int) -> Floats | str:
    """(length, 4) boxes, or what is wrong with them."""
    if not isinstance(value, list) or set(map(type, value)) != {list} or set(map(len, value)) != {4}:
        return "should be a list of boxes of four numbers"
    if len(value) != length:
        return f"has {len(value)} boxes, and the duration {length} frames"
    numbers = list(chain.from_iterable(value))
    if not set(map(type, numbers)) <= _NUMBERS:
        odd = next(number for number in numbers if type(number) not in _NUMBERS)
        return f"holds a corner that is no finite number: {quoted(odd)}"
    if not -LARGEST < min(numbers) <= max(numbers) < LARGEST:
        return "holds a corner that is no finite number within reason"
    boxes = np.array(numbers, dtype=np.float64).reshape(length, 4)
    wrong = (boxes[:, 2:] < boxes[:, :2]).any(axis=1)
    if wrong.any():
        first = int(wrong.argmax())
        return f"holds a box that is upside down, the {first + 1}. one: {boxes[first].tolist()}"
    return boxes


def _told(value: Any) -> str:
    return (
        f"[{', '.join(map(quoted, value))}]" if isinstance(value, list) and len(value) < 6 else quoted(value)
    )
