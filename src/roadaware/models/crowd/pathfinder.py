"""The Dynamic Knowledge Pathfinder: layers of which each task takes one of several copies; imports torch."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from roadaware.errors import UsageError
from roadaware.io.sources import to_printable

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
START, END = 5.0, 0.5
"""Temperatures of the choice at the first and at the last step of training."""


def install(
    network: nn.Module,
    layers: Sequence[str | tuple[str, str]],
    blocks: int,
    *,
    tasks: Sequence[str],
    width: int = 64,
    noise: float = 0.01,
) -> Pathfinder:
    """Put a dynamic layer of `blocks` knowledge blocks in the place of each of some convolutions and their norms.

    A block is a copy of the convolution with a norm of its own. In training all blocks see the input; which one
    is taken is drawn from the scores of the task (`gumbel_softmax`, hard), and the gradient of the draw reaches
    the scores through all blocks, that of the weights the chosen block alone. When the network is evaluated,
    only the best block of the task runs.

    Args:
        network: any; it is changed in place.
        layers: names of convolutions, first to last; or names of a convolution and of its norm, where the norm
            is not beside it as `bn2` is beside `conv2`, `first_norm` beside `first`, or `1` beside `0`.
        blocks: copies of each.
        tasks: names of the tasks.
        width: numbers of the embedding of a task.
        noise: deviation of what is added to the weights of all copies but the first, in deviations of the
            convolution's weights: equal blocks would give the scores nothing to learn from.

    Returns:
        The pathfinder of this network.

    Raises:
        UsageError: if a name stands for no convolution, or has no norm; if there are no tasks or no blocks.

    Source: supplement of Chaotic World, ICCV 2023, sections 4.1 and 4.3; Jang et al., ICLR 2017 (straight-through
        Gumbel-softmax); the embedding, the temperatures and the norm of each block are ours.
    """
    if blocks < 1 or not tasks or len(set(tasks)) != len(tasks):
        raise UsageError(
            f"needed are at least 1 block, and tasks with different names; got {blocks}, {tasks}"
        )
    found = [(each, _find_norm(network, each)) if isinstance(each, str) else each for each in layers]
    for name, norm in found:
        if not isinstance(_get(network, name), _CONVOLUTIONS) or _get(network, norm) is None:
            raise UsageError(f"'{to_printable(name, 80)}' and '{norm}' should be a convolution and its norm")
    for name, norm in found:
        dynamic = Dynamic(
            network.get_submodule(name), network.get_submodule(norm), norm, blocks, tasks, width, noise
        )
        _replace(network, name, dynamic)
        # The block has normed already; whoever calls the norm by its name gets the input back.
        _replace(network, norm, nn.Identity())
    return Pathfinder(network)


class Dynamic(nn.Module):
    """One dynamic layer, in the place of a convolution; `task` says by number whose path is taken.

    Args:
        conv, norm: what it is made of; they become the first block.
        norm_name: the norm's name in the network.
        blocks: copies.
        tasks: names of the tasks.
        width: numbers of the embedding of a task.
        noise: as of `install`.
    """

    fixed: Tensor

    def __init__(
        self,
        conv: nn.Module,
        norm: nn.Module,
        norm_name: str,
        blocks: int,
        tasks: Sequence[str],
        width: int,
        noise: float,
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList([conv, *(copy.deepcopy(conv) for _ in range(blocks - 1))])
        self.norms = nn.ModuleList([norm, *(copy.deepcopy(norm) for _ in range(blocks - 1))])
        self.embedding = nn.Embedding(len(tasks), width)
        self.score = nn.Linear(width, blocks)
        nn.init.normal_(self.score.weight, std=0.01)
        nn.init.zeros_(self.score.bias)
        self.register_buffer("fixed", torch.full((len(tasks),), -1, dtype=torch.int64))
        self.tasks, self.norm_name = tuple(tasks), norm_name
        self.task: int | None = None
        self.temperature = START
        self.disturb(noise)

    @torch.no_grad()
    def disturb(self, noise: float) -> None:
        """Add noise to the weights of all blocks but the first."""
        for conv in list(self.convs)[1:] if noise else []:
            weight = conv.get_parameter("weight")
            # The deviation of few numbers is not known.
            spread = float(weight.std()) if weight.numel() > 1 else 0.0
            weight.add_(torch.randn_like(weight), alpha=noise * spread)

    def logits(self) -> Tensor:
        """(tasks, blocks) scores before the softmax."""
        scored: Tensor = self.score(functional.relu(self.embedding.weight)).float()
        return scored

    def choose(self, task: int) -> int:
        """The block that a task takes when the network is evaluated."""
        fixed = int(self.fixed[task])
        return fixed if fixed >= 0 else int(self.logits()[task].argmax())

    def draw(self, task: int) -> Tensor:
        """(blocks,) a one-hot choice for a task in training, through which the scores learn."""
        return functional.gumbel_softmax(self.logits()[task], tau=self.temperature, hard=True)

    def forward(self, input: Tensor) -> Tensor:
        """As the convolution and its norm.

        Raises:
            UsageError: if no task was set.
        """
        if self.task is None:
            raise UsageError("a network with a pathfinder needs to know the task: `set_task` sets it")
        if not self.training or len(self.convs) == 1 or int(self.fixed[self.task]) >= 0:
            return self._run(self.choose(self.task), input)
        drawn = self.draw(self.task)
        chosen = int(drawn.argmax())
        shown = self._run(chosen, input) * drawn[chosen].to(input.dtype)
        for block in range(len(self.convs)):
            if block != chosen:
                # Its output is multiplied by 0, so that only the score has a gradient of it.
                with torch.no_grad(), keep_statistics(self.norms[block]):
                    beside = self._run(block, input)
                shown = shown + beside * drawn[block].to(input.dtype)
        return shown

    def _run(self, block: int, input: Tensor) -> Tensor:
        normed: Tensor = self.norms[block](self.convs[block](input))
        return normed


class Pathfinder:
    """The dynamic layers of a network: sets the task, and reads the paths.

    Args:
        network: into which they were installed, or a copy of such a one.

    Raises:
        UsageError: if it has none.
    """

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        self.layers = {name: part for name, part in network.named_modules() if isinstance(part, Dynamic)}
        if not self.layers:
            raise UsageError("this network has no dynamic layers: `install` puts them in")

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks."""
        return next(iter(self.layers.values())).tasks

    def set_task(self, task: str) -> None:
        """Let the network take the path of a task from now on.

        Raises:
            UsageError: if there is no such task.
        """
        place = self._place(task)
        for layer in self.layers.values():
            layer.task = place

    def set_temperature(self, temperature: float) -> None:
        """Set the temperature of the choice in training; a low one draws the best block almost always.

        Raises:
            UsageError: if it is not above 0.
        """
        if not (math.isfinite(temperature) and temperature > 0):
            raise UsageError(f"a temperature is above 0, not {temperature!r}")
        for layer in self.layers.values():
            layer.temperature = temperature

    def paths(self) -> dict[str, tuple[int, ...]]:
        """The path table: of each task its block in each layer, from 0, as they run in evaluation."""
        return {
            task: tuple(layer.choose(place) for layer in self.layers.values())
            for place, task in enumerate(self.tasks)
        }

    def entropy(self) -> dict[str, tuple[float, ...]]:
        """Of each task, layer by layer, how undecided it is: from 0 to the logarithm of the blocks, in nats."""
        with torch.no_grad():
            logs = [layer.logits().log_softmax(dim=1) for layer in self.layers.values()]
            found = torch.stack([-(each.exp() * each).sum(dim=1) for each in logs], dim=1)
        # A sum of rounded numbers may be a little below 0.
        return dict(zip(self.tasks, map(tuple, found.clamp(min=0).tolist()), strict=True))

    def fix(self, paths: Mapping[str, Sequence[int]] | None) -> None:
        """Let tasks take these paths, in training as in evaluation, whatever the scores say.

        Args:
            paths: of some tasks, as `paths` gives them; None frees all.

        Raises:
            UsageError: if there is no such task, or a path has not one block of each layer.
        """
        for task, path in (paths or {}).items():
            place = self._place(task)
            counts = [len(layer.convs) for layer in self.layers.values()]
            good = len(path) == len(counts)
            if not good or not all(0 <= block < n for block, n in zip(path, counts, strict=True)):
                raise UsageError(f"a path has a block of each layer, of which there are {counts}; got {path}")
            for layer, block in zip(self.layers.values(), path, strict=True):
                layer.fixed[place] = block
        if paths is None:
            for layer in self.layers.values():
                layer.fixed.fill_(-1)

    def pruned(self, task: str) -> nn.Module:
        """A copy of the network with the path of one task alone, named as before the dynamic layers came.

        Raises:
            UsageError: if there is no such task.
        """
        place, twin = self._place(task), copy.deepcopy(self.network)
        for name in self.layers:
            layer = twin.get_submodule(name)
            if isinstance(layer, Dynamic):
                block = layer.choose(place)
                _replace(twin, name, layer.convs[block])
                _replace(twin, layer.norm_name, layer.norms[block])
        return twin

    def load_plain(self, state: Mapping[str, Tensor], noise: float = 0.01) -> None:
        """Fill the network from the state of one without dynamic layers; every block begins with the same.

        Args:
            state: by the names that the network had before.
            noise: as of `install`.

        Raises:
            UsageError: if names or shapes do not fit.
        """
        whole = {
            name: value
            for name, value in self.network.state_dict().items()
            if (".embedding." in name or ".score." in name or name.endswith(".fixed"))
        }
        for name, value in state.items():
            places = [name]
            for dynamic, layer in self.layers.items():
                for part, into in ((dynamic, "convs"), (layer.norm_name, "norms")):
                    if name.startswith(f"{part}."):
                        rest = name.removeprefix(f"{part}.")
                        places = [f"{dynamic}.{into}.{block}.{rest}" for block in range(len(layer.convs))]
            whole.update(dict.fromkeys(places, value))
        try:
            self.network.load_state_dict(whole)
        except RuntimeError as error:
            raise UsageError(
                f"the weights are of another network: {to_printable(str(error), 400)}"
            ) from error
        for layer in self.layers.values():
            layer.disturb(noise)

    def _place(self, task: str) -> int:
        if task not in self.tasks:
            known = ", ".join(self.tasks)
            raise UsageError(f"no task is called '{to_printable(task, 60)}'; there are {known}")
        return self.tasks.index(task)


