"""Records of all persons in each frame, and the actors built from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Bools, Floats, Ints
from roadaware.simulator.actors import Actor, Mind, Pose, Thoughts
from roadaware.simulator.config import SceneConfig
from roadaware.simulator.layout import Layout
from roadaware.simulator.people import stride_m
from roadaware.simulator.town.regions import KERB_M, Regions
from roadaware.simulator.walkers.persons import Stage, Walker, build_companions
from roadaware.simulator.walkers.ways import SIGNALIZED, Ways

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
    """What somebody wanted, and the time in which one would ask; None where one would not.

    Args:
        walker: somebody.
        part: what they did in each frame.
        past: what else happened.
    """
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
    candidate = _in_view(part, past) & (part["over"] < NEAR_KERB_M) & (part["over"] >= 0.0)
    end = len(candidate) if step is None else step
    stage = part["stage"]
    if walker.aimed is not None:
        stood = np.flatnonzero(np.isin(stage[:end], (Stage.WAIT, Stage.LINGER)))
        if step is None and len(stood):
            end = min(end, int(stood[-1]) + 1)
    candidate[end:] = False
    runs = _runs(candidate)
    if not runs:
        return None
    start, stop = max(runs, key=lambda run: (run[1] == step, run[1] - run[0]))
    if stop - start < max(2.0, SHORTEST_S * fps):
        return None
    longest = round(fps * (2.0 + (LONGEST_S - 2.0) * walker.person.chance))
    return max(start, stop - longest), stop - 1


def _runs(mask: Bools) -> list[tuple[int, int]]:
    """Half-open stretches where a mask holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _ahead(part: dict[str, Floats], past: Past) -> tuple[Floats, Floats]:
    """(n,) how far before and left of the own vehicle's middle somebody is."""
    frames = part["frame"].astype(np.int64)
    away = np.stack([part["x"], part["y"]], axis=1) - past.own[frames]
    c, s = np.cos(past.own_heading[frames]), np.sin(past.own_heading[frames])
    return away[:, 0] * c + away[:, 1] * s, away[:, 1] * c - away[:, 0] * s


def _in_view(part: dict[str, Floats], past: Past) -> Bools:
    ahead, left = _ahead(part, past)
    widest = np.deg2rad(0.46 * past.config.camera.fov_deg)
    found: Bools = (ahead > PASSING_M) & (ahead < VIEW_M) & (np.abs(left) < np.tan(widest) * ahead)
    return found


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
        """For each walker the columns over the frames in which they were about, and `frame`.

        Args:
            n: walkers.
        """
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
    """Everybody who was about in some frame, then what they push and their dogs.

    Args:
        walkers: everybody.
        records: of them.
        layout: a town.
        ways: its pavements.
        config: of the scene.
        first_number: of the first actor.
    """
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
    return replace(bare, gait=_gait(bare, signed, context.fps))


def _gait(actor: Actor, way: Floats, fps: float) -> Floats:
    """The phase of the pose: by strides where somebody moves, by time where they stand."""
    running = actor.pose == Pose.RUN
    stride = np.where(running, stride_m(actor, Pose.RUN), stride_m(actor, Pose.WALK))
    moved = way * 2.0 * np.pi / stride
    waving = np.where(actor.pose == Pose.WAVE, 4.0 * SWAY_RAD_S, SWAY_RAD_S) / fps
    still = (np.abs(way) * fps < 0.15) & (actor.pose != Pose.PUSH_OBJECT)
    still |= actor.pose == Pose.WAVE
    phase: Floats = (actor.look % 628) / 100.0 + np.cumsum(np.where(still, waving, moved))
    return phase
