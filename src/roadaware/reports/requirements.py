"""Violations of logical requirements as text and as blocks of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roadaware.reports import terminal
from roadaware.reports.page import Block, Mark, Points, Table, TableCell
from roadaware.reports.text import clip_label, format_count, format_interval, format_number

Row = Mapping[str, Any]
_HEADLINE = 0.5
_MOST, _WIDTH = 15, 72
"""Requirements and classes that a terminal shows; page and JSON have all of them."""


def format_violations(found: Mapping[str, Any] | None, *, intervals: bool) -> str:
    """Violations by threshold, and by requirement and class at the headline threshold; nothing where none were judged.

    Args:
        found: as `RequirementResult.to_dict` has it.
        intervals: whether they were asked for.
    """
    if not found:
        return ""
    heading = f"requirements of {terminal.format_cell(found['file'])}: {found['judged']} judged"
    parts = ["\n".join([heading, *map(terminal.format_cell, found["notes"])])]
    for level in _list_levels(found):
        rows = []
        for threshold in _list_thresholds(found):
            of = {row["metric"]: row for row in _select(found, level, threshold) if row["name"] is None}
            share = _format_text_share(of["violating"], intervals)
            mean = of["violations"]["value"]
            broken = f"{of['requirements_violated']['count']} of {found['judged']}"
            items = format_count(of["violating"]["n"])
            rows.append([f"{threshold:g}", items, share, terminal.format_number(mean, 2), broken])
        head = [
            "threshold",
            level,
            "that violate, %",
            f"violations a {level[:-1] if level == 'tubes' else 'box'}",
        ]
        parts.append(terminal.format_table([*head, "requirements violated"], rows))
    at = get_headline_threshold(found)
    for level in _list_levels(found):
        for metric, name in (("clause", "requirement"), ("label", "predicted")):
            held = sorted(
                (row for row in _select(found, level, at) if row["metric"] == metric and row["count"]),
                key=lambda row: -row["count"],
            )
            rows = [
                [
                    clip_label(_name(found, row), _WIDTH),
                    format_count(row["count"]),
                    _format_text_share(row, intervals),
                ]
                for row in held[:_MOST]
            ]
            if rows:
                table = terminal.format_table([f"{name}, at {at:g}", level, "%"], rows)
                more = (
                    f"\n... and {len(held) - _MOST} more; --json lists all of them"
                    if len(held) > _MOST
                    else ""
                )
                parts.append(table + more)
    return "\n\n".join(parts)


def _format_text_share(row: Row, intervals: bool) -> str:
    if row["value"] is None:
        return "-"
    shown = terminal.format_number(100 * row["value"], 2)
    if not intervals or row["low"] is None or row["high"] is None:
        return shown
    return f"{shown} {terminal.format_interval(100 * row['low'], 100 * row['high'], 1, row['caution'])}"


def get_headline_threshold(found: Mapping[str, Any]) -> float:
    """The threshold whose requirements and classes are listed: 0.5, or the middle one where that was not judged."""
    thresholds = _list_thresholds(found)
    return _HEADLINE if _HEADLINE in thresholds else thresholds[len(thresholds) // 2]


def build_violation_blocks(found: Mapping[str, Any]) -> list[Block]:
    """Tables of violations: by threshold, then at the headline threshold by requirement and by class.

    Args:
        found: as `RequirementResult.to_dict` has it.
    """
    levels, at = _list_levels(found), get_headline_threshold(found)
    rows: list[tuple[TableCell, ...]] = []
    for threshold in _list_thresholds(found):
        cells: list[TableCell] = [f"{threshold:g}"]
        for level in levels:
            of = {row["metric"]: row for row in _select(found, level, threshold) if row["name"] is None}
            mean = of["violations"]["value"]
            cells += [format_count(of["violating"]["n"]), _share(of["violating"])]
            cells += [
                "–" if mean is None else format_number(mean, 2),
                str(of["requirements_violated"]["count"]),
            ]
        rows.append(tuple(cells))
    head = [
        title
        for level in levels
        for title in (level, f"{level} that violate, %", "violations each", "requirements violated")
    ]
    caption = (
        f"A label counts where its score is at least the threshold, a box where its own score is. {found['judged']} of "
        f"{found['requirements']} requirements of {found['file']} are judged."
    )
    title = "Violations of requirements"
    blocks: list[Block] = [
        Table(("threshold", *head), tuple(rows), "l" + "r" * len(head), title, caption),
    ]
    if found["notes"]:
        blocks.append(Points(tuple(found["notes"])))
    for level in levels:
        for metric, name in (("clause", "requirement"), ("label", "predicted")):
            held = [row for row in _select(found, level, at) if row["metric"] == metric and row["count"]]
            if held:
                blocks.append(
                    _build_table(found, level, name, at, sorted(held, key=lambda row: -row["count"]))
                )
    return blocks


def _build_table(found: Mapping[str, Any], level: str, name: str, at: float, held: Sequence[Row]) -> Table:
    """Violations of one level by requirement or by class."""
    rows = tuple((_name(found, row), format_count(row["count"]), _share(row)) for row in held)
    what = "requirement" if name == "requirement" else "class"
    caption = (
        f"Share of all {level} that violate it."
        if name == "requirement"
        else f"Share of the {level} with this label that violate some requirement."
    )
    title = f"Violations by {what}: {level} at {at:g}"
    return Table((name, level, "share, %"), rows, "lrr", title, caption)


def _share(row: Row) -> TableCell:
    if row["value"] is None:
        return Mark("undefined", "mute", "there are none")
    shown = format_number(100 * row["value"], 2)
    if row["low"] is None or row["high"] is None:
        return shown
    return Mark(shown, "", format_interval(100 * row["low"], 100 * row["high"], 1, row["caution"]))


def _name(found: Mapping[str, Any], row: Row) -> str:
    """A requirement in words with its place, or a label."""
    if row["metric"] != "clause":
        return str(row["name"])
    clause = found["clauses"][row["name"]]
    return f"line {clause['place'].rpartition(':')[2]}: {clause['words']}"


def _select(found: Mapping[str, Any], level: str, threshold: float) -> list[Row]:
    return [row for row in found["rows"] if row["level"] == level and row["threshold"] == threshold]


def _list_levels(found: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(row["level"] for row in found["rows"]))


def _list_thresholds(found: Mapping[str, Any]) -> list[float]:
    return sorted({row["threshold"] for row in found["rows"]})
