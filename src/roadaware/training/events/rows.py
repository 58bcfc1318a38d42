"""Rows to learn from: tubes that the project's linker makes of erring detections, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.linking.config import LinkerConfig
from roadaware.linking.linker import Linker
from roadaware.models.event_head.features import FOCAL_SHARE, Motion, TubeFeatures
from roadaware.models.event_head.layout import FEATURES, SCENE_FEATURES
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.simulator.actors import AV_ACTIONS
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS
from roadaware.training.events.errors import DetectorErrors, Found, apply_detector_errors, draw_errors
from roadaware.training.events.scenes import SceneTruth


@dataclass(frozen=True)
class MotionNoise:
    """How the estimate of the own motion errs: measured on ten rendered streets (docs/events.md).

    Args:
        yaw_rps: spread of the turn, independent from frame to frame: the middle scene.
        pitch_rps: the same upwards.
        scenes: spread of the logarithm of both over scenes: darkness and rain make them larger.
        speed_share: spread of the logarithm of the speed's scale, one a scene: streets differ in width.
        speed_step: the same, anew in each frame.
        speed_mps: spread of what comes on top.
        lost: share of frames without an estimate.
        dark: share of scenes in which two fifths are without.
    """

    yaw_rps: float = 0.008
    pitch_rps: float = 0.002
    scenes: float = 0.9
    speed_share: float = 0.25
    speed_step: float = 0.15
    speed_mps: float = 0.08
    lost: float = 0.02
    dark: float = 0.1


@dataclass(frozen=True, eq=False)
class Rows:
    """Boxes of linked tubes with their inputs and ground truth.

    Args:
        x: (n, features).
        action: (n, 23) ground-truth ones.
        location: (n, 15) ground-truth one.
        agent: (n,) true agent, -1 of ghosts.
        told: (n,) agent with the highest score.
        scene: (n,) number of the scene.
        parked: (n,) of a parked vehicle.
        height_px: (n,) of the box.
        drive: (f, columns) of the own vehicle, one for each frame.
        av: (f,) what it does.
        drive_scene: (f,) number of the scene.
    """

    x: Floats32
    action: Bools
    location: Bools
    agent: Ints
    told: Ints
    scene: Ints
    parked: Bools
    height_px: Floats32
    drive: Floats32
    av: Ints
    drive_scene: Ints


_SIDES = (
    ("IncatLft", "IncatRht"), ("TurLft", "TurRht"), ("MovLft", "MovRht"), ("XingFmLft", "XingFmRht"),
    ("LftPav", "RhtPav"), ("parking", "RhtParking"), ("AV-TurLft", "AV-TurRht"), ("AV-MovLft", "AV-MovRht"),
)  # fmt: skip


def flip_scene(truth: SceneTruth) -> SceneTruth:
    """The scene as a mirror shows it: left and right change places in boxes, turns and labels."""

    def swapped(names: Sequence[str]) -> Ints:
        other = dict([*_SIDES, *((right, left) for left, right in _SIDES)])
        return np.array([names.index(other.get(name, name)) for name in names], np.int64)

    width, places = truth.size_px[0], swapped(LOCATIONS)
    box = np.stack(
        [width - truth.box[:, 2], truth.box[:, 1], width - truth.box[:, 0], truth.box[:, 3]], axis=1
    )
    return replace(
        truth,
        box=box,
        left_hand=not truth.left_hand,
        action=truth.action[:, swapped(ACTIONS)],
        location=np.where(truth.location >= 0, places[truth.location], -1),
        yaw_rps=-truth.yaw_rps,
        av=swapped(AV_ACTIONS)[truth.av],
    )


def build_linker_config(fps: float) -> LinkerConfig:
    """The linker that teaching sets are linked with: the default one, with the overlap that object detectors
    need on real videos.
    """
    return replace(LinkerConfig.default(), min_iou=0.3, jump_gap=max(2, round(fps / 3)))


def estimate_motion(
    truth: SceneTruth, noise: MotionNoise, rng: np.random.Generator, focal_px: float | None
) -> list[Motion | None]:
    """Simulated estimate of the own motion in each frame, from true poses and measured noise.

    Args:
        truth: of the scene.
        noise: of the estimator.
        rng: where chance comes from.
        focal_px: as the estimator is given it; with another one than the true one, turns are off by their ratio.
    """
    n = truth.n_frames
    level = np.exp(noise.scenes * rng.standard_normal())
    ratio = truth.focal_px / (focal_px or FOCAL_SHARE * truth.size_px[0])
    yaw = ratio * truth.yaw_rps + level * noise.yaw_rps * rng.standard_normal(n)
    pitch = ratio * truth.pitch_rps + level * noise.pitch_rps * rng.standard_normal(n)
    scale = noise.speed_share * rng.standard_normal() + noise.speed_step * rng.standard_normal(n)
    speed = np.maximum(
        truth.speed_mps * np.exp(scale) + noise.speed_mps * np.abs(rng.standard_normal(n)), 0.0
    )
    lost = rng.random(n) < (0.4 if rng.random() < noise.dark else noise.lost)
    lost[0] = True
    return [
        None if gone else Motion(float(y), float(p), float(s))
        for gone, y, p, s in zip(lost, yaw, pitch, speed, strict=True)
    ]


def iterate_linked_frames(
    truth: SceneTruth, found: Found, motions: list[Motion | None], focal_px: float | None
) -> Iterator[tuple[int, Ints, Ints, Floats, Floats]]:
    """Frame by frame: its number, rows of `found` that are linked, their tubes, features of both kinds.

    Args:
        truth: of the scene.
        found: its detections.
        motions: of each frame.
        focal_px: as the head is given it.
    """
    linker = Linker(build_linker_config(truth.fps), len(ROAD_AGENTS))
    features = TubeFeatures(ROAD_AGENTS)
    bounds = np.searchsorted(found.frame, np.arange(truth.n_frames + 1))
    for frame in range(truth.n_frames):
        part = slice(int(bounds[frame]), int(bounds[frame + 1]))
        t_s = frame / truth.fps
        update = linker.update(frame, found.box[part], found.score[part], found.scores[part], t_s=t_s)
        features.end(path.number for path in update.ended)
        linked = np.flatnonzero(update.numbers >= 0)
        rows = part.start + linked
        x, drive = features.step(
            t_s,
            update.numbers[linked],
            found.box[rows],
            found.scores[rows],
            truth.size_px,
            motions[frame],
            focal_px,
        )
        yield frame, rows, update.numbers[linked], x, drive


def make_rows(
    truth: SceneTruth,
    number: int,
    seed: int,
    *,
    errors: DetectorErrors | None = None,
    noise: MotionNoise | None = None,
    pixels: bool | None = None,
    every: int = 1,
) -> Rows:
    """The rows of one scene.

    Args:
        truth: of the scene.
        number: what it is called in the rows.
        seed: of chance.
        errors: of the detector; drawn where None.
        noise: of the estimate of the own motion; the measured one where None.
        pixels: whether the own motion is estimated from images; three times of four where None.
        every: only every so many-th frame becomes rows.
    """
    rng = np.random.default_rng([seed, number, 11])
    found = apply_detector_errors(truth, errors or draw_errors(rng), rng)
    seen = bool(rng.random() < 0.75) if pixels is None else pixels
    focal = truth.focal_px if rng.random() < 0.5 else None
    motions = estimate_motion(truth, noise or MotionNoise(), rng, focal)
    if not seen:
        motions = [None] * truth.n_frames
    held, xs, drives = [], [], []
    for frame, rows, _, x, drive in iterate_linked_frames(truth, found, motions, focal):
        if frame % every == 0:
            held.append(rows)
            xs.append(x)
            drives.append(drive)
    rows = np.concatenate(held) if held else np.zeros(0, np.int64)
    source = found.source[rows]
    real = source >= 0
    location = np.zeros((len(rows), 15), np.bool_)
    places = np.where(real, truth.location[source], -1)
    location[np.flatnonzero(places >= 0), places[places >= 0]] = True
    return Rows(
        x=np.concatenate(xs).astype(np.float32).reshape(-1, len(FEATURES)),
        action=truth.action[source] & real[:, None],
        location=location,
        agent=np.where(real, truth.agent[source], -1),
        told=found.scores[rows].argmax(axis=1),
        scene=np.full(len(rows), number),
        parked=truth.parked[source] & real,
        height_px=(found.box[rows, 3] - found.box[rows, 1]).astype(np.float32),
        drive=np.array(drives, np.float32).reshape(-1, len(SCENE_FEATURES)),
        av=truth.av[::every][: len(drives)],
        drive_scene=np.full(len(drives), number),
    )


def join_rows(parts: list[Rows]) -> Rows:
    """The rows of several scenes."""
    names = Rows.__dataclass_fields__
    return Rows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
