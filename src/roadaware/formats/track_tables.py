"""Tracks of people from wherever they come: a csv or Parquet table of a tracker, MOT text, COCO annotations, saved tables."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from roadaware.datasets.issues import Findings
from roadaware.datasets.loading import open_dataset
from roadaware.datasets.tracker_csv import (
    LARGEST_SHARE,
    PLACES,
    describe_columns,
    find_columns,
    list_unread,
    name_columns,
    parse_boxes,
)
from roadaware.errors import FindingsError, InputError, UsageError
from roadaware.formats.coco import read_annotations
from roadaware.formats.mot import read_sequences, read_tracks
from roadaware.io.csv import read_cells
from roadaware.io.sources import to_printable
from roadaware.scenes.schema import CORNERS, PEOPLE
from roadaware.scenes.store import is_saved, open_predictions, open_scenes, scan_tables
from roadaware.scenes.tables import Meta, Predictions, Scenes, filter_boxes

_log = logging.getLogger("roadaware")
T = TypeVar("T", Scenes, Predictions)

_FILES_OF_TRACKERS = ("tracks", "MOT")
"""What `meta.dataset` says of tracks that a tracker wrote, whose boxes tremble."""
_MOST = 0.5
_LONGEST_STEP_S = 5.0
"""From one box of somebody to the next: times further apart are no seconds, or nobody is followed."""
_LATEST_S = 1e6
"""Later times are those of a calendar; 1e6 seconds are eleven days of video."""
_ROOM, _MANY = 0.05, 0.1
"""Boxes reach out of an image by so much of its side, and so many of them may, before its size is doubted."""
_TABLES, _MOT, _JSON = (".csv", ".parquet"), (".txt",), (".json",)


def is_annotated(tables: Scenes | Predictions) -> bool:
    """Whether tracks are those of annotators: a dataset, and no file of a tracker."""
    return isinstance(tables, Scenes) and tables.meta.dataset not in _FILES_OF_TRACKERS


@dataclass(frozen=True)
class TrackSource:
    """What a file of tracks does not say.

    Args:
        fps: frames a second of the video; needed where a file has frames and no times.
        size_px: width and height of the image.
        columns: what a table holds (a key of `PLACES`) to the column that has it, where names are not guessed.
    """

    fps: float | None = None
    size_px: tuple[int, int] | None = None
    columns: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.fps is not None and not (math.isfinite(self.fps) and 0 < self.fps <= 1000):
            raise UsageError(f"a video has more than 0 and up to 1000 frames a second, not {self.fps:g}")
        if self.size_px is not None and min(self.size_px) < 1:
            raise UsageError(f"an image has at least one pixel in each direction, not {self.size_px}")
        unknown = set(self.columns or ()) - set(PLACES)
        if unknown:
            raise UsageError(
                f"columns are named for {', '.join(PLACES)}; not for {', '.join(sorted(unknown))}"
            )


def open_tracks(
    path: Path, source: TrackSource | None = None, *, reader: str | None = None, strict: bool = False
) -> Scenes | Predictions:
    """Tables with tracks, from any place that has some.

    Args:
        path: the folder of a `watch`, tables that `link` or `read -o` saved, a dataset, or what `read_track_file` takes.
        source: what a file does not say itself.
        reader: of a dataset.
        strict: a row that cannot be taken is an error.

    Raises:
        UsageError, InputError, FindingsError: as `read_track_file` and readers raise them.
    """
    source = source or TrackSource()
    if reader is not None:
        return _fill_videos(open_dataset(reader, path), source)
    for place in (path / "predictions", path):
        if is_saved(place):
            kind, *_ = scan_tables(place)
            if kind == Predictions.__name__:
                return _fill_videos(open_predictions(place), source)
            return _fill_videos(open_scenes(place), source)
    return read_track_file(path, source, strict=strict)


def read_track_file(path: Path, source: TrackSource | None = None, *, strict: bool = False) -> Scenes:
    """Tracks of a file or of a folder of MOT sequences, as scenes.

    Args:
        path: a csv or Parquet table with a header, MOT text (`.txt`), COCO annotations with `track_id` (`.json`), or a
            folder of MOT sequences.
        source: what it does not say itself.
        strict: a row that cannot be taken is an error.

    Raises:
        UsageError: if it is none of these, or a column has to be named.
        InputError: if it cannot be read, or has no tracks.
        FindingsError: under `strict`, if a row was refused.
    """
    source = source or TrackSource()
    kind = path.suffix.lower()
    if path.is_dir():
        scenes = read_sequences(path, strict=strict)
        # What MOT marks as not to be considered is nobody's track.
        scenes = filter_boxes(scenes, ~pl.col("ignore").fill_null(value=False))
    elif kind in _MOT:
        found = read_tracks({path.stem: path}, unknown_score=1.0, strict=strict)
        scenes = Scenes(videos=found.videos, boxes=found.boxes.drop("score"), tubes=found.tubes.drop("score"),
                        rejected=found.rejected, meta=Meta("MOT"))  # fmt: skip
    elif kind in _JSON:
        scenes = read_annotations(path, strict=strict)
    elif kind in _TABLES:
        scenes = _read_table(path, source, strict=strict)
    else:
        raise UsageError(
            f"{to_printable(str(path))} is no table of tracks (.csv, .parquet), MOT text (.txt), COCO annotations (.json), "
            "saved tables, or folder of a watch; name a dataset by --reader"
        )
    # The scenes with the rate and size of their videos, which predictors need
    stated = "width_px" in scenes.videos.columns and not scenes.videos["width_px"].null_count()
    scenes, where = _fill_videos(scenes, source), to_printable(str(path))
    if scenes.videos["width_px"].null_count() or scenes.videos["height_px"].null_count():
        raise UsageError(
            f"{where} does not say how large its images are, which predictors need: --size 1920x1080"
        )
    if scenes.videos["fps"].null_count():
        raise UsageError(
            f"{where} does not say how many frames a second it has, which predictors need: --fps 30"
        )
    if source.size_px is not None and not stated and len(scenes.boxes):
        _warn_of_size(scenes.boxes, source.size_px, where)
    if (
        scenes.boxes.is_empty()
        or "tube" not in scenes.boxes.columns
        or scenes.boxes["tube"].null_count() == len(scenes.boxes)
    ):
        raise InputError("there are no tracks: no box has the id of somebody", where=to_printable(str(path)))
    return scenes


def _read_table(path: Path, source: TrackSource, *, strict: bool) -> Scenes:
    """A table with a row for each box."""
    where = to_printable(str(path))
    rows = read_cells(path, header=True)
    try:
        first = next(rows)
    except StopIteration:
        raise InputError("expected a header and rows of boxes, found nothing", where=where) from None
    header, named = name_columns(first[1], source.columns or {}, where)
    found = find_columns(header, source.columns or {}, where, tracked=True)
    found = {
        what: n for what, n in found.items() if what != "score" and not (what == "t" and "frame" in found)
    }
    kept = [*([] if named else [first]), *rows]
    findings = Findings()
    findings.read["boxes"] += len(kept)
    text = {
        what: [cells[place].strip() if place < len(cells) else "" for _, cells in kept]
        for what, place in found.items()
    }
    table = pl.DataFrame({"line": [line for line, _ in kept]}, schema={"line": pl.Int64}).with_columns(
        **{what: pl.Series(values, dtype=pl.String) for what, values in text.items()}
    )
    if "video" not in found:
        table = table.with_columns(video=pl.lit(path.stem))
    if "frame" not in found and source.fps is None:
        raise UsageError(
            "the table has times and no frames: say how many frames a second they are counted in (--fps)"
        )
    table = parse_boxes(_count_times(table, where) if "t" in found else table, source.fps)
    again = ~pl.struct("video", "frame", "track").is_first_distinct()
    table = table.with_columns(
        reason=pl.coalesce(
            pl.when(pl.col("track").is_null()).then(pl.lit("no id says who it is")),
            "reason",
            pl.when(again).then(pl.lit("a second box of the same id in its frame")),
            pl.lit(""),
        )
    )
    refused = table.filter(pl.col("reason") != "")
    findings.reject_rows(
        "boxes",
        refused.select(
            item=pl.format("line {}", "line"), reason="reason", file=pl.lit(where), line=pl.col("line")
        ),
    )
    if strict and len(refused):
        listed = "; ".join(
            f"line {line}: {why}" for line, why in refused.select("line", "reason").head(5).iter_rows()
        )
        raise FindingsError(f"{where}: {len(refused):,} rows were refused: {listed}")
    table = table.filter(pl.col("reason") == "")
    table, contradicting = _keep_people(table, where)
    if table.is_empty():
        raise InputError(
            f"none of {len(kept):,} rows is a box of a person", where=where,
            hint=f"the first reason: {refused['reason'][0]}" if len(refused) else "look at the column of classes",
        )  # fmt: skip
    corners = table.select(CORNERS).to_numpy()
    if float(abs(corners).max()) <= LARGEST_SHARE:
        if source.size_px is None:
            raise UsageError(
                f"{where} has boxes in parts of the image, none beyond {LARGEST_SHARE}: say how large it is "
                "(--size 1920x1080)"
            )
        _log.warning("boxes are in parts of the image, and were brought to %dx%d pixels", *source.size_px)
        sides = [*source.size_px, *source.size_px]
        table = table.with_columns(pl.col(name) * side for name, side in zip(CORNERS, sides, strict=True))
    table = table.with_columns(box=pl.int_range(pl.len(), dtype=pl.Int64))
    tubes = table.select("video", id="track").unique(maintain_order=True)
    tubes = tubes.with_columns(tube=pl.int_range(pl.len(), dtype=pl.Int64))
    table = table.join(
        tubes, left_on=["video", "track"], right_on=["video", "id"], how="left", maintain_order="left"
    )
    notes: dict[str, Any] = {"columns": describe_columns(header, found)}
    if unread := list_unread(header, found):
        notes["columns_not_read"] = unread
    if contradicting:
        notes["contradicting_classes"] = contradicting
    return Scenes(
        videos=table.select("video").unique(maintain_order=True),
        boxes=table.select("box", "video", "frame", "tube", *CORNERS),
        tubes=tubes.select("tube", "video", name="id"),
        rejected=findings.table(),
        meta=Meta("tracks", rows_read=dict(findings.read), notes=notes),
    )


def _count_times(table: pl.DataFrame, where: str) -> pl.DataFrame:
    """The rows with times in seconds from the first of their video, where they are those of a calendar.

    Raises:
        InputError: if a track steps by so much time that they are no seconds.
    """
    number = pl.col("t").cast(pl.Float64, strict=False)
    times = table.with_columns(number=number).filter(pl.col("number").is_finite())
    step = times.sort("video", "id", "number").select(pl.col("number").diff().over("video", "id"))["number"]
    usual = step.filter(step > 0).median()
    if isinstance(usual, float) and usual > _LONGEST_STEP_S:
        raise InputError(
            f"times of a track are {usual:g} apart: seconds are expected", where=where,
            hint="divide milliseconds by 1,000, or name the column as frames: --columns frame=...",
        )  # fmt: skip
    lowest = times["number"].min()
    if not isinstance(lowest, float) or lowest <= _LATEST_S:
        return table
    _log.warning("%s: times are counted from the first of each video, %.3f", where, lowest)
    first = number.filter(number.is_finite()).min().over("video")
    return table.with_columns(t=pl.coalesce((number - first).cast(pl.String), "t"))


def _keep_people(table: pl.DataFrame, where: str) -> tuple[pl.DataFrame, str]:
    """The rows of people, where a column of words says who is one; all of them where it has numbers.

    A track whose rows are called different things is what most of them say.

    Returns:
        the rows, and how many tracks contradict themselves, in words; empty where none does.
    """
    words = table["label"].str.to_lowercase()
    if not words.is_in([""]).not_().any():
        return table, ""
    if not words.is_in(list(PEOPLE)).any():
        known = ", ".join(words.unique(maintain_order=True).head(8).to_list())
        _log.warning(
            "%s: no class is one of people (%s); every track is asked about", where, to_printable(known, 200)
        )
        return table, ""
    share = words.is_in(list(PEOPLE)).cast(pl.Float64).alias("share")
    table = table.with_columns(share).with_columns(pl.col("share").mean().over("video", "track"))
    mixed = table.filter((pl.col("share") > 0) & (pl.col("share") < 1))
    contradicting = ""
    if len(mixed):
        tracks = mixed.select("video", "track", "share").unique()
        people = int((tracks["share"] >= _MOST).sum())
        contradicting = (
            f"{len(tracks):,} tracks are called people in some rows and other things in others: {people:,} are taken for "
            f"people by most of their rows, {len(tracks) - people:,} are not"
        )
    kept = table.filter(pl.col("share") >= _MOST).drop("share")
    if len(kept) < len(table):
        _log.info("%s: %d rows that are no people are left out", where, len(table) - len(kept))
    return kept, contradicting


def _fill_videos(tables: T, source: TrackSource) -> T:
    """The tables with the rate and size of their videos where only `source` says them."""
    videos = tables.videos
    for column in ("width_px", "height_px"):
        if column not in videos.columns:
            videos = videos.with_columns(pl.lit(None, pl.Int64).alias(column))
    if "fps" not in videos.columns:
        videos = videos.with_columns(fps=pl.lit(None, pl.Float64))
    if source.size_px is not None:
        width, height = source.size_px
        videos = videos.with_columns(
            width_px=pl.col("width_px").fill_null(width), height_px=pl.col("height_px").fill_null(height)
        )
    if source.fps is not None:
        videos = videos.with_columns(fps=pl.col("fps").fill_null(source.fps))
    return tables.with_tables(videos=videos)


def _warn_of_size(boxes: pl.DataFrame, size_px: tuple[int, int], where: str) -> None:
    """Say that boxes do not suit the size of the image that somebody stated."""
    width, height = size_px
    beyond = (pl.col("x2_px") > width * (1 + _ROOM)) | (pl.col("y2_px") > height * (1 + _ROOM))
    out = int(boxes.select(beyond.sum()).item())
    right, lower = boxes.select(pl.col("x2_px").max(), pl.col("y2_px").max().alias("y")).row(0)
    if out > _MANY * len(boxes):
        what = f"{out:,} of {len(boxes):,} boxes reach out of an image of {width}x{height}"
    elif right <= width / 2 and lower <= height / 2:
        what = (
            f"no box of {len(boxes):,} reaches beyond {right:.0f}x{lower:.0f} of an image of {width}x{height}"
        )
    else:
        return
    _log.warning("%s: %s: is --size that of the image in whose pixels the boxes are?", where, what)
