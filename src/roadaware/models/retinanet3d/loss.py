"""The loss of boxes, of classes, of the own vehicle's actions and of logical requirements; imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor, distributed, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from roadaware.models.retinanet3d.anchors import BACKGROUND, IGNORED, Targets, encode, match
from roadaware.models.retinanet3d.config import RetinaNetConfig
from roadaware.models.retinanet3d.fast_inference import to_at_least_float32
from roadaware.models.retinanet3d.layers import TimeConv
from roadaware.models.retinanet3d.network import Head, RetinaNet3D

Logic = Literal["product", "godel", "lukasiewicz"]


def compute_violation(literals: Tensor, logic: Logic) -> Tensor:
    """How far a disjunction is from true: 1 less its truth.

    Its truth is the t-conorm of its literals' truths l: 1 - prod(1 - l) by the product, max(l) by Goedel,
    min(1, sum(l)) by Lukasiewicz.

    Args:
        literals: (..., M) truth of each literal, in [0, 1].
        logic: which t-norm.

    Returns:
        (...) from 0, satisfied, to 1.

    Source: Giunchiglia et al., Machine Learning 112, 2023, section 5.1; Hajek, Metamathematics of fuzzy logic, 1998.

    >>> [round(float(compute_violation(torch.tensor([0.5, 0.2]), each)), 2) for each in ("product", "godel", "lukasiewicz")]
    [0.4, 0.5, 0.3]
    """
    wrong = 1 - literals
    if logic == "product":
        return wrong.prod(dim=-1)
    if logic == "godel":
        return wrong.amin(dim=-1)
    return (1 - literals.sum(dim=-1)).clamp(min=0)


class LogicLoss(nn.Module):
    """The mean violation of clauses by rows of class logits, summed over rows.

    Args:
        clauses: each of literals k for class k - 1 and -k for its absence, where classes are the columns of the logits.
        logic: by which truth is reckoned.

    Source: Giunchiglia et al., Machine Learning 112, 2023, who add it to the loss of 3D-RetinaNet with a weight.
    """

    def __init__(self, clauses: Sequence[Sequence[int]], logic: Logic) -> None:
        super().__init__()
        self.logic, self.n_clauses = logic, len(clauses)
        self._lengths = sorted({len(clause) for clause in clauses})
        # Clauses of one length together: most have two literals, and the longest fifteen.
        for length in self._lengths:
            held = torch.tensor([clause for clause in clauses if len(clause) == length])
            self.register_buffer(f"clauses_{length}", held, persistent=False)

    def forward(self, logits: Tensor) -> Tensor:
        """The sum over rows of the mean violation of all clauses.

        Args:
            logits: (k, C).
        """
        truth = torch.sigmoid(logits)
        total = logits.new_zeros(())
        for length in self._lengths:
            held = self.get_buffer(f"clauses_{length}")
            chosen = truth[:, held.abs() - 1]
            literals = torch.where(held > 0, chosen, 1 - chosen)
            total = total + compute_violation(literals, self.logic).sum()
        # With no rows it hangs on the network all the same, so that every parameter has a gradient.
        return total / max(1, self.n_clauses) + logits.sum() * 0


# The focal loss of many logits, nearly all of them background, in one pass over memory; imports torch.

_LEAST = 1e-6
"""How wrong an answer is at least, where the target lies between 0 and 1, so that powers have a slope."""
_ON_CPU, _ELSEWHERE = 1 << 16, 1 << 26
"""Logits at a time: few enough that what is made of them stays in a core's cache."""


def focal_loss(logits: Tensor, truth: Tensor, alpha: float, gamma: float) -> Tensor:
    """The focal loss of each logit: -a (1 - p)^gamma log p of the probability p of the target.

    A target between 0 and 1, as a teacher has it, costs least where the probability equals it.

    Args:
        logits: of any shape.
        truth: of the same shape, from 0 to 1.
        alpha, gamma: the weight of ones (1 - alpha that of zeros), and how much easy ones are discounted.

    Source: Lin et al., ICCV 2017, eq. 5; between 0 and 1 Li et al., NeurIPS 2020, eq. 4 (quality focal loss).
    """
    crossed = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    hard = (truth == 0) | (truth == 1)
    p = torch.sigmoid(logits)
    # 1 - p as the sigmoid of the other sign: no digits are lost where p is near 1.
    wrong = torch.where(hard, torch.sigmoid(logits * (1 - 2 * truth)), (truth - p).abs().clamp(min=_LEAST))
    return (alpha * truth + (1 - alpha) * (1 - truth)) * wrong**gamma * crossed


