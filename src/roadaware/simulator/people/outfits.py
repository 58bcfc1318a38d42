"""Skin, hair, clothes and bags of a person, drawn from the seed of their look, and the things that people
carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeVar

import numpy as np

from roadaware.simulator.people.statures import Age, Figure

Colour = tuple[float, float, float]
T = TypeVar("T", bound=str)
Hair = Literal["short", "long", "tail", "bun", "bald"]
Top = Literal["shirt", "t-shirt", "hoodie", "jacket", "coat", "dress"]
Bottom = Literal["trousers", "shorts", "skirt"]
Hat = Literal["none", "cap", "woolly", "brimmed", "helmet", "visor"]
Bag = Literal["none", "backpack", "handbag", "shopping"]

_SKIN: tuple[Colour, ...] = (
    (0.62, 0.40, 0.30),
    (0.56, 0.34, 0.24),
    (0.46, 0.26, 0.17),
    (0.33, 0.17, 0.10),
    (0.20, 0.10, 0.06),
    (0.11, 0.055, 0.035),
)
_HAIR: tuple[Colour, ...] = (
    (0.010, 0.008, 0.007),
    (0.035, 0.020, 0.012),
    (0.10, 0.05, 0.025),
    (0.30, 0.19, 0.08),
    (0.22, 0.07, 0.03),
)
_GREY: Colour = (0.42, 0.42, 0.42)
_CLOTH: tuple[Colour, ...] = (
    (0.015, 0.015, 0.018),
    (0.07, 0.07, 0.075),
    (0.25, 0.25, 0.26),
    (0.72, 0.71, 0.68),
    (0.02, 0.035, 0.11),
    (0.05, 0.14, 0.36),
    (0.40, 0.03, 0.035),
    (0.05, 0.18, 0.07),
    (0.55, 0.34, 0.05),
    (0.36, 0.22, 0.12),
    (0.52, 0.26, 0.34),
    (0.16, 0.05, 0.20),
)
_LEGS: tuple[Colour, ...] = (
    (0.02, 0.03, 0.075),
    (0.045, 0.075, 0.17),
    (0.014, 0.014, 0.016),
    (0.09, 0.09, 0.09),
    (0.30, 0.24, 0.15),
    (0.13, 0.09, 0.06),
)
_SHOES: tuple[Colour, ...] = (
    (0.012, 0.011, 0.011),
    (0.07, 0.035, 0.02),
    (0.65, 0.65, 0.63),
    (0.3, 0.04, 0.04),
)
_HELMETS: tuple[Colour, ...] = (
    (0.75, 0.75, 0.74),
    (0.02, 0.02, 0.022),
    (0.55, 0.03, 0.03),
    (0.03, 0.12, 0.5),
    (0.75, 0.6, 0.03),
)
HIGH_VISIBILITY: Colour = (0.62, 0.85, 0.06)


@dataclass(frozen=True)
class Outfit:
    """Outfit of a person; colours are linear.

    Args:
        figure: broad or slim.
        skin: colour.
        hair: style.
        hair_colour: of it.
        top: what covers the trunk.
        top_colour: of it.
        bottom: what covers the legs.
        bottom_colour: of it.
        shoes: colour.
        hat: on the head.
        hood: whether a hood is up.
        hat_colour: of hat, helmet and umbrella.
        bag: that is carried.
        bag_colour: of it.
        vest: whether a high-visibility vest is worn.
        stick: whether a walking stick is used.
        cuffs: whether bright gloves and sleeves show the arms, as cyclists wear them to signal.
    """

    figure: Figure
    skin: Colour
    hair: Hair
    hair_colour: Colour
    top: Top
    top_colour: Colour
    bottom: Bottom
    bottom_colour: Colour
    shoes: Colour
    hat: Hat
    hood: bool
    hat_colour: Colour
    bag: Bag
    bag_colour: Colour
    vest: bool
    stick: bool
    cuffs: bool = False


@lru_cache(maxsize=1024)
def sample_outfit(look: int, age: Age, figure: Figure, rides: str = "") -> Outfit:
    """Sample the outfit of a person.

    Args:
        look: seed of it.
        age: age group.
        figure: broad or slim.
        rides: kind of the machine they ride, "" for people on foot.
    """
    # Seeds may not be negative.
    rng = np.random.default_rng([look & 0xFFFFFFFF, 7])
    slim = figure == "slim"
    top, bottom = _clothes(rng, age, slim, rides)
    hair: Hair = _pick(rng, ("short", "long", "tail", "bun"), (1, 5, 3, 1) if slim else (12, 1, 0, 0))
    grey = age == "senior" and rng.random() < 0.85
    hair_colour = _GREY if grey else _HAIR[rng.integers(len(_HAIR))]
    if not slim and age in ("adult", "senior") and rng.random() < (0.4 if age == "senior" else 0.12):
        hair = "bald"
    hat: Hat = _pick(rng, ("none", "cap", "woolly", "brimmed"), (12, 3, 2, 2 if age == "senior" else 0))
    if rides:
        helmet = rng.random() < 0.75
        hat = "visor" if rides == "Mobike" else "helmet" if helmet else hat
    bag: Bag = _pick(rng, ("none", "backpack", "handbag", "shopping"), (8, 5, 5 if slim else 0, 3))
    if rides or age == "child":
        bag = "backpack" if bag == "backpack" else "none"
    top_colour, bottom_colour = _CLOTH[rng.integers(len(_CLOTH))], _LEGS[rng.integers(len(_LEGS))]
    hats = _HELMETS if hat in ("helmet", "visor") else _CLOTH
    return Outfit(
        figure=figure,
        skin=_SKIN[rng.integers(len(_SKIN))],
        hair=hair,
        hair_colour=hair_colour,
        top=top,
        top_colour=_sample_colour_shift(rng, top_colour),
        bottom=bottom,
        bottom_colour=_sample_colour_shift(
            rng, _CLOTH[rng.integers(len(_CLOTH))] if bottom == "skirt" else bottom_colour
        ),
        shoes=_SHOES[rng.integers(len(_SHOES))],
        hat=hat,
        hood=top == "hoodie" and hat == "none" and rng.random() < 0.3,
        hat_colour=_sample_colour_shift(rng, hats[rng.integers(len(hats))]),
        bag=bag,
        bag_colour=_sample_colour_shift(rng, _CLOTH[rng.integers(len(_CLOTH))]),
        vest=bool(rng.random() < (0.3 if rides else 0.05)) and age != "child",
        stick=age == "senior" and not rides and rng.random() < 0.5,
        cuffs=rides == "Cyc",
    )


def _clothes(rng: np.random.Generator, age: Age, slim: bool, rides: str) -> tuple[Top, Bottom]:
    tops: tuple[Top, ...] = ("shirt", "t-shirt", "hoodie", "jacket", "coat", "dress")
    shares = {
        "child": (3, 4, 4, 3, 0, 2 if slim else 0),
        "young": (3, 4, 6, 4, 1, 2 if slim else 0),
        "adult": (4, 4, 2, 5, 3, 2 if slim else 0),
        "senior": (4, 1, 0, 5, 5, 1 if slim else 0),
    }[age]
    top = _pick(rng, tops, (3, 3, 2, 4, 0, 0) if rides else shares)
    bottoms: tuple[Bottom, ...] = ("trousers", "shorts", "skirt")
    short = 3 if age in ("child", "young") else 1
    bottom = _pick(rng, bottoms, (10, short, 0) if rides or not slim else (7, short, 4))
    if top == "dress":
        bottom = "skirt"
    if rides == "Mobike":
        top, bottom = "jacket", "trousers"
    return top, "trousers" if top == "coat" and bottom == "shorts" else bottom


def _pick(rng: np.random.Generator, names: tuple[T, ...], shares: tuple[int, ...]) -> T:
    total = np.cumsum(shares)
    return names[int(np.searchsorted(total, rng.integers(total[-1]), side="right"))]


def _sample_colour_shift(rng: np.random.Generator, colour: Colour) -> Colour:
    red, green, blue = (np.array(colour) * rng.uniform(0.75, 1.25) * rng.uniform(0.92, 1.08, 3)).tolist()
    return red, green, blue
