"""Cars (hatchback, saloon, estate, SUV, city car, police car) and vans (panel van, minibus, pick-up,
ambulance).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.simulator.figures.form import (
    GLASS,
    PLASTIC,
    SHADE,
    WHITE,
    Form,
    Paint,
    Size,
    box,
    cylinder,
    gloss,
    patch,
    sample_car_paint,
    scale_brightness,
    window,
)
from roadaware.simulator.figures.vehicle_parts import (
    BEACONS,
    BLUE,
    RED,
    THIRD_BULB,
    End,
    add_cabin,
    add_door_seams,
    add_face_chequers,
    add_far_beacons,
    add_far_lamps,
    add_far_wheels,
    add_lamps,
    add_mirrored_patch,
    add_mirrors,
    add_number_plate,
    add_side_chequers,
    add_side_windows,
    add_underside,
    add_wheels,
    add_windscreen,
    build_far_cabin,
    build_far_hull,
    build_hull,
    flank,
    split_window_row,
)
from roadaware.simulator.mesh import Semantic


@dataclass(frozen=True)
class CarShape:
    """Proportions of a car; lengths from its front as shares of its length, heights of its height.

    Args:
        axles: of the front and the rear wheels.
        radius_m: of the wheels.
        low: lower edge of the body.
        nose: height of the bonnet at the front.
        cowl: x and height of the foot of the windscreen.
        roof: x of its front and its rear.
        back: x and height of the foot of the rear window.
        boot: height of the rear end.
        panes: side windows, as shares of the cabin from the front.
        seams: gaps of doors, x.
    """

    axles: tuple[float, float]
    radius_m: float
    low: float
    nose: float
    cowl: tuple[float, float]
    roof: tuple[float, float]
    back: tuple[float, float]
    boot: float
    panes: tuple[tuple[float, float], ...]
    seams: tuple[float, ...]


SHAPES = {
    "hatchback": CarShape(
        (0.205, 0.82), 0.32, 0.13, 0.5, (0.25, 0.665), (0.46, 0.9), (0.985, 0.66), 0.62,
        ((0.12, 0.5), (0.54, 0.84)), (0.31, 0.53, 0.73),
    ),
    "saloon": CarShape(
        (0.175, 0.79), 0.33, 0.13, 0.5, (0.265, 0.66), (0.43, 0.7), (0.86, 0.7), 0.67,
        ((0.14, 0.5), (0.54, 0.86)), (0.3, 0.5, 0.69),
    ),
    "estate": CarShape(
        (0.175, 0.78), 0.33, 0.13, 0.5, (0.26, 0.65), (0.43, 0.93), (0.99, 0.63), 0.6,
        ((0.1, 0.38), (0.4, 0.66), (0.69, 0.93)), (0.29, 0.48, 0.66),
    ),
    "suv": CarShape(
        (0.19, 0.8), 0.37, 0.17, 0.56, (0.25, 0.68), (0.41, 0.92), (0.985, 0.66), 0.62,
        ((0.1, 0.42), (0.45, 0.74), (0.78, 0.93)), (0.3, 0.51, 0.71),
    ),
    "city_car": CarShape(
        (0.18, 0.83), 0.28, 0.12, 0.52, (0.2, 0.64), (0.39, 0.93), (0.99, 0.63), 0.58,
        ((0.1, 0.56), (0.61, 0.9)), (0.27, 0.6),
    ),
    "police_car": CarShape(
        (0.175, 0.78), 0.33, 0.13, 0.48, (0.26, 0.62), (0.43, 0.93), (0.99, 0.6), 0.58,
        ((0.1, 0.38), (0.4, 0.66), (0.69, 0.93)), (0.29, 0.48, 0.66),
    ),
}  # fmt: skip


def build_car(model: str, size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A car.

    Args:
        model: a key of `SHAPES`.
    """
    paint = WHITE if model == "police_car" else sample_car_paint(rng)
    loaded = model in ("estate", "suv", "hatchback") and rng.random() < 0.1
    police = model == "police_car"
    top = 0.15 if loaded else 0.14 if police else 0.0
    form = Form(Semantic.CAR)
    body = _Body(SHAPES[model], (size[0], size[1], size[2] - top), paint)
    if coarse:
        body.sketch(form)
    else:
        body.model(form, rails=model in ("estate", "suv") and not loaded and rng.random() < 0.6)
    if loaded:
        middle, high = 0.5 * (body.x(body.shape.roof[0]) + body.x(body.shape.roof[1])), size[2] - top
        low = (middle - 0.75, -0.38, high - 0.02)
        form.add(box(low, (middle + 0.75, 0.38, size[2])), PLASTIC)
    if police:
        _police(form, body, size, coarse)
    return form


