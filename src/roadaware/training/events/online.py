"""ContinualLearner: a head learnt online from a stream; the event head fitted on several sets, or without labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np

from roadaware.arrays import Floats, Floats32, Ints
from roadaware.config import check_range, from_dict, is_count, to_dict
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.npz import DAMAGE, decode, encode
from roadaware.models.event_head.head import FEATURES, SCENE_FEATURES, EventHead, SmallNetwork
from roadaware.statistics.adaptation import choose_slots
from roadaware.training.events.rows import TubeRows

FORMAT = "roadaware-continual-state-2"
MOST_STATE = 1 << 30
"""Bytes that the state of a learner unpacks to at most; its memory takes at most half of them."""
Average = Literal["none", "steps", "experiences"]
_FEATURES = (*FEATURES, *SCENE_FEATURES)
_FARTHEST = 6.0
"""Spreads that a feature may lie from its mean, as of `SmallNetwork`."""
_FIRST_BIAS = -3.0
"""Of a label that is new: most labels are true of few boxes."""
_MOST_LAYERS, _MOST_UNITS = 8, 65_536
"""Between the features and the labels, and in each."""
_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-8
"""Of Adam, as its authors have them."""


@dataclass(frozen=True, eq=False)
class Start:
    """The linear layer that a learner begins as, such as the last layer of a detector's head.

    Args:
        labels: that it knows.
        weight, bias: (inputs, labels) and (labels,) over standardised features.
        features: names of these features, or of what makes them: the state of a learner of others is refused.
    """

    labels: tuple[str, ...]
    weight: Floats32
    bias: Floats32
    features: tuple[str, ...]


class TubeNetwork:
    """A small network with rectified units and a sigmoid for each label, and the state of its optimiser.

    Args:
        mean, spread: (inputs,) of the features.
        hidden: units of the layers between; none for a linear layer.
        labels: how many outputs.
        rng: of the first weights.

    Source: He et al., ICCV 2015 (first weights); Kingma and Ba, ICLR 2015 (Adam).
    """

    def __init__(
        self,
        mean: Floats32,
        spread: Floats32,
        hidden: Sequence[int],
        labels: int,
        rng: np.random.Generator,
    ) -> None:
        self.mean, self.spread = mean.astype(np.float32), spread.astype(np.float32)
        sizes = (len(mean), *hidden)
        self.layers = [
            (
                (rng.standard_normal((a, b)) * np.sqrt(2 / a)).astype(np.float32),
                np.zeros(b, np.float32),
            )
            for a, b in pairwise(sizes)
        ]
        # The last layer begins at 0, so that no label has a say before it was learnt.
        self.layers.append(
            (np.zeros((sizes[-1], labels), np.float32), np.full(labels, _FIRST_BIAS, np.float32))
        )
        self.first = [np.zeros_like(part) for layer in self.layers for part in layer]
        self.second = [np.zeros_like(part) for layer in self.layers for part in layer]
        self.steps = 0

    @property
    def labels(self) -> int:
        """How many outputs there are."""
        return len(self.layers[-1][1])

    def grow(self, labels: int) -> None:
        """Add outputs that know nothing yet."""
        if not labels:
            return
        weight, bias = self.layers[-1]
        self.layers[-1] = (
            np.hstack([weight, np.zeros((len(weight), labels), np.float32)]),
            np.append(bias, np.full(labels, _FIRST_BIAS, np.float32)),
        )
        for moments in (self.first, self.second):
            moments[-2] = np.hstack([moments[-2], np.zeros((len(weight), labels), np.float32)])
            moments[-1] = np.append(moments[-1], np.zeros(labels, np.float32))

    def begin(self, start: Start) -> None:
        """Take a layer for the first outputs.

        Raises:
            UsageError: if there are layers between, or the layer has other inputs.
        """
        weight, bias = self.layers[-1]
        if len(self.layers) > 1 or len(start.weight) != len(weight):
            raise UsageError(
                f"a learner that begins as a linear layer of {len(start.weight)} inputs has no hidden layers and as many "
                f"features; this one has {len(self.layers) - 1} and {len(self.mean)}"
            )
        weight[:, : len(start.labels)], bias[: len(start.labels)] = start.weight, start.bias

    def standardise(self, x: Floats32) -> Floats32:
        """(n, inputs) features in spreads from their means, within `_FARTHEST`."""
        found: Floats32 = np.clip((x - self.mean) / self.spread, -_FARTHEST, _FARTHEST)
        return found

    def logits(self, x: Floats32) -> Floats32:
        """(n, labels) of (n, inputs) features."""
        return self.build_network().logits(x)

    def step(self, standard: Floats32, target: Floats32, weight: Floats32, lr: float) -> None:
        """One step of Adam on weighted binary cross-entropy.

        Args:
            standard: (n, inputs) of `standardise`.
            target: (n, labels) 0 or 1, or how likely each is.
            weight: (n, labels) of each term; 0 where nobody knows.
            lr: rate of learning.
        """
        held, seen = standard, [standard]
        for matrix, bias in self.layers[:-1]:
            held = np.maximum(held @ matrix + bias, np.float32(0))
            seen.append(held)
        out = held @ self.layers[-1][0] + self.layers[-1][1]
        # The logistic function by tanh overflows nowhere.
        back = (np.float32(0.5) * np.tanh(np.float32(0.5) * out) + np.float32(0.5) - target) * weight
        self.steps += 1
        rate = np.float32(lr * np.sqrt(1 - _BETA2**self.steps) / (1 - _BETA1**self.steps))
        for k in range(len(self.layers) - 1, -1, -1):
            matrix, bias = self.layers[k]
            slopes = (seen[k].T @ back, back.sum(axis=0))
            if k:
                back = (back @ matrix.T) * (seen[k] > 0)
            for part, slope, place in zip((matrix, bias), slopes, (2 * k, 2 * k + 1), strict=True):
                one, two = self.first[place], self.second[place]
                one += np.float32(1 - _BETA1) * (slope - one)
                two += np.float32(1 - _BETA2) * (slope * slope - two)
                part -= rate * one / (np.sqrt(two) + np.float32(_TINY))

    def build_network(self, layers: list[tuple[Floats32, Floats32]] | None = None) -> SmallNetwork:
        """A copy of the network as the event head has it.

        Args:
            layers: other weights of the same shapes; its own where None.
        """
        held = tuple((weight.copy(), bias.copy()) for weight, bias in layers or self.layers)
        ones = np.ones(self.labels, np.float32)
        return SmallNetwork(self.mean, self.spread, (held,), ones, np.zeros_like(ones))


@dataclass(frozen=True)
class LearnerConfig:
    """How a stream is learnt from.

    Args:
        hidden: units of the layers between, eight layers at most; none for a linear layer.
        lr: rate of learning.
        batch: boxes of the stream that steps are taken on.
        passes: steps on each batch, each with other boxes of the memory.
        memory_tubes: tubes that the reservoir holds for replay; 0 for no replay.
        tube_rows: boxes of each of them, at most.
        replay: boxes of the memory that join each step.
        replay_weight: of the memory in the loss of a step, where the boxes of the stream weigh 1.
        distil: weight of what the head said of the boxes of the memory at the end of the last experience, where their
            labels weigh 1; 0 to ask the labels alone.
        average: what answers: the network as it is (`none`), its mean that fades by `decay` with each step (`steps`), or
            the mean of its states at the end of each experience (`experiences`).
        decay: what is left of the older mean with each step.
    """

    hidden: tuple[int, ...] = (96,)
    lr: float = 2e-3
    batch: int = 256
    passes: int = 4
    memory_tubes: int = 0
    tube_rows: int = 8
    replay: int = 256
    replay_weight: float = 1.0
    distil: float = 0.0
    average: Average = "none"
    decay: float = 0.998

    def __post_init__(self) -> None:
        check_range("lr", self.lr, 1e-6, 1.0)
        check_range("decay", self.decay, 0.0, 0.999999)
        for name in ("replay_weight", "distil"):
            check_range(name, getattr(self, name), 0.0, 100.0)
        for name, least, most in (
            ("batch", 1, 4096), ("passes", 1, 64), ("memory_tubes", 0, 1_000_000),
            ("tube_rows", 1, 1024), ("replay", 1, 4096),
        ):  # fmt: skip
            check_range(name, getattr(self, name), least, most)
        if len(self.hidden) > _MOST_LAYERS or not all(
            is_count(units) and units <= _MOST_UNITS for units in self.hidden
        ):
            raise UsageError(
                f"hidden should be {_MOST_LAYERS} layers or fewer of 1 to {_MOST_UNITS:,} units each, "
                f"not {str(self.hidden)[:200]}"
            )


class ContinualLearner:
    """A head that learns from a stream of labelled tubes, each box once, and answers at any time.

    Its memory is bounded: the network and its optimiser, a batch that fills, and the reservoir. Every tube of the stream
    is in the reservoir with the same probability, and of each tube there `tube_rows` boxes, drawn likewise. Labels are known
    by name: one that is new adds an output, and one that an experience does not annotate is not learnt from there.

    Args:
        mean, spread: (inputs,) of the features, which stay.
        config: how it learns.
        seed: of weights, reservoir and replay.
        start: the layer that it begins as, which is its first teacher, too; None for nothing learnt before.

    Raises:
        UsageError: if `start` does not fit the features or the layers.

    Source: replay: Rolnick et al., NeurIPS 2019, and Chaudhry et al., 2019 (arXiv 1902.10486); distillation of the head as
    it was: Li and Hoiem, ECCV 2016, here on the boxes of the memory; the mean over steps: Polyak
    and Juditsky, SIAM Journal on Control and Optimization 1992; that over experiences: Izmailov et al., UAI 2018.
    """

    def __init__(
        self,
        mean: Floats32,
        spread: Floats32,
        config: LearnerConfig | None = None,
        *,
        seed: int = 0,
        start: Start | None = None,
    ) -> None:
        self.config = config or LearnerConfig()
        self.features = _FEATURES if start is None else start.features
        self.labels: tuple[str, ...] = ()
        self._rng = np.random.default_rng(seed)
        self.network = TubeNetwork(mean, spread, self.config.hidden, 0, self._rng)
        inputs, room, rows = len(mean), self.config.memory_tubes, self.config.tube_rows
        if 8 * room * rows * inputs > MOST_STATE:
            raise UsageError(
                f"memory_tubes: {room:,} tubes of {rows} boxes with {inputs} features are more than a state can hold; "
                f"at most {MOST_STATE // (8 * rows * inputs):,}"
            )
        self._batch_x = np.zeros((self.config.batch, inputs), np.float32)
        self._batch_weight = np.zeros(self.config.batch, np.float32)
        self._batch_truth, self._batch_known = (np.zeros((self.config.batch, 0), np.bool_) for _ in range(2))
        self._filled = 0
        self._memory_x = np.zeros((room, rows, inputs), np.float32)
        self._memory_weight = np.zeros((room, rows), np.float32)
        self._memory_truth, self._memory_known = (np.zeros((room, rows, 0), np.bool_) for _ in range(2))
        self._memory_tube, self._memory_count = np.full(room, -1, np.int64), np.zeros(room, np.int64)
        self._slots: dict[int, int] = {}
        self._tubes = 0
        self._newest = -1
        self._mean_layers: list[tuple[Floats32, Floats32]] | None = None
        self._teacher: list[tuple[Floats32, Floats32]] | None = None
        self._experiences = 0
        if start is not None:
            self.add_labels(start.labels)
            self.network.begin(start)
            self._take_teacher()

    @property
    def tubes_seen(self) -> int:
        """Tubes of the stream so far."""
        return self._tubes

    @property
    def memory_bytes(self) -> int:
        """Bytes of all that is kept: network, optimiser, means, teacher, batch and reservoir."""
        return sum(part.nbytes for part in self._arrays().values())

    def add_labels(self, labels: Sequence[str]) -> None:
        """Learn to know labels by name; those that are known stay where they are."""
        new = [name for name in dict.fromkeys(labels) if name not in self.labels]
        if not new:
            return
        self.labels = (*self.labels, *new)
        self.network.grow(len(new))
        if self._mean_layers is not None:
            weight, bias = self._mean_layers[-1]
            grown = self.network.layers[-1]
            self._mean_layers[-1] = (
                np.hstack([weight, grown[0][:, -len(new) :]]), np.append(bias, grown[1][-len(new) :]),
            )  # fmt: skip
        self._batch_truth, self._batch_known, self._memory_truth, self._memory_known = (
            np.concatenate([held, np.zeros((*held.shape[:-1], len(new)), np.bool_)], axis=-1)
            for held in (self._batch_truth, self._batch_known, self._memory_truth, self._memory_known)
        )

    def learn(self, rows: TubeRows) -> None:
        """Learn from what comes next of the stream, in its order; nothing of no rows.

        Args:
            rows: labelled boxes of tubes; numbers of tubes that are new are larger than all before.

        Raises:
            InputError: if features are others than the network reads.
        """
        if rows.x.shape[1] != len(self.network.mean):
            raise InputError(
                f"expected {len(self.network.mean)} features of each box, found {rows.x.shape[1]}"
            )
        self.add_labels(rows.labels)
        columns = np.array([self.labels.index(name) for name in rows.labels], np.int64)
        begin = 0
        while begin < len(rows.x):
            count = min(len(rows.x) - begin, self.config.batch - self._filled)
            part, into = slice(begin, begin + count), slice(self._filled, self._filled + count)
            self._batch_x[into] = self.network.standardise(rows.x[part])
            self._batch_weight[into] = rows.weight[part]
            self._batch_truth[into] = self._batch_known[into] = False
            self._batch_truth[into, columns] = rows.truth[part]
            self._batch_known[into, columns] = True
            if self.config.memory_tubes:
                self._remember(into, rows.tube[part])
            self._filled += count
            begin += count
            if self._filled == self.config.batch:
                for _ in range(self.config.passes):
                    self._step()
                self._filled = 0

    def end_experience(self) -> None:
        """Say that an experience is over: the mean over experiences counts it, distillation takes the head as it is now."""
        self._experiences += 1
        if self.config.average == "experiences":
            self._average(1 / self._experiences)
        self._take_teacher()

    def _take_teacher(self) -> None:
        """What distillation asks from now on: the head as it is."""
        if self.config.distil:
            held = self._mean_layers or self.network.layers
            self._teacher = [(weight.copy(), bias.copy()) for weight, bias in held]

    def logits(self, x: Floats32) -> Floats32:
        """(n, labels) of (n, inputs) features, in the order of `labels`."""
        return self.network.build_network(self._mean_layers).logits(x)

    def scores(self, x: Floats32, labels: Sequence[str]) -> Floats32:
        """(n, asked) probabilities of labels by name; 0 of one that was never met."""
        return _score_labels(self.logits, self.labels, x, labels)

    def get_linear_layer(self) -> tuple[Floats, Floats]:
        """(inputs, labels) and (labels,) of what answers, over features as they come, where none is clipped.

        Raises:
            UsageError: if there are layers between.
        """
        if self.config.hidden:
            raise UsageError(f"a learner with hidden layers of {self.config.hidden} units is no linear layer")
        weight, bias = (part.astype(np.float64) for part in (self._mean_layers or self.network.layers)[-1])
        weight /= self.network.spread[:, None]
        return weight, bias - self.network.mean @ weight

    def build_head(self, base: EventHead, vehicle: ContinualLearner | None = None) -> EventHead:
        """An event head with the labels of this learner, as `models.event_head.head.save_head` writes it.

        Args:
            base: gives the network of the own vehicle where that is not learnt.
            vehicle: learner of the own vehicle's actions; the odds of its labels, made to sum to 1, are what the head says.
        """
        tubes, kinds = self._export(("action", "location"))
        found = replace(
            base, actions=kinds["action"], locations=kinds["location"], tubes=tubes,
            facts={"data": "a stream of labelled tubes", "tubes": self._tubes},
        )  # fmt: skip
        if vehicle is None:
            return found
        drive, kinds = vehicle._export(("av_action",))
        return replace(found, av_actions=kinds["av_action"], drive=drive)

    def _export(self, kinds: Sequence[str]) -> tuple[SmallNetwork, dict[str, tuple[str, ...]]]:
        """The network that answers, with the labels of some kinds, and their names kind by kind."""
        network = self.network.build_network(self._mean_layers)
        names = [name.partition("/") for name in self.labels]
        order = [k for kind in kinds for k, (held, _, _) in enumerate(names) if held == kind]
        layers = list(network.layers[0])
        layers[-1] = (layers[-1][0][:, order], layers[-1][1][order])
        ones = np.ones(len(order), np.float32)
        labels = {kind: tuple(label for held, _, label in names if held == kind) for kind in kinds}
        return replace(network, layers=(tuple(layers),), slope=ones, offset=np.zeros_like(ones)), labels

    def _remember(self, rows: slice, tube: Ints) -> None:
        """Offer tubes that are new to the reservoir, and boxes of those in it to theirs."""
        new = np.unique(tube[tube > self._newest])
        if len(new):
            self._newest = int(new[-1])
            slots = choose_slots(self._tubes + np.arange(len(new)), self.config.memory_tubes, self._rng)
            self._tubes += len(new)
            for number, slot in zip(new.tolist(), slots.tolist(), strict=True):
                if slot >= 0:
                    self._slots.pop(int(self._memory_tube[slot]), None)
                    self._memory_tube[slot], self._memory_count[slot] = number, 0
                    self._slots[number] = slot
        held = [(rows.start + k, self._slots[n]) for k, n in enumerate(tube.tolist()) if n in self._slots]
        if not held:
            return
        seen = []
        for _, slot in held:
            seen.append(int(self._memory_count[slot]))
            self._memory_count[slot] += 1
        places = choose_slots(seen, self.config.tube_rows, self._rng)
        for (row, slot), place in zip(held, places.tolist(), strict=True):
            if place >= 0:
                self._memory_x[slot, place] = self._batch_x[row]
                self._memory_weight[slot, place] = self._batch_weight[row]
                self._memory_truth[slot, place] = self._batch_truth[row]
                self._memory_known[slot, place] = self._batch_known[row]

    def _step(self) -> None:
        """One step on the batch and as many boxes of the memory as are asked for."""
        x, truth = self._batch_x, self._batch_truth.astype(np.float32)
        weight = self._batch_known * (self._batch_weight / np.float32(len(x)))[:, None]
        filled = np.flatnonzero(self._memory_count)
        if len(filled):
            slot = filled[self._rng.integers(0, len(filled), self.config.replay)]
            most = np.minimum(self._memory_count[slot], self.config.tube_rows)
            place = self._rng.integers(0, most)
            again = self._memory_weight[slot, place] * np.float32(self.config.replay_weight / len(slot))
            old, target = self._memory_x[slot, place], self._memory_truth[slot, place].astype(np.float32)
            known = self._memory_known[slot, place].astype(np.float32)
            if self._teacher is not None:
                # Two cross-entropies at once: that of the labels, where they are known, and that of what the head said.
                said, share = _probabilities(old, self._teacher), np.float32(self.config.distil)
                taught = slice(0, said.shape[1])
                target[:, taught] = (known * target)[:, taught] + share * said
                known[:, taught] += share
                target[:, taught] /= known[:, taught]
            x, truth = np.concatenate([x, old]), np.concatenate([truth, target])
            weight = np.concatenate([weight, known * again[:, None]])
        self.network.step(x, truth, weight.astype(np.float32), self.config.lr)
        if self.config.average == "steps":
            # In the first steps the mean is that of what there is.
            self._average(max(1 - self.config.decay, 1 / self.network.steps))

    def _average(self, share: float) -> None:
        """Move the mean of the weights by a share towards what they are."""
        if self._mean_layers is None:
            self._mean_layers = [(weight.copy(), bias.copy()) for weight, bias in self.network.layers]
            return
        for mine, theirs in zip(self._mean_layers, self.network.layers, strict=True):
            for old, new in zip(mine, theirs, strict=True):
                old += np.float32(share) * (new - old)

    def _arrays(self) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
        found: dict[str, np.ndarray[Any, np.dtype[Any]]] = {
            "mean": self.network.mean, "spread": self.network.spread,
            "batch_x": self._batch_x, "batch_weight": self._batch_weight, "batch_truth": self._batch_truth,
            "batch_known": self._batch_known, "memory_x": self._memory_x, "memory_weight": self._memory_weight,
            "memory_truth": self._memory_truth, "memory_known": self._memory_known, "memory_tube": self._memory_tube,
            "memory_count": self._memory_count,
        }  # fmt: skip
        for k, layer in enumerate(self.network.layers):
            for part, name in zip(layer, ("weight", "bias"), strict=True):
                found[f"layer.{k}.{name}"] = part
        for name, moments in (("first", self.network.first), ("second", self.network.second)):
            found |= {f"{name}.{k}": part for k, part in enumerate(moments)}
        for what, layers in (("mean_layer", self._mean_layers), ("teacher", self._teacher)):
            for k, layer in enumerate(layers or []):
                for part, name in zip(layer, ("weight", "bias"), strict=True):
                    found[f"{what}.{k}.{name}"] = part
        return found

    def dump_state(self) -> bytes:
        """All of it as the content of a file, from which `load_state` goes on to the same bits."""
        facts = {
            "format": FORMAT, "config": to_dict(self.config), "labels": list(self.labels), "filled": self._filled,
            "tubes": self._tubes, "newest": self._newest, "experiences": self._experiences,
            "steps": self.network.steps, "averaged": self._mean_layers is not None,
            "taught": None if self._teacher is None else len(self._teacher[-1][1]),
            "features": list(self.features),
            "rng": self._rng.bit_generator.state,
        }  # fmt: skip
        return encode(self._arrays(), facts)

    @classmethod
    def load_state(cls, data: bytes, where: str = "state", features: tuple[str, ...] | None = None) -> Self:
        """The learner that `dump_state` wrote.

        Args:
            data: content of the file.
            where: what it is called in messages.
            features: of its `Start`; those of the event head where None.

        Raises:
            DamagedError: if it is no such file, or one of other features.
        """
        arrays, facts = decode(data, where, "the state of a learner", "let it learn again", MOST_STATE)
        try:
            if facts["format"] != FORMAT or facts["features"] != list(features or _FEATURES):
                raise ValueError("another format, or other features than this version makes")
            settings = {**facts["config"], "hidden": tuple(facts["config"]["hidden"])}
            config = from_dict(LearnerConfig, settings)
            _check_sizes(arrays, config, len(facts["labels"]))
            found = cls(arrays["mean"], arrays["spread"], config)
            found.features = tuple(facts["features"])
            found.add_labels(facts["labels"])
            if facts["averaged"]:
                found._average(1.0)
            if facts["taught"] is not None:
                held = [(weight.copy(), bias.copy()) for weight, bias in found.network.layers]
                last = held[-1][0][:, : facts["taught"]].copy(), held[-1][1][: facts["taught"]].copy()
                found._teacher = [*held[:-1], last]
            mine = found._arrays()
            if {k: (v.shape, v.dtype) for k, v in mine.items()} != {
                k: (v.shape, v.dtype) for k, v in arrays.items()
            }:
                raise ValueError("its parts are not those that its settings need")
            for name, part in mine.items():
                part[...] = arrays[name]
            found._filled, found._tubes = int(facts["filled"]), int(facts["tubes"])
            found._newest, found._experiences = int(facts["newest"]), int(facts["experiences"])
            found.network.steps = int(facts["steps"])
            counts = (found._tubes, found._experiences, found.network.steps, found._newest + 1)
            if not 0 <= found._filled < config.batch or min(counts) < 0 or (found._memory_count < 0).any():
                raise ValueError("its counts are not those of a learner")
            found._rng.bit_generator.state = facts["rng"]
        except (*DAMAGE, UsageError) as error:
            raise DamagedError(f"expected the state of a learner: {str(error)[:200]}", where=where) from error
        found._slots = {n: k for k, n in enumerate(found._memory_tube.tolist()) if n >= 0}
        return found


def _check_sizes(
    arrays: dict[str, np.ndarray[Any, np.dtype[Any]]], config: LearnerConfig, labels: int
) -> None:
    """Check the largest parts of a state before room is made for as much as its settings ask for.

    Raises:
        ValueError: if one is of another size.
    """
    inputs = len(arrays["mean"])
    sizes = (inputs, *config.hidden, labels)
    wanted: dict[str, tuple[int, ...]] = {f"layer.{k}.weight": pair for k, pair in enumerate(pairwise(sizes))}
    wanted["batch_x"], wanted["batch_truth"] = (config.batch, inputs), (config.batch, labels)
    room = config.memory_tubes, config.tube_rows
    wanted["memory_x"], wanted["memory_truth"] = (*room, inputs), (*room, labels)
    if any(arrays[name].shape != shape for name, shape in wanted.items()):
        raise ValueError("its parts are not those that its settings need")


_RAMP = 5.0
"""exp(-5 (1 - t)^2), with t from 0 to 1: how the say of the teacher grows, as its authors have it."""


@dataclass(frozen=True)
class FitConfig:
    """How a set is learnt from that is there whole.

    Args:
        hidden: units of the layers between.
        lr: rate of learning at first; it falls to 0 by a cosine.
        batch: boxes of a step; of a set without labels as many again.
        epochs: over the boxes with labels.
        decay: what is left of the teacher with each step.
        consistency: weight of agreeing with the teacher, once it has its full say.
        ramp: share of the steps until then.
        noise: spread of what is added to the standardised features of which the student is asked.
    """

    hidden: tuple[int, ...] = (96,)
    lr: float = 2e-3
    batch: int = 256
    epochs: int = 12
    decay: float = 0.99
    consistency: float = 1.0
    ramp: float = 0.4
    noise: float = 0.1

    def __post_init__(self) -> None:
        check_range("lr", self.lr, 1e-6, 1.0)
        check_range("batch", self.batch, 1, 65536)
        check_range("epochs", self.epochs, 1, 10_000)
        check_range("decay", self.decay, 0.0, 0.999999)
        check_range("ramp", self.ramp, 0.0, 1.0)
        for name in ("consistency", "noise"):
            check_range(name, getattr(self, name), 0.0, 100.0)


@dataclass(frozen=True, eq=False)
class FittedTubes:
    """A network of tubes and its labels.

    Args:
        labels: in the order of its outputs.
        network: that was fitted.
    """

    labels: tuple[str, ...]
    network: SmallNetwork

    def scores(self, x: Floats32, labels: Sequence[str]) -> Floats32:
        """(n, asked) probabilities of labels by name; 0 of one that it did not learn."""
        return _score_labels(self.network.logits, self.labels, x, labels)


def _score_labels(
    logits: Callable[[Floats32], Floats32], known: Sequence[str], x: Floats32, labels: Sequence[str]
) -> Floats32:
    found = np.zeros((len(x), len(labels)), np.float32)
    asked = [k for k, name in enumerate(labels) if name in known]
    if asked and len(x):
        out = logits(x)[:, [known.index(labels[k]) for k in asked]]
        found[:, asked] = np.reciprocal(np.float32(1) + np.exp(-out))
    return found


def fit_tubes(
    parts: Sequence[TubeRows],
    mean: Floats32,
    spread: Floats32,
    config: FitConfig | None = None,
    *,
    seed: int = 0,
    unlabelled: Sequence[TubeRows] = (),
    start: Start | None = None,
) -> FittedTubes:
    """A network that learnt from all sets with labels, in shuffled order, and agrees with its teacher on those without.

    Without `unlabelled` it is plain supervised learning. With it the teacher, a fading mean of the student's weights, says
    what it takes the labels of other boxes to be, the student is asked about them with noise, and the teacher is what is
    returned. Labels of `unlabelled` are never read.

    Args:
        parts: sets with labels; a label that one does not annotate is not learnt there.
        mean, spread: (inputs,) of the features.
        config: how.
        seed: of weights, order and noise.
        unlabelled: sets of which the features alone are looked at.
        start: the layer that it begins as; None for nothing learnt before.

    Raises:
        UsageError: if there is no box to learn from, or none in a set without labels; if `start` does not fit.

    Source: Tarvainen and Valpola, NeurIPS 2017; the teacher's probabilities are targets of cross-entropy here, since each
    label has a sigmoid of its own.
    """
    how = config or FitConfig()
    known = () if start is None else start.labels
    labels = tuple(dict.fromkeys([*known, *(name for part in parts for name in part.labels)]))
    count = sum(len(part) for part in parts)
    if not count or not labels:
        raise UsageError("there is no box with labels to learn from")
    rng = np.random.default_rng(seed)
    student = TubeNetwork(mean, spread, how.hidden, len(labels), rng)
    if start is not None:
        student.begin(start)
    x = np.concatenate([student.standardise(part.x) for part in parts])
    truth = np.zeros((count, len(labels)), np.float32)
    weight = np.zeros((count, len(labels)), np.float32)
    begin = 0
    for part in parts:
        columns = [labels.index(name) for name in part.labels]
        rows = slice(begin, begin + len(part))
        truth[rows, columns], weight[rows, columns] = part.truth, part.weight[:, None]
        begin += len(part)
    other = np.concatenate([student.standardise(part.x) for part in unlabelled]) if unlabelled else None
    if other is not None and not len(other):
        raise UsageError("there is no box in the set without labels")
    teacher = [(matrix.copy(), bias.copy()) for matrix, bias in student.layers]
    steps = max(1, -(-count // how.batch))
    total, done = steps * how.epochs, 0
    for _ in range(how.epochs):
        order = rng.permutation(count)
        for step in range(steps):
            chosen = order[step * how.batch : (step + 1) * how.batch]
            lr = how.lr * 0.5 * (1 + float(np.cos(np.pi * done / total)))
            share = weight[chosen] / np.float32(len(chosen))
            if other is None:
                student.step(x[chosen], truth[chosen], share, max(lr, 1e-9))
            else:
                asked = other[rng.integers(0, len(other), how.batch)]
                targets = _probabilities(asked, teacher)
                seen = np.concatenate([x[chosen], asked])
                # Noise on all boxes, so that the student cannot tell the sets apart by it.
                seen = seen + np.float32(how.noise) * rng.standard_normal(seen.shape, np.float32)
                say = how.consistency * float(
                    np.exp(-_RAMP * (1 - min(1.0, done / max(1.0, how.ramp * total))) ** 2)
                )
                agree = np.full(targets.shape, say / how.batch, np.float32)
                student.step(
                    seen,
                    np.concatenate([truth[chosen], targets]),
                    np.concatenate([share, agree]),
                    max(lr, 1e-9),
                )
                # In the first steps the mean is that of what there is.
                keep = np.float32(min(how.decay, done / (done + 1)))
                for mine, theirs in zip(teacher, student.layers, strict=True):
                    for old, new in zip(mine, theirs, strict=True):
                        old += (1 - keep) * (new - old)
            done += 1
    return FittedTubes(labels, student.build_network(None if other is None else teacher))


def _probabilities(standard: Floats32, layers: list[tuple[Floats32, Floats32]]) -> Floats32:
    """(n, labels) of standardised features."""
    held = standard
    for matrix, bias in layers[:-1]:
        held = np.maximum(held @ matrix + bias, np.float32(0))
    found: Floats32 = np.float32(0.5) * np.tanh(
        np.float32(0.5) * (held @ layers[-1][0] + layers[-1][1])
    ) + np.float32(0.5)
    return found
