"""nuScenes: tables and keyframes give cameras, sweeps and poses that fit; lost tokens are named."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sets import SETS, maker

from roadaware.datasets import read
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.geometry.poses import invert_pose
from roadaware.scenes.sensors import open_frame, open_points

SET, MADE = SETS["nuscenes"], maker("nuscenes")
REAL = os.environ.get("ROADAWARE_DATA_DIR", "")


def pose(values):
    return np.array(values, dtype=np.float64).reshape(4, 4)


def camera_from_lidar(scenes, video, frame=0):
    """(4, 4) by way of the world."""
    shot = scenes.frames.filter((pl.col("video") == video) & (pl.col("frame") == frame)).row(0, named=True)
    scene, sensor = scenes.videos.filter(video=video).select("scene", "sensor").row(0)
    mounts = dict(scenes.sensors.filter(scene=scene).select("sensor", "ego_SE3_sensor").iter_rows())
    sweep = scenes.sweeps.filter((pl.col("scene") == scene) & (pl.col("frame") == frame)).row(0, named=True)
    world_camera = pose(shot["world_SE3_ego"]) @ pose(mounts[sensor])
    return invert_pose(world_camera) @ pose(sweep["world_SE3_ego"]) @ pose(mounts["LIDAR_TOP"])


@pytest.fixture
def folder(tmp_path):
    return SET.make(tmp_path / "keyframes")


@pytest.fixture
def tabled(tmp_path):
    return MADE.tables(tmp_path / "tables")


def test_a_keyframe_is_a_scene(folder):
    scenes = SET.read(folder)
    assert scenes.videos["video"].to_list()[0] == MADE.VIDEO
    assert scenes.videos.select("width_px", "height_px", "sensor").row(0) == (64, 36, "CAM_FRONT")
    labels = scenes.meta.vocabularies["object"]
    assert [labels[label] for label in scenes.labels["label"]] == ["barrier", "car"] * 2
    assert scenes.boxes.row(0, named=True)["depth_m"] == 12.25
    assert (scenes.frames["t_s"][0], scenes.sweeps["t_s"][0]) == (0.0, 0.25)
    assert open_frame(scenes, folder, MADE.VIDEO, 0).shape == (36, 64, 3)
    points = open_points(scenes, folder, MADE.MOMENT, 0, "LIDAR_TOP")
    assert points.ring is not None
    assert points.ring.tolist() == [0, 1, 2, 0, 1, 2]


def test_what_the_vehicle_went_between_sweep_and_picture_is_in_the_poses(folder):
    np.testing.assert_allclose(
        camera_from_lidar(SET.read(folder), MADE.VIDEO), pose(MADE.CAMERA_SE3_LIDAR), atol=1e-5
    )


def test_poses_in_map_coordinates_lose_nothing(tabled):
    near = camera_from_lidar(SET.read(tabled), "scene-0061/CAM_FRONT", 1)
    path = tabled / "v1.0-mini" / "ego_pose.json"
    rows = json.loads(path.read_text())
    for row in rows:
        row["translation"] = np.add(row["translation"], [691_000.123, 5_336_000.456, 520.7]).tolist()
        row["translation"][0] += 0.3 * row["token"].endswith("front")
    path.write_text(json.dumps(rows))
    far = camera_from_lidar(SET.read(tabled), "scene-0061/CAM_FRONT", 1)
    np.testing.assert_allclose(near[:3, 3] - far[:3, 3], [0, 0, 0.3], atol=1e-6)


CHANGES = {
    "a mirrored pose": (
        lambda k: k["images"]["CAM_FRONT"]["cam2ego"][0].__setitem__(2, -1.0),
        "cam2ego.*pose",
    ),
    "a short pose": (lambda k: k["ego2global"].pop(), "ego2global should be 4 rows"),
    "no camera matrix": (
        lambda k: k["images"]["CAM_FRONT"]["cam2img"][0].__setitem__(0, 0),
        "no camera matrix",
    ),
    "a path that leads out": (lambda k: k["lidar_points"].update(lidar_path="../x"), "path should lie"),
    "points of six numbers": (lambda k: k["lidar_points"].update(num_pts_feats=6), "4 or 5 numbers"),
    "no images": (lambda k: k.pop("images"), "there is no images"),
    "no token": (lambda k: k.update(token=7), "token should be a text"),
    "the token of another": (
        lambda k: k.__setitem__("token", "39586f9d59004284a7114a68825e8eec"),
        "second keyframe",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_damaged_keyframe_is_refused_whole(folder, name):
    change, reason = CHANGES[name]
    path = folder / MADE.MAIN
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content).replace("NaN", "0.0"))
    scenes = SET.read(folder)
    assert len(scenes.videos) == 1
    assert len(scenes.sensors) == 2
    refused = scenes.rejected.filter(table="files")
    assert len(refused) == 1
    assert re.search(reason, refused["reason"][0])


def test_boxes_of_no_class_or_no_camera_are_refused(folder):
    path = folder / MADE.MAIN
    content = json.loads(path.read_text())
    content["cam_instances"]["CAM_FRONT"][0]["bbox_label"] = 9
    content["cam_instances"]["CAM_BACK"] = [{"bbox": [1, 2, 3, 4], "bbox_label": 0}]
    path.write_text(json.dumps(content))
    reasons = SET.read(folder).rejected["reason"].to_list()
    assert any("the class 9" in reason for reason in reasons)
    assert any("no camera 'CAM_BACK'" in reason for reason in reasons)


def test_not_a_number_is_refused_but_for_unknown_speeds(folder):
    path = folder / MADE.MAIN
    path.write_text(path.read_text().replace("12.25", "NaN", 1))
    assert "NaN is no number" in SET.read(folder).rejected["reason"][0]


def test_tables_are_videos_of_cameras(tabled):
    scenes = SET.read(tabled)
    assert scenes.videos["video"].to_list() == ["scene-0061/CAM_FRONT", "scene-0103/CAM_FRONT"]
    assert scenes.videos["n_frames"].to_list() == [2, 1]
    assert scenes.videos["splits"].to_list() == [["default/mini"]] * 2
    assert set(scenes.sensors["sensor"]) == {"CAM_FRONT", "LIDAR_TOP"}
    assert len(scenes.sensors) == 4
    assert scenes.sweeps.select("scene", "frame", "path").rows() == [
        ("scene-0061", 0, "samples/top/0.bin"),
        ("scene-0061", 1, "samples/top/1.bin"),
        ("scene-0103", 0, "samples/top/2.bin"),
    ]
    assert scenes.frames["t_s"].to_list() == [0.0, 0.5, 0.0]
    assert scenes.meta.vocabularies["object"] == ("vehicle.car",)
    assert scenes.tubes["name"].to_list() == ["i-car"]
    assert scenes.rejected.is_empty()


def test_boxes_are_what_the_camera_sees_of_boxes_in_space(tabled):
    boxes = SET.read(tabled).boxes
    # 12 m before the camera, 4 m long, 2 m wide, 1 m high: the near side is 10 m away; then 8 m.
    assert boxes["depth_m"].to_list() == pytest.approx([12.0, 10.0], abs=1e-4)
    assert boxes["n_lidar_points"].to_list() == [7, 7]
    corners = boxes.select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy()
    np.testing.assert_allclose(corners, [[27, 15.5, 37, 20.5], [25.75, 14.875, 38.25, 21.125]], atol=1e-3)


def test_poses_of_tables_lead_from_lidar_to_camera(tabled):
    found = camera_from_lidar(SET.read(tabled), "scene-0061/CAM_FRONT", 1)
    # The LiDAR's y looks ahead, where the camera's z does.
    np.testing.assert_allclose(found @ [0, 10, 0, 1], [0, -0.34, 9.24, 1], atol=1e-5)


BROKEN = {
    "a sample that is not there": (
        "sample_data",
        lambda rows: rows[0].__setitem__("sample_token", "x"),
        'sample "x"',
    ),
    "a pose that is not there": (
        "sample_data",
        lambda rows: rows[0].__setitem__("ego_pose_token", "x"),
        'ego_pose "x"',
    ),
    "a category that is not there": (
        "instance",
        lambda rows: rows[0].__setitem__("category_token", "x"),
        'category "x"',
    ),
    "a scene that is not there": (
        "sample",
        lambda rows: rows[0].__setitem__("scene_token", "x"),
        'scene "x"',
    ),
    "a quaternion of zeros": (
        "ego_pose",
        lambda rows: rows[0].update(rotation=[0, 0, 0, 0]),
        "no unit length",
    ),
    "a token twice": ("category", lambda rows: rows.append(rows[0]), "of another"),
    "a missing column": ("scene", lambda rows: rows[0].pop("name"), "row 0 has no name"),
    "a text for a number": ("sample", lambda rows: rows[0].update(timestamp="1"), "row 0 has no timestamp"),
    "a path that leads out": ("sample_data", lambda rows: rows[1].update(filename="/etc/x"), "leads out"),
    "a size of two numbers": (
        "sample_annotation",
        lambda rows: rows[0].update(size=[1, 2]),
        "size should be 3",
    ),
    "a time beyond all": (
        "sample_data",
        lambda rows: rows[0].update(timestamp=10**400),
        "row 0 has no timestamp",
    ),
    "rows and columns of a camera exchanged": (
        "calibrated_sensor",
        lambda rows: rows[0].update(camera_intrinsic=[[50, 0, 0], [0, 50, 0], [32, 18, 1]]),
        r"c-front.*last row is \[32",
    ),
    "two scenes of one name": (
        "scene",
        lambda rows: rows[1].update(name="scene-0061"),
        "two scenes are called",
    ),
    "two sweeps of a sample": (
        "sample_data",
        lambda rows: rows.append({**rows[1], "token": "again"}),
        "sample_data.json: sample .m-0. has two keyframes of LIDAR_TOP",
    ),
    "no row": ("sensor", lambda rows: rows.__setitem__(0, None), "row 0 should be an object"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_tables_are_named(tabled, name):
    table, change, reason = BROKEN[name]
    path = tabled / "v1.0-mini" / f"{table}.json"
    rows = json.loads(path.read_text())
    change(rows)
    path.write_text(json.dumps(rows))
    with pytest.raises(InputError, match=reason) as caught:
        SET.read(tabled)
    assert "v1.0-mini" in str(caught.value)


@pytest.mark.parametrize("cameras", [True, False])
def test_versions_beside_each_other_hold_a_scene_once(tabled, cameras):
    if not cameras:
        path = tabled / "v1.0-mini" / "sensor.json"
        path.write_text(path.read_text().replace('"camera"', '"radar"'))
    alone = SET.read(tabled)
    shutil.copytree(tabled / "v1.0-mini", tabled / "v1.0-trainval")
    both = SET.read(tabled)
    assert len(both.sweeps) > 0
    assert len(both.videos) == (2 if cameras else 0)
    for video in both.videos.iter_rows(named=True):
        assert video["splits"] == ["default/mini", "default/trainval"]
    assert both.boxes.equals(alone.boxes)
    assert both.sweeps.equals(alone.sweeps)


def test_half_a_character_in_a_table_is_escaped(tabled):
    for table in ("scene", "sensor", "category", "sample_data", "instance", "sample_annotation"):
        path = tabled / "v1.0-mini" / f"{table}.json"
        path.write_text(
            re.sub("scene-0061|CAM_FRONT|vehicle.car|top/0.bin|i-car", r"\\ud800\g<0>", path.read_text())
        )
    scenes = SET.read(tabled)
    assert scenes.videos["video"][0] == r"\ud800scene-0061/\ud800CAM_FRONT"
    assert scenes.sweeps["path"][0] == r"samples/\ud800top/0.bin"
    assert scenes.meta.vocabularies["object"] == (r"\ud800vehicle.car",)


def test_boxes_without_a_size_are_refused_one_by_one(tabled):
    path = tabled / "v1.0-mini" / "sample_annotation.json"
    rows = json.loads(path.read_text())
    rows[0]["size"] = [-2.0, 4, 1]
    path.write_text(json.dumps(rows))
    scenes = SET.read(tabled)
    assert len(scenes.boxes) == 1
    assert scenes.rejected.select("file", "item").rows() == [
        ("v1.0-mini/sample_annotation.json", "annotation a-0")
    ]
    assert "above 0" in scenes.rejected["reason"][0]


def test_a_missing_or_damaged_table_is_named(tabled):
    path = tabled / "v1.0-mini" / "scene.json"
    path.write_text("{}")
    with pytest.raises(InputError, match=r"scene\.json: a table should be a list"):
        SET.read(tabled)
    path.unlink()
    with pytest.raises(InputError, match=r"scene\.json: there is no such file"):
        SET.read(tabled)
    (tabled / "v1.0-mini" / "sample_data.json").unlink()
    with pytest.raises(DatasetNotFoundError, match="nuScenes needs its annotations"):
        SET.read(tabled)


@pytest.mark.skipif(not REAL, reason="ROADAWARE_DATA_DIR is not set")
def test_the_real_keyframe():
    root = Path(REAL) / "nuscenes"
    scenes = read("nuscenes", root, cache=False)
    assert scenes.rejected.is_empty()
    assert scenes.videos.select("width_px", "height_px").unique().rows() == [(1600, 900)]
    assert len(scenes.boxes) == 84
    content = json.loads((root / "keyframe.json").read_text())
    for video, sensor in scenes.videos.select("video", "sensor").iter_rows():
        there = pose(content["images"][sensor]["lidar2cam"])
        np.testing.assert_allclose(camera_from_lidar(scenes, video), there, atol=1e-4)
    points = open_points(scenes, root, scenes.videos["scene"][0], 0, "LIDAR_TOP")
    assert (len(points), set(points.ring.tolist())) == (34688, set(range(32)))
