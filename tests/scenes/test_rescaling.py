"""Predictions come to the pixels of the truth, once."""

import polars as pl
import pytest

from roadaware.errors import InputError
from roadaware.scenes.concatenation import (
    compute_scale_factors,
    get_image_sizes,
    rescale_predictions,
    set_image_sizes,
)
from roadaware.scenes.tables import Predictions, Scenes


def sizes(*rows):
    return pl.DataFrame(rows, schema={"video": str, "width_px": int, "height_px": int}, orient="row")


def predictions(videos=None):
    boxes = pl.DataFrame(
        {
            "box": [0, 1],
            "video": ["a", "b"],
            "frame": 0,
            "x1_px": 1.0,
            "y1_px": 2.0,
            "x2_px": 3.0,
            "y2_px": 4.0,
        }
    )
    return Predictions(boxes=boxes) if videos is None else Predictions(boxes=boxes, videos=videos)


def corners(predictions):
    return predictions.boxes.select("x1_px", "y1_px", "x2_px", "y2_px").rows()


def test_each_video_has_its_own_scale() -> None:
    truth = Scenes(videos=sizes(("b", 100, 10), ("a", 20, 40)))
    found = rescale_predictions(predictions(sizes(("a", 10, 10), ("b", 100, 100))), truth)
    assert corners(found) == [(2, 8, 6, 16), (1, pytest.approx(0.2), 3, pytest.approx(0.4))]
    assert found.videos.rows() == [("a", 20, 40), ("b", 100, 10)]
    assert corners(rescale_predictions(found, truth)) == corners(found)


def test_predictions_without_sizes_are_in_the_truths_pixels() -> None:
    truth = Scenes(videos=sizes(("a", 20, 40), ("b", 20, 40)))
    assert corners(rescale_predictions(predictions(), truth)) == [(1, 2, 3, 4)] * 2
    assert corners(rescale_predictions(predictions(sizes(("a", 10, 10), ("b", None, None))), truth))[1] == (
        1,
        2,
        3,
        4,
    )


def test_a_truth_that_does_not_tell_its_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"how large the images of \['b'\]"):
        rescale_predictions(
            predictions(sizes(("a", 10, 10), ("b", 10, 10))), Scenes(videos=sizes(("a", 20, 40)))
        )


def test_a_size_is_known_where_both_sides_are_and_are_something() -> None:
    videos = sizes(("a", 20, 40), ("b", None, 40), ("c", 0, 40), ("d", 20, None))
    assert get_image_sizes(Scenes(videos=videos)) == {"a": (20, 40)}
    assert get_image_sizes(Scenes(videos=videos.drop("height_px"))) == {}
    bare = predictions(sizes(("a", 0, 10), ("b", 10, 20)))
    assert corners(rescale_predictions(bare, Scenes(videos=sizes(("a", 20, 40), ("b", 20, 20))))) == [
        (1, 2, 3, 4),
        (2, 2, 6, 4),
    ]


def test_factors_are_those_of_each_boxs_video() -> None:
    videos = pl.Series(["b", "a", "b", "c"])
    own, asked = {"a": (10, 10), "b": (4, 2)}, {"a": (20, 5), "b": (4, 6), "c": (1, 1)}
    assert compute_scale_factors(videos, own, asked).tolist() == [
        [1, 3, 1, 3],
        [2, 0.5, 2, 0.5],
        [1, 3, 1, 3],
        [1] * 4,
    ]
    assert compute_scale_factors(videos.clear(), own, asked).shape == (0, 4)


def test_sizes_stand_with_their_videos() -> None:
    videos = sizes(("b", 1, 1), ("a", None, None), ("c", 5, 5)).with_columns(fps=pl.Series([1.0, 2.0, 3.0]))
    found = set_image_sizes(videos, {"a": (20, 40), "b": (4, 2), "other": (1, 1)})
    assert found.rows() == [("b", 4, 2, 1.0), ("a", 20, 40, 2.0), ("c", None, None, 3.0)]
