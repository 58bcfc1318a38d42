"""`python -m benchmarks.coverage`: the share of 95 % intervals that hold the truth, and how wide they are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.coverage import annotators, people, road, scenes
from benchmarks.coverage.world import Pair, World
from roadaware.statistics.intervals import encode_resample_count

UNITS = (4, 8, 20, 60)


def main() -> int:
    """Simulate all worlds, or those whose name holds a word, and print a table of each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--only", default="", help="worlds whose name contains this")
    parser.add_argument("--repeats", type=int, default=400, help="sets judged for each cell")
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--interval", choices=["jackknife", "percentile"], default="jackknife")
    parser.add_argument("--units", type=int, nargs="+", default=list(UNITS))
    options = parser.parse_args()
    error = 100 * np.sqrt(0.95 * 0.05 / options.repeats)
    print(f"{options.interval}; {options.repeats} sets a cell, binomial error {error:.1f} points at 95 %")
    for world in [*road.worlds(), *people.worlds(), *scenes.worlds(), *annotators.worlds()]:
        if options.only in world.name:
            resamples = encode_resample_count(options.resamples, options.interval)
            for line in table(world, resamples, options.repeats, options.units):
                print(line, flush=True)
    return 0


def table(world: World, resamples: int, repeats: int, sizes: list[int]) -> Iterator[str]:
    """Rows of a world: of each metric the truth, and for each number of units what came of it."""
    every = np.arange(world.units)
    truth = {name: each.value for name, each in world.told(every, 0).items()}
    if world.name.endswith("equal models"):
        truth = dict.fromkeys(truth, 0.0)
    yield f"\n| {world.name} | truth | {' | '.join(f'{n} units' for n in sizes)} |"
    yield "|---" * (len(sizes) + 2) + "|"
    cells: dict[str, list[str]] = {name: [] for name in truth}
    for n in sizes:
        for name, cell in column(world, truth, n, resamples, repeats).items():
            cells[name].append(cell)
    for name, value in truth.items():
        shown = "-" if value is None else f"{value:.3f}"
        yield f"| {name} | {shown} | {' | '.join(cells[name])} |"


def column(
    world: World, truth: dict[str, float | None], n: int, resamples: int, repeats: int
) -> dict[str, str]:
    """Metric to what came of sets of n units: share that hold the truth, median width, share without ends.

    Of pairs: the share of verdicts `better` or `worse` stands behind.
    """
    rng = np.random.default_rng(n)
    held: dict[str, list[bool]] = {name: [] for name in truth}
    width: dict[str, list[float]] = {name: [] for name in truth}
    called: dict[str, int] = dict.fromkeys(truth, 0)
    for _ in range(repeats):
        chosen = np.sort(rng.choice(world.units, n, replace=False))
        if isinstance(world, Pair):
            found = world.compared(chosen, resamples)
            for name, each in found.items():
                called[name] += each.verdict in ("better", "worse")
        told = (
            {name: each[:3] for name, each in found.items()}
            if isinstance(world, Pair)
            else world.told(chosen, resamples)
        )
        for name, (_, low, high) in told.items():
            true = truth.get(name)
            if low is not None and high is not None and true is not None:
                held[name].append(low <= true <= high)
                width[name].append(high - low)
    return {
        name: _cell(held[name], width[name], repeats, called[name] if isinstance(world, Pair) else None)
        for name in truth
    }


def _cell(held: list[bool], width: list[float], repeats: int, called: int | None) -> str:
    if len(held) < 0.1 * repeats:
        return "no interval"
    text = f"{100 * np.mean(held):.1f} ({np.median(width):.2f})"
    if len(held) < repeats:
        text += f" of {100 * len(held) / repeats:.0f} %"
    return text if called is None else f"{text}, called {100 * called / repeats:.1f}"


if __name__ == "__main__":
    sys.exit(main())
