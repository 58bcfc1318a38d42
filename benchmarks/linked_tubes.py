"""`python -m benchmarks.linked_tubes`: video-mAP of the default linker less that of the former one, paired.

Sets: synthetic tracks shaped like ROAD (ten videos of 380 frames), simulated scenes where a folder of them is
given, and the test videos of UCF101-24 where its annotations lie below ROADAWARE_DATA_DIR; detections are
synthetic (`simulate_detections`). Intervals are over videos, each resample taken for both.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl

from benchmarks.trackers import FORMER
from roadaware.analysis.compare import compare_detections
from roadaware.datasets import read
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import match_tubes
from roadaware.scenes.tables import Predictions, Scenes

LEVELS = (0.2, 0.5, 0.75)
Set = tuple[str, Scenes, Predictions, LinkerConfig, LinkerConfig]


def main() -> int:
    """Print, for each set, kind and overlap: default, former, their difference and its 95 % interval."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.linked_tubes", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("ROADAWARE_DATA_DIR"))
    parser.add_argument(
        "--simulated", type=Path, help="a folder that `roadaware simulate --tables-only` wrote"
    )
    options = parser.parse_args()
    config = DetectionConfig.default()
    print("| set | tubes | `default()` | former | difference |\n|---|---|---|---|---|")
    for name, scenes, found, default, former in _sets(options.data, options.simulated):
        default_tubes, former_tubes = (
            {"video:stiou": match_tubes(link(found, linker), scenes, config, LEVELS)}
            for linker in (default, former)
        )
        table = compare_detections(default_tubes, former_tubes, config, resamples=200).table
        for row in table.filter(pl.col("label").is_null()).iter_rows(named=True):
            if row["difference"] is not None:
                a, b, apart, low, high = (
                    100 * (row[key] if row[key] is not None else float("nan"))
                    for key in ("a", "b", "difference", "low_video", "high_video")
                )
                what = f"{row['kind']} at {row['threshold']}"
                print(
                    f"| {name} | {what} | {a:.1f} | {b:.1f} | {apart:+.1f} [{low:+.1f}, {high:+.1f}] |",
                    flush=True,
                )
    return 0


def _sets(data: Path | None, simulated: Path | None) -> Iterator[Set]:
    default = LinkerConfig.default()
    scenes = generate_road_scenes(videos=10, frames=380, boxes_per_frame=6.8, seed=0)
    yield "ROAD-shaped", scenes, simulate_detections(scenes, seed=0), default, FORMER
    if simulated is not None:
        scenes = read("simulator", simulated, cache=False)
        yield (
            "simulated",
            scenes,
            simulate_detections(scenes, seed=0, detector=Detector(size=None)),
            default,
            FORMER,
        )
    if data is not None and (data / "ucf24").is_dir():
        scenes = read("ucf24", data / "ucf24", cache=False).split("test")
        former = replace(FORMER, min_iou=0.25, trim="indiv")
        found = simulate_detections(scenes, seed=0, detector=Detector.ucf24())
        yield "UCF101-24", scenes, found, LinkerConfig.default("ucf24"), former


if __name__ == "__main__":
    sys.exit(main())
