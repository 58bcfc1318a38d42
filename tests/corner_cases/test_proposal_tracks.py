"""Proposals over time: planted things that stand and move, what standing ones lend, and cuboids for other tools."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from planted import ahead
from scipy.spatial.transform import Rotation

from roadaware.corner_cases.captures import Camera
from roadaware.corner_cases.cuboids import compute_cuboid_corners
from roadaware.corner_cases.tracking import (
    TRACK_FEATURES,
    describe_tracks,
    estimate_chances,
    project_cuboid,
    track_proposals,
)
from roadaware.errors import UsageError
from roadaware.formats.cuboid_labels import (
    CUBOID,
    build_nuscenes_results,
    format_kitti_labels,
    write_cuboids,
)
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions

CAMERA = ahead()


@dataclass(frozen=True)
class Moment:
    """An image of the planted drive."""

    video: str
    frame: int


class Drive:
    """Four sweeps, half a second apart, of a vehicle that goes 4 m ahead from one to the next."""

    moments = tuple(Moment("a", frame) for frame in range(4))

    def __init__(self, posed: bool = True) -> None:
        self.posed = posed

    def world_from_lidar(self, moment: Moment) -> np.ndarray | None:
        pose = np.eye(4)
        pose[0, 3] = 4.0 * moment.frame
        return pose if self.posed else None

    def time_s(self, moment: Moment) -> float:
        return 0.5 * moment.frame

    def camera(self, _: Moment) -> Camera:
        return CAMERA


def planted(where, frames, score=0.5, returns=20):
    """Rows of a thing of 1 x 0.6 x 0.8 m whose place in the world is a function of the time in seconds."""
    rows = []
    for frame in frames:
        x, y = where(0.5 * frame)
        cuboid = np.array([x - 4.0 * frame, y, -1.3, 1.0, 0.6, 0.8, 0.0])
        edges = project_cuboid(cuboid, CAMERA)
        rows.append(
            {
                "video": "a",
                "frame": frame,
                **dict(zip(CORNERS, edges.tolist(), strict=True)),
                "score": score,
                "distance_m": float(np.hypot(cuboid[0], y)),
                "n_returns": returns,
                **dict(zip(CUBOID, cuboid.tolist(), strict=True)),
                "corner_case": True,
            }
        )
    return rows


def track(rows, **options):
    table = (
        pl.DataFrame(rows).sort("frame", maintain_order=True).with_row_index("box").cast({"box": pl.Int64})
    )
    return track_proposals(Predictions(boxes=table), Drive(), **options)


def test_what_stands_is_one_thing_and_what_moves_is_told():
    standing = planted(lambda t: (30.0, 2.0), range(4))
    moving = planted(lambda t: (40.0 - 1.5 * t, -3.0), range(4))
    found = track(standing + moving)
    assert len(found.tubes) == 2
    by_y = {
        True: found.boxes.filter(pl.col("y_m") > 0),
        False: found.boxes.filter(pl.col("y_m") < 0),
    }
    for stands, part in by_y.items():
        assert part["tube"].n_unique() == 1
        assert part["moving"].to_list() == [not stands] * 4
        np.testing.assert_allclose(part["speed_m_s"], 0.0 if stands else 1.5, atol=1e-3)
        np.testing.assert_allclose(part["persistence"], 1.0)
        np.testing.assert_allclose(part["score"], 0.5)
    tubes = found.tubes.sort("moving")
    np.testing.assert_allclose(tubes["velocity_x_m_s"], [0.0, -1.5], atol=1e-3)
    np.testing.assert_allclose(tubes.row(0, named=True)["world_x_m"], 30.0)
    assert tubes["sweeps"].to_list() == [4, 4]


def test_a_standing_thing_lends_its_cuboid_to_sweeps_that_missed_it():
    found = track(planted(lambda t: (30.0, 2.0), [0, 2, 3]))
    carried = found.boxes.filter("carried")
    assert carried["frame"].to_list() == [1]
    expected = project_cuboid(np.array([26.0, 2.0, -1.3, 1.0, 0.6, 0.8, 0.0]), CAMERA)
    np.testing.assert_allclose(carried.select(CORNERS).to_numpy()[0], expected, atol=1e-3)
    np.testing.assert_allclose(carried["persistence"], 0.75)
    np.testing.assert_allclose(carried["score"], 0.5 * 0.5 * 0.75)
    seen = found.boxes.filter(~pl.col("carried"))
    np.testing.assert_allclose(seen["score"], 0.5 * (1 + 0.75) / 2)
    assert not track(planted(lambda t: (30.0, 2.0), [0, 2, 3]), carry=False).boxes["carried"].any()


def test_a_chance_is_of_a_thing_and_all_of_its_boxes_have_it():
    both = planted(lambda t: (30.0, 2.0), [0, 2, 3]) + planted(
        lambda t: (20.0, -4.0), [0, 1, 2, 3], score=0.9
    )
    found = track(both)
    chances = found.boxes.group_by("tube").agg(pl.col("chance").unique())["chance"].to_list()
    assert [len(each) for each in chances] == [1, 1]
    assert all(0 < each[0] < 1 for each in chances)
    table = describe_tracks(found.boxes)
    missed = table.sort("sweeps").row(0, named=True)
    # Three boxes of 0.5, times (1 + 0.75) / 2; the one that was carried to the second sweep is not seen.
    assert missed["score"] == pytest.approx(np.log1p(0.4375))
    assert missed["scores"] == pytest.approx(np.log1p(3 * 0.4375))
    assert (missed["sweeps"], missed["returns"]) == pytest.approx((np.log1p(3), np.log1p(20)))
    assert (missed["persistence"], missed["moving"]) == (0.75, 0.0)
    assert missed["height_m"] == pytest.approx(np.log1p(0.8))
    assert table.columns == ["tube", *TRACK_FEATURES]
    # What is not known of a thing (no cuboid) counts as nothing, and a thing that nobody saw has no chance.
    unknown = found.boxes.with_columns(height_m=pl.lit(float("nan")))
    assert estimate_chances(unknown)["chance"].is_between(0, 1).all()
    assert (
        estimate_chances(found.boxes.with_columns(carried=pl.lit(value=True)))["chance"].to_list()
        == [0.0] * 8
    )


def test_a_thing_seen_once_and_one_that_moves_lend_nothing():
    assert not track(planted(lambda t: (30.0, 2.0), [1])).boxes["carried"].any()
    moving = track(planted(lambda t: (40.0 - 1.5 * t, -3.0), [0, 1, 3]))
    assert not moving.boxes["carried"].any()
    assert moving.boxes["tube"].n_unique() == 1


def test_things_far_apart_or_of_other_sizes_are_not_one():
    jumping = track(planted(lambda t: (30.0 if t < 0.9 else 38.0, 2.0), range(4)))
    assert jumping.boxes.filter(~pl.col("carried"))["tube"].n_unique() == 2
    rows = planted(lambda t: (30.0, 2.0), range(2))
    rows[1] |= {"length_m": 9.0, "width_m": 9.0}
    assert track(rows, carry=False).boxes["tube"].n_unique() == 2


def test_the_most_of_an_image_are_kept():
    rows = [
        row for n in range(5) for row in planted(lambda t, n=n: (30.0, 4.0 * n - 8), range(4), 0.1 * (n + 1))
    ]
    found = track(rows, most=2)
    assert found.boxes.group_by("frame").len()["len"].to_list() == [2] * 4
    assert found.boxes["box"].to_list() == list(range(8))
    assert len(found.tubes) == 2


def test_sets_without_poses_and_proposals_without_cuboids_are_refused():
    rows = (
        pl.DataFrame(planted(lambda t: (30.0, 2.0), range(2))).with_row_index("box").cast({"box": pl.Int64})
    )
    with pytest.raises(UsageError, match="where the vehicle was"):
        track_proposals(Predictions(boxes=rows), Drive(posed=False))
    with pytest.raises(UsageError, match="no cuboids"):
        track_proposals(Predictions(boxes=rows.drop("yaw_rad")), Drive())


def test_a_cuboid_behind_the_camera_or_beside_the_image_has_no_box():
    assert project_cuboid(np.array([-10.0, 0, 0, 1, 1, 1, 0]), CAMERA) is None
    assert project_cuboid(np.array([10.0, 50, 0, 1, 1, 1, 0]), CAMERA) is None
    edges = project_cuboid(np.array([10.0, 0, 0, 1, 1, 1, 0.4]), CAMERA)
    pixels = []
    for corner in compute_cuboid_corners(np.array([10.0, 0, 0, 1, 1, 1, 0.4])):
        place = CAMERA.camera_SE3_lidar @ [*corner, 1]
        pixels.append((CAMERA.intrinsics @ place[:3])[:2] / place[2])
    np.testing.assert_allclose(edges, [*np.min(pixels, 0), *np.max(pixels, 0)])


def test_labels_of_kitti_stand_where_the_cuboids_do():
    row = pl.DataFrame(planted(lambda t: (20.0, 3.0), [0])).with_columns(yaw_rad=pl.lit(0.5))
    line = format_kitti_labels(row, CAMERA.camera_SE3_lidar).split()
    assert line[0] == "Misc"
    assert len(line) == 16
    alpha, *_, height, width, length, x, y, z, turn, score = map(float, line[3:])
    assert (height, width, length, score) == (0.8, 0.6, 1.0, 0.5)
    bottom = CAMERA.camera_SE3_lidar @ [20.0, 3.0, -1.7, 1]
    np.testing.assert_allclose([x, y, z], bottom[:3], atol=0.006)
    # KITTI turns about the axis down, from the camera's right: ahead is -pi/2, and a turn to the left goes further down.
    assert turn == pytest.approx(-np.pi / 2 - 0.5, abs=0.006)
    assert alpha == pytest.approx(turn - np.arctan2(bottom[0], bottom[2]), abs=0.011)
    assert format_kitti_labels(row.clear(), CAMERA.camera_SE3_lidar) == ""


def test_detections_of_nuscenes_are_in_the_world(tmp_path):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler("z", 90, degrees=True).as_matrix()
    pose[:3, 3] = [100, 50, 1]
    rows = pl.DataFrame(planted(lambda t: (20.0, 3.0), [0])).with_columns(yaw_rad=pl.lit(0.5))
    poses = {("a", 0): pose, ("a", 1): np.eye(4)}
    found = build_nuscenes_results(rows, poses)
    (one,) = found["results"]["a/000000"]
    assert found["results"]["a/000001"] == []
    np.testing.assert_allclose(one["translation"], [97, 70, -0.3])
    assert one["size"] == [0.6, 1.0, 0.8]
    turned = Rotation.from_quat(one["rotation"], scalar_first=True).as_euler("zyx")
    np.testing.assert_allclose(turned, [np.pi / 2 + 0.5, 0, 0], atol=1e-9)
    table = Predictions(boxes=rows.with_row_index("box").cast({"box": pl.Int64}))
    ways = dict.fromkeys(poses, CAMERA.camera_SE3_lidar)
    told = write_cuboids(table, tmp_path, ("kitti", "nuscenes"), cameras=ways, poses=poses)
    assert told == {"kitti": 1, "nuscenes": 1}
    assert json.loads((tmp_path / "nuscenes.json").read_text()) == found
    assert (tmp_path / "kitti/a/000001.txt").read_text() == ""
    with pytest.raises(UsageError, match="where the vehicle was in 1 of 2"):
        write_cuboids(table, tmp_path, ("nuscenes",), cameras=ways, poses={("a", 0): pose})
    bare = Predictions(boxes=table.boxes.drop(CUBOID))
    with pytest.raises(UsageError, match="no cuboids"):
        write_cuboids(bare, tmp_path, ("kitti",), cameras=ways, poses=poses)
    holes = Predictions(boxes=table.boxes.with_columns(yaw_rad=pl.lit(None, pl.Float64)))
    assert write_cuboids(holes, tmp_path, ("kitti",), cameras=ways, poses=poses) == {
        "without a cuboid": 1,
        "kitti": 0,
    }
