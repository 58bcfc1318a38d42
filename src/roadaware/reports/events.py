"""How good claimed road events are, as a section of a report: means, classes, curves, the worst tubes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from roadaware.analysis import event_results as results
from roadaware.analysis.event_results import Grid, Value
from roadaware.analysis.worst_tubes import WORST_AT, Strip
from roadaware.reports.bars import Difference, Estimate, estimates, forest
from roadaware.reports.configs import config_line, config_table
from roadaware.reports.event_curves import Panel, class_curves
from roadaware.reports.event_tables import class_table, group_tables, in_words, means_table, times
from roadaware.reports.film import film
from roadaware.reports.page import Block, Cell, Facts, Mark, Note, Pictures, Section, Table
from roadaware.reports.picture import Picture
from roadaware.reports.text import interval, number, sentence, signed

_READING = (
    "in points of mean average precision on the same videos. Bars are 95 % intervals over videos; a "
    "difference is called better or worse where its interval excludes zero."
)


def event_section(
    summary: pl.DataFrame,
    *,
    title: str = "Road events",
    model: str = "the model",
    config: Mapping[str, Any],
    about: Mapping[str, str] | None = None,
    linker: Mapping[str, Any] | None = None,
    panels: Mapping[str, Sequence[Panel]] | None = None,
    strips: Sequence[Strip] = (),
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
        more: further blocks after the tables: published numbers, an analysis of the errors.
        notes: what else happened.
    """
    facts = [*(about or {}).items(), ("metrics", config_line(config))]
    facts += [("tubes", config_line(linker))] if linker else []
    action = results.means(summary, levels=(results.AV,))
    facts += [
        ("vehicle's action", f"mean average precision {in_words(value)}") for value in action.cells.values()
    ]
    grid = results.means(summary)
    blocks: list[Block] = [Facts(tuple(facts))]
    blocks += [block for block in (means_table(grid),) if block]
    blocks += group_tables(summary)
    blocks += [Note(note, "doubt") for note in notes]
    pictures = _pictures(grid, panels or {}, strips)
    blocks += [Pictures(tuple(pictures), "Pictures")] if pictures else []
    blocks += more
    blocks += [class_table(results.classes(summary, kind), kind) for kind in results.kinds(summary)]
    blocks.append(config_table(config, "Metric configuration"))
    blocks += [config_table(linker, "Linker configuration")] if linker else []
    return Section(title, tuple(_says(grid, summary, model)), tuple(blocks))


def event_comparison_section(found: Any, *, title: str | None = None) -> Section:
    """Two models on the same videos: the difference of every mean, and of the classes.

    Args:
        found: what `roadaware.analysis.compare_detection.compare` gave.
        title: heading; the names of the two where not given.
    """
    first, second = found.names
    rows = list(found.table.iter_rows(named=True))
    overall = [row for row in rows if row["label"] is None]
    main = [row for row in overall if _is_headline(row, overall) and row["verdict"] != "undefined"]
    drawn = [
        Difference(
            row["metric"],
            times(row["difference"]),
            None,
            None,
            times(row["low_video"]),
            times(row["high_video"]),
            row["verdict"],
            (row.get("caution_video"),),
        )
        for row in main
    ]
    blocks: list[Block] = [Pictures((forest(drawn, first, second, reading=_READING),))] if drawn else []
    note = f"In per cent; {found.draws:,} resamples of videos shared by both models."
    blocks.append(_differences(overall, found.names, "Differences of means", note))
    apart = [row for row in rows if row["label"] is not None and row["verdict"] in ("better", "worse")]
    if apart:
        title_of_classes = "Classes in which they differ"
        blocks.append(_differences(apart, found.names, title_of_classes, "The others are not different."))
    told: dict[str, list[str]] = {}
    for row in main:
        told.setdefault(row["verdict"], []).append(row["metric"])
    says = tuple(sentence(f"{first} is {verdict}: {', '.join(names)}.") for verdict, names in told.items())
    return Section(title or sentence(f"{first} against {second}"), says, tuple(blocks))


def _is_headline(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a mean is one of those that stand for the others."""
    columns = [_column(each) for each in rows]
    return _column(row) in results.headline(tuple(dict.fromkeys(columns)))


def _column(row: Mapping[str, Any]) -> results.Column:
    return results.Column(row["level"], row["overlap"] or "", row["threshold"] or "")


def _differences(
    rows: Sequence[Mapping[str, Any]], names: tuple[str, str], title: str, caption: str
) -> Table:
    head = ("metric", *names, "difference", "interval over videos", f"{names[0]} is")
    return Table(head, tuple(_compared(row) for row in rows), "lrrrrl", title, caption)


def _pictures(grid: Grid, panels: Mapping[str, Sequence[Panel]], strips: Sequence[Strip]) -> list[Picture]:
    rows = [
        Estimate(
            *(kind, value.value, value.low, value.high, value.n, column.words, value.reason, value.caution)
        )
        for column in results.headline(grid.columns)
        for kind in grid.rows
        if (value := grid.cells.get((kind, column))) is not None
    ]
    found = []
    if rows:
        measured = "mean average precision in per cent"
        found.append(estimates(rows, measured, title="Mean average precision by kind", counted="classes"))
    found += [class_curves(held, kind=kind) for kind, held in panels.items() if held]
    return found + (
        [film(strips, title=f"Tubes that went wrong at an overlap of {WORST_AT:g}")] if strips else []
    )


def _says(grid: Grid, summary: pl.DataFrame, model: str) -> list[str]:
    """The headline means of each level in a sentence."""
    said = []
    for column in results.headline(grid.columns):
        pairs = ((kind, grid.cells.get((kind, column))) for kind in grid.rows)
        told = [f"{kind} {in_words(value)}" for kind, value in pairs if _defined(value)]
        if told:
            said.append(sentence(f"{model}, mean average precision of {column.words}: {', '.join(told)}."))
    action = results.means(summary, levels=(results.AV,))
    said += [
        sentence(f"{model}, mean average precision of the vehicle's action: {in_words(value)}.")
        for value in action.cells.values()
        if _defined(value)
    ]
    return said


def _defined(value: Value | None) -> bool:
    return value is not None and value.value is not None


def _compared(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    tone = {"better": "good", "worse": "bad"}.get(row["verdict"], "")
    low, high = times(row["low_video"]), times(row["high_video"])
    ends = interval(low, high, 2, row.get("caution_video"))
    values = (number(times(row["a"]), 2), number(times(row["b"]), 2), signed(times(row["difference"]), 2))
    return (row["metric"], *values, ends, Mark(row["verdict"], tone))
