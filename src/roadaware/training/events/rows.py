"""Rows and streams of labelled tubes to learn from, of simulated scenes and of saved tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.errors import InputError
from roadaware.linking.config import LinkerConfig
from roadaware.linking.linker import Linker
from roadaware.models.event_head.features import FOCAL_SHARE, Motion, TubeFeatures
from roadaware.models.event_head.head import FEATURES, SCENE_FEATURES
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes
from roadaware.simulator.actors import AV_ACTIONS
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS
from roadaware.training.events.scenes import SceneTruth

# Errors of detectors put into ground-truth boxes: trembling, misses, cut boxes, confused classes, ghosts.


_CONFUSED = {
    "Ped": ("Cyc",),
    "Car": ("MedVeh", "LarVeh", "EmVeh"),
    "Cyc": ("Ped", "Mobike"),
    "Mobike": ("Cyc", "Ped"),
    "MedVeh": ("Car", "LarVeh"),
    "LarVeh": ("Bus", "MedVeh", "Car"),
    "Bus": ("LarVeh",),
    "EmVeh": ("MedVeh", "Car", "LarVeh"),
    "TL": ("OthTL",),
    "OthTL": ("TL",),
}
_COCO = {"MedVeh": ("Car", "LarVeh"), "EmVeh": ("Car", "LarVeh"), "OthTL": ("TL", "TL")}
"""Agents that detectors of COCO do not know, and what they call them."""


@dataclass(frozen=True)
class DetectorErrors:
    """How a detector errs in one scene.

    Args:
        jitter: spread of each side, in widths and heights of the box; most of it lasts a quarter second.
        miss: share of boxes that are missed, mostly some in a row; small and hidden ones more often.
        ghosts: false boxes in a frame, which last and wander or stand.
        confusion: share of tubes with another class than the ground-truth one, and of boxes of the others.
        coco: whether it knows the classes of COCO alone.
        parked: whether it finds parked vehicles, which ROAD does not label.
    """

    jitter: float = 0.04
    miss: float = 0.12
    ghosts: float = 0.6
    confusion: float = 0.08
    coco: bool = False
    parked: bool = True


def draw_errors(rng: np.random.Generator) -> DetectorErrors:
    """The errors of one scene of the teaching set."""
    return DetectorErrors(
        jitter=float(rng.uniform(0.01, 0.06)),
        miss=float(rng.uniform(0.03, 0.25)),
        ghosts=float(rng.uniform(0.0, 1.2)),
        confusion=float(rng.uniform(0.02, 0.15)),
        coco=bool(rng.random() < 0.5),
        parked=bool(rng.random() < 0.8),
    )


@dataclass(frozen=True, eq=False)
class Found:
    """Detections of a scene, by frame, in each by falling score.

    Args:
        frame: (n,).
        box: (n, 4) pixels.
        score: (n,) agentness.
        scores: (n, 10) of ROAD's agents.
        source: (n,) row of the ground truth that each is of; -1 of ghosts.
    """

    frame: Ints
    box: Floats
    score: Floats32
    scores: Floats32
    source: Ints


def apply_detector_errors(truth: SceneTruth, errors: DetectorErrors, rng: np.random.Generator) -> Found:
    """Simulate a detector's errors on a scene."""
    rows, boxes, scores = [], [], []
    for tube in np.unique(truth.tube).tolist():
        at = np.flatnonzero(truth.tube == tube)
        if truth.parked[at[0]] and not errors.parked:
            continue
        # (n,) which boxes of a tube are found: a chain that stays in either state for a while.
        high = (truth.box[at, 3] - truth.box[at, 1]) / truth.size_px[1]
        rate = errors.miss * np.where(high < 0.06, 2.0, 1.0) * (1.0 + truth.occlusion[at])
        rate = np.minimum(rate, 0.7)
        lasts = max(1.0, 0.25 * truth.fps * rng.uniform(0.3, 2.0))
        kept = np.ones(len(at), np.bool_)
        missing = bool(rng.random() < rate[0])
        chance = rng.random(len(at))
        for k in range(len(at)):
            if missing:
                missing = bool(chance[k] > 1.0 / lasts)
            else:
                # With these chances of going and coming back, `rate` is the share of missed boxes on average.
                missing = bool(chance[k] < rate[k] / (1 - rate[k]) / lasts)
            kept[k] = not missing
        box = _trembling(truth, at, errors.jitter, rng)
        score = _classes(truth, at, errors, rng)
        rows.append(at[kept])
        boxes.append(box[kept])
        scores.append(score[kept])
    ghost_frames, ghost_boxes, ghost_scores = _ghosts(truth, errors, rng)
    source = np.concatenate([*rows, np.full(len(ghost_frames), -1)]).astype(np.int64)
    frame = np.concatenate([*(truth.frame[each] for each in rows), ghost_frames]).astype(np.int64)
    box = np.concatenate([*boxes, ghost_boxes]).reshape(-1, 4)
    score = np.concatenate([*scores, ghost_scores]).reshape(-1, len(ROAD_AGENTS))
    width, height = truth.size_px
    box = np.clip(box, 0, [width, height, width, height])
    whole = (box[:, 2] - box[:, 0] > 2) & (box[:, 3] - box[:, 1] > 2)
    agentness = score.max(axis=1, initial=0)
    order = np.lexsort((-agentness, frame))
    order = order[whole[order]]
    narrow: Floats32 = score[order].astype(np.float32)
    return Found(frame[order], box[order], narrow.max(axis=1, initial=0), narrow, source[order])


