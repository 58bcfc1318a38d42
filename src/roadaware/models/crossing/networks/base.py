"""Base of the pedestrian networks: named inputs, one last layer, outputs by task; imports torch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.entries import Entry
from roadaware.models.crossing.inputs import parse_input_name

Shapes = Mapping[str, tuple[int, ...]]


class Looked(NamedTuple):
    """Embedding and heads of a network before its last layer.

    Args:
        embedding: (B, width), what the last layer sees.
        extra: answers to tasks beside the label, such as "trajectory" (B, horizon, 4).
    """

    embedding: Tensor
    extra: dict[str, Tensor]


class CrossingNet(nn.Module):
    """A network that ends in one linear layer, so that an uncertainty method can replace that layer.

    A subclass builds its layers in `build`, which returns the width of its embedding, and looks in `look`.

    Args:
        config: sizes, of the entry's `config_class`.
        shapes: of one sample of each input, frames first, in the order they are given.
        labels: how many there are; two make one logit, that of label 1.
        tasks: further answers and their sizes: {"trajectory": 30} frames, {"grid": 576} cells.

    Raises:
        UsageError: if the network cannot work with these inputs, labels or tasks.
    """

    entry: ClassVar[Entry]

    def __init__(
        self, config: Any, shapes: Shapes, labels: int = 2, tasks: Mapping[str, int] | None = None
    ) -> None:
        super().__init__()
        if not shapes:
            raise UsageError(f"{self.entry.card.name} needs inputs, such as {', '.join(self.entry.reads)}")
        if labels < 2:
            raise UsageError(f"a question has at least two labels, not {labels}")
        self.config, self.shapes, self.labels = config, dict(shapes), labels
        self.tasks = dict(tasks or {})
        unknown = [task for task in self.tasks if task not in self.entry.also_tells]
        if unknown:
            raise UsageError(f"{self.entry.card.name} does not answer {', '.join(unknown)}")
        self.sequences = [name for name, shape in self.shapes.items() if len(shape) == 2]
        self.pictures = [name for name, shape in self.shapes.items() if len(shape) == 4]
        for name in self.sequences:
            width = self.shapes[name][-1]
            self.register_buffer(f"mean_{_plain(name)}", torch.zeros(width))
            self.register_buffer(f"spread_{_plain(name)}", torch.ones(width))
        self.last = nn.Linear(self.build(), self.n_scores)
        self.begin()

    @property
    def n_scores(self) -> int:
        """The columns of an answer."""
        return 1 if self.labels == 2 else self.labels

    @abstractmethod
    def build(self) -> int:
        """Add the layers; the width of the embedding.

        Raises:
            UsageError: if the network cannot work with these inputs.
        """

    def begin(self) -> None:
        """Change the first weights of the last layer; nothing unless a network has its own."""

    def settle(self, some: Callable[[], Mapping[str, Tensor]]) -> None:
        """Initialise weights from sample inputs; does nothing by default.

        Args:
            some: gives a batch of inputs as `forward` takes them.
        """

    @abstractmethod
    def look(self, x: dict[str, Tensor]) -> Looked:
        """The embedding of the inputs, and further answers.

        Args:
            x: by name; sequences (B, T, d) float, images (B, T, 3, H, W) in [0, 1].
        """

    def forward(self, x: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Answers: "label" (B, n_scores) logits, and those of further tasks.

        Args:
            x: by name, as `look` takes them; sequences may hold NaN, which becomes the mean of training.
        """
        looked = self.looked(x)
        return {"label": self.last(looked.embedding), **looked.extra}

    def looked(self, x: Mapping[str, Tensor]) -> Looked:
        """All but the last layer: the embedding of inputs as `forward` takes them, and further answers."""
        return self.look({name: self._standard(name, x[name]) for name in self.shapes})

    def standardise(self, name: str, mean: Tensor, spread: Tensor) -> None:
        """Let a sequence (.., d) come in as (value - mean) / spread; both (d)."""
        getattr(self, f"mean_{_plain(name)}").copy_(mean)
        getattr(self, f"spread_{_plain(name)}").copy_(spread)

    def frames_of(self, name: str) -> int:
        """How many frames an input has."""
        return self.shapes[name][0]

    def _standard(self, name: str, values: Tensor) -> Tensor:
        if len(self.shapes[name]) != 2:
            return values
        mean, spread = getattr(self, f"mean_{_plain(name)}"), getattr(self, f"spread_{_plain(name)}")
        return torch.nan_to_num((values - mean) / spread, nan=0.0)


def select_inputs_by_kind(shapes: Shapes, kind: str) -> list[str]:
    """The names of the inputs of one kind, such as `boxes` or `crop`."""
    return [name for name in shapes if parse_input_name(name).kind == kind]


def _plain(name: str) -> str:
    """A name as torch takes it for a buffer."""
    return name.replace(":", "_").replace("@", "_")
