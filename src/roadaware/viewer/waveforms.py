"""Waveforms of the sound of films: the lowest and highest sample of each short step, computed once and kept."""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Floats32
from roadaware.errors import InputError, RoadawareError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.folders import make_folder
from roadaware.io.sources import read_file
from roadaware.io.video import NoSoundError, iterate_sound
from roadaware.places import get_cache_folder

MOST_BARS = 4096
"""Steps of one answer, at most."""
STEP_S = 0.005
MOST_S = 6 * 3600.0
"""Of a film's sound; what comes later has no waveform."""
_RATE = 8_000
_EACH = round(_RATE * STEP_S)
_MOST_STEPS = round(MOST_S / STEP_S)
_FULL = 32767
_KEPT = 6


@dataclass
class _Track:
    """The waveform of one film.

    Args:
        state: `reading`, `ready`, or `none` where there is no sound.
        message: what went wrong.
        peaks: (n, 2) int16, as of `read_peaks`.
        done_s: how far it has been read.
    """

    state: str
    message: str = ""
    peaks: Any = None
    done_s: float = 0.0


class Waveforms:
    """Reads the sound of films, one at a time, each in a thread of its own, and keeps what was found.

    What is kept of a film lies in the cache folder under `viewer/`, named by the film's path, size and time.
    """

    def __init__(self) -> None:
        self._tracks: dict[tuple[str, int, int], _Track] = {}
        self._lock, self._reader = threading.Lock(), threading.Lock()

    def describe(self, path: Path, first_s: float, end_s: float, bars: int) -> dict[str, Any]:
        """The waveform of a part of a film, JSON-ready: `state`, `message`, `done_s`, and of each of `bars` equal
        pieces the `low` and the `high` sample, from -32767 to 32767.

        Args:
            path: of the film, as it was found.
            first_s, end_s: the part, on the film's clock.
            bars: how many pieces, 1 to 4096.

        Raises:
            UsageError: if it is no part, or the pieces are too many.
            InputError: if the film cannot be read.
        """
        if not 0 <= first_s < end_s or not 1 <= bars <= MOST_BARS:
            raise UsageError(f"a waveform has 1 to {MOST_BARS} bars, from a time on to a later one")
        track = self._open(path)
        found = {"state": track.state, "message": track.message, "done_s": round(track.done_s, 1)}
        if track.peaks is None:
            return {**found, "low": [], "high": []}
        # The steps that each bar touches, one at least, so that a short bar shows what is heard in it; the last row is
        # silence, and stands for all that lies behind it.
        behind = len(track.peaks) - 1
        ends = np.linspace(first_s, end_s, bars + 1) / STEP_S
        starts = np.floor(ends[:-1] + 1e-6).clip(0, behind).astype(np.int64)
        stops = np.ceil(ends[1:] - 1e-6).clip(0, behind).astype(np.int64)
        pairs = np.stack([starts, np.maximum(stops, np.minimum(starts + 1, behind))], axis=1).reshape(-1)
        low = np.minimum.reduceat(track.peaks[:, 0], pairs)[::2]
        high = np.maximum.reduceat(track.peaks[:, 1], pairs)[::2]
        return {**found, "low": low.tolist(), "high": high.tolist()}

    def _open(self, path: Path) -> _Track:
        try:
            status = path.stat()
        except OSError as error:
            raise InputError(f"the film is gone: {error.strerror}") from error
        key = (str(path), status.st_size, status.st_mtime_ns)
        with self._lock:
            track = self._tracks.pop(key, None)
            if track is None:
                while len(self._tracks) >= _KEPT:
                    self._tracks.pop(next(iter(self._tracks)))
                track = _Track("reading")
                threading.Thread(
                    target=self._read, args=(path, key, track), name="waveform", daemon=True
                ).start()
            self._tracks[key] = track  # the last one asked for is dropped last
        return track

    def _read(self, path: Path, key: tuple[str, int, int], track: _Track) -> None:
        name = hashlib.blake2b(os.fsencode("\0".join(map(str, key))), digest_size=12).hexdigest()
        kept = Path(os.path.realpath(get_cache_folder())) / "viewer" / f"{name}.peaks"
        with self._reader:
            with self._lock:
                if self._tracks.get(key) is not track:
                    return  # enough other films were opened since
            with suppress(RoadawareError):
                data = np.frombuffer(read_file(kept, most=4 * _MOST_STEPS + 4), np.int16)
                if len(data) and not len(data) % 2:
                    track.peaks, track.state = data.reshape(-1, 2), "ready"
                    track.done_s = (len(track.peaks) - 1) * STEP_S
                    return
            try:
                peaks = read_peaks(path, track)
            except NoSoundError:
                track.state = "none"
                return
            except (InputError, MemoryError, ValueError) as error:
                track.state, track.message = "none" if track.peaks is None else "ready", str(error)
                return
            track.peaks, track.state = peaks, "ready" if len(peaks) > 1 else "none"
            with suppress(RoadawareError, OSError):
                make_folder(kept.parent)
                write_atomically(kept, peaks.tobytes())


def read_peaks(path: Path, track: _Track | None = None) -> Any:
    """(n, 2) int16 lowest and highest sample of each step of the sound of a film, from time 0 on, 32767 for the loudest.

    A last row of silence follows.

    Args:
        path: of the film.
        track: is told how far it is, and holds what was found before a fault.

    Raises:
        NoSoundError: if it has no sound track.
        InputError: if it cannot be read.
    """
    track = track or _Track("reading")
    peaks = np.zeros((1024, 2), np.int16)
    known = 0
    for at, block in iterate_sound(path, _RATE, MOST_S):
        begin = max(0, -at)
        # The louder side counts: what is heard on one side alone is no quieter.
        low, high = _to_steps(at + begin, block[begin:])
        first = (at + begin) // _EACH
        last = min(first + len(low), _MOST_STEPS)
        if first >= last:
            continue
        if last >= len(peaks):
            grown = np.zeros((min(_MOST_STEPS, max(last, 2 * len(peaks))) + 1, 2), np.int16)
            grown[:known] = peaks[:known]
            peaks = grown
        part = peaks[first:last]
        np.minimum(part[:, 0], low[: last - first], out=part[:, 0])
        np.maximum(part[:, 1], high[: last - first], out=part[:, 1])
        known = max(known, last)
        track.peaks, track.done_s = peaks[: known + 1], known * STEP_S
    return peaks[: known + 1].copy()


def _to_steps(at: int, block: Floats32) -> tuple[Any, Any]:
    """The lowest and highest sample of each step that a block touches, as int16."""
    before = at % _EACH
    after = -(before + len(block)) % _EACH
    # Not a number is silence; a step that the block only touches has silence for the rest of it.
    whole = np.pad(np.nan_to_num(block, nan=0.0), ((before, after), (0, 0))).reshape(-1, _EACH * 2)
    scaled = (np.clip(whole, -1.0, 1.0) * _FULL).round().astype(np.int16)
    return scaled.min(axis=1, initial=0), scaled.max(axis=1, initial=0)
