"""events.jsonl: one JSON object per change, written as it happens, and read back."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from roadaware.errors import DamagedError, DiskError, InputError
from roadaware.io.files import build_disk_error
from roadaware.online.frames import Clock, Happening
from roadaware.online.tubes import Confirmed, LiveTube
from roadaware.tasks.road_events import describe_event, order_labels

Event = dict[str, Any]
_SYNC_S = 1.0
EVENTS, CROSSING, FILM, SUMMARY, CROWD = (
    "events.jsonl",
    "crossing.parquet",
    "video.mp4",
    "summary.json",
    "crowd",
)
"""Files in the folder of a watch; named here, where whoever only looks at them need not import what watches."""
HEARD, STANDING, SPEED, OBSTACLES = "heard.parquet", "standing.parquet", "speed.parquet", "obstacles.parquet"
"""Beside them, of a film that `triage` had watched: how surely sounds are heard, wherever they come from, and, by the images,
how surely the own vehicle stands, its speed and turn, and what is on the road ahead that the detector may miss."""


def make_tube_event(event: str, tube: LiveTube, frame: int, t_s: float, **more: Any) -> Event:
    """The event of a tube: begin, update, end or a forecast.

    Args:
        event: begin, update, end, or what an annotator calls its news.
        tube: which.
        frame: the newest frame.
        t_s: its time.
        more: further fields.
    """
    said = {
        **more,
        **(
            {"notes": {name: round(float(value), 4) for name, value in tube.notes.items()}}
            if tube.notes
            else {}
        ),
    }
    labels = tube.labels.confirmed()
    # A tube that has ended is told from its first box to its last, whatever the frame in which that became known.
    span = (tube.first_t_s, tube.last_t_s) if event == "end" else (t_s, None)
    expected = {} if tube.outlook is None else tube.outlook.fields()
    if tube.expected is not None and event != "end":
        expected |= tube.expected.fields()
    return {
        "event": event,
        "tube": tube.number,
        "frame": frame,
        "t_s": round(t_s, 4),
        "labels": labels,
        "text": describe_event(order_labels(labels), *span),
        "score": round(tube.score, 4),
        "box": [round(float(side), 1) for side in tube.box],
        "first_frame": tube.first_frame,
        "last_frame": tube.last_frame,
        **expected,
        **said,
    }


def make_vehicle_event(event: str, labels: Confirmed, frame: int, t_s: float) -> Event:
    """The event of a change in the own vehicle's action.

    Args:
        event: begin, update or end.
        labels: its action.
        frame, t_s: as of `make_tube_event`.
    """
    scores = [score for held in labels.values() for score in held.values()]
    return {
        "event": event,
        "tube": None,
        "frame": frame,
        "t_s": round(t_s, 4),
        "labels": labels,
        "text": describe_event(order_labels(labels), t_s),
        "score": max(scores, default=0.0),
        "box": None,
    }


def make_source_event(happening: Happening, frame: int, t_s: float) -> Event:
    """The event of a fault or change of the source.

    Args:
        happening: what.
        frame, t_s: as of `make_tube_event`.
    """
    return {
        "event": "source",
        "tube": None,
        "frame": frame,
        "t_s": round(t_s, 4),
        "what": happening.what,
        "count": happening.count,
        "message": happening.message,
    }


class EventWriter:
    """Appends events to a file, each line in one write: a process killed at any moment leaves whole lines.

    A loss of power takes at most the last second: that often the file is flushed to the disk.

    Args:
        path: a new file.
        clock: says when a second is over.

    Raises:
        DiskError: if it cannot be made.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path, self._clock, self.written, self._size = path, clock, 0, 0
        # O_APPEND: after a shortened file the next line stands at its new end.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        try:
            self._handle = os.open(path, flags, 0o666)
        except OSError as error:
            raise build_disk_error(path, 1, error) from error
        self._synced_s, self._dirty = clock.now_s(), False

    def write(self, events: Sequence[Event]) -> None:
        """Append events.

        Raises:
            DiskError: if the disk refuses.
        """
        for event in events:
            line = json.dumps(event, allow_nan=False, ensure_ascii=False).encode() + b"\n"
            try:
                if os.write(self._handle, line) != len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            except OSError as error:
                with suppress(OSError):  # a part of a line would spoil the next one
                    os.ftruncate(self._handle, self._size)
                raise _lost(self.path, error) from error
            self._size += len(line)
            self.written, self._dirty = self.written + 1, True
        if self._dirty and self._clock.now_s() - self._synced_s >= _SYNC_S:
            self._sync()

    def close(self) -> None:
        """Flush and close.

        Raises:
            DiskError: if the disk refuses.
        """
        if self._handle < 0:
            return
        try:
            if self._dirty:
                self._sync()
        finally:
            os.close(self._handle)
            self._handle = -1

    def _sync(self) -> None:
        try:
            os.fsync(self._handle)
        except OSError as error:
            raise _lost(self.path, error) from error
        self._synced_s, self._dirty = self._clock.now_s(), False


def _lost(path: Path, error: OSError) -> DiskError:
    said = error.strerror or str(error)
    return DiskError(f"cannot go on writing {path}: {said}\n  What was written before stands there.")


def read_events(path: Path) -> Iterator[Event]:
    """The events of a file, one after the other; a last line that was cut off is passed over.

    Args:
        path: of an events.jsonl, also of one that is being written.

    Raises:
        InputError: if there is none.
        DamagedError: if a line before the last is no JSON object.
    """
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                yield _parse_event(line, f"{path}:{number}")
    except OSError as error:
        raise InputError(f"expected events, found: {error.strerror}", where=str(path)) from error


def _parse_event(line: bytes, where: str) -> Event:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"expected a JSON object: {error}", where=where) from error
    if not isinstance(event, dict):
        raise DamagedError("expected a JSON object", where=where)
    return event
