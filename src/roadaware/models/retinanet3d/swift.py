"""Trunk and pyramid for detection alone: norms folded in, in place, frames as a batch with channels last."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.retinanet3d.compact import Compact, CompactBlock
from roadaware.models.retinanet3d.folded import Block, Folded, chunks
from roadaware.models.retinanet3d.layers import Conv, Norm
from roadaware.models.retinanet3d.resnet import Bottleneck, ResNet


class Distinct(NamedTuple):
    """The maps of a pyramid without repetition.

    Args:
        maps: of each level (B J, width, H, W), J distinct frames of each video; 0 where a stream has none.
        ego: (B, width, T) of the own vehicle, of all frames.
    """

    maps: list[Tensor]
    ego: Tensor


class Swift:
    """A ResNet without recurrent units, or the compact trunk, with its pyramid; same maps up to rounding.

    Args:
        pyramid: trunk and pyramid of a network.
        causal: its kernels look back only.
        streaming: `read` continues a stream of one video; everything must be causal. Weights are then taken
            as they are now.
    """

    def __init__(self, pyramid: ResNet | Compact, *, causal: bool, streaming: bool = False) -> None:
        self.streaming, self.causal = streaming, causal
        self.parts: list[Folded] = []
        if isinstance(pyramid, ResNet):
            self.stem = [self._named(pyramid, "conv1", "bn1")]
            self.pool: int | None = pyramid.stem_padding
            names = ("layer1", "layer2", "layer3", "layer4")
        else:
            self.stem = [self._named(pyramid, f"stem{n}", f"norm{n}") for n in (1, 2)]
            self.pool, names = None, ("stage1", "stage2", "stage3", "stage4")
        self.every = 1 if pyramid.repeats is None else 2
        self.blocks = [
            [self._block(block) for block in pyramid.get_submodule(name).children()] for name in names
        ]
        self.laterals = [self._fold(getattr(pyramid, f"lateral_layer{n}"), active=False) for n in (3, 2, 1)]
        self.corrections = [
            self._fold(getattr(pyramid, f"corr_layer{3 - level}"), active=False)
            for level in range(min(pyramid.levels, 3))
        ]
        coarser = ("conv6", "conv7")[: max(0, pyramid.levels - 3)]
        self.coarser = [self._fold(getattr(pyramid, name), active=False) for name in coarser]
        self.forget()

    def forget(self) -> None:
        """Begin a new stream."""
        self.seen = 0
        self.last = self.ego = torch.empty(0)
        self.none: list[Tensor] = []
        for part in self.parts:
            part.forget()

    @torch.inference_mode()
    def read(self, x: Tensor) -> Distinct:
        """The maps of (B, 3, T, H, W) pictures, normalised and padded; B is 1 in a stream."""
        videos = [self._video(video.transpose(0, 1)) for video in x]
        if len(videos) == 1:
            return videos[0]
        maps = [torch.cat(levels) for levels in zip(*(video.maps for video in videos), strict=True)]
        return Distinct(maps, torch.cat([video.ego for video in videos]))

    def _video(self, frames: Tensor) -> Distinct:
        """The maps of one video, (T, 3, H, W)."""
        begin = self.seen if self.streaming else 0
        self.seen = begin + len(frames)
        shown = self._pooled(self._first_stage(frames), begin)
        if len(shown):
            stages = []
            for blocks in self.blocks[1:]:
                for block in blocks:
                    shown = block(shown)
                stages.append(shown)
            maps = self._maps(stages)
            ego = maps[-1].mean(dim=(2, 3)).T
            self.none = [map.new_empty(0, *map.shape[1:]) for map in maps]
        else:
            maps, ego = self.none, self.ego[:, :0]
        if self.every == 1:
            return Distinct(maps, ego[None])
        known = torch.cat([self.ego, ego], dim=1) if begin % 2 else ego
        self.ego = known[:, -1:]
        repeated = known.repeat_interleave(2, dim=1)[:, begin % 2 :][:, : len(frames)]
        return Distinct(maps, repeated[None])

    def _first_stage(self, frames: Tensor) -> Tensor:
        """Stem and first stage."""
        channels = self.stem[0].conv.out_channels
        after = frames[:, :1, ::2, ::2].expand(-1, channels, -1, -1)
        made = [self._stem(frames[some]) for some in chunks(frames, after)]
        shown = made.pop() if len(made) == 1 else torch.cat(made)
        made.clear()
        for block in self.blocks[0]:
            shown = block(shown)
        return shown

    def _stem(self, frames: Tensor) -> Tensor:
        shown = frames.contiguous(memory_format=torch.channels_last)
        for part in self.stem:
            shown = part(shown)
        return shown if self.pool is None else functional.max_pool2d(shown, 3, 2, self.pool)

    def _pooled(self, frames: Tensor, begin: int) -> Tensor:
        """As `TimePool`, of the frames from `begin` on."""
        if self.every == 1:
            return frames
        if not self.causal:
            if len(frames) % 2:
                raise UsageError(
                    f"a clip of {len(frames)} frames: give an even number, since frames are pooled"
                )
            return torch.maximum(frames[::2], frames[1::2])
        before, self.last = self.last if self.streaming and begin else frames[:1], frames[-1:]
        even = frames[begin % 2 :: 2]
        if len(frames) == 1:
            return torch.maximum(even, before) if len(even) else even
        odd = torch.cat([before, frames[:-1]])[begin % 2 :: 2]
        return torch.maximum(even, odd)

    def _maps(self, stages: list[Tensor]) -> list[Tensor]:
        """The levels over the three maps of the trunk."""
        fine, middle, coarse = self.laterals
        sums = [coarse(stages[2])]
        for lateral, stage in ((middle, stages[1]), (fine, stages[0])):
            wider = functional.interpolate(sums[0], size=stage.shape[2:], mode="nearest")
            sums.insert(0, lateral.added(stage, wider.contiguous(memory_format=torch.channels_last)))
        maps = [correct(map) for correct, map in zip(self.corrections, sums, strict=False)]
        if len(self.coarser) > 0:
            maps.append(self.coarser[0](stages[2]))
        if len(self.coarser) > 1:
            maps.append(self.coarser[1](maps[-1].relu()))
        return maps

    def _fold(self, conv: nn.Module, norm: nn.Module | None = None, *, active: bool = True) -> Folded:
        if not isinstance(conv, Conv) or not (norm is None or isinstance(norm, Norm)):
            raise TypeError(f"a {type(conv).__name__} and a {type(norm).__name__} cannot be folded")
        part = Folded(conv, norm, active=active, keep=self.streaming, streaming=self.streaming)
        self.parts.append(part)
        return part

    def _named(self, module: nn.Module, conv: str, norm: str) -> Folded:
        return self._fold(module.get_submodule(conv), module.get_submodule(norm))

    def _chain(self, convolution: nn.Module, norm: nn.Module, *, active: bool = True) -> list[Folded]:
        """A convolution, or one per channel and one over channels, with the norm behind."""
        *before, last = convolution if isinstance(convolution, nn.Sequential) else (convolution,)
        return [*(self._fold(conv, active=False) for conv in before), self._fold(last, norm, active=active)]

    def _block(self, block: nn.Module) -> Block:
        if isinstance(block, Bottleneck):
            inner = [self._fold(block.conv1, block.bn1), self._fold(block.conv2, block.bn2)]
            last, beside = self._fold(block.conv3, block.bn3, active=False), block.downsample
        elif isinstance(block, CompactBlock):
            inner = self._chain(block.first, block.first_norm)
            if block.time is not None:
                inner.append(self._fold(block.time, block.time_norm))
            *more, last = self._chain(block.second, block.second_norm, active=False)
            inner, beside = [*inner, *more], block.shortcut
        else:
            raise TypeError(f"a {type(block).__name__} is no block of these trunks")
        return Block(inner, last, None if beside is None else self._fold(beside[0], beside[1], active=False))


def swift(pyramid: nn.Module, *, causal: bool, streaming: bool = False) -> Swift | None:
    """A trunk with its pyramid to run so; None if it is none of those that can.

    Args:
        pyramid, causal, streaming: as of `Swift`.
    """
    if isinstance(pyramid, ResNet):
        if any(isinstance(block, Bottleneck) and block.unit for block in pyramid.modules()):
            return None
    elif not isinstance(pyramid, Compact):
        return None
    return Swift(pyramid, causal=causal, streaming=streaming)
