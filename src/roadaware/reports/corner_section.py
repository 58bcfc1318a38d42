"""How well corner cases were detected, as a section of a report: groups, slices, classes, printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roadaware.analysis.corner_numbers import (
    CLAIMS,
    class_lines,
    columns_of,
    lines_of,
    plain_facts,
    printed_ends,
    printed_lines,
    reasons_of,
    slice_header,
    slice_lines,
)
from roadaware.metrics.corner_cases.config import GROUPS
from roadaware.metrics.judged import SceneResult
from roadaware.reports.configs import config_line, config_table
from roadaware.reports.page import Block, Cell, Facts, Mark, Note, Pictures, Section, Table, below_values
from roadaware.reports.picture import Picture
from roadaware.reports.scene_section import class_pictures
from roadaware.reports.text import count, number, row_interval, said, sentence, words

_DIGITS = 4
_AS = "As fractions"
_PRINTED = "What the paper prints of other detectors, as fractions, on CODA's own pictures: tables "


def corner_section(
    result: SceneResult,
    *,
    title: str,
    model: str = "the claims",
    about: Mapping[str, str] | None = None,
    printed: Sequence[Mapping[str, Any]] = (),
    pictures: Sequence[Picture] = (),
) -> Section:
    """One evaluation on corner cases.

    Args:
        result: what `evaluate` gave.
        title: heading of the section.
        model: what the model is called in sentences.
        about: what else the reader should know, such as truth, digests, draws.
        printed: rows to stand beside, as `protocols.printed_coda.beside` gives them.
        pictures: drawn after the tables.
    """
    named = [(words(name), said(value)) for name, value in plain_facts(result).items()]
    facts = [*(about or {}).items(), *named, ("metrics", config_line(result.config))]
    blocks: list[Block] = [Facts(tuple(facts)), _groups(result, model)]
    blocks += [_slices(result)] if result.groups else []
    blocks += [Note(note, "doubt") for note in result.notes]
    drawn = [*class_pictures(result, "class"), *pictures]
    blocks += [Pictures(tuple(drawn), "Pictures")] if drawn else []
    blocks += _classes(result)
    blocks += _printed(result, list(map(dict, printed)), model)
    blocks += [
        Note(f"Undefined: {', '.join(names)}: {why}.", "mute") for why, names in reasons_of(result).items()
    ]
    blocks.append(config_table(result.config, "Metric configuration"))
    return Section(title, tuple(_says(result, model)), tuple(blocks))


def _groups(result: SceneResult, model: str) -> Table:
    """Each group with the claims and the trivial answers."""
    columns = columns_of(result)
    rows: list[tuple[Cell, ...]] = []
    last = ""
    for line in lines_of(result):
        if line.group != last:
            rows.append((sentence(f"{line.group}: {GROUPS[line.group]}"),))
            last = line.group
        name = model if line.answer == CLAIMS else line.answer
        rows.append((name, *(_cell(line.rows[heading]) for heading in columns)))
    head = ("answer", *columns)
    return Table(
        head, tuple(rows), "l" + "r" * len(columns), "Average recall", below_values(rows, _AS, "videos")
    )


def _slices(result: SceneResult) -> Table:
    head = ("slice", "pictures", *slice_header(result))
    rows = [
        (name, count(pictures), *(_cell(cell) for cell in cells))
        for name, pictures, cells in slice_lines(result)
    ]
    return Table(head, tuple(rows), "l" + "r" * (len(head) - 1), "Slices", below_values(rows, _AS, "videos"))


def _classes(result: SceneResult) -> list[Block]:
    """Classes and super-classes with their objects and recall in each group, and which have none."""
    groups, metrics, lines = class_lines(result)
    known = [line for line in lines if any(row is not None and row["valid"] for row in line[2])]
    blocks: list[Block] = []
    if known:
        head = ("class", *(f"{group} objects" for group in groups), *metrics)
        rows = [
            (label, *(Mark("–", "mute") if n is None else count(n) for n in counts), *map(_cell, found))
            for label, counts, found in known
        ]
        read = below_values(rows, _AS, "videos")
        blocks.append(Table(head, tuple(rows), "l" + "r" * (len(head) - 1), "By class", read))
    absent = [label for label, *_ in lines if label not in {line[0] for line in known}]
    return blocks + ([Note(f"Undefined: {', '.join(absent)}.", "mute")] if absent else [])


def _printed(result: SceneResult, printed: list[dict[str, Any]], model: str) -> list[Block]:
    """The printed rows, and why some of their numbers are doubtful."""
    ends = printed_ends(result, printed)
    if not ends:
        return []
    rows = [
        (model if name == CLAIMS else name, *(number(value, 3) for value in values))
        for name, values in printed_lines(result, printed)
    ]
    tables = ", ".join(dict.fromkeys(row["table"] for row in printed))
    head = ("detector", *ends)
    table = Table(head, tuple(rows), "l" + "r" * len(ends), "Beside print", f"{_PRINTED}{tables}.")
    notes = [
        Note(sentence(f"{row['row']}, {row['trained_on']}, {metric}: {why}."), "mute")
        for row in printed
        for metric, why in row.get("doubts", {}).items()
    ]
    return [table, *notes]


def _says(result: SceneResult, model: str) -> list[str]:
    """The recall of each group in a sentence, beside the trivial ones."""
    found = []
    lines = lines_of(result)
    for group in dict.fromkeys(line.group for line in lines):
        rows = {line.answer: line.rows.get("AR") for line in lines if line.group == group}
        own = rows.pop(CLAIMS)
        if not own or own["value"] is None:
            continue
        beside = ", ".join(f"{name} {number(row['value'])}" for name, row in rows.items() if row)
        told = f"{model}: {group} AR {number(own['value'])}"
        if own.get("low_video") is not None:
            told += f" ({row_interval(own, 'video')})"
        found.append(sentence(f"{told}; {beside}." if beside else f"{told}."))
    totals = [row for row in result.whole() if row["metric"] == "total" and row["valid"]]
    beside = "".join(f"; {name} {number(values.get('total'))}" for name, values in result.baselines.items())
    return found + [
        f"The four numbers of the challenge of 2022 add up to {number(row['value'])}{beside}."
        for row in totals
    ]


def _cell(row: Mapping[str, Any] | None) -> Cell:
    if row is None or row["value"] is None:
        return Mark("–", "mute")
    shown = number(row["value"], _DIGITS)
    if row.get("low_video") is None:
        return shown
    return Mark(shown, "", row_interval(row, "video"))
