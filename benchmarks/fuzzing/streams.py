"""The reader of network streams on mutated answers of cameras, HTTP and RTSP, headers and bodies."""

from __future__ import annotations

import sys
from collections import Counter

import stream_mutants

from benchmarks.fuzzing import Target


def fates(count: int, seed: int = 0) -> Counter[str]:
    """How so many mutants ended; those that ended as none may are told on the way.

    Args:
        count: of mutants.
        seed: of all.
    """
    ended, faults = stream_mutants.run(count, seed)
    for fault in faults:
        print(fault, file=sys.stderr)
    return ended


TARGETS = (
    Target(
        "streams",
        fates,
        promise="0 other exceptions, foreign connections, secrets told, crashes or hangs",
    ),
)
