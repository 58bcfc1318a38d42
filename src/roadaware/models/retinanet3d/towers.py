"""The convolutions of a head before its last one, everywhere or only on the tiles that somebody asks for."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.models.retinanet3d.products import convolved, stacked

_TILE = 8
"""Cells of a tile's side."""
_WHOLE = 0.4
"""Share of a map's tiles from which all of it is cheaper, since tiles compute their surroundings twice."""
_AT_ONCE = 64
"""Tiles in memory at once."""


class Tower:
    """Convolutions over space with bias and ReLU, on frames as a batch, channels last.

    Args:
        layers: `nn.Conv3d` with kernels (1, 3, 3) and activations in place between them.
    """

    def __init__(self, layers: nn.Sequential) -> None:
        convolutions = [layer for layer in layers if isinstance(layer, nn.Conv3d)]
        self.weights = [
            conv.weight[:, :, 0].contiguous(memory_format=torch.channels_last) for conv in convolutions
        ]
        self.biases = [conv.bias for conv in convolutions]

    def __call__(self, frames: Tensor) -> Tensor:
        """(S, C, H, W) to the same, channels last."""
        frames = frames.contiguous(memory_format=torch.channels_last)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            if len(frames):
                frames = convolved(frames, weight, bias, active=True)
        return frames

    @property
    def margin(self) -> int:
        """Cells around one that decide about it."""
        return sum(weight.shape[-1] // 2 for weight in self.weights)

    def tiles(self, frames: Tensor, which: Tensor, into: Tensor) -> None:
        """Compute some tiles only.

        Args:
            frames: (S, C, H, W), channels last.
            which: (n, 3) frame, row and column of each tile.
            into: (S, C', H, W), channels last, where they are written.
        """
        for some in torch.split(which, _AT_ONCE):
            self._tiles(frames, some, into)

    def _tiles(self, frames: Tensor, which: Tensor, into: Tensor) -> None:
        height, width = frames.shape[2:]
        wide = torch.arange(-self.margin, _TILE + self.margin, device=frames.device)
        y, x = (which[:, 1:] * _TILE).T[:, :, None] + wide
        inside = _inside(y, height)[:, :, None] & _inside(x, width)[:, None]
        place = (which[:, :1] * height + y.clamp(0, height - 1))[:, :, None] * width
        place = place + x.clamp(0, width - 1)[:, None]
        rows = frames.permute(0, 2, 3, 1).reshape(-1, frames.shape[1])
        part = rows[place.flatten()].view(*place.shape, -1).permute(0, 3, 1, 2)
        seen = inside[:, None].to(frames.dtype)
        part *= seen
        for weight, bias in zip(self.weights, self.biases, strict=True):
            edge = weight.shape[-1] // 2
            part = functional.conv2d(part, weight, bias).relu_()
            if edge:
                seen = seen[:, :, edge:-edge, edge:-edge]
            part *= seen  # outside of the map each layer sees zeros, not what the last one made of them
        inner = slice(self.margin, self.margin + _TILE)
        kept = inside[:, inner, inner].flatten()
        target = into.permute(0, 2, 3, 1).view(-1, into.shape[1])
        target[place[:, inner, inner].flatten()[kept]] = part.permute(0, 2, 3, 1).flatten(0, 2)[kept]


def _inside(at: Tensor, size: int) -> Tensor:
    return (at >= 0) & (at < size)


@dataclass
class PartMap:
    """The output of a tower on the frames of one level, as far as it was computed.

    Args:
        tower: what computes it.
        frames: (S, C, H, W) its input, channels last.
        out: (S, C', H, W), right where `done`, else zeros.
        done: (S, tile rows, tile columns).
    """

    tower: Tower
    frames: Tensor
    out: Tensor
    done: Tensor

    @classmethod
    def empty(cls, tower: Tower, frames: Tensor) -> PartMap:
        """Nothing computed yet."""
        frames = frames.contiguous(memory_format=torch.channels_last)
        slots, _, height, width = frames.shape
        channels = tower.weights[-1].shape[0] if tower.weights else frames.shape[1]
        out = frames.new_zeros(slots, height, width, channels).permute(0, 3, 1, 2)
        tiles = torch.zeros(slots, -(-height // _TILE), -(-width // _TILE), dtype=torch.bool)
        return cls(tower, frames, out, tiles.to(frames.device))

    def everywhere(self) -> Tensor:
        """(S, C', H, W), all of it computed."""
        missing = ~self.done.flatten(1).all(dim=1)
        if missing.all():
            self.out.copy_(self.tower(self.frames))  # in place, since later slots may be views of it
        elif missing.any():
            self.out[missing] = self.tower(self.frames[missing])
        self.done.fill_(True)
        return self.out

    def around(self, slots: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """(S, C', H, W) that is right at some cells and those beside them.

        Args:
            slots, rows, columns: (n,) which cells, int64.
        """
        wanted = torch.zeros_like(self.done)
        for dy in (-1, 1):
            for dx in (-1, 1):
                y = (rows + dy).clamp(0, self.frames.shape[2] - 1) // _TILE
                x = (columns + dx).clamp(0, self.frames.shape[3] - 1) // _TILE
                wanted[slots, y, x] = True
        wanted &= ~self.done
        many = wanted.flatten(1).float().mean(dim=1) > _WHOLE
        if many.any():
            self.out[many] = self.tower(self.frames[many])
            self.done[many] = True
            wanted[many] = False
        if wanted.any():
            self.tower.tiles(self.frames, torch.nonzero(wanted), self.out)
            self.done |= wanted
        return self.out

    def followed(self, other: PartMap) -> PartMap:
        """The slots of this one, then those of another."""
        if not len(other.frames):
            return self
        return PartMap(
            self.tower,
            stacked(self.frames, other.frames),
            stacked(self.out, other.out),
            torch.cat([self.done, other.done]),
        )

    def since(self, slot: int) -> PartMap:
        """Without the slots before one."""
        return PartMap(self.tower, self.frames[slot:], self.out[slot:], self.done[slot:])
