"""KITTI: classes kept as they are, calibration as poses, and each bad line named."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sets import SETS, maker

from roadaware.datasets import read
from roadaware.datasets.kitti import (
    CLASSES,
    parse_calibration,
    parse_label,
    parse_usual_labels,
    split_score,
)
from roadaware.datasets.sensor_tables import RowError
from roadaware.errors import FindingsError, InputError
from roadaware.geometry.poses import invert_pose
from roadaware.scenes.sensors import open_frame, open_points

SET, MADE = SETS["kitti"], maker("kitti")
REAL = os.environ.get("ROADAWARE_DATA_DIR", "")


@pytest.fixture
def folder(tmp_path):
    return SET.make(tmp_path / "set")


def matrix(scenes, sensor, column, video="training/000002"):
    row = scenes.sensors.filter((pl.col("scene") == video) & (pl.col("sensor") == sensor)).row(0, named=True)
    return np.array(row[column]).reshape(-1, 3 if column == "intrinsics" else 4)


def test_every_picture_is_a_video_with_its_sweep(folder):
    scenes = SET.read(folder)
    names = ["training/000000", "training/000001", "training/000002", "testing/000000"]
    assert scenes.videos["video"].to_list() == names
    assert scenes.videos["scene"].to_list() == names
    assert scenes.videos["height_px"].to_list() == [19, 20, 21, 19]
    assert scenes.videos["splits"].to_list() == [["default/train"]] * 3 + [["default/test"]]
    assert scenes.frames["annotated"].to_list() == [True, True, True, False]
    assert open_frame(scenes, folder, "training/000002", 0).shape == (21, 62, 3)
    points = open_points(scenes, folder, "training/000002", 0, "velodyne")
    np.testing.assert_array_equal(points.xyz, MADE.sweep(2)[:, :3])
    assert points.ring is None


def test_misc_and_what_is_not_cared_for_are_kept(folder):
    scenes = SET.read(folder)
    boxes = scenes.boxes.filter(video="training/000002").join(scenes.labels, on="box")
    assert [CLASSES[label] for label in boxes["label"]] == ["Misc", "Car", "DontCare"]
    assert boxes["ignore"].to_list() == [False, False, True]
    assert boxes["occlusion"].to_list() == ["none", "full", None]
    assert boxes["length_m"].to_list() == pytest.approx([2.37, 4.36, None])
    assert boxes["truncated_share"].to_list() == [0.0, 0.25, None]
    assert boxes.row(0, named=True)["x1_px"] == pytest.approx(8.79)


def test_poses_take_points_to_the_picture(folder):
    scenes = SET.read(folder)
    ego_camera, ego_lidar = (matrix(scenes, s, "ego_SE3_sensor") for s in ("image_2", "velodyne"))
    lens = matrix(scenes, "image_2", "intrinsics")
    # 10 m before the LiDAR the camera of the fixture is 0.27 m behind and 0.3 m to the left of it.
    seen = (invert_pose(ego_camera) @ ego_lidar @ [10, 0, 0, 1])[:3]
    np.testing.assert_allclose(seen, [0.3, -0.08, 9.73], atol=1e-5)
    np.testing.assert_allclose(
        (lens @ seen)[:2] / seen[2], [31 + 36 * 0.3 / 9.73, 9 - 36 * 0.08 / 9.73], atol=1e-4
    )
    np.testing.assert_allclose(ego_lidar[:3, 3], [0.81, -0.32, 0.8], atol=1e-6)


def test_a_part_alone_keeps_the_names(folder):
    scenes = SET.read(folder)
    for part in ("training", "testing"):
        alone = SET.read(folder / part)
        whole = scenes.videos.filter(pl.col("video").str.starts_with(part))
        assert alone.videos.equals(whole)
    assert SET.read(folder / "training").frames["path"][0] == "image_2/000000.png"


def test_a_picture_that_is_not_there_has_no_size(folder):
    (folder / "training" / "image_2" / "000002.png").unlink()
    assert SET.read(folder).videos.filter(video="training/000002")["width_px"].to_list() == [None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "the file is empty"),
        (b"no picture", "no PNG or JPEG"),
        (MADE.picture(1)[:20], "no PNG or JPEG"),
    ],
)
def test_a_damaged_picture_is_refused_and_its_frame_stays(folder, content, told):
    (folder / "training" / "image_2" / "000002.png").write_bytes(content)
    scenes = SET.read(folder)
    assert scenes.videos.filter(video="training/000002")["width_px"].to_list() == [None]
    assert "training/000002" in scenes.frames["video"]
    (row,) = scenes.rejected.to_dicts()
    assert (row["table"], row["file"]) == ("files", "training/image_2/000002.png")
    assert told in row["reason"]
    with pytest.raises(FindingsError, match="1 rejected rows or files"):
        SET.read(folder, strict=True)


def test_a_pipe_or_a_link_to_nowhere_in_place_of_a_picture_is_refused(folder):
    pictures = folder / "training" / "image_2"
    for number in (1, 2):
        (pictures / f"00000{number}.png").unlink()
    os.mkfifo(pictures / "000001.png")
    (pictures / "000002.png").symlink_to("nowhere.png")
    assert SET.read(folder).rejected["reason"].to_list() == ["not a regular file", "there is no such file"]


LINES = MADE.calibration().splitlines()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: [line for line in lines if not line.startswith("R0")], "R0_rect is missing"),
        (
            lambda lines: [line.rsplit(" ", 1)[0] if "P2" in line else line for line in lines],
            "has 11 numbers",
        ),
        (lambda lines: [line.replace("1.0", "nan", 1) for line in lines], "no finite number"),
        (lambda lines: [line.replace("3.6", "-3.6", 1) for line in lines], "P2 is no camera matrix"),
        (
            lambda lines: ["P2: 36 36 31 0 36 36 9 0 0 0 1 0" if "P2" in line else line for line in lines],
            "P2 is no camera matrix: its second row begins with 36",
        ),
        (
            lambda lines: ["P2: 1e-320 0 31 9 0 36 9 0 0 0 1 0" if "P2" in line else line for line in lines],
            "P2 is no camera matrix: its focal lengths",
        ),
        (lambda lines: [line.replace("1.0", "1.1", 1) for line in lines], "determinant"),
        (lambda lines: [line.replace("-1.0", "1.0", 1) for line in lines], "determinant -1"),
    ],
    ids=["missing", "11 numbers", "nan", "focal length", "singular", "tiny", "stretched", "mirrored"],
)
def test_bad_calibrations_are_refused(change, reason, folder):
    with pytest.raises(InputError, match=reason):
        parse_calibration(change(LINES), "calib.txt")
    path = folder / "training" / "calib" / "000002.txt"
    path.write_text("\n".join(change(LINES)))
    scenes = SET.read(folder)
    assert scenes.rejected["file"].to_list() == ["training/calib/000002.txt"]
    assert "training/000002" not in scenes.sensors["scene"].to_list()
    assert len(scenes.boxes) == 5


def test_the_names_of_the_raw_drives_are_known():
    other = [line.replace("R0_rect", "R_rect").replace("velo_to_cam:", "velo_cam:") for line in LINES]
    np.testing.assert_array_equal(
        parse_calibration(other, "a").ego_SE3_camera, parse_calibration(LINES, "a").ego_SE3_camera
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (MADE.MISC.rsplit(" ", 1)[0], "has 15 fields and this line 14"),
        (f"{MADE.MISC} 0.9", "these are predictions"),
        (MADE.MISC.replace("Misc", "Mist"), "class 'Mist'"),
        (MADE.MISC.replace("8.79", "nan"), "'nan' is no finite number"),
        (MADE.MISC.replace("8.79", "1_0"), "'1_0' is no finite number"),
        (MADE.MISC.replace("8.79", "88.79"), "upside down"),
        (MADE.MISC.replace("0.00 0", "0.00 7"), "occlusion is 0 to 3"),
    ],
)
def test_bad_lines_are_refused(line, reason):
    with pytest.raises(RowError, match=reason):
        parse_label(line)


@pytest.mark.skipif(not REAL, reason="ROADAWARE_DATA_DIR is not set")
def test_the_real_frames():
    root = Path(REAL) / "kitti"
    scenes = read("kitti", root, cache=False)
    assert scenes.rejected.is_empty()
    assert scenes.videos.select("width_px", "height_px").rows() == [(1224, 370), (1242, 375)]
    assert [CLASSES[label] for label in scenes.labels["label"]] == ["Pedestrian", "Misc", "Car"]
    points = open_points(scenes, root, "training/000002", 0, "velodyne").xyz.astype(float)
    camera = invert_pose(matrix(scenes, "image_2", "ego_SE3_sensor")) @ matrix(
        scenes, "velodyne", "ego_SE3_sensor"
    )
    seen = points @ camera[:3, :3].T + camera[:3, 3]
    pixels = seen @ matrix(scenes, "image_2", "intrinsics").T
    box = scenes.boxes.row(1, named=True)
    near = np.abs(seen - [box["x_m"], box["y_m"] - box["height_m"] / 2, box["z_m"]]).max(1) < 0.8
    inside = (pixels[near, 0] / pixels[near, 2] > box["x1_px"]) & (
        pixels[near, 0] / pixels[near, 2] < box["x2_px"]
    )
    assert near.sum() > 200
    assert inside.mean() > 0.99


WORDS = (
    "1_0", "nan", "inf", "-inf", "1e400", "", " ", "+3", ".5", "7.", "1e2", "0x1f", "²", "-1000", "-10", "2000000", "Car",
    "1,5",
)  # fmt: skip


@pytest.mark.parametrize("predicted", [False, True])
def test_lines_read_at_once_are_those_read_one_by_one(predicted: bool) -> None:
    rng = random.Random(5)  # noqa: S311
    lines = []
    for _ in range(400):
        x, y = rng.uniform(0, 900), rng.uniform(0, 300)
        words = [
            rng.choice(("Car", "Misc", "DontCare", "car")),
            "0.25",
            str(rng.choice((0, 1, 2, 3, -1, 4))),
            "-1.5",
        ]
        words += [f"{each:.2f}" for each in (x, y, x + rng.uniform(-5, 90), y + 20)]
        words += [f"{rng.uniform(-5, 9):.2f}" for _ in range(7)] + (["0.5"] if predicted else [])
        for _ in range(rng.choice((0, 0, 1, 2))):
            words[rng.randrange(1, len(words))] = rng.choice(WORDS)
        lines.append(" ".join(words[: rng.choice((None, None, None, -1))]))
    found = parse_usual_labels(pl.Series("line", lines), predicted=predicted)
    taken = {row.pop("place"): row for row in found.iter_rows(named=True)}
    assert 100 < len(taken) < 350
    for place, line in enumerate(lines):
        try:
            first, score = split_score(line, 15) if predicted else (line, None)
            label, row = parse_label(first)
        except RowError:
            assert place not in taken, line
            continue
        due = {"label": label, **row, **({} if score is None else {"score": score})}
        assert taken.get(place, due) == due, line
        # What is written as KITTI writes it is read at once.
        assert place in taken or set(WORDS) & set(line.split(" ")), line
