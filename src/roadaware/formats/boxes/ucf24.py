"""UCF101-24 written: `pyannot_with_class_names.pkl`, as `datasets.ucf24` and the published loaders read it.

A tube has one action and a box in each of its frames, so that a track with holes or several actions becomes several tubes.
Images have 320 x 240 pixels: boxes of others are scaled. The pickle holds arrays and plain containers alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.datasets.ucf24 import ANNOTATIONS, HEIGHT_PX, WIDTH_PX
from roadaware.errors import InputError
from roadaware.formats.boxes.comparison import Adapted, prepare, select_tracked_boxes
from roadaware.formats.boxes.flat import Files, choose_kind, find_classes
from roadaware.formats.road_detections import encode_pickle
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes


@dataclass(frozen=True)
class ActionTubes(Adapted):
    """A set with the tubes that the file lists.

    Args:
        scenes: what is written.
        classes: names of the actions.
        rows: `video`, `run` (from 0, in the order of the file), `label`, `frame` and corners of each box; by run and frame.
    """

    classes: tuple[str, ...]
    rows: pl.DataFrame


def adapt_ucf24(scenes: Scenes, kind: str | None) -> tuple[ActionTubes, Counter[str]]:
    """A set as UCF101-24 names it: tubes without holes, each with one action and called by its place in its video.

    Args:
        scenes: with lengths and sizes of videos.
        kind: of label that becomes the action (default: action where there is one, else as of boxes).

    Raises:
        UsageError: if there is no such kind.
        InputError: if the length or size of a video is not known, or no box has a track with a class.
    """
    scenes, lost = prepare(scenes, "UCF101-24"), Counter[str]()
    size = {"x": ("width_px", WIDTH_PX), "y": ("height_px", HEIGHT_PX)}
    other = (pl.col("width_px") != WIDTH_PX) | (pl.col("height_px") != HEIGHT_PX)
    lost[f"sizes of videos: boxes are scaled to {WIDTH_PX} x {HEIGHT_PX}"] += scenes.videos.select(
        other.sum()
    ).item()
    boxes = scenes.boxes.join(
        scenes.videos.select("video", "width_px", "height_px"), on="video", how="left", maintain_order="left"
    )
    boxes = boxes.with_columns(
        (pl.col(name).cast(pl.Float64) * size[name[0]][1] / pl.col(size[name[0]][0])).cast(pl.Float32)
        for name in CORNERS
    ).drop("width_px", "height_px")
    videos = scenes.videos.with_columns(
        width_px=pl.lit(WIDTH_PX, pl.Int64), height_px=pl.lit(HEIGHT_PX, pl.Int64)
    )
    scenes = scenes.with_tables(videos=videos, boxes=boxes)
    kind = "action" if kind is None and "action" in scenes.meta.vocabularies else choose_kind(scenes, kind)
    sound = select_tracked_boxes(scenes, scenes.tubes).with_columns(
        pl.col(name).clip(0, size[name[0]][1]) for name in CORNERS
    )
    rows, classes = find_classes(sound, scenes, kind, Counter())
    rows = rows.drop_nulls("label").filter(
        (pl.col("x1_px") < pl.col("x2_px")) & (pl.col("y1_px") < pl.col("y2_px"))
    )
    rows = rows.sort("tube", "frame")
    if rows.is_empty():
        raise InputError(
            "UCF101-24 holds tracks with an action or a class, and this set has no box of such a track",
            hint="say which kind of label is the action (--kind), or write coco, mot or csv",
        )
    begins = (
        (pl.col("tube") != pl.col("tube").shift(1))
        | (pl.col("label") != pl.col("label").shift(1))
        | (pl.col("frame") != pl.col("frame").shift(1) + 1)
    ).fill_null(value=True)
    rows = rows.with_columns(run=begins.cum_sum().cast(pl.Int64) - 1)
    # The first stretch of a track keeps its number, further ones get numbers behind all others.
    runs = rows.unique("run", keep="first", maintain_order=True).select("run", "tube", "video").with_columns(
        place=pl.int_range(pl.len()).over("video").cast(pl.String), further=~pl.col("tube").is_first_distinct()
    )  # fmt: skip
    lost["further stretches of tracks with holes or several actions, written as tubes of their own"] += (
        len(runs) - runs["tube"].n_unique()
    )
    highest = max(scenes.tubes["tube"], default=0)
    runs = runs.with_columns(
        own=pl.when("further").then(1 + highest + pl.col("run")).otherwise("tube").cast(pl.Int64)
    )
    tubes = scenes.tubes
    name = pl.col("name").cast(pl.String) if "name" in tubes.columns else pl.lit(None, pl.String)
    tubes = tubes.with_columns(name=name)
    more = runs.filter("further").select("tube", "own").join(tubes, on="tube", maintain_order="left")
    tubes = pl.concat([tubes, more.drop("tube").rename({"own": "tube"}).select(tubes.columns)])
    tubes = tubes.join(
        runs.select(pl.col("own").alias("tube"), "place"), on="tube", how="left", maintain_order="left"
    )
    anew = pl.col("place").is_not_null() & pl.col("name").is_not_null() & (pl.col("name") != pl.col("place"))
    lost["names of tracks, which are places in their video"] += tubes.select(anew.sum()).item()
    tubes = tubes.with_columns(name=pl.coalesce("place", "name")).drop("place")
    owner = rows.select("box", "run").join(runs.select("run", "own"), on="run", how="left")
    if len(owner):
        boxes = boxes.join(owner.select("box", "own"), on="box", how="left", maintain_order="left")
        boxes = boxes.with_columns(tube=pl.coalesce("own", "tube")).drop("own")
    rows = rows.select("video", "run", "label", "frame", *CORNERS)
    return ActionTubes(scenes.with_tables(tubes=tubes, boxes=boxes), classes, rows), lost


def write_ucf24(held: ActionTubes) -> Files:
    """Name and content of the file.

    Args:
        held: as `adapt_ucf24` gives it.
    """
    listed: dict[str, list[dict[str, Any]]] = {}
    for (video, _), run in held.rows.group_by("video", "run", maintain_order=True):
        x1, y1, x2, y2 = run.select(CORNERS).to_numpy().astype(np.float32).T
        # All four numbers are 1 too great, which the published loader takes off again.
        boxes = np.stack([x1 + 1, y1 + 1, x2 - x1 + 1, y2 - y1 + 1], axis=1)
        frames = run["frame"]
        listed.setdefault(str(video), []).append(
            {"label": int(run["label"][0]), "sf": int(frames[0]), "ef": int(frames[-1]) + 1, "boxes": boxes}
        )
    splits = held.scenes.videos["splits"] if "splits" in held.scenes.videos.columns else None
    db: dict[str, dict[str, Any]] = {}
    train: list[str] = []
    for n, (video, length) in enumerate(held.scenes.videos.select("video", "n_frames").iter_rows()):
        tubes = listed.get(video, [])
        db[video] = {"annotations": tubes, "numf": length, **({"label": tubes[0]["label"]} if tubes else {})}
        if splits is not None and splits[n] is not None and len(splits[n]):
            train += [video] if splits[n][0].rpartition("/")[2] == "train" else []
    yield ANNOTATIONS, encode_pickle({"db": db, "trainvideos": train, "classes": list(held.classes)})
