"""Objects of the road: debris, cones, barriers; those that move, such as dogs, strollers and carts; fire
and water.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Lamp
from roadaware.simulator.figures.form import (
    INK,
    METAL,
    PLASTIC,
    RIM,
    RUBBER,
    SHADE,
    STEEL,
    Bulb,
    Form,
    Joint,
    Paint,
    Size,
    Solid,
    ball,
    box,
    cylinder,
    disc,
    gloss,
    loft,
    matt,
    patch,
    pipe,
    ring,
    scale_brightness,
    wedge,
    window,
)
from roadaware.simulator.mesh import Material, Semantic

BIN_COLOURS = ((0.03, 0.09, 0.045), (0.05, 0.055, 0.06), (0.03, 0.05, 0.12), (0.12, 0.08, 0.04))
Maker = Callable[[Form, Size, np.random.Generator, bool], None]


def build_object(kind: str, size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """An object that stands or lies on its own.

    Args:
        kind: a key of `MAKERS`.
    """
    form = Form(Semantic.OBJECT)
    MAKERS[kind](form, size, rng, coarse)
    return form


def _debris(form: Form, size: Size, rng: np.random.Generator, coarse: bool) -> None:
    """Broken planks across each other, and rubble."""
    long, wide, high = size
    wood = matt((0.25, 0.16, 0.085))
    for number in range(2 if coarse else 4):
        half = long * rng.uniform(0.32, 0.45)
        board = box((-half, -0.07, -0.02), (half, 0.07, 0.02))
        tilted = board.spun(float(rng.uniform(-8, 8)), 1).spun(float(rng.uniform(-65, 65)))
        offset = (float(rng.uniform(-0.12, 0.12)), wide * float(rng.uniform(-0.2, 0.2)), 0.1 + 0.07 * number)
        form.add(tilted.moved(offset), scale_brightness(wood, float(rng.uniform(0.6, 1.3))))
    raised = box((-0.45 * long, -0.06, -0.02), (0.25 * long, 0.06, 0.02)).spun(-24, 1).spun(20)
    form.add(raised.moved((0.1, 0.0, 0.3 * high)), scale_brightness(wood, 0.9))
    for number in range(3 if coarse else 9):
        place = rng.uniform(-0.42, 0.42, 2) * [long, wide]
        stone = _lump(rng, float(rng.uniform(0.06, 0.15)), 4 if coarse else 5)
        grey = float(rng.uniform(0.12, 0.35))
        colour = (0.26, 0.1, 0.06) if number % 3 == 0 else (grey, grey, 0.95 * grey)
        form.add(stone.moved((float(place[0]), float(place[1]), 0.06)), matt(colour))


def _lump(rng: np.random.Generator, radius: float, sides: int) -> Solid:
    """A stone: an egg with its corners moved."""
    egg = ball((0.0, 0.0, 0.0), (radius, radius, 0.7 * radius), sides, 2)
    return Solid(egg.vertices * rng.uniform(0.75, 1.25, egg.vertices.shape), egg.triangles, egg.part)


def _tyre(form: Form, size: Size, rng: np.random.Generator, coarse: bool) -> None:
    """A tyre that lies on its side, with grooves in its tread."""
    radius, thick = size[0] / 2, 0.3 * size[0] / 2
    sides = 8 if coarse else 16
    wheel = ring((0.0, 0.0, 0.0), radius, thick * 1.15, size[2], sides=sides, section=4 if coarse else 6)
    form.add(wheel.spun(90, 0), scale_brightness(RUBBER, 1.6))
    if coarse:
        return
    rim = ring((0.0, 0.0, 0.0), radius - thick * 0.55, 0.03, size[2] * 0.98, sides=12, section=4)
    form.add(rim.spun(90, 0), SHADE)


def _suitcase(form: Form, size: Size, rng: np.random.Generator, coarse: bool) -> None:
    """Upright on wheels, with ribs and a pulled-out handle."""
    long, wide, high = size
    paint = gloss(rng.uniform(0.03, 0.3, 3))
    top = 0.74 * high
    x, y, cut = long / 2, wide / 2, 0.12 * long
    plan = [(-x, -y + cut), (-x + cut, -y), (x - cut, -y), (x, -y + cut), (x, y - cut), (x - cut, y),
            (-x + cut, y), (-x, y - cut)]  # fmt: skip
    if coarse:
        plan = [(-x, -y), (x, -y), (x, y), (-x, y)]
    shell = [(0.07, 0.96), (0.12, 1.0), (top - 0.04, 1.0), (top, 0.93)]
    form.add(loft([[(a * s, b * s, z) for a, b in plan] for z, s in shell]), paint)
    for side in (1, -1):
        post = box((side * 0.3 * x - 0.012, -0.85 * y, top - 0.02), (side * 0.3 * x + 0.012, -0.6 * y, high))
        form.add(post, STEEL)
    form.add(box((-0.36 * x, -0.9 * y, high - 0.04), (0.36 * x, -0.55 * y, high)), INK)
    if coarse:
        return
    for a in (-0.72, 0.72):
        for b in (-0.6, 0.6):
            form.add(cylinder((a * x, b * y - 0.02, 0.04), (a * x, b * y + 0.02, 0.04), 0.04, 6), INK)
    for sign in (1, -1):
        for rib in range(4):
            at = (-0.6 + 0.4 * rib) * x
            face = box((at - 0.02, 0.0, 0.16), (at + 0.02, y + 0.012, top - 0.08))
            form.add(face if sign > 0 else face.mirrored(), scale_brightness(paint, 0.55))
    form.add(box((x - 0.02, -0.05, 0.3), (x + 0.02, 0.05, 0.46)), INK)


def _fallen_tree(form: Form, size: Size, rng: np.random.Generator, coarse: bool) -> None:
    """A trunk that lies along x, its roots at one end, its crown at the other."""
    long, wide, high = size
    bark = matt((0.085, 0.06, 0.04))
    thick, level = 0.13 * high, 0.24 * high
    line = [(-0.46 * long, 0.0, level), (-0.1 * long, 0.03 * wide, 0.2 * high),
            (0.2 * long, 0.0, 0.28 * high), (0.45 * long, 0.08 * wide, 0.4 * high)]  # fmt: skip
    radii = [1.5 * thick, 1.2 * thick, 0.9 * thick, 0.25 * thick]
    form.add(pipe(line[::3], radii[::3], 4) if coarse else pipe(line, radii, 8), bark)
    form.add(disc((-0.462 * long, 0.0, level), 1.3 * thick, (-1, 0, 0), 7), matt((0.3, 0.2, 0.11)))
    count = 3 if coarse else 9
    for number in range(count):
        root = np.array([(0.72 * number / count - 0.22) * long, 0.0, 0.28 * high])
        across = (1 if number % 2 else -1) * wide * float(rng.uniform(0.22, 0.4))
        tip = root + np.array([0.1 * long, across, high * float(rng.uniform(-0.1, 0.5))])
        tip[2] = max(tip[2], 0.05)
        middle = 0.55 * root + 0.45 * tip + np.array([0.0, 0.0, 0.08 * high])
        limb = [0.4 * thick, 0.25 * thick, 0.08 * thick]
        branch = pipe([root, tip], limb[::2], 3) if coarse else pipe([root, middle, tip], limb, 4)
        form.add(branch.without(4, 5) if not coarse else branch.without(3, 4), bark)
        if number > 0:
            # A clump of leaves at the end of a branch.
            leaf = matt(np.array([0.045, 0.1, 0.025]) * rng.uniform(0.8, 1.3), Material.FOLIAGE)
            radius = float(rng.uniform(0.4, 0.6)) * (1.7 if coarse else 1.0)
            place = 0.75 * tip + 0.25 * middle
            place[2] = max(place[2], 0.75 * radius)
            sides, rows = (4, 2) if coarse else (6, 3)
            clump = ball((0.0, 0.0, 0.0), (1.3 * radius, radius, 0.7 * radius), sides, rows)
            rough = Solid(
                clump.vertices * rng.uniform(0.75, 1.2, clump.vertices.shape), clump.triangles, clump.part
            )
            form.add(rough.moved(place), leaf)
    if not coarse:
        x = -0.46 * long
        earth = matt((0.06, 0.04, 0.028))
        for angle in np.radians(np.arange(20, 380, 72)).tolist():
            reach = 0.36 * high * (1.0 if np.sin(angle) > -0.2 else 0.55)
            tip = (x - 0.12, 1.1 * reach * np.cos(angle), max(level + reach * np.sin(angle), 0.03))
            line = [(x + 0.25, 0.0, level), (x, 0.5 * tip[1], 0.5 * (level + tip[2])), tip]
            form.add(pipe(line, [0.16, 0.1, 0.03], 3), earth)


def _cone(form: Form, size: Size, rng: np.random.Generator, coarse: bool) -> None:
    """On a square foot, with two bright bands."""
    long, wide, high = size
    orange, white = matt(np.array([0.62, 0.13, 0.015]) * rng.uniform(0.85, 1.1)), matt((0.78, 0.78, 0.78))
    x, y = long / 2, wide / 2
    foot = wedge((-x, x, -y, y, 0.0), (-0.94 * x, 0.94 * x, -0.94 * y, 0.94 * y, 0.05 * high))
    form.add(foot, scale_brightness(orange, 0.35))
    cuts = [(0.04, 0.36), (0.34, 0.27), (0.52, 0.215), (0.64, 0.18), (0.82, 0.125), (1.0, 0.06)]
    sides = 6 if coarse else 12
    for number, ((low, wider), (top, slimmer)) in enumerate(pairwise(cuts)):
        piece = cylinder((0, 0, low * high), (0, 0, top * high), wider * long, sides, slimmer * long)
        hidden = (sides,) if number == len(cuts) - 2 else (sides, sides + 1)
        form.add(piece.without(*hidden), white if number % 2 else orange)


def _barrier(form: Form, size: Size, rng: np.random.Generator, coarse: bool) -> None:
    """Two boards with slanted stripes on feet, across x."""
    long, wide, high = size
    white, red = matt((0.75, 0.75, 0.75)), matt((0.5, 0.02, 0.015))
    y = wide / 2
    for side in (1, -1):
        near, far = sorted((side * (y - 0.16), side * (y - 0.1)))
        form.add(box((-0.03, near, 0.04), (0.03, far, high - 0.02)), STEEL)
        near, far = sorted((side * (y - 0.2), side * (y - 0.06)))
        form.add(box((-long / 2, near, 0.0), (long / 2, far, 0.07)), PLASTIC)
    for low, top in ((0.66, 1.0), (0.27, 0.5))[: 1 if coarse else 2]:
        board = box((-0.05, -y, low * high), (0.05, y, top * high))
        form.add(board, white)
        for x, sign in ((0.05, 1), (-0.05, -1)):
            quad = np.array([(x, a, z * high) for a, z in ((-sign * y, low), (sign * y, low), (sign * y, top),
                                                           (-sign * y, top))])  # fmt: skip
            count = 4 if coarse else 6
            for stripe in range(count):
                a, w = (stripe + 0.1) / (count + 0.3), 0.5 / (count + 0.3)
                slant = [(a, 0.0), (a + w, 0.0), (a + 1.4 * w, 1.0), (a + 0.4 * w, 1.0)]
                form.add(patch(quad, slant, 0.004), red)


def _dustbin(form: Form, size: Size, rng: np.random.Generator, coarse: bool) -> None:
    """A bin on two wheels with a lid and a handle."""
    long, wide, high = size
    paint = matt(BIN_COLOURS[int(rng.integers(len(BIN_COLOURS)))])
    x, y, top = long / 2, wide / 2, 0.86 * high
    foot = (-0.66 * x, 0.62 * x, -0.76 * y, 0.76 * y, 0.05)
    form.add(wedge(foot, (-0.8 * x, 0.92 * x, -0.96 * y, 0.96 * y, top)), paint)
    form.add(box((-0.86 * x, -y, top), (x, y, top + 0.045)), scale_brightness(paint, 0.6))
    rim = (-0.84 * x, 0.96 * x, -0.95 * y, 0.95 * y, top + 0.045)
    form.add(
        wedge(rim, (-0.6 * x, 0.5 * x, -0.7 * y, 0.7 * y, high)).without(4), scale_brightness(paint, 0.75)
    )
    form.add(box((-x, -0.7 * y, top - 0.05), (-x + 0.04, 0.7 * y, top)), INK)
    for side in (1, -1):
        near, far = sorted((side * 0.72 * y, side * 0.95 * y))
        form.add(cylinder((-0.62 * x, near, 0.12), (-0.62 * x, far, 0.12), 0.12, 5 if coarse else 10), RUBBER)
        if coarse:
            continue
        arm = box((-x, near, top - 0.05), (-0.7 * x, far, top))
        form.add(arm, INK)
    if coarse:
        return
    front = np.array([(0.63 * x, -0.76 * y, 0.06), (0.63 * x, 0.76 * y, 0.06),
                      (0.92 * x, 0.96 * y, top), (0.92 * x, -0.96 * y, top)])  # fmt: skip
    form.add(patch(front, window(0.3, 0.7, 0.6, 0.82)), matt((0.6, 0.6, 0.58)))
    for share in (0.14, 0.86):
        form.add(patch(front, window(share - 0.03, share + 0.03, 0.08, 0.92)), scale_brightness(paint, 0.5))


def _plastic_bag(form: Form, size: Size, rng: np.random.Generator, coarse: bool) -> None:
    """A knotted bag, crumpled, with two ears."""
    long, wide, high = size
    paint = gloss((0.6, 0.61, 0.62) if rng.random() < 0.7 else (0.03, 0.03, 0.035))
    sides, rows = (6, 3) if coarse else (11, 6)
    body = ball((0.0, 0.0, 0.36 * high), (long / 2, wide / 2, 0.36 * high), sides, rows)
    crumpled = body.vertices * rng.uniform(0.82, 1.1, (len(body.vertices), 1))
    # The upper third is drawn together into the knot.
    pull = np.clip((crumpled[:, 2] / high - 0.4) * 2.4, 0.0, 0.85)[:, None]
    crumpled = crumpled * np.concatenate([np.repeat(1 - pull, 2, axis=1), 1 + 0.1 * pull], axis=1)
    form.add(Solid(crumpled, body.triangles, body.part), paint)
    for side in (1, -1):
        ear = [
            (0.0, 0.0, 0.66 * high),
            (0.05 * long, side * 0.1 * wide, 0.85 * high),
            (0.0, side * 0.24 * wide, high),
        ]
        form.add(pipe(ear, [0.09 * long, 0.05 * long, 0.1 * long], 3 if coarse else 4), paint)


MAKERS: dict[str, Maker] = {
    "debris": _debris,
    "tyre": _tyre,
    "suitcase": _suitcase,
    "fallen_tree": _fallen_tree,
    "traffic_cone": _cone,
    "barrier": _barrier,
    "dustbin": _dustbin,
    "plastic_bag": _plastic_bag,
}
"""Kind to what makes it."""

# Objects that are moved or move by themselves: dog, stroller and cart.

COATS = ((0.16, 0.09, 0.04), (0.03, 0.026, 0.024), (0.34, 0.24, 0.13), (0.5, 0.46, 0.4), (0.09, 0.05, 0.03))
"""Of dogs."""


def build_dog(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A dog whose legs swing with its gait and whose tail wags.

    Args:
        rng: of its coat.
    """
    form = Form(Semantic.OBJECT)
    long, wide, high = size
    coat = matt(np.array(COATS[int(rng.integers(len(COATS)))]) * rng.uniform(0.8, 1.2), Material.CLOTH)
    pale = scale_brightness(coat, 1.7) if rng.random() < 0.5 else coat
    y = 0.5 * wide
    _trunk(form, size, coat, coarse)
    muzzle = [(0.38 * long, 0.0, 0.835 * high), (0.49 * long, 0.0, 0.8 * high)]
    form.add(pipe(muzzle, [0.3 * y, 0.19 * y], 3 if coarse else 6), pale)
    if not coarse:
        form.add(box((0.485 * long, -0.12 * y, 0.8 * high), (0.5 * long, 0.12 * y, 0.835 * high)), INK)
        for side in (1, -1):
            ear = [(0.33 * long, side * 0.3 * y, 0.92 * high), (0.315 * long, side * 0.42 * y, high)]
            form.add(pipe(ear, [0.22 * y, 0.05 * y], 3), scale_brightness(coat, 0.6))
    _legs(form, size, coat, pale, coarse)
    wag = Joint((-0.33 * long, 0.0, 0.6 * high), swing=0.25)
    tail = [
        (-0.33 * long, 0.0, 0.6 * high),
        (-0.43 * long, 0.0, 0.68 * high),
        (-0.5 * long, 0.0, 0.82 * high),
    ]
    radii = [0.24 * y, 0.17 * y, 0.06 * y]
    form.add(pipe(tail[::2], radii[::2], 3) if coarse else pipe(tail, radii, 5), coat, joint=wag)
    return form


