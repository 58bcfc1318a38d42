"""What the parts of the demo tell of their steps to."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl

from roadaware.analysis.compare import compare_detections
from roadaware.analysis.evaluation.event_inputs import open_predictions, open_truth, select_split
from roadaware.analysis.evaluation.events import EventRequest, evaluate_events
from roadaware.analysis.evaluation.scenes import (
    Reading,
    SceneRequest,
    evaluate_scene_inputs,
    open_scene_inputs,
)
from roadaware.analysis.event_results import select_means
from roadaware.analysis.scene_tasks import TASKS, list_configs
from roadaware.cli import console, datasets
from roadaware.cli.options import ConfigName
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.demo_data.watched import simulate_predictions
from roadaware.errors import InputError
from roadaware.io.video import VideoReader
from roadaware.linking.link import link
from roadaware.linking.linker_choice import select_linker_config
from roadaware.reports import terminal
from roadaware.reports.copg import plot_sheet
from roadaware.reports.drawing import collect_marks, draw_marks, iterate_titles
from roadaware.reports.event_pages import build_event_run_section
from roadaware.reports.event_text import format_event_runs
from roadaware.reports.page import Pictures, Section
from roadaware.reports.scene_runs import build_scene_run_section
from roadaware.reports.scene_text import format_scene_runs
from roadaware.scenes.sensors import find_video_path
from roadaware.scenes.store import save
from roadaware.simulator.config import build_scene_config
from roadaware.simulator.generate import Kept, Order, generate_scenes

if TYPE_CHECKING:
    import numpy.typing as npt

    from roadaware.analysis.compare import DetectionComparison
    from roadaware.analysis.evaluation.runs import EventRun, SceneRun
    from roadaware.analysis.scene_tasks import SceneTask
    from roadaware.reports.picture import Picture
    from roadaware.scenes.tables import Scenes


class Shows(Protocol):
    """What prints the steps of the demo."""

    def step(self, title: str, command: str) -> None:
        """A new step, and the command that would do it alone."""

    def say(self, words: str) -> None:
        """A part of the result."""


# The demo's synthetic scenes: rendered on the spot, read like any dataset, and shown.

FOLDER = "made-up"
_SHOWN, _COLUMNS, _PICTURE_PX = 6, 3, 400
_FIRST_SEED = 3
"""That of the scenes in a demo of seed 0: the first of them differ in light and weather."""
LEARNT_SEEDS = (101, 102, 103)
"""Those of the scenes that the detector in `weights/` learnt from: a demo makes up others."""


@dataclass(frozen=True)
class Shooting:
    """What is simulated of one preset.

    Args:
        scenes: how many.
        seconds: of each.
        size: width and height.
        fps: frames per second.
        bare: whether only tables and video are kept, without masks and sound.
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
    """Simulate scenes of each preset, and read them.

    Args:
        output: the demo's folder, without scenes of an earlier one.
        show: prints the steps.
        seed: of the demo; that of the scenes follows from it.

    Raises:
        DiskError: if they cannot be written.
    """

    seed = select_seed(seed)
    commands = [_command(output, preset, seed) for preset in SHOOTINGS]
    show.step("Simulate scenes that nobody has seen", commands[0])
    show.say("\n".join(f"   $ roadaware {command}" for command in commands[1:]))
    found = {}
    for preset, shooting in SHOOTINGS.items():
        root = output / FOLDER / preset
        with console.show_progress(f"making up {preset}") as progress:
            generate_scenes(_order(preset, shooting, seed), root, processes=_processes(), progress=progress)
        found[preset] = datasets.open_dataset(datasets.MADE_UP, root)
    show.say("\n".join(f"   {preset}: {_sizes(scenes)}" for preset, scenes in found.items()))
    return found


def select_seed(seed: int) -> int:
    """The seed of the scenes of a demo: another for every demo, and none of `LEARNT_SEEDS`.

    Args:
        seed: of the demo, 0 or more.

    >>> select_seed(0), select_seed(97), select_seed(98)
    (3, 100, 104)
    """
    found = seed + _FIRST_SEED
    return found + len(LEARNT_SEEDS) if found >= min(LEARNT_SEEDS) else found


