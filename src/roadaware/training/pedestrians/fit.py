"""Fit: one network learns from one split and is kept as it was when it did best on another; imports torch."""

from __future__ import annotations

import copy
import io
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from roadaware import __version__
from roadaware.errors import DiskError, InputError, RoadawareError
from roadaware.io.files import write_atomically
from roadaware.io.interrupts import Stop
from roadaware.models.crossing.networks.stills import CrossingNet
from roadaware.models.crossing.predictor import compute_kl_divergence, convert_logits, predict_logits
from roadaware.models.tensor_files import read_pickled
from roadaware.tasks.pedestrians import evaluate_future
from roadaware.training.loop import (
    Average,
    build_optimizer,
    compute_learning_rate,
    resume_optimizer,
    set_rate,
)
from roadaware.training.pedestrians.heads import (
    Drawn,
    Fold,
    Heads,
    compute_class_weights,
    compute_moments,
    encode_target,
    ensure_flippable,
    flip_inputs,
    flip_targets,
    frames_loss,
    label_loss,
)
from roadaware.training.pedestrians.recipe import PedestrianRecipe
from roadaware.training.pedestrians.results import score_probabilities

# Where a fit stands, kept in a file, so that one that was ended goes on; imports torch.

_log = logging.getLogger("roadaware")
_FORMAT = "roadaware-fit-1"
_EVERY_S = 30.0
_SHARE = 0.05
"""Of the time that saving may take, where weights are many."""


class StoppedFitError(Exception):
    """A signal stopped the fit; its state is saved."""


class Keeper:
    """Keeps a fit every half minute and when it is to stop.

    Args:
        path: the file; its folder must exist. None keeps nothing.
        stop: says when the fit is to stop.
        every_s: seconds between two saves, more where saving takes long.
    """

    def __init__(self, path: Path | None = None, stop: Stop | None = None, every_s: float = _EVERY_S) -> None:
        self.path, self.stop, self.every_s = path, Stop() if stop is None else stop, every_s
        self._next = time.monotonic() + every_s

    @property
    def due(self) -> bool:
        """Whether the fit is to be saved, or to stop."""
        return bool(self.stop) or (self.path is not None and time.monotonic() >= self._next)

    def save(self, state: dict[str, Any]) -> None:
        """Write the state of the fit; a full disk is reported, and the previous state is kept.

        Raises:
            StoppedFitError: afterwards, if it is to stop.
        """
        if self.path is not None:
            began = time.monotonic()
            file = io.BytesIO()
            torch.save({"format": _FORMAT, **state}, file)
            try:
                write_atomically(self.path, file.getvalue())
            except DiskError as error:
                _log.warning("where the fit stands is not saved: %s", error)
            now = time.monotonic()
            self._next = now + max(self.every_s, (now - began) / _SHARE)
        if self.stop:
            raise StoppedFitError

    def open(self, of: dict[str, Any]) -> dict[str, Any] | None:
        """Open the saved state; None, with a warning if a file exists, if the fit has to start again.

        Args:
            of: what the saved state must say of its data under `of`.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            state = read_pickled(self.path)
        except InputError:
            state = None
        if isinstance(state, dict) and state.get("format") == _FORMAT and state.get("of") == of:
            return state
        _log.warning("%s is not whole, or of other data; its fit begins anew", self.path)
        return None

    def remove(self) -> None:
        """The fit is over."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


Epoch = Callable[["Score"], None]
WORSE = 100.0
"""A mean loss of labels so many times that of guessing ends a fit: no answer is kept that is so far off."""


class DivergedFitError(RoadawareError):
    """The loss of a fit is no number any more, or far above that of guessing."""

    exit_code = 1


@dataclass(frozen=True)
class Score:
    """Scores of an epoch.

    Args:
        epoch: from 1.
        loss: mean of the epoch.
        worth: on validation, by the recipe's criterion; NaN where that means nothing.
        ahead: what the heads beside the label are worth on validation, see `tasks.pedestrians.evaluate_future`.
    """

    epoch: int
    loss: float
    worth: float
    ahead: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Fitted:
    """Result of a fit.

    Args:
        curve: of every epoch.
        best: the epoch that is kept, from 1.
        cpu_s: seconds of all processors that it took, validation and earlier parts of it included.
    """

    curve: tuple[Score, ...]
    best: int
    cpu_s: float = field(default=0.0, compare=False)


