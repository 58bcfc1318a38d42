"""Mutants of recipes, weights, predictors and model folders: opened, or refused in words of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import watched_mutants
from model_mutants import TARGETS


def _held(target: str, folder: Path, numbers: range) -> None:
    ended, faults = watched_mutants.run(target, folder, numbers)
    assert faults == []
    assert ended.total() == len(numbers)
    assert 0 < ended["refused"] < len(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["recipes"])
def test_some_mutants_are_opened_or_refused(target: str, tmp_path: Path) -> None:
    _held(target, tmp_path, range(30))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_mutants_are_opened_or_refused(target: str, tmp_path: Path) -> None:
    _held(target, tmp_path, range(500))
