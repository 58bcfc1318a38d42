"""A KITTI set whose labels stand where the things of its sweeps stand, and runs of `propose` on it."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import numpy as np

for _folder in ("corner_cases", "data"):
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / _folder))

from planted import HEIGHT_M, Thing, World, sweep
from planted_kitti import planted_kitti

from roadaware.cli import main

THINGS = (Thing(9.0, 0.0, width=1.5, height=1.4), Thing(14.0, -4.0, width=1.5, height=1.4))
"""What stands in the sweep of training image 2, in the LiDAR's frame."""
MARGIN_M = 0.02
"""By how much labels are larger: returns lie on the faces."""


def write_swept_kitti(root: Path) -> Path:
    """Three training images and a testing one; image 2 has the things with a label each."""
    planted_kitti(root, 3)
    lines = []
    for thing, corners in zip(THINGS, ("8 5 54 19", "30 5 58 19"), strict=True):
        # The camera has x to the right, y down, z ahead, as the set's calibration says.
        place = (-thing.y + 0.3, HEIGHT_M - 0.08 + MARGIN_M / 2, thing.x - 0.27)
        sizes = (thing.height + MARGIN_M, thing.width + MARGIN_M, thing.length + MARGIN_M)
        numbers = " ".join(f"{value:.4f}" for value in (*sizes, *place, -np.pi / 2))
        lines.append(f"Misc 0.00 0 0.00 {corners} {numbers}\n")
    (root / "training/label_2/000002.txt").write_text("".join(lines))
    return root


def returns() -> tuple[np.ndarray, np.ndarray]:
    """(n, 3) points of the sweep of image 2, and (n,) thing of each, from 1."""
    points, _, met = sweep(World(THINGS, columns=600))
    return points, met


def propose(dataset: Path, out: Path, *words: str) -> Path:
    """A run of `propose`."""
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["propose", str(dataset), "-o", str(out), "-q", *words]) == 0
    return out
