"""Sound in the own vehicle: every noise of the street from where it is, filtered, with wind and
rain, in stereo.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats
from roadaware.simulator.actors import VEHICLES, Actor, Lamp
from roadaware.simulator.episode import Episode, Noise
from roadaware.simulator.filters import RATE
from roadaware.simulator.voices import Voice, build_voice

BLOCK = 3200
"""Samples that are made at a time."""
EARS_M, NEAR_M, SOUND_MS = 0.2, 2.0, 343.0
"""Between the ears; up to where noises do not get louder; metres that sound travels in a second."""
AHEAD_M = 1.2
"""How far before the rear axle one listens."""
_STEP = 80
_HISTORY = 32
_FADE = 80
_MASTER = 0.6
_FAINT = 0.002
_STREAM = 23
_WIND = {"clear": 0.012, "overcast": 0.018, "rain": 0.02, "snow": 0.03, "low-sun": 0.01}


def render_audio(episode: Episode) -> Iterator[npt.NDArray[np.float32]]:
    """Blocks of (m, 2) float32 samples, left and right, from -1 to 1 at 16 kHz, for the length of the scene.

    A noise falls with its distance from 2 m on, is heard on the side where it is (equal power), and reaches
    the nearer ear first. Only noises that last are held, so memory does not grow with the scene.

    Args:
        episode: the scene.
    """
    total = round(episode.n_frames / episode.config.camera.fps * RATE)
    bed = _Bed(episode)
    waiting = sorted(enumerate(episode.noises), key=lambda pair: (pair[1].start_s, pair[0]))
    heard: list[_Source] = []
    for start in range(0, total, BLOCK):
        end = min(start + BLOCK, total)
        while waiting and waiting[0][1].start_s * RATE < end:
            number, noise = waiting.pop(0)
            heard.append(_Source(episode, number, noise))
        block = bed.samples(end - start)
        for source in heard:
            block += source.samples(start, end)
        heard = [source for source in heard if source.end > end]
        yield np.tanh(_MASTER * block).astype(np.float32)


class _Source:
    """One noise while it lasts."""

    def __init__(self, episode: Episode, number: int, noise: Noise) -> None:
        self._episode, self._level = episode, noise.level
        rng = np.random.default_rng([episode.seed, number, _STREAM])
        self._voice: Voice = build_voice(noise.label, rng)
        self._actor: Actor | None = None if noise.actor is None else episode.actors[noise.actor]
        self.start, self.end = round(noise.start_s * RATE), round(noise.end_s * RATE)
        self._tail = np.zeros(_HISTORY)

    def samples(self, start: int, end: int) -> Floats:
        """(end - start, 2) what reaches the ears between two samples of the scene."""
        times = np.arange(start, end + _STEP, _STEP)
        gain, side, speed = self._heard(times / RATE)
        at = np.arange(start, end)
        if gain.max() * self._level < _FAINT:
            self._tail[:] = 0.0
            return np.zeros((end - start, 2))
        alone = np.zeros(end - start)
        first, last = max(start, self.start), min(end, self.end)
        if last > first:
            inside = np.arange(first, last)
            plain = self._voice.samples(np.interp(inside, times, speed))
            edge = np.minimum(inside - self.start + 1, self.end - inside) / _FADE
            alone[first - start : last - start] = plain * np.minimum(edge, 1.0)
        alone *= self._level * np.interp(at, times, gain)
        line = np.concatenate([self._tail, alone])
        self._tail = line[-_HISTORY:]
        return _two_ears(line, np.interp(at, times, side))

    def _heard(self, times: Floats) -> tuple[Floats, Floats, Floats]:
        """Loudness, sine of the bearing (left is positive) and the source's speed at times in seconds."""
        ego, fps = self._episode.ego, self._episode.config.camera.fps
        frames = times * fps
        rows = np.arange(self._episode.n_frames)
        if self._actor is None:
            return np.ones(len(times)), np.zeros(len(times)), np.interp(frames, rows, ego.speed)
        own = np.arange(self._actor.first, self._actor.end)
        heading = np.interp(frames, rows, np.unwrap(ego.heading))
        ahead = (np.cos(heading), np.sin(heading))
        x, y = (
            np.interp(frames, own, self._actor.position[:, k])
            - np.interp(frames, rows, ego.position[:, k])
            - AHEAD_M * ahead[k]
            for k in (0, 1)
        )
        away = np.hypot(x, y)
        left = y * ahead[0] - x * ahead[1]
        speed = np.interp(frames, own, self._actor.speed)
        return NEAR_M / np.maximum(away, NEAR_M), left / np.maximum(away, 0.5), speed


def _two_ears(line: Floats, side: Floats) -> Floats:
    """(m, 2) what two ears hear of one sound, of which `_HISTORY` samples came before.

    Args:
        line: (history + m,) samples.
        side: (m,) sine of the bearing, left is positive.
    """
    angle = (1.0 - side) * np.pi / 4
    found = np.empty((len(side), 2))
    middle = EARS_M / 2 / SOUND_MS * RATE
    for ear, (loud, sign) in enumerate(((np.cos(angle), -1.0), (np.sin(angle), 1.0))):
        place = np.arange(_HISTORY, len(line)) - middle * (1.0 + sign * side)
        whole = np.floor(place).astype(np.int64)
        share = place - whole
        # The place after the last sample is never between two: its share of it is 0.
        after = np.minimum(whole + 1, len(line) - 1)
        found[:, ear] = np.sqrt(2.0) * loud * (line[whole] * (1 - share) + line[after] * share)
    return found


class _Bed:
    """Wind, and rain on the roof, each ear with its own."""

    def __init__(self, episode: Episode) -> None:
        weather = episode.conditions.weather
        self._parts: list[tuple[float, Voice]] = []
        for ear in (0, 1):
            streams = np.random.default_rng([episode.seed, ear, _STREAM + 1]).spawn(2)
            self._parts.append((_WIND[weather], build_voice("wind", streams[0])))
            self._parts.append((0.08 if weather == "rain" else 0.0, build_voice("rain", streams[1])))

    def samples(self, count: int) -> Floats:
        """(count, 2) what comes next."""
        still = np.zeros(count)
        loud = [level * part.samples(still) if level else still for level, part in self._parts]
        return np.column_stack([loud[0] + loud[1], loud[2] + loud[3]])


# What is heard in a street: engines, sirens, horns, dogs, and people who talk to each other.

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


def collect_street_noises(episode: Episode) -> tuple[Noise, ...]:
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
