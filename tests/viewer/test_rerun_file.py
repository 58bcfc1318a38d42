"""Recordings of Rerun: what is read back is what the tables hold; nothing is sent, and nothing is left in a home."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numbered import FRAMES, make_predictions, make_truth, variable_times, write_numbered_film
from swept import propose, write_swept_kitti

from roadaware.cli import main
from roadaware.scenes.store import save
from roadaware.viewer.opening import open_paths
from roadaware.viewer.sweeps import Sweeps

HAS_RERUN = importlib.util.find_spec("rerun") is not None
needs_rerun = pytest.mark.skipif(
    not HAS_RERUN, reason="rerun-sdk is not installed: pip install 'roadaware[rerun]'"
)
# Ends the process at a call of socket (but for pairs within it), connect or bind: a filter of the kernel's own, which
# threads of other languages cannot get around.
FENCED = """
import ctypes, struct, sys
rules = [struct.pack("HBBI", 0x20, 0, 0, 0)]
for call in (41, 42, 49):
    rules += [struct.pack("HBBI", 0x15, 0, 1, call), struct.pack("HBBI", 0x06, 0, 0, 0x80000000)]
rules.append(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))
held = ctypes.create_string_buffer(b"".join(rules))
class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("rules", ctypes.c_void_p)]
program = Program(len(rules), ctypes.cast(held, ctypes.c_void_p))
library = ctypes.CDLL(None)
if library.prctl(38, 1, 0, 0, 0) or library.prctl(22, 2, ctypes.byref(program)):
    sys.exit(99)
