"""StreetDetector: agents of a street by a CenterNet that learnt COCO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from roadaware.arrays import Bools, Floats32, Pixels
from roadaware.errors import DamagedError, InputError
from roadaware.models.detector import FrameDetections, VideoDetector
from roadaware.models.graphs.graph import Graph, infer_shapes, keep_channels
from roadaware.models.graphs.runner import Backend, Runner, open_graph
from roadaware.models.graphs.views import Views, find_peaks, resize_region
from roadaware.models.object_labels import COCO_AGENTS, RIDDEN, ROAD_AGENTS, merge_riders
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.models.retinanet3d.detector import check_frame
from roadaware.models.roi import suppress_sorted_boxes

# Boxes of several views of one image become those of the image.

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


def merge_tile_boxes(
    boxes: Sequence[Floats32], scores: Sequence[Floats32], regions: Sequence[Region], rule: DetectRule
) -> tuple[Floats32, Floats32]:
    """The boxes that stay of all views, by falling score.

    A box that the edge of a tile cuts off is left to the views that hold all of it.

    Args:
        boxes: of each view (n, 4) in pixels of the image.
        scores: of each view (n, agents).
        regions: of each view; the first is the whole image.
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
    kept = suppress_sorted_boxes(torch.from_numpy(moved), rule.nms_iou).numpy()
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
    # Below the diagonal: a part lies in a better box, which stands before it.
    inside = np.tril(shared >= _PART * area[:, None], -1)
    parts: Bools = tiled & inside.any(axis=1)
    return parts


DECODER = "centernet"
HEAT, SIDES = "heat", "sides"


class StreetDetector(VideoDetector):
    """Agents in single frames; agentness is the largest score of an agent.

    Args:
        graph: from an image to `heat` of each class and `sides` of boxes.
        classes: of the heat.
        views: which parts of an image are considered.
        rule: which boxes are kept.
        table: name of a class to an agent; classes that it does not name are not computed.
        device, dtype, backend: as of `Runner`.
        batch: frames that are taken together.

    Raises:
        InputError: if no class is an agent, or the graph makes other maps.
    """

    single = True

    def __init__(
        self,
        graph: Graph,
        classes: Sequence[str],
        views: Views | None = None,
        rule: DetectRule | None = None,
        *,
        table: Mapping[str, str] = COCO_AGENTS,
        device: torch.device | str = "cpu",
        dtype: torch.dtype | None = None,
        backend: Backend | None = None,
        batch: int = 1,
    ) -> None:
        super().__init__({"agent": ROAD_AGENTS}, (), rule, causal=True, batch=batch)
        agents = [table.get(name.lower(), "") for name in classes]
        rows = [row for row, agent in enumerate(agents) if agent]
        if not rows:
            raise InputError(f"none of {len(classes)} classes ({', '.join(classes[:4])}, ...) is an agent")
        self.columns = np.array([ROAD_AGENTS.index(agents[row]) for row in rows])
        self.views = views or Views()
        self.runner = Runner(keep_channels(graph, HEAT, rows), device, dtype, backend)

    def follow(self, images: Sequence[Pixels]) -> list[FrameDetections]:
        """As of `VideoDetector`."""
        for image in images:
            check_frame(image, images[0].shape)
        return [self._seen(image) for image in images]

    def _seen(self, image: Pixels) -> FrameDetections:
        height, width = image.shape[:2]
        regions = self.views.regions(width, height)
        sizes = [self.views.shown_px(place) for place in range(len(regions))]
        found = [self._in_region(image, *each) for each in zip(regions, sizes, strict=True)]
        boxes, scores = merge_tile_boxes(
            [boxes for boxes, _ in found], [scores for _, scores in found], regions, self.rule
        )
        boxes = np.clip(boxes, 0, [width, height, width, height]).astype(np.float32)
        seen = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)  # what lies beyond the image is not in it
        boxes, scores = boxes[seen], scores[seen]
        boxes, scores = merge_riders(boxes, scores, ROAD_AGENTS)
        agentness = scores.max(axis=1) if len(scores) else np.zeros(0, np.float32)
        order = np.argsort(-agentness, kind="stable")[: self.rule.top]
        return FrameDetections(0, boxes[order], agentness[order], scores[order], np.zeros(0, np.float32))

    def _in_region(
        self, image: Pixels, region: tuple[int, int, int, int], size_px: int
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Boxes in pixels of the image, and scores of all agents."""
        shown, scale = resize_region(image, region, size_px)
        maps = self.runner.run(shown[None])
        heat, sides = maps[HEAT][0], maps[SIDES][0]
        if not (np.isfinite(heat).all() and np.isfinite(sides).all()):
            raise InputError("the network answers with what is no number", hint="its weights are damaged")
        stride = shown.shape[1] // heat.shape[1]
        boxes, values = find_peaks(heat, sides, self.rule.min_agentness, stride)
        boxes = boxes / np.float32(scale) + np.array([*region[:2], *region[:2]], np.float32)
        scores = np.zeros((len(boxes), len(ROAD_AGENTS)), np.float32)
        for column, value in zip(self.columns, values.T, strict=True):
            np.maximum(scores[:, column], value, out=scores[:, column])
        return boxes, scores


def open_street(
    path: Path,
    views: Views | None = None,
    rule: DetectRule | None = None,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
    backend: Backend | None = None,
    batch: int = 1,
) -> StreetDetector:
    """The detector in a file that `save_graph` wrote.

    Args:
        path: of the file.
        views: which parts of an image are considered.
        rule: which boxes are kept.
        device, dtype, backend: as of `Runner`.
        batch: frames that are taken together.

    Raises:
        InputError: if it is no such file, or a model of another task.
        DamagedError: if it is not whole.
    """
    graph, facts = open_graph(path)
    if facts.get("decoder") != DECODER:
        task = str(facts.get("task", "another task"))[:40]
        raise InputError(f"a model for {task}, and expected one that detects agents", where=str(path))
    classes: Any = facts.get("classes")
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise DamagedError("expected the names of its classes", where=str(path))
    _check_maps(graph, len(classes), str(path))
    return StreetDetector(
        graph, classes, views, rule, device=device, dtype=dtype, backend=backend, batch=batch
    )


def _check_maps(graph: Graph, classes: int, where: str) -> None:
    """Refuse a graph whose outputs are not those of a CenterNet for so many classes."""
    found = {what: infer_shapes(graph)[name] for what, name in graph.outputs.items()}
    wanted = {HEAT: classes, SIDES: 4}
    if {what: shape.channels for what, shape in found.items()} != wanted or len(
        {s.stride for s in found.values()}
    ) > 1:
        text = ", ".join(f"{what} {shape.channels}" for what, shape in found.items())
        raise DamagedError(f"expected maps of {classes} classes and 4 sides, found {text}", where=where)
