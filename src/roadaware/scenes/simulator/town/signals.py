"""Where traffic lights stand: at the stop line of each approach, again on the far side, and at crossings."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.simulator.layout import SignalSite

HEAD_M, WALKER_M = 2.9, 2.3
"""Height of the middle of the heads."""
BESIDE_M = 0.45
"""From the kerb to the pole."""


@dataclass(eq=False)
class Heads:
    """Traffic lights as they are put up.

    Args:
        sites: so far, by number.
        groups: how many there are so far.
    """

    sites: list[SignalSite] = field(default_factory=list)
    groups: int = 0

    def group(self) -> int:
        """A new group."""
        self.groups += 1
        return self.groups - 1

    def add(
        self,
        place: Floats,
        facing: float,
        group: int,
        lanes: tuple[int, ...] = (),
        junction: int = -1,
        crossing: int = -1,
    ) -> int:
        """Put one up and return its number.

        Args:
            place: (2,) of its pole.
            facing: where its face points, in radians.
            group: what it belongs to.
            lanes: that obey it; none for a light of walkers.
            junction: number of its junction.
            crossing: number of its crossing.
        """
        walkers = not lanes
        position = (float(place[0]), float(place[1]), WALKER_M if walkers else HEAD_M)
        heading = float((facing + np.pi) % (2 * np.pi) - np.pi)
        site = SignalSite(len(self.sites), position, heading, lanes, junction, crossing, walkers, group)
        self.sites.append(site)
        return site.number
