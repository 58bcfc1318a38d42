"""Images and categories of a COCO file: which frame each image is, and which label each category."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polars as pl

from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.scenes.disk import read_regular
from roadaware.scenes.readers.json import a_list, an_object, clean, decode, kind_of, parse, quoted, whole
from roadaware.scenes.readers.source import leads_out, shown

By = Literal["images", "pictures", "folders", "video_ids"]

_LIMIT = 1 << 31
_LARGEST = (1 << 53) - 1
_LARGEST_SIDE = 1 << 20
_NUMBERED = re.compile(r"(?:.*?)(\d{1,15})\.[^./]*$")


@dataclass(frozen=True)
class CocoIndex:
    """What the images and categories of a COCO file are.

    Args:
        images: image id to (video, frame).
        categories: category id to label, in the order of the file.
        sizes: video to (width, height) in pixels, where all of its images agree.
        files: (video, frame) to the image's file name, where it has one.
        kind: of the labels.
        where: the file, for messages.
    """

    images: Mapping[int, tuple[str, int]]
    categories: Mapping[int, str]
    sizes: Mapping[str, tuple[int, int] | None] = field(default_factory=dict)
    files: Mapping[tuple[str, int], str] = field(default_factory=dict)
    kind: str = "agent"
    where: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """The vocabulary: names of the categories in the order of the file."""
        return tuple(self.categories.values())

    @property
    def ids(self) -> dict[tuple[str, int], int]:
        """The image of each (video, frame)."""
        return {place: image for image, place in self.images.items()}

    def videos(self) -> pl.DataFrame:
        """The table of videos."""
        sizes = [self.sizes.get(video) or (None, None) for video in self._names()]
        return pl.DataFrame(
            {
                "video": self._names(),
                "width_px": [width for width, _ in sizes],
                "height_px": [height for _, height in sizes],
            },
            schema={"video": pl.String, "width_px": pl.Int64, "height_px": pl.Int64},
        )

    def frames(self, *, truth: bool) -> pl.DataFrame:
        """The table of frames, by video and frame; those of truth are annotated.

        Args:
            truth: whether it is for Scenes.
        """
        order = {video: place for place, video in enumerate(self._names())}
        places = sorted(self.images.values(), key=lambda place: (order[place[0]], place[1]))
        table = pl.DataFrame(places, schema={"video": pl.String, "frame": pl.Int64}, orient="row")
        if self.files:
            table = table.with_columns(pl.Series("file_name", [self.files.get(place) for place in places]))
        return table.with_columns(annotated=pl.lit(value=True)) if truth else table

    def _names(self) -> list[str]:
        return list(dict.fromkeys(video for video, _ in self.images.values()))


def document(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        DatasetNotFoundError: if there is no file.
        InputError: if it is not one strict JSON document.
    """
    where = shown(str(path))
    try:
        data = read_regular(path, limit=_LIMIT)
    except FileNotFoundError:
        near = path.absolute().parent
        held = sorted(p.name for p in near.iterdir())[:5] if near.is_dir() else []
        raise DatasetNotFoundError(
            f"expected a COCO file, found none; beside it lie {', '.join(map(shown, held)) or 'no files'}",
            where=where,
            hint="check the path",
        ) from None
    return parse(decode(data, where), where)


def index_of(
    content: Any,
    where: str,
    *,
    kind: str = "agent",
    by: By | None = None,
    name: str = "",
    first_frame: int = 1,
) -> CocoIndex:
    """The images and categories of a COCO document.

    Args:
        content: what `document` gave.
        where: names the file in errors.
        kind: of label that the categories are.
        by: how images are frames. `images`: the set is one video called `name`, its frames the images in
            their order. `pictures`: each image is a video of one frame, called as its file. `folders`: a
            file name ends in `<video>/<number>.<ending>`. `video_ids`: each image has `video_id` and
            `frame_id` (from 0), and `videos` the names. Unless told, `video_ids` if there is a list `videos`,
            else `images`.
        name: of the video where the set is one.
        first_frame: number of the first frame in file names.

    Raises:
        InputError: if an id is no whole number, stands twice or names nothing, an image is no frame, or a
            file name leads out of its folder.
    """
    held = an_object(content, where, "a COCO file")
    categories = _categories(held, where)
    rows = a_list(held.get("images"), where, "'images'")
    by = by or ("video_ids" if "videos" in held else "images")
    videos = _videos(held, where) if by == "video_ids" else {}
    images: dict[int, tuple[str, int]] = {}
    places: dict[tuple[str, int], int] = {}
    sizes: dict[str, set[tuple[int, int] | None]] = {}
    files: dict[tuple[str, int], str] = {}
    for row_number, row in enumerate(rows):
        row = an_object(row, where, f"image {row_number}")
        image = _id(row, "id", where, f"image {row_number}")
        file = _file(row, where, image)
        if by == "images":
            place = (name or "images", row_number)
        elif by == "pictures":
            place = (file or f"image {image}", 0)
        elif by == "folders":
            place = _from_name(file, first_frame, where, image)
        else:
            place = _from_ids(row, videos, where, image)
        if image in images or place in places:
            spot = f"{'file' if by == 'pictures' else f'frame {place[1]} of'} {shown(place[0])}"
            what = f"image id {image}" if image in images else spot
            raise InputError(f"{what} stands twice among the images", where=where)
        images[image], places[place] = place, image
        sizes.setdefault(place[0], set()).add(_size(row, where, image))
        if file:
            files[place] = file
    same = {video: next(iter(found)) if len(found) == 1 else None for video, found in sizes.items()}
    return CocoIndex(images, categories, same, files, kind, where)


