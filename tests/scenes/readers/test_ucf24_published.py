"""UCF101-24 from files to AP as the published loader and evaluator have it: `published`, in plain loops."""

from __future__ import annotations

import json
import os
import pickle
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sets import SETS
from ucf24 import published

from roadaware.datasets import read
from roadaware.formats.road_detections import read_detections
from roadaware.formats.road_tubes import read_tubes
from roadaware.io.pickles import load
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import compute_average_precisions, match_frames, match_tubes
from roadaware.scenes.tables import Scenes

UCF24 = SETS["ucf24"]
LEVELS = (0.2, *(round(0.5 + 0.05 * step, 2) for step in range(10)))
REFERENCE = DetectionConfig.reference()
_MAKER = UCF24.maker
Predicted = tuple[dict[published.Frame, np.ndarray], dict[str, list[dict[str, Any]]]]


def random_file(root: Path, seed: int) -> dict[str, Any]:
    """A file of six videos whose boxes often touch the borders of the image, or reach over them."""
    rng = np.random.default_rng(seed)
    db: dict[str, Any] = {}
    for number in range(6):
        frames, label = int(rng.integers(8, 20)), int(rng.integers(3))
        tubes = []
        for _ in range(int(rng.integers(1, 4))):
            start = int(rng.integers(0, frames - 4))
            end = int(rng.integers(start + 3, frames + 1))
            low = np.where(rng.random(2) < 0.3, 1, rng.integers(1, (200, 150)))
            room = (321, 241) - low + 1
            side = np.where(rng.random(2) < 0.3, room + rng.integers(-1, 2, 2), rng.integers(8, room))
            boxes = np.tile(np.concatenate([low, side]), (end - start, 1)).astype(np.uint16)
            tubes.append({"label": label, "sf": start, "ef": end, "boxes": boxes})
        db[f"{_MAKER.CLASSES[label]}/v_{number}"] = {
            "annotations": tubes,
            "numf": np.uint8(frames),
            "label": label,
        }
    held = {"db": db, "trainvideos": [], "classes": list(_MAKER.CLASSES)}
    root.mkdir(parents=True, exist_ok=True)
    (root / UCF24.main).write_bytes(_MAKER.written(held))
    return held


def random_predictions(db: Any, videos: Sequence[str], classes: int, seed: int) -> Predicted:
    """Boxes and tubes about those of the truth: exact, shifted, shaken, cut at the border, and of nothing."""
    rng = np.random.default_rng(seed)
    frames = {}
    for where, true in published.true_frames(db, videos).items():
        boxes = [_moved(rng, box) for box, _ in true for _ in range(int(rng.integers(0, 3)))]
        boxes += [_anywhere(rng) for _ in range(int(rng.integers(0, 2)))]
        boxes += [_anywhere(rng) for _ in range(30)] if rng.random() < 0.02 else []
        if boxes:
            scores = rng.random((len(boxes), 1 + classes)) ** 2
            frames[where] = np.hstack([np.array(boxes), scores]).astype(np.float32)
    tubes: dict[str, list[dict[str, Any]]] = {}
    for video, true in published.true_tubes(db, videos).items():
        tubes[video] = []
        for tube in (each for each in true for _ in range(int(rng.integers(1, 4)))):
            n = len(tube["frames"])
            first, last = sorted(rng.integers(0, n + 1, 2)) if rng.random() < 0.4 else (0, n)
            if first == last:
                continue
            # One shift for all boxes of a tube: overlaps lie near the thresholds, not about their mean.
            off = _moved(rng, tube["boxes"][0]) - tube["boxes"][0]
            boxes = np.array([_upright(box + off) for box in tube["boxes"][first:last]], dtype=np.float32)
            label = tube["label"] if rng.random() < 0.8 else int(rng.integers(classes))
            tubes[video].append(
                {
                    "label": label,
                    "frames": tube["frames"][first:last],
                    "boxes": boxes,
                    "score": float(rng.random()),
                }
            )
    return frames, tubes


def _moved(rng: np.random.Generator, box: np.ndarray) -> np.ndarray:
    side = np.tile(box[2:] - box[:2], 2)
    how = rng.integers(6)
    off = (
        np.zeros(4),
        rng.choice((-2.0, 0.0, 2.0), 4),
        rng.normal(0, 0.05, 4) * side,
        rng.normal(0, 0.2, 4) * side,
        np.array([0.0, 0.0, 1.0, 1.0]) * rng.uniform(0, 0.6) * side,
        # Cut to exactly a threshold, where the last bit of the arithmetic decides.
        np.array([0.0, 0.0, -1.0, 0.0]) * rng.choice((0.5, 0.25, 0.2, 0.8)) * side,
    )[how]
    return _upright(box + off)


def _upright(box: np.ndarray) -> np.ndarray:
    """Inside the image, and at least 2 pixels wide and high."""
    low = np.clip(np.minimum(box[:2], box[2:]), 0, np.array(published.SIZE) - 3)
    return np.concatenate([low, np.clip(np.maximum(box[:2], box[2:]), low + 2, published.SIZE)]).astype(
        np.float32
    )


def _anywhere(rng: np.random.Generator) -> np.ndarray:
    low = rng.uniform(0, (500, 400))
    return _upright(np.concatenate([low, low + rng.uniform(20, 200, 2)]))


