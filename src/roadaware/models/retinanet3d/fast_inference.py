"""The network for detection on a CPU: norms folded into convolutions, oneDNN products, heads computed only
where asked; imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.retinanet3d.layers import Conv, Norm, TimeConv
from roadaware.models.retinanet3d.trunks import Bottleneck, Compact, CompactBlock, ResNet

# Convolutions of images for detection, by oneDNN where it adds and rectifies in the same pass.

_PLAIN: tuple[list[int], list[int], list[int], int] = ([0, 0], [1, 1], [1, 1], 1)
"""Padding, stride, dilation and groups."""


def has_fused_convolutions(frames: Tensor) -> bool:
    """Whether torch has oneDNN's fused convolutions, which its compiler calls, and they take these frames.

    On one thread torch itself gives kernels of one cell and small images to a slower library, and nowhere
    else can it add to what is there already and rectify in one pass: a tenth of the time of a trunk.
    """
    return frames.device.type == "cpu" and _has_pointwise_op(frames.dtype)


@cache
def _has_pointwise_op(dtype: torch.dtype) -> bool:
    # It has no public name, and another version of torch may lack it.
    if dtype not in (torch.float32, torch.bfloat16) or not hasattr(
        torch.ops.mkldnn, "_convolution_pointwise_"
    ):
        return False
    try:
        kernel = torch.zeros(1, 1, 1, 1, dtype=dtype)
        torch.ops.mkldnn._reorder_convolution_weight(kernel, *_PLAIN[:3], 1, [1, 1, 1, 1])
    except RuntimeError:  # bfloat16 on a processor that has no instructions for it
        return False
    return True


def _geometry(weight: Tensor, like: TimeConv | None) -> tuple[list[int], list[int], list[int], int]:
    """Stride, padding, dilation and groups over space; those that keep the size where nothing is given."""
    if like is None:
        return [1, 1], [weight.shape[-1] // 2] * 2, [1, 1], 1
    return list(like.stride[1:]), list(like.space), list(like.dilation[1:]), like.groups


def pack_weights(weight: Tensor, frames: Tensor, like: TimeConv | None = None) -> Tensor:
    """Weights in the order in which oneDNN reads them for frames of one shape, to be kept from call to call.

    Args:
        weight: (C', C, h, w).
        frames: (n, C, H, W), of which `has_fused_convolutions` holds.
        like: as of `apply_fused_convolution`.
    """
    stride, padding, dilation, groups = _geometry(weight, like)
    made: Tensor = torch.ops.mkldnn._reorder_convolution_weight(
        weight, padding, stride, dilation, groups, list(frames.shape)
    )
    return made


def apply_fused_convolution(
    frames: Tensor, weight: Tensor, bias: Tensor | None, like: TimeConv | None = None, *, active: bool = False
) -> Tensor:
    """(n, C', H', W') of (n, C, H, W), both with channels last.

    Args:
        frames: (n, C, H, W).
        weight: (C', C, side, side), or as `pack_weights` gives it.
        bias: (C',), or None.
        like: whose stride, padding, dilation and groups over space are meant; otherwise the height and width
            of the frames are kept.
        active: rectify.
    """
    stride, padding, dilation, groups = _geometry(weight, like)
    if has_fused_convolutions(frames) and len(frames):
        made: Tensor = torch.ops.mkldnn._convolution_pointwise(
            frames, weight, bias, padding, stride, dilation, groups, "relu" if active else "none", [], ""
        )
    else:
        made = functional.conv2d(frames, weight, bias, stride, padding, dilation, groups)
        made = made.relu_() if active else made
    return made.contiguous(memory_format=torch.channels_last)


def apply_pointwise_convolution(
    frames: Tensor, weight: Tensor, bias: Tensor | None, *, active: bool = False
) -> Tensor:
    """(n, C', H, W) of (n, C, H, W), both with channels last.

    Args:
        frames: (n, C, H, W).
        weight: (C', C, 1, 1), or as `pack_weights` gives it.
        bias: (C',), or None.
        active: rectify.
    """
    if has_fused_convolutions(frames):
        made: Tensor = torch.ops.mkldnn._convolution_pointwise(
            frames, weight, bias, *_PLAIN, "relu" if active else "none", [], ""
        )
        return made
    made = unpack_rows(to_rows(frames) @ weight.flatten(1).T, frames)
    if bias is not None:
        to_rows(made).add_(bias)
    return made.relu_() if active else made


def add_product(
    into: Tensor, frames: Tensor, weight: Tensor, bias: Tensor | None, *, active: bool = False
) -> Tensor:
    """The same, added to (n, C', H, W) in place.

    Args:
        into: (n, C', H, W), channels last.
        frames: (n, C, H, W), channels last.
        weight: (C', C, 1, 1), or as `pack_weights` gives it.
        bias: (C',), or None.
        active: rectify the sum.
    """
    if has_fused_convolutions(frames):
        torch.ops.mkldnn._convolution_pointwise_.binary(
            into,
            frames,
            weight,
            bias,
            *_PLAIN,
            "add",
            1.0,
            "relu" if active else None,
            [],
            None,
        )
        return into
    if bias is not None:
        to_rows(into).add_(bias)
    to_rows(into).addmm_(to_rows(frames), weight.flatten(1).T)
    return into.relu_() if active else into


def to_rows(frames: Tensor) -> Tensor:
    """(n H W, C) of (n, C, H, W) with channels last, a view."""
    return frames.permute(0, 2, 3, 1).view(-1, frames.shape[1])


def unpack_rows(rows: Tensor, like: Tensor) -> Tensor:
    """(n, C', H, W) of (n H W, C'), a view; n, H and W are those of `like`."""
    return rows.view(len(like), *like.shape[2:], -1).permute(0, 3, 1, 2)


def concat_channels_last(one: Tensor, other: Tensor) -> Tensor:
    """(n + m, C, H, W) of (n, C, H, W) and (m, C, H, W), all with channels last, also where n or m is 0."""
    return torch.cat([one.permute(0, 2, 3, 1), other.permute(0, 2, 3, 1)]).permute(0, 3, 1, 2)


# Convolutions with the norm behind them folded in, for frames as a batch; imports torch.

_LAST = torch.channels_last
_CHUNK_BYTES = 24_000_000
"""Of the frames that go through a block together on a CPU: arrays of more come from the kernel page by page,
which costs as much as a small convolution, and fall out of the cache."""


class Folded:
    """One convolution, its norm and its rectifier.

    Args:
        conv: with a kernel over space, or one over time alone.
        norm: behind it, or None.
        active: a rectifier follows.
        keep: keep the folded weights, also as oneDNN wants them; they then no longer follow those of the
            network. Otherwise they are made at each call, which is cheap beside a clip and saves the memory.
        streaming: a kernel over time continues a stream.
    """

    def __init__(self, conv: Conv, norm: Norm | None, *, active: bool, keep: bool, streaming: bool) -> None:
        self.conv, self.norm, self.active = conv, norm, active
        self.keep, self.streaming = keep, streaming
        self.over_time = conv.kernel_size[0] > 1
        self.before = conv.back if conv.causal else conv.back // 2
        self.pointwise = conv.kernel_size[1:] == (1, 1) and conv.groups == 1
        self._kept: tuple[list[Tensor], Tensor] | None = None
        self._packed: list[Tensor] = []
        self._packed_for: torch.Size | None = None
        self.forget()

    def forget(self) -> None:
        """Begin a new stream."""
        self.owed: list[Tensor] = []

    def weights(self, frames: Tensor) -> tuple[list[Tensor], Tensor]:
        """The weights (C', C, h, w) of each part of the kernel over time, best for such frames; the bias."""
        if not self.keep:
            return self._made()
        if self._kept is None:
            self._kept = self._made()
        parts, bias = self._kept
        if not has_fused_convolutions(frames):
            return parts, bias
        # The order depends on the shape: images of a stream have one, so this happens once.
        if self._packed_for != frames.shape:
            self._packed = [
                pack_weights(part, frames, None if self.pointwise else self.conv) for part in parts
            ]
            self._packed_for = frames.shape
        return self._packed, bias

    def _made(self) -> tuple[list[Tensor], Tensor]:
        """The weights of each part of the kernel over time, and the bias, with the norm in both."""
        weight, bias = self.conv.weight.detach(), self.conv.bias
        bias = weight.new_zeros(len(weight)) if bias is None else bias.detach()
        if self.norm is not None and self.norm.running_var is not None and self.norm.running_mean is not None:
            # norm(conv(x)) = scale * conv(x) + shift: one convolution with other weights.
            scale = self.norm.weight * torch.rsqrt(self.norm.running_var + self.norm.eps)
            bias = (bias - self.norm.running_mean) * scale + self.norm.bias
            weight = weight * scale[:, None, None, None, None]
        return [part.contiguous(memory_format=_LAST) for part in weight.unbind(2)], bias.detach()

    def __call__(self, frames: Tensor) -> Tensor:
        """(n, C, H, W), consecutive, to (n, C', H', W'), both with channels last."""
        if self.over_time:
            return self._in_time(frames)
        if not self.pointwise:
            (weight,), bias = self.weights(frames)
            return apply_fused_convolution(frames, weight, bias, self.conv, active=self.active)
        frames = self._strided(frames)
        (weight,), bias = self.weights(frames)
        return apply_pointwise_convolution(frames, weight, bias, active=self.active)

    def write(self, frames: Tensor, out: Tensor) -> None:
        """The same into (n, C', H', W'), of a kernel of one cell without rectifier."""
        (weight,), bias = self._made() if self._kept is None else self._kept
        torch.addmm(bias, to_rows(self._strided(frames)), weight.flatten(1).T, out=to_rows(out))

    def added(self, frames: Tensor, into: Tensor, *, active: bool = False) -> Tensor:
        """Add what it makes of (n, C, H, W) to (n, C', H', W') in place, and rectify the sum if asked to."""
        if self.pointwise:
            frames = self._strided(frames)
            (weight,), bias = self.weights(frames)
            return add_product(into, frames, weight, bias, active=active)
        (weight,), bias = self.weights(frames)
        into.add_(apply_fused_convolution(frames, weight, bias, self.conv))
        return into.relu_() if active else into

    def shape(self, frames: Tensor) -> tuple[int, ...]:
        """(n, C', H', W') that a kernel of one cell makes of (n, C, H, W)."""
        size = (
            -(-side // stride) for side, stride in zip(frames.shape[2:], self.conv.stride[1:], strict=True)
        )
        return (len(frames), self.conv.out_channels, *size)

    def _strided(self, frames: Tensor) -> Tensor:
        if self.conv.stride[1:] == (1, 1):
            return frames
        return frames[:, :, :: self.conv.stride[1], :: self.conv.stride[2]].contiguous(memory_format=_LAST)

    def _in_time(self, frames: Tensor) -> Tensor:
        """The sum over the kernel over time."""
        if self.streaming:
            made = [self._next(frame) for frame in torch.split(frames, 1)]
            return torch.cat(made) if len(made) > 1 else made[0]
        parts, bias = self.weights(frames)
        count = len(frames)
        total = apply_pointwise_convolution(frames, parts[self.before], bias)
        for tap, part in enumerate(parts):
            ahead = tap - self.before
            first, last = max(0, -ahead), min(count, count - ahead)
            if ahead and first < last:
                add_product(total[first:last], frames[first + ahead : last + ahead], part, None)
        return total.relu_() if self.active else total

    def _next(self, frame: Tensor) -> Tensor:
        """The sum for the next frame of a stream.

        What this frame gives to later ones is added up at once, since it has fewer channels than the frame.
        """
        parts, bias = self.weights(frame)
        if not self.owed:
            shape = (len(frame), len(bias), *frame.shape[2:])
            self.owed = [frame.new_zeros(shape).contiguous(memory_format=_LAST) for _ in parts[1:]]
        later = [
            add_product(owed, frame, part, None)
            for owed, part in zip(self.owed[1:], parts[-2:0:-1], strict=True)
        ]
        shown = add_product(self.owed[0], frame, parts[-1], bias, active=self.active)
        self.owed = [*later, apply_pointwise_convolution(frame, parts[0], None)]
        return shown


class Block:
    """Convolutions beside a shortcut; works in place on its input where that has the shape of its output.

    Args:
        inner: one after another.
        last: the one whose output is added to the shortcut.
        beside: of the shortcut; None for the input itself.
    """

    def __init__(self, inner: list[Folded], last: Folded, beside: Folded | None) -> None:
        self.inner, self.last, self.beside = inner, last, beside

    def parts(self) -> list[Folded]:
        """Every convolution."""
        return [*self.inner, self.last, *([self.beside] if self.beside else [])]

    def __call__(self, frames: Tensor) -> Tensor:
        """(n, C, H, W), consecutive, to (n, C', H', W'); the input is lost where there is no shortcut."""
        timed = max((n for n, part in enumerate(self.inner) if part.over_time), default=-1) + 1
        whole, out = frames, frames
        for part in self.inner[:timed]:
            whole = part(whole)
        if self.beside is not None:
            shape = self.beside.shape(frames)
            out = torch.empty(shape, dtype=frames.dtype, device=frames.device, memory_format=_LAST)
        for some in iterate_chunks(frames, out):
            shown = whole[some]
            for part in self.inner[timed:]:
                shown = part(shown)
            if self.beside is not None:
                self.beside.write(frames[some], out[some])
            self.last.added(shown, out[some], active=True)
        return out


def iterate_chunks(*frames: Tensor) -> Iterator[slice]:
    """Runs of frames that go through some layers together, by the largest of their maps (n, C, H, W)."""
    count = len(frames[0])
    each = max(map[0].numel() * map.element_size() for map in frames)
    step = max(1, _CHUNK_BYTES // each) if frames[0].device.type == "cpu" else count
    return (slice(start, start + step) for start in range(0, count, step))


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
        """The maps of (B, 3, T, H, W) images, normalised and padded; B is 1 in a stream."""
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
        made = [self._stem(frames[some]) for some in iterate_chunks(frames, after)]
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


def build_fast_backbone(pyramid: nn.Module, *, causal: bool, streaming: bool = False) -> Swift | None:
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


# The convolutions of a head before its last one, everywhere or only on the tiles that somebody asks for.

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
                frames = apply_fused_convolution(frames, weight, bias, active=True)
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
            concat_channels_last(self.frames, other.frames),
            concat_channels_last(self.out, other.out),
            torch.cat([self.done, other.done]),
        )

    def since(self, slot: int) -> PartMap:
        """Without the slots before one."""
        return PartMap(self.tower, self.frames[slot:], self.out[slot:], self.done[slot:])


# The last convolution of a head, everywhere or only where somebody asks.

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
        """Contribution of one frame to some rows of every anchor, for each time step of the kernel.

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
        made = apply_fused_convolution(tower, kernel, None).permute(0, 2, 3, 1)
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
        bias = to_at_least_float32(
            self.bias.view(self.n_anchors, self.each)[:, row].reshape(self.n_anchors, -1)
        )
        total = bias.expand(len(table), parts.shape[2], *bias.shape).clone()
        for tap, slots in enumerate(table.T):
            seen = torch.nonzero(slots >= 0).flatten()
            total.index_add_(0, seen, to_at_least_float32(parts[slots[seen], tap]))
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
        out = to_at_least_float32(tower.new_empty(len(cells), weight.shape[1]))
        # By anchor: one product for all cells that ask for the same weights.
        for block in torch.split(torch.argsort(anchors, stable=True), _BLOCK):
            patches = self.patches(tower, slots[block], cells[block])
            of = anchors[block]
            for anchor in torch.unique_consecutive(of).tolist():
                mine = of == anchor
                out[block[mine]] = to_at_least_float32(
                    torch.addmm(bias[anchor], patches[mine], weight[anchor].T)
                )
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
            to_at_least_float32(
                torch.addmm(self.bias, self.patches(tower, slots[block], cells[block]), weight)
            )
            for block in torch.split(torch.arange(len(cells), device=cells.device), _BLOCK)
        ]
        return torch.cat(made).reshape(-1, self.n_anchors, self.each)


def to_at_least_float32(numbers: Tensor) -> Tensor:
    """The numbers in float32, or in float64 if they are that already."""
    return numbers if numbers.dtype == torch.float64 else numbers.float()
