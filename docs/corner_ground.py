"""Compare the ground of the proposals with Patchwork++ on synthetic scenes and KITTI, and the simulator's rays with Open3D's
(`pip install pypatchworkpp open3d-cpu`).

    python docs/corner_ground.py synthetic/union/city-a KITTI

Prints, for each way: the share of what the simulator shows as road, sidewalk or terrain within 40 m that is taken for
ground, the share of the returns of corner cases that is taken for it, too, and CPU milliseconds, over every third sweep
of the scenes; then the milliseconds for the last sweep of KITTI, whose labels say nothing of the ground. Then how many rays
of the LiDAR meet something by either cast, how near the hits lie to each other, and CPU milliseconds of one thread.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

GROUND = ("road", "sidewalk", "terrain")
WITHIN_M = 40.0
EVERY = 3
SCENES = 6
"""Of which the first sweep is cast by both."""


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


def compare_rays(root: Path) -> None:
    """Print how the hits of the simulator's rays differ from Open3D's on the same triangles.

    Args:
        root: synthetic scenes.
    """
    import open3d

    from roadaware.simulator.config import build_scene_config
    from roadaware.simulator.generate import FAR_M, MAIN, Stage, make_episode
    from roadaware.simulator.sensors import azimuths, cast_rays, elevations, lidar_pose

    made = json.loads((root / MAIN).read_bytes())
    config = build_scene_config(*made["config"]["name"].split("+"))
    camera = replace(config.camera, fps=made["config"]["camera"]["fps"])
    config = replace(config, seconds=made["config"]["seconds"], sound=False, camera=camera)
    up, around = np.meshgrid(elevations(config.lidar), azimuths(config.lidar), indexing="ij")
    ways = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=-1)
    sums, spent = np.zeros(5), []
    for number in range(SCENES):
        episode = make_episode(config, made["seed"], number)
        soup = Stage(episode).around(0, min(config.lidar.range_m, FAR_M))
        pose = lidar_pose(episode.ego, config.lidar, 0)
        cast_rays(soup, pose, config.lidar)
        started = time.process_time()
        hits = cast_rays(soup, pose, config.lidar)
        ours = time.process_time() - started
        # About the LiDAR, where 4 bytes are precise.
        corners = (soup.corners.astype(np.float64) - pose[:3, 3]).reshape(-1, 3).astype(np.float32)
        rays = np.concatenate([np.zeros_like(ways), ways @ pose[:3, :3].T], axis=-1).astype(np.float32)
        started = time.process_time()
        scene = open3d.t.geometry.RaycastingScene(nthreads=1)
        scene.add_triangles(corners, np.arange(len(corners), dtype=np.uint32).reshape(-1, 3))
        scene.cast_rays(rays[:1, :1], nthreads=1)
        built = time.process_time()
        far = scene.cast_rays(rays, nthreads=1)["t_hit"].numpy()
        spent.append([ours, built - started, time.process_time() - built])
        one, other = hits.triangle >= 0, far <= config.lidar.range_m
        near = one & other & (np.abs(hits.ranges - np.where(other, far, 0)) < 0.01)
        sums += [one.size, one.sum(), other.sum(), (one & other).sum(), near.sum()]
    cast, built, asked = 1e3 * np.median(spent, axis=0)
    ours, theirs, both = sums[1:4] / sums[0]
    print(
        f"{sums[0]:,.0f} rays in {SCENES} sweeps: {ours:.2%} meet something, by Open3D {theirs:.2%}, by both {both:.2%}"
    )
    print(f"of these {sums[4] / sums[3]:.2%} lie within 1 cm")
    print(f"a sweep {cast:.1f} ms; Open3D {built:.1f} ms for its tree and {asked:.1f} ms for the rays")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
    compare_rays(Path(sys.argv[1]))
