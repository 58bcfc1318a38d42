"""The loss of boxes, of classes and of the own vehicle's actions; imports torch."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from roadaware.models.retinanet3d.coding import encode
from roadaware.models.retinanet3d.config import RetinaNetConfig
from roadaware.models.retinanet3d.focal import focal, focal_sum
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


class Matches(NamedTuple):
    """Which anchors stand for what.

    Args:
        assigned: (B T, N) as `match` gives it; -1 also where a frame teaches nothing.
        frame, anchor: (k) the anchors that stand for a box.
        row: (k) that box, among all boxes of the batch.
    """

    assigned: Tensor
    frame: Tensor
    anchor: Tensor
    row: Tensor


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
    matches = matches_of(targets, outputs.anchors, config)
    classes = _class_loss(outputs.class_logits, targets, matches, config)
    return summed(outputs.offsets, classes, outputs.av_logits, outputs.anchors, targets, matches, config)


def summed(
    offsets: Tensor,
    classes: Tensor,
    av_logits: Tensor,
    anchors: Tensor,
    targets: Targets,
    matches: Matches,
    config: RetinaNetConfig,
) -> dict[str, Tensor]:
    """The loss as `losses` gives it, of a sum of the classes' loss that is at hand.

    Args:
        offsets: (B, T, N, 4).
        classes: scalar, not yet divided.
        av_logits: (B, T, V).
        anchors: (N, 4).
        targets: the truth.
        matches: of anchors and truth.
        config: of the network.
    """
    count = max(1, len(matches.row))
    box_loss = _box_loss(offsets, anchors, targets, matches, config) / (4 * count)
    class_loss, av_loss = classes / count, _av_loss(av_logits, targets.av, config)
    return {
        "total": box_loss + class_loss / config.class_weight + av_loss / config.av_weight,
        "boxes": box_loss,
        "classes": class_loss,
        "av": av_loss,
        "matched": torch.tensor(float(len(matches.row))),
    }


def matches_of(targets: Targets, anchors: Tensor, config: RetinaNetConfig) -> Matches:
    """Which anchors stand for which boxes of a batch.

    Args:
        targets: the truth.
        anchors: (N, 4) in pixels.
        config: thresholds, and what frames without boxes teach.
    """
    assigned = match([boxes for clip in targets.boxes for boxes in clip], anchors, config)
    empty = torch.tensor([not count for count in targets.counts], device=anchors.device)
    unknown = empty if config.empty_frames == "ignore" else empty & ~targets.labelled.flatten()
    assigned.masked_fill_(unknown[:, None], IGNORED)
    frame, anchor = (assigned > BACKGROUND).nonzero(as_tuple=True)
    starts = torch.tensor([0, *targets.counts], device=frame.device).cumsum(0)
    return Matches(assigned, frame, anchor, starts[frame] + assigned[frame, anchor] - 1)


def _box_loss(
    offsets: Tensor, anchors: Tensor, targets: Targets, matches: Matches, config: RetinaNetConfig
) -> Tensor:
    """Smooth L1 summed over matched anchors."""
    found = offsets.flatten(0, 1)[matches.frame, matches.anchor]
    if not len(matches.row):
        return found.sum()
    boxes = torch.cat([boxes for clip in targets.boxes for boxes in clip])[matches.row]
    wanted = encode(boxes.to(found.dtype), anchors[matches.anchor].to(found.dtype), config)
    return functional.smooth_l1_loss(found, wanted, beta=config.box_beta, reduction="sum")


def _class_loss(logits: Tensor, targets: Targets, matches: Matches, config: RetinaNetConfig) -> Tensor:
    """Focal loss summed over anchors that are not ignored: background, but for those that are matched."""
    truth = torch.cat([classes for clip in targets.classes for classes in clip])[matches.row]
    rows = matches.frame * matches.assigned.shape[1] + matches.anchor
    counts = (matches.assigned != IGNORED).flatten()
    return focal_sum(logits.flatten(0, 2), counts, rows, truth, config.focal_alpha, config.focal_gamma)


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
