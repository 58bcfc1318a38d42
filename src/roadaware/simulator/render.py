"""The image of a frame: its triangles, lit, with the instance, class and depth of every pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bytes, Floats, Floats32, Ints32
from roadaware.errors import UsageError
from roadaware.simulator import raster_kernels, shading_kernels
from roadaware.simulator import raster_kernels as shadow_kernels
from roadaware.simulator.actors import Actor, Lamp
from roadaware.simulator.config import Conditions
from roadaware.simulator.episode import Episode
from roadaware.simulator.figures import build_actor_mesh, build_signal_soup, rotate_mesh_hue
from roadaware.simulator.mesh import CELL_M, Camera, Material, Semantic, Soup, merge_soups, transform_mesh
from roadaware.simulator.people import build_body_mesh, prepare_poses
from roadaware.simulator.raster_kernels import WORK, collect_edges, find_instance_boxes
from roadaware.simulator.shading_kernels import add_pools, compute_tints
from roadaware.simulator.town import Town

# Air: the light and weather of a scene in numbers, from its conditions.


Rgb = tuple[float, float, float]


class Air(NamedTuple):
    """Light and weather; colours are linear, 1 is about what a white wall sends back on a clear day."""

    sun: Rgb
    """Unit vector towards the sun, or the moon."""
    sun_rgb: Rgb
    """Light that falls straight from it."""
    zenith: Rgb
    horizon: Rgb
    bounce: Rgb
    """Light from below."""
    fill: float
    """How much of the sky's colour reaches surfaces."""
    dawn: Rgb
    """What the sky gains near the sun, above the horizon."""
    disc: float
    """Brightness of the sun's disc and of the glow around it."""
    clouds: float
    """Share of the sky that is covered, 0 to 1."""
    cloud_rgb: Rgb
    stars: float
    fog: float
    """Share of light that is lost in a metre."""
    fog_rgb: Rgb
    shadow: float
    """How much of the sun's light a shadow takes away."""
    contact: float
    """How dark the soft shadow below things is."""
    glow: float
    """Brightness of lit lamps."""
    lamps: float
    """How much street lamps and lamps of vehicles light up what is near them."""
    beams: float
    """Head lamps of the own vehicle."""
    windows: float
    """Share of windows that are lit."""
    wet: float
    snow: float
    rain: float
    flakes: float
    glare: float
    """Of a low sun, in the lens."""
    exposure: float
    bloom: float


_DAY = Air(
    sun=(0.0, 0.0, 1.0), sun_rgb=(1.75, 1.62, 1.4), zenith=(0.16, 0.33, 0.72), horizon=(0.62, 0.74, 0.9),
    bounce=(0.22, 0.21, 0.19), fill=0.95, dawn=(0.3, 0.28, 0.22), disc=1.0, clouds=0.35,
    cloud_rgb=(1.15, 1.15, 1.15), stars=0.0, fog=0.0011, fog_rgb=(0.62, 0.72, 0.85), shadow=1.0, contact=0.35,
    glow=2.6, lamps=0.0, beams=0.0, windows=0.0, wet=0.0, snow=0.0, rain=0.0, flakes=0.0, glare=0.0,
    exposure=0.92, bloom=0.15,
)  # fmt: skip
_DUSK = _DAY._replace(
    sun_rgb=(0.26, 0.15, 0.09), zenith=(0.035, 0.06, 0.17), horizon=(0.3, 0.22, 0.24),
    bounce=(0.05, 0.045, 0.05), fill=0.85, dawn=(0.75, 0.3, 0.08), disc=0.25, cloud_rgb=(0.26, 0.17, 0.2),
    stars=0.15, fog=0.0014, fog_rgb=(0.2, 0.16, 0.2), shadow=0.7, contact=0.4, glow=3.6, lamps=0.22,
    beams=0.3, windows=0.3, exposure=1.7, bloom=0.3,
)  # fmt: skip
_NIGHT = _DAY._replace(
    sun_rgb=(0.018, 0.021, 0.03), zenith=(0.0025, 0.004, 0.011), horizon=(0.014, 0.013, 0.018),
    bounce=(0.01, 0.009, 0.008), fill=1.5, dawn=(0.0, 0.0, 0.0), disc=0.2, cloud_rgb=(0.016, 0.015, 0.018),
    stars=1.0, fog=0.0016, fog_rgb=(0.012, 0.011, 0.014), shadow=0.6, contact=0.45, glow=4.0, lamps=0.42,
    beams=1.0, windows=0.38, exposure=1.7, bloom=0.35,
)  # fmt: skip
_TIMES = {"day": _DAY, "dusk": _DUSK, "night": _NIGHT}
_HEIGHT_DEG = {"day": 47.0, "dusk": 7.0, "night": 38.0}
_GREY = {"day": (0.60, 0.63, 0.67), "dusk": (0.13, 0.13, 0.17), "night": (0.013, 0.012, 0.015)}


