"""`--fail-under METRIC=VALUE` for the tasks on scenes: bars as fractions, as results are printed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from roadaware.cli import event_bars
from roadaware.errors import UsageError


def parsed(texts: Sequence[str]) -> dict[str, float]:
    """Metric to the lowest value that passes, in [0, 1].

    Raises:
        UsageError: if something is not METRIC=VALUE, or a value is no number from 0 to 1.
    """
    bars: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--fail-under needs METRIC=VALUE, such as map@0.5=0.25; got {text!r}")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0 or value > 100:
            raise UsageError(f"--fail-under {text}: {number!r} is not a number from 0 to 1")
        if value > 1:
            raise UsageError(f"--fail-under {text}: bars are fractions; write {value / 100:g}")
        bars[name] = value
    return bars


def check(bars: Mapping[str, float], metrics: Mapping[str, float | None]) -> None:
    """Know every metric that has a bar.

    Raises:
        UsageError: if there is no such metric; names the nearest.
    """
    event_bars.check(bars, metrics)


def failure(metrics: Mapping[str, float | None], bars: Mapping[str, float]) -> str | None:
    """What missed its bar, in words; None if nothing did. An undefined metric misses its bar.

    Args:
        metrics: name to value in [0, 1].
        bars: name to the lowest value that passes.
    """
    missed = []
    for name, bar in bars.items():
        value = metrics[name]
        if value is None:
            missed.append(f"{name} is undefined, {bar:g} was asked for")
        elif value < bar:
            missed.append(f"{name} is {value:.6g}, {bar:g} was asked for")
    return f"below --fail-under: {'; '.join(missed)}" if missed else None
