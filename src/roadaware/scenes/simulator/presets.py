"""Presets and domains: named, versioned configurations of made-up scenes; a published one never changes."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace

from roadaware.errors import UsageError
from roadaware.scenes.simulator.config import (
    Behaviour,
    CameraConfig,
    Conditions,
    LidarConfig,
    Looks,
    SceneConfig,
    Surroundings,
)

PRESETS: Mapping[str, SceneConfig] = {
    "road@1": SceneConfig(preset="road", name="road@1", camera=CameraConfig()),
    "road@2": SceneConfig(
        preset="road",
        name="road@2",
        camera=CameraConfig(grain=0.0),  # its own noise follows the blur of the lens
        looks=Looks(),
    ),
    "crossing@1": SceneConfig(
        preset="crossing",
        name="crossing@1",
        seconds=15.0,
        camera=CameraConfig(fps=30.0, width_px=640, height_px=360),
        behaviour=Behaviour(vehicles=2.0, pedestrians=7.0, intending=0.6, ego_speed_kmh=28.0),
        surroundings=Surroundings(drive_on="right", crossings=1.4, junctions=0.6),
    ),
    "corner-cases@1": SceneConfig(
        preset="corner-cases",
        name="corner-cases@1",
        seconds=4.0,
        camera=CameraConfig(width_px=960, height_px=600, fps=5.0),
        lidar=LidarConfig(),
        behaviour=Behaviour(vehicles=4.0, pedestrians=4.0, objects=4),
        surroundings=Surroundings(drive_on="right", lanes=2),
    ),
    "chaos@1": SceneConfig(
        preset="chaos",
        name="chaos@1",
        seconds=12.0,
        camera=CameraConfig(width_px=640, height_px=360, fps=25.0, height_m=3.2, pitch_deg=-8.0),
        behaviour=Behaviour(crowd=14, vehicles=0.0, pedestrians=0.0),
    ),
    "kerb@1": SceneConfig(
        preset="kerb",
        name="kerb@1",
        seconds=2.4,
        camera=CameraConfig(width_px=480, height_px=160, fps=15.0, fov_deg=41.0, pitch_deg=-2.8),
        sound=False,
        conditions=Conditions("day", "overcast"),
        behaviour=Behaviour(crowd=5, vehicles=0.0, pedestrians=0.0),
        surroundings=Surroundings(drive_on="right", lanes=2),
    ),
}
"""What is asked of the made-up road, and its usual look."""

DOMAINS: Mapping[str, SceneConfig] = {
    "city-a@1": SceneConfig(
        name="city-a@1",
        conditions=Conditions("day", "clear"),
        camera=CameraConfig(fov_deg=62.0, height_m=1.35, pitch_deg=-2.0),
        behaviour=Behaviour(vehicles=4.0, pedestrians=5.0, boldness=0.35, yielding=0.85),
        surroundings=Surroundings(drive_on="left", height_m=8.0, bends=0.5, greenery=0.6),
    ),
    "city-b@1": SceneConfig(
        name="city-b@1",
        conditions=Conditions("day", "overcast"),
        camera=CameraConfig(fov_deg=82.0, height_m=1.7, pitch_deg=-4.0, grain=5.0),
        behaviour=Behaviour(vehicles=7.0, pedestrians=9.0, boldness=0.8, yielding=0.4, ego_speed_kmh=40.0),
        surroundings=Surroundings(
            drive_on="right", lanes=2, height_m=22.0, bends=0.1, greenery=0.2, junctions=1.6, hue=0.35
        ),
    ),
    "night-rain@1": SceneConfig(
        name="night-rain@1",
        conditions=Conditions("night", "rain"),
        camera=CameraConfig(grain=9.0, shake_px=0.6),
        behaviour=Behaviour(vehicles=3.0, pedestrians=3.0, boldness=0.6, yielding=0.6),
    ),
    "snow-suburb@1": SceneConfig(
        name="snow-suburb@1",
        conditions=Conditions("day", "snow"),
        camera=CameraConfig(fov_deg=70.0),
        behaviour=Behaviour(vehicles=2.0, pedestrians=3.0, ego_speed_kmh=24.0),
        surroundings=Surroundings(height_m=6.0, greenery=0.9, bus_lane=0.0, junctions=0.6, bends=0.7),
    ),
    "low-sun@1": SceneConfig(
        name="low-sun@1",
        conditions=Conditions("dusk", "low-sun"),
        surroundings=Surroundings(drive_on="right", height_m=10.0),
    ),
}
"""Towns that differ in camera, weather, density and behaviour, for studies away from home."""


def config_of(preset: str, domain: str | None = None) -> SceneConfig:
    """The configuration of a preset, in a domain.

    Args:
        preset: road, crossing, corner-cases, chaos or kerb, with or without version; without, it is the
            first, so that what a command makes stays what it was.
        domain: one of `DOMAINS`, with or without version: it gives camera (but for size and frame rate),
            conditions, behaviour and surroundings; None for the preset's own. Of the looks of `road@2` those
            of the picture stay.

    Raises:
        UsageError: if there is none of that name.
    """
    base = PRESETS[_named(preset, PRESETS, "preset")]
    if domain is None:
        return base
    there = DOMAINS[_named(domain, DOMAINS, "domain")]
    camera = replace(
        there.camera, width_px=base.camera.width_px, height_px=base.camera.height_px, fps=base.camera.fps
    )
    if base.preset == "chaos":
        camera = replace(camera, height_m=base.camera.height_m, pitch_deg=base.camera.pitch_deg)
    if base.preset == "kerb":
        # Where the camera stands and how far it sees belongs to what is asked.
        camera = replace(base.camera, grain=camera.grain, shake_px=camera.shake_px)
    looks = base.looks and replace(base.looks, camera=False, town=False)
    behaviour = replace(there.behaviour, crowd=base.behaviour.crowd, objects=base.behaviour.objects)
    return replace(
        base,
        name=f"{base.name}+{there.name}",
        camera=camera,
        conditions=there.conditions,
        behaviour=behaviour,
        surroundings=there.surroundings,
        looks=looks,
    )


def _named(name: str, known: Mapping[str, SceneConfig], what: str) -> str:
    """The full name, with its first version where none is given."""
    if name in known:
        return name
    versions = [full for full in known if full.partition("@")[0] == name]
    if versions:
        return min(versions, key=lambda full: int(full.partition("@")[2]))
    near = difflib.get_close_matches(name, [*known, *(full.partition("@")[0] for full in known)], n=1)
    guess = f"; did you mean {near[0]}?" if near else ""
    raise UsageError(f"no {what} {name!r}: there are {', '.join(known)}{guess}")
