"""The videos that networks look at, of sets, folders or single ones, and their images by frame number."""

from __future__ import annotations

import hashlib
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Pixels
from roadaware.datasets import read
from roadaware.datasets.detect_format import SWEEP_READERS, detect_reader, find_root
from roadaware.datasets.simulator import is_simulation
from roadaware.errors import InputError, UsageError
from roadaware.io.images import HEAD_BYTES, parse_image_size, read_still
from roadaware.io.sources import is_outside, read_file_head, resolve_inside, to_printable
from roadaware.io.video import ENDINGS, VideoReader
from roadaware.scenes.schema import MOST_LISTED_FRAMES
from roadaware.scenes.sensors import find_video_path, list_still_paths
from roadaware.scenes.store import is_saved, open_scenes
from roadaware.scenes.tables import Scenes
from roadaware.simulator.synthetic_films import is_synthetic_film

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
                    image = read_still(film.picture(frame))
                else:
                    reader = reader or VideoReader(Path(film.path))
                    image = reader.frame(frame)
            except InputError as error:
                yield Shot(frame, None, str(error))
                continue
            yield Shot(frame, image)
    finally:
        if reader is not None:
            reader.close()


def iterate_images(film: Film) -> Iterator[Pixels]:
    """The images of a video, (H, W, 3) uint8 of one size, in order.

    Args:
        film: as `find_videos` found it.

    Raises:
        InputError: at the first that cannot be read, or has another size.
    """
    for shot in iterate_shots(film, range(film.n_frames)):
        if shot.picture is None:
            raise InputError(shot.fault)
        height, width = shot.picture.shape[:2]
        if (height, width) != (film.height, film.width):
            message = f"expected {film.width}x{film.height} as in frame 0, found {width}x{height}"
            raise InputError(message, where=str(film.picture(shot.frame)))
        yield shot.picture


def iterate_batches(
    film: Film, frames: Iterable[int] | None, batch: int, refused: Callable[[Shot], None]
) -> Iterator[tuple[list[int], list[Pixels]]]:
    """Frames and their images, some of one size at a time, each of which can be looked at by itself.

    Args:
        film: as `find_videos` found it.
        frames: which, best rising; None for all that have an image.
        batch: images at a time, at most.
        refused: called with each one that cannot be read.
    """
    numbers: list[int] = []
    held: list[Pixels] = []
    for shot in iterate_shots(film, frames):
        if shot.picture is None:
            refused(shot)
            continue
        if held and held[0].shape != shot.picture.shape:
            yield numbers, held
            numbers, held = [], []
        numbers.append(shot.frame)
        held.append(shot.picture)
        if len(held) == batch:
            yield numbers, held
            numbers, held = [], []
    if held:
        yield numbers, held


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
    # Raise where a pattern cannot be filled in
    try:
        pattern.format(video="", number=1, frame=0)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{pattern!r} is no pattern of paths: in braces stand video, number or frame, as in "
            "videos/{video}.mp4 or rgb-images/{video}/{number:05d}.jpg"
        ) from error
    found, refused = [], {}
    counts = scenes.videos["n_frames"].to_list() if "n_frames" in scenes.videos.columns else []
    names = scenes.videos["video"].cast(pl.String).to_list()
    stills = {} if pattern else list_still_paths(scenes)
    for place, name in enumerate(names):
        try:
            if name in stills:
                film = _of_stills(scenes, root, name, place, stills[name])
            else:
                film = _film(scenes, root, pattern, name)
            promised = int((counts[place] if counts else None) or 0)
            shorter = promised > film.n_frames
            # A hole is no end: what lies behind it would be left out, or the hole found after hours.
            if shorter and not film.stills and film.is_pictures and film.picture(promised - 1).is_file():
                raise InputError("the image is not there", where=str(film.picture(film.n_frames)))
        except InputError as error:
            refused[name] = str(error)
            continue
        if shorter:
            _log.warning("%s has %d frames of %d: the others are not used", name, film.n_frames, promised)
        found.append(film)
    if not found:
        reason = next(iter(refused.values()), "there is no video")
        raise InputError(
            f"none of {len(names)} videos can be opened; the first: {reason}",
            where=str(root),
            hint="`media` is the folder that paths start from, and `pattern` says where videos lie in it, such as "
            "{video}.mp4 (of a recipe: `data.media`, `data.films`)",
        )
    return found, refused


