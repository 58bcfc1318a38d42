"""A simulated clock in whole nanoseconds: when frames are taken, worked on, and answered."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Ints
from roadaware.errors import InputError, UsageError
from roadaware.scenes.tables import Scenes

Latency = float | Mapping[str, Sequence[float]]
Scheduler = Literal["recorded", "every", "latest", "queue"]

SECOND = 1_000_000_000
NEVER = 1 << 61
"""An instant behind all others; whatever takes longer than 73 years is not awaited."""
_MICROSECOND = 1_000
_LARGEST_DENOMINATOR = 1001


@dataclass(frozen=True)
class StreamingConfig:
    """What the clock does.

    Args:
        scheduler: `recorded`, outputs are ready when the predictions say (`ready_s`, in seconds of the
            stream); `every`, every frame is worked on from the moment it is taken, as if by as many workers
            as it needs; `latest`, one worker takes the newest frame when it is free and skips the others;
            `queue`, one worker takes all frames one after the other.
        newest: of the outputs that are ready, the one that was ready last holds (`finished`), or the one of
            the latest frame (`taken`); they differ where a later frame was ready before an earlier one.
        eta_s: outputs must be ready so many seconds before the instant they are judged at.
        times: frames are taken at frame / fps (`fps`), or when the truth's frames say (`t_s`).
        fps: frames per second, for videos that do not say.
    """

    scheduler: Scheduler = "recorded"
    newest: Literal["finished", "taken"] = "finished"
    eta_s: float = 0.0
    times: Literal["fps", "t_s"] = "fps"
    fps: float | None = None

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a choice is unknown or a number is out of range.
        """
        if self.scheduler not in get_args(Scheduler):
            raise UsageError(f"scheduler should be one of {get_args(Scheduler)}; got {self.scheduler!r}")
        if self.newest not in ("finished", "taken") or self.times not in ("fps", "t_s"):
            raise UsageError(f"newest and times cannot be {self.newest!r} and {self.times!r}")
        if not 0 <= self.eta_s < math.inf or (self.fps is not None and not 0 < self.fps < math.inf):
            raise UsageError(f"eta_s is at least 0 and fps above it; got {self.eta_s} and {self.fps}")


def instants(scenes: Scenes, frames: Mapping[str, Ints], config: StreamingConfig) -> dict[str, Ints]:
    """(n,) for each video: the nanosecond, rounded down, at which each of its frames is taken.

    Args:
        scenes: whose `videos` (fps) or `frames` (t_s) tell the time.
        frames: (n,) for each video its frames, ascending.
        config: `times` and `fps`.

    Raises:
        InputError: if the time of a frame is not known, or time does not go on.
    """
    if config.times == "t_s":
        if frames and "t_s" not in scenes.frames.columns:
            raise InputError("the frames have no times t_s", hint="use StreamingConfig(times='fps')")
        told = by_video(scenes.frames, "frame", "t_s") if frames else {}
        return {video: _told(video, asked, told.get(video)) for video, asked in frames.items()}
    rates: dict[str, float | None] = {}
    if "fps" in scenes.videos.columns:
        rates = dict(scenes.videos.select(pl.col("video").cast(pl.String), "fps").iter_rows())
    found = {}
    for video, asked in frames.items():
        known = rates.get(video)
        found[video] = _ticks(video, asked, config.fps if known is None else known)
    return found


def by_video(table: pl.DataFrame, *columns: str) -> dict[str, pl.DataFrame]:
    """The rows of each video that has some, in their order, with some of the columns."""
    parts = table.select(pl.col("video").cast(pl.String), *columns)
    return {str(video): part.drop("video") for (video,), part in parts.group_by("video", maintain_order=True)}


def _ticks(video: str, frames: Ints, rate: float | None) -> Ints:
    """When each frame is taken, at so many frames a second."""
    if rate is None or not rate > 0:
        raise InputError(
            f"it is not known how many frames a second video {video} has",
            hint="give StreamingConfig(fps=...), or times='t_s' where the frames have their times",
        )
    # 29.97 in 32 bits is meant as 30000/1001: no usual rate has a larger denominator.
    exact = Fraction(float(rate)).limit_denominator(_LARGEST_DENOMINATOR)
    whole, rest = np.divmod(frames * exact.denominator, exact.numerator)
    ticks: Ints = whole * SECOND + rest * SECOND // exact.numerator
    return ticks


