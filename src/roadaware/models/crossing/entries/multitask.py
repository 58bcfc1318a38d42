"""What is known of the networks that tell path, cell and label at once: sizes and cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from roadaware.models.crossing.entry import crossing_network


@dataclass(frozen=True)
class BiPedConfig:
    """Sizes of BiPed.

    Args:
        width: units of each encoding LSTM.
        embed: of each input before the joint LSTM.
        decode: units of each decoder.
        filters: of the convolutions on each category of the semantic maps.
        dropout: of the context.
    """

    width: int = 256
    embed: int = 64
    decode: int = 256
    filters: tuple[int, ...] = (16, 32, 64)
    dropout: float = 0.0

    @classmethod
    def small(cls) -> Self:
        """A quarter of the width."""
        return cls(width=64, embed=16, decode=64, filters=(4, 8, 16))

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=6, embed=4, decode=6, filters=(2, 3), dropout=0.1)


@dataclass(frozen=True)
class PedFormerConfig:
    """Sizes of PedFormer.

    Args:
        width: of each frame inside.
        heads: of each attention.
        inner: width between the two linear layers of a transformer's layer.
        experts: layers that all tasks share through gates.
        filters: of the convolutions on each category of the semantic maps.
        dropout: behind each attention and linear layer.
    """

    width: int = 128
    heads: int = 4
    inner: int = 256
    experts: int = 3
    filters: tuple[int, ...] = (16, 32, 64)
    dropout: float = 0.1

    @classmethod
    def small(cls) -> Self:
        """A quarter of the width."""
        return cls(width=32, inner=64, filters=(4, 8, 16))

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=8, heads=2, inner=8, experts=2, filters=(2, 3))


_INPUTS = (
    "boxes less the last box (4), cell of 60 pixels, motion of the own vehicle, maps of semantic categories "
    "around the pedestrian; any sequences will do, and without maps that branch is missing; standardised on "
    "train"
)
BIPED = crossing_network(
    "biped",
    BiPedConfig,
    "biped:BiPed",
    reads=("boxes:last", "grid", "ego:speed", "maps@32"),
    also_tells=("trajectory", "grid"),
    paper="Rasouli et al., Bifold and Semantic Reasoning for Pedestrian Behavior Prediction, ICCV 2021",
    diagram="cell -> 64 learned numbers; an LSTM 256 for each sequence; each sequence -> FC 64, side "
    "by side -> a joint LSTM 256; each category of the maps -> 3 convolutions of its own, mean over "
    "the map -> weighted sum of categories -> LSTM 256; last states side by side = context -> label: "
    "FC 256 of its own and FC 256 shared by all tasks, side by side -> FC (the mean of two heads is "
    "one linear layer on both); trajectory: mean of a decoding LSTM on the context and one on the "
    "shared FC -> FC 4; cell: mean of FC 256, FC and of FC on the shared. Modules are [recalled] and "
    "confirmed by the paper's figure text, all sizes are our choice; the path is learnt by log cosh "
    "[recalled], label and cell by cross-entropy, at equal weights, which are our choice; the planned "
    "motion of the own vehicle is not given to the decoders, since it is the future",
    parameters="2,493,511 with 3 sequences, maps of 6 categories and no further task [sizes our choice]",
    inputs=_INPUTS,
    weights="none are shipped, and none were published",
    published="PIE accuracy 0.91, AUC 0.90, F1 0.85 [recalled]",
)
PEDFORMER = crossing_network(
    "pedformer",
    PedFormerConfig,
    "pedformer:PedFormer",
    reads=("boxes:last", "boxes:scaled", "ego:filtered", "grid", "maps@32"),
    also_tells=("trajectory", "grid"),
    paper="Rasouli and Kotseruba, PedFormer: Pedestrian Behavior Prediction via Cross-Modal Attention "
    "Modulation and Gated Multitask Learning, ICRA 2023",
    diagram="cell -> 128 learned numbers; each sequence -> FC 128, plus sines of its place -> "
    "self-attention (4 heads) and two linear layers; for each ordered pair of sequences one attends to "
    "the other; all pairs side by side -> FC 128 ReLU; each category of the maps -> 3 convolutions of "
    "its own -> all categories of a frame -> LSTM 128 -> attention asked by the last encodings of the "
    "sequences, shown beside each frame; 3 shared experts (FC 128 ReLU), their sum weighted for each "
    "task by gates (sigmoid of FC) -> an LSTM 128 for each task: last state -> FC for the label; a "
    "decoding LSTM -> FC 4 for the trajectory; FC 128, FC for the cell. Modules are [recalled] and "
    "confirmed by the abstract, all sizes and the place of the gates are our choice, and so are the "
    "losses of path (log cosh) and cell (cross-entropy) and their equal weights",
    parameters="2,385,668 with 4 sequences, maps of 6 categories and no further task [sizes our choice]",
    inputs=_INPUTS,
    weights="none are shipped, and none were published",
    published="PIE accuracy 0.93, AUC 0.90, F1 0.87 [recalled]; JAAD (IV 2024) AUC 0.87, mAP 0.63, F1 "
    "0.62; risk on JAAD mAP 0.42, balanced accuracy 0.40",
)
