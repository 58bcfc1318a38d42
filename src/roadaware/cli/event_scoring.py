"""Predictions of road events brought together and judged: boxes from detections, tubes from where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import polars as pl
from cyclopts import Group, Parameter

from roadaware.analysis.doctor.data import check_overlap, reject_zero_score
from roadaware.analysis.event_findings import (
    LeftOut,
    check_image_size,
    count_empty_videos,
    list_warnings,
    select_known_videos,
)
from roadaware.analysis.event_results import build_video_slices
from roadaware.analysis.road_counts import is_printed_set
from roadaware.analysis.worst_tubes import select_worst_tubes
from roadaware.cli import console
from roadaware.cli.event_inputs import (
    Claims,
    EventSet,
    add_dense_scores,
    assign_labels,
    convert_kinds,
    map_native_kinds,
)
from roadaware.cli.link import compare_with_advice, select_linker
from roadaware.cli.options import ConfigName
from roadaware.config import from_dict, to_dict
from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.frame_boxes import list_steps
from roadaware.linking.interpolation import InterpolationConfig, interpolate_tubes
from roadaware.linking.link import link
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.errors import build_error_table
from roadaware.metrics.detection.evaluate import evaluate
from roadaware.metrics.detection.frame import add_product_scores
from roadaware.metrics.streaming import StreamingConfig, apply_latency, select_processed_frames
from roadaware.metrics.tracking.config import TrackingConfig
from roadaware.metrics.tracking.evaluate import evaluate_tracks
from roadaware.reports.event_runs import EventRun, build_metrics_json
from roadaware.scenes.advice import get_advice

if TYPE_CHECKING:
    from roadaware.analysis.worst_tubes import Strip
    from roadaware.metrics.detection.matches import Matches
    from roadaware.scenes.tables import Predictions, Scenes

_COMPOSITES = {"duplex", "event"}
# The thresholds at which the ROAD paper reports frame-mAP and video-mAP.
_FAULTS_AT = {"frame": 0.5, "video": 0.2}


@dataclass(frozen=True)
class Asked:
    """What is asked of predictions.

    Args:
        dataset: whose published parameters tubes are built with.
        config: the published choices, or ours.
        frame_thresholds: of boxes.
        video_thresholds: of tubes.
        overlaps: of tubes.
        kinds: of labels; all where empty.
        composites: how composite labels are scored; as the config says where None.
        only: one level alone.
        by: groups.
        draws: resamples of videos.
        seed: of the resamples.
        details: whether worst tubes and faults are wanted as well.
        tracking: whether paths are judged as tracks as well.
        min_score: agentness that a box needs to count as one of a track; as the detector says where None.
    """

    dataset: EventSet
    config: ConfigName = "default"
    frame_thresholds: Sequence[str] = ("0.2", "0.5", "0.75", "0.5:0.95")
    video_thresholds: Sequence[str] = ("0.2", "0.5", "0.75", "0.5:0.95")
    overlaps: Sequence[Literal["stiou", "siou", "tiou"]] = ("stiou",)
    kinds: Sequence[str] = ()
    composites: Literal["joint", "product"] | None = None
    only: Literal["frame", "video"] | None = None
    by: Sequence[str] = ()
    draws: int = 0
    seed: int = 0
    details: bool = False
    tracking: bool = False
    min_score: float | None = None

    def metric(self) -> DetectionConfig:
        """How it is judged."""

        named = DetectionConfig.reference() if self.config == "reference" else DetectionConfig.default()
        return named if self.composites is None else replace(named, composite_scores=self.composites)


@dataclass(frozen=True)
class Scored:
    """What came of it.

    Args:
        scenes: the truth that was judged.
        config: how.
        summary: every metric.
        matches: level to its matches.
        notes: what happened on the way, in words.
        left: what was left out, by reason.
        linker: how tubes were built here, or where the predictions' tubes say it; None where unknown.
        strips: tubes that went wrong, where they were asked for.
        faults: what mending each kind of fault would gain, where it was asked for.
        tracking: tracking metric to its value and interval, where it was asked for.
        tracked: which boxes of the paths these were judged on, in words.
        printed: whether the truth is a set that the ROAD paper prints numbers of.
    """

    scenes: Scenes
    config: DetectionConfig
    summary: pl.DataFrame
    matches: dict[str, Matches]
    notes: tuple[str, ...]
    left: LeftOut
    linker: dict[str, Any] | None = None
    strips: tuple[Strip, ...] = ()
    faults: pl.DataFrame | None = None
    tracking: dict[str, Any] | None = None
    tracked: str = ""
    printed: bool = False


def evaluate_split(whole: Scenes, scenes: Scenes, claims: Sequence[Claims], asked: Asked) -> Scored:
    """Judge what was predicted in the videos of a split.

    Args:
        whole: all of the truth.
        scenes: the split.
        claims: at most one with boxes of its own and one with tubes of its own.
        asked: what is asked.

    Raises:
        UsageError: if two predictions are of the same, or nothing that was asked for is predicted.
        InputError: if predictions and truth do not fit each other.
    """

    asked = replace(asked, kinds=convert_kinds(asked.kinds, scenes))
    boxes, tubes = _sides(claims, asked.only)
    config, notes = select_composites(asked, boxes, tubes)
    left = LeftOut()
    given = list(dict.fromkeys(each for each in (boxes, tubes) if each is not None))
    for each in given:
        check_overlap(assign_labels(each.tables, scenes), scenes, where=str(each.path), kinds=asked.kinds)
        left.findings |= each.left.findings
        left.elsewhere |= each.left.elsewhere
    of_boxes = _within(boxes, whole, scenes, left)
    of_tubes = of_boxes if tubes is boxes else _within(tubes, whole, scenes, left)
    for held in (of_boxes, of_tubes if of_tubes is not of_boxes else None):
        if held is not None:
            left.findings |= count_empty_videos(held, scenes)
            notes += check_image_size(held, scenes)
    if of_tubes is None and of_boxes is not None and asked.only != "frame":
        of_tubes, said = _link_detections(of_boxes, scenes, asked, config)
        words = ", ".join([f"config {asked.config}", f"parameters of {asked.dataset}", *said])
        notes.append(f"tubes were built from the detections by the linker ({words})")
    if of_boxes is None and asked.only is None:
        notes.append("boxes of frames are not judged: only tubes are predicted")
    summary, matches, told = _evaluate_levels(of_boxes, of_tubes, scenes, config, asked, left)
    notes += [*told, *list_warnings(whole)]
    values, held = summary["value"].drop_nulls(), of_boxes if of_boxes is not None else of_tubes
    zero = len(values) and not (values != 0).any()
    # A size in doubt is told in words, which say more than the boxes do.
    if zero and held is not None and not held.boxes.is_empty() and not check_image_size(held, scenes):
        reject_zero_score(None, held, scenes, str(given[0].path))
    linker = of_tubes.meta.notes.get("linker") if of_tubes is not None else None
    if of_tubes is not None and tubes is not None:
        notes += compare_with_advice(linker, get_advice(of_tubes.meta))
    came = Scored(scenes, config, summary, matches, tuple(dict.fromkeys(notes)), left, linker)
    came = replace(came, printed=_is_printed(whole))
    if asked.tracking:
        tracking, words = summarize_tracking(of_tubes, scenes, asked)
        came = replace(came, tracking=tracking, tracked=words)
    if not asked.details:
        return came
    faults = _faults(of_boxes, of_tubes, scenes, config, asked)
    return replace(came, strips=_strips(of_tubes, scenes, config), faults=faults)


def select_composites(
    asked: Asked, boxes: Claims | None, tubes: Claims | None
) -> tuple[DetectionConfig, list[str]]:
    """How it is judged: composite scores as asked for, or as linked tubes hold them, and notes on it.

    Raises:
        UsageError: if linked tubes were labelled the other way than is asked for.
    """
    config = asked.metric()
    held = {_infer_composites(each) for each in (boxes, tubes) if each is not None} - {None}
    vocabularies = {kind for each in (boxes, tubes) if each for kind in each.tables.meta.vocabularies}
    if not set(asked.kinds or vocabularies) & vocabularies & _COMPOSITES:
        return config, []
    if asked.composites is None:
        if held != {"product"}:
            return config, []
        note = "the predictions hold products of marginals as scores of duplexes and events"
        return replace(config, composite_scores="product"), [note]
    how = None if tubes is None else _infer_composites(tubes)
    if tubes is not None and how is not None and how != asked.composites:
        raise UsageError(
            f"{tubes.path} was labelled by {how} scores of composites, and --composites {asked.composites} "
            f"was asked for: link the detections again with --composites {asked.composites}, or evaluate "
            "the detections themselves"
        )
    unknown = tubes is not None and how is None
    note = f"the scores of duplexes and events in the tubes are taken to be {asked.composites} ones"
    return config, [note] if unknown else []


def _infer_composites(claims: Claims) -> Literal["joint", "product"] | None:
    """Which scores composite kinds have; None where nothing says so."""
    notes = claims.tables.meta.notes
    if notes.get("products_of_marginals"):
        return "product"
    return "joint" if claims.form == "saved" and claims.has_tubes and notes.get("linker") else None


def _is_printed(whole: Scenes) -> bool:

    return is_printed_set(whole.meta.dataset, [str(video) for video in whole.videos["video"].to_list()])


def build_event_run(
    came: Scored, asked: Asked, *, name: str, split: str | None, claims: Sequence[str]
) -> EventRun:
    """What came of judging, as a run.

    Args:
        came: what was found.
        asked: what was asked.
        name: of the model.
        split: that was judged; None for all.
        claims: names of the files and folders that were judged.
    """

    facts: dict[str, Any] = {
        "split": split,
        "truth": {
            "dataset": came.scenes.meta.dataset or asked.dataset,
            "digest": came.scenes.meta.source_digest,
            "videos": len(came.scenes.videos),
            "boxes": len(came.scenes.boxes),
            "native_kinds": map_native_kinds(came.scenes),
            "printed": came.printed,
        },
        "claims": list(claims),
        "dropped": came.left.everything,
        "findings": came.left.findings,
        "linker": came.linker,
        "config_name": asked.config,
        **({"tracking": came.tracking, "tracked": came.tracked} if came.tracking is not None else {}),
    }
    return EventRun(
        name,
        asked.dataset,
        came.config,
        came.summary,
        came.matches,
        came.strips,
        asked.draws,
        asked.seed,
        facts,
        came.notes,
        came.faults,
    )


def _sides(
    claims: Sequence[Claims], only: Literal["frame", "video"] | None
) -> tuple[Claims | None, Claims | None]:
    """Which predictions boxes are judged by, and which tubes."""
    found: dict[str, Claims | None] = {}
    for what in ("boxes", "tubes"):
        held = [each for each in claims if (each.has_boxes if what == "boxes" else each.has_tubes)]
        if len(held) > 1:
            names = " and ".join(each.path.name for each in held)
            raise UsageError(f"{names} both hold {what}; name one of them, or evaluate each by itself")
        found[what] = held[0] if held else None
    boxes = None if only == "video" and found["tubes"] is not None else found["boxes"]
    tubes = None if only == "frame" else found["tubes"]
    if only == "frame" and boxes is None:
        raise UsageError("--only frame needs detections, and only tubes are predicted")
    return boxes, tubes


def _within(claims: Claims | None, whole: Scenes, scenes: Scenes, left: LeftOut) -> Predictions | None:
    """The predictions in the videos that are judged; what lies elsewhere is counted."""
    if claims is None:
        return None
    judged, known = ([str(video) for video in tables.videos["video"].to_list()] for tables in (scenes, whole))
    return select_known_videos(assign_labels(claims.tables, scenes), judged, known, left)


def _link_detections(
    boxes: Predictions, scenes: Scenes, asked: Asked, config: DetectionConfig
) -> tuple[Predictions, list[str]]:
    """Tubes from detections, under the config of the same name and as the detector advises; words on it."""

    linker, said = select_linker(asked.config, asked.dataset, get_advice(boxes.meta), command="link")

    if config.composite_scores == "product":
        boxes = add_product_scores(boxes, scenes)
    with console.show_progress("linking") as progress, console.log_step("linking"):
        return link(add_dense_scores(boxes), linker, progress=progress), said


def _evaluate_levels(
    boxes: Predictions | None,
    tubes: Predictions | None,
    scenes: Scenes,
    config: DetectionConfig,
    asked: Asked,
    left: LeftOut,
) -> tuple[pl.DataFrame, dict[str, Matches], tuple[str, ...]]:
    """Both levels, each by its own predictions: summary, matches, notes; what was left out is counted."""

    common: dict[str, Any] = {
        "overlaps": asked.overlaps,
        "kinds": list(asked.kinds) or None,
        "draws": asked.draws,
        "seed": asked.seed,
        "slices": build_video_slices(scenes, asked.by),
    }
    at = {"frame_thresholds": (), "video_thresholds": ()} | common
    results = []
    with console.log_step("judging"):
        if boxes is not None and asked.only != "video":
            results.append(
                evaluate(boxes, scenes, config, **{**at, "frame_thresholds": asked.frame_thresholds})
            )
        if tubes is not None:
            results.append(
                evaluate(tubes, scenes, config, **{**at, "video_thresholds": asked.video_thresholds})
            )
    matches = {level: held for result in results for level, held in result.matches.items()}
    for result in results:
        left.findings |= result.left_out
    counted = {f"{n:,} {what} were left out" for what, n in left.findings.items()}
    notes = tuple(note for result in results for note in result.notes if note not in counted)
    return _in_order(pl.concat([result.summary for result in results])), matches, notes


def _in_order(summary: pl.DataFrame) -> pl.DataFrame:
    """The whole set before its groups; within each, boxes before tubes."""

    groups = summary["group"].unique(maintain_order=True).to_list()
    return pl.concat(
        [
            summary.filter(pl.col("group").eq_missing(pl.lit(group, dtype=pl.String)))
            for group in sorted(groups, key=lambda group: group is not None)
        ]
    )


def _strips(tubes: Predictions | None, scenes: Scenes, config: DetectionConfig) -> tuple[Strip, ...]:

    if tubes is None:
        return ()
    with console.log_step("worst tubes"):
        return tuple(select_worst_tubes(tubes, scenes, config))


def _faults(
    boxes: Predictions | None,
    tubes: Predictions | None,
    scenes: Scenes,
    config: DetectionConfig,
    asked: Asked,
) -> pl.DataFrame | None:
    """What goes wrong at each level."""

    found = []
    with console.log_step("faults"):
        for level, claims in (("frame", boxes), ("video", tubes)):
            if claims is not None and asked.only in (None, level):
                kinds = list(asked.kinds) or None
                table = build_error_table(
                    claims, scenes, config, level=level, threshold=_FAULTS_AT[level], kinds=kinds
                )
                found.append(table.with_columns(threshold=pl.lit(_FAULTS_AT[level])))
    held = [table for table in found if len(table.columns) > 1]
    return pl.concat(held) if held else None


# Streaming accuracy beside the offline numbers: what a worker that needs time knew at each frame.

_CLOCK = Group("Streaming accuracy", sort_key=50)
_LATENCY = (
    "Seconds from the start of work on a frame to its output: judge also what was known at each frame on a "
    "simulated clock. Detections are linked again, in the frames that were worked on."
)
_SCHEDULER = (
    "One worker takes the newest frame when it is free (latest, the default), or all frames one after the "
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


def evaluate_streaming(
    whole: Scenes, scenes: Scenes, claims: Sequence[Claims], asked: Asked, came: Scored, clock: Clock
) -> dict[str, Any] | None:
    """The metrics on the simulated clock, in the form of the offline ones; None without a latency.

    Args:
        whole: all of the truth.
        scenes: the split.
        claims: what is predicted, detections among it.
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

    given = next((each for each in claims if each.has_boxes), None)
    if given is None:
        raise UsageError("--latency needs detections, and only tubes are predicted")
    config = _timing(scenes, clock)
    then = replace(config, scheduler="recorded")
    detections = _drop_tubes(given.tables)
    linker, found = _linker(given, asked), []
    with console.log_step("streaming"):
        seen = select_processed_frames(detections, scenes, config, clock.latency)
        if asked.only != "video":
            found.append(Claims(given.path, "detections", apply_latency(seen, scenes, then)))
        if asked.only != "frame":
            tubes = _link_stream(seen, given, scenes, came, linker)
            found.append(Claims(given.path, "tubes", apply_latency(tubes, scenes, then)))
    plain = replace(asked, by=(), draws=0, details=False, tracking=False)
    judged = evaluate_split(whole, scenes, found, plain)
    run = EventRun(given.path.name, asked.dataset, judged.config, judged.summary, judged.matches)
    told: dict[str, Any] = {"latency_s": clock.latency, "scheduler": config.scheduler, "times": config.times}
    told |= {"fps": clock.fps, "linker": None if asked.only == "frame" else to_dict(linker)}
    return {**build_metrics_json(run, map_native_kinds(scenes)), "clock": told}


