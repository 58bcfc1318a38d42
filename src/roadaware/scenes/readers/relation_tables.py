"""From tracks and relations to the tables boxes, tubes, tube_labels and relations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.scenes.readers.relation_instances import Relation, Track, Tracks
from roadaware.scenes.schema import CORNERS

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


def words(clips: Iterable[Packed]) -> dict[str, tuple[str, ...]]:
    """The vocabularies `category` and `predicate` of what was read, sorted."""
    categories: set[str] = set()
    predicates: set[str] = set()
    for clip in clips:
        categories.update(clip.categories)
        predicates.update(relation.predicate for relation in clip.relations)
    return {CATEGORY: tuple(sorted(categories)), PREDICATE: tuple(sorted(predicates))}


def tables_of(clips: Sequence[Packed], vocabularies: Mapping[str, Sequence[str]]) -> dict[str, pl.DataFrame]:
    """The tables boxes, tubes, tube_labels and relations, numbered in the order of the clips.

    Args:
        clips: one per video; boxes come track by track, relations in the file's order.
        vocabularies: with `category` and `predicate`.
    """
    category, predicate = (
        {word: n for n, word in enumerate(vocabularies[kind])} for kind in (CATEGORY, PREDICATE)
    )
    lengths = _joined(clips, lambda clip: clip.lengths)
    tubes = pl.DataFrame(
        {
            "tube": np.arange(len(lengths)),
            "video": _repeated(clips, [len(clip.names) for clip in clips]),
            "name": pl.Series([name for clip in clips for name in clip.names], dtype=pl.String),
            **_ends(_joined(clips, lambda clip: clip.frames), lengths),
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
        "video": _repeated(clips, [len(clip.frames) for clip in clips]),
        "frame": _joined(clips, lambda clip: clip.frames),
        "tube": np.repeat(np.arange(len(lengths)), lengths),
        **{name: _corner(clips, n) for n, name in enumerate(CORNERS)},
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
    video = _repeated(clips, [len(clip.relations) for clip in clips])
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


def _corner(clips: Sequence[Packed], place: int) -> Floats:
    """One column of corners, taken out of the clips: all corners in one array would need the room twice."""
    return np.concatenate([np.zeros(0), *(clip.boxes[:, place] for clip in clips)])


def _joined(clips: Sequence[Packed], part: Callable[[Packed], Ints]) -> Ints:
    """One array of all clips."""
    return np.concatenate([np.zeros(0, np.int64), *(part(clip) for clip in clips)])


def _repeated(clips: Sequence[Packed], counts: Sequence[int]) -> pl.Series:
    """The name of each clip as often as it has rows."""
    names = pl.Series("video", [clip.video for clip in clips], dtype=pl.String)
    return names.gather(np.repeat(np.arange(len(clips)), counts))
