"""Clusters: returns that belong together by the angle under which neighbours see each other.

Source: Bogoslavskyi and Stachniss, "Fast range image-based segmentation of sparse 3D laser scans for
online operation", IROS 2016, eq. 1 and algorithm 1. Two neighbours at ranges d1 >= d2, seen under the
angle a, belong together where beta = atan2(d2 sin a, d1 - d2 cos a) > theta. That is the same as
d2 / d1 > tan theta / (sin a + tan theta cos a), a number for each pair of rows and each step along them,
so that one comparison is left for each pair of pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints32, allocate
from roadaware.corner_cases.kernels import assign_cluster_labels, fill_spots, label_within_reach, measure
from roadaware.corner_cases.kernels import label as join
from roadaware.corner_cases.range_image import Grid
from roadaware.errors import UsageError


@dataclass(frozen=True, eq=False)
class Clusters:
    """Returns in groups, counted from 1; the first place of an array is cluster 1.

    Args:
        image: (rows, columns) int32 cluster of each pixel, 0 for none.
        of_return: (n,) int32 cluster of each return, 0 for none.
        counts: (k,) int32 returns of each.
        nearest_m: (k,) float32 range of its nearest return.
        feet_m: (k,) float32 height of its lowest return above the ground; nan where there is no ground.
        head_m: (k,) float32 height of its highest return; nan where there is no ground.
        width_m: (k,) float32 twice the greatest horizontal distance of a return from the middle.
        rows: (k, 2) int32 its highest and lowest row.
    """

    image: Ints32
    of_return: Ints32
    counts: Ints32
    nearest_m: Floats32
    feet_m: Floats32
    head_m: Floats32
    width_m: Floats32
    rows: Ints32

    def __len__(self) -> int:
        return len(self.counts)


def compute_min_range_ratio(angles: npt.ArrayLike, theta_deg: float) -> Floats:
    """Minimum ratio of the nearer to the farther range of neighbours, for some angles between beams.

    Args:
        angles: (...) radians, positive.
        theta_deg: the least angle between the line through both and the longer beam.

    >>> compute_min_range_ratio([0.01], 10.0).round(4)
    array([0.9464])
    """
    tangent = np.tan(np.radians(theta_deg))
    seen = np.asarray(angles, dtype=np.float64)
    found: Floats = tangent / (np.sin(seen) + tangent * np.cos(seen))
    # Beyond pi - theta no second beam can make the angle: inf joins nothing.
    return np.where((seen > 0) & (seen < np.pi - np.radians(theta_deg)), found, np.inf)


def label(
    image: Floats32,
    elevations: Floats,
    *,
    theta_deg: float = 8.0,
    reach_rows: int = 1,
    reach_columns: int = 1,
) -> tuple[Ints32, int]:
    """(rows, columns) cluster of each pixel from 1, 0 for none, and how many there are.

    Args:
        image: (rows, columns) metres of `range_image.fill`: 0 for nothing, negative for ground.
        elevations: (rows,) radians, falling.
        theta_deg: the least angle; see the module.
        reach_rows: across how many rows, less one, without any return neighbours are looked for.
        reach_columns: the same along a row.

    Raises:
        UsageError: if rows and elevations do not fit.
    """
    rows, columns = image.shape
    if elevations.shape != (rows,):
        raise UsageError(f"{rows} rows need as many elevations, not {elevations.shape}")
    # Rows above the first do not exist: inf there joins nothing.
    up = np.full((rows, reach_rows), np.inf)
    for step in range(1, min(reach_rows, rows - 1) + 1):
        up[step:, step - 1] = compute_min_range_ratio(elevations[:-step] - elevations[step:], theta_deg)
    # Columns are evenly spaced, so that one ratio a step serves all of them; rows are not.
    left = compute_min_range_ratio(2 * np.pi / columns * np.arange(1, reach_columns + 1), theta_deg)
    labels, parent = allocate(image.shape, np.int32), allocate(image.size, np.int32)
    count = join(np.ascontiguousarray(image), up.astype(np.float32), left.astype(np.float32), parent, labels)
    return labels, int(count)


def find_clusters(
    points: Floats32,
    grid: Grid,
    image: Floats32,
    solid: npt.NDArray[np.bool_],
    *,
    heights: Floats32 | None = None,
    theta_deg: float = 8.0,
    reach_columns: int = 1,
) -> Clusters:
    """Label a range image and measure its clusters.

    Args:
        points: (n, 3) metres.
        grid: where they lie in the image.
        image: (rows, columns) metres of `range_image.fill`.
        solid: (n,) returns that are no ground.
        heights: (n,) metres above the ground, where there is one.
        theta_deg: the least angle; see the module.
        reach_columns: along a row, how far a neighbour is looked for.
    """
    labels, count = label(
        image, grid.elevations, theta_deg=theta_deg, reach_rows=grid.reach, reach_columns=reach_columns
    )
    found = allocate(len(points), np.int32)
    assign_cluster_labels(grid.row, grid.column, np.ascontiguousarray(solid), labels, found)
    return measure_clusters(points, grid, labels, found, count, heights=heights)


WIDE, TALL = 3, 2
"""How many columns to the left and rows upwards neighbours within reach are looked for. More find hardly more (see
docs/corner_cases.md) and take longer."""


def find_reach_clusters(
    points: Floats32,
    grid: Grid,
    image: Floats32,
    solid: npt.NDArray[np.bool_],
    reaches: Sequence[float],
    *,
    heights: Floats32 | None = None,
) -> tuple[Clusters, ...]:
    """Clusters of returns that lie within some metres of each other in space: those of each reach.

    Only neighbours in the range image are asked, which stand for all returns nearby: the result is nearly that of DBSCAN
    without noise, at a small part of its cost.

    Args:
        points: (n, 3) metres.
        grid: where they lie in the image.
        image: (rows, columns) metres of `range_image.fill`.
        solid: (n,) returns that are no ground.
        reaches: metres, rising.
        heights: (n,) metres above the ground, where there is one.
    """
    solid, image = np.ascontiguousarray(solid), np.ascontiguousarray(image)
    spots = allocate((*grid.shape, 3), np.float32)
    fill_spots(grid.row, grid.column, grid.ranges, points, solid, image, spots)
    parent = allocate(image.size + 1, np.int32)
    made = []
    for reach in reaches:
        labels, found = allocate(grid.shape, np.int32), allocate(len(points), np.int32)
        count = label_within_reach(image, spots, np.float32(reach), WIDE, TALL, parent, labels)
        assign_cluster_labels(grid.row, grid.column, solid, labels, found)
        made.append(measure_clusters(points, grid, labels, found, int(count), heights=heights))
    return tuple(made)


def measure_clusters(
    points: Floats32,
    grid: Grid,
    labels: Ints32,
    found: Ints32,
    count: int,
    *,
    heights: Floats32 | None = None,
) -> Clusters:
    """Clusters of returns that are grouped already, by whatever method, with their extents.

    Args:
        points: (n, 3) metres.
        grid: where they lie in the image.
        labels: (rows, columns) int32 cluster of each pixel, 0 for none.
        found: (n,) int32 cluster of each return, 0 for none.
        count: how many clusters there are.
        heights: (n,) metres above the ground, where there is one.
    """
    counts = np.zeros(count, np.int32)
    # Pairs of least and greatest begin crossed, so that the first value sets both.
    extents = np.tile(np.array([np.inf, -np.inf] * 3 + [0.0], dtype=np.float32), (count, 1))
    known = np.empty(0, np.float32) if heights is None else heights
    measure(points, grid.row, grid.ranges, known, found, counts, extents)
    if heights is None:
        extents[:, 2:4] = np.nan
    return Clusters(
        labels,
        found,
        counts,
        nearest_m=extents[:, 0],
        feet_m=extents[:, 2],
        head_m=extents[:, 3],
        width_m=2 * extents[:, 6],
        rows=extents[:, 4:6].astype(np.int32),
    )
