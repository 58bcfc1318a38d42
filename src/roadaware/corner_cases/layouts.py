"""LiDARs by name: how their beams are spread, and how many measurements make a turn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from roadaware.errors import UsageError

_COUNTED = re.compile(r"(\d{1,4}) rings x (\d{1,5}) columns")
MOST_RINGS, MOST_COLUMNS = 512, 16384


@dataclass(frozen=True)
class Layout:
    """One kind of LiDAR.

    Args:
        name: of its maker, or what the tables say.
        columns: measurements of a ring in a turn, at the usual rate.
        elevations_deg: of its beams from the highest to the lowest; empty where only their number is known.
        rings: beams above each other.
    """

    name: str
    columns: int
    elevations_deg: tuple[float, ...]
    rings: int


def _layout(name: str, columns: int, elevations: npt.ArrayLike) -> Layout:
    falling = tuple(float(each) for each in -np.sort(-np.asarray(elevations, dtype=np.float64)))
    return Layout(name, columns, falling, len(falling))


_VLP_32C = (15, 10.333, 7, 4.667, 3.333, 2.333, 1.667, 1.333, 1, 0.667, 0.333, 0, -0.333, -0.667, -1, -1.333)
_VLP_32C_LOW = (-1.667, -2, -2.333, -2.667, -3, -3.333, -3.667, -4, -4.667, -5.333, -6.148, -7.254, -8.843)
_PANDAR_40 = (15, 11, 8, 5, 3, *(2 - n / 3 for n in range(25)), *range(-7, -15, -1), -19, -25)

LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        each.name: each
        for each in (
            _layout(
                "HDL-64E",
                2083,
                np.concatenate([np.linspace(2, -8.333, 32), np.linspace(-8.833, -24.333, 32)]),
            ),
            _layout("HDL-32E", 1084, np.linspace(10.667, -30.667, 32)),
            _layout("VLP-16", 1800, np.linspace(15, -15, 16)),
            _layout("VLP-32C", 1800, (*_VLP_32C, *_VLP_32C_LOW, -11.31, -15.639, -25)),
            _layout("Pandar40P", 1800, _PANDAR_40),
            _layout("OS1-64", 1024, np.linspace(16.611, -16.611, 64)),
            _layout("OS1-128", 1024, np.linspace(22.5, -22.5, 128)),
        )
    }
)
"""Beams as their makers' manuals give them; turns at 10 a second, of the HDL-32E at 20."""


def layout_of(text: str | None) -> Layout | None:
    """The layout that a row of `sensors` names; None where it says nothing that is known.

    Args:
        text: a name of `LAYOUTS`, or such as `64 rings x 900 columns`.

    Raises:
        UsageError: if it counts more rings or columns than any LiDAR has.
    """
    if text is None:
        return None
    known = {name.lower(): layout for name, layout in LAYOUTS.items()}
    if text.strip().lower() in known:
        return known[text.strip().lower()]
    found = _COUNTED.fullmatch(text.strip())
    if found is None:
        return None
    rings, columns = int(found[1]), int(found[2])
    if not (1 <= rings <= MOST_RINGS and 8 <= columns <= MOST_COLUMNS):
        raise UsageError(
            f"a LiDAR has 1 to {MOST_RINGS} rings of 8 to {MOST_COLUMNS} measurements, not {text!r}"
        )
    return Layout(text.strip(), columns, (), rings)