def _timing(scenes: Scenes, clock: Clock) -> StreamingConfig:
    """The clock, by the truth's rates or times, or by the rate that was given.

    Raises:
        UsageError: if nothing says when frames were taken.
    """

    videos, frames = scenes.videos, scenes.frames
    rated = "fps" in videos.columns and not videos["fps"].null_count()
    timed = "t_s" in frames.columns and len(frames) > 0 and not frames["t_s"].null_count()
    if not (rated or timed or clock.fps):
        raise UsageError("--latency: the truth tells neither rates nor times of frames; give --fps")
    by_times = timed and not rated and clock.fps is None
    return StreamingConfig(
        scheduler=clock.scheduler or "latest", times="t_s" if by_times else "fps", fps=clock.fps
    )


def _drop_tubes(claims: Predictions) -> Predictions:
    """The detections alone."""

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
    """How the predictions were linked if they say it, else as config and detector have it; gaps are kept."""

    advice = get_advice(given.tables.meta)
    noted = given.tables.meta.notes.get("linker")
    chosen = select_linker(asked.config, asked.dataset, advice)[0]
    chosen = from_dict(LinkerConfig, noted) if noted else chosen
    return replace(chosen, gaps="keep") if chosen.gaps == "squeeze" else chosen


def _link_stream(
    seen: Predictions, given: Claims, scenes: Scenes, came: Scored, linker: LinkerConfig
) -> Predictions:
    """Tubes from the frames that were worked on, without short ones where the predictions left these out."""

    if came.config.composite_scores == "product":
        seen = add_product_scores(seen, scenes)
    tubes = link(add_dense_scores(seen), linker)
    for step in list_steps(given.tables):
        if step["step"] == "interpolated":
            tubes = interpolate_tubes(tubes, from_dict(InterpolationConfig, step["config"]))
    return tubes


