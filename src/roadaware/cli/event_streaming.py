"""Streaming accuracy beside the offline numbers: what a worker that needs time knew at each frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from roadaware.cli import console
from roadaware.cli.event_inputs import Claims, native_kinds, with_dense
from roadaware.cli.event_scoring import Asked, Scored, scored
from roadaware.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from roadaware.linking.config import LinkerConfig
    from roadaware.metrics.stream_clock import StreamingConfig
    from roadaware.scenes.predictions import Predictions
    from roadaware.scenes.tables import Scenes

_CLOCK = Group("Streaming accuracy", sort_key=50)
_LATENCY = (
    "Seconds from the start of work on a frame to its output: judge also what was known at each frame on a "
    "simulated clock. Detections are linked again, in the frames that were worked on."
)
_SCHEDULER = (
    "One worker takes the newest frame when it is free (latest, unless told), or all frames one after the "
    "other (queue); or each frame has a worker of its own (every)."
)
_FPS = "Frames per second, for videos of which the truth tells neither rate nor times."


@Parameter(name="*", group=_CLOCK)
@dataclass(frozen=True)
class Clock:
    """When outputs are ready."""

    latency: Annotated[float | None, Parameter(help=_LATENCY)] = None
    scheduler: Annotated[Literal["latest", "every", "queue"] | None, Parameter(help=_SCHEDULER)] = None
    fps: Annotated[float | None, Parameter(help=_FPS)] = None

    def check(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: if a number is out of range, or nothing is timed.
        """
        if self.latency is None:
            if self.scheduler is not None or self.fps is not None:
                raise UsageError("--scheduler and --fps say how outputs are timed: give --latency too")
        elif not 0 <= self.latency < float("inf"):
            raise UsageError(f"--latency is a finite number of seconds from 0 on; got {self.latency}")
        if self.fps is not None and not 0 < self.fps < float("inf"):
            raise UsageError(f"--fps is a number of frames a second above 0; got {self.fps}")


OFFLINE = Clock()


def streamed(
    whole: Scenes, scenes: Scenes, claims: Sequence[Claims], asked: Asked, came: Scored, clock: Clock
) -> dict[str, Any] | None:
    """The metrics on the simulated clock, in the form of the offline ones; None without a latency.

    Args:
        whole: all of the truth.
        scenes: the split.
        claims: what is claimed, detections among it.
        asked: what was asked of them offline.
        came: what came of it.
        clock: when outputs are ready.

    Returns:
        `frame`, `video` and `av_action` as the JSON has them, in per cent, and `clock`.

    Raises:
        UsageError: if there are no detections, or the time of frames is not known.
    """
    if clock.latency is None:
        return None
    from roadaware.cli.event_pages import numbers_of
    from roadaware.cli.event_runs import EventRun
    from roadaware.config import to_dict
    from roadaware.metrics.streaming import answers, retimed

    given = next((each for each in claims if each.has_boxes), None)
    if given is None:
        raise UsageError("--latency needs detections, and only tubes are claimed")
    config = _timing(scenes, clock)
    then = replace(config, scheduler="recorded")
    detections = _unlinked(given.tables)
    linker, found = _linker(given, asked), []
    with console.working("streaming"):
        seen = answers(detections, scenes, config, clock.latency)
        if asked.only != "video":
            found.append(Claims(given.path, "detections", retimed(seen, scenes, then)))
        if asked.only != "frame":
            tubes = _linked(seen, given, scenes, came, linker)
            found.append(Claims(given.path, "tubes", retimed(tubes, scenes, then)))
    plain = replace(asked, by=(), draws=0, details=False, tracking=False)
    judged = scored(whole, scenes, found, plain)
    run = EventRun(given.path.name, asked.dataset, judged.config, judged.summary, judged.matches)
    told: dict[str, Any] = {"latency_s": clock.latency, "scheduler": config.scheduler, "times": config.times}
    told |= {"fps": clock.fps, "linker": None if asked.only == "frame" else to_dict(linker)}
    return {**numbers_of(run, native_kinds(scenes)), "clock": told}


