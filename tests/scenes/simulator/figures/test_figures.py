"""Figures fill their size, face outwards, show lamps where they are, and roll and steer as they move."""

from __future__ import annotations

import numpy as np
import pytest

from roadaware.errors import UsageError
from roadaware.simulator.actors import OBJECTS, VEHICLES, Actor, Lamp
from roadaware.simulator.figures import MODELS, build_actor_mesh, rotate_mesh_hue, sample_model_size
from roadaware.simulator.figures.form import rotate_hues, volume
from roadaware.simulator.figures.models import build_model_figure
from roadaware.simulator.mesh import Material, Mesh, Semantic
from roadaware.simulator.people.skeleton import machine_size, scale_saddle

LAMP_PLACES = {
    Lamp.LEFT: (1, 1),
    Lamp.RIGHT: (1, -1),
    Lamp.BRAKE: (0, -1),
    Lamp.REVERSE: (0, -1),
    Lamp.HEAD: (0, 1),
}
NAMED = [(kind, model) for kind, models in MODELS.items() for model in models]
MOTOR = [(kind, model) for kind, model in NAMED if kind in VEHICLES and kind != "Cyc"]
SEMANTIC = {
    "Car": Semantic.CAR,
    "Bus": Semantic.BUS,
    "LarVeh": Semantic.TRUCK,
    "Mobike": Semantic.MOTORCYCLE,
    "Cyc": Semantic.BICYCLE,
}


def an_actor(kind, model, *, size=None, look=5, lamps=0, path=None, gait=None, speed=None) -> Actor:
    path = np.zeros((6, 3)) if path is None else np.asarray(path, dtype=np.float64)
    n = len(path)
    ahead = np.gradient(path[:, :2], axis=0)
    moves = np.hypot(*ahead.T)
    heading = np.where(moves > 0, np.unwrap(np.arctan2(ahead[:, 1], ahead[:, 0])), 0.0)
    size = size or next(item.size_m for item in MODELS[kind] if item.name == model)
    zero = np.zeros(n)
    return Actor(
        number=0, kind=kind, model=model, size_m=size, look=look, first=0, position=path, heading=heading,
        speed=moves if speed is None else speed, lamps=np.full(n, lamps, dtype=np.uint8),
        pose=np.zeros(n, dtype=np.uint8), gait=zero if gait is None else gait, gaze=zero,
        lane=np.full(n, -1),
    )  # fmt: skip


def middles(mesh: Mesh) -> np.ndarray:
    return mesh.vertices[mesh.triangles].mean(axis=1)


def test_every_kind_of_vehicle_and_object_has_models():
    assert set(MODELS) == {*VEHICLES, *OBJECTS}
    for models in MODELS.values():
        assert len({model.name for model in models}) == len(models)
        assert all(model.weight > 0 for model in models)
    with pytest.raises(UsageError, match="no figure of kind 'Ped'"):
        build_actor_mesh(an_actor("Ped", "adult", size=(0.5, 0.5, 1.8)), 0)
    with pytest.raises(UsageError, match="no model 'lorry' of Car; there are hatchback"):
        build_actor_mesh(an_actor("Car", "lorry", size=(4.0, 1.8, 1.5)), 0)
    with pytest.raises(UsageError, match="frames 0 to 6, not in 6"):
        build_actor_mesh(an_actor("Car", "suv"), 6)


@pytest.mark.slow
@pytest.mark.parametrize("coarse", [False, True])
def test_a_figure_fills_its_size_on_the_ground_around_its_origin(coarse):
    for kind, model in NAMED:
        for look in (0, 7):
            whole = sample_model_size(model, look)
            assert np.allclose(whole, model.size_m, rtol=0.03)
            mesh = build_model_figure(kind, model.name, whole, look, coarse).mesh
            size = machine_size(model.name, whole)
            assert (size[2] < whole[2]) == (kind in ("Cyc", "Mobike"))
            low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
            assert np.allclose(
                [low[0], low[2], high[0], high[2]], [-size[0] / 2, 0, size[0] / 2, size[2]], atol=1e-4
            )
            # Only mirrors stick out, on both sides alike.
            out = high[1] - size[1] / 2
            assert -1e-4 < out < (1e-4 if coarse or kind in OBJECTS else 0.3)
            assert np.isclose(high[1], -low[1], atol=0.01)


def test_triangles_are_few_and_fewer_from_far_away():
    for kind, model in NAMED:
        fine, coarse = (
            build_model_figure(kind, model.name, model.size_m, 5, far).mesh for far in (False, True)
        )
        assert len(coarse.triangles) < (90 if kind in VEHICLES else 100)
        assert len(coarse.triangles) < len(fine.triangles) < 700
        assert len(fine.triangles) > (400 if kind in VEHICLES else 100)


def test_figures_have_the_class_of_what_they_are():
    for kind, model in NAMED:
        mesh = build_model_figure(kind, model.name, model.size_m, 1, False).mesh
        expected = SEMANTIC.get(kind, Semantic.OBJECT)
        if kind in ("MedVeh", "EmVeh"):
            expected = Semantic.TRUCK if model.name in ("pickup", "fire_engine") else Semantic.CAR
        assert set(mesh.semantic.tolist()) == {expected}
        assert np.isfinite(mesh.uv).all()
        assert mesh.colour.min() >= 0
        assert mesh.colour.max() <= 1


