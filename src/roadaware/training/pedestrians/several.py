"""Several recipes, of networks or of models on hand features, each run in a folder of its own; one that fails leaves the
others; imports torch."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from roadaware.config import digest
from roadaware.errors import InputError, UsageError, raise_interrupt
from roadaware.io.files import write_atomically
from roadaware.metrics.pedestrians import collect_sample_scores
from roadaware.metrics.scores import SampleScores
from roadaware.models import MODELS, load_model_class
from roadaware.models.crossing.tabular import TabularModel
from roadaware.scenes.sampling import split_samples
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.tasks.pedestrians import fit, predict
from roadaware.training.pedestrians import results
from roadaware.training.pedestrians.failures import format_error, group_seed_errors
from roadaware.training.pedestrians.recipe import PedestrianRecipe, check_network, list_unused_fields
from roadaware.training.pedestrians.results import (
    digest_samples,
    read_fit_record,
    refuse_other,
    refuse_other_data,
    register_run,
)
from roadaware.training.pedestrians.run import FACTS, TIMING, Judged, Trained, evaluate_run, train_predictors
from roadaware.training.pedestrians.samples import Material, list_missing_labels, load_samples
from roadaware.training.recipe_files import replace_fields

_log = logging.getLogger("roadaware")

# Models on hand features under a recipe: fitted, chosen, kept beside the networks.

MODEL = "model.npz"


@dataclass(frozen=True, eq=False)
class TabularFit:
    """A fitted model and its cost.

    Args:
        model: as fitted.
        predictions: of the split that was asked for.
        cpu_s: of one core that fitting took; None where it was fitted before and nobody wrote it down.
        validation: its score on validation, by its own criterion.
    """

    model: TabularModel
    predictions: Predictions
    cpu_s: float | None
    validation: float


def is_tabular(recipe: PedestrianRecipe) -> bool:
    """Whether a recipe names a model on hand features, and not a network."""
    return recipe.network.name in MODELS


def list_model_inputs(model: TabularModel) -> tuple[str, ...]:
    """The inputs of a model's features."""
    asked = {"ego:action": "vehicle", "traffic": "traffic"}
    return ("boxes", *(name for name, field in asked.items() if getattr(model.config, field, False)))


def count_parameters(model: TabularModel) -> int:
    """How many numbers fitting found."""
    return sum(array.size for array in model.fitted.arrays.values()) or len(model.fitted.chosen)


def fit_tabular(
    recipe: PedestrianRecipe, material: Material, folder: Path, split: str = "test"
) -> TabularFit:
    """The model of a recipe, fitted unless it stands in the folder, and its answers.

    Of the recipe it reads task, samples, and the name and fields of the network. Its fit is the same for
    every seed, so it is made once. Other fields that are set are reported in a warning.

    Args:
        recipe: names a model on hand features.
        material: the recipe's samples.
        folder: of the run.
        split: what it is asked about.

    Raises:
        UsageError: if the recipe asks for what such a model does not do, the model does not answer the task,
            or the folder holds a run of another recipe or on other samples.
        InputError: if a split is empty, or train has one label only.
        DamagedError, DiskError: if the folder cannot be read or written to.
    """
    for holds, wanted in (
        (not recipe.network.inputs, "network.inputs stay empty: its features are its own"),
        (not recipe.samples.dense, "samples.dense is for networks"),
        (not recipe.network.weights, "network.weights are for networks"),
    ):
        if not holds:
            raise UsageError(f"{recipe.network.name} cannot be fitted: {wanted}")
    usual = load_model_class(recipe.network.name).create()
    replace_fields(usual.config, recipe.network.fields, "network.fields")
    if idle := list_unused_fields(recipe):
        _log.warning("%s: %s reads none of %s", recipe.name, recipe.network.name, ", ".join(idle))
    refuse_other(recipe, folder)
    cut, data = material.cut, digest_samples(material, recipe.samples.poses)
    path = folder / f"seed-{recipe.seeds[0]}" / MODEL
    if path.exists():
        register_run(recipe, folder, data)
        model = load_model_class(recipe.network.name).open(path)
        facts = read_fit_record(path.with_name(FACTS)) | read_fit_record(path.with_name(TIMING))
        cpu_s = facts.get("cpu_s")  # earlier versions kept it in FACTS
    else:
        started = time.process_time()
        model = fit(cut, recipe.task, recipe.network.name, **recipe.network.fields)
        cpu_s = time.process_time() - started
        register_run(recipe, folder, data)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path.with_name(TIMING), (json.dumps({"cpu_s": cpu_s}) + "\n").encode())
        model.save(path)
    best = max(trial.score for trial in model.fitted.trials)
    return TabularFit(model, predict(model, cut, split), cpu_s, best)


# Several recipes, each in a folder of its own.


@dataclass(frozen=True, eq=False)
class Ran:
    """Result of one recipe.

    Args:
        recipe: that was run.
        folder: of the run.
        rows: columns `results.RESULTS`; None where nothing came of it.
        failed: what went wrong; by seeds, where some came to an end.
        said: scores of the test samples, the mean of all seeds where there are several; None where nothing
            was judged now.
        notes: on what cannot be judged by the test samples.
    """

    recipe: PedestrianRecipe
    folder: Path
    rows: pl.DataFrame | None
    failed: tuple[str, ...] = ()
    said: SampleScores | None = None
    notes: tuple[str, ...] = ()


