"""Two-wheelers without their riders: bicycle, cargo bike, motorbike, scooter."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Lamp
from roadaware.simulator.figures.form import (
    INK,
    METAL,
    PLASTIC,
    PLATE,
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
    patch,
    pipe,
    prism,
    ring,
    sample_car_paint,
    wedge,
)
from roadaware.simulator.figures.vehicle_parts import AMBER, BLINKERS, BRAKE_BULB, CLEAR, HEAD_BULB, RED
from roadaware.simulator.mesh import Semantic
from roadaware.simulator.people.skeleton import Saddle, scale_saddle

# Two-wheelers of few triangles, for what is far away.

FRAMES = ((0.3, 0.02, 0.02), (0.02, 0.05, 0.2), (0.02, 0.02, 0.022), (0.45, 0.45, 0.45), (0.02, 0.12, 0.1))
"""Colours of bicycle frames."""


def sample_frame_paint(rng: np.random.Generator) -> Paint:
    """A coat for the frame of a bicycle."""
    return gloss(FRAMES[int(rng.integers(len(FRAMES)))])


def build_far_bicycle(model: str, size: Size, rng: np.random.Generator) -> Form:
    """A bicycle or cargo bike from far away.

    Args:
        model: bicycle or cargo_bike.
    """
    form, contact, paint = Form(Semantic.BICYCLE), scale_saddle(model, size), sample_frame_paint(rng)
    rear_r = 0.34
    front_r = 0.25 if model == "cargo_bike" else rear_r
    rear, front = rear_r - size[0] / 2, size[0] / 2 - front_r
    form.wheelbase_m = front - rear
    for x, radius in ((rear, rear_r), (front, front_r)):
        # A ring seen from both sides.
        angle = np.arange(6) * (np.pi / 3) - np.pi / 2
        rim = np.column_stack([x + radius * np.cos(angle), np.zeros(6), radius + radius * np.sin(angle)])
        hole = rim * 0.78 + np.array([x, 0.0, radius]) * 0.22
        vertices = np.concatenate([rim, hole])
        k = np.arange(6)
        after = (k + 1) % 6
        quads = np.stack([k, after, after + 6, k, after + 6, k + 6], axis=1).reshape(-1, 3)
        for turned in (quads, quads[:, ::-1]):
            form.add(Solid(vertices, turned, np.zeros(len(turned), dtype=np.int64)), RUBBER)
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


def build_far_motorbike(model: str, size: Size, rng: np.random.Generator) -> Form:
    """A motorbike or scooter from far away.

    Args:
        model: motorbike or scooter.
    """
    form, contact, paint = Form(Semantic.MOTORCYCLE), scale_saddle(model, size), sample_car_paint(rng)
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


TAIL_BULB = Bulb(Lamp.HEAD, (1.0, 0.04, 0.02), 1.5)
Place = tuple[float, float, float]


class _Cycle:
    """A two-wheeler in the making: front parts steer, wheels roll.

    Args:
        form: to put it on.
        front: x of the front axle.
        rear: x of the rear axle.
    """

    def __init__(self, form: Form, front: float, rear: float) -> None:
        self.form, self.front, self.rear = form, front, rear
        form.wheelbase_m = front - rear
        self.steering = Joint((front - 0.12, 0.0, 0.5), 0.0, True)

    def tube(
        self, path: list[Place], radius: float, paint: Paint, *, steers: bool = False, sides: int = 4
    ) -> None:
        """A pipe through points."""
        joint = self.steering if steers else None
        self.form.add(pipe(path, radius, sides).without(sides, sides + 1), paint, joint=joint)

    def wheel(self, x: float, radius: float, thick: float, wide: float, spokes: int) -> None:
        """A wheel with spokes, so that one sees it turn."""
        steers = x == self.front
        pivot = (x, 0.0, radius)
        tyre = ring(pivot, radius, thick, wide, sides=14, section=3)
        self.form.add(tyre, RUBBER, joint=self.steering if steers else None)
        inner = radius - thick
        for spoke in range(spokes):
            rod = box((x - inner, -0.007, radius - 0.009), (x + inner, 0.007, radius + 0.009)).without(0, 1)
            joint = Joint(pivot, radius, steers, hinge=self.steering.pivot if steers else None)
            self.form.add(rod.spun(180 * spoke / spokes, 1, pivot), RIM, joint=joint)
        hub = cylinder((x, -0.05, radius), (x, 0.05, radius), 0.035, 5)
        self.form.add(hub, STEEL, joint=self.steering if steers else None)

    def crank(self, contact: Saddle) -> None:
        """Cranks with pedals, which go round with the gait."""
        (x, z), long, y = contact.crank, contact.crank_m, contact.pedal_y
        joint = Joint((x, 0.0, z), cranks=True)
        self.form.add(disc((x, -0.06, z), 0.1, (0, -1, 0), 8), STEEL)
        self.form.add(disc((x, -0.055, z), 0.1, (0, 1, 0), 8), STEEL)
        for side in (1, -1):
            near, far = sorted((side * 0.05, side * 0.07))
            arm = wedge(
                (x - 0.015, x + 0.015, near, far, z), (x - 0.012, x + 0.012, near, far, z + side * long)
            )
            self.form.add(arm, METAL, joint=joint)
            near, far = sorted((side * 0.06, side * (y + 0.05)))
            pedal = box((x - 0.045, near, z + side * long - 0.012), (x + 0.045, far, z + side * long + 0.012))
            self.form.add(pedal, PLASTIC, joint=joint)


def build_bicycle(model: str, size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A bicycle or a cargo bike.

    Args:
        model: bicycle or cargo_bike.
    """
    if coarse:
        return build_far_bicycle(model, size, rng)
    form = Form(Semantic.BICYCLE)
    contact = scale_saddle(model, size)
    paint = sample_frame_paint(rng)
    rear_r = 0.34
    front_r = 0.25 if model == "cargo_bike" else rear_r
    cycle = _Cycle(form, size[0] / 2 - front_r, rear_r - size[0] / 2)
    cycle.wheel(cycle.rear, rear_r, 0.05, 0.05, 4)
    cycle.wheel(cycle.front, front_r, 0.05, 0.05, 4)
    _frame(cycle, contact, paint, rear_r)
    if model == "cargo_bike":
        _cargo(cycle, contact, paint, front_r, size)
    else:
        grip_x, grip_y, grip_z = contact.grips
        seat_x, seat_z = contact.seat
        head: Place = (cycle.front - 0.16, 0.0, 0.78)
        stem: Place = (cycle.front - 0.22, 0.0, grip_z - 0.02)
        crank: Place = (contact.crank[0], 0.0, contact.crank[1])
        cycle.tube([(head[0] + 0.03, 0.0, 0.68), crank], 0.024, paint)
        cycle.tube([head, (seat_x + 0.03, 0.0, seat_z - 0.16)], 0.02, paint)
        for side in (1, -1):
            prong: list[Place] = [(cycle.front, side * 0.05, front_r), (head[0] + 0.03, side * 0.03, 0.7)]
            cycle.tube(prong, 0.014, paint, steers=True, sides=3)
        cycle.tube([(head[0] + 0.03, 0.0, 0.66), stem], 0.019, paint, steers=True)
        _bars(cycle, stem, (grip_x, grip_y, grip_z), size)
        lamp = box((stem[0] + 0.05, -0.035, 0.86), (stem[0] + 0.11, 0.035, 0.94))
        cycle.form.add(lamp, CLEAR, bulb=HEAD_BULB, joint=cycle.steering)
        if rng.random() < 0.5:
            high = 2 * rear_r + 0.06
            front, rear = contact.seat[0] - 0.05, cycle.rear - 0.22
            cycle.form.add(box((rear, -0.07, high), (front, 0.07, high + 0.02)), STEEL)
            for side in (1, -1):
                near, far = sorted((side * 0.07, side * 0.19))
                bag = wedge(
                    (rear + 0.06, front - 0.06, near, far, high - 0.3), (rear, front - 0.02, near, far, high)
                )
                cycle.form.add(bag, INK)
    return form


