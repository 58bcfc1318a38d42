"""Buses: single decker, double decker and coach."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.figures.bodies import block, hull, panes, row, screen, underside
from roadaware.scenes.simulator.figures.colours import GLASS, INK, PLASTIC, SHADE, Colour, gloss, matt, shaded
from roadaware.scenes.simulator.figures.form import Form, Paint, Size
from roadaware.scenes.simulator.figures.parts import (
    RED,
    THIRD_BULB,
    End,
    both,
    far_lamps,
    flank,
    lamps,
    mirrors,
    plate,
    rollers,
    wheels,
)
from roadaware.scenes.simulator.figures.shapes import patch, window
from roadaware.scenes.simulator.mesh import Semantic

RADIUS_M = 0.48
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


def bus(model: str, size: Size, rng: np.random.Generator, coarse: bool) -> Form:
    """A bus.

    Args:
        model: single_decker, double_decker or coach.
        size: length, width and height in metres.
        rng: of its livery.
        coarse: whether a few triangles are enough.
    """
    form = Form(Semantic.BUS)
    livery = np.array(LIVERIES[int(rng.integers(len(LIVERIES)))]) * rng.uniform(0.85, 1.15)
    paint = gloss(livery)
    trim = gloss(0.55 * livery + 0.35) if rng.random() < 0.6 else shaded(paint, 0.4)
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
            form.add(block([(x, z, 0.98 * half) for x, z, _ in few], LOW_M), self.paint)
            far_lamps(form, self.front, self.rear, head=head, tail=tail)
            for axle in self.axles:
                rollers(form, axle, half, RADIUS_M)
            return
        arches = [(axle, RADIUS_M) for axle in self.axles]
        form.add(hull(contour, LOW_M, arches, drop=0.15, sill=1.0, crown=0.9), self.paint, {0: SHADE})
        underside(form, -0.47 * self.length, 0.47 * self.length, 0.6 * half, LOW_M - 0.05, 1.0)
        lamps(form, self.front, self.rear, head=(0.55, 1.0, *head), tail=(0.78, 1.0, *tail), stacked=True)
        wheels(form, self.axles[0], half - 0.01, RADIUS_M, 0.3, steers=True)
        wheels(form, self.axles[1], half - 0.01, RADIUS_M, 0.5)
        plate(form, self.front, 0.4)
        plate(form, self.rear, 0.55)

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
            panes(form, self.half, row(front, rear, count, gap), low, high)
            if deck:
                screen(form, self.face(low), self.face(high), 0.03, coarse)
        low, high = self.decks[0]
        screen(
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
                both(form, hatches, window(share, share + 0.012, 0.0, 1.0), SHADE)
            both(form, hatches, window(0.0, 1.0, 0.97, 1.0), SHADE)
        else:
            self._destination(form)
        front, rear = self.front.x - 0.4, self.rear.x + 0.2
        both(
            form, flank(front, rear, (self.half, low - 0.22), (self.half, low - 0.06)), None, self.trim, 0.006
        )
        if len(self.decks) > 1:
            band = flank(
                self.front.x - 0.35, self.rear.x + 0.2, (self.half, high + 0.1), (self.half, high + 0.5)
            )
            both(form, band, None, self.trim, 0.006)
            both(form, band, window(0.36, 0.72, 0.1, 0.9), matt((0.6, 0.6, 0.58)), 0.012)
            both(form, band, window(0.4, 0.62, 0.35, 0.65), INK, 0.016)
        self._door(form, self.front.x - 0.42, 1.1, high)
        if self.model != "coach":
            self._door(form, 0.3, 1.25, high)
        self._back(form)
        height = 1.95 if self.model == "coach" else 1.75
        mirrors(form, self.front.x - 0.05, 0.98 * self.half, height, (0.16, 0.24, 0.45))

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
        both(form, side, None, INK, 0.02)
