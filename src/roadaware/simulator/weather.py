"""Air: the light and weather of a scene in numbers, from its conditions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from roadaware.simulator.config import Conditions

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
    """Light and weather of a scene; the sun's place is drawn from the seed.

    Args:
        conditions: time of day and weather.
        seed: of the scene.
    """
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
    """The same as a record, whose fields kernels read by name: a tuple they would copy for every pixel.

    Args:
        air: light and weather.
    """
    fields = air._asdict()
    kinds = [(name, "f8", (3,) if isinstance(value, tuple) else ()) for name, value in fields.items()]
    record: np.record = np.rec.array([tuple(fields.values())], dtype=kinds)[0]
    return record


def compute_sun_direction(conditions: Conditions, seed: int) -> Rgb:
    """Unit vector towards the sun, or the moon at night; a low sun stands ahead of who drives along x.

    Args:
        conditions: time of day and weather.
        seed: of the scene.
    """
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
