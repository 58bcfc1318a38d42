"""COPG: proposals of corner cases from one LiDAR sweep and one picture, every step's result kept.

Source: Li et al., "CODA: a real-world road corner case dataset for object detection in autonomous driving",
ECCV 2022, section 4.2 and Figure 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.corner_cases.background import background_shares, returns_on_background
from roadaware.corner_cases.captures import Capture
from roadaware.corner_cases.clusters import Clusters, find_clusters
from roadaware.corner_cases.common import common_overlaps
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.ground import Ground, find_ground
from roadaware.corner_cases.layouts import layout_of
from roadaware.corner_cases.limits import limit
from roadaware.corner_cases.points import PointCheck, Singles, check, checked_points
from roadaware.corner_cases.projection import Boxes, project
from roadaware.corner_cases.range_image import Grid, fill, locate
from roadaware.corner_cases.scoring import scores

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Geometry:
    """What the returns of one sweep say, before any picture; serves every camera of that moment.

    Args:
        points: (n, 3) float32 metres.
        checked: which are usable.
        ground: its plane, and which returns are ground.
        grid: where returns lie in the range image.
        image: (rows, columns) metres; 0 for nothing, negative for ground.
        clusters: returns that belong together.
        limited: (k,) what each cluster is, a place in `limits.REASONS`.
    """

    points: Singles
    checked: PointCheck
    ground: Ground
    grid: Grid
    image: Singles
    clusters: Clusters
    limited: npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Proposals:
    """Boxes of one picture after each step; the later ones are parts of `boxes`, the initial proposals.

    Args:
        geometry: what the returns say.
        boxes: (m) initial proposals.
        background: (m,) share of each that is background; None where no semantic map was given.
        overlap: (m,) with a detected common object; None where no detections were given.
        scores: (m,) in [0, 1]; see `scoring`.
        intermediate: (m,) which are left when background is removed.
        final: (m,) which are left when common objects are suppressed, too.
        name: of the capture.
    """

    geometry: Geometry
    boxes: Boxes
    background: Floats | None
    overlap: Floats | None
    scores: Floats
    intermediate: Flags
    final: Flags
    name: str = ""

    def __len__(self) -> int:
        return int(self.final.sum())


def propose(
    capture: Capture, config: CopgConfig | None = None, geometry: Geometry | None = None
) -> Proposals:
    """Boxes around what may be a corner case.

    Args:
        capture: what was seen.
        config: the knobs; their defaults unless told.
        geometry: of the same sweep, where another camera has needed it already.

    Raises:
        InputError: if returns are in another unit or frame, or a semantic map is of another size.
    """
    config = config or CopgConfig()
    found = geometry or geometry_of(capture, config)
    boxes = project(
        found.points,
        found.clusters,
        found.limited == 0,
        capture.camera,
        ground=found.ground,
        grid=found.grid,
        standing_m=config.standing_m,
        min_visible=config.min_visible,
        near_m=config.near_m,
        margin_px=config.margin_px,
        min_side_px=config.min_side_px,
    )
    overlap = None
    background = _background(capture, found, boxes, config)
    intermediate = np.ones(len(boxes), dtype=np.bool_)
    if background is not None:
        intermediate = background <= config.max_background
    final = intermediate.copy()
    if capture.common is not None:
        overlap = common_overlaps(boxes.edges, capture.common, min_score=config.min_common_score)
        final &= overlap <= config.max_common_iou
    ranked = scores(
        found.clusters.counts[boxes.cluster - 1],
        found.clusters.nearest_m[boxes.cluster - 1],
        max_distance_m=config.max_distance_m,
        background=background,
        overlap=overlap,
    )
    return Proposals(found, boxes, background, overlap, ranked, intermediate, final, capture.name)


def _background(capture: Capture, found: Geometry, boxes: Boxes, config: CopgConfig) -> Floats | None:
    """(m,) which share of each proposal is background; None where that is not known."""
    if capture.semantics is None:
        return None
    if config.background_by == "box":
        size = (capture.camera.width_px, capture.camera.height_px)
        return background_shares(boxes.edges, capture.semantics, config.background, size=size)
    return returns_on_background(
        found.points,
        found.clusters,
        boxes,
        capture.camera,
        capture.semantics,
        config.background,
        near_m=config.near_m,
    )


def geometry_of(capture: Capture, config: CopgConfig | None = None) -> Geometry:
    """The steps before the picture: check, ground, range image, clusters, limits.

    Args:
        capture: what was seen; its camera is not asked.
        config: the knobs; their defaults unless told.

    Raises:
        InputError: if returns are in another unit or frame, or rings do not fit them.
    """
    config = config or CopgConfig()
    points = checked_points(capture.points)
    checked = check(points, min_range_m=config.min_range_m)
    ground = find_ground(
        points,
        checked,
        up=capture.up,
        within_m=config.ground_m,
        range_m=config.ground_range_m,
        tilt_deg=config.ground_tilt_deg,
        least_share=config.ground_share,
        draws=config.ground_draws,
        returns=config.ground_returns,
        seed=config.seed,
    )
    grid = locate(
        points,
        checked,
        ring=capture.ring,
        layout=layout_of(capture.layout),
        columns=config.columns,
        rows=config.rows,
        reach_rows=config.reach_rows,
        repair_rows=config.repair_rows,
    )
    solid = checked.usable & ~ground.removed
    image = fill(grid, solid)
    clusters = find_clusters(
        points,
        grid,
        image,
        solid,
        heights=ground.heights,
        theta_deg=config.theta_deg,
        reach_columns=config.reach_columns,
    )
    limited = limit(
        clusters,
        min_points=config.min_points,
        max_distance_m=config.max_distance_m,
        max_width_m=config.max_width_m,
        max_height_m=config.max_height_m,
        min_height_m=config.min_height_m,
    )
    return Geometry(points, checked, ground, grid, image, clusters, limited)
