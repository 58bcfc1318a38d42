"""Every task by its name: predictions and ground truth in memory, judged as the commands judge files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any, Literal

import polars as pl

from roadaware.analysis import scene_tasks
from roadaware.analysis.doctor.data import check_overlap
from roadaware.analysis.evaluation.corner_cases import Routing, label_both
from roadaware.analysis.evaluation.events import explain_low_scores, select_tracking_threshold
from roadaware.analysis.evaluation.pedestrians import get_config
from roadaware.config import check_config_name, check_options
from roadaware.errors import InputError, UsageError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import evaluate
from roadaware.metrics.metric_state import MetricResult
from roadaware.metrics.pedestrians import PedestrianConfig, collect_sample_scores, evaluate_samples
from roadaware.metrics.scores import SampleScores
from roadaware.metrics.tracking import evaluate_tracks
from roadaware.metrics.tracking_pairs import TrackingConfig
from roadaware.protocols.coda import OWN, TRAINING_SETS, has_classes
from roadaware.scenes.tables import Predictions, Scenes

TaskName = Literal[
    "road", "ucf24", "tracking", "pedestrians", "actions", "relations", "grounding", "sound", "corner_cases"
]
_WHERE = "predictions"
"""What errors call tables that lie in no file."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What came of judging tables: the metric's own result, how they were judged, and the tables.

    Of pedestrians, `state` holds the scores beside the truth.
    """

    found: MetricResult
    task: str
    config: Any
    predictions: Predictions = field(default_factory=Predictions, repr=False)
    scenes: Scenes = field(default_factory=Scenes, repr=False)
    state: SampleScores | None = field(default=None, repr=False)


def evaluate_tables(
    task: str, predictions: Predictions, scenes: Scenes, config: Any, options: Mapping[str, Any], **how: int
) -> Evaluation:
    """Predictions in memory judged against ground truth in memory.

    Args:
        task: a name of `TASKS`.
        predictions: what a model says.
        scenes: the ground truth.
        config: a name, or a config of the task.
        options: of the task, see `TASKS`.
        how: `resamples` and `seed` of the resamples.

    Raises:
        UsageError: if config or an option is not known.
        InputError: if there is no ground truth, or predictions do not fit it.
    """
    evaluate_task, known = TASKS[task]
    check_options(options, known)
    judged = evaluate_task(predictions, scenes, config, **how, **options)
    notes = []
    if refused := len(predictions.rejected):
        row = predictions.rejected.row(0, named=True)
        notes.append(
            f"{refused:,} rows of the predictions were refused and count as not predicted; the first, {row['item']}: "
            f"{row['reason']}"
        )
    if how["resamples"] and len(scenes.videos) == 1 and not judged.found.summary["low_video"].count():
        notes.append("there are no intervals over videos: the ground truth is one video")
    return replace(judged, found=replace(judged.found, notes=(*judged.found.notes, *notes)))


def _evaluate_events(
    predictions: Predictions, scenes: Scenes, config: Any, *, resamples: int, seed: int, **options: Any
) -> Evaluation:
    """Boxes and tubes judged as they are; nothing is linked."""
    options = {name: (given,) if isinstance(given, str | Real) else given for name, given in options.items()}
    if not isinstance(config, DetectionConfig):
        config = getattr(DetectionConfig, check_config_name(config))()
    lacking = check_overlap(predictions, scenes, where=_WHERE, kinds=options.get("kinds") or ())
    mine, known = predictions.meta.vocabularies, scenes.meta.vocabularies
    if len(predictions.boxes) and mine and known and not mine.keys() & known.keys():
        raise InputError(
            f"predictions have labels of the kind {', '.join(mine)}, the ground truth of {', '.join(known)}",
            hint="say kind= of from_numpy, from_pandas or from_coco as the ground truth calls it",
        )
    found = evaluate(predictions, scenes, config, resamples=resamples, seed=seed, **options)
    doubts = explain_low_scores(found.summary, predictions, scenes, _WHERE)
    found = replace(found, notes=(*found.notes, *lacking, *doubts))
    return Evaluation(found, "road", config, predictions, scenes)


def _evaluate_tracks(
    predictions: Predictions,
    scenes: Scenes,
    config: Any,
    *,
    resamples: int,
    seed: int,
    min_score: Any = None,
) -> Evaluation:
    """Paths as they are, whatever their labels; of boxes at or above the detector's threshold, where it is known."""
    if not isinstance(config, TrackingConfig):
        config = getattr(TrackingConfig, check_config_name(config))()
    if min_score is not None:
        if not isinstance(min_score, Real):
            raise UsageError(f"min_score is a number in [0, 1], not {min_score!r}")
        min_score = float(min_score)
    if scenes.tubes.is_empty():
        raise InputError("the ground truth has no tracks", hint="say tracks= of from_numpy, or read MOT text")
    lacking = check_overlap(predictions, scenes, where=_WHERE, kinds=("tracks",))
    if len(predictions.boxes) and predictions.tubes.is_empty():
        raise InputError(
            "the predicted boxes have no tracks",
            where=_WHERE,
            hint="say tracks= of from_numpy, or link them: ra.link(predictions)",
        )
    if config.min_score is None:
        floor, words = select_tracking_threshold(predictions, min_score, "min_score")
        config, lacking = replace(config, min_score=floor), (*lacking, words)
    elif min_score is not None:
        raise UsageError(f"config has min_score {config.min_score:g} already: say one of the two")
    found = evaluate_tracks(predictions, scenes, config, resamples=resamples, seed=seed)
    found = replace(found, notes=(*found.notes, *lacking))
    return Evaluation(found, "tracking", config, predictions, scenes)


