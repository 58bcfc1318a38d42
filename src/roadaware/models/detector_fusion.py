"""Boxes of an object detector with class scores of our network, pooled from its pyramid; imports torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.arrays import Pixels
from roadaware.errors import UsageError
from roadaware.models.detector import FrameDetections, VideoDetector
from roadaware.models.retinanet3d.anchors import decode
from roadaware.models.retinanet3d.config import STRIDES_PX, DetectRule
from roadaware.models.retinanet3d.detector import (
    Fit,
    build_frame_detections,
    check_label_counts,
    detect,
    prepare_clips,
)
from roadaware.models.retinanet3d.layers import make_streaming_copy, reset_stream_state
from roadaware.models.retinanet3d.network import Outputs, RetinaNet3D
from roadaware.models.roi import roi_align


class BoxScores:
    """Class scores for any box, not only for anchors.

    The head sees, around the centre of a box, as many cells as its convolutions span, taken from the level
    whose anchors come nearest in size and stretched so that the box is as large as they are; it answers
    with its anchor of the nearest shape. So a box that is an anchor, away from the border of its map, gets
    the scores that the network gives this anchor. Frames that the last convolution spans are pooled at the
    same place.

    Args:
        network: in `eval` mode.

    Raises:
        UsageError: if its anchors are not those of cells (`kmeans`).

    Source: the union of an object detector's boxes with event scores that Singh et al., TPAMI 2022, propose;
        how boxes are pooled is ours.
    """

    def __init__(self, network: RetinaNet3D) -> None:
        config = network.config
        if config.anchors != "retina":
            raise UsageError("boxes are scored by networks whose anchors stand around cells, not by `kmeans`")
        self.network, self.head, self.end = network, network.cls_heads, network.cls_heads.end
        self.sides = config.anchor_sizes_px
        self.taps = self.end.kernel_size[0]
        self.back = self.taps - 1 if config.causal else self.taps // 2
        self.cells = 2 * (config.head_layers + 1) + 1
        self.shapes = [(scale, ratio) for ratio in config.anchor_ratios for scale in config.anchor_scales]

    @torch.inference_mode()
    def __call__(self, maps: Sequence[Tensor], frames: Tensor, boxes: Tensor, clip: int = 0) -> Tensor:
        """Class logits of boxes, agentness first.

        Args:
            maps: of each level (B, width, T, H, W).
            frames: (n,) which of the T each box lies in, int64.
            boxes: (n, 4) x1, y1, x2, y2 in pixels of the network's image.
            clip: which of the B.

        Returns:
            (n, C).
        """
        if not len(boxes):
            return boxes.new_zeros(0, self.network.n_classes)
        levels, anchors, step = self._places(boxes)
        logits = boxes.new_empty(len(boxes), self.network.n_classes)
        for level in torch.unique(levels).tolist():
            mine = torch.nonzero(levels == level).flatten()
            crops = self._crops(maps[level][clip], frames[mine], boxes[mine], step[mine], STRIDES_PX[level])
            logits[mine] = self._said(*crops, anchors[mine]).to(logits)
        return logits

    def _places(self, boxes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Of each box its level, its anchor in a cell, and how many strides a cell of its crop spans."""
        # Boxes without extent would have neither a ratio nor a logarithm.
        size = (boxes[:, 2:] - boxes[:, :2]).clamp(min=1e-3)
        side, ratio = size.prod(dim=1).sqrt(), size[:, 1] / size[:, 0]
        scales = boxes.new_tensor([scale for scale, _ in self.shapes]).log()
        ratios = boxes.new_tensor([ratio for _, ratio in self.shapes]).log()
        sides = boxes.new_tensor(self.sides).log()
        # (n, levels, anchors): how far the size is from that of an anchor, and then the shape
        far = (side.log()[:, None, None] - sides[None, :, None] - scales).abs()
        far = far + (ratio.log()[:, None, None] - ratios).abs()
        best = far.flatten(1).argmin(dim=1)
        levels, anchors = best // len(self.shapes), best % len(self.shapes)
        step = (side.log() - sides[levels] - scales[anchors]).exp()
        return levels, anchors, step

    def _crops(
        self, map: Tensor, frames: Tensor, boxes: Tensor, step: Tensor, stride: int
    ) -> tuple[Tensor, Tensor]:
        """(n, width, taps, cells, cells) around the boxes, and (n, taps) which of these frames there are."""
        taps = torch.arange(self.taps, device=frames.device) - self.back
        under = frames[:, None] + taps
        there = (under >= 0) & (under < map.shape[1])
        centre = (boxes[:, :2] + boxes[:, 2:]) / 2
        reach = (step * stride * self.cells / 2)[:, None]
        around = torch.cat([centre - reach, centre + reach], dim=1).to(map)
        crops = roi_align(
            map.transpose(0, 1),
            around.repeat_interleave(self.taps, dim=0),
            under.clamp(0, map.shape[1] - 1).flatten(),
            size=(self.cells, self.cells),
            scale=1 / stride,
            samples=1,  # the crop of an anchor, one sample to a cell, is the map itself
        )
        return crops.reshape(len(boxes), self.taps, *crops.shape[1:]).transpose(1, 2), there

    def _said(self, crops: Tensor, there: Tensor, anchors: Tensor) -> Tensor:
        """(n, C) what the head says at the middle cell, by one anchor of each."""
        inner: Tensor = self.head.inner(crops)
        middle = inner.shape[-1] // 2
        seen = inner[..., middle - 1 : middle + 2, middle - 1 : middle + 2]
        # Frames that are not there count as zeros, as padding in time makes them.
        seen = seen * there[:, None, :, None, None]
        everything = functional.conv3d(seen, self.end.weight, self.end.bias).flatten(1)
        by_anchor = everything.reshape(len(crops), len(self.shapes), -1)
        return by_anchor[torch.arange(len(crops), device=crops.device), anchors]


