"""Outlook: the crossing forecast for a pedestrian at a moment, and when a change is reported."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import UsageError

SHORT, SMALL, SHAKING, TURNING = "short", "small", "shaking", "turning"
UNKNOWN = MappingProxyType(
    {
        SHORT: "not seen for long enough yet",
        SMALL: "smaller than those that the predictor learnt from",
        SHAKING: "the camera shakes more than those that the predictor learnt from, or its motion is unknown",
        TURNING: "the camera turns, and has turned too far for places in the image to mean anything",
    }
)
"""Why nothing can be said of a pedestrian, each with its meaning."""
PROBABLE, IMPROBABLE, REGION = "crossing_probable", "crossing_improbable", "risk_region"
"""Events: somebody will probably cross, or no longer so; the region where somebody will be changed."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Forecasts for n pedestrians.

    Args:
        crossing: (n,) probabilities; None where nobody is asked.
        low, high: (n,) the 5th and 95th percentile of passes, widened to hold the probability; None where
            there is only one pass.
        regions: (n, r) probabilities; None where nobody is asked.
        within_2s: (n,) probability of beginning to cross within two seconds; None where nobody is asked.
        seconds: (n,) median time until then, NaN beyond the last edge; None where nobody is asked.
    """

    crossing: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    regions: Floats | None = None
    within_2s: Floats | None = None
    seconds: Floats | None = None


@dataclass(frozen=True)
class Outlook:
    """The forecast for one pedestrian.

    Args:
        crossing: probability of crossing; None where nobody was asked.
        low, high: the 5th and 95th percentile of what passes or members say; None where there is only one.
        smoothed: the probability smoothed over time, which decides what is reported.
        probable: whether crossing is reported.
        regions: probability of each region of the image; empty where nobody was asked.
        region: the one that is reported; None where nobody was asked.
        words: the names of the regions.
        within_2s: probability of beginning to cross within two seconds; None where nobody was asked.
        seconds: median time until the pedestrian begins to cross; None where nobody was asked, and beyond six seconds.
        unknown: one of `UNKNOWN`, where nothing can be said; None where something is.
    """

    crossing: float | None = None
    low: float | None = None
    high: float | None = None
    smoothed: float | None = None
    probable: bool = False
    regions: tuple[float, ...] = ()
    region: int | None = None
    words: tuple[str, ...] = ()
    within_2s: float | None = None
    seconds: float | None = None
    unknown: str | None = None

    def fields(self) -> dict[str, Any]:
        """The forecast as fields of an event."""
        said: dict[str, Any] = {}
        if self.unknown is not None:
            return {"crossing": {"probable": False, "probability": None, "unknown": self.unknown}}
        if self.crossing is not None:
            numbers = {"probability": self.crossing, "low": self.low, "high": self.high}
            numbers["smoothed"] = self.smoothed
            rounded = {name: value if value is None else round(value, 4) for name, value in numbers.items()}
            said["crossing"] = {"probable": self.probable, **rounded}
        if self.within_2s is not None:
            seconds = None if self.seconds is None else round(self.seconds, 2)
            said["when"] = {"seconds": seconds, "within_2s": round(self.within_2s, 4)}
        if self.region is not None:
            likely = round(self.regions[self.region], 4)
            said["risk"] = {"region": self.words[self.region], "probability": likely}
        return said


@dataclass(frozen=True)
class OutlookRule:
    """Thresholds of the crossing events, and which tubes count as pedestrians.

    Args:
        agents: labels of agents that are pedestrians; a tube is asked about in frames in which one of them is
            reported for it, which has a hysteresis of its own (see `LabelRule`).
        probability: that a tube needs of them: their share of its smoothed scores of all agents. Not predicted
            to be a pedestrian by half is not asked about.
        on: crossing is reported from this smoothed probability on.
        off: and no longer below this one.
        margin: the region that is reported gives way to a likelier one only if that is likelier by this much,
            both smoothed.
        smooth_s: seconds in which an old probability loses all but a third of its weight; 0 for no smoothing.
        bridge_s: frames missed for no longer than this are bridged, see `Pace`.
        steady_s: detected boxes are read off a line through those of about this time, see `Pace`; 0 takes
            them as they come, as windows of annotated boxes do. Chosen on JAAD's validation split, on boxes
            with and without noise.

    Raises:
        UsageError: if a number has no meaning.
    """

    agents: tuple[str, ...] = ("Ped",)
    probability: float = 0.6
    on: float = 0.5
    off: float = 0.35
    margin: float = 0.1
    smooth_s: float = 0.4
    bridge_s: float = 0.5
    steady_s: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if not 0 <= self.probability <= 1:
            raise UsageError(f"probability is a share from 0 to 1, not {self.probability!r}")
        if not 0 <= self.off <= self.on <= 1 or not 0 <= self.margin <= 1:
            raise UsageError("crossing is told by 0 <= off <= on <= 1, regions by a margin from 0 to 1")
        for name in ("bridge_s", "steady_s", "smooth_s"):
            if not 0 <= getattr(self, name) <= 60:
                raise UsageError(f"{name} is a number of seconds up to 60, not {getattr(self, name)!r}")

    def smooth(self, now: Floats, before: Floats | None, past_s: float) -> Floats:
        """Probabilities smoothed over time.

        Args:
            now: (k,) those of a moment.
            before: (k,) smoothed, of the moment before; None at the first.
            past_s: seconds between the two.
        """
        if before is None or not self.smooth_s:
            return now
        return np.asarray(before + (1.0 - math.exp(-past_s / self.smooth_s)) * (now - before))

    def probable(self, crossing: float, before: bool) -> bool:
        """Whether crossing is reported.

        >>> rule = OutlookRule(on=0.5, off=0.35)
        >>> rule.probable(0.4, before=False), rule.probable(0.4, before=True)
        (False, True)
        """
        return crossing >= (self.off if before else self.on)

    def region(self, regions: Floats, before: int | None) -> int:
        """The region that is reported.

        Args:
            regions: (r,) smoothed probabilities.
            before: the one that was.
        """
        best = int(regions.argmax())
        return best if before is None or regions[best] >= regions[before] + self.margin else before


def list_changes(before: Outlook | None, now: Outlook | None) -> list[str]:
    """The events that one outlook after another is, in words.

    Args:
        before, now: of the same pedestrian; None where nothing could be said.
    """
    was, is_now = bool(before and before.probable), bool(now and now.probable)
    said = [PROBABLE if is_now else IMPROBABLE] if was != is_now else []
    region = now.region if now else None
    if region is not None and region != (before.region if before else None):
        said.append(REGION)
    return said