class _Body:
    """A car's measures in metres."""

    def __init__(self, shape: CarShape, size: Size, paint: Paint) -> None:
        self.shape, self.paint = shape, paint
        self.length, self.width, self.height = size
        self.half = self.width / 2
        self.low = shape.low * self.height
        self.front = End(self.length / 2, 1, 0.84 * self.half, self.half, 0.24)
        self.rear = End(-self.length / 2, -1, 0.88 * self.half, self.half, 0.16)
        self.foot = (
            self.x(shape.back[0]),
            shape.back[1] * self.height - 0.02,
            self.x(shape.cowl[0]),
            shape.cowl[1] * self.height - 0.02,
        )
        self.roof = (self.x(shape.roof[1]), self.x(shape.roof[0]), self.height)
        self.halves = (0.94 * self.half, 0.7 * self.half)
        self.axles = (self.x(shape.axles[0]), self.x(shape.axles[1]))

    def x(self, share: float) -> float:
        """Metres ahead of the middle, of a share of the length from the front."""
        return (0.5 - share) * self.length

    def contour(self) -> list[tuple[float, float, float]]:
        """x, height and half width from rear to front."""
        shape, high = self.shape, self.height
        back = max(self.foot[0], -self.length / 2 + 0.17)
        return [
            (self.rear.x, shape.boot * high - 0.04, self.rear.half),
            (self.rear.x + self.rear.corner, shape.boot * high, self.half),
            (back + 0.02, shape.back[1] * high, self.half),
            (self.foot[2], shape.cowl[1] * high, self.half),
            (self.front.x - self.front.corner, shape.nose * high + 0.03, self.half),
            (self.front.x, shape.nose * high - 0.06, self.front.half),
        ]

    def model(self, form: Form, *, rails: bool) -> None:
        """The car from near by."""
        shape, radius = self.shape, self.shape.radius_m
        form.wheelbase_m = self.axles[0] - self.axles[1]
        arches = [(axle, radius) for axle in self.axles]
        form.add(build_hull(self.contour(), self.low, arches), self.paint, {0: SHADE})
        add_underside(form, -0.46 * self.length, 0.46 * self.length, 0.62 * self.half, self.low, 2.1 * radius)
        add_cabin(form, self.paint, self.foot, self.roof, self.halves, shape.panes)
        belt = min(shape.back[1], shape.cowl[1]) * self.height - 0.09
        add_door_seams(
            form, self.paint, [self.x(place) for place in shape.seams], self.half, self.low + 0.06, belt
        )
        for place in shape.seams[1:]:
            edge = self.x(place) + 0.1
            quad = flank(edge + 0.17, edge, (self.half, belt - 0.08), (self.half, belt - 0.045))
            add_mirrored_patch(form, quad, None, scale_brightness(self.paint, 0.5), 0.014)
        add_wheels(form, self.axles[0], self.half - 0.01, radius, 0.21, steers=True)
        add_wheels(form, self.axles[1], self.half - 0.01, radius, 0.21)
        self._ends(form)
        add_mirrors(form, self.foot[2] - 0.32, 0.97 * self.half, belt + 0.06, (0.12, 0.2, 0.14))
        if rails:
            for side in (1, -1):
                a, b = self.roof[0] + 0.15, self.roof[1] - 0.1
                y = side * 0.6 * self.half
                form.add(cylinder((a, y, self.height - 0.02), (b, y, self.height - 0.02), 0.025, 4), PLASTIC)

    def _ends(self, form: Form) -> None:
        nose, boot = self.shape.nose * self.height, self.shape.boot * self.height
        head = (0.5, 1.0, nose - 0.25, nose - 0.09)
        tail = (0.55, 1.0, boot - 0.36, boot - 0.1)
        add_lamps(form, self.front, self.rear, head=head, tail=tail)
        grille = self.front.quad(0.44 * self.front.half, nose - 0.24, nose - 0.12)
        form.add(patch(grille), SHADE)
        for end, high in ((self.front, 0.4), (self.rear, 0.42)):
            inner = end.x - end.sign * 0.1
            outer = end.x + end.sign * 0.03
            low, far = (min(inner, outer), -0.97 * end.half, self.low), max(inner, outer)
            form.add(box(low, (far, 0.97 * end.half, self.low + 0.13)), PLASTIC)
            add_number_plate(form, end, high if end.sign > 0 else max(high, boot - 0.42))
        x, narrow = self.roof[0] - 0.02, 0.22
        brake = box((x - 0.02, -narrow, self.height - 0.1), (x + 0.05, narrow, self.height - 0.055))
        form.add(brake, RED, bulb=THIRD_BULB)

    def sketch(self, form: Form) -> None:
        """The car from far away."""
        line = self.contour()
        ends = [line[0], line[2], line[4], line[-1]]
        full = [(x, high, 0.96 * self.half) for x, high, _ in ends]
        form.add(build_far_hull(full, self.low), self.paint)
        glass = {0: GLASS, 1: GLASS, 2: GLASS, 3: GLASS}
        form.add(build_far_cabin(self.foot, self.roof, self.halves), self.paint, glass)
        for axle in self.axles:
            add_far_wheels(form, axle, self.half, self.shape.radius_m)
        nose, boot = self.shape.nose * self.height, self.shape.boot * self.height
        add_far_lamps(
            form, self.front, self.rear, head=(nose - 0.25, nose - 0.09), tail=(boot - 0.3, boot - 0.1)
        )


