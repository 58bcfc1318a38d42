"""Measure lists of images again, on scenes with and without corner cases: `corner_annotation.py FOLDER`.

`corner_annotation.py FOLDER TOWN SEED` makes 8 scenes with four things on the road and 16 with none put there in that town,
follows proposals over their images, and says what lists by count and by what is new find: `city-a 171`, `city-b 181`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from roadaware.analysis.annotation.cost import Unit, compute_discovery_curve, measure_worth
from roadaware.analysis.annotation.selection import By, SelectionConfig, rank_images
from roadaware.corner_cases.config import BACKGROUND, CopgConfig
from roadaware.corner_cases.runner import Order, load_run_inputs, run
from roadaware.corner_cases.tracking import track_proposals
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


SEEDS = 16
"""Images of equal worth come by chance: what a list finds is the mean over so many orders."""
LISTS: tuple[tuple[str, By], ...] = (("angle", "count"), ("tracks", "count"), ("tracks", "new"))


def judge_town(folder: Path, town: str, seed: int) -> None:
    """Print what lists find in a town, by how much of the images has to be viewed.

    Args:
        folder: where scenes and proposals are kept.
        town: a domain of the simulator.
        seed: of the scenes with things on the road; those without have the next one.
    """
    sets = {"with": (4, seed, 8), "without": (0, seed + 1, 16)}
    truth = concat([_scenes(folder / town, name, plan, town) for name, plan in sets.items()])
    held = {}
    for way, config in (("angle", CopgConfig.angle()), ("tracks", CopgConfig())):
        held[way] = concat(
            [_proposals(folder / town, name, way, "erring", config, track=way == "tracks") for name in sets]
        )
    for way, by in LISTS:
        reached = []
        for chance in range(SEEDS):
            listed = rank_images(held[way], truth.frames, SelectionConfig(by=by), seed=chance)
            worth = measure_worth(listed, held[way], truth)
            found = compute_discovery_curve(worth, unit="objects", draws=_DRAWS if not chance else 0)
            rows = found.table.filter(order="list")
            reached.append(rows["looked_share"].to_numpy())
            if not chance:
                first = found.table
        print(f"== {town}: {way} by {by}; {found.totals}")
        print(dict(zip(rows["found"].to_list(), np.mean(reached, axis=0).round(3).tolist(), strict=True)))
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, float_precision=3):
            print(first.filter(pl.col("order") != "random"))


def _scenes(
    folder: Path, name: str, plan: tuple[int, int, int] | None = None, town: str | None = None
) -> Scenes:
    """Corner-case scenes with so many things on the road, at two images a second."""
    things, seed, count = plan or SETS[name]
    config = build_scene_config("corner-cases@1", town)
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


def _proposals(
    folder: Path, name: str, way: str, source: str, config: CopgConfig, *, track: bool = False
) -> Predictions:
    order = Order("simulator", str((folder / name).resolve()), config, source, source)
    part = list(WAYS).index(way) if way in WAYS else way
    found, _ = run(order, folder / f"proposals-{name}-{part}")
    if track:
        found = track_proposals(found, load_run_inputs(order).captures, most=config.most)
    kept = [
        "box",
        "video",
        "frame",
        "x1_px",
        "y1_px",
        "x2_px",
        "y2_px",
        "score",
        *(["tube"] if track else []),
    ]
    boxes = found.boxes.select(kept)
    return Predictions(boxes=_renamed(boxes, name))


def _renamed(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Both sets call their scenes alike; here each has its own names."""
    return table.with_columns(video=pl.format("{}/{}", pl.lit(name), pl.col("video").cast(pl.String)))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        judge_town(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    else:
        main(Path(sys.argv[1]))
