"""Figures that compare, with intervals, and curves of scores against ground truth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.reports.page import (
    BLUE,
    DASHES,
    DOTTED,
    FULL,
    GREEN,
    GREY,
    HALF,
    INK,
    MARKERS,
    ORANGE,
    PALE,
    SERIES,
    VERMILLION,
    Picture,
    create_canvas,
    set_style,
)
from roadaware.reports.text import (
    clip_label,
    describe_cautions,
    format_caution,
    format_count,
    format_number,
    format_percent,
    format_signed,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ROW_IN = 0.27


@dataclass(frozen=True)
class Estimate:
    """A value with its interval.

    Args:
        name: what it is of.
        value: null where undefined.
        low, high: ends of the interval, null where it was not computed.
        n: samples behind it.
        family: rows of one family are drawn together, under its name.
        reason: why it is undefined.
        caution: why the interval is to be taken with caution.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    family: str = ""
    reason: str | None = None
    caution: str | None = None


@dataclass(frozen=True)
class Difference:
    """A paired difference between two models.

    Args:
        name: the metric, in words.
        value: first minus second, null where undefined.
        low_pedestrian, high_pedestrian: its interval over pedestrians.
        low_video, high_video: its interval over videos.
        verdict: what both intervals say of the first model: `better`, `worse`, `not different`, ...
        cautions: why its intervals are to be taken with caution.
    """

    name: str
    value: float | None
    low_pedestrian: float | None
    high_pedestrian: float | None
    low_video: float | None
    high_video: float | None
    verdict: str
    cautions: tuple[str | None, ...] = ()

    @property
    def ends(self) -> list[float]:
        """The value and the ends of its intervals, as far as they are known."""
        ends = (self.low_pedestrian, self.high_pedestrian, self.low_video, self.high_video)
        return [end for end in (self.value, *ends) if end is not None]


@dataclass(frozen=True)
class Share:
    """How many of how many; `out_of` is null where there is no whole to compare with."""

    name: str
    count: int
    out_of: int | None = None


def plot_scenarios(rows: Sequence[Estimate], metric: str, *, overall: float | None = None) -> Picture:
    """One dot per scenario with its interval, grouped by factor.

    Args:
        rows: scenarios in drawing order; `family` is the factor.
        metric: what is measured, in words.
        overall: the value over all samples, drawn as a line.
    """
    families = len({row.family for row in rows if row.family})
    with set_style():
        figure, axes = create_canvas(FULL, 0.9 + ROW_IN * max(1, len(rows) + families))
        if overall is not None:
            axes.axvline(overall, color=GREY, linewidth=1, linestyle=DOTTED, zorder=0)
            axes.set_title(f"dotted: all samples, {overall:.3f}", loc="left", fontsize=8.5, color=GREY)
        _estimate_rows(axes, rows)
        low = min([0.0, *(row.low for row in rows if row.low is not None)])
        axes.set(xlim=(low, 1.0), xlabel=clip_label(metric, 80))
    known = [row for row in rows if row.value is not None]
    caption = f"Dots are values of {metric},{_whiskers(rows)} n the number of samples."
    if known:
        best, worst = (pick(known, key=lambda row: row.value or 0.0) for pick in (max, min))
        caption += f" Highest: {best.name} ({format_number(best.value)});"
        caption += f" lowest: {worst.name} ({format_number(worst.value)})."
    return Picture(f"{metric[:1].upper()}{metric[1:]} by scenario", caption + _meanings(rows), figure)


