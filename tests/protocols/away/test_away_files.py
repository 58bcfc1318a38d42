"""The files of a study: damaged ones are named, and never followed into a fault of the program."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest

from roadaware.config import from_dict, to_dict
from roadaware.errors import DamagedError
from roadaware.protocols.cross_dataset.cells import run
from roadaware.protocols.cross_dataset.config import RESULTS, STUDY, TABLE, AwayStudy, CrossResults


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


def test_the_settings_of_a_study_of_version_0_8_are_read(tmp_path: Path) -> None:
    study = AwayStudy(models=("logistic",), resamples=7)
    config = to_dict(study)
    config["draws"] = config.pop("resamples")
    (tmp_path / STUDY).write_text(json.dumps({"config": config}))
    pl.DataFrame(schema=RESULTS).drop("caution").write_parquet(tmp_path / TABLE)
    assert to_dict(from_dict(AwayStudy, CrossResults.open(tmp_path).study["config"])) == to_dict(study)
