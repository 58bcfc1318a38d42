"""DecisionNetwork: what the own vehicle does, from the set of events around it; and rules that say the same.

ROAD announces the task (Singh et al., TPAMI 2022, section 6). The events of a frame are a set of tubes, each a token of
what it is, does and where it is; a small set transformer (Lee et al., ICML 2019) reads them, so that their order means
nothing and any tube can be taken away. It runs in plain numpy.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from roadaware.arrays import Floats, Floats32
from roadaware.errors import DamagedError
from roadaware.io.sources import read_file, to_printable
from roadaware.models.event_head.head import parse_networks, write_networks
from roadaware.models.object_labels import ROAD_AGENTS

FORMAT = "roadaware-decisions-1"
_MOST_BYTES = 1 << 24
AHEAD_S = 1.0
"""How far ahead the second decision lies, in seconds."""
WHEN = ("now", "in 1 s")
HEADS = 4
_FARTHEST = 6.0
"""Spreads that a column may lie from its mean."""


def list_token_columns(actions: Sequence[str], locations: Sequence[str]) -> tuple[str, ...]:
    """Names of the columns of `make_tokens`."""
    return (
        *(f"agent.{name}" for name in ROAD_AGENTS), *(f"action.{name}" for name in actions),
        *(f"location.{name}" for name in locations),
        "box.x", "box.bottom", "box.log_width", "box.log_height", "motion.x", "motion.y", "motion.width", "motion.height",
        "score",
    )  # fmt: skip


def make_tokens(
    agents: Floats32,
    actions: Floats32,
    locations: Floats32,
    boxes: Floats,
    speed: Floats,
    score: Floats32,
    size_px: tuple[int, int],
) -> Floats32:
    """(n, columns) tokens of the tubes of a frame.

    Args:
        agents: (n, 10) probabilities of ROAD's agents.
        actions, locations: (n, labels) probabilities of the event head.
        boxes: (n, 4) x1, y1, x2, y2 in pixels.
        speed: (n, 4) of `ConstantVelocity.step`: pixels a second of the middle, and change of the logarithms of the size.
        score: (n,) agentness.
        size_px: width and height of the image.
    """
    width, height = size_px
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 1.0)
    middle = (boxes[:, 0] + boxes[:, 2]) / width - 1
    bottom = 2 * boxes[:, 3] / height - 1
    place = (middle[:, None], bottom[:, None], np.log(sides / size_px))
    motion = np.clip(speed[:, :2] / sides, -5, 5), np.clip(speed[:, 2:], -5, 5)
    parts = (agents, actions, locations, *place, *motion, score[:, None])
    return np.concatenate(parts, axis=1, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Decision:
    """What the own vehicle does.

    Args:
        scores: (2, AV actions) probabilities now and in a second, each row sums to 1.
        attention: (2, n) share of the attention that each tube gets for either; the rest goes to the road as such.
    """

    scores: Floats32
    attention: Floats32


@dataclass(frozen=True, eq=False)
class DecisionNetwork:
    """A set transformer over the tubes of a frame: one block of self-attention, then a question for each time.

    Args:
        av_actions: labels of the own vehicle, in the order of the scores.
        columns: of the tokens that it reads.
        context: names of what it is told of the own motion; empty for none.
        tensors: by name, as training wrote them.
        facts: what it learnt from.
    """

    av_actions: tuple[str, ...]
    columns: tuple[str, ...]
    context: tuple[str, ...]
    tensors: Mapping[str, Floats32]
    facts: Mapping[str, Any]

    def decide(self, tokens: Floats32, context: Floats32 | None = None) -> Decision:
        """What the own vehicle does, by the tubes around it; also where there are none.

        Args:
            tokens: (n, columns) of `make_tokens`.
            context: (features,) of the own motion, where it is asked for.
        """
        t, width = self.tensors, self.tensors["road"].shape[1]
        held = np.empty((1 + len(tokens), width), np.float32)
        held[:1] = t["road"]
        if self.context:
            if context is None:
                raise ValueError("this network asks for the own motion")
            own = np.clip((context - t["context.mean"]) / t["context.spread"], -_FARTHEST, _FARTHEST)
            held[:1] += own[None].astype(np.float32) @ t["context.weight"] + t["context.bias"]
        standard = tokens - t["mean"]
        standard /= t["spread"]
        np.clip(standard, -_FARTHEST, _FARTHEST, out=standard)
        tubes = held[1:]
        np.matmul(standard, t["embed.weight"], out=tubes)
        tubes += t["embed.bias"]
        np.maximum(tubes, np.float32(0), out=tubes)
        # Many small products cost calls rather than sums: queries, keys and values are one product.
        of_tubes, of_answers, questions = self._joined
        joined = held @ of_tubes[0] + of_tubes[1]
        mixed, _ = _attend(joined[:, :width], joined[:, width : 2 * width], joined[:, 2 * width :])
        held = _transform(held, mixed, t, "self")
        joined = held @ of_answers[0] + of_answers[1]
        mixed, shares = _attend(questions, joined[:, :width], joined[:, width:])
        logits = _transform(t["questions"], mixed, t, "ask") @ t["out.weight"] + t["out.bias"]
        raised = np.exp(logits - logits.max(axis=1, keepdims=True))
        return Decision(raised / raised.sum(axis=1, keepdims=True), shares.mean(axis=0)[:, 1:])

    @cached_property
    def _joined(self) -> tuple[tuple[Floats32, Floats32], tuple[Floats32, Floats32], Floats32]:
        """Weight and bias of queries, keys and values of tubes, of keys and values of answers; the questions' queries."""
        t = self.tensors

        def join(name: str, *parts: str) -> tuple[Floats32, Floats32]:
            weights, biases = ([t[f"{name}.{part}.{each}"] for part in parts] for each in ("weight", "bias"))
            return np.concatenate(weights, axis=1), np.concatenate(biases)

        questions = t["questions"] @ t["ask.query.weight"] + t["ask.query.bias"]
        return join("self", "query", "key", "value"), join("ask", "key", "value"), questions


