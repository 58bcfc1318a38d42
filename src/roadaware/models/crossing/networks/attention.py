"""Attention layers that networks for pedestrians share; imports torch."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class LastAttention(nn.Module):
    """What a sequence says to its last element: (B, T, D) to (B, out).

    score_t = (W h_t) . h_T, a = softmax over t, c = sum_t a_t h_t, answer tanh(V [c, h_T]); no biases.

    Args:
        width: D.
        out: of the answer.

    Source:
        Kotseruba et al., WACV 2021, Section 4.
    """

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, width, bias=False)
        self.answer = nn.Linear(2 * width, out, bias=False)

    def weights(self, sequence: Tensor) -> Tensor:
        """(B, T), not negative, each row sums to 1."""
        return torch.einsum("btd,bd->bt", self.score(sequence), sequence[:, -1]).softmax(-1)

    def forward(self, sequence: Tensor) -> Tensor:
        """The answer."""
        context = torch.einsum("bt,btd->bd", self.weights(sequence), sequence)
        answer: Tensor = self.answer(torch.cat([context, sequence[:, -1]], -1))
        return answer.tanh()


class Attending(nn.Module):
    """One sequence that attends to another and keeps itself: LayerNorm(a + dropout(attention(a, b))).

    Args:
        width: of both sequences.
        heads: of the attention.
        dropout: of the answer; the weights are never dropped, so that all dropout is in `nn.Dropout`.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.drop = nn.Dropout(dropout)
        self.norm = nn.LayerNorm(width)

    def forward(self, asking: Tensor, asked: Tensor, hidden: Tensor | None = None) -> Tensor:
        """(B, T, width).

        Args:
            asking: (B, T, width).
            asked: (B, S, width).
            hidden: (T, S), whether an element of `asked` must not be seen.
        """
        told = self.attention(asking, asked, asked, attn_mask=hidden, need_weights=False)[0]
        answer: Tensor = self.norm(asking + self.drop(told))
        return answer


class Thinking(nn.Module):
    """The two linear layers of a transformer: LayerNorm(a + dropout(FC(dropout(ReLU(FC(a)))))).

    Args:
        width: of the sequence.
        inner: between the layers.
        dropout: behind both.
    """

    def __init__(self, width: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(width, inner),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(inner, width),
            nn.Dropout(dropout),
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, sequence: Tensor) -> Tensor:
        """(B, T, width)."""
        answer: Tensor = self.norm(sequence + self.layers(sequence))
        return answer


def places(sequence: Tensor) -> Tensor:
    """(T, width) sines and cosines that tell the places of sequences (.., T, width) apart.

    Source:
        Vaswani et al., NeurIPS 2017, Section 3.5.
    """
    length, width = sequence.shape[-2:]
    at = torch.arange(length, device=sequence.device, dtype=sequence.dtype)[:, None]
    even = torch.arange(0, width, 2, device=sequence.device, dtype=sequence.dtype)
    angle = at * torch.exp(even * (-math.log(10_000.0) / width))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :width]
