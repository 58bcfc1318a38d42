"""Small files of road events: annotations, detections, and what the commands make of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import build_road_json, generate_road_scenes
from roadaware.formats import road_detections
from roadaware.scenes.store import save
from roadaware.scenes.tables import Predictions, Scenes


@dataclass(frozen=True)
class Events:
    """The same synthetic drive in all the forms that commands take.

    Args:
        truth: annotations in the native file of ROAD.
        folder: detections, one pickle per frame.
        saved: the same detections as saved tables.
        scenes: what is in `truth`.
        predictions: what is in `saved`.
    """

    truth: Path
    folder: Path
    saved: Path
    scenes: Scenes
    predictions: Predictions


def write_events(root: Path) -> Events:
    """Four short videos, two of them in val_3 or in the other splits, with a detector that errs."""
    scenes = generate_road_scenes(videos=4, frames=40, boxes_per_frame=4, seed=3)
    predictions = simulate_detections(scenes, seed=1)
    truth, folder, saved = root / "road.json", root / "detections", root / "predictions"
    truth.write_text(json.dumps(build_road_json(scenes)), encoding="utf-8")
    road_detections.write_folder(folder, road_detections.encode_frame_pickles(predictions))
    save(predictions, saved)
    return Events(truth, folder, saved, scenes, predictions)
