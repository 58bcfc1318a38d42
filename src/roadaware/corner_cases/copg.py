"""COPG: proposals of corner cases from one LiDAR sweep and one image, every step's result kept; DBSCAN as a baseline.

Source: Li et al., "CODA: a real-world road corner case dataset for object detection in autonomous driving",
ECCV 2022, section 4.2 and Figure 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Floats32
from roadaware.corner_cases.captures import Camera, Capture, CommonObjects, SemanticMap
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.cuboids import (
    EDGES,
    Cuboids,
    apply_image_cues,
    build_features,
    build_shape_features,
    fit_cuboids,
    load_trees,
    move_edges,
    select_best_boxes,
)
from roadaware.corner_cases.ground import (
    Ground,
    PointCheck,
    check,
    find_ground,
    follow_ground,
    validate_lidar_points,
)
from roadaware.corner_cases.kernels import count_class_returns
from roadaware.corner_cases.range_image import (
    Boxes,
    Clusters,
    Grid,
    assign_grid_cells,
    fill,
    find_clusters,
    find_reach_clusters,
    measure_clusters,
    parse_layout,
    project,
)
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import max_iou

# Background: share of each box that shows road, buildings, plants or sky.


def compute_box_background(
    edges: Floats, semantics: SemanticMap, background: Sequence[str], *, size: tuple[int, int]
) -> Floats:
    """(m,) share of each box's pixels that are background.

    A pixel belongs to a box where its middle does; a box without one is judged by the pixel it lies in.

    Args:
        edges: (m, 4) x1, y1, x2, y2 in pixels, within the image.
        semantics: (H, W) what each pixel shows.
        background: names of classes.
        size: width and height of the image.

    Raises:
        InputError: if the map has another size than the image, or no class has any of the names.

    Source: CODA (ECCV 2022), section 4.2, background removal.
    """
    wanted = _select_background_classes(semantics, background, size)
    height, width = semantics.classes.shape
    # The middle of pixel k lies at k + 0.5: inside from ceil(x1 - 0.5) on, up to ceil(x2 - 0.5).
    low = np.clip(np.ceil(edges[:, :2] - 0.5), 0, [width - 1, height - 1]).astype(np.int64)
    high = np.clip(np.ceil(edges[:, 2:] - 0.5), low + 1, [width, height]).astype(np.int64)
    # A table over all codes that occur: those without a name are no background.
    table = np.zeros(int(semantics.classes.max(initial=0)) + 1, dtype=np.float64)
    table[: len(wanted)] = wanted[: len(table)]
    found = [
        table[semantics.classes[y1:y2, x1:x2]].mean() for (x1, y1), (x2, y2) in zip(low, high, strict=True)
    ]
    return np.array(found, dtype=np.float64)


def compute_point_background(
    points: Floats32,
    clusters: Clusters,
    boxes: Boxes,
    camera: Camera,
    semantics: SemanticMap,
    background: Sequence[str],
    *,
    near_m: float = 0.1,
) -> Floats:
    """(m,) share of each proposal's returns that lie on pixels of background.

    A box of something small or slanting is mostly road, but its returns are not: they say what the thing is.

    Args:
        points: (n, 3) metres in the LiDAR's frame.
        clusters: which return belongs to what.
        boxes: (m) proposals.
        camera: that took the image.
        semantics: (H, W) what each pixel shows.
        background: names of classes.
        near_m: what is less than this before the camera is not seen.

    Raises:
        InputError: if the map has another size than the image, or no class has any of the names.
    """
    wanted = _select_background_classes(semantics, background, (camera.width_px, camera.height_px))
    slot = np.full(len(clusters) + 1, -1, dtype=np.int32)
    slot[boxes.cluster] = np.arange(len(boxes))
    counts = np.zeros((len(boxes), 2), dtype=np.int64)
    pose = np.ascontiguousarray(camera.camera_SE3_lidar[:3], dtype=np.float64)
    lens = np.ascontiguousarray(camera.intrinsics, dtype=np.float64)
    classes = np.ascontiguousarray(semantics.classes, dtype=np.int32)
    count_class_returns(points, clusters.of_return, slot, pose, lens, float(near_m), classes, wanted, counts)
    shares: Floats = counts[:, 0] / np.maximum(counts[:, 1], 1)
    return shares


def _select_background_classes(
    semantics: SemanticMap, background: Sequence[str], size: tuple[int, int]
) -> npt.NDArray[np.bool_]:
    """(c,) which classes are background.

    Raises:
        InputError: if the map has another size than the image, or no class has any of the names.
    """
    height, width = semantics.classes.shape
    if (width, height) != tuple(size):
        message = f"the semantic map has {width}x{height} pixels, the image {size[0]}x{size[1]}"
        raise InputError(message, hint="map and calibration must belong to the same image")
    found = np.array([name in set(background) for name in semantics.names], dtype=np.bool_)
    if not found.any():
        raise InputError(
            f"no class of the map is background: it has {', '.join(semantics.names)}",
            hint=f"background is {', '.join(background)}",
        )
    return found


# Common classes: how much each box overlaps an object that a detector knows already.


def compute_common_overlap(edges: Floats, common: CommonObjects, *, min_score: float = 0.0) -> Floats:
    """(m,) greatest overlap of each box with a detected common object, 0 where there is none.

    Args:
        edges: (m, 4) x1, y1, x2, y2 in pixels.
        common: what was detected.
        min_score: detections below it do not count.

    Source: CODA (ECCV 2022), section 4.2, common-class suppression.
    """
    certain = np.asarray(common.boxes, dtype=np.float64)[np.asarray(common.scores) >= min_score]
    return max_iou(edges, certain)


# Limits: which clusters are neither too small nor too far to be an object in the way.

KEPT, FEW, FAR, WIDE, TALL, LOW = range(6)
REASONS = ("kept", "few returns", "too far", "too wide", "too tall", "too low")


def check_cluster_limits(
    clusters: Clusters,
    *,
    min_points: int = 10,
    max_distance_m: float = 50.0,
    max_width_m: float | None = None,
    max_height_m: float | None = None,
    min_height_m: float = 0.0,
) -> npt.NDArray[np.uint8]:
    """(k,) uint8 reason why each cluster is dropped, an index in `REASONS`: 0 where it is kept.

    Where the ground is not known, heights drop nothing.

    Args:
        clusters: (k) of `clusters.find_clusters`.
        min_points: fewer returns are no object.
        max_distance_m: to the nearest return.
        max_width_m: widest cluster; None for any.
        max_height_m: of the highest return above the ground; None for any.
        min_height_m: at least so high must the highest return be.

    Source: CODA (ECCV 2022), section 4.2 and Table 5, for the first two.
    """
    found = np.full(len(clusters), KEPT, dtype=np.uint8)
    head = clusters.head_m
    if max_width_m is not None:
        found[clusters.width_m > max_width_m] = WIDE
    if max_height_m is not None:
        found[head > max_height_m] = TALL
    # head is nan where the ground is not known: that compares as false and drops nothing.
    found[head < min_height_m] = LOW
    # Later lines overrule: a cluster that fails the paper's limits is named by these.
    found[clusters.nearest_m > max_distance_m] = FAR
    found[clusters.counts < min_points] = FEW
    return found


# Scores: which proposals come first, since a set of boxes alone cannot be ranked.

HALF_RETURNS = 20.0
"""Returns of which a cluster is as likely a thing as not, as far as their number tells."""


def score_proposals(
    counts: npt.ArrayLike,
    nearest_m: npt.ArrayLike,
    *,
    max_distance_m: float,
    background: Floats | None = None,
    overlap: Floats | None = None,
) -> Floats:
    """(m,) a score in [0, 1] for each proposal: the product of its cues.

    - the returns that it is made of, n / (n + 20): more returns are a more certain thing;
    - its nearness, 1 - distance / (2 max_distance_m): from 1 at the LiDAR to 1/2 at the limit;
    - where a semantic map is given, the share that is no background: of its returns, or, with
      `background_by="box"`, of the pixels of its box;
    - where detections are given, 1 less its greatest overlap with a common object.

    The published method gives no score; this order is ours, and no probability.

    Args:
        counts: (m,) returns of each.
        nearest_m: (m,) to its nearest return.
        max_distance_m: farthest proposal.
        background: (m,) share that is background, as `copg.compute_background` gives it.
        overlap: (m,) greatest with a common object.
    """
    returns = np.asarray(counts, dtype=np.float64)
    far = np.asarray(nearest_m, dtype=np.float64)
    found: Floats = returns / (returns + HALF_RETURNS) * np.clip(1 - far / (2 * max_distance_m), 0, 1)
    if background is not None:
        found = found * (1 - background)
    if overlap is not None:
        found = found * (1 - overlap)
    return found


@dataclass(frozen=True, eq=False)
class Geometry:
    """Geometry of one sweep before any image: ground, clusters and limits; shared by all cameras of that moment.

    Args:
        points: (n, 3) float32 metres.
        checked: which are usable.
        ground: its plane, and which returns are ground.
        grid: where returns lie in the range image.
        image: (rows, columns) metres; 0 for nothing, negative for ground.
        clusters: returns that belong together, by the angle.
        limited: (k,) what each cluster is, a place in `REASONS`.
        others: the same sweep clustered in other ways: by each reach of the configuration.
    """

    points: Floats32
    checked: PointCheck
    ground: Ground
    grid: Grid
    image: Floats32
    clusters: Clusters
    limited: npt.NDArray[np.uint8]
    others: tuple[Geometry, ...] = ()

    @property
    def hypotheses(self) -> tuple[Geometry, ...]:
        """All ways to cluster, that of the angle first; `Boxes.hypothesis` is a place in it."""
        return (self, *self.others)


def select_cluster_values(geometry: Geometry, boxes: Boxes, name: str) -> npt.NDArray[Any]:
    """(m,) or (m, 2) what is known of the cluster of each box.

    Args:
        geometry: of the sweep.
        boxes: (m) of any way to cluster.
        name: a field of `Clusters` with a value for each cluster, such as `counts`, or two, as `rows`.
    """
    values = [getattr(each.clusters, name) for each in geometry.hypotheses]
    found = np.zeros((len(boxes), *values[0].shape[1:]), dtype=values[0].dtype)
    for place, each in enumerate(values):
        own = boxes.hypothesis == place
        found[own] = each[boxes.cluster[own] - 1]
    return found


DROPS = ("", "background", "common object", "copy", "beyond the most")
"""Why a box is no final proposal: the step that dropped it; a copy overlaps a better one, the last are ranked too low."""


@dataclass(frozen=True, eq=False)
class Proposals:
    """Boxes of one image after each step; the later ones are parts of `boxes`, the initial proposals.

    Args:
        geometry: what the returns say.
        boxes: (m) initial proposals, those of all ways to cluster.
        background: (m,) share of each that is background; None where no semantic map was given.
        overlap: (m,) with a detected common object; None where no detections were given.
        scores: (m,) in [0, 1].
        intermediate: (m,) which are left when background is removed.
        final: (m,) which are left when common objects are suppressed, too, copies are dropped and the best are kept.
        name: of the capture.
        cuboids: (m) where each stands in space; None where that was not asked.
        kept: (m,) which are left of the initial ones when copies are dropped and the best are kept; None for all.
        dropped: (m,) uint8 why each is no final proposal, a place in `DROPS`; None where that was not kept.
    """

    geometry: Geometry
    boxes: Boxes
    background: Floats | None
    overlap: Floats | None
    scores: Floats
    intermediate: Bools
    final: Bools
    name: str = ""
    cuboids: Cuboids | None = None
    kept: Bools | None = None
    dropped: npt.NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return int(self.final.sum())

    @property
    def initial(self) -> Bools:
        """(m,) which are initial proposals, before any image is asked."""
        return np.ones(len(self.boxes), dtype=np.bool_) if self.kept is None else self.kept


def propose(
    capture: Capture, config: CopgConfig | None = None, geometry: Geometry | None = None
) -> Proposals:
    """Propose boxes around possible corner cases.

    Args:
        capture: what was seen.
        config: the parameters (default: `CopgConfig()`).
        geometry: of the same sweep, where another camera has needed it already.

    Raises:
        InputError: if returns are in another unit or frame, or a semantic map is of another size.
    """
    config = config or CopgConfig()
    found = geometry or extract_geometry(capture, config)
    boxes = project_hypotheses(found, capture, config)
    cuboids = fit_proposal_cuboids(found, boxes, config)
    size = (capture.camera.width_px, capture.camera.height_px)
    boxes = complete_boxes(found, boxes, cuboids, config, size=size)
    background = compute_background(found, boxes, capture, config)
    overlap = compute_object_overlap(boxes, capture, config)
    return build_proposals(found, boxes, cuboids, background, overlap, config, capture.name, size=size)


def build_proposals(
    geometry: Geometry,
    boxes: Boxes,
    cuboids: Cuboids,
    background: Floats | None,
    overlap: Floats | None,
    config: CopgConfig,
    name: str = "",
    *,
    size: tuple[int, int],
) -> Proposals:
    """Build proposals from complete boxes: scores, the two thresholds on background and overlap, and the best of each place.

    Args:
        geometry: what the returns say.
        boxes: (m) of `complete_boxes`.
        cuboids: (m) of the same.
        background: (m,) of `compute_background`.
        overlap: (m,) of `compute_object_overlap`.
        config: the parameters.
        name: of the capture.
        size: width and height of the image in pixels.
    """
    passing = np.ones(len(boxes), dtype=np.bool_)
    # At the threshold a box stays: the paper drops where the share is greater.
    foreground = passing if background is None else background <= config.max_background
    unknown = foreground if overlap is None else foreground & (overlap <= config.max_common_iou)
    if config.ranking == "learnt":
        shape = describe_shapes(geometry, boxes, cuboids, size=size)
        rows = build_features(shape, boxes, hypotheses=len(geometry.hypotheses))
        scores = apply_image_cues(load_trees()["score"].predict(rows), background, overlap)
    else:
        scores = score_proposals(
            select_cluster_values(geometry, boxes, "counts"),
            select_cluster_values(geometry, boxes, "nearest_m"),
            max_distance_m=config.max_distance_m,
            background=background,
            overlap=overlap,
        )

    def select(allowed: Bools) -> Bools:
        return select_best_boxes(
            boxes.edges, scores, allowed, duplicate_iou=config.duplicate_iou, most=config.most
        )

    final = select(unknown)
    dropped = np.where(final, 0, DROPS.index("beyond the most")).astype(np.uint8)
    if config.duplicate_iou < 1 and final.any():
        copies = max_iou(boxes.edges, boxes.edges[final]) > config.duplicate_iou
        dropped[copies & ~final] = DROPS.index("copy")
    dropped[~unknown] = DROPS.index("common object")
    dropped[~foreground] = DROPS.index("background")
    # Each step by itself: a copy that background removal spares stands in for a better box that it does not.
    return Proposals(
        geometry,
        boxes,
        background,
        overlap,
        scores,
        intermediate=select(foreground),
        final=final,
        name=name,
        cuboids=cuboids,
        kept=select(passing),
        dropped=dropped,
    )


def project_hypotheses(
    found: Geometry, capture: Capture, config: CopgConfig, kept: Sequence[Bools] | None = None
) -> Boxes:
    """Boxes in the image around the clusters of all ways to cluster.

    Args:
        found: what the returns say.
        capture: whose camera sees them.
        config: the parameters.
        kept: of each way (k,) which clusters (default: those that no limit dropped).
    """
    kept = [each.limited == KEPT for each in found.hypotheses] if kept is None else kept
    parts = [
        project_clusters(each, capture, config, kept[place], place)
        for place, each in enumerate(found.hypotheses)
    ]
    if len(parts) == 1:
        return parts[0]
    return Boxes(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])})


def project_clusters(
    found: Geometry, capture: Capture, config: CopgConfig, kept: Bools, hypothesis: int = 0
) -> Boxes:
    """Boxes in the image around some clusters, each independent of the others.

    Args:
        found: what the returns say.
        capture: whose camera sees them.
        config: the parameters.
        kept: (k,) which clusters.
        hypothesis: the way to cluster that they are of.
    """
    return project(
        found.points,
        found.clusters,
        kept,
        capture.camera,
        ground=found.ground,
        grid=found.grid,
        standing_m=config.standing_m,
        min_visible=config.min_visible,
        near_m=config.near_m,
        margin_px=config.margin_px,
        min_side_px=config.min_side_px,
        hypothesis=hypothesis,
    )


def fit_proposal_cuboids(found: Geometry, boxes: Boxes, config: CopgConfig) -> Cuboids:
    """(m) where the clusters of some boxes stand in space, in the LiDAR's frame.

    Args:
        found: what the returns say.
        boxes: (m) of any way to cluster.
        config: the parameters.
    """
    count = len(boxes)
    whole = Cuboids(np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count), np.zeros((count, 3)))
    for place, each in enumerate(found.hypotheses):
        own = boxes.hypothesis == place
        held = fit_cuboids(
            each.points,
            each.clusters.of_return,
            boxes.cluster[own],
            ground=each.ground,
            standing_m=config.standing_m,
        )
        for name, values in vars(held).items():
            getattr(whole, name)[own] = values
    return whole


def describe_shapes(found: Geometry, boxes: Boxes, cuboids: Cuboids, *, size: tuple[int, int]) -> Floats:
    """(m, 15) what the learnt trees ask of each box by itself, in the order of `ranking.SHAPE`.

    Args:
        found: what the returns say.
        boxes: (m) of any way to cluster.
        cuboids: (m) of the same.
        size: width and height of the image in pixels.
    """
    names = ("counts", "nearest_m", "feet_m", "head_m", "rows")
    values = {name: select_cluster_values(found, boxes, name) for name in names}
    return build_shape_features(boxes, cuboids, size, **values)


def complete_boxes(
    found: Geometry, boxes: Boxes, cuboids: Cuboids, config: CopgConfig, *, size: tuple[int, int]
) -> Boxes:
    """The boxes with their edges where things of such a shape ended, between the last beam that met one and the next.

    Each box is moved by itself, whatever others there are.

    Args:
        found: what the returns say.
        boxes: (m) of `project_hypotheses`.
        cuboids: (m) of the same.
        config: the parameters; without `completion` the boxes are given back.
        size: width and height of the image in pixels.
    """
    if config.completion == "none":
        return boxes
    shape, trees = describe_shapes(found, boxes, cuboids, size=size), load_trees()
    return move_edges(boxes, np.column_stack([trees[name].predict(shape) for name in EDGES]), size)


def compute_object_overlap(boxes: Boxes, capture: Capture, config: CopgConfig) -> Floats | None:
    """(m,) greatest overlap of each box with a common object; None where there are no detections.

    Args:
        boxes: (m) of an image.
        capture: with the detections.
        config: the parameters.
    """
    if capture.common is None:
        return None
    return compute_common_overlap(boxes.edges, capture.common, min_score=config.min_common_score)


def compute_background(found: Geometry, boxes: Boxes, capture: Capture, config: CopgConfig) -> Floats | None:
    """(m,) share of background of each proposal; None where unknown.

    Args:
        found: what the returns say.
        boxes: (m) of an image.
        capture: with the semantic map.
        config: the parameters.

    Raises:
        InputError: if the map is of another size than the image, or knows no background.
    """
    if capture.semantics is None:
        return None
    if config.background_by == "box":
        size = (capture.camera.width_px, capture.camera.height_px)
        return compute_box_background(boxes.edges, capture.semantics, config.background, size=size)
    shares = np.zeros(len(boxes))
    for place, each in enumerate(found.hypotheses):
        own = boxes.hypothesis == place
        shares[own] = compute_point_background(
            each.points,
            each.clusters,
            replace(boxes, **{name: values[own] for name, values in vars(boxes).items()}),
            capture.camera,
            capture.semantics,
            config.background,
            near_m=config.near_m,
        )
    return shares


def extract_geometry(capture: Capture, config: CopgConfig | None = None) -> Geometry:
    """The steps before the image: check, ground, range image, clusters, limits.

    Args:
        capture: what was seen; its camera is not asked.
        config: the parameters (default: `CopgConfig()`).

    Raises:
        InputError: if returns are in another unit or frame, or rings do not fit them.
    """
    config = config or CopgConfig()
    points = validate_lidar_points(capture.points)
    checked = check(points, min_range_m=config.min_range_m)
    ground = estimate_ground(points, checked, capture, config)
    grid = build_grid(points, checked, capture, config)
    ground = estimate_local_ground(ground, checked, grid, config)
    image, clusters = extract_clusters(points, checked, ground, grid, config)
    reached = extract_reach_clusters(points, checked, ground, grid, image, config)
    return build_geometry(points, checked, ground, grid, image, clusters, reached, config)


def build_geometry(
    points: Floats32,
    checked: PointCheck,
    ground: Ground,
    grid: Grid,
    image: Floats32,
    clusters: Clusters,
    reached: Sequence[Clusters],
    config: CopgConfig,
) -> Geometry:
    """The geometry of a sweep whose steps are done: limits of each way to cluster.

    Args:
        points: (n, 3) metres.
        checked: which are usable.
        ground: which of them are ground.
        grid: where they lie in the image.
        image: (rows, columns) the range image without ground.
        clusters: by the angle.
        reached: by each reach.
        config: the parameters.
    """

    def build(each: Clusters, others: tuple[Geometry, ...] = ()) -> Geometry:
        limited = apply_cluster_limits(each, config)
        return Geometry(points, checked, ground, grid, image, each, limited, others)

    return build(clusters, tuple(build(each) for each in reached))


def estimate_local_ground(ground: Ground, checked: PointCheck, grid: Grid, config: CopgConfig) -> Ground:
    """The ground as it rises and falls away from the plane, where that is asked for."""
    if config.local_ground_m is None:
        return ground
    return follow_ground(
        ground, checked, grid.column, grid.ranges, grid.columns, within_m=config.local_ground_m
    )


def extract_reach_clusters(
    points: Floats32,
    checked: PointCheck,
    ground: Ground,
    grid: Grid,
    image: Floats32,
    config: CopgConfig,
) -> tuple[Clusters, ...]:
    """The clusters of each reach of the configuration.

    Args:
        points: (n, 3) metres.
        checked: which of them are usable.
        ground: which of them are ground.
        grid: where they lie in the image.
        image: the range image without ground.
        config: the parameters.
    """
    if not config.reach_m:
        return ()
    solid = checked.usable & ~ground.removed
    return find_reach_clusters(points, grid, image, solid, config.reach_m, heights=ground.heights)


def estimate_ground(points: Floats32, checked: PointCheck, capture: Capture, config: CopgConfig) -> Ground:
    """The plane of the ground.

    Args:
        points: (n, 3) metres.
        checked: which are usable.
        capture: with the direction that is up.
        config: the parameters.
    """
    return find_ground(
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


def build_grid(points: Floats32, checked: PointCheck, capture: Capture, config: CopgConfig) -> Grid:
    """Row and column of each return in the range image.

    Args:
        points: (n, 3) metres.
        checked: which are usable.
        capture: with the facts of the LiDAR.
        config: the parameters.

    Raises:
        InputError: if rings do not fit the returns.
    """
    return assign_grid_cells(
        points,
        checked,
        ring=capture.ring,
        layout=parse_layout(capture.layout),
        columns=config.columns,
        rows=config.rows,
        reach_rows=config.reach_rows,
        repair_rows=config.repair_rows,
    )


def extract_clusters(
    points: Floats32, checked: PointCheck, ground: Ground, grid: Grid, config: CopgConfig
) -> tuple[Floats32, Clusters]:
    """The range image without ground, and its clusters.

    Args:
        points: (n, 3) metres.
        checked: which are usable.
        ground: which of them are ground.
        grid: where they lie in the image.
        config: the parameters.
    """
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
    return image, clusters


def apply_cluster_limits(clusters: Clusters, config: CopgConfig) -> npt.NDArray[np.uint8]:
    """(k,) reason why each cluster is dropped, an index in `REASONS`.

    Args:
        clusters: (k) of a sweep.
        config: the parameters.
    """
    return check_cluster_limits(
        clusters,
        min_points=config.min_points,
        max_distance_m=config.max_distance_m,
        max_width_m=config.max_width_m,
        max_height_m=config.max_height_m,
        min_height_m=config.min_height_m,
    )


# DBSCAN as a baseline for the range image, on the same returns without ground.

LEAST_RETURNS = 5
"""Returns within reach that make one a core; scikit-learn's default."""


