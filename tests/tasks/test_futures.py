"""What comes behind an observation: the boxes of the track, the cell they end in, errors by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from street import street

from roadaware.errors import UsageError
from roadaware.scenes.sampling import Iv2024, sample
from roadaware.scenes.schema import CORNERS
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.pedestrians import (
    Futures,
    build_targets,
    cell_accuracy,
    compute_path_errors,
    evaluate_constant_velocity,
    evaluate_future,
    predict_constant_velocity,
)

SIZE = np.array([[1920.0, 1080.0]])


def made(ahead: list[list[float]], last: list[float], before: list[float] | None = None) -> Futures:
    """One sample."""
    observed = np.array([[before or last, last]])
    return Futures(observed, np.array([ahead]), SIZE)


@pytest.mark.parametrize("horizon", [1, 30, 100])
def test_what_comes_is_the_track_behind_the_observation_and_nothing_behind_its_end(horizon: int) -> None:
    scenes = sample(street(people=6), Iv2024.reference("action"))
    found = build_targets(scenes, "test", horizon)
    rows = scenes.samples.filter(pl.col("split") == "test")
    assert found.ahead_px.shape == (len(rows), horizon, 4)
    assert found.size_px.tolist() == [[960, 540]] * len(rows)
    for k, row in enumerate(rows.iter_rows(named=True)):
        track = scenes.boxes.filter(pl.col("tube") == row["tube"]).sort("frame")
        behind = track.filter(pl.col("frame") >= row["end_frame"]).select(CORNERS).to_numpy()[:horizon]
        assert found.known[k].sum() == len(behind)
        np.testing.assert_array_equal(found.ahead_px[k, : len(behind)], behind)
        assert np.isnan(found.ahead_px[k, len(behind) :]).all()
        assert (found.cell[k] == -1) == (len(behind) < horizon)
    if horizon == 30:  # the protocol keeps as many free
        assert found.known.all()


def test_moves_are_shares_less_the_last_observed_box_and_come_back_as_pixels() -> None:
    truth = made([[192, 108, 384, 540], [float("nan")] * 4], [0, 0, 192, 432])
    np.testing.assert_allclose(truth.moved[0, 0], [0.1, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(truth.pixels(truth.moved)[0, 0], truth.ahead_px[0, 0])
    assert truth.known.tolist() == [[True, False]]
    assert truth.cell.tolist() == [-1]


def test_the_cell_is_the_one_that_the_input_has_at_that_frame() -> None:
    scenes = sample(street(people=6), Iv2024.reference("action"))
    early = scenes.with_tables(
        samples=scenes.samples.with_columns(
            start_frame=pl.col("start_frame") + 7, end_frame=pl.col("end_frame") + 7
        )
    )
    cells = build_inputs(early, "val", ["grid"]).columns["grid"].take(np.arange(3))[:, -1, 0]
    assert build_targets(scenes, "val", 7).cell[:3].tolist() == cells.tolist()


def test_errors_are_distances_of_centres_and_roots_of_squared_sides() -> None:
    truth = made([[0, 0, 10, 10], [0, 0, 10, 10]], [0, 0, 10, 10])
    said = np.array([[[3, 4, 13, 14], [-6, 0, 18, 10]]], dtype=float)  # 5 off, then 1 off
    found = compute_path_errors(said, truth)
    assert found["ade_px"] == pytest.approx(3.0)
    assert found["fde_px"] == pytest.approx(1.0)
    assert found["arb_px"] == pytest.approx(np.sqrt((9 + 16 + 9 + 16 + 36 + 64) / 8))
    assert found["frb_px"] == pytest.approx(np.sqrt((36 + 64) / 4))


def test_frames_behind_the_end_of_a_track_count_for_nothing() -> None:
    nothing = [float("nan")] * 4
    said = np.array([[[3, 4, 13, 14], [1e6, 0, 1e6, 0]]], dtype=float)
    found = compute_path_errors(said, made([[0, 0, 10, 10], nothing], [0, 0, 10, 10]))
    assert found["ade_px"] == pytest.approx(5.0)
    assert found["fde_px"] is None
    ended = made([nothing, nothing], [0, 0, 10, 10])
    assert set(evaluate_future({"trajectory": said, "grid": np.eye(2)[:1]}, ended).values()) == {None}


def test_the_likeliest_cell_is_the_answer() -> None:
    truth = made([[0, 0, 10, 10]], [0, 0, 10, 10])
    assert cell_accuracy(np.eye(3)[:1], truth) == 1
    assert cell_accuracy(np.eye(3)[1:2], truth) == 0


def test_whoever_goes_on_as_before_is_foreseen() -> None:
    frames = np.arange(20.0)[None, :, None]
    walk = np.concatenate([100 + 3 * frames, 200 - frames, 150 + 4 * frames, 400 + 0 * frames], -1)
    np.testing.assert_allclose(predict_constant_velocity(walk[:, :15], 5), walk[:, 15:])
    np.testing.assert_allclose(predict_constant_velocity(walk[:, :3], 2), walk[:, 3:5])
    np.testing.assert_allclose(predict_constant_velocity(walk[:, :1], 2), np.repeat(walk[:, :1], 2, axis=1))
    truth = Futures(walk[:, :15], walk[:, 15:], SIZE)
    assert evaluate_constant_velocity(truth)["fde_px"] == pytest.approx(0)
    assert evaluate_constant_velocity(truth)["grid_accuracy"] == 1


def test_a_trajectory_has_a_box() -> None:
    with pytest.raises(UsageError, match="at least one box"):
        build_targets(sample(street(people=3), Iv2024.reference("action")), "val", 0)
