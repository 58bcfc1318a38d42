"""How commands end that are killed anywhere, and what becomes of their work: `python -m benchmarks.kills`.

SIGKILL, SIGINT and SIGTERM come in turn, about half of them before a step at the file system that is drawn,
the others at a time that is drawn from as long as the command takes. What is killed is given again, and may
be killed again; what comes to its end must have the bytes of a run that nobody disturbed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from benchmarks.kill_commands import COMMANDS, Command, make_inputs
from benchmarks.kill_files import contents, refuse_broken, temporary_in

TRIALS, SEED = 50, 18
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
_CODES = {signal.SIGKILL: (-9,), signal.SIGINT: (130, -2), signal.SIGTERM: (143, -15)}
_PATIENCE_S = 120.0


@dataclass
class Tally:
    """What came of the kills of one command.

    Args:
        command: its name.
        kills: that met it.
        finished: runs that came to their end after kills, each with the bytes of an undisturbed run.
        slowest_s: between SIGINT or SIGTERM and the end, on the clock.
        slowest_cpu_s: the same in seconds of its processes.
        whole_s: what an undisturbed run takes.
    """

    command: str
    kills: int = 0
    finished: int = 0
    slowest_s: float = 0.0
    slowest_cpu_s: float = 0.0
    whole_s: float = 0.0


class Server:
    """The process that forks commands; see `kill_server`."""

    def __init__(self, modules: str, home: Path) -> None:
        one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "POLARS_MAX", "NUMBA")}
        one["POLARS_MAX_THREADS"] = "1"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.kill_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **one, "ROADAWARE_HOME": str(home), "TOKENIZERS_PARALLELISM": "false"},
            cwd=Path(__file__).resolve().parents[1],
        )
        assert self.process.stdin is not None
        self.process.stdin.write(modules + "\n")
        self.process.stdin.flush()
        assert "ready" in self.answer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)

    def answer(self) -> dict[str, Any]:
        """The next line of the server."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def start(self, words: list[str], cwd: Path, at: int = 0, number: int = 0) -> int:
        """Begin a command; the number of its process."""
        assert self.process.stdin is not None
        env = {"TMPDIR": str(cwd.parent / "tmp")}
        order = {"words": words, "cwd": str(cwd), "env": env, "at": at, "signal": number}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.answer()["process"])


@dataclass
class Trials:
    """The kills of one command.

    Args:
        command: which.
        server: runs it.
        room: a folder of its own.
        home: where caches lie.
        rng: draws when the signals come.
    """

    command: Command
    server: Server
    room: Path
    home: Path
    rng: random.Random
    tally: Tally = field(init=False)

    def __post_init__(self) -> None:
        self.tally = Tally(self.command.name)
        self.cwd = self.room / "run"

    def modules(self) -> str:
        """What a run imports, which a server need do only once; what it compiles is cached as well."""
        self._fresh()
        self._run(self.command.words)
        return " ".join((self.room / "modules").read_text().split())

    def go(self, trials: int) -> Tally:
        """Measure an undisturbed run, then kill."""
        self._fresh()
        self._run(self.command.words)
        self.wanted = contents(self.cwd)
        self._fresh()
        started = time.monotonic()
        self.steps = self._run(self.command.words)["steps"]
        self.tally.whole_s = time.monotonic() - started
        self._compare("two undisturbed runs")
        self._fresh()
        again = False
        while self.tally.kills < trials:
            again = self._kill(SIGNALS[self.tally.kills % 3], again=again)
            if again and self.rng.random() < 0.5:
                self._finish()
                again = False
        if again:
            self._finish()
        return self.tally

    def _fresh(self) -> None:
        shutil.rmtree(self.room, ignore_errors=True)
        self.cwd.mkdir(parents=True)
        (self.room / "tmp").mkdir()

    def _words(self, *, again: bool) -> list[str]:
        held = again and (self.cwd / "out").is_dir() and any((self.cwd / "out").iterdir())
        return [*self.command.words, *(self.command.again if held else ())]

    def _run(self, words: list[str]) -> dict[str, Any]:
        self.server.start(words, self.cwd)
        came = self.server.answer()
        assert came["code"] == 0, f"{words} ended with {came['code']}: {self._said()}"
        return came

    def _said(self) -> str:
        said = self.room / "stderr"  # which a process that was killed at once has not opened
        return said.read_text(errors="replace")[-2000:] if said.exists() else ""

    def _kill(self, number: signal.Signals, *, again: bool) -> bool:
        """Let a signal meet the command; whether it has to be given again."""
        aimed = self.rng.random() < 0.5
        step = self.rng.randint(1, self.steps) if aimed else 0
        process = self.server.start(self._words(again=again), self.cwd, step, number)
        sent_s = sent_cpu_s = 0.0
        if not aimed:
            time.sleep(self.rng.uniform(0, self.tally.whole_s))
            sent_cpu_s, sent_s = _cpu_s(process), time.monotonic()
            with suppress(ProcessLookupError):
                os.kill(process, number)
        came = self.server.answer()
        what = f"{self.command.name}, kill {self.tally.kills}, {number.name} " + (
            f"at step {step}" if aimed else "at a time"
        )
        self._refuse_left(process, what)
        refuse_broken(self.cwd)
        # A signal that arrives while a library in Rust calls Python makes that library print its panic.
        panicked = "panicked at" in self._said() and came["code"] in (130, 143)
        assert "Traceback" not in self._said() or came["code"] in (-2, -15) or panicked, (
            f"{what}: {self._said()}"
        )
        if came["code"] == 0 or self._refused(came["code"], again=again):
            self._compare(what)
            self._fresh()
            return False
        assert came["code"] in _CODES[number], f"{what} ended with {came['code']}: {self._said()}"
        self.tally.kills += 1
        if aimed:
            sent_s, sent_cpu_s = came["sent"]
        if number != signal.SIGKILL:
            self.tally.slowest_s = max(self.tally.slowest_s, came["ended_s"] - sent_s)
            self.tally.slowest_cpu_s = max(self.tally.slowest_cpu_s, came["cpu_s"] - sent_cpu_s)
        return True

    def _refused(self, code: int, *, again: bool) -> bool:
        """Whether the command was refused since all of it stands already."""
        return again and code == 2 and contents(self.cwd) == self.wanted

    def _finish(self) -> None:
        """Give the command again, to its end."""
        self.server.start(self._words(again=True), self.cwd)
        came = self.server.answer()
        done = came["code"] == 0 or self._refused(came["code"], again=True)
        assert done, f"{self.command.name}, given again, ended with {came['code']}: {self._said()}"
        self._compare(f"{self.command.name}, after kill {self.tally.kills}")
        self.tally.finished += 1
        self._fresh()

    def _compare(self, what: str) -> None:
        found = contents(self.cwd)
        names = sorted(name for name in {*found, *self.wanted} if found.get(name) != self.wanted.get(name))
        assert not names, f"{what}: other bytes than an undisturbed run: {names[:10]}; {self._said()}"
        left = [*temporary_in(self.cwd), *temporary_in(self.home), *self._forgotten()]
        assert not left, f"{what}: left behind: {left[:10]}"

    def _forgotten(self) -> list[str]:
        """What lies in the folder for temporary files, but for the cache that torch begins there.

        Python tries the folder with a file of four letters before it uses it; one that is killed in between leaves it.
        """
        paths = sorted((self.room / "tmp").iterdir())
        kept = [path for path in paths if not path.name.startswith("torchinductor_")]
        return [path.name for path in kept if not (path.is_file() and path.read_bytes() in (b"", b"blat"))]

    def _refuse_left(self, session: int, what: str) -> None:
        """No process of the command lives on."""
        until = time.monotonic() + 10
        while left := _processes(session):
            assert time.monotonic() < until, f"{what}: processes {left} live on"
            time.sleep(0.05)