def _trembling(truth: SceneTruth, at: Ints, jitter: float, rng: np.random.Generator) -> Floats:
    """(n, 4) boxes whose sides tremble; where somebody is hidden, a side may stay cut."""
    box = truth.box[at]
    size = np.tile(box[:, 2:] - box[:, :2], 2)
    slow, keep = np.empty((len(at), 4)), np.exp(-1 / (0.25 * truth.fps))
    state = rng.standard_normal(4)
    for k, noise in enumerate(rng.standard_normal((len(at), 4))):
        # Noise that follows its past and keeps a deviation of 1.
        state = keep * state + np.sqrt(1 - keep**2) * noise
        slow[k] = state
    spread = jitter * size * (0.67 * slow + 0.33 * rng.standard_normal((len(at), 4)))
    cut = rng.uniform(0, 0.15, 4) * (rng.random(4) < 0.3) * [1, 1, -1, -1]
    hidden = (truth.occlusion[at] / 2)[:, None]
    # Annotated boxes of simulated frames lie on whole pixels; those of a detector do not.
    return box + rng.uniform(-0.5, 0.5, box.shape) + spread + cut * size * hidden


def _classes(truth: SceneTruth, at: Ints, errors: DetectorErrors, rng: np.random.Generator) -> Floats:
    """(n, 10) scores of ROAD's agents for the boxes of a tube."""
    name = ROAD_AGENTS[int(truth.agent[at[0]])]
    if errors.coco and name in _COCO:
        name = str(rng.choice(_COCO[name]))
    others = [each for each in _CONFUSED[name] if not (errors.coco and each in _COCO)] or [name]
    if rng.random() < errors.confusion:
        name, others = str(rng.choice(others)), [name]
    base = rng.uniform(0.35, 0.95)
    level = np.clip(base + 0.08 * rng.standard_normal(len(at)), 0.16, 0.99)
    best, second = np.full(len(at), ROAD_AGENTS.index(name)), ROAD_AGENTS.index(str(rng.choice(others)))
    flipped = rng.random(len(at)) < errors.confusion
    rest = rng.uniform(0, 0.5, len(at)) * level
    found = rng.uniform(0, 0.03, (len(at), len(ROAD_AGENTS)))
    rows = np.arange(len(at))
    found[rows, second] = np.maximum(found[rows, second], np.where(flipped, level, rest))
    found[rows, best] = np.where(flipped, rest, level)
    return found


