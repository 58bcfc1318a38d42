"""`python -m benchmarks.mutation [GROUP or MODULE ...] [--sample N]`: how many faults the tests find."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.mutation.excuses import EXCUSES
from benchmarks.mutation.groups import GROUPS, Group

ROOT = Path(__file__).parents[2]
LEAST = 0.95


@dataclass
class Outcome:
    """What became of the faults of one module.

    Args:
        total: changes that the module has.
        tried: changes that were tried, without the excused ones.
        killed: those of them that a test found.
        survivors: one line for each of the others.
        stale: excuses that no longer hold: the change is found, or is there no more.
    """

    total: int = 0
    tried: int = 0
    killed: int = 0
    survivors: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)

    def note(self, line: dict[str, Any]) -> None:
        """Count one change."""
        killed = line["fate"] == "killed"
        if line["excused"]:
            self.stale += [line["key"]] * killed
            return
        self.tried += 1
        self.killed += killed
        if not killed:
            self.survivors.append(f"line {line['line']}, {line['key']} ({line['fate']})")


def outcomes(
    group: Group, *, sample: int = 0, seed: int = 0, budget: float = 20.0, verbose: bool = False
) -> dict[str, Outcome]:
    """What became of the faults of each module of a group.

    Args:
        group: modules and the tests that guard them.
        sample: how many changes of each module are tried, chosen by the seed; 0 for all.
        seed: of the choice.
        budget: seconds of tests that one change is tried with, the quick ones first; a tenth where it is excused.
        verbose: whether every change is told on standard error.

    Raises:
        RuntimeError: if the tests cannot be collected.
    """
    request = {
        "modules": [f"roadaware.{name}" for name in group.modules],
        "tests": [f"tests/{name}" for name in group.tests],
        "sample": sample,
        "seed": seed,
        "budget": budget,
        "excused": {f"roadaware.{name}": list(EXCUSES.get(name, {})) for name in group.modules},
    }
    found = {name: Outcome() for name in group.modules}
    for line in _lines(request):
        if verbose:
            print(json.dumps(line), file=sys.stderr, flush=True)
        if "module" not in line:
            continue
        held = found[line["module"].removeprefix("roadaware.")]
        if "changes" in line:
            held.total, held.stale = line["changes"], list(line["missing"])
        else:
            held.note(line)
    return found


def _lines(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.mutation.worker"]
    variables = os.environ | {"PYTHONHASHSEED": "0"}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST"):
        variables.pop(name, None)
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile("w+") as told,
        subprocess.Popen(
            command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=told, text=True, env=variables
        ) as worker,
    ):
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(json.dumps(request))
        worker.stdin.close()
        yield from map(json.loads, worker.stdout)
        if worker.wait():
            told.seek(0)
            raise RuntimeError(f"the tests {request['tests']} could not be run: {told.read()[-3000:]}")


def main() -> int:
    """Print a line for each module and each survivor; 1 if a group is below 95 % or an excuse is stale."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="GROUP or MODULE", help=f"all of {', '.join(GROUPS)}")
    parser.add_argument("--sample", type=int, default=0, help="changes of each module; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    wrong = False
    for name, group in _chosen(parser, options.names).items():
        start = time.perf_counter()
        found = outcomes(group, sample=options.sample, seed=options.seed, verbose=options.verbose)
        for module, held in found.items():
            print(f"{module}: {held.killed} of {held.tried} killed ({held.total} changes)")
            for survivor in held.survivors:
                print(f"    survived: {survivor}")
            for key in held.stale:
                print(f"    excuse to strike out: {key}")
        killed, tried = (sum(getattr(held, what) for held in found.values()) for what in ("killed", "tried"))
        print(f"{name}: {killed} of {tried} killed; {time.perf_counter() - start:.0f} s", flush=True)
        wrong |= killed < LEAST * tried or any(held.stale for held in found.values())
    return int(wrong)


def _chosen(parser: argparse.ArgumentParser, names: list[str]) -> dict[str, Group]:
    """The groups asked for, cut to single modules where one was named."""
    chosen: dict[str, Group] = {}
    for name in names or GROUPS:
        if name in GROUPS:
            chosen[name] = GROUPS[name]
            continue
        holds = [key for key, group in GROUPS.items() if name in group.modules]
        if not holds:
            parser.error(f"no group or module {name}; groups are {', '.join(GROUPS)}")
        chosen[name] = Group((name,), GROUPS[holds[0]].tests)
    return chosen


if __name__ == "__main__":
    sys.exit(main())
