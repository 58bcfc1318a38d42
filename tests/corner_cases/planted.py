"""A synthetic sweep: a LiDAR above a plane with upright boxes at known places, cast ray by ray."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.corner_cases.captures import Camera, Capture

Floats = npt.NDArray[np.float64]
HEIGHT_M = 1.8


@dataclass(frozen=True)
class Thing:
    """A box on the ground: middle, sizes along and across the view, height, and how high it floats."""

    x: float
    y: float
    length: float = 1.0
    width: float = 1.0
    height: float = 1.0
    floats: float = 0.0


@dataclass(frozen=True)
class World:
    """What is swept.

    Args:
        things: on the ground.
        tilt_deg: of the ground, about the axis to the left (roads that fall away ahead are positive).
        roll_deg: of the ground, about the axis ahead.
        rings: beams from 3 to -25 degrees.
        columns: in a turn.
        noise_m: spread of ranges.
        farthest_m: of the returns.
    """

    things: tuple[Thing, ...] = ()
    tilt_deg: float = 0.0
    roll_deg: float = 0.0
    rings: int = 32
    columns: int = 720
    noise_m: float = 0.0
    farthest_m: float = 60.0

    @property
    def turn(self) -> Floats:
        """(3, 3) takes directions above a level road to those above this one."""
        a, b = np.radians([self.tilt_deg, self.roll_deg])
        pitch = np.array([[np.cos(a), 0, np.sin(a)], [0, 1, 0], [-np.sin(a), 0, np.cos(a)]])
        roll = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
        found: Floats = pitch @ roll
        return found


def sweep(
    world: World, seed: int = 0
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """(n, 3) points ring by ring from above, (n,) rings, and (n,) thing of each, from 1; 0 is the ground."""
    elevation = np.radians(np.linspace(3, -25, world.rings))
    azimuth = 2 * np.pi * (np.arange(world.columns) + 0.25) / world.columns
    up, around = (each.ravel() for each in np.meshgrid(elevation, azimuth, indexing="ij"))
    rays = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=1)
    level = rays @ world.turn
    with np.errstate(divide="ignore", invalid="ignore"):
        ranges = np.where(level[:, 2] < 0, -HEIGHT_M / level[:, 2], np.inf)
        met = np.zeros(len(rays), dtype=np.int32)
        for number, thing in enumerate(world.things, 1):
            bottom = -HEIGHT_M + thing.floats
            low = np.array([thing.x - thing.length / 2, thing.y - thing.width / 2, bottom])
            high = low + np.array([thing.length, thing.width, thing.height])
            first, last = low / level, high / level
            near, far = np.minimum(first, last).max(1), np.maximum(first, last).min(1)
            hit = (near <= far) & (near > 0) & (near < ranges)
            ranges, met = np.where(hit, near, ranges), np.where(hit, number, met)
    seen = ranges < world.farthest_m
    rng = np.random.default_rng(seed)
    measured = ranges[seen] + world.noise_m * rng.standard_normal(int(seen.sum()))
    ring = np.repeat(np.arange(world.rings), world.columns)[seen]
    return (rays[seen] * measured[:, None]).astype(np.float32), ring.astype(np.int32), met[seen]


def ahead(width: int = 640, height: int = 480, focal: float = 400.0) -> Camera:
    """A camera at the LiDAR that looks ahead."""
    pose = np.eye(4)
    pose[:3, :3] = [[0, -1, 0], [0, 0, -1], [1, 0, 0]]
    lens = np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1.0]])
    return Camera(lens, pose, width, height)


def corners_in(camera: Camera, world: World, thing: Thing) -> Floats:
    """x1, y1, x2, y2 of a thing that is wholly before the camera, cut to the image."""
    x = thing.x + thing.length / 2 * np.array([-1, 1])
    y = thing.y + thing.width / 2 * np.array([-1, 1])
    z = -HEIGHT_M + thing.floats + thing.height * np.array([0, 1])
    places = np.stack(np.meshgrid(x, y, z, indexing="ij"), axis=-1).reshape(-1, 3) @ world.turn.T
    seen = places @ camera.camera_SE3_lidar[:3, :3].T @ camera.intrinsics.T
    pixels = seen[:, :2] / seen[:, 2:]
    size = [camera.width_px, camera.height_px]
    found: Floats = np.concatenate([np.clip(pixels.min(0), 0, size), np.clip(pixels.max(0), 0, size)])
    return found


def capture(world: World, *, seed: int = 0, ringed: bool = True) -> Capture:
    """The sweep with a camera that looks ahead."""
    points, ring, _ = sweep(world, seed)
    layout = f"{world.rings} rings x {world.columns} columns"
    return Capture(points, ahead(), ring=ring if ringed else None, layout=layout, name="planted")