class Union(VideoDetector):
    """Boxes and agentness of an object detector; all scores and the own vehicle's actions of a network.

    Args:
        network: with its weights.
        objects: whose boxes are taken, with its rule.
        kinds, av_labels, rule, window, batch: as of `VideoDetector`, of the network.

    Raises:
        UsageError: if the network has other numbers of labels, or has anchors that boxes do not fit.
    """

    def __init__(
        self,
        network: RetinaNet3D,
        objects: VideoDetector,
        kinds: Mapping[str, tuple[str, ...]],
        av_labels: tuple[str, ...] = (),
        rule: DetectRule | None = None,
        *,
        window: int = 8,
        batch: int = 1,
    ) -> None:
        check_label_counts(network.n_classes, network.n_av, kinds, av_labels)
        causal = network.config.causal
        super().__init__(kinds, av_labels, rule, causal=causal, window=window, batch=batch)
        if not objects.causal:
            raise UsageError("boxes are taken of a detector of single frames")
        self.network, self.objects, self.fit = network.eval(), objects, Fit.of(network.config)
        self.scores = BoxScores(network)
        self.stream: nn.Module = make_streaming_copy(network) if causal else network
        self.past: list[Tensor] = []

    def forget(self) -> None:
        """Begin a new stream."""
        self.objects.reset()
        self.past = []
        if self.causal:
            reset_stream_state(self.stream)

    @torch.inference_mode()
    def follow(self, images: Sequence[Pixels]) -> list[FrameDetections]:
        """As of `VideoDetector`."""
        network = self.stream
        if not isinstance(network, RetinaNet3D):
            raise UsageError("this network looks ahead: it is asked about clips")
        features = network.features(prepare_clips(self.fit, [images], network))
        past = self.past or [map[:, :, :0] for map in features.maps]
        maps = [torch.cat(pair, dim=2) for pair in zip(past, features.maps, strict=True)]
        known = maps[0].shape[2]
        self.past = (
            [map[:, :, max(0, known - self.scores.back) :] for map in maps] if self.scores.back else []
        )
        av = network.av_logits(features.ego)[0].sigmoid()
        return self._scored(images, maps, known - len(images), av)

    @torch.inference_mode()
    def look(self, images: Sequence[Sequence[Pixels]]) -> list[list[FrameDetections]]:
        """As of `VideoDetector`."""
        features = self.network.features(prepare_clips(self.fit, images, self.network))
        av = self.network.av_logits(features.ego).sigmoid()
        return [self._scored(clip, features.maps, 0, av[place], place) for place, clip in enumerate(images)]

    def _scored(
        self, images: Sequence[Pixels], maps: Sequence[Tensor], begin: int, av: Tensor, clip: int = 0
    ) -> list[FrameDetections]:
        """The boxes of the object detector with the scores of the network.

        Args:
            images: of the frames.
            maps: of the pyramid.
            begin: where the first of the images stands in them.
            av: (T, V) of the frames.
            clip: which of the maps' clips.
        """
        found = self.objects.follow(images)
        height, width = images[0].shape[:2]
        new = self.fit.size(height, width)
        scale = maps[0].new_tensor([new[1] / width, new[0] / height] * 2)
        boxes = torch.cat([torch.from_numpy(each.boxes).to(scale) for each in found]) * scale
        counts = torch.tensor([len(each) for each in found])
        frames = torch.repeat_interleave(torch.arange(begin, begin + len(found)), counts).to(boxes.device)
        scores = self.scores(maps, frames, boxes, clip)[:, 1:].sigmoid()
        parts = torch.split(scores.float().cpu(), counts.tolist())
        own = av.float().cpu().numpy()
        return [
            FrameDetections(0, each.boxes, each.agentness, part.numpy(), own[place])
            for place, (each, part) in enumerate(zip(found, parts, strict=True))
        ]


