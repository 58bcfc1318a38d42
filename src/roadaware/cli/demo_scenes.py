"""The demo's made-up scenes: rendered on the spot, read like any data set, and shown."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.cli import console, datasets
from roadaware.cli.demo_show import Shows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from roadaware.reports.page import Section
    from roadaware.reports.picture import Picture
    from roadaware.scenes.simulator.studio import Order
    from roadaware.scenes.tables import Scenes

FOLDER = "made-up"
_SHOWN, _COLUMNS, _PICTURE_PX = 6, 3, 400
_FIRST_SEED = 3
"""That of the scenes in a demo of seed 0: the first of them differ in light and weather."""
LEARNT_SEEDS = (101, 102, 103)
"""Those of the scenes that the detector in `weights/` learnt from: a demo makes up others."""


@dataclass(frozen=True)
class Shooting:
    """What is made up of one preset.

    Args:
        scenes: how many.
        seconds: of each.
        size: width and height.
        fps: frames per second.
        bare: whether only tables and film are kept, without masks and sound.
    """

    scenes: int
    seconds: float
    size: tuple[int, int]
    fps: float
    bare: bool = False


SHOOTINGS = {
    "road": Shooting(4, 4.0, (320, 240), 12.0),
    "crossing": Shooting(10, 8.0, (256, 144), 10.0, bare=True),
    "chaos": Shooting(3, 4.0, (320, 180), 8.0),
}


def make_up(output: Path, show: Shows, seed: int) -> dict[str, Scenes]:
    """Make up scenes of each preset, and read them.

    Args:
        output: the demo's folder, without scenes of an earlier one.
        show: prints the steps.
        seed: of the demo; that of the scenes follows from it.

    Raises:
        DiskError: if they cannot be written.
    """
    from roadaware.scenes.simulator.studio import produce

    seed = seed_of(seed)
    commands = [_command(output, preset, seed) for preset in SHOOTINGS]
    show.step("Make up scenes that nobody has seen", commands[0])
    show.say("\n".join(f"   $ roadaware {command}" for command in commands[1:]))
    found = {}
    for preset, shooting in SHOOTINGS.items():
        root = output / FOLDER / preset
        with console.progress(f"making up {preset}") as progress:
            produce(_order(preset, shooting, seed), root, processes=_processes(), progress=progress)
        found[preset] = datasets.opened(datasets.MADE_UP, root)
    show.say("\n".join(f"   {preset}: {_sizes(scenes)}" for preset, scenes in found.items()))
    return found


def seed_of(seed: int) -> int:
    """The seed of the scenes of a demo: another for every demo, and none of `LEARNT_SEEDS`.

    Args:
        seed: of the demo, 0 or more.

    >>> seed_of(0), seed_of(97), seed_of(98)
    (3, 100, 103)
    """
    found = seed + _FIRST_SEED
    return found + len(LEARNT_SEEDS) if found >= min(LEARNT_SEEDS) else found


def scenes_section(output: Path, made: dict[str, Scenes]) -> Section:
    """Frames of every preset with what the tables say of them.

    Args:
        output: the demo's folder.
        made: the scenes by preset.
    """
    from roadaware.reports.page import Pictures, Section

    pictures = tuple(_picture(output / FOLDER / preset, preset, scenes) for preset, scenes in made.items())
    says = tuple(f"Made up {preset}: {_sizes(scenes)}." for preset, scenes in made.items())
    return Section("Made-up scenes", says, (Pictures(pictures),))


def _picture(root: Path, preset: str, scenes: Scenes) -> Picture:
    from roadaware.reports.sheet import sheet_picture

    frames: list[npt.NDArray[np.uint8]] = []
    names = [str(name) for name in scenes.videos["video"].to_list()]
    for place, name in enumerate(names[:_SHOWN]):
        more = place < _SHOWN % len(names) if len(names) < _SHOWN else 0
        frames += _frames(root, scenes, name, max(1, _SHOWN // len(names)) + more)
    told = f"Frames of {len(names)} made-up scenes with the boxes, actions and places that the tables hold."
    return sheet_picture(frames, _COLUMNS, title=f"{preset.capitalize()}, as made up", caption=told)


def _frames(root: Path, scenes: Scenes, video: str, count: int) -> list[npt.NDArray[np.uint8]]:
    """Some frames of a film, evenly over its length."""
    import numpy as np

    from roadaware.reports.drawing import drawn, marks_of, title_of
    from roadaware.scenes.media import VideoReader
    from roadaware.scenes.sensors import video_path

    marks, titles = marks_of(scenes, video), list(title_of(scenes, video))
    with VideoReader(video_path(scenes, root, video)) as reader:
        places = np.linspace(0, len(reader) - 1, count + 2)[1:-1].astype(int).tolist()
        scale = max(1, round(_PICTURE_PX / reader.width_px))
        return [drawn(reader.frame(at), marks.get(at, []), title=titles[at], scale=scale) for at in places]


def _order(preset: str, shooting: Shooting, seed: int) -> Order:
    from roadaware.scenes.simulator.film import Kept
    from roadaware.scenes.simulator.presets import config_of
    from roadaware.scenes.simulator.studio import Order

    config = config_of(preset)
    width, height = shooting.size
    camera = replace(config.camera, width_px=width, height_px=height, fps=shooting.fps)
    config = replace(config, seconds=shooting.seconds, camera=camera, sound=not shooting.bare)
    return Order(config, seed, shooting.scenes, Kept(masks=not shooting.bare))


def _command(output: Path, preset: str, seed: int) -> str:
    """The command that makes the same."""
    each = SHOOTINGS[preset]
    bare = " --no-masks --no-sound" if each.bare else ""
    size = "x".join(map(str, each.size))
    return (
        f"simulate --preset {preset} --scenes {each.scenes} --seconds {each.seconds:g} --size {size} "
        f"--fps {each.fps:g} --seed {seed}{bare} --out {output / FOLDER / preset}"
    )


def _sizes(scenes: Scenes) -> str:
    held: dict[str, Any] = scenes.filled()
    wanted = ("videos", "frames", "boxes", "labels", "relations", "queries", "sounds")
    return ", ".join(f"{len(held[name]):,} {name}" for name in wanted if name in held)


def _processes() -> int:
    return len(os.sched_getaffinity(0))
