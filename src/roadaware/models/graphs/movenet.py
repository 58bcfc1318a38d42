"""PoseReader: the joints of people in boxes, by a MoveNet; imports torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from roadaware.arrays import Floats32, Pixels
from roadaware.errors import DamagedError, InputError
from roadaware.models.graphs.graph import Graph, infer_shapes
from roadaware.models.graphs.runner import Backend, Runner, is_graph_file, open_graph

DECODER = "movenet"
SIDE_PX, AROUND = 192, 1.25
"""Pixels of a crop, which the network learnt, and its side in longer sides of a box."""
_NEAR_CELLS = 1.8
"""Softens the preference for what is near, in cells of the maps; so much in the published graph."""
_MAPS = ("centre", "heat", "regression", "offset")


class PoseReader:
    """Joints of people, one crop for each box.

    Args:
        graph: from a crop to maps of `centre` (1), `heat` (k), `regression` and `offset` (2 k: down, right).
        joints: names of the k joints.
        device, backend: as of `Runner`.
    """

    def __init__(
        self,
        graph: Graph,
        joints: tuple[str, ...],
        device: torch.device | str = "cpu",
        backend: Backend | None = None,
    ) -> None:
        self.joints, self.runner = joints, Runner(graph, device, backend=backend)

    def read(self, image: Pixels, boxes: npt.NDArray[np.floating]) -> Floats32:
        """(n, k, 3) x and y of each joint in pixels of the image, and how sure it is, from 0 to 1.

        Args:
            image: (H, W, 3) uint8, red first.
            boxes: (n, 4) x1, y1, x2, y2 in pixels, each around one person.

        Raises:
            InputError: if the network answers with what is no number.
        """
        found = np.zeros((len(boxes), len(self.joints), 3), np.float32)
        for row, box in enumerate(boxes):
            crop, corner, scale = cropped(image, box)
            maps = {name: each[0] for name, each in self.runner.run(crop[None]).items()}
            if not all(np.isfinite(each).all() for each in maps.values()):
                raise InputError("the network answers with what is no number", hint="its weights are damaged")
            found[row] = decoded(maps)
            found[row, :, :2] = found[row, :, :2] * scale + corner
        return found


def cropped(image: Pixels, box: npt.NDArray[np.floating]) -> tuple[Floats32, Floats32, float]:
    """(3, 192, 192) a square around a box, black beside the image; its corner, and pixels for each of its.

    Args:
        image: (H, W, 3) uint8.
        box: x1, y1, x2, y2 in pixels.
    """
    height, width = image.shape[:2]
    most = np.array([width, height] * 2, np.float64)
    box = np.clip(box, -most, 2 * most)  # whatever a table says, a crop has a bounded size
    side = max(float((box[2:] - box[:2]).max()), 1.0) * AROUND
    corner = (box[:2] + box[2:]) / 2 - side / 2
    low, end = np.floor(corner).astype(np.int64), np.ceil(corner + side).astype(np.int64)
    part = np.zeros((end[1] - low[1], end[0] - low[0], 3), np.uint8)
    first, last = np.maximum(low, 0), np.minimum(end, [width, height])
    if (last > first).all():
        (left, top), (right, bottom) = (first - low).tolist(), (last - low).tolist()
        part[top:bottom, left:right] = image[first[1] : last[1], first[0] : last[0]]
    x, y = (corner - low).tolist()
    square = Image.fromarray(part).resize(
        (SIDE_PX, SIDE_PX), Image.Resampling.BILINEAR, box=(x, y, x + side, y + side)
    )
    made = np.ascontiguousarray(np.asarray(square, dtype=np.float32).transpose(2, 0, 1))
    return made, corner.astype(np.float32), side / SIDE_PX


def decoded(maps: dict[str, Floats32]) -> Floats32:
    """(k, 3) x, y in pixels of the crop and score of each joint of the person in the middle.

    The likeliest centre near the middle says roughly where its joints are; each joint is the place of most
    heat near there, moved by what the last map says of it.

    Args:
        maps: (c, h, w) of each output.

    Source: the published graph of MoveNet SinglePose Lightning 4, whose last nodes these are.
    """
    heat = maps["heat"]
    k, height, width = heat.shape
    down, right = np.mgrid[:height, :width].astype(np.float32)
    far = np.hypot(down - (height - 1) / 2, right - (width - 1) / 2) + _NEAR_CELLS
    y, x = np.unravel_index(int((maps["centre"][0] / far).argmax()), (height, width))
    rough = maps["regression"].reshape(k, 2, height, width)[:, :, y, x] + np.array([y, x], np.float32)
    near = np.hypot(down - rough[:, 0, None, None], right - rough[:, 1, None, None]) + _NEAR_CELLS
    place = (heat / near).reshape(k, -1).argmax(axis=1)
    rows = np.arange(k)
    moved = maps["offset"].reshape(k, 2, -1)[rows, :, place]
    stride = SIDE_PX / height
    found = np.stack([place % width + moved[:, 1], place // width + moved[:, 0]], axis=1) * stride
    return np.concatenate([found, heat.reshape(k, -1)[rows, place, None]], axis=1).astype(np.float32)


def open_poses(
    path: Path, *, device: torch.device | str = "cpu", backend: Backend | None = None
) -> PoseReader:
    """The reader of joints in a file that `save_graph` wrote.

    Args:
        path: of the file.
        device, backend: as of `Runner`.

    Raises:
        InputError: if it is no such file, or a model of another task.
        DamagedError: if it is not whole.
    """
    if not is_graph_file(path):
        raise InputError(
            "expected a model that reads joints", where=str(path), hint="`roadaware models get pose-small`"
        )
    graph, facts = open_graph(path)
    if facts.get("decoder") != DECODER:
        task = str(facts.get("task", "another task"))[:40]
        raise InputError(f"a model for {task}, and expected one that reads joints", where=str(path))
    joints = facts.get("classes")
    if not isinstance(joints, list) or not joints or not all(isinstance(name, str) for name in joints):
        raise DamagedError("expected the names of its joints", where=str(path))
    found = {what: infer_shapes(graph)[name] for what, name in graph.outputs.items()}
    wanted = dict(zip(_MAPS, (1, len(joints), 2 * len(joints), 2 * len(joints)), strict=True))
    if {what: each.channels for what, each in found.items()} != wanted or len(
        {each.stride for each in found.values()}
    ) > 1:
        raise DamagedError(f"expected maps of {len(joints)} joints", where=str(path))
    return PoseReader(graph, tuple(joints), device, backend)
