"""Boxes of several views of one picture become those of the picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from roadaware.arrays import Bools, Floats32
from roadaware.models.nms import greedy
from roadaware.models.object_labels import RIDDEN, ROAD_AGENTS
from roadaware.models.retinanet3d.rule import DetectRule

Region = tuple[int, int, int, int]
_CUT = 0.01
"""Share of a tile's width within which a box at its inner edge counts as cut off."""
_PART = 0.8
"""Share of a box of a tile within a better box from which it is taken for a part of that: a wheel, a door."""
_KINDS = (("TL", "OthTL"), RIDDEN, ("Ped",))
_GROUP = np.array(
    [next((n for n, kind in enumerate(_KINDS, 1) if agent in kind), 0) for agent in ROAD_AGENTS]
)
"""Agents that suppress each other: vehicles, lights, what is ridden, people."""


def merged(
    boxes: Sequence[Floats32], scores: Sequence[Floats32], regions: Sequence[Region], rule: DetectRule
) -> tuple[Floats32, Floats32]:
    """The boxes that stay of all views, by falling score.

    A box that the edge of a tile cuts off is left to the views that hold all of it.

    Args:
        boxes: of each view (n, 4) in pixels of the picture.
        scores: of each view (n, agents).
        regions: of each view; the first is the whole picture.
        rule: `nms_iou`.
    """
    whole = regions[0]
    uncut = [_uncut(each, region, whole) for each, region in zip(boxes, regions, strict=True)]
    found = np.concatenate([each[kept] for each, kept in zip(boxes, uncut, strict=True)])
    values = np.concatenate([each[kept] for each, kept in zip(scores, uncut, strict=True)])
    tiled = np.repeat(np.arange(len(regions)) > 0, [int(kept.sum()) for kept in uncut])
    if rule.nms_iou is None or not len(found):
        order = np.argsort(-values.max(axis=1, initial=0), kind="stable")
        return found[order], values[order]
    order = np.argsort(-values.max(axis=1), kind="stable")
    found, values, tiled = found[order], values[order], tiled[order]
    # Boxes of different groups are moved so far apart that they do not overlap.
    moved = found + _GROUP[values.argmax(axis=1)][:, None] * np.float32(4 * max(whole[2:]))
    kept = greedy(torch.from_numpy(moved), rule.nms_iou).numpy()
    kept = kept[~_are_parts(moved[kept], tiled[kept])]
    return found[kept], values[kept]


def _uncut(boxes: Floats32, region: Region, whole: Region) -> Bools:
    """(n,) which boxes no inner edge of their view cuts off."""
    near = _CUT * (region[2] - region[0])
    cut = np.zeros(len(boxes), np.bool_)
    for side in range(4):
        if region[side] != whole[side]:
            beyond = boxes[:, side] - region[side]
            cut |= (beyond < near) if side < 2 else (beyond > -near)
    return ~cut


def _are_parts(boxes: Floats32, tiled: Bools) -> Bools:
    """(n,) which boxes of tiles lie for the most part in one before them, a better one."""
    if not tiled.any():
        return tiled
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    area = np.clip(boxes[:, 2:] - boxes[:, :2], 1e-6, None).prod(axis=1)
    inside = np.tril(shared >= _PART * area[:, None], -1)
    parts: Bools = tiled & inside.any(axis=1)
    return parts
