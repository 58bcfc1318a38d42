"""Boxes as offsets from anchors and back; imports torch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from roadaware.models.retinanet3d.config import RetinaNetConfig

VARIANCES = (0.1, 0.2)
LARGEST = math.log(1000 / 16)
"""The logarithm of how many times larger than its anchor a decoded box can be."""
_LEAST_PX = 1.0


def extra_px(config: RetinaNetConfig) -> float:
    """What a width has beside the difference of its corners; `kmeans` anchors never had a pixel added."""
    return 1.0 if config.box_coding == "plus_one" and config.anchors == "retina" else 0.0


def encode(boxes: Tensor, anchors: Tensor, config: RetinaNetConfig) -> Tensor:
    """Offsets of boxes from anchors: centre over size / 0.1 and logarithm of size / 0.2.

    Args:
        boxes: (..., 4) corners in pixels; taken to be at least a pixel wide and high.
        anchors: (..., 4) corners in pixels.
        config: says how widths are counted.

    Source: Ren et al., NeurIPS 2015, eq. 2; released code, modules/box_utils.py.
    """
    extra = extra_px(config)
    size = (boxes[..., 2:] - boxes[..., :2] + extra).clamp(min=_LEAST_PX)
    anchor_size = anchors[..., 2:] - anchors[..., :2] + extra
    centre = boxes[..., :2] + 0.5 * size
    anchor_centre = anchors[..., :2] + 0.5 * anchor_size
    moved = (centre - anchor_centre) / anchor_size / VARIANCES[0]
    return torch.cat([moved, torch.log(size / anchor_size) / VARIANCES[1]], dim=-1)


def decode(offsets: Tensor, anchors: Tensor, config: RetinaNetConfig) -> Tensor:
    """Boxes (..., 4) in pixels from offsets; sizes are bounded, corners are not clipped to the picture.

    Args:
        offsets: (..., 4) as `encode` gives them.
        anchors: (..., 4) corners in pixels.
        config: says how widths are counted.
    """
    extra = extra_px(config)
    anchor_size = anchors[..., 2:] - anchors[..., :2] + extra
    centre = offsets[..., :2] * VARIANCES[0] * anchor_size + anchors[..., :2] + 0.5 * anchor_size
    size = torch.exp((offsets[..., 2:] * VARIANCES[1]).clamp(max=LARGEST)) * anchor_size
    return torch.cat([centre - 0.5 * size, centre + 0.5 * size - extra], dim=-1)
