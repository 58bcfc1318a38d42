"""Judge proposals over time by true poses, by poses that odometry estimates of the sweeps, and without time.

    HOW="--preset corner-cases@1 --seconds 1.5 --fps 4 --no-sound --scenes 10"
    roadaware simulate $HOW --domain city-a --seed 8811 --output synthetic/odometry/city-a
    roadaware simulate $HOW --domain city-b --seed 8812 --output synthetic/odometry/city-b
    python docs/corner_odometry.py synthetic/odometry runs/corner-odometry

Writes the tables to runs/corner-odometry/tables.md. Masks and detections err as in docs/corner_ablation.md; kiss-icp is in
`roadaware[odometry]`.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from corner_union import TOWNS, judge, table

NO_TIME, TRUE, ODOMETRY = "without time", "over time, true poses", "over time, by odometry"
PAIRS = ((TRUE, NO_TIME), (ODOMETRY, NO_TIME), (ODOMETRY, TRUE))


def measure(root: Path, out: Path) -> tuple[dict, dict, list]:
    """Judged proposals, boxes of each kind, and of each scene how far it went and how wrong the estimate is."""
    from roadaware.corner_cases.runner import Order, load_run_inputs, propose_set
    from roadaware.corner_cases.tracking import estimate_set_poses, track_proposals
    from roadaware.geometry.poses import invert_pose

    order = Order("simulator", str(root.resolve()), semantics="erring", detections="erring")
    plain, _ = propose_set(order, out)
    held = load_run_inputs(order)
    true = {moment: held.captures.world_from_lidar(moment) for moment in held.moments}
    found = {NO_TIME: plain, TRUE: track_proposals(plain, held.captures, most=25)}
    # From here on the set says nothing of where the vehicle was.
    sweeps = held.captures.scenes.sweeps.with_columns(world_SE3_ego=pl.lit(None))
    held.captures.scenes = replace(held.captures.scenes, sweeps=sweeps)
    poses = estimate_set_poses(order)
    assert all(np.array_equal(poses[m], pose) for m, pose in estimate_set_poses(order).items())
    found[ODOMETRY] = track_proposals(plain, held.captures, most=25, poses=poses)
    scenes = []
    for scene in sorted({moment.scene for moment in held.moments}):
        moments = sorted((m for m in held.moments if m.scene == scene), key=lambda m: m.frame)
        gone = [invert_pose(true[moments[0]]) @ true[moment] for moment in moments]
        said = [invert_pose(poses[moments[0]]) @ poses[moment] for moment in moments]
        off = [invert_pose(a) @ b for a, b in zip(gone, said, strict=True)]
        turn = [np.degrees(np.arccos(np.clip((np.trace(each[:3, :3]) - 1) / 2, -1, 1))) for each in off]
        way = sum(np.linalg.norm(b[:3, 3] - a[:3, 3]) for a, b in zip(gone, gone[1:], strict=False))
        scenes.append((way, max(np.linalg.norm(each[:3, 3]) for each in off), max(turn)))
    load_run_inputs.cache_clear()
    return judge(root, found), {name: len(each.boxes) for name, each in found.items()}, scenes


def main(made: Path, out: Path) -> None:
    """Measure both towns, and write the tables."""
    from roadaware.protocols.copg_ablation import rename_videos

    parts, counts, rows = [], Counter(), []
    for town in TOWNS:
        states, own, scenes = measure(made / town, out / town)
        parts.append({name: rename_videos(state, f"{town}/") for name, state in states.items()})
        counts.update(own)
        rows += scenes
    both = {name: parts[0][name].merge(parts[1][name]) for name in parts[0]}
    pictures = len(next(iter(both.values())).items)
    text, _ = table(both, {name: count / pictures for name, count in counts.items()}, PAIRS)
    way, metres, degrees = np.array(rows).T
    lines = [
        f"{len(rows)} scenes, {pictures} images; way {np.median(way):.2f} m (median), {way.max():.2f} (greatest)"
    ]
    for name, each, unit in (("place", metres * 100, "cm"), ("direction", degrees, "degrees")):
        ends = np.quantile(each, [0.5, 0.9, 1.0])
        lines.append(f"{name}: {ends[0]:.2f} {unit} (median), {ends[1]:.2f} (nine in ten), {ends[2]:.2f}")
    (out / "tables.md").write_text(f"{text}\n\n" + "\n".join(lines) + "\n")
    print((out / "tables.md").read_text())
    for row in rows:
        print("way {:.2f} m, off by {:.3f} m and {:.3f} degrees".format(*row))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
