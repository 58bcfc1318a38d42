"""`Walkers`: people on foot and stray dogs, frame by frame, with the records and actors that are made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.simulator.actors import CROSSES, STAYS, WALKS_ON, Actor, Mind, Pose, Thoughts
from roadaware.simulator.config import SceneConfig
from roadaware.simulator.layout import Layout, Line
from roadaware.simulator.people import stride_m
from roadaware.simulator.town.regions import KERB_M, Regions
from roadaware.simulator.traffic.loop import OnFoot, TrafficView
from roadaware.simulator.walkers.crossing import Lookout, Minds
from roadaware.simulator.walkers.persons import (
    AT_KERB_M,
    PUSHER_M,
    WAKE_M,
    Setting,
    Stage,
    Start,
    Walker,
    build_companions,
    build_setting,
    find_place_near,
    is_built_out,
    set_goal,
    set_stage,
)
from roadaware.simulator.walkers.ways import EDGE_M, SIGNALIZED, Bodies, Ways

# Questions: of whom one would ask whether they want to cross, when, and what watchers would answer.

VIEW_M = 55.0
PASSING_M = 3.0
"""The own vehicle passes somebody who is less than this ahead of its middle."""
IN_THE_WAY_M = 1.6
"""To both sides of its middle one is in the way of the own vehicle."""
NEAR_KERB_M = 1.8
SHORTEST_S, LONGEST_S = 0.5, 6.0
ASKED_ANYWAY = 0.2
"""Share of those who just pass, about whom one asks too."""
SPREAD = 0.9


@dataclass(frozen=True, eq=False)
class Past:
    """Records of a finished scene.

    Args:
        own: (F, 2) where the own vehicle was.
        own_heading: (F,) where it pointed.
        layout: a town.
        ways: its pavements.
        config: of the scene.
    """

    own: Floats
    own_heading: Floats
    layout: Layout
    ways: Ways
    config: SceneConfig


def build_intent_record(walker: Walker, part: dict[str, Floats], past: Past) -> Mind | None:
    """What somebody wanted, and the time in which one would ask; None where one would not."""
    person = walker.person
    if walker.aimed is None and person.chance > ASKED_ANYWAY:
        return None
    out = np.flatnonzero(part["over"] < 0.0)
    step = int(out[0]) if len(out) else None
    span = _find_observation_span(walker, part, past, step)
    # Whether somebody crosses is not known while they wait and the own vehicle is yet to come.
    open_end = step is None and walker.place is not None and person.wants
    if span is None or (open_end and _ahead(part, past)[0][-1] > PASSING_M):
        return None
    first = int(part["frame"][0])
    crossing = None if step is None else first + step
    ahead = step is not None and _before_own(part, past, step)
    return Mind(
        _simulate_intent_rating(walker, part, past, span), wants_to_cross(walker), first + span[0], first + span[1], ahead,
        crossing, person.age, _get_signalization(walker, part, past, span[1]),
    )  # fmt: skip


def wants_to_cross(walker: Walker) -> bool:
    """Whether somebody came to want to cross, in the time in which they were about."""
    return walker.person.wants and walker.aimed is not None


def _find_observation_span(
    walker: Walker, part: dict[str, Floats], past: Past, step: int | None
) -> tuple[int, int] | None:
    """First and last row of the time in which somebody is in view and near the kerb, before they step out."""
    fps = past.config.camera.fps
    ahead, left = _ahead(part, past)
    widest = np.deg2rad(0.46 * past.config.camera.fov_deg)
    found: Bools = (ahead > PASSING_M) & (ahead < VIEW_M) & (np.abs(left) < np.tan(widest) * ahead)
    candidate = found & (part["over"] < NEAR_KERB_M) & (part["over"] >= 0.0)
    end = len(candidate) if step is None else step
    stage = part["stage"]
    if walker.aimed is not None:
        stood = np.flatnonzero(np.isin(stage[:end], (Stage.WAIT, Stage.LINGER)))
        if step is None and len(stood):
            end = min(end, int(stood[-1]) + 1)
    candidate[end:] = False
    # Half-open stretches where a mask holds
    edges = np.flatnonzero(np.diff(np.concatenate([[0], candidate.astype(np.int8), [0]])))
    runs = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
    if not runs:
        return None
    start, stop = max(runs, key=lambda run: (run[1] == step, run[1] - run[0]))
    if stop - start < max(2.0, SHORTEST_S * fps):
        return None
    longest = round(fps * (2.0 + (LONGEST_S - 2.0) * walker.person.chance))
    return max(start, stop - longest), stop - 1


def _ahead(part: dict[str, Floats], past: Past) -> tuple[Floats, Floats]:
    """(n,) how far before and left of the own vehicle's middle somebody is."""
    frames = part["frame"].astype(np.int64)
    away = np.stack([part["x"], part["y"]], axis=1) - past.own[frames]
    c, s = np.cos(past.own_heading[frames]), np.sin(past.own_heading[frames])
    return away[:, 0] * c + away[:, 1] * s, away[:, 1] * c - away[:, 0] * s


