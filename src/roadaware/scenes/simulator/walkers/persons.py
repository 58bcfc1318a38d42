"""Persons: who is about on foot, what each is like, and where and with what in mind they begin."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from roadaware.scenes.simulator.config import Behaviour
from roadaware.scenes.simulator.people.statures import PEOPLE_MODELS, PersonModel
from roadaware.scenes.simulator.walkers.places import Place

_PACE = {"child": (1.15, 0.2), "young": (1.45, 0.18), "adult": (1.36, 0.16), "senior": (0.88, 0.14)}
"""Mean and spread of walking speeds, m/s."""
_CARE_S = {"child": 1.1, "young": 0.9, "adult": 1.3, "senior": 2.2}
"""Seconds to spare that somebody of middling boldness wants before the next vehicle."""
RUNNING = 0.03
PHONING = 0.12
SLOWEST_M_S, FASTEST_M_S = 0.6, 1.8


@dataclass(frozen=True)
class Person:
    """What does not change about somebody.

    Args:
        model: as `people` names them.
        age: child, young, adult or senior.
        size_m: length, width and height.
        look: seed of clothes.
        pace: they like to walk at, m/s.
        runs: whether they run.
        boldness: 0 waits for long gaps, 1 takes any.
        care_s: time to spare that they want before a vehicle comes.
        trust: times of arrival appear longer to them by this factor.
        delay_s: they must be sure for this long before they step out.
        patience_s: of waiting at a kerb.
        looks: whether they look for traffic before they step out.
        jaywalks: whether they would cross on red.
        quits: whether they give up rather than lower their demands when patience ends.
        phones: whether they hold a phone.
        wants: whether they want to cross.
        pushes: stroller or cart; None for neither.
        dog: whether a dog goes with them.
        guesses: (10,) how ten people who watch err when they guess what somebody wants.
        chance: in [0, 1), settles whether somebody who just passes is asked about.
    """

    model: str
    age: str
    size_m: tuple[float, float, float]
    look: int
    pace: float
    runs: bool = False
    boldness: float = 0.5
    care_s: float = 1.3
    trust: float = 1.0
    delay_s: float = 0.3
    patience_s: float = 20.0
    looks: bool = True
    jaywalks: bool = False
    quits: bool = False
    phones: bool = False
    wants: bool = False
    pushes: str | None = None
    dog: bool = False
    guesses: tuple[float, ...] = field(default=(0.0,) * 10, repr=False)
    chance: float = 0.5


@dataclass(frozen=True)
class Start:
    """Somebody and how they begin.

    Args:
        person: what they are like.
        band: number of the pavement.
        s: metres along it.
        u: metres from the kerb.
        way: 1 if they walk along the line of the band, -1 against it.
        place: where they cross, or stand; None for those who walk on.
        errand: walk, cross, later (cross when the own vehicle is near), linger (stand at the kerb without
            wanting to cross) or bus.
        rest_s: how long they stand before they set off.
        trigger_m: how near the own vehicle is when those with the errand `later` want to cross.
        leader: place in the list of starts of the one they walk with, -1 for none; leaders come first.
    """

    person: Person
    band: int
    s: float
    u: float
    way: int = 1
    place: Place | None = None
    errand: str = "walk"
    rest_s: float = 0.0
    trigger_m: float = 0.0
    leader: int = -1


def draw_person(
    rng: np.random.Generator, behaviour: Behaviour, wants: bool, ages: tuple[str, ...] = ()
) -> Person:
    """Somebody made up.

    Args:
        rng: draws everything.
        behaviour: of people in general.
        wants: whether they want to cross.
        ages: to choose from; all where empty.
    """
    models = [model for model in PEOPLE_MODELS if not ages or age_of(model) in ages]
    weights = np.array([model.weight for model in models])
    model = models[int(rng.choice(len(models), p=weights / weights.sum()))]
    age = age_of(model)
    mean, spread = _PACE[age]
    boldness = float(np.clip(rng.normal(behaviour.boldness, 0.18), 0.0, 1.0))
    grown = age in ("young", "adult")
    tall = float(rng.uniform(0.96, 1.04))
    length, width, height = model.size_m
    runs = bool(rng.random() < RUNNING and age != "senior")
    pace = float(np.clip(rng.normal(mean, spread), SLOWEST_M_S, FASTEST_M_S))
    pushes = str(rng.choice(["stroller", "cart"])) if rng.random() < 0.09 and grown and not runs else None
    looks = bool(rng.random() < behaviour.looking)
    return Person(
        model.name, age, (length, width, round(height * tall, 3)), int(rng.integers(2**31)),
        float(rng.uniform(2.3, 3.0)) if runs else pace,
        runs=runs, boldness=boldness, care_s=care_s(age, boldness), looks=looks,
        trust=float(np.clip(rng.normal(1.0, 0.08 if looks else 0.22), 0.5, 1.6)),
        delay_s=float(rng.uniform(0.15, 0.6)) if looks else float(rng.uniform(0.0, 0.2)),
        patience_s=float(rng.gamma(3.0, 4.0)), jaywalks=bool(rng.random() < 0.45 * boldness),
        quits=bool(rng.random() < 0.35),
        phones=bool(rng.random() < PHONING and grown and pushes is None and not runs), wants=wants,
        pushes=pushes, dog=bool(rng.random() < 0.05 and pushes is None and age != "child"),
        guesses=tuple(float(x) for x in rng.normal(0.0, 1.0, 10)), chance=float(rng.random()),
    )  # fmt: skip


def age_of(model: PersonModel) -> str:
    """The age group of a model."""
    return next((age for age in ("child", "young", "senior") if model.name.startswith(age)), "adult")


def care_s(age: str, boldness: float) -> float:
    """Seconds to spare before a vehicle comes that somebody wants.

    Args:
        age: child, young, adult or senior.
        boldness: 0 to 1.
    """
    return _CARE_S[age] * float(np.exp(1.6 * (0.5 - boldness)))
