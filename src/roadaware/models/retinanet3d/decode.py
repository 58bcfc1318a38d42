"""From what the network says to the boxes that are kept, on a short way and on the plain one."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from roadaware.models.nms import grown
from roadaware.models.retinanet3d.coding import decode
from roadaware.models.retinanet3d.last import wide
from roadaware.models.retinanet3d.lazy import LazyHeads
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.retinanet3d.rule import Clip, DetectRule, clips
from roadaware.models.retinanet3d.swift import swift
from roadaware.models.retinanet3d.temporal import forget, streaming_copy

__all__ = ["Clip", "DetectRule", "LazyNetwork", "RawDetections", "clips", "detect"]

_BLOCK = 256
"""Boxes of a frame whose offsets are computed at once; more only while too few of them are kept."""


class RawDetections(NamedTuple):
    """The boxes kept in one frame, by falling agentness, in pixels of the network's picture.

    Args:
        boxes: (n, 4) corners, not clipped.
        agentness: (n,) in [0, 1].
        scores: (n, C - 1) in [0, 1], all classes but agentness.
        av: (V,) in [0, 1].
    """

    boxes: Tensor
    agentness: Tensor
    scores: Tensor
    av: Tensor


@torch.inference_mode()
def detect(
    network: RetinaNet3D, x: Tensor, rule: DetectRule | None = None, *, lazy: bool = True
) -> list[list[RawDetections]]:
    """What is detected in every frame of some clips; of equal agentness the earlier anchor comes first.

    Args:
        network: in `eval` mode; not a streaming copy, which has memories of its own (`StreamDetector`).
        x: (B, 3, T, H, W) float, normalised and padded.
        rule: which boxes are kept.
        lazy: compute boxes where agentness passes and classes of kept boxes, not all everywhere. Both give
            the same up to rounding.

    Returns:
        Of each clip, of each frame.
    """
    rule = rule or DetectRule()
    if lazy:
        return LazyNetwork(network).detect(x, rule)
    outputs = network(x)
    n_frames, n_anchors = x.shape[0] * x.shape[2], len(outputs.anchors)
    boxes = wide(outputs.boxes.reshape(n_frames, n_anchors, 4))
    logits = wide(outputs.class_logits.reshape(n_frames, n_anchors, -1))
    agentness = logits[..., 0].sigmoid()
    frames, places, kept = kept_boxes(agentness, lambda frames, places: boxes[frames, places], rule)
    scores = logits[frames, places, 1:].sigmoid()
    found = agentness[frames, places]
    return _by_frame(frames, kept, found, scores, wide(outputs.av_logits).sigmoid())


class LazyNetwork:
    """A network that computes no more than detection needs, on clips or on a stream.

    Args:
        network: with its weights, in `eval` mode.
        streaming: `detect` continues a stream of one video; the network must be causal. Weights are then
            taken as they are now.
    """

    def __init__(self, network: RetinaNet3D, *, streaming: bool = False) -> None:
        self.network = streaming_copy(network) if streaming else network
        self.heads = LazyHeads(
            network.cls_heads,
            network.reg_heads,
            network.config.n_anchors,
            paired=network.backbone.repeats is not None,
            streaming=streaming,
        )
        self._sizes: list[torch.Size] = []
        self._anchors = torch.empty(0, 4)
        self.trunk = swift(network.backbone, causal=network.config.causal, streaming=streaming)

    def forget(self) -> None:
        """Begin a new stream."""
        forget(self.network)
        self.heads.forget()
        if self.trunk is not None:
            self.trunk.forget()

    def _anchors_for(self, maps: list[Tensor]) -> Tensor:
        """(N, 4), made once for pictures of one size."""
        sizes = [map.shape[-2:] for map in maps]
        if sizes != self._sizes:
            self._sizes, self._anchors = sizes, wide(self.network.anchors_for(maps))
        return self._anchors

    @torch.inference_mode()
    def detect(self, x: Tensor, rule: DetectRule) -> list[list[RawDetections]]:
        """The boxes kept in every frame of (B, 3, T, H, W), of each clip; B is 1 in a stream."""
        if self.trunk is None:
            maps, ego = self.network.features(x)
            read = self.heads.read(maps)
        else:
            maps, ego = self.trunk.read(x)
            read = self.heads.read_distinct(maps, x.shape[0], x.shape[2])
        anchors = self._anchors_for(maps)

        def boxes(frames: Tensor, places: Tensor) -> Tensor:
            return decode(read.offsets(frames, places), anchors[places], self.network.config)

        agentness = read.agentness.sigmoid()
        frames, places, kept = kept_boxes(agentness, boxes, rule)
        scores = read.scores(frames, places).sigmoid()
        av = wide(self.network.av_logits(ego)).sigmoid()
        return _by_frame(frames, kept, agentness[frames, places], scores, av)


def kept_boxes(
    agentness: Tensor, boxes: Callable[[Tensor, Tensor], Tensor], rule: DetectRule
) -> tuple[Tensor, Tensor, Tensor]:
    """The boxes that pass, are not suppressed and are among the best of their frame.

    Args:
        agentness: (F, N) in [0, 1].
        boxes: gives the (n, 4) corners of some anchors of some frames.
        rule: which are kept.

    Returns:
        (n,) their frames, rising; (n,) their anchors; (n, 4) their corners.
    """
    order, ends = _candidates(agentness, rule)
    corners = agentness.new_zeros(*order.shape, 4)
    kept = [order.new_zeros(0) for _ in ends]
    for start in range(0, order.shape[1], _BLOCK):
        rank = torch.arange(start, min(start + _BLOCK, order.shape[1]), device=order.device)
        asked = [n for n, end in enumerate(ends) if start < end and len(kept[n]) < rule.top]
        if not asked:
            break
        frames = torch.cat([torch.full_like(rank[: max(0, ends[n] - start)], n) for n in asked])
        ranks = torch.cat([rank[: max(0, ends[n] - start)] for n in asked])
        corners[frames, ranks] = boxes(frames, order[frames, ranks])
        for n in asked:
            block = slice(start, min(start + _BLOCK, ends[n]))
            if rule.nms_iou is None:
                kept[n] = torch.cat([kept[n], rank[: block.stop - start]])
            else:
                kept[n] = grown(kept[n], corners[n], block, rule.nms_iou)
    kept = [ranks[: rule.top] for ranks in kept]
    frames = torch.cat([torch.full_like(ranks, n) for n, ranks in enumerate(kept)])
    ranks = torch.cat(kept)
    return frames, order[frames, ranks], corners[frames, ranks]


def _candidates(agentness: Tensor, rule: DetectRule) -> tuple[Tensor, list[int]]:
    """Of each frame the anchors that pass, by falling agentness, (F, n) filled up at the end; how many."""
    passes = agentness > rule.min_agentness
    ends: list[int] = passes.sum(dim=1).tolist()
    order = torch.zeros(len(agentness), max(ends, default=0), dtype=torch.int64, device=agentness.device)
    for n, end in enumerate(ends):
        places = torch.nonzero(passes[n]).flatten()
        order[n, :end] = places[torch.sort(agentness[n, places], descending=True, stable=True).indices]
    return order, ends


def _by_frame(
    frames: Tensor, boxes: Tensor, agentness: Tensor, scores: Tensor, av: Tensor
) -> list[list[RawDetections]]:
    """Rows of frames that stand one after another, as lists of each clip; `av` is (B, T, V)."""
    counts = torch.bincount(frames, minlength=av.shape[0] * av.shape[1]).tolist()
    rows = zip(*(torch.split(part, counts) for part in (boxes, agentness, scores)), strict=True)
    answers = []
    for of_clip in av:
        of_frames = []
        for of_frame in of_clip:
            box, ness, score = next(rows)
            of_frames.append(RawDetections(box, ness, score, of_frame))
        answers.append(of_frames)
    return answers