def plot_estimates(
    rows: Sequence[Estimate], measured: str, *, title: str, counted: str = "n", percent: bool = True
) -> Picture:
    """One dot per value with its interval, grouped by family.

    Args:
        rows: values and ends in [0, 1], in drawing order.
        measured: what is measured, in words.
        title: what the rows are.
        counted: what `n` counts, in words.
        percent: whether they are drawn in per cent, or as the fractions they are.
    """
    families = len({row.family for row in rows if row.family})
    scaled, digits = list(rows), 3
    if percent:
        digits = 1
        scaled = [
            replace(row, value=_times(row.value), low=_times(row.low), high=_times(row.high)) for row in rows
        ]
    with set_style():
        figure, axes = create_canvas(FULL, 0.9 + ROW_IN * max(1, len(rows) + families))
        _estimate_rows(axes, scaled, digits=digits)
        axes.set(xlim=(0, 100 if percent else 1), xlabel=clip_label(measured, 80))
    known = "; ".join(
        f"{row.family + ' ' if row.family else ''}{row.name} {format_number(row.value, digits)}"
        for row in scaled
        if row.value is not None
    )
    caption = f"Dots are {measured},{_whiskers(rows, ' over videos')} n counts {counted}. {known}."
    return Picture(title, caption + _meanings(rows), figure)


def _whiskers(rows: Sequence[Estimate], over: str = "") -> str:
    """What the whiskers are, where there are any."""
    drawn = any(row.low is not None and row.high is not None for row in rows)
    return f" whiskers their 95 % intervals{over}," if drawn else ""


def _meanings(rows: Sequence[Estimate | Difference]) -> str:
    """What the marks behind values or verdicts mean; nothing where there are none."""
    held = (row.cautions if isinstance(row, Difference) else (row.caution,) for row in rows)
    meanings = describe_cautions("".join(format_caution(why) for each in held for why in each))
    return f" {meanings}." if meanings else ""


def _times(value: float | None) -> float | None:
    return None if value is None else 100 * value


_BOTH_UNITS = (
    "on the same samples. Thick bars are 95 % intervals over pedestrians, thin ones over videos; a "
    "difference is called better or worse only where both exclude zero."
)


def plot_forest(
    rows: Sequence[Difference], first: str, second: str, *, reading: str = _BOTH_UNITS
) -> Picture:
    """Paired differences, first minus second, each with its intervals and its verdict in words.

    Args:
        rows: metrics in drawing order.
        first, second: names of the two models.
        reading: what the differences are on, and how the bars are read.
    """
    with set_style():
        figure, axes = create_canvas(FULL, 0.85 + 0.85 * ROW_IN * max(1, len(rows)))
        axes.axvline(0, color=INK, linewidth=0.9)
        for place, row in enumerate(rows):
            # One row of a forest plot: thick interval over pedestrians, thin one over videos, verdict beside.
            tone = {"better": BLUE, "worse": VERMILLION}.get(row.verdict, GREY)
            if row.low_video is not None and row.high_video is not None:
                ends = [row.low_video, row.high_video]
                axes.plot(ends, [place, place], color=tone, linewidth=1.1, marker="|", markersize=8)
            if row.low_pedestrian is not None and row.high_pedestrian is not None:
                ends = [row.low_pedestrian, row.high_pedestrian]
                axes.plot(ends, [place, place], color=tone, linewidth=4.5, solid_capstyle="butt", alpha=0.75)
            if row.value is not None:
                axes.plot([row.value], [place], marker="o", markersize=6, color="white", markeredgecolor=tone)
            _beside(axes, place, 1.09, format_signed(row.value), align="right", tone=tone)
            signs = "".join(dict.fromkeys(format_caution(why) for why in row.cautions))
            _beside(axes, place, 1.11, row.verdict + signs, tone=tone)
        _rows_axis(axes, [row.name for row in rows])
        reach = 1.08 * max((abs(end) for row in rows for end in row.ends), default=0.1) or 0.1
        axes.set(xlim=(-reach, reach), xlabel=f"{clip_label(first, 40)} minus {clip_label(second, 40)}")
    caption = (
        f"{first} minus {second} {reading} "
        f"Verdicts on the first: {_format_counts(Counter(row.verdict for row in rows))}.{_meanings(rows)}"
    )
    return Picture(f"Differences: {first} minus {second}", caption, figure)


