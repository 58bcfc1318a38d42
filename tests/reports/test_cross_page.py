"""The page on predictors out of domain says what the kept results say."""

from __future__ import annotations

import runpy
from pathlib import Path

import polars as pl
import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def script() -> dict:
    return runpy.run_path(str(DOCS / "cross_dataset.py"))


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    return pl.read_csv(DOCS / "cross_dataset.csv")


@pytest.fixture(scope="module")
def page() -> str:
    return (DOCS / "cross_dataset.md").read_text("utf-8")


def test_the_tables_are_what_the_results_make_of_them(script, table, page) -> None:
    """`python docs/cross_dataset.py` writes them again."""
    assert script["whole"](page, table) == page


def test_the_text_counts_cells_below_chance_as_the_results_do(script, table, page) -> None:
    below, surely, whole = script["below_chance"](script["Held"](table))
    assert f"{below} of {whole} cells rank worse than chance, in {surely} of them beyond" in page


@pytest.mark.parametrize(
    ("model", "trained", "metric", "told"),
    [
        ("every model", "home less away", "auc", "by {0:.3f} [{1:.3f}, {2:.3f}]"),
        ("every model", "home less away", "ece", "by {3:.3f}\n[{5:.3f}, {4:.3f}]"),
        ("tabular less networks", "away", "auc", "rank {0:.3f} [{1:.3f}, {2:.3f}] better"),
        ("tabular less networks", "away", "ece", "ECE is {3:.3f} [{5:.3f}, {4:.3f}] lower"),
        ("tabular less networks", "home", "auc", "({0:.3f} [{1:.3f}, {2:.3f}])"),
    ],
)
def test_the_text_has_the_differences_of_the_results(table, page, model, trained, metric, told) -> None:
    found = table.filter(model=model, trained_on=trained, metric=metric)
    ends = found.select("value", "low", "high").row(0)
    assert told.format(*ends, *(-end for end in ends)) in page


PLAIN, MC, HEAT = "deterministic", "mc-dropout", "temperature"
OTHERS, ALL = "others together", "all together"


def test_the_text_says_what_doubt_is_worth_as_the_results_do(script, table, page) -> None:
    text, held = " ".join(page.split()), script["Held"](table)

    def ece(model: str, doubt: str, where: str) -> str:
        return f"{held.doubted(model, doubt, where, 'ece'):.3f}"

    def pair(where: str, doubt: str) -> str:
        return f"{ece('steady', doubt, where)} and {ece('pcpa', doubt, where)}"

    def cell(doubt: str, trained: str, tested: str) -> float:
        return float(held.at("steady", trained, tested, "ece", doubt=doubt, study="doubt")["value"])

    for told in (
        f"{ece('steady', HEAT, 'home')} instead of {ece('steady', PLAIN, 'home')} for `steady`",
        f"{ece('pcpa', HEAT, 'home')} instead of {ece('pcpa', PLAIN, 'home')} for PCPA",
        f"helps `steady` ({ece('steady', HEAT, 'away')} instead of {ece('steady', PLAIN, 'away')})",
        f"harms PCPA ({ece('pcpa', HEAT, 'away')} instead of {ece('pcpa', PLAIN, 'away')}",
        f"MC dropout lowers the mean away ({pair('away', MC)})",
        f"({cell(MC, 'jaad-behaviour', 'crossing@1'):.3f} instead of "
        f"{cell(PLAIN, 'jaad-behaviour', 'crossing@1'):.3f})",
        f"({ece('steady', MC, ALL)} instead of {ece('steady', PLAIN, ALL)}; on crossing@1 "
        f"{cell(MC, ALL, 'crossing@1'):.3f} instead of {cell(PLAIN, ALL, 'crossing@1'):.3f})",
        f"`steady` a little worse away ({ece('steady', 'last-dropout', 'away')} and "
        f"{ece('steady', 'last-flipout', 'away')})",
        f"as MC dropout there ({pair('away', 'ensemble')})",
        f"({ece('pcpa', 'ensemble', ALL)} instead of {ece('pcpa', PLAIN, ALL)})",
        f"ECE {pair(ALL, PLAIN)} with the tested set among them, {pair(OTHERS, PLAIN)} without it",
        f"makes {pair(ALL, HEAT)} of the former, and {pair(OTHERS, HEAT)} of the latter",
        f"a fifth ({ece('steady', HEAT, 'away')})",
        f"a quarter ({ece('steady', PLAIN, OTHERS)}), both together a third ({ece('steady', HEAT, OTHERS)})",
    ):
        assert told in text


def test_the_text_counts_where_mc_dropout_lowers_the_error(script, table, page) -> None:
    held = script["Held"](table)
    cells = [each for model in ("steady", "pcpa") for each in held.doubted_at(model, "away")]
    better = sum(
        held.at(*each, "ece", doubt=MC, study="doubt")["value"]
        < held.at(*each, "ece", doubt=PLAIN, study="doubt")["value"]
        for each in cells
    )
    assert f"in {better} of the {len(cells)} cells" in page


def test_the_text_says_what_sets_together_give_back_as_the_results_do(script, table, page) -> None:
    text, held = " ".join(page.split()), script["Held"](table)
    auc = {
        model: [held.mean(model, where, "auc") for where in ("home", "away", ALL, OTHERS)]
        for model in script["MODELS"]
    }
    back = {model: (both - away) / (home - away) for model, (home, away, both, _) in auc.items()}
    alone = {model: (other - away) / (home - away) for model, (home, away, _, other) in auc.items()}
    usual = sorted(share for model, share in back.items() if model != "boosting")
    assert f"({usual[0]:.2f} to {usual[-1]:.2f} of it, and more than all for boosting)" in text
    assert min(back["boosting"], alone["boosting"]) > 1
    networks = sorted(alone[model] for model in alone if model not in ("boosting", "logistic"))
    assert f"the networks {networks[0]:.2f} to {networks[-1]:.2f} of it" in text
    home, away, _, other = auc["logistic"]
    assert f"({other:.3f}, of {home:.3f} in-domain and {away:.3f} cross-dataset)" in text
    assert alone["logistic"] == pytest.approx(1 / 3, abs=0.03)
    errors = [held.mean("pcpa", where, "ece") for where in (ALL, "home", "away")]
    assert "ECE {:.3f}, of {:.3f} in-domain and {:.3f} cross-dataset".format(*errors) in text


def test_what_comes_along_is_described_by_the_same_results(script, table) -> None:
    held, page = script["Held"](table), " ".join((DOCS / "watch.md").read_text("utf-8").split())
    away, home, together = (held.mean("steady", where, "ece") for where in ("away", "home", ALL))
    assert f"an ECE of {away:.3f} instead of {home:.3f}" in page
    assert f"averaged with theirs ({together:.3f})" in page


def test_the_results_keep_one_row_for_each_place(script, table) -> None:
    assert not table.select(script["KEY"]).is_duplicated().any()
    assert (DOCS / "cross_dataset.csv").stat().st_size < 300_000
