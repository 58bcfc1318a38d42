"""The last convolution of a head, everywhere or only where somebody asks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from roadaware.models.retinanet3d.products import convolved
from roadaware.models.retinanet3d.temporal import TimeConv
from roadaware.models.retinanet3d.towers import Tower

_BLOCK = 1024
"""Patches of features that are in memory at once."""


class Head:
    """A tower and the last convolution behind it, whose rows are computed as they are wanted.

    Args:
        layers: convolutions over space with ReLU, and a last `TimeConv`.
        n_anchors: of a cell; the rows of the last convolution are grouped by anchor.
    """

    def __init__(self, layers: nn.Sequential, n_anchors: int) -> None:
        *inner, last = layers
        if not isinstance(last, TimeConv):
            raise TypeError(f"the last layer of a head is a TimeConv, not {type(last).__name__}")
        self.tower = Tower(nn.Sequential(*inner))
        bias = last.weight.new_zeros(len(last.weight)) if last.bias is None else last.bias
        self.weight, self.bias = last.weight.detach(), bias.detach()
        self.n_anchors, self.each = n_anchors, last.weight.shape[0] // n_anchors
        self._kernels: dict[bool, Tensor] = {}
        self.taps, self.side = last.weight.shape[2:4]
        self.before = last.back if last.causal else last.back // 2

    def everywhere(self, tower: Tensor, row: int | slice) -> Tensor:
        """What one frame adds to some rows of every anchor, under each part of the kernel over time.

        Args:
            tower: (S, C, H, W).
            row: which of the rows of an anchor.

        Returns:
            (S, taps, H W, anchors, rows), without bias.
        """
        kernel = self._kernel(row)
        slots, _, height, width = tower.shape
        if not slots:
            each = len(kernel) // self.taps // self.n_anchors
            return tower.new_empty(0, self.taps, height * width, self.n_anchors, each)
        made = convolved(tower, kernel, None).permute(0, 2, 3, 1)
        return made.reshape(slots, height * width, self.taps, self.n_anchors, -1).transpose(1, 2)

    def _kernel(self, row: int | slice) -> Tensor:
        """(taps anchors rows, C, side, side)."""
        every = isinstance(row, slice)
        if every not in self._kernels:
            rows = self.weight.reshape(self.n_anchors, self.each, *self.weight.shape[1:])[:, row].flatten(
                0, -5
            )
            kernel = rows.transpose(1, 2).transpose(0, 1).flatten(0, 1)
            self._kernels[every] = kernel.contiguous(memory_format=torch.channels_last)
        return self._kernels[every]

    def summed(self, parts: Tensor, row: int | slice, table: Tensor) -> Tensor:
        """What `everywhere` gave, summed over the frames that each frame sees, with bias.

        Args:
            parts: (S, taps, cells, anchors, rows).
            row: as there.
            table: (F, taps) slot of each, -1 for none.

        Returns:
            (F, cells, anchors, rows) of at least float32.
        """
        bias = wide(self.bias.view(self.n_anchors, self.each)[:, row].reshape(self.n_anchors, -1))
        total = bias.expand(len(table), parts.shape[2], *bias.shape).clone()
        for tap, slots in enumerate(table.T):
            seen = torch.nonzero(slots >= 0).flatten()
            total.index_add_(0, seen, wide(parts[slots[seen], tap]))
        return total

    def patches(self, tower: Tensor, slots: Tensor, cells: Tensor) -> Tensor:
        """The features under the last kernel around some cells, in the order of its weights.

        Args:
            tower: (S, C, H, W), channels last.
            slots: (n, taps), -1 for none.
            cells: (n,) row W + column.

        Returns:
            (n, C taps side side).
        """
        height, width = tower.shape[2:]
        near = torch.arange(self.side, device=tower.device) - self.side // 2
        y, x = (cells // width)[:, None] + near, (cells % width)[:, None] + near
        inside = ((y >= 0) & (y < height))[:, :, None] & ((x >= 0) & (x < width))[:, None]
        place = y.clamp(0, height - 1)[:, :, None] * width + x.clamp(0, width - 1)[:, None]
        place = slots.clamp(min=0)[:, :, None] * (height * width) + place.flatten(1)[:, None]
        inside = (slots >= 0)[:, :, None] & inside.flatten(1)[:, None]
        rows = tower.permute(0, 2, 3, 1).reshape(-1, tower.shape[1])
        found = rows[place.flatten()].view(len(cells), -1, tower.shape[1])
        found *= inside.flatten(1)[:, :, None]
        return found.transpose(1, 2).flatten(1)

    def at(self, tower: Tensor, slots: Tensor, cells: Tensor, anchors: Tensor, rows: slice) -> Tensor:
        """Some rows of the last convolution, of one anchor of each cell.

        Args:
            tower: (S, C, H, W), channels last.
            slots: (n, taps), -1 for none.
            cells, anchors: (n,).
            rows: which of the rows of an anchor.

        Returns:
            (n, rows) of at least float32.
        """
        weight = self.weight.reshape(self.n_anchors, self.each, -1)[:, rows]
        bias = self.bias.view(self.n_anchors, self.each)[:, rows]
        out = wide(tower.new_empty(len(cells), weight.shape[1]))
        for block in torch.split(torch.argsort(anchors, stable=True), _BLOCK):
            patches = self.patches(tower, slots[block], cells[block])
            of = anchors[block]
            for anchor in torch.unique_consecutive(of).tolist():
                mine = of == anchor
                out[block[mine]] = wide(torch.addmm(bias[anchor], patches[mine], weight[anchor].T))
        return out

    def all_at(self, tower: Tensor, slots: Tensor, cells: Tensor) -> Tensor:
        """All rows of the last convolution at some cells.

        Args:
            tower: (S, C, H, W), channels last.
            slots: (n, taps), -1 for none.
            cells: (n,).

        Returns:
            (n, anchors, rows) of at least float32.
        """
        weight = self.weight.flatten(1).T
        made = [
            wide(torch.addmm(self.bias, self.patches(tower, slots[block], cells[block]), weight))
            for block in torch.split(torch.arange(len(cells), device=cells.device), _BLOCK)
        ]
        return torch.cat(made).reshape(-1, self.n_anchors, self.each)


def wide(numbers: Tensor) -> Tensor:
    """The numbers in float32, or in float64 if they are that already."""
    return numbers if numbers.dtype == torch.float64 else numbers.float()
