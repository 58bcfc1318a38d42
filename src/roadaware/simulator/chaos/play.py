"""Play: which poses show which action, the players of a crowd, what they hold and do in the frame at hand, and
the notes of all frames.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from roadaware.arrays import Floats
from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL
from roadaware.simulator.actors import Pose
from roadaware.simulator.chaos.crowd import Bodies, Ground

GROUND_MODELS = ("flood", "hailstones", "volcano", "podium")
"""Things that one stands in, on or far away from; they stop nobody."""
PREFIX = "action:"
"""Facts of an actor that are called so tell in which frames it does an official action."""

_UPRIGHT = (
    Pose.STAND, Pose.WALK, Pose.WAVE, Pose.FILM, Pose.HOLD_FLAG, Pose.HOLD_SIGN, Pose.ARGUE, Pose.SHOUT,
    Pose.PHONE, Pose.CLAP, Pose.THREATEN, Pose.HANDS_UP, Pose.DRUM, Pose.TRUMPET, Pose.STRUM, Pose.MICROPHONE,
    Pose.HOLD_HANDS, Pose.RAISE_CAN,
)  # fmt: skip
DEEDS: Mapping[str, tuple[Pose, ...]] = {
    "aiming weapon": (Pose.AIM,),
    "arguing": (Pose.ARGUE, Pose.SHOUT),
    "arresting": (Pose.KNEEL, Pose.PUSH_OBJECT),
    "burning/setting fire": (Pose.STAND,),
    "carrying": (Pose.PUSH_OBJECT, Pose.STAND, Pose.WALK, Pose.RUN),
    "carrying casualty": (Pose.PUSH_OBJECT,),
    "chanting/cheering": (Pose.SHOUT, Pose.WAVE, Pose.HOLD_FLAG, Pose.HOLD_SIGN, Pose.RAISE_CAN),
    "chasing": (Pose.RUN, Pose.WALK, Pose.STAND),
    "clapping": (Pose.CLAP,),
    "creating barricade": (Pose.PUSH_OBJECT,),
    "dancing": (Pose.DANCE,),
    "destroying": (Pose.PUNCH, Pose.THROW),
    "extinguishing fire": (Pose.PUSH_OBJECT,),
    "fighting": (Pose.PUNCH, Pose.SHOVE, Pose.KICK, Pose.FLINCH),
    "guarding": (Pose.STAND,),
    "hitting an object/smashing": (Pose.PUNCH,),
    "holding a burning stick": (Pose.STAND, Pose.WALK, Pose.RUN),
    "holding flag": (Pose.HOLD_FLAG,),
    "holding hands": (Pose.HOLD_HANDS,),
    "holding signage": (Pose.HOLD_SIGN,),
    "holding weapon": (Pose.THREATEN, Pose.AIM),
    "hugging": (Pose.HUG,),
    "injured": (Pose.LIE,),
    "kneeling": (Pose.KNEEL,),
    "painting": (Pose.PAINT,),
    "pinning": (Pose.KNEEL,),
    "playing instrument": (Pose.DRUM, Pose.TRUMPET, Pose.STRUM),
    "praying": (Pose.PRAY,),
    "pulling barricade": (Pose.PUSH_OBJECT,),
    "punching": (Pose.PUNCH,),
    "pushing": (Pose.SHOVE,),
    "raising fist": (Pose.WAVE,),
    "raising hands": (Pose.HANDS_UP,),
    "recording": (Pose.FILM,),
    "reporting live": (Pose.MICROPHONE,),
    "retreating": (Pose.FLINCH, Pose.WALK, Pose.STAND),
    "running/escaping": (Pose.RUN,),
    "shooting/firing": (Pose.AIM,),
    "shouting": (Pose.SHOUT,),
    "singing": (Pose.MICROPHONE, Pose.STAND),
    "speaking on stage": (Pose.MICROPHONE,),
    "speaking/talking": (Pose.PHONE, Pose.STAND, Pose.MICROPHONE),
    "spraying": (Pose.SPRAY,),
    "stealing/looting": (Pose.PUSH_OBJECT, Pose.KNEEL, Pose.STAND, Pose.WALK, Pose.RUN),
    "throwing object": (Pose.THROW,),
    "walking": (*_UPRIGHT, Pose.PUSH_OBJECT),
    "watching": (Pose.STAND, Pose.FILM),
    "waving flag": (Pose.HOLD_FLAG,),
    "waving flarestick": (Pose.STAND,),
    "waving hands": (Pose.WAVE,),
}
"""The official actions that occur, each with the poses that may show it."""

CODES: Mapping[str, int] = {name: ACTIONS_OFFICIAL.index(name) for name in DEEDS}
"""Place of an action in the official list."""

CYCLES_S: Mapping[Pose, float] = {
    Pose.STAND: 5.0,
    Pose.WAVE: 1.1,
    Pose.PUNCH: 0.95,
    Pose.SHOVE: 1.1,
    Pose.LIE: 5.0,
    Pose.FILM: 6.0,
    Pose.THROW: 1.6,
    Pose.HOLD_FLAG: 1.9,
    Pose.HOLD_SIGN: 1.8,
    Pose.KNEEL: 1.7,
    Pose.HUG: 4.5,
    Pose.ARGUE: 2.2,
    Pose.SHOUT: 1.8,
    Pose.PHONE: 5.0,
    Pose.CLAP: 0.95,
    Pose.FLINCH: 2.6,
    Pose.KICK: 1.2,
    Pose.THREATEN: 1.5,
    Pose.DANCE: 1.3,
    Pose.FALL: 1.6,
    Pose.HANDS_UP: 4.0,
    Pose.AIM: 4.0,
    Pose.SPRAY: 1.5,
    Pose.PAINT: 1.7,
    Pose.PRAY: 4.0,
    Pose.DRUM: 0.5,
    Pose.TRUMPET: 2.4,
    Pose.STRUM: 1.6,
    Pose.MICROPHONE: 2.2,
    Pose.HOLD_HANDS: 2.6,
    Pose.RAISE_CAN: 2.5,
}
"""Seconds in which the gait of somebody on one spot goes round."""
FLARE_S = 1.4
"""The same of somebody who swings a flare."""
RAISED = -0.5 * math.pi
"""Phase of a wave in which the arm points straight up, as a raised fist does."""
FRESH = (Pose.PUNCH, Pose.SHOVE, Pose.THROW, Pose.KICK, Pose.FALL)
"""Poses that begin at their beginning."""
MOVING = (*_UPRIGHT, Pose.RUN, Pose.PUSH_OBJECT)
"""Poses in which legs walk or run where somebody moves."""

CONTACT = ("fighting", "kicking", "pushing", "pulling", "grabbing", "holding onto", "hugging", "arresting")
"""Predicates that need arms to reach."""
REACH_M = 2.0
"""How far apart two may be while one does such a thing to the other."""
LEVELS: Mapping[str, float] = {
    "airhorn": 2.6,
    "arguing": 1.2,
    "booing": 1.5,
    "buzzing of walkie-talkie": 0.8,
    "chanting/cheering": 1.6,
    "clanking (of metal)": 2.0,
    "clapping": 0.8,
    "crashing": 3.0,
    "crying": 1.0,
    "explosion": 9.0,
    "flare": 0.8,
    "gunshot/firing": 5.0,
    "honking": 2.4,
    "motorcycle engine": 1.0,
    "playing drums": 1.8,
    "playing musical instruments": 1.0,
    "shattering": 2.5,
    "shouting": 1.8,
    "shouting for help": 2.0,
    "siren (ambulance)": 3.0,
    "siren (fire engine)": 3.0,
    "siren (police)": 3.0,
    "singing": 1.2,
    "sizzling": 0.7,
    "speaking": 0.4,
    "truck engine": 0.8,
    "trumpet": 1.6,
    "whistling": 1.3,
}
"""How loud sounds are at one metre; a voice raised is 1."""


Script = Iterator[None]
"""What somebody plays: it goes on by one frame each time it is asked."""
_SUBSTEP_S = 0.05


@dataclass(eq=False)
class Player:
    """One person of the crowd.

    Args:
        number: row in `Bodies`.
        model: of the person.
        size_m: length, width and height.
        look: seed of their looks.
        guard: whether they belong to the police.
        pose: what they do; None to stand, walk or run as they move.
        doing: official actions that hold in this frame.
        eyes: what they look at: somebody, or a place; None for straight on.
        flare: whether they hold a burning flare.
        lift: height above the ground, of who is carried.
        busy: whether they play in a scene.
        away: whether they have left for good.
        backward: whether they step back from what they face.
    """

    number: int
    model: str
    size_m: tuple[float, float, float]
    look: int
    guard: bool = False
    pose: Pose | None = None
    doing: tuple[str, ...] = ()
    eyes: Player | Floats | None = None
    flare: bool = False
    lift: float = 0.0
    busy: bool = False
    away: bool = False
    backward: bool = False


@dataclass(eq=False)
class Thing:
    """Something that is used, burns or stands by.

    Args:
        kind: as of actors.
        model: of its kind.
        size_m: length, width and height.
        look: seed of its details.
        xy: (2,) where it is, in the metres of the ground.
        heading: of its front.
        z: height of its underside above the ground.
        lamps: that are lit.
        active: whether it counts as an agent.
        here: whether it is in the scene.
        track: (frame, x, y, heading, z) of each frame in which it was.
        pushed_by: number of who pushed or carried it first.
    """

    kind: str
    model: str
    size_m: tuple[float, float, float]
    look: int
    xy: Floats
    heading: float
    z: float = 0.0
    lamps: int = 0
    active: bool = False
    here: bool = True
    track: list[tuple[int, float, float, float, float]] = field(default_factory=list)
    pushed_by: int | None = None


@dataclass(eq=False)
class Notes:
    """Record of a scene frame by frame; n people, F frames.

    Args:
        xy: (F, n, 2) local metres.
        heading: (F, n).
        gaze: (F, n).
        lift: (F, n).
        pose: (F, n), -1 where it follows from how they move.
        doing: (F, n) bits of the official actions.
        flare: (F, n).
        here: (F, n).
        bonds: subject, predicate and object to frames.
        noises: label, and person or thing, to frames.
    """

    xy: Floats
    heading: Floats
    gaze: Floats
    lift: Floats
    pose: np.ndarray[tuple[int, int], np.dtype[np.int8]]
    doing: np.ndarray[tuple[int, int], np.dtype[np.int64]]
    flare: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    here: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    bonds: dict[tuple[int, str, int], list[int]] = field(default_factory=dict)
    noises: dict[tuple[str, str, int], list[int]] = field(default_factory=dict)


class Play:
    """A crowd in a street while it is played; `level` is how deep the water is.

    Args:
        ground: the street.
        players: the crowd.
        n_frames: of the scene.
        fps: frames per second.
        rng: where chance comes from.
        posts: (m, 3) x, y and radius of what stands in the way for good.
    """

    def __init__(
        self,
        ground: Ground,
        players: list[Player],
        n_frames: int,
        fps: float,
        rng: np.random.Generator,
        posts: Floats,
    ) -> None:
        n = len(players)
        self.ground, self.players, self.rng = ground, players, rng
        self.n_frames, self.fps, self.frame = n_frames, fps, 0
        self.things: list[Thing] = []
        self.posts = posts
        self.level = 0.0
        self.alarm: Floats | None = None
        self.focus: list[Player] = []
        low, high = np.array([-12.0, ground.right_m]), np.array([60.0, ground.left_m])
        self.bodies = Bodies(n, low, high, posts)
        shape = (n_frames, n)
        self.notes = Notes(
            np.zeros((*shape, 2)), np.zeros(shape), np.zeros(shape), np.zeros(shape),
            np.full(shape, -1, dtype=np.int8), np.zeros(shape, dtype=np.int64),
            np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_),
        )  # fmt: skip

    @property
    def left_s(self) -> float:
        """Seconds until the scene ends."""
        return (self.n_frames - self.frame) / self.fps

    def draw(self, low: float, high: float) -> float:
        """A number between two, by chance."""
        return float(self.rng.uniform(low, high))

    def chance(self, share: float) -> bool:
        """Whether something happens that happens this often."""
        return bool(self.rng.random() < share)

    # Where people are and go.

    def at(self, who: Player) -> Floats:
        """(2,) where somebody is."""
        found: Floats = self.bodies.xy[who.number]
        return found

    def place(self, who: Player, xy: Floats, heading: float | None = None) -> None:
        """Put somebody on the street who was not there."""
        k = who.number
        self.bodies.xy[k] = self.bodies.goal[k] = xy
        self.bodies.velocity[k] = 0.0
        self.bodies.here[k] = True
        if heading is not None:
            self.bodies.heading[k] = heading

    def gap(self, one: Player, other: Player) -> float:
        """Metres between two."""
        (x, y), (u, v) = self.bodies.xy[one.number].tolist(), self.bodies.xy[other.number].tolist()
        return math.hypot(u - x, v - y)

    def bearing(self, who: Player, target: Player | Floats) -> float:
        """The heading that leads somebody to a person or place."""
        x, y = self.bodies.xy[who.number].tolist()
        u, v = (self.at(target) if isinstance(target, Player) else target).tolist()
        return math.atan2(v - y, u - x)

    def go(self, who: Player, goal: Floats, pace: float, face: Player | Floats | None = None) -> None:
        """Let somebody move to a place, facing where they go or something else."""
        k = who.number
        self.bodies.goal[k] = goal
        self.bodies.pace[k] = pace
        self.bodies.face[k] = np.nan if face is None else self.bearing(who, face)

    def halt(self, who: Player, face: Player | Floats | None = None) -> None:
        """Let somebody stand where they are."""
        self.go(who, self.at(who).copy(), 0.0, face)

    def root(self, who: Player, rooted: bool) -> None:
        """Whether nobody can push somebody aside."""
        self.bodies.rooted[who.number] = rooted

    # What they do.

    def act(self, who: Player, pose: Pose | None, *doing: str) -> None:
        """Let somebody do something from now on."""
        who.pose, who.doing = pose, doing

    def rest(self, who: Player) -> None:
        """Let somebody do nothing in particular, at their own height, moved by whoever comes."""
        self.act(who, None)
        who.flare, who.lift, who.eyes, who.backward = False, 0.0, None, False
        k = who.number
        self.root(who, False)
        self.bodies.wide[k] = 0.0
        self.bodies.face[k] = np.nan
        self.bodies.pace[k] = 0.0

    def bond(self, subject: Player, predicate: str, other: Player) -> None:
        """Note what one does to another in this frame."""
        key = (subject.number, predicate, other.number)
        self.notes.bonds.setdefault(key, []).append(self.frame)

    def noise(self, label: str, source: Player | Thing) -> None:
        """Note that somebody or something is heard in this frame."""
        if isinstance(source, Player):
            key = (label, "person", source.number)
        else:
            key = (label, "thing", self.things.index(source))
        self.notes.noises.setdefault(key, []).append(self.frame)

    # Time.

    def wait(self, seconds: float) -> Script:
        """Go on after some time."""
        for _ in range(max(1, round(seconds * self.fps))):
            yield

    def note(self) -> None:
        """Write down the frame at hand."""
        notes, bodies, f = self.notes, self.bodies, self.frame
        notes.xy[f], notes.heading[f], notes.here[f] = bodies.xy, bodies.heading, bodies.here
        for who in self.players:
            k = who.number
            notes.pose[f, k] = -1 if who.pose is None else who.pose
            notes.doing[f, k] = sum(1 << CODES[name] for name in who.doing)
            notes.flare[f, k], notes.lift[f, k] = who.flare, who.lift
            if who.eyes is not None and bodies.here[k]:
                turn = self.bearing(who, who.eyes) - float(bodies.heading[k])
                notes.gaze[f, k] = np.clip((turn + np.pi) % (2 * np.pi) - np.pi, -1.2, 1.2)
        for thing in self.things:
            if thing.here:
                x, y = thing.xy.tolist()
                thing.track.append((f, x, y, thing.heading, thing.z))

    def _block(self) -> None:
        """Let bins, barriers and fires be in the way, wherever they are now."""
        rows: list[tuple[float, float, float]] = []
        owner = [-1] * len(self.posts)
        for thing in self.things:
            stops = thing.kind in ("dustbin", "barrier", "debris") and thing.model not in GROUND_MODELS
            if thing.here and stops:
                turn, half = thing.heading + math.pi / 2, max(0.0, thing.size_m[1] / 2 - 0.3)
                x, y = thing.xy.tolist()
                for share in (-half, 0.0, half) if half > 0.2 else (0.0,):
                    rows.append((x + share * math.cos(turn), y + share * math.sin(turn), 0.3))
                    owner.append(-1 if thing.pushed_by is None else thing.pushed_by)
        moved = np.array(rows, dtype=np.float64).reshape(-1, 3)
        self.bodies.block(np.concatenate([self.posts, moved]), np.array(owner, dtype=np.int64))

    def step(self) -> None:
        """Go on to the next frame."""
        self._block()
        parts = max(1, math.ceil(1.0 / (self.fps * _SUBSTEP_S)))
        for _ in range(parts):
            self.bodies.step(1.0 / (self.fps * parts))
        self.frame += 1
