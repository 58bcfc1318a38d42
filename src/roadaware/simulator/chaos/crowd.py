"""A crowd on its piece of street: where people are, how they move by simple social forces, and how they are described."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass, replace

import numpy as np

from roadaware.arrays import Bools, Floats, Ints
from roadaware.simulator.actors import Actor, Ego
from roadaware.simulator.config import SceneConfig
from roadaware.simulator.layout import Layout, Line
from roadaware.simulator.people import describe_appearance
from roadaware.simulator.people.bodies import get_looks
from roadaware.simulator.people.skeleton import get_age_group

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
    """The configuration of a town that has a wide street for a crowd."""
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


APART_M = 0.5
"""Nobody comes nearer to anybody else, unless they touch each other on purpose."""
ROOM_M = 0.85
"""People keep this distance where they can."""
MOST_MPS = 5.4
_PUSH = 2.4
_GAIN = 6.0
_SIGHT_S = 1.1
_ARRIVE_S = 0.35


class Bodies:
    """Positions, speeds and headings of n people, in the local metres of the ground.

    Args:
        n: people.
        low: (2,) least x and y where anybody may stand.
        high: (2,) greatest.
        posts: (m, 3) x, y and radius of what stands in the way.
    """

    def __init__(self, n: int, low: Floats, high: Floats, posts: Floats) -> None:
        self.n, self.low, self.high = n, low, high
        self.block(posts, np.full(len(posts), -1))
        self.xy = np.zeros((n, 2))
        self.velocity = np.zeros((n, 2))
        self.heading = np.zeros(n)
        self.goal = np.zeros((n, 2))
        self.pace = np.zeros(n)
        self.face = np.full(n, np.nan)
        self.rooted: Bools = np.zeros(n, dtype=np.bool_)
        self.here: Bools = np.zeros(n, dtype=np.bool_)
        self.wide = np.zeros(n)
        self.least = np.full((n, n), APART_M)
        self.room = np.full((n, n), ROOM_M)
        np.fill_diagonal(self.least, 0.0)
        np.fill_diagonal(self.room, 0.0)

    def block(self, posts: Floats, owner: Ints) -> None:
        """Say anew what stands in the way.

        Args:
            posts: (m, 3) x, y and radius.
            owner: (m,) number of the one who pushes it, and whom it does not stop; -1 for nobody.
        """
        self.posts, self.owner = posts, owner

    def touch(self, one: int, other: int, least_m: float | None) -> None:
        """Let two come nearer to each other than others do, or no longer.

        Args:
            one: of them.
            other: of them.
            least_m: how near; None for as others.
        """
        for pair in ((one, other), (other, one)):
            self.least[pair] = APART_M if least_m is None else least_m
            self.room[pair] = ROOM_M if least_m is None else least_m

    def settle(self) -> None:
        """Move those apart who were put too close to each other."""
        # Moving two apart may push one into a third: repeated until a
        # dense crowd has spread, and no more than that.
        for _ in range(60):
            self._separate()
        self.goal = self.xy.copy()

    def step(self, dt: float) -> None:
        """Move everybody.

        Args:
            dt: seconds.
        """
        if not self.n:
            return
        before = self.xy.copy()
        want = self._wanted() + self._pushed()
        change = want - self.velocity
        size = np.hypot(change[:, 0], change[:, 1])
        self.velocity += change * np.minimum(1.0, _GAIN * dt / np.maximum(size, 1e-9))[:, None]
        self.velocity[self.rooted | ~self.here] = 0.0
        self.xy = self.xy + self.velocity * dt
        # A few rounds for a step; what is left over is undone in the next.
        for _ in range(3):
            self._separate()
        self._keep_in(before)
        step = self.xy - before
        way = np.hypot(step[:, 0], step[:, 1])
        # After everything that shifts a place: nobody jumps, whatever pushed them.
        step *= np.minimum(1.0, MOST_MPS * dt / np.maximum(way, 1e-9))[:, None]
        self.xy = before + step
        # Who is held up does not lean on against it.
        moved = step / dt
        self.velocity += 0.5 * (moved - self.velocity)
        self._turn(dt, moved)

    def _wanted(self) -> Floats:
        """(n, 2) velocities that lead to the goals."""
        to = self.goal - self.xy
        away = np.hypot(to[:, 0], to[:, 1])
        # Slower near the goal, or they would overshoot and turn round at every step.
        pace = np.minimum(self.pace, away / _ARRIVE_S)
        wanted: Floats = to / np.maximum(away, 1e-9)[:, None] * pace[:, None]
        return wanted

    def _pushed(self) -> Floats:
        """(n, 2) velocities that lead out of the way of others and of posts."""
        away = self.xy[None] - self.xy[:, None]
        apart = np.hypot(away[..., 0], away[..., 1]) + 1e-9
        both = self.here[:, None] & self.here[None]
        room = np.maximum(self.room, self.wide[:, None] + self.wide[None])
        np.fill_diagonal(room, 0.0)
        press = np.where(both, np.maximum(room - apart, 0.0), 0.0)
        push: Floats = -_PUSH * (press[..., None] * away / apart[..., None]).sum(1)
        push += self._swerve(away, both & (self.room > APART_M))
        if len(self.posts):
            off = self.xy[:, None] - self.posts[None, :, :2]
            gap = np.hypot(off[..., 0], off[..., 1]) + 1e-9
            near = np.maximum(self.posts[:, 2] + 0.6 - gap, 0.0) * self._stopped
            turn = np.stack([-off[..., 1], off[..., 0]], axis=-1) / gap[..., None]
            side = np.sign((turn * self._wanted()[:, None]).sum(-1, keepdims=True))
            push += (3.0 * near[..., None] * (off / gap[..., None] + 0.7 * side * turn)).sum(1)
        return push

    @property
    def _stopped(self) -> Bools:
        """(n, m) whom a post stops."""
        found: Bools = self.owner[None] != np.arange(self.n)[:, None]
        return found

    def _swerve(self, away: Floats, both: Bools) -> Floats:
        """(n, 2) sideways velocities of those who would run into somebody."""
        pace = np.hypot(self.velocity[:, 0], self.velocity[:, 1])
        front = self.velocity / np.maximum(pace, 0.05)[:, None]
        ahead = (away * front[:, None]).sum(2)
        left = front[:, None, 0] * away[..., 1] - front[:, None, 1] * away[..., 0]
        closing = pace[:, None] - (front[:, None] * self.velocity[None]).sum(2)
        width = 0.75 + self.wide[None]
        met = both & (ahead > 0.1) & (ahead < 0.5 + _SIGHT_S * closing) & (np.abs(left) < width)
        met &= (closing > 0.2) & (pace > 0.3)[:, None]
        sign = np.where(np.abs(left) > 0.05, -np.sign(left), 1.0)
        sway = np.where(met, sign * (width + 0.15 - np.abs(left)), 0.0)
        most = np.take_along_axis(sway, np.abs(sway).argmax(1)[:, None], 1)[:, 0]
        sideways = np.stack([-front[:, 1], front[:, 0]], axis=1)
        swerve: Floats = (1.3 * most * np.maximum(1.0, 0.6 * pace))[:, None] * sideways
        return swerve

    def _separate(self) -> None:
        """Move those apart who overlap; who is rooted stays."""
        away = self.xy[None] - self.xy[:, None]
        apart = np.hypot(away[..., 0], away[..., 1]) + 1e-9
        least = np.maximum(self.least, 0.8 * (self.wide[:, None] + self.wide[None]))
        np.fill_diagonal(least, 0.0)
        over = np.where(self.here[:, None] & self.here[None], np.maximum(least - apart, 0.0), 0.0)
        if not over.any():
            return
        # Half each; all of it where the other does not move.
        share = np.where(self.rooted[None], 1.0, 0.5)
        move = -(share * over)[..., None] * away / apart[..., None]
        self.xy = self.xy + np.where(self.rooted[:, None], 0.0, move.sum(1))

    def _keep_in(self, before: Floats) -> None:
        if len(self.posts):
            off = self.xy[:, None] - self.posts[None, :, :2]
            gap = np.hypot(off[..., 0], off[..., 1]) + 1e-9
            deep = (self.posts[:, 2] + 0.2 - gap) * self._stopped
            deep[self.rooted] = 0.0
            for k in np.flatnonzero((deep > 0.0).any(1)).tolist():
                post = int(deep[k].argmax())
                self.xy[k] += off[k, post] / gap[k, post] * deep[k, post]
        # Only who was inside is kept in: those who come from beyond the edge may walk in.
        inside = (before >= self.low).all(1) & (before <= self.high).all(1)
        kept = np.clip(self.xy, self.low, self.high)
        self.xy = np.where((inside & ~self.rooted)[:, None], kept, self.xy)

    def _turn(self, dt: float, moved: Floats) -> None:
        """Turn to what is faced, or to where one goes."""
        pace = np.hypot(moved[:, 0], moved[:, 1])
        going = np.arctan2(moved[:, 1], moved[:, 0])
        aim = np.where(np.isnan(self.face), np.where(pace > 0.25, going, self.heading), self.face)
        off = (aim - self.heading + np.pi) % (2 * np.pi) - np.pi
        most = (4.5 + 0.8 * pace) * dt
        self.heading += np.clip(off, -most, most)


# Words: short descriptions of people by age, clothes and bags, that distinguish those of a scene.

_HUES = (
    (0.04, "red"),
    (0.105, "orange"),
    (0.18, "yellow"),
    (0.44, "green"),
    (0.69, "blue"),
    (0.84, "purple"),
    (0.95, "pink"),
    (1.01, "red"),
)
"""Where the names of hues end on the circle."""
_GREYS = ((0.22, "black"), (0.42, "dark grey"), (0.68, "grey"), (0.84, "light grey"), (1.01, "white"))


def colour_word(colour: tuple[float, float, float]) -> str:
    """The word for a colour.

    Args:
        colour: linear, 0 to 1.

    >>> colour_word((0.40, 0.03, 0.035)), colour_word((0.015, 0.015, 0.018)), colour_word((0.36, 0.22, 0.12))
    ('red', 'black', 'brown')
    """
    # Words are for what is seen on a screen, not for linear light.
    red, green, blue = (np.clip(colour, 0.0, 1.0) ** (1 / 2.2)).tolist()
    hue, saturation, value = colorsys.rgb_to_hsv(red, green, blue)
    if saturation < 0.14 or value < 0.17:
        return next(name for end, name in _GREYS if value < end)
    name = next(name for end, name in _HUES if hue < end)
    if name == "orange" and (value < 0.8 or saturation < 0.6):
        return "brown" if value < 0.72 else "beige"
    if name == "red" and value > 0.7 and saturation < 0.5:
        return "pink"
    return f"dark {name}" if value < 0.42 and name in ("blue", "green", "red") else name


def describe_actors(actors: list[Actor]) -> list[str]:
    """For each person a description, with as few words as tell them from everybody else."""
    parts = [_parts(actor) for actor in actors]
    taken = [1] * len(parts)
    texts = [_text(own, n) for own, n in zip(parts, taken, strict=True)]
    for _ in range(max((len(own) for own in parts), default=0)):
        doubled = [k for k, text in enumerate(texts) if texts.count(text) > 1]
        for k in doubled:
            taken[k] = min(len(parts[k]) - 1, taken[k] + 1)
            texts[k] = _text(parts[k], taken[k])
    return texts


def _text(parts: list[str], n: int) -> str:
    """Who, what they wear on top, and n - 1 more things."""
    more = parts[2 : n + 1]
    joined = ", ".join(more[:-1]) + (" and " if len(more) > 1 else "") + (more[-1] if more else "")
    return f"{parts[0]} in {parts[1]}" + (f" with {joined}" if joined else "")


def format_definite_description(description: str) -> str:
    """A description of somebody who has been spoken of: the man in the red coat.

    >>> format_definite_description("man in a red coat with a black backpack")
    'man in the red coat with a black backpack'
    """
    return description.replace(" in a ", " in the ", 1).replace(" in an ", " in the ", 1)


def _parts(actor: Actor) -> list[str]:
    """Who somebody is, what they wear on top, and more from what is seen best to what is seen least."""
    appearance, worn = describe_appearance(actor, actor.first), get_looks(actor).outfit
    top = appearance["top"].removeprefix("a ").removeprefix("long ")
    found = [_who(actor), "a high-visibility vest" if worn.vest else _garment(worn.top_colour, top)]
    if worn.bag in ("backpack", "handbag"):
        found.append(_garment(worn.bag_colour, worn.bag))
    if "hat" in appearance and worn.hat != "none":
        found.append(_garment(worn.hat_colour, appearance["hat"].removeprefix("a ")))
    if appearance.get("bottom") == "a skirt":
        found.append(_garment(worn.bottom_colour, "skirt"))
    elif "bottom" in appearance:
        found.append(f"{colour_word(worn.bottom_colour)} {appearance['bottom']}")
    if worn.hat == "none" and worn.hair != "bald":
        found.append(f"{_hair(worn.hair_colour)} hair")
    return found


def _who(actor: Actor) -> str:
    age, worn = get_age_group(actor.model), get_looks(actor).outfit
    if age == "child":
        return "child"
    woman = worn.hair in ("long", "tail", "bun") or worn.bottom == "skirt"
    noun = "man" if worn.figure == "broad" and not woman else "woman" if woman else "person"
    return {"young": f"young {noun}", "senior": f"elderly {noun}"}.get(age, noun)


def _garment(colour: tuple[float, float, float], thing: str) -> str:
    word = colour_word(colour)
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word} {thing}"


def _hair(colour: tuple[float, float, float]) -> str:
    red, _, blue = colour
    if red > 0.36 and blue > 0.3:
        return "grey"
    return "fair" if red > 0.26 else "red" if red > 0.18 else "brown" if red > 0.03 else "black"
