"""What tells where a pedestrian goes: boxes ahead and a cell of the picture; imports torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class PathDecoder(nn.Module):
    """An LSTM that is shown the same context at each frame ahead: (B, d) to boxes (B, horizon, 4).

    Boxes are shares of the picture less those of the last observed box. What comes out of the last layer is
    in units of `spread` (4), the deviations of the sides on train, which training sets.

    Args:
        context: d.
        width: units of the LSTM.
        horizon: frames ahead.
    """

    spread: Tensor

    def __init__(self, context: int, width: int, horizon: int) -> None:
        super().__init__()
        self.horizon = horizon
        self.lstm = nn.LSTM(context, width, batch_first=True)
        self.box = nn.Linear(width, 4)
        self.register_buffer("spread", torch.ones(4))

    def forward(self, context: Tensor) -> Tensor:
        """The boxes."""
        states = self.lstm(context[:, None].expand(-1, self.horizon, -1))[0]
        boxes: Tensor = self.box(states) * self.spread
        return boxes


def cell_head(context: int, width: int, cells: int) -> nn.Module:
    """(B, d) to the logits (B, cells) of where the centre will be."""
    return nn.Sequential(nn.Linear(context, width), nn.ReLU(), nn.Linear(width, cells))
