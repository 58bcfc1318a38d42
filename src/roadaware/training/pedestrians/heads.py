"""Auxiliary heads beside the label: their targets and losses; imports torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models import get_crossing_entry
from roadaware.models.crossing.networks.base import CrossingNet
from roadaware.models.crossing.networks.multitask import PathDecoder
from roadaware.scenes.sampling import EventProtocol, Iv2024
from roadaware.tasks.crossing_inputs.boxes import CELLS
from roadaware.tasks.targets import UNKNOWN, Futures
from roadaware.training.pedestrians.folds import flip_cells, flip_offsets
from roadaware.training.pedestrians.recipe import LossRecipe, PathLoss, PedestrianRecipe, TasksRecipe

_STILL = 1e-6
"""Shares of the image: sides that move less on train have no unit."""


def get_task_weights(recipe: PedestrianRecipe) -> dict[str, float]:
    """Task to the weight of its loss, those above 0.

    Args:
        recipe: says what is learnt.

    Raises:
        UsageError: if the network has no head for a task that is asked for.
    """
    known = get_crossing_entry(recipe.network.name).also_tells
    weights = {}
    for task, asked in (("trajectory", recipe.tasks.trajectory), ("grid", recipe.tasks.grid)):
        if asked and task not in known:
            text = f"it tells {', '.join(known)}" if known else "it tells the label alone"
            raise UsageError(f"tasks.{task}: {recipe.network.name} has no head for it; {text}")
        weight = float(task in known) if asked is None else asked
        if weight:
            weights[task] = weight
    return weights


def get_horizon(tasks: TasksRecipe, protocol: EventProtocol) -> int:
    """Boxes ahead.

    Args:
        tasks: of the recipe.
        protocol: keeps so many free before the event.
    """
    free = protocol.prediction_frames if isinstance(protocol, Iv2024) else protocol.tte_frames[0]
    return tasks.horizon_frames or max(1, free)


def get_head_sizes(recipe: PedestrianRecipe, protocol: EventProtocol) -> dict[str, int]:
    """The sizes of the heads as networks take them: frames and cells.

    Args:
        recipe: says what is learnt.
        protocol: says how far ahead.
    """
    known = {"trajectory": get_horizon(recipe.tasks, protocol), "grid": CELLS}
    return {task: known[task] for task in get_task_weights(recipe)}


@dataclass(frozen=True, eq=False)
class Ahead:
    """Targets of the heads for n samples.

    Args:
        moved: (n, h, 4) boxes less the last observed one in shares, NaN where the track has ended.
        cell: (n) that of the last box, -1 where the track ends before.
    """

    moved: Tensor
    cell: Tensor

    @classmethod
    def of(cls, future: Futures) -> Self:
        """The targets."""
        return cls(torch.from_numpy(future.moved).float(), torch.from_numpy(future.cell))

    def some(self, rows: Tensor) -> Self:
        """Some samples."""
        return type(self)(self.moved[rows], self.cell[rows])

    def turned(self, which: Tensor) -> Self:
        """As it is in an image turned left to right.

        Args:
            which: (n) bool, the samples that are.
        """
        moved = torch.where(which[:, None, None], flip_offsets(self.moved), self.moved)
        known = which & (self.cell != UNKNOWN)
        return type(self)(moved, torch.where(known, flip_cells(self.cell), self.cell))


@dataclass(frozen=True, eq=False)
class Heads:
    """Training targets and losses of the heads of a network.

    Args:
        truth: what they should say.
        weights: of their losses, by task.
        spread: (4) root mean square of how far the sides of boxes move, the unit of their errors.
        path: loss of boxes.
    """

    truth: Ahead
    weights: dict[str, float]
    spread: Tensor
    path: PathLoss

    @classmethod
    def of(cls, network: CrossingNet, future: Futures, recipe: PedestrianRecipe) -> Self:
        """The heads that a network has, with the unit of its paths.

        Args:
            network: its decoders of paths are changed.
            future: of the train split.
            recipe: the weights.
        """
        truth = Ahead.of(future)
        square = truth.moved[truth.moved.isfinite().all(-1)].double().square()
        spread = square.mean(0).sqrt() if len(square) else torch.ones(4).double()
        spread = torch.where(spread > _STILL, spread, torch.ones_like(spread)).float()
        for module in network.modules():
            if isinstance(module, PathDecoder):
                module.spread.copy_(spread)
        weights = {task: weight for task, weight in get_task_weights(recipe).items() if task in network.tasks}
        return cls(truth, weights, spread, recipe.tasks.path)

    def loss(self, said: Mapping[str, Tensor], rows: Tensor, mirrored: Tensor) -> Tensor:
        """Scalar loss of all heads; what is unknown counts for nothing.

        Args:
            said: answers of k samples, by task.
            rows: (k) which samples.
            mirrored: (k) bool, whether they were shown turned left to right.
        """
        truth = self.truth.some(rows).turned(mirrored)
        loss = truth.moved.new_zeros(())
        if "trajectory" in self.weights:
            off = path_loss(said["trajectory"], truth.moved, self.spread, self.path)
            loss = loss + self.weights["trajectory"] * off
        if "grid" in self.weights:
            loss = loss + self.weights["grid"] * cell_loss(said["grid"], truth.cell)
        return loss


def path_loss(said: Tensor, wanted: Tensor, spread: Tensor, path: PathLoss) -> Tensor:
    """Scalar mean over the known sides of boxes; 0 where none is known.

    Args:
        said: (n, h, 4).
        wanted: (n, h, 4), NaN where unknown.
        spread: (4) unit of the errors.
        path: `logcosh`, as BiPed has it [recalled], or `squares`.
    """
    known = wanted.isfinite().all(-1, keepdim=True)
    off = torch.where(known, (said - wanted.nan_to_num(0.0)) / spread, 0.0)
    # ln cosh x, without overflow
    each = off + functional.softplus(-2 * off) - math.log(2) if path == "logcosh" else off.square()
    return each.sum() / (4 * known.sum()).clamp(min=1)


def cell_loss(said: Tensor, wanted: Tensor) -> Tensor:
    """Scalar cross-entropy, the mean over samples whose cell is known; 0 where none is.

    Args:
        said: (n, cells) logits.
        wanted: (n) numbers, -1 where unknown.
    """
    each = functional.cross_entropy(said, wanted, ignore_index=UNKNOWN, reduction="sum")
    return each / (wanted != UNKNOWN).sum().clamp(min=1)


# Losses of predictors: labels plain, weighted, soft or in a row; paths and cells; imports torch.


def encode_target(truth: Tensor, labels: int, smoothing: float = 0.0) -> Tensor:
    """(n, k) target probabilities; k = 1 with two labels.

    Args:
        truth: (n) indices of labels.
        labels: how many there are.
        smoothing: share that is spread over all labels.
    """
    if labels == 2:
        return truth[:, None].float() * (1 - smoothing) + smoothing / 2
    return functional.one_hot(truth, labels).float() * (1 - smoothing) + smoothing / labels


def compute_class_weights(truth: Tensor, labels: int, power: float) -> Tensor:
    """(labels) weights, inverse to how often a label occurs, with mean 1 over the samples.

    Args:
        truth: (n) indices of labels.
        labels: how many there are.
        power: 0 for equal weights, 1 for fully inverse ones.
    """
    counts = torch.bincount(truth, minlength=labels).double()
    weight = torch.where(counts > 0, counts.clamp(min=1) ** -power, torch.zeros_like(counts))
    mean = (weight * counts).sum() / counts.sum()
    return (weight / mean).float()


def label_loss(logits: Tensor, wanted: Tensor, weight: Tensor, recipe: LossRecipe) -> Tensor:
    """(n) loss of each sample.

    Args:
        logits: (n, k) answers; k = 1 with two labels.
        wanted: (n, k) what probabilities should be.
        weight: (n) of each sample.
        recipe: plain or ordinal.
    """
    if logits.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")[:, 0] * weight
    said = functional.log_softmax(logits, dim=1)
    loss = -(wanted * said).sum(dim=1)
    if recipe.label == "ordinal":
        loss = loss + recipe.ordinal_weight * cumulated_distance(said.exp(), wanted)
    return loss * weight


def cumulated_distance(said: Tensor, wanted: Tensor) -> Tensor:
    """(n) squared differences of cumulated probabilities, summed: how far probability has to be moved.

    Args:
        said: (n, k) probabilities of regions in a row.
        wanted: (n, k) those that are true.

    Source: the squared earth mover's distance of Hou et al., 2016 (arXiv 1611.05916), eq. 3.
    """
    return (said.cumsum(dim=1) - wanted.cumsum(dim=1)).square().sum(dim=1)


def frames_loss(
    answers: Tensor, wanted: Tensor, weight: Tensor, recipe: LossRecipe, first: int = 4
) -> Tensor:
    """Scalar loss of a network that answers at every frame: earlier answers, and how much they change.

    Args:
        answers: (n, T, k) logits.
        wanted: (n, k).
        weight: (n).
        recipe: the two weights.
        first: frames that are let pass before answers count.
    """
    seen = answers[:, first:]
    frames, k = seen.shape[1:]
    loss = seen.new_zeros(())
    if recipe.every_frame and frames:
        flat = label_loss(
            seen.reshape(-1, k),
            wanted.repeat_interleave(frames, 0),
            weight.repeat_interleave(frames, 0),
            recipe,
        )
        loss = loss + recipe.every_frame * flat.mean()
    if recipe.consistency and frames > 1:
        said = torch.sigmoid(seen) if k == 1 else torch.softmax(seen, dim=2)
        loss = loss + recipe.consistency * said.diff(dim=1).square().sum(dim=2).mean()
    return loss
