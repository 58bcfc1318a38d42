"""The figures of an evaluation, drawn from the scores of its samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from roadaware.errors import UsageError
from roadaware.metrics.pedestrians import Task
from roadaware.metrics.result import MetricResult
from roadaware.metrics.scores import SampleScores, compute_confidences
from roadaware.reports.curves import compute_curve, plot_precision_recall, plot_reliability, score_over_time
from roadaware.reports.picture import Picture
from roadaware.reports.scene import Story, plot_pedestrian, plot_risk_regions
from roadaware.reports.text import format_name
from roadaware.scenes.sampling import Iv2024, list_task_answers
from roadaware.scenes.tables import Scenes
from roadaware.statistics import calibration

FEWEST_BANDS = 2
MARGIN_FRAMES = 30


def plot_evaluation(
    state: SampleScores,
    result: MetricResult,
    *,
    labels: Sequence[str] | None = None,
    name: str = "model",
    beside: Mapping[str, SampleScores] | None = None,
) -> list[Picture]:
    """The figures that fit the task: precision and recall, reliability, time to event, image regions.

    Args:
        state: scores beside their ground truth.
        result: the evaluation of the same samples.
        labels: what the classes are called; those of the published protocol where not given.
        name: what the model is called.
        beside: other models' scores of the same samples, drawn beside where there is one class to find.
    """
    if not len(state):
        return []
    task: Task = result.config["task"]
    names = labels or list_answers(task)
    called = {k: format_name(names[k]) if k < len(names) else f"class {k}" for k in range(state.n_classes)}
    pictures = []
    if task == "risk":
        pictures.append(_regions(state, result))
    elif task == "action":
        pictures += _plot_curves({name: state, **(beside or {})})
    else:
        pictures += _found_each(state, called)
    pictures.append(_reliability(state))
    if task == "action" and state.tte_frames is not None and len(np.unique(state.tte_frames)) >= FEWEST_BANDS:
        order = {k: called[k] for k in (1, 0)}
        pictures.append(score_over_time(state.tte_frames, state.scores[:, 0], state.truth, order))
    return pictures


def list_answers(task: Task) -> tuple[str, ...]:
    """Names of the classes of a task in the published protocol."""
    return list_task_answers(Iv2024.reference(task))


def plot_story(scenes: Scenes, state: SampleScores, *, pedestrian: str | None = None) -> Picture:
    """One pedestrian's predictions over time.

    Args:
        scenes: whose `samples` are those of `state`, in the same order.
        state: scores beside their ground truth.
        pedestrian: whose; where not given, the pedestrian with an annotated event and a positive answer
            whose scores swing most, since there a single number would mislead most.

    Raises:
        UsageError: if the pedestrian is not among the samples, or samples and scores differ in number.
    """
    if len(scenes.samples) != len(state):
        raise UsageError(
            f"{len(scenes.samples)} samples for {len(state)} scores; pass the scenes of one split"
        )
    chosen = _most_telling(scenes, state) if pedestrian is None else pedestrian
    rows = np.flatnonzero(state.pedestrian == chosen)
    if not len(rows):
        raise UsageError(
            f"no pedestrian '{chosen}' among the samples; there is {state.pedestrian[0]}, for one"
        )
    return plot_pedestrian(_story(scenes, state, rows, chosen))


def _plot_curves(models: Mapping[str, SampleScores]) -> list[Picture]:
    curves = [
        compute_curve(name, state.scores[:, 0], state.truth == 1)
        for name, state in models.items()
        if (state.truth == 1).any()
    ]
    return [plot_precision_recall(curves)] if curves else []


def _found_each(state: SampleScores, called: Mapping[int, str]) -> list[Picture]:
    held = [k for k in called if (state.truth == k).any()]
    return (
        [
            plot_precision_recall(
                [compute_curve(called[k], state.scores[:, k], state.truth == k) for k in held]
            )
        ]
        if held
        else []
    )


def _regions(state: SampleScores, result: MetricResult) -> Picture:
    size = state.n_classes
    values = [result.value(f"average_precision_region_{k}") for k in range(size)]
    return plot_risk_regions(values, np.bincount(state.truth, minlength=size).tolist())


def _reliability(state: SampleScores) -> Picture:
    bins = calibration.reliability(*compute_confidences(state))
    return plot_reliability(bins.confidence, bins.accuracy, bins.count, error=bins.expected_error)


def _most_telling(scenes: Scenes, state: SampleScores) -> str:
    """The pedestrian whose score swings most, of those with an annotated event and a positive answer."""
    sources = (
        scenes.samples["event_source"].cast(pl.String).to_list()
        if "event_source" in scenes.samples.columns
        else []
    )
    annotated = np.array([source == "annotated" for source in sources] or [False] * len(state))
    score = _true_score(state)
    best: tuple[tuple[bool, bool, float], str] | None = None
    for name in np.unique(state.pedestrian):
        rows = state.pedestrian == name
        swing = float(np.ptp(score[rows]))
        rank = (bool(annotated[rows].any()), bool((state.truth[rows] > 0).any()), swing)
        if best is None or rank > best[0]:
            best = (rank, str(name))
    if best is None:
        raise UsageError("there is no sample, so no pedestrian to show")
    return best[1]


def _true_score(state: SampleScores) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """(n,) the score drawn for each sample: of crossing, or of the sample's true class."""
    column = np.zeros(len(state), dtype=np.int64) if state.scores.shape[1] == 1 else state.truth
    score: np.ndarray[tuple[int], np.dtype[np.float64]] = state.scores[np.arange(len(state)), column]
    return score


