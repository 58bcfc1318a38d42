"""Layers over time that run on clips, or on a stream frame by frame with their past kept; imports torch."""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

M = TypeVar("M", bound=nn.Module)


class TimeLayer(nn.Module):
    """What a layer with a memory has: `streaming` if it continues a stream, `forget` to begin another.

    On a stream, forward takes any number of consecutive frames (usually one) and gives as many, or fewer
    where frames are pooled. The first frame of a stream has before it what the first frame of a clip has.
    """

    streaming: bool = False

    def forget(self) -> None:
        """Begin a new stream."""
        raise NotImplementedError


class TimeConv(nn.Conv3d, TimeLayer):
    """A Conv3d padded over time on both sides, or, when causal, before the first frame only.

    Args:
        in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias: as of `nn.Conv3d`;
            `padding[0]` frames are padded before and after, or twice as many before when causal. Its
            stride over time is 1, or divides the stream: see `phase`.
        causal: kernels look back only.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, int, int],
        *,
        stride: tuple[int, int, int] = (1, 1, 1),
        padding: tuple[int, int, int] = (0, 0, 0),
        dilation: tuple[int, int, int] = (1, 1, 1),
        groups: int = 1,
        bias: bool = True,
        causal: bool = False,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
        )
        self.causal, self.back, self.space = causal, 2 * padding[0], padding[1:]
        self.past: Tensor | None = None
        self.seen = 0

    def forget(self) -> None:
        """Begin a new stream."""
        self.past, self.seen = None, 0

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to (B, C', T', H', W'); with stride, frames 0, s, 2s, ... of the stream."""
        if not self.causal or not self.back:
            return self._convolved(input)
        if not self.streaming:
            return self._valid(functional.pad(input, (0, 0, 0, 0, self.back, 0)))
        past = (
            input.new_zeros(*input.shape[:2], self.back, *input.shape[3:]) if self.past is None else self.past
        )
        joined = torch.cat([past, input], dim=2)
        self.past = joined[:, :, -self.back :].detach()
        skip = -self.seen % self.stride[0]
        self.seen += input.shape[2]
        if skip >= input.shape[2]:
            return self._valid(joined)[:, :, :0]
        return self._valid(joined[:, :, skip:])

    def _convolved(self, input: Tensor) -> Tensor:
        """As `nn.Conv3d`; a kernel of one frame is the same on a clip and on a stream."""
        convolved: Tensor = self._conv_forward(input, self.weight, self.bias)
        return convolved

    def _valid(self, input: Tensor) -> Tensor:
        """Without padding over time."""
        padding = (0, *self.space)
        return functional.conv3d(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class TimePool(TimeLayer):
    """The larger of two frames, half as many; when causal, of an even frame and the one before."""

    def __init__(self, *, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.past: Tensor | None = None
        self.seen = 0

    def forget(self) -> None:
        """Begin a new stream."""
        self.past, self.seen = None, 0

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to (B, C, T // 2, H, W), ceil(T / 2) when causal; fewer or none on a stream."""
        if not self.causal:
            return functional.max_pool3d(input, (2, 1, 1), (2, 1, 1))
        before = self.past if self.streaming and self.past is not None else input[:, :, :1]
        start = self.seen if self.streaming else 0
        joined = torch.cat([before, input], dim=2)
        if self.streaming:
            self.past, self.seen = input[:, :, -1:].detach(), self.seen + input.shape[2]
        first = start % 2  # place in `input` of the first frame with an even number
        return torch.maximum(joined[:, :, 1 + first :: 2], joined[:, :, first:-1:2])


class TimeRepeat(TimeLayer):
    """Each pooled frame twice: 2j and 2j + 1 show the j-th; a stream holds the last one until the next."""

    def __init__(self) -> None:
        super().__init__()
        self.held: Tensor | None = None
        self.seen = 0

    def forget(self) -> None:
        """Begin a new stream."""
        self.held, self.seen = None, 0

    def forward(self, input: Tensor, frames: int) -> Tensor:
        """(B, C, ceil(frames / 2), H, W) to (B, C, frames, H, W).

        Args:
            input: (B, C, J, H, W) pooled frames that are new.
            frames: how many frames went into the pool.
        """
        start = self.seen if self.streaming else 0
        parts = [input]
        if self.streaming:
            if start % 2 and self.held is not None:
                parts = [self.held, input]
            self.seen += frames
        known = torch.cat(parts, dim=2) if len(parts) > 1 else input
        if self.streaming and known.shape[2]:
            self.held = known[:, :, -1:].detach()
        first = start % 2
        return known.repeat_interleave(2, dim=2)[:, :, first : first + frames]


def streaming_copy(model: M) -> M:
    """A copy that shares all parameters and buffers with `model` and has memories of its own, empty."""
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    twin = copy.deepcopy(model, shared)
    for layer in twin.modules():
        if isinstance(layer, TimeLayer):
            layer.streaming = True
            layer.forget()
    return twin.eval()


def forget(model: nn.Module) -> None:
    """Begin a new stream in every layer of a streaming copy."""
    for layer in model.modules():
        if isinstance(layer, TimeLayer):
            layer.forget()
