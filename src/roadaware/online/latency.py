"""Latency in little memory: the exact percentiles of the last frames, however many there were."""

from __future__ import annotations

import numpy as np

_KEPT = 1 << 16


class Latency:
    """How long frames took from their arrival until their events were out.

    >>> latency = Latency()
    >>> for n in range(1, 101): latency.add(n / 100)
    >>> latency.percentile_s(50), latency.percentile_s(99)
    (0.5, 0.99)
    """

    def __init__(self) -> None:
        self._held = np.zeros(256)
        self.count, self.longest_s = 0, 0.0

    def add(self, seconds: float) -> None:
        """One more frame."""
        if self.count == len(self._held) < _KEPT:
            self._held = np.concatenate([self._held, np.zeros(len(self._held))])
        self._held[self.count % len(self._held)] = seconds
        self.count, self.longest_s = self.count + 1, max(self.longest_s, seconds)

    def percentile_s(self, share: float) -> float | None:
        """The latency that so many per cent of the last 65,536 frames did not exceed; None before the first.

        Args:
            share: from 0 to 100.
        """
        held = self._held[: min(self.count, len(self._held))]
        if not len(held):
            return None
        return float(np.percentile(held, share, method="inverted_cdf"))