def build_air(conditions: Conditions, seed: int) -> Air:
    """Light and weather of a scene; the sun's place is drawn from the seed."""
    air, weather, time = _TIMES[conditions.time], conditions.weather, conditions.time
    if weather in ("overcast", "rain", "snow"):
        air = _apply_overcast(air, _GREY[time])
    if weather == "rain":
        air = _raining(air, time)
    elif weather == "snow":
        air = _snowing(air, time)
    elif weather == "low-sun":
        air = _apply_low_sun(air, time)
    return air._replace(sun=compute_sun_direction(conditions, seed))


def pack_air(air: Air) -> np.record:
    """The same as a record, whose fields kernels read by name: a tuple they would copy for every pixel."""
    fields = air._asdict()
    kinds = [(name, "f8", (3,) if isinstance(value, tuple) else ()) for name, value in fields.items()]
    record: np.record = np.rec.array([tuple(fields.values())], dtype=kinds)[0]
    return record


def compute_sun_direction(conditions: Conditions, seed: int) -> Rgb:
    """Unit vector towards the sun, or the moon at night; a low sun stands ahead of who drives along x."""
    draw = float(np.random.default_rng([seed, 2]).uniform(-1.0, 1.0))
    low = conditions.weather == "low-sun"
    height = np.radians((9.0 if conditions.time != "dusk" else 4.0) if low else _HEIGHT_DEG[conditions.time])
    turn = np.radians(22.0) * draw if low else np.radians(55.0 + 60.0 * draw)
    flat = float(np.cos(height))
    return float(np.cos(turn)) * flat, float(np.sin(turn)) * flat, float(np.sin(height))


def _apply_overcast(air: Air, grey: Rgb) -> Air:
    low = (grey[0] * 1.15, grey[1] * 1.15, grey[2] * 1.12)
    return air._replace(
        sun_rgb=_scale_colour(air.sun_rgb, 0.12), zenith=grey, horizon=low, cloud_rgb=_scale_colour(grey, 1.25),
        clouds=0.9, fill=1.25, dawn=_scale_colour(air.dawn, 0.12), disc=0.0, stars=0.0, fog=0.0035,
        fog_rgb=low, shadow=0.0, contact=0.55, bounce=_scale_colour(grey, 0.35),
    )  # fmt: skip


def _raining(air: Air, time: str) -> Air:
    dim = 0.72
    return air._replace(
        zenith=_scale_colour(air.zenith, dim), horizon=_scale_colour(air.horizon, dim),
        fog_rgb=_scale_colour(air.fog_rgb, dim),
        cloud_rgb=_scale_colour(air.cloud_rgb, dim), fog=0.008, wet=1.0, rain=1.0, contact=0.4,
        lamps=max(air.lamps, 0.1), windows=max(air.windows, 0.08), bloom=air.bloom + 0.25,
        exposure=air.exposure * (1.15 if time == "day" else 1.05),
    )  # fmt: skip


def _snowing(air: Air, time: str) -> Air:
    pale = _scale_colour(air.horizon, 1.08)
    return air._replace(
        horizon=pale, fog_rgb=pale, fog=0.0105, snow=1.0, flakes=1.0, bounce=_scale_colour(air.horizon, 0.55),
        contact=0.4, windows=max(air.windows, 0.06), exposure=air.exposure * (0.9 if time == "day" else 1.0),
        lamps=air.lamps * 0.8, bloom=air.bloom + 0.2,
    )  # fmt: skip


def _apply_low_sun(air: Air, time: str) -> Air:
    if time == "night":
        return air._replace(glare=0.12, disc=0.6, clouds=0.15, sun_rgb=_scale_colour(air.sun_rgb, 1.6))
    warm = (1.9, 1.25, 0.65) if time == "day" else (0.75, 0.32, 0.1)
    horizon = (0.95, 0.78, 0.55) if time == "day" else (0.5, 0.27, 0.16)
    return air._replace(
        sun_rgb=warm, horizon=horizon, fog_rgb=_scale_colour(horizon, 0.85), fog=0.003, clouds=0.15, disc=1.5,
        dawn=_scale_colour(warm, 0.6), glare=0.3 if time == "day" else 0.28, exposure=air.exposure * 0.9,
    )  # fmt: skip


