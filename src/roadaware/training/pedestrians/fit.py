"""Fit: one network learns from one split and is kept as it was when it did best on another; imports torch."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roadaware.errors import RoadawareError
from roadaware.models.crossing.networks.base import CrossingNet
from roadaware.models.crossing.predictor import batches, squashed
from roadaware.models.doubt.last_layer import divergence
from roadaware.training.pedestrians.choosing import worth
from roadaware.training.pedestrians.folds import Drawn, Fold, moments
from roadaware.training.pedestrians.losses import frames_loss, label_loss, target, weights_of
from roadaware.training.pedestrians.mirroring import turnable, turned, turned_answers
from roadaware.training.pedestrians.recipe import PedestrianRecipe
from roadaware.training.schedule import Average, optimizer_of, rate, set_rate

Epoch = Callable[["Score"], None]


class DivergedFitError(RoadawareError):
    """The loss of a fit is no number any more."""

    exit_code = 1


@dataclass(frozen=True)
class Score:
    """What an epoch came to.

    Args:
        epoch: from 1.
        loss: mean of the epoch.
        worth: on validation, by the recipe's criterion; NaN where that means nothing.
    """

    epoch: int
    loss: float
    worth: float


@dataclass(frozen=True)
class Fitted:
    """What came of a fit.

    Args:
        curve: of every epoch.
        best: the epoch that is kept, from 1.
    """

    curve: tuple[Score, ...]
    best: int


class Fitter:
    """One fit.

    Args:
        network: is trained in place.
        train: what it learns from.
        validation: what decides which epoch is kept.
        recipe: how.
        seed: of the order, of dropout and of mirroring.
    """

    def __init__(
        self, network: CrossingNet, train: Fold, validation: Fold, recipe: PedestrianRecipe, seed: int
    ) -> None:
        self.network, self.train, self.validation = network, train, validation
        self.recipe, self.seed = recipe, seed
        if recipe.flip:
            turnable(network.shapes)
        if recipe.standardise:
            for name, (mean, spread) in moments(train).items():
                network.standardise(name, mean, spread)
        labels = network.labels
        self.wanted = (
            train.soft if train.soft is not None else target(train.truth, labels, recipe.loss.smoothing)
        )
        self.weight = weights_of(train.truth, labels, recipe.loss.balance)[train.truth]
        self.drawn = Drawn(train, recipe.batch, seed)
        self.steps = max(1, round(recipe.schedule.epochs * self.drawn.steps))
        self.optimizer = optimizer_of(network, recipe.schedule)
        self.average = Average(network.state_dict(), recipe.schedule.ema) if recipe.schedule.ema else None
        self.chance = torch.Generator().manual_seed(seed)

    def fit(self, told: Epoch | None = None) -> Fitted:
        """Train to the end or until it gets no better, and leave the network as it was at its best.

        Args:
            told: of every epoch.

        Raises:
            DivergedFitError: if the loss is no number any more.
        """
        curve: list[Score] = []
        best, kept = -math.inf, copy.deepcopy(self.network.state_dict())
        chosen, step = 0, 0
        for epoch in range(math.ceil(self.steps / max(1, self.drawn.steps))):
            loss, step = self._epoch(epoch, step)
            state = self.average.state if self.average else self.network.state_dict()
            found = self._judged(state)
            curve.append(Score(epoch + 1, loss, found))
            if told is not None:
                told(curve[-1])
            if found > best or not chosen:
                best, kept, chosen = found, copy.deepcopy(dict(state)), epoch + 1
            if self.recipe.patience and epoch + 1 - chosen >= self.recipe.patience:
                break
        self.network.load_state_dict(kept)
        self.network.eval()
        return Fitted(tuple(curve), chosen)

    def _epoch(self, epoch: int, step: int) -> tuple[float, int]:
        """The mean loss of an epoch, and the number of the step behind it."""
        self.network.train()
        torch.manual_seed(self.seed * 1_000_003 + epoch)
        losses = []
        for rows, x in self.drawn.epoch(epoch):
            if step >= self.steps:
                break
            set_rate(self.optimizer, rate(self.recipe.schedule, step, self.steps))
            loss = self._loss(torch.from_numpy(rows), x)
            prior = divergence(self.network)
            if prior is not None:  # the negative evidence lower bound, for one sample
                loss = loss + prior / len(self.train)
            value = float(loss.detach())
            if not math.isfinite(value):
                raise DivergedFitError(
                    f"the loss of seed {self.seed} is {value} in epoch {epoch + 1}; the fit is left: lower "
                    "schedule.lr, or look for inputs that are huge"
                )
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            if self.recipe.schedule.clip_norm:
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.schedule.clip_norm)
            self.optimizer.step()
            if self.average:
                self.average.follow(self.network.state_dict(), step)
            losses.append(value)
            step += 1
        return float(np.mean(losses)), step

    def _loss(self, rows: Tensor, x: dict[str, Tensor]) -> Tensor:
        recipe, wanted, weight = self.recipe, self.wanted[rows], self.weight[rows]
        if recipe.flip:
            which = torch.rand(len(rows), generator=self.chance) < recipe.flip
            x, wanted = turned(x, which), turned_answers(wanted, which, regions=recipe.task == "risk")
        each_frame = getattr(self.network, "every_frame", None)
        if each_frame is not None and (recipe.loss.every_frame or recipe.loss.consistency):
            answers = each_frame(x)
            last = label_loss(answers[:, -1], wanted, weight, recipe.loss).mean()
            return last + frames_loss(answers[:, :-1], wanted, weight, recipe.loss)
        return label_loss(self.network(x)["label"], wanted, weight, recipe.loss).mean()

    def _judged(self, state: dict[str, Tensor]) -> float:
        """What weights are worth on validation."""
        held = {name: value.clone() for name, value in self.network.state_dict().items()}
        self.network.load_state_dict(state)
        self.network.eval()
        with torch.inference_mode():
            parts = [
                self.network(x)["label"]
                for x in batches(self.validation.inputs, tuple(self.network.shapes), 4096)
            ]
        found = worth(
            self.recipe.choose,
            squashed(torch.cat(parts).double().numpy()),
            self.validation.truth.numpy(),
        )
        self.network.load_state_dict(held)
        return found
