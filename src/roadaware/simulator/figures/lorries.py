"""Lorries, the fire engine, and buses."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.figures.form import (
    GLASS,
    INK,
    METAL,
    PLASTIC,
    SHADE,
    STEEL,
    WHITE,
    Colour,
    Form,
    Paint,
    Size,
    box,
    cylinder,
    gloss,
    matt,
    patch,
    sample_car_paint,
    scale_brightness,
    wedge,
    window,
)
from roadaware.simulator.figures.vehicle_parts import (
    BEACONS,
    BLUE,
    RED,
    THIRD_BULB,
    End,
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
    add_wheel_drum,
    add_wheels,
    add_windscreen,
    build_far_hull,
    build_hull,
    flank,
    split_window_row,
)
from roadaware.simulator.mesh import Semantic

RADIUS_M = 0.5
DECK_M = 1.05
CAB_LOW_M = 0.42


class _Lorry:
    """A lorry's measures in metres, and what all lorries have."""

    def __init__(self, size: Size, cab: float, cab_high: float, axles: tuple[float, ...]) -> None:
        self.length, self.half, self.height = size[0], size[1] / 2, size[2]
        self.front = End(self.length / 2, 1, 0.9 * self.half, 0.97 * self.half, 0.16)
        self.rear = End(-self.length / 2, -1, 0.96 * self.half, 0.96 * self.half, 0.04)
        self.cab_rear, self.cab_high = self.front.x - cab, cab_high
        self.axles = axles

    def chassis(self, form: Form, paint: Paint, coarse: bool) -> None:
        """Cab, frame, wheels and lamps."""
        form.wheelbase_m = self.axles[0] - self.axles[-1]
        self._cab(form, paint, coarse)
        if coarse:
            for axle in (self.axles[0], self.axles[-1]):
                add_far_wheels(form, axle, 0.97 * self.half, RADIUS_M)
            add_far_lamps(form, self.front, self.rear, head=(0.62, 0.84), tail=(0.75, 0.98))
            return
        frame = box((self.rear.x, -0.5, 0.6), (self.cab_rear + 0.6, 0.5, DECK_M))
        form.add(frame, SHADE)
        add_wheels(form, self.axles[0], 0.95 * self.half, RADIUS_M, 0.3, steers=True)
        for axle in self.axles[1:-1]:
            add_wheel_drum(form, axle, 0.95 * self.half, RADIUS_M)
        add_wheels(form, self.axles[-1], 0.95 * self.half, RADIUS_M, 0.5)
        form.add(box((self.rear.x, -self.half, 0.72), (self.rear.x + 0.08, self.half, 1.0)), PLASTIC)
        add_lamps(form, self.front, self.rear, head=(0.6, 1.0, 0.62, 0.84), tail=(0.5, 0.98, 0.75, 0.98))
        form.add(patch(self.rear.quad(0.2, 0.8, 0.95), lift=0.02), Paint((0.72, 0.72, 0.72)))
        add_number_plate(form, self.front, 0.5)

    def _cab(self, form: Form, paint: Paint, coarse: bool) -> None:
        half, x, high = 0.97 * self.half, self.front.x, self.cab_high
        waist = 0.5 * high + 0.12
        contour = [
            (self.cab_rear, high, half),
            (x - 0.42, high, half),
            (x - 0.06, waist, half),
            (x, waist - 0.12, self.front.half),
        ]
        if coarse:
            form.add(
                build_far_hull([(a, b, 0.97 * half) for a, b, _ in (contour[0], *contour[1:3])], CAB_LOW_M),
                paint,
            )
        else:
            arches = [(self.axles[0], RADIUS_M)]
            solid = build_hull(contour, CAB_LOW_M, arches, drop=0.12, sill=0.99, crown=0.94)
            form.add(solid, paint, {0: SHADE})
            form.add(patch(self.front.quad(0.62 * half, 0.92, waist - 0.2)), SHADE)
            form.add(box((x - 0.14, -0.95 * half, 0.4), (x + 0.02, 0.95 * half, 0.62)), PLASTIC)
            add_door_seams(form, paint, [self.cab_rear + 0.12], half, 1.1, high - 0.2, 0.99)
            add_mirrors(form, x - 0.25, 0.97 * half, waist + 0.1, (0.14, 0.26, 0.62))
        add_windscreen(form, (x - 0.06, 0.93 * half, waist), (x - 0.42, 0.93 * half, high), 0.06, coarse)
        door = flank(x - 0.3, min(x - 1.25, self.cab_rear + 0.35), (half, waist), (half, high - 0.24))
        door[3, 0] = x - 0.52
        add_mirrored_patch(form, door, None, GLASS)

    def guards(self, form: Form) -> None:
        """Side guards and a tank between the axles."""
        front, rear = self.axles[0] - 0.75, self.axles[1] + 0.75
        for side in (1, -1):
            for low in (0.5, 0.78):
                near, far = sorted((side * 0.9 * self.half, side * 0.94 * self.half))
                form.add(box((rear, near, low), (front, far, low + 0.13)), STEEL)