def count_switches(before: Mapping[str, Sequence[int]], after: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """In how many layers each task has another block than before.

    Args:
        before, after: path tables of the same tasks.

    >>> count_switches({"sound": (0, 1, 1)}, {"sound": (0, 0, 0)})
    {'sound': 2}
    """
    return {
        task: sum(a != b for a, b in zip(path, after[task], strict=True)) for task, path in before.items()
    }


def anneal(step: int, steps: int, start: float = START, end: float = END) -> float:
    """The temperature of a step of training: from `start` to `end`, by the same factor each time.

    Args:
        step: from 0.
        steps: of the whole run.
        start, end: temperatures.

    >>> [round(anneal(step, 3), 3) for step in range(3)]
    [5.0, 1.581, 0.5]
    """
    fallen: float = (end / start) ** min(1.0, step / max(1, steps - 1))
    return start * fallen


@contextmanager
def keep_statistics(norm: nn.Module) -> Iterator[None]:
    """Within: a batch norm in training norms by its batch as ever, and keeps its running statistics."""
    if not (isinstance(norm, _BatchNorm) and norm.track_running_stats):
        yield
        return
    norm.track_running_stats = False
    try:
        yield
    finally:
        norm.track_running_stats = True


def _find_norm(network: nn.Module, name: str) -> str:
    """The name of a convolution's norm, which stands beside it.

    Raises:
        UsageError: if there is none.
    """
    if not isinstance(_get(network, name), _CONVOLUTIONS):
        near = [each for each, part in network.named_modules() if isinstance(part, _CONVOLUTIONS)]
        shown = ", ".join(near[-5:]) or "none"
        raise UsageError(f"'{to_printable(name, 80)}' is no convolution; the last ones are {shown}")
    head, dot, last = name.rpartition(".")
    tries = [str(int(last) + 1)] if last.isdigit() else []
    tries += [last.replace("conv", "bn"), last.replace("conv", "norm"), f"{last}_norm", f"{last}_bn"]
    for each in tries:
        if each != last and _get(network, f"{head}{dot}{each}") is not None:
            return f"{head}{dot}{each}"
    raise UsageError(f"'{name}' has no norm beside it, such as {', '.join(tries[-4:])}; give its name, too")


def _get(network: nn.Module, name: str) -> nn.Module | None:
    """The part of a name; None where there is none."""
    try:
        return network.get_submodule(name)
    except AttributeError:
        return None


def _replace(network: nn.Module, name: str, part: nn.Module) -> None:
    head, _, last = name.rpartition(".")
    setattr(network.get_submodule(head), last, part)
