"""How far one driver goes: `python -m benchmarks.scale_growth measure|check|grow [--figure PATH]`.

`measure` takes what the driver of a run does per part and per worker, in seconds of its processor: the scheduler itself with
workers that answer at once, and waiting on the lines of many processes. `grow` is a discrete-event simulation of the loop of
`roadaware.io.parallel.WorkerPool` with such costs: one driver, workers that take part after part, deaths, starts. `check`
holds it against runs of processes that sleep, which take no processor, so that other work of the machine disturbs little.
"""

from __future__ import annotations

import argparse
import heapq
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import wait as wait_connections
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numba
import numpy as np
import numpy.typing as npt

from roadaware.io import parallel
from roadaware.io.files import write_atomically
from roadaware.io.parallel import WorkerPool, Workers

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Costs:
    """What a run costs its driver and its workers, in seconds.

    Args:
        part_s: of the driver's processor for each part: send it, hear of it, take note.
        scan_s: of the driver's processor for each worker, whenever it wakes: wait for all, look for idle ones.
        file_s: of the driver's processor for each part to put its files into a store.
        start_s: of the driver's processor to start a worker.
        ready_s: until a worker that was started is ready.
    """

    part_s: float
    scan_s: float
    file_s: float = 0.0
    start_s: float = 0.02
    ready_s: float = 5.0


@dataclass(frozen=True)
class Grown:
    """What came of a simulated run.

    Args:
        seconds: until the last part was done.
        busy: share of these in which the driver worked.
        efficient: seconds of work on parts that were kept, as a share of workers times seconds.
        deaths: of workers.
        failed: parts whose workers died three times.
    """

    seconds: float
    busy: float
    efficient: float
    deaths: int
    failed: int


@numba.njit(cache=False)
def _simulate(
    parts: int, workers: int, mean_s: float, spread: float, lives_s: float, costs: Floats, seed: int
) -> tuple[float, float, float, int, int]:
    part_s, scan_s, file_s, start_s, ready_s = costs
    np.random.seed(seed)
    now = busy = worked = 0.0
    begun = left = parts
    deaths = failed = 0
    again = [(0, 0)][:0]  # tries, and a place that makes tuples comparable
    # A heap of what will be heard: when, of which worker, what (0 ready, 1 done, 2 died), after how many tries of its part.
    heard = [(0.0, 0, 0, 0)][:0]
    idle = [0][:0]
    alive = 0
    waits = 0.0
    while left > 0:
        began = now
        while alive < min(workers, left):
            now += start_s
            heapq.heappush(heard, (now + ready_s, alive, 0, 0))
            alive += 1
        while len(idle) > 0 and (len(again) > 0 or begun > 0):
            idle.pop()
            tries = 1
            if len(again) > 0:
                tries = again.pop()[0] + 1
            else:
                begun -= 1
            now += part_s / 2
            # Lognormal with the given mean.
            takes = mean_s * np.exp(spread * np.random.normal() - spread * spread / 2)
            until = np.random.exponential(lives_s) if lives_s > 0 else np.inf
            if until < takes:
                heapq.heappush(heard, (now + until, 0, 2, tries))
            else:
                worked += takes
                heapq.heappush(heard, (now + takes, 0, 1, tries))
        now += scan_s * alive
        busy += now - began
        if len(heard) == 0:
            break
        if heard[0][0] > now:
            waits += heard[0][0] - now
            now = heard[0][0]
        began = now
        while len(heard) > 0 and heard[0][0] <= began:
            _, _, what, tries = heapq.heappop(heard)
            if what == 0:
                idle.append(0)
                continue
            now += part_s / 2
            if what == 1:
                now += file_s
                left -= 1
                idle.append(0)
            else:
                deaths += 1
                alive -= 1
                if tries < 3:
                    again.append((tries, 0))
                else:
                    failed += 1
                    left -= 1
        busy += now - began
    return now, busy / now, worked / (workers * now), deaths, failed


def simulate_run(
    parts: int,
    workers: int,
    costs: Costs,
    *,
    mean_s: float = 1.0,
    spread: float = 0.5,
    lives_s: float = 0.0,
    seed: int = 0,
) -> Grown:
    """A run of so many parts on so many workers.

    Args:
        parts, workers: how many.
        costs: of driver and workers.
        mean_s: that a part takes.
        spread: standard deviation of the logarithm of that.
        lives_s: mean time until a worker dies at work; 0 for never.
        seed: of what is drawn.
    """
    line = np.array([costs.part_s, costs.scan_s, costs.file_s, costs.start_s, costs.ready_s])
    return Grown(*_simulate(parts, workers, mean_s, spread, lives_s, line, seed))


# What is measured: the scheduler and the wait, each by itself.


class _Prompt:
    """A worker that has done its part as soon as it has it."""

    def __init__(self, answers: list[tuple[_Prompt, Any]]) -> None:
        self._answers = answers
        answers.append((self, None))

    def send(self, work: Any, part: Any) -> None:
        self._answers.append((self, parallel._Reply(part)))

    def kill(self) -> None:
        """Nothing is left to end."""


class _PromptEngine:
    """Workers that answer at once, one each time the pool waits: what is left is what the scheduler costs."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._answers: list[tuple[_Prompt, Any]] = []

    def share(self, work: Any) -> Any:
        return work

    def start(self) -> _Prompt:
        return _Prompt(self._answers)

    def wait(self, timeout_s: float) -> Sequence[tuple[_Prompt, Any]]:
        # All that are ready at first, so that the crew is whole; then one at a time, the worst case.
        count = 1 if self._answers and self._answers[0][1] is not None else self.size
        heard, self._answers[:] = self._answers[:count], self._answers[count:]
        return heard


def measure_scheduler(workers: int, parts: int) -> float:
    """Seconds of processor that the scheduler takes for a part with so many workers, of which one answers at a time."""
    pool = WorkerPool(Workers("local", workers, limit_s=1e6))
    pool._engine = _PromptEngine(workers)
    with closing(pool):
        began_s = time.process_time()
        assert sum(each.value == each.place for each in pool.map(abs, range(parts))) == parts
        return (time.process_time() - began_s) / parts
