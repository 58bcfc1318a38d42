"""Images and page of a study out of domain: drawn from the table, whole where much is missing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from away_examples import DOMAINS, grid, results, study, value
from lxml import html

from roadaware.protocols.cross_dataset.config import Cell, CrossResults
from roadaware.reports.cross_dataset import format_cross_results, render_cross_dataset
from roadaware.reports.cross_dataset_cells import Study
from roadaware.reports.cross_dataset_figures import (
    _luminance,
    build_matrix_table,
    collect_lines,
    plot_distributions,
    plot_heat_maps,
    plot_reliability_by_set,
    plot_summary,
    plot_test_sets,
)
from roadaware.reports.cross_dataset_sections import Resamples, _verdict, compute_effects
from roadaware.reports.page import SCRIPT, Filterable, Mark, Picture

PAIR = ("jaad-all", "crossing@1")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> CrossResults:
    """Two models on two domains, twice, with two uncertainty methods and pre-training, and their scores."""
    return study(
        tmp_path_factory.mktemp("away"),
        models=("boosting", "single-rnn"),
        domains=PAIR,
        seeds=2,
        people=24,
        doubts=("deterministic", "temperature"),
        onward=("crossing@1>jaad-all",),
    )


def _dots(picture: Picture | None, marker: str) -> list[float]:
    """Where the marks of a kind stand, left to right."""
    assert picture is not None
    drawn = [line for axes in picture.figure.axes for line in axes.get_lines()]
    return sorted(float(line.get_xdata()[0]) for line in drawn if line.get_marker() == marker)


def _texts(picture: Picture | None) -> list[str]:
    assert picture is not None
    return [text.get_text() for axes in picture.figure.axes for text in axes.texts]


def _shown(page: str) -> str:
    return " ".join(html.document_fromstring(page).text_content().split())


def test_every_cell_is_a_mark_at_its_value() -> None:
    rows = [value("a", "jaad-all", "jaad-all", 0.9), value("a", "crossing@1", "jaad-all", 0.6)]
    rows += [value("b", "jaad-all", "jaad-all", 0.8), value("b", "crossing@1", "jaad-all", None)]
    rows.append(value("a", "jaad-all+crossing@1", "jaad-all", 0.75))
    found = Study(results(rows, PAIR))
    for picture in (plot_test_sets(found, "auc"), plot_distributions(found, "auc")):
        assert _dots(picture, "o") == [0.8, 0.9]
        assert _dots(picture, "s") == [0.6]
    assert _dots(plot_test_sets(found, "auc"), "D") == [0.75]
    assert _dots(plot_distributions(found, "auc", by="model"), "o") == [0.8, 0.9]
    assert _dots(plot_summary(found, ("auc", "ece")), "D") == [0.75]


def test_the_middle_half_is_drawn_from_five_dots_on() -> None:
    values = [0.5, 0.6, 0.7, 0.8, 0.9]
    rows = [value(str(k), "jaad-all", "jaad-all", x) for k, x in enumerate(values)]
    boxes = []
    for kept in (rows[1:], rows):
        picture = plot_distributions(Study(results(kept, PAIR)), "auc")
        assert picture is not None
        boxes.append([box for box in picture.figure.axes[0].patches if box.get_height() < 0.5])
    none, (box,) = boxes
    assert none == []
    assert (box.get_x(), box.get_x() + box.get_width()) == pytest.approx((0.6, 0.8))
    assert "0.700 at home" in picture.caption


def test_a_map_says_what_its_cells_are_and_which_failed() -> None:
    rows = [value("a", "jaad-all", "jaad-all", 0.91), value("a", "crossing@1", "jaad-all", None)]
    rows.append(value("a", "jaad-all", "crossing@1", 0.62))
    picture = plot_heat_maps(Study(results(rows, PAIR)), "auc")
    assert sorted(_texts(picture)) == ["0.62", "0.91", "·", "×"]
    assert picture is not None
    assert "A jaad-all, B crossing@1" in picture.caption
    assert "framed cells 0.910" in picture.caption.lower()


def test_the_mean_of_all_models_is_there_where_all_have_a_value() -> None:
    rows = [value("a", "jaad-all", "jaad-all", 0.9), value("b", "jaad-all", "jaad-all", 0.7)]
    rows.append(value("a", "jaad-all", "crossing@1", 0.6))
    picture = plot_heat_maps(Study(results(rows, PAIR)), "auc")
    assert picture is not None
    first = [text.get_text() for text in picture.figure.axes[0].texts]
    assert first == ["0.80", "·"]


def test_luminance_is_that_of_the_accessibility_guidelines() -> None:
    assert _luminance((1, 1, 1)) == pytest.approx(1)
    assert _luminance((0, 0, 0)) == 0
    assert _luminance((0.5, 0.5, 0.5)) == pytest.approx(0.2140, abs=1e-3)


def test_the_table_has_every_cell_with_its_interval_and_can_be_narrowed_down() -> None:
    found = build_matrix_table(Study(results(grid())))
    assert isinstance(found, Filterable)
    assert len(found.table.rows) == 27
    assert found.table.rows[1][3] == Mark("0.700", "", "0.680 to 0.720")
    assert [one.choices for one in found.filters] == [("boosting", "sfgru", "steady"), DOMAINS]
    many = [f"m{k}" for k in range(30)]
    assert not isinstance(build_matrix_table(Study(results(grid(models=many)))), Filterable)


def test_lines_of_reliability_hold_the_answers_of_all_seeds(small: CrossResults) -> None:
    held = collect_lines(Study(small), "boosting", "jaad-all", PAIR)
    assert list(held) == list(PAIR)
    states = [small.scores(Cell("boosting", "crossing@1", "jaad-all", seed)) for seed in (0, 1)]
    p = np.concatenate([state.scores[:, 0] for state in states])
    y = np.concatenate([state.truth for state in states])
    sure, right = np.maximum(p, 1 - p), (p > 0.5) == y
    assert held["crossing@1"].overconfidence == pytest.approx((sure - right).mean())
    assert held["crossing@1"].ends.shape == (len(held["crossing@1"].accuracy), 2)
    picture = plot_reliability_by_set(Study(small), "boosting")
    assert picture is not None
    assert "jaad-all" in picture.caption


def test_the_effect_of_pretraining_is_the_mean_over_seeds_of_the_paired_difference(
    small: CrossResults,
) -> None:
    found = compute_effects(Resamples(Study(small), 60), "auc")
    assert [(one.model, one.trained_on, one.seeds) for one in found] == [
        ("boosting", "crossing@1>jaad-all", 2),
        ("single-rnn", "crossing@1>jaad-all", 2),
    ]
    study_ = Study(small)
    after = [
        dict(study_.by_seed("boosting", name, "jaad-all", "auc"))
        for name in (found[0].trained_on, "jaad-all")
    ]
    assert found[0].difference == pytest.approx(np.mean([after[0][k] - after[1][k] for k in (0, 1)]))
    low, high, *_ = found[0].ends
    assert low is not None
    assert high is not None
    assert low <= found[0].difference <= high


def test_what_pretraining_does_not_change_is_not_different_and_less_error_is_better() -> None:
    rows = [value("a", "jaad-all", "jaad-all", 0.2), value("a", "pie>jaad-all", "jaad-all", 0.1)]
    (found,) = compute_effects(Resamples(Study(results(rows))), "auc")  # without scores
    assert (found.verdict, found.difference) == ("no interval", pytest.approx(-0.1))
    assert _verdict((0.1, 0.2, 0.05, 0.3), "auc") == "better"
    assert _verdict((0.1, 0.2, 0.05, 0.3), "ece") == "worse"
    assert _verdict((-0.2, -0.1, None, None), "brier") == "better"
    assert _verdict((0.1, 0.2, -0.05, 0.3), "auc") == "not different"
    failed = [value("a", "jaad-all", "jaad-all", None), value("a", "pie>jaad-all", "jaad-all", 0.9)]
    (found,) = compute_effects(Resamples(Study(results(failed))), "auc")
    assert (found.difference, found.seeds) == (None, 0)


@pytest.mark.slow
def test_the_page_needs_no_script_and_no_network_and_says_what_was_found(small: CrossResults) -> None:
    page = render_cross_dataset(small, resamples=40)
    tree = html.document_fromstring(page)
    assert tree.xpath("//script/text()") == [SCRIPT]
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page)
    assert not re.findall(r'\son\w+="', page)
    heads = [head.text_content() for head in tree.xpath("//h2")]
    assert heads[1:] == [
        "What was run",
        "Home and away",
        "Training set by test set",
        "Ensembles over training sets",
        "Calibration out of domain",
        "Ranks out of domain",
        "Uncertainty methods",
        "What pre-training gives",
    ]
    said = _shown(page)
    home, away = (np.mean(_of(small, same)) for same in (True, False))
    assert f"Mean AUC is {home:.3f} at home and {away:.3f} away" in said
    assert "temperature scaling" in said
    assert "printed 0.66 ± 0.01" in said
    assert "Pre-trained minus from scratch" in said
    drawn = [text.text_content() for text in tree.xpath("//figure/h4")]
    assert len(drawn) == len(set(drawn)) >= 15


def _of(given: CrossResults, same: bool) -> list[float]:
    rows = given.table.filter((given.table["metric"] == "auc") & (given.table["doubt"] == "deterministic"))
    return [
        row["value"]
        for row in rows.iter_rows(named=True)
        if row["trained_on"] in PAIR and (row["trained_on"] == row["tested_on"]) == same
    ]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "No cell of the study has a value yet"),
        ([value("a", "jaad-all", "jaad-all", None)], "No cell of the study has a value yet"),
        ([value("a", "jaad-all", "jaad-all", 0.9)], "ranks need two models and two pairs"),
        ([value("a", "jaad-all", "jaad-all", 0.9, "f1")], "No cell has a value of AUC or ECE"),
        ([value("a", "jaad-all", "crossing@1", 0.4)], "1 of 1 cells away rank worse than chance"),
        ([value("a", "pie>jaad-all", "jaad-all", 0.4, "ece")], "nothing to compare"),
    ],
    ids=["empty", "failed", "one cell", "another metric", "away alone", "pre-training alone"],
)
def test_what_is_missing_is_said_in_words(rows: list[tuple[Any, ...]], words: str) -> None:
    given = results(rows)
    given.study["failed"] = {f"a jaad-all {k}": "<b>loss is NaN</b>" for k in range(13)}
    given.study["skipped"] = {"pie": "nothing says where pie lies"}
    said = _shown(render_cross_dataset(given))
    assert words in said
    assert "a jaad-all 0: <b>loss is NaN</b>" in said
    assert "and 1 more" in said
    assert "pie: nothing says where pie lies" in said
    told = format_cross_results(given)
    assert "a jaad-all 0: <b>loss is NaN</b>" in told
    assert "nothing says where pie lies" in told


def test_the_console_has_means_matrix_and_ranks() -> None:
    rows = [*grid(), value("late", "jaad-all", "jaad-all", None)]
    rows.append(value("boosting", "jaad-behaviour+jaad-all+crossing@1", "crossing@1", 0.85))
    given = results(rows)
    given.study["unfinished"] = 7
    told = format_cross_results(given)
    lines_ = {line.split()[0]: line.split() for line in told.splitlines() if line.startswith("sfgru")}
    assert "4 models, trained on 3 and tested on 3 domains" in told
    assert lines_["sfgru"][:3] == ["sfgru", "crossing@1", "0.690"]
    assert "0.850 [0.830, 0.870]" in told
    assert "failed" in told
    assert "AUC: boosting 1.00, sfgru 2.00, steady 3.00; Friedman p" in told
    assert "7 cells are not finished" in told


def test_names_from_elsewhere_stay_text() -> None:
    name = "<script>x</script>$\\frac$"
    given = results([value(name, name, name, 0.9)], (name,))
    tree = html.document_fromstring(render_cross_dataset(given))
    assert tree.xpath("//script/text()") == [SCRIPT]
    assert "\x1b" not in format_cross_results(results([value("\x1b[2J", "jaad-all", "jaad-all", 0.9)]))
