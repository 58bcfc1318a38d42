"""docs/actions.md says of each field, each case and the real files what the code finds."""

from __future__ import annotations

import os
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from plain_actions import predictions_of, scenes_of
from quirk_cases import CASES, OTHER, STREET, Case

from roadaware.datasets import read
from roadaware.formats.actions import read_action_predictions
from roadaware.metrics.actions import CONFIGS, ActionConfig, evaluate
from roadaware.metrics.metric_state import SceneResult

PAGE = (Path(__file__).parents[3] / "docs" / "actions.md").read_text(encoding="utf-8")
DATA = os.environ.get("ROADAWARE_DATA_DIR")
FIELDS = [field.name for field in fields(ActionConfig)]


def cells(part: str, first: str) -> list[str]:
    """The cells of the row of a table that begins so, in the part of the page under a heading."""
    text = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    [under] = [each for each in text if each.startswith(part)]
    [row] = [line for line in under.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


def judged(case: Case, config: ActionConfig) -> SceneResult:
    return evaluate(predictions_of(case.predictions), scenes_of(case.truth, case.excluded, case.bare), config)


def shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(value) or "all"
    return "none" if value is None else str(value)


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_stands_with_its_values_and_changes_the_number_of_its_case(field: str) -> None:
    assert cells("The four", f"`{field}`") == [shown(getattr(make(), field)) for make in CONFIGS.values()]
    *_, default, other, number, other_number = cells("Each field", f"`{field}`")
    changed = replace(ActionConfig(), **{field: OTHER[field]})
    assert [default, other] == [shown(getattr(ActionConfig(), field)), shown(OTHER[field])]
    found = [next(iter(judged(CASES[field], c).values().values())) for c in (ActionConfig(), changed)]
    assert [f"{value:.4f}" for value in found] == [number, other_number]
    assert number != other_number


def test_the_street_gives_what_stands_side_by_side() -> None:
    results = [judged(STREET, make()) for make in CONFIGS.values()]
    names = {"walking": "action1", "talking": "action3", "waving": "action12"}
    for shown_as, label in names.items():
        values = [result.value(f"ap@0.5:{label}") for result in results]
        assert cells("Side", shown_as) == ["none" if v is None else f"{v:.4f}" for v in values]
    assert cells("Side", "`map@0.5`") == [f"{result.value('map@0.5'):.4f}" for result in results]
    assert len(set(cells("Side", "`map@0.5`"))) == len(CONFIGS)
    for rank, rows, result in zip(
        cells("Side", "walking: ranking (1 a hit)"),
        cells("Side", "walking: ground-truth rows"),
        results,
        strict=True,
    ):
        walking = result.state.cls == 1
        assert rank == " ".join(str(int(hit)) for hit in result.state.hit[walking])
        assert result.row("ap@0.5:action1")["n"] == int(rows)


@pytest.mark.skipif(DATA is None, reason="ROADAWARE_DATA_DIR is not set")
@pytest.mark.parametrize("name", CONFIGS)
def test_the_real_files_give_what_was_worked_by_hand(name: str) -> None:
    folder = Path(str(DATA)) / "ava" / "eval_detection"
    if not folder.is_dir():
        pytest.skip(f"no AVA files in {folder}")
    truth = read("ava", folder / "gt.csv", cache=False, labels=str(folder / "action_list.txt"))
    result = evaluate(read_action_predictions(folder / "pred.csv", truth), truth, CONFIGS[name]())
    of_classes = [result.value(f"ap@0.5:{label}") for label in ("action1", "action2", "action3")]
    assert of_classes == pytest.approx([(1 / 2 + 2 / 11) / 4, 0.0, 1 / 9], abs=1e-12)
    assert cells("By hand", "0.1705")[-1] == f"{result.value('map@0.5'):.4f}"
    hits = result.instances("prediction").filter("hit")
    assert sorted(hits.select("label", "score").rows()) == sorted(
        [("action1", 0.06), ("action1", 0.64), ("action3", 0.138), ("action3", 0.681)]
    )
