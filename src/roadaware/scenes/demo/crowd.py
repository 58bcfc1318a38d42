"""A seeded crowd in trouble: who is where, does what, to whom, and is heard; one world behind four tasks."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats

WIDTH, HEIGHT, FPS, FRAMES = 640, 360, 10, 200
CATEGORIES = ("fires", "fight", "flood", "protest_riot", "queue_chaos", "quarrel")
_PAIRS = {
    "fighting": ("punching", "punching", 0.6),
    "pushing": ("pushing", "retreating", 0.8),
    "arguing with": ("arguing", "arguing", 1.2),
    "hugging": ("hugging", "hugging", 0.5),
    "running away from": ("running/escaping", "chasing", 2.0),
    "following after": ("walking", "walking", 1.8),
}
"""Interaction to what its subject and its object do meanwhile, and how many widths stand between them."""
_ALONE = ("walking", "watching", "recording", "holding signage", "running/escaping", "chanting/cheering")
_CLOTHES = ("red jacket", "blue shirt", "black hoodie", "white T-shirt", "green coat", "grey suit")
_HEARD = {"arguing": "arguing", "chanting/cheering": "chanting/cheering", "punching": "shouting"}
_LONGEST_BOND = 120


@dataclass(frozen=True)
class Deed:
    """What somebody does from one frame to another, half open."""

    action: str
    start: int
    end: int


@dataclass(frozen=True)
class Person:
    """One person of a video.

    Args:
        number: within the video.
        clothes: what a sentence tells them by.
        start: first frame.
        boxes: (n, 4) in pixels, one per frame from `start` on.
        deeds: what they do; they may overlap.
    """

    number: int
    clothes: str
    start: int
    boxes: Floats
    deeds: list[Deed] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The frame after the last."""
        return self.start + len(self.boxes)

    def at(self, frame: int) -> Floats:
        """(4,) the box in a frame in which they are seen."""
        box: Floats = self.boxes[frame - self.start]
        return box

    def doing(self, frame: int) -> list[str]:
        """Everything they do in a frame, each once."""
        return list(dict.fromkeys(deed.action for deed in self.deeds if deed.start <= frame < deed.end))


@dataclass(frozen=True)
class Bond:
    """What one person does to another, half open."""

    subject: int
    predicate: str
    object: int
    start: int
    end: int


@dataclass(frozen=True)
class Crowd:
    """One video of `FRAMES` frames.

    Args:
        video: its name.
        category: what happens in it as a whole.
        persons: by their numbers.
        bonds: between them.
    """

    video: str
    category: str
    persons: list[Person]
    bonds: list[Bond]

    def heard(self, frame: int) -> tuple[str, Person] | None:
        """What is heard in a frame and who makes it: the first who does something loud."""
        for person in self.persons:
            if person.start <= frame < person.end:
                for action in person.doing(frame):
                    if action in _HEARD:
                        return _HEARD[action], person
        return None


def crowds(videos: int, rng: np.random.Generator) -> list[Crowd]:
    """Several videos; each has one or two pairs of people who deal with each other, and others who do not.

    Args:
        videos: how many.
        rng: where chance comes from.
    """
    return [_crowd(f"crowd-{number:02d}", rng) for number in range(1, videos + 1)]


def _crowd(video: str, rng: np.random.Generator) -> Crowd:
    persons: list[Person] = []
    bonds: list[Bond] = []
    for _ in range(int(rng.integers(1, 4))):
        predicate = str(rng.choice(list(_PAIRS)))
        first, second, bond = _pair(len(persons), predicate, rng)
        persons += [first, second]
        bonds.append(bond)
    for _ in range(int(rng.integers(1, 5))):
        person = _passer_by(len(persons), rng)
        persons.append(person)
        seen = [b for b in bonds if b.start >= person.start and b.end <= person.end]
        if seen and rng.random() < 0.7:
            bond = seen[int(rng.integers(len(seen)))]
            person.deeds.append(Deed("watching", bond.start, bond.end))
            bonds.append(Bond(person.number, "watching", bond.subject, bond.start, bond.end))
    return Crowd(video, str(rng.choice(CATEGORIES)), persons, bonds)


def _pair(number: int, predicate: str, rng: np.random.Generator) -> tuple[Person, Person, Bond]:
    """Two people who meet, and what goes on between them for a part of their time."""
    ours, theirs, gap = _PAIRS[predicate]
    start, length = int(rng.integers(0, 20)), int(rng.integers(120, 180))
    path = _path(length, rng)
    width = path[0, 2] - path[0, 0]
    beside = path + np.array([gap * width, 0.0, gap * width, 0.0]) + rng.normal(0, 0.4, path.shape)
    first = int(rng.integers(start, start + length - 60))
    last = int(rng.integers(first + 30, min(start + length, first + _LONGEST_BOND)))
    people = []
    for offset, (boxes, action) in enumerate(((path, ours), (beside, theirs))):
        deeds = [
            Deed("walking", start, first),
            Deed(action, first, last),
            Deed("watching", last, start + length),
        ]
        people.append(Person(number + offset, str(rng.choice(_CLOTHES)), start, _inside(boxes), deeds))
    return people[0], people[1], Bond(number, predicate, number + 1, first, last)


def _passer_by(number: int, rng: np.random.Generator) -> Person:
    start, length = int(rng.integers(0, 40)), int(rng.integers(60, 160))
    deeds = [Deed(str(rng.choice(_ALONE)), start, start + length)]
    if rng.random() < 0.4:
        deeds.append(Deed(str(rng.choice(_ALONE)), start + length // 3, start + length))
    return Person(number, str(rng.choice(_CLOTHES)), start, _inside(_path(length, rng)), deeds)


def _path(length: int, rng: np.random.Generator) -> Floats:
    """(length, 4) a person who walks, wavers and comes nearer or goes away."""
    height = rng.uniform(60, 170) * np.linspace(1, rng.uniform(0.8, 1.25), length)
    width = 0.42 * height
    x = rng.uniform(60, WIDTH - 240) + np.linspace(0, rng.uniform(-80, 160), length)
    y = rng.uniform(170, 250) + np.linspace(0, rng.uniform(-30, 50), length)
    sway = 3 * np.sin(np.arange(length) / rng.uniform(3, 6))
    corners = [x + sway - width / 2, y - height / 2, x + sway + width / 2, y + height / 2]
    path: Floats = np.stack(corners, axis=1)
    return path


def _inside(boxes: Floats) -> Floats:
    """The boxes rounded to tenths and cut to the picture; at least two pixels stay."""
    cut = np.empty_like(boxes)
    for side, most in ((0, WIDTH), (1, HEIGHT)):
        cut[:, side] = np.clip(boxes[:, side], 0, most - 2)
        cut[:, side + 2] = np.clip(boxes[:, side + 2], cut[:, side] + 2, most)
    rounded: Floats = np.round(cut, 1)
    return rounded
