"""open_source: a video file, a folder of pictures, a glob, a camera or an address as a source of frames."""

from __future__ import annotations

from pathlib import Path

from roadaware.addresses import looks_like_address, read_address
from roadaware.errors import InputError, UsageError
from roadaware.online.cameras import Camera, camera_device
from roadaware.online.clock import Clock, SystemClock
from roadaware.online.frames import Source
from roadaware.online.network import NetworkStream
from roadaware.online.picture_files import PictureFiles
from roadaware.online.video_files import VideoFile
from roadaware.scenes.readers.source import shown


def open_source(
    name: str | Path, fps: float | None = None, *, clock: Clock | None = None, follow: bool = False
) -> Source:
    """The frames of whatever a name stands for.

    Args:
        name: a video file or GIF; a folder of pictures; a glob such as "run/*.jpg"; the number of a camera
            of this machine, such as "0"; an address (rtsp, http, ...).
        fps: of a folder or glob, how many pictures make a second (12 unless told); of all others, take at
            most so many frames a second, evenly by their times.
        clock: says when frames come; that of the machine unless told.
        follow: of an http address, go where redirects and HLS playlists point, see `NetworkStream`.

    Raises:
        UsageError: if `fps` is not positive, or an address cannot be read.
        InputError: if there is nothing of this name, or it shows no video.
    """
    clock, text = clock or SystemClock(), str(name)
    if fps is not None and not 0 < fps <= 1000:
        raise UsageError(f"fps should be more than 0 and at most 1000, not {fps!r}")
    if text.isdecimal() and not _exists(text):
        device, form = camera_device(int(text))
        return Camera(f"camera {text}", lambda: NetworkStream(device, form, fps), clock, fps=fps)
    if looks_like_address(text) and not _exists(text):
        address = read_address(text)
        return Camera(address.shown, lambda: NetworkStream(address, follow=follow), clock, fps=fps)
    path = Path(text)
    if path.is_dir() or (any(mark in text for mark in "*?[") and not path.exists()):
        return PictureFiles(text, clock, fps)
    if not path.exists():
        hint = "name a video, a folder of pictures, a glob in quotes, a camera's number or an address"
        raise InputError("expected a source of frames, found nothing", where=shown(text), hint=hint)
    return VideoFile(path, clock, fps)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False
