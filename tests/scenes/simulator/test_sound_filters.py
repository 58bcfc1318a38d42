"""Filters of sound are Butterworth's, whatever blocks the sound comes in."""

import numpy as np
import pytest
from scipy import signal

from roadaware.simulator.sound import RATE, Fading, Filtered

NOISE = np.random.default_rng(0).standard_normal(3000)


@pytest.mark.parametrize(
    ("kind", "hertz", "order"),
    [
        ("lowpass", 600.0, 2),
        ("highpass", 3000.0, 2),
        ("bandpass", (300.0, 3000.0), 2),
        ("bandpass", (900.0, 1100.0), 1),
        ("bandpass", (60.0, 4000.0), 1),
    ],
)
def test_a_filter_is_butterworths(kind, hertz, order):
    apart = Filtered(kind, hertz, order)
    found = np.concatenate([apart(NOISE[:1000]), apart(NOISE[1000:])])
    expected = signal.sosfilt(signal.butter(order, hertz, kind, output="sos", fs=RATE), NOISE)
    assert found == pytest.approx(expected, abs=1e-12)


def test_strokes_die_away():
    found = Fading(0.9)(np.eye(1, 50)[0])
    assert found == pytest.approx(0.9 ** np.arange(50))
