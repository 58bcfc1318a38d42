"""A trained network with all that asking it needs, once or several times over, in one file; imports torch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors.torch import save as bytes_of
from torch import Tensor, nn
from torch.nn import functional

from roadaware import __version__
from roadaware import config as configs
from roadaware.arrays import Floats, Numbers
from roadaware.errors import DamagedError, InputError, RoadawareError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.sources import to_printable
from roadaware.models import create, get_crossing_entry
from roadaware.models.crossing.inputs import InputSet
from roadaware.models.crossing.networks.stills import CrossingNet
from roadaware.models.crossing.uncertainty_config import DoubtConfig
from roadaware.models.tensor_files import (
    ARITHMETIC,
    check_digest,
    digest_tensors,
    limit_network_size,
    parse_facts,
    read_about,
    read_safetensors,
)

# Dropout that stays active when a network is asked, and nothing else with it; imports torch.


@contextmanager
def enable_dropout(network: nn.Module) -> Iterator[None]:
    """Dropout active, and nothing else: batch norms stay as they are in eval mode.

    Args:
        network: in eval mode, and so again afterwards.
    """
    found = find_dropout_layers(network)
    for module in found:
        module.train()
    try:
        yield
    finally:
        for module in found:
            module.eval()


def find_dropout_layers(network: nn.Module) -> list[nn.Module]:
    """The modules of a network that drop something."""
    # Private, but the base of all dropout layers of torch.
    kinds = nn.modules.dropout._DropoutNd
    return [module for module in network.modules() if isinstance(module, kinds) and module.p > 0]


def refuse_without_dropout(network: nn.Module) -> None:
    """Refuse a network every pass of which would be the same.

    Raises:
        UsageError: if it drops nothing.
    """
    if not find_dropout_layers(network):
        raise UsageError(
            f"{type(network).__name__} has no dropout, and would say the same in every pass; train it with "
            "doubt: {kind: dropout, rate: 0.5}, which drops inputs of the last layer, or with last-dropout"
        )


# Last layers that differ from pass to pass: inputs dropped, or weights drawn; imports torch.

_FIRST = -3.0
"""Of `raw_spread`: deviations begin at softplus(-3) = 0.049."""


class LastLayer(nn.Linear):
    """A linear layer of which one pass can be drawn; in eval mode it is the mean of all passes.

    Args:
        before: the layer it takes the place and the weights of.
    """

    def __init__(self, before: nn.Linear) -> None:
        super().__init__(before.in_features, before.out_features, device=before.weight.device)
        with torch.no_grad():
            self.weight.copy_(before.weight)
            self.bias.copy_(before.bias)

    def drawn(self, x: Tensor, chance: torch.Generator) -> Tensor:
        """(n, n_scores) one pass, the same for all samples, so that it hangs on no batch.

        Args:
            x: (n, width).
            chance: what it is drawn from.
        """
        return functional.linear(x, self.drawn_weight(chance), self.bias)

    def drawn_weight(self, chance: torch.Generator) -> Tensor:
        """(n_scores, width) the weights of one pass; what is dropped has weight 0.

        Args:
            chance: what it is drawn from.
        """
        raise NotImplementedError


class DropoutLast(LastLayer):
    """A linear layer some of whose inputs are dropped.

    Args:
        before: the layer it takes the place of.
        rate: how often an input is dropped.

    Source: Gal and Ghahramani, ICML 2016, for the last layer alone.
    """

    def __init__(self, before: nn.Linear, rate: float) -> None:
        super().__init__(before)
        self.drop = nn.Dropout(rate)

    def forward(self, input: Tensor) -> Tensor:
        """(..., n_scores) with inputs dropped in training, each sample's own."""
        return super().forward(self.drop(input))

    def drawn_weight(self, chance: torch.Generator) -> Tensor:
        """(n_scores, width) with the same inputs dropped for all scores."""
        kept = torch.rand(self.in_features, generator=chance) >= self.drop.p
        # Scaled as dropout does, so that the mean over passes is the layer itself.
        return self.weight * (kept / (1 - self.drop.p)).to(self.weight)


