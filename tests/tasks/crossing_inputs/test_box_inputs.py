"""Boxes and cells: each form against a loop over boxes, and what is unknown at gaps and ends of tracks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from short_walks import OBSERVED, SIZES, TRACKS, T, box_of, walks

from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.crossing_inputs.boxes import GivenBoxes, assign_grid_number, compute_motion

Box = tuple[float, float, float, float]


def values(name: str) -> np.ndarray:
    return build_inputs(walks(), "train", [name]).take(np.arange(len(OBSERVED)))[name]


def shares(box: Box, size: tuple[int, int]) -> list[float]:
    return [box[0] / size[0], box[1] / size[1], box[2] / size[0], box[3] / size[1]]


def scaled(box: Box, size: tuple[int, int]) -> list[float]:
    x1, y1, x2, y2 = (value * 1080 / size[1] for value in box)
    width, height = x2 - x1, y2 - y1
    if width < 0.34 * height:
        width = 0.34 * height
    return [value / (width * height) for value in (x1, y1, x2, y2)]


def minus(box: list[float], other: list[float]) -> list[float]:
    return [a - b for a, b in zip(box, other, strict=True)]


FORMS: dict[str, Callable[[list[Box], int, tuple[int, int]], list[float]]] = {
    "boxes": lambda seen, k, size: shares(seen[k], size),
    "boxes:pixels": lambda seen, k, size: list(seen[k]),
    "boxes:first": lambda seen, k, size: minus(shares(seen[k], size), shares(seen[0], size)),
    "boxes:last": lambda seen, k, size: minus(shares(seen[k], size), shares(seen[-1], size)),
    "boxes:scaled": lambda seen, k, size: scaled(seen[k], size),
}


@pytest.mark.parametrize("name", FORMS)
def test_each_form_is_what_its_formula_makes_of_every_box(name: str) -> None:
    found = values(name)
    assert found.dtype == np.float32
    assert found.shape == (4, T, 4)
    for row, (tube, frames) in enumerate(OBSERVED.values()):
        seen = [box_of(tube, frame) for frame in frames]
        size = SIZES[TRACKS[tube][0]]
        expected = [FORMS[name](seen, k, size) for k in range(T)]
        np.testing.assert_allclose(found[row], expected, rtol=1e-5, atol=1e-6)


def test_a_thin_box_is_scaled_as_if_it_were_wider() -> None:
    tall, wide = (0.0, 0.0, 10.0, 100.0), (0.0, 0.0, 60.0, 100.0)
    assert scaled(tall, (1920, 1080))[3] == pytest.approx(100 / 3400)
    assert scaled(wide, (1920, 1080))[3] == pytest.approx(100 / 6000)


def test_the_centre_comes_with_its_change_in_one_frame() -> None:
    found = values("centre")
    for row, (tube, frames) in enumerate(OBSERVED.values()):
        width, height = SIZES[TRACKS[tube][0]]
        states = []
        for frame in frames:
            x1, y1, x2, y2 = box_of(tube, frame)
            states.append(
                [
                    (x1 + x2) / 2 / width,
                    (y1 + y2) / 2 / height,
                    math.log((x2 - x1) / width),
                    math.log((y2 - y1) / height),
                ]
            )
        np.testing.assert_allclose(found[row, :, :4], states, rtol=1e-5, atol=1e-6)
        assert np.isnan(found[row, 0, 4:]).all()
        for k in range(1, T):
            apart = frames[k] - frames[k - 1]
            if apart:
                expected = [(b - a) / apart for a, b in zip(states[k - 1], states[k], strict=True)]
                np.testing.assert_allclose(found[row, k, 4:], expected, rtol=1e-4, atol=1e-6)
            else:
                assert np.isnan(found[row, k, 4:]).all()


def test_motion_is_told_in_own_heights_and_towards_the_middle() -> None:
    # 20 and then 40 pixels high; 5 pixels to the right over one frame, then 10 left and 4 down over two.
    left = [[10.0, 0, 20, 20], [15, 0, 25, 20], [5, -6, 15, 34]]
    right = [[100 - x2, y1, 100 - x1, y2] for x1, y1, x2, y2 in left]
    seen = GivenBoxes(np.array([left, right]), np.full((2, 2), 100.0), np.array([[np.nan, 1, 2]] * 2))
    found = compute_motion(seen)
    assert np.isnan(found[:, 0]).all()
    np.testing.assert_allclose(found[0, 1:], [[0.25, 0, 0.25], [-0.125, 0.05, -0.125]])
    np.testing.assert_allclose(found[1, 1:], [[-0.25, 0, 0.25], [0.125, 0.05, -0.125]])


def test_a_track_that_ends_inside_an_observation_repeats_its_last_box_and_has_no_velocity_there() -> None:
    found = values("boxes")[2]
    assert (found[2:] == found[2]).all()
    assert (found[1] != found[2]).any()
    assert np.isnan(values("centre")[2, 3:, 4:]).all()


def test_cells_of_a_picture_of_full_size_are_60_pixels_wide_and_high() -> None:
    size = np.array([1920.0, 1080.0])
    boxes = np.array(
        [[0, 0, 2, 2], [59, 59, 60.9, 60.9], [60, 0, 61, 1], [0, 60, 1, 61], [1918, 1078, 1920, 1080]]
    )
    assert assign_grid_number(boxes, size).tolist() == [0, 0, 1, 32, 575]
    outside = np.array([[-50.0, -50, -20, -20], [1950, 500, 2100, 510]])
    assert assign_grid_number(outside, size).tolist() == [0, 8 * 32 + 31]


def test_the_cell_of_each_box_is_an_input_and_so_is_the_published_rounding() -> None:
    found, rounded = values("grid"), values("grid:rounded")
    assert found.shape == rounded.shape == (4, T, 1)
    for row, (tube, frames) in enumerate(OBSERVED.values()):
        width, height = SIZES[TRACKS[tube][0]]
        for k, frame in enumerate(frames):
            x1, y1, x2, y2 = box_of(tube, frame)
            x, y = (x1 + x2) / 2 / (width / 32), (y1 + y2) / 2 / (height / 18)
            assert found[row, k, 0] == int(y) * 32 + int(x)
            assert rounded[row, k, 0] == round(y) * 32 + round(x)
