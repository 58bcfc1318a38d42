"""What is known of our own network: sizes and card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from roadaware.models.crossing.entry import crossing_network

LEAST = 1e-5
"""Added to the share of every region before its logarithm is taken."""
LOG_WIDTHS = (-6.0, 2.0)
"""The narrowest and the widest component of whereabouts: logarithms of widths of the picture."""


@dataclass(frozen=True)
class SteadyConfig:
    """Sizes of our own network.

    Args:
        width: of each frame inside.
        kernel: frames that a convolution joins.
        dilations: distance between these frames, of each convolution.
        dropout: behind each layer.
        places: for labels that are regions of the picture from left to right (risk): components of a mixture
            over where the pedestrian will be, whose shares of the regions the last layer begins with; 0 for
            other labels.
    """

    width: int = 64
    kernel: int = 3
    dilations: tuple[int, ...] = (1, 2, 4)
    dropout: float = 0.1
    places: int = 0

    @property
    def frames(self) -> int:
        """How far an answer looks back, its own frame counted: 15 frames with the defaults."""
        return 1 + (self.kernel - 1) * sum(self.dilations)

    @classmethod
    def small(cls) -> Self:
        """It is small."""
        return cls()

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=8, dilations=(1, 2))


STEADY = crossing_network(
    "steady",
    SteadyConfig,
    "steady:Steady",
    reads=("centre", "motion", "ego:action"),
    each_frame=True,
    paper="ours",
    diagram="numbers of a frame, standardised -> FC 64, GELU, dropout, FC 64 -> 3 times: LayerNorm, "
    "convolution over 3 frames that looks back 1, 2 or 4 frames at a time, GELU, dropout, plus what came "
    "in -> LayerNorm -> FC. The answer of a frame sees that frame and the 14 before it, so a clip of 15 "
    "frames and an endless stream give the same; `every_frame` answers at each frame, `step` takes one "
    "frame at a time. For risk, `places`: FC -> weights, offsets from where the pedestrian is and "
    "spreads of a mixture of logistic distributions across the picture -> log share of each region, "
    "which the last layer sees too",
    parameters="42,881 with centre, motion and one of five ego actions",
    inputs="sequences in which a frame does not tell of later ones: centre and velocities, "
    "velocities in own heights, ego motion; boxes relative to the last or first one are refused; "
    "standardised on train",
    weights="trained by a recipe of this project",
)
