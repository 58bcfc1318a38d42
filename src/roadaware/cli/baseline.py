"""`roadaware baseline`: what boxes alone tell, before anybody looks at a pixel."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.analysis.compare import compare
from roadaware.analysis.evaluation.pedestrians import get_config
from roadaware.analysis.evaluation.runs import Run
from roadaware.cli import console, outputs
from roadaware.cli.compare import build_comparison_json
from roadaware.cli.options import (
    USUAL,
    Common,
    ConfigName,
    Dataset,
    DatasetPath,
    Outcome,
    Output,
    Overwrite,
    Resamples,
    SampleConfig,
    Seed,
    Several,
    Stated,
    TaskName,
)
from roadaware.cli.results import write_result
from roadaware.config import from_dict
from roadaware.datasets.loading import sample_dataset
from roadaware.io import folders
from roadaware.metrics.pedestrians import PedestrianConfig, collect_sample_scores
from roadaware.reports import runs
from roadaware.reports.run_pages import format_headline, format_runs, run_page

if TYPE_CHECKING:
    from roadaware.analysis.compare import Comparison
    from roadaware.scenes.tables import Scenes
    from roadaware.tasks.pedestrians import Baseline

_MODELS = "Names of the baselines. [default: all that answer the task]"
_FOLDER = "Write the runs here: one folder per model, and a report."


def baseline(
    dataset: Dataset,
    path: DatasetPath,
    /,
    *,
    task: Annotated[TaskName, Parameter(help="What is asked.")] = "action",
    model: Annotated[list[str] | None, Parameter(name="--models", help=_MODELS), Several, Stated] = None,
    config: SampleConfig = "default",
    draws: Resamples = 1000,
    seed: Seed = 0,
    folder: Annotated[Path | None, Parameter(help=_FOLDER), Output, outputs.RESULT] = None,
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Train simple models on boxes and vehicle actions alone, and judge them on the test split.

    Logistic regression and gradient boosting for action; constant velocity and gradient boosting for
    risk. Trained on train, chosen on validation, never on test. A model of yours that uses pixels should
    beat them. Needs the folder or zip of the dataset.

    For example:

        roadaware baseline jaad JAAD-JAAD_2.0.zip --task action

        roadaware baseline jaad JAAD --task risk --config reference \\
            --models constant-velocity -o runs/risk
    """
    protocol = f"{dataset}-{task}@iv2024"
    scenes = sample_dataset(dataset, path, protocol, config)
    trained = train(scenes, task, config, draws=draws, seed=seed, models=model)
    found = [as_run(item, protocol, draws, seed, config) for item in trained.values()]
    pairs = compare_baselines(found, draws=draws, seed=seed)
    if folder is not None:
        save(found, pairs, folder, title=f"Baselines: {protocol}", overwrite=overwrite)
    head = f"{protocol}, config {config}: {len(found[0].state)} test samples"
    return Outcome(
        "\n\n".join([head, format_runs(found), *(format_headline(pair) for pair in pairs)]),
        _data(found, pairs),
    )


def train(
    scenes: Scenes, task: Any, config: ConfigName, *, draws: int, seed: int, models: list[str] | None = None
) -> dict[str, Baseline]:
    """The baselines of a task, trained and judged.

    Args:
        scenes: with samples of the task.
        task: action, intention or risk.
        config: how they are judged.
        draws: bootstrap resamples.
        seed: of the resamples.
        models: their names; all that answer the task where None.
    """
    from roadaware.tasks.pedestrians import evaluate_baselines as fitted

    chosen = get_config(config, task)
    with console.log_step(f"baselines for {task}"):
        return fitted(scenes, task, models, config=chosen, draws=draws, seed=seed)


def as_run(item: Baseline, protocol: str, draws: int, seed: int, config: ConfigName) -> Run:
    """A trained baseline as a run."""
    judged = from_dict(PedestrianConfig, item.metrics.config)
    state, _ = collect_sample_scores(item.predictions, item.scenes, judged.task)
    facts = {
        "config_name": config,
        "chosen": item.model.fitted.chosen,
        "sampling": item.scenes.meta.notes["protocol"],
    }
    return Run(item.name, state, judged, item.metrics, draws, seed, protocol, facts)


def compare_baselines(found: list[Run], *, draws: int, seed: int) -> list[Comparison]:
    """Every pair of runs on the same samples, the stronger-sounding order being that of the list."""
    if not draws:
        return []
    return [
        compare(b.state, a.state, a.config, draws=draws, seed=seed, names=(b.name, a.name))
        for a, b in itertools.combinations(found, 2)
    ]


def save(found: list[Run], pairs: list[Comparison], folder: Path, *, title: str, overwrite: bool) -> None:
    """One folder with a run folder per model and a page of all.

    Raises:
        DiskError, UsageError: as `folders.put_folder`.
    """
    with console.log_step("report"):
        files = {
            f"{run.name}/{name}": data
            for run in found
            for name, data in runs.build_run_files(run, run_page([run])).items()
        }
        files["report.html"] = run_page(found, pairs, title).encode("utf-8", errors="backslashreplace")
    marked = folders.add_marker(files, {"schema": runs.SCHEMA, **_data(found, pairs)})
    write_result(folder, marked, overwrite=overwrite)


def _data(found: list[Run], pairs: list[Comparison]) -> dict[str, Any]:
    return {
        "models": {run.name: runs.summarize_run(run) for run in found},
        "comparisons": [build_comparison_json(pair) for pair in pairs],
    }
