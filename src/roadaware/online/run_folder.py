"""The folder of a watch: events, tables, crossing forecasts, video and a summary, each whole or not there."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware import __version__
from roadaware.arrays import Pixels
from roadaware.config import digest, to_dict
from roadaware.errors import DiskError, InputError, UsageError
from roadaware.io.files import build_disk_error, is_temporary, write_atomically
from roadaware.io.folders import Hold
from roadaware.io.storage import is_mirror, locate_content
from roadaware.models.detector import Detector
from roadaware.online.config import WatchConfig
from roadaware.online.crossing import Follower
from roadaware.online.events import CROSSING as CROSSING
from roadaware.online.events import CROWD as CROWD
from roadaware.online.events import EVENTS as EVENTS
from roadaware.online.events import FILM as FILM
from roadaware.online.events import HEARD, OBSTACLES, SPEED, STANDING, Event, EventWriter
from roadaware.online.events import SUMMARY as SUMMARY
from roadaware.online.film import Film
from roadaware.online.forecast_event import Outlook, OutlookRule
from roadaware.online.frames import OUTCOMES, Clock, Source
from roadaware.online.tables import Parts, TableWriter, write_rows
from roadaware.online.times import FIGURES, TABLES, TIMES
from roadaware.online.watch import Progress
from roadaware.online.watcher import Last, Seen
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes
from roadaware.tasks.road_events import Classes

if TYPE_CHECKING:
    from roadaware.online.crossing import CrossingAnnotator
    from roadaware.online.crossing_forecaster import Foresight
    from roadaware.online.watcher import Seen


PARTS, CROSSING_PARTS, PAGE = "predictions.parts", "crossing.parts", "report.html"
RECORD = "watch.json"
"""What is watched, how and by whom: written first, so that a watch that was killed is known."""
_ENDS, _END_BYTES = "ends_digest", 1 << 16
_OURS = (
    RECORD,
    EVENTS,
    TABLES,
    PARTS,
    TIMES,
    CROSSING,
    CROSSING_PARTS,
    FILM,
    CROWD,
    FIGURES,
    SUMMARY,
    PAGE,
    HEARD,
    STANDING,
    SPEED,
    OBSTACLES,
)
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
        name = Path(self._source.path).name if self._source.path else ""
        facts = {
            "width_px": width,
            "height_px": height,
            "fps": self._source.fps,
            "n_frames": self._source.n_frames or self._last_number + 1,
            # No table holds a name that is no Unicode text.
            "path": name if name and name == name.encode(errors="ignore").decode() else None,
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
    path = Path(source.path)
    return {
        "version": __version__,
        "source": source.name,
        "bytes": path.stat().st_size if path.is_file() else None,
        _ENDS: _digest_ends(path) if path.is_file() else None,
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
        held = json.loads((folder / RECORD).read_bytes())
        # Watches of earlier versions have no digest.
        return bool(held == {name: each for name, each in record.items() if name != _ENDS or name in held})
    except (OSError, ValueError, TypeError):
        return False


def is_watch_of(folder: Path, film: Path) -> bool:
    """Whether the folder of a watch says that a video file was watched, by its name, size, beginning and end.

    What lies in a store is not fetched for this: there name and size are all that is asked.
    """
    try:
        record = json.loads((folder / RECORD).read_bytes())
        if (record["source"], record["bytes"]) != (film.name, film.stat().st_size):
            return False
        held = record.get(_ENDS)  # watches of earlier versions have none
        return held is None or is_mirror(film) or bool(held == _digest_ends(film))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _digest_ends(film: Path) -> str:
    """Of the first and the last 64 KB: a camera that fills files of one size under the same names writes other ones."""
    with locate_content(film).open("rb") as file:
        whole = hashlib.blake2b(file.read(_END_BYTES), digest_size=12)
        file.seek(max(0, os.fstat(file.fileno()).st_size - _END_BYTES))
        whole.update(file.read(_END_BYTES))
    return whole.hexdigest()


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
    """The name of the stream in the tables: its file name without the ending, else its own.

    Bytes of a name that are no Unicode text, as of files from an old disk, are escaped, since no table holds them.
    """
    name = Path(source.path).stem if source.path else source.name
    return name.encode("utf-8", errors="backslashreplace").decode()


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


_PEDESTRIANS = ("pedestrian", "ped")
_ROWS = 1 << 14
_WHERE = {"tube": pl.Int64, "frame": pl.Int64, "t_s": pl.Float32}


class OutlookTable:
    """The outlooks of a watch: gathered in parts while it runs, one Parquet file once it is over.

    A row for each pedestrian and frame once they were seen for long enough: `tube` as in the events, `frame`,
    `t_s`, and the columns of `build_forecast_columns`. Where nothing could be said, `unknown` has the reason.

    Args:
        folder: of the parts; made, must not exist.
        crossing: whether there are probabilities of crossing.
        regions: how many regions there are.
        when: whether there are times until somebody begins to cross.

    Raises:
        DiskError: if the folder cannot be made.
    """

    def __init__(self, folder: Path, *, crossing: bool, regions: int, when: bool = False) -> None:
        self.folder, self._crossing, self._regions, self._when = folder, crossing, regions, when
        try:
            folder.mkdir()
        except OSError as error:
            raise build_disk_error(folder, 1, error) from error
        schema = _WHERE | _schema(crossing=crossing, regions=regions, when=when)
        self._parts = Parts(folder, "outlooks", schema)

    def add(self, seen: Seen) -> None:
        """Add the forecasts for the tubes of a frame.

        Raises:
            DiskError: if the disk refuses.
        """
        found = [(tube.number, tube.outlook) for tube in seen.tubes if tube.outlook is not None]
        if found:
            n = len(found)
            columns = build_forecast_columns(
                [outlook for _, outlook in found],
                crossing=self._crossing,
                regions=self._regions,
                when=self._when,
            )
            where = {
                "tube": np.array([number for number, _ in found]),
                "frame": np.full(n, seen.frame.number),
                "t_s": np.full(n, seen.time_s, np.float32),
            }
            self._parts.add(where | columns)
        if self._parts.waiting >= _ROWS:
            self._parts.flush()

    def finish(self, target: Path) -> None:
        """Write the file and remove the parts.

        Raises:
            DiskError: if the disk refuses; the parts are still there.
        """
        self._parts.flush()
        write_rows(_mask_unknown(self._parts.scan()), target)
        shutil.rmtree(self.folder, ignore_errors=True)


def build_forecast_columns(
    outlooks: Sequence[Outlook], *, crossing: bool, regions: int = 0, when: bool = False
) -> dict[str, npt.NDArray[Any]]:
    """Columns of n forecasts: (n) `crossing`, `low`, `high` and `probable`; (n) `within_2s` and `seconds`; (n) `region` and
    (n, r) `regions`; (n) `unknown`, empty where something is known. What nobody says is NaN or -1.

    Args:
        outlooks: of pedestrians.
        crossing: whether there are probabilities of crossing.
        regions: how many regions there are.
        when: whether there are times until somebody begins to cross.
    """
    found: dict[str, npt.NDArray[Any]] = {}
    if crossing:
        for name in ("crossing", "low", "high"):
            said = [getattr(outlook, name) for outlook in outlooks]
            found[name] = np.array([np.nan if value is None else value for value in said], np.float32)
        found["probable"] = np.array([outlook.probable for outlook in outlooks], np.bool_)
    if when:
        for name in ("within_2s", "seconds"):
            said = [getattr(outlook, name) for outlook in outlooks]
            found[name] = np.array([np.nan if value is None else value for value in said], np.float32)
    if regions:
        places = [-1 if outlook.region is None else outlook.region for outlook in outlooks]
        unsaid = (math.nan,) * regions
        found["region"] = np.array(places, np.int64)
        found["regions"] = np.array([outlook.regions or unsaid for outlook in outlooks], np.float32)
    found["unknown"] = np.array([outlook.unknown or "" for outlook in outlooks], np.str_)
    return found


def build_forecast_table(
    scenes: Scenes,
    foresight: Foresight,
    rule: OutlookRule | None = None,
    *,
    tubes: Sequence[int] | None = None,
) -> pl.DataFrame:
    """The crossing forecasts that a stream would give for pedestrians whose boxes stand in tables, frame by frame.

    With ground-truth boxes it says what the predictors are worth apart from any detector: join `samples` by `tube`
    and by `frame` = `end_frame` - 1 for the answers at the end of each observation.

    Args:
        scenes: with boxes in tubes and sizes of the videos. Where neither times of frames nor a rate of the
            video stand there, as in JAAD, frames are as far apart as the predictors have them.
        foresight: is given every video by itself.
        rule: what is reported; whom it takes for pedestrians does not matter here.
        tubes: of the pedestrians (default: those that `track_label` calls so, all where there is none).

    Returns:
        A row for each pedestrian and frame in which something could be said: `video`, `tube`, `frame`, `t_s`,
        and as `build_forecast_columns`; by video, frame and tube.

    Raises:
        InputError: if the size of an image is unknown.
    """
    schema = _schema(
        crossing=foresight.asks_crossing, regions=len(foresight.regions), when=foresight.asks_when
    )
    empty = pl.DataFrame(schema={"video": pl.String, **_WHERE, **schema})
    # The boxes of pedestrians with the time of their frame and the size of their image, in order
    held = scenes.tubes
    if tubes is not None:
        held = held.filter(pl.col("tube").is_in(list(tubes)))
    elif "track_label" in held.columns:
        held = held.filter(pl.col("track_label").cast(pl.String).is_in(_PEDESTRIANS))
    video = pl.col("video").cast(pl.String)
    videos = scenes.videos.select(video, *_or_null(scenes.videos, "width_px", "height_px", "fps"))
    moments = scenes.frames.select(video, "frame", *_or_null(scenes.frames, "t_s"))
    walked = (
        scenes.boxes.select(video, "frame", "tube", *CORNERS)
        .filter(pl.col("tube").is_in(held["tube"].to_list()))
        .join(videos, on="video", how="left")
        .join(moments, on=["video", "frame"], how="left")
        .with_columns(t_s=pl.coalesce("t_s", pl.col("frame") / pl.col("fps").fill_null(foresight.rate_fps)))
        .sort("video", "frame", "tube")
    )
    lost = walked.filter(pl.any_horizontal(pl.col("width_px", "height_px").is_null()))
    if len(lost):
        raise InputError(f"the image size of {lost['video'].unique().sort().to_list()[:5]} is unknown")
    each = [
        _of_video(video, foresight, rule or OutlookRule(), empty)
        for video in (walked.partition_by("video", maintain_order=True) if len(walked) else [])
    ]
    return pl.concat([empty, *each])


def _of_video(
    video: pl.DataFrame, foresight: Foresight, rule: OutlookRule, empty: pl.DataFrame
) -> pl.DataFrame:
    """The outlooks of one video, as a table like an empty one."""
    follower, size_px = Follower(foresight, rule), (int(video["width_px"][0]), int(video["height_px"][0]))
    rows, found = [], []
    for frame, t_s, numbers, boxes in _frames(video):
        for number, outlook in zip(numbers, follower.look(numbers, boxes, t_s, size_px), strict=True):
            if outlook is not None:
                rows.append((str(video["video"][0]), number, frame, t_s))
                found.append(outlook)
    if not found:
        return empty
    where = pl.DataFrame(rows, schema=dict(list(empty.schema.items())[: len(_WHERE) + 1]), orient="row")
    held = build_forecast_columns(
        found, crossing=foresight.asks_crossing, regions=len(foresight.regions), when=foresight.asks_when
    )
    said = pl.DataFrame(
        [pl.Series(name, held[name], dtype=kind) for name, kind in empty.schema.items() if name in held]
    )
    return _mask_unknown(where.hstack(said).lazy()).collect()


def _schema(*, crossing: bool, regions: int, when: bool) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if crossing:
        said = {**dict.fromkeys(("crossing", "low", "high"), pl.Float32), "probable": pl.Boolean}
    if when:
        said |= dict.fromkeys(("within_2s", "seconds"), pl.Float32)
    if regions:
        said |= {"region": pl.Int64, "regions": pl.Array(pl.Float32, regions)}
    return {**said, "unknown": pl.String}


def _mask_unknown(table: pl.LazyFrame) -> pl.LazyFrame:
    """Null for unknown values."""
    schema = table.collect_schema()
    numbers = [name for name in ("crossing", "low", "high", "within_2s", "seconds") if name in schema]
    said = [pl.col(name).fill_nan(None) for name in numbers]
    reason = pl.col("unknown").replace("", None)
    asked = reason.is_null()
    said += [
        pl.when(asked).then(pl.col(name)).alias(name) for name in ("region", "regions") if name in schema
    ]
    return table.with_columns(*said, reason)


def _or_null(table: pl.DataFrame, *columns: str) -> list[pl.Expr]:
    return [
        pl.col(c).cast(pl.Float64) if c in table.columns else pl.lit(None, pl.Float64).alias(c)
        for c in columns
    ]


def _frames(video: pl.DataFrame) -> Iterator[tuple[int, float, list[int], npt.NDArray[np.float64]]]:
    """Of each frame its number, its time, the tubes in it and their boxes."""
    frame, tube = video["frame"].to_numpy(), video["tube"].to_numpy()
    t_s, boxes = video["t_s"].to_numpy(), video.select(CORNERS).cast(pl.Float64).to_numpy()
    starts = np.flatnonzero(np.diff(frame, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(frame)], strict=True):
        yield int(frame[start]), float(t_s[start]), tube[start:end].tolist(), boxes[start:end]
