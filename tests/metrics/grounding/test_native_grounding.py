"""From native files of truth and predictions to the numbers that the published evaluators give."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from grounded_sets import Box, Told, random_told
from plain_grounding import Row, means, official, tubedetr

from roadaware.datasets import read
from roadaware.formats.grounding import read_grounding_predictions
from roadaware.metrics.grounding import CONFIGS, evaluate
from roadaware.metrics.metric_state import as_json


def scored(folder: Path, dataset: str, name: str, truth: Any, predictions: Any) -> dict[str, Any]:
    (folder / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    (folder / "predictions.json").write_text(json.dumps(predictions), encoding="utf-8")
    scenes = read(dataset, folder / "truth.json")
    return as_json(
        evaluate(read_grounding_predictions(folder / "predictions.json", scenes), scenes, CONFIGS[name]())
    )


def sized(box: Box) -> list[float]:
    return [box[0], box[1], box[2] - box[0], box[3] - box[1]]


def in_tubedetr(told: Sequence[Told]) -> dict[str, Any]:
    predicted = [(number, each) for number, each in enumerate(told) if each.prediction is not None]
    return {
        "predictions": {
            f"{number}_{frame}": {"boxes": [list(box)]}
            for number, each in predicted
            for frame, box in each.predicted_boxes.items()
        },
        "video_predictions": {
            str(number): {"sted": [float(end) for end in each.prediction or ()], "qtype": each.kind}
            for number, each in predicted
        },
    }


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("form", ["raw", "processed"])
def test_hcstvg_files_as_tubedetr_judges_them(tmp_path: Path, seed: int, form: str) -> None:
    told = random_told(seed, short_clips=True)
    truth: Any = [
        {
            "video_id": number,
            "original_video_id": f"clip{number}",
            "frame_count": each.n_frames,
            "width": 640,
            "height": 360,
            "tube_start_frame": each.span[0] + 1,
            "tube_end_frame": each.span[1] + 1,
            "caption": "the man in the red coat waves",
            "trajectory": [sized(box) for box in each.boxes.values()],
        }
        for number, each in enumerate(told)
    ]
    predictions = in_tubedetr(told)
    if form == "raw":
        truth = {
            f"{each['original_video_id']}.mp4": {
                "bbox": each["trajectory"],
                "st_frame": each["tube_start_frame"],
                "img_num": each["frame_count"],
                "st_time": 0.0,
                "ed_time": 1.0,
                "width": 640,
                "height": 360,
                "caption": each["caption"],
            }
            for each in truth
        }
    found = scored(tmp_path, "hcstvg", "tubedetr-hcstvg", truth, predictions)
    expected = means((tubedetr(each, 1, hcstvg=True) for each in told), strict=True)
    assert found["summary"] == pytest.approx(expected, abs=1e-9)


def late(told: Told) -> dict[int, Box]:
    """Boxes behind the end of the sentence, which the official script looks at all the same."""
    box = next(iter(told.boxes.values()))
    return dict.fromkeys(range(told.span[1], min(told.span[1] + 5, told.n_frames)), box)


@pytest.mark.parametrize("seed", range(2))
def test_hcstvg_files_as_the_official_script_judges_them(tmp_path: Path, seed: int) -> None:
    told = random_told(seed, short_clips=True)
    told[::3] = [replace(each, boxes={**late(each), **each.boxes}) for each in told[::3]]

    def entry(span: tuple[int, int], boxes: dict[int, Box]) -> dict[str, Any]:
        return {
            "st_frame": span[0] + 1,
            "ed_frame": span[1],
            "bbox": {str(frame + 1): list(box) for frame, box in boxes.items()},
        }

    truth = {f"clip{n}.mp4": entry(each.span, each.boxes) for n, each in enumerate(told)}
    predictions = {
        f"clip{n}.mp4": entry(each.prediction, each.predicted_boxes)
        for n, each in enumerate(told)
        if each.prediction is not None
    }
    found = scored(tmp_path, "hcstvg", "hcstvg-official", truth, predictions)
    assert found["summary"] == pytest.approx(means(map(official, told), strict=True), abs=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_vidstg_files_as_tubedetr_judges_them(tmp_path: Path, seed: int) -> None:
    told = random_told(seed)
    videos, trajectories = [], {}
    for number, each in enumerate(told):
        assert each.segment is not None
        trajectories.setdefault(each.video, {})[str(number)] = {
            str(frame): {"bbox": sized(box)} for frame, box in each.boxes.items()
        }
        videos.append(
            {
                "video_id": number,
                "original_video_id": each.video,
                "frame_count": each.n_frames,
                "fps": each.fps,
                "width": 640,
                "height": 360,
                "start_frame": each.segment[0],
                "end_frame": each.segment[1],
                "tube_start_frame": each.span[0],
                "tube_end_frame": each.span[1],
                "caption": "a man waves",
                "type": "action",
                "target_id": number,
                "qtype": each.kind,
                "video_path": "v.mp4",
            }
        )
    truth = {"videos": videos, "trajectories": trajectories}
    found = scored(tmp_path, "vidstg", "tubedetr-vidstg", truth, in_tubedetr(told))
    for kind in ("declarative", "interrogative"):
        rows: list[Row] = [tubedetr(each, 0, hcstvg=False) for each in told if each.kind == kind]
        assert found["per_class"][kind] == pytest.approx(means(rows, strict=True), abs=1e-9)
