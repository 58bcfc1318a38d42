"""Captures of a set: every image with its sweep, by the poses in the tables; others are counted."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

from planted import Thing, World, ahead, corners_in, sweep
from sets import SETS, maker

from roadaware.corner_cases.copg import propose
from roadaware.corner_cases.loader import Captures, Moment
from roadaware.corner_cases.sources import NAMES, read_true_semantics, select_common_objects
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import iou
from roadaware.geometry.poses import invert_pose
from roadaware.io.images import MaskWriter
from roadaware.scenes.sensors import MEDIA
from roadaware.scenes.tables import Scenes

WORLD = World((Thing(10, 1), Thing(16, -4, width=2, height=1.5)), rings=64, columns=900)


def listed(pose):
    return [float(each) for each in np.asarray(pose).ravel()]


def moved(x):
    pose = np.eye(4)
    pose[0, 3] = x
    return pose


@pytest.fixture
def made(tmp_path):
    """One image and one sweep, taken when the vehicle was 2 m further ahead."""
    points, ring, _ = sweep(WORLD)
    rows = np.column_stack([points, np.zeros(len(points)), ring]).astype("<f4")
    (tmp_path / "a.bin").write_bytes(rows.tobytes())
    Image.new("RGB", (640, 480)).save(tmp_path / "a.png")
    camera = ahead()
    mount = invert_pose(camera.camera_SE3_lidar)
    lidar = {"scene": "s", "sensor": "top", "from_frame": 0, "ego_SE3_sensor": listed(np.eye(4))}
    front = {"scene": "s", "sensor": "front", "from_frame": 0, "ego_SE3_sensor": listed(moved(-2.0) @ mount)}
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["v", "w"], "scene": ["s", "s"], "sensor": ["front", "front"]}),
        frames=pl.DataFrame(
            {
                "video": ["v", "w", "w"],
                "frame": [0, 0, 1],
                "path": ["a.png", "a.png", "a.png"],
                "world_SE3_ego": [listed(moved(5)), None, None],
            },
            schema_overrides={"world_SE3_ego": pl.List(pl.Float32)},
        ),
        sensors=pl.DataFrame(
            [lidar | {"layout": "64 rings x 900 columns"}, front | {"intrinsics": listed(camera.intrinsics)}],
            infer_schema_length=None,
        ),
        sweeps=pl.DataFrame(
            {
                "scene": ["s"],
                "sensor": ["top"],
                "frame": [0],
                "path": ["a.bin"],
                "world_SE3_ego": [listed(moved(3))],
            }
        ),
    )
    return scenes, tmp_path


def test_pictures_with_a_sweep_are_opened_and_others_counted(made):
    scenes, root = made
    captures = Captures(scenes, root)
    assert captures.moments == [Moment("v", 0, "s", "front", "top"), Moment("w", 0, "s", "front", "top")]
    assert dict(captures.skipped) == {"no sweep": 1}
    with pytest.raises(UsageError, match="no sweep of 'top' in frame 1 of 's'"):
        captures.open(Moment("w", 1, "s", "front", "top"))
    found = captures.open(captures.moments[0])
    assert (found.camera.width_px, found.camera.height_px) == (640, 480)
    assert found.layout == "64 rings x 900 columns"
    assert found.up == (0.0, 0.0, 1.0)


def test_the_way_leads_through_the_world_where_it_is_known(made):
    scenes, root = made
    captures = Captures(scenes, root)
    by_world, by_vehicle = (captures.open(moment).camera.camera_SE3_lidar for moment in captures.moments)
    # The camera sits 2 m behind the LiDAR; when the image was taken the vehicle was 2 m further ahead.
    np.testing.assert_allclose(by_world, ahead().camera_SE3_lidar, atol=1e-6)
    np.testing.assert_allclose(by_vehicle @ [10, 0, 0, 1], [0, 0, 12, 1], atol=1e-6)
    found = propose(captures.open(captures.moments[0]))
    wanted = [corners_in(ahead(), WORLD, thing) for thing in WORLD.things]
    assert (iou(wanted, found.boxes.edges).max(1) > 0.8).all()


def test_the_pose_of_the_camera_itself_counts_first(made):
    scenes, root = made
    own = pl.Series(
        "world_SE3_camera", [listed(moved(3) @ invert_pose(ahead().camera_SE3_lidar)), None, None]
    )
    scenes = scenes.with_tables(
        frames=scenes.frames.with_columns(own, world_SE3_ego=pl.lit(None, pl.List(pl.Float32)))
    )
    captures = Captures(scenes, root)
    found = captures.open(captures.moments[0])
    np.testing.assert_allclose(found.camera.camera_SE3_lidar, ahead().camera_SE3_lidar, atol=1e-6)


def test_calibration_may_change_on_the_way(made):
    scenes, root = made
    later = scenes.sensors.with_columns(from_frame=pl.lit(1, pl.Int64))
    nothing = Captures(scenes.with_tables(sensors=later), root)
    assert nothing.moments == []
    assert dict(nothing.skipped) == {"no calibration": 2, "no sweep": 1}
    with pytest.raises(UsageError, match="no calibration in frame 0"):
        nothing.open(Moment("v", 0, "s", "front", "top"))
    both = scenes.with_tables(sensors=pl.concat([later, scenes.sensors]))
    assert len(Captures(both, root).moments) == 2


def test_cameras_that_are_not_named(made):
    scenes, root = made
    unnamed = scenes.with_tables(videos=scenes.videos.drop("sensor"))
    assert [moment.camera for moment in Captures(unnamed, root).moments] == ["front", "front"]
    second = scenes.sensors.filter(sensor="front").with_columns(sensor=pl.lit("back"))
    two = unnamed.with_tables(sensors=pl.concat([scenes.sensors, second]))
    captures = Captures(two, root)
    assert captures.moments == []
    assert captures.skipped["no camera is named"] == 2


def test_poses_that_are_none_are_refused(made):
    scenes, root = made
    for bad, reason in ((np.diag([1.0, 1, -1, 1]), "determinant -1"), (np.eye(3), "no 16 numbers")):
        rows = scenes.sensors.with_columns(
            pl.when(pl.col("sensor") == "top")
            .then(pl.lit(listed(bad), pl.List(pl.Float32)))
            .otherwise(pl.col("ego_SE3_sensor"))
            .alias("ego_SE3_sensor")
        )
        captures = Captures(scenes.with_tables(sensors=rows), root)
        with pytest.raises(InputError, match=reason):
            captures.open(captures.moments[0])


def test_native_sets_can_be_opened(tmp_path):
    for name in ("kitti", "nuscenes", "once"):
        root = SETS[name].make(tmp_path / name)
        captures = Captures(SETS[name].read(root), root)
        assert captures.moments
        found = propose(captures.open(captures.moments[0]))
        assert found.geometry.ground.plane is None
    assert maker("once").VIDEO in {moment.video for moment in captures.moments}


def test_truth_of_made_up_scenes_stands_for_a_segmenter_and_a_detector(tmp_path):
    with (
        MaskWriter(tmp_path / MEDIA["instances"]) as one,
        MaskWriter(tmp_path / MEDIA["semantics"], 8) as two,
    ):
        one.write(np.zeros((4, 6), np.uint16))
        two.write(np.array([[1, 2, 20, 19, 11, 14]] * 4, np.uint8))
    boxes = {"box": [0, 1], "video": ["v", "v"], "frame": [0, 0], "corner_case": [True, False]}
    corners = {"x1_px": [0.0, 1], "y1_px": [0.0, 1], "x2_px": [2.0, 3], "y2_px": [2.0, 3]}
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["v"], "path": ["film.mp4"]}), boxes=pl.DataFrame(boxes | corners)
    )
    found = read_true_semantics(scenes, tmp_path, "v", 0)
    shown = [found.names[code] for code in found.classes[0]]
    assert shown == ["road", "sidewalk", "road", "object", "sky", "car"]
    assert NAMES[0] == "void"
    common = select_common_objects(scenes, "v", 0)
    np.testing.assert_array_equal(common.boxes, [[1, 1, 3, 3]])
    assert common.scores.tolist() == [1.0]
