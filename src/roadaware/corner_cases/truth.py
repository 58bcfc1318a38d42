"""Truth: what a made-up scene knows of a picture, in the place of a segmenter and a detector."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from roadaware.corner_cases.captures import CommonObjects, SemanticMap
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.sensors import open_masks
from roadaware.scenes.simulator.mesh import Semantic
from roadaware.scenes.tables import Scenes

_OTHER = {"PAVEMENT": "sidewalk", "MARKING": "road"}
NAMES = tuple(_OTHER.get(each.name, each.name.lower().replace("_", " ")) for each in Semantic)
"""Names of the classes of the simulator's masks, as Cityscapes has them."""


def true_semantics(scenes: Scenes, root: Path, video: str, frame: int) -> SemanticMap:
    """What each pixel of a made-up picture shows.

    Args:
        scenes: made up.
        root: the simulation's folder.
        video: its name.
        frame: counts from 0.

    Raises:
        UsageError: if there is no such video or frame.
        InputError: if the masks cannot be read.
    """
    return SemanticMap(open_masks(scenes, root, video, frame)[1], NAMES)


def true_objects(scenes: Scenes, video: str, frame: int) -> CommonObjects:
    """The boxes of a picture that are no corner cases, as a detector without fault would give them.

    Args:
        scenes: with `boxes.corner_case`.
        video: its name.
        frame: counts from 0.
    """
    here = (pl.col("video") == video) & (pl.col("frame") == frame)
    held = scenes.boxes.filter(here & ~pl.col("corner_case").fill_null(value=False))
    boxes = held.select(CORNERS).to_numpy().astype(float).reshape(-1, 4)
    return CommonObjects(boxes, np.ones(len(boxes)))
