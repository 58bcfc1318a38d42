"""The one place where decoders of images, videos and sound are opened, each limited to what it may read.

A decoder that guesses reads far more than it is asked for: Pillow runs Ghostscript on a PostScript file
whatever its name, FFmpeg follows a playlist to other files and machines. So each is given its formats, and
FFmpeg its protocols as well. Everything else calls this module; a lint rule keeps that so."""

from __future__ import annotations

import ctypes
import io
import os
import re
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import av
from av.error import FFmpegError
from PIL import Image, UnidentifiedImageError

from roadaware.errors import InputError, RoadawareError, raise_interrupt
from roadaware.io.sources import build_read_error, to_printable
from roadaware.io.storage import locate_content

# Image files by their parts: which way up they are, and the file without what its pixels do not need.

PNG_HEAD, JPEG_HEAD = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
_TIFF_HEADS = {b"II*\0": "<", b"MM\0*": ">"}
# Ends the walk through a file of nothing but tiny segments.
_MOST_PARTS = 100_000
# By default libjpeg writes 10 of a progressive image in colour.
_MOST_SCANS = 100
_UPRIGHT, _ORIENTATION = 1, 0x0112
_XMP = re.compile(rb"tiff:Orientation\s*(?:=\s*[\"']|>)\s*(\d{1,6})")
_EXIF, _XMP_APP1 = b"Exif\0\0", b"http://ns.adobe.com/xap/1.0/\0"
# Markers without a length: fill, start and end of the image, restarts.
_ALONE = {0x00, 0x01, 0xD8, *range(0xD0, 0xD8)}
_SCAN, _END = 0xDA, 0xD9
# Among pixels: what is neither a byte of theirs, nor a restart, nor fill.
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
# Of the segments of a JPEG for applications, JFIF and Adobe's say what its colours mean.
_LEFT_OUT = {*range(0xE1, 0xEE), 0xEF, 0xFE}
# Texts and colour profiles are compressed, and may unpack to a thousand times their size.
_PNG_KEPT = {b"IHDR", b"PLTE", b"IDAT", b"IEND"}
# Layout, compression and colours of the pixels of a TIFF.
_TIFF_KEPT = {
    *(254, 256, 257, 258, 259, 262, 266, 273, 277, 278, 279, 284, 292, 293, 317, 320, 322, 323, 324, 325),
    *(338, 339, 347, 512, 513, 514, 515, 517, 518, 519, 520, 521, 529, 530, 531, 532),
}
_TIFF_SIDES = (322, 323)
# Bytes of one value of each field type.
_TIFF_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}


class PictureParts(NamedTuple):
    """An image file as it is given to a decoder.

    Args:
        plain: the file without what its pixels do not need.
        orientation: how it is turned, 1 to 8 as EXIF counts; None where that is said and cannot be read.
    """

    plain: bytes
    orientation: int | None


def parse_image_parts(data: bytes, most_pixels: int) -> PictureParts:
    """The parts of a JPEG, PNG, WebP or TIFF file; any other is plain as it is.

    Raises:
        ValueError: if it promises more than it holds, or has more parts than any image needs.
    """
    if data.startswith(JPEG_HEAD):
        return _jpeg(data)
    if data.startswith(PNG_HEAD):
        return _png(data)
    if data[:4] in _TIFF_HEADS:
        return _tiff(data, most_pixels)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    return PictureParts(data, _UPRIGHT)


