"""Episode: one synthetic scene before anything of it is seen or measured."""

from __future__ import annotations

from dataclasses import dataclass

from roadaware.simulator.actors import Actor, Ego, Signal
from roadaware.simulator.config import Conditions, SceneConfig
from roadaware.simulator.layout import Layout
from roadaware.simulator.looks import Look


@dataclass(frozen=True)
class Bond:
    """A relation of two actors over a half-open span of frames."""

    subject: int
    predicate: str
    object: int
    start: int
    end: int


@dataclass(frozen=True)
class Noise:
    """A sound with a place.

    Args:
        label: what it is: horn, siren, engine, crash, shouting, clapping, ...
        actor: number of who or what makes it; None for the own vehicle.
        start_s: when it begins.
        end_s: when it ends.
        level: loudness at one metre, 1 is a voice raised.
        position: (2,) x and y in the world of a source that nobody is; None for that of the actor.
        sound: which sound of a staged scene it is a part of; several voices may be one sound.
    """

    label: str
    actor: int | None
    start_s: float
    end_s: float
    level: float = 1.0
    position: tuple[float, float] | None = None
    sound: int | None = None


@dataclass(frozen=True)
class Sentence:
    """Something said about one person and a span of frames, half open; `form` is how, in staged scenes."""

    text: str
    actor: int
    start: int
    end: int
    kind: str = "declarative"
    form: str = "statement"


@dataclass(frozen=True, eq=False)
class Episode:
    """One scene.

    Args:
        name: of the scene; its video has the same.
        seed: it was made from, with the config; of a scene with a look, that of the look.
        config: the same for all scenes of a set, unless its looks draw some of it for each.
        conditions: light and weather of this one.
        layout: roads and what stands beside them.
        ego: the own vehicle.
        actors: everybody else; `actors[k].number == k`.
        signals: traffic lights; `signals[k].number == k`.
        bonds: between people.
        noises: that are heard.
        sentences: about people.
        category: what happens as a whole, in a scene of chaos.
        look: of its images; None for the usual one.
    """

    name: str
    seed: int
    config: SceneConfig
    conditions: Conditions
    layout: Layout
    ego: Ego
    actors: tuple[Actor, ...]
    signals: tuple[Signal, ...] = ()
    bonds: tuple[Bond, ...] = ()
    noises: tuple[Noise, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    category: str | None = None
    look: Look | None = None

    @property
    def n_frames(self) -> int:
        """Frames of the scene."""
        return len(self.ego.heading)
