"""Proposals of corner cases: CPU milliseconds of each step beside scikit-learn, whole sets, and memory."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import python
from roadaware.corner_cases.captures import Camera, Capture
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import extract_geometry, propose
from roadaware.corner_cases.ground import check, find_ground, validate_lidar_points
from roadaware.corner_cases.loader import Captures
from roadaware.corner_cases.range_image import assign_grid_cells, fill, label, parse_layout
from roadaware.corner_cases.runner import Order, run
from roadaware.datasets import read
from roadaware.io.parallel import Workers

_Row = tuple[str, str, str]
_TIMES = 15
_RINGS, _COLUMNS = 64, 1900
_PICTURES = 10_000
_SET, _SWEEPS = 256, 8
_STEPS_BAR = "range image ≤ 10, ground ≤ 8, labelling ≤ 2, whole geometry ≤ 25, united ≤ 15 ms"
_CALIBRATION = """P2: 720 0 620 0 0 720 180 0 0 0 1 0
R0_rect: 1 0 0 0 1 0 0 0 1
Tr_velo_to_cam: 0 -1 0 0 0 0 -1 0 1 0 0 0
Tr_imu_to_velo: 1 0 0 0 0 1 0 0 0 0 1 0
"""


def made_up_sweep(seed: int = 0, rings: int = _RINGS, columns: int = _COLUMNS) -> Capture:
    """About 120,000 returns of a street: ground, two walls, and a hundred boxes; fewer with fewer rings."""
    rng = np.random.default_rng(seed)
    up = np.radians(np.linspace(2, -24.5, rings))[:, None]
    around = (2 * np.pi * (np.arange(columns) + 0.3) / columns)[None]
    rays = np.stack(
        np.broadcast_arrays(np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)), -1
    )
    with np.errstate(divide="ignore"):
        ranges = np.where(rays[..., 2] < 0, -1.75 / rays[..., 2], 120.0)
        ranges = np.minimum(ranges, 11.0 / np.abs(rays[..., 1]))
        for _ in range(100):
            middle = np.array([rng.uniform(-50, 50), rng.uniform(-9, 9), -1.75])
            size = rng.uniform(0.4, 2.5, 3)
            low, high = (middle - size / 2) / rays, (middle + size / 2) / rays
            near, far = np.minimum(low, high).max(-1), np.maximum(low, high).min(-1)
            ranges = np.where((near <= far) & (near > 2), np.minimum(ranges, near), ranges)
    points = (rays * (ranges + rng.normal(0, 0.02, ranges.shape))[..., None])[ranges < 120]
    lens = np.array([[720.0, 0, 620], [0, 720, 180], [0, 0, 1]])
    pose = np.array([[0.0, -1, 0, 0], [0, 0, -1, 0], [1, 0, 0, 0], [0, 0, 0, 1]])
    layout = f"{rings} rings x {columns} columns"
    return Capture(points.astype(np.float32), Camera(lens, pose, 1242, 375), layout=layout)


def made_up_set(root: Path, pictures: int, rings: int = _RINGS, columns: int = _COLUMNS) -> Path:
    """A set in KITTI's layout of which a few files are linked again and again.

    Args:
        root: where to.
        pictures: how many.
        rings: of the sweeps.
        columns: of the sweeps.
    """
    from PIL import Image

    kinds = {"velodyne": ".bin", "image_2": ".png", "calib": ".txt"}
    folders = {kind: root / "training" / kind for kind in kinds}
    for folder in folders.values():
        folder.mkdir(parents=True)
    for number in range(pictures):
        files = {kind: folders[kind] / f"{number:06d}{suffix}" for kind, suffix in kinds.items()}
        if number >= _SWEEPS:
            for file in files.values():
                os.link(file.with_stem(f"{number % _SWEEPS:06d}"), file)
            continue
        points = made_up_sweep(number, rings, columns).points
        rows = np.column_stack([points, np.zeros(len(points))]).astype("<f4")
        files["velodyne"].write_bytes(rows.tobytes())
        files["calib"].write_text(_CALIBRATION)
        Image.new("RGB", (1242, 375)).save(files["image_2"])
    return root


def copg_steps() -> _Row:
    """The steps on a synthetic sweep of 120,000 returns whose rings are recovered."""
    capture = made_up_sweep()
    return (
        f"proposals, synthetic sweep of {len(capture.points):,} returns",
        _STEPS_BAR,
        _told(_steps(capture)),
    )


def copg_steps_on_kitti(data: Path) -> _Row:
    """The steps on the real sweep of KITTI 000002."""
    captures = Captures(read("kitti", data / "kitti", cache=False), data / "kitti")
    capture = captures.open(captures.moments[-1])
    return f"proposals, KITTI sweep of {len(capture.points):,} returns", _STEPS_BAR, _told(_steps(capture))


def copg_peers() -> _Row:
    """scikit-learn's RANSAC and DBSCAN on the same synthetic sweep, a single time each."""
    from sklearn.cluster import DBSCAN
    from sklearn.linear_model import LinearRegression, RANSACRegressor

    capture = made_up_sweep()
    points = capture.points.astype(np.float64)
    plane = RANSACRegressor(LinearRegression(), residual_threshold=0.15, random_state=0)
    found = extract_geometry(capture, CopgConfig.angle())
    solid = points[found.checked.usable & ~found.ground.removed]
    ground = _spent(lambda: plane.fit(points[:, :2], points[:, 2]), 1)
    clusters, wide = (
        _spent(lambda eps=eps: DBSCAN(eps=eps, min_samples=5).fit(solid), 1) for eps in (0.5, 1.0)
    )
    what = "scikit-learn on the same sweep"
    return (
        what,
        "–",
        f"RANSACRegressor {ground:,.0f} ms, DBSCAN of {len(solid):,} returns {clusters:,.0f} (0.5 m) and "
        f"{wide:,.0f} (1 m) ms CPU",
    )


