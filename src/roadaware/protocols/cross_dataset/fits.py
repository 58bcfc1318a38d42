"""Fits: one model trained on one domain, kept as one file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from roadaware import config as configs
from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.models import CROSSING, get_crossing_entry, load_model_class
from roadaware.models.crossing.uncertainty_config import DoubtConfig
from roadaware.protocols.cross_dataset.config import AwayStudy, Fit
from roadaware.protocols.cross_dataset.domains import load_material
from roadaware.training.pedestrians.recipe import (
    LossRecipe,
    NetworkRecipe,
    PedestrianRecipe,
    SamplesRecipe,
)
from roadaware.training.recipe import ScheduleRecipe

if TYPE_CHECKING:
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.tasks.pedestrians import Examples
    from roadaware.training.pedestrians.folds import Fold
    from roadaware.training.pedestrians.samples import Material

NETWORK, ARRAYS, RECIPE = "model.safetensors", "model.npz", "recipe.json"
_material = lru_cache(maxsize=8)(load_material)


def get_model_path(fit: Fit, out: Path) -> Path:
    """Path of the model of a fit.

    Args:
        fit: which.
        out: folder of the study.
    """
    return out / fit.place / (NETWORK if fit.model in CROSSING else ARRAYS)


def make(fit: Fit, study: AwayStudy, out: Path) -> None:
    """Fit and keep a model, unless it is there.

    Args:
        fit: which.
        study: says how.
        out: folder of the study, with the domain's samples.

    Raises:
        UsageError: if the folder holds the same fit under another recipe, or the network cannot be made.
        InputError: if there are no samples to learn from, or what it goes on from is missing.
        DivergedFitError: if the loss is no number any more.
    """
    path = get_model_path(fit, out)
    fields = study.fields.get(fit.model, {})
    text = (
        json.dumps({**study.fixed, "fields": fields, "fit": configs.to_dict(fit)}, indent=2, sort_keys=True)
        + "\n"
    )
    recipe = path.with_name(RECIPE)
    if path.is_file():
        if recipe.read_text(encoding="utf-8") != text:
            raise UsageError(f"{path.parent} holds a fit of another recipe; name another folder with --out")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(recipe, text.encode())
    held = _material(out, fit.domain)
    if fit.model in CROSSING:
        _network(fit, study, out, held, path)
    else:
        # A model on hand features of boxes; no vehicle, since domains record it differently
        from roadaware.tasks.pedestrians import build_examples

        kind = load_model_class(fit.model)
        fields = {"labels": len(held.labels), "vehicle": False, "balanced": (study.learning.balance > 0,)}
        fields |= study.fields.get(fit.model, {})
        kind.create(**fields).fit(build_examples(held.cut, "train"), build_examples(held.cut, "val")).save(
            path
        )


def build_recipe(fit: Fit, study: AwayStudy, samples: int, weights: str = "") -> PedestrianRecipe:
    """The recipe of a fit of a network.

    Args:
        fit: which.
        study: says how.
        samples: to learn from, which decide how many epochs the updates are.
        weights: what it goes on from.
    """
    how = study.learning
    # Epochs follow from the number of updates, which is the same for every training set.
    steps = max(1, samples // min(how.batch, samples))
    uncertainty = {
        "none": DoubtConfig(),
        "last-dropout": DoubtConfig("last-dropout", rate=how.last_rate, passes=how.passes),
        "last-flipout": DoubtConfig("last-flipout", passes=how.passes),
    }[fit.kind]
    return PedestrianRecipe(
        name=fit.model,
        seeds=(fit.seed,),
        network=NetworkRecipe(
            fit.model,
            study.size if hasattr(get_crossing_entry(fit.model).config_class, "small") else "published",
            study.fields.get(fit.model, {}),
            study.inputs,
            weights,
        ),
        samples=SamplesRecipe(reader="saved", root=fit.domain, config=study.config),
        loss=LossRecipe(balance=how.balance),
        schedule=ScheduleRecipe(
            epochs=how.updates / steps,
            optimizer="adamw",
            lr=how.lr,
            weight_decay=how.weight_decay,
            decay="cosine",
            decay_all=False,
            bias_lr=1.0,
            clip_norm=1.0,
        ),
        doubt=uncertainty,
        batch=how.batch,
        flip=how.flip,
        choose=how.choose,
    )


def _network(fit: Fit, study: AwayStudy, out: Path, held: Material, path: Path) -> None:
    from roadaware.models.crossing.predictor import Predictor
    from roadaware.training.pedestrians.fit import Fitter
    from roadaware.training.pedestrians.run import build_crossing_network

    before = "" if fit.before is None else str(get_model_path(fit.before, out))
    if before and not Path(before).is_file():
        raise InputError(f"{fit.before} did not come to an end, so nothing goes on from it")
    folds = {split: load_fold(out, fit.domain, split, study.inputs) for split in ("train", "val")}
    recipe = build_recipe(fit, study, len(folds["train"]), before)
    network = build_crossing_network(recipe, folds["train"].inputs.shapes, len(held.labels), fit.seed)
    fitted = Fitter(network, folds["train"], folds["val"], recipe, fit.seed).fit()
    facts = {
        "domain": fit.trained_on,
        "protocol_config": configs.to_dict(held.protocol),
        "seed": fit.seed,
        "best_epoch": fitted.best,
        "criterion": recipe.choose,
        "validation": fitted.curve[fitted.best - 1].worth,
    }
    Predictor(network, fit.model, "action", held.labels, facts, doubt=recipe.doubt).save(path)


@lru_cache(maxsize=32)
def load_fold(out: Path, domain: str, split: str, inputs: tuple[str, ...]) -> Fold:
    """Samples of a domain as networks take them.

    Args:
        out: folder of the study.
        domain: its name.
        split: train, val or test.
        inputs: their names.
    """
    from roadaware.training.pedestrians.samples import build_fold

    recipe = PedestrianRecipe(samples=SamplesRecipe(reader="saved", root=domain))
    return build_fold(_material(out, domain), split, inputs, recipe)


# Asking: what a fitted model says of a domain's samples, with each uncertainty method.

Answers = Callable[[str, str], Floats]
_NEAREST = 1e-7
"""Probabilities of tabular models are kept this far from 0 and 1 before they become logits."""


def load_predictor(fit: Fit, uncertainty: str, study: AwayStudy, out: Path) -> Answers:
    """A fitted model, to be asked about the samples of domains.

    Args:
        fit: that was made.
        uncertainty: the uncertainty method.
        study: says what networks look at, and how often they are asked.
        out: folder of the study.

    Returns:
        a function from a domain's name and a split to (n,) probabilities of crossing. It raises InputError if
        the domain lacks what the model looks at.

    Raises:
        UsageError: if a network drops nothing and should.
    """
    if fit.model not in CROSSING:
        return _predict_tabular(fit, uncertainty, out)
    network = _open_predictor(fit, uncertainty, study, out)

    def answers(domain: str, split: str) -> Floats:
        return network.probabilities(load_fold(out, domain, split, study.inputs).inputs)[:, 0]

    return answers


def _open_predictor(fit: Fit, uncertainty: str, study: AwayStudy, out: Path) -> Predictor:
    from roadaware.models.crossing.ensemble import apply_mc_dropout, calibrate_predictor
    from roadaware.models.crossing.predictor import Predictor

    held = Predictor.open(get_model_path(fit, out))
    if uncertainty == "mc-dropout":
        return apply_mc_dropout(held, study.learning.passes)
    if uncertainty == "temperature":
        known = load_fold(out, fit.domain, "val", study.inputs)
        return calibrate_predictor(held, known.inputs, known.truth.numpy(), fit.seed)
    return held


def _predict_tabular(fit: Fit, uncertainty: str, out: Path) -> Answers:
    from scipy.special import expit, logit

    from roadaware.statistics.calibration import fit_temperature

    model, heat = load_model_class(fit.model).open(get_model_path(fit, out)), 1.0
    if uncertainty == "temperature":
        known = _examples(out, fit.domain, "val")
        before = model.predict(known)[:, :1].clip(_NEAREST, 1 - _NEAREST)
        heat = fit_temperature(logit(before), known.truth)

    def answers(domain: str, split: str) -> Floats:
        said = model.predict(_examples(out, domain, split))[:, 0]
        # Without a temperature, probabilities of 0 and 1 stay what they are.
        if heat == 1.0:
            return np.asarray(said, dtype=np.float64)
        return np.asarray(expit(logit(said.clip(_NEAREST, 1 - _NEAREST)) / heat), dtype=np.float64)

    return answers


def read_validation_truth(out: Path, domain: str) -> Ints:
    """(n,) labels of a domain's validation samples, in the order in which models are asked about them.

    Args:
        out: folder of the study.
        domain: its name.
    """
    return _examples(out, domain, "val").truth


@lru_cache(maxsize=16)
def _examples(out: Path, domain: str, split: str) -> Examples:
    from roadaware.tasks.pedestrians import build_examples

    found = build_examples(load_material(out, domain).cut, split)
    # The labels of the test set are withheld from whoever is asked.
    return found if split != "test" else replace(found, truth=np.full(len(found), -1))
