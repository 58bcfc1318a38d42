"""Projection: boxes in the image around clusters of returns, cut to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32
from roadaware.corner_cases.captures import Camera
from roadaware.corner_cases.clusters import Clusters
from roadaware.corner_cases.ground import Ground
from roadaware.corner_cases.kernels import compute_bounds
from roadaware.corner_cases.range_image import Grid


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
