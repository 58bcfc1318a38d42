"""Labels: which of ROAD's actions somebody does, a row for each frame of everybody who can be seen, and what
each box is by the definitions of ROAD, PIE, JAAD and CODA.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Ints
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes
from roadaware.simulator.actors import AGENTS, OBJECTS, Actor, Lamp, Light, Pose, Signal
from roadaware.simulator.episode import Episode
from roadaware.simulator.mesh import MOUNT_M
from roadaware.simulator.town import On, Where
from roadaware.simulator.truth import terms
from roadaware.simulator.truth.seen import Seen
from roadaware.simulator.truth.terms import (
    ACTIONS,
    NOWHERE,
    Places,
    View,
    compute_view,
    fill_short_gaps,
    filter_short_runs,
)

STILL_MPS = 0.3
_BRAKING_MPS2 = 0.3
_STEADY_S = 0.25
_BLINK_S = 0.6
"""Indicators that are dark for no longer than this still blink."""
_ACROSS = np.tan(np.radians(60.0))
"""Who moves more than so much sideways for each metre along moves across."""
_CODE = {name: code for code, name in enumerate(ACTIONS)}
_STREET = (On.ROAD, On.JUNCTION, On.CROSSING, On.PARKING)


def label_actions(
    actor: Actor, view: View, where: Where, along: npt.NDArray[np.float64], fps: float
) -> Bools:
    """(n, 23) which actions an actor does in each of its rows.

    One of them is how it moves; braking, indicating, hazard lights and pushing an object come on top.

    Args:
        actor: of the scene.
        view: of it.
        where: what lies under it.
        along: (n,) direction of the traffic where it is, in radians.
        fps: frames per second.
    """
    moves = (
        _on_foot(actor, view, where, along) if actor.kind == "Ped" else _driving(actor, view, where, along)
    )
    # Before lamps are added: they blink, and have a filter of their own.
    moves = filter_short_runs(moves, max(1, round(_STEADY_S * fps)))
    found = moves[:, None] == np.arange(len(ACTIONS))
    if actor.kind == "Ped":
        found[:, _CODE["PushObj"]] = _fact(actor, "pushing") != 0
        found[:, _CODE["PushObj"]] |= actor.pose == Pose.PUSH_OBJECT
    else:
        _lamps(found, actor, view, fps)
    done: Bools = found
    return done


def _on_foot(actor: Actor, view: View, where: Where, along: npt.NDArray[np.float64]) -> Ints:
    still = np.abs(actor.speed) < STILL_MPS
    moves = np.where(still, _CODE["Stop"], _passing(view, along))
    waits = (_fact(actor, "waiting") != 0) & still
    moves[waits] = _CODE["Wait2X"]
    crosses: Bools = np.isin(where.on, _STREET) & (where.height_m == 0) & (np.abs(actor.speed) >= STILL_MPS)
    if "crossing" in actor.facts:
        crosses = np.asarray(_fact(actor, "crossing") != 0)
    done: Ints = np.where(crosses, _from_side(actor, view, crosses), moves)
    return done


def _driving(actor: Actor, view: View, where: Where, along: npt.NDArray[np.float64]) -> Ints:
    turning, shifting = _fact(actor, "turning"), _fact(actor, "shifting")
    moves = _passing(view, along)
    junction = np.isin(where.on, (On.JUNCTION, On.CROSSING)) & (where.junction >= 0)
    across = junction & (np.abs(view.leftward) > np.abs(view.forward))
    moves[across] = np.where(view.leftward[across] < 0, _CODE["XingFmLft"], _CODE["XingFmRht"])
    crosses = _fact(actor, "crossing") != 0
    if actor.kind == "Cyc" and crosses.any():
        moves = np.where(crosses, _from_side(actor, view, crosses), moves)
    # Later ones win: who stands neither turns nor overtakes, whatever was begun.
    for flag, name in (
        (turning > 0, "TurLft"),
        (turning < 0, "TurRht"),
        (shifting > 0, "MovLft"),
        (shifting < 0, "MovRht"),
        (_fact(actor, "overtaking") != 0, "Ovtak"),
        (actor.speed < -STILL_MPS / 2, "Rev"),
        (np.abs(actor.speed) < STILL_MPS / 2, "Stop"),
    ):
        moves[flag] = _CODE[name]
    return moves


def _passing(view: View, along: npt.NDArray[np.float64]) -> Ints:
    """(n,) moving away, towards, or across the flow of traffic."""
    forth = view.velocity[:, 0] * np.cos(along) + view.velocity[:, 1] * np.sin(along)
    across = view.velocity[:, 1] * np.cos(along) - view.velocity[:, 0] * np.sin(along)
    moves = np.where(view.away > 0, _CODE["MovAway"], _CODE["MovTow"])
    moves[np.abs(across) > _ACROSS * np.abs(forth)] = _CODE["Mov"]
    return moves.astype(np.int64)


def _from_side(actor: Actor, view: View, crosses: Bools) -> Ints:
    """(n,) from which side a road is crossed, by where each crossing leads; `Xing` across a side road."""
    found = np.full(len(crosses), _CODE["Xing"], dtype=np.int64)
    starts = np.flatnonzero(crosses & ~np.append(False, crosses[:-1]))
    ends = np.flatnonzero(crosses & ~np.append(crosses[1:], False)) + 1
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        way = actor.position[end - 1, :2] - actor.position[start, :2]
        # Too short a way to tell a direction: where the body points.
        if np.hypot(*way) < 0.5:
            way = np.array([np.cos(actor.heading[start]), np.sin(actor.heading[start])])
        heading = view.heading[start:end]
        forth = way[0] * np.cos(heading) + way[1] * np.sin(heading)
        left = way[1] * np.cos(heading) - way[0] * np.sin(heading)
        side = np.where(left < 0, _CODE["XingFmLft"], _CODE["XingFmRht"])
        found[start:end] = np.where(np.abs(left) >= np.abs(forth), side, _CODE["Xing"])
    return found


def _lamps(found: Bools, actor: Actor, view: View, fps: float) -> None:
    """Braking, where the rear lamps can be seen; indicators also in the dark moments between two flashes.

    Cyclists have no indicators: they hold out an arm.
    """
    if actor.kind == "Cyc":
        found[:, _CODE["IncatLft"]] = _fact(actor, "signals") == 1
        found[:, _CODE["IncatRht"]] = _fact(actor, "signals") == -1
        return
    lamps = actor.lamps
    slower = np.gradient(actor.speed) * fps < -_BRAKING_MPS2 if len(actor.speed) > 1 else lamps < 0
    found[:, _CODE["Brake"]] = (lamps & Lamp.BRAKE > 0) & (actor.speed > STILL_MPS) & slower & view.faces_away
    gap = max(1, round(_BLINK_S * fps))
    both = fill_short_gaps((lamps & Lamp.LEFT > 0) & (lamps & Lamp.RIGHT > 0), gap)
    found[:, _CODE["HazLit"]] = both
    found[:, _CODE["IncatLft"]] = fill_short_gaps(lamps & Lamp.LEFT > 0, gap) & ~both
    found[:, _CODE["IncatRht"]] = fill_short_gaps(lamps & Lamp.RIGHT > 0, gap) & ~both


def _fact(actor: Actor, name: str) -> npt.NDArray[np.int8]:
    """(n,) what the behaviour knows, 0 where it knows nothing."""
    held = actor.facts.get(name)
    return np.zeros(len(actor.heading), dtype=np.int8) if held is None else held


_PEOPLE = ("Ped", "Cyc", "Mobike")
_LOOKS = np.radians(45.0)
_FACING = np.cos(np.radians(75.0))
"""From more aside than this nobody can tell what a traffic light shows."""
_PART, _FULL = 0.25, 0.75


@dataclass(frozen=True, eq=False)
class Held:
    """What the labels of one actor's boxes are drawn from.

    Args:
        rows: (m,) rows of `Seen` with a box.
        at: (m,) rows of the actor.
        actor: who.
        view: of them.
    """

    rows: Ints
    at: Ints
    actor: Actor
    view: View


def select_labelled_rows(episode: Episode, seen: Seen) -> Seen:
    """The rows of what gets a box: near, seen well enough, and active, a corner case, or a lit face."""
    wanted = np.array(
        [_is_labelled(episode, actor) for actor in episode.actors] + [True] * len(episode.signals)
    )
    kept = seen.enough & seen.near(episode.config.camera.height_px)
    kept &= wanted[seen.instance] if len(wanted) else True
    # Signals are numbered after all actors.
    lights = np.flatnonzero(kept & (seen.instance >= len(episode.actors)))
    for row in lights:
        signal = episode.signals[int(seen.instance[row]) - len(episode.actors)]
        frame = int(seen.frame[row])
        line = episode.ego.position[frame, :2] - signal.position[:2]
        face = np.cos(signal.heading) * line[0] + np.sin(signal.heading) * line[1]
        kept[row] = bool(face > _FACING * np.hypot(*line))
    return seen.rows(kept)


def _is_labelled(episode: Episode, actor: Actor) -> bool:
    """Things count as corner cases alone; what people push along elsewhere is a part of what they do.

    In staged scenes whatever is heard has a box too, since maps of sounds are held against boxes.
    """
    if episode.config.staging is not None and any(noise.actor == actor.number for noise in episode.noises):
        return True
    return actor.active and (actor.kind in AGENTS or episode.config.preset == "corner-cases")


def collect_boxed_actors(episode: Episode, seen: Seen) -> list[Held]:
    """Class of each actor with boxes, in the order of their numbers."""
    found = []
    for number in np.unique(seen.instance[seen.instance < len(episode.actors)]).tolist():
        actor = episode.actors[number]
        rows = np.flatnonzero(seen.instance == number)
        found.append(Held(rows, seen.frame[rows] - actor.first, actor, compute_view(actor, episode.ego)))
    return found


def build_boxes_table(episode: Episode, seen: Seen, held: list[Held], tube: Ints) -> pl.DataFrame:
    """The `boxes` table, by frame and number.

    Args:
        episode: the scene.
        seen: (m,) rows with a box.
        held: what the actors are.
        tube: (m,) tube of each row.
    """
    hidden = 1.0 - seen.share
    occlusion = np.where(hidden < _PART, 0, np.where(hidden < _FULL, 1, 2))
    visible = {f"visible_{name}": seen.visible[:, k] for k, name in enumerate(CORNERS)}
    # What somebody holds tells what they do: of staged crowds the box is that of the body.
    corners = seen.full if seen.bodies is None else seen.bodies
    shapes = (
        {}
        if episode.config.staging is None
        else {f"shape_{n}": seen.full[:, k] for k, n in enumerate(CORNERS)}
    )
    objects = np.zeros(len(seen), dtype=bool)
    for each in held:
        objects[each.rows] = each.actor.kind in OBJECTS
    heading = episode.ego.heading[seen.frame]
    eye = episode.ego.position[seen.frame, :2] + MOUNT_M * np.stack(
        [np.cos(heading), np.sin(heading)], axis=1
    )
    # (m, 2) where each is.
    place = np.zeros((len(seen), 2))
    for number in np.unique(seen.instance).tolist():
        rows = seen.instance == number
        if number < len(episode.actors):
            actor = episode.actors[number]
            place[rows] = actor.position[seen.frame[rows] - actor.first, :2]
        else:
            place[rows] = episode.signals[number - len(episode.actors)].position[:2]
    return pl.DataFrame(
        {
            "box": np.arange(len(seen), dtype=np.int64),
            "video": pl.Series([episode.name], dtype=pl.String).new_from_index(0, len(seen)),
            "frame": seen.frame,
            "tube": tube,
            **{name: corners[:, k] for k, name in enumerate(CORNERS)},
            **shapes,
            "occlusion": _words(occlusion, terms.OCCLUSION),
            **visible,
            "visible_share": seen.share.astype(np.float32),
            "distance_m": np.hypot(*(place - eye).T).astype(np.float32),
            **_manners(episode, seen, held),
            "corner_case": objects,
            "joints": pl.Series(seen.joints.reshape(-1, 51), dtype=pl.Array(pl.Float32, 51)),
        }
    ).with_columns(joints=pl.when(pl.Series(np.isfinite(seen.joints).all((1, 2)))).then(pl.col("joints")))


def _words(codes: Ints, words: tuple[str, ...]) -> pl.Series:
    """Codes as words, null below 0."""
    series = pl.Series(list(words), dtype=pl.Enum(words))
    return series.gather(pl.Series(np.where(codes < 0, 0, codes))).set(pl.Series(codes < 0), None)


def _manners(episode: Episode, seen: Seen, held: list[Held]) -> dict[str, pl.Series]:
    """What people do and where they look; null for the others."""
    codes = {name: np.full(len(seen), -1, dtype=np.int64) for name in ("action", "look", "cross", "pose")}
    pushing: list[bool | None] = [None] * len(seen)
    for each in held:
        actor, at = each.actor, each.at
        if actor.kind in _PEOPLE:
            codes["pose"][each.rows] = actor.pose[at]
        if actor.kind != "Ped":
            continue
        codes["action"][each.rows] = np.abs(actor.speed[at]) >= STILL_MPS
        codes["look"][each.rows] = is_looking(actor, each.view)[at]
        steps = actor.facts.get("crossing")
        codes["cross"][each.rows] = 0 if steps is None else steps[at] != 0
        pushed = actor.facts.get("pushing")
        held_on = (actor.pose[at] == Pose.PUSH_OBJECT) | (False if pushed is None else pushed[at] != 0)
        for row, value in zip(each.rows.tolist(), held_on.tolist(), strict=True):
            pushing[row] = value
    poses = terms.POSES if episode.config.staging is None else terms.STAGED_POSES
    words = {"action": terms.WALKING, "look": terms.LOOK, "cross": terms.CROSSING, "pose": poses}
    tags = {name: _words(codes[name], words[name]) for name in words}
    return {**tags, "pushing": pl.Series(pushing, dtype=pl.Boolean)}


def is_looking(actor: Actor, view: View) -> Bools:
    """(n,) whether somebody looks out for traffic, in each of their rows.

    Where their behaviour does not tell: whether their face points at the own vehicle.
    """
    to_us = np.arctan2(-view.sight[:, 1], -view.sight[:, 0])
    turned = (actor.heading + actor.gaze - to_us + np.pi) % (2 * np.pi) - np.pi
    # Only a guess from the head, where the behaviour does not know whether somebody looks out.
    looks: Bools = np.abs(turned) < _LOOKS
    if "looking" in actor.facts:
        looks = np.asarray(actor.facts["looking"] != 0)
    return looks


def build_agent_labels(episode: Episode, seen: Seen, held: list[Held]) -> pl.DataFrame:
    """(box, kind, label) of the class of every actor."""
    parts = [
        label_rows(each.rows, "agent", AGENTS.index(each.actor.kind))
        for each in held
        if each.actor.kind in AGENTS
    ]
    for each in held:
        if each.actor.kind in OBJECTS:
            above = terms.CORNER_SUPER.index(OBJECTS[each.actor.kind])
            parts.append(label_rows(each.rows, "corner", terms.CORNER.index(each.actor.kind)))
            parts.append(label_rows(each.rows, "corner_super", above))
    for signal in episode.signals:
        rows = np.flatnonzero(seen.instance == len(episode.actors) + signal.number)
        parts.append(
            label_rows(rows, "agent", AGENTS.index("TL" if is_relevant_signal(episode, signal) else "OthTL"))
        )
    return concat_labels(parts)


def is_relevant_signal(episode: Episode, signal: Signal) -> bool:
    """Whether a light is for the own vehicle's lane, or one that it will take."""
    route = {*episode.layout.route, *np.unique(episode.ego.lane).tolist()}
    return not signal.for_walkers and bool(route & set(signal.lanes))


