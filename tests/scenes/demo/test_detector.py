"""The synthetic detector: what it finds, what it misses, and what its scores know."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.demo_data import road as terms
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import InputError
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.tables import Predictions, Scenes

PERFECT = Detector(
    missed=0,
    missed_tracks=0,
    missed_frames=0,
    false_positives=0,
    doubles=0,
    jitter=0,
    confused=0,
    sharpness=8,
    size=None,
)


@pytest.fixture(scope="module")
def world() -> Scenes:
    return generate_road_scenes(videos=8, frames=150, seed=2)


@pytest.fixture(scope="module")
def predictions(world: Scenes) -> Predictions:
    return simulate_detections(world)


def truth(world: Scenes, kind: str) -> np.ndarray:
    hot = np.zeros((len(world.boxes), len(terms.VOCABULARIES[kind])), dtype=bool)
    rows = world.labels.filter(pl.col("kind") == kind)
    hot[rows["box"], rows["label"]] = True
    return hot


def test_scores_are_named_and_lie_between_0_and_1(predictions: Predictions) -> None:
    named = get_score_layout(predictions.meta, "boxes")
    assert list(named.kinds) == ["agent", "action", "location", "duplex", "event"]
    assert named.width == 148
    scores = convert_to_matrix(predictions.boxes["scores"], 148)
    assert scores.min() > 0
    assert scores.max() < 1
    assert get_score_layout(predictions.meta, "frames").width == 7
    assert len(predictions.frames) == 8 * 150


def test_equal_seeds_find_equal_boxes_and_others_do_not(world: Scenes, predictions: Predictions) -> None:
    assert simulate_detections(world) == predictions
    assert simulate_detections(world, seed=1) != predictions


def test_rows_lie_by_video_frame_and_falling_agentness_above_the_least(predictions: Predictions) -> None:
    order = predictions.boxes.with_columns(-pl.col("score")).select("video", "frame", "score")
    assert order.equals(order.sort("video", "frame", "score"))
    assert predictions.boxes["score"].min() > 0.025
    assert predictions.boxes.group_by("video", "frame").len()["len"].max() <= 100


def test_a_perfect_detector_finds_the_truth_and_knows_it(world: Scenes) -> None:
    found = simulate_detections(world, detector=PERFECT)
    corners = ["x1_px", "y1_px", "x2_px", "y2_px"]
    key = ["video", "frame", *corners]
    assert found.boxes.select(key).sort(key).equals(world.boxes.select(key).sort(key))
    both = found.boxes.join(world.boxes.select(*key, true="box"), on=key).unique("box")
    scores = convert_to_matrix(both["scores"], 148)
    for kind in ("agent", "action", "location", "duplex"):
        hot = truth(world, kind)[both["true"]]
        mine = scores[:, get_score_layout(found.meta, "boxes").columns(kind)]
        assert mine[hot].min() > 0.9
        assert mine[~hot].max() < 0.1


def test_boxes_are_in_the_pixels_of_the_detectors_image(world: Scenes, predictions: Predictions) -> None:
    assert predictions.videos.select("width_px", "height_px").unique().rows() == [(682, 512)]
    assert predictions.boxes["x2_px"].max() <= 682
    assert predictions.boxes["y2_px"].max() <= 512
    own = simulate_detections(world, detector=Detector(size=None))
    assert own.videos.equals(world.videos)
    ratio = own.boxes["x2_px"].sum() / predictions.boxes["x2_px"].sum()
    assert ratio == pytest.approx(1280 / 682, rel=1e-5)


def test_what_is_asked_to_go_wrong_goes_wrong_about_so_often(world: Scenes) -> None:
    seen = len(world.boxes)
    only = {"missed": 0, "missed_tracks": 0, "missed_frames": 0, "false_positives": 0, "doubles": 0}
    assert len(simulate_detections(world, detector=Detector(**only)).boxes) == pytest.approx(seen, rel=0.01)
    some = simulate_detections(world, detector=Detector(**only | {"missed": 0.3})).boxes
    assert len(some) == pytest.approx(0.66 * seen, rel=0.08)  # more at night
    more = simulate_detections(
        world, detector=Detector(**only | {"false_positives": 2.0, "doubles": 0.5})
    ).boxes
    assert len(more) == pytest.approx(1.5 * seen + 2.0 * 1200, rel=0.08)
    blind = simulate_detections(world, detector=Detector(**only | {"missed_frames": 1.0}))
    assert blind.boxes.is_empty()
    assert len(blind.frames) == 1200


def test_night_is_seen_worse() -> None:
    world = generate_road_scenes(videos=8, frames=300, seed=6)
    found = simulate_detections(
        world, detector=Detector(false_positives=0, missed_tracks=0, doubles=0, missed=0.2)
    )
    rate = {}
    for weather, names in world.videos.group_by("weather").agg("video").iter_rows():
        part = pl.col("video").is_in(names)
        rate[weather] = len(found.boxes.filter(part)) / len(world.boxes.filter(part))
    assert rate["night"] < min(value for weather, value in rate.items() if weather != "night") - 0.05


def test_joint_scores_of_composites_differ_from_products_but_follow_them(predictions: Predictions) -> None:
    scores = convert_to_matrix(predictions.boxes["scores"], 148)
    named = get_score_layout(predictions.meta, "boxes")
    agent, action = scores[:, named.columns("agent")], scores[:, named.columns("action")]
    parts = np.array(predictions.meta.notes["children"]["duplex"])
    product, joint = agent[:, parts[:, 0]] * action[:, parts[:, 1]], scores[:, named.columns("duplex")]
    together = np.corrcoef(np.log(product).ravel(), np.log(joint).ravel())[0, 1]
    assert 0.6 < together < 0.995


def test_rounding_makes_ties(world: Scenes) -> None:
    rounded = simulate_detections(world, detector=Detector(decimals=2))
    assert rounded.boxes["score"].n_unique() <= 100
    scores = convert_to_matrix(rounded.boxes["scores"], 148)
    np.testing.assert_allclose(scores.round(2), scores, rtol=1e-6, atol=1e-12)


def test_errors_of_a_track_persist(world: Scenes) -> None:
    """A confused track is confused in most of its frames: that is what makes linking hard."""
    found = simulate_detections(
        world, detector=Detector(confused=0.3, jitter=0, false_positives=0, doubles=0, size=None)
    )
    key = ["video", "frame", "x1_px", "y1_px", "x2_px", "y2_px"]
    both = found.boxes.join(world.boxes.select(*key, true="box", owner="tube"), on=key).unique("box")
    agent = convert_to_matrix(both["scores"], 148)[:, :10]
    hot = truth(world, "agent")[both["true"]]
    known = hot.any(axis=1)
    right = agent.argmax(axis=1) == hot.argmax(axis=1)
    rows = pl.DataFrame({"owner": both["owner"], "right": right}).filter(pl.Series(known))
    share = rows.group_by("owner").agg(pl.col("right").mean())["right"].to_numpy()
    assert ((share < 0.2) | (share > 0.8)).mean() > 0.8


def test_a_set_without_sizes_is_refused() -> None:
    with pytest.raises(InputError, match="width_px, height_px, n_frames"):
        simulate_detections(Scenes(videos=pl.DataFrame({"video": ["a"]})))


@pytest.mark.slow
def test_ucf101_24_is_seen_as_often_as_published() -> None:
    data = os.environ.get("ROADAWARE_DATA_DIR")
    if not data or not (Path(data) / "ucf24").is_dir():
        pytest.skip("ROADAWARE_DATA_DIR names no folder with ucf24")
    from roadaware.datasets import READERS, read

    if "ucf24" not in READERS:
        pytest.skip("no reader of ucf24")
    scenes = read("ucf24", Path(data) / "ucf24", cache=False).split("test")
    predictions = simulate_detections(scenes, detector=Detector.ucf24())
    assert len(predictions.boxes) == pytest.approx(258_000, rel=0.01)
    assert get_score_layout(predictions.meta, "boxes").width == 24
    assert get_score_layout(predictions.meta, "frames").width == 25
