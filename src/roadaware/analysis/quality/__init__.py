"""Whether annotations hold up: limits between rounds, rules of structure, dictionaries, words, agreement."""

from __future__ import annotations

from roadaware.analysis.quality.check import FILES, STATUSES, Quality, check
from roadaware.analysis.quality.config import Dictionary, QualityConfig, chaotic_world
from roadaware.analysis.quality.differences import RULES, ForbiddenWords

__all__ = [
    "FILES",
    "RULES",
    "STATUSES",
    "Dictionary",
    "ForbiddenWords",
    "Quality",
    "QualityConfig",
    "chaotic_world",
    "check",
]