def build_road_labels(episode: Episode, seen: Seen, held: list[Held], places: Places) -> pl.DataFrame:
    """(box, kind, label) of ROAD's actions and locations."""
    fps = episode.config.camera.fps
    least = max(1, round(_STEADY_S * fps))
    parts = []
    for each in held:
        if each.actor.kind not in AGENTS:
            continue
        ground = places.ground(each.actor)
        flow = places.flow(each.view, ground)
        done = label_actions(each.actor, each.view, ground.where, flow, fps)[each.at]
        at, label = np.nonzero(done)
        parts.append(label_rows(each.rows[at], "action", label))
        found = filter_short_runs(places.locations(each.actor, each.view, ground), least)[each.at]
        known = found != NOWHERE
        parts.append(label_rows(each.rows[known], "location", found[known]))
    for signal in episode.signals:
        rows = np.flatnonzero(seen.instance == len(episode.actors) + signal.number)
        shown = [terms.ACTIONS.index(terms.LIGHTS[Light(int(k))]) for k in signal.state[seen.frame[rows]]]
        parts.append(label_rows(rows, "action", np.array(shown, dtype=np.int64)))
    return concat_labels(parts)


def label_rows(box: Ints, kind: str, label: npt.ArrayLike) -> pl.DataFrame:
    """(box, kind, label) of boxes with a label of one kind.

    Args:
        box: (n,) numbers.
        kind: of the labels.
        label: (n,) index in the vocabulary, or one for all.
    """
    labels = np.broadcast_to(np.asarray(label, dtype=np.int64), box.shape)
    kinds = pl.Series([kind], dtype=pl.String).new_from_index(0, len(box))
    return pl.DataFrame({"box": box.astype(np.int64), "kind": kinds, "label": labels})