def _frame(cycle: _Cycle, contact: Saddle, paint: Paint, radius: float) -> None:
    (seat_x, seat_z), crank = contact.seat, (contact.crank[0], 0.0, contact.crank[1])
    top: Place = (seat_x + 0.03, 0.0, seat_z - 0.16)
    cycle.tube([crank, (seat_x, 0.0, seat_z - 0.03)], 0.02, paint)
    for side in (1, -1):
        hub = (cycle.rear, side * 0.06, radius)
        cycle.tube([hub, crank], 0.013, paint, sides=3)
        cycle.tube([hub, top], 0.013, paint, sides=3)
    low, high = seat_z - 0.035, seat_z
    plan = [(seat_x - 0.13, -0.09), (seat_x + 0.16, -0.025), (seat_x + 0.16, 0.025), (seat_x - 0.13, 0.09)]
    cycle.form.add(prism(plan, low, high), INK)
    tail = box((seat_x - 0.15, -0.035, seat_z - 0.14), (seat_x - 0.1, 0.035, seat_z - 0.07))
    cycle.form.add(tail, RED, bulb=TAIL_BULB)
    cycle.crank(contact)


def _bars(cycle: _Cycle, stem: Place, grips: Place, size: Size) -> None:
    x, y, z = grips
    y = max(y + 0.04, size[1] / 2)
    for side in (1, -1):
        bend = (stem[0], side * 0.12, size[2] - 0.02)
        cycle.tube(
            [stem, bend, (x + 0.02, side * (y - 0.12), z), (x - 0.02, side * y, z)], 0.015, STEEL, steers=True
        )


