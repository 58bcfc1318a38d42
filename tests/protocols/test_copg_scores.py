"""Proposals judged side by side: numbers by hand, the evaluator's own, and differences on the same draws."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from roadaware.errors import InputError
from roadaware.metrics.corner_cases.evaluate import evaluate
from roadaware.protocols.copg_ablation import (
    JUDGED_BY,
    compute_score,
    compute_states,
    compute_trivial_states,
    rename_videos,
)
from roadaware.scenes.tables import Predictions, Scenes

N = 12


def truth():
    videos = [f"v{n}" for n in range(N)]
    boxes = pl.DataFrame({"box": range(N), "video": videos, "frame": 0})
    boxes = boxes.with_columns(x1_px=10.0, y1_px=10.0, x2_px=30.0, y2_px=30.0, corner_case=True)
    frames = pl.DataFrame(
        {"video": videos, "frame": 0, "annotated": True}, schema_overrides={"frame": pl.Int64}
    )
    size = pl.DataFrame({"video": videos, "width_px": 100, "height_px": 50, "n_frames": 1})
    return Scenes(videos=size, frames=frames, boxes=boxes)


def predictions(met, right=30.0):
    """One prediction in each of the first images, all with one overlap."""
    videos = [f"v{n}" for n in range(met)]
    boxes = pl.DataFrame({"box": range(met), "video": videos, "frame": 0}, schema_overrides={"box": pl.Int64})
    corners = {"x1_px": 10.0, "y1_px": 10.0, "x2_px": right, "y2_px": 30.0, "score": 0.5}
    return Predictions(boxes=boxes.with_columns(**{k: pl.lit(v) for k, v in corners.items()}))


def test_numbers_by_hand():
    """An overlap of 0.8 meets 7 of 10 thresholds from 0.5 to 0.95, one of 0.4 only that of 0.3."""
    scores = [
        compute_score(state)
        for state in compute_states([predictions(6, 26.0), predictions(N, 18.0)], truth())
    ]
    values = [{name: value.value for name, value in each.values.items()} for each in scores]
    assert values[0]["ar50"] == values[0]["ar30"] == 0.5
    assert values[0]["ar"] == pytest.approx(0.35)
    assert (values[1]["ar"], values[1]["ar30"]) == (0, 1)
    assert all(value.low is None for value in scores[0].values.values())


def test_no_proposal_at_all_finds_nothing():
    values = compute_score(compute_states([predictions(0)], truth())[0], 20).values
    found = {(value.value, value.low, value.high, value.caution) for value in values.values()}
    least = 1 - 0.025 ** (1 / len(truth().videos))
    assert found == {(0.0, 0.0, least, "at its end")}


def test_values_and_intervals_are_those_of_the_evaluator():
    state = compute_states([predictions(7)], truth())[0]
    mine = compute_score(state, resamples=200, seed=3)
    theirs = evaluate(predictions(7), truth(), JUDGED_BY, resamples=200, seed=3)
    for name, value in mine.values.items():
        row = next(each for each in theirs.whole() if each["metric"] == f"corner_{name}")
        assert (value.value, value.low, value.high) == (row["value"], row["low_video"], row["high_video"])
    trivial = compute_trivial_states(truth(), seed=3)
    for name, state in trivial.items():
        assert compute_score(state).values["ar"].value == theirs.baselines[name]["corner_ar"]


def test_differences_take_the_same_pictures():
    """Both miss the same images and one meets every object a little better: the difference cannot be 0."""
    one, other = (
        compute_score(state, 300) for state in compute_states([predictions(6), predictions(6, 26.0)], truth())
    )
    gain = one.over(other)["ar"]
    assert gain.value == pytest.approx(0.15)
    assert 0 < gain.low < gain.value < gain.high
    assert one.values["ar"].low < other.values["ar"].high
    same = one.over(one)["ar"]
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_sets_with_the_same_names_merge_under_others():
    parts = compute_states([predictions(6), predictions(N)], truth())
    with pytest.raises(InputError, match="both parts hold"):
        parts[0].merge(parts[1])
    whole = rename_videos(parts[0], "a/").merge(rename_videos(parts[1], "b/"))
    assert whole.videos[0] == "a/v0"
    assert len(whole.videos) == 2 * N
    assert compute_score(whole).values["ar50"].value == 0.75
    assert np.isfinite(compute_score(whole, 50).resamples["ap"]).all()
