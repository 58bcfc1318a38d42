"""Moments know how long it still takes, or how long nothing happens at least; networks learn it from both."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from roadaware.errors import InputError
from roadaware.models.crossing.ensemble import EnsemblePredictor
from roadaware.online.setup import PREDICTORS, WEIGHTS
from roadaware.protocols.crossing_time import (
    CLASSIFIER,
    HAZARD,
    METRICS,
    PRIOR,
    SAME,
    TREES,
    TREES_FILE,
    curve_by_score,
    run_time_study,
)
from roadaware.reports.crossing_time import build_time_section, format_time_study
from roadaware.reports.page import report
from roadaware.scenes.sampling import get_protocol
from roadaware.scenes.tables import Meta, Scenes
from roadaware.tasks.crossing_time import EDGES_S, TimedTracks, collect_times, estimate_lane_time, mark_spans
from roadaware.tasks.crossing_tracks import Moments, cut_moments, predict_tracks, read_moments, survive
from roadaware.training.pedestrians.hazard import HazardRecipe, censored_loss, fit_hazard

torch.set_num_threads(1)
PROTOCOL = get_protocol("jaad-action@iv2024", "default")
INPUTS = ("centre", "motion")


def streets(videos: int = 12) -> Scenes:
    """In each video one who walks to the middle and crosses at 3 s, and one who stands; splits in turn."""
    rows, tubes, names = [], [], [f"video_{n:04d}" for n in range(videos)]
    for place, video in enumerate(names):
        for who, crosses in (("a", True), ("b", False)):
            tube = len(tubes)
            event = 90 + place if crosses else None
            tubes.append(
                (
                    tube,
                    video,
                    who,
                    "crossing" if crosses else "not-crossing",
                    event,
                    "annotated" if crosses else "none",
                )
            )
            for frame in range(120):
                x = 200.0 + 4 * frame + 3 * place if crosses else 1500.0
                seen = "crossing" if crosses and frame >= 90 + place else "not-crossing"
                rows.append((len(rows), video, frame, tube, x, 400.0, x + 60, 560.0, seen))
    corners = ["x1_px", "y1_px", "x2_px", "y2_px"]
    parts = ["train", "val", "test"]
    return Scenes(
        videos=pl.DataFrame(
            {
                "video": names, "fps": [30.0] * videos, "width_px": [1920] * videos, "height_px": [1080] * videos,
                "n_frames": [120] * videos, "splits": [[f"default/{parts[n % 3]}"] for n in range(videos)],
            }
        ),
        boxes=pl.DataFrame(rows, schema=["box", "video", "frame", "tube", *corners, "cross"], orient="row"),
        tubes=pl.DataFrame(tubes, schema=["tube", "video", "name", "crossing", "event_frame", "event_source"], orient="row"),
        meta=Meta("JAAD"),
    )  # fmt: skip


def collect(split: str = "test", scenes: Scenes | None = None) -> TimedTracks:
    return collect_times(streets() if scenes is None else scenes, PROTOCOL, split, Moments(), INPUTS)


def test_moments_know_their_time_or_how_long_it_is_at_least() -> None:
    found = collect()
    assert found.people == (("video_0002", "a"), ("video_0002", "b"), ("video_0005", "a"), ("video_0005", "b"),
                            ("video_0008", "a"), ("video_0008", "b"), ("video_0011", "a"), ("video_0011", "b"))  # fmt: skip
    walker, stander = found.person == 0, found.person == 1
    assert found.event[walker].all()
    assert found.time_s[walker] == pytest.approx([(92 - frame) / 30 for frame in range(14, 92)])
    assert not found.event[stander].any()
    assert found.time_s[stander] == pytest.approx([(119 - frame) / 30 for frame in range(14, 119)])
    assert found.event_s[0] == pytest.approx(92 / 30)
    assert np.isnan(found.event_s[1])
    assert found.hours == pytest.approx(4 * 4 / 3600)
    assert found.inputs.shapes["centre"] == (15, 8)
    lane = estimate_lane_time(found.inputs, 30.0)
    # From x to the middle third at 640 px with 120 px/s; who stands at the right never comes.
    x = found.table["x1_px"].to_numpy() + 30
    assert lane[walker] == pytest.approx(np.maximum(640 - x[walker], 0) / 120, abs=1e-3)
    assert (lane[stander] == 60).all()


def test_an_event_that_nobody_annotated_is_left_out() -> None:
    scenes = streets()
    made_up = scenes.tubes.with_columns(
        event_source=pl.when(pl.col("tube") == 4).then(pl.lit("fallback")).otherwise("event_source")
    )
    found = collect("test", scenes.with_tables(tubes=made_up))
    assert ("video_0002", "a") not in found.people
    assert found.left_out["moments of people said to cross whose event is not annotated"] == 106
    with pytest.raises(InputError, match="event_source"):
        collect("test", scenes.with_tables(tubes=scenes.tubes.drop("event_source")))


def test_spans_hold_the_event_or_all_that_may() -> None:
    held = mark_spans(
        np.array([0.2, 0.5, 9.0, 0.5, 9.0]), np.array([True, True, True, False, False]), (0.5, 1.0)
    )
    assert held.astype(int).tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1], [0, 0, 1]]
    logits = torch.randn(5, 3, dtype=torch.float64)
    chance = logits.softmax(dim=1).numpy()
    wanted = [-np.log(row[mask].sum()) for row, mask in zip(chance, held, strict=True)]
    assert censored_loss(logits, torch.from_numpy(held)).numpy() == pytest.approx(wanted)
    assert survive(chance) == pytest.approx(1 - np.cumsum(chance, axis=1)[:, :2])


@pytest.mark.slow
def test_a_network_learns_when() -> None:
    recipe = HazardRecipe(
        fields=(("dropout", 0.0),), epochs=20, batch=32, every=1, lr=5e-3, weight_decay=0.0, flip=0.0
    )
    predictor = fit_hazard(collect("train"), collect("val"), recipe, 0)
    test = collect("test")
    survival = survive(predictor.probabilities(test.inputs))
    near, far = test.event & (test.time_s < 0.5), test.event & (test.time_s > 2)
    place = EDGES_S.index(1.0)
    assert survival[near, place].mean() < 0.4
    assert survival[far, place].mean() > 0.8
    # Behind the end of all tracks, at 3.5 s, nothing says what happens.
    assert survival[~test.event, EDGES_S.index(3.0)].mean() > 0.8
    again = fit_hazard(collect("train"), collect("val"), recipe, 0)
    assert np.array_equal(again.probabilities(test.inputs), predictor.probabilities(test.inputs))
    # Any tracks can be asked when.
    asked = predict_tracks(predictor, cut_moments(streets(3), Moments()))
    assert asked["within_1s"].is_between(0, 1).all()
    assert (asked["within_1s"] <= asked["within_3s"] + 1e-9).all()
    assert asked["probability"].to_list() == asked["within_2s"].to_list()


def test_who_never_crosses_teaches_nothing() -> None:
    scenes = streets()
    nobody = scenes.tubes.with_columns(
        crossing=pl.lit("not-crossing"), event_frame=pl.lit(None, pl.Int64), event_source=pl.lit("none")
    )
    of = collect("train", scenes.with_tables(tubes=nobody))
    with pytest.raises(InputError, match="nothing to learn"):
        fit_hazard(of, of, HazardRecipe(epochs=1), 0)


def test_a_score_becomes_the_curve_of_those_like_it() -> None:
    val = collect("val")
    score = np.where(val.event, 1.0, 0.0)
    curves = curve_by_score(score, val, np.array([0.0, 1.0]), np.asarray(EDGES_S))
    assert curves[0].tolist() == [1.0] * len(EDGES_S)
    assert curves[1, -1] == 0.0


@pytest.mark.slow
def test_the_study_judges_all_ways_on_the_same_people(tmp_path: Path) -> None:
    recipe = HazardRecipe(epochs=6, batch=32, every=2, lr=5e-3, weight_decay=0.0)
    classifier = EnsemblePredictor.open([WEIGHTS / PREDICTORS[0]])
    found = run_time_study(streets(), tmp_path / "run", classifier, recipe=recipe, seeds=(0,), resamples=20)
    assert set(found.judged) == {TREES, HAZARD, CLASSIFIER, SAME, "constant velocity", PRIOR}
    assert found.judged[PRIOR].numbers["concordance"].value == 0.5
    for each in found.judged.values():
        assert set(each.numbers) == set(METRICS)
        assert 0 <= (each.numbers["integrated_brier"].value or 0) <= 1
    told = json.loads((tmp_path / "run" / "results.json").read_text())
    assert told["ways"][HAZARD]["concordance"]["value"] == found.judged[HAZARD].numbers["concordance"].value
    assert "concordance" in format_time_study(found)
    page = report([build_time_section(found)], title="t")
    assert "Warning time against false alarms" in page
    # Any tracks can be asked by the trees.
    trees = EnsemblePredictor.open([tmp_path / "run" / TREES_FILE])
    asked = predict_tracks(trees, cut_moments(streets(3), read_moments(trees)))
    assert (asked["within_1s"] <= asked["within_3s"] + 1e-9).all()
    # Streets of another town are judged whole, and what was learnt is not learnt again.
    other = run_time_study(
        streets(), tmp_path / "run", classifier, recipe=recipe, seeds=(0,), resamples=0, unseen=streets(5)
    )
    assert len(other.test.people) == 10
    # What is fitted stands, and another recipe is refused.
    weights = (tmp_path / "run" / "seed-0" / "model.safetensors").read_bytes()
    run_time_study(streets(), tmp_path / "run", classifier, recipe=recipe, seeds=(0,), resamples=0)
    assert (tmp_path / "run" / "seed-0" / "model.safetensors").read_bytes() == weights
    with pytest.raises(InputError, match="another recipe"):
        run_time_study(streets(), tmp_path / "run", classifier, seeds=(0,), resamples=0)
