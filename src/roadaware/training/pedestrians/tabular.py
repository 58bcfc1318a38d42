"""Models on hand features under a recipe: fitted, chosen, kept beside the networks; imports torch."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from pathlib import Path

from roadaware.errors import UsageError
from roadaware.io.files import write_atomically
from roadaware.models import MODELS, load_model_class
from roadaware.models.crossing.tabular import TabularModel
from roadaware.scenes.tables import Predictions
from roadaware.tasks.pedestrians import fit, predict
from roadaware.training.pedestrians.data_digest import digest_samples
from roadaware.training.pedestrians.recipe import PedestrianRecipe, list_unused_fields
from roadaware.training.pedestrians.results import read_fit_record
from roadaware.training.pedestrians.run import FACTS, TIMING
from roadaware.training.pedestrians.run_lock import refuse_other, register_run
from roadaware.training.pedestrians.samples import Material
from roadaware.training.recipe_files import replace_fields

_log = logging.getLogger("roadaware")
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
    _check(recipe)
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


def _check(recipe: PedestrianRecipe) -> None:
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
