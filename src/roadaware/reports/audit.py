"""What is wrong with a data set or a protocol, as a section of a report: findings, reasons, examples."""

from __future__ import annotations

from collections.abc import Iterator

from roadaware.analysis.audit import Audit, Example, Finding
from roadaware.analysis.audit.findings import SEVERITIES
from roadaware.reports.bars import Share, shares
from roadaware.reports.configs import config_line
from roadaware.reports.page import Block, Cell, Facts, Mark, Note, Pictures, Section, Table
from roadaware.reports.text import count, number, percent, words

TONES = {"serious": "bad", "warning": "doubt", "note": "fair"}
MEANINGS = {
    "serious": "a published number means something else than it seems to",
    "warning": "some rows are wrong or unsure",
    "note": "worth knowing",
}


def audit_section(audit: Audit, *, title: str | None = None) -> Section:
    """Every finding with its share, reason, advice, numbers and examples; then what was not found.

    Args:
        audit: what `audit` gave.
        title: heading; the data set's name where not given.
    """
    blocks: list[Block] = [Facts((("samples by", config_line(audit.protocol)),))]
    if audit.findings:
        drawn = shares([Share(_name(found), found.count, found.out_of) for found in audit.findings])
        blocks += [Pictures((drawn,)), _overview(audit)]
    for finding in audit.findings:
        blocks.extend(_finding(finding))
    blocks.extend(_rest(audit))
    return Section(title or f"Audit of {audit.dataset}", tuple(_says(audit)), tuple(blocks))


def _name(finding: Finding) -> str:
    return _spoken(finding.name)


def _spoken(name: str) -> str:
    return words(name.replace("-", "_"))


def _overview(audit: Audit) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for severity in SEVERITIES:
        held = audit.of_severity(severity)
        if held:
            rows.append((f"{severity}: {MEANINGS[severity]}",))
        for found in held:
            mark = Mark(percent(found.count, found.out_of), TONES[severity])
            rows.append((_name(found), count(found.count), count(found.out_of), mark))
    return Table(("finding", "found", "of", "share"), tuple(rows), "lrrr", "All findings")


def _finding(finding: Finding) -> Iterator[Block]:
    """One finding in full."""
    heading = f"{_name(finding)} ({finding.severity})"
    yield Note(finding.sentence, TONES[finding.severity], heading[:1].upper() + heading[1:])
    facts = [("why it matters", finding.why), ("what to do", finding.advice)]
    facts += [(words(name), _value(value)) for name, value in finding.measures.items()]
    yield Facts(tuple(facts))
    if finding.table is not None:
        rows = tuple(tuple(_value(value) for value in row) for row in finding.table.rows)
        numeric = [
            all(value is None or isinstance(value, int | float) for value in column)
            for column in zip(*finding.table.rows, strict=True)
        ] or [False] * len(finding.table.columns)
        align = "".join("r" if is_number and place else "l" for place, is_number in enumerate(numeric))
        yield Table(tuple(map(words, finding.table.columns)), rows, align)
    if finding.examples:
        yield _examples(finding.examples)


def _examples(examples: tuple[Example, ...]) -> Table:
    """The places to look at, with the columns in which something stands."""
    columns = {
        "video": [one.video for one in examples],
        "pedestrian": [one.pedestrian for one in examples],
        "frame": [None if one.frame is None else str(one.frame) for one in examples],
        "what is there": [one.note or None for one in examples],
    }
    held = {name: values for name, values in columns.items() if any(values)}
    rows = tuple(tuple(value or "–" for value in row) for row in zip(*held.values(), strict=True))
    align = "".join("r" if name == "frame" else "l" for name in held)
    return Table(tuple(held), rows, align, "Examples")


def _rest(audit: Audit) -> Iterator[Block]:
    facts = []
    if audit.passed:
        facts.append(("checked, nothing found", ", ".join(map(_spoken, audit.passed))))
    facts += [(f"not checked: {_spoken(name)}", why) for name, why in audit.skipped.items()]
    if facts:
        yield Facts(tuple(facts), "Other checks")


def _says(audit: Audit) -> Iterator[str]:
    for finding in audit.of_severity("serious"):
        yield finding.sentence
    others = [f"{len(audit.of_severity(s))} {s}s" for s in ("warning", "note") if audit.of_severity(s)]
    if others:
        yield f"Less serious: {' and '.join(others)}."
    if not audit.findings:
        yield f"{len(audit.passed)} checks found nothing wrong with {audit.dataset}."


def _value(value: str | int | float | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    return number(value) if isinstance(value, float) else value
