"""COCO and YOLO as Roboflow, MMTracking and tools on Windows write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roadaware.datasets import read
from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.errors import DatasetNotFoundError

CATEGORIES = [{"id": 1, "name": "person"}, {"id": 2, "name": "car"}]


def _write_coco(path: Path, files: list[str], boxes: list[dict[str, Any]], **more: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    images = [
        {"id": n, "file_name": file, "width": 640, "height": 480, "video_id": 1, "frame_id": n}
        for n, file in enumerate(files)
    ]
    rows = [{"id": n, "category_id": 1, "bbox": [1, 2, 30, 40], **box} for n, box in enumerate(boxes)]
    path.write_text(
        json.dumps({"images": images, "categories": CATEGORIES, "annotations": rows, **more}),
        encoding="utf-8",
    )


def test_folders_with_backslashes_are_videos(tmp_path: Path) -> None:
    _write_coco(
        tmp_path / "a.json",
        ["d1\\000001.jpg", "d1\\000002.jpg", "d2\\000001.jpg"],
        [{"image_id": 1}, {"image_id": 2}],
    )
    found = read("coco", tmp_path, cache=False)
    assert found.boxes.select("video", "frame").rows() == [("d1", 1), ("d2", 0)]


@pytest.mark.parametrize("more", [{}, {"attributes": {}}])
def test_tracks_are_called_instances_by_some(tmp_path: Path, more: dict[str, Any]) -> None:
    boxes = [{"image_id": n, "instance_id": 7, **more} for n in (0, 1)]
    _write_coco(tmp_path / "a.json", ["a.jpg", "b.jpg"], boxes, videos=[{"id": 1, "name": "d1"}])
    found = read("coco", tmp_path, cache=False)
    assert found.tubes.select("video", "name").rows() == [("d1", "7")]
    assert found.boxes["tube"].to_list() == [0, 0]


def test_files_of_one_name_are_called_as_their_splits(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        _write_coco(tmp_path / split / "_annotations.coco.json", [f"{split}.jpg"], [{"image_id": 0}])
    found = read("coco", tmp_path, cache=False)
    assert found.videos["video"].to_list() == ["train", "valid"]
    assert found.rejected.is_empty()


def _write_yolo(root: Path, *, names: bool) -> None:
    for split, line in (("train", "0 0.5 0.5 0.2 0.2\n"), ("valid", "1 0.5 0.5 0.2 0.2\n")):
        (root / split / "labels").mkdir(parents=True)
        (root / split / "labels" / f"{split}_000001.txt").write_text(line)
    (root / "README.roboflow.txt").write_text("exported\n")
    if names:
        (root / "data.yaml").write_text("train: ../train/images\nval: ../valid/images\nnames: ['a', 'b']\n")


def test_labels_in_the_folders_of_splits(tmp_path: Path) -> None:
    _write_yolo(tmp_path, names=True)
    (tmp_path / "train" / "images").mkdir()
    (tmp_path / "train" / "images" / "train_000001.jpg").write_bytes(b"")
    assert detect_dataset_format(tmp_path) == "yolo"
    found = read("yolo", tmp_path, cache=False, size="640x480")
    assert found.rejected.is_empty()
    assert found.videos.select("video", "splits").rows() == [
        ("train", ["default/train"]),
        ("valid", ["default/val"]),
    ]
    assert found.meta.vocabularies == {"agent": ("a", "b")}
    assert found.labels["label"].to_list() == [0, 1]
    assert found.frames["path"].to_list() == ["train/images/train_000001.jpg", None]


def test_several_sets_are_named_in_a_sentence(tmp_path: Path) -> None:
    _write_yolo(tmp_path, names=False)
    with pytest.raises(DatasetNotFoundError, match=r"beside it, and several folders have it"):
        read("yolo", tmp_path, cache=False)
