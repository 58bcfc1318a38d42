"""The mesh and joints of a person or rider in one frame: bones from a pose, what does not change from
frame to frame, and the person in words as a witness could give them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np

from roadaware.arrays import Bytes, Floats, Floats32, Ints32
from roadaware.errors import UsageError
from roadaware.simulator.actors import Actor, Pose
from roadaware.simulator.mesh import Material, Mesh, Semantic
from roadaware.simulator.people import skeleton as place
from roadaware.simulator.people.acts import compute_pose
from roadaware.simulator.people.clothes import (
    Colour,
    Outfit,
    Piece,
    Ring,
    build_clothed_body,
    loft,
    sample_outfit,
    slab,
)
from roadaware.simulator.people.skeleton import (
    BONES,
    CLOTH_FAR,
    CLOTH_M,
    CLOTH_NEAR,
    FOOT,
    FOREARM,
    HEAD,
    HELD,
    LEFT,
    RIGHT,
    SHIN,
    THIGH,
    UPPER_ARM,
    Saddle,
    Stature,
    apply_idle_habit,
    apply_kerb_stance,
    compute_stride,
    extend_arm,
    get_age_group,
    get_body_type,
    get_saddle,
    get_stature,
    ride,
    set_hand,
)

# Things carried: flags, signs, phones, stones, flares, umbrellas, bags and sticks, as a hand holds them.


Item = Literal[
    "", "phone", "screen", "flag", "sign", "stone", "flare", "umbrella", "stick", "shopping", "club",
    "gun", "fired gun", "can", "brush", "drum", "trumpet", "guitar", "microphone",
]  # fmt: skip
_WOOD: Colour = (0.30, 0.19, 0.10)
_DARK: Colour = (0.012, 0.012, 0.014)
_PAPER: Colour = (0.80, 0.79, 0.74)
_BONE = {HELD: 1.0}


def build_carried_item(item: Item, body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    """The pieces of what somebody holds, around the origin of the hand.

    Args:
        item: what; "" for nothing.
        body: lengths of the bones.
        outfit: its colours.
        coarse: whether a few triangles are enough.
    """
    makers: dict[str, Callable[[Stature, Outfit, bool], list[Piece]]] = {
        "phone": _phone,
        "screen": _screen,
        "flag": _flag,
        "sign": _sign,
        "stone": _stone,
        "flare": _flare,
        "umbrella": _umbrella,
        "stick": _stick,
        "shopping": _shopping,
        "club": _club,
        "gun": _gun,
        "fired gun": lambda *held: [*_gun(*held), _flash(*held)],
        "can": _can,
        "brush": _brush,
        "drum": _drum,
        "trumpet": _trumpet,
        "guitar": _guitar,
        "microphone": _microphone,
    }
    return makers[item](body, outfit, coarse) if item else []


def _rod(low: float, high: float, radius: float, colour: Colour, x: float = 0.0) -> Piece:
    rings = [(x, 0.0, z, radius, radius, _BONE) for z in (low, high)]
    return loft(rings, [colour], 3, Material.MATT, closed=(False, False))


def _column(rows: Sequence[tuple[float, float, float]], coarse: bool) -> list[Ring]:
    """Rings round the hand's upright: height and radii; from far away the first and last are enough."""
    rings: list[Ring] = [(0.0, 0.0, z, rx, ry, _BONE) for z, rx, ry in rows]
    return [rings[0], rings[-1]] if coarse else rings


def _board(
    wide: float, high: float, z: float, colour: Colour, material: Material, x: float, thick: float, rim: bool
) -> Piece:
    y, low, top = wide / 2, z - high / 2, z + high / 2
    corners = np.array([(x, -y, low), (x, y, low), (x, y, top), (x, -y, top)])
    return slab(corners, (-thick, 0.0, 0.0), [_BONE] * 4, colour, material, rim)


