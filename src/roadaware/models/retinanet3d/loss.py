"""The loss of boxes, of classes and of the own vehicle's actions; imports torch."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from roadaware.models.retinanet3d.coding import encode
from roadaware.models.retinanet3d.config import RetinaNetConfig
from roadaware.models.retinanet3d.matching import BACKGROUND, IGNORED, match
from roadaware.models.retinanet3d.targets import Targets


class Predicted(Protocol):
    """What of a network's outputs the loss needs."""

    @property
    def class_logits(self) -> Tensor:
        """(B, T, N, C)."""

    @property
    def av_logits(self) -> Tensor:
        """(B, T, V)."""

    @property
    def anchors(self) -> Tensor:
        """(N, 4)."""

    @property
    def offsets(self) -> Tensor:
        """(B, T, N, 4)."""


def focal(logits: Tensor, truth: Tensor, alpha: float, gamma: float) -> Tensor:
    """The focal loss of each logit: -a (1 - p)^gamma log p of the probability p of what is true.

    Args:
        logits: of any shape.
        truth: of the same shape, 0 or 1.
        alpha, gamma: the weight of ones (1 - alpha that of zeros), and how much easy ones are discounted.

    Source: Lin et al., ICCV 2017, eq. 5.
    """
    crossed = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    wrong = torch.sigmoid(logits * (1 - 2 * truth))
    return (alpha * truth + (1 - alpha) * (1 - truth)) * wrong**gamma * crossed


def losses(outputs: Predicted, targets: Targets, config: RetinaNetConfig) -> dict[str, Tensor]:
    """The loss of a batch and its parts: total = boxes + classes / class_weight + av / av_weight.

    boxes is summed over matched anchors and divided by four times their number, classes is summed over all
    anchors that are not ignored and divided by the number of matched ones, av is divided by the number of
    frames with a known action.

    Args:
        outputs: of the network, B clips of T frames.
        targets: the truth of the same frames.
        config: of the network.

    Returns:
        `total`, `boxes`, `classes`, `av` as scalars that can be differentiated, `matched` as a count.

    Source: released code, modules/detection_loss.py.
    """
    matched = _matched(targets, outputs.anchors, config)
    frame, anchor = (matched > BACKGROUND).nonzero(as_tuple=True)
    starts = torch.tensor([0, *targets.counts], device=frame.device).cumsum(0)
    row = starts[frame] + matched[frame, anchor] - 1
    count = max(1, len(row))
    box_loss = _box_loss(outputs, targets, config, frame, anchor, row) / (4 * count)
    class_loss = _class_loss(outputs, targets, config, matched, frame, anchor, row) / count
    av_loss = _av_loss(outputs.av_logits, targets.av, config)
    total = box_loss + class_loss / config.class_weight + av_loss / config.av_weight
    return {
        "total": total,
        "boxes": box_loss,
        "classes": class_loss,
        "av": av_loss,
        "matched": torch.tensor(float(len(row))),
    }


def _matched(targets: Targets, anchors: Tensor, config: RetinaNetConfig) -> Tensor:
    """(B * T, N) as `match`, with the frames left out that teach nothing."""
    matched = match([boxes for clip in targets.boxes for boxes in clip], anchors, config)
    empty = torch.tensor([not count for count in targets.counts], device=anchors.device)
    unknown = empty if config.empty_frames == "ignore" else empty & ~targets.labelled.flatten()
    return matched.masked_fill_(unknown[:, None], IGNORED)


def _box_loss(
    outputs: Predicted, targets: Targets, config: RetinaNetConfig, frame: Tensor, anchor: Tensor, row: Tensor
) -> Tensor:
    """Smooth L1 summed over matched anchors."""
    offsets = outputs.offsets.flatten(0, 1)[frame, anchor]
    if not len(row):
        return offsets.sum()
    boxes = torch.cat([boxes for clip in targets.boxes for boxes in clip])[row]
    wanted = encode(boxes.to(offsets.dtype), outputs.anchors[anchor].to(offsets.dtype), config)
    return functional.smooth_l1_loss(offsets, wanted, beta=config.box_beta, reduction="sum")


def _class_loss(
    outputs: Predicted,
    targets: Targets,
    config: RetinaNetConfig,
    matched: Tensor,
    frame: Tensor,
    anchor: Tensor,
    row: Tensor,
) -> Tensor:
    """Focal loss summed over anchors that are not ignored: all as background, matched ones put right."""
    logits = outputs.class_logits.flatten(0, 1)
    alpha, gamma = config.focal_alpha, config.focal_gamma
    background = (1 - alpha) * functional.softplus(logits) * torch.sigmoid(logits) ** gamma
    total = (background.sum(-1) * (matched != IGNORED)).sum()
    if not len(row):
        return total
    truth = torch.cat([classes for clip in targets.classes for classes in clip])[row].to(logits.dtype)
    chosen = logits[frame, anchor]
    right = focal(chosen, truth, alpha, gamma) - focal(chosen, torch.zeros_like(truth), alpha, gamma)
    return total + right.sum()


def _av_loss(logits: Tensor, actions: Tensor, config: RetinaNetConfig) -> Tensor:
    """Focal loss over frames with a known action, divided by their number."""
    known = actions >= 0
    chosen = logits[known]
    if not len(chosen):
        return logits.sum() * 0
    truth = functional.one_hot(actions[known], logits.shape[-1]).to(logits.dtype)
    if config.av_targets == "batch":
        truth = truth.amax(dim=0, keepdim=True).expand_as(truth)
    return focal(chosen, truth, config.focal_alpha, config.focal_gamma).sum() / len(chosen)
