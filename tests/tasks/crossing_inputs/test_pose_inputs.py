"""Poses from tables and files: order, units, joints that are not seen, and what is refused by name."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from short_walks import BOX_ROWS, OBSERVED, SIZES, TRACKS, T, box_of, walks

from roadaware.errors import InputError
from roadaware.tasks.crossing_inputs import Media, build_inputs
from roadaware.tasks.crossing_inputs.pose import JOINTS

SIDES = ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
COCO = ["nose", *(f"{side}_{part}" for part in SIDES for side in ("left", "right"))]
N = len(OBSERVED)


def joint_px(tube: int, frame: int, name: str) -> tuple[float, float]:
    """Where a joint is, different for each; the neck is between the shoulders."""
    if name == "neck":
        left, right = (joint_px(tube, frame, f"{side}_shoulder") for side in ("left", "right"))
        return (left[0] + right[0]) / 2, (left[1] + right[1]) / 2
    x1, y1, x2, y2 = box_of(tube, frame)
    k = COCO.index(name)
    return x1 + (x2 - x1) * (k + 1) / 20, y1 + (y2 - y1) * (k + 2) / 20


def expected(tube: int, frame: int) -> np.ndarray:
    return np.array([joint_px(tube, frame, name) for name in JOINTS]) / SIZES[TRACKS[tube][0]]


def simulated(hidden: str | None = None) -> pl.Series:
    rows = [
        [v for name in COCO for v in (*joint_px(tube, frame, name), float(name != hidden))]
        for tube, frame in BOX_ROWS
    ]
    return pl.Series(rows, dtype=pl.Array(pl.Float32, 51))


def taken(scenes: object, name: str = "pose", **media: object) -> np.ndarray:
    return build_inputs(scenes, "train", [name], media=Media(**media)).take(np.arange(N))[name]


def test_the_simulators_joints_are_put_in_openposes_order_as_shares_of_the_picture() -> None:
    found = taken(walks(boxes={"joints": simulated()}))
    assert found.shape == (N, T, 36)
    for row, (tube, frames) in enumerate(OBSERVED.values()):
        for k, frame in enumerate(frames):
            np.testing.assert_allclose(found[row, k].reshape(18, 2), expected(tube, frame), rtol=1e-5)


def test_poses_can_be_relative_to_the_box() -> None:
    found = taken(walks(boxes={"joints": simulated()}), "pose:box").reshape(N, T, 18, 2)
    for name in COCO:
        place = COCO.index(name)
        np.testing.assert_allclose(found[..., JOINTS.index(name), 0], (place + 1) / 20, atol=1e-4)
        np.testing.assert_allclose(found[..., JOINTS.index(name), 1], (place + 2) / 20, atol=1e-4)


def test_what_is_hidden_or_without_a_pose_is_unknown() -> None:
    joints = simulated(hidden="left_shoulder").to_list()
    joints[BOX_ROWS.index((0, 2))] = None
    found = taken(walks(boxes={"joints": pl.Series(joints, dtype=pl.List(pl.Float32))})).reshape(N, T, 18, 2)
    unknown = np.isnan(found[0, 0]).all(axis=1)
    assert {name for name, lost in zip(JOINTS, unknown, strict=True) if lost} == {"left_shoulder", "neck"}
    assert np.isnan(found[0, 2]).all()


def test_scenes_without_joints_are_refused_and_so_are_other_bodies() -> None:
    with pytest.raises(InputError, match="these boxes have no joints"):
        build_inputs(walks(), "train", ["pose"])
    bodies = {75: "25 joints of 3", 50: "25 joints of 2", 399: "133 joints of 3", 35: "35 numbers"}
    for width, told in bodies.items():
        held = pl.Series([[1.0] * width] * len(BOX_ROWS), dtype=pl.List(pl.Float32))
        with pytest.raises(InputError, match=f"expected 18 joints of OpenPose or 17 of COCO, found .*{told}"):
            build_inputs(walks(boxes={"joints": held}), "train", ["pose"])
    uneven = pl.Series([[1.0] * (36 + k % 2) for k in range(len(BOX_ROWS))], dtype=pl.List(pl.Float32))
    with pytest.raises(InputError, match=r"rows of \[36, 37\] numbers"):
        build_inputs(walks(boxes={"joints": uneven}), "train", ["pose"])


def published(pose_of: object = expected) -> dict[str, dict[str, list[float]]]:
    held: dict[str, dict[str, list[float]]] = {"a": {}, "b": {}}
    for tube, frame in BOX_ROWS:
        video, name, _ = TRACKS[tube]
        if (tube, frame) != (2, 3):
            held[video][f"{frame:05d}_{name}"] = pose_of(tube, frame).reshape(-1).tolist()
    held["a"]["00000_0_1_1b"][4] = held["a"]["00000_0_1_1b"][5] = 0.0
    return held


def check(found: np.ndarray) -> None:
    joints = found.reshape(N, T, 18, 2)
    assert np.isnan(joints[0, 0, 2]).all()
    assert np.isnan(joints[1, 3]).all()
    for row, (tube, frames) in enumerate(OBSERVED.values()):
        for k, frame in enumerate(frames):
            if (row, k) != (1, 3):
                known = ~np.isnan(joints[row, k])
                np.testing.assert_allclose(joints[row, k][known], expected(tube, frame)[known], rtol=1e-5)


def test_published_pickles_are_found_by_frame_and_pedestrian(tmp_path: Path) -> None:
    held = published()
    (tmp_path / "pose_set01.pkl").write_bytes(pickle.dumps(held, protocol=4))
    check(taken(walks(), poses=tmp_path / "pose_set01.pkl"))
    for part in ("a", "b"):
        (tmp_path / "two").mkdir(exist_ok=True)
        (tmp_path / "two" / f"pose_set0{'ab'.index(part)}.pkl").write_bytes(pickle.dumps({part: held[part]}))
    check(taken(walks(), poses=tmp_path / "two"))
    flat = {key: pose for part in held.values() for key, pose in part.items()}
    (tmp_path / "flat.pkl").write_bytes(pickle.dumps(flat))
    check(taken(walks(), poses=tmp_path / "flat.pkl"))


def test_tables_of_poses_in_shares_or_pixels(tmp_path: Path) -> None:
    rows = [(v, *key.split("_", 1), pose) for v, part in published().items() for key, pose in part.items()]
    video, frame, name, joints = (list(column) for column in zip(*rows, strict=True))
    frame = [int(number) for number in frame]
    table = pl.DataFrame({"video": video, "name": name, "frame": frame, "joints": joints})
    table.write_parquet(tmp_path / "poses.parquet")
    check(taken(walks(), poses=tmp_path / "poses.parquet"))
    scale = np.array([SIZES[v] * 18 for v in video])
    columns = {"video": np.array(video), "name": np.array(name), "frame": np.array(frame)}
    np.savez(tmp_path / "poses.npz", **columns, joints_px=np.array(joints) * scale)
    check(taken(walks(), poses=tmp_path / "poses.npz"))


class Harmful:
    """Would run when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (print, ("run",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": {"00000_0_1_1b": [0.1] * 50}}, "found 50 numbers, 25 joints of 2 each"),
        (
            {"a": {"00000_0_1_1b": [0.1] * 36, "00001_0_1_1b": [0.1] * 34}},
            r"as many in each; found \[34, 36\]",
        ),
        ({"a": {"frame1": [0.1] * 36}}, "keyed <frame>_<pedestrian>, such as 00042_5_1_23; found 'frame1'"),
        ({"a": {"00000_9_9_9": [0.1] * 36}}, "none of 1 poses is of a pedestrian of these scenes"),
        ({"a": {}}, "holds no pose"),
        ([0.1] * 36, "expected a dictionary of poses"),
        ({"a": {"00000_0_1_1b": "left"}}, "a list of finite numbers for each pose, found str"),
        (Harmful(), "the pickle holds"),
    ],
)
def test_a_file_that_holds_something_else_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: object, message: str
) -> None:
    path = tmp_path / "pose_set01.pkl"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(InputError, match=message) as caught:
        taken(walks(), poses=path)
    assert "pose_set01.pkl" in str(caught.value)
    assert capsys.readouterr().out == ""


def test_files_that_are_missing_cut_or_of_another_kind_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04 and no more")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    (tmp_path / "poses.json").write_text("{}")
    np.savez(tmp_path / "other.npz", pose=np.zeros(3))
    for name, message in {
        "none.pkl": "none.pkl",
        "cut.npz": "no whole npz",
        "cut.parquet": "no whole parquet",
        "poses.json": "come as .pkl, .npz or .parquet",
        "other.npz": r"found the columns \['pose'\]",
    }.items():
        with pytest.raises(InputError, match=message):
            taken(walks(), poses=tmp_path / name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no pickle of poses"):
        taken(walks(), poses=tmp_path / "empty")
