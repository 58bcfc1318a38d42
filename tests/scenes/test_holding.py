"""One process for each folder: the second is refused with words, one that was killed holds nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from roadaware.errors import UsageError
from roadaware.io.folders import Hold, hold_folder

HOLDER = """
import sys, time
from pathlib import Path
from roadaware.io.folders import hold_folder
with hold_folder(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a folder."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_folder_is_of_one_process_and_says_of_which(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        with pytest.raises(UsageError, match=rf"written to by process {process.pid}, which runs since 20"):
            Hold(tmp_path)
        link = tmp_path.parent / "link"
        link.symlink_to(tmp_path)
        with pytest.raises(UsageError, match="being written to"), hold_folder(link):
            pass
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_the_next_goes_on_however_the_first_ended(tmp_path: Path, end: signal.Signals | None) -> None:
    with holder(tmp_path) as process:
        if end is None:
            process.communicate("")
        else:
            os.kill(process.pid, end)
            process.wait(60)
        with hold_folder(tmp_path):
            assert list(tmp_path.iterdir()) == []


def test_a_thread_holds_a_folder_as_often_as_it_likes_and_another_does_not(tmp_path: Path) -> None:
    said: list[str] = []

    def ask() -> None:
        try:
            Hold(tmp_path).release()
        except UsageError as error:
            said.append(str(error))
        else:
            said.append("held")

    def asked() -> str:
        other = threading.Thread(target=ask)
        other.start()
        other.join()
        return said.pop()

    with hold_folder(tmp_path), hold_folder(tmp_path):
        kept = Hold(tmp_path)
    assert "being written to" in asked()
    kept.release()
    kept.release()
    assert asked() == "held"


def test_a_hold_that_nobody_keeps_is_over(tmp_path: Path) -> None:
    hold = Hold(tmp_path)
    del hold
    with holder(tmp_path):
        pass


def test_a_folder_that_was_made_for_nothing_is_taken_away(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no work"), hold_folder(tmp_path / "new" / "one"):
        raise UsageError("no work")
    assert not (tmp_path / "new" / "one").exists()
    file = tmp_path / "file"
    file.write_text("mine")
    with hold_folder(file):  # whoever writes says what is wrong
        pass
    assert file.read_text() == "mine"
