"""Single passes of a network whose dropout is active or whose last layer is drawn; imports torch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from roadaware.errors import UsageError
from roadaware.models.crossing.networks.base import CrossingNet
from roadaware.models.doubt.config import DoubtConfig
from roadaware.models.doubt.dropout import dropping, refuse_without_dropout
from roadaware.models.doubt.last_layer import LastLayer


def sampled(
    network: CrossingNet, doubt: DoubtConfig, asked: Iterable[dict[str, Tensor]], n: int, seed: int
) -> Tensor:
    """(passes, samples, n_scores) logits of single passes.

    Where only the last layer differs, all before it is computed once, and a pass is one drawn layer for all
    samples. With all dropout active every pass costs a whole one, and each sample has drops of its own, so
    that other batches give other draws.

    Args:
        network: is asked in eval mode.
        doubt: what differs.
        asked: inputs of batches.
        n: how many passes.
        seed: of what differs; pass i is the same however many follow.

    Raises:
        UsageError: if there are no passes, or the network drops nothing.
    """
    if n < 1:
        raise UsageError(f"there is at least one pass, not {n}")
    network.eval()
    if doubt.kind == "dropout":
        refuse_without_dropout(network)
    with torch.inference_mode():
        parts = [_batch(network, doubt, x, n, (seed, at)) for at, x in enumerate(asked)]
    return torch.cat(parts, 1) if parts else torch.zeros(n, 0, network.n_scores)


def last_weights(network: CrossingNet, doubt: DoubtConfig, n: int, seed: int = 0) -> Tensor:
    """(passes, n_scores, width) weights of the last layer in the passes of `sampled`, its bias apart.

    Whoever has the embedding of a sample has all its passes by one product.

    Args:
        network: of a predictor.
        doubt: what differs; not all dropout.
        n: how many passes.
        seed: as `sampled` takes it.

    Raises:
        UsageError: if there are no passes, or they differ before the last layer.
    """
    if n < 1 or doubt.kind == "dropout":
        raise UsageError("there is at least one pass, and what differs is the last layer alone")
    last = network.last
    with torch.inference_mode():
        if not doubt.draws or not isinstance(last, LastLayer):
            return last.weight.expand(n, -1, -1).clone()
        return torch.stack([last.drawn_weight(_chance(seed, each)) for each in range(n)])


def _batch(
    network: CrossingNet, doubt: DoubtConfig, x: dict[str, Tensor], n: int, place: tuple[int, int]
) -> Tensor:
    """(passes, B, n_scores)."""
    if doubt.kind == "dropout":
        with dropping(network), torch.random.fork_rng(devices=[]):
            return torch.stack([_dropped(network, x, (*place, each)) for each in range(n)])
    last = network.last
    if not doubt.draws or not isinstance(last, LastLayer):
        answer: Tensor = network(x)["label"]
        return answer.expand(n, -1, -1).clone()
    seen = network.looked(x).embedding
    return torch.stack([last.drawn(seen, _chance(place[0], each)) for each in range(n)])


def _dropped(network: CrossingNet, x: dict[str, Tensor], place: tuple[int, int, int]) -> Tensor:
    torch.manual_seed(_number(*place))
    answer: Tensor = network(x)["label"]
    return answer


def _chance(*place: int) -> torch.Generator:
    return torch.Generator().manual_seed(_number(*place))


def _number(*place: int) -> int:
    """A seed that differs from place to place."""
    return int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0] >> np.uint64(1))
