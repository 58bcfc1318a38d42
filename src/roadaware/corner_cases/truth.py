"""Truth: what a made-up scene knows of a picture, in the place of a segmenter and a detector."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.corner_cases.captures import CommonObjects, SemanticMap
from roadaware.corner_cases.degrading import ErrorModel, degraded_map, degraded_objects
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
    boxes, corner = _boxes(scenes, video, frame)
    return CommonObjects(boxes[~corner], np.ones(int((~corner).sum())))


def erring_semantics(scenes: Scenes, root: Path, video: str, frame: int, model: ErrorModel) -> SemanticMap:
    """What a segmenter with the faults of a model would say of a made-up picture.

    Args:
        scenes: made up.
        root: the simulation's folder.
        video: its name.
        frame: counts from 0.
        model: of its errors.

    Raises:
        UsageError: if there is no such video or frame.
        InputError: if the masks cannot be read.
    """
    instances, classes = open_masks(scenes, root, video, frame)
    return degraded_map(SemanticMap(classes, NAMES), instances, model, model.rng(video, frame, 0))


def erring_objects(scenes: Scenes, video: str, frame: int, model: ErrorModel) -> CommonObjects:
    """What a detector with the faults of a model would call common objects.

    Args:
        scenes: with `boxes.corner_case`.
        video: its name.
        frame: counts from 0.
        model: of its errors.
    """
    boxes, corner = _boxes(scenes, video, frame)
    true = CommonObjects(boxes[~corner], np.ones(int((~corner).sum())))
    return degraded_objects(true, boxes[corner], model, model.rng(video, frame, 1))


def _boxes(scenes: Scenes, video: str, frame: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(n, 4) corners of the boxes of a picture, and (n,) which are corner cases."""
    held = scenes.boxes.filter((pl.col("video") == video) & (pl.col("frame") == frame))
    boxes = held.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)
    if "corner_case" not in held.columns:
        return boxes, np.zeros(len(boxes), dtype=np.bool_)
    return boxes, held["corner_case"].fill_null(value=False).to_numpy().astype(np.bool_)
