"""Losses: which step of the proposals lost each corner case that nothing meets, where returns are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import Geometry, Proposals
from roadaware.corner_cases.limits import FAR, FEW, KEPT
from roadaware.geometry.boxes import iou

Ints = npt.NDArray[np.integer]

MET_FROM = 0.5
"""The overlap from which on a box meets an object."""
LOSSES = {
    "met": "a final proposal overlaps it by half",
    "few returns": "the sweep has fewer usable returns of it than the least of a cluster",
    "ground": "with the ground, so many were removed that fewer are left",
    "too far": "its nearest return is beyond the limit",
    "split": "no kept cluster has half of its returns",
    "shape": "its cluster is too wide, too tall or too low",
    "merged": "most returns of its cluster are of other things",
    "box": "its cluster is right, the box around it is not",
    "background": "a box that fits was removed as background",
    "common": "a box that fits was suppressed as a common object",
}
"""What can become of an object, to what that means, in the order of the steps."""


def losses(
    found: Proposals,
    boxes: Floats,
    numbers: Sequence[int],
    instances: Ints,
    config: CopgConfig,
) -> list[str]:
    """What became of each object: a name in `LOSSES`.

    An object that a fitting initial box had is lost by the step that removed that box; of any other, the
    first step is named after which it could not have had one.

    Args:
        found: proposals of the picture.
        boxes: (k, 4) corners of the objects in pixels.
        numbers: (k,) of their instances.
        instances: (n,) instance of each return.
        config: the proposals were made by.
    """
    if not len(boxes):
        return []
    fits = np.zeros((len(boxes), len(found.boxes)), dtype=np.bool_)
    if len(found.boxes):
        fits = iou(boxes, found.boxes.edges) >= MET_FROM
    told = []
    for place, number in enumerate(numbers):
        mine = fits[place]
        if (mine & found.final).any():
            told.append("met")
        elif mine.any():
            told.append("common" if (mine & found.intermediate).any() else "background")
        else:
            told.append(_without_box(found.geometry, instances == number, config))
    return told


def _without_box(geometry: Geometry, own: Bools, config: CopgConfig) -> str:
    """Why no initial box fits an object.

    Args:
        geometry: what the returns say.
        own: (n,) which returns are the object's.
        config: the knobs.
    """
    usable = own & geometry.checked.usable
    if usable.sum() < config.min_points:
        return "few returns"
    solid = usable & ~geometry.ground.removed
    if solid.sum() < config.min_points:
        return "ground"
    members = np.bincount(geometry.clusters.of_return[solid], minlength=len(geometry.clusters) + 1)
    members[0] = 0
    cluster = int(members.argmax())
    limited = int(geometry.limited[cluster - 1]) if members[cluster] else FEW
    if limited == FAR:
        return "too far"
    if limited == FEW or 2 * members[cluster] < solid.sum():
        return "split"
    if limited != KEPT:
        return "shape"
    return "merged" if 2 * members[cluster] < geometry.clusters.counts[cluster - 1] else "box"
