"""AwayStudy: who learns where, how, and which doubts and beginnings are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from roadaware.errors import UsageError
from roadaware.protocols.away.checks import check
from roadaware.protocols.away.results import DOUBTS

Criterion = Literal["average_precision", "auc", "log_loss", "balanced_accuracy"]
DEFAULT_MODELS = ("steady", "sfgru", "pcpa", "transformer-encoder", "boosting", "logistic")
"""Those that need boxes alone."""
DEFAULT_DOMAINS = ("jaad-behaviour", "jaad-all", "pie", "crossing@1+city-a", "crossing@1+city-b")


@dataclass(frozen=True)
class Learning:
    """How every network learns, wherever it does.

    Args:
        updates: steps of the optimizer; as many on every training set, however large.
        batch: samples of a step.
        lr: rate at the beginning; it falls to 0 as a cosine.
        weight_decay: of weights.
        balance: weigh labels inversely to how often they occur, to this power; the tabular models do so
            where it is above 0.
        flip: chance that a sample is mirrored, left to right.
        choose: what is best on the validation split of the training set.
        last_rate: how often an input of the last layer is dropped by `last-dropout`.
        passes: answers of a network that doubts, whose mean is taken.
    """

    updates: int = 500
    batch: int = 128
    lr: float = 1e-3
    weight_decay: float = 1e-2
    balance: float = 1.0
    flip: float = 0.5
    choose: Criterion = "auc"
    last_rate: float = 0.5
    passes: int = 30

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if min(self.updates, self.batch, self.passes) < 1:
            raise UsageError("learning.updates, batch and passes are at least 1")
        if not (0 < self.last_rate < 1 and 0 <= self.flip <= 1 and 0 <= self.balance <= 1):
            raise UsageError("learning.last_rate lies in (0, 1), flip and balance in [0, 1]")


@dataclass(frozen=True)
class AwayStudy:
    """Every model learns on every domain and is asked about every other.

    Args:
        models: names in the registry, of those that are told who crosses by boxes alone (`checks.ASKED`).
        domains: names such as jaad-all, pie or crossing@1+city-b; `NAME=PATH` says where it lies.
        seeds: fits of each network; 0, 1, and so on. Tabular models draw nothing and are fitted once.
        config: samples as published (`reference`), or with honest labels (`default`).
        scenes: of a simulated domain that is made for the study.
        inputs: what networks look at.
        size: of the networks.
        fields: of models' configs, by model.
        learning: of the networks.
        doubted: models that are asked in every way of `doubts`; the others as they are, and over seeds.
        doubted_on: domains that they learn and are tested on for that; all unless told.
        doubts: ways to doubt.
        pretrained: models that also go on from what they learnt elsewhere.
        pretraining: such as `crossing@1+city-a>jaad-behaviour`: where first, and where then.
        draws: bootstrap resamples of pedestrians for the interval of each cell; 0 for none.

    Raises:
        UsageError: if something is unknown, there is too little of it, or it has no effect without another.

    Source: Gesnouin et al., IV 2022.
    """

    models: tuple[str, ...] = DEFAULT_MODELS
    domains: tuple[str, ...] = DEFAULT_DOMAINS
    seeds: int = 5
    config: Literal["reference", "default"] = "reference"
    scenes: int = 60
    inputs: tuple[str, ...] = ("boxes", "centre")
    size: Literal["published", "small"] = "small"
    fields: dict[str, Any] = field(default_factory=dict)
    learning: Learning = field(default_factory=Learning)
    doubted: tuple[str, ...] = ()
    doubted_on: tuple[str, ...] = ()
    doubts: tuple[str, ...] = DOUBTS
    pretrained: tuple[str, ...] = ()
    pretraining: tuple[str, ...] = ()
    draws: int = 200

    def __post_init__(self) -> None:
        """Refuse what cannot be run, or says something without effect."""
        check(self)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the domains."""
        return tuple(each.partition("=")[0] for each in self.domains)

    @property
    def roots(self) -> dict[str, str]:
        """Name to where it lies, of those domains that say so."""
        return {name: path for name, sign, path in (each.partition("=") for each in self.domains) if sign}

    @property
    def pairs(self) -> tuple[tuple[str, ...], ...]:
        """Where first and where then, of each pretraining."""
        return tuple(tuple(each.split(">")) for each in self.pretraining)

    @property
    def fixed(self) -> dict[str, Any]:
        """What all that lies in one folder has in common; the rest may grow from call to call."""
        from roadaware.config import to_dict

        whole = to_dict(self)
        return {key: whole[key] for key in ("config", "inputs", "size", "learning")}
