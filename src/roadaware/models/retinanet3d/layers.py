"""Convolutions that fold frames into the batch, and what else trunks are built of; imports torch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

# Layers over time that run on clips, or on a stream frame by frame with their past kept; imports torch.

M = TypeVar("M", bound=nn.Module)


class TimeLayer(nn.Module):
    """Interface of a layer with a temporal state: `streaming` if it continues one, `reset_stream_state` to begin another.

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
        # Detached, or the graph of a stream would grow with every frame.
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


def make_streaming_copy(model: M) -> M:
    """A copy that shares all parameters and buffers with `model` and has memories of its own, empty."""
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    # deepcopy takes what its memo holds instead of copying it.
    twin = copy.deepcopy(model, shared)
    for layer in twin.modules():
        if isinstance(layer, TimeLayer):
            layer.streaming = True
            layer.forget()
    return twin.eval()


def reset_stream_state(model: nn.Module) -> None:
    """Begin a new stream in every layer of a streaming copy."""
    for layer in model.modules():
        if isinstance(layer, TimeLayer):
            layer.forget()


def merge_time(frames: Tensor) -> Tensor:
    """(B, T, C, H, W) as images (B * T, C, H, W); a view, with channels last where they were.

    Axes of length one are dropped rather than merged: a merged one gets strides that hide the layout.
    """
    if frames.shape[1] == 1:
        return frames.squeeze(1)
    return frames.squeeze(0) if frames.shape[0] == 1 else frames.flatten(0, 1)


def split_time(images: Tensor, frames: Tensor) -> Tensor:
    """Images (B * T, C', H', W') as (B, T, C', H', W'), as many as `frames` (B, T, ...) has."""
    if frames.shape[1] == 1:
        return images.unsqueeze(1)
    if frames.shape[0] == 1:
        return images.unsqueeze(0)
    return images.reshape(*frames.shape[:2], *images.shape[1:])


def apply_per_frame(function: Callable[[Tensor], Tensor], input: Tensor) -> Tensor:
    """Apply a function of images (N, C, H, W) to every frame of (B, C, T, H, W)."""
    frames = input.transpose(1, 2)
    return split_time(function(merge_time(frames)), frames).transpose(1, 2)


class Conv(TimeConv):
    """A TimeConv that runs as convolutions of images, one for each tap over time, which CPUs do faster.

    Frames of padding are zeros and take no part, so they are not computed. On a stream it keeps the frames
    it was given as they are: nobody may write into them.
    """

    kept: tuple[Tensor, ...] = ()

    def forget(self) -> None:
        """Begin a new stream."""
        super().forget()
        self.kept = ()

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to (B, C', T', H', W')."""
        if not (self.causal and self.back and self.streaming and input.shape[2]):
            return self._taps(input, self.back if self.causal else self.back // 2)
        begin, frames = self.seen, [*self.kept, *torch.split(input, 1, dim=2)]
        missing = self.kernel_size[0] - 1 - len(self.kept)
        self.kept, self.seen = tuple(frames[-self.back :]), begin + input.shape[2]
        skip = -begin % self.stride[0]
        if skip >= input.shape[2]:
            return self._taps(input[:, :, :0], self.back)
        if input.shape[2] == 1:
            return self._newest(frames)
        return self._taps(
            torch.cat(frames[max(0, skip - missing) :], dim=2), max(0, missing - skip), self.back
        )

    def _newest(self, frames: list[Tensor]) -> Tensor:
        """The output of the last of the frames (B, C, 1, H, W), in one convolution of all that it sees."""
        weight = self.weight[:, :, self.kernel_size[0] - len(frames) :]
        stacked = weight.transpose(1, 2).flatten(1, 2)
        seen = torch.cat([frame.squeeze(2) for frame in frames], dim=1)
        return functional.conv2d(
            seen, stacked, self.bias, self.stride[1:], self.space, self.dilation[1:]
        ).unsqueeze(2)

    def _picture(self, input: Tensor, tap: int, bias: Tensor | None) -> Tensor:
        """(B, T, C, H, W) through the kernel of one tap."""
        images = functional.conv2d(
            merge_time(input),
            self.weight[:, :, tap],
            bias,
            self.stride[1:],
            self.space,
            self.dilation[1:],
            self.groups,
        )
        return split_time(images, input)

    def _taps(self, input: Tensor, before: int, whole: int | None = None) -> Tensor:
        """The sum over taps; output j sees frames j * stride - before and on.

        Args:
            input: (B, C, T, H, W).
            before: frames of zeros before the first.
            whole: the tap that meets a frame at every output, which is `before` if no frame was cut off.
        """
        taps, stride = self.kernel_size[0], self.stride[0]
        frames = input.transpose(1, 2)
        last = frames.shape[1] - 1
        whole = before if whole is None else whole
        outputs = (last + before - whole) // stride + 1
        total = self._picture(_every(frames, whole - before, outputs, stride), whole, self.bias)
        for tap in range(taps):
            begin = max(0, -((tap - before) // stride))
            end = min(outputs, (last + before - tap) // stride + 1)
            if tap == whole or begin >= end:
                continue
            part = _every(frames, begin * stride + tap - before, end - begin, stride)
            if end - begin == outputs:
                total = total + self._picture(part, tap, None)
            else:
                total[:, begin:end] += self._picture(part, tap, None)
        return total.transpose(1, 2)


def _every(frames: Tensor, start: int, count: int, stride: int) -> Tensor:
    """`count` frames of (B, T, ...) from `start` on, `stride` apart."""
    return frames[:, start : start + max(0, (count - 1) * stride + 1) : stride]


class Norm(nn.BatchNorm3d):
    """Batch norm over frames and images alike."""

    def forward(self, input: Tensor) -> Tensor:
        """(B, C, T, H, W) to the same shape."""
        if self.training:
            normed: Tensor = super().forward(input)
            return normed
        return apply_per_frame(
            lambda images: functional.batch_norm(
                images, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps
            ),
            input,
        )


def spatial_max_pool(input: Tensor, padding: int) -> Tensor:
    """The largest of 3 by 3 cells at every second cell of every second row: (B, C, T, H, W) to (.., H', W').

    Args:
        input: (B, C, T, H, W).
        padding: cells around the image, 0 or 1.
    """
    return apply_per_frame(lambda images: functional.max_pool2d(images, 3, 2, padding), input)


def resize_like(input: Tensor, like: Tensor) -> Tensor:
    """Nearest cells of (B, C, T, H, W) in the height and width of another map."""
    size = like.shape[-2:]
    if input.shape[-2:] == size:
        return input
    return apply_per_frame(lambda images: functional.interpolate(images, size=size, mode="nearest"), input)


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


def build_space_convolution(
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


def initialize_trunk(module: nn.Module) -> None:
    """Draw the weights of a trunk: He's for convolutions before a rectifier."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv3d | nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


def to_channels_last(input: Tensor) -> Tensor:
    """The same values with the channels of a cell side by side, as convolutions on a CPU like them."""
    return input.contiguous(memory_format=torch.channels_last_3d)
