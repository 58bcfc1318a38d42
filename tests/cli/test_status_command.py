"""`roadaware status`: what is done, failed and left of runs that are at work, have failed, were killed, or are finished."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from roadaware.cli import main
from roadaware.errors import FindingsError, InputError
from roadaware.io.folders import hold_folder
from roadaware.io.parallel import HERE, Ledger, run_parts

ENDLESS = """
from pathlib import Path
import time
from roadaware.io.folders import hold_folder
from roadaware.io.parallel import HERE, run_parts
folder = Path({folder!r})
def work(number):
    if number == 3:
        time.sleep(60)
def done(number, value):
    print(number, flush=True)
with hold_folder(folder):
    run_parts(work, [1, 2, 3, 4], HERE, what="scenes", name=str, done=done, folder=folder, before=2)
"""


def fail_at(number: int) -> None:
    if number == 1:
        raise InputError("no such pixel", where="drive.mp4", hint="look at it")


def said(capsys: pytest.CaptureFixture[str], folder: Path) -> dict[str, Any]:
    assert main(["status", str(folder), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def ledger(folder: Path, **facts: Any) -> None:
    told = {
        "format": Ledger.FORMAT,
        "what": "scenes",
        "total": 100,
        "before": 10,
        "done": 38,
        "failed": 2,
        "reasons": {},
    }
    told |= {
        "began_s": time.time() - 120,
        "updated_s": time.time() - 60,
        "process": 7,
        "host": os.uname().nodename,
    }
    (folder / Ledger.NAME).write_text(json.dumps(told | facts))


def test_parts_that_failed_are_named_and_a_run_that_is_done_has_no_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FindingsError):
        run_parts(
            fail_at,
            [0, 1, 3],
            HERE,
            what="scenes",
            name="scene {}".format,
            done=print,
            folder=tmp_path,
            before=4,
        )
    capsys.readouterr()
    found = said(capsys, tmp_path)
    assert (found["total"], found["done"], found["failed"], found["left"], found["state"]) == (
        7,
        6,
        1,
        0,
        "stopped",
    )
    assert found["failures"] == {"scene 1": "drive.mp4: no such pixel look at it"}
    assert found["reasons"] == [
        {"reason": "drive.mp4: no such pixel look at it", "parts": 1, "first": "scene 1"}
    ]
    assert main(["status", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "6 of 7 scenes done, 1 failed, 0 left" in shown
    assert "1 x drive.mp4: no such pixel look at it (the first: scene 1)" in shown
    run_parts(fail_at, [3], HERE, what="scenes", name=str, done=print, folder=tmp_path, before=6)
    assert list(tmp_path.iterdir()) == []


def test_the_rate_and_the_time_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reasons = {
        "a/drive-1.mp4": "a/drive-1.mp4: cut off at 12.5 s",
        "b/drive-22.mp4": "b/drive-22.mp4: cut off at 7 s",
    }
    ledger(tmp_path, reasons=reasons)
    with hold_folder(tmp_path):
        found = said(capsys, tmp_path)
    # 40 parts were over in the minute from the beginning to the last word; 50 are left.
    assert found["state"] == "at work"
    assert found["parts_per_s"] == pytest.approx(40 / 60, rel=1e-3)
    assert found["left_s"] == pytest.approx(75, rel=1e-3)
    assert (found["done"], found["failed"], found["left"]) == (48, 2, 50)
    assert found["age_s"] == pytest.approx(60, abs=20)
    assert [(each["parts"], each["first"]) for each in found["reasons"]] == [(2, "a/drive-1.mp4")]
    with hold_folder(tmp_path):
        assert main(["status", str(tmp_path)]) == 0
    assert re.search(r"process 7 on .* is at work\n40 a minute; 1 min 15 s left", capsys.readouterr().out)
    # Nobody is at work: no time is left, whatever the rate was.
    assert said(capsys, tmp_path)["left_s"] is None
    ledger(tmp_path, host="elsewhere", done=0, failed=0)
    found = said(capsys, tmp_path)
    assert (found["state"], found["parts_per_s"], found["left_s"]) == ("unknown", None, None)


def test_a_run_that_is_killed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", ENDLESS.format(folder=str(tmp_path))], stdout=subprocess.PIPE, text=True
    )
    assert run.stdout is not None
    assert [run.stdout.readline(), run.stdout.readline()] == ["1\n", "2\n"]
    try:
        found = said(capsys, tmp_path)
        assert (found["state"], found["process"], found["total"]) == ("at work", run.pid, 6)
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
        run.stdout.close()
    found = said(capsys, tmp_path)
    # The last word may be a second old.
    assert (found["state"], found["total"]) == ("stopped", 6)
    assert 2 <= found["done"] <= 4


def test_finished_and_other_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--seconds", "0.5", "--fps", "4", "--size", "64x48", "--tables-only", "--processes", "1", "-q"]
    assert main(["simulate", "-o", str(tmp_path / "made"), *words]) == 0
    assert not (tmp_path / "made" / Ledger.NAME).exists()
    capsys.readouterr()
    assert said(capsys, tmp_path / "made") == {
        "folder": str(tmp_path / "made"),
        "state": "finished",
        "kind": "roadaware-simulation",
    }
    assert main(["status", str(tmp_path / "made")]) == 0
    assert "finished, every part is done (simulation)" in capsys.readouterr().out
    assert main(["status", str(tmp_path)]) == 3
    assert "expected a run in parts" in capsys.readouterr().err
    assert main(["status", str(tmp_path / "none")]) == 3


@pytest.mark.parametrize(
    "facts",
    [
        {"total": "x"},
        {"reasons": 3},
        {"began_s": None},
        {"done": 1e400},
        {"done": -1},
        {"updated_s": 1e400},
        {"updated_s": float("nan")},
    ],
)
def test_a_damaged_ledger(tmp_path: Path, facts: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    ledger(tmp_path, **facts)
    assert main(["status", str(tmp_path)]) == 3
    assert "expected how far a run is, found damage" in capsys.readouterr().err
    (tmp_path / Ledger.NAME).write_text("{")
    assert main(["status", str(tmp_path)]) == 3
