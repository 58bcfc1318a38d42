"""`python -m benchmarks.fuzzing [COUNT] [TARGET ...] [--seed N]`: one line for each target."""

from __future__ import annotations

import argparse
import sys
import time

from benchmarks.fuzzing import all_targets


def main() -> int:
    """Print how the inputs of each target ended; 1 if any ended as none may."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzzing", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="COUNT or TARGET", help="all targets where none is named")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    targets = all_targets()
    names = [word for word in options.words if not word.isdecimal()]
    counts = [int(word) for word in options.words if word.isdecimal()]
    if unknown := [name for name in names if name not in targets]:
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(targets)}")
    wrong = 0
    for target in (targets[name] for name in names or targets):
        count, start = counts[0] if counts else target.count, time.perf_counter()
        ended = target.run(count, options.seed)
        told = ", ".join(f"{number} {fate}" for fate, number in sorted(ended.items()))
        faults = target.faults(ended)
        wrong += sum(faults.values())
        kept = f"BROKEN: {sum(faults.values())} faults" if faults else target.promise
        seconds = time.perf_counter() - start
        print(f"{target.name}: {ended.total()} inputs | {kept} | {told}; {seconds:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
