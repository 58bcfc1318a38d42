"""Predictions that need their annotations to be understood, or that no reader of annotations knows, through `convert`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))

from sets import NativeSet, maker

from roadaware.cli.app import main
from roadaware.datasets import read, read_predictions
from roadaware.demo_data.road import write_road_demo
from roadaware.errors import InputError
from roadaware.formats.actions import read_person_boxes
from roadaware.formats.road_detections import read_detections
from roadaware.io.pickles import encode_arrays
from roadaware.scenes.schema import CORNERS


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_HOME", str(tmp_path / "home"))


def convert(*words: str | Path) -> int:
    return main(["convert", *map(str, words), "-q"])


def test_actions_of_ava_go_to_csv_and_back_with_the_annotations(tmp_path: Path) -> None:
    native = NativeSet("ava", maker("ava"))
    truth = native.make(tmp_path / "truth")
    scenes = native.read(truth)
    known = dict(enumerate(scenes.meta.notes["label_ids"]["action"]))
    rows = scenes.boxes.join(scenes.labels.filter(pl.col("kind") == "action"), on="box")
    lines = [
        f"{row['video']},{row['frame']:04d},{row['x1_px']},{row['y1_px']},{row['x2_px']},{row['y2_px']},"
        f"{known[row['label']]},{0.5 + n / 100}"
        for n, row in enumerate(rows.iter_rows(named=True))
    ]
    (tmp_path / "pred.csv").write_text("\n".join(lines) + "\n")
    assert convert(tmp_path / "pred.csv", "--truth", truth, "--to", "ava", "-o", tmp_path / "again.csv") == 0
    number = {line.split(",", 7)[-1]: line.split(",")[:7] for line in lines}
    again = (tmp_path / "again.csv").read_text().splitlines()
    assert len(again) == len(lines)
    for line in again:
        cells = line.split(",")
        due = number[cells[7]]
        assert (cells[0], int(cells[1]), cells[6]) == (due[0], int(due[1]), due[6])
        assert [float(cell) for cell in cells[2:6]] == pytest.approx([float(cell) for cell in due[2:6]])
    alone = ("--predictions", "--to", "csv", "-o", tmp_path / "no")
    assert convert(tmp_path / "pred.csv", *alone) == 2, "without the annotations"
    assert not (tmp_path / "no").exists()
    words = ("--truth", truth, "--to", "csv", "--lossy", "-o", tmp_path / "csv")
    assert convert(tmp_path / "pred.csv", *words) == 0
    found = read_predictions("csv", tmp_path / "csv")
    assert len(found.boxes) == rows["box"].n_unique()
    # Of a box with several actions the first is that of the highest score.
    best = rows.with_row_index("n").group_by("video", "frame", "x1_px").agg(pl.col("n").max())
    assert sorted(found.boxes["score"].to_list()) == pytest.approx(sorted(0.5 + best["n"] / 100))


def test_detections_of_road_go_to_csv_with_the_annotations(tmp_path: Path) -> None:
    write_road_demo(tmp_path / "road", videos=1, frames=24)
    detections = tmp_path / "road" / "detections"
    words = ("--truth", tmp_path / "road", "--to", "csv", "--lossy", "-o", tmp_path / "csv")
    assert convert(detections, *words) == 0
    found = read_predictions("csv", tmp_path / "csv", fps=12)
    scenes = read("road", tmp_path / "road", cache=False)
    due = read_detections(detections, scenes).boxes
    assert len(found.boxes) == len(due) > 40
    # Detections are in pixels of the images that the network saw, and the csv says so.
    assert found.videos.select("width_px", "height_px").row(0) == (682, 512)
    mine, theirs = (
        table.with_columns(pl.col("video").cast(pl.String)).sort("video", "frame", "x1_px", "y1_px", "x2_px")
        for table in (found.boxes, due)
    )
    assert mine["frame"].to_list() == theirs["frame"].to_list()
    assert mine.select(CORNERS).to_numpy() == pytest.approx(theirs.select(CORNERS).to_numpy(), abs=1e-3)
    alone = ("--predictions", "--to", "csv", "-o", tmp_path / "no")
    assert convert(detections, *alone) == 2, "without the annotations"


def test_proposals_of_mmaction2_come_back(tmp_path: Path) -> None:
    rows = ["frame,class,score,x1,y1,x2,y2", "0,person,0.5,0,0,32,48", "20,person,0.25,16,24,64,96"]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    words = ("--predictions", "--option", "fps=10", "size=64x96", "--to", "mmaction2")
    assert convert(tmp_path / "a.csv", *words, "-o", tmp_path / "p.pkl") == 0
    words = ("--from", "mmaction2", "--predictions", "--to", "csv", "-o", tmp_path / "back")
    assert convert(tmp_path / "p.pkl", *words) == 0
    found = read_predictions("csv", tmp_path / "back")
    assert found.boxes.select("video", "frame", *CORNERS, "score").rows() == [
        ("a", 0, 0, 0, 0.5, 0.5, 0.5), ("a", 2, 0.25, 0.25, 1, 1, 0.25)
    ]  # fmt: skip


def test_what_is_no_proposal_is_counted(tmp_path: Path) -> None:
    good = [0.1, 0.1, 0.5, 0.5, 0.9]
    arrays = {
        "v,0001": [good, [0.5, 0.1, 0.1, 0.5, 0.9], [0.1, 0.1, 0.5, 0.5, 1.5], [float("nan"), 0, 1, 1, 0.5]],
        "v": [good, good],
        "v,0002": [[10.0, 10.0, 50.0, 50.0, 0.9]],
        "w,3": [good[:4]],
    }
    path = tmp_path / "p.pkl"
    path.write_bytes(encode_arrays({name: np.array(rows, np.float32) for name, rows in arrays.items()}))
    found = read_person_boxes(path)
    assert found.boxes.select("video", "frame").rows() == [("v", 1)]
    assert found.meta.rows_read["boxes"] == len(found.boxes) + len(found.rejected) == 8
    path.write_bytes(encode_arrays({"v,1": np.array([[10.0, 10.0, 50.0, 50.0, 0.9]], np.float32)}))
    with pytest.raises(InputError, match="all 1 proposals were refused"):
        read_person_boxes(path)
    path.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(InputError, match="not one of the four"):
        read_person_boxes(path)


def test_tasks_of_label_studio_go_both_ways(tmp_path: Path) -> None:
    rows = ["frame,id,class,score,x1,y1,x2,y2", "0,1,person,0.5,0,0,32,48", "1,1,person,0.7,8,0,40,48"]
    (tmp_path / "a.csv").write_text("\n".join([*rows, "2,2,car,0.25,16,24,64,96"]) + "\n")
    size = ("--option", "fps=10", "size=64x96")
    words = ("--predictions", *size, "--to", "label_studio", "-o", tmp_path / "tasks.json")
    assert convert(tmp_path / "a.csv", *words) == 0
    words = ("--predictions", "--to", "csv", "--lossy", "-o", tmp_path / "back")
    assert convert(tmp_path / "tasks.json", *words) == 0
    found = read_predictions("csv", tmp_path / "back")
    assert found.boxes.select("frame", *CORNERS).rows() == [
        (0, 0, 0, 32, 48), (1, 8, 0, 40, 48), (2, 16, 24, 64, 96)
    ]  # fmt: skip
    # Label Studio scores a track: the mean of its boxes.
    assert found.boxes["score"].to_list() == pytest.approx([0.6, 0.6, 0.25])
    assert convert(tmp_path / "a.csv", *size, "--to", "label_studio", "-o", tmp_path / "project") == 0
    assert {each.name for each in (tmp_path / "project").iterdir()} == {"tasks.json", "config.xml"}
    tasks = json.loads((tmp_path / "project" / "tasks.json").read_text())
    assert list(tasks[0]) == ["id", "data", "annotations"]
    scenes = read("label_studio", tmp_path / "project", cache=False)
    assert scenes.boxes.select("frame", *CORNERS).rows() == found.boxes.select("frame", *CORNERS).rows()
