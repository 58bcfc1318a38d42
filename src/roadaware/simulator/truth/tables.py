"""An episode and what was seen of it as Scenes, true to the pixel and to the frame: boxes, tubes, sensors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL, find_canonical_name, list_label_names
from roadaware.errors import InputError
from roadaware.scenes.composites import derive_composites
from roadaware.scenes.factors import run_spans, split_tubes_by_label
from roadaware.scenes.tables import Meta, Scenes
from roadaware.simulator.actors import OBJECTS, VEHICLES, Actor, Ego, Pose
from roadaware.simulator.episode import Episode, Noise
from roadaware.simulator.mesh import build_camera, compute_intrinsics
from roadaware.simulator.sensors import AHEAD_M
from roadaware.simulator.truth import terms
from roadaware.simulator.truth.labels import (
    Held,
    build_agent_labels,
    build_boxes_table,
    build_road_labels,
    collect_boxed_actors,
    concat_labels,
    is_relevant_signal,
    label_rows,
    select_labelled_rows,
)
from roadaware.simulator.truth.seen import Seen
from roadaware.simulator.truth.terms import Places, Way

# Ground truth of crowds: actions in the official words, relations, sentences and sounds.


_PREFIX = "action:"


@dataclass(frozen=True)
class Heard:
    """The `sounds` table, and the vocabulary of its labels."""

    table: pl.DataFrame
    words: tuple[str, ...]


def build_crowd_labels(held: list[Held]) -> pl.DataFrame:
    """(box, kind, label) of what people do: what their pose shows, and what their behaviour names.

    Facts that are called like an official action, such as `holding flag`, are labels too; those that say
    so, such as `action:holding flag`, stand for all that somebody does, whatever else the pose may show.
    """
    parts = []
    shown = np.full(len(Pose), -1, dtype=np.int64)
    for pose, name in terms.CROWD_ACTIONS.items():
        shown[pose] = ACTIONS_OFFICIAL.index(name)
    for each in (one for one in held if one.actor.kind == "Ped"):
        if not any(fact.startswith(_PREFIX) for fact in each.actor.facts):
            label = shown[each.actor.pose[each.at]]
            parts.append(label_rows(each.rows[label >= 0], "action", label[label >= 0]))
        for fact, values in sorted(each.actor.facts.items()):
            word = find_canonical_name(fact.removeprefix(_PREFIX), "action")
            if word in ACTIONS_OFFICIAL:
                on = values[each.at] != 0
                parts.append(label_rows(each.rows[on], "action", ACTIONS_OFFICIAL.index(word)))
    # A pose and a deed may name the same action.
    return concat_labels(parts).unique(maintain_order=True)


def build_relations_table(episode: Episode, tubes: pl.DataFrame, number: dict[int, int]) -> pl.DataFrame:
    """The `relations` table: bonds as far as both tracks last.

    Args:
        episode: the scene.
        tubes: its tracks.
        number: of an actor to that of its tube.

    Raises:
        InputError: if a bond is called as no interaction of the vocabulary is.
    """
    words = list_label_names("interaction")
    spans = _spans(tubes)
    rows: list[tuple[Any, ...]] = []
    for bond in episode.bonds:
        predicate = find_canonical_name(bond.predicate, "interaction")
        if predicate is None:
            raise InputError(f"no interaction is called '{bond.predicate}'; there are {', '.join(words)}")
        subject, other = number.get(bond.subject), number.get(bond.object)
        if subject is None or other is None:
            continue
        start = max(bond.start, spans[subject][0], spans[other][0])
        end = min(bond.end, spans[subject][1], spans[other][1])
        if start < end:
            rows.append((len(rows), episode.name, subject, other, words.index(predicate), start, end))
    names = ("relation", "video", "subject", "object", "predicate", "start_frame", "end_frame")
    schema: dict[str, Any] = {name: pl.String if name == "video" else pl.Int64 for name in names}
    return pl.DataFrame(rows, schema=schema, orient="row")


def build_queries_table(episode: Episode, tubes: pl.DataFrame, number: dict[int, int]) -> pl.DataFrame:
    """The `queries` table: sentences about people who are seen, as far as their track lasts.

    Args:
        episode: the scene.
        tubes: its tracks.
        number: of an actor to that of its tube.
    """
    spans = _spans(tubes)
    rows: list[tuple[Any, ...]] = []
    for each in episode.sentences:
        tube = number.get(each.actor)
        if tube is None:
            continue
        start, end = max(each.start, spans[tube][0]), min(each.end, spans[tube][1])
        if start < end:
            name = f"{episode.name}-{len(rows):03d}"
            whole = (0, episode.n_frames)
            form = () if episode.config.staging is None else (each.form,)
            rows.append(
                (len(rows), episode.name, name, each.text, each.kind, *whole, tube, start, end, *form)
            )
    schema: dict[str, Any] = {
        "query": pl.Int64,
        "video": pl.String,
        "name": pl.String,
        "text": pl.String,
        "sentence_kind": pl.String,
        "segment_start_frame": pl.Int64,
        "segment_end_frame": pl.Int64,
        "tube": pl.Int64,
        "start_frame": pl.Int64,
        "end_frame": pl.Int64,
    }
    schema |= {} if episode.config.staging is None else {"form": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def build_sounds_table(episode: Episode, boxes: pl.DataFrame, number: dict[int, int]) -> Heard:
    """The `sounds` table: every noise, with the first frame that shows who makes it.

    Args:
        episode: the scene.
        boxes: of it.
        number: of an actor to that of its tube.
    """
    if episode.config.staging is not None:
        return _build_staged_sounds(episode, boxes, number)
    if not episode.noises:
        return Heard(pl.DataFrame(schema=_SOUNDS), ())
    named = [_map_sound_label(noise.label) for noise in episode.noises]
    words = (*list_label_names("sound"), *sorted(set(named) - set(list_label_names("sound"))))
    rows = []
    for k, (noise, name) in enumerate(zip(episode.noises, named, strict=True)):
        shown = _heard(episode, noise, boxes, number)["frame"].min()
        rows.append(
            (k, episode.name, name, shown, noise.start_s, noise.end_s, noise.level, words.index(name))
        )
    return Heard(pl.DataFrame(rows, schema=_SOUNDS, orient="row"), words)


_SOUNDS: dict[str, Any] = {
    "sound": pl.Int64,
    "video": pl.String,
    "name": pl.String,
    "frame": pl.Int64,
    "t_s": pl.Float32,
    "end_s": pl.Float32,
    "level": pl.Float32,
    "label": pl.Int64,
}


def _build_staged_sounds(episode: Episode, boxes: pl.DataFrame, number: dict[int, int]) -> Heard:
    """A row for each sound of a staged scene, whoever makes it, with a name of its own."""
    words = list_label_names("sound")
    parts: dict[int, list[Noise]] = {}
    for noise in episode.noises:
        parts.setdefault(noise.sound or 0, []).append(noise)
    rows: list[tuple[Any, ...]] = []
    for k, noises in sorted(parts.items()):
        shown = [_heard(episode, noise, boxes, number)["frame"].min() for noise in noises]
        frames = [frame for frame in shown if isinstance(frame, int)]
        start, end = min(noise.start_s for noise in noises), max(noise.end_s for noise in noises)
        frame = min(frames, default=None)
        level, label = max(noise.level for noise in noises), words.index(noises[0].label)
        name = f"{episode.name}-s{k:02d}"
        rows.append((k, episode.name, name, frame, start, end, level, label, bool(frames)))
    if not rows:
        # What is asked of a silent scene: where does it come from? From nowhere.
        end = episode.n_frames / episode.config.camera.fps
        rows.append((0, episode.name, f"{episode.name}-silence", None, 0.0, end, 0.0, None, False))
    return Heard(pl.DataFrame(rows, schema={**_SOUNDS, "on_screen": pl.Boolean}, orient="row"), words)


def match_box_sounds(episode: Episode, boxes: pl.DataFrame, number: dict[int, int]) -> pl.Series:
    """(m,) the sound that each box makes, null for none; of several the first.

    Args:
        episode: the scene.
        boxes: of it.
        number: of an actor to that of its tube.
    """
    found: list[int | None] = [None] * len(boxes)
    for place, noise in enumerate(episode.noises):
        k = place if noise.sound is None else noise.sound
        for row in _heard(episode, noise, boxes, number)["box"].to_list():
            found[row] = k if found[row] is None else found[row]
    return pl.Series("sound", found, dtype=pl.Int64)


def _heard(episode: Episode, noise: Noise, boxes: pl.DataFrame, number: dict[int, int]) -> pl.DataFrame:
    """The boxes of whoever makes a noise, while it lasts."""
    fps = episode.config.camera.fps
    tube = None if noise.actor is None else number.get(noise.actor)
    if tube is None:
        return boxes.clear()
    first, last = int(np.floor(noise.start_s * fps)), int(np.ceil(noise.end_s * fps))
    return boxes.filter(pl.col("tube") == tube, pl.col("frame").is_between(first, last, closed="left"))


def _map_sound_label(label: str) -> str:
    """The official word for a sound; its own where there is none."""
    return find_canonical_name(label, "sound") or terms.SOUND_WORDS.get(label, label)


def _spans(tubes: pl.DataFrame) -> dict[int, tuple[int, int]]:
    return {
        tube: (start, end) for tube, start, end in tubes.select("tube", "start_frame", "end_frame").rows()
    }


# Tracks: the tubes that own boxes, with what PIE and JAAD tell of pedestrians.

_SCHEMA: dict[str, Any] = {
    "tube": pl.Int64,
    "video": pl.String,
    "name": pl.String,
    "start_frame": pl.Int64,
    "end_frame": pl.Int64,
    "instance": pl.Int64,
    "track_label": pl.Enum(terms.TRACK_LABEL),
    "model": pl.String,
    "crossing": pl.Enum(terms.CROSSING),
    "event_frame": pl.Int64,
    "event_source": pl.Enum(terms.EVENT_SOURCE),
    "crossing_point": pl.Int64,
    "exp_start_point": pl.Int64,
    "critical_point": pl.Int64,
    "intention_prob": pl.Float32,
    "wants": pl.Boolean,
    "age": pl.Enum(terms.AGES),
    "signalized": pl.Enum(terms.SIGNALIZED),
    "num_lanes": pl.Int64,
    "traffic_direction": pl.Enum(("OW", "TW")),
}
_SIGNALIZED = {"no signal": "n/a", "none": "n/a", "n/a": "n/a", "zebra crossing": "C", "zebra": "C", "C": "C"}
_SIGNALIZED |= {"signal": "CS", "signalled": "CS", "S": "S", "CS": "CS"}


def build_tubes_table(episode: Episode, instance: Ints, frame: Ints, way: Way) -> pl.DataFrame:
    """One tube for everybody who has a box, in the order of their numbers.

    Args:
        episode: the scene.
        instance: (n,) whose boxes there are; signals follow the actors.
        frame: (n,) when, ascending for each instance.
        way: the own vehicle's lanes.
    """
    rows = []
    for tube, number in enumerate(np.unique(instance).tolist()):
        held = frame[instance == number]
        row = {
            "tube": tube,
            "video": episode.name,
            "start_frame": int(held[0]),
            "end_frame": int(held[-1]) + 1,
            "instance": number + 1,
        }
        if number < len(episode.actors):
            row |= _of_actor(episode, episode.actors[number], held, way)
        else:
            signal = episode.signals[number - len(episode.actors)]
            row |= {"name": f"light-{signal.number:03d}", "track_label": "traffic_light"}
        rows.append(row)
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _of_actor(episode: Episode, actor: Actor, held: Ints, way: Way) -> dict[str, Any]:
    kind = actor.kind.lower()
    row: dict[str, Any] = {"name": f"{kind}-{actor.number:04d}", "model": actor.model}
    if actor.kind in OBJECTS:
        return row | {"track_label": "object"}
    if actor.kind in VEHICLES:
        return row | {"track_label": "vehicle"}
    row["track_label"] = "pedestrian"
    if actor.mind is None:
        return row
    # As in JAAD, those whose behaviour is known have names that end with b.
    row["name"] += "b"
    lane = int(way.lane[held[0]])
    road = episode.layout.roads[episode.layout.lanes[lane].road] if lane >= 0 else None
    kinds = [episode.layout.lanes[k] for k in road.lanes] if road is not None else []
    driven = [each for each in kinds if each.kind in ("vehicle", "bus")]
    ways = {each.forward for each in driven}
    known = {
        "num_lanes": len(driven) or None,
        "traffic_direction": None if not ways else "TW" if len(ways) == 2 else "OW",
    }
    # What is known of a pedestrian with boxes in some frames.
    # The event is the frame of the first step on the road. A crosser whose first step has no box gets the
    # third box from the end, as the published readers do, and `event_source` says that it is a fallback.
    mind = actor.mind
    stepped = mind.crossing is not None and bool((held == mind.crossing).any())
    # Where the crossing itself is not seen, the third frame from the end, or the last of three, as the
    # published readers of PIE and JAAD have it.
    late = int(held[-3] if len(held) > 3 else held[-1])
    event = (mind.crossing if stepped else late) if mind.crosses else None
    # Whoever crosses where the own vehicle does not come by.
    other = "not-crossing" if mind.crossing is None else "irrelevant"
    asked = held[(held >= mind.start) & (held <= mind.critical)]
    return (
        row
        | known
        | (
            {
                "crossing": "crossing" if mind.crosses else other,
                "event_frame": event,
                "event_source": "annotated"
                if mind.crosses and stepped
                else "fallback"
                if mind.crosses
                else "none",
                "crossing_point": mind.crossing if mind.crosses else None,
                "exp_start_point": int(asked[0]) if len(asked) else None,
                "critical_point": int(asked[-1]) if len(asked) else None,
                "intention_prob": mind.intention_prob,
                "wants": mind.wants,
                "age": mind.age,
                "signalized": _SIGNALIZED.get(mind.signalized, "n/a"),
            }
        )
    )


# Sensing: where the camera and the LiDAR sit, where the own vehicle was, and the rows of its sweeps.

CAMERA, LIDAR = "camera", "lidar"


@dataclass(frozen=True)
class Sweep:
    """One sweep of the LiDAR.

    Args:
        frame: of the scene.
        path: of its file, relative to the scene's folder.
        n_points: in it.
    """

    frame: int
    path: str
    n_points: int


def ego_poses(ego: Ego) -> npt.NDArray[np.float32]:
    """(F, 16) poses of the own vehicle in the world, row by row."""
    poses = np.tile(np.eye(4), (len(ego.heading), 1, 1))
    c, s = np.cos(ego.heading), np.sin(ego.heading)
    poses[:, 0, 0], poses[:, 0, 1], poses[:, 1, 0], poses[:, 1, 1] = c, -s, s, c
    poses[:, :3, 3] = ego.position
    return poses.reshape(-1, 16).astype(np.float32)


def ego_SE3_camera(episode: Episode) -> Floats:  # noqa: N802, the project's way to name transforms
    """(4, 4) pose of the camera in the vehicle, without its tremor."""
    zero = np.zeros(1)
    whole = np.zeros(1, dtype=np.int64)
    # The tremor belongs to the pose of each frame, not to how the camera is mounted.
    still = Ego(np.zeros((1, 3)), zero, zero, zero, zero, whole, whole)
    lens = replace(episode.config.camera, shake_px=0.0)
    return build_camera(still, replace(episode.config, camera=lens), 0, 0).world_SE3_camera


def build_sensors_table(episode: Episode) -> pl.DataFrame:
    """The `sensors` table of a scene."""
    lidar = episode.config.lidar
    rows: list[dict[str, Any]] = [
        {
            "sensor": CAMERA,
            "intrinsics": compute_intrinsics(episode.config.camera).ravel().tolist(),
            "ego_SE3_sensor": ego_SE3_camera(episode).ravel().tolist(),
            "layout": None,
        }
    ]
    if lidar is not None:
        pose = np.eye(4)
        pose[0, 3], pose[2, 3] = AHEAD_M, lidar.height_m
        layout = f"{lidar.rings} rings x {lidar.columns} columns"
        rows.append({"sensor": LIDAR, "ego_SE3_sensor": pose.ravel().tolist(), "layout": layout})
    schema: dict[str, Any] = {
        "scene": pl.String,
        "sensor": pl.String,
        "from_frame": pl.Int64,
        "intrinsics": pl.List(pl.Float32),
        "ego_SE3_sensor": pl.List(pl.Float32),
        "layout": pl.String,
    }
    return pl.DataFrame([{"scene": episode.name, "from_frame": 0, **row} for row in rows], schema=schema)


def build_sweeps_table(episode: Episode, sweeps: Sequence[Sweep]) -> pl.DataFrame:
    """The `sweeps` table of a scene."""
    frame = np.array([each.frame for each in sweeps], dtype=np.int64)
    poses = ego_poses(episode.ego)[frame]
    return pl.DataFrame(
        {
            "scene": pl.Series([episode.name] * len(frame), dtype=pl.String),
            "sensor": pl.Series([LIDAR] * len(frame), dtype=pl.String),
            "frame": frame,
            "path": pl.Series([each.path for each in sweeps], dtype=pl.String),
            "n_points": pl.Series([each.n_points for each in sweeps], dtype=pl.Int64),
            "t_s": (frame / episode.config.camera.fps).astype(np.float32),
            "world_SE3_ego": pl.Series(poses.tolist(), dtype=pl.List(pl.Float32)),
        }
    )


DATASET = "simulator"
SAMPLED_AS = ("jaad", "pie")
"""Whose protocols cut the pedestrians into samples."""
_SPLITS = ("train", "test", "train", "val", "train")


def build_scene_tables(
    episode: Episode,
    seen: Seen,
    *,
    files: Mapping[str, str] | None = None,
    sweeps: Sequence[Sweep] = (),
) -> Scenes:
    """The ground truth of one scene.

    Args:
        episode: the scene.
        seen: of all its frames.
        files: further columns of `videos`, such as `path`: names of files relative to the scene's folder.
        sweeps: of the LiDAR.
    """
    places = Places(episode.layout, episode.ego)
    seen = select_labelled_rows(episode, seen)
    held = collect_boxed_actors(episode, seen)
    owners, tube = np.unique(seen.instance, return_inverse=True)
    tubes = build_tubes_table(episode, seen.instance, seen.frame, places.way)
    number = dict(zip(owners.tolist(), range(len(owners)), strict=True))
    crowd = episode.config.preset == "chaos"
    deeds = build_crowd_labels(held) if crowd else build_road_labels(episode, seen, held, places)
    boxes = build_boxes_table(episode, seen, held, tube.astype(np.int64))
    heard = build_sounds_table(episode, boxes, number)
    labels = pl.concat([build_agent_labels(episode, seen, held), deeds]).sort("box", maintain_order=True)
    whole = Scenes(
        videos=_videos(episode, files or {}),
        frames=_frames(episode, seen),
        boxes=boxes.with_columns(sound=match_box_sounds(episode, boxes, number)),
        labels=labels,
        tubes=tubes,
        frame_labels=_frame_labels(episode),
        relations=build_relations_table(episode, tubes, number),
        queries=build_queries_table(episode, tubes, number),
        sounds=heard.table,
        sensors=build_sensors_table(episode),
        sweeps=build_sweeps_table(episode, sweeps),
        meta=_meta(episode, heard.words),
    )
    # The scenes with the tubes of every kind of label, and those of the own vehicle's actions.
    kinds = ["agent", "action"] if crowd else ["agent", "action", "location"]
    kinds += ["corner"] if "corner" in whole.meta.vocabularies else []
    cut = split_tubes_by_label(whole, kinds)
    if not crowd:
        cut = derive_composites(cut)
    # With a tube for each stretch of the own vehicle's action, which has no boxes.
    action = episode.ego.action
    run = np.cumsum(np.diff(action, prepend=action[:1]) != 0)
    spans = run_spans(run.astype(np.int64), np.arange(len(action), dtype=np.int64)).drop("run")
    largest: Any = cut.tubes["tube"].max()
    first = 0 if largest is None else int(largest) + 1
    rows = spans.with_columns(
        tube=pl.int_range(first, first + pl.len(), dtype=pl.Int64),
        video=pl.lit(episode.name),
        kind=pl.lit("av_action"),
    )
    label = pl.Series("label", action[rows["start_frame"].to_numpy()], dtype=pl.Int64)
    return cut.with_tables(
        tubes=pl.concat([cut.tubes, rows], how="diagonal_relaxed"),
        tube_labels=pl.concat([cut.tube_labels, rows.select("tube", "kind", label)], how="diagonal_relaxed"),
    )


def _videos(episode: Episode, files: Mapping[str, str]) -> pl.DataFrame:
    config, conditions = episode.config, episode.conditions
    row: dict[str, Any] = {
        "video": episode.name,
        "scene": episode.name,
        "width_px": config.camera.width_px,
        "height_px": config.camera.height_px,
        "fps": config.camera.fps,
        "n_frames": episode.n_frames,
        "category": episode.category,
        "splits": [f"default/{assign_split(episode.name)}"],
        "weather": conditions.weather,
        "time_of_day": conditions.time,
        "preset": config.preset,
        "configuration": config.name,
        "drive_on": config.surroundings.drive_on,
        **files,
    }
    types: dict[str, Any] = {"fps": pl.Float32, "category": pl.String, "splits": pl.List(pl.String)}
    return pl.DataFrame([row], schema_overrides=types)


def assign_split(name: str) -> str:
    """The split of a scene, by the number that its name ends with: of five, three for training.

    >>> [assign_split(f"road-{number:04d}") for number in range(5)]
    ['train', 'test', 'train', 'val', 'train']
    """
    digits = re.search(r"(\d+)$", name)
    # By its own number: a scene keeps its split when more are made.
    return _SPLITS[int(digits[1]) % len(_SPLITS) if digits else 0]


def _frames(episode: Episode, seen: Seen) -> pl.DataFrame:
    ego, fps = episode.ego, episode.config.camera.fps
    count = episode.n_frames
    cameras = [build_camera(ego, episode.config, frame, episode.seed) for frame in range(count)]
    poses = np.stack([each.world_SE3_camera.ravel() for each in cameras]).astype(np.float32)
    return pl.DataFrame(
        {
            "video": pl.Series([episode.name], dtype=pl.String).new_from_index(0, count),
            "frame": np.arange(count, dtype=np.int64),
            "t_s": (np.arange(count) / fps).astype(np.float32),
            "annotated": np.ones(count, dtype=bool),
            "ego_speed_kmh": (3.6 * ego.speed).astype(np.float32),
            "ego_acceleration_mps2": ego.acceleration.astype(np.float32),
            "ego_yaw_rate_radps": ego.yaw_rate.astype(np.float32),
            "traffic_light": _own_light(episode, seen),
            "world_SE3_ego": pl.Series(ego_poses(ego), dtype=pl.Array(pl.Float32, 16)),
            "world_SE3_camera": pl.Series(poses, dtype=pl.Array(pl.Float32, 16)),
        }
    )


def _own_light(episode: Episode, seen: Seen) -> pl.Series:
    """What the nearest light in sight that the own vehicle must obey shows, in the words of PIE."""
    found = ["n/a"] * episode.n_frames
    nearest = np.full(episode.n_frames, np.inf)
    words = {0: "red", 1: "yellow", 2: "green", 3: "n/a"}
    for signal in episode.signals:
        if not is_relevant_signal(episode, signal):
            continue
        for frame in seen.frame[seen.instance == len(episode.actors) + signal.number].tolist():
            away = float(np.hypot(*(signal.position[:2] - episode.ego.position[frame, :2])))
            if away < nearest[frame]:
                nearest[frame], found[frame] = away, words[int(signal.state[frame])]
    return pl.Series(found, dtype=pl.Enum(terms.TRAFFIC_LIGHT))


def _frame_labels(episode: Episode) -> pl.DataFrame:
    count = episode.n_frames
    return pl.DataFrame(
        {
            "video": pl.Series([episode.name], dtype=pl.String).new_from_index(0, count),
            "frame": np.arange(count, dtype=np.int64),
            "kind": pl.Series(["av_action"], dtype=pl.String).new_from_index(0, count),
            "label": episode.ego.action.astype(np.int64),
        }
    )


def _meta(episode: Episode, words: tuple[str, ...]) -> Meta:
    preset = episode.config.preset
    vocabularies = dict(terms.CROWD_VOCABULARIES if preset == "chaos" else terms.ROAD_VOCABULARIES)
    if preset == "corner-cases":
        vocabularies |= {"corner": terms.CORNER, "corner_super": terms.CORNER_SUPER}
    if words:
        vocabularies["sound"] = words
    notes: dict[str, Any] = {"made_up": True, "sampled_as": list(SAMPLED_AS)}
    composites: dict[str, tuple[str, ...]] = {}
    if preset != "chaos":
        composites = terms.COMPOSITES
        notes["children"] = {kind: terms.list_composite_parts(kind) for kind in composites}
    return Meta(DATASET, terms.LICENCE, vocabularies, composites, notes=notes)
