"""A network that predicts a mixture of paths of boxes from those of half a second; imports torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors.torch import save as bytes_of
from torch import Tensor, nn
from torch.nn import functional

from roadaware import __version__
from roadaware import config as configs
from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.sources import to_printable
from roadaware.models.tensor_files import (
    ARITHMETIC,
    check_digest,
    digest_tensors,
    parse_facts,
    read_safetensors,
)
from roadaware.models.trajectory.motion import StateForecast, States

_FORMAT, _FACTS = "roadaware-trajectories", "roadaware"
_LEAST_DEVIATION = 2e-3
_MOST_CORRELATION = 0.95


@dataclass(frozen=True)
class MixtureConfig:
    """Sizes of a network of paths.

    Args:
        observed: steps that it sees.
        steps: that it predicts.
        step_s: seconds from one to the next.
        states: 4 of boxes, 2 of places on the ground.
        components: of the mixture.
        hidden: width of its layers.
        degree: of the polynomial in time by which a path leaves the straight line.
        dropout: of hidden layers.
        position: whether it sees where in the image somebody is.

    Raises:
        UsageError: if a number has no meaning.
    """

    observed: int = 15
    steps: int = 45
    step_s: float = 1 / 30
    states: int = 4
    components: int = 5
    hidden: int = 128
    degree: int = 4
    dropout: float = 0.1
    position: bool = True

    def __post_init__(self) -> None:
        sizes = (self.steps, self.components, self.hidden, self.degree)
        if (
            min(sizes) < 1
            or max(*sizes, self.observed) > 4096
            or self.observed < 2
            or self.states not in (2, 4)
        ):
            raise UsageError(f"sizes of a network of paths are 1 to 4,096, of 2 or 4 states; got {self}")
        if not (0 <= self.dropout < 1 and self.step_s > 0):
            raise UsageError(f"dropout lies in [0, 1) and step_s is above 0; got {self}")


class MixtureNetwork(nn.Module):
    """Observed states and position -> two hidden layers -> weights, paths, deviations and correlations of components.

    A path is the straight line of the observed steps and a polynomial in time; deviations grow by a power of time.
    """

    def __init__(self, config: MixtureConfig) -> None:
        super().__init__()
        self.config = config
        k, d = config.components, config.states
        wide = (config.observed - 1) * d * 2 + (3 if config.position else 0)
        self.body = nn.Sequential(
            nn.Linear(wide, config.hidden), nn.GELU(), nn.Dropout(config.dropout),
            nn.Linear(config.hidden, config.hidden), nn.GELU(), nn.Dropout(config.dropout),
            nn.Linear(config.hidden, config.hidden), nn.GELU(), nn.Dropout(config.dropout),
        )  # fmt: skip
        self.weights = nn.Linear(config.hidden, k)
        self.paths = nn.Linear(config.hidden, k * d * config.degree)
        self.spreads = nn.Linear(config.hidden, k * d * 2)
        self.turns = nn.Linear(config.hidden, k)
        # Speeds of a person are a few hundredths of a height a step: brought to about 1, as positions are.
        self.register_buffer("mean", torch.zeros(wide))
        self.register_buffer("deviation", torch.ones(wide))
        share = torch.arange(1, config.steps + 1) / config.steps
        self.register_buffer(
            "powers", torch.stack([share ** (j + 1) for j in range(config.degree)]), persistent=False
        )
        self.register_buffer("log_share", share.log(), persistent=False)
        with torch.no_grad():
            for layer in (self.paths, self.spreads, self.turns):
                layer.weight.mul_(0.1)
            # Components begin apart: all at one place they would stay there.
            self.paths.bias.normal_(0.0, 0.1)
            self.spreads.bias.zero_()

    def features(self, past: Tensor, position: Tensor) -> Tensor:
        """(n, wide) what the first layer takes, of past (n, t, d) and position (n, 3)."""
        speeds = past.diff(dim=1) / self.config.step_s
        parts = [past[:, :-1].flatten(1), speeds.flatten(1)]
        return torch.cat([*parts, position] if self.config.position else parts, dim=1)

    def forward(
        self, past: Tensor, position: Tensor, which: slice = slice(None)
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Logarithms of weights (n, k), means (n, k, m, d), logarithms of deviations (n, k, m, d), correlations (n, k).

        Args:
            past: (n, t, d).
            position: (n, 3).
            which: of the steps are predicted (default: all).
        """
        config = self.config
        n, k, d = len(past), config.components, config.states
        mean: Any = self.mean
        deviation: Any = self.deviation
        powers: Any = self.powers[:, which]  # type: ignore[index]
        log_share: Any = self.log_share[which]  # type: ignore[index]
        hidden = self.body((self.features(past, position) - mean) / deviation)
        # The straight line through the first and the newest observed state, at the last step.
        line = -past[:, 0] / (config.observed - 1) * config.steps
        bend = self.paths(hidden).view(n, k, d, config.degree)
        path = torch.einsum("nkdj,jm->nkmd", bend, powers) + line[:, None, None, :] * powers[0][:, None]
        level, growth = self.spreads(hidden).view(n, k, d, 2).unbind(-1)
        # Softplus of growth around 1: errors of who walks on straight grow linearly or faster.
        power = functional.softplus(growth + 0.54)
        spread = level[:, :, None] - 1.0 + power[:, :, None] * log_share[:, None]
        floor = float(np.log(_LEAST_DEVIATION))
        spread = floor + functional.softplus(spread - floor)
        turn = _MOST_CORRELATION * torch.tanh(self.turns(hidden))
        return self.weights(hidden).log_softmax(dim=1), path, spread, turn


