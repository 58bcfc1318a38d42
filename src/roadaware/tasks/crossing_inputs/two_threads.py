"""Work that stands in an order, its first half done here and its second in another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Work = Callable[[Sequence[int], threading.Event], None]
"""Does some numbers in order, and stops with `StoppedError` soon after the event is set."""


class StoppedError(Exception):
    """Work was left since other work failed or somebody interrupts."""


def halves(numbers: Sequence[int], costs: npt.ArrayLike) -> tuple[Sequence[int], Sequence[int]]:
    """Two runs of numbers that cost about the same; the first has at least one.

    Args:
        numbers: at least one, in order.
        costs: of each.

    >>> halves([3, 4, 5, 9], [1, 1, 1, 3])
    ([3, 4, 5], [9])
    """
    reached = np.cumsum(np.asarray(costs, dtype=np.float64))
    cut = 1 + int(np.abs(reached[:-1] - reached[-1] / 2).argmin()) if len(numbers) > 1 else 1
    return numbers[:cut], numbers[cut:]


def side_by_side(first: Sequence[int], second: Sequence[int], work: Work, *, needed: bool = True) -> None:
    """Do two runs of numbers at once; all is over when this returns, or raises.

    Args:
        first: done in this thread; what it raises comes before what the second does.
        second: done in another.
        work: does either.
        needed: whether a fault of the second run is told.
    """
    stop, faults = threading.Event(), list[BaseException]()

    def beside() -> None:
        try:
            work(second, stop)
        except BaseException as error:  # told in the thread that waits
            faults.append(error)

    thread = threading.Thread(target=beside, name="second half", daemon=True)
    if second:
        thread.start()
    try:
        work(first, stop)
        if second:
            thread.join()
    except BaseException:
        stop.set()
        if second:
            thread.join()
        raise
    if needed and faults:
        raise faults[0]
