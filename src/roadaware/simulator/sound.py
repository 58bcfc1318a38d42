"""Sound in the own vehicle: every noise of the street from where it is, filtered, with wind and
rain, in stereo.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats
from roadaware.simulator.actors import VEHICLES, Actor, Lamp
from roadaware.simulator.episode import Episode, Noise
from roadaware.simulator.sound_kernels import apply_filter_sections

# Voices: how each kind of sound is made, block by block, from tones, noise, bursts and formants.


Chance = np.random.Generator


class Voice(Protocol):
    """Something that makes one sound."""

    def samples(self, speed: Floats) -> Floats:
        """(m,) what comes next, about 0.2 in root mean square where it is at its loudest.

        Args:
            speed: (m,) of whoever makes it, m/s.
        """


class Tones:
    """Partials over a pitch that changes; sirens, horns, engines and instruments.

    Args:
        hertz: (m,) seconds, (m,) m/s to (m,) pitch.
        partials: strength of the first, second, ... partial.
        gain: of the sum.
        rough: how much low noise goes with it.
        rng: where chance comes from.
    """

    def __init__(
        self,
        hertz: Callable[[Floats, Floats], Floats],
        partials: Sequence[float],
        gain: float,
        rough: float,
        rng: Chance,
    ) -> None:
        self._hertz, self._partials, self._gain, self._rough, self._rng = hertz, partials, gain, rough, rng
        self._phase, self._done = float(rng.random()), 0
        self._low = Filtered("lowpass", 600.0)

    def samples(self, speed: Floats) -> Floats:
        """(m,) next samples of the sound."""
        t = (self._done + np.arange(len(speed))) / RATE
        self._done += len(speed)
        # The sum over the pitch, since sin(2 pi f t) would jump in phase wherever f changes.
        turns = self._phase + np.cumsum(self._hertz(t, speed)) / RATE
        # Kept within one turn: over a long scene the fraction of a large number would lose its last digits.
        self._phase = float(turns[-1] % 1.0) if len(turns) else self._phase
        angle = 2 * np.pi * turns
        found = np.zeros(len(speed))
        for k, strength in enumerate(self._partials):
            if strength:
                found += strength * np.sin((k + 1) * angle)
        if self._rough:
            found += self._rough * self._low(self._rng.standard_normal(len(speed)))
        return self._gain * found


class Bursts:
    """Short noises one after the other, each of which dies away; claps, drums, shots, barks, breaking glass.

    Args:
        per_second: how many; 0 for one alone.
        jitter: 0 in time, 1 at any time.
        decay_s: in which one falls to a third.
        band: hertz between which its noise lies.
        ring: pitch of tones in it, which die away as it does; none for noise alone.
        gain: of the sum.
        rng: where chance comes from.
        fade_s: in which they become weaker after the first, down to a seventh; inf for never.
    """

    def __init__(
        self,
        per_second: float,
        jitter: float,
        decay_s: float,
        band: tuple[float, float],
        ring: Sequence[float],
        gain: float,
        rng: Chance,
        fade_s: float = np.inf,
    ) -> None:
        self._gap = RATE / per_second if per_second else np.inf
        self._jitter, self._gain, self._rng, self._ring = jitter, gain, rng, ring
        self._fading = Fading(float(np.exp(-1.0 / (decay_s * RATE))))
        self._noise = Filtered("bandpass", band)
        self._phase = rng.random(len(ring))
        self._done, self._next, self._fade = 0, 0.0, fade_s * RATE

    def samples(self, speed: Floats) -> Floats:
        """(m,) next samples of the sound."""
        m = len(speed)
        hits = np.zeros(m)
        while self._next < self._done + m:
            strength = max(float(np.exp(-self._next / self._fade)), 0.15)
            hits[max(0, int(self._next) - self._done)] += strength * self._rng.uniform(0.7, 1.0)
            self._next += self._gap * (1 + self._jitter * self._rng.uniform(-0.7, 1.0))
        loud = self._fading(hits)
        found = self._noise(self._rng.standard_normal(m)) * (2.0 if not len(self._ring) else 0.7)
        t = (self._done + np.arange(m)) / RATE
        for hertz, phase in zip(self._ring, self._phase, strict=True):
            found += np.sin(2 * np.pi * (hertz * t + phase)) / len(self._ring)
        self._done += m
        return np.asarray(self._gain * loud * found)


class Hiss:
    """Noise in a band that swells and falls: fire, flares, rain, wind.

    Args:
        band: hertz between which it lies.
        swell_hz: how fast its strength changes.
        gain: of it.
        rng: where chance comes from.
    """

    def __init__(self, band: tuple[float, float], swell_hz: float, gain: float, rng: Chance) -> None:
        self._band, self._gain, self._rng = Filtered("bandpass", band), gain, rng
        self._swell, self._start, self._done = swell_hz, float(rng.uniform(0, 2 * np.pi)), 0

    def samples(self, speed: Floats) -> Floats:
        """(m,) next samples of the sound."""
        t = (self._done + np.arange(len(speed))) / RATE
        self._done += len(speed)
        strength = 0.75 + 0.25 * np.sin(2 * np.pi * self._swell * t + self._start)
        return self._gain * strength * self._band(self._rng.standard_normal(len(speed)))


VOWELS = ((730.0, 1090.0, 2440.0), (530.0, 1840.0, 2480.0), (570.0, 840.0, 2410.0))
"""First three formants of three vowels, hertz (Peterson and Barney, 1952, men)."""


class Speech:
    """People's voices: a buzz through formants that wander between vowels, in syllables.

    Args:
        pitch_hz: of the first voice; others lie beside it.
        people: how many at once.
        syllables_hz: how fast they speak; 0 for one long sound.
        together: whether all speak the same syllables.
        bend: how much the pitch rises and falls.
        breath: how much noise goes with it.
        gain: of the sum.
        rng: where chance comes from.
    """

    def __init__(
        self,
        pitch_hz: float,
        people: int,
        syllables_hz: float,
        together: bool,
        bend: float,
        breath: float,
        gain: float,
        rng: Chance,
    ) -> None:
        self._pitch = pitch_hz * 2 ** rng.uniform(-0.25, 0.35, people)
        self._syllables, self._bend, self._breath = syllables_hz, bend, breath
        # Voices that know nothing of each other add up in power.
        self._gain, self._rng = gain / math.sqrt(people), rng
        self._turns, self._done = rng.random(people), 0
        self._start = rng.random(people) if not together else np.full(people, rng.random())
        self._vowels = [[Filtered("bandpass", (0.9 * f, 1.1 * f), 1) for f in vowel] for vowel in VOWELS]

    def samples(self, speed: Floats) -> Floats:
        """(m,) next samples of the sound."""
        m = len(speed)
        t = (self._done + np.arange(m)) / RATE
        self._done += m
        buzz = np.zeros(m)
        for k, pitch in enumerate(self._pitch):
            beat = 2 * np.pi * (self._syllables * t + self._start[k])
            tune = np.sin(0.31 * beat + k) + 0.4 * np.sin(2 * np.pi * 5.2 * t + k)
            turns = self._turns[k] + np.cumsum(pitch * (1 + self._bend * tune)) / RATE
            self._turns[k] = turns[-1] % 1.0 if m else self._turns[k]
            loud = np.maximum(np.sin(beat) + 0.5, 0.0) / 1.5 if self._syllables else 1.0
            buzz += loud * (1.0 - 2.0 * (turns % 1.0) + self._breath * self._rng.standard_normal(m))
        found = np.zeros(m)
        for k, vowel in enumerate(self._vowels):
            share = np.maximum(np.cos(2 * np.pi * (0.37 * self._syllables * t + k / 3)), 0.0) + 0.1
            for strength, formant in zip((1.0, 0.6, 0.3), vowel, strict=True):
                found += strength * share * formant(buzz)
        return self._gain * found


def gears(idle_hz: float, top_hz: float, shifts_ms: Sequence[float]) -> Callable[[Floats, Floats], Floats]:
    """The pitch of an engine by speed: it rises in each gear and falls with the next.

    Args:
        idle_hz: when it stands.
        top_hz: before the next gear.
        shifts_ms: speeds in m/s from 0 at which gears change.
    """
    edges = np.asarray(shifts_ms, dtype=np.float64)

    def hertz(t: Floats, speed: Floats) -> Floats:
        v = np.abs(speed)
        gear = np.clip(np.searchsorted(edges, v, side="right") - 1, 0, len(edges) - 2)
        share = np.minimum((v - edges[gear]) / (edges[gear + 1] - edges[gear]), 1.2)
        low = np.where(gear > 0, idle_hz + 0.35 * (top_hz - idle_hz), idle_hz)
        found: Floats = low + (top_hz - low) * share + 0.6 * np.sin(2 * np.pi * 2.3 * t)
        return found

    return hertz


def steady(hertz: float, wobble: float = 0.0, wobble_hz: float = 5.0) -> Callable[[Floats, Floats], Floats]:
    """One pitch, with a vibrato."""
    return lambda t, speed: hertz * (1 + wobble * np.sin(2 * np.pi * wobble_hz * t))


def two_tone(low: float, high: float, period_s: float) -> Callable[[Floats, Floats], Floats]:
    """Two pitches in turn."""

    def hertz(t: Floats, speed: Floats) -> Floats:
        return np.where(t % period_s < period_s / 2, high, low)

    return hertz


def wail(low: float, high: float, period_s: float) -> Callable[[Floats, Floats], Floats]:
    """A pitch that climbs and falls."""
    return lambda t, speed: low + (high - low) * (0.5 - 0.5 * np.cos(2 * np.pi * t / period_s))


def melody(notes_hz: Sequence[float], note_s: float) -> Callable[[Floats, Floats], Floats]:
    """Notes one after the other, again and again."""
    notes = np.asarray(notes_hz)

    def hertz(t: Floats, speed: Floats) -> Floats:
        found: Floats = notes[(t / note_s).astype(np.int64) % len(notes)]
        return found

    return hertz


_CITY = (0.0, 4.5, 9.0, 14.0, 21.0, 34.0)
_BRASS = (1.0, 0.8, 0.7, 0.5, 0.4, 0.25, 0.15)
_HORN = (1.0, 0.7, 0.5, 0.4, 0.3, 0.2)
_ENGINE = (1.0, 0.8, 0.45, 0.5, 0.25, 0.3, 0.15, 0.2)
_TUNE = (262.0, 330.0, 392.0, 330.0, 440.0, 392.0)

MAKERS: Mapping[str, Callable[[Chance], Voice]] = {
    "engine": lambda rng: Tones(gears(32.0, 95.0, _CITY), _ENGINE, 0.15, 1.0, rng),
    "truck engine": lambda rng: Tones(gears(26.0, 62.0, _CITY), _ENGINE, 0.15, 1.4, rng),
    "motorcycle engine": lambda rng: Tones(gears(48.0, 190.0, _CITY), _HORN, 0.17, 0.5, rng),
    "honking": lambda rng: Tones(steady(rng.uniform(330, 470)), _HORN, 0.2, 0.0, rng),
    "airhorn": lambda rng: Tones(steady(rng.uniform(480, 540), 0.004, 31.0), _BRASS, 0.19, 0.4, rng),
    "siren (police)": lambda rng: Tones(wail(620.0, 1350.0, 0.42), (1.0, 0.3, 0.3), 0.25, 0.0, rng),
    "siren (ambulance)": lambda rng: Tones(two_tone(690.0, 920.0, 1.1), (1.0, 0.3, 0.3), 0.25, 0.0, rng),
    "siren (fire engine)": lambda rng: Tones(wail(420.0, 980.0, 4.2), (1.0, 0.5, 0.4), 0.23, 0.0, rng),
    "crashing": lambda rng: Bursts(
        5.0, 0.9, 0.16, (90.0, 3500.0), (83.0, 227.0, 391.0, 733.0), 0.6, rng, 0.9
    ),
    "clanking (of metal)": lambda rng: Bursts(
        3.5, 0.8, 0.1, (900.0, 5000.0), (870.0, 1430.0, 2310.0), 0.6, rng
    ),
    "shattering": lambda rng: Bursts(
        34.0, 1.0, 0.03, (2500.0, 7500.0), (3170.0, 4290.0, 5530.0), 0.5, rng, 0.5
    ),
    "explosion": lambda rng: Bursts(0.0, 0.0, 0.55, (25.0, 900.0), (), 1.1, rng),
    "gunshot/firing": lambda rng: Bursts(3.0, 0.6, 0.035, (150.0, 6000.0), (), 0.8, rng),
    "clapping": lambda rng: Bursts(9.0, 0.8, 0.012, (900.0, 4500.0), (), 0.9, rng),
    "playing drums": lambda rng: Bursts(4.0, 0.05, 0.09, (60.0, 900.0), (92.0, 147.0), 0.8, rng),
    "dog barking": lambda rng: Bursts(2.6, 0.3, 0.07, (450.0, 1800.0), (520.0, 780.0, 1170.0), 0.8, rng),
    "shouting": lambda rng: Speech(210.0, 1, 3.1, True, 0.16, 0.25, 0.8, rng),
    "shouting for help": lambda rng: Speech(290.0, 1, 1.4, True, 0.2, 0.2, 0.8, rng),
    "arguing": lambda rng: Speech(180.0, 2, 4.3, False, 0.2, 0.2, 0.8, rng),
    "speaking": lambda rng: Speech(150.0, 1, 3.9, True, 0.09, 0.15, 0.8, rng),
    "singing": lambda rng: Speech(220.0, 3, 0.9, True, 0.06, 0.05, 0.8, rng),
    "chanting/cheering": lambda rng: Speech(200.0, 7, 1.9, True, 0.1, 0.35, 0.8, rng),
    "booing": lambda rng: Speech(140.0, 6, 0.0, True, 0.03, 0.2, 0.6, rng),
    "crying": lambda rng: Speech(390.0, 1, 1.2, True, 0.12, 0.35, 0.8, rng),
    "whistling": lambda rng: Tones(wail(1900.0, 2700.0, 0.9), (1.0, 0.05), 0.28, 0.0, rng),
    "trumpet": lambda rng: Tones(melody(_TUNE, 0.3), _BRASS, 0.19, 0.0, rng),
    "playing musical instruments": lambda rng: Tones(
        melody(_TUNE[::-1], 0.42), (1, 0.4, 0.2), 0.25, 0.0, rng
    ),
    "buzzing of walkie-talkie": lambda rng: Hiss((900.0, 2600.0), 3.0, 0.5, rng),
    "sizzling": lambda rng: Hiss((2500.0, 7500.0), 2.1, 0.3, rng),
    "flare": lambda rng: Hiss((700.0, 5500.0), 0.8, 0.3, rng),
    "wind": lambda rng: Hiss((40.0, 420.0), 0.13, 1.0, rng),
    "rain": lambda rng: Hiss((1800.0, 7600.0), 0.05, 0.3, rng),
    "noise": lambda rng: Hiss((300.0, 3000.0), 0.5, 0.35, rng),
}
"""What makes the sound of a label."""
# The first that is part of a label counts.
_WORDS = {
    "ambulance": "siren (ambulance)",
    "fire engine": "siren (fire engine)",
    "siren": "siren (police)",
    "truck": "truck engine",
    "motor": "motorcycle engine",
    "engine": "engine",
    "airhorn": "airhorn",
    "horn": "honking",
    "honk": "honking",
    "crash": "crashing",
    "glass": "shattering",
    "shatter": "shattering",
    "explo": "explosion",
    "bang": "explosion",
    "shot": "gunshot/firing",
    "clap": "clapping",
    "drum": "playing drums",
    "bark": "dog barking",
    "dog": "dog barking",
    "help": "shouting for help",
    "shout": "shouting",
    "scream": "shouting",
    "argu": "arguing",
    "chant": "chanting/cheering",
    "cheer": "chanting/cheering",
    "crowd": "chanting/cheering",
    "cry": "crying",
    "whistl": "whistling",
    "sing": "singing",
    "boo": "booing",
    "voice": "speaking",
    "speak": "speaking",
    "fire": "sizzling",
}


def build_voice(label: str, rng: Chance) -> Voice:
    """Build the sound source of a label; an unknown label gives a noise of middle pitch."""
    known = (
        label if label in MAKERS else next((name for word, name in _WORDS.items() if word in label), "noise")
    )
    return MAKERS[known](rng)


# 0.2 s. A multiple of `_STEP`, so that blocks meet at a place where the source was computed.
BLOCK = 3200
"""Samples that are made at a time."""
# 343 m/s: dry air of 20 degrees. Without NEAR_M a source at 0 m would be infinitely loud.
EARS_M, NEAR_M, SOUND_MS = 0.2, 2.0, 343.0
"""Between the ears; up to where noises do not get louder; metres that sound travels in a second."""
AHEAD_M = 1.2
"""How far before the rear axle one listens."""
# Loudness and bearing are computed every 5 ms and interpolated between: nobody moves much in that time.
_STEP = 80
# More than the 9.3 samples (EARS_M / SOUND_MS) that the farther ear is late.
_HISTORY = 32
# 5 ms at both ends: a sound that begins at full strength clicks.
_FADE = 80
_MASTER = 0.6
# -54 dB: inaudible beside the wind, so that sources far away cost nothing.
_FAINT = 0.002
_STREAM = 23
_WIND = {"clear": 0.012, "overcast": 0.018, "rain": 0.02, "snow": 0.03, "low-sun": 0.01}


def render_audio(episode: Episode) -> Iterator[npt.NDArray[np.float32]]:
    """Blocks of (m, 2) float32 samples, left and right, from -1 to 1 at 16 kHz, for the length of the scene.

    A noise falls with its distance from 2 m on, is heard on the side where it is (equal power), and reaches
    the nearer ear first. Only noises that last are held, so memory does not grow with the scene.
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
        # Bends what is too loud instead of cutting it: many sources
        # may sound at once, and files hold -1 to 1.
        yield np.tanh(_MASTER * block).astype(np.float32)


