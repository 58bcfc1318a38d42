"""Semantic maps around a pedestrian, each category seen by itself; imports torch."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class Categories(nn.Module):
    """Convolutions of each category's own, averaged over the map: (B, T, C, H, W) to (B, T, C, `width`).

    Each convolution is 3x3 and halves the map.

    Args:
        categories: C.
        filters: channels of the convolutions.
    """

    def __init__(self, categories: int, filters: Sequence[int]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 1
        for after in filters:
            wide = (categories * before, categories * after)
            layers += [nn.Conv2d(*wide, 3, stride=2, padding=1, groups=categories), nn.ReLU()]
            before = after
        self.layers = nn.Sequential(*layers)
        self.categories, self.width = categories, before

    def forward(self, maps: Tensor) -> Tensor:
        """The features of each frame and category."""
        found: Tensor = self.layers(maps.flatten(0, 1)).mean((-2, -1))
        return found.reshape(*maps.shape[:2], self.categories, self.width)
