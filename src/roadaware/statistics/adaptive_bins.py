"""AdaptiveBins: bins of confidence that hold as many samples as their own spread asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from roadaware.arrays import Floats

_ALIKE = 12
"""Decimals up to which confidences are equal that stay together: 1 - 0.43 is not quite 0.57."""


class NoBinningError(ValueError):
    """The published procedure stops with an error on these confidences."""


@dataclass(frozen=True)
class AdaptiveBins:
    """Bins filled greedily from the highest confidence down.

    A bin asks for 0.25 (z / spread)^2 samples, spread being its largest confidence less its smallest. It
    is closed before the next sample when it holds more than that, more than `least_rest` samples remain,
    and its smallest confidence lies more than `least_drop` above the smallest of all. The last bin takes
    what is left; if that is less than it asks for, it borrows from the bins above, and all are cut anew.

    Args:
        z: quantile of the normal distribution; 1.645 belongs to 90 %.
        least_rest: samples that must be left, more than this, for a bin to be closed.
        least_drop: what the bin's smallest confidence must exceed the smallest of all by, more than this.
        borrow: a bin above lends the need times its own share of all samples (`own`), or times the share
            of the last bin, which borrows (`last`).
        ties: confidences that are equal to twelve decimals stay in one bin, that of the first of them
            (`together`), or are parted where the count says so, in the order of the rows (`split`).
        overdrawn: a bin that would lend more than it holds lends all of it and is gone (`emptied`), or is
            left with a size of 0 or less (`published`): such a bin is never closed, its confidence is a sum
            instead of a mean, its accuracy 0, and the bins after it are empty.
        flat_last: a last bin of equal confidences, which asks for infinitely many, borrows nothing (`keep`),
            or nothing is defined, as the published code stops there (`undefined`).

    Source: Ding, Liu, Xiong and Shi, CVPR Workshops 2020, used by Gesnouin et al., IV 2022, section II-C.
    """

    z: float = 1.645
    least_rest: int = 40
    least_drop: float = 0.05
    borrow: Literal["own", "last"] = "own"
    ties: Literal["together", "split"] = "together"
    overdrawn: Literal["emptied", "published"] = "emptied"
    flat_last: Literal["keep", "undefined"] = "keep"

    @classmethod
    def reference(cls) -> Self:
        """The published code, with its faults.

        Source: the code that Gesnouin et al., IV 2022, section II-C, uses (Ding et al., CVPR Workshops 2020).
        """
        return cls(borrow="last", ties="split", overdrawn="published", flat_last="undefined")

    @classmethod
    def default(cls) -> Self:
        """The published rule with its faults mended; it does not depend on the order of the rows."""
        return cls()

    def sizes(self, descending: Floats) -> list[int]:
        """How many samples each bin takes, from the highest confidence down; they sum to n.

        Args:
            descending: (n,) confidences, n > 0, none above the one before.

        Returns:
            one size per bin, each above 0 unless `overdrawn` is `published`.

        Raises:
            NoBinningError: where `flat_last` is `undefined` and the last of several bins has no spread.
        """
        if self.ties == "together":
            descending = descending.round(_ALIKE)
        held = np.diff([*self._starts(descending), len(descending)]).tolist()
        return self._lent(descending, held) if len(held) > 1 else held

    def _starts(self, descending: Floats) -> list[int]:
        """The first place of each bin before anything is lent."""
        n, starts = len(descending), [0]
        far = int(np.count_nonzero(descending - descending[-1] > self.least_drop))
        limit = min(far, n - self.least_rest - 1) - 1
        while (end := self._first_enough(descending, starts[-1], limit)) is not None:
            if self.ties == "together":
                end = _run_end(descending, end) - 1
                if end > limit:
                    break
            starts.append(end + 1)
        return starts

    def _first_enough(self, descending: Floats, start: int, limit: int) -> int | None:
        """The first place up to `limit` at which a bin from `start` holds more than it asks for.

        With every sample the count grows and the spread does not shrink, so bisection finds it.
        """
        if start > limit or not self._enough(descending, start, limit):
            return None
        low, high = start, limit
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._enough(descending, start, middle) else (middle + 1, high)
        return low

    def _enough(self, descending: Floats, start: int, end: int) -> bool:
        return end - start + 1 > self._target(float(descending[start]) - float(descending[end]))

    def _target(self, spread: float) -> float:
        """How many samples a bin asks for: without spread, no number is enough."""
        ratio = self.z / spread if spread > 0 else math.inf
        return ratio * ratio * 0.25

    def _lent(self, descending: Floats, held: list[int]) -> list[int]:
        """The sizes once the last bin has borrowed what it lacks."""
        n, last = len(descending), held[-1]
        target = self._target(float(descending[n - last]) - float(descending[-1]))
        if target <= last:
            return held
        if math.isinf(target):
            if self.flat_last == "undefined":
                raise NoBinningError(
                    f"the last {last} confidences are all {descending[-1]:g}: the published code stops there"
                )
            return held
        needed, lent = target - last, []
        for size in held[:-1]:
            share = int(needed * (last if self.borrow == "last" else size) / n)
            lent.append(min(share, size) if self.overdrawn == "emptied" else share)
        left = [size - share for size, share in zip(held[:-1], lent, strict=True)]
        cut = [*left, last + sum(lent)]
        return self._unparted(descending, cut) if self.ties == "together" else cut

    def _unparted(self, descending: Floats, sizes: list[int]) -> list[int]:
        """The sizes with each cut moved to the end of a run of equals, and without empty bins."""
        cuts = np.cumsum(sizes)
        moved = [_run_end(descending, int(cut) - 1) if cut > 0 else 0 for cut in cuts]
        return [int(size) for size in np.diff([0, *moved]) if size > 0]


def _run_end(descending: Floats, place: int) -> int:
    """One past the last place that holds the same confidence."""
    return int(np.searchsorted(-descending, -descending[place], side="right"))