def _before_own(part: dict[str, Floats], past: Past, step: int) -> bool:
    """Whether somebody crosses the way of the own vehicle before it comes by, as far as the scene shows."""
    road = past.ways.bands[int(part["band"][step])].road
    roads = {past.layout.lanes[number].road for number in past.layout.route}
    ahead, left = _ahead(part, past)
    on = np.flatnonzero(part["over"][step:] >= 0.0)
    end = step + int(on[0]) if len(on) else len(ahead)
    met = np.flatnonzero(np.abs(left[step:end]) < IN_THE_WAY_M)
    row = step + int(met[0]) if len(met) else max(end - 1, step)
    return road in roads and bool(ahead[step] > PASSING_M) and bool(ahead[row] > PASSING_M)


def _get_signalization(walker: Walker, part: dict[str, Floats], past: Past, row: int) -> str:
    """What regulates crossing where somebody is at a row."""
    if walker.aimed is not None and walker.start.errand != "bus":
        return SIGNALIZED[walker.aimed.kind]
    road, s = past.ways.bands[int(part["band"][row])].road, part["s"][row]
    for crossing in past.layout.crossings:
        if crossing.road == road and abs(crossing.s_m - s) < 5.0:
            return SIGNALIZED[crossing.kind]
    return "n/a"


def _simulate_intent_rating(
    walker: Walker, part: dict[str, Floats], past: Past, span: tuple[int, int]
) -> float:
    """The mean answer of ten people on a scale of five steps, by what they see and what is so."""
    rows = slice(span[0], span[1] + 1)
    turned = np.cos(part["heading"][rows] - part["inward"][rows])
    at_kerb = part["over"][rows] < 0.8
    stands = np.isin(part["stage"][rows], (Stage.WAIT, Stage.LINGER, Stage.APPROACH))
    marked = _get_signalization(walker, part, past, span[1]) != "n/a"
    evidence = -1.9 + 1.6 * float(np.mean(turned * at_kerb)) + 0.8 * float(np.mean(stands))
    evidence += 0.8 * float(np.mean(part["looking"][rows])) + 0.5 * marked + 1.3 * wants_to_cross(walker)
    chances = 1.0 / (1.0 + np.exp(-(evidence + SPREAD * np.array(walker.person.guesses))))
    return float(np.mean(np.round(4.0 * chances) / 4.0))


SWAY_RAD_S = 1.5
"""How fast those who stand sway, and half as fast as those who wave do so."""
COLUMNS = (
    "x", "y", "heading", "over", "gaze", "stage", "pose", "looking", "inward", "band", "s", "goal", "margin",
)  # fmt: skip


