"""Clusters equal those of the paper's breadth first search, wherever the turn begins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_labels import plain_labels
from planted import Thing, World, sweep

from example_counts import tried
from roadaware.corner_cases.ground import check
from roadaware.corner_cases.range_image import (
    assign_grid_cells,
    compute_min_range_ratio,
    fill,
    find_clusters,
    label,
)
from roadaware.errors import UsageError


def random_image(seed: int, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Patches of like ranges with noise, holes and ground, and falling elevations."""
    rng = np.random.default_rng(seed)
    patches = rng.uniform(3, 40, (rows // 3 + 1, columns // 4 + 1)).repeat(3, 0).repeat(4, 1)[:rows, :columns]
    image = patches * rng.normal(1, 0.01, (rows, columns))
    kind = rng.random((rows, columns))
    image = np.where(kind < 0.2, 0, np.where(kind < 0.3, -image, image))
    return image.astype(np.float32), np.radians(3 - np.cumsum(rng.uniform(0.2, 1.2, rows)))


@tried(40)
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.integers(1, 30),
    st.sampled_from([2.0, 8.0, 16.0, 60.0]),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_labels_are_those_of_a_plain_search(seed, rows, columns, theta, reach_rows, reach_columns):
    image, elevations = random_image(seed, rows, columns)
    found, count = label(
        image, elevations, theta_deg=theta, reach_rows=reach_rows, reach_columns=reach_columns
    )
    np.testing.assert_array_equal(found, plain_labels(image, elevations, theta, reach_rows, reach_columns))
    assert count == found.max(initial=0)


def test_the_share_is_the_angle_criterion():
    rng = np.random.default_rng(1)
    angles, theta = rng.uniform(0.001, 0.4, 500), math.radians(8)
    far, share = rng.uniform(2, 80, 500), rng.uniform(0.05, 1, 500)
    beta = np.arctan2(share * far * np.sin(angles), far - share * far * np.cos(angles))
    clear = np.abs(beta - theta) > 1e-9
    np.testing.assert_array_equal(
        (share > compute_min_range_ratio(angles, 8.0))[clear], (beta > theta)[clear]
    )


def test_a_step_of_an_eighth_parts_and_a_tenth_does_not():
    # At 1 degree between beams and theta 8 degrees, d2 / d1 must exceed 0.890.
    assert compute_min_range_ratio(math.radians(1.0), 8.0) == pytest.approx(0.88966, abs=1e-5)
    image = np.zeros((2, 360), np.float32)
    image[0, :4] = [10.0, 9.0, 7.9, 7.8]
    labels, count = label(image, np.radians([0.0, -1.0]), theta_deg=8.0)
    assert labels[0, :4].tolist() == [1, 1, 2, 2]
    assert count == 2


def test_ground_parts_what_holes_do_not():
    image = np.zeros((1, 360), np.float32)
    image[0, :7] = [10, 0, 10, -10, 10, 0, 0]
    joined, _ = label(image, np.zeros(1), reach_columns=2)
    assert joined[0, :5].tolist() == [1, 0, 1, 0, 2]
    parted, _ = label(image, np.zeros(1), reach_columns=1)
    assert parted[0, :5].tolist() == [1, 0, 2, 0, 3]


@pytest.mark.parametrize("shift", [1, 77, 300])
def test_where_a_turn_begins_does_not_matter(shift):
    image, elevations = random_image(5, 16, 360)
    found, count = label(image, elevations, reach_rows=2, reach_columns=3)
    turned, same = label(np.roll(image, shift, axis=1), elevations, reach_rows=2, reach_columns=3)
    pairs = set(zip(found.ravel().tolist(), np.roll(turned, -shift, axis=1).ravel().tolist(), strict=True))
    assert same == count
    assert len(pairs) == count + 1


def test_elevations_must_fit():
    with pytest.raises(UsageError, match="3 rows need as many elevations"):
        label(np.ones((3, 10), np.float32), np.zeros(2))


def test_returns_are_counted_and_measured():
    things = (Thing(8, 0), Thing(15, -6, width=2, height=1.5))
    points, ring, met = sweep(World(things))
    checked = check(points)
    grid = assign_grid_cells(points, checked, ring=ring)
    solid = met > 0
    heights = (points[:, 2] + 1.8).astype(np.float32)
    found = find_clusters(points, grid, fill(grid, solid), solid, heights=heights)
    assert len(found) == 2
    for number in (1, 2):
        of = found.of_return[met == number]
        assert len(set(of.tolist())) == 1
        k = of[0] - 1
        mine = points[met == number].astype(np.float64)
        assert found.counts[k] == len(mine)
        assert found.nearest_m[k] == pytest.approx(np.linalg.norm(mine, axis=1).min(), rel=1e-5)
        assert found.head_m[k] == pytest.approx(mine[:, 2].max() + 1.8, abs=1e-4)
        apart = np.linalg.norm(mine[:, :2] - mine[:, :2].mean(0), axis=1).max()
        assert found.width_m[k] == pytest.approx(2 * apart, rel=1e-4)
        mine = ring[met == number] - ring.min()
        assert found.rows[k].tolist() == [mine.min(), mine.max()]
    assert (found.of_return[~solid] == 0).all()