def _police(form: Form, body: _Body, size: Size, coarse: bool) -> None:
    middle, high = 0.55 * body.roof[1] + 0.45 * body.roof[0], body.height
    if coarse:
        add_far_beacons(form, middle, 0.62 * body.half, high - 0.02, size[2])
        return
    for side, bulb in zip((1, -1), BEACONS, strict=True):
        near, far = sorted((side * 0.08, side * 0.62 * body.half))
        form.add(box((middle - 0.13, near, high - 0.02), (middle + 0.13, far, size[2])), BLUE, bulb=bulb)
    dark, light = gloss((0.02, 0.045, 0.3)), gloss((0.75, 0.72, 0.05))
    form.add(box((middle - 0.13, -0.08, high - 0.02), (middle + 0.13, 0.08, size[2] - 0.02)), PLASTIC)
    belt = body.shape.cowl[1] * body.height - 0.1
    y = 0.952 * body.half
    quad = flank(body.axles[0] - 0.48, body.axles[1] + 0.48, (y, body.low + 0.14), (body.half, belt))
    add_side_chequers(form, quad, 7, 2, dark, light)
    nose = body.shape.nose * body.height - 0.27
    add_face_chequers(
        form, body.front.quad(0.92 * body.front.half, body.low + 0.14, nose), 10, 2, dark, light
    )
    boot = body.shape.boot * body.height
    red = gloss((0.5, 0.03, 0.02))
    add_face_chequers(form, body.rear.quad(0.5 * body.rear.half, boot - 0.34, boot - 0.1), 6, 1, red, light)


# Vans: panel van, minibus, pick-up, and the ambulance.

RADIUS_M = 0.35
LOW_M = 0.26


