"""What a study out of domain says of a cell, and which cells are at home, away or together."""

from __future__ import annotations

import pytest
from away_examples import MODELS, grid, results, value

from roadaware.reports.cross_dataset import build_table_1, build_table_2, find_least
from roadaware.reports.cross_dataset_cells import Study, compute_mean
from roadaware.reports.cross_dataset_figures import (
    ALL,
    OTHERS,
    collect_spreads,
    compute_means,
    find_cell,
    format_row_name,
    list_rows,
    rank_models,
    rank_picture,
)
from roadaware.reports.page import Mark

CITY = "crossing@1+city-b"
PAIR = ("jaad-all", CITY)


def test_seeds_are_averaged_with_their_intervals_and_failures_are_counted() -> None:
    rows = [value("a", "jaad-all", "jaad-all", x, seed=seed) for seed, x in enumerate((0.8, 0.9, None))]
    found = Study(results(rows)).at("a", "jaad-all", "jaad-all", "auc")
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((0.85, 0.83, 0.87))
    assert found.spread == pytest.approx(0.05 * 2**0.5)
    assert (found.seeds, found.failed, found.samples, found.positives) == (2, 1, 100, 25)


def test_one_seed_without_an_interval_takes_the_interval_of_the_mean_away() -> None:
    rows = [value("a", "jaad-all", "jaad-all", 0.8), value("a", "jaad-all", "jaad-all", 0.9, seed=1)]
    rows[1] = (*rows[1][:8], None, None)
    found = Study(results(rows)).at("a", "jaad-all", "jaad-all", "auc")
    assert found is not None
    assert found.value == pytest.approx(0.85)
    assert (found.low, found.high) == (None, None)


def test_nothing_run_and_everything_failed_are_told_apart() -> None:
    study = Study(results([value("a", "jaad-all", "jaad-all", None)]))
    failed = study.at("a", "jaad-all", "jaad-all", "auc")
    assert failed is not None
    assert (failed.value, failed.failed, failed.spread) == (None, 1, None)
    assert study.at("a", "jaad-all", "crossing@1", "auc") is None
    assert study.metrics == ()


def test_errors_are_read_in_the_bins_asked_for_or_in_those_there_are() -> None:
    rows = [value("a", "jaad-all", "jaad-all", 0.1, "ece")]
    rows.append((*rows[0][:6], "reference", 0.2, None, None))
    place = ("a", "jaad-all", "jaad-all", "ece")
    values = [Study(results(rows), bins).at(*place) for bins in ("default", "reference")]
    assert [found and found.value for found in values] == [0.1, 0.2]
    only = Study(results(rows[:1]), "reference").at(*place)
    assert only is not None
    assert only.value == 0.1


def test_training_sets_are_single_joined_or_one_after_the_other_whatever_is_in_their_names() -> None:
    names = ("jaad-all", CITY, f"jaad-all+{CITY}", f"{CITY}>jaad-all")
    study = Study(results([value("a", name, "jaad-all", 0.8) for name in names], PAIR))
    assert study.learnt == PAIR
    assert study.joined == (f"jaad-all+{CITY}",)
    assert study.onward == (f"{CITY}>jaad-all",)
    assert study.tested == ("jaad-all",)
    assert format_row_name(study, CITY) == CITY
    assert format_row_name(study, study.joined[0]) == ALL


def test_home_is_the_same_set_away_another_single_one_and_together_the_largest() -> None:
    domains = ("jaad-all", "crossing@1", "pie")
    trained = {
        "jaad-all": 0.9,
        "crossing@1": 0.7,
        "pie": None,
        "jaad-all+crossing@1": 0.8,
        "jaad-all+crossing@1+pie": 0.85,
        "crossing@1+pie": 0.75,
        "pie>jaad-all": 0.95,
    }
    rows = [value("a", name, "jaad-all", x) for name, x in trained.items()]
    study = Study(results(rows, domains))
    where = ("a", "jaad-all", "auc")
    home, all_sets = study.home(*where), study.ensemble(*where)
    assert home is not None
    assert home.value == 0.9
    assert [(name, found.value) for name, found in study.away(*where)] == [("crossing@1", 0.7)]
    assert all_sets is not None
    assert (all_sets[0], all_sets[1].value) == ("jaad-all+crossing@1+pie", 0.85)
    others = study.ensemble(*where, home=False)
    assert others is not None
    assert (others[0], others[1].value) == ("crossing@1+pie", 0.75)
    assert list_rows(study) == (*domains, "pie>jaad-all", ALL, OTHERS)
    shown = [find_cell(study, "a", row, "jaad-all", "auc") for row in list_rows(study)]
    assert [found and found.value for found in shown] == [0.9, 0.7, None, 0.95, 0.85, 0.75]


def test_spreads_hold_every_cell_once() -> None:
    study = Study(results(grid()))
    by_set, by_model = collect_spreads(study, "auc"), collect_spreads(study, "auc", by="model")
    assert by_set["crossing@1"]["home"] == pytest.approx([0.9, 0.89, 0.88])
    assert sorted(by_set["crossing@1"]["away"]) == pytest.approx([0.68, 0.68, 0.69, 0.69, 0.7, 0.7])
    assert by_model["sfgru"] == {"home": pytest.approx([0.89] * 3), "away": pytest.approx([0.69] * 6)}


def test_means_are_over_test_sets_that_have_all_kinds() -> None:
    rows = [
        value("a", "jaad-all", "jaad-all", 0.9),
        value("a", "crossing@1", "jaad-all", 0.6),
        value("a", "crossing@1", "crossing@1", 0.8),
    ]
    assert compute_means(Study(results(rows)), "a", "auc") == {
        "home": 0.9,
        "away": 0.6,
        "visitors": None,
        "ensemble": None,
    }
    assert compute_mean([]) is None


