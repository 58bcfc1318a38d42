"""Which of two models is better on the same samples, metric by metric, and whether it may be chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.verdicts import Paired, Verdict, check_draws, verdict_of
from roadaware.config import to_dict
from roadaware.errors import InputError
from roadaware.metrics.pedestrian_core import UNITS, PedestrianCore
from roadaware.metrics.pedestrians import PedestrianConfig, SampleScores, core_of, lower_is_better
from roadaware.statistics.intervals import Interval

_COLUMNS: dict[str, Any] = {
    "metric": pl.String,
    "lower_is_better": pl.Boolean,
    "a": pl.Float64,
    "b": pl.Float64,
    "difference": pl.Float64,
    "low_pedestrian": pl.Float64,
    "high_pedestrian": pl.Float64,
    "low_video": pl.Float64,
    "high_video": pl.Float64,
    "verdict_pedestrian": pl.String,
    "verdict_video": pl.String,
    "verdict": pl.String,
    "caution_pedestrian": pl.String,
    "caution_video": pl.String,
}


@dataclass(frozen=True, eq=False)
class Comparison(Paired):
    """The paired difference of two models in every metric.

    Args:
        table: one row per metric: `metric`, `lower_is_better`, the values `a` and `b`, `difference` (a - b),
            the ends of its 95 % intervals over pedestrians and over videos, and in words what each says of
            A (`verdict_pedestrian`, `verdict_video`) and what both say (`verdict`): `better`, `worse`,
            `not different` (0 is inside), `undefined` (a value is missing), `no interval`; and why an
            interval is to be taken with caution.
        names, config, draws, seed: see `Paired`.
    """

    def lines(self) -> list[str]:
        """One sentence per metric."""
        return [_sentence(row, self.names) for row in self.table.iter_rows(named=True)]


def compare(
    a: SampleScores,
    b: SampleScores,
    config: PedestrianConfig,
    *,
    draws: int = 1000,
    seed: int = 0,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """The difference A - B in every metric, with intervals from resamples that both models share.

    Each weighting of pedestrians, or of videos, is applied to both models, so what is hard for both cancels.
    A is called better or worse only where the intervals over pedestrians and over videos (where videos
    are known) both exclude 0 on the same side. Intervals are not widened for the number of metrics that
    are looked at.

    Args:
        a: scores of the first model.
        b: scores of the second model for the same samples.
        config: how both are judged.
        draws: most weightings of units, at least 1.
        seed: of the weightings.
        names: what A and B are called.

    Raises:
        InputError: if the two are not about the same samples, or do not fit the task.
        UsageError: if `draws` is below 1.

    >>> truth, people = np.arange(40) % 2, [str(k) for k in range(40)]
    >>> right = SampleScores(0.1 + 0.8 * truth, truth, people)
    >>> wrong = SampleScores(0.9 - 0.8 * truth, truth, people)
    >>> found = compare(right, wrong, PedestrianConfig.default("action"), draws=200)
    >>> found.lines()[0].split("difference ")[1]
    '+1.000 [+1.000, +1.000] by pedestrian (at its end)'
    """
    check_draws(draws)
    _check_same_samples(a, b)
    one, two = core_of(a, config), core_of(b, config)
    value_a, value_b = one.values(one.once()), two.values(two.once())
    intervals = {unit: _intervals(one, two, unit, draws, seed) for unit in UNITS}
    rows = [
        _row(
            m,
            float(value_a[m][0]),
            float(value_b[m][0]),
            {u: i[m] if i else None for u, i in intervals.items()},
        )
        for m in one.names
    ]
    return Comparison(pl.DataFrame(rows, schema=_COLUMNS), names, to_dict(config), draws, seed)


def _intervals(
    one: PedestrianCore, two: PedestrianCore, unit: str, draws: int, seed: int
) -> dict[str, Interval] | None:
    """Of every difference over units; None where there are none."""
    # Both are of the same pedestrians, so equal seeds give both the same weightings.
    units, a, b = one.units(unit, draws, seed), one.drawn(unit, draws, seed), two.drawn(unit, draws, seed)
    if units is None or a is None or b is None:
        return None
    points = one.values(one.once()), two.values(two.once())
    return {
        m: units.interval(float(points[0][m][0] - points[1][m][0]), a[m] - b[m], "difference")
        for m in one.names
    }


def _check_same_samples(a: SampleScores, b: SampleScores) -> None:
    """Pairs need the same samples: equal order, truth, pedestrian and video."""
    if len(a) != len(b):
        raise InputError(
            f"A has {len(a)} samples and B has {len(b)}; a paired comparison needs the same ones"
        )
    rows_a, rows_b = np.argsort(a.places), np.argsort(b.places)
    for name in ("order", "truth", "pedestrian", "video", "tte_frames"):
        of_a, of_b = getattr(a, name), getattr(b, name)
        if of_a is None and of_b is None:
            continue
        if of_a is None or of_b is None:
            raise InputError(f"only one of A and B knows {name}; a paired comparison needs the same samples")
        differ = np.flatnonzero(of_a[rows_a] != of_b[rows_b])
        if len(differ):
            k = differ[0]
            raise InputError(
                f"A and B differ in {name} in {len(differ)} of {len(a)} samples, "
                f"first at place {k}: {of_a[rows_a][k]} and {of_b[rows_b][k]}",
                hint="both must be predictions for the same samples, in the same order of extraction",
            )


def _row(metric: str, a: float, b: float, intervals: dict[str, Interval | None]) -> dict[str, Any]:
    lower = lower_is_better(metric)
    row: dict[str, Any] = {"metric": metric, "lower_is_better": lower, "a": _defined(a), "b": _defined(b)}
    row["difference"] = _defined(a - b)
    verdicts: list[Verdict] = []
    for unit, interval in intervals.items():
        given = interval if row["difference"] is not None else None
        row[f"low_{unit}"] = given.low if given else None
        row[f"high_{unit}"] = given.high if given else None
        row[f"caution_{unit}"] = given.caution if given else None
        row[f"verdict_{unit}"] = None
        if interval is not None:
            verdicts.append(verdict_of(given, lower_is_better=lower) if given is not None else "undefined")
            row[f"verdict_{unit}"] = verdicts[-1]
    row["verdict"] = _joint(verdicts)
    return row


def _joint(verdicts: list[Verdict]) -> Verdict:
    """`better` or `worse` when all say so; otherwise what holds it back."""
    if not verdicts:
        return "no interval"
    for weaker in ("undefined", "no interval", "not different"):
        if weaker in verdicts:
            return weaker
    return verdicts[0] if len(set(verdicts)) == 1 else "not different"


def _sentence(row: dict[str, Any], names: tuple[str, str]) -> str:
    first, second = names
    words = {
        "better": f"{first} is better than {second}",
        "worse": f"{first} is worse than {second}",
        "not different": f"{first} and {second} are not different",
        "undefined": "undefined",
        "no interval": "no interval can be given",
    }
    text = f"{row['metric']}: {words[row['verdict']]}"
    if row["difference"] is None:
        return text
    ends = [
        f"[{row[f'low_{unit}']:+.3f}, {row[f'high_{unit}']:+.3f}] by {unit}"
        + (f" ({row[f'caution_{unit}']})" if row[f"caution_{unit}"] else "")
        for unit in UNITS
        if row[f"low_{unit}"] is not None
    ]
    values = f"{row['a']:.3f} against {row['b']:.3f}"
    return ", ".join([text, values, " ".join([f"difference {row['difference']:+.3f}", *ends])])


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else value
