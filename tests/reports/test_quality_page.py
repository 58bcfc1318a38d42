"""The page of a check of annotations: names are escaped, drawings differ as items do, filters know rows."""

from __future__ import annotations

import re

import polars as pl
import pytest

from roadaware.analysis.quality import Quality, check
from roadaware.demo_data.annotations import generate_annotation_rounds
from roadaware.reports.page import MOST_CHOICES, Filter, Filterable, Table, report
from roadaware.reports.quality import build_quality_sections, format_item_name, plot_box

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>\u202e$\\frac{1}{2}$'


@pytest.fixture(scope="module")
def quality() -> Quality:
    """The example, with hostile names in place of persons and clips."""
    rounds = generate_annotation_rounds()
    renamed = []
    for scenes in (rounds.original, rounds.round1, rounds.round2):
        changes = {
            name: getattr(scenes, name).with_columns(
                pl.format("{}{}", "video", pl.lit(HOSTILE)).alias("video")
            )
            for name in ("videos", "boxes", "tubes", "relations", "queries", "sounds")
        }
        tubes = changes["tubes"].with_columns(pl.format("{}{}", "name", pl.lit(HOSTILE)).alias("name"))
        renamed.append(scenes.with_tables(**{**changes, "tubes": tubes}))
    return check(*renamed)


@pytest.fixture(scope="module")
def page(quality: Quality) -> str:
    return report(build_quality_sections(quality), title="Check")


@pytest.mark.slow
def test_names_from_files_are_text(quality: Quality, page: str) -> None:
    assert "alert(1)" in page
    assert page.count("<script") == 1
    assert "<img" not in page
    assert "\u202e" not in page
    assert page == report(build_quality_sections(quality), title="Check")


def test_every_row_carries_its_status_and_rules(quality: Quality, page: str) -> None:
    wrong = quality.items.filter(pl.col("status") != "pass")
    held = re.findall(r'<tr class="(f\d(?: g\d+)+)">', page)
    assert len(held) == len(wrong)
    assert [len(names.split()) - 1 for names in held] == wrong["rules"].list.len().to_list()
    rules = re.findall(r'id="g-s1b\d+-(\d+)" value="(\d+)"', page)
    assert [int(value) for _, value in rules] == list(range(1, len(rules) + 1))
    assert len(rules) == wrong["rules"].explode().n_unique() <= MOST_CHOICES


def test_a_box_is_drawn_in_every_version_that_has_it(quality: Quality) -> None:
    rows = quality.items.filter(pl.col("what") == "box")
    moved = rows.filter(pl.col("rules").list.contains("box moved")).to_dicts()[0]
    drawn = plot_box(moved)
    assert "differs by" in drawn.caption
    svg = drawn.svg("one")
    assert "−3.0 px" in svg or "+2.5 px" in svg
    missing = rows.filter(pl.col("rules").list.contains("missing")).to_dicts()[0]
    assert "round 1" not in plot_box(missing).svg("two").split("</desc>")[1]


def test_items_have_names_that_people_read() -> None:
    row = {
        "what": "relation",
        "video": "A",
        "name": "P1",
        "object": None,
        "predicate": "hugging",
        "frame": None,
    }
    assert format_item_name(row) == "P1 hugging somebody, A"


def test_filters_fit_their_table() -> None:
    table = Table(("a",), (("x",), ("y",)), "l")
    with pytest.raises(ValueError, match="every row"):
        Filterable(table, (Filter("a", ("x",), ((0,),)),))
    with pytest.raises(ValueError, match="at most"):
        Filter("a", tuple(str(k) for k in range(MOST_CHOICES + 1)), ())
    assert Filterable(table, (Filter("a", ("x", "y"), ((0, 1), ())),)).classes == ("f1 f2", "")
