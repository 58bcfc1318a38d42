"""Recording: from the notes of a play to actors, bonds and noises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.datasets.chaotic_vocabulary import list_label_names
from roadaware.simulator.actors import Actor, Pose
from roadaware.simulator.chaos.crowd import Ground, describe_actors, format_definite_description
from roadaware.simulator.chaos.play import (
    CODES,
    CONTACT,
    CYCLES_S,
    DEEDS,
    FLARE_S,
    FRESH,
    LEVELS,
    MOVING,
    PREFIX,
    RAISED,
    REACH_M,
    Play,
    Player,
    Thing,
)
from roadaware.simulator.config import SceneConfig, Staging
from roadaware.simulator.episode import Bond, Noise, Sentence
from roadaware.simulator.people import compute_stride
from roadaware.simulator.town.regions import Regions

_WALKS, _STANDS = (0.45, 0.25), (2.5, 2.0)
_SHORTEST_S = 0.4
_GAP_S = 0.3
_HEADS_FOR = 1.0


def build_person_actors(play: Play, regions: Regions) -> list[Actor]:
    """Everybody, by their numbers.

    Args:
        play: to its end.
        regions: the ground.
    """
    held: dict[int, int] = {}
    for k, thing in enumerate([thing for thing in play.things if thing.track]):
        if thing.pushed_by is not None:
            held.setdefault(thing.pushed_by, len(play.players) + k)
    return [_person(play, regions, who, held.get(who.number)) for who in play.players]


def build_thing_actors(play: Play, regions: Regions) -> list[Actor]:
    """Everything that was on the street, numbered after the people.

    Args:
        play: to its end.
        regions: the ground.
    """
    used = [thing for thing in play.things if thing.track]
    return [_thing(play, regions, thing, len(play.players) + k) for k, thing in enumerate(used)]


def extract_bonds(play: Play, actors: list[Actor]) -> tuple[Bond, ...]:
    """Extract relations between persons, where both are there and it can be seen.

    Args:
        play: to its end.
        actors: the people.
    """
    found = []
    for (subject, predicate, other), frames in sorted(play.notes.bonds.items()):
        mask = np.zeros(play.n_frames, dtype=np.bool_)
        mask[frames] = True
        # Closed before short runs are dropped: a bond that flickers is one that lasts.
        mask = _fill_gaps(mask, round(_GAP_S * play.fps))
        mask &= play.notes.here[:, subject] & play.notes.here[:, other]
        mask &= _seen(play, predicate, subject, other, actors)
        for start, end in _runs(mask, max(1, round(_SHORTEST_S * play.fps))):
            bond = Bond(subject, predicate, other, start, end)
            if predicate != "running away from" or _grows(play, bond):
                found.append(bond)
    return tuple(sorted(found, key=lambda bond: (bond.start, bond.subject, bond.object, bond.predicate)))


def extract_noises(play: Play, actors: list[Actor]) -> tuple[Noise, ...]:
    """Extract sounds by their start; those of actions as long as the action is seen.

    Args:
        play: to its end.
        actors: the people.
    """
    numbers: dict[int, int] = {}
    for thing in play.things:
        if thing.track:
            numbers[play.things.index(thing)] = len(play.players) + len(numbers)
    found = []
    for (label, kind, source), frames in sorted(play.notes.noises.items()):
        mask = np.zeros(play.n_frames, dtype=np.bool_)
        mask[frames] = True
        # As with bonds: the pause between two shouts is no end of the shouting.
        mask = _fill_gaps(mask, round(0.4 * play.fps))
        if kind == "person":
            mask &= play.notes.here[:, source]
            mask &= _mask_visible_action(label, actors[source], play.n_frames)
        elif source in numbers:
            first, last = play.things[source].track[0][0], play.things[source].track[-1][0]
            mask[:first], mask[last + 1 :] = False, False
        number = source if kind == "person" else numbers.get(source)
        for start, end in _runs(mask, max(1, round(_SHORTEST_S * play.fps))) if number is not None else []:
            found.append(Noise(label, number, start / play.fps, end / play.fps, LEVELS[label]))
    return tuple(sorted(found, key=lambda noise: (noise.start_s, noise.label, noise.actor or 0)))


_JOINED_S = 0.6
"""Parts of one sound that are no further apart."""
_LONGEST_S, _SHORTEST_SOUND_S = 5.0, 0.8
_IMPULSIVE = ("explosion", "crashing", "shattering", "gunshot/firing")
_OFTEN = (
    "arguing", "chanting/cheering", "clapping", "crying", "flare", "shouting", "shouting for help", "sizzling",
    "speaking", "siren (ambulance)", "siren (fire engine)", "siren (police)",
)  # fmt: skip
"""Sounds that most scenes could have: others come before them."""
_NOT_FROM_AFAR = ("flare", "sizzling", "speaking", "buzzing of walkie-talkie")
"""Sounds too weak to be heard of somebody who is out of sight."""


def mix_noises(
    noises: tuple[Noise, ...], staging: Staging, ground: Ground, config: SceneConfig, rng: np.random.Generator
) -> tuple[Noise, ...]:
    """The noises that are heard of a staged scene: few at a time, perhaps one from out of sight, perhaps none.

    What several do at the same time is one sound. Who is left out does what they do in silence.

    Args:
        noises: all that could be heard.
        staging: how many at a time, and how often what.
        ground: where the scene is played.
        config: of the scene.
        rng: where chance comes from.
    """
    quiet, alone, far, order = rng.random(4)
    most = 1 if alone < staging.alone else int(rng.integers(min(2, staging.sounds), staging.sounds + 1))
    if quiet < staging.silent:
        return ()
    seconds = config.n_frames / config.camera.fps
    taken: list[tuple[float, float]] = []
    found: list[Noise] = []
    if far < staging.off_screen and seconds > 3.0:
        # A sound of a kind that nobody in the scene makes, from behind the camera or far to one side
        known = {noise.label for noise in noises}
        names = [
            name for name in list_label_names("sound") if name not in known and name not in _NOT_FROM_AFAR
        ]
        label = names[int(rng.integers(len(names)))]
        lasts = float(rng.uniform(1.4, min(4.0, 0.6 * seconds)))
        start = float(rng.uniform(0.0, seconds - lasts))
        side, behind = float(rng.choice([-1.0, 1.0])), bool(rng.random() < 0.5)
        x = float(rng.uniform(-9.0, -3.0) if behind else rng.uniform(1.0, 7.0))
        y = side * float(
            rng.uniform(1.0, 6.0) if behind else ground.slope * max(x, 0.0) + rng.uniform(3.0, 6.0)
        )
        at = ground.world(np.array([x, y])).tolist()
        noise = Noise(label, None, start, start + lasts, 1.6 * LEVELS.get(label, 1.0), (at[0], at[1]), 0)
        taken.append((noise.start_s, noise.end_s))
        found.append(noise)
    groups = _join_noises(noises)
    chance = np.random.default_rng([int(order * 2**31), len(groups)]).random(len(groups))
    ranks = sorted(range(len(groups)), key=lambda k: (groups[k][0].label in _OFTEN, chance[k]))
    for k in ranks:
        start, end = min(n.start_s for n in groups[k]), max(n.end_s for n in groups[k])
        if end - start > _LONGEST_S:
            start += float(rng.random()) * (end - start - _LONGEST_S)
            end = start + _LONGEST_S
        # The longest part of a span in which fewer than `most` sounds are taken; None if it is too short.
        edges = sorted({start, end, *(edge for span in taken for edge in span if start < edge < end)})
        best, begin = (start, start), start
        for a, b in pairwise(edges):
            busy = sum(s < b and a < e for s, e in taken)
            begin = b if busy >= most else begin
            if busy < most and b - begin > best[1] - best[0]:
                best = (begin, b)
        part = (
            best if best[1] - best[0] >= min(_SHORTEST_SOUND_S, end - start) and best[1] > best[0] else None
        )
        if part is None:
            continue
        held = [
            replace(n, start_s=max(n.start_s, part[0]), end_s=min(n.end_s, part[1]), sound=len(taken))
            for n in groups[k]
        ]
        held = [n for n in held if n.end_s - n.start_s > 0.1]
        if held:
            taken.append(part)
            found += held
    return _number_sounds(found)


def _join_noises(noises: tuple[Noise, ...]) -> list[list[Noise]]:
    """Noises of one label that follow each other closely or sound together, as one sound each."""
    groups: list[list[Noise]] = []
    last: dict[str, tuple[int, float]] = {}
    for noise in sorted(
        noises, key=lambda one: (one.start_s, one.label, -1 if one.actor is None else one.actor)
    ):
        place, end = last.get(noise.label, (-1, -np.inf))
        # Blows and shots that follow each other are one; so are the voices of a crowd.
        if place >= 0 and noise.start_s <= end + (_JOINED_S if noise.label not in _IMPULSIVE else 0.0):
            groups[place].append(noise)
            last[noise.label] = (place, max(end, noise.end_s))
        else:
            last[noise.label] = (len(groups), noise.end_s)
            groups.append([noise])
    return groups


def _number_sounds(noises: list[Noise]) -> tuple[Noise, ...]:
    """Noises by their start, their sounds numbered by theirs."""
    starts: dict[int, tuple[float, str]] = {}
    for noise in noises:
        key = noise.sound or 0
        starts[key] = min(starts.get(key, (np.inf, "")), (noise.start_s, noise.label))
    number = {key: k for k, key in enumerate(sorted(starts, key=lambda key: starts[key]))}
    numbered = [replace(noise, sound=number[noise.sound or 0]) for noise in noises]
    return tuple(sorted(numbered, key=lambda n: (n.start_s, n.label, -1 if n.actor is None else n.actor)))


def _person(play: Play, regions: Regions, who: Player, held: int | None) -> Actor:
    notes, k = play.notes, who.number
    rows = np.flatnonzero(notes.here[:, k])
    part = slice(int(rows[0]), int(rows[-1]) + 1) if len(rows) else slice(0, 1)
    xy = play.ground.world(notes.xy[part, k])
    heading = notes.heading[part, k] + play.ground.heading
    step = _steps(xy)
    along = (step * np.stack([np.cos(heading), np.sin(heading)], axis=1)).sum(1)
    pace = _smooth(np.hypot(step[:, 0], step[:, 1]) * play.fps, round(0.3 * play.fps))
    pose = _poses(notes.pose[part, k], pace, play.fps)
    # Official action to the (n,) frames in which it holds and the pose shows it.
    noted = notes.doing[part, k]
    fps = play.fps
    found = {name: (noted >> code) & 1 > 0 for name, code in CODES.items()}
    walks = np.isin(pose, [int(p) for p in MOVING if p != Pose.RUN]) & (pace > 0.4) & (pace < 2.6)
    found["walking"] |= walks | (pose == Pose.WALK)
    found["running/escaping"] |= pose == Pose.RUN
    found["retreating"] |= (pose == Pose.WALK) & (_smooth(along * play.fps, round(0.3 * fps)) < -0.3)
    deeds = {}
    for name, on in found.items():
        on = on & np.isin(pose, [int(p) for p in DEEDS[name]])
        mask = np.zeros(len(on), dtype=np.bool_)
        for start, end in _runs(on, max(1, round(_SHORTEST_S * fps))):
            mask[start:end] = True
        if mask.any():
            deeds[name] = mask
    flare = notes.flare[part, k] & (pose != Pose.LIE)
    where = regions.at(xy)
    height = _smooth(where.height_m, round(0.25 * play.fps)) + notes.lift[part, k]
    gait = _gait(who, pose, along, deeds, flare, play.fps)
    facts = {PREFIX + name: on.astype(np.int8) for name, on in deeds.items()}
    if flare.any():
        facts["flare"] = flare.astype(np.int8)
    return Actor(
        k, "Ped", who.model, who.size_m, who.look, part.start, np.column_stack([xy, height]),
        (heading + np.pi) % (2 * np.pi) - np.pi, along * play.fps, np.zeros(len(xy), dtype=np.uint8),
        pose.astype(np.uint8), gait, _smooth(notes.gaze[part, k], round(0.3 * play.fps)), where.lane,
        facts=facts, with_object=held,
    )  # fmt: skip


def _thing(play: Play, regions: Regions, thing: Thing, number: int) -> Actor:
    track = np.array(thing.track, dtype=np.float64)
    xy = play.ground.world(track[:, 1:3])
    heading = track[:, 3] + play.ground.heading
    step = _steps(xy)
    speed = (step * np.stack([np.cos(heading), np.sin(heading)], axis=1)).sum(1) * play.fps
    where = regions.at(xy)
    raised = 0.0 if thing.model == "flood" else _smooth(where.height_m, round(0.25 * play.fps))
    n = len(track)
    return Actor(
        number, thing.kind, thing.model, thing.size_m, thing.look, int(track[0, 0]),
        np.column_stack([xy, track[:, 4] + raised]), (heading + np.pi) % (2 * np.pi) - np.pi, speed,
        np.full(n, thing.lamps, dtype=np.uint8), np.zeros(n, dtype=np.uint8),
        (thing.look % 628) / 100.0 + 9.0 * track[:, 0] / play.fps * (thing.model == "fire"),
        np.zeros(n), where.lane, active=thing.active,
    )  # fmt: skip


def _poses(noted: npt.NDArray[np.int8], pace: Floats, fps: float) -> Ints:
    """(n,) poses: what was noted, else standing, walking or running by pace."""
    move = np.zeros(len(pace), dtype=np.int64)
    state = 0
    for row, value in enumerate(pace.tolist()):
        limits = (_WALKS[1 if state >= 1 else 0], _STANDS[1 if state == 2 else 0])
        state = 2 if value > limits[1] else 1 if value > limits[0] else 0
        move[row] = state
    pose = np.where(noted >= 0, noted, move)
    free = noted < 0
    least = max(1, round(_SHORTEST_S * fps))
    edges = np.flatnonzero(np.diff(pose)) + 1
    for start, end in zip([0, *edges.tolist()], [*edges.tolist(), len(pose)], strict=True):
        # Too short to be distinguished from the stride before.
        if end - start < least and start and free[start:end].all() and free[start - 1]:
            pose[start:end] = pose[start - 1]
    return pose


def _gait(
    who: Player, pose: Ints, along: Floats, deeds: dict[str, Bools], flare: Bools, fps: float
) -> Floats:
    """(n,) phases: by strides of who moves, by time of who stays; thrusts and throws begin at 0."""
    speed = np.abs(along) * fps
    runs = (pose == Pose.RUN) | (speed > 2.4)
    walk, run = (compute_stride(who.model, who.size_m[2], running) for running in (False, True))
    cycles = np.full(len(Pose), CYCLES_S[Pose.STAND])
    for each, seconds in CYCLES_S.items():
        cycles[each] = seconds
    still = 2 * np.pi / (np.where(flare, FLARE_S, cycles[pose]) * fps)
    moving = np.isin(pose, [int(p) for p in MOVING]) & (speed > 0.15)
    phase = (who.look % 628) / 100.0 + np.cumsum(
        np.where(moving, along * 2 * np.pi / np.where(runs, run, walk), still)
    )
    fresh = np.isin(pose, [int(p) for p in FRESH])
    for start, end in _runs(fresh & ~np.append(False, np.diff(pose) != 0), 1):
        begin = start - 1 if start and fresh[start - 1] and pose[start - 1] == pose[start] else start
        phase[begin:end] -= phase[begin]
    fist = deeds.get("raising fist")
    if fist is not None:
        pump = RAISED + 0.35 * np.sin(2 * np.pi * np.arange(len(pose)) / fps / 0.9)
        phase = np.where(fist & ~moving, pump, phase)
    result: Floats = phase
    return result


def _seen(play: Play, predicate: str, subject: int, other: int, actors: list[Actor]) -> Bools:
    """(F,) whether where two are allows one to do this to the other."""
    away = play.notes.xy[:, other] - play.notes.xy[:, subject]
    apart = np.hypot(away[:, 0], away[:, 1])
    if predicate in CONTACT:
        near: Bools = apart < REACH_M
        return near
    if predicate in ("following after", "running towards"):
        off = np.arctan2(away[:, 1], away[:, 0]) - play.notes.heading[:, subject]
        ahead: Bools = np.abs((off + np.pi) % (2 * np.pi) - np.pi) < _HEADS_FOR
        return ahead & _runs_if(predicate == "running towards", actors[subject], play.n_frames)
    if predicate in ("running with", "running away from"):
        return _runs_if(True, actors[subject], play.n_frames)
    return np.ones(play.n_frames, dtype=np.bool_)


def _mask_visible_action(label: str, actor: Actor, n_frames: int) -> Bools:
    """(F,) where somebody is seen to do what is heard; everywhere if it is no deed, or any may go with it."""
    mask = np.ones(n_frames, dtype=np.bool_)
    if label in ("arguing", "chanting/cheering", "clapping"):
        mask[:] = False
        on = actor.facts.get(PREFIX + label)
        if on is not None:
            mask[actor.first : actor.end] = on != 0
    return mask


def _runs_if(needed: bool, actor: Actor, n_frames: int) -> Bools:
    mask = np.ones(n_frames, dtype=np.bool_)
    if needed:
        mask[actor.first : actor.end] = actor.pose == Pose.RUN
    return mask


def _grows(play: Play, bond: Bond) -> bool:
    """Whether two get away from each other."""
    away = play.notes.xy[[bond.start, bond.end - 1], bond.object]
    away = away - play.notes.xy[[bond.start, bond.end - 1], bond.subject]
    apart = np.hypot(away[:, 0], away[:, 1])
    return bool(apart[1] > apart[0] + 0.1)


def _steps(xy: Floats) -> Floats:
    """(n, 2) metres from each frame to the next one; the last as the one before."""
    if len(xy) < 2:
        return np.zeros_like(xy)
    step = np.diff(xy, axis=0)
    found: Floats = np.concatenate([step, step[-1:]])
    return found


def _smooth(values: Floats, window: int) -> Floats:
    """(n,) means over a few frames."""
    if window < 2 or len(values) < window:
        return values
    padded = np.pad(values, (window // 2, window - 1 - window // 2), mode="edge")
    sums = np.cumsum(np.append(0.0, padded))
    found: Floats = (sums[window:] - sums[:-window]) / window
    return found


def _fill_gaps(mask: Bools, gap: int) -> Bools:
    """(n,) a mask without gaps of few frames."""
    found = mask.copy()
    for start, end in _runs(~mask, 1):
        if end - start <= gap and start > 0 and end < len(mask):
            found[start:end] = True
    return found


def _runs(mask: npt.NDArray[Any], least: int) -> list[tuple[int, int]]:
    """Stretches of a mask, half open, that last at least some frames."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(mask, dtype=np.int8), [0]])))
    return [(a, b) for a, b in edges.reshape(-1, 2).tolist() if b - a >= least]


# Sentences about each notable deed of each person, out of what can be seen of them.

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


def generate_sentences(actors: list[Actor], bonds: tuple[Bond, ...], fps: float) -> tuple[Sentence, ...]:
    """Generate sentences and questions about notable actions, as a witness could give them.

    Args:
        actors: the people, by number.
        bonds: between them.
        fps: frames per second.
    """
    words = describe_actors(actors)
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
    text = (
        f"{_upper('a', words[number])} {remark.verb} the {format_definite_description(words[remark.object])}."
    )
    asked = f"Who {remark.verb} the {format_definite_description(words[remark.object])}?"
    return [Sentence(text, number, *span), Sentence(asked, number, *span, "interrogative")]


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
