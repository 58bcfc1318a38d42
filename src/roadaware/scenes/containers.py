"""Containers of video and sound, opened so that nothing outside the file is read, and their faults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roadaware.errors import InputError
from roadaware.scenes.readers.source import shown, unreadable

# Only containers that hold the pictures themselves: a playlist would name other files, or other machines.
_SAFE = {"protocol_whitelist": "file", "format_whitelist": "mov,matroska,webm"}
CUT = "the file was cut off or is still being written: write or copy it again"
"""What to do about a file that ends too early."""
BROKEN = (OSError, ValueError, EOFError)
"""What PyAV raises about content."""


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


def opened(path: Path) -> Any:
    """A container of PyAV; nothing outside the file is ever read.

    Raises:
        EmptyMediaError: if the file is empty.
        CutOffError: if it begins like a video and is damaged.
        MediaError: if it is something else.
        InputError: if it cannot be read or is no regular file.
    """
    import av

    where = shown(str(path))
    try:
        if not path.is_file():
            path.stat()
            raise InputError("expected a file, found a folder, pipe or device", where=where)
        with path.open("rb") as stream:
            head = stream.read(64)
    except (OSError, ValueError) as error:
        raise unreadable(error, where) from error
    if not head:
        raise EmptyMediaError("the file is empty", where=where, hint=CUT)
    try:
        return av.open(f"file:{path}", options=_SAFE, metadata_errors="replace")
    except BROKEN as error:
        if _like_video(head):
            message = f"no whole video: {shown(str(error))}"
            raise CutOffError(message, where=where, hint=CUT) from error
        raise MediaError("not a video; mp4, mov, mkv and webm are read", where=where) from error


def _like_video(head: bytes) -> bool:
    """Whether a file begins like one of those that are read."""
    return head[4:8] in (b"ftyp", b"moov", b"mdat", b"free") or head[:4] == b"\x1a\x45\xdf\xa3"
