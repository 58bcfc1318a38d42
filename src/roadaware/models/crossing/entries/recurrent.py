"""What is known of the recurrent networks of the benchmark: sizes and cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from roadaware.models.crossing.entries.pixels import SWAPPED, Pixels
from roadaware.models.crossing.entry import Entry, crossing_network

_BENCHMARK = "Kotseruba et al., Benchmark for Evaluating Pedestrian Action Prediction, WACV 2021"


@dataclass(frozen=True)
class RecurrentConfig:
    """Sizes of a recurrent network.

    Args:
        width: units of each GRU.
        filters: channels of VGG16's five stages, through which crops are seen.
        pixels: which numbers their colours become; see `Pixels`.
        swapped: whether blue is taken for red, as the benchmark's pictures were.
        settled: whether VGG16, without weights to begin with, begins with channels of mean 0 and deviation 1
            on the first crops that it learns from; as it is drawn, its features can shut the gates for good.
    """

    width: int = 256
    filters: tuple[int, ...] = (64, 128, 256, 512, 512)
    pixels: Pixels = "imagenet"
    swapped: bool = False
    settled: bool = False

    @classmethod
    def reference(cls) -> Self:
        """As the benchmark ran it: Keras' numbers, swapped colours."""
        return cls(pixels="keras", swapped=True)

    @classmethod
    def small(cls) -> Self:
        """A quarter of the published widths, for crops of 64 pixels."""
        return cls(width=64, filters=(16, 32, 64, 128, 128))

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=8, filters=(2, 2, 4, 4, 4))


def _recurrent(name: str, network: str, *, paper: str, diagram: str, parameters: str) -> Entry:
    return crossing_network(
        name,
        RecurrentConfig,
        f"recurrent:{network}",
        reads=("crop:box@224", "crop:surround@224", "pose", "boxes:first", "ego:speed"),
        paper=paper,
        diagram=f"each crop -> VGG16 without its top, mean over the picture (512); {diagram} -> FC",
        parameters=f"{parameters} with all inputs of the paper, of which 14,714,688 are VGG16's; GRUs in "
        "torch's form, which is that of Keras with reset_after",
        inputs="any of two crops of 224 pixels, pose (36), boxes less the first box (4), speed (1); without "
        "crops it is the same network without that branch; sequences standardised on train; " + SWAPPED,
        weights="none are shipped; trained here from scratch unless weights of VGG16 are given",
    )


SINGLE_RNN = _recurrent(
    "single-rnn",
    "SingleRNN",
    paper=f"Kotseruba et al., IV 2020 [recalled], as in {_BENCHMARK}",
    diagram="all numbers of a frame side by side -> GRU 256, last state",
    parameters="15,731,009",
)
MULTI_RNN = _recurrent(
    "multi-rnn",
    "MultiRNN",
    paper=f"after Bhattacharyya et al., CVPR 2018 [recalled], as in {_BENCHMARK}",
    diagram="a GRU 256 for each input -> last states side by side",
    parameters="16,524,609",
)
STACKED_RNN = _recurrent(
    "stacked-rnn",
    "StackedRNN",
    paper=f"after Yue-Hei Ng et al., CVPR 2015 [recalled], as in {_BENCHMARK}",
    diagram="all numbers of a frame side by side -> as many GRUs 256 on top of each other as there are "
    "inputs, last state of the topmost",
    parameters="17,310,017",
)
HIERARCHICAL_RNN = _recurrent(
    "hierarchical-rnn",
    "HierarchicalRNN",
    paper=f"after Du et al., CVPR 2015 [recalled], as in {_BENCHMARK}",
    diagram="a GRU 256 for each input -> their states of each frame side by side -> GRU 256, last state",
    parameters="17,704,769",
)
SFRNN = _recurrent(
    "sfrnn",
    "SFRNN",
    paper=f"Rasouli et al., BMVC 2019, as in {_BENCHMARK}",
    diagram="a tower of GRUs 256, one for each input in the given order, each reading that input beside all "
    "states of the GRU below; last state of the topmost",
    parameters="17,310,017",
)
SFGRU = _recurrent(
    "sfgru",
    "SFGRU",
    paper="Rasouli et al., Pedestrian Action Anticipation using Contextual Feature Fusion in Stacked RNNs, "
    "BMVC 2019",
    diagram="a tower of GRUs 256, one for each input in the order of the authors' code whatever the order "
    "given (box crop, surround crop, pose, boxes, speed), each reading that input beside all states of the "
    "GRU below; last state of the topmost. The authors' Keras of 2019 resets before the product and uses the "
    "hard sigmoid; this is torch's GRU",
    parameters="17,310,017",
)
