"""The folder of a watch: events as they happen, tables, video and a summary, each whole or not there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware import __version__
from roadaware.arrays import Pixels
from roadaware.config import digest, to_dict
from roadaware.errors import DiskError, UsageError
from roadaware.io.files import build_disk_error, is_temporary, write_atomically
from roadaware.io.folders import Hold
from roadaware.models.detector import Detector
from roadaware.online.config import WatchConfig
from roadaware.online.crossing_tables import OutlookTable
from roadaware.online.events import CROSSING as CROSSING
from roadaware.online.events import CROWD as CROWD
from roadaware.online.events import EVENTS as EVENTS
from roadaware.online.events import FILM as FILM
from roadaware.online.events import SUMMARY as SUMMARY
from roadaware.online.events import Event, EventWriter
from roadaware.online.film import Film
from roadaware.online.frame_stats import OUTCOMES
from roadaware.online.frames import Clock, Source
from roadaware.online.tables import TableWriter
from roadaware.online.times import FIGURES, TABLES, TIMES
from roadaware.online.watch import Progress
from roadaware.online.watcher import Last, Seen
from roadaware.tasks.road_events import Classes

if TYPE_CHECKING:
    from roadaware.online.crossing import CrossingAnnotator

PARTS, CROSSING_PARTS, PAGE = "predictions.parts", "crossing.parts", "report.html"
RECORD = "watch.json"
"""What is watched, how and by whom: written first, so that a watch that was killed is known."""
_OURS = (RECORD, EVENTS, TABLES, PARTS, TIMES, CROSSING, CROSSING_PARTS, FILM, CROWD, FIGURES, SUMMARY, PAGE)
Drawing = Callable[[Seen], Pixels]
Models = Sequence[Mapping[str, str]]


class RunFolder:
    """An output of `watch` that keeps everything in a folder.

    Args:
        folder: made; must be empty or new (see `prepare`).
        source: that is watched.
        detector: that looks.
        config: of the watch.
        clock: of the watch.
        draw: makes a frame of the video; None for no video.
        video: what the tables call the stream; as `get_video_name` has it where None.
        crossing: the annotator that pedestrians have their outlook from, whose table is kept too.
        notice: what readers of the summary should know of the detector.
        models: that are asked, JSON-ready, for the summary.
        asked: what a network of crowds is asked, for the record; empty without one.

    Raises:
        UsageError: if another process is at work in the folder.
        DiskError: if it cannot be written to.
    """

    def __init__(
        self,
        folder: Path,
        source: Source,
        detector: Detector,
        config: WatchConfig,
        clock: Clock,
        draw: Drawing | None = None,
        video: str | None = None,
        crossing: CrossingAnnotator | None = None,
        notice: str = "",
        models: Models = (),
        asked: Mapping[str, Any] | None = None,
    ) -> None:
        self._hold, self._notice, self._models = Hold(folder), notice, [dict(each) for each in models]
        self._agents = list(detector.kinds.get("agent", ()))
        self._video = get_video_name(source) if video is None else video
        self.folder, self._source, self._config, self._draw = folder, source, config, draw
        classes = Classes(dict(detector.kinds), tuple(detector.av_labels), config.advice)
        self._delay = detector.delay
        linker = config.linker_at(source.fps)
        record = build_run_record(source, config, video, models, asked)
        write_atomically(folder / RECORD, json.dumps(record, indent=1).encode() + b"\n")
        self._events = EventWriter(folder / EVENTS, clock)
        self._tables = TableWriter(folder / PARTS, classes, self._video, linker, clock)
        self._crossing, self._outlooks = crossing, None
        if crossing is not None:
            foresight = crossing.foresight
            self._outlooks = OutlookTable(
                folder / CROSSING_PARTS,
                crossing=foresight.asks_crossing,
                regions=len(foresight.regions),
                when=foresight.asks_when,
            )
        self._film: Film | None = None
        if draw is not None:
            heard = source.path is not None and config.recorded_fps is None
            sound = Path(str(source.path)) if heard else None
            report = partial(source.outcomes.tell, "silent", 1)
            self._film = Film(folder / FILM, source.fps, sound, source.start_s, report)
        self.problems: list[str] = []
        self._size: tuple[int, int] | None = None
        self._last_number = -1

    @property
    def files(self) -> list[str]:
        """The files in the folder now, in the order in which they were written."""
        return [name for name in _OURS if name != RECORD and (self.folder / name).exists()]

    @property
    def n_events(self) -> int:
        """Events written."""
        return self._events.written

    def add(self, seen: Seen) -> None:
        """Write the results of a frame, events first.

        Raises:
            DiskError: if it cannot be written.
        """
        self._events.write(seen.events)
        self._tables.add(seen)
        if self._outlooks is not None:
            self._outlooks.add(seen)
        height, width = seen.frame.picture.shape[:2]
        self._size, self._last_number = (height, width), seen.frame.number
        if self._film is not None and self._draw is not None:
            try:
                self._film.write(self._draw(seen), seen.frame.t_s)
            except DiskError:
                self._drop_film()
                raise

    def add_events(self, events: Sequence[Event]) -> None:
        """Events that belong to no frame.

        Raises:
            DiskError: if they cannot be written.
        """
        self._events.write(events)

    def end(self, last: Last) -> None:
        """Complete all files; a failure of one does not stop the others.

        Raises:
            DiskError: if something could not be completed; `problems` says what.
        """
        steps: list[Callable[[], object]] = [
            lambda: self._tables.close_paths(last.ended),
            lambda: self._events.write(last.events),
            self._events.close,
            self._close_film,
            self._finish_tables,
            self._finish_outlooks,
        ]
        for step in steps:
            try:
                step()
            except DiskError as error:
                self.problems.append(str(error))
        if self.problems:
            raise DiskError("\n  ".join(self.problems))

    def summarise(
        self,
        progress: Progress,
        page: Callable[[dict[str, Any]], bool] | None = None,
        crowd: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Write the summary and the timing of the watch; returns both together.

        Args:
            progress: when it was over.
            page: writes the page of a summary, and says whether there is one; None for no page.
            crowd: what a network of crowds found; None where none was asked.

        Raises:
            DiskError: if it cannot be written.
        """
        asked, speed = self._crossing, _summarize_speed(progress)
        crossing = {} if asked is None else {"crossing": asked.summary()}
        if asked is not None:
            speed["crossing"] = asked.speed()
        write_atomically(self.folder / FIGURES, _json(speed))
        found = {
            "format": "roadaware-watch",
            "version": __version__,
            **_figures(progress, self._source, self._video),
            "width_px": None if self._size is None else self._size[1],
            "height_px": None if self._size is None else self._size[0],
            "notice": self._notice,
            "models": self._models,
            "agents": self._agents,
            "delay_frames": self._delay,
            **crossing,
            **({} if progress.expected is None else {"expected": progress.expected}),
            **({} if crowd is None else {"crowd": dict(crowd)}),
            "events": self._events.written,
            "files": [*self.files, SUMMARY, *([] if page is None else [PAGE])],
            "config": to_dict(self._config),
            "config_digest": digest(self._config),
        }
        if page is not None and not page(found):
            found["files"] = [name for name in found["files"] if name != PAGE]
        # Last of all: a folder with a summary is a watch that ended.
        write_atomically(self.folder / SUMMARY, _json(found))
        return merge_summary(found, speed)

    def _close_film(self) -> None:
        if self._film is not None:
            try:
                self._film.close()
            except DiskError:
                self._drop_film()
                raise

    def _drop_film(self) -> None:
        """Give its room to what matters more."""
        if self._film is not None:
            self._film.abandon()
            self._film = None

    def _finish_outlooks(self) -> None:
        if self._outlooks is not None:
            self._outlooks.finish(self.folder / CROSSING)

    def _finish_tables(self) -> None:
        height, width = self._size or (None, None)
        facts = {
            "width_px": width,
            "height_px": height,
            "fps": self._source.fps,
            "n_frames": self._source.n_frames or self._last_number + 1,
            "path": Path(self._source.path).name if self._source.path else None,
        }
        self._tables.finish(self.folder / TABLES, facts)


