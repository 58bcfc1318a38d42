"""Hand features, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from walkers import standing, walkers

from roadaware.errors import InputError
from roadaware.models.crossing.features import (
    TRAFFIC_FEATURES,
    extract_hand_features,
    extrapolate_centre_px,
    list_feature_names,
)


def test_a_walker_by_hand() -> None:
    seen = standing([[400.0, 480.0, 480.0]], width_px=1600.0)
    seen.boxes[0, 2] = [460, 380, 500, 580]  # grows from 20 x 100 to 40 x 200
    found = dict(
        zip(list_feature_names(vehicle=False, extrapolated=False),
            extract_hand_features(seen, vehicle=False, extrapolated=False)[0], strict=True)
    )  # fmt: skip
    assert found == pytest.approx(
        {
            "centre_x": 0.3,
            "centre_y": 480 / 1080,
            "distance_to_middle": 0.2,
            "width": 40 / 1600,
            "height": 200 / 1080,
            "displacement_x": 0.05,
            "displacement_y": 30 / 1080,
            "growth": np.log(2),
            "motion_to_middle": 0.05,
            "aspect_mean": 0.2,
            "aspect_std": 0.0,
        }
    )


def test_motion_away_from_the_middle_is_negative() -> None:
    names = list_feature_names(vehicle=False, extrapolated=False)
    right = extract_hand_features(standing([[1000.0, 1100.0]]), vehicle=False, extrapolated=False)
    left = extract_hand_features(standing([[920.0, 820.0]]), vehicle=False, extrapolated=False)
    column = names.index("motion_to_middle")
    assert right[0, column] == pytest.approx(-100 / 1920)
    assert left[0, column] == pytest.approx(-100 / 1920)


def test_vehicle_action_at_the_last_frame_and_as_shares() -> None:
    seen = replace(
        standing([[5.0, 6.0, 7.0, 8.0]] * 2), vehicle_action=np.array([[0, 0, 3, 4.0], [np.nan] * 4])
    )
    names = list_feature_names(vehicle=True, extrapolated=False)
    found = extract_hand_features(seen, vehicle=True, extrapolated=False)[:, names.index("vehicle_0_last") :]
    assert found[0].tolist() == [0, 0, 0, 0, 1, 0.5, 0, 0, 0.25, 0.25]
    assert found[1].tolist() == [0] * 10


def test_traffic_is_that_of_the_last_frame_and_has_to_be_there() -> None:
    traffic = np.zeros((1, 3, len(TRAFFIC_FEATURES)))
    traffic[0, 0, 0], traffic[0, 2, 1:3] = 1, (1, np.nan)
    seen = replace(standing([[5.0, 6.0, 7.0]]), traffic=traffic)
    found = extract_hand_features(seen, vehicle=False, extrapolated=False, traffic=True)
    names = list_feature_names(vehicle=False, extrapolated=False, traffic=True)
    assert [name for name, value in zip(names[-10:], found[0, -10:], strict=True) if value] == ["ped_sign"]
    with pytest.raises(InputError, match="traffic should be"):
        extract_hand_features(standing([[5.0, 6.0, 7.0]]), vehicle=False, extrapolated=False, traffic=True)


def test_names_match_columns() -> None:
    for vehicle in (False, True):
        for extrapolated in (False, True):
            names = list_feature_names(vehicle=vehicle, extrapolated=extrapolated)
            found = extract_hand_features(walkers(4, 2, 0), vehicle=vehicle, extrapolated=extrapolated)
            assert found.shape == (4, len(names))
            assert len(set(names)) == len(names)
            assert np.isfinite(found).all()


@given(
    st.floats(-3000, 3000), st.floats(-50, 50), st.integers(2, 30), st.integers(0, 120),
    st.sampled_from(["least-squares", "ends"]),
)  # fmt: skip
def test_a_straight_walk_is_continued_exactly(x: float, v: float, n: int, ahead: int, slope: str) -> None:
    seen = standing([[x + v * t for t in range(n)]])
    expected = x + v * (n - 1 + ahead)
    assert extrapolate_centre_px(seen, ahead, slope)[0] == pytest.approx(expected, abs=1e-6)


def test_the_least_squares_line_is_numpys() -> None:
    rng = np.random.default_rng(0)
    centres = rng.uniform(0, 1920, (20, 15))
    line = np.polynomial.polynomial.polyfit(np.arange(15), centres.T, 1)
    found = extrapolate_centre_px(standing(centres.tolist()), 90)
    np.testing.assert_allclose(found, line[0] + line[1] * 104, rtol=1e-9)


def test_one_frame_has_no_velocity() -> None:
    assert extrapolate_centre_px(standing([[300.0]]), 90).tolist() == [300.0]


def test_a_box_without_height_counts_as_a_pixel() -> None:
    seen = standing([[300.0, 310.0]])
    seen.boxes[0, 0] = [300, 400, 300, 400]
    found = extract_hand_features(seen, vehicle=False, extrapolated=True)
    assert np.isfinite(found).all()
    assert found[0, list_feature_names(vehicle=False, extrapolated=True).index("growth")] == pytest.approx(
        np.log(100)
    )
