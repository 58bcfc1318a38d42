"""How far one driver goes: `python -m benchmarks.scale_growth measure|check|grow [--figure PATH]`.

`measure` takes what the driver of a run does per part and per worker, in seconds of its processor: the scheduler itself with
workers that answer at once, and waiting on the lines of many processes. `grow` is a discrete-event simulation of the loop of
`roadaware.io.parallel.WorkerPool` with such costs: one driver, workers that take part after part, deaths, starts. `check`
holds it against runs of processes that sleep, which take no processor, so that other work of the machine disturbs little.
"""

from __future__ import annotations

import argparse
import heapq
import importlib.util
import io
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
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
def _begin_part(
    now: float, tries: int, mean_s: float, spread: float, lives_s: float, rng: np.random.Generator
) -> tuple[float, int, int]:
    """When what will be heard of a part, and how often it was begun: 1 it is done, 2 its worker died."""
    takes = mean_s * np.exp(spread * rng.standard_normal() - spread * spread / 2)
    lives = rng.exponential(lives_s) if lives_s > 0 else np.inf
    return (now + lives, 2, tries) if lives < takes else (now + takes, 1, tries)


@numba.njit(cache=False)
def _simulate(
    parts: int,
    workers: int,
    mean_s: float,
    spread: float,
    lives_s: float,
    costs: Floats,
    rng: np.random.Generator,
) -> tuple[float, float, float, int, int]:
    part_s, scan_s, file_s, start_s, ready_s = costs
    now = busy = worked = 0.0
    fresh = left = parts
    alive = idle = deaths = failed = 0
    # How often parts that wait to be begun again were begun; typed by an entry that goes.
    again = [0]
    again.pop()
    # When what will be heard: 0 a worker is ready, 1 a part is done, 2 a worker died; and how often its part was begun.
    heard = [(0.0, 0, 0)]
    heard.pop()
    while left > 0:
        # As the loop of the pool: start who is missing, give parts to who is idle, wait for whom there is news of.
        began = now
        while alive < min(workers, left):
            now += start_s
            heapq.heappush(heard, (now + ready_s, 0, 0))
            alive += 1
        while idle > 0 and (len(again) > 0 or fresh > 0):
            idle -= 1
            tries = 1
            if len(again) > 0:
                tries += again.pop()
            else:
                fresh -= 1
            now += part_s / 2
            begun = _begin_part(now, tries, mean_s, spread, lives_s, rng)
            worked += begun[0] - now if begun[1] == 1 else 0.0
            heapq.heappush(heard, begun)
        now += scan_s * alive
        busy += now - began
        now = max(now, heard[0][0])
        began = now
        # Whoever replies meanwhile is heard next time.
        while len(heard) > 0 and heard[0][0] <= began:
            _, what, tries = heapq.heappop(heard)
            if what == 0:
                idle += 1
                continue
            now += part_s / 2
            if what == 1:
                left -= 1
                idle += 1
                # The next part is sent before the result is taken.
                if len(again) > 0 or fresh > 0:
                    idle -= 1
                    tries = 1
                    if len(again) > 0:
                        tries += again.pop()
                    else:
                        fresh -= 1
                    now += part_s / 2
                    begun = _begin_part(now, tries, mean_s, spread, lives_s, rng)
                    worked += begun[0] - now if begun[1] == 1 else 0.0
                    heapq.heappush(heard, begun)
                now += file_s
                continue
            deaths += 1
            alive -= 1
            if tries < 3:
                again.append(tries)
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
    return Grown(*_simulate(parts, workers, mean_s, spread, lives_s, line, np.random.default_rng(seed)))


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


def measure_lines(workers: int, turns: int = 300) -> float:
    """Seconds of processor that it takes to wait on the lines of so many processes once, of which one has news."""
    pairs = [multiprocessing.Pipe() for _ in range(workers)]
    try:
        lines = [line for line, _ in pairs]
        began_s = time.process_time()
        for turn in range(turns):
            pairs[turn % workers][1].send(turn)
            assert wait_connections(lines) == [lines[turn % workers]]
            assert lines[turn % workers].recv() == turn
        return (time.process_time() - began_s) / turns
    finally:
        for pair in pairs:
            for line in pair:
                line.close()


def measure_ray(counts: Sequence[int], turns: int = 50) -> list[float]:
    """Seconds of the driver's processor to call an actor of Ray, wait and get while so many other calls are open, for each.

    Args:
        counts: of other calls.
        turns: of which this is the mean.
    """
    ray = parallel._connect_ray(Workers("ray://local"))

    class Sleeper:
        def sleep(self, seconds: float) -> None:
            time.sleep(seconds)

    kind = ray.remote(num_cpus=0)(Sleeper)
    prompt, found = kind.remote(), []
    for count in counts:
        busy = kind.remote()
        # The first sleeps, the others wait for it: all are open.
        pending = [busy.sleep.remote(3600.0) for _ in range(count)]
        ray.get([prompt.sleep.remote(0.0) for _ in range(turns)])
        began_s = time.process_time()
        for _ in range(turns):
            held = [*pending, prompt.sleep.remote(0.0)]
            ray.wait(held, num_returns=1, timeout=60)
            ready, _ = ray.wait(held, num_returns=len(held), timeout=0)
            ray.get(ready)
        found.append((time.process_time() - began_s) / turns)
        ray.kill(busy)
    ray.shutdown()
    return found


