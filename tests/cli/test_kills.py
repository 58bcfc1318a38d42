"""Commands that are killed anywhere end in time, leave nothing half-done, and go on to the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock

import polars as pl
import pytest

from roadaware.analysis.doctor import environment
from roadaware.cli import app
from roadaware.errors import Terminated
from roadaware.io import csv

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.kill_commands import COMMANDS, make_inputs
from benchmarks.kills import run

EACH = 18
"""Six by each signal; `python -m benchmarks.kills` gives fifty, which takes more than an hour."""

AT_THE_EDGE = """
import os, signal, sys, threading
import roadaware.cli.app as app
start = threading.Thread.start
def struck(thread):
    start(thread)
    if thread.name == "interrupts":
        os.kill(os.getpid(), signal.{name})
        for _ in range(1000):
            pass
threading.Thread.start = struck
sys.exit(app.main())
"""

IN_A_CALLBACK = """
import os, signal, sys, time
import roadaware.cli.app as app
class Struck:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        for _ in range(1000):
            pass
def lost(*_):
    struck = Struck()
    del struck
    while True:
        time.sleep(0.01)
app._run = lost
sys.exit(app.main())
"""

AS_A_WORKER_STARTS = """
import multiprocessing.util, os, signal, sys
import roadaware.cli.app as app
start = multiprocessing.util.spawnv_passfds
def struck(path, words, passed):
    process = start(path, words, passed)
    if "--multiprocessing-fork" in " ".join(map(os.fsdecode, words)):
        os.kill(os.getpid(), signal.{name})
    return process
multiprocessing.util.spawnv_passfds = struck
if __name__ == "__main__":
    sys.exit(app.main())
"""

POOL = """
import multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor
from roadaware.io.processes import stop_with_parent
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=context, initializer=stop_with_parent)
    print(pool.submit(os.getpid).result(), flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kills")


def killed(name: str, trials: int, scratch: Path) -> None:
    inputs = make_inputs(scratch / "inputs", [name])
    came = run(name, trials, inputs, scratch)
    assert came.kills == trials
    assert came.finished > 0
    assert min(came.slowest_s, came.slowest_cpu_s) < 5  # 2 s on an idle machine


def check_ending(program: str, words: list[str], code: int) -> None:
    """Whether a program with these words ends with the code, and says that it was interrupted and nothing else."""
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "nothing half-written remains" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_killed_goes_on_to_the_same_bytes(name: str, scratch: Path) -> None:
    killed(name, EACH, scratch)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("program", [AT_THE_EDGE, IN_A_CALLBACK], ids=["at the edge", "in a callback"])
def test_no_signal_is_lost_or_ends_in_a_traceback(program: str, name: str, code: int) -> None:
    check_ending(program.format(name=name), ["doctor"], code)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_between_the_start_of_a_worker_and_its_first_data_waits(
    name: str, code: int, tmp_path: Path
) -> None:
    size = "--tables-only --seconds 1 --fps 2 --size 64x48 --output"
    command = ["simulate", "--scenes", "3", "--processes", "2", *size.split(), str(tmp_path / "set")]
    check_ending(AS_A_WORKER_STARTS.format(name=name), command, code)


def test_workers_of_a_pool_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "pool.py").write_text(POOL)
    command = [sys.executable, str(tmp_path / "pool.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as pool:
        assert pool.stdout is not None
        worker = int(pool.stdout.readline())
        try:
            pool.communicate(timeout=30)  # until the last process that has the pipe has gone
        finally:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
    assert pool.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("kind", "code"),
    [("<class 'roadaware.errors.Terminated'>", 143), ("<class 'KeyboardInterrupt'>", 130)],
)
def test_a_signal_inside_a_library_that_panics_is_an_interruption(
    kind: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class PanicException(BaseException):
        pass

    def panic(words: list[str]) -> int:
        raise PanicException(
            f"called `Result::unwrap()` on an `Err` value: PyErr {{ type: {kind}, value: x() }}"
        )

    monkeypatch.setattr(app, "_run", panic)
    assert app.main(["doctor"]) == code
    assert "nothing half-written remains" in capsys.readouterr().err


@pytest.mark.parametrize(("signal_error", "code"), [(KeyboardInterrupt(), 130), (Terminated(), 143)])
def test_a_signal_while_a_library_is_loaded_is_an_interruption(
    signal_error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def load(words: list[str]) -> int:
        raise ImportError("initialization failed") from signal_error

    monkeypatch.setattr(app, "_run", load)
    assert app.main(["doctor"]) == code
    assert "nothing half-written remains" in capsys.readouterr().err


def test_a_signal_while_doctor_tries_a_library_does_not_make_it_broken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = ImportError("initialization failed")
    monkeypatch.setattr(environment, "import_module", Mock(side_effect=broken))
    assert "initialization failed" in environment.describe_environment()["libraries"]["torch"]
    broken.__cause__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        environment.describe_environment()


def test_a_signal_inside_a_library_blames_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "boxes.parquet"
    pl.DataFrame({"a": [1]}).write_parquet(path)
    told = "PyErr { type: <class 'KeyboardInterrupt'>, value: KeyboardInterrupt() }"
    monkeypatch.setattr(pl, "scan_parquet", Mock(side_effect=pl.exceptions.PanicException(told)))
    with pytest.raises(KeyboardInterrupt):
        list(csv.read_cells(path, header=True))


def test_any_other_panic_of_a_library_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(words: list[str]) -> int:
        raise PanicException("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr(app, "_run", panic)
    assert app.main(["doctor"]) == app.INTERNAL
