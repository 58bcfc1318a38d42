"""Overlap of boxes: worked cases, and what every overlap keeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadaware.geometry.boxes import areas, iou, paired_iou

edges = st.tuples(*[st.floats(-50, 50)] * 2, *[st.floats(0, 40)] * 2).map(
    lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3])
)


def test_worked_by_hand() -> None:
    # 10 x 10 and 10 x 10, half a side apart: 50 of 150.
    assert iou([[0, 0, 10, 10]], [[5, 0, 15, 10]]) == pytest.approx(1 / 3)
    # With the last pixel inside: 11 x 11 each, 6 x 11 in common.
    assert iou([[0, 0, 10, 10]], [[5, 0, 15, 10]], pixel_offset=1.0) == pytest.approx(66 / 176)
    assert areas([[0, 0, 10, 10]], pixel_offset=1.0) == pytest.approx(121)


def test_without_clamping_boxes_that_are_apart_in_both_directions_overlap() -> None:
    far = [[0, 0, 2, 2]], [[4, 4, 6, 6]]
    assert iou(*far) == 0.0
    assert iou(*far, clamped=False) == 1.0  # (-2) * (-2) = 4 of 4 + 4 - 4


def test_nothing_and_empty_boxes() -> None:
    assert iou([], [[0, 0, 1, 1]]).shape == (0, 1)
    assert iou([[1, 1, 1, 1]], [[1, 1, 1, 1]]) == 0.0


@given(st.lists(edges, min_size=1, max_size=4), st.lists(edges, min_size=1, max_size=4))
def test_symmetric_bounded_and_one_with_itself(
    a: list[tuple[float, ...]], b: list[tuple[float, ...]]
) -> None:
    found = iou(a, b)
    assert found == pytest.approx(iou(b, a).T)
    assert ((found >= 0) & (found <= 1 + 1e-9)).all()
    own = np.diag(iou(a, a))
    assert own == pytest.approx(np.where(areas(a) > 1e-200, 1.0, own))


@given(st.lists(st.tuples(edges, edges), min_size=1, max_size=6))
def test_pairs_are_the_diagonal_of_each_with_each(pairs: list[tuple[tuple[float, ...], ...]]) -> None:
    one, other = (np.array(boxes) for boxes in zip(*pairs, strict=True))
    assert np.array_equal(paired_iou(one, other), np.diagonal(iou(one, other)))
    assert paired_iou(one[:, [2, 3, 0, 1]] + [1, 1, 0, 0], other).max() == 0.0


def test_the_compiled_overlap_is_the_same_number() -> None:
    from roadaware.geometry.kernels import box_iou

    rng = np.random.default_rng(5)
    low = rng.uniform(0, 60, (2, 200, 2))
    one, other = np.concatenate([low, low + rng.uniform(0, 40, low.shape)], axis=2)
    for extra in (0.0, 1.0):
        found = [box_iou(a, b, extra) for a, b in zip(one, other, strict=True)]
        assert found == np.diagonal(iou(one, other, pixel_offset=extra)).tolist()
