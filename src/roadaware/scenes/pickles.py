"""Pickles read as data: plain containers and numpy arrays; whatever else a pickle asks for is refused."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from roadaware.errors import InputError
from roadaware.scenes.pickle_words import Machine
from roadaware.scenes.pickled_numpy import RefusalError

_DEEPEST = 32
_FREE_WEIGHT = 1 << 22
_LEAVES = frozenset({int, float, bool, type(None)})
_HINT = (
    "only plain containers, numbers, text and numpy arrays are read, and nothing in the file is run; write "
    "it again with pickle protocol 3 or 4"
)


def load(data: bytes, where: str) -> Any:
    """What a pickle holds: dicts, lists, tuples, text, bytes, numbers and numpy arrays (read-only).

    Nothing of it is run or imported: the only names it may use are numpy's ndarray, dtype, _reconstruct and
    scalar, and stand-ins that check their arguments answer for them. Numbers of numpy become those of
    Python. Text of Python 2 is taken as latin-1. Memory stays below 64 MB and 16 times the pickle.

    Args:
        data: the whole pickle.
        where: the file, for messages.

    Raises:
        InputError: if it is damaged, or asks for anything else: other names, objects, persistent ids,
            extension codes, buffers outside it, containers within themselves or many times over.
    """
    machine = Machine(data)
    try:
        value = machine.run()
        _weigh(value, {}, 0, _FREE_WEIGHT + 64 * len(data))
    except RefusalError as error:
        place = f"{where}, byte {machine.place}"
        raise InputError(f"the pickle holds {error}", where=place, hint=_HINT) from error
    except (IndexError, ValueError, TypeError, KeyError, struct.error, OverflowError) as error:
        message = "not a whole pickle" if data else "the file is empty; expected a pickle"
        hint = "fetch or write the file again"
        raise InputError(message, where=f"{where}, byte {machine.place}", hint=hint) from error
    return value


def _weigh(value: Any, known: dict[int, int], depth: int, most: int) -> int:
    """How many plain values a value comes to, those that stand in it twice counted twice.

    Args:
        value: anything.
        known: container to its weight; below 0 while it is being weighed.
        depth: how deep it lies.
        most: what it may weigh.

    Raises:
        RefusalError: if it weighs more, lies too deep, lies in itself, or is no plain value.
    """
    kind = type(value)
    if kind in _LEAVES:
        return 1
    if kind is str or kind is bytes:
        return 1 + len(value) // 8
    if kind is np.ndarray:
        return 1 + int(value.nbytes) // 8
    weight = known.get(id(value))
    if weight is None:
        if kind is dict:
            parts: Any = value.values()
        elif kind is list or kind is tuple:
            parts = value
        else:
            raise RefusalError("a name or a type of numpy where a value is due")
        if depth == _DEEPEST:
            raise RefusalError(f"containers more than {_DEEPEST} deep in each other")
        known[id(value)] = -1
        weight = 1 + sum(_weigh(part, known, depth + 1, most) for part in parts)
        weight += sum(len(key) // 8 for key in value if type(key) is str) if kind is dict else 0
        known[id(value)] = weight
    if weight < 0:
        raise RefusalError("a container within itself")
    if weight > most:
        raise RefusalError("values that stand in it many times over")
    return weight
