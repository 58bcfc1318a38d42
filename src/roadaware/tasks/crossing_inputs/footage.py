"""Where pictures of frames come from: films, the simulator's masks, or masks as single files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy.typing as npt

from roadaware.errors import InputError
from roadaware.scenes.decoders import media_head
from roadaware.scenes.mask_files import MaskReader, mask_of
from roadaware.scenes.media import VideoReader
from roadaware.scenes.readers.source import confine, read_file
from roadaware.scenes.sensors import MEDIA, beside, video_path
from roadaware.scenes.tables import Scenes
from roadaware.tasks.crossing_inputs.media import Media
from roadaware.tasks.crossing_inputs.observations import says

_FOLDER = "name it: samples.media in a recipe, Media(root=...) in Python"
_CHUNK = 1 << 22


class Reel(Protocol):
    """The frames of one video, by number."""

    def frame(self, number: int) -> npt.NDArray[Any]:
        """(h, w[, 3]) picture of a frame."""

    def close(self) -> None:
        """Let go of the file."""


class Footage(Protocol):
    """The pictures of many videos."""

    def open(self, video: str) -> Reel:
        """The frames of a video.

        Raises:
            InputError: if it is not there or damaged.
        """

    def digest(self, video: str, frames: list[int]) -> bytes:
        """What the files hash to that show some frames of a video."""


class Films:
    """Films as the videos table, or a pattern, says where they lie.

    Args:
        scenes: whose table it is.
        media: its root and pattern.

    Raises:
        InputError: if nothing says where films lie.
    """

    def __init__(self, scenes: Scenes, media: Media | None) -> None:
        if media is None or media.root is None:
            raise InputError("crops read films, and no folder was given", hint=_FOLDER)
        if not media.films and not says(scenes.videos, "path"):
            raise InputError(
                "crops read films, and the videos table does not say where they lie",
                hint="say how the files are called, such as 'JAAD_clips/{video}.mp4': samples.films in a "
                "recipe (and samples.media, their folder), Media(root=..., films=...) in Python",
            )
        self._scenes, self._media, self._root = scenes, media, media.root

    def _path(self, video: str) -> Path:
        if self._media.films:
            return confine(Path(os.path.realpath(self._root)), self._media.films.format(video=video))
        return video_path(self._scenes, self._root, video)

    def open(self, video: str) -> Reel:
        """The film of a video."""
        return VideoReader(self._path(video))

    def digest(self, video: str, frames: list[int]) -> bytes:
        """What the whole film hashes to."""
        return _digest(self._path(video))


class SimulatedMasks:
    """Class masks that the simulator wrote beside its films.

    Args:
        scenes: whose videos table says where the films lie.
        root: the dataset's folder.
    """

    def __init__(self, scenes: Scenes, root: Path) -> None:
        self._scenes, self._root = scenes, root

    def _path(self, video: str) -> Path:
        try:
            return beside(self._scenes, self._root, video, MEDIA["semantics"])
        except InputError as error:
            raise InputError(
                f"maps read class masks: {error.message}",
                where=error.where,
                hint="the simulator writes them beside its films; name your own by samples.maps "
                "in a recipe, Media(maps=...) in Python",
            ) from error

    def open(self, video: str) -> Reel:
        """The masks of a video."""
        return MaskReader(self._path(video))

    def digest(self, video: str, frames: list[int]) -> bytes:
        """What the whole archive hashes to."""
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
        return confine(self._root, self._pattern.format(video=video, frame=frame))

    def open(self, video: str) -> Reel:
        """The masks of a video."""
        return _Files(lambda frame: self._path(video, frame))

    def digest(self, video: str, frames: list[int]) -> bytes:
        """What the files of these frames hash to."""
        return b"".join(_digest(self._path(video, frame)) for frame in frames)


class _Files:
    def __init__(self, path: Callable[[int], Path]) -> None:
        self._path = path

    def frame(self, number: int) -> npt.NDArray[Any]:
        path = self._path(number)
        return mask_of(read_file(path), str(path))

    def close(self) -> None:
        """Nothing is held open."""


def masks(scenes: Scenes, media: Media | None) -> Footage:
    """Class masks, the simulator's or those that `media.maps` names.

    Raises:
        InputError: if no folder was given.
    """
    if media is None or media.root is None:
        raise InputError("maps read class masks, and no folder was given", hint=_FOLDER)
    return MaskFiles(media.root, media.maps) if media.maps else SimulatedMasks(scenes, media.root)


def _digest(path: Path) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    media_head(path)  # refuses a pipe, which would never end, and a file of holes, which nearly so
    try:
        with path.open("rb") as file:
            while piece := file.read(_CHUNK):
                found.update(piece)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    return found.digest()
