"""Metrics of where people will be equal plain loops from their definitions; regions hold what they promise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_counts import tried
from roadaware.errors import InputError
from roadaware.metrics.trajectories import (
    SCALES,
    Forecast,
    Paths,
    TrajectoryConfig,
    average_judged,
    compare_paths,
    get_scale,
    judge_paths,
    summarise_paths,
)
from roadaware.statistics.distributions import PlaneMixture, compute_region_levels

T_S = np.array([0.5, 1.0, 1.5])


def draw(seed: int, n: int = 6, k: int = 3, m: int = 3) -> tuple[Forecast, Paths]:
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.ones(k), n)
    mean = rng.normal(100, 20, (n, k, m, 2))
    mixture = PlaneMixture(weight, mean, rng.uniform(10, 30, (n, k, m, 2)), rng.uniform(-0.7, 0.7, (n, k, m)))
    places, sizes = rng.normal(100, 25, (n, m, 2)), rng.uniform(10, 60, (n, m, 2))
    guess = rng.uniform(10, 60, (n, m, 2))
    boxes = np.concatenate([places - sizes / 2, places + sizes / 2], axis=-1)
    said = np.concatenate([mixture.centre - guess / 2, mixture.centre + guess / 2], axis=-1)
    names = np.array([f"p{i % 4}" for i in range(n)])
    videos = np.array([f"v{i % 3}" for i in range(n)])
    return Forecast(mixture, said), Paths(
        places, rng.uniform(20, 80, n), boxes, T_S[:m], names, videos, np.arange(n)
    )


def plain_density(forecast: Forecast, i: int, step: int, at: np.ndarray) -> float:
    """The density of a mixture by matrices: the inverse and determinant of each covariance."""
    found, mixture = 0.0, forecast.places
    for j in range(mixture.weight.shape[1]):
        sx, sy = mixture.deviation[i, j, step]
        rho = mixture.correlation[i, j, step]
        covariance = np.array([[sx * sx, rho * sx * sy], [rho * sx * sy, sy * sy]])
        away = at - mixture.mean[i, j, step]
        power = float(away @ np.linalg.inv(covariance) @ away)
        found += (
            mixture.weight[i, j] * math.exp(-power / 2) / (2 * math.pi * math.sqrt(np.linalg.det(covariance)))
        )
    return found


def plain_overlap(a: np.ndarray, b: np.ndarray) -> float:
    wide = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    high = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - wide * high
    return wide * high / both


@given(st.integers(0, 10_000), st.integers(1, 4))
@tried(20)
def test_numbers_of_a_window_equal_plain_loops(seed: int, k: int) -> None:
    forecast, truth = draw(seed, k=k)
    table = judge_paths(forecast, truth, TrajectoryConfig(k=2)).table
    mixture, m = forecast.places, len(T_S)
    for i in range(len(truth)):
        away, logs = [], []
        for step in range(m):
            x = sum(mixture.weight[i, j] * mixture.mean[i, j, step, 0] for j in range(k))
            y = sum(mixture.weight[i, j] * mixture.mean[i, j, step, 1] for j in range(k))
            away.append(math.hypot(x - truth.places[i, step, 0], y - truth.places[i, step, 1]))
            # In heights: as many more to the square as a height has pixels.
            logs.append(
                -math.log(plain_density(forecast, i, step, truth.places[i, step]) * truth.scale[i] ** 2)
            )
        likely = sorted(range(k), key=lambda j: -mixture.weight[i, j])[:2]
        tried_paths = [
            [math.dist(mixture.mean[i, j, step], truth.places[i, step]) / truth.scale[i] for step in range(m)]
            for j in likely
        ]
        wanted = {
            "ade": sum(away) / m, "fde": away[-1], "ade_heights": sum(away) / m / truth.scale[i],
            "fde_heights": away[-1] / truth.scale[i], "min_ade": min(sum(path) / m for path in tried_paths),
            "min_fde": min(path[-1] for path in tried_paths), "nll": sum(logs) / m, "nll_final": logs[-1],
            "iou": plain_overlap(forecast.boxes[i, -1], truth.boxes[i, -1]),  # type: ignore[index]
            "error@1s": away[1], "error_heights@0.5s": away[0] / truth.scale[i], "nll@1.5s": logs[2],
            "iou@1s": plain_overlap(forecast.boxes[i, 1], truth.boxes[i, 1]),  # type: ignore[index]
        }  # fmt: skip
        for name, value in wanted.items():
            assert table[name][i] == pytest.approx(value, abs=1e-9), name


def test_regions_hold_what_they_promise_where_the_mixture_is_right() -> None:
    forecast, _ = draw(3, n=1, k=3)
    one = forecast.places
    many = PlaneMixture(
        *(
            np.repeat(values, 1500, axis=0)
            for values in (one.weight, one.mean, one.deviation, one.correlation)
        )
    )
    came = many.sample(1, np.random.default_rng(5))[0]
    levels, areas = compute_region_levels(many, came, draws=200, seed=1)
    for share in (0.1, 0.5, 0.9):
        assert (levels <= share).mean() == pytest.approx(share, abs=0.04)
    # Of one component the region of 90 % is an ellipse whose squared radius has two degrees of freedom.
    single = PlaneMixture(
        np.ones((300, 1)), many.mean[:300, :1], many.deviation[:300, :1], many.correlation[:300, :1]
    )
    _, areas = compute_region_levels(single, came[:300], draws=500, seed=1)
    sx, sy, rho = *single.deviation[0, 0, 0], single.correlation[0, 0, 0]
    assert areas[:, 0].mean() == pytest.approx(
        math.pi * 2 * math.log(10) * sx * sy * math.sqrt(1 - rho**2), rel=0.03
    )


def test_samples_have_the_mean_and_covariance_of_the_mixture() -> None:
    forecast, _ = draw(7, n=1, k=2, m=1)
    drawn = forecast.places.sample(40_000, np.random.default_rng(0))[:, 0, 0]
    assert drawn.mean(axis=0) == pytest.approx(forecast.places.centre[0, 0], abs=0.6)
    mixture, centre = forecast.places, forecast.places.centre[0, 0]
    wanted = np.zeros((2, 2))
    for j in range(2):
        (sx, sy), rho = mixture.deviation[0, j, 0], mixture.correlation[0, j, 0]
        apart = mixture.mean[0, j, 0] - centre
        wanted += mixture.weight[0, j] * (
            np.array([[sx * sx, rho * sx * sy], [rho * sx * sy, sy * sy]]) + np.outer(apart, apart)
        )
    assert np.cov(drawn.T) == pytest.approx(wanted, rel=0.06, abs=12)


def test_means_and_paired_differences_have_intervals_over_pedestrians_and_videos() -> None:
    forecast, truth = draw(1, n=40)
    other, _ = draw(2, n=40)
    one, two = judge_paths(forecast, truth), judge_paths(other, truth)
    found = summarise_paths(one, resamples=100)
    assert found.value("ade") == pytest.approx(one.table["ade"].mean())
    row = found.row("ade")
    assert row["low_video"] < row["value"] < row["high_video"]
    # Twelve pairs of a name and a video, three videos.
    assert (row["units_pedestrian"], row["units_video"]) == (12, 3)
    assert found.instances("window").equals(one.table)
    apart = compare_paths(one, two, resamples=100)
    assert apart.value("nll") == pytest.approx(one.table["nll"].mean() - two.table["nll"].mean())
    same = compare_paths(one, one, resamples=100).row("fde")
    assert (same["value"], same["low_video"], same["high_video"]) == (0, 0, 0)
    both = average_judged([one, two])
    assert both.table["iou"].to_numpy() == pytest.approx((one.table["iou"] + two.table["iou"]).to_numpy() / 2)


def test_what_does_not_go_together_is_refused() -> None:
    forecast, truth = draw(1)
    short, _ = draw(1, m=2)
    with pytest.raises(InputError, match="6 windows at 2 steps"):
        judge_paths(short, truth)
    with pytest.raises(InputError, match="or neither"):
        judge_paths(Forecast(forecast.places), truth)
    with pytest.raises(InputError, match="finite"):
        Paths(
            truth.places * np.nan, truth.scale, truth.boxes, T_S, truth.pedestrian, truth.video, truth.frame
        )
    with pytest.raises(InputError, match=r"\(windows, steps, 2\)"):
        Paths(truth.places[:0], truth.scale, truth.boxes, T_S, truth.pedestrian, truth.video, truth.frame)
    assert forecast.boxes is not None
    for boxes in (forecast.boxes * np.nan, forecast.boxes.swapaxes(0, 1), forecast.boxes[..., [2, 1, 0, 3]]):
        with pytest.raises(InputError, match=r"should be \(6, 3, 4\): finite corners"):
            judge_paths(Forecast(forecast.places, boxes), truth)
        with pytest.raises(InputError, match=r"should be \(6, 3, 4\): finite corners"):
            replace(truth, boxes=boxes)
    for times in (T_S[::-1], T_S * 0, T_S * np.nan):
        with pytest.raises(InputError, match="each later than the one before"):
            replace(truth, t_s=times)
    # Numbers at 1.5 s would be those at 0.3 s.
    with pytest.raises(InputError, match=r"beyond the last step, 0\.3 s"):
        judge_paths(forecast, replace(truth, t_s=T_S / 5))
    with pytest.raises(InputError, match="same windows"):
        compare_paths(judge_paths(forecast, truth), judge_paths(*draw(1, n=5)))
    with pytest.raises(InputError, match="k is 1 or more"):
        TrajectoryConfig(k=0)
    with pytest.raises(InputError, match="no metric 'speed'"):
        get_scale("speed")
    for damage in ({"weight": forecast.places.weight * 2}, {"deviation": forecast.places.deviation * 0},
                   {"mean": forecast.places.mean * np.inf}, {"mean": forecast.places.mean[:, :1]}):  # fmt: skip
        parts = {
            name: getattr(forecast.places, name) for name in ("weight", "mean", "deviation", "correlation")
        }
        with pytest.raises(ValueError, match="should be"):
            PlaneMixture(**{**parts, **damage})
    assert set(SCALES) <= set(judge_paths(forecast, truth).metrics)
