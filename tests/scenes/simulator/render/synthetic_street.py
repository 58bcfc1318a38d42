"""A street of boxes: ground, houses, trees, lamps, 20 cars and walkers, for tests and measurements."""

from __future__ import annotations

import numpy as np

from roadaware.simulator.mesh import (
    Camera,
    Material,
    Mesh,
    Semantic,
    Soup,
    merge_soups,
    transform_mesh,
)

_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (0.0, 1.0)], np.float32)
# Front, back, left, right, top: corners counter-clockwise seen from outside.
_FACES = ((4, 6, 7, 5), (2, 0, 1, 3), (6, 2, 3, 7), (0, 4, 5, 1), (5, 7, 3, 1))


def box(size, colour, material, semantic, glow=0.0, base=0.0, middle=(0.0, 0.0)) -> Mesh:
    """A box on the ground without a bottom."""
    size = np.asarray(size, np.float32)
    vertices = _CORNERS * size + np.array([*middle, base], np.float32)
    triangles, uv = [], []
    for face, wide in zip(_FACES, (1, 1, 0, 0, 0), strict=True):
        high = 1 if face == _FACES[4] else 2
        flat = np.stack([vertices[list(face), wide], vertices[list(face), high]], axis=1)
        for places in ((0, 1, 2), (0, 2, 3)):
            triangles.append([face[k] for k in places])
            uv.append(flat[list(places)])
    return mesh(vertices, triangles, uv, colour, material, semantic, glow)


def mesh(vertices, triangles, uv, colour, material, semantic, glow=0.0) -> Mesh:
    n = len(triangles)
    return Mesh(
        np.asarray(vertices, np.float32),
        np.asarray(triangles, np.int32),
        np.tile(np.asarray(colour, np.float32), (n, 1)),
        np.full(n, material, np.uint8),
        np.full(n, semantic, np.uint8),
        np.full(n, glow, np.float32),
        np.asarray(uv, np.float32),
    )


def merge_meshes(parts: list[Mesh]) -> Mesh:
    starts = np.cumsum([0, *(len(part.vertices) for part in parts[:-1])])
    triangles = np.concatenate([part.triangles + start for part, start in zip(parts, starts, strict=True)])
    rest = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("colour", "material", "semantic", "glow", "uv")
    )
    return Mesh(np.concatenate([part.vertices for part in parts]), triangles.astype(np.int32), *rest)


def sheet(x0, x1, y0, y1, z, colour, material, semantic) -> Mesh:
    """A level rectangle."""
    vertices = [[x0, y0, z], [x1, y0, z], [x1, y1, z], [x0, y1, z]]
    uv = np.array(vertices)[:, :2]
    triangles = [(0, 1, 2), (0, 2, 3)]
    return mesh(vertices, triangles, [uv[list(t)] for t in triangles], colour, material, semantic)


def car(colour, lamps=True) -> Mesh:
    parts = [
        box((4.2, 1.8, 0.75), colour, Material.GLOSSY, Semantic.CAR, base=0.25),
        box((2.2, 1.6, 0.5), (0.05, 0.06, 0.07), Material.GLASS, Semantic.CAR, base=1.0, middle=(-0.2, 0)),
    ]
    for x in (1.3, -1.3):
        for y in (0.75, -0.75):
            wheel = box((0.6, 0.3, 0.6), (0.02, 0.02, 0.02), Material.MATT, Semantic.CAR, middle=(x, y))
            parts.append(wheel)
    for y in (0.7, -0.7):
        glow = 1.0 if lamps else 0.0
        parts.append(
            box((0.06, 0.35, 0.16), (0.9, 0.05, 0.03), Material.LAMP, Semantic.CAR, glow, 0.7, (-2.1, y))
        )
        parts.append(
            box((0.06, 0.35, 0.16), (1, 0.95, 0.8), Material.LAMP, Semantic.CAR, glow, 0.6, (2.1, y))
        )
    return merge_meshes(parts)


def walker(colour) -> Mesh:
    return merge_meshes(
        [
            box((0.25, 0.4, 0.8), (0.06, 0.07, 0.12), Material.CLOTH, Semantic.PERSON),
            box((0.25, 0.5, 0.65), colour, Material.CLOTH, Semantic.PERSON, base=0.8),
            box((0.2, 0.2, 0.26), (0.5, 0.32, 0.24), Material.MATT, Semantic.PERSON, base=1.48),
        ]
    )


