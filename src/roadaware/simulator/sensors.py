"""What sensors make of a scene: the lens of a camera, with its ground truth, and a spinning LiDAR."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Floats32
from roadaware.io.point_clouds import Sweep
from roadaware.simulator.actors import Ego
from roadaware.simulator.config import LidarConfig
from roadaware.simulator.episode import Episode, Look
from roadaware.simulator.mesh import Camera, Material, Semantic, Soup
from roadaware.simulator.raster_kernels import cast
from roadaware.simulator.render import Picture, noise_field
from roadaware.simulator.shading_kernels import unevenness

# A power is close to sRGB's curve and its inverse is one line; the dark needs more steps than 256.
_GAMMA, _STEPS = 2.2, 4096
_MIDDLE = 0.2
"""Light that a change of contrast leaves as it is."""
_NEAR_M = 1.0
"""How far off the own vehicle's parts are said to be."""


class Lens:
    """Takes the images of one scene; each depends on its frame alone.

    What stands before the camera hides what is behind it from the masks as well. All else changes colours
    alone, and nothing moves a pixel, so boxes stay exact.

    Args:
        episode: the scene.
        look: of it.
    """

    def __init__(self, episode: Episode, look: Look) -> None:
        self._look = look
        self._actors = episode.actors
        camera = episode.config.camera
        self._size = (camera.height_px, camera.width_px)
        rng = np.random.default_rng([look.seed, 1])
        y, x = np.mgrid[0 : self._size[0], 0 : self._size[1]].astype(np.float32) + 0.5
        # From the middle, the half width being 1; and from above, the height being 1.
        self._across, self._down = x / self._size[1] * 2 - 1, y / self._size[0]
        self._offset = rng.uniform(0.0, 256.0, 2)
        away = self._across**2 + ((y - self._size[0] / 2) / (self._size[1] / 2)) ** 2
        self._fall = (1 - look.vignette * np.minimum(away / 1.6, 1.0))[..., None].astype(np.float32)
        self._bonnet = self._bonnet_mask(rng)
        self._mirror = self._mirror_mask(rng)
        self._clear, self._veil = self._glass(rng)
        # (4096,) grey levels of light from 0 to 1, with a contrast.
        light = np.linspace(0.0, 1.0, _STEPS)
        # A power about the middle grey, where contrast changes nothing.
        bent = np.minimum(_MIDDLE * (light / _MIDDLE) ** look.contrast, 1.0)
        self._tones = (255 * bent ** (1 / _GAMMA)).astype(np.float32)

    def _bonnet_mask(self, rng: np.random.Generator) -> Bools:
        round_off = 1 - rng.uniform(0.2, 0.8) * (self._across - rng.uniform(-0.15, 0.15)) ** 2
        mask: Bools = self._down > 1 - self._look.bonnet * round_off
        return mask & (self._look.bonnet > 0)

    def _mirror_mask(self, rng: np.random.Generator) -> Bools:
        middle, half = rng.uniform(-0.4, 0.4), self._look.mirror
        reach = ((self._across - middle) / max(half, 1e-6)) ** 4 + (self._down / max(half * 0.5, 1e-6)) ** 4
        mask: Bools = reach < 1
        return mask & (half > 0)

    def _glass(self, rng: np.random.Generator) -> tuple[Floats32, Floats32]:
        """(h, w, 1) share of light that comes through the windscreen, and what it throws back."""
        from scipy.ndimage import gaussian_filter

        look, (height, width) = self._look, self._size
        clear = np.ones(self._size, np.float32)
        for x, y, size, dark in rng.random((look.dirt, 4)):
            radius = width * (0.004 + 0.02 * size**3)
            rows = slice(max(0, int(y * height - 2 * radius)), int(y * height + 2 * radius) + 1)
            columns = slice(max(0, int(x * width - 2 * radius)), int(x * width + 2 * radius) + 1)
            i, j = np.mgrid[rows, columns][:, : height - rows.start, : width - columns.start]
            spot = np.exp(-((i - y * height) ** 2 + (j - x * width) ** 2) / radius**2)
            clear[rows, columns] *= (1 - 0.5 * dark * spot).astype(np.float32)
        rough = gaussian_filter(rng.random((16, 24)), 1.2, mode="wrap")
        i = (np.arange(height) * 16 // height)[:, None]
        j = (np.arange(width) * 24 // width)[None]
        thrown = gaussian_filter(rough[i, j], width / 24) * (0.3 + self._down)
        return clear[..., None], (look.veil * thrown)[..., None].astype(np.float32)

    def taken(self, image: Picture, camera: Camera, frame: int) -> Picture:
        """The image as the camera has it; the same bytes for the same arguments."""
        from scipy.ndimage import gaussian_filter

        look = self._look
        light = _to_light()[image.rgb]
        if look.texture > 0:
            light *= self._uneven(image, camera, frame)[..., None]
        instance, semantic, depth = image.instance, image.semantic, image.depth_m
        own = self._bonnet | self._mirror
        if own.any():
            level = float(light.mean())
            thrown = light[::-1] * 0.12 + np.array(look.bonnet_rgb, np.float32) * level * 1.8
            light = np.where(self._bonnet[..., None], thrown, light)
            light[self._mirror] = 0.03 * level
            instance, semantic = np.where(own, 0, instance), np.where(own, Semantic.VOID, semantic)
            depth = np.where(own, np.float32(_NEAR_M), depth)
        # What the glass throws back grows with the light that falls on it, and is never quite nothing.
        light = light * self._clear + self._veil * (0.15 + float(light.mean()))
        # A narrower Gaussian changes no grey level that a pixel could show.
        if look.blur * self._size[1] > 0.05:
            sigma = look.blur * self._size[1]
            light = gaussian_filter(light, (sigma, sigma, 0))
        rgb = self._sensed(light, frame)
        return Picture(rgb, instance.astype(np.int32), semantic.astype(np.uint8), depth.astype(np.float32))

    def _sensed(self, light: Floats32, frame: int) -> npt.NDArray[np.uint8]:
        """(h, w, 3) grey levels of light."""
        look = self._look
        grey = light.mean(axis=2, keepdims=True)
        light = (grey + look.saturation * (light - grey)) * self._fall
        # Clipped afterwards: what exposure pushes beyond white stays white, as in a sensor that is full.
        light *= look.exposure * np.array(look.tint, np.float32)
        place = np.clip(light, 0.0, 1.0) * (_STEPS - 1)
        level = self._tones[place.astype(np.int32)]
        if look.grain > 0:
            rng = np.random.default_rng([look.seed, frame, 2])
            # Most of the noise is in lightness; the colours have a third of their own.
            level += look.grain * rng.standard_normal((*self._size, 1), np.float32)
            level += 0.3 * look.grain * rng.standard_normal(level.shape, np.float32)
        rgb: npt.NDArray[np.uint8] = np.clip(level + 0.5, 0, 255).astype(np.uint8)
        return rgb

    def _uneven(self, image: Picture, camera: Camera, frame: int) -> Floats32:
        """(h, w) factor of the light of every pixel."""
        pose, lens = camera.world_SE3_camera, camera.intrinsics
        view = np.array([*pose[:3, :3].ravel(), *pose[:3, 3], lens[0, 0], lens[1, 1], lens[0, 2], lens[1, 2]])
        factor = np.empty(self._size, np.float32)
        whose = self._axes(image.instance, frame)
        noise, strength = noise_field(), self._look.texture
        unevenness(image.depth_m, image.instance, view, whose, noise, self._offset, strength, factor)
        return factor

    def _axes(self, instance: npt.NDArray[np.int32], frame: int) -> npt.NDArray[np.float64]:
        """(n, 4) place and heading of everybody in the image, so that dirt goes with the vehicle."""
        table = np.tile(np.array([0.0, 0.0, 1.0, 0.0]), (int(instance.max(initial=0)) + 1, 1))
        for value in np.unique(instance[instance > 0]).tolist():
            row = self._actors[value - 1].at(frame) if value <= len(self._actors) else None
            if row is not None:
                actor = self._actors[value - 1]
                heading = float(actor.heading[row])
                table[value] = *actor.position[row, :2], np.cos(heading), np.sin(heading)
        return table


@cache
def _to_light() -> Floats32:
    """(256,) light of grey levels, 0 to 1."""
    return ((np.arange(256) / 255) ** _GAMMA).astype(np.float32)


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
