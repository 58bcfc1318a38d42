"""The command line given rubbish: whatever the words and the inputs, an error is typed and short."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from small_files import Command

sys.path.append(str(Path(__file__).resolve().parents[2]))
sys.path.append(str(Path(__file__).resolve().parents[1] / "data"))

from benchmarks.fuzzing import _hostile, all_targets, commands

from command_cases import CASES, words_for


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_words_that_are_wrong_are_refused_in_words(
    roadaware: Command, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)  # noqa: S311 - words, not secrets
    folder = tmp_path / "run"
    folder.mkdir()
    monkeypatch.chdir(folder)
    places = _hostile.Places(tmp_path / "odd", tmp_path / "nothing")
    places.valid = places.odd
    quick = [name for name, case in CASES.items() if name != ("demo",) and not case.needs_torch]
    name = rng.choice(quick)
    attempt = commands.Attempt(words_for(name, tmp_path / "nothing", folder / "out"), folder)
    commands.with_options(name, attempt, rng, places)
    if any("fifo" in word or "/dev/zero" in word for word in attempt.words):
        pytest.skip("may wait; tried in a process that is watched")
    done = roadaware(*attempt.words)
    assert done.code in commands.ENDINGS, (attempt.words, done.err)
    assert max((len(line) for line in done.err.splitlines()), default=0) <= commands.LONGEST
    assert "\N{ESCAPE}" not in done.out + done.err


@pytest.mark.slow
@pytest.mark.parametrize("target", ["command-line", "run-folders"])
def test_no_input_ends_in_an_internal_error(target: str) -> None:
    asked = all_targets()[target]
    assert asked.faults(asked.run(500, 1)) == {}
