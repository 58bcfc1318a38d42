"""Pictures of a folder or a glob as a source, in the natural order of their names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from roadaware.errors import InputError
from roadaware.online.clock import Clock
from roadaware.online.frames import SourceFrame
from roadaware.online.outcomes import Ending, Outcomes
from roadaware.scenes.decoders import PICTURES
from roadaware.scenes.readers.source import shown, unreadable
from roadaware.scenes.still_files import read_upright

USUAL_FPS = 12.0
"""Pictures per second where nobody says: as many as ROAD has."""
_ENDINGS = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff"}
_DIGITS = re.compile(r"(\d+)")


def picture_paths(name: str) -> list[Path]:
    """The pictures that a folder or a glob names, in natural order.

    Args:
        name: of a folder, or with *, ? or [ in it.

    Raises:
        InputError: if there are none.
    """
    try:
        found = [path for path in _named(Path(name)) if path.suffix.lower() in _ENDINGS]
    except (OSError, ValueError, NotImplementedError) as error:
        raise unreadable(error, shown(name)) from error
    if not found:
        hint = f"pictures end in {', '.join(sorted(_ENDINGS))}; for a video name its file"
        raise InputError("expected pictures, found none", where=shown(name), hint=hint)
    return sorted(found, key=lambda path: natural(path.name))


def _named(pattern: Path) -> Iterator[Path]:
    """What lies in a folder, or what a glob finds from its first part with a mark on."""
    if pattern.is_dir():
        return pattern.iterdir()
    parts = pattern.parts
    plain = next((n for n, part in enumerate(parts) if any(mark in part for mark in "*?[")), len(parts) - 1)
    return Path(*parts[:plain]).glob(str(Path(*parts[plain:])))


def natural(name: str) -> list[tuple[int, int | str]]:
    """A key that sorts numbers by their value.

    >>> sorted(["10.png", "9.png", "a2.png"], key=natural)
    ['9.png', '10.png', 'a2.png']
    """
    parts = _DIGITS.split(name)
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in parts if part]


class PictureFiles:
    """The pictures of a folder or a glob; one that cannot be read leaves its number out.

    Args:
        name: of the folder or glob.
        clock: says when a frame came.
        fps: pictures per second; 12 unless told.

    Raises:
        InputError: if there are no pictures.
    """

    live = False
    path = None
    start_s = 0.0

    def __init__(self, name: str, clock: Clock, fps: float | None = None) -> None:
        self._paths = picture_paths(name)
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
                picture, oriented = read_upright(path, PICTURES)
            except InputError as error:
                self.outcomes.tell("undecodable", 1, f"left out: {str(error).splitlines()[0]}")
                continue
            if not oriented:
                self.outcomes.count("orientation")
            self._taken += 1
            return SourceFrame(number, number / self.fps, picture, self._clock.now_s())
        if self._ending is None:
            said = f"none of {len(self._paths):,} pictures could be read"
            self._ending = Ending("end") if self._taken else Ending("empty", said)
        return None

    @property
    def ending(self) -> Ending | None:
        """Why no more frames come; None while some may."""
        return self._ending

    def close(self) -> None:
        """Nothing is held."""
