"""The videos that commands look at: of datasets, also of still images, of folders of videos, or videos."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from roadaware.cli import datasets
from roadaware.datasets.detect_format import SWEEP_READERS, detect_reader, find_root
from roadaware.errors import InputError, UsageError
from roadaware.io.video import VideoReader
from roadaware.simulator.synthetic_films import is_synthetic_film
from roadaware.tasks.prediction_runs import VideoFacts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from roadaware.models.detector import FrameDetections
    from roadaware.models.videos import VideoDetector
    from roadaware.scenes.tables import Scenes
    from roadaware.training.footage import Film

_FILMS = (".mp4", ".mov", ".mkv", ".webm", ".avi", ".m4v", ".mpg", ".mpeg", ".ts")
_READER = "Name of the dataset's reader, such as jaad or road. [default: detected from its files]"
_MEDIA = "Folder that the dataset's videos or images lie below. [default: the dataset's]"
_VIDEO_PATHS = (
    "Where videos lie below it, such as videos/{video}.mp4 or rgb-images/{video}/{number:05d}.jpg. [default: "
    "as its tables say]"
)


@dataclass(frozen=True, eq=False)
class Asked:
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


@Parameter(name="*")
@dataclass(frozen=True)
class VideoSource:
    """Which videos of a dataset, and where they lie."""

    reader: Annotated[str | None, Parameter(help=_READER)] = None
    split: Annotated[str | None, Parameter(help="A split of the dataset. [default: all videos]")] = None
    media: Annotated[Path | None, Parameter(help=_MEDIA)] = None
    films: Annotated[str, Parameter(help=_VIDEO_PATHS, show_default=False)] = ""

    def collect(self, paths: Sequence[Path]) -> Asked:
        """The videos behind some paths: one dataset, or videos and folders of videos.

        Without a reader they are videos, unless the path holds saved tables, synthetic scenes or a set with
        sweeps (KITTI, nuScenes, ONCE), which is detected from its files.

        Raises:
            UsageError: if a path is of no use, or two videos have the same name.
            InputError: if the dataset cannot be read, or none of its videos opened.
        """
        first = paths[0]
        where = (self.split, self.media, self.films)
        if self.reader or datasets.is_saved(first) or datasets.is_made_up(first):
            if len(paths) > 1:
                raise UsageError("--videos takes one dataset, or any number of videos and folders of videos")
            return _of_set(first, self.reader or datasets.MADE_UP, *where)
        if len(paths) == 1 and (found := _with_sweeps(first)):
            return _of_set(first, found, *where)
        if any(where):
            raise UsageError("--split, --media and --films belong to a dataset: name it with --reader")
        films: dict[str, Path] = {}
        for path in (each for given in paths for each in _films(given)):
            if path.stem in films:
                raise UsageError(f"{path} and {films[path.stem]} have the same name: look at them one by one")
            films[path.stem] = path
        return _of_films(films)


ALL_VIDEOS = VideoSource()


def _with_sweeps(path: Path) -> str | None:
    """The reader of a set with sweeps at a path; None where videos lie there, or none of these sets."""

    if not path.is_dir() or any(each.suffix.lower() in _FILMS for each in path.iterdir()):
        return None
    try:
        return detect_reader(path)
    except InputError:
        return None


@contextmanager
def iterate_video_images(film: Film) -> Iterator[Iterator[npt.NDArray[np.uint8]]]:
    """The images of a video, in order.

    Args:
        film: as `VideoSource.collect` found it.
    """
    from roadaware.training.footage import Footage

    footage = Footage([film], [(film.height, film.width)])
    try:
        yield (footage.pictures(0, [frame])[0] for frame in range(film.n_frames))
    finally:
        footage.close()


def detect_stills(
    film: Film, detector: VideoDetector, moved: Callable[[int], None]
) -> tuple[list[FrameDetections], list[str]]:
    """What is detected in still images, each by itself, and why others could not be read.

    Args:
        film: of still images.
        detector: that looks at images one by one (`single`).
        moved: told how many images are done.
    """

    from roadaware.training.footage import Shot, iterate_shots

    found: list[FrameDetections] = []
    faults: list[str] = []
    held: list[Shot] = []

    def look() -> None:
        told = detector.follow([shot.picture for shot in held if shot.picture is not None])
        found.extend(replace(each, frame=shot.frame) for each, shot in zip(told, held, strict=True))
        held.clear()

    for done, shot in enumerate(iterate_shots(film), 1):
        if shot.picture is None:
            faults.append(shot.fault)
        else:
            if held and held[0].picture is not None and held[0].picture.shape != shot.picture.shape:
                look()
            held.append(shot)
            if len(held) == detector.batch:
                look()
        moved(done)
    if held:
        look()
    return found, faults


def _of_set(path: Path, reader: str, split: str | None, media: Path | None, pattern: str) -> Asked:
    from roadaware.training.footage import find_videos

    if datasets.is_saved(path):
        from roadaware.scenes.store import open_scenes

        scenes = open_scenes(path)
    else:
        scenes = datasets.open_dataset(reader, path)
    scenes = scenes if split is None else scenes.split(split)
    root = media or _root(reader, path)
    try:
        films, refused = find_videos(scenes, root, pattern)
    except InputError as error:
        hint = "--media is the folder that paths start from, --films says where videos lie in it"
        raise InputError(error.message, where=error.where, hint=hint) from error
    rows = {str(row["video"]): row for row in scenes.videos.iter_rows(named=True)}
    known = ("video", "scene", "width_px", "height_px", "fps", "n_frames", "path", "splits")
    facts = []
    for film in films:
        row = {name: rows[film.video].get(name) for name in known}
        facts.append(VideoFacts(film.video, _stamp(film), row))
    return Asked(films, facts, refused, list(rows), scenes)


def _root(reader: str, path: Path) -> Path:
    """The folder that paths in the tables of a set start at."""

    if reader in SWEEP_READERS and not datasets.is_saved(path) and not datasets.is_made_up(path):
        return find_root(reader, path)
    return path if path.is_dir() else path.parent


def _of_films(paths: dict[str, Path]) -> Asked:
    from roadaware.training.footage import Film

    found = Asked(order=list(paths))
    for name, path in paths.items():
        try:
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


def _films(path: Path) -> list[Path]:
    """A video, or those of a folder.

    Raises:
        InputError: if nothing is there, or no video in the folder.
    """
    if not path.exists():
        raise InputError("there is no such file or folder", where=str(path), hint="Check the path.")
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.iterdir() if each.suffix.lower() in _FILMS)
    if not found:
        raise InputError(
            "expected videos, or a dataset, and found neither",
            where=str(path),
            hint=f"videos end in {', '.join(_FILMS)}; name the reader of a dataset with --reader",
        )
    return found


def _stamp(film: Film) -> str:
    """Changes when the video does, or its first image, or any of still images."""
    if film.stills:
        return _stamp_of_stills(film)
    path = film.picture(0) if film.is_pictures else Path(film.path)
    found = path.stat()
    return f"{film.n_frames}-{found.st_size}-{found.st_mtime_ns}"


def _stamp_of_stills(film: Film) -> str:
    whole = hashlib.blake2b(digest_size=8)
    for frame in film.frames:
        try:
            found = film.picture(frame).stat()
            told = f"{frame} {found.st_size} {found.st_mtime_ns}\n"
        except OSError:
            told = f"{frame} gone\n"
        whole.update(told.encode())
    return f"{film.n_frames}-{whole.hexdigest()}"
