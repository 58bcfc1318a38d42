"""Where each pixel of a picture went in the next: dense Lucas-Kanade over a pyramid; imports torch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_LEAST_SIDE = 16
"""Pixels of the smallest level of a pyramid."""
_FIRMNESS = 1e-5
"""Squared slope of brightness, per pixel, below which a place hardly pulls: some steps of a byte."""
_STEP_PX = 2.0
"""Most that a round may change, on its level."""
_SMOOTH = 5
"""Side in pixels of the window that averages the flow behind each round, so that neighbours agree."""
_LUMA = (0.299, 0.587, 0.114)


def grey(pictures: Tensor) -> Tensor:
    """Brightness (..., H, W) of pictures (..., 3, H, W), red first."""
    return (pictures * pictures.new_tensor(_LUMA)[:, None, None]).sum(-3)


def lucas_kanade(first: Tensor, second: Tensor, levels: int = 4, window: int = 9, rounds: int = 3) -> Tensor:
    """Flow (B, 2, H, W), pixels to the right and down: how much further in `second` is what `first` shows.

    Each level of a pyramid, coarse to fine, moves `second` back by the flow so far and solves for the rest in
    a window around every pixel; where a window shows no slope, the flow of the level before stays.
    What leads out of the picture does not count.

    Args:
        first, second: (B, H, W) brightness in [0, 1].
        levels: most levels, each half as large as the one before, down to sides of 16 pixels.
        window: side in pixels, odd.
        rounds: on each level.

    Source:
        Lucas and Kanade, IJCAI 1981; the pyramid of Bouguet, 2000.
    """
    pyramid = [(first[:, None], second[:, None])]
    while len(pyramid) < levels and min(pyramid[-1][0].shape[-2:]) >= 2 * _LEAST_SIDE:
        pyramid.append((_halved(pyramid[-1][0]), _halved(pyramid[-1][1])))
    flow = torch.zeros_like(pyramid[-1][0]).repeat(1, 2, 1, 1)
    for before, after in reversed(pyramid):
        flow = _resized(flow, before.shape[-2], before.shape[-1])
        for _ in range(rounds):
            flow = flow + _step(before, moved(after, flow), _within(flow), window)
            flow = functional.avg_pool2d(flow, _SMOOTH, 1, _SMOOTH // 2, count_include_pad=False)
    return flow


def moved(picture: Tensor, flow: Tensor) -> Tensor:
    """(B, C, H, W) read at each place plus its flow (B, 2, H, W) pixels, the edge continued."""
    rows, columns = picture.shape[-2:]
    across = torch.arange(columns, device=flow.device) + flow[:, 0]
    down = torch.arange(rows, device=flow.device)[:, None] + flow[:, 1]
    grid = torch.stack([across * (2 / max(columns - 1, 1)) - 1, down * (2 / max(rows - 1, 1)) - 1], -1)
    return functional.grid_sample(picture, grid, padding_mode="border", align_corners=True)


def _within(flow: Tensor) -> Tensor:
    """(B, 1, H, W) 1 where a flow (B, 2, H, W) leads to a place within the picture, else 0."""
    rows, columns = flow.shape[-2:]
    across = torch.arange(columns, device=flow.device) + flow[:, :1]
    down = torch.arange(rows, device=flow.device)[:, None] + flow[:, 1:]
    inside = (across >= 0) & (across <= columns - 1) & (down >= 0) & (down <= rows - 1)
    return inside.to(flow.dtype)


def _step(before: Tensor, after: Tensor, within: Tensor, window: int) -> Tensor:
    """(B, 2, H, W) the least-squares motion within each window that is left between two pictures."""
    across, down = _slopes((before + after) / 2)
    rest = after - before
    products = (
        torch.cat([across * across, across * down, down * down, across * rest, down * rest], 1) * within
    )
    xx, xy, yy, xt, yt = functional.avg_pool2d(
        products, window, 1, window // 2, count_include_pad=False
    ).unbind(1)
    xx, yy = xx + _FIRMNESS, yy + _FIRMNESS
    size = xx * yy - xy * xy
    step = torch.stack([xy * yt - yy * xt, xy * xt - xx * yt], 1) / size[:, None]
    return step.clamp(-_STEP_PX, _STEP_PX)


def _slopes(picture: Tensor) -> tuple[Tensor, Tensor]:
    """Central differences to the right and down, of (B, 1, H, W) and in its shape."""
    wide = functional.pad(picture, (1, 1, 1, 1), mode="replicate")
    across = (wide[..., 1:-1, 2:] - wide[..., 1:-1, :-2]) / 2
    down = (wide[..., 2:, 1:-1] - wide[..., :-2, 1:-1]) / 2
    return across, down


def _halved(picture: Tensor) -> Tensor:
    """(B, 1, H, W) blurred, at half the size; each pixel stands in the middle of four."""
    taps = picture.new_tensor([1.0, 3.0, 3.0, 1.0]) / 8
    wide = functional.pad(picture, (1, 1, 1, 1), mode="replicate")
    return functional.conv2d(wide, (taps[:, None] * taps)[None, None], stride=2)


def _resized(flow: Tensor, rows: int, columns: int) -> Tensor:
    """A flow (B, 2, h, w) on a finer grid, in pixels of that grid."""
    if flow.shape[-2:] == (rows, columns):
        return flow
    ratio = flow.new_tensor([columns / flow.shape[-1], rows / flow.shape[-2]])
    finer = functional.interpolate(flow, (rows, columns), mode="bilinear", align_corners=False)
    return finer * ratio[:, None, None]
