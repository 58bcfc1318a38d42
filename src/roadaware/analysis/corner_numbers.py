"""Results on corner cases as the tables that compare detectors: groups in rows, recalls in columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roadaware.metrics.corner_cases.config import GROUPS
from roadaware.metrics.corner_cases.evaluate import IN_SLICES
from roadaware.metrics.judged import SceneResult

COLUMNS = {
    "AR": "ar",
    "AR50": "ar50",
    "AR75": "ar75",
    "AR30": "ar30",
    "AR1": "ar1",
    "AR10": "ar10",
    "ARs": "ar_small",
    "ARm": "ar_medium",
    "ARl": "ar_large",
    "AP": "ap",
}
"""Headings of the field to the ends of our metrics' names, at the usual numbers of claims."""
PRINTED = ("AR", "AR50", "AR75", "AR1", "AR10", "ARs", "ARm", "ARl")
CLAIMS = "claims"
_PROPOSALS = {"AR50m": "ar50_medium", "AR50l": "ar50_large", "AR30m": "ar30_medium", "AR30l": "ar30_large"}


@dataclass(frozen=True)
class Line:
    """One answer in one group.

    Args:
        group: what was asked for.
        answer: `claims`, or the name of a trivial answer.
        rows: heading to the metric's row of a summary, or to a row of its `value` alone.
    """

    group: str
    answer: str
    rows: Mapping[str, Mapping[str, Any] | None]


def groups_of(result: SceneResult) -> list[str]:
    """What was asked for, in the order of the result."""
    held = {row["metric"].partition("_")[0] for row in result.whole()}
    return [group for group in result.config["groups"] if group in held and group in GROUPS]


def columns_of(result: SceneResult) -> dict[str, str]:
    """The headings that the result has something to say to."""
    few, some, _ = result.config["max_detections"]
    names = dict(zip(COLUMNS, COLUMNS.values(), strict=True))
    found = {}
    for heading, end in names.items():
        if end in ("ar1", "ar10"):
            number = few if end == "ar1" else some
            heading, end = f"AR{number}", f"ar{number}"
        found[heading] = end
    known = {row["metric"] for row in result.whole() if row["valid"]}
    if not any(f"{group}_ap" in known for group in groups_of(result)):
        found.pop("AP")
    return found


def lines_of(result: SceneResult) -> list[Line]:
    """The claims and the trivial answers, group by group."""
    rows = {row["metric"]: row for row in result.whole()}
    columns = columns_of(result)
    found = []
    for group in groups_of(result):
        held = {heading: rows.get(f"{group}_{end}") for heading, end in columns.items()}
        found.append(Line(group, CLAIMS, held))
        for name, values in result.baselines.items():
            trivial = {
                heading: {"value": values[f"{group}_{end}"]} if f"{group}_{end}" in values else None
                for heading, end in columns.items()
            }
            found.append(Line(group, name, trivial))
    return found


def slice_lines(result: SceneResult) -> list[tuple[str, int, list[Mapping[str, Any] | None]]]:
    """Each slice: its name, its pictures, and for each group the recall of the claims, then trivial ones."""
    sizes = {row["group"]: row["items"] for row in result.counts.iter_rows(named=True)}
    trivial = result.facts.get(IN_SLICES, {})
    found = []
    for name in result.groups:
        rows = {row["metric"]: row for row in result.of_group(name).iter_rows(named=True)}
        cells: list[Mapping[str, Any] | None] = []
        for group in groups_of(result):
            cells.append(rows.get(f"{group}_ar"))
            answers = trivial.get(name, {})
            cells += [{"value": answers.get(which, {}).get(f"{group}_ar")} for which in result.baselines]
        found.append((name, sizes[name], cells))
    return found


def slice_header(result: SceneResult) -> list[str]:
    """The headings over the cells of `slice_lines`."""
    return [
        text for group in groups_of(result) for text in (f"{group} AR", *(f"{b}" for b in result.baselines))
    ]


def printed_lines(result: SceneResult, printed: list[dict[str, Any]]) -> list[tuple[str, list[float | None]]]:
    """What a paper prints, in fractions, under the headings of `printed_ends`; our own values come first."""
    ends = printed_ends(result, printed)
    rows = {row["metric"]: row["value"] for row in result.whole()}
    found: list[tuple[str, list[float | None]]] = [(CLAIMS, [rows.get(end) for end in ends.values()])]
    for row in printed:
        doubt = " (doubtful)" if row.get("doubts") else ""
        values = [row["values"].get(end) for end in ends.values()]
        found.append((f"{row['row']}, {row['trained_on'] or 'not said'}{doubt}", values))
    return found


def printed_ends(result: SceneResult, printed: list[dict[str, Any]]) -> dict[str, str]:
    """Heading to metric, of what is printed about the groups that were judged."""
    said = {metric for row in printed for metric in row["values"]}
    columns = {**{heading: COLUMNS[heading] for heading in PRINTED}, **_PROPOSALS}
    return {
        f"{group} {heading}": f"{group}_{end}"
        for group in groups_of(result)
        for heading, end in columns.items()
        if f"{group}_{end}" in said
    }


def class_lines(
    result: SceneResult,
) -> tuple[list[str], list[str], list[tuple[str, list[int | None], list[Mapping[str, Any] | None]]]]:
    """Classes and super-classes, where a word can be both, with objects of their own in each group.

    Returns:
        the groups that have classes; the metrics; each word with its objects in each of those groups (None
        where it is no class of it) and with its row under each metric.
    """
    held = result.classes()
    metrics = list(dict.fromkeys(metric for rows in held.values() for metric in rows))
    groups = list(dict.fromkeys(metric.partition("_")[0] for metric in metrics))
    found: list[tuple[str, list[int | None], list[Mapping[str, Any] | None]]] = []
    for label, rows in held.items():
        counts = {metric.partition("_")[0]: int(row["n"]) for metric, row in rows.items()}
        found.append((label, [counts.get(group) for group in groups], [rows.get(each) for each in metrics]))
    return groups, metrics, found


def reasons_of(result: SceneResult) -> dict[str, list[str]]:
    """Why metrics of the whole are undefined, with their names."""
    found: dict[str, list[str]] = {}
    for row in result.whole():
        if not row["valid"]:
            found.setdefault(row["reason"] or "undefined", []).append(row["metric"])
    return found


def plain_facts(result: SceneResult) -> dict[str, Any]:
    """The facts that are told line by line."""
    return {name: value for name, value in result.facts.items() if name != IN_SLICES}
