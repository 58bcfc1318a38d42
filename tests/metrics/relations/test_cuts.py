"""Where the frames of a relation begin and end among the boxes of a tube."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.metrics.relation_kernels import _box_at, cut, find_first_from


@pytest.mark.parametrize("holes", [False, True])
def test_the_first_box_from_a_frame_on_is_that_of_a_search(holes: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        n, first = int(rng.integers(1, 9)), int(rng.integers(0, 5))
        held = np.sort(rng.permutation(14)[:n]) if holes else np.arange(n)
        frames = np.concatenate([[99], first + held, [20, 23]])  # those of other tubes on both sides
        for frame in range(25):
            place = find_first_from(frames, 1, 1 + n, frame)
            assert place == 1 + np.searchsorted(first + held, frame)
            assert find_first_from(frames, 1, 1, frame) == 1
            there = np.flatnonzero(first + held == frame)
            offsets = np.array([0, 1, 1 + n, 3 + n])
            assert _box_at(offsets, frames, 1, frame) == (1 + there[0] if len(there) else -1)


def test_a_relation_has_the_boxes_from_its_first_frame_to_the_one_before_its_end() -> None:
    frames, offsets = np.array([0, 1, 2, 3, 5, 6, 9, 4]), np.array([0, 4, 7, 8])
    tube, start, end = (
        np.array([0, 1, 1, 1, 2, 2]),
        np.array([1, 0, 6, 7, 4, 5]),
        np.array([3, 6, 10, 9, 5, 9]),
    )
    assert cut(tube, start, end, offsets, frames).tolist() == [
        [1, 3],
        [4, 5],
        [5, 7],
        [6, 6],
        [7, 8],
        [8, 8],
    ]