def sum_focal_loss(
    logits: Tensor, counts: Tensor, rows: Tensor, truth: Tensor, alpha: float, gamma: float
) -> Tensor:
    """The sum of `focal_loss` over rows of logits, where all but a few rows have a target of zeros.

    Args:
        logits: (M, C).
        counts: (M) whether a row is counted; those of `rows` always are.
        rows: (k) rows with a target of their own, each once.
        truth: (k, C) from 0 to 1.
        alpha, gamma: see `focal_loss`.
    """
    total: Tensor = _FocalSum.apply(logits, counts, rows, truth.to(logits.dtype), alpha, gamma)  # type: ignore[no-untyped-call]
    return total


class _FocalSum(torch.autograd.Function):
    """`sum_focal_loss`; the gradient is made along with the value, while the logits are at hand."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, counts: Tensor, rows: Tensor, truth: Tensor, alpha: float, gamma: float
    ) -> Tensor:
        slope = torch.empty_like(logits)
        share = counts.to(logits.dtype)
        share[rows] = 0
        most = _ON_CPU if logits.device.type == "cpu" else _ELSEWHERE
        step = max(1, most // max(1, logits.shape[1]))
        # Millions of small costs: 32 bits would lose them beside their sum.
        total = torch.zeros((), dtype=torch.float64, device=logits.device)
        for some in (slice(start, start + step) for start in range(0, len(logits), step)):
            p, cost = torch.sigmoid(logits[some]), functional.softplus(logits[some])
            # A product is much cheaper than a power, and 2 is the published value.
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
    """The sum of `focal_loss`, and its gradient."""
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
        costs = focal_loss(between, truth[soft], alpha, gamma)
        (slope[soft],) = torch.autograd.grad(costs.sum(), between)
    hard = truth * one * other + (1 - truth) * zero * cost
    return hard[~soft].sum() + costs.detach().sum(), slope


class Predicted(Protocol):
    """Network outputs that the loss needs."""

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
    """Matches of anchors and targets.

    Args:
        assigned: (B T, N) as `match` gives it; -1 also where a frame teaches nothing.
        frame, anchor: (k) the anchors that stand for a box.
        row: (k) that box, among all boxes of the batch.
    """

    assigned: Tensor
    frame: Tensor
    anchor: Tensor
    row: Tensor


def compute_losses(outputs: Predicted, targets: Targets, config: RetinaNetConfig) -> dict[str, Tensor]:
    """The loss of a batch and its parts: total = boxes + classes / class_weight + av / av_weight.

    boxes is summed over matched anchors and divided by four times their number, classes is summed over all
    anchors that are not ignored and divided by the number of matched ones, av is divided by the number of
    frames with a known action.

    Args:
        outputs: of the network, B clips of T frames.
        targets: those of the same frames.
        config: of the network.

    Returns:
        `total`, `boxes`, `classes`, `av` as scalars that can be differentiated, `matched` as a count.

    Source: released code, modules/detection_loss.py.
    """
    matches = match_anchors(targets, outputs.anchors, config)
    # Focal loss summed over anchors that are not ignored: background, but for those that are matched.
    truth = torch.cat([classes for clip in targets.classes for classes in clip])[matches.row]
    rows = matches.frame * matches.assigned.shape[1] + matches.anchor
    counts = (matches.assigned != IGNORED).flatten()
    classes = sum_focal_loss(
        outputs.class_logits.flatten(0, 2), counts, rows, truth, config.focal_alpha, config.focal_gamma
    )
    return aggregate_losses(
        outputs.offsets, classes, outputs.av_logits, outputs.anchors, targets, matches, config
    )


def aggregate_losses(
    offsets: Tensor,
    classes: Tensor,
    av_logits: Tensor,
    anchors: Tensor,
    targets: Targets,
    matches: Matches,
    config: RetinaNetConfig,
) -> dict[str, Tensor]:
    """The loss as `compute_losses` gives it, of a sum of the classes' loss that is at hand.

    Args:
        offsets: (B, T, N, 4).
        classes: scalar, not yet divided.
        av_logits: (B, T, V).
        anchors: (N, 4).
        targets: boxes and labels.
        matches: of anchors and targets.
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


