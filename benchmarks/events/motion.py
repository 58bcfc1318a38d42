"""The estimate of the own motion on rendered streets, beside the poses they were rendered from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from roadaware.models.event_head.features import EgoMotion
from roadaware.simulator.make import make_episode
from roadaware.simulator.mesh import build_camera
from roadaware.simulator.render import Stage, render
from roadaware.training.events.scenes import build_scene, draw_config, read_truth

_SCENES, _FRAMES, _SEED = 10, 36, 201


def print_motion() -> None:
    """Errors by scene: with the focal length and the horizon known, and with neither."""
    print("| light | known lens | no estimate | turn | upwards | log of speed's ratio | its spread |")
    print("|---|---|---|---|---|---|---|")
    for number in range(_SCENES):
        config = draw_config(_SEED, number, "usual")
        size = {"width_px": 480, "height_px": 360 if number % 2 else 270}
        config = replace(config, seconds=8.0, camera=replace(config.camera, **size))
        episode = make_episode(config, _SEED, number)
        truth, stage = read_truth(episode, build_scene(episode)), Stage(episode)
        first = 0 if number % 3 == 0 else episode.n_frames // 3
        frames = range(first, min(first + _FRAMES, episode.n_frames))
        pictures = []
        for frame in frames:
            camera = build_camera(episode.ego, config, frame, episode.seed)
            shown = render(stage.soup(frame), camera, episode.conditions, seed=episode.seed, frame=frame)
            pictures.append(shown.rgb)
        for known in (True, False):
            ego = EgoMotion(truth.focal_px if known else None)
            horizon = float(np.tan(np.radians(config.camera.pitch_deg))) if known else 0.0
            found = []
            for frame, picture in zip(frames, pictures, strict=True):
                motion = ego.step(picture, frame / truth.fps, horizon)
                ego.leave_out(truth.box[truth.frame == frame])
                told = (
                    (np.nan,) * 3 if motion is None else (motion.yaw_rps, motion.pitch_rps, motion.speed_mps)
                )
                found.append((truth.yaw_rps[frame], truth.pitch_rps[frame], truth.speed_mps[frame], *told))
            light = f"{episode.conditions.time}, {episode.conditions.weather}"
            _print_row(np.array(found[1:]), light, known=known)


def _print_row(found: np.ndarray[tuple[int, int], np.dtype[np.float64]], light: str, *, known: bool) -> None:
    there = np.isfinite(found[:, 3])
    off = np.abs(found[there, 3:] - found[there, :3])
    moving = found[there, 2] > 2
    ratio = np.log(np.maximum(found[there, 5], 1e-3) / np.maximum(found[there, 2], 1e-3))[moving]
    middle, spread = (f"{np.median(ratio):.2f}", f"{ratio.std():.2f}") if moving.any() else ("–", "–")
    yaw, pitch = (1e3 * np.median(off[:, k]) for k in range(2))
    print(
        f"| {light} | {'yes' if known else 'no'} | {1 - there.mean():.2f} | {yaw:.1f} | {pitch:.1f} | "
        f"{middle} | {spread} |",
        flush=True,
    )