def _film(scenes: Scenes, root: Path, pattern: str, video: str) -> Film:
    """One video, opened to see how long and large it is."""
    if "{number" in pattern or "{frame" in pattern:
        return _pictures(root, pattern, video)
    path = root / pattern.format(video=video) if pattern else find_video_path(scenes, root, video)
    with VideoReader(path) as reader:
        return Film(video, str(path), len(reader), reader.height_px, reader.width_px)


def _of_stills(scenes: Scenes, root: Path, video: str, place: int, paths: Mapping[int, str]) -> Film:
    """Still images of one video; one that is not there may be so, but not all."""
    # A list is made up to the largest frame that a file names.
    if max(paths) >= MOST_LISTED_FRAMES:
        raise InputError(
            f"frame {max(paths)}: up to {MOST_LISTED_FRAMES} are numbered", where=to_printable(video)
        )
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
    size = [scenes.videos[name][place] for name in _SIDES if name in scenes.videos.columns]
    width, height = (size[0], size[1]) if len(size) == 2 else (None, None)
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


# What a command is asked to look at.


@dataclass(frozen=True, eq=False)
class VideoFacts:
    """Facts about a video whose detections are kept.

    Args:
        video: its name.
        stamp: changes when its file does.
        row: its row of the videos table.
    """

    video: str
    stamp: str
    row: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class VideoSet:
    """What is to be looked at.

    Args:
        films: that can be opened, in order.
        facts: of each of them.
        refused: video to why it cannot be opened.
        order: of all videos.
        scenes: the set that they belong to, if any.
    """

    films: list[Film] = field(default_factory=list)
    facts: list[VideoFacts] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    scenes: Scenes | None = None

    @property
    def synthetic(self) -> bool:
        """Whether all of them are videos of the simulator."""
        return bool(self.films) and all(is_synthetic_film(film.path) for film in self.films)

    @property
    def still(self) -> bool:
        """Whether some are still images, which do not show how anybody moves."""
        return any(film.stills for film in self.films)


def collect_videos(
    paths: Sequence[Path],
    *,
    reader: str | None = None,
    split: str | None = None,
    media: Path | None = None,
    pattern: str = "",
    read_set: Callable[[str, Path], Scenes] = read,
) -> VideoSet:
    """The videos behind some paths: one dataset, or videos and folders of videos.

    Without a reader they are videos, unless the path holds saved tables, synthetic scenes or a set with
    sweeps (KITTI, nuScenes, ONCE), which is detected from its files.

    Args:
        paths: at least one.
        reader: of the dataset.
        split: of the dataset; default: all videos.
        media: folder that the paths of its tables start at; default: that of the dataset.
        pattern: of paths below it, as of `find_videos`.
        read_set: reads a dataset by reader and path.

    Raises:
        UsageError: if a path is of no use, or two videos have the same name.
        InputError: if the dataset cannot be read, or none of its videos opened.
    """
    first = paths[0]
    tables, simulated = is_saved(first), is_simulation(first)
    if reader or tables or simulated:
        if len(paths) > 1:
            raise UsageError("--videos takes one dataset, or any number of videos and folders of videos")
        reader = reader or "simulator"
    elif len(paths) == 1:
        reader = _detect_sweeps(first)
    if reader is None:
        if split or media or pattern:
            raise UsageError("--split, --media and --films belong to a dataset: name it with --reader")
        return _open_films(paths)
    scenes = open_scenes(first) if tables else read_set(reader, first)
    scenes = scenes if split is None else scenes.split(split)
    if media is None and reader in SWEEP_READERS and not (tables or simulated):
        media = find_root(reader, first)
    try:
        films, refused = find_videos(scenes, media or (first if first.is_dir() else first.parent), pattern)
    except InputError as error:
        hint = "--media is the folder that paths start from, --films says where videos lie in it"
        raise InputError(error.message, where=error.where, hint=hint) from error
    rows = {str(row["video"]): row for row in scenes.videos.iter_rows(named=True)}
    known = ("video", "scene", "width_px", "height_px", "fps", "n_frames", "path", "splits")
    facts = [
        VideoFacts(film.video, _stamp(film), {name: rows[film.video].get(name) for name in known})
        for film in films
    ]
    return VideoSet(films, facts, refused, list(rows), scenes)


