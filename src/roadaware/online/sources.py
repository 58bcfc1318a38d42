"""open_source: a video file, a folder of images, a glob, a camera or an address as a source of frames."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from roadaware.addresses import is_address_like, read_address
from roadaware.errors import InputError, UsageError
from roadaware.io.decoders import PICTURES
from roadaware.io.images import read_upright
from roadaware.io.sources import build_read_error, to_printable
from roadaware.online.cameras import Camera, NetworkStream, get_camera_device
from roadaware.online.frames import Clock, Ending, Outcomes, Source, SourceFrame, SystemClock, Waiting
from roadaware.online.video_files import VideoFile

# Images of a folder or a glob as a source, in the natural order of their names.

USUAL_FPS = 12.0
"""Images per second where nobody says: as many as ROAD has."""
_ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff"}
_DIGITS = re.compile(r"(\d+)")


def list_image_paths(name: str) -> list[Path]:
    """The images that a folder or a glob names, in natural order.

    Args:
        name: of a folder, or with *, ? or [ in it.

    Raises:
        InputError: if there are none.
    """
    try:
        # Hidden files are those of systems, such as the "._1.jpg" that macOS puts beside an image.
        found = [
            path
            for path in _list_pattern(Path(name))
            if path.suffix.lower() in _ENDINGS and not path.name.startswith(".")
        ]
    except (OSError, ValueError, NotImplementedError) as error:
        raise build_read_error(error, to_printable(name)) from error
    if not found:
        hint = f"images end in {', '.join(sorted(_ENDINGS))}; for a video name its file"
        raise InputError("expected images, found none", where=to_printable(name), hint=hint)
    return sorted(found, key=lambda path: build_natural_key(path.name))


def _list_pattern(pattern: Path) -> Iterator[Path]:
    """What lies in a folder, or what a glob finds; a folder is meant wherever there is one of that very name."""
    if pattern.is_dir():
        return pattern.iterdir()
    folder = pattern.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder.glob(str(pattern.relative_to(folder)))


def build_natural_key(name: str) -> list[tuple[int, int | str]]:
    """A key that sorts numbers by their value.

    >>> sorted(["10.png", "9.png", "a2.png"], key=build_natural_key)
    ['9.png', '10.png', 'a2.png']
    """
    parts = _DIGITS.split(name)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts if part]


class PictureFiles:
    """The images of a folder or a glob; one that cannot be read leaves its number out.

    Args:
        name: of the folder or glob.
        clock: says when a frame came.
        fps: images per second (default: 12).

    Raises:
        InputError: if there are no images.
    """

    live = False
    path = None
    start_s = 0.0

    def __init__(self, name: str, clock: Clock, fps: float | None = None) -> None:
        self._paths = list_image_paths(name)
        self.name = Path(name).name or "pictures"
        self.fps, self.n_frames = fps or USUAL_FPS, len(self._paths)
        self.outcomes = Outcomes()
        self._clock, self._at, self._taken = clock, 0, 0
        self._ending: Ending | None = None

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        """The next frame; None if none is left."""
        while self._at < len(self._paths):
            number, self._at = self._at, self._at + 1
            path = self._paths[number]
            try:
                image, oriented = read_upright(path, PICTURES)
            except InputError as error:
                self.outcomes.tell("undecodable", 1, f"left out: {str(error).splitlines()[0]}")
                continue
            if not oriented:
                self.outcomes.count("orientation")
            self._taken += 1
            return SourceFrame(number, number / self.fps, image, self._clock.now_s())
        if self._ending is None:
            said = f"none of {len(self._paths):,} images could be read"
            self._ending = Ending("end") if self._taken else Ending("empty", said)
        return None

    @property
    def ending(self) -> Ending | None:
        """Why the source ended; None while it is open."""
        return self._ending

    def close(self) -> None:
        """Does nothing: no resource is open."""


def open_source(
    name: str | Path,
    fps: float | None = None,
    *,
    clock: Clock | None = None,
    follow: bool = False,
    recorded_fps: float | None = None,
) -> Source:
    """Open the frame source that a name stands for: a file, folder, glob, camera or address.

    Args:
        name: a video file or GIF; a folder of images; a glob such as "run/*.jpg"; the number of a camera
            of this machine, such as "0"; an address (rtsp, http, ...).
        fps: of a folder or glob, how many images make a second (default: 12); of all others, take at
            most so many frames a second, evenly by their times.
        clock: says when frames come (default: that of the machine).
        follow: of an http address, go where redirects and HLS playlists point, see `NetworkStream`.
        recorded_fps: frames a second at which a video was recorded, where it plays at another rate, see
            `VideoFile`.

    Raises:
        UsageError: if a rate is not positive, `recorded_fps` is given for what is no video, or an address
            cannot be read.
        InputError: if there is nothing of this name, or it shows no video.
    """
    clock, text = clock or SystemClock(), str(name)
    for what, rate in (("fps", fps), ("recorded_fps", recorded_fps)):
        if rate is not None and not 0 < rate <= 1000:
            raise UsageError(f"{what} should be more than 0 and at most 1000, not {rate!r}")
    if recorded_fps is not None and not Path(text).is_file():
        raise UsageError(
            "recorded_fps is for a video; of a folder of images, fps says how many make a second"
        )
    if text.isdecimal() and not _exists(text):
        device, form = get_camera_device(int(text))
        return Camera(f"camera {text}", lambda: NetworkStream(device, form, fps), clock, fps=fps)
    if is_address_like(text) and not _exists(text):
        address = read_address(text)
        return Camera(address.shown, lambda: NetworkStream(address, follow=follow), clock, fps=fps)
    path = Path(text)
    if path.is_dir() or (any(mark in text for mark in "*?[") and not path.exists()):
        return PictureFiles(text, clock, fps)
    if not path.exists():
        hint = "name a video, a folder of images, a glob in quotes, a camera's number or an address"
        raise InputError("expected a source of frames, found nothing", where=to_printable(text), hint=hint)
    return VideoFile(path, clock, fps, recorded_fps)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


# A recording as if a camera recorded it now: frames come when their time has come, and wait for nobody.


class Realtime:
    """A live source out of one that is not.

    Args:
        source: a file or folder.
        clock: goes on while frames are considered.
    """

    live = True

    def __init__(self, source: Source, clock: Clock) -> None:
        self.name, self.fps, self.n_frames = source.name, source.fps, source.n_frames
        self.path, self.start_s, self.outcomes = source.path, source.start_s, source.outcomes
        self._source, self._clock = source, clock
        self._waiting = Waiting(clock, source.outcomes)
        self._ahead: SourceFrame | None = None
        self._begin_s: float | None = None

    def next(self, patience_s: float, wait_s: float) -> SourceFrame | None:
        """The next frame to process; None if none came in time, or the source has ended."""
        self._arrive()
        found = self._waiting.take(patience_s, 0.0)
        if found is not None or self._ahead is None:
            return found
        due_s = self._due_s(self._ahead) - self._clock.now_s()
        self._clock.sleep(min(due_s, wait_s))
        self._arrive()
        return self._waiting.take(patience_s, 0.0)

    @property
    def ending(self) -> Ending | None:
        """Why the source ended; None while it is open."""
        return self._waiting.ending

    def close(self) -> None:
        """Let go of the source."""
        self._source.close()

    def _arrive(self) -> None:
        """Let all frames come in whose time has come."""
        while (frame := self._ahead or self._more()) is not None:
            due_s = self._due_s(frame)
            self._ahead = frame
            if due_s > self._clock.now_s():
                return
            self._waiting.put(replace(frame, arrived_s=due_s))
            self._ahead = None

    def _more(self) -> SourceFrame | None:
        frame = self._source.next(0.0, 0.0)
        if frame is None:
            self._waiting.end(self._source.ending or Ending("end"))
        elif self._begin_s is None:
            self._begin_s = self._clock.now_s() - frame.t_s
        return frame

    def _due_s(self, frame: SourceFrame) -> float:
        return (self._begin_s or 0.0) + frame.t_s
