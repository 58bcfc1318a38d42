"""A small set of annotations of chaotic scenes and two rounds of checking, with faults that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from roadaware.scenes.demo.annotation_faults import Planted, Tables, plant
from roadaware.scenes.tables import Meta, Scenes
from roadaware.scenes.vocabularies import ACTIONS_OFFICIAL, all_names

FORBIDDEN = ("lady", "John Smith", "gypsy")
"""The words that the example's descriptions must not hold."""
_SIZE, _FPS, _FRAMES, _STEP, _PEOPLE = (320, 180), 25.0, 250, 5, 4
_VIDEOS = (("ADCCAWWD", "protest_riot"), ("BQTTZKLM", "flood"), ("CXWERTYP", "fight"))
_JITTER_PX, _JITTER_FRAMES = 1.5, 8
"""Honest differences between annotators: below 2 px at this size, and below 10 frames at this rate."""
_SENTENCES = (
    "a man in a red hoodie pushes another man",
    "a woman with blonde hair runs to the left",
    "a boy with a black backpack holds a sign",
    "an old man in a blue shirt shouts at a guard",
)


@dataclass(frozen=True)
class Rounds:
    """The original, both rounds, and what was planted."""

    original: Scenes
    round1: Scenes
    round2: Scenes
    planted: tuple[Planted, ...]


def annotation_rounds(*, seed: int = 0) -> Rounds:
    """Three clips of 10 s at 320x180 and 25 frames per second, boxes every fifth frame, in three versions.

    Args:
        seed: of everybody's way, and of the differences between annotators.
    """
    rng = np.random.default_rng(seed)
    truth = _truth(rng)
    first = _checked(rng, truth, "bea")
    second = _checked(rng, first, "cem")
    versions = [truth, first, second]
    planted = plant(versions, [name for name, _ in _VIDEOS], _PEOPLE, _FRAMES // _STEP)
    original, round1, round2 = (_scenes(tables, place) for place, tables in enumerate(versions))
    return Rounds(original, round1, round2, planted)


def _truth(rng: np.random.Generator) -> Tables:
    """What the first annotator drew."""
    names = [name for name, _ in _VIDEOS]
    tubes = pl.DataFrame(
        [
            (v * _PEOPLE + p, video, f"P{p + 1}", 0, _FRAMES)
            for v, video in enumerate(names)
            for p in range(_PEOPLE)
        ],
        schema=["tube", "video", "name", "start_frame", "end_frame"],
        orient="row",
    )
    frames = np.arange(0, _FRAMES, _STEP)
    rows: list[tuple[Any, ...]] = []
    for tube, video in tubes.select("tube", "video").iter_rows():
        left, top = 20 + 70 * (tube % _PEOPLE) + 20 * rng.random(), 40 + 30 * rng.random()
        for frame in frames:
            x1, y1 = left + 0.05 * frame, top + 4 * np.sin(frame / 40)
            rows.append((len(rows), video, int(frame), tube, None, x1, y1, x1 + 24, y1 + 60))
    for v, video in enumerate(names):
        rows += [
            (len(rows) + s, video, 50 + 100 * s, None, 2 * v + s, 40.0, 90.0, 80.0, 130.0) for s in range(2)
        ]
    columns = ["box", "video", "frame", "tube", "sound", "x1_px", "y1_px", "x2_px", "y2_px"]
    boxes = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    return {
        "videos": pl.DataFrame({"video": names, "category": [event for _, event in _VIDEOS]}),
        "tubes": tubes,
        "boxes": boxes.with_columns(annotator=pl.lit("ann")),
        "labels": _actions(rng, boxes),
        "relations": _relations(tubes),
        "queries": _queries(tubes),
        "sounds": _sounds(names),
    }


def _actions(rng: np.random.Generator, boxes: pl.DataFrame) -> pl.DataFrame:
    """One or two actions of each person, the same in all his boxes."""
    held = boxes.drop_nulls("tube").select("box", "tube")
    chosen = [
        (tube, int(label))
        for tube in held["tube"].unique().sort()
        for label in rng.choice(len(ACTIONS_OFFICIAL), size=1 + tube % 2, replace=False)
    ]
    labels = pl.DataFrame(chosen, schema=["tube", "label"], orient="row")
    rows = held.join(labels, on="tube", maintain_order="left")
    return rows.select("box", pl.lit("action").alias("kind"), "label")


def _relations(tubes: pl.DataFrame) -> pl.DataFrame:
    """In each clip three pairs."""
    rows: list[tuple[Any, ...]] = []
    for v in range(len(_VIDEOS)):
        for k in range(3):
            subject = v * _PEOPLE + k
            rows.append((len(rows), tubes["video"][subject], subject, subject + 1, (5 * v + k) % 18, 50, 150))
    columns = ["relation", "video", "subject", "object", "predicate", "start_frame", "end_frame"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def _queries(tubes: pl.DataFrame) -> pl.DataFrame:
    """One sentence for each person."""
    return tubes.select(
        query="tube",
        video="video",
        name=pl.format("S{}", pl.col("tube") % _PEOPLE + 1),
        text=pl.col("tube").map_elements(lambda k: _SENTENCES[k % _PEOPLE], return_dtype=pl.String),
        tube="tube",
        start_frame=pl.lit(60),
        end_frame=pl.lit(180),
    )


def _sounds(videos: list[str]) -> pl.DataFrame:
    rows = [
        (2 * v + s, video, f"E{s + 1}", 50 + 100 * s, (50 + 100 * s) / _FPS, (3 * v + s) % 28)
        for v, video in enumerate(videos)
        for s in range(2)
    ]
    columns = ["sound", "video", "name", "frame", "t_s", "label"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def _checked(rng: np.random.Generator, tables: Tables, annotator: str) -> Tables:
    """The work of a reviewer who sees everything alike, within the limits."""
    boxes, corners = tables["boxes"], ["x1_px", "y1_px", "x2_px", "y2_px"]
    shift = rng.uniform(-_JITTER_PX, _JITTER_PX, (len(boxes), 4))
    moved = pl.DataFrame(boxes.select(corners).to_numpy() + shift, schema=corners)
    changed = {
        **tables,
        "boxes": boxes.with_columns(moved.get_columns()).with_columns(annotator=pl.lit(annotator)),
    }
    for name in ("relations", "queries"):
        rows = tables[name]
        drawn = rng.integers(-_JITTER_FRAMES, _JITTER_FRAMES + 1, (len(rows), 2))
        changed[name] = rows.with_columns(
            pl.col("start_frame") + pl.Series(drawn[:, 0]), pl.col("end_frame") + pl.Series(drawn[:, 1])
        )
    return changed


def _scenes(tables: Tables, place: int) -> Scenes:
    width, height = _SIZE
    videos = tables["videos"].with_columns(
        width_px=pl.lit(width), height_px=pl.lit(height), fps=pl.lit(_FPS), n_frames=pl.lit(_FRAMES)
    )
    vocabularies = {
        "action": (*ACTIONS_OFFICIAL, "teleporting"),
        "predicate": all_names("interaction"),
        "sound": all_names("sound"),
    }
    boxes = tables["boxes"].with_columns(round=pl.lit(place))
    return Scenes(
        **{**tables, "videos": videos, "boxes": boxes},
        meta=Meta(dataset="annotation example", licence="CC0", vocabularies=vocabularies),
    )
