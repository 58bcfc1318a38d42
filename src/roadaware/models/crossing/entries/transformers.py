"""What is known of the transformers on boxes: sizes and cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from roadaware.models.crossing.entry import crossing_network

_PAPER = (
    "Achaji et al., Is attention to bounding boxes all you need for pedestrian action prediction?, IV 2022 "
    "(arXiv 2107.08031)"
)
_INPUTS = "boxes (4); other sequences beside them if given; no crops; standardised on train"


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes of a transformer on sequences.

    Args:
        width: of each frame inside.
        heads: of each attention.
        layers: of the encoder, and as many of the decoder.
        inner: width between the two linear layers of each layer.
        dropout: behind each attention and linear layer.
        horizon: frames that the decoder looks ahead where no trajectory is asked for.
    """

    width: int = 128
    heads: int = 8
    layers: int = 4
    inner: int = 256
    dropout: float = 0.1
    horizon: int = 30

    @classmethod
    def small(cls) -> Self:
        """A quarter of the width, two layers."""
        return cls(width=32, heads=4, layers=2, inner=64)

    @classmethod
    def tiny(cls) -> Self:
        """For tests."""
        return cls(width=8, heads=2, layers=2, inner=12, horizon=3)


ENCODER = crossing_network(
    "transformer-encoder",
    TransformerConfig,
    "transformers:BoxEncoder",
    reads=("boxes",),
    paper=f"{_PAPER}, TEO",
    diagram="frame -> FC 128, plus sines of its place -> 4 layers of self-attention with 8 heads, inner "
    "width 256, dropout 0.1 -> mean over frames -> FC. That there are an encoder and a classifier is "
    "read; all sizes and the mean are [recalled]",
    parameters="530,689 with boxes [sizes recalled]",
    inputs=_INPUTS,
    weights="none are shipped",
    published="best of the paper's transformers on PIE: accuracy 0.91, F1 0.83",
)
ENCODER_DECODER = crossing_network(
    "transformer-encoder-decoder",
    TransformerConfig,
    "transformers:BoxEncoderDecoder",
    reads=("boxes",),
    also_tells=("trajectory",),
    paper=f"{_PAPER}, TED",
    diagram="the encoder of transformer-encoder; a learned question for each of 30 frames ahead, then "
    "one for the label, plus sines of their places -> 4 decoder layers: self-attention that sees no "
    "later question, attention to the encoder, two linear layers -> label: answer to the last question "
    "-> FC; trajectory: answers to the others -> FC 4. That boxes ahead and label are decoded together "
    "with a weighted sum of losses is read; all sizes are [recalled], learned questions are our choice",
    parameters="1,329,793 with boxes and no trajectory [sizes recalled]",
    inputs=_INPUTS,
    weights="none are shipped",
    published="best of the paper's transformers on PIE: accuracy 0.91, F1 0.83",
)
