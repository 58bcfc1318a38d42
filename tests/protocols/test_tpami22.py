"""A run's numbers beside the paper's."""

from __future__ import annotations

import polars as pl
import pytest

from roadaware.demo_data import road as terms
from roadaware.errors import UsageError
from roadaware.metrics.metric_state import MetricResult
from roadaware.protocols.tpami22 import AVERAGED, BESIDE, load_printed, match_printed, normalize_name

ROWS = [
    ("frame", "", "0.5", "agent", None, 0.5),
    ("frame", "", "0.5", "agent", "Ped", 0.663),
    ("frame", "", "0.5", "agent", "Zebra", 0.4),
    ("video", "stiou", "0.2", "agent", "Ped", 0.4),
    ("video", "siou", "0.2", "agent", "Ped", 0.9),
    ("video", "stiou", "0.5", "agent", None, 0.1),
    ("video", "stiou", "0.2", "event", None, 0.2),
    ("av_action", "", "", "av_action", "AV-Stop", 0.9),
    ("av_action", "", "", "av_action", None, 0.6),
]


def result(rows=ROWS, *, undefined: tuple[str, ...] = (), **config: str) -> MetricResult:
    summary = pl.DataFrame(
        [
            {
                "group": None,
                "metric": f"{number}",
                "level": level,
                "overlap": overlap,
                "threshold": threshold,
                "kind": kind,
                "label": label,
                "value": value,
                "valid": label not in undefined,
                "low_video": value - 0.05,
                "high_video": None,
            }
            for number, (level, overlap, threshold, kind, label, value) in enumerate(rows)
        ],
        schema_overrides={"group": pl.String, "high_video": pl.Float64, "label": pl.String},
    )
    return MetricResult(summary, pl.DataFrame(), dict(config))


def test_a_class_stands_beside_the_model_of_its_split() -> None:
    found = match_printed(result(), "val_1").filter(pl.col("label") == "Ped", pl.col("level") == "frame")
    assert found.schema == pl.Schema(BESIDE)
    own, mean = found.rows(named=True)
    assert (own["table"], own["trained_on"], own["split"], own["printed"]) == ("21", "train_1", "val_1", 66.3)
    assert own["obtained"] == pytest.approx(66.3)
    assert own["difference"] == pytest.approx(0, abs=1e-9)
    assert own["low"] == pytest.approx(61.3)
    assert own["high"] is None
    assert (mean["trained_on"], mean["split"], mean["printed"]) == (AVERAGED, "val", 45.8)


def test_on_the_test_set_every_trained_model_is_there() -> None:
    found = match_printed(result(), "test").filter(pl.col("label") == "Ped", pl.col("level") == "video")
    assert found.select("trained_on", "printed").rows() == [
        ("train_1", 33.7),
        ("train_2", 34.9),
        ("train_3", 33.5),
        (AVERAGED, 34.0),
    ]
    one = match_printed(result(), "test", trained_on="train_2")
    assert set(one["trained_on"]) == {"train_2"}


def test_means_stand_beside_every_printed_model() -> None:
    found = match_printed(result(), "test").filter(pl.col("kind") == "agent", pl.col("label").is_null())
    at_half = found.filter(pl.col("level") == "video")
    assert set(at_half["model"]) == {f"{m}-{n}" for m in ("2D", "I3D", "Slowfast") for n in ("08", "32")} | {
        "YOLOv5"
    }
    assert set(at_half["threshold"]) == {"0.5"}
    assert at_half.filter(pl.col("model") == "YOLOv5")["difference"].to_list() == pytest.approx([10 - 13.9])


def test_only_tubes_by_spatio_temporal_overlap_and_known_classes_are_compared() -> None:
    found = match_printed(result(), "test")
    assert 90.0 not in found.filter(pl.col("level") == "video")["obtained"].round(6).to_list()
    assert "Zebra" not in found["label"].to_list()


def test_the_vehicles_action_needs_no_threshold_and_an_unreadable_number_has_its_note() -> None:
    found = match_printed(result(), "test", trained_on="train_2").filter(pl.col("kind") == "av_action")
    stop, mean = found.rows(named=True)
    assert stop["label"] == "AV-Stop"
    assert stop["printed"] is None
    assert stop["difference"] is None
    assert "repeats" in stop["note"]
    assert (mean["label"], mean["printed"]) == (None, 43.6)


def test_products_of_marginals_stand_beside_products_of_marginals() -> None:
    joint = match_printed(result(), "test").filter(pl.col("kind") == "event")
    product = match_printed(result(composite_scores="product"), "test").filter(pl.col("kind") == "event")
    assert {"22", "23", "24", "25"} & set(joint["table"]) == {"23"}
    assert {"22", "23", "24", "25"} & set(product["table"]) == {"25"}
    assert product.filter(pl.col("table") == "25")["printed"].to_list() == [16.1]


def test_what_is_undefined_is_left_out() -> None:
    assert "Ped" not in match_printed(result(undefined=("Ped",)), "test")["label"].to_list()


def test_ucf24_stands_beside_table_3() -> None:
    rows = [("frame", "", "0.5", "action", None, 0.8), ("video", "stiou", "0.5:0.95", "action", None, 0.3)]
    found = match_printed(result(rows), "test", dataset="ucf24")
    assert set(found["table"]) == {"3"}
    assert found.filter(pl.col("level") == "frame", pl.col("model").str.contains("I3D \\(RGB"))[
        "printed"
    ].to_list() == [75.2]


def test_unknown_splits_datasets_and_groups_are_refused() -> None:
    with pytest.raises(UsageError, match="nothing for 'train_1' of road"):
        match_printed(result(), "train_1")
    with pytest.raises(UsageError, match="nothing for 'test' of jaad"):
        match_printed(result(), "test", dataset="jaad")
    with pytest.raises(UsageError, match="no group 'night'"):
        match_printed(result(), "test", group="night")


@pytest.mark.parametrize("kind", [*terms.KINDS, "av_action"])
def test_names_as_printed_are_the_names_of_the_file(kind: str) -> None:
    """And no two classes of a kind become one."""
    rows = load_printed(kind=kind).filter(pl.col("label").is_not_null(), pl.col("printed_as").is_not_null())
    wrong = [
        (label, as_printed)
        for label, as_printed in rows.select("label", "printed_as").unique().rows()
        if normalize_name(label) != normalize_name(as_printed)
    ]
    assert not wrong
    labels = rows["label"].unique().to_list()
    assert len({normalize_name(label) for label in labels}) == len(labels)