def _cargo(cycle: _Cycle, contact: Saddle, paint: Paint, radius: float, size: Size) -> None:
    grips = contact.grips
    column: Place = (grips[0] + 0.14, 0.0, 0.45)
    crank: Place = (contact.crank[0], 0.0, contact.crank[1])
    seat = contact.seat
    cycle.tube([crank, column, (cycle.front - 0.12, 0.0, radius + 0.02)], 0.026, paint)
    cycle.tube([column, (seat[0] + 0.03, 0.0, seat[1] - 0.2)], 0.02, paint)
    stem: Place = (grips[0] + 0.06, 0.0, grips[2] - 0.02)
    cycle.form.add(pipe([column, stem], 0.019, 4), paint)
    still = _Cycle(cycle.form, cycle.front, cycle.rear)
    for side in (1, -1):
        path = [stem, (stem[0], side * 0.12, size[2] - 0.02), (grips[0] - 0.02, side * size[1] / 2, grips[2])]
        still.tube(path, 0.015, STEEL)
    front = cycle.front - radius - 0.02
    chest = wedge(
        (column[0] + 0.06, front - 0.1, -0.22, 0.22, 0.3), (column[0], front + 0.1, -0.31, 0.31, 0.82)
    )
    cycle.form.add(chest, gloss((0.2, 0.12, 0.06)), {5: SHADE})
    for side in (1, -1):
        cycle.tube(
            [(cycle.front, side * 0.05, radius), (cycle.front - 0.1, 0.0, 0.6)],
            0.014,
            paint,
            steers=True,
            sides=3,
        )
    lamp = box((front + 0.09, -0.04, 0.7), (front + 0.14, 0.04, 0.78))
    cycle.form.add(lamp, CLEAR, bulb=HEAD_BULB)


