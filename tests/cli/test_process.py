"""The command as a process: signals, pipes, disks and odd surroundings."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from small_files import Command, Files

from roadaware.demo_data import DemoFacts
from roadaware.scenes.store import open_scenes

START = [sys.executable, "-W", "error", "-m", "roadaware"]
SLOW = """
import sys, time
import roadaware.cli.app as app
def slow(*a, **k):
    print("started", file=sys.stderr, flush=True)
    {body}
import roadaware.metrics.pedestrians as pedestrians
pedestrians.evaluate_samples = slow
sys.exit(app.main())
"""


def words(files: Files, *more: object) -> list[str]:
    fixed = ["evaluate", "pedestrians", "--scores", files.scores, "--samples", files.samples]
    return [str(word) for word in (*fixed, "--task", "action", *more)]


def run(
    arguments: list[str], *, env: dict[str, str] | None = None, **options: object
) -> subprocess.CompletedProcess[str]:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [*START, *arguments],
        capture_output="stdout" not in options,
        text=True,
        timeout=60,
        env={**os.environ, **(env or {})},
        **options,  # type: ignore[call-overload]
    )
    assert "Traceback" not in (done.stderr or "")
    return done


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "body",
    [
        "time.sleep(60)",
        "__import__('hashlib').pbkdf2_hmac('sha256', b'a', b'b', 500_000_000)",
        "while True:\n        try: time.sleep(60)\n        except BaseException: pass",
    ],
    ids=["python", "compiled code", "deaf"],
)
def test_a_signal_ends_the_command_within_two_seconds(
    files: Files, tmp_path: Path, number: int, body: str
) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            SLOW.format(body=body),
            *words(files, "-o", tmp_path / "run", "--json", tmp_path / "o.json"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "started\n"
    time.sleep(0.2)
    process.send_signal(number)
    started = time.monotonic()
    said = process.communicate(timeout=10)[1]
    assert time.monotonic() - started < 2
    assert process.returncode == 128 + number
    assert "Traceback" not in said
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def interrupted_reading(root: Path, folder: Path, number: int, after_s: float) -> int:
    """The exit code of a reading that a signal met after some seconds; it ends in time, without children."""
    process = subprocess.Popen(
        [*START, "read", "jaad", str(root), "-o", str(folder / "out"), "--overwrite"],
        env={**os.environ, "ROADAWARE_HOME": str(folder / "home")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    time.sleep(after_s)
    process.send_signal(number)
    started = time.monotonic()
    process.communicate(timeout=20)
    assert time.monotonic() - started < 2 or process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    return process.returncode


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_reading_leaves_no_child_and_no_tables(
    demo_set: tuple[Path, DemoFacts], tmp_path: Path, number: int, code: int
) -> None:
    found = interrupted_reading(demo_set[0], tmp_path, number, 0.6)
    # A quick machine may have read everything, a busy one may not have started to listen.
    assert found in (code, 0, -number)
    assert (tmp_path / "out").exists() == (found == 0)


@pytest.mark.slow
def test_readings_interrupted_at_any_time_leave_the_old_tables_or_the_new(
    demo_set: tuple[Path, DemoFacts], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    codes = []
    for trial in range(50):
        number = (signal.SIGINT, signal.SIGTERM)[trial % 2]
        # The first moments belong to Python itself, which ends with 1 where its own start is interrupted.
        codes.append(interrupted_reading(demo_set[0], tmp_path, number, rng.uniform(0.3, 2.5)))
        if (tmp_path / "out").exists():
            assert len(open_scenes(tmp_path / "out").boxes) == demo_set[1].boxes
    assert {130, 143} & set(codes)
    assert set(codes) <= {0, 130, 143, -signal.SIGINT, -signal.SIGTERM}


@pytest.mark.slow
def test_a_closed_pipe_is_quiet(files: Files) -> None:
    first = subprocess.Popen(
        [*START, *words(files, "--json")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    first.stdout.close()
    first.stdout = None
    assert first.communicate(timeout=60)[1] == ""
    assert first.returncode in (0, 141)


@pytest.mark.slow
@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1), (0, 1, 2)])
def test_closed_streams_are_as_pipes_that_nobody_reads(
    files: Files, tmp_path: Path, closed: tuple[int, ...]
) -> None:
    shut = " ".join(f"{number}>&-" for number in closed)
    run = ["-o", tmp_path / "run"] if closed == (0, 1, 2) else []
    command = shlex.join([*START, *words(files, "--json", tmp_path / "o.json", *run)])
    done = subprocess.run(["sh", "-c", f"{command} {shut}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == (141 if 1 in closed else 0)
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr
    assert json.loads((tmp_path / "o.json").read_text())["samples"] == 210
    done = subprocess.run(["sh", "-c", f"{shlex.join(START)} --help {shut}"], capture_output=True, timeout=60)
    assert done.returncode == (141 if 1 in closed else 0)


@pytest.mark.slow
def test_json_goes_into_pipes_and_open_descriptors(files: Files, tmp_path: Path) -> None:
    command = shlex.join([*START, *words(files)])
    piped = {
        f"{command} --json /dev/stdout | cat": "{",
        f"{command} --json >(cat) | cat": "{",
        f"{command} --json /dev/fd/3 3>&1 >/dev/null | cat": "{",
        f"echo first > log; {command} --json /dev/fd/3 3>> log > /dev/null; cat log": "first\n{",
        f"echo first > log; {command} --json /dev/stdout >> log; cat log": "first\n{",
    }
    for line, start in piped.items():
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=True
        )
        assert done.stderr == "", line
        held = done.stdout if "(cat)" not in line else done.stdout[done.stdout.index("{\n") :]
        assert held.startswith(start), line
        found, _ = json.JSONDecoder().raw_decode(held[held.index("{") :])
        assert found["samples"] == 210


@pytest.mark.slow
def test_a_full_device_as_output_ends_with_4(files: Files) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(words(files), stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 4
    assert "could not be written" in done.stderr
    done = run(words(files, "--json", "/dev/full"))
    assert done.returncode == 4
    assert Path("/dev/full").is_char_device()


@pytest.mark.slow
def test_a_limit_on_file_size_ends_with_4_and_leaves_the_old(files: Files, tmp_path: Path) -> None:
    target = tmp_path / "o.json"
    target.write_text("old")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500));"
        "from roadaware.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words(files, "--json", target)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 4
    assert "bytes are needed" in done.stderr
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["action.csv", "action_samples.csv", "o.json"]


@pytest.mark.parametrize("target", ["/proc/o.json", "/dev/null/o.json"])
def test_an_output_that_cannot_be_made_ends_with_4(roadaware: Command, files: Files, target: str) -> None:
    for option in ("--json", "-o"):
        done = roadaware(*words(files, option, target))
        assert done.code == 4
        assert "/proc" in done.err or "/dev/null" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "surroundings",
    [
        {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"HOME": "", "ROADAWARE_HOME": "", "XDG_CACHE_HOME": ""},
        {"HOME": "/nonexistent", "ROADAWARE_HOME": ""},
        {"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "7", "CI": "1"},
        {"ROADAWARE_HOME": "/proc/cache"},
    ],
    ids=["LANG=C", "no HOME", "HOME absent", "TZ", "cache cannot be written"],
)
def test_odd_surroundings(
    demo_set: tuple[Path, DemoFacts], surroundings: dict[str, str], tmp_path: Path
) -> None:
    root = tmp_path / "ünï"
    root.symlink_to(demo_set[0])
    done = run(["read", "jaad", str(root), "--json"], env=surroundings)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"]["boxes"] == demo_set[1].boxes


@pytest.mark.slow
def test_twenty_file_descriptors_are_enough(demo_set: tuple[Path, DemoFacts], files: Files) -> None:
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20));"
        "from roadaware.cli import main; sys.exit(main())"
    )
    for arguments in (["read", "jaad", str(demo_set[0]), "--no-cache"], words(files, "--resamples", "20")):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_strict_umask_is_respected(files: Files, tmp_path: Path) -> None:
    code = "import os, sys; os.umask(0o077); from roadaware.cli import main; sys.exit(main())"
    arguments = words(files, "-o", tmp_path / "run", "--json", tmp_path / "o.json")
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, timeout=60)
    for path in [tmp_path / "o.json", *(tmp_path / "run").iterdir()]:
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.slow
def test_help_imports_nothing_heavy_and_is_quick() -> None:
    code = """
