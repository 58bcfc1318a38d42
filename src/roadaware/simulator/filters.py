"""Filters of sound: Butterworth's, which go on from block to block where they stopped."""

from __future__ import annotations

import cmath
import math
from typing import Literal

import numpy as np

from roadaware.arrays import Floats

Band = Literal["bandpass", "lowpass", "highpass"]
RATE = 16_000
"""Samples per second."""
_ZEROS: dict[Band, tuple[float, float, float]] = {
    "bandpass": (1.0, 0.0, -1.0),
    "lowpass": (1.0, 2.0, 1.0),
    "highpass": (1.0, -2.0, 1.0),
}


def compute_butterworth_sections(kind: Band, hertz: float | tuple[float, float], order: int = 2) -> Floats:
    """(k, 6) sections of a Butterworth filter: three factors of what comes in, three of what went out.

    Args:
        kind: bandpass, lowpass or highpass.
        hertz: its edge, or two of them for a band.
        order: its steepness; 2, or 1 for a band.
    """
    low, high = (hertz, hertz) if isinstance(hertz, int | float) else hertz
    # Edges and poles of the analogue filter that the bilinear transform turns into the wanted one.
    first, last = (2 * RATE * math.tan(math.pi * edge / RATE) for edge in (low, high))
    # One pole of a pair: order 2 has them at 135 degrees on the unit
    # circle, and real factors bring the other.
    pole = complex(-1.0) if order == 1 else cmath.exp(0.75j * math.pi)
    if kind == "bandpass":
        half, middle = pole * (last - first) / 2, math.sqrt(first * last)
        root = cmath.sqrt(half * half - middle * middle)
        # A band's pole of order 1 splits in two about its middle, the geometric mean of its edges.
        poles = [half + root, half - root]
        tuned = cmath.exp(2j * math.atan(middle / (2 * RATE)))
    else:
        poles = [pole * first if kind == "lowpass" else first / pole]
        tuned = complex(1.0 if kind == "lowpass" else -1.0)
    digital = [(2 * RATE + each) / (2 * RATE - each) for each in poles]
    if order == 1:
        one, other = digital
        backs = [(1.0, -(one + other).real, (one * other).real)]
    else:
        backs = [(1.0, -2 * each.real, abs(each) ** 2) for each in digital]
    found = np.array([(*_ZEROS[kind], *back) for back in backs])
    # Gain 1 at the middle of the band: at 0 Hz of a lowpass, at half the rate of a highpass.
    found[0, :3] /= abs(np.prod([np.polyval(row[:3], tuned) / np.polyval(row[3:], tuned) for row in found]))
    return found


class Filtered:
    """A filter of second-order sections that goes on where it stopped.

    Args:
        kind: bandpass, lowpass or highpass.
        hertz: its edges.
        order: its steepness.
    """

    def __init__(self, kind: Band, hertz: float | tuple[float, float], order: int = 2) -> None:
        self._sections = compute_butterworth_sections(kind, hertz, order)
        self._state = np.zeros((len(self._sections), 2))

    def __call__(self, block: Floats) -> Floats:
        """(m,) samples that come after those before."""
        from roadaware.simulator.sound_kernels import apply_filter_sections

        # A copy, which the kernel changes.
        found = np.array(block, dtype=np.float64)
        apply_filter_sections(found, self._sections, self._state)
        return found


class Fading(Filtered):
    """A decaying sound after every stroke.

    Args:
        share: of it that is left after a sample.
    """

    def __init__(self, share: float) -> None:
        self._sections = np.array([(1.0, 0.0, 0.0, 1.0, -share, 0.0)])
        self._state = np.zeros((1, 2))
