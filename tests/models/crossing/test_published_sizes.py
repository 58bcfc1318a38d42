"""Networks at the sizes of their papers: every parameter learns, and one batch can be learnt by heart."""

from __future__ import annotations

import math

import pytest
import torch
from made_inputs import batch, published_shapes
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.dropout import _DropoutNd

from roadaware.models import CROSSING, create, get_crossing_entry
from roadaware.models.crossing.networks.stills import CrossingNet

SHORT, LONG = 2, 16
"""Frames: sixteen, as the papers observe, unless two are enough."""
SHORTENED = (
    *("single-rnn", "multi-rnn", "stacked-rnn", "hierarchical-rnn", "sfrnn", "sfgru"),
    *("transformer-encoder", "transformer-encoder-decoder", "biped", "pedformer", "steady"),
    *("vgg16", "resnet50", "convlstm"),
)
"""Networks that work with two frames, which change none of their sizes and save time."""
STEPS, LEARNT = 60, math.log(2) / 2
"""Half the loss of a coin: with one of the two samples on the wrong side it cannot be as low."""
TRUNK_RATE, RATE = 1e-4, 1e-3


def made(name: str) -> tuple[CrossingNet, dict[str, Tensor]]:
    """A network as published, without dropout, and two samples, the second in the dark."""
    shapes = published_shapes(get_crossing_entry(name), SHORT if name in SHORTENED else LONG)
    torch.manual_seed(0)
    network: CrossingNet = create(name, shapes=shapes)
    for layer in network.modules():
        if isinstance(layer, _DropoutNd):
            layer.p = 0.0
    given = batch(shapes, n=2)
    for pictures in network.pictures:
        given[pictures][1] *= 0.3
    return network.train(), given


@pytest.mark.slow
@pytest.mark.parametrize("name", CROSSING)
def test_a_network_of_the_published_size_learns_two_samples_by_heart(name: str) -> None:
    network, given = made(name)
    # Trunks of the published sizes overshoot at the rate that the layers behind them learn fast with.
    looking = [layer for layer in network.modules() if isinstance(layer, (nn.Conv2d, nn.Conv3d))]
    trunk = [weight for layer in looking for weight in layer.parameters()]
    own = {id(weight) for weight in trunk}
    rest = [weight for weight in network.parameters() if id(weight) not in own]
    groups = [{"params": trunk, "lr": TRUNK_RATE}, {"params": rest, "lr": RATE}]
    optimizer = torch.optim.Adam(groups)
    truth = torch.tensor([[1.0], [0.0]])
    for step in range(STEPS):
        loss = functional.binary_cross_entropy_with_logits(network(given)["label"], truth)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        if not step:
            heads = tuple(f"{task}." for task in get_crossing_entry(name).also_tells)
            idle = [key for key, weight in network.named_parameters() if weight.grad is None]
            assert [key for key in idle if not key.startswith(heads)] == []
        if float(loss.detach()) < LEARNT:
            return
        optimizer.step()
    pytest.fail(f"the loss of two samples is still {float(loss.detach()):.2f} after {STEPS} steps")
