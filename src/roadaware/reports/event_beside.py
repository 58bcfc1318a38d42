"""Tables of a report beside the average precision of road events: streaming accuracy, scores by slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roadaware.reports.page import Cell, Mark, Table
from roadaware.reports.text import count, number


def streaming_table(
    columns: Sequence[str], rows: Sequence[tuple[str, Sequence[float | None]]], clock: str
) -> Table:
    """Means of average precision, offline and on the simulated clock beside each other.

    Args:
        columns: what each value is.
        rows: kind and its values in per cent.
        clock: how outputs were timed, in words.
    """
    cells: list[tuple[Cell, ...]] = [
        (kind, *(Mark("undefined", "mute") if value is None else number(value, 2) for value in values))
        for kind, values in rows
    ]
    caption = (
        f"Mean average precision in per cent, {clock}: the truth of each frame is met by the newest output "
        "that was ready by then, and tubes are linked from the frames that were worked on."
    )
    head, align = ("kind", *columns), "l" + "r" * len(columns)
    return Table(head, tuple(cells), align, "Streaming accuracy", caption)


def slice_calibration(level: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """The expected calibration error of each kind in each slice.

    Args:
        level: boxes or tubes.
        rows: with group, kind, claims, mean_score, precision and ece (None without claims).
    """
    cells: list[tuple[Cell, ...]] = [
        (
            row["group"],
            row["kind"],
            count(row["claims"]),
            number(row["mean_score"]),
            number(row["precision"]),
            Mark("undefined", "mute", "no claims") if row["ece"] is None else number(row["ece"]),
        )
        for row in rows
    ]
    head = ("slice", "kind", "claims", "mean score", "share that is right", "expected calibration error")
    caption = "Whether scores can be believed as much in one slice of the videos as in another."
    return Table(head, tuple(cells), "llrrrr", f"Scores of {level} by slice", caption)
