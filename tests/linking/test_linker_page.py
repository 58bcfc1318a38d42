"""docs/linking.md names every field of the linker, with its values and the numbers of its worked case."""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from linker_cases import CASES, values, worked

from roadaware.linking.config import UCF24_ALPHAS, LinkerConfig
from roadaware.linking.paths import Stream

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "linking.md").read_text(encoding="utf-8")
WHOLE, OF_UCF24 = PAGE.split("For UCF101-24 these differ", maxsplit=1)
FIELDS = [field.name for field in fields(LinkerConfig)]


def rows(part: str) -> dict[str, list[str]]:
    """Cells of the rows that begin with a name, by that name."""
    lines = [line for line in part.splitlines() if re.match(r"\| `\w+` \|", line)]
    return {
        line.split("`")[1]: [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines
    }


def shown(value: Any) -> str:
    if value == UCF24_ALPHAS:
        return "released"
    return value if isinstance(value, str) else json.dumps(value)


def test_every_field_has_a_row_and_a_case() -> None:
    assert list(rows(WHOLE)) == FIELDS
    assert list(CASES) == FIELDS


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_stands_with_its_two_values(name: str) -> None:
    own = [shown(getattr(make(), name)) for make in (LinkerConfig.reference, LinkerConfig.default)]
    assert re.findall("`([^`]+)`", rows(WHOLE)[name][1]) == own


@pytest.mark.slow
@pytest.mark.parametrize("name", FIELDS)
def test_the_worked_numbers_are_what_comes_out(name: str) -> None:
    printed = dict(re.findall(r"`([^`]+)` (\d+(?:\.\d+)?)", rows(WHOLE)[name][4]))
    assert list(printed) == list(dict.fromkeys(shown(value) for value in values(name)))
    assert len(set(printed.values())) > 1  # the case tells values apart
    for value in values(name):
        assert f"{round(worked(name, value), 2):g}" == printed[shown(value)], value


def test_the_two_configs_come_apart_in_each_case_where_they_differ() -> None:
    reference, default = LinkerConfig.reference(), LinkerConfig.default()
    differing = [name for name in FIELDS if getattr(reference, name) != getattr(default, name)]
    same = [
        name
        for name in differing
        if worked(name, getattr(reference, name)) == worked(name, getattr(default, name))
    ]
    assert same == []


def test_what_differs_for_ucf24_is_all_there() -> None:
    road, ucf24 = (
        [make(name) for make in (LinkerConfig.reference, LinkerConfig.default)] for name in ("road", "ucf24")
    )
    expected = {
        name: [f"`{shown(getattr(config, name))}`" for config in ucf24]
        for name in FIELDS
        if [getattr(config, name) for config in road] != [getattr(config, name) for config in ucf24]
    }
    assert {name: cells[1:] for name, cells in rows(OF_UCF24).items() if name in FIELDS} == expected


def test_the_picture_and_the_page_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    caption = importlib.import_module("figures_road").linking().caption
    said = re.findall(r"(\d+) paths, mean overlap (\d\.\d\d)", caption)
    assert len(said) == 3
    drawn = (DOCS / "images" / "linking.svg").read_text(encoding="utf-8")
    text = " ".join(PAGE.split())
    for count, overlap in said:
        assert f"{count} paths, mean overlap {overlap}" in drawn
        assert re.search(
            rf"\*\*{count} paths\*\* (?:with a mean overlap of |and )\*\*{re.escape(overlap)}\*\*", text
        )


@pytest.mark.parametrize("n_scores", [24, 148])
def test_a_live_detection_takes_the_memory_that_the_page_says(n_scores: int) -> None:
    stream = Stream(LinkerConfig.default(), n_scores, n_scores)
    per_detection = sum(array.nbytes // len(array) for array in (*stream.pool, stream.rows, stream._free))
    assert per_detection == 88 + 4 * n_scores
    assert "88 + 4 C bytes" in PAGE
    assert re.search(rf"\b{per_detection}(?: bytes)?\s+for\s+the {n_scores} of", PAGE)