def match_anchors(targets: Targets, anchors: Tensor, config: RetinaNetConfig) -> Matches:
    """Match anchors with the boxes of a batch.

    Args:
        targets: boxes and labels.
        anchors: (N, 4) in pixels.
        config: thresholds, and what frames without boxes teach.
    """
    assigned = match([boxes for clip in targets.boxes for boxes in clip], anchors, config)
    empty = torch.tensor([not count for count in targets.counts], device=anchors.device)
    # As released, a frame without boxes teaches nothing at all, not even background.
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
        # A 0 that hangs on the network, so that every parameter has a gradient.
        return found.sum()
    boxes = torch.cat([boxes for clip in targets.boxes for boxes in clip])[matches.row]
    wanted = encode(boxes.to(found.dtype), anchors[matches.anchor].to(found.dtype), config)
    return functional.smooth_l1_loss(found, wanted, beta=config.box_beta, reduction="sum")


def _av_loss(logits: Tensor, actions: Tensor, config: RetinaNetConfig) -> Tensor:
    """Focal loss over frames with a known action, divided by their number."""
    known = actions >= 0
    chosen = logits[known]
    if config.av_targets == "batch":
        # As released: every frame of a batch is to have all actions that any of them has.
        truth = logits.new_zeros(1, logits.shape[-1])
        truth[0, actions[known]] = 1
        truth = max_over_processes(truth).expand_as(chosen)
    if not len(chosen):
        # As above.
        return logits.sum() * 0
    if config.av_targets != "batch":
        truth = functional.one_hot(actions[known], logits.shape[-1]).to(logits.dtype)
    return focal_loss(chosen, truth, config.focal_alpha, config.focal_gamma).sum() / len(chosen)


def max_over_processes(x: Tensor) -> Tensor:
    """The elementwise maximum of `x` over the processes that share a batch; `x` where there is one process.

    Args:
        x: of the same shape in every process, without a gradient; may be overwritten.
    """
    if distributed.is_available() and distributed.is_initialized():
        distributed.all_reduce(x, op=distributed.ReduceOp.MAX)
    return x


# The loss with classes computed only where they can count: at matched anchors and the likeliest others.


