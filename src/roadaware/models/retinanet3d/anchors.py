"""Anchors: the boxes around every cell of the pyramid that predictions are relative to; imports torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from roadaware.models.retinanet3d.config import STRIDES_PX, RetinaNetConfig

KMEANS_SHAPES = (
    ((0.0141, 0.0365), (0.0178, 0.0614), (0.0343, 0.0487)),
    ((0.0450, 0.1475), (0.0284, 0.0986), (0.0667, 0.0691)),
    ((0.0699, 0.2465), (0.1629, 0.1744), (0.1110, 0.1124)),
    ((0.1349, 0.3740), (0.2773, 0.3713), (0.2406, 0.2320)),
    ((0.3307, 0.6395), (0.7772, 0.6261), (0.4732, 0.3153)),
)
"""Width and height of three shapes for each level, as shares of the image; clusters of UCF24's boxes."""


def build_cell_anchors(config: RetinaNetConfig) -> list[Tensor]:
    """Of each level the anchors (A, 4) around the centre of a cell; pixels, or shares for `kmeans`."""
    if config.anchors == "kmeans":
        shapes: Iterable[Sequence[tuple[float, float]]] = KMEANS_SHAPES[: config.levels]
    else:
        shapes = [
            [
                (side * scale / math.sqrt(ratio), side * scale * math.sqrt(ratio))
                for ratio in config.anchor_ratios
                for scale in config.anchor_scales
            ]
            for side in config.anchor_sizes_px
        ]
    return [
        torch.tensor([[-w / 2, -h / 2, w / 2, h / 2] for w, h in level], dtype=torch.float64).float()
        for level in shapes
    ]


class Anchors(nn.Module):
    """The anchors as buffers, which checkpoints hold; called with the sizes of the maps."""

    def __init__(self, config: RetinaNetConfig) -> None:
        super().__init__()
        self.shares = config.anchors == "kmeans"
        self.cell_anchors = nn.Module()
        for level, boxes in enumerate(build_cell_anchors(config)):
            self.cell_anchors.register_buffer(str(level), boxes)

    def forward(self, sizes: list[tuple[int, int]]) -> Tensor:
        """(N, 4) corners in pixels of the network's image: level by level, row by row, anchors of a cell.

        Args:
            sizes: height and width of the map of each level, finest first.
        """
        cells = list(self.cell_anchors.buffers())
        if self.shares:
            image = cells[0].new_tensor([sizes[0][1], sizes[0][0]] * 2) * STRIDES_PX[0]
            return torch.cat(
                [
                    _tile_anchors(cell, size, (1 / size[1], 1 / size[0])).clamp(0, 1) * image
                    for cell, size in zip(cells, sizes, strict=True)
                ]
            )
        return torch.cat(
            [
                _tile_anchors(cell, size, (stride, stride))
                for cell, size, stride in zip(cells, sizes, STRIDES_PX, strict=False)
            ]
        )


def _tile_anchors(cell: Tensor, size: tuple[int, int], step: tuple[float, float]) -> Tensor:
    """(H * W * A, 4) the anchors of one cell at every cell; `step` is its width and height."""
    x = (torch.arange(size[1], dtype=torch.float32, device=cell.device) + 0.5) * step[0]
    y = (torch.arange(size[0], dtype=torch.float32, device=cell.device) + 0.5) * step[1]
    rows, columns = torch.meshgrid(y, x, indexing="ij")
    centres = torch.stack([columns, rows, columns, rows], dim=-1).reshape(-1, 1, 4)
    return (centres + cell).reshape(-1, 4)


# Boxes as offsets from anchors and back; imports torch.

# Of the released code, as in SSD: offsets of centres and sizes then have about the same spread.
VARIANCES = (0.1, 0.2)
LARGEST = math.log(1000 / 16)
"""The logarithm of how many times larger than its anchor a decoded box can be."""
_LEAST_PX = 1.0


def get_width_offset(config: RetinaNetConfig) -> float:
    """Offset of widths and heights in pixels; `kmeans` anchors never had a pixel added."""
    return 1.0 if config.box_coding == "plus_one" and config.anchors == "retina" else 0.0


