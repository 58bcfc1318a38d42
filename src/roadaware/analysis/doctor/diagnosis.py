"""What a check found: in words, with the evidence and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["wrong", "suspicious", "note"]


@dataclass(frozen=True)
class Diagnosis:
    """One finding.

    Args:
        code: short name of the cause.
        severity: wrong (numbers will be meaningless), suspicious (probably), note (good to know).
        says: what is the matter.
        evidence: the values that say so.
        remedy: what to do.
    """

    code: str
    severity: Severity
    says: str
    evidence: str
    remedy: str


def wrong(code: str, says: str, evidence: str, remedy: str) -> list[Diagnosis]:
    """A single finding that makes numbers meaningless."""
    return [Diagnosis(code, "wrong", says, evidence, remedy)]


def suspicious(code: str, says: str, evidence: str, remedy: str) -> list[Diagnosis]:
    """A single finding that probably is a mistake."""
    return [Diagnosis(code, "suspicious", says, evidence, remedy)]


def note(code: str, says: str, evidence: str, remedy: str) -> list[Diagnosis]:
    """A single finding that is good to know."""
    return [Diagnosis(code, "note", says, evidence, remedy)]
