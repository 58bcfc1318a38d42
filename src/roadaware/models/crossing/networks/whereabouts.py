"""Whereabouts: how likely somebody will be in each region of the picture; imports torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.models.crossing.entries.steady import LEAST, LOG_WIDTHS


class Whereabouts(nn.Module):
    """A mixture of logistic distributions over where a pedestrian will be across the picture.

    Each component lies as far from where the pedestrian is now as an embedding says, and is as wide as it
    says. What lies beyond an edge of the picture belongs to the region at that edge.

    Args:
        width: of embeddings.
        regions: of equal width, from left to right.
        places: components.
    """

    def __init__(self, width: int, regions: int, places: int) -> None:
        super().__init__()
        self.regions, self.places = regions, places
        self.tell = nn.Linear(width, 3 * places)
        with torch.no_grad():
            self.tell.weight.zero_()
            self.tell.bias.zero_()
            self.tell.bias[places : 2 * places] = torch.linspace(-0.3, 0.3, places)
            self.tell.bias[2 * places :] = -2.5

    def forward(self, embedding: Tensor, place: Tensor) -> Tensor:
        """(..., regions) log probabilities.

        Args:
            embedding: (..., width).
            place: (...) where the centre of the box is now, in widths of the picture.
        """
        weight, offset, spread = self.tell(embedding).unflatten(-1, (3, self.places)).unbind(-2)
        centre, width = place[..., None] + offset, spread.clamp(*LOG_WIDTHS).exp()
        edges = torch.arange(1, self.regions, device=centre.device) / self.regions
        below = torch.sigmoid((edges[:, None] - centre[..., None, :]) / width[..., None, :])
        share = functional.pad(below, (0, 0, 0, 1), value=1.0).diff(
            dim=-2, prepend=torch.zeros_like(below[..., :1, :])
        )
        found: Tensor = (share * weight.softmax(-1)[..., None, :]).sum(-1)
        return (found + LEAST).log()
