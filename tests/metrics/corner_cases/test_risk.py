"""What blocks a path: points on arcs by hand, edges of boxes on the ground, and what is not known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roadaware.errors import InputError, UsageError
from roadaware.metrics.corner_cases.evaluate import (
    Paths,
    add_blocking,
    evaluate,
    find_blocking,
    project_to_ground,
)
from roadaware.metrics.corner_cases.matching import CornerConfig
from roadaware.scenes.tables import Predictions, Scenes

CAMERA = np.array([[500.0, 0, 500], [0, 500, 300], [0, 0, 1]])
POSE = np.array([[0, 0, 1, 1.0], [-1, 0, 0, 0], [0, -1, 0, 1.5], [0, 0, 0, 1]])
"""One metre ahead of the vehicle's frame, 1.5 m above the road, looking along the vehicle."""


@pytest.mark.parametrize(
    ("x_m", "y_m", "kmh", "blocks"),
    [
        (20, 0, 50, True),
        (20, 1.2, 50, True),
        (20, -1.2, 50, True),
        (20, 5, 50, False),  # needs a curvature of 0.024, comfort allows 0.016; 1.7 m beside the nearest arc
        (60, 0, 50, False),  # three seconds reach 41.7 m
        (60, 0, 90, True),
        (8, 5, 10, True),  # on an arc of 8.9 m, 9.9 m long
        (8, -5, 10, True),
        (9, 6, 10, False),  # 12 m away on its arc; a slow vehicle reaches 10 m
        (2, 9, 10, False),  # tighter than the vehicle can turn
        (-5, 0, 10, False),
        (9, 0, 0, True),
        (11, 0, 0, False),
    ],
)
def test_points_on_arcs(x_m: float, y_m: float, kmh: float, blocks: bool) -> None:
    found = find_blocking(np.array([[[x_m, y_m]]], dtype=float), np.array([kmh / 3.6]), Paths())
    assert found.tolist() == [blocks]


def test_a_path_is_as_wide_and_as_long_as_published() -> None:
    assert Paths() == Paths(2.5, 3.0, 10.0, 3.0, 6.0, 0.0)

    def blocks(x_m: float, y_m: float, mps: float, **paths: float) -> bool:
        found = find_blocking(
            np.array([[[-1.0, 0], [x_m, y_m]]], dtype=float), np.array([mps]), Paths(**paths)
        )
        return bool(found.tolist() == [True])

    assert [blocks(x, 0, 0) for x in (0.0, 1e-3, 10.0, 10.001)] == [False, True, True, False]
    assert [blocks(x, 0, 10) for x in (30.0, 30.001)] == [True, False]
    # Turns of 100 m at 10 m/s, were 1 m/s² the most: a point 20 m ahead lies on one where y is 2.02 m.
    arc = 100 - np.sqrt(100**2 - 20**2)
    beyond = np.hypot(20, 100 - (arc + 1.3)) - 100
    assert [blocks(20, arc + aside, 10, lateral_mps2=1.0) for aside in (0, 1.2, 1.3)] == [True, True, False]
    assert [blocks(20, -arc - aside, 10, lateral_mps2=1.0) for aside in (0, 1.2, 1.3)] == [True, True, False]
    width = 2 * abs(beyond)
    assert blocks(20, arc + 1.3, 10, lateral_mps2=1.0, width_m=width + 1e-9)
    assert not blocks(20, arc + 1.3, 10, lateral_mps2=1.0, width_m=width - 1e-9)


def test_of_a_slow_vehicle_the_steering_is_the_limit() -> None:
    """On the tightest turn, of 6 m, a quarter of a circle is 9.42 m long and ends at (6, 6)."""
    points = np.array([[[6.0, 6.0]], [[6.0, -6.0]], [[4.8, 6.1]], [[4.6, 7.3]]])
    assert find_blocking(points, np.zeros(4), Paths()).tolist() == [True, True, True, False]


def pixels(x_m: float, left_m: float, right_m: float) -> list[float]:
    """A box whose lower edge lies on the road, x_m ahead, from left_m to right_m."""
    u = [500 - 500 * y / (x_m - 1) for y in (left_m, right_m)]
    return [u[0], 100.0, u[1], 300 + 500 * 1.5 / (x_m - 1)]


