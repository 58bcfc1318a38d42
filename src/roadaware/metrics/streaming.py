"""Streaming accuracy: at every instant the ground truth is met by the newest output that was ready by then."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Ints
from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.scenes.factors import run_spans
from roadaware.scenes.tables import Predictions, Scenes

# A simulated clock in whole nanoseconds: when frames are taken, worked on, and answered.

Latency = float | Mapping[str, Sequence[float]]
Scheduler = Literal["recorded", "every", "latest", "queue"]

SECOND = 1_000_000_000
# Two of them still add up within 64 bits.
NEVER = 1 << 61
"""An instant behind all others; whatever takes longer than 73 years is not awaited."""
_MICROSECOND = 1_000
_LARGEST_DENOMINATOR = 1001


@dataclass(frozen=True)
class StreamingConfig:
    """The clock of streaming evaluation.

    Args:
        scheduler: `recorded`, outputs are ready when the predictions say (`ready_s`, in seconds of the
            stream); `every`, every frame is worked on from the moment it is taken, as if by as many workers
            as it needs; `latest`, one worker takes the newest frame when it is free and skips the others;
            `queue`, one worker takes all frames one after the other.
        newest: of the outputs that are ready, the one that was ready last holds (`finished`), or the one of
            the latest frame (`taken`); they differ where a later frame was ready before an earlier one.
        eta_s: outputs must be ready so many seconds before the instant they are judged at.
        times: frames are taken at frame / fps (`fps`), or when the ground truth's frames say (`t_s`).
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


def compute_frame_times(
    scenes: Scenes, frames: Mapping[str, Ints], config: StreamingConfig
) -> dict[str, Ints]:
    """(n,) for each video: the nanosecond, rounded down, at which each of its frames is taken.

    Args:
        scenes: whose `videos` (fps) or `frames` (t_s) give the time.
        frames: (n,) for each video its frames, ascending.
        config: `times` and `fps`.

    Raises:
        InputError: if the time of a frame is not known, or time does not go on.
    """
    if config.times == "t_s":
        if frames and "t_s" not in scenes.frames.columns:
            raise InputError("the frames have no times t_s", hint="use StreamingConfig(times='fps')")
        record = group_by_video(scenes.frames, "frame", "t_s") if frames else {}
        return {video: _read_frame_times(video, asked, record.get(video)) for video, asked in frames.items()}
    rates: dict[str, float | None] = {}
    if "fps" in scenes.videos.columns:
        rates = dict(scenes.videos.select(pl.col("video").cast(pl.String), "fps").iter_rows())
    found = {}
    for video, asked in frames.items():
        known = rates.get(video)
        # When each frame is taken, at so many frames a second.
        rate = config.fps if known is None else known
        if rate is None or not rate > 0:
            raise InputError(
                f"it is not known how many frames a second video {video} has",
                hint="give StreamingConfig(fps=...), or times='t_s' where the frames have their times",
            )
        # 29.97 in 32 bits is meant as 30000/1001: no usual rate has a larger denominator.
        exact = Fraction(float(rate)).limit_denominator(_LARGEST_DENOMINATOR)
        # Whole seconds by themselves: the product with 1e9 would leave 64 bits from some 9 million frames on.
        whole, rest = np.divmod(asked * exact.denominator, exact.numerator)
        ticks: Ints = whole * SECOND + rest * SECOND // exact.numerator
        found[video] = ticks
    return found


def group_by_video(table: pl.DataFrame, *columns: str) -> dict[str, pl.DataFrame]:
    """The rows of each video that has some, in their order, with some of the columns."""
    parts = table.select(pl.col("video").cast(pl.String), *columns)
    return {str(video): part.drop("video") for (video,), part in parts.group_by("video", maintain_order=True)}


def _read_frame_times(video: str, frames: Ints, rows: pl.DataFrame | None) -> Ints:
    """When each frame is taken, as the rows of its video (frame, t_s) tell."""
    asked = pl.DataFrame({"frame": frames})
    if rows is None:
        rows = asked.clear().with_columns(t_s=pl.lit(None, pl.Float64))
    asked = asked.join(rows, on="frame", how="left", maintain_order="left")
    if asked["t_s"].null_count():
        lost = asked.filter(pl.col("t_s").is_null())["frame"].head(5).to_list()
        raise InputError(f"video {video}: the times of frames {lost} are not known")
    found = convert_to_nanoseconds(asked["t_s"].to_numpy(), "t_s")
    if (np.diff(found) <= 0).any():
        late = int(frames[1:][np.diff(found) <= 0][0])
        raise InputError(f"video {video}: frame {late} is not taken after the frame before it")
    return found


