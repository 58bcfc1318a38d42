"""Who is too far away to be labelled by an annotator gets no box, at any size of the image."""

from __future__ import annotations

import numpy as np

from roadaware.simulator.truth.seen import LEAST_SIDE, Seen


def test_the_longer_side_is_measured_against_the_height_of_the_picture() -> None:
    full = np.array([[0, 0, 4, 8], [0, 0, 8, 4], [5, 5, 12, 12.9], [0, 0, 0, 0]], dtype=np.float32)
    n = len(full)
    whole = np.full(n, 50)
    seen = Seen(np.arange(n), np.arange(n), whole, full, full, whole, np.zeros((n, 17, 3), np.float32))
    assert LEAST_SIDE == 1 / 30
    assert seen.near(240).tolist() == [True, True, False, False]
    assert seen.near(480).tolist() == [False] * 4
    assert not len(seen.rows(seen.near(480)).near(240))