def mixture_loss(parts: tuple[Tensor, Tensor, Tensor, Tensor], future: Tensor) -> Tensor:
    """(n,) minus the logarithm of the density of what came, mean over steps, of all states.

    Args:
        parts: of `MixtureNetwork.forward`.
        future: (n, m, d).

    Source: Bishop, Mixture Density Networks, 1994.
    """
    logit, mean, spread, turn = parts
    away = (future[:, None] - mean) / spread.exp()
    x, y, rest = away[..., 0], away[..., 1], (1 - turn**2)[:, :, None]
    square = (x**2 - 2 * turn[:, :, None] * x * y + y**2) / rest + (away[..., 2:] ** 2).sum(dim=-1)
    log_density = (
        -0.5 * square - spread.sum(dim=-1) - 0.5 * rest.log() - 0.5 * future.shape[2] * np.log(2 * np.pi)
    )
    found: Tensor = -(logit[:, :, None] + log_density).logsumexp(dim=1).mean(dim=1)
    return found


@dataclass(frozen=True, eq=False)
class PathPredictor:
    """A network of paths with the facts of its training.

    Args:
        network: in evaluation mode.
        facts: what it learnt from, JSON-ready.
    """

    network: MixtureNetwork
    facts: dict[str, Any]

    def forecast(self, states: States, steps: int) -> StateForecast:
        """The states of the coming steps.

        Raises:
            UsageError: if it was made for other steps, another rate or other states.
        """
        config = self.network.config
        asked = (states.past.shape[1], states.past.shape[2], steps)
        if (
            asked != (config.observed, config.states, config.steps)
            or abs(states.step_s / config.step_s - 1) > 0.02
        ):
            raise UsageError(
                f"the network sees {config.observed} steps of {config.states} numbers, one every {config.step_s:.4g} s, and "
                f"predicts {config.steps}; it was given {asked[0]} of {asked[1]} every "
                f"{states.step_s:.4g} s, and asked for {steps}"
            )
        held: list[tuple[Tensor, ...]] = []
        with torch.no_grad():
            for start in range(0, len(states), 4096):
                rows = slice(start, start + 4096)
                held.append(self.network(*as_tensors(states.some(rows))))
        logit, mean, spread, turn = (torch.cat(each).double() for each in zip(*held, strict=True))
        correlation = turn[:, :, None].expand(mean.shape[:3])
        weight = logit.softmax(dim=1)
        return StateForecast(weight.numpy(), mean.numpy(), spread.exp().numpy(), correlation.numpy())

    def save(self, path: Path) -> None:
        """Write it as one file, `.safetensors` by custom.

        Raises:
            DiskError: if it cannot be written; what stood there before still stands.
        """
        tensors = {name: value.detach().contiguous() for name, value in self.network.state_dict().items()}
        record = {
            "format": _FORMAT, "version": __version__, "config": configs.to_dict(self.network.config), "facts": self.facts,
            "digest": digest_tensors(tensors),
        }  # fmt: skip
        write_atomically(path, bytes_of(tensors, {_FACTS: json.dumps(record)}))

    @classmethod
    def open(cls, path: Path) -> Self:
        """The predictor that `save` wrote.

        Raises:
            InputError: if there is no such file, or it is none of ours.
            DamagedError: if it is not whole.
        """
        if not path.is_file():
            raise InputError("expected the file of a network of paths and found none", where=str(path))
        tensors, about = read_safetensors(path)
        said = parse_facts(about, _FACTS, str(path))
        if said.get("format") != _FORMAT:
            raise InputError(
                f"holds no network of paths but {to_printable(repr(said.get('format')), 60)}", where=str(path)
            )
        check_digest(tensors, said, str(path))
        try:
            network = MixtureNetwork(configs.from_dict(MixtureConfig, said["config"]))
            network.load_state_dict(tensors)
            facts = dict(said["facts"])
        except (*ARITHMETIC, UsageError) as error:
            message = f"what the file says does not fit: {to_printable(str(error), 400)}"
            raise DamagedError(message, where=str(path)) from error
        return cls(network.eval(), facts)


def as_tensors(states: States) -> tuple[Tensor, Tensor]:
    """Past and position of states as 32-bit tensors."""
    return torch.from_numpy(states.past.astype(np.float32)), torch.from_numpy(
        states.position.astype(np.float32)
    )
