"""Models on hand features: the base that fits, predicts, saves and opens, with arrays as their whole state, and its
kinds: constant velocity, logistic regression and gradient boosting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from roadaware import config as configs
from roadaware.arrays import Floats
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.geometry.boxes import compute_region_position
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.io.sources import to_printable
from roadaware.models import MODELS, ModelCard, load_model_class
from roadaware.models.crossing import features as choice
from roadaware.models.crossing.features import (
    Criterion,
    Labelled,
    Observed,
    Slope,
    Trial,
    convert_to_probabilities,
    extract_hand_features,
    extrapolate_centre_px,
)
from roadaware.models.crossing.inputs import InputSet
from roadaware.models.crossing.kernels import add_leaves
from roadaware.models.crossing.uncertainty_config import DoubtConfig

_MOST_LABELS = 1000
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Fitted:
    """The fitted parameters.

    Args:
        arrays: all that predicting needs.
        chosen: the settings that won on validation.
        trials: every candidate with its score on validation, in the order tried.
    """

    arrays: Arrays
    chosen: dict[str, Any]
    trials: tuple[Trial, ...] = field(default=())


class TabularModel(ABC):
    """A model that is fitted on train, chosen on validation and then never changes.

    With two labels it gives one probability, that of label 1; otherwise one for each label.
    """

    card: ClassVar[ModelCard]
    config_class: ClassVar[type[Any]]

    def __init__(self, config: Any, fitted: Fitted | None = None) -> None:
        self.config = config
        self._fitted = fitted

    @classmethod
    def create(cls, **fields: Any) -> Self:
        """An unfitted model with these fields of its config.

        Raises:
            UsageError: if a field is unknown.
        """
        return cls(configs.from_dict(cls.config_class, fields))

    @property
    def fitted(self) -> Fitted:
        """The fitted parameters.

        Raises:
            UsageError: if the model was not fitted.
        """
        if self._fitted is None:
            raise UsageError(f"the model {self.card.name} has not been fitted; call fit or open a saved one")
        return self._fitted

    @property
    def n_scores(self) -> int:
        """The columns of a prediction."""
        return 1 if self.config.labels == 2 else int(self.config.labels)

    def fit(self, examples: Labelled, validation: Labelled) -> Self:
        """A fitted copy: candidates learn from `examples`, `validation` chooses among them.

        Raises:
            InputError: if either is empty, the examples show one label only, or shapes or labels do not fit.
        """
        for name, part in (("train", examples), ("validation", validation)):
            _check(name, part)
            labels = int(self.config.labels)
            truth = np.asarray(part.truth)
            if truth.shape != part.boxes.shape[:1]:
                raise InputError(f"{len(part.boxes)} {name} samples have {truth.size} answers")
            if not len(truth):
                raise InputError(
                    f"the {name} split has no samples; a model needs some to be fitted and chosen on"
                )
            if truth.min() < 0 or truth.max() >= labels:
                raise InputError(
                    f"the {name} answers run {truth.min()}..{truth.max()}; there are {labels} labels"
                )
            if name == "train" and len(np.unique(truth)) < 2:
                raise InputError(
                    f"all {len(truth)} train samples have the label {truth[0]}; nothing can be learned",
                    hint="check the list of the train split and the annotations of its videos",
                )
        return type(self)(self.config, self._fit(examples, validation))

    def predict(self, examples: Observed) -> Floats:
        """(n, k) probabilities: k = 1 with two labels, otherwise one column per label, rows summing to 1.

        Raises:
            UsageError: if the model was not fitted.
            InputError: if shapes do not fit.
        """
        fitted = self.fitted
        _check("given", examples)
        if not len(examples.boxes):
            return np.zeros((0, self.n_scores))
        try:
            found = self._predict(fitted, examples)
        except (IndexError, ValueError, KeyError, TypeError) as error:
            message = f"the model {self.card.name} does not fit these samples: {to_printable(str(error))}"
            raise InputError(message, hint="take the samples it was fitted on, or fit it again") from error
        if found.shape != (len(examples.boxes), self.n_scores) or not np.isfinite(found).all():
            raise InputError(f"the model {self.card.name} answers with no probabilities: its file is broken")
        return found

    def save(self, path: Path) -> None:
        """Write the fitted model as one file of plain arrays.

        Raises:
            UsageError: if the model was not fitted.
            DiskError: if the file cannot be written.
        """
        facts = {
            "model": self.card.name,
            "config": configs.to_dict(self.config),
            "chosen": self.fitted.chosen,
            "trials": [configs.to_dict(trial) for trial in self.fitted.trials],
        }
        save_arrays(path, self.fitted.arrays, facts)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The model that `save` wrote.

        Raises:
            DamagedError: if the file is not whole.
            InputError: if it holds another model.
        """
        arrays, facts = open_arrays(path)
        if facts.get("model") != cls.card.name:
            text = to_printable(str(facts.get("model")), 60)
            raise InputError(f"expected a model {cls.card.name}, found {text}", where=str(path))
        try:
            config = configs.from_dict(cls.config_class, facts["config"])
            configs.check_range("labels", config.labels, 2, _MOST_LABELS)
            trials = tuple(configs.from_dict(Trial, trial) for trial in facts["trials"])
            return cls(config, Fitted(arrays, dict(facts["chosen"]), trials))
        except (KeyError, TypeError, ValueError, UsageError) as error:
            message = f"the facts of the model do not fit: {to_printable(str(error))}"
            raise DamagedError(message, where=str(path)) from error

    @abstractmethod
    def _fit(self, examples: Labelled, validation: Labelled) -> Fitted: ...

    @abstractmethod
    def _predict(self, fitted: Fitted, examples: Observed) -> Floats: ...


