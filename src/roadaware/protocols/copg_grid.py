"""A grid of knobs of the proposals: each varied with the others as they are, as in the paper's appendix.

Source: Li et al., ECCV 2022 (CODA), appendix B, Tables 5 to 7.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.reuse import Variant
from roadaware.errors import UsageError

GRID: Mapping[str, tuple[Any, ...]] = MappingProxyType(
    {
        "theta_deg": (4.0, 8.0, 12.0, 16.0),
        "min_points": (5, 10, 20),
        "max_distance_m": (25.0, 50.0, 100.0),
        "max_background": (0.15, 0.30, 0.45, 0.60, 0.75),
        "max_common_iou": (0.0, 0.25, 0.50),
    }
)
"""Knobs and values of Tables 5 to 7."""
BASES = MappingProxyType({"default": CopgConfig, "reference": CopgConfig.reference})
"""Configurations whose knobs are turned."""
INPUTS = "inputs"
"""The rows that leave steps away instead of turning a knob."""
_OF_SEMANTICS = ("max_background", "background", "background_by")
_OF_DETECTIONS = ("max_common_iou", "min_common_score")


@dataclass(frozen=True)
class Cell:
    """One row of a table.

    Args:
        base: name of the configuration whose knob is turned.
        knob: a field of `CopgConfig`, or `INPUTS`.
        value: of the knob, or which steps are run.
        variant: what is proposed by.
        unchanged: whether it is the configuration as it is, with every step.
    """

    base: str
    knob: str
    value: Any
    variant: Variant
    unchanged: bool


def cells(
    bases: Sequence[str],
    grid: Mapping[str, Sequence[Any]] = GRID,
    *,
    semantics: bool = True,
    detections: bool = True,
) -> tuple[list[Cell], list[str]]:
    """The rows of all tables, and in words which knobs were left out.

    A configuration's own value stands among those of each knob whether it was asked for or not. A knob of a
    step whose input is not given turns nothing and is left out.

    Args:
        bases: names in `BASES`.
        grid: knob to its values.
        semantics: whether semantic maps are given.
        detections: whether detections are given.

    Raises:
        UsageError: if there is no such configuration or knob, or a value lies outside its range.
    """
    unknown = [name for name in bases if name not in BASES]
    if unknown or not bases:
        raise UsageError(f"configurations are {', '.join(BASES)}; not {', '.join(unknown) or 'none'}")
    found: list[Cell] = []
    idle = {} if semantics else dict.fromkeys(_OF_SEMANTICS, "semantic maps")
    idle |= {} if detections else dict.fromkeys(_OF_DETECTIONS, "detections")
    left_out = [f"{knob}: no {idle[knob]} are given" for knob in grid if knob in idle]
    for base in bases:
        found += _inputs(base, semantics=semantics, detections=detections)
        for knob, values in grid.items():
            if knob not in idle:
                found += _turned(base, knob, values, semantics=semantics, detections=detections)
    return found, left_out


def variants_of(rows: Sequence[Cell]) -> tuple[tuple[Variant, ...], list[int]]:
    """What is proposed by, each once, and for each row the place of its own.

    Args:
        rows: of all tables.
    """
    places: dict[Variant, int] = {}
    numbers = [places.setdefault(row.variant, len(places)) for row in rows]
    return tuple(places), numbers


def _inputs(base: str, *, semantics: bool, detections: bool) -> list[Cell]:
    """The steps by themselves and together, as far as there is anything to leave away."""
    config = BASES[base]()
    names = {
        (False, False): "geometry alone",
        (True, False): "background removed",
        (False, True): "common objects suppressed",
        (True, True): "both",
    }
    found = []
    for (seg, det), name in names.items():
        if (seg and not semantics) or (det and not detections):
            continue
        whole = (seg, det) == (semantics, detections)
        found.append(Cell(base, INPUTS, name, Variant(config, semantics=seg, detections=det), whole))
    return found


def _turned(base: str, knob: str, values: Sequence[Any], *, semantics: bool, detections: bool) -> list[Cell]:
    config = BASES[base]()
    if knob not in {each.name for each in dataclasses.fields(config)}:
        known = ", ".join(sorted(each.name for each in dataclasses.fields(config)))
        raise UsageError(f"there is no knob {knob!r}; there are {known}")
    own = getattr(config, knob)
    found = []
    for value in _ordered([*values, own]):
        turned = config if value == own else dataclasses.replace(config, **{knob: value})
        variant = Variant(turned, semantics=semantics, detections=detections)
        found.append(Cell(base, knob, value, variant, value == own))
    return found


def _ordered(values: Sequence[Any]) -> list[Any]:
    """Each once, in rising order where they are numbers."""
    once = list(dict.fromkeys(tuple(v) if isinstance(v, list) else v for v in values))
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in once):
        return sorted(once)
    return once