def build_lorry(model: str, size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A lorry for goods.

    Args:
        model: lorry, tipper, flatbed or articulated.
    """
    form = Form(Semantic.TRUCK)
    paint = sample_car_paint(rng)
    front, rear = size[0] / 2, -size[0] / 2
    if model == "articulated":
        axles = (front - 1.35, front - 4.9, rear + 3.9, rear + 2.6, rear + 1.3)
        body = _Lorry(size, 2.25, 0.84 * size[2], axles)
    else:
        pair = (rear + 2.7, rear + 1.45) if model == "tipper" else (rear + 1.9,)
        body = _Lorry(size, 2.1, size[2] if model == "flatbed" else 0.8 * size[2], (front - 1.3, *pair))
    body.chassis(form, paint, coarse)
    if not coarse and model != "articulated":
        body.guards(form)
    if model == "tipper":
        _tub(form, body, rng, coarse)
    elif model == "flatbed":
        _deck(form, body, rng, coarse)
    else:
        _box_body(form, body, paint, rng, coarse, trailer=model == "articulated")
    return form


def _box_body(
    form: Form, body: _Lorry, cab: Paint, rng: np.random.Generator, coarse: bool, *, trailer: bool
) -> None:
    paint = WHITE if rng.random() < 0.6 else scale_brightness(sample_car_paint(rng), 0.9)
    ink = cab if rng.random() < 0.6 else gloss(rng.uniform(0.02, 0.35, 3))
    front, y = body.cab_rear - (0.65 if trailer else 0.18), body.half
    form.add(box((body.rear.x + 0.01, -y, DECK_M), (front, y, body.height)).without(4), paint)
    side = flank(front, body.rear.x, (y, DECK_M), (y, body.height))
    add_mirrored_patch(form, side, window(0.0, 1.0, 0.0, 0.05), PLASTIC)
    add_mirrored_patch(form, side, window(0.12, 0.72, 0.5, 0.75), ink)
    if coarse:
        return
    add_mirrored_patch(form, side, window(0.12, 0.5, 0.32, 0.4), ink)
    frame = body.rear.quad(y, DECK_M, body.height)
    for place in (0.0, 0.485, 0.97):
        form.add(patch(frame, window(place, place + 0.03, 0.0, 1.0)), STEEL)
    for place in (0.0, 0.96):
        form.add(patch(frame, window(0.0, 1.0, place, place + 0.04), 0.009), STEEL)
    for place in (0.3, 0.4, 0.6, 0.7):
        form.add(patch(frame, window(place, place + 0.015, 0.08, 0.92), 0.014), METAL)
    if trailer:
        for post in range(1, 12):
            share = post / 12
            add_mirrored_patch(form, side, window(share, share + 0.004, 0.05, 0.98), STEEL, 0.014)
        foot = front - 2.6
        form.add(box((foot - 0.1, -0.85, 0.1), (foot + 0.1, 0.85, DECK_M)), STEEL)
    else:
        lid = wedge((body.cab_rear + 0.1, body.cab_rear + 1.3, -0.9, 0.9, body.cab_high),
                    (body.cab_rear + 0.1, body.cab_rear + 0.5, -0.8, 0.8, body.height - 0.1))  # fmt: skip
        form.add(lid, cab)


def _tub(form: Form, body: _Lorry, rng: np.random.Generator, coarse: bool) -> None:
    paint = scale_brightness(sample_car_paint(rng), 0.8)
    rear, front, y, top = body.rear.x + 0.02, body.cab_rear - 0.2, body.half, 0.86 * body.height
    base = (rear + 0.35, front, -0.84 * y, 0.84 * y, DECK_M)
    form.add(wedge(base, (rear, front, -y, y, top)).without(4), paint)
    rim = [(rear, -y, top), (front, -y, top), (front, y, top), (rear, y, top)]
    earth = matt((0.1, 0.075, 0.05))
    heap = wedge((rear + 0.3, front - 0.3, -0.85 * y, 0.85 * y, top),
                 (rear + 1.6, front - 1.4, -0.2, 0.2, 0.985 * body.height))  # fmt: skip
    form.add(heap.without(4), earth)
    if coarse:
        return
    form.add(patch(rim, window(0.03, 0.97, 0.06, 0.94)), SHADE)
    side = flank(front, rear, (0.84 * y, DECK_M), (y, top))
    for rib in range(6):
        share = 0.04 + rib * 0.17
        add_mirrored_patch(
            form, side, window(share, share + 0.035, 0.0, 0.97), scale_brightness(paint, 0.45), 0.03
        )
    add_mirrored_patch(form, side, window(0.0, 1.0, 0.9, 1.0), scale_brightness(paint, 0.55), 0.035)
    form.add(box((front, -y, DECK_M), (front + 0.06, y, body.height - 0.1)), paint)
    canopy = box((front, -0.9 * y, body.height - 0.12), (front + 0.7, 0.9 * y, body.height))
    form.add(canopy, paint)


def _deck(form: Form, body: _Lorry, rng: np.random.Generator, coarse: bool) -> None:
    rear, front, y = body.rear.x + 0.01, body.cab_rear - 0.15, body.half
    wood = matt((0.16, 0.1, 0.055))
    form.add(box((rear, -y, DECK_M), (front, y, DECK_M + 0.16)).without(4), wood)
    kind, high = int(rng.integers(3)), rng.uniform(0.5, 1.1)
    timber, concrete = matt((0.24, 0.16, 0.08)), matt((0.2, 0.2, 0.19))
    if coarse:
        load = wedge((rear + 0.3, front - 0.3, -0.85 * y, 0.85 * y, DECK_M + 0.16),
                     (rear + 0.3, front - 0.3, -0.6 * y, 0.6 * y, DECK_M + 0.1 + high))  # fmt: skip
        if kind < 2:
            form.add(load.without(4), concrete if kind == 0 else timber)
        return
    form.add(box((front - 0.08, -y, DECK_M), (front, y, 0.8 * body.height)), STEEL)
    for side in (1, -1):
        for place in np.linspace(rear + 0.2, front - 0.5, 4).tolist():
            near, far = sorted((side * 0.94 * y, side * y))
            stake = box((place, near, DECK_M), (place + 0.07, far, DECK_M + 0.55))
            form.add(stake.without(4), STEEL)
    if kind == 0:
        for lane, low in ((-0.6, 0), (0.0, 0), (0.6, 0), (-0.3, 1), (0.3, 1)):
            z = DECK_M + 0.46 + 0.52 * low
            form.add(cylinder((rear + 0.3, lane, z), (front - 0.4, lane, z), 0.3, 6), concrete)
    elif kind == 1:
        for place in (0.15, 0.55):
            x = rear + place * (front - rear)
            form.add(box((x, -0.8 * y, DECK_M + 0.16), (x + 1.6, 0.8 * y, DECK_M + 0.16 + high)), timber)


def build_fire_engine(size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A fire engine with lockers and a ladder on its roof."""
    form = Form(Semantic.TRUCK)
    coat = gloss(np.array([0.42, 0.02, 0.015]) * rng.uniform(0.9, 1.1))
    light = gloss((0.75, 0.72, 0.05))
    front, rear = size[0] / 2, -size[0] / 2
    high = size[2] - 0.36
    body = _Lorry((size[0], size[1], high), 3.1, 0.97 * high, (front - 1.35, rear + 2.1))
    body.chassis(form, coat, coarse)
    y, back = body.half, body.cab_rear
    form.add(box((rear + 0.01, -y, 0.62), (back, y, high)).without(1, 4), coat)
    if coarse:
        add_far_beacons(form, front - 0.95, 0.85 * y, 0.95 * high, size[2] - 0.1)
        ladder = box((rear, 0.1, high + 0.1), (back + 1.4, 0.7, size[2]))
        form.add(ladder.without(0, 1, 4, 5), METAL)
        return form
    _bar(form, front - 0.95, body, size[2])
    add_side_windows(form, 0.97 * y, [(back + 1.25, back + 0.2)], 0.57 * high, 0.82 * high)
    for locker in split_window_row(back - 0.1, rear + 0.1, 3, 0.12):
        low = 1.32 if locker[0] > body.axles[1] > locker[1] else 0.75
        shutter = flank(locker[0], locker[1], (y, low), (y, high - 0.45))
        add_mirrored_patch(form, shutter, None, METAL, 0.01)
        for slat in range(1, 4):
            add_mirrored_patch(form, shutter, window(0.0, 1.0, slat / 4, slat / 4 + 0.03), STEEL, 0.014)
    band = flank(back, rear, (y, high - 0.4), (y, high - 0.08))
    add_side_chequers(form, band, 8, 2, coat, light)
    for column in range(8):
        stripe = body.rear.quad(y / 8, 1.1, high - 0.2, (column - 3.5) * y / 4)
        form.add(patch(stripe, lift=0.02), light if column % 2 else coat)
    waist = 0.5 * body.cab_high + 0.12
    add_face_chequers(
        form, body.front.quad(0.94 * body.front.half, waist - 0.19, waist - 0.13), 8, 1, coat, light
    )
    _ladder(form, rear, back + 1.4, high, size[2])
    return form


def _bar(form: Form, x: float, body: _Lorry, top: float) -> None:
    high = 0.97 * body.height
    for side, bulb in zip((1, -1), BEACONS, strict=True):
        near, far = sorted((side * 0.15, side * 0.85 * body.half))
        form.add(box((x - 0.16, near, high - 0.02), (x + 0.16, far, top - 0.1)).without(4), BLUE, bulb=bulb)


def _ladder(form: Form, rear: float, front: float, low: float, high: float) -> None:
    for y in (0.12, 0.72):
        form.add(box((rear, y - 0.035, high - 0.14), (front, y + 0.035, high)), METAL)
    for x in np.linspace(rear + 0.2, front - 0.2, 7).tolist():
        form.add(box((x, 0.12, high - 0.1), (x + 0.06, 0.72, high - 0.04)).without(2, 3, 4), METAL)
    for x in (rear + 0.6, front - 0.7):
        form.add(box((x, 0.05, low - 0.02), (x + 0.08, 0.8, high - 0.14)), STEEL)
    form.add(cylinder((rear + 0.8, -0.6, low + 0.1), (front - 1.2, -0.6, low + 0.1), 0.12, 5), SHADE)


# Buses: single decker, double decker and coach.

BUS_WHEEL_RADIUS_M = 0.48
LOW_M = 0.3
LIVERIES: tuple[Colour, ...] = (
    (0.36, 0.02, 0.02),
    (0.02, 0.1, 0.06),
    (0.02, 0.06, 0.2),
    (0.6, 0.6, 0.58),
    (0.3, 0.2, 0.02),
    (0.16, 0.03, 0.12),
)
"""Colours of the companies that run them."""


def build_bus(model: str, size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A bus.

    Args:
        model: single_decker, double_decker or coach.
        rng: of its livery.
    """
    form = Form(Semantic.BUS)
    livery = np.array(LIVERIES[int(rng.integers(len(LIVERIES)))]) * rng.uniform(0.85, 1.15)
    paint = gloss(livery)
    trim = gloss(0.55 * livery + 0.35) if rng.random() < 0.6 else scale_brightness(paint, 0.4)
    body = _Bus(model, size, paint, trim)
    body.shell(form, coarse)
    body.windows(form, coarse)
    if not coarse:
        body.details(form)
    return form


class _Bus:
    """A bus's measures in metres."""

    def __init__(self, model: str, size: Size, paint: Paint, trim: Paint) -> None:
        self.model, self.paint, self.trim = model, paint, trim
        self.length, self.half, self.height = size[0], size[1] / 2, size[2]
        self.front = End(self.length / 2, 1, 0.88 * self.half, self.half, 0.25)
        self.rear = End(-self.length / 2, -1, 0.93 * self.half, self.half, 0.15)
        self.axles = (self.length / 2 - 2.6, -self.length / 2 + 3.1)
        self.slope = 0.75 if model == "coach" else 0.18
        # Heights of the windows of each deck.
        low, high = (1.65, self.height - 0.5) if model == "coach" else (1.15, self.height - 0.62)
        self.decks = [(low, high)]
        if model == "double_decker":
            self.decks = [(1.15, 2.02), (2.62, self.height - 0.5)]

    def shell(self, form: Form, coarse: bool) -> None:
        """Body, wheels and lamps."""
        form.wheelbase_m = self.axles[0] - self.axles[1]
        high, half = self.height, self.half
        contour = [
            (self.rear.x, high - 0.12, self.rear.half),
            (self.rear.x + self.rear.corner, high, half),
            (self.front.x - self.slope - 0.1, high, half),
            (self.front.x - self.slope, high - 0.1, 0.97 * half),
            (self.front.x, 1.0, self.front.half),
        ]
        head, tail = (0.55, 0.8), (0.8, 1.25)
        if coarse:
            few = [contour[0], contour[2], contour[4]]
            form.add(build_far_hull([(x, z, 0.98 * half) for x, z, _ in few], LOW_M), self.paint)
            add_far_lamps(form, self.front, self.rear, head=head, tail=tail)
            for axle in self.axles:
                add_far_wheels(form, axle, half, BUS_WHEEL_RADIUS_M)
            return
        arches = [(axle, BUS_WHEEL_RADIUS_M) for axle in self.axles]
        form.add(build_hull(contour, LOW_M, arches, drop=0.15, sill=1.0, crown=0.9), self.paint, {0: SHADE})
        add_underside(form, -0.47 * self.length, 0.47 * self.length, 0.6 * half, LOW_M - 0.05, 1.0)
        add_lamps(form, self.front, self.rear, head=(0.55, 1.0, *head), tail=(0.78, 1.0, *tail), stacked=True)
        add_wheels(form, self.axles[0], half - 0.01, BUS_WHEEL_RADIUS_M, 0.3, steers=True)
        add_wheels(form, self.axles[1], half - 0.01, BUS_WHEEL_RADIUS_M, 0.5)
        add_number_plate(form, self.front, 0.4)
        add_number_plate(form, self.rear, 0.55)

    def face(self, height: float) -> tuple[float, float, float]:
        """x, half width and z of the front at a height."""
        share = (height - 1.0) / (self.height - 1.1)
        x = self.front.x - share * self.slope
        return x, 0.9 * (self.front.half + share * (0.97 * self.half - self.front.half)), height

    def windows(self, form: Form, coarse: bool) -> None:
        """Rows of windows, windscreens, rear window."""
        front, rear = self.front.x - 0.4 - 0.5 * self.slope, self.rear.x + 0.3
        for deck, (low, high) in enumerate(self.decks):
            count = 1 if coarse else 7 if self.model == "coach" else 6
            gap = 0.1 if self.model == "coach" else 0.2
            add_side_windows(form, self.half, split_window_row(front, rear, count, gap), low, high)
            if deck:
                add_windscreen(form, self.face(low), self.face(high), 0.03, coarse)
        low, high = self.decks[0]
        add_windscreen(
            form, self.face(1.02), self.face(min(high, 2.3) if self.model != "coach" else high), 0.03, coarse
        )
        # Smaller and higher than a windscreen, so that front and rear differ.
        low, high = self.decks[-1]
        pane = self.rear.quad(0.62 * self.half, low + 0.42 * (high - low), high + 0.06)
        form.add(patch(pane, lift=0.03), INK)
        form.add(patch(pane, window(0.05, 0.95, 0.06, 0.94), 0.038), GLASS)

    def details(self, form: Form) -> None:
        """Doors, destination, stripes, engine grille, mirrors."""
        low, high = self.decks[0]
        if self.model == "coach":
            hatches = flank(self.axles[0] - 0.7, self.axles[1] + 0.7, (self.half, 0.45), (self.half, 1.3))
            for share in np.linspace(0.0, 0.98, 5).tolist():
                add_mirrored_patch(form, hatches, window(share, share + 0.012, 0.0, 1.0), SHADE)
            add_mirrored_patch(form, hatches, window(0.0, 1.0, 0.97, 1.0), SHADE)
        else:
            self._destination(form)
        front, rear = self.front.x - 0.4, self.rear.x + 0.2
        add_mirrored_patch(
            form, flank(front, rear, (self.half, low - 0.22), (self.half, low - 0.06)), None, self.trim, 0.006
        )
        if len(self.decks) > 1:
            band = flank(
                self.front.x - 0.35, self.rear.x + 0.2, (self.half, high + 0.1), (self.half, high + 0.5)
            )
            add_mirrored_patch(form, band, None, self.trim, 0.006)
            add_mirrored_patch(form, band, window(0.36, 0.72, 0.1, 0.9), matt((0.6, 0.6, 0.58)), 0.012)
            add_mirrored_patch(form, band, window(0.4, 0.62, 0.35, 0.65), INK, 0.016)
        self._door(form, self.front.x - 0.42, 1.1, high)
        if self.model != "coach":
            self._door(form, 0.3, 1.25, high)
        self._back(form)
        height = 1.95 if self.model == "coach" else 1.75
        add_mirrors(form, self.front.x - 0.05, 0.98 * self.half, height, (0.16, 0.24, 0.45))

    def _back(self, form: Form) -> None:
        """Slats of the engine's cover, an advertisement, and brake lamps below the roof."""
        for low in (0.72, 0.86, 1.0):
            form.add(patch(self.rear.quad(0.68 * self.half, low, low + 0.08), lift=0.02), SHADE)
        low, high = self.decks[0]
        board = self.rear.quad(0.6 * self.half, low + 0.06, low + 0.38 * (high - low))
        form.add(patch(board, lift=0.02), self.trim)
        for start, end in ((0.1, 0.34), (0.42, 0.9)):
            form.add(patch(board, window(start, end, 0.35, 0.65), 0.026), INK)
        top = self.height - 0.24
        for side in (1, -1):
            lamp = self.rear.block(side, 0.72, 0.98, top - 0.08, top + 0.02)
            form.add(lamp, RED, bulb=THIRD_BULB)

    def _door(self, form: Form, front: float, wide: float, high: float) -> None:
        """A double door on the left, darker than the windows, with a frame in its middle."""
        quad = flank(front, front - wide, (self.half, LOW_M + 0.06), (self.half, high))
        form.add(patch(quad, lift=0.014), PLASTIC)
        for start in (0.06, 0.53):
            form.add(patch(quad, window(start, start + 0.41, 0.05, 0.96), 0.02), GLASS)

    def _destination(self, form: Form) -> None:
        """The box above the windscreen that says where it goes."""
        low = 2.36 if len(self.decks) > 1 else self.height - 0.58
        (x0, y0, z0), (x1, y1, z1) = self.face(low - 0.02), self.face(low + 0.32)
        quad: Floats = np.array(
            [(x0, -0.85 * y0, z0), (x0, 0.85 * y0, z0), (x1, 0.85 * y1, z1), (x1, -0.85 * y1, z1)]
        )
        form.add(patch(quad, lift=0.016), INK)
        amber = matt((0.75, 0.42, 0.05))
        for start, end in ((0.06, 0.18), (0.26, 0.42), (0.46, 0.66), (0.7, 0.92)):
            form.add(patch(quad, window(start, end, 0.28, 0.72), 0.022), amber)
        side = flank(self.front.x - 1.7, self.front.x - 2.9, (self.half, low), (self.half, low + 0.26))
        add_mirrored_patch(form, side, None, INK, 0.02)
