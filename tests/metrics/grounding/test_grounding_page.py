"""docs/grounding.md names every field with worked numbers, and every configuration side by side."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from grounded_sets import tables
from worked_grounding import CASES, SET, worked

from roadaware.metrics.grounding import CONFIGS, GroundingConfig, evaluate

PAGE = (Path(__file__).parents[3] / "docs" / "grounding.md").read_text(encoding="utf-8")
FIELDS = [each.name for each in fields(GroundingConfig)]


def row(name: str) -> list[str]:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


def parsed(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return None if text == "None" else text
    return tuple(value) if isinstance(value, list) else value


def test_every_field_has_a_case() -> None:
    assert sorted(CASES) == sorted(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_the_worked_numbers_are_what_comes_out(name: str) -> None:
    printed = re.findall(r"`([^`]+)` (\d\.\d{3}|stops)", row(name)[-1])
    assert len({number for _, number in printed}) > 1  # the case tells the values apart
    assert getattr(GroundingConfig(), name) in [parsed(value) for value, _ in printed]
    for value, number in printed:
        assert worked(name, parsed(value)) == number, value


@pytest.mark.parametrize("name", list(CONFIGS))
def test_the_configurations_stand_side_by_side(name: str) -> None:
    result = evaluate(*tables(SET, first_frame=1), CONFIGS[name]())
    assert row(name) == [f"{value:.4f}" for metric, value in result.values().items() if ":" not in metric]


def test_the_differences_of_configurations_stand_there() -> None:
    plain = GroundingConfig()
    for name, make in CONFIGS.items():
        differing = {field for field in FIELDS if getattr(make(), field) != getattr(plain, field)}
        (line,) = [line for line in PAGE.splitlines() if line.startswith(f"- **`{name}`**")]
        assert set(re.findall(r"`(\w+)=", line)) == differing
