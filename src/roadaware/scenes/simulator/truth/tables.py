"""Tables: an episode and what was seen of it as Scenes, true to the pixel and to the frame."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from roadaware.scenes.composites import derive_composites
from roadaware.scenes.simulator.camera import camera_of
from roadaware.scenes.simulator.episode import Episode
from roadaware.scenes.simulator.truth import terms
from roadaware.scenes.simulator.truth.boxes import box_table, held_of, labelled
from roadaware.scenes.simulator.truth.crowds import crowd_labels, queries, relations, sounding, sounds
from roadaware.scenes.simulator.truth.labels import agent_labels, governs, road_labels
from roadaware.scenes.simulator.truth.places import Places
from roadaware.scenes.simulator.truth.seen import Seen
from roadaware.scenes.simulator.truth.sensing import Sweep, ego_poses, sensors, sweep_table
from roadaware.scenes.simulator.truth.tracks import tracks
from roadaware.scenes.stretches import run_spans, with_stretches
from roadaware.scenes.tables import Meta, Scenes

DATASET = "simulator"
SAMPLED_AS = ("jaad", "pie")
"""Whose protocols cut the pedestrians into samples."""
_SPLITS = ("train", "test", "train", "val", "train")


def scene_tables(
    episode: Episode,
    seen: Seen,
    *,
    files: Mapping[str, str] | None = None,
    sweeps: Sequence[Sweep] = (),
) -> Scenes:
    """The truth of one scene.

    Args:
        episode: the scene.
        seen: of all its frames.
        files: further columns of `videos`, such as `path`: names of files relative to the scene's folder.
        sweeps: of the LiDAR.
    """
    places = Places(episode.layout, episode.ego)
    seen = labelled(episode, seen)
    held = held_of(episode, seen)
    owners, tube = np.unique(seen.instance, return_inverse=True)
    tubes = tracks(episode, seen.instance, seen.frame, places.way)
    number = dict(zip(owners.tolist(), range(len(owners)), strict=True))
    crowd = episode.config.preset == "chaos"
    deeds = crowd_labels(held) if crowd else road_labels(episode, seen, held, places)
    boxes = box_table(episode, seen, held, tube.astype(np.int64))
    heard = sounds(episode, boxes, number)
    labels = pl.concat([agent_labels(episode, seen, held), deeds]).sort("box", maintain_order=True)
    whole = Scenes(
        videos=_videos(episode, files or {}),
        frames=_frames(episode, seen),
        boxes=boxes.with_columns(sound=sounding(episode, boxes, number)),
        labels=labels,
        tubes=tubes,
        frame_labels=_frame_labels(episode),
        relations=relations(episode, tubes, number),
        queries=queries(episode, tubes, number),
        sounds=heard.table,
        sensors=sensors(episode),
        sweeps=sweep_table(episode, sweeps),
        meta=_meta(episode, heard.words),
    )
    return _with_tubes(whole, episode, crowd=crowd)


def _with_tubes(scenes: Scenes, episode: Episode, *, crowd: bool) -> Scenes:
    """The scenes with the tubes of every kind of label, and those of the own vehicle's actions."""
    kinds = ["agent", "action"] if crowd else ["agent", "action", "location"]
    kinds += ["corner"] if "corner" in scenes.meta.vocabularies else []
    cut = with_stretches(scenes, kinds)
    if not crowd:
        cut = derive_composites(cut)
    return _with_own(cut, episode)


def _with_own(scenes: Scenes, episode: Episode) -> Scenes:
    """With a tube for each stretch of the own vehicle's action, which has no boxes."""
    action = episode.ego.action
    run = np.cumsum(np.diff(action, prepend=action[:1]) != 0)
    spans = run_spans(run.astype(np.int64), np.arange(len(action), dtype=np.int64)).drop("run")
    largest: Any = scenes.tubes["tube"].max()
    first = 0 if largest is None else int(largest) + 1
    rows = spans.with_columns(
        tube=pl.int_range(first, first + pl.len(), dtype=pl.Int64),
        video=pl.lit(episode.name),
        kind=pl.lit("av_action"),
    )
    label = pl.Series("label", action[rows["start_frame"].to_numpy()], dtype=pl.Int64)
    return scenes.with_tables(
        tubes=pl.concat([scenes.tubes, rows], how="diagonal_relaxed"),
        tube_labels=pl.concat(
            [scenes.tube_labels, rows.select("tube", "kind", label)], how="diagonal_relaxed"
        ),
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
        "splits": [f"default/{split_of(episode.name)}"],
        "weather": conditions.weather,
        "time_of_day": conditions.time,
        "preset": config.preset,
        "configuration": config.name,
        "drive_on": config.surroundings.drive_on,
        **files,
    }
    types: dict[str, Any] = {"fps": pl.Float32, "category": pl.String, "splits": pl.List(pl.String)}
    return pl.DataFrame([row], schema_overrides=types)


def split_of(name: str) -> str:
    """The split of a scene, by the number that its name ends with: of five, three for training.

    Args:
        name: of the scene.

    >>> [split_of(f"road-{number:04d}") for number in range(5)]
    ['train', 'test', 'train', 'val', 'train']
    """
    digits = re.search(r"(\d+)$", name)
    return _SPLITS[int(digits[1]) % len(_SPLITS) if digits else 0]


def _frames(episode: Episode, seen: Seen) -> pl.DataFrame:
    ego, fps = episode.ego, episode.config.camera.fps
    count = episode.n_frames
    cameras = [camera_of(ego, episode.config, frame, episode.seed) for frame in range(count)]
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
        if not governs(episode, signal):
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
        notes["children"] = {kind: terms.children(kind) for kind in composites}
    return Meta(DATASET, terms.LICENCE, vocabularies, composites, notes=notes)
