"""The network on whole videos: streams of many frames at a time, or batches of clips; imports torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from roadaware.arrays import Pixels
from roadaware.errors import UsageError
from roadaware.models.detector import FrameDetections
from roadaware.models.retinanet3d.decode import LazyNetwork, RawDetections, detect
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.retinanet3d.pictures import Fit
from roadaware.models.retinanet3d.rule import DetectRule
from roadaware.models.videos import VideoDetector


class NetworkVideos(VideoDetector):
    """A network as a detector of whole videos: on a stream if it is causal, else by clips.

    Args:
        network: with its weights, which are taken as they are when this is made.
        kinds, av_labels, rule, window, batch: as of `VideoDetector`.

    Raises:
        UsageError: if the network tells other numbers of labels than are named.
    """

    def __init__(
        self,
        network: RetinaNet3D,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...] = (),
        rule: DetectRule | None = None,
        *,
        window: int = 8,
        batch: int = 1,
    ) -> None:
        checked_labels(network.n_classes, network.n_av, kinds, av_labels)
        causal = network.config.causal
        super().__init__(kinds, av_labels, rule, causal=causal, window=window, batch=batch)
        self.network, self.fit = network.eval(), Fit.of(network.config)
        self.lazy = LazyNetwork(network, streaming=True) if causal else None

    def forget(self) -> None:
        """Begin a new stream."""
        if self.lazy is not None:
            self.lazy.forget()

    def follow(self, pictures: Sequence[Pixels]) -> list[FrameDetections]:
        """As of `VideoDetector`."""
        if self.lazy is None:
            raise UsageError("this network looks ahead: it is asked about clips")
        raw = self.lazy.detect(fitted(self.fit, [pictures], self.network), self.rule)[0]
        return [told(each, self.fit, pictures[0]) for each in raw]

    def look(self, pictures: Sequence[Sequence[Pixels]]) -> list[list[FrameDetections]]:
        """As of `VideoDetector`."""
        raw = detect(self.network, fitted(self.fit, pictures, self.network), self.rule)
        return [[told(each, self.fit, pictures[0][0]) for each in clip] for clip in raw]


def checked_labels(
    n_classes: int, n_av: int, kinds: Mapping[str, tuple[str, ...]], av_labels: Sequence[str]
) -> None:
    """Nothing, where labels are as many as a network tells.

    Raises:
        UsageError: if they are not.
    """
    labels = sum(len(names) for names in kinds.values())
    if labels + 1 != n_classes or len(av_labels) != n_av:
        raise UsageError(
            f"the network tells {n_classes - 1} labels and {n_av} actions of the own vehicle; named are "
            f"{labels} and {len(av_labels)}"
        )


def fitted(fit: Fit, clips: Sequence[Sequence[Pixels]], network: torch.nn.Module) -> Tensor:
    """(B, 3, T, h, w) of clips of pictures of one size, where and as the network wants them."""
    return torch.stack([fit.fit_all(clip)[0] for clip in clips]).to(next(network.parameters()))


def told(raw: RawDetections, fit: Fit, picture: Pixels) -> FrameDetections:
    """What is kept in a frame, in pixels of its picture; its number is not known here."""
    boxes = fit.back(raw.boxes, picture.shape[0], picture.shape[1])
    parts = (part.float().cpu().numpy() for part in (boxes, raw.agentness, raw.scores, raw.av))
    return FrameDetections(0, *(np.ascontiguousarray(part) for part in parts))
