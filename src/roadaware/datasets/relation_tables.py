"""Relations with their own trajectories, as VidVRD's files have them, brought to tracks and to the tables
boxes, tubes, tube_labels and relations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.io.json import describe_type, escape_surrogates, format_value
from roadaware.io.sources import to_printable
from roadaware.scenes.schema import CORNERS

# Relations with their own trajectories, as VidVRD's predictions have them, brought to tracks that they share.

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
    """Boxes of one subject or object.

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
    """A relation between two tracks, by index."""

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


def parse_relation(value: Any) -> Instance | str:
    """A relation, or why it cannot be taken.

    Args:
        value: an object with triplet, duration, sub_traj and obj_traj, as JSON gave it.
    """
    if not isinstance(value, dict):
        return f"should be an object and is {describe_type(value)}"
    triplet = value.get("triplet")
    if not isinstance(triplet, list) or [type(word) for word in triplet] != [str] * 3:
        return f"'triplet' should be three texts and is {_format_list(triplet)}"
    span = parse_duration(value.get("duration"))
    if isinstance(span, str):
        return span
    start, end = span
    held: list[Floats] = []
    for name in ("sub_traj", "obj_traj"):
        boxes = _trajectory(value.get(name), end - start)
        if isinstance(boxes, str):
            return f"'{name}' {boxes}"
        held.append(boxes)
    names = [parse_track_name(value.get(name)) for name in _TIDS]
    who, predicate, whom = (escape_surrogates(word) for word in triplet)
    both = None if names[0] is None or names[1] is None else (names[0], names[1])
    return Instance((who, predicate, whom), start, end, held[0], held[1], both)


def parse_duration(value: Any) -> tuple[int, int] | str:
    """First frame and the one after the last, or why they are none."""
    numbers = value if isinstance(value, list) and len(value) == 2 else [None, None]
    start, end = (parse_frame(number) for number in numbers)
    if start is None or end is None:
        return f"the duration should be two frames from 0 on and is {_format_list(value)}"
    if end <= start:
        return f"the duration [{start}, {end}) ends before it has begun"
    return start, end


def parse_frame(value: Any) -> int | None:
    """The value as a frame if it is a whole number from 0 on, also one written as 3.0."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MOST_FRAMES else None


def parse_track_name(value: Any) -> str | None:
    """A track's number or text as a name."""
    if type(value) is int and abs(value) < 1 << 63:
        return str(value)
    return escape_surrogates(value) if isinstance(value, str) else None


def format_video_name(text: str) -> str:
    """A video's name as the tables have it: fit for a message, in ground truth and predictions alike."""
    return to_printable(escape_surrogates(text), 255)


def merge_named_tracks(held: Tracks) -> Tracks | None:
    """The same relations on one track for each name; None where names are missing or contradict themselves.

    Files of ground truth that give relations their own trajectories cut them out of tracks: what is cut out of one
    has one name, one category and one box in each frame.
    """
    pieces: dict[str, list[Track]] = {}
    for track in held.tracks:
        if track.name is None:
            return None
        pieces.setdefault(track.name, []).append(track)
    whole = [_join_instances(parts) for parts in pieces.values()]
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


def _join_instances(parts: Sequence[Track]) -> Track | None:
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
        return f"holds a corner that is no finite number: {format_value(odd)}"
    if not -LARGEST < min(numbers) <= max(numbers) < LARGEST:
        return "holds a corner that is no finite number within reason"
    boxes = np.array(numbers, dtype=np.float64).reshape(length, 4)
    wrong = (boxes[:, 2:] < boxes[:, :2]).any(axis=1)
    if wrong.any():
        first = int(wrong.argmax())
        return f"holds a box that is upside down, the {first + 1}. one: {boxes[first].tolist()}"
    return boxes


def _format_list(value: Any) -> str:
    return (
        f"[{', '.join(map(format_value, value))}]"
        if isinstance(value, list) and len(value) < 6
        else format_value(value)
    )


CATEGORY, PREDICATE = "category", "predicate"


@dataclass(frozen=True)
class Packed:
    """The tracks and relations of one video in few arrays.

    Args:
        video: its name.
        names: of the tracks.
        categories: of the tracks.
        lengths: (tracks,) how many boxes each has.
        frames: (boxes,) track by track.
        boxes: (boxes, 4) corners in pixels.
        generated: (boxes,) which a tracker made, None where the file does not say.
        relations: by places in the list of tracks.
    """

    video: str
    names: tuple[str | None, ...]
    categories: tuple[str, ...]
    lengths: Ints
    frames: Ints
    boxes: Floats
    generated: Bools | None
    relations: tuple[Relation, ...]


