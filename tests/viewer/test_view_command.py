"""`roadaware view` says where it serves, ends as it is asked to, and refuses what it cannot show."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from roadaware.cli import main


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_serves_until_it_is_interrupted(sets: Path, number: signal.Signals, code: int) -> None:
    command = [
        sys.executable,
        "-m",
        "roadaware",
        "view",
        str(sets / "truth"),
        str(sets / "found"),
        "--no-browser",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=30) as page:  # noqa: S310, the address was printed by us
            assert b"<h1>roadaware</h1>" in page.read()
        running.send_signal(number)
        assert running.wait(60) == code
        said = running.stderr.read() if running.stderr else ""
    assert "Traceback" not in said


def test_what_it_cannot_do_is_said(sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = [
            ([], 2, "name what to look at"),
            ([tmp_path / "nothing"], 3, "no such file"),
            ([sets / "truth", "--port", port], 2, "cannot be used"),
            ([sets / "truth", "--annotator", "x" * 101], 2, "--annotator"),
        ]
        for words, code, said in cases:
            assert main(["view", *map(str, words), "--no-browser"]) == code
            assert said in capsys.readouterr().err


@pytest.mark.slow
def test_an_evaluation_alone_says_what_to_name_beside_it(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(judged / "run"), "--no-browser"]) == 2
    assert "name its ground truth and predictions" in capsys.readouterr().err
