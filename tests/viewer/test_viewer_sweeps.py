"""Sweeps of the viewer: points, boxes in space, clusters with their steps; and what must not come of bad ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numbered import Client, Open
from swept import THINGS, propose, returns, write_swept_kitti

from roadaware.corner_cases.proposal_tables import DROPPED_SCHEMA
from roadaware.datasets import read
from roadaware.errors import InputError, UsageError
from roadaware.viewer import sweeps
from roadaware.viewer.opening import open_paths
from roadaware.viewer.sweeps import LEVEL, STEPS, Sweeps, compute_box_corners, find_points_inside

VIDEO = "training/000002"
REAL = os.environ.get("ROADAWARE_DATA_DIR", "")
# What KITTI's inertial unit is from the LiDAR of the planted set.
SHIFT = np.array([0.81, -0.32, 0.8])


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `kitti`, a run `near` that takes what is within 12 m, and `all`."""
    root = tmp_path_factory.mktemp("swept")
    kitti = write_swept_kitti(root / "kitti")
    propose(kitti, root / "near", "--config", "angle", "--set", "max_distance_m=12")
    propose(kitti, root / "all", "--config", "angle")
    return root


def parse(data: bytes) -> tuple[list[int], np.ndarray, np.ndarray, np.ndarray]:
    """Head, points, clusters and steps of the binary form."""
    head = np.frombuffer(data, "<u4", 4).tolist()
    count = head[1]
    assert len(data) == 16 + 17 * count
    xyz = np.frombuffer(data, "<f4", 3 * count, 16).reshape(-1, 3)
    return (
        head,
        xyz,
        np.frombuffer(data, "<u4", count, 16 + 12 * count),
        np.frombuffer(data, "u1", count, 16 + 16 * count),
    )


def test_boxes_in_space_hold_the_returns_of_what_they_are_around(swept: Path) -> None:
    found = Sweeps(open_paths([swept / "kitti"]))
    scene = found.scene(VIDEO, 0, "")
    points, met = returns()
    for corners, number in zip(scene["boxes"]["truth"]["corners"], (1, 2), strict=True):
        places = np.array(corners).reshape(8, 3) - SHIFT
        thing = THINGS[number - 1]
        assert places.mean(0)[:2] == pytest.approx([thing.x, thing.y], abs=0.01)
        assert places[4:, 0].mean() - places[:4, 0].mean() == pytest.approx(thing.length + 0.02, abs=2e-3)
        inside = find_points_inside(points, places)
        assert inside.sum() > 5
        assert np.array_equal(inside & (met > 0), met == number)
    assert scene["camera"]["size"] == [62, 21]
    assert scene["total"] == scene["sent"] == len(points)


def test_points_are_those_of_the_file_in_the_frame_of_the_vehicle(swept: Path) -> None:
    found = Sweeps(open_paths([swept / "kitti", swept / "all"]))
    points, met = returns()
    head, xyz, clusters, steps = parse(found.points(VIDEO, 0, "a"))
    assert head[1:] == [len(points), len(points), 0]
    assert np.abs(xyz - (points + SHIFT)).max() < 1e-4
    for number in (1, 2):
        mine = clusters[met == number]
        held = np.bincount(mine[mine > 0])
        assert held.max() > 0.5 * (met == number).sum()
        assert steps[clusters == held.argmax()].tolist() == [0] * int((clusters == held.argmax()).sum())
    assert (steps[met == 0] == STEPS.index("ground")).mean() > 0.9
    plain = parse(found.points(VIDEO, 0, ""))
    assert np.array_equal(plain[1], xyz)
    assert not plain[2].any()
    assert set(plain[3].tolist()) == {STEPS.index("no cluster")}


def test_each_cluster_and_object_has_the_step_that_lost_it(swept: Path) -> None:
    opened = open_paths([swept / "kitti", swept / "near"])
    scene = Sweeps(opened).scene(VIDEO, 0, "a")
    steps = {STEPS[step] for step in scene["clusters"]["step"]}
    assert steps == {"proposed", "too far"}
    boxes = dict(zip(scene["clusters"]["cluster"], scene["clusters"]["box"], strict=True))
    predicted = opened.sides["a"].scan("boxes").filter(video=VIDEO).collect()
    assert sorted(box for box in boxes.values() if box >= 0) == sorted(predicted["box"].to_list())
    told = {box: step for box, step, *_ in scene["objects"]}
    truth = opened.sides["truth"].scan("boxes").filter(video=VIDEO).collect()["box"].to_list()
    assert list(told) == truth
    assert told[truth[1]] == "too far"
    assert told[truth[0]] != "too far"
    _, met = returns()
    assert [count for _, _, count, _ in scene["objects"]] == [int((met == number).sum()) for number in (1, 2)]
    # Of a run that keeps all, the far one is not lost to its distance.
    whole = Sweeps(open_paths([swept / "kitti", swept / "all"])).scene(VIDEO, 0, "a")
    assert {step for _, step, *_ in whole["objects"]}.isdisjoint({"too far"})


