"""TrafficView: moving vehicles and traffic lights of one frame, for those who must look out for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.simulator.actors import Light


@dataclass(frozen=True, eq=False)
class TrafficView:
    """Vehicles on the roads in one frame; the own vehicle is the first row.

    Args:
        frame: of the scene.
        time_s: since the start of the scene.
        position: (v, 2) of the middle of each moving vehicle and cyclist on the ground, metres.
        heading: (v,) radians.
        speed: (v,) m/s along the heading, negative in reverse.
        length: (v,) metres.
        width: (v,) metres.
        lights: (signals,) uint8, the `Light` that each traffic light shows.
    """

    frame: int
    time_s: float
    position: Floats
    heading: Floats
    speed: Floats
    length: Floats
    width: Floats
    lights: npt.NDArray[np.uint8]

    def signal(self, number: int) -> Light:
        """What a traffic light shows in this frame.

        Args:
            number: of the signal, as in `Layout.signals`.
        """
        return Light(int(self.lights[number]))
