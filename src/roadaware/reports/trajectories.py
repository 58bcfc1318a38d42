"""The page of a study of where pedestrians will be: a table for each set, errors by horizon, and paired differences."""

from __future__ import annotations

from typing import Any

from roadaware.metrics.metric_state import MetricResult
from roadaware.metrics.trajectories import HIGHER_IS_BETTER
from roadaware.protocols.trajectories import (
    ABROAD,
    FLOORS,
    KALMAN,
    LINE,
    MIXTURE,
    SINGLE,
    VELOCITY,
    JudgedSet,
    TrajectoryStudy,
)
from roadaware.reports.page import (
    BLUE,
    DOTTED,
    FULL,
    GREEN,
    GREY,
    ORANGE,
    VERMILLION,
    Facts,
    Note,
    Picture,
    Pictures,
    Points,
    Section,
    Table,
    create_canvas,
    set_style,
)
from roadaware.reports.terminal import format_table

SHOWN = (
    "ade", "fde", "ade_heights", "fde_heights", "min_ade", "min_fde", "iou", "nll", "nll_final", "covered_50", "covered_90",
    "area_90_final",
)  # fmt: skip
"""Columns of the tables."""
DECIDING = ("ade", "fde", "nll")
"""Metrics by which a verdict is given."""
_TONES = {MIXTURE: BLUE, VELOCITY: ORANGE, LINE: GREEN, KALMAN: GREY, ABROAD: VERMILLION}
_INTERVALS = ("ade", "fde", "nll", "covered_90")
"""Columns with an interval, so that the others stay in sight."""


def name_metric(metric: str, judged: JudgedSet) -> str:
    """A metric in words, with its unit."""
    unit = "heights" if judged.unit == "px" else "m"
    names = {
        "ade": f"ADE, {judged.unit}", "fde": f"FDE, {judged.unit}", "ade_heights": "ADE, heights",
        "fde_heights": "FDE, heights",
        "min_ade": f"ADE, best of 5, {unit}", "min_fde": f"FDE, best of 5, {unit}", "iou": "IoU at the end", "nll": "NLL",
        "nll_final": "NLL at the end", "covered_50": "in the 50 % region", "covered_90": "in the 90 % region",
        "area_90_final": f"area of the 90 % region, {unit}²",
    }  # fmt: skip
    return names[metric]


def _format_number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def format_cell(result: MetricResult, metric: str, unit: str = "video", *, ends: bool = True) -> str:
    """A value with its interval over units of a kind; `-` where it is not defined."""
    if metric not in result.summary["metric"]:
        return "-"
    row = result.row(metric)
    text = _format_number(row["value"])
    low, high = row[f"low_{unit}"], row[f"high_{unit}"]
    return text if low is None or not ends else f"{text} [{_format_number(low)}, {_format_number(high)}]"


def decide(result: MetricResult, metric: str, unit: str = "video") -> str:
    """Whether the mixture is `better` or `worse` by a paired difference, or `not different`."""
    row = result.row(metric)
    low, high = row[f"low_{unit}"], row[f"high_{unit}"]
    if low is None or low <= 0 <= high:
        return "not different"
    return "better" if (row["value"] > 0) == (metric in HIGHER_IS_BETTER) else "worse"


