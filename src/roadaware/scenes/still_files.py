"""Still pictures: one file each, its size told by its first bytes, decoded whole and bounded."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Pixels
from roadaware.errors import InputError
from roadaware.scenes.decoders import MAX_PIXELS, STILLS, open_picture
from roadaware.scenes.picture_parts import JPEG_HEAD, PNG_HEAD, PictureParts, jpeg_segments, picture_parts
from roadaware.scenes.readers.source import read_file, shown

HEAD_BYTES = 1 << 16
"""How much of a file is enough to tell the size of its picture."""
_START_OF_FRAME = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
_ROWS_PIXELS = 1 << 20


def read_still(path: Path) -> Pixels:
    """(H, W, 3) uint8 of a PNG or JPEG file, as its pixels lie in the file, whichever way up that is.

    Boxes of data sets are of these pixels; `size_of` tells their size, too.

    Args:
        path: the file.

    Raises:
        InputError: if it cannot be read, is no such picture, is damaged, or is too large.
    """
    return _decoded(path, STILLS)[0]


def read_upright(path: Path, formats: Sequence[str]) -> tuple[Pixels, bool]:
    """(H, W, 3) uint8 of a picture file, turned as its EXIF or XMP says, and whether these can be read.

    Where they cannot, the picture is left as it lies in the file.

    Args:
        path: the file.
        formats: of Pillow that it may have.

    Raises:
        InputError: if it cannot be read, is no such picture, is damaged, or is too large.
    """
    pixels, orientation = _decoded(path, formats)
    return np.ascontiguousarray(turned(pixels, orientation or 1)), orientation is not None


def turned(pixels: Pixels, orientation: int) -> Pixels:
    """A picture the right way up.

    Args:
        pixels: (H, W, 3).
        orientation: 1 to 8, as EXIF counts.

    >>> turned(np.arange(6, dtype=np.uint8).reshape(2, 3, 1), 6)[..., 0].tolist()
    [[3, 0], [4, 1], [5, 2]]
    """
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return pixels[::-1] if orientation in (3, 4, 7, 8) else pixels


def orientation_of(head: bytes, where: str) -> int:
    """How a picture is turned where it is shown, 1 to 8 as EXIF counts; 1 where nothing legible says so.

    Args:
        head: the first `HEAD_BYTES` of the file, or all of it.
        where: names it in errors.

    Raises:
        InputError: if it is damaged.
    """
    return _parts(head, where).orientation or 1


def plain_still(data: bytes, where: str) -> bytes:
    """A PNG or JPEG file that shows its pixels as they lie, without EXIF and whatever else they do not need.

    Args:
        data: the file.
        where: names it in errors.

    Raises:
        InputError: if it is damaged.
    """
    return _parts(data, where).plain


def _parts(data: bytes, where: str) -> PictureParts:
    try:
        return picture_parts(data, MAX_PIXELS)
    except ValueError as error:
        raise InputError(f"no whole picture: {error}", where=where, hint="copy the file again") from error


def _decoded(path: Path, formats: Sequence[str]) -> tuple[Pixels, int | None]:
    where = shown(str(path))
    data = [read_file(path)]
    try:
        with open_picture(data.pop(), formats) as (picture, parts):
            return _rgb(picture), parts.orientation
    except InputError as error:
        message = f"no whole {_listed(formats)}: {error.message}"
        raise InputError(message, where=where, hint="copy the file again") from error


def _listed(formats: Sequence[str]) -> str:
    return f"{', '.join(formats[:-1])} or {formats[-1]}"


def _rgb(picture: Any) -> Pixels:
    """Three channels of a picture, some rows at a time: whole copies would take several times its memory."""
    picture.load()
    width, height = picture.size
    made = np.empty((height, width, 3), dtype=np.uint8)
    step = max(1, _ROWS_PIXELS // width)
    for top in range(0, height, step):
        rows = picture.crop((0, top, width, min(height, top + step)))
        made[top : top + step] = rows.convert("RGB")
    return made


def size_of(head: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG or JPEG by its first bytes, as its pixels lie; None where they do not tell.

    Args:
        head: the first `HEAD_BYTES` of the file, or all of it.
    """
    if head.startswith(PNG_HEAD) and head[12:16] == b"IHDR" and len(head) >= 24:
        width, height = struct.unpack_from(">II", head, 16)
        return (width, height) if width and height else None
    return _jpeg_size(head) if head.startswith(JPEG_HEAD) else None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    """Width and height in the first frame header of a JPEG."""
    for marker, start, _ in jpeg_segments(head):
        if marker in _START_OF_FRAME and start + 9 <= len(head):
            height, width = struct.unpack_from(">HH", head, start + 5)
            return (width, height) if width and height else None
    return None
