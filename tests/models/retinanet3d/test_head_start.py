"""Heads begin as released, or so that narrow ones let gradients pass."""

import pytest
import torch

from roadaware.models.retinanet3d.config import compact, default
from roadaware.models.retinanet3d.network import build_head


@pytest.mark.parametrize(("start", "low", "high"), [("small", 0.0, 0.2), ("kept", 0.5, 2.0)])
def test_inner_layers_of_a_head_shrink_what_passes_as_released_or_keep_its_size(start, low, high):
    torch.manual_seed(0)
    made = build_head(default(width=64, head_width=48, head_time=1, head_start=start), outputs=4)
    seen = torch.randn(1, 64, 1, 16, 16)

    passed = made.inner(seen).detach()

    assert low < float(passed.square().mean().sqrt() / seen.square().mean().sqrt()) < high
    assert float(made.end.weight.detach().std()) == pytest.approx(0.01, rel=0.1)


def test_only_the_compact_network_begins_otherwise_than_released():
    assert default().head_start == "small"
    assert compact().head_start == "kept"