def backs_seen(mesh: Mesh, eyes: np.ndarray, targets: np.ndarray) -> tuple[int, int]:
    """Rays that meet a back 3 cm or more before any front, and rays that meet anything."""
    a, b, c = mesh.vertices[mesh.triangles].astype(np.float64).transpose(1, 0, 2)
    ways = targets - eyes
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    backs = hits = 0
    for eye, way in zip(eyes, ways, strict=True):
        cross = np.cross(way, c - a)
        scale = ((b - a) * cross).sum(axis=1)
        scale = np.where(np.abs(scale) < 1e-12, np.nan, scale)
        other = np.cross(eye - a, b - a)
        u, v = ((eye - a) * cross).sum(axis=1) / scale, other @ way / scale
        t = np.where((u >= 0) & (v >= 0) & (u + v <= 1), ((c - a) * other).sum(axis=1) / scale, np.inf)
        front, back = (t[side].min(initial=np.inf) for side in (scale > 0, scale < 0))
        backs += bool(back < front - 0.03)
        hits += bool(np.isfinite(min(front, back)))
    return backs, hits


@pytest.mark.slow
def test_whoever_looks_from_outside_sees_fronts():
    rng = np.random.default_rng(3)
    for kind, model in NAMED:
        for coarse in (False, True):
            mesh = build_model_figure(kind, model.name, model.size_m, 5, coarse).mesh
            assert volume(mesh.vertices, mesh.triangles) > 0
            angle = rng.uniform(0, 2 * np.pi, 40)
            away = 3 * max(model.size_m)
            eyes = np.column_stack([away * np.cos(angle), away * np.sin(angle), rng.uniform(1.0, 2.5, 40)])
            size = machine_size(model.name, model.size_m)
            targets = rng.uniform(-0.45, 0.45, (40, 3)) * size + [0, 0, size[2] / 2]
            backs, hits = backs_seen(mesh, eyes, targets)
            # Boards and openings below may show a back now and then.
            assert hits > 5
            assert backs <= 2 + 0.05 * hits, (kind, model.name, coarse)


@pytest.mark.parametrize("coarse", [False, True])
def test_lamps_shine_only_when_they_are_lit_and_on_their_side(coarse):
    for kind, model in MOTOR:
        dark = build_actor_mesh(an_actor(kind, model.name), 0, coarse)
        assert not dark.glow.any()
        for lamp, (axis, sign) in LAMP_PLACES.items():
            mesh = build_actor_mesh(an_actor(kind, model.name, lamps=lamp), 0, coarse)
            shines = mesh.glow > 1.0
            if lamp is Lamp.REVERSE and kind == "Mobike":
                assert not shines.any()
                continue
            assert shines.any(), (model.name, lamp)
            assert (mesh.material[shines] == Material.LAMP).all()
            side = sign * middles(mesh)[shines][:, axis]
            assert (
                side.min() > -0.02
                if lamp in (Lamp.LEFT, Lamp.RIGHT)
                else side.mean() > 0.3 * model.size_m[0] / 2
            )
        both = build_actor_mesh(an_actor(kind, model.name, lamps=Lamp.LEFT | Lamp.RIGHT), 0, coarse)
        x, y = middles(both)[both.glow > 1.0][:, :2].T
        assert y.min() < 0 < y.max()
        assert x.min() < 0 < x.max()


def test_tail_lamps_are_dimmer_than_brake_lamps():
    tail, brake = (
        build_actor_mesh(an_actor("Car", "saloon", lamps=lamps), 0)
        for lamps in (Lamp.HEAD, Lamp.HEAD | Lamp.BRAKE)
    )
    behind = (middles(tail)[:, 0] < 0) & (tail.glow > 0)
    assert behind.any()
    assert (brake.glow[behind] > 10 * tail.glow[behind]).all()


def test_beacons_take_turns_and_others_have_none():
    for kind, model in MOTOR:
        actor = an_actor(kind, model.name, lamps=Lamp.BEACON)
        first, second = (build_actor_mesh(actor, frame).glow > 0 for frame in (0, 2))
        assert first.any() == second.any() == (kind == "EmVeh")
        assert not (first & second).any()


