"""What predictors of minds learn from: features of linked tubes, and what those road users have in mind; small networks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.models.event_head.anticipation import join_inputs
from roadaware.models.event_head.head import EventHead
from roadaware.models.event_head.layout import FEATURES
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.simulator.actors import CROSSES
from roadaware.training.events.minded_scenes import MindedScene
from roadaware.training.events.rows import iterate_linked_frames, simulate_inputs

WIDTHS = (96, 64)
_BATCH = 256


@dataclass(frozen=True, eq=False)
class MindRows:
    """Boxes of linked tubes of road users, with what these have in mind and what they do next.

    Args:
        x: (n, inputs) features and present logits, see `join_inputs`.
        walks: (n,) whether it is somebody on foot; else a driver whose next junction is known.
        crosses: (n,) whether somebody on foot means to cross here.
        noticed: (n,) whether they have seen the own vehicle so far.
        margin_s: (n,) seconds to spare that they want; NaN of drivers.
        on_road: (n,) whether they are on the road.
        steps_out: (n,) whether they step on the road within two seconds; -1 where that is not known, or they are on it.
        moved_m: (n, 2) metres that they will have moved in two seconds; NaN where that is not known.
        turn: (n,) index in `TURNS` of drivers; -1 of people.
        scene: (n,) number of the scene.
    """

    x: Floats32
    walks: Bools
    crosses: Bools
    noticed: Bools
    margin_s: Floats
    on_road: Bools
    steps_out: Ints
    moved_m: Floats
    turn: Ints
    scene: Ints

    def __len__(self) -> int:
        return len(self.x)

    def some(self, chosen: Bools) -> MindRows:
        """Those rows alone."""
        return MindRows(**{name: getattr(self, name)[chosen] for name in MindRows.__dataclass_fields__})


def make_mind_rows(
    held: MindedScene, number: int, seed: int, events: EventHead, *, every_s: float = 0.25
) -> MindRows:
    """The rows of one scene: boxes with errors of a detector, linked as a stream would be.

    Args:
        held: the scene.
        number: what it is called in the rows.
        seed: of chance.
        events: says what tubes do.
        every_s: seconds from row to row of a tube.
    """
    truth = held.truth
    found, motions, focal = simulate_inputs(truth, number, seed, errors=None, noise=None, pixels=True)
    every = max(1, round(every_s * truth.fps))
    xs, sources = [], []
    for frame, linked, _, x, _ in iterate_linked_frames(truth, found, motions, focal):
        if frame % every == 0:
            xs.append(x)
            sources.append(found.source[linked])
    x, source = np.concatenate(xs).reshape(-1, len(FEATURES)), np.concatenate(sources).astype(np.int64)
    person = (source >= 0) & (truth.agent[source] == ROAD_AGENTS.index("Ped")) & (held.goal[source] >= 0)
    driver = (source >= 0) & (held.turn[source] >= 0) & ~truth.parked[source]
    kept = person | driver
    x, source, person = x[kept], source[kept], person[kept]
    return MindRows(
        x=join_inputs(x, events.tubes.logits(x)),
        walks=person,
        crosses=person & (held.goal[source] == CROSSES),
        noticed=person & (held.noticed[source] == 1),
        margin_s=held.margin_s[source],
        on_road=person & (held.on_road[source] == 1),
        steps_out=np.where(person, held.steps_out[source], -1),
        moved_m=held.moved_m[source],
        turn=np.where(person, -1, held.turn[source]),
        scene=np.full(len(source), number),
    )


def join_mind_rows(parts: list[MindRows]) -> MindRows:
    """The rows of several scenes."""
    names = MindRows.__dataclass_fields__
    return MindRows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


Predict = Callable[[Floats32], Floats]


def fit_small_network(
    x: Floats32, due: Floats, known: Bools, chances: int, *, seed: int = 0, epochs: int = 8
) -> Predict:
    """A small network from inputs to some chances and some numbers.

    Args:
        x: (n, inputs).
        due: (n, outputs) first chances, 0 or 1, then numbers; what is not known may be anything.
        known: (n, outputs) whether it is known.
        chances: how many of the outputs are chances.
        seed: of chance.
        epochs: over the rows.

    Returns:
        From (m, inputs) to (m, outputs): probabilities, then numbers in their own unit.
    """
    torch.manual_seed(seed)
    mean, spread = x.mean(axis=0), x.std(axis=0) + np.float32(1e-3)
    held = np.where(known, due, np.nan)
    middle, width = np.zeros(due.shape[1]), np.ones(due.shape[1])
    for k in range(chances, due.shape[1]):
        if known[:, k].any():
            middle[k], width[k] = np.nanmean(held[:, k]), np.nanstd(held[:, k]) + 1e-3
    parts: list[nn.Module] = []
    inputs = x.shape[1]
    for size in WIDTHS:
        parts += [nn.Linear(inputs, size), nn.ReLU(), nn.Dropout(0.2)]
        inputs = size
    network = nn.Sequential(*parts, nn.Linear(inputs, due.shape[1]))
    given = torch.from_numpy(np.clip((x - mean) / spread, -6, 6))
    target = torch.from_numpy(np.where(known, (due - middle) / width, 0.0).astype(np.float32))
    counts = torch.from_numpy(known.astype(np.float32))
    steps = max(1, len(x) // _BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=3e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=epochs * steps + 1)
    network.train()
    for _ in range(epochs):
        order = torch.randperm(len(x))
        for step in range(steps):
            chosen = order[step * _BATCH : (step + 1) * _BATCH]
            out, wanted, weight = network(given[chosen]), target[chosen], counts[chosen]
            first = nn.functional.binary_cross_entropy_with_logits(
                out[:, :chances], wanted[:, :chances], reduction="none"
            )
            rest = nn.functional.smooth_l1_loss(out[:, chances:], wanted[:, chances:], reduction="none")
            loss = (torch.cat([first, rest], dim=1) * weight).sum() / len(chosen)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
    network.eval()

    def predict(asked: Floats32) -> Floats:
        with torch.no_grad():
            out: Any = network(torch.from_numpy(np.clip((asked - mean) / spread, -6, 6))).numpy()
        found = out.astype(np.float64) * width + middle
        found[:, :chances] = 1 / (1 + np.exp(-out[:, :chances].astype(np.float64)))
        return np.asarray(found)

    return predict
