"""Cuboids of clusters in space, and the ranking of proposals by geometry alone: reach, likeness, copies."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Floats32, Ints, Ints32
from roadaware.corner_cases.ground import Ground
from roadaware.corner_cases.kernels import fit_rectangles, group_by_cluster
from roadaware.corner_cases.range_image import Boxes
from roadaware.errors import InputError
from roadaware.geometry.boxes import PAIRS, iou, max_iou

ANGLES = 30
"""Directions that are tried within a quarter turn: steps of 3 degrees."""
LEAST_SIDE_M = 0.05
"""No thing is thinner; a single row of returns spans nothing across."""
STRAY = 0.02
"""Share of the returns that a cuboid leaves out at each end."""
# Boxes that trees are asked about at a time.
_ROWS = 4096
# Returns of one cluster that say how it is turned; more say the same and cost time.
_JUDGES = 256


@dataclass(frozen=True, eq=False)
class Cuboids:
    """Upright boxes in space around what was seen of clusters, in the LiDAR's frame: x ahead, y left, z up.

    Only the sides that face the LiDAR send returns back: a cuboid is as deep as what was seen, not as the thing is.

    Args:
        centres: (m, 3) metres, the middle of each.
        sizes: (m, 3) metres: length along its own direction, width across, height; the length is the longer side.
        yaw: (m,) radians counter-clockwise from ahead to the length, from -pi/2 to pi/2; which end is the front is
            not known.
        spans: (m, 3) metres: sizes with every return in them, the longer side first. A cuboid leaves out a fiftieth at
            each end, where there are fifty returns or more: a few beams slip past a thing and end far behind it.
    """

    centres: Floats
    sizes: Floats
    yaw: Floats
    spans: Floats

    def __len__(self) -> int:
        return len(self.yaw)


def fit_cuboids(
    points: Floats32,
    of_return: Ints32,
    numbers: npt.NDArray[np.integer],
    *,
    ground: Ground | None = None,
    standing_m: float = 0.0,
) -> Cuboids:
    """The cuboid of each of some clusters.

    The direction is the one of a quarter turn at which returns lie closest to the edges of the rectangle around them.

    Args:
        points: (n, 3) metres in the LiDAR's frame.
        of_return: (n,) cluster of each return, 0 for none.
        numbers: (m,) clusters, from 1, each at most once.
        ground: with it, clusters that stand on it reach down to it.
        standing_m: a cluster whose lowest return is less than this above the ground stands on it.
    """
    count = len(numbers)
    slot = np.full(int(max(of_return.max(initial=0), np.max(numbers, initial=0))) + 1, -1, dtype=np.int32)
    slot[numbers] = np.arange(count)
    starts = np.zeros(count + 1, dtype=np.int64)
    members = np.empty(len(points), dtype=np.int32)
    group_by_cluster(of_return, slot, starts, members)
    plane = np.zeros(4)
    heights = np.empty(0, dtype=np.float32)
    if ground is not None and ground.plane is not None and ground.heights is not None:
        plane, heights = ground.plane, ground.heights
    found = np.zeros((count, 9))
    angles = np.arange(ANGLES) * (np.pi / 2 / ANGLES)
    turns = np.column_stack([np.cos(angles), np.sin(angles)])
    fit_rectangles(points, members, starts, turns, heights, plane, float(standing_m), _JUDGES, STRAY, found)
    sizes = np.maximum(found[:, 3:6], LEAST_SIDE_M)
    yaw = found[:, 6]
    across = sizes[:, 1] > sizes[:, 0]
    # The longer side is the length, so that equal things have equal sizes however they are turned.
    sizes[across, :2] = sizes[across, 1::-1]
    yaw = np.where(across, yaw - np.pi / 2, yaw)
    spans = np.maximum(np.column_stack([np.sort(found[:, 7:], axis=1)[:, ::-1], found[:, 5]]), LEAST_SIDE_M)
    return Cuboids(found[:, :3], sizes, yaw, spans)


def compute_cuboid_corners(cuboid: Floats) -> Floats:
    """(8, 3) corners of a cuboid in its own frame.

    Args:
        cuboid: (7,) x, y, z of its middle, length, width, height, and the turn about the axis up.
    """
    cos, sin = np.cos(cuboid[6]), np.sin(cuboid[6])
    signs = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    found: Floats = (signs * cuboid[3:6]) @ np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]])
    return found + cuboid[:3]


SHAPE = (
    "log_returns",
    "distance_m",
    "log_length",
    "log_width",
    "height_m",
    "feet_m",
    "head_m",
    "log_aspect",
    "at_left_border",
    "at_right_border",
    "at_border",
    "log_beams_high",
    "log_beams_wide",
    "rows",
    "visible",
)
"""Columns of `build_shape_features`, which hang on no other box."""
FEATURES = (*SHAPE, "mean_agreement", "least_agreement")
"""Columns of `build_features`."""
EDGES = ("left", "upper", "right", "lower")
"""Trees that say where an edge is, in the order of a box's edges."""
MODEL = "ranking.json"
"""The bundled trees, beside this module."""
MOST_BEAMS = 1.0
"""By no more beams than this is an edge moved. A thing ends before the first beam that misses it but for its thin parts;
with two and four beams boxes of other synthetic towns were worse."""
FLOOR = 1e-4
"""The least score: trees may sum up to less than nothing, and factors of masks must still tell such boxes apart."""
ALL_BACKGROUND = 0.98
"""What a box all of whose returns are background loses at most of the square of its score: masks err, too."""


