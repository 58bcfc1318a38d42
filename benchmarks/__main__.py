"""`python -m benchmarks`: one table of what the project promises about speed and memory, measured now."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import (
    copg,
    corner_cases,
    crossing,
    online,
    pedestrians,
    retinanet,
    road,
    scenes,
    simulator,
    tables,
    viewer,
)


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, the bar it must clear, and what came out."""

    what: str
    bar: str
    got: str


def main() -> int:
    """Run every benchmark whose data is at hand, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("ROADAWARE_DATA_DIR"))
    parser.add_argument(
        "--only", default="", help="only those whose name contains this, such as cold or bootstrap"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["ROADAWARE_HOME"] = scratch
        print(f"load {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
        print("| what | bar | measured |\n|---|---|---|")
        for row in _rows(options.data, options.only):
            print(f"| {row.what} | {row.bar} | {row.got} |", flush=True)
    return 0


def _rows(data: Path | None, only: str) -> Iterator[Row]:
    benchmarks: dict[str, Callable[[], tuple[str, str, str]]] = {
        b.__name__: b
        for b in (
            *tables.BENCHMARKS,
            *road.BENCHMARKS,
            *scenes.BENCHMARKS,
            *corner_cases.BENCHMARKS,
            *copg.BENCHMARKS,
            *simulator.BENCHMARKS,
            *retinanet.BENCHMARKS,
            *online.BENCHMARKS,
            *crossing.BENCHMARKS,
            *viewer.BENCHMARKS,
        )
    }
    if data is not None:
        benchmarks |= {
            b.__name__: partial(b, data)
            for b in (*pedestrians.BENCHMARKS, *crossing.ON_DATA, *road.ON_DATA, *copg.ON_DATA)
        }
    else:
        print(
            "no --data and no ROADAWARE_DATA_DIR: benchmarks on real annotations are left out",
            file=sys.stderr,
        )
    for name, benchmark in benchmarks.items():
        if only in name:
            yield Row(*benchmark())


if __name__ == "__main__":
    sys.exit(main())