def _attend(query: Floats32, key: Floats32, value: Floats32) -> tuple[Floats32, Floats32]:
    """(q, width) what each question draws from what is held, and (heads, q, n) the share of each.

    Args:
        query: (q, width).
        key, value: (n, width).
    """
    queries, keys, values = (
        each.reshape(len(each), HEADS, -1).transpose(1, 0, 2) for each in (query, key, value)
    )
    shares: Floats32 = np.matmul(queries, keys.transpose(0, 2, 1))
    shares /= np.float32(np.sqrt(query.shape[1] // HEADS))
    shares -= shares.max(axis=2, keepdims=True)
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=2, keepdims=True)
    mixed: Floats32 = np.matmul(shares, values).transpose(1, 0, 2).reshape(query.shape)
    return mixed, shares


def _transform(asked: Floats32, mixed: Floats32, t: Mapping[str, Floats32], name: str) -> Floats32:
    """(q, width) what is asked with what it drew, mixed over heads, through the layers behind attention."""
    joined: Floats32 = mixed @ t[f"{name}.mix.weight"] + t[f"{name}.mix.bias"]
    asked = _normalize(asked + joined, t, f"{name}.norm1")
    inner: Floats32 = np.matmul(asked, t[f"{name}.up.weight"])
    inner += t[f"{name}.up.bias"]
    np.maximum(inner, np.float32(0), out=inner)
    return _normalize(asked + inner @ t[f"{name}.down.weight"] + t[f"{name}.down.bias"], t, f"{name}.norm2")


def _normalize(x: Floats32, t: Mapping[str, Floats32], name: str) -> Floats32:
    """Layer normalisation of rows, in place, with the epsilon of torch."""
    x -= x.sum(axis=1, keepdims=True) / np.float32(x.shape[1])
    spread = np.einsum("nc,nc->n", x, x) / np.float32(x.shape[1]) + np.float32(1e-5)
    x /= np.sqrt(spread)[:, None]
    x *= t[f"{name}.weight"]
    x += t[f"{name}.bias"]
    return x


# Rules: what a driver would say of the same tokens, written out. Each gives a probability of having to stop.

NEAR = 0.25
"""Share of the height of the image from which on a road user counts as near."""


def decide_by_rules(
    tokens: Floats32, columns: Sequence[str], prior: Floats, av_actions: Sequence[str]
) -> Floats:
    """(AV actions,) scores by rules: the same now and in a second.

    - A traffic light that shows red or amber, ahead: stop.
    - Somebody on foot who is on the road, near: stop; who waits to cross: half as sure.
    - A vehicle in the own lane that stands or brakes, near: stop.
    - Else: drive on; other actions as often as they are.

    Args:
        tokens: (n, columns) of `make_tokens`.
        columns: their names.
        prior: (AV actions,) how often each is.
        av_actions: labels.
    """
    at = {name: k for k, name in enumerate(columns)}

    def column(*names: str) -> Floats:
        found: Floats = tokens[:, [at[name] for name in names]].astype(np.float64).max(axis=1)
        return found

    stop = 0.0
    if len(tokens):
        near = np.clip(np.exp(column("box.log_height")) / NEAR, 0, 1)
        ahead = np.clip(1.2 - np.abs(column("box.x")), 0, 1)
        light = column("agent.TL") * column("action.Red", "action.Amber") * ahead
        crossing = column(
            "action.Xing", "action.XingFmLft", "action.XingFmRht", "location.xing", "location.VehLane"
        )
        person = column("agent.Ped") * np.maximum(crossing, 0.5 * column("action.Wait2X")) * near
        vehicles = column(
            "agent.Car",
            "agent.MedVeh",
            "agent.LarVeh",
            "agent.Bus",
            "agent.Cyc",
            "agent.Mobike",
            "agent.EmVeh",
        )
        vehicle = vehicles * column("location.VehLane") * column("action.Stop", "action.Brake") * near
        stop = float(np.max([light, person, vehicle]))
    held = np.asarray(prior, np.float64).copy()
    first, moves = av_actions.index("AV-Stop"), av_actions.index("AV-Mov")
    rest = np.delete(held, first)
    held[np.arange(len(held)) != first] = rest / rest.sum() * (1 - stop)
    held[first] = stop
    # Driving on is what is left, whatever else it may be.
    held[moves] = 1 - stop - np.delete(held, [first, moves]).sum()
    return held


def save_decisions(network: DecisionNetwork, path: Path) -> None:
    """Write a network as a safetensors file.

    Raises:
        DiskError: if the disk refuses.
    """
    about = {
        "format": FORMAT, "av_actions": network.av_actions, "columns": network.columns, "context": network.context,
        "facts": dict(network.facts),
    }  # fmt: skip
    write_networks(about, dict(network.tensors), path)


def open_decisions(path: Path) -> DecisionNetwork:
    """The network in a file.

    Raises:
        InputError: if it cannot be read.
        DamagedError: if it is no such network.
    """
    where = to_printable(str(path))
    raw = read_file(path, where, _MOST_BYTES)
    try:
        about, tensors = parse_networks(raw, FORMAT)
        network = DecisionNetwork(
            tuple(about["av_actions"]),
            tuple(about["columns"]),
            tuple(about["context"]),
            tensors,
            about["facts"],
        )
        found = network.decide(
            np.zeros((1, len(network.columns)), np.float32), np.zeros(len(network.context), np.float32)
        )
        if found.scores.shape != (len(WHEN), len(network.av_actions)):
            raise ValueError("its layers do not fit its labels")
    except (
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        struct.error,
        RecursionError,
    ) as error:
        raise DamagedError(f"expected a decision network: {str(error)[:200]}", where=where) from error
    return network