def _scale_colour(colour: Rgb, by: float) -> Rgb:
    return colour[0] * by, colour[1] * by, colour[2] * by


# Lighting that is constant over a triangle or a frame, computed before pixels are drawn.


# 72 m to each side of the eye.
_CELLS = 288


class Surfaces(NamedTuple):
    """Triangles in view as kernels shade them.

    Args:
        kinds: (k, 3) i32 material, semantic, instance.
        tints: (k, 12) f32 colour; light of the sky and from below; light straight from the sun; brightness
            as a lamp; share that snow covers; 1 for the ground.
    """

    kinds: npt.NDArray[np.int32]
    tints: Floats32


def prepare_surfaces(soup: Soup, which: npt.NDArray[np.int32], planes: Floats, air: np.record) -> Surfaces:
    """How triangles in view answer the light of a frame.

    Args:
        soup: (t,) triangles.
        which: (k,) of them are in view.
        planes: (k, 12) that end in unit normals.
        air: light and weather, packed.
    """
    kinds = np.stack([soup.material[which], soup.semantic[which], soup.instance[which]], axis=1)
    looks = np.column_stack([soup.colour[which], soup.glow[which]])
    tints = np.empty((len(which), 12), np.float32)
    compute_tints(kinds, looks, planes, air, tints)
    return Surfaces(kinds, tints)


def compute_light_pools(lamps: Floats, eye: Floats, ahead: Floats, gain: float) -> Floats32:
    """(m, m, 3) light of lamps on the ground around the eye, in cells of `CELL_M`, rows along y.

    Lamps that light only what lies behind the eye are left out.

    Args:
        lamps: (n, 7) x, y, z in metres, intensity, colour.
        eye: (3,) in the middle of the map.
        ahead: (3,) where it looks.
        gain: of all lamps; 0 for none.
    """
    pools = np.zeros((_CELLS, _CELLS, 3), np.float32)
    if gain > 0 and len(lamps):
        # Places in cells of the map; the light of a lamp ends at a few times its height.
        high = np.clip(lamps[:, 2], 0.7, 7.0)
        far = (lamps[:, :2] - eye[:2]) @ ahead[:2] / np.hypot(*ahead[:2])
        kept = far + 3.2 * high + 3.0 > -1.0
        lamps, height = lamps[kept], high[kept] / CELL_M
        place = (lamps[:, :2] - eye[:2]) / CELL_M + 0.5 * _CELLS
        reach = 3.2 * height + 3.0 / CELL_M
        colour = gain * lamps[:, 3:4] * lamps[:, 4:]
        add_pools(np.concatenate([place, height[:, None], reach[:, None], colour], axis=1), pools)
    return pools


def footprints(corners: Floats32, instance: npt.NDArray[np.int32]) -> Floats:
    """(n, 7) rectangles around every instance, turned along its longer axis.

    x and y of the middle, the unit vector of the axis, half the length, half the width, all in metres, and
    the height of its lowest point.

    Args:
        corners: (t, 3, 3) in the world.
        instance: (t,), those of 0 are left out.
    """
    rows = np.flatnonzero(instance > 0)
    if not len(rows):
        return np.zeros((0, 7))
    # Stable: triangles of one thing are summed in the same order, and so to the same last bit, each time.
    rows = rows[np.argsort(instance[rows], kind="stable")]
    numbers = np.repeat(instance[rows], 3)
    first = np.flatnonzero(np.concatenate([[True], numbers[1:] != numbers[:-1]]))
    count = np.diff(first, append=len(numbers))
    # In float32 the squares of places some hundred metres off would leave nothing of a thing's own size.
    x, y, z = corners[rows].reshape(-1, 3).astype(np.float64).T.copy()
    middle_x, middle_y = (np.add.reduceat(part, first) / count for part in (x, y))
    x, y = x - np.repeat(middle_x, count), y - np.repeat(middle_y, count)
    xx, yy, xy = (np.add.reduceat(part, first) for part in (x * x, y * y, x * y))
    # The direction of the larger eigenvector of a symmetric 2 x 2 matrix.
    turn = 0.5 * np.arctan2(2.0 * xy, xx - yy)
    c, s = np.cos(turn), np.sin(turn)
    each_c, each_s = np.repeat(c, count), np.repeat(s, count)
    along, aside = x * each_c + y * each_s, y * each_c - x * each_s
    back, right = (np.minimum.reduceat(part, first) for part in (along, aside))
    front, left = (np.maximum.reduceat(part, first) for part in (along, aside))
    shift, lift = 0.5 * (back + front), 0.5 * (right + left)
    middle_x, middle_y = middle_x + shift * c - lift * s, middle_y + shift * s + lift * c
    low = np.minimum.reduceat(z, first)
    return np.stack([middle_x, middle_y, c, s, 0.5 * (front - back), 0.5 * (left - right), low], axis=1)


