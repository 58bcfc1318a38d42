"""Counts of samples on the real annotations, as published and as docs/protocols.md states them."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import real_sets
from roadaware.datasets import read
from roadaware.scenes.sampling import Iv2022, Iv2024, Wacv2021, sample

ROOT = os.environ.get("ROADAWARE_DATA_DIR")
pytestmark = pytest.mark.skipif(ROOT is None, reason="ROADAWARE_DATA_DIR is unset: no real annotations")


@pytest.fixture(scope="module")
def jaad():
    return real_sets.jaad()


@pytest.fixture(scope="module")
def pie():
    return read("pie", Path(ROOT) / "pie")


def counts(scenes, protocol, labels=2):
    samples = sample(scenes, protocol).samples
    return tuple(
        "/".join(
            str(samples.filter((pl.col("split") == split) & (pl.col("label") == label)).height)
            for label in range(labels)
        )
        for split in ("train", "val", "test")
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ("4456/1122", "702/107", "3548/769")),
        ({"crosser_without_event": "drop"}, ("4456/490", "702/65", "3548/370")),
        ({"crossing_observed": "drop"}, ("4442/565", "702/65", "3517/397")),
        ({"other_event": "last"}, ("4517/1122", "713/107", "3606/769")),
    ],
)
def test_jaad_action(jaad, change, expected):
    assert counts(jaad, replace(Iv2024.reference("action"), **change)) == expected


def test_jaad_action_by_default(jaad):
    assert counts(jaad, Iv2024.default("action")) == ("4503/490", "713/65", "3575/370")


def test_half_of_the_crossing_test_samples_have_no_annotated_event(jaad):
    samples = sample(jaad, Iv2024.reference("action")).samples
    crossing = samples.filter((pl.col("split") == "test") & (pl.col("label") == 1))
    sources = dict(crossing["event_source"].cast(pl.String).value_counts().iter_rows())
    assert sources == {"fallback": 399, "annotated": 370}


def test_jaad_risk_regions(jaad):
    expected = "732/243/230/257/190/180/296/443/308/195/230/1013"
    assert counts(jaad, Iv2024.reference("risk"), 12)[2] == expected
    default = "670/234/206/228/165/165/273/422/289/191/202/900"
    assert counts(jaad, Iv2024.default("risk"), 12)[2] == default
    assert counts(jaad, replace(Iv2024.reference("risk"), risk_off_left="first_region"), 12)[2] == expected
    assert counts(jaad, replace(Iv2024.reference("risk"), risk_width="own"), 12)[2] == expected


def test_the_released_scores_stand_in_the_order_of_the_samples(jaad):
    for task, columns in (("action", 1), ("risk", 12)):
        held = sample(jaad, Iv2024.reference(task)).samples.filter(pl.col("split") == "test")
        path = Path(ROOT) / "pie" / f"pf_{task}_jaad.csv"
        scores = np.loadtxt(path, delimiter=",").reshape(-1, columns)
        truth = held["label"].to_numpy()
        if task == "action":
            assert round(roc_auc_score(truth, scores[:, 0]), 3) == 0.866
        else:
            assert round((scores.argmax(axis=1) == truth).mean(), 3) == 0.533


@pytest.mark.parametrize(
    ("pedestrians", "overlap", "expected"),
    [
        ("behaviour", 0.8, ("374/1760", "66/176", "704/1177")),
        ("all", 0.8, ("6853/1760", "1089/176", "5555/1177")),
        ("behaviour", 0.6, ("204/960", "36/96", "384/642")),
        ("all", 0.6, ("3738/960", "594/96", "3030/642")),
    ],
)
def test_wacv_and_iv2022(jaad, pedestrians, overlap, expected):
    reference = Wacv2021.reference(pedestrians=pedestrians)
    assert counts(jaad, replace(reference, overlap=overlap)) == expected
    if overlap == 0.8:
        assert counts(jaad, Iv2022.reference(pedestrians=pedestrians)) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"crosser_without_event": "drop"}, ("6853/759", "1089/110", "5555/561")),
        ({"other_event": "last"}, ("7018/1760", "1111/176", "5665/1177")),
        ({"crossing_observed": "drop"}, ("6838/908", "1089/110", "5515/607")),
    ],
)
def test_what_each_field_of_wacv_costs(jaad, change, expected):
    assert counts(jaad, replace(Wacv2021.reference(), **change)) == expected


def test_wacv_by_default(jaad):
    assert counts(jaad, Wacv2021.default()) == ("7005/759", "1111/110", "5625/561")
    tracks = sample(jaad, Wacv2021.reference(pedestrians="behaviour")).meta.notes["sampling"]
    assert [tracks[split]["sampled"] for split in ("train", "test")] == [194, 171]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ("1922/1009/5289", "449/312/1538", "756/838/4881")),
        ({"intention_past_critical": "drop"}, ("1547/840/4252", "368/260/1242", "602/674/3952")),
        ({"intention_third": "above"}, ("1902/1029/5289", "439/322/1538", "742/852/4881")),
        ({"intention_tte": "end"}, ("1922/1009/5289", "449/312/1538", "756/838/4881")),
    ],
)
def test_pie_intention_from_attributes(pie, change, expected):
    if not pie.boxes.is_empty():
        pytest.skip("PIE's boxes are at hand: these are the counts of attributes alone")
    assert counts(pie, replace(Iv2024.reference("intention"), **change), 3) == expected


def test_pie_intention_by_default(pie):
    if not pie.boxes.is_empty():
        pytest.skip("PIE's boxes are at hand: these are the counts of attributes alone")
    assert counts(pie, Iv2024.default("intention"), 3) == ("1531/856/4252", "360/268/1242", "591/685/3952")
    notes = sample(pie, Iv2024.reference("intention")).meta.notes["sampling"]
    assert notes["test"]["pedestrians"] == 719
    assert sum(notes[split]["sampled"] for split in notes) == 1834
