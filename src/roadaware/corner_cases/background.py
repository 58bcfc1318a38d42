"""Background: share of each box that shows road, buildings, plants or sky."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32
from roadaware.corner_cases.captures import Camera, CommonObjects, SemanticMap
from roadaware.corner_cases.clusters import Clusters
from roadaware.corner_cases.projection import Boxes
from roadaware.errors import InputError
from roadaware.geometry.boxes import iou


def compute_box_background(
    edges: Floats, semantics: SemanticMap, background: Sequence[str], *, size: tuple[int, int]
) -> Floats:
    """(m,) share of each box's pixels that are background.

    A pixel belongs to a box where its middle does; a box without one is judged by the pixel it lies in.

    Args:
        edges: (m, 4) x1, y1, x2, y2 in pixels, within the image.
        semantics: (H, W) what each pixel shows.
        background: names of classes.
        size: width and height of the image.

    Raises:
        InputError: if the map has another size than the image, or no class has any of the names.

    Source: CODA (ECCV 2022), section 4.2, background removal.
    """
    wanted = _select_background_classes(semantics, background, size)
    height, width = semantics.classes.shape
    low = np.clip(np.ceil(edges[:, :2] - 0.5), 0, [width - 1, height - 1]).astype(np.int64)
    high = np.clip(np.ceil(edges[:, 2:] - 0.5), low + 1, [width, height]).astype(np.int64)
    table = np.zeros(int(semantics.classes.max(initial=0)) + 1, dtype=np.float64)
    table[: len(wanted)] = wanted[: len(table)]
    found = [
        table[semantics.classes[y1:y2, x1:x2]].mean() for (x1, y1), (x2, y2) in zip(low, high, strict=True)
    ]
    return np.array(found, dtype=np.float64)


def compute_point_background(
    points: Floats32,
    clusters: Clusters,
    boxes: Boxes,
    camera: Camera,
    semantics: SemanticMap,
    background: Sequence[str],
    *,
    near_m: float = 0.1,
) -> Floats:
    """(m,) share of each proposal's returns that lie on pixels of background.

    A box of something small or slanting is mostly road, but its returns are not: they say what the thing is.

    Args:
        points: (n, 3) metres in the LiDAR's frame.
        clusters: which return belongs to what.
        boxes: (m) proposals.
        camera: that took the image.
        semantics: (H, W) what each pixel shows.
        background: names of classes.
        near_m: what is less than this before the camera is not seen.

    Raises:
        InputError: if the map has another size than the image, or no class has any of the names.
    """
    from roadaware.corner_cases.projection_kernels import count_class_returns

    wanted = _select_background_classes(semantics, background, (camera.width_px, camera.height_px))
    slot = np.full(len(clusters) + 1, -1, dtype=np.int32)
    slot[boxes.cluster] = np.arange(len(boxes))
    counts = np.zeros((len(boxes), 2), dtype=np.int64)
    pose = np.ascontiguousarray(camera.camera_SE3_lidar[:3], dtype=np.float64)
    lens = np.ascontiguousarray(camera.intrinsics, dtype=np.float64)
    classes = np.ascontiguousarray(semantics.classes, dtype=np.int32)
    count_class_returns(points, clusters.of_return, slot, pose, lens, float(near_m), classes, wanted, counts)
    shares: Floats = counts[:, 0] / np.maximum(counts[:, 1], 1)
    return shares


def _select_background_classes(
    semantics: SemanticMap, background: Sequence[str], size: tuple[int, int]
) -> npt.NDArray[np.bool_]:
    """(c,) which classes are background.

    Raises:
        InputError: if the map has another size than the image, or no class has any of the names.
    """
    height, width = semantics.classes.shape
    if (width, height) != tuple(size):
        message = f"the semantic map has {width}x{height} pixels, the image {size[0]}x{size[1]}"
        raise InputError(message, hint="map and calibration must belong to the same image")
    found = np.array([name in set(background) for name in semantics.names], dtype=np.bool_)
    if not found.any():
        raise InputError(
            f"no class of the map is background: it has {', '.join(semantics.names)}",
            hint=f"background is {', '.join(background)}",
        )
    return found


# Common classes: how much each box overlaps an object that a detector knows already.


def compute_common_overlap(edges: Floats, common: CommonObjects, *, min_score: float = 0.0) -> Floats:
    """(m,) greatest overlap of each box with a detected common object, 0 where there is none.

    Args:
        edges: (m, 4) x1, y1, x2, y2 in pixels.
        common: what was detected.
        min_score: detections below it do not count.

    Source: CODA (ECCV 2022), section 4.2, common-class suppression.
    """
    certain = np.asarray(common.boxes, dtype=np.float64)[np.asarray(common.scores) >= min_score]
    if not len(edges) or not len(certain):
        return np.zeros(len(edges))
    best: Floats = iou(edges, certain).max(axis=1)
    return best
