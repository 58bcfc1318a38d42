"""Labelling of a range image as the paper has it: breadth first, with the arc tangent, pixel by pixel."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def plain_labels(
    image: npt.NDArray[np.float32],
    elevations: Floats,
    theta_deg: float,
    reach_rows: int = 1,
    reach_columns: int = 1,
) -> npt.NDArray[np.int32]:
    """(rows, columns) cluster of each pixel, numbered by first pixels; 0 for none."""
    labels = np.zeros(image.shape, dtype=np.int32)
    ranges, high = image.astype(np.float64).tolist(), elevations.tolist()
    rows, columns = image.shape
    theta, step, count = math.radians(theta_deg), 2 * math.pi / columns, 0

    def neighbours(i: int, j: int) -> Iterator[tuple[int, int, float]]:
        for sign in (-1, 1):
            for k in range(1, reach_columns + 1):
                at = (j + sign * k) % columns
                if at == j or ranges[i][at] != 0:
                    yield i, at, k * step
                    break
            for k in range(1, reach_rows + 1):
                at = i + sign * k
                if not 0 <= at < rows:
                    break
                if ranges[at][j] != 0:
                    yield at, j, abs(high[i] - high[at])
                    break

    for start in range(rows * columns):
        first = divmod(start, columns)
        if ranges[first[0]][first[1]] <= 0 or labels[first]:
            continue
        count += 1
        labels[first] = count
        queue = deque([first])
        while queue:
            i, j = queue.popleft()
            for a, b, angle in neighbours(i, j):
                if ranges[a][b] <= 0 or labels[a, b]:
                    continue
                far, near = max(ranges[i][j], ranges[a][b]), min(ranges[i][j], ranges[a][b])
                if math.atan2(near * math.sin(angle), far - near * math.cos(angle)) > theta:
                    labels[a, b] = count
                    queue.append((a, b))
    return labels
