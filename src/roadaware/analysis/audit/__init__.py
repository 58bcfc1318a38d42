"""Audit: errors in a dataset and in the samples that a protocol cuts from it."""

from __future__ import annotations

from roadaware.analysis.audit.checks import Audit, Example, Finding, Severity, Table
from roadaware.analysis.audit.run import audit, render

__all__ = ["Audit", "Example", "Finding", "Severity", "Table", "audit", "render"]
