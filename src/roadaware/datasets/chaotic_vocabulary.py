"""The words of Chaotic World as data: events, actions, interactions, sounds."""

from __future__ import annotations

from typing import Literal

Vocabulary = Literal["action", "interaction", "sound", "event"]

EVENT_CATEGORIES: tuple[str, ...] = (
    "earthquake",
    "flood",
    "hailstorm",
    "hurricane",
    "landslide",
    "tsunami",
    "volcanic_eruption",
    "accidents",
    "fires",
    "queue_chaos",
    "explosion",
    "fight",
    "quarrel",
    "gunshot_terrorist_attack",
    "protest_riot",
)
"""The fifteen kinds of event in the paper's order (section 2.1), as `videos.category` names them."""


ACTIONS_OFFICIAL: tuple[str, ...] = (
    "aiming weapon",
    "arguing",
    "arresting",
    "burning/setting fire",
    "carrying",
    "carrying casualty",
    "chanting/cheering",
    "chasing",
    "clapping",
    "creating barricade",
    "dancing",
    "destroying",
    "extinguishing fire",
    "fighting",
    "guarding",
    "hitting an object/smashing",
    "holding a burning stick",
    "holding flag",
    "holding hands",
    "holding signage",
    "holding weapon",
    "hugging",
    "injured",
    "kneeling",
    "painting",
    "pinning",
    "playing instrument",
    "praying",
    "pulling barricade",
    "punching",
    "pushing",
    "raising fist",
    "raising hands",
    "recording",
    "reporting live",
    "retreating",
    "running/escaping",
    "shooting/firing",
    "shouting",
    "singing",
    "speaking on stage",
    "speaking/talking",
    "spraying",
    "stealing/looting",
    "throwing object",
    "walking",
    "watching",
    "waving flag",
    "waving flarestick",
    "waving hands",
)
"""The fifty actions of the released files; the place is the id of the csv (0 to 49), label maps add one."""

ACTIONS_PAPER: dict[str, tuple[str, ...]] = {
    "aggressive": (
        "fighting",
        "hitting",
        "kicking",
        "pulling",
        "punching",
        "pushing",
        "shooting/firing",
        "throwing object",
    ),
    "destructive": ("burning/setting fire",),
    "criminal": ("stealing/looting",),
    "disruptive": ("creating barricade", "holding flarestick", "spraying aerosol"),
    "enforcement": ("arresting", "guarding", "pinning"),
    "life_saving": ("performing resuscitation", "carrying casualty", "extinguishing fire"),
    "movements": ("kneeling", "lying down", "retreating", "running/escaping", "squatting", "walking"),
    "verbal": ("arguing", "cheering/chanting", "praying", "shouting"),
    "non_aggressive": (
        "clapping",
        "dancing",
        "holding flag",
        "holding hands",
        "holding signage",
        "hugging",
        "playing instrument",
        "raising fist",
        "watching",
        "waving flag",
        "waving flarestick",
    ),
    "media": ("recording", "reporting live"),
}
"""The actions that the paper names, by its groups (section 2.2): examples, so not all of the fifty."""

ACTION_SYNONYMS: dict[str, str] = {
    "cheering/chanting": "chanting/cheering",
    "spraying aerosol": "spraying",
    "hitting": "hitting an object/smashing",
}
"""The paper's word to the official one where both mean one action."""

INTERACTIONS: dict[str, tuple[str, ...]] = {
    "aggressive": ("fighting", "kicking", "pulling", "pushing", "throwing objects at"),
    "enforcement": ("arresting",),
    "verbal": ("arguing with", "shouting at", "speaking to"),
    "movement": (
        "following after",
        "grabbing",
        "holding onto",
        "hugging",
        "running away from",
        "running towards",
        "running with",
    ),
    "non_aggressive": ("watching",),
    "media": ("recording",),
}
"""What one person does to another, by group (section 2.3)."""

SOUNDS: dict[str, tuple[str, ...]] = {
    "voice": (
        "arguing",
        "booing",
        "chanting/cheering",
        "crying",
        "shouting",
        "shouting for help",
        "singing",
        "speaking",
        "whistling",
    ),
    "hand_actions": ("clapping",),
    "equipment": ("airhorn", "buzzing of walkie-talkie"),
    "materials_objects": ("clanking (of metal)", "shattering", "sizzling"),
    "firearms_explosion": ("explosion", "flare", "gunshot/firing"),
    "musical": ("playing drums", "playing musical instruments", "trumpet"),
    "vehicles": (
        "crashing",
        "honking",
        "motorcycle engine",
        "siren (ambulance)",
        "siren (fire engine)",
        "siren (police)",
        "truck engine",
    ),
}
"""What is heard, by group (section 2.4)."""


_GROUPS: dict[Vocabulary, dict[str, tuple[str, ...]]] = {
    "action": ACTIONS_PAPER,
    "interaction": INTERACTIONS,
    "sound": SOUNDS,
}


def list_label_names(of: Vocabulary) -> tuple[str, ...]:
    """Every name of a vocabulary once, in its order; for actions the fifty, then those of the paper alone."""
    if of == "event":
        return EVENT_CATEGORIES
    grouped = [name for names in _GROUPS[of].values() for name in names]
    if of != "action":
        return tuple(grouped)
    known = {*ACTIONS_OFFICIAL, *ACTION_SYNONYMS}
    return ACTIONS_OFFICIAL + tuple(name for name in grouped if name not in known)


def find_canonical_name(name: str, of: Vocabulary) -> str | None:
    """The vocabulary's own spelling of a name, whatever its case, spaces and underscores; None if unknown.

    >>> find_canonical_name("Cheering/Chanting ", "action"), find_canonical_name("volcanic eruption", "event")
    ('chanting/cheering', 'volcanic_eruption')
    """
    spelled = {_fold_case(known): known for known in list_label_names(of)}
    if of == "action":
        spelled |= {_fold_case(word): official for word, official in ACTION_SYNONYMS.items()}
    return spelled.get(_fold_case(name))


def _fold_case(name: str) -> str:
    return " ".join(name.replace("_", " ").casefold().split())
