"""Networks of paths learn from windows of tracks by likelihood; imports torch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from roadaware import __version__
from roadaware.arrays import Floats
from roadaware.config import to_dict
from roadaware.errors import InputError
from roadaware.models.trajectory.mixture import (
    MixtureConfig,
    MixtureNetwork,
    PathPredictor,
    as_tensors,
    mixture_loss,
)
from roadaware.models.trajectory.motion import States


@dataclass(frozen=True)
class PathRecipe:
    """How a network of paths learns.

    Args:
        components, hidden, degree, dropout, position: see `MixtureConfig`.
        updates: steps of AdamW, whose rate falls to 0 as a cosine.
        batch: windows of a step.
        lr, weight_decay: of AdamW.
        checks: how often validation is asked; the network with the best likelihood there is kept.
        flip: chance that a window is mirrored, left to right.
        steps_at_once: steps that an update looks at, about, evenly apart: neighbours are alike.
    """

    components: int = 5
    hidden: int = 128
    degree: int = 4
    dropout: float = 0.1
    position: bool = True
    updates: int = 1500
    batch: int = 128
    lr: float = 1e-3
    weight_decay: float = 1e-2
    checks: int = 8
    flip: float = 0.5
    steps_at_once: int = 9


def fit_paths(
    train: States,
    train_future: Floats,
    val: States,
    val_future: Floats,
    recipe: PathRecipe,
    seed: int = 0,
    *,
    start: PathPredictor | None = None,
    facts: dict[str, Any] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> PathPredictor:
    """A network that was fitted, as it was when validation liked it best.

    Args:
        train, val: what was observed.
        train_future, val_future: (n, m, d) what came.
        recipe: how.
        seed: of weights, order, dropout and mirroring.
        start: a network of the same sizes to go on from (default: a new one).
        facts: further facts for its file.
        progress: called with updates done, their number, and the likelihood so far.

    Raises:
        InputError: if there is nothing to learn from, or `start` has other sizes.
    """
    if not len(train) or not len(val):
        raise InputError("train and validation need a window each at least")
    torch.manual_seed(seed)
    _, observed, states = train.past.shape
    config = MixtureConfig(
        observed, train_future.shape[1], train.step_s, states, recipe.components, recipe.hidden, recipe.degree,
        recipe.dropout, recipe.position,
    )  # fmt: skip
    network = MixtureNetwork(config)
    (past, position), future = as_tensors(train), torch.from_numpy(train_future.astype(np.float32))
    if start is None:
        # Give the network the mean and spread of what it takes.
        given = network.features(past, position)
        mean: Any = network.mean
        deviation: Any = network.deviation
        mean.copy_(given.mean(dim=0))
        deviation.copy_(given.std(dim=0).clamp_min(1e-3))
    else:
        if replace(start.network.config, step_s=config.step_s, dropout=config.dropout) != config:
            raise InputError(
                f"the network to go on from has other sizes: {start.network.config}, not {config}"
            )
        network.load_state_dict(start.network.state_dict())
    held_out = (*as_tensors(val), torch.from_numpy(val_future.astype(np.float32)))
    rng = np.random.default_rng(seed)
    optimizer = torch.optim.AdamW(network.parameters(), recipe.lr, weight_decay=recipe.weight_decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, recipe.updates)
    best = measure_loss(network, *held_out)
    kept = copy.deepcopy(network.state_dict())
    curve: list[dict[str, float | int]] = [{"update": 0, "validation": best}]
    every = max(1, recipe.updates // recipe.checks)
    thin = -(-config.steps // recipe.steps_at_once)
    network.train()
    for update in range(1, recipe.updates + 1):
        rows = torch.from_numpy(rng.integers(0, len(past), min(recipe.batch, len(past))))
        x, place, y = past[rows], position[rows], future[rows]
        # Windows of which some are mirrored, left to right.
        which = torch.from_numpy(rng.random(len(rows)) < recipe.flip)
        sign = torch.ones(len(x), 1, x.shape[2])
        sign[which, :, 0] = -1.0
        turned = place.clone()
        turned[which, 0] = 1 - turned[which, 0]
        x, place, y = x * sign, turned, y * sign
        some = slice(int(rng.integers(0, thin)), None, thin)
        loss = mixture_loss(network(x, place, some), y[:, some]).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        if update % every and update != recipe.updates:
            continue
        worth = measure_loss(network, *held_out)
        curve.append({"update": update, "validation": worth})
        if worth < best:
            best, kept = worth, copy.deepcopy(network.state_dict())
        if progress is not None:
            progress(update, recipe.updates, f"updates, negative log-likelihood {worth:.3f}")
    network.load_state_dict(kept)
    record = {
        "seed": seed, "recipe": to_dict(recipe), "validation": best, "curve": curve, "windows": len(train),
        "version": __version__, **(facts or {}),
    }  # fmt: skip
    return PathPredictor(network.eval(), record)


def measure_loss(network: MixtureNetwork, past: Tensor, position: Tensor, future: Tensor) -> float:
    """The mean loss of windows, without dropout."""
    learns = network.training
    network.eval()
    with torch.no_grad():
        found = float(mixture_loss(network(past, position), future).mean())
    network.train(learns)
    return found
