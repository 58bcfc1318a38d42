"""Poses of sweeps by odometry: a stand-in for kiss-icp where it is absent, and kiss-icp itself on a planted drive."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

from planted import Thing, World, sweep
from sets import SETS

from roadaware.cli.app import main
from roadaware.corner_cases import tracking
from roadaware.corner_cases.tracking import BRIDGED_S, estimate_poses
from roadaware.datasets import read
from roadaware.datasets.once import EGO_SE3_LIDAR
from roadaware.errors import InputError, UsageError
from roadaware.geometry.poses import find_pose_error, invert_pose
from roadaware.scenes.store import open_predictions

# Walls, poles and cars on both sides, in no regular order, and one low thing on the road.
LOW = Thing(24.0, 0.5, 0.8, 0.8, 0.9)
THINGS = (
    LOW,
    *(
        Thing(x, y, length, width, height)
        for x, y, length, width, height in zip(
            [-18, -9, -3, 4, 11, 17, 23, 31, 38, 44, 7, 26],
            [9, -7.5, 12, -11, 7, -6.5, 10, -9, 8, -12, 5.5, -5.2],
            [5, 2, 8, 4, 1.5, 6, 3, 5, 7, 4, 0.4, 0.5],
            [3, 1.8, 4, 3, 1.8, 2, 5, 3, 4, 6, 0.4, 0.5],
            [4, 1.5, 6, 3, 1.6, 2, 5, 3.5, 4, 6, 4, 5],
            strict=True,
        )
    ),
)


def drive(places, turns=None, noise_m=0.01):
    """Sweeps of the planted street from places along x, with the LiDAR turned about z by degrees; and the true poses."""
    sweeps, poses = [], []
    for number, x in enumerate(places):
        things = tuple(Thing(t.x - x, t.y, t.length, t.width, t.height) for t in THINGS)
        points, _, _ = sweep(World(things, columns=900, rings=48, noise_m=noise_m), seed=number)
        angle = np.radians(0.0 if turns is None else turns[number])
        pose = np.eye(4)
        pose[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        pose[0, 3] = x
        sweeps.append((points @ pose[:3, :3]).astype(np.float32))
        poses.append(pose)
    return sweeps, np.stack(poses)


class StandIn:
    """What of KISS-ICP is used: each sweep is where it is said to be."""

    def __init__(self, poses):
        self.last_pose, self.last_delta, self.local_map = np.eye(4), np.eye(4), None
        self.poses, self.guesses, self.sizes = list(poses), [], []
        self.registration = SimpleNamespace(align_points_to_map=lambda _source, _map, guess, *_: guess)

    def voxelize(self, points):
        return points, points

    def register_frame(self, points, _times):
        assert np.isfinite(points).all()
        self.guesses.append(self.last_pose @ self.last_delta)
        self.sizes.append(len(points))
        pose = self.poses.pop(0)
        self.last_delta, self.last_pose = invert_pose(self.last_pose) @ pose, pose


@pytest.fixture
def stand_in(monkeypatch):
    def put(poses):
        held = StandIn(poses)
        monkeypatch.setattr(tracking, "_create_odometry", lambda: held)
        return held

    return put


def ahead(*metres):
    found = np.tile(np.eye(4), (len(metres), 1, 1))
    found[:, 0, 3] = metres
    return found


CLOUD = np.random.default_rng(0).uniform([-30, -30, 0], [30, 30, 6], (400, 3)).astype(np.float32)
NOTHING = np.zeros((0, 3), dtype=np.float32)
BEYOND = CLOUD + np.float32([200, 0, 0])
NOT_A_NUMBER = np.full_like(CLOUD, np.nan)


def test_without_kiss_icp_the_error_names_the_extra(monkeypatch):
    for name in ("kiss_icp", "kiss_icp.config", "kiss_icp.kiss_icp"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=r"pip install 'roadaware\[odometry\]'"):
        estimate_poses([CLOUD], [0.0])


@pytest.mark.parametrize("broken", [NOTHING, BEYOND, NOT_A_NUMBER, CLOUD[:50]])
def test_a_sweep_that_cannot_be_matched_is_where_it_would_be_at_unchanged_speed(stand_in, broken):
    held = stand_in(ahead(0, 2, 6))
    # 2 m in 0.2 s, so 4 m in the 0.4 s up to the last one.
    found = estimate_poses([CLOUD, CLOUD, broken, CLOUD], [0.0, 0.2, 0.3, 0.6])
    np.testing.assert_allclose(found, ahead(0, 2, 3, 6), atol=1e-9)
    np.testing.assert_allclose(held.guesses[-1], ahead(6)[0], atol=1e-9)
    assert held.sizes == [400] * 3


@pytest.mark.parametrize("broken", [NOTHING, BEYOND, NOT_A_NUMBER])
def test_a_first_sweep_that_cannot_be_matched_is_where_the_drive_begins(stand_in, broken):
    stand_in(ahead(0, 1, 2))
    found = estimate_poses([broken, CLOUD, CLOUD, CLOUD], [7.0, 7.1, 7.2, 7.3])
    np.testing.assert_allclose(found, ahead(0, 0, 1, 2), atol=1e-9)


def test_returns_that_are_not_finite_or_far_are_left_out_one_by_one(stand_in):
    held = stand_in(ahead(0))
    estimate_poses([np.concatenate([CLOUD, NOT_A_NUMBER[:30], BEYOND[:40]])], [0.0])
    assert held.sizes == [400]


def test_one_sweep_stands_at_the_beginning_and_none_has_no_pose(stand_in):
    stand_in(ahead(0))
    np.testing.assert_array_equal(estimate_poses([CLOUD], [7.0]), ahead(0))
    assert estimate_poses([], []).shape == (0, 4, 4)
    # What no sweep could be matched of stands still, as long as it is short.
    np.testing.assert_array_equal(estimate_poses([NOTHING, NOTHING], [0.0, 1.0]), ahead(0, 0))


def test_a_long_gap_and_times_that_do_not_rise_are_refused(stand_in):
    stand_in(ahead(0, 1))
    with pytest.raises(InputError, match="no sweep that can be matched"):
        estimate_poses([CLOUD, CLOUD, CLOUD], [0.0, 0.1, 0.2 + BRIDGED_S])
    for times in ([0.0, 0.0], [0.0, -1.0], [0.0, float("nan")]):
        stand_in(ahead(0, 1))
        with pytest.raises(InputError, match="should rise"):
            estimate_poses([CLOUD, CLOUD], times)


def test_a_pose_that_is_none_is_refused(stand_in):
    stand_in([np.full((4, 4), np.nan)])
    with pytest.raises(InputError, match="is none"):
        estimate_poses([CLOUD], [0.0])


@pytest.mark.parametrize("metres", [-2, 0, 7])
def test_the_first_motion_is_looked_for_ahead(metres):
    held = StandIn([])
    direction = np.array([0.0, -1.0, 0.0])  # of a LiDAR whose y points back
    found = tracking._search_first_motion(held, CLOUD, CLOUD - metres * direction, direction, 12.0)
    np.testing.assert_allclose(found[:3, 3], metres * direction)


# A set of which no frame has a pose.


def unposed(root: Path, frames: int = 5) -> Path:
    """ONCE's layout: one drive of the planted street, 3 m in each half second; sweeps in the axes of its LiDAR."""
    SETS["once"].make(root, frames=frames)
    for path in sorted((root / "data").glob("*/*.json")):
        held = json.loads(path.read_text())
        for frame in held["frames"]:
            frame["pose"] = [0.0] * 7
        path.write_text(json.dumps(held))
        sweeps, _ = drive([3.0 * n for n in range(frames)])
        for frame, points in zip(held["frames"], sweeps, strict=True):
            turned = points @ EGO_SE3_LIDAR[:3, :3]
            rows = np.column_stack([turned, np.zeros(len(turned))]).astype("<f4")
            (path.parent / "lidar_roof" / f"{frame['frame_id']}.bin").write_bytes(rows.tobytes())
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return unposed(tmp_path_factory.mktemp("unposed") / "once")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