def _detect_sweeps(path: Path) -> str | None:
    """The reader of a set with sweeps at a path; None where videos lie there, or none of these sets."""
    if not path.is_dir() or any(each.suffix.lower() in ENDINGS for each in path.iterdir()):
        return None
    try:
        return detect_reader(path)
    except InputError:
        return None


def _open_films(given: Sequence[Path]) -> VideoSet:
    """Videos, and those of folders.

    Raises:
        UsageError: if two have the same name.
        InputError: if nothing is there, or no video in a folder.
    """
    paths: dict[str, Path] = {}
    for place in given:
        if not place.exists():
            raise InputError("there is no such file or folder", where=str(place), hint="Check the path.")
        held = [place]
        if place.is_dir():
            held = sorted(each for each in place.iterdir() if each.suffix.lower() in ENDINGS)
        if not held:
            raise InputError(
                "expected videos, or a dataset, and found neither",
                where=str(place),
                hint=f"videos end in {', '.join(ENDINGS)}; name the reader of a dataset with --reader",
            )
        for path in held:
            if path.stem in paths:
                raise UsageError(f"{path} and {paths[path.stem]} have the same name: look at them one by one")
            paths[path.stem] = path
    found = VideoSet(order=list(paths))
    for name, path in paths.items():
        try:
            if path.name.encode(errors="ignore").decode() != path.name:
                raise InputError(
                    "no table holds a name that is no Unicode text",
                    where=to_printable(str(path)),
                    hint="rename it",
                )
            with VideoReader(path) as reader:
                film = Film(name, str(path), len(reader), reader.height_px, reader.width_px)
                fps = reader.fps
        except InputError as error:
            found.refused[name] = str(error)
            continue
        row = {
            "video": name,
            "width_px": film.width,
            "height_px": film.height,
            "fps": fps,
            "n_frames": film.n_frames,
            "path": path.name,
        }
        found.films.append(film)
        found.facts.append(VideoFacts(name, _stamp(film), row))
    return found


def _stamp(film: Film) -> str:
    """Changes when the video does, or any of its images where these are files."""
    if not film.is_pictures:
        found = Path(film.path).stat()
        return f"{film.n_frames}-{found.st_size}-{found.st_mtime_ns}"
    whole = hashlib.blake2b(digest_size=8)
    for frame in film.frames:
        try:
            found = film.picture(frame).stat()
            text = f"{frame} {found.st_size} {found.st_mtime_ns}\n"
        except OSError:
            text = f"{frame} gone\n"
        whole.update(text.encode())
    return f"{film.n_frames}-{whole.hexdigest()}"


_OPEN = 8
"""So many videos stay open at a time."""


def resize_image(image: Pixels, size: tuple[int, int]) -> Pixels:
    """An image of another size, as detectors resize it: bilinear, with antialiasing.

    Args:
        image: (H, W, 3) uint8.
        size: height and width.
    """
    if image.shape[:2] == size:
        return image
    # Whatever lies below the networks is imported without torch.
    import torch
    from torch.nn import functional

    tensor = torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1)[None]
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
        image = resize_image(self._decoded(film, frame), self.sizes[film])
        if image.nbytes <= self._room:
            self._room -= image.nbytes
            self._kept[film, frame] = image
        return image

    def _fits(self, number: int) -> bool:
        film, (height, width) = self.films[number], self.sizes[number]
        return not film.is_pictures and 0 < film.n_frames * height * width * 3 <= self._room

    def _keep_whole(self, number: int) -> None:
        """Keep the images of a video up to its first damage, which is reported when somebody asks for it."""
        film = self.films[number]
        with suppress(InputError), VideoReader(Path(film.path)) as reader:
            for frame, image in zip(range(film.n_frames), reader, strict=False):
                held = resize_image(image, self.sizes[number])
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
