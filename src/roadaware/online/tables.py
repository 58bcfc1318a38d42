"""The tables of a watch: gathered, spilled to parts on disk while it runs, joined to saved Predictions when it is over."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.config import from_dict, to_dict
from roadaware.errors import InputError
from roadaware.io.files import build_disk_error, make_temporary_path, write_and_rename, write_atomically
from roadaware.io.parquet import scan_parquet
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import ClosedPath, build_closed_paths, link
from roadaware.linking.linker import Path as AgentPath
from roadaware.online.frames import Clock
from roadaware.online.times import READY, TIMES, add_ready_times
from roadaware.online.watcher import Seen
from roadaware.scenes.advice import parse_advice
from roadaware.scenes.dense_scores import Layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import register_table_files
from roadaware.scenes.tables import Meta, Predictions
from roadaware.tasks.road_events import Classes, build_predictions

# Parts: rows that are too many for memory, gathered for a while, then written to disk.


class Parts:
    """A table that grows; its parts are `NAME-000000.parquet`, `NAME-000001.parquet`, ...

    Args:
        folder: of the parts.
        name: of the table.
        schema: column to its type; one of them may be an array.
    """

    def __init__(self, folder: Path, name: str, schema: Mapping[str, Any]) -> None:
        self._folder, self._name, self.schema = folder, name, pl.Schema(schema)
        self._held: dict[str, list[npt.NDArray[Any]]] = {column: [] for column in self.schema}
        self._n_parts, self.waiting, self.rows = 0, 0, 0

    def add(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add rows.

        Args:
            columns: (n, ...) each.
        """
        n = len(next(iter(columns.values())))
        if n:
            for column, held in self._held.items():
                held.append(columns[column])
            self.rows, self.waiting = self.rows + n, self.waiting + n

    def flush(self) -> None:
        """Write the collected rows.

        Raises:
            DiskError: if the disk refuses.
        """
        if not self.waiting:
            return
        frame = pl.DataFrame(
            [
                pl.Series(name, np.concatenate(self._held[name]), dtype=kind)
                for name, kind in self.schema.items()
            ]
        )
        stream = io.BytesIO()
        frame.write_parquet(stream, compression="zstd")
        path, data = self._folder / f"{self._name}-{self._n_parts:06d}.parquet", stream.getvalue()
        try:
            write_and_rename(path, data)
        except OSError as error:
            raise build_disk_error(path, len(data), error) from error
        for held in self._held.values():
            held.clear()
        self._n_parts, self.waiting = self._n_parts + 1, 0

    def scan(self) -> pl.LazyFrame:
        """All rows that were flushed, in order."""
        return open_part_rows(self._folder, self._name, self.schema)


def write_rows(rows: pl.LazyFrame, target: Path) -> None:
    """Write rows as one file, whole or not at all, in little memory.

    Raises:
        DiskError: if the disk refuses; what stood there still stands.
    """
    held = make_temporary_path(target)
    try:
        rows.sink_parquet(held, compression="zstd", maintain_order=True)
        held.replace(target)
    except (OSError, pl.exceptions.ComputeError) as error:
        held.unlink(missing_ok=True)
        if not isinstance(error, OSError) and "os error" not in str(error):
            raise
        raise build_disk_error(target, 1, error) from error


def open_part_rows(folder: Path, name: str, schema: Mapping[str, Any]) -> pl.LazyFrame:
    """The rows of a table's parts, in order.

    Args:
        folder: of the parts.
        name: of the table.
        schema: for a table without parts.
    """
    paths = sorted(folder.glob(f"{name}-*.parquet"))
    return scan_parquet(paths) if paths else pl.LazyFrame(schema=pl.Schema(schema))


# Joining the parts of a watch to one saved set, in little memory however long the watch was.