def _phone(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, outfit
    corners = np.array(
        [(-0.04, 0.035, -0.05), (0.035, 0.035, -0.05), (0.035, 0.035, 0.1), (-0.04, 0.035, 0.1)]
    )
    return [slab(corners[::-1], (0.0, -0.014, 0.0), [_BONE] * 4, _DARK, Material.GLOSSY, not coarse)]


def _screen(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, outfit
    return [_board(0.21, 0.11, 0.06, _DARK, Material.GLOSSY, 0.03, 0.014, not coarse)]


def _flag(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body
    top, low, middle = 1.55, 0.93, -CLOTH_M / 2
    near, bend, far = {CLOTH_NEAR: 1.0}, {CLOTH_NEAR: 0.5, CLOTH_FAR: 0.5}, {CLOTH_FAR: 1.0}
    pieces = [_rod(-0.55, top + 0.05, 0.018, _WOOD)]
    for x0, x1, start, end in ((0.0, middle, near, bend), (middle, -CLOTH_M, bend, far)):
        bones = [start, start, end, end]
        corners = np.array([(x0, 0.0, low), (x0, 0.0, top), (x1, 0.0, top), (x1, 0.0, low)])
        pieces.append(slab(corners, (0.0, 0.006, 0.0), bones, outfit.hat_colour, Material.CLOTH, rim=False))
        if not coarse:
            stripe = corners - (0.0, 0.008, 0.0)
            stripe[[0, 3], 2], stripe[[1, 2], 2] = low + 0.21, low + 0.41
            pieces.append(slab(stripe, (0.0, 0.022, 0.0), bones, _PAPER, Material.CLOTH, rim=False))
    return pieces


def _sign(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body
    board = _board(0.72, 0.5, 0.62, _PAPER, Material.MATT, 0.01, 0.02, not coarse)
    pieces = [_rod(-0.3, 0.55, 0.016, _WOOD, -0.02), board]
    if coarse:
        return pieces
    for z, wide in ((0.76, 0.56), (0.62, 0.44), (0.48, 0.52)):
        colour = outfit.bag_colour if z == 0.62 else _DARK
        pieces.append(_board(wide, 0.09, z, colour, Material.MATT, 0.016, 0.034, rim=False))
    return pieces


def _stone(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, outfit
    rings = _column(((-0.05, 0.03, 0.03), (0.0, 0.055, 0.05), (0.05, 0.03, 0.03)), coarse)
    return [loft(rings, [(0.2, 0.19, 0.18)], 4 if coarse else 5, Material.MATT)]


def _flare(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, outfit
    flame = _column(((0.22, 0.03, 0.03), (0.34, 0.075, 0.075), (0.52, 0.012, 0.012)), coarse)
    fire = loft(flame, [(1.0, 0.35, 0.2), (1.0, 0.6, 0.3)], 3 if coarse else 6, Material.LAMP, glow=4.0)
    return [_rod(-0.08, 0.24, 0.018, (0.45, 0.05, 0.04)), fire]


def _umbrella(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    low = 0.33 * body.height
    rings = _column(((low, 0.56, 0.56), (low + 0.13, 0.4, 0.4), (low + 0.22, 0.03, 0.03)), coarse)
    roof = loft(rings, [outfit.hat_colour], 5 if coarse else 8, closed=(True, not coarse))
    return [_rod(-0.06, low + 0.2, 0.01, _DARK), roof]


def _stick(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del outfit, coarse
    return [_rod(-0.44 * body.height, 0.0, 0.014, _WOOD)]


def _club(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del outfit
    size = body.body
    rows = ((-0.12 * size, 0.017, 0.017), (0.2 * size, 0.021, 0.021), (0.56 * size, 0.034, 0.034))
    return [loft(_column(rows, coarse), [_WOOD], 4, Material.MATT)]


def _shopping(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    size = body.body
    rows = ((-0.27 * size, 0.1 * size, 0.05 * size), (-0.06 * size, 0.085 * size, 0.025 * size))
    bag = loft(_column(rows, coarse), [outfit.bag_colour], 4, closed=(not coarse, not coarse))
    handle = _column(((-0.06 * size, 0.05 * size, 0.006), (0.0, 0.015 * size, 0.006)), coarse)
    return [bag] if coarse else [bag, loft(handle, [outfit.bag_colour], 3, closed=(False, False))]


def _bar(
    x0: float, x1: float, z: float, wide: float, high: float, colour: Colour, material: Material
) -> Piece:
    """A bar along the way that the hand points, from x0 to x1."""
    corners = np.array([(x0, wide / 2, z - high / 2), (x1, wide / 2, z - high / 2), (x1, wide / 2, z + high / 2),
                        (x0, wide / 2, z + high / 2)])  # fmt: skip
    return slab(corners[::-1], (0.0, -wide, 0.0), [_BONE] * 4, colour, material, True)


def _gun(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, outfit, coarse
    barrel = _bar(-0.12, 0.68, 0.06, 0.03, 0.035, _DARK, Material.GLOSSY)
    return [barrel, _bar(-0.34, 0.02, 0.03, 0.045, 0.1, _WOOD, Material.MATT)]


def _flash(body: Stature, outfit: Outfit, coarse: bool) -> Piece:
    """The flash before the muzzle of a gun that is fired."""
    del body, outfit
    rings: list[Ring] = [(0.74, 0.0, z, r, r, _BONE) for z, r in ((-0.06, 0.02), (0.06, 0.1), (0.18, 0.02))]
    fire: list[Colour] = [(1.0, 0.75, 0.35)]
    return loft(rings, fire, 3 if coarse else 5, Material.LAMP, glow=5.0)


def _can(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body
    rows = ((-0.06, 0.032, 0.032), (0.11, 0.032, 0.032), (0.15, 0.012, 0.012))
    return [loft(_column(rows, coarse), [outfit.bag_colour], 4 if coarse else 6, Material.GLOSSY)]


def _brush(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, coarse
    return [
        _rod(-0.1, 0.18, 0.012, _WOOD),
        _board(0.1, 0.08, 0.22, outfit.hat_colour, Material.MATT, 0.01, 0.02, True),
    ]


def _drum(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body
    sides = 5 if coarse else 10
    skin: list[Ring] = [(0.02, 0.2, z, 0.21, 0.21, _BONE) for z in (-0.34, -0.06)]
    return [loft(skin, [outfit.hat_colour], sides, Material.GLOSSY)]


def _trumpet(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, outfit
    brass: Colour = (0.62, 0.42, 0.1)
    pieces = [_bar(-0.28, 0.3, 0.03, 0.03, 0.03, brass, Material.GLOSSY)]
    if not coarse:
        pieces.append(_bar(-0.1, 0.16, -0.03, 0.03, 0.05, brass, Material.GLOSSY))
    bell = np.array([(0.3, 0.07, -0.04), (0.3, -0.07, -0.04), (0.3, -0.07, 0.1), (0.3, 0.07, 0.1)])
    return [*pieces, slab(bell, (0.03, 0.0, 0.0), [_BONE] * 4, brass, Material.GLOSSY, True)]


def _guitar(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, coarse
    pieces = []
    # Across the body: from the hand at the strings up to the hand at the neck.
    for y0, y1, high, colour in ((-0.2, 0.24, 0.34, outfit.bag_colour), (0.24, 0.78, 0.07, _WOOD)):
        z0, z1 = 0.28 * y0, 0.28 * y1
        corners = np.array([(0.05, y0, z0 - high / 2), (0.05, y1, z1 - high / 2), (0.05, y1, z1 + high / 2),
                            (0.05, y0, z0 + high / 2)])  # fmt: skip
        pieces.append(slab(corners, (-0.07, 0.0, 0.0), [_BONE] * 4, colour, Material.GLOSSY, True))
    return pieces


def _microphone(body: Stature, outfit: Outfit, coarse: bool) -> list[Piece]:
    del body, outfit
    rows = ((0.09, 0.03, 0.03), (0.13, 0.045, 0.045), (0.17, 0.03, 0.03))
    return [_rod(-0.08, 0.1, 0.016, _DARK), loft(_column(rows, coarse), [(0.1, 0.1, 0.11)], 5, Material.MATT)]


# Rigs: everything of a person that does not change from frame to frame, ready for the bones' transforms.


@dataclass(frozen=True, eq=False)
class Rig:
    """A body at rest.

    Args:
        weights: (v, 68) times the stacked transforms of the bones gives the vertices.
        triangles: (t, 3).
        colour: (t, 3).
        material: (t,).
        semantic: (t,).
        glow: (t,).
        uv: (t, 3, 2).
    """

    weights: Floats32
    triangles: Ints32
    colour: Floats32
    material: Bytes
    semantic: Bytes
    glow: Floats32
    uv: Floats32


@lru_cache(maxsize=256)
def build_rig(body: Stature, outfit: Outfit, item: Item, rides: bool, coarse: bool) -> Rig:
    """The rig of a person.

    Args:
        body: lengths of its bones.
        outfit: what is worn.
        item: what is held.
        rides: whether it counts as a rider.
        coarse: whether a few triangles are enough.
    """
    pieces = build_clothed_body(body, outfit, coarse)
    starts = _joints_at_rest(body)
    things = build_carried_item(item, body, outfit, coarse)
    weights = [_stack_points(piece.points, piece.weights, starts) for piece in (*pieces, *things)]
    pieces += things
    heads = np.cumsum([0, *(len(piece.points) for piece in pieces[:-1])])
    triangles = np.concatenate([piece.triangles + head for piece, head in zip(pieces, heads, strict=True)])
    count = len(triangles)
    return Rig(
        np.concatenate(weights).astype(np.float32),
        triangles.astype(np.int32),
        np.concatenate([piece.colour for piece in pieces]).astype(np.float32).clip(0.0, 1.0),
        np.concatenate([piece.material for piece in pieces]).astype(np.uint8),
        np.full(count, int(Semantic.RIDER if rides else Semantic.PERSON), dtype=np.uint8),
        np.concatenate([piece.glow for piece in pieces]).astype(np.float32),
        np.concatenate([piece.uv for piece in pieces]).astype(np.float32),
    )


@lru_cache(maxsize=256)
def build_joint_regressor(body: Stature) -> Floats:
    """(17, 68) times the stacked transforms of the bones gives the joints in COCO order."""
    rest, head, chin = body.rest, body.head, body.body
    x = float(rest[HEAD, 0]) + 0.1 * head
    points = np.zeros((17, 3))
    bones = [HEAD] * 5
    points[0] = x + 0.5 * head, 0.0, chin + 0.4 * head
    for side, sign in enumerate((1, -1)):
        points[1 + side] = x + 0.39 * head, sign * 0.14 * head, chin + 0.545 * head
        points[3 + side] = x - 0.02 * head, sign * 0.33 * head, chin + 0.5 * head
    for number, bone in enumerate((*UPPER_ARM, *FOREARM, *FOREARM, *THIGH, *SHIN, *FOOT)):
        points[5 + number] = rest[bone]
        bones.append(bone)
    points[9:11, 2] -= body.fore
    weights = np.zeros((17, len(BONES)))
    weights[np.arange(17), bones] = 1.0
    return _stack_points(points, weights, _joints_at_rest(body))


def _joints_at_rest(body: Stature) -> Floats:
    starts = body.rest.copy()
    starts[[HELD, CLOTH_NEAR, CLOTH_FAR]] = 0.0
    starts[CLOTH_FAR, 0] = -CLOTH_M / 2
    return starts


def _stack_points(points: Floats, weights: Floats, starts: Floats) -> Floats:
    local = np.ones((len(points), len(BONES), 4))
    local[:, :, :3] = points[:, None] - starts
    # Skinning as one product: all that depends on the pose is then the bones, stacked to a (68, 3) matrix.
    stacked: Floats = (local * weights[:, :, None]).reshape(len(points), -1)
    return stacked


BLEND_FRAMES = 6
"""Frames in which one pose goes over into the next."""
_ITEMS: dict[Pose, Item] = {
    Pose.FILM: "screen",
    Pose.PHONE: "phone",
    Pose.THROW: "stone",
    Pose.HOLD_FLAG: "flag",
    Pose.HOLD_SIGN: "sign",
    Pose.THREATEN: "club",
    Pose.AIM: "gun",
    Pose.SPRAY: "can",
    Pose.PAINT: "brush",
    Pose.DRUM: "drum",
    Pose.TRUMPET: "trumpet",
    Pose.STRUM: "guitar",
    Pose.MICROPHONE: "microphone",
    Pose.RAISE_CAN: "can",
}
_ON_BACK = (Pose.LIE, Pose.FALL)
_STROLLING = (Pose.STAND, Pose.WALK)


@dataclass(frozen=True, eq=False)
class Looks:
    """Constant appearance of a person.

    Args:
        body: lengths of the bones.
        outfit: what is worn.
        lying: what is worn while they fall or lie on the back, where a bag would sink into the ground.
        saddle: what a rider touches; None on foot.
    """

    body: Stature
    outfit: Outfit
    lying: Outfit
    saddle: Saddle | None


# Weak: what is kept of an actor goes with its scene, however many scenes a process makes.
_LOOKS: WeakKeyDictionary[Actor, Looks] = WeakKeyDictionary()
_BONES: WeakKeyDictionary[Actor, tuple[int, Floats]] = WeakKeyDictionary()


def build_body_mesh(actor: Actor, frame: int, coarse: bool = False, *, bare: bool = False) -> Mesh:
    """Mesh of a pedestrian, or the rider of a bicycle or motorbike, in the actor's axes.

    Args:
        actor: who.
        frame: of the scene.
        coarse: whether a few triangles are enough, for what is far away.
        bare: without what they hold.

    Raises:
        UsageError: the actor is not in the scene in this frame.
    """
    row = _row(actor, frame)
    looks = get_looks(actor)
    worn = looks.lying if actor.pose[row] in _ON_BACK and not is_rider(actor) else looks.outfit
    item: Item = "" if bare else select_item(actor, row)
    found = build_rig(looks.body, worn, item, looks.saddle is not None, coarse)
    vertices = found.weights @ _bones(actor, row).reshape(-1, 3).astype(np.float32)
    return Mesh(vertices, found.triangles, found.colour, found.material, found.semantic, found.glow, found.uv)


def prepare_poses(actors: Sequence[Actor], frame: int) -> None:
    """Work out the poses of several people at once, which `build_body_mesh` and `compute_joints` then find done.

    Raises:
        UsageError: one of them is not in the scene in this frame.
    """
    if actors:
        _pose(actors, [_row(actor, frame) for actor in actors])


def compute_joints(actor: Actor, frame: int) -> Floats:
    """(17, 3) world coordinates in metres: nose, eyes, ears, shoulders, elbows, wrists, hips, knees, ankles.

    Of pairs the left one comes first.

    Raises:
        UsageError: the actor is not in the scene in this frame.
    """
    row = _row(actor, frame)
    points = build_joint_regressor(get_looks(actor).body) @ _bones(actor, row).reshape(-1, 3)
    c, s = np.cos(actor.heading[row]), np.sin(actor.heading[row])
    world: Floats = points @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + actor.position[row]
    return world


def stride_m(actor: Actor, pose: int = Pose.WALK) -> float:
    """Metres that somebody moves while the gait goes on by 2 pi, that is in two steps.

    Args:
        actor: who; only kind, model, size, look and mind count.
        pose: `Pose.RUN` for running, else walking.
    """
    return compute_stride(actor.model, get_looks(actor).body.height, pose == Pose.RUN)


def is_rider(actor: Actor) -> bool:
    """Whether somebody sits on a bicycle or motorbike."""
    return actor.kind in ("Cyc", "Mobike")


def get_looks(actor: Actor) -> Looks:
    """Constant appearance of a person."""
    found = _LOOKS.get(actor)
    if found is None:
        worn = sample_outfit(
            actor.look,
            get_age_group(actor.model),
            get_body_type(actor),
            actor.kind if is_rider(actor) else "",
        )
        found = Looks(
            get_stature(actor),
            worn,
            replace(worn, bag="none"),
            get_saddle(actor) if is_rider(actor) else None,
        )
        _LOOKS[actor] = found
    return found


def select_item(actor: Actor, row: int) -> Item:
    """The object that a person holds in a row."""
    if is_rider(actor):
        return ""
    pose = Pose(int(actor.pose[row]))
    if pose == Pose.AIM and _has_fact(actor, "flare", row):
        return "fired gun"
    if pose in _ITEMS:
        return _ITEMS[pose]
    if _has_fact(actor, "flare", row):
        return "flare"
    if pose in _STROLLING:
        if _has_fact(actor, "umbrella", row):
            return "umbrella"
        worn = get_looks(actor).outfit
        return "stick" if worn.stick else "shopping" if worn.bag == "shopping" else ""
    return ""


def _row(actor: Actor, frame: int) -> int:
    row = actor.at(frame)
    if row is None:
        raise UsageError(
            f"actor {actor.number} is in the scene from frame {actor.first} to {actor.end}, not in {frame}"
        )
    return row


def _has_fact(actor: Actor, fact: str, row: int) -> bool:
    return fact in actor.facts and bool(actor.facts[fact][row])


def _bones(actor: Actor, row: int) -> Floats:
    """(17, 4, 3) transforms; those of the row asked for last are kept."""
    known = _BONES.get(actor)
    if known is None or known[0] != row:
        _pose([actor], [row])
        known = _BONES[actor]
    return known[1]


def _pose(actors: Sequence[Actor], rows: Sequence[int]) -> None:
    wishes = np.array([_blend_poses(actor, row) for actor, row in zip(actors, rows, strict=True)])
    bones = place.compute_bone_transforms(wishes, [get_looks(actor).body for actor in actors])
    for actor, row, found in zip(actors, rows, bones, strict=True):
        _BONES[actor] = (row, found)


def _blend_poses(actor: Actor, row: int) -> Floats:
    wish = _wish(actor, row)
    poses = actor.pose[max(0, row - BLEND_FRAMES + 1) : row + 1]
    changes = np.flatnonzero(poses[1:] != poses[:-1])
    if len(changes):
        since = len(poses) - 2 - int(changes[-1])
        share = (since + 1) / BLEND_FRAMES
        share *= share * (3.0 - 2.0 * share)
        before = _wish(actor, row - since - 1)
        size = wish[place.HELD_SIZE]
        wish = before + share * (wish - before)
        wish[place.HELD_SIZE] = size
    wish[place.HEAD_TURN.start] += actor.gaze[row]
    return wish


def _wish(actor: Actor, row: int) -> Floats:
    looks, gait, speed = get_looks(actor), float(actor.gait[row]), float(actor.speed[row])
    if looks.saddle is not None:
        # What a rider wants; cyclists hold out the arm of the side that they signal
        still = max(0.0, 1.0 - abs(float(actor.speed[row])))
        wish = ride(looks.body, looks.saddle, float(actor.gait[row]), still)
        for side, value in ((LEFT, 1), (RIGHT, -1)) if actor.kind == "Cyc" else ():
            share = _compute_ease_in(actor, "signals", value, row)
            if share > 0:
                extend_arm(wish, side, share)
        return wish
    pose = Pose(int(actor.pose[row]))
    wish = compute_pose(Pose.STAND if pose == Pose.RIDE else pose, looks.body, gait, speed)
    item = select_item(actor, row)
    if pose == Pose.STAND and actor.kind == "Ped":
        if not item:
            apply_idle_habit(wish, looks.body, actor.look % 5)
        apply_kerb_stance(wish, looks.body, _compute_ease_in(actor, "waiting", 1, row))
    if item == "umbrella":
        set_hand(wish, RIGHT, 0.42, -0.12, -0.12, (-0.5, 0.3, -1.0))
        wish[place.HELD_TURN] = 0.0, -0.12, 0.0
    elif item == "stick":
        set_hand(wish, RIGHT, 0.3 + 0.2 * wish[place.HANDS[1]][0], 0.12, -0.78, (-1.0, 0.3, -0.2))
    elif item == "flare" and pose not in (Pose.RUN, Pose.LIE):
        set_hand(wish, RIGHT, 0.3, 0.1 + 0.2 * float(np.sin(gait)), 0.88, (-0.1, 0.8, -0.6))
    return wish


def _compute_ease_in(actor: Actor, fact: str, value: int, row: int) -> float:
    """How far something has begun: from 0 to 1 over the frames of a blend after the fact took a value."""
    if fact not in actor.facts:
        return 0.0
    share = float((actor.facts[fact][max(0, row - BLEND_FRAMES + 1) : row + 1] == value).mean())
    return share * share * (3.0 - 2.0 * share)


_ITEM_NAMES = {
    "phone": "a phone",
    "screen": "a phone",
    "flag": "a flag",
    "sign": "a sign",
    "stone": "a stone",
    "flare": "a flare",
    "umbrella": "an umbrella",
    "stick": "a walking stick",
    "shopping": "a shopping bag",
    "club": "a club",
    "gun": "a gun",
    "fired gun": "a gun",
    "can": "a can",
    "brush": "a brush",
    "drum": "a drum",
    "trumpet": "a trumpet",
    "guitar": "a guitar",
    "microphone": "a microphone",
}
_BAG_NAMES = {"backpack": "a backpack", "handbag": "a handbag"}
_HAT_NAMES = {
    "cap": "a cap",
    "woolly": "a woolly hat",
    "brimmed": "a hat",
    "helmet": "a helmet",
    "visor": "a helmet",
}
_TOP_NAMES = {
    "shirt": "a shirt",
    "t-shirt": "a T-shirt",
    "hoodie": "a hoodie",
    "jacket": "a jacket",
    "coat": "a long coat",
    "dress": "a dress",
}


def describe_appearance(actor: Actor, frame: int) -> dict[str, str]:
    """Visible attributes of a person; keys that do not apply are left out.

    Returns:
        pose, age, top, and where they apply bottom, hat, bag, vest, holds and looks (left or right, from
        where the body points).
    """
    row = actor.at(frame)
    if row is None:
        return {}
    outfit = get_looks(actor).outfit
    record = {
        "pose": "ride" if is_rider(actor) else Pose(int(actor.pose[row])).name.lower(),
        "age": get_age_group(actor.model),
        "top": _TOP_NAMES[outfit.top],
    }
    if outfit.top != "dress":
        record["bottom"] = "a skirt" if outfit.bottom == "skirt" else outfit.bottom
    if outfit.hood or outfit.hat != "none":
        record["hat"] = "a hood" if outfit.hood else _HAT_NAMES[outfit.hat]
    if outfit.bag in _BAG_NAMES:
        record["bag"] = _BAG_NAMES[outfit.bag]
    if outfit.vest:
        record["vest"] = "a high-visibility vest"
    item = select_item(actor, row)
    if item:
        record["holds"] = _ITEM_NAMES[item]
    if abs(float(actor.gaze[row])) > 0.3:
        record["looks"] = "left" if actor.gaze[row] > 0 else "right"
    return record