def _stat(process: int | str) -> list[str]:
    """The fields of /proc/N/stat behind its name; none where there is no such process."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return []


def _cpu_s(process: int) -> float:
    found = _stat(process)
    return sum(map(int, found[11:15])) / os.sysconf("SC_CLK_TCK") if found else 0.0


def _processes(session: int) -> list[int]:
    """Living processes of a session."""
    found = ((int(each.name), _stat(each.name)) for each in Path("/proc").iterdir() if each.name.isdecimal())
    return [number for number, stat in found if stat and stat[3] == str(session) and stat[0] != "Z"]


def run(name: str, trials: int, inputs: Path, scratch: Path, seed: int = SEED) -> Tally:
    """Kill one command so many times.

    Args:
        name: of the command, as in `COMMANDS`.
        trials: how many kills.
        inputs: what `make_inputs` made.
        scratch: a folder to work in.
        seed: of the times and steps.

    Raises:
        AssertionError: if anything is not whole, differs, is left behind or ends otherwise than it should.
    """
    command = COMMANDS[name](inputs)
    home = Path(os.environ.get("ROADAWARE_HOME") or scratch / "home")
    room = scratch / name.replace(" ", "-")
    rng = random.Random(f"{seed} {name}")  # noqa: S311 - times, not secrets
    with Server("roadaware.cli.app", home) as server:
        modules = Trials(command, server, room, home, rng).modules()
    with Server(modules, home) as server:
        return Trials(command, server, room, home, rng).go(trials)


def main() -> None:
    """Kill all commands, or those that are named, and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills")
    parser.add_argument(
        "commands", nargs="*", choices=[*COMMANDS, []], metavar="COMMAND", help=", ".join(COMMANDS)
    )
    parser.add_argument("--trials", type=int, default=TRIALS, help="kills of each command")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--scratch", type=Path, help="a folder whose inputs are used again")
    asked = parser.parse_args()
    names = asked.commands or list(COMMANDS)
    with tempfile.TemporaryDirectory() as own:
        scratch = (asked.scratch or Path(own)).absolute()
        inputs = make_inputs(scratch / "inputs", names)
        print(
            "| command | kills | finished, equal | slowest end after SIGINT, SIGTERM (its CPU) | whole run |"
        )
        print("|---|---|---|---|---|")
        for name in names:
            came = run(name, asked.trials, inputs, scratch, asked.seed)
            end = f"{came.slowest_s:.1f} s ({came.slowest_cpu_s:.1f} s)"
            print(f"| `{name}` | {came.kills} | {came.finished} | {end} | {came.whole_s:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
