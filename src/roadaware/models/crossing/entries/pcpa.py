"""What is known of PCPA: sizes and card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from roadaware.models.crossing.entries.pixels import Pixels
from roadaware.models.crossing.entry import crossing_network


@dataclass(frozen=True)
class PcpaConfig:
    """Sizes of PCPA.

    Args:
        width: units of each GRU and of every attention's answer.
        dropout: behind the attention over time.
        filters: channels of C3D's five stages.
        pixels: which numbers the colours become; see `Pixels`.
    """

    width: int = 256
    dropout: float = 0.5
    filters: tuple[int, ...] = (64, 128, 256, 512, 512)
    pixels: Pixels = "imagenet"

    @classmethod
    def reference(cls) -> Self:
        """As the benchmark ran it: colours as they are, from 0 to 255."""
        return cls(pixels="bytes")

    @classmethod
    def small(cls) -> Self:
        """A quarter of the published widths."""
        return cls(width=64, filters=(16, 32, 64, 128, 128))

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=8, filters=(2, 2, 4, 4, 4))


PCPA = crossing_network(
    "pcpa",
    PcpaConfig,
    "pcpa:PCPA",
    reads=("crop:box@112", "pose", "boxes", "ego:speed"),
    paper="Kotseruba et al., Benchmark for Evaluating Pedestrian Action Prediction, WACV 2021",
    diagram="crops -> C3D without its top, flattened -> FC 256 sigmoid; each sequence -> GRU 256, all "
    "states -> attention over time asked by the last state -> tanh of 256 -> dropout 0.5; all of these, "
    "crops first, as one sequence -> the same attention, asked by the last -> FC. Without crops that "
    "branch is missing; with one input alone there is no second attention",
    parameters="31,165,953 with crops of 112 pixels in 16 frames, pose, boxes and speed",
    inputs="crops of the box of 112 pixels, pose (36), boxes (4), speed (1), 16 frames; the authors' "
    "code takes boxes in pixels, here sequences are standardised on train",
    weights="none are shipped; the authors' code starts C3D at random too",
    published="PIE accuracy 0.87, F1 0.77 [recalled]; JAAD all accuracy 0.83, F1 0.64 (the authors' "
    "correction of 0.85)",
)
