"""The files of a study: damaged ones are named, and never followed into a fault of the program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from roadaware.errors import DamagedError
from roadaware.protocols.cross_dataset.cells import run
from roadaware.protocols.cross_dataset.config import STUDY, TABLE, AwayStudy, CrossResults


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, "", "[]", "{}", '{"config": 1}', "\0"])
def test_a_damaged_study_is_refused_before_anything_is_done(tmp_path: Path, content: str) -> None:
    (tmp_path / STUDY).write_text(content)
    with pytest.raises(DamagedError, match="not whole") as caught:
        run(AwayStudy(models=("logistic",), domains=(f"jaad-all={tmp_path}",)), tmp_path)
    assert STUDY in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [STUDY]


def test_a_study_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / STUDY)
    with pytest.raises(DamagedError, match="not a regular file"):
        run(AwayStudy(models=("logistic",), domains=(f"jaad-all={tmp_path}",)), tmp_path)


def test_deeply_nested_results_are_refused(tmp_path: Path) -> None:
    (tmp_path / TABLE).write_bytes(b"no table")
    (tmp_path / STUDY).write_text("[" * 100_000)
    with pytest.raises(DamagedError, match="nested more than 200 deep"):
        CrossResults.open(tmp_path)