def test_odometry_is_for_tracks_alone_and_the_message_names_it(root, tmp_path, capsys):
    out = ["--output", str(tmp_path / "out")]
    assert main(["propose", str(root), "--odometry", *out]) == 2
    assert "neither is given" in capsys.readouterr().err
    assert main(["propose", str(root), "--track", *out]) == 2
    assert "--odometry estimates them" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_poses_that_are_estimated_take_the_place_of_those_that_lack(root, tmp_path, capsys, monkeypatch):
    lidar = EGO_SE3_LIDAR[:3, :3].T @ [1.0, 0.0, 0.0]

    def create():
        poses = np.tile(np.eye(4), (5, 1, 1))
        poses[:, :3, 3] = 3.0 * np.arange(5)[:, None] * lidar
        return StandIn(poses)

    monkeypatch.setattr(tracking, "_create_odometry", create)
    out = tmp_path / "out"
    words = ["propose", str(root), "--split", "default/val", "--track", "--odometry", "--as", "nuscenes"]
    assert main([*words, "--output", str(out), "-q", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["poses_estimated"] == 5
    _find_low(out)
    assert len(json.loads((out / "cuboids" / "nuscenes.json").read_text())["results"]) == 5


def _find_low(out: Path) -> None:
    """The low thing is one that stands where it was planted, seen from where the vehicle stood at first."""
    tubes = open_predictions(out / "tracks").tubes
    off = np.hypot(tubes["world_x_m"] - LOW.x - EGO_SE3_LIDAR[0, 3], tubes["world_y_m"] - LOW.y)
    held = tubes.row(int(np.argmin(np.where(tubes["sweeps"].to_numpy() >= 4, off, np.inf))), named=True)
    assert off.to_numpy().min() < 0.6
    assert (held["moving"], held["sweeps"]) == (False, 5)


# KISS-ICP itself.


@pytest.mark.slow
def test_the_estimate_follows_a_planted_drive_and_is_the_same_twice(monkeypatch):
    pytest.importorskip("kiss_icp", reason="kiss-icp is in roadaware[odometry]")
    # 3 m a step from the first on, then slower, with a turn of the LiDAR by 8 degrees in all.
    places = [0.0, 3.0, 6.0, 8.8, 11.4, 13.8, 16.0]
    sweeps, true = drive(places, turns=[0, 0, 1, 3, 5, 7, 8])
    times = [0.25 * n for n in range(len(places))]
    found = estimate_poses(sweeps, times)
    off = [invert_pose(a) @ b for a, b in zip(true, found, strict=True)]
    assert max(np.linalg.norm(each[:3, 3]) for each in off) < 0.15
    assert max(np.degrees(np.arccos(np.clip((np.trace(each[:3, :3]) - 1) / 2, -1, 1))) for each in off) < 0.5
    assert not any(find_pose_error(each) for each in found)
    # What the environment says of kiss-icp changes nothing.
    monkeypatch.setenv("KISS_ICP_DATA", '{"max_range": 10.0}')
    assert estimate_poses(sweeps, times).tobytes() == found.tobytes()
    # A sweep without returns is bridged, and those after it are where they were.
    holed = estimate_poses([*sweeps[:3], NOTHING, *sweeps[4:]], times)
    assert np.linalg.norm(holed[-1, :3, 3] - true[-1, :3, 3]) < 0.2


@pytest.mark.slow
def test_a_set_without_poses_is_tracked(root, tmp_path):
    pytest.importorskip("kiss_icp", reason="kiss-icp is in roadaware[odometry]")
    words = ["propose", str(root), "--split", "default/val", "--track", "--odometry"]
    for name in ("one", "other"):
        assert main([*words, "--output", str(tmp_path / name), "-q"]) == 0
        _find_low(tmp_path / name)
    files = sorted(
        path.relative_to(tmp_path / "one") for path in (tmp_path / "one/tracks").rglob("*.parquet")
    )
    assert files
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "other" / path).read_bytes()
    assert read("once", root).sweeps["world_SE3_ego"].null_count() == 15
