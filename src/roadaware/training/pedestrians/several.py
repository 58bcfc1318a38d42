"""Several recipes, each run in a folder of its own; one that fails leaves the others; imports torch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from roadaware.config import digest
from roadaware.errors import InputError, UsageError, raise_interrupt
from roadaware.metrics.pedestrians import collect_sample_scores
from roadaware.metrics.scores import SampleScores
from roadaware.scenes.sampling.sampler import split_samples
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.training.pedestrians import results, tabular
from roadaware.training.pedestrians.data_digest import digest_samples
from roadaware.training.pedestrians.failures import format_error, group_seed_errors
from roadaware.training.pedestrians.recipe import PedestrianRecipe, check_network
from roadaware.training.pedestrians.run import FACTS, TIMING, Judged, Trained, evaluate_run, train_predictors
from roadaware.training.pedestrians.run_lock import refuse_other_data
from roadaware.training.pedestrians.samples import Material, list_missing_labels, load_samples

_log = logging.getLogger("roadaware")


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
    draws: int,
    progress: Callable[[PedestrianRecipe], Callable[[int, int, str], None] | None] = lambda recipe: None,
) -> Iterator[Ran]:
    """Run recipes one after another, each in `out/<name>-<digest>`.

    Args:
        recipes: of networks, or of models on hand features.
        out: folder of folders.
        draws: bootstrap resamples of the intervals on test.
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
            yield run_one(recipe, folder, draws=draws, progress=progress(recipe))
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
    draws: int,
    progress: Callable[[int, int, str], None] | None = None,
) -> Ran:
    """Train, evaluate on test, and write the result rows beside the model.

    Args:
        recipe: of a network, or of a model on hand features.
        folder: of the run.
        draws: bootstrap resamples.
        progress: called with the epochs done and the total.

    Raises:
        UsageError: if the folder holds results on other samples than the recipe names now.
        RoadawareError: as `run.train_predictors` and `tabular.fitted`.
    """
    simple = tabular.is_tabular(recipe)
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
        rows, said = _tabular(recipe, material, folder, draws)
        notes = list_missing_labels(material, "test")
    else:
        trained = train_predictors(recipe, folder, progress, material)
        judged = evaluate_run(trained)
        rows, said, notes = *_network(trained, judged, folder, draws), judged.notes
        failed = tuple(f"{who}: {why}" for who, why in group_seed_errors(trained.failed).items())
    results.keep(folder, rows)
    return Ran(recipe, folder, rows, failed, said, notes)


def _network(trained: Trained, judged: Judged, folder: Path, draws: int) -> tuple[pl.DataFrame, SampleScores]:
    names = {"mean": results.ENSEMBLE}
    said = {
        names.get(name, name): _scores(claim, judged.scenes, trained.recipe)
        for name, claim in judged.predictions.items()
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
    rows = results.build_result_table(trained.recipe, inputs, said, fits, draws=draws)
    return rows, said.get(results.ENSEMBLE, next(iter(said.values())))


def _tabular(
    recipe: PedestrianRecipe, material: Material, folder: Path, draws: int
) -> tuple[pl.DataFrame, SampleScores]:
    done = tabular.fit_tabular(recipe, material, folder)
    name = f"seed {recipe.seeds[0]}"
    criterion = str(done.model.config.criterion)
    fits = {
        name: results.Fit(tabular.count_parameters(done.model), done.cpu_s, None, done.validation, criterion)
    }
    said = _scores(done.predictions, split_samples(material.cut, "test"), recipe)
    rows = results.build_result_table(
        recipe, tabular.list_model_inputs(done.model), {name: said}, fits, draws=draws
    )
    return rows, said


def _scores(claim: Predictions, scenes: Scenes, recipe: PedestrianRecipe) -> SampleScores:
    return collect_sample_scores(claim, scenes, recipe.task)[0]
