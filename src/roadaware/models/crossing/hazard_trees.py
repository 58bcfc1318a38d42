"""Boosted trees that say when: the hazard of each span of time, given that nothing has happened before it; torch-free."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import expit

from roadaware import config as configs
from roadaware.arrays import Bools, Floats
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.npz import open_arrays, save_arrays
from roadaware.io.sources import to_printable
from roadaware.models.crossing.inputs import InputSet
from roadaware.models.crossing.tabular import Arrays, compute_raw_scores, export, limit_to_one_thread
from roadaware.models.crossing.uncertainty_config import DoubtConfig

_NAME = "hazard-trees"
_BLOCK = 4096


@dataclass(frozen=True)
class HazardTreesConfig:
    """How trees learn when. Defaults were chosen by five folds over the videos of JAAD's train and validation splits.

    Args:
        inputs: whose newest step is read.
        members: ensembles of trees whose survival is averaged, each of another part of the moments.
        share: of the moments that a member learns from: neighbours in a track are alike.
        rounds, learning_rate, leaves, penalty, columns: of scikit-learn's HistGradientBoostingClassifier; `columns` is the
            share of the features that each split may choose among.
        least_in_leaf: fewest rows of a leaf, as a share of all.
    """

    inputs: tuple[str, ...] = ("history",)
    members: int = 3
    share: float = 0.1
    rounds: int = 120
    learning_rate: float = 0.05
    leaves: int = 24
    penalty: float = 20.0
    columns: float = 0.2
    least_in_leaf: float = 0.01


@dataclass(frozen=True, eq=False)
class HazardTrees:
    """A predictor of the time by boosted trees.

    A moment is a row for each span that it reaches alive (person-period data); the end of the span is a feature like others.
    A span in which a track ends is left out.

    Args:
        config: how it was fitted.
        trees: of each member, as `tabular.export` gives them.
        labels: of the spans, `later` last.
        facts: `edges_s` (ends of the spans) and what else is known, JSON-ready.

    Source: Singer and Willett, Journal of Educational Statistics 1993.
    """

    config: HazardTreesConfig
    trees: tuple[Arrays, ...]
    labels: tuple[str, ...]
    facts: dict[str, Any]
    task: str = "time"
    doubt: DoubtConfig = field(default_factory=DoubtConfig)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it reads."""
        return self.config.inputs

    @property
    def smallest(self) -> int:
        """The fewest passes: its answers are all the same."""
        return 1

    @classmethod
    def fit(
        cls,
        given: InputSet,
        time_s: Floats,
        event: Bools,
        labels: tuple[str, ...],
        facts: dict[str, Any],
        config: HazardTreesConfig | None = None,
        seed: int = 0,
    ) -> Self:
        """Trees that were fitted.

        Args:
            given: n moments.
            time_s: (n,) to the event, or to the end of what is known.
            event: (n,) which it is.
            labels: of the spans and `later`.
            facts: with `edges_s`.
            config: how (default: as the config's defaults).
            seed: of the choice of moments and features.

        Raises:
            InputError: if no event is among the moments, or a member would see none.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier

        config = config or HazardTreesConfig()
        edges = tuple(float(edge) for edge in facts["edges_s"])
        x = stack_newest(given, config.inputs)
        rng = np.random.default_rng(seed)
        found = []
        for member in range(config.members):
            chosen = rng.random(len(x)) < config.share
            rows, came = [], []
            for low, high in zip((0.0, *edges[:-1]), edges, strict=True):
                happens = event & (time_s <= high)
                kept = np.flatnonzero(chosen & (time_s > low) & (happens | (time_s > high)))
                rows.append(np.column_stack([x[kept], np.full(len(kept), high)]))
                came.append(happens[kept])
            table, truth = np.concatenate(rows), np.concatenate(came)
            if truth.all() or not truth.any():
                raise InputError(
                    "nobody begins to cross in the moments that are learnt from: there is nothing to learn"
                )
            booster = HistGradientBoostingClassifier(
                learning_rate=config.learning_rate, max_iter=config.rounds, max_leaf_nodes=config.leaves,
                min_samples_leaf=max(1, round(config.least_in_leaf * len(table))), l2_regularization=config.penalty,
                max_features=config.columns, early_stopping=False, random_state=seed * config.members + member,
            )  # fmt: skip
            with limit_to_one_thread():
                booster.fit(table, truth)
            found.append(export(booster))
        record = {**facts, "config": configs.to_dict(config), "seed": seed, "features": x.shape[1]}
        return cls(config, tuple(found), labels, record)

    def probabilities(self, given: InputSet) -> Floats:
        """(n, spans + 1) the probability of each span and of `later`.

        Raises:
            InputError: if an input is missing or has other features.
        """
        x = stack_newest(given, self.inputs)
        edges = [float(edge) for edge in self.facts["edges_s"]]
        wanted = self.facts.get("features", x.shape[1])
        if x.shape[1] != wanted:
            raise InputError(f"the {_NAME} does not fit: it reads {wanted} features, not {x.shape[1]}")
        alive = np.zeros((len(x), len(edges)))
        try:
            # All spans at once, moments in blocks: a stream asks of few people, a set of 100,000 moments and more.
            for first in range(0, len(x), _BLOCK):
                some = x[first : first + _BLOCK]
                rows = np.column_stack([np.repeat(some, len(edges), axis=0), np.tile(edges, len(some))])
                for trees in self.trees:
                    outlived = expit(-compute_raw_scores(trees, rows)[:, 0])  # one less the hazard
                    held = np.cumprod(outlived.reshape(len(some), len(edges)), axis=1)
                    alive[first : first + _BLOCK] += held / len(self.trees)
        except (IndexError, ValueError, KeyError, TypeError) as error:
            message = f"the {_NAME} does not fit these moments: {to_printable(str(error))}"
            raise InputError(
                message, hint="ask with the inputs that it was fitted on, or fit it again"
            ) from error
        return -np.diff(alive, axis=1, prepend=1.0, append=0.0)

    def passes(self, given: InputSet, n: int, seed: int = 0) -> Floats:
        """(passes, n, k) the one answer, again and again: nothing is drawn."""
        return np.repeat(self.probabilities(given)[None], n, axis=0)

    def save(self, path: Path) -> None:
        """Write it as one file of plain arrays.

        Raises:
            DiskError: if the file cannot be written.
        """
        arrays = {
            f"{name}_{m}": values for m, trees in enumerate(self.trees) for name, values in trees.items()
        }
        save_arrays(path, arrays, {"model": _NAME, "labels": list(self.labels), "facts": self.facts})

    @classmethod
    def open(cls, path: Path) -> Self:
        """The predictor that `save` wrote.

        Raises:
            DamagedError: if the file is not whole.
            InputError: if it holds another model.
        """
        arrays, facts = open_arrays(path)
        if facts.get("model") != _NAME:
            raise InputError(
                f"expected {_NAME}, found {to_printable(str(facts.get('model')), 60)}", where=str(path)
            )
        try:
            config = configs.from_dict(HazardTreesConfig, facts["facts"]["config"])
            names = sorted({name.rpartition("_")[0] for name in arrays})
            trees = tuple(
                {name: arrays[f"{name}_{member}"] for name in names} for member in range(config.members)
            )
            labels = tuple(map(str, facts["labels"]))
            edges = np.asarray(facts["facts"]["edges_s"], dtype=np.float64)
            if edges.shape != (len(labels) - 1,) or not np.isfinite(edges).all() or not trees:
                raise ValueError(f"{len(labels)} labels and {edges.shape} spans")
            return cls(config, trees, labels, dict(facts["facts"]))
        except (KeyError, TypeError, ValueError, UsageError) as error:
            message = f"the facts of the model do not fit: {to_printable(str(error))}"
            raise DamagedError(message, where=str(path)) from error


def is_hazard_trees(path: Path) -> bool:
    """Whether an archive of arrays holds trees of the time, and not another model.

    Raises:
        DamagedError: if the file is not whole.
        InputError: if there is none.
    """
    return open_arrays(path)[1].get("model") == _NAME


def stack_newest(given: InputSet, names: tuple[str, ...]) -> Floats:
    """(n, f) the newest step of some inputs side by side.

    Raises:
        InputError: if one is missing.
    """
    if missing := [name for name in names if name not in given.columns]:
        raise InputError(f"the inputs {', '.join(missing)} are missing; there are {', '.join(given.columns)}")
    every = np.arange(len(given))
    return np.concatenate(
        [np.asarray(given.columns[name].take(every), dtype=np.float64)[:, -1] for name in names], axis=1
    )
