"""Proposals of many variants judged on the same pictures, with differences on the same draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from roadaware.arrays import Floats
from roadaware.metrics.corner_cases.config import CornerConfig, Group
from roadaware.metrics.corner_cases.inputs import Claims, Objects, claims_of, objects_of
from roadaware.metrics.corner_cases.matching import Met, matched
from roadaware.metrics.corner_cases.state import JudgedCorners, state_of
from roadaware.metrics.corner_cases.trivial import RANDOM, WHOLE, random_boxes, whole_pictures
from roadaware.metrics.judged import drawn, values_of
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.tables import Scenes
from roadaware.statistics.intervals import Scale, Units

METRICS = ("ap", "ar", "ar50", "ar30")
"""Of corner cases, over all sizes."""
JUDGED_BY = CornerConfig(groups=("corner",), precision="always")
"""AP counts every proposal that meets no corner case as false, as the paper's does."""


@dataclass(frozen=True)
class Value:
    """A number with its 95 % interval over videos.

    Args:
        value: None where undefined.
        low: None where there are no draws.
        high: the same.
        caution: why the interval is to be taken with caution; None where it is not.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    caution: str | None = None


@dataclass(frozen=True, eq=False)
class Score:
    """How well one variant's proposals meet the corner cases.

    Args:
        values: metric of `METRICS` to its value.
        draws: metric to its (draws,) values; empty without draws.
        units: the videos of the draws.
    """

    values: dict[str, Value]
    draws: dict[str, Floats]
    units: Units

    def over(self, other: Score) -> dict[str, Value]:
        """By how much it is above another on the same pictures and draws.

        Args:
            other: judged with the same draws and seed.
        """
        found = {}
        for name, mine in self.values.items():
            theirs = other.values[name].value
            gain = None if mine.value is None or theirs is None else mine.value - theirs
            both = name in self.draws and name in other.draws
            apart = self.draws[name] - other.draws[name] if both else None
            found[name] = _value(gain, apart, self.units, "difference")
        return found


def states_of(proposals: Sequence[Predictions], scenes: Scenes) -> list[JudgedCorners]:
    """What each set of proposals meets of the corner cases.

    Args:
        proposals: of several variants.
        scenes: with `boxes.corner_case`.

    Raises:
        InputError: if there is no true box in an annotated picture.
    """
    truth = objects_of(scenes, area=JUDGED_BY.area)
    return [judged_claims(claims_of(each, truth)[0], truth) for each in proposals]


def judged_claims(claims: Claims, truth: Objects) -> JudgedCorners:
    """What claims meet of the corner cases.

    Args:
        claims: about the pictures of the truth.
        truth: all objects.
    """
    met: dict[Group, Met] = {"corner": matched("corner", truth, claims, JUDGED_BY)}
    return state_of(truth, claims, met, {}, JUDGED_BY)


def trivial_states(scenes: Scenes, seed: int = 0) -> dict[str, JudgedCorners]:
    """The same of answers without a detector: the whole picture, and a hundred random boxes.

    Args:
        scenes: with sizes of pictures.
        seed: of the boxes.
    """
    truth = objects_of(scenes, area=JUDGED_BY.area)
    most = JUDGED_BY.max_detections[-1]
    answers = {WHOLE: whole_pictures(truth), RANDOM: random_boxes(truth, most, seed)}
    return {name: judged_claims(claims, truth) for name, claims in answers.items()}


def score_of(state: JudgedCorners, draws: int = 0, seed: int = 0) -> Score:
    """The metrics of a state, with intervals over videos.

    Args:
        state: what was met.
        draws: most weightings of videos; 0 for no intervals.
        seed: of the weightings; equal numbers of videos and seeds give equal ones.
    """
    plain = values_of(state)
    found = drawn(state, draws, seed) if draws and len(state.videos) > 1 else {}
    kept = {name: found[f"corner_{name}", None] for name in METRICS if (f"corner_{name}", None) in found}
    units = Units(len(state.videos), draws, seed)
    values = {name: _value(plain.get(f"corner_{name}"), kept.get(name), units) for name in METRICS}
    return Score(values, kept, units)


def renamed(state: JudgedCorners, prefix: str) -> JudgedCorners:
    """The same with other names of videos, so that states of sets that use the same names merge.

    Args:
        state: what was met.
        prefix: before each name.
    """
    names = pl.lit(prefix) + pl.col("video").cast(pl.String)
    return replace(state, items=state.items.with_columns(video=names))


def _value(value: float | None, draws: Floats | None, units: Units, scale: Scale = "share") -> Value:
    if value is None or draws is None:
        return Value(value)
    found = units.interval(value, draws, scale)
    return Value(value, found.low, found.high, found.caution)
