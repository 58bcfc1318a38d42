"""What is heard in a street: engines, sirens, horns, dogs, and people who talk to each other."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Bools, Floats
from roadaware.scenes.simulator.actors import VEHICLES, Actor, Lamp
from roadaware.scenes.simulator.episode import Episode, Noise

ENGINES = {
    "Car": ("engine", 0.35),
    "MedVeh": ("engine", 0.45),
    "LarVeh": ("truck engine", 0.8),
    "Bus": ("truck engine", 0.75),
    "EmVeh": ("engine", 0.5),
    "Mobike": ("motorcycle engine", 0.8),
}
"""What the engines of vehicles are called, and how loud they are at a metre."""
SIRENS = {
    "ambulance": "siren (ambulance)",
    "police_car": "siren (police)",
    "fire_engine": "siren (fire engine)",
}
ENGINE_M, SIREN_M, VOICE_M = 40.0, 200.0, 18.0
"""How far engines, sirens and voices carry."""
CLOSE_S = 2.5
"""Drivers sound the horn when somebody steps out whom they would reach sooner than this."""
TALKING_M = 1.3


def street_noises(episode: Episode) -> tuple[Noise, ...]:
    """All noises of a street, by when they begin.

    Args:
        episode: complete but for its noises.
    """
    seconds = episode.n_frames / episode.config.camera.fps
    found = [Noise("engine", None, 0.0, seconds, 0.2)]
    for actor in episode.actors:
        if actor.kind in VEHICLES and actor.active:
            found += _engine(episode, actor)
            found += _siren(episode, actor)
        elif actor.kind == "dog":
            found += _barks(episode, actor)
        elif actor.kind == "Ped":
            found += _horns(episode, actor)
    found += _voices(episode)
    return tuple(sorted(found, key=lambda noise: (noise.start_s, noise.label, noise.actor or -1)))


def _away(episode: Episode, actor: Actor) -> Floats:
    """(n,) metres from the own vehicle in each frame of an actor."""
    own = episode.ego.position[actor.first : actor.end, :2]
    away: Floats = np.hypot(*(actor.position[: len(own), :2] - own).T)
    return away


def _spans(mask: Bools, first: int, fps: float, shortest_s: float = 0.3) -> list[tuple[float, float]]:
    """Stretches in seconds where a mask over the frames of an actor holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    spans = [((first + a) / fps, (first + b) / fps) for a, b in edges.reshape(-1, 2).tolist()]
    return [span for span in spans if span[1] - span[0] >= shortest_s]


def _engine(episode: Episode, actor: Actor) -> list[Noise]:
    if actor.kind not in ENGINES:
        return []
    label, level = ENGINES[actor.kind]
    near = _away(episode, actor) < ENGINE_M * (1.5 if level > 0.6 else 1.0)
    fps = episode.config.camera.fps
    return [Noise(label, actor.number, a, b, level) for a, b in _spans(near, actor.first, fps)]


def _siren(episode: Episode, actor: Actor) -> list[Noise]:
    """Of an emergency vehicle whose beacon flashes, from the first flash to the last."""
    if actor.kind != "EmVeh":
        return []
    lit = np.flatnonzero((actor.lamps & Lamp.BEACON) > 0)
    away = _away(episode, actor)
    if not len(lit) or away.min() > SIREN_M:
        return []
    fps = episode.config.camera.fps
    start, end = (actor.first + lit[0]) / fps, (actor.first + lit[-1] + 1) / fps
    label = SIRENS.get(actor.model, "siren (police)")
    return [Noise(label, actor.number, float(start), float(end), 3.0)]


def _barks(episode: Episode, actor: Actor) -> list[Noise]:
    """Two or three barks in a row, if it barks at all: most when it runs."""
    fps = episode.config.camera.fps
    near = np.flatnonzero(_away(episode, actor) < 60.0)
    chance = (actor.look % 97) / 97.0
    running = np.flatnonzero(np.abs(actor.speed) > 2.3)
    if not len(near) or (chance > 0.4 and not len(running)):
        return []
    begin = int(running[0]) if len(running) else int(near[int(chance * (len(near) - 1))])
    start = (actor.first + begin) / fps
    end = min(start + 0.5 + 1.2 * chance, episode.n_frames / fps)
    return [Noise("dog barking", actor.number, start, end, 1.5)] if end - start > 0.2 else []


def _horns(episode: Episode, actor: Actor) -> list[Noise]:
    """The horn of whoever would reach somebody soon after they step out."""
    out = actor.facts.get("crossing")
    if out is None or not out.any() or out[0]:
        return []
    row = int(np.flatnonzero(out)[0])
    frame, fps = actor.first + row, episode.config.camera.fps
    point = actor.position[row, :2]
    soonest, who = CLOSE_S, -1
    ego = episode.ego
    places: list[tuple[int | None, Floats, float, float]] = [
        (None, ego.position[frame, :2], float(ego.heading[frame]), float(ego.speed[frame]))
    ]
    for other in episode.actors:
        at = other.at(frame)
        if other.kind in ENGINES and other.active and at is not None:
            places.append(
                (other.number, other.position[at, :2], float(other.heading[at]), float(other.speed[at]))
            )
    for k, (_, place, heading, speed) in enumerate(places):
        c, s = np.cos(heading), np.sin(heading)
        away = point - place
        ahead, left = away[0] * c + away[1] * s, away[1] * c - away[0] * s
        if speed > 3.0 and ahead > 1.0 and abs(left) < 4.5 and ahead / speed < soonest:
            soonest, who = float(ahead / speed), k
    if who < 0:
        return []
    start = frame / fps + 0.35
    end = min(start + 0.4 + 0.6 * (actor.look % 89) / 89.0, episode.n_frames / fps)
    return [Noise("honking", places[who][0], start, end, 2.5)] if end - start > 0.2 else []


def _voices(episode: Episode) -> list[Noise]:
    """People who stand or walk side by side near the own vehicle talk, one of each two or more."""
    fps = episode.config.camera.fps
    people = [actor for actor in episode.actors if actor.kind == "Ped" and len(actor.heading) > 1]
    found: list[Noise] = []
    silent: set[int] = set()
    for place, one in enumerate(people):
        for other in people[place + 1 :]:
            if other.number in silent or one.number in silent:
                continue
            first, end = max(one.first, other.first), min(one.end, other.end)
            if end - first < fps:
                continue
            a = one.position[first - one.first : end - one.first, :2]
            b = other.position[first - other.first : end - other.first, :2]
            beside = np.hypot(*(a - b).T) < TALKING_M
            heard = _away(episode, one)[first - one.first : end - one.first] < VOICE_M
            if beside.mean() < 0.6 or not heard.any():
                continue
            spans = _spans(beside & heard, first, fps, 0.8)
            found += [Noise("speaking", one.number, s, e, 0.4) for s, e in spans]
            silent.update((one.number, other.number))
    return found
