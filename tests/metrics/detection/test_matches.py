"""Matches: merging, ranking, curves, and draws of videos."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from random_events import event_set

from roadaware.errors import UsageError
from roadaware.io.parallel import HERE, WorkerPool
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.matches import (
    Matches,
    compute_average_precisions,
    compute_pr_curve,
    match_frames,
)
from roadaware.scenes.tables import Predictions, Scenes

DEFAULT = DetectionConfig.default()


def matched(scenes: Scenes, predictions: Predictions, config: DetectionConfig = DEFAULT) -> Matches:
    return match_frames(predictions, scenes, config, (0.3, 0.5), ["agentness", "agent", "action"])


def equal(a: Matches, b: Matches) -> None:
    one, two = a.ranked(), b.ranked()
    assert (one.thresholds, one.classes, one.videos) == (two.thresholds, two.classes, two.videos)
    for name in ("cls", "score", "video", "hit", "n_truth"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.parametrize("tied", [False, True])
def test_the_parts_of_a_whole_give_the_whole(tied: bool) -> None:
    scenes, predictions = event_set(3, videos=4, tied=tied)
    parts = [matched(scenes.only([f"v{k}"]), predictions) for k in range(4)]
    merged = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
    equal(merged, matched(scenes, predictions))


def test_parts_with_ignored_predictions_merge_with_parts_without() -> None:
    scenes, predictions = event_set(3, videos=2)
    ignored = scenes.boxes.with_columns(ignore=(pl.col("video") == "v0") & (pl.col("box") % 3 == 0))
    scenes = scenes.with_tables(boxes=ignored)
    parts = [matched(scenes.only([video]), predictions) for video in ("v0", "v1")]
    whole = matched(scenes, predictions)
    assert (parts[0].ignored is None, parts[1].ignored is None) == (False, True)
    equal(parts[0].merge(parts[1]), whole)
    table = compute_average_precisions(parts[0].merge(parts[1]), DEFAULT)
    np.testing.assert_array_equal(table, compute_average_precisions(whole, DEFAULT))


def test_different_thresholds_do_not_merge() -> None:
    scenes, predictions = event_set(0, videos=1)
    other = match_frames(predictions, scenes, DEFAULT, (0.7,))
    with pytest.raises(UsageError, match=r"0\.7"):
        matched(scenes, predictions).merge(other)


@pytest.mark.parametrize("rule", ["trapezoid", "envelope", "interp101", "raw"])
def test_a_draw_equals_the_set_with_its_videos_repeated(rule: str) -> None:
    config = DetectionConfig(ap=rule)
    scenes, predictions = event_set(5, videos=3)
    matches = matched(scenes, predictions, config)
    weights = np.array([[1, 1, 1], [2, 0, 1], [0, 0, 3]])
    tables = compute_average_precisions(matches, config, weights)
    for weight, table in zip(weights, tables, strict=True):
        again = matched(*repeated(scenes, predictions, weight.tolist()), config)
        np.testing.assert_allclose(table, compute_average_precisions(again, config), atol=2e-6)
        np.testing.assert_array_equal(table, compute_average_precisions(matches, config, weight))


@pytest.mark.parametrize(("steps", "parts"), [(1, 8), (3 * 400, 3), (1 << 31, 1)])
def test_classes_by_parts_give_what_all_of_them_give(
    monkeypatch: pytest.MonkeyPatch, steps: int, parts: int
) -> None:
    found = matched(*event_set(5, videos=3)).ranked()
    found = replace(found, ignored=np.arange(found.hit.size).reshape(found.hit.shape) % 5 == 0)
    weights = np.array([[1, 1, 1], [2, 0, 1], [0, 0, 3]])
    whole = compute_average_precisions(found, DEFAULT, weights)
    monkeypatch.setattr("roadaware.metrics.detection.matches._PART_STEPS", steps)
    with closing(_Counted()) as pool:
        table = compute_average_precisions(found, DEFAULT, weights, pool=pool)
    assert (pool.parts or 1) == parts
    np.testing.assert_array_equal(table, whole)


class _Counted(WorkerPool):
    """A pool of this process alone that counts its parts."""

    def __init__(self) -> None:
        super().__init__(HERE)
        self.parts = 0

    def map(self, work: Any, parts: Any, **how: Any) -> Any:
        self.parts += len(parts)
        return super().map(work, parts, **how)


def repeated(scenes: Scenes, predictions: Predictions, weights: list[int]) -> tuple[Scenes, Predictions]:
    """Truth and predictions with each video as often as it is drawn, copies beside each other."""
    names = [(f"v{k}", f"v{k}#{copy}") for k, n in enumerate(weights) for copy in range(n)]
    copies = pl.DataFrame(names, schema=["video", "copy"], orient="row").with_row_index("at")

    def copied(table: pl.DataFrame) -> pl.DataFrame:
        rows = table.with_row_index("row").join(copies, on="video").sort("at", "row")
        return rows.drop("video", "row").rename({"copy": "video"})

    boxes = copied(scenes.boxes).with_columns(new=pl.col("box") + 10_000 * pl.col("at"))
    labels = scenes.labels.join(boxes.select("box", "new"), on="box").drop("box").rename({"new": "box"})
    truth = replace(
        scenes,
        videos=copied(scenes.videos).drop("at"),
        frames=copied(scenes.frames).drop("at"),
        boxes=boxes.drop("box", "at").rename({"new": "box"}),
        labels=labels,
        frame_labels=copied(scenes.frame_labels).drop("at"),
    )
    predicted = copied(predictions.boxes).drop("box", "at").with_row_index("box")
    detections = replace(
        predictions,
        videos=copied(predictions.videos).drop("at"),
        boxes=predicted,
        frames=copied(predictions.frames).drop("at"),
    )
    return truth, detections


def test_ranks_are_by_class_score_video_and_place() -> None:
    matches = Matches(
        (0.5,),
        (("agent", "Ped"), ("agent", "Car")),
        ("a", "b"),
        np.array([1, 0, 0, 0, 0], dtype=np.int32),
        np.array([0.9, 0.5, 0.5, 0.5, 0.7]),
        np.array([0, 1, 0, 0, 1], dtype=np.int32),
        np.array([0, 1, 7, 3, 4]),
        np.zeros((5, 1), dtype=np.bool_),
        np.zeros((2, 2), dtype=np.int64),
    )
    assert matches.ranked().order.tolist() == [4, 3, 7, 1, 0]


def test_shapes_must_fit() -> None:
    scenes, predictions = event_set(0, videos=1)
    with pytest.raises(ValueError, match="score should be"):
        replace(matched(scenes, predictions), score=np.zeros(3))


@pytest.mark.parametrize("name", ["score", "video", "order", "hit", "n_truth", "ignored"])
def test_the_array_that_does_not_fit_is_named(name: str) -> None:
    scenes, predictions = event_set(0, videos=1)
    found = matched(scenes, predictions)
    longer = np.vstack([found.hit if name == "ignored" else getattr(found, name)] * 2)
    with pytest.raises(ValueError, match=f"^{name} should be"):
        replace(found, **{name: longer})


def test_matches_tell_their_size() -> None:
    scenes, predictions = event_set(0, videos=2)
    found = matched(scenes, predictions)
    assert repr(found) == (
        f"Matches({len(found):,} predictions, {found.n_truth.sum():,} truths, 8 classes, 2 videos, "
        "thresholds (0.3, 0.5))"
    )


def test_weights_are_one_for_each_video() -> None:
    found = matched(*event_set(0, videos=3))
    with pytest.raises(ValueError, match="3 videos need as many weights"):
        compute_average_precisions(found, DEFAULT, np.ones(2))
    assert compute_average_precisions(found, DEFAULT, np.ones((4, 3))).shape == (4, len(found.classes), 2)


def test_predictions_keep_their_rank_where_some_are_left_away() -> None:
    found = matched(*event_set(0)).ranked()
    strong = found.take(found.score > 0.4)
    assert strong.ranked() is strong
    turned = found.take(np.arange(len(found))[::-1])
    assert turned.ranked() is not turned
    np.testing.assert_array_equal(turned.ranked().score, found.score)


def test_a_curve_is_that_of_its_class() -> None:
    scenes, predictions = event_set(0)
    matches = matched(scenes, predictions)
    points = compute_pr_curve(matches, "agent", "Car", 0.5)
    rows = matches.take(matches.cls == matches.classes.index(("agent", "Car"))).ranked()
    assert len(points.precision) == len(rows)
    assert points.recall[-1] == rows.hit[:, 1].sum() / points.n_truth
    assert (np.diff(points.score) <= 0).all()
    with pytest.raises(UsageError, match="agentness, agent, action"):
        compute_pr_curve(matches, "event", "Car", 0.5)


def test_sets_of_many_videos_merge_in_the_time_that_their_size_takes() -> None:
    def of(start: int, n: int) -> Matches:
        names = tuple(f"v{k}" for k in range(start, start + n))
        nobody = np.zeros(0, dtype=np.int32)
        counts = np.ones((n, 1), dtype=np.int64)
        return Matches(
            (0.5,), (("a", "b"),), names, nobody, np.zeros(0), nobody, nobody, np.zeros((0, 1), bool), counts
        )

    compared: list[str] = []

    class Name(str):
        """A name that tells when it is compared with another."""

        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            compared.append(str(self))
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    n = 300
    half = replace(of(0, n), videos=tuple(map(Name, of(0, n).videos)))
    merged = half.merge(of(n // 2, n))
    assert merged.n_truth[:, 0].tolist() == [1] * (n // 2) + [2] * (n // 2) + [1] * (n // 2)
    assert len(compared) < 10 * n  # a search through a list would compare n * n / 2 times
