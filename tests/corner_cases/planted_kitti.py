"""Images in KITTI's layout whose sweeps meet planted things."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

from planted import Thing, World, sweep
from sets import SETS


def planted_kitti(root: Path, pictures: int = 5) -> Path:
    """Write the set; image n holds n things, the testing image one.

    Args:
        root: where to.
        pictures: for training.
    """
    SETS["kitti"].make(root, frames=pictures)
    places = [(9.0, 0.0), (14.0, -4.0), (13.0, 4.0), (18.0, 8.0), (20.0, -9.0)]
    for part, numbers in (("training", range(pictures)), ("testing", range(1))):
        for number in numbers:
            count = number if part == "training" else 1
            things = tuple(Thing(x, y, width=1.5, height=1.4) for x, y in places[:count])
            points, _, _ = sweep(World(things, columns=600))
            rows = np.column_stack([points, np.zeros(len(points))]).astype("<f4")
            (root / part / "velodyne" / f"{number:06d}.bin").write_bytes(rows.tobytes())
    return root
