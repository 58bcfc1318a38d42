"""Pictures for people: files that a labelling tool can show, taken from stills or written out of films."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.scenes.disk import atomic_write, disk_error
from roadaware.scenes.media import VideoReader
from roadaware.scenes.readers.source import confine, leads_out, read_file, shown
from roadaware.scenes.sensors import video_path
from roadaware.scenes.still_files import HEAD_BYTES, size_of
from roadaware.scenes.tables import Scenes

FOLDER = "pictures"
QUALITY = 95
"""Of the JPEG files that are written out of films."""
_SCHEMA: dict[str, Any] = {
    "video": pl.String,
    "frame": pl.Int64,
    "picture": pl.String,
    "width_px": pl.Int64,
    "height_px": pl.Int64,
}
Place = tuple[str, int]


def task_pictures(
    scenes: Scenes,
    root: Path,
    places: Sequence[Place],
    folder: Path,
    *,
    served: Path | None = None,
    copy: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """A file for each picture: video, frame, `picture` (its path below `served`) and its real size in pixels.

    Stills of the set stay where they are; frames of films are written as JPEG into `folder/pictures`, those
    that are there already are left.

    Args:
        scenes: the set.
        root: the folder that its paths start at.
        places: video and frame of each, in the order of the work.
        folder: where frames of films go.
        served: the folder that the labelling tool serves; `folder` where all pictures lie in it, else `root`.
        copy: whether stills are copied into `folder/pictures`, too.
        progress: told how many pictures are done, of how many.

    Raises:
        UsageError: if a picture does not lie below `served`, or there is no such video or frame.
        InputError: if a picture cannot be read, is not as large as the table says, or is of a video whose
            name leads out of a folder.
        DiskError: if the disk refuses.
    """
    stills = _stills(scenes)
    own = copy or not any(stills.get(place) for place in places)
    base = Path(os.path.realpath(served or (folder if own else root)))
    known = _sizes(scenes)
    found: dict[Place, tuple[str, int, int]] = {}
    ordered = sorted(set(places))
    for done, (place, path, size) in enumerate(_files(scenes, root, ordered, stills, folder, copy=copy), 1):
        if known.get(place[0]) not in (None, size):
            width, height = known[place[0]] or (0, 0)
            message = f"the picture is {size[0]}x{size[1]}, the table says {width}x{height}"
            raise InputError(message, where=f"{shown(place[0])}, frame {place[1]}")
        found[place] = (_below(path, base), *size)
        if progress is not None:
            progress(done, len(ordered))
    return pl.DataFrame([(*place, *found[place]) for place in places], schema=_SCHEMA, orient="row")


def _files(
    scenes: Scenes,
    root: Path,
    places: Sequence[Place],
    stills: dict[Place, str],
    folder: Path,
    *,
    copy: bool,
) -> Iterator[tuple[Place, Path, tuple[int, int]]]:
    """Each picture with its file and size, video by video."""
    for video, group in groupby(places, key=lambda place: place[0]):
        if leads_out(video):
            raise InputError(f"the video '{shown(video)}' is no name for a folder")
        frames = [frame for _, frame in group]
        films = [frame for frame in frames if not stills.get((video, frame))]
        for frame in frames:
            name = stills.get((video, frame))
            if name:
                path = confine(Path(os.path.realpath(root)), name)
                size = _size(path)
                yield (video, frame), _copied(path, folder, video, frame) if copy else path, size
        if films:
            yield from _of_film(scenes, root, video, films, folder)


def _of_film(
    scenes: Scenes, root: Path, video: str, frames: Sequence[int], folder: Path
) -> Iterator[tuple[Place, Path, tuple[int, int]]]:
    reader: VideoReader | None = None
    try:
        for frame in frames:
            path = folder / FOLDER / video / f"{frame:06d}.jpg"
            if not path.is_file():
                reader = reader or VideoReader(video_path(scenes, root, video))
                _put(path, _jpeg(reader.frame(frame)))
            yield (video, frame), Path(os.path.realpath(path)), _size(path)
    finally:
        if reader is not None:
            reader.close()


def _copied(path: Path, folder: Path, video: str, frame: int) -> Path:
    target = folder / FOLDER / video / f"{frame:06d}{path.suffix.lower()}"
    if not target.is_file():
        _put(target, read_file(path))
    return Path(os.path.realpath(target))


def _put(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(path, len(data), error) from error
    atomic_write(path, data)


def _jpeg(picture: npt.NDArray[np.uint8]) -> bytes:
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(picture).save(stream, "JPEG", quality=QUALITY)
    return stream.getvalue()


def _size(path: Path) -> tuple[int, int]:
    """Width and height of a picture by its first bytes.

    Raises:
        InputError: if they do not tell.
    """
    with path.open("rb") as file:
        found = size_of(file.read(HEAD_BYTES))
    if found is None:
        raise InputError("no PNG or JPEG whose size is known", where=shown(str(path)))
    return found


def _below(path: Path, base: Path) -> str:
    try:
        return path.relative_to(base).as_posix()
    except ValueError:
        raise UsageError(
            f"the picture {path} does not lie below {base}, the folder that is served; serve a folder "
            "above all pictures, or copy them"
        ) from None


def _stills(scenes: Scenes) -> dict[Place, str]:
    """Where the pictures of sets of pictures lie."""
    if "path" not in scenes.frames.columns:
        return {}
    rows = scenes.frames.select(pl.col("video").cast(pl.String), "frame", pl.col("path").cast(pl.String))
    return {(video, frame): path for video, frame, path in rows.drop_nulls("path").iter_rows()}


def _sizes(scenes: Scenes) -> dict[str, tuple[int, int] | None]:
    """Width and height of each video, where they are known."""
    if not {"width_px", "height_px"} <= set(scenes.videos.columns):
        return {}
    rows = scenes.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px").iter_rows()
    return {
        video: None if width is None or height is None else (width, height) for video, width, height in rows
    }