def join_parts(
    parts: Mapping[str, Parts],
    target: Path,
    video: str,
    facts: Mapping[str, Any],
    meta: Meta,
    linker: LinkerConfig,
    classes: Classes,
) -> None:
    """Write the tables of a watch as `link` would make them of the same detections.

    Args:
        parts: all flushed: boxes, made, frames, paths, and kind0, kind1, ... of labelled tubes.
        target: folder of the set.
        video: name of the stream.
        facts: of the video.
        meta: of the detections.
        linker: that made the paths.
        classes: of the detector.

    Raises:
        DiskError: if the disk refuses.
    """
    named = pl.lit(video).alias("video")
    tubes, labels, n_tubes, n_labels = _tubes(parts, named, linker, classes)
    boxes, n_boxes = _boxes(parts, named, linker)
    frames = parts["frames"].scan().select(named, *parts["frames"].schema)
    tables = {
        "videos": (build_stream_row(video, facts).lazy(), 1),
        "frames": (frames, parts["frames"].rows),
        "boxes": (boxes, n_boxes),
        "tubes": (tubes, n_tubes),
        "tube_labels": (labels, n_labels),
    }
    path = target
    try:
        target.mkdir(parents=True, exist_ok=True)
        files = {}
        for table, (rows, count) in tables.items():
            if count:
                path = make_temporary_path(target / table)
                rows.sink_parquet(path, compression="zstd", maintain_order=True)
                files[table] = (path, count)
    except (OSError, pl.exceptions.ComputeError) as error:
        for left in target.glob(".roadaware-*.tmp"):
            left.unlink(missing_ok=True)
        if not isinstance(error, OSError) and "os error" not in str(error):
            raise
        raise build_disk_error(path, 1, error) from error
    notes = {**meta.notes, "linker": to_dict(linker)}
    register_table_files(target, replace(meta, notes=notes), files)


def build_stream_row(video: str, facts: Mapping[str, Any]) -> pl.DataFrame:
    """The videos table of one stream.

    Args:
        video: its name.
        facts: what is known of width_px, height_px, fps, n_frames and path.
    """
    kinds = {
        "video": pl.String,
        "width_px": pl.Int64,
        "height_px": pl.Int64,
        "fps": pl.Float32,
        "n_frames": pl.Int64,
        "path": pl.String,
    }
    row = {"video": video, **facts}
    held = {name: kind for name, kind in kinds.items() if row.get(name) is not None}
    return pl.DataFrame({name: [row[name]] for name in held}, schema=held)


def _boxes(parts: Mapping[str, Parts], named: pl.Expr, linker: LinkerConfig) -> tuple[pl.LazyFrame, int]:
    """Every detection with its tube; behind them what was interpolated."""
    owners = parts["paths"].scan().select("path", "tube")
    scored = ["scores"] if "scores" in parts["boxes"].schema else []
    columns = ["box", "video", "frame", *CORNERS, "score", *scored, "tube"]
    found = (
        parts["boxes"]
        .scan()
        .join(owners, on="path", how="left", maintain_order="left")
        .with_columns(named)
        .select(columns)
    )
    n = parts["boxes"].rows
    if linker.gaps != "interpolate":
        return found, n
    found = found.with_columns(interpolated=pl.lit(False))
    made = (
        parts["made"]
        .scan()
        .with_row_index("row")
        .with_columns(named, box=pl.col("row").cast(pl.Int64) + n, interpolated=pl.lit(True))
        .select([*columns, "interpolated"])
    )
    return pl.concat([found, made]), n + parts["made"].rows


def _tubes(
    parts: Mapping[str, Parts], named: pl.Expr, linker: LinkerConfig, classes: Classes
) -> tuple[pl.LazyFrame, pl.LazyFrame, int, int]:
    """Paths, behind them the labelled tubes kind after kind; and the labels; and how many there are."""
    squeezed = pl.lit(linker.gaps == "squeeze").alias("consecutive")
    spans = pl.List(pl.List(pl.Int64))
    whole = (
        parts["paths"]
        .scan()
        .select(
            "tube",
            named,
            pl.col("path").cast(pl.String).alias("name"),
            "start_frame",
            "end_frame",
            squeezed,
            "score",
            pl.lit(None, pl.Int64).alias("parent"),
            pl.lit(None, pl.String).alias("kind"),
            pl.lit(None, spans).alias("spans"),
        )
    )
    tables, labels, n = [whole], [], parts["paths"].rows
    for place, kind in enumerate(classes.kinds):
        held = parts[f"kind{place}"]
        rows = (
            held.scan()
            .with_row_index("row")
            .select(
                (pl.col("row").cast(pl.Int64) + n).alias("tube"),
                named,
                pl.lit(None, pl.String).alias("name"),
                "start_frame",
                "end_frame",
                squeezed,
                "score",
                "parent",
                pl.lit(kind).alias("kind"),
                pl.col("spans").arr.to_list().cast(spans),
                "label",
            )
        )
        tables.append(rows.drop("label"))
        labels.append(rows.select("tube", "kind", "label", "score"))
        n += held.rows
    empty = pl.LazyFrame(schema={"tube": pl.Int64, "kind": pl.String, "label": pl.Int64, "score": pl.Float64})
    return pl.concat(tables), pl.concat([empty, *labels]), n, n - parts["paths"].rows


