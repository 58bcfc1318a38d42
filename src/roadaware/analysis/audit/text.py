"""An audit as text for people."""

from __future__ import annotations

import textwrap

from roadaware.analysis.audit.findings import Audit, Example, Finding

_WIDTH = 100


def render(audit: Audit) -> str:
    """The audit as plain text; characters of the data that a terminal would obey are escaped."""
    protocol = audit.protocol
    counts = ", ".join(f"{len(audit.of_severity(s))} {s}" for s in ("serious", "warning", "note"))
    lines = [f"Audit of {_plain(audit.dataset)}, {protocol['task']} by {protocol['type']}: {counts}", ""]
    for finding in audit.findings:
        lines += [*_finding(finding), ""]
    if audit.passed:
        lines += _wrapped(f"Nothing found by: {', '.join(audit.passed)}.", "")
    lines += [f"Not checked: {name} ({_plain(reason)})." for name, reason in audit.skipped.items()]
    return "\n".join(lines).rstrip() + "\n"


def _finding(finding: Finding) -> list[str]:
    lines = _wrapped(f"[{finding.severity}] {finding.name}: {_plain(finding.sentence)}", "")
    lines += _wrapped(f"why: {finding.why}", "    ") + _wrapped(f"do:  {finding.advice}", "    ")
    if finding.table is not None:
        cells = [finding.table.columns, *finding.table.rows]
        text = [[_plain("" if cell is None else str(cell)) for cell in row] for row in cells]
        widths = [max(len(row[k]) for row in text) for k in range(len(finding.table.columns))]
        lines += [
            f"    {'  '.join(cell.ljust(w) for cell, w in zip(row, widths, strict=True))}".rstrip()
            for row in text
        ]
    if finding.measures:
        numbers = ", ".join(f"{name} {_number(value)}" for name, value in finding.measures.items())
        lines += _wrapped(f"numbers: {numbers}", "    ")
    if finding.examples:
        lines += _wrapped("e.g. " + "; ".join(_place(example) for example in finding.examples), "    ")
    return lines


def _number(value: float | int | None) -> str:
    return "undefined" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def _place(example: Example) -> str:
    parts = [example.video, example.pedestrian, None if example.frame is None else f"@{example.frame}"]
    where = " ".join(_plain(part) for part in parts if part is not None)
    return f"{where} ({_plain(example.note)})" if example.note else where


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent + "    ", break_on_hyphens=False
    )


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
