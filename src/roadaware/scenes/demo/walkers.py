"""Pedestrians on a procedural road, seen from a moving car: boxes in pixels, and when they cross."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats

WIDTH_PX, HEIGHT_PX = 1920, 1080
FPS = 30.0
N_FRAMES = 240
ACTIONS = ("stopped", "moving_slow", "moving_fast", "decelerating", "accelerating")

_FOCAL_PX, _CAMERA_M, _BODY_M = 1250.0, 1.4, 1.72
_CURB_M = 3.6
_SPEEDS = {"yield": (6.5, 0.0), "cruise": (5.0, 5.5), "crawl": (1.5, 1.8)}


@dataclass(frozen=True)
class Drive:
    """What the car does in one video.

    Args:
        actions: (N_FRAMES,) index in ACTIONS.
        travelled_m: (N_FRAMES,) way since the first frame.
        yields: whether it stops for somebody.
    """

    actions: npt.NDArray[np.int64]
    travelled_m: Floats
    yields: bool


@dataclass
class Walker:
    """One pedestrian's track; defects are planted by changing it.

    Args:
        name: identifier in the grammar of JAAD; a trailing b says that behaviour is annotated.
        frames: (n,) where the boxes are.
        boxes: (n, 4) x1, y1, x2, y2 in whole pixels.
        crosses: (n,) whether the pedestrian is on the road, crossing.
        walking: (n,) whether the pedestrian walks.
        looking: (n,) whether the pedestrian looks at the traffic.
        crossing: the attribute: 1 crosses, 0 does not, -1 has no interest in crossing.
        crossing_point: frame at which the crossing starts, or -1.
        attributes: what else is annotated.
    """

    name: str
    frames: npt.NDArray[np.int64]
    boxes: npt.NDArray[np.int64]
    crosses: npt.NDArray[np.bool_]
    walking: npt.NDArray[np.bool_]
    looking: npt.NDArray[np.bool_]
    crossing: int
    crossing_point: int
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def behaviour(self) -> bool:
        """Whether behaviour is annotated."""
        return self.name.endswith("b")


def drive(rng: np.random.Generator) -> Drive:
    """A car that yields, cruises or crawls."""
    kind = str(rng.choice(["yield", "cruise", "crawl"], p=[0.4, 0.4, 0.2]))
    first, last = _SPEEDS[kind]
    if kind == "yield":
        stop = int(rng.integers(120, 180))
        speed = np.concatenate([np.linspace(first, 0.3, stop), np.full(N_FRAMES - stop, last)])
        actions = np.where(np.arange(N_FRAMES) < stop, ACTIONS.index("decelerating"), 0)
    else:
        speed = np.linspace(first, last, N_FRAMES) + rng.normal(0, 0.05, N_FRAMES)
        steady = "moving_fast" if kind == "cruise" else "moving_slow"
        actions = np.full(N_FRAMES, ACTIONS.index(steady))
        actions[: int(rng.integers(20, 60))] = ACTIONS.index("accelerating")
    return Drive(actions.astype(np.int64), np.cumsum(speed) / FPS, kind == "yield")


def crosser(rng: np.random.Generator, name: str, car: Drive, *, start_after: int | None = None) -> Walker:
    """A pedestrian who comes to the curb, waits, and crosses.

    Args:
        rng: where chance comes from.
        name: identifier.
        car: what the car does.
        start_after: frame of the track at which the crossing starts; drawn where None.
    """
    n = int(rng.integers(170, 215))
    begin = int(rng.integers(0, N_FRAMES - n + 1))
    at = int(rng.integers(112, n - 25)) if start_after is None else start_after
    side = float(rng.choice([-1.0, 1.0]))
    arrive = max(1, at - int(rng.integers(5, 70)))
    approach = np.interp(np.arange(n), [0, arrive], [rng.uniform(1.0, 3.0), 0.3])
    onto = np.maximum(0.0, np.arange(n) - at) / FPS * rng.uniform(1.1, 1.6)
    lateral = side * (_CURB_M + approach - onto)
    depth = _depth(rng, car, begin, n, along_m_s=rng.normal(0, 0.15))
    steps = np.arange(n)
    walking = (steps < arrive) | (steps >= at)
    looking = (steps > arrive - 20) & (steps < at + 15)
    return _seen(
        rng, name, begin, lateral, depth, steps >= at, walking, looking, crossing=1, point=begin + at
    )


def passer_by(rng: np.random.Generator, name: str, car: Drive) -> Walker:
    """A pedestrian who walks along the road or stands, and does not cross."""
    n = int(rng.integers(110, 200))
    begin = int(rng.integers(0, N_FRAMES - n + 1))
    side = float(rng.choice([-1.0, 1.0]))
    stands = bool(rng.random() < 0.3)
    away = _CURB_M + rng.gamma(2.0, 1.3) + np.arange(n) / FPS * rng.normal(0.05, 0.18)
    along = 0.0 if stands else float(rng.choice([-1.3, 1.3]) + rng.normal(0, 0.2))
    depth = _depth(rng, car, begin, n, along_m_s=along)
    steps = np.arange(n)
    walking = np.full(n, not stands)
    never = np.zeros(n, dtype=bool)
    looking = (steps > n // 3) & (steps < n // 2) if rng.random() < 0.4 else never
    crossing = 0 if rng.random() < 0.5 else -1
    return _seen(rng, name, begin, side * away, depth, never, walking, looking, crossing=crossing, point=-1)


def _depth(rng: np.random.Generator, car: Drive, begin: int, n: int, *, along_m_s: float) -> Floats:
    """(n,) distance from the camera: near enough to see, never behind it."""
    way = car.travelled_m[begin : begin + n] - car.travelled_m[begin]
    walked = np.arange(n) / FPS * along_m_s
    start = rng.uniform(7.0, 16.0) + max(float(np.max(way - walked)), 0.0)
    return np.asarray(start - way + walked, dtype=np.float64)


def _seen(
    rng: np.random.Generator,
    name: str,
    begin: int,
    lateral_m: Floats,
    depth_m: Floats,
    crosses: npt.NDArray[np.bool_],
    walking: npt.NDArray[np.bool_],
    looking: npt.NDArray[np.bool_],
    *,
    crossing: int,
    point: int,
) -> Walker:
    """Project, shake a little as annotators do, and keep the part inside the image."""
    sway = np.cumsum(rng.normal(0, 0.4, len(depth_m)))
    centre = WIDTH_PX / 2 + _FOCAL_PX * lateral_m / depth_m + sway
    foot = HEIGHT_PX / 2 + _FOCAL_PX * _CAMERA_M / depth_m + rng.normal(0, 0.6, len(depth_m))
    body = _BODY_M * rng.uniform(0.9, 1.08) * _FOCAL_PX / depth_m
    width = body * (0.34 + 0.05 * walking * np.sin(np.arange(len(depth_m)) * 0.35))
    corners = np.stack([centre - width / 2, foot - body, centre + width / 2, foot], axis=1)
    limits = np.array([WIDTH_PX - 1, HEIGHT_PX - 1, WIDTH_PX - 1, HEIGHT_PX - 1])
    boxes = np.clip(np.rint(corners), 0, limits).astype(np.int64)
    outside = (boxes[:, 2] - boxes[:, 0] < 4) | (boxes[:, 3] - boxes[:, 1] < 8)
    n = int(np.argmax(outside)) if outside.any() else len(boxes)
    frames = np.arange(begin, begin + n)
    if point >= begin + n:
        crossing, point = 0, -1
    return Walker(
        name, frames, boxes[:n], crosses[:n], walking[:n], looking[:n], crossing, point, _attributes(rng)
    )


def _attributes(rng: np.random.Generator) -> dict[str, str]:
    """What the annotators noted about the person and the place."""
    return {
        "age": str(rng.choice(["child", "young", "adult", "senior"], p=[0.05, 0.2, 0.65, 0.1])),
        "gender": str(rng.choice(["female", "male"])),
        "group_size": str(rng.integers(1, 4)),
        "num_lanes": str(rng.choice([2, 4])),
        "intersection": str(rng.choice(["no", "yes"])),
        "designated": str(rng.choice(["ND", "D"])),
        "signalized": str(rng.choice(["n/a", "NS", "S"])),
        "traffic_direction": str(rng.choice(["OW", "TW"])),
        "motion_direction": str(rng.choice(["LAT", "LONG"])),
    }
