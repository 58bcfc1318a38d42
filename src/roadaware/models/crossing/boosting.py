"""Gradient boosting on the hand features and on where the pedestrian is headed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.models.card import ModelCard
from roadaware.models.crossing import features as choice
from roadaware.models.crossing.features import (
    Criterion,
    Labelled,
    Observed,
    Trial,
    convert_to_probabilities,
    extract_hand_features,
)
from roadaware.models.crossing.tabular import Fitted, TabularModel
from roadaware.models.threads import limit_to_one_thread

# Boosted trees as plain arrays: taken out of scikit-learn once, evaluated here ever after.

Arrays = dict[str, npt.NDArray[Any]]


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
    """
    rounds, n_scores, _ = trees["feature"].shape
    raw = np.broadcast_to(trees["start"], (len(features), n_scores)).copy()
    for r in range(rounds):
        for k in range(n_scores):
            raw[:, k] += _leaf_values(trees, r, k, features)
        yield raw.copy()


def compute_raw_scores(trees: Arrays, features: Floats) -> Floats:
    """The (n, k) raw scores of all trees."""
    raw = np.broadcast_to(trees["start"], (len(features), trees["feature"].shape[1]))
    for stage in iterate_staged_scores(trees, features):
        raw = stage
    return np.asarray(raw)


def _leaf_values(trees: Arrays, r: int, k: int, features: Floats) -> Floats:
    """(n,) the value of the leaf each sample falls into."""
    feature, threshold = trees["feature"][r, k], trees["threshold"][r, k]
    left, right, missing_left = trees["left"][r, k], trees["right"][r, k], trees["missing_left"][r, k]
    rows, node = np.arange(len(features)), np.zeros(len(features), np.int32)
    for _ in range(min(int(trees["depth"]), len(feature))):  # no path is longer than there are nodes
        seen = features[rows, feature[node]]
        # Where scikit-learn sends NaN was learnt with the split.
        goes_left = np.where(np.isnan(seen), missing_left[node], seen <= threshold[node])
        node = np.where(goes_left, left[node], right[node])
    return np.asarray(trees["value"][r, k][node])


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
