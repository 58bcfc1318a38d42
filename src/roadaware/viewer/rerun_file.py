"""Runs and datasets as a recording of Rerun (.rrd): boxes, tubes, scores, forecasts, sweeps, and the views on them."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import InputError, RoadawareError, UsageError, raise_interrupt
from roadaware.io.files import build_disk_error, make_temporary_path
from roadaware.io.parquet import read_parquet
from roadaware.io.sources import to_printable
from roadaware.io.video import get_time_base, open_container, read_frame_times
from roadaware.reports import terminal
from roadaware.scenes.schema import CORNERS
from roadaware.viewer.films import FilmFinder
from roadaware.viewer.index import Index
from roadaware.viewer.opening import TRUTH, Opened, TableSource
from roadaware.viewer.sweeps import STEPS, Sweeps, compute_box_corners

APPLICATION = "roadaware"
_MOST_FILM = 1 << 31
_MOST_TABS = 30
_VARIABLES = ("FORCE_RERUN_ANALYTICS", "RERUN", "RERUN_TELEMETRY_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_COLOURS = ("#56b4e9", "#e69f00", "#2bc48a", "#f0e442", "#d55e00", "#cc79a7", "#8ea6ff", "#c8c8c8")
Times = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64] | None]


def import_rerun() -> Any:
    """The SDK of Rerun, with its reports on its use switched off.

    The part of it that writes files makes no report, opens no socket and keeps no file of its own; a test runs it where
    each of these would end it. What could switch reports on is taken out of the environment of this process besides,
    and what switches them off is put in, since it counts as the SDK is imported.

    Raises:
        UsageError: if it is not installed, or another library is called so.
    """
    for name in _VARIABLES:
        os.environ.pop(name, None)
    os.environ["TELEMETRY_ENABLED"] = "false"
    try:
        found = import_module("rerun")
    except ImportError as error:
        raise UsageError("rerun-sdk is not installed: pip install 'roadaware[rerun]'") from error
    if not hasattr(found, "RecordingStream") or not hasattr(found, "send_columns"):
        raise UsageError(
            f"the module rerun is not the SDK ({found.__name__}): pip install 'roadaware[rerun]'"
        )
    return found


@dataclass
class Written:
    """What a recording holds.

    Args:
        videos: names of the videos.
        boxes: side to how many boxes.
        tubes: side to how many tubes.
        boxes_3d: side to how many boxes in space.
        points: of all sweeps.
        left_points: points that were left out, evenly.
        films: video to its film, and whether its bytes are in the recording.
        notes: what could not be taken, and why.
    """

    videos: list[str] = field(default_factory=list)
    boxes: dict[str, int] = field(default_factory=dict)
    tubes: dict[str, int] = field(default_factory=dict)
    boxes_3d: dict[str, int] = field(default_factory=dict)
    points: int = 0
    left_points: int = 0
    films: dict[str, tuple[str, bool]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def write_rerun_file(
    opened: Opened,
    target: Path,
    *,
    videos: Sequence[str] = (),
    embed: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Written:
    """Write what was opened as a recording with its views; whole or not at all.

    Args:
        opened: sets of ground truth and predictions.
        target: the file, which ends with `.rrd`.
        videos: names of those that are wanted; all where empty.
        embed: whether films and images are copied into the recording.
        progress: called with how many videos are done, and the total.

    Raises:
        UsageError: if rerun-sdk is not installed, or there is no such video.
        InputError: if a table cannot be read.
        DiskError: if the file cannot be written.
    """
    rerun = import_rerun()
    index = Index(opened)
    for name in videos:
        if name not in index.videos:
            raise UsageError(
                f"there is no video {to_printable(name)}; there are {len(index.videos)}, such as "
                f"{', '.join(to_printable(each) for each in index.videos[:3])}"
            )
    wanted = list(dict.fromkeys(videos)) or index.videos
    if not wanted:
        raise InputError("there is no video in it")
    said = repr([(side, source.name, source.digest) for side, source in opened.sides.items()] + wanted)
    stream = rerun.RecordingStream(
        APPLICATION,
        recording_id=hashlib.blake2b(said.encode(), digest_size=16).hexdigest(),
        send_properties=False,
    )
    sweeps, temporary = Sweeps(opened), make_temporary_path(target)
    try:
        temporary.touch()
        stream.save(temporary, _build_views(rerun, opened, sweeps, wanted))
        writer = _Writer(rerun, stream, opened, index, sweeps, embed=embed)
        for done, video in enumerate(wanted):
            progress(done, len(wanted))
            writer.add_video(video)
        progress(len(wanted), len(wanted))
        _finish(stream, temporary)
        temporary.replace(target)
    except OSError as error:
        raise build_disk_error(target, 0, error) from error
    except pl.exceptions.PolarsError as error:
        words = str(error).splitlines()[:1]
        raise InputError(f"a table is not as roadaware writes it: {' '.join(words)}") from error
    finally:
        with suppress(RuntimeError):  # it has said so before
            stream.disconnect()
        temporary.unlink(missing_ok=True)
    return writer.written


def _finish(stream: Any, path: Path) -> None:
    """Close a recording, and refuse one that is not all there: the SDK writes in a thread of its own.

    Raises:
        OSError: if it could not be written, or cannot be read back.
    """
    try:
        stream.flush()
        stream.disconnect()
    except RuntimeError as error:
        raise OSError(errno.EIO, str(error)) from error
    reader = import_module("rerun.chunk").RrdReader
    try:
        whole = len(reader(path).recordings()) == 1
    except Exception as error:  # whatever its Rust part calls it
        raise_interrupt(error)
        whole = False
    if not whole:
        raise OSError(errno.EIO, "the recording could not be written whole")


class _Writer:
    """Puts videos into a recording, each below an entity of its name."""

    def __init__(
        self, rerun: Any, stream: Any, opened: Opened, index: Index, sweeps: Sweeps, *, embed: bool
    ) -> None:
        self._rerun, self._stream, self._opened, self._index, self._embed = (
            rerun,
            stream,
            opened,
            index,
            embed,
        )
        self._films, self._sweeps = FilmFinder(opened), sweeps
        self._facts = index.describe()["videos"]
        self.written = Written()
        self._classes: dict[str, int] = {}

    def add_video(self, video: str) -> None:
        """All that is known of a video."""
        root = self._rerun.new_entity_path([video])
        self.written.videos.append(video)
        film_s = self._add_film(video, root)
        clock = self._find_clock(video, film_s)
        self._classes = {}
        for side, source in self._opened.sides.items():
            rows = source.scan("boxes").filter(pl.col("video").cast(pl.String) == video)
            names = rows.collect_schema().names()
            kept = [name for name in ("tube", "score", "scores") if name in names]
            boxes = rows.select("box", "frame", *CORNERS, *kept).sort("frame", "box").collect()
            words = [word or "object" for word in self._index.name_boxes(side, boxes)]
            classes = [self._classes.setdefault(word, len(self._classes) + 1) for word in words]
            self._add_boxes(
                root, side, source, boxes.with_columns(klass=pl.Series(classes, dtype=pl.Int64)), clock
            )
            self._add_side(root, side, video, clock)
        self._add_sweeps(root, video, clock)
        context = [(number, word, _colour(number)) for word, number in self._classes.items()]
        self._stream.log(root, self._rerun.AnnotationContext(context), static=True)

    def _find_clock(
        self, video: str, film_s: npt.NDArray[np.float64] | None
    ) -> Callable[[Iterable[int]], Times]:
        """Seconds of frames: of the film, else as the tables say; None where nothing tells them."""
        place = self._index.videos.index(video)
        fps = self._facts["fps"][place]

        def tell(frames: Iterable[int]) -> Times:
            numbers = np.asarray(list(frames), dtype=np.int64)
            if film_s is not None and len(film_s) and (not len(numbers) or numbers.max() < len(film_s)):
                return numbers, film_s[numbers]
            return numbers, numbers / fps if fps else None

        return tell

    def _send(self, entity: str, times: Times, columns: Any) -> None:
        frames, seconds = times
        indexes = [self._rerun.TimeColumn("frame", sequence=frames)]
        if seconds is not None:
            indexes.append(self._rerun.TimeColumn("time", duration=seconds))
        self._stream.send_columns(entity, indexes, columns, strict=True)

    def _add_film(self, video: str, root: str) -> npt.NDArray[np.float64] | None:
        """The film by its path and the times of its frames, and its bytes where that is asked; these times."""
        rerun, path = self._rerun, self._films.locate(video)
        if path is None:
            self._add_stills(video, root)
            return None
        try:
            with open_container(path) as file:
                stream = file.streams.video[0]
                where = to_printable(str(path))
                times, _, _ = read_frame_times(file, stream, where)
                seconds = np.asarray(times * get_time_base(stream, where), dtype=np.float64)
        except InputError as error:
            self.written.notes.append(str(error))
            return None
        entity = f"{root}/image"
        self._stream.log(entity, rerun.AnyValues(file=str(path)), static=True)
        if self._embed:
            if path.stat().st_size > _MOST_FILM:
                raise UsageError(f"{path} has more than 2 GB: leave --embed out, or name other --videos")
            self._stream.log(entity, rerun.AssetVideo(path=path), static=True, strict=True)
        frames = np.arange(len(seconds), dtype=np.int64)
        at = np.round(seconds * 1e9).astype(np.int64)
        self._send(entity, (frames, seconds), rerun.VideoFrameReference.columns_nanos(at))
        self.written.films[video] = (str(path), self._embed)
        return seconds

    def _add_stills(self, video: str, root: str) -> None:
        """Images, copied where that is asked."""
        film = self._films.film(video)
        if film.state != "stills":
            self.written.notes.append(
                f"{to_printable(video)}: {film.message}"
                if film.message
                else f"{to_printable(video)}: no film"
            )
            return
        self.written.films[video] = ("images", self._embed)
        if not self._embed:
            return
        for frame in range(len(film.times_s)):
            try:
                data, kind = self._films.still(video, frame)
            except InputError:
                continue
            self._stream.set_time("frame", sequence=frame)
            self._stream.log(
                f"{root}/image", self._rerun.EncodedImage(contents=data, media_type=kind), strict=True
            )
        self._stream.reset_time()

    def _add_boxes(
        self,
        root: str,
        side: str,
        source: TableSource,
        boxes: pl.DataFrame,
        clock: Callable[[Iterable[int]], Times],
    ) -> None:
        """Boxes of paths, an entity each, with their scores; others in one entity."""
        self.written.boxes[side] = self.written.boxes.get(side, 0) + len(boxes)
        if boxes.is_empty():
            return
        if "tube" not in boxes.columns:
            boxes = boxes.with_columns(tube=pl.lit(None, pl.Int64))
        for (tube,), rows in boxes.group_by("tube", maintain_order=True):
            if tube is None:
                entity = f"{root}/image/{side}/boxes"
            else:
                entity = f"{root}/image/{side}/tubes/{tube}"
                self.written.tubes[side] = self.written.tubes.get(side, 0) + 1
            self._send_boxes(entity, rows, clock)
            if "score" in rows.columns and source.predicted and tube is not None:
                scored = rows.drop_nulls("score")
                if len(scored):
                    scores = self._rerun.Scalars.columns(scalars=scored["score"].to_numpy())
                    self._send(f"{root}/scores/{side}/{tube}", clock(scored["frame"].to_list()), scores)

    def _send_boxes(self, entity: str, rows: pl.DataFrame, clock: Callable[[Iterable[int]], Times]) -> None:
        """Boxes by frame; where some end, an empty row says so, since Rerun shows what was told last."""
        rerun = self._rerun
        counts = rows.group_by("frame", maintain_order=True).len().sort("frame")
        frames, lengths = counts["frame"].to_list(), counts["len"].to_list()
        corners = rows.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)
        columns = rerun.Boxes2D.columns(
            centers=(corners[:, :2] + corners[:, 2:]) / 2,
            half_sizes=(corners[:, 2:] - corners[:, :2]) / 2,
            class_ids=rows["klass"].to_numpy().astype(np.uint16),
        ).partition(lengths)
        more = rerun.AnyValues.columns(box=rows["box"].to_numpy()).partition(lengths)
        self._send(entity, clock(frames), [*columns, *more])
        ends = [a + 1 for a, b in pairwise([*frames, frames[-1] + 2]) if b > a + 1]
        none = np.zeros((0, 2))
        gone = rerun.Boxes2D.columns(centers=none, half_sizes=none, class_ids=np.zeros(0, np.uint16))
        self._send(entity, clock(ends), gone.partition([0] * len(ends)))

    def _add_side(self, root: str, side: str, video: str, clock: Callable[[Iterable[int]], Times]) -> None:
        """Events of a watch, and forecasts of crossing with their intervals."""
        facts = self._index.describe_video(video).get(side)
        if facts is None:
            return
        events = sorted(facts["events"], key=lambda each: each["frame"])
        if events:
            texts = [f"{each['event']} {each['tube'] or ''} {each['words']}".strip() for each in events]
            self._send(
                f"{root}/events/{side}",
                clock(each["frame"] for each in events),
                self._rerun.TextLog.columns(text=texts),
            )
        source = self._opened.sides[side]
        if source.crossing is None or source.summary.get("video") != video:
            return
        table = read_parquet(source.crossing)
        if "crossing" not in table.columns:
            return
        for (tube,), rows in table.drop_nulls("crossing").sort("frame").group_by("tube", maintain_order=True):
            for name in ("crossing", "low", "high"):
                held = rows.drop_nulls(name) if name in rows.columns else rows.clear()
                if len(held):
                    values = self._rerun.Scalars.columns(scalars=held[name].cast(pl.Float64).to_numpy())
                    entity = self._rerun.new_entity_path([video, "crossing", side, str(tube), name])
                    self._send(entity, clock(held["frame"].to_list()), values)

    def _add_sweeps(self, root: str, video: str, clock: Callable[[Iterable[int]], Times]) -> None:
        """Points and boxes in space of each sweep, in the vehicle's frame."""
        rerun = self._rerun
        frames = self._sweeps.frames(video)
        run = next(iter(self._sweeps.describe_runs()), "")
        if frames:
            self._stream.log(f"{root}/space", rerun.ViewCoordinates.FLU, static=True)
            steps = [(number, step, _colour(number)) for number, step in enumerate(STEPS, 1)]
            if run:
                self._stream.log(f"{root}/space/points", rerun.AnnotationContext(steps), static=True)
        for frame in frames:
            try:
                turn = self._sweeps.open(video, frame)
                codes = self._sweeps.code_points(video, frame, run) if run else None
            except RoadawareError as error:
                self.written.notes.append(f"{to_printable(video)}, frame {frame}: {error}")
                continue
            points = turn.move(turn.capture.points[turn.sent]).astype(np.float32)
            self.written.points += len(points)
            self.written.left_points += len(turn.finite) - len(points)
            number, seconds = clock([frame])
            self._stream.set_time("frame", sequence=int(number[0]))
            if seconds is not None:
                self._stream.set_time("time", duration=float(seconds[0]))
            classes = None if codes is None else codes.astype(np.uint16) + 1
            self._stream.log(
                f"{root}/space/points", rerun.Points3D(points, class_ids=classes, radii=0.03), strict=True
            )
            for side, source in self._opened.sides.items():
                rows = source.scan("boxes").filter(
                    (pl.col("video").cast(pl.String) == video) & (pl.col("frame") == frame)
                )
                cuboids, corners = compute_box_corners(rows.collect(), turn.lidar_SE3_camera)
                if not len(cuboids) and side != TRUTH:
                    continue
                words = [word or "object" for word in self._index.name_boxes(side, cuboids)]
                classes_3d = [self._classes.setdefault(word, len(self._classes) + 1) for word in words]
                self.written.boxes_3d[side] = self.written.boxes_3d.get(side, 0) + len(cuboids)
                self._stream.log(
                    f"{root}/space/{side}",
                    self._build_solids(turn.move(corners), cuboids, classes_3d),
                    strict=True,
                )
        self._stream.reset_time()

    def _build_solids(self, corners: Floats, rows: pl.DataFrame, classes: list[int]) -> Any:
        sides = corners[:, [4, 2, 1]] - corners[:, :1]
        lengths = np.linalg.norm(sides, axis=2)
        turns = [
            _to_quaternion((side / length[:, None]).T) for side, length in zip(sides, lengths, strict=True)
        ]
        return self._rerun.Boxes3D(
            centers=corners.mean(axis=1),
            half_sizes=lengths / 2,
            quaternions=turns,
            class_ids=np.array(classes, dtype=np.uint16),
            labels=[str(box) for box in rows["box"].to_list()],
            show_labels=False,
        )


