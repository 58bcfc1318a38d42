"""What decisions learn from: the tubes of each frame as a set, what the own vehicle does then and later, and for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from roadaware.arrays import Bools, Floats, Floats32, Ints
from roadaware.models.event_head.anticipation import ConstantVelocity
from roadaware.models.event_head.decisions import (
    AHEAD_S,
    HEADS,
    WHEN,
    DecisionNetwork,
    list_token_columns,
    make_tokens,
)
from roadaware.models.event_head.head import EventHead
from roadaware.models.event_head.layout import SCENE_FEATURES
from roadaware.simulator.actors import AV_ACTIONS
from roadaware.training.events.minded_scenes import MindedScene
from roadaware.training.events.rows import iterate_linked_frames, simulate_inputs

WIDTH, INNER = 64, 96
MOST_TOKENS = 40
"""Tubes of a frame that are learnt from: those with the highest scores."""
GOES_MPS2 = 0.3
"""Without the cause, a driver who would speed up by this much goes on."""
PAST_S = (0.0, 0.25, 0.5, 1.0)
"""Moments before now whose own motion is read where it is read over time."""
_BATCH = 64


@dataclass(frozen=True, eq=False)
class DecisionRows:
    """Frames with their tubes.

    Args:
        tokens: (frames, `MOST_TOKENS`, columns) of the tubes; 0 beyond the last.
        filled: (frames, `MOST_TOKENS`) whether there is one.
        culprit: (frames, `MOST_TOKENS`) whether the own vehicle's driver brakes, or stands, for it.
        motion: (frames, features) of the own motion, see `SCENE_FEATURES`.
        past: (frames, moments, features) the same at the moments of `PAST_S` before.
        prior: (frames, AV actions) what the event head says of the own motion.
        action: (frames, 2) index of the true action now and in a second; -1 behind the end of the scene.
        kind: (frames,) index in `minded_scenes.KINDS`.
        goes: (frames,) whether the driver would go on without the culprits.
        scene: (frames,) number of the scene.
    """

    tokens: Floats32
    filled: Bools
    culprit: Bools
    motion: Floats32
    past: Floats32
    prior: Floats32
    action: Ints
    kind: Ints
    goes: Bools
    scene: Ints

    def __len__(self) -> int:
        return len(self.action)


def make_decision_rows(
    held: MindedScene, number: int, seed: int, events: EventHead, *, every_s: float = 0.25
) -> DecisionRows:
    """The rows of one scene: boxes with errors of a detector, linked and labelled as a stream would be.

    Args:
        held: the scene.
        number: what it is called in the rows.
        seed: of chance.
        events: says what tubes do.
        every_s: seconds from row to row.
    """
    truth = held.truth
    found, motions, focal = simulate_inputs(truth, number, seed, errors=None, noise=None, pixels=True)
    velocity = ConstantVelocity()
    every, ahead = max(1, round(every_s * truth.fps)), round(AHEAD_S * truth.fps)
    parts: dict[str, list[Any]] = {name: [] for name in DecisionRows.__dataclass_fields__}
    drives: list[Floats] = []
    for frame, linked, named, x, drive in iterate_linked_frames(truth, found, motions, focal):
        _, speed = velocity.step(frame / truth.fps, named, found.box[linked])
        drives.append(drive)
        if frame % every:
            continue
        chosen = np.argsort(-found.score[linked], kind="stable")[:MOST_TOKENS]
        rows, n = linked[chosen], len(chosen)
        actions, locations = events.scores(x[chosen])
        tokens = np.zeros(
            (MOST_TOKENS, len(list_token_columns(events.actions, events.locations))), np.float32
        )
        tokens[:n] = make_tokens(
            _normalize(found.scores[rows]), actions, locations, found.box[rows], speed[chosen], found.score[rows],
            truth.size_px,
        )  # fmt: skip
        filled, culprit = np.zeros(MOST_TOKENS, np.bool_), np.zeros(MOST_TOKENS, np.bool_)
        filled[:n] = True
        source = found.source[rows]
        culprit[:n] = (source >= 0) & held.culprit[source]
        before = [drives[max(0, frame - round(s * truth.fps))] for s in PAST_S]
        later = int(truth.av[frame + ahead]) if frame + ahead < truth.n_frames else -1
        row = {
            "tokens": tokens, "filled": filled, "culprit": culprit, "motion": drive, "past": np.stack(before),
            "prior": events.av_scores(drive), "action": (int(truth.av[frame]), later), "kind": held.kind[frame],
            "goes": held.allows[frame] <= GOES_MPS2 < held.without[frame], "scene": number,
        }  # fmt: skip
        for name, value in row.items():
            parts[name].append(value)
    kinds = {"tokens": np.float32, "motion": np.float32, "past": np.float32, "prior": np.float32}
    return DecisionRows(**{name: np.array(each, kinds.get(name)) for name, each in parts.items()})


def _normalize(scores: Floats32) -> Floats32:
    found: Floats32 = scores / np.maximum(scores.sum(axis=1, keepdims=True), 1e-6)
    return found


def join_decision_rows(parts: list[DecisionRows]) -> DecisionRows:
    """The rows of several scenes."""
    names = DecisionRows.__dataclass_fields__
    return DecisionRows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def add_counterfactuals(rows: DecisionRows) -> DecisionRows:
    """The rows, and those in which the own vehicle stands, or brakes, once more without its culprits: there it drives on.

    Only where the driver model says that it would go on without them, and where they are among the tubes. What it is known
    to do then is to drive: now, and in a second.
    """
    stands = (rows.action == AV_ACTIONS.index("AV-Stop")).any(axis=1)
    chosen = np.flatnonzero(rows.goes & rows.culprit.any(axis=1) & stands)
    filled = rows.filled[chosen] & ~rows.culprit[chosen]
    moves = np.full((len(chosen), len(WHEN)), AV_ACTIONS.index("AV-Mov"), np.int64)
    names = DecisionRows.__dataclass_fields__
    copied = {name: getattr(rows, name)[chosen] for name in names} | {"filled": filled, "action": moves}
    return join_decision_rows([rows, DecisionRows(**copied)])


class _Attention(nn.Module):
    """A block of attention as `models.event_head.decisions` computes it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value, self.mix = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, INNER), nn.Linear(INNER, width)

    def forward(self, asked: torch.Tensor, held: torch.Tensor, filled: torch.Tensor) -> torch.Tensor:
        batch, width = len(held), held.shape[-1]

        def split(x: torch.Tensor) -> torch.Tensor:
            return x.reshape(batch, -1, HEADS, width // HEADS).transpose(1, 2)

        query, key, value = split(self.query(asked)), split(self.key(held)), split(self.value(held))
        logits = query @ key.transpose(2, 3) / (width // HEADS) ** 0.5
        shares = logits.masked_fill(~filled[:, None, None], -1e9).softmax(dim=-1)
        mixed = (shares @ value).transpose(1, 2).reshape(batch, -1, width)
        asked = self.norm1(asked + self.mix(mixed))
        found: torch.Tensor = self.norm2(asked + self.down(torch.relu(self.up(asked))))
        return found


class DecisionModule(nn.Module):
    """The network of decisions while it learns.

    Args:
        columns: of tokens.
        context: of the own motion; 0 for none.
    """

    def __init__(self, columns: int, context: int) -> None:
        super().__init__()
        self.embed = nn.Linear(columns, WIDTH)
        self.context = nn.Linear(context, WIDTH) if context else None
        self.road = nn.Parameter(torch.zeros(1, WIDTH))
        self.questions = nn.Parameter(torch.randn(len(WHEN), WIDTH) * 0.5)
        self.self_, self.ask = _Attention(WIDTH), _Attention(WIDTH)
        self.out = nn.Linear(WIDTH, len(AV_ACTIONS))

    def forward(
        self, tokens: torch.Tensor, filled: torch.Tensor, context: torch.Tensor | None
    ) -> torch.Tensor:
        """(batch, 2, AV actions) logits of standardised tokens."""
        batch = len(tokens)
        road = self.road.expand(batch, 1, WIDTH)
        if self.context is not None and context is not None:
            road = road + self.context(context)[:, None]
        held = torch.cat([road, torch.relu(self.embed(tokens))], dim=1)
        there = torch.cat([torch.ones(batch, 1, dtype=torch.bool), filled], dim=1)
        held = self.self_(held, held, there)
        asked = self.ask(self.questions.expand(batch, -1, -1), held, there)
        found: torch.Tensor = self.out(asked)
        return found


def fit_decisions(
    rows: DecisionRows,
    kept_back: DecisionRows,
    events: EventHead,
    *,
    seed: int = 0,
    epochs: int = 8,
    own_motion: bool = False,
    facts: Mapping[str, Any] | None = None,
) -> DecisionNetwork:
    """A network that learnt from some scenes; the epoch with the least loss on others is kept.

    Args:
        rows: to learn from.
        kept_back: of other scenes.
        events: that labelled the tubes.
        seed: of chance.
        epochs: over the rows.
        own_motion: whether it reads the own motion, too.
        facts: that the file keeps.
    """
    torch.manual_seed(seed)
    held = rows.tokens[rows.filled]
    mean, spread = held.mean(axis=0), held.std(axis=0) + np.float32(1e-2)
    context = SCENE_FEATURES if own_motion else ()
    own_mean, own_spread = rows.motion.mean(axis=0), rows.motion.std(axis=0) + np.float32(1e-2)
    module = DecisionModule(rows.tokens.shape[-1], len(context))

    def prepare(part: DecisionRows) -> tuple[torch.Tensor, ...]:
        x = torch.from_numpy(np.clip((part.tokens - mean) / spread, -6, 6))
        own = torch.from_numpy(np.clip((part.motion - own_mean) / own_spread, -6, 6))
        return x, torch.from_numpy(part.filled), own, torch.from_numpy(part.action)

    def measure(part: tuple[torch.Tensor, ...], chosen: torch.Tensor, dropped: float) -> torch.Tensor:
        x, filled, own, due = (each[chosen] for each in part)
        # Places behind the last tube of all these frames would only cost time.
        held = filled.any(dim=0).nonzero()
        most = int(held.max()) + 1 if len(held) else 1
        x, filled = x[:, :most], filled[:, :most]
        if dropped:
            # Tubes that are missing are nothing new to it then.
            filled = filled & (torch.rand(filled.shape) >= dropped)
        logits = module(x, filled, own if own_motion else None)
        return nn.functional.cross_entropy(logits.flatten(0, 1), due.flatten(), ignore_index=-1)

    taught, asked = prepare(rows), prepare(kept_back)
    steps = max(1, len(rows) // _BATCH)
    optimiser = torch.optim.AdamW(module.parameters(), 1e-3, weight_decay=2e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=epochs * steps + 1)
    best, least = {name: each.clone() for name, each in module.state_dict().items()}, float("inf")
    for _ in range(epochs):
        module.train()
        order = torch.randperm(len(rows))
        for step in range(steps):
            loss = measure(taught, order[step * _BATCH : (step + 1) * _BATCH], 0.1)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        module.eval()
        with torch.no_grad():
            now = float(measure(asked, torch.arange(len(kept_back)), 0.0)) if len(kept_back) else 0.0
        if now < least:
            best, least = {name: each.clone() for name, each in module.state_dict().items()}, now
    module.load_state_dict(best)
    tensors = read_tensors(module) | {"mean": mean, "spread": spread}
    if own_motion:
        tensors |= {"context.mean": own_mean, "context.spread": own_spread}
    columns = list_token_columns(events.actions, events.locations)
    return DecisionNetwork(tuple(AV_ACTIONS), columns, tuple(context), tensors, dict(facts or {}))


def read_tensors(module: DecisionModule) -> dict[str, Floats32]:
    """The tensors of a module as a `DecisionNetwork` names them; weights stand inputs first."""
    found = {}
    for name, tensor in module.state_dict().items():
        named = name.replace("self_.", "self.")
        array = tensor.detach().numpy().astype(np.float32)
        found[named] = array.T.copy() if array.ndim == 2 and name.endswith(".weight") else array.copy()
    return found


def fit_motion_baseline(
    rows: DecisionRows, kept_back: DecisionRows, *, seed: int = 0, epochs: int = 12
) -> nn.Module:
    """A network of the own motion over the last second alone: the temporal segmentation of what the image's flow tells.

    Args:
        rows, kept_back, seed, epochs: as of `fit_decisions`.

    Returns:
        A module from (n, moments, features) to (n, 2, AV actions) logits.
    """
    torch.manual_seed(seed)
    flat = rows.past.reshape(len(rows), -1)
    mean = torch.from_numpy(flat.mean(axis=0))
    spread = torch.from_numpy(flat.std(axis=0) + np.float32(1e-2))
    layers = nn.Sequential(
        nn.Linear(flat.shape[1], 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 48), nn.ReLU(),
        nn.Linear(48, len(WHEN) * len(AV_ACTIONS)),
    )  # fmt: skip

    class Motion(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = layers

        def forward(self, past: torch.Tensor) -> torch.Tensor:
            x = ((past.flatten(1) - mean) / spread).clamp(-6, 6)
            found: torch.Tensor = self.layers(x).reshape(len(past), len(WHEN), len(AV_ACTIONS))
            return found

    module = Motion()
    optimiser = torch.optim.AdamW(module.parameters(), 2e-3, weight_decay=2e-2)
    past, due = torch.from_numpy(rows.past), torch.from_numpy(rows.action)
    later, then = torch.from_numpy(kept_back.past), torch.from_numpy(kept_back.action)
    best, least = {name: each.clone() for name, each in module.state_dict().items()}, float("inf")
    for _ in range(epochs):
        module.train()
        order = torch.randperm(len(rows))
        for first in range(0, len(rows), _BATCH):
            chosen = order[first : first + _BATCH]
            loss = nn.functional.cross_entropy(
                module(past[chosen]).flatten(0, 1), due[chosen].flatten(), ignore_index=-1
            )
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        module.eval()
        with torch.no_grad():
            loss = nn.functional.cross_entropy(module(later).flatten(0, 1), then.flatten(), ignore_index=-1)
        if float(loss) < least:
            best, least = {name: each.clone() for name, each in module.state_dict().items()}, float(loss)
    module.load_state_dict(best)
    return module
