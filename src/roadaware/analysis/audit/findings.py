"""What an audit says: findings with counts, places to look at, and what to do about them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["serious", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")
SHOWN = 5


@dataclass(frozen=True)
class Example:
    """One place to look at; what is not known of it is None."""

    video: str | None = None
    pedestrian: str | None = None
    frame: int | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """Numbers behind a finding."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or that changes what a number means.

    Args:
        name: of the check, in kebab-case.
        severity: serious (a published number means something else), warning (some rows are wrong or
            unsure), note (worth knowing).
        count: how many.
        out_of: of how many.
        sentence: what was found, with its numbers.
        why: why it matters.
        advice: what to do.
        table: the numbers by split or by group.
        measures: further numbers by name.
        examples: up to five places, in the order of the data.
    """

    name: str
    severity: Severity
    count: int
    out_of: int
    sentence: str
    why: str
    advice: str
    table: Table | None = None
    measures: dict[str, float | int | None] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class Audit:
    """All that was checked.

    Args:
        dataset: its name.
        protocol: the protocol's config as plain data.
        findings: what is wrong, serious things first.
        passed: checks that found nothing.
        skipped: checks that could not be made, with the reason.
    """

    dataset: str
    protocol: dict[str, Any]
    findings: tuple[Finding, ...]
    passed: tuple[str, ...]
    skipped: dict[str, str]

    def finding(self, name: str) -> Finding | None:
        """The finding of that name, None if the check passed or was skipped."""
        return next((finding for finding in self.findings if finding.name == name), None)

    def of_severity(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity == severity)

    def to_dict(self) -> dict[str, Any]:
        """The audit as JSON-ready data."""
        return {
            "dataset": self.dataset,
            "protocol": self.protocol,
            "counts": {severity: len(self.of_severity(severity)) for severity in SEVERITIES},
            "findings": [asdict(finding) for finding in self.findings],
            "passed": list(self.passed),
            "skipped": dict(self.skipped),
        }
