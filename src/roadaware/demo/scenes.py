"""The demo on synthetic scenes: made on the spot, shown, and judged with simulated predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from roadaware import api
from roadaware.analysis.compare import compare_detections
from roadaware.analysis.evaluation import event_inputs
from roadaware.analysis.evaluation.events import EventRequest, evaluate_events
from roadaware.analysis.evaluation.scenes import (
    Reading,
    SceneRequest,
    evaluate_scene_inputs,
    open_scene_inputs,
)
from roadaware.analysis.event_results import select_means
from roadaware.analysis.excerpts import MOST_CLIPS
from roadaware.analysis.scene_tasks import TASKS, list_configs
from roadaware.cli import console
from roadaware.cli.options import ConfigName
from roadaware.datasets.loading import SYNTHETIC, open_dataset
from roadaware.demo_data.detector import Detector, simulate_detections
from roadaware.errors import InputError, UsageError
from roadaware.formats.road_detections import NETWORK_SIZE
from roadaware.io.parallel import Workers
from roadaware.io.video import VideoReader
from roadaware.online.crowd import open_crowd_questions
from roadaware.reports import terminal
from roadaware.reports.clips import draw_run
from roadaware.reports.copg import plot_sheet
from roadaware.reports.drawing import collect_marks, draw_marks, iterate_titles
from roadaware.reports.event_pages import build_event_run_section
from roadaware.reports.event_text import format_event_runs
from roadaware.reports.page import Pictures, Section
from roadaware.reports.scene_runs import build_scene_run_section
from roadaware.reports.scene_text import format_scene_runs
from roadaware.scenes.sensors import find_video_path
from roadaware.scenes.store import open_predictions, save
from roadaware.simulator.config import adapt_scene_config, build_scene_config
from roadaware.simulator.generate import Kept, Order, generate_scenes
from roadaware.tasks.crowd_answers import predict_crowd
from roadaware.tasks.videos import find_videos

if TYPE_CHECKING:
    import numpy.typing as npt

    from roadaware.analysis.compare import DetectionComparison
    from roadaware.analysis.evaluation.runs import EventRun, SceneRun
    from roadaware.demo.command import Demo
    from roadaware.reports.page import Picture
    from roadaware.scenes.tables import Predictions, Scenes


FOLDER = "synthetic"
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
        version: of the preset.
    """

    scenes: int
    seconds: float
    size: tuple[int, int]
    fps: float
    bare: bool = False
    version: int = 1


SHOOTINGS = {
    "road": Shooting(4, 4.0, (320, 240), 12.0),
    "crossing": Shooting(10, 8.0, (256, 144), 10.0, bare=True),
    "chaos": Shooting(3, 6.0, (640, 360), 5.0, version=2),
}


def make_up(demo: Demo) -> dict[str, Scenes]:
    """Simulate scenes of each preset, and read them; the scenes of an earlier demo are gone.

    Raises:
        DiskError: if they cannot be written.
    """
    seed, root = select_seed(demo.seed), demo.folder / FOLDER
    commands = [
        f"simulate --preset {preset}@{each.version} --scenes {each.scenes} --seconds {each.seconds:g} "
        f"--size {'x'.join(map(str, each.size))} --fps {each.fps:g} --seed {seed}"
        f"{' --no-masks --no-sound' * each.bare} --output {root / preset}"
        for preset, each in SHOOTINGS.items()
    ]
    demo.step("Simulate scenes that nobody has seen", commands[0])
    demo.say("\n".join(f"   $ roadaware {command}" for command in commands[1:]))
    found = {}
    for preset, each in SHOOTINGS.items():
        config = adapt_scene_config(
            build_scene_config(f"{preset}@{each.version}"),
            seconds=each.seconds,
            size=each.size,
            fps=each.fps,
            sound=not each.bare,
        )
        order = Order(config, seed, each.scenes, Kept(masks=not each.bare))
        with console.show_progress(f"simulating {preset}") as progress:
            generate_scenes(
                order,
                root / preset,
                workers=Workers(processes=len(os.sched_getaffinity(0))),
                progress=progress,
            )
        found[preset] = open_dataset(SYNTHETIC, root / preset)
    demo.say("\n".join(f"   {preset}: {_sizes(scenes)}" for preset, scenes in found.items()))
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


def build_scenes_section(demo: Demo, made: dict[str, Scenes]) -> Section:
    """Frames of every preset, whose scenes are given, with what the tables say of them."""
    images = tuple(_picture(demo.folder / FOLDER / preset, preset, scenes) for preset, scenes in made.items())
    says = tuple(f"Simulated {preset}: {_sizes(scenes)}." for preset, scenes in made.items())
    return Section("Synthetic scenes", says, (Pictures(images),))


