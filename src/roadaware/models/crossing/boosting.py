"""Gradient boosting on the hand features and on where the pedestrian is headed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats
from roadaware.models.card import ModelCard
from roadaware.models.crossing import choice, trees
from roadaware.models.crossing.choice import Criterion, Trial
from roadaware.models.crossing.features import Labelled, Observed, hand_features
from roadaware.models.crossing.links import probabilities
from roadaware.models.crossing.tabular import Fitted, TabularModel
from roadaware.models.crossing.trees import Arrays
from roadaware.models.threads import one_thread


@dataclass(frozen=True)
class BoostingConfig:
    """What is tried and how it is chosen.

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
        winner = choice.best(trials)
        chosen = trials[winner].settings
        kept = grown[winner * len(grown) // len(trials)]
        return Fitted(trees.truncated(kept, chosen["rounds"]), chosen, tuple(trials))

    def _predict(self, fitted: Fitted, examples: Observed) -> Floats:
        return probabilities(trees.raw_scores(fitted.arrays, self._features(examples)), self.n_scores)

    def _features(self, examples: Observed) -> Floats:
        given = self.config
        return hand_features(examples, vehicle=given.vehicle, extrapolated=True, traffic=given.traffic)

    def _by_rounds(
        self, grown: Arrays, features: Floats, truth: npt.NDArray[np.int64]
    ) -> list[tuple[int, float]]:
        """The validation score after each candidate number of rounds."""
        scored = []
        for done, raw in enumerate(trees.staged(grown, features), start=1):
            if done % self.config.step == 0 or done == self.config.rounds:
                value = choice.score(self.config.criterion, probabilities(raw, self.n_scores), truth)
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
            early_stopping=False,
            random_state=self.config.seed,
        )
        with one_thread():
            booster.fit(features, truth)
        grown = trees.export(booster)
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