def iterate_jpeg_segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Marker of each segment of a JPEG before its pixels, where the segment begins, and where it ends.

    The last one is the first scan, or what ends too early. Junk between segments is passed over.

    Args:
        data: the file, or its first bytes.
    """
    place = 2
    for _ in range(_MOST_PARTS):
        place = data.find(b"\xff", place)
        if place < 0 or place + 4 > len(data):
            return
        marker = data[place + 1]
        if marker == 0xFF:
            place += 1
        elif marker in _ALONE:
            place += 2
        else:
            # A length counts itself: less than 2 would send the walk back.
            end = place + 2 + max(2, int.from_bytes(data[place + 2 : place + 4], "big"))
            yield marker, place, end
            if marker in (_SCAN, _END):
                return
            place = end
    raise ValueError(f"more than {_MOST_PARTS} segments")


def _jpeg(data: bytes) -> PictureParts:
    kept, exif, xmp = [JPEG_HEAD], b"", b""
    for marker, start, end in iterate_jpeg_segments(data):
        if marker == _SCAN:
            kept.append(data[start : _jpeg_end(data, start)])
        elif marker not in _LEFT_OUT:
            kept.append(data[start:end])
        elif marker == 0xE1 and data[start + 4 : start + 10] == _EXIF:
            exif += data[start + 10 : end]
        elif marker == 0xE1 and data[start + 4 :].startswith(_XMP_APP1):
            xmp = xmp or data[start + 4 + len(_XMP_APP1) : end]
    return PictureParts(b"".join(kept), _orientation(exif, xmp))


def _jpeg_end(data: bytes, place: int) -> int:
    """Where the scans of a JPEG end that begin at a place; a video or another image may follow.

    A progressive image of a few kilobytes could ask for thousands of passes over all of its pixels.
    """
    scans = 0
    for _ in range(_MOST_PARTS):
        found = _MARKER.search(data, place)
        if found is None:
            return len(data)
        marker = data[found.start() + 1]
        if marker == _END:
            return found.end()
        if marker == _SCAN:
            # Each scan is a pass over all pixels.
            scans += 1
        place = found.end() + max(2, int.from_bytes(data[found.end() : found.end() + 2], "big"))
        if scans > _MOST_SCANS:
            raise ValueError(f"more than {_MOST_SCANS} scans")
    raise ValueError(f"more than {_MOST_PARTS} segments")


def _png(data: bytes) -> PictureParts:
    kept, exif, xmp = [PNG_HEAD], b"", b""
    place = len(PNG_HEAD)
    for _ in range(_MOST_PARTS):
        length, kind = int.from_bytes(data[place : place + 4], "big"), data[place + 4 : place + 8]
        end = place + 12 + length
        if kind in _PNG_KEPT or len(kind) < 4:
            kept.append(data[place:end])
        elif kind == b"eXIf":
            exif = data[place + 8 : end - 4]
        elif kind == b"iTXt" and data[place + 8 :].startswith(b"XML:com.adobe.xmp\0"):
            xmp = data[place + 8 : end - 4]
        place = end
        if place >= len(data) or kind == b"IEND":
            return PictureParts(b"".join(kept), _orientation(exif, xmp))
    raise ValueError(f"more than {_MOST_PARTS} chunks")


def _webp(data: bytes) -> PictureParts:
    found, place = {b"EXIF": b"", b"XMP ": b""}, 12
    for _ in range(_MOST_PARTS):
        kind, length = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "little")
        if kind in found:
            found[kind] = data[place + 8 : place + 8 + length]
        place += 8 + length + length % 2
        if place + 8 > len(data):
            return PictureParts(data, _orientation(found[b"EXIF"], found[b"XMP "]))
    raise ValueError(f"more than {_MOST_PARTS} chunks")


def _tiff(data: bytes, most_pixels: int) -> PictureParts:
    """A TIFF with its first image alone, described by no more than its pixels need."""
    order = _TIFF_HEADS[data[:4]]
    start, entries = _directory(data, order)
    kept = [entry for entry in entries if entry[0] in _TIFF_KEPT]
    promised = sum(_TIFF_BYTES.get(kind, 0) * count for _, kind, count, _ in kept)
    if promised > len(data):
        raise ValueError(f"its directory promises {promised} bytes, {len(data)} are there")
    sides = [_number(order, entry) or 0 for entry in kept if entry[0] in _TIFF_SIDES]
    if len(sides) > 2 or (len(sides) == 2 and sides[0] * sides[1] > most_pixels):
        raise ValueError(f"tiles of {'x'.join(map(str, sides))}; up to {most_pixels} pixels are read")
    packed = [struct.pack(f"{order}HHI4s", *entry) for entry in kept]
    made = struct.pack(f"{order}H", len(kept)) + b"".join(packed)
    # As long as the old directory, so that no offset in the file changes.
    made = made.ljust(2 + 12 * len(entries) + 4, b"\0")
    return PictureParts(data[:start] + made + data[start + len(made) :], _orientation(data, b""))


_Entry = tuple[int, int, int, bytes]


def _directory(data: bytes, order: str) -> tuple[int, list[_Entry]]:
    """Where the first directory of a TIFF begins; tag, type, count and value of its entries.

    Raises:
        ValueError: if it is not all there.
    """
    start = int(struct.unpack_from(f"{order}I", data, 4)[0]) if len(data) >= 8 else 0
    if not 8 <= start <= len(data) - 2:
        raise ValueError("its directory is not there")
    count = int(struct.unpack_from(f"{order}H", data, start)[0])
    if start + 2 + 12 * count > len(data):
        raise ValueError("its directory is cut off")
    return start, list(struct.iter_unpack(f"{order}HHI4s", data[start + 2 : start + 2 + 12 * count]))


def _number(order: str, entry: _Entry) -> int | None:
    """The value of an entry that holds one whole number of two or four bytes."""
    form = {3: "H", 4: "I"}.get(entry[1])
    if form is None or entry[2] != 1:
        return None
    return int(struct.unpack_from(order + form, entry[3])[0])


def _orientation(exif: bytes, xmp: bytes) -> int | None:
    """What EXIF says, or else XMP; upright where neither says anything."""
    said: int | None = _UPRIGHT
    found = _XMP.search(xmp)
    if found:
        said = int(found[1])
    if exif := exif.removeprefix(_EXIF):
        order = _TIFF_HEADS.get(exif[:4])
        if order is None:
            return None
        try:
            _, entries = _directory(exif, order)
        except ValueError:
            return None
        for entry in entries:
            if entry[0] == _ORIENTATION:
                said = _number(order, entry)
    return said if said is not None and 1 <= said <= 8 else None


MAX_PIXELS = 1 << 26
"""The largest image that is decoded, of a file or of a video."""
MAX_DECODED_BYTES = 10 * MAX_PIXELS
"""The most memory that decoding one image may take beside its file, the finished image included."""
STILLS = ("PNG", "JPEG")
"""Formats of Pillow of images in datasets."""
PICTURES = (*STILLS, "BMP", "WEBP", "PPM", "TIFF")
"""Formats of Pillow of images that are watched."""
FILMS = "mov,matroska,webm"
"""Formats of FFmpeg of videos in datasets; each holds its images itself."""
WATCHED_FILMS = f"{FILMS},gif,avi,mpegts,mpeg,ogg,flv,asf"
"""Formats of FFmpeg of videos that are watched; each holds its images itself."""
STREAMS = f"{WATCHED_FILMS},h264,hevc,mjpeg,mpjpeg,jpeg_pipe,m4v,mpegvideo"
"""Formats of FFmpeg that a server may send; none of them names another address."""
BROKEN = (
    *(FFmpegError, OSError, ValueError, EOFError),
    *(LookupError, OverflowError, MemoryError, NotImplementedError),
)
"""What PyAV raises about content: FFmpeg's errors by their base, and what its own code stumbles over."""
_WAIT_S = 30.0
# A sparse file of terabytes costs nothing on a disk, and hours to a decoder that looks for a frame.
_HOLES_BYTES = 1 << 28
_HEAD_BYTES = 4096
_BLOCK_BYTES = 5 << 26
_LIMITS = {"max_pixels": str(MAX_PIXELS)}
# PyAV has a byte for each stream that was there at first, and looks for those of later ones behind them: as
# many lie within the least that is allocated.
_MOST_STREAMS = "24"
# Bytes that Pillow holds for a pixel of a mode; four of any other.
_MODE_BYTES = {"1": 1, "L": 1, "P": 1, "I;16": 2, "I;16B": 2, "I;16L": 2}