def test_the_lower_edge_meets_the_ground() -> None:
    points, seen = project_to_ground(np.array([pixels(21, 2, -1), [0, 0, 9, 300.0]]), CAMERA, POSE, Paths())
    assert seen.tolist() == [True, False], "at the horizon nothing meets the ground"
    assert points[0, 0] == pytest.approx([21, 2])
    assert points[0, -1] == pytest.approx([21, -1])
    lower = np.array(POSE)
    lower[2, 3] = 1.5 - 0.93
    same, _ = project_to_ground(np.array([pixels(21, 2, -1)]), CAMERA, lower, Paths(ground_m=-0.93))
    assert same[0] == pytest.approx(points[0])


def scenes(speeds: list[float | None]) -> Scenes:
    """Three objects: in the way, aside, at the horizon."""
    boxes = [pixels(16, 1, -1), pixels(16, 8, 6), [0, 0, 9, 290.0]]
    corners = ("x1_px", "y1_px", "x2_px", "y2_px")
    columns = {name: [box[n] for box in boxes] for n, name in enumerate(corners)}
    return Scenes(
        videos=pl.DataFrame({"video": ["a"], "scene": ["s"], "width_px": [1000], "height_px": [600]}),
        frames=pl.DataFrame(
            {"video": ["a"], "frame": [0], "ego_speed_kmh": speeds},
            schema_overrides={"ego_speed_kmh": pl.Float64},
        ),
        boxes=pl.DataFrame({"box": range(3), "video": ["a"] * 3, "frame": [0] * 3, **columns}).with_columns(
            corner_case=pl.lit(value=True)
        ),
        sensors=pl.DataFrame(
            {
                "scene": ["s"],
                "sensor": ["camera"],
                "from_frame": [0],
                "intrinsics": [CAMERA.ravel().tolist()],
                "ego_SE3_sensor": [POSE.ravel().tolist()],
            }
        ),
    )


def test_objects_that_stand_clear_are_not_asked_for() -> None:
    truth = add_blocking(scenes([50.0]))
    assert truth.boxes["blocks_path"].to_list() == [True, False, None]
    predictions = Predictions(
        boxes=truth.boxes.head(1).drop("corner_case", "blocks_path").with_columns(score=0.5)
    )
    found = evaluate(predictions, truth, CornerConfig(risk="blocking"))
    assert found.row("corner_ar")["n"] == 2, "what is not known is asked for"
    assert found.value("corner_ar50") == 0.5
    assert evaluate(predictions, truth).row("corner_ar")["n"] == 3
    assert "1 corner cases block no path and are not asked for" in found.notes
    with pytest.raises(InputError, match="no blocks_path"):
        evaluate(predictions, scenes([50.0]), CornerConfig(risk="blocking"))


def test_speeds_are_in_km_per_hour() -> None:
    """In three seconds 19.2 km/h reach 16 m."""
    for kmh, blocked in ((19.3, True), (19.1, False)):
        assert add_blocking(scenes([kmh])).boxes["blocks_path"].to_list() == [blocked, False, None]


def test_nine_points_of_an_edge_are_looked_at() -> None:
    points, seen = project_to_ground(np.array([pixels(21, 4, -4)]), CAMERA, POSE, Paths())
    assert points.shape == (1, 9, 2)
    np.testing.assert_allclose(points[0, :, 1], np.arange(4, -5, -1))
    np.testing.assert_allclose(points[0, :, 0], 21)
    behind = np.array(POSE)
    behind[0, 3] = -21.0  # the same edge, one metre behind the vehicle
    assert project_to_ground(np.array([pixels(21, 4, -4)]), CAMERA, behind, Paths())[1].tolist() == [False]
    assert seen.tolist() == [True]
    level = np.array(POSE)
    level[2, 3] = 0.0  # a camera that lies on the ground sees none of it, wherever it looks
    low = project_to_ground(np.array([pixels(21, 4, -4), [0, 0, 9, 100.0]]), CAMERA, level, Paths())
    assert low[1].tolist() == [False, False]


def test_a_video_takes_the_camera_that_it_names() -> None:
    truth = scenes([50.0])
    other = truth.sensors.with_columns(sensor=pl.lit("rear"))
    both = truth.with_tables(sensors=pl.concat([other, truth.sensors]))
    with pytest.raises(InputError, match="of no object it is known where it stands"):
        add_blocking(both)  # which of the two?
    named = both.with_tables(videos=both.videos.with_columns(sensor=pl.lit("camera")))
    assert add_blocking(named).boxes["blocks_path"].to_list() == [True, False, None]


def test_without_geometry_there_is_no_answer() -> None:
    for bare in (scenes([None]), scenes([50.0]).with_tables(sensors=scenes([50.0]).sensors.head(0))):
        with pytest.raises(InputError, match="of no object it is known where it stands"):
            add_blocking(bare)
    with pytest.raises(UsageError, match="width_m"):
        Paths(width_m=0)