def build_scenes_section(output: Path, made: dict[str, Scenes]) -> Section:
    """Frames of every preset with what the tables say of them.

    Args:
        output: the demo's folder.
        made: the scenes by preset.
    """

    pictures = tuple(_picture(output / FOLDER / preset, preset, scenes) for preset, scenes in made.items())
    says = tuple(f"Simulated {preset}: {_sizes(scenes)}." for preset, scenes in made.items())
    return Section("Synthetic scenes", says, (Pictures(pictures),))


def _picture(root: Path, preset: str, scenes: Scenes) -> Picture:

    frames: list[npt.NDArray[np.uint8]] = []
    names = [str(name) for name in scenes.videos["video"].to_list()]
    for place, name in enumerate(names[:_SHOWN]):
        more = place < _SHOWN % len(names) if len(names) < _SHOWN else 0
        frames += _frames(root, scenes, name, max(1, _SHOWN // len(names)) + more)
    told = f"Frames of {len(names)} synthetic scenes with the boxes, actions and places that the tables hold."
    return plot_sheet(frames, _COLUMNS, title=f"{preset.capitalize()}, as simulated", caption=told)


def _frames(root: Path, scenes: Scenes, video: str, count: int) -> list[npt.NDArray[np.uint8]]:
    """Some frames of a video, evenly over its length."""

    marks, titles = collect_marks(scenes, video), list(iterate_titles(scenes, video))
    with VideoReader(find_video_path(scenes, root, video)) as reader:
        places = np.linspace(0, len(reader) - 1, count + 2)[1:-1].astype(int).tolist()
        scale = max(1, round(_PICTURE_PX / reader.width_px))
        return [
            draw_marks(reader.frame(at), marks.get(at, []), title=titles[at], scale=scale) for at in places
        ]


def _order(preset: str, shooting: Shooting, seed: int) -> Order:

    config = build_scene_config(preset)
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
        f"--fps {each.fps:g} --seed {seed}{bare} --output {output / FOLDER / preset}"
    )


def _sizes(scenes: Scenes) -> str:
    held: dict[str, Any] = scenes.filled()
    wanted = ("videos", "frames", "boxes", "labels", "relations", "queries", "sounds")
    return ", ".join(f"{len(held[name]):,} {name}" for name in wanted if name in held)


def _processes() -> int:
    return len(os.sched_getaffinity(0))


# The demo on a synthetic crowd: four tasks, each judged under all of its configurations.

CHAOS_FOLDER = "chaos"
_BLUR = 0.5
_UNFIT = {"hcstvg-official": "it counts every true box, and synthetic people are boxed beyond their sentence"}
_TITLES = {
    "actions": "Who does what in a crowd",
    "relations": "Who does what to whom",
    "grounding": "When and where a sentence happens",
    "sound": "Where a sound comes from",
}


def run_chaos(
    output: Path, truth: Path, scenes: Scenes, show: Shows, draws: int, seed: int
) -> tuple[dict[str, Any], list[Section]]:
    """Simulate a model that watches the crowd badly; score four tasks, each in every way.

    Args:
        output: the demo's folder.
        truth: where the videos of the crowd lie.
        scenes: what is true of them.
        show: prints the steps.
        draws: resamples of videos.
        seed: of the model and of the resamples.

    Returns:
        What was found, JSON-ready, and its sections of the report.
    """

    values: dict[str, Any] = {}
    sections = []
    for name, task in TASKS.items():
        claims = output / CHAOS_FOLDER / name
        save(simulate_predictions(scenes, name, seed=seed, blur=_BLUR), claims, overwrite=True)
        show.step(
            f"{_TITLES[name]}, judged as published and as we recommend",
            f"evaluate {name} --truth {truth} --predictions {claims} --resamples {draws}",
        )
        runs, lacking = _evaluate_configs(task, truth, claims, draws, seed)
        show.say("\n".join([format_scene_runs(runs), *lacking]))
        sections.append(build_scene_run_section(runs[0]))
        values[name] = {run.config_name: run.result.values() for run in runs}
    return {"tasks": values}, sections


def _evaluate_configs(
    task: SceneTask, truth: Path, claims: Path, draws: int, seed: int
) -> tuple[list[SceneRun], list[str]]:
    """The same predictions under each named configuration, the first with images; and which do not apply."""

    inputs = open_scene_inputs(task, truth, claims, Reading())
    runs: list[SceneRun] = []
    lacking: list[str] = []
    for place, name in enumerate(list_configs(task)):
        if name in _UNFIT:
            lacking.append(f"   {name} does not apply: {_UNFIT[name]}")
            continue
        request = SceneRequest(name, draws=0 if place else draws, seed=seed, details=not place)
        try:
            runs.append(evaluate_scene_inputs(task, inputs, request))
        except InputError as error:
            lacking.append(f"   {name} does not apply: {error.message}")
    return runs, lacking


# The demo on road events: detections in synthetic videos linked to tubes by both builders, and judged.

EVENTS_FOLDER, DETECTIONS = "events", "detections"
_CONFIGS: tuple[ConfigName, ...] = ("reference", "default")
_NAMES: dict[ConfigName, str] = {"reference": "published builder", "default": "corrected builder"}
_THRESHOLDS: dict[str, Any] = {"frame_thresholds": ("0.5",), "video_thresholds": ("0.2", "0.5")}
_SIZE = (682, 512)
"""Of images in detection files; tables have pixels of the videos."""


def run_events(
    output: Path, truth: Path, scenes: Scenes, show: Shows, draws: int, seed: int
) -> tuple[dict[str, Any], list[Section]]:
    """Simulate a detector that sees the videos badly; link, score, compare.

    Args:
        output: the demo's folder.
        truth: where the videos lie.
        scenes: what is true of them.
        show: prints the steps.
        draws: resamples of videos.
        seed: of the detector and of the resamples.

    Returns:
        What was found, JSON-ready, and its sections of the report.
    """
    from roadaware.reports.events import build_event_comparison_section

    root = output / EVENTS_FOLDER
    detections = root / DETECTIONS
    with console.log_step("a detector"):
        claims = simulate_detections(scenes, seed=seed, detector=Detector(size=None))
        save(claims, detections, overwrite=True)
    facts = {
        "videos": len(scenes.videos),
        "boxes": len(scenes.boxes),
        "tracks": scenes.boxes["tube"].n_unique(),
        "detections": len(claims.boxes),
    }
    show.step(
        "Link detections to tubes", f"link {detections} --truth {truth} --config default --output TUBES"
    )
    show.say("   {detections:,} detections of {boxes:,} boxes of {tracks:,} road users".format(**facts))
    runs = [_linked_and_judged(root, truth, detections, config, draws, seed) for config in _CONFIGS]
    command = f"evaluate road --truth {truth} --predictions {root / 'default'} --resamples {draws}"
    show.step("Score road events: the published tube builder beside the corrected one", command)
    show.say(format_event_runs(runs))
    first, second = reversed(runs)
    matches = (first.matches, second.matches)
    names = (first.name, second.name)
    found = compare_detections(*matches, first.config, draws=max(draws, 1), seed=seed, names=names)
    show.say("\n" + _gains(found))
    values = {run.name: get_means(run) for run in runs}
    return {"facts": facts, "runs": values}, [
        build_event_run_section(first),
        build_event_comparison_section(found),
    ]


def _linked_and_judged(
    root: Path, truth: Path, detections: Path, config: ConfigName, draws: int, seed: int
) -> EventRun:
    """Tubes built under one config, saved, and judged as we recommend."""

    whole = open_truth(truth, "road")
    tubes = link(open_predictions(detections, whole, _SIZE).tables, select_linker_config(config, "road"))
    save(tubes, root / config, overwrite=True)
    opened = [open_predictions(root / config, whole, _SIZE)]
    request = EventRequest("road", draws=draws, seed=seed, details=config == "default", **_THRESHOLDS)
    return evaluate_events(whole, select_split(whole, None), opened, request, name=_NAMES[config])


def _gains(found: DetectionComparison) -> str:
    """How far the tubes of the two builders are apart, kind by kind."""

    rows = found.table.filter(
        pl.col("level") == "video", pl.col("threshold") == "0.2", pl.col("label").is_null()
    )
    told = [
        f"{row['kind']}: {100 * row['difference']:+.1f} points "
        f"{terminal.format_interval(100 * row['low_video'], 100 * row['high_video'], 1, row['caution_video'])}"
        for row in rows.drop_nulls(["difference", "low_video"]).iter_rows(named=True)
    ]
    lines = terminal.format_bullets(told)
    return "\n".join([f"dAP by error type, in video-mAP at 0.2:\n{lines}", *terminal.list_cautions(lines)])


def get_means(run: EventRun) -> dict[str, float | None]:
    """The means of the run in per cent."""

    return {
        f"{kind}, {column.words}": None if value.value is None else 100 * value.value
        for (kind, column), value in select_means(run.summary).cells.items()
    }
