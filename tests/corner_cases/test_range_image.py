"""Range images: rows are the sensor's rings, given, recovered or repaired; columns go round."""

from __future__ import annotations

import numpy as np
import pytest
from planted import Thing, World, sweep

from roadaware.corner_cases.ground import check
from roadaware.corner_cases.kernels import assign_rings, compute_polar
from roadaware.corner_cases.range_image import (
    BEAMS,
    BINS,
    GIVEN,
    LAYOUTS,
    RECOVERED,
    Layout,
    assign_grid_cells,
    fill,
    label,
    parse_layout,
)
from roadaware.errors import InputError, UsageError

WORLD = World((Thing(9, 1), Thing(-14, 5, height=2.0)), noise_m=0.01)
HERE = Layout("32 rings x 720 columns", 720, (), 32)


def partition(labels: np.ndarray) -> set[frozenset[int]]:
    """Groups of places with one label."""
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    return {frozenset(part.tolist()) for part in np.split(order, cuts)}


def test_each_return_lies_in_its_pixel():
    points, ring, _ = sweep(WORLD)
    grid = assign_grid_cells(points, check(points), ring=ring, layout=HERE)
    # The highest rings meet nothing.
    first = ring.min()
    assert (grid.how, grid.shape) == (GIVEN, (32 - first, 720))
    np.testing.assert_array_equal(grid.row, ring - first)
    np.testing.assert_allclose(grid.ranges, np.linalg.norm(points.astype(float), axis=1), rtol=1e-6)
    azimuth = np.degrees(np.arctan2(points[:, 1], points[:, 0])) % 360
    np.testing.assert_array_equal(grid.column, np.rint(azimuth * 2).astype(int) % 720)
    np.testing.assert_allclose(np.degrees(grid.elevations), np.linspace(3, -25, 32)[first:], atol=0.05)
    image = fill(grid)
    assert (image > 0).sum() == len(points)
    assert image[grid.row[5], grid.column[5]] == grid.ranges[5]


def test_a_pixel_holds_its_nearest_solid_return_and_ground_only_where_there_is_none():
    points = np.array([[9, 0, 0], [5, 0, 0], [2, 0, 0], [0, 7, 0], [0, 4, 0]], dtype=np.float32)
    grid = assign_grid_cells(points, check(points), ring=np.zeros(5, int), layout=HERE)
    image = fill(grid, np.array([True, True, False, False, False]))
    assert image[0, 0] == 5.0
    assert image[0, 180] == -4.0
    assert np.count_nonzero(image) == 2


def test_rings_are_recovered_from_the_order_of_the_returns():
    points, ring, _ = sweep(WORLD)
    given = assign_grid_cells(points, check(points), ring=ring, layout=HERE)
    for order in (np.arange(len(points)), np.lexsort((np.arange(len(points)), -ring))):
        found = assign_grid_cells(points[order], check(points[order]), layout=HERE)
        assert found.how == RECOVERED
        # The ring is off where a return lies less than a degree before the first one of its ring.
        assert (found.row == given.row[order]).mean() > 0.99
        assert len(found.elevations) == len(given.elevations)


def test_rings_may_start_anywhere_and_turn_either_way():
    points, ring, _ = sweep(WORLD)
    turn = np.degrees(np.arctan2(points[:, 1], points[:, 0])) % 360
    for start, sign in ((200.0, 1), (35.0, -1)):
        order = np.lexsort(((sign * (turn - start)) % 360, ring))
        found = assign_grid_cells(points[order], check(points[order]), layout=HERE)
        assert found.how == RECOVERED
        assert (found.row == ring[order] - ring.min()).mean() > 0.99


def test_numbers_of_rings_may_run_either_way_and_have_gaps():
    points, ring, _ = sweep(WORLD)
    plain = assign_grid_cells(points, check(points), ring=ring, layout=HERE)
    other = assign_grid_cells(points, check(points), ring=2 * (31 - ring) + 5, layout=HERE)
    np.testing.assert_array_equal(plain.row, other.row)
    np.testing.assert_allclose(plain.elevations, other.elevations)


