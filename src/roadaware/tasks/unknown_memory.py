"""Memory of the common: a bank of crops of a set, and how strange the proposals of another set look."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.corner_cases.captures import SemanticMap
from roadaware.corner_cases.config import BACKGROUND
from roadaware.corner_cases.energy import NEUTRAL
from roadaware.corner_cases.known_objects import Key, collect_source_digests, group_rows_by_image
from roadaware.corner_cases.memory import MemoryBank, MemoryConfig, fit_memory
from roadaware.corner_cases.scorer_file import Fitted, Prints, hash_arrays, hash_videos, sort_fingerprints
from roadaware.corner_cases.sources import SemanticSource
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import iou
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.tasks.crops import Looker, cut, read_images

Progress = Callable[[int, int], None]
# Drawn boxes may meet an object or too little background: so many are drawn for each that is wanted.
_TRIES = 20
_NONE = np.zeros((0, 4))


@dataclass(frozen=True, eq=False)
class CommonMemory:
    """Request for a memory bank of a set's common objects and background.

    Args:
        scenes: boxes with `corner_case`, or with `common`.
        root: folder that paths of images start at.
        semantics: what pixels show, if known.
        proposals: of the same images, if any.
    """

    scenes: Scenes
    root: Path
    semantics: SemanticSource | None = None
    proposals: Predictions | None = None


def fit_crops(
    sets: Sequence[CommonMemory], looker: Looker, config: MemoryConfig, *, progress: Progress | None = None
) -> Fitted:
    """Fit a memory bank of crops of common objects and background.

    Crops of background are drawn with the sizes of ground-truth objects: where a semantic map is given, so that
    nearly all of their pixels are background; else so that they touch no ground-truth object. Proposals that lie on
    no ground-truth object are taken as background, too. One crop is black.

    Args:
        sets: with their images.
        looker: describes crops.
        config: how the bank is made.
        progress: called with the number of images done and the total.

    Raises:
        InputError: if there is nothing to keep, or no image can be opened.

    Source: Li et al., ECCV 2022 (CODA), appendix: features of common objects, vegetation, sky and black.
    """
    found = _Crops(looker, config)
    total = sum(len(frames) for each in sets for frames in _list_annotated_frames(each.scenes).values())
    for each in sets:
        for _ in found.looked_at(each):
            if progress is not None:
                progress(found.looked, total)
    if not found.parts and found.refused:
        raise InputError(f"none of {total:,} images can be opened: {next(iter(found.refused))}")
    bank = fit_memory(*found.material(), config)
    about: dict[str, Any] = {
        **collect_source_digests([each.scenes for each in sets]),
        "pictures": len(found.prints),
        **found.counts,
        "refused": sum(found.refused.values()),
    }
    asked = {"features": looker.name, "weights": looker.digest, "seed": config.seed}
    return Fitted(bank, sort_fingerprints(found.prints), asked, about, sort_fingerprints(found.videos))


class _Crops:
    """Features of what is kept, gathered image by image.

    Args:
        looker: describes crops.
        config: how the bank is made.
    """

    def __init__(self, looker: Looker, config: MemoryConfig) -> None:
        self.looker, self.config = looker, config
        self.parts: list[npt.NDArray[np.float32]] = []
        self.groups: list[int] = []
        self.prints: set[int] = set()
        self.videos: set[int] = set()
        self.refused: dict[str, int] = {}
        self.counts = {"common": 0, "background": 0, "proposals": 0}
        self.looked, self._group = 0, 0

    def looked_at(self, each: CommonMemory) -> Iterator[None]:
        """Gather from a set; yields after every image."""
        material, wanted = _Material(each, self.config, self.counts), _list_annotated_frames(each.scenes)
        before, kept = "", set()
        for video, frame, picture in read_images(each.scenes, each.root, wanted, self.refused):
            # A set of one video is parted by image, else nothing could stay out of the bank.
            self._group += video != before or len(wanted) == 1
            before = video
            crops, _ = cut(picture, material.of(video, frame, picture.shape[:2]), self.looker.side)
            if len(crops):
                self.parts.append(self.looker.features(crops))
                self.groups += [self._group] * len(crops)
                self.prints.add(hash_arrays(picture))
                kept.add(video)
            self.looked += 1
            yield
        told = hash_videos(each.scenes, kept)
        self.videos.update(() if told is None else told.tolist())

    def material(self) -> tuple[npt.NDArray[np.float32], list[int]]:
        """Features and their groups, with a black crop in the first of them."""
        if not self.parts:
            return np.zeros((0, 0), dtype=np.float32), []
        black = self.looker.features(np.zeros((1, self.looker.side, self.looker.side, 3), dtype=np.uint8))
        return np.concatenate([*self.parts, black]), [*self.groups, self.groups[0]]


def score_crop_novelty(
    proposals: Predictions,
    scenes: Scenes,
    root: Path,
    looker: Looker,
    fitted: Fitted,
    *,
    allow_leak: bool = False,
    progress: Progress | None = None,
) -> tuple[Floats, Ints, Prints, dict[str, int]]:
    """How strange each proposal looks.

    Args:
        proposals: boxes.
        scenes: that they are about.
        root: folder that paths of images start at.
        looker: the one that the bank was made with.
        fitted: the re-scorer.
        allow_leak: whether images may be among those that the bank was made of.
        progress: called with the number of images done and the total.

    Returns:
        (n,) anomalies, `NEUTRAL` where there was no image to look at; (n,) whether there was, as 0 or 1;
        fingerprints of the images; how many images could not be opened, by reason.

    Raises:
        InputError: if the bank is of other features, or proposals are about no image of the set.
        UsageError: if an image is among those that the bank was made of, and may not be.
    """
    bank = fitted.model
    if not isinstance(bank, MemoryBank):
        raise InputError("this re-scorer is of energies and asks detections, not images")
    if (looker.name, looker.digest) != (fitted.asked["features"], fitted.asked["weights"]):
        raise InputError(
            f"the bank was made with {fitted.asked['features']} ({fitted.asked['weights'] or 'no weights'}), "
            f"not with {looker.name} ({looker.digest or 'no weights'})",
            hint="name the same features and weights",
        )
    corners, places = _corners(proposals.boxes), group_rows_by_image(proposals.boxes)
    known = set(scenes.videos["video"].cast(pl.String).to_list())
    wanted: dict[str, list[int]] = {}
    for video, frame in sorted(places):
        if video in known:
            wanted.setdefault(video, []).append(frame)
    if places and not wanted:
        raise InputError("the proposals are about none of the videos of the set")
    shares, met = np.full(len(corners), NEUTRAL), np.zeros(len(corners), dtype=np.int64)
    prints, refused, total = set(), dict[str, int](), sum(map(len, wanted.values()))
    for done, (video, frame, picture) in enumerate(read_images(scenes, root, wanted, refused)):
        own = hash_arrays(picture)
        _refuse_seen(fitted, own, video, frame, allowed=allow_leak)
        rows = places[video, frame]
        crops, kept = cut(picture, corners[rows], looker.side)
        if len(kept):
            shares[rows[kept]] = bank.anomaly(looker.features(crops))
            met[rows[kept]] = 1
        prints.add(own)
        if progress is not None:
            progress(done + 1, total)
    return shares, met, sort_fingerprints(prints), refused


def _refuse_seen(fitted: Fitted, own: int, video: str, frame: int, *, allowed: bool) -> None:
    if not allowed and np.isin(np.uint64(own), fitted.seen):
        raise UsageError(
            f"the memory bank was made of this image, {video} frame {frame} (fit {fitted.digest}), so its "
            "scores there say nothing of new ones; fit it on others, or say --allow-leak and report it"
        )


class _Material:
    """The boxes whose crops are kept, image by image.

    Args:
        common: the set.
        config: how the bank is made.
        counts: how many there are of each kind, added to.
    """

    def __init__(self, common: CommonMemory, config: MemoryConfig, counts: dict[str, int]) -> None:
        boxes, proposals = common.scenes.boxes, common.proposals
        self.config, self.semantics, self.counts = config, common.semantics, counts
        self._corners, self._common, self._rows = _corners(boxes), _common(boxes), group_rows_by_image(boxes)
        self._proposed = _NONE if proposals is None else _corners(proposals.boxes)
        self._proposals: dict[Key, Ints] = {} if proposals is None else group_rows_by_image(proposals.boxes)
        sides = self._corners[:, 2:] - self._corners[:, :2]
        self._sides = sides[self._large(self._corners)]

    def of(self, video: str, frame: int, size: tuple[int, int]) -> Floats:
        """(n, 4) boxes of an image.

        Args:
            video: its name.
            frame: counts from 0.
            size: height and width of the image.
        """
        rows = self._rows.get((video, frame), np.zeros(0, dtype=np.int64))
        true, common = self._corners[rows], self._corners[rows[self._common[rows]]]
        drawn = self._drawn(video, frame, size, true)
        proposed = self._proposed[self._proposals.get((video, frame), np.zeros(0, dtype=np.int64))]
        if len(proposed) and len(true):
            proposed = proposed[iou(proposed, true).max(axis=1) < self.config.apart_iou]
        kept = [each[self._large(each)] for each in (common, drawn, proposed)]
        for name, each in zip(self.counts, kept, strict=True):
            self.counts[name] += len(each)
        return np.concatenate(kept)

    def _large(self, boxes: Floats) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = (boxes[:, 2:] - boxes[:, :2]).min(axis=1) >= self.config.min_side_px
        return found

    def _drawn(self, video: str, frame: int, size: tuple[int, int], true: Floats) -> Floats:
        """(n, 4) boxes on background, with the sizes of ground-truth objects."""
        wanted = self.config.background
        if not wanted or not len(self._sides):
            return _NONE
        # By image, so that other images change nothing; crc32, since hash() of a text differs by process.
        rng = np.random.default_rng([self.config.seed, zlib.crc32(video.encode()), frame])
        extent = np.array(size[::-1], dtype=np.float64)
        sides = np.minimum(self._sides[rng.integers(0, len(self._sides), wanted * _TRIES)], extent)
        low = np.floor(rng.random(sides.shape) * (extent - sides))
        boxes = np.column_stack([low, low + sides])
        shown = None if self.semantics is None else self.semantics.of(video, frame)
        if shown is not None:
            fits = compute_background_fraction(boxes, shown) >= self.config.background_share
        else:
            fits = iou(boxes, true).sum(axis=1) == 0
        return boxes[fits][:wanted]


def compute_background_fraction(
    boxes: Floats, shown: SemanticMap, names: Sequence[str] = BACKGROUND
) -> Floats:
    """(n,) share of the pixels of each box that are background.

    Args:
        boxes: (n, 4) x1, y1, x2, y2 in pixels, inside the map, at least a pixel wide and high.
        shown: what pixels show.
        names: of the classes that are background.
    """
    is_background = np.isin(shown.classes, [n for n, name in enumerate(shown.names) if name in names])
    # Summed over both axes, so that the count in any box is four numbers.
    sums = np.pad(is_background.cumsum(axis=0, dtype=np.int64).cumsum(axis=1), ((1, 0), (1, 0)))
    height, width = shown.classes.shape
    x1, y1, x2, y2 = np.clip(boxes, 0, [width, height, width, height]).astype(np.int64).T
    inside = sums[y2, x2] - sums[y1, x2] - sums[y2, x1] + sums[y1, x1]
    found: Floats = inside / np.maximum((x2 - x1) * (y2 - y1), 1)
    return found


def _list_annotated_frames(scenes: Scenes) -> dict[str, list[int]]:
    """Frames of each video that somebody annotated."""
    frames = scenes.frames
    if "annotated" in frames.columns:
        frames = frames.filter(pl.col("annotated").fill_null(value=True))
    table = frames if len(frames) else scenes.boxes
    found: dict[str, list[int]] = {}
    for video, frame in sorted(group_rows_by_image(table)):
        found.setdefault(video, []).append(frame)
    return found


def _common(boxes: pl.DataFrame) -> npt.NDArray[np.bool_]:
    """(n,) whether each box is of a common object.

    It is where it is no corner case; where nothing else is annotated, where it is of a common class.
    """
    for name, value in (("corner_case", True), ("ignore", False), ("common", None)):
        held = pl.col(name) if name in boxes.columns else pl.lit(None, dtype=pl.Boolean)
        boxes = boxes.with_columns(held.alias(name) if value is None else held.fill_null(value).alias(name))
    of_class = pl.col("common").is_not_null()
    common = of_class if boxes["corner_case"].all() else ~pl.col("corner_case")
    found: npt.NDArray[np.bool_] = boxes.select(kept=common & ~pl.col("ignore"))["kept"].to_numpy()
    return found


def _corners(boxes: pl.DataFrame) -> Floats:
    return boxes.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)
