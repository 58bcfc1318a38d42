"""Folds: the samples of a split as a fit takes them, batch after batch; imports torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roadaware.arrays import Ints
from roadaware.errors import InputError
from roadaware.models.crossing.inputs import InputSet
from roadaware.models.crossing.predictor import as_tensor
from roadaware.tasks.futures import Futures


@dataclass(frozen=True, eq=False)
class Fold:
    """Samples with their answers.

    Args:
        inputs: of n samples.
        truth: (n) indices of labels.
        soft: (n, k) what probabilities should be, instead of the truth; None where only that is known.
        ahead: what comes behind the observations; None where nobody asks.
    """

    inputs: InputSet
    truth: Tensor
    soft: Tensor | None = None
    ahead: Futures | None = None

    def __len__(self) -> int:
        return len(self.inputs)


def held(fold: Fold) -> dict[str, Tensor]:
    """The sequences of a fold as tensors, at once: they are small.

    Args:
        fold: of n samples.
    """
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
        self._held = held(fold)

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


def moments(fold: Fold) -> dict[str, tuple[Tensor, Tensor]]:
    """Mean and deviation of each sequence over samples and frames, unknown numbers left out.

    Args:
        fold: of the train split.
    """
    found = {}
    for name, values in held(fold).items():
        if len(fold.inputs.shapes[name]) != 2:
            continue
        flat = values.reshape(-1, values.shape[-1]).double()
        known = ~flat.isnan()
        count = known.sum(dim=0).clamp(min=1)
        mean = flat.nan_to_num(0.0).sum(dim=0) / count
        spread = ((flat - mean).nan_to_num(0.0).square().sum(dim=0) / count).sqrt()
        found[name] = (mean.float(), torch.where(spread > 1e-6, spread, torch.ones_like(spread)).float())
    return found
