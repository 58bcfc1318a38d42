"""Proposals: planted things are found where they stand, and each step removes what it should."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import HEIGHT_M, Thing, World, ahead, capture, corners_in, sweep

from example_counts import tried
from roadaware.config import digest, from_dict, to_dict
from roadaware.corner_cases import copg
from roadaware.corner_cases.captures import Camera, Capture, CommonObjects, SemanticMap
from roadaware.corner_cases.config import BACKGROUND, CopgConfig
from roadaware.corner_cases.copg import REASONS, check_cluster_limits
from roadaware.corner_cases.ground import check, validate_lidar_points
from roadaware.corner_cases.proposal_tables import build_proposal_rows, merge_proposal_rows
from roadaware.errors import InputError, UsageError
from roadaware.geometry.boxes import iou

THINGS = (
    Thing(10, 2.5, height=0.8),
    Thing(14, -3, width=2.0, height=1.4),
    Thing(20, 6, width=2.5, height=2.0),
    Thing(9, -1, length=0.5, width=0.6, height=0.5),
    Thing(25, -8, width=4.0, height=2.5),
)
WORLD = World(THINGS, rings=64, columns=900, noise_m=0.01)


def propose(seen, config=None, geometry=None):
    """Proposals of the angle alone; the united ways to cluster stand in test_united.py."""
    return copg.propose(seen, config or CopgConfig.angle(), geometry)


def extract_geometry(seen):
    return copg.extract_geometry(seen, CopgConfig.angle())


def best(proposals, world=WORLD):
    """(t,) how well each planted thing is covered by a final proposal."""
    wanted = np.stack([corners_in(ahead(), world, thing) for thing in world.things])
    return iou(wanted, proposals.boxes.edges[proposals.final]).max(1)


@pytest.mark.parametrize("tilt", [0.0, 6.0, -2.0])
@pytest.mark.parametrize("ringed", [True, False])
def test_planted_things_are_proposed(tilt, ringed):
    world = replace(WORLD, tilt_deg=tilt)
    found = propose(capture(world, ringed=ringed))
    assert len(found) == len(THINGS)
    assert (best(found, world) > 0.8).all()
    assert ((found.scores > 0) & (found.scores <= 1)).all()


def test_the_order_of_returns_does_not_matter_where_rings_are_known():
    plain = capture(WORLD)
    mixed = np.random.default_rng(0).permutation(len(plain.points))
    other = replace(plain, points=plain.points[mixed], ring=plain.ring[mixed])
    one, same = (propose(each) for each in (plain, other))
    order = [np.lexsort(each.boxes.edges.T) for each in (one, same)]
    # The ground is judged by a sample of the returns, which is another one.
    np.testing.assert_allclose(one.boxes.edges[order[0]], same.boxes.edges[order[1]], atol=1.0)
    unknown = propose(replace(other, ring=None))
    assert (best(unknown) > 0.5).all()


def test_turning_lidar_and_camera_together_changes_nothing():
    plain = capture(WORLD)
    angle = 2 * np.pi * 250 / 900
    turn = np.eye(4)
    turn[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    camera = replace(plain.camera, camera_SE3_lidar=plain.camera.camera_SE3_lidar @ turn.T)
    other = replace(plain, points=(plain.points @ turn[:3, :3].T).astype(np.float32), camera=camera)
    one, same = (propose(each).boxes.edges for each in (plain, other))
    np.testing.assert_allclose(one[np.lexsort(one.T)], same[np.lexsort(same.T)], atol=0.1)


def test_every_knob_of_size_and_distance():
    found = extract_geometry(capture(WORLD)).clusters
    assert (check_cluster_limits(found) == 0).all()
    few = check_cluster_limits(found, min_points=int(found.counts.max()))
    assert [REASONS[each] for each in np.unique(few)] == ["kept", "few returns"]
    assert set(check_cluster_limits(found, max_distance_m=12)) == {0, 2}
    assert set(check_cluster_limits(found, max_width_m=3)) == {0, 3}
    assert set(check_cluster_limits(found, max_height_m=1.0)) == {0, 4}
    assert set(check_cluster_limits(found, min_height_m=0.6)) == {0, 5}


def test_background_is_removed_and_common_objects_suppressed():
    plain = capture(WORLD)
    places = [corners_in(plain.camera, WORLD, thing) for thing in THINGS]
    classes = np.full((480, 640), 13, np.uint8)
    x1, y1, x2, y2 = places[1].astype(int)
    classes[y1:y2, x1 : x1 + round(0.6 * (x2 - x1))] = 8
    common = CommonObjects(np.stack([places[2], places[4]]), np.array([0.9, 0.2]))
    seen = replace(plain, semantics=SemanticMap(classes), common=common)
    found = propose(seen, CopgConfig.angle(min_common_score=0.5, background_by="box"))
    assert len(found.boxes) == 5
    assert int(found.intermediate.sum()) == 4
    assert len(found) == 3
    gone = found.boxes.edges[~found.intermediate]
    assert iou(gone, [places[1]])[0, 0] > 0.8
    assert found.background[~found.intermediate][0] == pytest.approx(0.6, abs=0.06)
    common_one = found.intermediate & ~found.final
    assert found.overlap[common_one][0] > 0.8
    lenient = propose(seen, CopgConfig.angle(max_background=0.9, max_common_iou=1.0, background_by="box"))
    assert len(lenient) == 5
    strict = propose(seen, CopgConfig.angle(max_background=0.9, background_by="box"))
    assert len(strict) == 3
    assert (found.scores[found.final] == propose(plain).scores[found.final]).all()
    assert found.scores[common_one][0] < propose(plain).scores[common_one][0]


def test_returns_tell_a_thing_from_the_road_around_it():
    plain = capture(WORLD)
    initial = propose(plain)
    place = corners_in(plain.camera, WORLD, THINGS[0])
    number = int(iou([place], initial.boxes.edges)[0].argmax())
    way, lens = plain.camera.camera_SE3_lidar, plain.camera.intrinsics
    mine = initial.geometry.clusters.of_return == initial.boxes.cluster[number]
    seen = initial.geometry.points[mine].astype(float) @ way[:3, :3].T @ lens.T
    pixels = (seen[:, :2] / seen[:, 2:]).astype(int)
    classes = np.zeros((480, 640), np.uint8)
    classes[pixels[:, 1], pixels[:, 0]] = 13
    shown = replace(plain, semantics=SemanticMap(classes))
    by_box, by_returns = (propose(shown, CopgConfig.angle(background_by=each)) for each in ("box", "returns"))
    assert by_box.background[number] > 0.45
    assert by_returns.background[number] == 0
    assert by_returns.intermediate.tolist() == [n == number for n in range(len(initial.boxes))]
    assert not by_box.intermediate.any()


def test_a_map_of_another_size_or_without_background_is_refused():
    seen = capture(WORLD)
    with pytest.raises(InputError, match=r"has 10x20 pixels, the image 640x480"):
        propose(replace(seen, semantics=SemanticMap(np.zeros((20, 10), np.uint8))))
    with pytest.raises(InputError, match="no class of the map is background"):
        propose(replace(seen, semantics=SemanticMap(np.zeros((480, 640), np.uint8), ("car", "dog"))))
    with pytest.raises(InputError, match="whole numbers"):
        SemanticMap(np.zeros((4, 4)))
    with pytest.raises(InputError, match="boxes are"):
        CommonObjects(np.zeros((2, 4)), np.zeros(3))


def test_one_geometry_serves_all_cameras():
    seen = capture(WORLD)
    found = extract_geometry(seen)
    behind = seen.camera.camera_SE3_lidar @ np.diag([-1.0, -1, 1, 1])
    other = replace(seen, camera=Camera(seen.camera.intrinsics, behind, 640, 480))
    assert len(propose(other, geometry=found)) == 0
    one, same = propose(seen, geometry=found), propose(seen)
    assert one.geometry is found
    np.testing.assert_array_equal(one.boxes.edges, same.boxes.edges)


def test_feet_are_not_cut_off_by_the_ground():
    low = World((Thing(10, 0, width=1.5, height=0.4),), rings=64, columns=900, noise_m=0.01)
    standing, cut = (propose(capture(low), CopgConfig.angle(standing_m=m, margin_px=0.0)) for m in (1.0, 0.0))
    assert best(standing, low)[0] > best(cut, low)[0] + 0.15


EMPTY = np.zeros((0, 3), np.float32)
STRANGE = np.array([np.nan, np.inf, -np.inf, 1e38, -1e38, 0.0, 1e-40, 2.0, 9999.0])
KINDS = [0.0, 1e-3, 1.0, 1.0, 1.0, 1e4]
RINGS = [None, None, (0, 1), (0, 32), (-3, 40), (0, 10**6)]


@pytest.mark.parametrize(
    "points",
    [EMPTY, np.full((40, 3), np.nan), np.zeros((500, 4)), np.tile([[7.0, 1, -1, 0.5]], (300, 1))],
    ids=["no returns", "nan", "at the origin", "all equal"],
)
def test_scans_of_nothing_give_no_proposals(points):
    found = propose(Capture(points, ahead()))
    assert len(found) <= 1
    assert found.geometry.ground.plane is None
    assert found.geometry.ground.reason
    assert len(merge_proposal_rows([build_proposal_rows(found, "v", 0)]).boxes) == len(found)


def test_one_ring_is_enough():
    points, ring, met = sweep(World((Thing(10, 0),), rings=64, columns=900))
    only = ring == 20
    assert met[only].any()
    found = propose(Capture(points[only], ahead(), ring=ring[only], layout="64 rings x 900 columns"))
    assert (found.geometry.grid.shape, len(found.boxes) <= 1) == ((1, 900), True)


def test_bad_returns_are_counted_and_change_nothing():
    plain = capture(WORLD)
    bad = np.array([[np.nan, 0, 0], [np.inf, 1, 1], [1e38, 0, 0], [0, 0, 0], [0.3, 0.2, 0.1]], np.float32)
    points, ring = np.concatenate([plain.points, bad]), np.concatenate([plain.ring, np.full(5, 3, np.int32)])
    found = propose(replace(plain, points=points, ring=ring))
    counts = found.geometry.checked.counts
    assert counts == {
        "usable": len(plain.points),
        "not finite": 2,
        "at the origin": 1,
        "of the own vehicle": 1,
        "beyond 10 km": 1,
    }
    np.testing.assert_allclose(best(found), best(propose(plain)), atol=0.05)


@tried(60)
@given(st.integers(0, 10**6), st.integers(0, 400), st.sampled_from(KINDS), st.sampled_from(RINGS))
def test_any_returns_give_proposals_or_an_error_of_ours(seed, count, kind, ringed):
    rng = np.random.default_rng(seed)
    points = rng.normal(0, 1, (count, 4)) * [15, 15, 1.5, 1] * kind
    strange = rng.random(points.shape) < rng.choice([0, 0.02, 0.5])
    points = np.where(strange, rng.choice(STRANGE, points.shape), points)
    ring = None if ringed is None else rng.integers(*ringed, count)
    layout = rng.choice(["HDL-64E", "8 rings x 30 columns", "nothing known"])
    size = int(rng.integers(1, 800))
    camera = Camera(
        np.array([[400.0, 0, size / 2], [0, 400, 1], [0, 0, 1]]), ahead().camera_SE3_lidar, size, 2
    )
    semantics = SemanticMap(rng.integers(0, 30, (2, size)))
    common = CommonObjects(rng.normal(0, 300, (3, 4)), rng.random(3))
    seen = Capture(points, camera, ring, str(layout), semantics, common)
    with contextlib.suppress(InputError):
        found = propose(
            seen, CopgConfig.angle(min_points=1, min_visible=1, theta_deg=float(rng.uniform(1, 80)))
        )
        edges = found.boxes.edges
        assert np.isfinite(edges).all()
        assert (edges >= 0).all()
        assert (edges <= [size, 2, size, 2]).all()
        assert (edges[:, :2] < edges[:, 2:]).all()
        assert ((found.scores >= 0) & (found.scores <= 1)).all()
        assert found.geometry.checked.usable.sum() >= (found.geometry.clusters.of_return > 0).sum()


@pytest.mark.parametrize("scale", [1000.0, 100.0, 0.001])
def test_other_units_are_refused(scale):
    points, _, _ = sweep(WORLD)
    with pytest.raises(InputError, match="no metres"):
        check(validate_lidar_points(points * scale))


def test_points_in_a_cameras_frame_are_refused():
    points, _, _ = sweep(WORLD)
    with pytest.raises(InputError, match="degrees above or below"):
        check(validate_lidar_points(points @ ahead().camera_SE3_lidar[:3, :3].T))


@pytest.mark.parametrize("points", [np.zeros(3), np.zeros((4, 2)), np.array([["a", "b", "c"]])])
def test_points_are_rows_of_three_numbers_or_more(points):
    with pytest.raises(InputError, match="points should be"):
        validate_lidar_points(points)


def test_intensity_is_not_needed():
    points, _, _ = sweep(WORLD)
    more = np.column_stack([points, np.full(len(points), np.nan)])
    np.testing.assert_array_equal(validate_lidar_points(more), points)


def test_proposals_are_predictions():
    found = propose(capture(WORLD))
    empty = propose(Capture(EMPTY, ahead()))
    predictions = merge_proposal_rows(
        [
            build_proposal_rows(found, "b", 4),
            build_proposal_rows(empty, "b", 5),
            build_proposal_rows(found, "a", 0, "initial"),
        ]
    )
    assert predictions.boxes["box"].to_list() == list(range(2 * len(found)))
    assert predictions.boxes["video"].unique(maintain_order=True).to_list() == ["b", "a"]
    first = predictions.boxes.head(len(found))
    assert first["score"].is_sorted(descending=True)
    assert first["background_share"].null_count() == len(found)
    assert (first["n_returns"] >= 5).all()
    nearest = min(np.hypot(t.x - t.length / 2, HEIGHT_M - t.height) for t in THINGS)
    assert first["distance_m"].min() == pytest.approx(nearest, abs=1.0)
    assert len(merge_proposal_rows([]).boxes) == 0


def test_the_defaults_are_those_of_the_paper():
    config = CopgConfig.angle()
    assert (config.theta_deg, config.max_distance_m) == (8.0, 50.0)
    assert (config.max_background, config.max_common_iou) == (0.45, 0.25)
    assert config.min_points in (5, 10)
    assert config.background == BACKGROUND
    published = CopgConfig.reference()
    knobs = ("theta_deg", "min_points", "max_distance_m", "max_background", "max_common_iou")
    assert [getattr(published, knob) for knob in knobs] == [getattr(config, knob) for knob in knobs]
    assert (published.background_by, published.reach_columns, published.standing_m) == ("box", 1, 0.0)
    assert from_dict(CopgConfig, to_dict(config)) == config
    assert digest(replace(config, theta_deg=4.0)) != digest(config)


@pytest.mark.parametrize(
    "knobs",
    [
        {"theta_deg": 0},
        {"max_background": 1.1},
        {"columns": 3},
        {"min_points": True},
        {"background_by": "colour"},
        {"background": (1,)},
    ],
)
def test_knobs_outside_their_range_are_refused(knobs):
    with pytest.raises(UsageError, match=next(iter(knobs))):
        CopgConfig.angle(**knobs)
