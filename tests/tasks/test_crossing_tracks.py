"""Tracks of any rate are asked about at every moment, as the samples of a protocol are; gaps begin them anew."""

from __future__ import annotations

import os

import numpy as np
import polars as pl
import pytest

import roadaware as ra
from real_sets import jaad
from roadaware.errors import InputError, UsageError
from roadaware.models.crossing.ensemble import EnsemblePredictor
from roadaware.online.setup import PREDICTORS, WEIGHTS
from roadaware.scenes.tables import Meta, Predictions, Scenes
from roadaware.tasks.crossing_tracks import (
    Moments,
    add_truth,
    cut_moments,
    list_members,
    predict_tracks,
    rank_people,
    read_moments,
)


def a_walk(
    fps: float, seconds: float = 2.0, *, lost: tuple[int, int] = (0, 0), names: tuple[str, ...] = ("a",)
) -> Scenes:
    """People who walk to the right, of which some frames may be lost."""
    rows = []
    for tube, _ in enumerate(names):
        for frame in range(round(seconds * fps)):
            if lost[0] <= frame < lost[1]:
                continue
            x = 300 + 200 * frame / fps + 50 * tube
            rows.append((len(rows), "walk", frame, tube, x, 400.0, x + 60, 560.0))
    columns = ["box", "video", "frame", "tube", "x1_px", "y1_px", "x2_px", "y2_px"]
    return Scenes(
        videos=pl.DataFrame({"video": ["walk"], "fps": [fps], "width_px": [1920], "height_px": [1080]}),
        boxes=pl.DataFrame(rows, schema=columns, orient="row"),
        tubes=pl.DataFrame({"tube": range(len(names)), "video": ["walk"] * len(names), "name": list(names)}),
    )


@pytest.fixture(scope="module")
def predictor() -> EnsemblePredictor:
    return EnsemblePredictor.open([WEIGHTS / PREDICTORS[0]])


def test_the_predictor_says_its_rate_and_reach(predictor: EnsemblePredictor) -> None:
    moments = read_moments(predictor, 0.5)
    assert (moments.rate_fps, moments.frames, moments.every) == (30.0, 15, 15)
    assert len(list_members(EnsemblePredictor((predictor, predictor)))) == 2


def test_every_moment_with_enough_boxes_is_asked(predictor: EnsemblePredictor) -> None:
    asked = cut_moments(a_walk(30), Moments())
    assert len(asked.scenes.samples) == 60 - 14
    found = predict_tracks(predictor, asked)
    assert found["frame"].to_list() == list(range(14, 60))
    assert found["t_s"].to_list() == pytest.approx([frame / 30 for frame in range(14, 60)])
    assert found["x1_px"].to_list() == pytest.approx(
        [300 + 200 * frame / 30 for frame in range(14, 60)], abs=1e-3
    )
    assert found["probability"].is_between(0, 1).all()
    assert (found["low"] <= found["high"]).all()
    assert found["within_limits"].all()
    sparse = predict_tracks(predictor, cut_moments(a_walk(30), Moments(every=15)))
    assert sparse["frame"].to_list() == [14, 29, 44, 59]
    assert sparse["probability"].to_list() == pytest.approx(found["probability"].to_list()[::15], abs=1e-6)


@pytest.mark.parametrize("fps", [5.0, 10.0, 25.0, 29.97, 60.0])
def test_an_even_walk_is_the_same_at_every_rate(predictor: EnsemblePredictor, fps: float) -> None:
    """A straight line is its own resampling, so that the answers are those at 30 frames a second."""
    whole = predict_tracks(predictor, cut_moments(a_walk(30), Moments()))
    found = predict_tracks(predictor, cut_moments(a_walk(fps), Moments()))
    assert len(found) == pytest.approx(len(whole), abs=7)
    same = min(len(found), len(whole))
    assert (
        np.abs(found["probability"].to_numpy()[:same] - whole["probability"].to_numpy()[:same]).max() < 0.02
    )


def test_a_gap_is_bridged_or_begins_anew() -> None:
    short = cut_moments(a_walk(30, lost=(20, 30)), Moments())
    assert len(short.owner) == 1
    assert len(short.scenes.samples) == 46
    long = cut_moments(a_walk(30, lost=(20, 40)), Moments())
    assert list(long.owner.values()) == [("walk", "a")] * 2
    assert len(long.scenes.samples) == 6 + 6
    bridged = cut_moments(a_walk(30, lost=(20, 40)), Moments(bridge_s=1.0))
    assert len(bridged.owner) == 1


def test_who_is_followed_too_briefly_is_told() -> None:
    asked = cut_moments(a_walk(30, 0.3, names=("a", "b")), Moments())
    assert asked.short == [("walk", "a"), ("walk", "b")]
    assert asked.scenes.samples.is_empty()
    one = cut_moments(a_walk(30, 1 / 30), Moments())
    assert one.short == [("walk", "a")]


