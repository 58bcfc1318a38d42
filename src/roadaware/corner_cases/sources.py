"""Sources of semantic maps and detections of an image."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.corner_cases.captures import CITYSCAPES, CommonObjects, SemanticMap
from roadaware.errors import InputError, UsageError
from roadaware.io.images import decode_mask
from roadaware.io.sources import digest, is_outside, read_file, resolve_inside, to_printable
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.sensors import open_masks
from roadaware.scenes.store import open_predictions
from roadaware.scenes.tables import Scenes
from roadaware.simulator.mesh import Semantic

# Noise model: the ground truth of synthetic scenes with the faults of a segmenter and a detector, by a stated
# model.


# Edges of masks move together over about a cell: the field is smooth, not noise of single pixels.
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
    class_of_instance = np.full(int(instances.max(initial=0)) + 1, -1, dtype=np.int64)
    mistaken = (fates >= model.missed) & (fates < model.missed + model.wrong)
    class_of_instance[numbers[mistaken]] = strange[mistaken]
    for number in numbers[fates < model.missed].tolist():
        class_of_instance[number] = _find_surrounding_class(truth.classes, instances, number)
    predicted = class_of_instance[instances]
    found = np.where(predicted >= 0, predicted, truth.classes)
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


TRUTH, ERRING = "truth", "erring"
TRAFFIC_LIGHTS = ("TL", "OthTL")
"""Agents that detectors predict and that are no common objects. Source: CODA (ECCV 2022), section 5.1."""
CLASSES = "classes.json"
"""Beside masks: the names of their classes by number; those of Cityscapes where it is not there."""


class SemanticSource:
    """Semantic maps of images.

    Args:
        where: `truth` for that of synthetic scenes, `erring` for it with faults; a folder with a grey PNG for
            each image, `<video>/<frame as six digits>.png`; None for nothing.
        scenes: the set.
        root: its folder.

    Raises:
        UsageError: if ground truth is asked of a set that is not synthetic.
        InputError: if there is no such folder, or its names of classes are none.
    """

    def __init__(self, where: str | None, scenes: Scenes, root: Path) -> None:
        _require_truth(where, scenes, "for semantics name a folder of masks")
        self._where, self._scenes, self._root = where, scenes, root
        self._names: tuple[str, ...] = CITYSCAPES
        if where not in (None, TRUTH, ERRING):
            self._folder = Path(os.path.realpath(str(where)))
            # Class names of a folder of masks.
            folder = self._folder
            if not folder.is_dir():
                raise InputError("there is no such folder of semantic maps", where=to_printable(str(folder)))
            path = folder / CLASSES
            if not path.exists():
                self._names = CITYSCAPES
            else:
                try:
                    found = json.loads(read_file(path))
                except (ValueError, RecursionError) as error:
                    raise InputError(
                        f"not JSON: {to_printable(str(error))}", where=to_printable(str(path))
                    ) from error
                if (
                    not isinstance(found, list)
                    or not found
                    or not all(isinstance(name, str) for name in found)
                ):
                    raise InputError("expected a list of names of classes", where=to_printable(str(path)))
                self._names = tuple(found)

    @property
    def digest(self) -> str:
        """Of the names of the classes; masks have none, see `files`."""
        return digest(repr(self._names).encode())

    def files(self, video: str, frame: int) -> list[Path]:
        """Paths of the files of an image's semantic map, existing or not.

        Args:
            video: its name.
            frame: counts from 0.
        """
        if self._where in (None, TRUTH, ERRING):
            return []
        name = f"{video}/{frame:06d}.png"
        return [] if is_outside(name) else [self._folder / name]

    def of(self, video: str, frame: int) -> SemanticMap | None:
        """The map of an image.

        Raises:
            InputError: if it cannot be read, or is not there.
        """
        if self._where is None:
            return None
        if self._where == TRUTH:
            return read_true_semantics(self._scenes, self._root, video, frame)
        if self._where == ERRING:
            return simulate_semantics(self._scenes, self._root, video, frame, ErrorModel())
        path = resolve_inside(self._folder, f"{video}/{frame:06d}.png")
        return SemanticMap(decode_mask(read_file(path), to_printable(str(path))), self._names)


class DetectionSource:
    """Common objects that a detector found.

    Args:
        where: `truth` for boxes that are no corner cases, `erring` for them with faults; a folder of saved
            Predictions, of which traffic lights are no common objects; None for nothing.
        scenes: the set.

    Raises:
        UsageError: if ground truth is asked of a set that does not say which boxes are corner cases.
        InputError: if there are no such Predictions, or all of them are of videos that are not in the set.
    """

    def __init__(self, where: str | None, scenes: Scenes) -> None:
        _require_truth(where, scenes, "for detections name saved predictions")
        self._where, self._scenes = where, scenes
        self._held: dict[tuple[str, int], npt.NDArray[np.float64]] | None = None
        self._videos: frozenset[str] = frozenset()
        if where not in (None, TRUTH, ERRING):
            predictions = open_predictions(Path(str(where)))
            # The videos that a detector processed, also those without detections.
            tables = (predictions.videos, predictions.frames, predictions.boxes)
            self._videos = frozenset(
                str(name) for table in tables if "video" in table.columns for name in table["video"]
            )
            _require_shared(self._videos, scenes, str(where))
            # Image to corners and scores.
            # Boxes but those whose best agent is a traffic light, which CODA does not count as common.
            kinds = get_score_layout(predictions.meta, "boxes")
            if (
                predictions.boxes.is_empty()
                or "scores" not in predictions.boxes.columns
                or "agent" not in kinds.kinds
            ):
                boxes = predictions.boxes
            else:
                best = convert_to_matrix(predictions.boxes["scores"], kinds.width)[
                    :, kinds.columns("agent")
                ].argmax(axis=1)
                lights = [n for n, name in enumerate(kinds.kinds["agent"]) if name in TRAFFIC_LIGHTS]
                boxes = predictions.boxes.filter(pl.Series(~np.isin(best, lights)))
            if "score" not in boxes.columns:
                boxes = boxes.with_columns(score=pl.lit(1.0))
            held = boxes.select("video", "frame", *CORNERS, pl.col("score").fill_null(1.0))
            self._held = {
                (str(key[0]), int(str(key[1]))): part.select(*CORNERS, "score").to_numpy().astype(np.float64)
                for key, part in held.group_by("video", "frame", maintain_order=True)
            }

    @property
    def digest(self) -> str:
        """Digest of all detections."""
        if self._held is None:
            return ""
        table = [(video, frame, rows.tolist()) for (video, frame), rows in sorted(self._held.items())]
        return digest(repr((sorted(self._videos), table)).encode())

    def of(self, video: str, frame: int) -> CommonObjects | None:
        """The objects of an image."""
        if self._where == TRUTH:
            return select_common_objects(self._scenes, video, frame)
        if self._where == ERRING:
            return simulate_common_objects(self._scenes, video, frame, ErrorModel())
        if self._held is None:
            return None
        rows = self._held.get((video, frame), np.zeros((0, 5)))
        return CommonObjects(rows[:, :4], rows[:, 4], has_predictions=video in self._videos)


def _require_truth(where: str | None, scenes: Scenes, instead: str) -> None:
    """Refuse to take as ground truth what a set does not know.

    Raises:
        UsageError: if it is asked for, and the set does not say which boxes are corner cases.
    """
    if where in (TRUTH, ERRING) and "corner_case" not in scenes.boxes.columns:
        dataset = scenes.meta.dataset or "the set"
        raise UsageError(f"{where} is known of synthetic scenes alone, not of {dataset}; {instead}")


def _require_shared(names: frozenset[str], scenes: Scenes, where: str) -> None:
    """Refuse detections of another set.

    Raises:
        InputError: if they are of some videos, and of none of the set.
    """
    videos = scenes.videos["video"].to_list()
    if not names or not videos or not names.isdisjoint(videos):
        return
    raise InputError(
        f"detections of other videos: {to_printable(min(names))}, where the set has {to_printable(min(videos))}",
        where=to_printable(where),
        hint="name the detections of this set and split; videos are called as `roadaware read` calls them",
    )
