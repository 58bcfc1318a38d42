"""Last layers that differ from pass to pass: inputs dropped, or weights drawn; imports torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.models.crossing.networks.base import CrossingNet
from roadaware.models.doubt.config import DoubtConfig
from roadaware.models.doubt.dropout import refuse_without_dropout

_FIRST = -3.0
"""Of `raw_spread`: deviations begin at softplus(-3) = 0.049."""


class LastLayer(nn.Linear):
    """A linear layer of which one pass can be drawn; in eval mode it is the mean of all passes.

    Args:
        before: the layer it takes the place and the weights of.
    """

    def __init__(self, before: nn.Linear) -> None:
        super().__init__(before.in_features, before.out_features, device=before.weight.device)
        with torch.no_grad():
            self.weight.copy_(before.weight)
            self.bias.copy_(before.bias)

    def drawn(self, x: Tensor, chance: torch.Generator) -> Tensor:
        """(n, n_scores) one pass, the same for all samples, so that it hangs on no batch.

        Args:
            x: (n, width).
            chance: what it is drawn from.
        """
        return functional.linear(x, self.drawn_weight(chance), self.bias)

    def drawn_weight(self, chance: torch.Generator) -> Tensor:
        """(n_scores, width) the weights of one pass; what is dropped has weight 0.

        Args:
            chance: what it is drawn from.
        """
        raise NotImplementedError


class DropoutLast(LastLayer):
    """A linear layer some of whose inputs are dropped.

    Args:
        before: the layer it takes the place of.
        rate: how often an input is dropped.

    Source: Gal and Ghahramani, ICML 2016, for the last layer alone.
    """

    def __init__(self, before: nn.Linear, rate: float) -> None:
        super().__init__(before)
        self.drop = nn.Dropout(rate)

    def forward(self, input: Tensor) -> Tensor:
        """(..., n_scores) with inputs dropped in training, each sample's own."""
        return super().forward(self.drop(input))

    def drawn_weight(self, chance: torch.Generator) -> Tensor:
        """(n_scores, width) with the same inputs dropped for all scores."""
        kept = torch.rand(self.in_features, generator=chance) >= self.drop.p
        return self.weight * (kept / (1 - self.drop.p)).to(self.weight)


class FlipoutLast(LastLayer):
    """A linear layer whose weights are independent normal distributions; the bias is a number.

    Training draws one perturbation of the weights for a batch and multiplies it with signs of each sample's
    own, so that samples are perturbed as if independently at the price of two products.

    Args:
        before: the layer it takes the place of.
        prior: deviation of the weights before anything was learnt, around 0; 0 for the one that fits best.

    Source: Wen et al., ICLR 2018, eq. 4 and 5.
    """

    def __init__(self, before: nn.Linear, prior: float) -> None:
        super().__init__(before)
        self.prior = prior
        # Flat, since weight decay spares what has one dimension, and would pull deviations towards 0.69.
        self.raw_spread = nn.Parameter(torch.full((before.weight.numel(),), _FIRST))

    @property
    def spread(self) -> Tensor:
        """(n_scores, width) deviations of the weights."""
        return functional.softplus(self.raw_spread).view_as(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """(B, ..., n_scores) with weights perturbed in training, each sample's otherwise."""
        mean = super().forward(input)
        if not self.training:
            return mean
        shared = self.spread * torch.randn_like(self.weight)
        into, out = self._signs(input, self.in_features), self._signs(input, self.out_features)
        return mean + functional.linear(input * into, shared) * out

    def drawn_weight(self, chance: torch.Generator) -> Tensor:
        """(n_scores, width) drawn from their distributions."""
        noise = torch.randn(self.weight.shape, generator=chance).to(self.weight)
        return self.weight + self.spread * noise

    def divergence(self) -> Tensor:
        """Scalar KL(weights || prior) in nats, summed over all weights.

        sum ln(prior / s) + (s^2 + m^2) / (2 prior^2) - 1/2; with prior^2 = mean(s^2 + m^2), which makes it
        smallest, where the prior is to follow the weights.
        """
        square = self.spread.square() + self.weight.square()
        prior = square.mean() if not self.prior else square.new_tensor(self.prior**2)
        return 0.5 * (prior.log() - 2 * self.spread.log() + square / prior - 1).sum()

    def _signs(self, input: Tensor, width: int) -> Tensor:
        """(B, 1, ..., width) of 1 and -1; the frames of a sample share theirs."""
        shape = (len(input), *(1 for _ in input.shape[1:-1]), width)
        return torch.randint(0, 2, shape, device=input.device).to(input) * 2 - 1


def with_doubt(network: CrossingNet, doubt: DoubtConfig) -> CrossingNet:
    """The network itself, its last layer replaced where the doubt asks for that.

    Args:
        network: is changed.
        doubt: says how.

    Raises:
        UsageError: if all dropout is to differ, and there is none.
    """
    if doubt.kind == "last-flipout":
        network.last = FlipoutLast(network.last, doubt.prior)
    elif doubt.rate:
        network.last = DropoutLast(network.last, doubt.rate)
    if doubt.kind == "dropout":
        refuse_without_dropout(network)
    return network


def divergence(network: CrossingNet) -> Tensor | None:
    """Scalar KL of the network's weights from their prior; None where its weights are numbers.

    Args:
        network: of any sort.
    """
    return network.last.divergence() if isinstance(network.last, FlipoutLast) else None