def _trunk(form: Form, size: Size, coat: Paint, coarse: bool) -> None:
    """Body, neck and head."""
    long, high, y = size[0], size[2], 0.5 * size[1]
    line = [(-0.34, 0.55), (-0.28, 0.56), (0.0, 0.53), (0.17, 0.54), (0.25, 0.6)]
    radii = [0.5 * y, 0.78 * y, 0.82 * y, 0.97 * y, 0.6 * y]
    neck = [(0.19, 0.6), (0.29, 0.74), (0.34, 0.84)]
    slim = [0.62 * y, 0.45 * y, 0.42 * y]
    if coarse:
        line, radii, neck, slim = line[::2], [0.8 * y, 0.95 * y, 0.9 * y], [neck[0], (0.37, 0.92)], slim[:2]
    sides = 4 if coarse else 7
    form.add(pipe([(x * long, 0.0, z * high) for x, z in line], radii, sides), coat)
    form.add(pipe([(x * long, 0.0, z * high) for x, z in neck], slim, sides), coat)
    if not coarse:
        skull = ball((0.345 * long, 0.0, 0.86 * high), (0.09 * long, 0.46 * y, 0.1 * high), 7, 4)
        form.add(skull, coat)


def _legs(form: Form, size: Size, coat: Paint, pale: Paint, coarse: bool) -> None:
    long, wide, high = size
    y = 0.5 * wide
    # Diagonal pairs move together, as in a trot.
    for x, side, phase in ((0.19, 1, 0.0), (-0.27, -1, 0.3), (0.19, -1, np.pi), (-0.27, 1, np.pi + 0.3)):
        hip = (x * long, side * 0.55 * y, 0.5 * high)
        joint = Joint(hip, swing=0.5, phase=float(phase))
        bend = -0.035 if x < 0 else 0.012
        line = [
            (hip[0], hip[1], 0.56 * high),
            (hip[0] + bend * long, hip[1], 0.26 * high),
            (hip[0], hip[1], 0.05 * high),
        ]
        radii = [0.42 * y, 0.22 * y, 0.17 * y]
        leg = pipe(line[::2], radii[::2], 3) if coarse else pipe(line, radii, 5)
        form.add(leg, coat, joint=joint)
        if not coarse:
            paw = box((hip[0] - 0.03, hip[1] - 0.2 * y, 0.0), (hip[0] + 0.06, hip[1] + 0.2 * y, 0.06 * high))
            form.add(paw, pale, joint=joint)


