"""The figures of an evaluation, drawn from the scores of its samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats
from roadaware.errors import UsageError
from roadaware.metrics.metric_state import MetricResult
from roadaware.metrics.pedestrians import Task
from roadaware.metrics.scores import SampleScores, compute_confidences
from roadaware.reports.curves import compute_curve, plot_precision_recall, plot_reliability, score_over_time
from roadaware.reports.picture import (
    BLUE,
    DOTTED,
    FULL,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    VERMILLION,
    Picture,
    create_canvas,
    set_style,
)
from roadaware.reports.text import clip_label, format_count, format_name, format_number
from roadaware.scenes.sampling import Iv2024, list_task_answers
from roadaware.scenes.tables import Scenes
from roadaware.statistics import calibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Figures of the road as the camera sees it: precision per risk region, and one pedestrian over time.


@dataclass(frozen=True, eq=False)
class Story:
    """One pedestrian, over the frames of its track.

    Args:
        name: how the pedestrian is called.
        positive: what a score of 1 stands for, such as `crossing`.
        truth: what the pedestrian really did, in words.
        starts: (s,) first frame of each observation.
        ends: (s,) frame after the last of each observation.
        scores: (s,) score of each sample.
        event_frame: frame of the event; null where there is none.
        event_source: where that frame comes from.
        frames: (f,) frames with a box.
        heights_px: (f,) height of the box, the nearer the larger.
        marks: named spans [start, end) of frames, such as `crossing`, `looking`.
    """

    name: str
    positive: str
    truth: str
    starts: npt.NDArray[np.integer]
    ends: npt.NDArray[np.integer]
    scores: Floats
    event_frame: int | None
    event_source: str
    frames: npt.NDArray[np.integer]
    heights_px: Floats
    marks: Sequence[tuple[str, int, int]] = ()


def plot_risk_regions(
    average_precision: Sequence[float | None],
    counts: Sequence[int],
    *,
    width_px: int = 1920,
    height_px: int = 1080,
) -> Picture:
    """Average precision in each vertical region of the image, where the pedestrian ends up.

    Args:
        average_precision: one value per region from left to right; null where undefined.
        counts: samples that end in each region.
        width_px: width of the image.
        height_px: height of the image.
    """
    k = len(average_precision)
    step = width_px / max(1, k)
    with set_style():
        figure, axes = create_canvas(FULL, 4.5)
        for region, (value, amount) in enumerate(zip(average_precision, counts, strict=True)):
            # Risk class of a region, counted from the centre of the image, which has class 0.
            says = (
                f"class {(abs(2 * region - (k - 1)) // 2)}",
                "–" if value is None else f"{value:.2f}",
                f"n = {format_count(amount)}",
            )
            _region(axes, (region * step, step, height_px), value, says)
        # A horizon and the edges of a lane, so that the regions are read as a view of the road.
        horizon, middle = 0.5 * height_px, width_px / 2
        lines: list[tuple[list[float], list[float]]] = [([0, width_px], [horizon, horizon])]
        lines += [([middle, foot * width_px], [horizon, height_px]) for foot in (0.12, 0.88)]
        for tone, width, alpha in (("white", 2.6, 0.55), (INK, 0.8, 0.6)):
            for xs, ys in lines:
                axes.plot(xs, ys, color=tone, linewidth=width, alpha=alpha)
        axes.set(xlim=(0, width_px), ylim=(height_px, 0), aspect="equal", yticks=[])
        axes.set_xticks([(region + 0.5) * step for region in range(k)], [str(region) for region in range(k)])
        axes.tick_params(length=0)
        axes.set_xlabel(f"region of the image, {width_px} × {height_px} pixels, from left to right")
        for spine in axes.spines.values():
            spine.set_visible(True)
    known = [(value, region) for region, value in enumerate(average_precision) if value is not None]
    caption = (
        "The image as the driver sees it, cut into the regions in which a pedestrian can end. Bold numbers "
        "are the average precision of each region (darker is better; hatched is undefined). Risk class 0 is "
        f"straight ahead, {(k - 1) // 2} at both edges.{_extremes(known)}"
    )
    return Picture("Average precision over the image plane", caption, figure)


def plot_pedestrian(story: Story) -> Picture:
    """Plot the scores of one pedestrian over time, beside the ground truth.

    Args:
        story: the samples, the event and the track.
    """
    with set_style():
        figure, axes = create_canvas(FULL, 3.6)
        figure.delaxes(axes)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.25])
        upper.axhline(0.5, color=GREY, linewidth=0.8, linestyle=DOTTED)
        for start, end, score in zip(story.starts, story.ends, story.scores, strict=True):
            upper.plot(
                [start, end - 1], [score] * 2, color=BLUE, linewidth=5, alpha=0.25, solid_capstyle="butt"
            )
        upper.plot(story.ends - 1, story.scores, color=BLUE, marker="o", markersize=5.5, linewidth=1.2)
        upper.set(ylim=(-0.04, 1.04), ylabel=f"score: {clip_label(story.positive, 24)}")
        _above(upper, (0.0, 1.0), f"truth: {clip_label(story.truth, 40)}", INK, "axes fraction")
        upper.grid(visible=True)
        lower.fill_between(story.frames, 0, story.heights_px, color=PALE, linewidth=0)
        lower.plot(story.frames, story.heights_px, color=GREY, linewidth=1.2)
        top = 1.6 * float(np.max(story.heights_px, initial=1.0))
        for place, (name, start, end) in enumerate(story.marks):
            tone = (GREEN, ORANGE, BLUE)[place % 3]
            lower.plot([start, end], [top * 0.93] * 2, color=tone, linewidth=4, solid_capstyle="butt")
            says = clip_label(name, 24)
            lower.annotate(
                says, (start, top * 0.9), (2, -3), textcoords="offset points", va="top", color=tone
            )
        lower.set(ylim=(0, top), ylabel="height, px")
        lower.grid(visible=True)
        if story.event_frame is not None:
            upper.axvline(story.event_frame, color=VERMILLION, linewidth=1.4)
            lower.axvline(story.event_frame, color=VERMILLION, linewidth=1.4)
            says = f"event ({clip_label(story.event_source, 12)})"
            _above(upper, (story.event_frame, 1.0), says, VERMILLION, ("data", "axes fraction"))
        lower.set_xlabel("frame of the video")
    said = ", ".join(f"{score:.2f}" for score in story.scores)
    event = "There is no event."
    if story.event_frame is not None:
        event = f"The event ({story.event_source}) is at frame {story.event_frame}."
    caption = (
        "Each dot is one prediction, made at the end of the observation that its bar covers. Scores of "
        f"{story.positive} in order: {said}. Truth: {story.truth}. {event} Below, the height of the box: it "
        "grows as the pedestrian comes near."
    )
    return Picture(f"One pedestrian over time: {story.name}", caption, figure)


def _region(
    axes: Axes, where: tuple[float, float, float], value: float | None, says: tuple[str, str, str]
) -> None:
    """One region: its colour, its risk class, its average precision and its number of samples."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    left, width, height = where
    face = "#ffffff" if value is None else colormaps["Blues"](0.06 + 0.86 * min(1.0, max(0.0, value)))
    hatch, edge = ("///", PALE) if value is None else (None, "white")
    axes.add_patch(Rectangle((left, 0), width, height, facecolor=face, edgecolor=edge, hatch=hatch))
    ink = "white" if value is not None and value > 0.55 else INK
    middle = left + width / 2
    axes.text(middle, 0.08 * height, says[0], ha="center", color=ink, fontsize=8)
    axes.text(middle, 0.34 * height, says[1], ha="center", color=ink, fontsize=12, weight="bold")
    axes.text(middle, 0.41 * height, says[2], ha="center", color=ink, fontsize=7.5)


