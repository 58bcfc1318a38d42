"""`roadaware simulate`: make up scenes with exact truth, videos, masks, sweeps and sound; `draw` shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from roadaware.analysis.evaluation.event_inputs import parse_size
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    ALL_LOCAL,
    CONTINUED,
    WHOLE_SEED,
    Outcome,
    Output,
    Several,
    Stated,
    Switch,
    WideSpread,
    validate_range,
)
from roadaware.datasets import read
from roadaware.errors import UsageError
from roadaware.io.folders import make_folder
from roadaware.reports import terminal
from roadaware.reports.drawing import draw_video
from roadaware.simulator.config import TimeOfDay, Weather, adapt_scene_config, build_scene_config
from roadaware.simulator.generate import Kept, Order, generate_scenes

_PRESET = (
    "What is simulated: road, crossing, corner-cases, chaos or kerb; a version may follow, as road@2. [default "
    "version: the first]"
)
_DOMAIN = "The town: city-a, city-b, night-rain, snow-suburb, low-sun. [default: the preset's]"
_SIZE = "Width and height of the images, even. [default: the preset's]"
_TIME = "Time of day. [default: sampled for each scene; day where --weather is given]"
_WEATHER = "Weather of all scenes. [default: sampled for each scene; clear where --time is given]"
_LIDAR = "Simulate a LiDAR, or none. [default: the preset's]"
_TABLES_ONLY = "Render nothing: everybody is a plain block, and only the tables are written, much sooner."
_SEED = "Of the scenes: the same seed makes the same."
_MOST_SCENES = 100_000


def simulate(
    *,
    out: Annotated[Path, Output, Parameter(help=CONTINUED), outputs.SIMULATION],
    preset: Annotated[str, Parameter(help=_PRESET)] = "road",
    domain: Annotated[str | None, Parameter(help=_DOMAIN)] = None,
    scenes: Annotated[int, Parameter(help="How many.", validator=validate_range(1, _MOST_SCENES))] = 1,
    seed: Annotated[int, Parameter(help=_SEED, validator=WHOLE_SEED)] = 0,
    seconds: Annotated[float | None, Parameter(help="Length of each scene. [default: the preset's]")] = None,
    size: Annotated[str | None, Parameter(help=_SIZE)] = None,
    fps: Annotated[float | None, Parameter(help="Frames per second. [default: the preset's]")] = None,
    time: Annotated[TimeOfDay | None, Parameter(help=_TIME)] = None,
    weather: Annotated[Weather | None, Parameter(help=_WEATHER)] = None,
    lidar: Annotated[bool | None, Parameter(help=_LIDAR, negative="--no-lidar")] = None,
    depth: Annotated[bool, Parameter(help="Also keep the distance of every pixel."), Switch] = False,
    no_masks: Annotated[bool, Parameter(help="Keep no masks."), Switch] = False,
    no_sound: Annotated[bool, Parameter(help="A video without sound."), Switch] = False,
    tables_only: Annotated[bool, Parameter(help=_TABLES_ONLY), Switch] = False,
    spread: WideSpread = ALL_LOCAL,
) -> Outcome:
    """Simulate road scenes: a town, its road users, and what a camera, LiDAR and microphone record.

    Every scene has a video with sound, masks of instances and classes, and the truth of every task as tables:
    `roadaware read simulator DIR` opens them, `roadaware draw DIR` shows them. The same command with the same
    seed makes the same scenes; interrupted, it goes on where it was when it is given again.

    For example:

        roadaware simulate --preset road --scenes 4 --seed 0 --output synthetic

        roadaware simulate --preset crossing --domain night-rain --scenes 20 \\
            --size 320x240 --fps 12 --output night

        roadaware simulate --scenes 1000 --on ray --output synthetic
    """
    config = adapt_scene_config(
        build_scene_config(preset, domain),
        seconds=seconds,
        size=None if size is None else parse_size(size),
        fps=fps,
        lidar=False if tables_only else lidar,
        sound=not (no_sound or tables_only),
        time=time,
        weather=weather,
    )
    kept = Kept.tables_alone() if tables_only else Kept(masks=not no_masks, depth=depth)
    if tables_only and (depth or lidar):
        raise UsageError("--tables-only draws nothing: leave --depth and --lidar away")
    order, workers = Order(config, seed, scenes, kept), spread.gather(usual=0)
    with console.show_progress("simulating") as shown:
        made = generate_scenes(order, out, workers=workers, progress=shown)
    console.print_note(f"wrote {out}")
    data = {"folder": str(out), "config": config.name, "seed": seed, "scenes": scenes, "made": made}
    camera, name = config.camera, terminal.format_word(out)
    lines = [
        f"{scenes:,} scene{'s' * (scenes > 1)} of {config.name}, {config.seconds:g} s at {camera.fps:g} "
        f"frames per second, {camera.width_px}x{camera.height_px}; {made:,} made now",
        f"  roadaware read simulator {name}",
        f"  roadaware draw {name}",
    ]
    return Outcome("\n".join(lines), data)


# `roadaware draw`: videos and contact sheets with what the tables say drawn on them.

_DRAW_OUT = "Folder for the videos and contact sheets. [default: draw_marks inside SCENES]"


def draw(
    folder: Annotated[Path, Parameter(help="A folder that `simulate` wrote.")],
    /,
    *,
    out: Annotated[Path | None, Output, Parameter(help=_DRAW_OUT), outputs.FOLDER] = None,
    videos: Annotated[
        tuple[str, ...], Parameter(help="Names of videos. [default: all]"), Several, Stated
    ] = (),
    frames: Annotated[int, Parameter(help="Images on a sheet.", validator=validate_range(1, 400))] = 12,
    no_video: Annotated[
        bool, Parameter(help="Write no video, the contact sheets alone.", negative=""), Switch
    ] = False,
) -> Outcome:
    """Draw boxes, agents, actions and places on synthetic videos, and a contact sheet of each scene.

    Of crowds also who does what to whom, as arrows, what is heard of whom or from out of sight, and below the image the
    sentences that hold.

    For example:

        roadaware draw synthetic

        roadaware draw synthetic --videos road-0000 --frames 24 --no-video --output images
    """
    target = out or folder / "drawn"
    outputs.FOLDER.check(target)

    with console.log_step("reading"):
        scenes = read("simulator", folder)
    names = [str(name) for name in scenes.videos["video"].to_list()]
    unknown = [name for name in videos if name not in names]
    if unknown:
        raise UsageError(f"no video {unknown[:3]} in {folder}; there are {', '.join(names[:5])}, ...")
    make_folder(target)
    written: list[str] = []
    with console.show_progress("drawing") as shown:
        for place, name in enumerate(videos or names):
            written += draw_video(scenes, folder, name, target, frames, film=not no_video)
            shown(place + 1, len(videos or names))
    lines = [
        f"wrote {len(written)} files to {terminal.format_cell(str(target))}",
        *(f"  {name}" for name in written),
    ]
    return Outcome("\n".join(lines), {"folder": str(target), "files": written})
