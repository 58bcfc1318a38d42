"""Whatever bytes a camera answers, it is read or refused in words; 10,000 by `benchmarks.fuzzing streams`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import stream_mutants


@pytest.mark.parametrize("count", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_mutated_answers_are_read_or_refused(count: int) -> None:
    ended, faults = stream_mutants.run(count, seed=count)
    assert faults == []
    assert ended.total() == count
    assert any(fate.startswith("read") for fate in ended)
    assert any(fate.startswith("refused") for fate in ended)
