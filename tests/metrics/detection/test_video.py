"""Video-level matches against plain loops, hand-worked cases and laws."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_video import trapezoid, tubes_of, video_hits
from random_tubes import tube_set
from tube_cases import CLASSES, CONFIGS, DEFAULT, REFERENCE, WIDE, one_class, run

from example_counts import tried
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import build_tube_table, compute_average_precisions, match_tubes
from roadaware.metrics.detection.rows import extract_labelled_tubes
from roadaware.scenes.tables import Predictions, Scenes


def assert_plain(scenes: Scenes, predictions: Predictions, config: DetectionConfig, overlap: str) -> None:
    thresholds = (0.1, 0.5, 1.0)
    found = match_tubes(predictions, scenes, config, thresholds, overlap).ranked()
    order = extract_labelled_tubes(predictions, CLASSES, found.videos, np.ones((len(found.videos), 4)))
    if config.min_tube_score is not None:
        order = order.only(order.score > config.min_tube_score)
    values = compute_average_precisions(found, config, rule="trapezoid")
    for c, (kind, label) in enumerate(found.classes):
        rows = np.flatnonzero(found.cls == c)
        for t, threshold in enumerate(thresholds):
            hits, n_truth = video_hits(predictions, scenes, config, threshold, overlap, kind, label)
            tubes = order.tube[found.order[rows]].tolist()
            assert list(zip(tubes, found.hit[rows, t].tolist(), strict=True)) == hits
            assert found.n_truth[:, c].sum() == n_truth
            if n_truth or config.empty_classes == "zero":
                assert values[c, t] == pytest.approx(trapezoid([hit for _, hit in hits], n_truth), abs=2e-6)


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("overlap", ["stiou", "siou", "tiou"])
@tried(8)
@given(
    seed=st.integers(0, 10_000),
    tied=st.booleans(),
    consecutive=st.booleans(),
    holes=st.sampled_from([0.0, 0.15, 0.5]),
)
def test_the_fast_path_finds_what_plain_loops_find(
    config: DetectionConfig, overlap: str, seed: int, tied: bool, consecutive: bool, holes: float
) -> None:
    scenes, predictions = tube_set(seed, tied=tied, consecutive=consecutive, holes=holes)
    assert_plain(scenes, predictions, config, overlap)


HALF = (0.0, 0.0, 9.0, 4.0)


def overlap_of(
    scenes: Scenes, predictions: Predictions, config: DetectionConfig, overlap: str = "stiou"
) -> float:
    table = build_tube_table(predictions, scenes, config, overlap, ["agent"])
    value = table["overlap"][0]
    return 0.0 if value is None else float(value)


def test_overlap_is_mean_space_times_time() -> None:
    scenes, predictions = one_class(
        [run(range(0, 8))], [(0.9, run(range(4, 8), HALF) + run(range(8, 12), HALF))]
    )
    # 4 of 12 frames are shared; boxes of 10x10 and 10x5 pixels overlap by half when the last pixel counts.
    assert overlap_of(scenes, predictions, REFERENCE) == pytest.approx(4 / 12 * 0.5)
    assert overlap_of(scenes, predictions, REFERENCE, "tiou") == pytest.approx(4 / 12)
    assert overlap_of(scenes, predictions, REFERENCE, "siou") == pytest.approx(0.5)
    # Without the pixel, 9x9 and 9x4.
    assert overlap_of(scenes, predictions, DEFAULT) == pytest.approx(4 / 12 * 4 / 9)


def test_a_hole_outside_the_common_interval_counts_by_end_points_and_not_by_frames() -> None:
    scenes, predictions = one_class([run(range(0, 4))], [(0.9, run([0, 1, 2, 3, 9]))])
    assert overlap_of(scenes, predictions, REFERENCE) == pytest.approx(4 / 10)
    assert overlap_of(scenes, predictions, DEFAULT) == pytest.approx(4 / 5)


def test_a_hole_in_the_truth_leaves_frames_to_compare() -> None:
    scenes, predictions = one_class([run([0, 1, 2, 6, 7])], [(0.9, run(range(0, 8)))])
    # The published code finds 5 boxes and 8 in the common interval and gives up.
    assert overlap_of(scenes, predictions, REFERENCE) == pytest.approx(5 / 8)
    assert overlap_of(scenes, predictions, DEFAULT) == pytest.approx(5 / 8)
    assert overlap_of(scenes, predictions, REFERENCE, "tiou") == 1.0
    assert overlap_of(scenes, predictions, DEFAULT, "tiou") == pytest.approx(5 / 8)


def test_boxes_pair_by_place_where_both_have_equally_many_as_in_the_published_code() -> None:
    truth = [(0, WIDE), (1, WIDE), (3, WIDE)]
    predicted = [(0, WIDE), (2, HALF), (3, WIDE)]
    scenes, predictions = one_class([truth], [(0.9, predicted)])
    assert overlap_of(scenes, predictions, REFERENCE, "siou") == pytest.approx((1 + 0.5 + 1) / 3)
    assert overlap_of(scenes, predictions, DEFAULT, "siou") == pytest.approx(1.0)


def test_the_second_prediction_on_one_truth_is_wrong_and_the_third_takes_the_next() -> None:
    low = (100.0, 0.0, 109.0, 9.0)
    scenes, predictions = one_class(
        [run(range(5)), run(range(5), low)],
        [(0.7, run(range(5))), (0.9, run(range(5))), (0.8, run(range(5), low))],
    )
    found = match_tubes(predictions, scenes, DEFAULT, (0.5,), kinds=["agent"]).ranked()
    assert found.score.tolist() == [0.9, 0.8, 0.7]
    assert found.hit[:, 0].tolist() == [True, True, False]


def test_of_equal_scores_the_first_row_is_first_and_of_equal_overlaps_the_first_truth() -> None:
    scenes, predictions = one_class(
        [run(range(5)), run(range(5))], [(0.5, run(range(5))), (0.5, run(range(5)))]
    )
    table = build_tube_table(predictions, scenes, DEFAULT, kinds=["agent"])
    assert table["matched"].to_list() == [2, 3]
    assert table["truth"].to_list() == [2, 2]


def test_consecutive_predictions_count_on_from_their_start_whatever_frames_were_seen() -> None:
    scenes, predictions = one_class([run(range(2, 7))], [(0.9, run([2, 3, 4, 8, 9]))])
    tubes = predictions.tubes.with_columns(
        consecutive=pl.col("parent").is_not_null(), start_frame=pl.lit(2, dtype=pl.Int64)
    )
    assert overlap_of(scenes, predictions, DEFAULT) == pytest.approx(3 / 7)
    assert overlap_of(scenes, predictions.with_tables(tubes=tubes), DEFAULT) == 1.0


def test_without_spans_a_derived_tube_lies_between_its_start_and_end() -> None:
    scenes, predictions = one_class([run(range(2, 6))], [(0.9, run(range(0, 10)))])
    none = pl.lit(None, dtype=pl.List(pl.List(pl.Int64)))
    for first, last, wanted in ((2, 6, 1.0), (None, 6, 4 / 6), (2, None, 4 / 8), (None, None, 4 / 10)):
        tubes = predictions.tubes.with_columns(
            spans=none,
            start_frame=pl.lit(first, dtype=pl.Int64),
            end_frame=pl.lit(last, dtype=pl.Int64),
        )
        assert overlap_of(scenes, predictions.with_tables(tubes=tubes), DEFAULT) == pytest.approx(wanted)


def test_truth_against_itself_is_all_right() -> None:
    scenes, _ = tube_set(3)
    predictions = as_predictions(scenes)
    for config in CONFIGS.values():
        found = match_tubes(predictions, scenes, config, (0.2, 1.0))
        values = compute_average_precisions(found, config)
        held = found.n_truth.sum(axis=0) > 0
        assert held.sum() >= 5
        assert values[held] == pytest.approx(1.0)


def as_predictions(scenes: Scenes) -> Predictions:
    one = pl.lit(1.0)
    boxed = tubes_with_boxes(scenes)
    return Predictions(
        videos=scenes.videos,
        boxes=scenes.boxes,
        tubes=scenes.tubes.with_columns(score=one),
        tube_labels=scenes.tube_labels.filter(pl.col("tube").is_in(boxed)).with_columns(score=one),
        meta=scenes.meta,
    )


def tubes_with_boxes(scenes: Scenes) -> list[int]:
    """Tubes that cover a box; others are no truth, and predicting them is wrong."""
    found = [tube for kind, label in CLASSES for tube in tubes_of(scenes, scenes, None, kind, label)]
    return sorted({number for _, number, _, boxes in found if boxes})
