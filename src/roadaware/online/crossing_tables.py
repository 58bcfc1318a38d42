"""Tables of crossing forecasts: of a running watch, and of boxes in tables."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError
from roadaware.io.files import build_disk_error
from roadaware.online.crossing import Follower
from roadaware.online.forecast_event import Outlook, OutlookRule
from roadaware.online.tables import Parts, write_rows
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

if TYPE_CHECKING:
    from roadaware.online.crossing_forecaster import Foresight
    from roadaware.online.watcher import Seen

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

        Args:
            target: of the file.

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
