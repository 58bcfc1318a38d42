"""A command that is given twice writes the same bytes: no clock, no hash seed, no order of threads in results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_cases import CASES, words_for, write_inputs

OF_THE_CLOCK = ("timing.", "tensorboard")
WITH_A_RECORD = {("poses",), ("propose",), ("ablate",)}
"""What these are asked is kept with digests of their inputs, by which they go on: parsed or out of the cache."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_inputs(tmp_path_factory.mktemp("inputs") / "in")


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, without those that say how long work took."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(OF_THE_CLOCK) for part in path.parts)
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in CASES if name[0] == "evaluate" or name in WITH_A_RECORD], ids="-".join
)
def test_a_repeated_command_writes_the_same_bytes(
    name: tuple[str, ...], inputs: Path, tmp_path: Path
) -> None:
    found = []
    home = str(tmp_path / "home")  # empty at first: the second run reads what the first has cached
    for seed in ("1", "2"):
        work = tmp_path / seed
        work.mkdir()
        words = [sys.executable, "-m", "roadaware", *words_for(name, inputs, "out"), "-q"]
        subprocess.run(
            words,
            check=True,
            cwd=work,
            env={**os.environ, "PYTHONHASHSEED": seed, "ROADAWARE_HOME": home},
            timeout=240,
        )
        found.append(contents(work))
    assert found[0].keys() == found[1].keys()
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []
    assert found[0]
