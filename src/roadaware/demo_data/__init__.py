"""A small dataset in the native format of JAAD, drawn from a seed, with defects planted and counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from roadaware.demo_data import jaad
from roadaware.demo_data.jaad import (
    Drive,
    Walker,
    add_label_defects,
    simulate_crosser,
    simulate_drive,
    simulate_passer_by,
)
from roadaware.io.files import write_atomically
from roadaware.io.folders import write_text

_SPLITS = {"train": range(16), "val": range(16, 21), "test": range(21, 30)}
_MIN_FRAMES = 110
VIDEOS_FILE = Path(__file__).with_name("videos.zip")
"""Synthetic videos with their ground truth; videos.md beside it says how they were made."""


@dataclass(frozen=True)
class DemoFacts:
    """Facts of the written data, for comparison with findings.

    Args:
        videos: videos with readable annotations.
        pedestrians: tracks in them.
        crossing: pedestrians whose attribute says that they cross.
        boxes: boxes in them that a reader must accept.
        planted: kind of defect to the pedestrians, boxes or files that have it.
    """

    videos: int
    pedestrians: int
    crossing: int
    boxes: int
    planted: dict[str, tuple[str, ...]]

    def counts(self) -> dict[str, int]:
        """Kind of defect to how often it was planted."""
        return {kind: len(items) for kind, items in self.planted.items()}


@dataclass(frozen=True)
class _Video:
    name: str
    car: Drive
    walkers: list[Walker]


def write_demo(root: Path, *, seed: int = 0, progress: Callable[[int, int], None] | None = None) -> DemoFacts:
    """Write the dataset into a folder and say what is in it; the same seed writes the same bytes.

    Args:
        root: the folder, made if need be; files of an earlier demo in it are replaced.
        seed: where chance comes from.
        progress: called with (videos written, videos).

    Raises:
        DiskError: if a file cannot be written.
    """
    rng = np.random.default_rng(seed)
    count = max(len(range(r.stop)) for r in _SPLITS.values())
    videos = [_video(rng, number) for number in range(1, count + 1)]
    planted = add_label_defects(rng, [(video.name, video.car, video.walkers) for video in videos])
    damaged = _video(rng, count + 1)
    for done, video in enumerate([*videos, damaged], 1):
        index = int(video.name[-4:])
        boxes = jaad.format_annotations_xml(index, video.name, video.walkers)
        texts = {
            # Cut within the XML, as a broken download leaves it.
            f"annotations/{video.name}.xml": boxes[: int(len(boxes) * 0.6)] if (video is damaged) else boxes,
            f"annotations_attributes/{video.name}_attributes.xml": jaad.format_attributes_xml(video.walkers),
            f"annotations_traffic/{video.name}_traffic.xml": jaad.format_traffic_xml(index),
            f"annotations_vehicle/{video.name}_vehicle.xml": jaad.format_vehicle_xml(video.car),
        }
        for name, text in texts.items():
            write_text(root / name, text)
        if progress is not None:
            progress(done, len(videos) + 1)
    # The three subsets of JAAD; `default` and `high_visibility` leave a video out, as there.
    for subset, left_out in (("all_videos", -1), ("default", 3), ("high_visibility", 5)):
        for split, numbers in _SPLITS.items():
            names = [videos[k].name for k in numbers if k != left_out]
            # In training alone: what is evaluated must not depend on a file that cannot be read whole.
            names += [damaged.name] if split == "train" else []
            write_text(root / "split_ids" / subset / f"{split}.txt", "".join(f"{name}\n" for name in names))
    facts = _facts(videos, {**planted, "truncated_file": (f"annotations/{damaged.name}.xml",)})
    write_atomically(
        root / "facts.json", (json.dumps(asdict(facts), indent=2, sort_keys=True) + "\n").encode()
    )
    return facts


def _video(rng: np.random.Generator, number: int) -> _Video:
    car = simulate_drive(rng)
    share = 0.5 if car.yields else 0.14
    walkers: list[Walker] = []
    for index in range(1, int(rng.integers(6, 10)) + 1):
        crosses = bool(rng.random() < share)
        walkers.append(_walker(rng, f"0_{number}_{index}", car, crosses))
    return _Video(f"video_{number:04d}", car, walkers)


def _walker(rng: np.random.Generator, name: str, car: Drive, crosses: bool) -> Walker:
    """Draw until the track is long enough; a crosser always has behaviour annotated, others seldom."""
    behaviour = crosses or bool(rng.random() < 0.2)
    name = f"{name}b" if behaviour else name
    while True:
        walker = simulate_crosser(rng, name, car) if crosses else simulate_passer_by(rng, name, car)
        if len(walker.frames) >= _MIN_FRAMES and (walker.crossing == 1) == crosses:
            return walker


def _facts(videos: list[_Video], planted: dict[str, tuple[str, ...]]) -> DemoFacts:
    walkers = [walker for video in videos for walker in video.walkers]
    refused = len(planted["duplicated_box"]) + len(planted["inverted_box"])
    return DemoFacts(
        videos=len(videos),
        pedestrians=len(walkers),
        crossing=sum(walker.crossing == 1 for walker in walkers),
        boxes=sum(len(walker.frames) for walker in walkers) - refused,
        planted=planted,
    )
