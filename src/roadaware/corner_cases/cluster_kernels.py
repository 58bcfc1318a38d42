"""Compiled labelling of range images, and sums over clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from roadaware.geometry.compiled import inline_kernel, kernel


@kernel
def label(image: Any, up: Any, left: Any, parent: Any, labels: Any) -> int:
    """Join each return with its neighbours above and to the left where they belong together.

    The neighbour in a direction is the first pixel with a return; two belong together where the nearer range
    exceeds a share of the farther one: the angle criterion without its arc tangent. Columns go round.

    Args:
        image: (r, c) f32 metres, 0 for nothing, negative for ground.
        up: (r, a) f32 the share for a neighbour 1 to a rows further up, of each row.
        left: (b,) f32 the share for a neighbour 1 to b columns to the left.
        parent: (r * c,) i32 scratch.
        labels: (r, c) i32; becomes the cluster, counted from 1 in the order of first pixels; 0 for none.

    Returns:
        The number of clusters.
    """
    rows, columns = image.shape
    for p in range(rows * columns):
        # Every pixel is a tree of its own at first: union-find, which needs no queue of seeds.
        parent[p] = p
    for i in range(rows):
        for j in range(columns):
            here = image[i, j]
            if here <= 0.0:
                continue
            # Left and up alone: right and down are the same pairs, met from the other side.
            for step in range(1, len(left) + 1):
                k = j - step
                k = k + columns if k < 0 else k
                there = image[i, k]
                if there != 0.0:
                    # In a narrow image the way round may end at the pixel itself.
                    if k != j and there > 0.0 and min(here, there) > left[step - 1] * max(here, there):
                        _join(parent, i * columns + j, i * columns + k)
                    # The first return ends the search, ground too: nothing is joined across it.
                    break
            for step in range(1, min(up.shape[1], i) + 1):
                there = image[i - step, j]
                if there != 0.0:
                    if there > 0.0 and min(here, there) > up[i, step - 1] * max(here, there):
                        _join(parent, i * columns + j, (i - step) * columns + j)
                    break
    return _label_components(image, parent, labels)


@inline_kernel
def _join(parent: Any, a: int, b: int) -> None:
    """Give two trees one root, the earlier one."""
    while parent[a] != a:
        # Path halving keeps the trees flat without a second walk.
        parent[a] = parent[parent[a]]
        a = parent[a]
    while parent[b] != b:
        parent[b] = parent[parent[b]]
        b = parent[b]
    # The earlier pixel becomes the root, which `_label_components` relies on.
    if a < b:
        parent[b] = a
    else:
        parent[a] = b


@inline_kernel
def _label_components(image: Any, parent: Any, labels: Any) -> int:
    """Roots come before their trees, so one walk numbers them all."""
    rows, columns = image.shape
    count = 0
    for i in range(rows):
        for j in range(columns):
            if image[i, j] <= 0.0:
                labels[i, j] = 0
                continue
            p = i * columns + j
            if parent[p] == p:
                count += 1
                labels[i, j] = count
            else:
                # What is before p has its number already, and parents come before.
                q = parent[p]
                labels[i, j] = labels[q // columns, q % columns]
    return count


@kernel
def assign_cluster_labels(row: Any, column: Any, solid: Any, labels: Any, found: Any) -> None:
    """The cluster of each return: that of its pixel, 0 for ground and for what lies in no pixel.

    Args:
        row: (n,) i32.
        column: (n,) i32.
        solid: (n,) bool.
        labels: (r, c) i32.
        found: (n,) i32; becomes the cluster.
    """
    for i in range(len(row)):
        inside = solid[i] and row[i] >= 0 and column[i] >= 0
        found[i] = labels[row[i], column[i]] if inside else 0


@kernel
def measure(points: Any, row: Any, ranges: Any, heights: Any, found: Any, counts: Any, extents: Any) -> None:
    """Number of returns of each cluster, and its bounds.

    Args:
        points: (n, 3) f32 metres.
        row: (n,) i32.
        ranges: (n,) f32 metres.
        heights: (n,) f32 metres above the ground, or empty where there is none.
        found: (n,) i32 cluster of each return, 0 for none.
        counts: (k,) i32 of zeros; cluster 1 comes first.
        extents: (k, 8) f32 of inf and -inf in turn; become least and greatest range, height, row, and
            horizontal distance from the cluster's middle.
    """
    # Double precision: the rounding of float32 sums grows with the number of returns.
    middles = np.zeros((len(counts), 2))
    for i in range(len(found)):
        k = found[i] - 1
        if k < 0:
            continue
        counts[k] += 1
        middles[k, 0] += points[i, 0]
        middles[k, 1] += points[i, 1]
        _stretch(extents, k, 0, ranges[i])
        _stretch(extents, k, 4, np.float32(row[i]))
        if len(heights):
            _stretch(extents, k, 2, heights[i])
    # A second walk: distances from the middle need the middle first.
    for i in range(len(found)):
        k = found[i] - 1
        if k >= 0:
            x = points[i, 0] - middles[k, 0] / counts[k]
            y = points[i, 1] - middles[k, 1] / counts[k]
            _stretch(extents, k, 6, np.float32(np.sqrt(x * x + y * y)))


@inline_kernel
def _stretch(extents: Any, k: int, place: int, value: Any) -> None:
    """Widen a pair of least and greatest to hold a value."""
    extents[k, place] = min(extents[k, place], value)
    extents[k, place + 1] = max(extents[k, place + 1], value)
