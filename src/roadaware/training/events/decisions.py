"""What decisions and minds are learnt from: tubes as sets, what the own vehicle and others do, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from roadaware.arrays import Bools, Bytes, Floats, Floats32, Ints
from roadaware.models.event_head.anticipation import ConstantVelocity, join_inputs
from roadaware.models.event_head.decisions import (
    AHEAD_S,
    HEADS,
    WHEN,
    DecisionNetwork,
    list_token_columns,
    make_tokens,
)
from roadaware.models.event_head.head import FEATURES, SCENE_FEATURES, EventHead
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.simulator.actors import AV_ACTIONS, CROSSES
from roadaware.simulator.minds import GOES_MPS2
from roadaware.training.events.fit import build_layers
from roadaware.training.events.rows import AV_SIDES, iterate_linked_frames, simulate_inputs
from roadaware.training.events.scenes import EVERY_S, MindedScene, count_step

MIND_WIDTHS = (96, 64)
_MIND_BATCH = 256


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


def make_mind_rows(held: MindedScene, number: int, seed: int, events: EventHead) -> MindRows:
    """The rows of one scene, four a second of a tube: boxes with errors of a detector, linked as a stream would be.

    Args:
        held: the scene.
        number: what it is called in the rows.
        seed: of chance.
        events: says what tubes do.
    """
    truth = held.truth
    found, motions, focal = simulate_inputs(truth, number, seed, errors=None, noise=None, pixels=True)
    every = max(1, round(0.25 * truth.fps))
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
    network = build_layers(x.shape[1], MIND_WIDTHS, due.shape[1], 0.2)
    given = torch.from_numpy(np.clip((x - mean) / spread, -6, 6))
    target = torch.from_numpy(np.where(known, (due - middle) / width, 0.0).astype(np.float32))
    counts = torch.from_numpy(known.astype(np.float32))
    steps = max(1, len(x) // _MIND_BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), 2e-3, weight_decay=3e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=epochs * steps + 1)
    network.train()
    for _ in range(epochs):
        order = torch.randperm(len(x))
        for step in range(steps):
            chosen = order[step * _MIND_BATCH : (step + 1) * _MIND_BATCH]
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


WIDTH, INNER = 64, 96
MOST_TOKENS = 40
"""Tubes of a frame that are learnt from: those with the highest scores."""
PAST_S = (0.0, 0.25, 0.5, 1.0)
"""Moments before now whose own motion, or image, is read where it is read over time: multiples of `EVERY_S`."""
_BATCH = 64
_MOTION_COLUMNS = ("motion.x", "motion.y", "motion.width", "motion.height")
"""How tubes move in the image: where all of them rest the camera stands, whatever it stands for."""
_MOST_DROPPED = 0.6
"""Share of the tubes beside the culprits that a frame loses at most while a network is taught with counterfactuals."""
_STILL = 0.5
_TRANSPLANTS = 2
"""Frames of driving on that the culprits of each stop are put into."""


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
        goes: (frames,) whether the driver would go on without the culprits, and each cause that holds it by itself has
            somebody in the image.
        several: (frames,) how many causes there are at once.
        unseen: (frames,) whether a cause that holds it by itself has nobody in the image.
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
    several: Ints
    unseen: Bools
    scene: Ints

    def __len__(self) -> int:
        return len(self.action)


def make_decision_rows(held: MindedScene, number: int, seed: int, events: EventHead) -> DecisionRows:
    """The rows of one scene, one each `EVERY_S`: boxes with errors of a detector, linked and labelled as a stream would be.

    Args:
        held: the scene.
        number: what it is called in the rows.
        seed: of chance.
        events: says what tubes do.
    """
    truth = held.truth
    found, motions, focal = simulate_inputs(truth, number, seed, errors=None, noise=None, pixels=True)
    velocity = ConstantVelocity()
    every, ahead = count_step(truth.fps), round(AHEAD_S * truth.fps)
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
            "goes": held.allows[frame] <= GOES_MPS2 < held.without[frame] and not held.unseen[frame],
            "several": held.several[frame], "unseen": held.unseen[frame], "scene": number,
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


def add_counterfactuals(rows: DecisionRows, *, seed: int = 0) -> DecisionRows:
    """The rows, with twins of those in which the own vehicle stands for somebody: without them, and elsewhere with them.

    Where the driver model says that it would go on without the culprits, and one of them is among the tubes, the frame comes
    once more without them: it drives on, now and in a second. And they are put among the tubes of `_TRANSPLANTS` frames
    in which it drives, of the same scene if there are some: there it stands. So all but the culprits is alike on both sides.
    """
    stop, moves = AV_ACTIONS.index("AV-Stop"), AV_ACTIONS.index("AV-Mov")
    stands = (rows.action == stop).any(axis=1)
    chosen = np.flatnonzero(rows.goes & rows.culprit.any(axis=1) & stands)
    gone = replace(
        select_rows(rows, chosen),
        filled=rows.filled[chosen] & ~rows.culprit[chosen],
        action=np.full((len(chosen), len(WHEN)), moves, np.int64),
    )
    rng = np.random.default_rng(seed)
    drives = np.flatnonzero((rows.action == moves).all(axis=1) & ~rows.culprit.any(axis=1))
    donors, taken = [], []
    for row in chosen[rows.action[chosen, 0] == stop].tolist():
        here = drives[rows.scene[drives] == rows.scene[row]]
        here = here if len(here) else drives
        for frame in rng.permutation(here)[:_TRANSPLANTS].tolist():
            donors.append(row)
            taken.append(frame)
    put = select_rows(rows, np.array(taken, np.int64))
    tokens, filled, culprit = put.tokens.copy(), put.filled.copy(), np.zeros_like(put.culprit)
    for k, row in enumerate(donors):
        theirs = rows.tokens[row][rows.culprit[row]]
        # Behind the tubes that are there, or in place of those with the lowest scores.
        first = min(int(filled[k].sum()), MOST_TOKENS - len(theirs))
        place = slice(first, first + len(theirs))
        tokens[k, place], filled[k, place], culprit[k, place] = theirs, True, True
    action = rows.action[np.array(donors, np.int64)]
    put = replace(put, tokens=tokens, filled=filled, culprit=culprit, action=action)
    return join_decision_rows([rows, gone, put])


def select_rows(rows: DecisionRows, chosen: Ints | Bools) -> DecisionRows:
    """Some of the rows."""
    names = DecisionRows.__dataclass_fields__
    return DecisionRows(**{name: getattr(rows, name)[chosen] for name in names})


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
    counterfactual: bool = False,
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
        counterfactual: whether it is kept from deciding by all but the culprits: in half of the frames the tubes do not say
            how they move in the image, and each frame loses up to `_MOST_DROPPED` of the tubes beside its culprits.
        facts: that the file keeps.
    """
    torch.manual_seed(seed)
    held = rows.tokens[rows.filled]
    mean, spread = held.mean(axis=0), held.std(axis=0) + np.float32(1e-2)
    context = SCENE_FEATURES if own_motion else ()
    own_mean, own_spread = rows.motion.mean(axis=0), rows.motion.std(axis=0) + np.float32(1e-2)
    columns = list_token_columns(events.actions, events.locations)
    moving = torch.tensor([columns.index(name) for name in _MOTION_COLUMNS])
    module = DecisionModule(rows.tokens.shape[-1], len(context))

    def prepare(part: DecisionRows) -> tuple[torch.Tensor, ...]:
        x = torch.from_numpy(np.clip((part.tokens - mean) / spread, -6, 6))
        own = torch.from_numpy(np.clip((part.motion - own_mean) / own_spread, -6, 6))
        blamed = part.culprit & part.goes[:, None]
        return tuple(map(torch.as_tensor, (x, part.filled, blamed, own, part.action)))

    def measure(part: tuple[torch.Tensor, ...], chosen: torch.Tensor, *, teach: bool) -> torch.Tensor:
        x, filled, blamed, own, due = (each[chosen] for each in part)
        # Places behind the last tube of all these frames would only cost time.
        held = filled.any(dim=0).nonzero()
        most = int(held.max()) + 1 if len(held) else 1
        x, filled, blamed = x[:, :most], filled[:, :most], blamed[:, :most]
        if teach:
            # Tubes that are missing are nothing new to it then.
            lost = torch.full((len(x), 1), 0.1)
            if counterfactual:
                lost = _MOST_DROPPED * torch.rand(len(x), 1)
                still = torch.zeros(len(x), most, x.shape[-1], dtype=torch.bool)
                still[:, :, moving] = (torch.rand(len(x)) < _STILL)[:, None, None]
                x = x.masked_fill(still, 0.0)
            filled = filled & ((torch.rand(filled.shape) >= lost) | (blamed & counterfactual))
        logits = module(x, filled, own if own_motion else None)
        return nn.functional.cross_entropy(logits.flatten(0, 1), due.flatten(), ignore_index=-1)

    taught, asked = prepare(rows), prepare(kept_back)
    _fit_best(
        module,
        lambda chosen: measure(taught, chosen, teach=True),
        lambda chosen: measure(asked, chosen, teach=False),
        len(rows),
        len(kept_back),
        epochs,
    )
    tensors = read_tensors(module) | {"mean": mean, "spread": spread}
    if own_motion:
        tensors |= {"context.mean": own_mean, "context.spread": own_spread}
    return DecisionNetwork(tuple(AV_ACTIONS), columns, tuple(context), tensors, dict(facts or {}))


