"""`--fail-under METRIC=VALUE` for pedestrians, whose metrics are known before anything is judged."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence

from roadaware.errors import UsageError


def parsed(texts: Sequence[str]) -> dict[str, float]:
    """Metric to the lowest value that passes.

    Raises:
        UsageError: if a metric is unknown or better when lower, or a value is no finite number.
    """
    from roadaware.metrics.pedestrians import METRIC_NAMES, lower_is_better

    bars: dict[str, float] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not equals:
            raise UsageError(f"--fail-under needs METRIC=VALUE, such as auc=0.85; got {text!r}")
        if name not in METRIC_NAMES:
            near = difflib.get_close_matches(name, METRIC_NAMES, n=1)
            guess = f"Did you mean {near[0]}?" if near else f"There are {', '.join(METRIC_NAMES)}."
            raise UsageError(f"--fail-under: no metric {name!r}. {guess}")
        if lower_is_better(name):
            raise UsageError(f"--fail-under: lower is better for {name}, so it cannot fall under a bar")
        bars[name] = _finite(number, text)
    return bars


def _finite(number: str, text: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"--fail-under {text}: {number!r} is not a finite number")
    return value
