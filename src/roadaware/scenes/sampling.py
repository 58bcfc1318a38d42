"""Pedestrian tracks cut into samples: the published ways, each quirk a field, and the cutting, in the published order of
rows."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Ints
from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import compute_region_position
from roadaware.scenes.factors import Positions, build_position_index, from_rows
from roadaware.scenes.tables import Scenes

Task = Literal["action", "intention", "risk"]
Dataset = Literal["jaad", "pie"]
Pedestrians = Literal["all", "behaviour"]


@dataclass(frozen=True)
class EventProtocol:
    """Samples whose observation ends a given time before an event; the common fields of all protocols.

    Args:
        task: what is asked of each sample.
        dataset: whose pedestrians; it decides which splits and identifiers exist.
        subset: the set of split lists, the part of a split's name in front of the slash.
        splits: which splits, in the order of the rows.
        pedestrians: `all` but groups of people, or those with `behaviour` tags alone (JAAD).
        observation_frames: length of the observation.
        tte_frames: lowest and highest time to event at the end of the observation.
        overlap: share of an observation that the next one repeats; the stride is
            `int((1 - overlap) * observation_frames)`, at least 1.
        exclude_short: leave out tracks that do not reach the highest time to event; otherwise such a
            track is sampled from its first box on.
        crosser_without_event: a crossing pedestrian without an annotated event gets the `third_last`
            box as event, or is `drop`ped.
        other_event: the event of a pedestrian who does not cross and has none annotated: the
            `third_last` box of the track (the last of tracks up to three boxes), or the `last`.
        crossing_observed: `keep` or `drop` samples with a box tagged as crossing inside the observation;
            intention does not ask about crossing and keeps them.
    """

    task: Task = "action"
    dataset: Dataset = "jaad"
    subset: str = "default"
    splits: tuple[str, ...] = ("train", "val", "test")
    pedestrians: Pedestrians = "all"
    observation_frames: int = 15
    tte_frames: tuple[int, int] = (30, 90)
    overlap: float = 0.3
    exclude_short: bool = False
    crosser_without_event: Literal["third_last", "drop"] = "third_last"
    other_event: Literal["third_last", "last"] = "third_last"
    crossing_observed: Literal["keep", "drop"] = "keep"

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in fields(self):
            allowed = get_args(hints[field.name]) if get_origin(hints[field.name]) is Literal else ()
            if allowed and (value := getattr(self, field.name)) not in allowed:
                raise UsageError(f"{field.name} is one of {', '.join(allowed)}; got {value!r}")
        low, high = self.tte_frames
        if not (self.observation_frames >= 1 and 1 <= low <= high and 0 <= self.overlap < 1):
            raise UsageError(
                f"{type(self).__name__} needs observation_frames >= 1, 1 <= tte_frames[0] <= [1] and "
                f"0 <= overlap < 1; got {self.observation_frames}, {self.tte_frames}, {self.overlap}"
            )
        if self.pedestrians == "behaviour" and self.dataset != "jaad":
            raise UsageError("pedestrians='behaviour' is JAAD's: only there some pedestrians lack tags")

    @property
    def stride_frames(self) -> int:
        """Positions between the starts of two samples; a product of floats cut off, as published."""
        # 0.7 * 15 is 10.5: cut off to 10 and not rounded, or other samples result than the published ones.
        return max(1, int((1 - self.overlap) * self.observation_frames))


@dataclass(frozen=True)
class Iv2024(EventProtocol):
    """Action, intention and risk: 15 frames observed, 1 to 3 s before the event, 30 % overlap.

    Args:
        prediction_frames: what a sample spans beyond its observation; it must fit in front of the
            event, and intention samples that the track does not reach are padded with its last box.
        intention_past_critical: `keep` or `drop` intention samples whose observation runs past the
            critical point, up to which annotators watched; the published sampler moves the start of
            the observation up to that point, so the end runs past it.
        intention_third: whether a probability of exactly one third counts to the class `below` (the
            files print 0.3333333333, less than 1/3) or `above` (the paper's half-open interval).
        intention_tte: the time to event of an intention sample counts from the `start` of the
            observation, or from its `end` as everywhere else.
        risk_regions: vertical regions of equal width in the image.
        risk_horizon_frames: positions from the end of the observation to the box that decides the
            region; where the track ends before, its last box decides.
        risk_width: the image's width is that of the `last_video` of the split, or of the `own` video.
        risk_off_left: a box whose centre is left of the image goes to the `last_region` on the right
            (no interval holds it, and the search ends there), or to the `first_region`.

    Source: Rasouli and Kotseruba, IV 2024, section III-A.
    """

    prediction_frames: int = 30
    intention_past_critical: Literal["keep", "drop"] = "keep"
    intention_third: Literal["below", "above"] = "below"
    intention_tte: Literal["start", "end"] = "start"
    risk_regions: int = 12
    risk_horizon_frames: int = 90
    risk_width: Literal["last_video", "own"] = "last_video"
    risk_off_left: Literal["last_region", "first_region"] = "last_region"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task == "intention" and self.dataset != "pie":
            raise UsageError(
                "only PIE asked people what pedestrians intend; JAAD's binary intention follows from its "
                "crossing labels, and the protocol leaves it out"
            )
        if not 0 <= self.prediction_frames <= self.tte_frames[0]:
            raise UsageError(
                f"prediction_frames must lie in 0..{self.tte_frames[0]} (the lowest time to event), "
                f"not {self.prediction_frames}"
            )
        if self.risk_regions < 2 or self.risk_horizon_frames < 1:
            raise UsageError("risk needs at least 2 regions and a horizon of at least 1 frame")

    @classmethod
    def reference(cls, task: Task = "action", dataset: Dataset | None = None) -> Self:
        """The published extraction, row order included (default dataset: PIE for intention, else JAAD)."""
        return cls(task=task, dataset=dataset or ("pie" if task == "intention" else "jaad"))

    @classmethod
    def default(cls, task: Task = "action", dataset: Dataset | None = None) -> Self:
        """The honest variant: no invented event of a crosser, no answer in sight, every box in its region."""
        return replace(
            cls.reference(task, dataset),
            crosser_without_event="drop",
            other_event="last",
            crossing_observed="drop",
            intention_past_critical="drop",
            intention_third="above",
            intention_tte="end",
            risk_width="own",
            risk_off_left="first_region",
        )


@dataclass(frozen=True)
class Wacv2021(EventProtocol):
    """Crossing action: 16 frames observed, 1 to 2 s before the event, the same number of samples per track.

    `crosser_without_event="drop"` gives the loader of later date, which leaves these pedestrians out; the
    counts in circulation come from the one that invents their event.

    Args:
        min_track_frames: tracks with fewer boxes up to their event are left out. It must reach
            observation plus highest time to event: below that the published sampler runs into negative
            starts and cuts wrong or empty windows.

    Source: Kotseruba et al., WACV 2021, section 4.
    """

    observation_frames: int = 16
    tte_frames: tuple[int, int] = (30, 60)
    overlap: float = 0.8
    exclude_short: bool = True
    min_track_frames: int = 76

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task != "action":
            raise UsageError(f"{type(self).__name__} asks for the action alone, not for {self.task}")
        needed = self.observation_frames + self.tte_frames[1]
        if self.exclude_short and self.min_track_frames < needed:
            raise UsageError(
                f"min_track_frames must be at least {needed} (observation + highest time to event), "
                f"not {self.min_track_frames}: shorter tracks have no window that far from the event"
            )

    @classmethod
    def reference(
        cls, task: Task = "action", dataset: Dataset = "jaad", pedestrians: Pedestrians = "all"
    ) -> Self:
        """The published extraction: an overlap of 0.8 on JAAD and 0.6 on PIE."""
        return cls(
            task=task, dataset=dataset, pedestrians=pedestrians, overlap=0.6 if dataset == "pie" else 0.8
        )

    @classmethod
    def default(
        cls, task: Task = "action", dataset: Dataset = "jaad", pedestrians: Pedestrians = "all"
    ) -> Self:
        """The honest variant: no invented event of a crosser, whole tracks, no answer in sight."""
        return replace(
            cls.reference(task, dataset, pedestrians),
            crosser_without_event="drop",
            other_event="last",
            crossing_observed="drop",
        )


@dataclass(frozen=True)
class Iv2022(Wacv2021):
    """The sampling of Wacv2021 with an overlap of 0.8 on every dataset.

    Source: Gesnouin et al., IV 2022, section IV.
    """

    @classmethod
    def reference(
        cls, task: Task = "action", dataset: Dataset = "jaad", pedestrians: Pedestrians = "all"
    ) -> Self:
        """The published extraction."""
        return cls(task=task, dataset=dataset, pedestrians=pedestrians)


# The protocols by the names that the command line uses: `<dataset>-<task>@<publication>`.


@dataclass(frozen=True)
class NamedProtocol:
    """A protocol by its name, with its dataset and task.

    Args:
        kind: the class of its config.
        arguments: what `reference` and `default` are called with.
    """

    kind: type[Iv2024] | type[Wacv2021]
    arguments: dict[str, Any]

    def reference(self) -> EventProtocol:
        """The config that reproduces the publication."""
        return self.kind.reference(**self.arguments)

    def default(self) -> EventProtocol:
        """The config that we recommend."""
        return self.kind.default(**self.arguments)


def _older(kind: type[Wacv2021], year: str) -> dict[str, NamedProtocol]:
    return {
        f"jaad-action@{year}": NamedProtocol(kind, {"dataset": "jaad"}),
        f"jaad-behaviour-action@{year}": NamedProtocol(kind, {"dataset": "jaad", "pedestrians": "behaviour"}),
        f"pie-action@{year}": NamedProtocol(kind, {"dataset": "pie"}),
    }


PROTOCOLS: dict[str, NamedProtocol] = {
    "jaad-action@iv2024": NamedProtocol(Iv2024, {"task": "action", "dataset": "jaad"}),
    "jaad-risk@iv2024": NamedProtocol(Iv2024, {"task": "risk", "dataset": "jaad"}),
    "pie-action@iv2024": NamedProtocol(Iv2024, {"task": "action", "dataset": "pie"}),
    "pie-intention@iv2024": NamedProtocol(Iv2024, {"task": "intention", "dataset": "pie"}),
    "pie-risk@iv2024": NamedProtocol(Iv2024, {"task": "risk", "dataset": "pie"}),
    **_older(Wacv2021, "wacv2021"),
    **_older(Iv2022, "iv2022"),
}


def get_protocol(name: str, config: Literal["reference", "default"] = "reference") -> EventProtocol:
    """The protocol of that name.

    Args:
        name: a key of `PROTOCOLS`.
        config: the published config or the one we recommend.

    Raises:
        UsageError: if there is no such protocol or config, with the nearest name.
    """
    if name not in PROTOCOLS:
        near = difflib.get_close_matches(name, PROTOCOLS, n=1)
        guess = f"; did you mean '{near[0]}'?" if near else "."
        raise UsageError(f"no protocol '{name}'{guess} There are {', '.join(sorted(PROTOCOLS))}")
    if config not in ("reference", "default"):
        raise UsageError(f"a protocol's config is 'reference' or 'default', not '{config}'")
    return PROTOCOLS[name].reference() if config == "reference" else PROTOCOLS[name].default()


# Which videos a protocol's splits hold, and what to do about a split that holds none.

_PIE_SETS = "PIE's splits follow from its folders: set01, 02, 04 are train, set05, 06 val, set03 test"


def _explain_splits(scenes: Scenes, protocol: EventProtocol, empty: str | None = None) -> str:
    """Where the splits of a dataset come from.

    Args:
        scenes, protocol: whose.
        empty: the split that holds no video (default: there is none at all).
    """
    subset = protocol.subset
    if (scenes.meta.dataset or protocol.dataset).lower() != protocol.dataset:
        named = ", ".join(f"'{subset}/{split}'" for split in protocol.splits)
        return f"the column splits of the table videos says which hold a video: {named}"
    if protocol.dataset == "pie":
        return _PIE_SETS
    if empty is not None:
        return f"complete its list, split_ids/{empty}.txt"
    files = ", ".join(f"{split}.txt" for split in protocol.splits)
    return f"the release's folder split_ids/ stands beside annotations/; split_ids/{subset}/ holds {files}"


def list_filled_splits(scenes: Scenes, protocol: EventProtocol) -> tuple[str, ...]:
    """The splits of the protocol that hold at least one video of the scenes, in the protocol's order."""
    held = set(_names(scenes))
    return tuple(split for split in protocol.splits if f"{protocol.subset}/{split}" in held)


def list_split_videos(scenes: Scenes, protocol: EventProtocol, split: str) -> list[str]:
    """The videos of one split, sorted.

    Raises:
        InputError: if there are none; says where the split's list should be.
    """
    name = f"{protocol.subset}/{split}"
    if name in (names := _names(scenes)):
        return scenes.split_videos(name)
    dataset = scenes.meta.dataset or protocol.dataset.upper()
    if not names:
        raise InputError(
            f"no video of {dataset} is in any split: the split lists were not found",
            hint=_explain_splits(scenes, protocol),
        )
    where = _explain_splits(scenes, protocol, name)
    near = [other for other in names if other.startswith(f"{protocol.subset}/")] or names
    raise InputError(
        f"no video is in split '{name}' of {dataset}; there are videos in {', '.join(near)}",
        hint=f"{where}, and the annotations of its videos; or ask for another split",
    )


def _names(scenes: Scenes) -> list[str]:
    """All splits that hold a video, sorted."""
    if "splits" not in scenes.videos.columns:
        return []
    return [str(name) for name in scenes.videos["splits"].explode().drop_nulls().unique().sort()]


# The pedestrians of a split in published order, with their boxes by position and their event.

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


def select_pedestrians(scenes: Scenes, protocol: EventProtocol, split: str, index: Positions) -> Tracks:
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
    videos = list_split_videos(scenes, protocol, split)
    # JAAD's names end in p for groups of people, and in b for those with behaviour tags; PIE's in neither.
    wanted = pl.col("video").cast(pl.String).is_in(videos) & ~pl.col("name").str.ends_with("p")
    if "track_label" in scenes.tubes.columns:
        wanted &= pl.col("track_label").cast(pl.String).is_in(_PEDESTRIANS).fill_null(True)
    if protocol.pedestrians == "behaviour":
        wanted &= pl.col("name").str.ends_with("b")
    # As text: published files of results have no names, and their rows are told by this order alone.
    held = scenes.tubes.filter(wanted).sort(pl.col("video").cast(pl.String), pl.col("name").cast(pl.String))
    chosen, unlabelled = _select_labelled(held, protocol)
    begin, length = index.extent(chosen["tube"].to_numpy())
    crossing = chosen["crossing"].cast(pl.String).eq("crossing").fill_null(False).to_numpy()
    nowhere = np.full(len(chosen), -1, dtype=np.int64)
    found = Tracks(chosen, index, begin, length, crossing, nowhere, unlabelled)
    return replace(found, annotated=_find_annotated_events(found))


def _select_labelled(held: pl.DataFrame, protocol: EventProtocol) -> tuple[pl.DataFrame, int]:
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


def infer_box_positions(tubes: pl.DataFrame) -> Positions:
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


def find_event_positions(tracks_: Tracks, protocol: EventProtocol) -> Ints:
    """(n,) position of each pedestrian's event, -1 where the protocol gives none.

    Args:
        tracks_: the pedestrians.
        protocol: its rules for pedestrians without an annotated event.
    """
    length = tracks_.length
    # The published `frames[-3]`, or `frames[-1]` of tracks that are too short for it.
    third_last = np.where(length > 3, length - 3, length - 1)
    invented = third_last if protocol.other_event == "third_last" else length - 1
    if protocol.crosser_without_event == "drop":
        lacking = np.full(len(length), -1, dtype=np.int64)
    else:
        lacking = third_last
    other = np.where(tracks_.crossing, lacking, invented)
    named = _mask_annotated_events(tracks_.frame)
    return np.where(named, tracks_.annotated, other)


def _find_annotated_events(tracks_: Tracks) -> Ints:
    """(n,) position of the annotated event; -1 without one, or where the track has no box at its frame."""
    if "event_frame" not in tracks_.frame.columns:
        return np.full(len(tracks_), -1, dtype=np.int64)
    position = tracks_.position(tracks_.column("event_frame"))
    return np.where(_mask_annotated_events(tracks_.frame), position, -1)


def _mask_annotated_events(tubes: pl.DataFrame) -> Bools:
    """(n,) whether the event is annotated."""
    if "event_source" not in tubes.columns:
        return np.zeros(len(tubes), dtype=np.bool_)
    return np.asarray(tubes["event_source"].cast(pl.String).eq("annotated").fill_null(False).to_numpy())


# Tracks cut into observations: which positions begin one, and how far it is from the event.


@dataclass(frozen=True)
class Cuts:
    """Observations in the order of extraction.

    Args:
        track: (n,) which pedestrian, an index into the tracks.
        start: (n,) position of the first observed box in its track.
        tte: (n,) frames to the event.
        event: (n,) position of the event.
        lost: why pedestrians or samples were left out, and how many.
    """

    track: Ints
    start: Ints
    tte: Ints
    event: Ints
    lost: dict[str, int]

    def only(self, kept: Bools, reason: str) -> Cuts:
        """The cuts that are kept; the others are counted under `reason`."""
        lost = {**self.lost, reason: int((~kept).sum())}
        return Cuts(self.track[kept], self.start[kept], self.tte[kept], self.event[kept], lost)


def cut_before_event(tracks: Tracks, event: Ints, protocol: EventProtocol) -> Cuts:
    """Observations that end between the lowest and the highest time to event before the event.

    A track of L boxes up to its event is sampled from L - (observation + highest time), or from its first
    box where it is shorter, to L - (observation + lowest time), every stride.

    Args:
        tracks: the pedestrians.
        event: (n,) position of each event, -1 for none.
        protocol: lengths and stride.
    """
    observed, (low, high) = protocol.observation_frames, protocol.tte_frames
    length = event + 1
    # With fewer boxes no observation ends at least the lowest time before the event.
    shortest = observed + (high if protocol.exclude_short else low)
    if isinstance(protocol, Wacv2021):
        shortest = max(shortest, protocol.min_track_frames)
    usable = (event >= 0) & (length >= shortest)
    # The published code begins at 0 where a track is too short for the highest time.
    first = np.maximum(length - observed - high, 0)
    last = length - observed - low
    count = np.where(usable, (last - first) // protocol.stride_frames + 1, 0)
    track, start = _runs(first, count, protocol.stride_frames)
    named = tracks.length > 0
    lost = {
        "pedestrians_without_boxes": int((~named).sum()),
        "pedestrians_without_event": int((named & (event < 0)).sum()),
        "pedestrians_too_short": int(((event >= 0) & (length < shortest)).sum()),
    }
    return Cuts(track, start, length[track] - (start + observed), event[track], lost)


def cut_before_critical_point(tracks: Tracks, event: Ints, protocol: Iv2024) -> Cuts:
    """Observations of the clip that annotators saw, from the start of the experiment to the critical point.

    Args:
        tracks: the pedestrians.
        event: (n,) position of each event, -1 for none.
        protocol: lengths, stride and what to do with observations that run past the critical point.
    """
    begin = tracks.position(tracks.column("exp_start_point"))
    end = tracks.position(tracks.column("critical_point"))
    asked = (begin >= 0) & (end >= 0) & tracks.frame["intention_prob"].is_not_null().to_numpy()
    usable = asked & (end - begin >= protocol.observation_frames)
    # As published, beginnings run up to the critical point itself, so that observations reach past it.
    count = np.where(usable, (end - begin) // protocol.stride_frames + 1, 0)
    track, start = _runs(begin, count, protocol.stride_frames)
    offset = protocol.observation_frames - 1 if protocol.intention_tte == "end" else 0
    lost = {
        "pedestrians_without_experiment": int((~asked).sum()),
        "pedestrians_too_short": int((asked & ~usable).sum()),
    }
    cuts = Cuts(track, start, event[track] - start - offset, event[track], lost)
    if protocol.intention_past_critical == "drop":
        last = cuts.start + protocol.observation_frames - 1
        cuts = cuts.only(last <= end[cuts.track], "samples_past_critical_point")
        last = cuts.start + protocol.observation_frames - 1
        cuts = cuts.only((cuts.event < 0) | (last < cuts.event), "samples_past_event")
    return cuts


def _runs(first: Ints, count: Ints, stride: int) -> tuple[Ints, Ints]:
    """Every run's index repeated, and its starts first, first + stride, ..."""
    run = np.repeat(np.arange(len(count)), count)
    step = np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count)
    return run, first[run] + step * stride


# The answers that belong to samples: whether the pedestrian crosses, means to, and where they end up.

# Coordinates are kept as 32-bit floats and were written with two decimals (JAAD: at most three);
# rounding gives back the written number, and with it the published side of a region's border.
_WRITTEN_DECIMALS = 3


def list_task_answers(protocol: EventProtocol) -> tuple[str, ...]:
    """The possible answers, in the order of their labels."""
    if protocol.task == "action":
        return ("not-crossing", "crossing")
    if protocol.task == "intention":
        return ("no-crossing", "unsure", "crossing")
    regions = protocol.risk_regions if isinstance(protocol, Iv2024) else 12
    return tuple(f"region_{region}" for region in range(regions))


def assign_sample_labels(scenes: Scenes, tracks: Tracks, cuts: Cuts, protocol: EventProtocol) -> Ints:
    """(n,) the answer to each sample, an index into `list_task_answers`.

    Args:
        scenes: boxes and videos.
        tracks: the pedestrians.
        cuts: (n) their samples.
        protocol: what is asked.

    Raises:
        InputError: if risk is asked for and the width of a video is unknown.
    """
    task: Task = protocol.task
    if task == "action" or not isinstance(protocol, Iv2024):
        return tracks.crossing[cuts.track].astype(np.int64)
    if task == "intention":
        # (n,) class of each pedestrian's intention: below one third, between, from two thirds
        asked = tracks.frame["intention_prob"].cast(pl.Float32).fill_null(0.0).to_numpy()
        # In the precision of the column: a written third must equal the border.
        third, two_thirds = np.float32(1 / 3), np.float32(2 / 3)
        above = asked > third if protocol.intention_third == "below" else asked >= third
        return (above.astype(np.int64) + (asked >= two_thirds))[cuts.track]
    # (n,) the region that holds the centre of the box at the end of the risk horizon
    ahead = cuts.start + protocol.observation_frames + protocol.risk_horizon_frames - 1
    place = tracks.begin[cuts.track] + np.minimum(ahead, tracks.length[cuts.track] - 1)
    boxes = scenes.boxes[tracks.index.row[place]]
    left, right = (boxes[c].cast(pl.Float64).to_numpy().round(_WRITTEN_DECIMALS) for c in ("x1_px", "x2_px"))
    centre = (left + right) / 2
    width = _widths(scenes, tracks, protocol)[cuts.track]
    region = np.floor(compute_region_position(centre, width, protocol.risk_regions))
    region = np.minimum(region, protocol.risk_regions - 1).astype(np.int64)
    # In the published code no region holds a centre left of the image, and what none holds is the last one.
    off_left = protocol.risk_regions - 1 if protocol.risk_off_left == "last_region" else 0
    return np.where(region < 0, off_left, region)


def is_crossing_observed(scenes: Scenes, tracks: Tracks, cuts: Cuts, frames: int) -> Bools:
    """(n,) whether a box inside the observation is tagged as crossing; False where there are no tags.

    Args:
        scenes: the boxes.
        tracks: the pedestrians.
        cuts: (n) their samples.
        frames: length of the observation.
    """
    if "cross" not in scenes.boxes.columns or scenes.boxes.is_empty():
        return np.zeros(len(cuts.start), dtype=np.bool_)
    tagged = scenes.boxes["cross"].cast(pl.String).eq("crossing").fill_null(False).to_numpy()
    # Sums up to each box: a tag lies in a range where they differ at its ends.
    before = np.concatenate(([0], np.cumsum(tagged[tracks.index.row])))
    begin, length = tracks.begin[cuts.track], tracks.length[cuts.track]
    first = begin + cuts.start
    last = begin + np.minimum(cuts.start + frames, length)
    return np.asarray(before[last] > before[first])


def _widths(scenes: Scenes, tracks: Tracks, protocol: Iv2024) -> Ints:
    """(n,) the image width that counts for each pedestrian."""
    sizes = scenes.videos.select(pl.col("video").cast(pl.String), "width_px")
    held = tracks.frame.select(pl.col("video").cast(pl.String))
    widths = held.join(sizes, on="video", how="left", maintain_order="left")["width_px"]
    if widths.null_count():
        unknown = held.filter(widths.is_null())["video"].unique().sort().head(5).to_list()
        raise InputError(f"the width of the image is unknown for {unknown}; risk regions are shares of it")
    values = widths.to_numpy()
    # The published code keeps one size: that of the video it read last.
    if protocol.risk_width == "last_video" and len(values):
        values = np.full(len(values), values[-1])
    return np.asarray(values, dtype=np.int64)


def sample(scenes: Scenes, protocol: EventProtocol) -> Scenes:
    """The same scenes with their `samples` cut by the protocol.

    Labels of a kind that is called like the task are left out: a kind has one vocabulary.

    Splits follow each other as the protocol lists them; inside a split, pedestrians come by video and
    name, each with its samples from early to late. `meta.vocabularies` gains the task's answers,
    `meta.notes` the protocol and, under `sampling`, per split what was used and what was left out.

    Args:
        scenes: videos with splits, tubes with names, and boxes; intention also works without boxes, on
            the assumption that tracks have no gaps.
        protocol: how to cut.

    Raises:
        UsageError: if the scenes are of another dataset.
        InputError: if what the task needs is absent from the tables, a split of the protocol holds no video,
            or nothing can be sampled. Where some splits will do, ask for these alone:
            `dataclasses.replace(protocol, splits=("test",))`.

    Source: the protocol's class.
    """
    _check(scenes, protocol)
    # The scenes without labels and derived tubes of the kind that the task's answers take
    task = protocol.task
    if scenes.meta.vocabularies.get(task, list_task_answers(protocol)) == list_task_answers(protocol):
        pass
    else:
        other = pl.col("kind").cast(pl.String).ne_missing(task)
        tubes = scenes.tubes.filter(other) if "kind" in scenes.tubes.columns else scenes.tubes
        kept = {kind: words for kind, words in scenes.meta.vocabularies.items() if kind != task}
        scenes = scenes.with_tables(
            labels=scenes.labels.filter(other),
            tubes=tubes,
            tube_labels=scenes.tube_labels.filter(other),
            frame_labels=scenes.frame_labels.filter(other),
            meta=replace(scenes.meta, vocabularies=kept),
        )
    index, assumed = _boxes(scenes, protocol)
    parts, notes = [], {}
    for split in protocol.splits:
        part = _split(scenes, protocol, split, index)
        parts.append(part.rows)
        notes[split] = part.notes
    rows = pl.concat(parts)
    if rows.is_empty():
        text = "; ".join(f"{split}: {describe_exclusions(lost)}" for split, lost in notes.items())
        raise InputError(f"no pedestrian can be sampled by {type(protocol).__name__}: {text}")
    rows = rows.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("sample"), pl.all())
    extra: dict[str, Any] = {"protocol": to_dict(protocol), "sampling": notes}
    if assumed:
        extra["assumption"] = "tracks have no gaps: there are no boxes to tell"
    if _drops_crossing(protocol) and "cross" not in scenes.boxes.columns:
        extra["unchecked"] = "boxes have no crossing tags: samples that show a crossing cannot be told"
    meta = replace(
        scenes.meta,
        vocabularies={**scenes.meta.vocabularies, protocol.task: list_task_answers(protocol)},
        notes={**scenes.meta.notes, **extra},
    )
    return scenes.with_tables(samples=rows, meta=meta)


def describe_exclusions(notes: Mapping[str, int]) -> str:
    """Counts of a split's pedestrians with and without samples, in words; `notes` as under `meta.notes["sampling"]`."""
    lost = [f"{count} {reason.replace('_', ' ')}" for reason, count in notes.items() if count]
    return ", ".join(lost) or "no pedestrians"


@dataclass(frozen=True)
class _Part:
    """One split's rows, and what was used and left out."""

    rows: pl.DataFrame
    notes: dict[str, Any]


def _check(scenes: Scenes, protocol: EventProtocol) -> None:
    named = scenes.meta.dataset
    # Synthetic scenes are not of any of the published datasets, and say whose rules they are fit for.
    fit = (named.lower(), *scenes.meta.notes.get("sampled_as", ())) if named else ()
    if named and protocol.dataset not in fit:
        others = [name for name, each in PROTOCOLS.items() if each.arguments["dataset"] in fit]
        remedy = (
            f"theirs are {', '.join(others)}"
            if others
            else f"a reader of other data that follow its rules says so, by meta.notes['sampled_as'] = ['{protocol.dataset}']"
        )
        raise UsageError(
            f"the protocol is for {protocol.dataset} alone, and these scenes are '{named}'; {remedy}"
        )
    needed = {"action": ["crossing"], "risk": ["crossing"]}.get(protocol.task, ["crossing", "intention_prob"])
    missing = [c for c in needed if c not in scenes.tubes.columns]
    if missing:
        raise InputError(f"{protocol.task} needs the tubes' {missing}; they have {scenes.tubes.columns}")


def _drops_crossing(protocol: EventProtocol) -> bool:
    """Whether samples that show a crossing are left out; intention does not ask about it."""
    return protocol.crossing_observed == "drop" and protocol.task != "intention"


def _boxes(scenes: Scenes, protocol: EventProtocol) -> tuple[Positions, bool]:
    """Positions of the boxes, and whether they are assumed."""
    if not scenes.boxes.is_empty():
        return build_position_index(scenes.boxes), False
    if protocol.task != "intention":
        raise InputError(
            f"{protocol.task} needs boxes, and these scenes have none",
            hint="attributes alone carry intention only; read the box annotations too",
        )
    return infer_box_positions(scenes.tubes), True


def _split(scenes: Scenes, protocol: EventProtocol, split: str, index: Positions) -> _Part:
    held = select_pedestrians(scenes, protocol, split, index)
    event = find_event_positions(held, protocol)
    if protocol.task == "intention" and isinstance(protocol, Iv2024):
        cuts = cut_before_critical_point(held, event, protocol)
    else:
        cuts = cut_before_event(held, event, protocol)
    if _drops_crossing(protocol):
        seen = is_crossing_observed(scenes, held, cuts, protocol.observation_frames)
        cuts = cuts.only(~seen, "samples_crossing_observed")
    rows = _rows(held, cuts, protocol, assign_sample_labels(scenes, held, cuts, protocol), split)
    used = len(np.unique(cuts.track))
    counts = {"pedestrians": len(held) + held.unlabelled, "sampled": used, "samples": len(rows)}
    return _Part(rows, {**counts, "pedestrians_without_label": held.unlabelled, **cuts.lost})


def _rows(
    held: Tracks, cuts: Cuts, protocol: EventProtocol, answers: np.ndarray[Any, Any], split: str
) -> pl.DataFrame:
    """The samples table of one split, without its key."""
    begin, length = held.begin[cuts.track], held.length[cuts.track]
    last = np.minimum(cuts.start + protocol.observation_frames, length) - 1
    known = cuts.event >= 0
    event = held.index.frame[begin + np.maximum(cuts.event, 0)] if len(begin) else begin
    owner = held.frame[cuts.track]
    source = owner["event_source"] if "event_source" in owner.columns else pl.Series(["none"] * len(owner))
    return pl.DataFrame(
        {
            "video": owner["video"],
            "tube": owner["tube"],
            "start_frame": held.index.frame[begin + cuts.start] if len(begin) else begin,
            "end_frame": held.index.frame[begin + last] + 1 if len(begin) else begin,
            "event_frame": pl.Series(event, dtype=pl.Int64).set(pl.Series(~known), None),
            "event_source": source.cast(pl.String).cast(pl.Enum(SOURCES)),
            "tte_frames": pl.Series(cuts.tte, dtype=pl.Int64).set(pl.Series(~known), None),
            "kind": pl.repeat(protocol.task, len(owner), dtype=pl.String, eager=True),
            "label": pl.Series(answers, dtype=pl.Int64),
            "split": pl.repeat(split, len(owner), dtype=pl.String, eager=True),
        }
    )


def split_samples(scenes: Scenes, split: str) -> Scenes:
    """The scenes with the samples of one split only.

    Raises:
        UsageError: if the samples were not cut for such a split.
        InputError: if none could be cut from it.
    """
    if "split" not in scenes.samples.columns:
        raise UsageError("these scenes have no samples; cut them by a protocol first (scenes.sampling)")
    held = scenes.samples.filter(pl.col("split").cast(pl.String) == split)
    if held.is_empty():
        lost = scenes.meta.notes.get("sampling", {}).get(split)
        if lost is not None:
            raise InputError(
                f"no pedestrian of split '{split}' can be sampled: {describe_exclusions(lost)}",
                hint="`roadaware audit` shows every split; the annotations of its videos may be incomplete",
            )
        known = scenes.samples["split"].cast(pl.String).unique().sort().to_list()
        raise UsageError(f"no sample is in split '{split}'; there are samples in {known}")
    return scenes.with_tables(samples=held)
