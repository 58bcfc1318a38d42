"""The published ways to cut pedestrian tracks into samples; each of their quirks is a field."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from roadaware.errors import UsageError

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
