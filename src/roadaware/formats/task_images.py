"""Images for people: files that a labelling tool can show, taken from stills or written out of videos."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from PIL import Image

from roadaware.errors import InputError, UsageError
from roadaware.io.folders import write_bytes
from roadaware.io.images import HEAD_BYTES, parse_image_size, read_orientation, strip_image_metadata
from roadaware.io.sources import is_outside, read_file, read_file_head, resolve_inside, to_printable
from roadaware.io.video import VideoReader
from roadaware.scenes.sensors import find_video_path, list_still_paths
from roadaware.scenes.tables import Scenes

FOLDER = "pictures"
QUALITY = 95
"""Of the JPEG files that are written out of videos."""
_SCHEMA: dict[str, Any] = {
    "video": pl.String,
    "frame": pl.Int64,
    "picture": pl.String,
    "width_px": pl.Int64,
    "height_px": pl.Int64,
}
Place = tuple[str, int]


def prepare_task_images(
    scenes: Scenes,
    root: Path,
    places: Sequence[Place],
    folder: Path,
    *,
    served: Path | None = None,
    copy: bool = False,
    refused: Callable[[Place, InputError], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """A file for each image: video, frame, `picture` (its path below `served`) and its real size in pixels.

    Stills of the set stay where they are; frames of videos are written as JPEG into `folder/pictures`, those
    that are there already are left.

    Args:
        scenes: the set.
        root: the folder that its paths start at.
        places: video and frame of each, in the order of the work.
        folder: where frames of videos go.
        served: the folder that the labelling tool serves; `folder` where all images lie in it, else `root`.
        copy: whether stills are copied into `folder/pictures`, too.
        refused: called with each image that cannot be read, and why, which is then left out; without it the
            first is an error.
        progress: called with the number of images done and the total.

    Raises:
        UsageError: if an image does not lie below `served`, or there is no such video or frame.
        InputError: if an image cannot be read, is not as large as the table says, or is of a video whose
            name leads out of a folder, and `refused` is not given.
        DiskError: if the disk refuses.
    """
    stills = {
        (video, frame): path
        for video, paths in list_still_paths(scenes).items()
        for frame, path in paths.items()
    }
    known = _sizes(scenes)
    own = copy or not any(stills.get(place) for place in places)
    base = Path(os.path.realpath(served or (folder if own else root)))
    found: dict[Place, tuple[str, int, int]] = {}
    # By video and frame: a video is opened once and read forwards, whatever the order of the work.
    ordered = sorted(set(places))
    with _Films(scenes, root) as films:
        for done, place in enumerate(ordered, 1):
            try:
                path = _file(films, place, stills.get(place), folder, copy=copy)
                size = _checked_size(path, place, known.get(place[0]))
            except InputError as error:
                if refused is None:
                    raise
                refused(place, error)
            else:
                found[place] = (_below(path, base), *size)
            if progress is not None:
                progress(done, len(ordered))
    rows = [(*place, *found[place]) for place in places if place in found]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


class _Films:
    """The videos of a set, one of them open at a time."""

    def __init__(self, scenes: Scenes, root: Path) -> None:
        self.scenes, self.root = scenes, root
        self._video: str | None = None
        self._reader: VideoReader | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.close()

    def frame(self, video: str, frame: int) -> npt.NDArray[np.uint8]:
        """(H, W, 3) of one frame."""
        if self._reader is None or self._video != video:
            self.__exit__()
            self._reader = None
            self._reader, self._video = VideoReader(find_video_path(self.scenes, self.root, video)), video
        return self._reader.frame(frame)


def _file(films: _Films, place: Place, still: str | None, folder: Path, *, copy: bool) -> Path:
    """The file of one image, written if need be."""
    video, frame = place
    if is_outside(video):
        raise InputError(f"the video '{to_printable(video)}' is no name for a folder")
    if still:
        path = resolve_inside(Path(os.path.realpath(films.root)), still)
        return _copy_image(path, folder, video, frame) if copy else path
    path = folder / FOLDER / video / f"{frame:06d}.jpg"
    if not path.is_file():
        image = films.frame(video, frame)
        stream = io.BytesIO()
        Image.fromarray(image).save(stream, "JPEG", quality=QUALITY)
        write_bytes(path, stream.getvalue())
    return Path(os.path.realpath(path))


def _checked_size(path: Path, place: Place, known: tuple[int, int] | None) -> tuple[int, int]:
    # Width and height of an image by its first bytes
    head = read_file_head(path, HEAD_BYTES)
    if read_orientation(head, to_printable(str(path))) != 1:
        message = "its EXIF turns it: a browser would show it otherwise than its pixels and boxes lie"
        raise InputError(
            message, where=to_printable(str(path)), hint="have images copied: copies are not turned"
        )
    found = parse_image_size(head)
    if found is None:
        raise InputError("no PNG or JPEG whose size is known", where=to_printable(str(path)))
    size = found
    if known is not None and known != size:
        width, height = known
        message = f"the image is {size[0]}x{size[1]}, the table says {width}x{height}"
        raise InputError(message, where=f"{to_printable(place[0])}, frame {place[1]}")
    return size


def _copy_image(path: Path, folder: Path, video: str, frame: int) -> Path:
    target = folder / FOLDER / video / f"{frame:06d}{path.suffix.lower()}"
    if not target.is_file():
        data, where = read_file(path), to_printable(str(path))
        write_bytes(target, data if read_orientation(data, where) == 1 else strip_image_metadata(data, where))
    return Path(os.path.realpath(target))


def _below(path: Path, base: Path) -> str:
    try:
        return path.relative_to(base).as_posix()
    except ValueError:
        raise UsageError(
            f"the image {path} does not lie below {base}, the folder that is served; serve a folder "
            "above all images, or copy them"
        ) from None


def _sizes(scenes: Scenes) -> dict[str, tuple[int, int] | None]:
    """Width and height of each video, where they are known."""
    if not {"width_px", "height_px"} <= set(scenes.videos.columns):
        return {}
    rows = scenes.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px").iter_rows()
    return {
        video: None if width is None or height is None else (width, height) for video, width, height in rows
    }
