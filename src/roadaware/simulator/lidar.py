"""A spinning LiDAR, cast on the same triangles as the image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.io.point_clouds import Sweep
from roadaware.simulator.actors import Ego
from roadaware.simulator.config import LidarConfig
from roadaware.simulator.lidar_kernels import cast
from roadaware.simulator.mesh import Material, Semantic, Soup

AHEAD_M = 1.2
"""How far the LiDAR stands before the rear axle."""
# Not the last number of any other stream of a seed and a frame (tremor of the camera, grain of the image).
_STREAM = 11
_REFLECTS = {
    Material.MATT: 0.45,
    Material.GLOSSY: 0.5,
    Material.GLASS: 0.08,
    Material.ASPHALT: 0.16,
    Material.PAVING: 0.3,
    Material.GRASS: 0.38,
    Material.BRICK: 0.42,
    Material.FOLIAGE: 0.35,
    Material.MARKING: 0.85,
    Material.WINDOWS: 0.3,
    Material.CLOTH: 0.4,
    Material.LAMP: 0.7,
}
"""Share of infrared light that surfaces send back when they are met head on."""
_SPARKLE = 0.03


@dataclass(frozen=True, eq=False)
class Hits:
    """Ray hits before measurement noise; rings from below, columns from ahead to the left.

    Args:
        triangle: (rings, columns) places in the soup, -1 where there is nothing.
        ranges: (rings, columns) metres, inf where there is nothing.
        facing: (rings, columns) cosine between ray and surface.
    """

    triangle: npt.NDArray[np.int32]
    ranges: Floats
    facing: Floats


def lidar_pose(ego: Ego, config: LidarConfig, frame: int) -> Floats:
    """(4, 4) takes points of the LiDAR (x forward, y left, z up) to the world.

    Args:
        ego: the own vehicle.
        config: of the LiDAR.
        frame: a row of `ego`.
    """
    heading = float(ego.heading[frame])
    c, s = np.cos(heading), np.sin(heading)
    pose = np.eye(4)
    pose[:2, :2] = [[c, -s], [s, c]]
    place = np.asarray(ego.position[frame], dtype=np.float64)
    pose[:3, 3] = place + np.array([AHEAD_M * c, AHEAD_M * s, config.height_m])
    return pose


def elevations(config: LidarConfig) -> Floats:
    """(rings,) radians, from the lowest ring to the highest."""
    return np.radians(np.linspace(config.lowest_deg, config.highest_deg, config.rings))


def azimuths(config: LidarConfig) -> Floats:
    """(columns,) radians counter-clockwise from ahead."""
    return 2 * np.pi * np.arange(config.columns) / config.columns


def cast_rays(soup: Soup, pose: Floats, config: LidarConfig) -> Hits:
    """Where each ray first meets the front of a triangle.

    Args:
        soup: triangles in the world.
        pose: (4, 4) takes points of the LiDAR to the world.
        config: of the LiDAR.
    """
    turn = np.asarray(pose, dtype=np.float64)[:3, :3].T
    inverse = np.column_stack([turn, -turn @ np.asarray(pose, dtype=np.float64)[:3, 3]])
    around, above = azimuths(config), elevations(config)
    shape = (config.rings, config.columns)
    nearest, ranges, facing = np.full(shape, np.inf), np.full(shape, np.inf), np.zeros(shape)
    triangle = np.full(shape, -1, dtype=np.int32)
    columns = np.column_stack([np.cos(around), np.sin(around)])
    cast(
        np.ascontiguousarray(soup.corners, dtype=np.float32),
        np.ascontiguousarray(soup.material, dtype=np.uint8),
        np.ascontiguousarray(inverse),
        np.ascontiguousarray(columns),
        np.tan(above),
        1.0 / np.cos(above),
        float(config.range_m),
        nearest,
        ranges,
        facing,
        triangle,
    )
    return Hits(triangle, ranges, facing)


def simulate_sweep(
    soup: Soup,
    pose: Floats,
    config: LidarConfig,
    *,
    seed: int,
    frame: int,
) -> Sweep:
    """One turn of the LiDAR: exact hits, then lost returns, noise along the rays, and intensities.

    What is drawn hangs on seed, frame and ray alone, so that sweeps may be taken in any order.

    Args:
        soup: triangles in the world.
        pose: (4, 4) takes points of the LiDAR to the world.
        config: of the LiDAR.
        seed: of the scene.
        frame: of the scene.
    """
    hits = cast_rays(soup, pose, config)
    rng = np.random.default_rng([seed, frame, _STREAM])
    shape = hits.triangle.shape
    # Drawn for all rays, hit or not: what one ray gets does not depend on what the others meet.
    lost = rng.random(shape, dtype=np.float32) < config.dropout
    tremor = rng.standard_normal(shape, dtype=np.float32)
    sparkle = rng.standard_normal(shape, dtype=np.float32)
    ring, column = np.nonzero((hits.triangle >= 0) & ~lost)
    triangle = hits.triangle[ring, column]
    # Noise must not throw a point to the other side of the sensor.
    measured = np.maximum(hits.ranges[ring, column] + config.noise_m * tremor[ring, column], 0.0)
    above, around = elevations(config)[ring], azimuths(config)[column]
    flat = measured * np.cos(above)
    # (n,) share of light that comes back: by material, less at grazing angles; signs send all of it back.
    table = np.array([_REFLECTS[material] for material in Material])
    reflects = table[soup.material[triangle]]
    sign = soup.semantic[triangle] == Semantic.TRAFFIC_SIGN
    mirrors = sign | (soup.material[triangle] == Material.MARKING)
    # Rough surfaces follow the cosine; what is made to be seen at
    # night sends light back to where it came from.
    found: Floats = np.where(
        mirrors, np.where(sign, 0.95, reflects), reflects * (0.25 + 0.75 * hits.facing[ring, column])
    )
    strength = found + _SPARKLE * sparkle[ring, column]
    points = np.column_stack(
        [
            flat * np.cos(around),
            flat * np.sin(around),
            measured * np.sin(above),
            np.clip(strength, 0.0, 1.0),
            ring,
        ]
    )
    return Sweep(points.astype(np.float32), soup.instance[triangle], soup.semantic[triangle])
