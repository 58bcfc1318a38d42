"""The laws of truth on scenes as they are rendered, swept and heard, and their statistics by class."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest

from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes
from roadaware.simulator.actors import AGENTS, AV_ACTIONS, Actor
from roadaware.simulator.config import build_scene_config
from roadaware.simulator.episode import Episode
from roadaware.simulator.make import make_episode
from roadaware.simulator.mesh import Camera, build_camera
from roadaware.simulator.render import Stage, render
from roadaware.simulator.sensors import lidar_pose, simulate_sweep
from roadaware.simulator.sound import RATE, render_audio
from roadaware.simulator.truth import SeenCollector, build_scene_tables, count_labels, simulate_block_view
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS

EVERY = 4
NOISE_M, MIRROR_M = 0.1, 0.2
ROAD_AGENTS = {
    "Ped": 228757, "Car": 120955, "TL": 70199, "Cyc": 63186, "MedVeh": 29514, "OthTL": 20656, "Bus": 12826,
    "LarVeh": 9534, "Mobike": 3163, "EmVeh": 352,
}  # fmt: skip
"""Boxes of each agent class in ROAD (Singh et al., table 15)."""


def episode_of(preset: str, number: int, size: tuple[int, int] = (320, 240), **more: object) -> Episode:
    config = build_scene_config(preset)
    camera = replace(config.camera, width_px=size[0], height_px=size[1])
    return make_episode(replace(config, camera=camera, **more), 0, number)


def filmed(episode: Episode, frames: range) -> tuple[Scenes, dict[int, np.ndarray]]:
    """The tables of some frames as they are rendered, and the instance masks."""
    stage, collector, masks = Stage(episode), SeenCollector(episode), {}
    for frame in frames:
        camera, soup = build_camera(episode.ego, episode.config, frame, episode.seed), stage.soup(frame)
        picture = render(soup, camera, episode.conditions, seed=episode.seed, frame=frame)
        collector.add(frame, camera, picture, soup)
        masks[frame] = picture.instance
    return build_scene_tables(episode, collector.seen()), masks


@cache
def street(number: int) -> tuple[Episode, Scenes, dict[int, np.ndarray]]:
    episode = episode_of("road", number, seconds=4.0)
    return episode, *filmed(episode, range(0, episode.n_frames, 12))


def rows_with_instance(scenes: Scenes) -> list[dict[str, object]]:
    return scenes.boxes.join(scenes.tubes.select("tube", "instance"), on="tube").to_dicts()


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 3])
def test_boxes_enclose_their_masks_and_visible_boxes_are_those_of_the_masks(number: int) -> None:
    _, scenes, masks = street(number)
    rows = rows_with_instance(scenes)
    assert len(rows) > 15
    for row in rows:
        y, x = np.nonzero(masks[row["frame"]] == row["instance"])
        outline = [x.min(), y.min(), x.max() + 1, y.max() + 1]
        assert [row[f"visible_{name}"] for name in CORNERS] == outline
        # A pixel is drawn where its middle is covered.
        box = [row[name] for name in CORNERS]
        assert all(box[k] <= outline[k] + 1 for k in (0, 1))
        assert all(box[k] >= outline[k] - 1 for k in (2, 3))


def test_occlusion_is_the_share_of_pixels_that_others_take() -> None:
    episode, scenes, masks = street(0)
    frame = 24
    stage = Stage(episode)
    camera, soup = build_camera(episode.ego, episode.config, frame, episode.seed), stage.soup(frame)
    checked = 0
    for row in rows_with_instance(scenes):
        if row["frame"] != frame:
            continue
        own = soup.instance == row["instance"]
        alone = replace(soup, **{name: getattr(soup, name)[own] for name in vars(soup)})
        bare = render(alone, camera, episode.conditions, seed=episode.seed, frame=frame).instance
        share = (masks[frame] == row["instance"]).sum() / max((bare == row["instance"]).sum(), 1)
        assert row["visible_share"] == pytest.approx(min(share, 1.0), abs=0.04)
        expected = "none" if share > 0.77 else "part" if 0.27 < share < 0.73 else None
        assert expected is None or row["occlusion"] == expected
        checked += 1
    assert checked >= 3


@pytest.mark.slow
def test_points_of_the_lidar_lie_in_the_boxes_of_those_they_hit_and_on_their_pixels() -> None:
    episode = episode_of("corner-cases", 2, seconds=1.0)
    config = episode.config.lidar
    assert config is not None
    frame, stage = 3, Stage(episode)
    pose = lidar_pose(episode.ego, config, frame)
    found = simulate_sweep(stage.around(frame, config.range_m), pose, config, seed=episode.seed, frame=frame)
    xyz = np.column_stack([found.points[:, :3].astype(np.float64), np.ones(len(found))]) @ pose.T
    hit = 0
    for actor in episode.actors:
        row, mine = actor.at(frame), found.instance == actor.number + 1
        if row is None or not mine.any():
            continue
        away = xyz[mine, :3] - actor.position[row]
        c, s = np.cos(actor.heading[row]), np.sin(actor.heading[row])
        long, wide, high = actor.size_m
        beyond = np.abs(away[:, 1] * c - away[:, 0] * s) - wide / 2
        assert (np.abs(away[:, 0] * c + away[:, 1] * s) < long / 2 + NOISE_M).all(), actor.kind
        assert (beyond < MIRROR_M + NOISE_M).all(), actor.kind
        assert (beyond > NOISE_M).mean() < 0.05, "only mirrors stick out"
        assert (away[:, 2] > -NOISE_M).all()
        assert (away[:, 2] < high + NOISE_M).all(), actor.kind
        hit += 1
    assert hit >= 8
    camera = build_camera(episode.ego, episode.config, frame, episode.seed)
    mask = render(stage.soup(frame), camera, episode.conditions, seed=episode.seed, frame=frame).instance
    assert on_their_pixels(camera, mask, xyz[:, :3], found.instance) > 0.9


def on_their_pixels(camera: Camera, mask: np.ndarray, xyz: np.ndarray, instance: np.ndarray) -> float:
    """Share of the points of actors in the image that land on, or beside, a pixel of the same actor."""
    pixels, depth = camera.project(xyz[instance > 0])
    names = instance[instance > 0]
    inside = (depth > 1) & (pixels >= 1).all(1) & (pixels < np.array(mask.shape[::-1]) - 1).all(1)
    x, y = pixels[inside].astype(int).T
    same = [mask[y + dy, x + dx] == names[inside] for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    return float(np.any(same, axis=0).mean())


def on_foot(episode: Episode) -> list[Actor]:
    return [actor for actor in episode.actors if actor.kind == "Ped" and actor.mind is not None]


@pytest.mark.slow
def test_crossing_and_event_frames_are_those_of_the_motion() -> None:
    ways = {"crossing": 0, "not-crossing": 0, "irrelevant": 0}
    for number in (0, 6):
        _check_minds(number, ways)
    assert ways["crossing"] >= 2
    assert ways["not-crossing"] >= 3


def _check_minds(number: int, ways: dict[str, int]) -> None:
    camera = replace(build_scene_config("crossing").camera, width_px=320, height_px=180, fps=10.0)
    episode = make_episode(replace(build_scene_config("crossing"), seconds=9.0, camera=camera), 0, number)
    tracks = build_scene_tables(episode, simulate_block_view(episode)).tubes.drop_nulls("instance").to_dicts()
    tubes = {row["instance"] - 1: row for row in tracks}
    for actor in on_foot(episode):
        mind = actor.mind
        assert mind is not None
        # The edge of the pavement is where the ground goes down.
        below = np.flatnonzero(actor.position[:, 2] < 0.055)
        if mind.crossing is not None:
            step = mind.crossing - actor.first
            assert abs(int(below[0]) - step) <= 3, "the first step down is the frame of crossing"
            assert actor.facts["crossing"][step]
            assert not actor.facts["crossing"][:step].any()
            assert mind.start <= mind.critical < mind.crossing
        else:
            assert not actor.facts["crossing"].any()
        row = tubes.get(actor.number)
        if row is None:
            continue
        ways[row["crossing"]] += 1
        if row["crossing"] == "crossing":
            assert row["crossing_point"] == mind.crossing
            assert met_ahead(episode, actor)
            if row["event_source"] == "annotated":
                assert row["event_frame"] == mind.crossing
            assert row["wants"]


def met_ahead(episode: Episode, actor: Actor) -> bool:
    """Whether somebody is before the own vehicle when they are in its way, or last seen on the road."""
    on = np.flatnonzero(actor.facts["crossing"] != 0)
    on = on[: int(np.argmax(np.diff(on) > 1)) + 1] if (np.diff(on) > 1).any() else on
    frame = on + actor.first
    away = actor.position[on, :2] - episode.ego.position[frame, :2]
    heading = episode.ego.heading[frame]
    ahead = away[:, 0] * np.cos(heading) + away[:, 1] * np.sin(heading)
    left = np.abs(away[:, 1] * np.cos(heading) - away[:, 0] * np.sin(heading))
    near = np.flatnonzero(left < 1.6)
    return bool(ahead[near[0] if len(near) else -1] > 3.0)


def test_the_side_on_which_a_scene_is_louder_is_that_of_who_is_heard() -> None:
    checked = 0
    for number in (1, 6):
        episode = episode_of("road", number, seconds=3.0)
        others = [n for n in episode.noises if n.actor is not None and n.end_s - n.start_s > 0.7]
        for noise in others:
            actor = episode.actors[noise.actor]
            frames = np.arange(round(noise.start_s * 12), min(round(noise.end_s * 12), episode.n_frames))
            away = actor.position[frames - actor.first, :2] - episode.ego.position[frames, :2]
            heading = episode.ego.heading[frames]
            left = away[:, 1] * np.cos(heading) - away[:, 0] * np.sin(heading)
            share = left / np.hypot(*away.T)
            if not ((share > 0.15).all() or (share < -0.15).all()):
                continue
            alone = replace(episode, noises=(noise,), conditions=replace(episode.conditions, weather="clear"))
            samples = np.concatenate(list(render_audio(alone)))[
                frames[0] * RATE // 12 : frames[-1] * RATE // 12
            ]
            left_ear, right_ear = np.sqrt((samples.astype(np.float64) ** 2).mean(0))
            assert (left_ear > right_ear) == bool(share[0] > 0), noise
            checked += 1
    assert checked >= 3


def rank(counts: list[int]) -> np.ndarray:
    return np.argsort(np.argsort(-np.array(counts), kind="stable"), kind="stable")


@pytest.mark.slow
def test_every_class_occurs_in_fifty_scenes_and_few_of_them_often_as_in_road() -> None:
    parts = []
    for number in range(50):
        episode = episode_of("road", number, sound=False)
        parts.append(count_labels(filmed(episode, range(0, episode.n_frames, EVERY))[0]))
    table = (
        pl.concat(parts).group_by("kind", "label", maintain_order=True).agg(pl.col("boxes", "frames").sum())
    )
    shown = {
        kind: {row["label"]: row["boxes"] or row["frames"] for row in rows.iter_rows(named=True)}
        for (kind,), rows in table.group_by("kind")
    }
    for kind, words in (
        ("agent", AGENTS),
        ("action", ACTIONS),
        ("location", LOCATIONS),
        ("av_action", AV_ACTIONS),
    ):
        counts = shown[kind]
        assert [word for word in words if not counts.get(word)] == [], kind
        most = sorted(counts.values(), reverse=True)
        assert sum(most[: max(2, len(most) // 4)]) > 0.45 * sum(most), f"{kind}: a few make up about half"
        assert most[-1] < 0.05 * most[0], f"{kind}: the rarest are rare"
    ours = rank([shown["agent"][name] for name in ROAD_AGENTS])
    theirs = rank(list(ROAD_AGENTS.values()))
    assert np.corrcoef(ours, theirs)[0, 1] > 0.85
    assert shown["action"]["Wait2X"] < shown["action"]["MovAway"]
    assert (
        shown["action"]["Red"]
        > shown["action"]["Green"]
        > shown["action"]["Amber"]
        > shown["action"]["Black"]
    )
    assert shown["av_action"]["AV-Mov"] > shown["av_action"]["AV-Stop"] > shown["av_action"]["AV-MovRht"]
