"""Compare the ground of the proposals with Patchwork++ (`pip install pypatchworkpp`) on synthetic scenes and KITTI.

    python docs/corner_ground.py synthetic/union/city-a KITTI

Prints, for each way: the share of what the simulator shows as road, sidewalk or terrain within 40 m that is taken for
ground, the share of the returns of corner cases that is taken for it, too, and CPU milliseconds, over every third sweep
of the scenes; then the milliseconds for the last sweep of KITTI, whose labels say nothing of the ground.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

GROUND = ("road", "sidewalk", "terrain")
WITHIN_M = 40.0
EVERY = 3


def ways() -> dict[str, Callable[[Any], np.ndarray]]:
    """Name to what says of each return of a capture whether it is ground."""
    import pypatchworkpp

    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import build_grid, estimate_ground, estimate_local_ground
    from roadaware.corner_cases.ground import check, validate_lidar_points

    def ours(config: CopgConfig) -> Callable[[Any], np.ndarray]:
        def find(capture: Any) -> np.ndarray:
            points = validate_lidar_points(capture.points)
            checked = check(points, min_range_m=config.min_range_m)
            plane = estimate_ground(points, checked, capture, config)
            if config.local_ground_m is None:
                return plane.removed
            grid = build_grid(points, checked, capture, config)
            return estimate_local_ground(plane, checked, grid, config).removed

        return find

    settings = pypatchworkpp.Parameters()
    settings.verbose = False

    def patchwork(capture: Any) -> np.ndarray:
        # Its own height of the sensor is a guess of ours: it estimates the ground from there on by itself.
        settings.sensor_height = 1.8
        judge = pypatchworkpp.patchworkpp(settings)
        judge.estimateGround(np.column_stack([capture.points[:, :3], np.zeros(len(capture.points))]))
        found = np.zeros(len(capture.points), dtype=np.bool_)
        found[np.asarray(judge.getGroundIndices())] = True
        return found

    return {
        "plane, 15 cm": ours(CopgConfig.angle()),
        "followed, 8 cm (with the range image that it needs)": ours(CopgConfig()),
        "Patchwork++": patchwork,
    }


def main(root: Path, kitti: Path) -> None:
    """Print the table.

    Args:
        root: synthetic scenes.
        kitti: a folder in KITTI's layout.
    """
    from roadaware.corner_cases.loader import Captures
    from roadaware.corner_cases.runner import Order, iterate_captures, load_run_inputs
    from roadaware.corner_cases.sources import NAMES
    from roadaware.datasets import read
    from roadaware.scenes.sensors import open_sweep

    order = Order("simulator", str(root.resolve()))
    scenes = load_run_inputs(order).scenes
    boxes = scenes.boxes.filter("corner_case").join(
        scenes.tubes.select("tube", "instance"), on="tube", how="left"
    )
    level = np.array([NAMES.index(name) for name in GROUND])
    captures = Captures(read("kitti", kitti, cache=False), kitti)
    real = captures.open(captures.moments[-1])
    tally: dict[str, list[tuple[float, ...]]] = {name: [] for name in ways()}
    for number, (moment, opened) in enumerate(iterate_captures(order)):
        if number % EVERY:
            continue
        sweep, capture = open_sweep(scenes, root, moment.scene, moment.frame), opened()
        near = np.linalg.norm(capture.points[:, :3], axis=1) < WITHIN_M
        ground = np.isin(sweep.semantic, level) & near
        here = boxes.filter((pl.col("video") == moment.video) & (pl.col("frame") == moment.frame))
        odd = np.isin(sweep.instance, here["instance"].to_numpy()) & near
        for name, find in ways().items():
            started = time.process_time()
            found = find(capture)
            taken = 1e3 * (time.process_time() - started)
            tally[name].append((found[ground].sum(), ground.sum(), found[odd].sum(), odd.sum(), taken))
    print("| ground | of the ground | of corner cases | ms | ms, KITTI |\n|---|---|---|---|---|")
    for name, find in ways().items():
        table = np.array(tally[name])
        spent = []
        for _ in range(9):
            started = time.process_time()
            find(real)
            spent.append(1e3 * (time.process_time() - started))
        sums = table.sum(axis=0)
        cells = [
            f"{sums[0] / sums[1]:.1%}",
            f"{sums[2] / sums[3]:.1%}",
            f"{np.median(table[:, 4]):.1f}",
            f"{np.median(spent):.1f}",
        ]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
