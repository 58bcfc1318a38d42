"""Convolutions that fold frames into the batch, and what else trunks are built of; imports torch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.models.retinanet3d.temporal import TimeConv, TimeLayer


def over_frames(function: Callable[[Tensor], Tensor], input: Tensor) -> Tensor:
    """Apply a function of pictures (N, C, H, W) to every frame of (B, C, T, H, W)."""
    batch, frames = input.shape[0], input.shape[2]
    pictures = function(input.transpose(1, 2).flatten(0, 1))
    return pictures.reshape(batch, frames, *pictures.shape[1:]).transpose(1, 2)


class Conv(TimeConv):
    """A TimeConv that runs as convolutions of pictures, one for each tap over time, which CPUs do faster.

    Frames of padding are zeros and take no part, so they are not computed.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to (B, C', T', H', W')."""
        if self.causal and self.back and self.streaming:
            return super().forward(input)
        pad = self.back // 2
        return self._taps(input, self.back if self.causal else pad)

    def _valid(self, input: Tensor) -> Tensor:
        """Without padding over time."""
        return self._taps(input, 0, self.kernel_size[0] - 1)

    def _picture(self, input: Tensor, tap: int, bias: Tensor | None) -> Tensor:
        """(B, T, C, H, W) through the kernel of one tap."""
        pictures = functional.conv2d(
            input.flatten(0, 1),
            self.weight[:, :, tap],
            bias,
            self.stride[1:],
            self.space,
            self.dilation[1:],
            self.groups,
        )
        return pictures.reshape(*input.shape[:2], *pictures.shape[1:])

    def _taps(self, input: Tensor, before: int, first: int | None = None) -> Tensor:
        """The sum over taps; output j sees frames j * stride - before and on.

        Args:
            input: (B, C, T, H, W).
            before: frames of zeros before the first.
            first: the tap that meets a frame at every output; `before` where padded as much as the kernel.
        """
        taps, stride = self.kernel_size[0], self.stride[0]
        frames = input.transpose(1, 2)
        last = frames.shape[1] - 1
        whole = before if first is None else first
        outputs = (last + before - whole) // stride + 1
        start = whole - before
        total = self._picture(
            frames[:, start : start + (outputs - 1) * stride + 1 : stride], whole, self.bias
        )
        for tap in range(taps):
            begin = max(0, -((tap - before) // stride))
            end = min(outputs, (last + before - tap) // stride + 1)
            if tap == whole or begin >= end:
                continue
            start = begin * stride + tap - before
            part = frames[:, start : start + (end - begin - 1) * stride + 1 : stride]
            if end - begin == outputs:
                total = total + self._picture(part, tap, None)
            else:
                total[:, begin:end] += self._picture(part, tap, None)
        return total.transpose(1, 2)


class Norm(nn.BatchNorm3d):
    """Batch norm over frames and pictures alike."""

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to the same shape."""
        if self.training:
            normed: Tensor = super().forward(input)
            return normed
        return over_frames(
            lambda pictures: functional.batch_norm(
                pictures, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            ),
            input,
        )


def space_pool(input: Tensor, padding: int) -> Tensor:
    """The largest of 3 by 3 cells at every second cell of every second row: (B, C, T, H, W) to (.., H', W').

    Args:
        input: (B, C, T, H, W).
        padding: cells around the picture, 0 or 1.
    """
    return over_frames(lambda pictures: functional.max_pool2d(pictures, 3, 2, padding), input)


def resized(input: Tensor, like: Tensor) -> Tensor:
    """Nearest cells of (B, C, T, H, W) in the height and width of another map."""
    size = like.shape[-2:]
    if input.shape[-2:] == size:
        return input
    return over_frames(lambda pictures: functional.interpolate(pictures, size=size, mode="nearest"), input)


class EverySecond(TimeLayer):
    """Frames 0, 2, 4, ... of a clip or of a stream."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def forget(self) -> None:
        """Begin a new stream."""
        self.seen = 0

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to (B, C, T', H, W)."""
        first = self.seen % 2 if self.streaming else 0
        if self.streaming:
            self.seen += input.shape[2]
        return input[:, :, first::2]


def space(
    inputs: int, outputs: int, kernel: int = 3, *, stride: int = 1, dilation: int = 1, bias: bool = False
) -> Conv:
    """A convolution over height and width."""
    padding = dilation * (kernel // 2)
    return Conv(
        inputs,
        outputs,
        (1, kernel, kernel),
        stride=(1, stride, stride),
        padding=(0, padding, padding),
        dilation=(1, dilation, dilation),
        bias=bias,
    )


def started(module: nn.Module) -> None:
    """Draw the weights of a trunk: He's for convolutions before a rectifier."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv3d | nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def channels_last(input: Tensor) -> Tensor:
    """The same values with the channels of a cell side by side, as convolutions on a CPU like them."""
    return input.contiguous(memory_format=torch.channels_last_3d)