class Trainee(nn.Module):
    """A network together with its loss, so that the gradients of everything are gathered in one place.

    Classes other than agentness are ever looked at where agentness passes. With `likeliest`, agentness is
    learnt everywhere and the others at matched anchors and, as background, at so many other anchors of each
    frame, those of most agentness: the last convolution of the classes, most of the arithmetic of the whole,
    is then computed at a hundredth of the cells.

    Args:
        network: what learns.
        likeliest: anchors of a frame beside the matched ones; None for classes everywhere, as published.
        logic: how far the classes of matched anchors are from logical requirements, a further part of the loss; None
            for none.
        logic_weight: of that part in the total.
    """

    def __init__(
        self,
        network: RetinaNet3D,
        likeliest: int | None = None,
        logic: LogicLoss | None = None,
        logic_weight: float = 1.0,
    ) -> None:
        super().__init__()
        self.network, self.likeliest, self.logic, self.logic_weight = network, likeliest, logic, logic_weight

    def forward(
        self,
        x: Tensor,
        boxes: list[list[Tensor]],
        classes: list[list[Tensor]],
        av: Tensor,
        labelled: Tensor,
    ) -> dict[str, Tensor]:
        """The loss as `compute_losses` gives it, with `logic` where requirements are learnt; whoever spreads the network
        over devices passes on plain tensors.

        Args:
            x: (B, 3, T, H, W) normalised and padded.
            boxes, classes, av, labelled: the fields of `Targets`.
        """
        targets = Targets(boxes, classes, av, labelled)
        if self.likeliest is None:
            said = self.network(x)
            # Under mixed precision the network answers in half of it, which is too little for sums.
            said = said._replace(
                class_logits=to_at_least_float32(said.class_logits),
                av_logits=to_at_least_float32(said.av_logits),
                offsets=to_at_least_float32(said.offsets),
            )
            losses = compute_losses(said, targets, self.network.config)
            if self.logic is None:
                return losses
            matches = match_anchors(targets, said.anchors, self.network.config)
            logits = said.class_logits.flatten(0, 1)[matches.frame, matches.anchor]
            return self._add_logic(losses, logits)
        return self._lean(x, targets, self.likeliest)

    def _add_logic(self, losses: dict[str, Tensor], logits: Tensor) -> dict[str, Tensor]:
        """The losses with that of the requirements, a mean over matched anchors.

        Args:
            losses: of a batch.
            logits: (k, C) of the anchors that stand for a box, agentness first.
        """
        if self.logic is None:
            return losses
        logic = self.logic(logits) / max(1, len(logits))
        return losses | {"logic": logic, "total": losses["total"] + self.logic_weight * logic}

    def _lean(self, x: Tensor, targets: Targets, likeliest: int) -> dict[str, Tensor]:
        network, config = self.network, self.network.config
        features = network.features(x)
        anchors = network.anchors_for(features.maps)
        matches = match_anchors(targets, anchors, config)
        offsets = [network.reg_heads(m, level) for level, m in enumerate(features.maps)]
        classes = ClassesWhereAsked(network.cls_heads, features.maps, config)
        frame, anchor = select_hard_negatives(classes.agentness, matches.assigned, likeliest)
        logits = classes.at(torch.cat([matches.frame, frame]), torch.cat([matches.anchor, anchor]))
        truth = torch.cat([hot for clip in targets.classes for hot in clip])[matches.row].to(logits.dtype)
        wanted = torch.cat([truth[:, 1:], logits.new_zeros(len(frame), logits.shape[1])])
        total = focal_loss(logits, wanted, config.focal_alpha, config.focal_gamma).sum() + sum_focal_loss(
            classes.agentness.reshape(-1, 1),
            (matches.assigned != IGNORED).flatten(),
            matches.frame * len(anchors) + matches.anchor,
            truth[:, :1],
            config.focal_alpha,
            config.focal_gamma,
        )
        flat = torch.cat([_flat(level, 4) for level in offsets], dim=2)
        av = network.av_logits(features.ego)
        losses = aggregate_losses(
            to_at_least_float32(flat), total, to_at_least_float32(av), anchors, targets, matches, config
        )
        if self.logic is None:
            return losses
        # Agentness, which no requirement is over, stands before the classes.
        of_classes = to_at_least_float32(logits[: len(matches.row)])
        return self._add_logic(
            losses, torch.cat([of_classes.new_zeros(len(of_classes), 1), of_classes], dim=1)
        )


def select_hard_negatives(agentness: Tensor, assigned: Tensor, likeliest: int) -> tuple[Tensor, Tensor]:
    """(k) frames and (k) anchors of background with most agentness, so many of each frame.

    Args:
        agentness: (F, N) logits.
        assigned: (F, N) as `match` gives it.
        likeliest: of a frame; fewer where there are not so many.
    """
    # Chosen without a gradient: which anchors are hard is no matter of degree.
    background = agentness.detach().masked_fill(assigned != BACKGROUND, -torch.inf)
    best = background.topk(min(likeliest, background.shape[1]), dim=1)
    frame, place = torch.isfinite(best.values).nonzero(as_tuple=True)
    return frame, best.indices[frame, place]


