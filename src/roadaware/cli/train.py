"""`roadaware train`: a recipe becomes a trained detector, or predictors judged on test; `baseline`: from boxes alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import polars as pl
from cyclopts import Parameter

from roadaware.analysis.baselines import build_baseline_run, compare_baselines, train_baselines
from roadaware.analysis.evaluation.runs import Run
from roadaware.cli import console, outputs
from roadaware.cli.options import (
    Dataset,
    DatasetPath,
    Outcome,
    Output,
    Resamples,
    SampleConfig,
    Seed,
    Several,
    Stated,
    Switch,
    TaskName,
)
from roadaware.cli.results import UNKEPT, ResultFolder
from roadaware.config import digest
from roadaware.datasets.loading import sample_dataset
from roadaware.errors import Terminated, UsageError
from roadaware.io import folders
from roadaware.io.csv import format_csv
from roadaware.metrics.pedestrians import collect_sample_scores, evaluate_samples
from roadaware.metrics.scores import SampleScores
from roadaware.models import MODELS
from roadaware.reports import runs
from roadaware.reports.run_pages import (
    build_baseline_files,
    format_headline,
    format_runs,
    run_page,
    summarize_baselines,
)
from roadaware.reports.training_text import format_detector, format_predictors, format_recipes
from roadaware.training.crowd.recipe import CrowdRecipe
from roadaware.training.pedestrians.failures import FailedSeedsError, group_errors
from roadaware.training.pedestrians.recipe import PedestrianRecipe
from roadaware.training.recipe import REFINER, is_torchrun

_RECIPE = (
    "The recipe: a YAML file, or the name of one that comes along (those of configs/), such as objects-road; "
    "several where they are of predictors."
)
_WEIGHTS = (
    "What a detector begins with, instead of what its recipe says: a name of `models list`, a checkpoint, or "
    "the folder of an object detector."
)
_OUT = "Folder of the run, or of a folder for each of several. [default: in runs/]"
_SET = (
    "Fields of the recipe with other values, such as schedule.lr=0.001 data.roots=[a,b]; a text is taken whole, with "
    "any # in it."
)
_ON = "A file with samples that recipes of predictors learn from instead of their own."
_SIGTERM = 15
_LAST = "last.ckpt"
_RESAMPLES = 1000


def train(
    recipe: Annotated[list[Path], Parameter(help=_RECIPE)],
    /,
    *,
    out: Annotated[Path | None, Output, Parameter(help=_OUT), outputs.FOLDER] = None,
    resume: Annotated[bool, Parameter(help="Go on from the folder's last checkpoint."), Switch] = False,
    weights: Annotated[str | None, Parameter(help=_WEIGHTS)] = None,
    on: Annotated[Path | None, Parameter(help=_ON)] = None,
    changes: Annotated[list[str] | None, Parameter(name="--set", help=_SET), Several] = None,
) -> Outcome:
    """Train what a recipe names: a detector of road events, a network of crowds, or a predictor of what
    pedestrians will do.

    A detector learns from videos and annotations. Its folder holds checkpoints, a log of every step and, in
    the end, the detector as model.safetensors (an object detector of transformers as a folder, model/) with
    its card. Ctrl-C saves and ends; the same command with --resume goes on as if nothing had happened. Processes
    that torchrun starts (`torchrun --standalone --nproc-per-node 2 -m roadaware train ...`) share each batch.

    The model box-refiner gives a detector of people a second look at each of them, which says where the body ends.

    A recipe with `tasks` makes a network of crowds, which says what people do (actions), what they do to
    others (relations), where and when a sentence happens (grounding) and where a sound comes from (sound),
    from videos with any of these annotations. Its folder also holds its predictions on what it is judged on,
    which `evaluate` takes.

    A recipe with a `task` (action, intention or risk) makes a predictor for each of its seeds, keeps each as
    it was at its best on validation, and judges them and their mean on test. Ctrl-C saves and ends; the same
    command goes on. A seed that fails leaves the others, with exit code 1. Several such recipes give one
    table, beside the rows that were printed; one that fails leaves the others. Recipes may also name models
    on hand features, such as boosting. --on FILE gives all of them other samples to learn from and be judged
    on, such as those in configs/pedestrians/on/; --set replaces what both say.

    For example:

        roadaware train simulator --output runs/compact --set data.roots=synthetic

        roadaware train simulator --output runs/compact --set data.roots=synthetic --resume

        roadaware train objects-road --weights rtdetr-r18 --set data.roots=ROAD/road_trainval_v1.0.json \\
            data.media=ROAD

        roadaware train intellicare --set data.roots=synthetic data.validation_split=default/test

        roadaware train steady-jaad --set samples.root=JAAD-JAAD_2.0.zip

        roadaware train configs/pedestrians/*-jaad.yaml --output runs/jaad

        roadaware train crossing-jaad \\
            --on configs/pedestrians/on/pie.yaml --set samples.root=PIE
    """
    from roadaware.training.recipe_files import find_recipe, read_recipe  # YAML, of the extra `models`

    read = [read_recipe(find_recipe(path), changes or (), on=on, weights=weights) for path in recipe]
    predictors = [each for each in read if isinstance(each, PedestrianRecipe)]
    if predictors and len(predictors) < len(read):
        raise UsageError("recipes of detectors and of predictors are not trained by one command")
    if predictors and is_torchrun():
        raise UsageError("torchrun spreads the training of detectors alone; train predictors without it")
    if len(predictors) == 1 and predictors[0].network.name not in MODELS:
        return _train_predictors(predictors[0], out)
    if predictors:
        return _train_several(predictors, out or Path("runs"))
    if len(read) > 1:
        raise UsageError("several recipes at once are for predictors of pedestrians; these are of detectors")
    chosen = next(each for each in read if not isinstance(each, PedestrianRecipe))
    folder = out or Path("runs") / chosen.name
    outputs.FOLDER.check(folder)
    if (folder / _LAST).exists() and not resume:
        # Before the loop is loaded, which says the same and takes a while.
        raise UsageError(f"{folder} holds a run: go on with --resume, or name another folder with --output")
    if chosen.model.weights:
        chosen.model.weights_path()  # said at once, before the data are read
    with console.show_progress("training") as progress:
        if isinstance(chosen, CrowdRecipe):
            from roadaware.training.crowd.run import train_crowd

            came = train_crowd(chosen, folder, resume=resume, progress=progress)
        elif chosen.model.name == REFINER:
            from roadaware.training.refine import train_refiner

            came = train_refiner(chosen, folder, resume=resume, progress=progress)
        else:
            from roadaware.training.loop import train as train_detector

            came = train_detector(chosen, folder, resume=resume, progress=progress)
    if came.stopped is not None:
        if came.first:
            console.print_note(
                f"saved step {came.step:,} of {came.steps:,}; the same command with --resume goes on"
            )
        raise Terminated if came.stopped == _SIGTERM else KeyboardInterrupt
    if not came.first:
        return Outcome("")
    data = {
        "folder": str(came.folder),
        "steps": came.steps,
        "model": str(came.model),
        "metrics": came.metrics,
    }
    return Outcome(format_detector(came), data)


def _train_predictors(recipe: PedestrianRecipe, out: Path | None) -> Outcome:
    """Train predictors of one recipe by seed, judge them on test, and write the numbers into the folder."""
    from roadaware.training.pedestrians.run import evaluate_run, train_predictors

    folder = out or Path("runs") / f"{recipe.name}-{digest(recipe)[:8]}"
    with console.show_progress("training") as progress:
        trained = train_predictors(recipe, folder, progress)
    with console.log_step("judging on test"):
        judged = evaluate_run(trained, resamples=_RESAMPLES)
    data = {
        "folder": str(folder),
        "protocol": recipe.samples.protocol,
        "config": recipe.samples.config,
        "network": recipe.network.name,
        "validation": {str(seed): value for seed, value in trained.validation.items()},
        "failed": {str(seed): why for seed, why in trained.failed.items()},
        "test": {name: metrics.values() for name, metrics in judged.metrics.items()},
        "ahead": judged.ahead,
        "notes": list(judged.notes),
    }
    folders.write_text(folder / "results.json", folders.encode_json(data))
    said = judged.predictions.get("mean", next(iter(judged.predictions.values())))
    _write_test_run(recipe, collect_sample_scores(said, judged.scenes, recipe.task)[0], folder)
    why, seeds = None, len(recipe.seeds)
    if trained.failed:
        why = f"{len(trained.failed)} of {seeds} seeds failed; the others stand in the results"
    return Outcome(format_predictors(folder, trained, judged), data, why)


TEST = "test"
"""The run folder inside that of a recipe, of the mean of its seeds' probabilities."""


def _write_test_run(recipe: PedestrianRecipe, said: SampleScores, folder: Path) -> None:
    """Write the scores of the test samples as a run folder, which `compare`, `report` and `calibration` take."""
    result = evaluate_samples(said, recipe.metrics, resamples=_RESAMPLES)
    facts = {"config_name": recipe.samples.config}
    run = Run(recipe.name, said, recipe.metrics, result, _RESAMPLES, 0, recipe.samples.protocol, facts)
    files = runs.build_run_files(run, run_page([run]))
    folders.write_result_folder(folder / TEST, files, overwrite=True)


# Several recipes for pedestrians: one table of all, beside the printed rows.


def _train_several(recipes: Sequence[PedestrianRecipe], folder: Path) -> Outcome:
    """Train each in a folder of its own, judge on test, and put all numbers into one table.

    Raises:
        UsageError: if two recipes are the same.
        FailedSeedsError: if nothing came of any of several.
        RoadawareError: whatever is wrong with a single one.
    """
    from roadaware.training.pedestrians.results import RESULTS, group_results, keep
    from roadaware.training.pedestrians.several import run_several

    ran = []
    with console.show_progress("training") as progress:
        for each in run_several(
            recipes, folder, resamples=_RESAMPLES, progress=_among(len(recipes), progress)
        ):
            ran.append(each)
            if each.said is not None:
                _write_test_run(each.recipe, each.said, each.folder)
    failed = {each.recipe.name: list(each.failed) for each in ran if each.failed}
    held = [each.rows for each in ran if each.rows is not None]
    if not held:
        alike = group_errors({name: why[0] for name, why in failed.items()})
        text = "; ".join(f"{names}: {why}" for names, why in alike.items())
        raise FailedSeedsError(f"nothing came of any recipe. {text}")
    rows = pl.concat(held)
    notes = {each.recipe.name: list(each.notes) for each in ran if each.notes}
    models = group_results(rows)
    data = {"folder": str(folder), "models": models, "failed": failed, "notes": notes}
    same = rows.select(*RESULTS)
    folders.write_text(folder / "results.json", folders.encode_json({**data, "models": group_results(same)}))
    folders.write_text(folder / "results.csv", format_csv(same.with_columns(pl.selectors.float().round(6))))
    keep(folder, rows)
    why = f"{len(failed)} of {len(recipes)} recipes failed, or a seed of them did; the others stand in the results"
    return Outcome(format_recipes(models, ran, folder), data, why if failed else None)


def _among(n: int, shown: console.Progress) -> Callable[[PedestrianRecipe], Callable[[int, int, str], None]]:
    """Who is to be told how far each of n recipes is: the bar is of all of them."""
    places = iter(range(n))

    def asked(recipe: PedestrianRecipe) -> Callable[[int, int, str], None]:
        place = next(places)

        def report(done: int, total: int, unit: str) -> None:
            share = round(100 * (place + done / total) / n)
            shown(share, 100, f"%, recipe {place + 1} of {n}: {recipe.name}, {unit}")

        return report

    return asked


# `roadaware baseline`: what boxes alone tell, before anybody looks at a pixel.

_MODELS = "Names of the baselines. [default: all that answer the task]"


def baseline(
    dataset: Dataset,
    path: DatasetPath,
    /,
    *,
    task: Annotated[TaskName, Parameter(help="What is asked.")] = "action",
    model: Annotated[list[str] | None, Parameter(name="--models", help=_MODELS), Several, Stated] = None,
    config: SampleConfig = "default",
    resamples: Resamples = 1000,
    seed: Seed = 0,
    result: ResultFolder = UNKEPT,
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
    trained = train_baselines(scenes, task, config, resamples=resamples, seed=seed, models=model)
    found = [build_baseline_run(item, protocol, resamples, seed, config) for item in trained.values()]
    pairs = compare_baselines(found, resamples=resamples, seed=seed)
    if result.folder is not None:
        with console.log_step("report"):
            files = build_baseline_files(found, pairs, f"Baselines: {protocol}")
        result.write(files)
    head = f"{protocol}, config {config}: {len(found[0].state)} test samples"
    text = "\n\n".join([head, format_runs(found), *(format_headline(pair) for pair in pairs)])
    return Outcome(text, summarize_baselines(found, pairs))
