"""What is written is opened by the tools it is for, where they are installed, and holds the same boxes there."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_box_forms import random_predictions, random_scenes

from roadaware.formats.boxes.forms import FORMS, PREDICTED, write_boxes


def test_pycocotools_opens_coco(tmp_path: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed")
    scenes = random_scenes(3, FORMS["coco"].holds)
    write_boxes(scenes, "coco", tmp_path / "out")
    opened = coco.COCO(str(tmp_path / "out" / "annotations" / "instances_all.json"))
    assert (len(opened.imgs), len(opened.anns)) == (len(scenes.frames), len(scenes.boxes))
    assert (
        tuple(each["name"] for each in opened.loadCats(opened.getCatIds()))
        == scenes.meta.vocabularies["agent"]
    )
    found = sorted(tuple(opened.anns[mark]["bbox"]) for mark in opened.anns)
    due = sorted(
        (x1, y1, x2 - x1, y2 - y1)
        for x1, y1, x2, y2 in scenes.boxes.select("x1_px", "y1_px", "x2_px", "y2_px").rows()
    )
    assert found == [pytest.approx(box, abs=1e-4) for box in due]


def test_pycocotools_opens_results(tmp_path: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed")
    given = random_predictions(4, PREDICTED["coco"].holds)
    write_boxes(given, "coco", tmp_path / "out")
    opened = coco.COCO(str(tmp_path / "out" / "annotations" / "image_info_all.json"))
    results = opened.loadRes(str(tmp_path / "out" / "results.json"))
    assert len(opened.imgs) == len(given.frames)
    assert len(given.boxes) >= 3
    found = sorted((each["score"], *each["bbox"]) for each in results.anns.values())
    due = sorted(
        (score, x1, y1, x2 - x1, y2 - y1)
        for score, x1, y1, x2, y2 in given.boxes.select("score", "x1_px", "y1_px", "x2_px", "y2_px").rows()
    )
    assert found == [pytest.approx(box, abs=1e-4) for box in due]


@pytest.mark.slow
def test_trackeval_opens_mot(tmp_path: Path) -> None:
    trackeval = pytest.importorskip("trackeval", reason="trackeval is not installed")
    scenes = random_scenes(3, frozenset(FORMS["mot"].holds - {"split", "untracked", "unclassed", "ignore"}))
    scenes = scenes.with_tables(
        labels=scenes.labels.with_columns(label=scenes.labels["label"] * 0),
        boxes=scenes.boxes.with_columns(x2_px=scenes.boxes["x1_px"] + 10, y2_px=scenes.boxes["y1_px"] + 10),
    )
    write_boxes(scenes, "mot", tmp_path / "gt" / "x-all")
    names = [path.parent.parent.name for path in (tmp_path / "gt" / "x-all").glob("*/gt/gt.txt")]
    maps = tmp_path / "gt" / "seqmaps"
    maps.mkdir()
    (maps / "x-all.txt").write_text("\n".join(["name", *names]) + "\n")
    data = tmp_path / "predictions" / "x-all" / "me" / "data"
    data.mkdir(parents=True)
    for name in names:
        text = (tmp_path / "gt" / "x-all" / name / "gt" / "gt.txt").read_text()
        rows = [",".join([*row.split(",")[:7], "-1", "-1", "-1"]) for row in text.splitlines()]
        (data / f"{name}.txt").write_text("\n".join(rows) + "\n")
    quiet = {"PRINT_CONFIG": False}
    folders = {"GT_FOLDER": str(tmp_path / "gt"), "TRACKERS_FOLDER": str(tmp_path / "predictions")}
    dataset = trackeval.datasets.MotChallenge2DBox(
        {**folders, "BENCHMARK": "x", "SPLIT_TO_EVAL": "all", **quiet}
    )
    silent = (
        "PRINT_RESULTS",
        "OUTPUT_SUMMARY",
        "OUTPUT_DETAILED",
        "PLOT_CURVES",
        "TIME_PROGRESS",
        "USE_PARALLEL",
    )
    judge = trackeval.Evaluator({**dict.fromkeys(silent, False), **quiet})
    found, _ = judge.evaluate([dataset], [trackeval.metrics.HOTA()])
    scores = found["MotChallenge2DBox"]["me"]["COMBINED_SEQ"]["pedestrian"]["HOTA"]
    assert scores["HOTA"].mean() == pytest.approx(1)
    assert scores["HOTA_TP"].max() == len(scenes.boxes)


def test_supervision_opens_yolo_and_voc(tmp_path: Path) -> None:
    supervision = pytest.importorskip("supervision", reason="supervision is not installed")
    from PIL import Image

    scenes = random_scenes(3, frozenset(FORMS["voc"].holds - {"split", "ignore"}))
    write_boxes(scenes, "voc", tmp_path / "voc")
    write_boxes(scenes, "yolo", tmp_path / "yolo")
    for place in (tmp_path / "voc" / "Annotations", tmp_path / "yolo" / "labels"):
        for path in place.iterdir():
            image = tmp_path / "images" / f"{path.stem}.jpg"
            image.parent.mkdir(exist_ok=True)
            Image.new("RGB", (640, 480)).save(image)
    images = str(tmp_path / "images")
    opened = (
        supervision.DetectionDataset.from_yolo(
            images, str(tmp_path / "yolo" / "labels"), str(tmp_path / "yolo" / "data.yaml")
        ),
        supervision.DetectionDataset.from_pascal_voc(images, str(tmp_path / "voc" / "Annotations")),
    )
    for each in opened:
        assert len(each) == len(scenes.frames)
        assert sum(len(held) for held in each.annotations.values()) == len(scenes.boxes)