def test_what_was_dropped_is_kept_beside_the_proposals(swept: Path) -> None:
    table = pl.read_parquet(swept / "near" / "dropped.parquet")
    assert dict(table.schema) == DROPPED_SCHEMA
    assert set(table["step"].to_list()) <= {"too far", "not in the image"}
    far = table.filter(pl.col("step") == "too far", pl.col("video") == VIDEO).row(0, named=True)
    assert far["distance_m"] == pytest.approx(np.hypot(13.5, 4), abs=0.5)
    assert far["n_returns"] >= 5
    assert far["x1_px"] is None
    told = Sweeps(open_paths([swept / "near"])).dropped("a")
    assert sum(told["counts"].values()) == len(table)
    assert (far["cluster"], "too far") in list(
        zip(told["rows"]["cluster"], told["rows"]["step"], strict=True)
    )


def test_a_damaged_or_older_part_of_what_was_dropped_is_met(swept: Path, tmp_path: Path) -> None:
    kitti = swept / "kitti"
    out = propose(kitti, tmp_path / "out", "--config", "angle", "--set", "max_distance_m=12")
    first = (out / "dropped.parquet").read_bytes()
    part = next((out / "parts").glob("*-dropped.parquet"))
    part.write_bytes(b"damaged")
    propose(kitti, out, "--config", "angle", "--set", "max_distance_m=12")
    assert pl.read_parquet(out / "dropped.parquet").equals(pl.read_parquet(first))
    told = json.loads((out / "parts" / "000000.json").read_text())
    del told["beside"], told["notes_blake2b"]  # as an older roadaware wrote it
    (out / "parts" / "000000.json").write_text(json.dumps(told))
    propose(kitti, out, "--config", "angle", "--set", "max_distance_m=12")
    assert not (out / "dropped.parquet").exists()
    found = Sweeps(open_paths([kitti, out]))
    assert found.describe_runs() == {"a": False}
    assert "too far" in {STEPS[step] for step in found.scene(VIDEO, 0, "a")["clusters"]["step"]}
    with pytest.raises(UsageError, match="kept no table"):
        found.dropped("a")


def test_steps_after_the_box_are_those_that_the_run_took(swept: Path, tmp_path: Path) -> None:
    """Detections around everything suppress everything: each box is lost as a common object."""
    scenes = read("kitti", swept / "kitti", cache=False)
    whole = (
        scenes.videos.select("video")
        .with_row_index("box")
        .with_columns(frame=0, x1_px=0.0, y1_px=0.0, x2_px=62.0, y2_px=21.0, score=1.0)
    )
    from roadaware.scenes.store import save
    from roadaware.scenes.tables import Predictions

    save(Predictions(boxes=whole.cast({"box": pl.Int64})), tmp_path / "found")
    out = propose(
        swept / "kitti",
        tmp_path / "out",
        "--detections",
        str(tmp_path / "found"),
        "--set",
        "max_common_iou=0",
    )
    table = pl.read_parquet(out / "dropped.parquet")
    assert "common object" in table["step"].to_list()
    common = table.filter(step="common object")
    assert common["common_iou"].min() > 0
    assert common["x1_px"].null_count() == 0
    scene = Sweeps(open_paths([swept / "kitti", out])).scene(VIDEO, 0, "a")
    assert {STEPS[step] for step in scene["clusters"]["step"]} == {"common object"}
    assert {step for _, step, *_ in scene["objects"]} <= {"common", "box", "merged", "split"}


def test_of_large_sweeps_evenly_chosen_points_are_sent(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "MOST_POINTS", 500)
    found = Sweeps(open_paths([swept / "kitti"]))
    points, _ = returns()
    head, xyz, _, _ = parse(found.points(VIDEO, 0, ""))
    assert head[1:] == [500, len(points), 0]
    assert xyz[[0, -1]] == pytest.approx(points[[0, -1]] + SHIFT, abs=1e-4)
    assert found.scene(VIDEO, 0, "")["sent"] == 500