def copg_many() -> _Row:
    """Memory of one process over ten thousand images, early and late."""
    code = f"""
import resource, sys
from benchmarks.copg import made_up_sweep
from roadaware.corner_cases.copg import propose
capture = made_up_sweep()
for n in range({_PICTURES}):
    propose(capture)
    if n == {_PICTURES} // 10:
        early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
late = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert late - early < 20_000, (early, late)
"""
    cost = python(code)
    rate = _PICTURES / cost.seconds
    return (
        f"proposals for {_PICTURES:,} images",
        "grows by ≤ 20 MB after the first tenth",
        f"{rate:,.0f} a second, {cost.peak_mb or 0:,.0f} MB, flat",
    )


def copg_set() -> _Row:
    """A set of real size through reader, opening, proposals and writing, by one process and by two."""
    told = []
    with tempfile.TemporaryDirectory() as folder:
        root = made_up_set(Path(folder) / "set", _SET)
        # Kernels are compiled before time is taken.
        propose(made_up_sweep())
        for processes in (1, 2):
            started = time.perf_counter()
            _, tally = run(
                Order("kitti", str(root)), Path(folder) / str(processes), workers=Workers(processes=processes)
            )
            wall = _SET / (time.perf_counter() - started)
            told.append(f"{processes} process{'es' * (processes > 1)} {wall:,.1f} a second")
            told.append(f"{_SET / tally.seconds:,.1f} a CPU second")
    return f"proposals for a set of {_SET} images, start included", "–", ", ".join(told)


def copg_set_many() -> _Row:
    """Memory of one process over a set of ten thousand images, from its reader to what is written."""
    code = f"""
import tempfile
from pathlib import Path
import psutil
from benchmarks.copg import made_up_set
from roadaware.corner_cases.runner import Order, run
held = {{}}
def shown(done, total):
    held[10 * done // total] = psutil.Process().memory_info().rss / 1e6
with tempfile.TemporaryDirectory() as folder:
    root = made_up_set(Path(folder) / "set", {_PICTURES}, 16, 400)
    run(Order("kitti", str(root)), Path(folder) / "out", progress=shown)
print({{tenth: round(mb) for tenth, mb in held.items()}})
assert held[10] - held[1] < 50, held
"""
    cost = python(code)
    return (
        f"proposals for a set of {_PICTURES:,} images with sweeps of 5,000 returns",
        "grows by ≤ 50 MB after the first tenth",
        f"{_PICTURES / cost.seconds:,.0f} a second, at most {cost.peak_mb or 0:,.0f} MB",
    )


BENCHMARKS: tuple[Callable[[], _Row], ...] = (copg_steps, copg_peers, copg_many, copg_set, copg_set_many)
ON_DATA: tuple[Callable[[Path], _Row], ...] = (copg_steps_on_kitti,)


def _steps(capture: Capture) -> dict[str, float]:
    """CPU milliseconds of each step by itself, and of all together, after compilation; `united` is the default."""
    config, united = CopgConfig.angle(), CopgConfig()
    points = validate_lidar_points(capture.points)
    checked = check(points, min_range_m=config.min_range_m)
    layout = parse_layout(capture.layout)
    ground = find_ground(points, checked, within_m=config.ground_m)
    grid = assign_grid_cells(points, checked, layout=layout)
    solid = checked.usable & ~ground.removed
    image = fill(grid, solid)
    geometry, both = extract_geometry(capture, config), extract_geometry(capture, united)
    return {
        "range image": _spent(lambda: fill(assign_grid_cells(points, checked, layout=layout), solid)),
        "ground": _spent(lambda: find_ground(points, checked, within_m=config.ground_m)),
        "labelling": _spent(lambda: label(image, grid.elevations, reach_columns=config.reach_columns)),
        "whole geometry": _spent(lambda: extract_geometry(capture, config)),
        "boxes": _spent(lambda: propose(capture, config, geometry)),
        "united: whole geometry": _spent(lambda: extract_geometry(capture, united)),
        "boxes and cuboids": _spent(lambda: propose(capture, united, both)),
    }


def _spent(call: Callable[[], Any], times: int = _TIMES) -> float:
    """The median CPU milliseconds of a call in this thread.

    The last result is kept until there is the next, as over the sweeps of a set: with nothing kept, the memory of each call
    goes back to the system and is asked for again, which takes some milliseconds more.
    """
    held = call()
    taken = []
    for _ in range(times):
        started = time.thread_time()
        held = call()
        taken.append(time.thread_time() - started)
    del held
    return 1e3 * float(np.median(taken))


def _told(steps: dict[str, float]) -> str:
    return ", ".join(f"{name} {milliseconds:.1f}" for name, milliseconds in steps.items()) + " ms CPU"
