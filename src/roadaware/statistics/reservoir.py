"""Reservoir sampling: a uniform sample, without replacement, of a stream whose length is not known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Ints


def choose_slots(seen: npt.ArrayLike, capacity: int, rng: np.random.Generator) -> Ints:
    """(n,) the slot that each new item takes, in place of what is there; -1 where it is let go.

    With every item of a stream given once, each of the first t has been in the reservoir with probability
    min(1, capacity / t) after t of them, and every set of that size is as likely.

    Args:
        seen: (n,) how many items of its stream came before each item; several streams have a reservoir each.
        capacity: slots of a reservoir, 1 or more.
        rng: where chance comes from; one number is drawn for each item, whether it is needed or not.

    Raises:
        ValueError: if there is no slot, or a count is negative.

    Source: Vitter, ACM Transactions on Mathematical Software 1985 (algorithm R, there of Waterman).

    >>> choose_slots([0, 1, 2], 3, np.random.default_rng(0))
    array([0, 1, 2])
    """
    before = np.asarray(seen, np.int64)
    if capacity < 1:
        raise ValueError(f"a reservoir has 1 slot or more, not {capacity}")
    if (before < 0).any():
        raise ValueError("counts of items that came before are 0 or more")
    drawn = rng.integers(0, before + 1)
    return np.where(before < capacity, before, np.where(drawn < capacity, drawn, -1)).astype(np.int64)
