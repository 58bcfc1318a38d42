"""Mutants of recipes, files of weights, predictors and model folders, in processes that are watched."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

import model_mutants
import watched_models

from benchmarks.fuzzing import Target


def fates(target: str, count: int, seed: int = 0) -> Counter[str]:
    """How so many mutants ended; those that ended as none may are told on the way.

    Args:
        target: of `model_mutants`.
        count: of mutants.
        seed: of all.
    """
    with tempfile.TemporaryDirectory() as scratch:
        ended, faults = watched_models.run(target, Path(scratch), range(count), seed)
    for fault in faults:
        print(fault, file=sys.stderr)
    return ended


TARGETS = tuple(
    Target(
        name,
        partial(fates, name),
        promise="0 other exceptions, processes, sockets, foreign files, crashes or hangs",
    )
    for name in model_mutants.TARGETS
)
