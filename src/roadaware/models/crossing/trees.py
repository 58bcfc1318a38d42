"""Boosted trees as plain arrays: taken out of scikit-learn once, evaluated here ever after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats

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


def truncated(trees: Arrays, rounds: int) -> Arrays:
    """The first rounds of trees."""
    return {name: values[:rounds] if values.ndim == 3 else values for name, values in trees.items()}


def staged(trees: Arrays, features: Floats) -> Iterator[Floats]:
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


def raw_scores(trees: Arrays, features: Floats) -> Floats:
    """The (n, k) raw scores of all trees."""
    raw = np.broadcast_to(trees["start"], (len(features), trees["feature"].shape[1]))
    for stage in staged(trees, features):
        raw = stage
    return np.asarray(raw)


def _leaf_values(trees: Arrays, r: int, k: int, features: Floats) -> Floats:
    """(n,) the value of the leaf each sample falls into."""
    feature, threshold = trees["feature"][r, k], trees["threshold"][r, k]
    left, right, missing_left = trees["left"][r, k], trees["right"][r, k], trees["missing_left"][r, k]
    rows, node = np.arange(len(features)), np.zeros(len(features), np.int32)
    for _ in range(min(int(trees["depth"]), len(feature))):  # no path is longer than there are nodes
        seen = features[rows, feature[node]]
        goes_left = np.where(np.isnan(seen), missing_left[node], seen <= threshold[node])
        node = np.where(goes_left, left[node], right[node])
    return np.asarray(trees["value"][r, k][node])