def compare(
    scenes: Scenes, db: Any, videos: Sequence[str], predicted: Predicted, folder: Path
) -> list[tuple[Any, ...]]:
    """(level, class, threshold, ours, published) of every AP, from files as the published code has them."""
    frames, tubes = predicted
    names = scenes.meta.vocabularies["action"]
    for (video, frame), main in frames.items():
        file = folder / "detections" / video / f"{frame + 1:05d}.pkl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pickle.dumps({"ego": np.zeros(1 + len(names), np.float32), "main": main}))
    told = {
        video: [
            {"label_id": t["label"], "scores": np.full(len(t["frames"]), t["score"]), "boxes": t["boxes"]}
            | {"score": t["score"], "frames": t["frames"] + 1}
            for t in held
        ]
        for video, held in tubes.items()
    }
    (folder / "tubes.pkl").write_bytes(pickle.dumps({"action": told}))
    boxes = read_detections(folder / "detections", scenes)
    paths = read_tubes(folder / "tubes.pkl", scenes)
    assert boxes.rejected.is_empty()
    assert paths.rejected.is_empty()
    of_frames = match_frames(boxes, scenes, REFERENCE, LEVELS, ("agentness", "action"))
    of_tubes = match_tubes(paths, scenes, REFERENCE, LEVELS, "stiou", ("action",))
    found = []
    for level, matches in (("frame", of_frames), ("video", of_tubes)):
        table = 100 * compute_average_precisions(matches, REFERENCE)
        for c, (kind, label) in enumerate(matches.classes):
            cls = None if kind == "agentness" else names.index(label)
            expected = (
                _frame_aps(db, videos, frames, cls)
                if level == "frame"
                else _video_aps(db, videos, tubes, cls)
            )
            found += [
                (level, label, threshold, float(table[c, t]), 100 * expected[t])
                for t, threshold in enumerate(LEVELS)
            ]
    return found


def _frame_aps(db: Any, videos: Sequence[str], frames: dict[Any, np.ndarray], cls: int | None) -> list[float]:
    truth = {
        where: [box for box, label in boxes if cls is None or label == cls]
        for where, boxes in published.true_frames(db, videos).items()
    }
    column = 0 if cls is None else 1 + cls
    found = [
        (float(main[row, 4 + column]), where, main[row, :4])
        for where, main in frames.items()
        for row in published.judged(main[:, 4:])[column]
    ]
    return [published.average_precision(found, truth, published.box_overlap, least) for least in LEVELS]


def _video_aps(db: Any, videos: Sequence[str], tubes: dict[str, Any], cls: int | None) -> list[float]:
    truth: dict[str, list[Any]] = defaultdict(list)
    for video, held in published.true_tubes(db, videos).items():
        truth[video] = [tube for tube in held if tube["label"] == cls]
    found = [(t["score"], video, t) for video, held in tubes.items() for t in held if t["label"] == cls]
    return [published.average_precision(found, truth, published.tube_overlap, least) for least in LEVELS]


def differing(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [row for row in found if row[3] != pytest.approx(row[4], abs=2e-4)]


def test_boxes_are_those_of_the_published_loader(tmp_path: Path) -> None:
    """The fixture is made by `make_published.py`, from what the loader does and without this library."""
    cases = json.loads((Path(published.__file__).parent / "published.json").read_text())
    tubes = [
        {"label": 0, "sf": 0, "ef": 1, "boxes": np.array([case["box"]], dtype=np.uint16)} for case in cases
    ]
    db = {"Basketball/v_0": {"annotations": tubes, "numf": np.uint8(1), "label": 0}}
    held = {"db": db, "trainvideos": [], "classes": list(_MAKER.CLASSES)}
    (tmp_path / UCF24.main).write_bytes(_MAKER.written(held))
    scenes = read("ucf24", tmp_path, cache=False)
    empty = [case for case in cases if case["corners"][0] == case["corners"][2] or _flat(case["corners"])]
    assert {case["case"].partition(":")[0] for case in empty} == {"one pixel wide", "one pixel high"}
    seen = scenes.boxes.sort("tube").select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy()
    shares = (seen / np.array([320, 240, 320, 240], dtype=np.float32)).astype(np.float32)
    np.testing.assert_array_equal(
        shares, np.array([case["corners"] for case in cases if case not in empty], dtype=np.float32)
    )
    assert [row for row in scenes.rejected["reason"] if "upside down or empty" in row] != []
    assert scenes.rejected.filter(table="boxes").height == len(empty)


def _flat(corners: list[float]) -> bool:
    return corners[1] == corners[3]


@pytest.mark.parametrize("seed", range(2))
def test_every_ap_is_that_of_the_published_code(seed: int, tmp_path: Path) -> None:
    held = random_file(tmp_path / "set", seed)
    scenes = read("ucf24", tmp_path / "set", cache=False)
    videos = list(held["db"])
    predicted = random_predictions(held["db"], videos, 3, seed)
    found = compare(scenes, held["db"], videos, predicted, tmp_path)
    assert not differing(found)
    assert len({row[3] for row in found}) > 20


@pytest.mark.slow
def test_on_the_real_annotations(tmp_path: Path) -> None:
    """Predictions on a hundred parts of the real test set: every AP of every class and threshold."""
    root = os.environ.get("ROADAWARE_DATA_DIR")
    if not root or not (Path(root) / "ucf24").is_dir():
        pytest.skip("ROADAWARE_DATA_DIR names no folder with ucf24/")
    held = load((Path(root) / "ucf24" / UCF24.main).read_bytes(), UCF24.main)
    whole = read("ucf24", Path(root) / "ucf24", cache=False).split("test")
    short = [v for v in whole.videos["video"].to_list() if 0 < int(held["db"][v]["numf"]) <= 90]
    for seed in range(100):
        rng = np.random.default_rng(seed)
        videos = [short[k] for k in sorted(rng.choice(len(short), 6, replace=False))]
        predicted = random_predictions(held["db"], videos, 24, seed)
        assert not differing(compare(whole.only(videos), held["db"], videos, predicted, tmp_path / str(seed)))
