"""Footage: images of videos and still images by frame number, decoded and resized; some are kept."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch.nn import functional

from roadaware.arrays import Pixels
from roadaware.errors import InputError, UsageError
from roadaware.io.images import HEAD_BYTES, parse_image_size, read_still
from roadaware.io.sources import is_outside, read_file_head, resolve_inside, to_printable
from roadaware.io.video import VideoReader
from roadaware.scenes.sensors import find_video_path
from roadaware.scenes.tables import Scenes

_OPEN = 8
"""So many videos stay open at a time."""
# A list is made up to the largest frame that a file names.
_MOST_FRAMES = 10_000_000
_SIDES = ("width_px", "height_px")
_log = logging.getLogger("roadaware")


@dataclass(frozen=True)
class Film:
    """Files of the images of a video.

    Args:
        video: its name.
        path: a video; or, where its name holds `{number` or `{frame`, one image per frame.
        n_frames: that can be opened.
        height, width: of its images.
        stills: of still images where each lies, by frame; empty for a frame without one.
    """

    video: str
    path: str
    n_frames: int
    height: int
    width: int
    stills: tuple[str, ...] = ()

    @property
    def is_pictures(self) -> bool:
        """Whether every frame is a file."""
        return bool(self.stills) or "{number" in self.path or "{frame" in self.path

    def picture(self, frame: int) -> Path:
        """Path of the image of a frame."""
        if self.stills:
            return Path(self.stills[frame])
        return Path(self.path.format(number=frame + 1, frame=frame))

    @property
    def frames(self) -> list[int]:
        """Frames that have an image."""
        return [n for n in range(self.n_frames) if not self.stills or self.stills[n]]


@dataclass(frozen=True, eq=False)
class Shot:
    """One frame of a video.

    Args:
        frame: counts from 0.
        picture: (H, W, 3) uint8; None where it cannot be read.
        fault: why not.
    """

    frame: int
    picture: Pixels | None
    fault: str = ""


def iterate_shots(film: Film, frames: Iterable[int] | None = None) -> Iterator[Shot]:
    """Frames of a video one by one, each of its own size; what cannot be read is reported, not raised.

    Args:
        film: as `find_videos` found it.
        frames: which, best rising (default: all that have an image).
    """
    reader: VideoReader | None = None
    try:
        for frame in film.frames if frames is None else frames:
            try:
                if not 0 <= frame < film.n_frames or (film.stills and not film.stills[frame]):
                    raise InputError(f"there is no image of frame {frame}", where=to_printable(film.video))
                if film.is_pictures:
                    picture = read_still(film.picture(frame))
                else:
                    reader = reader or VideoReader(Path(film.path))
                    picture = reader.frame(frame)
            except InputError as error:
                yield Shot(frame, None, str(error))
                continue
            yield Shot(frame, picture)
    finally:
        if reader is not None:
            reader.close()


def find_videos(scenes: Scenes, root: Path, pattern: str = "") -> tuple[list[Film], dict[str, str]]:
    """The video files that can be opened, and for each other video the reason.

    Of sets of still images (`frames.path`) a video is the images of one video.

    Args:
        scenes: whose videos they are.
        root: folder that paths start from.
        pattern: of paths, with `{video}` and for images `{number}` or `{frame}` (default: those of the tables).

    Raises:
        UsageError: if the pattern asks for anything else.
        InputError: if none can be opened.
    """
    _understood(pattern)
    found, refused = [], {}
    counts = scenes.videos["n_frames"].to_list() if "n_frames" in scenes.videos.columns else []
    names = scenes.videos["video"].cast(pl.String).to_list()
    stills = {} if pattern else _stills(scenes)
    for place, name in enumerate(names):
        try:
            if name in stills:
                film = _of_stills(scenes, root, name, place, stills[name])
            else:
                film = _film(scenes, root, pattern, name)
        except InputError as error:
            refused[name] = str(error)
            continue
        promised = counts[place] if counts else None
        if promised is not None and promised > film.n_frames:
            _log.warning("%s has %d frames of %d: the others are not used", name, film.n_frames, promised)
        found.append(film)
    if not found:
        reason = next(iter(refused.values()), "there is no video")
        raise InputError(
            f"none of {len(names)} videos can be opened; the first: {reason}",
            where=str(root),
            hint="`data.media` is the folder that paths start from, `data.films` says where videos lie in it",
        )
    return found, refused


def _understood(pattern: str) -> None:
    """Raise where a pattern cannot be filled in."""
    try:
        pattern.format(video="", number=1, frame=0)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{pattern!r} is no pattern of paths: in braces stand video, number or frame, as in "
            "videos/{video}.mp4 or rgb-images/{video}/{number:05d}.jpg"
        ) from error


def _film(scenes: Scenes, root: Path, pattern: str, video: str) -> Film:
    """One video, opened to see how long and large it is."""
    if "{number" in pattern or "{frame" in pattern:
        return _pictures(root, pattern, video)
    path = root / pattern.format(video=video) if pattern else find_video_path(scenes, root, video)
    with VideoReader(path) as reader:
        return Film(video, str(path), len(reader), reader.height_px, reader.width_px)


def _stills(scenes: Scenes) -> dict[str, dict[int, str]]:
    """Video to frame to path, of videos that are still images."""
    found: dict[str, dict[int, str]] = {}
    if "path" in scenes.frames.columns:
        rows = scenes.frames.select(pl.col("video").cast(pl.String), "frame", "path")
        for video, frame, path in rows.filter(pl.col("path").is_not_null()).iter_rows():
            found.setdefault(video, {})[frame] = path
    return found


def _of_stills(scenes: Scenes, root: Path, video: str, place: int, paths: Mapping[int, str]) -> Film:
    """Still images of one video; one that is not there may be so, but not all."""
    if max(paths) >= _MOST_FRAMES:
        raise InputError(f"frame {max(paths)}: up to {_MOST_FRAMES} are numbered", where=to_printable(video))
    base = Path(os.path.realpath(root))
    found, there, fault = [""] * (max(paths) + 1), "", InputError("no image", where=to_printable(video))
    for frame, path in paths.items():
        try:
            found[frame] = str(resolve_inside(base, path))
            there = there or found[frame]
        except InputError as error:
            # A way out of the folder is refused for the whole set; a missing image may be one of many.
            if is_outside(path) or (base / path).is_symlink():
                raise
            found[frame], fault = str(base / path), error
    if not there:
        raise InputError(f"no image is there: {fault.message}", where=fault.where)
    told = [scenes.videos[name][place] for name in _SIDES if name in scenes.videos.columns]
    width, height = (told[0], told[1]) if len(told) == 2 else (None, None)
    if width is None or height is None:
        width, height = parse_image_size(read_file_head(Path(there), HEAD_BYTES)) or (0, 0)
    return Film(video, "", len(found), int(height), int(width), tuple(found))


def _pictures(root: Path, pattern: str, video: str) -> Film:
    path = str(root / pattern).replace("{video}", video)
    film = Film(video, path, 0, 0, 0)
    first = film.picture(0)
    if not first.is_file():
        raise InputError("the image of the first frame is not there", where=str(first))
    # By doubling and halving: a folder of 100,000 images takes some 34 looks.
    low, high = 0, 1
    while film.picture(high).is_file():
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if film.picture(middle).is_file() else (low, middle)
    height, width = read_still(first).shape[:2]
    return Film(video, path, low + 1, height, width)


def resize_image(picture: Pixels, size: tuple[int, int]) -> Pixels:
    """An image of another size, as detectors resize it: bilinear, with antialiasing.

    Args:
        picture: (H, W, 3) uint8.
        size: height and width.
    """
    if picture.shape[:2] == size:
        return picture
    tensor = torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1)[None]
    small = functional.interpolate(tensor, size=size, mode="bilinear", antialias=True)[0]
    return np.ascontiguousarray(small.permute(1, 2, 0).numpy())


class Footage:
    """Opens images of videos; a clip costs one jump to a key frame, or nothing where it is kept.

    Most videos have few key frames, so that a jump decodes much that nobody asked for: a video that fits into
    what is left of the memory is decoded once, whole.

    Args:
        films: by number.
        sizes: (height, width) that the images of each video are brought to.
        cache_bytes: of images kept in memory: the first ones that are asked for.
    """

    def __init__(self, films: Sequence[Film], sizes: Sequence[tuple[int, int]], cache_bytes: int = 0) -> None:
        self.films, self.sizes, self._room = list(films), list(sizes), cache_bytes
        self._kept: dict[tuple[int, int], Pixels] = {}
        self._open: OrderedDict[int, VideoReader] = OrderedDict()

    def pictures(self, film: int, frames: Sequence[int]) -> list[Pixels]:
        """(h, w, 3) uint8 of each frame.

        Args:
            film: its number.
            frames: rising.

        Raises:
            InputError: if one cannot be decoded; it names video and frame.
        """
        return [self._picture(film, frame) for frame in frames]

    def _picture(self, film: int, frame: int) -> Pixels:
        kept = self._kept.get((film, frame))
        if kept is not None:
            return kept
        if self._fits(film):
            self._keep_whole(film)
            if (film, frame) in self._kept:
                return self._kept[film, frame]
        picture = resize_image(self._decoded(film, frame), self.sizes[film])
        if picture.nbytes <= self._room:
            self._room -= picture.nbytes
            self._kept[film, frame] = picture
        return picture

    def _fits(self, number: int) -> bool:
        film, (height, width) = self.films[number], self.sizes[number]
        return not film.is_pictures and 0 < film.n_frames * height * width * 3 <= self._room

    def _keep_whole(self, number: int) -> None:
        """Keep the images of a video up to its first damage, which is reported when somebody asks for it."""
        film = self.films[number]
        with suppress(InputError), VideoReader(Path(film.path)) as reader:
            for frame, picture in zip(range(film.n_frames), reader, strict=False):
                held = resize_image(picture, self.sizes[number])
                self._room -= held.nbytes
                self._kept[number, frame] = held

    def _decoded(self, number: int, frame: int) -> Pixels:
        film = self.films[number]
        if not film.is_pictures:
            return self._reader(number).frame(frame)
        if film.stills and not film.stills[frame]:
            raise InputError(f"there is no image of frame {frame}", where=to_printable(film.video))
        found = read_still(film.picture(frame))
        if found.shape[:2] != (film.height, film.width):
            message = (
                f"expected {film.width}x{film.height} as in frame 0, found {found.shape[1]}x{found.shape[0]}"
            )
            raise InputError(message, where=str(film.picture(frame)))
        return found

    def _reader(self, number: int) -> VideoReader:
        if number not in self._open:
            if len(self._open) >= _OPEN:
                self._open.popitem(last=False)[1].close()
            self._open[number] = VideoReader(Path(self.films[number].path))
        self._open.move_to_end(number)
        return self._open[number]

    def __getstate__(self) -> dict[str, object]:
        """Everything but open files and what is kept: each process opens its own."""
        return {**self.__dict__, "_kept": {}, "_open": OrderedDict()}

    def close(self) -> None:
        """Let go of the files and the images."""
        for reader in self._open.values():
            reader.close()
        self._open.clear()
        self._kept.clear()