def _ghosts(
    truth: SceneTruth, errors: DetectorErrors, rng: np.random.Generator
) -> tuple[Ints, Floats, Floats]:
    """Frames, boxes and scores of what is not there."""
    width, height = truth.size_px
    frames, boxes, scores = [], [], []
    lasts_s = 0.6
    count = rng.poisson(errors.ghosts * truth.n_frames / (lasts_s * truth.fps))
    for _ in range(int(count)):
        first, long = (
            int(rng.integers(0, truth.n_frames)),
            max(1, round(rng.exponential(lasts_s) * truth.fps)),
        )
        frame = np.arange(first, min(first + long, truth.n_frames))
        frame = frame[rng.random(len(frame)) < 0.8]
        high = height * float(np.exp(rng.uniform(np.log(0.04), np.log(0.4))))
        wide = high * float(np.exp(rng.uniform(np.log(0.3), np.log(2.5))))
        foot = height * rng.uniform(0.4, 0.95)
        middle = width * rng.uniform(0, 1)
        drift = rng.normal(0, 0.05, 2) * width / truth.fps
        steps = (frame - first)[:, None] * drift
        corner = np.array([middle - wide / 2, foot - high, middle + wide / 2, foot])
        box = corner + np.tile(steps, 2) + errors.jitter * high * rng.standard_normal((len(frame), 4))
        score = rng.uniform(0, 0.05, (len(frame), len(ROAD_AGENTS)))
        known = [0, 1, 1, 2, 5, 6, 8] if errors.coco else [0, 1, 1, 2, 4, 5, 6, 8, 9]
        score[:, int(rng.choice(known))] = np.clip(
            rng.uniform(0.15, 0.5) + 0.06 * rng.standard_normal(len(frame)), 0.15, 0.8
        )
        frames.append(frame)
        boxes.append(box)
        scores.append(score)
    if not frames:
        return np.zeros(0, np.int64), np.zeros((0, 4)), np.zeros((0, len(ROAD_AGENTS)))
    return np.concatenate(frames), np.concatenate(boxes), np.concatenate(scores)


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
        top_agent: (n,) agent with the highest score.
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
    top_agent: Ints
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
AV_SIDES = {one: other for pair in _SIDES if pair[0].startswith("AV-") for one, other in (pair, pair[::-1])}
"""Actions of the own vehicle that change places in a mirror."""


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
    # Turns are measured in focal lengths: a wrong one scales them.
    ratio = truth.focal_px / (focal_px or FOCAL_SHARE * truth.size_px[0])
    yaw = ratio * truth.yaw_rps + level * noise.yaw_rps * rng.standard_normal(n)
    pitch = ratio * truth.pitch_rps + level * noise.pitch_rps * rng.standard_normal(n)
    scale = noise.speed_share * rng.standard_normal() + noise.speed_step * rng.standard_normal(n)
    speed = np.maximum(
        truth.speed_mps * np.exp(scale) + noise.speed_mps * np.abs(rng.standard_normal(n)), 0.0
    )
    lost = rng.random(n) < (0.4 if rng.random() < noise.dark else noise.lost)
    # There is no frame before the first one.
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


def simulate_inputs(
    truth: SceneTruth,
    number: int,
    seed: int,
    *,
    errors: DetectorErrors | None,
    noise: MotionNoise | None,
    pixels: bool | None,
) -> tuple[Found, list[Motion | None], float | None]:
    """Detections, own motion of each frame and focal length (None where it is guessed) of one scene, with their errors.

    Args:
        truth, number, seed, errors, noise, pixels: as of `make_rows`.
    """
    rng = np.random.default_rng([seed, number, 11])
    found = apply_detector_errors(truth, errors or draw_errors(rng), rng)
    seen = bool(rng.random() < 0.75) if pixels is None else pixels
    focal = truth.focal_px if rng.random() < 0.5 else None
    motions = estimate_motion(truth, noise or MotionNoise(), rng, focal)
    return found, motions if seen else [None] * truth.n_frames, focal


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
    found, motions, focal = simulate_inputs(truth, number, seed, errors=errors, noise=noise, pixels=pixels)
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
        top_agent=found.scores[rows].argmax(axis=1),
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