def concat_labels(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Rows of labels below each other."""
    schema = {"box": pl.Int64, "kind": pl.String, "label": pl.Int64}
    return pl.concat([pl.DataFrame(schema=schema), *parts])


# Counts: how many boxes, tubes and frames each class of a set has.


def count_labels(scenes: Scenes) -> pl.DataFrame:
    """For each label of each kind, in the order of the vocabularies: kind, label, boxes, tubes, frames.

    Boxes have the label themselves; tubes are tracks with such a box, of kinds of whole frames the
    stretches; frames are those that show it.
    """
    owned = scenes.boxes.select("box", "video", "frame", *_column(scenes, "tube"))
    text = pl.col("kind").cast(pl.String)
    held = scenes.labels.with_columns(text).join(owned, on="box", how="left")
    of_boxes = held.group_by("kind", "label").agg(
        boxes=pl.col("box").n_unique(),
        tubes=pl.col("tube").drop_nulls().n_unique(),
        frames=pl.struct("video", "frame").n_unique(),
    )
    of_frames = scenes.frame_labels.with_columns(text).group_by("kind", "label").agg(frames=pl.len())
    of_tubes = scenes.tube_labels.with_columns(text).group_by("kind", "label").agg(tubes=pl.len())
    of_frames = of_frames.join(of_tubes, on=["kind", "label"], how="left").with_columns(boxes=pl.lit(0))
    counted = pl.concat([of_boxes, of_frames.select(of_boxes.columns)], how="vertical_relaxed")
    words = pl.DataFrame(
        [
            (kind, place, name)
            for kind, labels in scenes.meta.vocabularies.items()
            for place, name in enumerate(labels)
        ],
        schema={"kind": pl.String, "label": pl.Int64, "name": pl.String},
        orient="row",
    )
    present = pl.col("kind").is_in(counted["kind"].unique().implode())
    rows = words.filter(present).join(counted, on=["kind", "label"], how="left", maintain_order="left")
    filled = [pl.col(name).fill_null(0).cast(pl.Int64) for name in ("boxes", "tubes", "frames")]
    return rows.select("kind", pl.col("name").alias("label"), *filled)


def _column(scenes: Scenes, name: str) -> list[pl.Expr]:
    return [pl.col(name) if name in scenes.boxes.columns else pl.lit(None, pl.Int64).alias(name)]
