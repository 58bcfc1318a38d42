"""The ROAD paper's tables as data: complete, in the file's spelling, and as consistent as their print."""

from __future__ import annotations

import polars as pl
import pytest

from roadaware.demo_data import road as terms
from roadaware.errors import UsageError
from roadaware.protocols.tpami22 import AVERAGED, COLUMNS, list_tables, load_printed

SPLITS = ("val_1", "val_2", "val_3", "test")
COUNTED = {"15": "agent", "16": "action", "17": "location", "18": "av_action", "19": "duplex", "20": "event"}
CLASSWISE = {"21": ("agent", "action", "location", "av_action"), "22": ("duplex",), "23": ("event",)}


def value(table: int, **where: str | None) -> float | None:
    found = load_printed(table, **where)
    assert len(found) == 1, found
    return found["value"][0]


def test_every_table_that_holds_numbers_of_interest_is_here() -> None:
    assert set(list_tables()) == {str(n) for n in (3, *range(5, 11), *range(15, 26))}
    assert load_printed().schema == pl.Schema(COLUMNS)


def test_no_number_is_there_twice() -> None:
    key = [c for c in COLUMNS if c not in ("value", "note")]
    assert load_printed().select(key).is_duplicated().sum() == 0


def test_a_number_that_could_not_be_read_says_so_and_few_could_not() -> None:
    unread = load_printed().filter(pl.col("value").is_null())
    assert unread["note"].null_count() == 0
    # Table 8 but for its counts, a column cut at the edge of the page, and some single cells.
    assert unread.group_by("table").len().sort("table").rows() == [
        ("16", 12),
        ("18", 8),
        ("20", 2),
        ("21", 36),
        ("22", 7),
        ("23", 2),
        ("25", 2),
        ("8", 16),
    ]


@pytest.mark.parametrize(
    ("table", "where", "expected"),
    [
        (3, {"model": "3D-RetinaNet / I3D (RGB, offline)", "level": "frame"}, 75.2),
        (3, {"model": "3D-RetinaNet / I3D (RGB, offline)", "threshold": "0.5:0.95"}, 27.1),
        (3, {"model": "MR-TS Peng et al. [85] (RGB + flow, offline)", "threshold": "0.75"}, 0.9),
        (5, {"model": "Slowfast-08", "kind": "agentness", "split": "test"}, 69.2),
        (6, {"model": "Slowfast-32", "kind": "action", "split": "test", "threshold": "0.2"}, 19.55),
        (6, {"model": "YOLOv5", "kind": "agent", "split": "val", "threshold": "0.5"}, 18.7),
        (7, {"kind": "event", "split": "test", "trained_on": "train_3", "level": "video"}, 18.9),
        (9, {"label": "AV-TurLft", "model": "2D", "split": "test"}, 42.9),
        (10, {"kind": "agent", "model": "Xidian (ICCV 2021)"}, 52.4),
        (15, {"label": "MedVeh", "split": "train_3", "level": "tubes"}, 153),
        (16, {"label": "TurRht", "split": "val_1", "level": "boxes"}, 704),
        (17, {"label": "xing", "split": "test", "level": "boxes"}, 3618),
        (18, {"label": "AV-MovRht", "split": "train_2", "level": "frames"}, 360),
        (19, {"label": "Car-TurLft", "split": "all", "level": "boxes"}, 2994),
        (20, {"label": "Ped-XingFmLft-xing", "split": "val_3", "level": "tubes"}, 12),
        (21, {"label": "XingFmRht", "split": "val_2", "level": "video"}, 35.2),
        (22, {"label": "Cyc-TurLft", "split": "test", "trained_on": "train_3", "level": "video"}, 2.6),
        (23, {"label": "Car-Stop-IncomLane", "split": "val_2", "level": "video"}, 46.3),
        (
            24,
            {
                "label": "OthTL-Red",
                "split": "test",
                "level": "frame",
                "model": "I3D-32, product of marginals",
            },
            44.8,
        ),
        (25, {"label": "Bus-Stop-VehLane", "split": "val", "level": "video", "model": "I3D-32"}, 83.3),
    ],
)
def test_spot_values_are_the_printed_ones(table: int, where: dict[str, str], expected: float) -> None:
    assert value(table, **where) == expected


@pytest.mark.parametrize(("table", "kind"), COUNTED.items())
def test_classes_bear_the_names_of_the_annotation_file(table: str, kind: str) -> None:
    unused = {"agent": {"SmalVeh"}, "action": {"Rev", "MovRht", "MovLft"}}.get(kind, set())
    labels = set(load_printed(table)["label"].drop_nulls())
    assert labels == set(terms.VOCABULARIES[kind]) | unused


