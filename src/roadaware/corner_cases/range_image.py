"""Range image of a sweep, clusters of its returns by angle, and their boxes in the image."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints32, allocate
from roadaware.corner_cases.captures import Camera
from roadaware.corner_cases.ground import Ground, PointCheck
from roadaware.corner_cases.kernels import (
    accumulate_ring_slopes,
    assign_cluster_labels,
    assign_columns,
    assign_ring_rows,
    assign_rings,
    assign_rows,
    compute_bounds,
    compute_polar,
    count_rotation_steps,
    fill_spots,
    label_within_reach,
    measure,
)
from roadaware.corner_cases.kernels import fill as write
from roadaware.corner_cases.kernels import label as join
from roadaware.errors import InputError, UsageError

# LiDARs by name: how their beams are spread, and how many measurements make a turn.

_COUNTED = re.compile(r"(\d{1,4}) rings x (\d{1,5}) columns")
# Bounds the memory that a row of `sensors` can ask for: 512 x 16384 float32 are 32 MiB.
MOST_RINGS, MOST_COLUMNS = 512, 16384


@dataclass(frozen=True)
class Layout:
    """One kind of LiDAR.

    Args:
        name: of its maker, or what the tables say.
        columns: measurements of a ring in a turn, at the usual rate.
        elevations_deg: of its beams from the highest to the lowest; empty where only their number is known.
        rings: beams above each other.
    """

    name: str
    columns: int
    elevations_deg: tuple[float, ...]
    rings: int


def _layout(name: str, columns: int, elevations: npt.ArrayLike) -> Layout:
    falling = tuple(float(each) for each in -np.sort(-np.asarray(elevations, dtype=np.float64)))
    return Layout(name, columns, falling, len(falling))


_VLP_32C = (15, 10.333, 7, 4.667, 3.333, 2.333, 1.667, 1.333, 1, 0.667, 0.333, 0, -0.333, -0.667, -1, -1.333)
_VLP_32C_LOW = (-1.667, -2, -2.333, -2.667, -3, -3.333, -3.667, -4, -4.667, -5.333, -6.148, -7.254, -8.843)
_PANDAR_40 = (15, 11, 8, 5, 3, *(2 - n / 3 for n in range(25)), *range(-7, -15, -1), -19, -25)

LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        each.name: each
        for each in (
            _layout(
                "HDL-64E",
                2083,
                np.concatenate([np.linspace(2, -8.333, 32), np.linspace(-8.833, -24.333, 32)]),
            ),
            _layout("HDL-32E", 1084, np.linspace(10.667, -30.667, 32)),
            _layout("VLP-16", 1800, np.linspace(15, -15, 16)),
            _layout("VLP-32C", 1800, (*_VLP_32C, *_VLP_32C_LOW, -11.31, -15.639, -25)),
            _layout("Pandar40P", 1800, _PANDAR_40),
            _layout("OS1-64", 1024, np.linspace(16.611, -16.611, 64)),
            _layout("OS1-128", 1024, np.linspace(22.5, -22.5, 128)),
        )
    }
)
"""Beams as their makers' manuals give them; turns at 10 a second, of the HDL-32E at 20."""


def parse_layout(text: str | None) -> Layout | None:
    """The layout that a row of `sensors` names; None where it is unknown.

    Args:
        text: a name of `LAYOUTS`, or such as `64 rings x 900 columns`.

    Raises:
        UsageError: if it counts more rings or columns than any LiDAR has.
    """
    if text is None:
        return None
    known = {name.lower(): layout for name, layout in LAYOUTS.items()}
    if text.strip().lower() in known:
        return known[text.strip().lower()]
    found = _COUNTED.fullmatch(text.strip())
    if found is None:
        return None
    rings, columns = int(found[1]), int(found[2])
    if not (1 <= rings <= MOST_RINGS and 8 <= columns <= MOST_COLUMNS):
        raise UsageError(
            f"a LiDAR has 1 to {MOST_RINGS} rings of 8 to {MOST_COLUMNS} measurements, not {text!r}"
        )
    return Layout(text.strip(), columns, (), rings)


