"""Several passes of one network: Monte Carlo dropout, and last layers that differ from pass to pass;
imports torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.crossing.networks.base import CrossingNet
from roadaware.models.crossing.uncertainty_config import DoubtConfig

# Dropout that stays active when a network is asked, and nothing else with it; imports torch.


@contextmanager
def enable_dropout(network: nn.Module) -> Iterator[None]:
    """Dropout active, and nothing else: batch norms stay as they are in eval mode.

    Args:
        network: in eval mode, and so again afterwards.
    """
    found = find_dropout_layers(network)
    for module in found:
        module.train()
    try:
        yield
    finally:
        for module in found:
            module.eval()


def find_dropout_layers(network: nn.Module) -> list[nn.Module]:
    """The modules of a network that drop something.

    Args:
        network: of any sort.
    """
    # Private, but the base of all dropout layers of torch.
    kinds = nn.modules.dropout._DropoutNd
    return [module for module in network.modules() if isinstance(module, kinds) and module.p > 0]


def refuse_without_dropout(network: nn.Module) -> None:
    """Refuse a network every pass of which would be the same.

    Args:
        network: of any sort.

    Raises:
        UsageError: if it drops nothing.
    """
    if not find_dropout_layers(network):
        raise UsageError(
            f"{type(network).__name__} has no dropout, and would say the same in every pass; train it with "
            "doubt: {kind: dropout, rate: 0.5}, which drops inputs of the last layer, or with last-dropout"
        )


# Last layers that differ from pass to pass: inputs dropped, or weights drawn; imports torch.

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
        # Scaled as dropout does, so that the mean over passes is the layer itself.
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


def replace_last_layer(network: CrossingNet, uncertainty: DoubtConfig) -> CrossingNet:
    """The network itself, its last layer replaced where the uncertainty method asks for that.

    Args:
        network: is changed.
        uncertainty: says how.

    Raises:
        UsageError: if all dropout is to differ, and there is none.
    """
    if uncertainty.kind == "last-flipout":
        network.last = FlipoutLast(network.last, uncertainty.prior)
    elif uncertainty.rate:
        network.last = DropoutLast(network.last, uncertainty.rate)
    if uncertainty.kind == "dropout":
        refuse_without_dropout(network)
    return network


def compute_kl_divergence(network: CrossingNet) -> Tensor | None:
    """Scalar KL of the network's weights from their prior; None where its weights are numbers.

    Args:
        network: of any sort.
    """
    return network.last.divergence() if isinstance(network.last, FlipoutLast) else None


def sample_logits(
    network: CrossingNet, uncertainty: DoubtConfig, asked: Iterable[dict[str, Tensor]], n: int, seed: int
) -> Tensor:
    """(passes, samples, n_scores) logits of single passes.

    Where only the last layer differs, all before it is computed once, and a pass is one drawn layer for all
    samples. With all dropout active every pass costs a whole one, and each sample has drops of its own, so
    that other batches give other draws.

    Args:
        network: is asked in eval mode.
        uncertainty: what differs.
        asked: inputs of batches.
        n: how many passes.
        seed: of what differs; pass i is the same however many follow.

    Raises:
        UsageError: if there are no passes, or the network drops nothing.
    """
    if n < 1:
        raise UsageError(f"there is at least one pass, not {n}")
    network.eval()
    if uncertainty.kind == "dropout":
        refuse_without_dropout(network)
    with torch.inference_mode():
        parts = [_batch(network, uncertainty, x, n, (seed, at)) for at, x in enumerate(asked)]
    return torch.cat(parts, 1) if parts else torch.zeros(n, 0, network.n_scores)


def sample_last_weights(network: CrossingNet, uncertainty: DoubtConfig, n: int, seed: int = 0) -> Tensor:
    """(passes, n_scores, width) weights of the last layer in the passes of `sample_logits`, its bias apart.

    Whoever has the embedding of a sample has all its passes by one product.

    Args:
        network: of a predictor.
        uncertainty: what differs; not all dropout.
        n: how many passes.
        seed: as `sample_logits` takes it.

    Raises:
        UsageError: if there are no passes, or they differ before the last layer.
    """
    if n < 1 or uncertainty.kind == "dropout":
        raise UsageError("there is at least one pass, and what differs is the last layer alone")
    last = network.last
    with torch.inference_mode():
        if not uncertainty.draws or not isinstance(last, LastLayer):
            # Cloned, since expanded passes would share their memory.
            return last.weight.expand(n, -1, -1).clone()
        return torch.stack([last.drawn_weight(_chance(seed, each)) for each in range(n)])


def _batch(
    network: CrossingNet, uncertainty: DoubtConfig, x: dict[str, Tensor], n: int, place: tuple[int, int]
) -> Tensor:
    """(passes, B, n_scores)."""
    if uncertainty.kind == "dropout":
        with enable_dropout(network), torch.random.fork_rng(devices=[]):
            return torch.stack([_run_dropout_pass(network, x, (*place, each)) for each in range(n)])
    last = network.last
    if not uncertainty.draws or not isinstance(last, LastLayer):
        answer: Tensor = network(x)["label"]
        return answer.expand(n, -1, -1).clone()
    seen = network.looked(x).embedding
    return torch.stack([last.drawn(seen, _chance(place[0], each)) for each in range(n)])


def _run_dropout_pass(network: CrossingNet, x: dict[str, Tensor], place: tuple[int, int, int]) -> Tensor:
    # A pass has its own seed, so that it does not hang on those before it.
    torch.manual_seed(_number(*place))
    answer: Tensor = network(x)["label"]
    return answer


def _chance(*place: int) -> torch.Generator:
    return torch.Generator().manual_seed(_number(*place))


def _number(*place: int) -> int:
    """A seed that differs from place to place."""
    return int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0] >> np.uint64(1))
