"""Sources of semantic maps and detections of an image."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.corner_cases.captures import CITYSCAPES, CommonObjects, SemanticMap
from roadaware.corner_cases.noise_model import (
    ErrorModel,
    read_true_semantics,
    select_common_objects,
    simulate_common_objects,
    simulate_semantics,
)
from roadaware.errors import InputError, UsageError
from roadaware.io.images import decode_mask
from roadaware.io.sources import digest, is_outside, read_file, resolve_inside, to_printable
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import open_predictions
from roadaware.scenes.tables import Predictions, Scenes

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
            self._names = _names_in(self._folder)

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
        self._told: frozenset[str] = frozenset()
        if where not in (None, TRUTH, ERRING):
            claims = open_predictions(Path(str(where)))
            self._told = _list_videos(claims)
            _require_shared(self._told, scenes, str(where))
            self._held = _by_picture(claims)

    @property
    def digest(self) -> str:
        """Digest of all detections."""
        if self._held is None:
            return ""
        told = [(video, frame, rows.tolist()) for (video, frame), rows in sorted(self._held.items())]
        return digest(repr((sorted(self._told), told)).encode())

    def of(self, video: str, frame: int) -> CommonObjects | None:
        """The objects of an image."""
        if self._where == TRUTH:
            return select_common_objects(self._scenes, video, frame)
        if self._where == ERRING:
            return simulate_common_objects(self._scenes, video, frame, ErrorModel())
        if self._held is None:
            return None
        rows = self._held.get((video, frame), np.zeros((0, 5)))
        return CommonObjects(rows[:, :4], rows[:, 4], told=video in self._told)


def _require_truth(where: str | None, scenes: Scenes, instead: str) -> None:
    """Refuse to take as ground truth what a set does not know.

    Raises:
        UsageError: if it is asked for, and the set does not say which boxes are corner cases.
    """
    if where in (TRUTH, ERRING) and "corner_case" not in scenes.boxes.columns:
        dataset = scenes.meta.dataset or "the set"
        raise UsageError(f"{where} is known of synthetic scenes alone, not of {dataset}; {instead}")


def _list_videos(claims: Predictions) -> frozenset[str]:
    """The videos that a detector processed, also those without detections."""
    tables = (claims.videos, claims.frames, claims.boxes)
    return frozenset(str(name) for table in tables if "video" in table.columns for name in table["video"])


def _require_shared(told: frozenset[str], scenes: Scenes, where: str) -> None:
    """Refuse detections of another set.

    Raises:
        InputError: if they are of some videos, and of none of the set.
    """
    videos = scenes.videos["video"].to_list()
    if not told or not videos or not told.isdisjoint(videos):
        return
    raise InputError(
        f"detections of other videos: {to_printable(min(told))}, where the set has {to_printable(min(videos))}",
        where=to_printable(where),
        hint="name the detections of this set and split; videos are called as `roadaware read` calls them",
    )


def _by_picture(claims: Predictions) -> dict[tuple[str, int], npt.NDArray[np.float64]]:
    """Image to corners and scores."""
    boxes = _without_lights(claims)
    if "score" not in boxes.columns:
        boxes = boxes.with_columns(score=pl.lit(1.0))
    held = boxes.select("video", "frame", *CORNERS, pl.col("score").fill_null(1.0))
    return {
        (str(key[0]), int(str(key[1]))): part.select(*CORNERS, "score").to_numpy().astype(np.float64)
        for key, part in held.group_by("video", "frame", maintain_order=True)
    }


def _without_lights(claims: Predictions) -> pl.DataFrame:
    """Boxes but those whose best agent is a traffic light, which CODA does not count as common."""
    kinds = get_score_layout(claims.meta, "boxes")
    if claims.boxes.is_empty() or "scores" not in claims.boxes.columns or "agent" not in kinds.kinds:
        return claims.boxes
    best = convert_to_matrix(claims.boxes["scores"], kinds.width)[:, kinds.columns("agent")].argmax(axis=1)
    lights = [n for n, name in enumerate(kinds.kinds["agent"]) if name in TRAFFIC_LIGHTS]
    return claims.boxes.filter(pl.Series(~np.isin(best, lights)))


def _names_in(folder: Path) -> tuple[str, ...]:
    """Class names of a folder of masks.

    Raises:
        InputError: if there is no folder, or the names are none.
    """
    if not folder.is_dir():
        raise InputError("there is no such folder of semantic maps", where=to_printable(str(folder)))
    path = folder / CLASSES
    if not path.exists():
        return CITYSCAPES
    try:
        found = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {to_printable(str(error))}", where=to_printable(str(path))) from error
    if not isinstance(found, list) or not found or not all(isinstance(name, str) for name in found):
        raise InputError("expected a list of names of classes", where=to_printable(str(path)))
    return tuple(found)
