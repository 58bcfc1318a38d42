"""Simulated scenes with what nobody sees: for whom the own vehicle brakes, and what road users have in mind."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Bools, Bytes, Floats, Ints
from roadaware.errors import DamagedError
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.scenes.tables import Scenes
from roadaware.simulator.episode import Episode
from roadaware.simulator.make import make_episode
from roadaware.simulator.mesh import build_camera
from roadaware.simulator.minds import has_noticed, list_culprits
from roadaware.simulator.render import Stage, render
from roadaware.training.events.scenes import Cameras, SceneTruth, build_scene, draw_config, read_truth

KINDS = ("free", "vehicle", "thing", "person", "zebra", "junction", "queue", "lights", "line")
"""What bounds the own vehicle's acceleration; `line` is one at which it slows down for nobody in particular."""
AHEAD_S = 2.0
"""How far ahead the future of people on foot is noted."""
EVERY_S = 0.25
"""From one moment that is learnt from to the next: at a walking pace people move by a third of a metre."""
IMAGE_PX = (112, 64)
"""Width and height of the images of these moments: a car at 20 m is some 8 pixels wide, and all of them fit in memory."""
_LIGHTS = 1 << 20
"""Added to the numbers of traffic lights, which are no actors."""


@dataclass(frozen=True, eq=False)
class MindedScene:
    """The truth of one scene, with causes and minds. Rows are those of `truth`'s boxes.

    Args:
        truth: boxes, labels and own motion.
        kind: (F,) index in `KINDS`; of the last frame as of the one before.
        allows, without: (F,) m/s2 that all causes together allow, and that the road allows without them.
        several: (F,) how many causes there are at once.
        unseen: (F,) whether one of the causes that hold it by themselves has nobody in the image.
        culprit: (n,) whether the box is one of those for whom the own vehicle's driver brakes, or would brake, now.
        goal: (n,) of somebody on foot, index in `GOALS`; -1 of all others.
        turn: (n,) of a driver, index in `TURNS`; -1 where no junction lies ahead, and of all others.
        margin_s: (n,) seconds to spare that somebody on foot wants; NaN of others.
        noticed: (n,) whether somebody on foot has seen the own vehicle so far; -1 of others.
        on_road: (n,) whether somebody on foot is on the road; -1 of others.
        steps_out: (n,) whether somebody who is not on the road is on it at some time within `AHEAD_S`; -1 where it is not
            known, and of all others.
        moved_m: (n, 2) metres that somebody on foot will have moved in `AHEAD_S`, along and to the left of where the own
            vehicle points now; NaN where it is not known.
    """

    truth: SceneTruth
    kind: Ints
    allows: Floats
    without: Floats
    several: Ints
    unseen: Bools
    culprit: Bools
    goal: Ints
    turn: Ints
    margin_s: Floats
    noticed: Ints
    on_road: Ints
    steps_out: Ints
    moved_m: Floats
    image: Bytes


def count_step(fps: float) -> int:
    """Frames from one moment that is learnt from to the next.

    Args:
        fps: frames a second.
    """
    return max(1, round(EVERY_S * fps))


def make_minded_scene(
    seed: int, number: int, cameras: Cameras = "usual", *, images: bool = False
) -> MindedScene:
    """One scene; the same arguments give the same.

    Args:
        seed: of the set.
        number: of the scene.
        cameras: as of `draw_config`.
        images: whether small images are rendered, which takes as long as all the rest.
    """
    episode = make_episode(draw_config(seed, number, cameras), seed, number)
    scene = read_minded_scene(episode, build_scene(episode))
    return replace(scene, image=render_small_images(episode)) if images else scene


def render_small_images(episode: Episode) -> Bytes:
    """(m, 64, 112, 3) RGB of every `count_step`-th frame, by the camera of the scene with fewer pixels.

    Args:
        episode: the scene.
    """
    camera, (width, height) = episode.config.camera, IMAGE_PX
    shake_px = camera.shake_px * width / camera.width_px
    small = replace(camera, width_px=width, height_px=height, shake_px=shake_px)
    config, stage = replace(episode.config, camera=small), Stage(episode)
    found = [
        render(
            stage.soup(frame),
            build_camera(episode.ego, config, frame, episode.seed),
            episode.conditions,
            seed=episode.seed,
            frame=frame,
        ).rgb
        for frame in range(0, episode.n_frames, count_step(camera.fps))
    ]
    return np.stack(found)


