"""Pages of the tasks on scenes: what they state is in the data, undefined is no number, names stay text."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from lxml import html
from report_examples import PAYLOADS

from roadaware.analysis.behaviours import Arc, BehaviourGraph, Confusion, Lane
from roadaware.analysis.compare import SceneComparison
from roadaware.analysis.scene_cases import HeardMap
from roadaware.config import to_dict
from roadaware.metrics.actions import CONFIGS
from roadaware.metrics.metric_state import SCENE_SUMMARY, SceneResult
from roadaware.reports.configs import format_config_name
from roadaware.reports.page import SCRIPT, Facts, Picture, Section, report
from roadaware.reports.scene_section import (
    build_scene_comparison_section,
    build_scene_section,
    map_gallery,
    plot_behaviour,
    plot_confusion,
    plot_success,
)


def result(name: str = "walking", *, baselines: bool = True) -> SceneResult:
    rows = [
        (None, "map@0.5", None, 0.25, 0.2, 0.3, None),
        (None, "f_pooled", None, 0.75, None, None, None),
        (None, "unknown", None, None, None, None, f"no {name}"),
        (None, f"ap@0.5:{name}", name, 0.5, 0.4, 0.6, None),
        (None, "ap@0.5:b", "b", 0.125, None, None, None),
        (None, "ap@0.5:c", "c", None, None, None, "there is no truth"),
        (f"category: {name}", "map@0.5", None, 0.375, None, None, None),
    ]
    table = [
        {
            **dict.fromkeys(SCENE_SUMMARY),
            **{"group": group, "metric": metric, "label": label, "value": value, "valid": value is not None},
            **{"n": 7, "reason": reason, "low_video": low, "high_video": high},
        }
        for group, metric, label, value, low, high, reason in rows
    ]
    counts = {"group": [None, f"category: {name}"], "items": [9, 4], "videos": [3, 1]}
    return SceneResult(
        summary=pl.DataFrame(table, schema=SCENE_SUMMARY),
        counts=pl.DataFrame(counts, schema={"group": pl.String, "items": pl.Int64, "videos": pl.Int64}),
        config=to_dict(CONFIGS["ava-official"]()),
        notes=(f"3 predictions on {name} were left out",),
        baselines={"whole image": {"map@0.5": 0.625}} if baselines else {},
        facts={"per_frame_capacity": 50, "average": name, "map_sizes": {name: 3}, "none": None},
    )


def pictures(name: str = "walking") -> list[Picture]:
    lanes = (Lane(name, 0, 90), Lane("b", 10, 80))
    arcs = (
        Arc(0, 1, name, 5, 30, predicted=False, found=True),
        Arc(1, 0, "b", 40, 60, predicted=False, found=False),
        Arc(0, 1, name, 6, 31, predicted=True, found=True, score=0.9),
        Arc(1, 1, "c", 8, 9, predicted=True, found=False, score=0.1),
    )
    shares = np.array([[0.5, 0.25, 0.0, 0.25], [0.0, 1.0, 0.0, 0.0]])
    confusion = Confusion((name, "b"), (name, "b", "other actions", "nothing"), shares, (8, 3))
    maps = [
        HeardMap(f"{name}: cIoU 0.1", (640, 360), np.eye(4), np.array([[10.0, 20, 300, 200]])),
        HeardMap("flat: cIoU 0", (1, 1), np.zeros((3, 5)), np.zeros((0, 4))),
        HeardMap("none: cIoU 0", (1, 1), np.zeros((0, 0)), np.array([[0.1, 0.2, 0.3, 0.4]])),
    ]
    return [
        plot_behaviour(BehaviourGraph(name, lanes, arcs)),
        plot_behaviour(BehaviourGraph("empty", (), ())),
        plot_confusion(confusion),
        map_gallery(maps, title=name),
        map_gallery(maps[:1], title=name, threshold=None),
        plot_success([0, 0.5, 1], {name: [1, 0.5, 0], "whole image": [1, 0.25, 0]}, name),
    ]


def section(name: str = "walking") -> Section:
    return build_scene_section(
        result(name), title=name, model=name, about={name: name}, pictures=pictures(name)
    )


def comparison(name: str = "mine") -> SceneComparison:
    rows = [
        ("map@0.5", None, 0.5, 0.25, 0.25, 0.125, 0.375, "better"),
        ("undefined", None, None, 0.25, None, None, None, "undefined"),
        (f"ap@0.5:{name}", name, 0.25, 0.5, -0.25, -0.5, -0.125, "worse"),
        ("ap@0.5:b", "b", 0.5, 0.5, 0.0, -0.1, 0.1, "not different"),
    ]
    columns = ["metric", "label", "a", "b", "difference", "low_video", "high_video", "verdict"]
    table = pl.DataFrame(rows, schema=columns, orient="row")
    held = {"whole image": {"map@0.5": 0.625}}
    return SceneComparison(table, (name, "theirs"), {"per_frame_capacity": 50}, 50, 0, held)


def text_of(page: str) -> str:
    return " ".join(html.fromstring(page.encode()).text_content().split())


def test_the_page_states_values_intervals_baselines_facts_and_what_is_undefined() -> None:
    page = report([section()])
    told = text_of(page)
    for words in (
        "0.2500",
        "0.200 to 0.300",
        "0.6250",
        "per frame capacity 50",
        "category: walking 4 0.3750",
    ):
        assert words in told
    assert "no walking" in told
    assert "Undefined: c." in told
    assert "3 predictions on walking were left out" in told
    assert "Walking: map@0.5 0.250 (0.200 to 0.300), f_pooled 0.750." in told
    assert "Without a model, map@0.5 is: whole image 0.625." in told
    assert "ap@0.5 of each" in told


def test_second_readings_of_a_metric_stay_out_of_slices() -> None:
    slices = next(block for block in section().blocks if getattr(block, "title", "") == "Slices")
    assert "f_pooled" not in slices.columns
    metrics = next(block for block in section().blocks if getattr(block, "title", "") == "Metrics")
    assert "f_pooled" in [row[0] for row in metrics.rows]


def test_configs_of_scenes_are_named() -> None:
    assert format_config_name(to_dict(CONFIGS["mmaction2"]())) == "mmaction2"
    assert "ava-official" in text_of(report([section()]))


def test_a_comparison_says_verdicts_and_the_classes_that_differ() -> None:
    told = text_of(report([build_scene_comparison_section(comparison())]))
    assert "Mine is better: map@0.5." in told
    assert "Classes in which they differ" in told
    assert "+0.2500" in told
    assert "ap@0.5:b" not in told
    blocks = build_scene_comparison_section(comparison()).blocks
    assert Facts((("per frame capacity", "50"),)) in blocks
    assert "map@0.5 0.5000 0.2500 0.6250 +0.2500" in told


def test_pictures_speak_in_their_captions() -> None:
    graph, empty, confusion, gallery, _, curve = pictures()
    assert "walking walking b (frames 5 to 30)" in graph.caption
    assert "Predictions that are shown, the best: 2, 1 of them right." in graph.caption
    assert "True: nothing" in empty.caption
    assert "walking taken for b (25 %)" in confusion.caption
    assert "walking: cIoU 0.1." in gallery.caption
    assert "At 0.5: walking 0.500, whole image 0.250" in curve.caption


@pytest.mark.slow
def test_equal_data_gives_equal_bytes_and_maps_are_part_of_the_page() -> None:
    one, two = (report([section()]) for _ in range(2))
    assert one == two
    assert "data:image/png;base64" in one
    root = html.fromstring(one.encode())
    links = [
        value for value in root.xpath("//@*[local-name()='href']") if not value.startswith(("#", "data:"))
    ]
    assert links == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["attribute", "terminal", "broken formula", "end of script", "long"])
def test_hostile_names_stay_text(kind: str) -> None:
    name = PAYLOADS[kind]
    page = report([section(name), build_scene_comparison_section(comparison(name))], title=name)
    root = html.fromstring(page.encode())
    assert root.xpath("//script/text()") in ([], [SCRIPT])
    assert not root.xpath("//iframe | //object | //embed")
    assert not [a for a in root.xpath("//@*") if a.attrname.startswith("on")]
    assert len(page) < 2_000_000