@pytest.mark.parametrize(("table", "kinds"), CLASSWISE.items())
def test_classwise_results_have_every_class(table: str, kinds: tuple[str, ...]) -> None:
    for kind in kinds:
        rows = load_printed(table, kind=kind)
        assert set(rows["label"].drop_nulls()) == set(terms.VOCABULARIES[kind])
        per_class = 5 * 2 + 8 * (1 if kind == "av_action" else 2)
        assert set(rows.group_by("label").len()["len"]) == {per_class}


@pytest.mark.parametrize("table", COUNTED)
def test_training_validation_and_test_add_up_to_all(table: str) -> None:
    wide = load_printed(table).pivot("split", index=["label", "level"], values="value")
    for n in (1, 2, 3):
        parts = wide.select(
            "label", "level", "all", sum=pl.col("test") + pl.col(f"train_{n}") + pl.col(f"val_{n}")
        )
        wrong = parts.drop_nulls("sum").drop_nulls("all").filter(pl.col("sum") != pl.col("all"))
        known = table == "20" and n == 3
        assert wrong["label"].to_list() == (["Car-TurRht-IncomLane"] if known else [])


def test_classes_add_up_to_the_totals_of_table_7() -> None:
    """Tables 16, 19 and 20 count in their own totals what other tables leave out; their classes do not."""
    for table, kind in COUNTED.items():
        used = load_printed(table).filter(pl.col("label").is_in(terms.VOCABULARIES[kind]))
        for split in ("all", *SPLITS):
            for level in ("frames" if kind == "av_action" else "boxes", "tubes"):
                rows = used.filter(pl.col("split") == split, pl.col("level") == level)
                if rows["value"].null_count() == 0:
                    total = value(7, kind=kind, split=split, level=level)
                    off = 2 if (table, split, level) == ("20", "val_3", "tubes") else 0
                    assert rows["value"].sum() == total + off, (table, split, level)


def test_the_same_counts_are_printed_in_both_places() -> None:
    """But for one tube count, which the sums of Table 20 contradict too."""
    key = ["kind", "label", "split", "level"]
    for table in CLASSWISE:
        kinds = CLASSWISE[table]
        there = load_printed(table).filter(pl.col("label").is_not_null(), pl.col("model").is_null())
        here = load_printed().filter(pl.col("table").is_in(list(COUNTED)), pl.col("kind").is_in(kinds))
        both = there.join(here.select(*key, own="value"), on=key).drop_nulls(["value", "own"])
        assert len(both) > 60
        wrong = both.filter(pl.col("value") != pl.col("own"))
        assert wrong["label"].to_list() == (["Car-TurRht-IncomLane"] if table == "23" else [])


def test_averages_are_means_of_the_three_splits() -> None:
    for table in CLASSWISE:
        rows = load_printed(table).filter(pl.col("trained_on").is_not_null())
        side = pl.when(pl.col("split") == "test").then(pl.lit("test")).otherwise(pl.lit("val"))
        rows = rows.with_columns(side=side)
        single, mean = (
            rows.filter(pl.col("trained_on") != AVERAGED),
            rows.filter(pl.col("trained_on") == AVERAGED),
        )
        key = ["kind", "label", "level", "side"]
        found = single.group_by(key).agg(pl.col("value").mean(), pl.col("value").null_count().alias("unread"))
        both = found.join(mean.select(*key, average="value"), on=key, nulls_equal=True)
        whole = both.filter(pl.col("unread") == 0).drop_nulls("average")
        assert len(whole) > 60
        assert (whole["value"] - whole["average"]).abs().max() <= 0.11


@pytest.mark.parametrize("table", ["21", "22", "23", "24", "25"])
def test_means_are_means_of_the_classes(table: str) -> None:
    rows = load_printed(table).filter(pl.col("model").is_not_null())
    key = ["kind", "level", "split", "trained_on", "model"]
    classes = rows.filter(pl.col("label").is_not_null()).group_by(key)
    found = classes.agg(pl.col("value").mean(), pl.col("value").null_count().alias("unread"))
    both = found.join(rows.filter(pl.col("label").is_null()).select(*key, mean="value"), on=key)
    whole = both.filter(pl.col("unread") == 0).drop_nulls("mean")
    assert len(whole) >= 8
    assert (whole["value"] - whole["mean"]).abs().max() <= 0.11


def test_table_7_repeats_the_means_of_the_classwise_tables() -> None:
    key = ["kind", "split", "trained_on", "level"]
    seven = load_printed(7).filter(pl.col("model").is_not_null())
    others = load_printed().filter(pl.col("table").is_in(list(CLASSWISE)), pl.col("label").is_null())
    both = seven.join(others.select(*key, other="value"), on=key)
    assert len(both) == len(seven) == 66
    assert both["value"].to_list() == both["other"].to_list()


def test_unknown_tables_and_columns_are_named() -> None:
    with pytest.raises(UsageError, match="no printed table 4; there are 3, 5"):
        load_printed(4)
    with pytest.raises(UsageError, match="no column metric; they have table"):
        load_printed(5, metric="x")
