"""Two-wheelers of few triangles, for what is far away."""

from __future__ import annotations

import numpy as np

from roadaware.scenes.simulator.figures.colours import INK, PLASTIC, RUBBER, STEEL, car_paint, gloss
from roadaware.scenes.simulator.figures.form import Form, Paint, Size
from roadaware.scenes.simulator.figures.parts import AMBER, BLINKERS, BRAKE_BULB, CLEAR, HEAD_BULB, RED
from roadaware.scenes.simulator.figures.shapes import Solid, cylinder, patch, wedge
from roadaware.scenes.simulator.mesh import Semantic
from roadaware.scenes.simulator.people.machines import saddle

FRAMES = ((0.3, 0.02, 0.02), (0.02, 0.05, 0.2), (0.02, 0.02, 0.022), (0.45, 0.45, 0.45), (0.02, 0.12, 0.1))
"""Colours of bicycle frames."""


def frame_paint(rng: np.random.Generator) -> Paint:
    """A coat for the frame of a bicycle.

    Args:
        rng: makes the choice.
    """
    return gloss(FRAMES[int(rng.integers(len(FRAMES)))])


def far_bicycle(model: str, size: Size, rng: np.random.Generator) -> Form:
    """A bicycle or cargo bike from far away.

    Args:
        model: bicycle or cargo_bike.
        size: length, width and height in metres.
        rng: of its colours.
    """
    form, contact, paint = Form(Semantic.BICYCLE), saddle(model, size), frame_paint(rng)
    rear_r = 0.34
    front_r = 0.25 if model == "cargo_bike" else rear_r
    rear, front = rear_r - size[0] / 2, size[0] / 2 - front_r
    form.wheelbase_m = front - rear
    for x, radius in ((rear, rear_r), (front, front_r)):
        _hoop(form, x, radius)
        if x == rear or model == "bicycle":
            _plank(form, x, (-0.025, 0.025, 0.0, 2 * radius), RUBBER)
    (seat_x, seat_z), (crank_x, crank_z) = contact.seat, contact.crank
    grip_x, _, grip_z = contact.grips
    _bar(form, (crank_x, crank_z), (seat_x, seat_z), paint)
    if model == "cargo_bike":
        foot = (grip_x + 0.2, front - 0.35, -0.22, 0.22, 0.3)
        chest = wedge(foot, (grip_x + 0.14, front - 0.17, -0.31, 0.31, 0.82))
        form.add(chest.without(4), gloss((0.2, 0.12, 0.06)))
        _bar(form, (grip_x + 0.12, 0.45), (grip_x + 0.06, grip_z), paint)
    else:
        _bar(form, (rear, rear_r), (front - 0.16, 0.72), paint)
        _bar(form, (front, front_r), (grip_x - 0.04, grip_z), paint)
    low, high = size[2] - 0.08, size[2]
    _plank(form, grip_x, (-size[1] / 2, size[1] / 2, low, high), STEEL)
    form.add(patch(_upright(front - 0.1, (-0.04, 0.04, 0.84, 0.94), 1)), CLEAR, bulb=HEAD_BULB)
    return form


def far_motorbike(model: str, size: Size, rng: np.random.Generator) -> Form:
    """A motorbike or scooter from far away.

    Args:
        model: motorbike or scooter.
        size: length, width and height in metres.
        rng: of its colours.
    """
    form, contact, paint = Form(Semantic.MOTORCYCLE), saddle(model, size), car_paint(rng)
    radius = 0.31 if model == "motorbike" else 0.235
    rear, front = radius - size[0] / 2, size[0] / 2 - radius
    form.wheelbase_m = front - rear
    for x in (rear, front):
        form.add(cylinder((x, -0.06, radius), (x, 0.06, radius), radius, 6), RUBBER)
    (seat_x, seat_z), grips = contact.seat, contact.grips
    back = rear - 0.18
    if model == "motorbike":
        block = wedge(
            (rear + 0.2, 0.25, -0.18, 0.18, 0.22), (back, grips[0] - 0.05, -0.15, 0.15, seat_z + 0.06)
        )
        form.add(block.without(4), paint)
    else:
        block = wedge(
            (rear + 0.1, seat_x + 0.28, -0.18, 0.18, 0.26), (back, seat_x + 0.2, -0.17, 0.17, seat_z)
        )
        form.add(block.without(4), paint, {5: INK})
        _plank(form, grips[0] - 0.06, (-0.19, 0.19, 0.2, 0.95), paint)
    _bar(form, (front, radius), (grips[0], grips[2]), STEEL)
    _plank(form, grips[0], (-size[1] / 2, size[1] / 2, size[2] - 0.1, size[2]), PLASTIC)
    ahead = grips[0] + 0.12
    form.add(patch(_upright(ahead, (-0.1, 0.1, 0.76, 0.94), 1)), CLEAR, bulb=HEAD_BULB)
    form.add(patch(_upright(back - 0.02, (-0.1, 0.1, seat_z - 0.12, seat_z), -1)), RED, bulb=BRAKE_BULB)
    for side in (1, -1):
        near, far = sorted((side * 0.13, side * 0.24))
        for x, sign in ((ahead, 1), (back - 0.02, -1)):
            quad = _upright(x, (near, far, seat_z - 0.12, seat_z), sign)
            form.add(patch(quad, [(0, 0), (1, 0), (0.5, 1)]), AMBER, bulb=BLINKERS[side])
    return form


def _hoop(form: Form, x: float, radius: float) -> None:
    """A ring seen from both sides."""
    angle = np.arange(6) * (np.pi / 3) - np.pi / 2
    rim = np.column_stack([x + radius * np.cos(angle), np.zeros(6), radius + radius * np.sin(angle)])
    hole = rim * 0.78 + np.array([x, 0.0, radius]) * 0.22
    vertices = np.concatenate([rim, hole])
    k = np.arange(6)
    after = (k + 1) % 6
    quads = np.stack([k, after, after + 6, k, after + 6, k + 6], axis=1).reshape(-1, 3)
    for turned in (quads, quads[:, ::-1]):
        form.add(Solid(vertices, turned, np.zeros(len(turned), dtype=np.int64)), RUBBER)


def _bar(form: Form, low: tuple[float, float], high: tuple[float, float], paint: Paint) -> None:
    """A flat bar between two points, x and z, seen from both sides."""
    along = np.array([high[0] - low[0], high[1] - low[1]])
    across = np.array([-along[1], along[0]]) / np.hypot(*along) * 0.025
    corners = [low - across, low + across, high + across, high - across]
    quad = np.array([(x, 0.0, z) for x, z in corners])
    form.add(patch(quad, lift=0.012), paint)
    form.add(patch(quad[::-1], lift=0.012), paint)


def _plank(form: Form, x: float, extent: tuple[float, float, float, float], paint: Paint) -> None:
    """An upright rectangle across, seen from the front and the rear; `extent` is y and z from and to."""
    for sign in (1, -1):
        form.add(patch(_upright(x, extent, sign), lift=0.01), paint)


def _upright(
    x: float, extent: tuple[float, float, float, float], sign: int
) -> list[tuple[float, float, float]]:
    y0, y1, z0, z1 = extent
    quad = [(x, y0, z0), (x, y1, z0), (x, y1, z1), (x, y0, z1)]
    return quad if sign > 0 else [quad[1], quad[0], quad[3], quad[2]]
