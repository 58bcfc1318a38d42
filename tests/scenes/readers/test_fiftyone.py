"""FiftyOneDatasets as FiftyOne exports them: images, videos whose frames stand in one file, and fields by any name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roadaware.datasets import read, read_predictions
from roadaware.errors import InputError
from roadaware.scenes.schema import CORNERS


def detection(box: list[float], **said: Any) -> dict[str, Any]:
    return {"_cls": "Detection", "bounding_box": box, **said}


def write(folder: Path, media: str, samples: list[Any], frames: list[Any] | None = None) -> Path:
    (folder / "metadata.json").write_text(json.dumps({"media_type": media, "default_classes": ["van"]}))
    (folder / "samples.json").write_text(json.dumps({"samples": samples}))
    if frames is not None:
        (folder / "frames.json").write_text(json.dumps({"frames": frames}))
    return folder


def test_images_are_frames_by_their_names_and_fields_are_chosen(tmp_path: Path) -> None:
    size = {"_cls": "ImageMetadata", "width": 200, "height": 100}
    samples = [
        {
            "filepath": f"/data/drive_{n:04d}.png",
            "metadata": size,
            "labels": {
                "detections": [detection([0.1, 0.2, 0.3, 0.4], label="car", index=n % 2, confidence=0.25)]
            },
        }
        for n in (1, 2, 4)
    ]
    scenes = read("fiftyone", write(tmp_path, "image", samples), cache=False)
    assert scenes.boxes.select("video", "frame", *CORNERS).rows() == [
        ("drive", frame, 20, 20, 80, 60) for frame in (0, 1, 3)
    ]
    assert scenes.videos.select("width_px", "height_px", "n_frames").row(0) == (200, 100, 4)
    assert scenes.meta.vocabularies == {"agent": ("van", "car")}
    assert scenes.tubes["name"].to_list() == ["1", "0"]
    found = read_predictions("fiftyone", tmp_path)
    assert found.boxes["score"].to_list() == [0.25] * 3
    for sample in samples:
        sample["other"] = {"detections": []}
    write(tmp_path, "image", samples)
    with pytest.raises(InputError, match=r"fields with Detections: labels, other\n.*--option field="):
        read("fiftyone", tmp_path, cache=False)
    assert read("fiftyone", tmp_path, cache=False, field="other").boxes.is_empty()


def test_each_box_frame_and_sample_that_is_none_is_counted(tmp_path: Path) -> None:
    size = {"frame_width": 64, "frame_height": 48, "frame_rate": 10.0, "total_frame_count": 3}
    samples = [
        {"_id": {"$oid": "a"}, "filepath": "data/a.mp4", "metadata": size},
        {"_id": {"$oid": "b"}, "filepath": "data/b.mp4", "metadata": None},
        {"_id": {"$oid": "c"}, "filepath": "other/a.mp4", "metadata": size},
        7,
    ]
    good = detection([0, 0, 0.5, 0.5])
    bad = [good, detection([0, 0, -1, 1]), detection([0, 0, 1]), detection([0, 0, 1, 1], index=-1), 3]
    frames = [
        {"_sample_id": {"$oid": "a"}, "frame_number": 1, "ground_truth": {"detections": bad}},
        {"_sample_id": {"$oid": "a"}, "frame_number": 1, "ground_truth": {"detections": [good]}},
        {"_sample_id": {"$oid": "a"}, "frame_number": 0, "ground_truth": {"detections": [good]}},
        {"_sample_id": {"$oid": "a"}, "frame_number": 9, "ground_truth": {"detections": [good]}},
        {"_sample_id": {"$oid": "b"}, "frame_number": 1, "ground_truth": {"detections": [good]}},
        {"_sample_id": {"$oid": "c"}, "frame_number": 1, "ground_truth": {"detections": [good]}},
        {"_sample_id": {"$oid": "d"}, "frame_number": 1, "ground_truth": {"detections": [good]}},
        {"frame_number": 1},
    ]
    scenes = read("fiftyone", write(tmp_path, "video", samples, frames), cache=False)
    assert len(scenes.boxes) == 1
    refused = dict(scenes.rejected.group_by("table").len().iter_rows())
    assert refused["boxes"] == 4 + 2 + 1 + 1 + 1
    assert scenes.meta.rows_read["boxes"] == 1 + refused["boxes"]
    assert refused["videos"] == 3
    assert scenes.meta.rows_read["videos"] == len(scenes.videos) + 3
    assert scenes.meta.rows_read["frames"] == len(scenes.frames) + refused["frames"]
    assert scenes.meta.notes["left_out"] == {"frames whose sample does not stand in samples.json": 1}
    reasons = " | ".join(scenes.rejected["reason"])
    for says in (
        "upside down",
        "bounding_box",
        "index",
        "stands twice",
        "frame_number",
        "size is not known",
        "behind the end",
    ):
        assert says in reasons
