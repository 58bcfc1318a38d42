"""`roadaware simulate`: make up scenes with exact truth, videos, masks, sweeps and sound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, get_args

from cyclopts import Parameter

from roadaware.analysis.evaluation.event_inputs import parse_size
from roadaware.cli import console, outputs
from roadaware.cli.options import LOCAL, WHOLE_SEED, Outcome, Output, Spread, Switch, validate_range
from roadaware.errors import UsageError
from roadaware.reports import terminal
from roadaware.simulator.config import Conditions, TimeOfDay, Weather, adapt_scene_config, build_scene_config
from roadaware.simulator.generate import Kept, Order, generate_scenes

_PRESET = (
    "What is simulated: road, crossing, corner-cases, chaos or kerb; a version may follow, as road@2. [default "
    "version: the first]"
)
_DOMAIN = "The town: city-a, city-b, night-rain, snow-suburb, low-sun. [default: the preset's]"
_OUT = "Where the scenes go: a new or empty folder, or one of the same command, which is continued."
_SIZE = "Width and height of the images, even. [default: the preset's]"
_TIME = "Time of day: day, dusk or night. [default: sampled for each scene; day where --weather is given]"
_WEATHER = (
    "clear, overcast, rain, snow or low-sun. [default: sampled for each scene; clear where --time is given]"
)
_LIDAR = "Simulate a LiDAR, or none. [default: the preset's]"
_PROCESSES = "Scenes at a time; 0 for as many as there are cores."
_TABLES_ONLY = "Render nothing: everybody is a plain block, and only the tables are written, much sooner."
_SEED = "Of the scenes: the same seed makes the same."
_MOST_SCENES = 100_000


def simulate(
    *,
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.SIMULATION],
    preset: Annotated[str, Parameter(help=_PRESET)] = "road",
    domain: Annotated[str | None, Parameter(help=_DOMAIN)] = None,
    scenes: Annotated[int, Parameter(help="How many.", validator=validate_range(1, _MOST_SCENES))] = 1,
    seed: Annotated[int, Parameter(help=_SEED, validator=WHOLE_SEED)] = 0,
    seconds: Annotated[float | None, Parameter(help="Length of each scene.")] = None,
    size: Annotated[str | None, Parameter(help=_SIZE)] = None,
    fps: Annotated[float | None, Parameter(help="Frames per second.")] = None,
    time: Annotated[str | None, Parameter(help=_TIME)] = None,
    weather: Annotated[str | None, Parameter(help=_WEATHER)] = None,
    lidar: Annotated[bool | None, Parameter(help=_LIDAR, negative="--no-lidar")] = None,
    depth: Annotated[bool, Parameter(help="Also keep the distance of every pixel."), Switch] = False,
    no_masks: Annotated[bool, Parameter(help="Keep no masks."), Switch] = False,
    no_sound: Annotated[bool, Parameter(help="A video without sound."), Switch] = False,
    tables_only: Annotated[bool, Parameter(help=_TABLES_ONLY), Switch] = False,
    processes: Annotated[int, Parameter(help=_PROCESSES, validator=validate_range(0, 10_000))] = 0,
    spread: Spread = LOCAL,
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
    )
    if time is not None or weather is not None:
        for said, known, name in ((time, TimeOfDay, "--time"), (weather, Weather, "--weather")):
            if said is not None and said not in get_args(known):
                raise UsageError(f"{name} is one of {', '.join(get_args(known))}, not {said!r}")
        record: dict[str, Any] = {"time": time, "weather": weather}
        then = replace(
            config.conditions or Conditions(),
            **{name: said for name, said in record.items() if said is not None},
        )
        if then.time == "night" and then.weather == "low-sun":
            raise UsageError("the sun is not low at night: choose another --time or --weather")
        config = replace(config, conditions=then)
    kept = Kept.tables_alone() if tables_only else Kept(masks=not no_masks, depth=depth)
    if tables_only and (depth or lidar):
        raise UsageError("--tables-only draws nothing: leave --depth and --lidar away")
    order, workers = Order(config, seed, scenes, kept), spread.gather(processes)
    with console.show_progress("simulating") as shown:
        made = generate_scenes(order, out, workers=workers, progress=shown)
    console.print_note(f"wrote {out}")
    data = {"folder": str(out), "config": config.name, "seed": seed, "scenes": scenes, "made": made}
    camera, name = config.camera, terminal.format_cell(str(out))
    lines = [
        f"{scenes:,} scene{'s' * (scenes > 1)} of {config.name}, {config.seconds:g} s at {camera.fps:g} "
        f"frames per second, {camera.width_px}x{camera.height_px}; {made:,} made now",
        f"  roadaware read simulator {name}",
        f"  roadaware draw {name}",
    ]
    return Outcome("\n".join(lines), data)