seen = []
watched = ("socket", "subprocess", "webbrowser", "os.system", "os.posix_spawn", "os.exec")
sys.addaudithook(lambda name, values: seen.append((name, values)) if name.startswith(watched) else None)
"""
RUN = """
from roadaware.cli import main
code = main(sys.argv[1:])
print(seen, file=sys.stderr)
# The pair of sockets by which this process wakes itself at a signal is no way out of it.
wrong = [name for name, values in seen if name != "socket.__new__" or values[1] != 1]
sys.exit(code or (98 if wrong else 0))
"""


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sets")
    (root / "films").mkdir()
    write_numbered_film(root / "films" / "one.mp4")
    save(make_truth(), root / "truth")
    save(make_predictions(), root / "found")
    return root


def read_back(path: Path) -> dict[str, list[Any]]:
    """Entity to its chunks, as tables of Arrow."""
    from rerun.chunk import RrdReader

    found: dict[str, list[Any]] = defaultdict(list)
    for chunk in RrdReader(path).stream():
        found[str(chunk.entity_path)].append(chunk.to_record_batch())
    return found


def take(batches: list[Any], end: str) -> list[Any]:
    """The values of a column, over all chunks, by frame where there is one."""
    rows: list[tuple[int, Any]] = []
    for batch in batches:
        names = batch.schema.names
        column = next((name for name in names if name == end or name.endswith(f":{end}")), None)
        if column is None:
            continue
        frames = batch["frame"].to_pylist() if "frame" in names else [0] * batch.num_rows
        rows += list(zip(frames, batch[column].to_pylist(), strict=True))
    return [value for _, value in sorted(rows, key=lambda row: row[0])]


def test_without_the_library_the_line_to_type_is_told(
    sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["convert", str(sets / "truth"), "-o", str(tmp_path / "x.rrd")]) == 2
    assert "pip install 'roadaware[rerun]'" in capsys.readouterr().err
    assert not (tmp_path / "x.rrd").exists()


@pytest.mark.slow
@needs_rerun
def test_boxes_classes_scores_and_times_are_those_of_the_tables(sets: Path, tmp_path: Path) -> None:
    target = tmp_path / "one.rrd"
    words = [
        "convert",
        str(sets / "truth"),
        str(sets / "found"),
        "-o",
        str(target),
        "-q",
        "--json",
        str(tmp_path / "said.json"),
    ]
    assert main(words) == 0
    found = read_back(target)
    tables = {"truth": make_truth(), "a": make_predictions()}
    classes = {}
    for row in take(found["/one"], "context")[0][0]:
        classes[row["class_description"]["info"]["label"]] = row["class_id"]
    assert set(classes) == {"Ped", "Car"}
    entities = {name for name in found if "/image/" in name}
    wanted = set()
    for side, tables_ in tables.items():
        words_of = dict(tables_.tube_labels.select("tube", "label").rows())
        for (video, tube), rows in tables_.boxes.group_by("video", "tube"):
            entity = f"/{video}/image/{side}/tubes/{tube}"
            wanted.add(entity)
            rows = rows.sort("frame")
            corners = rows.select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy()
            centers, halves, ids = (
                take(found[entity], name) for name in ("centers", "half_sizes", "class_ids")
            )
            kept = [k for k, each in enumerate(centers) if each]
            assert np.array([centers[k][0] for k in kept]) == pytest.approx(
                (corners[:, :2] + corners[:, 2:]) / 2, abs=1e-4
            )
            assert np.array([halves[k][0] for k in kept]) == pytest.approx(
                (corners[:, 2:] - corners[:, :2]) / 2, abs=1e-4
            )
            number = classes[("Ped", "Car")[words_of[tube]]] if video == "one" else 1
            assert {ids[k][0] for k in kept} == {number}
            frames = sorted(frame for batch in found[entity] for frame in batch["frame"].to_pylist())
            assert frames[: len(rows)] == rows["frame"].to_list()
            assert len(centers) - len(kept) == 1  # it says where the tube ends
            assert frames[-1] == rows["frame"].max() + 1
            assert [each[0] for each in take(found[entity], "box") if each] == rows["box"].to_list()
            if side == "a":
                scores = [each[0] for each in take(found[f"/{video}/scores/a/{tube}"], "scalars")]
                assert scores == pytest.approx(rows["score"].to_list())
    assert entities == wanted
    times = [each[0] for each in take(found["/one/image"], "timestamp")]
    assert times == [1_000_000 * time for time in variable_times()]
    assert len(times) == FRAMES
    assert take(found["/one/image"], "file") == [[str((sets / "films/one.mp4").resolve())]]
    assert not take(found["/one/image"], "blob")
    said = json.loads((tmp_path / "said.json").read_text())
    assert said["boxes"] == {side: len(each.boxes) for side, each in tables.items()}
    assert said["tubes"] == {"truth": 4, "a": 4}
    assert any("two.mp4" in note for note in said["notes"])


@pytest.mark.slow
@needs_rerun
def test_views_are_saved_and_films_embedded_where_that_is_asked(sets: Path, tmp_path: Path) -> None:
    from rerun.chunk import RrdReader

    target = tmp_path / "one.rrd"
    words = [
        "convert",
        str(sets / "found"),
        "-o",
        str(target),
        "--media",
        str(sets / "films"),
        "--videos",
        "one",
        "-q",
    ]
    assert main([*words, "--embed"]) == 0
    held = take(read_back(target)["/one/image"], "blob")
    assert bytes(held[0][0]) == (sets / "films/one.mp4").read_bytes()
    reader = RrdReader(target)
    assert [entry.application_id for entry in reader.recordings()] == ["roadaware"]
    (blueprint,) = reader.blueprints()
    origins = {
        value[0]
        for chunk in reader.stream(store=blueprint)
        for value in take([chunk.to_record_batch()], "space_origin")
        if value
    }
    assert {"/one/image", "/one/scores"} <= {f"/{each.strip('/')}" for each in origins}
    assert main(words) == 2  # it is there already
    assert main([*words, "--overwrite"]) == 0
    assert (
        main(["convert", str(sets / "found"), "-o", str(tmp_path / "x.rrd"), "--videos", "none", "-q"]) == 2
    )
    assert not [path for path in tmp_path.iterdir() if path.name != "one.rrd"]


@pytest.mark.slow
@needs_rerun
def test_points_and_boxes_in_space_are_those_of_the_sweep(tmp_path: Path) -> None:
    kitti = write_swept_kitti(tmp_path / "kitti")
    run = propose(kitti, tmp_path / "near", "--set", "max_distance_m=12")
    target = tmp_path / "kitti.rrd"
    assert (
        main(["convert", str(kitti), str(run), "-o", str(target), "--videos", "training/000002", "-q"]) == 0
    )
    found = {name.replace("\\", ""): held for name, held in read_back(target).items()}
    sweeps = Sweeps(open_paths([kitti, run]))
    turn = sweeps.open("training/000002", 0)
    points = np.array(take(found["/training/000002/space/points"], "positions")[0])
    assert points == pytest.approx(turn.move(turn.capture.points).astype(np.float32))
    codes = np.array(take(found["/training/000002/space/points"], "class_ids")[0]) - 1
    assert np.array_equal(codes, sweeps.code_points("training/000002", 0, "a"))
    scene = sweeps.scene("training/000002", 0, "")
    corners = np.array(scene["boxes"]["truth"]["corners"]).reshape(-1, 8, 3)
    solid = found["/training/000002/space/truth"]
    centers = np.array(take(solid, "centers")[0])
    assert centers == pytest.approx(corners.mean(axis=1), abs=2e-3)
    from scipy.spatial.transform import Rotation

    halves, turns = take(solid, "half_sizes")[0], take(solid, "quaternions")[0]
    for center, half, quaternion, expected in zip(centers, halves, turns, corners, strict=True):
        front = center + Rotation.from_quat(quaternion).apply([half[0], half[1], half[2]])
        assert front == pytest.approx(expected[7], abs=5e-3)
    proposals = pl.read_parquet(next((run / "proposals").glob("boxes*.parquet"))).filter(
        video="training/000002"
    )
    assert len(take(found["/training/000002/image/a/boxes"], "centers")[0]) == len(proposals)


@pytest.mark.slow
@needs_rerun
def test_a_disk_that_refuses_leaves_nothing(sets: Path, tmp_path: Path) -> None:
    limited = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 15, 1 << 15))
from roadaware.cli import main
sys.exit(main(sys.argv[1:]))
"""
    (tmp_path / "out").mkdir()
    words = ["convert", str(sets / "truth"), "-o", str(tmp_path / "out" / "x.rrd"), "-q"]
    command = [sys.executable, "-c", limited, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 4, done.stderr
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.slow
@needs_rerun
@pytest.mark.skipif(
    platform.machine() != "x86_64" or sys.platform != "linux", reason="its filter is of x86-64 Linux"
)
def test_no_socket_no_process_and_no_file_in_a_home(sets: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    words = [
        "convert",
        str(sets / "truth"),
        str(sets / "found"),
        "-o",
        str(tmp_path / "x.rrd"),
        "--embed",
        "-q",
    ]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
        "HOME": str(home),
        "ROADAWARE_HOME": str(tmp_path / "cache"),
        "FORCE_RERUN_ANALYTICS": "1",
        "TELEMETRY_ENABLED": "true",
    }
    environment.pop("CI", None)
    command = [sys.executable, "-c", FENCED + RUN, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode == 99:
        pytest.skip("the kernel takes no filter here")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "x.rrd").stat().st_size > 1000
    assert list(home.rglob("*")) == []
    # The fence is one: what opens a socket is ended.
    tried = [sys.executable, "-c", FENCED + "import socket; socket.socket()"]
    assert subprocess.run(tried, env=environment, capture_output=True, timeout=60, check=False).returncode < 0