def _evaluate_pedestrians(
    predictions: Predictions, scenes: Scenes, config: Any, *, resamples: int, seed: int, **options: Any
) -> Evaluation:
    if scenes.samples.is_empty():
        raise InputError(
            "the scenes have no samples of pedestrians",
            hint='cut them first: scenes = ra.sample(scenes, "jaad-action@iv2024")',
        )
    splits = scenes.samples["split"].cast(pl.String).unique() if "split" in scenes.samples.columns else ()
    split = options.get("split", "test" if "test" in splits else None)
    if not isinstance(config, PedestrianConfig):
        asked: Any = str(scenes.samples["kind"].cast(pl.String)[0])
        config = get_config(check_config_name(config), asked)
    state, clipped = collect_sample_scores(predictions, scenes, config.task, split=split)
    found = evaluate_samples(state, config, resamples=resamples, seed=seed, n_clipped=clipped)
    return Evaluation(found, "pedestrians", config, predictions, scenes, state)


def _evaluate_scenes(
    predictions: Predictions,
    scenes: Scenes,
    config: Any,
    *,
    task: str,
    resamples: int,
    seed: int,
    by: str | tuple[str, ...] = (),
    **routing: Any,
) -> Evaluation:
    asked = scene_tasks.get_task(task)
    config = scene_tasks.get_config(asked, config) if isinstance(config, str) else config
    if not isinstance(config, scene_tasks.load_config_class(asked)):
        wanted = scene_tasks.load_config_class(asked).__name__
        raise UsageError(f"config of {task} is a name or a {wanted}, not {type(config).__name__}")
    scene_tasks.check_truth(asked, scenes, "scenes")
    scene_tasks.check_predictions(asked, predictions, scenes, _WHERE)
    if asked is scene_tasks.CORNER_CASES:
        trained_on = routing.get("trained_on")
        routing.setdefault("agnostic", trained_on is None and not has_classes(predictions))
        if not routing["agnostic"] and trained_on is None:
            raise UsageError(
                "say what the detector's classes are, trained_on= one of "
                f"{', '.join(map(repr, TRAINING_SETS))}, {OWN!r} (those of the ground truth) or a csv; or "
                "agnostic=True to leave them aside"
            )
        routing["trained_on"] = None if trained_on is None else str(trained_on)
        predictions, scenes = label_both(predictions, scenes, config, Routing(**routing))
    by = (by,) if isinstance(by, str) else tuple(by)
    found = scene_tasks.evaluate_predictions(
        asked, predictions, scenes, config, where=_WHERE, by=by, resamples=resamples, seed=seed
    )
    return Evaluation(found, task, config, predictions, scenes)


_OF_EVENTS = ("kinds", "frame_thresholds", "video_thresholds", "overlaps", "groups", "slices")
TASKS: dict[str, tuple[Callable[..., Evaluation], tuple[str, ...]]] = {
    "road": (_evaluate_events, _OF_EVENTS),
    "ucf24": (_evaluate_events, _OF_EVENTS),
    "tracking": (_evaluate_tracks, ("min_score",)),
    "pedestrians": (_evaluate_pedestrians, ("split",)),
    **{name: (partial(_evaluate_scenes, task=name), ("by",)) for name in scene_tasks.TASKS},
    "corner_cases": (
        partial(_evaluate_scenes, task="corner_cases"),
        ("by", "trained_on", "agnostic", "classes"),
    ),
}
"""How tables of each task are judged, and the names of its options."""
