"""Mutants of what a pickle holds: one value somewhere in it is replaced by a hostile one."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1 << 31,
    1 << 63,
    1 << 100,
    -(1 << 70),
    1.5,
    float("nan"),
    float("inf"),
    -1e300,
    "",
    "a",
    "../../etc/passwd",
    "\x1b[2J\n",
    "x" * 3000,
    b"bytes",
    [],
    {},
    (),
    [1, 2, 3],
    {"a": 1},
    {3: 4},
    np.zeros(0),
    np.zeros((0, 4)),
    np.zeros((3, 0)),
    np.array(7),
    np.array([[1.0, 2, 3, 4]]),
    np.array(["a", "b"]),
    np.array([b"a"]),
    np.array([True, False]),
    np.array([[np.nan] * 4] * 4),
    np.full((6, 15), np.inf, np.float32),
    np.full((4, 4), 1e300),
    np.array([1 << 63], dtype=np.uint64),
    np.array([-(1 << 63)] * 4),
    np.zeros(4, np.float16),
    np.zeros((2, 2, 2)),
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with every key or index in it."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    found: list[tuple[Any, Any]] = []
    for key in keys:
        found.append((value, key))
        found += places(value[key])
    return found


def _is_numbers(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.size > 0 and value.dtype.kind in "iuf"


def mutant(value: Any, chance: random.Random) -> Any:
    """A copy with one to three changes."""
    value = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        found = places(value)
        if not found:
            return value
        holder, key = chance.choice(found)
        what = chance.randrange(5)
        if what == 0:
            del holder[key]
        elif what == 1 and isinstance(holder, dict):
            holder[chance.choice(["", "a", "\u202egpj", 3, "x" * 400])] = holder.pop(key)
        elif what == 2 and _is_numbers(holder[key]):
            array = holder[key] = holder[key].astype(
                np.float64 if chance.random() < 0.5 else holder[key].dtype
            )
            number = chance.choice([np.nan, np.inf, -1e6, 1e6, -1, 0, 1.0000001])
            with np.errstate(invalid="ignore"):
                array.flat[chance.randrange(array.size)] = np.asarray(number).astype(array.dtype)
        else:
            holder[key] = copy.deepcopy(chance.choice(HOSTILE))
    return value
