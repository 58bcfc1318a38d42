"""Records: what everybody did in each frame, and the actors that come of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Ints
from roadaware.scenes.simulator.actors import Actor, Pose
from roadaware.scenes.simulator.config import SceneConfig
from roadaware.scenes.simulator.layout import Layout
from roadaware.scenes.simulator.people import stride_m
from roadaware.scenes.simulator.town.regions import KERB_M, Regions
from roadaware.scenes.simulator.walkers.companions import companions
from roadaware.scenes.simulator.walkers.questions import Past, mind_of
from roadaware.scenes.simulator.walkers.states import Stage, Walker
from roadaware.scenes.simulator.walkers.ways import Ways

SWAY_RAD_S = 1.5
"""How fast those who stand sway, and half as fast as those who wave do so."""
COLUMNS = ("x", "y", "heading", "over", "gaze", "stage", "pose", "looking", "inward", "band", "s")


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
    """What making actors needs besides the records.

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


def actors_of(
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
        made, pushed = companions(walker.person, people[k], part, number + len(things), context.fps)
        if pushed is not None:
            people[k] = replace(people[k], with_object=pushed)
        things += made
    return (*people, *things)


def height(over: Floats) -> Floats:
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
    position = np.stack([part["x"], part["y"], height(part["over"])], axis=1)
    step = np.diff(position[:, :2], axis=0, prepend=position[:1, :2])
    facing = np.stack([np.cos(part["heading"]), np.sin(part["heading"])], axis=1)
    way = np.hypot(step[:, 0], step[:, 1])
    signed = np.where((step * facing).sum(1) < 0.0, -way, way)
    if n > 1:
        signed[0] = signed[1]
    stage = part["stage"].astype(np.int64)
    mind = mind_of(walker, part, past)
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