def list_rows(judged: JudgedSet) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of the table of a set."""
    shown = [name for name in SHOWN if name in judged.ways[MIXTURE].metrics]
    if judged.unit == "m":
        shown = [name for name in shown if not name.endswith("_heights")]
    rows = [
        [way, *(format_cell(result, metric, ends=metric in _INTERVALS) for metric in shown)]
        for way, result in judged.summary.items()
    ]
    return ["", *(name_metric(metric, judged) for metric in shown)], rows


def list_verdicts(judged: JudgedSet) -> list[str]:
    """The mixture against each floor, by the metrics that decide: difference, both intervals, verdict."""
    lines = []
    for way in (*FLOORS, ABROAD):
        if way not in judged.differences:
            continue
        result = judged.differences[way]
        lines += [
            f"{judged.name}, mixture less {way}, {name_metric(metric, judged)}: {format_cell(result, metric)} over videos "
            f"({decide(result, metric)}), {format_cell(result, metric, 'pedestrian')} over pedestrians "
            f"({decide(result, metric, 'pedestrian')})"
            for metric in DECIDING
        ]
    return lines


def describe_set(judged: JudgedSet) -> str:
    """How much there is of a set, in words."""
    test = judged.counts["test"]
    text = f"{test['windows']:,} windows of {test['tracks']:,} tracks in {test['videos']:,} videos judged"
    if judged.counts["folds"] > 1:
        return f"{text}, in {judged.counts['folds']} folds over drives"
    return f"{text}; {judged.counts['train']['windows']:,} windows learnt from"


def format_trajectory_study(study: TrajectoryStudy) -> str:
    """The study as tables of text, for a terminal."""
    lines = []
    for judged in study.sets:
        lines += [f"{judged.name}: {describe_set(judged)}", "", format_table(*list_rows(judged)), ""]
        lines += [*list_verdicts(judged), ""]
    lines.append("In brackets 95 % intervals over videos; differences are paired.")
    return "\n".join(lines)


def plot_horizons(judged: JudgedSet) -> Picture:
    """Error in heights, or metres, likelihood and coverage of the 90 % regions of one set against the horizon."""
    horizons = judged.ways[MIXTURE].config.horizons_s
    panels = {
        f"error, {'heights' if judged.unit == 'px' else 'm'}": "error_heights",
        "NLL": "nll",
        "in the 90 % region": "covered_90",
    }
    with set_style():
        figure, axes = create_canvas(FULL, 2.6)
        figure.delaxes(axes)
        drawn: Any = figure.subplots(1, len(panels))
        for panel, (label, metric) in zip(drawn, panels.items(), strict=True):
            for way, result in judged.summary.items():
                if way == SINGLE:
                    continue
                values = result.values()
                line = [values[f"{metric}@{horizon:g}s"] for horizon in horizons]
                panel.plot(
                    horizons, line, color=_TONES[way], marker="o", markersize=3, linewidth=1.2, label=way
                )
            panel.set_ylabel(label)
            panel.set_xlabel("seconds ahead")
            panel.grid(visible=True)
            panel.set_xticks(horizons)
        drawn[2].axhline(0.9, color=GREY, linestyle=DOTTED, linewidth=0.8)
        drawn[0].legend(fontsize=7)
    caption = (
        "Distance of the predicted from the true place, minus the logarithm of the predicted density, and how often the "
        "place lies in the region that promises nine tenths."
    )
    return Picture(f"By horizon: {judged.name}", caption, figure)


def describe_verdicts(judged: JudgedSet, unit: str) -> str:
    """The mixture against the floors by the metrics that decide, over units of a kind, in words."""
    floors = [way for way in FLOORS if way in judged.differences]
    alike: dict[str, list[str]] = {}
    words = []
    for metric in DECIDING:
        name = name_metric(metric, judged).partition(",")[0]
        verdicts = [decide(judged.differences[way], metric, unit) for way in floors]
        if len(set(verdicts)) == 1:
            alike.setdefault(verdicts[0], []).append(name)
        else:
            each = (f"{verdict} against {way}" for verdict, way in zip(verdicts, floors, strict=True))
            words.append(f"{name}: {', '.join(each)}")
    whole = [f"{verdict} in {', '.join(names)} against all floors" for verdict, names in alike.items()]
    return "; ".join([*whole, *words])


def build_trajectory_section(study: TrajectoryStudy) -> Section:
    """The section of the page."""
    says = [
        f"{judged.name}, the mixture over videos: {describe_verdicts(judged, 'video')}. Over pedestrians: "
        f"{describe_verdicts(judged, 'pedestrian')}."
        for judged in study.sets
    ]
    parts: list[Any] = [Facts(tuple((judged.name, describe_set(judged)) for judged in study.sets))]
    for judged in study.sets:
        columns, rows = list_rows(judged)
        chosen = "; ".join(f"{way}: {words}" for way, words in judged.floors.items())
        by_seed = ", ".join(_format_number(value) for value in judged.seeds_ade)
        parts.append(
            Table(
                tuple(columns), tuple(map(tuple, rows)), "l" + "r" * (len(columns) - 1), title=judged.name,
                caption=f"In brackets 95 % intervals over videos. ADE of each network by itself: {by_seed}. {chosen}.",
            )
        )  # fmt: skip
    parts += [
        Pictures(tuple(plot_horizons(judged) for judged in study.sets)),
        Points(
            tuple(line for judged in study.sets for line in list_verdicts(judged)), title="Paired differences"
        ),
        Points(
            tuple(
                f"{judged.name}: {count:,} {why}"
                for judged in study.sets
                for why, count in judged.counts["left_out"].items()
                if count
            ),
            title="Left out of test",
        ),
        Note(
            "Windows are cut where a frame of a track is missing, and nothing is filled in. JAAD's files mark every box as a "
            "keyframe; what its annotators' tool drew between two of theirs cannot be told from them."
        ),
    ]
    return Section("Where they will be", tuple(says), tuple(parts))