def _extremes(known: Sequence[tuple[float, int]]) -> str:
    if not known:
        return ""
    (high, best), (low, worst) = max(known), min(known)
    return (
        f" Highest in region {best} ({format_number(high)}), lowest in region {worst} ({format_number(low)})."
    )


def _above(axes: Axes, where: tuple[float, float], says: str, tone: str, units: Any) -> None:
    axes.annotate(says, where, (2, 3), xycoords=units, textcoords="offset points", color=tone)


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
    images = []
    if task == "risk":
        size = state.n_classes
        values = [result.value(f"average_precision_region_{k}") for k in range(size)]
        images.append(plot_risk_regions(values, np.bincount(state.truth, minlength=size).tolist()))
    elif task == "action":
        models = {name: state, **(beside or {})}
        curves = [
            compute_curve(name, state.scores[:, 0], state.truth == 1)
            for name, state in models.items()
            if (state.truth == 1).any()
        ]
        images += [plot_precision_recall(curves)] if curves else []
    else:
        held = [k for k in called if (state.truth == k).any()]
        curves = [compute_curve(called[k], state.scores[:, k], state.truth == k) for k in held]
        images += [plot_precision_recall(curves)] if held else []
    bins = calibration.reliability(*compute_confidences(state))
    images.append(plot_reliability(bins.confidence, bins.accuracy, bins.count, error=bins.expected_error))
    if task == "action" and state.tte_frames is not None and len(np.unique(state.tte_frames)) >= FEWEST_BANDS:
        order = {k: called[k] for k in (1, 0)}
        images.append(score_over_time(state.tte_frames, state.scores[:, 0], state.truth, order))
    return images


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
    samples = scenes.samples[rows.tolist()].sort("start_frame")
    score = _true_score(state)[rows][
        np.argsort(scenes.samples["start_frame"].to_numpy()[rows], kind="stable")
    ]
    kind = str(samples["kind"][0])
    labels = scenes.meta.vocabularies.get(kind, ())
    truth = int(samples["label"][0])
    answer = format_name(labels[truth]) if truth < len(labels) else f"class {truth}"
    positive = format_name(labels[1]) if state.scores.shape[1] == 1 and len(labels) > 1 else "the true class"
    # Frame and provenance of the event of one pedestrian's samples.
    frame = samples["event_frame"][0] if "event_frame" in samples.columns else None
    source = samples["event_source"][0] if "event_source" in samples.columns else None
    event, source = (None if frame is None else int(frame)), str(source or "provenance not stated")
    starts, ends = samples["start_frame"].to_numpy(), samples["end_frame"].to_numpy()
    first, last = int(starts.min()) - MARGIN_FRAMES, max(int(ends.max()), event or 0) + MARGIN_FRAMES
    inside = pl.col("frame").is_between(first, last)
    boxes = scenes.boxes.filter((pl.col("tube") == samples["tube"][0]) & inside).sort("frame")
    return plot_pedestrian(
        Story(
            name=chosen,
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
    )


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


def _spans(boxes: pl.DataFrame, column: str, value: str) -> list[tuple[str, int, int]]:
    """Unbroken runs of frames [start, end) in which the tag has the value."""
    if column not in boxes.columns:
        return []
    frames = boxes.filter(pl.col(column).cast(pl.String) == value)["frame"].to_numpy()
    if not len(frames):
        return []
    cuts = np.flatnonzero(np.diff(frames) > 1) + 1
    return [(value, int(run[0]), int(run[-1]) + 1) for run in np.split(frames, cuts)]