def convert_to_nanoseconds(seconds: Any, what: str) -> Ints:
    """Seconds as whole nanoseconds, rounded down; NEVER for values that do not fit.

    Raises:
        InputError: if one is negative or no number.
    """
    values = np.asarray(seconds, dtype=np.float64)
    if np.isnan(values).any() or (values < 0).any():
        raise InputError(f"{what} are seconds from 0 on; found {values[~(values >= 0)][:5].tolist()}")
    # Cut before the cast: what does not fit 64 bits has no defined value there.
    ticks = np.floor(np.minimum(values * SECOND, float(NEVER)))
    return ticks.astype(np.int64)


def simulate_schedule(
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
    if latency is None:
        raise UsageError("this scheduler needs a latency: seconds, or a list of seconds for each video")
    if not isinstance(latency, Mapping):
        work = np.repeat(convert_to_nanoseconds([latency], "latencies"), len(frames))
    else:
        listed = latency.get(video, ())
        if len(frames) and len(listed) <= frames[-1]:
            raise UsageError(f"{len(listed)} latencies for video {video}, which has a frame {frames[-1]}")
        work = convert_to_nanoseconds(listed, f"latencies of {video}")[frames]
    if scheduler == "every":
        return np.arange(len(frames)), np.minimum(taken + work, NEVER)
    return _one_worker(taken.tolist(), work.tolist(), skips=scheduler == "latest")


def _one_worker(taken: list[int], work: list[int], *, skips: bool) -> tuple[Ints, Ints]:
    """A worker that takes the newest frame whenever it is free, or the next one if it skips none."""
    places, ready = [], []
    now, place = 0, 0
    while place < len(taken):
        if skips:
            # Never back: the newest frame may be one that was answered already.
            place = max(place, bisect_right(taken, now) - 1)
        now = max(now, taken[place]) + work[place]
        if now >= NEVER:
            break
        places.append(place)
        ready.append(now)
        place += 1
    return np.array(places, dtype=np.int64), np.array(ready, dtype=np.int64)


def find_latest_output(instant: Ints, frames: Ints, ready: Ints, config: StreamingConfig) -> Ints:
    """(n,) index of the latest output at each instant, -1 before the first.

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
        # A later frame that was ready earlier stays the newest.
        latest = np.maximum.accumulate(frames[order])
        order = order[np.searchsorted(latest, latest, side="left")]
    cut = instant - convert_to_nanoseconds([config.eta_s], "eta_s")
    last = np.searchsorted(finished, cut, side="right")
    return np.where(last > 0, np.append(order, -1)[last - 1], -1)


def validate_ready_times(video: str, frames: Ints, taken: Ints, ready_s: npt.NDArray[np.float64]) -> Ints:
    """(n,) when each frame was answered, as recorded.

    Raises:
        InputError: if an answer was ready before its frame was taken.
    """
    ready = convert_to_nanoseconds(ready_s, f"ready_s of {video}")
    # Slack for seconds that a file holds rounded.
    early = ready < taken - _MICROSECOND
    if early.any():
        at = int(np.flatnonzero(early)[0])
        raise InputError(
            f"video {video}: the output of frame {frames[at]} was ready at {ready[at] / SECOND} s, before "
            f"the frame was taken at {taken[at] / SECOND} s",
            hint="ready_s counts from the beginning of the video; a latency is added to the frame's time",
        )
    return np.maximum(ready, taken)


_PLAN = {
    "video": pl.String,
    "frame": pl.Int64,
    "from_frame": pl.Int64,
    "instant_s": pl.Float64,
    "ready_s": pl.Float64,
}
_NO_ANSWERS = pl.DataFrame(schema={"frame": pl.Int64, "ready_s": pl.Float64})


def apply_latency(
    predictions: Predictions,
    scenes: Scenes,
    config: StreamingConfig | None = None,
    latency: Latency | None = None,
) -> Predictions:
    """The predictions as they stood at the instant of each frame of the ground truth, to be judged like any others.

    The boxes of a frame become those of the newest output that was ready at its instant, whatever frame that
    output looked at; before the first output there are none. Each keeps its tube, scores and labels, names
    the frame it was found in (`from_frame`), and says when it was ready. A tube is where its boxes were
    predicted to be at each instant; its labels and scores are those of the whole tube. Boxes that were
    interpolated were not known in time and are left out. Scores of frames are treated as boxes are.

    Args:
        predictions: boxes, tubes and frame scores. Outputs are the frames of its table `frames` and those
            with boxes; all frames of the ground truth where there is no such table.
        scenes: the ground truth, which says what frames there are and when they were taken.
        config: the clock (default: as recorded).
        latency: seconds from the start of work on a frame to its output: one number, or for each video a
            list by frame. None for the scheduler `recorded`, which takes `frames.ready_s`, else
            `boxes.ready_s`: seconds since the video began, in Float64.

    Raises:
        UsageError: if there is no latency for the scheduler, or one beside recorded times.
        InputError: if times are missing or impossible, or tubes are assigned to consecutive frames whatever
            frames their boxes were found in.

    Source: Li, Wang, Ramanan, "Towards streaming perception", ECCV 2020, section 3.
    """
    config = config or StreamingConfig()
    if "consecutive" in predictions.tubes.columns and predictions.tubes["consecutive"].any():
        raise InputError(
            "the tubes are predicted for consecutive frames, so nobody knows when their boxes were found",
            hint="link with LinkerConfig.default(), or with gaps='keep'",
        )
    plan = build_timetable(predictions, scenes, config, latency).filter(pl.col("from_frame").is_not_null())
    boxes, labels = _boxes(predictions, plan)
    tubes, tube_labels = _tubes(predictions, plan, boxes)
    work = f"{latency:g} s" if isinstance(latency, float | int) else "by frame" if latency else "recorded"
    note = {"config": to_dict(config), "latency": work}
    # What was predicted of whole frames, at each instant; no row before the first output.
    own = _texts(predictions.frames).drop("ready_s", "t_s", "annotated", strict=False)
    held = plan.select("video", "frame", "from_frame", "ready_s")
    return predictions.with_tables(
        frames=held.join(
            own.rename({"frame": "from_frame"}),
            on=["video", "from_frame"],
            how="left",
            maintain_order="left",
        ),
        boxes=boxes,
        labels=labels,
        tubes=tubes,
        tube_labels=tube_labels,
        meta=replace(predictions.meta, notes={**predictions.meta.notes, "streaming": note}),
    )


def build_timetable(
    predictions: Predictions,
    scenes: Scenes,
    config: StreamingConfig | None = None,
    latency: Latency | None = None,
) -> pl.DataFrame:
    """For each frame of the ground truth the latest output at its instant.

    Args:
        predictions: as `apply_latency`.
        scenes: as `apply_latency`.
        config: as `apply_latency`.
        latency: as `apply_latency`.

    Returns:
        video, frame, from_frame (null before the first output), instant_s, ready_s (of the output).

    Raises:
        UsageError: as `apply_latency`.
        InputError: as `apply_latency`.
    """
    config = config or StreamingConfig()
    parts = [pl.DataFrame(schema=_PLAN)]
    for video, frames, taken, found, ready in _outputs(predictions, scenes, config, latency):
        at = find_latest_output(taken, found, ready, config)
        some = at >= 0
        parts.append(
            pl.DataFrame(
                {
                    "video": pl.repeat(video, len(frames), eager=True),
                    "frame": frames,
                    "from_frame": _gather_or_null(found, at, some),
                    "instant_s": taken / SECOND,
                    "ready_s": _gather_or_null(ready / SECOND, at, some),
                }
            ).cast(pl.Schema(_PLAN))
        )
    return pl.concat(parts)


def select_processed_frames(
    predictions: Predictions,
    scenes: Scenes,
    config: StreamingConfig,
    latency: Latency | None = None,
) -> Predictions:
    """The predictions of the frames that a single worker would have processed, with the time of each in `ready_s`.

    Link these to see what a tracker behind such a worker finds, and give the result to `apply_latency` with the
    scheduler `recorded`.

    Args:
        predictions: detections, not linked.
        scenes: as `apply_latency`.
        config: as `apply_latency`.
        latency: as `apply_latency`.

    Raises:
        UsageError: as `apply_latency`; or if the predictions are linked.
        InputError: as `apply_latency`.
    """
    if not predictions.tubes.is_empty():
        raise UsageError("the predictions are linked already; link the answers instead")
    parts = [pl.DataFrame(schema={"video": pl.String, "frame": pl.Int64, "ready_s": pl.Float64})]
    for video, _, _, found, ready in _outputs(predictions, scenes, config, latency):
        found, ready = found[ready < NEVER], ready[ready < NEVER]
        names = pl.repeat(video, len(found), eager=True, dtype=pl.String)
        parts.append(pl.DataFrame({"video": names, "frame": found, "ready_s": ready / SECOND}))
    seen = pl.concat(parts)
    key = ["video", "frame"]
    old = _texts(predictions.frames).drop("ready_s", strict=False)
    boxes = _texts(predictions.boxes).join(seen.select(key), on=key, how="semi", maintain_order="left")
    labels = predictions.labels.filter(pl.col("box").is_in(boxes["box"].implode()))
    rows = seen.join(old, on=key, how="left", maintain_order="left")
    return predictions.with_tables(frames=rows, boxes=boxes, labels=labels)


def _outputs(
    predictions: Predictions, scenes: Scenes, config: StreamingConfig, latency: Latency | None
) -> Iterator[tuple[str, Ints, Ints, Ints, Ints]]:
    """For each video its frames, when they were taken, those worked on, and when these were answered."""
    frames_of = _list_frames(scenes)
    taken_of = compute_frame_times(scenes, frames_of, config)
    if config.scheduler == "recorded":
        if latency is not None:
            raise UsageError("a latency is given beside recorded times; choose another scheduler to use it")
        ready_times = _collect_ready_times(predictions)
        for video, frames in frames_of.items():
            rows = pl.DataFrame({"frame": frames, "taken": taken_of[video]})
            rows = rows.join(ready_times.get(video, _NO_ANSWERS), on="frame").sort("frame")
            found, at = rows["frame"].to_numpy(), rows["taken"].to_numpy()
            ready = validate_ready_times(video, found, at, rows["ready_s"].to_numpy())
            yield video, frames, taken_of[video], found, ready
        return
    looked_at = _looked_at(predictions)
    for video, frames in frames_of.items():
        taken = taken_of[video]
        seen = np.ones(len(frames), np.bool_)
        if looked_at is not None:
            seen = np.isin(frames, looked_at.get(video, np.empty(0, np.int64)))
        places, ready = simulate_schedule(video, frames[seen], taken[seen], latency, config.scheduler)
        yield video, frames, taken, frames[seen][places], ready


def _collect_ready_times(predictions: Predictions) -> dict[str, pl.DataFrame]:
    """frame and ready_s of each output of each video, as the predictions state."""
    for table in (predictions.frames, predictions.boxes):
        if "ready_s" in table.columns and table["ready_s"].null_count() < len(table):
            rows = table.filter(pl.col("ready_s").is_not_null())
            return group_by_video(
                rows.group_by("video", "frame").agg(pl.col("ready_s").cast(pl.Float64).max()),
                "frame",
                "ready_s",
            )
    if predictions.frames.is_empty() and predictions.boxes.is_empty():
        return {}
    raise InputError(
        "the predictions do not say when they were ready",
        hint="fill frames.ready_s, or name a scheduler and a latency",
    )


def _looked_at(predictions: Predictions) -> dict[str, Ints] | None:
    """The frames of each video that the detector has an output of; None for all that there are."""
    if predictions.frames.is_empty():
        return None
    tables = (predictions.frames, predictions.boxes)
    rows = pl.concat([table.select(pl.col("video").cast(pl.String), "frame") for table in tables])
    return {video: part["frame"].to_numpy() for video, part in group_by_video(rows, "frame").items()}


def _list_frames(scenes: Scenes) -> dict[str, Ints]:
    """The frames of each video of the ground truth: those listed, or as many as it has."""
    listed = group_by_video(scenes.frames, "frame")
    known = "n_frames" in scenes.videos.columns
    asked = pl.col("n_frames") if known else pl.lit(None, pl.Int64).alias("n_frames")
    counts = dict(_texts(scenes.videos).select("video", asked).iter_rows())
    found: dict[str, Ints] = {}
    for video, count in counts.items():
        if video in listed:
            found[video] = listed[video]["frame"].sort().to_numpy()
        elif count is not None:
            found[video] = np.arange(count)
        else:
            raise InputError(f"it is not known which frames video {video} has")
    return found


def _texts(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("video").cast(pl.String))


def _gather_or_null(values: npt.NDArray[Any], at: Ints, some: npt.NDArray[np.bool_]) -> pl.Series:
    """The values at some places, null at the others."""
    taken = values[np.maximum(at, 0)] if len(values) else np.zeros(len(at), values.dtype)
    return pl.Series(taken).set(pl.Series(~some), None)


def _boxes(predictions: Predictions, plan: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The boxes at each instant, and their labels."""
    boxes = _texts(predictions.boxes).drop("ready_s", "from_frame", strict=False)
    if "interpolated" in boxes.columns:
        boxes = boxes.filter(~pl.col("interpolated").fill_null(value=False))
    held = plan.select("video", "frame", "from_frame", "ready_s")
    found = held.join(
        boxes.rename({"frame": "from_frame"}), on=["video", "from_frame"], maintain_order="left_right"
    )
    found = found.with_columns(old=pl.col("box"), box=pl.int_range(pl.len()))
    labels = predictions.labels
    if not labels.is_empty():
        renamed = found.select("old", new="box")
        labels = renamed.join(labels, left_on="old", right_on="box", maintain_order="left_right")
        labels = labels.drop("old").rename({"new": "box"})
    columns = [*boxes.columns, "from_frame", "ready_s"]
    return found.select(columns), labels


def _tubes(
    predictions: Predictions, plan: pl.DataFrame, boxes: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tubes that were predicted at some instant, with the frames at which they were, and their labels."""
    tubes = _texts(predictions.tubes)
    if tubes.is_empty():
        return tubes, predictions.tube_labels
    owners = predictions.boxes.select("tube").unique() if "tube" in predictions.boxes.columns else None
    owns = pl.lit(value=False) if owners is None else pl.col("tube").is_in(owners["tube"].implode())
    spans = _spans(tubes.filter(~owns), plan)
    if owners is not None:
        own = boxes.filter(pl.col("tube").is_not_null()).select("tube", "frame").sort("tube", "frame")
        runs = run_spans(own["tube"].to_numpy(), own["frame"].to_numpy())
        plain = runs.with_columns(spans=pl.lit(None, runs.schema["spans"]))
        spans = pl.concat([spans, plain])
    bare = tubes.drop("start_frame", "end_frame", "spans", strict=False)
    kept = bare.join(spans.rename({"run": "tube"}), on="tube", maintain_order="left")
    if "parent" in kept.columns:
        kept = kept.filter(pl.col("parent").is_null() | pl.col("parent").is_in(kept["tube"].implode()))
    labels = predictions.tube_labels.filter(pl.col("tube").is_in(kept["tube"].implode()))
    return kept, labels


def _spans(tubes: pl.DataFrame, plan: pl.DataFrame) -> pl.DataFrame:
    """The frames at whose instant an output from within the spans of a tube held."""
    if "spans" not in tubes.columns:
        tubes = tubes.with_columns(spans=pl.lit(None, pl.List(pl.List(pl.Int64))))
    ends = ("start_frame", "end_frame")
    tubes = tubes.with_columns(pl.lit(None, pl.Int64).alias(end) for end in ends if end not in tubes.columns)
    listed = tubes.filter(pl.col("spans").is_null() | (pl.col("spans").list.len() > 0)).explode("spans")
    low, high = (pl.coalesce(pl.col("spans").list.get(i), pl.col(end)) for i, end in enumerate(ends))
    held = (
        listed.select("tube", "video", from_frame=pl.int_ranges(low, high))
        .explode("from_frame")
        .drop_nulls()
        .join(plan.select("video", "from_frame", "frame"), on=["video", "from_frame"])
        .select("tube", "frame")
        .unique()
        .sort("tube", "frame")
    )
    return run_spans(held["tube"].to_numpy(), held["frame"].to_numpy())
