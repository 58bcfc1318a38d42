"""The one place where decoders of pictures, films and sound are opened, each told what it may read.

A decoder that guesses reads far more than it is asked for: Pillow runs Ghostscript on a PostScript file
whatever its name, FFmpeg follows a playlist to other files and machines. So each is told its formats, and
FFmpeg its protocols as well. Everything else calls this module; a lint rule keeps that so.
"""

from __future__ import annotations

import ctypes
import io
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import av
from av.error import FFmpegError

from roadaware.errors import InputError, RoadawareError
from roadaware.scenes.picture_parts import PictureParts, picture_parts
from roadaware.scenes.readers.source import shown, unreadable

MAX_PIXELS = 1 << 26
"""The largest picture that is decoded, of a file or of a film."""
MAX_DECODED_BYTES = 10 * MAX_PIXELS
"""The most memory that decoding one picture may take beside its file, the finished picture included."""
STILLS = ("PNG", "JPEG")
"""Formats of Pillow of pictures in data sets."""
PICTURES = (*STILLS, "BMP", "WEBP", "PPM", "TIFF")
"""Formats of Pillow of pictures that are watched."""
FILMS = "mov,matroska,webm"
"""Formats of FFmpeg of films in data sets; each holds its pictures itself."""
WATCHED_FILMS = f"{FILMS},gif,avi,mpegts,mpeg,ogg,flv,asf"
"""Formats of FFmpeg of films that are watched; each holds its pictures itself."""
STREAMS = f"{WATCHED_FILMS},h264,hevc,mjpeg,mpjpeg,jpeg_pipe,m4v,mpegvideo"
"""Formats of FFmpeg that a server may send; none of them names another address."""
BROKEN = (
    *(FFmpegError, OSError, ValueError, EOFError),
    *(LookupError, OverflowError, MemoryError, NotImplementedError),
)
"""What PyAV raises about content: FFmpeg's errors by their base, and what its own code stumbles over."""
_WAIT_S = 30.0
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
# promises, and is more than a picture of MAX_PIXELS takes. An option of FFmpeg's own program, not of PyAV.
with suppress(AttributeError, OSError):
    ctypes.CDLL(av._core.__file__).av_max_alloc(ctypes.c_size_t(_BLOCK_BYTES))


def media_head(path: Path) -> bytes:
    """The first bytes of a film or sound file, none of an empty one; never waits on a pipe or device.

    Args:
        path: the file.

    Raises:
        InputError: if it cannot be read, is no regular file, or is mostly holes that nobody wrote.
    """
    where = shown(str(path))
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("expected a file, found a folder, pipe or device", where=where)
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb", buffering=0) as stream:
            if (holes := _bytes_in_holes(handle)) > _HOLES_BYTES:
                message = f"at least {holes:,} of its bytes were never written"
                hint = "it is still being written, or is no film: wait for it, or copy it again"
                raise InputError(message, where=where, hint=hint)
            os.lseek(handle, 0, os.SEEK_SET)
            return stream.read(_HEAD_BYTES) or b""
    except (OSError, ValueError) as error:
        raise unreadable(error, where) from error


def _bytes_in_holes(handle: int) -> int:
    """Bytes of a sparse file that lie on no disk; of thousands of holes those of the first."""
    size, place, holes = os.fstat(handle).st_size, 0, 0
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
        path: a regular file, as `media_head` says.
        formats: `FILMS` or `WATCHED_FILMS`.

    Raises:
        BROKEN: what PyAV raises about its content.
    """
    rule = {"protocol_whitelist": "file", "format_whitelist": formats, "enable_drefs": "0", **_LIMITS}
    return av.open(f"file:{path}", options=rule, timeout=_WAIT_S, metadata_errors="replace")


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


def new_film(sink: Any) -> Any:
    """A container of PyAV that writes an mp4.

    Args:
        sink: what takes its bytes.
    """
    return av.open(sink, "w", format="mp4")


def decoder_fault(stream: Any) -> str:
    """Make a stream of PyAV ready to be decoded by one thread; why it cannot be, or nothing.

    Args:
        stream: of pictures or sound.
    """
    context = stream.codec_context
    if context is None:
        return "no decoder knows its codec; it is encrypted, or of a kind that this build of FFmpeg lacks"
    try:
        context.thread_type = "NONE"
        context.options = {**context.options, **_LIMITS}
        context.open(strict=False)
    except BROKEN as error:
        return f"its codec {shown(str(context.name), 40)} cannot be opened: {reason(error)}"
    return ""


def reason(error: BaseException) -> str:
    """Why a decoder failed, in words fit for a message."""
    return shown(str(getattr(error, "strerror", None) or error)) or type(error).__name__


@contextmanager
def open_picture(data: bytes, formats: Sequence[str]) -> Iterator[tuple[Any, PictureParts]]:
    """A picture of Pillow that has not been decoded yet, and the parts of its file.

    Whatever Pillow raises on the bytes of others, inside the block too, is an `InputError` without a place.

    Args:
        data: the file.
        formats: of Pillow that it may have.

    Raises:
        InputError: if it is no such picture, has too many pixels, or takes too much memory.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        parts = picture_parts(data, MAX_PIXELS)
        del data
        with Image.open(io.BytesIO(parts.plain), formats=list(formats)) as picture:
            _require_room(picture)
            yield picture, parts
    except RoadawareError:
        raise
    except Image.DecompressionBombError as error:
        raise InputError(f"too large; up to {MAX_PIXELS} pixels are read") from error
    except UnidentifiedImageError as error:
        raise InputError("it is neither" if len(formats) == 2 else "it is none of these") from error
    except Exception as error:  # the bytes are foreign and so is the decoder: it may stumble over anything
        raise InputError(shown(str(error)) or type(error).__name__) from error


def _require_room(picture: Any) -> None:
    pixels = picture.width * picture.height
    if not 0 < pixels <= MAX_PIXELS:
        raise InputError(f"{picture.width}x{picture.height}; up to {MAX_PIXELS} pixels are read")
    held = 3.0 + _MODE_BYTES.get(picture.mode, 4)
    if picture.format == "WEBP":
        held += 12  # it is decoded on canvases of its own
    elif picture.format == "JPEG" and picture.info.get("progressive"):
        shares = [across * down for _, across, down, _ in picture.layer]
        held += 2 * sum(shares) / max(shares)  # the coefficients of all scans
    if pixels * held > MAX_DECODED_BYTES:
        needed = int(pixels * held) >> 20
        message = f"{picture.width}x{picture.height} {picture.format} takes {needed} MiB to decode"
        raise InputError(f"{message}; up to {MAX_DECODED_BYTES >> 20} MiB are given")
