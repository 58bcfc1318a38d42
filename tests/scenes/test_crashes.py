"""Writers that are killed at any moment, and writers that meet: the old content stands or the new, whole."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from table_sets import small_predictions, small_scenes

from roadaware.io.files import write_atomically
from roadaware.scenes.store import encode, open_predictions, open_scenes, save

WRITER = Path(__file__).with_name("crash_writer.py")


class Saved:
    """A folder of tables under test; `old` and `new` are what it may hold."""

    kind = "set"

    def __init__(self, folder, make, opened):
        self.target, self.opened = folder / "set", opened
        self.old, self.new = make("old"), make("newer")
        for place, tables in (("0", self.old), ("1", self.new)):
            files, meta = encode(tables)
            for name, data in {**files, "meta.json": meta}.items():
                path = folder / "contents" / place / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)

    def read(self):
        return self.opened(self.target)

    def write(self, what):
        save(what, self.target, overwrite=True)

    def leftovers(self):
        """Names that the set which stands there does not need."""
        files, _ = encode(self.read())
        return sorted({path.name for path in self.target.iterdir()} - set(files) - {"meta.json"})


class Single:
    """One file under test."""

    kind = "file"

    def __init__(self, folder):
        self.target = folder / "out" / "report.html"
        self.target.parent.mkdir()
        self.old, self.new = b"old " * 40_000, b"new " * 70_000
        for place, data in (("0", self.old), ("1", self.new)):
            path = folder / "contents" / place / "data"
            path.parent.mkdir(parents=True)
            path.write_bytes(data)

    def read(self):
        return self.target.read_bytes()

    def write(self, what):
        write_atomically(self.target, what)

    def leftovers(self):
        return sorted({path.name for path in self.target.parent.iterdir()} - {self.target.name})


@pytest.fixture(params=["scenes", "predictions", "file"])
def writer(request, tmp_path):
    """What is written: a set of either kind, large enough to be caught while it is written, or a file."""
    if request.param == "scenes":
        return Saved(tmp_path, lambda tag: small_scenes(tag, n_boxes=3000), open_scenes)
    if request.param == "predictions":
        return Saved(tmp_path, lambda tag: small_predictions(tag, n=2000 + len(tag)), open_predictions)
    return Single(tmp_path)


@contextmanager
def started(mode, writer, *more):
    """The writer process, after it has told that it is ready; it is never left behind."""
    arguments = [
        mode,
        writer.kind,
        str(writer.target),
        str(writer.target.parents[writer.kind == "file"] / "contents"),
    ]
    with subprocess.Popen(
        [sys.executable, str(WRITER), *arguments, *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.stdin.close()
            process.wait(30)


def ordered(process, order):
    """Give an order and return the number of the process that carries it out."""
    process.stdin.write(order + "\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def killed_writers(writer, trials, seed):
    """Kill writers at random moments; returns how often one was caught with files half done."""
    rng, caught = np.random.default_rng(seed), 0
    writer.write(writer.old)
    with started("trials", writer) as process:
        for trial in range(trials):
            number = ordered(process, "loop")
            time.sleep(rng.uniform(0.0005, 0.012))
            os.kill(number, signal.SIGKILL)
            assert process.stdout.readline() == f"-{signal.SIGKILL.value}\n"
            assert writer.read() in (writer.old, writer.new), f"trial {trial}"
            caught += bool(writer.leftovers())
    writer.write(writer.new)
    assert writer.read() == writer.new
    assert writer.leftovers() == []
    return caught


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_the_old_or_the_new(writer):
    killed_writers(writer, 20, seed=0)


@pytest.mark.slow
def test_200_writers_that_are_killed_leave_the_old_or_the_new(writer):
    assert killed_writers(writer, 200, seed=1) > 0, (
        "no writer was caught in the middle: the trials show nothing"
    )


@pytest.mark.slow
@pytest.mark.parametrize("before", ["old", "nothing"])
def test_a_writer_that_dies_at_any_step_leaves_the_old_or_the_new(writer, before):
    states = []
    with started("trials", writer) as process:
        for step in range(1, 200):
            if before == "old":
                writer.write(writer.old)
            elif writer.kind == "file":
                writer.target.unlink(missing_ok=True)
            else:
                for path in [*writer.target.glob("*"), writer.target] if writer.target.exists() else []:
                    path.rmdir() if path.is_dir() else path.unlink()
            ordered(process, f"step {step}")
            status = process.stdout.readline().strip()
            states.append(state(writer))
            if status == "0":
                break
            assert status == "9"
    assert status == "0", "the writer never came to its end"
    assert states == sorted(states), f"old, then new, and never back: {states}"
    assert states[0] == 0
    assert states[-1] == 1
    assert len(states) > 5
    assert writer.leftovers() == []


def state(writer):
    """0 where the old content (or nothing) stands, 1 where the new does; anything else fails."""
    if writer.kind == "file":
        held = writer.target.exists() and writer.read()
    else:
        held = (writer.target / "meta.json").exists() and writer.read()
    assert held is False or held in (writer.old, writer.new)
    return int(held is not False and held == writer.new)


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["scenes", "file"], indirect=True)
def test_two_writers_and_a_reader_never_see_a_mixed_set(writer):
    writer.write(writer.old)
    seen = {0: 0, 1: 0}
    with started("rounds", writer, "100") as first, started("rounds", writer, "100") as second:
        for process in (first, second):
            process.stdin.write("go\n")
            process.stdin.flush()
        while first.poll() is None or second.poll() is None:
            time.sleep(0.01)
            held = writer.read()
            assert held in (writer.old, writer.new)
            seen[int(held == writer.new)] += 1
    assert first.returncode == second.returncode == 0
    assert writer.read() in (writer.old, writer.new)
    assert writer.leftovers() == []
    assert min(seen.values()) > 0, seen