def build_footprint_triangles(found: Floats) -> Floats32:
    """(2 n, 3, 3) corners of two triangles for each rectangle, which is made half a metre larger all round.

    Args:
        found: (n, 7) of `footprints`.
    """
    middle, axis, half = found[:, None, :2], found[:, None, 2:4], found[:, None, 4:6] + 0.5
    along, aside = half[..., :1] * axis, half[..., 1:] * axis[..., ::-1] * (-1.0, 1.0)
    quad = np.empty((len(found), 4, 3), np.float32)
    for place, (far, left) in enumerate(((1, 1), (-1, 1), (-1, -1), (1, -1))):
        quad[:, place, :2] = (middle + far * along + left * aside)[:, 0]
    quad[:, :, 2] = found[:, 6:]
    return quad[:, [[0, 1, 2], [2, 3, 0]]].reshape(-1, 3, 3)


# Lamps of a frame as points of light: those handed in, and those that glowing triangles make.

_WARM = (1.0, 0.78, 0.5)
_RANGE_M = 90.0
_HIGH_M = 2.8
_MARK, _SIGNAL = 0.3, 0.2
"""Shares of the light of coloured lamps and of traffic lights that fall on what is near: they are there to be
seen, not to light the street."""


def collect_lamps(soup: Soup, lights: npt.ArrayLike | Sequence[object], eye: Floats) -> Floats:
    """(n, 7) lamps near the camera: x, y, z in metres, intensity, and linear colour.

    Glowing triangles of one thing that are close together and face one way are one lamp; those of a street
    lamp may face any way.

    Args:
        soup: of the frame.
        lights: (m, 4) or (m, 7) more lamps: x, y, z, intensity, colour if it is not warm white.
        eye: (3,) where the camera stands.

    Raises:
        UsageError: if `lights` have another number of columns.
    """
    found = np.concatenate([_given(lights), _glowing(soup)])
    away = np.hypot(found[:, 0] - eye[0], found[:, 1] - eye[1])
    near: Floats = found[away < _RANGE_M]
    return near


def _given(lights: npt.ArrayLike | Sequence[object]) -> Floats:
    given = np.asarray(lights, dtype=np.float64)
    if given.size == 0:
        return np.zeros((0, 7))
    if given.ndim != 2 or given.shape[1] not in (4, 7):
        raise UsageError(
            f"lights are rows of x, y, z, intensity and perhaps r, g, b, not of shape {given.shape}"
        )
    if given.shape[1] == 4:
        given = np.concatenate([given, np.tile(_WARM, (len(given), 1))], axis=1)
    return given


def _glowing(soup: Soup) -> Floats:
    rows = np.flatnonzero((soup.material == Material.LAMP) & (soup.glow > 0))
    if not len(rows):
        return np.zeros((0, 7))
    corners = soup.corners[rows].astype(np.float64)
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(cross, axis=1) / 2
    middle = corners.mean(1)
    # Triangles may be degenerate; they have no direction, and no weight below.
    outward = cross / np.maximum(2 * area, 1e-9)[:, None]
    # What stands high above the street and belongs to nobody is there to light it; others only shine.
    high = (middle[:, 2] > _HIGH_M) & (soup.instance[rows] == 0)
    side = np.where(high[:, None], 0.0, np.round(outward[:, :2]))
    keys = np.concatenate([soup.instance[rows, None], np.floor(middle / 1.5), side], axis=1).astype(np.int64)
    # One number for each row of keys, in the same order.
    low = keys.min(axis=0)
    _, lamp = np.unique(np.ravel_multi_index((keys - low).T, np.ptp(keys, axis=0) + 1), return_inverse=True)
    weight = np.maximum(area * soup.glow[rows], 1e-6)
    # (n, 1) share of the light of each glowing triangle that falls on what is near.
    colour, semantic = soup.colour[rows], soup.semantic[rows]
    # Of one hue, as brake lamps and indicators are; head lamps have something of all three.
    pure = colour.min(axis=1) < 0.07 * colour.max(axis=1)
    driven = (semantic >= Semantic.CAR) & (semantic <= Semantic.BICYCLE)
    signal = semantic == Semantic.TRAFFIC_LIGHT
    marks: Floats = np.where(signal, _SIGNAL, np.where(driven & pure, _MARK, 1.0))[:, None]
    columns = np.concatenate([middle + 0.6 * outward * [1, 1, 0], soup.colour[rows], marks], axis=1)
    total = np.bincount(lamp, weight)
    means = np.stack([np.bincount(lamp, weight * column) / total for column in columns.T], axis=1)
    power = np.where(np.bincount(lamp, high) > 0, 1.0, np.minimum(0.35, 4.0 * total))
    return np.concatenate([means[:, :3], power[:, None] * means[:, 6:], means[:, 3:6]], axis=1)