_ABOUT = "about.json"
# A crash loses what is not written yet: at most this many boxes, frames or seconds.
_ROWS, _FRAMES, _EVERY_S = 1 << 14, 1 << 12, 30.0


class TableWriter:
    """Writes tables part by part and joins the parts at the end to the tables that `link` would make.

    Args:
        folder: of the parts; made, must not exist.
        classes: of the detector.
        video: name of the stream.
        linker: that made the paths.
        clock: parts are written now and then, also when little happens.

    Raises:
        DiskError: if the disk refuses.
    """

    def __init__(
        self, folder: Path, classes: Classes, video: str, linker: LinkerConfig, clock: Clock
    ) -> None:
        self.folder, self.video, self._classes, self._linker, self._clock = (
            folder,
            video,
            classes,
            linker,
            clock,
        )
        self._kinds, self._flushed_s = Layout(classes.kinds), clock.now_s()
        self._begin_folder()
        scored = {"scores": pl.Array(pl.Float32, self._kinds.width)} if self._kinds.width else {}
        av = {"scores": pl.Array(pl.Float32, len(classes.av_labels))} if classes.av_labels else {}
        schemas = _SCHEMAS | {"boxes": _BOX | scored, "made": _MADE | scored, "frames": _FRAME | av}
        labelled = {f"kind{place}": _LABELLED for place in range(len(classes.kinds))}
        self.parts = {name: Parts(folder, name, schema) for name, schema in (schemas | labelled).items()}

    def add(self, seen: Seen) -> None:
        """Add the results of a frame.

        Raises:
            DiskError: if the disk refuses.
        """
        found, n, frame = seen.found, len(seen.found), seen.frame.number
        columns: dict[str, Any] = {
            "box": self.parts["boxes"].rows + np.arange(n),
            "frame": np.full(n, frame),
            "score": found.agentness,
            "scores": found.scores,
            "path": seen.numbers,
            **{side: found.boxes[:, k] for k, side in enumerate(CORNERS)},
        }
        self.parts["boxes"].add(columns)
        moment = {"frame": np.array([frame]), "t_s": np.array([seen.time_s], np.float32)}
        self.parts["frames"].add({**moment, "scores": found.av[None]})
        self.parts["times"].add({"frame": np.array([frame]), "ready_s": np.array([seen.ready_s])})
        self.close_paths(seen.ended)
        self._flush_now_and_then()

    def close_paths(self, paths: Sequence[AgentPath]) -> None:
        """Take paths that are over."""
        for path in build_closed_paths(paths, self._linker, self._kinds):
            self._close(path)

    def finish(self, target: Path, facts: dict[str, Any]) -> None:
        """Join everything to saved Predictions, with the times beside them, and remove the parts.

        Args:
            target: folder of the set; must not hold one.
            facts: of the video: width_px, height_px, fps, n_frames, path.

        Raises:
            DiskError: if the disk refuses; the parts are still there.
        """
        for parts in self.parts.values():
            parts.flush()
        meta = build_predictions({}, self._classes).meta
        join_parts(self.parts, target, self.video, facts, meta, self._linker, self._classes)
        write_rows(self.parts["times"].scan(), target.with_name(TIMES))
        shutil.rmtree(self.folder, ignore_errors=True)

    def _begin_folder(self) -> None:
        try:
            self.folder.mkdir()
        except OSError as error:
            raise build_disk_error(self.folder, 1, error) from error
        about = {
            "video": self.video,
            "kinds": {kind: list(labels) for kind, labels in self._classes.kinds.items()},
            "av_labels": list(self._classes.av_labels),
            "linker": to_dict(self._linker),
            "advice": self._classes.advice.as_plain(),
        }
        write_atomically(self.folder / _ABOUT, json.dumps(about).encode())

    def _close(self, path: ClosedPath) -> None:
        tube = self.parts["paths"].rows
        whole = {
            "path": path.number,
            "tube": tube,
            "start_frame": path.start_frame,
            "end_frame": path.end_frame,
            "score": path.score,
        }
        self.parts["paths"].add({name: np.array([value]) for name, value in whole.items()})
        for place, kind in enumerate(self._classes.kinds):
            rows = [
                (tube, t.label, t.start_frame, t.end_frame, (t.span,), t.score)
                for t in path.tubes
                if t.kind == kind
            ]
            if rows:
                columns = zip(_LABELLED, zip(*rows, strict=True), strict=True)
                self.parts[f"kind{place}"].add({name: np.array(values) for name, values in columns})
        made = np.flatnonzero(path.rows < 0)
        if len(made):
            self._make(path, made, tube)

    def _make(self, path: ClosedPath, made: Any, tube: int) -> None:
        """The interpolated boxes of a path."""
        self.parts["made"].add(
            {
                "frame": path.frames[made],
                "tube": np.full(len(made), tube),
                "score": path.agentness[made].astype(np.float32),
                "scores": path.scores[made],
                **{side: path.boxes[made, k].astype(np.float32) for k, side in enumerate(CORNERS)},
            }
        )

    def _flush_now_and_then(self) -> None:
        now_s = self._clock.now_s()
        full = self.parts["boxes"].waiting >= _ROWS or self.parts["frames"].waiting >= _FRAMES
        if full or now_s - self._flushed_s >= _EVERY_S:
            for parts in self.parts.values():
                parts.flush()
            self._flushed_s = now_s


