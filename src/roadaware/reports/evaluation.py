"""Evaluation section of a report: data, configuration, metrics, and figures drawn from the scores of samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.analysis.compare import Comparison
from roadaware.arrays import Floats
from roadaware.errors import UsageError
from roadaware.metrics.metric_state import MetricResult
from roadaware.metrics.pedestrians import UNITS, Task
from roadaware.metrics.scores import SampleScores, compute_confidences
from roadaware.reports.bars import (
    Difference,
    Estimate,
    compute_curve,
    plot_forest,
    plot_precision_recall,
    plot_reliability,
    plot_scenarios,
    score_over_time,
)
from roadaware.reports.configs import build_config_table, format_config
from roadaware.reports.page import (
    BLUE,
    DOTTED,
    FULL,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PALE,
    VERMILLION,
    Block,
    Clips,
    Facts,
    Mark,
    Note,
    Picture,
    Pictures,
    Section,
    Table,
    TableCell,
    build_caption,
    create_canvas,
    set_style,
)
from roadaware.reports.text import (
    capitalize_text,
    clip_label,
    format_count,
    format_name,
    format_number,
    format_row_interval,
    format_signed,
)
from roadaware.scenes.sampling import Iv2024, list_task_answers
from roadaware.scenes.tables import Scenes
from roadaware.statistics import calibration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from roadaware.analysis.excerpts import Clip


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


FAMILIES = (
    ("", "Each sample counts once"),
    ("weighted_", "Samples weighted: early warnings (action) or central regions (risk) count more"),
    ("soft_", "One decision per pedestrian, from the mean of its scores"),
    ("hard_", "One decision per pedestrian, wrong unless all its samples agree"),
    ("confidence_delta", "Change of confidence from sample to sample (lower is better)"),
    ("average_precision_", "Average precision class by class"),
)
HEADLINES = ("average_precision", "balanced_accuracy", "auc")
_FIRST_NUMBER = re.compile(r"(<=?|≤|up to |below )?\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)")
_CLIPS = (
    "One of each pedestrian. Green and solid while the pedestrian is observed, red and dashed from the decision on; "
    "the image is cut to where the pedestrian is."
)
FACTOR_WORDS = {
    "tte": "frames to the event",
    "scale": "scale (height of the box, px)",
    "speed": "speed (km/h)",
}
IN_GROUPS = ("average_precision", "balanced_accuracy", "f1", "auc")


def build_evaluation_section(
    result: MetricResult,
    *,
    title: str = "Evaluation",
    model: str = "the model",
    about: Mapping[str, str] | None = None,
    protocol: Mapping[str, Any] | None = None,
    labels: Sequence[str] | None = None,
    pictures: Sequence[Picture] = (),
    clips: Sequence[Clip] = (),
) -> Section:
    """One model's evaluation.

    Args:
        result: what `evaluate` gave.
        title: heading of the section.
        model: what the model is called in sentences.
        about: what else the reader should know, such as dataset, split, data digest.
        protocol: the sampling protocol, as `to_dict` gives it (`scenes.meta.notes["protocol"]`).
        labels: what the classes are called; those of the published protocol where not given.
        pictures: drawn after the tables; `roadaware.reports.evaluation` makes them.
        clips: moments of wrong decisions.
    """
    facts = [*(about or {}).items(), *_sizes(result, labels or list_answers(result.config["task"]))]
    if protocol:
        facts.append(("protocol", format_config(protocol)))
    facts.append(("metrics", format_config(result.config)))
    blocks: list[Block] = [Facts(tuple(facts)), build_metric_table(result)]
    blocks += [Clips(tuple(clips), "The most confident errors", _CLIPS)] if clips else []
    groups = group_table(result)
    if groups:
        blocks.append(groups)
    drawn = [*pictures, *group_pictures(result)]
    if drawn:
        blocks.append(Pictures(tuple(drawn), "Pictures"))
    blocks.extend(Note(note, "doubt") for note in result.notes)
    if protocol:
        blocks.append(build_config_table(protocol, "Sampling protocol"))
    blocks.append(build_config_table(result.config, "Metric configuration"))
    return Section(title, tuple(_says(result, model)), tuple(blocks))


def build_comparison_section(comparison: Comparison, *, title: str | None = None) -> Section:
    """Two models on the same samples: differences with both intervals, and which are more than chance.

    Args:
        comparison: what `compare` gave.
        title: heading; the names of the two where not given.
    """
    first, second = comparison.names
    shown = comparison.table.filter(~pl.col("metric").str.starts_with("average_precision_"))
    shown = shown.filter(pl.col("verdict") != "undefined")
    rows = [_difference(row) for row in shown.iter_rows(named=True)]
    cells = tuple(_build_comparison_row(row) for row in comparison.table.iter_rows(named=True))
    head = (
        "metric",
        first,
        second,
        "difference",
        "interval over pedestrians",
        "interval over videos",
        f"{first} is",
    )
    table = Table(
        head, cells, "lrrrrrl", "Differences", f"{comparison.resamples:,} resamples shared by both models."
    )
    says = tuple(_compared_says(shown, first, second))
    heading = title or capitalize_text(f"{first} against {second}")
    return Section(heading, says, (Pictures((plot_forest(rows, first, second),)), table))


def build_metric_table(result: MetricResult) -> Table:
    """Every metric of the whole set, with its size and its intervals; undefined ones say why."""
    summary = result.of_group(None)
    shown = [unit for unit in UNITS if summary[f"low_{unit}"].is_not_null().any()]
    rows: list[tuple[TableCell, ...]] = []
    for prefix, heading in FAMILIES:
        members = [row for row in summary.iter_rows(named=True) if _family(row["metric"]) == prefix]
        if members:
            rows.append((heading,))
            rows.extend(_metric_row(row, prefix, shown) for row in members)
    head = ("metric", "value", "n", *(f"interval over {unit}s" for unit in shown))
    caption = "n is the number of samples, or of pedestrians where one decision is made for each."
    caption += "" if shown else " No intervals were asked for."
    counted = (-1, 2, -1) + (-1,) * len(shown)
    return Table(head, tuple(rows), "l" + "r" * (len(head) - 1), "Metrics", caption, counted)


def group_table(result: MetricResult) -> Table | None:
    """The main metrics of every group, nothing where there are no groups."""
    if not result.groups:
        return None
    held = {row["metric"] for row in result.of_group(None).iter_rows(named=True)}
    metrics = [metric for metric in IN_GROUPS if metric in held]
    rows: list[tuple[TableCell, ...]] = []
    family = ""
    for group in sorted(result.groups, key=group_order):
        factor, name = split_group(group)
        if factor and factor != family:
            rows.append((factor,))
            family = factor
        found = {metric: result.row(metric, group) for metric in metrics}
        cells = (_with_interval(found[metric]) for metric in metrics)
        rows.append((name, format_count(found[metrics[0]]["n"]), *cells))
    caption = build_caption(rows, "", "pedestrians")
    return Table(
        ("scenario", "samples", *map(format_name, metrics)),
        tuple(rows),
        "lr" + "r" * len(metrics),
        "Scenarios",
        caption,
        (-1, -1, *(1,) * len(metrics)),
    )


def group_pictures(result: MetricResult) -> list[Picture]:
    """Average precision by scenario, nothing where there are no groups."""
    if not result.groups:
        return []
    rows = []
    for group in sorted(result.groups, key=group_order):
        row = result.row("average_precision", group)
        factor, name = split_group(group)
        low, high = row["low_pedestrian"], row["high_pedestrian"]
        caution = row.get("caution_pedestrian")
        rows.append(Estimate(name, row["value"], low, high, row["n"], factor, row["reason"], caution))
    return [plot_scenarios(rows, "average precision", overall=result.value("average_precision"))]


def split_group(group: str) -> tuple[str, str]:
    """Factor and name of a scenario; those of a product are joined.

    >>> split_group("state=walking; road=one-way"), split_group("rain")
    (('state and road', 'walking, one-way'), ('', 'rain'))
    """
    pairs = [part.partition("=") for part in group.split("; ")]
    if not all(found for _, found, _ in pairs):
        return "", format_name(group)
    factor = " and ".join(FACTOR_WORDS.get(factor, format_name(factor)) for factor, _, _ in pairs)
    return factor, ", ".join(format_name(name) for _, _, name in pairs)


def group_order(group: str) -> tuple[Any, ...]:
    """Sorts scenarios by factor, then by their numbers where they begin with one, then by name."""
    factor, name = split_group(group)
    found = _FIRST_NUMBER.match(name)
    first = float(found[2]) - (0.5 if found[1] else 0) if found else float("inf")
    return factor, first, name


def _family(metric: str) -> str:
    return next((prefix for prefix, _ in FAMILIES[1:] if metric.startswith(prefix)), "")


def _metric_row(row: Mapping[str, Any], prefix: str, units: Sequence[str]) -> tuple[TableCell, ...]:
    short = prefix.endswith("_")
    name = format_name(row["metric"].removeprefix(prefix) if short else row["metric"])
    value: TableCell = (
        format_number(row["value"]) if row["valid"] else Mark("undefined", "mute", row["reason"] or "")
    )
    return (
        name,
        value,
        format_count(row["n"]),
        *(format_row_interval(row, u) for u in units),
    )


def _with_interval(row: Mapping[str, Any]) -> TableCell:
    if not row["valid"]:
        return Mark("undefined", "mute", row["reason"] or "")
    ends = format_row_interval(row, "pedestrian")
    return Mark(format_number(row["value"]), "", ends if ends != "–" else "")


def _sizes(result: MetricResult, labels: Sequence[str]) -> Iterator[tuple[str, str]]:
    whole = result.counts.filter(pl.col("group").is_null())
    yield (
        "samples",
        f"{format_count(int(whole['samples'].sum()))} of {format_count(int(whole['pedestrians'].sum()))} pedestrians",
    )
    shares = (
        f"{format_name(labels[k]) if k < len(labels) else k}: {format_count(n)}"
        for k, n in whole.select("class", "samples").iter_rows()
    )
    yield "samples of each class", ", ".join(shares)


def _says(result: MetricResult, model: str) -> Iterator[str]:
    held = {row["metric"]: row for row in result.of_group(None).iter_rows(named=True)}
    reached = [held[metric] for metric in HEADLINES if metric in held and held[metric]["valid"]]
    if reached:
        values = ", ".join(
            f"{format_name(row['metric'])} {format_number(row['value'])}{_ends(row)}" for row in reached
        )
        known = any(row["low_pedestrian"] is not None for row in reached)
        yield capitalize_text(
            f"{model} reaches {values}{'; in brackets 95 % intervals over pedestrians' if known else ''}."
        )
    lost = [row for row in held.values() if not row["valid"]]
    if lost:
        yield f"{len(lost)} of {len(held)} metrics are undefined on this set; the table says why."
    known_groups = [(result.value("average_precision", group), group) for group in result.groups]
    ranked = sorted((value, group) for value, group in known_groups if value is not None)
    if len(ranked) > 1:
        (low, worst), (high, best) = ranked[0], ranked[-1]
        weak, strong = f"{_spoken(worst)} ({format_number(low)})", f"{_spoken(best)} ({format_number(high)})"
        yield f"Average precision is lowest where {weak} and highest where {strong}."


def _spoken(group: str) -> str:
    factor, name = split_group(group)
    return f"{factor} is {name}" if factor else name


def _ends(row: Mapping[str, Any]) -> str:
    ends = format_row_interval(row, "pedestrian")
    return f" ({ends})" if ends != "–" else ""


def _difference(row: Mapping[str, Any]) -> Difference:
    ends = (row["low_pedestrian"], row["high_pedestrian"], row["low_video"], row["high_video"])
    name = format_name(row["metric"]) + (" (lower is better)" if row["lower_is_better"] else "")
    cautions = tuple(row.get(f"caution_{unit}") for unit in ("pedestrian", "video"))
    return Difference(name, row["difference"], *ends, row["verdict"], cautions)


def _build_comparison_row(row: Mapping[str, Any]) -> tuple[TableCell, ...]:
    tone = {"better": "fair", "worse": "bad"}.get(row["verdict"], "mute")
    return (
        format_name(row["metric"]),
        format_number(row["a"]),
        format_number(row["b"]),
        format_signed(row["difference"]),
        format_row_interval(row, "pedestrian"),
        format_row_interval(row, "video"),
        Mark(row["verdict"], tone),
    )


def _compared_says(table: pl.DataFrame, first: str, second: str) -> Iterator[str]:
    """One sentence per verdict, over the headline metrics."""
    rows = [row for row in table.iter_rows(named=True) if row["metric"] in HEADLINES]
    for verdict in dict.fromkeys(row["verdict"] for row in rows):
        held = [row for row in rows if row["verdict"] == verdict]
        values = ", ".join(
            f"{format_name(row['metric'])} ({format_number(row['a'])} against {format_number(row['b'])})"
            for row in held
        )
        if verdict in ("better", "worse"):
            yield capitalize_text(f"{first} is {verdict} than {second} in {values}.")
        else:
            yield capitalize_text(f"{first} and {second}: {verdict} in {values}.")
