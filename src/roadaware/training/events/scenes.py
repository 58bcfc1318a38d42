"""Simulated scenes that the event head learns from, and what nobody sees in them: minds."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Bytes, Floats, Ints
from roadaware.errors import DamagedError, InputError
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.scenes.tables import Scenes
from roadaware.simulator.actors import VEHICLES
from roadaware.simulator.config import DOMAINS, SceneConfig, build_scene_config
from roadaware.simulator.episode import Episode
from roadaware.simulator.make import make_episode
from roadaware.simulator.mesh import build_camera, compute_intrinsics
from roadaware.simulator.minds import has_noticed, list_culprits
from roadaware.simulator.render import Stage, render
from roadaware.simulator.truth import build_scene_tables, simulate_block_view
from roadaware.simulator.truth.terms import ROAD_VOCABULARIES

Cameras = Literal["usual", "unusual", "road"]
KINDS = ("agent", "action", "location")
_RATES = (8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0)
_SIZES = ((480, 360), (480, 270), (480, 300), (640, 194))
"""4:3, 16:9, 16:10 and KITTI's."""
_FRAMES = 200
_OCCLUDED = {"none": 0, "part": 1, "full": 2}


@dataclass(frozen=True, eq=False)
class SceneTruth:
    """The ground truth of one scene, its own motion included.

    Args:
        name: of the scene.
        size_px: width and height of its images.
        focal_px: focal length.
        fps: frames per second.
        height_m: of the camera above the ground.
        left_hand: whether traffic keeps to the left.
        frame: (n,) of each box, ascending.
        tube: (n,) whose it is.
        box: (n, 4) x1, y1, x2, y2 in pixels.
        occlusion: (n,) 0 none, 1 part, 2 full.
        parked: (n,) of a parked vehicle, which ROAD does not label.
        agent: (n,) index of its agent.
        action: (n, a) which actions it does.
        location: (n,) index of its location, -1 for none.
        yaw_rps: (F,) turn of the camera since the frame before, left positive, radians a second.
        pitch_rps: (F,) the same upwards.
        speed_mps: (F,) forwards.
        av: (F,) index of the own vehicle's action.
    """

    name: str
    size_px: tuple[int, int]
    focal_px: float
    fps: float
    height_m: float
    left_hand: bool
    frame: Ints
    tube: Ints
    box: Floats
    occlusion: Ints
    parked: Bools
    agent: Ints
    action: Bools
    location: Ints
    yaw_rps: Floats
    pitch_rps: Floats
    speed_mps: Floats
    av: Ints

    @property
    def n_frames(self) -> int:
        """Frames of the scene."""
        return len(self.av)


def draw_config(seed: int, number: int, cameras: Cameras) -> SceneConfig:
    """The camera, town and behaviour of one scene; the same arguments give the same.

    Args:
        seed: of the set.
        number: of the scene in it.
        cameras: `usual` ones of cars and vans; `unusual` ones, whose lens, height or pitch lies beyond all of
            those; `road` for the preset `road@1` as it is.
    """
    base = build_scene_config("road@1")
    if cameras == "road":
        return replace(base, seconds=16.0, sound=False)
    rng = np.random.default_rng([seed, number, 7])
    domain = [None, *DOMAINS][int(rng.integers(0, len(DOMAINS) + 1))]
    town = build_scene_config("road@1", domain)
    fps, (width, height) = float(rng.choice(_RATES)), _SIZES[int(rng.integers(0, len(_SIZES)))]
    fov, up, pitch = rng.uniform(45, 95), rng.uniform(1.15, 2.2), rng.uniform(-7, 2)
    if cameras == "unusual":
        which = int(rng.integers(0, 3))
        fov = rng.choice([rng.uniform(36, 45), rng.uniform(95, 110)]) if which == 0 else fov
        up = rng.uniform(2.3, 3.2) if which == 1 else up
        pitch = rng.choice([rng.uniform(-12, -7), rng.uniform(2, 5)]) if which == 2 else pitch
    camera = replace(
        town.camera,
        width_px=width,
        height_px=height,
        fps=fps,
        fov_deg=float(fov),
        height_m=float(up),
        pitch_deg=float(pitch),
        shake_px=float(rng.uniform(0, 0.8)),
    )
    behaviour = replace(
        town.behaviour,
        vehicles=float(rng.uniform(2, 8)),
        pedestrians=float(rng.uniform(2, 9)),
        ego_speed_kmh=float(rng.uniform(20, 55)),
        boldness=float(rng.uniform(0.2, 0.9)),
        yielding=float(rng.uniform(0.3, 0.9)),
    )
    surroundings = replace(
        town.surroundings,
        drive_on="left" if rng.random() < 0.5 else "right",
        lanes=int(rng.choice([1, 1, 2, 3])),
        junctions=float(rng.uniform(0.5, 1.8)),
        crossings=float(rng.uniform(0.4, 1.6)),
        bends=float(rng.uniform(0, 0.8)),
    )
    seconds = float(np.clip(_FRAMES / fps, 8, 16))
    return replace(
        town, seconds=seconds, camera=camera, behaviour=behaviour, surroundings=surroundings, sound=False
    )