LABELS = (*(f"action/{name}" for name in ACTIONS), *(f"location/{name}" for name in LOCATIONS))
"""Labels of ROAD that the event head knows, each with its kind."""
AV_LABELS = tuple(f"av_action/{name}" for name in AV_ACTIONS)
"""What the own vehicle does, likewise."""
PARKED_WEIGHT = 0.3
"""Weight of a parked vehicle: there are many, and ROAD does not label them."""
_USUAL_FPS = 12.0
_OCCLUDED = {"none": 0, "part": 1, "full": 2}
MOST_TUBES = 1_000_000
"""Of a scene: numbers of tubes are those of the linker, from so many times the number of the scene on."""


@dataclass(frozen=True, eq=False)
class TubeRows:
    """Boxes of linked tubes in the order of a stream, with features and labels.

    Args:
        labels: that somebody annotated, as `kind/label`; others are not known of these boxes.
        x: (n, features).
        truth: (n, labels) which are true.
        weight: (n,) of each box in learning.
        judged: (n,) whether it counts in a test: parked vehicles do not, false detections do.
        tube: (n,) numbers; a tube that begins later has a larger one.
        scene: (n,) number of the scene.
    """

    labels: tuple[str, ...]
    x: Floats32
    truth: Bools
    weight: Floats32
    judged: Bools
    tube: Ints
    scene: Ints

    def __len__(self) -> int:
        return len(self.x)


def make_tube_rows(
    truth: SceneTruth,
    number: int,
    seed: int,
    labels: tuple[str, ...] = LABELS,
    *,
    errors: DetectorErrors | None = None,
    noise: MotionNoise | None = None,
    pixels: bool | None = None,
    every: int = 1,
) -> tuple[TubeRows, TubeRows]:
    """The boxes of one scene, as a detector that errs and the project's linker find them, and the own vehicle in its frames.

    Args:
        truth: of the scene.
        number: of the scene in the stream.
        seed: of chance.
        labels: of `LABELS` that are annotated.
        errors: of the detector; drawn where None.
        noise: of the estimate of the own motion; the measured one where None.
        pixels: whether the own motion is estimated from images; three times of four where None.
        every: only every so many-th frame becomes rows.

    Returns:
        Rows of boxes, and one of each frame with `SCENE_FEATURES` and `AV_LABELS`, whose tubes are stretches of a second.
    """
    found, motions, focal = simulate_inputs(truth, number, seed, errors=errors, noise=noise, pixels=pixels)
    held, tubes, xs = [], [], []
    drives: list[Floats] = []
    for frame, rows, linked, x, drive in iterate_linked_frames(truth, found, motions, focal):
        if frame % every == 0:
            held.append(rows)
            tubes.append(linked)
            xs.append(x)
            drives.append(drive)
    rows = np.concatenate(held) if held else np.zeros(0, np.int64)
    source = found.source[rows]
    real = source >= 0
    place = np.where(real, truth.location[source] if len(truth.location) else -1, -1)
    action = (
        truth.action[source] & real[:, None]
        if len(truth.action)
        else np.zeros((len(rows), len(ACTIONS)), bool)
    )
    whole = np.hstack([action, place[:, None] == np.arange(len(LOCATIONS))])
    parked = truth.parked[source] & real if len(truth.parked) else np.zeros(len(rows), bool)
    columns = [LABELS.index(name) for name in labels]
    tube = np.concatenate(tubes).astype(np.int64) if tubes else np.zeros(0, np.int64)
    boxes = TubeRows(
        labels,
        np.concatenate(xs).astype(np.float32) if xs else np.zeros((0, len(FEATURES)), np.float32),
        whole[:, columns],
        np.where(parked, PARKED_WEIGHT, 1.0).astype(np.float32),
        ~parked,
        number * MOST_TUBES + tube,
        np.full(len(rows), number),
    )
    frames = np.arange(0, truth.n_frames, every)
    vehicle = TubeRows(
        AV_LABELS,
        np.array(drives, np.float32).reshape(-1, len(SCENE_FEATURES)),
        truth.av[frames, None] == np.arange(len(AV_LABELS)),
        np.ones(len(frames), np.float32),
        np.ones(len(frames), bool),
        number * MOST_TUBES + (frames / truth.fps).astype(np.int64),
        np.full(len(frames), number),
    )
    return boxes, vehicle


