"""Evaluation section of road events: means, groups, classes, printed numbers, calibration, curves, the worst tubes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.analysis import event_results as results
from roadaware.analysis.event_results import Grid, Value
from roadaware.analysis.excerpts import COSTLY_AT, Clip
from roadaware.analysis.worst_tubes import WORST_AT, Strip
from roadaware.reports.bars import Difference, Estimate, Panel, plot_class_curves, plot_estimates, plot_forest
from roadaware.reports.configs import build_config_table, format_config
from roadaware.reports.drawing import plot_strips
from roadaware.reports.event_tables import (
    build_class_ap_table,
    build_means_table,
    convert_percent,
    format_percent_value,
    group_tables,
)
from roadaware.reports.page import (
    FULL,
    GREY,
    INK,
    Block,
    Clips,
    Facts,
    Mark,
    Note,
    Picture,
    Pictures,
    Points,
    Section,
    Table,
    TableCell,
    create_canvas,
    set_style,
)
from roadaware.reports.text import (
    capitalize_text,
    clip_label,
    format_count,
    format_interval,
    format_name,
    format_number,
    format_signed,
)

if TYPE_CHECKING:
    pass


# Tables of a report beside the average precision of road events: streaming accuracy, scores by slice.


_READING = (
    "in points of mean average precision on the same videos. Bars are 95 % intervals over videos; a "
    "difference is called better or worse where its interval excludes zero."
)

_CLIPS = (
    f"Errors of tubes at an overlap of {COSTLY_AT:g}, each by what it alone costs. Green and solid is the truth, red and "
    "dashed the prediction; the image is cut to where they are."
)


def build_event_section(
    summary: pl.DataFrame,
    *,
    title: str = "Road events",
    model: str = "the model",
    config: Mapping[str, Any],
    about: Mapping[str, str] | None = None,
    linker: Mapping[str, Any] | None = None,
    panels: Mapping[str, Sequence[Panel]] | None = None,
    strips: Sequence[Strip] = (),
    clips: Sequence[Clip] = (),
    more: Sequence[Block] = (),
    notes: Sequence[str] = (),
) -> Section:
    """One evaluation of road events.

    Args:
        summary: of the result, with level, overlap, threshold, kind and label of each metric.
        title: heading of the section.
        model: what the model is called in sentences.
        config: how it was judged, as `to_dict` gives it.
        about: what else the reader should know, such as dataset, split, digests, what was left out.
        linker: how tubes were built from detections, where they were.
        panels: kind to the curves of its classes.
        strips: tubes that went wrong.
        clips: moments of what went wrong.
        more: further blocks after the tables: published numbers, an analysis of the errors.
        notes: what else happened.
    """
    facts = [*(about or {}).items(), ("metrics", format_config(config))]
    facts += [("tubes", format_config(linker))] if linker else []
    action = results.select_means(summary, levels=(results.AV,))
    facts += [
        ("vehicle's action", f"mean average precision {format_percent_value(value)}")
        for value in action.cells.values()
    ]
    grid = results.select_means(summary)
    blocks: list[Block] = [Facts(tuple(facts))]
    blocks += [block for block in (build_means_table(grid),) if block]
    blocks += [Clips(tuple(clips), "The moments that cost most", _CLIPS)] if clips else []
    blocks += group_tables(summary)
    blocks += [Note(note, "doubt") for note in notes]
    images = _pictures(grid, panels or {}, strips)
    blocks += [Pictures(tuple(images), "Pictures")] if images else []
    blocks += more
    blocks += [
        build_class_ap_table(results.select_classes(summary, kind), kind)
        for kind in results.list_kinds(summary)
    ]
    blocks.append(build_config_table(config, "Metric configuration"))
    blocks += [build_config_table(linker, "Linker configuration")] if linker else []
    return Section(title, tuple(_says(grid, summary, model)), tuple(blocks))


def build_event_comparison_section(found: Any, *, title: str | None = None) -> Section:
    """Two models on the same videos: the difference of every mean, and of the classes.

    Args:
        found: what `roadaware.analysis.compare.compare_detections` gave.
        title: heading; the names of the two where not given.
    """
    first, second = found.names
    rows = list(found.table.iter_rows(named=True))
    overall = [row for row in rows if row["label"] is None]
    main = [row for row in overall if _is_headline(row, overall) and row["verdict"] != "undefined"]
    drawn = [
        Difference(
            row["metric"],
            convert_percent(row["difference"]),
            None,
            None,
            convert_percent(row["low_video"]),
            convert_percent(row["high_video"]),
            row["verdict"],
            (row.get("caution_video"),),
        )
        for row in main
    ]
    blocks: list[Block] = [Pictures((plot_forest(drawn, first, second, reading=_READING),))] if drawn else []
    note = f"In per cent; {found.resamples:,} resamples of videos shared by both models."
    blocks.append(_differences(overall, found.names, "Differences of means", note))
    apart = [row for row in rows if row["label"] is not None and row["verdict"] in ("better", "worse")]
    if apart:
        title_of_classes = "Classes in which they differ"
        blocks.append(_differences(apart, found.names, title_of_classes, "The others are not different."))
    record: dict[str, list[str]] = {}
    for row in main:
        record.setdefault(row["verdict"], []).append(row["metric"])
    says = tuple(
        capitalize_text(f"{first} is {verdict}: {', '.join(names)}.") for verdict, names in record.items()
    )
    return Section(title or capitalize_text(f"{first} against {second}"), says, tuple(blocks))


def _is_headline(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a mean is one of those that stand for the others."""
    columns = [_column(each) for each in rows]
    return _column(row) in results.select_headline(tuple(dict.fromkeys(columns)))


