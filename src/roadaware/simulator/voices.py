"""Voices: how each kind of sound is made, block by block, from tones, noise, bursts and formants."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.filters import RATE, Fading, Filtered

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
        turns = self._phase + np.cumsum(self._hertz(t, speed)) / RATE
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
    """Build the sound source of a label; an unknown label gives a noise of middle pitch.

    Args:
        label: of a noise.
        rng: where chance comes from.
    """
    known = (
        label if label in MAKERS else next((name for word, name in _WORDS.items() if word in label), "noise")
    )
    return MAKERS[known](rng)
