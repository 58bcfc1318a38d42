"""Sentences about a staged crowd: statements, requests, questions, passives, places and sequences in many words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roadaware.simulator.actors import Actor
from roadaware.simulator.chaos.crowd import Ground, describe_actors, format_definite_description
from roadaware.simulator.chaos.play import PREFIX
from roadaware.simulator.episode import Bond, Sentence

LEAST_S = 1.0
"""Nothing shorter is spoken of."""
MOST_EACH = 4
"""Sentences about one person, questions apart."""
_NEXT_S = 1.2
"""What begins no later after the last is a part of the same story."""
DEEDS: Mapping[str, tuple[str, ...]] = {
    "shooting/firing": ("fires a gun", "shoots", "lets off several shots"),
    "aiming weapon": ("aims a gun", "points a rifle", "takes aim with a weapon"),
    "arresting": ("makes an arrest", "takes somebody into custody", "detains a suspect"),
    "burning/setting fire": ("sets a bin on fire", "lights a fire in a dustbin", "torches a rubbish bin"),
    "carrying casualty": (
        "helps to carry an injured person",
        "carries a casualty",
        "bears off somebody who is hurt",
    ),
    "pinning": ("pins a person to the ground", "holds somebody down", "presses another person onto the road"),
    "extinguishing fire": ("puts out a fire", "extinguishes the flames", "douses a blaze"),
    "destroying": ("smashes something in the street", "wrecks property", "demolishes something"),
    "hitting an object/smashing": (
        "beats on an object",
        "hammers on something with both fists",
        "hits something hard",
    ),
    "creating barricade": (
        "builds a barricade",
        "pushes something into the street as a barricade",
        "blocks the road",
    ),
    "pulling barricade": ("pulls a barricade away", "drags an obstacle off the road", "clears a barricade"),
    "stealing/looting": ("steals goods", "takes what belongs to somebody else", "loots a suitcase or a cart"),
    "spraying": ("sprays paint", "sprays something from a can", "holds out a spray can"),
    "painting": ("paints with a brush", "brushes paint on something", "paints strokes up and down"),
    "playing instrument": ("plays an instrument", "makes music", "performs on an instrument"),
    "singing": ("sings", "sings a song into a microphone", "performs a song"),
    "speaking on stage": ("speaks on a stage", "gives a speech from a platform", "addresses the crowd"),
    "reporting live": (
        "reports live",
        "speaks to a camera as a reporter",
        "presents the news from the street",
    ),
    "praying": ("prays", "stands in prayer", "bows in prayer with folded hands"),
    "holding hands": ("holds hands with somebody", "walks hand in hand", "goes along holding another hand"),
    "holding weapon": ("holds a weapon", "is armed", "carries a weapon in the hands"),
    "injured": ("lies injured on the ground", "lies hurt in the road", "is down on the ground wounded"),
    "waving flarestick": ("waves a burning flare", "swings a flare", "brandishes a lit flare"),
    "holding a burning stick": (
        "holds a burning stick",
        "carries a lit torch",
        "has a burning flare in one hand",
    ),
    "throwing object": ("throws stones", "hurls objects", "flings something"),
    "fighting": ("fights", "brawls", "is in a scuffle"),
    "punching": ("throws punches", "strikes with the fists", "boxes"),
    "pushing": ("pushes somebody", "shoves another person", "gives somebody a push"),
    "waving flag": ("waves a flag", "swings a flag to and fro", "lets a flag fly"),
    "holding flag": ("holds a flag", "carries a flag", "has a banner on a pole"),
    "holding signage": ("holds up a sign", "shows a placard", "carries a board with writing"),
    "hugging": ("hugs somebody", "embraces another person", "has both arms round somebody"),
    "kneeling": ("kneels on the ground", "goes down on one knee", "crouches on a knee"),
    "chasing": ("runs after somebody", "gives chase", "is in pursuit"),
    "carrying": ("carries something away", "lugs something along", "makes off with luggage"),
    "raising fist": ("raises a fist", "holds a clenched fist up", "pumps a fist in the air"),
    "clapping": ("claps", "applauds", "claps both hands"),
    "dancing": ("dances", "moves to a rhythm", "sways and dances"),
    "raising hands": ("holds both hands up", "raises both hands in surrender", "puts the hands in the air"),
    "guarding": ("stands guard", "keeps watch", "guards the street"),
    "arguing": ("argues", "quarrels", "disputes loudly"),
    "chanting/cheering": ("chants", "cheers", "shouts slogans"),
    "recording": ("films with a phone", "records a video", "takes a recording"),
    "retreating": ("ducks and backs away", "retreats", "cowers and steps back"),
    "running/escaping": ("runs away", "flees", "dashes off"),
    "shouting": ("shouts", "yells with a hand at the mouth", "calls out loudly"),
    "waving hands": ("waves a hand", "waves", "signals with an arm"),
    "speaking/talking": ("talks", "speaks", "has a conversation"),
    "watching": ("watches", "looks on", "observes what happens"),
    "walking": ("walks", "goes along the street", "strolls"),
}
"""What is said of an action, the more notable first."""
BONDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "arresting": (("arrests", "takes into custody"), ("is arrested by", "is taken into custody by")),
    "kicking": (("kicks", "lands a kick on"), ("is kicked by", "takes a kick from")),
    "fighting": (("fights with", "brawls with"), ("is attacked by", "is in a fight with")),
    "pulling": (("pulls away", "drags off", "tugs at"), ("is pulled away by", "is dragged off by")),
    "pushing": (("pushes", "shoves"), ("is pushed by", "is shoved by")),
    "throwing objects at": (("throws stones at", "hurls things at"), ("is pelted by", "is the target of")),
    "grabbing": (("grabs", "seizes"), ("is grabbed by", "is seized by")),
    "running away from": (
        ("runs away from", "flees from", "escapes from"),
        ("is fled by", "is left behind by"),
    ),
    "following after": (("follows after", "goes after", "pursues"), ("is followed by", "is pursued by")),
    "running towards": (("runs towards", "rushes to"), ("is approached at a run by", "is rushed at by")),
    "holding onto": (("holds on to", "keeps hold of"), ("is held by", "is held on to by")),
    "hugging": (("hugs", "embraces"), ("is hugged by", "is embraced by")),
    "shouting at": (("shouts at", "yells at"), ("is shouted at by", "is yelled at by")),
    "arguing with": (("argues with", "quarrels with"), ("is argued with by", "is scolded by")),
    "speaking to": (("speaks to", "talks to", "addresses"), ("is spoken to by", "is addressed by")),
    "recording": (("films", "records"), ("is filmed by", "is recorded by")),
    "running with": (("runs beside", "runs along with"), ("is accompanied at a run by",)),
    "watching": (("watches", "looks at", "observes"), ("is watched by", "is observed by")),
}
"""What is said of an interaction of who does it, and of whom it is done to; the more notable first."""
_SYNONYMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("backpack", ("backpack", "rucksack")),
    ("handbag", ("handbag", "purse")),
    ("hoodie", ("hoodie", "hooded top")),
    ("trousers", ("trousers", "pants")),
    ("T-shirt", ("T-shirt", "tee")),
    ("coat", ("coat", "overcoat")),
    ("jacket", ("jacket", "anorak")),
    ("woolly hat", ("woolly hat", "knitted hat", "beanie")),
    ("cap", ("cap", "baseball cap")),
    ("high-visibility vest", ("high-visibility vest", "reflective vest", "safety vest")),
    ("dark blue", ("dark blue", "navy")),
    ("dark red", ("dark red", "maroon")),
    ("purple", ("purple", "violet")),
    ("beige", ("beige", "sand-coloured")),
    ("dark grey", ("dark grey", "charcoal")),
    ("light grey", ("light grey", "pale grey")),
    ("fair hair", ("fair hair", "blond hair")),
    ("elderly", ("elderly", "old")),
    ("young man", ("young man", "youth")),
    ("child", ("child", "kid", "youngster")),
    ("person", ("person", "pedestrian")),
    ("woman", ("woman", "lady")),
)
"""Words of descriptions that are replaced by others, which mean the same in every scene."""
_SIDES = {-1: ("On the right,", "On the right-hand side,"), 0: ("In the middle,", "In the centre of the picture,"),
          1: ("On the left,", "On the left-hand side,")}  # fmt: skip
_REQUESTS = ("Find the {who} who {does}.", "Show the {who} who {does}.", "Where is the {who} who {does}?",
             "Look for the {who} who {does}.")  # fmt: skip
_STATEMENTS = (
    "{A} {who} {does}.",
    "{A} {who} {does}.",
    "There is {a} {who} who {does}.",
    "One sees {a} {who} who {does}.",
)


@dataclass(frozen=True)
class Event:
    """Something that somebody does or that is done to them; `other` is who else takes part, None for nobody."""

    rank: int
    start: int
    end: int
    actor: int
    name: str
    other: int | None = None
    passive: bool = False


def generate_varied_sentences(
    actors: list[Actor], bonds: tuple[Bond, ...], fps: float, ground: Ground, rng: np.random.Generator
) -> tuple[Sentence, ...]:
    """Sentences about who does what to whom, where and when, each true of one person in its span alone.

    Args:
        actors: the people, by number.
        bonds: between them.
        fps: frames per second.
        ground: tells left from right.
        rng: chooses forms and words.
    """
    plain = describe_actors(actors)
    known = Counter(plain)
    words = [_reword(text, rng) for text in plain]
    least = max(1, round(LEAST_S * fps))
    deeds = [event for actor in actors for event in _list_deeds(actor)]
    found: list[Sentence] = []
    for actor in actors:
        # Of two who look alike in every word nothing can be said that is true of one alone.
        if known[plain[actor.number]] > 1:
            continue
        kept = _choose_events(actor.number, deeds, bonds, least)
        for k, event in enumerate(kept):
            later = next(
                (each for each in kept[k + 1 :] if 0 <= each.start - event.end < _NEXT_S * fps), None
            )
            found += _tell(event, later, actor, words, known, plain, ground, rng)
            if (
                event.other is None
                and not event.passive
                and all(each.actor == event.actor for each in deeds if each.name == event.name)
            ):
                does = _pick(DEEDS[event.name], rng)
                start, end = event.start, event.end
                found.append(Sentence(f"Who {does}?", actor.number, start, end, "interrogative", "question"))
    meant: dict[str, set[int]] = {}
    for each in found:
        meant.setdefault(each.text, set()).add(each.actor)
    kept_sentences = {(each.text, each.start): each for each in found if len(meant[each.text]) == 1}
    return tuple(
        sorted(kept_sentences.values(), key=lambda each: (each.start, each.actor, each.kind, each.text))
    )


def _list_deeds(actor: Actor) -> list[Event]:
    found = []
    for rank, name in enumerate(DEEDS):
        on = actor.facts.get(PREFIX + name)
        if on is not None:
            edges = np.flatnonzero(np.diff(np.concatenate([[0], on != 0, [0]]).astype(np.int8)))
            for start, end in (edges.reshape(-1, 2) + actor.first).tolist():
                found.append(Event(100 + rank, start, end, actor.number, name))
    return found


def _choose_events(number: int, deeds: list[Event], bonds: tuple[Bond, ...], least: int) -> list[Event]:
    """The most notable events of somebody by time, none of them at the time of a more notable one."""
    ranks = list(BONDS)
    every = [event for event in deeds if event.actor == number]
    for bond in bonds:
        rank = ranks.index(bond.predicate) + (60 if bond.predicate != "watching" else 200)
        if bond.subject == number:
            every.append(Event(rank, bond.start, bond.end, number, bond.predicate, bond.object))
        elif bond.object == number:
            every.append(Event(rank + 45, bond.start, bond.end, number, bond.predicate, bond.subject, True))
    kept: list[Event] = []
    for each in sorted(every, key=lambda one: (one.rank, one.start, one.end, one.other or 0)):
        clear = all(min(each.end, one.end) - max(each.start, one.start) < 0.3 * least for one in kept)
        if clear and each.end - each.start >= least:
            kept.append(each)
    return sorted(kept[:MOST_EACH], key=lambda one: (one.start, one.end))


def _tell(
    event: Event,
    later: Event | None,
    actor: Actor,
    words: list[str],
    known: Counter[str],
    plain: list[str],
    ground: Ground,
    rng: np.random.Generator,
) -> list[Sentence]:
    """One sentence in a form that is drawn, and where somebody else takes part perhaps a question."""
    who, number = words[actor.number], actor.number
    does = _phrase(event, words, known, plain, rng)
    drawn = float(rng.random())
    span, kind = (event.start, event.end), "declarative"
    after = None if later is None else _phrase(later, words, known, plain, rng)
    side = _find_side(actor, event, ground)
    if drawn < 0.2 and later is not None and after is not None and does is not None:
        text, form = f"{_cap(who)} {does} and then {after}.", "sequence"
        span = (event.start, later.end)
    elif does is None:
        return []
    elif drawn < 0.4 and side is not None:
        text, form = f"{_pick(_SIDES[side], rng)} {_article(who)} {who} {does}.", "place"
    elif drawn < 0.6:
        text = _pick(_REQUESTS, rng).format(who=format_definite_description(f"{who}"), does=does)
        kind, form = ("interrogative" if text.endswith("?") else "declarative"), "request"
    else:
        text = _pick(_STATEMENTS, rng).format(
            A=_article(who).capitalize(), a=_article(who), who=who, does=does
        )
        form = "passive" if event.passive else "statement"
    found = [Sentence(text, number, *span, kind, form)]
    if event.other is not None and rng.random() < 0.5:
        start, end = event.start, event.end
        found.append(Sentence(f"Who {does}?", number, start, end, "interrogative", "question"))
    return found


def _phrase(
    event: Event, words: list[str], known: Counter[str], plain: list[str], rng: np.random.Generator
) -> str | None:
    """What somebody does, with whom; None where the other one cannot be told from somebody else."""
    if event.other is None:
        return _pick(DEEDS[event.name], rng)
    verbs = BONDS[event.name][1 if event.passive else 0]
    verb = _pick(verbs, rng)
    if known[plain[event.other]] > 1:
        return None
    return f"{verb} the {format_definite_description(words[event.other])}"


def _find_side(actor: Actor, event: Event, ground: Ground) -> int | None:
    """1 for left, 0 for the middle, -1 for right while something happens; None where it changes."""
    rows = np.arange(max(event.start, actor.first), min(event.end, actor.end)) - actor.first
    x, y = ground.local(actor.position[rows, :2]).T
    at = y / np.maximum(ground.slope * np.maximum(x, 0.5), 1e-6)
    if len(at) and (np.abs(at) < 1.0).all():
        for side, held in ((1, at > 0.36), (-1, at < -0.36), (0, np.abs(at) < 0.3)):
            if held.all():
                return side
    return None


def _reword(text: str, rng: np.random.Generator) -> str:
    """A description in other words of the same meaning."""
    for word, others in _SYNONYMS:
        if re.search(rf"\b{re.escape(word)}\b", text):
            text = re.sub(rf"\b{re.escape(word)}\b", _pick(others, rng), text)
    if rng.random() < 0.3:
        text = text.replace(" in a ", " wearing a ", 1).replace(" in an ", " wearing an ", 1)
    # A new word may need another article.
    return re.sub(r"\b(an?) (?=(\w))", lambda m: "an " if m[2] in "aeio" else "a ", text)


def _article(words: str) -> str:
    return "an" if words[0] in "aeio" else "a"


def _cap(words: str) -> str:
    """A description with its article, as a sentence begins."""
    return f"{_article(words).capitalize()} {words}"


def _pick(options: tuple[str, ...], rng: np.random.Generator) -> str:
    return options[int(rng.integers(len(options)))]
