"""A street with a junction, drawn by hand, and actors that do one thing each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roadaware.simulator.actors import AV_ACTIONS, Actor, Ego, Mind, Signal
from roadaware.simulator.config import CameraConfig, Conditions, Preset, SceneConfig, Surroundings
from roadaware.simulator.episode import Episode
from roadaware.simulator.layout import Connector, Crossing, Junction, Lane, Layout, Line
from roadaware.simulator.mesh import build_camera
from roadaware.simulator.town.roads import Profile, Street, build_lanes, straight
from roadaware.simulator.truth import Seen

FRAMES = 24
FPS = 12.0
SIZES = {
    "Ped": (0.4, 0.6, 1.75),
    "Cyc": (1.8, 0.6, 1.8),
    "Mobike": (2.1, 0.8, 1.6),
    "MedVeh": (5.2, 2.0, 2.2),
    "LarVeh": (8.0, 2.5, 3.4),
    "Bus": (11.0, 2.5, 3.6),
    "dog": (0.9, 0.3, 0.6),
    "stroller": (0.9, 0.6, 1.0),
}
VEHICLE, BUS, CYCLE, PARKING, PAVEMENT = 1.65, 4.95, 7.4, 9.3, 11.65
"""How far the middles of the lanes lie from the middle of the main road."""


def small_layout(drive_on: str = "left") -> Layout:
    """A main road along x from -60 to 50, a junction, its continuation from 66 on, and a road across.

    Beside each half of the main road lie a vehicle lane, a bus lane, a cycle lane, parking bays (-20 to 20),
    a pavement; a bus stops from 25 to 39, and a zebra crossing lies at 45.
    """
    side = 1 if drive_on == "left" else -1
    main = Profile(1, 3.3, bus=True, cycle=True, parking=True, pavement_m=2.5)
    across = Profile(1, 3.3, bus=False, cycle=False, parking=False, pavement_m=2.5)
    streets = [
        Street(straight(np.array([-60.0, 0.0]), 0.0, 110.0), main, -1, 0, on_route=True),
        Street(straight(np.array([66.0, 0.0]), 0.0, 90.0), main, 0, -1, on_route=True),
        Street(straight(np.array([58.0, 10.4]), np.pi / 2, 70.0), across, 0, -1, on_route=False),
        Street(straight(np.array([58.0, -10.4]), -np.pi / 2, 70.0), across, 0, -1, on_route=False),
    ]
    for left in (1, -1):
        streets[0].parking[left] = ((40.0, 80.0),)
    streets[0].stops[side] = ((85.0, 99.0),)
    lanes: list[Lane] = []
    for number, street in enumerate(streets):
        street.lanes = build_lanes(street, number, len(lanes), side)
        lanes += street.lanes
    ends = [
        next(lane for lane in street.lanes if lane.kind == "vehicle" and lane.forward) for street in streets
    ]
    outline = np.array([[50.0, -10.4], [66.0, -10.4], [66.0, 10.4], [50.0, 10.4]])
    ways = [
        Connector(
            ends[0].number,
            end.number,
            Line(np.array([ends[0].line.points[-1], end.line.points[0]])),
            "straight",
        )
        for end in ends[1:]
    ]
    return Layout(
        tuple(street.road(number) for number, street in enumerate(streets)),
        tuple(lanes),
        (Junction(0, outline, tuple(ways)),),
        (Crossing(0, 0, 105.0, 3.0, "zebra"),),
        (),
        (),
        (ends[0].number, ends[1].number),
    )


def own(
    layout: Layout, *, x: float = 0.0, speed: float = 5.0, action: str = "AV-Mov", frames: int = FRAMES
) -> Ego:
    """The own vehicle on its lane, along x."""
    lane = layout.lanes[layout.route[0]]
    way = x + speed / FPS * np.arange(frames)
    y = float(lane.line.points[0, 1])
    zero = np.zeros(frames)
    return Ego(
        np.stack([way, np.full(frames, y), zero], axis=1),
        zero,
        np.full(frames, speed),
        zero,
        zero,
        np.full(frames, AV_ACTIONS.index(action), dtype=np.int64),
        np.where(way < 50, lane.number, np.where(way < 66, -1, layout.route[1])).astype(np.int64),
    )


def mover(
    number: int,
    kind: str,
    place: tuple[float, float],
    heading_deg: float = 0.0,
    speed: float | Sequence[float] = 0.0,
    *,
    first: int = 0,
    frames: int = FRAMES,
    lamps: int | Sequence[int] = 0,
    pose: int = 0,
    gaze_deg: float = 0.0,
    turn_dps: float = 0.0,
    mind: Mind | None = None,
    facts: dict[str, Any] | None = None,
    **more: Any,
) -> Actor:
    """Somebody who starts at a place and goes where they point."""
    pace = np.broadcast_to(np.asarray(speed, dtype=np.float64), (frames,)).copy()
    heading = np.radians(heading_deg + turn_dps / FPS * np.arange(frames))
    steps = np.stack([np.cos(heading), np.sin(heading)], axis=1) * pace[:, None] / FPS
    at = np.asarray(place) + np.cumsum(steps, axis=0) - steps[0]
    told = {
        name: np.broadcast_to(np.asarray(value, dtype=np.int8), (frames,)).copy()
        for name, value in (facts or {}).items()
    }
    return Actor(
        number,
        kind,
        kind.lower(),
        SIZES.get(kind, (4.2, 1.8, 1.5)),
        7,
        first,
        np.concatenate([at, np.zeros((frames, 1))], axis=1),
        heading,
        pace,
        np.broadcast_to(np.asarray(lamps, dtype=np.uint8), (frames,)).copy(),
        np.full(frames, pose, dtype=np.uint8),
        np.zeros(frames),
        np.full(frames, np.radians(gaze_deg)),
        np.full(frames, -1, dtype=np.int64),
        facts=told,
        mind=mind,
        **more,
    )


def light(
    number: int, place: tuple[float, float, float], heading_deg: float, state: int, lanes: Sequence[int]
) -> Signal:
    """A traffic light that shows one state."""
    states = np.full(FRAMES, state, dtype=np.uint8)
    return Signal(number, np.array(place), np.radians(heading_deg), states, tuple(lanes), 0)


def situation(
    *actors: Actor,
    drive_on: str = "left",
    preset: Preset = "road",
    name: str = "road-0000",
    ego: Ego | None = None,
    seconds: float = FRAMES / FPS,
    **more: Any,
) -> Episode:
    """An episode on the small layout."""
    side: Any = drive_on
    layout = small_layout(drive_on)
    config = SceneConfig(
        preset=preset,
        name=f"{preset}@1",
        seconds=seconds,
        camera=CameraConfig(width_px=320, height_px=240, fps=FPS, shake_px=0.0),
        surroundings=Surroundings(drive_on=side),
    )
    held = own(layout, frames=config.n_frames) if ego is None else ego
    return Episode(name, 3, config, Conditions(), layout, held, actors, **more)


def assumed(episode: Episode) -> Seen:
    """Everybody in view is seen as the block that they are, and hides nobody."""
    rows: list[tuple[int, int, np.ndarray]] = []
    width, height = episode.config.camera.width_px, episode.config.camera.height_px
    block = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (0, 1)])
    for frame in range(episode.n_frames):
        camera = build_camera(episode.ego, episode.config, frame, episode.seed)
        for actor in episode.actors:
            row = actor.at(frame)
            if row is None:
                continue
            pixels, depth = camera.project(block * actor.size_m + actor.position[row])
            if depth.min() > 0.5:
                rows.append((frame, actor.number, np.concatenate([pixels.min(0), pixels.max(0)])))
    box = np.clip(np.array([row[2] for row in rows]), 0, [width, height, width, height]).astype(np.float32)
    area = ((box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])).round().astype(np.int64)
    joints = np.full((len(rows), 17, 3), np.nan, dtype=np.float32)
    frame, instance = (np.array([row[k] for row in rows], dtype=np.int64) for k in (0, 1))
    return Seen(frame, instance, area, box, box, area, joints)
