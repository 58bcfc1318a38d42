"""Boxes: a row for each frame of everybody who can be seen, with what they do and where they look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Floats, Ints
from roadaware.scenes.schema import CORNERS
from roadaware.simulator.actors import AGENTS, OBJECTS, Actor, Pose, Signal
from roadaware.simulator.episode import Episode
from roadaware.simulator.mesh import MOUNT_M
from roadaware.simulator.truth import terms
from roadaware.simulator.truth.deeds import STILL_MPS
from roadaware.simulator.truth.places import View, compute_view
from roadaware.simulator.truth.seen import Seen

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
    """The rows of what gets a box: near, seen well enough, and active, a corner case, or a lit face.

    Args:
        episode: the scene.
        seen: all rows.
    """
    wanted = np.array(
        [_is_labelled(episode, actor) for actor in episode.actors] + [True] * len(episode.signals)
    )
    kept = seen.enough & seen.near(episode.config.camera.height_px)
    kept &= wanted[seen.instance] if len(wanted) else True
    # Signals are numbered after all actors.
    lights = np.flatnonzero(kept & (seen.instance >= len(episode.actors)))
    for row in lights:
        signal = episode.signals[int(seen.instance[row]) - len(episode.actors)]
        kept[row] = _shows_face(episode, signal, int(seen.frame[row]))
    return seen.rows(kept)


def _is_labelled(episode: Episode, actor: Actor) -> bool:
    """Things count as corner cases alone; what people push along elsewhere is a part of what they do."""
    return actor.active and (actor.kind in AGENTS or episode.config.preset == "corner-cases")


def _shows_face(episode: Episode, signal: Signal, frame: int) -> bool:
    line = episode.ego.position[frame, :2] - signal.position[:2]
    face = np.cos(signal.heading) * line[0] + np.sin(signal.heading) * line[1]
    return bool(face > _FACING * np.hypot(*line))


def collect_boxed_actors(episode: Episode, seen: Seen) -> list[Held]:
    """Class of each actor with boxes, in the order of their numbers.

    Args:
        episode: the scene.
        seen: rows with a box.
    """
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
    objects = np.zeros(len(seen), dtype=bool)
    for each in held:
        objects[each.rows] = each.actor.kind in OBJECTS
    eye = episode.ego.position[seen.frame, :2] + MOUNT_M * _front(episode, seen.frame)
    place = _positions(episode, seen)
    return pl.DataFrame(
        {
            "box": np.arange(len(seen), dtype=np.int64),
            "video": pl.Series([episode.name], dtype=pl.String).new_from_index(0, len(seen)),
            "frame": seen.frame,
            "tube": tube,
            **{name: seen.full[:, k] for k, name in enumerate(CORNERS)},
            "occlusion": _words(occlusion, terms.OCCLUSION),
            **visible,
            "visible_share": seen.share.astype(np.float32),
            "distance_m": np.hypot(*(place - eye).T).astype(np.float32),
            **_manners(episode, seen, held),
            "corner_case": objects,
            "joints": pl.Series(seen.joints.reshape(-1, 51), dtype=pl.Array(pl.Float32, 51)),
        }
    ).with_columns(joints=pl.when(pl.Series(np.isfinite(seen.joints).all((1, 2)))).then(pl.col("joints")))


def _front(episode: Episode, frame: Ints) -> Floats:
    heading = episode.ego.heading[frame]
    return np.stack([np.cos(heading), np.sin(heading)], axis=1)


def _positions(episode: Episode, seen: Seen) -> Floats:
    """(m, 2) where each is."""
    place = np.zeros((len(seen), 2))
    for number in np.unique(seen.instance).tolist():
        rows = seen.instance == number
        if number < len(episode.actors):
            actor = episode.actors[number]
            place[rows] = actor.position[seen.frame[rows] - actor.first, :2]
        else:
            place[rows] = episode.signals[number - len(episode.actors)].position[:2]
    return place


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
    words = {"action": terms.WALKING, "look": terms.LOOK, "cross": terms.CROSSING, "pose": terms.POSES}
    tags = {name: _words(codes[name], words[name]) for name in words}
    return {**tags, "pushing": pl.Series(pushing, dtype=pl.Boolean)}


def is_looking(actor: Actor, view: View) -> Bools:
    """(n,) whether somebody looks out for traffic, in each of their rows.

    Where their behaviour does not tell: whether their face points at the own vehicle.

    Args:
        actor: who.
        view: of them.
    """
    to_us = np.arctan2(-view.sight[:, 1], -view.sight[:, 0])
    turned = (actor.heading + actor.gaze - to_us + np.pi) % (2 * np.pi) - np.pi
    # Only a guess from the head, where the behaviour does not know whether somebody looks out.
    looks: Bools = np.abs(turned) < _LOOKS
    if "looking" in actor.facts:
        looks = np.asarray(actor.facts["looking"] != 0)
    return looks
