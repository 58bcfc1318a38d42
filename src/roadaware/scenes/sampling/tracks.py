"""The pedestrians of a split in published order, with their boxes by position and their event."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Ints
from roadaware.errors import InputError, UsageError
from roadaware.scenes.positions import Positions, from_rows
from roadaware.scenes.sampling.configs import EventProtocol
from roadaware.scenes.sampling.splits import videos_of
from roadaware.scenes.tables import Scenes

SOURCES = ("annotated", "fallback", "none")
_PEDESTRIANS = ("pedestrian", "ped")
_CROSSING = ("not-crossing", "crossing", "irrelevant")


@dataclass(frozen=True)
class Tracks:
    """Pedestrians in the order in which they are sampled.

    Args:
        frame: (n rows) of the tubes table, in order.
        index: the boxes of all tubes.
        begin: (n,) where each pedestrian's boxes begin in `index`.
        length: (n,) how many boxes each has.
        crossing: (n,) whether the pedestrian crosses.
        annotated: (n,) position of the annotated event in the track, -1 where none is annotated.
        unlabelled: pedestrians left out because nothing says whether they cross.
    """

    frame: pl.DataFrame
    index: Positions
    begin: Ints
    length: Ints
    crossing: Bools
    annotated: Ints
    unlabelled: int = 0

    def __len__(self) -> int:
        return len(self.frame)

    def column(self, name: str) -> Ints:
        """(n,) an integer attribute, -1 where unknown."""
        return np.asarray(self.frame[name].fill_null(-1).to_numpy(), dtype=np.int64)

    def position(self, frame: Ints) -> Ints:
        """(n,) position in each track of the box at that frame, -1 where there is none."""
        found = self.index.locate(self.column("tube"), frame)
        return np.where(found >= 0, found - self.begin, -1)


def tracks(scenes: Scenes, protocol: EventProtocol, split: str, index: Positions) -> Tracks:
    """The pedestrians of one split, by video and then by name, both as text.

    Args:
        scenes: where they are.
        protocol: which of them are meant.
        split: train, val or test.
        index: positions of the scenes' boxes.

    Raises:
        InputError: if the split holds no video.
        UsageError: if the tubes lack their native names.
        InputError: if the label of nobody is known who should have one.
    """
    if "name" not in scenes.tubes.columns:
        raise UsageError("sampling needs tubes.name, the native identifier: it orders the pedestrians")
    videos = videos_of(scenes, protocol, split)
    wanted = pl.col("video").cast(pl.String).is_in(videos) & ~pl.col("name").str.ends_with("p")
    if "track_label" in scenes.tubes.columns:
        wanted &= pl.col("track_label").cast(pl.String).is_in(_PEDESTRIANS).fill_null(True)
    if protocol.pedestrians == "behaviour":
        wanted &= pl.col("name").str.ends_with("b")
    held = scenes.tubes.filter(wanted).sort(pl.col("video").cast(pl.String), pl.col("name").cast(pl.String))
    chosen, unlabelled = _labelled(held, protocol)
    begin, length = index.extent(chosen["tube"].to_numpy())
    crossing = chosen["crossing"].cast(pl.String).eq("crossing").fill_null(False).to_numpy()
    nowhere = np.full(len(chosen), -1, dtype=np.int64)
    found = Tracks(chosen, index, begin, length, crossing, nowhere, unlabelled)
    return replace(found, annotated=_annotated(found))


def _labelled(held: pl.DataFrame, protocol: EventProtocol) -> tuple[pl.DataFrame, int]:
    """The pedestrians whose label is known, and how many it should be known of and is not.

    JAAD recorded attributes of pedestrians with behaviour tags alone; the others are bystanders who do not
    cross. PIE recorded them of everybody. Intention does not ask whether somebody crosses.
    """
    if protocol.task == "intention":
        return held, 0
    said = held["crossing"].cast(pl.String).drop_nulls().unique().sort().to_list()
    if strange := [word for word in said if word not in _CROSSING]:
        raise InputError(
            f"tubes.crossing says {', '.join(map(repr, strange[:5]))}; it says {', '.join(_CROSSING)}",
            hint="words of another question are no answers to this one; translate them first",
        )
    asked = pl.col("name").str.ends_with("b") if protocol.dataset == "jaad" else pl.lit(True)
    chosen = held.filter(~asked | pl.col("crossing").is_not_null())
    expected = len(held.filter(asked))
    if expected and len(held) - len(chosen) == expected:
        raise InputError(
            f"none of {expected} pedestrians has a known label: the attributes say whether somebody crosses",
            hint="read the dataset with its annotations_attributes, undamaged",
        )
    return chosen, len(held) - len(chosen)


def assumed_boxes(tubes: pl.DataFrame) -> Positions:
    """Positions of tracks without boxes: every frame from the start of the experiment to the last known.

    Args:
        tubes: with `exp_start_point`, `critical_point` and `event_frame`.

    Raises:
        InputError: if these columns are absent, so nothing tells where the tracks lie.
    """
    needed = ("exp_start_point", "critical_point", "event_frame")
    missing = [c for c in needed if c not in tubes.columns]
    if missing:
        raise InputError(
            f"tubes have neither boxes nor {missing}",
            hint="read the box annotations, or attributes with experiment and critical points",
        )
    known = tubes.filter(pl.col("exp_start_point").is_not_null()).sort("tube")
    start = known["exp_start_point"].to_numpy()
    end = (
        known.select(pl.max_horizontal(needed).fill_null(pl.col("exp_start_point")) + 1)
        .to_series()
        .to_numpy()
    )
    count = np.maximum(end - start, 0)
    owner = np.repeat(known["tube"].to_numpy(), count)
    frame = np.repeat(start - np.concatenate(([0], np.cumsum(count)[:-1])), count) + np.arange(count.sum())
    return from_rows(owner, frame, np.full(len(frame), -1, dtype=np.int64))


def event_positions(tracks_: Tracks, protocol: EventProtocol) -> Ints:
    """(n,) position of each pedestrian's event, -1 where the protocol gives none.

    Args:
        tracks_: the pedestrians.
        protocol: its rules for pedestrians without an annotated event.
    """
    length = tracks_.length
    third_last = np.where(length > 3, length - 3, length - 1)
    invented = third_last if protocol.other_event == "third_last" else length - 1
    if protocol.crosser_without_event == "drop":
        lacking = np.full(len(length), -1, dtype=np.int64)
    else:
        lacking = third_last
    other = np.where(tracks_.crossing, lacking, invented)
    named = _named(tracks_.frame)
    return np.where(named, tracks_.annotated, other)


def _annotated(tracks_: Tracks) -> Ints:
    """(n,) position of the annotated event; -1 without one, or where the track has no box at its frame."""
    if "event_frame" not in tracks_.frame.columns:
        return np.full(len(tracks_), -1, dtype=np.int64)
    position = tracks_.position(tracks_.column("event_frame"))
    return np.where(_named(tracks_.frame), position, -1)


def _named(tubes: pl.DataFrame) -> Bools:
    """(n,) whether the event is annotated."""
    if "event_source" not in tubes.columns:
        return np.zeros(len(tubes), dtype=np.bool_)
    return np.asarray(tubes["event_source"].cast(pl.String).eq("annotated").fill_null(False).to_numpy())
