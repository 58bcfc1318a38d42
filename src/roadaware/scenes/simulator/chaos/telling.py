"""Telling: sentences about each notable deed of each person, out of what can be seen of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from roadaware.scenes.simulator.actors import Actor
from roadaware.scenes.simulator.chaos.deeds import PREFIX
from roadaware.scenes.simulator.chaos.words import descriptions, known
from roadaware.scenes.simulator.episode import Bond, Sentence

_LEAST_S = 1.0
_MOST_EACH = 4
_DEEDS: Mapping[str, str] = {
    "arresting": "makes an arrest",
    "burning/setting fire": "sets a bin on fire",
    "carrying casualty": "helps to carry an injured person",
    "pinning": "pins a person to the ground",
    "extinguishing fire": "puts out a fire",
    "hitting an object/smashing": "smashes something in the street",
    "creating barricade": "pushes something into the street as a barricade",
    "pulling barricade": "pulls a barricade away",
    "stealing/looting": "takes goods that belong to somebody else",
    "holding weapon": "threatens somebody with a club",
    "injured": "lies injured on the ground",
    "waving flarestick": "waves a burning flare",
    "throwing object": "throws stones",
    "punching": "throws punches",
    "pushing": "pushes somebody",
    "waving flag": "waves a flag",
    "holding signage": "holds up a sign",
    "hugging": "hugs somebody",
    "kneeling": "kneels on the ground",
    "chasing": "runs after somebody",
    "carrying": "carries something away",
    "raising fist": "raises a fist",
    "clapping": "claps",
    "dancing": "dances",
    "raising hands": "holds both hands up",
    "guarding": "stands guard",
    "arguing": "argues",
    "recording": "films with a phone",
    "retreating": "ducks and backs away",
    "running/escaping": "runs away",
    "shouting": "shouts with both hands round the mouth",
    "waving hands": "waves a hand",
    "speaking/talking": "talks",
}
"""What is said of an action, the more notable first."""
_BONDS: Mapping[str, str] = {
    "arresting": "arrests",
    "fighting": "fights with",
    "kicking": "kicks",
    "pulling": "pulls away",
    "pushing": "pushes",
    "throwing objects at": "throws stones at",
    "grabbing": "grabs",
    "running away from": "runs away from",
    "following after": "follows after",
    "running towards": "runs towards",
    "holding onto": "holds on to",
    "hugging": "hugs",
    "shouting at": "shouts at",
    "arguing with": "argues with",
    "speaking to": "speaks to",
    "recording": "films",
    "running with": "runs beside",
    "watching": "watches",
}
"""What is said of an interaction, the more notable first."""


@dataclass(frozen=True)
class Remark:
    """Something that may be said.

    Args:
        rank: the less, the more notable.
        start: first frame.
        end: frame after the last.
        verb: what somebody does.
        object: number of whom they do it to; None for nobody.
    """

    rank: int
    start: int
    end: int
    verb: str
    object: int | None


def sentences(actors: list[Actor], bonds: tuple[Bond, ...], fps: float) -> tuple[Sentence, ...]:
    """What a witness would say of who does something notable, and asks about who does it to somebody.

    Args:
        actors: the people, by number.
        bonds: between them.
        fps: frames per second.
    """
    words = descriptions(actors)
    found: list[Sentence] = []
    for actor in actors:
        for remark in _remarks(actor, bonds, max(1, round(_LEAST_S * fps))):
            found += _said(actor.number, remark, words)
    return tuple(sorted(found, key=lambda each: (each.start, each.actor, each.kind, each.text)))


def _said(number: int, remark: Remark, words: list[str]) -> list[Sentence]:
    """The sentence, and where somebody else takes part also the question."""
    span = (remark.start, remark.end)
    if remark.object is None:
        return [Sentence(f"{_upper('a', words[number])} {remark.verb}.", number, *span)]
    told = f"{_upper('a', words[number])} {remark.verb} the {known(words[remark.object])}."
    asked = f"Who {remark.verb} the {known(words[remark.object])}?"
    return [Sentence(told, number, *span), Sentence(asked, number, *span, "interrogative")]


def _remarks(actor: Actor, bonds: tuple[Bond, ...], least: int) -> list[Remark]:
    """The most notable things that somebody does, none of them at the time of a more notable one."""
    every: list[Remark] = []
    for rank, (name, verb) in enumerate(_DEEDS.items()):
        on = actor.facts.get(PREFIX + name)
        if on is not None:
            edges = np.flatnonzero(np.diff(np.concatenate([[0], on, [0]])))
            for start, end in (edges.reshape(-1, 2) + actor.first).tolist():
                every.append(Remark(100 + rank, start, end, verb, None))
    ranks = list(_BONDS)
    for bond in bonds:
        if bond.subject == actor.number:
            # Who does something to somebody is more notable than what they do.
            rank = ranks.index(bond.predicate) + (50 if bond.predicate != "watching" else 200)
            every.append(Remark(rank, bond.start, bond.end, _BONDS[bond.predicate], bond.object))
    kept: list[Remark] = []
    for each in sorted(every, key=lambda one: (one.rank, one.start, one.end)):
        clear = all(min(each.end, one.end) - max(each.start, one.start) < 0.3 * least for one in kept)
        if clear and each.end - each.start >= least:
            kept.append(each)
    return kept[:_MOST_EACH]


def _upper(article: str, words: str) -> str:
    """A beginning with its article: "An elderly man in a grey coat"."""
    return ("An" if article == "a" and words[0] in "aeio" else article.capitalize()) + " " + words