GIVEN, RECOVERED, BEAMS, BINS = "rings given", "rings recovered", "beams by name", "bins of elevation"
# Turns count as rings where 9 of 10 steps from one to the next go the same way up or down.
_FEWEST_RINGS, _IN_ORDER = 4, 0.9
# An angle of 0 between rows would never join neighbours: no ratio of ranges suffices there.
_LEAST_STEP = np.radians(0.05)
# Columns of 0.2 degrees where nothing tells; an estimate wider than 2 degrees is none of a LiDAR.
_USUAL_COLUMNS, _FEWEST_COLUMNS = 1800, 180
# Radians; smaller steps are repeats of one direction and would pull the median to 0.
_STILL = 1e-5
# 1.5 lies between the layout's own columns (1) and those of a sweep with every second return (2).
_MUCH_COARSER, _JUDGES = 1.5, 20000
# Returns that say where columns lie, and from which length of the mean of their phases on: 1 where all are alike, 0.08 at
# most of KITTI and nuScenes.
_PHASES, _AT_FIXED_ANGLES = 2000, 0.5
# The seam lies beside the first or last return, so that returns that tremble about it begin no turn.
_EARLY = float(np.radians(0.25))


@dataclass(frozen=True, eq=False)
class Grid:
    """Row and column of each return in the range image.

    Args:
        ranges: (n,) float32 metres; 0 where a return is not usable.
        row: (n,) int32 from the highest beam; -1 where it lies in no pixel.
        column: (n,) int32 counter-clockwise from ahead, or from half a column beside it at most; -1 where it is not usable.
        elevations: (rows,) radians of the rows, falling.
        columns: in a turn.
        how: where the rows come from.
        reach: how many rows further a neighbour is looked for.
    """

    ranges: Floats32
    row: Ints32
    column: Ints32
    elevations: Floats
    columns: int
    how: str
    reach: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.elevations), self.columns


RingSums = tuple[Floats, Floats, npt.NDArray[np.int64]]
"""Of each ring: the sum of its returns' slopes, of their squares, and how many there are."""


def assign_grid_cells(
    points: Floats32,
    checked: PointCheck,
    *,
    ring: npt.NDArray[np.integer] | None = None,
    layout: Layout | None = None,
    columns: int | None = None,
    rows: int = 64,
    reach_rows: int = 1,
    repair_rows: int = 4,
) -> Grid:
    """Row and column of each return.

    Args:
        points: (n, 3) metres in the LiDAR's frame, z up, as `points.checked_points` gives them.
        checked: which of them are usable.
        ring: (n,) number of the beam, in any order; None where the data does not say.
        layout: of the sensor, where its name is known.
        columns: in a turn (default: the layout's, or as many as the returns' own steps make where these are much
            wider or there is no layout,).
        rows: of the image where there are neither rings nor beams.
        reach_rows: how many rows further a neighbour is looked for.
        repair_rows: the same where rows are bins.

    Raises:
        InputError: if rings are not one whole number for each return.
    """
    ranges, slopes, azimuth = (allocate(len(points), np.float32) for _ in range(3))
    compute_polar(points, checked.judged, ranges, slopes, azimuth)
    if ring is None:
        numbered, how = _turns(azimuth, slopes, checked), RECOVERED
    else:
        given, how = _given(ring, checked), GIVEN
        # Sums of the slopes of each ring, of their squares, and how many there are
        count = int(given.max(initial=-1)) + 1

        sums, squares, counts = np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.int64)
        accumulate_ring_slopes(given, slopes, sums, squares, counts)
        numbered = given, (sums, squares, counts)
    found = None if numbered is None else _assign_ring_rows(*numbered, strict=how == RECOVERED)
    if columns is None:
        in_turns = found is not None and how == RECOVERED
        columns = _columns(azimuth, checked, layout, in_turns=in_turns)
    column = allocate(len(points), np.int32)
    assign_columns(azimuth, checked.judged, columns, _estimate_phase(azimuth, checked, columns), column)
    if found is not None:
        return Grid(ranges, found[0], column, found[1], columns, how, reach_rows)
    edges, elevations = _bins(slopes, checked, layout, rows)
    row = allocate(len(points), np.int32)
    assign_rows(slopes, column, edges, row)
    how = BEAMS if layout is not None and layout.elevations_deg else BINS
    return Grid(ranges, row, column, elevations, columns, how, max(reach_rows, repair_rows))


