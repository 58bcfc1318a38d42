"""Bodies of motor vehicles: a hull with wheel arches, and a cabin with windows on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from roadaware.scenes.simulator.figures.colours import GLASS, INK, SHADE, shaded
from roadaware.scenes.simulator.figures.form import Form, Paint
from roadaware.scenes.simulator.figures.parts import both, flank
from roadaware.scenes.simulator.figures.shapes import Solid, box, loft, patch, window

Contour = Sequence[tuple[float, float, float]]
Arch = tuple[float, float]


def hull(
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


def block(contour: Contour, low: float) -> Solid:
    """The same for what is far away: parts 1 to 5 are left, top, right, rear and front; it is open below.

    Args:
        contour: x, height and half width at points from rear to front, in metres.
        low: height of the lower edge.
    """
    rings = [[(x, -y, low), (x, y, low), (x, y, high), (x, -y, high)] for x, high, y in contour]
    return loft(rings).without(0)


def underside(form: Form, rear: float, front: float, half: float, low: float, high: float) -> None:
    """The dark block between the wheels, so that nobody looks through the arches.

    Args:
        form: to put it on.
        rear: x where it begins.
        front: x where it ends.
        half: half its width.
        low: height of its lower side.
        high: of its upper side.
    """
    form.add(box((rear, -half, low), (front, half, high)), SHADE)


def cabin(
    form: Form,
    paint: Paint,
    foot: tuple[float, float, float, float],
    roof: tuple[float, float, float],
    halves: tuple[float, float],
    panes: Sequence[tuple[float, float]],
    *,
    rear_pane: bool = True,
) -> None:
    """The upper part of a car, with windscreen, side and rear windows.

    Args:
        form: to put it on.
        paint: of pillars and roof.
        foot: x of the rear and its height, x of the front and its height, at the lower edge.
        roof: x of the rear, x of the front, and height.
        halves: half widths at the lower edge and at the roof.
        panes: where side windows begin and end, as shares of its length from the front.
        rear_pane: whether it has a rear window.
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
    if rear_pane:
        back = np.array([low[3], low[0], high[0], high[3]])
        form.add(patch(back, [(0.08, 0.22), (0.92, 0.22), (0.9, 0.92), (0.1, 0.92)]), GLASS)
    side = np.array([low[2], low[3], high[3], high[2]])
    # Frames between side windows are black, as on most cars; the others have the colour of the body.
    both(form, side, window(panes[0][0] + 0.02, panes[-1][1] - 0.02, 0.06, 0.92), INK, 0.006)
    for start, end in panes:
        both(form, side, window(start, end, 0.08, 0.9), GLASS, 0.014)


def glasshouse(
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


def seams(
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
        form: to put them on.
        paint: of the body.
        places: x of each.
        half: half the width at the shoulders.
        low: height of the lower edge.
        high: of the shoulders.
        sill: half width at the lower edge, as a share.
    """
    gap = shaded(paint, 0.4)
    for x in places:
        both(form, flank(x + 0.014, x - 0.014, (sill * half, low), (half, high)), None, gap, 0.01)


def _level(rear: float, front: float, half: float, height: float) -> list[tuple[float, float, float]]:
    return [(rear, -half, height), (front, -half, height), (front, half, height), (rear, half, height)]


def panes(form: Form, y: float, spans: Sequence[tuple[float, float]], low: float, high: float) -> None:
    """Upright windows on both sides, in a black band.

    Args:
        form: to put them on.
        y: of the sides.
        spans: x of the front and the rear of each.
        low: height of their lower edges.
        high: of their upper edges.
    """
    frame = flank(spans[0][0] + 0.06, spans[-1][1] - 0.06, (y, low - 0.06), (y, high + 0.06))
    both(form, frame, None, INK)
    for front, rear in spans:
        both(form, flank(front, rear, (y, low), (y, high)), None, GLASS, 0.014)


def row(front: float, rear: float, count: int, gap: float) -> list[tuple[float, float]]:
    """x of the front and the rear of windows in a row.

    Args:
        front: x where the row begins.
        rear: x where it ends.
        count: windows.
        gap: metres between two.
    """
    long = (front - rear + gap) / count
    return [(front - k * long, front - k * long - long + gap) for k in range(count)]


def screen(
    form: Form,
    low: tuple[float, float, float],
    high: tuple[float, float, float],
    rim: float = 0.05,
    bare: bool = False,
) -> None:
    """A windscreen across the front, in a black surround that sets it off from any paint.

    Args:
        form: to put it on.
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