class Records:
    """Rows of everybody who is about, frame by frame.

    Args:
        n_frames: of the scene.
    """

    def __init__(self, n_frames: int) -> None:
        self.own = np.zeros((n_frames, 2))
        self.own_heading = np.zeros(n_frames)
        self._rows: list[Floats] = []
        self._who: list[Ints] = []
        self._frames: list[int] = []

    def add(self, frame: int, who: Ints, own: Floats, own_heading: float, **columns: npt.ArrayLike) -> None:
        """Note one frame.

        Args:
            frame: of the scene.
            who: (m,) numbers of walkers.
            own: (2,) where the own vehicle is.
            own_heading: where it points.
            columns: (m,) values of each of `COLUMNS`.
        """
        self.own[frame], self.own_heading[frame] = own, own_heading
        self._frames.append(frame)
        self._who.append(who)
        self._rows.append(np.stack([np.asarray(columns[name], dtype=np.float64) for name in COLUMNS], 1))

    def of_each(self, n: int) -> list[dict[str, Floats]]:
        """For each walker the columns over the frames in which they were about, and `frame`."""
        if not self._who:
            return [{"frame": np.zeros(0)} for _ in range(n)]
        who = np.concatenate(self._who)
        frames = np.repeat(self._frames, [len(row) for row in self._who])
        rows = np.concatenate(self._rows)
        order = np.argsort(who, kind="stable")
        ends = np.searchsorted(who[order], np.arange(n + 1))
        found = []
        for k in range(n):
            mine = order[ends[k] : ends[k + 1]]
            part = {name: rows[mine, place] for place, name in enumerate(COLUMNS)}
            found.append(part | {"frame": frames[mine].astype(np.float64)})
        return found


@dataclass(frozen=True, eq=False)
class Context:
    """Context for building actors besides the records.

    Args:
        layout: a town.
        ways: its pavements.
        config: of the scene.
        fps: frames per second.
    """

    layout: Layout
    ways: Ways
    config: SceneConfig
    fps: float


def build_walker_actors(
    walkers: Sequence[Walker],
    records: Records,
    layout: Layout,
    ways: Ways,
    config: SceneConfig,
    first_number: int,
) -> tuple[Actor, ...]:
    """Everybody who was about in some frame, then what they push and their dogs."""
    context = Context(layout, ways, config, config.camera.fps)
    past = Past(records.own, records.own_heading, layout, ways, config)
    parts = records.of_each(len(walkers))
    seen = [(w, part) for w, part in zip(walkers, parts, strict=True) if len(part["frame"])]
    lanes = _lanes(layout, [part for _, part in seen])
    people = [
        _person(walker, part, lane, first_number + k, context, past)
        for k, ((walker, part), lane) in enumerate(zip(seen, lanes, strict=True))
    ]
    number = first_number + len(people)
    things: list[Actor] = []
    for k, (walker, part) in enumerate(seen):
        made, pushed = build_companions(walker.person, people[k], part, number + len(things), context.fps)
        if pushed is not None:
            people[k] = replace(people[k], with_object=pushed)
        things += made
    return (*people, *things)


def ground_height(over: Floats) -> Floats:
    """(n,) height of the ground in metres that far from the edge of the pavement, pavement positive."""
    found: Floats = KERB_M * np.clip(over / 0.3 + 0.5, 0.0, 1.0)
    return found


def _lanes(layout: Layout, parts: Sequence[dict[str, Floats]]) -> list[Ints]:
    """Numbers of the lanes and pavements that everybody is on."""
    if not parts:
        return []
    points = np.concatenate([np.stack([part["x"], part["y"]], 1) for part in parts])
    lane = Regions(layout).at(points).lane
    return np.split(lane, np.cumsum([len(part["x"]) for part in parts])[:-1])


