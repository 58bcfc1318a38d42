"""Memory of the common: features of crops, the crops of images of a set, a bank of them, and how strange the proposals
of another set look.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bytes, Floats, Floats32, Ints
from roadaware.corner_cases.captures import SemanticMap
from roadaware.corner_cases.config import BACKGROUND
from roadaware.corner_cases.known_objects import Key, collect_source_digests, group_rows_by_image
from roadaware.corner_cases.scorers import (
    NEUTRAL,
    Fitted,
    MemoryBank,
    MemoryConfig,
    Prints,
    fit_memory,
    hash_arrays,
    hash_videos,
    sort_fingerprints,
)
from roadaware.corner_cases.sources import SemanticSource
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import iou
from roadaware.io.video import VideoReader
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.sensors import find_video_path, list_still_paths, open_frame
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.tasks.crossing_inputs.crops import pad_to_square

SIDE_PX = 64
"""Height and width of the crops."""
_CELLS, _DIRECTIONS, _LEVELS = 4, 9, 4
WIDTH = _CELLS * _CELLS * _DIRECTIONS + _LEVELS**3 + _CELLS * _CELLS * 3
"""Numbers that describe a crop."""


def extract_plain_features(crops: npt.NDArray[np.uint8]) -> Floats32:
    """(n, 256) three blocks of unit length: edges, colours, and where colours are.

    Edges: in each of 4 x 4 cells, how much gradient points in each of 9 directions, without its sign.
    Colours: how often each of 4 x 4 x 4 occurs. Where: the mean colour of each cell. The first two are
    square roots, so that their distances are those of Hellinger.

    Args:
        crops: (n, 64, 64, 3) red first.

    Raises:
        InputError: if they are of another shape.

    Source: Dalal and Triggs, CVPR 2005, for the edges, without its overlapping blocks.
    """
    if crops.shape[1:] != (SIDE_PX, SIDE_PX, 3) or crops.dtype != np.uint8:
        raise InputError(f"crops are (n, {SIDE_PX}, {SIDE_PX}, 3) bytes, not {crops.dtype} {crops.shape}")
    parts = [np.concatenate([_edges(each), _colours(each), _places(each)]) for each in crops]
    return np.array(parts, dtype=np.float32).reshape(len(crops), WIDTH)


def _edges(crop: npt.NDArray[np.uint8]) -> Floats:
    """(144,) of a crop."""
    down, across = np.gradient(crop.mean(axis=2))
    # Modulo pi: an edge from dark to light and one from light to dark are the same edge.
    turn = np.arctan2(down, across) % np.pi
    # The modulo may round up to pi itself.
    direction = np.minimum((turn / np.pi * _DIRECTIONS).astype(np.int64), _DIRECTIONS - 1)
    place = np.arange(SIDE_PX) * _CELLS // SIDE_PX
    bins = (place[:, None] * _CELLS + place) * _DIRECTIONS + direction
    sums = np.bincount(bins.ravel(), np.hypot(down, across).ravel(), _CELLS * _CELLS * _DIRECTIONS)
    return _unit(np.sqrt(sums))


def _colours(crop: npt.NDArray[np.uint8]) -> Floats:
    """(64,) of a crop."""
    level = crop.astype(np.int64) * _LEVELS // 256
    bins = (level[..., 0] * _LEVELS + level[..., 1]) * _LEVELS + level[..., 2]
    return _unit(np.sqrt(np.bincount(bins.ravel(), minlength=_LEVELS**3)))


def _places(crop: npt.NDArray[np.uint8]) -> Floats:
    """(48,) of a crop."""
    step = SIDE_PX // _CELLS
    return _unit(crop.reshape(_CELLS, step, _CELLS, step, 3).mean(axis=(1, 3)).ravel())


def _unit(values: Floats) -> Floats:
    """At length 1; zeros stay."""
    length = float(np.linalg.norm(values))
    return values / length if length else values


PLAIN, TRUNKS = "plain", ("vgg16", "resnet50")


class Looker(Protocol):
    """Describes crops: `side` pixels high and wide, by a `name`, with weights of a `digest`."""

    side: int
    name: str
    digest: str

    def features(self, crops: Bytes) -> Floats32:
        """(n, d) of crops (n, side, side, 3)."""


class PlainLooker:
    """Describes crops by edges and colours, without a network."""

    side, name, digest = SIDE_PX, PLAIN, ""

    def features(self, crops: Bytes) -> Floats32:
        """(n, 256); see `extract_plain_features`."""
        return extract_plain_features(crops)


def load_crop_encoder(features: str, weights: Path | None = None, *, seed: int = 0) -> Looker:
    """Load the encoder that computes features of crops.

    Args:
        features: `plain`, `vgg16`, `resnet50`, or a folder of an image model of transformers.
        weights: image weights of a trunk; drawn where None.
        seed: of drawn weights.

    Raises:
        UsageError: if there is no such thing, or weights are given for what takes none.
        InputError: if a model cannot be read.
    """
    if features in TRUNKS:
        from roadaware.models.crop_networks import open_trunk

        return open_trunk(features, weights, seed=seed)
    if weights is not None:
        raise UsageError(f"weights go with {' or '.join(TRUNKS)}; {features} takes none")
    if features == PLAIN:
        return PlainLooker()
    if not Path(features).is_dir():
        raise UsageError(
            f"features are {PLAIN}, {', '.join(TRUNKS)}, or a folder of an image model; not {features!r}"
        )
    from roadaware.models.crop_networks import open_image_model

    return open_image_model(Path(features))


def read_images(
    scenes: Scenes, root: Path, wanted: Mapping[str, Sequence[int]], refused: dict[str, int]
) -> Iterator[tuple[str, int, Bytes]]:
    """Images of a set with their video and frame, video by video; a video is opened once.

    Args:
        scenes: whose tables say where images lie.
        root: folder that their paths start at.
        wanted: frames of each video.
        refused: counts those that cannot be opened, by reason.
    """
    stills = list_still_paths(scenes)
    for video, frames in wanted.items():
        if video in stills:
            for frame in frames:
                try:
                    image = open_frame(scenes, root, video, frame)
                except (InputError, UsageError) as error:
                    _count(refused, error, 1)
                    continue
                yield video, frame, image
            continue
        try:
            reader = VideoReader(find_video_path(scenes, root, video))
        except (InputError, UsageError) as error:
            _count(refused, error, len(frames))
            continue
        with reader:
            # In order: going back costs a jump to a key frame.
            for frame in sorted(frames):
                try:
                    image = reader.frame(frame)
                except (InputError, UsageError) as error:
                    _count(refused, error, 1)
                    continue
                yield video, frame, image


def cut(image: Bytes, boxes: Floats, side: int) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """(m, side, side, 3) crops, with black beside what is not square, and (m,) which boxes they are of.

    Args:
        image: (H, W, 3).
        boxes: (n, 4) x1, y1, x2, y2 in pixels; one without a pixel inside the image gives no crop.
        side: of the crops, in pixels.
    """
    height, width = image.shape[:2]
    # Outwards to whole pixels, so that small boxes keep at least one.
    low = np.floor(np.clip(boxes[:, :2], 0, [width, height])).astype(np.int64)
    high = np.ceil(np.clip(boxes[:, 2:], 0, [width, height])).astype(np.int64)
    places = np.flatnonzero((high > low).all(axis=1))
    made = [
        pad_to_square(image[low[n, 1] : high[n, 1], low[n, 0] : high[n, 0]], side, "bilinear") for n in places
    ]
    return np.stack(made) if made else np.zeros((0, side, side, 3), dtype=np.uint8), places


def add_image_paths(scenes: Scenes) -> Scenes:
    """The set with `frames.path`, where only the names of files are known, as in COCO annotations."""
    frames = scenes.frames
    if "path" in frames.columns or "file_name" not in frames.columns:
        return scenes
    return scenes.with_tables(frames=frames.with_columns(path=pl.col("file_name")))


def _count(refused: dict[str, int], error: Exception, images: int) -> None:
    reason = error.message if isinstance(error, InputError) else str(error)
    refused[reason] = refused.get(reason, 0) + images


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
        for video, frame, image in read_images(each.scenes, each.root, wanted, self.refused):
            # A set of one video is parted by image, else nothing could stay out of the bank.
            self._group += video != before or len(wanted) == 1
            before = video
            crops, _ = cut(image, material.of(video, frame, image.shape[:2]), self.looker.side)
            if len(crops):
                self.parts.append(self.looker.features(crops))
                self.groups += [self._group] * len(crops)
                self.prints.add(hash_arrays(image))
                kept.add(video)
            self.looked += 1
            yield
        hashes = hash_videos(each.scenes, kept)
        self.videos.update(() if hashes is None else hashes.tolist())

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
    for done, (video, frame, image) in enumerate(read_images(scenes, root, wanted, refused)):
        own = hash_arrays(image)
        if not allow_leak and np.isin(np.uint64(own), fitted.seen):
            raise UsageError(
                f"the memory bank was made of this image, {video} frame {frame} (fit {fitted.digest}), so its "
                "scores there say nothing of new ones; fit it on others, or say --allow-leak and report it"
            )
        rows = places[video, frame]
        crops, kept = cut(image, corners[rows], looker.side)
        if len(kept):
            shares[rows[kept]] = bank.anomaly(looker.features(crops))
            met[rows[kept]] = 1
        prints.add(own)
        if progress is not None:
            progress(done + 1, total)
    return shares, met, sort_fingerprints(prints), refused


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
