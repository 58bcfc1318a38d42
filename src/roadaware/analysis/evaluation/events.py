"""Predictions of road events brought together and judged: boxes from detections, tubes from where they are."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from roadaware.analysis.doctor.corrections import collect_true_boxes, find_corrections
from roadaware.analysis.doctor.data import check_overlap, reject_zero_score, suspect_box_format
from roadaware.analysis.doctor.predictions import fit, join_boxes
from roadaware.analysis.evaluation import event_inputs
from roadaware.analysis.evaluation.event_inputs import (
    EventPredictions,
    EventSet,
    add_dense_scores,
    assign_labels,
)
from roadaware.analysis.evaluation.runs import EventRun
from roadaware.analysis.evaluation.scenes import digest_truth
from roadaware.analysis.event_findings import (
    LeftOut,
    check_image_size,
    count_empty_videos,
    list_warnings,
    select_known_videos,
)
from roadaware.analysis.event_results import CALIBRATED_AT, build_video_slices
from roadaware.analysis.excerpts import check_clips, list_film_places, select_event_excerpts
from roadaware.analysis.road_counts import is_printed_set
from roadaware.analysis.worst_tubes import select_worst_tubes
from roadaware.config import ConfigName, from_dict, to_dict
from roadaware.errors import InputError, UsageError
from roadaware.formats import road_detections
from roadaware.formats.raw_predictions import RawPredictions
from roadaware.formats.road_detections import encode_pickle
from roadaware.formats.submission import FILE, THRESHOLDS, Remark, Submission
from roadaware.io.parallel import HERE, Workers
from roadaware.linking.config import LinkerConfig, compare_with_advice, select_linker
from roadaware.linking.link import link
from roadaware.linking.postprocessing import InterpolationConfig, interpolate_tubes, list_steps
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.errors import build_error_table
from roadaware.metrics.detection.evaluate import DetectionResult, as_json, evaluate
from roadaware.metrics.detection.matches import add_product_scores
from roadaware.metrics.requirements import evaluate_requirements
from roadaware.metrics.streaming import StreamingConfig, apply_latency, select_processed_frames
from roadaware.metrics.tracking import evaluate_tracks, list_values
from roadaware.metrics.tracking_pairs import TrackingConfig
from roadaware.scenes.advice import get_advice
from roadaware.scenes.requirements import open_requirements
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes
from roadaware.steps import log_step, show_progress
from roadaware.tasks.videos import collect_videos, find_videos

if TYPE_CHECKING:
    from roadaware.analysis.excerpts import Excerpt
    from roadaware.analysis.worst_tubes import Strip
    from roadaware.metrics.detection.matches import Matches
    from roadaware.scenes.requirements import Requirements
    from roadaware.scenes.tables import Predictions

Overlap = Literal["stiou", "siou", "tiou"]
Level = Literal["frame", "video"]
Scheduler = Literal["latest", "every", "queue"]
TENTH = ("0.2", "0.5", "0.75", "0.5:0.95")
_COMPOSITES = {"duplex", "event"}
_LOW = 0.3
"""Where every metric is below this, a mistake in frames or boxes is looked for."""
# The thresholds at which the ROAD paper reports frame-mAP and video-mAP.
_FAULTS_AT = {"frame": 0.5, "video": 0.2}


@dataclass(frozen=True)
class EventRequest:
    """What is asked of predictions of road events.

    Args:
        dataset: whose published parameters tubes are built with.
        config: the published choices, or ours.
        split: of the ground truth; all of it where None.
        frame_thresholds: of boxes.
        video_thresholds: of tubes.
        overlap: of tubes.
        kinds: of labels; all where empty.
        composites: how composite labels are scored; as the config says where None.
        only: one level alone.
        by: groups.
        resamples: resamples of videos.
        seed: of the resamples.
        details: whether worst tubes and faults are wanted as well.
        tracking: whether paths are judged as tracks as well.
        min_score: agentness that a box needs to count as one of a track; as the detector says where None.
        latency: seconds from the start of work on a frame to its output; None judges offline alone.
        scheduler: which frames a worker takes; the newest one where None.
        fps: frames a second, where the ground truth does not say them.
        images: the COCO annotations that list images and categories, for COCO results.
        size_px: (width, height) of the images that the boxes of detection files are in.
        clips: how many moments are cut out of the films, for the report.
        media: where films lie; with files beside the ground truth where empty.
        requirements: files of logical requirements that predictions are held against; several have to say the same.
        workers: where detections are linked and resamples are worked on, and by how many at a time.
    """

    dataset: EventSet
    config: ConfigName = "default"
    split: str | None = None
    frame_thresholds: Sequence[str] = TENTH
    video_thresholds: Sequence[str] = TENTH
    overlap: Sequence[Overlap] = ("stiou",)
    kinds: Sequence[str] = ()
    composites: Literal["joint", "product"] | None = None
    only: Level | None = None
    by: Sequence[str] = ()
    resamples: int = 0
    seed: int = 0
    details: bool = False
    tracking: bool = False
    min_score: float | None = None
    latency: float | None = None
    scheduler: Scheduler | None = None
    fps: float | None = None
    images: Path | None = None
    size_px: tuple[int, int] = (682, 512)
    clips: int = 0
    media: tuple[Path, ...] = ()
    requirements: tuple[Path, ...] = ()
    workers: Workers = HERE

    def check(self) -> None:
        """Refuse what has no meaning, before anything is opened.

        Raises:
            UsageError: if a number is out of range, or an option is given without what it belongs to.
        """
        if self.latency is None:
            if self.scheduler is not None or self.fps is not None:
                raise UsageError("--scheduler and --fps say how outputs are timed: give --latency too")
        elif not 0 <= self.latency < float("inf"):
            raise UsageError(f"--latency is a finite number of seconds from 0 on; got {self.latency}")
        check_clips(self.clips)
        if self.fps is not None and not 0 < self.fps < float("inf"):
            raise UsageError(f"--fps is a number of frames a second above 0; got {self.fps}")
        if self.min_score is not None:
            if not self.tracking:
                raise UsageError("--min-score leaves boxes out of tracking metrics: say --tracking too")
            if not 0 <= self.min_score <= 1:
                raise UsageError(f"--min-score is a score from 0 to 1, not {self.min_score:g}")

    def metric(self) -> DetectionConfig:
        """How it is judged."""
        named = DetectionConfig.reference() if self.config == "reference" else DetectionConfig.default()
        return named if self.composites is None else replace(named, composite_scores=self.composites)


def evaluate_event_files(truth: Path, predictions: Sequence[Path], request: EventRequest) -> EventRun:
    """Ground truth and predictions opened, brought together and judged: offline, and what stands beside that.

    Args:
        truth: a release's file, an export of VoTT, or tables that `read -o` saved.
        predictions: files and folders in any form; at most one with boxes and one with tubes.
        request: what is asked.

    Raises:
        UsageError: if the request has no meaning, there is no such split, or nothing that was asked for is predicted.
        InputError: if something cannot be read, or predictions and ground truth do not fit each other.
    """
    request.check()
    request = replace(request, media=request.media or list_film_places(None, truth))
    whole = event_inputs.open_truth(truth, request.dataset)
    scenes = event_inputs.select_split(whole, request.split, request.kinds)
    videos = [str(video) for video in scenes.videos["video"].to_list()]
    opened = [
        event_inputs.open_predictions(path, whole, request.size_px, videos, request.images)
        for path in predictions
    ]
    name = predictions[0].stem or str(predictions[0])
    run = evaluate_events(whole, scenes, opened, request, name=name)
    beside = {
        "streaming": evaluate_streaming(whole, scenes, opened, request, run),
        "calibration": group_calibration(scenes, run.matches, request.by),
    }
    return replace(run, facts=run.facts | {key: held for key, held in beside.items() if held is not None})


def evaluate_events(
    whole: Scenes, scenes: Scenes, opened: Sequence[EventPredictions], request: EventRequest, *, name: str
) -> EventRun:
    """Judge what was predicted in the videos of a split.

    Args:
        whole: all of the truth.
        scenes: the split.
        opened: at most one with boxes of its own and one with tubes of its own.
        request: what is asked.
        name: of the model.

    Raises:
        UsageError: if two predictions are of the same, or nothing that was asked for is predicted.
        InputError: if predictions and truth do not fit each other.
    """
    request = replace(request, kinds=event_inputs.convert_kinds(request.kinds, scenes))
    requirements = open_requirements(request.requirements) if request.requirements else None
    boxes, tubes = _sides(opened, request.only)
    config, notes = select_composites(request, boxes, tubes)
    left = LeftOut()
    given = list(dict.fromkeys(each for each in (boxes, tubes) if each is not None))
    for each in given:
        check_overlap(assign_labels(each.tables, scenes), scenes, where=str(each.path), kinds=request.kinds)
        left.findings |= each.left.findings
        left.elsewhere |= each.left.elsewhere
    of_boxes = _within(boxes, whole, scenes, left)
    of_tubes = of_boxes if tubes is boxes else _within(tubes, whole, scenes, left)
    judged = [held for held in (of_boxes, of_tubes if of_tubes is not of_boxes else None) if held is not None]
    for held in judged:
        left.findings |= count_empty_videos(held, scenes)
    uncertainties = [check_image_size(held, scenes) for held in judged]
    notes += [note for of_one in uncertainties for note in of_one]
    if of_tubes is None and of_boxes is not None and request.only != "frame":
        advice = get_advice(of_boxes.meta)
        linker_config, said = select_linker(request.config, request.dataset, advice, command="link")
        product = config.composite_scores == "product"
        scored = add_dense_scores(add_product_scores(of_boxes, scenes) if product else of_boxes)
        with show_progress("linking") as progress, log_step("linking"):
            of_tubes = link(scored, linker_config, progress=progress, workers=request.workers)
        words = ", ".join([f"config {request.config}", f"parameters of {request.dataset}", *said])
        notes.append(f"tubes were built from the detections by the linker ({words})")
    if of_boxes is None and request.only is None:
        notes.append("boxes of frames are not judged: only tubes are predicted")
    summary, matches, also = _evaluate_levels(of_boxes, of_tubes, scenes, config, request, left)
    notes += [*also, *list_warnings(whole)]
    # A size in doubt is told in words, which say more than the boxes do.
    if judged and not uncertainties[0]:
        notes += explain_low_scores(summary, judged[0], scenes, str(given[0].path))
    linker = of_tubes.meta.notes.get("linker") if of_tubes is not None else None
    if of_tubes is not None and tubes is not None:
        notes += compare_with_advice(linker, get_advice(of_tubes.meta))
    facts: dict[str, Any] = {
        "split": request.split,
        "truth": {
            "dataset": scenes.meta.dataset or request.dataset,
            "digest": scenes.meta.source_digest,
            "judged_digest": digest_truth(scenes),
            "videos": len(scenes.videos),
            "boxes": len(scenes.boxes),
            "native_kinds": event_inputs.map_native_kinds(scenes),
            "printed": is_printed_set(whole.meta.dataset, list(map(str, whole.videos["video"].to_list()))),
        },
        "predictions": [each.path.name for each in opened],
        "dropped": left.everything,
        "findings": left.findings,
        "linker": linker,
        "config_name": request.config,
    }
    if request.tracking:
        tracking, words = summarize_tracking(of_tubes, scenes, request)
        facts |= {"tracking": tracking, "tracked": words} if tracking is not None else {}
    if requirements is not None:
        facts["requirements"] = _hold_against_requirements(
            requirements, boxes, of_boxes, of_tubes, scenes, request
        )
    faults: pl.DataFrame | None = None
    strips: tuple[Strip, ...] = ()
    if request.details:
        faults = _faults(of_boxes, of_tubes, scenes, config, request)
        if of_tubes is not None:
            with log_step("worst tubes"):
                strips = tuple(select_worst_tubes(of_tubes, scenes, config))
    excerpts: tuple[Excerpt, ...] = ()
    if request.clips and of_tubes is not None:
        with log_step("moments"):
            excerpts = select_event_excerpts(
                of_tubes, scenes, config, request.media, most=request.clips, kinds=request.kinds
            )
    return EventRun(
        name,
        request.dataset,
        config,
        summary,
        matches,
        strips,
        request.resamples,
        request.seed,
        facts,
        tuple(dict.fromkeys(notes)),
        faults,
        excerpts,
    )


def _hold_against_requirements(
    requirements: Requirements,
    given: EventPredictions | None,
    boxes: Predictions | None,
    tubes: Predictions | None,
    scenes: Scenes,
    request: EventRequest,
) -> dict[str, Any]:
    """Violations of requirements by boxes and by tubes, JSON-ready."""
    of_boxes = None if given is None or request.only == "video" else boxes
    with log_step("requirements"):
        found = evaluate_requirements(
            requirements,
            None if of_boxes is None else add_dense_scores(of_boxes),
            None if request.only == "frame" else tubes,
            scenes,
            resamples=request.resamples,
            seed=request.seed,
        )
    return found.to_dict()


def explain_low_scores(
    summary: pl.DataFrame, predictions: Predictions, scenes: Scenes, where: str
) -> tuple[str, ...]:
    """Refuse predictions that score 0 in everything where a usual mistake explains it; where they score little, a note.

    Raises:
        InputError: with what explains a 0.
    """
    best = summary["value"].max()
    if not isinstance(best, float) or best >= _LOW or predictions.boxes.is_empty():
        return ()
    if best == 0:
        reject_zero_score(None, predictions, scenes, where)
        return ()
    return tuple(
        f"{each.says.removesuffix('.')}, it seems: {each.evidence}; {each.remedy[:1].lower()}{each.remedy[1:]}"
        for each in suspect_box_format(predictions, scenes)
    )


def select_composites(
    request: EventRequest, boxes: EventPredictions | None, tubes: EventPredictions | None
) -> tuple[DetectionConfig, list[str]]:
    """How it is judged: composite scores as asked for, or as linked tubes hold them, and notes on it.

    Raises:
        UsageError: if linked tubes were labelled the other way than is asked for.
    """
    config = request.metric()
    held = {_infer_composites(each) for each in (boxes, tubes) if each is not None} - {None}
    vocabularies = {kind for each in (boxes, tubes) if each for kind in each.tables.meta.vocabularies}
    if not set(request.kinds or vocabularies) & vocabularies & _COMPOSITES:
        return config, []
    if request.composites is None:
        if held != {"product"}:
            return config, []
        note = "the predictions hold products of marginals as scores of duplexes and events"
        return replace(config, composite_scores="product"), [note]
    how = None if tubes is None else _infer_composites(tubes)
    if tubes is not None and how is not None and how != request.composites:
        raise UsageError(
            f"{tubes.path} was labelled by {how} scores of composites, and --composites {request.composites} "
            f"was asked for: link the detections again with --composites {request.composites}, or evaluate "
            "the detections themselves"
        )
    unknown = tubes is not None and how is None
    note = f"the scores of duplexes and events in the tubes are taken to be {request.composites} ones"
    return config, [note] if unknown else []


def _infer_composites(predictions: EventPredictions) -> Literal["joint", "product"] | None:
    """Which scores composite kinds have; None where nothing says so."""
    notes = predictions.tables.meta.notes
    if notes.get("products_of_marginals"):
        return "product"
    return "joint" if predictions.form == "saved" and predictions.has_tubes and notes.get("linker") else None


def _sides(
    opened: Sequence[EventPredictions], only: Level | None
) -> tuple[EventPredictions | None, EventPredictions | None]:
    """Which predictions boxes are judged by, and which tubes."""
    found: dict[str, EventPredictions | None] = {}
    for what in ("boxes", "tubes"):
        held = [each for each in opened if (each.has_boxes if what == "boxes" else each.has_tubes)]
        if len(held) > 1:
            names = " and ".join(each.path.name for each in held)
            raise UsageError(f"{names} both hold {what}; name one of them, or evaluate each by itself")
        found[what] = held[0] if held else None
    boxes = None if only == "video" and found["tubes"] is not None else found["boxes"]
    tubes = None if only == "frame" else found["tubes"]
    if only == "frame" and boxes is None:
        raise UsageError("--only frame needs detections, and only tubes are predicted")
    return boxes, tubes


def _within(
    predictions: EventPredictions | None, whole: Scenes, scenes: Scenes, left: LeftOut
) -> Predictions | None:
    """The predictions in the videos that are judged; what lies elsewhere is counted."""
    if predictions is None:
        return None
    judged, known = ([str(video) for video in tables.videos["video"].to_list()] for tables in (scenes, whole))
    return select_known_videos(assign_labels(predictions.tables, scenes), judged, known, left)


def _evaluate_levels(
    boxes: Predictions | None,
    tubes: Predictions | None,
    scenes: Scenes,
    config: DetectionConfig,
    request: EventRequest,
    left: LeftOut,
) -> tuple[pl.DataFrame, dict[str, Matches], tuple[str, ...]]:
    """Both levels, each by its own predictions: summary, matches, notes; what was left out is counted."""
    common: dict[str, Any] = {
        "overlaps": request.overlap,
        "kinds": list(request.kinds) or None,
        "resamples": request.resamples,
        "seed": request.seed,
        "slices": build_video_slices(scenes, request.by),
        "workers": request.workers,
    }
    at = {"frame_thresholds": (), "video_thresholds": ()} | common
    results = []
    with log_step("judging"):
        if boxes is not None and request.only != "video":
            results.append(
                evaluate(boxes, scenes, config, **{**at, "frame_thresholds": request.frame_thresholds})
            )
        if tubes is not None:
            results.append(
                evaluate(tubes, scenes, config, **{**at, "video_thresholds": request.video_thresholds})
            )
    matches = {level: held for result in results for level, held in result.matches.items()}
    for result in results:
        left.findings |= result.left_out
    counted = {f"{n:,} {what} were left out" for what, n in left.findings.items()}
    notes = tuple(note for result in results for note in result.notes if note not in counted)
    summary = pl.concat([result.summary for result in results])
    # The whole set before its groups; within each, boxes before tubes.
    groups = sorted(
        summary["group"].unique(maintain_order=True).to_list(), key=lambda group: group is not None
    )
    parts = [summary.filter(pl.col("group").eq_missing(pl.lit(group, dtype=pl.String))) for group in groups]
    return pl.concat(parts), matches, notes


def _faults(
    boxes: Predictions | None,
    tubes: Predictions | None,
    scenes: Scenes,
    config: DetectionConfig,
    request: EventRequest,
) -> pl.DataFrame | None:
    """What goes wrong at each level."""
    found = []
    with log_step("faults"):
        for level, held in (("frame", boxes), ("video", tubes)):
            if held is not None and request.only in (None, level):
                kinds = list(request.kinds) or None
                table = build_error_table(
                    held, scenes, config, level=level, threshold=_FAULTS_AT[level], kinds=kinds
                )
                found.append(table.with_columns(threshold=pl.lit(_FAULTS_AT[level])))
    tables = [table for table in found if len(table.columns) > 1]
    return pl.concat(tables) if tables else None


# Streaming accuracy beside the offline numbers: what a worker that needs time knew at each frame.


def evaluate_streaming(
    whole: Scenes,
    scenes: Scenes,
    opened: Sequence[EventPredictions],
    request: EventRequest,
    offline: EventRun,
) -> dict[str, Any] | None:
    """The metrics on the simulated clock, in the form of the offline ones; None without a latency.

    Args:
        whole: all of the truth.
        scenes: the split.
        opened: what is predicted, detections among it.
        request: what was asked of them offline, and when outputs are ready.
        offline: what came of it.

    Returns:
        `frame`, `video` and `av_action` as the JSON has them, in per cent, and `clock`.

    Raises:
        UsageError: if there are no detections, or the time of frames is not known.
    """
    if request.latency is None:
        return None

    given = next((each for each in opened if each.has_boxes), None)
    if given is None:
        raise UsageError("--latency needs detections, and only tubes are predicted")
    videos, frames = scenes.videos, scenes.frames
    rated = "fps" in videos.columns and not videos["fps"].null_count()
    timed = "t_s" in frames.columns and len(frames) > 0 and not frames["t_s"].null_count()
    if not (rated or timed or request.fps):
        raise UsageError("--latency: the truth tells neither rates nor times of frames; give --fps")
    by_times = timed and not rated and request.fps is None
    config = StreamingConfig(
        scheduler=request.scheduler or "latest", times="t_s" if by_times else "fps", fps=request.fps
    )
    then = replace(config, scheduler="recorded")

    # Linked as the predictions say that they were, else as config and detector have it; gaps are kept.
    noted = given.tables.meta.notes.get("linker")
    linker = select_linker(request.config, request.dataset, get_advice(given.tables.meta))[0]
    linker = from_dict(LinkerConfig, noted) if noted else linker
    linker = replace(linker, gaps="keep") if linker.gaps == "squeeze" else linker

    found = []
    with log_step("streaming"):
        # The detections alone.
        predictions = given.tables
        boxes = predictions.boxes
        if "interpolated" in boxes.columns:
            boxes = boxes.filter(~pl.col("interpolated").fill_null(value=False)).drop("interpolated")
        labels = predictions.labels
        if not labels.is_empty():
            labels = labels.filter(pl.col("box").is_in(boxes["box"].implode()))
        seen = select_processed_frames(
            predictions.with_tables(
                boxes=boxes.drop("tube", strict=False),
                labels=labels,
                tubes=predictions.tubes.clear(),
                tube_labels=predictions.tube_labels.clear(),
            ),
            scenes,
            config,
            request.latency,
        )
        if request.only != "video":
            found.append(EventPredictions(given.path, "detections", apply_latency(seen, scenes, then)))
        if request.only != "frame":
            product = offline.config.composite_scores == "product"
            tubes = link(add_dense_scores(add_product_scores(seen, scenes) if product else seen), linker)
            # Short tubes are left out where the predictions left them out.
            for step in list_steps(given.tables):
                if step["step"] == "interpolated":
                    tubes = interpolate_tubes(tubes, from_dict(InterpolationConfig, step["config"]))
            found.append(EventPredictions(given.path, "tubes", apply_latency(tubes, scenes, then)))
    plain = replace(request, by=(), resamples=0, details=False, tracking=False, clips=0)
    judged = evaluate_events(whole, scenes, found, plain, name=given.path.name)
    result = DetectionResult(
        judged.summary, pl.DataFrame(), to_dict(judged.config), (), matches=judged.matches
    )
    clock: dict[str, Any] = {
        "latency_s": request.latency,
        "scheduler": config.scheduler,
        "times": config.times,
        "fps": request.fps,
        "linker": None if request.only == "frame" else to_dict(linker),
    }
    return {**as_json(result, event_inputs.map_native_kinds(scenes)), "clock": clock}


# Paths judged as tracks: on the boxes that the detector itself would take to be there.


def summarize_tracking(
    tubes: Predictions | None, scenes: Scenes, request: EventRequest
) -> tuple[dict[str, Any] | None, str]:
    """How well the paths follow the true tracks, JSON-ready, and which of their boxes count, in words.

    Args:
        tubes: with paths; None where there are none.
        scenes: truth.
        request: resamples, and the least score of a box.
    """
    if tubes is None:
        return None, ""
    floor, words = select_tracking_threshold(tubes, request.min_score)
    config = replace(TrackingConfig.default(), min_score=floor)
    with log_step("tracking"):
        found = evaluate_tracks(tubes, scenes, config, resamples=request.resamples, seed=request.seed)
    return list_values(found), words


def select_tracking_threshold(
    tubes: Predictions, asked: float | None, called: str = "--min-score"
) -> tuple[float | None, str]:
    """The score that a box of a path needs to count in tracking metrics, and words on it.

    Args:
        tubes: paths, whose detector may have a threshold.
        asked: the score that was asked for; None for the detector's.
        called: what the user says to ask for one.

    Raises:
        UsageError: if a score is asked for and the boxes have none.
    """
    boxes = tubes.boxes
    scored = boxes.is_empty() or ("score" in boxes.columns and boxes["score"].null_count() < len(boxes))
    if asked is not None:
        if not scored:
            raise UsageError(f"{called} asks for scores of boxes, and these predictions have none")
        return asked, f"boxes at or above {asked:g}, as asked for"
    advice = get_advice(tubes.meta)
    if advice.min_score is not None and scored:
        words = f"boxes at or above {advice.min_score:g}, the detector's threshold; {called} to change"
        return advice.min_score, words
    why = "the detectors' thresholds differ" if "min_score" in advice.disputed else "no threshold is known"
    return None, f"all boxes, however weak: {why}; {called} sets one" if scored else ""


# How far scores can be believed in each slice of videos.


def group_calibration(
    scenes: Scenes, matches: Mapping[str, Matches], by: Sequence[str]
) -> list[dict[str, Any]] | None:
    """How far scores can be believed in each slice of videos, kind by kind; None without such slices.

    Slices that tell boxes of one frame apart, such as by height, are left out: a box that nobody asks about
    there is neither right nor wrong.

    Args:
        scenes: the ground truth that was judged.
        matches: level to its matches.
        by: names of slices, as `--by` has them.

    Returns:
        rows with `of` (boxes or tubes), `group`, `kind`, `predictions`, `mean_score`, `precision` and `ece`.
    """
    from roadaware.metrics.detection.calibration import build_calibration_table  # which needs scipy

    rows: list[dict[str, Any]] = []
    for name, part in build_video_slices(scenes, by).items():
        if part.of_boxes or part.videos is None:
            continue
        groups = dict.fromkeys(part.videos, name)
        for level, of, threshold in CALIBRATED_AT:
            held = matches.get(level)
            if held is None or threshold not in held.thresholds:
                continue
            table = build_calibration_table(held, threshold, groups=groups)
            table = table.filter(pl.col("group") == name, pl.col("label").is_null())
            rows += table.drop("label", "valid").with_columns(of=pl.lit(of)).to_dicts()
    return rows or None


# What is handed in to the server of a challenge.

_HEAD, _CLEARLY = 2, 0.01
"""Boxes at the beginning of a tube whose frames are sure, and the rise of their mean IoU where whole tubes are moved."""


def select_split(whole: Scenes, split: str, release: Path) -> Scenes:
    """The videos of a split, annotated or not.

    Args:
        whole: all videos of a release.
        split: its name, or `all`.
        release: its file, for the error.

    Raises:
        UsageError: if there is no such split.
    """
    names = (
        whole.videos["splits"].explode().drop_nulls().unique().sort().to_list()
        if "splits" in whole.videos.columns
        else []
    )
    if split == "all":
        return whole
    if split not in names:
        listed = ", ".join(map(str, names)) or "none"
        raise UsageError(
            f"{release} has no split {split!r}; its splits are {listed}, or all. Of one whose annotations are kept back "
            "--media names the videos"
        )
    return whole.split(split)


_IMAGES = (".jpg", ".jpeg", ".png")


def list_media_videos(media: Path, whole: Scenes, split: str) -> Scenes:
    """The videos in a folder, as a split that the release does not annotate.

    Args:
        media: holds videos, or a folder of images numbered from 1 for each video (`VIDEO/00001.jpg`); what else lies there
            is not looked at.
        whole: the release, which names the labels.
        split: the name of the split.

    Raises:
        UsageError: if the release has such a split.
        InputError: if there is neither, none can be opened, or the images of a video are not numbered from 1 without a gap.
    """
    if "splits" in whole.videos.columns and split in whole.videos["splits"].explode().to_list():
        raise UsageError(
            f"the release has the split {split!r}: leave --media out, or name the split that it lacks"
        )
    images: dict[str, list[Path]] = {}
    for folder in sorted(media.iterdir()) if media.is_dir() else []:
        if folder.is_dir() and not folder.name.startswith("."):
            numbered = sorted(
                file for file in folder.iterdir() if file.suffix in _IMAGES and file.stem.isdecimal()
            )
            if numbered:
                images[folder.name] = numbered
    if images:
        for name, files in images.items():
            numbers = sorted(int(file.stem) for file in files)
            if numbers != list(range(1, len(numbers) + 1)):
                raise InputError(
                    f"{name} has {len(numbers):,} images, numbered from {numbers[0]} to {numbers[-1]}",
                    where=str(media),
                    hint="frames are counted by them: each number from 1 on has to be there once",
                )
        first = next(iter(images.values()))[0]
        named = Scenes(videos=pl.DataFrame({"video": list(images)}))
        films, refused = find_videos(named, media, f"{{video}}/{{number:0{len(first.stem)}d}}{first.suffix}")
    else:
        found = collect_videos([media])
        films, refused = found.films, found.refused
    if refused:
        name, reason = next(iter(refused.items()))
        raise InputError(
            f"{len(refused)} videos cannot be opened; the first, {name}: {reason}", where=str(media)
        )
    rows = [(film.video, film.width, film.height, film.n_frames) for film in films]
    return Scenes(
        videos=pl.DataFrame(rows, schema=["video", "width_px", "height_px", "n_frames"], orient="row"),
        meta=whole.meta,
    )


def compare_submission(part: Submission, scenes: Scenes) -> list[Remark]:
    """Frames that are early or late, and boxes in another form, by how they meet the annotations of a split."""
    sizes = scenes.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px")
    # A path has a tube for each of its labels and kinds, with the same boxes.
    videos = max(part.lists.values(), key=lambda videos: sum(map(len, videos.values())))
    rows = pl.concat(
        pl.DataFrame({"frame": tube["frames"] - 1, "score": tube["scores"], "box": tube["boxes"]})
        .with_row_index("place")
        .with_columns(video=pl.lit(video))
        for video, tubes in videos.items()
        for tube in tubes
    )
    rows = rows.unique(["video", "frame", "box"], keep="first", maintain_order=True)
    rows = rows.join(sizes, on="video", maintain_order="left")
    image_px = rows.select("width_px", "height_px").to_numpy().astype(np.float64)
    raw = RawPredictions(
        rows["video"],
        rows["frame"].to_numpy().astype(np.int64),
        rows["box"].to_numpy().astype(np.float64),
        rows.select("score").to_numpy().astype(np.float64),
        None,
        image_px / np.array(road_detections.NETWORK_SIZE),
        image_px,
        lambda *_: None,
    )
    truth, head = collect_true_boxes(scenes), (rows["place"] < _HEAD).to_numpy()
    # The published builder counts boxes on over gaps, so that those behind one are early: where tubes begin frames are sure.
    begun = raw.with_changes(
        video=raw.video.filter(head),
        **{name: getattr(raw, name)[head] for name in ("frame", "corners", "scores", "unit_px", "image_px")},
    )

    def measure(read: RawPredictions) -> float:
        """How well the beginnings of tubes fit."""
        corners = read.corners * np.tile(read.unit_px, 2)
        table = pl.DataFrame(corners, schema=list(CORNERS)).with_columns(read.video, frame=read.frame)
        return fit(join_boxes(truth.boxes, table.filter(head)))

    found, _ = find_corrections(begun, truth, boxes_alone=True)
    if not found:
        as_is = measure(raw)
        found, _ = find_corrections(
            raw, truth, lambda read: measure(read) >= as_is + _CLEARLY, boxes_alone=True
        )
    return [
        Remark(True, f"{each.finding.says} {each.finding.remedy} Now {each.finding.evidence}.")
        for each in found
    ]


def score_submission(
    part: Submission, release: Path, split: str, name: str = ""
) -> dict[str, dict[str, float]]:
    """Kind to video-mAP at each of `THRESHOLDS`, in [0, 1], as the published evaluator has it.

    Args:
        part: what is handed in.
        release: the annotations.
        split: that is judged.
        name: stands before each kind.

    Raises:
        InputError: if the release cannot be judged so.
    """
    with tempfile.TemporaryDirectory(prefix="roadaware-") as folder:
        file = Path(folder) / FILE
        file.write_bytes(encode_pickle(part.lists))
        request = EventRequest(
            "road",
            config="reference",
            split=split,
            kinds=tuple(part.lists),
            video_thresholds=THRESHOLDS,
            only="video",
            size_px=road_detections.NETWORK_SIZE,
        )
        summary = evaluate_event_files(release, [file], request).summary
    rows = summary.filter(pl.col("metric").str.starts_with("video_map@"), pl.col("group").is_null())
    scores: dict[str, dict[str, float]] = {}
    for kind, threshold, value in rows.select("kind", "threshold", "value").iter_rows():
        if value is not None:
            scores.setdefault(f"{name} {kind}".strip(), {})[str(threshold)] = float(value)
    return scores