def test_small_boxes_are_marked_and_count_for_nothing(predictor: EnsemblePredictor) -> None:
    scenes = a_walk(30)
    small = scenes.with_tables(boxes=scenes.boxes.with_columns(y2_px=pl.col("y1_px") + 20))
    found = predict_tracks(predictor, cut_moments(small, Moments()))
    assert not found["within_limits"].any()
    assert rank_people(found).is_empty()


def test_people_are_ranked_by_their_most_urgent_moment(predictor: EnsemblePredictor) -> None:
    found = predict_tracks(predictor, cut_moments(a_walk(30, names=("a", "b", "c")), Moments()), spread=False)
    assert found["low"].null_count() == len(found)
    ranked = rank_people(found)
    assert ranked["peak"].to_list() == sorted(ranked["peak"].to_list(), reverse=True)
    best = found.filter(pl.col("name") == ranked["name"][0])
    assert ranked["peak"][0] == best["probability"].max()
    assert ranked["moments"].to_list() == [46] * 3
    assert ranked["last"][0] == best.sort("t_s")["probability"][-1]


def test_the_truth_stands_beside_where_it_is_known(predictor: EnsemblePredictor) -> None:
    scenes = a_walk(30)
    found = predict_tracks(predictor, cut_moments(scenes, Moments()))
    assert "crossing" not in add_truth(found, scenes).columns
    tubes = scenes.tubes.with_columns(
        crossing=pl.lit("crossing"), event_frame=pl.lit(59), event_source=pl.lit("annotated")
    )
    told = add_truth(found, scenes.with_tables(tubes=tubes))
    assert told["seconds_to_event"].to_list() == pytest.approx(
        [(59 - frame) / 30 for frame in found["frame"]]
    )


def test_detected_boxes_are_smoothed_looking_back_only() -> None:
    scenes = a_walk(30)
    shaken = np.random.default_rng(0).normal(0, 4, len(scenes.boxes))
    boxes = scenes.boxes.with_columns(x1_px=pl.col("x1_px") + shaken, x2_px=pl.col("x2_px") + shaken)
    raw = cut_moments(scenes.with_tables(boxes=boxes), Moments()).scenes.boxes
    calm = cut_moments(scenes.with_tables(boxes=boxes), Moments(steady_s=0.5)).scenes.boxes
    true = scenes.boxes["x1_px"].to_numpy()
    assert (
        np.abs(calm["x1_px"].to_numpy() - true)[15:].mean()
        < 0.7 * np.abs(raw["x1_px"].to_numpy() - true)[15:].mean()
    )
    later = boxes.with_columns(x1_px=pl.when(pl.col("frame") > 30).then(0.0).otherwise(pl.col("x1_px")))
    changed = cut_moments(scenes.with_tables(boxes=later), Moments(steady_s=0.5)).scenes.boxes
    assert changed["x1_px"].to_list()[:31] == calm["x1_px"].to_list()[:31]


def test_what_nobody_can_ask_is_refused() -> None:
    scenes = a_walk(30)
    without = scenes.with_tables(videos=scenes.videos.drop("fps"))
    with pytest.raises(InputError, match="frame rate of walk is unknown"):
        cut_moments(without, Moments())
    assert len(cut_moments(without, Moments(), fps=30).scenes.samples) == 46
    with pytest.raises(InputError, match="none of 0 boxes"):
        cut_moments(Predictions(videos=scenes.videos), Moments())
    for wrong in ({"every": 0}, {"frames": 0}, {"rate_fps": 0.0}, {"bridge_s": -1.0}, {"steady_s": 99.0}):
        with pytest.raises(UsageError):
            Moments(**wrong)


@pytest.mark.slow
@pytest.mark.skipif("ROADAWARE_DATA_DIR" not in os.environ, reason="JAAD's annotations are not there")
def test_jaad_s_samples_are_among_the_moments(predictor: EnsemblePredictor) -> None:
    """What the protocol's samples are given is given to the same moments here: no second way of asking."""
    scenes = jaad()
    few = scenes.only(scenes.videos["video"].cast(pl.String).sort().to_list()[300:])
    found = predict_tracks(predictor, cut_moments(few, Moments()), spread=False)
    model = ra.load_model("crossing-jaad")
    samples = ra.sample(scenes, "jaad-action@iv2024")
    asked = model.predict(samples, "test").samples.select("sample", "scores")
    held = samples.samples.filter(pl.col("split").cast(pl.String) == "test").join(asked, on="sample")
    held = held.join(scenes.tubes.select("tube", pl.col("name").cast(pl.String)), on="tube")
    held = held.select(pl.col("video").cast(pl.String), "name", "scores", frame=pl.col("end_frame") - 1)
    both = held.join(found, on=["video", "name", "frame"])
    assert len(both) > 50
    scores = np.array(both["scores"].to_list()).reshape(len(both), -1)[:, -1]
    assert np.abs(scores - both["probability"].to_numpy()).max() < 1e-6


def test_meta_says_whose_tracks_they_are() -> None:
    scenes = a_walk(30).with_tables(meta=Meta("somewhere", "CC0"))
    asked = cut_moments(scenes, Moments()).scenes
    assert (asked.meta.dataset, asked.meta.licence) == ("somewhere", "CC0")