def build_run_record(
    source: Source,
    config: WatchConfig,
    video: str | None,
    models: Models,
    asked: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The identity of the watch of a video, JSON-ready; empty for sources that cannot be read twice.

    Args:
        source: a video, or a camera.
        config: of the watch.
        video: what the tables call it.
        models: that are asked.
        asked: what a network of crowds is asked; None without one.
    """
    if source.live or source.path is None:
        return {}
    return {
        "version": __version__,
        "source": source.name,
        "bytes": Path(source.path).stat().st_size if Path(source.path).is_file() else None,
        "frames": source.n_frames,
        "video": get_video_name(source) if video is None else video,
        "config_digest": digest(config),
        "models": [dict(each) for each in models],
        **({"crowd": dict(asked)} if asked else {}),
    }


def _is_begun(folder: Path, record: Mapping[str, Any] | None) -> bool:
    """Whether a folder holds the same watch, which was killed before its end."""
    if not record or (folder / SUMMARY).exists():
        return False
    try:
        return bool(json.loads((folder / RECORD).read_bytes()) == record)
    except (OSError, ValueError):
        return False


def is_watch_of(folder: Path, film: Path) -> bool:
    """Whether the folder of a watch says that a video file was watched, by its name and size."""
    try:
        record = json.loads((folder / RECORD).read_bytes())
        return (record["source"], record["bytes"]) == (film.name, film.stat().st_size)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def prepare(folder: Path, *, overwrite: bool = False, record: Mapping[str, Any] | None = None) -> None:
    """Make a folder that a watch can write to; only files of an earlier watch are removed.

    Args:
        folder: of the watch.
        overwrite: replace an earlier one.
        record: of the watch, see `build_run_record`: if the folder holds the same one, and that was killed, it is
            begun anew, and ends as it would have.

    Raises:
        UsageError: if an earlier watch is there and may not be replaced, or something else, or another
            process is at work in it.
        DiskError: if it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        hold = Hold(folder)
        held = [path for path in folder.iterdir() if is_temporary(path.name) is None]
        foreign = [path.name for path in held if path.name not in _OURS]
        if foreign:
            raise UsageError(
                f"{folder} holds other things ({', '.join(sorted(foreign)[:3])}); name another folder"
            )
        if held and not overwrite and not _is_begun(folder, record):
            raise UsageError(
                f"{folder} holds an earlier watch; say --overwrite to replace it, or name another"
            )
        # The record goes last: killed on the way, the next one still knows what it is about.
        held.sort(key=lambda path: path.name == RECORD)
        for path in held:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        hold.release()
    except OSError as error:
        raise build_disk_error(folder, 1, error) from error


def get_video_name(source: Source) -> str:
    """The name of the stream in the tables: its file name without the ending, else its own."""
    return Path(source.path).stem if source.path else source.name


def _figures(progress: Progress, source: Source, video: str) -> dict[str, Any]:
    counts, ending = source.outcomes.counts(), progress.ending
    return {
        "source": source.name,
        "video": video,
        "ended": {"reason": ending.reason if ending else None, "message": ending.message if ending else ""},
        "frames": progress.frames,
        "frames_of_source": source.n_frames,
        "stream_s": round(progress.t_s, 4),
        "source_fps": round(source.fps, 3) if source.fps else None,
        "tubes": progress.begun,
        "outcomes": {what: {"count": count, "meaning": OUTCOMES[what]} for what, count in counts.items()},
    }


def _summarize_speed(progress: Progress) -> dict[str, Any]:
    """Timing of a watch."""
    latency, spent_s = progress.latency, progress.spent_s
    return {
        "watched_s": round(spent_s, 3),
        "fps": round(progress.frames / spent_s, 2) if spent_s > 0 else None,
        "latency_ms": {
            "p50": _ms(latency.percentile_s(50)),
            "p99": _ms(latency.percentile_s(99)),
            "longest": _ms(latency.longest_s),
        },
    }


def merge_summary(found: dict[str, Any], speed: dict[str, Any]) -> dict[str, Any]:
    """A summary with its speed, as both stood in one file up to version 0.8."""
    both = {**found, **speed}
    if "crossing" in speed:
        both["crossing"] = {**found["crossing"], **speed["crossing"]}
    return both


def _json(found: dict[str, Any]) -> bytes:
    return json.dumps(found, indent=1, allow_nan=False).encode() + b"\n"


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 2)