def build_stroller(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A stroller with a hood, whose wheels roll."""
    form = Form(Semantic.OBJECT)
    long, wide, high = size
    x, y = long / 2, wide / 2
    cloth = matt(rng.uniform(0.02, 0.25, 3), Material.CLOTH)
    form.wheelbase_m = 0.6 * long
    for at, radius in ((-0.6 * x, 0.16 * high), (0.76 * x, 0.12 * high)):
        for side in (1, -1):
            _castor(form, (at, side * 0.88 * y, radius), radius, side, coarse)
    for side in (1, -1):
        tube = [(0.76 * x, side * 0.8 * y, 0.13 * high), (0.0, side * 0.82 * y, 0.5 * high),
                (-0.8 * x, side * 0.82 * y, 0.9 * high), (-x, side * 0.82 * y, high - 0.02)]  # fmt: skip
        _rod(form, tube[::3] if coarse else tube, 0.016, STEEL, coarse)
        leg = [(-0.6 * x, side * 0.8 * y, 0.17 * high), (0.05 * x, side * 0.8 * y, 0.52 * high)]
        _rod(form, leg, 0.016, STEEL, coarse)
    _rod(form, [(-x + 0.02, -0.84 * y, high - 0.03), (-x + 0.02, 0.84 * y, high - 0.03)], 0.022, INK, coarse)
    low = (-0.45 * x, 0.5 * x, -0.7 * y, 0.7 * y, 0.36 * high)
    seat = wedge(low, (-0.62 * x, 0.72 * x, -0.74 * y, 0.74 * y, 0.56 * high))
    form.add(seat, cloth, {5: scale_brightness(cloth, 0.3)})
    angles = np.radians(np.linspace(15, 165, 4 if coarse else 7))
    arc = np.column_stack(
        [0.62 * x * np.cos(angles) - 0.2 * x, 0.74 * y + 0.0 * angles, 0.4 * high * np.sin(angles)]
    )
    arc[:, 2] += 0.54 * high
    form.add(loft(np.stack([arc * [1.0, -1.0, 1.0], arc])), scale_brightness(cloth, 1.3))
    if coarse:
        return form
    form.add(box((-0.5 * x, -0.6 * y, 0.2 * high), (0.2 * x, 0.6 * y, 0.27 * high)), PLASTIC)
    low = (0.6 * x, 0.84 * x, -0.4 * y, 0.4 * y, 0.24 * high)
    form.add(wedge(low, (0.68 * x, x, -0.4 * y, 0.4 * y, 0.28 * high)), PLASTIC)
    form.add(ball((0.05 * x, 0.0, 0.64 * high), (0.11, 0.1, 0.11), 7, 3), matt((0.42, 0.26, 0.18)))
    return form


def _rod(
    form: Form, path: list[tuple[float, float, float]], radius: float, paint: Paint, coarse: bool
) -> None:
    sides = 3 if coarse else 4
    form.add(pipe(path, radius, sides).without(sides, sides + 1), paint)


def _castor(form: Form, hub: tuple[float, float, float], radius: float, side: int, coarse: bool) -> None:
    if coarse:
        face = disc((hub[0], hub[1] + side * 0.02, hub[2]), radius, (0, side, 0), 5)
        form.add(face, RUBBER)
        return
    form.add(ring(hub, radius, 0.035, 0.035, sides=10, section=3), RUBBER)
    joint = Joint(hub, radius)
    inner = radius - 0.03
    for turn in (0, 60, 120):
        rod = box(
            (hub[0] - inner, hub[1] - 0.008, hub[2] - 0.01), (hub[0] + inner, hub[1] + 0.008, hub[2] + 0.01)
        )
        form.add(rod.without(0, 1).spun(turn, 1, hub), RIM, joint=joint)


def build_cart(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A shopping cart with sides of wire, or a hand cart with a load.

    Args:
        rng: decides on which.
    """
    form = Form(Semantic.OBJECT)
    form.wheelbase_m = 0.6 * size[0]
    if rng.random() < 0.65:
        _shopping_cart(form, size, coarse)
    else:
        long, wide, high = size
        x, y, radius = long / 2, wide / 2, 0.24 * high
        wood = matt((0.2, 0.12, 0.06))
        for side in (1, -1):
            _castor(form, (0.1 * x, side * 0.9 * y, radius), radius, side, coarse)
            shaft = [
                (0.9 * x, side * 0.62 * y, 0.5 * high),
                (-0.5 * x, side * 0.62 * y, 0.52 * high),
                (-x, side * 0.62 * y, 0.86 * high),
            ]
            _rod(form, shaft[::2] if coarse else shaft, 0.022, wood, coarse)
        _rod(
            form,
            [(-x + 0.02, -0.64 * y, 0.85 * high), (-x + 0.02, 0.64 * y, 0.85 * high)],
            0.022,
            INK,
            coarse,
        )
        trough = wedge(
            (-0.5 * x, 0.9 * x, -0.74 * y, 0.74 * y, 0.44 * high), (-0.56 * x, x, -y, y, 0.72 * high)
        )
        form.add(trough, wood, {5: SHADE})
        sides, rows = (4, 2) if coarse else (7, 3)
        for number in range(1 if coarse else 3):
            place = ((0.45 * number - 0.4) * x + 0.12, 0.2 * y * (number - 1), 0.78 * high)
            tint = rng.uniform(0.05, 0.3, 3) if number == 1 else np.array([0.3, 0.24, 0.15])
            form.add(ball(place, (0.2, 0.7 * y, 0.22 * high), sides, rows), matt(tint, Material.CLOTH))
    return form


def _shopping_cart(form: Form, size: Size, coarse: bool) -> None:
    long, wide, high = size
    x, y = long / 2, wide / 2
    base = (-0.5 * x, 0.78 * x, -0.62 * y, 0.62 * y, 0.5 * high)
    top = (-0.74 * x, x, -y, y, 0.92 * high)
    for at in (-0.6 * x, 0.68 * x):
        for side in (1, -1):
            hub = (at, side * 0.7 * y, 0.065)
            if coarse:
                _castor(form, hub, 0.065, side, coarse)
            else:
                form.add(cylinder((at, hub[1] - 0.02, 0.065), (at, hub[1] + 0.02, 0.065), 0.065, 7), RUBBER)
    for side in (1, -1):
        line = [(0.7 * x, side * 0.68 * y, 0.12), (-0.6 * x, side * 0.68 * y, 0.16),
                (-0.72 * x, side * 0.8 * y, 0.88 * high), (-x, side * 0.85 * y, high - 0.02)]  # fmt: skip
        _rod(form, [*line[:2], line[3]] if coarse else line, 0.016, METAL, coarse)
    _rod(form, [(-x + 0.02, -0.9 * y, high - 0.022), (-x + 0.02, 0.9 * y, high - 0.022)], 0.022, INK, coarse)
    low, up = _level(base), _level(top)
    form.add(patch(low), METAL)
    if not coarse:
        form.add(patch(low[::-1]), STEEL)
    for side in range(4):
        quad = np.array([low[side], low[(side + 1) % 4], up[(side + 1) % 4], up[side]])
        # Wires across a four-cornered side, seen from both sides.
        upright = 2 if coarse else 9
        level = 1 if coarse else 4
        thin = 0.05 if coarse else 0.022
        bars = [
            window(s - thin / 2, s + thin / 2, 0.0, 1.0)
            for s in np.linspace(thin, 1 - thin, upright).tolist()
        ]
        bars += [window(0.0, 1.0, s - 0.03, s + 0.03) for s in np.linspace(0.97, 0.03, level).tolist()]
        for bar in bars:
            form.add(patch(quad, bar, 0.003), METAL)
            form.add(patch(quad[[1, 0, 3, 2]], bar, 0.003), METAL)


def _level(extent: tuple[float, float, float, float, float]) -> Floats:
    x0, x1, y0, y1, z = extent
    return np.array([(x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z)])


# Fire and water as figures: flames that lick and flicker, and the brown sheet of a flood.

_TONGUES = ((0.0, 0.0, 1.0), (0.55, 0.2, 0.72), (-0.5, 0.35, 0.62), (0.1, -0.55, 0.8), (-0.35, -0.4, 0.55))
"""Where tongues of fire stand, in shares of the half width, and how high they are."""
_HEIGHTS, _GIRTHS = (0.0, 0.28, 0.62, 1.0), (0.75, 1.0, 0.6, 0.04)
_TIP, _MIDDLE, _FOOT = (1.0, 0.13, 0.015), (1.0, 0.36, 0.04), (1.0, 0.68, 0.2)
_GLOWS = (0.8, 1.1, 1.4)


def build_fire(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """Tongues of fire that swing with the gait and flicker as beacons do.

    Args:
        rng: of their places.
    """
    form = Form(Semantic.OBJECT)
    long, wide, high = size
    sides = 4 if coarse else 6
    for number, (x, y, tall) in enumerate(_TONGUES[: 3 if coarse else 5]):
        foot = (0.5 * long * x * 0.7, 0.5 * wide * y * 0.7)
        top = high * tall * float(rng.uniform(0.9, 1.05))
        lean = rng.uniform(-0.12, 0.12, 2) * (long, wide)
        joint = Joint((*foot, 0.0), swing=0.16, phase=float(rng.uniform(0, 6.28)))
        spine = [(foot[0] + lean[0] * u, foot[1] + lean[1] * u, 0.02 + top * u) for u in _HEIGHTS]
        radii = [0.27 * min(long, wide) * girth for girth in _GIRTHS]
        for part, colour in enumerate((_FOOT, _MIDDLE, _TIP)):
            # The tips flicker by turns.
            bulb = Bulb(int(Lamp.BEACON), colour, _GLOWS[2 - part], turn=number % 2 if part == 2 else -1)
            piece = pipe(spine[part : part + 2], radii[part : part + 2], sides)
            form.add(piece, Paint(colour, Material.LAMP), joint=joint, bulb=bulb)
    return form


def build_podium(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A low platform of boards to speak from."""
    form = Form(Semantic.OBJECT)
    long, wide, high = size
    wood = scale_brightness(matt((0.25, 0.16, 0.085)), float(rng.uniform(0.7, 1.4)))
    form.add(box((-long / 2, -wide / 2, 0.0), (long / 2, wide / 2, high)), wood)
    for k in range(0 if coarse else 3):
        at = (k / 2 - 0.5) * 0.9 * long
        form.add(box((at - 0.02, -wide / 2 - 0.004, 0.0), (at + 0.02, wide / 2 + 0.004, high)), SHADE)
    return form


def build_earth(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A heap of earth and stones that came down a slope."""
    form = Form(Semantic.TERRAIN)
    long, wide, high = size
    soil = matt((0.11, 0.07, 0.04))
    for part in range(3 if coarse else 7):
        x, y = rng.uniform(-0.3, 0.3, 2) * (long, wide)
        tall, reach = (high, 0.5) if part == 0 else (high * float(rng.uniform(0.45, 0.8)), 0.25)
        at = (0.0, 0.0) if part == 0 else (float(x), float(y))
        spine = [(*at, share * tall) for share in (0.0, 0.4, 0.75, 1.0)]
        radii = [reach * min(long, wide) * girth for girth in (1.0, 0.82, 0.5, 0.06)]
        heap = pipe(spine, radii, 7 if coarse else 11)
        form.add(heap, scale_brightness(soil, float(rng.uniform(0.7, 1.4))))
    for _ in range(4 if coarse else 26):
        x, y = rng.uniform(-0.46, 0.46, 2) * (long, wide)
        radius = float(rng.uniform(0.12, 0.42))
        z = radius + 0.6 * high * max(0.0, 1.0 - 2.2 * max(abs(x) / long, abs(y) / wide))
        stone = _lump(rng, radius, 4 if coarse else 6)
        grey = float(rng.uniform(0.08, 0.3))
        form.add(stone.moved((float(x), float(y), float(z))), matt((grey, 0.92 * grey, 0.8 * grey)))
    return form


def build_hailstones(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """Hailstones that lie about on the ground."""
    form = Form(Semantic.TERRAIN)
    long, wide, high = size
    ice = Paint((0.72, 0.78, 0.82), Material.GLOSSY)
    for _ in range(60 if coarse else 420):
        x, y = rng.uniform(-0.5, 0.5, 2) * (long, wide)
        radius = float(rng.uniform(0.3, 0.5)) * high
        stone = ball((float(x), float(y), radius), (radius, radius, radius), 4, 2)
        form.add(stone, ice)
    return form


def build_volcano(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A mountain with a crater that glows, far down the street."""
    form = Form(Semantic.TERRAIN)
    long, wide, high = size
    sides = 10 if coarse else 18
    spine = [(0.0, 0.0, share * high) for share in (0.0, 0.3, 0.65, 0.94)]
    radii = [0.5 * min(long, wide) * share for share in (1.0, 0.62, 0.32, 0.16)]
    form.add(pipe(spine, radii, sides), matt((0.05, 0.042, 0.04)))
    glow = Bulb(int(Lamp.BEACON), _MIDDLE, _GLOWS[1], turn=-1)
    crater = [(0.0, 0.0, 0.94 * high), (0.0, 0.0, high)]
    form.add(pipe(crater, [radii[3], 0.5 * radii[3]], sides), Paint(_MIDDLE, Material.LAMP), bulb=glow)
    for _ in range(2 if coarse else 5):
        turn = float(rng.uniform(0, 6.28))
        c, s = np.cos(turn), np.sin(turn)
        way = [
            ((r + 0.3) * c, (r + 0.3) * s, z)
            for (_, _, z), r in zip(spine[::-1][:3], radii[::-1][:3], strict=True)
        ]
        form.add(pipe(way, 0.012 * long, 4), Paint(_FOOT, Material.LAMP), bulb=glow)
    return form


def build_flood(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A sheet of brown water with ripples of other browns."""
    form = Form(Semantic.TERRAIN)
    long, wide, high = size
    x, y = long / 2, wide / 2
    brown = Paint((0.085, 0.062, 0.035), Material.GLOSSY)
    form.add(box((-x, -y, 0.0), (x, y, high - 0.012)), brown)
    for _ in range(12 if coarse else 240):
        at, across = rng.uniform(-x + 2.0, x - 2.0), rng.uniform(-y + 1.0, y - 1.0)
        half, thin = rng.uniform(0.3, 1.0), rng.uniform(0.04, 0.12)
        quad = np.array(
            [(at - thin, across - half, high - 0.012), (at + thin, across - 0.8 * half, high - 0.012),
             (at + 1.5 * thin, across + 0.8 * half, high - 0.012), (at, across + half, high - 0.012)]
        )  # fmt: skip
        tone = float(rng.uniform(0.4, 2.4))
        form.add(patch(quad, lift=0.01), Paint((0.085 * tone, 0.065 * tone, 0.04 * tone), Material.GLOSSY))
    return form