def plot_shares(rows: Sequence[Share], *, title: str = "Findings") -> Picture:
    """Findings as bars of count out of the number looked at; without a whole, the count alone.

    Args:
        rows: in drawing order.
        title: what they are shares of.
    """
    with set_style():
        figure, axes = create_canvas(FULL, 0.75 + ROW_IN * max(1, len(rows)))
        for place, row in enumerate(rows):
            says = format_count(row.count)
            if row.out_of:
                axes.barh(place, 100, height=0.58, color=PALE)
                axes.barh(place, 100 * row.count / row.out_of, height=0.58, color=VERMILLION)
                says = f"{says} of {format_count(row.out_of)}  ({format_percent(row.count, row.out_of)})"
            _beside(axes, place, 1.012, says)
        _rows_axis(axes, [row.name for row in rows])
        axes.grid(visible=False)
        axes.spines["bottom"].set_visible(False)
        axes.set(xlim=(0, 100), xlabel="percent of what was looked at", xticks=[0, 25, 50, 75, 100])
    known = sorted((row.count / row.out_of, row.name) for row in rows if row.out_of)
    largest = f" Largest share: {known[-1][1]} ({known[-1][0]:.0%})." if known else ""
    caption = f"The filled part of each bar is the share of what was looked at that was found.{largest}"
    return Picture(title, caption, figure)


def _estimate_rows(axes: Axes, rows: Sequence[Estimate], digits: int = 3) -> None:
    """Draw the rows, with a heading row before each family."""
    labels: list[str] = []
    headings: set[int] = set()
    for row in rows:
        if row.family and row.family not in {labels[place] for place in headings}:
            headings.add(len(labels))
            labels.append(row.family)
        place = len(labels)
        labels.append(row.name)
        if row.low is not None and row.high is not None:
            axes.plot([row.low, row.high], [place, place], color=BLUE, linewidth=1.6, alpha=0.6)
        if row.value is not None:
            axes.plot([row.value], [place], marker="o", markersize=6, color=BLUE, clip_on=False)
        _beside(axes, place, 1.09, format_count(row.n), align="right")
        reason = clip_label(row.reason or "no reason given", 30)
        text = f"undefined: {reason}" if row.value is None else format_number(row.value, digits)
        _beside(axes, place, 1.11, text + format_caution(row.caution))
    _beside(axes, -0.9, 1.09, "n", align="right", tone=GREY)
    _beside(axes, -0.9, 1.11, "value", tone=GREY)
    _rows_axis(axes, labels)
    for place, label in enumerate(axes.get_yticklabels()):
        label.set_fontweight("bold" if place in headings else "normal")


def _beside(
    axes: Axes,
    place: float,
    x: float,
    says: str,
    *,
    align: Literal["left", "right"] = "left",
    tone: str = INK,
) -> None:
    """Text beside a row, in a column of its own to the right of the axes."""
    axes.annotate(says, (x, place), xycoords=("axes fraction", "data"), va="center", ha=align, color=tone)


