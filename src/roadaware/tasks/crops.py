"""Crops of images of a set: opened image by image, cut to squares, and described by features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bytes, Floats, Floats32
from roadaware.corner_cases.crop_features import SIDE_PX, extract_plain_features
from roadaware.errors import InputError, UsageError
from roadaware.io.video import VideoReader
from roadaware.scenes.sensors import find_video_path, list_still_paths, open_frame
from roadaware.scenes.tables import Scenes
from roadaware.tasks.crossing_inputs.crops import pad_to_square

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
                    picture = open_frame(scenes, root, video, frame)
                except (InputError, UsageError) as error:
                    _count(refused, error, 1)
                    continue
                yield video, frame, picture
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
                    picture = reader.frame(frame)
                except (InputError, UsageError) as error:
                    _count(refused, error, 1)
                    continue
                yield video, frame, picture


def cut(picture: Bytes, boxes: Floats, side: int) -> tuple[Bytes, npt.NDArray[np.int64]]:
    """(m, side, side, 3) crops, with black beside what is not square, and (m,) which boxes they are of.

    Args:
        picture: (H, W, 3).
        boxes: (n, 4) x1, y1, x2, y2 in pixels; one without a pixel inside the image gives no crop.
        side: of the crops, in pixels.
    """
    height, width = picture.shape[:2]
    # Outwards to whole pixels, so that small boxes keep at least one.
    low = np.floor(np.clip(boxes[:, :2], 0, [width, height])).astype(np.int64)
    high = np.ceil(np.clip(boxes[:, 2:], 0, [width, height])).astype(np.int64)
    places = np.flatnonzero((high > low).all(axis=1))
    made = [
        pad_to_square(picture[low[n, 1] : high[n, 1], low[n, 0] : high[n, 0]], side, "bilinear")
        for n in places
    ]
    return np.stack(made) if made else np.zeros((0, side, side, 3), dtype=np.uint8), places


def add_image_paths(scenes: Scenes) -> Scenes:
    """The set with `frames.path`, where only the names of files are known, as in COCO annotations."""
    frames = scenes.frames
    if "path" in frames.columns or "file_name" not in frames.columns:
        return scenes
    return scenes.with_tables(frames=frames.with_columns(path=pl.col("file_name")))


def _count(refused: dict[str, int], error: Exception, pictures: int) -> None:
    reason = error.message if isinstance(error, InputError) else str(error)
    refused[reason] = refused.get(reason, 0) + pictures