def join_tube_rows(parts: list[TubeRows], labels: tuple[str, ...] | None = None) -> TubeRows:
    """The boxes of several scenes one after another.

    Args:
        parts: with equal labels.
        labels: theirs; needed where there is no part.

    Raises:
        ValueError: if their labels differ.
    """
    known = labels if labels is not None else parts[0].labels
    if any(part.labels != known for part in parts):
        raise ValueError("scenes with different labels are learnt from one after another, not joined")
    empty = TubeRows(
        known, np.zeros((0, len(FEATURES)), np.float32), np.zeros((0, len(known)), bool), np.zeros(0, np.float32),
        np.zeros(0, bool), np.zeros(0, np.int64), np.zeros(0, np.int64),
    )  # fmt: skip
    names = ("x", "truth", "weight", "judged", "tube", "scene")
    return TubeRows(
        known, **{name: np.concatenate([getattr(part, name) for part in parts or [empty]]) for name in names}
    )


@dataclass(frozen=True, eq=False)
class TableTruths:
    """What saved tables hold for the event head.

    Args:
        scenes: of each video its ground truth; own motion and parked vehicles are not known of tables.
        labels: of `LABELS` that the tables have words for.
        unknown: labels of actions and locations that the head does not know, which are left out.
        passed: what else was left out: reason to number of boxes.
    """

    scenes: tuple[SceneTruth, ...]
    labels: tuple[str, ...]
    unknown: tuple[str, ...]
    passed: dict[str, int]


def read_table_truths(scenes: Scenes, videos: list[str], name: str | None = None) -> TableTruths:
    """The ground truth of videos as the event head's training has it; labels are found by name.

    A box needs an agent of ROAD and a tube; where it has several agents or locations, the first counts. Frame rates that
    are not known are taken to be 12, the focal length that of a usual camera.

    Args:
        scenes: tables with boxes, tubes and labels of the kinds agent, action and location.
        videos: which of them, in the order of the stream.
        name: what the tables are called in messages (default: by their dataset).

    Raises:
        InputError: if a video is not there or its size is not known, or the tables have no agents, or neither actions
            nor locations of ROAD.
    """
    words = scenes.meta.vocabularies
    name = name or scenes.meta.dataset or "this set"
    if not set(words.get("agent", ())) & set(ROAD_AGENTS):
        raise InputError(
            f"{name} has none of the agents of ROAD, of which events are: expected some of {', '.join(ROAD_AGENTS)}; "
            f"found {', '.join(words.get('agent', ())[:12]) or 'no agents'}"
        )
    labels = tuple(
        label for label in LABELS if label.partition("/")[2] in words.get(label.partition("/")[0], ())
    )
    if not labels:
        raise InputError(f"{name} has no action or location of ROAD: there is nothing to learn")
    unknown = tuple(
        f"{kind}/{word}"
        for kind in ("action", "location")
        for word in words.get(kind, ())
        if f"{kind}/{word}" not in LABELS
    )
    passed: Counter[str] = Counter()
    hot = _collect_labels(scenes, passed)
    facts = {str(row["video"]): row for row in scenes.videos.iter_rows(named=True)}
    boxes = scenes.boxes
    if "ignore" in boxes.columns:
        passed["marked to be ignored"] += int(boxes["ignore"].fill_null(False).sum())
        boxes = boxes.filter(~pl.col("ignore").fill_null(False))
    found = []
    for video in videos:
        row = facts.get(video)
        if row is None:
            raise InputError(f"{name} has no video {video}")
        size = int(row.get("width_px") or 0), int(row.get("height_px") or 0)
        if not all(size):
            raise InputError(f"the size of video {video} of {name} is not known, which the event head needs")
        part = boxes.filter(pl.col("video").cast(pl.String) == video).sort("frame", maintain_order=True)
        found.append(_build_truth(video, row, size, part, hot, passed))
    return TableTruths(tuple(found), labels, unknown, {why: n for why, n in passed.items() if n})