class _Source:
    """One noise while it lasts."""

    def __init__(self, episode: Episode, number: int, noise: Noise) -> None:
        self._episode, self._level = episode, noise.level
        # A stream for each noise: what one of them draws does not depend on how many others are heard.
        rng = np.random.default_rng([episode.seed, number, _STREAM])
        self._voice: Voice = build_voice(noise.label, rng)
        self._actor: Actor | None = None if noise.actor is None else episode.actors[noise.actor]
        self._position = noise.position
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
        if self._actor is None and self._position is None:
            return np.ones(len(times)), np.zeros(len(times)), np.interp(frames, rows, ego.speed)
        if self._actor is None:
            own, place, speeds = rows[:1], np.array([self._position], dtype=np.float64), np.zeros(1)
        else:
            own = np.arange(self._actor.first, self._actor.end)
            place, speeds = self._actor.position, self._actor.speed
        heading = np.interp(frames, rows, np.unwrap(ego.heading))
        ahead = (np.cos(heading), np.sin(heading))
        x, y = (
            np.interp(frames, own, place[:, k])
            - np.interp(frames, rows, ego.position[:, k])
            - AHEAD_M * ahead[k]
            for k in (0, 1)
        )
        away = np.hypot(x, y)
        left = y * ahead[0] - x * ahead[1]
        speed = np.interp(frames, own, speeds)
        # Pressure falls with 1 / distance; the bearing needs a distance that is not 0.
        return NEAR_M / np.maximum(away, NEAR_M), left / np.maximum(away, 0.5), speed


