"""Predictions in other people's formats: COCO results, MOT text, tables without layout; and truth from VoTT."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from event_files import Events
from small_files import Command

from roadaware.analysis.evaluation import event_inputs
from roadaware.datasets import read
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.formats.coco import read_index, write_annotations, write_results
from roadaware.scenes.store import save


def mot_lines(rows: pl.DataFrame, track: str) -> str:
    """Boxes as lines of MOT text, whose first pixel is 1."""
    lines = []
    for row in rows.iter_rows(named=True):
        x, y = row["x1_px"], row["y1_px"]
        place = f"{x + 1},{y + 1},{row['x2_px'] - x},{row['y2_px'] - y}"
        number = -1 if track == "-1" else row[track] + 1
        lines.append(f"{row['frame'] + 1},{number},{place},{row.get('score', 1)},-1,-1,-1")
    return "\n".join(lines) + "\n"


@pytest.mark.slow
def test_coco_results_give_the_numbers_of_the_tables(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    scenes = read("road", events.truth)
    predictions = simulate_detections(scenes, seed=1, detector=Detector(size=None))
    seen = scenes.frames.filter("annotated").select(pl.col("video").cast(pl.String), "frame")
    boxes = predictions.boxes.cast({"video": pl.String}).join(
        seen, on=["video", "frame"], maintain_order="left"
    )
    predictions = predictions.with_tables(boxes=boxes)
    images, results = tmp_path / "images.json", tmp_path / "results.json"
    write_annotations(scenes, images)
    write_results(predictions, results, read_index(images, by="folders"))
    save(predictions, tmp_path / "predictions")
    words = ["evaluate", "road", "--truth", events.truth, "--kinds", "agent", "--json", "--predictions"]
    wanted = roadaware(*words, tmp_path / "predictions", "--only", "frame").data["frame"]["0.5"]["agent"]
    done = roadaware(*words, results, "--images", images, "--only", "frame")
    assert done.code == 0, done.err
    found = done.data["frame"]["0.5"]["agent"]
    for label, value in wanted["per_class"].items():
        assert found["per_class"][label] == pytest.approx(value, abs=0.05), label
    linked = roadaware(
        "link", results, "--truth", events.truth, "--images", images, "--out", tmp_path / "linked"
    )
    assert linked.code == 0, linked.err
    done = roadaware(*words, results)
    assert done.code == 2
    assert "say --images FILE" in done.err


@pytest.mark.slow
def test_mot_tracks_of_the_truth_are_perfect_tubes(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    scenes = read("road", events.truth)
    for (video,), rows in scenes.boxes.cast({"video": pl.String}).partition_by("video", as_dict=True).items():
        (tmp_path / f"{video}.txt").write_text(mot_lines(rows, "tube"))
    words = ["evaluate", "road", "--truth", events.truth, "--kinds", "agentness", "--json", "--predictions"]
    done = roadaware(*words, tmp_path)
    assert done.code == 0, done.err
    assert done.data["video"]["stiou"]["0.5:0.95"]["agentness"]["mean"] == pytest.approx(100)
    assert done.data["frame"] == {}


@pytest.mark.slow
def test_mot_detections_are_boxes_that_can_be_linked(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    scenes = read("road", events.truth)
    boxes = scenes.boxes.cast({"video": pl.String})
    folder = tmp_path / "det"
    folder.mkdir()
    for (video,), rows in boxes.partition_by("video", as_dict=True).items():
        (folder / f"{video}.txt").write_text(mot_lines(rows, "-1"))
    words = ["evaluate", "road", "--truth", events.truth, "--kinds", "agentness", "--json", "--predictions"]
    done = roadaware(*words, folder)
    assert done.code == 0, done.err
    assert done.data["frame"]["0.5"]["agentness"]["mean"] == pytest.approx(100)
    assert done.data["video"]["stiou"]["0.2"]["agentness"]["mean"] > 50
    assert roadaware("link", folder, "--truth", events.truth, "--out", tmp_path / "linked").code == 0


@pytest.mark.parametrize("text", ["1,2,3\n", "nonsense\n", "\x00\n"])
def test_text_that_is_no_mot_is_one_message(
    roadaware: Command, events: Events, tmp_path: Path, text: str
) -> None:
    path = tmp_path / f"{events.scenes.videos['video'][0]}.txt"
    path.write_text(text)
    done = roadaware("evaluate", "road", "--truth", events.truth, "--predictions", path)
    assert done.code == 3
    assert path.name in done.err


def test_truth_can_be_a_vott_export(roadaware: Command, tmp_path: Path) -> None:
    region = {"x1": 10, "y1": 10, "x2": 60, "y2": 90, "width": 640, "height": 480, "tags": ["Ped"], "id": 0}
    frames = {str(number): [region | {"name": 1, "type": "Rectangle"}] for number in range(1, 7)}
    content = {"frames": frames, "framerate": "1", "inputTags": "Ped,Car", "visitedFrames": list(range(1, 7))}
    truth = tmp_path / "drive.json"
    truth.write_text(json.dumps(content))
    scenes = event_inputs.open_truth(truth, "road")
    assert len(scenes.boxes) == 6
    (tmp_path / "drive.txt").write_text(mot_lines(scenes.boxes, "-1"))
    words = ["evaluate", "road", "--truth", truth, "--predictions", tmp_path / "drive.txt", "--json"]
    done = roadaware(*words, "--only", "frame")
    assert done.code == 0, done.err
    assert done.data["frame"]["0.5"]["agentness"]["mean"] == pytest.approx(100)


def test_forms_are_known_by_what_is_there(events: Events, tmp_path: Path) -> None:
    (tmp_path / "tubes.PKL").write_bytes(b"")
    (tmp_path / "mot").mkdir()
    (tmp_path / "mot" / "v.txt").write_text("")
    found = [
        event_inputs.detect_form(path)
        for path in (events.saved, events.folder, events.truth, tmp_path / "tubes.PKL", tmp_path / "mot")
    ]
    assert found == ["saved", "detections", "coco", "tubes", "mot"]


def test_annotations_of_another_form_are_named_with_the_way_to_tables(roadaware, tmp_path):
    image = {"id": 1, "file_name": "v/00001.jpg", "width": 64, "height": 48}
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 9, 9]}
    held = {"images": [image], "categories": [{"id": 1, "name": "car"}], "annotations": [box]}
    (tmp_path / "gt.json").write_text(json.dumps(held))
    done = roadaware(
        "evaluate", "road", "--truth", tmp_path / "gt.json", "--predictions", tmp_path / "gt.json"
    )
    assert done.code == 3
    assert "looks like coco" in done.err
    assert "-o TABLES" in done.err