def fill(grid: Grid, solid: npt.NDArray[np.bool_] | None = None) -> Floats32:
    """(rows, columns) metres of the nearest solid return of each pixel; 0 where there is no return at all.

    Where a pixel has only returns that are not solid, it holds minus the nearest range: something is there,
    and neighbours are not looked for beyond it.

    Args:
        grid: of `assign_grid_cells`.
        solid: (n,) which returns are no ground (default: all).
    """
    image = allocate(grid.shape, np.float32)
    image.fill(0.0)
    kept = np.ones(len(grid.row), dtype=np.bool_) if solid is None else np.ascontiguousarray(solid)
    write(grid.row, grid.column, grid.ranges, kept, image)
    return image


def _given(ring: npt.NDArray[np.integer], checked: PointCheck) -> Ints32:
    """(n,) rings that the data says; -1 where a return is not usable.

    Raises:
        InputError: if they are not one whole number for each return, or larger than rings are.
    """
    given, count = np.asarray(ring), len(checked.judged)
    if given.shape != (count,) or given.dtype.kind not in "iu":
        raise InputError(f"rings should be {count} whole numbers, not {given.dtype} {given.shape}")
    # Unsigned rings cannot hold the -1; rings beyond what 64 bits hold with a sign are too many all the same.
    bounded = np.where(given >= MOST_RINGS, MOST_RINGS, given.astype(np.int64))
    wide = np.where(checked.usable, bounded, -1)
    if count and wide.max() >= MOST_RINGS:
        raise InputError(f"ring {int(given[checked.usable].max())}; a LiDAR has at most {MOST_RINGS} rings")
    return wide.astype(np.int32)


def _turns(azimuth: Floats32, slopes: Floats32, checked: PointCheck) -> tuple[Ints32, RingSums] | None:
    """(n,) rings as turns in the order of the returns, with their slopes; None where these make no turns as rings do.

    Rings end in one direction, and either the first ring begins or the last one ends there: the highest rings
    may look into the sky and have few returns. The better end is the one whose turns are more level.
    """
    usable = checked.usable
    if not usable.any():
        return None
    first, last = int(usable.argmax()), len(usable) - 1 - int(usable[::-1].argmax())
    # LiDARs turn either way; the majority of steps says which, whatever single returns do.
    clockwise = count_rotation_steps(azimuth, checked.judged) < 0
    early = _EARLY if not clockwise else -_EARLY
    best: tuple[Ints32, RingSums] | None = None
    least = np.inf
    for seam in (float(azimuth[first]) - early, float(azimuth[last]) + early):
        found = allocate(len(azimuth), np.int32)
        sums, squares, counts = np.zeros(MOST_RINGS), np.zeros(MOST_RINGS), np.zeros(MOST_RINGS, np.int64)
        count = assign_rings(azimuth, checked.judged, slopes, seam, clockwise, found, sums, squares, counts)
        if not _FEWEST_RINGS <= count <= MOST_RINGS:
            continue
        sums, squares, counts = held = sums[:count], squares[:count], counts[:count]
        # Within-ring variance of the slopes: a seam in the wrong place mixes two rings in each turn.
        spread = float((squares - sums * sums / np.maximum(counts, 1)).sum())
        if spread < least:
            best, least = (found, held), spread
    return best


def _assign_ring_rows(ring: Ints32, held: RingSums, *, strict: bool) -> tuple[Ints32, Floats] | None:
    """(n,) row of each return, written in the place of its ring, and the rows' elevations; None where turns are no rings.

    Rings that were recovered must lie in order of elevation: the turns of returns in any other order do not.
    """
    sums, _, counts = held
    count = len(counts)
    if not count:
        return None
    there = counts > 0
    means = sums[there] / counts[there]
    if strict:
        falls = np.diff(means) < 0
        # Sweeps begin with the highest or with the lowest ring.
        ordered = max(falls.mean(), 1 - falls.mean()) if len(falls) else 0.0
        if there.sum() < _FEWEST_RINGS or ordered < _IN_ORDER:
            return None
    # Stable: rings of one elevation keep their order on every machine.
    order = np.argsort(-means, kind="stable")
    rows = np.full(count, -1, dtype=np.int32)
    rows[np.flatnonzero(there)[order]] = np.arange(len(order))
    elevations = np.arctan(means[order])
    # Two rings may look the same way; the angle between rows is never nothing.
    steps = np.maximum(-np.diff(elevations, prepend=elevations[0] + _LEAST_STEP), _LEAST_STEP)
    assign_ring_rows(ring, rows)
    return ring, elevations[0] + _LEAST_STEP - np.cumsum(steps)