def pack(video: str, held: Tracks) -> Packed:
    """Bring the tracks of a video to few arrays: thousands of small ones take several times the room."""
    tracks = held.tracks
    none: Track = Track(None, "", np.zeros(0, np.int64), np.zeros((0, 4)))
    marks = [track.generated for track in tracks if track.generated is not None]
    return Packed(
        video,
        tuple(track.name for track in tracks),
        tuple(track.category for track in tracks),
        np.array([len(track.frames) for track in tracks], dtype=np.int64),
        np.concatenate([track.frames for track in (*tracks, none)]),
        np.concatenate([track.boxes for track in (*tracks, none)]),
        np.concatenate(marks) if len(marks) == len(tracks) and marks else None,
        tuple(held.relations),
    )


def collect_relation_vocabularies(clips: Iterable[Packed]) -> dict[str, tuple[str, ...]]:
    """The vocabularies `category` and `predicate` of what was read, sorted."""
    categories: set[str] = set()
    predicates: set[str] = set()
    for clip in clips:
        categories.update(clip.categories)
        predicates.update(relation.predicate for relation in clip.relations)
    return {CATEGORY: tuple(sorted(categories)), PREDICATE: tuple(sorted(predicates))}


def build_relation_tables(
    clips: Sequence[Packed], vocabularies: Mapping[str, Sequence[str]]
) -> dict[str, pl.DataFrame]:
    """The tables boxes, tubes, tube_labels and relations, numbered in the order of the clips.

    Args:
        clips: one per video; boxes come track by track, relations in the file's order.
        vocabularies: with `category` and `predicate`.
    """
    category, predicate = (
        {word: n for n, word in enumerate(vocabularies[kind])} for kind in (CATEGORY, PREDICATE)
    )
    lengths = _concat_clips(clips, lambda clip: clip.lengths)
    tubes = pl.DataFrame(
        {
            "tube": np.arange(len(lengths)),
            "video": _repeat_video_names(clips, [len(clip.names) for clip in clips]),
            "name": pl.Series([name for clip in clips for name in clip.names], dtype=pl.String),
            **_ends(_concat_clips(clips, lambda clip: clip.frames), lengths),
        }
    )
    labels = pl.DataFrame(
        {
            "tube": np.arange(len(lengths)),
            "kind": pl.Series([CATEGORY] * len(lengths), dtype=pl.String),
            "label": np.array([category[c] for clip in clips for c in clip.categories], dtype=np.int64),
        }
    )
    return {
        "boxes": _boxes(clips, lengths),
        "tubes": tubes,
        "tube_labels": labels,
        "relations": _relations(clips, predicate),
    }


def _boxes(clips: Sequence[Packed], lengths: Ints) -> pl.DataFrame:
    count = int(lengths.sum())
    columns: dict[str, Any] = {
        "box": np.arange(count),
        "video": _repeat_video_names(clips, [len(clip.frames) for clip in clips]),
        "frame": _concat_clips(clips, lambda clip: clip.frames),
        "tube": np.repeat(np.arange(len(lengths)), lengths),
        **{
            name: np.concatenate([np.zeros(0), *(clip.boxes[:, n] for clip in clips)])
            for n, name in enumerate(CORNERS)
        },
    }
    if any(clip.generated is not None for clip in clips):
        columns["generated"] = pl.concat(_marks(clip) for clip in clips)
    return pl.DataFrame(columns)


def _marks(clip: Packed) -> pl.Series:
    if clip.generated is None:
        return pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(clip.frames))
    return pl.Series(clip.generated, dtype=pl.Boolean)


def _relations(clips: Sequence[Packed], predicate: Mapping[str, int]) -> pl.DataFrame:
    rows: list[tuple[int, int, int, int, int]] = []
    first = 0
    for clip in clips:
        rows += [
            (first + each.subject, first + each.object, predicate[each.predicate], each.start, each.end)
            for each in clip.relations
        ]
        first += len(clip.names)
    names = ("subject", "object", "predicate", "start_frame", "end_frame")
    table = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Int64), orient="row")
    video = _repeat_video_names(clips, [len(clip.relations) for clip in clips])
    return table.select(pl.int_range(pl.len()).alias("relation"), video.alias("video"), *names)