def _categories(held: Mapping[str, Any], where: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for number, row in enumerate(a_list(held.get("categories"), where, "'categories'")):
        row = an_object(row, where, f"category {number}")
        category, label = _id(row, "id", where, f"category {number}"), row.get("name")
        if not isinstance(label, str):
            raise InputError(f"the name of category {category} is {kind_of(label)}", where=where)
        if category in found or clean(label) in found.values():
            raise InputError(f"category {category}, {quoted(label)}, stands twice", where=where)
        found[category] = clean(label)
    return found


def _videos(held: Mapping[str, Any], where: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for number, row in enumerate(a_list(held.get("videos"), where, "'videos'")):
        row = an_object(row, where, f"video {number}")
        video, name = _id(row, "id", where, f"video {number}"), row.get("name")
        if not isinstance(name, str) or video in found or clean(name) in found.values():
            raise InputError(f"video {video} stands twice or has no name of its own", where=where)
        found[video] = clean(name)
    return found


def _id(row: Mapping[str, Any], key: str, where: str, what: str) -> int:
    value = whole(row.get(key), 0, _LARGEST)
    if value is None:
        told = quoted(row[key]) if key in row else "missing"
        raise InputError(
            f"'{key}' of {what} should be a whole number from 0 on and is {told}",
            where=where,
            hint="ids are numbers, not texts",
        )
    return value


def _file(row: Mapping[str, Any], where: str, image: int) -> str:
    file = row.get("file_name", "")
    if not isinstance(file, str):
        raise InputError(f"the file name of image {image} is {kind_of(file)}", where=where)
    if leads_out(file):
        raise InputError(
            f"the file name of image {image}, {quoted(file)}, leads out of its folder",
            where=where,
            hint="file names are relative to the folder of the images",
        )
    return clean(file)


def _size(row: Mapping[str, Any], where: str, image: int) -> tuple[int, int] | None:
    given = [row.get("width"), row.get("height")]
    if given == [None, None]:
        return None
    width, height = (whole(side, 1, _LARGEST_SIDE) for side in given)
    if width is None or height is None:
        raise InputError(f"image {image} is {quoted(given[0])} x {quoted(given[1])} pixels", where=where)
    return width, height


def _from_name(file: str, first_frame: int, where: str, image: int) -> tuple[str, int]:
    video, _, last = file.replace("\\", "/").rpartition("/")
    found = _NUMBERED.fullmatch(last)
    if not video or found is None or int(found[1]) < first_frame:
        raise InputError(
            f"the file name of image {image}, {quoted(file)}, is not <video>/<number>.<ending>, "
            f"numbered from {first_frame}",
            where=where,
            hint="say how images are frames: by='images' takes them as one set",
        )
    return video, int(found[1]) - first_frame


def _from_ids(row: Mapping[str, Any], videos: Mapping[int, str], where: str, image: int) -> tuple[str, int]:
    video = _id(row, "video_id", where, f"image {image}")
    if video not in videos:
        raise InputError(f"image {image} is of video {video}, which 'videos' does not list", where=where)
    return videos[video], _id(row, "frame_id", where, f"image {image}")


def of_places(places: Sequence[tuple[str, int]], labels: Sequence[str], kind: str) -> CocoIndex:
    """An index of frames in their order: images and categories are numbered from 1.

    Args:
        places: (video, frame) of each image.
        labels: of the categories.
        kind: of the labels.
    """
    return CocoIndex(
        dict(enumerate(places, 1)), dict(enumerate(labels, 1)), kind=kind, where="the frames of the scenes"
    )
