"""A fair contest: equally many configurations for everybody, chosen on validation; test is asked once, its answers kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from street import street

from roadaware.errors import InputError, UsageError
from roadaware.protocols import contest
from roadaware.protocols.contest import (
    CHOICES,
    CONTESTANTS,
    TEST,
    Contestant,
    list_configurations,
    run_contest,
)
from roadaware.reports.contest import (
    build_contest_section,
    format_contest,
    list_choices,
    list_differences,
    list_results,
)
from roadaware.reports.page import report
from roadaware.scenes.store import save

NAMES = ("constant velocity", "logistic", "hazard trees", "history trees", "steady")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The contest with two configurations each that fit within a second, on a street without traffic; where it lies."""
    trees = {"rounds": ("5", "8"), "members": ("1",), "share": ("0.5",)}
    steady = {
        "schedule.lr": ("1.0e-3", "5.0e-3"), "schedule.epochs": ("1",), "network.fields.width": ("8",),
        "network.inputs": ("[centre]",),
    }  # fmt: skip
    spaces = {
        "constant velocity": Contestant("rule", {"middle": ("0.3333", "0.1")}),
        "logistic": Contestant(
            "recipe",
            {"network.fields.penalties": ("[1.0]", "[0.1]"), "network.fields.traffic": ("false",)},
            "logistic-traffic-jaad",
        ),
        "hazard trees": Contestant("time", trees),
        "history trees": Contestant("history", trees),
        "steady": Contestant("recipe", steady, "steady-jaad"),
    }
    monkeypatch.setattr(contest, "CONTESTANTS", spaces)
    save(street(), tmp_path / "street")
    return tmp_path


def test_configurations_begin_with_the_first_and_are_tried_once() -> None:
    space = {"a": ("1", "2", "3"), "b": ("x", "y")}
    found = list_configurations(space, 6)
    assert found[0] == {"a": "1", "b": "x"}
    assert len({tuple(each.items()) for each in found}) == 6
    assert list_configurations(space, 3) == found[:3]
    for budget in (0, 7):
        with pytest.raises(UsageError, match="the smallest space has 6"):
            list_configurations(space, budget)
    # Every budget that the command takes fits everybody.
    assert all(len(list_configurations(each.space, 10)) == 10 for each in CONTESTANTS.values())


def test_all_try_equally_many_and_test_is_asked_once(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = small / "contest"
    found = run_contest("saved", small / "street", out, budget=2, seeds=(0, 1), resamples=20)
    assert set(found.trials) == set(NAMES)
    assert all(len(tried) == 2 and not any(t.failed for t in tried) for tried in found.trials.values())
    choices = json.loads((out / CHOICES).read_text())
    for name, tried in found.trials.items():
        best = max(trial.score or 0.0 for trial in tried)
        assert tried[found.chosen[name]].score == best
        assert choices[name]["trials"][choices[name]["chosen"]]["score"] == best
    answers = pl.read_parquet(out / TEST)
    assert answers["probability"].is_between(0, 1).all()
    seeds = {name: set(part["seed"]) for (name,), part in answers.group_by("contestant")}
    assert seeds == {
        "constant velocity": {0}, "logistic": {0}, "hazard trees": {0, 1}, "history trees": {0, 1}, "steady": {0, 1},
    }  # fmt: skip
    rows = found.rows.filter((pl.col("run") == "mean") & (pl.col("metric") == "auc"))
    assert rows["recipe"].to_list() == list(NAMES)
    # Who walks towards the middle crosses: the rule and the regression know.
    assert rows.filter(pl.col("recipe") == "logistic")["value"].item() > 0.8
    assert found.order[0] == max(found.trials, key=lambda n: found.trials[n][found.chosen[n]].score or 0.0)
    differences = list_differences(found, 20)
    assert [row[0] for row in differences[1:]] == [f"less {name}" for name in found.order[1:]]
    assert len(list_results(found)) == 6
    assert all(row[2:] == ["2", "0"] for row in list_choices(found)[1:])
    assert "asked once" in format_contest(found, 20)
    assert "Fair contest" in report([build_contest_section(found, 20)], title="t")

    def refuse(*given: object) -> None:
        raise AssertionError("fitted or asked again")

    monkeypatch.setattr(contest, "_answer", refuse)
    again = run_contest("saved", small / "street", out, budget=2, seeds=(0, 1), resamples=0)
    assert again.chosen == found.chosen
    assert all(np.array_equal(again.scores[name].scores, found.scores[name].scores) for name in NAMES)
    for changed in ({"budget": 1}, {"names": NAMES[:2]}, {"seeds": (0,)}):
        with pytest.raises(UsageError, match="its test is asked once"):
            run_contest(
                "saved", small / "street", out, **{"budget": 2, "seeds": (0, 1), "resamples": 0, **changed}
            )


@pytest.mark.slow
def test_an_interrupted_contest_goes_on_and_a_failed_configuration_counts(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, asked, answer = ("constant velocity", "logistic"), [], contest._answer

    def broken(name: str, configuration: dict[str, str], *rest: object) -> object:
        asked.append((name, rest[-1]))
        if name == "logistic" and len(asked) == 3:
            raise KeyboardInterrupt
        if configuration.get("middle") == "0.1":
            raise InputError("this one cannot be fitted")
        return answer(name, configuration, *rest)

    monkeypatch.setattr(contest, "_answer", broken)
    with pytest.raises(KeyboardInterrupt):
        run_contest("saved", small / "street", small / "out", names=names, budget=2, resamples=0)
    assert not (small / "out" / TEST).exists()
    found = run_contest("saved", small / "street", small / "out", names=names, budget=2, resamples=0)
    assert asked[3:] == [
        ("logistic", "val"),
        ("logistic", "val"),
        ("constant velocity", "test"),
        ("logistic", "test"),
    ]
    assert [trial.score is None for trial in found.trials["constant velocity"]] == [False, True]
    assert "this one cannot be fitted" in list_choices(found)[1][3]


def test_what_has_no_meaning_is_refused(small: Path) -> None:
    for names, told in ((("nobody",), "nobody is called nobody"), (("logistic", "logistic"), "named once")):
        with pytest.raises(UsageError, match=told):
            run_contest("saved", small / "street", small / "out", names=names)
    assert not (small / "out").exists()
    # The street tells no traffic.
    bad = Contestant("recipe", {"network.fields.traffic": ("true",)}, "logistic-traffic-jaad")
    contest.CONTESTANTS["logistic"] = bad
    with pytest.raises(InputError, match="no configuration could be fitted"):
        run_contest("saved", small / "street", small / "out", names=("logistic",), budget=1)
