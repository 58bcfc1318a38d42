"""Episode: one synthetic scene before anything of it is seen; Look: what it has of its own, by chance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from roadaware.simulator.actors import Actor, Ego, Signal
from roadaware.simulator.config import Conditions, Looks, SceneConfig
from roadaware.simulator.layout import Layout
from roadaware.simulator.mesh import Material


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


Rgb = tuple[float, float, float]
_TINTED: dict[str, tuple[float, float]] = {
    # How far lightness and colour of what carries these names go, as deviations of logarithms.
    "ASPHALT": (0.45, 0.05),
    "PAVING": (0.4, 0.1),
    "GRASS": (0.3, 0.25),
    "BRICK": (0.4, 0.2),
    "FOLIAGE": (0.4, 0.3),
    "WINDOWS": (0.4, 0.15),
}


@dataclass(frozen=True)
class Look:
    """Appearance of a scene, independent of its content. Factors are of linear light by default.

    Args:
        exposure: factor of all light.
        contrast: power of light; 1 leaves it as it is.
        saturation: factor of the distance from grey, 1 for as it is.
        tint: factor of red, green and blue.
        blur: spread of the lens, in shares of the image's width.
        grain: spread of the noise of the sensor, in grey levels of 255.
        vignette: share of light that the corners lose.
        veil: light that the windscreen throws back into the camera, as a share of white.
        dirt: specks on the windscreen.
        bonnet: share of the image's height that the bonnet covers in the middle; 0 for none.
        bonnet_rgb: its colour.
        mirror: share of the image's width that a mirror covers at the upper edge; 0 for none.
        texture: how uneven surfaces are, 0 for as they are.
        wires: whether there are wires above the road.
        crf: of the codec, from 18 (fine) to 51.
        coats: of each `Material`, what its colours are multiplied by.
        seed: of what is the same in all frames.
    """

    exposure: float
    contrast: float
    saturation: float
    tint: Rgb
    blur: float
    grain: float
    vignette: float
    veil: float
    dirt: int
    bonnet: float
    bonnet_rgb: Rgb
    mirror: float
    texture: float
    wires: bool
    crf: int
    coats: tuple[Rgb, ...]
    seed: int


def draw_look(looks: Looks, rng: np.random.Generator) -> Look:
    """The look of one scene; as many numbers are drawn whatever comes of them."""
    far = looks.picture
    # All at once and first: a setting that leaves one away does not shift what the others draw.
    glass, bonnet, mirror, wires, coarse, sharp = rng.random(6)
    tint = np.exp(far * rng.normal(0.0, [0.09, 0.03, 0.09]))
    # A tint changes colours; exposure alone changes how light it is.
    tint /= tint.mean()
    shine, soft = rng.random(2)
    return Look(
        exposure=float(2.0 ** (far * rng.uniform(-0.8, 0.9))),
        contrast=float(np.exp(far * rng.normal(0.0, 0.22))),
        saturation=float(1.0 + far * rng.uniform(-0.7, 0.3)),
        tint=_rgb(tint),
        blur=float(far * (0.0 if sharp < 0.4 else 0.004 * soft**2)),
        grain=float(far * 9.0 * rng.random() ** 2),
        vignette=float(far * 0.55 * rng.random()),
        veil=float((glass < looks.windscreen) * 0.22 * shine**2),
        dirt=int((glass < looks.windscreen) * rng.integers(0, 40)),
        bonnet=float((bonnet < looks.windscreen) * rng.uniform(0.04, 0.2)),
        bonnet_rgb=_rgb(rng.uniform(0.005, 0.6) * np.exp(rng.normal(0.0, 0.35, 3))),
        mirror=float((mirror < 0.5 * looks.windscreen) * rng.uniform(0.12, 0.28)),
        texture=float(looks.textures * rng.uniform(0.0, 0.5)),
        wires=bool(wires < looks.wires),
        crf=18 + round(far * (0.0 if coarse < 0.3 else float(rng.uniform(2.0, 19.0)))),
        coats=_coats(looks.textures, rng),
        seed=int(rng.integers(2**31)),
    )


def _coats(far: float, rng: np.random.Generator) -> tuple[Rgb, ...]:
    found = []
    for material in Material:
        light, colour = _TINTED.get(material.name, (0.0, 0.0))
        found.append(_rgb(np.exp(far * (light * rng.standard_normal() + colour * rng.standard_normal(3)))))
    return tuple(found)


def _rgb(values: np.ndarray) -> Rgb:
    red, green, blue = (float(value) for value in values)
    return red, green, blue


def draw_config(config: SceneConfig, rng: np.random.Generator) -> SceneConfig:
    """The configuration of one scene: its camera and its town, where the looks of the set let them differ."""
    camera = replace(
        config.camera,
        fov_deg=float(rng.uniform(48.0, 95.0)),
        height_m=float(rng.uniform(1.15, 2.3)),
        pitch_deg=float(np.clip(rng.normal(-2.0, 2.5), -8.0, 4.0)),
    )
    anyhow, near, far = rng.random(), rng.normal(0.0, 0.05), rng.random()
    town = replace(
        config.surroundings,
        drive_on="left" if rng.random() < 0.5 else "right",
        lanes=int(rng.choice([1, 2, 3], p=[0.55, 0.3, 0.15])),
        lane_width_m=float(rng.uniform(3.0, 3.8)),
        parking=float(rng.uniform(0.3, 1.0)),
        bends=float(rng.uniform(0.0, 0.8)),
        height_m=float(rng.uniform(5.0, 30.0)),
        greenery=float(rng.uniform(0.0, 1.0)),
        hue=float(far if anyhow < 0.35 else near % 1.0),
    )
    busy = config.behaviour
    busy = replace(
        busy,
        parked=float(rng.uniform(0.1, 1.0)),
        vehicles=min(30.0, float(busy.vehicles * rng.uniform(0.7, 2.5))),
        pedestrians=min(60.0, float(busy.pedestrians * rng.uniform(0.5, 2.2))),
        ego_speed_kmh=min(130.0, float(busy.ego_speed_kmh * rng.uniform(0.7, 1.6))),
    )
    looks = config.looks or Looks()
    config = replace(config, camera=camera) if looks.camera else config
    return replace(config, surroundings=town, behaviour=busy) if looks.town else config