@dataclass
class _Progress:
    """How far a fit is.

    Args:
        step: steps done.
        done: of these in the epoch that is under way.
        losses: of that epoch so far.
        label_losses: the part of each that is the label's.
        curve: epochs that are over, as the fields of `Score`.
        best: what the best of them was worth.
        chosen: its number from 1, 0 before there is one.
        kept: the weights of then.
        cpu_s: seconds of all processors so far, but for those since the fit went on.
    """

    step: int = 0
    done: int = 0
    losses: list[float] = field(default_factory=list)
    label_losses: list[float] = field(default_factory=list)
    curve: list[dict[str, Any]] = field(default_factory=list)
    best: float = -math.inf
    chosen: int = 0
    kept: dict[str, Tensor] = field(default_factory=dict)
    cpu_s: float = 0.0


class Fitter:
    """One fit.

    Args:
        network: is trained in place.
        train: what it learns from.
        validation: what decides which epoch is kept.
        recipe: how.
        seed: of the order, of dropout and of mirroring.

    Raises:
        UsageError: if the network lacks a head that is to learn, or an input a known mirror image.
    """

    def __init__(
        self, network: CrossingNet, train: Fold, validation: Fold, recipe: PedestrianRecipe, seed: int
    ) -> None:
        self.network, self.train, self.validation = network, train, validation
        self.recipe, self.seed = recipe, seed
        if recipe.flip:
            ensure_flippable(network.shapes)
        if recipe.standardise:
            for name, (mean, spread) in compute_moments(train).items():
                network.standardise(name, mean, spread)
        labels = network.labels
        self.wanted = (
            train.soft
            if train.soft is not None
            else encode_target(train.truth, labels, recipe.loss.smoothing)
        )
        self.weight = compute_class_weights(train.truth, labels, recipe.loss.balance)[train.truth]
        self.heads = (
            Heads.of(network, train.ahead, recipe) if network.tasks and train.ahead is not None else None
        )
        self.drawn = Drawn(train, recipe.batch, seed)
        if not recipe.network.weights:
            network.settle(lambda: next(iter(self.drawn.epoch(0, 0)))[1])
        self.steps = max(1, round(recipe.schedule.epochs * self.drawn.steps))
        self.optimizer = build_optimizer(network, recipe.schedule)
        self.average = Average(network.state_dict(), recipe.schedule.ema) if recipe.schedule.ema else None
        self.chance = torch.Generator().manual_seed(seed)
        self._at, self._began_s = _Progress(), time.process_time()

    def fit(self, report: Epoch | None = None, keeper: Keeper | None = None) -> Fitted:
        """Train to the end or until it gets no better, and leave the network as it was at its best.

        Args:
            report: called after every epoch.
            keeper: saves the fit on its way, and knows where it stood.

        Raises:
            DivergedFitError: if the loss is no number any more, or that of labels over an epoch is more
                than `WORSE` times what guessing costs.
            StoppedFitError: if it was to stop; the keeper knows how far it came.
        """
        keeper, at, self._began_s = keeper or Keeper(), self._at, time.process_time()
        if (state := keeper.open(self._of)) is not None:
            self._go_on(state)
        while not self._over:
            loss, epoch = self._epoch(keeper), len(at.curve) + 1
            self._refuse_far_off(epoch)
            state = self.average.state if self.average else self.network.state_dict()
            score = Score(epoch, loss, *self._judged(state))
            if score.worth > at.best or not at.chosen:
                at.best = -math.inf if math.isnan(score.worth) else score.worth
                at.kept, at.chosen = copy.deepcopy(dict(state)), epoch
            at.curve.append(dict(vars(score)))
            at.done, at.losses, at.label_losses = 0, [], []
            if report is not None:
                report(score)
        self.network.load_state_dict(at.kept)
        self.network.eval()
        return Fitted(tuple(Score(**each) for each in at.curve), at.chosen, self._cpu_s)

    @property
    def _over(self) -> bool:
        """Whether all epochs are over, or enough of them without a better one."""
        epochs, patience = len(self._at.curve), self.recipe.patience
        late = patience and epochs - self._at.chosen >= patience
        return bool(epochs >= math.ceil(self.steps / max(1, self.drawn.steps)) or (epochs and late))

    def _epoch(self, keeper: Keeper) -> float:
        """The mean loss of an epoch, or of what was left of it."""
        at, epoch = self._at, len(self._at.curve)
        self.network.train()
        if not at.done:
            torch.manual_seed(self.seed * 1_000_003 + epoch)
        for rows, x in self.drawn.epoch(epoch, at.done):
            if at.step >= self.steps:
                break
            at.losses.append(self._step(torch.from_numpy(rows), x, epoch))
            at.step += 1
            at.done += 1
            if keeper.due:
                keeper.save(self._state)
        return float(np.mean(at.losses))

    def _step(self, rows: Tensor, x: dict[str, Tensor], epoch: int) -> float:
        """The loss of a batch, from which one step was learnt."""
        set_rate(self.optimizer, compute_learning_rate(self.recipe.schedule, self._at.step, self.steps))
        label, loss = self._loss(rows, x)
        prior = compute_kl_divergence(self.network)
        if prior is not None:  # the negative evidence lower bound, for one sample
            loss = loss + prior / len(self.train)
        value = float(loss.detach())
        if not math.isfinite(value):
            self._diverged(f"the loss of seed {self.seed} is {value} in epoch {epoch + 1}")
        self._at.label_losses.append(float(label.detach()))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.recipe.schedule.clip_norm:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.schedule.clip_norm)
        self.optimizer.step()
        if self.average:
            self.average.follow(self.network.state_dict(), self._at.step)
        return value

    def _loss(self, rows: Tensor, x: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """The loss of a batch's labels, and that of all it is to learn."""
        recipe, wanted, weight = self.recipe, self.wanted[rows], self.weight[rows]
        which = torch.zeros(len(rows), dtype=torch.bool)
        if recipe.flip:
            which = torch.rand(len(rows), generator=self.chance) < recipe.flip
            x, wanted = flip_inputs(x, which), flip_targets(wanted, which, regions=recipe.task == "risk")
        each_frame = getattr(self.network, "every_frame", None)
        if each_frame is not None and (recipe.loss.every_frame or recipe.loss.consistency):
            frames = each_frame(x)
            last = label_loss(frames[:, -1], wanted, weight, recipe.loss).mean()
            return last, last + frames_loss(frames[:, :-1], wanted, weight, recipe.loss)
        said = self.network(x)
        loss = label_loss(said["label"], wanted, weight, recipe.loss).mean()
        return loss, loss if self.heads is None else loss + self.heads.loss(said, rows, which)

    def _judged(self, state: dict[str, Tensor]) -> tuple[float, dict[str, float | None]]:
        """Validation score of weights, and their predicted futures."""
        held = {name: value.clone() for name, value in self.network.state_dict().items()}
        self.network.load_state_dict(state)
        said = predict_logits(self.network, self.validation.inputs, ("label", *self.network.tasks))
        self.network.load_state_dict(held)
        if not all(np.isfinite(values).all() for values in said.values()):
            self._diverged(f"what seed {self.seed} says about validation is no number")
        found = score_probabilities(
            self.recipe.choose, convert_logits(said.pop("label")), self.validation.truth.numpy()
        )
        future = self.validation.ahead
        return found, {} if future is None or not said else evaluate_future(said, future)

    def _refuse_far_off(self, epoch: int) -> None:
        """End a fit whose labels cost far more than guessing does, all labels being as likely.

        The first epoch is let pass: it counts the steps from random weights, on colours up to 255, too.
        """
        if epoch == 1:
            return
        losses = self._at.label_losses
        guess = label_loss(torch.zeros_like(self.wanted), self.wanted, self.weight, self.recipe.loss)
        mean, guessing = float(np.mean(losses)) if losses else 0.0, float(guess.mean())
        if mean > WORSE * guessing:
            self._diverged(
                f"the loss of seed {self.seed} is {mean:.3g} in epoch {epoch}, "
                f"and guessing costs {guessing:.3g}"
            )

    def _diverged(self, what: str) -> None:
        raise DivergedFitError(
            f"{what}; the fit is left: lower schedule.lr, or look for inputs that are huge"
        )

    @property
    def _cpu_s(self) -> float:
        """Seconds of all processors so far."""
        return self._at.cpu_s + time.process_time() - self._began_s

    @property
    def _of(self) -> dict[str, Any]:
        """What a saved state belongs to."""
        shapes = {name: list(shape) for name, shape in self.network.shapes.items()}
        return {"seed": self.seed, "samples": len(self.train), "shapes": shapes, "code": __version__}

    @property
    def _state(self) -> dict[str, Any]:
        """Everything that the fit needs to go on."""
        return {
            "of": self._of,
            "progress": {**vars(self._at), "cpu_s": self._cpu_s},
            "network": self.network.state_dict(),
            "average": self.average.state if self.average else None,
            "optimizer": self.optimizer.state_dict(),
            "turns": self.chance.get_state(),
            "chance": torch.get_rng_state(),
        }

    def _go_on(self, state: dict[str, Any]) -> None:
        for name, value in state["progress"].items():
            setattr(self._at, name, value)
        self.network.load_state_dict(state["network"])
        if self.average:
            self.average.load(state["average"])
        resume_optimizer(self.optimizer, state["optimizer"])
        self.chance.set_state(state["turns"])
        torch.set_rng_state(state["chance"])
