"""Diagnosis: the finding of a check in words, with the evidence and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

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


def format_rows(odd: npt.NDArray[np.bool_], values: npt.NDArray[np.float64], most: int = 3) -> str:
    """The first rows that are odd, counted from 1, with what they hold: "row 7 holds 1.1".

    Args:
        odd: (n,) which.
        values: (n,) what each row holds.
        most: how many to name.
    """
    rows = np.flatnonzero(odd)
    lines = [f"row {row + 1} holds {values[row]:g}" for row in rows[:most]]
    return ", ".join(lines) + (", ..." if len(rows) > most else "")


def report_error(code: str, says: str, evidence: str, remedy: str) -> list[Diagnosis]:
    """A single finding that makes numbers meaningless."""
    return [Diagnosis(code, "wrong", says, evidence, remedy)]


def report_suspicion(code: str, says: str, evidence: str, remedy: str) -> list[Diagnosis]:
    """A single finding that probably is a mistake."""
    return [Diagnosis(code, "suspicious", says, evidence, remedy)]


def report_note(code: str, says: str, evidence: str, remedy: str) -> list[Diagnosis]:
    """A single finding that is good to know."""
    return [Diagnosis(code, "note", says, evidence, remedy)]