def _story(
    scenes: Scenes, state: SampleScores, rows: np.ndarray[tuple[int], np.dtype[np.intp]], name: str
) -> Story:
    samples = scenes.samples[rows.tolist()].sort("start_frame")
    score = _true_score(state)[rows][
        np.argsort(scenes.samples["start_frame"].to_numpy()[rows], kind="stable")
    ]
    kind = str(samples["kind"][0])
    labels = scenes.meta.vocabularies.get(kind, ())
    truth = int(samples["label"][0])
    answer = format_name(labels[truth]) if truth < len(labels) else f"class {truth}"
    positive = format_name(labels[1]) if state.scores.shape[1] == 1 and len(labels) > 1 else "the true class"
    event, source = _event(samples)
    starts, ends = samples["start_frame"].to_numpy(), samples["end_frame"].to_numpy()
    first, last = int(starts.min()) - MARGIN_FRAMES, max(int(ends.max()), event or 0) + MARGIN_FRAMES
    inside = pl.col("frame").is_between(first, last)
    boxes = scenes.boxes.filter((pl.col("tube") == samples["tube"][0]) & inside).sort("frame")
    return Story(
        name=name,
        positive=positive,
        truth=answer,
        starts=starts,
        ends=ends,
        scores=score,
        event_frame=event,
        event_source=source,
        frames=boxes["frame"].to_numpy(),
        heights_px=(boxes["y2_px"] - boxes["y1_px"]).cast(pl.Float64).to_numpy(),
        marks=[*_spans(boxes, "cross", "crossing"), *_spans(boxes, "look", "looking")],
    )


def _event(samples: pl.DataFrame) -> tuple[int | None, str]:
    """Frame and provenance of the event of one pedestrian's samples."""
    frame = samples["event_frame"][0] if "event_frame" in samples.columns else None
    source = samples["event_source"][0] if "event_source" in samples.columns else None
    return (None if frame is None else int(frame)), str(source or "provenance not stated")


def _spans(boxes: pl.DataFrame, column: str, value: str) -> list[tuple[str, int, int]]:
    """Unbroken runs of frames [start, end) in which the tag has the value."""
    if column not in boxes.columns:
        return []
    frames = boxes.filter(pl.col(column).cast(pl.String) == value)["frame"].to_numpy()
    if not len(frames):
        return []
    cuts = np.flatnonzero(np.diff(frames) > 1) + 1
    return [(value, int(run[0]), int(run[-1]) + 1) for run in np.split(frames, cuts)]