def build_van(model: str, size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A panel van, a minibus or an ambulance.

    Args:
        model: van, minibus or ambulance.
    """
    form = Form(Semantic.CAR)
    paint = WHITE if model == "ambulance" or rng.random() < 0.45 else sample_car_paint(rng)
    bar = 0.16 if model == "ambulance" else 0.0
    body = _Van(size[0], size[1] / 2, size[2] - bar, paint)
    body.shell(form, coarse)
    if model == "van":
        glazed, written = rng.random() < 0.4, rng.random() < 0.5
        ink = gloss(rng.uniform(0.02, 0.3, 3))
        if glazed:
            body.rear_windows(form)
        if not coarse:
            gap = body.rear.quad(0.014, LOW_M + 0.2, 0.94 * body.height)
            form.add(patch(gap), SHADE)
            rear = body.roof - 1.62
            add_door_seams(form, body.paint, [rear], body.half, LOW_M + 0.06, 0.87 * body.height, 0.98)
            rail = flank(
                rear, -body.length / 2 + 0.2, (body.half, 0.5 * body.height), (body.half, 0.515 * body.height)
            )
            add_mirrored_patch(form, rail, None, PLASTIC)
            if written:
                sign = flank(body.roof - 0.75, -body.length / 2 + 0.5, (body.half, 1.36), (body.half, 1.72))
                add_mirrored_patch(form, sign, window(0.0, 0.62, 0.45, 1.0), ink)
                add_mirrored_patch(form, sign, window(0.0, 0.9, 0.0, 0.2), ink)
    elif model == "minibus":
        spans = [(body.length * 0.12, -body.length * 0.46)] if coarse else body.seats()
        add_side_windows(form, body.half, spans, 0.53 * body.height, 0.83 * body.height)
        body.rear_windows(form)
    else:
        _ambulance(form, body, size[2], coarse)
    return form


class _Van:
    """A van's measures in metres."""

    def __init__(self, length: float, half: float, height: float, paint: Paint) -> None:
        self.length, self.half, self.height, self.paint = length, half, height, paint
        self.front = End(length / 2, 1, 0.86 * half, half, 0.2)
        self.rear = End(-length / 2, -1, 0.97 * half, half, 0.06)
        self.axles = (length / 2 - 0.95, -length / 2 + 1.05)
        self.cowl = (length / 2 - 0.72, 0.53 * height)
        self.roof = length / 2 - 1.5

    def shell(self, form: Form, coarse: bool) -> None:
        """Body, windscreen, front doors' windows, wheels and lamps."""
        form.wheelbase_m = self.axles[0] - self.axles[1]
        high, half = self.height, self.half
        contour = [
            (self.rear.x, high - 0.03, self.rear.half),
            (self.rear.x + 0.06, high, half),
            (self.roof - 0.15, high, half),
            (self.roof, high - 0.06, half),
            (self.cowl[0], self.cowl[1], half),
            (self.front.x - 0.14, 0.44 * high, half),
            (self.front.x, 0.38 * high, self.front.half),
        ]
        head, tail = (0.3 * high, 0.38 * high), (0.3 * high, 0.55 * high)
        if coarse:
            few = [contour[0], contour[3], contour[4], contour[6]]
            form.add(build_far_hull([(x, z, 0.98 * half) for x, z, _ in few], LOW_M), self.paint)
            add_far_lamps(form, self.front, self.rear, head=head, tail=tail)
            for axle in self.axles:
                add_far_wheels(form, axle, half, RADIUS_M)
        else:
            arches = [(axle, RADIUS_M) for axle in self.axles]
            form.add(
                build_hull(contour, LOW_M, arches, drop=0.14, sill=0.98, crown=0.9), self.paint, {0: SHADE}
            )
            add_underside(form, -0.46 * self.length, 0.45 * self.length, 0.62 * half, LOW_M - 0.04, 0.74)
            self._trim(form, (0.55, 1.0, *head), (0.82, 1.0, *tail))
        add_windscreen(
            form, (self.cowl[0], 0.9 * half, self.cowl[1]), (self.roof, 0.9 * half, high - 0.06), bare=coarse
        )
        back = self.roof - 0.42
        shape = flank(self.cowl[0] - 0.12, back, (half, 0.53 * high), (half, 0.83 * high))
        shape[3, 0] = self.roof + 0.02
        add_mirrored_patch(form, shape, None, GLASS)

    def _trim(
        self, form: Form, head: tuple[float, float, float, float], tail: tuple[float, float, float, float]
    ) -> None:
        add_lamps(form, self.front, self.rear, head=head, tail=tail, stacked=True)
        add_wheels(form, self.axles[0], self.half - 0.01, RADIUS_M, 0.22, steers=True)
        add_wheels(form, self.axles[1], self.half - 0.01, RADIUS_M, 0.22)
        grille = self.front.quad(0.42 * self.half, 0.27 * self.height, 0.35 * self.height)
        form.add(patch(grille), SHADE)
        for end in (self.front, self.rear):
            low, high = sorted((end.x - end.sign * 0.1, end.x + end.sign * 0.03))
            form.add(box((low, -0.95 * end.half, LOW_M), (high, 0.95 * end.half, LOW_M + 0.2)), PLASTIC)
            add_number_plate(form, end, 0.36 if end.sign > 0 else 0.72)
        add_mirrors(form, self.cowl[0] - 0.3, 0.98 * self.half, 0.53 * self.height, (0.12, 0.22, 0.3))
        doors = [self.roof + 0.38, self.roof - 0.5]
        add_door_seams(form, self.paint, doors, self.half, LOW_M + 0.06, 0.87 * self.height, 0.98)

    def seats(self) -> list[tuple[float, float]]:
        """Windows behind the front doors."""
        return split_window_row(self.roof - 0.56, -self.length / 2 + 0.16, 3, 0.09)

    def rear_windows(self, form: Form) -> None:
        """A window in each rear door."""
        for side in (1, -1):
            quad = self.rear.quad(
                0.36 * self.half, 0.55 * self.height, 0.83 * self.height, side * 0.43 * self.half
            )
            form.add(patch(quad, lift=0.02), GLASS)


def _ambulance(form: Form, body: _Van, top: float, coarse: bool) -> None:
    green, light = gloss((0.015, 0.12, 0.045)), gloss((0.75, 0.72, 0.05))
    high = body.height
    red = scale_brightness(gloss((0.6, 0.02, 0.02)), 0.8)
    y, middle = body.half, -0.18 * body.length
    if coarse:
        add_far_beacons(form, body.roof - 0.35, 0.8 * y, high - 0.05, top)
        add_mirrored_patch(form, flank(middle + 0.36, middle - 0.36, (y, 1.55), (y, 1.85)), None, red, 0.01)
        return
    for place in (body.roof - 0.35, body.rear.x + 0.3):
        for side, bulb in zip((1, -1), BEACONS, strict=True):
            near, far = sorted((side * 0.2, side * 0.8 * y))
            bar = box((place - 0.14, near, high - 0.05), (place + 0.14, far, top))
            form.add(bar.without(4), BLUE, bulb=bulb)
        form.add(
            box((place - 0.1, -0.2, high - 0.05), (place + 0.1, 0.2, top - 0.03)).without(2, 3, 4), PLASTIC
        )
    add_side_chequers(
        form, flank(body.axles[0] - 0.55, body.axles[1] + 0.55, (y, 0.62), (y, 1.16)), 7, 2, green, light
    )
    (x0, z0), (x1, z1) = (body.front.x - 0.14, 0.45 * high), (body.cowl[0] + 0.05, 0.52 * high)
    bonnet = np.array([(x0, -0.8 * y, z0), (x0, 0.8 * y, z0), (x1, 0.84 * y, z1), (x1, -0.84 * y, z1)])
    add_face_chequers(form, bonnet, 8, 2, green, light)
    for long, tall in ((0.36, 0.12), (0.12, 0.36)):
        arm = flank(middle + long, middle - long, (y, 1.72 - tall), (y, 1.72 + tall))
        add_mirrored_patch(form, arm, None, red, 0.01)
        form.add(patch(body.rear.quad(long * 0.7, 1.85 - 0.7 * tall, 1.85 + 0.7 * tall), lift=0.012), red)
    for column in range(6):
        stripe = body.rear.quad(0.16, 0.95, 1.35, (column - 2.5) * 0.3)
        form.add(patch(stripe, lift=0.01), red if column % 2 else light)


def build_pickup(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A pick-up."""
    form = Form(Semantic.TRUCK)
    paint, (length, width, high) = sample_car_paint(rng), size
    half, radius, low = width / 2, 0.39, 0.34
    front, rear = End(length / 2, 1, 0.88 * half, half, 0.2), End(-length / 2, -1, 0.97 * half, half, 0.06)
    axles = (length / 2 - 0.92, -length / 2 + 1.15)
    form.wheelbase_m = axles[0] - axles[1]
    cowl, back, rail = length / 2 - 1.45, -0.07 * length, 0.6 * high
    foot, roof = (back, rail - 0.02, cowl, 0.63 * high), (back + 0.14, cowl - 0.72, high)
    contour = [
        (rear.x, rail, rear.half),
        (rear.x + 0.06, rail, half),
        (back, rail, half),
        (cowl, 0.65 * high, half),
        (front.x - 0.18, 0.6 * high, half),
        (front.x, 0.54 * high, front.half),
    ]
    head, tail = (0.4 * high, 0.52 * high), (0.34 * high, 0.55 * high)
    if coarse:
        form.add(build_far_hull([(x, z, 0.98 * half) for x, z, _ in contour[::2]], low), paint)
        form.add(
            build_far_cabin(foot, roof, (0.92 * half, 0.74 * half)), paint, dict.fromkeys(range(4), GLASS)
        )
        add_far_lamps(form, front, rear, head=head, tail=tail)
        for axle in axles:
            add_far_wheels(form, axle, half, radius)
    else:
        form.add(build_hull(contour, low, [(axle, radius) for axle in axles], crown=0.88), paint, {0: SHADE})
        add_underside(form, -0.45 * length, 0.45 * length, 0.62 * half, low - 0.05, 0.8)
        add_cabin(form, paint, foot, roof, (0.92 * half, 0.74 * half), ((0.12, 0.5), (0.55, 0.9)))
        add_lamps(form, front, rear, head=(0.5, 1.0, *head), tail=(0.82, 1.0, *tail), stacked=True)
        add_wheels(form, axles[0], half - 0.01, radius, 0.25, steers=True)
        add_wheels(form, axles[1], half - 0.01, radius, 0.25)
        form.add(patch(front.quad(0.45 * half, 0.4 * high, 0.52 * high)), SHADE)
        for end in (front, rear):
            near, far = sorted((end.x - end.sign * 0.1, end.x + end.sign * 0.03))
            form.add(box((near, -0.95 * end.half, low), (far, 0.95 * end.half, low + 0.18)), PLASTIC)
            add_number_plate(form, end, 0.5 if end.sign > 0 else 0.72)
        add_door_seams(
            form, paint, [cowl - 0.1, cowl - 1.0, back + 0.05, back - 0.06], half, low + 0.06, 0.55 * high
        )
        add_mirrors(form, cowl - 0.35, 0.95 * half, 0.64 * high, (0.12, 0.22, 0.2))
    _add_truck_bed(form, rear.x + 0.08, back - 0.05, 0.8 * half, rail, rng)
    return form


def _add_truck_bed(
    form: Form, rear: float, front: float, half: float, rail: float, rng: np.random.Generator
) -> None:
    """The open bed, which is dark inside, sometimes with a load."""
    quad = [(rear, -half, rail), (front, -half, rail), (front, half, rail), (rear, half, rail)]
    form.add(patch(quad, lift=0.015), SHADE)
    if rng.random() < 0.4:
        load = box((rear + 0.25, -0.6 * half, rail), (front - 0.2, 0.5 * half, rail + rng.uniform(0.2, 0.4)))
        form.add(load.without(4), scale_brightness(sample_car_paint(rng), 0.6))