def extract_dbscan_geometry(
    capture: Capture, config: CopgConfig | None = None, *, eps_m: float = 0.5
) -> Geometry:
    """The steps before the image with clusters of DBSCAN; ground and limits are those of the proposals.

    Args:
        capture: what was seen; its camera is not asked.
        config: the parameters (default: those of `CopgConfig.angle`); those of the range image do nothing.
        eps_m: how far neighbours lie from each other at most, in space.

    Raises:
        UsageError: if the reach is not positive.
        InputError: if returns are in another unit or frame, or rings do not fit them.

    Source: Ester et al., "A density-based algorithm for discovering clusters", KDD 1996.
    """
    from sklearn.cluster import DBSCAN

    if not eps_m > 0:
        raise UsageError(f"neighbours are some way apart: eps_m should be positive, not {eps_m!r}")
    config = config or CopgConfig.angle()
    found = replace(extract_geometry(capture, replace(config, reach_m=())), others=())
    solid = found.checked.usable & ~found.ground.removed
    numbers = np.zeros(len(found.points), dtype=np.int32)
    if solid.any():
        grouped = DBSCAN(eps=eps_m, min_samples=LEAST_RETURNS).fit(found.points[solid].astype(np.float64))
        # scikit-learn counts clusters from 0 and calls noise -1; here they count from 1, and noise is 0.
        numbers[solid] = grouped.labels_ + 1
    labels = np.zeros(found.grid.shape, dtype=np.int32)
    inside = (numbers > 0) & (found.grid.row >= 0)
    labels[found.grid.row[inside], found.grid.column[inside]] = numbers[inside]
    count = int(numbers.max(initial=0))
    heights = found.ground.heights
    clusters = measure_clusters(found.points, found.grid, labels, numbers, count, heights=heights)
    return replace(found, clusters=clusters, limited=apply_cluster_limits(clusters, config))
