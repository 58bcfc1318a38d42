"""When an event happens: concordance, Brier score over time, calibration, and warning time at a rate of false alarms.

Some moments are censored: of who leaves the picture it is known that nothing happened until then, and no more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError

_BLOCK = 2048
"""Rows that are compared with all others at a time."""


@dataclass(frozen=True, eq=False)
class TimedMoments:
    """Moments with what was predicted and what came.

    Args:
        time_s: (n,) seconds to the event, or to the end of what is known.
        event: (n,) whether it is the event.
        survival: (n, m) predicted probability that nothing has happened by each horizon, falling from left to right.
        horizon_s: (m,) rising.
        unit: (n,) whose moment it is, such as a pedestrian; intervals are over units.

    Raises:
        InputError: if shapes differ, a number is not finite or no probability, or survival rises.
    """

    time_s: Floats
    event: Bools
    survival: Floats
    horizon_s: Floats
    unit: npt.NDArray[np.generic]

    def __post_init__(self) -> None:
        n, m = len(self.time_s), len(self.horizon_s)
        if self.survival.shape != (n, m) or len(self.event) != n or len(self.unit) != n:
            raise InputError(
                f"{n} times, {len(self.event)} events, {len(self.unit)} units and survival {self.survival.shape} at {m} "
                "horizons do not go together"
            )
        if not (np.isfinite(self.time_s).all() and (self.time_s >= 0).all()):
            raise InputError("times to the event are finite and 0 or more")
        if not ((self.survival >= -1e-9) & (self.survival <= 1 + 1e-9)).all():
            raise InputError("survival holds probabilities")
        if m and ((np.diff(self.horizon_s) <= 0).any() or (np.diff(self.survival, axis=1) > 1e-6).any()):
            raise InputError("horizons rise, and survival does not")

    @property
    def risk(self) -> Floats:
        """(n,) the larger, the earlier the event is expected: minus the expected time within the horizons."""
        widths = np.diff(self.horizon_s, prepend=0.0)
        before = np.column_stack([np.ones(len(self.survival)), self.survival[:, :-1]])
        # The area under the survival curve, by trapezia.
        return -np.asarray(((before + self.survival) / 2 * widths).sum(axis=1))


# Concordance.


def count_concordant(
    risk: Floats, time_s: Floats, event: Bools, unit: Ints, units: int
) -> tuple[Floats, Floats]:
    """(units, units) concordant and comparable pairs, by whose the earlier and whose the later moment is.

    A pair is comparable where the earlier time is an event; it is concordant where its risk is larger, half where equal.
    Pairs of one unit count too: whether risk rises as the event of somebody comes near.

    Args:
        risk: (n,).
        time_s: (n,) to the event or the end of what is known.
        event: (n,) which it is.
        unit: (n,) from 0.
        units: how many.
    """
    concordant, comparable = np.zeros((units, units)), np.zeros((units, units))
    order = np.argsort(unit, kind="stable")
    edges = np.searchsorted(unit[order], np.arange(units))
    risk, time_s, event, owner = risk[order], time_s[order], event[order], unit[order]
    filled = np.flatnonzero(np.bincount(owner, minlength=units) > 0)
    rows = np.flatnonzero(event)
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        # Who is censored at the very time of an event outlived it.
        later = (time_s[part, None] < time_s[None]) | ((time_s[part, None] == time_s[None]) & ~event[None])
        right = (risk[part, None] > risk[None]) + 0.5 * (risk[part, None] == risk[None])
        for sums, values in ((comparable, later.astype(np.float64)), (concordant, later * right)):
            by_unit = np.add.reduceat(values, edges[filled], axis=1)
            np.add.at(sums, (owner[part][:, None], filled[None]), by_unit)
    return concordant, comparable


# Brier score, with moments that are censored before a horizon weighed out.


def kaplan_meier(time_s: Floats, event: Bools, at_s: Floats, *, before: bool = False) -> Floats:
    """(m,) the share that nothing has happened to by some times, as far as censoring lets it be known.

    Args:
        time_s: (n,).
        event: (n,).
        at_s: (m,) times.
        before: just before these times, in place of at them.

    Source: Kaplan and Meier, Journal of the American Statistical Association 1958.

    >>> kaplan_meier(np.array([1.0, 2, 2, 3]), np.array([True, True, False, True]), np.array([0.5, 1, 2, 3])).tolist()
    [1.0, 0.75, 0.5, 0.0]
    """
    if not len(time_s):
        return np.ones(len(at_s))
    times, place = np.unique(time_s, return_inverse=True)
    happened = np.bincount(place, weights=event, minlength=len(times))
    left = len(time_s) - np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(times)))[:-1]])
    steps = np.concatenate([[1.0], np.cumprod(1 - happened / left)])
    found: Floats = steps[np.searchsorted(times, at_s, side="left" if before else "right")]
    return found


def brier_terms(moments: TimedMoments) -> Floats:
    """(n, m) what each moment adds to the Brier score at each horizon; the mean over moments is the score.

    Moments whose event came by the horizon weigh 1 / G(their time, just before it), those known to have none by then
    1 / G(horizon), those censored before it nothing; G is the Kaplan-Meier estimate of not being censored.

    Source: Graf et al., Statistics in Medicine 1999.
    """
    time_s, event = moments.time_s, moments.event
    own = kaplan_meier(time_s, ~event, time_s, before=True)
    there = kaplan_meier(time_s, ~event, moments.horizon_s)
    came = (time_s[:, None] <= moments.horizon_s) & event[:, None]
    waits = time_s[:, None] > moments.horizon_s
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(came, moments.survival**2 / own[:, None], 0.0)
        terms += np.where(waits, (1 - moments.survival) ** 2 / there, 0.0)
    # Where nobody is left uncensored nothing is known.
    return np.where((came & (own[:, None] <= 0)) | (waits & (there <= 0)), np.nan, terms)


def integrate_brier(terms: Floats, horizon_s: Floats) -> Floats:
    """(n,) the mean of Brier terms over time, from the first horizon to the last one, by trapezia."""
    if len(horizon_s) < 2:
        return np.asarray(terms.mean(axis=1))
    return np.asarray(np.trapezoid(terms, horizon_s, axis=1) / (horizon_s[-1] - horizon_s[0]))


# Calibration in time.


def calibration_in_time(moments: TimedMoments, bins: int = 10) -> Floats:
    """(m, bins, 3) at each horizon, of moments sorted by the predicted probability of the event by then, and cut into parts
    of equal size: mean prediction, what Kaplan and Meier find of them, and how many they are.
    """
    found = np.full((len(moments.horizon_s), bins, 3), np.nan)
    for place, horizon in enumerate(moments.horizon_s.tolist()):
        chance = 1 - moments.survival[:, place]
        for part, rows in enumerate(np.array_split(np.argsort(chance, kind="stable"), bins)):
            if len(rows):
                came = 1 - kaplan_meier(moments.time_s[rows], moments.event[rows], np.array([horizon]))[0]
                found[place, part] = chance[rows].mean(), came, len(rows)
    return found


def calibration_error(curve: Floats) -> Floats:
    """(m,) the mean gap between prediction and what came, weighed by moments, at each horizon of `calibration_in_time`."""
    weight = np.nan_to_num(curve[..., 2])
    gap = np.nan_to_num(np.abs(curve[..., 0] - curve[..., 1]))
    return np.asarray((gap * weight).sum(axis=1) / np.maximum(weight.sum(axis=1), 1))


# Warnings.


@dataclass(frozen=True, eq=False)
class WarningCurve:
    """What an alarm threshold buys.

    Args:
        threshold: (k,) falling.
        false_per_hour: (k,) false alarms an hour of film.
        warned: (k,) the share of events that are warned of.
        warning_s: (k,) the median time between the warning and its event, of all events; an event without a warning has 0.
        mean_s: (k,) the mean of the same times.
    """

    threshold: Floats
    false_per_hour: Floats
    warned: Floats
    warning_s: Floats
    mean_s: Floats


def measure_warnings(
    score: Floats,
    t_s: Floats,
    unit: Ints,
    event_s: Floats,
    hours: float,
    *,
    thresholds: Floats | None = None,
    lead_s: float = 6.0,
    hold_s: float = 0.5,
) -> WarningCurve:
    """Warning time against false alarms an hour, over thresholds of an alarm.

    An alarm begins where the score of somebody rises to the threshold, and goes on over gaps of up to `hold_s`. One that
    is on when the event comes is its warning, from its beginning, at most `lead_s` before. An alarm is false where no
    event follows within `lead_s` of its beginning.

    Args:
        score: (n,) of each moment.
        t_s: (n,) when.
        unit: (n,) who, from 0.
        event_s: (units,) when the event of somebody happens; NaN for nobody.
        hours: of film.
        thresholds: falling (default: 200 quantiles of the scores, denser at their top).
        lead_s: an alarm that is earlier warns so long before the event.
        hold_s: an alarm goes on so long.
    """
    if thresholds is None:
        thresholds = (
            np.unique(np.quantile(score, 1 - np.logspace(-5, 0, 200)))[::-1] if len(score) else np.zeros(0)
        )
    order = np.lexsort((t_s, unit))
    score, t_s, unit = score[order], t_s[order], unit[order]
    happens = np.isfinite(event_s)
    rows = []
    for threshold in thresholds.tolist():
        on = np.flatnonzero(score >= threshold)
        apart = (
            (np.diff(unit[on]) != 0) | (np.diff(t_s[on]) > hold_s + 1e-9)
            if len(on)
            else np.zeros(0, dtype=np.bool_)
        )
        begins, ends = on[np.r_[True, apart]] if len(on) else on, on[np.r_[apart, True]] if len(on) else on
        event = event_s[unit[begins]]
        ahead = event - t_s[begins]
        # NaN, of who has no event, fails both comparisons.
        warns = event - t_s[ends] <= hold_s + 1e-9
        warning = np.zeros(len(event_s))
        warning[unit[begins[warns]]] = np.clip(ahead[warns], 0, lead_s)
        of_events = warning[happens]
        rows.append(
            (
                threshold, float((~(ahead <= lead_s + 1e-9)).sum()) / hours,
                float((of_events > 0).mean()) if happens.any() else np.nan,
                float(np.median(of_events)) if happens.any() else np.nan,
                float(of_events.mean()) if happens.any() else np.nan,
            )
        )  # fmt: skip
    table = np.array(rows).reshape(-1, 5)
    return WarningCurve(*table.T)


def read_warning_time(curve: WarningCurve, false_per_hour: float) -> tuple[float, float, float, float]:
    """Threshold, median warning time, share of events warned of, and mean warning time at the lowest threshold with at most
    so many false alarms.

    NaN, 0, 0 and 0 where every threshold has more.
    """
    good = np.flatnonzero(curve.false_per_hour <= false_per_hour + 1e-9)
    if not len(good):
        return float("nan"), 0.0, 0.0, 0.0
    # False alarms need not rise as thresholds fall: alarms join.
    best = good[np.lexsort((curve.threshold[good], -curve.warning_s[good]))[0]]
    # In the order of the docstring.
    read = (curve.threshold, curve.warning_s, curve.warned, curve.mean_s)
    threshold, median, warned, mean = (float(each[best]) for each in read)
    return threshold, median, warned, mean