def test_returns_in_no_order_fall_back_to_beams_or_bins():
    points, ring, _ = sweep(WORLD)
    mixed = np.random.default_rng(0).permutation(len(points))
    points, ring = points[mixed], ring[mixed]
    named = Layout("ours", 720, tuple(np.linspace(3, -25, 32).tolist()), 32)
    by_beam = assign_grid_cells(points, check(points), layout=named, repair_rows=3)
    assert (by_beam.how, by_beam.reach) == (BEAMS, 3)
    np.testing.assert_array_equal(by_beam.row, ring)
    by_bin = assign_grid_cells(points, check(points), layout=HERE)
    assert by_bin.how == BINS
    assert (by_bin.row >= 0).mean() > 0.99
    assert (np.diff(by_bin.elevations) < 0).all()


def test_neither_rotation_nor_order_changes_what_belongs_together():
    points, ring, _ = sweep(WORLD)

    def groups(points, ring):
        grid = assign_grid_cells(points, check(points), ring=ring, layout=HERE)
        labels, _ = label(fill(grid), grid.elevations, reach_columns=2)
        return labels[grid.row, grid.column]

    plain = partition(groups(points, ring))
    # A quarter of a column is in the sweep itself: with a further one its returns lie between two columns.
    for columns in (131, 131.25, 17.6):
        angle = 2 * np.pi * columns / 720
        turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        assert partition(groups((points @ turn.T).astype(np.float32), ring)) == plain
    mixed = np.random.default_rng(2).permutation(len(points))
    back = np.argsort(mixed)
    assert partition(groups(points[mixed], ring[mixed])[back]) == plain


def test_columns_are_those_of_the_returns_where_nothing_is_told():
    points, ring, _ = sweep(World())
    assert assign_grid_cells(points, check(points), ring=ring).columns == 720


def test_a_lidar_that_turns_faster_than_its_name_says_leaves_no_empty_columns():
    points, ring, _ = sweep(World())
    named = LAYOUTS["HDL-64E"]
    assert assign_grid_cells(points, check(points), layout=named).columns == 720
    assert assign_grid_cells(points, check(points), layout=named, columns=900).columns == 900
    # Nearly as many columns are those of the name; rings that are given may stand in any order.
    assert assign_grid_cells(points, check(points), layout=Layout("ours", 1000, (), 32)).columns == 1000
    assert assign_grid_cells(points, check(points), ring=ring, layout=named).columns == 2083


def test_bins_of_elevation_are_repaired_across_holes():
    """A wall that is swept with 16 rings and seen in 64 bins of elevation is one thing all the same."""
    points, _, met = sweep(World((Thing(10, 0, width=6, height=3.0),), rings=16))
    wall = points[met == 1]
    wall = wall[np.random.default_rng(0).permutation(len(wall))]
    for repair, pieces in ((1, 8), (12, 1)):
        grid = assign_grid_cells(wall, check(wall), columns=720, repair_rows=repair)
        _, count = label(fill(grid), grid.elevations, reach_rows=grid.reach, reach_columns=2)
        assert (grid.how, count) == (BINS, pieces)


def test_named_sensors_look_where_their_makers_say():
    assert {name: layout.rings for name, layout in LAYOUTS.items()} == {
        "HDL-64E": 64,
        "HDL-32E": 32,
        "VLP-16": 16,
        "VLP-32C": 32,
        "Pandar40P": 40,
        "OS1-64": 64,
        "OS1-128": 128,
    }
    assert all((np.diff(layout.elevations_deg) < 0).all() for layout in LAYOUTS.values())
    assert (parse_layout("vlp-32c") or HERE).elevations_deg[0] == 15
    assert parse_layout("64 rings x 900 columns") == Layout("64 rings x 900 columns", 900, (), 64)
    assert parse_layout("something else") is None
    assert parse_layout(None) is None
    with pytest.raises(UsageError, match="9999"):
        parse_layout("9999 rings x 12 columns")