def _person(
    walker: Walker, part: dict[str, Floats], lane: Ints, number: int, context: Context, past: Past
) -> Actor:
    person, n = walker.person, len(part["x"])
    position = np.stack([part["x"], part["y"], ground_height(part["over"])], axis=1)
    step = np.diff(position[:, :2], axis=0, prepend=position[:1, :2])
    facing = np.stack([np.cos(part["heading"]), np.sin(part["heading"])], axis=1)
    way = np.hypot(step[:, 0], step[:, 1])
    signed = np.where((step * facing).sum(1) < 0.0, -way, way)
    if n > 1:
        signed[0] = signed[1]
    stage = part["stage"].astype(np.int64)
    mind = build_intent_record(walker, part, past)
    heading = (part["heading"] + np.pi) % (2 * np.pi) - np.pi
    facts = {
        "waiting": (stage == Stage.WAIT).astype(np.int8),
        "crossing": (part["over"] < 0.0).astype(np.int8),
        "pushing": np.full(n, person.pushes is not None, dtype=np.int8),
        "looking": part["looking"].astype(np.int8),
    }
    bare = Actor(
        number, "Ped", person.model, person.size_m, person.look, int(part["frame"][0]), position, heading,
        signed * context.fps, np.zeros(n, dtype=np.uint8), part["pose"].astype(np.uint8), np.zeros(n),
        part["gaze"], lane, facts=facts, mind=mind,
        thoughts=Thoughts(part["goal"].astype(np.int8), np.ones(n, dtype=np.bool_), part["margin"]),
    )  # fmt: skip
    # The phase of the pose: by strides where somebody moves, by time where they stand
    running = bare.pose == Pose.RUN
    stride = np.where(running, stride_m(bare, Pose.RUN), stride_m(bare, Pose.WALK))
    moved = signed * 2.0 * np.pi / stride
    waving = np.where(bare.pose == Pose.WAVE, 4.0 * SWAY_RAD_S, SWAY_RAD_S) / context.fps
    still = (np.abs(signed) * context.fps < 0.15) & (bare.pose != Pose.PUSH_OBJECT)
    still |= bare.pose == Pose.WAVE
    phase: Floats = (bare.look % 628) / 100.0 + np.cumsum(np.where(still, waving, moved))
    return replace(bare, gait=phase)


LONGEST_STEP_S = 0.1
GONE_M = 30.0
"""Beyond the distance at which people wake up, they are forgotten."""
ABREAST_M, PUSHED_M = 0.65, 1.0
APART_M = 1.1
"""Nobody starts nearer to something that lies about."""
STANDING_IN_THE_WAY = ("tree", "lamp_post", "sign", "bin", "bollard", "bus_stop")