_CASTS = np.isin(
    np.arange(256),
    (Semantic.BUILDING, Semantic.WALL, Semantic.FENCE, Semantic.POLE, Semantic.VEGETATION,
     Semantic.TRAFFIC_LIGHT, Semantic.TRAFFIC_SIGN, Semantic.OBJECT),
)  # fmt: skip
"""(256,) whether what does not move casts shadows, by `Semantic`."""


@dataclass(frozen=True, eq=False)
class Picture:
    """Rendered layers of a frame.

    Args:
        rgb: (h, w, 3) uint8.
        instance: (h, w) int32 number of the actor + 1, 0 for what does not move.
        semantic: (h, w) uint8, `Semantic`.
        depth_m: (h, w) float32 along the optical axis, inf for the sky.
    """

    rgb: Bytes
    instance: Ints32
    semantic: Bytes
    depth_m: Floats32


class _Seen(NamedTuple):
    inverse: Floats32
    face: Ints32
    which: Ints32
    planes: Floats
    shadow: Bytes
    contact: Floats32


class _View(NamedTuple):
    turn: Floats
    eye: Floats
    lens: Floats


class _Shown(NamedTuple):
    light: Floats32
    instance: Ints32
    semantic: Bytes
    depth: Floats32


def render(
    soup: Soup,
    camera: Camera,
    conditions: Conditions,
    *,
    seed: int,
    frame: int,
    lights: npt.ArrayLike | Sequence[object] = (),
) -> Picture:
    """The image of a frame; the same bytes for the same arguments, whatever was drawn before.

    Args:
        soup: (t,) triangles of the frame, in metres.
        camera: that looks.
        conditions: light and weather.
        seed: of the scene: where the sun stands.
        frame: decides, with the seed, on drops, flakes and grain.
        lights: (n, 4) or (n, 7) lamps besides those that glow: x, y, z in metres, intensity, linear colour.

    Raises:
        UsageError: if `lights` have another number of columns.
    """
    # The same arrays, as kernels are compiled for them.
    kinds = {"material": np.uint8, "semantic": np.uint8, "instance": np.int32}
    names = ("corners", "colour", "material", "semantic", "glow", "uv", "instance")
    soup = Soup(*(np.require(getattr(soup, name), kinds.get(name, np.float32), ("C", "W")) for name in names))
    air = build_air(conditions, seed)
    view = _View(
        np.ascontiguousarray(camera.world_SE3_camera[:3, :3]),
        np.ascontiguousarray(camera.world_SE3_camera[:3, 3]),
        np.array([camera.intrinsics[k] for k in ((0, 0), (1, 1), (0, 2), (1, 2))]),
    )
    lamps = collect_lamps(soup, lights, view.eye)
    seen = _seen(soup, camera, view, air)
    size = (camera.height_px, camera.width_px)
    shown = _Shown(
        # Written for every pixel; instances, which begin as zeros, only where something stands.
        np.empty((*size, 3), np.float32),
        np.zeros(size, np.int32),
        np.zeros(size, np.uint8),
        np.empty(size, np.float32),
    )
    record = pack_air(air)
    surfaces = prepare_surfaces(soup, seen.which, seen.planes, record)
    pools = compute_light_pools(lamps, view.eye, view.turn[:, 2], air.lamps)
    shading_kernels.shade(surfaces, seen, view, record, noise_field(), pools, shown)
    if air.wet > 0:
        shading_kernels.add_wet_reflections(shown.light, seen, surfaces.tints, view, record, noise_field())
        shading_kernels.add_glints(shown.light, _glints(lamps, camera, air), seen, surfaces.tints)
    rgb = _apply_sensor(shown, seen, air, camera, np.random.default_rng([seed, frame, 3]))
    return Picture(rgb, shown.instance, shown.semantic, shown.depth)


def instance_boxes(instance: npt.NDArray[np.integer], n: int) -> npt.NDArray[np.int64]:
    """(n, 5) x1, y1, x2, y2 and number of pixels of what is seen of each actor; zeros for those unseen.

    Row i is of the value i + 1 in the mask: of actor i, and of signals after the actors. Ends are half open.

    Args:
        instance: (h, w) of a `Picture`.
        n: number of actors and signals.
    """
    found = np.zeros((n, 5), dtype=np.int64)
    find_instance_boxes(np.require(instance, np.int32, ("C", "W")), found)
    return found


