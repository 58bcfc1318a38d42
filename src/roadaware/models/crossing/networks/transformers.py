"""Transformers on boxes: an encoder, and an encoder with a decoder that looks ahead; imports torch."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing import entries
from roadaware.models.crossing.entries import Entry
from roadaware.models.crossing.networks.base import CrossingNet, Looked
from roadaware.models.crossing.networks.recurrent import Attending, Thinking, encode_positions


class _Layer(nn.Module):
    """One layer of an encoder, or of a decoder where something is asked."""

    def __init__(self, config: entries.TransformerConfig, decodes: bool) -> None:
        super().__init__()
        self.among = Attending(config.width, config.heads, config.dropout)
        self.asks = Attending(config.width, config.heads, config.dropout) if decodes else None
        self.thinks = Thinking(config.width, config.inner, config.dropout)

    def forward(self, x: Tensor, asked: Tensor | None = None, hidden: Tensor | None = None) -> Tensor:
        """(B, T, width)."""
        x = self.among(x, x, hidden)
        if self.asks is not None and asked is not None:
            x = self.asks(x, asked)
        answer: Tensor = self.thinks(x)
        return answer


class BoxEncoder(CrossingNet):
    """Self-attention over the observed frames, averaged."""

    entry: ClassVar[Entry] = entries.ENCODER
    config: entries.TransformerConfig

    def build(self) -> int:
        """The encoder.

        Raises:
            UsageError: if an input is no sequence.
        """
        odd = [name for name in self.shapes if name not in self.sequences]
        if odd:
            raise UsageError(f"{self.entry.card.name} reads sequences such as boxes, not {', '.join(odd)}")
        self.enter = nn.Linear(sum(self.shapes[name][1] for name in self.sequences), self.config.width)
        self.drop = nn.Dropout(self.config.dropout)
        self.encoder = nn.ModuleList(_Layer(self.config, decodes=False) for _ in range(self.config.layers))
        return self.config.width

    def encoded(self, x: dict[str, Tensor]) -> Tensor:
        """(B, T, width)."""
        frames: Tensor = self.enter(torch.cat([x[name] for name in self.sequences], -1))
        frames = self.drop(frames + encode_positions(frames))
        for layer in self.encoder:
            frames = layer(frames)
        return frames

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The mean of the encoded frames."""
        return Looked(self.encoded(x).mean(1), {})


class BoxEncoderDecoder(BoxEncoder):
    """An encoder, and a decoder that is asked for each frame ahead and then for the label."""

    entry: ClassVar[Entry] = entries.ENCODER_DECODER

    def build(self) -> int:
        """The encoder, the questions and the decoder."""
        width = super().build()
        horizon = self.tasks.get("trajectory", self.config.horizon)
        self.questions = nn.Parameter(torch.randn(horizon + 1, width) * width**-0.5)
        self.decoder = nn.ModuleList(_Layer(self.config, decodes=True) for _ in range(self.config.layers))
        if "trajectory" in self.tasks:
            self.path = nn.Linear(width, 4)
        return width

    def look(self, x: dict[str, Tensor]) -> Looked:
        """The answer to the last question, and the boxes of the others."""
        seen = self.encoded(x)
        asked = self.questions + encode_positions(self.questions)
        answers = self.drop(asked).expand(len(seen), -1, -1)
        # What is true stays hidden: a question sees none that comes later.
        later = torch.ones(len(asked), len(asked), dtype=torch.bool, device=seen.device).triu(1)
        for layer in self.decoder:
            answers = layer(answers, seen, later)
        extra = {"trajectory": self.path(answers[:, :-1])} if "trajectory" in self.tasks else {}
        return Looked(answers[:, -1], extra)
