"""Containers of video and sound, opened so that nothing outside the file is read, and their faults."""

from __future__ import annotations

from array import array
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Ints
from roadaware.errors import InputError
from roadaware.scenes.decoders import BROKEN as BROKEN
from roadaware.scenes.decoders import FILMS, MAX_PIXELS, decoder_fault, media_head, open_film, reason
from roadaware.scenes.readers.source import shown

CUT = "the file was cut off or is still being written: write or copy it again"
"""What to do about a file that ends too early."""
_KINDS = {
    "mov": "mp4, mov",
    "matroska": "mkv",
    "mpegts": "ts",
    "mpeg": "mpg",
    "ogg": "ogv",
    "asf": "wmv",
}
_BOXES = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp", b"moof", b"sidx")
_HEADS = {
    "matroska": (b"\x1a\x45\xdf\xa3",),
    "gif": (b"GIF87a", b"GIF89a"),
    "mpeg": (b"\0\0\1\xba", b"\0\0\1\xb3"),
    "ogg": (b"OggS",),
    "flv": (b"FLV\1",),
    "asf": (b"\x30\x26\xb2\x75",),
}
_TS_PACKET = 188
_MOST_FRAMES = 10_000_000


class MediaError(InputError):
    """A video or sound file that cannot be used."""


class EmptyMediaError(MediaError):
    """A file without a byte or without a frame."""


class CutOffError(MediaError):
    """A file that ends before its content does, or whose content is broken."""


class NoVideoError(MediaError):
    """A file without a video stream."""


class OnlySoundError(NoVideoError):
    """A file with sound and without a video stream."""


class NoSoundError(MediaError):
    """A file without a sound track."""


class CodecError(MediaError):
    """A stream that no decoder can read: encrypted, or of a codec that is not there."""


def opened(path: Path, formats: str = FILMS) -> Any:
    """A container of PyAV; nothing outside the file is ever read.

    Args:
        path: a regular file.
        formats: of FFmpeg that it may have, see `decoders`.

    Raises:
        EmptyMediaError: if the file is empty.
        CutOffError: if it begins like a film and is damaged.
        MediaError: if it is something else.
        InputError: if it cannot be read or is no regular file.
    """
    where = shown(str(path))
    head = media_head(path)
    if not head:
        raise EmptyMediaError("the file is empty", where=where, hint=CUT)
    try:
        return open_film(path, formats)
    except BROKEN as error:
        if _like_film(head, formats):
            raise CutOffError(f"no whole film: {reason(error)}", where=where, hint=CUT) from error
        kinds = ", ".join(_KINDS.get(each, each) for each in formats.split(","))
        raise MediaError(f"not a film; {kinds} are read", where=where) from error


def video_stream(file: Any, where: str) -> Any:
    """The first stream of pictures of a container, ready to be decoded by one thread.

    Args:
        file: a container of PyAV.
        where: names it in errors.

    Raises:
        NoVideoError: if there is none (`OnlySoundError` if there is sound).
        CodecError: if its codec is not known, or what it needs is damaged.
        MediaError: if its pictures are too large.
    """
    if not file.streams.video:
        kind, what = (OnlySoundError, "sound only") if file.streams.audio else (NoVideoError, "none")
        raise kind(f"expected a video stream, found {what}", where=where)
    stream = file.streams.video[0]
    if stream.codec_context is not None:
        width, height = int(stream.width or 0), int(stream.height or 0)
        if not 0 < width * height <= MAX_PIXELS:
            raise MediaError(f"pictures of {width}x{height}; up to {MAX_PIXELS} pixels are read", where=where)
    _require_decoder(stream, where, "pictures")
    return stream


def sound_stream(file: Any, where: str) -> Any:
    """The first stream of sound of a container, ready to be decoded.

    Args:
        file: a container of PyAV.
        where: names it in errors.

    Raises:
        NoSoundError: if there is none.
        CodecError: if its codec is not known, or what it needs is damaged.
    """
    if not file.streams.audio:
        raise NoSoundError("expected a sound track, found none", where=where)
    _require_decoder(file.streams.audio[0], where, "sound")
    return file.streams.audio[0]


def frame_times(file: Any, stream: Any, where: str) -> tuple[Ints, int, str]:
    """Times of all frames in order, how many have one, and what broke the file before its end, if anything.

    They are those of the packets; nothing is decoded.

    Args:
        file: a container of PyAV.
        stream: of its pictures.
        where: names it in errors.

    Raises:
        MediaError: if there are more than ten million.
    """
    times, broken = array("q"), ""
    try:
        # `extend` keeps what it was given until the file breaks.
        times.extend(
            packet.pts
            for packet in islice(file.demux(stream), 2 * _MOST_FRAMES)
            if packet.size and packet.pts is not None and not packet.is_discard
        )
    except BROKEN as error:
        broken = reason(error)
    if len(times) > _MOST_FRAMES:
        raise MediaError(f"more than {_MOST_FRAMES:,} frames; cut the film into several", where=where)
    found = np.frombuffer(times, dtype=np.int64) if times else np.zeros(0, dtype=np.int64)
    return np.unique(found), len(times), broken


def seconds_per_tick(stream: Any, where: str) -> float:
    """What a stream's times are counted in, in seconds.

    Args:
        stream: of PyAV.
        where: names it in errors.

    Raises:
        MediaError: if it does not say.
    """
    found = float(stream.time_base or 0)
    if not found > 0:
        raise MediaError("it does not say what its times are counted in", where=where, hint=CUT)
    return found


def _require_decoder(stream: Any, where: str, what: str) -> None:
    if fault := decoder_fault(stream):
        hint = "write it again in a usual codec, such as H.264 with AAC, and without encryption"
        raise CodecError(f"its {what} cannot be decoded: {fault}", where=where, hint=hint)


def _like_film(head: bytes, formats: str) -> bool:
    """Whether a file begins like one of those that are read."""
    kinds = formats.split(",")
    if head[4:8] in _BOXES or any(head.startswith(_HEADS.get(kind, ())) for kind in kinds):
        return True
    if "avi" in kinds and head[:4] == b"RIFF" and head[8:11] == b"AVI":
        return True
    return "mpegts" in kinds and head[:1] == head[_TS_PACKET : _TS_PACKET + 1] == b"G"