def _columns(azimuth: Floats32, checked: PointCheck, layout: Layout | None, *, in_turns: bool) -> int:
    """How many columns make a turn: those of the layout, or as many as the returns' own steps.

    A LiDAR that turns faster, or of which every second return was kept, has fewer than its name says. That
    is seen where returns stand turn by turn; in columns that nothing falls into, things would fall apart.
    """
    if layout is not None and not in_turns:
        return layout.columns
    # The first rings may look into the sky, and the gaps between their returns are no steps of the sensor.
    third = len(azimuth) // 3
    later = slice(third, third + 2 * _JUDGES)
    some = azimuth[later][checked.usable[later]][:_JUDGES].astype(np.float64)
    turned = np.abs(np.diff(some))
    # The step across -pi to pi is as small as the others.
    turned = np.minimum(turned, 2 * np.pi - turned)
    turned = turned[turned > _STILL]
    # The median: gaps without returns make a few steps much larger.
    own = round(2 * np.pi / float(np.median(turned))) if len(turned) else 0
    sound = _FEWEST_COLUMNS <= own <= MOST_COLUMNS
    if layout is None:
        return own if sound else _USUAL_COLUMNS
    return own if sound and own * _MUCH_COARSER < layout.columns else layout.columns


def _estimate_phase(azimuth: Floats32, checked: PointCheck, columns: int) -> float:
    """By how many columns, -0.5 to 0.5, returns lie beside middles of columns that begin ahead; 0 where they lie anywhere.

    A sensor that measures at fixed angles may do so half a column beside these: rounding would then throw the returns of a
    column into two. Those of a sensor that turns freely (KITTI, nuScenes) lie anywhere.
    """
    step = max(1, len(azimuth) // _PHASES)
    some = azimuth[::step][checked.judged[::step] == 0].astype(np.float64)
    if not len(some):
        return 0.0
    middle = np.exp(1j * columns * some).mean()
    return float(np.angle(middle) / (2 * np.pi)) if abs(middle) > _AT_FIXED_ANGLES else 0.0


def _bins(slopes: Floats32, checked: PointCheck, layout: Layout | None, rows: int) -> tuple[Floats, Floats]:
    """Falling edges of rows as slopes, and the rows' elevations in radians."""
    if layout is not None and layout.elevations_deg:
        elevations = np.radians(layout.elevations_deg)
        if len(elevations) > 1:
            middle = (elevations[1:] + elevations[:-1]) / 2
            first, last = 2 * elevations[0] - middle[0], 2 * elevations[-1] - middle[-1]
            # Beams do not leave from one point, so that near returns lie beyond the outer ones.
            edges = np.concatenate([[first + 0.05], middle, [last - 0.05]])
        else:
            edges = np.array([elevations[0] + 0.05, elevations[0] - 0.05])
        return np.tan(edges), elevations
    count = layout.rings if layout is not None else rows
    used = slopes[checked.usable]
    low, high = (
        # Quantiles: a few stray returns must not stretch all bins.
        np.quantile(used[:: max(1, len(used) // 20000)], [0.002, 0.998]) if len(used) else (-0.4, 0.05)
    )
    top, bottom = float(np.arctan(high)) + 1e-4, float(np.arctan(low)) - 1e-4
    edges = np.linspace(top, bottom, count + 1)
    return np.tan(edges), (edges[1:] + edges[:-1]) / 2


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
    labels, parent = allocate(image.shape, np.int32), allocate(image.size + 1, np.int32)
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


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of the clusters that are in the image.

    Args:
        cluster: (m,) int64 number of each box's cluster, from 1.
        edges: (m, 4) x1, y1, x2, y2 in pixels, within the image.
        visible: (m,) returns in the image.
        behind: (m,) returns behind the camera, which the box leaves out.
        hypothesis: (m,) int64 the way to cluster that the cluster is of, a place in `copg.Geometry.hypotheses`.
        beams: (m, 4) pixels from one beam to the next at the left, upper, right and lower edge; 0 without a range image.
    """

    cluster: npt.NDArray[np.int64]
    edges: Floats
    visible: npt.NDArray[np.int32]
    behind: npt.NDArray[np.int32]
    hypothesis: npt.NDArray[np.int64]
    beams: Floats

    def __len__(self) -> int:
        return len(self.cluster)


def project(
    points: Floats32,
    clusters: Clusters,
    kept: npt.NDArray[np.bool_],
    camera: Camera,
    *,
    ground: Ground | None = None,
    grid: Grid | None = None,
    standing_m: float = 0.0,
    min_visible: int = 1,
    near_m: float = 0.1,
    margin_px: float | None = 0.0,
    min_side_px: float = 0.0,
    hypothesis: int = 0,
) -> Boxes:
    """Axis-aligned boxes around the returns of clusters that a camera sees.

    A cluster that goes on beside the image reaches the image's border. Of one that is partly behind the
    camera, the box is around what lies before it.

    Args:
        points: (n, 3) metres in the LiDAR's frame.
        clusters: (k) of `clusters.find_clusters`.
        kept: (k,) which of them.
        camera: where to.
        ground: with it, clusters that stand on it reach down to it; see `standing_m`.
        grid: needed for margins of half the distance between beams.
        standing_m: returns lower than this stand on the ground.
        min_visible: fewer returns in the image are no box.
        near_m: what is less than this before the camera is behind it.
        margin_px: boxes grow by this on every side; None for half the distance between beams there.
        min_side_px: narrower or lower boxes are dropped.
        hypothesis: the way to cluster that clusters are of.
    """
    stands = ground is not None and ground.plane is not None and ground.heights is not None
    on_ground = standing_m if stands else 0.0
    numbers = np.flatnonzero(kept) + 1
    # (k, 4) corners of what a camera sees of clusters, infinite where nothing; (k, 2) counts of returns.

    slot = np.full(len(clusters) + 1, -1, dtype=np.int32)
    slot[numbers] = np.arange(len(numbers))
    edges = np.tile(np.array([np.inf, np.inf, -np.inf, -np.inf]), (len(numbers), 1))
    counts = np.zeros((len(numbers), 2), dtype=np.int32)
    heights = ground.heights if ground is not None and ground.heights is not None else np.empty(0, np.float32)
    plane = ground.plane if ground is not None and ground.plane is not None else np.zeros(4)
    compute_bounds(
        points,
        clusters.of_return,
        slot,
        heights,
        plane,
        float(on_ground),
        np.ascontiguousarray(camera.camera_SE3_lidar[:3], dtype=np.float64),
        np.ascontiguousarray(camera.intrinsics, dtype=np.float64),
        np.array([camera.width_px, camera.height_px], dtype=np.float64),
        float(near_m),
        edges,
        counts,
    )
    size = np.array([camera.width_px, camera.height_px], dtype=np.float64)
    held = np.isfinite(edges).all(1) & (counts[:, 0] >= min_visible)
    numbers, edges, counts = numbers[held], edges[held], counts[held]
    beams = _compute_beam_steps(clusters, numbers, camera, grid)
    margins = beams / 2 if margin_px is None else np.full((len(numbers), 4), float(margin_px))
    # What stands on the ground ends there.
    margins[clusters.feet_m[numbers - 1] < on_ground, 3] = 0.0
    # (m, 4) the boxes with their margins, cut to the image.
    found = edges + margins * np.array([-1.0, -1.0, 1.0, 1.0])
    within: Floats = np.clip(found, 0.0, np.concatenate([size, size]))
    edges = within
    # 1e-6: a box without area has no overlap with anything.
    large = ((edges[:, 2:] - edges[:, :2]) >= max(min_side_px, 1e-6)).all(1)
    which = np.full(int(large.sum()), hypothesis, dtype=np.int64)
    return Boxes(numbers[large], edges[large], counts[large, 0], counts[large, 1], which, beams[large])


def _compute_beam_steps(
    clusters: Clusters, numbers: npt.NDArray[np.int64], camera: Camera, grid: Grid | None
) -> Floats:
    """(m, 4) pixels from one beam to the next at each edge of some clusters; 0 without a range image."""
    if grid is None:
        return np.zeros((len(numbers), 4))
    steps = -np.diff(grid.elevations)
    steps = np.concatenate([steps[:1], steps, steps[-1:]]) if len(steps) else np.zeros(2)
    rows = clusters.rows[numbers - 1]
    # A column in radians times the focal length, which is its width in the middle of the image.
    across = np.full(len(numbers), 2 * np.pi / grid.columns * camera.intrinsics[0, 0])
    above = steps[rows[:, 0]] * camera.intrinsics[1, 1]
    below = steps[rows[:, 1] + 1] * camera.intrinsics[1, 1]
    return np.column_stack([across, above, across, below])
