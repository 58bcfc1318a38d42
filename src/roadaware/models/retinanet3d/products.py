"""Convolutions of pictures for detection, by oneDNN where it adds and rectifies in the same pass."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from roadaware.models.retinanet3d.temporal import TimeConv

_PLAIN: tuple[list[int], list[int], list[int], int] = ([0, 0], [1, 1], [1, 1], 1)
"""Padding, stride, dilation and groups."""


def fused(frames: Tensor) -> bool:
    """Whether torch has oneDNN's fused convolutions, which its compiler calls, and they take these frames.

    On one thread torch itself gives kernels of one cell and small pictures to a slower library, and nowhere
    else can it add to what is there already and rectify in one pass: a tenth of the time of a trunk.
    """
    return frames.dtype in (torch.float32, torch.bfloat16) and frames.device.type == "cpu" and _known()


@cache
def _known() -> bool:
    return hasattr(torch.ops.mkldnn, "_convolution_pointwise_")


def _geometry(weight: Tensor, like: TimeConv | None) -> tuple[list[int], list[int], list[int], int]:
    """Stride, padding, dilation and groups over space; those that keep the size where nothing is given."""
    if like is None:
        return [1, 1], [weight.shape[-1] // 2] * 2, [1, 1], 1
    return list(like.stride[1:]), list(like.space), list(like.dilation[1:]), like.groups


def packed(weight: Tensor, frames: Tensor, like: TimeConv | None = None) -> Tensor:
    """Weights in the order in which oneDNN reads them for frames of one shape, to be kept from call to call.

    Args:
        weight: (C', C, h, w).
        frames: (n, C, H, W), of which `fused` holds.
        like: as of `convolved`.
    """
    stride, padding, dilation, groups = _geometry(weight, like)
    made: Tensor = torch.ops.mkldnn._reorder_convolution_weight(
        weight, padding, stride, dilation, groups, list(frames.shape)
    )
    return made


def convolved(
    frames: Tensor, weight: Tensor, bias: Tensor | None, like: TimeConv | None = None, *, active: bool = False
) -> Tensor:
    """(n, C', H', W') of (n, C, H, W), both with channels last.

    Args:
        frames: (n, C, H, W).
        weight: (C', C, side, side), or as `packed` gives it.
        bias: (C',), or None.
        like: whose stride, padding, dilation and groups over space are meant; otherwise the height and width
            of the frames are kept.
        active: rectify.
    """
    stride, padding, dilation, groups = _geometry(weight, like)
    if fused(frames) and len(frames):
        made: Tensor = torch.ops.mkldnn._convolution_pointwise(
            frames, weight, bias, padding, stride, dilation, groups, "relu" if active else "none", [], ""
        )
    else:
        made = functional.conv2d(frames, weight, bias, stride, padding, dilation, groups)
        made = made.relu_() if active else made
    return made.contiguous(memory_format=torch.channels_last)


def product(frames: Tensor, weight: Tensor, bias: Tensor | None, *, active: bool = False) -> Tensor:
    """(n, C', H, W) of (n, C, H, W), both with channels last.

    Args:
        frames: (n, C, H, W).
        weight: (C', C, 1, 1), or as `packed` gives it.
        bias: (C',), or None.
        active: rectify.
    """
    if fused(frames):
        made: Tensor = torch.ops.mkldnn._convolution_pointwise(
            frames, weight, bias, *_PLAIN, "relu" if active else "none", [], ""
        )
        return made
    made = pictures(rows(frames) @ weight.flatten(1).T, frames)
    if bias is not None:
        rows(made).add_(bias)
    return made.relu_() if active else made


def add_product(
    into: Tensor, frames: Tensor, weight: Tensor, bias: Tensor | None, *, active: bool = False
) -> Tensor:
    """The same, added to (n, C', H, W) in place.

    Args:
        into: (n, C', H, W), channels last.
        frames: (n, C, H, W), channels last.
        weight: (C', C, 1, 1), or as `packed` gives it.
        bias: (C',), or None.
        active: rectify the sum.
    """
    if fused(frames):
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
        rows(into).add_(bias)
    rows(into).addmm_(rows(frames), weight.flatten(1).T)
    return into.relu_() if active else into


def rows(frames: Tensor) -> Tensor:
    """(n H W, C) of (n, C, H, W) with channels last, a view."""
    return frames.permute(0, 2, 3, 1).view(-1, frames.shape[1])


def pictures(rows: Tensor, like: Tensor) -> Tensor:
    """(n, C', H, W) of (n H W, C'), a view; n, H and W are those of `like`."""
    return rows.view(len(like), *like.shape[2:], -1).permute(0, 3, 1, 2)


def stacked(one: Tensor, other: Tensor) -> Tensor:
    """(n + m, C, H, W) of (n, C, H, W) and (m, C, H, W), all with channels last, also where n or m is 0."""
    return torch.cat([one.permute(0, 2, 3, 1), other.permute(0, 2, 3, 1)]).permute(0, 3, 1, 2)
