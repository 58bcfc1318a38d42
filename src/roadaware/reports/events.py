"""How good claimed road events are, as a section of a report: means, classes, curves, the worst tubes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from roadaware.analysis import event_results as results
from roadaware.analysis.event_results import Grid, Value
from roadaware.analysis.worst_tubes import Strip
from roadaware.reports.bars import Difference, Estimate, estimates, forest
from roadaware.reports.configs import config_line, config_table
from roadaware.reports.event_curves import Panel, class_curves
from roadaware.reports.film import film
from roadaware.reports.page import Block, Cell, Facts, Mark, Note, Pictures, Section, Table
from roadaware.reports.picture import Picture
from roadaware.reports.text import count, number, sentence, signed

_MOST_GROUP_COLUMNS = 12


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
    grid = results.means(summary)
    blocks: list[Block] = [Facts(tuple(facts))]
    blocks += [block for block in (_means_table(grid, summary), _groups_table(summary)) if block]
    blocks += [Note(note, "doubt") for note in notes]
    pictures = _pictures(grid, panels or {}, strips)
    blocks += [Pictures(tuple(pictures), "Pictures")] if pictures else []
    blocks += more
    blocks += [_class_table(results.classes(summary, kind), kind) for kind in results.kinds(summary)]
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
    overall = [row for row in rows if row["label"] is None and row["verdict"] != "undefined"]
    drawn = [
        Difference(
            row["metric"],
            _times(row["difference"]),
            None,
            None,
            _times(row["low_video"]),
            _times(row["high_video"]),
            row["verdict"],
        )
        for row in overall
    ]
    head = ("metric", first, second, "difference", "interval over videos", f"{first} is")
    table = Table(
        head,
        tuple(_compared(row) for row in rows),
        "lrrrrl",
        "Differences",
        f"In per cent; {found.draws:,} resamples of videos shared by both models.",
    )
    told: dict[str, list[str]] = {}
    for row in overall:
        told.setdefault(row["verdict"], []).append(row["metric"])
    says = tuple(sentence(f"{first} is {verdict}: {', '.join(names)}.") for verdict, names in told.items())
    blocks: list[Block] = [Pictures((forest(drawn, first, second),))] if drawn else []
    return Section(title or sentence(f"{first} against {second}"), says, (*blocks, table))


def printed_table(rows: pl.DataFrame) -> Table:
    """What the paper prints of the same thing, its best and its range over models, beside what was obtained.

    Args:
        rows: what `roadaware.protocols.tpami22.beside` gave.
    """
    same = ["level", "threshold", "kind", "label"]
    held = rows.drop_nulls("printed").sort("printed", descending=True, maintain_order=True)
    best = held.group_by(same, maintain_order=True).agg(
        pl.col("obtained", "printed", "model", "table").first(), lowest=pl.col("printed").min(), n=pl.len()
    )
    order = rows.select(same).unique(maintain_order=True).with_row_index("place")
    best = order.join(best, on=same, nulls_equal=True).sort("place")
    means = best.filter(pl.col("label").is_null())
    shown = means if len(means) else best
    cells: list[tuple[Cell, ...]] = [
        (
            f"{row['kind']} {row['label'] or ''}".strip(),
            results.Column(row["level"], "", row["threshold"] or "").words,
            number(row["obtained"], 1),
            number(row["printed"], 1),
            f"{row['model']} (Table {row['table']})",
            f"{number(row['lowest'], 1)} to {number(row['printed'], 1)}",
            count(row["n"]),
        )
        for row in shown.iter_rows(named=True)
    ]
    return Table(
        ("what", "where", "obtained", "best printed", "by", "range printed", "numbers"),
        tuple(cells),
        "llrrlrr",
        "Beside the paper",
        "In per cent. Printed by Singh et al., TPAMI 2022, for this split or as a mean over splits.",
    )


def calibration_block(level: str, rows: pl.DataFrame) -> Table:
    """The expected calibration error of each kind.

    Args:
        level: boxes or tubes.
        rows: what `roadaware.metrics.detection.calibration.calibration_table` gave.
    """
    kinds = rows.filter(pl.col("group").is_null(), pl.col("label").is_null())
    cells: list[tuple[Cell, ...]] = [
        (
            row["kind"],
            count(row["claims"]),
            number(row["mean_score"]),
            number(row["precision"]),
            number(row["ece"]) if row["valid"] else Mark("undefined", "mute", "no claims"),
        )
        for row in kinds.iter_rows(named=True)
    ]
    head = ("kind", "claims", "mean score", "share that is right", "expected calibration error")
    return Table(head, tuple(cells), "lrrrr", f"Scores of {level}: do they mean what they say?")


def _means_table(grid: Grid, summary: pl.DataFrame) -> Table | None:
    """Kinds by thresholds, and what the vehicle does."""
    action = results.means(summary, levels=(results.AV,))
    columns = (*grid.columns, *action.columns)
    if not columns:
        return None
    rows = [(kind, *(_cell(grid.cells.get((kind, column))) for column in columns)) for kind in grid.rows]
    rows += [(kind, *(_cell(action.cells.get((kind, column))) for column in columns)) for kind in action.rows]
    caption = (
        "Mean over classes of average precision, in per cent; below each value its interval over videos."
    )
    return Table(
        ("kind", *(column.words for column in columns)),
        tuple(rows),
        "l" + "r" * len(columns),
        "Mean average precision",
        caption,
    )


def _groups_table(summary: pl.DataFrame) -> Table | None:
    """The headline means of each group, nothing where there are no groups."""
    groups = summary["group"].drop_nulls().unique(maintain_order=True).to_list()
    if not groups:
        return None
    grids = {group: results.means(summary, group) for group in groups}
    first = next(iter(grids.values()))
    pairs = [(kind, column) for column in results.headline(first.columns) for kind in first.rows]
    pairs = pairs[:_MOST_GROUP_COLUMNS]
    rows = tuple((name, *(_cell(grid.cells.get(pair)) for pair in pairs)) for name, grid in grids.items())
    head = ("group", *(f"{kind}, {column.words}" for kind, column in pairs))
    return Table(head, rows, "l" + "r" * len(pairs), "Groups", "Mean average precision in per cent.")


def _class_table(grid: Grid, kind: str) -> Table:
    rows = []
    for row in grid.rows:
        values = list(grid.row(row))
        sizes = _sizes(grid, row)
        rows.append((row, *sizes, *(_cell(value) for value in values)))
    levels = [_counted(level) for level in _levels(grid)]
    head = (kind, *levels, *(column.words for column in grid.columns))
    caption = "Average precision in per cent; below each value its interval over videos."
    return Table(head, tuple(rows), "l" + "r" * (len(head) - 1), f"Classes of {kind}", caption)


def _levels(grid: Grid) -> list[str]:
    return list(dict.fromkeys(column.level for column in grid.columns))


def _sizes(grid: Grid, row: str) -> list[str]:
    """How much truth a class has at each level."""
    found = []
    for level in _levels(grid):
        column = next(column for column in grid.columns if column.level == level)
        found.append(count(grid.cells[row, column].n) if (row, column) in grid.cells else "–")
    return found


def _counted(level: str) -> str:
    return {results.FRAME: "true boxes", results.VIDEO: "true tubes"}.get(level, "true frames")


def _pictures(grid: Grid, panels: Mapping[str, Sequence[Panel]], strips: Sequence[Strip]) -> list[Picture]:
    rows = [
        Estimate(kind, value.value, value.low, value.high, value.n, column.words, value.reason)
        for column in results.headline(grid.columns)
        for kind in grid.rows
        if (value := grid.cells.get((kind, column))) is not None
    ]
    found = []
    if rows:
        measured = "mean average precision in per cent"
        found.append(estimates(rows, measured, title="Mean average precision by kind", counted="classes"))
    found += [class_curves(held, kind=kind) for kind, held in panels.items() if held]
    return found + ([film(strips)] if strips else [])


def _says(grid: Grid, summary: pl.DataFrame, model: str) -> list[str]:
    """The headline of each kind in a sentence."""
    columns = results.headline(grid.columns)
    said = []
    for kind in grid.rows:
        values = [(column, grid.cells.get((kind, column))) for column in columns]
        told = [f"{_in_words(value)} ({column.words})" for column, value in values if _defined(value)]
        if told:
            said.append(sentence(f"{model}: mean average precision of {kind} is {', '.join(told)}."))
    action = results.means(summary, levels=(results.AV,))
    said += [
        sentence(f"{model}: mean average precision of the vehicle's action is {_in_words(value)}.")
        for value in action.cells.values()
        if _defined(value)
    ]
    return said


def _defined(value: Value | None) -> bool:
    return value is not None and value.value is not None


def _in_words(value: Value | None) -> str:
    if value is None or value.value is None:
        return "undefined"
    ends = "" if value.low is None or value.high is None else f", {_ends(value)}"
    return f"{number(100 * value.value, 1)} %{ends}"


def _cell(value: Value | None) -> Cell:
    if value is None:
        return "–"
    if value.value is None:
        return Mark("undefined", "mute", value.reason or "")
    shown = number(100 * value.value, 2)
    return shown if value.low is None or value.high is None else Mark(shown, "", _ends(value))


def _ends(value: Value) -> str:
    return f"{number(_times(value.low), 1)} to {number(_times(value.high), 1)}"


def _compared(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    tone = {"better": "good", "worse": "bad"}.get(row["verdict"], "")
    low, high = _times(row["low_video"]), _times(row["high_video"])
    ends = "–" if low is None or high is None else f"{number(low, 2)} to {number(high, 2)}"
    values = (number(_times(row["a"]), 2), number(_times(row["b"]), 2), signed(_times(row["difference"]), 2))
    return (row["metric"], *values, ends, Mark(row["verdict"], tone))


def _times(value: float | None) -> float | None:
    return None if value is None else 100 * value
