"""Two models of road events on the same draws of videos."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.compare import compare_detections
from roadaware.errors import InputError, UsageError
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import evaluate
from roadaware.metrics.detection.matches import Matches, compute_average_precisions
from roadaware.statistics.intervals import PercentileResamples, sample_cluster_counts

sys.path.append(str(Path(__file__).parents[1] / "metrics" / "detection"))
from random_events import event_set

CONFIG = DetectionConfig.default()


def runs(*, videos: int = 8, worse_by: float = 0.5) -> tuple[dict[str, Matches], dict[str, Matches]]:
    """A model, and one whose boxes are moved in half of the videos."""
    scenes, predictions = event_set(1, videos=videos)
    moved = pl.when(pl.col("box") % 2 == 0).then(pl.col("x2_px") + worse_by * 100).otherwise("x2_px")
    other = predictions.with_tables(boxes=predictions.boxes.with_columns(x2_px=moved))
    both = (
        evaluate(p, scenes, CONFIG, frame_thresholds=(0.2, "0.5:0.95")).matches for p in (predictions, other)
    )
    return tuple(both)


def test_a_model_against_itself_is_not_different() -> None:
    one, _ = runs()
    found = compare_detections(one, one, CONFIG, resamples=50)
    defined = found.table.filter(pl.col("verdict") != "undefined")
    assert set(defined["verdict"]) == {"not different"}
    assert set(defined["difference"]) == {0.0}
    never = found.table.filter(pl.col("label") == "Never")
    assert set(never["verdict"]) == {"undefined"}


def test_the_better_one_is_called_so_from_both_sides() -> None:
    one, two = runs(videos=24)
    metric = "frame_map@0.5:agentness"
    assert compare_detections(one, two, CONFIG, resamples=200).verdict(metric) == "better"
    assert compare_detections(two, one, CONFIG, resamples=200).verdict(metric) == "worse"
    with pytest.raises(UsageError, match="no metric"):
        compare_detections(one, two, CONFIG, resamples=2).verdict("frame_map@0.9:agent")


def test_the_interval_is_that_of_paired_resamples() -> None:
    one, two = runs()
    row = compare_detections(one, two, CONFIG, resamples=PercentileResamples(60), seed=5).table.row(
        by_predicate=pl.col("metric") == "frame_ap@0.2:agent:Car", named=True
    )
    drawn = next(sample_cluster_counts(8, 60, 5, at_once=60))
    c, t = one["frame"].classes.index(("agent", "Car")), one["frame"].thresholds.index(0.2)
    tables = [compute_average_precisions(runs["frame"], CONFIG, drawn)[:, c, t] for runs in (one, two)]
    low, high = np.nanpercentile(tables[0] - tables[1], (2.5, 97.5))
    assert (row["low_video"], row["high_video"]) == (pytest.approx(low), pytest.approx(high))


def test_the_ten_of_the_range_stand_together() -> None:
    one, two = runs()
    found = compare_detections(one, two, CONFIG, resamples=5).table.filter(pl.col("level") == "frame")
    assert found["threshold"].unique(maintain_order=True).to_list() == ["0.2", "0.5", "0.75", "0.5:0.95"]
    assert "av_map" in compare_detections(one, two, CONFIG, resamples=5).table["metric"]


def test_one_video_gives_no_interval() -> None:
    one, two = runs(videos=1)
    assert (
        compare_detections(one, two, CONFIG, resamples=5).verdict("frame_map@0.5:agentness") == "no interval"
    )


def test_different_truth_cannot_be_compared() -> None:
    one, two = runs()
    frame = two["frame"]
    less = {**two, "frame": replace(frame, n_truth=frame.n_truth + 1)}
    with pytest.raises(InputError, match="different truth at level frame"):
        compare_detections(one, less, CONFIG)
    turned = {**two, "frame": replace(frame, videos=tuple(reversed(frame.videos)))}
    with pytest.raises(InputError, match="different videos"):
        compare_detections(one, turned, CONFIG)
    with pytest.raises(InputError, match="share no threshold"):
        compare_detections({"frame": one["frame"]}, {"av_action": two["av_action"]}, CONFIG)
    with pytest.raises(UsageError, match="at least 1 resample"):
        compare_detections(one, two, CONFIG, resamples=0)


def test_joint_scores_can_be_held_against_products_and_nothing_else_against_another() -> None:
    one, two = runs()
    same = compare_detections(one, two, CONFIG, resamples=5)
    assert same.differs == {}
    product = replace(CONFIG, composite_scores="product")
    found = compare_detections(one, two, CONFIG, resamples=5, config_b=product)
    assert found.differs == {"composite_scores": ("joint", "product")}
    assert found.table.equals(same.table)
    for changes in ({"min_score": 0.1}, {"min_score": 0.1, "composite_scores": "product"}):
        with pytest.raises(UsageError, match=r"different configs, min_score \(0\.0 and 0\.1\)"):
            compare_detections(one, two, CONFIG, resamples=5, config_b=replace(CONFIG, **changes))
