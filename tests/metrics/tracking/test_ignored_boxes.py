"""Paths and boxes that tracking metrics do not judge: boxes to ignore, tubes of one label, other videos."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from random_tracks import EDGES, tables, track_set
from scipy.optimize import linear_sum_assignment

from roadaware.errors import InputError
from roadaware.geometry.boxes import iou
from roadaware.metrics.tracking import evaluate_tracks, track_counts
from roadaware.metrics.tracking_pairs import TrackingConfig
from roadaware.scenes.tables import Predictions, Scenes

THRESHOLD = TrackingConfig.default().threshold


def left(scenes: Scenes, predictions: Predictions) -> tuple[Scenes, Predictions]:
    """Plain loop: without the boxes to ignore, and the predictions that the best assignment gives them."""
    gone: list[int] = []
    for (video, frame), held in scenes.boxes.partition_by("video", "frame", as_dict=True).items():
        found = predictions.boxes.filter((pl.col("video") == video) & (pl.col("frame") == frame))
        overlaps = iou(*(side.select(EDGES).to_numpy() for side in (held, found)))
        overlaps[overlaps < THRESHOLD - np.finfo(float).eps] = 0.0
        for true, predicted in zip(*linear_sum_assignment(overlaps, maximize=True), strict=True):
            if overlaps[true, predicted] > 0 and held["ignore"][int(true)]:
                gone.append(found["box"][int(predicted)])
    return (
        scenes.with_tables(boxes=scenes.boxes.filter(~pl.col("ignore")).drop("ignore")),
        predictions.with_tables(boxes=predictions.boxes.filter(~pl.col("box").is_in(gone))),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("untracked", [False, True])
def test_boxes_to_ignore_take_the_predictions_on_them_along(seed: int, untracked: bool) -> None:
    scenes, predictions = track_set(seed, crowd=0.8, frames=20)
    ignore = (pl.col("tube") % 3 == 0) | ((pl.col("tube") + pl.col("frame")) % 5 == 0)
    boxes = scenes.boxes.with_columns(ignore=ignore)
    if untracked:  # a crowd that nobody followed rests the same
        boxes = boxes.with_columns(tube=pl.when("ignore").then(None).otherwise("tube"))
    scenes = scenes.with_tables(boxes=boxes)
    expected = track_counts(*reversed(left(scenes, predictions)))
    found = track_counts(predictions, scenes)
    assert found.table["truth"].sum() < len(scenes.boxes)
    for name, values in expected.table.items():
        np.testing.assert_allclose(found.table[name], values, atol=1e-9, err_msg=name)


def one_track(**columns: Any) -> tuple[Scenes, Predictions]:
    """A track of ten boxes that one path follows."""
    box = np.array([0.0, 0.0, 10.0, 10.0])
    rows = [("v", frame, 0, box) for frame in range(10)]
    boxes, tubes = tables(rows)
    frames = pl.DataFrame({"video": "v", "frame": range(10), "annotated": True})
    scenes = Scenes(videos=pl.DataFrame({"video": ["v"]}), frames=frames, boxes=boxes, tubes=tubes)
    return scenes, Predictions(boxes=boxes, tubes=tubes.with_columns(**columns))


def test_a_track_that_rests_is_not_asked_for() -> None:
    scenes, predictions = one_track()
    rested = scenes.with_tables(boxes=scenes.boxes.with_columns(ignore=pl.lit(True)))
    totals = track_counts(predictions, rested).totals()
    assert {name: float(totals[name]) for name in ("truth", "predictions", "tracks", "paths")} == {
        "truth": 0,
        "predictions": 0,
        "tracks": 0,
        "paths": 0,
    }
    assert evaluate_tracks(predictions, rested).value("mota") is None


def test_boxes_that_do_not_count_take_their_labels_along() -> None:
    scenes, predictions = one_track()
    named = pl.DataFrame({"box": range(10), "kind": ["agent"] * 10, "label": [0] * 10})
    meta = replace(scenes.meta, vocabularies={"agent": ("Car",)})
    boxes = scenes.boxes.with_columns(ignore=pl.col("frame") < 4)
    labelled = scenes.with_tables(boxes=boxes, labels=named, meta=meta)
    weak = predictions.boxes.with_columns(
        score=pl.col("frame").cast(pl.Float32) / 10, interpolated=pl.col("frame") == 9
    )
    predictions = predictions.with_tables(boxes=weak, labels=named.with_columns(score=pl.lit(1.0)), meta=meta)
    config = replace(TrackingConfig.default(), min_score=0.5, interpolated_boxes=False)
    totals = track_counts(predictions, labelled, config).totals()
    # Frames 4 to 9 are asked for; of the path frames 5 to 8 have a score and were detected.
    assert (float(totals["truth"]), float(totals["predictions"])) == (6, 4)


def test_tubes_of_labels_are_no_paths() -> None:
    scenes, predictions = one_track(kind=pl.lit("agent"))
    with pytest.raises(InputError, match=r"none of the 1 predicted tubes is a path: .* agent"):
        evaluate_tracks(predictions, scenes)
    beside = predictions.with_tables(
        tubes=pl.concat(
            [
                predictions.tubes,
                predictions.tubes.with_columns(tube=pl.lit(1, pl.Int64), kind=pl.lit(None, pl.String)),
            ]
        )
    )
    assert evaluate_tracks(beside, scenes).value("mota") == 0.0  # the path has no boxes of its own


def test_a_truth_of_kinds_alone_has_tracks() -> None:
    scenes, predictions = one_track()
    named = scenes.with_tables(tubes=scenes.tubes.with_columns(kind=pl.lit("pedestrian")))
    assert evaluate_tracks(predictions, named).value("mota") == 1.0


def test_what_is_not_judged_stands_in_the_notes() -> None:
    scenes, predictions = one_track()
    assert evaluate_tracks(predictions, scenes).notes == ()
    more = pl.DataFrame({"tube": [7, 8], "video": ["w", "w"]}, schema_overrides={"tube": pl.Int64})
    held = predictions.with_tables(tubes=pl.concat([predictions.tubes, more], how="diagonal"))
    said = "2 predicted paths in videos that the truth does not have were left out"
    assert evaluate_tracks(held, scenes).notes == (said,)
    unlinked = predictions.with_tables(tubes=predictions.tubes.clear(), boxes=predictions.boxes.drop("tube"))
    assert evaluate_tracks(unlinked, scenes).notes == (
        "the predicted boxes are not linked, so that no path follows a track",
    )
