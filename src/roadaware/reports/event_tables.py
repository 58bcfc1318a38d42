"""Tables of road events for a report: means, groups, classes, printed numbers, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from roadaware.analysis import event_results as results
from roadaware.analysis.event_results import Grid, Value
from roadaware.metrics.tracking import TOTALS, is_fraction
from roadaware.reports.page import Block, Mark, Table, TableCell
from roadaware.reports.text import capitalize_text, format_count, format_interval, format_name, format_number


def build_means_table(grid: Grid) -> Table | None:
    """Kinds by thresholds; None where nothing was judged."""
    if not grid.columns:
        return None
    rows = tuple((kind, *(_cell(value) for value in grid.row(kind))) for kind in grid.rows)
    head = ("kind", *(column.words for column in grid.columns))
    caption = "Mean over classes, in per cent; below each value its interval over videos."
    return Table(head, rows, "l" + "r" * len(grid.columns), "Mean average precision", caption)


def group_tables(summary: pl.DataFrame) -> list[Block]:
    """The headline means of each group, one table for boxes and one for tubes; none without groups."""
    groups = summary["group"].drop_nulls().unique(maintain_order=True).to_list()
    grids = {group: results.select_means(summary, group) for group in groups}
    every = dict.fromkeys(column for grid in grids.values() for column in grid.columns)
    kinds = tuple(dict.fromkeys(kind for grid in grids.values() for kind in grid.rows))
    tables: list[Block] = []
    for column in results.select_headline(tuple(every)):
        rows = tuple(
            (name, *(_cell(grid.cells.get((kind, column)), why=False) for kind in kinds))
            for name, grid in grids.items()
            if column in grid.columns
        )
        title = f"Groups: {column.words}"
        align = "l" + "r" * len(kinds)
        tables.append(Table(("group", *kinds), rows, align, title, "Mean average precision in per cent."))
    return tables


def build_class_ap_table(grid: Grid, kind: str) -> Table:
    """The average precision of each class with ground truth; the others are named below.

    Args:
        grid: the classes of a kind.
        kind: its name.
    """
    rows, absent = [], []
    levels = list(dict.fromkeys(column.level for column in grid.columns))
    for row in grid.rows:
        sizes = [_size(grid, row, level) for level in levels]
        if any(sizes):
            rows.append(
                (row, *(format_count(size) for size in sizes), *(_cell(value) for value in grid.row(row)))
            )
        else:
            absent.append(row)
    head = (
        kind,
        *(
            {results.FRAME: "true boxes", results.VIDEO: "true tubes"}.get(level, "true frames")
            for level in levels
        ),
        *(column.words for column in grid.columns),
    )
    caption = "Average precision in per cent; below each value its interval over videos."
    caption += f" Without truth: {', '.join(absent)}." if absent else ""
    counted = (-1,) * (1 + len(levels)) + tuple(1 + levels.index(column.level) for column in grid.columns)
    return Table(head, tuple(rows), "l" + "r" * (len(head) - 1), f"Classes of {kind}", caption, counted)


def build_printed_table(rows: pl.DataFrame) -> Table:
    """Printed numbers of the paper, its best and its range over models, beside ours.

    Args:
        rows: what `roadaware.protocols.tpami22.match_printed` gave.
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
    cells: list[tuple[TableCell, ...]] = [
        (
            f"{row['kind']} {row['label'] or ''}".strip(),
            results.Column(row["level"], "", row["threshold"] or "").words,
            format_number(row["obtained"], 1),
            format_number(row["printed"], 1),
            f"{row['model']} (Table {row['table']})",
            f"{format_number(row['lowest'], 1)} to {format_number(row['printed'], 1)}",
            format_count(row["n"]),
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


def build_calibration_block(level: str, rows: pl.DataFrame) -> Table:
    """The expected calibration error of each kind.

    Args:
        level: boxes or tubes.
        rows: what `roadaware.metrics.detection.calibration.build_calibration_table` gave.
    """
    kinds = rows.filter(pl.col("group").is_null(), pl.col("label").is_null())
    cells: list[tuple[TableCell, ...]] = [
        (
            row["kind"],
            format_count(row["predictions"]),
            format_number(row["mean_score"]),
            format_number(row["precision"]),
            format_number(row["ece"]) if row["valid"] else Mark("undefined", "mute", "no predictions"),
        )
        for row in kinds.iter_rows(named=True)
    ]
    head = ("kind", "predictions", "mean score", "share that is right", "expected calibration error")
    caption = "Whether a score of 0.9 is right nine times of ten; predictions below 0.05 are left out."
    return Table(head, tuple(cells), "lrrrr", f"Scores of {level}", caption)


def build_tracking_table(found: Mapping[str, Mapping[str, Any]], tracked: str = "") -> Table:
    """How well paths follow tracks: fractions in per cent, counts as they are.

    Args:
        found: metric to `value`, `low`, `high` and `caution`.
        tracked: which boxes of the paths were judged, in words.
    """
    rows: list[tuple[TableCell, ...]] = []
    for name, row in found.items():
        scale, digits = 100 if is_fraction(name) else 1, 0 if name in TOTALS else 2
        value, low, high = (row[key] for key in ("value", "low", "high"))
        if value is None:
            rows.append((format_name(name), Mark("undefined", "mute"), "–"))
            continue
        known = low is not None and high is not None
        ends = format_interval(scale * low, scale * high, 1, row.get("caution")) if known else "–"
        rows.append((format_name(name), format_number(scale * value, digits), ends))
    others = [format_name(name) for name in found if not is_fraction(name)]
    caption = "Whatever their labels; in per cent" + (f" but for {', '.join(others)}." if others else ".")
    caption = f"{caption} {capitalize_text(tracked)}." if tracked else caption
    return Table(("metric", "value", "interval over videos"), tuple(rows), "lrr", "Paths as tracks", caption)


def format_percent_value(value: Value | None) -> str:
    """A value in per cent with its interval, for sentences."""
    if value is None or value.value is None:
        return "undefined"
    ends = "" if value.low is None or value.high is None else f" ({_ends(value)})"
    return f"{format_number(100 * value.value, 1)} %{ends}"


def convert_percent(value: float | None) -> float | None:
    """A fraction in per cent; what is unknown stays so."""
    return None if value is None else 100 * value


def _size(grid: Grid, row: str, level: str) -> int | None:
    """How much ground truth a class has at a level."""
    column = next(column for column in grid.columns if column.level == level)
    return grid.cells[row, column].n if (row, column) in grid.cells else None


def _cell(value: Value | None, *, why: bool = True) -> TableCell:
    if value is None:
        return "–"
    if value.value is None:
        return Mark("undefined", "mute", (value.reason or "") if why else "")
    shown = format_number(100 * value.value, 2)
    return shown if value.low is None or value.high is None else Mark(shown, "", _ends(value))


def _ends(value: Value) -> str:
    return format_interval(convert_percent(value.low), convert_percent(value.high), 1, value.caution)


# Tables of a report beside the average precision of road events: streaming accuracy, scores by slice.


def build_streaming_table(
    columns: Sequence[str], rows: Sequence[tuple[str, Sequence[float | None]]], clock: str
) -> Table:
    """Means of average precision, offline and on the simulated clock beside each other.

    Args:
        columns: what each value is.
        rows: kind and its values in per cent.
        clock: how outputs were timed, in words.
    """
    cells: list[tuple[TableCell, ...]] = [
        (kind, *(Mark("undefined", "mute") if value is None else format_number(value, 2) for value in values))
        for kind, values in rows
    ]
    caption = (
        f"Mean average precision in per cent, {clock}: the truth of each frame is met by the newest output "
        "that was ready by then, and tubes are linked from the frames that were worked on."
    )
    head, align = ("kind", *columns), "l" + "r" * len(columns)
    return Table(head, tuple(cells), align, "Streaming accuracy", caption)


def build_slice_calibration(level: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """The expected calibration error of each kind in each slice.

    Args:
        level: boxes or tubes.
        rows: with group, kind, predictions, mean_score, precision and ece (None without predictions).
    """
    cells: list[tuple[TableCell, ...]] = [
        (
            row["group"],
            row["kind"],
            format_count(row["predictions"]),
            format_number(row["mean_score"]),
            format_number(row["precision"]),
            Mark("undefined", "mute", "no predictions") if row["ece"] is None else format_number(row["ece"]),
        )
        for row in rows
    ]
    head = ("slice", "kind", "predictions", "mean score", "share that is right", "expected calibration error")
    caption = "Whether scores can be believed as much in one slice of the videos as in another."
    return Table(head, tuple(cells), "llrrrr", f"Scores of {level} by slice", caption)
