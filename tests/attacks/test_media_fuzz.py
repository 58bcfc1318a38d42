"""Mutants of videos, sounds, images and EXIF end in frames, in counted damage or in errors of ours.

Each is read in a process that watches itself. `python -m benchmarks.fuzzing 10000 media` is longer.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import media_mutants
import pytest
import watched_mutants


@pytest.mark.slow
@pytest.mark.parametrize("target", media_mutants.TARGETS)
def test_mutants_of_media(target: str, tmp_path: Path) -> None:
    ended, faults = watched_mutants.run(target, tmp_path, range(7000, 7030), seed=1)
    assert faults == []
    assert ended.total() == 30
    assert len(ended) > 1


@pytest.mark.slow
@pytest.mark.parametrize("target", media_mutants.TARGETS)
def test_five_hundred_mutants_of_media(target: str, tmp_path: Path) -> None:
    ended, faults = watched_mutants.run(target, tmp_path, range(500), seed=2)
    assert faults == []
    assert ended.total() == 500


@pytest.mark.slow
def test_a_crash_a_hang_and_a_program_are_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle sees what it is there for."""
    script = tmp_path / "child.py"
    for answer, words in (
        ("os.kill(os.getpid(), 11)", "crash"),
        ("time.sleep(60)", "hang"),
        ('print(\'{"ended": "FAULT foreign"}\', flush=True)', "foreign"),
    ):
        script.write_text(
            f"import os, sys, time\nprint('ready', flush=True)\nfor line in sys.stdin:\n    {answer}\n"
        )
        monkeypatch.setattr(watched_mutants, "__file__", str(script))
        monkeypatch.setitem(watched_mutants.LIMITS, True, replace(watched_mutants.LIMITS[True], seconds=2.0))
        ended, faults = watched_mutants.run("media", tmp_path, [5])
        assert ended.total() == 1
        assert words in faults[0]
        assert faults[0].startswith("media 0 5: FAULT")
