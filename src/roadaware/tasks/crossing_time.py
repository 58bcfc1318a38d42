"""When somebody begins to cross: moments of tracks with the time that is left, or that is known to be left at least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.errors import InputError
from roadaware.models.crossing.inputs import InputSet
from roadaware.scenes.sampling import EventProtocol, list_split_videos
from roadaware.scenes.tables import Scenes
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.crossing_tracks import PUBLISHED_FPS, SPLIT, Moments, cut_moments, list_newest

EDGES_S: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0)
"""Ends of the spans in which an event is told apart; behind the last one it is `later`."""
_NEVER_S = 60.0
_CROSSING = "crossing"
_ANNOTATED = "annotated"


def name_spans(edges_s: tuple[float, ...] = EDGES_S) -> tuple[str, ...]:
    """The labels of a predictor of the time.

    >>> name_spans((1.0, 2.0))
    ('0 to 1 s', '1 to 2 s', 'later')
    """
    starts = (0.0, *edges_s[:-1])
    return (*(f"{low:g} to {high:g} s" for low, high in zip(starts, edges_s, strict=True)), "later")


def mark_spans(time_s: Floats, event: Bools, edges_s: tuple[float, ...] = EDGES_S) -> Bools:
    """(n, k) the spans that may hold the event: the one that does, or of a track that ends, that of its end and all later.

    Args:
        time_s: (n,) to the event, or to the end of what is known.
        event: (n,) which it is.
        edges_s: ends of spans.

    >>> mark_spans(np.array([0.7, 0.7]), np.array([True, False]), (0.5, 1.0, 2.0)).astype(int).tolist()
    [[0, 1, 0, 0], [0, 1, 1, 1]]
    """
    span = np.searchsorted(np.asarray(edges_s), time_s, side="left")
    places = np.arange(len(edges_s) + 1)
    return np.where(event[:, None], places == span[:, None], places >= span[:, None])


@dataclass(frozen=True, eq=False)
class TimedTracks:
    """Moments of the people of a split, n of them.

    Args:
        inputs: of each moment.
        table: `video`, `name`, `frame`, `t_s` and the newest box of each.
        time_s: (n,) until the person begins to cross, or until nothing more is known of it.
        event: (n,) whether it crosses then.
        person: (n,) who, from 0.
        people: video and name of each.
        event_s: (people,) when each begins to cross, on the clock of its video; NaN for nobody.
        hours: of the videos.
        left_out: why people and moments are not among them, with how many.
    """

    inputs: InputSet
    table: pl.DataFrame
    time_s: Floats
    event: Bools
    person: Ints
    people: tuple[tuple[str, str], ...]
    event_s: Floats
    hours: float
    left_out: dict[str, int]

    def __len__(self) -> int:
        return len(self.time_s)

    @property
    def units(self) -> npt.NDArray[np.generic]:
        """(people,) names for intervals."""
        return np.array([f"{video} {name}" for video, name in self.people])

    @property
    def videos(self) -> npt.NDArray[np.generic]:
        """(people,) the video of each."""
        return np.array([video for video, _ in self.people])


def collect_times(
    scenes: Scenes, protocol: EventProtocol, split: str | None, moments: Moments, names: tuple[str, ...]
) -> TimedTracks:
    """Every moment of a split at which somebody can be asked about, without knowledge of the event.

    Who crosses is asked up to the event, whatever its distance; who does not, and who leaves the picture, until the last box.
    Of whom nothing is said (bystanders of JAAD and of simulated streets), nobody saw cross: censored at the last box.
    Left out are people said to cross whose event nobody annotated, and moments whose newest box is tagged as crossing: there
    the answer is on view.

    Args:
        scenes: with `crossing`, `event_frame` and `event_source` of tubes.
        protocol: says which videos a split has.
        split: train, val or test; None for all videos.
        moments: when.
        names: of inputs.

    Raises:
        InputError: if the split has nobody, or tubes do not say who crosses when.
    """
    needed = ("name", "crossing", "event_frame", "event_source")
    if missing := [column for column in needed if column not in scenes.tubes.columns]:
        raise InputError(
            f"the time of crossing needs the tubes' {', '.join(missing)}; they have {scenes.tubes.columns}"
        )
    held = scenes if split is None else scenes.only(list_split_videos(scenes, protocol, split))
    asked = cut_moments(held, moments)
    fps = _read_fps(held)
    table = list_newest(asked).with_row_index("row")
    truth = held.tubes.select(
        pl.col("video").cast(pl.String), pl.col("name").cast(pl.String), pl.col("crossing").cast(pl.String),
        "event_frame", pl.col("event_source").cast(pl.String),
    ).unique(["video", "name"], keep="first")  # fmt: skip
    tracked = held.boxes.filter(pl.col("tube").is_not_null()).join(
        held.tubes.select("tube", pl.col("name").cast(pl.String)), on="tube"
    )
    last = tracked.group_by(pl.col("video").cast(pl.String), "name").agg(last=pl.col("frame").max())
    table = table.join(truth, on=["video", "name"], how="left", maintain_order="left")
    table = table.join(last, on=["video", "name"], how="left", maintain_order="left")
    crosses = pl.col("crossing") == _CROSSING
    known = crosses & pl.col("event_frame").is_not_null() & (pl.col("event_source") == _ANNOTATED)
    end = pl.when(known).then(pl.col("event_frame")).otherwise(pl.col("last"))
    table = table.with_columns(
        known=known.fill_null(value=False), crosses=crosses.fill_null(value=False),
        time_s=(end - pl.col("frame")) / fps,
    )  # fmt: skip
    seen = _is_crossing_seen(asked.scenes, table)
    drops = {
        "moments of people said to cross whose event is not annotated": table["crosses"] & ~table["known"],
        "moments at or behind the event, or at the last box": table["time_s"] <= 0,
        "moments that show the person crossing": seen,
    }
    kept, left_out = pl.repeat(value=True, n=len(table), eager=True), {}
    for why, rows in drops.items():
        left_out[why] = int((kept & rows).sum())
        kept &= ~rows
    table = table.filter(kept)
    if table.is_empty():
        raise InputError(f"nobody of split '{split or 'all'}' can be asked when: {left_out}")
    inputs = build_inputs(asked.scenes, SPLIT, list(names)).some(table["row"].cast(pl.Int64).to_numpy())
    keys = table.select("video", "name").unique(maintain_order=True).with_row_index("person")
    whose = table.join(keys, on=["video", "name"], how="left", maintain_order="left")["person"].cast(pl.Int64)
    begins = table.group_by("video", "name", maintain_order=True).agg(
        pl.col("known").first(), pl.col("event_frame").first()
    )
    begins = keys.join(begins, on=["video", "name"], how="left", maintain_order="left")
    event_s = np.where(
        begins["known"], begins["event_frame"].cast(pl.Float64).fill_null(np.nan).to_numpy() / fps, np.nan
    )
    frames = held.videos["n_frames"].sum() if "n_frames" in held.videos.columns else 0
    hours = (
        float(frames or 0) / fps / 3600
        or float(table.group_by("video").agg(pl.col("t_s").max())["t_s"].sum()) / 3600
    )
    people = tuple(zip(keys["video"].to_list(), keys["name"].to_list(), strict=True))
    return TimedTracks(
        inputs, table.select("video", "name", "frame", "t_s", "x1_px", "y1_px", "x2_px", "y2_px"),
        table["time_s"].to_numpy(), table["known"].to_numpy(), whose.to_numpy(), people, event_s, hours, left_out,
    )  # fmt: skip


def _read_fps(scenes: Scenes) -> float:
    lines = scenes.videos["fps"].drop_nulls().unique().to_list() if "fps" in scenes.videos.columns else []
    if len(lines) > 1:
        raise InputError(f"videos of several frame rates ({sorted(lines)[:4]}) are not asked together")
    fps = float(lines[0]) if lines else PUBLISHED_FPS.get(scenes.meta.dataset.lower(), 0.0)
    if not fps:
        raise InputError("the frame rate of the videos is unknown, and the time of crossing is in seconds")
    return fps


def _is_crossing_seen(asked: Scenes, table: pl.DataFrame) -> pl.Series:
    """(n,) whether the newest box of a moment is tagged as crossing."""
    if "cross" not in asked.boxes.columns:
        return pl.repeat(value=False, n=len(table), eager=True)
    tags = asked.boxes.select("tube", "frame", seen=pl.col("cross").cast(pl.String) == _CROSSING)
    newest = asked.samples.select("tube", frame=pl.col("end_frame") - 1)
    return newest.join(tags, on=["tube", "frame"], how="left", maintain_order="left")["seen"].fill_null(
        value=False
    )


def estimate_lane_time(given: InputSet, rate_fps: float, middle: float = 1 / 3) -> Floats:
    """(n,) seconds until a box that goes on as observed enters the middle of the image.

    0 inside, 60 where it never does. Nobody annotated where the kerb is: the middle stands for the way of the vehicle.

    Args:
        given: n moments with the input `centre`, whose first column is x in parts of the image.
        rate_fps: of its steps.
        middle: its width in parts of the image (default: a third).
    """
    x = np.asarray(given.columns["centre"].take(np.arange(len(given))))[..., 0].astype(np.float64)
    speed = (x[:, -1] - x[:, 0]) * rate_fps / max(1, x.shape[1] - 1)
    centre = x[:, -1]
    low, high = (1 - middle) / 2, (1 + middle) / 2
    away = np.where(centre < low, low - centre, np.where(centre > high, centre - high, 0.0))
    towards = np.where(centre < low, speed, -speed)
    with np.errstate(divide="ignore", invalid="ignore"):
        time = np.where(away == 0, 0.0, np.where(towards > 1e-6, away / towards, np.inf))
    return np.minimum(time, _NEVER_S)
