"""Losses of predictors: labels plain, weighted, soft or in a row; paths and cells; imports torch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from roadaware.training.pedestrians.recipe import LossRecipe


def target(truth: Tensor, labels: int, smoothing: float = 0.0) -> Tensor:
    """(n, k) what probabilities should be; k = 1 with two labels.

    Args:
        truth: (n) indices of labels.
        labels: how many there are.
        smoothing: share that is spread over all labels.
    """
    if labels == 2:
        return truth[:, None].float() * (1 - smoothing) + smoothing / 2
    return functional.one_hot(truth, labels).float() * (1 - smoothing) + smoothing / labels


def weights_of(truth: Tensor, labels: int, power: float) -> Tensor:
    """(labels) weights, inverse to how often a label occurs, with mean 1 over the samples.

    Args:
        truth: (n) indices of labels.
        labels: how many there are.
        power: 0 for equal weights, 1 for fully inverse ones.
    """
    counts = torch.bincount(truth, minlength=labels).double()
    weight = torch.where(counts > 0, counts.clamp(min=1) ** -power, torch.zeros_like(counts))
    mean = (weight * counts).sum() / counts.sum()
    return (weight / mean).float()


def label_loss(logits: Tensor, wanted: Tensor, weight: Tensor, recipe: LossRecipe) -> Tensor:
    """(n) loss of each sample.

    Args:
        logits: (n, k) answers; k = 1 with two labels.
        wanted: (n, k) what probabilities should be.
        weight: (n) of each sample.
        recipe: plain or ordinal.
    """
    if logits.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")[:, 0] * weight
    said = functional.log_softmax(logits, dim=1)
    loss = -(wanted * said).sum(dim=1)
    if recipe.label == "ordinal":
        loss = loss + recipe.ordinal_weight * cumulated_distance(said.exp(), wanted)
    return loss * weight


def cumulated_distance(said: Tensor, wanted: Tensor) -> Tensor:
    """(n) squared differences of cumulated probabilities, summed: how far probability has to be moved.

    Args:
        said: (n, k) probabilities of regions in a row.
        wanted: (n, k) those that are true.

    Source: the squared earth mover's distance of Hou et al., 2016 (arXiv 1611.05916), eq. 3.
    """
    return (said.cumsum(dim=1) - wanted.cumsum(dim=1)).square().sum(dim=1)


def frames_loss(
    answers: Tensor, wanted: Tensor, weight: Tensor, recipe: LossRecipe, first: int = 4
) -> Tensor:
    """Scalar loss of a network that answers at every frame: earlier answers, and how much they change.

    Args:
        answers: (n, T, k) logits.
        wanted: (n, k).
        weight: (n).
        recipe: the two weights.
        first: frames that are let pass before answers count.
    """
    seen = answers[:, first:]
    frames, k = seen.shape[1:]
    loss = seen.new_zeros(())
    if recipe.every_frame and frames:
        flat = label_loss(
            seen.reshape(-1, k),
            wanted.repeat_interleave(frames, 0),
            weight.repeat_interleave(frames, 0),
            recipe,
        )
        loss = loss + recipe.every_frame * flat.mean()
    if recipe.consistency and frames > 1:
        said = torch.sigmoid(seen) if k == 1 else torch.softmax(seen, dim=2)
        loss = loss + recipe.consistency * said.diff(dim=1).square().sum(dim=2).mean()
    return loss