def _collect_labels(scenes: Scenes, passed: Counter[str]) -> dict[str, tuple[Ints, Ints]]:
    """Of each kind the boxes and the place of their labels among ROAD's, in the order of the tables."""
    found = {}
    for kind, names in (("agent", ROAD_AGENTS), ("action", ACTIONS), ("location", LOCATIONS)):
        words = scenes.meta.vocabularies.get(kind, ())
        place = np.array([names.index(word) if word in names else -1 for word in words] or [-1], np.int64)
        rows = scenes.labels.filter(pl.col("kind").cast(pl.String) == kind).select("box", "label")
        index = place[rows["label"].to_numpy()] if len(rows) else np.zeros(0, np.int64)
        box = rows["box"].to_numpy().astype(np.int64)
        box, index = box[index >= 0], index[index >= 0]
        if kind != "action":
            _, first = np.unique(box, return_index=True)
            passed[f"second {kind}s"] += len(box) - len(first)
            box, index = box[first], index[first]
        found[kind] = (box, index)
    return found


def _build_truth(
    video: str,
    row: dict[str, object],
    size_px: tuple[int, int],
    boxes: pl.DataFrame,
    hot: dict[str, tuple[Ints, Ints]],
    passed: Counter[str],
) -> SceneTruth:
    number = boxes["box"].to_numpy().astype(np.int64)
    order = np.argsort(number)

    def find(box: Ints) -> tuple[Ints, Bools]:
        """Rows of boxes by number, and which of them are of this video."""
        if not len(number):
            return np.zeros(0, np.int64), np.zeros(len(box), np.bool_)
        at = np.searchsorted(number[order], box)
        at = order[np.minimum(at, len(number) - 1)]
        here = number[at] == box
        return at[here], here

    one = {}
    for kind in ("agent", "location"):
        box, index = hot[kind]
        at, here = find(box)
        one[kind] = np.full(len(number), -1, np.int64)
        one[kind][at] = index[here]
    action = np.zeros((len(number), len(ACTIONS)), np.bool_)
    at, here = find(hot["action"][0])
    action[at, hot["action"][1][here]] = True
    tracked = boxes["tube"].is_not_null().to_numpy()
    kept = tracked & (one["agent"] >= 0)
    passed["without a tube"] += int((~tracked).sum())
    passed["without an agent of ROAD"] += int((tracked & (one["agent"] < 0)).sum())
    hidden = np.zeros(len(number), np.int64)
    if "occlusion" in boxes.columns:
        words = boxes["occlusion"].cast(pl.String)
        hidden = words.replace_strict(_OCCLUDED, default=0, return_dtype=pl.Int64).to_numpy()
    frame = boxes["frame"].to_numpy().astype(np.int64)
    stated = row.get("n_frames")
    n_frames = max(int(stated) if isinstance(stated, int) else 0, int(frame.max(initial=-1)) + 1)
    still = np.zeros(n_frames)
    fps = row.get("fps")
    return SceneTruth(
        name=video, size_px=size_px, focal_px=FOCAL_SHARE * size_px[0],
        fps=float(fps) if isinstance(fps, int | float) and fps > 0 else _USUAL_FPS, height_m=1.5,
        left_hand=row.get("drive_on") == "left", frame=frame[kept],
        tube=boxes["tube"].fill_null(-1).to_numpy().astype(np.int64)[kept],
        box=boxes.select(CORNERS).to_numpy().astype(np.float64).reshape(-1, 4)[kept],
        occlusion=hidden[kept], parked=np.zeros(int(kept.sum()), np.bool_), agent=one["agent"][kept],
        action=action[kept], location=one["location"][kept],
        yaw_rps=still, pitch_rps=still.copy(), speed_mps=still.copy(), av=np.zeros(n_frames, np.int64),
    )  # fmt: skip
