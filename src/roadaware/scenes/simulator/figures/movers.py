"""Objects that are moved or move by themselves: dog, stroller and cart."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.figures.colours import (
    INK,
    METAL,
    PLASTIC,
    RIM,
    RUBBER,
    SHADE,
    STEEL,
    matt,
    shaded,
)
from roadaware.scenes.simulator.figures.form import Form, Joint, Paint, Size
from roadaware.scenes.simulator.figures.shapes import (
    ball,
    box,
    cylinder,
    disc,
    loft,
    patch,
    pipe,
    ring,
    wedge,
    window,
)
from roadaware.scenes.simulator.mesh import Material, Semantic

COATS = ((0.16, 0.09, 0.04), (0.03, 0.026, 0.024), (0.34, 0.24, 0.13), (0.5, 0.46, 0.4), (0.09, 0.05, 0.03))
"""Of dogs."""


def dog(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A dog whose legs swing with its gait and whose tail wags.

    Args:
        size: length, width and height in metres.
        rng: of its coat.
        coarse: whether a few triangles are enough.
    """
    form = Form(Semantic.OBJECT)
    long, wide, high = size
    coat = matt(np.array(COATS[int(rng.integers(len(COATS)))]) * rng.uniform(0.8, 1.2), Material.CLOTH)
    pale = shaded(coat, 1.7) if rng.random() < 0.5 else coat
    y = 0.5 * wide
    _trunk(form, size, coat, coarse)
    muzzle = [(0.38 * long, 0.0, 0.835 * high), (0.49 * long, 0.0, 0.8 * high)]
    form.add(pipe(muzzle, [0.3 * y, 0.19 * y], 3 if coarse else 6), pale)
    if not coarse:
        form.add(box((0.485 * long, -0.12 * y, 0.8 * high), (0.5 * long, 0.12 * y, 0.835 * high)), INK)
        for side in (1, -1):
            ear = [(0.33 * long, side * 0.3 * y, 0.92 * high), (0.315 * long, side * 0.42 * y, high)]
            form.add(pipe(ear, [0.22 * y, 0.05 * y], 3), shaded(coat, 0.6))
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


def stroller(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A stroller with a hood, whose wheels roll.

    Args:
        size: length, width and height in metres.
        rng: of its colours.
        coarse: whether a few triangles are enough.
    """
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
    form.add(seat, cloth, {5: shaded(cloth, 0.3)})
    angles = np.radians(np.linspace(15, 165, 4 if coarse else 7))
    arc = np.column_stack(
        [0.62 * x * np.cos(angles) - 0.2 * x, 0.74 * y + 0.0 * angles, 0.4 * high * np.sin(angles)]
    )
    arc[:, 2] += 0.54 * high
    form.add(loft(np.stack([arc * [1.0, -1.0, 1.0], arc])), shaded(cloth, 1.3))
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


def cart(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A shopping cart with sides of wire, or a hand cart with a load.

    Args:
        size: length, width and height in metres.
        rng: decides on which.
        coarse: whether a few triangles are enough.
    """
    form = Form(Semantic.OBJECT)
    form.wheelbase_m = 0.6 * size[0]
    if rng.random() < 0.65:
        _shopping_cart(form, size, coarse)
    else:
        _hand_cart(form, size, rng, coarse)
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
        _wires(form, quad, 2 if coarse else 9, 1 if coarse else 4, coarse)


def _level(extent: tuple[float, float, float, float, float]) -> Floats:
    x0, x1, y0, y1, z = extent
    return np.array([(x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z)])


def _wires(form: Form, quad: Floats, upright: int, level: int, coarse: bool) -> None:
    """Wires across a four-cornered side, seen from both sides."""
    thin = 0.05 if coarse else 0.022
    bars = [
        window(s - thin / 2, s + thin / 2, 0.0, 1.0) for s in np.linspace(thin, 1 - thin, upright).tolist()
    ]
    bars += [window(0.0, 1.0, s - 0.03, s + 0.03) for s in np.linspace(0.97, 0.03, level).tolist()]
    for bar in bars:
        form.add(patch(quad, bar, 0.003), METAL)
        form.add(patch(quad[[1, 0, 3, 2]], bar, 0.003), METAL)


def _hand_cart(form: Form, size: Size, rng: np.random.Generator, coarse: bool) -> None:
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
    _rod(form, [(-x + 0.02, -0.64 * y, 0.85 * high), (-x + 0.02, 0.64 * y, 0.85 * high)], 0.022, INK, coarse)
    trough = wedge((-0.5 * x, 0.9 * x, -0.74 * y, 0.74 * y, 0.44 * high), (-0.56 * x, x, -y, y, 0.72 * high))
    form.add(trough, wood, {5: SHADE})
    sides, rows = (4, 2) if coarse else (7, 3)
    for number in range(1 if coarse else 3):
        place = ((0.45 * number - 0.4) * x + 0.12, 0.2 * y * (number - 1), 0.78 * high)
        tint = rng.uniform(0.05, 0.3, 3) if number == 1 else np.array([0.3, 0.24, 0.15])
        form.add(ball(place, (0.2, 0.7 * y, 0.22 * high), sides, rows), matt(tint, Material.CLOTH))
