"""One small case per field of SoundConfig in which it alone changes the number, and one set for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sound_sets import Heard, Map, tables

from roadaware.errors import InputError
from roadaware.metrics.sound import SoundConfig, evaluate

ALL, LEFT, QUARTER = (0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 0.5, 1.0), (0.0, 0.0, 0.25, 1.0)


def columns(*values: float) -> Map:
    """A square map whose columns hold one value each."""
    return np.tile(np.array(values), (len(values), 1))


@dataclass(frozen=True)
class Case:
    """Sounds, the metric that is looked at, and what else is set."""

    heard: list[Heard]
    metric: str = "ciou"
    base: dict[str, Any] = field(default_factory=dict)


FOUR = {"size": 4}
VOTES = Heard([LEFT, LEFT, ALL], columns(1, 0), ["ann", "bob", "eve"])
WELL = Heard([LEFT], columns(1, 1, 0, 0))
CASES: dict[str, Case] = {
    "size": Case([Heard([LEFT], columns(1, 0))]),
    "consensus": Case([VOTES]),
    "unnamed_boxes": Case([Heard([LEFT, ALL], columns(1, 0))]),
    "consensus_count": Case([VOTES], base={"consensus": "capped"}),
    "threshold": Case([Heard([QUARTER], columns(1, 0.6, 0.55, 0))], base=FOUR),
    "comparison": Case([Heard([QUARTER], columns(1, 0.5, 0, 0))], base=FOUR),
    "constant_map": Case([Heard([LEFT], columns(1, 1, 1, 1))], base=FOUR),
    "negative_corners": Case([Heard([(-0.25, 0.0, 1.0, 1.0)], columns(0, 0, 0, 1))], base=FOUR),
    "empty_truth": Case([WELL, Heard([(0.5, 0.0, 0.5, 1.0)], columns(1, 1, 0, 0))], base=FOUR),
    "success_steps": Case([Heard([ALL], columns(*[1.0] * 3, *[0.0] * 17))], "success_auc", {"size": 20}),
    "missing_prediction": Case([WELL, Heard([LEFT], None)], base=FOUR),
}


def worked(name: str, value: Any) -> str:
    """The number of a field's case under one of its values, or `stops` where that is an error."""
    case = CASES[name]
    config = SoundConfig(**{**case.base, name: value})
    try:
        found = evaluate(*tables(case.heard), config).value(case.metric)
    except InputError:
        return "stops"
    return f"{found:.3f}"


SET = [
    VOTES,
    Heard([QUARTER, (0.125, 0.0, 0.5, 1.0)], columns(1, 0), ["ann", "ann"]),
    Heard([LEFT, (0.25, 0.0, 0.75, 1.0)], columns(1, 1, 0, 0), ["ann", "bob"]),
    Heard([(-0.25, 0.0, 0.25, 1.0)], np.repeat(columns(1, 0.5, 0, 0), 56, axis=1), ["ann"]),
    Heard([ALL], columns(0.3, 0.3), ["ann"]),
    Heard([(0.5, 0.5, 0.5, 1.0)], columns(1, 0), ["ann"]),
]
