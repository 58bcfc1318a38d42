"""SceneConfig: everything that decides a synthetic scene, apart from its seed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from roadaware.config import check_range
from roadaware.errors import UsageError

Weather = Literal["clear", "overcast", "rain", "snow", "low-sun"]
TimeOfDay = Literal["day", "dusk", "night"]
Side = Literal["left", "right"]
Preset = Literal["road", "crossing", "corner-cases", "chaos", "kerb"]


@dataclass(frozen=True)
class CameraConfig:
    """The camera behind the windscreen.

    Args:
        width_px: of the images, even.
        height_px: of the images, even.
        fps: frames per second.
        fov_deg: horizontal field of view.
        height_m: above the ground.
        pitch_deg: how far it looks up.
        shake_px: spread of the image's tremor.
        grain: spread of the noise of the sensor, in grey levels of 255.
    """

    width_px: int = 640
    height_px: int = 480
    fps: float = 12.0
    fov_deg: float = 70.0
    height_m: float = 1.5
    pitch_deg: float = -3.0
    shake_px: float = 0.3
    grain: float = 3.0

    def __post_init__(self) -> None:
        check_range("width_px", self.width_px, 32, 7680)
        check_range("height_px", self.height_px, 32, 4320)
        # h264 with 4:2:0 has one sample of colour for 2 x 2 pixels.
        if self.width_px % 2 or self.height_px % 2:
            raise UsageError(f"images are of even size, not {self.width_px}x{self.height_px}")
        check_range("fps", self.fps, 1, 120)
        check_range("fov_deg", self.fov_deg, 20, 140)
        check_range("height_m", self.height_m, 0.3, 6)
        check_range("pitch_deg", self.pitch_deg, -45, 45)
        check_range("shake_px", self.shake_px, 0, 20)
        check_range("grain", self.grain, 0, 64)


@dataclass(frozen=True)
class LidarConfig:
    """A spinning LiDAR on the roof.

    Args:
        rings: beams above each other.
        columns: measurements in a turn.
        lowest_deg: elevation of the lowest ring.
        highest_deg: elevation of the highest ring.
        height_m: above the ground.
        range_m: farthest return.
        noise_m: spread of a measured range.
        dropout: share of returns that are lost.
    """

    rings: int = 64
    columns: int = 900
    # The vertical field of a Velodyne HDL-64E, and its 64 rings.
    lowest_deg: float = -24.8
    highest_deg: float = 2.0
    height_m: float = 1.9
    range_m: float = 100.0
    noise_m: float = 0.02
    dropout: float = 0.03

    def __post_init__(self) -> None:
        check_range("rings", self.rings, 1, 256)
        check_range("columns", self.columns, 8, 8192)
        check_range("range_m", self.range_m, 1, 500)
        check_range("height_m", self.height_m, 0.3, 6)
        check_range("noise_m", self.noise_m, 0, 1)
        check_range("dropout", self.dropout, 0, 0.99)
        if not -90 < self.lowest_deg < self.highest_deg < 90:
            raise UsageError(
                f"rings from {self.lowest_deg} to {self.highest_deg} degrees: lowest comes first"
            )


@dataclass(frozen=True)
class Conditions:
    """Light and weather.

    Args:
        time: of the day.
        weather: of the whole scene.
    """

    time: TimeOfDay = "day"
    weather: Weather = "clear"


@dataclass(frozen=True)
class Behaviour:
    """Density and behaviour of actors.

    Args:
        vehicles: moving vehicles and cyclists per 100 m of road in view, about.
        pedestrians: per 100 m of road, about.
        parked: share of parking bays that are taken.
        ego_speed_kmh: what the own vehicle drives where nothing is in the way.
        boldness: 0 pedestrians wait for long gaps, 1 they take any.
        yielding: share of drivers who stop for somebody at a zebra crossing.
        intending: share of pedestrians near the road who want to cross it.
        looking: share of pedestrians who look before they step out.
        crowd: people in a scene of chaos, or at a kerb.
        objects: things on the road that do not belong there, in a scene of corner cases.
    """

    vehicles: float = 4.0
    pedestrians: float = 5.0
    parked: float = 0.6
    ego_speed_kmh: float = 30.0
    boldness: float = 0.5
    yielding: float = 0.7
    intending: float = 0.45
    looking: float = 0.8
    crowd: int = 14
    objects: int = 3

    def __post_init__(self) -> None:
        for name, most in (
            ("vehicles", 30),
            ("pedestrians", 60),
            ("ego_speed_kmh", 130),
            ("crowd", 80),
            ("objects", 40),
        ):
            check_range(name, getattr(self, name), 0, most)
        for name in ("parked", "boldness", "yielding", "intending", "looking"):
            check_range(name, getattr(self, name), 0, 1)


@dataclass(frozen=True)
class Surroundings:
    """The town.

    Args:
        drive_on: side of the road.
        lanes: vehicle lanes in each direction, 1 to 3.
        lane_width_m: of a vehicle lane.
        bus_lane: share of roads with a bus lane.
        cycle_lane: share of roads with a cycle lane.
        parking: share of roads with parking bays.
        bends: 0 straight roads, 1 tight bends.
        junctions: per 100 m of road.
        crossings: zebra and signalled crossings per 100 m of road, apart from junctions.
        signals: share of junctions with traffic lights.
        height_m: of buildings, about.
        greenery: 0 no trees, 1 an avenue.
        hue: 0 to 1, turns every colour of things around the circle; nothing may hang on colour alone.
    """

    drive_on: Side = "left"
    lanes: int = 1
    lane_width_m: float = 3.3
    bus_lane: float = 0.35
    cycle_lane: float = 0.4
    parking: float = 0.6
    bends: float = 0.3
    junctions: float = 1.0
    crossings: float = 0.8
    signals: float = 0.6
    height_m: float = 9.0
    greenery: float = 0.5
    hue: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.lanes, bool) or not isinstance(self.lanes, int) or not 1 <= self.lanes <= 3:
            raise UsageError(f"a road has 1 to 3 lanes in each direction, not {self.lanes!r}")
        check_range("lane_width_m", self.lane_width_m, 2.5, 5)
        for name in ("bus_lane", "cycle_lane", "parking", "bends", "signals", "greenery", "hue"):
            check_range(name, getattr(self, name), 0, 1)
        for name, most in (("junctions", 4), ("crossings", 4), ("height_m", 80)):
            check_range(name, getattr(self, name), 0, most)


@dataclass(frozen=True)
class Looks:
    """How far scenes of one set differ in their looks; what one of them has is drawn from its own seed.

    Args:
        picture: 0 to 1, how far exposure, contrast, saturation, tint, sharpness, grain, vignette and the
            quality of the codec go.
        windscreen: 0 to 1, share of scenes with a bonnet, and of those with dirt and reflections before the
            camera, and with a mirror.
        textures: 0 to 1, how uneven surfaces are, and how far their colours go.
        wires: 0 to 1, share of scenes with wires above the road.
        camera: whether height, pitch and field of view are drawn as well.
        town: whether the town and who is about are drawn as well: side of the road, lanes, buildings,
            foliage, hue, parked vehicles, traffic.
        parked: whether parked vehicles have boxes, which those of ROAD do not.
    """

    picture: float = 1.0
    windscreen: float = 0.4
    textures: float = 1.0
    wires: float = 0.4
    camera: bool = True
    town: bool = True
    parked: bool = True

    def __post_init__(self) -> None:
        for name in ("picture", "windscreen", "textures", "wires"):
            check_range(name, getattr(self, name), 0, 1)


@dataclass(frozen=True)
class Staging:
    """What scenes of `chaos@2` have beyond those of `chaos@1`.

    They have all fifteen events, boxes of bodies beside those of whole shapes, sounds that are few at a time,
    some from out of sight, and sentences of more forms.

    Args:
        near_m: metres before the camera from which on scenes are played.
        far_m: up to where. A person of 1.72 m is 90 px high at 13 m, at 640x360 and a field of view of 50 degrees.
        wide: share of scenes with a lens that is wide, in which people are smaller.
        wide_deg: its field of view.
        acts: acts that each scene shows besides those of its event; scenes take all there are in turn.
        sounds: sounds at a time, at most.
        alone: share of scenes with one sound at a time at most.
        silent: share of scenes without a sound but wind and rain.
        off_screen: share of scenes in which a sound comes from out of sight.
        towns: whether each scene draws a town of its own; else it is that of the config.
    """

    near_m: float = 6.8
    far_m: float = 13.0
    wide: float = 0.12
    wide_deg: float = 70.0
    acts: int = 3
    sounds: int = 3
    alone: float = 0.4
    silent: float = 0.08
    off_screen: float = 0.35
    towns: bool = True

    def __post_init__(self) -> None:
        check_range("near_m", self.near_m, 3, 30)
        check_range("far_m", self.far_m, self.near_m + 3, 60)
        check_range("wide_deg", self.wide_deg, 20, 140)
        check_range("acts", self.acts, 0, 12)
        check_range("sounds", self.sounds, 1, 12)
        for name in ("wide", "alone", "silent", "off_screen"):
            check_range(name, getattr(self, name), 0, 1)


@dataclass(frozen=True)
class SceneConfig:
    """What is simulated; `presets` names the ones that are published.

    Args:
        preset: road, crossing, corner-cases, chaos or kerb.
        name: of preset or domain, with its version, such as `road@1`.
        seconds: length of a scene.
        camera: of the own vehicle.
        lidar: on its roof; None for none.
        sound: whether there is a sound track.
        conditions: light and weather; None draws them for each scene.
        behaviour: of everybody.
        surroundings: the town.
        looks: how far scenes differ in their looks, not of chaos or kerb; None for not at all.
        staging: of scenes of chaos, as `chaos@2` has it; None as in `chaos@1`.
    """

    preset: Preset = "road"
    name: str = "road@1"
    seconds: float = 20.0
    camera: CameraConfig = field(default_factory=CameraConfig)
    lidar: LidarConfig | None = None
    sound: bool = True
    conditions: Conditions | None = None
    behaviour: Behaviour = field(default_factory=Behaviour)
    surroundings: Surroundings = field(default_factory=Surroundings)
    looks: Looks | None = None
    staging: Staging | None = None

    def __post_init__(self) -> None:
        check_range("seconds", self.seconds, 0.5, 3600)
        busy = self.behaviour
        if not (busy.vehicles or busy.pedestrians or busy.crowd):
            raise UsageError("nobody is about: vehicles, pedestrians and crowd are all 0")
        if self.looks is not None and self.preset in ("chaos", "kerb"):
            raise UsageError(f"scenes of {self.preset} are drawn for their story: give them no looks")
        if self.staging is not None and self.preset != "chaos":
            raise UsageError(f"scenes of {self.preset} are not staged: staging is for those of chaos")

    @property
    def n_frames(self) -> int:
        """Frames of a scene."""
        return max(1, round(self.seconds * self.camera.fps))


# Presets and domains: named, versioned configurations of synthetic scenes; a published one never changes.

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
    "chaos@2": SceneConfig(
        preset="chaos",
        name="chaos@2",
        seconds=12.0,
        camera=CameraConfig(
            width_px=640, height_px=360, fps=25.0, fov_deg=50.0, height_m=2.4, pitch_deg=-6.0
        ),
        behaviour=Behaviour(crowd=10, vehicles=0.0, pedestrians=0.0),
        staging=Staging(),
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
"""What is asked of the synthetic road, and its usual look."""

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
    "harbour@1": SceneConfig(
        name="harbour@1",
        camera=CameraConfig(grain=6.0, shake_px=0.5),
        surroundings=Surroundings(
            drive_on="right",
            lanes=3,
            lane_width_m=3.8,
            bus_lane=0.8,
            cycle_lane=0.0,
            parking=0.9,
            height_m=24.0,
            greenery=0.95,
            bends=0.1,
        ),
    ),
}
"""Towns that differ in camera, weather, density and behaviour, for studies out of domain."""


def build_scene_config(preset: str, domain: str | None = None) -> SceneConfig:
    """The configuration of a preset, in a domain.

    Args:
        preset: road, crossing, corner-cases, chaos or kerb, with or without version; without, it is the
            first, so that what a command makes stays what it was.
        domain: one of `DOMAINS`, with or without version: it gives camera (but for size and frame rate),
            conditions, behaviour and surroundings; None for the preset's own. Of the looks of `road@2` those
            of the image stay.

    Raises:
        UsageError: if there is none of that name.
    """
    base = PRESETS[_resolve_version(preset, PRESETS, "preset")]
    if domain is None:
        return base
    there = DOMAINS[_resolve_version(domain, DOMAINS, "domain")]
    camera = replace(
        there.camera, width_px=base.camera.width_px, height_px=base.camera.height_px, fps=base.camera.fps
    )
    if base.preset == "chaos":
        # A crowd is seen from above; at the height of a car those in front would hide those behind.
        camera = replace(camera, height_m=base.camera.height_m, pitch_deg=base.camera.pitch_deg)
    if base.staging is not None:
        # How high people are belongs to what is asked, as does what colour their clothes are called.
        camera = replace(base.camera, grain=camera.grain, shake_px=camera.shake_px)
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
        surroundings=there.surroundings if base.staging is None else replace(there.surroundings, hue=0.0),
        looks=looks,
        staging=base.staging and replace(base.staging, towns=False),
    )


def adapt_scene_config(
    config: SceneConfig,
    *,
    seconds: float | None = None,
    size: tuple[int, int] | None = None,
    fps: float | None = None,
    lidar: bool | None = None,
    sound: bool = True,
    time: TimeOfDay | None = None,
    weather: Weather | None = None,
) -> SceneConfig:
    """A configuration of another length, camera, choice of sensors, light or weather; None leaves what it says.

    Args:
        config: to begin with.
        seconds: length of a scene.
        size: width and height of the images in pixels.
        fps: frames a second.
        lidar: whether there is one; its own, or the usual one.
        sound: False takes the microphone away.
        time: of the day; where it alone is given, the weather is clear or what the configuration fixes.
        weather: where it alone is given, it is day or what the configuration fixes.

    Raises:
        UsageError: if the sun is low at night.
    """
    conditions = config.conditions
    if time is not None or weather is not None:
        fixed = conditions or Conditions()
        conditions = Conditions(time or fixed.time, weather or fixed.weather)
        if conditions == Conditions("night", "low-sun"):
            raise UsageError("the sun is not low at night: choose another time or weather")
    camera = config.camera
    if size is not None:
        camera = replace(camera, width_px=size[0], height_px=size[1])
    if fps is not None:
        camera = replace(camera, fps=fps)
    swept = config.lidar if lidar is None else (config.lidar or LidarConfig()) if lidar else None
    length = config.seconds if seconds is None else seconds
    return replace(
        config,
        camera=camera,
        seconds=length,
        lidar=swept,
        sound=sound and config.sound,
        conditions=conditions,
    )


def _resolve_version(name: str, known: Mapping[str, SceneConfig], what: str) -> str:
    """The full name, with its first version where none is given."""
    if name in known:
        return name
    versions = [full for full in known if full.partition("@")[0] == name]
    if versions:
        # The first, not the newest: a command goes on making what it made when a version is added.
        return min(versions, key=lambda full: int(full.partition("@")[2]))
    near = difflib.get_close_matches(name, [*known, *(full.partition("@")[0] for full in known)], n=1)
    guess = f"; did you mean {near[0]}?" if near else ""
    raise UsageError(f"no {what} {name!r}: there are {', '.join(known)}{guess}")