def encode(boxes: Tensor, anchors: Tensor, config: RetinaNetConfig) -> Tensor:
    """Offsets of boxes from anchors: centre over size / 0.1 and logarithm of size / 0.2.

    Args:
        boxes: (..., 4) corners in pixels; taken to be at least a pixel wide and high.
        anchors: (..., 4) corners in pixels.
        config: says how widths are counted.

    Source: Ren et al., NeurIPS 2015, eq. 2; released code, modules/box_utils.py.
    """
    extra = get_width_offset(config)
    size = (boxes[..., 2:] - boxes[..., :2] + extra).clamp(min=_LEAST_PX)
    anchor_size = anchors[..., 2:] - anchors[..., :2] + extra
    centre = boxes[..., :2] + 0.5 * size
    anchor_centre = anchors[..., :2] + 0.5 * anchor_size
    moved = (centre - anchor_centre) / anchor_size / VARIANCES[0]
    return torch.cat([moved, torch.log(size / anchor_size) / VARIANCES[1]], dim=-1)


def decode(offsets: Tensor, anchors: Tensor, config: RetinaNetConfig) -> Tensor:
    """Boxes (..., 4) in pixels from offsets; sizes are bounded, corners are not clipped to the image.

    Args:
        offsets: (..., 4) as `encode` gives them.
        anchors: (..., 4) corners in pixels.
        config: says how widths are counted.
    """
    extra = get_width_offset(config)
    anchor_size = anchors[..., 2:] - anchors[..., :2] + extra
    centre = offsets[..., :2] * VARIANCES[0] * anchor_size + anchors[..., :2] + 0.5 * anchor_size
    # Cut before exp, which would overflow where a network has gone astray.
    size = torch.exp((offsets[..., 2:] * VARIANCES[1]).clamp(max=LARGEST)) * anchor_size
    return torch.cat([centre - 0.5 * size, centre + 0.5 * size - extra], dim=-1)


# Which anchor stands for which ground-truth box, for many frames at once; imports torch.

IGNORED, BACKGROUND = -1, 0
_CHUNK = 1 << 19
"""Overlaps in memory at once: small enough to stay in a cache."""


def compute_anchor_iou(boxes: Tensor, anchors: Tensor) -> Tensor:
    """Intersection over union (..., n, N) of boxes (..., n, 4) with anchors (N, 4), no pixel added."""
    # Steps in place: arrays of all boxes by all anchors are the largest of the matching.
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
    where two boxes predict one anchor, the later one has it.

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
    # Boxes that only fill up a frame overlap nothing, so that no anchor is theirs.
    iou = compute_anchor_iou(boxes, anchors).masked_fill_(~real[..., None], -1.0)
    best, box = iou.max(dim=1)
    matched = box + 1
    matched[best < config.match_iou] = IGNORED
    matched[best < config.ignore_iou] = BACKGROUND
    if config.force_best:
        number = torch.arange(1, boxes.shape[1] + 1, device=boxes.device) * real
        # Of boxes with the same best anchor the later one has it, as released.
        forced = torch.zeros_like(matched).scatter_reduce_(1, iou.argmax(dim=2), number, "amax")
        matched = torch.where(forced > 0, forced, matched)
    return matched


# Targets: the ground truth of a batch of clips, as the loss takes it; imports torch.


@dataclass(frozen=True, eq=False)
class Targets:
    """The ground truth of B clips of T frames.

    Args:
        boxes: [B][T] of (n, 4) corners in pixels of the network's image.
        classes: [B][T] of (n, C) from 0 to 1, agentness first.
        av: (B, T) which action the own vehicle does, -1 where unknown.
        labelled: (B, T) whether a frame was labelled at all.
    """

    boxes: list[list[Tensor]]
    classes: list[list[Tensor]]
    av: Tensor
    labelled: Tensor

    def to(self, device: torch.device | str) -> Targets:
        """The same on another device."""
        return Targets(
            [[boxes.to(device) for boxes in clip] for clip in self.boxes],
            [[classes.to(device) for classes in clip] for clip in self.classes],
            self.av.to(device),
            self.labelled.to(device),
        )

    @property
    def counts(self) -> list[int]:
        """Boxes of each frame, clip after clip."""
        return [len(boxes) for clip in self.boxes for boxes in clip]
