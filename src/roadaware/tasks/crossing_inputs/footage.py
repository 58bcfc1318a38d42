"""Sources of the images of frames: videos, the simulator's masks, or masks as single files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy.typing as npt

from roadaware.errors import InputError, UsageError
from roadaware.io.decoders import read_media_head
from roadaware.io.images import MaskReader, decode_mask
from roadaware.io.sources import read_file, resolve_inside
from roadaware.io.storage import locate_content
from roadaware.io.video import VideoReader
from roadaware.scenes.sensors import MEDIA, find_sidecar_file, find_video_path
from roadaware.scenes.tables import Scenes
from roadaware.tasks.crossing_inputs.observations import has_values

# Where images, masks and poses lie that the tables do not hold, and how they are cut.


@dataclass(frozen=True)
class CropConfig:
    """How a pedestrian is cut out of an image.

    Args:
        enlarge: context and surround grow the box on every side by half of this times its shorter side.
        paint: value that covers the pedestrian in the surround.
        resample: `bilinear` with antialiasing, or the `nearest` pixel.

    Source: Kotseruba et al., WACV 2021; its code resizes bilinearly without antialiasing.
    """

    enlarge: float = 1.5
    paint: int = 128
    resample: Literal["bilinear", "nearest"] = "bilinear"

    def __post_init__(self) -> None:
        if self.enlarge < 0 or not 0 <= self.paint <= 255 or self.resample not in ("bilinear", "nearest"):
            raise UsageError(
                f"crops need enlarge >= 0, paint in 0..255, bilinear or nearest; got {self.enlarge!r}, "
                f"{self.paint!r}, {self.resample!r}"
            )


@dataclass(frozen=True)
class Media:
    """Files beside the tables: videos, masks and poses.

    Args:
        root: folder that the paths of the videos table start from; the dataset's folder.
        films: where videos lie in `root`, with `{video}`, such as `JAAD_clips/{video}.mp4`; where empty, as
            the videos table says.
        maps: where class masks lie in `root`, grey PNGs of 8 bits with `{video}` and `{frame}`, such as
            `maps/{video}/{frame:05d}.png`; where empty, the simulator's masks beside the video.
        classes: what the numbers in masks are: the `simulator`'s, or the 19 training classes of
            `cityscapes`.
        poses: a file of poses or a folder of pickles; the tables' joints where not given.
        cache: folder that keeps cut images, a file for each video and configuration; none where not given.
        memory_bytes: how many bytes of cut images are kept in memory without a cache folder.
        crops: how pedestrians are cut out.
    """

    root: Path | None = None
    films: str = ""
    maps: str = ""
    classes: Literal["simulator", "cityscapes"] = "simulator"
    poses: Path | None = None
    cache: Path | None = None
    memory_bytes: int = 1 << 30
    crops: CropConfig = CropConfig()

    def __post_init__(self) -> None:
        if self.classes not in ("simulator", "cityscapes"):
            raise UsageError(f"classes are those of simulator or cityscapes, not {self.classes!r}")
        for pattern, parts in ((self.films, ("video",)), (self.maps, ("video", "frame"))):
            if pattern:
                _check(pattern, parts)
        if self.memory_bytes < 1:
            raise UsageError(f"memory_bytes is positive, not {self.memory_bytes}")


def _check(pattern: str, parts: tuple[str, ...]) -> None:
    """Refuse a pattern of paths that lacks a part or has another."""
    try:
        pattern.format(**dict.fromkeys(parts, 0))
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise UsageError(f"'{pattern}' is no pattern of paths with {' and '.join(parts)}: {error}") from error
    lost = [part for part in parts if f"{{{part}" not in pattern]
    if lost:
        raise UsageError(f"'{pattern}' does not say where {{{lost[0]}}} stands")


_FOLDER = "name it: samples.media in a recipe, Media(root=...) in Python"
_CHUNK = 1 << 22


class Reel(Protocol):
    """The frames of one video, by number."""

    def frame(self, number: int) -> npt.NDArray[Any]:
        """(h, w[, 3]) image of a frame."""

    def close(self) -> None:
        """Let go of the file."""


class Footage(Protocol):
    """The images of many videos."""

    def open(self, video: str) -> Reel:
        """The frames of a video.

        Raises:
            InputError: if it is not there or damaged.
        """

    def digest(self, video: str, frames: list[int]) -> bytes:
        """Digest of the files that show some frames of a video."""


class Films:
    """Videos as the videos table, or a pattern, says where they lie.

    Args:
        scenes: whose table it is.
        media: its root and pattern.

    Raises:
        InputError: if nothing says where videos lie.
    """

    def __init__(self, scenes: Scenes, media: Media | None) -> None:
        if media is None or media.root is None:
            raise InputError("crops read videos, and no folder was given", hint=_FOLDER)
        if not media.films and not has_values(scenes.videos, "path"):
            raise InputError(
                "crops read videos, and the videos table does not say where they lie",
                hint="say how the files are called, such as 'JAAD_clips/{video}.mp4': samples.films in a "
                "recipe (and samples.media, their folder), Media(root=..., films=...) in Python",
            )
        self._scenes, self._media, self._root = scenes, media, media.root

    def _path(self, video: str) -> Path:
        if self._media.films:
            return resolve_inside(Path(os.path.realpath(self._root)), self._media.films.format(video=video))
        return find_video_path(self._scenes, self._root, video)

    def open(self, video: str) -> Reel:
        """The video file of a video."""
        return VideoReader(self._path(video))

    def digest(self, video: str, frames: list[int]) -> bytes:
        """Digest of the whole video."""
        return _digest(self._path(video))


class SimulatedMasks:
    """Class masks that the simulator wrote beside its videos.

    Args:
        scenes: whose videos table says where the videos lie.
        root: the dataset's folder.
    """

    def __init__(self, scenes: Scenes, root: Path) -> None:
        self._scenes, self._root = scenes, root

    def _path(self, video: str) -> Path:
        try:
            return find_sidecar_file(self._scenes, self._root, video, MEDIA["semantics"])
        except InputError as error:
            raise InputError(
                f"maps read class masks: {error.message}",
                where=error.where,
                hint="the simulator writes them beside its videos; name your own by samples.maps "
                "in a recipe, Media(maps=...) in Python",
            ) from error

    def open(self, video: str) -> Reel:
        """The masks of a video."""
        return MaskReader(self._path(video))

    def digest(self, video: str, frames: list[int]) -> bytes:
        """Digest of the whole archive."""
        return _digest(self._path(video))


class MaskFiles:
    """Class masks as one grey PNG for each frame.

    Args:
        root: folder they lie in.
        pattern: with `{video}` and `{frame}`.
    """

    def __init__(self, root: Path, pattern: str) -> None:
        self._root, self._pattern = Path(os.path.realpath(root)), pattern

    def _path(self, video: str, frame: int) -> Path:
        return resolve_inside(self._root, self._pattern.format(video=video, frame=frame))

    def open(self, video: str) -> Reel:
        """The masks of a video."""
        return _Files(lambda frame: self._path(video, frame))

    def digest(self, video: str, frames: list[int]) -> bytes:
        """Digest of the files of these frames."""
        return b"".join(_digest(self._path(video, frame)) for frame in frames)


class _Files:
    def __init__(self, path: Callable[[int], Path]) -> None:
        self._path = path

    def frame(self, number: int) -> npt.NDArray[Any]:
        path = self._path(number)
        return decode_mask(read_file(path), str(path))

    def close(self) -> None:
        """Does nothing: no file is kept open."""


def open_class_masks(scenes: Scenes, media: Media | None) -> Footage:
    """Class masks, the simulator's or those that `media.maps` names.

    Raises:
        InputError: if no folder was given.
    """
    if media is None or media.root is None:
        raise InputError("maps read class masks, and no folder was given", hint=_FOLDER)
    return MaskFiles(media.root, media.maps) if media.maps else SimulatedMasks(scenes, media.root)


def _digest(path: Path) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    read_media_head(path)  # refuses a pipe, which would never end, and a file of holes, which nearly so
    try:
        with locate_content(path).open("rb") as file:
            while piece := file.read(_CHUNK):
                found.update(piece)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    return found.digest()