def _seen(soup: Soup, camera: Camera, view: _View, air: Air) -> _Seen:
    size = (camera.height_px, camera.width_px)
    finder = _Finder(np.ascontiguousarray(camera.camera_SE3_world[:3]), view.lens, np.array(size))
    edges, which = finder.edges(soup.corners)
    inverse, face, planes = (
        # 1 / depth: 0 is infinitely far, so that anything is nearer.
        np.zeros(size, np.float32),
        np.full(size, -1, np.int32),
        np.empty((len(which), 12)),
    )
    raster_kernels.rasterise(
        edges, which, soup.corners, soup.material, soup.uv, noise_field(), inverse, face, planes
    )
    shadow, contact = np.zeros(size, np.uint8), np.ones(size, np.float32)
    if air.shadow > 0:
        casts, flat = (soup.instance > 0) | _CASTS[soup.semantic], np.empty_like(soup.corners)
        count = shadow_kernels.project_shadows(soup.corners, casts, air.sun, flat)
        shadow_kernels.mask_shadow_pixels(finder.edges(flat[:count], backs=True)[0], shadow)
    found = footprints(soup.corners, soup.instance)
    ends, whose = finder.edges(build_footprint_triangles(found), backs=True)
    shadow_kernels.apply_contact_shadows(found, ends, whose, inverse, air.contact, view, contact)
    return _Seen(inverse, face, which, planes, shadow, contact)


class _Finder(NamedTuple):
    """Finds triangles that are in view."""

    pose: Floats
    lens: Floats
    size: npt.NDArray[np.int64]

    def edges(self, corners: Floats32, *, backs: bool = False) -> tuple[Floats, Ints32]:
        """(k, 12) edges of the triangles in view, and (k,) which they are."""
        edges, which = np.empty((len(corners), WORK)), np.empty(len(corners), np.int32)
        count = collect_edges(corners, self.pose, self.lens, self.size, backs, edges, which)
        return edges[:count], which[:count]


