"""`--fail-under METRIC=VALUE` for road events: bars in per cent, as results are printed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence

from roadaware.errors import UsageError


def parsed(texts: Sequence[str]) -> dict[str, float]:
    """Metric to the lowest value that passes, in per cent.

    Raises:
        UsageError: if something is not METRIC=VALUE, or a value is no number from 1 to 100, or 0.
    """
    bars: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--fail-under needs METRIC=VALUE, such as frame_map@0.5:agent=40; got {text!r}")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not 0 <= value <= 100:
            raise UsageError(f"--fail-under {text}: {number!r} is not a number from 0 to 100")
        if 0 < value < 1:
            raise UsageError(f"--fail-under {text}: bars are in per cent; write {100 * value:g}")
        bars[name] = value
    return bars


def check(bars: Mapping[str, float], metrics: Mapping[str, float | None]) -> None:
    """Know every metric that has a bar.

    Raises:
        UsageError: if there is no such metric; names the nearest.
    """
    for name in bars:
        if name not in metrics:
            near = difflib.get_close_matches(name, metrics, n=3, cutoff=0.4)
            guess = (
                f"Did you mean {' or '.join(near)}?" if near else f"There are {', '.join(list(metrics)[:8])}."
            )
            raise UsageError(f"--fail-under: no metric {name!r}. {guess}")


def failure(metrics: Mapping[str, float | None], bars: Mapping[str, float]) -> str | None:
    """What missed its bar, in words; None if nothing did. An undefined metric misses its bar.

    Args:
        metrics: name to value in [0, 1].
        bars: name to the lowest value that passes, in per cent.
    """
    missed = []
    for name, bar in bars.items():
        value = metrics[name]
        if value is None:
            missed.append(f"{name} is undefined, {bar:g} % was asked for")
        elif 100 * value < bar:
            missed.append(f"{name} is {100 * value:.6g} %, {bar:g} % was asked for")
    return f"below --fail-under: {'; '.join(missed)}" if missed else None