class Walkers:
    """Everybody on foot.

    Args:
        layout: a town.
        config: of the scene.
        rng: draws everything.
        n_frames: of the scene.
        fps: frames per second.
        starts: who is about; None to make them up. Leaders stand before those who follow them.
        things: that lie about; people walk round those on pavements.
    """

    def __init__(
        self,
        layout: Layout,
        config: SceneConfig,
        rng: np.random.Generator,
        n_frames: int,
        fps: float,
        starts: Sequence[Start] | None = None,
        things: Sequence[Actor] = (),
    ) -> None:
        self._layout, self._config, self._rng, self._fps = layout, config, rng, fps
        self._ways = Ways(layout)
        # (k, 2) points that stand for things: one for small ones, three for long ones
        found: list[Floats] = []
        for thing in things:
            turn = float(thing.heading[0]) + (np.pi / 2 if thing.size_m[1] > thing.size_m[0] else 0.0)
            reach = 0.5 * abs(thing.size_m[0] - thing.size_m[1])
            way = np.array([np.cos(turn), np.sin(turn)])
            # Bodies keep a distance to points; three of them are enough of a long thing to walk round.
            shares = (-reach, 0.0, reach) if reach > 0.2 else (0.0,)
            found += [thing.position[0, :2] + share * way for share in shares]
        self._things = np.array(found, dtype=np.float64).reshape(-1, 2)
        self._starts = None if starts is None else list(starts)
        # The difference keeps 10 frames per second at one step, where
        # the quotient may come out a hair above 1.
        self._steps = max(1, math.ceil(1.0 / fps / LONGEST_STEP_S - 1e-9))
        self._walkers: list[Walker] = []
        self._records = Records(n_frames)
        self._who: Ints = np.zeros(0, dtype=np.int64)
        self._bodies: Bodies | None = None
        self._minds: Minds | None = None
        self._setting: Setting | None = None

    def step(self, frame: int, view: TrafficView) -> None:
        """Let everybody live until a frame, and record where they are in it.

        Args:
            frame: of the scene; frames come one after the other.
            view: the traffic; the own vehicle is its first row.
        """
        bodies, minds = self._begun(view)
        self._wake(bodies, view.position[0])
        self._tempt(bodies, view)
        lookout = Lookout(self._layout, view)
        dt = 1.0 / self._fps / self._steps
        who = self._who.tolist()
        for _ in range(self._steps if frame else 0):
            for k in who:
                minds.think(k, dt, lookout)
            if who:
                bodies.step(dt, self._who)
                self._go_on(bodies)
        self._record(frame, view, bodies)

    def on_road(self) -> tuple[Floats, Floats]:
        """(m, 2) places on the road of people and what they push, in metres, and (m, 2) velocities."""
        if self._bodies is None:
            return np.zeros((0, 2)), np.zeros((0, 2))
        rows = self._who[self._out(self._bodies)]
        place, velocity = self._bodies.xy[rows], self._bodies.velocity[rows]
        # What somebody pushes is as much in the way as they are.
        push = np.array([self._walkers[k].person.pushes is not None for k in rows.tolist()], dtype=np.bool_)
        turn = self._bodies.heading[rows][push]
        before = place[push] + PUSHED_M * np.stack([np.cos(turn), np.sin(turn)], axis=1)
        return np.concatenate([place, before]), np.concatenate([velocity, velocity[push]])

    def waiting(self) -> Floats:
        """(k, 2) positions of those who wait to cross, or reach the kerb of a marked crossing to do so."""
        if self._bodies is None:
            return np.zeros((0, 2))
        rows = [k for k in self._who.tolist() if self._waits(k)]
        return self._bodies.xy[rows].reshape(-1, 2)

    def actors(self, first_number: int) -> tuple[Actor, ...]:
        """Everybody who was near the own vehicle, then what they push and the dogs that go with them.

        Args:
            first_number: of the first of them; the others follow.
        """
        return build_walker_actors(
            self._walkers, self._records, self._layout, self._ways, self._config, first_number
        )

    def _begun(self, view: TrafficView) -> tuple[Bodies, Minds]:
        """People appear when it is known where the own vehicle begins."""
        if self._bodies is None or self._minds is None:
            self._setting = build_setting(self._layout, self._ways, self._config, view.position[0])
            if self._starts is None:
                self._starts = [self._beside(start) for start in set_stage(self._setting, self._rng)]
            self._walkers = [_walker(start, self._rng) for start in self._starts]
            # Sorted: the order of a set is no promise.
            for lead in sorted({start.leader for start in self._starts} - {-1}):
                _side_by_side(self._walkers, lead)
            self._bodies = _bodies(self._starts, self._walkers, self._ways, self._obstacles(), self._config)
            self._minds = Minds(self._walkers, self._bodies, self._rng)
        return self._bodies, self._minds

    def _beside(self, start: Start) -> Start:
        """The same, a few steps on where something lies."""
        for _ in range(6 if len(self._things) and start.s > 2.0 else 0):
            here = self._ways.place(start.band, start.s, start.u)
            if float(np.hypot(*(self._things - here).T).min()) > APART_M:
                break
            start = replace(start, s=start.s - 0.5 * start.way)
        return start

    def _obstacles(self) -> Floats:
        """(k, 2) where things stand or lie that people walk round."""
        props = [prop.position for prop in self._layout.props if prop.kind in STANDING_IN_THE_WAY]
        return np.concatenate([np.array(props, dtype=np.float64).reshape(-1, 2), self._things])

    def _wake(self, bodies: Bodies, own: Floats) -> None:
        """Wake those whom the own vehicle nears, and forget those it has left behind."""
        away = np.hypot(*(bodies.xy - own).T)
        for k, walker in enumerate(self._walkers):
            lead = walker.start.leader if walker.start.leader >= 0 else k
            # By the leader's distance: a party wakes as one.
            if walker.awake == 0 and away[lead] < WAKE_M:
                walker.awake = 1
            elif walker.awake == 1 and away[lead] > WAKE_M + GONE_M:
                walker.awake = 2
        self._who = np.array(
            [k for k, walker in enumerate(self._walkers) if walker.awake == 1], dtype=np.int64
        )

    def _tempt(self, bodies: Bodies, view: TrafficView) -> None:
        """Let those who would cross later want it now, if the own vehicle comes near them."""
        ahead = np.array([np.cos(view.heading[0]), np.sin(view.heading[0])])
        for k in self._who.tolist():
            walker = self._walkers[k]
            # Companions follow their leader's wish below.
            if walker.errand != "later" or walker.start.leader >= 0 or walker.stage != Stage.STROLL:
                continue
            away = bodies.xy[k] - view.position[0]
            if float(away @ ahead) < 6.0 or float(np.hypot(*away)) > walker.start.trigger_m:
                continue
            band, s = int(bodies.band[k]), float(bodies.s[k])
            if self._setting is None or self._ways.bands[band].road < 0:
                continue
            place = find_place_near(self._setting, band, s, walker.way, self._rng)
            for other, follower in enumerate(self._walkers):
                if other == k or (follower.start.leader == k and bodies.band[other] == band):
                    follower.errand = "walk" if place is None else "cross"
                    if place is not None:
                        follower.way = walker.way
                        set_goal(follower, place, float(self._rng.uniform(-1.0, 1.0)))
            _side_by_side(self._walkers, k)

    def _go_on(self, bodies: Bodies) -> None:
        """Lead people from the end of a pavement on to the next, or back."""
        ways, who = self._ways, self._who
        s, band = bodies.s[who], bodies.band[who]
        for k in who[(s < 0.0) | (s > ways.length[band])].tolist():
            walker = self._walkers[k]
            end = 1 if bodies.s[k] > 0.0 else 0
            if walker.stage in (Stage.CROSS, Stage.HOLD, Stage.BACK):
                bodies.s[k] = float(np.clip(bodies.s[k], 0.0, ways.length[bodies.band[k]]))
                continue
            onward = ways.links.get((int(bodies.band[k]), end))
            if onward is None:
                walker.way = -1 if end else 1
                bodies.s[k] = float(np.clip(bodies.s[k], 0.0, ways.length[bodies.band[k]]))
                bodies.vs[k] = 0.0
                continue
            band_there, end_there = onward
            start = 0.0 if end_there == 0 else float(ways.length[band_there])
            width = float(ways.width[band_there])
            u = float(np.clip(bodies.u[k], EDGE_M, width - EDGE_M))
            bodies.switch(k, band_there, start, u, end == end_there)
            walker.way = 1 if end_there == 0 else -1

    def _out(self, bodies: Bodies) -> Bools:
        """(m,) who of those about is on the road."""
        edge = np.array([_edge(self._walkers[k]) for k in self._who.tolist()])
        found: Bools = bodies.u[self._who] < -edge if len(edge) else np.zeros(0, dtype=np.bool_)
        return found

    def _waits(self, k: int) -> bool:
        walker = self._walkers[k]
        if walker.stage == Stage.WAIT or walker.place is None or walker.errand != "cross":
            return walker.stage == Stage.WAIT
        near = self._bodies is not None and abs(float(self._bodies.s[k]) - walker.target_s) < 1.6
        return walker.stage == Stage.APPROACH and near and walker.place.kind in ("zebra", "signalled")

    def _record(self, frame: int, view: TrafficView, bodies: Bodies) -> None:
        who = self._who
        walkers = [self._walkers[k] for k in who.tolist()]
        pace = np.hypot(*bodies.velocity[who].T)
        edge = np.array([_edge(walker) for walker in walkers])
        self._records.add(
            frame, who, view.position[0], float(view.heading[0]),
            x=bodies.xy[who, 0], y=bodies.xy[who, 1], heading=bodies.heading[who], over=bodies.u[who] + edge,
            gaze=[walker.gaze for walker in walkers], stage=[walker.stage for walker in walkers],
            pose=[_pose(walker, float(v)) for walker, v in zip(walkers, pace, strict=True)],
            looking=[walker.scanning for walker in walkers],
            inward=bodies.road_turn[who] - self._ways.side[bodies.band[who]] * np.pi / 2,
            band=bodies.band[who], s=bodies.s[who], goal=[_goal(walker) for walker in walkers],
            margin=[walker.person.care_s * walker.demand for walker in walkers],
        )  # fmt: skip