_SIDES = dict.fromkeys(CORNERS, pl.Float32)
_BOX = {
    "box": pl.Int64,
    "frame": pl.Int64,
    **_SIDES,
    "score": pl.Float32,
    "path": pl.Int64,
}
_MADE = {"frame": pl.Int64, "tube": pl.Int64, **_SIDES, "score": pl.Float32}
_FRAME = {"frame": pl.Int64, "t_s": pl.Float32}
_LABELLED = {
    **dict.fromkeys(("parent", "label", "start_frame", "end_frame"), pl.Int64),
    "spans": pl.Array(pl.Int64, (1, 2)),
    "score": pl.Float64,
}
_SCHEMAS: dict[str, Any] = {
    "times": READY,
    "paths": {
        **dict.fromkeys(("path", "tube", "start_frame", "end_frame"), pl.Int64),
        "score": pl.Float64,
    },
}


def load_interrupted_run(folder: Path) -> Predictions:
    """The linked tables out of the parts that a watch left behind that was killed.

    Raises:
        InputError: if there are no parts.
    """
    try:
        about = json.loads((folder / _ABOUT).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError("expected what a watch left behind", where=str(folder)) from error
    linker = from_dict(LinkerConfig, about["linker"])
    kinds = {kind: tuple(labels) for kind, labels in about["kinds"].items()}
    classes = Classes(kinds, tuple(about["av_labels"]), parse_advice(about.get("advice"), str(folder)))
    boxes = open_part_rows(folder, "boxes", _BOX).drop("path").collect()
    frames = open_part_rows(folder, "frames", _FRAME).collect()
    video = pl.lit(about["video"]).alias("video")
    predictions = Predictions(
        videos=build_stream_row(about["video"], {"n_frames": max(frames["frame"].to_list(), default=-1) + 1}),
        boxes=boxes.with_columns(video),
        frames=frames.with_columns(video),
        meta=build_predictions({}, classes).meta,
    )
    return link(add_ready_times(predictions, open_part_rows(folder, "times", READY).collect()), linker)
