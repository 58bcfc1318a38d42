"""`--fail-under METRIC=VALUE`: bars on the scale on which results are printed."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roadaware.errors import UsageError


@dataclass(frozen=True)
class Scale:
    """How a command prints its metrics, and so how their bars are written.

    Args:
        top: what a metric of 1 is printed as: 1, or 100 for per cent.
        unit: printed behind a value.
        example: a bar as it is written.
    """

    top: float
    unit: str
    example: str

    def slip(self, value: float) -> str | None:
        """What is said of a value that was meant on the other scale; None if it need not be."""
        if self.top > 1:
            return f"bars are in per cent; write {100 * value:g}" if 0 < value < 1 else None
        return f"bars are fractions; write {value / 100:g}" if value > 1 else None


PER_CENT = Scale(100.0, " %", "frame_map@0.5:agent=40")
FRACTIONS = Scale(1.0, "", "map@0.5=0.25")


def parsed(texts: Sequence[str], scale: Scale) -> dict[str, float]:
    """Metric to the lowest value that passes, on the scale.

    Raises:
        UsageError: if something is not METRIC=VALUE, or a value is not on the scale.
    """
    bars: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--fail-under needs METRIC=VALUE, such as {scale.example}; got {text!r}")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or not 0 <= value <= 100:
            raise UsageError(f"--fail-under {text}: {number!r} is not a number from 0 to {scale.top:g}")
        if slip := scale.slip(value):
            raise UsageError(f"--fail-under {text}: {slip}")
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


def failure(
    metrics: Mapping[str, float | None], bars: Mapping[str, float], scale: Scale = FRACTIONS
) -> str | None:
    """What missed its bar, in words; None if nothing did. An undefined metric misses its bar.

    Args:
        metrics: name to value in [0, 1].
        bars: name to the lowest value that passes, on the scale.
        scale: how values and bars are written.
    """
    missed = []
    for name, bar in bars.items():
        value = metrics.get(name)
        if value is None:
            missed.append(f"{name} is undefined, {bar:g}{scale.unit} was asked for")
        elif scale.top * value < bar:
            missed.append(f"{name} is {scale.top * value:.6g}{scale.unit}, {bar:g}{scale.unit} was asked for")
    return f"below --fail-under: {'; '.join(missed)}" if missed else None
