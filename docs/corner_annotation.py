"""Measure lists of images on scenes with and without corner cases: `corner_annotation.py FOLDER TOWN SEED`.

Makes 8 scenes with four things on the road and 16 with none put there in that town, follows proposals over their images, and
says what lists find: `city-a 8171`. A fourth argument, `fit`, learns from such scenes instead how likely a thing that was
followed is a corner case, for src/roadaware/corner_cases/track_chances.json: `low-sun 371 fit`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from roadaware.analysis.annotation.cost import compute_discovery_curve, measure_worth
from roadaware.analysis.annotation.selection import By, SelectionConfig, rank_images
from roadaware.corner_cases import tracking
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.runner import Order, load_run_inputs, run
from roadaware.datasets import read
from roadaware.geometry.boxes import iou
from roadaware.io.files import write_atomically
from roadaware.scenes.concatenation import concat
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.simulator import generate
from roadaware.simulator.config import build_scene_config

RESAMPLES = 1000
SEEDS = 16
"""Images of equal worth come by chance: what a list finds is the mean over so many orders."""
LISTS: tuple[By, ...] = ("count", "new", "chance")
MET = 0.5


def make_town(folder: Path, town: str, seed: int) -> tuple[Scenes, Predictions]:
    """Scenes and tracked proposals of a town, as far as they are not there; masks and detections err.

    Args:
        folder: where they are kept.
        town: a domain of the simulator.
        seed: of the scenes with things on the road; those without have the next one.
    """
    sets = {"with": (4, seed, 8), "without": (0, seed + 1, 16)}
    truth = [_scenes(folder / town, name, plan, town) for name, plan in sets.items()]
    return concat(truth), concat([_proposals(folder / town, name) for name in sets])


def judge_town(folder: Path, town: str, seed: int) -> None:
    """Print what lists find in a town, by how much of the images has to be viewed.

    Args:
        folder: as `make_town`.
        town: as `make_town`.
        seed: as `make_town`.
    """
    truth, held = make_town(folder, town, seed)
    for by in LISTS:
        reached = []
        for chance in range(SEEDS):
            listed = rank_images(held, truth.frames, SelectionConfig(by=by), seed=chance)
            worth = measure_worth(listed, held, truth)
            found = compute_discovery_curve(worth, unit="objects", resamples=RESAMPLES if not chance else 0)
            rows = found.table.filter(order="list")
            reached.append(rows["looked_share"].to_numpy())
            if not chance:
                first = found.table
        print(f"== {town}: by {by}; {found.totals}")
        print(dict(zip(rows["found"].to_list(), np.mean(reached, axis=0).round(3).tolist(), strict=True)))
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, float_precision=3):
            print(first, flush=True)


def fit_chances(folder: Path, town: str, seed: int) -> None:
    """Fit the chance that a thing is a corner case: one of its boxes overlaps one by half.

    Args:
        folder: as `make_town`.
        town: as `make_town`.
        seed: as `make_town`.
    """
    from sklearn.linear_model import LogisticRegression

    truth, held = make_town(folder, town, seed)
    cases = truth.boxes.filter("corner_case").partition_by("video", "frame", as_dict=True)
    met = np.zeros(len(held.boxes), dtype=np.bool_)
    for key, rows in held.boxes.with_row_index("row").partition_by("video", "frame", as_dict=True).items():
        if key in cases:
            overlaps = iou(rows.select(CORNERS).to_numpy(), cases[key].select(CORNERS).to_numpy())
            met[rows["row"].to_numpy()] = overlaps.max(axis=1) >= MET
    seen = held.boxes.with_columns(met=pl.Series(met)).filter(~pl.col("carried"))
    table = tracking.describe_tracks(held.boxes)
    wanted = table.join(seen.group_by("tube").agg(pl.col("met").any()), on="tube", maintain_order="left")[
        "met"
    ]
    rows = table.select(tracking.TRACK_FEATURES).to_numpy()
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    model = LogisticRegression(C=0.3, max_iter=500).fit((rows - mean) / spread, wanted.to_numpy())
    plain = {"mean": mean, "spread": spread, "weight": model.coef_[0], "bias": model.intercept_[0]}
    text = json.dumps({name: np.round(value, 6).tolist() for name, value in plain.items()}, indent=1)
    path = Path(tracking.__file__).with_name(tracking.CHANCES)
    write_atomically(path, f"{text}\n".encode())
    print(f"{int(wanted.sum())} of {len(wanted):,} things are corner cases; wrote {path.name}")


def _scenes(folder: Path, name: str, plan: tuple[int, int, int], town: str) -> Scenes:
    """Corner-case scenes with so many things on the road, at two images a second."""
    things, seed, count = plan
    config = build_scene_config("corner-cases@1", town)
    camera, behaviour = replace(config.camera, fps=2.0), replace(config.behaviour, objects=things)
    config = replace(config, sound=False, camera=camera, behaviour=behaviour)
    generate.generate_scenes(generate.Order(config, seed=seed, scenes=count), folder / name)
    scenes = read("simulator", folder / name)
    boxes = scenes.boxes.select("box", "video", "frame", "tube", *CORNERS, "corner_case")
    return Scenes(
        videos=_renamed(scenes.videos.select("video"), name),
        frames=_renamed(scenes.frames.select("video", "frame"), name),
        boxes=_renamed(boxes, name),
        tubes=_renamed(scenes.tubes.select("tube", "video"), name),
    )


def _proposals(folder: Path, name: str) -> Predictions:
    order = Order("simulator", str((folder / name).resolve()), CopgConfig(), "erring", "erring")
    found, _ = run(order, folder / f"proposals-{name}-tracks")
    found = tracking.track_proposals(found, load_run_inputs(order).captures, most=order.config.most)
    return Predictions(boxes=_renamed(found.boxes, name), tubes=_renamed(found.tubes, name))


def _renamed(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Both sets call their scenes alike; here each has its own names."""
    return table.with_columns(video=pl.format("{}/{}", pl.lit(name), pl.col("video").cast(pl.String)))


if __name__ == "__main__":
    act = fit_chances if sys.argv[4:] == ["fit"] else judge_town
    act(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
