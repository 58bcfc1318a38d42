"""`roadaware baseline`: what boxes alone tell, before anybody looks at a pixel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from roadaware.analysis.baselines import build_baseline_run, compare_baselines, train_baselines
from roadaware.cli import console, outputs
from roadaware.cli.options import (
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
from roadaware.datasets.loading import sample_dataset
from roadaware.reports.run_pages import build_baseline_files, summarize_baselines
from roadaware.reports.run_text import format_headline, format_runs

if TYPE_CHECKING:
    pass

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
    trained = train_baselines(scenes, task, config, draws=draws, seed=seed, models=model)
    found = [build_baseline_run(item, protocol, draws, seed, config) for item in trained.values()]
    pairs = compare_baselines(found, draws=draws, seed=seed)
    if folder is not None:
        with console.log_step("report"):
            files = build_baseline_files(found, pairs, f"Baselines: {protocol}")
        write_result(folder, files, overwrite=overwrite)
    head = f"{protocol}, config {config}: {len(found[0].state)} test samples"
    text = "\n\n".join([head, format_runs(found), *(format_headline(pair) for pair in pairs)])
    return Outcome(text, summarize_baselines(found, pairs))
