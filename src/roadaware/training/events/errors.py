"""Errors of detectors put into ground-truth boxes: trembling, misses, cut boxes, confused classes, ghosts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.training.events.scenes import SceneTruth

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
    """Simulate a detector's errors on a scene.

    Args:
        truth: of the scene.
        errors: of the detector.
        rng: where chance comes from.
    """
    rows, boxes, scores = [], [], []
    for tube in np.unique(truth.tube).tolist():
        at = np.flatnonzero(truth.tube == tube)
        if truth.parked[at[0]] and not errors.parked:
            continue
        kept = _seen(truth, at, errors.miss, rng)
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


def _seen(truth: SceneTruth, at: Ints, miss: float, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """(n,) which boxes of a tube are found: a chain that stays in either state for a while."""
    high = (truth.box[at, 3] - truth.box[at, 1]) / truth.size_px[1]
    rate = miss * np.where(high < 0.06, 2.0, 1.0) * (1.0 + truth.occlusion[at])
    rate = np.minimum(rate, 0.7)
    lasts = max(1.0, 0.25 * truth.fps * rng.uniform(0.3, 2.0))
    found = np.ones(len(at), np.bool_)
    missing = bool(rng.random() < rate[0])
    chance = rng.random(len(at))
    for k in range(len(at)):
        if missing:
            missing = bool(chance[k] > 1.0 / lasts)
        else:
            missing = bool(chance[k] < rate[k] / (1 - rate[k]) / lasts)
        found[k] = not missing
    return found


def _trembling(truth: SceneTruth, at: Ints, jitter: float, rng: np.random.Generator) -> Floats:
    """(n, 4) boxes whose sides tremble; where somebody is hidden, a side may stay cut."""
    box = truth.box[at]
    size = np.tile(box[:, 2:] - box[:, :2], 2)
    slow, keep = np.empty((len(at), 4)), np.exp(-1 / (0.25 * truth.fps))
    state = rng.standard_normal(4)
    for k, noise in enumerate(rng.standard_normal((len(at), 4))):
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
