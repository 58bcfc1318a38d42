"""What the head says of real tracks (KITTI tracking) beside what their boxes in space show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.events.judging import judge
from roadaware.models.event_head.features import Motion, TubeFeatures
from roadaware.models.event_head.head import EventHead
from roadaware.models.object_labels import ROAD_AGENTS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_FPS, _SIZE_PX, _FOCAL_PX = 10.0, (1242, 375), 721.5
_AGENTS = {
    "Car": "Car", "Van": "MedVeh", "Truck": "LarVeh", "Pedestrian": "Ped", "Person_sitting": "Ped",
    "Cyclist": "Cyc", "Tram": "Bus",
}  # fmt: skip
_WINDOW = 4
"""Frames to either side through which a line is drawn: what is true may look ahead."""
_STANDS_MPS, _MOVES_MPS = 0.5, 1.0
"""Slower is taken to stand, faster to move; what lies between is not asked about."""
_ACROSS = np.tan(np.radians(60.0))
_AGREE_MPS, _LEAST_STILL = 0.7, 3
LABELS = ("MovAway", "MovTow", "Mov", "Stop")


@dataclass(frozen=True, eq=False)
class Drive:
    """The boxes of one drive, by frame.

    Args:
        frame, track: (n,).
        agent: (n,) index of `ROAD_AGENTS`.
        box: (n, 4) pixels.
        place: (n, 2) metres to the right and forwards.
        heading: (n,) rotation about the axis down, radians.
    """

    frame: Ints
    track: Ints
    agent: Ints
    box: Floats
    place: Floats
    heading: Floats


def read_drive(path: Path) -> Drive:
    """The agents of ROAD in a file of `label_02`."""
    rows = [line.split() for line in path.read_text().splitlines()]
    rows = [row for row in rows if row[2] in _AGENTS]
    rows.sort(key=lambda row: int(row[0]))
    number = np.array([[float(cell) for cell in (*row[:2], *row[3:])] for row in rows]).reshape(len(rows), -1)
    return Drive(
        number[:, 0].astype(np.int64),
        number[:, 1].astype(np.int64),
        np.array([ROAD_AGENTS.index(_AGENTS[row[2]]) for row in rows]),
        number[:, 5:9],
        number[:, [12, 14]],
        number[:, 15],
    )


def find_velocities(drive: Drive) -> tuple[Floats, Floats]:
    """(n, 2) m/s relative to the camera and (n,) radians a second of the heading, by lines through frames;
    NaN where a track is too short.
    """
    speed, turn = np.full((len(drive.frame), 2), np.nan), np.full(len(drive.frame), np.nan)
    for track in np.unique(drive.track):
        at = np.flatnonzero(drive.track == track)
        heading = np.unwrap(drive.heading[at])
        for k in at:
            near = np.abs(drive.frame[at] - drive.frame[k]) <= _WINDOW
            if near.sum() >= 5:
                t_s = (drive.frame[at][near] - drive.frame[k]) / _FPS
                speed[k] = np.polyfit(t_s, drive.place[at][near], 1)[0]
                turn[k] = np.polyfit(t_s, heading[near], 1)[0]
    return speed, turn


def find_own_motion(drive: Drive, speed: Floats) -> dict[int, tuple[float, float]]:
    """Frame to own speed (m/s) and turn (rad/s, left positive), where at least three objects agree on both.

    What stands at x, z comes nearer by speed + turn x and drifts to the right by turn z. Each object proposes
    the motion by which it would stand, and the one is taken by which most do. Vehicles that all drive ahead
    the same way agree as well, on a camera that stands: one of those who agree must point another way, or be
    no vehicle. Frames whose speed differs by over 2 m/s from the median of their second are left out.
    """
    found: dict[int, tuple[float, float]] = {}
    for frame in np.unique(drive.frame).tolist():
        at = np.flatnonzero((drive.frame == frame) & np.isfinite(speed[:, 0]))
        at = at[drive.place[at, 1] > 3.0]
        best: tuple[int, float, float] = (0, 0.0, 0.0)
        for k in at:
            turn = speed[k, 0] / drive.place[k, 1]
            own = -speed[k, 1] - turn * drive.place[k, 0]
            if own < -0.5 or own > 40 or abs(turn) > 0.8:
                continue
            drift = speed[at] - np.stack(
                [turn * drive.place[at, 1], -own - turn * drive.place[at, 0]], axis=1
            )
            agree = at[np.hypot(drift[:, 0], drift[:, 1]) < _AGREE_MPS]
            # A heading of -pi / 2 points ahead.
            ahead = (np.cos(drive.heading[agree] + np.pi / 2) > 0.7) & (drive.agent[agree] != 0)
            if len(agree) > best[0] and len(agree) >= _LEAST_STILL and not ahead.all():
                best = (len(agree), float(max(own, 0.0)), float(turn))
        if best[0]:
            found[frame] = best[1:]
    kept = {}
    for frame, (own, turn) in found.items():
        near = [found[f][0] for f in range(frame - 5, frame + 6) if f in found]
        if len(near) >= 5 and abs(own - float(np.median(near))) < 2.0:
            kept[frame] = (own, turn)
    return kept


def find_truth(drive: Drive) -> tuple[Bools, Bools, dict[int, tuple[float, float]]]:
    """(n, 4) which of `LABELS` is true, (n,) who is asked about, and the own motion by frame."""
    speed, _ = find_velocities(drive)
    own = find_own_motion(drive, speed)
    truth, asked = np.zeros((len(drive.frame), len(LABELS)), np.bool_), np.zeros(len(drive.frame), np.bool_)
    for k in range(len(drive.frame)):
        motion = own.get(int(drive.frame[k]))
        if motion is None or not np.isfinite(speed[k, 0]) or drive.place[k, 1] < 1:
            continue
        x, z = drive.place[k]
        world = speed[k] + [-motion[1] * z, motion[0] + motion[1] * x]
        pace, sight = float(np.hypot(*world)), drive.place[k] / np.hypot(x, z)
        if pace < _STANDS_MPS:
            truth[k, 3] = asked[k] = True
        elif pace > _MOVES_MPS:
            across = abs(world[0]) > _ACROSS * abs(world[1])
            truth[k, 2 if across else (0 if world @ sight > 0 else 1)] = asked[k] = True
    return truth, asked, own


def follow(drive: Drive, own: dict[int, tuple[float, float]] | None) -> Iterator[tuple[Ints, Floats]]:
    """Rows of each frame and their features; the head is told the own motion where there is any."""
    features = TubeFeatures(ROAD_AGENTS)
    for frame in range(int(drive.frame.max()) + 1):
        rows = np.flatnonzero(drive.frame == frame)
        scores = np.full((len(rows), len(ROAD_AGENTS)), 0.01, np.float32)
        scores[np.arange(len(rows)), drive.agent[rows]] = 0.9
        told = None if own is None else own.get(frame)
        motion = None if told is None else Motion(told[1], 0.0, told[0])
        x, _ = features.step(
            frame / _FPS, drive.track[rows], drive.box[rows], scores, _SIZE_PX, motion, _FOCAL_PX
        )
        yield rows, x


def print_geometry(folder: Path, head: EventHead) -> None:
    """Agreement by label, beside class prior and position."""
    columns = [head.actions.index(name) for name in LABELS]
    truths, scene = [], []
    scores: dict[str, list[Floats]] = {
        name: [] for name in ("class prior", "position", "boxes", "own motion told")
    }
    classes, frames, known = [], 0, 0
    for number, path in enumerate(sorted(folder.glob("*.txt"))):
        drive = read_drive(path)
        truth, asked, own = find_truth(drive)
        frames, known = frames + int(drive.frame.max()) + 1, known + len(own)
        for name, told in (("boxes", None), ("own motion told", own)):
            said = np.zeros((len(truth), len(LABELS)))
            for rows, x in follow(drive, told):
                said[rows] = head.scores(x)[0][:, columns]
            scores[name].append(said[asked])
        u = (drive.box[asked, 0] + drive.box[asked, 2]) / _SIZE_PX[0] - 1
        # In these streets traffic keeps to the right.
        scores["position"].append(
            np.stack([np.exp(-((u - 0.1) ** 2) / 0.1), -u, -np.abs(u), np.abs(u)], axis=1)
        )
        truths.append(truth[asked])
        classes.append(drive.agent[asked])
        scene.append(np.full(int(asked.sum()), number))
    truth, of, agent = np.concatenate(truths), np.concatenate(scene), np.concatenate(classes)
    shares = np.stack(
        [truth[agent == a].mean(axis=0) if (agent == a).any() else np.zeros(4) for a in range(10)]
    )
    scores["class prior"] = [shares[agent]]
    print(f"{known:,} of {frames:,} frames with a known own motion, {len(truth):,} boxes asked about\n")
    print(f"| what tells | mean AP | {' | '.join(LABELS)} | right |\n|---|---|{'---|' * (len(LABELS) + 1)}")
    for name, parts in scores.items():
        said = np.concatenate(parts)
        found = judge(
            truth,
            (said - said.min()) / max(float(np.ptp(said)), 1e-9),
            of,
            dict(zip(LABELS, range(4), strict=True)),
        )
        right = float((said.argmax(axis=1) == truth.argmax(axis=1)).mean()) if name != "position" else np.nan
        cells = [f"{found.labels[label][0]:.3f}" if label in found.labels else "–" for label in LABELS]
        print(f"| {name} | {found} | {' | '.join(cells)} | {'–' if np.isnan(right) else f'{right:.3f}'} |")
    print(f"| share | | {' | '.join(f'{s:.3f}' for s in truth.mean(axis=0))} | |")
