"""The printed tables on CODA: numbers by hand, sums, and the doubtful ones marked."""

from __future__ import annotations

import polars as pl
import pytest

from roadaware.errors import UsageError
from roadaware.protocols.coda import load_composition, load_printed, select_printed


@pytest.mark.parametrize(
    ("table", "row", "trained_on", "metric", "value"),
    [
        ("2", "Cascade R-CNN", "soda10m", "corner_ar", 8.3),
        ("2", "ORE", "soda10m", "novel_ar10", 2.9),
        ("2", "Cascade Swin", "waymo", "origin_ap", 44.2),
        ("2", "RPN (Cascade)", "bdd100k", "corner_ar10", 3.9),
        ("3", "COPG", None, "corner_ar30_large", 63.9),
        ("3", "Memory-based OOD", None, "corner_ar50_medium", 2.2),
        ("4", "FsDet", None, "classes_ar50", 9.4),
        ("4", "DeFRCN", None, "corner_ar75", 4.2),
        ("8", "Deformable DETR", "waymo", "common_ar50", 52.9),
        ("10", "Sparse R-CNN", "soda10m", "common_ar_small", 70.0),
        ("10", "RetinaNet", "waymo", "novel_ar1", 0.0),
    ],
)
def test_cells_by_hand(table: str, row: str, trained_on: str | None, metric: str, value: float) -> None:
    where = {"trained_on": trained_on} if trained_on else {}
    found = load_printed(table, printed_as=row, metric=metric, **where)
    assert found["value"].to_list() == [value]


def test_every_row_is_there() -> None:
    for table in ("2", "8", "9", "10"):
        rows = load_printed(table).select("printed_as", "trained_on").unique()
        assert dict(rows["trained_on"].value_counts().iter_rows()) == {"soda10m": 9, "bdd100k": 8, "waymo": 8}
    assert len(load_printed("3")) == 16
    few = load_printed("4")
    assert len(few) == 12
    assert few["spread"].to_list() == [0.8, 1.9, 0.8, 0.4, 0.7, 0.3, 1.2, 1.6, 1.6, 0.5, 0.9, 0.5]
    assert load_printed()["spread"].count() == 12
    assert load_printed()["value"].is_between(0, 100).all()


def test_averages_lie_between_what_they_are_averages_of() -> None:
    """AR is a mean over overlaps from 0.5 on, so that no AR is above its AR50; AR10 and AR1 are below AR."""
    wide = (
        load_printed()
        .filter(pl.col("table").is_in(["2", "8"]))
        .pivot("metric", index=["table", "printed_as", "trained_on"], values="value")
    )
    for group in ("corner", "common", "novel"):
        known = wide.drop_nulls(f"{group}_ar")
        assert (known[f"{group}_ar50"] >= known[f"{group}_ar"]).all()
        assert (known[f"{group}_ar10"] <= known[f"{group}_ar"]).all()


def test_the_parts_of_table_1_add_up() -> None:
    rows = {row["row"]: row for row in load_composition().iter_rows(named=True)}
    parts = [rows[f"CODA-{part}"] for part in ("KITTI", "nuScenes", "ONCE")]
    for name in ("scenes", "instances"):
        assert sum(part[name] for part in parts) == rows["CODA"][name]
    assert rows["CODA"]["doubt"] is None
    assert "rough" in rows["StreetHazards"]["doubt"]


def test_doubtful_numbers_are_marked() -> None:
    doubtful = load_printed().filter(pl.col("doubt").is_not_null())
    faster = doubtful.filter(pl.col("table") == "2").select("printed_as", "trained_on", "metric").rows()
    assert faster == [("Faster R-CNN", "waymo", "corner_ar")]
    repeated = load_printed("9", trained_on="waymo")
    assert repeated["doubt"].null_count() == 0
    # They are Table 8's, AR50 and AR75 standing where the recalls of medium and large objects should.
    eight = load_printed("8", trained_on="waymo", printed_as="Sparse R-CNN")
    nine = load_printed("9", trained_on="waymo", printed_as="Sparse R-CNN")
    assert nine["value"].to_list() == eight["value"].to_list()


def test_what_stands_beside_a_result() -> None:
    rows = select_printed("soda10m", classes=True, domains={"once", "kitti"})
    assert {row["row"] for row in rows} >= {"RetinaNet", "ORE"}
    assert all(not row["row"].startswith("RPN") and row["table"] == "2 and 10" for row in rows)
    retina = next(row for row in rows if row["row"] == "RetinaNet")
    assert retina["values"]["corner_ar"] == 0.119
    assert retina["values"]["corner_ar_large"] == 0.206
    assert not any(metric.startswith("origin") for metric in retina["values"])
    proposals = select_printed(None, classes=False, domains={None})
    assert len(proposals) == 6
    once = select_printed("waymo", classes=True, domains={"once"})
    assert once[0]["table"] == "8 and 9"
    assert {row["row"] for row in select_printed("waymo", classes=True, domains={"kitti"})} >= {"COPG"}
    faster = next(row for row in select_printed("waymo", classes=True, domains={None}) if row["doubts"])
    assert set(faster["doubts"]) == {"corner_ar", "common_ar_medium"}


def test_refusals() -> None:
    with pytest.raises(UsageError, match="no printed results 11"):
        load_printed("11")
    with pytest.raises(UsageError, match="no column colour"):
        load_printed("2", colour="red")
