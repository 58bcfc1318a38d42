"""Still images, one file each or one archive of PNGs a video: decoded whole, bounded in size, never
guessed at.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Numbers, Pixels
from roadaware.errors import InputError, UsageError
from roadaware.io.decoders import (
    JPEG_HEAD,
    MAX_PIXELS,
    PNG_HEAD,
    STILLS,
    PictureParts,
    iterate_jpeg_segments,
    open_picture,
    parse_image_parts,
)
from roadaware.io.files import Growing, Unfinished
from roadaware.io.sources import ZIP_ERRORS, build_read_error, check_archive_members, read_file, to_printable
from roadaware.io.storage import locate_content

HEAD_BYTES = 1 << 16
"""How much of a file is enough to tell the size of its image."""
# Without C4, C8 and CC, which are tables and no frames.
_START_OF_FRAME = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
_ROWS_PIXELS = 1 << 20


def read_still(path: Path) -> Pixels:
    """(H, W, 3) uint8 of a PNG or JPEG file, as its pixels lie in the file, whichever way up that is.

    Boxes of datasets are of these pixels; `parse_image_size` tells their size, too.

    Raises:
        InputError: if it cannot be read, is no such image, is damaged, or is too large.
    """
    return _decode_image(path, STILLS)[0]


def read_upright(path: Path, formats: Sequence[str]) -> tuple[Pixels, bool]:
    """(H, W, 3) uint8 of an image file, turned as its EXIF or XMP says, and whether these can be read.

    Where they cannot, the image is left as it lies in the file.

    Args:
        path: the file.
        formats: of Pillow that it may have.

    Raises:
        InputError: if it cannot be read, is no such image, is damaged, or is too large.
    """
    pixels, orientation = _decode_image(path, formats)
    return np.ascontiguousarray(apply_orientation(pixels, orientation or 1)), orientation is not None


def apply_orientation(pixels: Pixels, orientation: int) -> Pixels:
    """An image the right way up.

    Args:
        pixels: (H, W, 3).
        orientation: 1 to 8, as EXIF counts.

    >>> apply_orientation(np.arange(6, dtype=np.uint8).reshape(2, 3, 1), 6)[..., 0].tolist()
    [[3, 0], [4, 1], [5, 2]]
    """
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return pixels[::-1] if orientation in (3, 4, 7, 8) else pixels


def read_orientation(head: bytes, where: str) -> int:
    """How an image is turned where it is shown, 1 to 8 as EXIF counts; 1 where nothing legible says so.

    Args:
        head: the first `HEAD_BYTES` of the file, or all of it.
        where: names it in errors.

    Raises:
        InputError: if it is damaged.
    """
    return _parts(head, where).orientation or 1


def strip_image_metadata(data: bytes, where: str) -> bytes:
    """A PNG or JPEG file that shows its pixels as they lie, without EXIF and whatever else they do not need.

    Raises:
        InputError: if it is damaged.
    """
    return _parts(data, where).plain


def _parts(data: bytes, where: str) -> PictureParts:
    try:
        return parse_image_parts(data, MAX_PIXELS)
    except ValueError as error:
        raise InputError(f"no whole image: {error}", where=where, hint="copy the file again") from error


def _decode_image(path: Path, formats: Sequence[str]) -> tuple[Pixels, int | None]:
    where = to_printable(str(path))
    data = [read_file(path)]
    try:
        with open_picture(data.pop(), formats) as (image, parts):
            # Three channels of an image, some rows at a time: whole copies would take several times
            # its memory
            image.load()
            # Of 16 bits, as which Pillow opens all of its PGM that are deeper than 8; it would cut them at 255.
            deep = image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM")
            if image.mode in ("I", "F") and not deep:
                raise InputError("its pixels have 32 bits, of which nobody knows what is white")
            width, height = image.size
            made = np.empty((height, width, 3), dtype=np.uint8)
            step = max(1, _ROWS_PIXELS // width)
            for top in range(0, height, step):
                rows = image.crop((0, top, width, min(height, top + step)))
                made[top : top + step] = (
                    (np.asarray(rows) >> 8)[..., np.newaxis] if deep else rows.convert("RGB")
                )
            return made, parts.orientation
    except InputError as error:
        message = f"no whole {_format_names(formats)}: {error.message}"
        raise InputError(message, where=where, hint="copy the file again") from error


def _format_names(formats: Sequence[str]) -> str:
    return f"{', '.join(formats[:-1])} or {formats[-1]}"


def parse_image_size(head: bytes) -> tuple[int, int] | None:
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
    for marker, start, _ in iterate_jpeg_segments(head):
        if marker in _START_OF_FRAME and start + 9 <= len(head):
            height, width = struct.unpack_from(">HH", head, start + 5)
            return (width, height) if width and height else None
    return None


# Masks and depth of a video: a zip archive with one PNG per frame, written and read one by one.

MAX_MASK_PIXELS = 1 << 25
"""The largest mask that is decoded."""
DEPTH_STEP_M = 0.01
# The last step of 16 bits but one; the last stands for the sky.
MAX_DEPTH_M = 655.34
"""The greatest depth that a pixel can hold; sky and everything beyond it is `inf`."""
_SKY = 65535
# Noise does not pack: a PNG may be a little larger than its pixels.
_SLACK = 1 << 16
_MODES = {8: "L", 16: "I;16"}
# The earliest time a zip knows: the same masks make the same file.
_EPOCH = (1980, 1, 1, 0, 0, 0)
# Pillow raises SyntaxError about a broken PNG.
_ERRORS = (*ZIP_ERRORS, SyntaxError)


class MaskWriter(Growing):
    """Writes `000000.png`, `000001.png`, ... in a zip archive; it has its name once `close` is through.

    Args:
        path: where to; its folder must exist.
        bits: 8 or 16 for each pixel.

    Raises:
        DiskError: if the file cannot be written.
    """

    def __init__(self, path: Path, bits: Literal[8, 16] = 16) -> None:
        self.n_frames, self._bits = 0, bits
        self._target = Unfinished(path)
        self._archive = zipfile.ZipFile(self._target.file, "w")

    def write(self, mask: Numbers) -> None:
        """Add a frame.

        Args:
            mask: (H, W) whole numbers from 0 that fit the bits.

        Raises:
            UsageError: if it has another shape or type, or larger values.
            DiskError: if the disk refuses.
        """
        if mask.ndim != 2 or not mask.size or mask.dtype.kind not in "iub":
            raise UsageError(f"expected (H, W) whole numbers, found {mask.dtype} {mask.shape}")
        if not 0 <= int(mask.min()) <= int(mask.max()) < 1 << self._bits:
            raise UsageError(f"values lie in 0 to {(1 << self._bits) - 1}, not up to {int(mask.max())}")
        name = zipfile.ZipInfo(f"{self.n_frames:06d}.png", _EPOCH)
        try:
            self._archive.writestr(name, encode_png(mask, self._bits))
        except OSError as error:
            raise self._target.failure(error) from error
        self.n_frames += 1

    def write_depth(self, depth_m: npt.NDArray[np.float32]) -> None:
        """Add a frame of depth, in whole centimetres.

        Args:
            depth_m: (H, W) metres, at least 0; inf where there is nothing.
        """
        near = depth_m <= MAX_DEPTH_M
        steps = np.round(np.where(near, depth_m, 0.0) / DEPTH_STEP_M)
        self.write(np.where(near, steps, _SKY).astype(np.uint16))

    def close(self) -> None:
        """Complete the archive and give it its name.

        Raises:
            DiskError: if the disk refuses; what stood there before still stands.
        """
        try:
            self._archive.close()
        except OSError as error:
            failure = self._target.failure(error)
            self.abandon()
            raise failure from error
        self._target.finish()

    def abandon(self) -> None:
        """Remove the unfinished file."""
        self._archive.fp = None  # its list of contents need not be written
        self._target.abandon()


class MaskReader:
    """Frames of a `MaskWriter`'s archive by number; what one frame may hold is bounded.

    Args:
        path: a regular file.

    Raises:
        InputError: if it cannot be read or is no such archive.
    """

    def __init__(self, path: Path) -> None:
        self.where = to_printable(str(path))
        try:
            if not Path(path).is_file():
                Path(path).stat()
                raise InputError("expected a file, found a folder, pipe or device", where=self.where)
            if not Path(path).stat().st_size:
                raise InputError("the file is empty", where=self.where)
        except (OSError, ValueError) as error:
            raise build_read_error(error, self.where) from error
        try:
            self._archive = zipfile.ZipFile(locate_content(path))
        except _ERRORS as error:
            message = f"no whole zip archive: {to_printable(str(error)) or type(error).__name__}"
            raise InputError(message, where=self.where, hint="write or copy the file again") from error
        try:
            check_archive_members(self._archive.infolist(), self.where)
        except InputError:
            self._archive.close()
            raise
        names = self._archive.namelist()
        wrong = [name for k, name in enumerate(names) if name != f"{k:06d}.png"]
        if wrong:
            self._archive.close()
            message = f"expected 000000.png, 000001.png and so on, found {to_printable(wrong[0])}"
            raise InputError(message, where=self.where)

    def __len__(self) -> int:
        return len(self._archive.filelist)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._archive.close()

    def frame(self, number: int) -> Numbers:
        """(H, W) uint8 or uint16 mask of a frame.

        Args:
            number: of the frame, from 0.

        Raises:
            UsageError: if there is no such frame.
            InputError: if it is damaged or too large.
        """
        if not 0 <= number < len(self):
            raise UsageError(f"{self.where} has frames 0 to {len(self) - 1}, not {number}")
        info = self._archive.filelist[number]
        where = f"{self.where}: {info.filename}"
        most = 2 * MAX_MASK_PIXELS + _SLACK
        try:
            with self._archive.open(info) as stream:
                data = stream.read(min(info.file_size, most) + 1)
        except _ERRORS as error:
            message = f"damaged: {to_printable(str(error)) or type(error).__name__}"
            raise InputError(message, where=where, hint="write or copy the file again") from error
        if len(data) != info.file_size or len(data) > most:
            raise InputError(f"promises {info.file_size} bytes; up to {most} are read", where=where)
        return decode_mask(data, where)

    def depth_m(self, number: int) -> npt.NDArray[np.float32]:
        """(H, W) float32 metres of a frame of depth, inf where there is nothing.

        Args:
            number: of the frame, from 0.

        Raises:
            UsageError: if there is no such frame.
            InputError: if it is damaged, too large, or no depth.
        """
        steps = self.frame(number)
        if steps.dtype != np.uint16:
            raise InputError("expected depth in 16 bits, found a mask of 8", where=self.where)
        depth = steps.astype(np.float32) * np.float32(DEPTH_STEP_M)
        depth[steps == _SKY] = np.inf
        return depth


def encode_png(mask: Numbers, bits: int) -> bytes:
    """A grey PNG of 8 or 16 bits; each row is stored as its difference from the row above.

    Args:
        mask: (H, W) whole numbers that fit the bits.
        bits: 8 or 16.
    """
    # PNG stores 16 bits with the higher byte first.
    rows = mask.astype(f">u{bits // 8}").view(np.uint8).reshape(len(mask), -1)
    lines = np.empty((rows.shape[0], rows.shape[1] + 1), dtype=np.uint8)
    # Filter 2 of PNG, Up: masks change little from row to row. Bytes wrap as the filter wants it.
    lines[:, 0] = 2
    lines[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=lines[1:, 1:])
    head = struct.pack(">IIBBBBB", mask.shape[1], mask.shape[0], bits, 0, 0, 0, 0)
    # The quickest level: behind the filter most bytes of a mask are 0, which it packs as well.
    body = zlib.compress(lines.tobytes(), 1)
    chunks = ((b"IHDR", head), (b"IDAT", body), (b"IEND", b""))
    parts = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
        for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def decode_mask(data: bytes, where: str) -> Numbers:
    """(H, W) uint8 or uint16 of a grey PNG.

    Raises:
        InputError: if it is damaged, too large, or has colours.
    """
    try:
        with open_picture(data, ["PNG"]) as (image, _):
            if image.mode not in _MODES.values():
                raise InputError(f"expected a grey PNG of 8 or 16 bits, found {image.mode}")
            if image.width * image.height > MAX_MASK_PIXELS:
                raise InputError(f"{image.width}x{image.height}; up to {MAX_MASK_PIXELS} pixels are read")
            found = np.array(image)
    except InputError as error:
        message = f"no whole PNG of a mask: {error.message}"
        raise InputError(message, where=where, hint="write or copy the file again") from error
    return found.astype(np.uint16 if found.dtype.itemsize > 1 else np.uint8)
