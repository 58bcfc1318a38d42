"""Bodies: as large as they should be, whole, the same for the same look, and told as they are drawn."""

import numpy as np
import pytest
from people_cast import MACHINES, SIZES, person

from roadaware.simulator.actors import Pose
from roadaware.simulator.mesh import Semantic
from roadaware.simulator.people import (
    PEOPLE_MODELS,
    build_body_mesh,
    compute_joints,
    describe_appearance,
    height_m,
)
from roadaware.simulator.people.bodies import build_carried_item, get_looks
from roadaware.simulator.people.clothes import build_clothed_body

HOLDING = (
    Pose.FILM, Pose.THROW, Pose.HOLD_FLAG, Pose.HOLD_SIGN, Pose.PHONE, Pose.THREATEN, Pose.AIM, Pose.SPRAY,
    Pose.PAINT, Pose.DRUM, Pose.TRUMPET, Pose.STRUM, Pose.MICROPHONE, Pose.RAISE_CAN,
)  # fmt: skip
LOOKS = range(20, 32)


@pytest.mark.slow
@pytest.mark.parametrize("model", SIZES)
def test_somebody_who_stands_fills_their_size(model):
    for look in LOOKS:
        actor = person(model, look=look)
        points = build_body_mesh(actor, 0).vertices
        length, width, height = SIZES[model]
        assert points[:, 2].min() == pytest.approx(0.0, abs=0.02)
        assert points[:, 2].max() == pytest.approx(height, abs=0.06 * height)
        assert np.ptp(points[:, 1]) == pytest.approx(width, abs=0.2)
        assert np.ptp(points[:, 0]) < length
        strides = [
            build_body_mesh(person(model, Pose.WALK, look=look, speed=1.4), frame).vertices
            for frame in (0, 12)
        ]
        assert max(np.ptp(step[:, 0]) for step in strides) == pytest.approx(length, abs=0.14)


@pytest.mark.parametrize("model", MACHINES)
def test_riders_stay_below_the_height_of_their_size(model):
    for look in LOOKS:
        rider = person(model, Pose.RIDE, look=look, speed=4.0)
        assert -0.2 < build_body_mesh(rider, 0).vertices[:, 2].max() - MACHINES[model][1][2] < 0.02


def test_every_vertex_is_near_a_joint_and_joints_lie_in_the_bounds():
    for pose in (*Pose, Pose.RIDE):
        for frame in range(0, 24, 7):
            actor = person(pose=pose, look=3)
            points, bones = build_body_mesh(actor, frame).vertices, compute_joints(actor, frame)
            low, high = points.min(0) - 0.03, points.max(0) + 0.03
            assert ((bones > low) & (bones < high)).all(), pose
            if pose not in HOLDING:
                away = np.linalg.norm(points[:, None] - bones, axis=2).min(1)
                assert away.max() < 0.4, pose


@pytest.mark.parametrize("pose", Pose)
def test_feet_are_on_the_ground_and_nothing_is_far_below_it(pose):
    for model in ("child", "adult_a", "senior"):
        actor = person(model, pose, look=26)
        low = [build_body_mesh(actor, frame).vertices[:, 2].min() for frame in range(0, 24, 2)]
        assert min(low) > -0.05
        assert max(low) < 0.06


def test_the_same_look_gives_the_same_body_and_others_differ():
    meshes = [build_body_mesh(person("adult_b", Pose.WALK, look=look), 5) for look in (7, 7, 8)]
    assert all(np.array_equal(getattr(meshes[0], name), getattr(meshes[1], name)) for name in vars(meshes[0]))
    assert not np.array_equal(meshes[0].colour, meshes[2].colour)


def test_a_mesh_is_whole():
    for model in (*SIZES, *MACHINES):
        for coarse in (False, True):
            mesh = build_body_mesh(person(model, Pose.WALK), 2, coarse)
            count = len(mesh.triangles)
            assert mesh.vertices.dtype == mesh.colour.dtype == mesh.uv.dtype == np.float32
            assert mesh.triangles.dtype == np.int32
            assert mesh.triangles.max() < len(mesh.vertices)
            assert mesh.colour.shape == (count, 3)
            assert mesh.uv.shape == (count, 3, 2)
            assert {len(mesh.material), len(mesh.semantic), len(mesh.glow)} == {count}
            assert mesh.colour.min() >= 0
            assert mesh.colour.max() <= 1
            expected = Semantic.RIDER if model in MACHINES else Semantic.PERSON
            assert (mesh.semantic == expected).all()


@pytest.mark.slow
def test_few_triangles_do_and_fewer_from_far_away():
    for look in LOOKS:
        for model in (*SIZES, *MACHINES):
            for pose in (Pose.STAND, Pose.HOLD_FLAG):
                actor = person(model, pose, look=look)
                fine, coarse = build_body_mesh(actor, 0), build_body_mesh(actor, 0, coarse=True)
                assert 250 < len(fine.triangles) < 600
                assert len(coarse.triangles) < (112 if pose in HOLDING else 104)


