"""Folds: the samples of a split as a fit takes them, batch after batch; imports torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from roadaware.arrays import Ints
from roadaware.errors import InputError, UsageError
from roadaware.models.crossing.inputs import InputSet, parse_input_name
from roadaware.models.crossing.predictor import as_tensor
from roadaware.tasks.crossing_inputs.boxes import COLUMNS
from roadaware.tasks.targets import Futures


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

    Args:
        names: of inputs.

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
