"""Several ways to cluster over a followed ground: what they join, how they are united and ranked, and cuboids."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import Thing, World, ahead, capture, corners_in

from example_counts import tried
from roadaware.config import digest, from_dict, to_dict
from roadaware.corner_cases.captures import Camera, Capture, CommonObjects, SemanticMap
from roadaware.corner_cases.config import CopgConfig, open_saved_config
from roadaware.corner_cases.copg import (
    build_proposals,
    complete_boxes,
    extract_geometry,
    fit_proposal_cuboids,
    project_hypotheses,
    propose,
    select_cluster_values,
)
from roadaware.corner_cases.cuboids import (
    EDGES,
    FEATURES,
    SHAPE,
    Cuboids,
    Trees,
    apply_image_cues,
    build_features,
    fit_cuboids,
    load_trees,
    move_edges,
    parse_trees,
    select_best_boxes,
)
from roadaware.corner_cases.ground import check, find_ground, follow_ground, validate_lidar_points
from roadaware.corner_cases.kernels import label_within_reach
from roadaware.corner_cases.proposal_tables import build_dropped_rows, build_proposal_rows
from roadaware.corner_cases.range_image import TALL, WIDE, Boxes, assign_grid_cells
from roadaware.errors import InputError, UsageError
from roadaware.formats.cuboid_labels import CUBOID
from roadaware.geometry.boxes import iou

THINGS = (
    Thing(10, 2.5, height=0.8),
    Thing(14, -3, width=2.0, height=1.4),
    Thing(20, 6, width=2.5, height=2.0),
    Thing(9, -1, length=0.5, width=0.6, height=0.5),
)
WORLD = World(THINGS, rings=64, columns=900, noise_m=0.01)


def plain_reach(image, spots, reach):
    """Labels by the definition: a graph of the pairs that the kernel says it looks at, and its components by search."""
    rows, columns = image.shape
    there = [(i, j) for i in range(rows) for j in range(columns) if image[i, j] > 0]
    pairs = {place: set() for place in there}

    def near(a, b):
        return image[b] > 0 and float(((spots[a] - spots[b]).astype(np.float64) ** 2).sum()) < reach * reach

    for i, j in there:
        looked = []
        for step in range(1, min(WIDE, columns - 1) + 1):
            looked.append((i, (j - step) % columns))
            if near((i, j), looked[-1]):
                break
        for up in range(1, min(TALL, i) + 1):
            looked.append((i - up, j))
            if near((i, j), looked[-1]):
                break
            looked += [(i - up, (j - 1) % columns), (i - up, (j + 1) % columns)]
        for other in looked:
            if other != (i, j) and near((i, j), other):
                pairs[i, j].add(other)
                pairs[other].add((i, j))
    labels, count = np.zeros(image.shape, np.int32), 0
    for place in there:
        if labels[place]:
            continue
        count += 1
        stack = [place]
        while stack:
            here = stack.pop()
            if not labels[here]:
                labels[here] = count
                stack += pairs[here]
    return labels, count


@given(st.integers(0, 2**32 - 1), st.floats(0.2, 3.0))
@tried(60)
def test_reach_joins_what_lies_near_in_space(seed, reach):
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(1, 7)), int(rng.integers(8, 20))
    image = np.where(rng.random(shape) < 0.6, rng.uniform(3, 5, shape), 0).astype(np.float32)
    image[rng.random(shape) < 0.1] *= -1
    angle = 2 * np.pi * np.arange(shape[1]) / shape[1]
    flat = np.abs(image)
    spots = np.stack(
        [flat * np.cos(angle), flat * np.sin(angle), 0.4 * np.arange(shape[0])[:, None] + 0 * flat], -1
    )
    # Ranges as of the places: the kernel may ask them first.
    spots = spots.astype(np.float32)
    held = np.sign(image) * np.linalg.norm(spots, axis=-1).astype(np.float32)
    labels, parent = np.empty(shape, np.int32), np.empty(image.size + 1, np.int32)
    count = label_within_reach(held, spots, np.float32(reach), WIDE, TALL, parent, labels)
    expected, number = plain_reach(held, spots, float(np.float32(reach)))
    assert count == number
    np.testing.assert_array_equal(labels, expected)


def test_things_with_a_gap_are_one_within_reach_and_two_by_the_angle():
    world = World((Thing(10, 0.33, width=0.5), Thing(10, -0.33, width=0.5)), rings=64, columns=900)
    seen = capture(world)
    geometry = extract_geometry(seen, CopgConfig(reach_m=(0.13, 1.0)))
    wide, _, near = (int((each.limited == 0).sum()) for each in (geometry, *geometry.others))
    assert (wide, near) == (2, 1)
    # Reaches are nested: what belongs together within the smaller one does within the larger.
    small, large = (each.clusters.of_return for each in geometry.others)
    pairs = set(zip(small[small > 0].tolist(), large[small > 0].tolist(), strict=True))
    assert len(pairs) == len({one for one, _ in pairs})


def test_a_ring_that_saw_nothing_parts_no_thing():
    # Its upper half stands higher than what would reach down to the ground.
    world = World((Thing(20, 0, width=1.8, height=2.6),), rings=64, columns=900)
    seen = capture(world)
    wanted = corners_in(ahead(), world, world.things[0])
    on = (
        (np.abs(seen.points[:, 0] - 20) < 1.5)
        & (np.abs(seen.points[:, 1]) < 1.2)
        & (seen.points[:, 2] > -1.7)
    )
    # This ring sees the road beside the thing, too, so that it is a row of the range image.
    dark = on & (seen.ring == 12)
    assert dark.any()
    seen = replace(seen, points=seen.points[~dark], ring=seen.ring[~dark])

    def best(**changes):
        geometry = extract_geometry(seen, CopgConfig(reach_m=(), **changes))
        edges = propose(seen, CopgConfig(reach_m=(), **changes), geometry).boxes.edges
        return float(iou(wanted[None], edges).max())

    assert best() > 0.8
    assert best(reach_rows=1) < 0.7
    assert CopgConfig.angle().reach_rows == CopgConfig.reference().reach_rows == 1


def test_united_proposals_find_what_is_planted_and_keep_one_box_of_each():
    found = propose(capture(WORLD))
    wanted = np.stack([corners_in(ahead(), WORLD, thing) for thing in THINGS])
    overlaps = iou(wanted, found.boxes.edges[found.final])
    assert (overlaps.max(1) > 0.6).all()
    assert len(found) < 2 * len(THINGS)
    table = iou(found.boxes.edges[found.final], found.boxes.edges[found.final])
    assert (table - np.eye(len(table)) <= CopgConfig().duplicate_iou).all()
    assert set(found.boxes.hypothesis.tolist()) == {0, 1, 2}


def test_a_road_that_rises_is_followed():
    rng = np.random.default_rng(0)
    up, around = np.meshgrid(
        np.radians(np.linspace(1, -24, 64)), np.radians(np.arange(0, 360, 0.4)), indexing="ij"
    )
    # Level for 15 m, then a slope of 3 %: a plane over all of it leaves returns of the road far above it, or below.
    points = []
    for elevation, azimuth in zip(up.ravel(), around.ravel(), strict=True):
        slope = np.tan(elevation)
        away = -1.8 / slope if slope < 0 else np.inf
        if away > 15:
            away = (-1.8 - 0.03 * 15) / (slope - 0.03) if slope < 0.03 else np.inf
        if 0 < away < 60:
            points.append([away * np.cos(azimuth), away * np.sin(azimuth), away * slope])
    points = np.array(points) + rng.normal(0, 0.005, (len(points), 3))
    held = validate_lidar_points(points)
    checked = check(held, min_range_m=2.0)
    grid = assign_grid_cells(held, checked, rows=64, columns=900)
    plane = find_ground(held, checked, within_m=0.15)
    followed = follow_ground(plane, checked, grid.column, grid.ranges, grid.columns, within_m=0.15)
    away = np.hypot(held[:, 0], held[:, 1])
    far = (away > 24) & (away < 34)
    assert plane.removed[far].mean() < 0.5
    assert followed.removed[far].mean() > 0.95
    assert np.abs(followed.heights[far]).mean() < 0.1


def test_ground_that_is_not_there_is_given_back():
    held = np.array([[5.0, 0, 1], [6, 0, 1], [7, 1, 1]], np.float32)
    checked = check(held)
    none = find_ground(held, checked)
    assert none.plane is None
    assert (
        follow_ground(none, checked, np.zeros(3, np.int32), np.ones(3, np.float32), 8, within_m=0.1) is none
    )


def test_the_ground_does_not_climb_onto_a_low_thing():
    world = World((Thing(12, 0, length=3.0, width=3.0, height=0.4),), rings=64, columns=900)
    found = propose(capture(world))
    wanted = corners_in(ahead(), world, world.things[0])
    assert iou([wanted], found.boxes.edges[found.final]).max() > 0.6


@pytest.mark.parametrize("turn", [0.0, 0.3, 1.0, -0.7])
def test_a_cuboid_is_that_of_the_two_sides_that_are_seen(turn):
    rng = np.random.default_rng(1)
    length, width, height = 4.0, 1.8, 1.5
    along = np.column_stack([rng.uniform(-2, 2, 300), np.full(300, -0.9), rng.uniform(0, height, 300)])
    across = np.column_stack([np.full(120, -2.0), rng.uniform(-0.9, 0.9, 120), rng.uniform(0, height, 120)])
    local = np.concatenate([along, across]) + rng.normal(0, 0.01, (420, 3))
    cos, sin = np.cos(turn), np.sin(turn)
    points = (local @ np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]]) + [15, 3, -1.7]).astype(np.float32)
    found = fit_cuboids(points, np.ones(420, np.int32), np.array([1]))
    np.testing.assert_allclose(found.sizes[0], [length, width, height], atol=0.2)
    np.testing.assert_allclose(found.centres[0], [15, 3, -1.7 + height / 2], atol=0.2)
    # Which end is the front is not known: angles are equal but for half a turn.
    apart = (found.yaw[0] - turn + np.pi / 2) % np.pi - np.pi / 2
    assert abs(apart) <= np.radians(4)


def test_cuboids_stand_on_the_ground_and_nothing_is_thinner_than_its_least():
    seen = capture(WORLD)
    found = propose(seen)
    rows = build_proposal_rows(found, "a", 0)
    assert rows.select(CUBOID).null_count().sum_horizontal().item() == 0
    bottom = (rows["z_m"] - rows["height_m"] / 2).to_numpy()
    plane = found.geometry.ground.plane
    below = -(plane[0] * rows["x_m"].to_numpy() + plane[1] * rows["y_m"].to_numpy() + plane[3]) / plane[2]
    np.testing.assert_allclose(bottom, below, atol=0.1)
    assert (rows["length_m"] >= rows["width_m"]).all()
    lone = fit_cuboids(np.array([[5.0, 1, 0]], np.float32), np.ones(1, np.int32), np.array([1]))
    assert (lone.sizes == 0.05).all()
    assert len(fit_cuboids(np.zeros((0, 3), np.float32), np.zeros(0, np.int32), np.zeros(0, np.int64))) == 0


def test_trees_say_what_a_walk_through_them_says():
    rng = np.random.default_rng(0)
    trees = Trees(0.3, rng.integers(0, 11, (7, 7)), rng.normal(size=(7, 7)), rng.normal(size=(7, 8)))
    rows = rng.normal(size=(50, 11))
    bundled = load_trees()

    def walk(row):
        total = 0.3
        for feature, limit, value in zip(trees.feature, trees.threshold, trees.value, strict=True):
            node = 0
            while node < 7:
                node = 2 * node + (1 if row[feature[node]] <= limit[node] else 2)
            total += value[node - 7]
        return total

    np.testing.assert_allclose(trees.predict(rows), [walk(row) for row in rows])
    assert {name: len(each.feature) for name, each in bundled.items()} == {"score": 100} | dict.fromkeys(
        EDGES, 60
    )
    assert bundled["score"].predict(np.zeros((0, len(FEATURES)))).shape == (0,)


STUMP = {"base": 0.0, "feature": [[0]], "threshold": [[1.0]], "value": [[0.0, 1.0]]}
SOUND = {"features": FEATURES, "trees": dict.fromkeys(("score", *EDGES), STUMP)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": ["x"]}, "expected trees about"),
        ({"trees": SOUND["trees"] | {"score": STUMP | {"value": [[0.0, 1.0, 2.0]]}}}, "complete trees"),
        ({"trees": SOUND["trees"] | {"score": STUMP | {"feature": [[17]]}}}, "features 0 to 16 in score"),
        # How boxes agree is not known while each is completed by itself.
        ({"trees": SOUND["trees"] | {"left": STUMP | {"feature": [[15]]}}}, "features 0 to 14 in left"),
        ({"trees": SOUND["trees"] | {"score": STUMP | {"base": None}}}, "expected a ranking's trees"),
        ({"trees": {"score": STUMP}}, "expected trees of score, left"),
        ({"trees": []}, "expected a ranking's trees"),
    ],
)
def test_other_trees_are_refused(change, words):
    assert {each.depth for each in parse_trees(json.dumps(SOUND).encode()).values()} == {1}
    with pytest.raises(InputError, match=words):
        parse_trees(json.dumps(SOUND | change).encode())
    with pytest.raises(InputError, match="expected a ranking's trees"):
        parse_trees(b"{")


def test_edges_move_by_no_more_than_a_beam_and_stay_in_the_image():
    edges = np.array([[100.0, 50, 140, 90], [1, 1, 639, 479], [10, 10, 11, 40]])
    beams = np.array([[4.0, 8, 4, 8], [4, 8, 4, 8], [4, 8, 4, 8]])
    ones = np.ones(3, np.int32)
    boxes = Boxes(np.arange(1, 4), edges, ones, ones, np.zeros(3, np.int64), beams)
    moves = np.array([[-0.5, -3, 0.25, 0], [-1, -1, 1, 1], [0.5, 0, -0.5, 0]])
    found = move_edges(boxes, moves, (640, 480)).edges
    # The second is cut to the image; the third would be turned inside out, and stays.
    np.testing.assert_allclose(found, [[98, 42, 141, 90], [0, 0, 640, 480], [10, 10, 11, 40]])


@pytest.mark.parametrize(("rings", "columns"), [(64, 1800), (24, 450)])
def test_completion_costs_upright_blocks_little(rings, columns):
    """Half a beam is right for blocks; what was learnt of things that taper must not be far from it."""
    rng = np.random.default_rng(3)
    plain, completed = [], []
    for _ in range(6):
        things = tuple(
            Thing(
                float(rng.uniform(9, 22)),
                float(left + rng.uniform(-1, 1)),
                length=float(rng.uniform(0.4, 1.5)),
                width=float(rng.uniform(0.5, 1.8)),
                height=float(rng.uniform(0.8, 1.8)),
            )
            for left in (-5.0, 0.0, 5.0)
        )
        world = World(things, rings=rings, columns=columns, noise_m=0.01)
        seen, wanted = capture(world), [corners_in(ahead(), world, thing) for thing in things]
        for completion, told in (("none", plain), ("learnt", completed)):
            found = propose(seen, CopgConfig(completion=completion, duplicate_iou=1.0, most=None))
            told += iou(wanted, found.boxes.edges).max(axis=1).tolist()
    assert np.mean(completed) > np.mean(plain) - 0.07
    assert np.mean(completed) > 0.78


def test_completion_moves_each_box_by_itself():
    seen = capture(WORLD)
    config = CopgConfig()
    geometry = extract_geometry(seen, config)
    boxes = project_hypotheses(geometry, seen, config)
    cuboids = fit_proposal_cuboids(geometry, boxes, config)
    whole = complete_boxes(geometry, boxes, cuboids, config, size=(640, 480))
    assert (whole.edges != boxes.edges).any()
    assert (np.abs(whole.edges - boxes.edges) <= boxes.beams + 1e-9).all()
    some = np.arange(len(boxes)) % 3 == 1
    part = Boxes(**{name: values[some] for name, values in vars(boxes).items()})
    solid = Cuboids(**{name: values[some] for name, values in vars(cuboids).items()})
    alone = complete_boxes(geometry, part, solid, config, size=(640, 480))
    np.testing.assert_array_equal(alone.edges, whole.edges[some])
    assert complete_boxes(geometry, boxes, cuboids, CopgConfig.angle(), size=(640, 480)) is boxes


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 1.0), st.integers(1, 12) | st.none())
@tried(60)
def test_selection_is_that_of_a_plain_loop(seed, most_iou, most):
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 50, (rng.integers(0, 20), 2))
    edges = np.column_stack([low, low + rng.uniform(1, 40, low.shape)])
    scores, allowed = rng.integers(0, 5, len(edges)) / 5, rng.random(len(edges)) < 0.8
    kept: list[int] = []
    for place in sorted(np.flatnonzero(allowed), key=lambda n: (-scores[n], n)):
        if most is not None and len(kept) == most:
            break
        if most_iou >= 1 or all(iou([edges[place]], [edges[n]])[0, 0] <= most_iou for n in kept):
            kept.append(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "roadaware.corner_cases.cuboids.PAIRS", int(rng.integers(1, 400))
        )  # rows at a time: 1 to all
        found = select_best_boxes(edges, scores, allowed, duplicate_iou=most_iou, most=most)
    assert sorted(kept) == np.flatnonzero(found).tolist()


def test_many_boxes_need_little_memory():
    # A sweep of rain has thousands of boxes; all their pairs are hundreds of MiB.
    rng = np.random.default_rng(0)
    low = rng.uniform(0, 600, (2000, 2))
    edges = np.column_stack([low, low + 4])
    tracemalloc.start()
    try:
        kept = select_best_boxes(edges, rng.random(2000), edges[:, 0] > 0, duplicate_iou=0.6, most=None)
        shape = rng.random((2000, len(SHAPE)))
        none = np.zeros(2000, dtype=np.int32)
        boxes = Boxes(np.arange(2000), edges, none, none, rng.integers(0, 3, 2000), np.ones((2000, 4)))
        rows = build_features(shape, boxes, hypotheses=3)
        scores = load_trees()["score"].predict(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20
    assert kept.sum() > 1500
    mine = boxes.hypothesis == 1
    overlaps = np.stack([iou(edges, edges[boxes.hypothesis == n]).max(axis=1) for n in (0, 2)])
    np.testing.assert_array_equal(rows[mine, -2], overlaps.mean(axis=0)[mine])
    np.testing.assert_array_equal(rows[mine, -1], overlaps.min(axis=0)[mine])
    np.testing.assert_array_equal(scores[::7], load_trees()["score"].predict(rows[::7]))


def test_masks_and_detections_lower_a_score_and_drop_nothing():
    plain = capture(WORLD)
    first, second = (corners_in(plain.camera, WORLD, thing) for thing in THINGS[1:3])
    classes = np.full((480, 640), 13, np.uint8)
    x1, y1, x2, y2 = first.astype(int)
    classes[y1:y2, x1:x2] = 8
    seen = replace(plain, semantics=SemanticMap(classes), common=CommonObjects(second[None], np.array([0.9])))
    blind, found = propose(plain), propose(seen)
    for wanted in (first, second):
        before, after = (each.scores[iou([wanted], each.boxes.edges)[0].argmax()] for each in (blind, found))
        assert after < 0.3 * before
    assert len(found) == len(blind)
    scores = np.array([0.5, 0.5, -1.0, 3.0])
    np.testing.assert_allclose(apply_image_cues(scores, None, None), [0.5, 0.5, 1e-4, 1.0])
    cued = apply_image_cues(scores, np.array([0.0, 1.0, 0, 0]), np.array([0.0, 0.5, 0, 1]))
    np.testing.assert_allclose(cued, [0.5, 0.5 * np.sqrt(0.02) * 0.25, 1e-4, 0.0])


def test_the_most_are_kept_and_the_rest_is_told():
    seen = capture(WORLD)
    found = propose(seen, CopgConfig(most=2))
    assert len(found) == 2
    rows = build_dropped_rows(found, "a", 0)
    assert set(rows["hypothesis"]) == {0, 1, 2}
    steps = dict(rows["step"].value_counts().iter_rows())
    assert steps["copy"] >= 2
    assert steps["beyond the most"] >= 2
    kept = sum(int((each.limited == 0).sum()) for each in found.geometry.hypotheses)
    seen_rows = rows.filter(pl.col("step").is_in(["copy", "beyond the most", "not in the image"]))
    assert len(seen_rows) == kept - 2


def test_no_ground_no_return_and_one_ring_are_no_error():
    camera = Camera(np.array([[400.0, 0, 320], [0, 400, 240], [0, 0, 1]]), ahead().camera_SE3_lidar, 640, 480)
    for points in (np.zeros((0, 3), np.float32), np.full((5, 3), 7, np.float32)):
        assert len(propose(Capture(points, camera))) == 0
    high = capture(WORLD)
    found = propose(high, CopgConfig(ground_share=1.0))
    assert found.geometry.ground.plane is None
    assert np.isfinite(found.scores).all()


def test_saved_configurations_of_earlier_versions_are_the_angle():
    saved = to_dict(CopgConfig.angle(theta_deg=10.0))
    new = ("local_ground_m", "reach_m", "duplicate_iou", "ranking", "most", "completion")
    old = {name: value for name, value in saved.items() if name not in new}
    assert open_saved_config(old) == CopgConfig.angle(theta_deg=10.0)
    # `--set min_points=1e1` is saved as what is opened again.
    assert open_saved_config(to_dict(CopgConfig(min_points=1e1))) == CopgConfig(min_points=10)
    assert (
        from_dict(CopgConfig, to_dict(CopgConfig()))
        == CopgConfig()
        == open_saved_config(to_dict(CopgConfig()))
    )
    assert digest(CopgConfig()) != digest(CopgConfig.angle())


@pytest.mark.parametrize(
    "change",
    [
        {"reach_m": (1.0, 0.5)},
        {"reach_m": (0.0,)},
        {"reach_m": 0.5},
        {"reach_m": tuple(float(n) for n in range(1, 11))},
        {"ranking": "best"},
        {"completion": "all"},
        {"most": 0},
        {"duplicate_iou": 1.5},
        {"local_ground_m": -1.0},
    ],
)
def test_parameters_out_of_range_are_refused(change):
    with pytest.raises(UsageError):
        CopgConfig(**change)


def test_values_of_clusters_are_those_of_each_way():
    seen = capture(WORLD)
    config = CopgConfig()
    geometry = extract_geometry(seen, config)
    boxes = project_hypotheses(geometry, seen, config)
    counts = select_cluster_values(geometry, boxes, "counts")
    for place in range(len(boxes)):
        own = geometry.hypotheses[boxes.hypothesis[place]].clusters
        assert counts[place] == (own.of_return == boxes.cluster[place]).sum()
    cuboids = fit_proposal_cuboids(geometry, boxes, config)
    boxes = complete_boxes(geometry, boxes, cuboids, config, size=(640, 480))
    found = build_proposals(geometry, boxes, cuboids, None, None, config, size=(640, 480))
    assert (found.final == propose(seen, config).final).all()
