"""What a made-up model claims of a crowd: boxes that waver, labels mistaken, spans too long or too short."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats
from roadaware.scenes.demo.crowd import FRAMES, HEIGHT, WIDTH, Bond, Crowd, Person


@dataclass(frozen=True)
class Watcher:
    """How badly the model sees.

    Args:
        jitter_px: spread of a box's sides.
        missed: share of things not claimed at all.
        mistaken: share of claims with another label.
        invented: claims of nothing, per true one.
        shift_frames: spread of starts and ends.
        map_cells: rows and columns of a sound map.
    """

    jitter_px: float = 6.0
    missed: float = 0.15
    mistaken: float = 0.25
    invented: float = 0.5
    shift_frames: float = 8.0
    map_cells: int = 14


def wavering(boxes: Floats, rng: np.random.Generator, watcher: Watcher) -> Floats:
    """(n, 4) the boxes moved as a whole and side by side, upright and inside the picture."""
    whole = rng.normal(0, watcher.jitter_px, (1, 2))
    moved = boxes + np.tile(whole, 2) + rng.normal(0, watcher.jitter_px / 3, boxes.shape)
    low = np.minimum(moved[:, :2], moved[:, 2:] - 1)
    corners = np.concatenate([low, np.maximum(moved[:, 2:], low + 1)], axis=1)
    limits = np.array([WIDTH, HEIGHT, WIDTH, HEIGHT])
    rounded: Floats = np.round(np.clip(corners, 0, limits), 1)
    return rounded


def claimed_score(right: bool, rng: np.random.Generator) -> float:
    """A score that is higher for what is right, most of the time; five decimals."""
    return round(float(rng.beta(5, 2) if right else rng.beta(2, 4)), 5)


def claimed_span(start: int, end: int, rng: np.random.Generator, watcher: Watcher) -> tuple[int, int]:
    """A span about as long, at least one frame, inside the video."""
    first = int(np.clip(start + rng.normal(0, watcher.shift_frames), 0, FRAMES - 1))
    last = int(np.clip(end + rng.normal(0, watcher.shift_frames), first + 1, FRAMES))
    return first, last


def claimed_bond(crowd: Crowd, bond: Bond, rng: np.random.Generator, watcher: Watcher) -> Bond:
    """The bond with its span shifted, as far as both are seen, and now and then between others' words."""
    subject, other = crowd.persons[bond.subject], crowd.persons[bond.object]
    low, high = max(subject.start, other.start), min(subject.end, other.end)
    first, last = claimed_span(bond.start, bond.end, rng, watcher)
    first = min(max(first, low), high - 1)
    predicate = bond.predicate
    if rng.random() < watcher.mistaken:
        predicate = str(rng.choice(["watching", "pushing", "arguing with", "following after"]))
    return Bond(bond.subject, predicate, bond.object, first, min(max(last, first + 1), high))


def sound_map(person: Person, frame: int, rng: np.random.Generator, watcher: Watcher) -> Floats:
    """(cells, cells) where the model hears it: a hill as wide and high as the person, on rough ground."""
    cells = watcher.map_cells
    box = person.at(frame) / np.array([WIDTH, HEIGHT, WIDTH, HEIGHT]) * cells
    sides = box[2:] - box[:2]
    x, y = (box[:2] + box[2:]) / 2 + rng.normal(0, 0.2, 2) * sides
    # A hill reaches half of its height where it is 1.18 spreads from its top.
    wide, high = np.maximum(sides, 1.2) / 2
    rows, columns = np.mgrid[0:cells, 0:cells] + 0.5
    hill = np.exp(-(((columns - x) / wide) ** 2 + ((rows - y) / high) ** 2) / 2)
    ground: Floats = (hill + 0.15 * rng.random((cells, cells))).astype(np.float32)
    return ground