def _edge(walker: Walker) -> float:
    """How far the pavement reaches into the road where somebody crosses."""
    if walker.place is None:
        return 0.0
    return walker.place.far_m if walker.over else walker.place.near_m


def _goal(walker: Walker) -> int:
    """What somebody is about to do: `later` is a wish that has not come yet."""
    if walker.errand == "cross" and walker.place is not None and not walker.done:
        return CROSSES
    stays = walker.errand in ("linger", "bus") and walker.place is not None
    return STAYS if stays or walker.stage == Stage.REST else WALKS_ON


def _pose(walker: Walker, pace: float) -> Pose:
    person = walker.person
    if person.pushes is not None:
        return Pose.PUSH_OBJECT
    if pace > 2.0:
        return Pose.RUN
    busy = walker.stage in (Stage.APPROACH, Stage.CROSS, Stage.HOLD, Stage.BACK, Stage.WAIT)
    if person.phones and not (busy and person.looks):
        return Pose.PHONE
    if walker.wave_s > 0.0:
        return Pose.WAVE
    return Pose.WALK if pace > 0.15 else Pose.STAND


def _walker(start: Start, rng: np.random.Generator) -> Walker:
    """Somebody at their beginning."""
    walker = Walker(start.person, start, Stage.STROLL, start.way, start.u, None, start.errand)
    walker.next_way = 1 if rng.random() < 0.5 else -1
    walker.patience_s = start.person.patience_s
    stray = float(rng.uniform(-1.0, 1.0))
    if start.place is None:
        return walker
    set_goal(walker, start.place, stray)
    if start.errand == "bus":
        back = AT_KERB_M + PUSHER_M if start.person.pushes is not None else 0.0
        walker.target_s, walker.target_u = start.s, max(start.u, back)
    if abs(start.s - walker.target_s) < 1.0:
        walker.stage = Stage.APPROACH
    return walker


