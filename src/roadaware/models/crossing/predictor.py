"""A trained network with all that asking it needs, kept as one safetensors file; imports torch."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from safetensors.torch import save as bytes_of
from torch import Tensor

from roadaware import __version__
from roadaware import config as configs
from roadaware.arrays import Floats, Numbers
from roadaware.errors import DamagedError, InputError, RoadawareError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.sources import to_printable
from roadaware.models import create, get_crossing_entry
from roadaware.models.crossing.inputs import InputSet
from roadaware.models.crossing.networks.base import CrossingNet
from roadaware.models.crossing.uncertainty import replace_last_layer, sample_logits
from roadaware.models.crossing.uncertainty_config import DoubtConfig
from roadaware.models.limits import limit_network_size
from roadaware.models.tensor_files import ARITHMETIC, parse_facts, read_about, read_safetensors

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
        are of the mean weights. `roadaware.tasks.targets` has the same of the ground truth.

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

        Args:
            given: samples.

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

        Args:
            path: of the file.

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
    """Whether a file holds a predictor of ours.

    Args:
        path: of any file.
    """
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
