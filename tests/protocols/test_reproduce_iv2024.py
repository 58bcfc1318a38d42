"""The paper reproduced on the real data, and what happens where data are missing or do not fit."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.datasets import read
from roadaware.errors import DatasetNotFoundError, InputError
from roadaware.protocols import iv2024
from roadaware.protocols.iv2024 import evaluate_released, reproduce
from roadaware.protocols.printed_iv2024 import TABLE_I
from roadaware.scenes.sampling import Iv2024, sample

sys.path.insert(0, str(Path(__file__).parents[1] / "scenes" / "sampling"))
from made import Pedestrian, Place, scenes

ROOT = os.environ.get("ROADAWARE_DATA_DIR")
real = pytest.mark.skipif(ROOT is None, reason="ROADAWARE_DATA_DIR is unset: no real annotations")


@pytest.fixture(scope="module")
def whole():
    return reproduce(Path(ROOT), baselines=False)


def statuses(reproduction, table, dataset, model="PedFormer", group=False):
    return [
        cell.status
        for cell in reproduction.cells
        if (cell.table, cell.dataset, cell.model) == (table, dataset, model)
        and cell.task == {"II": "intention", "III": "action", "IV": "intention", "VI": "risk"}[table]
        and (not group or cell.group.startswith(group))
    ]


@real
def test_table_vi_on_jaad_is_reproduced_in_every_cell(whole):
    assert statuses(whole, "VI", "jaad") == ["match"] * 19


@real
def test_table_iii_on_jaad_is_reproduced_but_for_two_swapped_cells(whole):
    held = statuses(whole, "III", "jaad")
    assert sorted(held) == ["match"] * 17 + ["swapped_in_print"] * 2
    swapped = {cell.metric: cell for cell in whole.cells if cell.status == "swapped_in_print"}
    assert set(swapped) == {"hard_precision", "hard_f1"}
    assert swapped["hard_f1"].as_dict()["as_printed"] == swapped["hard_precision"].printed == 0.32


@real
def test_table_ii_and_the_roads_of_table_iv_match_under_the_declared_assumption(whole):
    assert statuses(whole, "II", "pie") == ["match_under_assumption"] * 16
    assert statuses(whole, "IV", "pie", group="road") == ["match_under_assumption"] * 2
    roads = [c for c in whole.cells if c.table == "IV" and c.obtained is not None]
    assert [cell.why.split("; ")[-1] for cell in roads] == [
        "325/215/1189 samples per class, as printed",
        "431/620/3692 samples per class, as printed",
    ]


@real
def test_every_assumed_cell_shows_its_range_and_says_what_is_assumed(whole):
    for cell in whole.cells:
        if cell.status == "match_under_assumption":
            assert cell.low <= cell.obtained <= cell.high
            assert "pedestrian 3_7_506" in cell.why
            assert "88 choices" in cell.why
            assert ("confirms nothing" in cell.why) == cell.metric.startswith("confidence_delta")


@real
def test_rounding_twice_gives_the_printed_digits_of_every_reproduced_cell(whole):
    for cell in whole.cells:
        if cell.status in ("match", "match_under_assumption"):
            assert cell.as_dict()["as_printed"] == cell.printed


@real
def test_everything_else_says_what_is_missing(whole):
    others = [cell for cell in whole.cells if cell.status == "not_reproducible"]
    assert all(cell.obtained is None and cell.why for cell in others)
    assert whole.counts == {
        "match": 36,
        "match_under_assumption": 18,
        "differs": 0,
        "swapped_in_print": 2,
        "not_reproducible": 400,
    }
    assert "box annotations" in whole.reasons["pie-action@iv2024"]


@real
def test_the_result_is_json_with_its_configs(whole):
    data = json.loads(json.dumps(whole.as_dict()))
    assert {"cells", "counts"} <= set(data)
    assert data["counts"] == whole.counts
    config = data["configs"]["jaad-action@iv2024"]
    assert config["sampling"]["crosser_without_event"] == "third_last"
    assert config["metrics"]["hard_vote"] == "mean"


@pytest.mark.slow
@real
def test_twice_gives_the_same_bytes(whole):
    again = reproduce(Path(ROOT), baselines=False)
    assert json.dumps(again.as_dict()) == json.dumps(whole.as_dict())


PLACES = [
    Place("set01/video_0001", ("default/train",)),
    Place("set05/video_0001", ("default/val",)),
    Place("set03/video_0001", ("default/test",)),
]


def people(place, n):
    """Pedestrians of one video, with events, boxes that move, and answers in every class."""
    return [
        Pedestrian(
            f"0_{i}b",
            range(120 + i),
            "crossing" if i % 2 else "not-crossing",
            event=119,
            video=place,
            left=[100.0 * i + j for j in range(120 + i)],
            start=5,
            critical=40,
            probability=(i % 3) / 2,
        )
        for i in range(n)
    ]


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder of score files that fit two small datasets; returns it with the datasets read."""
    tracks = [p for place in PLACES for p in people(place.video, 6)]
    held = {name: scenes(tracks, PLACES, dataset=name.upper()) for name in ("jaad", "pie")}

    def read(name, root, **_):
        if name not in held:
            raise DatasetNotFoundError(f"{name} is not in {root.name}")
        return held[name]

    monkeypatch.setattr(iv2024, "read", read)
    (tmp_path / "pie").mkdir()
    rng = np.random.default_rng(0)
    rows = {("action", "jaad"): (42, 1), ("risk", "jaad"): (42, 12), ("intention", "pie"): (24, 3)}
    rows |= {("action", "pie"): (42, 1), ("risk", "pie"): (42, 12)}
    for (task, dataset), shape in rows.items():
        scores = rng.random(shape)
        scores = scores if shape[1] == 1 else scores / scores.sum(axis=1, keepdims=True)
        np.savetxt(tmp_path / "pie" / f"pf_{task}_{dataset}.csv", scores, delimiter=",")
    return tmp_path, held


