"""Recall and precision equal those of pycocotools: ties, crowds, marks, areas, no classes, limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from coco_sets import official, random_set, read_back, with_corners

from roadaware.metrics.corner_cases.evaluate import evaluate
from roadaware.metrics.corner_cases.matching import CornerConfig


def same(ours: dict[str, float | None], theirs: dict[str, float], group: str) -> None:
    for name, value in theirs.items():
        found = ours[f"{group}_{name}"]
        if value == -1:
            assert found is None, name
        else:
            assert found == pytest.approx(value, abs=1e-9), name


def as_one(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All of one class, as the challenge's evaluator makes them."""
    return [{**row, "category_id": 1} for row in rows]


@pytest.mark.parametrize("seed", range(6))
def test_class_by_class(seed: int, tmp_path: Path) -> None:
    truth, results = random_set(seed, fine=seed % 2 == 1)
    scenes, predictions = read_back(truth, results, tmp_path)
    ours = evaluate(predictions, scenes, CornerConfig.coco()).values()
    same(ours, official(truth, results), "classes")
    same(ours, official(truth, results, loose=True), "classes")


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_predictions_call_it(seed: int, tmp_path: Path) -> None:
    truth, results = random_set(seed, fine=seed % 2 == 1)
    scenes, predictions = read_back(truth, results, tmp_path, agnostic=True)
    config = CornerConfig(groups=("all", "corner"), ignored="crowds", precision="always")
    ours = evaluate(predictions, scenes, config).values()
    whole = {**truth, "annotations": as_one(truth["annotations"])}
    same(ours, official(whole, as_one(results)), "all")
    corners = {**truth, "annotations": as_one([a for a in truth["annotations"] if a["corner_case"]])}
    same(ours, official(corners, as_one(results)), "corner")
    same(ours, official(corners, as_one(results), loose=True), "corner")


def test_use_cats_off_is_the_same_where_no_scores_are_equal(tmp_path: Path) -> None:
    """With useCats=0 pycocotools puts predictions in the order of their classes before it sorts them by score."""
    truth, results = random_set(11)
    results = [{**row, "score": (n + 1) / (len(results) + 1)} for n, row in enumerate(results)]
    scenes, predictions = read_back(truth, results, tmp_path)
    config = CornerConfig(groups=("all",), ignored="crowds", precision="always")
    found = official(truth, results, use_cats=False)
    same(evaluate(predictions, scenes, config).values(), found, "all")


def test_more_predictions_than_are_taken(tmp_path: Path) -> None:
    truth, results = random_set(5, pictures=3, per_picture=260, classes=2)
    scenes, predictions = read_back(truth, results, tmp_path, agnostic=True)
    config = CornerConfig(groups=("all",), ignored="crowds", precision="always")
    result = evaluate(predictions, scenes, config)
    whole = {**truth, "annotations": as_one(truth["annotations"])}
    same(result.values(), official(whole, as_one(results)), "all")
    beyond = sum(
        max(0, sum(r["image_id"] == image["id"] for r in results) - 100) for image in truth["images"]
    )
    assert result.left_out["predictions of all beyond the 100 best of their image"] == beyond > 0


def test_marks_count_where_they_are_not_written_over(tmp_path: Path) -> None:
    """pycocotools writes over `ignore`; to the default such an object is a crowd that can be met once."""
    truth, results = random_set(3)
    scenes, predictions = read_back(truth, results, tmp_path, agnostic=True)
    marked = with_corners(scenes)
    config = CornerConfig(groups=("corner",), precision="always")
    left = evaluate(predictions, marked, config)
    plain = [{**a, "category_id": 1, "iscrowd": a["iscrowd"]} for a in truth["annotations"]]
    n = sum(bool(a["iscrowd"] or a["ignore"]) for a in plain)
    assert left.left_out["objects that are marked as not asked for"] == n
    kept = {**truth, "annotations": [a for a in plain if not (a["ignore"] and not a["iscrowd"])]}
    crowds = replace(config, ignored="crowds")
    assert evaluate(predictions, marked, crowds).row("corner_ar")["n"] > left.row("corner_ar")["n"]
    # Without false positives to excuse, what is left is recall alone: the predictions may meet others in turn.
    assert left.row("corner_ar")["n"] == sum(not a["iscrowd"] for a in kept["annotations"])
