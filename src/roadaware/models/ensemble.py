"""Several networks as one: means of what they say of shared anchors; imports torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn

from roadaware.arrays import Pixels
from roadaware.errors import UsageError
from roadaware.models.detector import FrameDetections
from roadaware.models.retinanet3d.coding import decode
from roadaware.models.retinanet3d.decode import detect
from roadaware.models.retinanet3d.network import Outputs, RetinaNet3D
from roadaware.models.retinanet3d.pictures import Fit
from roadaware.models.retinanet3d.rule import DetectRule
from roadaware.models.retinanet3d.temporal import forget, streaming_copy
from roadaware.models.retinanet3d.videos import checked_labels, fitted, told
from roadaware.models.videos import VideoDetector

Mean = Literal["logits", "probabilities"]
_SHARED = (
    "anchors",
    "anchor_sizes_px",
    "anchor_scales",
    "anchor_ratios",
    "box_coding",
    "short_side_px",
    "multiple_px",
    "mean",
    "std",
)


class MeanNetwork(nn.Module):
    """Networks with the same anchors and classes; each score and each offset is the mean of theirs.

    Args:
        networks: with their weights; trunks may differ.
        mean: of `logits`, which keeps a single network as it is to the last bit, or of `probabilities`.

    Raises:
        UsageError: if none is given, or they differ in anchors, pictures or numbers of classes.
    """

    def __init__(self, networks: Sequence[RetinaNet3D], mean: Mean = "logits") -> None:
        super().__init__()
        if not networks:
            raise UsageError("an ensemble needs at least one network")
        first = networks[0]
        for other in networks[1:]:
            differ = [name for name in _SHARED if getattr(first.config, name) != getattr(other.config, name)]
            if (first.n_classes, first.n_av) != (other.n_classes, other.n_av):
                differ.append("numbers of classes")
            if differ:
                raise UsageError(f"networks whose scores are averaged differ in {', '.join(differ)}")
        self.networks, self.each, self.mean = nn.ModuleList(networks), tuple(networks), mean
        self.config, self.n_classes, self.n_av = first.config, first.n_classes, first.n_av
        self.causal = all(network.config.causal for network in networks)
        self.eval()

    def forward(self, x: Tensor) -> Outputs:
        """As of `RetinaNet3D`."""
        said: list[Outputs] = [network(x) for network in self.each]
        offsets = torch.stack([each.offsets for each in said]).mean(dim=0)
        return Outputs(
            boxes=decode(offsets, said[0].anchors, self.config),
            class_logits=self._meant([each.class_logits for each in said]),
            av_logits=self._meant([each.av_logits for each in said]),
            anchors=said[0].anchors,
            offsets=offsets,
        )

    def _meant(self, logits: Sequence[Tensor]) -> Tensor:
        stacked = torch.stack(list(logits))
        if self.mean == "logits":
            return stacked.mean(dim=0)
        return stacked.sigmoid().mean(dim=0).logit(eps=torch.finfo(stacked.dtype).tiny)


class Ensemble(VideoDetector):
    """A mean of networks as a detector: on a stream if all are causal, else by clips.

    Args:
        network: the mean; every score of every anchor is computed, of each network.
        kinds, av_labels, rule, window, batch: as of `VideoDetector`.

    Raises:
        UsageError: if it tells other numbers of labels than are named.
    """

    def __init__(
        self,
        network: MeanNetwork,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...] = (),
        rule: DetectRule | None = None,
        *,
        window: int = 8,
        batch: int = 1,
    ) -> None:
        checked_labels(network.n_classes, network.n_av, kinds, av_labels)
        super().__init__(kinds, av_labels, rule, causal=network.causal, window=window, batch=batch)
        self.network, self.fit = network, Fit.of(network.config)
        self.stream = network
        if network.causal:  # each its own memories, also where one network is given twice
            self.stream = MeanNetwork([streaming_copy(each) for each in network.each], network.mean)

    def forget(self) -> None:
        """Begin a new stream."""
        if self.causal:
            forget(self.stream)

    def follow(self, pictures: Sequence[Pixels]) -> list[FrameDetections]:
        """As of `VideoDetector`."""
        return self._detected(self.stream, [pictures])[0]

    def look(self, pictures: Sequence[Sequence[Pixels]]) -> list[list[FrameDetections]]:
        """As of `VideoDetector`."""
        return self._detected(self.network, pictures)

    def _detected(
        self, network: MeanNetwork, pictures: Sequence[Sequence[Pixels]]
    ) -> list[list[FrameDetections]]:
        plain = cast("RetinaNet3D", network)  # the plain way asks for nothing but what it says
        raw = detect(plain, fitted(self.fit, pictures, network), self.rule, lazy=False)
        return [[told(each, self.fit, pictures[0][0]) for each in clip] for clip in raw]
