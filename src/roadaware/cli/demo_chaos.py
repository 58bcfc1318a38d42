"""The demo on a made-up crowd: four tasks, each judged under all of its configurations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.cli.demo_show import Shows
from roadaware.errors import InputError

if TYPE_CHECKING:
    from roadaware.cli.scene_runs import SceneRun
    from roadaware.cli.scene_tasks import SceneTask
    from roadaware.reports.page import Section
    from roadaware.scenes.tables import Scenes

FOLDER = "chaos"
_BLUR = 0.5
_UNFIT = {"hcstvg-official": "it counts every true box, and made-up people are boxed beyond their sentence"}
_TITLES = {
    "actions": "Who does what in a crowd",
    "relations": "Who does what to whom",
    "grounding": "When and where a sentence happens",
    "sound": "Where a sound comes from",
}


def chaos(
    output: Path, truth: Path, scenes: Scenes, show: Shows, draws: int, seed: int
) -> tuple[dict[str, Any], list[Section]]:
    """Make up a model that watches the crowd badly; judge four tasks, each in every way.

    Args:
        output: the demo's folder.
        truth: where the films of the crowd lie.
        scenes: what is true of them.
        show: prints the steps.
        draws: resamples of videos.
        seed: of the model and of the resamples.

    Returns:
        What was found, JSON-ready, and its sections of the report.
    """
    from roadaware.cli.scene_pages import run_section
    from roadaware.cli.scene_tables import runs_text
    from roadaware.cli.scene_tasks import TASKS
    from roadaware.scenes.demo.watched import watched
    from roadaware.scenes.store import save

    values: dict[str, Any] = {}
    sections = []
    for name, task in TASKS.items():
        claims = output / FOLDER / name
        save(watched(scenes, name, seed=seed, blur=_BLUR), claims, overwrite=True)
        show.step(
            f"{_TITLES[name]}, judged as published and as we recommend",
            f"evaluate {name} --truth {truth} --predictions {claims} --draws {draws}",
        )
        runs, lacking = _judged(task, truth, claims, draws, seed)
        show.say("\n".join([runs_text(runs), *lacking]))
        sections.append(run_section(runs[0]))
        values[name] = {run.config_name: run.result.values() for run in runs}
    return {"tasks": values}, sections


def _judged(
    task: SceneTask, truth: Path, claims: Path, draws: int, seed: int
) -> tuple[list[SceneRun], list[str]]:
    """The same claims under each named configuration, the first with pictures; and which do not apply."""
    from roadaware.cli.evaluate_scenes import Judging, scene_run
    from roadaware.cli.scene_inputs import Reading, opened
    from roadaware.cli.scene_tasks import config_named, config_names

    given = opened(task, truth, claims, Reading())
    runs: list[SceneRun] = []
    lacking: list[str] = []
    for place, name in enumerate(config_names(task)):
        if name in _UNFIT:
            lacking.append(f"   {name} does not apply: {_UNFIT[name]}")
            continue
        judging = Judging(config=name, draws=0 if place else draws, seed=seed)
        config = config_named(task, name)
        try:
            runs.append(scene_run(task, given, config, judging, claims, details=not place))
        except InputError as error:
            lacking.append(f"   {name} does not apply: {error.message}")
    return runs, lacking