def _fit_best(
    module: nn.Module,
    teach: Callable[[torch.Tensor], torch.Tensor],
    judge: Callable[[torch.Tensor], torch.Tensor],
    count: int,
    kept_back: int,
    epochs: int,
) -> None:
    """Fit a module in place, and leave it as it was after the epoch with the least loss on what is kept back.

    Args:
        module: to fit.
        teach, judge: the loss of some rows, by number: of those that are learnt from, and of those kept back.
        count, kept_back: how many of either there are.
        epochs: over the rows.
    """
    steps = max(1, count // _BATCH)
    optimiser = torch.optim.AdamW(module.parameters(), 1e-3, weight_decay=2e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=epochs * steps + 1)
    best, least = {name: each.clone() for name, each in module.state_dict().items()}, float("inf")
    for _ in range(epochs):
        module.train()
        order = torch.randperm(count)
        for step in range(steps):
            loss = teach(order[step * _BATCH : (step + 1) * _BATCH])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
        module.eval()
        with torch.no_grad():
            # In parts: images of all scenes at once would not fit in memory.
            parts = torch.split(torch.arange(kept_back), 8 * _BATCH)
            now = sum(float(judge(part)) * len(part) for part in parts if len(part)) / max(1, kept_back)
        if now < least:
            best, least = {name: each.clone() for name, each in module.state_dict().items()}, now
    module.load_state_dict(best)


def read_tensors(module: DecisionModule) -> dict[str, Floats32]:
    """The tensors of a module as a `DecisionNetwork` names them; weights stand inputs first."""
    found = {}
    for name, tensor in module.state_dict().items():
        named = name.replace("self_.", "self.")
        array = tensor.detach().numpy().astype(np.float32)
        found[named] = array.T.copy() if array.ndim == 2 and name.endswith(".weight") else array.copy()
    return found


class MotionModule(nn.Module):
    """A network of the own motion over the last second: the temporal segmentation of what the image's flow tells.

    Args:
        past: (n, moments, features) of the scenes that are learnt from, for the scales.
    """

    def __init__(self, past: Floats32) -> None:
        super().__init__()
        flat = past.reshape(len(past), -1)
        self.mean = torch.from_numpy(flat.mean(axis=0))
        self.spread = torch.from_numpy(flat.std(axis=0) + np.float32(1e-2))
        self.layers = nn.Sequential(
            nn.Linear(flat.shape[1], 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 48), nn.ReLU(),
            nn.Linear(48, len(WHEN) * len(AV_ACTIONS)),
        )  # fmt: skip

    def forward(self, past: torch.Tensor) -> torch.Tensor:
        """(n, 2, AV actions) logits of (n, moments, features)."""
        x = ((past.flatten(1) - self.mean) / self.spread).clamp(-6, 6)
        found: torch.Tensor = self.layers(x).reshape(len(past), len(WHEN), len(AV_ACTIONS))
        return found


def fit_motion_baseline(
    rows: DecisionRows, kept_back: DecisionRows, *, seed: int = 0, epochs: int = 12
) -> MotionModule:
    """A network of the own motion over the last second alone.

    Args:
        rows, kept_back, seed, epochs: as of `fit_decisions`.
    """
    torch.manual_seed(seed)
    module = MotionModule(rows.past)
    pasts = [torch.from_numpy(part.past) for part in (rows, kept_back)]
    dues = [torch.from_numpy(part.action) for part in (rows, kept_back)]

    def measure(which: int, chosen: torch.Tensor) -> torch.Tensor:
        out, due = module(pasts[which][chosen]), dues[which][chosen]
        return nn.functional.cross_entropy(out.flatten(0, 1), due.flatten(), ignore_index=-1)

    _fit_best(
        module,
        lambda chosen: measure(0, chosen),
        lambda chosen: measure(1, chosen),
        len(rows),
        len(kept_back),
        epochs,
    )
    return module


# Pixels: what a network that is told of no event makes of the same moments.


def stack_images(held: MindedScene) -> Bytes:
    """(m, 6, h, w) uint8 of each row of the scene: its image in three colours, and grey ones of the moments of `PAST_S`.

    Before the first image stands the first.
    """
    now = np.moveaxis(held.image, 3, 1)
    # The weights of luma, in 256ths, so that whole numbers do.
    grey = ((held.image.astype(np.uint16) @ np.array([77, 150, 29], np.uint16)) >> 8).astype(np.uint8)
    back = [round(s / EVERY_S) for s in PAST_S[1:]]
    rows = np.arange(len(grey))
    return np.concatenate([now, np.stack([grey[np.maximum(rows - k, 0)] for k in back], axis=1)], axis=1)


class PixelModule(nn.Module):
    """A small network of images over the last second: the direct temporal segmentation of the video."""

    def __init__(self) -> None:
        super().__init__()
        widths = (6, 16, 32, 48, 64)
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(widths):
            layers += [nn.Conv2d(inputs, outputs, 3, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.out = nn.Sequential(nn.Dropout(0.3), nn.Linear(2 * widths[-1], len(WHEN) * len(AV_ACTIONS)))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(n, 2, AV actions) logits of (n, 6, h, w) uint8 of `stack_images`."""
        x = images.float() / 128 - 1
        grey = x[:, :3].mean(dim=1, keepdim=True)
        # What changed since then, rather than what was there: the camera that stands is told by zeros.
        x = torch.cat([x[:, :3], x[:, 3:] - grey], dim=1)
        x = self.layers(x).flatten(2)
        pooled = torch.cat([x.mean(dim=2), x.amax(dim=2)], dim=1)
        found: torch.Tensor = self.out(pooled).reshape(len(x), len(WHEN), len(AV_ACTIONS))
        return found


def fit_pixel_baseline(
    images: Bytes,
    rows: DecisionRows,
    kept_images: Bytes,
    kept_back: DecisionRows,
    *,
    seed: int = 0,
    epochs: int = 8,
) -> PixelModule:
    """A network of pixels, taught with the same moments; half of them mirrored, with left and right exchanged.

    Args:
        images: (n, 6, h, w) of `stack_images` of the rows.
        rows: to learn from; their actions alone are read.
        kept_images, kept_back: of other scenes.
        seed, epochs: as of `fit_decisions`.
    """
    torch.manual_seed(seed)
    module = PixelModule()
    held = [torch.from_numpy(images), torch.from_numpy(kept_images)]
    dues = [torch.from_numpy(part.action) for part in (rows, kept_back)]
    mirror = torch.tensor([AV_ACTIONS.index(AV_SIDES.get(name, name)) for name in AV_ACTIONS])

    def measure(which: int, chosen: torch.Tensor, *, teach: bool) -> torch.Tensor:
        x, due = held[which][chosen], dues[which][chosen]
        if teach:
            turned = torch.rand(len(x)) < 0.5
            x = torch.where(turned[:, None, None, None], x.flip(-1), x)
            due = torch.where(turned[:, None] & (due >= 0), mirror[due], due)
        return nn.functional.cross_entropy(module(x).flatten(0, 1), due.flatten(), ignore_index=-1)

    _fit_best(
        module, lambda chosen: measure(0, chosen, teach=True), lambda chosen: measure(1, chosen, teach=False),
        len(rows), len(kept_back), epochs,
    )  # fmt: skip
    return module
