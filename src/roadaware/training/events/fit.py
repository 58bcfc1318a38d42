"""Fit of the event head: small networks by binary cross-entropy, then a calibration on scenes kept back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from roadaware.arrays import Bools, Floats, Floats32
from roadaware.models.event_head.head import EventHead, SmallNetwork
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.simulator.actors import AV_ACTIONS
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS
from roadaware.training.events.rows import Rows

WIDTHS, DRIVE_WIDTHS = (160, 128), (48, 48)
_PARKED = 0.3
"""Weight of a parked vehicle: there are many, and ROAD does not label them."""
_BATCH = 512
_RIDGE = 1e-3
_SURE = 10.0
"""Logit of the agent that a detector names, and with the other sign of those that it does not: 1 in 20,000 is left."""


def fit_head(
    rows: Rows,
    kept_back: Rows,
    *,
    seed: int = 0,
    networks: int = 3,
    epochs: int = 8,
    columns: Sequence[int] | None = None,
    logic: nn.Module | None = None,
    facts: Mapping[str, Any] | None = None,
) -> EventHead:
    """A head that learnt from some scenes and is calibrated on others.

    Args:
        rows: to learn from.
        kept_back: of other scenes, for the calibration.
        seed: of the networks; they are averaged.
        networks: how many.
        epochs: over the rows.
        columns: of the features that are read; all where None (the others weigh nothing).
        logic: adds to the loss of a batch what it makes of (n, agents, actions and locations) logits, such as a weighted
            `LogicLoss`; the agent is the detector's, and is not learnt. False detections and parked vehicles, which have no
            labels and so keep no requirement, are left out.
        facts: that the file keeps.
    """
    target = np.concatenate([rows.action, rows.location], axis=1).astype(np.float32)
    weight = np.where(rows.parked, _PARKED, 1.0).astype(np.float32)
    extra = None
    if logic is not None:
        top = np.where(np.eye(len(ROAD_AGENTS))[rows.top_agent] > 0, _SURE, -_SURE)
        real = (rows.agent >= 0) & ~rows.parked
        extra = logic, torch.from_numpy(top.astype(np.float32)), torch.from_numpy(real)
    tubes = _fit(
        rows.x, target, weight, WIDTHS, range(seed, seed + networks), epochs, columns, one=False, extra=extra
    )
    # Of parked vehicles there are more in simulated streets than detectors find on real ones.
    kept = ~kept_back.parked
    truth = np.concatenate([kept_back.action, kept_back.location], axis=1)[kept]
    tubes = calibrate(tubes, kept_back.x[kept], truth)
    target = np.eye(len(AV_ACTIONS), dtype=np.float32)[rows.av]
    weight = np.ones(len(target), np.float32)
    drive = _fit(
        rows.drive, target, weight, DRIVE_WIDTHS, range(seed, seed + networks), epochs, None, one=True
    )
    drive = calibrate_event_head(drive, kept_back.drive, kept_back.av)
    return EventHead(tuple(ACTIONS), tuple(LOCATIONS), tuple(AV_ACTIONS), tubes, drive, dict(facts or {}))


def _fit(
    x: Floats32,
    target: Floats32,
    weight: Floats32,
    widths: tuple[int, ...],
    seeds: range,
    epochs: int,
    columns: Sequence[int] | None,
    *,
    one: bool,
    extra: tuple[nn.Module, torch.Tensor, torch.Tensor] | None = None,
) -> SmallNetwork:
    """Networks of one shape; `one` of the labels is true, or each by itself."""
    # A column that never changes has no spread; the cut is the one that the head makes (`head._FARTHEST`).
    mean, spread = x.mean(axis=0), x.std(axis=0) + np.float32(1e-3)
    standard = torch.from_numpy(np.clip((x - mean) / spread, -6, 6))
    if columns is not None:
        hidden = np.setdiff1d(np.arange(x.shape[1]), columns)
        standard[:, torch.from_numpy(hidden)] = 0.0
    found = []
    for seed in seeds:
        layers = _train(
            standard, torch.from_numpy(target), torch.from_numpy(weight), widths, seed, epochs, one, extra
        )
        if columns is not None:
            layers[0][0][hidden] = 0.0
        found.append(tuple(layers))
    labels = target.shape[1]
    return SmallNetwork(mean, spread, tuple(found), np.ones(labels, np.float32), np.zeros(labels, np.float32))


def _train(
    x: torch.Tensor,
    y: torch.Tensor,
    weight: torch.Tensor,
    widths: tuple[int, ...],
    seed: int,
    epochs: int,
    one: bool,
    extra: tuple[nn.Module, torch.Tensor, torch.Tensor] | None,
) -> list[tuple[Floats32, Floats32]]:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    parts: list[nn.Module] = []
    inputs = x.shape[1]
    for width in widths:
        parts += [nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(0.15)]
        inputs = width
    network = nn.Sequential(*parts, nn.Linear(inputs, y.shape[1]))
    steps = max(1, len(x) // _BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=epochs * steps + 1)
    for _ in range(epochs):
        order = torch.randperm(len(x), generator=generator)
        for step in range(steps):
            chosen = order[step * _BATCH : (step + 1) * _BATCH]
            logits = network(x[chosen])
            loss = (_losses(logits, y[chosen], one) * weight[chosen]).mean()
            if extra is not None:
                logic, top_agent, real = extra
                held = torch.cat([top_agent[chosen], logits], dim=1)[real[chosen]]
                loss = loss + logic(held) / len(chosen)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
    linear = [part for part in network if isinstance(part, nn.Linear)]
    return [
        (
            part.weight.detach().numpy().T.astype(np.float32).copy(),
            part.bias.detach().numpy().astype(np.float32),
        )
        for part in linear
    ]


def _losses(logits: torch.Tensor, y: torch.Tensor, one: bool) -> torch.Tensor:
    """(n,) cross-entropies."""
    if one:
        return nn.functional.cross_entropy(logits, y.argmax(dim=1), reduction="none")
    return nn.functional.binary_cross_entropy_with_logits(logits, y, reduction="none").sum(dim=1)


def calibrate(network: SmallNetwork, x: Floats32, truth: Bools) -> SmallNetwork:
    """The network with slope and offset of each label's logit, fitted by maximum likelihood (Platt, 1999).

    Args:
        network: not calibrated yet.
        x: (n, features) of scenes that it did not learn from.
        truth: (n, labels).
    """
    logits = network.logits(x).astype(np.float64)
    slope, offset = np.ones(logits.shape[1]), np.zeros(logits.shape[1])
    for label in range(logits.shape[1]):
        # Of fewer true ones two numbers cannot be fitted.
        if truth[:, label].sum() >= 10:
            slope[label], offset[label] = _platt(logits[:, label], truth[:, label])
    return replace(network, slope=slope.astype(np.float32), offset=offset.astype(np.float32))


def _platt(logit: Floats, truth: Bools) -> tuple[float, float]:
    """Slope (never negative) and offset, by Newton's steps with a little ridge toward 1 and 0."""
    held, ridge = np.array([1.0, 0.0]), _RIDGE * len(logit)
    rows = np.stack([logit, np.ones_like(logit)], axis=1)
    for _ in range(25):
        p = 1.0 / (1.0 + np.exp(-np.clip(rows @ held, -30, 30)))
        slope = rows.T @ (p - truth) + ridge * (held - [1.0, 0.0])
        bend = (rows * (p * (1 - p))[:, None]).T @ rows + ridge * np.eye(2)
        step = np.linalg.solve(bend, slope)
        # Newton's step overshoots where nearly all probabilities are 0 or 1.
        held = held - np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-6:
            break
    # A slope of 0 or below would undo the order of scores, or turn it round.
    return max(float(held[0]), 0.05), float(held[1])


def calibrate_event_head(network: SmallNetwork, x: Floats32, truth: npt.NDArray[np.int64]) -> SmallNetwork:
    """The network with one temperature for all labels, the likeliest of a fine row of them."""
    logits = network.logits(x).astype(np.float64)
    rows = np.arange(len(truth))

    def loss(temperature: float) -> float:
        scaled = logits / temperature
        top = scaled.max(axis=1)
        whole = np.log(np.exp(scaled - top[:, None]).sum(axis=1)) + top
        return float((whole - scaled[rows, truth]).mean())

    best = min((float(t) for t in np.exp(np.linspace(np.log(0.3), np.log(5.0), 80))), key=loss)
    return replace(network, slope=np.full(logits.shape[1], 1 / best, np.float32))
