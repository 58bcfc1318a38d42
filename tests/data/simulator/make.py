"""Write a tiny simulation: two scenes of a few frames, whose tables are made without an image."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import small_street as street

from roadaware.scenes.store import save
from roadaware.simulator.actors import Mind
from roadaware.simulator.episode import Bond, Episode, Noise, Sentence
from roadaware.simulator.truth import Sweep, build_scene_tables

FORMAT = "tables"
VIDEO = "road-0001"
MAIN = f"scenes/{VIDEO}/tables/meta.json"
OTHERS = ["simulation.json"]
_ALONE = "where the only scene is damaged, nothing is left"
_WHOLE = "tables are whole, or the scene is refused"
EXCUSED = {
    "test_strict_refuses_a_bad_row": _WHOLE,
    "test_a_damaged_side_file_costs_no_video": _WHOLE,
    "test_mutants_of_files": _ALONE,
    "test_two_thousand_mutants_of_files": _ALONE,
    "test_case_11_hostile_name": "scenes have the names that the simulator gives; others are refused",
}


def make(root: Path, *, frames: int = 12) -> Path:
    """Write the simulation.

    Args:
        root: where to; made with its parents.
        frames: of each scene; at least 6 are made, which is half a second.
    """
    root.mkdir(parents=True, exist_ok=True)
    frames = max(frames, 6)
    names = ["road-0000", VIDEO]
    for name in names:
        episode = scene(name, frames)
        sweeps = [Sweep(frame, f"lidar/{frame:06d}.npz", 100 + frame) for frame in range(2)]
        tables = build_scene_tables(
            episode, street.assumed(episode), files={"path": "video.mp4"}, sweeps=sweeps
        )
        save(tables, root / "scenes" / name / "tables")
    head = {
        "format": "roadaware-simulation",
        "version": 1,
        "config": asdict(episode.config),
        "seed": 3,
        "scenes": names,
    }
    (root / "simulation.json").write_text(json.dumps(head))
    return root


def others_in(root: Path) -> list[str]:
    """The further files of the main video; tables are named by their content."""
    tables = sorted((root / "scenes" / VIDEO / "tables").glob("*.parquet"))
    return [*OTHERS, *(path.relative_to(root).as_posix() for path in tables)]


def scene(name: str, frames: int) -> Episode:
    """A car that comes, somebody who crosses, somebody who waits, a horn, a sentence and a bond."""
    mind = Mind(0.9, True, 0, 2, True, 3, "adult", "zebra")
    crossing = np.arange(frames) >= 3
    return street.situation(
        street.mover(0, "Car", (30.0, -street.VEHICLE), 180, 6.0, frames=frames),
        street.mover(
            1, "Ped", (16.0, 12.0), -90, 1.4, frames=frames, mind=mind, facts={"crossing": crossing}
        ),
        street.mover(2, "Ped", (20.0, street.PAVEMENT), -90, frames=frames, facts={"waiting": 1}),
        name=name,
        seconds=frames / street.FPS,
        bonds=(Bond(2, "watching", 1, 1, frames),),
        noises=(Noise("horn", 0, 0.0, 0.2),),
        sentences=(Sentence("somebody crosses the street", 1, 3, frames),),
    )


def _swapped(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(old, new, 1)


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": _swapped(b'"rows": ', b'"rows": 1'),
    "changed": _swapped(b'"rows": ', b'"rows": 1'),
    "same_size": _swapped(b"simulator", b"simulatoR"),
}
