"""Greedy suppression of boxes that a better one overlaps, in torch; class-agnostic, ties stable."""

from __future__ import annotations

import torch
from torch import Tensor

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

    Source: the common greedy rule; the order is that of `linking.nms` and of torchvision.
    """
    order = torch.sort(scores, descending=True, stable=True).indices
    return order[greedy(boxes[order], iou, top=top)]


def greedy(boxes: Tensor, iou: float, *, top: int | None = None) -> Tensor:
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
        kept = grown(kept, boxes, slice(start, start + _BLOCK), iou)
        if top is not None and len(kept) >= top:
            return kept[:top]
    return kept


def grown(kept: Tensor, boxes: Tensor, block: slice, iou: float) -> Tensor:
    """The boxes that stay of all before `block`, and now those of `block` too.

    Args:
        kept: (k,) places in `boxes` of those that stay so far.
        boxes: (n, 4) by falling score; behind `block` nothing is read.
        block: which come next.
        iou: the greatest overlap that is borne.
    """
    new = boxes[block]
    free = ~(overlaps(boxes[kept], new) > iou).any(dim=0)
    places = torch.nonzero(free).flatten()
    apart = (overlaps(new[places], new[places]) > iou).triu(diagonal=1).logical_not_().cpu().numpy()
    alive = torch.ones(len(places), dtype=torch.bool).numpy()
    for i in range(len(alive)):
        if alive[i]:
            alive &= apart[i]
    stays = torch.from_numpy(alive).to(boxes.device)
    return torch.cat([kept, places[stays] + (block.start or 0)])


def overlaps(one: Tensor, other: Tensor) -> Tensor:
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