def build_motorbike(model: str, size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A motorbike or a scooter.

    Args:
        model: motorbike or scooter.
    """
    if coarse:
        return build_far_motorbike(model, size, rng)
    form = Form(Semantic.MOTORCYCLE)
    contact, paint = scale_saddle(model, size), sample_car_paint(rng)
    radius = 0.31 if model == "motorbike" else 0.235
    thick = 0.11 if model == "motorbike" else 0.1
    cycle = _Cycle(form, size[0] / 2 - radius, radius - size[0] / 2)
    for x in (cycle.front, cycle.rear):
        cycle.wheel(x, radius, thick, 0.13, 3)
    if model == "motorbike":
        _motor(cycle, contact, paint, radius, size)
    else:
        _step_through(cycle, contact, paint, radius, size)
    return form


def _spine(
    rows: list[tuple[float, float, float, float]],
) -> Floats:
    """Rings of six points across x from rows of x, lowest z, highest z and half width."""
    return np.array(
        [
            [(x, -0.6 * y, a), (x, 0.6 * y, a), (x, y, 0.5 * (a + b)), (x, 0.55 * y, b), (x, -0.55 * y, b),
             (x, -y, 0.5 * (a + b))]
            for x, a, b, y in rows
        ]
    )  # fmt: skip


def _motor(cycle: _Cycle, contact: Saddle, paint: Paint, radius: float, size: Size) -> None:
    form, (seat_x, seat_z) = cycle.form, contact.seat
    grips = contact.grips
    tank = [(seat_x + 0.2, 0.62, seat_z + 0.02, 0.12), (seat_x + 0.36, 0.62, seat_z + 0.16, 0.16),
            (seat_x + 0.6, 0.66, seat_z + 0.14, 0.15), (seat_x + 0.68, 0.7, seat_z + 0.08, 0.08)]  # fmt: skip
    form.add(loft(_spine(tank)), paint)
    bench = [(seat_x - 0.52, seat_z - 0.02, seat_z + 0.1, 0.08),
             (seat_x - 0.2, seat_z - 0.1, seat_z + 0.06, 0.13),
             (seat_x + 0.05, seat_z - 0.12, seat_z, 0.15),
             (seat_x + 0.22, seat_z - 0.12, seat_z + 0.03, 0.11)]  # fmt: skip
    form.add(loft(_spine(bench)), INK)
    rear = [(seat_x - 0.56, seat_z - 0.06, seat_z + 0.03, 0.07), (seat_x - 0.1, 0.56, seat_z - 0.06, 0.13)]
    form.add(loft(_spine(rear)), paint)
    engine = [(-0.3, 0.26, 0.58, 0.15), (-0.1, 0.2, 0.66, 0.2), (0.22, 0.24, 0.62, 0.17)]
    form.add(loft(_spine(engine)), STEEL)
    for side in (1, -1):
        cycle.tube([(cycle.rear, side * 0.09, radius), (-0.22, side * 0.12, 0.42)], 0.03, STEEL)
        cycle.tube(
            [(cycle.front, side * 0.09, radius), (cycle.front - 0.26, side * 0.09, 0.98)],
            0.026,
            METAL,
            steers=True,
        )
        bar: list[Place] = [(cycle.front - 0.26, side * 0.06, 0.98), (grips[0], side * size[1] / 2, grips[2])]
        cycle.tube(bar, 0.018, INK, steers=True)
    pipe_end = [(0.1, -0.16, 0.3), (-0.3, -0.19, 0.28), (cycle.rear - 0.2, -0.22, 0.42)]
    form.add(pipe(pipe_end, [0.03, 0.05, 0.065], 6), METAL)
    guard = wedge((cycle.front - 0.2, cycle.front + 0.16, -0.08, 0.08, 2 * radius + 0.0),
                  (cycle.front - 0.14, cycle.front + 0.06, -0.07, 0.07, 2 * radius + 0.05))  # fmt: skip
    form.add(guard, paint, joint=cycle.steering)
    _faces(cycle, (cycle.front - 0.12, 0.84, 0.11), (seat_x - 0.56, seat_z - 0.04), size)


def _step_through(cycle: _Cycle, contact: Saddle, paint: Paint, radius: float, size: Size) -> None:
    form, (seat_x, seat_z) = cycle.form, contact.seat
    grips = contact.grips
    body = [(cycle.rear - 0.2, 0.5, 0.66, 0.1), (cycle.rear, 0.38, seat_z - 0.08, 0.2),
            (seat_x + 0.1, 0.26, seat_z - 0.07, 0.19), (seat_x + 0.26, 0.24, seat_z - 0.1, 0.13)]  # fmt: skip
    form.add(loft(_spine(body)), paint)
    bench = [(seat_x - 0.36, seat_z - 0.1, seat_z + 0.04, 0.13), (seat_x, seat_z - 0.1, seat_z, 0.16),
             (seat_x + 0.28, seat_z - 0.1, seat_z - 0.01, 0.1)]  # fmt: skip
    form.add(loft(_spine(bench)), INK)
    foot = contact.crank[0]
    form.add(box((seat_x + 0.15, -0.17, 0.2), (foot + 0.2, 0.17, 0.27)), paint, {5: PLASTIC})
    shield = wedge((foot + 0.14, foot + 0.22, -0.2, 0.2, 0.2), (foot + 0.02, foot + 0.12, -0.17, 0.17, 0.84))
    form.add(shield, paint)
    nose = wedge((foot + 0.06, foot + 0.24, -0.1, 0.1, 0.8), (foot + 0.04, foot + 0.16, -0.12, 0.12, 1.02))
    form.add(nose, paint, joint=cycle.steering)
    guard = wedge((cycle.front - 0.24, cycle.front + 0.14, -0.09, 0.09, 2 * radius - 0.06),
                  (cycle.front - 0.16, cycle.front + 0.04, -0.08, 0.08, 2 * radius + 0.07))  # fmt: skip
    form.add(guard, paint, joint=cycle.steering)
    for side in (1, -1):
        cycle.tube(
            [(cycle.front, side * 0.08, radius), (foot + 0.16, side * 0.06, 0.72)], 0.024, METAL, steers=True
        )
        cycle.tube(
            [(foot + 0.08, side * 0.08, 1.0), (grips[0], side * size[1] / 2, grips[2])],
            0.018,
            INK,
            steers=True,
        )
    _faces(cycle, (foot + 0.2, 0.92, 0.08), (cycle.rear - 0.2, 0.6), size)


def _faces(cycle: _Cycle, head: Place, tail: tuple[float, float], size: Size) -> None:
    """Lamps, plate and mirrors; `head` is x, z and radius of a lamp, `tail` x and z of the other."""
    form, (x, z, radius) = cycle.form, head
    lamp = ball((x, 0.0, z), (0.09, radius, radius), 7, 3)
    form.add(lamp, CLEAR, bulb=HEAD_BULB, joint=cycle.steering)
    rear_x, rear_z = tail
    form.add(box((rear_x - 0.04, -0.09, rear_z - 0.02), (rear_x, 0.09, rear_z + 0.07)), RED, bulb=BRAKE_BULB)
    for side in (1, -1):
        for at, high, joint in ((x - 0.03, z + 0.0, cycle.steering), (rear_x, rear_z - 0.03, None)):
            near, far = sorted((side * 0.13, side * 0.2))
            blinker = box((at - 0.03, near, high - 0.03), (at + 0.03, far, high + 0.03))
            form.add(blinker, AMBER, bulb=BLINKERS[side], joint=joint)
    form.add(box((rear_x - 0.05, -0.1, rear_z - 0.26), (rear_x - 0.02, 0.1, rear_z - 0.1)), PLATE)
    for side in (1, -1):
        near, far = sorted((side * 0.26, side * 0.38))
        glass = box((x - 0.2, near, size[2] - 0.1), (x - 0.17, far, size[2]))
        form.add(glass, PLASTIC, joint=cycle.steering)
        cycle.tube(
            [(x - 0.18, side * 0.3, size[2] - 0.18), (x - 0.18, side * 0.3, size[2] - 0.05)],
            0.01,
            INK,
            steers=True,
        )
