"""ONCE: sequences with calibration and poses, boxes that cameras see, and each bad row named."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from sets import SETS, maker

from roadaware.datasets.sensor_tables import DISTORTION
from roadaware.errors import InputError
from roadaware.geometry.poses import invert_pose
from roadaware.scenes.sensors import open_frame, open_points

SET, MADE = SETS["once"], maker("once")


@pytest.fixture
def folder(tmp_path):
    return SET.make(tmp_path / "set")


def edited(folder, change):
    path = folder / MADE.MAIN
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return folder


def test_cameras_of_sequences_are_videos(folder):
    scenes = SET.read(folder)
    assert scenes.videos["video"].to_list() == [f"{name}/cam01" for name in ("000027", "000076", "000112")]
    assert scenes.videos["splits"].to_list() == [["default/val"], ["default/train"], ["default/raw_small"]]
    assert scenes.videos.select("width_px", "height_px", "n_frames").row(1) == (96, 51, 3)
    assert scenes.videos.select("weather", "period").row(1) == ("sunny", "morning")
    assert scenes.frames.filter(video=MADE.VIDEO)["t_s"].to_list() == [0.0, 0.5, 1.0]
    assert scenes.frames.group_by("video").agg(pl.col("annotated").all()).sort("video")[
        "annotated"
    ].to_list() == [
        True,
        True,
        False,
    ]
    assert open_frame(scenes, folder, MADE.VIDEO, 2).shape == (51, 96, 3)
    points = open_points(scenes, folder, "000076", 1, "lidar_roof")
    assert (len(points), points.ring) == (5, None)
    assert set(scenes.sensors.filter(sensor="lidar_roof")["layout"]) == {"Pandar40P"}


def test_boxes_that_a_camera_does_not_see_are_no_boxes(folder):
    scenes = SET.read(folder)
    held = scenes.boxes.filter(video=MADE.VIDEO)
    assert len(held) == 3
    row = held.row(0, named=True)
    assert [row[name] for name in ("x1_px", "y1_px", "x2_px", "y2_px")] == [10.5, 12.0, 20.5, 30.25]
    assert (row["y_m"], row["length_m"]) == (-12.5, pytest.approx(4.3))


def test_poses_have_x_ahead(folder):
    scenes = SET.read(folder)
    mounts = dict(scenes.sensors.filter(scene="000076").select("sensor", "ego_SE3_sensor").iter_rows())
    camera, lidar = (np.array(mounts[name]).reshape(4, 4) for name in ("cam01", "lidar_roof"))
    # The LiDAR's y points back: 10 m ahead of it is 9.5 m before the camera, 0.25 m above its axis.
    np.testing.assert_allclose(lidar @ [0, -10, 0, 1], [10, 0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(invert_pose(camera) @ lidar @ [0, -10, 0, 1], [0, -0.25, 9.5, 1], atol=1e-5)
    poses = scenes.sweeps.filter(scene="000076")["world_SE3_ego"].to_list()
    assert poses[2] is None
    # World axes are those of the first LiDAR, whose y points back.
    np.testing.assert_allclose(np.array(poses[1]).reshape(4, 4)[:3, 3], [0, -3, 0], atol=1e-6)
    assert scenes.meta.notes["left_out"] == {"poses of frames without one": 3, DISTORTION: 3}


@pytest.mark.parametrize(
    ("given", "told"),
    [([-0.34, 0.12, 0, 0, 0], 3), ([[0.0, 0.1]], 3), ([0.0] * 8, 2), (None, 2), ("none", 2)],
)
def test_lenses_that_distort_are_told(folder, given, told):
    edited(folder, lambda content: content["calib"]["cam01"].update(distortion=given))
    notes = SET.read(folder).meta.notes
    assert (notes["left_out"][DISTORTION], notes["warnings"]) == (told, [])


FILES = {
    "no calibration": (lambda c: c.pop("calib"), "there is no calibration"),
    "a camera without its matrix": (lambda c: c["calib"]["cam01"].pop("cam_intrinsic"), "3 rows of 3"),
    "a mirrored camera": (lambda c: c["calib"]["cam01"]["cam_to_velo"][0].__setitem__(0, 1.0), "no pose"),
    "no frames": (lambda c: c.update(frames=[]), "no camera or no frame"),
    "a frame without a name": (lambda c: c["frames"][0].pop("frame_id"), "frame_id of frame 0"),
    "a frame whose name is a path": (lambda c: c["frames"][0].update(frame_id="../1"), "frame_id of frame 0"),
    "two frames of one name": (lambda c: c["frames"].append(c["frames"][0]), "two frames are called"),
    "a pose of six numbers": (lambda c: c["frames"][0]["pose"].pop(), "seven finite numbers"),
    "a rotation that is none": (
        lambda c: c["frames"][0].update(pose=[0, 0, 0, 2, 0, 0, 0]),
        "no unit length",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_sequence_is_refused(folder, name):
    change, reason = FILES[name]
    scenes = SET.read(edited(folder, change))
    assert MADE.VIDEO not in scenes.videos["video"].to_list()
    assert reason in scenes.rejected["reason"][0]
    with pytest.raises(InputError, match=reason):
        SET.read(SET.alone(folder))


ROWS = {
    "another class": (lambda a: a["names"].__setitem__(0, "Tram"), 'class "Tram"'),
    "three numbers": (lambda a: a["boxes_2d"]["cam01"][0].pop(), "four numbers"),
    "too few boxes": (lambda a: a["boxes_2d"]["cam01"].pop(), "should be 2"),
    "no names": (lambda a: a.pop("names"), "no names, boxes_3d and boxes_2d"),
}


@pytest.mark.parametrize("name", ROWS)
def test_bad_boxes_are_refused(folder, name):
    change, reason = ROWS[name]
    scenes = SET.read(edited(folder, lambda content: change(content["frames"][0]["annos"])))
    assert len(scenes.boxes) == 5
    assert reason in scenes.rejected["reason"][0]
    assert "frame 0" in scenes.rejected["item"][0]


def test_a_sequence_that_is_a_link_out_costs_no_other(tmp_path):
    root = SETS["once"].make(tmp_path / "once")
    (root / "data" / "000076").rename(tmp_path / "elsewhere")
    (root / "data" / "000076").symlink_to(tmp_path / "elsewhere")
    scenes = SETS["once"].read(root)
    assert set(scenes.videos["scene"]) == {"000027", "000112"}
    assert "a link leads out" in scenes.rejected["reason"][0]