def test_wheels_roll_with_the_way_and_steer_into_the_bend():
    straight = np.zeros((4, 3))
    straight[:, 0] = [0.0, 0.05, 0.05, 0.0]
    actor = an_actor("Car", "hatchback", path=straight, speed=np.array([1.0, 1.0, 0.0, -1.0]))
    meshes = [build_actor_mesh(actor, frame) for frame in range(4)]
    assert np.array_equal(meshes[1].vertices, meshes[2].vertices)
    assert np.allclose(meshes[0].vertices, meshes[3].vertices, atol=1e-6)
    step = meshes[1].vertices - meshes[0].vertices
    moved = np.abs(step[:, 0]) > 1e-4
    heights = meshes[0].vertices[moved, 2]
    assert moved.any()
    # What is above the axle goes forward, what is below goes back; nothing leaves its wheel.
    assert (np.sign(step[moved, 0]) == np.sign(heights - 0.32))[np.abs(heights - 0.32) > 0.05].all()
    angle = np.linspace(0, 0.5, 12)
    bend = np.column_stack([8 * np.sin(angle), 8 * (1 - np.cos(angle)), 0 * angle])
    turning = build_actor_mesh(an_actor("Car", "hatchback", path=bend), 6)
    plain = build_actor_mesh(an_actor("Car", "hatchback", path=bend * [1, 0, 1]), 6)
    tip = plain.vertices[:, 0].max() - 0.6
    front = (np.abs(plain.vertices[:, 0] - tip) < 0.2) & (
        turning.vertices[:, 1] - plain.vertices[:, 1] > 0.03
    )
    behind = (plain.vertices[:, 0] < 0) & (np.abs(turning.vertices[:, 1] - plain.vertices[:, 1]) > 0.01)
    assert front.any()
    assert not behind.any()


def test_pedals_and_saddles_are_where_riders_touch_them():
    gait = np.full(6, 1.1)
    for model in ("bicycle", "cargo_bike"):
        size = next(item.size_m for item in MODELS["Cyc"] if item.name == model)
        contact = scale_saddle(model, machine_size(model, size))
        still, round_ = (
            build_actor_mesh(an_actor("Cyc", model, gait=phase), 0).vertices for phase in (0 * gait, gait)
        )
        turned_ = np.flatnonzero(np.abs(still - round_).max(axis=1) > 1e-6)
        left = turned_[still[turned_, 1] > 0.07]
        x = contact.crank[0] + contact.crank_m * np.sin(1.1)
        z = contact.crank[1] + contact.crank_m * np.cos(1.1)
        assert np.allclose(round_[left][:, [0, 2]].mean(axis=0), [x, z], atol=0.03)
        near = np.hypot(still[:, 0] - contact.seat[0], still[:, 1]) < 0.2
        assert np.isclose(still[near, 2].max(), contact.seat[1], atol=0.03)


def test_a_dog_trots_with_its_feet_on_the_ground():
    actor = an_actor("dog", "dog", gait=np.linspace(0, 5, 6))
    meshes = [build_actor_mesh(actor, frame) for frame in range(6)]
    assert all(np.isclose(mesh.vertices[:, 2].min(), 0, atol=1e-6) for mesh in meshes)
    assert np.abs(meshes[0].vertices - meshes[2].vertices).max() > 0.05
    walking = an_actor("dog", "dog", path=np.column_stack([np.linspace(0, 1, 6), np.zeros(6), np.zeros(6)]))
    assert np.abs(build_actor_mesh(walking, 0).vertices - build_actor_mesh(walking, 2).vertices).max() > 0.05


def test_the_same_actor_looks_the_same_whatever_was_made_before():
    actor = an_actor("LarVeh", "flatbed", look=9)
    before = build_actor_mesh(actor, 2)
    again = build_actor_mesh(actor, 2)
    assert again.colour is before.colour
    build_model_figure.cache_clear()
    after = build_model_figure("LarVeh", "flatbed", actor.size_m, 9, False).mesh
    assert np.array_equal(before.colour, after.colour)
    assert np.array_equal(before.triangles, after.triangles)
    looks = {
        build_model_figure("Car", "suv", (4.5, 1.9, 1.7), look, False).mesh.colour.tobytes()
        for look in range(12)
    }
    assert len(looks) > 6


@pytest.mark.slow
def test_what_is_far_away_has_the_same_paint():
    for kind in ("Car", "Bus", "LarVeh"):
        for model in MODELS[kind]:
            for look in range(4):
                fine, coarse = (
                    build_model_figure(kind, model.name, model.size_m, look, far).mesh
                    for far in (False, True)
                )
                paint = fine.colour[fine.material == Material.GLOSSY][0]
                assert (np.abs(coarse.colour - paint).max(axis=1) < 1e-6).any()


def test_hues_turn_and_lamps_plates_and_greys_stay():
    mesh = build_actor_mesh(an_actor("EmVeh", "ambulance", lamps=Lamp.LEFT), 0)
    third = rotate_mesh_hue(mesh, 1 / 3)
    assert rotate_mesh_hue(mesh, 0.0) is mesh
    changed = np.abs(third.colour - mesh.colour).max(axis=1) > 1e-3
    assert changed.any()
    assert not changed[mesh.material == Material.LAMP].any()
    grey = np.ptp(mesh.colour, axis=1) < 1e-6
    assert not changed[grey].any()
    assert np.allclose(third.colour.max(axis=1), mesh.colour.max(axis=1), atol=1e-6)
    assert np.allclose(third.colour.min(axis=1), mesh.colour.min(axis=1), atol=1e-6)
    assert np.allclose(rotate_mesh_hue(rotate_mesh_hue(third, 1 / 3), 1 / 3).colour, mesh.colour, atol=1e-5)
    assert np.allclose(rotate_hues(np.array([[0.5, 0, 0]], np.float32), 1 / 3), [[0, 0.5, 0]], atol=1e-6)
