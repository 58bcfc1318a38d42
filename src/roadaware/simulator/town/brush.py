"""Brush: paints lines, broken lines and shapes on a stretch of road."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.layout import Layout, Road
from roadaware.simulator.town.drawing import Coat, Pile
from roadaware.simulator.town.ground import MARKING_M
from roadaware.simulator.town.palette import Palette
from roadaware.simulator.town.regions import Rules
from roadaware.simulator.town.tracks import Track, strip


@dataclass(frozen=True, eq=False)
class Brush:
    """Paints a stretch of road.

    Args:
        pile: gets the paint.
        layout: the road lies in.
        road: of it.
        track: the road's line.
        palette: of the town.
        span: start and end along the road.
        rules: what holds on it.
    """

    pile: Pile
    layout: Layout
    road: Road
    track: Track
    palette: Palette
    span: tuple[float, float]
    rules: Rules

    @property
    def free(self) -> tuple[tuple[float, float], ...]:
        """(start, end) along the road between crossings, where lines run."""
        return self.rules.free[self.road.number]

    def line(self, left: float, width: float, coat: Coat, start: float = 0.0, end: float = np.inf) -> None:
        """A line along the road, as far as it lies in the stretch.

        Args:
            left: of its middle from the road's line.
            width: of it.
            coat: its paint.
            start: along the road.
            end: along the road.
        """
        for first, last in self.free:
            low, high = max(start, self.span[0], first), min(end, self.span[1], last)
            if high - low > 0.05:
                piece = self.track.cut(low, high, 15.0)
                self.pile.flat(strip(piece, left - width / 2, left + width / 2), MARKING_M, coat)

    def dashes(
        self,
        left: float,
        width: float,
        coat: Coat,
        mark: float,
        gap: float,
        start: float = 0.0,
        end: float = np.inf,
    ) -> None:
        """A broken line along the road; its dashes begin at multiples of mark and gap.

        Args:
            left: of its middle from the road's line.
            width: of it.
            coat: its paint.
            mark: length of a dash.
            gap: between dashes.
            start: along the road.
            end: along the road.
        """
        beat = mark + gap
        low, high = max(start, self.span[0]), min(end, self.span[1], self.track.length - mark)
        # At multiples counted from the start of the road, so that the
        # dashes of stretches that meet fit together.
        starts = np.arange(np.ceil(low / beat - 1e-9) * beat, high, beat)
        clear = [(starts >= first) & (starts + mark <= last) for first, last in self.free]
        starts = starts[np.any(clear, axis=0)] if clear else starts[:0]
        if not len(starts):
            return
        a, b = self.track.at(starts), self.track.at(starts + mark)
        near, far = left - width / 2, left + width / 2
        quads = np.stack([a.beside(near), b.beside(near), b.beside(far), a.beside(far)], axis=1)
        self.pile.flat(quads, MARKING_M, coat)

    def stamp(self, s: float, left: float, shape: Floats, coat: Coat, forward: bool = True) -> None:
        """Faces drawn around a point of the road, seen by those who drive along it.

        Args:
            s: along the road.
            left: of the point from the road's line.
            shape: (n, 4, 2) along and left of the direction of travel.
            coat: its paint.
            forward: whether travel is along the road's line.
        """
        if not self.span[0] <= s < self.span[1]:
            return
        here = self.track.at(np.array([s]))
        angle = float(here.headings[0]) + (0.0 if forward else np.pi)
        c, sine = np.cos(angle), np.sin(angle)
        self.pile.flat(here.beside(left)[0] + shape @ np.array([[c, sine], [-sine, c]]), MARKING_M, coat)