def _told(video: str, frames: Ints, rows: pl.DataFrame | None) -> Ints:
    """When each frame is taken, as the rows of its video (frame, t_s) tell."""
    asked = pl.DataFrame({"frame": frames})
    if rows is None:
        rows = asked.clear().with_columns(t_s=pl.lit(None, pl.Float64))
    asked = asked.join(rows, on="frame", how="left", maintain_order="left")
    if asked["t_s"].null_count():
        lost = asked.filter(pl.col("t_s").is_null())["frame"].head(5).to_list()
        raise InputError(f"video {video}: the times of frames {lost} are not known")
    found = nanoseconds(asked["t_s"].to_numpy(), "t_s")
    if (np.diff(found) <= 0).any():
        late = int(frames[1:][np.diff(found) <= 0][0])
        raise InputError(f"video {video}: frame {late} is not taken after the frame before it")
    return found


def nanoseconds(seconds: Any, what: str) -> Ints:
    """Seconds as whole nanoseconds, rounded down; what takes too long is NEVER.

    Raises:
        InputError: if one is negative or no number.
    """
    values = np.asarray(seconds, dtype=np.float64)
    if np.isnan(values).any() or (values < 0).any():
        raise InputError(f"{what} are seconds from 0 on; found {values[~(values >= 0)][:5].tolist()}")
    ticks = np.floor(np.minimum(values * SECOND, float(NEVER)))
    return ticks.astype(np.int64)


def answered(
    video: str, frames: Ints, taken: Ints, latency: Latency | None, scheduler: Scheduler
) -> tuple[Ints, Ints]:
    """The places of the frames that are worked on, and the nanosecond at which each is answered.

    Args:
        video: named in errors.
        frames: (n,) frames, ascending.
        taken: (n,) when each was taken.
        latency: seconds of work for a frame; or for each video those of its frames, by frame.
        scheduler: `every`, `latest` or `queue`.

    Raises:
        UsageError: if there is no latency for the frames.
        InputError: if a latency is negative or no number.
    """
    work = _work(video, frames, latency)
    if scheduler == "every":
        return np.arange(len(frames)), np.minimum(taken + work, NEVER)
    return _one_worker(taken.tolist(), work.tolist(), skips=scheduler == "latest")


def _work(video: str, frames: Ints, latency: Latency | None) -> Ints:
    if latency is None:
        raise UsageError("this scheduler needs a latency: seconds, or a list of seconds for each video")
    if not isinstance(latency, Mapping):
        return np.repeat(nanoseconds([latency], "latencies"), len(frames))
    listed = latency.get(video, ())
    if len(frames) and len(listed) <= frames[-1]:
        raise UsageError(f"{len(listed)} latencies for video {video}, which has a frame {frames[-1]}")
    return nanoseconds(listed, f"latencies of {video}")[frames]


def _one_worker(taken: list[int], work: list[int], *, skips: bool) -> tuple[Ints, Ints]:
    """A worker that takes the newest frame whenever it is free, or the next one if it skips none."""
    places, ready = [], []
    now, place = 0, 0
    while place < len(taken):
        if skips:
            place = max(place, bisect_right(taken, now) - 1)
        now = max(now, taken[place]) + work[place]
        if now >= NEVER:
            break
        places.append(place)
        ready.append(now)
        place += 1
    return np.array(places, dtype=np.int64), np.array(ready, dtype=np.int64)


def holding(instant: Ints, frames: Ints, ready: Ints, config: StreamingConfig) -> Ints:
    """(n,) the place of the output that holds at each instant, -1 before there is one.

    Args:
        instant: (n,) nanoseconds.
        frames: (m,) the frame of each output.
        ready: (m,) when each is ready; those of NEVER never are.
        config: `newest` and `eta_s`.
    """
    order = np.lexsort((frames, ready))
    order = order[ready[order] < NEVER]
    finished = ready[order]
    if config.newest == "taken" and len(order):
        latest = np.maximum.accumulate(frames[order])
        order = order[np.searchsorted(latest, latest, side="left")]
    cut = instant - nanoseconds([config.eta_s], "eta_s")
    last = np.searchsorted(finished, cut, side="right")
    return np.where(last > 0, np.append(order, -1)[last - 1], -1)


def recorded(video: str, frames: Ints, taken: Ints, ready_s: npt.NDArray[np.float64]) -> Ints:
    """(n,) when each frame was answered, as recorded.

    Raises:
        InputError: if an answer was ready before its frame was taken.
    """
    ready = nanoseconds(ready_s, f"ready_s of {video}")
    early = ready < taken - _MICROSECOND
    if early.any():
        at = int(np.flatnonzero(early)[0])
        raise InputError(
            f"video {video}: the output of frame {frames[at]} was ready at {ready[at] / SECOND} s, before "
            f"the frame was taken at {taken[at] / SECOND} s",
            hint="ready_s counts from the beginning of the video; a latency is added to the frame's time",
        )
    return np.maximum(ready, taken)
