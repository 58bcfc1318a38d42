"""Convolutions with the norm behind them folded in, for frames as a batch; imports torch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from roadaware.models.retinanet3d.layers import Conv, Norm
from roadaware.models.retinanet3d.products import add_product, convolved, fused, packed, product, rows

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
        if not fused(frames):
            return parts, bias
        if self._packed_for != frames.shape:
            self._packed = [packed(part, frames, None if self.pointwise else self.conv) for part in parts]
            self._packed_for = frames.shape
        return self._packed, bias

    def _made(self) -> tuple[list[Tensor], Tensor]:
        """The weights of each part of the kernel over time, and the bias, with the norm in both."""
        weight, bias = self.conv.weight.detach(), self.conv.bias
        bias = weight.new_zeros(len(weight)) if bias is None else bias.detach()
        if self.norm is not None and self.norm.running_var is not None and self.norm.running_mean is not None:
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
            return convolved(frames, weight, bias, self.conv, active=self.active)
        frames = self._strided(frames)
        (weight,), bias = self.weights(frames)
        return product(frames, weight, bias, active=self.active)

    def write(self, frames: Tensor, out: Tensor) -> None:
        """The same into (n, C', H', W'), of a kernel of one cell without rectifier."""
        (weight,), bias = self._made() if self._kept is None else self._kept
        torch.addmm(bias, rows(self._strided(frames)), weight.flatten(1).T, out=rows(out))

    def added(self, frames: Tensor, into: Tensor, *, active: bool = False) -> Tensor:
        """Add what it makes of (n, C, H, W) to (n, C', H', W') in place, and rectify the sum if asked to."""
        if self.pointwise:
            frames = self._strided(frames)
            (weight,), bias = self.weights(frames)
            return add_product(into, frames, weight, bias, active=active)
        (weight,), bias = self.weights(frames)
        into.add_(convolved(frames, weight, bias, self.conv))
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
        total = product(frames, parts[self.before], bias)
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
        self.owed = [*later, product(frame, parts[0], None)]
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
        for some in chunks(frames, out):
            shown = whole[some]
            for part in self.inner[timed:]:
                shown = part(shown)
            if self.beside is not None:
                self.beside.write(frames[some], out[some])
            self.last.added(shown, out[some], active=True)
        return out


def chunks(*frames: Tensor) -> Iterator[slice]:
    """Runs of frames that go through some layers together, by the largest of their maps (n, C, H, W)."""
    count = len(frames[0])
    each = max(map[0].numel() * map.element_size() for map in frames)
    step = max(1, _CHUNK_BYTES // each) if frames[0].device.type == "cpu" else count
    return (slice(start, start + step) for start in range(0, count, step))
