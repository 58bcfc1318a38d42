"""docs/metrics.md names every field of the evaluator of road events, with values and worked numbers."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from worked_cases import CASES, worked

from roadaware.metrics.detection.config import DetectionConfig

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
FIELDS = [field.name for field in fields(DetectionConfig)]


def cells(field: str) -> list[str]:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{field}`")]
    return [cell.strip() for cell in row.split("|")[1:-1]]


def shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_every_field_has_a_case() -> None:
    assert sorted(CASES) == sorted(FIELDS)


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_stands_with_its_two_values(field: str) -> None:
    values = [shown(getattr(make(), field)) for make in (DetectionConfig.reference, DetectionConfig.default)]
    assert [cell.strip("`") for cell in cells(field)[1:3]] == values


@pytest.mark.slow
@pytest.mark.parametrize("field", FIELDS)
def test_the_worked_numbers_are_what_comes_out(field: str) -> None:
    printed = dict(re.findall(r"`([^`]+)` (\d+\.\d\d)", cells(field)[5]))
    values = {shown(value): value for value in _values(field)}
    assert {*(cell.strip("`") for cell in cells(field)[1:3])} <= set(printed)
    assert len(set(printed.values())) > 1  # the case tells the values apart
    for name, number in printed.items():
        assert f"{worked(field, values[name]):.2f}" == number, name


def _values(field: str) -> list[Any]:
    """Values of a field that the page may name."""
    own = [getattr(make(), field) for make in (DetectionConfig.reference, DetectionConfig.default)]
    more = {
        "ap": ["interp101", "raw"],
        "av_ap": ["trapezoid"],
        "frame_pixel_offset": [1.0],
        "composite_scores": ["product"],
        "interpolated_boxes": [True],
    }
    return own + more.get(field, [])
