"""Lists of four numbers from JSON as corners in double precision, each checked, with why it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.readers.json import kind_of, quoted

LARGEST = 1e9
"""Corners beyond this are no pixels of any picture."""


def corners_of(
    lists: Sequence[Any], *, sized: bool, largest: float = LARGEST
) -> tuple[Floats, dict[int, str]]:
    """(n, 4) corners x1, y1, x2, y2, and the place of each list that cannot be taken with the reason.

    Boxes without area are taken: published evaluators count them, with an overlap of 0.

    Args:
        lists: (n,) what stands in the file.
        sized: whether the last two numbers are width and height; x2 = x1 + width, in double precision.
        largest: a number beyond this is refused.
    """
    if _plain(lists):
        given = np.array(lists, dtype=np.float64).reshape(-1, 4)
        bad: dict[int, str] = {}
    else:
        bad = {n: reason for n, each in enumerate(lists) if (reason := _fault(each))}
        given = np.array([[0.0] * 4 if n in bad else each for n, each in enumerate(lists)], dtype=np.float64)
    found = given.copy()
    if sized:
        with np.errstate(invalid="ignore", over="ignore"):
            found[:, 2:] += found[:, :2]
    far = ~(np.abs(given) <= largest).all(axis=1)
    turned = (found[:, 2] < found[:, 0]) | (found[:, 3] < found[:, 1])
    for place in np.flatnonzero(far | turned).tolist():
        upside_down = turned[place] and np.isfinite(given[place]).all()
        told = "is upside down" if upside_down else "holds no finite number of a usual size"
        bad.setdefault(place, f"the box {given[place].tolist()} {told}")
    return found, dict(sorted(bad.items()))


def _plain(lists: Sequence[Any]) -> bool:
    """Whether all are lists of four numbers that a float holds."""
    if not all(type(each) is list and len(each) == 4 for each in lists):
        return False
    kinds = set(map(type, chain.from_iterable(lists)))
    if kinds <= {float}:
        return True
    return kinds <= {float, int} and not any(abs(x) > LARGEST for x in chain.from_iterable(lists))


def _fault(given: Any) -> str:
    """Why a value is no list of four numbers."""
    if not isinstance(given, list):
        return f"a box should be a list of four numbers and is {kind_of(given)}"
    if len(given) != 4:
        return f"a box should have four numbers and has {len(given)}"
    for number in given:
        if type(number) not in (int, float) or abs(number) > 1e300:
            return f"no finite number: {quoted(number)}"
    return ""
