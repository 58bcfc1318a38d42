"""Learners: interface between the training loop and a model: weights, loss, detector and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from roadaware.models.detector import Detector
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.training.batches import Batch, Fitting


@dataclass(frozen=True, eq=False)
class Part:
    """A part of the loss.

    Args:
        mean: of what it is made of.
        count: of that, such as boxes; means of several processes go over all of it.
        divisor: it counts in the whole loss divided by this.
    """

    mean: Tensor
    count: Tensor
    divisor: float = 1.0


class Trainable(Protocol):
    """What the loop needs of a model that learns."""

    @property
    def network(self) -> nn.Module:
        """The network whose state is kept, averaged, evaluated and saved."""
        ...

    @property
    def trainee(self) -> nn.Module:
        """The module that computes the loss and is distributed over devices."""
        ...

    @property
    def config(self) -> Mapping[str, Any]:
        """Of the network as plain data: checkpoints of another are refused."""
        ...

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the parts of the loss."""
        ...

    @property
    def by_chance(self) -> bool:
        """Whether the loss itself draws numbers, from torch's generators."""
        ...

    def losses(
        self, model: nn.Module, batch: Batch, device: torch.device, *, channels_last: bool
    ) -> dict[str, Part]:
        """The parts of the loss of a batch, by name.

        Args:
            model: the trainee, set up.
            batch: of clips.
            device: where it runs.
            channels_last: leave channels innermost in memory.
        """
        ...


class Learner(Trainable, Protocol):
    """Interface of a trainable detector."""

    @property
    def fit(self) -> Fitting:
        """Preprocessing of images."""
        ...

    def detector(self, network: nn.Module, rule: DetectRule) -> Detector:
        """The detector of a trained network.

        Args:
            network: such as `network`, in `eval` mode.
            rule: which boxes are reported.
        """
        ...

    def save(self, folder: Path, network: nn.Module, notes: Mapping[str, Any]) -> Path:
        """Write a trained network as `predict` and `watch` open it, and answer where it is.

        Args:
            folder: of the run.
            network: such as `network`.
            notes: JSON-ready, of how it was trained.

        Raises:
            DiskError: if the disk refuses.
        """
        ...
