"""Compiled loops over the boxes of frames: greedy suppression and clustering; imports numba."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.geometry.box_kernels import box_iou
from roadaware.geometry.compiled import kernel


@kernel
def suppress(corners: Floats, order: Ints, group: Ints, iou: float) -> npt.NDArray[np.bool_]:
    """Non-maximum suppression: whether each box is kept, that is overlaps no better kept box by more than `iou`.

    Args:
        corners: (n, 4) all boxes.
        order: (k,) rows of the boxes considered, frame by frame, the best of each frame first.
        group: (n,) the frame of each box.
        iou: the greatest overlap that is borne.

    Returns:
        (k,) in the order of `order`.
    """
    stays = np.zeros(len(order), dtype=np.bool_)
    chosen = np.empty(len(order), dtype=np.int64)
    count = 0
    frame = -1
    for i in range(len(order)):
        row = order[i]
        # `order` has the boxes of a frame side by side: a new frame ends the list of the last one.
        if group[row] != frame:
            frame = group[row]
            count = 0
        alone = True
        for j in range(count):
            if box_iou(corners[row], corners[chosen[j]], 0.0) > iou:
                alone = False
                break
        if alone:
            chosen[count] = row
            count += 1
            stays[i] = True
    return stays


@kernel
def cluster_boxes(
    corners: Floats, weight: Floats, order: Ints, group: Ints, iou: float
) -> tuple[Ints, Floats]:
    """The cluster of each box, and the weighted mean of the boxes of each cluster.

    A box joins the cluster of its frame whose mean so far overlaps it most, if by more than `iou` (the first
    of equals); otherwise it begins a new one. Boxes without weight leave a mean where it is.

    Args:
        corners: (n, 4) all boxes.
        weight: (n,) what each counts in the mean.
        order: (n,) rows, frame by frame, the best of each frame first.
        group: (n,) the frame of each box.
        iou: the overlap that a box must exceed.

    Returns:
        (n,) the clusters in the order of `order`, numbered as they begin, and (clusters, 4) the means.
    """
    cluster = np.empty(len(order), dtype=np.int64)
    means = np.empty((len(order), 4), dtype=np.float64)
    # Sums, not means that are updated from means, which would pile up rounding.
    sums = np.zeros((len(order), 5), dtype=np.float64)
    first = 0
    count = 0
    frame = -1
    for i in range(len(order)):
        row = order[i]
        if group[row] != frame:
            frame = group[row]
            first = count
        best = iou
        at = -1
        for j in range(first, count):
            found = box_iou(corners[row], means[j], 0.0)
            if found > best:
                best = found
                at = j
        begins = at < 0
        if begins:
            at = count
            means[at] = corners[row]
            count += 1
        cluster[i] = at
        sums[at, 4] += weight[row]
        for side in range(4):
            sums[at, side] += weight[row] * corners[row, side]
            if not begins and sums[at, 4] > 0.0:
                means[at, side] = sums[at, side] / sums[at, 4]
    return cluster, means[:count]
