"""Folds, the samples of a split batch after batch, and auxiliary heads beside the label; imports torch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from roadaware.arrays import Ints
from roadaware.errors import InputError, UsageError
from roadaware.models import get_crossing_entry
from roadaware.models.crossing.inputs import InputSet, parse_input_name
from roadaware.models.crossing.networks.multitask import PathDecoder
from roadaware.models.crossing.networks.stills import CrossingNet
from roadaware.models.crossing.predictor import as_tensor
from roadaware.scenes.sampling import EventProtocol, Iv2024
from roadaware.tasks.crossing_inputs.boxes import CELLS, COLUMNS
from roadaware.tasks.pedestrians import UNKNOWN, Futures
from roadaware.training.pedestrians.recipe import LossRecipe, PathLoss, PedestrianRecipe, TasksRecipe


@dataclass(frozen=True, eq=False)
class Fold:
    """Samples with their answers.

    Args:
        inputs: of n samples.
        truth: (n) indices of labels.
        soft: (n, k) what probabilities should be, instead of the ground truth; None where only that is known.
        ahead: what comes behind the observations; None where nobody asks.
    """

    inputs: InputSet
    truth: Tensor
    soft: Tensor | None = None
    ahead: Futures | None = None

    def __len__(self) -> int:
        return len(self.inputs)


def load_sequences(fold: Fold) -> dict[str, Tensor]:
    """The sequences of a fold as tensors, at once: they are small."""
    rows = np.arange(len(fold))
    return {
        name: as_tensor(column.take(rows))
        for name, column in fold.inputs.columns.items()
        if len(column.shape) < 3
    }


class Drawn:
    """The samples of a fold in batches, in another order each epoch; a last short one joins none.

    Args:
        fold: of n samples.
        batch: samples of a step.
        seed: of the order.

    Raises:
        InputError: if there are no samples.
    """

    def __init__(self, fold: Fold, batch: int, seed: int) -> None:
        if not len(fold):
            raise InputError("there are no samples to learn from")
        self.fold, self.batch, self.seed = fold, min(batch, len(fold)), seed
        self._held = load_sequences(fold)

    @property
    def steps(self) -> int:
        """Of an epoch."""
        return len(self.fold) // self.batch

    def epoch(self, number: int, begin: int = 0) -> Iterator[tuple[Ints, dict[str, Tensor]]]:
        """Rows and inputs of each batch.

        Args:
            number: of the epoch, from 0; it and the seed decide the order.
            begin: batches that are left out, since they are done.
        """
        order = np.random.default_rng([self.seed, number]).permutation(len(self.fold))
        for step in range(begin, self.steps):
            rows = order[step * self.batch : (step + 1) * self.batch].astype(np.int64)
            yield rows, self.take(rows)

    def take(self, rows: Ints) -> dict[str, Tensor]:
        """The inputs of some samples, in the order of the fold's columns.

        Args:
            rows: (k).
        """
        place = torch.from_numpy(rows)
        return {
            name: self._held[name][place] if name in self._held else as_tensor(column.take(rows))
            for name, column in self.fold.inputs.columns.items()
        }


def compute_moments(fold: Fold) -> dict[str, tuple[Tensor, Tensor]]:
    """Mean and deviation of each sequence over samples and frames, unknown numbers left out.

    Args:
        fold: of the train split.
    """
    shapes = fold.inputs.shapes
    return measure_sequences({n: v for n, v in load_sequences(fold).items() if len(shapes[n]) == 2})


def measure_sequences(sequences: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]]:
    """Mean and deviation of sequences over samples and frames, unknown numbers left out.

    Args:
        sequences: by name, (n, t, d).
    """
    found = {}
    for name, values in sequences.items():
        flat = values.reshape(-1, values.shape[-1]).double()
        known = ~flat.isnan()
        count = known.sum(dim=0).clamp(min=1)
        mean = flat.nan_to_num(0.0).sum(dim=0) / count
        spread = ((flat - mean).nan_to_num(0.0).square().sum(dim=0) / count).sqrt()
        found[name] = (mean.float(), torch.where(spread > 1e-6, spread, torch.ones_like(spread)).float())
    return found


# Mirroring: inputs and answers as they would be in an image turned left to right; imports torch.


def _whole(values: Tensor) -> Tensor:
    return values


def _boxes(values: Tensor) -> Tensor:
    """x1, y1, x2, y2 in shares of the image."""
    x1, y1, x2, y2 = values.unbind(-1)
    return torch.stack([1 - x2, y1, 1 - x1, y2], -1)


def flip_offsets(values: Tensor) -> Tensor:
    """(..., 4) x1, y1, x2, y2 less those of a box.

    Args:
        values: (..., 4).
    """
    x1, y1, x2, y2 = values.unbind(-1)
    return torch.stack([-x2, y1, -x1, y2], -1)


def _centre(values: Tensor) -> Tensor:
    """The centre in shares first; the fifth is its velocity to the right."""
    turned = values.clone()
    turned[..., 0] = 1 - values[..., 0]
    turned[..., 4] = -values[..., 4]
    return turned


def _motion(values: Tensor) -> Tensor:
    """Velocities to the right, downwards and towards the middle."""
    return torch.cat([-values[..., :1], values[..., 1:]], -1)


def _history(values: Tensor) -> Tensor:
    """x comes first; all other columns count inwards, towards the middle."""
    return torch.cat([1 - values[..., :1], values[..., 1:]], -1)


def _crop(values: Tensor) -> Tensor:
    """(n, T, 3, H, W)."""
    return values.flip(-1)


def flip_cells(values: Tensor) -> Tensor:
    """(...) the cell at the other side of the image.

    Args:
        values: (...) numbers of cells, row by row from 0.
    """
    return values + (COLUMNS - 1) - 2 * (values % COLUMNS)


_TURNS: dict[str, Callable[[Tensor], Tensor]] = {
    "boxes": _boxes,
    "boxes:first": flip_offsets,
    "boxes:last": flip_offsets,
    "centre": _centre,
    "motion": _motion,
    "history": _history,
    "ego:action": _whole,
    "ego:code": _whole,
    "ego:speed": _whole,
    "traffic": _whole,
    "grid": flip_cells,
    "crop:box": _crop,
    "crop:context": _crop,
    "crop:surround": _crop,
    "maps": _crop,
}


def ensure_flippable(names: Mapping[str, object]) -> None:
    """Refuse inputs whose mirror image is not known.

    Raises:
        UsageError: names those.
    """
    lost = [name for name in names if _bare(name) not in _TURNS]
    if lost:
        raise UsageError(f"flip: it is not known what {', '.join(lost)} are in a mirror; set flip to 0")


def flip_inputs(x: Mapping[str, Tensor], which: Tensor) -> dict[str, Tensor]:
    """The inputs, some samples of them mirrored.

    Args:
        x: by name, (n, ...).
        which: (n) bool.
    """
    found = {}
    for name, values in x.items():
        changed = values.clone()
        changed[which] = _TURNS[_bare(name)](values[which])
        found[name] = changed
    return found


def flip_targets(wanted: Tensor, which: Tensor, *, regions: bool) -> Tensor:
    """(n, k) the ground truth of the mirror image: regions of the image change sides, other labels stay.

    Args:
        wanted: (n, k).
        which: (n) bool.
        regions: labels are regions from left to right.
    """
    if not regions:
        return wanted
    return torch.where(which[:, None], wanted.flip(1), wanted)


def _bare(name: str) -> str:
    parts = parse_input_name(name)
    return f"{parts.kind}:{parts.form}" if parts.form else parts.kind


_STILL = 1e-6
"""Shares of the image: sides that move less on train have no unit."""


def get_task_weights(recipe: PedestrianRecipe) -> dict[str, float]:
    """Task to the weight of its loss, those above 0.

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
    """The sizes of the heads as networks take them: frames and cells."""
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