def test_boxes_of_once_are_in_the_frame_of_the_lidar() -> None:
    rows = pl.DataFrame(
        {"box": [3], **dict(zip(LEVEL, ([10.0], [2.0], [-1.0], [4.0], [2.0], [1.5], [0.3]), strict=True))}
    )
    _, corners = compute_box_corners(rows, np.eye(4))
    assert corners[0].mean(0) == pytest.approx([10, 2, -1])
    front = corners[0][4:].mean(0) - corners[0][:4].mean(0)
    assert front == pytest.approx([4 * np.cos(0.3), 4 * np.sin(0.3), 0])
    assert corners[0][1, 2] - corners[0][0, 2] == pytest.approx(1.5)
    for column, value in (("x_m", float("nan")), ("length_m", 0.0), ("height_m", None), ("y_m", 1e30)):
        bad = rows.with_columns(pl.lit(value, pl.Float64).alias(column))
        assert len(compute_box_corners(bad, np.eye(4))[0]) == 0
    assert len(compute_box_corners(rows.select("box"), np.eye(4))[0]) == 0


@pytest.mark.skipif(not REAL, reason="ROADAWARE_DATA_DIR is not set")
def test_boxes_of_nuscenes_hold_as_many_returns_as_it_counted() -> None:
    keyframe = json.loads((Path(REAL) / "nuscenes" / "keyframe.json").read_text())
    counted = {
        tuple(np.round(each["bbox_3d"][3:6], 3)): each["num_lidar_pts"] for each in keyframe["instances"]
    }
    found = Sweeps(open_paths([Path(REAL) / "nuscenes"]))
    same = total = 0
    for video in {video for video, _ in found._moments}:
        turn = found.open(video, 0)
        rows = found._boxes(found._opened.sides["truth"], video, 0)
        told, corners = compute_box_corners(rows, turn.lidar_SE3_camera)
        for row, places in zip(told.iter_rows(named=True), corners, strict=True):
            sizes = tuple(np.round([row["length_m"], row["width_m"], row["height_m"]], 3).tolist())
            if sizes in counted:
                inside = int(find_points_inside(turn.capture.points, places).sum())
                same += abs(inside - counted[sizes]) <= max(1, 0.1 * counted[sizes])
                total += 1
    assert total > 60
    assert same / total > 0.9


def test_without_the_dataset_it_is_said_what_to_name(swept: Path, tmp_path: Path) -> None:
    """A run says where its dataset lay: nothing is read there unless somebody names it."""
    found = Sweeps(open_paths([swept / "near"]))
    told = found.describe(VIDEO)
    assert told["sweeps"] == 0
    assert "name the dataset too" in told["why"]
    with pytest.raises(UsageError, match="frame 0 has no sweep"):
        found.points(VIDEO, 0, "a")


def test_a_set_whose_calibration_is_gone_says_so(swept: Path, tmp_path: Path) -> None:
    kitti = write_swept_kitti(tmp_path / "kitti")
    (kitti / "training/calib/000002.txt").unlink()
    told = Sweeps(open_paths([kitti])).describe(VIDEO)
    assert told["sweeps"] == 0
    assert "no calibration" in told["why"]


@pytest.fixture
def client(swept: Path, viewed: Open) -> Client:
    return viewed(swept / "kitti", swept / "near")


def test_routes_answer_and_refuse(client: Client) -> None:
    index = client.json("/api/index")
    assert index["space"] is True
    assert index["runs"] == {"a": True}
    video = index["videos"]["name"].index(VIDEO)
    assert client.json(f"/api/sweeps?video={video}")["sweeps"] == 1
    assert client.json(f"/api/sweep?video={video}&frame=0&side=a")["clusters"]["cluster"]
    assert client.json("/api/dropped?side=a")["counts"]
    status, headers, body = client.ask(f"/points/{video}/0?side=a")
    assert status == 200
    assert headers["content-type"] == "application/octet-stream"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert parse(body)[0][1] > 1000
    paths = (
        f"/api/sweeps?video={video}",
        f"/api/sweep?video={video}&frame=0",
        "/api/dropped?side=a",
        f"/points/{video}/0",
    )
    for path in paths:
        assert client.ask(path, known=False)[0] == 403
        assert client.ask(path, host="evil.example")[0] == 400
        assert client.ask(path, origin="http://evil.example")[0] == 403
        assert client.ask(path, sec_fetch_site="cross-site")[0] == 403
    wrong = (
        "/api/sweep?video=0&frame=-1",
        "/api/sweep?video=0&frame=9",
        f"/api/sweep?video={video}&frame={1 << 40}",
        "/api/sweep?video=99&frame=0",
        f"/api/sweep?video={video}&frame=0&side=truth",
        f"/api/sweep?video={video}&frame=0&side=..%2f..",
        "/api/sweeps?video=x",
        "/api/dropped?side=b",
        "/api/dropped",
        "/points/0/-1",
        "/points/99/0",
        f"/points/{video}/{'9' * 400}",
        f"/points/{video}/0?side=%00",
    )
    for path in wrong:
        status, _, body = client.ask(path)
        assert status == 422, path
        assert b"Traceback" not in body
    for path in (
        f"/points/{video}/../../etc/passwd",
        "/points/0/%2e%2e%2fkitti",
        f"/points/{video}/0/0",
        "/points/",
    ):
        assert client.ask(path)[0] in (404, 422)


