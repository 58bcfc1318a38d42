"""Noise model: the ground truth of synthetic scenes with the faults of a segmenter and a detector, by a stated model."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.corner_cases.captures import CommonObjects, SemanticMap
from roadaware.errors import UsageError
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.sensors import open_masks
from roadaware.scenes.tables import Scenes
from roadaware.simulator.mesh import Semantic

_CELL_PX, _AROUND_PX = 24, 6


@dataclass(frozen=True)
class ErrorModel:
    """How masks and detections err.

    Edges of masks are moved by a smooth random field, edges of boxes each by itself. A missed object shows
    what is around it; one of a wrong class shows a class drawn by chance. A missed detection is not there;
    one of a wrong class is not called a common object, and as large a share of the others is called one.

    Args:
        edge_px: spread by which edges are moved.
        missed: share of objects that are missed.
        wrong: share of objects whose class is wrong.
        seed: of what is drawn.
    """

    edge_px: float = 5.0
    missed: float = 0.1
    wrong: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        shares = (self.missed, self.wrong)
        if not 0 <= self.edge_px <= 100 or min(shares) < 0 or sum(shares) > 1:
            raise UsageError("edges move by 0 to 100 pixels, and shares of objects lie in 0 to 1 together")

    def rng(self, video: str, frame: int, what: int) -> np.random.Generator:
        """Draws that hang on the image alone, so that images may be taken in any order."""
        return np.random.default_rng([self.seed, zlib.crc32(video.encode()), frame, what])


def apply_segmentation_noise(
    truth: SemanticMap, instances: npt.NDArray[np.integer], model: ErrorModel, rng: np.random.Generator
) -> SemanticMap:
    """Simulate the output of an imperfect segmenter.

    Args:
        truth: (H, W) classes.
        instances: (H, W) number of the object at each pixel, 0 for none.
        model: of its errors.
        rng: draws them.
    """
    numbers = np.unique(instances[instances > 0])
    fates = rng.random(len(numbers))
    strange = rng.integers(0, len(truth.names), len(numbers))
    told = np.full(int(instances.max(initial=0)) + 1, -1, dtype=np.int64)
    mistaken = (fates >= model.missed) & (fates < model.missed + model.wrong)
    told[numbers[mistaken]] = strange[mistaken]
    for number in numbers[fates < model.missed].tolist():
        told[number] = _find_surrounding_class(truth.classes, instances, number)
    claimed = told[instances]
    found = np.where(claimed >= 0, claimed, truth.classes)
    height, width = found.shape
    down, across = (_field(height, width, model.edge_px, rng) for _ in range(2))
    rows = np.clip(np.arange(height)[:, None] + down, 0, height - 1).round().astype(np.int64)
    columns = np.clip(np.arange(width)[None] + across, 0, width - 1).round().astype(np.int64)
    return SemanticMap(found[rows, columns], truth.names)


def apply_detection_noise(
    common: CommonObjects, others: Floats, model: ErrorModel, rng: np.random.Generator
) -> CommonObjects:
    """Simulate the common objects of an imperfect detector.

    Args:
        common: all common objects of an image.
        others: (m, 4) boxes of all other objects.
        model: of its errors.
        rng: draws them.
    """
    kept = common.boxes[rng.random(len(common.boxes)) >= model.missed + model.wrong]
    called = others[rng.random(len(others)) < model.wrong]
    boxes = np.concatenate([kept.reshape(-1, 4), called.reshape(-1, 4)])
    boxes = boxes + rng.normal(0, model.edge_px, boxes.shape)
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    return CommonObjects(np.column_stack([low, high]), rng.uniform(0.5, 1.0, len(boxes)))


def _find_surrounding_class(
    classes: npt.NDArray[np.integer], instances: npt.NDArray[np.integer], number: int
) -> int:
    """The class of most pixels near an object that are none; its own where there are none."""
    rows, columns = np.nonzero(instances == number)
    y, x = max(rows.min() - _AROUND_PX, 0), max(columns.min() - _AROUND_PX, 0)
    near = (slice(y, rows.max() + _AROUND_PX + 1), slice(x, columns.max() + _AROUND_PX + 1))
    shown = classes[near][instances[near] == 0]
    return int(np.bincount(shown).argmax()) if len(shown) else int(classes[rows[0], columns[0]])


def _field(height: int, width: int, spread: float, rng: np.random.Generator) -> Floats:
    """(height, width) numbers of a spread that change smoothly from cell to cell."""
    coarse = rng.normal(0, spread, (height // _CELL_PX + 2, width // _CELL_PX + 2))
    y, x = np.arange(height) / _CELL_PX, np.arange(width) / _CELL_PX
    j, i = y.astype(np.int64), x.astype(np.int64)
    v, u = (y - j)[:, None], (x - i)[None]
    top = coarse[j][:, i] * (1 - u) + coarse[j][:, i + 1] * u
    bottom = coarse[j + 1][:, i] * (1 - u) + coarse[j + 1][:, i + 1] * u
    found: Floats = top * (1 - v) + bottom * v
    return found


# Ground truth: what a synthetic scene knows of an image, in the place of a segmenter and a detector.

_OTHER = {"PAVEMENT": "sidewalk", "MARKING": "road"}
NAMES = tuple(_OTHER.get(each.name, each.name.lower().replace("_", " ")) for each in Semantic)
"""Names of the classes of the simulator's masks, as Cityscapes has them."""