def make_truth(seed: int, number: int, cameras: Cameras) -> SceneTruth:
    """The ground truth of one scene; nothing is drawn.

    Args:
        seed: of the set.
        number: of the scene.
        cameras: as of `draw_config`.
    """
    episode = make_episode(draw_config(seed, number, cameras), seed, number)
    return read_truth(episode, build_scene(episode))


def build_scene(episode: Episode) -> Scenes:
    """The tables of an episode whose parked vehicles are labelled as well: detectors find them too."""
    awake = tuple(replace(each, active=True) if each.kind in VEHICLES else each for each in episode.actors)
    episode = replace(episode, actors=awake)
    return build_scene_tables(episode, simulate_block_view(episode, joints=False))


def read_truth(episode: Episode, scenes: Scenes) -> SceneTruth:
    """The arrays of a scene.

    Args:
        episode: the scene; `active` says who is parked.
        scenes: its tables, as of `build_scene`.
    """
    boxes, camera = scenes.boxes.sort("frame", maintain_order=True), episode.config.camera
    number = np.full(int(boxes["box"].max() or 0) + 1, -1, np.int64)  # type: ignore[arg-type]
    number[boxes["box"].to_numpy()] = np.arange(len(boxes))
    hot = {kind: np.zeros((len(boxes), len(ROAD_VOCABULARIES[kind])), np.bool_) for kind in KINDS}
    for (kind,), rows in scenes.labels.partition_by("kind", as_dict=True).items():
        if str(kind) in hot:
            hot[str(kind)][number[rows["box"].to_numpy()], rows["label"].to_numpy()] = True
    asleep = {each.number for each in episode.actors if not each.active}
    names = dict(scenes.tubes.select("tube", "name").iter_rows())
    actors = {tube: _actor_number(name) for tube, name in names.items()}
    parked = np.array([actors.get(tube) in asleep for tube in boxes["tube"].to_list()], np.bool_)
    occlusion = boxes["occlusion"].cast(pl.String).replace_strict(_OCCLUDED, default=0).to_numpy()
    yaw, pitch, speed = compute_camera_motion(episode)
    return SceneTruth(
        name=episode.name,
        size_px=(camera.width_px, camera.height_px),
        focal_px=float(compute_intrinsics(camera)[0, 0]),
        fps=camera.fps,
        height_m=camera.height_m,
        left_hand=episode.config.surroundings.drive_on == "left",
        frame=boxes["frame"].to_numpy().astype(np.int64),
        tube=boxes["tube"].to_numpy().astype(np.int64),
        box=boxes.select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy().astype(np.float64),
        occlusion=occlusion.astype(np.int64),
        parked=parked,
        agent=hot["agent"].argmax(axis=1),
        action=hot["action"],
        location=np.where(hot["location"].any(axis=1), hot["location"].argmax(axis=1), -1),
        yaw_rps=yaw,
        pitch_rps=pitch,
        speed_mps=speed,
        av=episode.ego.action.astype(np.int64),
    )


def _actor_number(name: str | None) -> int:
    """The number of an actor by the name of its tube, such as car-0003; -1 of traffic lights."""
    kind, _, tail = (name or "").partition("-")
    return int(tail.rstrip("b")) if kind != "light" and tail.rstrip("b").isdecimal() else -1


def compute_camera_motion(episode: Episode) -> tuple[Floats, Floats, Floats]:
    """Turn to the left, turn upwards (radians a second) and speed (m/s) of the camera, by frame; 0 at first.

    Its tremor is part of the turn, as a video shows it.
    """
    count, fps = episode.n_frames, episode.config.camera.fps
    poses = [
        build_camera(episode.ego, episode.config, k, episode.seed).world_SE3_camera for k in range(count)
    ]
    turn = np.stack([pose[:3, :3] for pose in poses])
    forward = np.einsum("fji,fj->fi", turn[:-1], turn[1:, :, 2])
    yaw, pitch = np.zeros(count), np.zeros(count)
    yaw[1:] = -np.arctan2(forward[:, 0], forward[:, 2]) * fps
    pitch[1:] = -np.arctan2(forward[:, 1], forward[:, 2]) * fps
    return yaw, pitch, np.asarray(episode.ego.speed, np.float64)


def save_truth(truth: SceneTruth, path: Path) -> None:
    """Write the arrays of a scene into one npz file."""
    np.savez_compressed(path, **{each.name: getattr(truth, each.name) for each in fields(truth)})


def load_truth(path: Path) -> SceneTruth:
    """Read a file of `save_truth`.

    Raises:
        InputError: if it is no such file.
    """
    try:
        with np.load(path, allow_pickle=False) as held:
            found = {each.name: held[each.name] for each in fields(SceneTruth)}
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"expected the truth of a simulated scene: {error}", where=str(path)) from error
    found["name"], found["size_px"] = str(found["name"]), tuple(int(n) for n in found["size_px"])
    for name in ("focal_px", "fps", "height_m"):
        found[name] = float(found[name])
    found["left_hand"] = bool(found["left_hand"])
    return SceneTruth(**found)


CAUSE_KINDS = ("free", "vehicle", "thing", "person", "zebra", "junction", "queue", "lights", "line")
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
    """(m, 64, 112, 3) RGB of every `count_step`-th frame, by the camera of the scene with fewer pixels."""
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
        kind[frame], several[frame] = CAUSE_KINDS.index(each.kind), len(each.causes)
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
