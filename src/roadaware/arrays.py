"""The array types that signatures name, by what their elements are; and arrays in memory that is used again."""

from __future__ import annotations

import math
import sys
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[Any]
Pixels = npt.NDArray[np.uint8]
"""(height, width, 3) RGB, or (height, width) of one channel."""


_LEAST_BYTES = 1 << 16
"""Smaller arrays cost nothing to speak of: their pages stay with the process anyway."""
_MOST_BYTES = 64 << 20
"""Memory that a thread keeps for arrays to come; a sweep of 120,000 returns needs 10 MB."""


def _count_references(held: list[Bytes], place: int) -> int:
    return sys.getrefcount(held[place])


_FREE = _count_references([np.empty(1, np.uint8)], 0)


class _Kept(threading.local):
    """Memory of one thread, the latest used last."""

    def __init__(self) -> None:
        self.held: list[Bytes] = []


_kept = _Kept()


def allocate(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array without values, as `np.empty`, in memory of an earlier one that nobody holds any more.

    What is freed goes back to the system and is asked for again page by page, which costs more than filling it. Here it is
    kept, up to 64 MiB a thread. An array stays whole as long as it, or a view of it, is held: its memory is taken again once
    nothing refers to it.

    >>> first = allocate((400, 300), np.float32)
    >>> second = allocate((400, 300), np.float32)
    >>> np.shares_memory(first, second)
    False
    """
    kind = np.dtype(dtype)
    size = kind.itemsize * (math.prod(shape) if isinstance(shape, tuple) else shape)
    if size < _LEAST_BYTES:
        return np.empty(shape, kind)
    held = _kept.held
    fitting = [
        place for place in range(len(held))
        if size <= len(held[place]) <= 2 * size and _count_references(held, place) == _FREE
    ]  # fmt: skip
    memory = (
        held.pop(min(fitting, key=lambda place: len(held[place]))) if fitting else np.empty(size, np.uint8)
    )
    held.append(memory)
    # The latest stay; what is let go here is freed once nobody holds it.
    while sum(map(len, held)) > _MOST_BYTES and len(held) > 1:
        held.pop(0)
    return memory[:size].view(kind).reshape(shape)