def test_with_boxes_every_question_is_asked_and_nothing_is_assumed(small):
    result = reproduce(small[0], baselines=False)
    assert len(result.questions) == 5
    assert not result.reasons
    assert not any(question.assumption for question in result.questions.values())
    obtained = {(cell.table, cell.dataset) for cell in result.cells if cell.obtained is not None}
    assert {("II", "pie"), ("III", "jaad"), ("III", "pie"), ("VI", "jaad"), ("VI", "pie")} <= obtained
    differing = [cell for cell in result.cells if cell.status == "differs"]
    assert all(cell.why.startswith("outside the rounding of print") for cell in differing)
    assert len(differing) > 40


@pytest.mark.slow
def test_given_baselines_stand_beside(small):
    class Other:
        metrics = reproduce(small[0], baselines=False).questions["jaad-action@iv2024"].metrics

    tasks = ("jaad-risk", "pie-intention", "pie-action", "pie-risk")
    given = {"jaad-action@iv2024": {"other": Other}, **{f"{task}@iv2024": {} for task in tasks}}
    result = reproduce(small[0], baselines=given)
    cell = next(c for c in result.cells if (c.table, c.dataset, c.model) == ("III", "jaad", "PedFormer"))
    assert cell.beside == {"other": cell.obtained}


def test_intervals_are_shown_where_they_are_asked_for(small):
    result = reproduce(small[0], baselines=False, resamples=20)
    cell = next(c for c in result.cells if c.metric == "accuracy" and c.table == "III" and c.obtained)
    assert cell.intervals["low_pedestrian"] <= cell.obtained <= cell.intervals["high_pedestrian"]


def test_missing_scores_and_datasets_are_reasons(small):
    folder, held = small
    (folder / "pie" / "pf_risk_jaad.csv").unlink()
    del held["pie"]
    result = reproduce(folder, baselines=False)
    assert list(result.questions) == ["jaad-action@iv2024"]
    assert "pf_risk_jaad.csv are not in" in result.reasons["jaad-risk@iv2024"]
    assert "annotations of PIE are not at hand" in result.reasons["pie-intention@iv2024"]
    del held["jaad"]
    with pytest.raises(DatasetNotFoundError, match="neither JAAD nor PIE"):
        reproduce(folder, baselines=False)


def test_scores_that_do_not_fit_are_refused(small):
    folder, _ = small
    path = folder / "pie" / "pf_action_jaad.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(InputError, match="expected 42 rows, one per test sample, found 41") as caught:
        reproduce(folder, baselines=False)
    assert "pf_action_jaad.csv" in str(caught.value)


def test_no_gap_but_the_printed_one_is_assumed(small, monkeypatch):
    folder, held = small
    held["pie"] = held["pie"].with_tables(boxes=held["pie"].boxes.clear())
    path = folder / "pie" / "pf_intention_pie.csv"
    lines = path.read_text().splitlines(keepends=True)
    tests = sample(held["pie"], Iv2024.reference("intention", "pie")).samples.filter(
        pl.col("split") == "test"
    )
    assert len(tests) == 24
    counts = np.bincount(tests["label"], minlength=3)
    path.write_text("".join(lines[:-1]))
    for lacking in (0, 2):
        printed = {**TABLE_I["pie", "intention"], "test": tuple(counts - [0, lacking, 0])}
        monkeypatch.setitem(TABLE_I, ("pie", "intention"), printed)
        with pytest.raises(InputError, match="expected 24 rows, one per test sample, found 23"):
            reproduce(folder, baselines=False)
    path.write_text("".join(lines[:-2]))
    assert (
        "2 samples fewer" in reproduce(folder, baselines=False).questions["pie-intention@iv2024"].assumption
    )


@real
@pytest.mark.parametrize("lost", [1, 2, 4])
def test_released_scores_cut_short_are_not_scored(tmp_path, lost):
    path = tmp_path / "pf_intention_pie.csv"
    released = (Path(ROOT) / "pie" / path.name).read_text().splitlines(keepends=True)
    path.write_text("".join(released[:-lost]))
    with pytest.raises(InputError, match=rf"expected 6475 rows, one per test sample, found {6472 - lost}"):
        evaluate_released(read("pie", Path(ROOT) / "pie"), "pie", "intention", path)


def test_progress_ends_at_its_total(small):
    seen = []
    reproduce(small[0], baselines=False, progress=lambda done, total, what: seen.append((done, total)))
    assert seen == [(done, 7) for done in range(1, 8)]


def test_the_samples_of_a_question_are_those_that_the_scores_answer(small):
    question = reproduce(small[0], baselines=False).questions["pie-intention@iv2024"]
    test = question.scenes.samples.filter(pl.col("split") == "test")
    assert question.predictions.samples["sample"].to_list() == test["sample"].to_list()
