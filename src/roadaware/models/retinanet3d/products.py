"""Kernels of one cell: matrix products of pixels, by oneDNN where it adds and rectifies in one pass."""

from __future__ import annotations

import torch
from torch import Tensor

_PLAIN: tuple[list[int], list[int], list[int], int] = ([0, 0], [1, 1], [1, 1], 1)
"""Padding, stride, dilation and groups."""


def _fused(frames: Tensor) -> bool:
    """Whether torch has oneDNN's fused convolutions, which its compiler calls, and they take these frames.

    On one thread torch itself gives kernels of one cell to a slower library, and nowhere else can it add the
    product to what is there already and rectify in one pass: a tenth of the time of a trunk.
    """
    known = hasattr(torch.ops.mkldnn, "_convolution_pointwise_")
    return known and frames.device.type == "cpu" and frames.dtype in (torch.float32, torch.bfloat16)


def product(frames: Tensor, weight: Tensor, bias: Tensor, *, active: bool = False) -> Tensor:
    """(n, C', H, W) of (n, C, H, W), both with channels last.

    Args:
        frames: (n, C, H, W).
        weight: (C', C).
        bias: (C',).
        active: rectify.
    """
    if _fused(frames):
        made: Tensor = torch.ops.mkldnn._convolution_pointwise(
            frames, weight[:, :, None, None], bias, *_PLAIN, "relu" if active else "none", [], ""
        )
        return made
    made = pictures(torch.addmm(bias, rows(frames), weight.T), frames)
    return made.relu_() if active else made


def add_product(
    into: Tensor, frames: Tensor, weight: Tensor, bias: Tensor | None, *, active: bool = False
) -> Tensor:
    """The same, added to (n, C', H, W) in place.

    Args:
        into: (n, C', H, W), channels last.
        frames: (n, C, H, W), channels last.
        weight: (C', C).
        bias: (C',), or None.
        active: rectify the sum.
    """
    if _fused(frames):
        torch.ops.mkldnn._convolution_pointwise_.binary(
            into,
            frames,
            weight[:, :, None, None],
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
    rows(into).addmm_(rows(frames), weight.T)
    return into.relu_() if active else into


def rows(frames: Tensor) -> Tensor:
    """(n H W, C) of (n, C, H, W) with channels last, a view."""
    return frames.permute(0, 2, 3, 1).view(-1, frames.shape[1])


def pictures(rows: Tensor, like: Tensor) -> Tensor:
    """(n, C', H, W) of (n H W, C'), a view; n, H and W are those of `like`."""
    return rows.view(len(like), *like.shape[2:], -1).permute(0, 3, 1, 2)