import sys, time
from roadaware.cli import main
main(["--help"])
heavy = {"polars", "numpy", "sklearn", "scipy", "matplotlib", "lxml", "jinja2"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""
    seconds = []
    for _ in range(3):
        started = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
        seconds.append(time.monotonic() - started)
        assert done.returncode == 0, done.stderr
    assert min(seconds) < 2.0  # 0.25 s on an idle machine; the bar is for busy ones


@pytest.mark.slow
def test_an_internal_error_is_one_line_and_a_hint(files: Files) -> None:
    code = """
import sys
import roadaware.metrics.pedestrians as pedestrians
def broken(*a, **k): raise KeyError("lost\\x1b[2J")
pedestrians.evaluate_samples = broken
from roadaware.cli import main
sys.exit(main())
"""
    arguments = [sys.executable, "-c", code, *words(files)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == 70
    assert done.stderr.splitlines()[0].startswith("roadaware: internal error: KeyError")
    assert len(done.stderr.splitlines()) == 2
    assert "-vv" in done.stderr
    assert "\x1b" not in done.stderr
    loud = subprocess.run([*arguments, "-vv"], capture_output=True, text=True, timeout=60)
    assert loud.returncode == 70
    assert "Traceback" in loud.stderr


@pytest.mark.slow
def test_progress_is_lines_where_there_is_no_terminal(demo_set: tuple[Path, DemoFacts]) -> None:
    done = run(["read", "jaad", str(demo_set[0]), "--no-cache", "-v"])
    assert "reading" in done.stderr
    assert "\x1b" not in done.stderr
    assert "\r" not in done.stderr
    assert run(["read", "jaad", str(demo_set[0]), "-q"]).stderr == ""
