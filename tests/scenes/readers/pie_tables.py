"""Rows of PIE's tables by name."""

from __future__ import annotations

import polars as pl
from sets import SETS, maker

from roadaware.scenes.tables import Scenes

PIE = SETS["pie"]
ANNOTATIONS, ATTRIBUTES, VEHICLE = maker("pie").PARTS
MAIN = maker("pie").MAIN


def tube(scenes: Scenes, name: str) -> dict[str, object]:
    return scenes.tubes.filter(name=name).to_dicts()[0]


def boxes(scenes: Scenes, name: str) -> pl.DataFrame:
    return scenes.boxes.join(scenes.tubes.filter(name=name).select("tube"), on="tube").sort("frame")
