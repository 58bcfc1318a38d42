"""The boxes of observations by position: gaps, ends of tubes, tags."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.errors import InputError, UsageError
from roadaware.scenes.factors import build_position_index, extract_windows

sys.path.insert(0, str(Path(__file__).parent / "sampling"))
from made import Pedestrian, scenes

FRAMES = [0, 1, 2, 10, 11, 12, 13]


@pytest.fixture
def made():
    left = [float(frame) for frame in FRAMES]
    tags = ["crossing", None, "not-crossing", None, None, "irrelevant", None]
    return scenes(
        [
            Pedestrian("0_1", FRAMES, left=left, cross=tags),
            Pedestrian("0_2", range(20, 30), left=range(20, 30)),
        ]
    )


def asked(*rows):
    return pl.DataFrame(
        [(i, *row) for i, row in enumerate(rows)],
        schema={"sample": pl.Int64, "tube": pl.Int64, "start_frame": pl.Int64, "end_frame": pl.Int64},
        orient="row",
    )


def lefts(scenes_, samples, **options):
    return extract_windows(scenes_, samples, ("x1_px",), **options)[..., 0].tolist()


def test_a_gap_takes_no_place(made):
    assert lefts(made, asked((0, 1, 12), (1, 22, 26))) == [[1, 2, 10, 11], [22, 23, 24, 25]]


def test_more_is_taken_on_both_sides_and_ends_repeat(made):
    assert lefts(made, asked((0, 1, 11), (0, 11, 14)), before=2, after=3) == [
        [0, 0, 1, 2, 10, 11, 12, 13],
        [2, 10, 11, 12, 13, 13, 13, 13],
    ]


def test_an_observation_cut_by_the_end_of_its_tube_repeats_the_last_box(made):
    assert lefts(made, asked((1, 20, 24), (0, 13, 14))) == [[20, 21, 22, 23], [13, 13, 13, 13]]


def test_a_shorter_observation_never_shows_what_comes_behind_it(made):
    with pytest.raises(UsageError, match=r"1 samples observe fewer than the 5 boxes .* \[\(1, 20, 23\)\]"):
        extract_windows(made, asked((1, 21, 26), (1, 20, 23)))
    assert lefts(made, asked((1, 20, 23))) == [[20, 21, 22]]
    assert lefts(made, asked((1, 20, 25), (1, 27, 30)))[1] == [27, 28, 29, 29, 29]


def test_all_coordinates_come_in_the_order_asked_for(made):
    box = extract_windows(made, asked((0, 10, 12)))
    assert box.shape == (1, 2, 4)
    assert box.dtype == np.float64
    assert box[0, 0].tolist() == [10, 500, 50, 600]


def test_tags_come_as_codes_and_unknown_as_nan(made):
    values = extract_windows(made, asked((0, 0, 13)), ("cross",))[0, :, 0]
    np.testing.assert_array_equal(values, [1, np.nan, 0, np.nan, np.nan, 2])


def test_no_samples_no_windows(made):
    assert extract_windows(made, asked(), before=1, after=2).shape == (0, 3, 4)


def test_the_order_of_box_rows_does_not_matter(made):
    shuffled = made.with_tables(boxes=made.boxes.reverse())
    samples = asked((0, 1, 12), (1, 22, 26))
    np.testing.assert_array_equal(extract_windows(made, samples), extract_windows(shuffled, samples))


def test_a_sample_of_another_place_is_named(made):
    with pytest.raises(
        InputError, match=r"1 samples begin where their tube has no box, first \[\(0, 0, 5\)\]"
    ):
        extract_windows(made, asked((0, 5, 9)))
    with pytest.raises(InputError, match=r"no column \['pose'\]"):
        extract_windows(made, asked((0, 1, 3)), ("pose",))


def test_scenes_without_boxes_say_so(made):
    empty = made.with_tables(boxes=made.boxes.clear())
    with pytest.raises(InputError, match=r"2 samples look at boxes, and these scenes have none\n.*of PIE"):
        extract_windows(empty, asked((0, 1, 3), (1, 22, 26)))


def test_positions_find_boxes_by_tube_and_frame(made):
    index = build_position_index(made.boxes)
    tube, frame = np.array([0, 0, 1, 1, 7, 0, 0]), np.array([10, 5, 29, 30, 20, -1, 10**9])
    assert index.locate(tube, frame).tolist() == [3, -1, 16, -1, -1, -1, -1]
    begin, length = index.extent(np.array([0, 1, 7]))
    assert (begin.tolist(), length.tolist()) == ([0, 7, 0], [7, 10, 0])


def test_positions_of_nothing():
    index = build_position_index(scenes([Pedestrian("0_1", [])]).boxes)
    assert index.locate(np.array([0]), np.array([0])).tolist() == [-1]
    assert index.extent(np.array([0]))[1].tolist() == [0]


def test_a_gap_of_any_length_takes_no_place():
    far = [0, 1, 10**9, 10**9 + 1]
    made = scenes([Pedestrian("0_1", far, left=[1.0, 2.0, 3.0, 4.0])])
    assert lefts(made, asked((0, 1, 10**9 + 1))) == [[2, 3]]
