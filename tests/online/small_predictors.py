"""Small predictors with random weights, for the tests of streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from roadaware.models import create
from roadaware.models.crossing.entries import SteadyConfig
from roadaware.models.crossing.predictor import Predictor, replace_last_layer
from roadaware.models.crossing.uncertainty_config import DoubtConfig

REGIONS = ("left", "middle", "right")
_SIZES = {"boxes": 4, "centre": 8, "boxes:last": 4, "ego:speed": 1}


def predictor(
    seed: int = 0,
    *,
    task: str = "action",
    inputs: Sequence[str] = ("boxes", "centre"),
    frames: int = 7,
    name: str = "steady",
    doubt: DoubtConfig | None = None,
    facts: dict[str, Any] | None = None,
    places: int = 0,
) -> Predictor:
    """A predictor that looks back 7 frames, and whose answers differ a lot."""
    doubt = doubt or DoubtConfig()
    labels = REGIONS if task == "risk" else ("waits", "crosses")
    shapes = {each: (frames, _SIZES[each]) for each in inputs}
    config = SteadyConfig(width=8, dilations=(1, 2), dropout=0.2, places=places) if name == "steady" else None
    torch.manual_seed(seed)
    network = create(name, config=config, shapes=shapes, labels=len(labels))
    network = replace_last_layer(network, doubt).eval()
    with torch.no_grad():
        for each in network.parameters():
            each += 0.3 * torch.randn_like(each)
        for each in inputs:
            if each.startswith(("boxes", "centre")):
                network.standardise(each, torch.rand(_SIZES[each]), 0.05 + 0.2 * torch.rand(_SIZES[each]))
    return Predictor(network, name, task, labels, facts or {}, temperature=1.3, doubt=doubt)
