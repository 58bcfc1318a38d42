"""Made-up road events on disk: annotations in the file of ROAD, detections as its detector writes them."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from roadaware.scenes.demo.detector import Detector, perturbed
from roadaware.scenes.demo.road_json import road_json
from roadaware.scenes.demo.road_world import road_world
from roadaware.scenes.disk import atomic_write, disk_error
from roadaware.scenes.formats.detections import write_detections

ANNOTATIONS, DETECTIONS, FACTS = "road_trainval_v1.0.json", "detections", "facts.json"


@dataclass(frozen=True)
class RoadFacts:
    """What was written, for comparison with what is found.

    Args:
        videos: how many.
        frames: in all of them.
        boxes: true boxes.
        tracks: road users.
        detections: boxes that the made-up detector found.
    """

    videos: int
    frames: int
    boxes: int
    tracks: int
    detections: int


def write_road_demo(
    root: Path,
    *,
    seed: int = 0,
    videos: int = 4,
    frames: int = 150,
    detector: Detector | None = None,
) -> RoadFacts:
    """Write annotations and detections into a folder and say what is in it; the same seed, the same bytes.

    Args:
        root: the folder, made if need be; what an earlier demo wrote there is replaced.
        seed: where chance comes from.
        videos: how many.
        frames: of each.
        detector: how badly it sees.

    Raises:
        DiskError: if a file cannot be written.
        UsageError: if a folder of detections stands there that no demo wrote.
    """
    scenes = road_world(videos=videos, frames=frames, seed=seed)
    claims = perturbed(scenes, seed=seed, detector=detector)
    tracks = scenes.boxes["tube"].n_unique()
    facts = RoadFacts(videos, len(scenes.frames), len(scenes.boxes), tracks, len(claims.boxes))
    _make_room(root)
    atomic_write(root / FACTS, (json.dumps(asdict(facts), indent=2) + "\n").encode())
    atomic_write(root / ANNOTATIONS, json.dumps(road_json(scenes)).encode())
    write_detections(claims, root / DETECTIONS)
    return facts


def _make_room(root: Path) -> None:
    """The folder, without the detections of an earlier demo."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        if (root / FACTS).is_file() and (root / DETECTIONS).is_dir():
            shutil.rmtree(root / DETECTIONS)
    except OSError as error:
        raise disk_error(root, 0, error) from error
