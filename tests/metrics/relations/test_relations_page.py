"""docs/relations.md names every metric and field, and its numbers are those that come out."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from random_relations import predictions_of, scenes_of
from worked_relations import CASES, TOGETHER

from roadaware.metrics.metric_state import as_json
from roadaware.metrics.relations import CONFIGS, RelationConfig, evaluate

PAGE = (Path(__file__).parents[3] / "docs" / "relations.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("`"): cells
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}


def test_every_field_is_named() -> None:
    assert [f.name for f in fields(RelationConfig) if f"`{f.name}`" not in PAGE] == []


@pytest.mark.parametrize("field", CASES)
def test_the_row_of_a_choice_holds_its_values_and_numbers(field: str) -> None:
    case, cells = CASES[field], ROWS[field]
    value, other = (getattr(config, field) for config in case.configs(field))
    assert case.config.removesuffix("-no") in cells[1] or cells[1].startswith("all")
    assert _text(field, value) in cells[1]
    assert cells[3].endswith(f"other: {_text(field, other)}")
    shown, without = re.fullmatch(r"`(.*)` ([\d.]+)", cells[4]), cells[5]
    assert shown is not None
    assert shown[1] == case.metric
    for text, number in zip((shown[2], without), case.values, strict=True):
        digits = len(text.partition(".")[2])
        assert f"{number:.{digits}f}" == text


def _text(field: str, value: object) -> str:
    if value is None:
        return "none" if field == "frame_min_score" else "all"
    if isinstance(value, bool):
        return str(value).lower()
    return f"`{value}`" if isinstance(value, str) else f"{value:.5f}".rstrip("0").rstrip(".")


def test_the_configurations_stand_side_by_side_as_they_judge() -> None:
    predictions, scenes = predictions_of(TOGETHER), scenes_of(TOGETHER)
    found = [as_json(evaluate(predictions, scenes, make()))["summary"] for make in CONFIGS.values()]
    assert [f"`{name}`" for name in CONFIGS] == ROWS_OF_CONFIGS
    for metric in dict.fromkeys(name for summary in found for name in summary):
        shown = [f"{summary[metric]:.4f}" if metric in summary else "" for summary in found]
        assert SIDE_BY_SIDE[metric] == shown


_SIDE = PAGE.partition("## The configurations side by side")[2]
ROWS_OF_CONFIGS = [cell.strip() for cell in _SIDE.split("\n| metric |")[1].splitlines()[0].split("|")[:-1]]
SIDE_BY_SIDE = {
    cells[0].strip("`"): cells[1:]
    for line in _SIDE.splitlines()
    if line.startswith("| `")
    for cells in [[cell.strip() for cell in line[1:-1].split("|")]]
}