@dataclass(frozen=True, eq=False)
class Trees:
    """Regression trees of one depth, each complete: node n has the children 2n + 1 and 2n + 2.

    Args:
        base: what is added to the sum of all.
        feature: (t, 2^d - 1) int64 column that a node asks.
        threshold: (t, 2^d - 1) up to which a value goes to the first child.
        value: (t, 2^d) what a leaf adds.
    """

    base: float
    feature: Ints
    threshold: Floats
    value: Floats

    @property
    def depth(self) -> int:
        """Questions from the root to a leaf."""
        return int(self.value.shape[1]).bit_length() - 1

    def predict(self, rows: Floats) -> Floats:
        """(m,) sums of the trees.

        Args:
            rows: (m, f) features.
        """
        trees = np.arange(len(self.feature))
        found = np.empty(len(rows))
        # Rows by rows: of very many the places in all trees would not fit into memory.
        for first in range(0, len(rows), _ROWS):
            part = rows[first : first + _ROWS]
            node = np.zeros((len(part), len(trees)), dtype=np.int64)
            places = np.arange(len(part))[:, None]
            for _ in range(self.depth):
                larger = part[places, self.feature[trees, node]] > self.threshold[trees, node]
                node = 2 * node + 1 + larger
            leaves = self.value[trees, node - self.feature.shape[1]]
            found[first : first + _ROWS] = self.base + leaves.sum(axis=1)
        return found


