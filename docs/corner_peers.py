"""Compare the ground of the proposals with Patchwork++, and clusters and cast rays with Open3D, on synthetic scenes.

    pip install pypatchworkpp open3d-cpu
    python docs/corner_peers.py synthetic/union/city-a KITTI

Prints, for each ground: the share of what the simulator shows as road, sidewalk or terrain within 40 m that is taken for
ground, the share of the returns of corner cases that is taken for it, too, CPU milliseconds, and what proposals on that ground
find of the corner cases, over every third sweep of the scenes; then the milliseconds for the last sweep of KITTI, whose labels
say nothing of the ground. Then DBSCAN of Open3D and scikit-learn on the returns of that sweep that are no ground, and the rays
of a synthetic sweep cast by the simulator and by Open3D.
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
TIMES = 9
METRICS = {"corner_ap": "AP", "corner_ar5": "AR at 5", "corner_ar10": "AR at 10", "corner_ar": "AR at 25"}


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


def propose_above(capture: Any, removed: np.ndarray) -> Any:
    """Proposals of the default where other returns are ground; the plane stays, which feet reach down to.

    Args:
        capture: what was seen.
        removed: (n,) whether a return is ground.
    """
    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import (
        build_geometry,
        build_grid,
        estimate_ground,
        extract_clusters,
        extract_reach_clusters,
        propose,
    )
    from roadaware.corner_cases.ground import check, validate_lidar_points

    config = CopgConfig()
    points = validate_lidar_points(capture.points)
    checked = check(points, min_range_m=config.min_range_m)
    ground = replace(estimate_ground(points, checked, capture, config), removed=removed & checked.usable)
    grid = build_grid(points, checked, capture, config)
    image, clusters = extract_clusters(points, checked, ground, grid, config)
    reached = extract_reach_clusters(points, checked, ground, grid, image, config)
    return propose(
        capture, config, build_geometry(points, checked, ground, grid, image, clusters, reached, config)
    )


def clock(what: Callable[[], Any]) -> float:
    """Median CPU milliseconds."""
    spent = []
    for _ in range(TIMES):
        started = time.process_time()
        what()
        spent.append(1e3 * (time.process_time() - started))
    return float(np.median(spent))


def judge(rows: list[pl.DataFrame], scenes: Any, frames: pl.DataFrame) -> tuple[dict[str, Any], Any]:
    """What proposals find in some frames, and the same for resamples of videos."""
    from roadaware.corner_cases.proposal_tables import merge_proposal_rows
    from roadaware.metrics.corner_cases.evaluate import evaluate
    from roadaware.metrics.corner_cases.matching import CornerConfig
    from roadaware.metrics.metric_state import compute_values, resample_metrics
    from roadaware.protocols.coda import drop_classes

    config = CornerConfig(groups=("corner",), precision="always", max_detections=(5, 10, 100))
    asked = scenes.with_tables(
        **{name: getattr(scenes, name).join(frames, on=["video", "frame"], how="semi") for name in ("frames", "boxes")}
    )
    state = evaluate(drop_classes(merge_proposal_rows(rows)), asked, config).state
    return compute_values(state), resample_metrics(state, 1000, 0)


def compare_grounds(root: Path, real: Any) -> None:
    """Print the table of grounds.

    Args:
        root: synthetic scenes.
        real: a sweep of KITTI.
    """
    from roadaware.corner_cases.proposal_tables import build_proposal_rows
    from roadaware.corner_cases.runner import Order, iterate_captures, load_run_inputs
    from roadaware.corner_cases.sources import NAMES
    from roadaware.scenes.sensors import open_sweep
    from roadaware.statistics.intervals import Units

    order = Order("simulator", str(root.resolve()), semantics="erring", detections="erring")
    scenes = load_run_inputs(order).scenes
    boxes = scenes.boxes.filter("corner_case").join(
        scenes.tubes.select("tube", "instance"), on="tube", how="left"
    )
    level = np.array([NAMES.index(name) for name in GROUND])
    tally: dict[str, list[tuple[float, ...]]] = {name: [] for name in ways()}
    rows: dict[str, list[pl.DataFrame]] = {name: [] for name in ways()}
    asked = []
    for number, (moment, opened) in enumerate(iterate_captures(order)):
        if number % EVERY:
            continue
        asked.append((moment.video, moment.frame))
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
            rows[name].append(build_proposal_rows(propose_above(capture, found), moment.video, moment.frame))
    frames = pl.DataFrame(asked, schema=["video", "frame"], orient="row").cast(
        {"video": scenes.frames.schema["video"], "frame": scenes.frames.schema["frame"]}
    )
    judged = {name: judge(held, scenes, frames) for name, held in rows.items()}
    units, first = Units(frames["video"].n_unique(), 1000, 0), judged["followed, 8 cm (with the range image that it needs)"]
    print(f"{len(asked)} sweeps")
    print(f"| ground | of the ground | of corner cases | ms | ms, KITTI | {' | '.join(METRICS.values())} |")
    print("|---" * (5 + len(METRICS)) + "|")
    for name, find in ways().items():
        table = np.array(tally[name])
        sums = table.sum(axis=0)
        cells = [
            f"{sums[0] / sums[1]:.1%}",
            f"{sums[2] / sums[3]:.1%}",
            f"{np.median(table[:, 4]):.1f}",
            f"{clock(lambda find=find: find(real)):.1f}",
        ]
        values, draws = judged[name]
        for each in METRICS:
            ends = units.interval(values[each], draws[each, None])
            text = f"{values[each]:.3f} [{ends.low:.3f}, {ends.high:.3f}]"
            if draws is not first[1]:
                gain = values[each] - first[0][each]
                apart = units.interval(gain, draws[each, None] - first[1][each, None], "difference")
                text += f", {gain:+.3f} [{apart.low:+.3f}, {apart.high:+.3f}]"
            cells.append(text)
        print(f"| {name} | {' | '.join(cells)} |")


def compare_clusters(real: Any) -> None:
    """Print CPU milliseconds of DBSCAN, and whether both say the same."""
    import open3d
    from sklearn.cluster import DBSCAN

    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import extract_geometry

    held = extract_geometry(real, CopgConfig())
    solid = held.points[held.checked.usable & ~held.ground.removed].astype(np.float64)
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(solid))
    print(f"\n{len(solid):,} returns; whole geometry of the default {clock(lambda: extract_geometry(real, CopgConfig())):.1f} ms")
    for reach in (0.5, 1.0):
        own, other = DBSCAN(eps=reach, min_samples=5).fit(solid).labels_, np.asarray(cloud.cluster_dbscan(reach, 5))
        spent = [
            clock(lambda reach=reach: DBSCAN(eps=reach, min_samples=5).fit(solid)),
            clock(lambda reach=reach: cloud.cluster_dbscan(reach, 5)),
        ]
        same = len(set(zip(own.tolist(), other.tolist(), strict=True)))
        print(
            f"DBSCAN {reach:g} m: scikit-learn {own.max() + 1} clusters, {spent[0]:.0f} ms; Open3D {other.max() + 1}, "
            f"{spent[1]:.0f} ms; {same} pairs of numbers"
        )


def compare_rays(root: Path) -> None:
    """Print CPU milliseconds of the rays of a synthetic sweep, and how far both ranges are apart."""
    import open3d

    from roadaware.simulator.config import build_scene_config
    from roadaware.simulator.generate import FAR_M, MAIN, Stage, make_episode
    from roadaware.simulator.sensors import azimuths, cast_rays, elevations, lidar_pose

    made = json.loads((root / MAIN).read_bytes())
    config = build_scene_config(*made["config"]["name"].split("+"))
    camera = replace(config.camera, fps=made["config"]["camera"]["fps"])
    config = replace(config, seconds=made["config"]["seconds"], sound=False, camera=camera)
    episode = make_episode(config, made["seed"], 0)
    lidar = config.lidar
    soup = Stage(episode).around(0, min(lidar.range_m, FAR_M))
    pose = lidar_pose(episode.ego, lidar, 0)
    ours = cast_rays(soup, pose, lidar).ranges
    above, around = np.meshgrid(elevations(lidar), azimuths(lidar), indexing="ij")
    ways = np.stack([np.cos(above) * np.cos(around), np.cos(above) * np.sin(around), np.sin(above)], -1) @ pose[:3, :3].T
    rays = np.concatenate([np.broadcast_to(pose[:3, 3], ways.shape), ways], axis=-1).astype(np.float32)
    corners = np.ascontiguousarray(soup.corners.reshape(-1, 3), dtype=np.float32)
    places = np.arange(len(corners), dtype=np.uint32).reshape(-1, 3)

    def build() -> Any:
        scene = open3d.t.geometry.RaycastingScene(nthreads=1)
        scene.add_triangles(open3d.core.Tensor(corners), open3d.core.Tensor(places))
        return scene

    scene = build()
    theirs = scene.cast_rays(open3d.core.Tensor(rays), nthreads=1)["t_hit"].numpy()
    theirs = np.where(theirs > lidar.range_m, np.inf, theirs)
    both = np.isfinite(ours) & np.isfinite(theirs)
    alike = np.abs(ours[both] - theirs[both]) < 0.01
    print(
        f"\n{ours.size:,} rays, {len(places):,} triangles: {np.isfinite(ours).mean():.1%} and {np.isfinite(theirs).mean():.1%} "
        f"meet one, {both.mean():.1%} both, {alike.mean():.2%} of these within 1 cm; simulator "
        f"{clock(lambda: cast_rays(soup, pose, lidar)):.1f} ms, Open3D {clock(build):.1f} ms for its tree and "
        f"{clock(lambda: scene.cast_rays(open3d.core.Tensor(rays), nthreads=1)):.1f} ms for the rays"
    )


def main(root: Path, kitti: Path) -> None:
    """Print all comparisons.

    Args:
        root: synthetic scenes.
        kitti: a folder in KITTI's layout.
    """
    from roadaware.corner_cases.loader import Captures
    from roadaware.datasets import read

    captures = Captures(read("kitti", kitti, cache=False), kitti)
    real = captures.open(captures.moments[-1])
    compare_clusters(real)
    compare_rays(root)
    compare_grounds(root, real)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
