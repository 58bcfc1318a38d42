"""Schedule: the rate of learning at each step, groups of parameters, and a running mean of the weights."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.training.recipe import Recipe, ScheduleRecipe


def steps_of(schedule: ScheduleRecipe, clips: int, per_step: int) -> int:
    """Steps of a whole run.

    Args:
        schedule: in steps or epochs.
        clips: of a pass.
        per_step: clips of a step of all processes.
    """
    return schedule.steps or max(1, math.ceil(schedule.epochs * clips / per_step))


def rate(schedule: ScheduleRecipe, step: int, steps: int) -> float:
    """The rate of a step.

    Args:
        schedule: how it moves.
        step: from 0.
        steps: of the whole run.
    """
    if step < schedule.warmup_steps:
        rising = (step + 1) / schedule.warmup_steps
        return schedule.lr * (schedule.warmup_from + (1 - schedule.warmup_from) * rising)
    if schedule.decay == "cosine":
        past = (step - schedule.warmup_steps) / max(1, steps - schedule.warmup_steps)
        low = schedule.final
        return schedule.lr * (low + (1 - low) * 0.5 * (1 + math.cos(math.pi * min(1.0, past))))
    if schedule.decay == "steps":
        now = float(step) if schedule.steps else step * schedule.epochs / steps
        return schedule.lr * float(schedule.gamma ** bisect.bisect_right(schedule.milestones, now))
    return schedule.lr


def freeze(network: nn.Module, recipe: Recipe) -> list[nn.Module]:
    """Stop parameters that stay as they are, and answer the batch norms that are not to be trained.

    Args:
        network: is changed.
        recipe: says which.

    Raises:
        UsageError: if no parameter has a name that is given.
    """
    _named(network, recipe.model.freeze, "model.freeze")
    for name, parameter in network.named_parameters():
        if any(name.startswith(beginning) for beginning in recipe.model.freeze):
            parameter.requires_grad_(False)
    norms: list[nn.Module] = []
    for name, module in network.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and (
            recipe.model.freeze_batch_norm
            or any(f"{name}.".startswith(beginning) for beginning in recipe.model.freeze)
        ):
            norms.append(module)
            for parameter in module.parameters():
                parameter.requires_grad_(False)
    return norms


def _named(network: nn.Module, beginnings: Iterable[str], where: str) -> None:
    """Raise where no parameter has a name that begins so."""
    names = [name for name, _ in network.named_parameters()]
    for beginning in beginnings:
        if not any(name.startswith(beginning) for name in names):
            parts = sorted({".".join(name.split(".")[:2]) for name in names})
            raise UsageError(f"{where}: no parameter begins with '{beginning}'; there are {', '.join(parts)}")


def optimizer_of(network: nn.Module, schedule: ScheduleRecipe) -> torch.optim.Optimizer:
    """The optimizer; each group says in `times` what its rate is multiplied by.

    Args:
        network: its parameters that learn.
        schedule: which, and how.

    Raises:
        UsageError: if no parameter has a name that `part_lr` gives.
    """
    _named(network, schedule.part_lr, "schedule.part_lr")
    groups: dict[tuple[float, float], list[Tensor]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            bias = name.endswith("bias")
            bare = parameter.ndim <= 1 and not schedule.decay_all
            times = (schedule.bias_lr if bias else 1.0) * _factor(schedule, name)
            key = (times, 0.0 if bare else schedule.weight_decay)
            groups.setdefault(key, []).append(parameter)
    rows = [
        {"params": held, "weight_decay": decay, "times": times}
        for (times, decay), held in sorted(groups.items(), key=lambda item: item[0])
    ]
    if schedule.optimizer == "adamw":
        return torch.optim.AdamW(rows, lr=schedule.lr, betas=schedule.betas, fused=True)
    return torch.optim.SGD(
        rows, lr=schedule.lr, momentum=schedule.momentum, nesterov=schedule.nesterov, fused=True
    )


def _factor(schedule: ScheduleRecipe, name: str) -> float:
    """What the rate of a parameter is multiplied by because of its name."""
    fitting = [beginning for beginning in schedule.part_lr if name.startswith(beginning)]
    return float(schedule.part_lr[max(fitting, key=len)]) if fitting else 1.0


def set_rate(optimizer: torch.optim.Optimizer, value: float) -> None:
    """Let an optimizer of `optimizer_of` take its next step at a rate."""
    for group in optimizer.param_groups:
        group["lr"] = value * group["times"]


def go_on(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Take up a saved state, with the decay and momentum that an optimizer of `optimizer_of` has now.

    Args:
        optimizer: its weights are where they will stay.
        state: as its `state_dict` gave it.

    Raises:
        UsageError: if it is of another optimizer, or of other groups of parameters.
    """
    now = optimizer.param_groups
    if _groups(now) != _groups(state["param_groups"]):
        raise UsageError(
            "the checkpoint is of another optimizer or of other groups of parameters: leave "
            "schedule.optimizer, bias_lr, part_lr, decay_all, model.freeze and freeze_batch_norm as they "
            "were, and no weight_decay at 0 that was not, or begin another run with --out"
        )
    meant = [{name: value for name, value in group.items() if name != "params"} for group in now]
    optimizer.load_state_dict(dict(state))
    for group, options in zip(optimizer.param_groups, meant, strict=True):
        group.update(options)


def _groups(groups: Iterable[Mapping[str, Any]]) -> list[tuple[float, int, list[str]]]:
    """What must be the same for a state to fit."""
    return [(group["times"], len(group["params"]), sorted(group)) for group in groups]


class Average:
    """A running mean of weights; it follows faster at the beginning.

    Args:
        state: of the network, floating point or not.
        decay: share of the mean that stays at each step.
    """

    def __init__(self, state: Mapping[str, Tensor], decay: float) -> None:
        self.decay = decay
        self.state = {name: value.detach().clone() for name, value in state.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Be as a checkpoint has it."""
        for name, mean in self.state.items():
            mean.copy_(state[name])

    @torch.no_grad()
    def follow(self, state: Mapping[str, Tensor], step: int) -> None:
        """Take in the weights behind a step.

        Args:
            state: of the network.
            step: from 0.
        """
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        for name, mean in self.state.items():
            if mean.is_floating_point():
                mean.lerp_(state[name].detach(), share)
            else:
                mean.copy_(state[name])
