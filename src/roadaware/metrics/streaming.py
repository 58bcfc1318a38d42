"""Streaming accuracy: at every instant the truth is met by the newest output that was ready by then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Ints
from roadaware.config import to_dict
from roadaware.errors import InputError, UsageError
from roadaware.metrics.stream_clock import (
    NEVER,
    SECOND,
    Latency,
    StreamingConfig,
    answered,
    by_video,
    holding,
    instants,
    recorded,
)
from roadaware.scenes.predictions import Predictions
from roadaware.scenes.stretches import run_spans
from roadaware.scenes.tables import Scenes

_PLAN = {
    "video": pl.String,
    "frame": pl.Int64,
    "from_frame": pl.Int64,
    "instant_s": pl.Float64,
    "ready_s": pl.Float64,
}
_NO_ANSWERS = pl.DataFrame(schema={"frame": pl.Int64, "ready_s": pl.Float64})


def retimed(
    predictions: Predictions,
    scenes: Scenes,
    config: StreamingConfig | None = None,
    latency: Latency | None = None,
) -> Predictions:
    """The predictions as they stood at the instant of each frame of the truth, to be judged like any others.

    The boxes of a frame become those of the newest output that was ready at its instant, whatever frame that
    output looked at; before the first output there are none. Each keeps its tube, scores and labels, names
    the frame it was found in (`from_frame`), and says when it was ready. A tube is where its boxes were
    claimed to be at each instant; its labels and scores are those of the whole tube. Boxes that were
    interpolated were not known in time and are left out. Scores of frames are treated as boxes are.

    Args:
        predictions: boxes, tubes and frame scores. Outputs are the frames of its table `frames` and those
            with boxes; all frames of the truth where there is no such table.
        scenes: the truth, which says what frames there are and when they were taken.
        config: the clock; as recorded unless told.
        latency: seconds from the start of work on a frame to its output: one number, or for each video a
            list by frame. None for the scheduler `recorded`, which takes `frames.ready_s`, else
            `boxes.ready_s`: seconds since the video began, in Float64.

    Raises:
        UsageError: if there is no latency for the scheduler, or one beside recorded times.
        InputError: if times are missing or impossible, or tubes are claimed for consecutive frames whatever
            frames their boxes were found in.

    Source: Li, Wang, Ramanan, "Towards streaming perception", ECCV 2020, section 3.
    """
    config = config or StreamingConfig()
    if "consecutive" in predictions.tubes.columns and predictions.tubes["consecutive"].any():
        raise InputError(
            "the tubes are claimed for consecutive frames, so nobody knows when their boxes were found",
            hint="link with LinkerConfig.default(), or with gaps='keep'",
        )
    plan = timetable(predictions, scenes, config, latency).filter(pl.col("from_frame").is_not_null())
    boxes, labels = _boxes(predictions, plan)
    tubes, tube_labels = _tubes(predictions, plan, boxes)
    work = f"{latency:g} s" if isinstance(latency, float | int) else "by frame" if latency else "recorded"
    note = {"config": to_dict(config), "latency": work}
    return predictions.with_tables(
        frames=_frames(predictions, plan),
        boxes=boxes,
        labels=labels,
        tubes=tubes,
        tube_labels=tube_labels,
        meta=replace(predictions.meta, notes={**predictions.meta.notes, "streaming": note}),
    )


def timetable(
    predictions: Predictions,
    scenes: Scenes,
    config: StreamingConfig | None = None,
    latency: Latency | None = None,
) -> pl.DataFrame:
    """For each frame of the truth which output holds at its instant.

    Args:
        predictions: as `retimed`.
        scenes: as `retimed`.
        config: as `retimed`.
        latency: as `retimed`.

    Returns:
        video, frame, from_frame (null before the first output), instant_s, ready_s (of the output).

    Raises:
        UsageError: as `retimed`.
        InputError: as `retimed`.
    """
    config = config or StreamingConfig()
    parts = [pl.DataFrame(schema=_PLAN)]
    for video, frames, taken, found, ready in _outputs(predictions, scenes, config, latency):
        at = holding(taken, found, ready, config)
        some = at >= 0
        parts.append(
            pl.DataFrame(
                {
                    "video": pl.repeat(video, len(frames), eager=True),
                    "frame": frames,
                    "from_frame": _known(found, at, some),
                    "instant_s": taken / SECOND,
                    "ready_s": _known(ready / SECOND, at, some),
                }
            ).cast(pl.Schema(_PLAN))
        )
    return pl.concat(parts)


def answers(
    predictions: Predictions,
    scenes: Scenes,
    config: StreamingConfig,
    latency: Latency | None = None,
) -> Predictions:
    """The predictions of the frames that a worker would have come to, with the time of each in `ready_s`.

    Link these to see what a tracker behind such a worker finds, and give the result to `retimed` with the
    scheduler `recorded`.

    Args:
        predictions: detections, not linked.
        scenes: as `retimed`.
        config: as `retimed`.
        latency: as `retimed`.

    Raises:
        UsageError: as `retimed`; or if the predictions are linked.
        InputError: as `retimed`.
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
    told = seen.join(old, on=key, how="left", maintain_order="left")
    return predictions.with_tables(frames=told, boxes=boxes, labels=labels)


