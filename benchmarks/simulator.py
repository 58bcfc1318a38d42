"""The simulator: images, sweeps and whole scenes a second, on one core."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache

from benchmarks.measure import call, python
from roadaware.simulator.config import Conditions, LidarConfig, SceneConfig, build_scene_config
from roadaware.simulator.episode import Episode
from roadaware.simulator.make import make_episode
from roadaware.simulator.mesh import build_camera
from roadaware.simulator.render import Stage, render
from roadaware.simulator.sensors import lidar_pose, simulate_sweep

_Row = tuple[str, str, str]
_FRAMES = range(20, 140, 6)


def simulator_pictures() -> _Row:
    """A busy street by day and in a rainy night: triangles put together and rendered."""
    told = []
    for size, bar in (((320, 240), 40), ((960, 720), 10)):
        for time, weather in (("day", "clear"), ("night", "rain")):
            episode = _busy(size, Conditions(time, weather))  # type: ignore[arg-type]
            stage = Stage(episode)
            _filmed(episode, stage)
            seconds = call(lambda e=episode, s=stage: _filmed(e, s), times=2).seconds
            told.append(f"{size[0]}x{size[1]} {time} {weather} {len(_FRAMES) / seconds:.0f} (bar {bar})")
    return "simulator: frames/s of a busy street", "40; 10", ", ".join(told)


def simulator_sweep() -> _Row:
    """A sweep of 64 rings and 900 columns."""
    episode = _busy((320, 240), Conditions())
    stage, config = Stage(episode), LidarConfig()
    soup, pose = stage.around(60, 100.0), lidar_pose(episode.ego, config, 60)
    simulate_sweep(soup, pose, config, seed=0, frame=60)
    found = call(lambda: simulate_sweep(soup, pose, config, seed=0, frame=60), times=10)
    return (
        "simulator: a sweep of 64 x 900",
        "40 ms",
        f"{found.seconds * 1e3:.1f} ms ({len(soup):,} triangles)",
    )


def simulator_scene() -> _Row:
    """A scene of 20 s, 320x240 at 12 frames per second, with video, masks, sound and tables."""
    code = """
import sys
from dataclasses import replace
from pathlib import Path
from roadaware.simulator.config import build_scene_config
from roadaware.simulator.generate import Order, generate_scenes
config = build_scene_config("road")
config = replace(config, camera=replace(config.camera, width_px=320, height_px=240))
generate_scenes(Order(config), Path(sys.argv[1]) / "made")
"""
    costs = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            costs.append(python(code, folder))
    best = min(costs, key=lambda cost: cost.seconds)
    return (
        "simulator: a 20 s scene saved",
        "10 s",
        f"{best.seconds:.1f} s, {(best.peak_mb or 0) / 1e3:.2f} GB",
    )


@cache
def _busy(size: tuple[int, int], conditions: Conditions) -> Episode:
    config: SceneConfig = build_scene_config("road")
    camera = replace(config.camera, width_px=size[0], height_px=size[1])
    behaviour = replace(config.behaviour, vehicles=12.0, pedestrians=12.0)
    return make_episode(replace(config, camera=camera, behaviour=behaviour, conditions=conditions), 3, 0)


def _filmed(episode: Episode, stage: Stage) -> None:
    for frame in _FRAMES:
        soup = stage.soup(frame)
        camera = build_camera(episode.ego, episode.config, frame, episode.seed)
        render(soup, camera, episode.conditions, seed=episode.seed, frame=frame)


BENCHMARKS = (simulator_pictures, simulator_sweep, simulator_scene)
