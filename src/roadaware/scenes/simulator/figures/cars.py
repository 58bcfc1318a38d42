"""Cars: hatchback, saloon, estate, SUV, city car, and the police car."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.scenes.simulator.figures.bodies import block, cabin, glasshouse, hull, seams, underside
from roadaware.scenes.simulator.figures.colours import GLASS, PLASTIC, SHADE, WHITE, car_paint, gloss, shaded
from roadaware.scenes.simulator.figures.form import Form, Paint, Size
from roadaware.scenes.simulator.figures.parts import (
    BEACONS,
    BLUE,
    RED,
    THIRD_BULB,
    End,
    both,
    checked,
    chequers,
    far_beacons,
    far_lamps,
    flank,
    lamps,
    mirrors,
    plate,
    rollers,
    wheels,
)
from roadaware.scenes.simulator.figures.shapes import box, cylinder, patch
from roadaware.scenes.simulator.mesh import Semantic


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


def car(model: str, size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A car.

    Args:
        model: a key of `SHAPES`.
        size: length, width and height in metres.
        rng: of its colours and details.
        coarse: whether a few triangles are enough.
    """
    paint = WHITE if model == "police_car" else car_paint(rng)
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
        form.add(hull(self.contour(), self.low, arches), self.paint, {0: SHADE})
        underside(form, -0.46 * self.length, 0.46 * self.length, 0.62 * self.half, self.low, 2.1 * radius)
        cabin(form, self.paint, self.foot, self.roof, self.halves, shape.panes)
        belt = min(shape.back[1], shape.cowl[1]) * self.height - 0.09
        seams(form, self.paint, [self.x(place) for place in shape.seams], self.half, self.low + 0.06, belt)
        for place in shape.seams[1:]:
            edge = self.x(place) + 0.1
            quad = flank(edge + 0.17, edge, (self.half, belt - 0.08), (self.half, belt - 0.045))
            both(form, quad, None, shaded(self.paint, 0.5), 0.014)
        wheels(form, self.axles[0], self.half - 0.01, radius, 0.21, steers=True)
        wheels(form, self.axles[1], self.half - 0.01, radius, 0.21)
        self._ends(form)
        mirrors(form, self.foot[2] - 0.32, 0.97 * self.half, belt + 0.06, (0.12, 0.2, 0.14))
        if rails:
            for side in (1, -1):
                a, b = self.roof[0] + 0.15, self.roof[1] - 0.1
                y = side * 0.6 * self.half
                form.add(cylinder((a, y, self.height - 0.02), (b, y, self.height - 0.02), 0.025, 4), PLASTIC)

    def _ends(self, form: Form) -> None:
        nose, boot = self.shape.nose * self.height, self.shape.boot * self.height
        head = (0.5, 1.0, nose - 0.25, nose - 0.09)
        tail = (0.55, 1.0, boot - 0.36, boot - 0.1)
        lamps(form, self.front, self.rear, head=head, tail=tail)
        grille = self.front.quad(0.44 * self.front.half, nose - 0.24, nose - 0.12)
        form.add(patch(grille), SHADE)
        for end, high in ((self.front, 0.4), (self.rear, 0.42)):
            inner = end.x - end.sign * 0.1
            outer = end.x + end.sign * 0.03
            low, far = (min(inner, outer), -0.97 * end.half, self.low), max(inner, outer)
            form.add(box(low, (far, 0.97 * end.half, self.low + 0.13)), PLASTIC)
            plate(form, end, high if end.sign > 0 else max(high, boot - 0.42))
        x, narrow = self.roof[0] - 0.02, 0.22
        brake = box((x - 0.02, -narrow, self.height - 0.1), (x + 0.05, narrow, self.height - 0.055))
        form.add(brake, RED, bulb=THIRD_BULB)

    def sketch(self, form: Form) -> None:
        """The car from far away."""
        line = self.contour()
        ends = [line[0], line[2], line[4], line[-1]]
        full = [(x, high, 0.96 * self.half) for x, high, _ in ends]
        form.add(block(full, self.low), self.paint)
        glass = {0: GLASS, 1: GLASS, 2: GLASS, 3: GLASS}
        form.add(glasshouse(self.foot, self.roof, self.halves), self.paint, glass)
        for axle in self.axles:
            rollers(form, axle, self.half, self.shape.radius_m)
        nose, boot = self.shape.nose * self.height, self.shape.boot * self.height
        far_lamps(form, self.front, self.rear, head=(nose - 0.25, nose - 0.09), tail=(boot - 0.3, boot - 0.1))


def _police(form: Form, body: _Body, size: Size, coarse: bool) -> None:
    middle, high = 0.55 * body.roof[1] + 0.45 * body.roof[0], body.height
    if coarse:
        far_beacons(form, middle, 0.62 * body.half, high - 0.02, size[2])
        return
    for side, bulb in zip((1, -1), BEACONS, strict=True):
        near, far = sorted((side * 0.08, side * 0.62 * body.half))
        form.add(box((middle - 0.13, near, high - 0.02), (middle + 0.13, far, size[2])), BLUE, bulb=bulb)
    dark, light = gloss((0.02, 0.045, 0.3)), gloss((0.75, 0.72, 0.05))
    form.add(box((middle - 0.13, -0.08, high - 0.02), (middle + 0.13, 0.08, size[2] - 0.02)), PLASTIC)
    belt = body.shape.cowl[1] * body.height - 0.1
    y = 0.952 * body.half
    quad = flank(body.axles[0] - 0.48, body.axles[1] + 0.48, (y, body.low + 0.14), (body.half, belt))
    chequers(form, quad, 7, 2, dark, light)
    nose = body.shape.nose * body.height - 0.27
    checked(form, body.front.quad(0.92 * body.front.half, body.low + 0.14, nose), 10, 2, dark, light)
    boot = body.shape.boot * body.height
    red = gloss((0.5, 0.03, 0.02))
    checked(form, body.rear.quad(0.5 * body.rear.half, boot - 0.34, boot - 0.1), 6, 1, red, light)