def _outputs(
    predictions: Predictions, scenes: Scenes, config: StreamingConfig, latency: Latency | None
) -> Iterator[tuple[str, Ints, Ints, Ints, Ints]]:
    """For each video its frames, when they were taken, those worked on, and when these were answered."""
    frames_of = _frames_of(scenes)
    taken_of = instants(scenes, frames_of, config)
    if config.scheduler == "recorded":
        if latency is not None:
            raise UsageError("a latency is given beside recorded times; choose another scheduler to use it")
        told = _recorded(predictions)
        for video, frames in frames_of.items():
            rows = pl.DataFrame({"frame": frames, "taken": taken_of[video]})
            rows = rows.join(told.get(video, _NO_ANSWERS), on="frame").sort("frame")
            found, at = rows["frame"].to_numpy(), rows["taken"].to_numpy()
            ready = recorded(video, found, at, rows["ready_s"].to_numpy())
            yield video, frames, taken_of[video], found, ready
        return
    looked_at = _looked_at(predictions)
    for video, frames in frames_of.items():
        taken = taken_of[video]
        seen = np.ones(len(frames), np.bool_)
        if looked_at is not None:
            seen = np.isin(frames, looked_at.get(video, np.empty(0, np.int64)))
        places, ready = answered(video, frames[seen], taken[seen], latency, config.scheduler)
        yield video, frames, taken, frames[seen][places], ready


def _recorded(predictions: Predictions) -> dict[str, pl.DataFrame]:
    """frame and ready_s of each output of each video, as the predictions tell."""
    for table in (predictions.frames, predictions.boxes):
        if "ready_s" in table.columns and table["ready_s"].null_count() < len(table):
            rows = table.filter(pl.col("ready_s").is_not_null())
            return by_video(
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
    return {video: part["frame"].to_numpy() for video, part in by_video(rows, "frame").items()}


def _frames_of(scenes: Scenes) -> dict[str, Ints]:
    """The frames of each video of the truth: those listed, or as many as it has."""
    listed = by_video(scenes.frames, "frame")
    counts = dict(_texts(scenes.videos).select("video", *_optional(scenes.videos, "n_frames")).iter_rows())
    found: dict[str, Ints] = {}
    for video, count in counts.items():
        if video in listed:
            found[video] = listed[video]["frame"].sort().to_numpy()
        elif count is not None:
            found[video] = np.arange(count)
        else:
            raise InputError(f"it is not known which frames video {video} has")
    return found


def _optional(table: pl.DataFrame, name: str) -> list[pl.Expr]:
    return [pl.col(name) if name in table.columns else pl.lit(None, pl.Int64).alias(name)]


def _texts(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("video").cast(pl.String))


def _known(values: npt.NDArray[Any], at: Ints, some: npt.NDArray[np.bool_]) -> pl.Series:
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


def _frames(predictions: Predictions, plan: pl.DataFrame) -> pl.DataFrame:
    """What was claimed of whole frames, at each instant; no row before the first output."""
    own = _texts(predictions.frames).drop("ready_s", "t_s", "annotated", strict=False)
    held = plan.select("video", "frame", "from_frame", "ready_s")
    return held.join(
        own.rename({"frame": "from_frame"}), on=["video", "from_frame"], how="left", maintain_order="left"
    )


def _tubes(
    predictions: Predictions, plan: pl.DataFrame, boxes: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tubes that were claimed at some instant, with the frames at which they were, and their labels."""
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
