"""Mutants of media, recipes, weights, predictors and model folders, in processes that are watched."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

import media_mutants
import model_mutants
import watched_mutants

from benchmarks.fuzzing import Target


def fates(target: str, count: int, seed: int = 0) -> Counter[str]:
    """How so many mutants ended; those that ended as none may are told on the way.

    Args:
        target: of `media_mutants` or `model_mutants`.
        count: of mutants.
        seed: of all.
    """
    with tempfile.TemporaryDirectory() as scratch:
        ended, faults = watched_mutants.run(target, Path(scratch), range(count), seed)
    for fault in faults:
        print(fault, file=sys.stderr)
    return ended


TARGETS = tuple(
    Target(
        name,
        partial(fates, name),
        promise="0 other exceptions, processes, sockets, foreign files, crashes or hangs",
    )
    for name in (*media_mutants.TARGETS, *model_mutants.TARGETS)
)