def _side_by_side(walkers: Sequence[Walker], lead: int) -> None:
    """Let those who go with somebody cross beside them, and go the same way afterwards."""
    followers = [walker for walker in walkers if walker.start.leader == lead]
    for k, walker in enumerate(followers):
        walker.next_way = walkers[lead].next_way
        if walker.aimed is not None and walker.start.errand != "bus":
            apart = ABREAST_M * (k // 2 + 1) * (1 if k % 2 else -1)
            walker.target_s = walkers[lead].target_s + (0.1 * apart if is_built_out(walker.aimed) else apart)


def _bodies(
    starts: Sequence[Start], walkers: Sequence[Walker], ways: Ways, obstacles: Floats, config: SceneConfig
) -> Bodies:
    """Everybody at their beginning, facing where they go."""
    party = [start.leader if start.leader >= 0 else k for k, start in enumerate(starts)]
    bodies = Bodies(
        ways,
        np.array([start.band for start in starts], dtype=np.int64),
        np.array([start.s for start in starts], dtype=np.float64),
        np.array([start.u for start in starts], dtype=np.float64),
        np.array(party, dtype=np.int64),
        config.surroundings.drive_on == "left",
        obstacles,
    )
    turn = ways.frame(bodies.band, bodies.s)[1]
    inward = turn - ways.side[bodies.band] * np.pi / 2
    going = turn + np.where(np.array([walker.way for walker in walkers]) > 0, 0.0, np.pi)
    stands = np.array([walker.stage == Stage.APPROACH for walker in walkers], dtype=np.bool_)
    bodies.heading[:] = np.where(stands, inward, going) if len(starts) else bodies.heading
    bodies.road_turn[:] = turn
    bodies.vs[:] = [0.0 if s else w.way * w.person.pace for s, w in zip(stands, walkers, strict=True)]
    return bodies


# Strays: dogs that run over the road, as drivers see them; they live along with those on foot.

BRAKE = 4.0
"""m/s2 that dogs expect of drivers: they stop before a vehicle that could not brake for them."""
BODY_M = 0.5
LOOK_S = (0.15, 0.3, 0.5, 0.7, 0.9)
"""Moments ahead for which they look where vehicles will be."""


@dataclass(frozen=True, eq=False)
class Dog:
    """A dog that wants to run over a road.

    Args:
        line: of the road.
        along_m: where along it.
        side: 1 if it comes from the left of the line, -1 from the right.
        near_m: from the line to where it starts.
        far_m: from the line to where it ends.
        half_m: from the line to the kerb.
        begin_s: when it starts.
        pace: m/s.
        drift: metres along the road for each metre across.
    """

    line: Line
    along_m: float
    side: float
    near_m: float
    far_m: float
    half_m: float
    begin_s: float
    pace: float
    drift: float

    def at(self, gone: float) -> Floats:
        """(2,) where it is after some metres across the road."""
        left = self.side * (self.near_m - gone)
        return self.line.beside(self.along_m + self.drift * gone, left)

    @property
    def heading(self) -> float:
        """Where it runs to."""
        return float(self.line.heading(self.along_m)) - self.side * (np.pi / 2 - self.drift)


class Strays:
    """Those on foot, and dogs among them.

    Args:
        walkers: everybody on foot.
        dogs: that run.
        fps: frames per second.
    """

    def __init__(self, walkers: OnFoot, dogs: Sequence[Dog], fps: float) -> None:
        self.walkers, self.dogs, self.fps = walkers, tuple(dogs), fps
        self._gone = [0.0] * len(self.dogs)
        self._pace = [0.0] * len(self.dogs)
        self._tracks: list[list[tuple[float, float, float]]] = [[] for _ in self.dogs]

    def step(self, frame: int, view: TrafficView) -> None:
        """Live through one frame."""
        self.walkers.step(frame, view)
        people, _ = self.walkers.on_road()
        for k, dog in enumerate(self.dogs):
            wants = view.time_s >= dog.begin_s and self._gone[k] < dog.near_m + dog.far_m
            runs = wants and frame > 0 and not _is_endangered(dog, self._gone[k], view)
            ahead = dog.at(self._gone[k] + 0.8)
            runs = runs and not bool((np.hypot(*(people - ahead).T) < 0.8).any())
            self._pace[k] = dog.pace if runs else 0.0
            self._gone[k] += self._pace[k] / self.fps
            x, y = dog.at(self._gone[k]).tolist()
            self._tracks[k].append((x, y, dog.heading))

    def on_road(self) -> tuple[Floats, Floats]:
        """(m, 2) where people and dogs are on the road, metres, and (m, 2) their velocities, m/s."""
        people, velocity = self.walkers.on_road()
        out = [k for k, dog in enumerate(self.dogs) if abs(dog.near_m - self._gone[k]) < dog.half_m]
        if not out:
            return people, velocity
        place = [self.dogs[k].at(self._gone[k]) for k in out]
        turn = [self.dogs[k].heading for k in out]
        pace = [self._pace[k] * np.array([np.cos(h), np.sin(h)]) for k, h in zip(out, turn, strict=True)]
        return np.concatenate([people, place]), np.concatenate([velocity, pace])

    def waiting(self) -> Floats:
        """(k, 2) where people wait to cross."""
        return self.walkers.waiting()

    def tracks(self) -> list[Floats]:
        """(F, 3) x, y and heading of each dog in each frame."""
        return [np.array(track, dtype=np.float64).reshape(-1, 3) for track in self._tracks]


def _is_endangered(dog: Dog, gone: float, view: TrafficView) -> bool:
    """Whether a step on leads into a vehicle, or before one that is too near to brake."""
    c, s = np.cos(view.heading), np.sin(view.heading)
    v = np.maximum(view.speed, 0.0)
    half, length = view.width / 2 + BODY_M, view.length / 2

    def beside(seconds: float, way: float) -> tuple[Floats, Floats]:
        away = dog.at(gone + way) - view.position
        return away[:, 0] * c + away[:, 1] * s - v * seconds, away[:, 1] * c - away[:, 0] * s

    ahead, left = beside(0.0, 0.0)
    inside = np.abs(left) < half
    for seconds in LOOK_S:
        soon, there = beside(seconds, dog.pace * seconds)
        if ((np.abs(soon) < length + BODY_M) & (np.abs(there) < half) & ~inside).any():
            return True
    soon, there = beside(0.0, 1.6)
    enters = ~inside & ((np.abs(there) < half) | (left * there < 0))
    behind = np.minimum(ahead, soon) < -length - BODY_M
    gap = np.maximum(ahead, soon) - length
    return bool((enters & ~behind & (gap < v * v / (2 * BRAKE) + 0.4 * v + 1.5)).any())
