"""Figures that compare: scenarios and models with their intervals, findings, reproduced cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

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