def _to_quaternion(turn: Floats) -> list[float]:
    """x, y, z, w of a rotation."""
    from scipy.spatial.transform import Rotation

    found: list[float] = Rotation.from_matrix(turn).as_quat().tolist()
    return found


def _colour(number: int) -> tuple[int, int, int]:
    text = _COLOURS[(number - 1) % len(_COLOURS)]
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def _build_views(rerun: Any, opened: Opened, sweeps: Sweeps, videos: Sequence[str]) -> Any:
    """Image, space and curves of each video, a tab each."""
    views = import_module("rerun.blueprint")
    tabs = []
    for video in videos[:_MOST_TABS]:
        root = rerun.new_entity_path([video])
        screens = [views.Spatial2DView(origin=f"{root}/image", name="image")]
        if sweeps.frames(video):
            screens.append(views.Spatial3DView(origin=f"{root}/space", name="sweep"))
        curves = []
        if any(
            source.predicted
            and "score" in source.scan("boxes").collect_schema().names()
            and "tubes" in source.tables
            for source in opened.sides.values()
        ):
            curves.append(views.TimeSeriesView(origin=f"{root}/scores", name="scores"))
        if any(
            source.crossing is not None and source.summary.get("video") == video
            for source in opened.sides.values()
        ):
            curves.append(views.TimeSeriesView(origin=f"{root}/crossing", name="crossing"))
        if any(
            source.events is not None and source.summary.get("video") == video
            for source in opened.sides.values()
        ):
            curves.append(views.TextLogView(origin=f"{root}/events", name="events"))
        rows = [views.Horizontal(*screens), *([views.Horizontal(*curves)] if curves else [])]
        tabs.append(views.Vertical(*rows, row_shares=[3, 1][: len(rows)], name=to_printable(video, 80)))
    return views.Blueprint(views.Tabs(*tabs), views.TimePanel(timeline="frame"), auto_views=False)


def format_recording(written: Written, out: Path) -> str:
    """What is in a recording, and what is not, as text."""
    sides = sorted({*written.boxes, *written.tubes, *written.boxes_3d})
    rows = [
        (side, *(f"{held.get(side, 0):,}" for held in (written.boxes, written.tubes, written.boxes_3d)))
        for side in sides
    ]
    lines = [terminal.format_table(["side", "boxes", "tubes", "3D boxes"], rows, left=1), ""]
    if written.points:
        more = f", {written.left_points:,} more left out evenly" if written.left_points else ""
        lines.append(f"{written.points:,} LiDAR points{more}")
    kept = sum(embedded for _, embedded in written.films.values())
    apart = len(written.films) - kept
    if apart:
        lines.append(
            f"{apart} videos by their paths: Rerun shows them where --embed copies them into the file"
        )
    if kept:
        lines.append(f"{kept} videos copied into the file")
    lines += [terminal.format_cell(note) for note in written.notes[:5]]
    size = terminal.format_bytes(out.stat().st_size)
    return "\n".join(
        [
            *lines,
            f"wrote {terminal.format_cell(str(out))}, {size}; rerun {terminal.format_cell(str(out))} shows it",
        ]
    )
