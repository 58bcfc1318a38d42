"""Fits of the event head's network of tubes on several sets at once, and to a set without labels by a mean teacher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roadaware.arrays import Floats32
from roadaware.config import check_range
from roadaware.errors import UsageError
from roadaware.models.event_head.head import SmallNetwork
from roadaware.training.events.online import TubeNetwork
from roadaware.training.events.streams import TubeRows

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
        found = np.zeros((len(x), len(labels)), np.float32)
        known = [k for k, name in enumerate(labels) if name in self.labels]
        if known and len(x):
            out = self.network.logits(x)[:, [self.labels.index(labels[k]) for k in known]]
            found[:, known] = np.reciprocal(np.float32(1) + np.exp(-out))
        return found


def fit_tubes(
    parts: Sequence[TubeRows],
    mean: Floats32,
    spread: Floats32,
    config: FitConfig | None = None,
    *,
    seed: int = 0,
    unlabelled: Sequence[TubeRows] = (),
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

    Raises:
        UsageError: if there is no box to learn from, or none in a set without labels.

    Source: Tarvainen and Valpola, NeurIPS 2017; the teacher's probabilities are targets of cross-entropy here, since each
    label has a sigmoid of its own.
    """
    how = config or FitConfig()
    labels = tuple(dict.fromkeys(name for part in parts for name in part.labels))
    count = sum(len(part) for part in parts)
    if not count or not labels:
        raise UsageError("there is no box with labels to learn from")
    rng = np.random.default_rng(seed)
    student = TubeNetwork(mean, spread, how.hidden, len(labels), rng)
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
