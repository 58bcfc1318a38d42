"""RoIAlign in torch: the mean of bilinear samples in each bin of a box, differentiable in the features."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def roi_align(
    features: Tensor,
    boxes: Tensor,
    image: Tensor,
    *,
    size: tuple[int, int],
    scale: float = 1.0,
    samples: int = 2,
    half_pixel: bool = True,
) -> Tensor:
    """Features of boxes, pooled to a grid of `size` each.

    A sample more than one cell outside of the map is 0; one nearer to it takes the value at the border.

    Args:
        features: (B, C, H, W).
        boxes: (n, 4) x1, y1, x2, y2 in pixels of the image.
        image: (n,) which of the B each box lies in, int64.
        size: rows and columns of bins.
        scale: cells of the map in a pixel, 1 / stride.
        samples: samples in each bin along each axis.
        half_pixel: cell i spans i to i + 1, its centre at i + 0.5; otherwise its value stands at i, and
            boxes are at least one cell wide and high.

    Returns:
        (n, C, rows, columns).

    Source: He et al., Mask R-CNN, ICCV 2017, with the borders and both conventions of torchvision.
    """
    rows, columns = size
    height, width = features.shape[2:]
    shift = 0.5 if half_pixel else 0.0
    corners = boxes.to(features.dtype) * scale - shift
    span = corners[:, 2:] - corners[:, :2]
    # As RoIAlign of torchvision does with aligned=False.
    if not half_pixel:
        span = span.clamp(min=1.0)
    y, wy = _axis(corners[:, 1], span[:, 1], rows, samples, height)
    x, wx = _axis(corners[:, 0], span[:, 0], columns, samples, width)
    place = image[:, None, None, None, None] * (height * width)
    place = place + y[:, :, None, :, None] * width + x[:, None, :, None, :]
    weight = wy[:, :, None, :, None] * wx[:, None, :, None, :]
    bags = (len(boxes) * rows * columns, (2 * samples) ** 2)
    flat = features.permute(0, 2, 3, 1).reshape(-1, features.shape[1])
    # Gathers and weighs in one step, without a tensor of all samples.
    pooled = functional.embedding_bag(
        place.reshape(bags), flat, mode="sum", per_sample_weights=weight.reshape(bags)
    )
    return pooled.reshape(len(boxes), rows, columns, features.shape[1]).permute(0, 3, 1, 2)


def _axis(start: Tensor, span: Tensor, bins: int, samples: int, cells: int) -> tuple[Tensor, Tensor]:
    """Along one axis, the two cells of each sample of each bin, and what they weigh: (n, bins, 2 samples)."""
    step = torch.arange(bins * samples, device=start.device, dtype=start.dtype) + 0.5
    at = start[:, None] + step * (span[:, None] / (bins * samples))
    seen = (at >= -1.0) & (at <= cells)
    at = at.clamp(0.0, cells - 1.0)
    low = at.floor()
    share = at - low
    weight = torch.stack([1.0 - share, share], dim=-1) * (seen / samples)[..., None]
    cell = torch.stack([low, (low + 1).clamp(max=cells - 1)], dim=-1).long()
    shape = (len(start), bins, 2 * samples)
    return cell.reshape(shape), weight.reshape(shape)


# Greedy suppression of boxes that a better one overlaps, in torch; class-agnostic, ties stable.

_BLOCK = 256
"""Boxes that are compared with each other at once."""


def nms(boxes: Tensor, scores: Tensor, iou: float, *, top: int | None = None) -> Tensor:
    """The boxes that stay, by falling score: each overlaps no better one that stays by more than `iou`.

    Of equal scores the earlier box is the better one. A box without area overlaps nothing.

    Args:
        boxes: (n, 4) x1, y1, x2, y2; areas without an added pixel.
        scores: (n,) finite.
        iou: the greatest overlap that is borne.
        top: stop once so many stay; None for all of them.

    Returns:
        (k,) places in `boxes`, int64.

    Source: the common greedy rule; the order is that of `linking.postprocessing` and of torchvision.
    """
    order = torch.sort(scores, descending=True, stable=True).indices
    return order[suppress_sorted_boxes(boxes[order], iou, top=top)]


def suppress_sorted_boxes(boxes: Tensor, iou: float, *, top: int | None = None) -> Tensor:
    """As `nms`, of boxes that already stand by falling score.

    Args:
        boxes: (n, 4) x1, y1, x2, y2.
        iou: the greatest overlap that is borne.
        top: stop once so many stay.

    Returns:
        (k,) places in `boxes`, rising.
    """
    kept = torch.empty(0, dtype=torch.int64, device=boxes.device)
    for start in range(0, len(boxes), _BLOCK):
        kept = suppress_block(kept, boxes, slice(start, start + _BLOCK), iou)
        if top is not None and len(kept) >= top:
            return kept[:top]
    return kept


def suppress_block(kept: Tensor, boxes: Tensor, block: slice, iou: float) -> Tensor:
    """The boxes that stay of all before `block`, and now those of `block` too.

    Args:
        kept: (k,) places in `boxes` of those that stay so far.
        boxes: (n, 4) by falling score; behind `block` nothing is read.
        block: which come next.
        iou: the greatest overlap that is borne.
    """
    new = boxes[block]
    free = ~(compute_box_iou(boxes[kept], new) > iou).any(dim=0)
    places = torch.nonzero(free).flatten()
    # Above the diagonal: a box is suppressed only by better ones, which stand before it.
    apart = (compute_box_iou(new[places], new[places]) > iou).triu(diagonal=1).logical_not_().cpu().numpy()
    alive = torch.ones(len(places), dtype=torch.bool).numpy()
    for i in range(len(alive)):
        if alive[i]:
            alive &= apart[i]
    stays = torch.from_numpy(alive).to(boxes.device)
    return torch.cat([kept, places[stays] + (block.start or 0)])


def compute_box_iou(one: Tensor, other: Tensor) -> Tensor:
    """Intersection over union, of each with each; not a number where neither has an area.

    Args:
        one: (n, 4).
        other: (m, 4).

    Returns:
        (n, m).
    """
    left, top, right, bottom = one.T[:, :, None]
    west, north, east, south = other.T[:, None]
    wide = torch.minimum(right, east).sub_(torch.maximum(left, west)).clamp_(min=0)
    high = torch.minimum(bottom, south).sub_(torch.maximum(top, north)).clamp_(min=0)
    shared = wide.mul_(high)
    union = (_areas(one)[:, None] + _areas(other)[None]).sub_(shared)
    return shared.div_(union)


def _areas(boxes: Tensor) -> Tensor:
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
