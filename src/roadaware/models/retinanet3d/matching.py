"""Which anchor stands for which true box, for many frames at once; imports torch."""

from __future__ import annotations

import torch
from torch import Tensor

from roadaware.models.retinanet3d.config import RetinaNetConfig

IGNORED, BACKGROUND = -1, 0
_CHUNK = 1 << 19
"""Overlaps in memory at once: small enough to stay in a cache."""


def overlaps(boxes: Tensor, anchors: Tensor) -> Tensor:
    """Intersection over union (..., n, N) of boxes (..., n, 4) with anchors (N, 4), no pixel added."""
    x1, y1, x2, y2 = boxes[..., None].unbind(-2)
    left, top, right, bottom = anchors.T.contiguous()
    wide = torch.minimum(x2, right).sub_(torch.maximum(x1, left)).clamp_(min=0)
    high = torch.minimum(y2, bottom).sub_(torch.maximum(y1, top)).clamp_(min=0)
    shared = wide.mul_(high)
    both = ((x2 - x1) * (y2 - y1) + (right - left) * (bottom - top)).sub_(shared)
    return shared.div_(both)


def match(boxes: list[Tensor], anchors: Tensor, config: RetinaNetConfig) -> Tensor:
    """(F, N) which box of its frame an anchor stands for, counted from 1; 0 background, -1 neither.

    An anchor stands for the box it overlaps most (the first of equals) if by `match_iou`, for background if
    by less than `ignore_iou`. The best anchor of a box stands for it whatever the overlap (`force_best`);
    where two boxes claim one anchor, the later one has it.

    Args:
        boxes: F tensors (n, 4) in pixels; an anchor of a frame without boxes is background.
        anchors: (N, 4) in pixels.
        config: thresholds.

    Source: released code, modules/box_utils.py.
    """
    counts = [len(of_frame) for of_frame in boxes]
    widest = max(counts, default=0)
    matched = anchors.new_zeros((len(boxes), len(anchors)), dtype=torch.long)
    filled = [frame for frame, count in enumerate(counts) if count]
    step = max(1, _CHUNK // max(1, widest * len(anchors)))
    for start in range(0, len(filled), step):
        chosen = filled[start : start + step]
        padded = torch.nn.utils.rnn.pad_sequence([boxes[frame] for frame in chosen], batch_first=True)
        real = torch.arange(padded.shape[1], device=padded.device) < torch.tensor(
            [[counts[frame]] for frame in chosen], device=padded.device
        )
        matched[chosen] = _match_padded(padded.to(anchors.dtype), real, anchors, config)
    return matched


def _match_padded(boxes: Tensor, real: Tensor, anchors: Tensor, config: RetinaNetConfig) -> Tensor:
    """`match` of (F, n, 4) boxes of which some (F, n) are real."""
    iou = overlaps(boxes, anchors).masked_fill_(~real[..., None], -1.0)
    best, box = iou.max(dim=1)
    matched = box + 1
    matched[best < config.match_iou] = IGNORED
    matched[best < config.ignore_iou] = BACKGROUND
    if config.force_best:
        number = torch.arange(1, boxes.shape[1] + 1, device=boxes.device) * real
        forced = torch.zeros_like(matched).scatter_reduce_(1, iou.argmax(dim=2), number, "amax")
        matched = torch.where(forced > 0, forced, matched)
    return matched
