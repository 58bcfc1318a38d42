"""What becomes of work in parts whose workers or driver are killed: `python -m benchmarks.kill_parts [--store URL]`.

A run of small parts is disturbed and given again until it comes to its end; what it has made then must be, byte by byte,
what a run has made that nobody disturbed. Workers are ended by SIGKILL, the driver by SIGKILL, SIGINT and SIGTERM in turn,
at times that are drawn. With a store the driver commits to it, and what is compared is what another machine reads there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from roadaware.errors import FindingsError, Terminated
from roadaware.io.files import write_atomically
from roadaware.io.folders import hold_folder
from roadaware.io.interrupts import handle_interrupts
from roadaware.io.parallel import Workers, run_parts
from roadaware.io.storage import fetch_path, publish

PARTS, PART_S, SEED = 200, 0.02, 23
_SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
_PATIENCE_S = 600.0
"""For so long a driver may begin no part before it counts as hung: a slow disk or a busy machine is no fault."""


def make_part(folder: Path, marks: Path, number: int) -> None:
    """Write a part, whole, after a little sleep; the process says that it is at work."""
    (marks / str(os.getpid())).write_text("")
    time.sleep(PART_S)
    write_atomically(folder / f"{number:06d}.bin", hashlib.sha256(str(number).encode()).digest() * 64)


def drive(target: str, marks: Path, on: str, count: int) -> int:
    """Make the parts that are missing, and write last that all are there; the exit code of a command.

    Args:
        target: a folder, or the address of a store.
        marks: a folder to which workers write their numbers.
        on: where parts are worked on.
        count: of parts.
    """
    try:
        with handle_interrupts(), ExitStack() as stack:
            folder = stack.enter_context(publish(target)) if "://" in target else Path(target)
            stack.enter_context(hold_folder(folder))
            due = [number for number in range(count) if not (folder / f"{number:06d}.bin").is_file()]
            run_parts(partial(make_part, folder, marks), due, Workers(on, 2), what="parts", name=str,
                      done=lambda number, value: None, folder=folder, before=count - len(due))  # fmt: skip
            write_atomically(folder / "whole.json", json.dumps({"parts": count}).encode())
    except FindingsError:
        return 1
    except KeyboardInterrupt:
        return 130
    except Terminated:
        return 143
    return 0


def read_bytes(folder: Path) -> dict[str, bytes]:
    """Every file of a result by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def is_alive(process: int) -> bool:
    """Whether a process is there and no zombie."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


class Driver:
    """A driver in a process of its own.

    Args:
        words: the command.
        env: its environment.
        marks: a folder in which workers note each part that they begin.
    """

    def __init__(self, words: Sequence[str], env: Mapping[str, str], marks: Path) -> None:
        marks.mkdir(exist_ok=True)
        self._marks, self._log, self._began_s = marks, marks.with_name(f"{marks.name}.log"), time.time()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                words, env=env, stderr=log, cwd=Path(__file__).resolve().parents[1]
            )

    def poll(self) -> int | None:
        """The exit code; None while it works.

        Raises:
            AssertionError: if no part was begun for `_PATIENCE_S`; it is ended, and the message says where it was.
        """
        code = self.process.poll()
        newest_s = max((path.stat().st_mtime for path in self._marks.iterdir()), default=0.0)
        if code is None and time.time() - max(newest_s, self._began_s) > _PATIENCE_S:
            self.process.send_signal(signal.SIGABRT)  # its handler of faults writes the stack
            self.process.wait()
            raise AssertionError(f"no part was begun for {_PATIENCE_S:g} s:\n{self._log.read_text()[-4000:]}")
        return code

    def wait(self, limit_s: float = float("inf")) -> int | None:
        """As `poll`, once it has ended or the time is over."""
        ends_s = time.monotonic() + limit_s
        while (code := self.poll()) is None and time.monotonic() < ends_s:
            time.sleep(0.02)
        return code


class Trial:
    """Runs of one kind of kills on one target.

    Args:
        scratch: an empty folder.
        on, store, count: as of the command line.
        seed: of the times that are drawn.
    """

    def __init__(self, scratch: Path, on: str, store: str | None, count: int, seed: int) -> None:
        self.scratch, self.on, self.store, self.count = scratch, on, store, count
        self.random = random.Random(seed)  # noqa: S311
        self.runs = self.kills = self.finished = self.orphans = self.failed = 0

    def target(self) -> str:
        """A new place for a result."""
        name = f"result-{self.runs}"
        return (
            str(self.scratch / name)
            if self.store is None
            else f"{self.store}/{os.getpid()}-{self.scratch.name}-{name}"
        )

    def start(self, target: str, marks: Path) -> Driver:
        """A driver that works on a target."""
        words = [sys.executable, "-X", "faulthandler", "-m", "benchmarks.kill_parts",
                 "--drive", target, str(marks), self.on, str(self.count)]  # fmt: skip
        return Driver(words, {**os.environ, "ROADAWARE_HOME": str(self.scratch / "home")}, marks)

    def compare(self, target: str, expected: dict[str, bytes]) -> None:
        """Count a run that came to its end; its bytes must be those of an undisturbed one."""
        if "://" in target:
            os.environ["ROADAWARE_HOME"] = str(self.scratch / f"reader-{self.runs}")
            found = read_bytes(fetch_path(target))
        else:
            found = read_bytes(Path(target))
        assert found == expected, sorted(set(found) ^ set(expected))[:5]
        self.finished += 1

    def kill_workers(self, kills: int, expected: dict[str, bytes]) -> None:
        """Kill workers until there were so many kills, each run up to its end."""
        while self.kills < kills:
            self.runs += 1
            target, marks = self.target(), self.scratch / f"marks-{self.runs}"
            code: int | None = 1
            while code == 1:
                driver = self.start(target, marks)
                while (code := driver.poll()) is None:
                    time.sleep(self.random.uniform(0.05, 0.5))
                    workers = [int(path.name) for path in marks.iterdir() if is_alive(int(path.name))]
                    if workers and self.kills < kills:
                        with suppress(ProcessLookupError):
                            os.kill(self.random.choice(workers), signal.SIGKILL)
                            self.kills += 1
                self.failed += code == 1
            assert code == 0, code
            self.compare(target, expected)

    def kill_drivers(self, kills: int, expected: dict[str, bytes], longest_s: float) -> None:
        """Kill drivers until there were so many kills; each is given again, and may be killed again."""
        while self.kills < kills:
            self.runs += 1
            target, marks = self.target(), self.scratch / f"marks-{self.runs}"
            while True:
                driver = self.start(target, marks)
                if self.kills < kills and driver.wait(self.random.uniform(0.2, 1.0) * longest_s) is None:
                    driver.process.send_signal(_SIGNALS[self.kills % 3])
                    self.kills += 1
                code = driver.wait()
                if code == 0:
                    break
                assert code in (-9, 130, 143, -2, -15), code
                ends_s = time.monotonic() + 10
                while any(is_alive(int(path.name)) for path in marks.iterdir()) and time.monotonic() < ends_s:
                    time.sleep(0.05)
                self.orphans += sum(is_alive(int(path.name)) for path in marks.iterdir())
            self.compare(target, expected)

    def row(self, what: str) -> dict[str, Any]:
        """What came of it."""
        return {"killed": what, "on": self.on, "store": self.store is not None, "parts": self.count, "kills": self.kills,
                "runs": self.runs, "finished_with_equal_bytes": self.finished, "orphans": self.orphans,
                "ends_with_failed_parts": self.failed}  # fmt: skip


def measure(
    on: str, store: str | None, workers: int, drivers: int, count: int = PARTS
) -> Iterator[dict[str, Any]]:
    """Kill so many workers, then drivers; a row for each, as soon as it is there.

    Args:
        on, store: as of the command line.
        workers, drivers: how often each is killed.
        count: of parts of a run.
    """
    with tempfile.TemporaryDirectory() as made:
        scratch = Path(made)
        calm = Trial(scratch, on, None, count, SEED)
        began_s = time.monotonic()
        assert calm.start(str(scratch / "calm"), scratch / "marks").wait() == 0
        whole_s = time.monotonic() - began_s
        expected = read_bytes(scratch / "calm")
        assert len(expected) == count + 1
        for what, kills in (("workers", workers), ("driver", drivers)):
            (scratch / what).mkdir()
            trial = Trial(scratch / what, on, store, count, SEED)
            if what == "workers":
                trial.kill_workers(kills, expected)
            else:
                trial.kill_drivers(kills, expected, whole_s)
            yield trial.row(what)


def main() -> None:
    """Measure, and print a line of JSON for each kind of kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--drive", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--on", default="local")
    parser.add_argument("--store", help="an address below which results are written")
    parser.add_argument("--workers", type=int, default=50, help="kills of workers")
    parser.add_argument("--drivers", type=int, default=20, help="kills of the driver")
    parser.add_argument("--parts", type=int, default=PARTS, help="of a run")
    given = parser.parse_args()
    if given.drive:
        target, marks, on, count = given.drive
        sys.exit(drive(target, Path(marks), on, int(count)))
    for row in measure(given.on, given.store, given.workers, given.drivers, given.parts):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