def _picture(root: Path, preset: str, scenes: Scenes) -> Picture:
    frames: list[npt.NDArray[np.uint8]] = []
    names = [str(name) for name in scenes.videos["video"].to_list()]
    for place, name in enumerate(names[:_SHOWN]):
        more = place < _SHOWN % len(names) if len(names) < _SHOWN else 0
        frames += _frames(root, scenes, name, max(1, _SHOWN // len(names)) + more)
    text = f"Frames of {len(names)} synthetic scenes with the boxes, actions and places that the tables hold."
    return plot_sheet(frames, _COLUMNS, title=f"{preset.capitalize()}, as simulated", caption=text)


def _frames(root: Path, scenes: Scenes, video: str, count: int) -> list[npt.NDArray[np.uint8]]:
    """Some frames of a video, evenly over its length."""
    marks, titles = collect_marks(scenes, video), list(iterate_titles(scenes, video))
    with VideoReader(find_video_path(scenes, root, video)) as reader:
        places = np.linspace(0, len(reader) - 1, count + 2)[1:-1].astype(int).tolist()
        scale = max(1, round(_PICTURE_PX / reader.width_px))
        return [
            draw_marks(reader.frame(at), marks.get(at, []), title=titles[at], scale=scale) for at in places
        ]


def _sizes(scenes: Scenes) -> str:
    held: dict[str, Any] = scenes.filled()
    wanted = ("videos", "frames", "boxes", "labels", "relations", "queries", "sounds")
    return ", ".join(f"{len(held[name]):,} {name}" for name in wanted if name in held)


# The demo on a synthetic crowd: four tasks, each judged under all of its configurations.

CHAOS_FOLDER = "chaos"
_UNFIT = {"hcstvg-official": "it counts every true box, and synthetic people are boxed beyond their sentence"}
_TITLES = {
    "actions": "Who does what in a crowd",
    "relations": "Who does what to whom",
    "grounding": "When and where a sentence happens",
    "sound": "Where a sound comes from",
}


def run_chaos(demo: Demo, truth: Path, scenes: Scenes) -> tuple[dict[str, Any], list[Section]]:
    """Ask the bundled network of crowds about the true people of the crowd; score four tasks, each in every way.

    Args:
        demo: under way.
        truth: where the videos of the crowd lie.
        scenes: what is true of them.

    Returns:
        What was found, JSON-ready, and its sections of the report; where no network can be asked, why.
    """
    values: dict[str, Any] = {}
    sections = []
    try:
        answers = ask_about_crowds(demo, truth, scenes)
    except (InputError, UsageError) as error:
        demo.say(f"   crowds are left out: {error}")
        return {"left_out": str(error)}, []
    for name, task in TASKS.items():
        predictions = demo.folder / CHAOS_FOLDER / name
        save(answers[name], predictions, overwrite=True)
        demo.step(
            f"{_TITLES[name]}, judged as published and as we recommend",
            f"evaluate {name} --truth {truth} --predictions {predictions} --resamples {demo.resamples}",
        )
        given = open_scene_inputs(task, truth, predictions, Reading())
        runs: list[SceneRun] = []
        lacking: dict[str, str] = {}
        for place, how in enumerate(list_configs(task)):
            if how in _UNFIT:
                lacking[how] = _UNFIT[how]
                continue
            # The first config gets intervals and images.
            request = SceneRequest(
                how, resamples=0 if place else demo.resamples, seed=demo.seed, details=not place
            )
            try:
                runs.append(evaluate_scene_inputs(task, given, request))
            except InputError as error:
                lacking[how] = error.message
        unfit = [f"   {how} does not apply: {why}" for how, why in lacking.items()]
        demo.say("\n".join([format_scene_runs(runs), *unfit]))
        sections.append(build_scene_run_section(runs[0]))
        values[name] = {run.config_name: run.result.values() for run in runs}
    return {"tasks": values}, sections


def ask_about_crowds(demo: Demo, truth: Path, scenes: Scenes) -> Mapping[str, Predictions]:
    """What the bundled network of crowds answers about true people, sentences and sounds, by task.

    Raises:
        UsageError: if torch is not installed, or no network was bundled.
        InputError: if a video cannot be read.
    """
    for library in ("torch", "safetensors"):
        if find_spec(library) is None:
            raise UsageError(f"{library} is not installed: pip install 'roadaware[models]'")
    asked = open_crowd_questions(None)
    films, _ = find_videos(scenes, truth)
    demo.say(
        f"\n   The bundled network of crowds looks at {len(films)} videos, and is asked about true people."
    )
    with console.show_progress("the network of crowds") as progress:
        found = predict_crowd(asked.network, scenes, films, asked.clips, progress=progress)
    return {str(task): answers for task, answers in found.items()}


# The demo on road events: detections in synthetic videos linked to tubes by both builders, and judged.

EVENTS_FOLDER, DETECTIONS = "events", "detections"
_BUILDERS: dict[ConfigName, str] = {"reference": "published builder", "default": "corrected builder"}
BOX_OVERLAP, _OVERLAPS = "0.5", ("0.2", "0.5")


def run_events(demo: Demo, truth: Path, scenes: Scenes) -> tuple[dict[str, Any], list[Section]]:
    """Simulate a detector that sees the videos badly; link, score, compare.

    Returns:
        What was found, JSON-ready, and its sections of the report.
    """
    from roadaware.reports.events import build_event_comparison_section

    root = demo.folder / EVENTS_FOLDER
    detections = root / DETECTIONS
    with console.log_step("a detector"):
        found = simulate_detections(scenes, seed=demo.seed, detector=Detector(size=None))
        save(found, detections, overwrite=True)
    facts = {
        "videos": len(scenes.videos),
        "boxes": len(scenes.boxes),
        "tracks": scenes.boxes["tube"].n_unique(),
        "detections": len(found.boxes),
    }
    demo.step(
        "Link detections to tubes", f"link {detections} --truth {truth} --config default --output TUBES"
    )
    demo.say("   {detections:,} detections of {boxes:,} boxes of {tracks:,} road users".format(**facts))
    runs = []
    for config, name in _BUILDERS.items():
        save(api.link(open_predictions(detections), config), root / config, overwrite=True)
        details = config == "default"
        runs.append(judge_tubes(demo, truth, root / config, name, config, _OVERLAPS, details=details))
    command = f"evaluate road --truth {truth} --predictions {root / 'default'} --resamples {demo.resamples}"
    demo.step("Score road events: the published tube builder beside the corrected one", command)
    demo.say(format_event_runs(runs))
    first, second = reversed(runs)
    gains = compare_detections(
        first.matches,
        second.matches,
        first.config,
        resamples=max(demo.resamples, 1),
        seed=demo.seed,
        names=(first.name, second.name),
    )
    demo.say("\n" + _gains(gains))
    values = {run.name: get_means(run) for run in runs}
    return {"facts": facts, "runs": values}, [
        build_event_run_section(first),
        build_event_comparison_section(gains),
    ]


def judge_tubes(
    demo: Demo, truth: Path, tubes: Path, name: str, folder: str, overlaps: Sequence[str], *, details: bool
) -> EventRun:
    """Saved tubes judged as we recommend, boxes at 0.5.

    Args:
        demo: under way.
        truth: where the videos lie.
        tubes: the folder of the tables.
        name: of the model.
        folder: what the predictions are called in the report.
        overlaps: thresholds of tubes.
        details: whether worst tubes, errors and clips of them are wanted too.
    """
    whole = event_inputs.open_truth(truth, "road")
    request = EventRequest(
        "road",
        frame_thresholds=(BOX_OVERLAP,),
        video_thresholds=overlaps,
        resamples=demo.resamples,
        seed=demo.seed,
        details=details,
        clips=MOST_CLIPS if details else 0,
        media=(truth,),
    )
    # Sizes are those of images in detection files; tables have pixels of the videos.
    opened = [event_inputs.open_predictions(tubes, whole, NETWORK_SIZE)]
    run = evaluate_events(whole, event_inputs.select_split(whole, None), opened, request, name=name)
    drawn: EventRun = draw_run(run)
    return replace(drawn, facts={**run.facts, "predictions": [folder]})


def _gains(found: DetectionComparison) -> str:
    """How far the tubes of the two builders are apart, kind by kind."""
    rows = found.table.filter(
        pl.col("level") == "video", pl.col("threshold") == "0.2", pl.col("label").is_null()
    )
    messages = [
        f"{row['kind']}: {100 * row['difference']:+.1f} points "
        f"{terminal.format_interval(100 * row['low_video'], 100 * row['high_video'], 1, row['caution_video'])}"
        for row in rows.drop_nulls(["difference", "low_video"]).iter_rows(named=True)
    ]
    lines = terminal.format_bullets(messages)
    return "\n".join([f"dAP by error type, in video-mAP at 0.2:\n{lines}", *terminal.list_cautions(lines)])


def get_means(run: EventRun) -> dict[str, float | None]:
    """The means of the run in per cent."""
    return {
        f"{kind}, {column.words}": None if value.value is None else 100 * value.value
        for (kind, column), value in select_means(run.summary).cells.items()
    }
