"""Run: a recipe becomes one predictor for each seed; those that are there already are not made again."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from roadaware import __version__
from roadaware import config as configs
from roadaware.arrays import Floats
from roadaware.errors import InputError, UsageError, raise_interrupt
from roadaware.io.files import write_atomically
from roadaware.io.folders import hold_folder, make_folder
from roadaware.io.interrupts import Stop, stop_gracefully
from roadaware.metrics.metric_state import MetricResult
from roadaware.metrics.pedestrians import PedestrianConfig, evaluate
from roadaware.models import create, get_crossing_entry
from roadaware.models.crossing.inputs import InputSet
from roadaware.models.crossing.networks.stills import CrossingNet
from roadaware.models.crossing.predictor import Predictor, is_predictor, replace_last_layer
from roadaware.models.crossing.published import load_image_weights
from roadaware.scenes.sampling import split_samples
from roadaware.scenes.tables import Meta, Predictions, Scenes, build_sample_predictions
from roadaware.tasks.pedestrians import Futures, evaluate_constant_velocity, evaluate_future
from roadaware.training.pedestrians.failures import FailedSeedsError, format_error
from roadaware.training.pedestrians.fit import Fitted, Fitter, Keeper, Score, StoppedFitError
from roadaware.training.pedestrians.heads import Fold, get_head_sizes
from roadaware.training.pedestrians.recipe import PedestrianRecipe, check_network
from roadaware.training.pedestrians.results import (
    digest_samples,
    refuse_missing,
    refuse_other,
    register_run,
    score_probabilities,
)
from roadaware.training.pedestrians.samples import (
    Material,
    build_fold,
    find_media,
    list_missing_labels,
    load_samples,
    measure_limits,
)
from roadaware.training.recipe_files import replace_fields

# Initial weights of a fit: published image weights, or a predictor of ours; imports torch.


def load_initial_weights(network: CrossingNet, name: str, path: Path) -> None:
    """Put weights into a network before it is trained.

    Of a predictor everything is taken, its last layer too; only what its answers were drawn from is not. How
    its sequences were standardised is taken as well, and a recipe that standardises replaces it.

    Args:
        network: is changed.
        name: of it in the registry.
        path: a predictor's file, or a file of image weights as `load_image_weights` takes it.

    Raises:
        UsageError: if there is no such file, or the weights are of another network, or of one with other
            inputs, sizes or labels.
        InputError: if the file cannot be read.
        DamagedError: if it is not whole.
    """
    if not path.is_file():
        raise UsageError(f"network.weights: there is no file {path}")
    if not is_predictor(path):
        load_image_weights(network, path)
        return
    held = Predictor.open(path)
    for what, there, here in (
        ("network", held.name, name),
        ("inputs", _shapes(held.network), _shapes(network)),
        ("number of labels", held.network.labels, network.labels),
        ("sizes", configs.to_dict(held.network.config), configs.to_dict(network.config)),
    ):
        if there != here:
            raise UsageError(f"{path} cannot be gone on from: its {what} is {there}, and the recipe's {here}")
    own = network.state_dict()
    known = {key: value for key, value in held.network.state_dict().items() if key in own}
    network.load_state_dict({**own, **known})


def _shapes(network: CrossingNet) -> str:
    return ", ".join(f"{name} {shape}" for name, shape in network.shapes.items())


Progress = Callable[[int, int, str], None]
_log = logging.getLogger("roadaware")
MODEL, FACTS, TIMING, LAST = "model.safetensors", "fit.json", "timing.json", "last.ckpt"
STRAIGHT_ON = "constant velocity"
"""The row of the rule beside the networks that predict where pedestrians go."""
Worth = dict[str, float | None]


@dataclass(frozen=True, eq=False)
class Trained:
    """Result of a recipe.

    Args:
        recipe: as it was run.
        predictors: by seed, those that came to an end.
        validation: what each is worth on validation, by the recipe's criterion.
        failed: seed to what went wrong.
        material: scenes and protocol.
    """

    recipe: PedestrianRecipe
    predictors: dict[int, Predictor]
    validation: dict[int, float]
    failed: dict[int, str]
    material: Material


@dataclass(frozen=True, eq=False)
class Judged:
    """Predictors on a split.

    Args:
        scenes: with the samples of the split alone.
        predictions: by seed; `mean` is the mean of their probabilities.
        metrics: of each.
        ahead: of each, what its boxes ahead and cells are worth, see `tasks.pedestrians.evaluate_future`; beside them
            the rule that pedestrians go on as observed. Empty for networks without that head.
        notes: labels that no sample of the split has, and what that does to the metrics.
    """

    scenes: Scenes
    predictions: dict[str, Predictions]
    metrics: dict[str, MetricResult]
    ahead: dict[str, Worth] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def train_predictors(
    recipe: PedestrianRecipe, out: Path, progress: Progress | None = None, material: Material | None = None
) -> Trained:
    """One predictor for each seed of a recipe, each in a folder of its own.

    A seed whose predictor stands in the folder is not fitted again; one that fails leaves the others. SIGINT
    and SIGTERM are passed on once the fit under way is saved behind its step. The next call goes on there, to
    the same weights, to the last bit, on as many threads.

    Args:
        recipe: everything.
        out: folder of the run.
        progress: called with the epochs done and the total.
        material: of the recipe, where it was read already.

    Raises:
        UsageError: if the recipe cannot be run, the folder holds a run of another recipe or on other
            samples, or another process is at work in it.
        InputError: if the annotations cannot be read, lack an input, or show one label only, or videos are
            missing.
        DiskError: if the folder cannot be written to.
        FailedSeedsError: if every seed failed.
    """
    with hold_folder(out):
        if recipe.threads:
            torch.set_num_threads(recipe.threads)
        check_network(recipe)
        refuse_other(recipe, out)
        material = material or load_samples(recipe.samples, recipe.task)
        names = recipe.network.inputs or get_crossing_entry(recipe.network.name).reads
        refuse_missing(material.cut, names, find_media(recipe.samples))
        train_fold, held_out = (build_fold(material, split, names, recipe) for split in ("train", "val"))
        _check(train_fold, held_out, recipe)
        register_run(recipe, out, digest_samples(material, recipe.samples.poses))
        failed: dict[int, str] = {}
        with stop_gracefully(children=True) as stop:
            for place, seed in enumerate(recipe.seeds):
                epochs = _Epochs(progress, place, len(recipe.seeds), recipe)
                why = _fit_seed(
                    recipe, material, (train_fold, held_out), seed, out / f"seed-{seed}", epochs, stop
                )
                if stop:
                    break
                if why is not None:
                    failed[seed] = why
        if stop.number is not None:
            _log.warning("%s holds what is done; the same command goes on from there", out)
            signal.raise_signal(stop.number)
        if len(failed) == len(recipe.seeds):
            raise FailedSeedsError.of(failed)
        done = [seed for seed in recipe.seeds if seed not in failed]
        predictors = {seed: Predictor.open(out / f"seed-{seed}" / MODEL) for seed in done}
        truth = held_out.truth.numpy()
        validation = {
            seed: score_probabilities(recipe.choose, predictor.probabilities(held_out.inputs), truth)
            for seed, predictor in predictors.items()
        }
        return Trained(recipe, predictors, validation, failed, material)


def _fit_seed(
    recipe: PedestrianRecipe,
    material: Material,
    folds: tuple[Fold, Fold],
    seed: int,
    folder: Path,
    epochs: Callable[[Score], None],
    stop: Stop,
) -> str | None:
    """Fit a seed and save its predictor, unless it is there; why it failed, or None."""
    if (folder / MODEL).exists():
        return None
    make_folder(folder)
    keeper = Keeper(folder / LAST, stop)
    try:
        fitted, network = _fit_network(recipe, material, *folds, seed, epochs, keeper)
    except StoppedFitError:
        return None
    except UsageError:  # of the recipe, and so of every seed
        raise
    except Exception as error:  # whatever is wrong with one seed, the others are fitted
        raise_interrupt(error)
        why = format_error(error)
        _log.warning("seed %d failed: %s", seed, why)
        _log.debug("seed %d", seed, exc_info=True)
        return why
    future = folds[1].ahead
    facts: dict[str, Any] = {
        "recipe": recipe.name,
        "recipe_digest": configs.digest(recipe),
        "protocol": recipe.samples.protocol,
        "protocol_config": configs.to_dict(material.protocol),
        "seed": seed,
        "best_epoch": fitted.best,
        "criterion": recipe.choose,
        "version": __version__,
    }
    if material.fps is not None:
        facts["fps"] = material.fps
    facts["limits"] = measure_limits(material.train)
    if future is not None:
        facts["ahead"] = {"horizon_frames": future.horizon, **fitted.curve[fitted.best - 1].ahead}
        facts["ahead"][STRAIGHT_ON] = evaluate_constant_velocity(future)
    curve = [{"epoch": s.epoch, "loss": s.loss, "worth": s.worth, **s.ahead} for s in fitted.curve]
    write_atomically(folder / FACTS, (json.dumps({**facts, "curve": curve}, indent=2) + "\n").encode())
    write_atomically(folder / TIMING, (json.dumps({"cpu_s": round(fitted.cpu_s, 1)}) + "\n").encode())
    done = Predictor(network, recipe.network.name, recipe.task, material.labels, facts, doubt=recipe.doubt)
    done.save(folder / MODEL)
    keeper.remove()
    return None


def evaluate_run(
    trained: Trained,
    split: str = "test",
    *,
    config: PedestrianConfig | None = None,
    resamples: int = 0,
    seed: int = 0,
) -> Judged:
    """The predictors of a run, each and as the mean of all, on a split.

    Args:
        trained: what `train_predictors` gave.
        split: train, val or test.
        config: of the metrics (default: as the recipe's samples are cut).
        resamples: for the intervals; 0 for none.
        seed: of the bootstrap.
    """
    recipe, material = trained.recipe, trained.material
    held = split_samples(material.cut, split)
    fold = build_fold(material, split, next(iter(trained.predictors.values())).inputs, recipe)
    said: dict[str, Floats] = {
        f"seed {number}": predictor.probabilities(fold.inputs)
        for number, predictor in trained.predictors.items()
    }
    if len(said) > 1:
        said["mean"] = np.asarray(np.mean(list(said.values()), axis=0))
    chosen = config or recipe.metrics
    meta = Meta(dataset=held.meta.dataset, notes={"model": recipe.network.name})
    predictions = {
        name: build_sample_predictions(held.samples, scores, meta) for name, scores in said.items()
    }
    return Judged(
        held,
        predictions,
        {
            name: evaluate(each, held, chosen, resamples=resamples, seed=seed)
            for name, each in predictions.items()
        },
        {} if fold.ahead is None else _ahead(trained.predictors, fold.inputs, fold.ahead),
        list_missing_labels(material, split),
    )


def _ahead(predictors: dict[int, Predictor], given: InputSet, truth: Futures) -> dict[str, Worth]:
    """Errors of the predicted futures: of each fit, of their mean, and of constant velocity."""
    said = {f"seed {number}": predictor.also(given) for number, predictor in predictors.items()}
    if len(said) > 1:
        tasks = next(iter(said.values()))
        said["mean"] = {
            task: np.asarray(np.mean([each[task] for each in said.values()], axis=0)) for task in tasks
        }
    found = {name: evaluate_future(each, truth) for name, each in said.items()}
    return {**found, STRAIGHT_ON: evaluate_constant_velocity(truth)}


def _check(train_fold: Fold, held_out: Fold, recipe: PedestrianRecipe) -> None:
    """Refuse samples of one label, from which nothing is learnt and among which nothing is ranked."""
    ranked = recipe.choose in ("average_precision", "auc")
    for split, fold, needed in (("train", train_fold, True), ("val", held_out, ranked)):
        if needed and len(set(fold.truth.tolist())) < 2:
            what = "nothing is learnt" if split == "train" else f"{recipe.choose} chooses nothing"
            raise InputError(
                f"all {len(fold):,} samples of split '{split}' have one label: {what} by them",
                hint="look at the list of its videos, or choose by log_loss",
            )


def _fit_network(
    recipe: PedestrianRecipe,
    material: Material,
    train_fold: Fold,
    held_out: Fold,
    seed: int,
    epochs: Callable[[Score], None],
    keeper: Keeper,
) -> tuple[Fitted, CrossingNet]:
    tasks = get_head_sizes(recipe, material.protocol)
    network = build_crossing_network(recipe, train_fold.inputs.shapes, len(material.labels), seed, tasks)
    return Fitter(network, train_fold, held_out, recipe, seed).fit(epochs, keeper), network


def build_crossing_network(
    recipe: PedestrianRecipe,
    shapes: dict[str, tuple[int, ...]],
    labels: int,
    seed: int,
    tasks: dict[str, int] | None = None,
) -> CrossingNet:
    """The network of a recipe with its first weights.

    Args:
        recipe: names it.
        shapes: of one sample of each input.
        labels: how many there are.
        seed: of the weights.
        tasks: sizes of the heads beside the label, see `heads.get_head_sizes`.

    Raises:
        UsageError: if it cannot be made: a field that is unknown or impossible, another size or other inputs.
    """
    wanted, entry = recipe.network, get_crossing_entry(recipe.network.name)
    base = entry.config_class.small() if wanted.size == "small" else entry.config_class()
    config = replace_fields(base, wanted.fields, "network.fields")
    torch.manual_seed(seed)
    try:
        network: CrossingNet = create(
            wanted.name, config=config, shapes=shapes, labels=labels, tasks=tasks or {}
        )
    except (ValueError, TypeError, ArithmeticError, AssertionError, RuntimeError) as error:
        if not wanted.fields:
            raise  # the usual fields are not the user's fault
        text = f"{wanted.name} cannot be made with network.fields {wanted.fields}"
        raise UsageError(f"{text}: {format_error(error)}") from error
    if wanted.weights:
        load_initial_weights(network, wanted.name, Path(wanted.weights))
    return replace_last_layer(network, recipe.doubt)


class _Epochs:
    """Reports the progress of a run.

    Args:
        progress: called with the epochs done and the total.
        place: fits that are over.
        fits: of the run.
        recipe: says how many epochs a fit has.
    """

    def __init__(self, progress: Progress | None, place: int, fits: int, recipe: PedestrianRecipe) -> None:
        self.progress, self.place, self.fits = progress, place, fits
        self.epochs = max(1, round(recipe.schedule.epochs))

    def __call__(self, score: Score) -> None:
        """An epoch is over."""
        if self.progress is not None:
            done = self.place * self.epochs + min(score.epoch, self.epochs)
            self.progress(done, self.fits * self.epochs, f"epochs, loss {score.loss:.3f}")