def test_ways_to_doubt_are_compared_on_the_cells_that_all_of_them_have() -> None:
    """Asked everywhere, the first would have 0.3 at home; where the other was asked it has 0.1."""
    rows = [value("a", name, name, x, "ece") for name, x in (("jaad-all", 0.1), ("crossing@1", 0.5))]
    rows.append(value("a", "jaad-all", "jaad-all", 0.2, "ece", doubt="temperature"))
    study = Study(results(rows))
    assert compute_means(study, "a", "ece")["home"] == pytest.approx(0.3)
    both = study.doubts_of("a")
    assert both == ("deterministic", "temperature")
    assert compute_means(study, "a", "ece", alike=both)["home"] == pytest.approx(0.1)
    assert find_least(study, "a") == {"home": ("deterministic", 0.1)}


def test_ensembles_of_other_members_are_not_compared() -> None:
    rows = []
    for doubt, name in (("deterministic", "jaad-all+crossing@1+pie"), ("temperature", "jaad-all+crossing@1")):
        rows.append(value("a", name, "jaad-all", 0.1, "ece", doubt=doubt))
    study = Study(results(rows, ("jaad-all", "crossing@1", "pie")))
    assert compute_means(study, "a", "ece")["ensemble"] == 0.1
    assert compute_means(study, "a", "ece", alike=study.doubts_of("a"))["ensemble"] is None


def test_models_are_ranked_over_pairs_of_different_sets() -> None:
    found = rank_models(Study(results(grid())), "auc")
    assert found.comparison is not None
    assert found.comparison.ranks == {"boosting": 1.0, "sfgru": 2.0, "steady": 3.0}
    assert len(found.pairs) == found.comparison.sets == 6
    errors = rank_models(Study(results(grid("ece"))), "ece").comparison
    assert errors is not None
    assert next(iter(errors.ranks)) == "steady"  # the least error is best


def test_a_model_that_failed_on_most_pairs_is_left_out_and_one_failure_costs_one_pair() -> None:
    failed = {("steady", "jaad-all"), ("steady", "jaad-behaviour")}
    rows = [row for row in grid() if (row[0], row[1]) not in failed]
    found = rank_models(Study(results(rows)), "auc")
    assert (found.left_out, len(found.pairs)) == (("steady",), 6)
    once = [row for row in grid() if row[:3] != ("steady", "jaad-all", "crossing@1")]
    found = rank_models(Study(results(once)), "auc")
    assert (found.left_out, len(found.pairs)) == ((), 5)
    alone = rank_picture(Study(results(grid(models=("a",)))), "auc")
    assert isinstance(alone, str)
    assert "two models" in alone


def test_printed_numbers_stand_below_those_of_the_same_model_and_test_set() -> None:
    everywhere = "jaad-all+crossing@1"
    domains = ("jaad-all", "crossing@1")
    rows = [
        value(model, everywhere, tested, 0.8 + 0.1 * seed, metric, seed=seed)
        for model in ("single-rnn", "boosting")
        for tested in domains
        for metric in ("auc", "balanced_accuracy", "ece")
        for seed in (0, 1)
    ]
    table = build_table_1(Study(results(rows, domains), "reference"))
    assert table is not None
    said = {}
    tested = ""
    for row in table.rows:
        if len(row) == 1:
            tested = str(row[0]).split(":")[0]
            continue
        said[tested, row[0]] = row
    ours = said["tested on jaad-all", "single-rnn"]
    assert ours[1] == Mark("0.850 ± 0.071", "", "printed 0.66 ± 0.01")
    assert ours[2] == Mark("0.850 ± 0.071")  # no balanced accuracy is printed
    assert ours[3] == Mark("not run", "mute", "printed 0.40 ± 0.02")
    assert said["tested on jaad-all", "boosting"][1] == Mark("0.850 ± 0.071")
    assert said["tested on crossing@1", "single-rnn"][1] == Mark("0.850 ± 0.071")
    assert "mean of models from jaad-all and crossing@1" in table.caption
    assert "not a repetition" in table.caption
    assert "Not tested here: pie and jaad-behaviour" in table.caption
    assert "balanced accuracy" in table.caption


def test_without_a_shared_model_and_test_set_the_table_says_that_nothing_is_printed() -> None:
    rows = [value("boosting", "jaad-all+crossing@1", "crossing@1", 0.8)]
    table = build_table_1(Study(results(rows, ("jaad-all", "crossing@1"))))
    assert table is not None
    assert "No number is printed beside" in table.caption
    assert build_table_1(Study(results(grid()))) is None


def test_ways_to_doubt_stand_beside_those_of_i3d() -> None:
    rows = [
        value("pcpa", name, "jaad-all", 0.7, doubt=doubt)
        for name in ("jaad-all", "jaad-all+crossing@1")
        for doubt in ("deterministic", "last-flipout", "ensemble")
    ]
    study = Study(results(rows))
    table = build_table_2(study, "pcpa")
    assert table is not None
    cells = {row[0]: row[1] for row in table.rows if len(row) > 1}
    assert cells == {
        "as it is, at home": Mark("0.700", "", "printed 0.76 ± 0.03"),
        "as it is, together": Mark("0.700", "", "printed 0.73 ± 0.1"),
        "last-layer Flipout, at home": Mark("0.700", "", "printed 0.77 ± 0.003"),
        "last-layer Flipout, together": Mark("0.700", "", "printed 0.69 ± 0.003"),
        "ensemble over seeds, at home": Mark("0.700"),
        "ensemble over seeds, together": Mark("0.700"),
    }
    assert build_table_2(Study(results(grid())), MODELS[0]) is None