# Several networks as one: means of what they say of shared anchors; imports torch.

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
        UsageError: if none is given, or they differ in anchors, images or numbers of classes.
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
        # A mean that rounds to 0 or 1 would have an infinite logit.
        kind = torch.finfo(stacked.dtype)
        return stacked.sigmoid().mean(dim=0).clamp(kind.tiny, 1 - kind.eps).logit()


class Ensemble(VideoDetector):
    """A mean of networks as a detector: on a stream if all are causal, else by clips.

    Args:
        network: the mean; every score of every anchor is computed, of each network.
        kinds, av_labels, rule, window, batch: as of `VideoDetector`.

    Raises:
        UsageError: if it has other numbers of labels than are named.
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
        check_label_counts(network.n_classes, network.n_av, kinds, av_labels)
        super().__init__(kinds, av_labels, rule, causal=network.causal, window=window, batch=batch)
        self.network, self.fit = network, Fit.of(network.config)
        self.stream = network
        if network.causal:  # each its own memories, also where one network is given twice
            self.stream = MeanNetwork([make_streaming_copy(each) for each in network.each], network.mean)

    def forget(self) -> None:
        """Begin a new stream."""
        if self.causal:
            reset_stream_state(self.stream)

    def follow(self, images: Sequence[Pixels]) -> list[FrameDetections]:
        """As of `VideoDetector`."""
        return self._detected(self.stream, [images])[0]

    def look(self, images: Sequence[Sequence[Pixels]]) -> list[list[FrameDetections]]:
        """As of `VideoDetector`."""
        return self._detected(self.network, images)

    def _detected(
        self, network: MeanNetwork, images: Sequence[Sequence[Pixels]]
    ) -> list[list[FrameDetections]]:
        plain = cast("RetinaNet3D", network)  # the plain way asks for nothing but what it says
        raw = detect(plain, prepare_clips(self.fit, images, network), self.rule, lazy=False)
        return [[build_frame_detections(each, self.fit, images[0][0]) for each in clip] for clip in raw]