@pytest.mark.parametrize("pose", Pose)
def test_from_far_away_somebody_is_as_large_as_from_near(pose):
    for look in (4, 9):
        actor = person("adult_c", pose, look=look)
        fine, coarse = (build_body_mesh(actor, 6, coarse=far).vertices for far in (False, True))
        assert coarse.min(0) == pytest.approx(fine.min(0), abs=0.16)
        assert coarse.max(0) == pytest.approx(fine.max(0), abs=0.16)


def outward(piece):
    corners = piece.points[piece.triangles]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return float((corners[:, 0] * normal).sum()), normal


@pytest.mark.slow
@pytest.mark.parametrize("coarse", [False, True])
def test_surfaces_face_outwards(coarse):
    for model in SIZES:
        for look in LOOKS:
            looks = get_looks(person(model, look=look))
            for piece in build_clothed_body(looks.body, looks.outfit, coarse):
                middle = piece.points.mean(0)
                _, normal = outward(piece)
                towards = ((piece.points[piece.triangles].mean(1) - middle) * normal).sum(1)
                # An eye is a face of its own; everything else closes round its middle.
                assert towards.sum() >= -1e-9
                assert (normal[:, 0] > 0).all() if len(piece.triangles) == 2 else (towards > 0).mean() > 0.85


def test_things_in_hands_face_outwards():
    looks = get_looks(person())
    items = (
        "phone",
        "screen",
        "flag",
        "sign",
        "stone",
        "flare",
        "umbrella",
        "stick",
        "shopping",
        "gun",
        "can",
    )
    for item in (*items, "brush", "drum", "trumpet", "guitar", "microphone"):
        for coarse in (False, True):
            for piece in build_carried_item(item, looks.body, looks.outfit, coarse):
                middle, (_, normal) = piece.points.mean(0), outward(piece)
                towards = ((piece.points[piece.triangles].mean(1) - middle) * normal).sum(1)
                assert (towards > -1e-9).all(), item


def test_the_face_is_on_the_side_of_the_nose():
    for look in LOOKS:
        actor = person(look=look)
        mesh, nose = build_body_mesh(actor, 0), compute_joints(actor, 0)[0]
        above = mesh.vertices[mesh.vertices[:, 2] > nose[2] - 0.05]
        tip = above[np.abs(above[:, 2] - nose[2]) < 0.02]
        assert tip[:, 0].max() >= nose[0] - 0.01


def test_a_stone_leaves_the_hand():
    actor = person(pose=Pose.THROW)
    reach = [build_body_mesh(actor, frame) for frame in (2, 20)]
    grips = [compute_joints(actor, frame)[10] for frame in (2, 20)]
    stones = [mesh.vertices[-15:] for mesh in reach]
    assert np.ptp(stones[0], axis=0).min() > 0.05
    assert np.ptp(stones[1], axis=0).max() == 0.0
    assert all(np.linalg.norm(s.mean(0) - g) < 0.2 for s, g in zip(stones, grips, strict=True))


def test_rain_and_flares_are_facts():
    ones = np.ones(24, dtype=np.int8)
    tall = build_body_mesh(person(pose=Pose.WALK, facts={"umbrella": ones}), 0).vertices
    assert tall[:, 2].max() > 1.9
    assert np.ptp(tall[:, 1]) > 1.0
    assert build_body_mesh(person(facts={"flare": ones}), 0).glow.max() > 0
    assert build_body_mesh(person(), 0).glow.max() == 0


def test_what_is_told_is_what_is_drawn():
    ones = np.ones(24, dtype=np.int8)
    assert describe_appearance(person(pose=Pose.HOLD_SIGN), 0)["holds"] == "a sign"
    assert describe_appearance(person(pose=Pose.WALK, facts={"umbrella": ones}), 0)["holds"] == "an umbrella"
    assert describe_appearance(person("senior", gaze=-0.8), 0) | {
        "age": "senior",
        "looks": "right",
    } == describe_appearance(person("senior", gaze=-0.8), 0)
    assert describe_appearance(person("bicycle", Pose.RIDE), 0)["pose"] == "ride"
    assert describe_appearance(person(), 99) == {}
    told = [describe_appearance(person("adult_b", look=look), 0) for look in range(60)]
    assert {"a long coat", "a T-shirt", "a hoodie", "a dress"} <= {row["top"] for row in told}
    assert {"trousers", "a skirt", "shorts"} <= {row.get("bottom") for row in told}
    assert {"a backpack", "a handbag"} <= {row.get("bag") for row in told}


def test_models_have_heights_of_their_own():
    heights = {model.name: model.size_m[2] for model in PEOPLE_MODELS}
    assert heights["child"] < heights["young"] < heights["adult_a"]
    assert heights == {name: height_m(person(name)) for name in heights}
    assert sum(model.weight for model in PEOPLE_MODELS) == pytest.approx(1.0)
    assert 1.6 < height_m(person("bicycle", Pose.RIDE)) < 1.9