class FlipoutLast(LastLayer):
    """A linear layer whose weights are independent normal distributions; the bias is a number.

    Training draws one perturbation of the weights for a batch and multiplies it with signs of each sample's
    own, so that samples are perturbed as if independently at the price of two products.

    Args:
        before: the layer it takes the place of.
        prior: deviation of the weights before anything was learnt, around 0; 0 for the one that fits best.

    Source: Wen et al., ICLR 2018, eq. 4 and 5.
    """

    def __init__(self, before: nn.Linear, prior: float) -> None:
        super().__init__(before)
        self.prior = prior
        # Flat, since weight decay spares what has one dimension, and would pull deviations towards 0.69.
        self.raw_spread = nn.Parameter(torch.full((before.weight.numel(),), _FIRST))

    @property
    def spread(self) -> Tensor:
        """(n_scores, width) deviations of the weights."""
        return functional.softplus(self.raw_spread).view_as(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """(B, ..., n_scores) with weights perturbed in training, each sample's otherwise."""
        mean = super().forward(input)
        if not self.training:
            return mean
        shared = self.spread * torch.randn_like(self.weight)
        into, out = self._signs(input, self.in_features), self._signs(input, self.out_features)
        return mean + functional.linear(input * into, shared) * out

    def drawn_weight(self, chance: torch.Generator) -> Tensor:
        """(n_scores, width) drawn from their distributions."""
        noise = torch.randn(self.weight.shape, generator=chance).to(self.weight)
        return self.weight + self.spread * noise

    def divergence(self) -> Tensor:
        """Scalar KL(weights || prior) in nats, summed over all weights.

        sum ln(prior / s) + (s^2 + m^2) / (2 prior^2) - 1/2; with prior^2 = mean(s^2 + m^2), which makes it
        smallest, where the prior is to follow the weights.
        """
        square = self.spread.square() + self.weight.square()
        prior = square.mean() if not self.prior else square.new_tensor(self.prior**2)
        return 0.5 * (prior.log() - 2 * self.spread.log() + square / prior - 1).sum()

    def _signs(self, input: Tensor, width: int) -> Tensor:
        """(B, 1, ..., width) of 1 and -1; the frames of a sample share theirs."""
        shape = (len(input), *(1 for _ in input.shape[1:-1]), width)
        return torch.randint(0, 2, shape, device=input.device).to(input) * 2 - 1


def replace_last_layer(network: CrossingNet, uncertainty: DoubtConfig) -> CrossingNet:
    """The network itself, its last layer replaced where the uncertainty method asks for that.

    Args:
        network: is changed.
        uncertainty: says how.

    Raises:
        UsageError: if all dropout is to differ, and there is none.
    """
    if uncertainty.kind == "last-flipout":
        network.last = FlipoutLast(network.last, uncertainty.prior)
    elif uncertainty.rate:
        network.last = DropoutLast(network.last, uncertainty.rate)
    if uncertainty.kind == "dropout":
        refuse_without_dropout(network)
    return network


def compute_kl_divergence(network: CrossingNet) -> Tensor | None:
    """Scalar KL of the network's weights from their prior; None where its weights are numbers."""
    return network.last.divergence() if isinstance(network.last, FlipoutLast) else None


def sample_logits(
    network: CrossingNet, uncertainty: DoubtConfig, asked: Iterable[dict[str, Tensor]], n: int, seed: int
) -> Tensor:
    """(passes, samples, n_scores) logits of single passes.

    Where only the last layer differs, all before it is computed once, and a pass is one drawn layer for all
    samples. With all dropout active every pass costs a whole one, and each sample has drops of its own, so
    that other batches give other draws.

    Args:
        network: is asked in eval mode.
        uncertainty: what differs.
        asked: inputs of batches.
        n: how many passes.
        seed: of what differs; pass i is the same however many follow.

    Raises:
        UsageError: if there are no passes, or the network drops nothing.
    """
    if n < 1:
        raise UsageError(f"there is at least one pass, not {n}")
    network.eval()
    if uncertainty.kind == "dropout":
        refuse_without_dropout(network)
    with torch.inference_mode():
        parts = [_batch(network, uncertainty, x, n, (seed, at)) for at, x in enumerate(asked)]
    return torch.cat(parts, 1) if parts else torch.zeros(n, 0, network.n_scores)


def sample_last_weights(network: CrossingNet, uncertainty: DoubtConfig, n: int, seed: int = 0) -> Tensor:
    """(passes, n_scores, width) weights of the last layer in the passes of `sample_logits`, its bias apart.

    Whoever has the embedding of a sample has all its passes by one product.

    Args:
        network: of a predictor.
        uncertainty: what differs; not all dropout.
        n: how many passes.
        seed: as `sample_logits` takes it.

    Raises:
        UsageError: if there are no passes, or they differ before the last layer.
    """
    if n < 1 or uncertainty.kind == "dropout":
        raise UsageError("there is at least one pass, and what differs is the last layer alone")
    last = network.last
    with torch.inference_mode():
        if not uncertainty.draws or not isinstance(last, LastLayer):
            # Cloned, since expanded passes would share their memory.
            return last.weight.expand(n, -1, -1).clone()
        return torch.stack([last.drawn_weight(_chance(seed, each)) for each in range(n)])


def _batch(
    network: CrossingNet, uncertainty: DoubtConfig, x: dict[str, Tensor], n: int, place: tuple[int, int]
) -> Tensor:
    """(passes, B, n_scores)."""
    if uncertainty.kind == "dropout":
        with enable_dropout(network), torch.random.fork_rng(devices=[]):
            return torch.stack([_run_dropout_pass(network, x, (*place, each)) for each in range(n)])
    last = network.last
    if not uncertainty.draws or not isinstance(last, LastLayer):
        answer: Tensor = network(x)["label"]
        return answer.expand(n, -1, -1).clone()
    seen = network.looked(x).embedding
    return torch.stack([last.drawn(seen, _chance(place[0], each)) for each in range(n)])


def _run_dropout_pass(network: CrossingNet, x: dict[str, Tensor], place: tuple[int, int, int]) -> Tensor:
    # A pass has its own seed, so that it does not hang on those before it.
    torch.manual_seed(_derive_seed(*place))
    answer: Tensor = network(x)["label"]
    return answer


def _chance(*place: int) -> torch.Generator:
    return torch.Generator().manual_seed(_derive_seed(*place))


def _derive_seed(*place: int) -> int:
    """A seed that differs from place to place."""
    return int(np.random.SeedSequence(place).generate_state(1, np.uint64)[0] >> np.uint64(1))


_FORMAT = "roadaware-predictor-1"
_FACTS = "roadaware"
_LONGEST, _MOST_SIDES, _MOST_NUMBERS, _MOST_FRAMES = 1 << 16, 5, 1 << 24, 1 << 10
"""Of inputs: the longest side, how many sides, numbers and frames; attention costs the square of the frames."""


@dataclass(eq=False)
class Predictor:
    """A trained network with its task, inputs and facts.

    Args:
        network: ready to be asked.
        name: in the registry.
        task: action, intention or risk.
        labels: the words of its answers.
        facts: JSON-ready: protocol, recipe digest, seed, scores on validation, licence of the data.
        temperature: what logits are divided by, see Guo et al., ICML 2017; 1 leaves them.
        doubt: what differs when it is asked again (default: nothing).
    """

    network: CrossingNet
    name: str
    task: str
    labels: tuple[str, ...]
    facts: dict[str, Any] = field(default_factory=dict)
    temperature: float = 1.0
    doubt: DoubtConfig = field(default_factory=DoubtConfig)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of what it reads, in order."""
        return tuple(self.network.shapes)

    def logits(self, given: InputSet, batch: int = 4096) -> Floats:
        """(n, k) answers before sigmoid or softmax, over the temperature; k = 1 with two labels.

        Nothing is dropped or drawn for it: they are the answers of the mean weights.

        Args:
            given: n samples with its inputs, in any order.
            batch: samples at a time; images go in smaller ones.

        Raises:
            InputError: if an input is missing or has another shape.
        """
        self.check(given)
        with self._asked():
            return np.asarray(
                predict_logits(self.network, given, ("label",), batch)["label"] / self.temperature
            )

    def also(self, given: InputSet, batch: int = 4096) -> dict[str, Floats]:
        """Answers beside the label, of the tasks that the network was taught; none for most networks.

        `trajectory` (n, horizon, 4) holds boxes ahead in shares of the image less those of the last
        observed box, `grid` (n, cells) the probability of each cell that the last of them may lie in. Both
        are of the mean weights. `roadaware.tasks.pedestrians` has the same of the ground truth.

        Args:
            given: as `logits` takes it.
            batch: samples at a time.
        """
        self.check(given)
        with self._asked():
            found = predict_logits(self.network, given, tuple(self.network.tasks), batch)
        if "grid" in found:
            found["grid"] = convert_logits(found["grid"])
        return found

    def probabilities(self, given: InputSet, batch: int = 4096) -> Floats:
        """(n, k) probabilities: of label 1 with two labels, else of each, rows summing to 1.

        Args:
            given: as `logits` takes it.
            batch: samples at a time.
        """
        if self.doubt.draws:
            return np.asarray(self.passes(given, self.doubt.passes, batch=batch).mean(axis=0))
        return convert_logits(self.logits(given, batch))

    def passes(self, given: InputSet, n: int, seed: int = 0, batch: int = 4096) -> Floats:
        """(passes, n, k) probabilities of single passes; all equal without an uncertainty method (`doubt`).

        Args:
            given: n samples.
            n: how many passes.
            seed: of what differs; pass i is the same however many follow.
            batch: samples at a time; where all dropout is active, other batches give other draws.

        Raises:
            InputError: if an input is missing or has another shape.
            UsageError: if there are no passes, or the network drops nothing.
        """
        found = self.pass_logits(given, n, seed, batch)
        return convert_logits(found.reshape(-1, found.shape[2])).reshape(found.shape)

    def pass_logits(self, given: InputSet, n: int, seed: int = 0, batch: int = 4096) -> Floats:
        """(passes, n, k) logits of `passes` divided by the temperature; arguments as there."""
        self.check(given)
        with self._asked():
            found = sample_logits(
                self.network, self.doubt, iterate_batches(given, self.inputs, batch), n, seed
            )
        return np.asarray(found.double().numpy() / self.temperature, dtype=np.float64)

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Within: a network that cannot compute with inputs of its own shapes is an error of its file."""
        try:
            yield
        except ARITHMETIC as error:
            text = to_printable(" ".join(str(error).split()))
            raise InputError(f"{self.name} cannot be asked: {text}", hint="train it again") from error

    @property
    def smallest(self) -> int:
        """The fewest passes that mean something."""
        return 1

    def check(self, given: InputSet) -> None:
        """Refuse samples that do not look like those of training.

        Raises:
            InputError: if an input is missing or has another shape.
        """
        for name, shape in self.network.shapes.items():
            found = given.shapes.get(name)
            if found is None:
                raise InputError(f"{self.name} reads {', '.join(self.inputs)}; {name} is not given")
            if found != shape:
                raise InputError(f"{self.name} was trained on {name} of shape {shape}, and is given {found}")

    def save(self, path: Path) -> None:
        """Write it as one file.

        Args:
            path: `.safetensors` by custom.

        Raises:
            DiskError: if it cannot be written; what stood there before still stands.
        """
        tensors = {name: value.detach().cpu().contiguous() for name, value in self._state().items()}
        facts = {
            "format": _FORMAT,
            "version": __version__,
            "name": self.name,
            "task": self.task,
            "labels": list(self.labels),
            "config": configs.to_dict(self.network.config),
            "shapes": {name: list(shape) for name, shape in self.network.shapes.items()},
            "tasks": self.network.tasks,
            "temperature": self.temperature,
            "facts": self.facts,
            "digest": digest_tensors(tensors),
        }
        if self.doubt.draws:
            facts["doubt"] = configs.to_dict(self.doubt)
        write_atomically(path, bytes_of(tensors, {_FACTS: json.dumps(facts)}))

    def _state(self) -> Mapping[str, Tensor]:
        state: Mapping[str, Tensor] = self.network.state_dict()
        return state

    @classmethod
    def open(cls, path: Path) -> Self:
        """The predictor that `save` wrote.

        Raises:
            InputError: if there is no such file, or it is none of ours.
            DamagedError: if it is not whole.
        """
        if not path.exists() or path.is_dir():
            raise InputError("expected the file of a predictor and found none", where=str(path))
        tensors, said = _read(path)
        if said.get("format") != _FORMAT:
            raise InputError(
                f"holds no predictor of this version but {to_printable(repr(said.get('format')), 60)}",
                where=str(path),
            )
        check_digest(tensors, said, str(path))
        try:
            facts, temperature = dict(said["facts"]), _number(said["temperature"], 1e-6, 1e6, "temperature")
            task, labels = str(said["task"]), tuple(said["labels"])
            if len(set(labels)) != len(labels) or not all(isinstance(label, str) for label in labels):
                raise ValueError("labels are texts, each once")
            uncertainty = configs.from_dict(DoubtConfig, said.get("doubt", {}))
            network = _load_network(said, len(labels), uncertainty, tensors, str(path))
        except InputError:
            raise
        except (*ARITHMETIC, UsageError) as error:
            message = f"what the file says does not fit: {to_printable(str(error), 400)}"
            raise DamagedError(message, where=str(path)) from error
        return cls(network.eval(), said["name"], task, labels, facts, temperature, uncertainty)


def is_predictor(path: Path) -> bool:
    """Whether a file holds a predictor of ours."""
    try:
        return bool(parse_facts(read_about(path), _FACTS, str(path)).get("format") == _FORMAT)
    except (RoadawareError, OSError):
        return False


def predict_logits(
    network: CrossingNet, given: InputSet, tasks: tuple[str, ...], batch: int = 4096
) -> dict[str, Floats]:
    """Logits of a network in eval mode, before any sigmoid or softmax.

    Args:
        network: is asked.
        given: n samples with its inputs.
        tasks: `label` (n, n_scores) and those it was made for; nothing is asked where there are none.
        batch: samples at a time; images go in smaller ones.
    """
    if not tasks:
        return {}
    network.eval()
    parts: dict[str, list[Tensor]] = {task: [] for task in tasks}
    with torch.inference_mode():
        for x in iterate_batches(given, tuple(network.shapes), batch):
            said = network(x)
            for task in tasks:
                parts[task].append(said[task])
    horizon, cells = (network.tasks.get(task, 0) for task in ("trajectory", "grid"))
    empty = {"label": (network.n_scores,), "trajectory": (horizon, 4), "grid": (cells,)}
    return {
        task: torch.cat([torch.zeros(0, *empty[task]), *held]).double().numpy()
        for task, held in parts.items()
    }


def iterate_batches(given: InputSet, names: tuple[str, ...], size: int) -> Iterator[dict[str, Tensor]]:
    """The samples in order, as networks take them.

    Args:
        given: n samples.
        names: of the inputs that are wanted.
        size: samples at a time; a thirty-second of it where there are images.
    """
    if any(len(given.shapes[name]) == 4 for name in names):
        # Samples with images are larger, so that a batch holds fewer of them.
        size = max(1, size // 32)
    for start in range(0, len(given), size):
        rows = np.arange(start, min(start + size, len(given)))
        yield {name: as_tensor(given.columns[name].take(rows)) for name in names}


def as_tensor(values: Numbers) -> Tensor:
    """A column as a tensor for a network: images (k, T, 3, H, W) in [0, 1], the rest as float32.

    Args:
        values: (k, ...) float32, or (k, T, H, W, 3) uint8.
    """
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    if tensor.dtype == torch.uint8:
        return tensor.permute(0, 1, 4, 2, 3).float() / 255
    return tensor.float()


def convert_logits(logits: Floats) -> Floats:
    """(n, k) probabilities of (n, k) logits: the sigmoid of one, the softmax of several.

    Args:
        logits: (n, k).
    """
    from roadaware.models.crossing.features import convert_to_probabilities

    return convert_to_probabilities(logits, logits.shape[1])


def _load_network(
    said: Mapping[str, Any], labels: int, uncertainty: DoubtConfig, tensors: Mapping[str, Tensor], where: str
) -> CrossingNet:
    """The network that a file describes, with its weights.

    Raises:
        InputError: if it describes more than its weights are of.
    """
    entry = get_crossing_entry(said["name"])
    config = configs.from_dict(entry.config_class, said["config"])
    tasks = {str(task): int(_number(size, 1, _LONGEST, task)) for task, size in said["tasks"].items()}
    held = sum(tensor.numel() for tensor in tensors.values())
    with limit_network_size(where, held):
        # Shapes of inputs, of sides that an input can have.
        found = {str(name): tuple(shape) for name, shape in said["shapes"].items()}
        for name, shape in found.items():
            sides = all(type(side) is int and 0 < side <= _LONGEST for side in shape)
            sides = sides and (len(shape) == 1 or shape[0] <= _MOST_FRAMES)
            if not sides or not 0 < len(shape) <= _MOST_SIDES or math.prod(shape) > _MOST_NUMBERS:
                most = f"{_MOST_SIDES} sides, {_MOST_FRAMES:,} frames and {_MOST_NUMBERS:,} numbers"
                raise ValueError(f"{name} has the shape {to_printable(repr(shape), 60)}; it may have {most}")
        network: CrossingNet = create(said["name"], config=config, shapes=found, labels=labels, tasks=tasks)
        replace_last_layer(network, uncertainty).load_state_dict(dict(tensors))
    return network


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors, about = read_safetensors(path)
    return tensors, parse_facts(about, _FACTS, str(path))


def _number(value: Any, low: float, high: float, what: str) -> float:
    """A number in its limits.

    Raises:
        ValueError: if it is none, or beyond them.
    """
    # True and False are whole numbers to Python.
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ValueError(f"{what} is {to_printable(repr(value), 60)}; it lies in {low:g} to {high:g}")
    return float(value)
