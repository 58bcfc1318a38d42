"""The IV 2022 paper's tables as data: complete, known to the registry, and as its text tells them."""

from __future__ import annotations

import polars as pl
import pytest

from roadaware.errors import UsageError
from roadaware.models import CROSSING
from roadaware.protocols.cross_dataset.config import DOUBTS
from roadaware.protocols.printed_iv2022 import COLUMNS, DOMAINS, ENSEMBLE, HOME, RANDOM, load_printed

SIX = (RANDOM, "Deterministic", "MC Dropout", "TempScaling", "LL Dropout", "LL SVI")


def test_every_row_has_four_metrics_on_three_sets() -> None:
    assert load_printed().schema == pl.Schema(COLUMNS)
    assert load_printed("I").group_by("printed_as").len()["len"].to_list() == [12] * 11
    assert load_printed("II").group_by("printed_as").len()["len"].to_list() == [12] * 12
    key = ["table", "printed_as", "tested_on", "metric"]
    assert not load_printed().select(key).is_duplicated().any()
    assert set(load_printed()["tested_on"]) == set(DOMAINS.values())


def test_models_and_ways_to_doubt_are_those_of_the_project() -> None:
    assert set(load_printed()["model"]) <= set(CROSSING)
    assert set(load_printed("II")["doubt"]) == set(DOUBTS) - {"ensemble"}
    assert (
        load_printed().null_count().sum_horizontal().sum() == load_printed("I").height
    )  # `pretrained` alone
    assert load_printed()["value"].is_between(0, 1).all()


@pytest.mark.parametrize(
    ("table", "row", "tested_on", "metric", "value", "spread"),
    [
        ("I", "VGG16 [8]", "pie", "auc", 0.52, 0.02),
        ("I", "C3D [12]", "jaad-behaviour", "f1", 0.73, 0.01),
        ("I", "MultiRNN [24]", "jaad-all", "mce", 0.378, 0.03),
        ("I", "TrouSPI-net [19]", "jaad-all", "mce", 0.41, 0.03),
        ("I", "Spi-Net [18]", "jaad-all", "ece", 0.22, 0.02),
        ("II", "Non-pretrained", "pie", "auc", 0.55, 0.04),
        ("II", "Ens-Deterministic", "jaad-all", "auc", 0.73, 0.1),
        ("II", "Ens-Nonpretrained", "jaad-behaviour", "mce", 0.644, 0.152),
        ("II", "LL Dropout", "jaad-all", "f1", 0.62, 0.003),
        ("II", "Ens-LL SVI", "jaad-all", "mce", 0.133, 0.016),
    ],
)
def test_spot_values_are_the_printed_ones(
    table: str, row: str, tested_on: str, metric: str, value: float, spread: float
) -> None:
    found = load_printed(table, printed_as=row, tested_on=tested_on, metric=metric)
    assert found.select("value", "spread").rows() == [(value, spread)]


def test_mean_calibration_errors_are_those_of_the_papers_text() -> None:
    """Section IV-B lists them at home and of the ensembles, in the order of the rows."""
    told = {
        HOME: [0.166, 0.074, 0.056, 0.042, 0.079, 0.070],
        ENSEMBLE: [0.096, 0.077, 0.078, 0.085, 0.077, 0.042],
    }
    for learnt, values in told.items():
        rows = load_printed("II", trained_on=learnt, metric="ece")
        means = rows.group_by("printed_as", maintain_order=True).agg(pl.col("value").mean())["value"]
        assert means.to_list() == pytest.approx(values, abs=0.001)


def test_rows_of_table_2_are_told_apart_by_doubt_training_and_weights() -> None:
    rows = load_printed("II").select("doubt", "trained_on", "pretrained", "printed_as").unique()
    assert len(rows) == 2 * len(SIX)
    assert not rows.select("doubt", "trained_on", "pretrained").is_duplicated().any()
    random = set(load_printed("II", pretrained=False)["printed_as"])
    assert random == {"Non-pretrained", "Ens-Nonpretrained"}


def test_the_two_tables_nearly_agree_on_the_ensemble_of_i3d() -> None:
    """They print other runs: 0.74 and 0.73, 0.48 and 0.49."""
    one = load_printed("I", model="i3d").select("tested_on", "metric", first="value")
    two = load_printed("II", printed_as="Ens-Deterministic").select("tested_on", "metric", second="value")
    both = one.join(two, on=["tested_on", "metric"])
    assert len(both) == 12
    assert (both["first"] - both["second"]).abs().max() <= 0.0121


def test_an_unknown_table_or_column_is_refused() -> None:
    with pytest.raises(UsageError, match="there are I and II"):
        load_printed("III")
    with pytest.raises(UsageError, match="no column metrics"):
        load_printed("I", metrics="auc")