def run_several(
    recipes: Sequence[PedestrianRecipe],
    out: Path,
    *,
    resamples: int,
    progress: Callable[[PedestrianRecipe], Callable[[int, int, str], None] | None] = lambda recipe: None,
) -> Iterator[Ran]:
    """Run recipes one after another, each in `out/<name>-<digest>`.

    Args:
        recipes: of networks, or of models on hand features.
        out: folder of folders.
        resamples: bootstrap resamples of the intervals on test.
        progress: gives, before each recipe, the callback of its progress.

    Raises:
        UsageError: if two recipes are the same.
        RoadawareError: as `run_one`, if there is one recipe only.
    """
    places = [out / f"{recipe.name}-{digest(recipe)[:8]}" for recipe in recipes]
    twice = sorted({place.name for place in places if places.count(place) > 1})
    if twice:
        raise UsageError(f"each recipe is run once; given twice: {', '.join(twice)}")
    for recipe, folder in zip(recipes, places, strict=True):
        try:
            yield run_one(recipe, folder, resamples=resamples, progress=progress(recipe))
        except Exception as error:  # whatever is wrong with one recipe, the others are run
            raise_interrupt(error)
            if len(recipes) == 1:
                raise
            why = format_error(error)
            _log.warning("%s failed: %s", recipe.name, why)
            _log.debug("%s", recipe.name, exc_info=True)
            yield Ran(recipe, folder, None, (why,))


def run_one(
    recipe: PedestrianRecipe,
    folder: Path,
    *,
    resamples: int,
    progress: Callable[[int, int, str], None] | None = None,
) -> Ran:
    """Train, evaluate on test, and write the result rows beside the model.

    Args:
        recipe: of a network, or of a model on hand features.
        folder: of the run.
        resamples: bootstrap resamples.
        progress: called with the epochs done and the total.

    Raises:
        UsageError: if the folder holds results on other samples than the recipe names now.
        RoadawareError: as `run.train_predictors` and `fitted`.
    """
    simple = is_tabular(recipe)
    if not simple:
        check_network(recipe)
    held = results.read_finished_results(folder, recipe, recipe.seeds[:1] if simple else recipe.seeds)
    try:
        material = load_samples(recipe.samples, recipe.task)
    except InputError as error:
        if held is None:
            raise
        _log.warning("%s: whether its samples are as they were cannot be told: %s", recipe.name, error)
        return Ran(recipe, folder, held)
    if held is not None:
        refuse_other_data(recipe, folder, digest_samples(material, recipe.samples.poses))
        return Ran(recipe, folder, held, notes=list_missing_labels(material, "test"))
    failed: tuple[str, ...] = ()
    if simple:
        done = fit_tabular(recipe, material, folder)
        name = f"seed {recipe.seeds[0]}"
        criterion = str(done.model.config.criterion)
        fits = {name: results.Fit(count_parameters(done.model), done.cpu_s, None, done.validation, criterion)}
        said = _scores(done.predictions, split_samples(material.cut, "test"), recipe)
        rows = results.build_result_table(
            recipe, list_model_inputs(done.model), {name: said}, fits, resamples=resamples
        )
        notes = list_missing_labels(material, "test")
    else:
        trained = train_predictors(recipe, folder, progress, material)
        judged = evaluate_run(trained)
        rows, said, notes = *_network(trained, judged, folder, resamples), judged.notes
        failed = tuple(f"{who}: {why}" for who, why in group_seed_errors(trained.failed).items())
    results.keep(folder, rows)
    return Ran(recipe, folder, rows, failed, said, notes)


def _network(
    trained: Trained, judged: Judged, folder: Path, resamples: int
) -> tuple[pl.DataFrame, SampleScores]:
    names = {"mean": results.ENSEMBLE}
    said = {
        names.get(name, name): _scores(prediction, judged.scenes, trained.recipe)
        for name, prediction in judged.predictions.items()
    }
    fits = {}
    for seed, predictor in trained.predictors.items():
        facts = results.read_fit_record(folder / f"seed-{seed}" / FACTS)
        facts |= results.read_fit_record(folder / f"seed-{seed}" / TIMING)
        fits[f"seed {seed}"] = results.Fit(
            sum(each.numel() for each in predictor.network.parameters()),
            facts.get("cpu_s"),
            facts.get("best_epoch"),
            trained.validation[seed],
            trained.recipe.choose,
        )
    inputs = next(iter(trained.predictors.values())).inputs
    rows = results.build_result_table(trained.recipe, inputs, said, fits, resamples=resamples)
    return rows, said.get(results.ENSEMBLE, next(iter(said.values())))


def _scores(prediction: Predictions, scenes: Scenes, recipe: PedestrianRecipe) -> SampleScores:
    return collect_sample_scores(prediction, scenes, recipe.task)[0]
