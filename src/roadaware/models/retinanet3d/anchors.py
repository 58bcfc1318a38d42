"""Anchors: the boxes around every cell of the pyramid that predictions are relative to; imports torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

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
"""Width and height of three shapes for each level, as shares of the picture; clusters of UCF24's boxes."""


def cell_anchors(config: RetinaNetConfig) -> list[Tensor]:
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
        for level, boxes in enumerate(cell_anchors(config)):
            self.cell_anchors.register_buffer(str(level), boxes)

    def forward(self, sizes: list[tuple[int, int]]) -> Tensor:
        """(N, 4) corners in pixels of the network's picture: level by level, row by row, anchors of a cell.

        Args:
            sizes: height and width of the map of each level, finest first.
        """
        cells = list(self.cell_anchors.buffers())
        if self.shares:
            picture = cells[0].new_tensor([sizes[0][1], sizes[0][0]] * 2) * STRIDES_PX[0]
            return torch.cat(
                [
                    _placed(cell, size, (1 / size[1], 1 / size[0])).clamp(0, 1) * picture
                    for cell, size in zip(cells, sizes, strict=True)
                ]
            )
        return torch.cat(
            [
                _placed(cell, size, (stride, stride))
                for cell, size, stride in zip(cells, sizes, STRIDES_PX, strict=False)
            ]
        )


def anchors_of(
    config: RetinaNetConfig, sizes: list[tuple[int, int]], device: torch.device | str = "cpu"
) -> Tensor:
    """(N, 4) corners in pixels of the anchors of a pyramid whose maps have these heights and widths.

    Args:
        config: of the network.
        sizes: height and width of the map of each level, finest first.
        device: where they are wanted.

    Source: released code, modules/anchor_box_retinanet.py and anchor_box_kmeans.py.
    """
    anchors: Tensor = Anchors(config).to(device)(sizes)
    return anchors


def _placed(cell: Tensor, size: tuple[int, int], step: tuple[float, float]) -> Tensor:
    """(H * W * A, 4) the anchors of one cell at every cell; `step` is its width and height."""
    x = (torch.arange(size[1], dtype=torch.float32, device=cell.device) + 0.5) * step[0]
    y = (torch.arange(size[0], dtype=torch.float32, device=cell.device) + 0.5) * step[1]
    rows, columns = torch.meshgrid(y, x, indexing="ij")
    centres = torch.stack([columns, rows, columns, rows], dim=-1).reshape(-1, 1, 4)
    return (centres + cell).reshape(-1, 4)
