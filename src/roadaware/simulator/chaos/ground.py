"""Ground: the piece of street in front of the camera on which a crowd plays, in its own metres."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from roadaware.arrays import Floats
from roadaware.simulator.actors import Ego
from roadaware.simulator.config import SceneConfig
from roadaware.simulator.layout import Layout, Line

NEAR_M, FAR_M = 6.3, 18.0
"""From where to where before the camera scenes are played."""
CLEAR_M = 1.4
"""People who pass the own vehicle keep this far from its line."""
_MOUNT_M = 1.2
_BEHIND_M = 60.0
_POSTS = {"tree": 0.35, "lamp_post": 0.2, "sign": 0.15, "bin": 0.35, "bollard": 0.15, "bus_stop": 1.1}
_MOST_CREPT_M = 3.0


@dataclass(frozen=True, eq=False)
class Ground:
    """Where a crowd may be: x metres ahead of where the camera ends, y to its left.

    Args:
        layout: the town.
        ego: the own vehicle.
        origin: (2,) world place of (0, 0).
        heading: of the x axis.
        left_m: greatest y anybody may have.
        right_m: least y.
        slope: how far to the side the image reaches, for each metre ahead.
        kerbs: (2,) y of the kerbs, right and left.
        near_m: from where on scenes are played, before the camera.
        far_m: up to where.
    """

    layout: Layout
    ego: Ego
    origin: Floats
    heading: float
    left_m: float
    right_m: float
    slope: float
    kerbs: tuple[float, float]
    near_m: float = NEAR_M
    far_m: float = FAR_M

    def world(self, points: Floats) -> Floats:
        """(..., 2) places in the world.

        Args:
            points: (..., 2) local metres.
        """
        c, s = np.cos(self.heading), np.sin(self.heading)
        found: Floats = points @ np.array([[c, s], [-s, c]]) + self.origin
        return found

    def local(self, points: Floats) -> Floats:
        """(..., 2) local metres of places in the world."""
        c, s = np.cos(self.heading), np.sin(self.heading)
        found: Floats = (points - self.origin) @ np.array([[c, -s], [s, c]])
        return found

    def reach(self, x: float, margin: float = 0.6) -> tuple[float, float]:
        """Least and greatest y that is in the image and on the street, x metres ahead."""
        wide = max(0.8, self.slope * x - margin)
        return max(self.right_m, -wide), min(self.left_m, wide)

    def clamp(self, x: float, y: float) -> Floats:
        """(2,) the nearest place on the stage."""
        ahead = float(np.clip(x, self.near_m, self.far_m))
        low, high = self.reach(ahead)
        return np.array([ahead, float(np.clip(y, low, high))])

    def in_view(self, x: float, y: float) -> bool:
        """Whether a place is in the image."""
        return x > 4.0 and abs(y) < self.slope * x

    def posts(self) -> Floats:
        """(m, 3) x, y and radius of what stands on the pavements nearby."""
        found = []
        for prop in self.layout.props:
            radius = _POSTS.get(prop.kind)
            if radius is not None:
                x, y = self.local(np.array(prop.position)).tolist()
                if -10.0 < x < 60.0:
                    found.append((x, y, radius))
        return np.array(found, dtype=np.float64).reshape(-1, 3)


def town_config(config: SceneConfig, rng: np.random.Generator) -> SceneConfig:
    """The configuration of a town that has a wide street for a crowd.

    Args:
        config: of the scene.
        rng: where chance comes from.
    """
    lanes = max(config.surroundings.lanes, 2 if rng.random() < 0.7 else 3)
    where = replace(
        config.surroundings, lanes=lanes, bends=0.0, junctions=0.0, crossings=0.0, bus_lane=0.0, parking=0.0
    )
    return replace(config, surroundings=where, behaviour=replace(config.behaviour, ego_speed_kmh=0.0))


def make_ground(layout: Layout, config: SceneConfig, rng: np.random.Generator) -> Ground:
    """The street before an own vehicle that stands, or creeps a little at first.

    Args:
        layout: a town with a straight street.
        config: of the scene.
        rng: where chance comes from.
    """
    lane = layout.lanes[layout.route[0]]
    road = layout.roads[lane.road]
    ego = _ego(config, lane.line, lane.number, rng)
    heading = float(ego.heading[-1])
    origin = ego.position[-1, :2] + _MOUNT_M * np.array([np.cos(heading), np.sin(heading)])
    side = np.array([-np.sin(heading), np.cos(heading)])
    middle = road.line.at(road.line.project(origin[None])[0])[0]
    offset = float((middle - origin) @ side)
    half = road.half_width_m
    edge = half + road.pavement_m - 0.7
    slope = float(np.tan(np.radians(config.camera.fov_deg) / 2))
    kerbs = (offset - half, offset + half)
    staging = config.staging
    near, far = (NEAR_M, FAR_M) if staging is None else (staging.near_m, staging.far_m)
    return Ground(layout, ego, origin, heading, offset + edge, offset - edge, slope, kerbs, near, far)


def _ego(config: SceneConfig, line: Line, lane: int, rng: np.random.Generator) -> Ego:
    """Stands, or creeps forward and stops."""
    n, fps = config.n_frames, config.camera.fps
    t = np.arange(n) / fps
    speed = np.zeros(n)
    if rng.random() < 0.4 and n > 2 * fps:
        top = float(rng.uniform(0.4, 1.6))
        lasts = min(_MOST_CREPT_M / top + 1.5, t[-1] * 0.7)
        starts = float(rng.uniform(0.0, max(0.1, t[-1] - lasts)))
        u = np.clip((t - starts) / lasts, 0.0, 1.0)
        speed = top * np.minimum(1.0, 4.0 * np.minimum(u, 1.0 - u))
        speed[(u <= 0.0) | (u >= 1.0)] = 0.0
    way = np.concatenate([[0.0], np.cumsum((speed[1:] + speed[:-1]) / 2 / fps)])
    s = _BEHIND_M + way
    heading = line.heading(s)
    position = np.column_stack([line.at(s), np.zeros(n)])
    acceleration = np.gradient(speed) * fps if n > 1 else np.zeros(n)
    return Ego(
        position, heading, speed, acceleration, np.zeros(n), (speed > 0.05).astype(np.int64),
        np.full(n, lane, dtype=np.int64),
    )  # fmt: skip
