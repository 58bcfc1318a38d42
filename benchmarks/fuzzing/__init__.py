"""How readers end on mutants of what they read: `python -m benchmarks.fuzzing [COUNT] [TARGET ...]`.

Every module of this folder that has `TARGETS` is found by itself: a new target is one file.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
"""Where the tests make their sets; targets import from there."""
sys.path.insert(0, str(DATA))


@dataclass(frozen=True)
class Target:
    """One kind of input that is mutated.

    Args:
        name: of the target, as on the command line.
        run: takes a number of inputs and a seed; says how many ended how. What must not be raises, or is
            counted under a word of `forbidden`.
        count: of inputs, by default.
        promise: what holds for every input, for the table.
        forbidden: beginnings of the words that no input may end with.
    """

    name: str
    run: Callable[[int, int], Counter[str]]
    count: int = 10_000
    promise: str = "0 other exceptions"
    forbidden: tuple[str, ...] = ("FAULT",)

    def faults(self, ended: Counter[str]) -> dict[str, int]:
        """What must not have happened."""
        return {fate: number for fate, number in ended.items() if fate.startswith(self.forbidden)}


def all_targets() -> dict[str, Target]:
    """Every target by its name, in the order of the names of their modules."""
    found: dict[str, Target] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda each: each.name):
        if not module.name.startswith("_"):
            for target in getattr(importlib.import_module(f"{__name__}.{module.name}"), "TARGETS", ()):
                found[target.name] = target
    return found