# The largest single block that FFmpeg may take (2 GB by default): it ends tables of frames that a file only
# promises, and is more than an image of MAX_PIXELS takes. An option of FFmpeg's own program, not of PyAV.
with suppress(AttributeError, OSError):
    ctypes.CDLL(av._core.__file__).av_max_alloc(ctypes.c_size_t(_BLOCK_BYTES))


def read_media_head(path: Path) -> bytes:
    """The first bytes of a video or sound file, none of an empty one; never waits on a pipe or device.

    Raises:
        InputError: if it cannot be read, is no regular file, or is mostly holes that nobody wrote.
    """
    where = to_printable(str(path))
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("expected a file, found a folder, pipe or device", where=where)
        handle = os.open(locate_content(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb", buffering=0) as stream:
            if (holes := _bytes_in_holes(handle)) > _HOLES_BYTES:
                message = f"at least {holes:,} of its bytes were never written"
                hint = "it is still being written, or is no video: wait for it, or copy it again"
                raise InputError(message, where=where, hint=hint)
            os.lseek(handle, 0, os.SEEK_SET)
            return stream.read(_HEAD_BYTES) or b""
    except (OSError, ValueError) as error:
        raise build_read_error(error, where) from error


def _bytes_in_holes(handle: int) -> int:
    """Bytes of a sparse file that lie on no disk; of thousands of holes those of the first."""
    size, place, holes = os.fstat(handle).st_size, 0, 0
    # Bounded, since each hole takes two calls of the system.
    for _ in range(4096):
        try:
            hole = os.lseek(handle, place, os.SEEK_HOLE)
        except OSError:  # the end, or a system that knows no holes
            return holes
        try:
            place = os.lseek(handle, hole, os.SEEK_DATA) if hole < size else size
        except OSError:  # nothing but a hole up to the end
            place = size
        holes += place - hole
        if place >= size or holes > _HOLES_BYTES:
            return holes
    return holes


def open_film(path: Path, formats: str) -> Any:
    """A container of PyAV; nothing but this file is read, and no read takes longer than half a minute.

    Args:
        path: a regular file, as `read_media_head` says.
        formats: `FILMS` or `WATCHED_FILMS`.

    Raises:
        BROKEN: what PyAV raises about its content.
    """
    # enable_drefs: a mov may name other files as the place of its content.
    rule = {"protocol_whitelist": "file", "format_whitelist": formats, "enable_drefs": "0", **_LIMITS}
    return av.open(f"file:{locate_content(path)}", options=rule, timeout=_WAIT_S, metadata_errors="replace")


def open_stream(
    source: Any,
    *,
    protocols: str,
    formats: str = STREAMS,
    form: str | None = None,
    options: dict[str, str] | None = None,
    wait_s: float,
    ask: Callable[[str, int, dict[str, str]], Any] | None = None,
) -> Any:
    """A container of PyAV on an address, a device, or a file of Python's.

    Args:
        source: the address, the device, or what has `read`.
        protocols: of FFmpeg, with commas between them, that may be used on the way.
        formats: of FFmpeg that the server may send.
        form: the one that it does send; None where that is to be found out.
        options: more of FFmpeg's.
        wait_s: a connection or a read that takes longer has failed.
        ask: opens every other address that the source names; FFmpeg does where None, by these protocols.

    Raises:
        BROKEN: what PyAV raises.
    """
    rule = {**(options or {}), "protocol_whitelist": protocols, "format_whitelist": formats, **_LIMITS}
    rule["max_streams"] = _MOST_STREAMS
    return av.open(source, format=form, options=rule, timeout=wait_s, metadata_errors="replace", io_open=ask)


def open_mp4_writer(sink: Any) -> Any:
    """A container of PyAV that writes an mp4."""
    return av.open(sink, "w", format="mp4")


def prepare_decoder(stream: Any) -> str:
    """Make a stream of PyAV ready to be decoded by one thread; why it cannot be, or nothing."""
    context = stream.codec_context
    if context is None:
        return "no decoder knows its codec; it is encrypted, or of a kind that this build of FFmpeg lacks"
    try:
        context.thread_type = "NONE"
        context.options = {**context.options, **_LIMITS}
        context.open(strict=False)
    except BROKEN as error:
        return (
            f"its codec {to_printable(str(context.name), 40)} cannot be opened: {format_decoder_error(error)}"
        )
    return ""


def format_decoder_error(error: BaseException) -> str:
    """Why a decoder failed, in words fit for a message."""
    return to_printable(str(getattr(error, "strerror", None) or error)) or type(error).__name__


@contextmanager
def open_picture(data: bytes, formats: Sequence[str]) -> Iterator[tuple[Any, PictureParts]]:
    """An image of Pillow that has not been decoded yet, and the parts of its file.

    Whatever Pillow raises on the bytes of others, inside the block too, is an `InputError` without a place.

    Args:
        data: the file.
        formats: of Pillow that it may have.

    Raises:
        InputError: if it is no such image, has too many pixels, or takes too much memory.
    """
    try:
        parts = parse_image_parts(data, MAX_PIXELS)
        # The plain copy is decoded; the original need not stay in memory beside it.
        del data
        with Image.open(io.BytesIO(parts.plain), formats=list(formats)) as image:
            _require_room(image)
            yield image, parts
    except RoadawareError:
        raise
    except Image.DecompressionBombError as error:
        raise InputError(f"too large; up to {MAX_PIXELS} pixels are read") from error
    except UnidentifiedImageError as error:
        raise InputError("it is neither" if len(formats) == 2 else "it is none of these") from error
    except Exception as error:  # the bytes are foreign and so is the decoder: it may stumble over anything
        raise_interrupt(error)
        raise InputError(to_printable(str(error)) or type(error).__name__) from error


def _require_room(image: Any) -> None:
    pixels = image.width * image.height
    if not 0 < pixels <= MAX_PIXELS:
        raise InputError(f"{image.width}x{image.height}; up to {MAX_PIXELS} pixels are read")
    # Bytes a pixel: our own array of three beside Pillow's image.
    held = 3.0 + _MODE_BYTES.get(image.mode, 4)
    if image.format == "WEBP":
        held += 12  # it is decoded on canvases of its own
    elif image.format == "JPEG" and image.info.get("progressive"):
        shares = [across * down for _, across, down, _ in image.layer]
        held += 2 * sum(shares) / max(shares)  # the coefficients of all scans
    if pixels * held > MAX_DECODED_BYTES:
        needed = int(pixels * held) >> 20
        message = f"{image.width}x{image.height} {image.format} takes {needed} MiB to decode"
        raise InputError(f"{message}; up to {MAX_DECODED_BYTES >> 20} MiB are given")