def _two_ears(line: Floats, side: Floats) -> Floats:
    """(m, 2) what two ears hear of one sound, of which `_HISTORY` samples came before.

    Args:
        line: (history + m,) samples.
        side: (m,) sine of the bearing, left is positive.
    """
    # Constant power: cos^2 + sin^2 = 1, so that nothing becomes
    # louder by passing; sqrt(2) makes the middle 1.
    angle = (1.0 - side) * np.pi / 4
    found = np.empty((len(side), 2))
    middle = EARS_M / 2 / SOUND_MS * RATE
    for ear, (loud, sign) in enumerate(((np.cos(angle), -1.0), (np.sin(angle), 1.0))):
        # Never a negative delay, or an ear would need samples that are not made yet.
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
            # The same wind in both ears would sound as if it came from the middle of the head.
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
    # Their numbers seed their voices: an order that hung on how they were found would change all of them.
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
    # A source that flickers at the edge of its range would make a sound of one frame.
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
    # Drivers need a moment to react.
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
            # Each in one pair at most: three who walk together would otherwise talk over each other.
            silent.update((one.number, other.number))
    return found


Band = Literal["bandpass", "lowpass", "highpass"]
RATE = 16_000
"""Samples per second."""
_ZEROS: dict[Band, tuple[float, float, float]] = {
    "bandpass": (1.0, 0.0, -1.0),
    "lowpass": (1.0, 2.0, 1.0),
    "highpass": (1.0, -2.0, 1.0),
}