def street(seed=0, triangles=15_000) -> Soup:
    """A street along x; instances 1 to 20 are cars, 21 to 33 walkers; houses make up the wanted triangles."""
    rng = np.random.default_rng(seed)
    parts = [transform_mesh(piece, (0, 0, 0), 0.0) for piece in _ground()]
    for k in range(20):
        lane = -1.7 if k % 2 else 1.7
        place = (12 + 9.0 * (k // 2) + 4 * (k % 2), lane, 0)
        colour = rng.uniform(0.04, 0.7, 3)
        parts.append(transform_mesh(car(colour), place, 0.0 if k % 2 else np.pi, k + 1))
    for k in range(12):
        place = (rng.uniform(5, 45), rng.choice([-1, 1]) * rng.uniform(3.9, 6.0), 0.12)
        parts.append(transform_mesh(walker(rng.uniform(0.1, 0.7, 3)), place, rng.uniform(0, 6.3), 21 + k))
    for x in range(-20, 300, 22):
        for side in (-1, 1):
            parts += _furniture(x, side)
    parts.append(transform_mesh(walker((0.7, 0.1, 0.1)), (9.5, 0.3, 0), 1.5, 33))
    x = -30.0
    while sum(len(part) for part in parts) < triangles:
        for side in (-1, 1):
            size = (rng.uniform(7, 14), 9.0, rng.uniform(6, 15))
            material = Material.WINDOWS if rng.random() < 0.8 else Material.BRICK
            house = box(size, rng.uniform(0.15, 0.6, 3), material, Semantic.BUILDING)
            parts.append(transform_mesh(house, (x, side * 12.5, 0), 0.0))
        x += 14.5
    return merge_soups(parts)


def _ground():
    yield sheet(-60, 400, -3.5, 3.5, 0, (0.13, 0.13, 0.14), Material.ASPHALT, Semantic.ROAD)
    for side in (-1, 1):
        low, high = sorted((3.5 * side, 8 * side))
        yield sheet(-60, 400, low, high, 0.12, (0.4, 0.38, 0.36), Material.PAVING, Semantic.PAVEMENT)
        low, high = sorted((8 * side, 200 * side))
        yield sheet(-60, 400, low, high, 0, (0.1, 0.2, 0.05), Material.GRASS, Semantic.TERRAIN)
    for x in range(-20, 200, 6):
        yield sheet(x, x + 3, -0.07, 0.07, 0.004, (0.8, 0.8, 0.78), Material.MARKING, Semantic.MARKING)


def _furniture(x, side):
    post = box((0.12, 0.12, 6), (0.1, 0.1, 0.11), Material.MATT, Semantic.POLE)
    lamp = box((0.5, 0.25, 0.12), (1, 0.8, 0.5), Material.LAMP, Semantic.POLE, 1.0, 5.9, (0, -side * 0.5))
    trunk = box((0.3, 0.3, 2.2), (0.12, 0.08, 0.05), Material.MATT, Semantic.VEGETATION, middle=(8, 0))
    crown = box(
        (2.6, 2.6, 2.8), (0.08, 0.2, 0.05), Material.FOLIAGE, Semantic.VEGETATION, base=2, middle=(8, 0)
    )
    bulge = box(
        (1.8, 3.2, 1.8), (0.08, 0.2, 0.05), Material.FOLIAGE, Semantic.VEGETATION, base=2.5, middle=(8, 0)
    )
    return [transform_mesh(piece, (x, side * 4.1, 0.12), 0.0) for piece in (post, lamp, trunk, crown, bulge)]


def camera(width=320, height=240, fov_deg=70.0, place=(0.0, -1.7, 1.5), grain=0.0, pitch_deg=-3.0) -> Camera:
    """A camera that looks along x."""
    focal = width / 2 / np.tan(np.radians(fov_deg) / 2)
    lens = np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1.0]])
    tilt = np.radians(pitch_deg)
    pose = np.eye(4)
    forward = np.array([np.cos(tilt), 0, np.sin(tilt)])
    right = np.array([0.0, -1.0, 0.0])
    pose[:3, :3] = np.stack([right, np.cross(forward, right), forward], axis=1)
    pose[:3, 3] = place
    return Camera(width, height, lens, pose, grain)
