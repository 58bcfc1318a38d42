"""Boxes of several views of one picture become those of the picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from roadaware.models.nms import greedy
from roadaware.models.object_labels import RIDDEN, ROAD_AGENTS
from roadaware.models.retinanet3d.rule import DetectRule

Floats = npt.NDArray[np.float32]
Region = tuple[int, int, int, int]
_CUT_PX = 0.01
"""Share of a tile's width within which a box at its inner edge counts as cut off."""
_GROUP = np.array(
    [
        1 if agent in RIDDEN else 2 if agent in ("TL", "OthTL") else 3 if agent == "Ped" else 0
        for agent in ROAD_AGENTS
    ]
)
"""Agents that suppress each other: vehicles, the ridden, lights, people."""


def merged(
    boxes: Sequence[Floats], scores: Sequence[Floats], regions: Sequence[Region], rule: DetectRule
) -> tuple[Floats, Floats]:
    """The boxes that stay of all views, by falling score.

    A box that the edge of a tile cuts off is left to the views that hold all of it.

    Args:
        boxes: of each view (n, 4) in pixels of the picture.
        scores: of each view (n, agents).
        regions: of each view; the first is the whole picture.
        rule: `nms_iou` and `top`.
    """
    whole = regions[0]
    kept = [
        (each, score) if at == 0 else _uncut(each, score, region, whole)
        for at, (each, score, region) in enumerate(zip(boxes, scores, regions, strict=True))
    ]
    found = np.concatenate([each for each, _ in kept])
    values = np.concatenate([score for _, score in kept])
    best = values.max(axis=1) if len(values) else np.zeros(0, np.float32)
    order = np.argsort(-best, kind="stable")
    found, values = found[order], values[order]
    if rule.nms_iou is not None and len(found):
        apart = _GROUP[values.argmax(axis=1)][:, None] * np.float32(4 * max(whole[2:]))
        places = greedy(torch.from_numpy(found + apart), rule.nms_iou).numpy()
        found, values = found[places], values[places]
    return found, values


def _uncut(boxes: Floats, scores: Floats, region: Region, whole: Region) -> tuple[Floats, Floats]:
    near = _CUT_PX * (region[2] - region[0])
    inner = [region[side] != whole[side] for side in range(4)]
    cut = np.zeros(len(boxes), np.bool_)
    for side, is_inner in enumerate(inner):
        if is_inner:
            edge = boxes[:, side] - region[side]
            cut |= (edge < near) if side < 2 else (edge > -near)
    return boxes[~cut], scores[~cut]