def parse_trees(data: bytes, where: str = MODEL) -> dict[str, Trees]:
    """Trees of a JSON file: the `score`, and one of each of `EDGES`.

    Raises:
        InputError: if it holds no such trees, or asks other features.
    """
    try:
        held = json.loads(data)
        found = {
            name: Trees(
                float(each["base"]),
                np.array(each["feature"], dtype=np.int64),
                np.array(each["threshold"], dtype=np.float64),
                np.array(each["value"], dtype=np.float64),
            )
            for name, each in held["trees"].items()
        }
        asked = tuple(held["features"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"expected a ranking's trees, found: {error}", where=where) from error
    if asked != FEATURES:
        raise InputError(
            f"expected trees about {', '.join(FEATURES)}, found {', '.join(map(str, asked))}", where=where
        )
    if set(found) != {"score", *EDGES}:
        raise InputError(
            f"expected trees of score, {', '.join(EDGES)}, found {', '.join(found)}", where=where
        )
    for name, trees in found.items():
        nodes, leaves = trees.feature.shape[1:], trees.value.shape[1:]
        if trees.threshold.shape != trees.feature.shape or leaves[0] != nodes[0] + 1 or leaves[0] & nodes[0]:
            raise InputError(f"expected complete trees, found {nodes} nodes and {leaves} leaves", where=where)
        known = len(FEATURES if name == "score" else SHAPE)
        if trees.feature.min() < 0 or trees.feature.max() >= known:
            raise InputError(f"expected features 0 to {known - 1} in {name}", where=where)
    return found


@cache
def load_trees() -> dict[str, Trees]:
    """The bundled trees: `score` and each of `EDGES`."""
    return parse_trees(files(__package__).joinpath(MODEL).read_bytes())


def build_shape_features(
    boxes: Boxes,
    cuboids: Cuboids,
    size: tuple[int, int],
    *,
    counts: npt.NDArray[np.integer],
    nearest_m: npt.NDArray[np.floating],
    feet_m: npt.NDArray[np.floating],
    head_m: npt.NDArray[np.floating],
    rows: npt.NDArray[np.integer],
) -> Floats:
    """(m, 15) what is known of each proposal by itself, in the order of `SHAPE`.

    Where there is no ground, a cluster's height stands for how far it reaches above it.

    Args:
        boxes: (m) of all ways to cluster.
        cuboids: (m) of the same.
        size: width and height of the image in pixels.
        counts: (m,) returns of each.
        nearest_m: (m,) distance of its nearest return.
        feet_m: (m,) height of its lowest return above the ground; nan where there is none.
        head_m: (m,) of its highest return; nan where there is no ground.
        rows: (m, 2) its highest and lowest row of the range image.
    """
    edges = boxes.edges
    wide, tall = edges[:, 2] - edges[:, 0], edges[:, 3] - edges[:, 1]
    # Half a pixel: edges are cut to the image, and rounding may leave them a trifle inside.
    first, last = edges[:, :2] <= 0.5, edges[:, 2:] >= np.array(size) - 0.5
    height = cuboids.spans[:, 2]
    feet, head = np.asarray(feet_m, dtype=np.float64), np.asarray(head_m, dtype=np.float64)
    # A hundredth of a pixel: beams of a single row, or without a range image, are no way apart.
    beams = np.maximum(boxes.beams, 0.01)
    return np.column_stack(
        [
            np.log(np.asarray(counts, dtype=np.float64)),
            np.asarray(nearest_m, dtype=np.float64),
            np.log(cuboids.spans[:, 0]),
            np.log(cuboids.spans[:, 1]),
            height,
            np.where(np.isnan(feet), 0.0, feet),
            np.where(np.isnan(head), height, head),
            np.log(wide / tall),
            first[:, 0],
            last[:, 0],
            first.any(axis=1) | last.any(axis=1),
            np.log(tall / beams[:, 1]),
            np.log(wide / beams[:, 0]),
            rows[:, 1] - rows[:, 0] + 1,
            boxes.visible / counts,
        ]
    )


def build_features(shape: Floats, boxes: Boxes, *, hypotheses: int) -> Floats:
    """(m, 17) what the score asks of each proposal, in the order of `FEATURES`.

    Agreement is the overlap with the best box of each other way to cluster, 0 where it has none there.

    Args:
        shape: (m, 15) of `build_shape_features`.
        boxes: (m) of all ways to cluster.
        hypotheses: how many ways to cluster there are.
    """
    edges = boxes.edges
    agreement = np.zeros((len(boxes), hypotheses))
    for place in range(hypotheses):
        agreement[:, place] = max_iou(edges, edges[boxes.hypothesis == place])
    own = np.arange(hypotheses) == boxes.hypothesis[:, None]
    # Alone, a way agrees with itself.
    others = (
        np.where(own, 0.0, agreement).sum(axis=1) / (hypotheses - 1)
        if hypotheses > 1
        else np.ones(len(boxes))
    )
    least = np.where(own, 1.0, agreement).min(axis=1, initial=1.0)
    return np.column_stack([shape, others, least])


def move_edges(boxes: Boxes, moves: Floats, size: tuple[int, int]) -> Boxes:
    """The boxes with each edge moved, by `MOST_BEAMS` at most, and cut to the image.

    A box that would be narrower or lower than a pixel stays as it is.

    Args:
        boxes: (m) of any way to cluster.
        moves: (m, 4) to the right and downwards, in `Boxes.beams`.
        size: width and height of the image in pixels.
    """
    moved = boxes.edges + np.clip(moves, -MOST_BEAMS, MOST_BEAMS) * boxes.beams
    moved = np.clip(moved, 0.0, np.array([*size, *size], dtype=np.float64))
    sound = np.all(moved[:, 2:] - moved[:, :2] >= 1, axis=1)
    return replace(boxes, edges=np.where(sound[:, None], moved, boxes.edges))


def apply_image_cues(scores: Floats, background: Floats | None, overlap: Floats | None) -> Floats:
    """(m,) scores in [0, 1] with what masks and detections say.

    The geometric score times the root of the share that is no background, times the square of the share that overlaps no
    common object: of masks that err, a share of background is a weak hint, an overlap with a detection a strong one.

    Args:
        scores: (m,) of the trees.
        background: (m,) share of each proposal's returns, or of its box, that is background; None where unknown.
        overlap: (m,) greatest with a common object; None where unknown.
    """
    found: Floats = np.clip(scores, FLOOR, 1.0)
    if background is not None:
        found = found * np.sqrt(1 - ALL_BACKGROUND * background)
    if overlap is not None:
        found = found * (1 - overlap) ** 2
    return found


def select_best_boxes(
    edges: Floats, scores: Floats, allowed: Bools, *, duplicate_iou: float, most: int | None
) -> Bools:
    """(m,) which boxes are kept: from the best score on, each that overlaps none kept before by more than a share.

    Args:
        edges: (m, 4) x1, y1, x2, y2 in pixels.
        scores: (m,) of each; of equal ones the first is better.
        allowed: (m,) which may be kept at all.
        duplicate_iou: the share; from 1 on none is a copy.
        most: how many are kept; None for all.
    """
    places = np.flatnonzero(allowed)
    places = places[np.argsort(-scores[places], kind="stable")]
    kept = np.zeros(len(edges), dtype=np.bool_)
    if not len(places):
        return kept
    if duplicate_iou >= 1:
        kept[places[:most]] = True
        return kept
    # Rows by rows: a table of all pairs would not fit into memory where a sweep is noise.
    step = max(1, PAIRS // len(places))
    copies, gone = np.zeros((0, len(places)), dtype=np.bool_), np.zeros(len(places), dtype=np.bool_)
    count = 0
    for row, place in enumerate(places.tolist()):
        if row % step == 0:
            copies = iou(edges[places[row : row + step]], edges[places]) > duplicate_iou
        if gone[row]:
            continue
        kept[place] = True
        count += 1
        if count == most:
            break
        gone |= copies[row % step]
    return kept
