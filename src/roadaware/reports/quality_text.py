"""The result of a check of annotations as the text that the command prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.reports import terminal
from roadaware.reports.quality import format_item_name

if TYPE_CHECKING:
    from roadaware.analysis.quality import Quality


_SHOWN = 20


def format_quality(found: Quality) -> str:
    """The result for a terminal: items by status, findings by rule, the first of them, agreement."""

    summary = found.summary()
    columns = ("items", "pass", "fail", "disputed")
    rows = [["all", *(summary[name] for name in columns)]]
    rows += [[what, *(held[name] for name in columns)] for what, held in summary["by_kind"].items()]
    parts = [terminal.format_table(["what", "in all", "pass", "fail", "disputed"], rows)]
    if summary["by_rule"]:
        parts.append(terminal.format_table(["rule", "items"], summary["by_rule"].items()))
    wrong = found.items.filter(pl.col("status") != "pass")
    parts.append(_first(wrong.head(_SHOWN).to_dicts(), len(wrong)))
    parts += [_agreement(found), *_notes(found)]
    return "\n\n".join(part for part in parts if part)


def _first(rows: list[dict[str, Any]], count: int) -> str:

    lines = []
    for row in rows:
        mark = "bad" if row["status"] == "fail" else "odd"
        lines.append(
            terminal.apply_style(f"{row['status']}: {terminal.format_cell(format_item_name(row))}", mark)
        )
        lines += [f"    {terminal.format_cell(reason)}" for reason in row["reasons"]]
    if count > len(rows):
        lines.append(f"... and {count - len(rows):,} more; --html, -o and --json show them")
    return "\n".join(lines)


def _agreement(found: Quality) -> str:

    whole = found.agreement.filter(pl.col("level") == "all")
    names = ("mean_iou", "share_edges", "share_times", "mean_start", "mean_end")
    rows = [
        [row["pair"], *(terminal.format_number(row[name]) for name in names)]
        for row in whole.iter_rows(named=True)
    ]
    header = ["agreement", "mean IoU", "edges within", "times within", "mean start", "mean end"]
    parts = [terminal.format_table(header, rows)]
    labels = found.labels.filter(pl.col("level") == "all")
    if len(labels):
        rows = [
            [
                row["kind"],
                row["pair"],
                row["units"],
                *(terminal.format_number(row[n]) for n in ("equal", "kappa", "alpha")),
            ]
            for row in labels.iter_rows(named=True)
        ]
        parts.append(
            terminal.format_table(["labels", "pair", "items", "equal", "kappa", "alpha"], rows, left=2)
        )
    return "\n\n".join(parts)


def _notes(found: Quality) -> list[str]:
    """What could not be checked, in words."""
    facts = found.facts
    notes = list(facts["hints"])
    if facts["kinds_not_looked_up"]:
        notes.append(f"no dictionary for labels of {', '.join(facts['kinds_not_looked_up'])}")
    if facts["forbidden_words"] is None:
        notes.append("descriptions were not searched: give --forbidden-words")
    if not facts["annotators_known"]:
        notes.append("the files do not say who annotated, so whether reviewers differ is unknown")
    if facts["videos_of_unknown_size"]:
        size = "x".join(map(str, found.config.resolution))
        notes.append(f"{facts['videos_of_unknown_size']} videos of unknown size, taken for {size}")
    if facts["videos_of_unknown_rate"] and found.config.frame_rate is not None:
        notes.append(
            f"{facts['videos_of_unknown_rate']} videos of unknown rate: a frame counts as one of --frames"
        )
    return [terminal.format_bullets(notes)] if notes else []