def read_minded_scene(episode: Episode, scenes: Scenes) -> MindedScene:
    """The arrays of a scene.

    Args:
        episode: the scene.
        scenes: its tables, as of `build_scene`.
    """
    truth = read_truth(episode, scenes)
    names = {tube: _read_number(name) for tube, name in scenes.tubes.select("tube", "name").iter_rows()}
    who = np.array([names[tube] for tube in truth.tube.tolist()], np.int64)
    n, frames = len(who), episode.n_frames
    culprits = list_culprits(episode)
    held = [(k, each) for k, each in enumerate(culprits)]
    # Nobody decides in the last frame: it goes on as the one before.
    held += [(len(culprits), culprits[-1])] if len(culprits) == frames - 1 and culprits else []
    kind, several = np.zeros(frames, np.int64), np.zeros(frames, np.int64)
    allows, without, unseen = np.zeros(frames), np.full(frames, np.inf), np.zeros(frames, np.bool_)
    shown = set(zip(truth.frame.tolist(), who.tolist(), strict=True))
    blamed = set()
    for frame, each in held:
        kind[frame], several[frame] = KINDS.index(each.kind), len(each.causes)
        allows[frame], without[frame] = each.allows, each.without
        for cause in each.causes:
            numbers = {(frame, number) for number in (*cause.actors, *(_LIGHTS + s for s in cause.signals))}
            unseen[frame] |= cause.binds and not numbers & shown
            blamed |= numbers
    culprit = np.array(
        [(f, w) in blamed for f, w in zip(truth.frame.tolist(), who.tolist(), strict=True)], np.bool_
    )
    goal, turn, noticed, on_road, steps_out = (np.full(n, -1, np.int64) for _ in range(5))
    margin, moved = np.full(n, np.nan), np.full((n, 2), np.nan)
    ahead = round(AHEAD_S * truth.fps)
    for number in np.unique(who[(who >= 0) & (who < _LIGHTS)]).tolist():
        actor = episode.actors[number]
        rows = np.flatnonzero(who == number)
        at = truth.frame[rows] - actor.first
        own = episode.ego.heading[truth.frame[rows]]
        if actor.thoughts is None:
            continue
        if actor.kind != "Ped":
            turn[rows] = np.where(actor.thoughts.known[at], actor.thoughts.goal[at] + 1, -1)
            continue
        whole = actor.position[:, :2] - episode.ego.position[actor.first : actor.end, :2]
        out = actor.facts["crossing"] != 0
        goal[rows], margin[rows] = actor.thoughts.goal[at], actor.thoughts.margin_s[at]
        noticed[rows], on_road[rows] = has_noticed(actor, whole)[at], out[at]
        known = at + ahead < len(out)
        steps_out[rows] = np.where(known & ~out[at], _is_true_soon(out, ahead)[at], -1)
        later = np.minimum(at + ahead, len(out) - 1)
        away = actor.position[later, :2] - actor.position[at, :2]
        c, s = np.cos(own), np.sin(own)
        way = np.stack([away[:, 0] * c + away[:, 1] * s, away[:, 1] * c - away[:, 0] * s], axis=1)
        moved[rows] = np.where(known[:, None], way, np.nan)
    return MindedScene(
        truth, kind, allows, without, several, unseen, culprit, goal, turn, margin, noticed, on_road, steps_out, moved,
        np.zeros((0, *IMAGE_PX[::-1], 3), np.uint8),
    )  # fmt: skip


def _read_number(name: str | None) -> int:
    """The number of an actor by the name of its tube, such as car-0003; of a traffic light with `_LIGHTS` added."""
    kind, _, tail = (name or "").partition("-")
    if not tail.rstrip("b").isdecimal():
        return -1
    return int(tail.rstrip("b")) + (_LIGHTS if kind == "light" else 0)


def _is_true_soon(on: Bools, ahead: int) -> Bools:
    """(n,) whether something holds in one of the next so many frames.

    >>> _is_true_soon(np.array([False, False, True, False]), 1).tolist()
    [False, True, False, False]
    """
    total = np.concatenate([[0], np.cumsum(on)])
    last = np.minimum(np.arange(len(on)) + 1 + ahead, len(on))
    found: Bools = total[last] - total[np.arange(len(on)) + 1] > 0
    return found


def save_minded_scene(scene: MindedScene, path: Path) -> None:
    """Write the arrays of a scene into one file.

    Raises:
        DiskError: if it cannot be written.
    """
    arrays = {each.name: np.asarray(getattr(scene.truth, each.name)) for each in fields(SceneTruth)}
    extra = {each.name: getattr(scene, each.name) for each in fields(MindedScene) if each.name != "truth"}
    facts = {name: arrays.pop(name).tolist() for name in _FACTS}
    save_arrays(path, arrays | extra, facts)


_FACTS = ("name", "size_px", "focal_px", "fps", "height_m", "left_hand")


def load_minded_scene(path: Path) -> MindedScene:
    """Read a file of `save_minded_scene`.

    Raises:
        InputError: if it cannot be read.
        DamagedError: if it is no such file.
    """
    arrays, facts = open_arrays(
        path, "the arrays of a simulated scene", "remove it, and give the command again"
    )
    try:
        truth: dict[str, Any] = {
            each.name: arrays[each.name] for each in fields(SceneTruth) if each.name not in _FACTS
        }
        said: dict[str, Any] = {name: facts[name] for name in _FACTS}
        said["size_px"] = (int(said["size_px"][0]), int(said["size_px"][1]))
        extra = {each.name: arrays[each.name] for each in fields(MindedScene) if each.name != "truth"}
    except (KeyError, TypeError, IndexError) as error:
        raise DamagedError(
            f"expected the arrays of a simulated scene, lacks {error}", where=str(path)
        ) from error
    return MindedScene(SceneTruth(**truth, **said), **extra)