def _apply_sensor(shown: _Shown, seen: _Seen, air: Air, camera: Camera, rng: np.random.Generator) -> Bytes:
    """Weather and lens over the light of a scene, then the sensor."""
    from scipy.ndimage import uniform_filter

    height, width = shown.instance.shape
    if air.rain > 0 or air.flakes > 0:
        drops = _rain(width, height, rng) if air.rain > 0 else _flakes(width, height, rng)
        pale = [0.5 * (a + b) + 0.13 * air.beams for a, b in zip(air.zenith, air.horizon, strict=True)]
        colour = (*(1.5 * c for c in pale), 0.3) if air.rain > 0 else (*(1.35 * c for c in pale), 0.85)
        shading_kernels.add_drops(shown.light, drops, seen.inverse, colour)
    shrink = shading_kernels.SHRINK
    small = np.empty((height // shrink, width // shrink, 3), np.float32)
    shading_kernels.extract_highlights(shown.light, small)
    reach = 2 * max(2, width // shrink // 45) + 1
    # Three boxes one after the other are about a Gaussian, and cost the same for any width.
    for _ in range(3):
        small = uniform_filter(small, (reach, reach, 1), mode="constant")
    small *= air.bloom
    rgb = np.empty((height, width, 3), np.uint8)
    glare, noise = _glare(seen, camera, air), int(rng.integers(2**31))
    shading_kernels.apply_exposure(
        shown.light, small, air.exposure, glare, _tones(), camera.grain, noise, rgb
    )
    return rgb


def _glints(lamps: Floats, camera: Camera, air: Air) -> Floats:
    """(n, 8) glints of lamps on wet ground, where a mirror would show them.

    x, y, half width and half height in pixels, 1 / depth, and colour.
    """
    # A plane mirror at z = 0 shows what hangs above it as far below.
    pixels, depth = camera.project(lamps[:, :3] * [1.0, 1.0, -1.0])
    keep = (depth > 1.0) & (np.abs(pixels[:, 0] - camera.width_px / 2) < camera.width_px)
    pixels, depth, lamps = pixels[keep], depth[keep], lamps[keep]
    size = camera.intrinsics[0, 0] / depth
    gain = 0.085 * air.glow * np.sqrt(lamps[:, 3])
    wide, high = np.maximum(0.16 * size, 0.8), np.maximum(0.9 * size, 3.0)
    sides = np.stack([wide, high, 1 / depth], axis=1)
    return np.concatenate([pixels, sides, gain[:, None] * lamps[:, 4:]], axis=1)


def _rain(width: int, height: int, rng: np.random.Generator) -> Floats:
    n = int(90 + 0.45 * np.sqrt(width * height))
    depth = rng.uniform(1.0, 14.0, n)
    size = height / 240 * 5.0 / (depth + 2.0)
    slant = rng.normal(0.12, 0.03, n)
    long = 14.0 * size
    columns = [rng.uniform(0, width, n), rng.uniform(0, height, n), -slant * long, 0.35 + 0.3 * size, long]
    return np.stack([*columns, 1 / depth], axis=1)


def _flakes(width: int, height: int, rng: np.random.Generator) -> Floats:
    n = int(120 + 0.9 * np.sqrt(width * height))
    depth = 1.2 + 22.0 * rng.uniform(0, 1, n) ** 1.3
    size = np.maximum(0.55, height / 240 * 7.0 / (depth + 2.0) * rng.uniform(0.6, 1.2, n))
    zero = np.zeros(n)
    return np.stack(
        [rng.uniform(0, width, n), rng.uniform(0, height, n), zero, size, size, 1 / depth], axis=1
    )


def _glare(seen: _Seen, camera: Camera, air: Air) -> tuple[float, float, float, float, float, float]:
    """Where the sun blinds the lens, and how much: less where something stands before it."""
    eye = camera.world_SE3_camera[:3, 3]
    pixels, depth = camera.project(eye + 1000.0 * np.array(air.sun)[None])
    if air.glare <= 0 or depth[0] <= 0:
        return 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
    x, y = float(pixels[0, 0]), float(pixels[0, 1])
    reach = max(3, camera.width_px // 50)
    rows, columns = (slice(max(0, int(at) - reach), max(0, int(at) + reach + 1)) for at in (y, x))
    patch = seen.face[rows, columns]
    free = float((patch < 0).mean()) if patch.size else 0.5
    ahead = depth[0] / 1000.0
    power = air.glare * (0.25 + 0.75 * free) * ahead**4
    red, green, blue = (power * c for c in air.sun_rgb)
    return x, y, camera.width_px * 0.35, red, green, blue


@cache
def noise_field() -> Floats32:
    """(256, 256) that patterns are made of, the same in every scene."""
    # Of a size that is a power of 2, so that kernels wrap it by a mask of bits.
    return np.random.default_rng(20_23).random((256, 256), dtype=np.float32)


@cache
def _tones() -> Floats32:
    """(16384,) grey levels over light from 0 to 4: a video's shoulder, then sRGB."""
    # So many that in the dark, where sRGB is steepest, a step stays below one grey level.
    light = np.linspace(0.0, 4.0, 16_384)
    film = 1 - np.exp(-1.15 * light)
    grey = np.where(film <= 0.0031308, 12.92 * film, 1.055 * film ** (1 / 2.4) - 0.055)
    return (255 * grey).astype(np.float32)


# Stage: the triangles of an episode in a frame, those far away in a coarser shape.

_BODIES = ("Ped", "Cyc", "Mobike")
NEAR_M, FAR_M = 35.0, 140.0
"""Up to where things have their fine shape, and from where on they are not drawn."""
_BESIDE_M = 12.0
"""How far outside the view things are kept: long vehicles, and shadows of a low sun."""


class Stage:
    """The scene as triangles; what does not move is made once.

    Args:
        episode: the scene.
        range_m: how far one sees.
    """

    def __init__(self, episode: Episode, range_m: float = FAR_M) -> None:
        self.episode, self.range_m = episode, range_m
        self._spread = float(np.tan(np.radians(episode.config.camera.fov_deg / 2)))
        self.town = Town(episode.layout, episode.config, episode.conditions, episode.look)
        spans = np.array([(actor.first, actor.end) for actor in episode.actors], dtype=np.int64).reshape(
            -1, 2
        )
        # Everybody's places one after the other, and where in them the frame 0 of each would be.
        self._spans = spans
        self._start = (
            np.cumsum(np.concatenate([[0], spans[:-1, 1] - spans[:-1, 0]]))[: len(spans)] - spans[:, 0]
        )
        self._places = np.concatenate(
            [np.zeros((0, 2)), *(actor.position[:, :2] for actor in episode.actors)]
        )
        self._posts = np.array([signal.position[:2] for signal in episode.signals]).reshape(-1, 2)
        self._still = {actor.number for actor in episode.actors if _still(actor)}
        self._kept: dict[int, tuple[tuple[int, bool], Soup]] = {}

    def soup(self, frame: int) -> Soup:
        """Everything that may be seen in a frame."""
        ego = self.episode.ego
        town = self.town.near(ego.position[frame], float(ego.heading[frame]), self.range_m)
        return self._poured(town, frame, self.range_m, ahead=True)

    def around(self, frame: int, range_m: float) -> Soup:
        """Everything near the own vehicle in a frame, also behind it."""
        ego = self.episode.ego
        town = self.town.near(ego.position[frame], float(ego.heading[frame]), range_m, behind_m=range_m)
        return self._poured(town, frame, range_m, ahead=False)

    def _poured(self, town: Soup, frame: int, range_m: float, *, ahead: bool) -> Soup:
        """Town, actors and signals in range, of which only those that may be in the image if `ahead`."""
        actors, signals = self.episode.actors, self.episode.signals
        near, away = self._near(frame, range_m, ahead)
        # All bodies of a frame at once: their bones are one array, and numpy costs by the call.
        prepare_poses([actors[k] for k in near if actors[k].kind in _BODIES], frame)
        parts = [town]
        parts += [self._actor(actors[k], frame, far) for k, far in zip(near, away, strict=True)]
        offset = self._posts - self.episode.ego.position[frame, :2]
        kept = self._in_view(offset, frame) if ahead else np.ones(len(offset), dtype=np.bool_)
        for k in np.flatnonzero(kept & (np.hypot(*offset.T) < range_m)).tolist():
            parts.append(build_signal_soup(signals[k], frame, len(actors) + 1 + signals[k].number))
        return merge_soups(parts)

    def _near(self, frame: int, range_m: float, ahead: bool) -> tuple[list[int], list[float]]:
        """Actors in range, and how far away they are."""
        here = np.flatnonzero((self._spans[:, 0] <= frame) & (frame < self._spans[:, 1]))
        offset = self._places[self._start[here] + frame] - self.episode.ego.position[frame, :2]
        away = np.hypot(*offset.T)
        kept = away < range_m
        if ahead:
            kept &= self._in_view(offset, frame)
        return here[kept].tolist(), away[kept].tolist()

    def _in_view(self, offset: Floats, frame: int) -> npt.NDArray[np.bool_]:
        """(n,) whether what stands at (n, 2) metres off the own vehicle may be in the image.

        So may be what throws a shadow into it.
        """
        heading = float(self.episode.ego.heading[frame])
        c, s = np.cos(heading), np.sin(heading)
        ahead, aside = offset @ (c, s), np.abs(offset @ (-s, c))
        seen: npt.NDArray[np.bool_] = (ahead > -_BESIDE_M) & (
            aside < _BESIDE_M + self._spread * np.maximum(ahead, 0.0)
        )
        return seen

    def _actor(self, actor: Actor, frame: int, away_m: float) -> Soup:
        """The triangles of an actor; those of what stands still are kept."""
        coarse = away_m > NEAR_M
        hue, lamps = self.episode.config.surroundings.hue, int(actor.lamps[frame - actor.first])
        # A beacon flashes by the frame, not by the lamps that are lit.
        if actor.number not in self._still or lamps & Lamp.BEACON:
            return build_actor_soup(actor, frame, coarse=coarse, hue=hue)
        # What stands still differs from frame to frame by nothing else.
        look = (lamps, coarse)
        if actor.number not in self._kept or self._kept[actor.number][0] != look:
            self._kept[actor.number] = (look, build_actor_soup(actor, frame, coarse=coarse, hue=hue))
        return self._kept[actor.number][1]


def _still(actor: Actor) -> bool:
    """Whether nothing of it ever moves, but that its lamps may be lit."""
    tracks = (actor.position, actor.heading, actor.gait, actor.speed)
    return actor.kind not in _BODIES and all(bool((track == track[:1]).all()) for track in tracks)


def build_actor_soup(actor: Actor, frame: int, *, coarse: bool = False, hue: float = 0.0) -> Soup:
    """One actor's triangles in the world.

    Args:
        actor: who.
        frame: in which it is in the scene.
        coarse: whether few triangles do.
        hue: 0 to 1, how far its colours are turned.
    """
    row = frame - actor.first
    shapes = [] if actor.kind == "Ped" else [build_actor_mesh(actor, frame, coarse)]
    shapes += [build_body_mesh(actor, frame, coarse)] if actor.kind in _BODIES else []
    shapes = [rotate_mesh_hue(mesh, hue) for mesh in shapes] if hue else shapes
    place, heading = actor.position[row], float(actor.heading[row])
    return merge_soups([transform_mesh(mesh, place, heading, actor.number + 1) for mesh in shapes])
