"""What is known of the networks on poses: sizes and cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from roadaware.models.crossing.entry import crossing_network


@dataclass(frozen=True)
class SpiNetConfig:
    """Sizes of SPI-Net.

    Args:
        filters: half the channels of the convolutions on the picture of joints.
        convolutions: of each of the two stacks; the picture is halved behind each.
        dense: units of the two layers behind the convolutions.
        geometry: units of the layers on distances and other sequences.
        slope: of the leaky ReLUs.
        dropout_channels: how often a channel of a convolution is dropped.
        dropout: behind the dense layers.
    """

    filters: int = 32
    convolutions: int = 3
    dense: int = 128
    geometry: tuple[int, ...] = (128, 64, 32)
    slope: float = 0.2
    dropout_channels: float = 0.1
    dropout: float = 0.5

    @classmethod
    def small(cls) -> Self:
        """A quarter of the width."""
        return cls(filters=8, dense=32, geometry=(32, 16, 8))

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(filters=3, dense=8, geometry=(8, 6))


@dataclass(frozen=True)
class TrouSpiNetConfig:
    """Sizes of TrouSPI-Net.

    Args:
        width: units of each GRU and of every attention's answer.
        filters: channels of each branch on the picture of joints.
        rates: distance between the taps of the convolutions, one branch each.
        reduction: how much narrower the attention over channels is inside.
        dropout: behind the attention over time.
    """

    width: int = 64
    filters: int = 32
    rates: tuple[int, ...] = (1, 2, 4)
    reduction: int = 4
    dropout: float = 0.5

    @classmethod
    def small(cls) -> Self:
        """A quarter of the width."""
        return cls(width=16, filters=8)

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=6, filters=4, rates=(1, 2), reduction=1)


_INPUTS = (
    "pose (36: x and y of 18 joints as shares, zeros where a joint is unknown, not standardised since "
    "distances between joints are taken), boxes (4) and other sequences, which are standardised on train; it "
    "needs a pose"
)
SPI_NET = crossing_network(
    "spi-net",
    SpiNetConfig,
    "spinet:SpiNet",
    reads=("pose", "boxes"),
    paper="Gesnouin et al., Predicting Intentions of Pedestrians from 2D Skeletal Pose Sequences with "
    "a Representation-Focused Multi-Branch Deep Learning Network, Algorithms 13(12), 2020, as in "
    "Gesnouin et al., IV 2022",
    diagram="geometry: distances of all pairs of joints in all frames, beside all other sequences -> "
    "FC 128, 64, 32 with ReLU (the encoder of the paper's auto-encoder; its decoder and separability "
    "loss are left out, as in IV 2022 [recalled]); joints: picture of frames x joints x 2 -> two "
    "stacks, 7x7 and 3x3, each 3 times [64 channels, batch norm, leaky ReLU 0.2, channels dropped 0.1, "
    "halved by averaging], beside the picture itself, averaged as often -> two 3x3 convolutions -> "
    "mean -> twice [FC 128, batch norm, leaky ReLU, dropout 0.5 [recalled]]; both side by side -> FC",
    parameters="952,577 with pose and boxes in 16 frames",
    inputs=_INPUTS + "; at least 8 frames",
    weights="none are shipped",
)
TROUSPI_NET = crossing_network(
    "trouspi-net",
    TrouSpiNetConfig,
    "trouspi:TrouSpiNet",
    reads=("pose", "boxes", "ego:speed"),
    paper="Gesnouin et al., TrouSPI-Net: Spatio-temporal attention on parallel atrous convolutions and "
    "U-GRUs for skeletal pedestrian crossing prediction, FG 2021",
    diagram="picture of frames x joints x 2 -> branches of two 3x3 convolutions with their taps 1, 2 "
    "or 4 apart (32 channels, batch norm, ReLU), each with attention over channels, then over places "
    "-> mean over the picture, side by side -> FC 64; distances of all pairs of joints, boxes and "
    "every other sequence: U-GRU 64 (a GRU from the last frame to the first, whose states stand beside "
    "the input of a GRU from first to last) -> attention over time as in PCPA -> dropout 0.5; all of "
    "these -> attention over inputs as in PCPA -> FC. Branches, U-GRUs and attentions are [recalled] "
    "and confirmed by the abstract, all sizes are our choice",
    parameters="260,706 with pose, boxes and speed [sizes our choice]",
    inputs=_INPUTS,
    weights="none are shipped",
    published="JAAD behaviour F1 0.76; PIE F1 0.80, accuracy 0.88 and AUC 0.88 [recalled]",
)
