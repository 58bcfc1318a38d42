"""Targets: what is true of a batch of clips, as the loss takes it; imports torch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Targets:
    """The truth of B clips of T frames.

    Args:
        boxes: [B][T] of (n, 4) corners in pixels of the network's picture.
        classes: [B][T] of (n, C) from 0 to 1, agentness first.
        av: (B, T) which action the own vehicle does, -1 where unknown.
        labelled: (B, T) whether a frame was labelled at all.
    """

    boxes: list[list[Tensor]]
    classes: list[list[Tensor]]
    av: Tensor
    labelled: Tensor

    def to(self, device: torch.device | str) -> Targets:
        """The same on another device."""
        return Targets(
            [[boxes.to(device) for boxes in clip] for clip in self.boxes],
            [[classes.to(device) for classes in clip] for clip in self.classes],
            self.av.to(device),
            self.labelled.to(device),
        )

    @property
    def counts(self) -> list[int]:
        """Boxes of each frame, clip after clip."""
        return [len(boxes) for clip in self.boxes for boxes in clip]