def streaming_rows(
    summary: pl.DataFrame, found: Mapping[str, Any]
) -> tuple[list[str], list[tuple[str, list[float | None]]]]:
    """The headline means, offline and streaming beside each other.

    Args:
        summary: the offline metrics.
        found: what `streamed` gave.

    Returns:
        what the columns hold, and for each kind its values in per cent.
    """
    from roadaware.analysis.event_results import FRAME, headline, means

    grid = means(summary)
    columns = headline(grid.columns)
    rows = []
    for kind in grid.rows:
        values: list[float | None] = []
        for column in columns:
            offline = grid.cells.get((kind, column))
            level = found["frame"] if column.level == FRAME else found["video"].get(column.overlap, {})
            then = level.get(column.threshold, {}).get(kind, {}).get("mean")
            values += [None if offline is None or offline.value is None else 100 * offline.value, then]
        rows.append((kind, values))
    return [name for column in columns for name in (column.words, "streaming")], rows


def streaming_text(summary: pl.DataFrame, found: Mapping[str, Any] | None) -> str:
    """The same as a table to print; nothing where nothing was timed."""
    if found is None:
        return ""
    from roadaware.cli.text import number, table

    names, rows = streaming_rows(summary, found)
    title = f"mean AP, %: {clock_words(found)}"
    return table([title, *names], [(kind, *(number(value, 2) for value in held)) for kind, held in rows])


def clock_words(found: Mapping[str, Any]) -> str:
    """The clock in words."""
    clock = found["clock"]
    return f"offline, and streaming at {clock['latency_s']:g} s a frame ({clock['scheduler']})"


def _timing(scenes: Scenes, clock: Clock) -> StreamingConfig:
    """The clock, by the truth's rates or times, or by the rate that was given.

    Raises:
        UsageError: if nothing says when frames were taken.
    """
    from roadaware.metrics.stream_clock import StreamingConfig

    videos, frames = scenes.videos, scenes.frames
    rated = "fps" in videos.columns and not videos["fps"].null_count()
    timed = "t_s" in frames.columns and len(frames) > 0 and not frames["t_s"].null_count()
    if not (rated or timed or clock.fps):
        raise UsageError("--latency: the truth tells neither rates nor times of frames; give --fps")
    by_times = timed and not rated and clock.fps is None
    return StreamingConfig(
        scheduler=clock.scheduler or "latest", times="t_s" if by_times else "fps", fps=clock.fps
    )


def _unlinked(claims: Predictions) -> Predictions:
    """The detections alone."""
    import polars as pl

    boxes = claims.boxes
    if "interpolated" in boxes.columns:
        boxes = boxes.filter(~pl.col("interpolated").fill_null(value=False)).drop("interpolated")
    labels = claims.labels
    if not labels.is_empty():
        labels = labels.filter(pl.col("box").is_in(boxes["box"].implode()))
    return claims.with_tables(
        boxes=boxes.drop("tube", strict=False),
        labels=labels,
        tubes=claims.tubes.clear(),
        tube_labels=claims.tube_labels.clear(),
    )


def _linker(given: Claims, asked: Asked) -> LinkerConfig:
    """How the claims were linked if they say it, else as config and detector have it; gaps are kept."""
    from roadaware.cli.linker_choice import choose_linker
    from roadaware.config import from_dict
    from roadaware.linking.config import LinkerConfig
    from roadaware.scenes.advice import advice_in

    advice = advice_in(given.tables.meta)
    noted = given.tables.meta.notes.get("linker")
    chosen = choose_linker(asked.config, asked.dataset, advice)[0]
    chosen = from_dict(LinkerConfig, noted) if noted else chosen
    return replace(chosen, gaps="keep") if chosen.gaps == "squeeze" else chosen


def _linked(
    seen: Predictions, given: Claims, scenes: Scenes, came: Scored, linker: LinkerConfig
) -> Predictions:
    """Tubes from the frames that were worked on, without short ones where the claims left these out."""
    from roadaware.cli.after_detector import steps_taken
    from roadaware.config import from_dict
    from roadaware.linking.interpolation import InterpolationConfig, interpolated
    from roadaware.linking.link import link
    from roadaware.metrics.detection.frame import with_products

    if came.config.composite_scores == "product":
        seen = with_products(seen, scenes)
    tubes = link(with_dense(seen), linker)
    for step in steps_taken(given.tables):
        if step["step"] == "interpolated":
            tubes = interpolated(tubes, from_dict(InterpolationConfig, step["config"]))
    return tubes
