"""Batches: clips side by side, as the network and its loss take them."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from roadaware.models.retinanet3d.targets import Targets
from roadaware.training.clips import ClipSet, Draws, Sample


@dataclass(frozen=True, eq=False)
class Batch:
    """Clips of one step.

    Args:
        samples: the clips.
    """

    samples: list[Sample]

    @property
    def names(self) -> str:
        """What is in it, for messages."""
        return ", ".join(sample.name for sample in self.samples)


class Fitting(Protocol):
    """How pictures are brought to the size and the numbers that a network wants, such as `Fit`."""

    @property
    def multiple_px(self) -> int:
        """Right and bottom are padded up to a multiple."""
        ...

    @property
    def mean(self) -> tuple[float, ...]:
        """Of the channels, red first, of pictures in [0, 1]."""
        ...

    @property
    def std(self) -> tuple[float, ...]:
        """Of the same."""
        ...

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of a picture once it is resized, not yet padded."""
        ...


def prepared(
    batch: Batch, fit: Fitting, device: torch.device, *, channels_last: bool
) -> tuple[Tensor, Targets]:
    """(B, 3, T, H, W) normalised and padded pictures, and what is true of them.

    Args:
        batch: of clips with equally many frames; their pictures may differ in size.
        fit: mean, deviation and padding.
        device: where to.
        channels_last: leave channels innermost in memory, as they come.
    """
    samples = batch.samples
    sizes = [sample.pictures.shape[1:3] for sample in samples]
    height, width = (
        -(-max(size[side] for size in sizes) // fit.multiple_px) * fit.multiple_px for side in (0, 1)
    )
    x = torch.zeros(len(samples), len(samples[0].pictures), height, width, 3, device=device)
    mean = torch.tensor(fit.mean, device=device).mul(255)
    factor = torch.tensor(fit.std, device=device).mul(255).reciprocal()
    for sample, (h, w), place in zip(samples, sizes, x, strict=True):
        pictures = sample.pictures.to(device, torch.float32)
        if sample.colour is not None:
            colour = sample.colour.to(device)
            pictures = (pictures @ colour[:, :3].T + 255 * colour[:, 3]).clamp_(0, 255)
        torch.mul(pictures.sub_(mean), factor, out=place[:, :h, :w])
    x = x.permute(0, 4, 1, 2, 3)
    targets = Targets(
        boxes=[[boxes.to(device) for boxes in sample.boxes] for sample in samples],
        classes=[[hot.to(device, torch.float32) for hot in sample.classes] for sample in samples],
        av=torch.stack([sample.av for sample in samples]).to(device),
        labelled=torch.stack([sample.labelled for sample in samples]).to(device),
    )
    return (x if channels_last else x.contiguous()), targets


def loader(clips: ClipSet, draws: Draws, workers: int) -> DataLoader[Sample]:
    """Batches in the order of the draws.

    Args:
        clips: by number of the draw.
        draws: of each batch.
        workers: processes; 0 for none.
    """
    return DataLoader(
        clips,
        batch_sampler=draws,
        num_workers=workers,
        collate_fn=_together,
        worker_init_fn=_alone if workers else None,
        multiprocessing_context="spawn" if workers else None,
        prefetch_factor=2 if workers else None,
    )


def _together(samples: Sequence[Sample]) -> Batch:
    return Batch(list(samples))


def _alone(_: int) -> None:
    """A worker takes one thread, since the cores belong to the network, and is ended by its owner alone."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
