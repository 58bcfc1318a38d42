"""What was planted into the demo's data set, beside what reader and audit found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from roadaware.cli import text

if TYPE_CHECKING:
    from roadaware.analysis.audit import Audit
    from roadaware.scenes.demo import DemoFacts
    from roadaware.scenes.tables import Scenes

_FOUND_BY = {
    "crossing_without_event": "crosser-without-event",
    "late_event": "event-far-from-tags",
    "attribute_contradiction": "tags-against-attribute",
    "track_gap": "track-gaps",
}
_REFUSED_FOR = {
    "duplicated_box": "second box",
    "inverted_box": "upside down",
    "truncated_file": "not well-formed",
}


@dataclass(frozen=True)
class Check:
    """One kind of defect.

    Args:
        defect: what was planted.
        planted: how often.
        found: how often it was found.
        by: the audit's check, or the reader.
    """

    defect: str
    planted: int
    found: int
    by: str

    def as_dict(self) -> dict[str, Any]:
        """The check, JSON-ready."""
        return asdict(self)


def planted_and_found(facts: DemoFacts, audit: Audit, scenes: Scenes) -> list[Check]:
    """Each kind of defect with both counts.

    Args:
        facts: what was planted.
        audit: of the same data set.
        scenes: as read, with what was refused.
    """
    planted = facts.counts()
    checks = []
    for defect, name in _FOUND_BY.items():
        finding = audit.finding(name)
        checks.append(Check(defect, planted[defect], finding.count if finding else 0, f"audit: {name}"))
    reasons = scenes.rejected["reason"].to_list()
    for defect, words in _REFUSED_FOR.items():
        found = sum(words in reason for reason in reasons)
        checks.append(Check(defect, planted[defect], found, "reader: refused, with the reason"))
    return checks


def findings_text(checks: Sequence[Check]) -> str:
    """The checks as a table."""
    rows = [
        (item.defect, item.by, item.planted, item.found, "ok" if item.planted == item.found else "MISSED")
        for item in checks
    ]
    header = ["planted defect", "found by", "planted", "found", ""]
    return text.table(header, rows, left=2, colour=lambda row: "bad" if row[-1].strip() == "MISSED" else None)