@pytest.mark.parametrize("ring", [np.zeros(3, int), np.zeros(4, float), np.zeros((4, 1), int)])
def test_rings_must_fit(ring):
    points = np.full((4, 3), 5, np.float32)
    with pytest.raises(InputError, match="rings should be 4 whole numbers"):
        assign_grid_cells(points, check(points), ring=ring)
    with pytest.raises(InputError, match="ring 700"):
        assign_grid_cells(points, check(points), ring=np.full(4, 700))


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint64, np.int8])
def test_rings_of_any_whole_type_leave_out_what_cannot_be_used(kind):
    points = np.array([[5.0, 0.0, 0.0], [np.nan, 0.0, 0.0], [5.0, 1.0, 0.5]])
    grid = assign_grid_cells(points, check(points), ring=np.array([0, 0, 1], kind), layout=HERE)
    plain = assign_grid_cells(points, check(points), ring=np.array([0, 0, 1]), layout=HERE)
    np.testing.assert_array_equal(grid.row, plain.row)


def test_rings_beyond_what_a_lidar_has_are_refused():
    points = np.array([[5.0, 0.0, 0.0], [5.0, 1.0, 0.5]])
    with pytest.raises(InputError, match="ring 18446744073709551615; a LiDAR has at most"):
        assign_grid_cells(points, check(points), ring=np.array([0, 2**64 - 1], np.uint64), layout=HERE)


def test_polar_coordinates_are_those_of_the_library():
    rng = np.random.default_rng(0)
    axes = [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [1, 1, 1], [-1, 1, 0], [-1, -1, -2], [1, -1, 0]]
    near = [[np.cos(a), np.sin(a), 0] for a in np.pi / 8 * np.arange(16) + 1e-4]
    points = np.concatenate([axes, near, rng.normal(0, 20, (2000, 3)), [[0, 0, 3], [0, 0, -3], [5, 5, 5]]])
    points = points.astype(np.float32)
    judged = np.zeros(len(points), np.uint8)
    judged[-1] = 3
    ranges, slopes, azimuth = np.full((3, len(points)), np.nan, np.float32)
    compute_polar(points, judged, ranges, slopes, azimuth)
    held = points[:-3].astype(np.float64)
    flat = np.hypot(held[:, 0], held[:, 1])
    np.testing.assert_allclose(azimuth[:-3], np.arctan2(held[:, 1], held[:, 0]), rtol=3e-7, atol=1e-12)
    np.testing.assert_allclose(ranges[:-3], np.linalg.norm(held, axis=1), rtol=3e-7)
    np.testing.assert_allclose(slopes[:-3], held[:, 2] / flat, rtol=3e-7, atol=1e-12)
    # Straight up and down is finite; what is not usable has no place.
    assert slopes[-3:].tolist() == [1e6, -1e6, 0.0]
    assert (ranges[-1], azimuth[-1]) == (0.0, 0.0)


def test_more_turns_than_there_are_places_end_the_count():
    turns, steps = 9, 40
    azimuth = np.tile(np.linspace(-3.0, 3.0, steps), turns).astype(np.float32)
    judged, slopes = np.zeros(len(azimuth), np.uint8), np.ones(len(azimuth), np.float32)
    for places in (9, 8, 4):
        ring = np.empty(len(azimuth), np.int32)
        sums, squares, counts = np.zeros(places), np.zeros(places), np.zeros(places, np.int64)
        found = assign_rings(azimuth, judged, slopes, -3.1, False, ring, sums, squares, counts)
        assert found == min(turns, places + 1)
        assert (counts == steps).all()
        assert (sums == steps).all()