# Paths judged as tracks: on the boxes that the detector itself would take to be there.


def summarize_tracking(
    tubes: Predictions | None, scenes: Scenes, asked: Asked
) -> tuple[dict[str, Any] | None, str]:
    """How well the paths follow the true tracks, JSON-ready, and which of their boxes count, in words.

    Args:
        tubes: with paths; None where there are none.
        scenes: truth.
        asked: resamples, and the least score of a box.
    """

    if tubes is None:
        return None, ""
    floor, words = select_tracking_threshold(tubes, asked.min_score)
    config = replace(TrackingConfig.default(), min_score=floor)
    with console.log_step("tracking"):
        found = evaluate_tracks(tubes, scenes, config, draws=asked.draws, seed=asked.seed)
    return {
        row["metric"]: {
            "value": row["value"],
            "low": row["low_video"],
            "high": row["high_video"],
            "units": row["units_video"],
            "caution": row["caution_video"],
        }
        for row in found.of_group().iter_rows(named=True)
    }, words


def select_tracking_threshold(tubes: Predictions, asked: float | None) -> tuple[float | None, str]:
    """The score that a box of a path needs to count in tracking metrics, and words on it.

    Args:
        tubes: paths, whose detector may have a threshold.
        asked: the score that was asked for; None for the detector's.

    Raises:
        UsageError: if a score is asked for and the boxes have none.
    """

    boxes = tubes.boxes
    scored = boxes.is_empty() or ("score" in boxes.columns and boxes["score"].null_count() < len(boxes))
    if asked is not None:
        if not scored:
            raise UsageError("--min-score asks for scores of boxes, and these predictions have none")
        return asked, f"boxes at or above {asked:g}, as asked for"
    advice = get_advice(tubes.meta)
    if advice.min_score is not None and scored:
        words = f"boxes at or above {advice.min_score:g}, the detector's threshold; --min-score to change"
        return advice.min_score, words
    why = "the detectors' thresholds differ" if "min_score" in advice.disputed else "no threshold is known"
    return None, f"all boxes, however weak: {why}; --min-score sets one" if scored else ""
