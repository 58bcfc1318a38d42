"""The factors that bring boxes to one image size, in double and in single precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from roadaware.errors import InputError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.rows import compute_scales, scale_to_common_size
from roadaware.scenes.tables import Predictions, Scenes

OWN = DetectionConfig(frame_size_px=None, numbers="double")
FIXED = DetectionConfig(frame_size_px=(100, 50), numbers="double")
EDGES = ("x1_px", "y1_px", "x2_px", "y2_px")
NAMES = ("a", "b", "c")
Sizes = list[tuple[int | None, int | None]]


def sides(truth: Sizes, detections: Sizes) -> tuple[Predictions, Scenes]:
    """Image sizes of the videos a, b, c on either side, and one box in each."""
    videos = [
        pl.DataFrame(
            [(name, *size) for name, size in zip(NAMES, held + [(None, None)] * 3, strict=False)],
            schema={"video": pl.String, "width_px": pl.Int64, "height_px": pl.Int64},
            orient="row",
        )
        for held in (truth, detections)
    ]
    box = pl.DataFrame({"box": range(3), "video": NAMES, "frame": 0})
    edges = box.with_columns(x1_px=pl.lit(1.0), y1_px=2.0, x2_px=30.1, y2_px=40.7)
    return Predictions(videos=videos[1], boxes=edges), Scenes(videos=videos[0], boxes=edges)


def test_predictions_are_brought_to_the_size_of_the_truth_or_both_to_a_given_one() -> None:
    predictions, scenes = sides([(200, 100), (400, 300)], [(50, 100)])  # b: the truth's where not said
    own, fixed = (compute_scales(predictions, scenes, NAMES[:2], config) for config in (OWN, FIXED))
    assert own.truth.tolist() == [[1] * 4] * 2
    assert own.predictions.tolist() == [[4, 1, 4, 1], [1] * 4]
    assert fixed.truth == pytest.approx(np.array([[0.5, 0.5] * 2, [0.25, 1 / 6] * 2]))
    assert fixed.predictions == pytest.approx(np.array([[2, 0.5] * 2, [0.25, 1 / 6] * 2]))


def test_sizes_that_neither_side_says_are_the_same_and_needed_where_one_is_given() -> None:
    predictions, scenes = sides([(200, 100)], [(200, 100)])
    assert compute_scales(predictions, scenes, NAMES, OWN).predictions.tolist() == [[1] * 4] * 3
    with pytest.raises(InputError, match=r"of 2 videos of the truth is not known, first \['b', 'c'\]"):
        compute_scales(predictions, scenes, NAMES, FIXED)


def test_a_size_that_the_predictions_alone_say_is_no_size_of_the_truth() -> None:
    predictions, scenes = sides([(200, 100)], [(200, 100), (10, 10)])
    with pytest.raises(InputError, match=r"of 1 videos of the truth is not known, first \['b'\]"):
        compute_scales(predictions, scenes, NAMES, OWN)


def test_five_videos_of_many_are_named() -> None:
    many = [f"v{k}" for k in range(7)]
    with pytest.raises(InputError, match=r"of 7 videos .*first \['v0', 'v1', 'v2', 'v3', 'v4'\]\n"):
        compute_scales(*sides([], []), many, FIXED)


def test_single_precision_divides_and_multiplies_in_32_bits() -> None:
    predictions, scenes = sides([(100, 50), (300, 70), (300, 70)], [(7, 11), (7, 11), (100, 50)])
    single = DetectionConfig(frame_size_px=(100, 50), numbers="single")
    detections, truth, factors = scale_to_common_size(predictions, scenes, NAMES, single)
    assert (factors.truth.tolist(), factors.predictions.tolist()) == ([[1] * 4] * 3, [[1] * 4] * 3)
    own = np.array([1.0, 2.0, 30.1, 40.7], dtype=np.float32)
    target = np.array([100, 50] * 2, dtype=np.float32)
    for tables, sizes in ((truth, [None, (300, 70), (300, 70)]), (detections, [(7, 11), (7, 11), None])):
        expected = [own if s is None else own / np.array(s * 2, dtype=np.float32) * target for s in sizes]
        np.testing.assert_array_equal(tables.boxes.select(EDGES).to_numpy(), np.stack(expected))
    # Boxes in the right pixels, and in unknown ones, stay as they are: 2 / 82 x 82 is not quite 2.
    assert own[1] / np.float32(82) * np.float32(82) != own[1]
    unscaled = sides([(49, 82), (49, 82)], [(49, 82)])
    for tables in scale_to_common_size(*unscaled, NAMES, replace(single, frame_size_px=None))[:2]:
        np.testing.assert_array_equal(tables.boxes.select(EDGES).to_numpy(), np.tile(own, (3, 1)))
    same, kept, double = scale_to_common_size(predictions, scenes, NAMES, FIXED)
    assert same is predictions
    assert kept is scenes
    assert double.predictions[2].tolist() == [1] * 4
