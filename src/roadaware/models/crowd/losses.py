"""The losses of the four heads, each as published or marked as ours; imports torch."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.crowd.grounding import Grounded, Matched, score_spans

_SMALL, _TINY = 1e-6, 1e-12
_SPAN_WEIGHT, _SOMEBODY_WEIGHT = 0.3, 0.15
_FAR = -1e32
"""The logit of a frame that is none, before the softmax."""


def actions(logits: Tensor, targets: Tensor) -> Tensor:
    """The mean binary cross-entropy over all classes of the people who have a label.

    Args:
        logits: (n, classes).
        targets: (n, classes) in [0, 1].

    Returns:
        0 where nobody has a label.

    Source: the published heads on AVA; people without a label are proposals that met no one.
    """
    _check_same(logits, targets)
    labelled = (targets > 0).any(dim=1)
    if not bool(labelled.any()):
        return logits.sum() * 0
    return functional.binary_cross_entropy_with_logits(logits[labelled], targets[labelled].to(logits))


def relations(
    logits: Tensor, targets: Tensor, pos_weight: Tensor | None = None, sampled: Tensor | None = None
) -> Tensor:
    """The mean binary cross-entropy over the sampled entries of pairs and predicates.

    Args:
        logits: (m, predicates).
        targets: (m, predicates) in [0, 1].
        pos_weight: (predicates,) what an entry that holds counts (default: 1).
        sampled: (m, predicates) bool, entries that count (default: all).

    Returns:
        0 where no entry counts.

    Source: Teng et al., ICCV 2021 (TRACE), section 3.5.
    """
    _check_same(logits, targets)
    each = functional.binary_cross_entropy_with_logits(
        logits, targets.to(logits), pos_weight=pos_weight, reduction="none"
    )
    if sampled is not None:
        each = each[sampled]
    return each.mean() if each.numel() else logits.sum() * 0


def boxes(predicted: Tensor, target: Tensor, inside: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """L1 and generalised-IoU losses of the boxes of frames inside of the spans, each a sum over their number.

    Args:
        predicted, target: (..., 4) centre x, centre y, width, height in parts of the image.
        inside: (...) bool, frames that have a box (default: all).

    Returns:
        Both losses, 0 where no frame has a box.

    Source: Yang et al., CVPR 2022 (TubeDETR), `loss_boxes`; Rezatofighi et al., CVPR 2019.
    """
    _check_same(predicted, target)
    if inside is not None:
        predicted, target = predicted[inside], target[inside]
    predicted, target = predicted.reshape(-1, 4), target.reshape(-1, 4).to(predicted)
    count = max(1, len(predicted))
    distance = (predicted - target).abs().sum()
    return distance / count, (1 - generalized_iou(predicted, target)).sum() / count


def generalized_iou(one: Tensor, other: Tensor) -> Tensor:
    """(n,) generalised IoU of boxes, row by row, in -1 to 1.

    Args:
        one, other: (n, 4) centre x, centre y, width, height.

    Source: Rezatofighi et al., CVPR 2019.
    """
    a, b = _corners(one), _corners(other)
    inner = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0).prod(dim=1)
    outer = (torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])).clamp(min=0).prod(dim=1)
    union = (a[:, 2:] - a[:, :2]).prod(dim=1) + (b[:, 2:] - b[:, :2]).prod(dim=1) - inner
    # Boxes without any area have no overlap, rather than one that is no number.
    union, outer = union.clamp(min=_TINY), outer.clamp(min=_TINY)
    return inner / union - (outer - union) / outer


def spans(logits: Tensor, span: Tensor, mask: Tensor, sigma: float = 1.0) -> Tensor:
    """How far the predicted distributions of first and last frame are from Gaussians around the true ones.

    The divergence KL(predicted || Gaussian), both plus 1e-6, its terms summed over start and end, and the mean
    over all frames, padding among them (whose terms are 0).

    Args:
        logits: (B, T, 2) of the first and of the last frame.
        span: (B, 2) the first and the last frame, both inside; -1 stands before the clip.
        mask: (B, T) bool, which frames are of the clip.
        sigma: of the Gaussians, in frames.

    Source: Yang et al., CVPR 2022 (TubeDETR), `loss_sted`.
    """
    if logits.ndim != 3 or logits.shape[2] != 2 or mask.shape != logits.shape[:2] or len(span) != len(logits):
        raise UsageError(
            f"logits {tuple(logits.shape)}, mask {tuple(mask.shape)} and spans {tuple(span.shape)} should be "
            "(B, T, 2), (B, T) and (B, 2)"
        )
    frames = torch.arange(logits.shape[1], device=logits.device)
    away = (frames[None, :, None] - span[:, None, :]).to(logits)
    aim = functional.normalize(torch.exp(-(away**2) / (2 * sigma**2)) + _SMALL, p=1, dim=1)
    chance = logits.masked_fill(~mask[..., None], _FAR).softmax(dim=1)
    terms = chance * ((chance + _SMALL) / aim).log() * mask[..., None]
    return terms.sum(dim=2).mean() if terms.numel() else logits.sum() * 0


def guided_attention(weights: Tensor, inside: Tensor, mask: Tensor) -> Tensor:
    """What frames outside of the span pay for looking anywhere at all: -log(1 - w + 1e-6) over their rows.

    Sums are divided by the number of those frames in each clip, and averaged over clips.

    Args:
        weights: (B, T, T) of the self-attention over time, a row for each frame that looks.
        inside: (B, T) bool, frames of the span.
        mask: (B, T) bool, which frames are of the clip.

    Source: Yang et al., CVPR 2022 (TubeDETR), `loss_guided_attn`.
    """
    free = inside | ~mask
    cost = -(1 - weights + _SMALL).log()
    cost = cost.masked_fill(free[:, :, None], 0)
    each = cost.sum(dim=(1, 2)) / ((~free).sum(dim=1).to(weights) + _SMALL)
    return each.mean() if len(each) else weights.sum() * 0


class GroundingLoss(NamedTuple):
    """The loss of a grounding and its parts, of all layers of the decoder, before their weights.

    Args:
        total: weighed: L1 5, generalised IoU 2, spans 10, attention 1, as published.
        l1, giou, span, attention: of the last layer.
    """

    total: Tensor
    l1: Tensor
    giou: Tensor
    span: Tensor
    attention: Tensor


def grounding(
    found: Grounded, target: Tensor, span: Tensor, mask: Tensor, sigma: float = 1.0
) -> GroundingLoss:
    """The loss of sentences, over all layers of the decoder.

    Args:
        found: of the head.
        target: (B, T, 4) centre, width and height in parts of the image; read inside of the spans alone.
        span: (B, 2) int64, the first and the last frame inside; a first one of -1 for none.
        mask: (B, T) bool, which frames are of the clip.
        sigma: as of `spans`.

    Source: Yang et al., CVPR 2022 (TubeDETR), section 3.4.
    """
    frames = torch.arange(mask.shape[1], device=mask.device)
    inside = (frames[None] >= span[:, :1]) & (frames[None] <= span[:, 1:]) & (span[:, :1] >= 0)
    total = found.boxes.new_zeros(())
    parts: list[Tensor] = []
    for predicted, logits, weights in zip(found.boxes, found.spans, found.attention, strict=True):
        parts = [
            *boxes(predicted, target, inside),
            spans(logits, span, mask, sigma),
            guided_attention(weights, inside, mask),
        ]
        total = total + sum(weight * part for weight, part in zip((5, 2, 10, 1), parts, strict=True))
    return GroundingLoss(total, *parts)


class MatchingLoss(NamedTuple):
    """The loss of sentences that are compared with people, and its parts.

    Args:
        total: their sum, in which that of spans counts 0.3 and that of anybody 0.15: with more the right person is found less
            often.
        who: cross-entropy over the people of the clip.
        inside: binary cross-entropy of all people and frames; frames of the span count as much as all others.
        when: binary cross-entropy of the frames of the person who is spoken of.
        span: cross-entropy over all spans of that person.
        somebody: binary cross-entropy of whether anybody is spoken of; sentences with and without count the same.
    """

    total: Tensor
    who: Tensor
    inside: Tensor
    when: Tensor
    span: Tensor
    somebody: Tensor


def matching(found: Matched, person: Tensor, span: Tensor, mask: Tensor) -> MatchingLoss:
    """The loss of sentences where people are known. Ours.

    Args:
        found: of the head.
        person: (Q,) int64, who is spoken of among the people of the clip; -1 where nobody does what the sentence says.
        span: (Q, 2) int64, the first and the last frame inside.
        mask: (Q, T) bool, which frames are of the clip.
    """
    rows = (person >= 0).nonzero().flatten()
    who, lasts = found.who.new_zeros(()), found.who.new_zeros(())
    frames = torch.arange(mask.shape[1], device=mask.device)
    target = torch.zeros_like(found.inside)
    if len(rows):
        who = functional.cross_entropy(found.who[rows], person[rows])
        held = (frames[None] >= span[rows, :1]) & (frames[None] <= span[rows, 1:])
        target[rows, person[rows]] = held.to(target)
        each_span = []
        # Of clips of one length together, since frames that fill others up are in no span.
        for length in torch.unique(mask[rows].sum(dim=1)).tolist():
            same = rows[mask[rows].sum(dim=1) == length]
            chances = score_spans(found.inside[same, person[same], :length], found.lasting[same])
            each_span.append(
                -chances[torch.arange(len(same), device=same.device), span[same, 0], span[same, 1]]
            )
        lasts = torch.cat(each_span).mean()
    counted = (found.who > -torch.inf)[:, :, None] & mask[:, None]
    each = functional.binary_cross_entropy_with_logits(found.inside, target, reduction="none")

    def mean(share: Tensor) -> Tensor:
        return (each * share).sum() / share.sum().clamp(min=1)

    inside = (mean(target * counted) + mean((1 - target) * counted)) / 2
    own = torch.zeros_like(target)
    own[rows, person[rows]] = 1
    when = mean(own * counted)
    there = (person >= 0).to(found.somebody)
    told = functional.binary_cross_entropy_with_logits(found.somebody, there, reduction="none")
    with_one, without = ((told * held).sum() / held.sum().clamp(min=1) for held in (there, 1 - there))
    somebody = (with_one + without) / 2
    total = who + inside + when + _SPAN_WEIGHT * lasts + _SOMEBODY_WEIGHT * somebody
    return MatchingLoss(total, who, inside, when, lasts, somebody)


def simsiam(p1: Tensor, p2: Tensor, z1: Tensor, z2: Tensor) -> Tensor:
    """The mean of the negative cosines of each prediction with the projection of the other view.

    Projections have no gradient here.

    Args:
        p1, p2: (B, d) predictions.
        z1, z2: (B, d) projections.

    Source: Chen and He, CVPR 2021, algorithm 1; Song et al., CVPR 2022 (SSPL).
    """
    one = functional.cosine_similarity(p1, z2.detach(), dim=1)
    other = functional.cosine_similarity(p2, z1.detach(), dim=1)
    return -(one.mean() + other.mean()) / 2 if len(p1) else (p1.sum() + p2.sum()) * 0


def sound_map(logits: Tensor, target: Tensor) -> Tensor:
    """The binary cross-entropy of a map, where cells of the source and all others count the same. Ours.

    Args:
        logits: (B, h, w).
        target: (B, h, w) in [0, 1], how much of each cell the source covers; all 0 where none is seen.

    Returns:
        The mean over the batch; of a clip without a source its background alone.
    """
    _check_same(logits, target)
    target = target.to(logits)
    each = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    found = [
        (each * share).sum(dim=(1, 2)) / share.sum(dim=(1, 2)).clamp(min=_SMALL)
        for share in (target, 1 - target)
    ]
    seen = target.flatten(1).any(dim=1) if len(target) else target.new_zeros(0, dtype=torch.bool)
    mean = torch.where(seen, (found[0] + found[1]) / 2, found[1])
    return mean.mean() if len(mean) else logits.sum() * 0


def _corners(boxes: Tensor) -> Tensor:
    half = boxes[:, 2:] / 2
    return torch.cat([boxes[:, :2] - half, boxes[:, :2] + half], dim=1)


def _check_same(one: Tensor, other: Tensor) -> None:
    if one.shape != other.shape:
        raise UsageError(f"predictions {tuple(one.shape)} and targets {tuple(other.shape)} differ in shape")
