"""Still pictures: one file each, its size told by its first bytes, decoded whole and bounded."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from roadaware.errors import InputError
from roadaware.scenes.readers.source import read_file, shown

MAX_PIXELS = 1 << 26
HEAD_BYTES = 1 << 16
"""How much of a file is enough to tell the size of its picture."""
_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG, _START_OF_FRAME = b"\xff\xd8", {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD}


def read_still(path: Path) -> npt.NDArray[np.uint8]:
    """(H, W, 3) uint8 of a PNG or JPEG file, as its pixels lie in the file.

    Args:
        path: the file.

    Raises:
        InputError: if it cannot be read, is no such picture, is damaged, or has more than 67 million pixels.
    """
    from PIL import Image, UnidentifiedImageError

    where = shown(str(path))
    data = read_file(path)
    try:
        with Image.open(io.BytesIO(data), formats=["PNG", "JPEG"]) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                message = f"{picture.width}x{picture.height}; up to {MAX_PIXELS} pixels are read"
                raise InputError(message, where=where)
            return np.array(picture.convert("RGB"), dtype=np.uint8)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError, Warning) as error:
        # Of what is no picture at all, Pillow names its own buffer and no reason.
        told = "it is neither" if isinstance(error, UnidentifiedImageError) else shown(str(error))
        message = f"no whole PNG or JPEG: {told or type(error).__name__}"
        raise InputError(message, where=where, hint="copy the file again") from error


def size_of(head: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG or JPEG by its first bytes; None where they do not tell.

    Args:
        head: the first `HEAD_BYTES` of the file, or all of it.
    """
    if head.startswith(_PNG) and head[12:16] == b"IHDR" and len(head) >= 24:
        width, height = struct.unpack_from(">II", head, 16)
        return (width, height) if width and height else None
    return _jpeg_size(head) if head.startswith(_JPEG) else None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    """Width and height in the first frame header of a JPEG."""
    place = 2
    while place + 9 <= len(head) and head[place] == 0xFF:
        marker = head[place + 1]
        if marker == 0xFF:
            place += 1
        elif marker in _START_OF_FRAME:
            height, width = struct.unpack_from(">HH", head, place + 5)
            return (width, height) if width and height else None
        else:
            place += 2 + struct.unpack_from(">H", head, place + 2)[0]
    return None