@dataclass(frozen=True, eq=False)
class _Windows:
    """Observations of n samples, as `Observed` wants them."""

    boxes: Floats
    vehicle_action: Floats
    width_px: Floats
    height_px: Floats
    traffic: Floats | None


_TASKS = {
    2: ("action", ("not-crossing", "crossing")),
    3: ("intention", ("no-crossing", "unsure", "crossing")),
}
"""Question and words of the answers by their number; more labels are the regions of risk."""


@dataclass(frozen=True, eq=False)
class TabularPredictor:
    """A fitted model on hand features that is asked by inputs, as networks are.

    Its file says neither rate nor observation: it was fitted on half a second at 30 frames a second, as the published
    protocols cut samples, and counts labels: two are crossing, three intention, more are regions.

    Args:
        model: fitted.
    """

    model: TabularModel
    doubt: DoubtConfig = field(default_factory=DoubtConfig)

    @classmethod
    def open(cls, path: Path) -> Self:
        """The predictor of a file that `TabularModel.save` wrote.

        Raises:
            DamagedError: if the file is not whole.
            InputError: if it holds another model.
        """
        name = str(open_arrays(path)[1].get("model"))
        if name not in MODELS:
            raise InputError(
                f"expected a predictor ({', '.join(MODELS)} or hazard-trees), found {to_printable(name, 60)}",
                where=str(path),
            )
        return cls(load_model_class(name).open(path))

    @property
    def facts(self) -> dict[str, Any]:
        """Rate and reach."""
        return {"fps": 30.0, "protocol_config": {"observation_frames": 15}}

    @property
    def task(self) -> str:
        """Action, intention or risk."""
        return _TASKS.get(self.model.config.labels, ("risk", ()))[0]

    @property
    def labels(self) -> tuple[str, ...]:
        """The words of its answers."""
        count = self.model.config.labels
        return _TASKS[count][1] if count in _TASKS else tuple(f"region_{n}" for n in range(count))

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it reads."""
        more = (("vehicle", "ego:code"), ("traffic", "traffic"))
        return (
            "boxes:pixels",
            "boxes",
            *(name for asked, name in more if getattr(self.model.config, asked, False)),
        )

    @property
    def smallest(self) -> int:
        """The fewest passes: its answers are all the same."""
        return 1

    def probabilities(self, given: InputSet) -> Floats:
        """(n, k) its answers.

        Raises:
            InputError: if an input is missing or has another shape.
        """
        if missing := [name for name in self.inputs if name not in given.columns]:
            raise InputError(
                f"the inputs {', '.join(missing)} are missing; there are {', '.join(given.columns)}"
            )
        held = {
            name: np.asarray(given.columns[name].take(np.arange(len(given))), np.float64)
            for name in self.inputs
        }
        boxes, shares = held["boxes:pixels"], held["boxes"]
        # Sizes are whole numbers of pixels: what 32 bits of a share lose is rounded away.
        width_px, height_px = np.round(boxes[:, -1, 2:] / shares[:, -1, 2:]).T
        code = held["ego:code"][..., 0] if "ego:code" in held else np.full(boxes.shape[:2], np.nan)
        return self.model.predict(_Windows(boxes, code, width_px, height_px, held.get("traffic")))

    def passes(self, given: InputSet, n: int, seed: int = 0) -> Floats:
        """(passes, n, k) the one answer, again and again: nothing is drawn."""
        return np.repeat(self.probabilities(given)[None], n, axis=0)


def _check(name: str, part: Observed) -> None:
    boxes = np.asarray(part.boxes)
    if boxes.ndim != 3 or boxes.shape[-1] != 4 or boxes.shape[1] < 1:
        raise InputError(f"the {name} boxes should be (n, frames, 4), not {boxes.shape}")
    shapes = {
        "vehicle_action": (boxes.shape[:2], part.vehicle_action),
        "width_px": (boxes.shape[:1], part.width_px),
        "height_px": (boxes.shape[:1], part.height_px),
    }
    for field_name, (expected, values) in shapes.items():
        if np.shape(values) != expected:
            raise InputError(f"the {name} {field_name} should be {expected}, not {np.shape(values)}")
    if not np.isfinite(boxes).all():
        raise InputError(
            f"the {name} boxes hold {int((~np.isfinite(boxes)).sum())} numbers that are not finite"
        )


@dataclass(frozen=True)
class ConstantVelocityConfig:
    """Hyperparameters that are tried, and their selection.

    Args:
        labels: how many regions of equal width the image is divided into.
        horizon_frames: how far behind the last observed frame the region is asked for.
        slopes: candidates for how the velocity is taken from the observation.
        spreads: candidates for how fast the probability falls off, in widths of a region.
        criterion: what is best on validation.
    """

    labels: int = 12
    horizon_frames: int = 90
    slopes: tuple[Slope, ...] = ("least-squares", "ends")
    spreads: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
    criterion: Criterion = "log_loss"


class ConstantVelocity(TabularModel):
    """Extrapolates the centre of the box; the region it falls into is the answer."""

    card: ClassVar[ModelCard] = ModelCard(
        name="constant-velocity",
        paper="ours: the rule that every forecast has to beat",
        family="rule",
        tasks=("risk",),
        diagram="observed centres -> velocity -> centre 90 frames later, clipped to the image -> probability "
        "of each region falling off exponentially with its distance",
        parameters="none but two constants chosen on validation: how the velocity is taken, and the spread; "
        "p(k) is proportional to exp(-|k + 1/2 - x / width of a region| / spread)",
        inputs="the horizontal centres of the observed boxes and the width of the image, in pixels",
        weights="none",
        licence="none needed",
    )
    config_class = ConstantVelocityConfig

    def _fit(self, examples: Labelled, validation: Labelled) -> Fitted:
        trials = [
            Trial({"slope": slope, "spread": spread}, self._score(validation, slope, spread))
            for slope, spread in product(self.config.slopes, self.config.spreads)
        ]
        return Fitted({}, trials[choice.select_best_trial(trials)].settings, tuple(trials))

    def _predict(self, fitted: Fitted, examples: Observed) -> Floats:
        return self._regions(examples, fitted.chosen["slope"], float(fitted.chosen["spread"]))

    def _score(self, validation: Labelled, slope: Slope, spread: float) -> float:
        return choice.score(self.config.criterion, self._regions(validation, slope, spread), validation.truth)

    def _regions(self, examples: Observed, slope: Slope, spread: float) -> Floats:
        """(n, k) probabilities; the largest is that of the region the centre falls into."""
        labels = self.config.labels
        centre = extrapolate_centre_px(examples, self.config.horizon_frames, slope)
        # A region holds its left edge: without the nudge a centre exactly there ties with the region before.
        place = np.clip(compute_region_position(centre, examples.width_px, labels) + 1e-9, 0, labels)
        distance = np.abs(np.arange(labels) + 0.5 - place[:, None])
        weight = np.exp(-(distance - distance.min(axis=1, keepdims=True)) / spread)
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class LogisticConfig:
    """Hyperparameters that are tried, and their selection.

    Args:
        labels: how many there are; two make one probability.
        vehicle: whether the action of the vehicle is among the features.
        traffic: whether the state of the traffic is.
        penalties: candidates for scikit-learn's C, the inverse of the penalty.
        balanced: candidates for weighing labels inversely to how often they occur.
        criterion: what is best on validation.
    """

    labels: int = 2
    vehicle: bool = True
    traffic: bool = False
    penalties: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    balanced: tuple[bool, ...] = (False, True)
    criterion: Criterion = "balanced_accuracy"


class Logistic(TabularModel):
    """Standardised hand features, one linear layer, sigmoid or softmax."""

    card: ClassVar[ModelCard] = ModelCard(
        name="logistic",
        paper="ours: the plainest learned baseline",
        family="tabular",
        tasks=("action", "intention", "risk"),
        diagram="observed boxes and vehicle actions -> 21 hand features -> standardised by the train split "
        "-> one linear layer -> sigmoid (two labels) or softmax",
        parameters="22 for two labels (21 weights and a bias), 22 per label otherwise; 42 means and scales",
        inputs="boxes of the observation: last centre, size, distance to the middle, displacement, growth, "
        "motion to the middle, mean and spread of the aspect, lengths as shares of the image; vehicle action "
        "of the last frame and its shares over the observation; no image, no behaviour tag, no attribute",
        weights="none are shipped: fitted on the train split, penalty and class weight chosen on validation",
        licence="those of the data it is fitted on",
    )
    config_class = LogisticConfig

    def _fit(self, examples: Labelled, validation: Labelled) -> Fitted:
        features, held_out = self._features(examples), self._features(validation)
        mean, scale = features.mean(axis=0), features.std(axis=0)
        # A feature that never varies keeps its scale; it is 0 once its mean is taken off.
        scale = np.where(scale > 1e-12, scale, 1.0)
        trials, candidates = [], []
        for balanced in self.config.balanced:
            for penalty in self.config.penalties:
                arrays = _solve(
                    (features - mean) / scale, examples.truth, penalty, balanced, self.config.labels
                )
                arrays |= {"mean": mean, "scale": scale}
                value = choice.score(
                    self.config.criterion, _scores(arrays, held_out, self.n_scores), validation.truth
                )
                trials.append(Trial({"penalty": penalty, "balanced": balanced}, value))
                candidates.append(arrays)
        winner = choice.select_best_trial(trials)
        return Fitted(candidates[winner], trials[winner].settings, tuple(trials))

    def _predict(self, fitted: Fitted, examples: Observed) -> Floats:
        return _scores(fitted.arrays, self._features(examples), self.n_scores)

    def _features(self, examples: Observed) -> Floats:
        given = self.config
        return extract_hand_features(
            examples, vehicle=given.vehicle, extrapolated=False, traffic=given.traffic
        )


def _scores(arrays: dict[str, npt.NDArray[Any]], features: Floats, n_scores: int) -> Floats:
    """(n, k) probabilities from (n, f) features."""
    standard = (features - arrays["mean"]) / arrays["scale"]
    return convert_to_probabilities(standard @ arrays["weights"].T + arrays["bias"], n_scores)


def _solve(
    features: Floats, truth: npt.NDArray[np.int64], penalty: float, balanced: bool, labels: int
) -> dict[str, npt.NDArray[Any]]:
    """Weights (k, f) and biases (k,); a label that does not occur in train gets probability 0."""
    from sklearn.linear_model import LogisticRegression

    # One thread: the sums come out the same on machines with other numbers of cores.
    with limit_to_one_thread():
        solver = LogisticRegression(
            C=penalty, class_weight="balanced" if balanced else None, max_iter=5000, tol=1e-6
        ).fit(features, truth)
    weights, bias = np.asarray(solver.coef_, np.float64), np.asarray(solver.intercept_, np.float64)
    if labels == 2:
        return {"weights": weights, "bias": bias}
    known = solver.classes_[-len(weights) :]  # of two labels, the first keeps the raw score 0
    full = {"weights": np.zeros((labels, weights.shape[1])), "bias": np.full(labels, -np.inf)}
    full["bias"][solver.classes_] = 0.0
    full["weights"][known], full["bias"][known] = weights, bias
    return full


# Boosted trees as plain arrays: taken out of scikit-learn once, evaluated here ever after.


def export(booster: Any) -> Arrays:
    """The trees of a fitted HistGradientBoostingClassifier without categorical features.

    Returns:
        start: (k,) raw score before the first tree; feature, left, right: (rounds, k, nodes) int32;
        threshold, value: (rounds, k, nodes); missing_left: (rounds, k, nodes) bool; depth: () the longest
        path. A leaf points to itself, so every sample can take the same number of steps.
    """
    rounds = [[tree.nodes for tree in trees] for trees in booster._predictors]
    shape = (len(rounds), len(rounds[0]), max(len(nodes) for trees in rounds for nodes in trees))
    # Leaves lead to themselves: samples that have arrived stay while others go on.
    itself = np.broadcast_to(np.arange(shape[2], dtype=np.int32), shape)
    arrays: Arrays = {
        "feature": np.zeros(shape, np.int32),
        "left": itself.copy(),
        "right": itself.copy(),
        "threshold": np.zeros(shape),
        "value": np.zeros(shape),
        "missing_left": np.zeros(shape, bool),
    }
    for r, trees in enumerate(rounds):
        for k, nodes in enumerate(trees):
            inner = np.flatnonzero(nodes["is_leaf"] == 0)
            for ours, theirs in _FIELDS:
                arrays[ours][r, k, inner] = nodes[theirs][inner]
            arrays["value"][r, k, : len(nodes)] = nodes["value"]
    deepest = max(int(nodes["depth"].max()) for trees in rounds for nodes in trees)
    start = np.asarray(booster._baseline_prediction, np.float64).reshape(-1)
    return {**arrays, "start": start, "depth": np.array(deepest, np.int32)}


_FIELDS = (
    ("feature", "feature_idx"),
    ("threshold", "num_threshold"),
    ("left", "left"),
    ("right", "right"),
    ("missing_left", "missing_go_to_left"),
)


def truncate_trees(trees: Arrays, rounds: int) -> Arrays:
    """The first rounds of trees."""
    return {name: values[:rounds] if values.ndim == 3 else values for name, values in trees.items()}


def iterate_staged_scores(trees: Arrays, features: Floats) -> Iterator[Floats]:
    """The (n, k) raw scores after each round.

    Args:
        trees: what `export` gave.
        features: (n, f), NaN where unknown.

    Raises:
        IndexError: if trees ask for features or nodes that are not there.
    """
    raw = np.broadcast_to(trees["start"], (len(features), trees["feature"].shape[1])).copy()
    for r in range(len(trees["feature"])):
        _add_rounds(trees, slice(r, r + 1), features, raw)
        yield raw.copy()


def compute_raw_scores(trees: Arrays, features: Floats) -> Floats:
    """The (n, k) raw scores of all trees.

    Raises:
        IndexError: if trees ask for features or nodes that are not there.
    """
    raw = np.broadcast_to(trees["start"], (len(features), trees["feature"].shape[1])).copy()
    _add_rounds(trees, slice(None), features, raw)
    return raw


def _add_rounds(trees: Arrays, rounds: slice, features: Floats, raw: Floats) -> None:
    names = ("feature", "threshold", "left", "right", "missing_left", "value")
    held = [trees[name][rounds] for name in names]
    shape = held[0].shape
    if len(shape) != 3 or any(each.shape != shape for each in held):
        raise IndexError(f"trees of unlike shapes: {[each.shape for each in held]}")
    # Compiled code reads wherever it is sent.
    for name, most in (("feature", features.shape[1]), ("left", shape[2]), ("right", shape[2])):
        places = trees[name][rounds]
        if places.size and not (places.min() >= 0 and places.max() < most):
            raise IndexError(f"trees ask for {name} {places.max()} of {most}")
    depth = min(int(trees["depth"]), shape[2])  # no path is longer than there are nodes
    kinds: tuple[Any, ...] = (np.int32, np.float64, np.int32, np.int32, np.bool_, np.float64)
    given: list[Any] = [np.ascontiguousarray(each, kind) for each, kind in zip(held, kinds, strict=True)]
    feature, threshold, left, right, missing_left, value = given
    x = np.ascontiguousarray(features, np.float64)
    add_leaves(feature, threshold, left, right, missing_left, value, depth, x, raw)


@dataclass(frozen=True)
class BoostingConfig:
    """Hyperparameters that are tried, and their selection.

    Args:
        labels: how many there are; two make one probability.
        vehicle: whether the action of the vehicle is among the features.
        traffic: whether the state of the traffic is.
        learning_rate: weight of each tree.
        leaves: candidates for the most leaves of a tree.
        least_in_leaf: fewest samples of a leaf.
        rounds: most rounds; how many are kept is chosen among the multiples of `step` and this.
        step: distance between two candidates for the number of rounds.
        balanced: candidates for weighing labels inversely to how often they occur.
        criterion: what is best on validation.
        seed: of scikit-learn, for the binning of more than 10,000 samples.
    """

    labels: int = 2
    vehicle: bool = True
    traffic: bool = False
    learning_rate: float = 0.05
    leaves: tuple[int, ...] = (7, 15, 31)
    least_in_leaf: int = 20
    rounds: int = 200
    step: int = 20
    balanced: tuple[bool, ...] = (False,)
    criterion: Criterion = "log_loss"
    seed: int = 0


class Boosting(TabularModel):
    """Histogram gradient boosting, kept and evaluated as arrays of trees."""

    card: ClassVar[ModelCard] = ModelCard(
        name="boosting",
        paper="ours: scikit-learn's HistGradientBoostingClassifier (after LightGBM, NeurIPS 2017)",
        family="tabular",
        tasks=("action", "intention", "risk"),
        diagram="observed boxes and vehicle actions -> 21 hand features and the extrapolated centre in "
        "0, 30, 60 and 90 frames -> sum of regression trees (one per label and round) -> sigmoid or softmax",
        parameters="up to 200 rounds of trees with up to 31 leaves each, both chosen on validation",
        inputs="as logistic, not standardised, and the centre that a constant velocity (least-squares line "
        "through the observed centres) leads to, as a share of the image; no image, no behaviour tag",
        weights="none are shipped: fitted on the user's train split, leaves and rounds chosen on validation",
        licence="those of the data it is fitted on",
    )
    config_class = BoostingConfig

    def _fit(self, examples: Labelled, validation: Labelled) -> Fitted:
        features, held_out = self._features(examples), self._features(validation)
        trials: list[Trial] = []
        grown: list[Arrays] = []
        for balanced in self.config.balanced:
            for leaves in self.config.leaves:
                grown.append(self._grow(features, examples.truth, leaves, balanced))
                for rounds, value in self._by_rounds(grown[-1], held_out, validation.truth):
                    settings = {"leaves": leaves, "balanced": balanced, "rounds": rounds}
                    trials.append(Trial(settings, value))
        winner = choice.select_best_trial(trials)
        chosen = trials[winner].settings
        # Each fit has the same number of trials, one after another.
        kept = grown[winner * len(grown) // len(trials)]
        return Fitted(truncate_trees(kept, chosen["rounds"]), chosen, tuple(trials))

    def _predict(self, fitted: Fitted, examples: Observed) -> Floats:
        return convert_to_probabilities(
            compute_raw_scores(fitted.arrays, self._features(examples)), self.n_scores
        )

    def _features(self, examples: Observed) -> Floats:
        given = self.config
        return extract_hand_features(
            examples, vehicle=given.vehicle, extrapolated=True, traffic=given.traffic
        )

    def _by_rounds(
        self, grown: Arrays, features: Floats, truth: npt.NDArray[np.int64]
    ) -> list[tuple[int, float]]:
        """The validation score after each candidate number of rounds."""
        scored = []
        for done, raw in enumerate(iterate_staged_scores(grown, features), start=1):
            if done % self.config.step == 0 or done == self.config.rounds:
                value = choice.score(
                    self.config.criterion, convert_to_probabilities(raw, self.n_scores), truth
                )
                scored.append((done, value))
        return scored

    def _grow(self, features: Floats, truth: npt.NDArray[np.int64], leaves: int, balanced: bool) -> Arrays:
        """All rounds of trees; a label that does not occur in train gets probability 0."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        booster = HistGradientBoostingClassifier(
            learning_rate=self.config.learning_rate,
            max_iter=self.config.rounds,
            max_leaf_nodes=leaves,
            min_samples_leaf=self.config.least_in_leaf,
            class_weight="balanced" if balanced else None,
            # Rounds are chosen on validation; scikit-learn would split a part of train off for it.
            early_stopping=False,
            random_state=self.config.seed,
        )
        with limit_to_one_thread():
            booster.fit(features, truth)
        grown = export(booster)
        return grown if self.n_scores == 1 else _for_all_labels(grown, booster.classes_, self.config.labels)


def _for_all_labels(grown: Arrays, known: npt.NDArray[np.int64], labels: int) -> Arrays:
    """Trees of the labels that occur, spread over all labels; those that do not occur start at -inf."""
    spread: Arrays = {"start": np.full(labels, -np.inf), "depth": grown["depth"]}
    spread["start"][known] = 0.0
    known = known[-len(grown["start"]) :]  # of two labels, the first keeps the raw score 0
    spread["start"][known] = grown["start"]
    for name, values in grown.items():
        if values.ndim == 3:
            spread[name] = np.zeros((values.shape[0], labels, values.shape[2]), values.dtype)
            spread[name][:, known] = values
    return spread


def limit_to_one_thread() -> AbstractContextManager[Any]:
    """A context in which the numerical libraries use one thread."""
    limits: AbstractContextManager[Any] = import_module("threadpoolctl").threadpool_limits(limits=1)
    return limits
