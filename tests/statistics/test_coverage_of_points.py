"""Points that stand for many: chosen farthest first, and distances as a plain loop has them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from roadaware.errors import InputError
from roadaware.statistics import conformal
from roadaware.statistics.coverage import compute_nearest_distances, select_k_centers


def radius(points: np.ndarray, chosen: np.ndarray) -> float:
    far = np.linalg.norm(points[:, None] - points[None, chosen], axis=2)
    return float(far.min(axis=1).max())


def test_each_choice_is_the_farthest_from_those_before() -> None:
    points = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    chosen = select_k_centers(points, 12, seed=4)
    assert len(set(chosen.tolist())) == 12
    for n in range(1, 12):
        far = np.linalg.norm(points[:, None] - points[None, chosen[:n]], axis=2).min(axis=1)
        assert far[chosen[n]] == pytest.approx(far.max(), rel=1e-4)


def test_nothing_is_more_than_twice_as_far_as_with_the_best_choice() -> None:
    points = np.random.default_rng(1).uniform(size=(12, 2)).astype(np.float32)
    best = min(radius(points, np.array(chosen)) for chosen in itertools.combinations(range(12), 3))
    assert all(
        radius(points, select_k_centers(points, 3, seed=seed)) <= 2 * best + 1e-6 for seed in range(12)
    )


def test_equal_points_are_chosen_once() -> None:
    points = np.repeat(np.array([[0.3, 0.7], [5.1, 1.9], [2.2, 8.8]], dtype=np.float32), 6, axis=0)
    assert sorted((select_k_centers(points, 10) // 6).tolist()) == [0, 1, 2]


def test_a_seed_makes_the_choice_and_all_may_be_chosen() -> None:
    points = np.random.default_rng(2).normal(size=(9, 4))
    assert select_k_centers(points, 4, seed=7).tolist() == select_k_centers(points, 4, seed=7).tolist()
    assert sorted(select_k_centers(points, 99).tolist()) == list(range(9))


@pytest.mark.parametrize("neighbours", [1, 3, 50])
def test_distances_are_those_of_a_plain_loop(neighbours: int) -> None:
    rng = np.random.default_rng(3)
    here, there = rng.normal(size=(7, 5)), rng.normal(size=(11, 5))
    plain = [sorted(np.linalg.norm(there - point, axis=1))[:neighbours] for point in here]
    found = compute_nearest_distances(here, there, neighbours=neighbours)
    np.testing.assert_allclose(found, [np.mean(each) for each in plain], rtol=1e-4)


def test_what_cannot_be_asked_says_why() -> None:
    with pytest.raises(InputError, match=r"\(n, d\) with n and d above 0"):
        select_k_centers(np.zeros((0, 3)), 2)
    with pytest.raises(InputError, match="1 of 2 points are not finite"):
        select_k_centers([[0.0, 1.0], [np.nan, 1.0]], 2)
    with pytest.raises(InputError, match="at least 1 point"):
        select_k_centers([[0.0]], 0)
    with pytest.raises(InputError, match=r"\(n, 3\)"):
        compute_nearest_distances(np.zeros((2, 4)), np.zeros((2, 3)))
    with pytest.raises(InputError, match="not finite"):
        compute_nearest_distances([[np.inf]], [[0.0]])


def test_one_point_may_be_chosen_and_the_seed_is_zero_unless_said() -> None:
    points = np.random.default_rng(3).normal(size=(50, 2))
    assert select_k_centers(points, 1).tolist() == select_k_centers(points, 1, seed=0).tolist()
    assert len(select_k_centers(points, 1)) == 1
    with pytest.raises(InputError, match="at least 1"):
        select_k_centers(points, 0)


def test_the_nearest_alone_is_asked_and_what_is_not_finite_refused() -> None:
    assert compute_nearest_distances([[0.0]], [[1.0], [3.0]]).tolist() == [1.0]
    with pytest.raises(InputError, match="a point is not finite"):
        compute_nearest_distances([[0.0], [np.nan]], [[1.0]])


def test_near_points_that_differ_are_both_chosen() -> None:
    # Squared distance 0.01 beside squares of 200: above the millionth that rounding may leave.
    points = np.array([[10.0], [10.1], [10.0]])
    assert sorted(points[select_k_centers(points, 3), 0].tolist()) == [10.0, 10.1]


@pytest.mark.parametrize("limit", [1, 7, 1000])
def test_blocks_give_the_same_distances(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    rng = np.random.default_rng(0)
    points, others = rng.normal(size=(9, 2)), rng.normal(size=(3, 2))
    whole = compute_nearest_distances(points, others, neighbours=2)
    monkeypatch.setattr(conformal, "_BLOCK", limit)
    np.testing.assert_allclose(compute_nearest_distances(points, others, neighbours=2), whole)


def test_near_ones_among_many_are_found() -> None:
    assert compute_nearest_distances([[0.0]], [[0.5]]).tolist() == [0.5]
    others = np.random.default_rng(1).permutation(2000).astype(float)[:, None]
    others = others[others[:, 0] != 7]
    assert compute_nearest_distances([[7.25]], others, neighbours=3).tolist() == pytest.approx(
        [(0.75 + 1.25 + 1.75) / 3]
    )
