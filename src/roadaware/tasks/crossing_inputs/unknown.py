"""Unknown inputs: refused where all of an input is unknown in a split, reported where a part of it is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import numpy as np

from roadaware.arrays import Numbers
from roadaware.errors import InputError
from roadaware.models.crossing.inputs import Held, InputSet, parse_input_name
from roadaware.tasks.crossing_inputs.traffic import LIGHTS, ROADS, SIGHTS

TOLD_FROM = 0.01
"""Up to this share of an input may be unknown without a word."""
_log = logging.getLogger("roadaware")


def refuse_unknown(shares: Mapping[str, float], split: str) -> None:
    """Refuse inputs that are unknown throughout a split; warn once of all those that are so in parts.

    Args:
        shares: name of an input to how much of it is unknown, from 0 to 1.
        split: train, val or test.

    Raises:
        InputError: if one is wholly unknown.
    """
    lost = [name for name, share in shares.items() if share >= 1]
    if lost:
        raise InputError(
            f"no sample of split '{split}' tells anything of {', '.join(lost)}; all of it would be made up",
            hint="leave it out (network.inputs, or network.fields of a model on hand features), or give the "
            "files and columns that tell it of this split too (`roadaware audit` shows what there is)",
        )
    parts = [f"{share:.1%} of {name}" for name, share in shares.items() if share > TOLD_FROM]
    if parts:
        _log.warning("split '%s': %s unknown; a mean or zero stands in for it", split, ", ".join(parts))


def compute_unknown_fractions(given: InputSet) -> dict[str, float]:
    """How much of each input is unknown, from 0 to 1; boxes and images are always known and left out.

    Words as one-hots count as unknown where they are zeros alone, a last column that says whether the rest is
    known does not count.

    Args:
        given: of n samples.
    """
    held = {
        name: column.values
        for name, column in given.columns.items()
        if isinstance(column, Held) and parse_input_name(name).kind not in _ALWAYS
    }
    return {name: compute_unknown_fraction(name, values) for name, values in held.items() if values.size}


def compute_unknown_fraction(name: str, values: Numbers) -> float:
    """How much of an input is unknown, from 0 to 1.

    Args:
        name: of the input.
        values: (n, ...) of it.

    >>> compute_unknown_fraction("ego:action", np.array([[[0, 0, 0, 0, 0], [0, 1, 0, 0, 0]]]))
    0.5
    >>> compute_unknown_fraction("ego:speed", np.array([[[np.nan], [3.0]]]))
    0.5
    """
    return float(np.mean(_LACKS.get(name, np.isnan)(values)))


def _no_word(values: Numbers) -> Numbers:
    """(n, t) whether a one-hot is zeros alone."""
    return np.asarray((values == 0).all(axis=-1))


def _but_last(values: Numbers) -> Numbers:
    """Whether a number is unknown, of all columns but the last."""
    return np.isnan(values[..., :-1])


def _traffic(values: Numbers) -> Numbers:
    """(n, t, 5) whether each of three flags, the light and the road are unknown."""
    return np.stack(list(mask_unknown_traffic(values).values()), axis=-1)


def mask_unknown_traffic(values: Numbers) -> dict[str, Numbers]:
    """(...) for each flag, the light and the road, whether it is unknown.

    Args:
        values: (..., 10) as `traffic.COLUMNS` lists them.
    """
    flags, light = len(SIGHTS), len(SIGHTS) + len(LIGHTS)
    return {
        **{name: np.isnan(values[..., place]) for place, name in enumerate(SIGHTS)},
        "traffic_light": _no_word(values[..., flags:light]),
        "road_type": _no_word(values[..., light : light + len(ROADS)]),
    }


_ALWAYS = ("boxes", "centre", "motion", "crop", "maps")
_LACKS: dict[str, Callable[[Numbers], Numbers]] = {
    "ego:action": _no_word,
    "ego:dynamics": _but_last,
    "behaviour": _but_last,
    "traffic": _traffic,
}
"""How an input says that something is unknown, where it does not say so by NaN alone."""
