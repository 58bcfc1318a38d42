"""Measure lists of images again, on scenes with and without corner cases: `corner_annotation.py FOLDER`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from roadaware.analysis.annotation.cost import Unit, compute_discovery_curve, measure_worth
from roadaware.analysis.annotation.selection import By, SelectionConfig, rank_images
from roadaware.corner_cases.config import BACKGROUND, CopgConfig
from roadaware.corner_cases.runner import Order, run
from roadaware.datasets import read
from roadaware.io.files import write_atomically
from roadaware.reports.annotation import plot_discovery
from roadaware.scenes.concatenation import concat
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.simulator import generate
from roadaware.simulator.config import build_scene_config

SETS = {"with": (4, 71, 30), "without": (0, 72, 60)}
"""Things on the road in each scene, the seed, and how many scenes."""
_COMMON = ("person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle")
WAYS = {
    "errs": ("erring", CopgConfig.angle()),
    "errs, knows common classes": ("erring", CopgConfig.angle(background=(*BACKGROUND, *_COMMON))),
    "exact": ("truth", CopgConfig.angle()),
}
"""What segmenter and detector are, and the parameters."""
_DRAWS = 1000
_UNITS: tuple[Unit, ...] = ("objects", "pictures")
_RANKED: tuple[tuple[By, float], ...] = (("count", 0.5), ("any", 0.5), ("count", 1.0))


def main(folder: Path) -> None:
    """Make scenes and proposals, as far as they are not there, and print and draw what lists find.

    Args:
        folder: where scenes and proposals are kept.
    """
    truths = [_scenes(folder, name) for name in SETS]
    truth = concat(truths)
    for way, (source, config) in WAYS.items():
        claims = concat([_proposals(folder, name, way, source, config) for name in SETS])
        for by, repeat in _RANKED:
            listed = rank_images(claims, truth.frames, SelectionConfig(by=by, repeat=repeat))
            for unit in _UNITS:
                found = compute_discovery_curve(measure_worth(listed, claims, truth), unit=unit, draws=_DRAWS)
                print(f"== {way}; by {by}, repeat {repeat}; {unit}; {found.totals}")
                with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, float_precision=3):
                    print(found.table)
                print({name: round(float(np.mean(values)), 3) for name, values in found.found.items()})
                if (by, repeat, unit) == ("count", 0.5, "objects") and "knows" in way:
                    path = Path(__file__).parent / "images" / "labelling_found.svg"
                    write_atomically(path, plot_discovery(found).svg("labelling_found").encode())


def _scenes(folder: Path, name: str) -> Scenes:
    """Corner-case scenes with so many things on the road, at two images a second."""
    things, seed, count = SETS[name]
    config = build_scene_config("corner-cases")
    camera, behaviour = replace(config.camera, fps=2.0), replace(config.behaviour, objects=things)
    config = replace(config, sound=False, camera=camera, behaviour=behaviour)
    generate.generate_scenes(generate.Order(config, seed=seed, scenes=count), folder / name)
    scenes = read("simulator", folder / name)
    boxes = scenes.boxes.select(
        "box", "video", "frame", "tube", "x1_px", "y1_px", "x2_px", "y2_px", "corner_case"
    )
    return Scenes(
        videos=_renamed(scenes.videos.select("video"), name),
        frames=_renamed(scenes.frames.select("video", "frame"), name),
        boxes=_renamed(boxes, name),
        tubes=_renamed(scenes.tubes.select("tube", "video"), name),
    )


def _proposals(folder: Path, name: str, way: str, source: str, config: CopgConfig) -> Predictions:
    order = Order("simulator", str((folder / name).resolve()), config, source, source)
    found, _ = run(order, folder / f"proposals-{name}-{list(WAYS).index(way)}")
    boxes = found.boxes.select("box", "video", "frame", "x1_px", "y1_px", "x2_px", "y2_px", "score")
    return Predictions(boxes=_renamed(boxes, name))


def _renamed(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Both sets call their scenes alike; here each has its own names."""
    return table.with_columns(video=pl.format("{}/{}", pl.lit(name), pl.col("video").cast(pl.String)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
