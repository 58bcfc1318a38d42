"""Parts shared by vehicles, each put on a form: a hull with wheel arches and a cabin, wheels, lamps, number plates,
mirrors, stripes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.simulator.actors import Lamp
from roadaware.simulator.figures.form import (
    GLASS,
    INK,
    PLASTIC,
    PLATE,
    RIM,
    RIM_DARK,
    RUBBER,
    SHADE,
    Bulb,
    Form,
    Joint,
    Paint,
    Solid,
    box,
    cylinder,
    disc,
    loft,
    patch,
    prism,
    scale_brightness,
    window,
)
from roadaware.simulator.mesh import Material

RED = Paint((0.13, 0.008, 0.006), Material.LAMP)
AMBER = Paint((0.2, 0.075, 0.01), Material.LAMP)
CLEAR = Paint((0.3, 0.31, 0.32), Material.LAMP)
BLUE = Paint((0.02, 0.05, 0.25), Material.LAMP)

BRAKE_BULB = Bulb(Lamp.BRAKE, (1.0, 0.02, 0.01), 1.4, tail=True)
THIRD_BULB = Bulb(Lamp.BRAKE, (1.0, 0.02, 0.01), 1.4)
HEAD_BULB = Bulb(Lamp.HEAD, (1.0, 0.96, 0.86), 2.6)
REVERSE_BULB = Bulb(Lamp.REVERSE, (1.0, 0.97, 0.9), 3.2)
BLINKERS = {1: Bulb(Lamp.LEFT, (1.0, 0.34, 0.01), 2.4), -1: Bulb(Lamp.RIGHT, (1.0, 0.34, 0.01), 2.4)}
"""Indicators of the left (1) and the right (-1) side."""
BEACONS = (
    Bulb(Lamp.BEACON, (0.06, 0.2, 1.0), 3.5, turn=0),
    Bulb(Lamp.BEACON, (0.06, 0.2, 1.0), 3.5, turn=1),
)


@dataclass(frozen=True)
class End:
    """The front or the rear of a body, as seen from above.

    Args:
        x: of its face, in metres.
        sign: 1 for the front, -1 for the rear.
        half: half the width of the face.
        full: half the width of the body.
        corner: depth of the rounding between the two.
    """

    x: float
    sign: int
    half: float
    full: float
    corner: float

    def lamp(self, side: int, inner: float, outer: float, *, wrap: float = 0.0) -> Floats:
        """(4, 2) outline of a lamp that stands a little off the face.

        Args:
            side: 1 left, -1 right.
            inner: where it begins, as a share of the face's half width.
            outer: where it ends.
            wrap: share of the corner that it covers too.
        """
        out, back, wide = self.x + self.sign * 0.012, self.x - self.sign * 0.05, outer * self.half
        if wrap:
            back = self.x - self.sign * max(self.corner * wrap, 0.04)
            wide = self.half + (self.full - self.half) * min(wrap, 1.0) + 0.012
        inside = inner * self.half
        points = [(back, inside), (out, inside), (out, outer * self.half), (back, wide)]
        return np.array(points) * [1.0, side]

    def block(
        self, side: int, inner: float, outer: float, low: float, high: float, wrap: float = 0.0
    ) -> Solid:
        """A lamp as a block without the wall that lies in the body.

        Args:
            side: 1 left, -1 right.
            inner: where it begins, as a share of the face's half width.
            outer: where it ends.
            low: height of its lower edge.
            high: of its upper edge.
            wrap: share of the corner that it covers too.
        """
        return prism(self.lamp(side, inner, outer, wrap=wrap), low, high).without(3)

    def quad(self, y_half: float, low: float, high: float, y_middle: float = 0.0) -> Floats:
        """(4, 3) corners of an upright rectangle on its face, counter-clockwise seen from outside.

        Args:
            y_half: half its width in metres.
            low: height of its lower edge.
            high: of its upper edge.
            y_middle: its middle, left of the body's.
        """
        left, right = y_middle - self.sign * y_half, y_middle + self.sign * y_half
        return np.array(
            [(self.x, left, low), (self.x, right, low), (self.x, right, high), (self.x, left, high)]
        )


def flank(x_front: float, x_rear: float, low: tuple[float, float], high: tuple[float, float]) -> Floats:
    """(4, 3) corners of a piece of the left side, counter-clockwise seen from outside.

    Args:
        x_front: of its front edge.
        x_rear: of its rear edge.
        low: y and z of its lower edge.
        high: y and z of its upper edge.
    """
    return np.array([(x_front, *low), (x_rear, *low), (x_rear, *high), (x_front, *high)])


def add_mirrored_patch(
    form: Form, quad: Floats, outline: npt.ArrayLike | None, paint: Paint, lift: float = 0.008
) -> None:
    """Put a patch on the left side and its mirror image on the right.

    Args:
        quad: (4, 3) corners on the left.
        outline: as for `patch`.
        paint: of both.
        lift: off the face in metres.
    """
    piece = patch(quad, outline, lift)
    form.add(piece, paint)
    form.add(piece.mirrored(), paint)


def add_wheels(
    form: Form, x: float, outer: float, radius: float, wide: float, *, steers: bool = False
) -> None:
    """A pair of wheels.

    Args:
        x: of their axle.
        outer: y of their outer faces.
        radius: in metres.
        wide: of a tyre.
        steers: whether they turn with the steering.
    """
    for side in (1, -1):
        joint = Joint((x, side * (outer - wide / 2), radius), 0.0, steers)
        tyre = cylinder((x, side * (outer - wide), radius), (x, side * outer, radius), radius, 10)
        form.add(tyre.without(10), RUBBER, joint=joint if steers else None)
        turning = Joint(joint.pivot, radius, steers)
        face = side * (outer + 0.006)
        form.add(disc((x, face, radius), 0.66 * radius, (0, side, 0), 7), RIM, joint=turning)
        for spoke in range(4):
            hole = disc((x, side * (outer + 0.012), 1.42 * radius), 0.13 * radius, (0, side, 0), 3)
            form.add(hole.spun(90 * spoke, 1, (x, 0, radius)), RIM_DARK, joint=turning)


def add_wheel_drum(form: Form, x: float, outer: float, radius: float) -> None:
    """A pair of wheels that others hide from behind: one drum across, with its rims.

    Args:
        x: of their axle.
        outer: y of their outer faces.
        radius: in metres.
    """
    form.add(cylinder((x, -outer, radius), (x, outer, radius), radius, 9), RUBBER)
    for side in (1, -1):
        turning = Joint((x, 0.0, radius), radius)
        form.add(
            disc((x, side * (outer + 0.006), radius), 0.66 * radius, (0, side, 0), 5), RIM, joint=turning
        )
        hole = disc((x, side * (outer + 0.012), 1.42 * radius), 0.14 * radius, (0, side, 0), 3)
        for spoke in range(2):
            form.add(hole.spun(180 * spoke, 1, (x, 0, radius)), RIM_DARK, joint=turning)


def add_far_wheels(form: Form, x: float, outer: float, radius: float) -> None:
    """A pair of wheels for what is far away: the lower part of one drum across.

    Args:
        x: of their axle.
        outer: y of their outer faces.
        radius: in metres.
    """
    drum = cylinder((x, -outer, radius), (x, outer, radius), radius, 5)
    above = (drum.vertices[drum.triangles, 2].mean(1) > radius) & (drum.part < 5)
    form.add(Solid(drum.vertices, drum.triangles[~above], drum.part[~above]), RUBBER)


def add_far_beacons(form: Form, x: float, reach: float, low: float, high: float) -> None:
    """A light bar for what is far away: two ridges across.

    Args:
        x: of its middle.
        reach: how far it goes to either side.
        low: height of its foot.
        high: of its ridge.
    """
    for side, bulb in zip((1, -1), BEACONS, strict=True):
        section = [(x - 0.14, low), (x + 0.14, low), (x, high)]
        ridge = loft([[(a, side * y, z) for a, z in section] for y in (0.1, reach)])
        form.add(ridge.without(0, 3, 4), BLUE, bulb=bulb)


def add_number_plate(form: Form, end: End, low: float) -> None:
    """A number plate with something on it.

    Args:
        end: where.
        low: height of its lower edge in metres.
    """
    quad = end.quad(0.26, low, low + 0.12)
    form.add(patch(quad, lift=0.03), PLATE)
    for start in (0.1, 0.55):
        form.add(patch(quad, window(start, start + 0.35, 0.25, 0.75), lift=0.034), INK)


def add_mirrors(form: Form, x: float, y: float, low: float, size: tuple[float, float, float]) -> None:
    """A pair of mirrors; they stick out of the vehicle's size.

    Args:
        x: of their middle.
        y: where they begin.
        low: height of their lower edge.
        size: along x, y and z in metres.
    """
    long, wide, high = size
    glass = box((x - long / 2, y, low), (x + long / 2, y + wide, low + high))
    form.add(glass, PLASTIC, trim=True)
    form.add(glass.mirrored(), PLASTIC, trim=True)


def add_lamps(
    form: Form,
    front: End,
    rear: End,
    *,
    head: tuple[float, float, float, float],
    tail: tuple[float, float, float, float],
    stacked: bool = False,
) -> None:
    """All lamps of a vehicle with four wheels or more.

    Args:
        front: face with head lamps and indicators.
        rear: face with brake, reversing lamps and indicators.
        head: inner and outer edge of head lamps as shares of the face's half width, and their heights.
        tail: the same of tail lamps.
        stacked: whether the rear lamps stand above each other.
    """
    inner, outer, low, high = head
    for side in (1, -1):
        form.add(front.block(side, inner, outer - 0.24, low, high), CLEAR, bulb=HEAD_BULB)
        form.add(front.block(side, outer - 0.22, outer, low, high, 1.0), AMBER, bulb=BLINKERS[side])
    inner, outer, low, high = tail
    for side in (1, -1):
        if stacked:
            cuts = low + (high - low) * np.array([0.0, 0.24, 0.56, 1.0])
            form.add(rear.block(side, inner, outer, cuts[0], cuts[1], 0.9), CLEAR, bulb=REVERSE_BULB)
            form.add(rear.block(side, inner, outer, cuts[1], cuts[2], 0.9), AMBER, bulb=BLINKERS[side])
            form.add(rear.block(side, inner, outer, cuts[2], cuts[3], 0.9), RED, bulb=BRAKE_BULB)
            continue
        middle = low + 0.48 * (high - low)
        form.add(rear.block(side, inner, outer, middle, high, 1.0), RED, bulb=BRAKE_BULB)
        cut = inner + 0.4 * (outer - inner)
        form.add(rear.block(side, inner, cut, low, middle), CLEAR, bulb=REVERSE_BULB)
        form.add(rear.block(side, cut, outer, low, middle, 1.0), AMBER, bulb=BLINKERS[side])


def add_far_lamps(
    form: Form, front: End, rear: End, *, head: tuple[float, float], tail: tuple[float, float]
) -> None:
    """The same as flat pieces, for what is far away.

    Args:
        front: face with head lamps and indicators.
        rear: face with brake, reversing lamps and indicators.
        head: heights of the head lamps.
        tail: of the tail lamps.
    """
    for side in (1, -1):
        face = front.quad(0.16 * front.full, *head, side * 0.58 * front.full)
        form.add(patch(face), CLEAR, bulb=HEAD_BULB)
        face = front.quad(0.12 * front.full, *head, side * 0.88 * front.full)
        form.add(patch(face), AMBER, bulb=BLINKERS[side])
        face = rear.quad(0.14 * rear.full, *tail, side * 0.6 * rear.full)
        form.add(patch(face), RED, bulb=BRAKE_BULB)
        face = rear.quad(0.12 * rear.full, *tail, side * 0.88 * rear.full)
        form.add(patch(face), AMBER, bulb=BLINKERS[side])
    low, high = tail
    face = rear.quad(0.2 * rear.full, low - 0.5 * (high - low), low)
    form.add(patch(face, [(0, 0), (1, 0), (0.5, 1)]), CLEAR, bulb=REVERSE_BULB)


def add_side_chequers(form: Form, quad: Floats, columns: int, rows: int, dark: Paint, light: Paint) -> None:
    """Squares of two paints in turn on both sides, as emergency vehicles have them.

    Args:
        quad: (4, 3) corners on the left side.
        columns: along it.
        rows: above each other.
        dark: of every second square.
        light: of the whole below them.
    """
    add_mirrored_patch(form, quad, None, light, 0.006)
    for column in range(columns):
        for row in range(rows):
            if (column + row) % 2 == 0:
                square = window(column / columns, (column + 1) / columns, row / rows, (row + 1) / rows)
                add_mirrored_patch(form, quad, square, dark, 0.012)


def add_face_chequers(form: Form, quad: Floats, columns: int, rows: int, dark: Paint, light: Paint) -> None:
    """The same on one face, such as a bonnet or a rear door.

    Args:
        quad: (4, 3) corners, counter-clockwise seen from outside.
        columns: along it.
        rows: above each other.
        dark: of every second square.
        light: of the whole below them.
    """
    form.add(patch(quad, lift=0.012), light)
    for column in range(columns):
        for row in range(column % 2, rows, 2):
            square = window(column / columns, (column + 1) / columns, row / rows, (row + 1) / rows)
            form.add(patch(quad, square, 0.02), dark)


# Bodies of motor vehicles: a hull with wheel arches, and a cabin with windows on it.

Contour = Sequence[tuple[float, float, float]]
Arch = tuple[float, float]


def build_hull(
    contour: Contour,
    low: float,
    arches: Sequence[Arch] = (),
    *,
    drop: float = 0.09,
    sill: float = 0.95,
    crown: float = 0.8,
) -> Solid:
    """A body from rear to front whose lower edge makes room for wheels.

    Parts: 0 below, 1 left side, 2 left shoulder, 3 top, 4 right shoulder, 5 right side, 6 rear, 7 front.

    Args:
        contour: x, height and half width at points from rear to front, in metres.
        low: height of the lower edge.
        arches: x of an axle and radius of its wheels.
        drop: height of the shoulders.
        sill: half width at the lower edge, as a share of that at the shoulders.
        crown: half width of the top, the same.
    """
    x, high, half = np.array(contour).T
    at = [x]
    for axle, radius in arches:
        at.append(axle + radius * np.array([-1.16, -0.8, 0.8, 1.16]))
    places = np.unique(np.concatenate(at))
    floor = np.full(len(places), low)
    for axle, radius in arches:
        floor[np.abs(places - axle) <= 0.81 * radius] = 2.1 * radius
    top, wide = np.interp(places, x, high), np.interp(places, x, half)
    belt = np.maximum(top - drop, np.minimum(floor + 0.03, top - 0.02))
    rings = np.empty((len(places), 6, 3))
    for corner, (share, height) in enumerate(
        ((-sill, floor), (sill, floor), (1.0, belt), (crown, top), (-crown, top), (-1.0, belt))
    ):
        rings[:, corner] = np.column_stack([places, share * wide, height])
    return loft(rings)


def build_far_hull(contour: Contour, low: float) -> Solid:
    """The same for what is far away: parts 1 to 5 are left, top, right, rear and front; it is open below.

    Args:
        contour: x, height and half width at points from rear to front, in metres.
        low: height of the lower edge.
    """
    rings = [[(x, -y, low), (x, y, low), (x, y, high), (x, -y, high)] for x, high, y in contour]
    return loft(rings).without(0)


def add_underside(form: Form, rear: float, front: float, half: float, low: float, high: float) -> None:
    """The dark block between the wheels, so that nobody looks through the arches.

    Args:
        rear: x where it begins.
        front: x where it ends.
        half: half its width.
        low: height of its lower side.
        high: of its upper side.
    """
    form.add(box((rear, -half, low), (front, half, high)), SHADE)


def add_cabin(
    form: Form,
    paint: Paint,
    foot: tuple[float, float, float, float],
    roof: tuple[float, float, float],
    halves: tuple[float, float],
    panes: Sequence[tuple[float, float]],
) -> None:
    """The upper part of a car, with windscreen, side and rear windows.

    Args:
        paint: of pillars and roof.
        foot: x of the rear and its height, x of the front and its height, at the lower edge.
        roof: x of the rear, x of the front, and height.
        halves: half widths at the lower edge and at the roof.
        panes: where side windows begin and end, as shares of its length from the front.
    """
    rear, rear_low, front, front_low = foot
    roof_rear, roof_front, top = roof
    wide, narrow = halves
    edge = top - 0.05
    lower = [
        (rear, -wide, rear_low),
        (front, -wide, front_low),
        (front, wide, front_low),
        (rear, wide, rear_low),
    ]
    upper = _level(roof_rear, roof_front, narrow, edge)
    inset = 0.12 * (roof_front - roof_rear)
    form.add(loft([lower, upper, _level(roof_rear + inset, roof_front - inset, 0.75 * narrow, top)]), paint)
    low = np.array(lower)
    high = np.array(upper)
    # Counter-clockwise from outside: the front is seen from +x, its right is our left.
    screen = np.array([low[1], low[2], high[2], high[1]])
    form.add(patch(screen, window(0.02, 0.98, 0.02, 0.98), 0.006), INK)
    form.add(patch(screen, [(0.05, 0.05), (0.95, 0.05), (0.93, 0.95), (0.07, 0.95)], 0.014), GLASS)
    back = np.array([low[3], low[0], high[0], high[3]])
    form.add(patch(back, [(0.08, 0.22), (0.92, 0.22), (0.9, 0.92), (0.1, 0.92)]), GLASS)
    side = np.array([low[2], low[3], high[3], high[2]])
    # Frames between side windows are black, as on most cars; the others have the colour of the body.
    add_mirrored_patch(form, side, window(panes[0][0] + 0.02, panes[-1][1] - 0.02, 0.06, 0.92), INK, 0.006)
    for start, end in panes:
        add_mirrored_patch(form, side, window(start, end, 0.08, 0.9), GLASS, 0.014)


def build_far_cabin(
    foot: tuple[float, float, float, float], roof: tuple[float, float, float], halves: tuple[float, float]
) -> Solid:
    """The same for what is far away: parts 0 to 5 are right, front, left, rear, below and roof.

    Args:
        foot: x of the rear and its height, x of the front and its height, at the lower edge.
        roof: x of the rear, x of the front, and height.
        halves: half widths at the lower edge and at the roof.
    """
    rear, rear_low, front, front_low = foot
    wide, narrow = halves
    lower = [
        (rear, -wide, rear_low),
        (front, -wide, front_low),
        (front, wide, front_low),
        (rear, wide, rear_low),
    ]
    return loft([lower, _level(roof[0], roof[1], narrow, roof[2])]).without(4)


def add_door_seams(
    form: Form,
    paint: Paint,
    places: Sequence[float],
    half: float,
    low: float,
    high: float,
    sill: float = 0.95,
) -> None:
    """Gaps around doors on both sides, not so dark that pixels of them look like dirt from afar.

    Args:
        paint: of the body.
        places: x of each.
        half: half the width at the shoulders.
        low: height of the lower edge.
        high: of the shoulders.
        sill: half width at the lower edge, as a share.
    """
    gap = scale_brightness(paint, 0.4)
    for x in places:
        add_mirrored_patch(
            form, flank(x + 0.014, x - 0.014, (sill * half, low), (half, high)), None, gap, 0.01
        )


def _level(rear: float, front: float, half: float, height: float) -> list[tuple[float, float, float]]:
    return [(rear, -half, height), (front, -half, height), (front, half, height), (rear, half, height)]


def add_side_windows(
    form: Form, y: float, spans: Sequence[tuple[float, float]], low: float, high: float
) -> None:
    """Upright windows on both sides, in a black band.

    Args:
        y: of the sides.
        spans: x of the front and the rear of each.
        low: height of their lower edges.
        high: of their upper edges.
    """
    frame = flank(spans[0][0] + 0.06, spans[-1][1] - 0.06, (y, low - 0.06), (y, high + 0.06))
    add_mirrored_patch(form, frame, None, INK)
    for front, rear in spans:
        add_mirrored_patch(form, flank(front, rear, (y, low), (y, high)), None, GLASS, 0.014)


def split_window_row(front: float, rear: float, count: int, gap: float) -> list[tuple[float, float]]:
    """x of the front and the rear of windows in a row.

    Args:
        front: x where the row begins.
        rear: x where it ends.
        count: windows.
        gap: metres between two.
    """
    long = (front - rear + gap) / count
    return [(front - k * long, front - k * long - long + gap) for k in range(count)]


def add_windscreen(
    form: Form,
    low: tuple[float, float, float],
    high: tuple[float, float, float],
    rim: float = 0.05,
    bare: bool = False,
) -> None:
    """A windscreen across the front, in a black surround that sets it off from any paint.

    Args:
        low: x, half width and z of its lower edge.
        high: of its upper edge.
        rim: share of it that is frame.
        bare: whether to leave the surround out.
    """
    (x0, y0, z0), (x1, y1, z1) = low, high
    quad = [(x0, -y0, z0), (x0, y0, z0), (x1, y1, z1), (x1, -y1, z1)]
    if not bare:
        form.add(patch(quad, window(0.4 * rim, 1 - 0.4 * rim, 0.0, 1.0), 0.006), INK)
    form.add(patch(quad, window(rim, 1 - rim, rim, 1 - rim), 0.014), GLASS)
