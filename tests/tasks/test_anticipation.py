"""What is expected of detections: said in time, at the right frames, and by past detections alone."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import UsageError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import evaluate
from roadaware.models.event_head.anticipation import HORIZONS_S, open_anticipation
from roadaware.models.event_head.head import open_head
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.tasks.events import KINDS, anticipate_events


@pytest.fixture(scope="module")
def scenes() -> Scenes:
    return generate_road_scenes(videos=2, frames=60, seed=3)


@pytest.fixture(scope="module")
def detections(scenes: Scenes) -> Predictions:
    return simulate_detections(scenes, seed=0, detector=Detector(size=None))


def anticipate(detections: Predictions) -> dict[float, Predictions]:
    labels = detections.meta.vocabularies
    return anticipate_events(detections, open_head(), open_anticipation(), LinkerConfig.default(), labels)


@pytest.fixture(scope="module")
def future(detections: Predictions) -> dict[float, Predictions]:
    return anticipate(detections)


def test_boxes_lie_at_the_frames_that_they_are_expected_in(
    future: dict[float, Predictions], detections: Predictions
) -> None:
    assert tuple(future) == HORIZONS_S
    for horizon_s, found in future.items():
        ahead = round(horizon_s * 12)
        said = found.boxes["ready_s"].to_numpy() * 12
        np.testing.assert_allclose(found.boxes["frame"].to_numpy(), said + ahead)
        assert found.boxes["score"].is_between(0, 1).all()
        assert set(found.tube_labels["kind"].cast(pl.String)) == set(KINDS) - {"agentness"}
        assert (found.boxes["x2_px"] > found.boxes["x1_px"]).all()


def test_what_comes_later_changes_nothing_that_was_said(
    future: dict[float, Predictions], detections: Predictions
) -> None:
    early = detections.with_tables(
        boxes=detections.boxes.filter(pl.col("frame") < 30),
        frames=detections.frames.filter(pl.col("frame") < 30),
    )
    columns = ["video", "frame", "ready_s", "x1_px", "y1_px", "x2_px", "y2_px", "score"]
    for horizon_s, found in anticipate(early).items():
        before = future[horizon_s].boxes.filter(pl.col("ready_s") < 29.5 / 12)
        one, two = (each.select(columns).sort(columns[:4]) for each in (found.boxes, before))
        assert one.equals(two)


def test_frames_ahead_are_counted_by_the_times_of_frames_where_the_rate_is_not_known(
    future: dict[float, Predictions], detections: Predictions
) -> None:
    timed = detections.with_tables(
        videos=detections.videos.with_columns(fps=pl.lit(None, pl.Float32)),
        frames=detections.frames.with_columns(t_s=(pl.col("frame") / 16).cast(pl.Float32)),
    )
    for horizon_s, found in anticipate(timed).items():
        ahead = found.boxes["frame"].to_numpy() / 16 - found.boxes["ready_s"].to_numpy()
        np.testing.assert_allclose(ahead, horizon_s, atol=1e-5)
    untimed = anticipate(timed.with_tables(frames=detections.frames))
    assert untimed[1.0].boxes.equals(future[1.0].boxes)


def test_they_are_judged_as_any_predictions(future: dict[float, Predictions], scenes: Scenes) -> None:
    found = evaluate(
        future[0.5],
        scenes,
        DetectionConfig.default(),
        frame_thresholds=(0.5,),
        video_thresholds=(0.2,),
        kinds=KINDS,
    )
    values = {row["metric"]: row["value"] for row in found.summary.iter_rows(named=True)}
    assert 0.1 < values["frame_map@0.5:agentness"] < 1


def test_what_cannot_be_anticipated_is_refused(detections: Predictions, scenes: Scenes) -> None:
    with pytest.raises(UsageError, match="tubes; events are anticipated of detections"):
        anticipate(link(detections, LinkerConfig.default()))
    with pytest.raises(UsageError, match="size of video"):
        anticipate(detections.with_tables(videos=detections.videos.drop("width_px", "height_px")))
    nobody = detections.with_tables(boxes=detections.boxes.clear())
    for found in anticipate(nobody).values():
        assert found.boxes.is_empty()
        assert {"ready_s", "score", "scores"} <= set(found.boxes.columns)
        # What nobody expected was missed.
        judged = evaluate(
            found, scenes, DetectionConfig.default(), frame_thresholds=(0.5,), video_thresholds=(0.2,)
        )
        assert judged.value("frame_map@0.5:action") == 0
    short = {"n_frames": 8}
    ended = detections.with_tables(
        boxes=detections.boxes.filter(pl.col("frame") < 8),
        frames=detections.frames.filter(pl.col("frame") < 8),
        videos=detections.videos.with_columns(**{name: pl.lit(value) for name, value in short.items()}),
    )
    found = anticipate(ended)
    assert found[3.0].boxes.is_empty()
    assert (found[0.5].boxes["frame"] < 8).all()
