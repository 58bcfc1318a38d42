"""Run a command in its own process and say how long it took and how much memory its process tree held."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psutil


@dataclass(frozen=True)
class Cost:
    """Wall-clock seconds and, for a process, the peak of resident memory summed over its whole tree."""

    seconds: float
    peak_mb: float | None = None


def process(command: Sequence[str], environment: dict[str, str] | None = None) -> Cost:
    """Start `command`, sample its tree every 20 ms until it ends.

    Raises:
        RuntimeError: if it fails; its error output is in the message.
    """
    started = time.perf_counter()
    child = subprocess.Popen(
        list(command), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment, text=True
    )
    tree = psutil.Process(child.pid)
    peak = 0
    while child.poll() is None:
        peak = max(peak, _resident(tree))
        time.sleep(0.02)
    seconds = time.perf_counter() - started
    errors = child.stderr.read() if child.stderr else ""
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}: {errors}")
    return Cost(seconds, peak / 1e6)


def python(code: str, *arguments: str, environment: dict[str, str] | None = None) -> Cost:
    """Run a few lines of Python in a fresh interpreter, start included."""
    return process([sys.executable, "-c", code, *arguments], environment)


def call(function: Callable[[], object], times: int = 5) -> Cost:
    """The best of several calls in this process."""
    best = float("inf")
    for _ in range(times):
        started = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - started)
    return Cost(best)


def _resident(tree: psutil.Process) -> int:
    total = 0
    try:
        members = [tree, *tree.children(recursive=True)]
    except psutil.Error:
        return 0
    for member in members:
        try:
            total += member.memory_info().rss
        except psutil.Error:
            continue
    return total
