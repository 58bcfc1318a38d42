"""Words: short descriptions of people by age, clothes and bags, that tell those of a scene apart."""

from __future__ import annotations

import colorsys

import numpy as np

from roadaware.scenes.simulator.actors import Actor

_HUES = (
    (0.04, "red"),
    (0.105, "orange"),
    (0.18, "yellow"),
    (0.44, "green"),
    (0.69, "blue"),
    (0.84, "purple"),
    (0.95, "pink"),
    (1.01, "red"),
)
"""Where the names of hues end on the circle."""
_GREYS = ((0.22, "black"), (0.42, "dark grey"), (0.68, "grey"), (0.84, "light grey"), (1.01, "white"))


def colour_word(colour: tuple[float, float, float]) -> str:
    """What people call a colour.

    Args:
        colour: linear, 0 to 1.

    >>> colour_word((0.40, 0.03, 0.035)), colour_word((0.015, 0.015, 0.018)), colour_word((0.36, 0.22, 0.12))
    ('red', 'black', 'brown')
    """
    red, green, blue = (np.clip(colour, 0.0, 1.0) ** (1 / 2.2)).tolist()
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    if saturation < 0.14 or value < 0.17:
        return next(name for end, name in _GREYS if value < end)
    name = next(name for end, name in _HUES if hue < end)
    if name == "orange" and (value < 0.8 or saturation < 0.6):
        return "brown" if value < 0.72 else "beige"
    if name == "red" and value > 0.7 and saturation < 0.5:
        return "pink"
    return f"dark {name}" if value < 0.42 and name in ("blue", "green", "red") else name


def descriptions(actors: list[Actor]) -> list[str]:
    """For each person a description, with as few words as tell them from everybody else.

    Args:
        actors: people.
    """
    parts = [_parts(actor) for actor in actors]
    taken = [1] * len(parts)
    texts = [_text(own, n) for own, n in zip(parts, taken, strict=True)]
    for _ in range(max((len(own) for own in parts), default=0)):
        doubled = [k for k, text in enumerate(texts) if texts.count(text) > 1]
        for k in doubled:
            taken[k] = min(len(parts[k]) - 1, taken[k] + 1)
            texts[k] = _text(parts[k], taken[k])
    return texts


def _text(parts: list[str], n: int) -> str:
    """Who, what they wear on top, and n - 1 more things."""
    more = parts[2 : n + 1]
    joined = ", ".join(more[:-1]) + (" and " if len(more) > 1 else "") + (more[-1] if more else "")
    return f"{parts[0]} in {parts[1]}" + (f" with {joined}" if joined else "")


def known(description: str) -> str:
    """A description of somebody who has been spoken of: the man in the red coat.

    >>> known("man in a red coat with a black backpack")
    'man in the red coat with a black backpack'
    """
    return description.replace(" in a ", " in the ", 1).replace(" in an ", " in the ", 1)


def _parts(actor: Actor) -> list[str]:
    """Who somebody is, what they wear on top, and more from what is seen best to what is seen least."""
    from roadaware.scenes.simulator.people import tell
    from roadaware.scenes.simulator.people.bodies import looks_of

    told, worn = tell(actor, actor.first), looks_of(actor).outfit
    top = told["top"].removeprefix("a ").removeprefix("long ")
    found = [_who(actor), "a high-visibility vest" if worn.vest else _garment(worn.top_colour, top)]
    if worn.bag in ("backpack", "handbag"):
        found.append(_garment(worn.bag_colour, worn.bag))
    if "hat" in told and worn.hat != "none":
        found.append(_garment(worn.hat_colour, told["hat"].removeprefix("a ")))
    if told.get("bottom") == "a skirt":
        found.append(_garment(worn.bottom_colour, "skirt"))
    elif "bottom" in told:
        found.append(f"{colour_word(worn.bottom_colour)} {told['bottom']}")
    if worn.hat == "none" and worn.hair != "bald":
        found.append(f"{_hair(worn.hair_colour)} hair")
    return found


def _who(actor: Actor) -> str:
    from roadaware.scenes.simulator.people.bodies import looks_of
    from roadaware.scenes.simulator.people.statures import age_of

    age, worn = age_of(actor.model), looks_of(actor).outfit
    if age == "child":
        return "child"
    woman = worn.hair in ("long", "tail", "bun") or worn.bottom == "skirt"
    noun = "man" if worn.figure == "broad" and not woman else "woman" if woman else "person"
    return {"young": f"young {noun}", "senior": f"elderly {noun}"}.get(age, noun)


def _garment(colour: tuple[float, float, float], thing: str) -> str:
    word = colour_word(colour)
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word} {thing}"


def _hair(colour: tuple[float, float, float]) -> str:
    red, _, blue = colour
    if red > 0.36 and blue > 0.3:
        return "grey"
    return "fair" if red > 0.26 else "red" if red > 0.18 else "brown" if red > 0.03 else "black"
