"""A crew does what is asked, hands on failures, and ends with the process that started it."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from roadaware.errors import DiskError, UsageError
from roadaware.io.processes import run_parallel

SLEEPERS = """
from pathlib import Path
from functools import partial
from roadaware.io.processes import run_parallel
from {name} import sleep
if __name__ == "__main__":
    list(run_parallel(partial(sleep, Path({folder!r})), [0, 1], 2))
"""


def sleep(folder: Path, number: int) -> None:
    (folder / str(os.getpid())).write_text("")
    time.sleep(60)


def touch(folder: Path, number: int) -> None:
    if number == 3:
        raise DiskError("full")
    if number == 4:
        os._exit(9)
    (folder / str(number)).write_text("")


def over(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


def wait_until(holds) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_every_number_is_done_once_and_failures_arrive(tmp_path: Path) -> None:
    work = partial(touch, tmp_path)
    assert sorted(run_parallel(work, [0, 1, 2], 2)) == [0, 1, 2]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0", "1", "2"]
    with pytest.raises(DiskError, match="full"):
        list(run_parallel(work, [3, 0], 1))
    with pytest.raises(UsageError, match="a process that made scenes died"):
        list(run_parallel(work, [4], 2))


@pytest.mark.slow
def test_whoever_stops_taking_ends_the_others(tmp_path: Path) -> None:
    with closing(run_parallel(partial(mixed, tmp_path), [0, 1], 2)) as done:
        assert next(done) == 0
        wait_until(lambda: any(tmp_path.iterdir()))
    assert all(over(int(p.name)) for p in tmp_path.iterdir())


def mixed(folder: Path, number: int) -> None:
    if number:
        sleep(folder, number)


@pytest.mark.slow
def test_a_killed_process_leaves_no_crew_behind(tmp_path: Path) -> None:
    script = tmp_path / "sleepers.py"
    folder = tmp_path / "workers"
    folder.mkdir()
    script.write_text(SLEEPERS.format(name=Path(__file__).stem, folder=str(folder)))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    process = subprocess.Popen([sys.executable, str(script)], env=environment)
    wait_until(lambda: len(list(folder.iterdir())) == 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: all(over(int(p.name)) for p in folder.iterdir()))
