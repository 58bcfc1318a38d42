"""Logistic regression on hand features of the observed boxes and the action of the vehicle."""

from __future__ import annotations

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