class ClassesWhereAsked:
    """Outputs of the class head: agentness of all anchors, the other classes of some.

    Args:
        head: convolutions over space, and a last one over space and time.
        maps: (B, width, T, H, W) of each level.
        config: of the network.
    """

    def __init__(self, head: Head, maps: list[Tensor], config: RetinaNetConfig) -> None:
        last = head[len(head) - 1]
        if not isinstance(last, TimeConv) or last.bias is None:
            raise TypeError(f"the last layer of a head is a TimeConv with bias, not {type(last).__name__}")
        self.taps, self.n_anchors = int(last.weight.shape[2]), config.n_anchors
        self.before = last.back if last.causal else last.back // 2
        self.inner = [head.inner(level) for level in maps]
        weight = last.weight.reshape(config.n_anchors, -1, *last.weight.shape[1:])
        bias = last.bias.reshape(config.n_anchors, -1)
        self.weight, self.bias = weight[:, 1:], bias[:, 1:]
        levels = [self._agentness(level, weight[:, 0], bias[:, 0]) for level in self.inner]
        self.agentness = to_at_least_float32(torch.cat(levels, dim=1))
        self.ends = torch.tensor([level.shape[1] for level in levels], device=maps[0].device).cumsum(0)

    def _agentness(self, inner: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """(B T, cells anchors) of one level."""
        if self.taps == 1:
            images = inner.transpose(1, 2).flatten(0, 1)
            found = functional.conv2d(images, weight[:, :, 0], bias, padding=1)
            return found.permute(0, 2, 3, 1).flatten(1)
        seen = functional.pad(inner, (0, 0, 0, 0, self.before, self.taps - 1 - self.before))
        found = functional.conv3d(seen, weight, bias, padding=(0, 1, 1))
        return found.permute(0, 2, 3, 4, 1).flatten(0, 1).flatten(1)

    def at(self, frames: Tensor, anchors: Tensor) -> Tensor:
        """(k, classes - 1) logits of some anchors.

        Args:
            frames: (k) over all clips.
            anchors: (k) over all levels.
        """
        level = torch.bucketize(anchors, self.ends, right=True)
        begins = torch.cat([self.ends.new_zeros(1), self.ends[:-1]])
        inside = anchors - begins[level]
        shape = self.inner[0].new_empty(0, self.weight[0, 0].numel())
        order, patches = [], [shape]
        for number, inner in enumerate(self.inner):
            mine = torch.nonzero(level == number).flatten()
            if len(mine):
                order.append(mine)
                patches.append(self._patches(inner, frames[mine], inside[mine] // self.n_anchors))
        if not order:
            return to_at_least_float32(shape.new_zeros(0, self.weight.shape[1]))
        back = torch.argsort(torch.cat(order))
        found = torch.cat(patches)[back]
        return self._by_anchor(found, inside % self.n_anchors)

    def _by_anchor(self, patches: Tensor, anchors: Tensor) -> Tensor:
        """Each patch through the weights of its anchor."""
        order, made = [], []
        for anchor in range(self.n_anchors):
            mine = torch.nonzero(anchors == anchor).flatten()
            if len(mine):
                order.append(mine)
                made.append(torch.addmm(self.bias[anchor], patches[mine], self.weight[anchor].flatten(1).T))
        return to_at_least_float32(torch.cat(made))[torch.argsort(torch.cat(order))]

    def _patches(self, inner: Tensor, frames: Tensor, cells: Tensor) -> Tensor:
        """(k, C taps 3 3) what the last kernel sees of some cells, in the order of its weights."""
        _, channels, length, height, width = inner.shape
        taps, device = self.taps, inner.device
        # One row of zeros behind all others stands for what lies outside of clip and image.
        rows = inner.permute(0, 2, 3, 4, 1).reshape(-1, channels)
        rows = torch.cat([rows, rows.new_zeros(1, channels)])
        near = torch.arange(-1, 2, device=device)
        t = frames[:, None] % length + torch.arange(taps, device=device) - self.before
        y, x = (cells // width)[:, None] + near, (cells % width)[:, None] + near
        inside = ((t >= 0) & (t < length))[:, :, None, None]
        inside = (
            inside & ((y >= 0) & (y < height))[:, None, :, None] & ((x >= 0) & (x < width))[:, None, None]
        )
        clip = (frames // length)[:, None] * length
        place = ((clip + t)[:, :, None, None] * height + y[:, None, :, None]) * width + x[:, None, None]
        place = torch.where(inside, place, len(rows) - 1)
        found = rows.index_select(0, place.flatten()).view(len(frames), -1, channels)
        return found.transpose(1, 2).flatten(1)


def _flat(shown: Tensor, numbers: int) -> Tensor:
    """(B, T, cells anchors, numbers) of (B, anchors numbers, T, H, W)."""
    shown = shown.permute(0, 2, 3, 4, 1)
    return shown.reshape(*shown.shape[:2], -1, numbers)