def _rows_axis(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), [clip_label(label, 46) for label in labels])
    axes.set_ylim(max(1, len(labels)) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(visible=True, axis="x")


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{verdict} in {amount}" for verdict, amount in sorted(counts.items())) or "none"


# The figure of a repeated publication: one square per printed cell, marked by what came of it.

GAP = "\u00a0" * 5
Line = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Status:
    """How a reproduced cell is marked: symbol, words, colours, and the symbol as strokes in a unit square."""

    symbol: str
    words: str
    colour: str
    paper: str
    strokes: tuple[Line, ...]


_TICK: tuple[Line, ...] = (((-0.8, 0.0), (-0.25, -0.7), (0.85, 0.8)),)
_WAVES: tuple[Line, ...] = tuple(
    ((-0.8, y - 0.15), (-0.4, y + 0.2), (0.4, y - 0.2), (0.8, y + 0.15)) for y in (0.35, -0.35)
)
_ARROWS: tuple[Line, ...] = (
    ((-0.9, 0.4), (0.9, 0.4), (0.4, 0.8)),
    ((0.9, -0.4), (-0.9, -0.4), (-0.4, -0.8)),
)
_UNEQUAL: tuple[Line, ...] = (
    ((-0.8, 0.3), (0.8, 0.3)),
    ((-0.8, -0.3), (0.8, -0.3)),
    ((-0.4, -0.9), (0.4, 0.9)),
)
_DASH: tuple[Line, ...] = (((-0.5, 0.0), (0.5, 0.0)),)

STATUSES: dict[str, Status] = {
    "match": Status("✓", "match", GREEN, "#d8efe6", _TICK),
    "match_under_assumption": Status("≈", "match under an assumption", BLUE, "#d7e9f5", _WAVES),
    "swapped_in_print": Status("⇄", "swapped in print", ORANGE, "#f8ebcd", _ARROWS),
    "differs": Status("≠", "differs", VERMILLION, "#fbe0d2", _UNEQUAL),
    "not_reproducible": Status("–", "not reproducible", GREY, "#eef0f3", _DASH),
}


def plot_coverage(cells: Sequence[tuple[str, str, str]]) -> Picture:
    """Which cells of the published tables were repeated: one square per cell, marked by symbol and colour.

    Args:
        cells: (block, model, status) in print order; squares of one block and model stand in one row.
    """
    rows: dict[tuple[str, str], list[str]] = {}
    for block, model, status in cells:
        rows.setdefault((block, model), []).append(status)
    blocks = list(dict.fromkeys(block for block, _ in rows))
    heights = [row + 0.45 * blocks.index(block) for row, (block, _) in enumerate(rows)]
    counts = Counter(status for _, _, status in cells)
    with set_style():
        figure, axes = create_canvas(FULL, 0.8 + 0.235 * (max(heights, default=0) + 1))
        for status in counts:
            places = [
                (column, height)
                for height, held in zip(heights, rows.values(), strict=True)
                for column, found in enumerate(held)
                if found == status
            ]
            # All squares of one status as one path, and their symbols as one set of markers
            mark = STATUSES[status]
            from matplotlib.patches import PathPatch
            from matplotlib.path import Path

            corners = np.array([(-0.46, -0.42), (0.46, -0.42), (0.46, 0.42), (-0.46, 0.42), (-0.46, -0.42)])
            whole = Path.make_compound_path(*(Path(corners + place, closed=True) for place in places))
            axes.add_patch(PathPatch(whole, facecolor=mark.paper, edgecolor=mark.colour, linewidth=0.7))
            strokes = Path.make_compound_path(*(Path(line) for line in mark.strokes))
            xs, ys = [x for x, _ in places], [y for _, y in places]
            axes.plot(
                xs,
                ys,
                linestyle="",
                marker=strokes,
                markersize=6.5,
                markerfacecolor="none",
                color=mark.colour,
            )
        widest = max(map(len, rows.values()), default=1)
        axes.set(xlim=(-0.6, widest - 0.4), ylim=(max(heights, default=0) + 0.6, -0.6), xticks=[])
        axes.set_yticks(heights, _row_names(list(rows)))
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        marks = [(mark, counts[name]) for name, mark in STATUSES.items() if counts.get(name)]
        says = GAP.join(f"{mark.symbol}\u00a0\u00a0{mark.words} ({amount})" for mark, amount in marks)
        axes.set_title(says, loc="left", fontsize=8.5, pad=8)
    spoken = ", ".join(f"{counts[name]} {mark.words}" for name, mark in STATUSES.items() if counts[name])
    caption = f"One square for each printed cell, in print order. Of {len(cells)} cells: {spoken}."
    return Picture("What of the published tables was repeated", caption, figure)


def _row_names(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Names of the rows of the cell grid; the block is named once, at its first row."""
    names, before = [], ""
    for block, model in rows:
        names.append(
            f"{clip_label(block, 44)}{GAP}{clip_label(model, 24)}"
            if block != before
            else clip_label(model, 24)
        )
        before = block
    return names


MOST_POINTS = 400
SHORT_NAME = 26


@dataclass(frozen=True, eq=False)
class Curve:
    """One model's precision over its recall.

    Args:
        name: what the legend says.
        precision: (n,) in [0, 1].
        recall: (n,) in [0, 1], the same order.
        average_precision: the area that the metric table states.
        no_skill: share of positive samples: the precision of a model that knows nothing.
    """

    name: str
    precision: Floats
    recall: Floats
    average_precision: float
    no_skill: float


def compute_curve(name: str, scores: Floats, truth: npt.NDArray[np.bool_]) -> Curve:
    """Precision and recall at every distinct threshold, from the highest score down.

    Args:
        name: what the legend says.
        scores: (n,) confidence that the answer is positive.
        truth: (n,) whether it is.

    Raises:
        ValueError: if no sample is positive: recall is undefined then.

    Average precision is sum_k (recall_k - recall_{k-1}) * precision_k over those thresholds.
    """
    if not truth.any():
        raise ValueError("a precision-recall curve needs at least one positive sample")
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(truth[order])
    last = np.flatnonzero(np.append(np.diff(ranked) != 0, True))
    precision, recall = hits[last] / (last + 1), hits[last] / hits[-1]
    area = float(np.sum(np.diff(recall, prepend=0.0) * precision))
    return Curve(name, precision, recall, area, float(truth.mean()))


def plot_precision_recall(curves: Sequence[Curve]) -> Picture:
    """Precision over recall of one or more models, or of one model for each class.

    Args:
        curves: what is drawn, in this order.
    """
    with set_style():
        figure, axes = create_canvas(HALF, 3.5)
        for index, one in enumerate(curves):
            # Indices of at most `MOST_POINTS` points, first and last among them.
            length = len(one.recall)
            keep = np.unique(np.linspace(0, length - 1, min(length, MOST_POINTS)).round().astype(np.intp))
            axes.step(
                np.append(0.0, one.recall[keep]),
                np.append(one.precision[keep[0]], one.precision[keep]),
                where="pre",
                color=SERIES[index % len(SERIES)],
                linestyle=DASHES[index % len(DASHES)],
                label=f"{clip_label(one.name, 34)}: AP {one.average_precision:.3f}",
            )
        shares = list(dict.fromkeys(round(one.no_skill, 6) for one in curves))
        for index, share in enumerate(shares):
            tone = GREY if len(shares) == 1 else SERIES[index % len(SERIES)]
            axes.axhline(share, color=tone, linewidth=1, linestyle=DOTTED)
        axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="recall", ylabel="precision")
        axes.grid(visible=True)
        _legend_above(axes)
    stated = "; ".join(f"{one.name} {one.average_precision:.3f}" for one in curves)
    guess = " or ".join(f"{share:.3f}" for share in shares)
    caption = (
        "Each curve runs over all thresholds, from the strictest (left) to the loosest (right). Average "
        f"precision: {stated}. A model that knows nothing stays on the dotted line: {guess}."
    )
    return Picture("Precision over recall", caption, figure)


def plot_reliability(
    confidence: Floats,
    accuracy: Floats,
    counts: npt.NDArray[np.integer],
    *,
    error: float | None = None,
    ends: Floats | None = None,
    bands: tuple[Floats, Floats, npt.NDArray[np.integer]] | None = None,
) -> Picture:
    """Reliability diagram: accuracy against confidence, with the samples of each bin.

    Args:
        confidence: (m,) mean confidence of the bin.
        accuracy: (m,) share of right answers in the bin.
        counts: (m,) samples in the bin; empty bins are left out.
        error: expected calibration error, where it was computed.
        ends: (m, 2) the 95 % interval of the accuracy in the bin, NaN where there is none.
        bands: left ends, widths and samples of the bars at the foot (default: one bar for each bin).
    """
    filled = np.asarray(counts) > 0
    confidence, accuracy, counts = confidence[filled], accuracy[filled], counts[filled]
    spans = None if ends is None else ends[filled]
    with set_style():
        figure, axes = create_canvas(HALF, 3.5)
        figure.delaxes(axes)
        axes, foot = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
        draw_reliability(
            axes, confidence, accuracy, spans, find_reliability_floor(confidence, accuracy, spans)
        )
        axes.set(ylabel="accuracy")
        _bin_counts(foot, *(bands or _bars(confidence, counts)))
    binning = "bins of equal width" if bands is None else "adaptive bins"
    error_said = "" if error is None else f" Expected calibration error in {binning}: {format_number(error)}."
    caption = (
        "A point on the dotted line is a bin whose confidence is its accuracy; red lines are the gaps"
        f"{'' if ends is None else ', pale bars 95 % intervals of the accuracy over pedestrians'}; bars "
        f"at the foot count the {format_count(int(counts.sum()))} samples. On the whole "
        f"{_tendency(confidence, accuracy, counts)}."
        f"{error_said}"
    )
    return Picture("Reliability", caption, figure)


def find_reliability_floor(confidence: Floats, accuracy: Floats, ends: Floats | None) -> float:
    """The tenth in [0, 0.9] from which the axes of a reliability diagram show every point and interval.

    Args:
        confidence: (m,) of the bins.
        accuracy: (m,) of the bins.
        ends: (m, 2) intervals of the accuracy, NaN where there is none.
    """
    shown = [confidence, accuracy] if ends is None else [confidence, accuracy, ends[np.isfinite(ends)]]
    return float(0.1 * np.floor(10 * np.concatenate(shown).min(initial=0.9)))


def draw_reliability(
    axes: Axes, confidence: Floats, accuracy: Floats, ends: Floats | None, low: float, size: float = 1.0
) -> None:
    """Points of a reliability diagram with their gaps from the dotted line of equal accuracy and confidence.

    Args:
        axes: to draw into.
        confidence: (m,) of the bins.
        accuracy: (m,) of the bins.
        ends: (m, 2) intervals of the accuracy, NaN where there is none.
        low: where both axes begin.
        size: of lines and points, as a share of the usual one.
    """
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=DOTTED)
    if ends is not None:
        # Below the gaps, whose colour would be another one under a translucent bar.
        axes.vlines(confidence, *ends.T, color=SERIES[0], linewidth=4 * size, alpha=0.35, zorder=1)
    axes.vlines(confidence, confidence, accuracy, color=SERIES[1], linewidth=1.6 * size)
    axes.plot(confidence, accuracy, color=SERIES[0], marker="o", markersize=5 * size, linewidth=1)
    # A margin, in which a point at an end is drawn whole.
    axes.set(xlim=(low - 0.015, 1.015), ylim=(low - 0.03, 1.03))
    axes.grid(visible=True)


def score_over_time(
    tte_frames: npt.NDArray[np.integer],
    scores: Floats,
    truth: npt.NDArray[np.integer],
    names: Mapping[int, str],
    *,
    bins: int = 7,
    frames_per_second: float = 30.0,
) -> Picture:
    """Scores of each class as the event comes closer: median line, middle half dark, 10 to 90 % light.

    Args:
        tte_frames: (n,) frames from the end of the observation to the event.
        scores: (n,) confidence that the answer is positive.
        truth: (n,) true class.
        names: what each class is called, in drawing order.
        bins: number of bands of time.
        frames_per_second: turns frames into seconds.
    """
    seconds = np.asarray(tte_frames) / frames_per_second
    edges = np.unique(np.linspace(seconds.min(), seconds.max(), bins + 1)) if len(seconds) else np.zeros(1)
    edges = edges if len(edges) > 1 else np.array([edges[0] - 0.5, edges[0] + 0.5])
    spoken = []
    with set_style():
        figure, axes = create_canvas(HALF, 3.5)
        for index, (label, name) in enumerate(names.items()):
            centre, bands = _bands(seconds[truth == label], scores[truth == label], edges)
            if not len(centre):
                continue
            colour = SERIES[index % len(SERIES)]
            axes.fill_between(centre, bands[:, 0], bands[:, 4], color=colour, alpha=0.14, linewidth=0)
            axes.fill_between(centre, bands[:, 1], bands[:, 3], color=colour, alpha=0.28, linewidth=0)
            marker = MARKERS[index % len(MARKERS)]
            amount = format_count(int((truth == label).sum()))
            axes.plot(
                centre,
                bands[:, 2],
                color=colour,
                marker=marker,
                markersize=4.5,
                label=f"{clip_label(name, 28)} (n = {amount})",
            )
            spoken.append(
                f"{name}: {bands[-1, 2]:.2f} at {centre[-1]:.1f} s, {bands[0, 2]:.2f} at {centre[0]:.1f} s"
            )
        axes.set(
            xlim=(edges[-1], edges[0]), ylim=(-0.02, 1.02), xlabel="seconds before the event", ylabel="score"
        )
        axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle=DOTTED)
        axes.grid(True)
        _legend_above(axes)
    caption = (
        "Time runs to the right, towards the event. Lines are medians; dark bands hold the middle half of "
        f"the samples, light bands 10 to 90 %. Median score: {'; '.join(spoken) or 'no samples'}."
    )
    return Picture("Score against time to event", caption, figure)


def _legend_above(axes: Axes) -> None:
    """The legend over the axes, where it hides nothing; in two columns if the names are short."""
    handles, names = axes.get_legend_handles_labels()
    if handles:
        columns = 2 if max(map(len, names)) <= SHORT_NAME else 1
        where = (-0.02, 1.0)
        style: dict[str, Any] = {"handlelength": 2.6, "borderpad": 0, "ncols": columns}
        axes.legend(handles, names, loc="lower left", bbox_to_anchor=where, **style)


def _tendency(confidence: Floats, accuracy: Floats, counts: npt.NDArray[np.integer]) -> str:
    shift = float(np.sum(counts * (confidence - accuracy)) / max(1, counts.sum()))
    if abs(shift) < 0.005:
        return "the model is as sure as it is right"
    return f"the model is {'over' if shift > 0 else 'under'}-confident by {abs(shift):.3f}"


def _bars(
    confidence: Floats, counts: npt.NDArray[np.integer]
) -> tuple[Floats, Floats, npt.NDArray[np.integer]]:
    """A bar around the confidence of each bin, none so wide that it covers another."""
    gaps = np.diff(np.unique(confidence))
    width = min(0.05, 0.8 * float(gaps.min(initial=0.0625)))
    return confidence - width / 2, np.full(len(confidence), width), counts


def _bin_counts(axes: Axes, left: Floats, width: Floats, counts: npt.NDArray[np.integer]) -> None:
    axes.bar(left, counts, width=width, align="edge", color=PALE, edgecolor=GREY, linewidth=0.6)
    most = int(counts.max(initial=1))
    says = f"most: {format_count(most)}"
    axes.text(0.0, 0.98, says, transform=axes.transAxes, va="top", fontsize=7.5, color=INK)
    axes.set(ylim=(0, 1.45 * most))
    axes.set(xlabel="confidence", ylabel="samples", yticks=[])


def _bands(seconds: Floats, scores: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Centres of the filled bands of time and the 10, 25, 50, 75, 90 % quantiles of their scores."""
    place = np.clip(np.digitize(seconds, edges) - 1, 0, len(edges) - 2)
    filled = [k for k in range(len(edges) - 1) if np.any(place == k)]
    centre = np.array([(edges[k] + edges[k + 1]) / 2 for k in filled])
    rows = [np.quantile(scores[place == k], [0.1, 0.25, 0.5, 0.75, 0.9]) for k in filled]
    return centre, np.array(rows).reshape(len(filled), 5)


# Precision over recall of many classes: one small panel each, boxes and tubes in the same one.

COLUMNS, MOST_PANELS, MOST_PANEL_POINTS = 5, 20, 160
_ROW_IN, _HEAD_IN, _STEP_X, _STEP_Y = 1.62, 0.4, 1.18, 1.32
_STYLES: tuple[tuple[str, Any], ...] = ((BLUE, "-"), (VERMILLION, (0, (4, 1.5))))


@dataclass(frozen=True, eq=False)
class ClassCurve:
    """The curve of one class at one level.

    Args:
        level: such as `boxes at 0.5`.
        precision: (n,) by falling score.
        recall: (n,) rising.
        average_precision: in [0, 1], null where undefined.
    """

    level: str
    precision: Floats
    recall: Floats
    average_precision: float | None


@dataclass(frozen=True, eq=False)
class Panel:
    """One class.

    Args:
        label: its name.
        n_truth: how much ground truth there is, by which panels are chosen where there are too many.
        curves: at most two levels.
    """

    label: str
    n_truth: int
    curves: tuple[ClassCurve, ...]


def plot_class_curves(panels: Sequence[Panel], *, kind: str) -> Picture:
    """A panel per class with ground truth, in the given order; of too many classes those with the most ground truth.

    Args:
        panels: the classes of one kind.
        kind: what they are classes of.
    """
    held = [panel for panel in panels if panel.n_truth]
    most = sorted(range(len(held)), key=lambda k: -held[k].n_truth)[:MOST_PANELS]
    shown = [held[k] for k in sorted(most)]
    columns = COLUMNS if len(shown) > 1 else 1
    rows = max(1, math.ceil(len(shown) / columns))
    with set_style():
        size = (FULL, _HEAD_IN + _ROW_IN * rows) if columns > 1 else (HALF, 3.5)
        figure, axes = create_canvas(*size)
        # One pair of axes for all panels: matplotlib takes long for many.
        for place, panel in enumerate(shown):
            last = place + columns >= len(shown)
            # One class, its origin at (x, y); the lowest panel of a column also says what lies to the right.
            x = (place % columns) * _STEP_X
            y = -(place // columns) * _STEP_Y
            nan = np.nan
            xs = [x + 0.5, x + 0.5, nan, x + 1, x + 1, nan, x, x + 1, nan, x, x + 1]
            ys = [y, y + 1, nan, y, y + 1, nan, y + 0.5, y + 0.5, nan, y + 1, y + 1]
            axes.plot(xs, ys, color=PALE, linewidth=0.7)
            axes.plot([x, x, x + 1], [y + 1, y, y], color=GREY, linewidth=0.8)
            for one, (tone, style) in zip(panel.curves, _STYLES, strict=False):
                # Some of many points, the first and the last among them.
                length = len(one.recall)
                keep = np.unique(
                    np.linspace(0, length - 1, min(length, MOST_PANEL_POINTS)).round().astype(np.intp)
                )
                if len(keep):
                    recall = np.append(0.0, one.recall[keep])
                    precision = np.append(one.precision[keep[0]], one.precision[keep])
                    axes.plot(x + recall, y + precision, color=tone, linestyle=style, linewidth=1.3)
            axes.text(x, y + 1.05, clip_label(panel.label, 24), fontsize=8)
            behind = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1}
            says = f"{_values(panel)}\nn {format_count(panel.n_truth)}"
            axes.text(x + 0.05, y + 0.07, says, va="bottom", fontsize=7, color=GREY, bbox=behind)
            small: dict[str, Any] = {"fontsize": 7, "color": GREY}
            axes.text(x - 0.03, y, "0", ha="right", va="center", **small)
            axes.text(x - 0.03, y + 1, "1", ha="right", va="center", **small)
            if last:
                axes.text(x + 0.5, y - 0.05, "recall", ha="center", va="top", **small)
                axes.text(x + 1, y - 0.05, "1", ha="center", va="top", **small)
        axes.set(xlim=(-0.14, columns * _STEP_X - 0.16), ylim=(1.24 - rows * _STEP_Y, 1.2))
        axes.axis("off")
        levels = list(dict.fromkeys(one.level for panel in shown for one in panel.curves))
        if levels:
            from matplotlib.lines import Line2D

            pairs = list(zip(levels, _STYLES, strict=False))
            handles, names = (
                [Line2D([], [], color=tone, linestyle=style) for _, (tone, style) in pairs],
                [clip_label(level, 60) for level, _ in pairs],
            )
            figure.legend(handles, names, loc="outside upper left", ncols=2, handlelength=2.6)
    left = f" Shown are the {len(shown)} of {len(held)} classes with the most truth."
    text = "; ".join(f"{panel.label} {_values(panel)}" for panel in shown)
    caption = (
        "Precision (upwards) over recall (to the right), from the most confident prediction to the last. Numbers "
        "are average precision in per cent, n counts true boxes."
        f"{left if len(shown) < len(held) else ''} {text}."
    )
    return Picture(f"Precision over recall: {kind}", caption, figure)


def _values(panel: Panel) -> str:
    values = (one.average_precision for one in panel.curves)
    return " / ".join("–" if value is None else f"{100 * value:.1f}" for value in values)