def read_true_semantics(scenes: Scenes, root: Path, video: str, frame: int) -> SemanticMap:
    """Ground-truth class of each pixel of a synthetic image.

    Args:
        scenes: synthetic.
        root: the simulation's folder.
        video: its name.
        frame: counts from 0.

    Raises:
        UsageError: if there is no such video or frame.
        InputError: if the masks cannot be read.
    """
    return SemanticMap(open_masks(scenes, root, video, frame)[1], NAMES)


def select_common_objects(scenes: Scenes, video: str, frame: int) -> CommonObjects:
    """The boxes of an image that are no corner cases, as a detector without fault would give them.

    Args:
        scenes: with `boxes.corner_case`.
        video: its name.
        frame: counts from 0.
    """
    boxes, corner = _boxes(scenes, video, frame)
    return CommonObjects(boxes[~corner], np.ones(int((~corner).sum())))


def simulate_semantics(scenes: Scenes, root: Path, video: str, frame: int, model: ErrorModel) -> SemanticMap:
    """Simulate a segmenter with the errors of a model on a synthetic image.

    Args:
        scenes: synthetic.
        root: the simulation's folder.
        video: its name.
        frame: counts from 0.
        model: of its errors.

    Raises:
        UsageError: if there is no such video or frame.
        InputError: if the masks cannot be read.
    """
    instances, classes = open_masks(scenes, root, video, frame)
    return apply_segmentation_noise(SemanticMap(classes, NAMES), instances, model, model.rng(video, frame, 0))


def simulate_common_objects(scenes: Scenes, video: str, frame: int, model: ErrorModel) -> CommonObjects:
    """Simulate a detector with the errors of a model; returns its common objects.

    Args:
        scenes: with `boxes.corner_case`.
        video: its name.
        frame: counts from 0.
        model: of its errors.
    """
    boxes, corner = _boxes(scenes, video, frame)
    true = CommonObjects(boxes[~corner], np.ones(int((~corner).sum())))
    return apply_detection_noise(true, boxes[corner], model, model.rng(video, frame, 1))


def _boxes(scenes: Scenes, video: str, frame: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(n, 4) corners of the boxes of an image, and (n,) which are corner cases."""
    held = scenes.boxes.filter((pl.col("video") == video) & (pl.col("frame") == frame))
    boxes = held.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)
    if "corner_case" not in held.columns:
        return boxes, np.zeros(len(boxes), dtype=np.bool_)
    return boxes, held["corner_case"].fill_null(value=False).to_numpy().astype(np.bool_)