def _ends(frames: Ints, lengths: Ints) -> dict[str, pl.Series]:
    """First frame of each track and the one after its last; null where it has no box."""
    last = np.cumsum(lengths)
    full = lengths > 0
    start, end = np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.int64)
    start[full], end[full] = frames[(last - lengths)[full]], frames[last[full] - 1] + 1
    empty = pl.Series(~full)
    return {
        name: pl.Series(name, values).set(empty, None)
        for name, values in (("start_frame", start), ("end_frame", end))
    }


def _concat_clips(clips: Sequence[Packed], part: Callable[[Packed], Ints]) -> Ints:
    """One array of all clips."""
    return np.concatenate([np.zeros(0, np.int64), *(part(clip) for clip in clips)])


def _repeat_video_names(clips: Sequence[Packed], counts: Sequence[int]) -> pl.Series:
    """The name of each clip as often as it has rows."""
    names = pl.Series("video", [clip.video for clip in clips], dtype=pl.String)
    return names.gather(np.repeat(np.arange(len(clips)), counts))


# Pieces of one track, cut out for several relations, brought together again.


def merge_overlapping_tracks(held: Tracks) -> Tracks:
    """The same relations on whole tracks: pieces of a category with equal boxes in a shared frame are one.

    Predictions give each relation the boxes of its own duration, so that one person of a detector comes in pieces
    that overlap. Which predictions are about the same pair in a frame can be decided for whole tracks only. Pieces
    that would give their track two boxes in a frame stay apart.
    """
    if len(held.tracks) < 2:
        return held
    piece = np.repeat(np.arange(len(held.tracks)), [len(track.frames) for track in held.tracks])
    frames = np.concatenate([track.frames for track in held.tracks])
    # Equal numbers for equal boxes of one category and name in one frame, and for equal frames of one
    names = {of: n for n, of in enumerate(dict.fromkeys((t.category, t.name) for t in held.tracks))}
    kind = np.array([names[track.category, track.name] for track in held.tracks])[piece]
    corners = np.concatenate([track.boxes for track in held.tracks])
    # The bits of the corners: cut out of one track they are equal, to the last one.
    keys = np.column_stack([kind, frames, corners.view(np.int64).reshape(-1, 4)])
    _, place = np.unique(kind * (frames.max() + 1) + frames, return_inverse=True)
    rows, frame_and_kind = _rows(keys), place
    group = _groups(piece, rows, len(held.tracks))
    # The groups, dissolved where one would have two boxes in a frame
    boxes = np.unique(np.column_stack([group[piece], frame_and_kind, rows]), axis=0)
    twice = np.flatnonzero((boxes[1:, :2] == boxes[:-1, :2]).all(axis=1))
    mixed = np.isin(group, boxes[twice, 0])
    group = np.where(mixed, np.arange(len(group)), group)
    numbers, to = np.unique(group, return_inverse=True)
    if len(numbers) == len(held.tracks):
        return held
    order = np.argsort(np.array([np.flatnonzero(to == n)[0] for n in range(len(numbers))]))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    to = place[to]
    tracks = [_join_pieces([held.tracks[k] for k in np.flatnonzero(to == n)]) for n in range(len(numbers))]
    relations = [
        Relation(int(to[each.subject]), each.predicate, int(to[each.object]), each.start, each.end)
        for each in held.relations
    ]
    return Tracks(tracks, relations)


def _rows(keys: Ints) -> Ints:
    """(n,) equal numbers for equal rows of (n, k) keys; by a sum of each row where sums distinguish them."""
    # Odd random factors: the sum of a row wraps at 64 bits and seldom meets that of another; checked below.
    factors = np.random.default_rng(0).integers(1, 1 << 62, keys.shape[1]) * 2 + 1
    _, first, rows = np.unique((keys * factors).sum(axis=1), return_index=True, return_inverse=True)
    if (keys == keys[first[rows]]).all():
        return rows
    found: Ints = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    return found


def _groups(piece: Ints, rows: Ints, n: int) -> Ints:
    """(n,) the lowest piece of those that share rows, directly or through others."""
    lowest = np.full(rows.max() + 1, n, dtype=np.int64)
    group = np.arange(n)
    while True:
        lowest[:] = n
        np.minimum.at(lowest, rows, group[piece])
        least = np.full(n, n, dtype=np.int64)
        np.minimum.at(least, piece, lowest[rows])
        if (least == group).all():
            return group
        group = least


def _join_pieces(parts: list[Track]) -> Track:
    if len(parts) == 1:
        return parts[0]
    frames, first = np.unique(np.concatenate([part.frames for part in parts]), return_index=True)
    boxes = np.concatenate([part.boxes for part in parts])[first]
    return Track(parts[0].name, parts[0].category, frames, boxes)
