"""Judge proposals over time by true poses, by poses that odometry estimates of the sweeps, and without time.

    HOW="--preset corner-cases@1 --seconds 1.5 --fps 4 --no-sound --scenes 10"
    roadaware simulate $HOW --domain city-a --seed 8821 --output synthetic/odometry/city-a
    roadaware simulate $HOW --domain city-b --seed 8822 --output synthetic/odometry/city-b
    python docs/corner_odometry.py synthetic/odometry runs/corner-odometry

Writes the tables to runs/corner-odometry/tables.md. Masks and detections err as in docs/corner_ablation.md; kiss-icp is in
`roadaware[odometry]`.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from corner_union import TOWNS, judge, table

NO_TIME, TRUE, ODOMETRY = "without time", "over time, true poses", "over time, by odometry"
PAIRS = ((TRUE, NO_TIME), (ODOMETRY, NO_TIME), (ODOMETRY, TRUE))


def estimate(order: Any) -> dict[str, dict[Any, np.ndarray]]:
    """Poses as `propose --odometry` has them, and without each of the two things that are done besides KISS-ICP."""
    from roadaware.corner_cases import tracking

    found = {"as above": tracking.estimate_set_poses(order)}
    with mock.patch.object(tracking, "_search_first_motion", return_value=np.eye(4)):
        found["first motion not looked for"] = tracking.estimate_set_poses(order)
    with mock.patch.object(tracking, "STANDS_OUT_M", -np.inf):
        found["ground kept"] = tracking.estimate_set_poses(order)
    return found


def measure_drift(
    true: dict[Any, np.ndarray], said: dict[Any, np.ndarray]
) -> list[tuple[float, float, float]]:
    """Of each scene how far it goes, in metres, and the greatest errors of place and direction, in metres and degrees."""
    from roadaware.geometry.poses import invert_pose

    found = []
    for scene in sorted({moment.scene for moment in true}):
        moments = sorted((m for m in true if m.scene == scene), key=lambda m: m.frame)
        places = [invert_pose(true[moments[0]]) @ true[moment] for moment in moments]
        estimated = [invert_pose(said[moments[0]]) @ said[moment] for moment in moments]
        off = [invert_pose(a) @ b for a, b in zip(places, estimated, strict=True)]
        turn = [np.degrees(np.arccos(np.clip((np.trace(each[:3, :3]) - 1) / 2, -1, 1))) for each in off]
        way = sum(float(np.linalg.norm(b[:3, 3] - a[:3, 3])) for a, b in pairwise(places))
        found.append((way, max(float(np.linalg.norm(each[:3, 3])) for each in off), float(max(turn))))
    return found


def measure(root: Path, out: Path) -> tuple[dict[str, Any], dict[str, int], dict[str, list[Any]]]:
    """Judged proposals, how many boxes there are of each kind, and the drift of each way to estimate poses."""
    from roadaware.corner_cases.runner import Order, load_run_inputs, propose_set
    from roadaware.corner_cases.tracking import track_proposals

    order = Order("simulator", str(root.resolve()), semantics="erring", detections="erring")
    plain, _ = propose_set(order, out)
    held = load_run_inputs(order)
    true = {moment: held.captures.world_from_lidar(moment) for moment in held.moments}
    found = {NO_TIME: plain, TRUE: track_proposals(plain, held.captures, most=25)}
    # From here on the set says nothing of where the vehicle was.
    sweeps = held.captures.scenes.sweeps.with_columns(world_SE3_ego=pl.lit(None))
    held.captures.scenes = replace(held.captures.scenes, sweeps=sweeps)
    poses = estimate(order)
    found[ODOMETRY] = track_proposals(plain, held.captures, most=25, poses=poses["as above"])
    load_run_inputs.cache_clear()
    counts = {name: len(each.boxes) for name, each in found.items()}
    return judge(root, found), counts, {name: measure_drift(true, each) for name, each in poses.items()}


def main(made: Path, out: Path) -> None:
    """Measure both towns, and write the tables."""
    from roadaware.protocols.copg_ablation import rename_videos

    parts, counts, drifts = [], Counter(), defaultdict(list)
    for town in TOWNS:
        states, own, drift = measure(made / town, out / town)
        parts.append({name: rename_videos(state, f"{town}/") for name, state in states.items()})
        counts.update(own)
        for name, rows in drift.items():
            drifts[name] += rows
    both = {name: parts[0][name].merge(parts[1][name]) for name in parts[0]}
    pictures = len(next(iter(both.values())).items)
    text, _ = table(both, {name: count / pictures for name, count in counts.items()}, PAIRS)
    lines = ["| poses | median | nine in ten | all | degrees |", "|---|---|---|---|---|"]
    for name, rows in drifts.items():
        way, metres, degrees = np.array(rows).T
        ends = " | ".join(f"{each:.3f} m" for each in np.quantile(metres, [0.5, 0.9, 1.0]))
        lines.append(f"| {name} | {ends} | {degrees.max():.2f} |")
    lines.append(
        f"\n{len(way)} scenes, {pictures} images, {np.median(way):.2f} m (median), {way.max():.2f} m at most"
    )
    (out / "tables.md").write_text(f"{text}\n\n" + "\n".join(lines) + "\n")
    print((out / "tables.md").read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