def measure() -> None:
    """Print a line of JSON for each number of workers."""
    # Each line is two files.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
    for workers in (1, 10, 100, 1000):
        row = {
            "workers": workers,
            "scheduler_us_a_part": 1e6 * measure_scheduler(workers, max(2000, 4 * workers)),
            "lines_us_a_wait": 1e6 * measure_lines(workers),
        }
        print(json.dumps(row), flush=True)
    if importlib.util.find_spec("ray") is not None:
        counts = (1, 10, 100, 1000)
        for count, cost_s in zip(counts, measure_ray(counts), strict=True):
            print(json.dumps({"workers": count, "ray_us_a_part": 1e6 * cost_s}), flush=True)


# What is checked: runs of processes that sleep.


def sleep_part(sleep_s: float) -> float:
    """A part that takes so long, and no processor."""
    time.sleep(sleep_s)
    return sleep_s


def check(costs: Costs) -> None:
    """Print how long runs take, and what the simulation says, of drivers that put files and of one that does not."""
    for workers, parts, part_s, file_s in (
        (4, 100, 0.5, 0.0),
        (4, 100, 0.5, 0.05),
        (4, 100, 0.1, 0.05),
        (8, 100, 0.1, 0.05),
    ):
        with closing(WorkerPool(Workers("local", workers))) as pool:
            list(pool.map(sleep_part, [0.0] * 4 * workers))
            began_s = time.perf_counter()
            for _ in pool.map(sleep_part, [part_s] * parts):
                time.sleep(file_s)
            took_s = time.perf_counter() - began_s
        ran = simulate_run(
            parts, workers, replace(costs, file_s=file_s, start_s=0.0, ready_s=0.0), mean_s=part_s, spread=0.0
        )
        row = {"workers": workers, "parts": parts, "part_s": part_s, "file_s": file_s}
        print(
            json.dumps({**row, "took_s": round(took_s, 2), "simulated_s": round(ran.seconds, 2)}), flush=True
        )


# What follows.

RAY = Costs(part_s=0.45e-3, scan_s=2.5e-6)
"""A part as `benchmarks.scale` measured it on Ray; a worker, whenever the driver wakes, by the slower of two runs of
`measure`."""
FILES = 17
"""Of a simulated scene."""
PUT_S, NOTE_S = 0.012, 0.0003
"""Processor of the driver for a file that it puts into a store itself, and for one that a worker has put (docs/scale.md)."""
CASES: dict[str, tuple[Costs, float]] = {
    "parts of 10 s into a folder": (RAY, 10.0),
    "parts of 1 s into a folder": (RAY, 1.0),
    "parts of 0.1 s into a folder": (RAY, 0.1),
    "parts of 10 s, 17 files each, put into a store by workers": (replace(RAY, file_s=FILES * NOTE_S), 10.0),
    "the same, put by the driver": (replace(RAY, file_s=FILES * PUT_S), 10.0),
}


def grow(figure: Path | None) -> None:
    """Print a line of JSON for each case, number of parts and of workers; draw the share of workers that is of use.

    Args:
        figure: an SVG to write; None for none.
    """
    workers = (10, 30, 100, 300, 1000)
    shares: dict[str, list[float]] = {}
    for name, (costs, part_s) in CASES.items():
        for parts in (10_000, 1_000_000, 10_000_000):
            for count in workers if parts == 1_000_000 else (10, 100, 1000):
                # A worker dies once in a hundred hours of work.
                ran = simulate_run(parts, count, costs, mean_s=part_s, lives_s=360_000.0)
                if parts == 1_000_000:
                    shares.setdefault(name, []).append(ran.efficient)
                row = {"case": name, "parts": parts, "workers": count, "hours": ran.seconds / 3600}
                print(json.dumps({**row, **vars(ran)}), flush=True)
    if figure is None:
        return
    fig, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for (name, values), style in zip(shares.items(), ("-", "-", "-", "--", "--"), strict=True):
        axes.plot(workers, [100 * value for value in values], style, marker="o", label=name)
    axes.set(xscale="log", ylim=(0, 102), xlabel="workers", ylabel="share of their time spent on parts, %")
    axes.set_title("A million parts, one driver (simulated with measured costs)", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower left")
    # No date, and names that do not change: the same costs draw the same bytes.
    plt.rcParams["svg.hashsalt"] = "scale"
    buffer = io.BytesIO()
    fig.savefig(buffer, format="svg", metadata={"Date": None})
    write_atomically(figure, buffer.getvalue())


def main() -> None:
    """Run one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("measure", "check", "grow"))
    parser.add_argument("--figure", type=Path, help="of `grow`, an SVG")
    asked = parser.parse_args()
    print(json.dumps({"load_average": os.getloadavg(), "processors": os.cpu_count()}), flush=True)
    if asked.part == "measure":
        measure()
    elif asked.part == "check":
        check(Costs(part_s=0.05e-3, scan_s=2e-6))
    else:
        grow(asked.figure)


if __name__ == "__main__":
    main()
