"""Fits of the event head and of the anticipation head: small networks, then a calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.errors import UsageError
from roadaware.models.event_head.anticipation import (
    BOX,
    HORIZONS_S,
    PRESENT,
    AnticipationHead,
    ConstantVelocity,
    encode_boxes,
    extrapolate,
    join_inputs,
    measure_shifts,
)
from roadaware.models.event_head.head import FEATURES, EventHead, SmallNetwork
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.simulator.actors import AV_ACTIONS
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS
from roadaware.training.events.rows import (
    DetectorErrors,
    MotionNoise,
    Rows,
    iterate_linked_frames,
    simulate_inputs,
)
from roadaware.training.events.scenes import SceneTruth

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
    network = build_layers(x.shape[1], widths, y.shape[1], 0.15)
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
    return list(extract_layers(network))


def build_layers(inputs: int, widths: Sequence[int], outputs: int, dropout: float) -> nn.Sequential:
    """Linear layers with rectifiers and dropout behind each but the last."""
    parts: list[nn.Module] = []
    for width in widths:
        parts += [nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(dropout)]
        inputs = width
    return nn.Sequential(*parts, nn.Linear(inputs, outputs))


def extract_layers(network: nn.Sequential) -> tuple[tuple[Floats32, Floats32], ...]:
    """(inputs, outputs) weights and (outputs,) bias of each linear layer, as `SmallNetwork` takes them."""
    return tuple(
        (
            part.weight.detach().numpy().T.astype(np.float32).copy(),
            part.bias.detach().numpy().astype(np.float32),
        )
        for part in network
        if isinstance(part, nn.Linear)
    )


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
        if truth[:, label].sum() >= _FEWEST_TRUE:
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


ANTICIPATION_WIDTHS = (192, 160)
_ANTICIPATION_BATCH, _BOX_WEIGHT = 512, 1.0
_SHARES = np.linspace(0, 1, 21)
_FEWEST_TRUE = 10
"""Boxes of which a label has to be true for numbers to be fitted to it."""


@dataclass(frozen=True, eq=False)
class FutureRows:
    """Boxes of linked tubes with their inputs, and the truth at each horizon.

    Args:
        x: (n, features).
        now: (n, 4) present places, see `ConstantVelocity.step`.
        speed: (n, 4) their change a second.
        agent: (n,) agent with the highest score.
        tube: (n,) of the linker; each scene has its own numbers.
        frame: (n,) present frame.
        score: (n,) agentness.
        real: (n,) of an object that is there, rather than a false detection.
        known: (n, horizons) whether the scene goes on for so long.
        present: (n, horizons) whether the object is seen then.
        action, location: (n, horizons, labels) true then.
        box: (n, horizons, 4) true places then, as `encode_boxes` has them; 0 where it is not seen.
        scene: (n,) number of the scene.
    """

    x: Floats32
    now: Floats
    speed: Floats
    agent: Ints
    tube: Ints
    frame: Ints
    score: Floats32
    real: Bools
    known: Bools
    present: Bools
    action: Bools
    location: Bools
    box: Floats
    scene: Ints


def make_future_rows(
    truth: SceneTruth,
    number: int,
    seed: int,
    *,
    errors: DetectorErrors | None = None,
    noise: MotionNoise | None = None,
    pixels: bool | None = None,
    every: int = 1,
) -> FutureRows:
    """The rows of one scene.

    Args:
        truth, number, seed, errors, noise, pixels, every: as of `make_rows`.
    """
    found, motions, focal = simulate_inputs(truth, number, seed, errors=errors, noise=noise, pixels=pixels)
    velocity = ConstantVelocity()
    parts: list[tuple[Any, ...]] = []
    for number_now, linked, named, x, _ in iterate_linked_frames(truth, found, motions, focal):
        # Tubes that are over keep their row: a scene is short.
        now, speed = velocity.step(number_now / truth.fps, named, found.box[linked])
        if number_now % every == 0 and len(linked):
            parts.append((linked, named, np.full(len(linked), number_now), x, now, speed))
    held, tubes, frames, xs, places_now, speeds = (
        np.concatenate([part[k] for part in parts]) if parts else np.zeros((0, *shape))
        for k, shape in enumerate(((), (), (), (len(FEATURES),), (4,), (4,)))
    )
    rows, frame = held.astype(np.int64), frames.astype(np.int64)
    source = found.source[rows]
    real = source >= 0
    at = {(t, f): k for k, (t, f) in enumerate(zip(truth.tube.tolist(), truth.frame.tolist(), strict=True))}
    horizons = np.array([max(1, round(h * truth.fps)) for h in HORIZONS_S])
    later = frame[:, None] + horizons
    then = np.array(
        [
            [at.get((int(truth.tube[s]), f), -1) if s >= 0 else -1 for f in row]
            for s, row in zip(source.tolist(), later.tolist(), strict=True)
        ],
        dtype=np.int64,
    ).reshape(len(rows), len(horizons))
    present = then >= 0
    places = encode_boxes(truth.box)
    return FutureRows(
        x=xs.astype(np.float32),
        now=places_now,
        speed=speeds,
        agent=found.scores[rows].argmax(axis=1),
        tube=tubes.astype(np.int64),
        frame=frame,
        score=found.score[rows],
        real=real,
        known=later < truth.n_frames,
        present=present,
        action=truth.action[then] & present[..., None],
        location=_encode_locations(np.where(present, truth.location[then], -1)),
        box=np.where(present[..., None], places[then], 0.0),
        scene=np.full(len(rows), number),
    )


def _encode_locations(place: Ints) -> Bools:
    """(..., locations) which one is true; none of -1."""
    found: Bools = place[..., None] == np.arange(len(LOCATIONS))
    return found


def join_future_rows(parts: list[FutureRows]) -> FutureRows:
    """The rows of several scenes."""
    names = FutureRows.__dataclass_fields__
    return FutureRows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def fit_anticipation(
    rows: FutureRows,
    kept_back: FutureRows,
    events: EventHead,
    *,
    seed: int = 0,
    networks: int = 3,
    epochs: int = 4,
    facts: Mapping[str, Any] | None = None,
) -> AnticipationHead:
    """A head that learnt from some scenes.

    Args:
        rows: to learn from.
        kept_back: of other scenes, which say how far what is learnt of labels is to be trusted.
        events: says what holds now.
        seed: of the networks; they are averaged.
        networks: how many.
        epochs: over the rows.
        facts: that the file keeps.

    Raises:
        UsageError: if there is no row to learn from.
    """
    if not len(rows.x):
        raise UsageError("no road user of the scenes is seen for long enough to learn anticipation from")
    places = extrapolate(rows.now, rows.speed)
    shifts = measure_shifts(places, rows.now, rows.box).astype(np.float32)
    seen = (rows.present & rows.known)[..., None]
    target = np.concatenate(
        [rows.present[..., None], rows.action, rows.location, np.where(seen, shifts, 0)], axis=-1
    ).astype(np.float32)
    labels = len(ACTIONS) + len(LOCATIONS)
    weight = np.concatenate(
        [
            rows.known[..., None],
            np.repeat(seen, labels, axis=-1),
            np.repeat(seen, BOX, axis=-1) * _BOX_WEIGHT,
        ],
        axis=-1,
    ).astype(np.float32)
    logits = events.tubes.logits(rows.x)
    inputs = join_inputs(rows.x.astype(np.float64), logits)
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0) + np.float32(1e-3)
    standard = torch.from_numpy(np.clip((inputs - mean) / spread, -6, 6))
    outputs = target.shape[-1]
    # What the present says of the labels is added to what the network says.
    base = np.zeros_like(target)
    base[..., PRESENT : PRESENT + labels] = logits[:, None]
    # Shifts grow with the horizon: each is learnt in units of its own spread.
    scale = np.ones((len(HORIZONS_S), outputs), np.float32)
    for k in range(len(HORIZONS_S)):
        held = shifts[seen[:, k, 0], k]
        scale[k, -BOX:] = np.maximum(held.std(axis=0), 1e-2) if len(held) else 1.0
    due, counts, held = (
        torch.from_numpy(each.reshape(len(target), -1)) for each in (target / scale, weight, base)
    )
    layers = tuple(
        _train_anticipation(standard, due, counts, held, seed + k, epochs) for k in range(networks)
    )
    network = SmallNetwork(mean, spread, layers, scale.reshape(-1), np.zeros(scale.size, np.float32))
    trusted = _select_shares(network, kept_back, events)
    network = replace(network, slope=(scale * trusted).reshape(-1).astype(np.float32))
    return AnticipationHead(tuple(ACTIONS), tuple(LOCATIONS), HORIZONS_S, network, dict(facts or {}))


def _select_shares(network: SmallNetwork, rows: FutureRows, events: EventHead) -> Floats:
    """(horizons, outputs) which share of what the network says of each label is the likeliest on scenes kept back.

    What a network adds to the present logits, from a few hundred scenes, is partly chance, of rare labels more than of
    others: a share of it is kept, none of a label that is true fewer than ten times. Whether something is seen, and
    where, is taken as it is.
    """
    logits = events.tubes.logits(rows.x)
    out = network.logits(join_inputs(rows.x.astype(np.float64), logits))
    out = out.reshape(len(rows.x), len(HORIZONS_S), out.shape[1] // len(HORIZONS_S))
    shares = np.ones(out.shape[1:])
    true = np.concatenate([rows.action, rows.location], axis=2)
    for k in range(len(HORIZONS_S)):
        seen = rows.present[:, k] & rows.known[:, k]
        for label in range(true.shape[2]):
            added, now, due = out[seen, k, PRESENT + label], logits[seen, label], true[seen, k, label]
            losses = [_measure_loss(now + share * added, due) for share in _SHARES]
            shares[k, PRESENT + label] = _SHARES[int(np.argmin(losses))] if due.sum() >= _FEWEST_TRUE else 0.0
    return shares


def _measure_loss(logits: Floats, true: Bools) -> float:
    """Mean binary cross-entropy of logits."""
    return float(np.mean(np.logaddexp(0, logits) - true * logits)) if logits.size else 0.0


def _train_anticipation(
    x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor, base: torch.Tensor, seed: int, epochs: int
) -> tuple[tuple[Floats32, Floats32], ...]:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    network = build_layers(x.shape[1], ANTICIPATION_WIDTHS, y.shape[1], 0.15)
    # It begins at 0: what is goes on, until something else is learnt.
    for last in network[-1].parameters():
        nn.init.zeros_(last)
    steps = max(1, len(x) // _ANTICIPATION_BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=epochs * steps + 1)
    per_horizon = y.shape[1] // len(HORIZONS_S)
    is_box = torch.arange(y.shape[1]) % per_horizon >= per_horizon - BOX
    for _ in range(epochs):
        order = torch.randperm(len(x), generator=generator)
        for step in range(steps):
            chosen = order[step * _ANTICIPATION_BATCH : (step + 1) * _ANTICIPATION_BATCH]
            out, due, counts = network(x[chosen]) + base[chosen], y[chosen], weight[chosen]
            labels = nn.functional.binary_cross_entropy_with_logits(
                out[:, ~is_box], due[:, ~is_box], reduction="none"
            )
            boxes = nn.functional.smooth_l1_loss(out[:, is_box], due[:, is_box], reduction="none")
            loss = ((labels * counts[:, ~is_box]).sum() + (boxes * counts[:, is_box]).sum()) / len(chosen)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
    return extract_layers(network)


__all__ = ["PRESENT", "FutureRows", "fit_anticipation", "join_future_rows", "make_future_rows"]