def _column(row: Mapping[str, Any]) -> results.Column:
    return results.Column(row["level"], row["overlap"] or "", row["threshold"] or "")


def _differences(
    rows: Sequence[Mapping[str, Any]], names: tuple[str, str], title: str, caption: str
) -> Table:
    head = ("metric", *names, "difference", "interval over videos", f"{names[0]} is")
    return Table(head, tuple(_build_comparison_row(row) for row in rows), "lrrrrl", title, caption)


def _pictures(grid: Grid, panels: Mapping[str, Sequence[Panel]], strips: Sequence[Strip]) -> list[Picture]:
    rows = [
        Estimate(
            *(kind, value.value, value.low, value.high, value.n, column.words, value.reason, value.caution)
        )
        for column in results.select_headline(grid.columns)
        for kind in grid.rows
        if (value := grid.cells.get((kind, column))) is not None
    ]
    found = []
    if rows:
        measured = "mean average precision in per cent"
        found.append(
            plot_estimates(rows, measured, title="Mean average precision by kind", counted="classes")
        )
    found += [plot_class_curves(held, kind=kind) for kind, held in panels.items() if held]
    return found + (
        [plot_strips(strips, title=f"Tubes that went wrong at an overlap of {WORST_AT:g}")] if strips else []
    )


def _says(grid: Grid, summary: pl.DataFrame, model: str) -> list[str]:
    """The headline means of each level in a sentence."""
    said = []
    for column in results.select_headline(grid.columns):
        pairs = ((kind, grid.cells.get((kind, column))) for kind in grid.rows)
        lines = [f"{kind} {format_percent_value(value)}" for kind, value in pairs if _is_defined(value)]
        if lines:
            said.append(
                capitalize_text(f"{model}, mean average precision of {column.words}: {', '.join(lines)}.")
            )
    action = results.select_means(summary, levels=(results.AV,))
    said += [
        capitalize_text(
            f"{model}, mean average precision of the vehicle's action: {format_percent_value(value)}."
        )
        for value in action.cells.values()
        if _is_defined(value)
    ]
    return said


def _is_defined(value: Value | None) -> bool:
    return value is not None and value.value is not None


def _build_comparison_row(row: Mapping[str, Any]) -> tuple[TableCell, ...]:
    tone = {"better": "good", "worse": "bad"}.get(row["verdict"], "")
    low, high = convert_percent(row["low_video"]), convert_percent(row["high_video"])
    ends = format_interval(low, high, 2, row.get("caution_video"))
    values = (
        format_number(convert_percent(row["a"]), 2),
        format_number(convert_percent(row["b"]), 2),
        format_signed(convert_percent(row["difference"]), 2),
    )
    return (row["metric"], *values, ends, Mark(row["verdict"], tone))


