"""The focal loss of many logits, nearly all of them background, in one pass over memory; imports torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

_LEAST = 1e-6
"""How wrong an answer is at least, where the truth lies between 0 and 1, so that powers have a slope."""
_ON_CPU, _ELSEWHERE = 1 << 16, 1 << 26
"""Logits at a time: few enough that what is made of them stays in a core's cache."""


def focal(logits: Tensor, truth: Tensor, alpha: float, gamma: float) -> Tensor:
    """The focal loss of each logit: -a (1 - p)^gamma log p of the probability p of what is true.

    A truth between 0 and 1, as a teacher has it, costs least where the probability equals it.

    Args:
        logits: of any shape.
        truth: of the same shape, from 0 to 1.
        alpha, gamma: the weight of ones (1 - alpha that of zeros), and how much easy ones are discounted.

    Source: Lin et al., ICCV 2017, eq. 5; between 0 and 1 Li et al., NeurIPS 2020, eq. 4 (quality focal loss).
    """
    crossed = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    hard = (truth == 0) | (truth == 1)
    p = torch.sigmoid(logits)
    wrong = torch.where(hard, torch.sigmoid(logits * (1 - 2 * truth)), (truth - p).abs().clamp(min=_LEAST))
    return (alpha * truth + (1 - alpha) * (1 - truth)) * wrong**gamma * crossed


def focal_sum(
    logits: Tensor, counts: Tensor, rows: Tensor, truth: Tensor, alpha: float, gamma: float
) -> Tensor:
    """The sum of `focal` over rows of logits, where all but a few rows have a truth of zeros.

    Args:
        logits: (M, C).
        counts: (M) whether a row is counted; those of `rows` always are.
        rows: (k) rows with a truth of their own, each once.
        truth: (k, C) from 0 to 1.
        alpha, gamma: see `focal`.
    """
    total: Tensor = _FocalSum.apply(logits, counts, rows, truth.to(logits.dtype), alpha, gamma)  # type: ignore[no-untyped-call]
    return total


class _FocalSum(torch.autograd.Function):
    """`focal_sum`; the gradient is made along with the value, while the logits are at hand."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, counts: Tensor, rows: Tensor, truth: Tensor, alpha: float, gamma: float
    ) -> Tensor:
        slope = torch.empty_like(logits)
        share = counts.to(logits.dtype)
        share[rows] = 0
        most = _ON_CPU if logits.device.type == "cpu" else _ELSEWHERE
        step = max(1, most // max(1, logits.shape[1]))
        total = torch.zeros((), dtype=torch.float64, device=logits.device)
        for some in (slice(start, start + step) for start in range(0, len(logits), step)):
            p, cost = torch.sigmoid(logits[some]), functional.softplus(logits[some])
            weight = p * p if gamma == 2 else p**gamma
            weight *= (1 - alpha) * share[some, None]
            total += (weight * cost).sum()
            # d/dx of softplus(x) p^gamma, where p = sigmoid(x)
            torch.mul(weight, p.add(cost.mul_(gamma).mul_(1 - p)), out=slope[some])
        if len(rows):
            value, of_rows = _positive(logits[rows], truth, alpha, gamma)
            total += value
            slope[rows] = of_rows
        ctx.save_for_backward(slope)
        return total.to(logits.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        (slope,) = ctx.saved_tensors
        return slope.mul_(above), None, None, None, None, None


def _positive(logits: Tensor, truth: Tensor, alpha: float, gamma: float) -> tuple[Tensor, Tensor]:
    """The sum of `focal`, and its gradient."""
    p, cost, other = torch.sigmoid(logits), functional.softplus(logits), functional.softplus(-logits)
    zero, one = (1 - alpha) * p**gamma, alpha * (1 - p) ** gamma
    value = (truth * one * other + (1 - truth) * zero * cost).sum()
    up, down = one * (p - 1 - gamma * p * other), zero * (p + gamma * cost * (1 - p))
    slope = truth * up + (1 - truth) * down
    soft = (truth > 0) & (truth < 1)
    if not bool(soft.any()):
        return value, slope
    with torch.enable_grad():
        between = logits[soft].detach().requires_grad_()
        costs = focal(between, truth[soft], alpha, gamma)
        (slope[soft],) = torch.autograd.grad(costs.sum(), between)
    hard = truth * one * other + (1 - truth) * zero * cost
    return hard[~soft].sum() + costs.detach().sum(), slope
