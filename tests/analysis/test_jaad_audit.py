"""The audit of the real annotations of JAAD: the counts that are known of it."""

from __future__ import annotations

import os
from functools import cache

import pytest

import real_sets
from roadaware.analysis.audit import Audit, Finding, audit
from roadaware.scenes.sampling import Iv2024

ROOT = os.environ.get("ROADAWARE_DATA_DIR")
pytestmark = pytest.mark.skipif(ROOT is None, reason="ROADAWARE_DATA_DIR is unset: no real annotations")


@cache
def audits() -> tuple[Audit, Audit]:
    scenes = real_sets.jaad()
    return audit(scenes, Iv2024.reference("action")), audit(scenes, Iv2024.default("action"))


def the(name: str) -> Finding:
    found = audits()[0].finding(name)
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count", "out_of"),
    [
        ("crossing-without-event", 399, 769),
        ("crossing-observed", 372, 769),
        ("crosser-without-event", 167, 495),
        ("event-without-crossing", 89, 191),
        ("track-gaps", 19, 2786),
        ("vehicle-action", 39190, 82032),
        ("videos-in-no-split", 23, 346),
        ("class-balance", 3548, 4317),
    ],
)
def test_known_counts(name: str, count: int, out_of: int) -> None:
    assert (the(name).count, the(name).out_of) == (count, out_of)


@pytest.mark.slow
def test_the_defects_of_the_labels_are_in_every_split() -> None:
    for name, expected in [
        ("crossing-without-event", [(632, 1122), (42, 107), (399, 769)]),
        ("crossing-observed", [(557, 1122), (42, 107), (372, 769)]),
    ]:
        table = the(name).table
        assert table is not None
        assert [row[1:3] for row in table.rows] == expected


def test_the_identifier_alone_outranks_the_published_models() -> None:
    measures = the("identifier-leak").measures
    assert measures["auc"] == pytest.approx(0.939, abs=0.0005)
    assert measures["f1"] == pytest.approx(0.780, abs=0.0005)


def test_crossing_pedestrians_by_attribute_and_by_tags() -> None:
    assert the("tags-against-attribute").measures == {
        "subset_crossing_by_attribute": 463,
        "subset_crossing_by_tags": 490,
        "subset_pedestrians": 2580,
    }


def test_printed_counts_differ_in_pedestrians_alone() -> None:
    table = the("sample-counts").table
    assert table is not None
    assert [row for row in table.rows if row[1] != row[2]] == [
        ("pedestrians, not-crossing", 1519, 1534),
        ("pedestrians, crossing", 353, 338),
    ]


def test_the_recommended_protocol_has_neither_invented_events_nor_answers_in_sight() -> None:
    assert {"crossing-without-event", "crossing-observed"} <= set(audits()[1].passed)
