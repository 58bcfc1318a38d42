"""What the anticipation head learns from: features of linked tubes, and where their objects are some seconds later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from roadaware.arrays import Bools, Floats, Floats32, Ints
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
from roadaware.models.event_head.head import EventHead, SmallNetwork
from roadaware.models.event_head.layout import FEATURES
from roadaware.simulator.truth.terms import ACTIONS, LOCATIONS
from roadaware.training.events.rows import DetectorErrors, MotionNoise, iterate_linked_frames, simulate_inputs
from roadaware.training.events.scenes import SceneTruth

WIDTHS = (192, 160)
_BATCH, _BOX_WEIGHT = 512, 1.0
_SHARES = np.linspace(0, 1, 21)


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
        action_now, location_now: (n, labels) true now.
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
    action_now: Bools
    location_now: Bools
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
        truth: of the scene.
        number: what it is called in the rows.
        seed: of chance.
        errors: of the detector; drawn where None.
        noise: of the estimate of the own motion; the measured one where None.
        pixels: whether the own motion is estimated from images; three times of four where None.
        every: only every so many-th frame becomes rows.
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
        action_now=truth.action[source] & real[:, None],
        location_now=_encode_locations(np.where(real, truth.location[source], -1)),
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
    """
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
    layers = tuple(_train(standard, due, counts, held, seed + k, epochs) for k in range(networks))
    network = SmallNetwork(mean, spread, layers, scale.reshape(-1), np.zeros(scale.size, np.float32))
    trusted = _select_shares(network, kept_back, events)
    network = replace(network, slope=(scale * trusted).reshape(-1).astype(np.float32))
    return AnticipationHead(tuple(ACTIONS), tuple(LOCATIONS), HORIZONS_S, network, dict(facts or {}))


def _select_shares(network: SmallNetwork, rows: FutureRows, events: EventHead) -> Floats:
    """(horizons, outputs) which share of what the network says of labels is the likeliest on scenes kept back.

    What a network adds to the present logits, from a few hundred scenes, is partly chance: a share of it is kept, the
    same for all labels of a kind at a horizon. Whether something is seen, and where, is taken as it is.
    """
    logits = events.tubes.logits(rows.x)
    out = network.logits(join_inputs(rows.x.astype(np.float64), logits)).reshape(
        len(rows.x), len(HORIZONS_S), -1
    )
    shares = np.ones(out.shape[1:])
    first = PRESENT + len(ACTIONS)
    for columns, now, true in (
        (slice(PRESENT, first), logits[:, : len(ACTIONS)], rows.action),
        (slice(first, first + len(LOCATIONS)), logits[:, len(ACTIONS) :], rows.location),
    ):
        for k in range(len(HORIZONS_S)):
            seen = rows.present[:, k] & rows.known[:, k]

            delta, held, due = out[seen, k, columns], now[seen], true[seen, k]
            losses = [_measure_loss(held + share * delta, due) for share in _SHARES]
            shares[k, columns] = _SHARES[int(np.argmin(losses))] if seen.any() else 0.0
    return shares


def _measure_loss(logits: Floats, true: Bools) -> float:
    """Mean binary cross-entropy of logits."""
    return float(np.mean(np.logaddexp(0, logits) - true * logits)) if logits.size else 0.0


def _train(
    x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor, base: torch.Tensor, seed: int, epochs: int
) -> tuple[tuple[Floats32, Floats32], ...]:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    parts: list[nn.Module] = []
    inputs = x.shape[1]
    for width in WIDTHS:
        parts += [nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(0.15)]
        inputs = width
    last = nn.Linear(inputs, y.shape[1])
    # It begins at 0: what is goes on, until something else is learnt.
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    network = nn.Sequential(*parts, last)
    steps = max(1, len(x) // _BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=epochs * steps + 1)
    per_horizon = y.shape[1] // len(HORIZONS_S)
    is_box = torch.arange(y.shape[1]) % per_horizon >= per_horizon - BOX
    for _ in range(epochs):
        order = torch.randperm(len(x), generator=generator)
        for step in range(steps):
            chosen = order[step * _BATCH : (step + 1) * _BATCH]
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
    linear = [part for part in network if isinstance(part, nn.Linear)]
    return tuple(
        (
            part.weight.detach().numpy().T.astype(np.float32).copy(),
            part.bias.detach().numpy().astype(np.float32),
        )
        for part in linear
    )


__all__ = ["PRESENT", "FutureRows", "fit_anticipation", "join_future_rows", "make_future_rows"]