def compute_butterworth_sections(kind: Band, hertz: float | tuple[float, float], order: int = 2) -> Floats:
    """(k, 6) sections of a Butterworth filter: three factors of what comes in, three of what went out.

    Args:
        kind: bandpass, lowpass or highpass.
        hertz: its edge, or two of them for a band.
        order: its steepness; 2, or 1 for a band.
    """
    low, high = (hertz, hertz) if isinstance(hertz, int | float) else hertz
    # Edges and poles of the analogue filter that the bilinear transform turns into the wanted one.
    first, last = (2 * RATE * math.tan(math.pi * edge / RATE) for edge in (low, high))
    # One pole of a pair: order 2 has them at 135 degrees on the unit
    # circle, and real factors bring the other.
    pole = complex(-1.0) if order == 1 else cmath.exp(0.75j * math.pi)
    if kind == "bandpass":
        half, middle = pole * (last - first) / 2, math.sqrt(first * last)
        root = cmath.sqrt(half * half - middle * middle)
        # A band's pole of order 1 splits in two about its middle, the geometric mean of its edges.
        poles = [half + root, half - root]
        tuned = cmath.exp(2j * math.atan(middle / (2 * RATE)))
    else:
        poles = [pole * first if kind == "lowpass" else first / pole]
        tuned = complex(1.0 if kind == "lowpass" else -1.0)
    digital = [(2 * RATE + each) / (2 * RATE - each) for each in poles]
    if order == 1:
        one, other = digital
        backs = [(1.0, -(one + other).real, (one * other).real)]
    else:
        backs = [(1.0, -2 * each.real, abs(each) ** 2) for each in digital]
    found = np.array([(*_ZEROS[kind], *back) for back in backs])
    # Gain 1 at the middle of the band: at 0 Hz of a lowpass, at half the rate of a highpass.
    found[0, :3] /= abs(np.prod([np.polyval(row[:3], tuned) / np.polyval(row[3:], tuned) for row in found]))
    return found


class Filtered:
    """A filter of second-order sections that goes on where it stopped.

    Args:
        kind: bandpass, lowpass or highpass.
        hertz: its edges.
        order: its steepness.
    """

    def __init__(self, kind: Band, hertz: float | tuple[float, float], order: int = 2) -> None:
        self._sections = compute_butterworth_sections(kind, hertz, order)
        self._state = np.zeros((len(self._sections), 2))

    def __call__(self, block: Floats) -> Floats:
        """(m,) samples that come after those before."""
        # A copy, which the kernel changes.
        found = np.array(block, dtype=np.float64)
        apply_filter_sections(found, self._sections, self._state)
        return found


class Fading(Filtered):
    """A decaying sound after every stroke.

    Args:
        share: of it that is left after a sample.
    """

    def __init__(self, share: float) -> None:
        self._sections = np.array([(1.0, 0.0, 0.0, 1.0, -share, 0.0)])
        self._state = np.zeros((1, 2))