# Errors as figures: the gain in mAP (dAP) if each error type were corrected, kind by kind.

_ROW_IN, _HEAD_IN = 0.42, 0.6
_LEVELS = {"frame": "boxes", "video": "tubes"}
_STRONG = 0.25
"""The gain from which cells have the darkest colour."""


def build_error_blocks(faults: pl.DataFrame) -> list[Block]:
    """One figure for boxes and one for tubes, with the meaning of the error types.

    Args:
        faults: what `roadaware.metrics.detection.errors.build_error_table` gave for each level, with
            `threshold`.
    """
    levels = faults["level"].unique(maintain_order=True).to_list()
    images = tuple(plot_error_gains(faults.filter(pl.col("level") == level)) for level in levels)
    met = faults.filter(pl.col("predictions") > 0).unique("fault", maintain_order=True)
    meanings = tuple(f"{format_name(row['fault'])}: {row['meaning']}" for row in met.iter_rows(named=True))
    return [Pictures(images, "Why predictions fail"), Points(meanings, "What the faults are")]


def plot_error_gains(faults: pl.DataFrame) -> Picture:
    """Kinds by error type: the gain in mean average precision if each error type were corrected by itself (dAP).

    Args:
        faults: of one level.
    """
    level, threshold = str(faults["level"][0]), float(faults["threshold"][0])
    kinds = faults["kind"].unique(maintain_order=True).to_list()
    met = faults.group_by("fault", maintain_order=True).agg(pl.col("predictions").sum())
    names = met.filter(pl.col("predictions") > 0)["fault"].to_list()
    cells = {(row["kind"], row["fault"]): row for row in faults.iter_rows(named=True)}
    with set_style():
        figure, axes = create_canvas(FULL, _HEAD_IN + _ROW_IN * max(1, len(kinds)))
        for y, kind in enumerate(kinds):
            for x, name in enumerate(names):
                row = cells[kind, name]
                from matplotlib import colormaps
                from matplotlib.patches import Rectangle

                gain = row["gain"]
                share = min(1.0, max(0.0, gain or 0.0) / _STRONG)
                face = colormaps["Blues"](0.04 + 0.86 * share)
                axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=face, edgecolor="none"))
                ink = "white" if share > 0.6 else INK
                says = (
                    "–" if gain is None else "0" if not row["predictions"] else format_signed(100 * gain, 1)
                )
                axes.text(x, y - 0.1, says, ha="center", va="center", color=ink, fontsize=8.5)
                tone = "white" if share > 0.6 else GREY
                axes.text(
                    x,
                    y + 0.27,
                    format_count(row["predictions"]),
                    ha="center",
                    va="center",
                    color=tone,
                    fontsize=6.5,
                )
        axes.set(xlim=(-0.5, max(1, len(names)) - 0.5), ylim=(len(kinds) - 0.5, -0.5))
        axes.set_xticks(
            range(len(names)), [clip_label(format_name(name), 30).replace(" ", "\n", 1) for name in names]
        )
        axes.set_yticks(range(len(kinds)), [clip_label(kind, 30) for kind in kinds])
        axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
        for spine in axes.spines.values():
            spine.set_visible(False)
    where = f"{_LEVELS.get(level, level)} at {threshold:g}"
    caption = (
        f"Large numbers are points of mean average precision of {where} that would be gained if the fault "
        f"were mended alone; small ones count predictions, or missed truth. {_describe_gains(faults, kinds)}"
    )
    return Picture(f"What mending would gain: {where}", caption, figure)


def _describe_gains(faults: pl.DataFrame, kinds: list[str]) -> str:
    """The largest gain of each kind."""
    lines = []
    for kind in kinds:
        held = faults.filter(pl.col("kind") == kind).drop_nulls("gain").sort("gain", descending=True)
        if len(held) and held["gain"][0] > 0:
            lines.append(
                f"{kind} {format_name(held['fault'][0])} ({format_number(100 * held['gain'][0], 1)})"
            )
    return f"Most is lost by: {', '.join(lines)}." if lines else ""
