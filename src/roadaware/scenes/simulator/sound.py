"""What is heard in the own vehicle: every noise from where it is, with wind and rain, in stereo."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.scenes.simulator.actors import Actor
from roadaware.scenes.simulator.episode import Episode, Noise
from roadaware.scenes.simulator.filters import RATE
from roadaware.scenes.simulator.voices import Voice, voice

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


def mix(episode: Episode) -> Iterator[npt.NDArray[np.float32]]:
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
        self._voice: Voice = voice(noise.label, rng)
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
            self._parts.append((_WIND[weather], voice("wind", streams[0])))
            self._parts.append((0.08 if weather == "rain" else 0.0, voice("rain", streams[1])))

    def samples(self, count: int) -> Floats:
        """(count, 2) what comes next."""
        still = np.zeros(count)
        loud = [level * part.samples(still) if level else still for level, part in self._parts]
        return np.column_stack([loud[0] + loud[1], loud[2] + loud[3]])