def test_no_sweep_leads_out_of_the_named_folders(tmp_path: Path) -> None:
    outside = tmp_path / "outside.bin"
    outside.write_bytes(np.zeros((50, 4), "<f4").tobytes())
    kitti = write_swept_kitti(tmp_path / "kitti")
    place = kitti / "training/velodyne/000002.bin"
    data = place.read_bytes()
    for make in (
        lambda: place.symlink_to(outside),
        lambda: place.symlink_to("/dev/zero"),
        lambda: os.mkfifo(place),
        lambda: place.mkdir(),
        lambda: place.write_bytes(data[:-3]),
    ):
        place.unlink() if not place.is_dir() else place.rmdir()
        make()
        found = Sweeps(open_paths([kitti]))
        with pytest.raises((InputError, UsageError)):
            found.points(VIDEO, 0, "")


def test_points_that_are_none_are_left_out_and_counted(tmp_path: Path) -> None:
    kitti = write_swept_kitti(tmp_path / "kitti")
    place = kitti / "training/velodyne/000002.bin"
    rows = np.frombuffer(place.read_bytes(), "<f4").reshape(-1, 4).copy()
    rows[::97, 0], rows[1::97, 2], rows[2::997, 1] = np.nan, -np.inf, 3e38
    place.write_bytes(rows.tobytes())
    run = propose(kitti, tmp_path / "run", "--config", "angle")
    found = Sweeps(open_paths([kitti, run]))
    for side in ("", "a"):
        head, xyz, _, _ = parse(found.points(VIDEO, 0, side))
        assert head[1] + head[3] == head[2] == len(rows)
        assert np.isfinite(xyz).all()
        assert np.abs(xyz).max() < 2e5
        json.dumps(found.scene(VIDEO, 0, side), allow_nan=False)
    place.write_bytes(b"")
    empty = Sweeps(open_paths([kitti]))
    assert parse(empty.points(VIDEO, 0, ""))[0][1:] == [0, 0, 0]
    json.dumps(empty.scene(VIDEO, 0, ""), allow_nan=False)


def test_forged_runs_and_tables_are_met_with_words(swept: Path, tmp_path: Path, viewed: Open) -> None:
    import shutil

    run = tmp_path / "run"
    shutil.copytree(swept / "near", run)
    told: dict[str, Any] = json.loads((run / "proposals.json").read_text())
    for change in (
        lambda order: order["config"].update(columns=10**9),
        lambda order: order["config"].update(theta_deg="x"),
        lambda order: order["config"].update(unknown=1),
        lambda order: order.update(config=[]),
    ):
        forged = json.loads(json.dumps(told))
        change(forged["order"])
        (run / "proposals.json").write_text(json.dumps(forged))
        assert Sweeps(open_paths([swept / "kitti", run])).describe_runs() == {}
    for text in ("", "[]", "[" * 5000, '{"format": "roadaware-proposals"}', "\xff"):
        (run / "proposals.json").write_text(text)
        assert Sweeps(open_paths([swept / "kitti", run])).describe_runs() == {}
    (run / "proposals.json").write_text(json.dumps(told))
    table = pl.read_parquet(run / "dropped.parquet")
    evil = "<img src=x onerror=alert(1)>"
    forged_table = table.head(1).with_columns(
        step=pl.lit(evil),
        video=pl.lit(evil),
        distance_m=pl.lit(float("nan"), pl.Float32),
        frame=pl.lit(1 << 60),
    )
    forged_table.write_parquet(run / "dropped.parquet")
    client = viewed(swept / "kitti", run)
    found = client.json("/api/dropped?side=a")
    assert found["counts"] == {evil: 1}
    assert found["rows"]["distance_m"] == [None]
    video = client.json("/api/index")["videos"]["name"].index(VIDEO)
    assert client.json(f"/api/sweep?video={video}&frame=0&side=a")["clusters"]["cluster"]
    for data in (b"", b"PAR1" * 20):
        (run / "dropped.parquet").write_bytes(data)
        assert client.ask("/api/dropped?side=a")[0] == 409
    table.select("video").write_parquet(run / "dropped.parquet")
    assert client.ask("/api/dropped?side=a")[0] == 409
    table.clear().write_parquet(run / "dropped.parquet")
    assert client.json("/api/dropped?side=a")["rows"]["cluster"] == []
